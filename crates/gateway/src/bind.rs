//! The facts of a running gateway, bound to its rules: who calls what, what is asked, and what the rules say of it. The functions that
//! decide are those of `mcp-elicit rules simulate`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::digest;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::form::Kind;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::question::CallSummary;
use mcp_elicit_core::wire::ElicitRequest;
use mcp_elicit_policy::rules::{self as policy, ArgumentsRead, OnTimeout, Plan};
use mcp_elicit_policy::{
    Annotations, Call, Caller, CallerKind, CallingPerson, Facts, FieldFacts, IdentifiedCaller, Now,
    People, QuestionFacts, Rules,
};
use mcp_elicit_record::grants::ApprovalGrant;
use mcp_elicit_record::team::{RulesEvent, Team, TeamCaller, mail_digest};
use mcp_elicit_relay::decisions::{
    Admission, Approval, CallFacts, Decisions, PeopleAsked, Planned, QuestionDecisions,
    QuestionParts, RuleRefusal, ToolFacts, up_to_refusal,
};

use crate::callers::{self, CurrentCaller};
use crate::teams::Teams;

/// The server to which the calls of a caller go.
#[derive(Clone, Debug)]
pub(crate) struct ServerOfCalls {
    /// The name of the configuration.
    pub(crate) name: String,
    /// The keyed hash of all that says which server runs: under the same name there may be another after a restart.
    pub(crate) key: String,
}

/// The rules, for the calls of one caller at one server.
#[derive(Debug)]
pub(crate) struct Binding {
    teams: Arc<Teams>,
    server: ServerOfCalls,
    caller: Arc<CurrentCaller>,
    usual: Duration,
}

impl Binding {
    /// Binds the rules to a caller and a server.
    pub(crate) fn new(
        teams: Arc<Teams>,
        server: ServerOfCalls,
        caller: Arc<CurrentCaller>,
        usual: Duration,
    ) -> Self {
        Self {
            teams,
            server,
            caller,
            usual,
        }
    }

    fn people_asked(
        &self,
        rules: &Rules,
        caller: &Caller,
        rule: &str,
        plan: &Plan,
        digest: &str,
        is_approval: bool,
    ) -> Result<PeopleAsked, RuleRefusal> {
        let asked = rules.people().named(&plan.ask.to);
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let entry = rules.people().people.get(&caller.person);
        let mail = entry.and_then(|entry| entry.mail.as_deref());
        // Who has the mailbox of a person, under another subject, may be that person under a new account: `not-caller` excludes them.
        let mail = mail.or_else(|| Some(caller.mail.as_str()).filter(|mail| !mail.is_empty()));
        let file_subject = entry.and_then(|entry| entry.subject.clone());
        let team_caller = TeamCaller {
            person: known(&caller.person),
            issuer: caller.issuer.clone(),
            subject: caller.subject.clone(),
            name: caller.name.clone(),
            mail_digest: mail.map(mail_digest).unwrap_or_default(),
            file_subject: file_subject.unwrap_or_default(),
            is_nobody: *self.caller.get().person() == CallingPerson::Nobody,
        };
        let team = Team::new(rule, digest, team_caller, plan, asked, self.usual);
        let team = if is_approval {
            team.for_approval()
        } else {
            team
        };
        let team = team.to_plan().map_err(|_| RuleRefusal {
            rule: rule.to_owned(),
            reason: "its plan cannot be stored".to_owned(),
        })?;
        Ok(PeopleAsked {
            rule: rule.to_owned(),
            team,
            open_for: plan.open_for(self.usual),
            hands_back: plan.on_timeout == OnTimeout::HandBack,
        })
    }

    /// Returns the refusal where the people of a plan cannot be asked about a call.
    fn refuses_to_ask(
        &self,
        facts: &Facts<'_>,
        unmatched: Option<&str>,
        rule: &str,
        plan: &Plan,
        call: Option<&CallSummary>,
    ) -> Option<RuleRefusal> {
        let why = plan.reason_not_to_ask(facts.call.as_ref(), unmatched)?;
        Some(self.refused(rule, &why, call))
    }

    fn refused(&self, rule: &str, reason: &str, call: Option<&CallSummary>) -> RuleRefusal {
        self.teams.tell(RulesEvent::Refused {
            rule: rule.to_owned(),
            server: self.server.name.clone(),
            principal: self.caller.get().binding().to_owned(),
            call: call.map(|call| (call.kind, call.target.clone())),
        });
        refusal(rule, reason)
    }

