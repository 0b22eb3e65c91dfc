//! Preserves the exact parameters of questions through rmcp.
//!
//! rmcp reads `elicitation/create` into types that drop `pattern` and `multipleOf` and reject unknown formats, so a
//! person would answer a form that the server never sent. Our transports therefore pass each frame to [`keep`] before
//! rmcp reads it: the parameters of every question are copied, byte for byte, into that question's own `_meta`, and an
//! empty form, which rmcp can always read, takes their place. [`extract`] takes them out again. Everything else in a
//! frame stays as it is, and a frame without a question is not even parsed here.
//!
//! The member in `_meta` is always overwritten, so a server cannot use it to send two versions of a question.

use std::borrow::Cow;

use indexmap::IndexMap;
use mcp_elicit_core::wire::method;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The `_meta` member that carries the exact parameters, as a string of JSON.
const PARAMS: &str = "mcp-elicit/params";
/// The `_meta` member that carries the position of a question among those of its round.
const POSITION: &str = "mcp-elicit/position";

/// The members of an object, the last of each name. Core's reader would reject a frame with duplicate names, and leave
/// the content of `_meta` to rmcp.
type Members<'a> = IndexMap<String, &'a RawValue>;

/// The raw parts of one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawParams {
    /// The parameters of `elicitation/create` as the server wrote them.
    pub(crate) params: String,
    /// The question's position in its round, from zero.
    pub(crate) position: u64,
}

/// Returns the frame with every question's parameters preserved; the frame itself if it has no question or is not a
/// JSON object.
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
    let params = meta.get(PARAMS)?.as_str()?.to_owned();
    let position = meta.get(POSITION).and_then(Value::as_u64).unwrap_or(0);
    Some(RawParams { params, position })
}

/// Returns `true` if the frame may contain a question. JSON may write the slash as `\/` and any character as an escape;
/// such frames are rare enough to be parsed in vain.
fn mentions_a_question(frame: &[u8]) -> bool {
    let contains = |needle: &[u8]| frame.windows(needle.len()).any(|window| window == needle);
    contains(b"elicitation") || contains(b"\\u00")
}

fn rewritten(frame: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(frame).ok()?;
    let mut members: Members<'_> = serde_json::from_str(text).ok()?;
    let replacement;
    if let Some(result) = members.get("result") {
        replacement = preserve_result(result)?;
        members.insert("result".to_owned(), &replacement);
    } else if is_question(&members) {
        replacement = preserve_params(members.get("params").copied(), 0)?;
        members.insert("params".to_owned(), &replacement);
    } else {
        return None;
    }
    serde_json::to_vec(&members).ok()
}

/// Preserves the questions in a result's `inputRequests`: of `input_required`, or of a task that waits for input.
fn preserve_result(result: &RawValue) -> Option<Box<RawValue>> {
    let mut members: Members<'_> = serde_json::from_str(result.get()).ok()?;
    let requests: Members<'_> = serde_json::from_str(members.get("inputRequests")?.get()).ok()?;
    let mut found = false;
    let mut all = IndexMap::<String, Cow<'_, RawValue>>::new();
    for (position, (key, request)) in requests.into_iter().enumerate() {
        let kept = preserve_request(request, position);
        found |= kept.is_some();
        all.insert(key, kept.map_or(Cow::Borrowed(request), Cow::Owned));
    }
    if !found {
        return None;
    }
    let all = serde_json::value::to_raw_value(&all).ok()?;
    members.insert("inputRequests".to_owned(), &all);
    serde_json::value::to_raw_value(&members).ok()
}

fn preserve_request(request: &RawValue, position: usize) -> Option<Box<RawValue>> {
    let mut members: Members<'_> = serde_json::from_str(request.get()).ok()?;
    if !is_question(&members) {
        return None;
    }
    let params = preserve_params(members.get("params").copied(), position)?;
    members.insert("params".to_owned(), &params);
    serde_json::value::to_raw_value(&members).ok()
}

fn is_question(members: &Members<'_>) -> bool {
    members
        .get("method")
        .and_then(|method| serde_json::from_str::<String>(method.get()).ok())
        .is_some_and(|name| name == method::CREATE)
}

fn preserve_params(params: Option<&RawValue>, position: usize) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "_meta", default)]
        meta: serde_json::Map<String, Value>,
    }
    let exact = params.map_or("null", RawValue::get);
    let mut meta = serde_json::from_str::<Meta>(exact)
        .map(|read| read.meta)
        .unwrap_or_default();
    meta.insert(PARAMS.to_owned(), exact.into());
    meta.insert(POSITION.to_owned(), position.into());
    serde_json::value::to_raw_value(&json!({
        "_meta": meta,
        "mode": "form",
        "message": "",
        "requestedSchema": { "type": "object", "properties": {} },
    }))
    .ok()
}

#[cfg(test)]
mod tests {
    use rmcp::model::{
        GetMeta as _, JsonRpcMessage, ServerJsonRpcMessage, ServerRequest, ServerResult,
    };

    use super::*;

    fn read(frame: &[u8]) -> ServerJsonRpcMessage {
        serde_json::from_slice(frame).expect("rmcp reads it")
    }

    #[test]
    fn a_pushed_question_reaches_us_byte_for_byte() {
        let params = r#"{ "message":"A  \u00e9", "_meta":{"progressToken":7,"mcp-elicit/params":"forged"},"requestedSchema":{"type":"object","properties":{"z":{"type":"string","pattern":"^a$","format":"odd"},"a":{"type":"number","multipleOf":1.50}}}}"#;
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{params}}}"#
        );
        let JsonRpcMessage::Request(mut request) = read(&keep(frame.as_bytes())) else {
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
        let JsonRpcMessage::Response(response) = read(&keep(frame.as_bytes())) else {
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
