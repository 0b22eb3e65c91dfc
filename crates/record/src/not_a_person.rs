//! Responses of clients that are not acts of a person: the question moves from the client's dialog to people, or the
//! audit says that the act is doubted.

use std::sync::Arc;

use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::question::CallSummary;

use super::row::RowChange;
use super::{Applied, Record, RecordError, Verdict, audit};

impl Record {
    /// Moves a question from its client's own dialog to people: it is listed as theirs, and no longer belongs to this
    /// gateway alone. `calls` are those that it may belong to, the likeliest first; empty if its call is known.
    ///
    /// [`Verdict::Late`] if it was answered elsewhere, or has ended.
    pub fn move_to_people(
        self: &Arc<Self>,
        id: &str,
        why: NotAPerson,
        calls: &[CallSummary],
    ) -> Applied<Verdict> {
        let candidates = match self.sealed_candidates(id, calls) {
            Ok(candidates) => candidates,
            Err(fault) => return Err(RecordError::from(fault)).into(),
        };
        let (record, id) = (self.clone(), id.to_owned());
        Applied::pending(async move {
            // People read it from the store, and others may change it from now on.
            record.share(&id)?;
            let change = RowChange::MoveToPeople { why, candidates };
            record.apply(&id, &change).await
        })
    }

    /// Adds to the audit that the client's act on this question is doubted. The act counts, because nobody else can be
    /// asked.
    pub fn doubt_act(self: &Arc<Self>, id: &str, why: NotAPerson) -> Applied<()> {
        let now = self.now();
        if let Some(known) = self.live().get_mut(id).and_then(|live| live.exclusive()) {
            let entry = audit::doubt_entry(&known.row, why, now);
            known.audit.push(entry);
            return Applied::Now(());
        }
        let (record, id) = (self.clone(), id.to_owned());
        Applied::pending(async move {
            match record.find(&id).await? {
                Some(row) => record.note(audit::EntryText::doubt(&row, why, now)).await,
                None => Ok(()),
            }
        })
    }
}
