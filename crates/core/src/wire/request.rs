//! The question of a server: the params of `elicitation/create`, in both eras.

mod schema_names;

use std::fmt;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::capability::Capability;
use super::error::WireError;
use super::members::{self, Members};
use super::method;
use super::revision::{Mode, Revision};

/// The longest `elicitationId`, in bytes.
const MAX_ELICITATION_ID: usize = 1_024;

/// One question on the wire. The form inside is not parsed here; `Form` does that.
#[derive(Clone)]
pub enum ElicitRequest {
    /// Fill in a form.
    Form {
        /// The reason for the question, for the person.
        message: String,
        /// `requestedSchema` as written.
        schema: Box<RawValue>,
    },
    /// Visit a URL.
    Url {
        /// The reason for the question, for the person.
        message: String,
        /// The URL as written, not checked here; `Link` does that.
        url: String,
        /// `elicitationId`, which 2025-11-25 requires and no other revision has. One that is read has at most 1,024
        /// bytes.
        elicitation_id: Option<String>,
    },
}

/// A question that the revision cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedQuestion {
    /// Url mode before 2025-11-25.
    #[error("{revision} has no url mode")]
    UrlMode {
        /// The revision.
        revision: Revision,
    },
    /// A form in -32042, which may list only URLs.
    #[error("only url questions may be listed in the error that requires them")]
    FormInUrlRequired,
    /// A schema nested deeper than any form.
    #[error("the schema is nested deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A url question without an `elicitationId`, which 2025-11-25 requires.
    #[error("a url question needs an elicitationId on {revision}")]
    NoElicitationId {
        /// The revision.
        revision: Revision,
    },
}

impl ElicitRequest {
    /// The members of the params that any revision has.
    pub const MEMBERS: [&str; 8] = [
        "mode",
        "message",
        "requestedSchema",
        // Written by mistake in place of `requestedSchema`.
        "schema",
        "url",
        "elicitationId",
        "task",
        "_meta",
    ];

    /// Reads the params of `elicitation/create` as `revision` defines them.
    ///
    /// An absent `mode` means form (2025-11-25, elicitation). On 2025-06-18 a `mode` of form is ignored, since real
    /// servers send it, and url is [`WireError::ModeNotInRevision`]. `elicitationId` is required on 2025-11-25 and
    /// ignored on 2026-07-28, which removed it.
    pub fn parse(params: &RawValue, revision: Revision) -> Result<Self, WireError> {
        Self::from_members(&Members::read(params, "params")?, revision)
    }

    /// Like [`ElicitRequest::parse`], from the members of the params.
    pub fn from_members(members: &Members<'_>, revision: Revision) -> Result<Self, WireError> {
        members.refuse_like(&Self::MEMBERS, "params")?;
        let mode = read_mode(members)?;
        if !revision.has_mode(mode) {
            return Err(WireError::ModeNotInRevision { mode, revision });
        }
        refuse_other_mode(members, mode)?;
        let message = members.need_text("message")?.into_owned();
        match mode {
            Mode::Form => {
                let schema = read_schema(members)?;
                members::within(members::MAX_SCHEMA_DEPTH, &schema, "requestedSchema")?;
                schema_names::refuse_like(&schema)?;
                Ok(Self::Form { message, schema })
            }
            Mode::Url => Ok(Self::Url {
                message,
                url: members.need_text("url")?.into_owned(),
                elicitation_id: read_elicitation_id(members, revision)?,
            }),
        }
    }

    /// Reads params that were built as a value, as SDK types are.
    pub fn from_value(params: &Value, revision: Revision) -> Result<Self, WireError> {
        Self::parse(&members::raw_value(params), revision)
    }

    /// Creates a form question.
    pub fn form(message: impl Into<String>, schema: &Value) -> Self {
        Self::Form {
            message: message.into(),
            schema: members::raw_value(schema),
        }
    }

