//! Rows known to this process: equal to the store's, or ahead of it.
//!
//! A question in a client's own dialog exists only as long as a connection of this process: a killed gateway loses the
//! call, the dialog and the question together. Its row is *exclusive*: the state here is authoritative, the store
//! follows in order through the writer, and other gateways do not touch it until it is [shared](Record::share). Any
//! other row is shared: an answer to it that is *held* here waits to be written together with its delivery, and the
//! store's compare-and-set decides about it.

use std::sync::Arc;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::{Timestamp, Transition};
use mcp_elicit_core::question::content_json;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::commit::CommitEffect;
use super::row::{Rejected, RowChange};
use super::{Applied, Durability, Record, RecordError, Verdict, associated_data};
use crate::store::{Change, Crash, Row, Write};
use crate::team::VoteProgress;
use crate::{RecordEvent, SessionKey};

/// The result of a held answer, for the person who gave it.
pub(super) type Promised = Result<Verdict, RecordError>;

/// A question that a call of this process waits for.
pub(super) struct Live {
    pub(super) question: SessionKey,
    pub(super) tell: mpsc::UnboundedSender<RecordEvent>,
    /// Its deduplication key ([`Row::binding`]).
    pub(super) binding: String,
    pub(super) known: Option<Box<KnownRow>>,
    /// The state of the vote, if a rule asks several people.
    pub(super) progress: Option<VoteProgress>,
    /// The person who is told once the held answer is written.
    pub(super) promise: Option<oneshot::Sender<Promised>>,
    /// The version of the row, still open, that was last read for changes of others.
    pub(super) heard: Option<u64>,
    /// `true` while the row may still be another gateway's.
    pub(super) is_adopting: bool,
    /// Locked by the code that writes an answer by itself, and by the code that delivers it.
    turn: Arc<Mutex<()>>,
}

impl Live {
    pub(super) fn new(
        question: SessionKey,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        binding: &str,
    ) -> Self {
        Self {
            question,
            tell: tell.clone(),
            binding: binding.to_owned(),
            known: None,
            progress: None,
            promise: None,
            heard: None,
            is_adopting: false,
            turn: Arc::default(),
        }
    }

    /// Returns the row if only this process may change it.
    pub(super) fn exclusive(&mut self) -> Option<&mut KnownRow> {
        self.known
            .as_deref_mut()
            .filter(|known| known.row.exclusive)
    }
}

/// A row as this process knows it.
#[derive(Clone)]
pub(super) struct KnownRow {
    pub(super) row: Row,
    /// The version that the store has, or that was last passed to the writer; `None` before the first.
    pub(super) written: Option<u64>,
    /// The audit entries of later events.
    pub(super) audit: Vec<String>,
    /// The person's answer, while the store does not have it and it was not delivered.
    pub(super) answer: Option<UnstoredAnswer>,
}

/// A person's answer that the store does not have.
#[derive(Clone)]
pub(super) struct UnstoredAnswer {
    pub(super) act: Transition,
    /// The content, JSON; for a decline, its reason as a JSON string.
    pub(super) content: Option<String>,
}

impl UnstoredAnswer {
    /// Creates an answer; the content of a decline is its reason.
    pub(super) fn new(outcome: &Outcome, by: &str, reason: Option<&str>) -> Self {
        let reason = reason.filter(|_| matches!(outcome, Outcome::Decline));
        let reason = reason.map(|reason| serde_json::Value::from(reason).to_string());
        Self {
            act: Transition::acted(outcome, by),
            content: content_json(outcome).or(reason),
        }
    }
}

impl KnownRow {
    /// Creates a row that equals the store's.
    pub(super) fn stored(row: Row) -> Self {
        Self {
            written: Some(row.lifecycle.version()),
            row,
            audit: Vec::new(),
            answer: None,
        }
    }

    /// Returns `true` if the row equals the store's, according to this process.
    pub(super) fn is_stored(&self) -> bool {
        self.answer.is_none() && self.written == Some(self.row.lifecycle.version())
    }

    /// Returns `true` if it has an answer that the store does not have, to a question that others may answer too.
    fn is_held(&self) -> bool {
        !self.row.exclusive && self.answer.is_some()
    }

    /// Makes a change in memory; returns `false` if nothing changed.
    pub(super) fn step(&mut self, change: &RowChange, now: Timestamp) -> Result<bool, Rejected> {
        let seen = self.row.lifecycle.version();
        let entries = self.row.make_step(change, now)?;
        self.audit.extend(entries);
        Ok(self.row.lifecycle.version() != seen)
    }

    /// Records a person's answer.
    pub(super) fn answer(
        &mut self,
        answer: &UnstoredAnswer,
        now: Timestamp,
    ) -> Result<(), Rejected> {
        self.step(&RowChange::step(answer.act.clone()), now)?;
        self.answer = Some(answer.clone());
        Ok(())
    }

