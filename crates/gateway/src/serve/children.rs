//! The bound on child processes: a bound over all callers, so that no caller can start programs without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Children of the gateway at once, over all clients.
pub const CHILDREN: usize = 256;

/// The children of a gateway, counted.
#[derive(Debug, Default)]
pub struct Children {
    running: AtomicUsize,
}

/// A child that is counted, until this is dropped.
#[derive(Debug)]
pub struct Counted(Arc<Children>);

impl Children {
    /// Returns whether another may be started.
    pub fn has_room(&self) -> bool {
        self.running.load(Ordering::Relaxed) < CHILDREN
    }

    /// Counts one that is to be started; `None` where there are too many.
    pub fn count(self: &Arc<Self>) -> Option<Counted> {
        let more = |running| (running < CHILDREN).then_some(running + 1);
        self.running
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, more)
            .ok()?;
        Some(Counted(self.clone()))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}
