//! The exact parameters of questions, preserved through rmcp.
//!
//! rmcp reads `elicitation/create` into types that drop `pattern` and `multipleOf` and reject unknown formats, so a
//! person would answer a form that the server never sent. Our transports therefore pass each frame to [`keep`] before
//! rmcp reads it: the parameters of every question are copied, byte for byte, into that question's own `_meta`, and an
//! empty form, which rmcp can always read, takes their place. [`extract`] takes them out again. Everything else in a
//! frame stays as it is, and a frame without a question is not even parsed here.
//!
//! Each process has its own names for the members in `_meta`, which a server cannot guess: it may write a question in a
//! form that rmcp reads and this module does not, such as a list of its members, but cannot forge its parameters.
//! Frames are read by [`LenientMembers`] rather than by core's `Frame`, which refuses duplicate members: rmcp would read
//! such a frame nevertheless.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;

use mcp_elicit_core::wire::{LenientMembers, members, method};
#[cfg(test)]
use rmcp::model::ServerJsonRpcMessage;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The `_meta` member that carries the exact parameters, as a string of JSON.
static PARAMS: LazyLock<String> = LazyLock::new(|| unguessable("params"));
/// The `_meta` member that carries the position of a question among those of its round.
static POSITION: LazyLock<String> = LazyLock::new(|| unguessable("position"));

/// The raw parts of one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawParams {
    /// The parameters of `elicitation/create` as the server wrote them.
    pub(crate) params: String,
    /// The question's position in its round, from zero.
    pub(crate) position: u64,
}

/// Returns a name that differs in each process.
fn unguessable(name: &str) -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("mcp-elicit/{name}-{:016x}{:016x}", random(), random())
}

/// Reads a frame of a server into rmcp's type, with every question's parameters kept.
#[cfg(test)]
pub(crate) fn read(frame: &[u8]) -> serde_json::Result<ServerJsonRpcMessage> {
    serde_json::from_slice(&keep(frame))
}

/// Returns the frame with every question's parameters kept; the frame itself if it carries none or is not a JSON
/// object.
pub(crate) fn keep(frame: &[u8]) -> Cow<'_, [u8]> {
    if !mentions_a_question(frame) {
        return Cow::Borrowed(frame);
    }
    match rewritten(frame) {
        Some(rewritten) => Cow::Owned(rewritten),
        None => Cow::Borrowed(frame),
    }
}

/// Returns the parameters that [`keep`] put into the `_meta` of a question.
pub(crate) fn extract(meta: &serde_json::Map<String, Value>) -> Option<RawParams> {
    let params = meta.get(PARAMS.as_str())?.as_str()?.to_owned();
    let position = meta
        .get(POSITION.as_str())
        .and_then(Value::as_u64)
        .unwrap_or(0);
    Some(RawParams { params, position })
}

/// Returns `true` if the frame may contain a question. JSON may write any character as an escape, so a frame with such
/// an escape counts too; these frames are rare.
fn mentions_a_question(frame: &[u8]) -> bool {
    let contains = |needle: &[u8]| frame.windows(needle.len()).any(|window| window == needle);
    contains(b"elicitation") || contains(b"\\u00")
}

fn rewritten(frame: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(frame).ok()?;
    let mut members = LenientMembers::read(text)?;
    if let Some(result) = members.get("result") {
        let result = preserve_result(result)?;
        members.set("result", result);
    } else if is_question(&members) {
        let params = preserve_params(members.get("params"), 0);
        members.set("params", params);
    } else {
        return None;
    }
    Some(members.to_text().into_bytes())
}

/// Preserves the questions in a result's `inputRequests`: of `input_required`, or of a task that waits for input.
fn preserve_result(result: &RawValue) -> Option<Box<RawValue>> {
    let mut members = LenientMembers::read(result.get())?;
    let mut requests = LenientMembers::read(members.get("inputRequests")?.get())?;
    let mut found = false;
    requests.replace_each(|position, request| {
        let preserved = preserve_request(request, position);
        found |= preserved.is_some();
        preserved
    });
    if !found {
        return None;
    }
    let requests = requests.to_raw();
    members.set("inputRequests", requests);
    Some(members.to_raw())
}

fn preserve_request(request: &RawValue, position: usize) -> Option<Box<RawValue>> {
    let mut members = LenientMembers::read(request.get())?;
    if !is_question(&members) {
        return None;
    }
    let params = preserve_params(members.get("params"), position);
    members.set("params", params);
    Some(members.to_raw())
}

fn is_question(members: &LenientMembers<'_>) -> bool {
    let method = members.get("method").and_then(members::text);
    method.as_deref() == Some(method::CREATE)
}

fn preserve_params(params: Option<&RawValue>, position: usize) -> Box<RawValue> {
    let exact = params.map_or("null", RawValue::get);
    let meta = params.and_then(|params| members::only_member(params, "_meta", "params").ok()?);
    let meta = meta.and_then(|meta| serde_json::from_str(meta.get()).ok());
    let mut meta: serde_json::Map<String, Value> = meta.unwrap_or_default();
    meta.insert(PARAMS.clone(), exact.into());
    meta.insert(POSITION.clone(), position.into());
    members::raw_value(&json!({
        "_meta": meta,
        "mode": "form",
        "message": "",
        "requestedSchema": { "type": "object", "properties": {} },
    }))
}

