//! `audit`: the events of every question, and the check that their record is complete.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use mcp_elicit_inbox::api_tokens::ApiTokens;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::IdentityKey;
use mcp_elicit_record::audit::{self, ChainCheck};
use mcp_elicit_record::principal::Principal;
use mcp_elicit_record::store::{ChainKey, is_keyed};
use serde_json::Value;

use super::{in_runtime, state_record};
use crate::failure::{Exit, Failure};
use crate::output::{self, harmless};

/// List and verify the audit events of every question that went through a gateway
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Only events of this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Only events of this kind
    #[arg(long, value_name = "EVENT", value_parser = PossibleValuesParser::new(audit::events()))]
    event: Option<String>,

    /// Only events of the question whose id begins with this
    #[arg(long, value_name = "ID")]
    question: Option<String>,

    /// Print JSON lines, each with its link in the chain
    #[arg(long)]
    json: bool,

    /// Only verify the chain
    #[arg(long)]
    verify: bool,

    /// The state folder of the gateway
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// Runs the command to its end.
pub(crate) fn run(args: AuditArgs) -> Result<Exit, Failure> {
    in_runtime(show(args))
}

async fn show(args: AuditArgs) -> Result<Exit, Failure> {
    let (folder, has_record) = state_record::folder_and_record(args.state.clone()).await?;
    if !has_record {
        say_empty();
        return Ok(Exit::Done);
    }
    let unreadable = |fault| Failure::usage("the record cannot be read").because(fault);
    let key = chain_key(&folder)?;
    let store = state_record::to_read(&folder, key.clone());
    let links = audit::read(&store).await.map_err(unreadable)?;
    let verdict = audit::verify(&links, key.as_ref());
    let keys = folder.api_tokens();
    if links.is_empty() {
        say_empty();
        return Ok(exit_of(verdict));
    }
    if !args.verify {
        let mut has_some = false;
        for link in &links {
            let mut entry: Value = serde_json::from_str(&link.entry).unwrap_or_default();
            if !args.wants(&entry) {
                continue;
            }
            has_some = true;
            if args.json {
                output::print_json(
                    &serde_json::json!({"number": link.number, "hash": link.hash, "entry": entry}),
                )?;
            } else {
                name_key(&mut entry, &keys);
                output::print(line(&entry))?;
            }
        }
        if !has_some {
            output::say("no event matches `--server`, `--event` and `--question`");
        }
    }
    if key.is_none() && links.iter().any(|link| is_keyed(&link.hash)) {
        let file = folder.identity();
        return Err(Failure::refused(format!(
            "{} events; the chain cannot be verified: {} is missing or holds no complete key",
            links.len(),
            file.display()
        ))
        .hint("restore the key from a backup."));
    }
    if let ChainCheck::Whole { links } = verdict {
        output::say(format_args!("{links} events, the chain is intact"));
    }
    Ok(exit_of(verdict))
}

/// Reports that the audit is empty. With `--json`, standard output stays empty too.
fn say_empty() {
    output::say("no events yet: nothing has happened that the audit records");
}

/// Returns the exit code for a chain, and reports a broken one.
pub(super) fn exit_of(check: ChainCheck) -> Exit {
    match check {
        ChainCheck::Whole { .. } => Exit::Done,
        ChainCheck::BrokenAt { number } => {
            output::say(format_args!(
                "the chain is broken at event {number}: it was changed after it was written"
            ));
            Exit::Refused
        }
    }
}

/// Adds the name of the API key that made the call to its id.
fn name_key(entry: &mut Value, keys: &ApiTokens) {
    let caller = entry["principal"].as_str();
    let Some(Principal::Key(id)) = caller.and_then(Principal::parse) else {
        return;
    };
    let name = keys.in_words(id);
    if name != id {
        let name = name.trim_end_matches(&format!(" ({id})"));
        entry["principal"] = format!("key-{id} ({name})").into();
    }
}

/// Returns the key of the chain, which the gateway keeps beside the record; `None` if it is lost.
fn chain_key(folder: &StateFolder) -> Result<Option<ChainKey>, Failure> {
    let key = IdentityKey::read(&folder.identity()).map_err(|error| {
        let path = folder.path().display();
        Failure::usage(format!("the key in {path} cannot be read")).because(error)
    })?;
    Ok(key.as_ref().map(ChainKey::from_identity))
}

impl AuditArgs {
    fn wants(&self, entry: &Value) -> bool {
        let fits = |wanted: &Option<String>, name: &str| {
            wanted.as_deref().is_none_or(|wanted| entry[name] == wanted)
        };
        let begins = |id: &String| {
            entry["id"]
                .as_str()
                .is_some_and(|known| known.starts_with(id))
        };
        fits(&self.server, "server")
            && fits(&self.event, "event")
            && self.question.as_ref().is_none_or(begins)
    }
}

