use std::sync::{Arc, Mutex, PoisonError};

/// Reaches a question while it is being asked: to take it back, or to say how many wait behind it.
///
/// Cheap to clone; any thread or task may use it. A face looks at it several times a second.
#[derive(Clone, Debug, Default)]
pub struct Handle {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    withdrawn: Option<String>,
    pending: Option<usize>,
}

impl Handle {
    /// A handle for one question.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the question off the screen and tells the person `why`: `the server withdrew it`. The first
    /// reason given stays. The face returns [`NotAnswered::Withdrawn`](crate::view::NotAnswered::Withdrawn).
    pub fn withdraw(&self, why: impl Into<String>) {
        self.with(|state| {
            state.withdrawn.get_or_insert(why.into());
        });
    }

    /// Says how many more questions wait behind this one.
    pub fn set_pending(&self, others: usize) {
        self.with(|state| state.pending = Some(others));
    }

    /// Why the question was withdrawn, if it was.
    pub fn withdrawn(&self) -> Option<String> {
        self.with(|state| state.withdrawn.clone())
    }

    pub(super) fn pending(&self) -> Option<usize> {
        self.with(|state| state.pending)
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        // The state is two plain values, so a thread that panicked while holding it left nothing half done.
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
