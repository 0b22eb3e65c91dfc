//! Changes of rows: the times of their writes, and their results. The store's compare-and-set decides, so the first
//! change wins; counters, drafts and watchers are updated afterwards.

use std::future::{IntoFuture, ready};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use mcp_elicit_core::lifecycle::{Delivery, Transition};

use super::commit::{CommitEffect, Durability};
use super::row::{Rejected, RowChange};
use super::{Record, RecordError, TRIES, Verdict};
use crate::store::{Row, Write};

/// The result of a change.
#[must_use = "a change that is pending is made when it is awaited"]
pub enum Applied<T> {
    /// Known at once.
    Now(T),
    /// Known after the write, which begins when this is awaited.
    Pending(BoxFuture<'static, Result<T, RecordError>>),
}

impl<T: Send + 'static> Applied<T> {
    pub(super) fn pending(
        change: impl Future<Output = Result<T, RecordError>> + Send + 'static,
    ) -> Self {
        Self::Pending(change.boxed())
    }

    /// Returns the result if it is known at once.
    pub fn now(self) -> Option<T> {
        match self {
            Self::Now(done) => Some(done),
            Self::Pending(_) => None,
        }
    }
}

impl<T: Send + 'static> From<Result<T, RecordError>> for Applied<T> {
    fn from(done: Result<T, RecordError>) -> Self {
        match done {
            Ok(done) => Self::Now(done),
            Err(fault) => Self::pending(ready(Err(fault))),
        }
    }
}

impl<T: Send + 'static> IntoFuture for Applied<T> {
    type Output = Result<T, RecordError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        match self {
            Self::Now(done) => ready(Ok(done)).boxed(),
            Self::Pending(change) => change,
        }
    }
}

/// The number of waits for a gateway that has a question exclusively, and the length of each: it shares the question as
/// soon as it detects another gateway.
const WAITS: usize = 30;
const WAIT: Duration = Duration::from_millis(100);

/// The result of one attempt to change a row.
pub(super) enum ChangeAttempt {
    /// The change is made, or there was nothing to change.
    Done,
    /// The question has expired, which its row does not show yet.
    Late,
    /// The row no longer allows the change.
    Over,
    /// Another change was first.
    Conflict,
}

impl Record {
    /// Changes the row of this id, and reads it again as long as other changes are first.
    pub(super) async fn apply(&self, id: &str, change: &RowChange) -> Result<Verdict, RecordError> {
        self.apply_to_those(id, change, |_| true).await
    }

    /// The same, for rows of which this is `true`.
    pub(super) async fn apply_to_those(
        &self,
        id: &str,
        change: &RowChange,
        may: impl Fn(&Row) -> bool + Send,
    ) -> Result<Verdict, RecordError> {
        let mut tries = 0..TRIES;
        let mut waits = 0..WAITS;
        while tries.next().is_some() {
            let row = match self.take_stored(id) {
                Some(row) => Some(row),
                None => self.find(id).await?,
            };
            let Some(row) = row else {
                return Ok(Verdict::Gone);
            };
            if !may(&row) {
                return Ok(Verdict::Late(Box::new(row)));
            }
            if self.is_exclusive_elsewhere(&row) {
                match (change, waits.next()) {
                    // That gateway records itself who has seen its questions.
                    (
                        RowChange::Step {
                            transition: Transition::Show,
                            ..
                        },
                        _,
                    ) => return Ok(Verdict::Won),
                    (_, None) => break,
                    (_, Some(_)) => {
                        tries = 0..TRIES;
                        tokio::time::sleep(WAIT).await;
                        continue;
                    }
                }
            }
            match self.apply_to(&row, change).await? {
                ChangeAttempt::Done => return Ok(Verdict::Won),
                ChangeAttempt::Over => return Ok(Verdict::Late(Box::new(row))),
                ChangeAttempt::Late => self.end_due(&row, Transition::Expire).await?,
                ChangeAttempt::Conflict => {}
            }
        }
        Err(RecordError::Contended)
    }

    /// Changes the row if it still has the version that was read.
    pub(super) async fn apply_to(
        &self,
        row: &Row,
        change: &RowChange,
    ) -> Result<ChangeAttempt, RecordError> {
        let stepped = match row.clone().step(change, self.now()) {
            Ok(stepped) if stepped.is_changed() => stepped,
            Ok(_) => return Ok(ChangeAttempt::Done),
            Err(Rejected::Late) => return Ok(ChangeAttempt::Late),
            Err(Rejected::Over) => return Ok(ChangeAttempt::Over),
        };
        let next = stepped.row.clone();
        if next.lifecycle.delivery() == Some(Delivery::Failed) {
            // Announced before the write, because the same call may come at once.
            self.presence.may_hold(&next.binding);
        }
        let follow = || {
            if matches!(change, RowChange::Step { .. }) {
                self.remember(next);
            }
        };
        let write = Write::Change(vec![stepped.into_write()]);
        let effects = [(row.id.as_str(), CommitEffect::from(change))];
        let made = self.commit(Some(write), Durability::BeforeSeen, &effects, follow);
        Ok(made
            .await?
            .map_or(ChangeAttempt::Conflict, |()| ChangeAttempt::Done))
    }

    /// Ends a row that only the clock, or reading it, has ended.
    pub(super) async fn end_due(
        &self,
        row: &Row,
        transition: Transition,
    ) -> Result<(), RecordError> {
        // A held answer came in time.
        if self.is_exclusive_elsewhere(row) || self.is_held(&row.id) {
            return Ok(());
        }
        if self.step_exclusive(&row.id, &transition, None).is_some() {
            self.hand_on(&row.id, false);
            return Ok(());
        }
        self.apply_to(row, &RowChange::step(transition)).await?;
        Ok(())
    }
}