    fn bound_at(&self, now: Timestamp) -> BoundAt<'_> {
        let (rules, time) = self.teams.rules_at(now);
        let by = identified(&self.teams, rules.people(), &self.caller.get());
        BoundAt {
            binding: self,
            rules,
            time,
            by,
            read: RefCell::default(),
        }
    }

    /// Returns the key of an approval of this call that is good for a while.
    fn grant_key(&self, call: &CallSummary, rule_digest: &str) -> String {
        let caller = self.caller.get();
        let key = self.teams.key();
        key.grant_key(
            caller.binding(),
            &self.server.key,
            &call.digest,
            rule_digest,
        )
    }
}

impl Decisions for Binding {
    fn admit(&self, now: Timestamp, call: &CallSummary, tool: Option<&ToolFacts>) -> Admission {
        let (rules, time) = self.teams.rules_at(now);
        let by = identified(&self.teams, rules.people(), &self.caller.get());
        let server = &self.server.name;
        let facts = facts(&by, server, Some((call, tool)), &time);
        match rules.admit(&facts) {
            policy::Admit::Free(_) => Admission::Free,
            policy::Admit::Refuse(rule, refusal) => {
                Admission::Refuse(self.refused(rule, &refusal.reason, Some(call)))
            }
            policy::Admit::Approve(rule, approval) => {
                let digest = rules.rule(rule).map(approval_digest).unwrap_or_default();
                let refusal = self.refuses_to_ask(
                    &facts,
                    by.unmatched.as_deref(),
                    rule,
                    &approval.plan,
                    Some(call),
                );
                if let Some(refusal) = refusal {
                    return Admission::Refuse(refusal);
                }
                let people =
                    self.people_asked(&rules, &by.caller, rule, &approval.plan, &digest, true);
                let people = match people {
                    Ok(people) => people,
                    Err(refusal) => return Admission::Refuse(refusal),
                };
                let edit = approval.edit;
                let asked = Box::new(Approval { people, edit });
                let granted = approval.good_for.and_then(|_| {
                    let key = self.grant_key(call, &digest);
                    self.teams.granted(&key, now)
                });
                match granted {
                    Some(grant) => {
                        self.teams.tell(RulesEvent::GrantUsed {
                            rule: rule.to_owned(),
                            server: server.clone(),
                            principal: self.caller.get().binding().to_owned(),
                            call: (call.kind, call.target.clone()),
                            question: grant.question,
                        });
                        Admission::Granted(asked, grant.answers)
                    }
                    None => Admission::Approve(asked),
                }
            }
        }
    }

    fn refuses(
        &self,
        now: Timestamp,
        call: &CallSummary,
        tool: Option<&ToolFacts>,
    ) -> Option<RuleRefusal> {
        let (rules, time) = self.teams.rules_at(now);
        let by = identified(&self.teams, rules.people(), &self.caller.get());
        let facts = facts(&by, &self.server.name, Some((call, tool)), &time);
        match rules.admit(&facts) {
            policy::Admit::Free(_) => None,
            policy::Admit::Refuse(rule, refusal) => {
                Some(self.refused(rule, &refusal.reason, Some(call)))
            }
            policy::Admit::Approve(rule, approval) => self.refuses_to_ask(
                &facts,
                by.unmatched.as_deref(),
                rule,
                &approval.plan,
                Some(call),
            ),
        }
    }

    fn plan(
        &self,
        now: Timestamp,
        call: Option<CallFacts<'_>>,
        question: QuestionParts<'_>,
    ) -> Planned {
        self.bound_at(now).plan_one(call, &question_facts(question))
    }

    fn at(&self, now: Timestamp) -> Box<dyn QuestionDecisions + '_> {
        Box::new(self.bound_at(now))
    }

    fn not_asked(&self, call: Option<&CallSummary>, refusal: &RuleRefusal) {
        self.refused(&refusal.rule, &refusal.reason, call);
    }

    fn approved(
        &self,
        now: Timestamp,
        call: &CallSummary,
        approval: &Approval,
        answers: &str,
        edited: &[String],
        question: Option<&str>,
    ) {
        let rules = self.teams.rules();
        let PeopleAsked { rule, team, .. } = &approval.people;
        let now_is = rules.rule(rule);
        let now_is = now_is.filter(|rule| approval_digest(rule) == team.rule_digest);
        let good_for = match now_is.map(policy::Rule::decision) {
            Some(policy::Decision::Approve(now_is)) => now_is.good_for,
            _ => None,
        };
        let question = question.map(str::to_owned);
        let until = good_for.map(|time| now.after(time));
        self.teams.tell(RulesEvent::Approved {
            rule: rule.clone(),
            server: self.server.name.clone(),
            principal: self.caller.get().binding().to_owned(),
            call: (call.kind, call.target.clone()),
            question: question.clone(),
            edited: edited.to_vec(),
            until,
        });
        if let Some(until) = until {
            let grant = ApprovalGrant {
                key: self.grant_key(call, &team.rule_digest),
                question,
                rule: rule.clone(),
                rule_digest: team.rule_digest.clone(),
                answers: answers.to_owned(),
                at: now,
                until,
            };
            self.teams.grant(grant, now);
        }
    }
}

