//! The waker that a run of a handler is polled with. It knows whether anything but the runner can wake the handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

/// One handler's waker. It forwards every wake-up to the runner.
#[derive(Debug)]
pub(crate) struct TrackedWaker {
    signal: Arc<WakeSignal>,
    waker: Waker,
}

#[derive(Debug)]
struct WakeSignal {
    runner: Waker,
    woken: AtomicBool,
}

impl Wake for WakeSignal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.runner.wake_by_ref();
    }
}

impl TrackedWaker {
    pub(crate) fn new(runner: &Waker) -> Self {
        let signal = Arc::new(WakeSignal {
            runner: runner.clone(),
            woken: AtomicBool::new(false),
        });
        let waker = Waker::from(Arc::clone(&signal));
        Self { signal, waker }
    }

    /// Returns `true` if wake-ups still reach `runner`.
    pub(crate) fn is_for(&self, runner: &Waker) -> bool {
        self.signal.runner.will_wake(runner)
    }

    /// Resets the wake-ups and returns the waker; called before each poll of the handler.
    pub(crate) fn begin(&self) -> &Waker {
        self.signal.woken.store(false, Ordering::SeqCst);
        &self.waker
    }

    /// Returns `true` if `waker` is this one: a future that was polled with it is part of the handler itself.
    pub(crate) fn is(&self, waker: &Waker) -> bool {
        // Compares the data and not with `will_wake`: copies of one waker need not share the address of their
        // functions.
        waker.data() == self.waker.data()
    }

    /// Returns `true` if a wake-up has come since the poll began, or may still come: a future that waits keeps a copy
    /// of its waker.
    pub(crate) fn may_be_woken(&self) -> bool {
        /// The copies in `signal` and `waker`.
        const OUR_OWN: usize = 2;
        Arc::strong_count(&self.signal) > OUR_OWN || self.signal.woken.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    /// Returns `true` if anything may still wake the handler after its first poll.
    fn may_be_woken_after(handler: impl Future) -> bool {
        let turn = TrackedWaker::new(Waker::noop());
        let mut handler = pin!(handler);
        let waker = turn.begin().clone();
        assert!(
            handler
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        drop(waker);
        turn.may_be_woken()
    }

    #[tokio::test]
    async fn what_waits_for_anything_is_noticed() {
        let (_sender, receiver) = tokio::sync::oneshot::channel::<()>();
        assert!(may_be_woken_after(receiver));
        assert!(may_be_woken_after(tokio::task::yield_now()));
        assert!(may_be_woken_after(tokio::time::sleep(
            std::time::Duration::from_secs(60)
        )));
        assert!(may_be_woken_after(std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            std::task::Poll::<()>::Pending
        })));
        assert!(!may_be_woken_after(std::future::pending::<()>()));
    }

    #[test]
    fn a_turn_knows_its_own_waker() {
        let (turn, other) = (
            TrackedWaker::new(Waker::noop()),
            TrackedWaker::new(Waker::noop()),
        );
        assert!(turn.is(&turn.begin().clone()) && !turn.is(other.begin()));
    }
}
