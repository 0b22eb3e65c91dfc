use std::time::{Duration, SystemTime};

use crate::form::Form;
use crate::link::Link;

use super::{CallView, Origin, sanitize};

/// The body of a question: a form to fill in, or a link to visit.
#[derive(Clone, Debug)]
pub enum QuestionBody {
    /// Form mode. A form without fields asks for a confirmation.
    Form(Form),
    /// Url mode: the person is asked whether to open the link, which is never fetched.
    Url(Link),
}

/// One question as a frontend shows it.
#[derive(Clone, Debug)]
pub struct QuestionView {
    origin: Origin,
    caller: Option<String>,
    client: Option<String>,
    call: Option<CallView>,
    message: String,
    ask: QuestionBody,
    deadline: Option<SystemTime>,
    pending: Vec<PendingView>,
}

impl QuestionView {
    /// Creates a question from `origin` with the server's own `message`.
    pub fn new(origin: Origin, message: impl Into<String>, ask: QuestionBody) -> Self {
        Self {
            origin,
            caller: None,
            client: None,
            call: None,
            message: message.into(),
            ask,
            deadline: None,
            pending: Vec::new(),
        }
    }

    /// Creates a question with a form.
    pub fn form(origin: Origin, message: impl Into<String>, form: Form) -> Self {
        Self::new(origin, message, QuestionBody::Form(form))
    }

    /// Creates a question with a link.
    pub fn url(origin: Origin, message: impl Into<String>, link: Link) -> Self {
        Self::new(origin, message, QuestionBody::Url(link))
    }

    /// Adds the caller of the call, in words for a person.
    #[must_use]
    pub fn on_behalf_of(mut self, caller: impl Into<String>) -> Self {
        self.caller = Some(caller.into());
        self
    }

    /// Adds the client that made the call, by the name and version that it claims (`clientInfo`).
    #[must_use]
    pub fn through(mut self, name: &str, version: Option<&str>) -> Self {
        let version = version.filter(|version| !version.is_empty());
        self.client = Some(match version {
            Some(version) => format!("{name} {version}"),
            None => name.to_owned(),
        });
        self
    }

    /// Adds the call that waits for the answer.
    #[must_use]
    pub fn for_call(mut self, call: CallView) -> Self {
        self.call = Some(call);
        self
    }

    /// Adds the time after which no answer is accepted.
    #[must_use]
    pub fn until(mut self, deadline: SystemTime) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Adds the questions that wait behind this one, in order.
    #[must_use]
    pub fn with_pending(mut self, others: Vec<PendingView>) -> Self {
        self.pending = others;
        self
    }

    /// Returns the server that asks.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the caller of the call, if known, safe to show.
    pub fn caller(&self) -> Option<String> {
        shown(self.caller.as_deref())
    }

    /// Returns the client that made the call as it calls itself, if known, safe to show: `Claude Code 2.1`. Has no
    /// quotation marks of its own.
    pub fn client(&self) -> Option<String> {
        let shown = sanitize::claim(self.client.as_deref()?, sanitize::CLAIMED_NAME);
        (!shown.is_empty()).then_some(shown)
    }

    /// Returns the call that waits for the answer, if known.
    pub fn call(&self) -> Option<&CallView> {
        self.call.as_ref()
    }

    /// Returns the server's message, safe to show; with several lines, limited in length.
    pub fn message(&self) -> String {
        sanitize::text(self.message.trim(), sanitize::MESSAGE)
    }

    /// Returns the server's message as received, for records and for checks that need all of it.
    pub fn raw_message(&self) -> &str {
        &self.message
    }

    /// Returns the form or link.
    pub fn ask(&self) -> &QuestionBody {
        &self.ask
    }

    /// Returns the form, in form mode.
    pub fn as_form(&self) -> Option<&Form> {
        match &self.ask {
            QuestionBody::Form(form) => Some(form),
            QuestionBody::Url(_) => None,
        }
    }

    /// Returns the link, in url mode.
    pub fn as_link(&self) -> Option<&Link> {
        match &self.ask {
            QuestionBody::Form(_) => None,
            QuestionBody::Url(link) => Some(link),
        }
    }

    /// Returns the time after which no answer is accepted.
    pub fn deadline(&self) -> Option<SystemTime> {
        self.deadline
    }

    /// Returns the time left at `now`; zero once the deadline has passed, `None` without one.
    pub fn remaining(&self, now: SystemTime) -> Option<Duration> {
        self.deadline
            .map(|end| end.duration_since(now).unwrap_or_default())
    }

    /// Returns `true` if the deadline has passed at `now`.
    pub fn is_over(&self, now: SystemTime) -> bool {
        self.deadline.is_some_and(|end| end <= now)
    }

    /// Returns the questions that wait behind this one, in order.
    pub fn pending(&self) -> &[PendingView] {
        &self.pending
    }
}

fn shown(raw: Option<&str>) -> Option<String> {
    let shown = sanitize::line(raw?, sanitize::LABEL);
    (!shown.is_empty()).then_some(shown)
}

/// A summary of a question that waits behind another, safe to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingView {
    server: String,
    call: Option<String>,
    beginning: String,
}

impl PendingView {
    /// The longest beginning of a message that is kept, in characters, including the ellipsis.
    const BEGINNING: usize = 80;

    /// Creates the summary of `question`.
    pub fn from_question(question: &QuestionView) -> Self {
        // Only the part of a long message that is shown is read.
        let mut rest = question.message.trim_start().chars();
        let start: String = rest.by_ref().take(Self::BEGINNING - 1).collect();
        let mut beginning = sanitize::line(&start, Self::BEGINNING);
        if rest.next().is_some() {
            beginning.push('…');
        }
        Self {
            server: question.origin.name(),
            call: question.call.as_ref().map(CallView::name),
            beginning,
        }
    }

    /// Returns the configured name of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the tool, prompt or resource whose call asks, if known.
    pub fn call(&self) -> Option<&str> {
        self.call.as_deref()
    }

    /// Returns the beginning of the server's message.
    pub fn beginning(&self) -> &str {
        &self.beginning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_told_in_a_few_words_whatever_the_server_wrote() {
        let long = format!("Go?\u{1b}[2J\n{}", "x".repeat(1_000_000));
        let link = Link::parse("https://example.org/").unwrap();
        let question = QuestionView::url(Origin::new("files"), long, link);
        let next = PendingView::from_question(&question.for_call(CallView::tool("add_note")));
        assert_eq!((next.server(), next.call()), ("files", Some("add_note")));
        assert!(next.beginning().starts_with("Go?␛[2J xxx"));
        assert!(next.beginning().chars().count() <= PendingView::BEGINNING);
    }

    #[test]
    fn for_whom_and_through_what_is_part_of_the_question() {
        let link = Link::parse("https://example.org/").unwrap();
        let question = QuestionView::url(Origin::new("files"), "Go?", link);
        assert_eq!((question.caller(), question.client()), (None, None));
        let question = question
            .on_behalf_of("ana@example.org\u{202e}")
            .through("Claude\nCode", Some("2.1"));
        assert_eq!(
            question.caller().as_deref(),
            Some("ana@example.org‹U+202E›")
        );
        assert_eq!(question.client().as_deref(), Some("Claude Code 2.1"));
    }
}
