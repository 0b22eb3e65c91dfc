//! A file becomes rules: every mistake is found, each with its line and column.

use std::num::NonZeroU8;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::decide::Index;
use super::targets::{Target, Targets};
use super::{
    Approval, Ask, DEFAULT_CLAIM, DEFAULT_DEADLINE, Decision, OnError, OnTimeout, Phase, Plan,
    Refusal, Reveal, Rule, Rules, order,
};
use crate::condition::{Condition, Interner};
use crate::defect::{RuleDefect, nearest};
use crate::document::{Reader, Value, duration_text, key_start};
use crate::glob::Glob;
use crate::people::{Addressee, People};
use crate::schedule::Escalation;

/// The largest file, in bytes.
const MAX_FILE: usize = 1 << 20;
/// The most rules, and the most people or groups.
const MAX_RULES: usize = 10_000;
/// The most people who must agree.
const MAX_NEED: u8 = 20;

/// The parts of a gateway's configuration that are read elsewhere.
const ELSEWHERE: [&str; 20] = [
    "listen",
    "public-url",
    "inbox",
    "inbox-url",
    "presence",
    "notify",
    "state",
    "record",
    "insecure",
    "max-frame",
    "allow-origins",
    "keep-answers",
    "keep-results",
    "keep-ended",
    "trusted-proxies",
    "servers",
    "auth",
    "login",
    "channels",
    "time-zone",
];
/// The parts that are read here.
const HERE: [&str; 4] = ["people", "groups", "roles", "rules"];
/// Names of secrets, which never stand in a file as text.
const SECRETS: [&str; 6] = [
    "password",
    "secret",
    "token",
    "signing-secret",
    "client-secret",
    "api-key",
];

const RULE_KEYS: [&str; 22] = [
    "name",
    "server",
    "tool",
    "when",
    "ask",
    "approve",
    "allow",
    "refuse",
    "refuse-modes",
    "refuse-credentials",
    "deadline",
    "remind",
    "escalate",
    "on-timeout",
    "on-error",
    "claim",
    "delegate-to",
    "reauth",
    "reveal",
    "edit",
    "good-for",
    "note",
];

/// A file that was read.
#[derive(Debug)]
pub struct Loaded {
    /// The rules, where there are no defects.
    pub rules: Option<Rules>,
    /// The number of rules in the file.
    pub count: usize,
    /// Mistakes, in the order of the file.
    pub defects: Vec<RuleDefect>,
    /// Things that may be meant otherwise, in the order of the file.
    pub warnings: Vec<RuleDefect>,
}

impl Rules {
    /// Reads a file's text. Returns the rules, or else every mistake.
    pub fn parse(text: &str) -> Result<Self, Vec<RuleDefect>> {
        let loaded = Self::load(text);
        loaded.rules.ok_or(loaded.defects)
    }

