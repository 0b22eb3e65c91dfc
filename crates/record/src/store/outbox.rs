//! Messages about questions on their way to people: one row for each message to one recipient on one channel.
//!
//! ```text
//! due ── taken ──> sending ── sent ──────> sent
//!  ^                 │ ├──── cannot ─────> failed ── again ──> due
//!  └── later, or ────┘ └──── not needed ─> skipped
//!      nobody said within the lease
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
    /// It was not needed any more.
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

    /// Returns the state of that word.
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
    /// The same for the same event, recipient and channel, so that it is made once.
    pub id: String,
    /// The question.
    pub question: String,
    /// The event that it tells of, by its word.
    pub event: String,
    /// The channel, by name.
    pub channel: String,
    /// The recipient, as the channel's sender wrote it.
    pub recipient: String,
    /// The person, where it goes to one.
    pub person: Option<String>,
    /// The state.
    pub state: NotificationState,
    /// The number of times that it was taken.
    pub attempts: u32,
    /// The time of the next try, or of the lease's end.
    pub due_at: Timestamp,
    /// The time from which on it is not tried again.
    pub until: Timestamp,
    /// The time of the event.
    pub at: Timestamp,
    /// The time at which it was sent, failed or was skipped.
    pub done_at: Option<Timestamp>,
    /// The channel's own name of the message that was sent.
    pub message: Option<String>,
    /// The reason for which it was not sent, by its word.
    pub why: Option<String>,
}

impl std::fmt::Debug for Notification {
    /// Formats everything but the recipient's address.
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

/// The result of one try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tried {
    /// The channel took it, under this name.
    Sent(String),
    /// It is tried again then, for this reason.
    Later(Timestamp, String),
    /// It cannot be sent, for this reason.
    Failed(String),
    /// It is not needed any more, for this reason.
    Skipped(String),
}

impl Tried {
    /// Returns the state, the reason and the channel's name.
    pub(super) fn parts(&self) -> (NotificationState, Option<&str>, Option<&str>) {
        match self {
            Self::Sent(message) => (NotificationState::Sent, None, Some(message)),
            Self::Later(_, why) => (NotificationState::Due, Some(why), None),
            Self::Failed(why) => (NotificationState::Failed, Some(why), None),
            Self::Skipped(why) => (NotificationState::Skipped, Some(why), None),
        }
    }
}

/// A message that was taken to be sent. Only who took it last may say what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<'a> {
    /// The message.
    pub id: &'a str,
    /// [`Notification::attempts`] as it was taken.
    pub attempts: u32,
}

/// A question whose course may hold what people were not told.
#[derive(Clone, Debug, PartialEq)]
pub struct Untold {
    /// The question.
    pub row: Row,
    /// The number of events of its course that people were told of.
    pub told: usize,
}

/// The events that people are told of from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notified {
    /// The question.
    pub question: String,
    /// The version of the row that was read.
    pub version: u64,
    /// The number of events of its course.
    pub told: usize,
    /// The messages; one that was queued before stays as it is.
    pub messages: Vec<Notification>,
}

/// The wanted messages of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationFilter {
    /// Those of a question, the oldest first.
    Question(String),
    /// Those that could not be sent, the newest first.
    Failed,
    /// Those that were sent to a person since then, the oldest first.
    SentTo(String, Timestamp),
    /// Those to one recipient of a person that were sent, the newest first.
    Reached {
        /// The person.
        person: String,
        /// The recipient.
        recipient: String,
    },
    /// Those to one recipient that could not be sent, the newest first.
    NotReached(String),
}
