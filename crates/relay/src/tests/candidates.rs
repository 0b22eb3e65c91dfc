//! Questions that may belong to a call that the client has cancelled, or that runs as a task: the rules about that call
//! apply.

use mcp_elicit_core::question::CallSummary;
use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

use super::approvals::{people, refusal};
use super::world::{Asks, World};
use crate::decisions::{
    Admission, Approval, ApprovedCall, Decisions, PeopleAsked, Planned, QuestionParts, RuleRefusal,
    ToolFacts,
};
use crate::{AskedVia, RelaySettings, Timestamp};

/// Rules by the name of the tool: `deploy` is for people, `publish` for other people, `never` is refused; the caller
/// gets all others.
#[derive(Debug, Default)]
pub(super) struct ByTool {
    /// The tools whose questions could not be asked of people.
    pub(super) not_asked: Mutex<Vec<Option<String>>>,
}

impl Decisions for ByTool {
    fn admit(&self, _: Timestamp, _: &CallSummary, _: Option<&ToolFacts>) -> Admission {
        Admission::Free
    }

    fn plan(
        &self,
        _: Timestamp,
        call: Option<(&CallSummary, Option<&ToolFacts>)>,
        _: QuestionParts<'_>,
    ) -> Planned {
        match call.map(|(call, _)| call.target.as_str()) {
            Some("deploy") | None => Planned::People(Box::new(people())),
            Some("publish") => Planned::People(Box::new(PeopleAsked {
                rule: "press".to_owned(),
                ..people()
            })),
            Some("never") => Planned::Refuse(refusal()),
            Some(_) => Planned::Caller { open_for: None },
        }
    }

    fn not_asked(&self, call: Option<&CallSummary>, _: &RuleRefusal) {
        let target = call.map(|call| call.target.clone());
        self.not_asked.lock().unwrap().push(target);
    }

    fn approved(&self, _: Timestamp, _: &CallSummary, _: &Approval, _: &ApprovedCall<'_>) {}
}

/// Returns an open session with these rules, in which the test plays the client and a server that pushes.
fn session(client: Revision) -> World {
    let settings = RelaySettings {
        decisions: Some(Arc::new(ByTool::default())),
        ..RelaySettings::default()
    };
    let server = Revision::V2025_11_25;
    let mut world = World::with(settings, client, Capability::FORM, server, Asks::Nothing).opened();
    world.people = None;
    world.to_server.clear();
    world.to_client.clear();
    world
}

fn call(world: &mut World, id: u64, tool: &str) {
    let mut params = json!({"name": tool, "arguments": {"of": id}});
    if world.client.revision == Revision::V2026_07_28 {
        params["_meta"] = world.client.meta();
    }
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    world.client_sends(&frame.to_string());
}

fn cancel(world: &mut World, id: u64) {
    let frame =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    world.client_sends(&frame.to_string());
}

fn server_asks(world: &mut World, id: u64) {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"mode": "form", "message": "Where?", "requestedSchema": schema});
    let frame =
        json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
    world.server_sends(&frame.to_string());
    world.run_record();
}

