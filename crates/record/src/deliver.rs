//! Delivery: answers are taken out for the server, all of a round or none, and only once; then the result is recorded.
//!
//! Taking an answer out marks its row as delivered before its first byte is sent, so that a kill never delivers it
//! twice. The audit records the delivery only when the transport reports it. Until then the value is kept: in the store
//! or, if it never was there, in this process ([`AnswerInTransit`]).

use std::sync::{Arc, MutexGuard, PoisonError};

use mcp_elicit_core::lifecycle::Transition;
use mcp_elicit_core::question::{result_json, with_reasons};
use mcp_elicit_core::wire::Action;
use rustc_hash::FxHashMap;

use super::commit::CommitEffect;
use super::known::KnownRow;
use super::row::{RowChange, SealedValues};
use super::{Applied, Durability, Record, RecordError, Verdict, associated_data, audit};
use crate::store::{Change, Crash, Row, Write};

/// The part of an answer in delivery that the store does not have.
#[derive(Clone)]
pub(super) struct AnswerInTransit {
    /// The person's answer, as JSON.
    pub(super) content: Option<String>,
    /// The call's arguments, sealed.
    pub(super) arguments: Option<Vec<u8>>,
    /// The audit entry to write when the server has accepted it.
    pub(super) delivered: String,
}

/// An answer that is taken out.
struct TakenOut {
    known: KnownRow,
    /// The `ElicitResult`, as JSON.
    reply: String,
    /// The person's action, if it is written together with the delivery.
    act: Option<Transition>,
    /// The values, if they are not written to the store.
    transit: Option<AnswerInTransit>,
}

impl TakenOut {
    fn change(&self) -> Change {
        Change {
            row: self.known.row.clone(),
            seen: self.known.written.unwrap_or_default(),
            audit: self.known.audit.clone(),
            // Values that were never written cannot be sent twice: a client waits with its request until the server has the
            // answer, and would lose the two together.
            survives: if self.transit.is_some() {
                Crash::Process
            } else {
                Crash::Machine
            },
        }
    }
}

impl Record {
    pub(super) fn in_transit(&self) -> MutexGuard<'_, FxHashMap<String, AnswerInTransit>> {
        self.in_transit
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes answers out for the server, and returns the `ElicitResult` of each as JSON. All or none, and only once:
    /// `None` if any is not available. The result of the delivery must be reported, and [`Record::write_behind`] called
    /// if the result is known at once.
    pub fn deliver(self: &Arc<Self>, ids: &[String]) -> Applied<Option<Vec<String>>> {
        if let Some(replies) = self.deliver_exclusive(ids) {
            return Applied::Now(Some(replies));
        }
        let (record, ids) = (self.clone(), ids.to_vec());
        Applied::pending(async move { record.deliver_written(&ids).await })
    }

    /// Takes out answers to questions that this gateway has exclusively. Their values are never written to the store,
    /// unless the server refuses them.
    fn deliver_exclusive(&self, ids: &[String]) -> Option<Vec<String>> {
        let mut live = self.live();
        let mut all = Vec::with_capacity(ids.len());
        for id in ids {
            let known = live.get_mut(id)?.exclusive()?;
            all.push(self.take(known.clone(), false).ok()??);
        }
        let mut replies = Vec::with_capacity(ids.len());
        for (id, taken) in ids.iter().zip(all) {
            if let Some(known) = live.get_mut(id).and_then(|live| live.known.as_mut()) {
                **known = taken.known;
            }
            if let Some(transit) = taken.transit {
                self.in_transit().insert(id.clone(), transit);
            }
            self.commit_behind(None, &[(id, CommitEffect::Delivered)], || ());
            replies.push(taken.reply);
        }
        Some(replies)
    }

    async fn deliver_written(&self, ids: &[String]) -> Result<Option<Vec<String>>, RecordError> {
        let mut turns = Vec::with_capacity(ids.len());
        for id in ids {
            turns.extend(self.turn(id).await);
        }
        let taken = self.take_all(ids).await?;
        if taken.is_some() || !ids.iter().any(|id| self.is_held(id)) {
            return Ok(taken);
        }
        // Another process has changed the row, or a part of the round is missing.
        for id in ids {
            self.write_held_in_turn(id).await?;
        }
        self.take_all(ids).await
    }

