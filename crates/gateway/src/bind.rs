//! The facts of a running gateway for its rules: caller, server, call and question. The deciding functions are shared
//! with `mcp-elicit rules simulate`.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_elicit_core::digest;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::form::Kind;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::link::Link;
use mcp_elicit_core::question::{CallSummary, ProofNumber};
use mcp_elicit_core::wire::ElicitRequest;
use mcp_elicit_policy::rules::{self as policy, ArgumentsRead, OnTimeout, Plan};
use mcp_elicit_policy::{
    Annotations, Caller, CallerKind, CallingPerson, Facts, FieldFacts, IdentifiedCaller, KnownCall,
    Now, People, QuestionFacts, Rules,
};
use mcp_elicit_record::grants::ApprovalGrant;
use mcp_elicit_record::team::{RulesEvent, Team, TeamCaller, mail_digest};
use mcp_elicit_relay::decisions::{
    Admission, Approval, ApprovedCall, CallFacts, Decisions, PeopleAsked, Planned,
    QuestionDecisions, QuestionParts, RuleRefusal, ToolFacts, VoteProgress, up_to_refusal,
};

use crate::callers::{self, ProvenCaller, SessionCaller};
use crate::current_rules::{self, CurrentRules};

/// The rules of the last file that defined a server as its sessions have it, once another file defines it otherwise or
/// not at all. Its sessions go on, and what these rules refuse or put to people stays so: the other file's rules are about
/// another server.
#[derive(Clone, Debug, Default)]
pub(crate) struct EarlierRules(Arc<OnceLock<Arc<Rules>>>);

impl EarlierRules {
    /// Sets the rules of the last file. Set once.
    pub(crate) fn set(&self, rules: Arc<Rules>) {
        let _set_once = self.0.set(rules);
    }

    fn get(&self) -> Option<&Arc<Rules>> {
        self.0.get()
    }
}

/// The server that a caller's calls go to.
#[derive(Clone, Debug)]
pub(crate) struct ServerOfCalls {
    /// The name of the configuration.
    pub(crate) name: String,
    /// The keyed hash of the server's identity: after a restart, another server may have the same name.
    pub(crate) key: String,
    /// The rules of the last file that defined it so.
    pub(crate) earlier: EarlierRules,
}

/// The rules, for the calls of one caller at one server.
#[derive(Debug)]
pub(crate) struct Binding {
    teams: Arc<CurrentRules>,
    server: ServerOfCalls,
    caller: Arc<SessionCaller>,
    usual: Duration,
}

impl Binding {
    /// Binds the rules to a caller and a server.
    pub(crate) fn new(
        teams: Arc<CurrentRules>,
        server: ServerOfCalls,
        caller: Arc<SessionCaller>,
        usual: Duration,
    ) -> Self {
        Self {
            teams,
            server,
            caller,
            usual,
        }
    }

