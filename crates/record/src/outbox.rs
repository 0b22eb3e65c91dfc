//! Messages to people about questions of rules: created from a question's timeline, taken to be sent, retried, and
//! audited. The gateway decides about their content and recipients; a message that cannot be sent never delays a
//! question.

use std::time::Duration;

use super::audit::{Actor, EntryText, Event, Member};
use super::{Record, RecordError};
use crate::store::outbox::{
    Notification, NotificationFilter, NotificationState, Notified, TakenMessage, Tried,
};
use crate::store::{Filter, Page, RecordStore as _, Row};
use mcp_elicit_core::digest;
use mcp_elicit_core::lifecycle::Timestamp;

/// The time in which a sender must report the result of a message; afterwards others take it.
pub const LEASE: Duration = Duration::from_secs(60);

/// The channel of a message to a person without any channel: it cannot be sent.
pub const NO_CHANNEL: &str = "none";

/// The time for which a message that was queued again is retried.
const AGAIN: Duration = Duration::from_secs(60 * 60);

/// A message to be queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// The number of its event in the timeline.
    pub number: usize,
    /// The event's word.
    pub event: String,
    /// The time of the event.
    pub at: Timestamp,
    /// The channel, by name.
    pub channel: String,
    /// The recipient, in the sender's format.
    pub recipient: String,
    /// The person, if it goes to one.
    pub person: Option<String>,
    /// The time of the first attempt.
    pub due_at: Timestamp,
    /// The time after which it is not retried.
    pub until: Timestamp,
}

impl NewMessage {
    fn of(self, question: &str) -> Notification {
        let number = self.number.to_string();
        let parts = [question, &number, &self.channel, &self.recipient];
        Notification {
            id: digest::hex(&digest::of_parts(parts), 16),
            question: question.to_owned(),
            event: self.event,
            channel: self.channel,
            recipient: self.recipient,
            person: self.person,
            state: NotificationState::Due,
            attempts: 0,
            due_at: self.due_at,
            until: self.until,
            at: self.at,
            done_at: None,
            message: None,
            why: None,
        }
    }
}

/// The last messages to one recipient.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastMessages {
    /// The time of the last one sent; `None` if none of them is stored.
    pub at: Option<Timestamp>,
    /// The time of a later one that failed, and the word for the reason.
    pub failed: Option<(Timestamp, String)>,
}

