//! A responder's answer, and the constructors for it.

use std::borrow::Cow;
use std::fmt;

use mcp_elicit_core::answer::{Answers, Outcome, OutcomeMisfit, Violations, check_asked};
use serde_json::{Map, Value};

use crate::question::Question;

/// A person's action on a question, with details for the record.
///
/// ```
/// use mcp_elicit_client::answer::{Answer, decline};
/// use mcp_elicit_client::core::answer::Outcome;
///
/// let answer: Answer = decline("not on a Friday");
/// assert_eq!(answer.outcome(), &Outcome::Decline);
/// assert_eq!(answer.reason(), Some("not on a Friday"));
/// assert_eq!((answer.allows_credentials(), answer.is_always(), answer.by()), (false, false, None));
/// ```
#[derive(Clone)]
pub struct Answer {
    outcome: Outcome,
    reason: Option<String>,
    allows_credentials: bool,
    always: bool,
    by: Option<Cow<'static, str>>,
}

impl Answer {
    /// Returns the action.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Returns the action, consuming the answer.
    ///
    /// ```
    /// use mcp_elicit_client::answer::cancel;
    /// use mcp_elicit_client::core::answer::Outcome;
    ///
    /// assert_eq!(cancel().into_outcome(), Outcome::Cancel);
    /// ```
    pub fn into_outcome(self) -> Outcome {
        self.outcome
    }

    /// Returns `true` if the person agreed to open a link.
    pub(crate) fn agrees_to_visit(&self) -> bool {
        self.outcome == Outcome::Visit
    }

    /// Returns the person's reason. It is stored in the record and never sent: the protocol has no member for it.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns the name of the responder that obtained the answer; the dispatcher sets it.
    pub fn by(&self) -> Option<&str> {
        self.by.as_deref()
    }

    pub(crate) fn with_responder(mut self, name: Cow<'static, str>) -> Self {
        self.by = Some(name);
        self
    }

    /// Returns `true` if the person allowed a credential to be sent, in a form that seems to ask for one.
    pub fn allows_credentials(&self) -> bool {
        self.allows_credentials
    }

    /// Declares that the person was warned that the form seems to ask for a credential, and allows it to be sent.
    ///
    /// ```
    /// # use mcp_elicit_client::{Answer, Question};
    /// # use mcp_elicit_client::core::answer::Violations;
    /// fn api_key(question: &Question, key: &str) -> Result<Answer, Violations> {
    ///     // The person has seen the warning, and wants to send the key anyway.
    ///     Ok(question.accept(serde_json::json!({ "key": key }))?.allow_credentials())
    /// }
    /// ```
    #[must_use]
    pub fn allow_credentials(mut self) -> Self {
        self.allows_credentials = true;
        self
    }

    /// Checks the answer again, against the question that it is for: a responder may hold the answers of another form,
    /// and a form that asks for a credential is accepted only if the person [allowed it](Self::allow_credentials).
    ///
    /// ```
    /// # use mcp_elicit_client::{Answer, Question};
    /// fn is_sent(question: &Question, answer: &Answer) -> bool {
    ///     answer.check_again(question).is_ok()
    /// }
    /// ```
    ///
    /// # Errors
    /// If it is not an answer to this question.
    pub fn check_again(&self, question: &Question) -> Result<Outcome, AnswerMisfit> {
        let outcome = self.outcome.check_again(question.form())?;
        if matches!(outcome, Outcome::Accept(_))
            && question.asks_for_credential()
            && !self.allows_credentials
        {
            return Err(AnswerMisfit::CredentialNotAllowed {
                fields: question.suspicious_fields(),
            });
        }
        Ok(outcome)
    }

    /// Returns `true` if the person declined every later question of this server too.
    pub fn is_always(&self) -> bool {
        self.always && self.outcome == Outcome::Decline
    }

    /// Extends a decline to every later question of this server; has no effect on other actions.
    ///
    /// ```
    /// use mcp_elicit_client::answer::declined;
    ///
    /// assert!(declined().always().is_always());
    /// ```
    #[must_use]
    pub fn always(mut self) -> Self {
        self.always = true;
        self
    }
}

/// The reason why an answer does not fit its question.
///
/// ```
/// use mcp_elicit_client::answer::AnswerMisfit;
///
/// /// A person may allow the credential; a program that answers another question has a fault.
/// fn may_be_allowed(misfit: &AnswerMisfit) -> bool {
///     matches!(misfit, AnswerMisfit::CredentialNotAllowed { .. })
/// }
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AnswerMisfit {
    /// The action is not possible for this question, or the answers do not fit its form.
    #[error(transparent)]
    Outcome(#[from] OutcomeMisfit),
    /// The form asks for a credential, which the person did not explicitly allow.
    #[error("the form asks for a credential in {fields}, which was not explicitly allowed", fields = fields.join(", "))]
    CredentialNotAllowed {
        /// The fields, and `message` for the message.
        fields: Vec<String>,
    },
}

/// Masks the values; leaves out the reason, which is in the person's own words.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("outcome", &self.outcome)
            .field("allows_credentials", &self.allows_credentials)
            .field("from_now_on", &self.always)
            .field("by", &self.by)
            .finish_non_exhaustive()
    }
}

