//! `rules simulate --audit`: the decisions of rules about the calls in a gateway's audit. Certain decisions are
//! counted; the others are shown with the facts that they depend on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use mcp_elicit_core::lifecycle::Timestamp as Moment;
use mcp_elicit_core::wire::CallKind;
use mcp_elicit_gateway::recorded::{RecordedArguments, RecordedCall, recall};
use mcp_elicit_inbox::direct_record;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_policy::Rules;
use mcp_elicit_policy::document::parse_duration;
use mcp_elicit_policy::rules::{DecisionKind, Recall};
use mcp_elicit_record::audit::{AuditedEvent, ChainVerifier, Event, Member};
use mcp_elicit_record::store::{AuditEntry, ChainKey, RecordStoreError};
use mcp_elicit_record::{LockFile, Record, clock};
use serde_json::{Map, Value, json};

use crate::args::record_location::RecordLocation;
use crate::commands::audit::{exit_of, moment};
use crate::commands::{in_runtime, state_record};
use crate::failure::{Exit, Failure};
use crate::output::{self, harmless, say};

/// The number of links that are read at once.
const AT_ONCE: usize = 1_000;

/// The start of the time span, in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since(u64);

/// Parses `--since`: a time, or a span before now.
pub(super) fn since(text: &str) -> Result<Since, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        let millis = u64::try_from(at.as_millisecond()).unwrap_or(0);
        return Ok(Since(millis));
    }
    let span = parse_duration(text).ok_or(
        "neither a time such as 2026-11-22T10:00:00Z nor a span such as 90s, 30m, 24h or 7d",
    )?;
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Ok(Since(clock::now().as_millis().saturating_sub(millis)))
}

/// The kind of an audited event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AuditedKind {
    /// The server asked.
    Question,
    /// The gateway asked before the call.
    Approval,
    /// A rule refused the call or its question.
    Refusal,
}

impl AuditedKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Approval => "approval",
            Self::Refusal => "refusal",
        }
    }
}

/// One line of the output.
struct OutputLine<'r> {
    kind: AuditedKind,
    at: u64,
    question: Option<String>,
    server: String,
    call: Option<(CallKind, String)>,
    /// The rule that decided at the time, if known.
    was: Option<String>,
    now: Recall<'r>,
}

impl OutputLine<'_> {
    /// Returns `true` if the decision is certain and differs from the recorded one. If the caller is asked, the record
    /// keeps no rule.
    fn is_changed(&self) -> bool {
        let [now] = self.now.candidates.as_slice() else {
            return false;
        };
        match now.verdict {
            DecisionKind::Caller | DecisionKind::Allowed => {
                self.was.is_some() || self.kind != AuditedKind::Question
            }
            DecisionKind::People | DecisionKind::Approval | DecisionKind::Refused => {
                now.rule != self.was.as_deref()
            }
        }
    }

    fn to_json(&self) -> Value {
        let mut line = Map::new();
        line.insert("at".to_owned(), json!(self.at));
        if let Some(question) = &self.question {
            line.insert("question".to_owned(), json!(question));
        }
        line.insert("server".to_owned(), json!(self.server));
        if let Some((kind, target)) = &self.call {
            line.insert(kind.word().to_owned(), json!(target));
        }
        let now = &self.now;
        let rules: Vec<_> = now.candidates.iter().map(|one| one.rule).collect();
        let verdicts: Vec<_> = now.candidates.iter().map(|one| one.verdict).collect();
        line.insert("kind".to_owned(), json!(self.kind.word()));
        line.insert("was".to_owned(), json!(self.was));
        line.insert("now".to_owned(), json!(rules));
        line.insert("verdicts".to_owned(), json!(verdicts));
        line.insert("certain".to_owned(), json!(now.is_certain()));
        line.insert("missing".to_owned(), json!(now.missing));
        Value::Object(line)
    }

    fn to_text(&self) -> String {
        let at = i64::try_from(self.at).ok().and_then(moment);
        let id: String = match &self.question {
            Some(id) => id.chars().take(8).collect(),
            None => "-".to_owned(),
        };
        let target = self.call.as_ref().map_or("-", |(_, target)| target);
        let was = self.was.as_deref().unwrap_or("no rule");
        let now: Vec<String> = self
            .now
            .candidates
            .iter()
            .map(|one| {
                let rule = one.rule.unwrap_or("no rule");
                format!("{rule}{}", words(one.verdict))
            })
            .collect();
        let mut text = format!(
            "{}  {id}  {:<8}  {} / {target}  was {was}  now {}",
            at.unwrap_or_default(),
            self.kind.word(),
            self.server,
            now.join(", or ")
        );
        if !self.now.is_certain() {
            let missing = self.now.missing.join(", ");
            text.extend(["  (unknown without ", &missing, ")"]);
        } else if self.is_changed() {
            text.push_str("  *");
        }
        text
    }
}

