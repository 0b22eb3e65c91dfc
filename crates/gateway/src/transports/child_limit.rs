//! The bound on child processes: a bound over all callers, so that no caller can start programs without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Children of the gateway at once, over all clients.
pub(crate) const CHILDREN: usize = 256;

/// The children of a gateway, counted.
#[derive(Debug, Default)]
pub(crate) struct ChildLimit {
    running: AtomicUsize,
}

/// A child that is counted, until this is dropped.
#[derive(Debug)]
pub(crate) struct ChildSlot(Arc<ChildLimit>);

impl ChildLimit {
    /// Returns whether another may be started.
    pub(crate) fn has_room(&self) -> bool {
        self.running.load(Ordering::Relaxed) < CHILDREN
    }

    /// Counts one that is to be started; `None` where there are too many.
    pub(crate) fn count(self: &Arc<Self>) -> Option<ChildSlot> {
        let more = |running| (running < CHILDREN).then_some(running + 1);
        self.running
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, more)
            .ok()?;
        Some(ChildSlot(self.clone()))
    }
}

impl Drop for ChildSlot {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}
