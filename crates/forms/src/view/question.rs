use std::fmt;
use std::time::{Duration, SystemTime};

use mcp_elicit_core::form::Form;
use mcp_elicit_core::link::Link;
use serde_json::Value;

use super::inert;

/// Which server asks, as the client or gateway knows it.
///
/// The first thing a person sees. What the server says about itself is kept apart from what is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    server: String,
    claimed: Option<String>,
    version: Option<String>,
    connection: Option<String>,
}

impl Origin {
    /// The server by the name its own side gave it: the name in the configuration, a command, a host.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            claimed: None,
            version: None,
            connection: None,
        }
    }

    /// Adds the name and version the server gave for itself (`serverInfo`).
    #[must_use]
    pub fn claiming(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.claimed = Some(name.into());
        self.version = Some(version.into());
        self
    }

    /// Adds how it is connected, in words for a person: `over stdio: npx some-server`, `at https://…`.
    #[must_use]
    pub fn connected(mut self, how: impl Into<String>) -> Self {
        self.connection = Some(how.into());
        self
    }

    /// The name its own side gave it, safe to show.
    pub fn server(&self) -> String {
        inert::line(&self.server, inert::LABEL)
    }

    /// The name the server gave for itself, where it says something else than [`server`](Self::server).
    pub fn claimed(&self) -> Option<String> {
        let claimed = inert::line(self.claimed.as_deref()?, inert::LABEL);
        (!claimed.is_empty() && claimed != self.server()).then_some(claimed)
    }

    /// The version the server gave for itself, safe to show.
    pub fn version(&self) -> Option<String> {
        let version = inert::line(self.version.as_deref()?, inert::LABEL);
        (!version.is_empty()).then_some(version)
    }

    /// How it is connected, safe to show.
    pub fn connection(&self) -> Option<String> {
        self.connection
            .as_deref()
            .map(|how| inert::line(how, inert::LABEL))
    }

    /// Name and version on one line: `files 1.2.0`, or `files (calls itself "Files Pro" 1.2.0)`.
    pub fn title(&self) -> String {
        match (self.claimed(), self.version()) {
            (None, None) => self.server(),
            (None, Some(version)) => format!("{} {version}", self.server()),
            (Some(claimed), None) => format!("{} (calls itself “{claimed}”)", self.server()),
            (Some(claimed), Some(version)) => {
                format!("{} (calls itself “{claimed}” {version})", self.server())
            }
        }
    }
}

/// The kind of request a question belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// `tools/call`
    Tool,
    /// `prompts/get`
    Prompt,
    /// `resources/read`
    Resource,
}

impl CallKind {
    /// The word a person knows it by.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }
}

/// The call that the question interrupts.
#[derive(Clone, PartialEq)]
pub struct Call {
    kind: CallKind,
    name: String,
    others: Vec<String>,
    arguments: Option<Value>,
}

/// How many calls are named where any of them may be meant.
const NAMED: usize = 4;

