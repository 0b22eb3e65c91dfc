//! The members of a call that its approvers are shown; others are not sent to the server with the approval.

use mcp_elicit_core::wire::frame::{Frame, FrameIndex};
use mcp_elicit_core::wire::members::{self, Members};
use mcp_elicit_core::wire::{Id, meta};
use serde_json::value::RawValue;

use crate::CallKind;
use crate::frame_edit;
use crate::parts::log_levels::LogLevel;

/// Returns the members of a call's params that approvers are shown, or that do not affect the called tool.
fn shown(kind: CallKind) -> &'static [&'static str] {
    match kind {
        CallKind::Tool => &["name", "arguments", "_meta", "task"],
        CallKind::Prompt => &["name", "arguments", "_meta"],
        CallKind::Resource => &["uri", "_meta"],
    }
}

/// Returns `true` if a call has only members of the protocol, so that an approver sees all others.
pub(super) fn has_only_shown(kind: CallKind, frame: Frame<'_>) -> bool {
    let is_of_request = |(name, value): (&str, &RawValue)| match name {
        "jsonrpc" => value.get() == r#""2.0""#,
        _ => ["id", "method", "params"].contains(&name),
    };
    if !Members::read_text(frame.text(), "message").is_ok_and(|all| all.iter().all(is_of_request)) {
        return false;
    }
    let Some(params) = frame.params() else {
        return true;
    };
    Members::read(params, "params").is_ok_and(|params| {
        params.iter().all(|(name, value)| {
            shown(kind).contains(&name) && (name != "task" || has_only_its_time(value))
        })
    })
}

/// Returns `true` if the `task` of a call sets only the time for which its result is kept.
fn has_only_its_time(task: &RawValue) -> bool {
    let is_number = |value: &RawValue| serde_json::from_str::<serde_json::Number>(value.get());
    members::is_null(task)
        || Members::read(task, "task").is_ok_and(|task| {
            task.iter().all(|(name, value)| {
                name == "ttl" && (members::is_null(value) || is_number(value).is_ok())
            })
        })
}

/// Returns `true` for a member of `_meta` that the protocol needs, or that names the call's trace, and that cannot be a
/// hidden argument.
fn is_needed_meta(name: &str, value: &RawValue) -> bool {
    let value = value.get();
    match name {
        meta::PROGRESS_TOKEN => serde_json::from_str(value).is_ok_and(|id| Id::read(id).is_some()),
        meta::PROTOCOL_VERSION => value.starts_with('"'),
        meta::CLIENT_INFO | meta::CLIENT_CAPABILITIES => value.starts_with('{'),
        meta::LOG_LEVEL => LogLevel::read(value).is_some(),
        "traceparent" => {
            serde_json::from_str::<String>(value).is_ok_and(|text| is_trace_parent(&text))
        }
        _ => false,
    }
}

/// Returns `true` for the format of `traceparent`: hexadecimal digits and dashes.
pub fn is_trace_parent(text: &str) -> bool {
    let is_hex = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [2, 32, 16, 2] && text.split('-').all(is_hex)
}

