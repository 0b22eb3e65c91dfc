//! The response to a question: `ElicitResult`, in both eras.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::WireError;
use super::members::{self, Members};
use super::revision::Mode;
use crate::answer::{Answers, CheckError, Outcome, judge};
use crate::form::Form;

/// A person's action on a question. Only a person causes one: a timeout or a crash never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Form: submitted. Url: agreed to open it, which does not mean that the visit is done.
    Accept,
    /// The person said no.
    Decline,
    /// Dismissed the question without a choice.
    Cancel,
}

impl Action {
    /// Returns the action as it is written on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Action {
    type Err = WireError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "accept" => Ok(Self::Accept),
            "decline" => Ok(Self::Decline),
            "cancel" => Ok(Self::Cancel),
            _ => Err(WireError::UnknownAction),
        }
    }
}

/// An `ElicitResult` on the wire. Its content is unchecked: `Form::check` turns it into answers.
#[derive(Clone)]
pub struct ElicitResult {
    action: Action,
    content: Option<Box<RawValue>>,
    dropped_content: bool,
}

impl ElicitResult {
    /// Reads an `ElicitResult` that answers a question of `mode`.
    ///
    /// - An action other than accept, decline or cancel is [`WireError::UnknownAction`], never treated as another.
    /// - `content` that is not an object is an error where it counts; `null` and `[]` count as absent.
    /// - A form accepted without content keeps none: [`ElicitResult::content_or_empty`] returns `{}`, which is an error
    ///   in a form with required fields and valid in one without.
    /// - Content on decline, on cancel, and in url mode has no meaning: it is dropped, and
    ///   [`ElicitResult::dropped_content`] returns `true`. The same applies to `null`, which some servers refuse.
    pub fn parse(result: &RawValue, mode: Mode) -> Result<Self, WireError> {
        let members = Members::read(result, "result")?;
        members.refuse_like(&["action", "content"], "result")?;
        let action: Action = members.need_text("action")?.parse()?;
        let written = members.get("content");
        let content = written.filter(|content| !members::is_null(content));
        match (action, mode, content) {
            // PHP writes an empty object so. It is not sent on.
            (Action::Accept, Mode::Form, Some(content)) if members::is_empty_list(content) => {
                Ok(Self {
                    action,
                    content: None,
                    dropped_content: true,
                })
            }
            (Action::Accept, Mode::Form, Some(_)) => {
                let content = members.need_object("content")?;
                members::within_depth(content, "content")?;
                Ok(Self {
                    action,
                    content: Some(content.to_owned()),
                    dropped_content: false,
                })
            }
            (Action::Accept | Action::Decline | Action::Cancel, Mode::Form | Mode::Url, _) => {
                Ok(Self {
                    action,
                    content: None,
                    dropped_content: written.is_some(),
                })
            }
        }
    }

    /// Reads a result that was built as a value, as SDK types are.
    pub fn from_value(result: &Value, mode: Mode) -> Result<Self, WireError> {
        // Nearly every answer; reading it here saves writing and parsing text.
        if mode == Mode::Form
            && result["action"] == Action::Accept.as_str()
            && let Some(content @ Value::Object(_)) = result.get("content")
        {
            let content = members::raw_value(content);
            members::within_depth(&content, "content")?;
            return Ok(Self {
                action: Action::Accept,
                content: Some(content),
                dropped_content: false,
            });
        }
        Self::parse(&members::raw_value(result), mode)
    }

    /// Creates the accept of a form with its content, an object.
    pub fn accept(content: &Value) -> Self {
        Self {
            action: Action::Accept,
            content: Some(members::raw_value(content)),
            dropped_content: false,
        }
    }

    /// Creates a result without content: a decline, a cancel, or the accept of a URL.
    pub fn bare(action: Action) -> Self {
        Self {
            action,
            content: None,
            dropped_content: false,
        }
    }

    /// Returns the outcome of a form question: the checked content, or the refusal.
    pub fn against(&self, form: &Form) -> Result<Outcome, CheckError> {
        self.outcome(Some(form))
    }

    /// Returns the outcome of a question, with its form in form mode.
    ///
    /// # Errors
    /// If the content of an accepted form does not answer the form.
    pub fn outcome(&self, form: Option<&Form>) -> Result<Outcome, CheckError> {
        judge(form, self.action, self.content_or_empty())
    }

    /// Returns the outcome of a url question.
    pub fn visited(&self) -> Outcome {
        match self.action {
            Action::Accept => Outcome::Visit,
            Action::Decline => Outcome::Decline,
            Action::Cancel => Outcome::Cancel,
        }
    }

    /// Returns the person's action.
    pub fn action(&self) -> Action {
        self.action
    }

    /// Returns the content of an accepted form, as written and unchecked.
    pub fn content(&self) -> Option<&RawValue> {
        self.content.as_deref()
    }

    /// Returns the content's text, or `{}` if there is none, for the form's check.
    pub fn content_or_empty(&self) -> &str {
        self.content.as_deref().map_or("{}", RawValue::get)
    }

    /// Returns `true` if meaningless content was dropped. Worth a log entry, without the content.
    pub fn dropped_content(&self) -> bool {
        self.dropped_content
    }

    /// Returns the `ElicitResult` as text. Every revision spells it the same way.
    pub fn to_raw(&self) -> Box<RawValue> {
        let action = members::raw_text(self.action.as_str());
        let content = self.content.as_deref().map(|content| ("content", content));
        members::object([("action", &*action)].into_iter().chain(content))
    }

    /// Returns the `ElicitResult` as a value. Content passed to [`ElicitResult::accept`] that is nested deeper than a
    /// value may be (no form has more than two levels) is omitted.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.to_raw().get())
            .unwrap_or_else(|_| serde_json::json!({ "action": self.action.as_str() }))
    }
}

impl From<&Outcome> for ElicitResult {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Accept(answers) => Self {
                action: Action::Accept,
                content: Some(members::raw(content_text(answers))),
                dropped_content: false,
            },
            Outcome::Visit | Outcome::Decline | Outcome::Cancel => Self::bare(outcome.action()),
        }
    }
}

/// Returns the content in the spelling that is sent.
fn content_text(answers: &Answers) -> String {
    serde_json::to_string(answers).expect("checked values, written to memory")
}

impl fmt::Debug for ElicitResult {
    /// Hides the content, which is a person's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElicitResult")
            .field("action", &self.action)
            .field("content", &self.content.as_ref().map(|_| "(masked)"))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