fn server_answers(world: &mut World, id: u64, result: &Value) {
    world.server_sends(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    world.run_record();
}

fn done() -> Value {
    json!({"content": [{"type": "text", "text": "done"}]})
}

/// Returns `true` if the client got a question since the last check.
fn asked_client(world: &mut World) -> bool {
    let mut frames = world.to_client.drain(..);
    frames.any(|(_, frame)| frame.contains("elicitation/create"))
}

/// Asserts that the people of the rule get the only open question, and the client gets nothing. Returns its record.
fn people_are_asked(world: &mut World) -> String {
    assert!(!asked_client(world), "the client is not asked");
    let open = world.open_to_people();
    assert_eq!(open.len(), 1);
    let asked = &world.store[&open[0]].asked;
    assert!(asked.via == AskedVia::People && asked.team.is_some());
    open[0].clone()
}

const CLIENTS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

#[test]
fn a_question_after_a_cancelled_call_goes_to_the_people_of_its_rule_and_not_to_the_caller_of_the_next()
 {
    for client in CLIENTS {
        let mut world = session(client);
        call(&mut world, 11, "deploy");
        cancel(&mut world, 11);
        call(&mut world, 12, "slow");
        server_asks(&mut world, 1);
        let record = people_are_asked(&mut world);
        let asked = &world.store[&record].asked;
        assert!(
            asked.others.contains(&"deploy".to_owned()),
            "{:?}",
            asked.others
        );
        assert!(asked.candidates.iter().any(|call| call.target == "deploy"));
        // That call may end: the question still waits for the other.
        server_answers(&mut world, 12, &done());
        assert_eq!(world.open_to_people(), [record.as_str()]);
        world.to_server.clear();
        assert!(world.answer(&record, Action::Accept));
        world.run_record();
        let told = world.to_server.pop_back().expect("the server is told");
        assert!(
            told.contains("\"id\":1") && told.contains("accept"),
            "{told}"
        );
    }
}

#[test]
fn a_call_that_the_server_has_ended_after_all_asks_no_more() {
    for client in CLIENTS {
        let mut world = session(client);
        call(&mut world, 11, "deploy");
        cancel(&mut world, 11);
        server_answers(&mut world, 11, &done());
        call(&mut world, 12, "slow");
        server_asks(&mut world, 1);
        assert!(asked_client(&mut world), "{client:?}");
        assert!(world.open_to_people().is_empty());
    }
}

#[test]
fn a_cancelled_call_without_a_rule_takes_no_question_from_the_caller() {
    for client in CLIENTS {
        let mut world = session(client);
        call(&mut world, 11, "read");
        cancel(&mut world, 11);
        call(&mut world, 12, "slow");
        server_asks(&mut world, 1);
        assert!(asked_client(&mut world), "{client:?}");
    }
}

#[test]
fn the_id_of_a_cancelled_call_serves_no_other_while_the_server_may_be_at_work() {
    let mut world = session(Revision::V2025_11_25);
    call(&mut world, 11, "deploy");
    cancel(&mut world, 11);
    world.to_server.clear();
    call(&mut world, 11, "read");
    let sent: Value = serde_json::from_str(&world.to_server.pop_back().unwrap()).unwrap();
    assert_ne!(sent["id"], 11, "the server could not tell them apart");
    let done = json!({"jsonrpc": "2.0", "id": sent["id"], "result": done()});
    world.server_sends(&done.to_string());
    call(&mut world, 12, "slow");
    server_asks(&mut world, 1);
    people_are_asked(&mut world);
}

#[test]
fn a_question_beside_a_task_goes_to_the_people_of_the_tasks_rule() {
    let mut world = session(Revision::V2025_11_25);
    call(&mut world, 11, "deploy");
    let task = json!({"task": {"taskId": "t-1", "status": "working"}});
    server_answers(&mut world, 11, &task);
    call(&mut world, 12, "slow");
    server_asks(&mut world, 1);
    people_are_asked(&mut world);
}

#[test]
fn a_task_of_an_earlier_session_is_of_an_unknown_call() {
    for (task, is_known) in [("t-1", true), ("t-0", false)] {
        let mut world = session(Revision::V2025_11_25);
        call(&mut world, 11, "read");
        let begun = json!({"task": {"taskId": "t-1", "status": "working"}});
        server_answers(&mut world, 11, &begun);
        let frame = json!({"jsonrpc": "2.0", "id": 12, "method": "tasks/result", "params": {"taskId": task}});
        world.client_sends(&frame.to_string());
        call(&mut world, 13, "slow");
        server_asks(&mut world, 1);
        if is_known {
            assert!(asked_client(&mut world));
        } else {
            people_are_asked(&mut world);
        }
    }
}

#[test]
fn where_rules_ask_different_people_or_refuse_one_nobody_is_asked() {
    for other in ["publish", "never"] {
        for is_cancelled in [true, false] {
            let mut world = session(Revision::V2025_11_25);
            call(&mut world, 11, other);
            if is_cancelled {
                cancel(&mut world, 11);
            }
            call(&mut world, 12, "deploy");
            world.to_server.clear();
            server_asks(&mut world, 1);
            assert!(!asked_client(&mut world));
            assert!(world.open_to_people().is_empty(), "{other}");
            let told = world.to_server.pop_back().expect("the server is told");
            assert!(told.contains("nobody is asked"), "{told}");
        }
    }
}

#[test]
fn where_more_calls_were_cancelled_than_are_remembered_the_question_is_one_of_an_unknown_call() {
    let mut world = session(Revision::V2025_11_25);
    for id in 100..357 {
        call(&mut world, id, "read");
        cancel(&mut world, id);
    }
    call(&mut world, 12, "slow");
    server_asks(&mut world, 1);
    people_are_asked(&mut world);
}
