//! The frames with which a server asks, as any reader may understand them. If two readers could differ, a frame counts
//! as asking if it asks for one of them.

use std::borrow::Cow;

use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::members::Members;
use mcp_elicit_core::wire::spelling::{has_same_letters, is_nearly};
use mcp_elicit_core::wire::{ElicitationMessage, WireError, method, pushed, rounds};

use crate::era::Server;
use crate::parts::calls::Call;

/// Returns `true` if a message has, for some reader, the member of its params that holds questions.
pub(crate) fn names_questions(frame: Frame<'_>) -> bool {
    if frame.part(FramePart::Params).is_none() {
        return false;
    }
    let params = frame.params().map(|params| Members::read(params, "params"));
    match params {
        Some(Ok(all)) => all.iter().any(|(name, _)| is_like_questions(name)),
        Some(Err(WireError::NotObject { .. })) => false,
        Some(Err(_)) | None => true,
    }
}

/// Returns `true` if the response is an error that requires visits to links. If rules apply, an error whose code some
/// reader may take for that one counts too.
pub(crate) fn wants_links(frame: Frame<'_>, is_judged: bool) -> bool {
    says(frame, FramePart::Error, "code", |code| {
        requires_urls(code) || (is_judged && may_require_urls(code))
    })
}

/// Returns the way in which the server's response to this call asks, if it does, by two members only; `is_judged` if rules
/// apply. If two readers could see different values, a value that asks counts: the response is then read in full, and
/// refused if necessary.
pub(crate) fn elicitation_in(
    server: &Server,
    call: Option<&Call>,
    frame: Frame<'_>,
    is_judged: bool,
) -> Option<ElicitationMessage> {
    call?.kind()?;
    if wants_links(frame, is_judged) {
        return Some(ElicitationMessage::UrlRequired);
    }
    let asks = server.may_ask_in_results() && asks_in_result(frame);
    asks.then_some(ElicitationMessage::InputRequired)
}

/// Returns `true` if the result says, as defined by 2026-07-28, that the server asks.
pub(crate) fn asks_in_result(frame: Frame<'_>) -> bool {
    says(frame, FramePart::Result, "resultType", asks)
}

/// Returns `true` if the result says, as defined by 2025-11-25, that the call continues as a task.
pub(crate) fn begins_task(frame: Frame<'_>) -> bool {
    says(frame, FramePart::Result, "task", |task| task != "null")
}

/// Returns `true` if this member of an object has such a value. If two readers could see different values, or the
/// object cannot be read, one reader is enough.
fn says(
    frame: Frame<'_>,
    part: FramePart,
    member: &'static str,
    so: impl Fn(&str) -> bool,
) -> bool {
    if let Ok(value) = frame.sole_member(part, member) {
        return value.is_some_and(so);
    }
    let object = match part {
        FramePart::Error => frame.error(),
        FramePart::Result => frame.result(),
        FramePart::Params | FramePart::Meta => frame.params(),
    };
    match object.map(|object| Members::read(object, member)) {
        Some(Ok(all)) => all.get(member).is_some_and(|value| so(value.get())),
        Some(Err(_)) | None => frame
            .part(part)
            .is_some_and(|object| object.starts_with('{')),
    }
}

/// Returns `true` if the response has a list where the specification has an object. Some readers take the items of a list
/// for members, in order: `["input_required", {…}]` asks.
pub(crate) fn has_list(frame: Frame<'_>) -> bool {
    let is_list = |part| frame.part(part).is_some_and(|text| text.starts_with('['));
    is_list(FramePart::Result) || is_list(FramePart::Error)
}

/// Returns `true` if the result asks as defined by 2026-07-28, or begins a task, which may ask.
pub(crate) fn asks_in_rounds(frame: Frame<'_>) -> bool {
    let has_questions = |asked: &str| asked != "null";
    frame.index().has_rounds_member
        && (says(frame, FramePart::Result, "resultType", asks_or_may)
            || says(frame, FramePart::Result, "inputRequests", has_questions))
}

/// Returns `true` if the method of a notification that does not ask could be taken for one that does, by a reader that
/// ignores letter case, separators and the missing id.
pub(crate) fn resembles_question(method: &str) -> bool {
    let asking = [method::CREATE, method::TASK_STATUS, method::COMPLETE];
    method == method::CREATE || is_nearly(method, &asking)
}

/// Returns `true` if some reader could take this code of an error, although it is another number or not a number, for
/// one that requires visits.
fn may_require_urls(code: &str) -> bool {
    let digits = code.strip_prefix('-').unwrap_or(code);
    let is_digit = |digit: u8| digit.is_ascii_digit();
    if digits.len() < 16
        && digits.bytes().all(is_digit)
        && let Ok(code) = code.parse::<i64>()
    {
        // A 32-bit reader truncates it to that number.
        return (code - pushed::URL_REQUIRED_CODE) % (1 << 32) == 0;
    }
    match serde_json::from_str::<String>(code) {
        Ok(text) => !text.is_ascii() || text.bytes().any(is_digit),
        Err(_) => true,
    }
}

/// Returns `true` if some reader could take this member's name for `inputRequests`.
fn is_like_questions(name: &str) -> bool {
    has_same_letters(name, "inputRequests")
}

/// Returns `true` if this code of an error requires visits, however the number is written.
fn requires_urls(code: &str) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "the code is far below 2^53")]
    let wanted = pushed::URL_REQUIRED_CODE as f64;
    code.parse()
        .is_ok_and(|code: f64| (code - wanted).abs() < 0.5)
}

/// Returns `true` if this `resultType` asks; a string may be written with escapes.
fn asks(kind: &str) -> bool {
    let kind = serde_json::from_str::<Cow<'_, str>>(kind);
    kind.is_ok_and(|kind| kind == rounds::INPUT_REQUIRED)
}

/// Returns `true` if this `resultType` asks, or says that the call continues as a task.
fn asks_or_may(kind: &str) -> bool {
    let kind = serde_json::from_str::<Cow<'_, str>>(kind);
    kind.is_ok_and(|kind| kind == rounds::INPUT_REQUIRED || kind == "task")
}
