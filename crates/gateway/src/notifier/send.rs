//! Sending due messages, each separately or several to one person in one mail.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_elicit_channels::timing::retry_pause;
use mcp_elicit_channels::{
    Channel as _, ChannelError, MessageRef, NotSentReason, Notice, NotificationId, QuestionEvent,
    Recipient,
};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_inbox::login::table::devices::id_of_recipient;
use mcp_elicit_record::RecordError;
use mcp_elicit_record::audit::{Details, Event as RecordEvent};
use mcp_elicit_record::outbox::NO_CHANNEL;
use mcp_elicit_record::store::outbox::{Notification, NotificationState, Tried};

use tokio::task::JoinSet;

use super::Notifier;
use super::content::read;

/// The most messages in transit on one channel. Each ends well within the lease.
const AT_ONCE: usize = 16;

/// The name of the channel that announces its rate limits.
const SLACK: &str = "slack";

/// The time after a pause of Slack during which it gets one message at a time.
const SLOW_FOR: Duration = Duration::from_secs(60);

/// The longest pause of Slack that is kept. A longer one would be for messages of which people need to know, and a mistake
/// of Slack, or of what is between.
const LONGEST_PAUSE: Duration = Duration::from_secs(10 * 60);

/// The reason if there is no inbox to link to yet.
const NO_INBOX: &str = "no-inbox";

/// Messages that are sent one after the other.
enum MessageGroup {
    /// Mails to one person, which may be combined.
    Mails(Vec<Notification>),
    /// Messages that are not.
    Each(Vec<Notification>),
}

/// A group that is in transit.
struct GroupInTransit {
    notifier: Arc<Notifier>,
    way: String,
}

impl Drop for GroupInTransit {
    fn drop(&mut self) {
        let ways = self.notifier.ways.lock();
        let mut ways = ways.unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = ways.get_mut(&self.way) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                ways.remove(&self.way);
            }
        }
    }
}

impl Notifier {
    /// Begins to send due messages. Returns `true` if there may be more. A channel gets its next messages when it has
    /// taken, or refused, those before, and waits for no other; each device of web push, which has a service of its own,
    /// is as a channel.
    pub(super) async fn send(
        self: &Arc<Self>,
        sending: &mut JoinSet<Result<(), RecordError>>,
    ) -> Result<bool, RecordError> {
        let taken = self.record.take_messages(AT_ONCE, self.busy()).await?;
        let is_full = taken.len() == AT_ONCE;
        for group in self.grouped(taken) {
            let this = Arc::clone(self);
            let way = self.in_transit(&group);
            sending.spawn(async move {
                let sent = match &group {
                    MessageGroup::Mails(mails) => this.send_mails(mails).await,
                    MessageGroup::Each(messages) => this.send_each(messages).await,
                };
                drop(way);
                sent
            });
        }
        Ok(is_full)
    }

    /// Divides messages into those that are sent one after the other.
    fn grouped(&self, mut taken: Vec<Notification>) -> Vec<MessageGroup> {
        taken.sort_by(|one, other| (one.at, &one.id).cmp(&(other.at, &other.id)));
        let is_slack_slow = self.slack_pause(SLOW_FOR).is_some();
        let mut mails: BTreeMap<String, Vec<Notification>> = BTreeMap::new();
        let mut others: BTreeMap<_, Vec<Notification>> = BTreeMap::new();
        for message in taken {
            let Notification {
                channel,
                question,
                recipient,
                ..
            } = &message;
            let recipient = recipient.clone();
            // Only mails that ask are ever combined. A recipient gets other messages about one question in order.
            let asks =
                QuestionEvent::from_name(&message.event).is_some_and(QuestionEvent::asks_to_act);
            let group = if channel == "mail" && asks {
                mails.entry(recipient).or_default()
            } else {
                // The first one that Slack refuses holds back the others.
                let in_turn = is_slack_slow && channel == SLACK;
                let own = (!in_turn).then(|| (recipient, question.clone()));
                others.entry((channel.clone(), own)).or_default()
            };
            group.push(message);
        }
        let mails = mails.into_values().map(MessageGroup::Mails);
        mails
            .chain(others.into_values().map(MessageGroup::Each))
            .collect()
    }

    /// Returns the channels, and devices, that have taken no decision on a message yet.
    fn busy(&self) -> Vec<String> {
        let ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        ways.keys().cloned().collect()
    }

    /// Counts a group as in transit until the result is dropped.
    fn in_transit(self: &Arc<Self>, group: &MessageGroup) -> Option<GroupInTransit> {
        let (MessageGroup::Mails(messages) | MessageGroup::Each(messages)) = group;
        let first = messages.first()?;
        let way = match id_of_recipient(&first.recipient) {
            Some(_) => first.recipient_on_channel(),
            None => first.channel.clone(),
        };
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        *ways.entry(way.clone()).or_default() += 1;
        drop(ways);
        Some(GroupInTransit {
            notifier: Arc::clone(self),
            way,
        })
    }

