//! The members of a call that its approvers are shown; others are not sent to the server with the approval.

use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::members::{self, Members};
use mcp_elicit_core::wire::{Id, Revision, meta};
use serde_json::value::RawValue;

use crate::CallKind;
use crate::TRACE_PARENT;
use crate::era::own_info;
use crate::frame_edit::Splice;
use crate::parts::indexed_frame::IndexedFrame;
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

/// Returns the part of a member of `_meta` that the protocol needs, or that names the call's trace, and that cannot be a
/// hidden argument; `None` if there is none.
fn needed_of(name: &str, value: &RawValue) -> Option<String> {
    let text = value.get();
    let is_kept = match name {
        meta::PROGRESS_TOKEN => serde_json::from_str(text).is_ok_and(|id| Id::read(id).is_some()),
        meta::PROTOCOL_VERSION => {
            serde_json::from_str::<String>(text).is_ok_and(|text| text.parse::<Revision>().is_ok())
        }
        // A client may name itself otherwise in each request, and approvers see one of its names.
        meta::CLIENT_INFO if text.starts_with('{') => return Some(own_info().to_string()),
        meta::CLIENT_CAPABILITIES => return capabilities(value),
        meta::LOG_LEVEL => LogLevel::read(text).is_some(),
        TRACE_PARENT => {
            serde_json::from_str::<String>(text).is_ok_and(|text| is_trace_parent(&text))
        }
        _ => false,
    };
    is_kept.then(|| text.to_owned())
}

/// The capabilities that the protocol defines, each with its own members.
const CAPABILITIES: [(&str, &[&str]); 3] = [
    ("elicitation", &["form", "url"]),
    ("sampling", &["context", "tools"]),
    ("roots", &[]),
];

/// The members of `extensions`: of them, only the name goes with an approved call, or settings of a fixed text.
const EXTENSIONS: &str = "extensions";
/// The protocol's own extensions. An approver sees none of them, so a client cannot name others.
const KNOWN_EXTENSIONS: [&str; 4] = [
    "io.modelcontextprotocol/enterprise-managed-authorization",
    "io.modelcontextprotocol/oauth-client-credentials",
    "io.modelcontextprotocol/tasks",
    "io.modelcontextprotocol/ui",
];
/// The settings of an extension that are kept.
const KNOWN_SETTINGS: [(&str, &str); 1] = [(
    "io.modelcontextprotocol/ui",
    r#"{"mimeTypes":["text/html;profile=mcp-app"]}"#,
)];

/// Returns the capabilities that the protocol defines, without members that it does not define.
fn capabilities(value: &RawValue) -> Option<String> {
    let declared = Members::read(value, "clientCapabilities").ok()?;
    let mut kept = Vec::new();
    for (name, capability) in declared.iter() {
        let Ok(members) = Members::read(capability, "capability") else {
            continue;
        };
        if name == EXTENSIONS {
            let is_known = |(name, _): &(&str, _)| KNOWN_EXTENSIONS.contains(name);
            let own = members.iter().filter(is_known);
            let own: Vec<_> = own
                .map(|(name, value)| (name, settings(name, value)))
                .collect();
            kept.push((name, unchanged_or(capability, &own, members.iter().count())));
        } else if let Some((_, known)) = CAPABILITIES.iter().find(|(known, _)| *known == name) {
            let own = members.iter().filter(|(name, _)| known.contains(name));
            let own: Vec<_> = own
                .map(|(name, value)| (name, without_members(value)))
                .collect();
            kept.push((name, unchanged_or(capability, &own, members.iter().count())));
        }
    }
    Some(unchanged_or(value, &kept, declared.iter().count()))
}

/// Returns the settings of an extension that are kept.
fn settings(name: &str, value: &RawValue) -> String {
    let is_kept = |(known, kept): &&(&str, &str)| *known == name && is_same(kept, value);
    match KNOWN_SETTINGS.iter().find(is_kept) {
        Some(_) => value.get().to_owned(),
        None => without_members(value),
    }
}

fn is_same(text: &str, value: &RawValue) -> bool {
    let read = serde_json::from_str::<serde_json::Value>;
    read(text).ok() == read(value.get()).ok()
}