    /// Reads a file's text, with every mistake and warning.
    pub fn load(text: &str) -> Loaded {
        let mut reader = Reader::new(text);
        if text.len() > MAX_FILE {
            reader.defect(
                0,
                "file-too-large",
                format!(
                    "the file has {} bytes; at most {MAX_FILE} are read",
                    text.len()
                ),
                "",
            );
            return finish(reader, None, 0);
        }
        let (file, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let at = error.span().map_or(0, |span| span.start);
            let message = error
                .message()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned();
            reader.defect(at, "invalid-toml", message, "");
        }
        if !errors.is_empty() {
            return finish(reader, None, 0);
        }
        let file = file.get_ref();
        let known: Vec<&str> = HERE.into_iter().chain(ELSEWHERE).collect();
        reader.known_keys(file, "the file", &known);
        literal_secrets(&mut reader, file, 16);
        let time_zone = file
            .get("time-zone")
            .and_then(|value| reader.text(value, "time-zone"))
            .map(str::to_owned);
        for part in ["people", "groups"] {
            let many = file
                .get(part)
                .and_then(|value| value.get_ref().as_table())
                .filter(|table| table.len() > MAX_RULES);
            if many.is_some() {
                reader.defect(
                    key_start(file, part),
                    "too-many",
                    format!("`{part}` has more than {MAX_RULES} entries"),
                    "",
                );
                return finish(reader, None, 0);
            }
        }
        let people = People::read(&mut reader, file);
        let servers = file
            .get("servers")
            .and_then(|value| value.get_ref().as_table());
        let servers =
            servers.map(|table| table.keys().map(|key| key.get_ref().to_string()).collect());
        let mut all = RuleReader {
            people: &people,
            servers,
            names: Interner::default(),
        };
        let tables = file
            .get("rules")
            .and_then(|value| reader.list(value, "rules"))
            .unwrap_or_default();
        if tables.len() > MAX_RULES {
            reader.defect(
                key_start(file, "rules"),
                "too-many",
                format!("the file has more than {MAX_RULES} rules"),
                "",
            );
            return finish(reader, None, tables.len());
        }
        let mut rules = Vec::new();
        for (number, table) in tables.iter().enumerate() {
            rules.extend(all.rule(&mut reader, table, number + 1));
        }
        reader.rule = None;
        order::check(&mut reader, &rules);
        let names = all.names;
        let rules = Rules {
            people,
            all: rules.into_iter().map(|(rule, _)| rule).collect(),
            names,
            index: Index::default(),
            time_zone,
        };
        finish(reader, Some(rules), tables.len())
    }
}

fn finish(reader: Reader<'_>, rules: Option<Rules>, count: usize) -> Loaded {
    let Reader {
        mut defects,
        mut warnings,
        ..
    } = reader;
    defects.sort_by_key(|defect| (defect.line, defect.column));
    warnings.sort_by_key(|warning| (warning.line, warning.column));
    let rules = rules.filter(|_| defects.is_empty());
    Loaded {
        rules,
        count,
        defects,
        warnings,
    }
}

/// Names every secret that stands in the file as text. Its text is not repeated.
fn literal_secrets(reader: &mut Reader<'_>, table: &DeTable<'_>, depth: usize) {
    if depth == 0 {
        return;
    }
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let inner: Vec<&DeTable<'_>> = match value.get_ref() {
            DeValue::String(_) if SECRETS.contains(&name) => {
                let message = format!("`{name}` is a secret, and stands here as text");
                let help =
                    format!("write {name} = {{ env = \"VARIABLE\" }} or {{ file = \"PATH\" }}");
                reader.defect(value.span().start, "literal-secret", message, help);
                Vec::new()
            }
            // Names of people, of groups and of environment variables are the operator's.
            DeValue::Table(_) if matches!(name, "people" | "groups" | "env") => Vec::new(),
            DeValue::Table(inner) => vec![inner],
            DeValue::Array(items) => items
                .iter()
                .filter_map(|item| item.get_ref().as_table())
                .collect(),
            _ => Vec::new(),
        };
        for inner in inner {
            literal_secrets(reader, inner, depth - 1);
        }
    }
}

/// The state while rules are read.
struct RuleReader<'p> {
    people: &'p People,
    /// The names of servers, where the file has any.
    servers: Option<Vec<String>>,
    names: Interner,
}

