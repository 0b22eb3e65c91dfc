//! Calls that take turns with the server, so that each question certainly belongs to one call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_elicit_core::question::CallSummary;
use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::approvals::{people, refusal};
use super::world::{Asks, World};
use crate::decisions::{
    Admission, Approval, ApprovedCall, Decisions, Planned, QuestionParts, RuleRefusal, ToolFacts,
};
use crate::{CallKind, RelaySettings, Timestamp};

/// Returns an open session in which the test plays the client and the server; people are asked.
pub(super) fn session() -> World {
    with_settings(RelaySettings::default())
}

pub(super) fn with_settings(settings: RelaySettings) -> World {
    let mut world = World::with_silent_server(settings);
    world.to_server.clear();
    world
}

/// Returns a session with rules that may decide differently about each call, so that a question has to name the one
/// call that asks; a call waits long for that.
fn exact_session() -> World {
    exact_with(RelaySettings {
        turn_wait: Duration::from_secs(24 * 60 * 60),
        ..RelaySettings::default()
    })
}

pub(super) fn exact_with(settings: RelaySettings) -> World {
    with_settings(RelaySettings {
        decisions: Some(Arc::new(Changing(Mutex::new(Admission::Free)))),
        ..settings
    })
}

pub(super) fn call(world: &mut World, id: u64, tool: &str) {
    let params = json!({"name": tool, "arguments": {"of": id}});
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    world.client_sends(&frame.to_string());
}

/// Returns the ids of the calls that have reached the server since the last check.
pub(super) fn started(world: &mut World) -> Vec<u64> {
    let frames = world.to_server.drain(..);
    let frames = frames.map(|frame| serde_json::from_str::<Value>(&frame).unwrap());
    frames
        .filter(|frame| frame["method"] == "tools/call")
        // An approved call has an id of the gateway's own.
        .map(|frame| {
            frame["params"]["arguments"]["of"]
                .as_u64()
                .or(frame["id"].as_u64())
        })
        .map(Option::unwrap)
        .collect()
}

/// Makes the server ask. Returns the question's record.
pub(super) fn asks(world: &mut World, id: u64) -> String {
    let before = world.open_to_people();
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params =
        json!({"mode": "form", "message": format!("Who? {id}"), "requestedSchema": schema});
    let frame =
        json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
    world.server_sends(&frame.to_string());
    world.run_record();
    let mut after = world.open_to_people();
    after.retain(|record| !before.contains(record));
    after.pop().expect("people are asked the question")
}

/// Returns the id of the last frame to the server, which is the gateway's own for an approved call.
fn last_id(world: &World) -> Value {
    let frame = world.to_server.back().expect("the server gets a frame");
    serde_json::from_str::<Value>(frame).unwrap()["id"].clone()
}

