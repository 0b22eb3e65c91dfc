//! `rules simulate`: the decision about one call, made by the gateway's own code, or about every call in the audit.

use std::borrow::Cow;
use std::collections::BTreeMap;

use clap::{ArgGroup, Args};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use mcp_elicit_core::wire::{CallFrame, CallKind};
use mcp_elicit_policy::parts;
use mcp_elicit_policy::rules::{
    Admit, CallOutcome, DEFAULT_DEADLINE, Plan, Preview, duration_text,
};
use mcp_elicit_policy::{
    Annotations, Caller, CallerKind, CallingPerson, Facts, IdentifiedCaller, KnownCall, Now,
    QuestionFacts, Rules,
};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::RightRules;
use super::simulate_audit::{self, Since};
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::input::InputSource;
use crate::output;

/// Evaluate the rules for one call, or for every call in the audit
///
/// The rules are evaluated as before the call and, if they let it proceed, again as when its server asks. Without a `question`
/// in the call, rules that need one are skipped and listed in `needs`.
///
/// With --audit, re-evaluates each audited question, approval and refusal under FILE. The audit keeps no arguments or messages; a
/// result that needs them is reported as unknown, with the missing facts. Questions still in the record (30 days by default)
/// provide more facts.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("calls").required(true).args(["call", "audit"]))]
pub(crate) struct SimulateArgs {
    /// The rules, in TOML; `-` is stdin
    #[arg(value_name = "FILE")]
    file: InputSource,

    /// The call, in JSON; `-` reads it from stdin
    #[arg(long, value_name = "JSON")]
    call: Option<String>,

    /// Evaluate every call in the audit of a gateway
    #[arg(long, conflicts_with = "call")]
    audit: bool,

    #[command(flatten)]
    location: RecordLocation,

    /// With --audit: only events since a time, such as 2026-11-22T10:00:00Z, or of the last `7d`
    #[arg(long, value_name = "TIME", requires = "audit", value_parser = simulate_audit::since)]
    since: Option<Since>,

    /// Print the decision as one JSON object; with --audit, one for each line and one with the totals
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = r#"The call:
  server       the server's name in the configuration (required)
  tool         the tool; or `prompt` with its name, or `resource` with its URI.
               Without any, the server asked outside a known call
  arguments    the arguments, an object
  caller       {"issuer","subject","name","mail","client","kind","person","groups"}.
               kind is local, subject or key; subject of a local caller is the user of the
               machine (`local-user`); person is the owner of a key, "" of one made with
               --no-person
  annotations  {"readOnly","destructive","idempotent","openWorld"}; the specification's
               defaults for those not given
  question     {"mode","message","host","credentials","fields"}
  now          the time, such as 2026-11-22T10:00:00Z

Examples:
  mcp-elicit rules simulate rules.toml \
    --call '{"server":"deploy","tool":"deploy_app","arguments":{"environment":"production"}}'
  mcp-elicit rules simulate rules.toml --json --call - < call.json | jq .rule
  mcp-elicit rules simulate rules.toml --audit --since 7d
  mcp-elicit rules simulate rules.toml --audit --state /var/lib/mcp-elicit --json \
    | jq 'select(.certain and .was != .now[0])'

JSON with --audit, for each line:
  {"at","question","server","tool","kind","was","now":[..],"verdicts":[..],"certain","missing":[..]}
and at the end:
  {"summary":{"questions","approvals","refusals","certain","changed","by-rule","perhaps-by-rule",
   "no-rule","missing"}}
`now` has the rule that decides, or each that may (null: no rule); `missing` the missing facts.

Exit codes:
  0  a decision was made
  2  the file, the call or the record cannot be used"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallInput<'a> {
    server: String,
    tool: Option<String>,
    prompt: Option<String>,
    resource: Option<String>,
    #[serde(borrow, default, deserialize_with = "as_written")]
    arguments: Option<&'a RawValue>,
    #[serde(default)]
    caller: InputCaller,
    #[serde(default)]
    annotations: Annotations,
    question: Option<QuestionFacts>,
    now: Option<Timestamp>,
}

/// Reads a member that is present: `null` is a value, as in a gateway.
fn as_written<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct InputCaller {
    issuer: String,
    subject: String,
    name: String,
    mail: String,
    client: String,
    person: Option<String>,
    kind: CallerKind,
    groups: Vec<String>,
}

