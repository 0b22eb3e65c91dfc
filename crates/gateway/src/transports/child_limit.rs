//! The limit on child processes over all callers, so that no caller can start programs without end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most children of the gateway, over all clients.
pub(crate) const CHILDREN: usize = 256;

/// The counted children of a gateway.
#[derive(Debug)]
pub(crate) struct ChildLimit {
    free: Arc<Semaphore>,
}

/// A counted child, until this is dropped.
#[derive(Debug)]
pub(crate) struct ChildSlot {
    _permit: OwnedSemaphorePermit,
}

impl ChildSlot {
    fn of(permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: permit }
    }
}

impl Default for ChildLimit {
    fn default() -> Self {
        Self {
            free: Arc::new(Semaphore::new(CHILDREN)),
        }
    }
}

impl ChildLimit {
    /// Returns `true` if another may be started.
    pub(crate) fn has_room(&self) -> bool {
        self.free.available_permits() > 0
    }

    /// Counts a child to be started; `None` if there are too many.
    pub(crate) fn count(&self) -> Option<ChildSlot> {
        let slot = self.free.clone().try_acquire_owned();
        slot.ok().map(ChildSlot::of)
    }

    /// Counts a child to be started, once another has ended; `None` if none ends in this time.
    pub(crate) async fn count_within(&self, wait: Duration) -> Option<ChildSlot> {
        let slot = tokio::time::timeout(wait, self.free.clone().acquire_owned());
        slot.await.ok()?.ok().map(ChildSlot::of)
    }
}