    /// Returns the people of a plan, which is that of `approval` if the rule asks for one.
    fn people_asked(
        &self,
        rules: &Rules,
        caller: &Caller,
        rule: &str,
        plan: &Plan,
        digest: &str,
        approval: Option<&policy::ApprovalPlan>,
    ) -> Result<PeopleAsked, RuleRefusal> {
        let asked = rules.people().named(&plan.ask.to);
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let entry = rules.people().people.get(&caller.person);
        let mail = entry.and_then(|entry| entry.mail.as_deref());
        // A person with another subject may be the caller under a new account if they share a mailbox: `not-caller`
        // excludes them.
        let mail = mail.or_else(|| Some(caller.mail.as_str()).filter(|mail| !mail.is_empty()));
        let file_subject = entry.and_then(|entry| entry.subject.clone());
        let team_caller = TeamCaller {
            person: known(&caller.person),
            issuer: caller.issuer.clone(),
            subject: caller.subject.clone(),
            name: caller.name.clone(),
            mail_digest: mail.map(mail_digest).unwrap_or_default(),
            file_subject: file_subject.unwrap_or_default(),
            is_nobody: *self.caller.opened_by().person() == CallingPerson::Nobody,
        };
        let team = Team::new(rule, digest, team_caller, plan, asked, self.usual);
        let team = match approval {
            Some(approval) => {
                let named = rules.rule(rule).and_then(policy::Rule::arguments_named);
                let team = team.for_approval().with_good_for(approval.good_for);
                team.with_reads(named)
            }
            None => team,
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

    /// Returns the refusal if the people of a plan cannot be asked about a call.
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
            principal: self.principal(),
            call: call.map(|call| (call.kind, call.target.clone())),
        });
        refusal(rule, reason)
    }

    /// Returns the name that distinguishes the caller, which is the same for all its proofs.
    fn principal(&self) -> String {
        self.caller.opened_by().binding().to_owned()
    }

    /// Returns the caller of a call, according to the proof of the request that made it.
    fn caller_of(&self, call: &CallSummary, people: &People) -> IdentifiedCaller {
        identified(&self.teams, people, &self.caller.of(call.proof))
    }

    /// Returns the rules of the last file that defined the server so, if it is another file than the current one.
    fn earlier_at(&self, now: Timestamp) -> Option<(Arc<Rules>, Now)> {
        let rules = self.server.earlier.get()?;
        Some(current_rules::rules_with_time(rules.clone(), now))
    }

    /// Decides about a call by these rules.
    fn admit_by(
        &self,
        (rules, time): &(Arc<Rules>, Now),
        now: Timestamp,
        call: &CallSummary,
        tool: Option<&ToolFacts>,
    ) -> Admission {
        let by = self.caller_of(call, rules.people());
        let server = &self.server.name;
        let facts = facts(&by, server, Some((call, tool)), time);
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
                let plan = &approval.plan;
                let people =
                    self.people_asked(rules, &by.caller, rule, plan, &digest, Some(&approval));
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
                    Some(grant) => Admission::Granted(asked, grant.answers),
                    None => Admission::Approve(asked),
                }
            }
        }
    }

    /// Returns the refusal of a call by these rules, if they refuse it.
    fn refuses_by(
        &self,
        (rules, time): &(Arc<Rules>, Now),
        call: &CallSummary,
        tool: Option<&ToolFacts>,
    ) -> Option<RuleRefusal> {
        let by = self.caller_of(call, rules.people());
        let facts = facts(&by, &self.server.name, Some((call, tool)), time);
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

    fn bound_at(&self, now: Timestamp) -> BothAt<'_> {
        BothAt {
            current: self.bound_by(self.teams.rules_at(now)),
            earlier: self.earlier_at(now).map(|rules| self.bound_by(rules)),
        }
    }

    fn bound_by(&self, (rules, time): (Arc<Rules>, Now)) -> BoundAt<'_> {
        let proofs = self.caller.all().into_iter();
        BoundAt {
            binding: self,
            rules,
            time,
            callers: proofs.map(|proof| (proof, OnceCell::new())).collect(),
            read: RefCell::default(),
        }
    }

    /// Returns the key of a longer-lived approval of this call.
    fn grant_key(&self, call: &CallSummary, rule_digest: &str) -> String {
        let key = self.teams.key();
        key.grant_key(
            self.caller.opened_by().binding(),
            &self.server.key,
            &call.digest,
            rule_digest,
        )
    }
}

impl Decisions for Binding {
    fn admit(&self, now: Timestamp, call: &CallSummary, tool: Option<&ToolFacts>) -> Admission {
        let current = self.admit_by(&self.teams.rules_at(now), now, call, tool);
        let Some(rules) = self.earlier_at(now) else {
            return current;
        };
        if matches!(current, Admission::Refuse(_)) {
            return current;
        }
        let earlier = self.admit_by(&rules, now, call, tool);
        match (&current, &earlier) {
            (_, Admission::Refuse(_)) | (Admission::Free, _) => earlier,
            _ => current,
        }
    }

    fn refuses(
        &self,
        now: Timestamp,
        call: &CallSummary,
        tool: Option<&ToolFacts>,
    ) -> Option<RuleRefusal> {
        let current = self.refuses_by(&self.teams.rules_at(now), call, tool);
        current.or_else(|| self.refuses_by(&self.earlier_at(now)?, call, tool))
    }

    fn plan(
        &self,
        now: Timestamp,
        call: Option<CallFacts<'_>>,
        question: QuestionParts<'_>,
    ) -> Planned {
        self.bound_at(now).plan_any(call, &question_facts(question))
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
        decision: &ApprovedCall<'_>,
    ) {
        let rules = self.teams.rules();
        let PeopleAsked { rule, team, .. } = &approval.people;
        let now_is = rules.rule(rule);
        let now_is = now_is.filter(|rule| approval_digest(rule) == team.rule_digest);
        let good_for = match now_is.map(policy::Rule::decision) {
            Some(policy::Decision::Approve(now_is)) => now_is.good_for,
            _ => None,
        };
        let question = decision.question.map(str::to_owned);
        let until = good_for.map(|time| now.after(time));
        self.teams.tell(RulesEvent::Approved {
            rule: rule.clone(),
            server: self.server.name.clone(),
            principal: self.principal(),
            call: (call.kind, call.target.clone()),
            question: question.clone(),
            edited: decision.edited.to_vec(),
            evidence: self.teams.key().evidence(decision.digest),
            until,
        });
        if let Some(until) = until {
            let grant = ApprovalGrant {
                key: self.grant_key(call, &team.rule_digest),
                question,
                rule: rule.clone(),
                rule_digest: team.rule_digest.clone(),
                answers: decision.answers.to_owned(),
                at: now,
                until,
            };
            self.teams.grant(grant, now);
        }
    }

