//! Calls that become tasks of the server (tasks extension of 2026-07-28): the client answers its own questions with
//! `tasks/update`, and people are asked all others.

use std::sync::Arc;

use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::candidates::ByTool;
use super::world::{Asks, World};
use crate::{Audience, Event, RelaySettings, TaskOwners};

const REVISION: Revision = Revision::V2026_07_28;

/// Returns an open session with rules by the tool's name, in which the test plays the client and the server.
fn session() -> (World, Arc<ByTool>) {
    let rules = Arc::new(ByTool::default());
    let settings = RelaySettings {
        decisions: Some(rules.clone()),
        ..RelaySettings::default()
    };
    let mut world = World::with(
        settings,
        REVISION,
        Capability::FORM,
        REVISION,
        Asks::Nothing,
    )
    .opened();
    world.people = None;
    (world, rules)
}

/// Sends a request of the client. Returns the server's view of it.
fn request(world: &mut World, id: u64, method: &str, mut params: Value) -> Option<Value> {
    params["_meta"] = world.client.meta();
    world.to_server.clear();
    world.to_client.clear();
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    world.client_sends(&frame.to_string());
    let sent = world.to_server.pop_back()?;
    Some(serde_json::from_str(&sent).unwrap())
}

/// Makes the server respond to a request. Returns the client's view of the response.
fn answers(world: &mut World, id: u64, result: &Value) -> Value {
    world.server_sends(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    told(world)
}

fn told(world: &mut World) -> Value {
    let (_, frame) = world.to_client.pop_back().expect("the client is told");
    serde_json::from_str(&frame).unwrap()
}

/// Returns the status of a task that asks.
fn status(task: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"mode": "form", "message": "Where?", "requestedSchema": schema});
    json!({"resultType": "complete", "taskId": task, "status": "input_required",
        "inputRequests": {"who": {"method": "elicitation/create", "params": params}}})
}

/// Makes a call of this tool become this task.
fn becomes_task(world: &mut World, id: u64, tool: &str, task: &str) {
    request(
        world,
        id,
        "tools/call",
        json!({"name": tool, "arguments": {"of": id}}),
    );
    let begun = json!({"resultType": "task", "taskId": task, "status": "working"});
    assert_eq!(answers(world, id, &begun)["result"]["taskId"], task);
}

fn update(world: &mut World, id: u64, task: &str) -> Option<Value> {
    let answer = json!({"who": {"action": "accept", "content": {"name": "production"}}});
    let params = json!({"taskId": task, "inputResponses": answer});
    request(world, id, "tasks/update", params)
}

