//! A closure as a responder.

use std::borrow::Cow;

use mcp_elicit_core::wire::Capability;

use super::{RespondFuture, Responder, ResponderError};
use crate::answer::Answer;
use crate::question::Question;

/// A closure as a responder. It receives the question and returns the person's action, made with [`Question::accept`],
/// [`decline`](crate::answer::decline) or [`cancel`](crate::answer::cancel).
///
/// ```
/// use mcp_elicit_client::ClientSettings;
/// use mcp_elicit_client::answer::decline;
/// use mcp_elicit_client::responder::{Callback, ResponderError};
///
/// let callback = Callback::forms(|question| async move {
///     match question.accept(serde_json::json!({ "environment": "staging" })) {
///         Ok(answer) => Ok(answer),
///         Err(violations) => Err(ResponderError::cannot_show(violations.to_string())),
///     }
/// });
/// let settings = ClientSettings::default().responder(callback);
/// # let _ = decline(None);
/// ```
pub struct Callback<F> {
    modes: Capability,
    ask: F,
}

impl<F, A> Callback<F>
where
    F: Fn(Question) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Answer, ResponderError>> + Send + 'static,
{
    /// Creates a responder from a closure that can show questions in these modes.
    ///
    /// ```
    /// use mcp_elicit_client::answer::decline;
    /// use mcp_elicit_client::core::wire::Capability;
    /// use mcp_elicit_client::responder::Callback;
    ///
    /// let declines_all = Callback::new(Capability::BOTH, |_| async { Ok(decline(None)) });
    /// ```
    pub fn new(modes: Capability, ask: F) -> Self {
        Self { modes, ask }
    }

    /// Creates a responder from a closure that can show forms.
    ///
    /// ```
    /// use mcp_elicit_client::answer::cancel;
    /// use mcp_elicit_client::responder::Callback;
    ///
    /// let cancels_forms = Callback::forms(|_| async { Ok(cancel()) });
    /// ```
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
