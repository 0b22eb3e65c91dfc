//! The waker of a pool: sessions call it when a call waits for its turn, and when they could take one.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The waker of the task that arranges a pool's calls. It is not woken for a session that becomes free while no call waits,
/// which is the end of nearly every call.
#[derive(Default)]
pub(crate) struct TurnWaker {
    notify: Notify,
    waits: AtomicBool,
}

impl TurnWaker {
    /// Wakes the task: a call waits for its turn.
    pub(crate) fn call_waits(&self) {
        self.waits.store(true, Ordering::SeqCst);
        self.notify.notify_one();
    }

    /// Returns `true` if a session that becomes free is to call [`TurnWaker::session_is_free`].
    pub(crate) fn wants_free_sessions(&self) -> bool {
        self.waits.load(Ordering::SeqCst)
    }

    /// Wakes the task: a session could take a call.
    pub(crate) fn session_is_free(&self) {
        self.notify.notify_one();
    }

    /// Sets whether free sessions are wanted. Set to `true` before a free session is looked for; a call that waits since the
    /// pool was looked at has left a wake-up behind.
    pub(crate) fn want_free_sessions(&self, wanted: bool) {
        self.waits.store(wanted, Ordering::SeqCst);
    }

    /// Completes when the task was woken.
    pub(crate) async fn woken(&self) {
        self.notify.notified().await;
    }
}
