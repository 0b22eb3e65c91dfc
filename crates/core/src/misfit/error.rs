//! The error object of a response.

use serde_json::{Map, Value};

use super::Misfit;
use crate::pointer::token;

/// The code of an error that names none (JSON-RPC 2.0, internal error).
const INTERNAL: i32 = -32603;

/// The error object of a response, as far as it can be read.
#[derive(Debug, Clone)]
pub struct FittedError {
    /// The error, with a code of 32 bits and a message.
    pub value: Value,
    /// The members that did not fit.
    pub misfits: Vec<Misfit>,
}

/// Compares the error object of a response with the members that JSON-RPC gives it. An error that is only a text counts
/// as its message.
///
/// ```
/// use mcp_elicit_core::misfit::fit_error;
///
/// let fitted = fit_error(&serde_json::json!({"code": "ENOENT", "message": "no such file"}));
/// assert_eq!((&fitted.value["code"], &fitted.value["message"]), (&(-32603).into(), &"no such file".into()));
/// assert_eq!(fitted.misfits[0].to_string(), r#"/code: "ENOENT" is not a whole number of 32 bits"#);
/// ```
pub fn fit_error(error: &Value) -> FittedError {
    let mut misfits = Vec::new();
    let empty = Map::new();
    let members = if let Value::Object(members) = error {
        members
    } else {
        misfits.push(Misfit::of("", error, "an object"));
        &empty
    };
    let code = members.get("code");
    let known = code.and_then(code_of);
    if known.is_none() || !code.is_some_and(Value::is_i64) {
        let expected = "a whole number of 32 bits";
        misfits.extend(misfit(error, code, "code", expected));
    }
    let message = members.get("message");
    let text = match (error, message) {
        (_, Some(Value::String(text))) | (Value::String(text), _) => text.clone(),
        (_, Some(other)) => other.to_string(),
        (_, None) => String::new(),
    };
    if !message.is_some_and(Value::is_string) {
        misfits.extend(misfit(error, message, "message", "a string"));
    }
    let mut value = members.clone();
    value.insert("code".to_owned(), known.unwrap_or(INTERNAL).into());
    value.insert("message".to_owned(), text.into());
    FittedError {
        value: Value::Object(value),
        misfits,
    }
}

/// Returns the misfit of a member; `None` if the whole error does not fit, which says it already.
fn misfit(
    error: &Value,
    found: Option<&Value>,
    name: &str,
    expected: &'static str,
) -> Option<Misfit> {
    error.is_object().then(|| match found {
        Some(found) => Misfit::of(&format!("/{}", token(name)), found, expected),
        None => Misfit::missing("", name, expected),
    })
}

/// Reads a code, which may be written as a text or as `-32603.0`.
fn code_of(code: &Value) -> Option<i32> {
    match code {
        Value::Number(number) => match number.as_i64() {
            Some(code) => i32::try_from(code).ok(),
            None => format!("{}", number.as_f64()?).parse().ok(),
        },
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}
