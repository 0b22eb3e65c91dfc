//! Rules before a call and when a server asks: refused, approved, declined, abandoned and repeated, in every pair of
//! eras.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_elicit_core::question::{CallSummary, ProofNumber, TeamPlan};
use mcp_elicit_core::wire::{Action, Capability, Revision};

use super::world::{Asks, World};
use crate::decisions::{
    Admission, Approval, ApprovedCall, Decisions, PeopleAsked, Planned, QuestionParts, RuleRefusal,
    ToolFacts, VoteProgress,
};
use crate::{AskedVia, Event, QuestionLimit, RelaySettings, StreamId, Timestamp};

/// The same decision about every call, and about every question.
#[derive(Debug, Default)]
pub(super) struct Fixed {
    pub(super) admit: Option<Admission>,
    pub(super) plan: Option<Planned>,
    /// The message of the question that is for people, if any.
    pub(super) people_for: Option<&'static str>,
    pub(super) approved: Mutex<Vec<String>>,
    /// The number of calls that started because they were approved recently.
    pub(super) grants_used: AtomicUsize,
    /// The proof with which every call is free.
    pub(super) free_with: Option<ProofNumber>,
    /// `true` once the rules have changed and refuse every call.
    pub(super) refuses_now: AtomicBool,
    /// The state of every vote.
    pub(super) progress: Option<VoteProgress>,
}

impl Decisions for Fixed {
    fn admit(&self, _: Timestamp, call: &CallSummary, _: Option<&ToolFacts>) -> Admission {
        if self.free_with == Some(call.proof) {
            return Admission::Free;
        }
        if self.refuses_now.load(Ordering::SeqCst) {
            return Admission::Refuse(refusal());
        }
        self.admit.clone().unwrap_or(Admission::Free)
    }

    fn plan(
        &self,
        _: Timestamp,
        _: Option<(&CallSummary, Option<&ToolFacts>)>,
        question: QuestionParts<'_>,
    ) -> Planned {
        if self.people_for == Some(question.request.message()) {
            return Planned::People(Box::new(people()));
        }
        self.plan
            .clone()
            .unwrap_or(Planned::Caller { open_for: None })
    }

    fn not_asked(&self, _: Option<&CallSummary>, _: &RuleRefusal) {}

    fn grant_used(&self, _: Timestamp, _: &CallSummary, _: &Approval) {
        self.grants_used.fetch_add(1, Ordering::SeqCst);
    }

    fn progress(&self, _: &str) -> Option<VoteProgress> {
        self.progress.clone()
    }

    fn approved(
        &self,
        _: Timestamp,
        _: &CallSummary,
        approval: &Approval,
        decision: &ApprovedCall<'_>,
    ) {
        let said = format!("{} {}", approval.people.rule, decision.answers);
        self.approved.lock().unwrap().push(said);
    }
}

pub(crate) fn people() -> PeopleAsked {
    PeopleAsked {
        rule: "careful".to_owned(),
        team: TeamPlan {
            rule_digest: "d".to_owned(),
            text: "{}".into(),
            tool: None,
        },
        open_for: Duration::from_secs(30 * 60),
        hands_back: false,
    }
}

pub(super) fn approval() -> Admission {
    Admission::Approve(Box::new(Approval {
        people: people(),
        edit: Vec::new(),
    }))
}

pub(super) fn refusal() -> RuleRefusal {
    RuleRefusal {
        rule: "never".to_owned(),
        reason: "not here".to_owned(),
    }
}

pub(super) fn settings(fixed: Fixed) -> (RelaySettings, Arc<Fixed>) {
    let fixed = Arc::new(fixed);
    let settings = RelaySettings {
        decisions: Some(fixed.clone()),
        ..RelaySettings::default()
    };
    (settings, fixed)
}

const ERAS: [(Revision, Revision); 4] = [
    (Revision::V2025_11_25, Revision::V2025_11_25),
    (Revision::V2025_11_25, Revision::V2026_07_28),
    (Revision::V2026_07_28, Revision::V2025_11_25),
    (Revision::V2026_07_28, Revision::V2026_07_28),
];

