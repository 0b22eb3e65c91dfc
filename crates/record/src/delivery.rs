//! The delivery of an answer that was taken out: the server accepted it, refused it, or nobody can say.
//!
//! Taking an answer out marks its row as delivered before its first byte is sent, so that a kill never delivers it twice. What
//! the transport reports afterwards comes here, and only then does the audit say that it was delivered. Until then the value is
//! kept: in the store, or, where it never was there, in this process ([`InTransit`]).

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

use super::row::{RowChange, Values};
use super::{Live, Record, RecordError, associated_data};
use crate::store::Write;

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
            self.apply(id, &RowChange::Confirm).await?;
        }
        Ok(())
    }

    /// Records that the server refused these answers, for this reason in words for a person and a log. Each answer is kept
    /// for the same call made again; the second refusal, and one of an answer that no call can come for, ends it.
    pub async fn delivery_refused(&self, ids: &[String], reason: &str) -> Result<(), RecordError> {
        for id in ids {
            let restored = self.take_back(id)?;
            let why = reason.to_owned();
            let change = RowChange::Refuse { why, restored };
            self.delivery_failed(id, &change).await?;
        }
        Ok(())
    }

    /// Records that nobody can say whether the server has these answers, for this reason in words for a person and a log. Their values are erased: none is sent again.
    pub async fn delivery_in_doubt(&self, ids: &[String], reason: &str) -> Result<(), RecordError> {
        for id in ids {
            self.hand_on_behind(id, true)?;
            let why = reason.to_owned();
            let change = RowChange::Doubt { why };
            self.delivery_failed(id, &change).await?;
        }
        Ok(())
    }

    /// Returns the values of a refused answer that the store does not have, sealed for it. The delivery that was not written yet is
    /// written first.
    fn take_back(&self, id: &str) -> Result<Option<Values>, RecordError> {
        self.hand_on_behind(id, true)?;
        let Some(transit) = self.in_transit().get(id).cloned() else {
            return Ok(None);
        };
        let seal = |text: &String| {
            self.keys
                .encryption
                .seal(&associated_data(id, "content"), text)
        };
        let content = transit.content.as_ref().map(seal).transpose()?;
        let arguments = transit.arguments;
        Ok(Some(Values { content, arguments }))
    }

    async fn delivery_failed(&self, id: &str, change: &RowChange) -> Result<(), RecordError> {
        self.apply(id, change).await?;
        self.in_transit().remove(id);
        Ok(())
    }
}
