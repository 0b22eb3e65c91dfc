use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::view::PendingView;

/// The time that [`QuestionHandle::withdraw`] waits for the screen at most; a frontend checks five times in that time.
const WITHDRAW_WAIT: Duration = Duration::from_millis(500);

/// A handle to a question: withdraws it, or updates the questions that wait behind it.
///
/// Cheap to clone; any thread or task may use it. A frontend checks it several times a second.
#[derive(Clone, Debug, Default)]
pub struct QuestionHandle {
    shared: Arc<SharedHandle>,
}

#[derive(Debug, Default)]
struct SharedHandle {
    state: Mutex<HandleState>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct HandleState {
    withdrawn: Option<String>,
    pending: Option<Vec<PendingView>>,
    shown: bool,
}

/// The question is on the screen for as long as this lives.
pub(super) struct OnScreen<'a>(&'a QuestionHandle);

impl Drop for OnScreen<'_> {
    fn drop(&mut self) {
        self.0.state().shown = false;
        self.0.shared.left.notify_all();
    }
}

impl QuestionHandle {
    /// Creates a handle for one question.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the question off the screen and tells the person `why`: `the server withdrew it`. The first reason is
    /// kept. The frontend returns [`FrontendError::Withdrawn`](crate::view::FrontendError::Withdrawn).
    ///
    /// Returns when the question has left the screen and the terminal is restored, or after half a second, so that a
    /// program may exit right afterwards.
    pub fn withdraw(&self, why: impl Into<String>) {
        let mut state = self.state();
        state.withdrawn.get_or_insert(why.into());
        // A stuck frontend is not waited for any longer; an error cannot be reported here.
        let _ = self
            .shared
            .left
            .wait_timeout_while(state, WITHDRAW_WAIT, |state| state.shown);
    }

    /// Sets the questions that wait behind this one, in order.
    pub fn set_pending(&self, others: Vec<PendingView>) {
        self.state().pending = Some(others);
    }

    /// Returns the reason for the withdrawal, if the question was withdrawn.
    pub fn withdrawn(&self) -> Option<String> {
        self.state().withdrawn.clone()
    }

    pub(super) fn pending(&self) -> Option<Vec<PendingView>> {
        self.state().pending.clone()
    }

    pub(super) fn on_screen(&self) -> OnScreen<'_> {
        self.state().shown = true;
        OnScreen(self)
    }

    fn state(&self) -> MutexGuard<'_, HandleState> {
        // The state is plain values, so a thread that panicked while holding it left no inconsistent state.
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