impl Call {
    /// A call of the tool, prompt or resource `name`.
    pub fn new(kind: CallKind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            others: Vec::new(),
            arguments: None,
        }
    }

    /// Says that the question may as well be for one of these, since its server does not say which.
    #[must_use]
    pub fn or_one_of(mut self, others: Vec<String>) -> Self {
        self.others = others;
        self
    }

    /// A call of the tool `name`.
    pub fn tool(name: impl Into<String>) -> Self {
        Self::new(CallKind::Tool, name)
    }

    /// Adds the arguments it was called with.
    #[must_use]
    pub fn with(mut self, arguments: Value) -> Self {
        self.arguments = Some(arguments);
        self
    }

    /// The kind of call.
    pub fn kind(&self) -> CallKind {
        self.kind
    }

    /// The name of the tool or prompt, or the resource's URI, safe to show; the names of all where any may be meant.
    pub fn name(&self) -> String {
        let mut names = vec![inert::line(&self.name, inert::LABEL)];
        let others = self.others.iter().filter(|other| **other != self.name);
        names.extend(others.map(|other| inert::line(other, inert::LABEL)));
        if names.len() > NAMED {
            names.truncate(NAMED);
            names.push("another".to_owned());
        }
        match names.split_last() {
            Some((last, first)) if !first.is_empty() => {
                format!("{} or {last}", first.join(", "))
            }
            _ => names.concat(),
        }
    }

    /// What to add where any of several calls may be meant.
    pub fn doubt(&self) -> Option<&'static str> {
        let unsure = !self.others.is_empty();
        unsure.then_some("one of several calls, and the server does not say which")
    }

    /// The arguments as pairs of name and value, each safe to show on one line.
    pub fn arguments(&self) -> Vec<(String, String)> {
        let shown = |value: &Value| match value {
            Value::String(text) => inert::line(text, inert::LABEL),
            other => inert::line(&other.to_string(), inert::LABEL),
        };
        match &self.arguments {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(map)) => map
                .iter()
                .map(|(name, value)| (inert::line(name, inert::LABEL), shown(value)))
                .collect(),
            Some(other) => vec![(String::new(), shown(other))],
        }
    }

    /// The call on one line: `deploy (build: latest, dry: true)`.
    pub fn title(&self) -> String {
        let arguments = self.arguments();
        if arguments.is_empty() {
            return self.name();
        }
        let list: Vec<_> = arguments
            .into_iter()
            .map(|(name, value)| {
                if name.is_empty() {
                    value
                } else {
                    format!("{name}: {value}")
                }
            })
            .collect();
        inert::line(
            &format!("{} ({})", self.name(), list.join(", ")),
            inert::LABEL * 2,
        )
    }
}

/// Arguments may hold what a person said, so they stay out of logs.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What is asked for: a form to fill in, or a link to visit.
#[derive(Clone, Debug)]
pub enum Ask {
    /// Form mode. A form without fields asks for a plain yes.
    Form(Form),
    /// Url mode: the person is asked whether to open the link, which is never fetched.
    Url(Link),
}

/// One question as a face shows it.
#[derive(Clone, Debug)]
pub struct Question {
    origin: Origin,
    call: Option<Call>,
    message: String,
    ask: Ask,
    deadline: Option<SystemTime>,
    pending: Vec<Next>,
}

impl Question {
    /// A question from `origin` with the server's own `message`.
    pub fn new(origin: Origin, message: impl Into<String>, ask: Ask) -> Self {
        Self {
            origin,
            call: None,
            message: message.into(),
            ask,
            deadline: None,
            pending: Vec::new(),
        }
    }

    /// A form to fill in.
    pub fn form(origin: Origin, message: impl Into<String>, form: Form) -> Self {
        Self::new(origin, message, Ask::Form(form))
    }

    /// A link to visit.
    pub fn url(origin: Origin, message: impl Into<String>, link: Link) -> Self {
        Self::new(origin, message, Ask::Url(link))
    }

