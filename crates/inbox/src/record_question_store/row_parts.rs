//! The parts of a row that people see: its origin, its client, its end, and notes about the call that waits.

use std::time::SystemTime;

use mcp_elicit_core::lifecycle::Phase;
use mcp_elicit_core::wire::Mode;
use mcp_elicit_forms::view::{CallView, Origin, QuestionView};
use mcp_elicit_forms::web::{EndKind, Ended, QuestionSummary};
use mcp_elicit_record::Record;
use mcp_elicit_record::clock::system_time;
use mcp_elicit_record::principal::Principal;
use mcp_elicit_record::store::Row;
use serde_json::Value;

/// Returns `true` for a question of a rule in the call of an authenticated caller.
pub(super) fn has_named_caller(row: &Row) -> bool {
    let principal = Principal::parse(&row.body.principal);
    let is_named = matches!(
        principal,
        Some(Principal::Key(_) | Principal::Subject { .. })
    );
    row.team
        .as_ref()
        .is_some_and(|team| is_named || team.caller.person.is_some())
}

/// Returns the summary without the message and the arguments.
pub(super) fn outline(summary: QuestionSummary) -> QuestionSummary {
    QuestionSummary {
        excerpt: "addressed to others".to_owned(),
        arguments: None,
        ..summary
    }
}

/// Returns the origin: the operator's name, and separately the server's own claims.
pub(super) fn origin(row: &Row) -> Origin {
    let origin = match &row.body.address {
        Some(address) => Origin::unnamed(address.clone()),
        None => Origin::new(row.body.server.clone()),
    };
    let origin = origin.connected("through the gateway");
    let info: Option<Value> = row
        .body
        .server_info
        .as_deref()
        .and_then(|info| serde_json::from_str(info).ok());
    let word = |name: &str| {
        info.as_ref()
            .and_then(|info| info.get(name)?.as_str())
            .map(str::to_owned)
    };
    match (word("name"), word("version")) {
        (Some(name), version) => origin.claiming(name, version.unwrap_or_default()),
        (None, _) => origin,
    }
}

/// Returns the client that made the call, by the name and version that it claims.
pub(crate) fn client(row: &Row) -> Option<(String, Option<String>)> {
    let info: Value = serde_json::from_str(row.body.client_info.as_deref()?).ok()?;
    let word = |name: &str| info.get(name)?.as_str().map(str::to_owned);
    Some((word("name")?, word("version")))
}

/// Returns how the question ended, when and by whom; `None` while it waits.
pub(super) fn ended(row: &Row) -> Option<Ended> {
    let exchange = &row.lifecycle;
    let reason = || exchange.reason_in_words().unwrap_or_default().to_owned();
    let url = row.body.mode == Mode::Url;
    let how = match (exchange.phase(), exchange.delivery_reason()) {
        (Phase::Asked | Phase::Shown, _) => return None,
        (Phase::Answered | Phase::Declined | Phase::Cancelled, Some(why)) => EndKind::Failed(why),
        (Phase::Answered, None) if url => EndKind::Visited,
        (Phase::Answered, None) => EndKind::Answered,
        (Phase::Declined, None) => EndKind::Declined,
        (Phase::Cancelled, None) => EndKind::Cancelled,
        (Phase::TimedOut, _) => EndKind::TimedOut,
        (Phase::Withdrawn, _) => EndKind::Withdrawn(reason()),
        (Phase::Failed, _) => EndKind::Failed(reason()),
    };
    let at = exchange
        .ended_at()
        .map_or(SystemTime::UNIX_EPOCH, system_time);
    Some(Ended {
        how,
        at,
        by: exchange.ended_by().map(str::to_owned),
    })
}

/// Returns the result of a call that waited for approval; `None` for other questions.
fn approval_note(row: &Row) -> Option<String> {
    row.team.as_ref().filter(|team| team.is_approval)?;
    let line = match row.lifecycle.phase() {
        Phase::Answered => "The call was approved.",
        Phase::Declined => "The call was declined: its server never heard of it.",
        Phase::TimedOut => "The call was not approved in time: its server never heard of it.",
        Phase::Asked | Phase::Shown | Phase::Cancelled | Phase::Withdrawn | Phase::Failed => {
            return None;
        }
    };
    Some(line.to_owned())
}

/// Adds the call and the deadline of the row, if it has them.
pub(super) fn with_call(question: QuestionView, call: Option<CallView>, row: &Row) -> QuestionView {
    let question = match call {
        Some(call) => question.for_call(call),
        None => question,
    };
    match row.lifecycle.deadline() {
        Some(deadline) => question.until(system_time(deadline)),
        None => question,
    }
}

/// Returns a note if no call waits for the question; `None` if one does. `changed_rule` is the rule of the question if
/// it has changed, so that no later call finds the question.
pub(super) fn waiting_note(
    record: &Record,
    row: &Row,
    changed_rule: Option<&str>,
) -> Option<String> {
    let exchange = &row.lifecycle;
    if let Some(line) = approval_note(row) {
        return Some(line);
    }
    if record.is_waited_for(row) {
        return None;
    }
    if exchange.is_open() && !row.can_be_found() {
        return Some(
            "No call waits for this question, and no call can collect its answer, because the call that asked is unknown."
                .to_owned(),
        );
    }
    if let Some(rule) = changed_rule.filter(|_| exchange.is_open()) {
        return Some(format!(
            "No call waits for this question now, and the rule {rule} has changed since: the same call made again is asked about anew. Nobody gets an answer to this one."
        ));
    }
    if exchange.is_open() {
        let kept = minutes(record.answer_retention());
        return Some(format!(
            "No call waits for this question now. A repeated call gets your answer, up to {kept} after you gave it."
        ));
    }
    let until = exchange.valid_until()?.as_millis();
    let left = until
        .checked_sub(record.now().as_millis())
        .filter(|left| *left > 0)?;
    let acted = exchange.phase().action().is_some();
    (acted && exchange.delivered_at().is_none() && exchange.delivery_reason().is_none()).then(|| {
        if !row.can_be_found() {
            return "No call has taken the answer, and none can, because the call that asked is unknown.".to_owned();
        }
        if let Some(rule) = changed_rule {
            return format!("No call has taken the answer, and none gets it: the rule {rule} has changed since, so the same call is asked about anew.");
        }
        let left = minutes(std::time::Duration::from_millis(left));
        format!("No call has taken the answer yet. A repeated call gets it, for {left} from now.")
    })
}

/// Returns a duration in whole minutes, rounded up.
fn minutes(span: std::time::Duration) -> String {
    match span.as_secs().div_ceil(60) {
        1 => "1 minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    }
}