impl RuleReader<'_> {
    /// Reads one rule; with it the byte at which it begins.
    fn rule<'t>(
        &mut self,
        reader: &mut Reader<'t>,
        value: &Value<'t>,
        number: usize,
    ) -> Option<(Rule, usize)> {
        let start = value.span().start;
        reader.rule = Some(format!("rule-{number}"));
        let table = reader.table(value, "rules")?;
        if let Some(name) = table
            .get("name")
            .and_then(|value| reader.text(value, "name"))
        {
            reader.rule = Some(name.to_owned());
            let is_plain = !name.is_empty() && name.len() <= 64 && !name.contains(char::is_control);
            if !is_plain {
                let at = table["name"].span().start;
                reader.defect(
                    at,
                    "invalid-name",
                    "the name of a rule is one line of at most 64 bytes",
                    "",
                );
            }
        }
        let name = reader.rule.clone().unwrap_or_default();
        reader.known_keys(table, "a rule", &RULE_KEYS);
        let before = reader.defects.len();
        let servers = self.servers(reader, table);
        let targets = targets(reader, table);
        let decision = self.decision(reader, table, start);
        let condition = self.condition(reader, table);
        let on_error = on_error(reader, table);
        let decision = decision?;
        if reader.defects.len() > before && table.contains_key("when") && condition.is_none() {
            return None;
        }
        let needs_question = condition
            .as_ref()
            .is_some_and(|condition| condition.reads_question().is_some())
            || matches!(&decision, Decision::Refuse(refusal) if refusal.is_about_questions());
        let phase = match &decision {
            Decision::Ask(_) => Phase::Asking,
            Decision::Refuse(_) if needs_question => Phase::Asking,
            Decision::Allow | Decision::Approve(_) | Decision::Refuse(_) => Phase::Admission,
        };
        if let Some(condition) = &condition {
            check_condition(reader, table, condition, &decision);
        }
        let usual = if decision.restricts() {
            OnError::Match
        } else {
            OnError::Skip
        };
        let (line, _) = reader.position(start);
        let rule = Rule {
            name,
            line,
            servers,
            targets,
            condition,
            decision,
            on_error: on_error.unwrap_or(usual),
            phase,
            needs_question,
        };
        Some((rule, start))
    }

    fn servers<'t>(&self, reader: &mut Reader<'t>, table: &DeTable<'t>) -> Vec<Glob> {
        let patterns = patterns(reader, table, "server");
        let patterns = patterns.unwrap_or_else(|| vec![("*".to_owned(), 0)]);
        let globs = patterns.into_iter().map(|(text, at)| {
            let glob = Glob::new(&text);
            if let Some(servers) = &self.servers
                && !servers.iter().any(|server| glob.matches(server))
            {
                let help = match nearest(&text, servers.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "the servers are those of [servers.NAME]".to_owned(),
                };
                reader.defect(
                    at,
                    "never-matches",
                    format!("no server is named `{text}`"),
                    help,
                );
            }
            glob
        });
        globs.collect()
    }

    fn condition<'t>(&mut self, reader: &mut Reader<'t>, table: &DeTable<'t>) -> Option<Condition> {
        let value = table.get("when")?;
        let text = reader.text(value, "when")?;
        let span = value.span();
        let (condition, warnings) = match Condition::compile(text, &mut self.names) {
            Ok((condition, warnings)) => (Some(condition), warnings),
            Err(defects) => {
                for defect in defects {
                    let at = reader.inside_text(span.clone(), text, defect.at);
                    reader.defect(at, defect.code, defect.message, defect.help);
                }
                (None, Vec::new())
            }
        };
        // With a word about errors, the operator has thought of absent members.
        if !table.contains_key("on-error") {
            for warning in warnings {
                let at = reader.inside_text(span.clone(), text, warning.at);
                reader.warning(at, warning.code, warning.message, warning.help);
            }
        }
        condition
    }

    fn decision<'t>(
        &self,
        reader: &mut Reader<'t>,
        table: &DeTable<'t>,
        start: usize,
    ) -> Option<Decision> {
        let mut flag = |key: &str| {
            table
                .get(key)
                .is_some_and(|value| reader.truth(value, key) == Some(true))
        };
        let (allow, approve, credentials) =
            (flag("allow"), flag("approve"), flag("refuse-credentials"));
        for key in ["allow", "approve", "refuse-credentials"] {
            if let Some(DeValue::Boolean(false)) = table.get(key).map(toml::Spanned::get_ref) {
                let message = format!("`{key} = false` says nothing");
                reader.defect(
                    key_start(table, key),
                    "no-decision",
                    message,
                    "take the line out",
                );
            }
        }
        let refuses =
            table.contains_key("refuse") || table.contains_key("refuse-modes") || credentials;
        let asks = table.contains_key("ask");
        let decisions = [allow, approve, refuses, asks && !approve];
        match decisions.iter().filter(|is_there| **is_there).count() {
            1 => {}
            0 => {
                let has_false = reader
                    .defects
                    .iter()
                    .any(|defect| defect.code == "no-decision" && defect.rule == reader.rule);
                if !has_false {
                    let help = "add `ask`, `approve` with `ask`, `allow` or `refuse`";
                    reader.defect(start, "no-decision", "the rule decides nothing", help);
                }
                return None;
            }
            _ => {
                let help = "write one of `ask`, `approve` with `ask`, `allow` and `refuse`";
                reader.defect(start, "two-decisions", "the rule decides two things", help);
                return None;
            }
        }
        let only_with = |reader: &mut Reader<'t>, keys: &[&str], needs: &str| {
            for key in keys.iter().filter(|key| table.contains_key(**key)) {
                let message = format!("`{key}` has no effect without `{needs}`");
                reader.defect(
                    key_start(table, key),
                    "no-effect",
                    message,
                    format!("add `{needs}`, or take `{key}` out"),
                );
            }
        };
        if !approve {
            only_with(reader, &["edit", "good-for"], "approve = true");
        }
        if allow || refuses {
            let asking = [
                "deadline",
                "remind",
                "escalate",
                "on-timeout",
                "claim",
                "delegate-to",
                "reauth",
                "reveal",
            ];
            only_with(reader, &asking, "ask");
        }
        if allow {
            return Some(Decision::Allow);
        }
        if refuses {
            return Some(Decision::Refuse(refusal(reader, table, credentials)));
        }
        if !asks {
            reader.defect(
                start,
                "no-addressee",
                "`approve` names nobody",
                "add `ask`, such as ask = { group = \"NAME\" }",
            );
            return None;
        }
        let plan = Box::new(self.plan(reader, table)?);
        if !approve {
            return Some(Decision::Ask(plan));
        }
        let edit = table
            .get("edit")
            .map(|value| reader.texts(value, "edit"))
            .unwrap_or_default();
        for (pointer, at) in &edit {
            if !is_pointer(pointer) {
                reader.defect(
                    *at,
                    "invalid-pointer",
                    format!("`{pointer}` is not a JSON Pointer"),
                    "write it like /path",
                );
            }
        }
        Some(Decision::Approve(Approval {
            plan,
            edit: edit.into_iter().map(|(pointer, _)| pointer).collect(),
            good_for: table
                .get("good-for")
                .and_then(|value| reader.duration(value, "good-for")),
        }))
    }

    fn plan<'t>(&self, reader: &mut Reader<'t>, table: &DeTable<'t>) -> Option<Plan> {
        let ask = self.ask(reader, table.get("ask")?);
        let deadline = table
            .get("deadline")
            .and_then(|value| reader.duration(value, "deadline"));
        let open_for = deadline.unwrap_or(DEFAULT_DEADLINE);
        let before_deadline = |reader: &mut Reader<'t>, at: usize, name: &str, after: Duration| {
            if after >= open_for {
                let message = format!(
                    "`{name}` after {} comes too late: the deadline is {}",
                    duration_text(after),
                    duration_text(open_for)
                );
                reader.defect(
                    at,
                    "after-deadline",
                    message,
                    "make it shorter, or the deadline longer",
                );
            }
        };
        let mut remind = Vec::new();
        if let Some(value) = table.get("remind") {
            let items = reader.list(value, "remind").unwrap_or_default();
            for item in items {
                if let Some(after) = reader.duration(item, "remind") {
                    before_deadline(reader, item.span().start, "remind", after);
                    remind.push(after);
                }
            }
        }
        let mut escalate: Vec<Escalation> = Vec::new();
        if let Some(value) = table.get("escalate") {
            let items = reader.list(value, "escalate").unwrap_or_default();
            for item in items {
                let Some(step) = reader.table(item, "escalate") else {
                    continue;
                };
                reader.known_keys(step, "a step of `escalate`", &["after", "to"]);
                let at = item.span().start;
                let after = step
                    .get("after")
                    .and_then(|value| reader.duration(value, "after"));
                let to = step
                    .get("to")
                    .and_then(|value| self.people.addressee(reader, value, "to"));
                for key in ["after", "to"] {
                    if !step.contains_key(key) {
                        let help = "write { after = \"15m\", to = { group = \"NAME\" } }";
                        reader.defect(
                            at,
                            "missing-key",
                            format!("a step of `escalate` needs `{key}`"),
                            help,
                        );
                    }
                }
                let (Some(after), Some(to)) = (after, to) else {
                    continue;
                };
                before_deadline(reader, at, "escalate", after);
                if escalate.last().is_some_and(|last| last.after >= after) {
                    reader.defect(
                        at,
                        "escalation-order",
                        "this step is not after the one before it",
                        "put the steps in their order",
                    );
                }
                if let Some(ask) = &ask {
                    let mut asked = ask.to.clone();
                    asked.extend(escalate.iter().map(|step| step.to.clone()));
                    self.adds_someone(reader, &asked, &to, at);
                }
                escalate.push(Escalation { after, to });
            }
        }
        let on_timeout = choice(
            reader,
            table,
            "on-timeout",
            &[
                ("error", OnTimeout::Error),
                ("hand-back", OnTimeout::HandBack),
            ],
        );
        let reveals = [
            ("minimal", Reveal::Minimal),
            ("question", Reveal::Question),
            ("arguments", Reveal::Arguments),
        ];
        let reveal = choice(reader, table, "reveal", &reveals);
        let claim = match table
            .get("claim")
            .map(|value| (value, value.get_ref().as_str()))
        {
            None => Some(DEFAULT_CLAIM),
            Some((_, Some("off"))) => None,
            Some((value, _)) => reader.duration(value, "claim"),
        };
        let mut delegate_to = Vec::new();
        if let Some(value) = table.get("delegate-to") {
            let items = reader.list(value, "delegate-to").unwrap_or_default();
            for item in items {
                delegate_to.extend(self.people.addressee(reader, item, "delegate-to"));
            }
        }
        Some(Plan {
            ask: ask?,
            deadline,
            remind,
            escalate,
            on_timeout: on_timeout.unwrap_or_default(),
            claim,
            delegate_to,
            reauth: table
                .get("reauth")
                .and_then(|value| reader.duration(value, "reauth")),
            reveal: reveal.unwrap_or_default(),
        })
    }

    /// Refuses a step that asks only those who are asked already.
    fn adds_someone(
        &self,
        reader: &mut Reader<'_>,
        asked: &[Addressee],
        to: &Addressee,
        at: usize,
    ) {
        let (known, _) = self.people.reach(asked);
        let (added, is_open) = self.people.reach(std::slice::from_ref(to));
        if asked.contains(to) || (!is_open && added.is_subset(&known)) {
            let message = format!("this step adds nobody: `{to}` is asked already");
            reader.defect(
                at,
                "escalation-repeats",
                message,
                "escalate to somebody else, or take the step out",
            );
        }
    }

    fn ask<'t>(&self, reader: &mut Reader<'t>, value: &Value<'t>) -> Option<Ask> {
        let at = value.span().start;
        if let DeValue::String(text) = value.get_ref() {
            if text.as_ref() == "caller" {
                return Some(Ask::caller());
            }
            let help = "write ask = \"caller\", { person = \"NAME\" }, { group = \"NAME\" } or { any = [..] }";
            reader.defect(at, "no-addressee", "`ask` names nobody", help);
            return None;
        }
        let table = reader.table(value, "ask")?;
        reader.known_keys(
            table,
            "`ask`",
            &["person", "group", "any", "need", "not-caller"],
        );
        let mut to = Vec::new();
        let named = ["person", "group", "any"]
            .into_iter()
            .filter(|key| table.contains_key(*key))
            .count();
        if named != 1 {
            let help = "write one of `person`, `group` and `any`";
            reader.defect(
                at,
                "no-addressee",
                if named == 0 {
                    "`ask` names nobody"
                } else {
                    "`ask` names two things"
                },
                help,
            );
            return None;
        }
        let before = reader.defects.len();
        if let Some(any) = table.get("any") {
            let items = reader.list(any, "any").unwrap_or_default();
            for item in items {
                to.extend(self.people.addressee(reader, item, "any"));
            }
        }
        for (key, make) in [
            ("person", Addressee::Person as fn(String) -> Addressee),
            ("group", Addressee::Group),
        ] {
            if let Some(value) = table.get(key)
                && let Some(name) = reader.text(value, key)
            {
                to.extend(
                    self.people
                        .check(reader, make(name.to_owned()), value.span().start),
                );
            }
        }
        let need = match table.get("need") {
            Some(value) => reader.count(value, "need", MAX_NEED)?,
            None => 1,
        };
        let not_caller = table
            .get("not-caller")
            .is_some_and(|value| reader.truth(value, "not-caller") == Some(true));
        if reader.defects.len() > before {
            return None;
        }
        if to.is_empty() {
            reader.defect(
                at,
                "no-addressee",
                "`any` names nobody",
                "add a person or a group",
            );
            return None;
        }
        let (people, is_open) = self.people.reach(&to);
        let enough = people.len().saturating_sub(usize::from(not_caller));
        if !is_open && usize::from(need) > enough {
            let can = if not_caller {
                ", and the caller may be one of them"
            } else {
                ""
            };
            let at = if table.contains_key("need") {
                key_start(table, "need")
            } else {
                at
            };
            let message = format!("{need} must agree, and {} can{can}", people.len());
            reader.defect(at, "no-addressee", message, "name more people");
        } else if is_open && usize::from(need) > enough {
            let at = if table.contains_key("need") {
                key_start(table, "need")
            } else {
                at
            };
            let message = "a claim decides who is asked, so nothing tells whether they are enough";
            reader.warning(at, "unknown-size", message, "");
        }
        Some(Ask {
            to,
            need: NonZeroU8::new(need)?,
            not_caller,
            is_any: table.contains_key("any"),
        })
    }
}