impl InputCaller {
    /// Identifies the caller by the file's people and its `[login]`, as a gateway does.
    fn identify(self, rules: &Rules, logs_in: Option<&str>) -> Result<IdentifiedCaller, Failure> {
        let owner = self.person.as_deref();
        if owner.is_some() && self.kind != CallerKind::Key {
            return Err(Failure::usage("only a key has an owner in `caller.person`")
                .hint("add `\"kind\":\"key\"`, or name the caller by `subject` or `mail`."));
        }
        let is_known = |name: &&str| name.is_empty() || rules.people().is_person(name);
        if let Some(unknown) = owner.filter(|name| !is_known(name)) {
            let shown = output::harmless(unknown);
            return Err(Failure::usage(format!("`caller.person`: no person is named `{shown}`"))
                .hint("write the name as in `[people.NAME]`; a gateway treats this caller as unknown."));
        }
        let calling = CallingPerson::of_kind(self.kind, &self.issuer, owner, logs_in);
        let caller = Caller {
            issuer: self.issuer,
            subject: self.subject,
            name: self.name,
            mail: self.mail,
            client: self.client,
            person: String::new(),
            kind: self.kind,
        };
        Ok(rules.people().identify(caller, &calling, &self.groups))
    }
}

pub(super) fn run(args: &SimulateArgs) -> Result<Exit, Failure> {
    let Some(call) = &args.call else {
        let RightRules { rules, logs_in, .. } = super::right_rules(&args.file)?;
        return simulate_audit::run(rules, logs_in, &args.location, args.since, args.json);
    };
    if args.location.is_given() {
        return Err(Failure::usage(
            "`--state`, `--config` and `--record` name the record for `--audit`",
        ));
    }
    if args.file == InputSource::Stdin && call == "-" {
        return Err(Failure::usage(
            "the rules and the call cannot both be stdin",
        ));
    }
    let RightRules {
        rules,
        logs_in,
        servers,
        ..
    } = super::right_rules(&args.file)?;
    let text = match call.as_str() {
        "-" => super::text_of(&InputSource::Stdin)?,
        text => text.to_owned(),
    };
    if let Some(part) = part_in_order(&text) {
        return Err(Failure::usage(format!("{part} is a list")).hint(
            "write its members by name, in an object: see `mcp-elicit rules simulate --help`.",
        ));
    }
    // The error names the member and the place, and contains no value.
    let mut input: CallInput<'_> = serde_json::from_str(&text).map_err(|error| {
        Failure::usage("the call cannot be read")
            .because(error)
            .hint("see `mcp-elicit rules simulate --help` for its members.")
    })?;
    let target = match (&input.tool, &input.prompt, &input.resource) {
        (Some(name), None, None) => Some((CallKind::Tool, name.as_str())),
        (None, Some(name), None) => Some((CallKind::Prompt, name.as_str())),
        (None, None, Some(uri)) => Some((CallKind::Resource, uri.as_str())),
        (None, None, None) => None,
        _ => {
            return Err(Failure::usage(
                "a call has one of `tool`, `prompt` and `resource`",
            ));
        }
    };
    let frame = CallFrame {
        target: Cow::Borrowed(""),
        arguments: input.arguments.map(RawValue::get),
    };
    if let Err(defect) = frame.canonical_arguments() {
        return Err(Failure::usage("a gateway refuses this call under any rules").because(defect));
    }
    if let Some(question) = &mut input.question {
        if question.mode.is_empty() {
            "form".clone_into(&mut question.mode);
        }
        check_words(question)?;
    }
    let shown = output::harmless(&input.server);
    super::warn_of_unknown_server(&input.server, &shown, &servers, "");
    let now = now(&rules, input.now)?;
    let by = input.caller.identify(&rules, logs_in.as_deref())?;
    let facts = Facts {
        caller: &by.caller,
        groups: &by.groups,
        server: &input.server,
        call: target.map(|(kind, target)| KnownCall {
            kind,
            target,
            arguments: input.arguments.map(RawValue::get),
            annotations: input.annotations,
        }),
        now: &now,
    };
    let preview = rules.preview(&facts, input.question.as_ref());
    let decided = preview.outcome(facts.call.as_ref(), by.unmatched.as_deref());
    if args.json {
        output::print_json(&report(&rules, &preview, decided.as_ref()))?;
    } else {
        for line in lines(&rules, &preview, decided.as_ref()) {
            output::print(output::harmless(&line))?;
        }
    }
    Ok(Exit::Done)
}

