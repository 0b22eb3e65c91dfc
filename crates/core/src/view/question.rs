use std::time::{Duration, SystemTime};

use crate::form::Form;
use crate::link::Link;

use super::{CallView, Origin, sanitize};

/// The body of a question: a form to fill in, or a link to visit.
#[derive(Clone, Debug)]
pub enum QuestionBody {
    /// Form mode. A form without fields asks for a plain yes.
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
    /// A question from `origin` with the server's own `message`.
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

    /// A form to fill in.
    pub fn form(origin: Origin, message: impl Into<String>, form: Form) -> Self {
        Self::new(origin, message, QuestionBody::Form(form))
    }

    /// A link to visit.
    pub fn url(origin: Origin, message: impl Into<String>, link: Link) -> Self {
        Self::new(origin, message, QuestionBody::Url(link))
    }

    /// Adds the caller: on whose behalf the call was made, in words for a person.
    #[must_use]
    pub fn on_behalf_of(mut self, caller: impl Into<String>) -> Self {
        self.caller = Some(caller.into());
        self
    }

    /// Adds the client that made the call, by the name and version it gave for itself (`clientInfo`).
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

    /// Adds the moment after which no answer is taken any more.
    #[must_use]
    pub fn until(mut self, deadline: SystemTime) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Adds the questions that wait behind this one, in their order.
    #[must_use]
    pub fn with_pending(mut self, others: Vec<PendingView>) -> Self {
        self.pending = others;
        self
    }

    /// Which server asks.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// On whose behalf the call was made, where it is known, safe to show.
    pub fn caller(&self) -> Option<String> {
        shown(self.caller.as_deref())
    }

    /// The client that made the call, where it is known, safe to show: `Claude Code 2.1`.
    pub fn client(&self) -> Option<String> {
        shown(self.client.as_deref())
    }

    /// The call that waits for the answer, where it is known.
    pub fn call(&self) -> Option<&CallView> {
        self.call.as_ref()
    }

    /// The server's message, safe to show; of several lines, bounded.
    pub fn message(&self) -> String {
        sanitize::text(self.message.trim(), sanitize::MESSAGE)
    }

    /// The server's message as it came, for records and for the checks that must see all of it.
    pub fn raw_message(&self) -> &str {
        &self.message
    }

    /// Returns the credential that is asked for.
    pub fn ask(&self) -> &QuestionBody {
        &self.ask
    }

    /// The form, in form mode.
    pub fn as_form(&self) -> Option<&Form> {
        match &self.ask {
            QuestionBody::Form(form) => Some(form),
            QuestionBody::Url(_) => None,
        }
    }

    /// The link, in url mode.
    pub fn as_link(&self) -> Option<&Link> {
        match &self.ask {
            QuestionBody::Form(_) => None,
            QuestionBody::Url(link) => Some(link),
        }
    }

    /// The moment after which no answer is taken any more.
    pub fn deadline(&self) -> Option<SystemTime> {
        self.deadline
    }

    /// Time left at `now`; zero once the deadline has passed, `None` without one.
    pub fn remaining(&self, now: SystemTime) -> Option<Duration> {
        self.deadline
            .map(|end| end.duration_since(now).unwrap_or_default())
    }

    /// Returns whether the deadline has passed at `now`.
    pub fn is_over(&self, now: SystemTime) -> bool {
        self.deadline.is_some_and(|end| end <= now)
    }

    /// The questions that wait behind this one, in their order.
    pub fn pending(&self) -> &[PendingView] {
        &self.pending
    }
}

fn shown(raw: Option<&str>) -> Option<String> {
    let shown = sanitize::line(raw?, sanitize::LABEL);
    (!shown.is_empty()).then_some(shown)
}

/// A question that waits behind another, in a few words, safe to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingView {
    server: String,
    call: Option<String>,
    beginning: String,
}

impl PendingView {
    /// Longest beginning of a message that is kept, in characters, the ellipsis for the rest included.
    const BEGINNING: usize = 80;

    /// `question` in a few words.
    pub fn from_question(question: &QuestionView) -> Self {
        // No more of a long message is read than is shown.
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

    /// The server that asks, as its own side calls it.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The tool, prompt or resource it is asked for, where that is known.
    pub fn call(&self) -> Option<&str> {
        self.call.as_deref()
    }

    /// Returns how the server's message begins.
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
