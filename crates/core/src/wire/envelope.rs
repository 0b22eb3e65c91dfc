//! One JSON-RPC message, classified in one pass over its bytes without parsing its content.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::WireError;
use super::id::Id;
use super::members::{self, Members};
use super::method;

/// The largest message read by default, in bytes (8 MiB).
pub const MAX_MESSAGE: usize = 8 * 1024 * 1024;

/// A JSON-RPC 2.0 message, borrowed from its text.
///
/// `params`, `result` and `error` stay text, and unknown members stay in place. [`Envelope::as_text`] returns every
/// byte.
#[derive(Clone)]
pub struct Envelope<'a> {
    text: &'a str,
    kind: MessageKind,
    id: Option<&'a RawValue>,
    method: Option<Cow<'a, str>>,
    body: Option<&'a RawValue>,
}

/// The kind of message that an envelope holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// `method` and `id`: a response is expected.
    Request,
    /// `method` without `id`.
    Notification,
    /// The response to a request: `result`.
    Result,
    /// The response to a request: `error`. Its id is absent if the request's could not be read.
    Error,
}

/// The form in which a message carries elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElicitationMessage {
    /// The request `elicitation/create` (pushed era).
    Create,
    /// The notification `notifications/elicitation/complete` (2025-11-25).
    Complete,
    /// A result whose `resultType` is `input_required` (rounds era).
    InputRequired,
    /// The error -32042, which requires visits to URLs first (2025-11-25).
    UrlRequired,
    /// A task that waits for input: the result of `tasks/get`, or `notifications/tasks` (tasks extension).
    Task,
}

impl<'a> Envelope<'a> {
    /// Parses a message of at most [`MAX_MESSAGE`] bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        Self::parse_within(bytes, MAX_MESSAGE)
    }

    /// Parses a message of at most `limit` bytes.
    pub fn parse_within(bytes: &'a [u8], limit: usize) -> Result<Self, WireError> {
        if bytes.len() > limit {
            return Err(WireError::TooLarge {
                bytes: bytes.len(),
                limit,
            });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| WireError::NotUtf8 {
            offset: error.valid_up_to(),
        })?;
        match text.trim_ascii_start().as_bytes().first() {
            Some(b'{') => Self::read(text),
            Some(b'[') => Err(WireError::Batch),
            _ => Err(not_an_object(text)),
        }
    }

    fn read(text: &'a str) -> Result<Self, WireError> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let parts = deserializer
            .deserialize_map(PartsVisitor)
            .and_then(|parts| deserializer.end().map(|()| parts))
            .map_err(|error| WireError::from(&error))?;
        parts.into_envelope(text)
    }

    /// Returns every byte of the message as received.
    pub fn as_text(&self) -> &'a str {
        self.text
    }

    /// Returns the kind of this message.
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    /// Returns a copy of the id. `None` for notifications and for errors whose id is absent or `null`.
    pub fn id(&self) -> Option<Id> {
        self.id.and_then(Id::read)
    }

    /// Returns the id as written.
    pub fn raw_id(&self) -> Option<&'a RawValue> {
        self.id
    }

    /// Returns the method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Returns the params of a request or notification. `null` counts as absent.
    pub fn params(&self) -> Option<&'a RawValue> {
        matches!(self.kind, MessageKind::Request | MessageKind::Notification)
            .then_some(self.body)
            .flatten()
    }

    /// Returns the result, if this is one.
    pub fn result(&self) -> Option<&'a RawValue> {
        (self.kind == MessageKind::Result)
            .then_some(self.body)
            .flatten()
    }

    /// Returns the error object, if this is one.
    pub fn error(&self) -> Option<&'a RawValue> {
        (self.kind == MessageKind::Error)
            .then_some(self.body)
            .flatten()
    }

    /// Returns `params._meta` or `result._meta`, without parsing it.
    pub fn meta(&self) -> Option<&'a RawValue> {
        match self.kind {
            MessageKind::Request | MessageKind::Notification | MessageKind::Result => {
                members::member(self.body?, "_meta")
            }
            MessageKind::Error => None,
        }
    }

    /// Returns `result.resultType`, which a client must read as `complete` if absent (2026-07-28, basic, ResultType).
    pub fn result_type(&self) -> Option<Cow<'a, str>> {
        members::member(self.result()?, "resultType").and_then(members::text)
    }

    /// Returns `error.code`. `None` if it is not a whole number.
    pub fn error_code(&self) -> Option<i64> {
        let code = members::member(self.error()?, "code")?;
        serde_json::from_str(code.get()).ok()
    }

    /// Returns the form in which the message carries elicitation, if it does. Cheap for requests, notifications and
    /// errors; a result takes one more pass.
    pub fn elicitation(&self) -> Option<ElicitationMessage> {
        match self.kind {
            MessageKind::Request => {
                (self.method() == Some(method::CREATE)).then_some(ElicitationMessage::Create)
            }
            MessageKind::Notification => match self.method() {
                Some(method::COMPLETE) => Some(ElicitationMessage::Complete),
                Some(method::TASK_STATUS) => self
                    .says_input_required("status")
                    .then_some(ElicitationMessage::Task),
                _ => None,
            },
            MessageKind::Result if self.says_input_required("resultType") => {
                Some(ElicitationMessage::InputRequired)
            }
            MessageKind::Result => self
                .says_input_required("status")
                .then_some(ElicitationMessage::Task),
            MessageKind::Error => (self.error_code() == Some(super::pushed::URL_REQUIRED_CODE))
                .then_some(ElicitationMessage::UrlRequired),
        }
    }

    fn says_input_required(&self, member: &str) -> bool {
        let Some(body) = self.body else { return false };
        could_spell_input_required(body.get())
            && members::member(body, member)
                .and_then(members::text)
                .as_deref()
                == Some(super::rounds::INPUT_REQUIRED)
    }

    /// Returns the message with another id, every other byte unchanged. A message without an id is unchanged.
    pub fn with_id(&self, id: &Id) -> String {
        match self.id {
            Some(old) => self.spliced(old, id.as_json()),
            None => self.text.to_owned(),
        }
    }

    /// Returns the message with another body (`params`, `result` or `error`), every other byte unchanged.
    pub fn with_body(&self, body: &RawValue) -> Result<String, WireError> {
        if let Some(old) = self.body {
            return Ok(self.spliced(old, body.get()));
        }
        let members = Members::read_text(self.text, "message")?;
        Ok(members
            .with(self.kind.body_member(), Some(body))
            .get()
            .to_owned())
    }

    fn spliced(&self, old: &RawValue, new: &str) -> String {
        let (start, end) = members::span_in(self.text, old.get());
        [&self.text[..start], new, &self.text[end..]].concat()
    }
}

