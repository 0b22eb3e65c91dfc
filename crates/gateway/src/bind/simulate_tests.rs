//! The gateway and `mcp-elicit rules simulate` decide alike: about callers of all kinds, and with the same plans.

use mcp_elicit_core::wire::CallKind;
use mcp_elicit_policy::rules::{ApprovalPlan as RuleApproval, CallOutcome, DEFAULT_DEADLINE};
use mcp_elicit_record::IdentityKey;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const LOGS_IN: &str = "https://id.example";

const FILE: &str = r#"
    [people.ada]
    subject = "s-ada"
    local-user = "u-ada"
    [people.bob]
    mail = "bob@example.com"
    local-user = "u-bob"
    [people.cy]
    mail = "cy@example.com"
    [groups]
    ops = ["ada", "bob", "cy"]
    leads = { claim = "lead" }
    both = ["ada", "group:leads"]
    [[rules]]
    name = "never"
    tool = "drop_*"
    refuse = "not here"
    [[rules]]
    name = "reads"
    when = "annotations.readOnly"
    allow = true
    [[rules]]
    name = "adas-own"
    tool = "delete_a"
    when = 'caller.person == "ada" && caller.kind != "key"'
    allow = true
    [[rules]]
    name = "careful"
    tool = "delete_*"
    approve = true
    ask = { group = "ops", need = 2, not-caller = true }
    edit = ["/path"]
    good-for = "10m"
    on-timeout = "hand-back"
    deadline = "2h"
    [[rules]]
    name = "leads"
    tool = "put_a"
    when = '"both" in groups'
    approve = true
    ask = { any = ["person:bob", "group:leads"] }
    reauth = "10m"
    [[rules]]
    name = "no-secrets"
    refuse-credentials = true
    [[rules]]
    name = "production"
    when = 'arguments.environment == "production"'
    ask = { group = "ops", need = 2, not-caller = true }
    deadline = "30m"
    remind = ["10m"]
    escalate = [{ after = "15m", to = { group = "leads" } }]
    [[rules]]
    name = "own"
    when = 'caller.person == "bob" || caller.issuer == "https://id.example"'
    ask = "caller"
    deadline = "5m"
    [[rules]]
    name = "links"
    tool = "get_*"
    when = 'question.mode == "url"'
    ask = { group = "both" }
    reveal = "minimal"
"#;

