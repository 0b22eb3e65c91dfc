//! The values of one decision. Each is created when a condition first reads it, and cached for later conditions.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use cel::Value;
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use cel::objects::{Key, Map, Opaque};

use super::ConditionError;
use super::arguments::ArgumentValue;
use super::comparison::Interner;
use crate::facts::{Facts, QuestionFacts};

/// The variables of conditions.
pub(super) const VARIABLES: [&str; 10] = [
    "caller",
    "groups",
    "server",
    "tool",
    "method",
    "annotations",
    "arguments",
    "question",
    "fields",
    "now",
];

/// A value for comparisons.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scalar<'a> {
    Text(&'a str),
    Int(i64),
    Bool(bool),
    /// Null, a list or an object.
    Other,
}

/// The values of one decision.
pub(crate) struct Environment<'f> {
    pub(crate) facts: &'f Facts<'f>,
    pub(crate) question: Option<&'f QuestionFacts>,
    names: &'f Interner,
    arguments: OnceLock<Option<ArgumentValue<'f>>>,
    values: [OnceLock<Option<Box<dyn Val>>>; VARIABLES.len()],
}

impl<'f> Environment<'f> {
    pub(crate) fn new(
        facts: &'f Facts<'f>,
        question: Option<&'f QuestionFacts>,
        names: &'f Interner,
    ) -> Self {
        Self {
            facts,
            question,
            names,
            arguments: OnceLock::new(),
            values: [const { OnceLock::new() }; VARIABLES.len()],
        }
    }