/// Returns the part of a call that is a list instead of an object; its values would be taken for members in order.
fn part_in_order(call: &str) -> Option<String> {
    type Members<'a> = BTreeMap<String, &'a RawValue>;
    let is_list = |text: &str| text.trim_start().starts_with('[');
    if is_list(call) {
        return Some("the call".to_owned());
    }
    let members = |text| serde_json::from_str::<Members<'_>>(text).unwrap_or_default();
    let call = members(call);
    let part = |members: &Members<'_>, name: &str| {
        let found = members.get(name)?;
        is_list(found.get()).then(|| format!("`{name}`"))
    };
    let parts = ["caller", "annotations", "question"];
    if let Some(found) = parts.iter().find_map(|name| part(&call, name)) {
        return Some(found);
    }
    let question = members(call.get("question")?.get());
    let fields = members(question.get("fields")?.get());
    let mut names = fields.keys();
    part(&question, "fields").or_else(|| names.find_map(|name| part(&fields, name)))
}

/// The kinds and formats of fields.
const KINDS: [&str; 6] = [
    "string", "number", "integer", "boolean", "choice", "choices",
];
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// Rejects words that no server's question has.
fn check_words(question: &QuestionFacts) -> Result<(), Failure> {
    let fields = question.fields.values();
    let words = fields.flat_map(|field| {
        [
            ("kind", field.kind.as_str(), &KINDS[..]),
            ("format", field.format.as_str(), &FORMATS[..]),
        ]
    });
    let words = words.filter(|(_, word, _)| !word.is_empty());
    let mode = ("mode", question.mode.as_str(), &["form", "url"][..]);
    for (what, word, known) in std::iter::once(mode).chain(words) {
        if !known.contains(&word) {
            let word = output::harmless(word);
            return Err(
                Failure::usage(format!("`{word}` is not a {what} of a question"))
                    .hint(format!("write one of {}.", known.join(", "))),
            );
        }
    }
    Ok(())
}

fn now(rules: &Rules, given: Option<Timestamp>) -> Result<Now, Failure> {
    let zone = match rules.time_zone() {
        None => TimeZone::UTC,
        Some(name) => TimeZone::get(name).map_err(|error| {
            Failure::usage(format!("the time zone {name:?} is not known here")).because(error)
        })?,
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the command is the shell that knows the time"
    )]
    let at = given.unwrap_or_else(Timestamp::now);
    let at = Zoned::new(at, zone);
    Ok(Now {
        unix: at.timestamp().as_second(),
        hour: i64::from(at.hour()),
        minute: i64::from(at.minute()),
        weekday: i64::from(at.weekday().to_monday_one_offset()),
        date: at.date().to_string(),
    })
}

fn line_of(rules: &Rules, name: Option<&str>) -> Option<usize> {
    Some(rules.rule(name?)?.line())
}

fn report(rules: &Rules, preview: &Preview<'_>, decided: Option<&CallOutcome<'_>>) -> Value {
    let mut report = Map::new();
    let mut put = |key: &str, value: Value| report.insert(key.to_owned(), value);
    let (rule, refused, approval, plan) = match decided {
        Some(CallOutcome::Refused(rule, reason)) => (Some(*rule), Some(reason), None, None),
        Some(CallOutcome::Approve(rule, approval)) => {
            let plan = &*approval.plan;
            (Some(*rule), None, Some(*approval), Some(plan))
        }
        Some(CallOutcome::Ask(rule, plan)) => (*rule, None, None, Some(*plan)),
        None => (None, None, None, None),
    };
    put("rule", json!(rule));
    put("line", json!(line_of(rules, rule)));
    put("ask", json!(plan.map(|plan| &plan.ask)));
    put("approve", json!(approval.is_some()));
    if let Some(approval) = approval {
        put("edit", json!(approval.edit));
        put("good-for", json!(approval.good_for.map(duration_text)));
    }
    if let Some(plan) = plan {
        put(
            "deadline",
            json!(duration_text(plan.open_for(DEFAULT_DEADLINE))),
        );
        put("reasons", json!(plan.reasons));
        put("keep-for", json!(plan.keep_arguments.map(duration_text)));
        let remind = plan.remind.iter().copied().map(duration_text);
        put("remind", remind.collect());
        put("escalate", json!(plan.escalate));
        put("on-timeout", json!(plan.on_timeout));
    }
    put("refused", json!(refused));
    put("phase", json!(preview.phase));
    if let Admit::Free(Some(rule)) = preview.admit {
        put("allowed-by", json!(rule));
    }
    let needs = preview.needs_question.then_some("question");
    put("needs", needs.into_iter().collect());
    put("skipped", json!(preview.skipped));
    put("errors", json!(preview.errors));
    Value::Object(report)
}

