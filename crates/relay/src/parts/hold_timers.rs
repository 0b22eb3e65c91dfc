//! The calls that are held for a person, with their times of keep-alive and hand-back.

use std::time::Duration;

use rustc_hash::FxHashSet;

use crate::parts::timers::{Timer, Timers};
use crate::{CallId, Timestamp};

/// The held calls.
pub(crate) struct HoldTimers {
    held: FxHashSet<CallId>,
    keep_alive: Duration,
}

impl HoldTimers {
    /// Creates an empty set of held calls, with this keep-alive interval.
    pub(crate) fn new(keep_alive: Duration) -> Self {
        Self {
            held: FxHashSet::default(),
            keep_alive,
        }
    }

    /// Begins to hold a call, for this time at most. Returns `false` if it is held already.
    pub(crate) fn begin(
        &mut self,
        now: Timestamp,
        call: CallId,
        hold: Duration,
        timers: &mut Timers,
    ) -> bool {
        let begins = self.held.insert(call);
        if begins {
            timers.set(now.after(hold), Timer::Hold(call));
        }
        begins
    }

    /// Begins to hold a call whose client is informed only after a while.
    pub(crate) fn begin_quietly(
        &mut self,
        now: Timestamp,
        call: CallId,
        is_waited_for: bool,
        hold: Duration,
        timers: &mut Timers,
    ) {
        if is_waited_for {
            self.held.insert(call);
        }
        timers.set(now.after(hold), Timer::Hold(call));
        self.keep_alive_again(now, call, timers);
    }

    /// Sets the next keep-alive of a call.
    pub(crate) fn keep_alive_again(&self, now: Timestamp, call: CallId, timers: &mut Timers) {
        timers.set(now.after(self.keep_alive), Timer::KeepAlive(call));
    }

    /// Returns `true` while the call is held.
    pub(crate) fn is_held(&self, call: CallId) -> bool {
        self.held.contains(&call)
    }

    /// Returns the held calls, oldest first.
    pub(crate) fn all(&self) -> Vec<CallId> {
        let mut all: Vec<_> = self.held.iter().copied().collect();
        all.sort_unstable();
        all
    }

    /// Ends the hold of a call. Returns `false` if it was not held.
    pub(crate) fn end(&mut self, call: CallId, timers: &mut Timers) -> bool {
        let ends = self.held.remove(&call);
        if ends {
            timers.cancel_hold(call);
        }
        ends
    }
}