#[test]
fn a_question_of_a_task_that_a_rule_refuses_is_not_shown_and_takes_no_answer() {
    let (mut world, rules) = session();
    becomes_task(&mut world, 11, "never", "t-1");
    assert!(request(&mut world, 12, "tasks/get", json!({"taskId": "t-1"})).is_some());
    let said = answers(&mut world, 12, &status("t-1"));
    let why = said["error"]["message"].as_str().expect("an error");
    assert!(why.contains("nobody is asked"), "{said}");
    assert!(!said.to_string().contains("Where?"), "{said}");
    let noted = rules.not_asked.lock().unwrap().clone();
    assert_eq!(noted, [Some("never".to_owned())]);
    assert_eq!(update(&mut world, 13, "t-1"), None);
    let refused = told(&mut world);
    let why = refused["error"]["message"].as_str().expect("an error");
    assert!(why.contains("tasks/get"), "{refused}");
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn a_question_of_a_task_that_a_rule_gives_to_others_is_put_to_them_and_takes_no_answer_of_the_client()
 {
    let (mut world, _) = session();
    becomes_task(&mut world, 11, "deploy", "t-1");
    let said = reads(&mut world, 12, &status("t-1"));
    assert!(is_working(&said), "{said}");
    assert_eq!(update(&mut world, 13, "t-1"), None);
    let open = world.open_to_people();
    let asked = &world.store[&open[0]].asked;
    let call = asked.call.as_ref().unwrap();
    assert!(asked.team.is_some() && call.target == "deploy", "{call:?}");
    world.to_server.clear();
    world.answer_with(&open[0], Action::Accept, r#"{"name":"there"}"#);
    world.run_record();
    let sent = sent_answer(&mut world);
    assert_eq!(sent["params"]["taskId"], "t-1");
    let answer = &sent["params"]["inputResponses"]["who"];
    assert_eq!(answer["content"]["name"], "there", "{sent}");
}

/// Makes the client read this status of the server. Returns what it is told.
fn reads(world: &mut World, id: u64, status: &Value) -> Value {
    let params = json!({"taskId": status["taskId"]});
    assert!(request(world, id, "tasks/get", params).is_some());
    let said = answers(world, id, status);
    world.run_record();
    said
}

/// Returns `true` for the status of a task in which the client has nothing to answer.
fn is_working(said: &Value) -> bool {
    let status = &said["result"];
    let message = status["statusMessage"].as_str().unwrap_or_default();
    status["status"] == "working" && status["inputRequests"].is_null() && !message.is_empty()
}

/// Returns the answer that the gateway has sent to a task.
fn sent_answer(world: &mut World) -> Value {
    let sent = world.to_server.pop_back().expect("the server is told");
    let sent: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(sent["method"], "tasks/update", "{sent}");
    sent
}

/// Returns an open session of a client that shows no questions, without rules, one of whose calls is the task `t-1`.
fn task_of_silent_client() -> World {
    let settings = RelaySettings::default();
    let nothing = Capability::NONE;
    let mut world = World::with(settings, REVISION, nothing, REVISION, Asks::Nothing).opened();
    world.people = None;
    becomes_task(&mut world, 11, "long", "t-1");
    world
}

#[test]
fn people_answer_the_questions_of_a_task_for_a_client_that_shows_none_and_each_once() {
    let mut world = task_of_silent_client();
    let mut asks = status("t-1");
    let roots = json!({"method": "roots/list"});
    asks["inputRequests"]["roots"] = roots.clone();
    let said = reads(&mut world, 12, &asks);
    // What people cannot answer is left to the client.
    let left = json!({"roots": roots});
    assert_eq!(said["result"]["inputRequests"], left, "{said}");
    assert_eq!(said["result"]["status"], "input_required");
    for id in 13..15 {
        let said = reads(&mut world, id, &status("t-1"));
        assert!(is_working(&said), "{said}");
        let message = said["result"]["statusMessage"].as_str().unwrap();
        assert!(message.contains("http://inbox/"), "{message}");
    }
    let open = world.open_to_people();
    assert_eq!(open.len(), 1);
    let call = world.store[&open[0]].asked.call.as_ref().unwrap();
    assert_eq!(call.target, "long");
    assert!(call.arguments.as_ref().unwrap().contains("11"), "{call:?}");
    world.answer_with(&open[0], Action::Decline, "");
    world.run_record();
    let sent = sent_answer(&mut world);
    let answer = json!({"who": {"action": "decline"}});
    assert_eq!(sent["params"]["inputResponses"], answer, "{sent}");
    assert!(sent["params"]["_meta"].is_object(), "{sent}");
    // The server may not have processed the answer yet.
    let said = reads(&mut world, 15, &status("t-1"));
    assert!(is_working(&said), "{said}");
    world.to_client.clear();
    let taken = json!({"jsonrpc": "2.0", "id": sent["id"], "result": {"resultType": "complete"}});
    world.server_sends(&taken.to_string());
    assert!(world.to_client.is_empty(), "the client has not sent it");
    let said = reads(&mut world, 16, &status("t-1"));
    assert!(is_working(&said) && world.open_to_people().is_empty());
    // Another question under the same key is another one.
    let mut other = status("t-1");
    other["inputRequests"]["who"]["params"]["message"] = json!("And when?");
    assert!(is_working(&reads(&mut world, 17, &other)));
    assert_eq!(world.open_to_people().len(), 1);
    let ended =
        json!({"resultType": "complete", "taskId": "t-1", "status": "completed", "result": {}});
    assert_eq!(reads(&mut world, 18, &ended)["result"], ended);
    assert!(world.open_to_people().is_empty(), "the task has ended");
}

#[test]
fn a_call_that_becomes_a_running_task_does_not_change_who_is_asked() {
    let (mut world, _) = session();
    becomes_task(&mut world, 11, "deploy", "t-1");
    assert!(is_working(&reads(&mut world, 12, &status("t-1"))));
    becomes_task(&mut world, 13, "read", "t-1");
    assert!(is_working(&reads(&mut world, 14, &status("t-1"))));
    assert_eq!(update(&mut world, 15, "t-1"), None);
    assert_eq!(world.open_to_people().len(), 1);
    let mut other = status("t-1");
    other["inputRequests"] = json!({"when": other["inputRequests"]["who"]});
    assert!(is_working(&reads(&mut world, 16, &other)));
    let open = world.open_to_people();
    let asked = &world.store[&open[0]].asked;
    assert!(
        asked.team.is_some() && asked.others == ["read"],
        "{:?}",
        asked.others
    );
    // A rule for another call of the task refuses it.
    becomes_task(&mut world, 17, "never", "t-1");
    other["inputRequests"] = json!({"why": other["inputRequests"]["when"]});
    assert!(reads(&mut world, 18, &other)["error"].is_object());
}

#[test]
fn a_task_may_ask_the_same_again_once_its_question_has_ended() {
    let mut world = task_of_silent_client();
    for id in [12, 22] {
        assert!(is_working(&reads(&mut world, id, &status("t-1"))));
        let open = world.open_to_people();
        assert_eq!(open.len(), 1);
        world.answer_with(&open[0], Action::Decline, "");
        world.run_record();
        sent_answer(&mut world);
        let working = json!({"resultType": "complete", "taskId": "t-1", "status": "working"});
        reads(&mut world, id + 1, &working);
    }
}

#[test]
fn a_client_answers_no_question_of_a_task_that_people_are_asked_and_each_of_its_own_once() {
    let mut world = task_of_silent_client();
    assert_eq!(update(&mut world, 12, "t-1"), None, "it was not read yet");
    reads(&mut world, 13, &status("t-1"));
    assert_eq!(update(&mut world, 14, "t-1"), None);
    assert_eq!(told(&mut world)["error"]["code"], -32602);
    assert_eq!(world.open_to_people().len(), 1);
    let shows = Capability::FORM;
    let settings = RelaySettings::default;
    let mut world = World::with(settings(), REVISION, shows, REVISION, Asks::Nothing).opened();
    becomes_task(&mut world, 11, "long", "t-1");
    let said = reads(&mut world, 12, &status("t-1"));
    assert_eq!(said["result"], status("t-1"));
    assert!(update(&mut world, 13, "t-1").is_some());
    // The server may ask another question under the key.
    assert_eq!(update(&mut world, 14, "t-1"), None);
    reads(&mut world, 15, &status("t-1"));
    assert!(update(&mut world, 16, "t-1").is_some());
    // Only people may answer: the client's dialogs do not count.
    let people = RelaySettings {
        answer_with: Audience::People,
        ..settings()
    };
    let mut world = World::with(people, REVISION, shows, REVISION, Asks::Nothing).opened();
    world.people = None;
    becomes_task(&mut world, 11, "long", "t-1");
    assert!(is_working(&reads(&mut world, 12, &status("t-1"))));
    assert_eq!(update(&mut world, 13, "t-1"), None);
}

#[test]
fn the_questions_of_a_task_that_the_client_cancels_are_withdrawn() {
    let mut world = task_of_silent_client();
    reads(&mut world, 12, &status("t-1"));
    assert_eq!(world.open_to_people().len(), 1);
    let cancel = request(&mut world, 13, "tasks/cancel", json!({"taskId": "t-1"}));
    assert!(cancel.is_some(), "the server is told");
    assert!(world.open_to_people().is_empty());
}

#[test]
fn a_question_of_a_task_without_an_answer_is_an_error_once_and_then_asked_again() {
    let mut world = task_of_silent_client();
    reads(&mut world, 12, &status("t-1"));
    world.pass_time(RelaySettings::default().open_for);
    world.to_server.clear();
    assert!(world.open_to_people().is_empty());
    let said = reads(&mut world, 13, &status("t-1"));
    let why = said["error"]["message"].as_str().expect("an error");
    assert!(why.contains("no answer"), "{said}");
    assert!(world.open_to_people().is_empty());
    assert!(is_working(&reads(&mut world, 14, &status("t-1"))));
    let open = world.open_to_people();
    assert_eq!(open.len(), 1);
    // An answer that the server refuses is told in the same way.
    world.answer_with(&open[0], Action::Accept, r#"{"name":"there"}"#);
    world.run_record();
    let id = sent_answer(&mut world)["id"].clone();
    let refused =
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "too late"}});
    world.server_sends(&refused.to_string());
    let said = reads(&mut world, 15, &status("t-1"));
    let why = said["error"]["message"].as_str().expect("an error");
    assert!(why.contains("too late"), "{said}");
}