    async fn send_mails(&self, group: &[Notification]) -> Result<(), RecordError> {
        if self.is_digest(group).await? {
            return self.send_digest(group).await;
        }
        self.send_each(group).await
    }

    async fn send_each(&self, group: &[Notification]) -> Result<(), RecordError> {
        for message in group {
            if message.channel == SLACK
                && let Some(pause) = self.slack_pause(Duration::ZERO)
            {
                let tried = self.later(message, Some(pause), NotSentReason::TooMany.code());
                self.finish(message, tried).await?;
                continue;
            }
            let sent = match self.notice(message).await {
                Ok(notice) => self.send_one(message, &notice).await,
                Err(not_sent) => Err(not_sent),
            };
            let tried = match sent {
                Ok(sent) => Tried::Sent(sent.0),
                Err(NotSent::Tried(tried)) => tried,
                Err(NotSent::Record(error)) => return Err(error),
            };
            self.finish(message, tried).await?;
        }
        Ok(())
    }

    /// Sends several messages to one person as one mail.
    async fn send_digest(&self, group: &[Notification]) -> Result<(), RecordError> {
        let mut notices = Vec::new();
        for message in group {
            match self.notice(message).await {
                Ok(notice) => notices.push((message, notice)),
                Err(NotSent::Tried(tried)) => self.finish(message, tried).await?,
                Err(NotSent::Record(error)) => return Err(error),
            }
        }
        let Some((first, notice)) = notices.first() else {
            return Ok(());
        };
        let sent = match (&self.open().channels.mail, &notice.to) {
            (Some(mail), Recipient::Person { mail: Some(to), .. }) => {
                let all: Vec<_> = notices.iter().map(|(_, notice)| notice.clone()).collect();
                // The same messages taken again have the same id.
                let id = NotificationId::new(&format!("digest-{}", first.id));
                let id = id.unwrap_or_else(|| notice.id.clone());
                mail.send_digest(&id, to, &all).await
            }
            _ => Err(ChannelError::AddressGone),
        };
        for (message, _) in &notices {
            self.finish(message, self.result(message, sent.clone()))
                .await?;
        }
        Ok(())
    }

    async fn finish(&self, message: &Notification, tried: Tried) -> Result<(), RecordError> {
        let Notification {
            id,
            channel,
            question,
            ..
        } = message;
        match &tried {
            Tried::Failed(why) => {
                tracing::warn!(%id, %channel, %question, %why, "a message could not be sent");
            }
            Tried::Later(_, why) if message.attempts <= 1 => {
                tracing::warn!(%id, %channel, %question, %why, "a message could not be sent; it is tried again");
            }
            Tried::Later(..) | Tried::Sent(_) | Tried::Skipped(_) => {}
        }
        self.record.tried(message, tried).await?;
        Ok(())
    }

    /// Returns a message for channels.
    ///
    /// # Errors
    /// The result of a message that is not sent, or the record's error.
    async fn notice(&self, message: &Notification) -> Result<Notice, NotSent> {
        let now = self.record.now();
        let skipped = |why: &str| Err(NotSent::Tried(Tried::Skipped(why.to_owned())));
        let failed = |why: &str| Err(NotSent::Tried(Tried::Failed(why.to_owned())));
        if message.channel == NO_CHANNEL {
            return failed("no-address");
        }
        if now >= message.until {
            return failed(message.why.as_deref().unwrap_or("too-late"));
        }
        let Some(row) = self.record.find(&message.question).await? else {
            return skipped("gone");
        };
        let event = QuestionEvent::from_name(&message.event);
        let id = NotificationId::new(&message.id);
        let rules = self.teams.rules();
        let (Some(event), Some(id), Some(team)) = (event, id, row.team.as_deref()) else {
            return failed("unreadable");
        };
        let to = match id_of_recipient(&message.recipient) {
            Some(id) => {
                let found = self.devices.as_ref().and_then(|devices| devices.find(id));
                found
                    .map(|found| Recipient::Device(Box::new(found)))
                    .ok_or("device-gone")
            }
            None => read(&message.recipient, rules.people()).ok_or("not-in-file"),
        };
        let to = match to {
            Ok(to) => to,
            Err(why) => return skipped(why),
        };
        let is_over = !row.lifecycle.is_open();
        if is_over && event.asks_to_act() && to != Recipient::Endpoint {
            return skipped("ended");
        }
        let mut person = message.person.iter();
        if event.asks_to_act() && person.any(|person| team.quorum().has_handed_on(person)) {
            return skipped("handed-on");
        }
        let Some(link) = self.summaries.link(&row.id) else {
            return Err(NotSent::Tried(self.later(message, None, NO_INBOX)));
        };
        let Some(summary) = self.summaries.of(&row, link, now) else {
            return failed("unreadable");
        };
        Ok(Notice {
            id,
            event,
            at: message.at,
            to,
            summary: Arc::new(summary),
            reveal: team.reveal,
            waiting: None,
        })
    }

