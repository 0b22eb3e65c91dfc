//! Reading of one rule: its patterns, its condition and its decision.

use toml::de::{DeTable, DeValue};

use super::plan_reader::choice;
use super::targets::{TargetPattern, Targets};
use super::unmatchable::{ConditionText, Patterns};
use super::{ApprovalPlan, Decision, OnError, OnTimeout, Plan, RefuseDecision, Rule, RulePhase};
use crate::condition::{Condition, Interner};
use crate::defect::nearest;
use crate::document::{DocumentReader, SpannedValue, key_start};
use crate::glob::Glob;
use crate::people::{Addressee, People};

const RULE_KEYS: [&str; 26] = [
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
    "explain",
    "link",
    "reasons",
    "keep",
    "keep-for",
];

/// The keys of an approval only.
const APPROVAL_KEYS: [&str; 2] = ["edit", "good-for"];

/// The keys that say how people are asked.
const ASKING_KEYS: [&str; 13] = [
    "deadline",
    "remind",
    "escalate",
    "on-timeout",
    "claim",
    "delegate-to",
    "reauth",
    "reveal",
    "explain",
    "link",
    "reasons",
    "keep",
    "keep-for",
];

/// The state of reading rules.
pub(super) struct RuleReader<'p> {
    pub(super) people: &'p People,
    /// The names of servers, if the file has any.
    servers: Option<Vec<String>>,
    /// The people who may log in, if the file lists them and they answer nowhere else.
    pub(super) allow: Option<Vec<Addressee>>,
    names: Interner,
}

impl<'p> RuleReader<'p> {
    /// Creates a reader of rules with these people, for these servers if the file has any.
    pub(super) fn new(people: &'p People, servers: Option<Vec<String>>) -> Self {
        Self {
            people,
            servers,
            allow: None,
            names: Interner::default(),
        }
    }

    /// Returns the names that the conditions read.
    pub(super) fn into_names(self) -> Interner {
        self.names
    }

    /// Reads one rule, and returns it with the byte at which it begins.
    pub(super) fn rule<'t>(
        &mut self,
        reader: &mut DocumentReader<'t>,
        value: &SpannedValue<'t>,
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
        // Earlier versions accepted it, and showed it to nobody.
        if table.contains_key("note") {
            reader.defect(
                key_start(table, "note"),
                "unknown-key",
                "`note` was never shown to anyone, and is not a key of a rule any more",
                "write `explain` for those who are asked, or a comment (`# ..`) for readers of the file",
            );
        }
        let told = table.contains_key("note").then_some("note");
        let known: Vec<&str> = RULE_KEYS.into_iter().chain(told).collect();
        reader.known_keys(table, "a rule", &known);
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
            Decision::Ask(_) => RulePhase::Asking,
            Decision::Refuse(_) if needs_question => RulePhase::Asking,
            Decision::Allow | Decision::Approve(_) | Decision::Refuse(_) => RulePhase::Admission,
        };
        if let Some(condition) = &condition {
            check_condition(reader, table, condition, &decision);
            if let Some((text, value)) = table
                .get("when")
                .and_then(|value| Some((value.get_ref().as_str()?, value)))
            {
                let patterns = Patterns {
                    servers: &servers,
                    targets: &targets,
                    people: self.people,
                };
                let span = value.span();
                patterns.check(reader, condition, &ConditionText { span, text });
            }
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

    fn servers<'t>(&self, reader: &mut DocumentReader<'t>, table: &DeTable<'t>) -> Vec<Glob> {
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

    fn condition<'t>(
        &mut self,
        reader: &mut DocumentReader<'t>,
        table: &DeTable<'t>,
    ) -> Option<Condition> {
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
        // With `on-error`, the operator has considered absent members.
        if !table.contains_key("on-error") {
            for warning in warnings {
                let at = reader.inside_text(span.clone(), text, warning.at);
                reader.warning(at, warning.code, warning.message, warning.help);
            }
        }
        condition
    }

    /// Reads the decision of a rule.
    fn decision<'t>(
        &self,
        reader: &mut DocumentReader<'t>,
        table: &DeTable<'t>,
        start: usize,
    ) -> Option<Decision> {
        let written = written_decision(reader, table, start)?;
        reject_keys_without_effect(reader, table, written);
        match written {
            WrittenDecision::Allow => return Some(Decision::Allow),
            WrittenDecision::Refuse { credentials } => {
                return Some(Decision::Refuse(refusal(reader, table, credentials)));
            }
            WrittenDecision::Approve | WrittenDecision::Ask => {}
        }
        if !table.contains_key("ask") {
            reader.defect(
                start,
                "no-addressee",
                "`approve` names no one",
                "add `ask`, such as ask = { group = \"NAME\" }",
            );
            return None;
        }
        let plan = Box::new(self.plan(reader, table)?);
        if written == WrittenDecision::Approve {
            return Some(Decision::Approve(approval(reader, table, plan)));
        }
        if plan.on_timeout == OnTimeout::HandBack {
            reader.defect(
                key_start(table, "on-timeout"),
                "no-effect",
                "a question that a server asks cannot be handed back: the server gets an error when its time runs out",
                "add `approve = true`, or take `on-timeout` out",
            );
        }
        Some(Decision::Ask(plan))
    }
}