#[test]
fn a_status_that_the_server_sends_unasked_has_no_question_of_other_people() {
    let mut world = task_of_silent_client();
    world.to_client.clear();
    let notice =
        json!({"jsonrpc": "2.0", "method": "notifications/tasks", "params": status("t-1")});
    world.server_sends(&notice.to_string());
    let notice = told(&mut world);
    assert_eq!(notice["params"]["status"], "working", "{notice}");
    assert!(!notice.to_string().contains("Where?"), "{notice}");
    world.run_record();
    assert_eq!(world.open_to_people().len(), 1);
}

#[test]
fn a_task_tells_its_questions_in_no_other_way() {
    let (mut world, _) = session();
    becomes_task(&mut world, 11, "never", "t-1");
    world.to_client.clear();
    let notice =
        json!({"jsonrpc": "2.0", "method": "notifications/tasks", "params": status("t-1")});
    world.server_sends(&notice.to_string());
    assert!(world.to_client.is_empty(), "{:?}", world.to_client);
    // The response that starts a task may contain them already.
    request(&mut world, 12, "tools/call", json!({"name": "never"}));
    let mut begun = status("t-2");
    begun["resultType"] = json!("task");
    assert!(answers(&mut world, 12, &begun)["error"].is_object());
    assert_eq!(update(&mut world, 13, "t-2"), None);
}

