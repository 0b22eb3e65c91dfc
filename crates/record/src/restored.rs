//! A record that was restored from a backup. The gateway went on after the backup was made, so an answer that waits in
//! it may have been delivered since, a vote may have been counted, and a result may have been returned. None of them may
//! take effect a second time: people are asked again.

use mcp_elicit_core::lifecycle::{Lapse, Transition};

use super::row::RowChange;
use super::{Record, RecordError};
use crate::store::{Filter, Page, RecordStore as _, Row};

/// The number of open rows read at once.
const OPEN_AT_ONCE: usize = 1_000;

/// The reason for the end of a question whose votes or entered answers were restored.
const WHY: &str = "the record was restored from a backup, and people had acted on the question";

/// The contents of a restored record that were ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedAtRestore {
    /// Answers that were given and not delivered.
    pub answers: u64,
    /// Open questions on which people of a rule had acted.
    pub votes: u64,
    /// Results of calls that no client had fetched.
    pub results: u64,
    /// Approvals that were valid for a while.
    pub grants: u64,
}

impl Record {
    /// Ends everything in a restored record that could take effect a second time: answers that were given and not
    /// delivered, votes and entered answers, results of calls, and approvals that are valid for a while. Other open
    /// questions stay open. No gateway may run on the record.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn end_restored(&self) -> Result<EndedAtRestore, RecordError> {
        let mut ended = EndedAtRestore::default();
        for binding in self.store.left_over().await? {
            // Each row that is changed leaves the result, which has a limit.
            loop {
                let rows = self.store.by_binding(binding.clone()).await?;
                let mut changed = false;
                for row in &rows {
                    let acted = row.lifecycle.phase().action().is_some();
                    if acted && self.end_restored_row(row, lapse()).await? {
                        ended.answers += 1;
                        changed = true;
                    }
                }
                if !changed {
                    break;
                }
            }
        }
        ended.votes = self.end_voted().await?;
        for call in self.store.calls(None, self.now()).await? {
            if call.running.is_some() {
                // Its gateway ended with the record that was saved.
                self.store.end_call(call.id).await?;
                continue;
            }
            ended.results += u64::from(self.store.take_call(call.id).await?.is_some());
        }
        ended.grants = self.grants().await?.len() as u64;
        let grants = self.store.grants(self.now()).await?;
        let keys = grants.into_iter().map(|grant| grant.key).collect();
        self.store.drop_grants(keys).await?;
        Ok(ended)
    }

    /// Ends the open questions on which people of a rule had acted.
    async fn end_voted(&self) -> Result<u64, RecordError> {
        let mut ended = 0;
        let mut page = Page::first(OPEN_AT_ONCE);
        loop {
            let rows = self.list(Filter::Open, page).await?;
            for listed in rows.iter().filter(|row| has_acts(row)) {
                // A list does not contain complete rows.
                if let Some(row) = self.find(&listed.id).await? {
                    let why = WHY.to_owned();
                    let change = RowChange::step(Transition::Fail { why });
                    ended += u64::from(self.end_restored_row(&row, change).await?);
                }
            }
            match rows.last() {
                Some(last) if rows.len() == OPEN_AT_ONCE => {
                    page = Page::after(last.id.clone(), OPEN_AT_ONCE);
                }
                _ => return Ok(ended),
            }
        }
    }

    /// Changes a row that only this process uses; returns `false` if it was not changed.
    async fn end_restored_row(&self, row: &Row, change: RowChange) -> Result<bool, RecordError> {
        let before = row.lifecycle.version();
        self.apply_to(row, &change).await?;
        let now = self.find(&row.id).await?;
        Ok(now.is_some_and(|now| now.lifecycle.version() > before))
    }
}

fn lapse() -> RowChange {
    RowChange::step(Transition::Lapse {
        why: Lapse::Restored,
    })
}

/// Returns `true` if people of a rule have voted on the question, or entered an answer.
fn has_acts(row: &Row) -> bool {
    row.team.as_deref().is_some_and(super::team::Team::has_acts)
}