/// The rules, with all facts of one moment but the call and the question.
struct BoundAt<'b> {
    binding: &'b Binding,
    rules: Arc<Rules>,
    time: Now,
    by: IdentifiedCaller,
    /// By the kind and name of a call.
    read: RefCell<HashMap<String, ArgumentsRead>>,
}

impl BoundAt<'_> {
    fn facts<'a>(&'a self, call: Option<CallFacts<'a>>) -> Facts<'a> {
        facts(&self.by, &self.binding.server.name, call, &self.time)
    }

    fn plan_one(&self, call: Option<CallFacts<'_>>, question: &QuestionFacts) -> Planned {
        let facts = self.facts(call);
        match self.rules.plan(&facts, question) {
            policy::Planned::Ask(Some(rule), plan) if !plan.ask.is_caller() => {
                let unmatched = self.by.unmatched.as_deref();
                if let Some(reason) = plan.reason_not_to_ask(facts.call.as_ref(), unmatched) {
                    return Planned::Refuse(refusal(rule, &reason));
                }
                let digest = ask_digest(rule, &plan);
                let caller = &self.by.caller;
                let people =
                    self.binding
                        .people_asked(&self.rules, caller, rule, &plan, &digest, false);
                match people {
                    Ok(people) => Planned::People(Box::new(people)),
                    Err(refusal) => Planned::Refuse(refusal),
                }
            }
            policy::Planned::Ask(_, plan) => Planned::Caller {
                open_for: plan.deadline,
            },
            policy::Planned::Refuse(rule, because) => {
                Planned::Refuse(refusal(rule, &because.reason))
            }
        }
    }
}

impl QuestionDecisions for BoundAt<'_> {
    fn group_of<'c>(&self, call: &'c CallSummary) -> Cow<'c, str> {
        let name = format!("{} {}", call.kind.word(), call.target);
        let facts = self.facts(Some((call, None)));
        let known = self.read.borrow().get(&name).copied();
        let read = known.unwrap_or_else(|| {
            let read = self.rules.arguments_read(&facts);
            self.read.borrow_mut().insert(name.clone(), read);
            read
        });
        if read.by_conditions {
            return Cow::Borrowed(&call.digest);
        }
        let is_shown = || facts.call.is_none_or(|call| call.unshown().is_none());
        if read.by_people && !is_shown() {
            return Cow::Owned(format!("too long: {name}"));
        }
        Cow::Owned(name)
    }

    fn plan(&self, calls: &[Option<CallFacts<'_>>], question: QuestionParts<'_>) -> Vec<Planned> {
        let question = question_facts(question);
        let plan = |call: &Option<CallFacts<'_>>| self.plan_one(*call, &question);
        up_to_refusal(calls.iter().map(plan))
    }
}

fn refusal(rule: &str, reason: &str) -> RuleRefusal {
    RuleRefusal {
        rule: rule.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Returns the digest of a rule that asks for approval: of everything in it that decides.
pub(crate) fn approval_digest(rule: &policy::Rule) -> String {
    digest_of(&[&rule.deciding_text()])
}

/// Returns the digest of a rule that says who answers a server's questions.
fn ask_digest(rule: &str, plan: &Plan) -> String {
    digest_of(&[rule, &format!("{:?}", plan.deciding())])
}

/// Returns `true` if a question with this digest would be asked by the rule as it is now.
pub(crate) fn is_asked_by(rule: &policy::Rule, digest: &str) -> bool {
    match rule.decision() {
        policy::Decision::Approve(_) => approval_digest(rule) == digest,
        policy::Decision::Ask(plan) => ask_digest(rule.name(), plan) == digest,
        policy::Decision::Allow | policy::Decision::Refuse(_) => false,
    }
}

fn digest_of(parts: &[&str]) -> String {
    digest::hex(&digest::of_parts(parts), 16)
}

fn facts<'a>(
    by: &'a IdentifiedCaller,
    server: &'a str,
    call: Option<(&'a CallSummary, Option<&'a ToolFacts>)>,
    now: &'a Now,
) -> Facts<'a> {
    let call = call.map(|(call, tool)| Call {
        kind: call.kind,
        target: &call.target,
        arguments: call.arguments.as_deref(),
        annotations: annotations(tool),
    });
    Facts {
        caller: &by.caller,
        groups: &by.groups,
        server,
        call,
        now,
    }
}

