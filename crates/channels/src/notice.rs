//! A message about a question, in no channel's format.

use std::fmt;
use std::sync::Arc;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_policy::rules::Reveal;

use crate::push::Subscription;

/// An event of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuestionEvent {
    /// People are asked.
    Asked,
    /// People who have not acted are reminded.
    Reminded,
    /// More people are asked.
    Escalated,
    /// A person has claimed it.
    Claimed,
    /// It was delegated.
    Delegated,
    /// Answers were entered, and wait for confirmation.
    Filled,
    /// One more person confirmed the answers.
    Confirmed,
    /// The question is answered.
    Answered,
    /// A person declined.
    Declined,
    /// A person cancelled.
    Cancelled,
    /// It was not answered in time.
    TimedOut,
    /// The question was withdrawn.
    Withdrawn,
    /// The answer could not be delivered.
    Failed,
}

impl QuestionEvent {
    /// Every event, in the order of a question's life.
    pub const ALL: [Self; 13] = [
        Self::Asked,
        Self::Reminded,
        Self::Escalated,
        Self::Claimed,
        Self::Delegated,
        Self::Filled,
        Self::Confirmed,
        Self::Answered,
        Self::Declined,
        Self::Cancelled,
        Self::TimedOut,
        Self::Withdrawn,
        Self::Failed,
    ];

    /// Returns the name for programs: `question.asked`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Asked => "question.asked",
            Self::Reminded => "question.reminded",
            Self::Escalated => "question.escalated",
            Self::Claimed => "question.claimed",
            Self::Delegated => "question.delegated",
            Self::Filled => "question.filled",
            Self::Confirmed => "question.confirmed",
            Self::Answered => "question.answered",
            Self::Declined => "question.declined",
            Self::Cancelled => "question.cancelled",
            Self::TimedOut => "question.timed_out",
            Self::Withdrawn => "question.withdrawn",
            Self::Failed => "question.failed",
        }
    }

    /// Returns the event of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Returns `true` if the question can no longer be answered.
    pub const fn is_end(self) -> bool {
        match self {
            Self::Answered
            | Self::Declined
            | Self::Cancelled
            | Self::TimedOut
            | Self::Withdrawn
            | Self::Failed => true,
            Self::Asked
            | Self::Reminded
            | Self::Escalated
            | Self::Claimed
            | Self::Delegated
            | Self::Filled
            | Self::Confirmed => false,
        }
    }

    /// Returns the words for people: `answered`, `timed out`. `is_approval` is set if a call waits for approval.
    pub const fn words(self, is_approval: bool) -> &'static str {
        match self {
            Self::Filled if is_approval => "another approval needed",
            Self::Answered if is_approval => "approved",
            Self::TimedOut if is_approval => "not approved in time",
            Self::Failed if is_approval => "the call could not be made",
            Self::Asked => "decision needed",
            Self::Reminded => "reminder: decision needed",
            Self::Escalated => "escalated: decision needed",
            Self::Claimed => "claimed",
            Self::Delegated => "handed on to you: decision needed",
            Self::Filled => "confirmation needed",
            Self::Confirmed => "confirmed",
            Self::Answered => "answered",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "not answered in time",
            Self::Withdrawn => "withdrawn",
            Self::Failed => "the answer could not be delivered",
        }
    }

    /// Returns `true` if the message asks its reader to act.
    pub const fn asks_to_act(self) -> bool {
        matches!(
            self,
            Self::Asked | Self::Reminded | Self::Escalated | Self::Delegated | Self::Filled
        )
    }
}

/// The id of one message: the same for each repetition, so that receivers can recognise one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NotificationId(Box<str>);

impl NotificationId {
    /// Parses an id: 1 to 64 ASCII letters, digits, `-` and `_`.
    pub fn new(text: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        ((1..=64).contains(&text.len()) && text.bytes().all(plain)).then(|| Self(text.into()))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NotificationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The recipient of a message.
#[derive(Clone, PartialEq, Eq)]
pub enum Recipient {
    /// A person in the file.
    Person {
        /// The name in the file.
        name: String,
        /// The mail address, by which mail and Slack reach the person.
        mail: Option<String>,
    },
    /// A group in the file: a Slack channel, a Teams channel.
    Group(String),
    /// A browser that a person subscribed.
    Device(Box<Subscription>),
    /// The endpoint of a webhook.
    Endpoint,
}

impl fmt::Debug for Recipient {
    /// Formats everything but addresses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person { name, .. } => write!(f, "Person({name})"),
            Self::Group(name) => write!(f, "Group({name})"),
            Self::Device(_) => f.write_str("Device"),
            Self::Endpoint => f.write_str("Endpoint"),
        }
    }
}

/// The caller's identity, as far as it is known; unknown parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerSummary {
    /// The issuer of the token.
    pub issuer: String,
    /// The subject, as the issuer knows it.
    pub subject: String,
    /// The name for people.
    pub name: String,
}

/// The end of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndSummary {
    /// The event that ended it.
    pub event: QuestionEvent,
    /// The people who ended it, by their names for readers; `None` if no person did.
    pub by: Option<String>,
    /// The time.
    pub at: Timestamp,
    /// The reason or the comments that the people gave with it.
    pub why: Vec<String>,
}

