//! Prepared answers: in order, or by the names of fields.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::answer::{Action, Draft, DraftValue, Outcome};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::wire::Capability;
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use super::{RespondFuture, Responder, ResponderError, VisitFuture};
use crate::answer::{self, Answer};
use crate::question::Question;

/// Answers that a person has prepared.
///
/// An answer that breaks the form's rules is [`ResponderError::Refused`], which names the fields, and is not sent.
///
/// ```
/// use mcp_elicit_client::ClientSettings;
/// use mcp_elicit_client::responder::Script;
///
/// let script = Script::from_json(r#"[{ "action": "accept", "content": { "environment": "staging" } }]"#)?;
/// assert_eq!(script.left(), 1);
/// let settings = ClientSettings::default().responder(script);
/// # Ok::<(), mcp_elicit_client::responder::ScriptError>(())
/// ```
pub struct Script {
    source: Source,
    allow_credentials: bool,
}

enum Source {
    InOrder(InOrder),
    ByName(ByName),
    Always(Action),
}

struct InOrder {
    left: Mutex<VecDeque<Prepared>>,
    unknown: Mutex<BTreeSet<String>>,
}

struct Prepared {
    action: Action,
    content: Option<Value>,
}

struct ByName {
    typed: BTreeMap<String, String>,
    over_defaults: bool,
    used: Mutex<BTreeSet<String>>,
}

/// A list of answers that cannot be read.
///
/// ```
/// use mcp_elicit_client::responder::{Script, ScriptError};
///
/// let misspelt = Script::from_json(r#"[{ "action": "acept" }]"#);
/// assert!(matches!(misspelt, Err(ScriptError::Action { location: 1 })));
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The text is not a JSON list of `{"action", "content"}`.
    #[error("not a list of {{\"action\", \"content\"}} (line {line}, column {column})")]
    Shape {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// An action that is not accept, decline or cancel.
    #[error("answer {location}: the action must be accept, decline or cancel")]
    Action {
        /// The position in the list, from 1.
        location: usize,
    },
    /// Content that is not an object, or that accompanies an action other than accept.
    #[error("answer {location}: content must be an object, and is allowed only with accept")]
    Content {
        /// The position in the list, from 1.
        location: usize,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    action: String,
    content: Option<Value>,
}

impl Script {
    fn new(source: Source) -> Self {
        Self {
            source,
            allow_credentials: false,
        }
    }

    /// Reads a JSON list of `{"action", "content"}`, used in order.
    ///
    /// ```
    /// use mcp_elicit_client::responder::Script;
    ///
    /// let script = Script::from_json(r#"[{ "action": "decline" }, { "action": "cancel" }]"#)?;
    /// assert_eq!(script.left(), 2);
    /// # Ok::<(), mcp_elicit_client::responder::ScriptError>(())
    /// ```
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        let written: Vec<Written> =
            serde_json::from_str(text).map_err(|error| ScriptError::Shape {
                line: error.line(),
                column: error.column(),
            })?;
        let prepared = written.into_iter().zip(1..).map(|(written, location)| {
            let action = written
                .action
                .parse::<Action>()
                .map_err(|_| ScriptError::Action { location })?;
            match (action, &written.content) {
                (_, None) | (Action::Accept, Some(Value::Object(_))) => {}
                _ => return Err(ScriptError::Content { location }),
            }
            Ok(Prepared {
                action,
                content: written.content,
            })
        });
        Ok(Self::new(Source::InOrder(InOrder {
            left: Mutex::new(prepared.collect::<Result<_, _>>()?),
            unknown: Mutex::default(),
        })))
    }

    /// Creates a script from values by the names of fields, as a person would type them. They answer every form that
    /// has one of the fields, and every form without fields.
    ///
    /// ```
    /// use mcp_elicit_client::responder::Script;
    ///
    /// let script = Script::by_name([("environment".to_owned(), "staging".to_owned())]);
    /// assert_eq!(script.unused(), ["environment"]);
    /// ```
    pub fn by_name(values: impl IntoIterator<Item = (String, String)>) -> Self {
        Self::new(Source::ByName(ByName {
            typed: values.into_iter().collect(),
            over_defaults: false,
            used: Mutex::default(),
        }))
    }

    /// Creates a script that accepts the form's defaults, overridden by values by the names of fields.
    ///
    /// ```
    /// use mcp_elicit_client::responder::Script;
    ///
    /// let script = Script::over_defaults([("environment".to_owned(), "staging".to_owned())]);
    /// # let _ = script;
    /// ```
    pub fn over_defaults(values: impl IntoIterator<Item = (String, String)>) -> Self {
        Self::new(Source::ByName(ByName {
            typed: values.into_iter().collect(),
            over_defaults: true,
            used: Mutex::default(),
        }))
    }

    /// Creates a script that declines every question, as the person decided beforehand.
    ///
    /// ```
    /// use mcp_elicit_client::ClientSettings;
    /// use mcp_elicit_client::responder::Script;
    ///
    /// let settings = ClientSettings::default().responder(Script::decline());
    /// ```
    pub fn decline() -> Self {
        Self::new(Source::Always(Action::Decline))
    }

    /// Creates a script that cancels every question, as the person decided beforehand.
    ///
    /// ```
    /// use mcp_elicit_client::ClientSettings;
    /// use mcp_elicit_client::responder::Script;
    ///
    /// let settings = ClientSettings::default().responder(Script::cancel());
    /// ```
    pub fn cancel() -> Self {
        Self::new(Source::Always(Action::Cancel))
    }

    /// Allows answers to forms that seem to ask for a credential.
    ///
    /// ```
    /// use mcp_elicit_client::responder::Script;
    ///
    /// let script = Script::by_name([("password".to_owned(), "from the environment".to_owned())]).allow_credentials();
    /// # let _ = script;
    /// ```
    #[must_use]
    pub fn allow_credentials(mut self) -> Self {
        self.allow_credentials = true;
        self
    }

    /// Returns the number of unused answers in the list.
    ///
    /// ```
    /// use mcp_elicit_client::responder::Script;
    ///
    /// assert_eq!(Script::decline().left(), 0);
    /// ```
    pub fn left(&self) -> usize {
        match &self.source {
            Source::InOrder(in_order) => in_order.left().len(),
            Source::ByName(_) | Source::Always(_) => 0,
        }
    }

    /// Returns the unused names, which no form had or not the intended one: probably misspelt.
    ///
    /// ```
    /// use mcp_elicit_client::responder::Script;
    ///
    /// let script = Script::by_name([("enviroment".to_owned(), "staging".to_owned())]);
    /// // After the calls: no form had a field of this name.
    /// assert_eq!(script.unused(), ["enviroment"]);
    /// ```
    pub fn unused(&self) -> Vec<String> {
        match &self.source {
            Source::ByName(by_name) => {
                let used = by_name.used.lock().unwrap_or_else(PoisonError::into_inner);
                by_name
                    .typed
                    .keys()
                    .filter(|name| !used.contains(*name))
                    .cloned()
                    .collect()
            }
            Source::InOrder(in_order) => {
                let unknown = in_order.unknown.lock();
                let unknown = unknown.unwrap_or_else(PoisonError::into_inner);
                unknown.iter().cloned().collect()
            }
            Source::Always(_) => Vec::new(),
        }
    }

    fn answer(&self, question: &Question) -> Result<Answer, ResponderError> {
        match &self.source {
            Source::Always(action) => act(question, *action, None),
            Source::InOrder(in_order) => in_order.answer(question),
            Source::ByName(by_name) => match question.form() {
                Some(form) => by_name.answer(form),
                None => Err(ResponderError::cannot_show(
                    "values by name answer forms, not URLs",
                )),
            },
        }
    }
}