/// Returns a session with this decision about every call. Its people do not answer by themselves, and its server asks
/// nothing.
fn admitting((client, server): (Revision, Revision), admission: Admission) -> (World, Arc<Fixed>) {
    let (settings, fixed) = settings(Fixed {
        admit: Some(admission),
        ..Fixed::default()
    });
    let mut world = World::with(settings, client, Capability::BOTH, server, Asks::Nothing).opened();
    world.people = None;
    (world, fixed)
}

/// Returns the same session after a call, and the call's id.
fn called(eras: (Revision, Revision), admission: Admission) -> (World, Arc<Fixed>, u64) {
    let (mut world, fixed) = admitting(eras, admission);
    let id = world.call();
    world.settle();
    (world, fixed, id)
}

/// Returns a session with this decision about every question, whose server asks with a form.
fn planning((client, server): (Revision, Revision), plan: Planned) -> World {
    let (settings, _) = settings(Fixed {
        plan: Some(plan),
        ..Fixed::default()
    });
    World::with(settings, client, Capability::BOTH, server, Asks::Form).opened()
}

fn tool_calls(world: &World) -> usize {
    let is_call = |frame: &&serde_json::Value| frame["method"] == "tools/call";
    world.server.seen.iter().filter(is_call).count()
}

/// Returns the response to the request with this id.
fn response(world: &World, id: u64) -> serde_json::Value {
    let results = &world.client.results;
    let found = results.iter().find(|(known, _)| *known == id);
    found
        .unwrap_or_else(|| panic!("no response to {id}: {results:?}"))
        .1
        .clone()
}

fn is_error(response: &serde_json::Value) -> bool {
    response["result"]["isError"] == true
}

#[test]
fn a_refused_call_never_reaches_the_server_and_names_the_rule() {
    for eras in ERAS {
        let (world, _, id) = called(eras, Admission::Refuse(refusal()));
        let said = response(&world, id);
        assert!(
            is_error(&said) && said.to_string().contains("`never`"),
            "{said}"
        );
        assert_eq!(tool_calls(&world), 0);
    }
}

