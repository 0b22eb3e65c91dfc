//! The delivery of an answer that was taken out: the server accepted it, refused it, or nobody can say.
//!
//! Taking an answer out marks its row as delivered before its first byte is sent, so that a kill never delivers it twice. What
//! the transport reports afterwards comes here, and only then does the audit say that it was delivered. Until then the value is
//! kept: in the store, or, where it never was there, in this process ([`InTransit`]).

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

use mcp_elicit_core::lifecycle::{Delivery, Lapse, Transition};

use super::{Live, Record, RecordError, TRIES, associated_data, audit};
use crate::store::{Change, Durability, Row, Store as _, Write};

/// The part of an answer on its way to the server that the store does not have.
#[derive(Clone)]
pub(super) struct InTransit {
    /// The person's answer, JSON.
    pub(super) content: Option<String>,
    /// The call's arguments, sealed.
    pub(super) arguments: Option<Vec<u8>>,
    /// The audit entry for when the server has accepted it.
    pub(super) delivered: String,
}

/// A delivery that failed, which decides if the answer is kept.
enum Failure<'a> {
    /// The server refused the answer: it is kept, for the same call made again.
    Refused { reason: &'a str },
    /// The answer may have reached the server: nothing is kept.
    InDoubt { reason: &'a str },
}

impl Record {
    pub(super) fn in_transit(&self) -> MutexGuard<'_, HashMap<String, InTransit>> {
        self.in_transit
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the values of answers that the server has accepted and that never were in the store; the audit says so, written
    /// behind. Returns `true` when these were all, and [`Record::write_behind`] is to follow; else [`Record::confirm`].
    pub fn confirm_in_transit(&self, ids: &[String]) -> bool {
        let mut live = self.live();
        let mut in_transit = self.in_transit();
        if !ids.iter().all(|id| in_transit.contains_key(id)) {
            return false;
        }
        for id in ids {
            let Some(transit) = in_transit.remove(id) else {
                continue;
            };
            match live.get_mut(id).and_then(Live::behind_mut) {
                // What came before is not handed on yet.
                Some(noted) => noted.audit.push(transit.delivered),
                None => self.store.queue_behind(Write::Note(transit.delivered)),
            }
        }
        true
    }

    /// Drops the values of answers that the server has accepted, and the arguments of their calls. The audit says so.
    pub async fn confirm(&self, ids: &[String]) -> Result<(), RecordError> {
        for id in ids {
            if self.in_transit().contains_key(id) {
                self.confirm_in_transit(std::slice::from_ref(id));
                self.write_behind(id)?;
                continue;
            }
            for _ in 0..TRIES {
                let Some(row) = self.find(id).await? else {
                    break;
                };
                if row.lifecycle.delivery() != Some(Delivery::Delivered) {
                    // It may be asked again already.
                    break;
                }
                let seen = row.lifecycle.version();
                let row = Row {
                    lifecycle: row.lifecycle.renewed(),
                    arguments: None,
                    content: None,
                    ..row
                };
                let change = Change {
                    audit: vec![audit::entry("delivered", &row, self.now())],
                    row,
                    seen,
                    durability: Durability::Committed,
                };
                if self.store.change(vec![change]).await? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Records that the server refused these answers, for this reason in words for a person and a log. Each answer is kept
    /// for the same call made again; the second refusal, and one of an answer that no call can come for, ends it.
    pub async fn delivery_refused(&self, ids: &[String], reason: &str) -> Result<(), RecordError> {
        for id in ids {
            self.delivery_failed(id, &Failure::Refused { reason })
                .await?;
        }
        Ok(())
    }

    /// Records that nobody can say whether the server has these answers, for this reason in words for a person and a log. Their values are erased: none is sent again.
    pub async fn delivery_in_doubt(&self, ids: &[String], reason: &str) -> Result<(), RecordError> {
        for id in ids {
            self.delivery_failed(id, &Failure::InDoubt { reason })
                .await?;
        }
        Ok(())
    }

    async fn delivery_failed(&self, id: &str, failure: &Failure<'_>) -> Result<(), RecordError> {
        // What was delivered without being written first is written now.
        self.hand_on_behind(id, true)?;
        let transit = self.in_transit().get(id).cloned();
        for _ in 0..TRIES {
            let Some(row) = self.find(id).await? else {
                break;
            };
            let seen = row.lifecycle.version();
            let Some((next, audit)) = self.after_failure(row, failure, transit.as_ref())? else {
                break;
            };
            // Known to be there before it is: the same call may come at once.
            self.presence.may_hold(&next.binding);
            if self.put(next, seen, audit).await? {
                self.in_transit().remove(id);
                self.changed();
                return Ok(());
            }
        }
        self.in_transit().remove(id);
        Ok(())
    }

    /// Returns the row as it is after its delivery failed, and what the audit says; `None` where the answer is not on its
    /// way.
    fn after_failure(
        &self,
        row: Row,
        failure: &Failure<'_>,
        transit: Option<&InTransit>,
    ) -> Result<Option<(Row, Vec<String>)>, RecordError> {
        let now = self.now();
        let (step, event) = match failure {
            Failure::Refused { reason } => {
                let why = (*reason).to_owned();
                (Transition::Refuse { why }, "delivery-failed")
            }
            Failure::InDoubt { reason } => {
                let why = (*reason).to_owned();
                (Transition::Doubt { why }, "in-doubt")
            }
        };
        let Ok(lifecycle) = row.lifecycle.step(&step, now) else {
            return Ok(None);
        };
        let mut next = Row {
            lifecycle,
            exclusive: false,
            ..row
        };
        let mut audit = vec![audit::entry(event, &next, now)];
        if next.lifecycle.delivery() == Some(Delivery::Failed) && !next.can_be_found() {
            let why = Lapse::NoCall;
            if let Ok(lapsed) = next.lifecycle.step(&Transition::Lapse { why }, now) {
                next.lifecycle = lapsed;
            }
        }
        match next.lifecycle.delivery() {
            Some(Delivery::Failed) => {
                if let Some(transit) = transit {
                    let sealed = |text: &String| {
                        self.keys
                            .encryption
                            .seal(&associated_data(&next.id, "content"), text)
                    };
                    next.content = transit.content.as_ref().map(sealed).transpose()?;
                    next.arguments.clone_from(&transit.arguments);
                }
            }
            delivery => {
                next.content = None;
                next.arguments = None;
                if delivery == Some(Delivery::Lapsed) {
                    audit.push(audit::entry("lapsed", &next, now));
                }
            }
        }
        Ok(Some((next, audit)))
    }
}