    /// Adds the call that waits for the answer.
    #[must_use]
    pub fn for_call(mut self, call: Call) -> Self {
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
    pub fn with_pending(mut self, others: Vec<Next>) -> Self {
        self.pending = others;
        self
    }

    /// Which server asks.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The call that waits for the answer, where it is known.
    pub fn call(&self) -> Option<&Call> {
        self.call.as_ref()
    }

    /// The server's message, safe to show; of several lines, bounded.
    pub fn message(&self) -> String {
        inert::text(self.message.trim(), inert::MESSAGE)
    }

    /// The server's message as it came, for records and for the checks that must see all of it.
    pub fn raw_message(&self) -> &str {
        &self.message
    }

    /// What is asked for.
    pub fn ask(&self) -> &Ask {
        &self.ask
    }

    /// The form, in form mode.
    pub fn as_form(&self) -> Option<&Form> {
        match &self.ask {
            Ask::Form(form) => Some(form),
            Ask::Url(_) => None,
        }
    }

    /// The link, in url mode.
    pub fn as_link(&self) -> Option<&Link> {
        match &self.ask {
            Ask::Form(_) => None,
            Ask::Url(link) => Some(link),
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

    /// Whether the deadline has passed at `now`.
    pub fn is_over(&self, now: SystemTime) -> bool {
        self.deadline.is_some_and(|end| end <= now)
    }

    /// The questions that wait behind this one, in their order.
    pub fn pending(&self) -> &[Next] {
        &self.pending
    }
}

/// A question that waits behind another, in a few words, safe to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    server: String,
    call: Option<String>,
    beginning: String,
}

impl Next {
    /// Longest beginning of a message that is kept, in characters, the ellipsis for the rest included.
    const BEGINNING: usize = 80;

    /// `question` in a few words.
    pub fn of(question: &Question) -> Self {
        // No more of a long message is read than is shown.
        let mut rest = question.message.trim_start().chars();
        let start: String = rest.by_ref().take(Self::BEGINNING - 1).collect();
        let mut beginning = inert::line(&start, Self::BEGINNING);
        if rest.next().is_some() {
            beginning.push('…');
        }
        Self {
            server: question.origin.server(),
            call: question.call.as_ref().map(Call::name),
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

    /// How the server's message begins.
    pub fn beginning(&self) -> &str {
        &self.beginning
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_known_name_comes_first() {
        let origin = Origin::new("files").claiming("Files Pro", "1.2.0");
        assert_eq!(origin.title(), "files (calls itself “Files Pro” 1.2.0)");
        assert_eq!(
            Origin::new("files").claiming("files", "1.2.0").title(),
            "files 1.2.0"
        );
        assert_eq!(Origin::new("files").title(), "files");
    }

    #[test]
    fn a_claimed_name_cannot_act_on_the_screen() {
        let origin = Origin::new("files").claiming("\u{1b}[31mroot\nsystem", "\u{202e}1");
        assert_eq!(
            origin.title(),
            "files (calls itself “␛[31mroot system” ‹U+202E›1)"
        );
    }

    #[test]
    fn what_waits_is_told_in_a_few_words_whatever_the_server_wrote() {
        let long = format!("Go?\u{1b}[2J\n{}", "x".repeat(1_000_000));
        let link = Link::parse("https://example.org/").unwrap();
        let question = Question::url(Origin::new("files"), long, link);
        let next = Next::of(&question.for_call(Call::tool("add_note")));
        assert_eq!((next.server(), next.call()), ("files", Some("add_note")));
        assert!(next.beginning().starts_with("Go?␛[2J xxx"));
        assert!(next.beginning().chars().count() <= Next::BEGINNING);
    }

    #[test]
    fn a_call_is_told_on_one_line_and_kept_out_of_debug() {
        let call = Call::tool("deploy").with(json!({"build": "la\ntest", "dry": true}));
        assert_eq!(call.title(), "deploy (build: la test, dry: true)");
        assert!(!format!("{call:?}").contains("dry"));
    }

    #[test]
    fn every_call_that_may_be_meant_is_named() {
        let named = |others: &[&str]| {
            let others = others.iter().map(|&other| other.to_owned()).collect();
            let call = Call::tool("deploy").or_one_of(others);
            (call.name(), call.doubt().is_some())
        };
        assert_eq!(named(&[]), ("deploy".to_owned(), false));
        assert_eq!(named(&["deploy"]), ("deploy".to_owned(), true));
        assert_eq!(named(&["plan"]), ("deploy or plan".to_owned(), true));
        assert_eq!(named(&["a", "deploy", "b"]).0, "deploy, a or b");
        assert_eq!(
            named(&["a", "b", "c", "d", "e"]).0,
            "deploy, a, b, c or another"
        );
    }
}
