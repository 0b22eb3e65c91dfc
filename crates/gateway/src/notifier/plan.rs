//! The messages created from a question's events: recipients, channels and times.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use mcp_elicit_channels::addressing::{Addressed, MessageTarget, targets};
use mcp_elicit_channels::push::Subscription;
use mcp_elicit_channels::timing::{
    DigestTiming, HOURLY_LIMIT, Preferences, SentMessages, Timing, latest, timing,
};
use mcp_elicit_channels::{QuestionEvent, Recipient};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_inbox::login::table::devices::{id_of_recipient, recipient as device_recipient};
use mcp_elicit_policy::People;
use mcp_elicit_policy::people::Addressee;
use mcp_elicit_record::RecordError;
use mcp_elicit_record::audit::Actor;
use mcp_elicit_record::outbox::{NO_CHANNEL, NewMessage};
use mcp_elicit_record::store::Row;
use mcp_elicit_record::store::outbox::{Notification, NotificationState};
use mcp_elicit_record::timeline::TimelineEvent;

use super::Notifier;
use super::content::{event_of, read, written};
use super::unreached::{groups_without_members, tells_people, unreached};

/// The number of questions checked in one round.
const ROWS: usize = 100;
/// The time during which the end of a question is reported.
const END_SPAN: Duration = Duration::from_secs(24 * 60 * 60);
/// The time during which webhooks are retried.
const WEBHOOK_SPAN: Duration = Duration::from_secs(72 * 60 * 60);
/// The time during which a question without a deadline is reported.
const USUAL: Duration = Duration::from_secs(24 * 60 * 60);

impl Notifier {
    /// Creates the messages for events since the last round. Returns `true` if there may be more.
    pub(super) async fn plan(&self) -> Result<bool, RecordError> {
        let untold = self.record.untold(ROWS).await?;
        let is_full = untold.len() == ROWS;
        for (row, told) in untold {
            let messages = self.messages(&row, told).await?;
            self.record.tell(&row, messages).await?;
        }
        Ok(is_full)
    }

    async fn messages(&self, row: &Row, told: usize) -> Result<Vec<NewMessage>, RecordError> {
        let Some(team) = row.team.as_deref() else {
            return Ok(Vec::new());
        };
        let directory = self.summaries.people_now();
        let people = directory.people_with_members();
        let people = &*people;
        let timeline = row.timeline();
        let open = self.open();
        let quorum = team.quorum();
        let caller = team.caller.person.as_deref();
        // The people who are not asked, or no longer.
        let mut except = quorum.votes().to_vec();
        except.extend(
            caller
                .filter(|_| quorum.excludes_caller())
                .map(str::to_owned),
        );
        except.extend(quorum.handed_on().into_iter().map(str::to_owned));
        let mut messages = Vec::new();
        for (number, happened) in timeline.iter().enumerate().skip(told) {
            let event = event_of(happened.kind);
            let to = asked_by(happened, row, &timeline);
            let addressed = Addressed {
                to: &to,
                caller,
                except: &except,
            };
            // The names of devices and of their people, by subscription.
            let devices = RefCell::new(Vec::new());
            let mut found = targets(event, addressed, people, &open.tables, &|person| {
                self.devices_of(person, &devices)
            });
            if !row.lifecycle.is_open() && event.asks_to_act() {
                // It is over: only programs are told about its history.
                found.retain(|target| target.to == Recipient::Endpoint);
            }
            let devices = devices.into_inner();
            let untold = self.untold_people(row, event, addressed, people, &found, &devices);
            let mut found: Vec<_> = found
                .into_iter()
                .filter_map(|target| OutgoingMessage::new(target, &devices))
                .collect();
            found.extend(untold);
            if event.is_end() {
                found.extend(self.asked_before(row, people).await?);
            }
            for target in found {
                messages.push(self.message(row, number, happened, event, target).await?);
            }
        }
        Ok(messages)
    }

