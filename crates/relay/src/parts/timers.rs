//! Timers.

use std::collections::BTreeSet;

use crate::{AskId, CallId, StreamId, Timestamp};

/// An action that is due at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// End the wait for the server's era.
    Probe,
    /// Hand the call back.
    Hold(CallId),
    /// Send progress for a held call.
    KeepAlive(CallId),
    /// Make the call again.
    Retry(CallId),
    /// Drop a call that was not made again in time.
    DropUnattended(CallId),
    /// End a call without a waiting client in which nothing happens.
    Quiet(CallId),
    /// End a question that was not answered in time.
    AskExpired(AskId),
    /// Take the answer out of the record again.
    DeliverAgain(AskId),
    /// End the wait for the server's list of tools.
    ToolsListing,
    /// End a task whose time is over.
    TaskOver(StreamId),
    /// Check the calls that wait for their turn.
    Turns,
}

/// All running timers.
#[derive(Default)]
pub(crate) struct Timers {
    queue: BTreeSet<(Timestamp, Timer)>,
}

impl Timers {
    /// Sets another timer.
    pub(crate) fn set(&mut self, at: Timestamp, timer: Timer) {
        self.queue.insert((at, timer));
    }

    /// Cancels a timer. Returns `false` if it was not running.
    pub(crate) fn cancel(&mut self, timer: Timer) -> bool {
        let before = self.queue.len();
        self.queue.retain(|(_, known)| *known != timer);
        self.queue.len() < before
    }

    /// Cancels the timers of a held call.
    pub(crate) fn cancel_hold(&mut self, call: CallId) {
        let of_hold = [Timer::Hold(call), Timer::KeepAlive(call)];
        self.queue.retain(|(_, timer)| !of_hold.contains(timer));
    }

    /// Cancels all timers of a call.
    pub(crate) fn cancel_call(&mut self, call: CallId) {
        let of_call = [
            Timer::Hold(call),
            Timer::KeepAlive(call),
            Timer::Retry(call),
            Timer::DropUnattended(call),
            Timer::Quiet(call),
        ];
        self.queue.retain(|(_, timer)| !of_call.contains(timer));
    }

    /// Returns the calls that are to be made again.
    pub(crate) fn retries(&self) -> Vec<CallId> {
        let retry = |(_, timer): &(Timestamp, Timer)| match timer {
            Timer::Retry(call) => Some(*call),
            _ => None,
        };
        self.queue.iter().filter_map(retry).collect()
    }

    /// Takes out the first timer that is due by now.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Option<Timer> {
        self.queue.first().filter(|(at, _)| *at <= now)?;
        self.queue.pop_first().map(|(_, timer)| timer)
    }

    /// Returns the time at which the first timer is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.queue.first().map(|(at, _)| *at)
    }
}