#[cfg(test)]
mod tests {
    use rmcp::model::{GetMeta as _, JsonRpcMessage, ServerRequest, ServerResult};

    use super::*;

    #[test]
    fn a_pushed_question_reaches_us_byte_for_byte() {
        let params = r#"{ "message":"A  \u00e9", "_meta":{"progressToken":7,"PARAMS":"forged"},"requestedSchema":{"type":"object","properties":{"z":{"type":"string","pattern":"^a$","format":"odd"},"a":{"type":"number","multipleOf":1.50}}}}"#;
        // Even a server that knew the name could not forge it here.
        let params = params.replace("PARAMS", &PARAMS);
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{params}}}"#
        );
        let JsonRpcMessage::Request(mut request) = read(frame.as_bytes()).expect("rmcp reads it")
        else {
            panic!("a request");
        };
        assert!(matches!(request.request, ServerRequest::ElicitRequest(_)));
        let kept = extract(request.request.get_meta_mut()).expect("kept");
        assert_eq!(kept.params, params);
    }

    #[test]
    fn a_round_keeps_every_question_and_its_place() {
        let first = r#"{"mode":"url","url":"https://a.example/","message":"m"}"#;
        let second = r#"{"message":"n","requestedSchema":{"type":"object","properties":{"x":{"type":"string","pattern":"b"}}}}"#;
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"input_required","requestState":"s","extra":[1.0],"inputRequests":{{"zz":{{"method":"elicitation/create","params":{first}}},"roots":{{"method":"roots/list"}},"aa":{{"method":"elicitation/create","params":{second}}}}}}}}}"#
        );
        let JsonRpcMessage::Response(response) = read(frame.as_bytes()).expect("rmcp reads it")
        else {
            panic!("a response");
        };
        let ServerResult::InputRequiredResult(result) = response.result else {
            panic!("input_required");
        };
        assert_eq!(result.request_state.as_deref(), Some("s"));
        let requests = serde_json::to_value(result.input_requests).unwrap();
        let kept_of =
            |key: &str| extract(requests[key]["params"]["_meta"].as_object().unwrap()).unwrap();
        assert_eq!(
            kept_of("zz"),
            RawParams {
                params: first.to_owned(),
                position: 0
            }
        );
        assert_eq!(
            kept_of("aa"),
            RawParams {
                params: second.to_owned(),
                position: 2
            }
        );
        assert_eq!(requests["roots"]["method"], "roots/list");
    }

    #[test]
    fn a_method_written_with_escapes_is_still_a_question() {
        let frame = br#"{"jsonrpc":"2.0","id":1,"method":"\u0065licitation\/create","params":{"message":"x"}}"#;
        assert!(matches!(keep(frame), Cow::Owned(_)));
    }

    #[test]
    fn a_duplicate_member_hides_no_question_and_no_parameters() {
        let last = r#"{"message":"n","requestedSchema":{"type":"object","properties":{}},"_meta":{"PARAMS":"forged"}}"#;
        let last = last.replace("PARAMS", &PARAMS);
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{}},"method":"elicitation/create","params":{last}}}"#
        );
        let JsonRpcMessage::Request(mut request) = read(frame.as_bytes()).expect("rmcp reads it")
        else {
            panic!("a request");
        };
        let kept = extract(request.request.get_meta_mut()).expect("kept");
        assert_eq!(kept.params, last);
    }

    #[test]
    fn the_parameters_of_a_question_written_as_a_list_cannot_be_forged() {
        let question = r#"{"_meta":{"mcp-elicit/params":"forged"},"mode":"form","message":"x","requestedSchema":{"type":"object","properties":{}}}"#;
        for result in [
            format!(
                r#"{{"resultType":"input_required","inputRequests":{{"a":["elicitation/create",{question}]}}}}"#
            ),
            format!(
                r#"["input_required",{{"a":{{"method":"elicitation/create","params":{question}}}}},"s",null]"#
            ),
        ] {
            let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            let JsonRpcMessage::Response(response) = read(frame.as_bytes()).expect("rmcp reads it")
            else {
                panic!("a response");
            };
            let ServerResult::InputRequiredResult(result) = response.result else {
                panic!("input_required");
            };
            let requests = serde_json::to_value(result.input_requests).unwrap();
            let meta = requests["a"]["params"]["_meta"].as_object().unwrap();
            assert_eq!(extract(meta), None, "{requests}");
        }
    }

    #[test]
    fn other_frames_stay_untouched() {
        for frame in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"elicitation/create"}]}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"elicitation","data":{"elicitations":[]}}}"#,
            "elicitation, but no JSON",
        ] {
            assert!(
                matches!(keep(frame.as_bytes()), Cow::Borrowed(_)),
                "{frame}"
            );
        }
    }
}