/// The decision of a rule, by the keys that it has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WrittenDecision {
    Allow,
    Approve,
    Refuse { credentials: bool },
    Ask,
}

/// Returns the one decision of a rule; `None` if it has none or several.
fn written_decision<'t>(
    reader: &mut DocumentReader<'t>,
    table: &DeTable<'t>,
    start: usize,
) -> Option<WrittenDecision> {
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
    let refuses = table.contains_key("refuse") || table.contains_key("refuse-modes") || credentials;
    let asks = table.contains_key("ask");
    let written = [
        (allow, WrittenDecision::Allow),
        (approve, WrittenDecision::Approve),
        (refuses, WrittenDecision::Refuse { credentials }),
        // An approval has `ask`, too.
        (asks && !approve, WrittenDecision::Ask),
    ];
    let mut written = written.into_iter().filter(|(is_there, _)| *is_there);
    match (written.next(), written.next()) {
        (Some((_, one)), None) => Some(one),
        (None, _) => {
            let has_false = reader
                .defects
                .iter()
                .any(|defect| defect.code == "no-decision" && defect.rule == reader.rule);
            if !has_false {
                let help = "add `ask`, `approve` with `ask`, `allow` or `refuse`";
                reader.defect(start, "no-decision", "the rule decides nothing", help);
            }
            None
        }
        (Some(_), Some(_)) => {
            let help = "write one of `ask`, `approve` with `ask`, `allow` and `refuse`";
            reader.defect(start, "two-decisions", "the rule decides two things", help);
            None
        }
    }
}

/// Rejects keys that belong to another decision.
fn reject_keys_without_effect<'t>(
    reader: &mut DocumentReader<'t>,
    table: &DeTable<'t>,
    written: WrittenDecision,
) {
    let mut only_with = |keys: &[&str], needs: &str| {
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
    match written {
        WrittenDecision::Approve => {}
        WrittenDecision::Ask => only_with(&APPROVAL_KEYS, "approve = true"),
        WrittenDecision::Allow | WrittenDecision::Refuse { .. } => {
            only_with(&APPROVAL_KEYS, "approve = true");
            only_with(&ASKING_KEYS, "ask");
        }
    }
}

/// Reads the keys that only an approval has.
fn approval<'t>(
    reader: &mut DocumentReader<'t>,
    table: &DeTable<'t>,
    plan: Box<Plan>,
) -> ApprovalPlan {
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
    ApprovalPlan {
        plan,
        edit: edit.into_iter().map(|(pointer, _)| pointer).collect(),
        good_for: table
            .get("good-for")
            .and_then(|value| reader.duration(value, "good-for")),
    }
}

