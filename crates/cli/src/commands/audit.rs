//! `audit`: the events of every question, and the check that their record is complete.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_inbox::api_tokens::ApiTokens;
use mcp_elicit_inbox::audit_selection::{
    AuditSelection, call_in_words, details_in_words, name_key, outcome_in_words,
};
use mcp_elicit_inbox::direct_record::ON_COMMAND_LINE;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::audit::{
    self, Actor, AuditFilter, AuditPurge, AuditedEvent, AuditedQuestion, ChainCheck, ChainVerifier,
    Member,
};
use mcp_elicit_record::store::{AuditEntry, ChainKey, RecordStore, is_keyed};
use mcp_elicit_record::{IdentityKey, clock};
use serde_json::Value;

use super::audit_checkpoint::{Against, AuditCommand};
use super::state_record::unreadable;
use super::{audit_call, audit_checkpoint, audit_purge, in_runtime, state_record};
use crate::args::record_location::RecordLocation;
use crate::call_session::stop;
use crate::failure::{Exit, Failure};
use crate::output::{self, harmless};

/// The number of links that are read at once.
const AT_ONCE: usize = 1_000;
/// The interval at which `--follow` looks for events.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(400);
/// The interval at which `--follow` tries a database again that is away.
const AWAY_INTERVAL: Duration = Duration::from_secs(2);

/// List, verify, follow and export the audit events of every question that went through a gateway
#[derive(Debug, Args)]
#[command(
    after_help = "Times are UTC: a day (2026-11-27), a time (2026-11-27T14:30), or a span before now (24h, 7d)."
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct AuditArgs {
    /// Only events of this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Only events of this kind, such as accepted, declined or delivered; an unknown kind lists all
    #[arg(long, value_name = "EVENT", value_parser = event)]
    event: Option<String>,

    /// Only this outcome of questions and calls
    #[arg(long, value_name = "OUTCOME", value_parser = PossibleValuesParser::new(audit::OUTCOMES.map(|(name, _)| name)), conflicts_with = "event")]
    outcome: Option<String>,

    /// Only events of the question whose id begins with this
    #[arg(long, value_name = "ID")]
    question: Option<String>,

    /// Only events of exactly this call, such as {"tool": "NAME", "arguments": {..}}: those in which people were asked about
    /// it (asked), and those in which they approved it (approval-granted). The audit has no arguments, only a keyed digest
    /// of each call
    #[arg(long, value_name = "JSON")]
    call: Option<String>,

    /// Only actions of this person, and logins of theirs
    #[arg(long, value_name = "NAME")]
    person: Option<String>,

    /// Only events of this caller: the note or the id of an API key, or the beginning of a caller's name
    #[arg(long, value_name = "CALLER")]
    caller: Option<String>,

    /// Only events from this time on
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Only events until this time; a day is included
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

    /// Print a line per question, the latest first: its call, its outcome, and who decided
    #[arg(long, conflicts_with_all = ["csv", "follow", "verify"])]
    by_question: bool,

    /// Print the questions or the events as JSON lines, each event with its link in the chain
    #[arg(long)]
    json: bool,

    /// Print comma-separated values for spreadsheets
    #[arg(long, conflicts_with_all = ["json", "verify"])]
    csv: bool,

    /// Print events as they happen, after those so far, until Ctrl-C
    #[arg(long, conflicts_with = "verify")]
    follow: bool,

    /// With --follow: begin after the event of this number, which --json has, instead of with the first one
    #[arg(long, value_name = "NUMBER", requires = "follow")]
    after: Option<u64>,

    /// Only verify the chain
    #[arg(long)]
    verify: bool,

    /// With --verify: compare the chain with the checkpoints in this file, so that one that was cut or made anew is noticed
    #[arg(long, value_name = "FILE", requires = "verify")]
    against: Option<PathBuf>,

    #[command(flatten)]
    location: RecordLocation,

    #[command(subcommand)]
    act: Option<AuditCommand>,
}

/// Runs the command to its end.
pub(crate) fn run(mut args: AuditArgs) -> Result<Exit, Failure> {
    match args.act.take() {
        Some(AuditCommand::Checkpoint(checkpoint)) => {
            in_runtime(audit_checkpoint::run(checkpoint, &args.location))
        }
        Some(AuditCommand::Purge(purge)) => in_runtime(audit_purge::run(purge, &args.location)),
        None => in_runtime(show(args)),
    }
}