    /// Sends a message; if the channel can edit messages, an end updates those that asked.
    ///
    /// # Errors
    /// The channel's error as the result of the message, or the record's error.
    async fn send_one(
        &self,
        message: &Notification,
        notice: &Notice,
    ) -> Result<MessageRef, NotSent> {
        let not_sent = |error| NotSent::Tried(self.result(message, Err(error)));
        if let Some(id) = id_of_recipient(&message.recipient) {
            let Some(devices) = &self.devices else {
                return Err(not_sent(ChannelError::AddressGone));
            };
            // The end of a question replaces its earlier notification.
            let sent = devices.sender().send(notice).await;
            if sent == Err(ChannelError::AddressGone)
                && let Some(person) = devices.forget(id)
            {
                let details = Details {
                    person: Some(&person),
                    device: Some(id),
                    ..Details::by("push service")
                };
                let event = RecordEvent::DeviceRemoved;
                self.record.audit_details(event, &details).await?;
            }
            return sent.map_err(not_sent);
        }
        let Some(channel) = self.open().channels.named(&message.channel) else {
            return Err(not_sent(ChannelError::AddressGone));
        };
        if !notice.event.is_end() || message.channel != SLACK {
            return channel.send(notice).await.map_err(not_sent);
        }
        for asked in self.record.messages_of(&message.question).await? {
            let is_own = asked.channel == message.channel
                && asked.recipient == message.recipient
                && asked.id != message.id
                && asked.state == NotificationState::Sent;
            let sent = asked.message.filter(|_| is_own);
            if let Some(sent) = sent
                && let Err(error) = channel.update(&MessageRef(sent), notice).await
            {
                return Err(not_sent(error));
            }
        }
        Ok(MessageRef::default())
    }

    fn result(&self, message: &Notification, sent: Result<MessageRef, ChannelError>) -> Tried {
        match sent {
            Ok(sent) => Tried::Sent(sent.0),
            Err(ChannelError::Retry { after, why }) => {
                let after = match after {
                    Some(asked) if message.channel == SLACK => Some(bounded_pause(asked)),
                    after => after,
                };
                if let Some(pause) = after.filter(|_| message.channel == SLACK) {
                    let resumes = self.record.now().after(pause);
                    let mut known = self.slack_resumes();
                    *known = (*known).max(Some(resumes));
                }
                self.later(message, after, why.code())
            }
            Err(ChannelError::Permanent(why)) => Tried::Failed(why.code().to_owned()),
            Err(ChannelError::AddressGone) => Tried::Failed("address-gone".to_owned()),
        }
    }

    fn slack_resumes(&self) -> MutexGuard<'_, Option<Timestamp>> {
        self.slack_resumes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time until Slack has accepted messages again for `more`; `None` if it has, or has never refused one
    /// for now.
    fn slack_pause(&self, more: Duration) -> Option<Duration> {
        let end = (*self.slack_resumes())?.after(more);
        let left = end.since(self.record.now());
        (!left.is_zero()).then_some(left)
    }

    fn later(&self, message: &Notification, after: Option<Duration>, why: &str) -> Tried {
        let at: Timestamp = self
            .record
            .now()
            .after(retry_pause(message.attempts, random(), after));
        if at >= message.until {
            return Tried::Failed(why.to_owned());
        }
        Tried::Later(at, why.to_owned())
    }
}

/// The reason why a message was not sent.
enum NotSent {
    /// This is the result of the message.
    Tried(Tried),
    /// The record failed.
    Record(RecordError),
}

impl From<RecordError> for NotSent {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

/// Returns the pause of Slack that is kept, and warns if it asked for a longer one.
fn bounded_pause(asked: Duration) -> Duration {
    if asked > LONGEST_PAUSE {
        let (asked, kept) = (asked.as_secs(), LONGEST_PAUSE.as_secs());
        tracing::warn!(
            asked,
            kept,
            "Slack asks for a longer pause than is kept, in seconds"
        );
    }
    asked.min(LONGEST_PAUSE)
}

/// Returns a random number, so that gateways that failed together do not retry together.
#[expect(clippy::disallowed_methods, reason = "it spreads the tries")]
fn random() -> u64 {
    getrandom::u64().unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_of_slack_is_kept_for_ten_minutes_at_most() {
        let seconds = |asked| bounded_pause(Duration::from_secs(asked)).as_secs();
        assert_eq!([30, 600, 601, u64::MAX].map(seconds), [30, 600, 600, 600]);
    }
}
