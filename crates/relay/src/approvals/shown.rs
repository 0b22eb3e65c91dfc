//! The members of a call that its approvers are shown: others do not go to the server with their approval.

use mcp_elicit_core::wire::frame::{Frame, FrameIndex};
use mcp_elicit_core::wire::members::{self, Members};

use crate::frame_edit;

/// The members of a call's params that are shown to approvers, or say nothing to a tool.
const SHOWN: [&str; 5] = ["name", "uri", "arguments", "_meta", "task"];

/// Returns `true` if a call has no member beside those of the protocol, which an approver would not see.
pub(super) fn has_only_shown(frame: Frame<'_>) -> bool {
    let Some(params) = frame.params() else {
        return true;
    };
    Members::read(params, "params")
        .is_ok_and(|params| params.iter().all(|(name, _)| SHOWN.contains(&name)))
}

/// Returns `true` for a member of `_meta` that the protocol or the W3C's trace context names.
fn is_known_meta(name: &str) -> bool {
    name.starts_with("io.modelcontextprotocol/")
        || matches!(
            name,
            "progressToken" | "traceparent" | "tracestate" | "baggage"
        )
}

/// Returns the request without members of `_meta` that no approver has seen; `None` where it has none.
pub(super) fn without_unshown_meta(text: &str) -> Option<String> {
    let index = FrameIndex::at(text.as_bytes())?;
    let range = index.meta.clone()?;
    let meta = Members::read_text(&text[range.clone()], "_meta").ok()?;
    if meta.iter().all(|(name, _)| is_known_meta(name)) {
        return None;
    }
    let known: Vec<String> = meta
        .iter()
        .filter(|(name, _)| is_known_meta(name))
        .map(|(name, value)| format!("{}:{}", members::raw_text(name), value.get()))
        .collect();
    let known = format!("{{{}}}", known.join(","));
    Some(frame_edit::spliced(text, &range, &known))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"id":1,"method":"tools/call","params":{"name":"rm","arguments":{"path":"/tmp/a", "n":12345678901234567890,"deep":{"on":true}}}}"#;

    #[test]
    fn what_no_approver_saw_in_meta_is_left_out() {
        let with = |meta: &str| {
            format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"rm","_meta":{meta}}}}}"#)
        };
        let known = r#"{"progressToken":7,"io.modelcontextprotocol/x":{"a":1}}"#;
        assert_eq!(without_unshown_meta(&with(known)), None);
        assert_eq!(without_unshown_meta(CALL), None);
        let more = r#"{"progressToken":7,"force":"yes","io.modelcontextprotocol/x":{"a":1}}"#;
        assert_eq!(without_unshown_meta(&with(more)), Some(with(known)));
    }
}