    async fn take_all(&self, ids: &[String]) -> Result<Option<Vec<String>>, RecordError> {
        let mut all = Vec::with_capacity(ids.len());
        for id in ids {
            self.share(id)?;
            let known = match self.answered(id) {
                Some(known) => Some(known),
                None => self.find(id).await?.map(KnownRow::stored),
            };
            let Some(known) = known else {
                return Ok(None);
            };
            // A gateway that stood still may find that its question was taken over, and another call waits for it.
            if !self.lock_file.is_mine(&known.row.owner) {
                return Ok(None);
            }
            let Some(taken) = self.take(known, self.is_promised(id))? else {
                return Ok(None);
            };
            all.push(taken);
        }
        let write = Write::Change(all.iter().map(TakenOut::change).collect());
        let mut effects = Vec::with_capacity(2 * ids.len());
        for (id, taken) in ids.iter().zip(&all) {
            let act = taken.act.as_ref().map(CommitEffect::from);
            effects.extend(
                act.into_iter()
                    .chain([CommitEffect::Delivered])
                    .map(|effect| (id.as_str(), effect)),
            );
        }
        let follow = || {
            let mut live = self.live();
            let mut replies = Vec::with_capacity(ids.len());
            for (id, taken) in ids.iter().zip(all) {
                if let Some(transit) = taken.transit {
                    self.in_transit().insert(id.clone(), transit);
                }
                if let Some(promise) = live.remove(id).and_then(|live| live.promise) {
                    let _the_person_has_left = promise.send(Ok(Verdict::Won));
                }
                replies.push(taken.reply);
            }
            replies
        };
        let made = self.commit(Some(write), Durability::WithDelivery, &effects, follow);
        match made.await {
            Err(RecordError::Store(source)) => Err(RecordError::DeliveryNotWritten {
                reopened: self.reopen(ids),
                source,
            }),
            made => made,
        }
    }

    /// Tells the people whose answers were to be written with the delivery that they do not count: they may answer again.
    /// Returns their questions. Other answers stay.
    fn reopen(&self, ids: &[String]) -> Vec<String> {
        let mut live = self.live();
        let mut reopened = Vec::new();
        for id in ids {
            let promised = live.get_mut(id).filter(|live| live.promise.is_some());
            if let Some(live) = promised {
                live.known = None;
                if let Some(promise) = live.promise.take() {
                    let _the_person_has_left = promise.send(Err(RecordError::NotWritten));
                }
                reopened.push(id.clone());
            }
        }
        reopened
    }

    /// Returns the known row if it has an answer, which another gateway's page may have given.
    fn answered(&self, id: &str) -> Option<KnownRow> {
        let live = self.live();
        let known = live.get(id)?.known.as_deref()?;
        let is_answered = known.row.lifecycle.phase().action().is_some();
        is_answered.then(|| known.clone())
    }

    fn is_promised(&self, id: &str) -> bool {
        self.live()
            .get(id)
            .is_some_and(|live| live.promise.is_some())
    }

    /// Takes the answer out of this row; `None` if there is none. If a person is told when it is written
    /// (`is_promised`), they may ask for the result after a kill: its values stay in the store until the result is
    /// known.
    fn take(
        &self,
        mut known: KnownRow,
        is_promised: bool,
    ) -> Result<Option<TakenOut>, RecordError> {
        let now = self.now();
        let deliver = RowChange::step(Transition::Deliver);
        let Some(action) = known.row.lifecycle.phase().action() else {
            return Ok(None);
        };
        if known.step(&deliver, now).is_err() {
            return Ok(None);
        }
        let row = &mut known.row;
        let (act, content) = match known.answer.take() {
            Some(answer) => (Some(answer.act), answer.content),
            None => (None, self.open_content(row)?),
        };
        let reply = self.reply(row, action, content.as_deref())?;
        let mut transit = None;
        if act.is_some() && is_promised {
            let sealed = content.map(|text| self.seal_content(&row.id, &text));
            row.content = sealed.transpose()?;
        } else if act.is_some() {
            transit = Some(AnswerInTransit {
                content,
                arguments: row.arguments.take(),
                delivered: audit::step_entry(audit::Event::Delivered, row, now),
            });
        }
        Ok(Some(TakenOut {
            known,
            reply,
            act,
            transit,
        }))
    }