    fn grant_used(&self, now: Timestamp, call: &CallSummary, approval: &Approval) {
        let PeopleAsked { rule, team, .. } = &approval.people;
        let grant = self
            .teams
            .granted(&self.grant_key(call, &team.rule_digest), now);
        self.teams.tell(RulesEvent::GrantUsed {
            rule: rule.clone(),
            server: self.server.name.clone(),
            principal: self.principal(),
            call: (call.kind, call.target.clone()),
            question: grant.and_then(|grant| grant.question),
        });
    }

    fn progress(&self, question: &str) -> Option<VoteProgress> {
        let progress = self.teams.record()?.progress(question)?;
        Some(VoteProgress {
            missing: progress.missing,
            votes: progress.votes,
            need: usize::from(progress.need),
            asked_at: progress.asked_at,
            until: progress.until,
        })
    }
}

/// The current rules, and those of the last file that defined the server as its sessions have it.
struct BothAt<'b> {
    current: BoundAt<'b>,
    earlier: Option<BoundAt<'b>>,
}

impl BothAt<'_> {
    /// Decides about a question of this call: a refusal by either rules counts, then people by the current ones.
    fn plan_any(&self, call: Option<CallFacts<'_>>, question: &QuestionFacts) -> Planned {
        let current = self.current.plan_any(call, question);
        let Some(earlier) = &self.earlier else {
            return current;
        };
        if matches!(current, Planned::Refuse(_)) {
            return current;
        }
        match (current, earlier.plan_any(call, question)) {
            (_, refused @ Planned::Refuse(_)) => refused,
            (people @ Planned::People(_), _) => people,
            (current, earlier) => stricter(current, earlier),
        }
    }
}

impl QuestionDecisions for BothAt<'_> {
    fn group_of<'c>(&self, call: &'c CallSummary) -> Cow<'c, str> {
        let current = self.current.group_of(call);
        match &self.earlier {
            None => current,
            Some(earlier) => Cow::Owned(format!("{current}\n{}", earlier.group_of(call))),
        }
    }

    fn plan(&self, calls: &[Option<CallFacts<'_>>], question: QuestionParts<'_>) -> Vec<Planned> {
        let question = question_facts(question);
        let plan = |call: &Option<CallFacts<'_>>| self.plan_any(*call, &question);
        up_to_refusal(calls.iter().map(plan))
    }
}

/// The rules, with all current facts but the call and the question.
struct BoundAt<'b> {
    binding: &'b Binding,
    rules: Arc<Rules>,
    time: Now,
    /// The caller according to each of its proofs, by their numbers; each is identified when it is first needed.
    callers: Vec<(Arc<ProvenCaller>, OnceCell<IdentifiedCaller>)>,
    /// Arguments by the proof, kind and name of a call.
    read: RefCell<HashMap<String, ArgumentsRead>>,
}

