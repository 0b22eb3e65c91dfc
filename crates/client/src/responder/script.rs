//! Prepared answers: in order, or by the names of fields.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::answer::{
    Action, Draft, DraftValue, NotAsked, OptionFields, Outcome, asked_content, option_fields,
    typed_options,
};
use mcp_elicit_core::form::{Field, Form, Kind};
use mcp_elicit_core::wire::Capability;
use serde_json::{Map, Value};
use thiserror::Error;

use super::names::is_misspelt;
use super::{RespondFuture, Responder, ResponderError, VisitFuture};
use crate::answer::{self, Answer};
use crate::question::Question;

/// Answers that a person has prepared.
///
/// An answer that breaks the form's rules is [`ResponderError::Refused`], which names the fields, and is not sent. Nor is
/// one with a value that the form does not ask for: [`ResponderError::NotAsked`]. A list of options is spread over the
/// yes-or-no fields in which a server asks it on a revision without lists.
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
    source: AnswerSource,
    allow_credentials: bool,
}

enum AnswerSource {
    InOrder(AnswersInOrder),
    ByName(ByName),
    Always(Action),
}

struct AnswersInOrder {
    left: Mutex<VecDeque<NumberedAnswer>>,
}

struct NumberedAnswer {
    /// The position in the list, from 1.
    location: usize,
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
    /// A member that an answer does not have: its part of the answer would be lost.
    #[error("answer {location}: it has a member {name:?}; an answer has `action` and `content`")]
    Member {
        /// The position in the list, from 1.
        location: usize,
        /// The name of the member.
        name: String,
    },
    /// Content that is not an object, or that accompanies an action other than accept.
    #[error("answer {location}: content must be an object, and is allowed only with accept")]
    Content {
        /// The position in the list, from 1.
        location: usize,
    },
}