async fn show(args: AuditArgs) -> Result<Exit, Failure> {
    let (folder, has_record) = state_record::folder_and_record(&args.location).await?;
    let keys = folder.api_tokens();
    let filter = args.selection().filter(Some(&keys), clock::now());
    let mut filter = filter.map_err(|wrong| Failure::usage(wrong.to_string()))?;
    if !has_record && !args.follow && args.against.is_none() {
        say_empty();
        return Ok(Exit::Done);
    }
    let identity = identity_key(&folder).await?;
    let against = args.against.as_deref().map(|file| {
        let key = identity.as_ref().ok_or_else(|| without_key(&folder))?;
        Against::read(file, key)
    });
    let key = identity.as_ref().map(ChainKey::from_identity);
    let store = &*state_record::to_read(&folder);
    if let Some(call) = &args.call {
        let key = identity.as_ref().ok_or_else(|| without_key(&folder))?;
        filter.call = Some(audit_call::evidence(call, key)?);
    }
    if args.by_question {
        return args.print_questions(store, &filter, &keys).await;
    }
    if args.csv {
        output::print_part(audit::CSV_HEADER)?;
    }
    let mut links = ReadLinks {
        against: against.transpose()?,
        ..ReadLinks::default()
    };
    let mut chain = ChainVerifier::new(key.as_ref());
    if let Some(after) = args.after {
        return args.follow(store, &filter, &keys, after).await;
    }
    if has_record {
        links = args
            .print_links(store, &filter, &keys, links, &mut chain)
            .await?;
    }
    if args.follow {
        return args.follow(store, &filter, &keys, links.last).await;
    }
    if links.last == 0 && links.broken.is_none() {
        say_empty();
        let against = links
            .against
            .map_or(Exit::Done, |against| against.finish(0, None));
        return Ok(match exit_of(chain.finish()) {
            Exit::Done => against,
            broken => broken,
        });
    }
    if links.printed == 0 && !args.verify {
        output::say(
            "no event matches the filters; `--caller` takes the id or the note of a key, or the whole name of a caller (`principal` in --json), and \
             `--person` the name of a person",
        );
    }
    if key.is_none() && links.is_keyed {
        let file = folder.identity();
        return Err(Failure::refused(format!(
            "{} events; the chain cannot be verified: {} is missing or holds no complete key",
            links.last,
            file.display()
        ))
        .hint("restore the key from a backup."));
    }
    let verdict = links.broken.unwrap_or_else(|| chain.finish());
    let ChainCheck::Whole { links: count, .. } = verdict else {
        return Ok(exit_of(verdict));
    };
    let purge = chain.purge();
    match purge {
        None => output::say(format_args!("{count} events, the chain is intact")),
        Some(purge) => output::say(format_args!(
            "{count} events, the chain is intact: complete since event {}{}; earlier events were deleted{}",
            links.first,
            links
                .first_at
                .map_or_else(String::new, |at| format!(" of {}", day(at))),
            purge_in_words(purge),
        )),
    }
    Ok(match &links.against {
        Some(against) => against.finish(links.last, purge),
        None => Exit::Done,
    })
}

/// The links that were read so far.
#[derive(Default)]
struct ReadLinks {
    /// The number of the first one, and its time.
    first: u64,
    first_at: Option<Timestamp>,
    /// The number of the last one.
    last: u64,
    /// The number of printed events.
    printed: u64,
    /// `true` if one was made with a key.
    is_keyed: bool,
    /// The first link that does not fit.
    broken: Option<ChainCheck>,
    /// The checkpoints with which they are compared.
    against: Option<Against>,
}

impl AuditArgs {
    fn selection(&self) -> AuditSelection {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        AuditSelection {
            event: text(&self.event),
            outcome: text(&self.outcome),
            server: text(&self.server),
            question: text(&self.question),
            person: text(&self.person),
            caller: text(&self.caller),
            since: text(&self.since),
            until: text(&self.until),
        }
    }

    /// Prints all links, and checks the chain.
    async fn print_links(
        &self,
        store: &dyn RecordStore,
        filter: &AuditFilter,
        keys: &ApiTokens,
        mut links: ReadLinks,
        chain: &mut ChainVerifier<'_>,
    ) -> Result<ReadLinks, Failure> {
        let mut from = 0;
        loop {
            let page = store.audit(from, AT_ONCE).await;
            let page = page.map_err(unreadable)?;
            for link in &page {
                from = link.number + 1;
                if link.number != links.last + 1 || links.first == 0 {
                    links.first = link.number;
                    links.first_at = AuditedEvent::read(&link.entry).and_then(|entry| entry.at());
                }
                links.last = link.number;
                links.is_keyed |= is_keyed(&link.hash);
                if let Some(against) = &mut links.against {
                    against.add(link);
                }
                if links.broken.is_none() {
                    links.broken = chain.add(link).err();
                }
                if !self.verify && self.print(link, filter, keys)? {
                    links.printed += 1;
                }
            }
            if page.len() < AT_ONCE {
                return Ok(links);
            }
        }
    }

