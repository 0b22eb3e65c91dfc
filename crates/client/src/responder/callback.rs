//! A closure as a responder.

use std::borrow::Cow;

use mcp_elicit_core::wire::Capability;

use super::{RespondFuture, Responder, ResponderError};
use crate::answer::Answer;
use crate::question::Question;

/// The number of answers that a person may give to one question before it fails.
const ATTEMPTS: u32 = 10;

/// A closure as a responder. It receives the question and returns the person's action, made with [`Question::accept`],
/// [`decline`](crate::answer::decline), [`declined`](crate::answer::declined) or [`cancel`](crate::answer::cancel).
///
/// If the closure returns [`ResponderError::Refused`], which `?` makes of the violations, it is called again with them in
/// [`Question::violations`], at most 9 times: a person who mistypes corrects the answer.
///
/// ```
/// use mcp_elicit_client::ClientSettings;
/// use mcp_elicit_client::responder::Callback;
///
/// let callback = Callback::forms(|question| async move {
///     let wrong = question.violations().for_field("environment").next().is_some();
///     let environment = if wrong { "staging" } else { "stagin" };
///     Ok(question.accept(serde_json::json!({ "environment": environment }))?)
/// });
/// let settings = ClientSettings::default().responder(callback);
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
    /// use mcp_elicit_client::answer::declined;
    /// use mcp_elicit_client::core::wire::Capability;
    /// use mcp_elicit_client::responder::Callback;
    ///
    /// let declines_all = Callback::new(Capability::BOTH, |_| async { Ok(declined()) });
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
        Box::pin(async move {
            let mut asked = question.clone();
            for _ in 1..ATTEMPTS {
                match (self.ask)(asked).await {
                    Err(ResponderError::Refused { violations }) => {
                        asked = question.again(violations);
                    }
                    ended => return ended,
                }
            }
            (self.ask)(asked).await
        })
    }
}