/// A question in the form for channels. Answers, comments and tokens are never part of it; the reasons of its end are.
#[derive(Clone)]
pub struct ChannelSummary {
    /// The question's id.
    pub question: String,
    /// The version that this summary shows, which actions refer to.
    pub version: u64,
    /// The server's name in the configuration.
    pub server: String,
    /// The tool, prompt or resource of the call, if known.
    pub tool: Option<String>,
    /// The rule that asks.
    pub rule: Option<String>,
    /// The caller of the call.
    pub caller: CallerSummary,
    /// The server's message.
    pub message: String,
    /// The arguments of the call, as JSON.
    pub arguments: Option<String>,
    /// The operator's explanation of the rule.
    pub explain: Option<String>,
    /// The address of a page with more of the explanation.
    pub runbook: Option<String>,
    /// The people who are missing, in words, if they must come from different groups: `1 of the group security`.
    pub missing: Option<String>,
    /// The places that a reason for a decline or a comment on an approval reaches: a whole sentence.
    pub reasons_reach: String,
    /// The later calls that an approval would also let through, or that one which was given does: a whole sentence.
    pub good_for: Option<String>,
    /// The form; `None` for a link.
    pub form: Option<Arc<Form>>,
    /// The title and the description of the whole form, if the server set them.
    pub form_texts: Vec<String>,
    /// The address of a question in url mode.
    pub address: Option<String>,
    /// Everyone who is asked: `caller`, `person:NAME`, `group:NAME`.
    pub addressed: Vec<String>,
    /// The number of people who must confirm.
    pub need: u8,
    /// The people who confirm the entered answers, by their names for readers; the first has entered them.
    pub agreed: Vec<String>,
    /// The people whose confirmation no longer counts, since the first of `agreed` replaced the answers.
    pub dropped: Vec<String>,
    /// The person who has claimed it.
    pub claimed_by: Option<String>,
    /// `true` if answering needs a page: a recent login, answers of others to confirm, or a question for one of several
    /// calls.
    pub needs_page: bool,
    /// `true` if a call waits for approval, and no server has asked.
    pub is_approval: bool,
    /// The time of the question.
    pub asked_at: Timestamp,
    /// The time at which it ends unanswered.
    pub deadline: Timestamp,
    /// The end, if it has ended.
    pub ending: Option<EndSummary>,
    /// The page of the question. The link grants no right to answer.
    pub link: String,
}

impl fmt::Debug for ChannelSummary {
    /// Formats everything but texts of the server and the caller.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelSummary")
            .field("question", &self.question)
            .field("version", &self.version)
            .field("server", &self.server)
            .field("addressed", &self.addressed)
            .field("ending", &self.ending)
            .finish_non_exhaustive()
    }
}

/// A message about a question to one recipient.
#[derive(Clone, Debug)]
pub struct Notice {
    /// The message's id.
    pub id: NotificationId,
    /// The event that it reports.
    pub event: QuestionEvent,
    /// The time of the event.
    pub at: Timestamp,
    /// The recipient.
    pub to: Recipient,
    /// The question.
    pub summary: Arc<ChannelSummary>,
    /// The details that may leave the gateway.
    pub reveal: Reveal,
    /// The number of waiting questions of the recipient, if known.
    pub waiting: Option<u32>,
}

#[cfg(test)]
mod sample;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A question with a form, a tool and arguments.
    pub(crate) use super::sample::summary;

    pub(crate) fn notice(summary: ChannelSummary, event: QuestionEvent, reveal: Reveal) -> Notice {
        Notice {
            id: NotificationId::new("n-1").unwrap(),
            event,
            at: summary.asked_at,
            to: Recipient::Person {
                name: "ops-1".to_owned(),
                mail: Some("ops-1@example.com".to_owned()),
            },
            summary: Arc::new(summary),
            reveal,
            waiting: None,
        }
    }

    /// The notice that a call was approved, and may be made again for a time.
    pub(crate) fn approved() -> Notice {
        let mut ended = summary("{}");
        ended.is_approval = true;
        ended.good_for = Some("The caller may make this same call again until noon.".to_owned());
        ended.ending = Some(EndSummary {
            event: QuestionEvent::Answered,
            by: Some("Ada".to_owned()),
            at: ended.asked_at,
            why: vec!["looks fine".to_owned()],
        });
        notice(ended, QuestionEvent::Answered, Reveal::Question)
    }

    /// Checks that the text of a channel's last message says what became of [`approved`].
    pub(crate) fn assert_says_what_became_of_it(text: &str) {
        for part in [
            "deploy_app on deploy: Approved by Ada at 10:00 UTC",
            "looks fine",
            "again until noon",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn events_have_names_of_their_own() {
        for event in QuestionEvent::ALL {
            assert_eq!(QuestionEvent::from_name(event.name()), Some(event));
            assert!(!(event.is_end() && event.asks_to_act()), "{event:?}");
        }
        assert_eq!(QuestionEvent::from_name("question.Asked"), None);
    }

    #[test]
    fn ids_fit_every_header() {
        assert!(NotificationId::new("").is_none());
        assert!(NotificationId::new("a\r\nb").is_none());
        assert!(NotificationId::new("a>b").is_none());
        assert!(NotificationId::new(&"x".repeat(65)).is_none());
        assert_eq!(NotificationId::new("a-B_9").unwrap().as_str(), "a-B_9");
    }

    #[test]
    fn debug_shows_nothing_that_a_person_or_a_server_wrote() {
        let notice = notice(summary("{}"), QuestionEvent::Asked, Reveal::Arguments);
        let shown = format!("{notice:?}");
        for hidden in ["Deploy version", "production", "ops-1@example.com", "Ada"] {
            assert!(!shown.contains(hidden), "{shown}");
        }
    }
}
