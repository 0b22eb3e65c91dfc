//! A closure as a responder.

use std::borrow::Cow;

use mcp_elicit_core::wire::Capability;

use super::{RespondFuture, Responder, ResponderError};
use crate::answer::Answer;
use crate::question::Question;

/// A closure as a responder. It gets the question and gives the person's act, made with [`Question::accept`],
/// [`decline`](crate::answer::decline) or [`cancel`](crate::answer::cancel).
pub struct Callback<F> {
    modes: Capability,
    ask: F,
}

impl<F, A> Callback<F>
where
    F: Fn(Question) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Answer, ResponderError>> + Send + 'static,
{
    /// A closure that can show questions of these modes.
    pub fn new(modes: Capability, ask: F) -> Self {
        Self { modes, ask }
    }

    /// A closure that can show forms.
    pub fn forms(ask: F) -> Self {
        Self::new(Capability::FORM, ask)
    }
}

impl<F> std::fmt::Debug for Callback<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callback")
            .field("modes", &self.modes)
            .finish_non_exhaustive()
    }
}

impl<F, A> Responder for Callback<F>
where
    F: Fn(Question) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Answer, ResponderError>> + Send + 'static,
{
    fn name(&self) -> Cow<'static, str> {
        "callback".into()
    }

    fn modes(&self) -> Capability {
        self.modes
    }

    fn respond<'a>(&'a self, question: &'a Question) -> RespondFuture<'a> {
        Box::pin((self.ask)(question.clone()))
    }
}
