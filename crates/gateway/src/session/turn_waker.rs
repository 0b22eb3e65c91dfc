//! The waker of a pool: sessions call it when a call waits for its turn, and when they could take one.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The waker of the task that arranges a pool's calls. It is not woken for a session that becomes free while no call
/// waits, which is the usual end of a call.
#[derive(Default)]
pub(crate) struct TurnWaker {
    notify: Notify,
    waits: AtomicBool,
}

impl TurnWaker {
    /// Wakes the task because a call waits for its turn.
    pub(crate) fn call_waits(&self) {
        self.waits.store(true, Ordering::SeqCst);
        self.notify.notify_one();
    }

    /// Returns `true` if a session that becomes free must call [`TurnWaker::session_is_free`].
    pub(crate) fn wants_free_sessions(&self) -> bool {
        self.waits.load(Ordering::SeqCst)
    }

    /// Wakes the task because a session could take a call.
    pub(crate) fn session_is_free(&self) {
        self.notify.notify_one();
    }

    /// Sets whether free sessions are wanted. Set to `true` before the search for a free session; a call that has
    /// waited since the last check has left a wake-up.
    pub(crate) fn want_free_sessions(&self, wanted: bool) {
        self.waits.store(wanted, Ordering::SeqCst);
    }

    /// Completes when the task is woken.
    pub(crate) async fn woken(&self) {
        self.notify.notified().await;
    }
}
