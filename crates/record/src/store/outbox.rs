//! Queued messages to people about questions: one row for each message to one recipient on one channel.
//!
//! ```text
//! due ── taken ──> sending ── sent ──────> sent
//!  ^                 │ ├──── cannot ─────> failed ── again ──> due
//!  └── later, or ────┘ └──── not needed ─> skipped
//!      no result within the lease
//! ```

use mcp_elicit_core::lifecycle::Timestamp;

use super::Row;

/// The state of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotificationState {
    /// It waits for its time.
    Due,
    /// A gateway sends it, until the lease ends.
    Sending,
    /// The channel took it.
    Sent,
    /// It could not be sent.
    Failed,
    /// It was no longer needed.
    Skipped,
}

impl NotificationState {
    /// Returns the word that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// Returns the state for this word.
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [
            Self::Due,
            Self::Sending,
            Self::Sent,
            Self::Failed,
            Self::Skipped,
        ];
        all.into_iter().find(|state| state.as_str() == word)
    }
}

/// A message to one recipient on one channel.
#[derive(Clone, PartialEq, Eq)]
pub struct Notification {
    /// Equal for the same event, recipient and channel, so that a message is created once.
    pub id: String,
    /// The question.
    pub question: String,
    /// The word of the event that it is about.
    pub event: String,
    /// The channel, by name.
    pub channel: String,
    /// The recipient, in the format of the channel's sender.
    pub recipient: String,
    /// The person, if it goes to one.
    pub person: Option<String>,
    /// The state.
    pub state: NotificationState,
    /// The number of times that it was taken.
    pub attempts: u32,
    /// The time of the next attempt, or of the lease's end.
    pub due_at: Timestamp,
    /// The time after which it is not retried.
    pub until: Timestamp,
    /// The time of the event.
    pub at: Timestamp,
    /// The time at which it was sent, failed or was skipped.
    pub done_at: Option<Timestamp>,
    /// The channel's id of the sent message.
    pub message: Option<String>,
    /// The word for the reason why it was not sent.
    pub why: Option<String>,
}

impl Notification {
    /// Returns the words for this recipient on this channel, among those that are busy.
    pub fn recipient_on_channel(&self) -> String {
        format!("{} {}", self.channel, self.recipient)
    }
}

impl std::fmt::Debug for Notification {
    /// Formats everything but the recipient.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notification")
            .field("id", &self.id)
            .field("question", &self.question)
            .field("event", &self.event)
            .field("channel", &self.channel)
            .field("person", &self.person)
            .field("state", &self.state)
            .field("attempts", &self.attempts)
            .field("due_at", &self.due_at)
            .field("why", &self.why)
            .finish_non_exhaustive()
    }
}

/// The result of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tried {
    /// The channel accepted it, with this id.
    Sent(String),
    /// It is retried then, for this reason.
    Later(Timestamp, String),
    /// It cannot be sent, for this reason.
    Failed(String),
    /// It is no longer needed, for this reason.
    Skipped(String),
}

impl Tried {
    /// Returns the state, the reason and the channel's id.
    pub(super) fn parts(&self) -> (NotificationState, Option<&str>, Option<&str>) {
        match self {
            Self::Sent(message) => (NotificationState::Sent, None, Some(message)),
            Self::Later(_, why) => (NotificationState::Due, Some(why), None),
            Self::Failed(why) => (NotificationState::Failed, Some(why), None),
            Self::Skipped(why) => (NotificationState::Skipped, Some(why), None),
        }
    }
}

/// A message that was taken to be sent. Only the sender that took it last may report its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenMessage<'a> {
    /// The message.
    pub id: &'a str,
    /// [`Notification::attempts`] when it was taken.
    pub attempts: u32,
}

/// A question whose timeline may contain events that people were not told of.
#[derive(Clone, Debug, PartialEq)]
pub struct Untold {
    /// The question.
    pub row: Row,
    /// The number of events in its timeline that people were told of.
    pub told: usize,
}

/// The events that people are now told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notified {
    /// The question.
    pub question: String,
    /// The version of the row that was read.
    pub version: u64,
    /// The number of events in its timeline.
    pub told: usize,
    /// The messages; one that was queued before is unchanged.
    pub messages: Vec<Notification>,
}

/// The selection of messages to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationFilter {
    /// The messages of a question, the oldest first.
    Question(String),
    /// The failed messages, the newest first.
    Failed,
    /// The messages sent to a person since then, the oldest first.
    SentTo(String, Timestamp),
    /// The messages sent to one recipient of a person, the newest first.
    Reached {
        /// The person.
        person: String,
        /// The recipient.
        recipient: String,
    },
    /// The failed messages to one recipient, the newest first.
    NotReached(String),
}