    fn arguments(&self) -> Option<&ArgumentValue<'f>> {
        self.arguments
            .get_or_init(|| {
                let call = self.facts.call?;
                ArgumentValue::arguments(call.arguments.unwrap_or("{}"))
            })
            .as_ref()
    }

    /// Returns the reason why a variable has no value.
    pub(super) fn missing(&self, name: &str) -> ConditionError {
        match name {
            "tool" | "method" | "annotations" | "arguments" if self.facts.call.is_none() => {
                ConditionError::UnknownCall
            }
            "arguments" => ConditionError::UnreadableArguments,
            name => ConditionError::Absent(name.to_owned()),
        }
    }

    /// Returns `true` if a path, by its number, is neither one of these unknown facts nor below one.
    pub(super) fn is_known(&self, path: usize, gaps: &[&'static str]) -> bool {
        let Some(path) = self.names.paths.get(path) else {
            return false;
        };
        let begins = |long: &[&str], short: &[&str]| long.starts_with(short);
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        !gaps.iter().any(|gap| {
            let gap: Vec<&str> = gap.split('.').collect();
            begins(&path, &gap) || begins(&gap, &path)
        })
    }

    /// Returns the value at a path, by its number; `None` if there is none, if it is unreadable, and for a fractional
    /// number.
    pub(super) fn scalar(&self, path: usize) -> Option<Scalar<'_>> {
        let path = self.names.paths.get(path)?;
        let (first, rest) = path.split_first()?;
        let caller = self.facts.caller;
        match (first.as_str(), rest) {
            ("server", []) => Some(Scalar::Text(self.facts.server)),
            ("tool", []) => self.facts.call.map(|call| Scalar::Text(call.target)),
            ("arguments", rest) => {
                let mut here = self.arguments()?;
                for name in rest {
                    here = here.member(name)?;
                }
                match here {
                    ArgumentValue::Text(text) => Some(Scalar::Text(text)),
                    ArgumentValue::Int(whole) => Some(Scalar::Int(*whole)),
                    ArgumentValue::Bool(truth) => Some(Scalar::Bool(*truth)),
                    ArgumentValue::Null | ArgumentValue::List(_) | ArgumentValue::Object(_) => {
                        Some(Scalar::Other)
                    }
                    ArgumentValue::Double(_) | ArgumentValue::Unreadable(_) => None,
                }
            }
            ("caller", [member]) => Some(Scalar::Text(match member.as_str() {
                "issuer" => &caller.issuer,
                "subject" => &caller.subject,
                "name" => &caller.name,
                "mail" => &caller.mail,
                "client" => &caller.client,
                "person" => &caller.person,
                "kind" => caller.kind.word(),
                _ => return None,
            })),
            ("question", [member]) => {
                let question = self.question?;
                match member.as_str() {
                    "mode" => Some(Scalar::Text(&question.mode)),
                    "host" => Some(Scalar::Text(&question.host)),
                    "credentials" => Some(Scalar::Bool(question.credentials)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the text at a path, by its number; `None` for anything else.
    pub(crate) fn text_at(&self, path: usize) -> Option<&str> {
        match self.scalar(path)? {
            Scalar::Text(text) => Some(text),
            Scalar::Int(_) | Scalar::Bool(_) | Scalar::Other => None,
        }
    }

    /// Creates the value of a variable.
    fn make(&self, name: &str) -> Option<Value> {
        let Facts {
            caller,
            groups,
            server,
            call,
            now,
        } = *self.facts;
        let text = |text: &str| Value::String(Arc::new(text.to_owned()));
        Some(match name {
            "caller" => record([
                ("issuer", text(&caller.issuer)),
                ("subject", text(&caller.subject)),
                ("name", text(&caller.name)),
                ("mail", text(&caller.mail)),
                ("client", text(&caller.client)),
                ("person", text(&caller.person)),
                ("kind", text(caller.kind.word())),
            ]),
            "groups" => Value::List(Arc::new(groups.iter().map(|group| text(group)).collect())),
            "server" => text(server),
            "tool" => text(call?.target),
            "method" => text(match call?.kind {
                mcp_elicit_core::wire::CallKind::Tool => "tools/call",
                mcp_elicit_core::wire::CallKind::Prompt => "prompts/get",
                mcp_elicit_core::wire::CallKind::Resource => "resources/read",
            }),
            "annotations" => {
                let annotations = call?.annotations;
                record([
                    ("readOnly", Value::Bool(annotations.read_only)),
                    ("destructive", Value::Bool(annotations.destructive)),
                    ("idempotent", Value::Bool(annotations.idempotent)),
                    ("openWorld", Value::Bool(annotations.open_world)),
                ])
            }
            "arguments" => value(self.arguments()?),
            "question" => {
                let question = self.question?;
                record([
                    ("mode", text(&question.mode)),
                    ("message", text(&question.message)),
                    ("host", text(&question.host)),
                    ("credentials", Value::Bool(question.credentials)),
                ])
            }
            "fields" => {
                let fields = self.question?.fields.iter().map(|(name, field)| {
                    let field = record([
                        ("kind", text(&field.kind)),
                        ("format", text(&field.format)),
                        ("required", Value::Bool(field.required)),
                        ("options", Value::Int(field.options)),
                    ]);
                    (Key::String(Arc::new(name.clone())), field)
                });
                Value::Map(Map {
                    map: Arc::new(fields.collect()),
                })
            }
            "now" => record([
                ("unix", Value::Int(now.unix)),
                ("hour", Value::Int(now.hour)),
                ("minute", Value::Int(now.minute)),
                ("weekday", Value::Int(now.weekday)),
                ("date", text(&now.date)),
            ]),
            _ => return None,
        })
    }
}

impl VariableResolver for Environment<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let number = VARIABLES.iter().position(|known| *known == variable)?;
        let value = self.values[number].get_or_init(|| self.make(variable)?.try_into().ok());
        value.as_deref().map(CowVal::Borrowed)
    }
}

fn record<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members
        .into_iter()
        .map(|(name, value)| (Key::String(Arc::new(name.to_owned())), value));
    Value::Map(Map {
        map: Arc::new(members.collect::<HashMap<_, _>>()),
    })
}

/// A value that CEL cannot represent: an error in every use.
#[derive(Debug, PartialEq, Eq)]
struct UnrepresentableValue(usize);

impl Opaque for UnrepresentableValue {
    fn runtime_type_name(&self) -> &'static str {
        "mcp_elicit.unreadable"
    }
}

fn value(json: &ArgumentValue<'_>) -> Value {
    match json {
        ArgumentValue::Null => Value::Null,
        ArgumentValue::Bool(truth) => Value::Bool(*truth),
        ArgumentValue::Int(whole) => Value::Int(*whole),
        ArgumentValue::Double(double) => Value::Float(*double),
        ArgumentValue::Text(text) => Value::String(Arc::new(text.clone().into_owned())),
        ArgumentValue::List(list) => Value::List(Arc::new(list.iter().map(value).collect())),
        ArgumentValue::Object(members) => {
            let members = members.iter().map(|(name, member)| {
                (
                    Key::String(Arc::new(name.clone().into_owned())),
                    value(member),
                )
            });
            Value::Map(Map {
                map: Arc::new(members.collect()),
            })
        }
        ArgumentValue::Unreadable(place) => Value::Opaque(Arc::new(UnrepresentableValue(*place))),
    }
}