    /// Prints events as they happen: numbers have no gaps, so that none is missed or printed twice. A database that is away is
    /// waited for.
    async fn follow(
        &self,
        store: &dyn RecordStore,
        filter: &AuditFilter,
        keys: &ApiTokens,
        mut last: u64,
    ) -> Result<Exit, Failure> {
        let stop = stop::listen()?;
        let mut is_away = false;
        loop {
            let page = match store.audit(last.saturating_add(1), AT_ONCE).await {
                Ok(page) => page,
                Err(fault) if fault.is_in_database() => {
                    if !is_away {
                        is_away = true;
                        let why = fault.to_string();
                        let why = harmless(&why);
                        output::say(format_args!("{why}: waiting for it after event {last}"));
                    }
                    tokio::select! {
                        () = stop.cancelled() => return Ok(Exit::Interrupted),
                        () = tokio::time::sleep(AWAY_INTERVAL) => continue,
                    }
                }
                Err(fault) => return Err(unreadable(fault)),
            };
            if is_away {
                is_away = false;
                output::say(format_args!(
                    "the database is back: going on after event {last}"
                ));
            }
            for link in &page {
                last = link.number;
                self.print(link, filter, keys)?;
            }
            if !page.is_empty() {
                continue;
            }
            tokio::select! {
                () = stop.cancelled() => return Ok(Exit::Interrupted),
                () = tokio::time::sleep(FOLLOW_INTERVAL) => {}
            }
        }
    }

    /// Prints an event if it matches; returns `true` if it does.
    fn print(
        &self,
        link: &AuditEntry,
        filter: &AuditFilter,
        keys: &ApiTokens,
    ) -> Result<bool, Failure> {
        let mut entry = AuditedEvent::read(&link.entry).unwrap_or_default();
        if !filter.fits(&entry) {
            return Ok(false);
        }
        if self.json {
            output::print_json(
                &serde_json::json!({"number": link.number, "hash": link.hash, "entry": entry.into_value()}),
            )?;
        } else if self.csv {
            output::print_part(&audit::csv_line(link, iso))?;
        } else {
            name_key(&mut entry, Some(keys));
            output::print(line(&entry))?;
        }
        Ok(true)
    }

    /// Prints a line per question, the latest first.
    async fn print_questions(
        &self,
        store: &dyn RecordStore,
        filter: &AuditFilter,
        keys: &ApiTokens,
    ) -> Result<Exit, Failure> {
        let (mut before, mut printed) = (None, 0_u64);
        loop {
            let page = audit::latest_questions(store, filter, before, AT_ONCE).await;
            let page = page.map_err(unreadable)?;
            for question in &page.questions {
                printed += 1;
                if self.json {
                    output::print_json(&json_of(question))?;
                } else {
                    output::print(question_line(question, keys))?;
                }
            }
            match page.older {
                Some(older) => before = Some(older),
                None => break,
            }
        }
        if printed == 0 {
            output::say("no question matches");
        }
        Ok(Exit::Done)
    }
}

/// Formats one question as one line.
fn question_line(question: &AuditedQuestion, keys: &ApiTokens) -> String {
    let at = question.asked_at.unwrap_or(question.last_at).as_millis();
    let at = i64::try_from(at).ok().and_then(moment).unwrap_or_default();
    let id: String = question.id.chars().take(8).collect();
    let mut line = format!(
        "{at}  {id}  {:<9}  {}",
        outcome_in_words(question),
        call_in_words(question)
    );
    for detail in details_in_words(question, Some(keys)) {
        line.extend(["  ", &*detail]);
    }
    harmless(&line).into_owned()
}

fn json_of(question: &AuditedQuestion) -> Value {
    serde_json::json!({
        "question": question.id, "askedAt": question.asked_at, "lastAt": question.last_at, "server": question.server,
        "target": question.target, "principal": question.caller, "rule": question.rule, "approval": question.is_approval,
        "outcome": question.outcome, "by": question.by, "reason": question.reason, "delivery": question.delivery,
        "events": question.events,
    })
}

