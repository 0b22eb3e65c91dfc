//! `record stats`, `record export`, `record purge` and `record erase`: the contents of a record in numbers and as lines
//! of JSON, and the deletion of ended questions before their time.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_inbox::api::export::{Export, ExportSelection};
use mcp_elicit_inbox::audit_selection;
use mcp_elicit_inbox::direct_record::{self, ON_COMMAND_LINE};
use mcp_elicit_record::store::{Purge, RecordContents};
use mcp_elicit_record::{Record, clock};
use serde_json::json;

use super::audit::moment;
use super::state_record::{self, unopened, unreadable, unusable};
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::output::{self, harmless};

/// Prints the contents of the record in numbers.
pub(super) async fn stats(place: &RecordLocation, json: bool) -> Result<Exit, Failure> {
    let store = state_record::to_read(&state_record::folder(place).await?);
    let contents = store.contents().await.map_err(unreadable)?;
    let open = store.open_figures().await.map_err(unreadable)?;
    let size = store.size().await.map_err(unreadable)?;
    let bytes = size.map(|size| size.on_disk);
    if json {
        let RecordContents {
            waiting,
            undelivered,
            ended,
            oldest_ended,
            running_calls,
            results,
            grants,
            messages,
            links,
        } = contents;
        output::print_json(&json!({
            "waiting": waiting,
            "oldestWaiting": open.oldest,
            "waitingByServer": open.by_server.into_iter().collect::<BTreeMap<_, _>>(),
            "undelivered": undelivered,
            "ended": ended,
            "oldestEnded": oldest_ended,
            "runningCalls": running_calls,
            "results": results,
            "grants": grants,
            "messages": messages,
            "auditEvents": links,
            "bytes": bytes,
        }))?;
        return Ok(Exit::Done);
    }
    let since = |at: Option<Timestamp>| {
        let at = at.and_then(|at| i64::try_from(at.as_millis()).ok());
        let at = at.and_then(moment);
        at.map_or_else(String::new, |at| format!(", the oldest since {at}"))
    };
    let lines = [
        ("questions that wait", contents.waiting, since(open.oldest)),
        ("answers not delivered", contents.undelivered, String::new()),
        (
            "questions that ended",
            contents.ended,
            since(contents.oldest_ended),
        ),
        (
            "calls in progress without a client",
            contents.running_calls,
            String::new(),
        ),
        (
            "results that wait for their call",
            contents.results,
            String::new(),
        ),
        (
            "approvals that apply for a while",
            contents.grants,
            String::new(),
        ),
        ("messages to people", contents.messages, String::new()),
        ("events of the audit", contents.links, String::new()),
    ];
    for (name, count, rest) in lines {
        output::print(format_args!("{name:<36}{count:>10}{rest}"))?;
    }
    for (server, count) in open.by_server {
        let server = harmless(&server).into_owned();
        output::print(format_args!(
            "{:<36}{count:>10}",
            format!("  that wait, of {server}")
        ))?;
    }
    if let Some(bytes) = bytes {
        output::print(format_args!("{:<36}{bytes:>10}", "bytes"))?;
    }
    Ok(Exit::Done)
}

/// Prints questions as lines of JSON.
pub(super) async fn export(
    place: &RecordLocation,
    principal: Option<String>,
    with_kept: bool,
) -> Result<Exit, Failure> {
    let folder = state_record::folder(place).await?;
    let record = direct_record::record(&folder).await.map_err(unopened)?;
    let record = Arc::new(record);
    let selection = ExportSelection {
        principal,
        with_kept,
    };
    let mut export = Export::new(Arc::clone(&record), folder, selection);
    let mut count = 0_usize;
    while let Some(question) = export.next_question().await.map_err(unusable)? {
        output::print_json(&question)?;
        count += 1;
    }
    record.flush().await.map_err(unusable)?;
    output::say(match count {
        1 => "1 question".to_owned(),
        count => format!("{count} questions"),
    });
    Ok(Exit::Done)
}

/// Deletes questions that ended before a time, or says how many there are.
pub(super) async fn purge(
    place: &RecordLocation,
    before: &str,
    dry_run: bool,
) -> Result<Exit, Failure> {
    let before = audit_selection::earliest(before, clock::now())
        .map_err(|error| Failure::usage(error.to_string()))?;
    delete(place, Purge::before(before), dry_run).await
}

/// Deletes the ended questions of a caller, or says how many there are.
pub(super) async fn erase(
    place: &RecordLocation,
    principal: &str,
    dry_run: bool,
) -> Result<Exit, Failure> {
    delete(place, Purge::of(principal.to_owned()), dry_run).await
}

async fn delete(place: &RecordLocation, purge: Purge, dry_run: bool) -> Result<Exit, Failure> {
    let folder = state_record::folder(place).await?;
    let record = direct_record::record(&folder).await.map_err(unopened)?;
    let store = record.store();
    let count = if dry_run {
        store.purgeable(purge.clone()).await.map_err(unreadable)?
    } else {
        let deleted = record.purge(purge.clone(), ON_COMMAND_LINE).await;
        deleted.map_err(unusable)?
    };
    let did = if dry_run {
        "would be deleted"
    } else {
        "deleted; the audit stays"
    };
    output::say(match count {
        0 if purge.principal.is_some() => {
            "no ended question of this caller is in the record: nothing was deleted; the name is the `principal` of `mcp-elicit audit --json`, key-ID \
             for a key, [\"ISSUER\",\"SUBJECT\"] for an access token"
                .to_owned()
        }
        0 => "no ended question is meant: nothing was deleted".to_owned(),
        1 => format!("1 ended question {did}"),
        count => format!("{count} ended questions {did}"),
    });
    if let Some(principal) = &purge.principal {
        say_what_is_left(&record, principal).await?;
    }
    Ok(Exit::Done)
}

/// Says which questions of a caller stay, because they have not ended.
async fn say_what_is_left(record: &Record, principal: &str) -> Result<(), Failure> {
    let waiting = record.store().waiting_of(principal.to_owned(), None);
    let waiting = waiting.await.map_err(unreadable)?.of_caller;
    if waiting > 0 {
        output::say(format_args!(
            "{waiting} of this caller still wait: `mcp-elicit inbox list` shows them, and they can be deleted when they have ended"
        ));
    }
    Ok(())
}