/// A server in JavaScript may take such a member for the prototype of the arguments, and see members that no rule saw.
#[test]
fn under_rules_a_call_has_no_member_that_may_be_taken_for_a_prototype() {
    for eras in ERAS {
        for arguments in [
            r#"{"n":1,"__proto__":{"path":"/etc/passwd"}}"#,
            r#"{"n":1,"\u005f_proto__":{"path":"/etc/passwd"}}"#,
            r#"{"n":[{"constructor":{"prototype":{"path":"/etc/passwd"}}}]}"#,
            r#"{"n":1},"__proto__":{"arguments":{"path":"/etc/passwd"}}"#,
        ] {
            let (mut world, _) = admitting(eras, Admission::Free);
            let (id, call) = world.client.call();
            let call = call.replace(r#"{"n":1}"#, arguments);
            assert!(call.contains("passwd"));
            world.client_sends(&call);
            world.settle();
            let error = &response(&world, id)["error"];
            assert_eq!(error["code"], -32602, "{eras:?} {arguments}");
            let why = error["message"].as_str().unwrap();
            assert!(
                why.contains("__proto__") && why.contains("leave it out"),
                "{why}"
            );
            assert_eq!(tool_calls(&world), 0, "{eras:?} {arguments}");
        }
        // Values may have these names.
        let (mut world, _) = admitting(eras, Admission::Free);
        let (id, call) = world.client.call();
        let call = call.replace(r#"{"n":1}"#, r#"{"n":"__proto__","of":["constructor"]}"#);
        world.client_sends(&call);
        world.settle();
        assert!(response(&world, id)["result"].is_object(), "{eras:?}");
    }
}

#[test]
fn a_call_of_a_caller_with_too_many_open_questions_ends_with_the_bound() {
    for eras in ERAS {
        let (mut world, _) = admitting(eras, approval());
        let id = world.call();
        let Some(Event::Recorded { question, .. }) = world.events.pop_front() else {
            panic!("not recorded")
        };
        world.tell(Event::NotAdmitted {
            question,
            limit: QuestionLimit::Open {
                most: 1_000,
                of_server: false,
            },
        });
        world.settle();
        let error = &response(&world, id)["error"];
        assert_eq!(error["code"], -32000, "{eras:?}: {error}");
        let data = serde_json::json!({"limit": "open-questions", "most": 1_000});
        assert_eq!(error["data"], data);
        assert_eq!(tool_calls(&world), 0);
    }
}

#[test]
fn an_approved_call_is_made_once_and_its_result_says_so() {
    for eras in ERAS {
        let (mut world, fixed, id) = called(eras, approval());
        assert_eq!(tool_calls(&world), 0, "{eras:?}");
        let open = world.open_to_people();
        assert_eq!(open.len(), 1);
        let asked = &world.store[&open[0]].asked;
        assert!(asked.via == AskedVia::People && asked.team.is_some() && asked.call.is_some());
        assert!(world.answer(&open[0], Action::Accept));
        world.settle();
        assert_eq!(tool_calls(&world), 1, "{eras:?}");
        let said = response(&world, id);
        let note = &said["result"]["_meta"]["mcp-elicit/approval"];
        assert_eq!(
            note,
            &serde_json::json!({"rule": "careful", "edited": []}),
            "{said}"
        );
        assert_eq!(world.store[&open[0]].deliveries, 1);
        assert_eq!(fixed.approved.lock().unwrap().len(), 1);
    }
}

#[test]
fn the_caller_reads_why_a_call_was_declined_and_what_approvers_wrote() {
    for eras in ERAS {
        let (mut world, _, id) = called(eras, approval());
        let open = world.open_to_people();
        world.reasons = vec!["use \"staging\"\u{202e}".to_owned()];
        assert!(world.answer(&open[0], Action::Decline));
        world.settle();
        let said = response(&world, id);
        let text = said.to_string();
        assert!(
            text.contains("declined this call, with the reason \\\"use 'staging'"),
            "{said}"
        );
        assert!(!text.contains('\u{202e}'), "{said}");
        let reasons = &said["result"]["_meta"]["mcp-elicit/reasons"];
        assert!(
            reasons[0].as_str().unwrap().starts_with("use \"staging\""),
            "{said}"
        );
        let (mut world, _, id) = called(eras, approval());
        let open = world.open_to_people();
        world.reasons = vec!["watch the disk".to_owned()];
        assert!(world.answer(&open[0], Action::Accept));
        world.settle();
        let said = response(&world, id);
        let note = &said["result"]["_meta"]["mcp-elicit/approval"];
        assert_eq!(note["comments"][0], "watch the disk", "{said}");
        let text = said["result"]["content"].to_string();
        assert!(
            text.contains("who approved this call wrote: [\\\"watch the disk"),
            "{text}"
        );
    }
}

#[test]
fn a_call_that_waits_for_approval_says_for_whom_and_until_when() {
    for (client, server) in ERAS {
        let minute = |minute: u64| Timestamp::from_millis((20 * 60 + minute) * 60_000);
        let (settings, _) = settings(Fixed {
            admit: Some(approval()),
            progress: Some(VoteProgress {
                missing: "1 of security".to_owned(),
                votes: 1,
                need: 2,
                asked_at: minute(8),
                until: Some(minute(28)),
            }),
            ..Fixed::default()
        });
        let world = World::with(settings, client, Capability::BOTH, server, Asks::Nothing);
        let mut world = world.opened();
        world.people = None;
        let id = world.call();
        world.settle();
        world.pass_time(Duration::from_secs(51));
        world.settle();
        let said = response(&world, id);
        let text = said["result"]["content"].to_string();
        for words in [
            "Waiting for approval by 1 of security (asked 20:08, until 20:28 UTC)",
            "You need do nothing",
            "in 60 s",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("The server"), "{text}");
        let waiting = &said["result"]["_meta"][crate::WAITING];
        assert_eq!(waiting["votes"], 1, "{said}");
        assert_eq!(waiting["missing"], "1 of security");
        assert_eq!(waiting["retryAfter"], 60);
        assert_eq!(waiting["until"], minute(28).as_millis());
        assert!(waiting["question"].is_string());
    }
}

#[test]
fn an_approved_call_has_no_id_and_no_token_of_its_client() {
    for eras in ERAS {
        let (mut world, _, id) = called(eras, approval());
        let open = world.open_to_people();
        assert!(world.answer(&open[0], Action::Accept));
        world.settle();
        let seen = &world.server.seen;
        let sent = seen.iter().find(|frame| frame["method"] == "tools/call");
        let sent = sent.unwrap();
        assert_ne!(sent["id"], id, "{eras:?}");
        let (token, own) = (&sent["params"]["_meta"]["progressToken"], id + 99);
        assert!(!token.is_null() && *token != own, "{eras:?}: {sent}");
        // The client gets the answer under its own id.
        assert!(response(&world, id)["result"].is_object());
    }
}

#[test]
fn an_approved_call_says_nothing_of_its_client_that_no_approver_saw() {
    for eras in ERAS {
        let (mut world, _) = admitting(eras, approval());
        let (_, call) = world.client.call();
        let mut call: serde_json::Value = serde_json::from_str(&call).unwrap();
        call["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] =
            serde_json::json!({"name": "path=/etc", "version": "path=/etc", "title": "path=/etc"});
        call["params"]["task"] = serde_json::json!({"ttl": 1_234_567});
        world.client_sends(&call.to_string());
        world.settle();
        let open = world.open_to_people();
        assert!(world.answer(&open[0], Action::Accept));
        world.settle();
        let seen = &world.server.seen;
        let sent = seen.iter().find(|frame| frame["method"] == "tools/call");
        let sent = sent.unwrap();
        let text = sent.to_string();
        assert!(
            !text.contains("/etc") && !text.contains("1234567"),
            "{eras:?}: {sent}"
        );
        // The description of the session's client, which a server of another era gets with each call, does not go along.
        let info = &sent["params"]["_meta"]["io.modelcontextprotocol/clientInfo"];
        assert_ne!(info["name"], "raw", "{eras:?}: {sent}");
    }
}

#[test]
fn a_call_that_the_rules_refuse_by_the_time_it_is_approved_is_not_made() {
    for eras in ERAS {
        let (mut world, fixed, id) = called(eras, approval());
        fixed.refuses_now.store(true, Ordering::SeqCst);
        let open = world.open_to_people();
        assert!(world.answer(&open[0], Action::Accept));
        world.settle();
        assert_eq!(tool_calls(&world), 0, "{eras:?}");
        let said = response(&world, id).to_string();
        assert!(
            said.contains("`never` refuses it: not here") && !said.contains("declined"),
            "{said}"
        );
        assert!(fixed.approved.lock().unwrap().is_empty());
        // The approval is for no other call.
        assert_eq!(world.store[&open[0]].deliveries, 1);
    }
}

#[test]
fn a_declined_or_timed_out_approval_ends_the_call_and_nothing_else() {
    for eras in ERAS {
        for decline in [true, false] {
            let (mut world, _, id) = called(eras, approval());
            let open = world.open_to_people();
            if decline {
                world.answer(&open[0], Action::Decline);
            } else {
                // Handed back before its time is over, so no request waits.
                world.pass_time(Duration::from_secs(20));
                world.tell(Event::Ended {
                    question: world.store[&open[0]].key.unwrap(),
                    ending: crate::Ending::TimedOut,
                });
            }
            world.settle();
            let said = response(&world, id);
            assert!(
                is_error(&said) && said.to_string().contains("`careful`"),
                "{said}"
            );
            let (words, mark) = if decline {
                ("asks declined this call", "declined")
            } else {
                ("this call was not approved in time", "timed-out")
            };
            assert!(said.to_string().contains(words), "{said}");
            assert_eq!(said["result"]["_meta"][crate::NOT_CALLED], mark, "{said}");
            assert_eq!(tool_calls(&world), 0);
        }
    }
}

#[test]
fn a_call_that_is_handed_back_finds_its_approval_when_it_is_made_again() {
    for eras in ERAS {
        for answered_between in [true, false] {
            let (mut world, _, first) = called(eras, approval());
            world.pass_time(Duration::from_secs(51));
            world.settle();
            let handed_back = response(&world, first);
            assert!(
                handed_back.to_string().contains("Not done yet"),
                "{handed_back}"
            );
            assert_eq!(world.relay.open(), (0, 0), "nothing is left in the session");
            let open = world.open_to_people();
            if answered_between {
                world.answer(&open[0], Action::Accept);
                world.settle();
                assert_eq!(tool_calls(&world), 0, "nobody waits for it");
            }
            let second = world.call();
            world.settle();
            if !answered_between {
                assert_eq!(world.open_to_people(), open, "not asked twice");
                world.answer(&open[0], Action::Accept);
                world.settle();
            }
            assert_eq!(tool_calls(&world), 1);
            let said = response(&world, second);
            assert!(
                said["result"]["_meta"]["mcp-elicit/approval"].is_object(),
                "{said}"
            );
            // The approval was for one call.
            world.call();
            world.settle();
            assert_eq!(world.open_to_people().len(), 1);
            assert_eq!(tool_calls(&world), 1);
        }
    }
}

#[test]
fn a_client_that_gives_the_call_up_withdraws_the_question() {
    let (mut world, _, id) = called(ERAS[0], approval());
    let cancel = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    );
    world.client_sends(&cancel);
    world.settle();
    assert!(world.open_to_people().is_empty());
    assert_eq!(world.relay.open(), (0, 0));
    assert!(world.to_server.is_empty(), "the server knows nothing of it");
}

#[test]
fn a_question_for_others_goes_to_people_though_its_client_could_show_it() {
    for (client, server) in ERAS {
        let mut world = planning((client, server), Planned::People(Box::new(people())));
        world.people = None;
        world.call();
        world.settle();
        let open = world.open_to_people();
        assert_eq!(open.len(), 1, "{client} {server}");
        assert!(world.store[&open[0]].asked.team.is_some());
        world.answer(&open[0], Action::Accept);
        world.settle();
        let last = &world.client.results.last().unwrap().1;
        assert!(!is_error(last) && last["result"].is_object(), "{last}");
    }
}

#[test]
fn a_refused_question_is_an_error_and_nobodys_act() {
    for (client, server) in ERAS {
        let mut world = planning((client, server), Planned::Refuse(refusal()));
        let id = world.call();
        world.settle();
        assert!(world.store.is_empty(), "{client} {server}");
        let said = response(&world, id).to_string() + &world.server.refusals.concat();
        assert!(
            said.contains("`never`") || said.contains("-32000"),
            "{said}"
        );
        assert!(world.server.answers.is_empty());
    }
}

#[test]
fn a_call_before_the_session_is_open_is_not_passed_on() {
    let (settings, _) = settings(Fixed::default());
    let revision = Revision::V2025_11_25;
    let mut world = World::with(
        settings,
        revision,
        Capability::NONE,
        revision,
        Asks::Nothing,
    );
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
    world.client_sends(call);
    assert!(world.to_server.is_empty());
    assert!(world.to_client[0].1.contains("initialize"));
    let twice = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"a":1,"a":2}}}"#;
    let mut world = world.opened();
    world.client_sends(twice);
    assert!(
        world.to_server.is_empty(),
        "two readers could see two calls"
    );
    assert_eq!(world.to_client.back().unwrap().0, StreamId::SESSION);
}