/// Returns an empty object, as it is written if it is one already.
fn without_members(value: &RawValue) -> String {
    let is_empty = Members::read(value, "object").is_ok_and(|all| all.iter().count() == 0);
    if is_empty {
        value.get().to_owned()
    } else {
        "{}".to_owned()
    }
}

/// Returns an object of these members; the object as it is written if these are all of its members, unchanged.
fn unchanged_or(value: &RawValue, kept: &[(&str, String)], count: usize) -> String {
    let object: Vec<String> = kept
        .iter()
        .map(|(name, value)| format!("{}:{value}", members::raw_text(name)))
        .collect();
    let object = format!("{{{}}}", object.join(","));
    if kept.len() == count && is_same(&object, value) {
        value.get().to_owned()
    } else {
        object
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

/// Returns the request without members of `_meta` and `task` that no approver has seen; `None` if it has none.
pub(crate) fn without_unshown(frame: Frame<'_>) -> Option<IndexedFrame> {
    let (task, meta) = (task_splice(frame), meta_splice(frame));
    let splices: Vec<Splice> = task.into_iter().chain(meta).collect();
    (!splices.is_empty()).then(|| IndexedFrame::changed(frame, &splices))
}

/// Returns the change to an empty `task`, so that the server decides how long the result is kept; `None` if it has no
/// members.
fn task_splice(frame: Frame<'_>) -> Option<Splice> {
    let range = frame.member_range(FramePart::Params, "task")?;
    let task = Members::read_text(&frame.text()[range.clone()], "task").ok()?;
    let has_members = task.iter().next().is_some();
    has_members.then(|| Splice::new(range, "{}"))
}

/// Returns the change to a `_meta` without members that no approver has seen; `None` if it has none.
fn meta_splice(frame: Frame<'_>) -> Option<Splice> {
    let range = frame.range(FramePart::Meta)?.clone();
    let meta = Members::read_text(&frame.text()[range.clone()], "_meta").ok()?;
    let is_needed =
        |name: &str, value: &RawValue| needed_of(name, value).as_deref() == Some(value.get());
    if meta.iter().all(|(name, value)| is_needed(name, value)) {
        return None;
    }
    let known: Vec<String> = meta
        .iter()
        .filter_map(|(name, value)| Some((name, needed_of(name, value)?)))
        .map(|(name, value)| format!("{}:{value}", members::raw_text(name)))
        .collect();
    let known = format!("{{{}}}", known.join(","));
    Some(Splice::new(range, known))
}

#[cfg(test)]
mod tests {
    use mcp_elicit_core::wire::FrameIndex;

    use super::*;

    fn changed(call: &str) -> Option<String> {
        let index = FrameIndex::at(call.as_bytes()).unwrap();
        without_unshown(Frame::of_text(call, &index)).map(IndexedFrame::into_text)
    }

    const CALL: &str = r#"{"id":1,"method":"tools/call","params":{"name":"rm","arguments":{"path":"/tmp/a", "n":12345678901234567890,"deep":{"on":true}}}}"#;

    #[test]
    fn what_no_approver_saw_in_meta_is_left_out() {
        let with = |meta: &str| {
            format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"rm","_meta":{meta}}}}}"#)
        };
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let needed = format!(
            r#"{{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/logLevel":"info","traceparent":"{trace}"}}"#,
            own_info()
        );
        assert_eq!(changed(&with(&needed)), None);
        assert_eq!(changed(CALL), None);
        for unseen in [
            r#""force":"yes""#,
            r#""io.modelcontextprotocol/x":{"a":1}"#,
            r#""io.modelcontextprotocol/related-task":{"taskId":"t"}"#,
            r#""baggage":"force=yes""#,
            r#""tracestate":"force=yes""#,
            r#""Traceparent":"x""#,
        ] {
            let more = needed.replacen('{', &format!("{{{unseen},"), 1);
            assert_eq!(changed(&with(&more)), Some(with(&needed)), "{unseen}");
        }
        // Each has an invalid format.
        for another in [
            r#""progressToken":{"force":true}"#,
            r#""io.modelcontextprotocol/protocolVersion":{"force":true}"#,
            r#""io.modelcontextprotocol/protocolVersion":"path=/etc""#,
            r#""io.modelcontextprotocol/clientInfo":"force""#,
            r#""io.modelcontextprotocol/logLevel":"force""#,
            r#""traceparent":"force""#,
            r#""traceparent":["force"]"#,
        ] {
            let sent = with(&format!("{{{another}}}"));
            assert_eq!(changed(&sent), Some(with("{}")), "{another}");
        }
    }

    #[test]
    fn of_a_client_s_description_of_itself_only_known_abilities_go_along() {
        let sent = |meta: &str| {
            let call = format!(
                r#"{{"id":1,"method":"tools/call","params":{{"name":"rm","_meta":{meta}}}}}"#
            );
            changed(&call).map(|call| {
                let call: serde_json::Value = serde_json::from_str(&call).unwrap();
                call["params"]["_meta"].clone()
            })
        };
        let info = |info: &str| {
            sent(&format!(
                r#"{{"io.modelcontextprotocol/clientInfo":{info}}}"#
            ))
        };
        let capabilities = |all: &str| {
            sent(&format!(
                r#"{{"io.modelcontextprotocol/clientCapabilities":{all}}}"#
            ))
        };
        assert_eq!(info(&own_info().to_string()), None);
        for given in [
            r#"{"name":"c","version":"path=/etc"}"#,
            r#"{"name":"c","version":"1","title":"path=/etc"}"#,
            r#"{"name":"c","force":"yes","path":"/etc"}"#,
            r#"{"name":"c","icons":[{"src":"/etc"}]}"#,
            r#"{"name":{"path":"/etc"},"version":"1"}"#,
        ] {
            let kept = info(given).unwrap();
            assert_eq!(
                kept["io.modelcontextprotocol/clientInfo"],
                own_info(),
                "{given}"
            );
        }
        for usual in [
            "{}",
            r#"{"elicitation":{}, "sampling":{"tools":{}}}"#,
            r#"{"elicitation":{"form":{},"url":{}},"roots":{}}"#,
            r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#,
        ] {
            assert_eq!(capabilities(usual), None, "{usual}");
        }
        for (given, expected) in [
            (
                r#"{"elicitation":{},"experimental":{"override":{"path":"/etc/shadow"}}}"#,
                r#"{"elicitation":{}}"#,
            ),
            (
                r#"{"elicitation":{"form":{"force":true},"x":{}}}"#,
                r#"{"elicitation":{"form":{}}}"#,
            ),
            (
                r#"{"elicitation":"force","roots":{"uri":"/etc"}}"#,
                r#"{"roots":{}}"#,
            ),
            (r#"{"force":{}}"#, "{}"),
            (
                r#"{"extensions":{"com.example/x":{"path":"/etc"}}}"#,
                r#"{"extensions":{}}"#,
            ),
            (
                r#"{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["/etc"]},"io.modelcontextprotocol/path=etc":{},"io.modelcontextprotocol/path-etc":{}}}"#,
                r#"{"extensions":{"io.modelcontextprotocol/ui":{}}}"#,
            ),
        ] {
            let kept = capabilities(given).unwrap();
            let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
            assert_eq!(
                kept["io.modelcontextprotocol/clientCapabilities"], expected,
                "{given}"
            );
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
    fn the_server_decides_how_long_the_result_of_an_approved_call_is_kept() {
        let with = |task: &str| {
            format!(
                r#"{{"id":1,"method":"tools/call","params":{{"name":"rm","task":{task},"_meta":{{}}}}}}"#
            )
        };
        for task in [r#"{"ttl":60000}"#, r#"{"ttl":null}"#] {
            assert_eq!(
                changed(&with(task)).as_deref(),
                Some(&*with("{}")),
                "{task}"
            );
        }
        for task in ["{}", "null"] {
            assert_eq!(changed(&with(task)), None, "{task}");
        }
        let both = with(r#"{"ttl":1}"#).replace(r#""_meta":{}"#, r#""_meta":{"force":1}"#);
        assert_eq!(changed(&both).as_deref(), Some(&*with("{}")));
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