const fn words(verdict: DecisionKind) -> &'static str {
    match verdict {
        DecisionKind::Allowed => ": the call proceeds",
        DecisionKind::Caller => ": the caller is asked",
        DecisionKind::People => ": people are asked",
        DecisionKind::Approval => ": approval before the call",
        DecisionKind::Refused => ": refused",
    }
}

/// The totals.
#[derive(Default)]
struct Totals<'r> {
    questions: usize,
    approvals: usize,
    refusals: usize,
    certain: usize,
    changed: usize,
    no_rule: usize,
    by_rule: BTreeMap<&'r str, usize>,
    perhaps: BTreeMap<&'r str, usize>,
    missing: BTreeMap<&'static str, usize>,
}

impl<'r> Totals<'r> {
    fn add(&mut self, line: &OutputLine<'r>) {
        match line.kind {
            AuditedKind::Question => self.questions += 1,
            AuditedKind::Approval => self.approvals += 1,
            AuditedKind::Refusal => self.refusals += 1,
        }
        self.changed += usize::from(line.is_changed());
        if let [one] = line.now.candidates.as_slice() {
            self.certain += 1;
            match one.rule {
                Some(rule) => *self.by_rule.entry(rule).or_default() += 1,
                None => self.no_rule += 1,
            }
            return;
        }
        let rules = line.now.candidates.iter().filter_map(|one| one.rule);
        for rule in rules.collect::<BTreeSet<_>>() {
            *self.perhaps.entry(rule).or_default() += 1;
        }
        for fact in &line.now.missing {
            *self.missing.entry(fact).or_default() += 1;
        }
    }

    fn to_json(&self) -> Value {
        json!({"summary": {
            "questions": self.questions, "approvals": self.approvals, "refusals": self.refusals,
            "certain": self.certain, "changed": self.changed, "by-rule": self.by_rule,
            "perhaps-by-rule": self.perhaps, "no-rule": self.no_rule, "missing": self.missing,
        }})
    }

    fn say(&self, rules: &Rules) {
        let all = self.questions + self.approvals + self.refusals;
        let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        say(format_args!(
            "{}, {} and {}; certain: {}, and of these decided by another rule now: {} (*)",
            count(self.questions, "question"),
            count(self.approvals, "approval"),
            count(self.refusals, "refusal"),
            self.certain,
            self.changed
        ));
        for rule in rules.rules() {
            let name = rule.name();
            let certain = self.by_rule.get(name).copied().unwrap_or_default();
            let perhaps = match self.perhaps.get(name) {
                Some(perhaps) => format!(", and perhaps {perhaps} more"),
                None => String::new(),
            };
            say(format_args!("  {:<24} {certain}{perhaps}", harmless(name)));
        }
        say(format_args!("  {:<24} {}", "(no rule)", self.no_rule));
        if self.certain < all {
            let missing: Vec<String> = self
                .missing
                .iter()
                .map(|(fact, count)| format!("{fact} ({count})"))
                .collect();
            say(format_args!(
                "{} are unknown: they depend on facts that were not kept: {}",
                all - self.certain,
                missing.join(", ")
            ));
        }
        say("calls without a question or a refusal are not in the audit");
    }
}

/// Runs the command to its end.
pub(super) fn run(
    rules: Rules,
    logs_in: Option<String>,
    location: &RecordLocation,
    since: Option<Since>,
    json: bool,
) -> Result<Exit, Failure> {
    in_runtime(try_all(rules, logs_in, location, since, json))
}

async fn try_all(
    rules: Rules,
    logs_in: Option<String>,
    location: &RecordLocation,
    since: Option<Since>,
    json: bool,
) -> Result<Exit, Failure> {
    let folder = state_record::folder(location).await?;
    let (record, key) = record_in(&folder).await?;
    let since = since.map_or(0, |since| since.0);
    let end = record.store().audit_end().await.map_err(unreadable)?;
    let rules_of = rules_of_questions(&record, end, since).await?;
    let mut chain = ChainVerifier::new(Some(&key));
    let mut broken = None;
    let mut totals = Totals::default();
    let mut from = 0;
    while from <= end {
        let links = links(&record, from, end).await?;
        let Some(last) = links.last() else {
            break;
        };
        from = last.number + 1;
        for link in &links {
            if broken.is_none() {
                broken = chain.add(link).err();
            }
            let Some(entry) = event_since(&link.entry, since) else {
                continue;
            };
            let line = line_of(&entry, &rules, logs_in.as_deref(), &rules_of, &record);
            let Some(line) = line.await? else {
                continue;
            };
            totals.add(&line);
            if json {
                output::print_json(&line.to_json())?;
            } else {
                output::print(harmless(&line.to_text()))?;
            }
        }
    }
    if json {
        output::print_json(&totals.to_json())?;
    } else {
        totals.say(&rules);
    }
    Ok(exit_of(broken.unwrap_or_else(|| chain.finish())))
}

fn unreadable(fault: RecordStoreError) -> Failure {
    Failure::usage("the record cannot be read").because(fault)
}