/// Returns a time in RFC 3339 format, in UTC.
fn iso(millis: i64) -> String {
    jiff::Timestamp::from_millisecond(millis).map_or_else(|_| String::new(), |at| at.to_string())
}

/// Reports that the audit is empty. With `--json`, standard output stays empty too.
fn say_empty() {
    output::say("no events yet: nothing has happened that the audit records");
}

/// Returns the exit code for a chain, and reports a broken one with the next step.
pub(super) fn exit_of(check: ChainCheck) -> Exit {
    let exit = reported(check);
    if exit != Exit::Done {
        output::say(
            "next: keep a copy of the record as it is, and compare it with its backups and checkpoints (docs/operate.md, \"If the chain is broken\")",
        );
    }
    exit
}

fn reported(check: ChainCheck) -> Exit {
    match check {
        ChainCheck::Whole { .. } => Exit::Done,
        ChainCheck::BrokenAt { number } => {
            output::say(format_args!(
                "the chain is broken at event {number}: it was changed after it was written"
            ));
            Exit::Refused
        }
        ChainCheck::Missing { number } => {
            output::say(format_args!(
                "the chain is broken at event {number}: it is missing, perhaps with those before it, and no event says that they were deleted"
            ));
            Exit::Refused
        }
    }
}

/// Returns when and by whom events were deleted, with a space before it.
pub(super) fn purge_in_words(purge: &AuditPurge) -> String {
    let by = Actor::read(&purge.by).in_words();
    let by = match &*by {
        ON_COMMAND_LINE => by,
        by => format!("by {by}"),
    };
    harmless(&format!(" on {} {by}", day(purge.at))).into_owned()
}

/// Formats the day of a time, in UTC.
fn day(at: Timestamp) -> String {
    let at = i64::try_from(at.as_millis()).ok();
    let at = at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    at.map_or_else(|| "-".to_owned(), |at| at.strftime("%Y-%m-%d").to_string())
}

/// Returns the key of the chain and of the calls' digests, which the gateway keeps beside the record; `None` if it is lost.
pub(super) async fn identity_key(folder: &StateFolder) -> Result<Option<IdentityKey>, Failure> {
    // A folder that only has `seal.key` gets it from the database.
    if let Some(database) = folder.database()
        && !folder.identity().exists()
        && folder.seal().exists()
    {
        let shared = database.share_keys(folder.key_files()).await;
        shared.map_err(unreadable)?;
    }
    IdentityKey::read(&folder.identity()).map_err(|error| {
        let path = folder.path().display();
        Failure::usage(format!("the key in {path} cannot be read")).because(error)
    })
}