/// A caller in terms that both a gateway and `simulate` have.
#[derive(Clone, Debug)]
enum Calls {
    Local(&'static str),
    Subject {
        issuer: &'static str,
        subject: &'static str,
        mail: &'static str,
        claims: Vec<String>,
    },
    Key(Option<&'static str>),
}

impl Calls {
    /// Returns the caller as a gateway knows it.
    fn proven(&self) -> ProvenCaller {
        match self {
            Self::Local(user) => ProvenCaller::of_local_user(user),
            Self::Subject {
                issuer,
                subject,
                mail,
                claims,
            } => ProvenCaller::of_subject(issuer, subject, Some(LOGS_IN))
                .with_token(mail, claims.clone()),
            Self::Key(owner) => ProvenCaller::of_owner("k1", *owner),
        }
    }

    /// Returns the caller as `simulate` reads it.
    fn simulated(&self, people: &People) -> IdentifiedCaller {
        let (kind, issuer, subject, mail, owner, claims) = match self {
            Self::Local(user) => (CallerKind::Local, "", *user, "", None, Vec::new()),
            Self::Subject {
                issuer,
                subject,
                mail,
                claims,
            } => (
                CallerKind::Subject,
                *issuer,
                *subject,
                *mail,
                None,
                claims.clone(),
            ),
            Self::Key(owner) => (CallerKind::Key, "", "k1", "", *owner, Vec::new()),
        };
        let caller = Caller {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            mail: mail.to_owned(),
            kind,
            ..Caller::default()
        };
        let calling = CallingPerson::of_kind(kind, issuer, owner, Some(LOGS_IN));
        people.identify(caller, &calling, &claims)
    }
}

fn calls() -> impl Strategy<Value = Calls> {
    let subject = (
        prop::sample::select(vec![LOGS_IN, "https://agents.example"]),
        prop::sample::select(vec!["s-ada", "s-other", ""]),
        prop::sample::select(vec!["bob@example.com", "Cy@Example.com", ""]),
        prop::sample::subsequence(vec!["lead".to_owned(), "staff".to_owned()], 0..=2),
    );
    prop_oneof![
        prop::sample::select(vec!["u-ada", "u-bob", "root", ""]).prop_map(Calls::Local),
        subject.prop_map(|(issuer, subject, mail, claims)| Calls::Subject {
            issuer,
            subject,
            mail,
            claims
        }),
        prop::sample::select(vec![None, Some(""), Some("ada"), Some("bob"), Some("gone")])
            .prop_map(Calls::Key),
    ]
}

/// Returns a plan without its caller and the digest of its rule.
fn plan_of(team: &str) -> Value {
    let mut team: Value = serde_json::from_str(team).unwrap();
    for own in ["caller", "rule_digest"] {
        team.as_object_mut().unwrap().remove(own).unwrap();
    }
    team
}

fn asked(people: &PeopleAsked) -> Value {
    json!([
        people.rule,
        plan_of(&people.team.text),
        people.open_for.as_secs(),
        people.hands_back
    ])
}

/// Returns the outcome in a running gateway.
fn decided(
    binding: &Binding,
    call: &CallSummary,
    tool: &ToolFacts,
    question: QuestionParts<'_>,
) -> Value {
    let now = Timestamp::from_millis(1_000);
    match binding.admit(now, call, Some(tool)) {
        Admission::Refuse(refusal) => json!(["refused", refusal.rule, refusal.reason]),
        Admission::Approve(approval) => {
            json!(["approval", asked(&approval.people), approval.edit])
        }
        Admission::Granted(..) => json!("granted"),
        Admission::Free => match binding.plan(now, Some((call, Some(tool))), question) {
            Planned::Refuse(refusal) => json!(["refused", refusal.rule, refusal.reason]),
            Planned::Caller { open_for } => json!(["caller", open_for.map(|time| time.as_secs())]),
            Planned::People(people) => json!(["people", asked(&people)]),
        },
    }
}

/// Returns the same outcome as `simulate` reports it.
fn simulated(rules: &Rules, outcome: Option<CallOutcome<'_>>) -> Value {
    let asked = |rule: &str, plan: &Plan, approval: Option<&RuleApproval>| {
        let people = rules.people().named(&plan.ask.to);
        let caller = TeamCaller::default();
        let team = Team::new(rule, "", caller, plan, people, DEFAULT_DEADLINE);
        let team = match approval {
            Some(approval) => {
                let named = rules
                    .rule(rule)
                    .and_then(mcp_elicit_policy::rules::Rule::arguments_named);
                let team = team.for_approval().with_good_for(approval.good_for);
                team.with_reads(named)
            }
            None => team,
        };
        let hands_back = plan.on_timeout == OnTimeout::HandBack;
        let open_for = plan.open_for(DEFAULT_DEADLINE).as_secs();
        json!([
            rule,
            plan_of(&team.to_plan().unwrap().text),
            open_for,
            hands_back
        ])
    };
    match outcome {
        Some(CallOutcome::Refused(rule, reason)) => json!(["refused", rule, reason]),
        Some(CallOutcome::Approve(rule, approval)) => {
            let asked = asked(rule, &approval.plan, Some(approval));
            json!(["approval", asked, approval.edit])
        }
        Some(CallOutcome::Ask(Some(rule), plan)) if !plan.ask.is_caller() => {
            json!(["people", asked(rule, plan, None)])
        }
        Some(CallOutcome::Ask(_, plan)) => {
            json!(["caller", plan.deadline.map(|time| time.as_secs())])
        }
        None => Value::Null,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn the_gateway_decides_as_simulate_says(
        calls in calls(),
        tool in "(drop|delete|get|put)_[ab]",
        environment in proptest::option::of("(production|test)"),
        read_only in proptest::option::of(any::<bool>()),
        has_credentials in any::<bool>(),
        is_url in any::<bool>(),
    ) {
        let rules = Arc::new(Rules::parse(FILE).unwrap());
        let (teams, _changes) = CurrentRules::without_logins(rules.clone(), IdentityKey::random().unwrap());
        let server = ServerOfCalls { name: "s".to_owned(), key: "k".to_owned(), earlier: EarlierRules::default() };
        let proven = SessionCaller::new(calls.proven());
        let binding = Binding::new(teams, server, proven, DEFAULT_DEADLINE);
        let call = CallSummary {
            kind: CallKind::Tool,
            digest: tool.clone(),
            target: tool,
            arguments: environment.map(|environment| format!(r#"{{"environment":"{environment}"}}"#)),
            proof: ProofNumber::default(),
        };
        let tool = ToolFacts { read_only, ..ToolFacts::default() };
        let request = if is_url {
            ElicitRequest::Url {
                message: "Go".to_owned(),
                url: "https://a.example/x".to_owned(),
                elicitation_id: None,
            }
        } else {
            ElicitRequest::form("Who?", &json!({"type": "object", "properties": {}}))
        };
        let question = QuestionParts { request: &request, form: None, has_credentials };
        let (_, time) = binding.teams.rules_at(Timestamp::from_millis(1_000));
        let by = calls.simulated(rules.people());
        let facts = facts(&by, "s", Some((&call, Some(&tool))), &time);
        let preview = rules.preview(&facts, Some(&question_facts(question)));
        let outcome = preview.outcome(facts.call.as_ref(), by.unmatched.as_deref());
        prop_assert_eq!(decided(&binding, &call, &tool, question), simulated(&rules, outcome));
    }
}