    /// Returns messages to asked people whom no channel reaches: each fails, so that the record says that they were not
    /// told.
    fn untold_people(
        &self,
        row: &Row,
        event: QuestionEvent,
        addressed: Addressed<'_>,
        people: &People,
        found: &[MessageTarget],
        devices: &[(Subscription, DeviceName)],
    ) -> Vec<OutgoingMessage> {
        let is_asked = row.lifecycle.is_open() && event.asks_to_act();
        if !is_asked || !tells_people(&self.open().tables) {
            return Vec::new();
        }
        let with_devices = devices.iter().map(|(_, name)| name.person.as_str());
        let untold = unreached(addressed, people, found, &with_devices.collect());
        let messages = untold.into_iter().filter_map(|name| {
            let person = name.clone();
            Some(OutgoingMessage {
                channel: NO_CHANNEL.to_owned(),
                recipient: written(&Recipient::Person { name, mail: None })?,
                person: Some(person),
            })
        });
        // A group by a claim, of which nobody has logged in yet.
        let groups = groups_without_members(addressed.to, people, found);
        let groups = groups.into_iter().filter_map(|name| {
            Some(OutgoingMessage {
                channel: NO_CHANNEL.to_owned(),
                recipient: written(&Recipient::Group(name))?,
                person: None,
            })
        });
        messages.chain(groups).collect()
    }

    /// Returns the devices of a person, and records the names of each.
    fn devices_of(
        &self,
        person: &str,
        known: &RefCell<Vec<(Subscription, DeviceName)>>,
    ) -> Vec<Subscription> {
        let found = self.devices.iter().flat_map(|devices| devices.of(person));
        let found = found.map(|(id, subscription)| {
            let person = person.to_owned();
            let name = DeviceName { id, person };
            known.borrow_mut().push((subscription.clone(), name));
            subscription
        });
        found.collect()
    }

    async fn message(
        &self,
        row: &Row,
        number: usize,
        happened: &TimelineEvent,
        event: QuestionEvent,
        target: OutgoingMessage,
    ) -> Result<NewMessage, RecordError> {
        let now = self.record.now();
        let OutgoingMessage {
            channel,
            recipient,
            person,
        } = target;
        let asked = row.lifecycle.asked_at();
        let until = if recipient == "endpoint" {
            happened.at.after(WEBHOOK_SPAN)
        } else if event.is_end() {
            happened.at.after(END_SPAN)
        } else {
            let deadline = row.lifecycle.deadline();
            deadline.unwrap_or_else(|| asked.after(USUAL))
        };
        let due_at = match &person {
            Some(person) if channel != NO_CHANNEL => {
                let latest = event.asks_to_act().then(|| latest(now, until));
                self.due(person, event, &channel, now, latest).await?
            }
            Some(_) | None => now,
        };
        Ok(NewMessage {
            number,
            event: event.name().to_owned(),
            at: happened.at,
            channel,
            recipient,
            person,
            due_at,
            until,
        })
    }

    /// Returns the time of a message to a person, by quiet hours, digest and hourly limit, which delay it until
    /// `latest` at most.
    async fn due(
        &self,
        person: &str,
        event: QuestionEvent,
        channel: &str,
        now: Timestamp,
        latest: Option<Timestamp>,
    ) -> Result<Timestamp, RecordError> {
        let rules = self.teams.rules();
        let Some(entry) = rules.people().people.get(person) else {
            return Ok(now);
        };
        let preferences = Preferences::from_entry(entry, &self.open().zone);
        let recent = self.record.notified_since(person, hour_before(now)).await?;
        let sent = SentMessages {
            recent: &recent,
            // Messages of the same period join the same digest.
            first_in_digest: match preferences.digest {
                DigestTiming::Every(span) => Some(start_of(span, now)),
                DigestTiming::Off | DigestTiming::Daily(_) => None,
            },
            latest,
        };
        Ok(
            match timing(&preferences, event, channel == "mail", now, sent) {
                Timing::Now => now,
                Timing::At(at) | Timing::Digest(at) => at,
            },
        )
    }

    /// Returns the recipients who were asked by a message, on channels that report an end.
    async fn asked_before(
        &self,
        row: &Row,
        people: &People,
    ) -> Result<Vec<OutgoingMessage>, RecordError> {
        let before = self.record.messages_of(&row.id).await?;
        let before = before.into_iter().filter(was_asked);
        let is_there = |message: &Notification| match id_of_recipient(&message.recipient) {
            Some(id) => self
                .devices
                .iter()
                .any(|devices| devices.find(id).is_some()),
            None => message.recipient != "endpoint" && read(&message.recipient, people).is_some(),
        };
        let distinct: BTreeSet<_> = before
            .filter(is_there)
            .map(|message| OutgoingMessage {
                channel: message.channel,
                recipient: message.recipient,
                person: message.person,
            })
            .collect();
        Ok(distinct.into_iter().collect())
    }

