//! The only code that writes rows to the store, and that carries out the consequences of a change: counters, drafts and
//! watchers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt as _;
use mcp_elicit_core::lifecycle::Transition;

use super::row::RowChange;
use super::{Record, RecordError};
use crate::store::{RecordStore as _, Write};

/// The time at which a change is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Later, if it is already certain that the change is made: a question within 10 ms; an answer together with its
    /// delivery, or by a call of [`Record::write_behind`], which must follow. Otherwise like [`Self::BeforeSeen`].
    Behind,
    /// Before anyone sees it.
    BeforeSeen,
    /// Together with its delivery, if a session waits for it and begins the delivery in time. Otherwise like
    /// [`Self::BeforeSeen`].
    WithDelivery,
}

/// A consequence of a change, besides the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitEffect {
    /// A question was asked.
    Asked,
    /// A question was found again.
    Found,
    /// A person acted.
    Acted,
    /// An answer was taken out for the server.
    Delivered,
    /// A question ended without an action.
    Ended,
    /// The call of a question has ended.
    CallEnded,
    /// Only the row has changed.
    Changed,
}

impl From<&Transition> for CommitEffect {
    fn from(transition: &Transition) -> Self {
        match transition {
            Transition::Act { .. } => Self::Acted,
            Transition::Expire | Transition::Withdraw { .. } | Transition::Fail { .. } => {
                Self::Ended
            }
            Transition::Deliver => Self::Delivered,
            Transition::Show
            | Transition::MoveToPeople { .. }
            | Transition::Refuse { .. }
            | Transition::Doubt { .. }
            | Transition::Lapse { .. } => Self::Changed,
        }
    }
}

impl From<&RowChange> for CommitEffect {
    fn from(change: &RowChange) -> Self {
        match change {
            RowChange::Step { transition, .. } => transition.into(),
            RowChange::Adopt { .. } => Self::Found,
            RowChange::Confirm
            | RowChange::Leave
            | RowChange::Refuse { .. }
            | RowChange::Doubt { .. }
            | RowChange::MoveToPeople { .. } => Self::Changed,
        }
    }
}

impl Record {
    /// Writes changes of rows, all or none, if every row still has the version that was read. Then carries out their
    /// effects and `follow`, and notifies watchers of written effects. No other code writes rows or audit entries to
    /// the store.
    ///
    /// Without a write, the change is to a row that this gateway has exclusively: the store follows later
    /// ([`Self::hand_on`]).
    ///
    /// Returns `None` if another change was first. With [`Durability::Behind`] it waits for nothing.
    pub(super) async fn commit<T>(
        &self,
        write: Option<Write>,
        durability: Durability,
        effects: &[(&str, CommitEffect)],
        follow: impl FnOnce() -> T,
    ) -> Result<Option<T>, RecordError> {
        let tells = write.is_some() && !effects.is_empty();
        match (write, durability) {
            (None, _) => {}
            (Some(write), Durability::Behind) => self.store.queue_behind(write),
            (Some(write), Durability::BeforeSeen | Durability::WithDelivery) => {
                if self.store.write(Arc::new(vec![write])).await? != [true] {
                    return Ok(None);
                }
            }
        }
        for (id, effect) in effects {
            self.carry_out(id, *effect);
        }
        let followed = follow();
        if tells {
            self.changed();
        }
        Ok(Some(followed))
    }

    /// Like [`Self::commit`], for a change that is written behind, or whose write comes later.
    pub(super) fn commit_behind(
        &self,
        write: Option<Write>,
        effects: &[(&str, CommitEffect)],
        follow: impl FnOnce(),
    ) {
        let done = self.commit(write, Durability::Behind, effects, follow);
        let done = done.now_or_never();
        debug_assert!(matches!(done, Some(Ok(Some(())))), "nothing to wait for");
    }

    fn carry_out(&self, id: &str, effect: CommitEffect) {
        let counters = &self.counters;
        let counter = match effect {
            CommitEffect::Asked => Some(&counters.asked),
            CommitEffect::Found => Some(&counters.found),
            CommitEffect::Acted => Some(&counters.acted),
            CommitEffect::Delivered => Some(&counters.delivered),
            CommitEffect::Ended => Some(&counters.ended),
            CommitEffect::CallEnded | CommitEffect::Changed => None,
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        match effect {
            CommitEffect::Acted | CommitEffect::Ended | CommitEffect::CallEnded => {
                self.drop_draft(id);
            }
            CommitEffect::Asked
            | CommitEffect::Found
            | CommitEffect::Delivered
            | CommitEffect::Changed => {}
        }
    }
}