impl Script {
    fn new(source: AnswerSource) -> Self {
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
        let written: Vec<Map<String, Value>> =
            serde_json::from_str(text).map_err(|error| ScriptError::Shape {
                line: error.line(),
                column: error.column(),
            })?;
        let prepared = written
            .into_iter()
            .zip(1..)
            .map(|(written, location)| prepared(written, location));
        Ok(Self::new(AnswerSource::InOrder(AnswersInOrder {
            left: Mutex::new(prepared.collect::<Result<_, _>>()?),
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
        Self::new(AnswerSource::ByName(ByName {
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
        Self::new(AnswerSource::ByName(ByName {
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
        Self::new(AnswerSource::Always(Action::Decline))
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
        Self::new(AnswerSource::Always(Action::Cancel))
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
            AnswerSource::InOrder(in_order) => in_order.left().len(),
            AnswerSource::ByName(_) | AnswerSource::Always(_) => 0,
        }
    }

    /// Returns the names that no form has used, which are probably misspelt.
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
            AnswerSource::ByName(by_name) => {
                let used = by_name.used.lock().unwrap_or_else(PoisonError::into_inner);
                by_name
                    .typed
                    .keys()
                    .filter(|name| !used.contains(*name))
                    .cloned()
                    .collect()
            }
            AnswerSource::InOrder(_) | AnswerSource::Always(_) => Vec::new(),
        }
    }

    fn answer(&self, question: &Question) -> Result<Answer, ResponderError> {
        match &self.source {
            AnswerSource::Always(action) => act(question, *action, None),
            AnswerSource::InOrder(in_order) => in_order.answer(question),
            AnswerSource::ByName(by_name) => match question.form() {
                Some(form) => by_name.answer(form),
                None => Err(ResponderError::cannot_show(
                    "values by name answer forms, not URLs",
                )),
            },
        }
    }
}

/// Reads the answer at this position of a list.
fn prepared(
    mut written: Map<String, Value>,
    location: usize,
) -> Result<NumberedAnswer, ScriptError> {
    let action = written.remove("action");
    let content = written
        .remove("content")
        .filter(|content| !content.is_null());
    if let Some(name) = written.keys().next() {
        let name = name.clone();
        return Err(ScriptError::Member { location, name });
    }
    let action = action.as_ref().and_then(Value::as_str);
    let action = action.and_then(|action| action.parse::<Action>().ok());
    let action = action.ok_or(ScriptError::Action { location })?;
    match (action, &content) {
        (_, None) | (Action::Accept, Some(Value::Object(_))) => Ok(NumberedAnswer {
            location,
            action,
            content,
        }),
        _ => Err(ScriptError::Content { location }),
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
        Action::Decline => Ok(answer::declined()),
        Action::Cancel => Ok(answer::cancel()),
    }
}

impl AnswersInOrder {
    fn left(&self) -> MutexGuard<'_, VecDeque<NumberedAnswer>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, question: &Question) -> Result<Answer, ResponderError> {
        let next = self.left().pop_front().ok_or(ResponderError::Exhausted)?;
        let content = match (question.form(), next.content) {
            (Some(form), Some(Value::Object(content))) => {
                let content = asked_content(form, content);
                let content = content.map_err(|why| {
                    let why = not_asked(form, why);
                    ResponderError::NotAsked {
                        why: format!("in answer {} of the list, {why}", next.location),
                    }
                })?;
                Some(Value::Object(content))
            }
            (_, content) => content,
        };
        act(question, next.action, content)
    }
}

impl ByName {
    fn answer(&self, form: &Form) -> Result<Answer, ResponderError> {
        let named: Vec<_> = self
            .typed
            .iter()
            .filter(|(name, _)| form.field(name).is_some())
            .collect();
        let spread = self.lists(form)?;
        self.refuse_misspelt(form, &spread)?;
        if named.is_empty() && spread.is_empty() && !form.fields().is_empty() && !self.over_defaults
        {
            return Err(ResponderError::Exhausted);
        }
        self.used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(
                named
                    .iter()
                    .map(|(name, _)| (*name).clone())
                    .chain(spread.iter().map(|(name, _)| (*name).to_owned())),
            );
        let mut draft = if self.over_defaults {
            Draft::for_form(form)
        } else {
            Draft::new()
        };
        for (field, is_picked) in spread.iter().flat_map(|(_, fields)| fields) {
            draft.set(field, DraftValue::Flag(*is_picked));
        }
        for (name, text) in &named {
            let is_list = form
                .field(name)
                .is_some_and(|field| matches!(field.kind(), Kind::Choices(_)));
            // Nothing typed for a list means none of its options, as on the screen.
            let typed = if is_list && text.trim().is_empty() {
                DraftValue::Picked(Vec::new())
            } else {
                DraftValue::Text((*text).clone())
            };
            draft.set(name, typed);
        }
        match form.read(&draft) {
            Ok(answers) => Ok(Outcome::Accept(answers).into()),
            Err(violations) if named.is_empty() && spread.is_empty() => {
                Err(ResponderError::NoDefaults { violations })
            }
            Err(violations) => Err(ResponderError::Refused { violations }),
        }
    }
}

type ListFields<'n> = (&'n str, Vec<(String, bool)>);

impl ByName {
    /// Returns the lists of options that this form asks as one field for each option.
    fn lists(&self, form: &Form) -> Result<Vec<ListFields<'_>>, ResponderError> {
        let mut all = Vec::new();
        for (name, text) in &self.typed {
            match option_fields(form, name, &typed_options(text)) {
                OptionFields::Unknown => {}
                OptionFields::Fields(fields) => all.push((name.as_str(), fields)),
                OptionFields::NoSuchOption(options) => {
                    let why = no_such_option(name, &options);
                    return Err(ResponderError::NotAsked { why });
                }
            }
        }
        Ok(all)
    }

    /// Refuses a name that no form has had and that seems to be a misspelt field without an answer: the call would go on
    /// without that answer.
    fn refuse_misspelt(
        &self,
        form: &Form,
        spread: &[ListFields<'_>],
    ) -> Result<(), ResponderError> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let strange = self.typed.keys().filter(|name| {
            form.field(name).is_none()
                && !used.contains(*name)
                && spread.iter().all(|(known, _)| known != name)
        });
        for name in strange {
            let open = form.fields().iter().map(Field::name);
            let mut open = open.filter(|field| !self.typed.contains_key(*field));
            if let Some(field) = open.find(|field| is_misspelt(name, field)) {
                let why = format!("the form has no field {name:?}; its field is {field:?}");
                return Err(ResponderError::NotAsked { why });
            }
        }
        Ok(())
    }
}

/// Returns the reason why content is not sent, with names and without values.
fn not_asked(form: &Form, why: NotAsked) -> String {
    let unknown = match why {
        NotAsked::Option { name, options } => return no_such_option(&name, &options),
        NotAsked::Fields(unknown) => unknown,
    };
    let quoted = |name: &str| format!("{name:?}");
    let unknown: Vec<_> = unknown.iter().map(|name| quoted(name)).collect();
    let fields: Vec<_> = form
        .fields()
        .iter()
        .map(|field| quoted(field.name()))
        .collect();
    let fields = match fields.join(", ") {
        fields if fields.is_empty() => "it has none".to_owned(),
        fields => format!("its fields are {fields}"),
    };
    format!("the form has no field {}; {fields}", unknown.join(", "))
}

fn no_such_option(name: &str, options: &[String]) -> String {
    format!("the options of {name:?} are {}", options.join(", "))
}

/// Hides the prepared values from logs.
impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.source {
            AnswerSource::InOrder(_) => f.write_str("Script(in order)"),
            AnswerSource::ByName(by_name) => f
                .debug_tuple("Script")
                .field(&by_name.typed.keys())
                .finish(),
            AnswerSource::Always(action) => f.debug_tuple("Script").field(action).finish(),
        }
    }
}

impl Responder for Script {
    fn name(&self) -> Cow<'static, str> {
        "script".into()
    }

    fn modes(&self) -> Capability {
        match &self.source {
            AnswerSource::InOrder(_) | AnswerSource::Always(_) => Capability::BOTH,
            AnswerSource::ByName(_) => Capability::FORM,
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