#[test]
fn a_call_without_an_id_is_not_passed_on() {
    for eras in ERAS {
        let (mut world, _) = admitting(eras, Admission::Refuse(refusal()));
        for method in ["tools/call", "prompts/get", "resources/read", "tools/list"] {
            world.client_sends(&format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"name":"t","uri":"u"}}}}"#
            ));
            assert!(world.to_server.is_empty(), "{eras:?} {method}");
            assert!(world.to_client[0].1.contains("needs an id"));
            world.to_client.clear();
        }
    }
}

/// Approves calls immediately with an answer that changes an argument, and refuses the changed call.
#[derive(Debug)]
struct EditsIntoRefusal;

impl Decisions for EditsIntoRefusal {
    fn admit(&self, _: Timestamp, call: &CallSummary, _: Option<&ToolFacts>) -> Admission {
        if call
            .arguments
            .as_deref()
            .is_some_and(|arguments| arguments.contains("prod"))
        {
            return Admission::Refuse(refusal());
        }
        let edit = vec!["/env".to_owned()];
        let people = people();
        Admission::Granted(
            Box::new(Approval { people, edit }),
            r#"{"/env":"prod"}"#.to_owned(),
        )
    }

    fn plan(
        &self,
        _: Timestamp,
        _: Option<(&CallSummary, Option<&ToolFacts>)>,
        _: QuestionParts<'_>,
    ) -> Planned {
        Planned::Caller { open_for: None }
    }

