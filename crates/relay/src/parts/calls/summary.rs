//! The reading of a call from its request: its target, its arguments and their digest.

use mcp_elicit_core::digest;
use mcp_elicit_core::question::ProofNumber;
use mcp_elicit_core::wire::members::Members;
use mcp_elicit_core::wire::{CallDefect, CallFrame, Frame, FramePart, Id, RESERVED};

use crate::{CallKind, CallSummary};

/// Returns the target's name or URI; `None` if it cannot be read.
pub(super) fn target(frame: Frame<'_>) -> Option<String> {
    let call = CallFrame::read(frame.text(), frame.index()).ok()?;
    Some(call.target.into_owned())
}

/// Returns the defect of a call whose name or URI is longer than any may be. Nothing keeps or logs such a name.
pub(crate) fn too_long_target(frame: Frame<'_>) -> Option<CallDefect> {
    let read = CallFrame::read(frame.text(), frame.index());
    read.err()
        .filter(|defect| *defect == CallDefect::TargetTooLong)
}

/// Reads the call of a request of this kind for rules: no member has a name that a server may read as another.
pub(crate) fn summary_for_rules(
    kind: CallKind,
    frame: Frame<'_>,
) -> Result<CallSummary, CallDefect> {
    let summary = summary(kind, frame)?;
    CallFrame::read(frame.text(), frame.index())?.check_reserved()?;
    let params = frame.params().map(|params| Members::read(params, "params"));
    let has_reserved =
        |params: &Members<'_>| params.iter().any(|(name, _)| RESERVED.contains(&name));
    match params {
        Some(Ok(params)) if has_reserved(&params) => Err(CallDefect::Reserved),
        Some(_) | None => Ok(summary),
    }
}

/// Reads the call of a request of this kind.
pub(crate) fn summary(kind: CallKind, frame: Frame<'_>) -> Result<CallSummary, CallDefect> {
    let call = CallFrame::read(frame.text(), frame.index())?;
    let digest = digest::of_call(kind, &call)?;
    Ok(with_digest(kind, call, digest))
}

/// Reads the call of a request of this kind whose digest is known, which is the most expensive part.
pub(super) fn summary_of(
    kind: CallKind,
    frame: Frame<'_>,
    digest: String,
) -> Result<CallSummary, CallDefect> {
    let call = CallFrame::read(frame.text(), frame.index())?;
    Ok(with_digest(kind, call, digest))
}

fn with_digest(kind: CallKind, call: CallFrame<'_>, digest: String) -> CallSummary {
    CallSummary {
        kind,
        target: call.target.into_owned(),
        arguments: call.arguments.map(str::to_owned),
        digest,
        proof: ProofNumber::default(),
    }
}

/// Returns the token in `params._meta.progressToken`.
pub(crate) fn progress_token(frame: Frame<'_>) -> Option<Id> {
    let token = frame.member(FramePart::Meta, "progressToken")?;
    Id::read(serde_json::from_str(token).ok()?)
}

#[cfg(test)]
mod tests {
    use mcp_elicit_core::wire::FrameIndex;

    use super::*;

    fn of(frame: &str) -> CallSummary {
        let index = FrameIndex::at(frame.as_bytes()).unwrap();
        summary(CallKind::Tool, Frame::of_text(frame, &index)).unwrap()
    }

    #[test]
    fn the_same_call_has_the_same_digest_in_any_order() {
        let one = of(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1,"b":{"c":2,"d":3}}}}"#,
        );
        let two = of(
            r#"{"id":2,"method":"tools/call","params":{"_meta":{"progressToken":9},"arguments":{"b":{"d":3,"c":2},"a":1},"name":"t"}}"#,
        );
        assert_eq!(one.digest, two.digest);
        assert_eq!(one.target, "t");
        let other = of(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":2,"b":{"c":2,"d":3}}}}"#,
        );
        assert_ne!(one.digest, other.digest);
    }

    #[test]
    fn arguments_stay_out_of_debug() {
        let call = of(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":"secret"}}}"#,
        );
        assert!(!format!("{call:?}").contains("secret"));
        assert_eq!(call.arguments.as_deref(), Some(r#"{"a":"secret"}"#));
    }

    #[test]
    fn two_different_calls_never_share_a_digest() {
        let with = |arguments: &str| {
            let frame = format!(
                r#"{{"id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
            );
            let index = FrameIndex::at(frame.as_bytes()).unwrap();
            summary(CallKind::Tool, Frame::of_text(&frame, &index)).map(|call| call.digest)
        };
        assert_ne!(
            with(r#"{"a":18446744073709551617}"#),
            with(r#"{"a":18446744073709551616}"#)
        );
        assert_eq!(
            with(r#"{"force":true,"force":false}"#),
            Err(CallDefect::Duplicate)
        );
        assert_eq!(with(r#"{"a":1e999}"#), Err(CallDefect::Number));
    }
}