#[test]
fn a_task_of_an_unknown_call_is_judged_as_one_of_which_nothing_is_known() {
    let (mut world, _) = session();
    let said = reads(&mut world, 12, &status("t-9"));
    assert!(is_working(&said), "{said}");
    assert_eq!(update(&mut world, 13, "t-9"), None);
    let open = world.open_to_people();
    let asked = &world.store[&open[0]].asked;
    assert!(asked.team.is_some() && asked.call.is_none());
}

#[test]
fn the_caller_answers_the_questions_of_a_task_that_are_its_own_and_those_alone() {
    let (mut world, _) = session();
    becomes_task(&mut world, 11, "read", "t-1");
    assert_eq!(update(&mut world, 12, "t-1"), None, "it was not shown yet");
    request(&mut world, 13, "tasks/get", json!({"taskId": "t-1"}));
    let said = answers(&mut world, 13, &status("t-1"));
    assert_eq!(said["result"], status("t-1"));
    let other = json!({"other": {"action": "accept"}});
    let params = json!({"taskId": "t-1", "inputResponses": other});
    assert_eq!(request(&mut world, 14, "tasks/update", params), None);
    let spelled = json!({"taskId": "t-1", "InputResponses": {"who": {"action": "accept"}}});
    assert_eq!(request(&mut world, 15, "tasks/update", spelled), None);
    let sent = update(&mut world, 16, "t-1").expect("it reaches the server");
    assert_eq!(sent["params"]["inputResponses"]["who"]["action"], "accept");
}

/// Sends a request of the client about a task, whose response comes later.
fn begins(world: &mut World, id: u64, method: &str, task: &str) {
    assert!(request(world, id, method, json!({"taskId": task})).is_some());
}

#[test]
fn a_status_that_is_late_does_not_make_a_question_answerable_again() {
    let (mut world, _) = session();
    becomes_task(&mut world, 11, "read", "t-1");
    reads(&mut world, 12, &status("t-1"));
    begins(&mut world, 13, "tasks/get", "t-1");
    assert!(update(&mut world, 14, "t-1").is_some());
    // The server wrote this status before it had the answer, and may ask others something under the key since.
    let late = answers(&mut world, 13, &status("t-1"));
    assert!(is_working(&late), "{late}");
    assert_eq!(update(&mut world, 15, "t-1"), None);
    let notice =
        json!({"jsonrpc": "2.0", "method": "notifications/tasks", "params": status("t-1")});
    world.server_sends(&notice.to_string());
    assert_eq!(update(&mut world, 16, "t-1"), None);
    answers(&mut world, 14, &json!({"resultType": "complete"}));
    assert!(is_working(&reads(&mut world, 17, &status("t-1"))));
    assert_eq!(update(&mut world, 18, "t-1"), None);
    // Another question under the key is another one.
    let mut other = status("t-1");
    other["inputRequests"]["who"]["params"]["message"] = json!("And when?");
    assert_eq!(reads(&mut world, 19, &other)["result"], other);
    assert!(update(&mut world, 20, "t-1").is_some());
    // One that the task did not have for a while is asked again.
    begins(&mut world, 21, "tasks/get", "t-1");
    let working = json!({"resultType": "complete", "taskId": "t-1", "status": "working"});
    reads(&mut world, 22, &working);
    assert!(is_working(&answers(&mut world, 21, &status("t-1"))));
    assert_eq!(
        reads(&mut world, 23, &status("t-1"))["result"],
        status("t-1")
    );
    assert!(update(&mut world, 24, "t-1").is_some());
    // An answer that the server refuses may be given again.
    let refused =
        json!({"jsonrpc": "2.0", "id": 24, "error": {"code": -32602, "message": "too short"}});
    world.server_sends(&refused.to_string());
    assert!(update(&mut world, 25, "t-1").is_some());
}