impl Record {
    /// Returns questions whose timeline may contain events that people were not told of, each with the number of events
    /// that they were told of.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn untold(&self, most: usize) -> Result<Vec<(Row, usize)>, RecordError> {
        let untold = self.store.untold(most).await?;
        Ok(untold.into_iter().map(|one| (one.row, one.told)).collect())
    }

    /// Queues the messages for the events of a timeline, and records that people are told of all of them. A message
    /// that was queued before is unchanged, so that a repetition after a crash creates no duplicates.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn tell(&self, row: &Row, messages: Vec<NewMessage>) -> Result<(), RecordError> {
        let notified = Notified {
            question: row.id.clone(),
            version: row.lifecycle.version(),
            told: row.timeline().len(),
            messages: messages.into_iter().map(|one| one.of(&row.id)).collect(),
        };
        Ok(self.store.notified(notified).await?)
    }

    /// Takes at most `most` messages whose time has come. The caller tries each and reports the result within
    /// [`LEASE`]; a message without a reported result is taken again. Messages of the channels in `busy`, or of recipients
    /// on channels, are left.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn take_messages(
        &self,
        most: usize,
        busy: Vec<String>,
    ) -> Result<Vec<Notification>, RecordError> {
        let now = self.now();
        let lease_end = now.after(LEASE);
        let taken = self.store.take_notifications(now, lease_end, most, busy);
        Ok(taken.await?)
    }

    /// Reports the result of a message, and audits it. Returns `false` if another sender has taken it since.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn tried(&self, message: &Notification, tried: Tried) -> Result<bool, RecordError> {
        let now = self.now();
        let taken = TakenMessage {
            id: &message.id,
            attempts: message.attempts,
        };
        let note = match &tried {
            Tried::Sent(_) => Some((Event::Notified, None)),
            Tried::Failed(why) => Some((Event::NotificationFailed, Some(why.clone()))),
            Tried::Later(..) | Tried::Skipped(_) => None,
        };
        if !self.store.finish_notification(taken, tried, now).await? {
            return Ok(false);
        }
        if let Some((event, reason)) = note {
            let entry = about(message, event, &Actor::timer(), now)
                .with_some(Member::Reason, reason.as_deref());
            self.note(entry).await?;
        }
        Ok(true)
    }

    /// Returns the messages of a question, the oldest first, with their recipients, results and reasons.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn messages_of(&self, question: &str) -> Result<Vec<Notification>, RecordError> {
        let filter = NotificationFilter::Question(question.to_owned());
        Ok(self.store.notifications(filter, 1_000).await?)
    }

    /// Returns messages that could not be sent, the newest first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn failed_messages(&self, most: usize) -> Result<Vec<Notification>, RecordError> {
        let failed = NotificationFilter::Failed;
        Ok(self.store.notifications(failed, most).await?)
    }

    /// Returns messages that could not be sent yet and are retried, the next attempt first: those about waiting
    /// questions, and about the latest `most` that ended.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn waiting_messages(&self, most: usize) -> Result<Vec<Notification>, RecordError> {
        let mut waiting = Vec::new();
        for filter in [Filter::Open, Filter::Ended] {
            for row in self.list(filter, Page::first(most)).await? {
                let messages = self.messages_of(&row.id).await?;
                waiting.extend(messages.into_iter().filter(is_tried_again));
            }
        }
        waiting.sort_by(|one, other| (one.due_at, &one.id).cmp(&(other.due_at, &other.id)));
        waiting.truncate(most);
        Ok(waiting)
    }

    /// Returns the times at which a person was sent a message since then, the earliest first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn notified_since(
        &self,
        person: &str,
        since: Timestamp,
    ) -> Result<Vec<Timestamp>, RecordError> {
        let filter = NotificationFilter::SentTo(person.to_owned(), since);
        let sent = self.store.notifications(filter, 1_000).await?;
        Ok(sent.into_iter().filter_map(|one| one.done_at).collect())
    }

    /// Returns the time at which a person's recipient was last reached, and the later message that could not be sent to
    /// it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn reached(
        &self,
        person: &str,
        recipient: &str,
    ) -> Result<LastMessages, RecordError> {
        let sent = NotificationFilter::Reached {
            person: person.to_owned(),
            recipient: recipient.to_owned(),
        };
        let sent = self.store.notifications(sent, 1).await?.pop();
        let at = sent.and_then(|sent| sent.done_at);
        let failed = NotificationFilter::NotReached(recipient.to_owned());
        let failed = self.store.notifications(failed, 1).await?.pop();
        let failed = failed.and_then(|failed| {
            let why = failed.why.unwrap_or_else(|| "unknown".to_owned());
            Some((failed.done_at?, why))
        });
        let failed = failed.filter(|(failed, _)| at.is_none_or(|at| at < *failed));
        Ok(LastMessages { at, failed })
    }

    /// Queues a failed message again, and audits the actor; returns `false` if it has not failed.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn send_again(&self, message: &Notification, by: &str) -> Result<bool, RecordError> {
        let now = self.now();
        let (id, until) = (message.id.clone(), now.after(AGAIN));
        if !self.store.notify_again(id, now, until).await? {
            return Ok(false);
        }
        self.note(about(
            message,
            Event::NotificationRetried,
            &Actor::read(by),
            now,
        ))
        .await?;
        Ok(true)
    }
}

/// Returns `true` for a message that failed and is retried.
fn is_tried_again(message: &Notification) -> bool {
    let is_open = matches!(
        message.state,
        NotificationState::Due | NotificationState::Sending
    );
    is_open && message.why.is_some()
}

/// Begins the audit entry of a message.
fn about(message: &Notification, event: Event, by: &Actor, now: Timestamp) -> EntryText {
    let person = message.person.as_deref().map(Actor::person);
    // Other recipients than groups have a person, or are no one's.
    let to_group = || match Actor::read(&message.recipient) {
        group @ Actor::Group(_) => Some(group),
        Actor::People(_) | Actor::SlackUser(_) | Actor::Other(_) => None,
    };
    EntryText::new(event, now)
        .with(Member::Id, message.question.as_str())
        .with(Member::By, by)
        .with(Member::Of, message.event.as_str())
        .with(Member::Channel, message.channel.as_str())
        .with_some(Member::To, person.or_else(to_group).as_ref())
}