/// Returns the next links of the audit, up to `end`.
async fn links(record: &Record, from: u64, end: u64) -> Result<Vec<AuditEntry>, Failure> {
    let rest = usize::try_from(end - from + 1).unwrap_or(usize::MAX);
    let links = record.store().audit(from, rest.min(AT_ONCE)).await;
    links.map_err(unreadable)
}

/// Returns the event of an entry, if it is not older.
fn event_since(entry: &str, since: u64) -> Option<AuditedEvent> {
    let entry = AuditedEvent::read(entry)?;
    (entry.number(Member::At) >= Some(since)).then_some(entry)
}

/// Opens the record in a state folder for reading, with the key of its audit.
async fn record_in(folder: &StateFolder) -> Result<(Record, ChainKey), Failure> {
    let unusable = format!("the keys in {} cannot be used", folder.path().display());
    let keys = direct_record::keys(folder).await;
    let keys = keys.map_err(|error| match folder.database() {
        Some(_) => state_record::unopened(error),
        None => Failure::usage(unusable.clone()).because(&*error),
    })?;
    let lock = LockFile::unshared().map_err(|error| Failure::usage(unusable).because(error))?;
    let chain = keys.chain();
    let store = state_record::to_read(folder);
    Ok((Record::new(store, keys, lock, clock::now), chain))
}

/// Returns the rules of the questions that were asked without naming one. Older audits name it only with the actions of
/// people. Of the audit, only the ids of such questions are held, however long it is.
async fn rules_of_questions(
    record: &Record,
    end: u64,
    since: u64,
) -> Result<HashMap<String, String>, Failure> {
    let mut asked: HashMap<String, Option<String>> = HashMap::new();
    let mut from = 1;
    while from <= end {
        let links = links(record, from, end).await?;
        let Some(last) = links.last() else {
            break;
        };
        from = last.number + 1;
        for link in &links {
            let Some(entry) = event_since(&link.entry, since) else {
                continue;
            };
            let Some(id) = entry.text(Member::Id) else {
                continue;
            };
            match entry.text(Member::Rule) {
                None if entry.event() == Some(Event::Asked) => {
                    asked.entry(id.to_owned()).or_default();
                }
                None => {}
                Some(rule) => {
                    if let Some(known) = asked.get_mut(id) {
                        *known = Some(rule.to_owned());
                    }
                }
            }
        }
    }
    let ruled = asked.into_iter().filter_map(|(id, rule)| Some((id, rule?)));
    Ok(ruled.collect())
}

/// Decides about the call of an entry; `None` if the entry is not about a call that asks, waits for approval, or is
/// refused.
async fn line_of<'r>(
    entry: &AuditedEvent,
    rules: &'r Rules,
    logs_in: Option<&str>,
    rules_of: &HashMap<String, String>,
    record: &Record,
) -> Result<Option<OutputLine<'r>>, Failure> {
    let text = |member| entry.text(member);
    let (Some(event), Some(server)) = (entry.event(), text(Member::Server)) else {
        return Ok(None);
    };
    let id = text(Member::Id);
    let was = text(Member::Rule).or_else(|| rules_of.get(id?).map(String::as_str));
    let row = match (event, id) {
        (Event::Asked, Some(id)) => record
            .find(id)
            .await
            .map_err(|fault| Failure::usage("the record cannot be read").because(fault))?,
        (Event::RefusedByRule, _) => None,
        _ => return Ok(None),
    };
    let team = row.as_ref().and_then(|row| row.team.as_ref());
    let kind = match event {
        Event::RefusedByRule => AuditedKind::Refusal,
        _ if entry.is_approval() || team.is_some_and(|team| team.is_approval) => {
            AuditedKind::Approval
        }
        _ => AuditedKind::Question,
    };
    let is_ambiguous = !entry.texts(Member::Others).is_empty();
    let call = text(Member::Kind)
        .and_then(|word| word.parse().ok())
        .zip(text(Member::Target));
    let call = call.filter(|_| !is_ambiguous);
    let at = entry.number(Member::At).unwrap_or_default();
    let arguments = row.as_ref().and_then(|row| record.arguments(row).ok()?);
    let recorded = RecordedCall {
        server,
        principal: text(Member::Principal).unwrap_or_default(),
        call,
        at: Moment::from_millis(at),
        mode: text(Member::Mode),
        row: row.as_ref(),
        is_approval: kind == AuditedKind::Approval,
        arguments: match (&arguments, &row) {
            (Some(arguments), _) => RecordedArguments::Json(arguments),
            // Arguments are erased at the end; those sealed with a lost key exist and cannot be read.
            (None, Some(row)) if row.lifecycle.is_open() && row.arguments.is_none() => {
                RecordedArguments::None
            }
            (None, _) => RecordedArguments::Unknown,
        },
    };
    Ok(Some(OutputLine {
        kind,
        at,
        question: id.map(str::to_owned),
        server: server.to_owned(),
        call: call.map(|(kind, target)| (kind, target.to_owned())),
        was: was.map(str::to_owned),
        now: recall(rules, logs_in, record, &recorded),
    }))
}