fn lines(rules: &Rules, preview: &Preview<'_>, decided: Option<&CallOutcome<'_>>) -> Vec<String> {
    let named = |rule: &str| match line_of(rules, Some(rule)) {
        Some(line) => format!("rule `{rule}` (line {line})"),
        None => format!("rule `{rule}`"),
    };
    let mut lines = Vec::new();
    if let Admit::Free(Some(rule)) = preview.admit {
        lines.push(format!("{} lets the call proceed", named(rule)));
    }
    match decided {
        Some(CallOutcome::Refused(rule, reason)) => {
            lines.push(format!("{} refuses it: {reason}", named(rule)));
        }
        Some(CallOutcome::Approve(rule, approval)) => {
            lines.push(format!("{} asks for approval before the call", named(rule)));
            lines.extend(plan_lines(&approval.plan));
            if !approval.edit.is_empty() {
                lines.push(format!(
                    "  approvers may change {}",
                    approval.edit.join(", ")
                ));
            }
            if let Some(time) = approval.good_for {
                lines.push(format!("  an approval is good for {}", duration_text(time)));
            }
        }
        Some(CallOutcome::Ask(Some(rule), plan)) => {
            lines.push(format!("{} says who is asked", named(rule)));
            lines.extend(plan_lines(plan));
        }
        Some(CallOutcome::Ask(None, _)) | None => {
            lines.push("no rule matches: the call proceeds, and its caller is asked".to_owned());
        }
    }
    if preview.needs_question {
        lines.push("without a `question` in the call, rules that need one were skipped".to_owned());
    }
    for error in &preview.errors {
        let effect = if error.matched {
            "so the rule matched"
        } else {
            "so the rule was skipped"
        };
        lines.push(format!(
            "{}: {}, {effect}",
            named(&error.rule),
            error.message
        ));
    }
    lines
}

fn plan_lines(plan: &Plan) -> Vec<String> {
    let to: Vec<String> = plan.ask.to.iter().map(ToString::to_string).collect();
    let mut lines = vec![format!("  asked: {}", to.join(", "))];
    if !plan.ask.each.is_empty() {
        let missing = parts::missing(&plan.ask.each, &[]);
        let missing = missing.in_words(&ToString::to_string).unwrap_or_default();
        lines.push(format!(
            "  {missing} must agree; one person counts for one part"
        ));
    } else if plan.ask.need.get() > 1 {
        lines.push(format!("  {} must agree", plan.ask.need));
    }
    if plan.ask.not_caller {
        lines.push("  the caller cannot answer".to_owned());
    }
    for after in &plan.remind {
        lines.push(format!("  reminded after {}", duration_text(*after)));
    }
    for step in &plan.escalate {
        lines.push(format!(
            "  after {} also {}",
            duration_text(step.after),
            step.to
        ));
    }
    let reach = match (plan.reasons.caller, plan.reasons.audit) {
        (true, true) => Some("the caller and the audit"),
        (false, true) => Some("the audit, not the caller"),
        (false, false) => Some("the history of the question alone"),
        (true, false) => None,
    };
    lines.extend(reach.map(|reach| format!("  reasons and comments go to {reach}")));
    if let Some(time) = plan.keep_arguments {
        lines.push(format!(
            "  arguments are kept for auditors for {}",
            duration_text(time)
        ));
    }
    lines.push(format!(
        "  open for {}",
        duration_text(plan.open_for(DEFAULT_DEADLINE))
    ));
    lines
}