    /// Returns the result for the server, or for the call that waits for approval.
    fn reply(
        &self,
        row: &Row,
        action: Action,
        content: Option<&str>,
    ) -> Result<String, RecordError> {
        if row.team.is_some() {
            let reasons = self.reasons_for_caller(row)?;
            return Ok(with_reasons(result_json(action, content), &reasons));
        }
        if action != Action::Decline {
            return Ok(result_json(action, content));
        }
        let reason = content.and_then(|reason| serde_json::from_str::<String>(reason).ok());
        let reasons: Vec<String> = reason.into_iter().collect();
        Ok(with_reasons(result_json(action, None), &reasons))
    }

    fn open_content(&self, row: &Row) -> Result<Option<String>, RecordError> {
        let data = associated_data(&row.id, "content");
        let sealed = row.content.as_deref();
        let content = sealed.map(|sealed| self.keys.encryption.open(&data, sealed));
        Ok(content.transpose()?)
    }

    /// Drops the values of answers that the server has accepted, and the arguments of their calls, with an audit entry.
    /// The entry is written behind if the values never were in the store: [`Record::write_behind`] must follow.
    pub fn confirm(self: &Arc<Self>, ids: &[String]) -> Applied<()> {
        if ids.iter().all(|id| self.in_transit().contains_key(id)) {
            for id in ids {
                self.confirm_in_transit(id);
            }
            return Applied::Now(());
        }
        let (record, ids) = (self.clone(), ids.to_vec());
        Applied::pending(async move {
            for id in &ids {
                if record.confirm_in_transit(id) {
                    record.hand_on(id, false);
                } else {
                    record.apply(id, &RowChange::Confirm).await?;
                }
            }
            Ok(())
        })
    }

    /// Confirms an answer whose values are not in the store; `false` if they are.
    fn confirm_in_transit(&self, id: &str) -> bool {
        let mut live = self.live();
        let Some(transit) = self.in_transit().remove(id) else {
            return false;
        };
        match live.get_mut(id).and_then(super::Live::exclusive) {
            // Earlier entries have not been written yet.
            Some(known) => known.audit.push(transit.delivered),
            None => self.commit_behind(Some(Write::Note(transit.delivered)), &[], || ()),
        }
        true
    }

    /// Records that the server refused these answers, with the reason in words for a person and a log. Each answer is
    /// kept for the same call made again; a second refusal, or one of an answer that no call can request, ends it.
    pub fn delivery_refused(self: &Arc<Self>, ids: &[String], reason: &str) -> Applied<()> {
        let (record, ids, reason) = (self.clone(), ids.to_vec(), reason.to_owned());
        Applied::pending(async move {
            for id in &ids {
                // The delivery is written first, if it was not yet.
                record.hand_on(id, true);
                let restored = record.values_in_transit(id)?;
                let why = reason.clone();
                let change = RowChange::Refuse { why, restored };
                record.apply(id, &change).await?;
                record.in_transit().remove(id);
            }
            Ok(())
        })
    }

    /// Records that it is unknown whether the server has these answers, with the reason in words for a person and a
    /// log. Their values are erased: none is sent again.
    pub fn delivery_in_doubt(self: &Arc<Self>, ids: &[String], reason: &str) -> Applied<()> {
        let (record, ids, reason) = (self.clone(), ids.to_vec(), reason.to_owned());
        Applied::pending(async move {
            for id in &ids {
                record.doubt(id, &reason).await?;
            }
            Ok(())
        })
    }

    pub(super) async fn doubt(&self, id: &str, reason: &str) -> Result<(), RecordError> {
        self.hand_on(id, true);
        let why = reason.to_owned();
        self.apply(id, &RowChange::Doubt { why }).await?;
        self.in_transit().remove(id);
        Ok(())
    }

    /// Returns the sealed values of an answer in delivery that the store does not have.
    fn values_in_transit(&self, id: &str) -> Result<Option<SealedValues>, RecordError> {
        let Some(transit) = self.in_transit().get(id).cloned() else {
            return Ok(None);
        };
        let content = transit.content.as_deref();
        let content = content
            .map(|text| self.seal_content(id, text))
            .transpose()?;
        let arguments = transit.arguments;
        Ok(Some(SealedValues { content, arguments }))
    }
}
