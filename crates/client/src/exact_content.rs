//! Content with numbers that must be sent in the server's own spelling, which rmcp's values cannot hold.
//!
//! The text of such content travels beside rmcp's value in a member of the result's `_meta`. When the message is written,
//! the text takes the value's place, and the member is left out. Over a foreign transport, the server ignores the member.

use mcp_elicit_core::answer::Answers;
use mcp_elicit_core::wire::LenientMembers;
use rmcp::model::ElicitResult;
use serde_json::json;
use serde_json::value::RawValue;

/// The member with the text.
const TEXT: &str = "mcp-elicit/content";

/// Adds the text of these answers to their result, if rmcp's value loses a spelling.
pub(crate) fn keep(result: &mut ElicitResult, answers: &Answers) {
    if answers.has_spellings()
        && let Ok(text) = serde_json::to_string(answers)
        && let Ok(meta) = serde_json::from_value(json!({ TEXT: text }))
    {
        result.meta = Some(meta);
    }
}

/// Returns the message with each kept text in the place of its value.
pub(crate) fn restored(message: String) -> String {
    if !message.contains(TEXT) {
        return message;
    }
    let Some(mut all) = LenientMembers::read(&message) else {
        return message;
    };
    if let Some(result) = all.get("result").and_then(result_of) {
        all.set("result", result);
    } else if let Some(mut params) = all
        .get("params")
        .map(RawValue::get)
        .and_then(LenientMembers::read)
        && let Some(mut responses) = params
            .get("inputResponses")
            .map(RawValue::get)
            .and_then(LenientMembers::read)
    {
        responses.replace_each(|_, response| result_of(response));
        let responses = responses.to_raw();
        params.set("inputResponses", responses);
        let params = params.to_raw();
        all.set("params", params);
    }
    all.to_text()
}

/// Returns a result with its kept text as the content; `None` if it has none.
fn result_of(result: &RawValue) -> Option<Box<RawValue>> {
    let all = LenientMembers::read(result.get())?;
    let meta = LenientMembers::read(all.get("_meta")?.get())?;
    let text: String = serde_json::from_str(meta.get(TEXT)?.get()).ok()?;
    let content = RawValue::from_string(text).ok()?;
    let mut exact = LenientMembers::default();
    exact.set("action", all.get("action")?.to_owned());
    exact.set("content", content);
    Some(exact.to_raw())
}

#[cfg(test)]
mod tests {
    use super::restored;

    #[test]
    fn the_kept_text_takes_the_place_of_the_value_in_both_eras() {
        let result = r#"{"action":"accept","content":{"a":1.2345678901234568e+22},"_meta":{"mcp-elicit/content":"{\"a\":12345678901234567890123}"}}"#;
        let exact = r#"{"action":"accept","content":{"a":12345678901234567890123}}"#;
        assert_eq!(
            restored(format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#)),
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{exact}}}"#)
        );
        let other = r#"{"action":"decline"}"#;
        let request = |first: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"t","inputResponses":{{"q":{first},"r":{other}}}}}}}"#
            )
        };
        assert_eq!(restored(request(result)), request(exact));
        let usual = request(other);
        assert_eq!(restored(usual.clone()), usual);
        let argument = r#"{"jsonrpc":"2.0","id":7,"params":{"a":"mcp-elicit/content","n":1.50}}"#;
        assert_eq!(restored(argument.to_owned()), argument);
    }
}