    /// Returns the write of the changes that the store does not have; the write survives this crash.
    fn into_write(self, survives: Crash) -> Write {
        let Self {
            row,
            written,
            audit,
            ..
        } = self;
        match written {
            None => Write::Insert {
                row: Box::new(row),
                audit,
            },
            Some(seen) => Write::Change(vec![Change {
                row,
                seen,
                audit,
                survives,
            }]),
        }
    }
}

impl Record {
    /// Takes the row if it equals the store's, for the first change to it.
    pub(super) fn take_stored(&self, id: &str) -> Option<Row> {
        let mut live = self.live();
        let known = &mut live.get_mut(id)?.known;
        let stored = known.take_if(|known| known.is_stored() && !known.row.exclusive)?;
        Some(stored.row)
    }

    /// Keeps the written row of a client's dialog, for [`Self::take_stored`].
    pub(super) fn remember(&self, row: Row) {
        if row.is_at_client()
            && let Some(live) = self.live().get_mut(&row.id)
            && live.known.as_deref().is_none_or(KnownRow::is_stored)
        {
            live.known = Some(Box::new(KnownRow::stored(row)));
        }
    }

    /// Returns `true` if an answer is held here that waits to be written together with its delivery.
    pub(super) fn is_held(&self, id: &str) -> bool {
        let live = self.live();
        let known = live.get(id).and_then(|live| live.known.as_deref());
        known.is_some_and(KnownRow::is_held)
    }

