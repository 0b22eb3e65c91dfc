//! The check that a step asks no question.
//!
//! A step runs once and its result is stored. A question inside a step could not be answered in rounds, where the run
//! is not ended while a step runs. So it is the author's error on every revision.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::ElicitError;

thread_local! {
    /// The steps that are being polled on this thread, the innermost last.
    static POLLED: RefCell<Vec<Arc<RunningStep>>> = const { RefCell::new(Vec::new()) };
}

/// An identity that distinguishes calls.
#[derive(Debug, Default)]
pub(crate) struct CallIdentity;

/// A step of a call while its work runs.
#[derive(Debug)]
pub(crate) struct RunningStep {
    call: Arc<CallIdentity>,
    name: String,
    asked: AtomicBool,
}

impl RunningStep {
    pub(crate) fn new(call: &Arc<CallIdentity>, name: &str) -> Arc<Self> {
        Arc::new(Self {
            call: Arc::clone(call),
            name: name.to_owned(),
            asked: AtomicBool::new(false),
        })
    }

    /// Runs `work`; a question that it asks is noticed, even if its error is not passed on.
    pub(crate) async fn run<F: Future>(self: &Arc<Self>, work: impl FnOnce() -> F) -> F::Output {
        let work = {
            let _polled = self.enter();
            work()
        };
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| {
            let _polled = self.enter();
            work.as_mut().poll(context)
        })
        .await
    }

    /// Returns the error of a question that was asked inside this step, if there was one.
    pub(crate) fn question_inside(&self) -> Result<(), ElicitError> {
        if self.asked.load(Ordering::Relaxed) {
            return Err(inside(&self.name));
        }
        Ok(())
    }

    fn enter(self: &Arc<Self>) -> Polled {
        POLLED.with_borrow_mut(|polled| polled.push(Arc::clone(self)));
        Polled
    }
}

/// A guard that ends the poll of the innermost step.
struct Polled;

impl Drop for Polled {
    fn drop(&mut self) {
        POLLED.with_borrow_mut(|polled| {
            polled.pop();
        });
    }
}

/// Fails if a step of `call` is being polled, because then a question of `call` is part of that step.
pub(crate) fn may_ask(call: &Arc<CallIdentity>) -> Result<(), ElicitError> {
    POLLED.with_borrow(|polled| {
        let step = polled.iter().find(|step| Arc::ptr_eq(&step.call, call));
        step.map_or(Ok(()), |step| {
            step.asked.store(true, Ordering::Relaxed);
            Err(inside(&step.name))
        })
    })
}

/// Returns the error of a question inside the step `name`.
fn inside(name: &str) -> ElicitError {
    ElicitError::Author(format!(
        "it is asked inside the step {name:?}; ask before the step, and use the answer in it"
    ))
}

/// Returns the error of a question that a spawned task asked while a step ran that did not end.
pub(crate) fn inside_some_step() -> ElicitError {
    ElicitError::Author(
        "it is asked by a spawned task while a step runs that does not end; ask before the step, and use the answer in it"
            .into(),
    )
}