#[test]
fn people_are_not_asked_again_by_a_status_that_is_late() {
    let mut world = task_of_silent_client();
    reads(&mut world, 12, &status("t-1"));
    begins(&mut world, 13, "tasks/get", "t-1");
    let open = world.open_to_people();
    world.answer_with(&open[0], Action::Decline, "");
    world.run_record();
    sent_answer(&mut world);
    let working = json!({"resultType": "complete", "taskId": "t-1", "status": "working"});
    reads(&mut world, 14, &working);
    assert!(is_working(&answers(&mut world, 13, &status("t-1"))));
    world.run_record();
    assert!(world.open_to_people().is_empty());
    // Nor does a late one without the question withdraw it.
    begins(&mut world, 15, "tasks/get", "t-1");
    reads(&mut world, 16, &status("t-1"));
    assert_eq!(world.open_to_people().len(), 1);
    answers(&mut world, 15, &working);
    assert_eq!(world.open_to_people().len(), 1);
}

#[test]
fn a_question_of_a_task_that_was_cancelled_meanwhile_is_not_asked() {
    let mut world = task_of_silent_client();
    begins(&mut world, 12, "tasks/get", "t-1");
    begins(&mut world, 13, "tasks/cancel", "t-1");
    assert!(is_working(&answers(&mut world, 12, &status("t-1"))));
    world.run_record();
    assert!(world.open_to_people().is_empty());
    // The server may refuse to cancel it.
    reads(&mut world, 14, &status("t-1"));
    assert_eq!(world.open_to_people().len(), 1);
}

#[test]
fn a_question_of_a_task_that_another_session_has_asked_is_not_asked_twice() {
    let mut world = task_of_silent_client();
    begins(&mut world, 12, "tasks/get", "t-1");
    assert!(is_working(&answers(&mut world, 12, &status("t-1"))));
    let question = world.relay.asks.keys()[0];
    world.tell(Event::AskedElsewhere { question });
    assert_eq!(world.relay.open(), (0, 0));
    // As long as the task asks it, each status looks again.
    assert!(is_working(&reads(&mut world, 13, &status("t-1"))));
    assert_eq!(world.open_to_people().len(), 1);
}

#[test]
fn questions_in_other_places_of_a_status_are_refused() {
    let (mut world, _) = session();
    becomes_task(&mut world, 11, "deploy", "t-1");
    let asks = status("t-1");
    let inner = [
        json!({"resultType": "task", "task": asks.clone()}),
        json!({"resultType": "complete", "tasks": [{"taskId": "t-2"}, asks.clone()]}),
        json!({"resultType": "complete", "taskId": "t-1", "status": "working", "result": asks}),
    ];
    for (id, inner) in (20..).zip(inner) {
        begins(&mut world, id, "tasks/get", "t-1");
        let said = answers(&mut world, id, &inner);
        assert!(said["error"].is_object(), "{said}");
        assert!(!said.to_string().contains("Where?"), "{said}");
        let tool = json!({"name": "deploy", "arguments": {"of": id}});
        request(&mut world, 10 + id, "tools/call", tool);
        let said = answers(&mut world, 10 + id, &inner);
        assert!(!said.to_string().contains("Where?"), "{said}");
    }
    // What a tool returns is its own.
    let content = json!({"content": [], "structuredContent": {"task": status("t-1")}});
    let tool = json!({"name": "deploy"});
    request(&mut world, 40, "tools/call", tool);
    let said = answers(&mut world, 40, &content);
    assert!(said["result"].is_object(), "{said}");
}

