//! The executor of changes of rows: the store's compare-and-set decides, so the first wins; then counters, drafts and watchers
//! follow.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_elicit_core::lifecycle::{Delivery, Transition};

use super::row::{Rejected, RowChange};
use super::{Record, RecordError, TRIES};
use crate::store::{Row, Store as _};

/// The number of waits for a gateway that has a question exclusively, and the length of each: it shares the question as soon as
/// it sees that another gateway runs.
const WAITS: usize = 30;
const WAIT: Duration = Duration::from_millis(100);

/// The result of a change.
pub(super) enum Applied {
    /// It is made, or there was nothing to change.
    Done,
    /// The row is past that.
    Rejected(Box<Row>),
    /// There is no such row.
    Gone,
}

/// The result of a change of a row as it was seen.
pub(super) enum Attempt {
    /// It is made, or there was nothing to change.
    Done,
    /// The question's time has run out, which its row does not say yet.
    Late,
    /// The row is past that.
    Over,
    /// Another change was first.
    Conflict,
}

impl Record {
    /// Changes the row of this id, read again as long as others are first.
    pub(super) async fn apply(&self, id: &str, change: &RowChange) -> Result<Applied, RecordError> {
        let mut tries = 0..TRIES;
        let mut waits = 0..WAITS;
        while tries.next().is_some() {
            let Some(row) = self.find_or_remembered(id).await? else {
                return Ok(Applied::Gone);
            };
            if self.is_exclusive_elsewhere(&row) {
                match (change, waits.next()) {
                    // That gateway knows by itself who has seen its questions.
                    (
                        RowChange::Step {
                            transition: Transition::Show,
                            ..
                        },
                        _,
                    ) => return Ok(Applied::Done),
                    (_, None) => break,
                    (_, Some(_)) => {
                        tries = 0..TRIES;
                        tokio::time::sleep(WAIT).await;
                        continue;
                    }
                }
            }
            match self.apply_to(&row, change).await? {
                Attempt::Done => return Ok(Applied::Done),
                Attempt::Over => return Ok(Applied::Rejected(Box::new(row))),
                Attempt::Late => self.end_due(&row, Transition::Expire).await?,
                Attempt::Conflict => {}
            }
        }
        Err(RecordError::Contended)
    }

    /// Changes the row where it still has the version that was seen.
    pub(super) async fn apply_to(
        &self,
        row: &Row,
        change: &RowChange,
    ) -> Result<Attempt, RecordError> {
        let stepped = match row.clone().step(change, self.now()) {
            Ok(stepped) if stepped.is_changed() => stepped,
            Ok(_) => return Ok(Attempt::Done),
            Err(Rejected::Late) => return Ok(Attempt::Late),
            Err(Rejected::Over) => return Ok(Attempt::Over),
        };
        let next = stepped.row.clone();
        if next.lifecycle.delivery() == Some(Delivery::Failed) {
            // Known to be there before it is: the same call may come at once.
            self.presence.may_hold(&next.binding);
        }
        if !self.store.change(vec![stepped.into_write()]).await? {
            return Ok(Attempt::Conflict);
        }
        self.effects(&next.id, change);
        self.changed();
        if matches!(change, RowChange::Step { .. }) {
            self.remember(next);
        }
        Ok(Attempt::Done)
    }

    /// Ends a row that nothing but the clock, or a look at it, has ended.
    pub(super) async fn end_due(
        &self,
        row: &Row,
        transition: Transition,
    ) -> Result<(), RecordError> {
        if self.is_exclusive_elsewhere(row) {
            return Ok(());
        }
        if self.step_behind(&row.id, &transition, None).is_some() {
            return self.write_behind(&row.id);
        }
        self.apply_to(row, &RowChange::step(transition)).await?;
        Ok(())
    }

    /// Does what follows from a change that is made: counters and drafts.
    pub(super) fn effects(&self, id: &str, change: &RowChange) {
        let counters = &self.counters;
        let count = |counter: &std::sync::atomic::AtomicU64| {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        match change {
            RowChange::Step { transition, .. } => match transition {
                Transition::Act { .. } => {
                    count(&counters.acted);
                    self.drop_draft(id);
                }
                Transition::Expire | Transition::Withdraw { .. } | Transition::Fail { .. } => {
                    count(&counters.ended);
                    self.drop_draft(id);
                }
                Transition::Deliver => count(&counters.delivered),
                Transition::Show
                | Transition::Refuse { .. }
                | Transition::Doubt { .. }
                | Transition::Lapse { .. } => {}
            },
            RowChange::ActAndDeliver { .. } => {
                count(&counters.acted);
                count(&counters.delivered);
                self.drop_draft(id);
            }
            RowChange::Adopt { .. } => count(&counters.found),
            RowChange::Confirm | RowChange::Refuse { .. } | RowChange::Doubt { .. } => {}
        }
    }
}
