//! The outcome of an action on a question, for each who receives one: the content of an accepted form is checked, and
//! nothing else has any.

use serde_json::Value;

use super::{Answers, CheckError, Outcome, Violations};
use crate::form::Form;
use crate::wire::Action;

mod sealed {
    /// Content is text or a value: only these pass `Form::check`.
    pub trait Sealed {}

    impl Sealed for &str {}
    impl Sealed for serde_json::Value {}
}

/// Content as it comes, which a form can check. Sealed: it is text or a value.
pub trait Content: sealed::Sealed {
    /// The reason why it is not what the form asks for.
    type Error;

    /// Returns the answers that it holds.
    ///
    /// # Errors
    /// When it is not what the form asks for.
    fn check(self, form: &Form) -> Result<Answers, Self::Error>;
}

/// The content as text, unread.
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

/// Returns what `action` on a question comes to. Only an accepted form has content; to accept a question without a form
/// is to agree to its link.
///
/// ```
/// use mcp_elicit_core::answer::{Action, Outcome, judge};
///
/// assert_eq!(judge(None, Action::Accept, "{}"), Ok(Outcome::Visit));
/// ```
///
/// # Errors
/// When the content of an accepted form is not what the form asks for.
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

/// Why an outcome is none of this question.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OutcomeMisfit {
    /// It holds answers, and the question has no form; or it agrees to a link, and the question is a form.
    #[error("it answered a question of the other mode")]
    OtherMode,
    /// Its answers are not those of the form.
    #[error(transparent)]
    Violations(#[from] Violations),
}

impl Outcome {
    /// Checks the outcome again, against the question that it is for: who hands it over may hold the answers of another
    /// form.
    ///
    /// # Errors
    /// When it is not an outcome of this question.
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