/// A server may send millions of members, which take seconds to read.
#[test]
fn a_status_with_too_many_members_or_questions_is_refused_before_they_are_read() {
    let (mut world, _) = session();
    becomes_task(&mut world, 11, "deploy", "t-1");
    let with = |mut status: Value, count: usize| {
        for number in 0..count {
            status[format!("m{number}")] = json!(0);
        }
        status
    };
    let question = status("t-1")["inputRequests"]["who"].clone();
    let mut many = status("t-1");
    for number in 0..1_024 {
        many["inputRequests"][format!("q{number}")] = question.clone();
    }
    let task = json!({"resultType": "complete", "taskId": "t-1", "status": "working"});
    let inner = json!({"resultType": "complete", "task": with(json!({}), 1_025)});
    for (id, (status, why)) in (20..).zip([
        (with(task.clone(), 1_022), "more than 1024 members"),
        (inner, "more than 1024 members"),
        (many, "too many questions"),
    ]) {
        begins(&mut world, id, "tasks/get", "t-1");
        let said = answers(&mut world, id, &status);
        let told = said["error"]["message"].as_str();
        assert!(told.is_some_and(|told| told.contains(why)), "{said}");
    }
    begins(&mut world, 30, "tasks/get", "t-1");
    let said = answers(&mut world, 30, &with(task.clone(), 1_021));
    assert_eq!(said["result"]["taskId"], "t-1", "{said}");
    let tool = json!({"name": "deploy", "arguments": {"of": 40}});
    request(&mut world, 40, "tools/call", tool);
    let begun = json!({"resultType": "task", "taskId": "t-2", "status": "working"});
    let said = answers(&mut world, 40, &with(begun, 1_022));
    assert!(said["error"].is_object(), "{said}");
}

#[test]
fn a_task_that_has_ended_asks_nothing() {
    let mut world = task_of_silent_client();
    let mut ended = status("t-1");
    ended["status"] = json!("completed");
    ended["result"] = json!({"content": []});
    let said = reads(&mut world, 12, &ended);
    assert_eq!(said["result"]["status"], "completed", "{said}");
    assert_eq!(said["result"]["result"], ended["result"]);
    assert!(said["result"]["inputRequests"].is_null(), "{said}");
    assert!(world.open_to_people().is_empty());
}

/// Returns a session of this caller with a server that cannot distinguish callers.
fn session_of(caller: &str, owners: &TaskOwners, revision: Revision) -> World {
    let settings = RelaySettings {
        task_owners: owners.clone(),
        task_caller: Some(caller.to_owned()),
        ..RelaySettings::default()
    };
    let mut world = World::with(
        settings,
        revision,
        Capability::FORM,
        revision,
        Asks::Nothing,
    )
    .opened();
    world.people = None;
    world.to_client.clear();
    world
}

fn asked_about(world: &mut World, id: u64, method: &str, params: Value) -> Option<Value> {
    if world.client.revision == REVISION {
        return request(world, id, method, params);
    }
    world.to_server.clear();
    world.to_client.clear();
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    world.client_sends(&frame.to_string());
    let sent = world.to_server.pop_back()?;
    Some(serde_json::from_str(&sent).unwrap())
}