/// Returns a tool's annotations: the specification's defaults where the server lists none.
fn annotations(tool: Option<&ToolFacts>) -> Annotations {
    let usual = Annotations::default();
    let Some(tool) = tool else {
        return usual;
    };
    Annotations {
        read_only: tool.read_only.unwrap_or(usual.read_only),
        destructive: tool.destructive.unwrap_or(usual.destructive),
        idempotent: tool.idempotent.unwrap_or(usual.idempotent),
        open_world: tool.open_world.unwrap_or(usual.open_world),
    }
}

/// Returns the caller as rules see it, with all its groups: of the file, and as its token claims.
fn identified(teams: &Teams, people: &People, caller: &callers::ProvenCaller) -> IdentifiedCaller {
    let found = Caller {
        issuer: caller.issuer().to_owned(),
        subject: caller.subject().to_owned(),
        name: caller.name().to_owned(),
        mail: caller.mail().to_owned(),
        client: caller.client().to_owned(),
        person: String::new(),
        kind: match caller.kind() {
            callers::ProofKind::Local => CallerKind::Local,
            callers::ProofKind::Subject | callers::ProofKind::Unverified => CallerKind::Subject,
            callers::ProofKind::Key => CallerKind::Key,
        },
    };
    people.identify(found, &teams.person_of(caller, people), caller.claims())
}

/// Returns a question as rules see it.
pub(crate) fn question_facts(question: QuestionParts<'_>) -> QuestionFacts {
    let host = match question.request {
        ElicitRequest::Url { url, .. } => Link::parse(url)
            .map(|link| link.host().ascii().to_owned())
            .unwrap_or_default(),
        ElicitRequest::Form { .. } => String::new(),
    };
    QuestionFacts {
        mode: question.request.mode().as_str().to_owned(),
        message: question.request.message().to_owned(),
        host,
        credentials: question.has_credentials,
        fields: question.form.map(fields_of).unwrap_or_default(),
    }
}

fn fields_of(form: &Form) -> BTreeMap<String, FieldFacts> {
    let fields = form.fields().iter().map(|field| {
        let (kind, format, options) = match field.kind() {
            Kind::Text(text) => (
                "string",
                text.format.map_or("", |format| format.as_str()),
                0,
            ),
            Kind::Number(_) => ("number", "", 0),
            Kind::Integer(_) => ("integer", "", 0),
            Kind::Boolean(_) => ("boolean", "", 0),
            Kind::Choice(choice) => ("choice", "", choice.options.len()),
            Kind::Choices(choices) => ("choices", "", choices.options.len()),
        };
        let facts = FieldFacts {
            kind: kind.to_owned(),
            format: format.to_owned(),
            required: field.required(),
            options: i64::try_from(options).unwrap_or(i64::MAX),
        };
        (field.name().to_owned(), facts)
    });
    fields.collect()
}

#[cfg(test)]
#[cfg(feature = "teams")]
mod simulate_tests;

#[cfg(test)]
#[cfg(feature = "teams")]
mod tests {
    use mcp_elicit_core::view::sanitize;
    use mcp_elicit_core::wire::CallKind;
    use mcp_elicit_inbox::login::table::{Admission as LoginAdmission, Identity, Lifetimes};
    use mcp_elicit_inbox::state_folder::StateFolder;
    use mcp_elicit_record::store::Memory;
    use mcp_elicit_record::{IdentityKey, Keys, LockFile, Record};

    use super::*;
    use crate::teams::TeamsChange;

    const FILE: &str = r#"
        [people.ada]
        mail = "ada@example.com"
        local-user = "ada"
        [people.bob]
        mail = "bob@example.com"
        [groups]
        ops = ["ada", "bob"]
        [[rules]]
        name = "never"
        tool = "drop_*"
        refuse = "not here"
        [[rules]]
        name = "reads"
        when = "annotations.readOnly"
        allow = true
        [[rules]]
        name = "careful"
        tool = "delete_*"
        approve = true
        ask = { group = "ops", not-caller = true }
        edit = ["/path"]
        good-for = "10m"
        on-timeout = "hand-back"
        [[rules]]
        name = "no-secrets"
        refuse-credentials = true
        [[rules]]
        name = "production"
        when = 'arguments.environment == "production"'
        ask = { group = "ops", need = 2 }
        deadline = "30m"
        [[rules]]
        name = "own"
        when = 'caller.person == "ada"'
        ask = "caller"
        deadline = "5m"
    "#;

