//! The outcome of an action on a question, for every receiver of actions: the content of an accepted form is checked,
//! and other actions have no content.

use serde_json::Value;

use super::{Answers, CheckError, Outcome, Violations};
use crate::form::Form;
use crate::wire::Action;

mod sealed {
    /// The supertrait that limits content to text and values: both pass `Form::check`.
    pub trait Sealed {}

    impl Sealed for &str {}
    impl Sealed for serde_json::Value {}
}

/// Unchecked content of an accepted form: text or a value. The trait is sealed.
pub trait Content: sealed::Sealed {
    /// The reason why it does not answer the form.
    type Error;

    /// Returns the answers in the content.
    ///
    /// # Errors
    /// If the content does not answer the form.
    fn check(self, form: &Form) -> Result<Answers, Self::Error>;
}

/// The content as text, not parsed.
impl Content for &str {
    type Error = CheckError;

    fn check(self, form: &Form) -> Result<Answers, CheckError> {
        form.check_text(self)
    }
}

/// The content as a value.
impl Content for Value {
    type Error = Violations;

    fn check(self, form: &Form) -> Result<Answers, Violations> {
        form.check(self)
    }
}

/// Returns the outcome of `action` on a question. Only an accepted form has content; accepting a question without a
/// form means agreeing to its link.
///
/// ```
/// use mcp_elicit_core::answer::{Action, Outcome, judge};
///
/// assert_eq!(judge(None, Action::Accept, "{}"), Ok(Outcome::Visit));
/// ```
///
/// # Errors
/// If the content of an accepted form does not answer the form.
pub fn judge<C: Content>(
    form: Option<&Form>,
    action: Action,
    content: C,
) -> Result<Outcome, C::Error> {
    Ok(match (action, form) {
        (Action::Accept, Some(form)) => Outcome::Accept(content.check(form)?),
        (Action::Accept, None) => Outcome::Visit,
        (Action::Decline, _) => Outcome::Decline,
        (Action::Cancel, _) => Outcome::Cancel,
    })
}

/// The reason why an outcome does not belong to this question.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OutcomeMisfit {
    /// The outcome has answers, and the question has no form; or it agrees to a link, and the question is a form.
    #[error("it answered a question of the other mode")]
    OtherMode,
    /// The answers do not fit the form.
    #[error(transparent)]
    Violations(#[from] Violations),
}

impl Outcome {
    /// Checks the outcome again, against its question: the code that passes it on may hold the answers of another form.
    ///
    /// # Errors
    /// If the outcome does not belong to this question.
    pub fn check_again(&self, form: Option<&Form>) -> Result<Self, OutcomeMisfit> {
        match (self, form) {
            (Self::Accept(_), None) | (Self::Visit, Some(_)) => Err(OutcomeMisfit::OtherMode),
            (Self::Accept(answers), Some(_)) => {
                Ok(judge(form, Action::Accept, answers.to_value())?)
            }
            (Self::Visit, None) => Ok(Self::Visit),
            (Self::Decline, _) => Ok(Self::Decline),
            (Self::Cancel, _) => Ok(Self::Cancel),
        }
    }
}