    /// Waits for any running write or delivery of the answer to this question.
    pub(super) async fn turn(&self, id: &str) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        let turn = self.live().get(id)?.turn.clone();
        Some(turn.lock_owned().await)
    }

    /// Changes a question that this gateway has exclusively; `None` if it does not.
    pub(super) fn step_exclusive(
        &self,
        id: &str,
        transition: &Transition,
        answer: Option<&UnstoredAnswer>,
    ) -> Option<Verdict> {
        let now = self.now();
        let mut live = self.live();
        let known = live.get_mut(id)?.exclusive()?;
        let mut change = RowChange::step(transition.clone());
        let mut stepped = known.step(&change, now);
        let verdict = match &stepped {
            Ok(_) => {
                known.answer = answer.cloned();
                Verdict::Won
            }
            Err(rejected) => {
                if *rejected == Rejected::Late {
                    change = RowChange::step(Transition::Expire);
                    stepped = known.step(&change, now);
                }
                Verdict::Late(Box::new(known.row.clone()))
            }
        };
        drop(live);
        if stepped == Ok(true) {
            self.commit_behind(None, &[(id, CommitEffect::from(&change))], || ());
        }
        Some(verdict)
    }

    /// Writes changes of a question that were not written yet and that are not awaited: at once if this gateway has it
    /// exclusively. A held answer is written by itself.
    ///
    /// An answer to an exclusive question that waits for delivery is not written: written by itself and then delivered,
    /// it would be delivered again after a kill between the two. Nor is an answer in delivery, which is written
    /// together with its result.
    pub fn write_behind(self: &Arc<Self>, id: &str) -> Applied<()> {
        if !self.is_held(id) {
            self.hand_on(id, false);
            return Applied::Now(());
        }
        let (record, id) = (self.clone(), id.to_owned());
        Applied::pending(async move { record.write_held(&id).await })
    }

    /// Queues the changes of an exclusive question, and releases one that has ended. With `in_transit`, an answer in
    /// delivery is queued too.
    pub(super) fn hand_on(&self, id: &str, in_transit: bool) {
        let mut live = self.live();
        let Some(known) = live.get_mut(id).and_then(Live::exclusive) else {
            return;
        };
        if known.audit.is_empty()
            || known.answer.is_some()
            || !in_transit && self.in_transit().contains_key(id)
        {
            return;
        }
        // Under the lock, which keeps the order. It contains no value.
        let ahead = if known.row.lifecycle.is_open() {
            let open = known.clone();
            known.audit.clear();
            known.written = Some(known.row.lifecycle.version());
            Some(open)
        } else {
            live.remove(id)
                .and_then(|live| live.known.map(|known| *known))
        };
        if let Some(known) = ahead {
            let write = known.into_write(Crash::Process);
            self.commit_behind(Some(write), &[(id, CommitEffect::Changed)], || drop(live));
        }
    }

    /// Makes an exclusive question shared. An undelivered answer is written with it.
    pub(super) fn share(&self, id: &str) -> Result<(), RecordError> {
        let mut live = self.live();
        let Some(known) = live.get_mut(id).and_then(Live::exclusive) else {
            return Ok(());
        };
        let content = known
            .answer
            .as_ref()
            .and_then(|answer| answer.content.as_deref());
        let content = content
            .map(|text| self.seal_content(id, text))
            .transpose()?;
        known.row.content = content;
        known.row.exclusive = false;
        let mut shared = KnownRow::stored(known.row.clone());
        std::mem::swap(known, &mut shared);
        let lifecycle = &known.row.lifecycle;
        if lifecycle.is_open() || lifecycle.phase().action().is_some() {
            self.presence.may_hold(&known.row.binding);
        }
        // Content in the row is a person's waiting answer. An answer that was delivered in the same write is not in the
        // row.
        let survives = match known.row.content {
            Some(_) => Crash::Machine,
            None => Crash::Process,
        };
        self.commit_behind(Some(shared.into_write(survives)), &[], || ());
        Ok(())
    }

    /// Makes every exclusive question shared. Completes when they are written.
    pub(super) async fn share_all(&self) -> Result<(), RecordError> {
        let exclusive = |(id, live): (&String, &mut Live)| live.exclusive().map(|_| id.clone());
        let ids: Vec<String> = self.live().iter_mut().filter_map(exclusive).collect();
        for id in &ids {
            self.share(id)?;
            // Others may change it from now on.
            self.take_stored(id);
        }
        if ids.is_empty() {
            return Ok(());
        }
        self.flush().await
    }

    /// Returns the sealed content of an answer, for storage.
    pub(super) fn seal_content(&self, id: &str, text: &str) -> Result<Vec<u8>, RecordError> {
        let data = associated_data(id, "content");
        Ok(self.keys.encryption.seal(&data, text)?)
    }

    /// Writes a held answer by itself, if there is one.
    pub(super) async fn write_held(&self, id: &str) -> Result<(), RecordError> {
        let Some(_turn) = self.turn(id).await else {
            return Ok(());
        };
        self.write_held_in_turn(id).await
    }

    pub(super) async fn write_held_in_turn(&self, id: &str) -> Result<(), RecordError> {
        // The promise is this write's, also if the question does not wait here any more when it ends.
        let (held, promise) = {
            let mut live = self.live();
            let Some(live) = live.get_mut(id) else {
                return Ok(());
            };
            let held = live.known.clone().filter(|known| known.is_held());
            let Some(held) = held else {
                return Ok(());
            };
            (held, live.promise.take())
        };
        let written = self.write_answer(id, held).await;
        let (known, promised, done) = match written {
            Ok((verdict, row)) => {
                let row = row.filter(Row::is_at_client);
                let known = row.map(|row| Box::new(KnownRow::stored(row)));
                (Some(known), Ok(verdict), Ok(()))
            }
            Err(fault) => {
                // The person is told, and may answer again; a client's answer stays.
                let known = promise.is_some().then_some(None);
                (known, Err(RecordError::NotWritten), Err(fault))
            }
        };
        if let (Some(known), Some(live)) = (known, self.live().get_mut(id)) {
            live.known = known;
        }
        if let Some(promise) = promise {
            let _the_person_has_left = promise.send(promised);
        }
        done
    }

    /// Writes the answer to the known row, which is returned, or else to the row in the store.
    async fn write_answer(
        &self,
        id: &str,
        mut held: Box<KnownRow>,
    ) -> Result<(Verdict, Option<Row>), RecordError> {
        let Some(UnstoredAnswer { act, content }) = held.answer.take() else {
            return Ok((Verdict::Gone, None));
        };
        let content = content
            .map(|text| self.seal_content(id, &text))
            .transpose()?;
        held.row.content.clone_from(&content);
        let row = held.row.clone();
        let change = RowChange::Step {
            transition: act,
            content,
        };
        let write = held.into_write(Crash::Machine);
        let effects = [(id, CommitEffect::from(&change))];
        let made = self.commit(Some(write), Durability::BeforeSeen, &effects, || ());
        if made.await?.is_some() {
            return Ok((Verdict::Won, Some(row)));
        }
        Ok((self.apply(id, &change).await?, None))
    }

    /// Releases the questions of a session that is gone, for the same call made again. Completes when they are written;
    /// those that could not be written are released anyway, and the first error is returned.
    pub async fn release_session(
        &self,
        tell: &mpsc::UnboundedSender<RecordEvent>,
    ) -> Result<(), RecordError> {
        let own = |(id, live): (&String, &Live)| live.tell.same_channel(tell).then(|| id.clone());
        let mut done = Ok(());
        loop {
            let ids: Vec<String> = self.live().iter().filter_map(own).collect();
            if ids.is_empty() {
                break;
            }
            for id in ids {
                let shared = self.share(&id);
                let written = self.write_held(&id).await;
                done = done.and(shared).and(written);
                let live = self.live().remove(&id);
                if let Some(live) = live {
                    self.presence.may_hold(&live.binding);
                }
                done = done.and(self.leave(&id).await);
            }
        }
        let released = self.release_calls(tell).await;
        self.changed();
        done.and(released)
            .and(self.store.flush().await.map_err(Into::into))
    }
}