#[test]
fn a_task_is_for_the_caller_whose_call_became_it_in_all_sessions_of_that_caller() {
    for revision in [REVISION, Revision::V2025_11_25] {
        let owners = TaskOwners::default();
        let mut ada = session_of("ada", &owners, revision);
        let sent = asked_about(
            &mut ada,
            11,
            "tools/call",
            json!({"name": "long", "arguments": {}}),
        );
        assert!(sent.is_some());
        let begun = match revision {
            REVISION => json!({"resultType": "task", "taskId": "t-1", "status": "working"}),
            _ => json!({"task": {"taskId": "t-1", "status": "working"}}),
        };
        answers(&mut ada, 11, &begun);
        let mut again = session_of("ada", &owners, revision);
        let mut other = session_of("mal", &owners, revision);
        for method in ["tasks/get", "tasks/update", "tasks/result", "tasks/cancel"] {
            let params = json!({"taskId": "t-1"});
            assert!(
                asked_about(&mut again, 21, method, params.clone()).is_some(),
                "{method}"
            );
            assert_eq!(
                asked_about(&mut other, 21, method, params),
                None,
                "{method}"
            );
            let refused = told(&mut other);
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
            for odd in [
                json!({}),
                json!({"TaskId": "t-1"}),
                json!({"taskId": "t-2"}),
            ] {
                assert_eq!(asked_about(&mut again, 22, method, odd), None, "{method}");
            }
        }
        assert_eq!(
            asked_about(&mut other, 23, "Tasks/get", json!({"taskId": "t-1"})),
            None
        );
        let status = json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": {"taskId": "t-1", "status": "working"}});
        for (world, is_told) in [(&mut again, true), (&mut other, false)] {
            world.to_client.clear();
            world.server_sends(&status.to_string());
            assert_eq!(!world.to_client.is_empty(), is_told);
        }
        for params in [
            json!({"TaskId": "t-1"}),
            json!({"task": {"taskId": "t-1"}}),
            json!({"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t-1"}}}),
        ] {
            let notice =
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
            other.to_client.clear();
            other.to_server.clear();
            other.server_sends(&notice.to_string());
            other.client_sends(&notice.to_string());
            assert!(
                other.to_client.is_empty() && other.to_server.is_empty(),
                "{notice}"
            );
        }
        let related = json!({"io.modelcontextprotocol/related-task": {"taskId": "t-1"}});
        let odd = json!({"io.modelcontextprotocol/relatedTask": {"taskId": "t-1"}});
        for (method, params) in [
            ("ping", json!({"_meta": related})),
            ("ping", json!({"_Meta": related})),
            ("resources/list", json!({"_meta": odd})),
            ("tools/call", json!({"name": "long", "_meta": related})),
            (
                "tools/call",
                json!({"name": "long", "inputResponses": {"a": {"action": "cancel", "_meta": related}}}),
            ),
        ] {
            other.to_client.clear();
            other.to_server.clear();
            let frame = json!({"jsonrpc": "2.0", "id": 24, "method": method, "params": params});
            other.client_sends(&frame.to_string());
            assert!(other.to_server.is_empty(), "{frame}");
            let refused = told(&mut other);
            assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
        }
        let own = json!({"name": "long", "_meta": related});
        assert!(asked_about(&mut again, 25, "tools/call", own).is_some());
        let list = json!({"tasks": [{"taskId": "t-1", "ttl": 1}, {"taskId": "t-0"}, {"id": 1}]});
        for (world, own) in [
            (&mut again, json!([{"taskId": "t-1", "ttl": 1}])),
            (&mut other, json!([])),
        ] {
            assert!(asked_about(world, 31, "tasks/list", json!({})).is_some());
            assert_eq!(answers(world, 31, &list)["result"]["tasks"], own);
        }
        let unreadable =
            r#"{"jsonrpc":"2.0","id":32,"result":{"tasks":[{"taskId":"t-1"}],"Tasks":[]}}"#;
        assert!(asked_about(&mut other, 32, "tasks/list", json!({})).is_some());
        other.server_sends(unreadable);
        assert!(told(&mut other)["error"].is_object());
    }
}

#[test]
fn a_response_is_not_attached_to_a_task_of_another_caller() {
    let revision = Revision::V2025_11_25;
    let owners = TaskOwners::default();
    let mut ada = session_of("ada", &owners, revision);
    let call = json!({"name": "long", "arguments": {}});
    assert!(asked_about(&mut ada, 11, "tools/call", call).is_some());
    answers(
        &mut ada,
        11,
        &json!({"task": {"taskId": "t-1", "status": "working"}}),
    );
    let question = json!({"jsonrpc": "2.0", "id": 71, "method": "elicitation/create",
        "params": {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}});
    let roots = json!({"jsonrpc": "2.0", "id": 72, "method": "roots/list"});
    let related = json!({"io.modelcontextprotocol/related-task": {"taskId": "t-1"}});
    for (caller, is_passed) in [("ada", true), ("mal", false)] {
        let mut world = session_of(caller, &owners, revision);
        for (request, result) in [
            (&question, json!({"action": "decline", "_meta": related})),
            (&roots, json!({"roots": [], "_meta": related})),
        ] {
            world.to_client.clear();
            world.to_server.clear();
            world.server_sends(&request.to_string());
            let shown = told(&mut world);
            let response = json!({"jsonrpc": "2.0", "id": shown["id"], "result": result});
            world.client_sends(&response.to_string());
            let sent: Vec<&String> = world.to_server.iter().collect();
            let is_attached = sent.iter().any(|frame| frame.contains("t-1"));
            assert_eq!(is_attached, is_passed, "{caller}: {sent:?}");
        }
    }
}