    fn not_asked(&self, _: Option<&CallSummary>, _: &RuleRefusal) {}

    fn approved(&self, _: Timestamp, _: &CallSummary, _: &Approval, _: &ApprovedCall<'_>) {}
}

#[test]
fn arguments_that_an_approver_changed_are_judged_again() {
    let revision = Revision::V2025_11_25;
    let settings = RelaySettings {
        decisions: Some(Arc::new(EditsIntoRefusal)),
        ..RelaySettings::default()
    };
    let mut world = World::with(
        settings,
        revision,
        Capability::NONE,
        revision,
        Asks::Nothing,
    )
    .opened();
    world.client_sends(
        r#"{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{"name":"t","arguments":{"env":"test"}}}"#,
    );
    assert!(world.to_server.is_empty());
    let said = &world.to_client[0].1;
    assert!(
        said.contains("changed the arguments") && said.contains("`never`"),
        "{said}"
    );
}

#[test]
fn a_member_that_no_approver_would_see_is_refused() {
    let revision = Revision::V2025_11_25;
    for unseen in [r#""force":true"#, r#""task":{"ttl":1,"force":true}"#] {
        let (mut world, _) = admitting((revision, revision), approval());
        world.client_sends(&format!(
            r#"{{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{{"name":"t",{unseen}}}}}"#
        ));
        assert!(world.open_to_people().is_empty() && world.to_server.is_empty());
        assert!(world.to_client[0].1.contains("-32602"), "{unseen}");
    }
    let (mut world, _) = admitting((revision, revision), approval());
    world.client_sends(
        r#"{"jsonrpc":"2.0","id":900,"method":"tools/call","force":true,"params":{"name":"t"}}"#,
    );
    assert!(world.open_to_people().is_empty() && world.to_server.is_empty());
    assert!(world.to_client[0].1.contains("-32602"));
}

/// Asks for approval of every call, and lets the approver change `n`.
pub(super) fn editable() -> Admission {
    Admission::Approve(Box::new(Approval {
        people: people(),
        edit: vec!["/n".to_owned()],
    }))
}

fn lists(world: &World) -> usize {
    let is_list = |frame: &&serde_json::Value| frame["method"] == "tools/list";
    world.server.seen.iter().filter(is_list).count()
}

/// Returns the message and the form that people get.
fn asked(world: &World, record: &str) -> (String, serde_json::Value) {
    let request = &world.store[record].asked.request;
    let params = request.to_raw_params(Revision::V2025_11_25).unwrap();
    let params: serde_json::Value = serde_json::from_str(params.get()).unwrap();
    (
        request.message().to_owned(),
        params["requestedSchema"]["properties"].clone(),
    )
}

#[test]
fn approvers_may_change_arguments_of_a_tool_that_no_client_has_listed() {
    for eras in ERAS {
        let (mut world, _) = admitting(eras, editable());
        let schema = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}});
        world.server.tools = vec![
            serde_json::json!([{"name": "other", "inputSchema": {"type": "object"}}]),
            serde_json::json!([{"name": "ask", "inputSchema": schema}]),
        ];
        let first = world.call();
        let second = world.call();
        world.settle();
        assert_eq!(lists(&world), 2, "two pages, once for both calls: {eras:?}");
        let open = world.open_to_people();
        assert!(!open.is_empty());
        let (message, fields) = asked(&world, &open[0]);
        assert!(!message.contains("not changed"), "{message}");
        assert_eq!(
            fields["/n"],
            serde_json::json!({"type": "integer", "title": "n", "maximum": 9, "default": 1})
        );
        for record in open {
            world.answer(&record, Action::Decline);
        }
        world.settle();
        for id in [first, second] {
            let said = response(&world, id);
            assert!(is_error(&said), "{said}");
        }
        // The tool is known now.
        world.call();
        world.settle();
        assert_eq!(lists(&world), 2);
        // Until the server reports a change.
        world.server_sends(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        world.call();
        world.settle();
        assert_eq!(lists(&world), 4);
        assert_eq!(tool_calls(&world), 0);
    }
}