impl MessageKind {
    const fn body_member(self) -> &'static str {
        match self {
            Self::Request | Self::Notification => "params",
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

impl fmt::Debug for Envelope<'_> {
    /// Hides the body, which may contain a person's values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope")
            .field("kind", &self.kind)
            .field("id", &self.id.map(RawValue::get))
            .field("method", &self.method)
            .field("bytes", &self.text.len())
            .finish()
    }
}

/// Returns `true` if this text can contain the string `input_required`, whose letters are written plainly or as
/// `\u005f` to `\u0075`. Most bodies are classified here, without a second pass.
fn could_spell_input_required(text: &str) -> bool {
    text.contains(super::rounds::INPUT_REQUIRED)
        || text
            .match_indices("\\u00")
            .any(|(at, escape)| matches!(text.as_bytes().get(at + escape.len()), Some(b'5'..=b'7')))
}

/// Returns the error of JSON that is not an object, or the syntax error of invalid JSON.
fn not_an_object(text: &str) -> WireError {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => WireError::NotObject {
            location: "message",
        },
        Err(error) => WireError::from(&error),
    }
}

#[derive(Default)]
struct EnvelopeParts<'a> {
    version: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    duplicate: bool,
}

impl<'a> EnvelopeParts<'a> {
    fn slot(&mut self, name: &str) -> Option<&mut Option<&'a RawValue>> {
        match name {
            "jsonrpc" => Some(&mut self.version),
            "id" => Some(&mut self.id),
            "method" => Some(&mut self.method),
            "params" => Some(&mut self.params),
            "result" => Some(&mut self.result),
            "error" => Some(&mut self.error),
            _ => None,
        }
    }

    fn into_envelope(self, text: &'a str) -> Result<Envelope<'a>, WireError> {
        if self.duplicate {
            return Err(WireError::Duplicate {
                location: "message",
            });
        }
        if self.version.and_then(members::text).as_deref() != Some("2.0") {
            return Err(WireError::Version);
        }
        let (kind, body) = match (self.method, self.result, self.error) {
            (Some(_), None, None) if self.id.is_some() => {
                (MessageKind::Request, params(self.params)?)
            }
            (Some(_), None, None) => (MessageKind::Notification, params(self.params)?),
            (None, Some(result), None) => (MessageKind::Result, Some(object(result, "result")?)),
            (None, None, Some(error)) => (MessageKind::Error, Some(object(error, "error")?)),
            _ => return Err(WireError::Shape),
        };
        let method = self.method.map(method_name).transpose()?;
        Ok(Envelope {
            text,
            kind,
            id: id(kind, self.id)?,
            method,
            body,
        })
    }
}

fn method_name(raw: &RawValue) -> Result<Cow<'_, str>, WireError> {
    members::text(raw).ok_or(WireError::Type {
        member: "method",
        expected: "a string",
    })
}

fn params(raw: Option<&RawValue>) -> Result<Option<&RawValue>, WireError> {
    raw.filter(|raw| !members::is_null(raw))
        .map(|raw| object(raw, "params"))
        .transpose()
}

fn object<'a>(raw: &'a RawValue, location: &'static str) -> Result<&'a RawValue, WireError> {
    if members::is_object(raw.get()) {
        Ok(raw)
    } else {
        Err(WireError::NotObject { location })
    }
}

/// Checks the id: MCP allows strings and numbers, and `null` only in an error whose request could not be read.
fn id(kind: MessageKind, raw: Option<&RawValue>) -> Result<Option<&RawValue>, WireError> {
    match (kind, raw) {
        (MessageKind::Notification | MessageKind::Error, None) => Ok(None),
        (MessageKind::Error, Some(raw)) if members::is_null(raw) => Ok(None),
        (_, Some(raw)) if Id::read(raw).is_some() => Ok(Some(raw)),
        (_, Some(_)) => Err(WireError::Type {
            member: "id",
            expected: "a string or a number",
        }),
        (MessageKind::Request | MessageKind::Result, None) => {
            Err(WireError::Missing { member: "id" })
        }
    }
}

struct PartsVisitor;

#[derive(Deserialize)]
struct EnvelopeKey<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for PartsVisitor {
    type Value = EnvelopeParts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut parts = EnvelopeParts::default();
        while let Some(EnvelopeKey(key)) = map.next_key()? {
            match parts.slot(&key) {
                Some(slot) => {
                    let value = map.next_value()?;
                    parts.duplicate |= slot.replace(value).is_some();
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests;