fn patterns<'t>(
    reader: &mut DocumentReader<'t>,
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
        } else if let Some((message, help)) = unmatched(key, text) {
            reader.warning(*at, "unmatched-pattern", message, help);
        }
    }
    Some(patterns)
}

/// Returns the reason why a pattern can match nothing, and the fix.
fn unmatched(key: &str, text: &str) -> Option<(String, String)> {
    if text.trim() != text || text.contains(char::is_control) {
        let message = format!(
            "the pattern {text:?} has a space at an end or a control character, which no name has"
        );
        return Some((message, "take it out".to_owned()));
    }
    if key == "server" {
        let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '*' | '?');
        let other = text.chars().find(|c| !is_allowed(*c))?;
        let message = format!("the pattern `{text}` has {other:?}, which no name of a server has");
        let help = "a server's name is that of [servers.NAME]: letters, digits, `-` and `_`";
        return Some((message, help.to_owned()));
    }
    let (before, name) = text.split_once(':')?;
    let message = match before {
        "prompt" | "resource" if name.is_empty() => {
            format!("the pattern `{text}` matches an empty name only")
        }
        "resource" if !may_be_uri(name) => {
            format!(
                "the pattern `{text}` matches no URI: one begins with a scheme, such as `file://`"
            )
        }
        "prompt" | "resource" => return None,
        other => {
            let singular = other.to_lowercase();
            let singular = singular.trim_end_matches('s');
            if !["tool", "prompt", "resource"].contains(&singular) {
                return None;
            }
            let message =
                format!("the pattern `{text}` is for tools whose name begins with `{other}:`");
            let help = match singular {
                "tool" => format!("write `{name}`"),
                kind => format!("write `{kind}:{name}`"),
            };
            return Some((message, help));
        }
    };
    let help = "`*` matches any characters, as in `prompt:*` and `resource:file:///srv/*`";
    Some((message, help.to_owned()))
}

/// Returns `true` if some URI may match the pattern.
fn may_be_uri(pattern: &str) -> bool {
    if pattern.contains(char::is_whitespace) {
        return false;
    }
    let scheme = pattern.split([':', '*']).next().unwrap_or_default();
    let is_scheme = |(at, c): (usize, char)| match c {
        '?' => true,
        c if at == 0 => c.is_ascii_alphabetic(),
        c => c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'),
    };
    // A scheme ends with a colon, which a wildcard may match.
    let has_end = pattern.contains([':', '*', '?']);
    has_end && scheme.char_indices().all(is_scheme) && !pattern.starts_with(':')
}

fn targets<'t>(reader: &mut DocumentReader<'t>, table: &DeTable<'t>) -> Targets {
    match patterns(reader, table, "tool") {
        Some(patterns) if !patterns.iter().any(|(text, _)| text == "*") => Targets::Named(
            patterns
                .iter()
                .map(|(text, _)| TargetPattern::new(text))
                .collect(),
        ),
        _ => Targets::All,
    }
}

fn refusal<'t>(
    reader: &mut DocumentReader<'t>,
    table: &DeTable<'t>,
    credentials: bool,
) -> RefuseDecision {
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
    RefuseDecision {
        reason: reason.unwrap_or_else(|| usual.to_owned()),
        modes,
        credentials,
    }
}

fn on_error<'t>(reader: &mut DocumentReader<'t>, table: &DeTable<'t>) -> Option<OnError> {
    let choices = [
        ("match", OnError::Match),
        ("skip", OnError::Skip),
        ("refuse", OnError::Refuse),
    ];
    choice(reader, table, "on-error", &choices)
}

/// Checks a condition together with the rule's decision.
fn check_condition(
    reader: &mut DocumentReader<'_>,
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
        let message = "this rule relaxes based on the server's own statements";
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