#[test]
fn approvers_read_what_the_server_says_of_a_tool_and_it_is_no_part_of_the_question() {
    let mut identities = Vec::new();
    for description in ["Deletes a database for good.", "Tidies up."] {
        let (mut world, _) = admitting(ERAS[0], editable());
        let schema = serde_json::json!({"type": "object", "properties": {
            "n": {"type": "integer"}, "cluster": {"type": "string", "default": "staging"}}});
        world.server.tools = vec![
            serde_json::json!([{"name": "ask", "description": description,
            "annotations": {"destructiveHint": true}, "inputSchema": schema}]),
        ];
        world.call();
        world.settle();
        assert_eq!(lists(&world), 1, "no client has listed the tool");
        let open = world.open_to_people();
        let asked = &world.store[&open[0]].asked;
        let claims = asked.team.as_ref().unwrap().tool.as_ref().unwrap();
        assert_eq!(claims.description.as_deref(), Some(description));
        assert_eq!(claims.hints(), ["destructive: it may delete or overwrite"]);
        let absent = &claims.absent[0];
        assert_eq!(
            (absent.name.as_str(), absent.default.as_deref()),
            ("cluster", Some("\"staging\""))
        );
        identities.push((asked.identity_text(), asked.call.clone()));
    }
    assert_eq!(identities[0], identities[1]);
}