/// Formats a time, given in milliseconds since 1970, for people.
pub(crate) fn moment(millis: i64) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(millis).ok()?;
    Some(at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// Formats a time, given in seconds since 1970, for people; a dash if it is out of range.
pub(super) fn moment_in_seconds(seconds: u64) -> String {
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| seconds.checked_mul(1_000))
        .and_then(moment)
        .unwrap_or_else(|| "-".to_owned())
}

/// Formats one event as one line.
fn line(entry: &Value) -> String {
    let word = |name: &str| entry[name].as_str().unwrap_or("-");
    let at = entry["at"].as_i64().and_then(moment).unwrap_or_default();
    let id: String = word("id").chars().take(8).collect();
    let event = word("event");
    let told = audit::in_words(entry, |millis| moment(millis).unwrap_or_default());
    harmless(&format!("{at}  {id}  {event:<9}{told}")).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::line;

    #[test]
    fn what_rules_and_people_did_is_said_with_its_actor() {
        for (entry, said) in [
            (
                json!({"event": "rules-loaded", "digest": "0123456789ab", "before": "fedcba987654", "rules": 3, "by": "owner"}),
                "rules-loaded  rules 01234567 instead of fedcba98  by owner",
            ),
            (
                json!({"event": "rules-loaded", "digest": "0123456789ab", "before": "0123456789ab", "by": "owner"}),
                "rules-loaded  rules 01234567, unchanged  by owner",
            ),
            (
                json!({"event": "rules-rejected", "digest": "0123456789ab", "by": "owner"}),
                "rules-rejected  rules kept: 01234567  by owner",
            ),
            (
                json!({"event": "shown", "server": "s", "target": "t", "rule": "r", "principal": "key-1", "to": "person:ada"}),
                "shown      s / t  rule r  called by key-1  to person:ada",
            ),
            (
                json!({"event": "notified", "to": "group:ops", "channel": "slack", "by": "timer"}),
                "notified   to group:ops  by timer  through slack",
            ),
            (
                json!({"event": "rules-loaded", "digest": "0123456789ab", "restart": ["`listen`", "[channels.push]"], "by": "owner"}),
                "rules-loaded  rules 01234567  without `listen`, [channels.push] (needs a restart)  by owner",
            ),
            (
                json!({"event": "refused-by-rule", "server": "s", "target": "t", "rule": "never", "principal": "key-1"}),
                "refused-by-rule  s / t  rule never  called by key-1",
            ),
            (
                json!({"event": "approval-granted", "server": "s", "target": "t", "rule": "r", "principal": "local",
                    "edited": ["/path"], "until": 1_000, "by": "person:ada, person:bob"}),
                "approval-granted  s / t  changed /path  rule r  good until 1970-01-01 00:00:01 UTC  by person:ada, person:bob",
            ),
            (
                json!({"event": "act-refused", "server": "s", "target": "t", "rule": "r", "principal": "local", "act": "fill",
                    "reason": "not-addressed", "by": "person:eve"}),
                "act-refused  s / t  rule r  fill  by person:eve  not-addressed",
            ),
            (
                json!({"event": "delegated", "server": "s", "target": "t", "rule": "r", "to": "group:leads", "by": "person:ada"}),
                "delegated  s / t  rule r  to group:leads  by person:ada",
            ),
            (
                json!({"event": "sign-in", "by": "person:ada", "session": "3fa0"}),
                "sign-in    session 3fa0  by person:ada",
            ),
            // The form written by earlier versions.
            (
                json!({"event": "sign-in", "by": "ada, session 3fa0"}),
                "sign-in    by ada, session 3fa0",
            ),
            (
                json!({"event": "sign-in-refused", "principal": "[\"https://id\",\"s-1\"]", "reason": "not-allowed", "leftOut": 5}),
                "sign-in-refused  as [\"https://id\",\"s-1\"]  not-allowed  (5 more before it were left out)",
            ),
            (
                json!({"event": "logout-token", "by": "provider", "reason": "accepted"}),
                "logout-token  by provider  accepted",
            ),
            (
                json!({"event": "session-ended", "by": "person:eve", "person": "ada", "session": "3fa0"}),
                "session-ended  of ada  session 3fa0  by person:eve",
            ),
            (
                json!({"event": "caller-refused", "server": "s", "mode": "keys", "reason": "unknown-key"}),
                "caller-refused  s / -  unknown-key",
            ),
        ] {
            let line = line(&entry);
            assert!(line.ends_with(said), "{line}");
        }
    }

    #[test]
    fn an_event_says_who_or_where_in_plain_words() {
        for (by, said) in [
            ("on the command line", "  on the command line"),
            (
                "in the browser, session 3fa0",
                "  in the browser, session 3fa0",
            ),
            ("client", "  by client"),
        ] {
            let entry = json!({"at": 0, "id": "f1297f74108228f8", "event": "answered", "server": "a", "target": "b", "by": by});
            assert!(
                line(&entry).ends_with(&format!("a / b{said}")),
                "{}",
                line(&entry)
            );
        }
    }
}
