//! The JSON-RPC error object, and its codes.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::answer::{CheckError, Violation, Violations};
use crate::form::{Defect, Defects};
use crate::pointer;
use crate::wire::members::raw_value;
use crate::wire::{Capability, Revision};

/// The error codes and their origins.
pub mod code {
    /// The text is not JSON (JSON-RPC 2.0).
    pub const PARSE: i32 = -32700;
    /// The text is JSON, but not a message (JSON-RPC 2.0).
    pub const INVALID_REQUEST: i32 = -32600;
    /// The method does not exist, or needs a capability that was not declared (2025-06-18, 2025-11-25).
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The params are wrong; in 2025-11-25 also a mode that was not declared.
    pub const INVALID_PARAMS: i32 = -32602;
    /// The receiver failed (JSON-RPC 2.0).
    pub const INTERNAL: i32 = -32603;
    /// Timeouts and rate limits. 2026-07-28 calls this range legacy and gives them no code of their own, so
    /// `data.reason` names the error; a receiver must not derive more from the number.
    pub const SERVER: i32 = -32000;
    /// A header contradicts the body (2026-07-28).
    pub const HEADER_MISMATCH: i32 = -32020;
    /// `MissingRequiredClientCapability` (2026-07-28).
    pub const MISSING_CAPABILITY: i32 = -32021;
    /// `UnsupportedProtocolVersion` (2026-07-28).
    pub const UNSUPPORTED_REVISION: i32 = -32022;
    /// The request was withdrawn. The number is outside the range that JSON-RPC reserves, as 2026-07-28 requires of
    /// custom codes, and the Language Server Protocol uses it for the same purpose.
    pub const WITHDRAWN: i32 = -32800;
}

/// A JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ErrorObject {
    /// The code.
    pub code: i32,
    /// One short sentence.
    pub message: String,
    /// Details for programs; always with `reason`, a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ErrorObject {
    /// Creates an error object.
    pub fn new(code: i32, message: impl Into<String>, data: Option<Value>) -> Self {
        Self {
            code,
            message: message.into(),
            data,
        }
    }

    /// Returns the object as raw JSON, for a message.
    pub fn to_raw(&self) -> Box<RawValue> {
        let mut object = Map::new();
        object.insert("code".into(), self.code.into());
        object.insert("message".into(), self.message.clone().into());
        if let Some(data) = &self.data {
            object.insert("data".into(), data.clone());
        }
        raw_value(&Value::Object(object))
    }
}

/// One error in a form or an answer: the location, the rule, and a sentence. It contains no values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// A JSON Pointer into the schema, or the name of a field.
    #[serde(rename = "place")]
    pub location: String,
    /// The stable code of the defect, or the rule that was broken.
    pub code: String,
    /// The error, for a person.
    pub message: String,
}

impl From<&Defect> for Finding {
    fn from(defect: &Defect) -> Self {
        let (location, message) = defect.shown();
        Self {
            location,
            code: defect.code.as_str().to_owned(),
            message,
        }
    }
}

impl From<&Violation> for Finding {
    fn from(violation: &Violation) -> Self {
        Self {
            location: violation.field().to_owned(),
            code: violation.rule().code().to_owned(),
            message: violation.message(),
        }
    }
}

impl Finding {
    /// Creates a finding of a check that is not one of a form's rules.
    pub fn new(
        location: impl Into<String>,
        code: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            location: location.into(),
            code: code.into(),
            message: message.into(),
        }
    }

    /// Returns a finding per defect of a form.
    pub fn from_defects(defects: &Defects) -> Vec<Self> {
        defects.iter().map(Self::from).collect()
    }

    /// Returns a finding per violation of an answer.
    pub fn from_violations(violations: &Violations) -> Vec<Self> {
        violations.iter().map(Self::from).collect()
    }

    /// Returns a finding per violation of checked content; none if the content could not be read.
    pub fn from_check(error: &CheckError) -> Vec<Self> {
        match error {
            CheckError::Violations(violations) => Self::from_violations(violations),
            CheckError::TooLarge { .. } | CheckError::Broken(_) => Vec::new(),
        }
    }

    /// Returns the location in the notation of the elicitation errors in the specification's documentation:
    /// `properties.age.type`.
    pub fn dotted(&self) -> String {
        match pointer::names(&self.location) {
            Some(names) => names.join("."),
            None => self.location.clone(),
        }
    }
}

/// Returns the `data` of an illegal form: the first defect, the allowed kinds of field, and every defect.
pub(super) fn illegal_form(defects: &[Finding], revision: Revision) -> Value {
    let mut types = vec!["string", "number", "integer", "boolean"];
    if revision.has_several_choices() {
        types.push("array");
    }
    let first = defects.first();
    json!({
        "reason": "The requestedSchema is not a legal form",
        "field": first.map(Finding::dotted).unwrap_or_default(),
        "error": first.map_or("", |defect| &defect.message),
        "supportedTypes": types,
        "defects": defects.iter().map(|defect| {
            json!({ "pointer": defect.location, "code": defect.code, "message": defect.message })
        }).collect::<Vec<_>>(),
    })
}

/// Returns the `data` of a wrong answer: every violation, without values.
pub(super) fn wrong_answer(reason: &str, violations: &[Finding]) -> Value {
    json!({
        "reason": reason,
        "violations": violations.iter().map(|violation| {
            json!({ "field": violation.location, "rule": violation.code, "message": violation.message })
        }).collect::<Vec<_>>(),
    })
}

/// Returns the `data` of a missing capability: on 2026-07-28 the capability to declare, on earlier revisions only the
/// reason.
pub(super) fn missing_capability(reason: &str, needed: Capability, revision: Revision) -> Value {
    match revision {
        Revision::V2025_06_18 | Revision::V2025_11_25 => json!({ "reason": reason }),
        Revision::V2026_07_28 => json!({
            "reason": reason,
            "requiredCapabilities": { "elicitation": needed.to_value(revision).unwrap_or_else(|| json!({})) },
        }),
    }
}