    /// Returns the result of [`to_params`](Self::to_params) for a form question whose schema is already a value,
    /// without an intermediate JSON text.
    pub fn form_params(message: impl Into<String>, schema: Value, revision: Revision) -> Value {
        let mut params = Map::with_capacity(3);
        if revision.has_mode(Mode::Url) {
            params.insert("mode".to_owned(), Mode::Form.as_str().into());
        }
        params.insert("message".to_owned(), message.into().into());
        params.insert("requestedSchema".to_owned(), schema);
        Value::Object(params)
    }

    /// Returns the mode.
    pub fn mode(&self) -> Mode {
        match self {
            Self::Form { .. } => Mode::Form,
            Self::Url { .. } => Mode::Url,
        }
    }

    /// Returns the message for the person.
    pub fn message(&self) -> &str {
        match self {
            Self::Form { message, .. } | Self::Url { message, .. } => message,
        }
    }

    /// Returns the capability that a client needs for this question.
    pub fn needed(&self) -> Capability {
        Capability::needed(self.mode())
    }

    /// Returns the params as `revision` spells them: no `mode` on 2025-06-18, `elicitationId` on 2025-11-25 only. The
    /// schema is unchanged; `Form::emit` finds the parts that the revision cannot express.
    pub fn to_params(&self, revision: Revision) -> Result<Value, UnsupportedQuestion> {
        let raw = self.to_raw_params(revision)?;
        serde_json::from_str(raw.get()).map_err(|_| UnsupportedQuestion::TooDeep {
            limit: members::MAX_SCHEMA_DEPTH,
        })
    }

    /// Like [`ElicitRequest::to_params`], as raw JSON with the schema's bytes unchanged.
    pub fn to_raw_params(&self, revision: Revision) -> Result<Box<RawValue>, UnsupportedQuestion> {
        Ok(members::raw(self.to_params_text(revision)?))
    }

    /// Like [`ElicitRequest::to_params`], as text with the schema's bytes unchanged.
    pub fn to_params_text(&self, revision: Revision) -> Result<String, UnsupportedQuestion> {
        if !revision.has_mode(self.mode()) {
            return Err(UnsupportedQuestion::UrlMode { revision });
        }
        let mode = members::raw_text(self.mode().as_str());
        let message = members::raw_text(self.message());
        let mut params: Vec<(&str, &RawValue)> = Vec::with_capacity(4);
        if revision.has_mode(Mode::Url) {
            params.push(("mode", &mode));
        }
        params.push(("message", &message));
        match self {
            Self::Form { schema, .. } => {
                params.push(("requestedSchema", schema));
                Ok(members::object_text(params))
            }
            Self::Url {
                url,
                elicitation_id,
                ..
            } => {
                let url = members::raw_text(url);
                params.push(("url", &url));
                let id = url_id(elicitation_id.as_deref(), revision)?;
                params.extend(id.as_deref().map(|id| ("elicitationId", id)));
                Ok(members::object_text(params))
            }
        }
    }

    /// Returns the question as an input request of the rounds era: `{"method": "elicitation/create", "params": ...}`.
    pub fn to_input_request(
        &self,
        revision: Revision,
    ) -> Result<Box<RawValue>, UnsupportedQuestion> {
        let params = self.to_raw_params(revision)?;
        let method = members::raw_text(method::CREATE);
        Ok(members::object([
            ("method", &*method),
            ("params", &*params),
        ]))
    }
}

/// Returns the schema as it is written. Servers also send none, null, an empty list for an empty object, and the member
/// `schema`: an absent schema is that of a confirmation.
fn read_schema(members: &Members<'_>) -> Result<Box<RawValue>, WireError> {
    let there = |name| members.get(name).filter(|value| !members::is_null(value));
    match there("requestedSchema") {
        None if there("schema").is_some() => Ok(members.need_object("schema")?.to_owned()),
        None => Ok(members::raw_value(&Value::Object(Map::new()))),
        Some(value) if members::is_empty_list(value) => {
            Ok(members::raw_value(&Value::Object(Map::new())))
        }
        // A schema of JSON Schema, and no form: only a client can show it.
        Some(value) if members::is_boolean(value) => Ok(value.to_owned()),
        Some(_) => Ok(members.need_object("requestedSchema")?.to_owned()),
    }
}