/// Returns the failure to compare a call with the audit of a gateway whose key is lost.
pub(super) fn without_key(folder: &StateFolder) -> Failure {
    Failure::usage(format!("the key {} is missing", folder.identity().display()))
        .hint("calls and checkpoints can be compared with the audit only with the key of that gateway: restore it from a backup.")
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

/// Returns the name of an event that is written as it is printed, or by its name.
fn event(text: &str) -> Result<String, String> {
    let known = audit::event_named(text).map(str::to_owned);
    known.ok_or_else(|| {
        let all: Vec<&str> = audit::events().collect();
        format!("name one of {}", all.join(", "))
    })
}

/// Formats one event as one line.
fn line(entry: &AuditedEvent) -> String {
    let word = |member| entry.text(member).unwrap_or("-");
    let at = entry.number(Member::At);
    let at = at
        .and_then(|at| moment(i64::try_from(at).ok()?))
        .unwrap_or_default();
    let id: String = word(Member::Id).chars().take(8).collect();
    let event = audit::event_in_words(word(Member::Event));
    let told = audit::in_words(entry, |millis| moment(millis).unwrap_or_default());
    harmless(&format!("{at}  {id}  {event:<9}{told}")).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::AuditedEvent;

    /// Formats an entry as one line.
    fn line(entry: &Value) -> String {
        let entry = AuditedEvent::try_from(entry.clone());
        super::line(&entry.unwrap())
    }

    #[test]
    fn what_rules_and_people_did_is_said_with_its_actor() {
        for (entry, said) in [
            (
                json!({"event": "rules-loaded", "digest": "0123456789ab", "before": "fedcba987654", "rules": 3, "by": "owner"}),
                "rules loaded  rules 01234567 instead of fedcba98  by owner",
            ),
            (
                json!({"event": "rules-loaded", "digest": "0123456789ab", "before": "0123456789ab", "gateway": "m1:/srv/a", "by": "owner"}),
                "rules loaded  rules 01234567, unchanged  at m1:/srv/a  by owner",
            ),
            (
                json!({"event": "rules-rejected", "digest": "0123456789ab", "by": "owner"}),
                "rules rejected  rules kept: 01234567  by owner",
            ),
            (
                json!({"event": "shown", "server": "s", "target": "t", "rule": "r", "principal": "key-1", "to": "person:ada"}),
                "shown      s / t  rule r  called by key-1  to ada",
            ),
            (
                json!({"event": "notified", "to": "group:ops", "channel": "slack", "by": "timer"}),
                "message sent  to the group ops  by timer  through slack",
            ),
            (
                json!({"event": "rules-loaded", "digest": "0123456789ab", "restart": ["`listen`", "[channels.push]"], "by": "owner"}),
                "rules loaded  rules 01234567  without `listen`, [channels.push] (needs a restart)  by owner",
            ),
            (
                json!({"event": "rules-loaded", "digest": "0123456789ab", "settings": ["[servers.a]", "`drain`"], "by": "owner"}),
                "rules loaded  rules 01234567  with [servers.a], `drain`  by owner",
            ),
            (
                json!({"event": "rules-rejected", "digest": "0123456789ab", "restart": ["`listen`"], "by": "owner"}),
                "rules rejected  rules kept: 01234567  because of `listen` (needs a restart)  by owner",
            ),
            (
                json!({"event": "refused-by-rule", "server": "s", "target": "t", "rule": "never", "principal": "key-1"}),
                "refused by a rule  s / t  rule never  called by key-1",
            ),
            (
                json!({"event": "approval-granted", "server": "s", "target": "t", "rule": "r", "principal": "local",
                    "edited": ["/path"], "until": 1_000, "by": "person:ada, person:bob"}),
                "call approved  s / t  changed /path  rule r  good until 1970-01-01 00:00:01 UTC  by ada, bob",
            ),
            (
                json!({"event": "act-refused", "server": "s", "target": "t", "rule": "r", "principal": "local", "act": "fill",
                    "reason": "not-addressed", "by": "person:eve"}),
                "action refused  s / t  rule r  fill  by eve  not addressed",
            ),
            (
                json!({"event": "delegated", "server": "s", "target": "t", "rule": "r", "to": "group:leads", "by": "person:ada"}),
                "delegated  s / t  rule r  to the group leads  by ada",
            ),
            (
                json!({"event": "sign-in", "by": "person:ada", "session": "3fa0"}),
                "signed in  session 3fa0  by ada",
            ),
            (
                json!({"event": "answered", "server": "s", "target": "t", "fields": ["a"], "by": "client",
                    "unchecked": "the form cannot be read: nested"}),
                "accepted   s / t  [a]  by client  unchecked (the form cannot be read: nested)",
            ),
            (
                json!({"event": "refused", "server": "s", "target": "t", "principal": "local", "message": "Where \"to\"?\u{2028}",
                    "reason": "a nested object"}),
                "refused    s / t  \"Where \\\"to\\\"?\\u{2028}\"  a nested object",
            ),
            (
                json!({"event": "audit-purged", "by": "keep-audit", "purgedUpTo": 12, "purgedHash": "k1:00", "purgedAt": 1_000}),
                "oldest events deleted  up to event 12 of 1970-01-01 00:00:01 UTC  by keep-audit",
            ),
            // The form written by earlier versions.
            (
                json!({"event": "sign-in", "by": "ada, session 3fa0"}),
                "signed in  by ada, session 3fa0",
            ),
            (
                json!({"event": "sign-in-refused", "principal": "[\"https://id\",\"s-1\"]", "reason": "not-allowed", "leftOut": 5}),
                "sign-in refused  as [\"https://id\",\"s-1\"]  not allowed  (5 more before it were left out)",
            ),
            (
                json!({"event": "logout-token", "by": "provider", "reason": "accepted"}),
                "provider signed out  by provider  accepted",
            ),
            (
                json!({"event": "session-ended", "by": "person:eve", "person": "ada", "session": "3fa0"}),
                "session ended  of ada  session 3fa0  by eve",
            ),
            (
                json!({"event": "caller-refused", "server": "s", "mode": "keys", "reason": "unknown-key"}),
                "caller refused  s / -  unknown key",
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