fn patterns<'t>(
    reader: &mut Reader<'t>,
    table: &DeTable<'t>,
    key: &str,
) -> Option<Vec<(String, usize)>> {
    let value = table.get(key)?;
    let patterns = match value.get_ref() {
        DeValue::String(text) => vec![(text.to_string(), value.span().start)],
        DeValue::Array(_) => reader.texts(value, key),
        _ => {
            reader.text(value, key);
            return None;
        }
    };
    let is_empty_list = matches!(value.get_ref(), DeValue::Array(items) if items.is_empty());
    if is_empty_list {
        let message = format!("`{key}` is an empty list, so the rule never matches");
        reader.defect(
            value.span().start,
            "never-matches",
            message,
            format!("add a name, or take `{key}` out for any"),
        );
    }
    for (text, at) in &patterns {
        if text.is_empty() || text.len() > 1_024 {
            reader.defect(
                *at,
                "never-matches",
                format!("a pattern of `{key}` has 1 to 1,024 bytes"),
                "",
            );
        }
    }
    Some(patterns)
}

fn targets<'t>(reader: &mut Reader<'t>, table: &DeTable<'t>) -> Targets {
    match patterns(reader, table, "tool") {
        Some(patterns) if !patterns.iter().any(|(text, _)| text == "*") => {
            Targets::Named(patterns.iter().map(|(text, _)| Target::new(text)).collect())
        }
        _ => Targets::All,
    }
}