/// Returns the request without members of `_meta` that no approver has seen; `None` if it has none.
pub(super) fn without_unshown_meta(text: &str) -> Option<String> {
    let index = FrameIndex::at(text.as_bytes())?;
    let range = index.meta.clone()?;
    let meta = Members::read_text(&text[range.clone()], "_meta").ok()?;
    if meta.iter().all(|(name, value)| is_needed_meta(name, value)) {
        return None;
    }
    let known: Vec<String> = meta
        .iter()
        .filter(|(name, value)| is_needed_meta(name, value))
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
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let needed = format!(
            r#"{{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"c"}},"io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/logLevel":"info","traceparent":"{trace}"}}"#
        );
        assert_eq!(without_unshown_meta(&with(&needed)), None);
        assert_eq!(without_unshown_meta(CALL), None);
        for unseen in [
            r#""force":"yes""#,
            r#""io.modelcontextprotocol/x":{"a":1}"#,
            r#""io.modelcontextprotocol/related-task":{"taskId":"t"}"#,
            r#""baggage":"force=yes""#,
            r#""tracestate":"force=yes""#,
            r#""Traceparent":"x""#,
        ] {
            let more = needed.replacen('{', &format!("{{{unseen},"), 1);
            assert_eq!(
                without_unshown_meta(&with(&more)),
                Some(with(&needed)),
                "{unseen}"
            );
        }
        // Each has an invalid format.
        for another in [
            r#""progressToken":{"force":true}"#,
            r#""io.modelcontextprotocol/protocolVersion":{"force":true}"#,
            r#""io.modelcontextprotocol/clientInfo":"force""#,
            r#""io.modelcontextprotocol/logLevel":"force""#,
            r#""traceparent":"force""#,
            r#""traceparent":["force"]"#,
        ] {
            let sent = with(&format!("{{{another}}}"));
            assert_eq!(without_unshown_meta(&sent), Some(with("{}")), "{another}");
        }
    }

    #[test]
    fn a_task_says_how_long_its_result_is_kept_and_no_more() {
        let is_shown = |task: &str| {
            let call = format!(
                r#"{{"id":1,"method":"tools/call","params":{{"name":"rm","task":{task}}}}}"#
            );
            let index = FrameIndex::at(call.as_bytes()).unwrap();
            has_only_shown(CallKind::Tool, Frame::of_text(&call, &index))
        };
        for task in ["{}", "null", r#"{"ttl":60000}"#, r#"{"ttl":null}"#] {
            assert!(is_shown(task), "{task}");
        }
        for task in [
            r#"{"ttl":1,"force":true}"#,
            r#"{"ttl":{"force":true}}"#,
            r#"{"ttl":1,"ttl":2}"#,
            r#"{"ttl":"force"}"#,
            r#"["force"]"#,
            r#""force""#,
        ] {
            assert!(!is_shown(task), "{task}");
        }
    }

    #[test]
    fn a_request_has_no_member_beside_its_params() {
        let is_shown = |members: &str| {
            let call =
                format!(r#"{{{members}"id":1,"method":"tools/call","params":{{"name":"rm"}}}}"#);
            let index = FrameIndex::at(call.as_bytes()).unwrap();
            has_only_shown(CallKind::Tool, Frame::of_text(&call, &index))
        };
        assert!(is_shown("") && is_shown(r#""jsonrpc":"2.0","#));
        for unseen in [
            r#""force":true,"#,
            r#""_meta":{},"#,
            r#""jsonrpc":"force","#,
            r#""jsonrpc":{"force":true},"#,
        ] {
            assert!(!is_shown(unseen), "{unseen}");
        }
    }

    #[test]
    fn each_kind_of_call_has_its_own_members() {
        let is_shown = |kind: CallKind, method: &str, params: &str| {
            let call = format!(r#"{{"id":1,"method":"{method}","params":{{{params}}}}}"#);
            let index = FrameIndex::at(call.as_bytes()).unwrap();
            has_only_shown(kind, Frame::of_text(&call, &index))
        };
        let (tool, prompt, resource) = (CallKind::Tool, CallKind::Prompt, CallKind::Resource);
        let all = r#""name":"a","arguments":{},"_meta":{}"#;
        assert!(is_shown(tool, "tools/call", all));
        assert!(is_shown(prompt, "prompts/get", all));
        assert!(is_shown(
            resource,
            "resources/read",
            r#""uri":"a:b","_meta":{}"#
        ));
        assert!(!is_shown(tool, "tools/call", r#""name":"a","uri":"force""#));
        assert!(!is_shown(prompt, "prompts/get", r#""name":"a","task":{}"#));
        assert!(!is_shown(
            resource,
            "resources/read",
            r#""uri":"a:b","arguments":{}"#
        ));
    }
}
