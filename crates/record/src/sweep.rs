//! The sweep: ends what is due, and reports changes made by other gateways' pages.

use crate::RecordEvent;
use mcp_elicit_core::lifecycle::{Lapse, Phase, Timestamp, Transition};
use mcp_elicit_core::question::Ending;
use std::collections::HashMap;
use std::time::Duration;

use super::row::RowChange;
use super::{Record, RecordError, Retention};
use crate::store::{Filter, Page, Purge, RecordStore as _, Row};

/// The number of due rows read in one round.
const MAX_DUE: usize = 10_000;
/// The number of open rows read at once.
const OPEN_AT_ONCE: usize = 1_000;

impl Record {
    /// Ends questions that are due, and those that no call can return for; erases expired data.
    pub async fn sweep(&self) -> Result<(), RecordError> {
        let due = self.store.due(self.now(), MAX_DUE).await?;
        if !due.is_empty() {
            self.lock_file.refresh().await;
        }
        for row in due {
            let now = self.now();
            let lifecycle = &row.lifecycle;
            if lifecycle.is_due(now) {
                self.end_due(&row, Transition::Expire).await?;
            } else if lifecycle.is_open() {
                if !row.can_be_found() && !self.is_waited_for(&row) {
                    // No call would receive an answer.
                    self.end_due(&row, Ending::ServerGone.transition()).await?;
                } else {
                    self.take_due_steps(&row).await?;
                }
            } else if row.has_retained_until(now) {
                self.drop_retained(&row).await?;
            } else if row.is_in_transit() {
                if !self.is_owner_running(&row) {
                    let why = "the gateway ended while the answer was sent";
                    self.doubt(&row.id, why).await?;
                }
            } else if !lifecycle.is_deliverable(now) {
                self.lapse(&row).await?;
            }
        }
        let Retention {
            answers,
            results,
            ended,
            audit: _,
        } = self.retention();
        let span = ended.max(answers).max(results);
        let before = self.now().as_millis().saturating_sub(millis(span));
        self.tidy_calls().await?;
        let ended = Purge::before(Timestamp::from_millis(before));
        self.store.purge(ended).await?;
        self.purge_audit_when_due().await?;
        self.add_up_when_due().await
    }

    /// Withdraws the open questions of callers that cannot return, identified by their names, because no call would
    /// receive an answer.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn withdraw_for(&self, is_gone: impl Fn(&str) -> bool) -> Result<(), RecordError> {
        let mut page = Page::first(OPEN_AT_ONCE);
        loop {
            let rows = self.list(Filter::Open, page).await?;
            for listed in rows.iter().filter(|row| is_gone(&row.body.principal)) {
                // A list does not contain complete rows.
                let row = self.find(&listed.id).await?;
                let Some(row) = row.filter(|row| row.lifecycle.is_open()) else {
                    continue;
                };
                self.end_due(&row, Ending::CallerGone.transition()).await?;
                let row = self.find(&listed.id).await?;
                let phase = row.map(|row| row.lifecycle.phase());
                if let Some(phase) = phase.filter(|phase| *phase == Phase::Withdrawn) {
                    self.notify_ended(&listed.id, phase);
                }
            }
            match rows.last() {
                Some(last) if rows.len() == OPEN_AT_ONCE => {
                    page = Page::after(last.id.clone(), OPEN_AT_ONCE);
                }
                _ => return Ok(()),
            }
        }
    }

    /// Returns `true` if a running gateway may still receive the result of the delivery that it began.
    fn is_owner_running(&self, row: &Row) -> bool {
        self.lock_file.is_mine(&row.owner) || self.lock_file.is_held(&row.owner)
    }

    /// Erases the value of an answer that no call requested in time.
    async fn lapse(&self, row: &Row) -> Result<(), RecordError> {
        if self.is_exclusive_elsewhere(row) {
            return Ok(());
        }
        let why = Lapse::Expired;
        let change = RowChange::step(Transition::Lapse { why });
        self.apply_to(row, &change).await?;
        Ok(())
    }

    /// Tells the sessions here about changes of their questions in other processes.
    pub async fn poll_others(&self) -> Result<(), RecordError> {
        if !self.check_presence().await? {
            return Ok(());
        }
        self.drop_ended_calls();
        // Kept until all was read: a failure must not lose a change.
        let has_changed = self.store.has_changed_elsewhere().await?;
        if !self.presence.has_unread(has_changed) {
            return Ok(());
        }
        self.load_calls().await?;
        let heard: HashMap<String, Option<u64>> = {
            let live = self.live();
            let each = live.iter().map(|(id, live)| (id.clone(), live.heard));
            each.collect()
        };
        let ids = heard.keys().cloned().collect();
        for (id, version) in self.store.versions(ids).await? {
            if heard.get(&id) == Some(&Some(version)) {
                continue;
            }
            let Some(row) = self.find(&id).await? else {
                continue;
            };
            let phase = row.lifecycle.phase();
            let is_left = row.owner.is_empty();
            if !is_left && !self.lock_file.is_mine(&row.owner) {
                // Taken over while this gateway stood still, or since its client came back to another: the call here would
                // wait for ever. An answer that a person has just given here counts for the call of the other gateway.
                self.write_held(&id).await?;
                self.notify_taken_over(&id);
                continue;
            }
            self.note_progress(&row);
            // An answer is reported until its delivery begins.
            if row.lifecycle.is_open()
                && let Some(live) = self.live().get_mut(&id)
            {
                live.heard = Some(row.lifecycle.version());
            }
            if phase.action().is_some() && row.lifecycle.delivered_at().is_none() {
                self.notify_answered(&id, None);
            } else if !phase.is_open() && phase.action().is_none() {
                self.notify_ended(&id, phase);
            }
        }
        self.presence.has_read();
        Ok(())
    }

    fn notify_taken_over(&self, id: &str) {
        let taken_over = {
            let mut live = self.live();
            let is_here = live.get(id).is_some_and(|live| !live.is_adopting);
            if is_here { live.remove(id) } else { None }
        };
        if let Some(live) = taken_over {
            let _the_session_is_gone = live.tell.send(RecordEvent::TakenOver {
                question: live.question,
            });
        }
    }

    fn notify_ended(&self, id: &str, phase: Phase) {
        let ending = if phase == Phase::TimedOut {
            Ending::TimedOut
        } else {
            Ending::CallEnded
        };
        if let Some(live) = self.live().remove(id) {
            let _ = live.tell.send(RecordEvent::Ended {
                question: live.question,
                ending,
            });
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