fn refusal<'t>(reader: &mut Reader<'t>, table: &DeTable<'t>, credentials: bool) -> Refusal {
    let reason = table.get("refuse").and_then(|value| {
        let reason = reader.text(value, "refuse")?;
        let is_plain =
            !reason.trim().is_empty() && reason.len() <= 500 && !reason.contains(char::is_control);
        if !is_plain {
            let help = "it is shown to people and to the client";
            reader.defect(
                value.span().start,
                "invalid-reason",
                "`refuse` is the reason, in one line of at most 500 bytes",
                help,
            );
        }
        Some(reason.to_owned())
    });
    let modes = table
        .get("refuse-modes")
        .map(|value| (reader.texts(value, "refuse-modes"), value.span().start));
    if let Some((modes, at)) = &modes {
        if modes.is_empty() {
            reader.defect(
                *at,
                "never-matches",
                "`refuse-modes` names no mode",
                "write [\"url\"], [\"form\"] or both",
            );
        }
        for (mode, at) in modes {
            if !matches!(mode.as_str(), "form" | "url") {
                reader.defect(
                    *at,
                    "never-matches",
                    format!("no mode is named `{mode}`"),
                    "the modes are form and url",
                );
            }
        }
    }
    let modes: Vec<String> = modes
        .into_iter()
        .flat_map(|(modes, _)| modes)
        .map(|(mode, _)| mode)
        .collect();
    let usual = if credentials {
        "questions for credentials are refused"
    } else {
        "questions of this mode are refused"
    };
    Refusal {
        reason: reason.unwrap_or_else(|| usual.to_owned()),
        modes,
        credentials,
    }
}