#[test]
fn an_approver_may_add_an_argument_that_the_call_leaves_out() {
    for eras in ERAS {
        let may_add = Admission::Approve(Box::new(Approval {
            people: people(),
            edit: vec!["/force".to_owned()],
        }));
        let (mut world, _) = admitting(eras, may_add);
        let schema = serde_json::json!({"type": "object", "properties": {
            "n": {"type": "integer"}, "force": {"type": "boolean", "default": false}}});
        world.server.tools = vec![serde_json::json!([{"name": "ask", "inputSchema": schema}])];
        let id = world.call();
        world.settle();
        let open = world.open_to_people();
        let (_, fields) = asked(&world, &open[0]);
        assert_eq!(fields["/force"]["default"], serde_json::Value::Null);
        world.answer_with(&open[0], Action::Accept, r#"{"/force":true}"#);
        world.settle();
        let call = world
            .server
            .seen
            .iter()
            .find(|frame| frame["method"] == "tools/call");
        let arguments = &call.unwrap()["params"]["arguments"];
        assert_eq!(
            *arguments,
            serde_json::json!({"n": 1, "force": true}),
            "{eras:?}"
        );
        let said = response(&world, id);
        assert!(
            !is_error(&said) && said.to_string().contains("/force"),
            "{said}"
        );
    }
}

#[test]
fn where_the_server_does_not_list_its_tools_people_are_told_so_and_may_approve() {
    for eras in ERAS {
        let (mut world, _, id) = called(eras, editable());
        let open = world.open_to_people();
        let (message, fields) = asked(&world, &open[0]);
        assert!(message.contains("not changed"), "{message}");
        assert_eq!(fields, serde_json::json!({}));
        world.answer(&open[0], Action::Accept);
        world.settle();
        assert_eq!(tool_calls(&world), 1, "{eras:?}");
        assert!(!is_error(&response(&world, id)));
    }
}

#[test]
fn a_server_that_never_lists_its_tools_holds_a_call_up_for_a_while_only() {
    let (mut world, _) = admitting(ERAS[0], editable());
    let id = world.call();
    let given_up = world.call();
    // The server has the request, and does not respond.
    world.to_server.clear();
    world.settle();
    assert!(world.open_to_people().is_empty());
    let cancel = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{given_up}}}}}"#
    );
    world.client_sends(&cancel);
    world.pass_time(Duration::from_secs(11));
    world.settle();
    let open = world.open_to_people();
    assert_eq!(
        open.len(),
        1,
        "nobody is asked about a call that was given up"
    );
    let (message, _) = asked(&world, &open[0]);
    assert!(message.contains("not changed"), "{message}");
    world.answer(&open[0], Action::Accept);
    world.settle();
    assert!(!is_error(&response(&world, id)));
}