pub(super) fn ends(world: &mut World, id: impl Into<Value>) {
    let id: Value = id.into();
    let result = json!({"content": [{"type": "text", "text": format!("done {id}")}]});
    world.server_sends(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    world.run_record();
}

pub(super) fn answer(world: &mut World, record: &str) {
    assert!(world.answer(record, Action::Accept));
    world.run_record();
}

/// Makes a call of this tool that asks and is answered.
pub(super) fn seen_to_ask(world: &mut World, id: u64, tool: &str) {
    call(world, id, tool);
    let record = asks(world, id);
    answer(world, &record);
    ends(world, id);
    started(world);
}

fn others(world: &World, record: &str) -> Vec<String> {
    world.store[record].asked.others.clone()
}

#[test]
fn calls_of_a_tool_that_was_seen_to_ask_take_turns_and_each_question_is_certain() {
    let mut world = exact_session();
    seen_to_ask(&mut world, 11, "deploy");
    call(&mut world, 12, "deploy");
    call(&mut world, 13, "deploy");
    assert_eq!(started(&mut world), [12]);
    for (id, next) in [(12, &[13][..]), (13, &[])] {
        let record = asks(&mut world, id);
        let asked = &world.store[&record].asked;
        let arguments = asked.call.as_ref().unwrap().arguments.clone();
        assert_eq!(arguments.unwrap(), json!({"of": id}).to_string());
        assert_eq!(others(&world, &record), Vec::<String>::new());
        answer(&mut world, &record);
        ends(&mut world, id);
        assert_eq!(started(&mut world), next);
    }
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn the_first_call_that_asks_has_its_turn_also_when_it_was_handed_back() {
    let mut world = exact_session();
    call(&mut world, 11, "deploy");
    let record = asks(&mut world, 11);
    world.pass_time(Duration::from_secs(51));
    let back = world
        .to_client
        .iter()
        .any(|(_, frame)| frame.contains("\"id\":11") && frame.contains("Not done yet"));
    assert!(back, "handed back");
    call(&mut world, 12, "deploy");
    assert_eq!(started(&mut world), [11]);
    // The answered call may still ask again.
    answer(&mut world, &record);
    assert_eq!(started(&mut world), Vec::<u64>::new());
    let more = asks(&mut world, 1);
    assert_eq!(others(&world, &more), Vec::<String>::new());
    answer(&mut world, &more);
    ends(&mut world, 11);
    assert_eq!(started(&mut world), [12]);
    let second = asks(&mut world, 12);
    assert_eq!(others(&world, &second), Vec::<String>::new());
}

#[test]
fn a_call_waits_while_a_question_is_open_that_may_be_another_calls() {
    let mut world = exact_session();
    call(&mut world, 11, "deploy");
    call(&mut world, 12, "deploy");
    let record = asks(&mut world, 1);
    call(&mut world, 13, "deploy");
    call(&mut world, 14, "read");
    assert_eq!(started(&mut world), [11, 12, 14]);
    answer(&mut world, &record);
    assert_eq!(started(&mut world), [13]);
}

#[test]
fn a_waiting_question_blocks_no_call_of_a_tool_that_was_not_seen_to_ask() {
    let mut world = exact_session();
    seen_to_ask(&mut world, 11, "deploy");
    call(&mut world, 12, "deploy");
    asks(&mut world, 12);
    call(&mut world, 13, "deploy");
    call(&mut world, 14, "read");
    assert_eq!(started(&mut world), [12, 14]);
    ends(&mut world, 14);
    let (_, told) = world.to_client.pop_back().unwrap();
    assert!(told.contains("done 14"), "{told}");
}

#[test]
fn what_was_suspected_is_cleared_by_a_call_that_does_not_ask() {
    let mut world = session();
    call(&mut world, 11, "deploy");
    call(&mut world, 12, "read");
    let record = asks(&mut world, 1);
    assert_eq!(
        others(&world, &record).len(),
        1,
        "nobody can say whose it is"
    );
    answer(&mut world, &record);
    ends(&mut world, 11);
    ends(&mut world, 12);
    started(&mut world);
    // Either may have asked: they take turns until one is known not to ask.
    call(&mut world, 21, "read");
    call(&mut world, 22, "deploy");
    assert_eq!(started(&mut world), [21]);
    ends(&mut world, 21);
    assert_eq!(started(&mut world), [22]);
    call(&mut world, 23, "read");
    assert_eq!(started(&mut world), [23], "it was alone and did not ask");
}

#[test]
fn a_call_that_waits_long_for_its_turn_is_handed_back_and_goes_on_when_made_again() {
    let mut world = exact_session();
    seen_to_ask(&mut world, 11, "deploy");
    call(&mut world, 12, "deploy");
    let record = asks(&mut world, 12);
    call(&mut world, 13, "deploy");
    started(&mut world);
    world.to_client.clear();
    world.pass_time(Duration::from_secs(51));
    let told: Vec<String> = world.to_client.drain(..).map(|(_, frame)| frame).collect();
    let back = told
        .iter()
        .find(|frame| frame.contains("\"id\":13"))
        .unwrap();
    assert!(
        back.contains("Not done yet") && back.contains("http://inbox/"),
        "{back}"
    );
    answer(&mut world, &record);
    ends(&mut world, 12);
    assert_eq!(
        started(&mut world),
        Vec::<u64>::new(),
        "nobody waits for it"
    );
    // With the arguments of the call that was handed back.
    let params = json!({"name": "deploy", "arguments": {"of": 13}});
    let again = json!({"jsonrpc": "2.0", "id": 20, "method": "tools/call", "params": params});
    world.client_sends(&again.to_string());
    assert_eq!(started(&mut world), [13]);
    ends(&mut world, 13);
    let (_, told) = world.to_client.pop_back().unwrap();
    assert!(
        told.contains("done 13") && told.contains("\"id\":20"),
        "{told}"
    );
}

#[test]
fn a_client_that_shows_questions_itself_has_all_its_calls_at_work() {
    let revision = Revision::V2025_11_25;
    let settings = RelaySettings::default();
    let mut seen = with_settings(settings.clone());
    seen_to_ask(&mut seen, 11, "deploy");
    let mut world = World::with(
        settings,
        revision,
        Capability::FORM,
        revision,
        Asks::Nothing,
    )
    .opened();
    world.to_server.clear();
    call(&mut world, 12, "deploy");
    call(&mut world, 13, "deploy");
    assert_eq!(started(&mut world), [12, 13]);
}

#[test]
fn a_rounds_client_has_one_call_with_a_pushed_server_and_the_next_can_go_elsewhere() {
    let (client, server) = (Revision::V2026_07_28, Revision::V2025_11_25);
    let mut world = World::new(client, Capability::FORM, server, Asks::Nothing).opened();
    world.relay.settings.eras.saw_pushed();
    world.to_server.clear();
    let first = world.call();
    let second = world.call();
    assert_eq!(started(&mut world), [first]);
    assert!(!world.relay.is_free());
    assert_eq!(world.relay.queued_since(), Some(world.now));
    let (_, frame) = world.relay.take_queued().unwrap();
    let frame: Value = serde_json::from_slice(&frame).unwrap();
    assert_eq!(frame["id"], second);
    ends(&mut world, first);
    assert!(world.relay.is_free());
    assert_eq!(started(&mut world), Vec::<u64>::new());
}

/// Rules that change at some time.
#[derive(Debug)]
struct Changing(Mutex<Admission>);

impl Changing {
    fn set(&self, admission: Admission) {
        *self.0.lock().unwrap() = admission;
    }
}

impl Decisions for Changing {
    fn admit(&self, _: Timestamp, _: &CallSummary, _: Option<&ToolFacts>) -> Admission {
        self.0.lock().unwrap().clone()
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

fn approve() -> Admission {
    Admission::Approve(Box::new(Approval {
        people: people(),
        edit: Vec::new(),
    }))
}

/// Returns a session in which call 12 is with the server and call 13 waits for its turn, and the rules, which let both
/// continue.
fn one_waits() -> (World, Arc<Changing>) {
    let rules = Arc::new(Changing(Mutex::new(Admission::Free)));
    let mut world = with_settings(RelaySettings {
        decisions: Some(rules.clone()),
        turn_wait: Duration::from_secs(24 * 60 * 60),
        ..RelaySettings::default()
    });
    seen_to_ask(&mut world, 11, "deploy");
    call(&mut world, 12, "deploy");
    call(&mut world, 13, "deploy");
    assert_eq!(started(&mut world), [12]);
    world.to_client.clear();
    (world, rules)
}

/// Returns the response to the request with this id.
fn response(world: &mut World, id: u64) -> Value {
    let frames = world.to_client.drain(..);
    let frames = frames.map(|(_, frame)| serde_json::from_str::<Value>(&frame).unwrap());
    let mut responses = frames.filter(|frame| frame["id"] == id && frame.get("method").is_none());
    responses.next().expect("a response")
}

#[test]
fn a_call_that_the_rules_refuse_by_the_time_its_turn_comes_is_not_made() {
    let (mut world, rules) = one_waits();
    rules.set(Admission::Refuse(refusal()));
    ends(&mut world, 12);
    assert_eq!(started(&mut world), Vec::<u64>::new());
    let said = response(&mut world, 13);
    assert!(
        said["result"]["isError"] == true && said.to_string().contains("`never`"),
        "{said}"
    );
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn a_call_for_which_rules_want_approval_by_the_time_its_turn_comes_is_asked_about() {
    for is_made_again in [false, true] {
        let (mut world, rules) = one_waits();
        let mut id = 13;
        if is_made_again {
            world.pass_time(Duration::from_secs(51));
            let params = json!({"name": "deploy", "arguments": {"of": 13}});
            id = 20;
            let again =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            world.client_sends(&again.to_string());
        }
        rules.set(approve());
        ends(&mut world, 12);
        assert_eq!(started(&mut world), Vec::<u64>::new());
        let open = world.open_to_people();
        assert_eq!(open.len(), 1, "people are asked about it");
        answer(&mut world, &open[0]);
        let own = last_id(&world);
        assert_eq!(started(&mut world), [13]);
        world.to_client.clear();
        ends(&mut world, own);
        let said = response(&mut world, id);
        let note = &said["result"]["_meta"]["mcp-elicit/approval"];
        assert_eq!(note["rule"], "careful", "{said}");
        assert_eq!(world.relay.open(), (0, 0));
    }
}

#[test]
fn an_approved_call_that_the_rules_refuse_by_the_time_its_turn_comes_is_not_made() {
    let (mut world, rules) = one_waits();
    rules.set(approve());
    call(&mut world, 14, "deploy");
    world.run_record();
    let open = world.open_to_people();
    answer(&mut world, &open[0]);
    assert_eq!(started(&mut world), Vec::<u64>::new(), "it waits");
    // The approver is not asked again.
    rules.set(Admission::Free);
    ends(&mut world, 12);
    assert_eq!(started(&mut world), [13]);
    rules.set(Admission::Refuse(refusal()));
    world.to_client.clear();
    ends(&mut world, 13);
    assert_eq!(started(&mut world), Vec::<u64>::new());
    let said = response(&mut world, 14);
    assert!(said.to_string().contains("`never`"), "{said}");
    assert_eq!(
        world.store[&open[0]].deliveries, 1,
        "it serves no other call"
    );
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn an_approved_call_goes_on_at_its_turn_where_rules_still_want_approval() {
    let (mut world, rules) = one_waits();
    rules.set(approve());
    call(&mut world, 14, "deploy");
    world.run_record();
    let open = world.open_to_people();
    answer(&mut world, &open[0]);
    rules.set(Admission::Free);
    ends(&mut world, 12);
    rules.set(approve());
    ends(&mut world, 13);
    assert_eq!(started(&mut world), [13, 14]);
    assert!(world.open_to_people().is_empty());
}

#[test]
fn calls_that_wait_for_their_turn_are_bounded() {
    let mut world = with_settings(RelaySettings {
        waiting_calls: 2,
        ..RelaySettings::default()
    });
    seen_to_ask(&mut world, 11, "deploy");
    for id in 12..=15 {
        call(&mut world, id, "deploy");
    }
    assert_eq!(started(&mut world), [12]);
    let error = &response(&mut world, 15)["error"];
    assert_eq!(error["code"], -32000);
    let data = json!({"limit": "waiting-calls", "most": 2});
    assert_eq!(error["data"], data);
    let words = error["message"].as_str().unwrap();
    assert!(words.contains("make it again when"), "{words}");
    assert_eq!(world.relay.open(), (3, 0));
    // A call that takes no turn is made at once.
    call(&mut world, 16, "read");
    assert_eq!(started(&mut world), [16]);
    ends(&mut world, 12);
    call(&mut world, 17, "deploy");
    for id in [13, 14, 17] {
        assert_eq!(started(&mut world), [id]);
        ends(&mut world, id);
    }
    ends(&mut world, 16);
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn a_call_that_its_client_left_makes_room_for_one_that_is_waited_for() {
    let mut world = exact_with(RelaySettings {
        turn_wait: Duration::from_secs(24 * 60 * 60),
        waiting_calls: 1,
        ..RelaySettings::default()
    });
    seen_to_ask(&mut world, 11, "deploy");
    call(&mut world, 12, "deploy");
    let record = asks(&mut world, 12);
    call(&mut world, 13, "deploy");
    world.pass_time(Duration::from_secs(51));
    assert_eq!(started(&mut world), [12], "13 was handed back");
    call(&mut world, 14, "deploy");
    assert_eq!(world.relay.open(), (2, 1), "13 is not kept");
    answer(&mut world, &record);
    ends(&mut world, 12);
    assert_eq!(started(&mut world), [14]);
    ends(&mut world, 14);
    // It starts again.
    call(&mut world, 13, "deploy");
    assert_eq!(started(&mut world), [13]);
    ends(&mut world, 13);
    assert_eq!(world.relay.open(), (1, 0), "the result of 12");
}

#[test]
fn a_call_that_is_given_up_while_it_waits_is_not_started() {
    let mut world = session();
    seen_to_ask(&mut world, 11, "deploy");
    for id in 12..=14 {
        call(&mut world, id, "deploy");
    }
    let params = json!({"requestId": 13});
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    world.client_sends(&notice.to_string());
    assert_eq!(world.relay.open(), (2, 0));
    ends(&mut world, 12);
    assert_eq!(started(&mut world), [12, 14]);
}

#[test]
fn a_queued_call_starts_when_only_a_question_is_waited_for() {
    let (client, server) = (Revision::V2026_07_28, Revision::V2025_11_25);
    let mut world = World::new(client, Capability::NONE, server, Asks::Nothing).opened();
    world.relay.settings.eras.saw_pushed();
    world.people = None;
    world.to_server.clear();
    let first = world.call();
    let second = world.call();
    assert_eq!(started(&mut world), [first]);
    // Not `ask`, which has been seen to ask by then.
    let meta = world.client.meta();
    let params = json!({"name": "read", "arguments": {}, "_meta": meta});
    let frame = json!({"jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": params});
    world.client_sends(&frame.to_string());
    assert_eq!(started(&mut world), Vec::<u64>::new());
    let record = asks(&mut world, 1);
    assert_eq!(started(&mut world), [90]);
    ends(&mut world, 90);
    assert_eq!(started(&mut world), Vec::<u64>::new());
    answer(&mut world, &record);
    ends(&mut world, first);
    assert_eq!(started(&mut world), [second]);
}

#[test]
fn a_call_goes_on_when_another_session_finds_that_its_tool_does_not_ask() {
    let settings = RelaySettings::default();
    let askers = settings.askers.clone();
    let mut world = with_settings(settings);
    call(&mut world, 11, "deploy");
    call(&mut world, 12, "read");
    let record = asks(&mut world, 1);
    answer(&mut world, &record);
    ends(&mut world, 11);
    ends(&mut world, 12);
    started(&mut world);
    call(&mut world, 21, "read");
    call(&mut world, 22, "deploy");
    assert_eq!(started(&mut world), [21]);
    askers.clear_suspicion(CallKind::Tool, "deploy");
    world.client_sends(r#"{"jsonrpc":"2.0","id":30,"method":"ping"}"#);
    assert_eq!(started(&mut world), [22]);
}