    /// Returns `true` for several messages to a person that go into one mail: they were delayed, or the person prefers
    /// it.
    pub(super) async fn is_digest(&self, messages: &[Notification]) -> Result<bool, RecordError> {
        let Some((person, first)) = messages
            .first()
            .and_then(|message| Some((message.person.as_deref()?, message)))
        else {
            return Ok(false);
        };
        let now = self.record.now();
        let has_waited = now.since(first.at) > WAITED;
        let rules = self.teams.rules();
        let entry = rules.people().people.get(person);
        let wants = entry.and_then(|entry| entry.digest.as_deref());
        let wants = wants.and_then(DigestTiming::parse).unwrap_or_default() != DigestTiming::Off;
        if messages.len() < 2 || has_waited || wants {
            return Ok(messages.len() > 1);
        }
        let recent = self.record.notified_since(person, hour_before(now)).await?;
        Ok(recent.len() + messages.len() > HOURLY_LIMIT)
    }
}

/// The names of a device and of its person.
struct DeviceName {
    id: String,
    person: String,
}

/// A message to be queued.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct OutgoingMessage {
    channel: String,
    /// In the record's form.
    recipient: String,
    /// The person, if it goes to one.
    person: Option<String>,
}

impl OutgoingMessage {
    /// `None` for a device without a name.
    fn new(target: MessageTarget, devices: &[(Subscription, DeviceName)]) -> Option<Self> {
        let MessageTarget { channel, to } = target;
        let (recipient, person) = match to {
            Recipient::Device(device) => {
                let mut known = devices.iter();
                let (_, name) = known.find(|(known, _)| *known == *device)?;
                (device_recipient(&name.id), Some(name.person.clone()))
            }
            to => {
                let recipient = written(&to)?;
                let person = match to {
                    Recipient::Person { name, .. } => Some(name),
                    Recipient::Group(_) | Recipient::Endpoint | Recipient::Device(_) => None,
                };
                (recipient, person)
            }
        };
        Some(Self {
            channel,
            recipient,
            person,
        })
    }
}

/// The delay after which a message may join a digest.
const WAITED: Duration = Duration::from_secs(60);

fn hour_before(now: Timestamp) -> Timestamp {
    Timestamp::from_millis(now.as_millis().saturating_sub(3_600_000))
}

fn start_of(span: Duration, now: Timestamp) -> Timestamp {
    let span = u64::try_from(span.as_millis()).unwrap_or(u64::MAX).max(1);
    Timestamp::from_millis(now.as_millis() / span * span)
}

/// Returns `true` for a message that asks, and was or will be sent.
fn was_asked(message: &Notification) -> bool {
    let event = QuestionEvent::from_name(&message.event);
    event.is_some_and(QuestionEvent::asks_to_act)
        && message.channel != NO_CHANNEL
        && matches!(
            message.state,
            NotificationState::Sent | NotificationState::Sending
        )
}

/// Returns the people whom an event asks.
fn asked_by(happened: &TimelineEvent, row: &Row, timeline: &[TimelineEvent]) -> Vec<Addressee> {
    let Some(team) = row.team.as_deref() else {
        return Vec::new();
    };
    let quorum = team.quorum();
    let all = quorum.addressees().iter().chain(quorum.delegates());
    match event_of(happened.kind) {
        QuestionEvent::Asked => {
            // People who were added later are told by the event that added them.
            let later: BTreeSet<_> = timeline
                .iter()
                .filter_map(|event| event.to.as_ref()?.addressee())
                .collect();
            let first = quorum.addressees().iter();
            first.filter(|to| !later.contains(to)).cloned().collect()
        }
        QuestionEvent::Escalated | QuestionEvent::Delegated => {
            let added = happened.to.as_ref().and_then(Actor::addressee);
            all.filter(|to| Some(*to) == added.as_ref())
                .take(1)
                .cloned()
                .collect()
        }
        event if event.asks_to_act() => all.cloned().collect(),
        _ => Vec::new(),
    }
}
