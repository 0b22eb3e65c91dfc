//! The calls that are held for a person, and the times at which each is kept alive and handed back.

use std::time::Duration;

use rustc_hash::FxHashSet;

use crate::parts::timers::{Timer, Timers};
use crate::{CallId, Timestamp};

/// The calls that are held.
pub(crate) struct HoldTimers {
    held: FxHashSet<CallId>,
    keep_alive: Duration,
}

impl HoldTimers {
    /// No call is held; those that are will be kept alive at this interval.
    pub(crate) fn new(keep_alive: Duration) -> Self {
        Self {
            held: FxHashSet::default(),
            keep_alive,
        }
    }

    /// Begins to hold a call, for this time at most. `false` where it is held already.
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

    /// Begins to hold a call whose client is told so after a while only.
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

    /// The client was told that the call lives: it is told again after a while.
    pub(crate) fn keep_alive_again(&self, now: Timestamp, call: CallId, timers: &mut Timers) {
        timers.set(now.after(self.keep_alive), Timer::KeepAlive(call));
    }

    /// Returns `true` while the call is held.
    pub(crate) fn is_held(&self, call: CallId) -> bool {
        self.held.contains(&call)
    }

    /// Returns the calls that are held, oldest first.
    pub(crate) fn all(&self) -> Vec<CallId> {
        let mut all: Vec<_> = self.held.iter().copied().collect();
        all.sort_unstable();
        all
    }

    /// Ends the hold of a call. `false` where it was not held.
    pub(crate) fn end(&mut self, call: CallId, timers: &mut Timers) -> bool {
        let ends = self.held.remove(&call);
        if ends {
            timers.cancel_hold(call);
        }
        ends
    }
}