fn act(
    question: &Question,
    action: Action,
    content: Option<Value>,
) -> Result<Answer, ResponderError> {
    match action {
        Action::Accept => {
            let content = content.unwrap_or_else(|| Value::Object(Map::new()));
            question
                .accept(content)
                .map_err(|violations| ResponderError::Refused { violations })
        }
        Action::Decline => Ok(answer::decline(None)),
        Action::Cancel => Ok(answer::cancel()),
    }
}

impl InOrder {
    fn left(&self) -> MutexGuard<'_, VecDeque<Prepared>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, question: &Question) -> Result<Answer, ResponderError> {
        let next = self.left().pop_front().ok_or(ResponderError::Exhausted)?;
        if let (Some(form), Some(Value::Object(content))) = (question.form(), &next.content) {
            let names = content.keys().filter(|name| form.field(name).is_none());
            let unknown = self.unknown.lock();
            let mut unknown = unknown.unwrap_or_else(PoisonError::into_inner);
            unknown.extend(names.cloned());
        }
        act(question, next.action, next.content)
    }
}

impl ByName {
    fn answer(&self, form: &Form) -> Result<Answer, ResponderError> {
        let named: Vec<_> = self
            .typed
            .iter()
            .filter(|(name, _)| form.field(name).is_some())
            .collect();
        if named.is_empty() && !form.fields().is_empty() && !self.over_defaults {
            return Err(ResponderError::Exhausted);
        }
        self.used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(named.iter().map(|(name, _)| (*name).clone()));
        let mut draft = if self.over_defaults {
            Draft::for_form(form)
        } else {
            Draft::new()
        };
        for (name, text) in &named {
            draft.set(name, DraftValue::Text((*text).clone()));
        }
        match form.read(&draft) {
            Ok(answers) => Ok(Outcome::Accept(answers).into()),
            Err(violations) if named.is_empty() => Err(ResponderError::NoDefaults { violations }),
            Err(violations) => Err(ResponderError::Refused { violations }),
        }
    }
}

/// Hides the prepared values from logs.
impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.source {
            Source::InOrder(_) => f.write_str("Script(in order)"),
            Source::ByName(by_name) => f
                .debug_tuple("Script")
                .field(&by_name.typed.keys())
                .finish(),
            Source::Always(action) => f.debug_tuple("Script").field(action).finish(),
        }
    }
}

impl Responder for Script {
    fn name(&self) -> Cow<'static, str> {
        "script".into()
    }

    fn modes(&self) -> Capability {
        match &self.source {
            Source::InOrder(_) | Source::Always(_) => Capability::BOTH,
            Source::ByName(_) => Capability::FORM,
        }
    }

    fn respond<'a>(&'a self, question: &'a Question) -> RespondFuture<'a> {
        Box::pin(async move {
            let answer = self.answer(question)?;
            Ok(if self.allow_credentials {
                answer.allow_credentials()
            } else {
                answer
            })
        })
    }

    /// Returns a scripted answer does not wait for a person.
    fn visited<'a>(&'a self, _hosts: &'a [String]) -> VisitFuture<'a> {
        Box::pin(std::future::ready(Ok(())))
    }
}