impl BoundAt<'_> {
    fn facts<'a>(&'a self, by: &'a IdentifiedCaller, call: Option<CallFacts<'a>>) -> Facts<'a> {
        facts(by, &self.binding.server.name, call, &self.time)
    }

    /// Returns the caller according to the proof with this number.
    fn caller(&self, proof: ProofNumber) -> Option<&IdentifiedCaller> {
        let (proven, found) = self.callers.get(usize::from(proof.0))?;
        let teams = &self.binding.teams;
        Some(found.get_or_init(|| identified(teams, self.rules.people(), proven)))
    }

    /// Decides about a question of this call. If the call is unknown, its proof is too, and the strictest decision for
    /// any of them counts.
    fn plan_any(&self, call: Option<CallFacts<'_>>, question: &QuestionFacts) -> Planned {
        if let Some((summary, _)) = call {
            return self.plan_one(summary.proof, call, question);
        }
        let proofs = (0..self.callers.len()).filter_map(|at| u16::try_from(at).ok());
        let plans = proofs.map(|at| self.plan_one(ProofNumber(at), None, question));
        plans
            .reduce(stricter)
            .unwrap_or(Planned::Caller { open_for: None })
    }

    fn plan_one(
        &self,
        proof: ProofNumber,
        call: Option<CallFacts<'_>>,
        question: &QuestionFacts,
    ) -> Planned {
        let Some(by) = self.caller(proof) else {
            return Planned::Refuse(refusal("", "its caller is not known"));
        };
        let facts = self.facts(by, call);
        match self.rules.plan(&facts, question) {
            policy::PlannedQuestion::Ask(Some(rule), plan) if !plan.ask.is_caller() => {
                let unmatched = by.unmatched.as_deref();
                if let Some(reason) = plan.reason_not_to_ask(facts.call.as_ref(), unmatched) {
                    return Planned::Refuse(refusal(rule, &reason));
                }
                let digest = ask_digest(rule, &plan);
                let caller = &by.caller;
                let people =
                    self.binding
                        .people_asked(&self.rules, caller, rule, &plan, &digest, None);
                match people {
                    Ok(people) => Planned::People(Box::new(people)),
                    Err(refusal) => Planned::Refuse(refusal),
                }
            }
            policy::PlannedQuestion::Ask(_, plan) => Planned::Caller {
                open_for: plan.deadline,
            },
            policy::PlannedQuestion::Refuse(rule, because) => {
                Planned::Refuse(refusal(rule, &because.reason))
            }
        }
    }
}

impl BoundAt<'_> {
    fn group_of<'c>(&self, call: &'c CallSummary) -> Cow<'c, str> {
        // Rules may decide differently about the same call with another proof.
        let ProofNumber(proof) = call.proof;
        let name = format!("{proof} {} {}", call.kind.word(), call.target);
        let Some(by) = self.caller(call.proof) else {
            return Cow::Owned(format!("{proof} {}", call.digest));
        };
        let facts = self.facts(by, Some((call, None)));
        let known = self.read.borrow().get(&name).copied();
        let read = known.unwrap_or_else(|| {
            let read = self.rules.arguments_read(&facts);
            self.read.borrow_mut().insert(name.clone(), read);
            read
        });
        if read.by_conditions {
            return Cow::Owned(format!("{proof} {}", call.digest));
        }
        let is_shown = || facts.call.is_none_or(|call| call.unshown().is_none());
        if read.by_people && !is_shown() {
            return Cow::Owned(format!("too long: {name}"));
        }
        Cow::Owned(name)
    }
}

/// Returns the stricter one of two decisions about a question.
fn stricter(one: Planned, other: Planned) -> Planned {
    match (one, other) {
        (refused @ Planned::Refuse(_), _) | (_, refused @ Planned::Refuse(_)) => refused,
        (Planned::People(one), Planned::People(other)) if one.rule != other.rule => {
            let why = format!(
                "its call is not known, and the rule `{}` asks other people for other tokens of its caller",
                other.rule
            );
            Planned::Refuse(refusal(&one.rule, &why))
        }
        (people @ Planned::People(_), _) | (_, people @ Planned::People(_)) => people,
        (Planned::Caller { open_for: one }, Planned::Caller { open_for: other }) => {
            let shortest = one.into_iter().chain(other).min();
            Planned::Caller { open_for: shortest }
        }
    }
}

fn refusal(rule: &str, reason: &str) -> RuleRefusal {
    RuleRefusal {
        rule: rule.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Returns the digest of a rule that asks for approval, over all its deciding parts.
pub(crate) fn approval_digest(rule: &policy::Rule) -> String {
    digest_of(&[&rule.deciding_text()])
}

/// Returns the digest of a rule that chooses who answers a server's questions.
fn ask_digest(rule: &str, plan: &Plan) -> String {
    digest_of(&[rule, &plan.deciding_text()])
}

/// Returns `true` if the current rule would ask a question with this digest.
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
    let call = call.map(|(call, tool)| KnownCall {
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

/// Returns a tool's annotations, with the specification's defaults for those that the server does not list.
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

/// Returns the caller as rules see it, with all its groups: from the people file and from its token.
fn identified(teams: &CurrentRules, people: &People, caller: &ProvenCaller) -> IdentifiedCaller {
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

/// Returns a host without the dot of the root at its end, with which it is the same host (RFC 1034, section 3.1).
fn without_root(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// Returns a question as rules see it.
pub(crate) fn question_facts(question: QuestionParts<'_>) -> QuestionFacts {
    let host = match question.request {
        ElicitRequest::Url { url, .. } => Link::parse(url)
            .map(|link| without_root(link.host().ascii()).to_owned())
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
            // A person writes them, so that rules about text apply.
            Kind::Union(_) | Kind::Lines(_) => ("string", "", 0),
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
mod tests;