    fn binding() -> (Binding, tokio::sync::mpsc::UnboundedReceiver<TeamsChange>) {
        let key = IdentityKey::random().unwrap();
        let (teams, changes) = Teams::without_logins(Arc::new(Rules::parse(FILE).unwrap()), key);
        // A program's own, so that `not-caller` excludes nobody.
        let caller = CurrentCaller::new(callers::ProvenCaller::of_program("0"));
        (
            Binding::new(
                teams,
                server("k"),
                caller,
                Duration::from_secs(24 * 60 * 60),
            ),
            changes,
        )
    }

    fn server(key: &str) -> ServerOfCalls {
        ServerOfCalls {
            name: "s".to_owned(),
            key: key.to_owned(),
        }
    }

    fn call(tool: &str, arguments: Option<&str>) -> CallSummary {
        CallSummary {
            kind: CallKind::Tool,
            target: tool.to_owned(),
            arguments: arguments.map(str::to_owned),
            digest: format!("{tool} {arguments:?}"),
        }
    }

    #[tokio::test]
    async fn an_approval_is_good_for_the_same_call_of_the_same_caller_and_rule_and_for_no_longer() {
        let (binding, mut changes) = binding();
        let at = Timestamp::from_millis;
        let call_a = call("delete_a", None);
        let Admission::Approve(approval) = binding.admit(at(1_000), &call_a, None) else {
            panic!("the rule asks for approval");
        };
        binding.approved(
            at(1_000),
            &call_a,
            &approval,
            r#"{"/path":"x"}"#,
            &["/path".to_owned()],
            Some("q"),
        );
        let is_granted = |binding: &Binding, call: &CallSummary, millis: u64| match binding.admit(
            at(millis),
            call,
            None,
        ) {
            Admission::Granted(_, answers) => {
                assert_eq!(answers, r#"{"/path":"x"}"#);
                true
            }
            Admission::Approve(_) => false,
            other => panic!("{other:?}"),
        };
        assert!(is_granted(&binding, &call_a, 500_000));
        for other in [call("delete_b", None), call("delete_a", Some("{}"))] {
            assert!(!is_granted(&binding, &other, 2_000));
        }
        assert!(!is_granted(&binding, &call_a, 601_000), "it has ended");
        assert!(
            !is_granted(&binding, &call_a, 999),
            "the clock was set back"
        );

        // What was written makes another gateway know it: the same one after a restart.
        let store = Arc::new(Memory::default());
        let record = |millis: fn() -> Timestamp| {
            let keys = Keys::random().unwrap();
            let keys = Keys {
                identity: binding.teams.key().clone(),
                ..keys
            };
            let lock = LockFile::unshared().unwrap();
            (keys.clone(), Record::new(store.clone(), keys, lock, millis))
        };
        let (keys, before) = record(|| Timestamp::from_millis(2_000));
        let mut told = Vec::new();
        while let Ok(change) = changes.try_recv() {
            told.push(match &change {
                TeamsChange::Event(RulesEvent::Approved { until, .. }, 0) => {
                    assert_eq!(*until, Some(at(601_000)));
                    "approved"
                }
                TeamsChange::Event(RulesEvent::GrantUsed { question, .. }, 0) => {
                    assert_eq!(question.as_deref(), Some("q"));
                    "used"
                }
                TeamsChange::Grant(_) => "grant",
                other => panic!("{other:?}"),
            });
            change.write(&before).await.unwrap();
        }
        assert_eq!(told, ["approved", "grant", "used"]);
        let restarted = |server_key: &str, person: &str| {
            let rules = Arc::new(Rules::parse(FILE).unwrap());
            let (teams, changes) = Teams::without_logins(rules, binding.teams.key().clone());
            let id = if person.is_empty() { "0" } else { person };
            let caller = CurrentCaller::new(callers::ProvenCaller::of_program(id));
            let usual = Duration::from_secs(24 * 60 * 60);
            (
                Binding::new(teams, server(server_key), caller, usual),
                changes,
            )
        };
        let lock = LockFile::unshared().unwrap();
        let after = Record::new(store.clone(), keys, lock, || Timestamp::from_millis(9_000));
        for (server_key, person, expected) in
            [("k", "", true), ("other", "", false), ("k", "1", false)]
        {
            let (again, _changes) = restarted(server_key, person);
            assert!(!is_granted(&again, &call_a, 9_000), "not known yet");
            again.teams.recall_grants(&after).await.unwrap();
            assert_eq!(
                is_granted(&again, &call_a, 9_000),
                expected,
                "{server_key} {person}"
            );
            assert!(
                !is_granted(&again, &call_a, 601_000),
                "a restart makes none longer"
            );
        }
        // Sealed with another key, it counts for nothing.
        let (_, stranger) = record(|| Timestamp::from_millis(9_000));
        assert_eq!(stranger.grants().await.unwrap(), []);

        // A changed rule voids it, here and in the record.
        let (again, mut written) = restarted("k", "");
        again.teams.recall_grants(&after).await.unwrap();
        let longer = FILE.replace("good-for = \"10m\"", "good-for = \"20m\"");
        again
            .teams
            .replace(Arc::new(Rules::parse(&longer).unwrap()));
        assert!(!is_granted(&again, &call_a, 9_000), "another rule");
        again.teams.replace(Arc::new(Rules::parse(FILE).unwrap()));
        assert!(
            !is_granted(&again, &call_a, 9_000),
            "what is void stays void"
        );
        let mut told = Vec::new();
        while let Ok(change) = written.try_recv() {
            told.push(format!("{change:?}"));
            change.write(&after).await.unwrap();
        }
        assert!(
            told[0].contains("GrantVoid { rule: \"careful\", grants: 1 }"),
            "{told:?}"
        );
        assert_eq!(after.grants().await.unwrap(), []);
    }

    #[test]
    fn an_approval_ends_where_anything_of_its_rule_changes_and_nowhere_else() {
        let decides = |text: &str, name: &str| {
            let rules = Rules::parse(text).unwrap();
            approval_digest(rules.rule(name).unwrap())
        };
        let digest = decides(FILE, "careful");
        let is_same = |from: &str, to: &str| {
            assert!(FILE.contains(from), "{from}");
            decides(&FILE.replace(from, to), "careful") == digest
        };
        let head = "name = \"careful\"\n        tool = \"delete_*\"";
        for changed in [
            "name = \"careful\"\n tool = \"delete_?\"",
            "name = \"careful\"\n tool = [\"delete_*\", \"put_*\"]",
            "name = \"careful\"\n tool = \"delete_*\"\n server = \"s\"",
            "name = \"careful\"\n tool = \"delete_*\"\n when = 'arguments.force == true'",
            "name = \"careful\"\n tool = \"delete_*\"\n on-error = \"refuse\"",
        ] {
            assert!(!is_same(head, changed), "{changed}");
        }
        // Another place in the file, other people, and other rules before it.
        let other = "[[rules]]\n when = 'arguments.x == \"y\"'\n refuse = \"z\"\n[[rules]]\n name = \"never\"";
        assert!(is_same("[[rules]]\n        name = \"never\"", other));
        assert!(is_same("\"ada\", \"bob\"", "\"bob\", \"ada\""));
    }

    #[test]
    fn a_question_stays_that_of_its_rule_until_something_is_changed_that_decides() {
        let digest = |file: &str, name: &str| {
            let rules = Rules::parse(file).unwrap();
            let rule = rules.rule(name).unwrap();
            match rule.decision() {
                policy::Decision::Approve(_) => approval_digest(rule),
                policy::Decision::Ask(plan) => ask_digest(name, plan),
                other => panic!("{other:?}"),
            }
        };
        let with = |name: &str, line: &str| {
            let name = format!("name = \"{name}\"\n");
            FILE.replace(&name, &format!("{name}{line}\n"))
        };
        for name in ["careful", "production"] {
            let before = digest(FILE, name);
            for line in [
                "reveal = \"arguments\"",
                "remind = [\"1m\"]",
                "claim = \"1m\"",
                "delegate-to = [\"person:ada\"]",
            ] {
                let file = with(name, line);
                assert_eq!(digest(&file, name), before, "{name} {line}");
                let rules = Rules::parse(&file).unwrap();
                assert!(is_asked_by(rules.rule(name).unwrap(), &before));
            }
            let file = with(name, "reauth = \"5m\"");
            assert_ne!(digest(&file, name), before);
            let rules = Rules::parse(&file).unwrap();
            assert!(!is_asked_by(rules.rule(name).unwrap(), &before));
        }
    }

    #[test]
    fn who_has_the_mailbox_of_a_person_bound_to_another_subject_is_not_that_person_as_a_caller() {
        const LOGS_IN: &str = "https://id.example";
        let rules = Arc::new(Rules::parse(FILE).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::open(&folder.path().join("state")).unwrap();
        let logins = Arc::new(state.logins());
        let key = IdentityKey::random().unwrap();
        let (teams, _changes) = Teams::new(rules.clone(), key, logins.clone());
        let calling = |issuer: &str, subject: &str, mail: &str| {
            let caller = callers::ProvenCaller::of_subject(issuer, subject, Some(LOGS_IN));
            let caller = caller.with_token(mail, Vec::new());
            let by = identified(&teams, rules.people(), &caller);
            let caller = CurrentCaller::new(caller);
            let usual = Duration::from_secs(24 * 60 * 60);
            let binding = Binding::new(teams.clone(), server("k"), caller, usual);
            let call = call("put_a", Some(r#"{"environment":"production"}"#));
            let request = empty_form();
            let now = Timestamp::from_millis(1_000);
            let team = match binding.plan(now, Some((&call, None)), asking(&request)) {
                Planned::People(people) => people.team.text,
                other => panic!("{other:?}"),
            };
            let team: serde_json::Value = serde_json::from_str(&team).unwrap();
            let digest = team["caller"]["mail_digest"].as_str().unwrap_or_default();
            let groups = by.groups.join(" ");
            (
                by.caller.person,
                groups,
                digest == mail_digest("ada@example.com"),
            )
        };
        let is_ada = ("ada".to_owned(), "ops".to_owned(), true);
        let is_nobody_with_adas_mail = (String::new(), String::new(), true);
        // Nobody has logged in: a mailbox says who it is.
        assert_eq!(calling(LOGS_IN, "s-1", "ada@example.com"), is_ada);
        let identity = Identity {
            issuer: LOGS_IN.to_owned(),
            subject: "s-1".to_owned(),
            name: "Ada".to_owned(),
            mail: Some("ada@example.com".to_owned()),
            claims: Vec::new(),
            sid: None,
            auth_at: None,
        };
        let hour = Duration::from_secs(60 * 60);
        let admission = LoginAdmission {
            people: rules.people(),
            allow: &[],
            lifetimes: Lifetimes {
                idle: hour,
                max: hour,
            },
        };
        let now = Timestamp::from_millis(1_000);
        let login = logins.log_in(&identity, admission, None, "a test", now);
        login.unwrap().unwrap();
        assert_eq!(calling(LOGS_IN, "s-1", "ada@example.com"), is_ada);
        assert_eq!(calling(LOGS_IN, "s-1", ""), is_ada, "by the subject");
        assert_eq!(calling(LOGS_IN, "s-1", "new@example.com"), is_ada);
        // The mailbox has changed hands.
        let other = calling(LOGS_IN, "s-2", "Ada@example.com");
        assert_eq!(other, is_nobody_with_adas_mail, "`not-caller` excludes Ada");
        let other = calling(LOGS_IN, "s-2", "");
        assert_eq!(other, (String::new(), String::new(), false));
        let bob = calling(LOGS_IN, "s-3", "bob@example.com");
        assert_eq!(bob.0, "bob", "he has not logged in yet");

        // Where the logins cannot be read, it is not known who calls, and a rule with `not-caller` refuses.
        std::fs::write(state.path().join("inbox.logins"), "{").unwrap();
        let caller = callers::ProvenCaller::of_subject(LOGS_IN, "s-1", Some(LOGS_IN));
        let by = identified(&teams, rules.people(), &caller);
        assert!(by.caller.person.is_empty() && by.unmatched.is_some());
        let binding = Binding::new(teams, server("k"), CurrentCaller::new(caller), hour);
        let admitted = binding.admit(now, &call("delete_a", None), None);
        assert!(matches!(admitted, Admission::Refuse(_)), "{admitted:?}");
    }

    fn empty_form() -> ElicitRequest {
        ElicitRequest::form(
            "Who?",
            &serde_json::json!({"type": "object", "properties": {}}),
        )
    }

    fn asking(request: &ElicitRequest) -> QuestionParts<'_> {
        QuestionParts {
            request,
            form: None,
            has_credentials: false,
        }
    }

    #[tokio::test]
    async fn nobody_is_asked_about_a_call_that_no_page_shows_in_full() {
        let (binding, mut changes) = binding();
        let now = Timestamp::from_millis(1_000);
        let arguments = |characters: usize| {
            let around = r#"{"environment":"production","x":""}"#.len();
            let long = "ü".repeat(characters - around);
            format!(r#"{{"environment":"production","x":"{long}"}}"#)
        };
        let request = empty_form();
        let question = asking(&request);
        let whole = arguments(sanitize::ARGUMENTS);
        let longer = arguments(sanitize::ARGUMENTS + 1);
        let name = "delete_".repeat(1_000);
        for (target, arguments, is_shown) in [
            ("delete_a", &*whole, true),
            ("delete_a", &*longer, false),
            (&*name, "{}", false),
        ] {
            match binding.admit(now, &call(target, Some(arguments)), None) {
                Admission::Approve(_) => assert!(is_shown),
                Admission::Refuse(refusal) => {
                    assert!(
                        !is_shown && refusal.to_string().contains("more than"),
                        "{refusal}"
                    );
                    let told = format!("{:?}", changes.try_recv().unwrap());
                    assert!(
                        told.contains("Refused") && told.contains("careful"),
                        "{told}"
                    );
                }
                other => panic!("{other:?}"),
            }
        }
        for (arguments, is_shown) in [(&whole, true), (&longer, false)] {
            let call = call("put_a", Some(arguments));
            let planned = binding.plan(now, Some((&call, None)), question);
            assert_eq!(matches!(planned, Planned::People(_)), is_shown);
            assert_eq!(matches!(planned, Planned::Refuse(_)), !is_shown);
        }
    }

    #[test]
    fn without_a_known_call_rules_about_calls_restrict() {
        let (binding, _events) = binding();
        let request = empty_form();
        let question = asking(&request);
        let planned = binding.plan(Timestamp::from_millis(1_000), None, question);
        let Planned::People(people) = planned else {
            panic!("the condition cannot be judged: {planned:?}");
        };
        assert_eq!(
            (people.rule.as_str(), people.hands_back),
            ("production", false)
        );
        assert_eq!(people.open_for, Duration::from_secs(30 * 60));
    }

    #[tokio::test]
    async fn a_refusal_of_a_question_is_in_the_audit_once_it_is_told_and_not_while_it_is_judged() {
        let (binding, mut changes) = binding();
        let now = Timestamp::from_millis(1_000);
        let request = empty_form();
        let question = QuestionParts {
            has_credentials: true,
            ..asking(&request)
        };
        let call = call("put_a", None);
        for call in [Some((&call, None)), None] {
            for _ in 0..10 {
                let planned = binding.plan(now, call, question);
                assert!(matches!(planned, Planned::Refuse(_)), "{planned:?}");
            }
        }
        assert!(changes.try_recv().is_err(), "nobody has told of it");
        let reason = "no";
        binding.not_asked(Some(&call), &refusal("no-secrets", reason));
        let told = format!("{:?}", changes.try_recv().unwrap());
        assert!(told.contains("Refused") && told.contains("put_a"), "{told}");
        assert!(changes.try_recv().is_err());
    }

    #[test]
    fn questions_in_calls_are_decided_alike_unless_a_rule_reads_their_arguments_or_people_see_them()
    {
        let by_caller = "[[rules]]\n when = 'caller.person == \"ada\"'\n ask = \"caller\"";
        let people =
            "[people.ada]\n mail = \"ada@example.com\"\n[[rules]]\n ask = { person = \"ada\" }";
        let long = format!(r#"{{"x":"{}"}}"#, "ü".repeat(sanitize::ARGUMENTS));
        let few = r#"{"environment":"production"}"#;
        for (file, few_differs, long_differs) in [
            (by_caller, false, false),
            (people, false, true),
            (FILE, true, true),
        ] {
            let rules = Arc::new(Rules::parse(file).unwrap());
            let key = IdentityKey::random().unwrap();
            let (teams, _changes) = Teams::without_logins(rules, key);
            let caller = CurrentCaller::new(callers::ProvenCaller::of_program("0"));
            let binding = Binding::new(teams, server("k"), caller, Duration::from_secs(60));
            let decisions = binding.at(Timestamp::from_millis(1_000));
            let none = call("put_a", None);
            let same = |other: &CallSummary| decisions.group_of(&none) == decisions.group_of(other);
            assert_eq!(same(&call("put_a", Some(few))), !few_differs, "{file}");
            assert_eq!(same(&call("put_a", Some(&long))), !long_differs, "{file}");
            assert!(!same(&call("put_b", None)), "the name always counts");
        }
    }
}