fn read_mode(members: &Members<'_>) -> Result<Mode, WireError> {
    match members.text("mode")?.as_deref() {
        None | Some("form") => Ok(Mode::Form),
        Some("url") => Ok(Mode::Url),
        Some(_) => Err(WireError::UnknownMode),
    }
}

/// Rejects the members that only the other mode has. Readers that do not check `mode` first would take the question for
/// one of that mode.
fn refuse_other_mode(members: &Members<'_>, mode: Mode) -> Result<(), WireError> {
    let others: &[&'static str] = match mode {
        Mode::Form => &["url", "elicitationId"],
        Mode::Url => &["requestedSchema"],
    };
    let is_there = |name: &&&str| {
        members
            .get(name)
            .is_some_and(|value| !members::is_null(value))
    };
    match others.iter().find(is_there) {
        Some(member) => Err(WireError::OtherMode { mode, member }),
        None => Ok(()),
    }
}

fn read_elicitation_id(
    members: &Members<'_>,
    revision: Revision,
) -> Result<Option<String>, WireError> {
    match revision {
        Revision::V2025_11_25 => {
            let id = need_elicitation_id(members)?;
            if id.is_empty() {
                return Err(WireError::Type {
                    member: "elicitationId",
                    expected: "a string that is not empty",
                });
            }
            Ok(Some(id))
        }
        Revision::V2025_06_18 | Revision::V2026_07_28 => Ok(None),
    }
}

/// Returns `elicitationId`, which is kept with its question and therefore bounded.
pub(super) fn need_elicitation_id(members: &Members<'_>) -> Result<String, WireError> {
    let id = members.need_text("elicitationId")?;
    if id.len() > MAX_ELICITATION_ID {
        return Err(WireError::Type {
            member: "elicitationId",
            expected: "a string of at most 1,024 bytes",
        });
    }
    Ok(id.into_owned())
}

fn url_id(
    id: Option<&str>,
    revision: Revision,
) -> Result<Option<Box<RawValue>>, UnsupportedQuestion> {
    match (revision, id) {
        (Revision::V2025_11_25, Some(id)) if !id.is_empty() => Ok(Some(members::raw_text(id))),
        (Revision::V2025_11_25, _) => Err(UnsupportedQuestion::NoElicitationId { revision }),
        (Revision::V2025_06_18 | Revision::V2026_07_28, _) => Ok(None),
    }
}

impl PartialEq for ElicitRequest {
    /// Equal if every part is, the schema byte for byte.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Form { message, schema },
                Self::Form {
                    message: message2,
                    schema: schema2,
                },
            ) => message == message2 && schema.get() == schema2.get(),
            (
                Self::Url {
                    message,
                    url,
                    elicitation_id,
                },
                Self::Url {
                    message: message2,
                    url: url2,
                    elicitation_id: id2,
                },
            ) => message == message2 && url == url2 && elicitation_id == id2,
            (Self::Form { .. }, Self::Url { .. }) | (Self::Url { .. }, Self::Form { .. }) => false,
        }
    }
}

impl Eq for ElicitRequest {}

impl fmt::Debug for ElicitRequest {
    /// Formats the question without its URL, which may contain a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form { message, schema } => f
                .debug_struct("Form")
                .field("message", message)
                .field("schema", &schema.get())
                .finish(),
            Self::Url {
                message,
                elicitation_id,
                ..
            } => f
                .debug_struct("Url")
                .field("message", message)
                .field("elicitation_id", elicitation_id)
                .finish_non_exhaustive(),
        }
    }
}

#[cfg(test)]
mod tests;
