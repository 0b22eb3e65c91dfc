//! Queued messages to people, in memory.

use std::collections::BTreeMap;

use mcp_elicit_core::lifecycle::Timestamp;

use crate::store::outbox::{
    Notification, NotificationFilter, NotificationState, Notified, TakenMessage, Tried,
};
use crate::store::{Purge, Row};

/// The messages, and their questions.
#[derive(Default)]
pub(super) struct Outbox {
    messages: BTreeMap<String, Notification>,
    /// For each question of a rule, the number of events that people were told of, and the version that may have more.
    telling: BTreeMap<String, (usize, Option<u64>)>,
}

impl Outbox {
    /// Records a row as it is written.
    pub(super) fn note(&mut self, row: &Row) {
        if row.team.is_some() {
            let telling = self.telling.entry(row.id.clone()).or_default();
            telling.1 = Some(row.lifecycle.version());
        }
    }

    pub(super) fn untold(&self) -> impl Iterator<Item = (&String, usize)> {
        let untold = self
            .telling
            .iter()
            .filter(|(_, (_, untold))| untold.is_some());
        untold.map(|(id, (told, _))| (id, *told))
    }

    pub(super) fn notified(&mut self, notified: Notified) {
        if let Some((count, untold)) = self.telling.get_mut(&notified.question) {
            // A slower planner of another gateway may know fewer events.
            *count = notified.told.max(*count);
            *untold = untold.filter(|version| *version != notified.version);
        }
        for one in notified.messages {
            let entry = self.messages.entry(one.id.clone());
            entry.or_insert_with(|| Notification {
                state: NotificationState::Due,
                attempts: 0,
                done_at: None,
                message: None,
                why: None,
                ..one
            });
        }
    }

    pub(super) fn take(
        &mut self,
        now: Timestamp,
        lease_end: Timestamp,
        most: usize,
        busy: &[String],
    ) -> Vec<Notification> {
        let is_due = |one: &&mut Notification| {
            let waits = [NotificationState::Due, NotificationState::Sending];
            let is_busy = |key: &String| *key == one.channel || *key == one.recipient_on_channel();
            waits.contains(&one.state) && one.due_at <= now && !busy.iter().any(is_busy)
        };
        let mut due: Vec<_> = self.messages.values_mut().filter(is_due).collect();
        due.sort_by_key(|one| one.due_at);
        due.truncate(most);
        let mut taken = Vec::new();
        for one in due {
            one.state = NotificationState::Sending;
            one.attempts += 1;
            one.due_at = lease_end;
            taken.push(one.clone());
        }
        taken.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        taken
    }

    pub(super) fn finish(
        &mut self,
        taken: TakenMessage<'_>,
        tried: &Tried,
        now: Timestamp,
    ) -> bool {
        let held = |one: &&mut Notification| {
            one.attempts == taken.attempts && one.state == NotificationState::Sending
        };
        let Some(one) = self.messages.get_mut(taken.id).filter(held) else {
            return false;
        };
        let (state, why, message) = tried.parts();
        one.state = state;
        one.why = why.map(str::to_owned);
        one.message = message.map(str::to_owned);
        match tried {
            Tried::Later(at, _) => one.due_at = *at,
            _ => one.done_at = Some(now),
        }
        true
    }

    pub(super) fn again(&mut self, id: &str, now: Timestamp, until: Timestamp) -> bool {
        let failed = |one: &&mut Notification| one.state == NotificationState::Failed;
        let Some(one) = self.messages.get_mut(id).filter(failed) else {
            return false;
        };
        one.state = NotificationState::Due;
        one.due_at = now;
        one.until = one.until.max(until);
        one.done_at = None;
        true
    }

    pub(super) fn list(&self, filter: &NotificationFilter, most: usize) -> Vec<Notification> {
        let is_wanted = |one: &&Notification| match filter {
            NotificationFilter::Question(id) => one.question == *id,
            NotificationFilter::Failed => one.state == NotificationState::Failed,
            NotificationFilter::SentTo(person, since) => {
                one.state == NotificationState::Sent
                    && one.person.as_ref() == Some(person)
                    && one.done_at.is_some_and(|at| at >= *since)
            }
            NotificationFilter::Reached { person, recipient } => {
                one.state == NotificationState::Sent
                    && one.person.as_ref() == Some(person)
                    && one.recipient == *recipient
            }
            NotificationFilter::NotReached(recipient) => {
                one.state == NotificationState::Failed && one.recipient == *recipient
            }
        };
        let mut found: Vec<_> = self.messages.values().filter(is_wanted).cloned().collect();
        match filter {
            NotificationFilter::Question(_) => found.sort_by_key(|one| one.at),
            NotificationFilter::Failed
            | NotificationFilter::Reached { .. }
            | NotificationFilter::NotReached(_) => {
                found.sort_by_key(|one| std::cmp::Reverse(one.done_at));
            }
            NotificationFilter::SentTo(..) => found.sort_by_key(|one| one.done_at),
        }
        found.truncate(most);
        found
    }

    /// Deletes messages that need no further action: all old ones, or those of a caller's questions.
    pub(super) fn purge(&mut self, purge: &Purge, rows: &BTreeMap<String, Row>) {
        self.messages.retain(|_, one| {
            let is_old = one.done_at.is_some_and(|at| at < purge.before);
            let is_meant = purge.principal.as_ref().is_none_or(|of| {
                let row = rows.get(&one.question);
                row.is_some_and(|row| row.body.principal == *of)
            });
            !(is_old && is_meant)
        });
    }

    /// Forgets which events people were told of, for questions that are gone.
    pub(super) fn forget_without(&mut self, rows: &BTreeMap<String, Row>) {
        self.telling.retain(|id, _| rows.contains_key(id));
    }

    /// Returns the number of messages.
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }
}