fn choice<'t, T: Copy>(
    reader: &mut Reader<'t>,
    table: &DeTable<'t>,
    key: &str,
    choices: &[(&str, T)],
) -> Option<T> {
    let value = table.get(key)?;
    let text = reader.text(value, key)?;
    let found = choices.iter().find(|(name, _)| *name == text);
    if found.is_none() {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let message = format!("`{key}` cannot be `{}`", text.escape_debug());
        reader.defect(
            value.span().start,
            "unknown-choice",
            message,
            format!("write one of {}", names.join(", ")),
        );
    }
    found.map(|(_, choice)| *choice)
}

fn on_error<'t>(reader: &mut Reader<'t>, table: &DeTable<'t>) -> Option<OnError> {
    let choices = [
        ("match", OnError::Match),
        ("skip", OnError::Skip),
        ("refuse", OnError::Refuse),
    ];
    choice(reader, table, "on-error", &choices)
}

/// Checks a condition together with what the rule decides.
fn check_condition(
    reader: &mut Reader<'_>,
    table: &DeTable<'_>,
    condition: &Condition,
    decision: &Decision,
) {
    let Some(value) = table.get("when") else {
        return;
    };
    let Some(text) = value.get_ref().as_str() else {
        return;
    };
    let before_the_call = matches!(decision, Decision::Allow | Decision::Approve(_));
    if before_the_call && let Some(at) = condition.reads_question() {
        let at = reader.inside_text(value.span(), text, at);
        let message = "before the call there is no question, so the rule never matches";
        reader.defect(
            at,
            "never-matches",
            message,
            "decide with `caller`, `tool` and `arguments`",
        );
    }
    match condition.constant() {
        Some(false) => {
            let message = "the condition is never true";
            reader.defect(
                value.span().start,
                "never-matches",
                message,
                "take the rule out, or correct the condition",
            );
        }
        Some(true) => {
            reader.warning(
                value.span().start,
                "always-true",
                "the condition is always true",
                "take `when` out",
            );
        }
        None => {}
    }
    if !decision.restricts()
        && let Some(at) = condition.reads_annotations()
    {
        let at = reader.inside_text(value.span(), text, at);
        let message = "this rule loosens by what the server says of itself";
        reader.warning(
            at,
            "loosens-by-annotations",
            message,
            "name the tools instead",
        );
    }
}

/// Returns `true` for a JSON Pointer to some member (RFC 6901).
fn is_pointer(text: &str) -> bool {
    let escapes_hold = |step: &str| {
        step.split('~')
            .skip(1)
            .all(|rest| rest.starts_with(['0', '1']))
    };
    text.len() <= 1_024 && text.starts_with('/') && text.split('/').all(escapes_hold)
}
