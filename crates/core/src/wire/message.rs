//! Writers of JSON-RPC messages from raw parts.

use serde_json::value::RawValue;

use super::id::Id;
use super::members::{self, raw_text};

const VERSION: &str = "2.0";

/// Returns a request.
pub fn request(id: &Id, method: &str, params: Option<&RawValue>) -> String {
    write(
        Some(&id.to_raw()),
        Some(method),
        params.map(|params| ("params", params)),
    )
}

/// Returns a notification.
pub fn notification(method: &str, params: Option<&RawValue>) -> String {
    write(None, Some(method), params.map(|params| ("params", params)))
}

/// Returns the response to the request with this id.
pub fn result(id: &Id, result: &RawValue) -> String {
    write(Some(&id.to_raw()), None, Some(("result", result)))
}

/// Returns the error response to the request with this id; `None` (written as `null`) if the request's id could not be
/// read.
pub fn error(id: Option<&Id>, error: &RawValue) -> String {
    let id = id.map_or_else(|| RawValue::NULL.to_owned(), Id::to_raw);
    write(Some(&id), None, Some(("error", error)))
}

fn write(
    id: Option<&RawValue>,
    method: Option<&str>,
    body: Option<(&'static str, &RawValue)>,
) -> String {
    let version = raw_text(VERSION);
    let method = method.map(raw_text);
    let head = [
        Some(("jsonrpc", &*version)),
        id.map(|id| ("id", id)),
        method.as_deref().map(|m| ("method", m)),
        body,
    ];
    let message: Box<str> = members::object(head.into_iter().flatten()).into();
    message.into()
}