/// Returns a session in which calls need approval unless their requests come with the second proof.
fn free_with_second_proof(eras: (Revision, Revision), asks: Asks) -> World {
    let (settings, _) = settings(Fixed {
        admit: Some(approval()),
        free_with: Some(ProofNumber(1)),
        ..Fixed::default()
    });
    let (client, server) = eras;
    let mut world = World::with(settings, client, Capability::NONE, server, asks).opened();
    world.people = None;
    world
}

#[test]
fn each_call_is_judged_by_the_proof_of_the_request_that_makes_it() {
    for eras in ERAS {
        let mut world = free_with_second_proof(eras, Asks::Nothing);
        let made_with = |world: &mut World, proof| {
            world.proof = ProofNumber(proof);
            world.call();
            world.settle();
            (tool_calls(world), world.open_to_people().len())
        };
        assert_eq!(made_with(&mut world, 0), (0, 1), "{eras:?}");
        assert_eq!(made_with(&mut world, 1), (1, 1), "{eras:?}");
        // Neither the session nor the same call with the other proof makes it free.
        assert_eq!(made_with(&mut world, 0), (1, 2), "{eras:?}");
    }
}

#[test]
fn a_call_that_was_handed_back_is_judged_again_if_it_is_made_with_another_proof() {
    for eras in ERAS {
        let mut world = free_with_second_proof(eras, Asks::Form);
        world.proof = ProofNumber(1);
        world.call();
        world.settle();
        assert_eq!((tool_calls(&world), world.open_to_people().len()), (1, 1));
        world.pass_time(Duration::from_secs(51));
        world.settle();
        // With the other proof it needs approval, and with its own it goes on.
        world.proof = ProofNumber(0);
        world.call();
        world.settle();
        assert_eq!(world.open_to_people().len(), 2, "{eras:?}");
        assert!(world.store.values().any(|kept| kept.asked.team.is_some()));
        world.proof = ProofNumber(1);
        world.call();
        world.settle();
        assert_eq!(world.open_to_people().len(), 2, "{eras:?}");
        assert_eq!(tool_calls(&world), 1, "{eras:?}");
    }
}

#[test]
fn an_earlier_approval_counts_as_used_once_its_call_has_started() {
    let granted = || {
        let edit = Vec::new();
        let people = people();
        Admission::Granted(Box::new(Approval { people, edit }), "{}".to_owned())
    };
    let call = |more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{{"name":"ask"{more}}}}}"#
        )
    };
    let (settings, fixed) = settings(Fixed {
        admit: Some(granted()),
        ..Fixed::default()
    });
    let settings = RelaySettings {
        open_calls: 1,
        ..settings
    };
    let mut world = World::with_silent_server(settings);
    let used = || fixed.grants_used.load(Ordering::SeqCst);
    world.client_sends(&call(r#","force":true"#));
    assert!(world.to_client[0].1.contains("-32602"));
    assert_eq!(used(), 0);
    world.client_sends(&call(""));
    assert_eq!((used(), world.to_server.len()), (1, 1));
    // There is no room for another call.
    world.client_sends(&call("").replace("900", "901"));
    assert_eq!((used(), world.to_server.len()), (1, 1));
}

#[test]
fn people_are_told_the_client_of_the_request_that_makes_a_call() {
    let revision = Revision::V2026_07_28;
    let (mut world, _) = admitting((revision, revision), approval());
    for (id, name) in [(900, "trusted"), (901, "other")] {
        let meta = format!(
            r#"{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"{name}","version":"9"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}"#
        );
        world.client_sends(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"ask","arguments":{{"n":{id}}},"_meta":{meta}}}}}"#
        ));
    }
    world.run_record();
    let infos = world.store.values();
    let mut infos: Vec<_> = infos
        .filter_map(|kept| kept.asked.client_info.clone())
        .collect();
    infos.sort();
    let expected = ["other", "trusted"].map(|name| format!(r#"{{"name":"{name}","version":"9"}}"#));
    assert_eq!(infos, expected);
}