/// Converts the answer of a frontend.
#[cfg(any(feature = "terminal", feature = "browser"))]
impl From<mcp_elicit_forms::view::Submission> for Answer {
    fn from(submission: mcp_elicit_forms::view::Submission) -> Self {
        Self {
            allows_credentials: submission.allows_credentials,
            always: submission.from_now_on,
            ..submission.outcome.into()
        }
    }
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            reason: None,
            allows_credentials: false,
            always: false,
            by: None,
        }
    }
}

/// Accepts the form with this content; the error lists every violation.
///
/// ```
/// use mcp_elicit_client::answer::{Answer, accept, decline};
/// use mcp_elicit_client::Question;
///
/// fn staging(question: &Question) -> Answer {
///     match accept(question, serde_json::json!({ "environment": "staging" })) {
///         Ok(answer) => answer,
///         Err(violations) => decline(violations.to_string()),
///     }
/// }
/// ```
pub fn accept(question: &Question, content: Value) -> Result<Answer, Violations> {
    question.accept(content)
}

/// Declines with the person's reason: they said no. The reason is stored in the record and not sent.
///
/// ```
/// use mcp_elicit_client::answer::decline;
///
/// assert_eq!(decline("not on a Friday").reason(), Some("not on a Friday"));
/// ```
pub fn decline(reason: impl Into<String>) -> Answer {
    Answer {
        reason: Some(reason.into()),
        ..declined()
    }
}

/// Declines without a reason: the person said no.
///
/// ```
/// use mcp_elicit_client::answer::declined;
///
/// assert_eq!(declined().reason(), None);
/// ```
pub fn declined() -> Answer {
    Outcome::Decline.into()
}

/// Declines; another name for [`decline`].
///
/// ```
/// use mcp_elicit_client::answer::reject;
/// use mcp_elicit_client::core::answer::Outcome;
///
/// assert_eq!(reject("not on a Friday").into_outcome(), Outcome::Decline);
/// ```
pub fn reject(reason: impl Into<String>) -> Answer {
    decline(reason)
}

/// Cancels: the person made no choice.
///
/// ```
/// use mcp_elicit_client::answer::cancel;
/// use mcp_elicit_client::core::answer::Outcome;
///
/// assert_eq!(cancel().into_outcome(), Outcome::Cancel);
/// ```
pub fn cancel() -> Answer {
    Outcome::Cancel.into()
}

/// Returns the defaults of the form's fields; empty in url mode.
///
/// ```
/// use mcp_elicit_client::Question;
/// use mcp_elicit_client::answer::get_defaults;
///
/// fn proposed_region(question: &Question) -> Option<String> {
///     get_defaults(question).get("region")?.as_str().map(str::to_owned)
/// }
/// ```
pub fn get_defaults(question: &Question) -> Map<String, Value> {
    question
        .form()
        .map(mcp_elicit_core::form::Form::defaults)
        .unwrap_or_default()
}

/// Returns the defaults, overridden by `partial` and checked; `None` in url mode.
///
/// ```
/// use mcp_elicit_client::Question;
/// use mcp_elicit_client::answer::apply_defaults;
///
/// /// The form's defaults, with another region.
/// fn fits(question: &Question, region: &str) -> bool {
///     let partial = serde_json::Map::from_iter([("region".to_owned(), region.into())]);
///     matches!(apply_defaults(question, partial), Ok(Some(_)))
/// }
/// ```
pub fn apply_defaults(
    question: &Question,
    partial: Map<String, Value>,
) -> Result<Option<Answers>, Violations> {
    question
        .form()
        .map(|form| form.with_defaults(partial))
        .transpose()
}

/// Accepts with the defaults if every required field has one; the error names the fields without one. In url mode a
/// default cannot agree to anything, so there is no answer.
///
/// ```
/// use mcp_elicit_client::answer::{Answer, accept_with_defaults, cancel};
/// use mcp_elicit_client::Question;
///
/// fn defaults_or_nothing(question: &Question) -> Answer {
///     match accept_with_defaults(question) {
///         Ok(Some(answer)) => answer,
///         _ => cancel(),
///     }
/// }
/// ```
pub fn accept_with_defaults(question: &Question) -> Result<Option<Answer>, Violations> {
    Ok(apply_defaults(question, Map::new())?.map(|answers| Outcome::Accept(answers).into()))
}

/// Returns every violation in this content, as [`accept`] does; empty if it answers the form.
///
/// ```
/// use mcp_elicit_client::Question;
/// use mcp_elicit_client::answer::validate;
///
/// fn problems(question: &Question, content: &serde_json::Value) -> String {
///     validate(question, content).to_string()
/// }
/// ```
pub fn validate(question: &Question, content: &Value) -> Violations {
    question
        .form()
        .and_then(|form| check_asked(form, content.clone()).err())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_s_reason_is_in_no_log() {
        let declined = decline("my boss is listening");
        assert_eq!(declined.reason(), Some("my boss is listening"));
        assert!(!format!("{declined:?}").contains("boss"), "{declined:?}");
    }
}
