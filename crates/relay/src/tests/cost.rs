//! The work of one event does not grow with the number of open items, and a flood of questions causes no more work than
//! its limit.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mcp_elicit_core::question::CallSummary;
use mcp_elicit_core::wire::Id;
use serde_json::{Value, json};

use super::approvals::refusal;
use super::world::World;
use crate::decisions::{
    Admission, Approval, ApprovedCall, CallFacts, Decisions, Planned, QuestionDecisions,
    QuestionParts, RuleRefusal, ToolFacts, up_to_refusal,
};
use crate::{RelaySettings, Timestamp};

/// Rules that refuse every question in a call of `never`, and count their evaluations.
#[derive(Debug, Default)]
struct Counting {
    /// `true` if a rule reads arguments.
    reads_arguments: bool,
    plans: AtomicUsize,
    told: Mutex<Vec<Option<String>>>,
}

impl Decisions for Counting {
    fn admit(&self, _: Timestamp, _: &CallSummary, _: Option<&ToolFacts>) -> Admission {
        Admission::Free
    }

    fn plan(&self, _: Timestamp, call: Option<CallFacts<'_>>, _: QuestionParts<'_>) -> Planned {
        self.plans.fetch_add(1, Ordering::Relaxed);
        match call.map(|(call, _)| call.target.as_str()) {
            Some("never") => Planned::Refuse(refusal()),
            _ => Planned::Caller { open_for: None },
        }
    }

    fn at(&self, now: Timestamp) -> Box<dyn QuestionDecisions + '_> {
        Box::new(CountingAt(self, now))
    }

    fn not_asked(&self, call: Option<&CallSummary>, _: &RuleRefusal) {
        let target = call.map(|call| call.target.clone());
        self.told.lock().unwrap().push(target);
    }

    fn approved(&self, _: Timestamp, _: &CallSummary, _: &Approval, _: &ApprovedCall<'_>) {}
}

struct CountingAt<'a>(&'a Counting, Timestamp);

impl QuestionDecisions for CountingAt<'_> {
    fn group_of<'c>(&self, call: &'c CallSummary) -> Cow<'c, str> {
        let digest = Some(&call.digest).filter(|_| self.0.reads_arguments);
        Cow::Borrowed(digest.unwrap_or(&call.target))
    }

    fn plan(&self, calls: &[Option<CallFacts<'_>>], question: QuestionParts<'_>) -> Vec<Planned> {
        let plan = |call: &Option<CallFacts<'_>>| self.0.plan(self.1, *call, question);
        up_to_refusal(calls.iter().map(plan))
    }
}

impl Counting {
    fn plans(&self) -> usize {
        self.plans.load(Ordering::Relaxed)
    }
}

/// The number of questions per minute.
const LIMIT: u8 = 5;

fn session(reads_arguments: bool) -> (World, Arc<Counting>) {
    let rules = Arc::new(Counting {
        reads_arguments,
        ..Counting::default()
    });
    let settings = RelaySettings {
        decisions: Some(rules.clone()),
        per_minute: Some(LIMIT.into()),
        ..RelaySettings::default()
    };
    (World::with_silent_server(settings), rules)
}

fn read(frame: &str) -> Value {
    serde_json::from_str(frame).unwrap()
}

fn call(world: &mut World, id: u64, tool: &str) {
    let params = json!({"name": tool, "arguments": {"of": id}});
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    world.client_sends(&frame.to_string());
}

fn cancel(world: &mut World, id: u64) {
    let frame =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    world.client_sends(&frame.to_string());
}

fn server_asks(world: &mut World, id: u64) -> String {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"mode": "form", "message": "Where?", "requestedSchema": schema});
    let frame =
        json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
    world.to_server.clear();
    world.server_sends(&frame.to_string());
    world.run_record();
    world.to_server.pop_back().unwrap_or_default()
}

fn call_with_token(world: &mut World, id: u64, token: &str) {
    let params = json!({"name": "read", "_meta": {"progressToken": token}});
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    world.client_sends(&frame.to_string());
}

/// Returns the number of names under which calls are found.
fn names(world: &World) -> usize {
    world.relay.calls.names()
}

#[test]
fn the_names_of_a_call_are_forgotten_with_it() {
    let settings = RelaySettings {
        client_streams: true,
        ..RelaySettings::default()
    };
    let mut world = World::with_silent_server(settings);
    for id in 100..150 {
        call_with_token(&mut world, id, &format!("token {id}"));
    }
    // The names of the calls and of their tokens, and the session's stream.
    assert_eq!(names(&world), 50 + 50 + 1);
    for id in 100..149 {
        cancel(&mut world, id);
    }
    assert_eq!(names(&world), 3);
    let frame = json!({"jsonrpc": "2.0", "id": 149, "result": {"content": []}});
    world.server_sends(&frame.to_string());
    assert_eq!((world.relay.calls.len(), names(&world)), (0, 0));
}

#[test]
fn a_cancelled_id_is_the_last_call_of_that_id_and_progress_finds_its_own() {
    let settings = RelaySettings {
        client_streams: true,
        ..RelaySettings::default()
    };
    let mut world = World::with_silent_server(settings);
    world.to_server.clear();
    for _ in 0..3 {
        call_with_token(&mut world, 100, "t");
    }
    let sent = world.to_server.drain(..).map(|frame| read(&frame));
    let sent: Vec<(Value, Value)> = sent
        .map(|frame| {
            (
                frame["id"].clone(),
                frame["params"]["_meta"]["progressToken"].clone(),
            )
        })
        .collect();
    assert_eq!(sent[0], (json!(100), json!("t")));
    for (id, token) in sent.iter().rev() {
        let params = json!({"progressToken": token, "progress": 1});
        let progress =
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        world.server_sends(&progress.to_string());
        let told = read(&world.to_client.pop_back().unwrap().1);
        assert_eq!(told["params"]["progressToken"], "t");
        cancel(&mut world, 100);
        let told = read(&world.to_server.pop_back().unwrap());
        assert_eq!(&told["params"]["requestId"], id);
        // The call has ended, so its progress is dropped.
        world.to_client.clear();
    }
    assert_eq!(names(&world), 0);
}

#[test]
fn a_call_is_not_read_again_that_the_rules_were_asked_about() {
    let (mut world, _) = session(true);
    call(&mut world, 100, "read");
    let key = world.relay.calls.by_client(&Id::number(100)).unwrap();
    let digest = |world: &World| {
        let call = world.relay.calls.get(key).unwrap();
        let summary = call.known_summary().map(|call| call.digest.clone());
        (call.digest().map(str::to_owned), summary)
    };
    let (Some(admitted), None) = digest(&world) else {
        panic!("the call has no digest, or was read")
    };
    server_asks(&mut world, 1);
    assert_eq!(digest(&world), (None, Some(admitted)));
}

#[test]
fn a_question_that_any_of_many_calls_may_have_asked_is_judged_once_for_calls_that_are_alike() {
    let (mut world, rules) = session(false);
    for id in 100..400 {
        call(&mut world, id, "read");
    }
    call(&mut world, 400, "write");
    server_asks(&mut world, 1);
    assert_eq!(rules.plans(), 2);
    // Questions beyond the limit are not evaluated.
    for id in 2..30 {
        server_asks(&mut world, id);
    }
    assert_eq!(rules.plans(), 2 * usize::from(LIMIT));
    assert_eq!(*rules.told.lock().unwrap(), []);
}

#[test]
fn nobody_is_asked_where_too_many_calls_differ_of_which_each_may_have_asked() {
    for (calls, is_asked) in [(256, true), (257, false)] {
        let (mut world, rules) = session(true);
        // A question that has ended here does not count: ended questions have a limit of their own.
        call(&mut world, 99, "read");
        cancel(&mut world, 99);
        for id in 0..calls {
            call(&mut world, 100 + id, "read");
        }
        let told = server_asks(&mut world, 1);
        assert_eq!(told.contains("more than 256 calls"), !is_asked, "{told}");
        assert!(!told.contains("decline"), "{told}");
        assert_eq!(world.open_to_people().len(), usize::from(is_asked));
        assert_eq!(rules.plans(), if is_asked { 257 } else { 0 });
        assert_eq!(*rules.told.lock().unwrap(), []);
    }
}

#[test]
fn the_first_refusal_of_a_question_ends_its_judgement() {
    let (mut world, rules) = session(true);
    for id in 100..200 {
        call(&mut world, id, "never");
    }
    server_asks(&mut world, 1);
    assert_eq!(rules.plans(), 1);
}

#[test]
fn a_refused_question_is_told_of_once_and_counts_in_the_limit() {
    for tools in [["never", "never"], ["read", "never"]] {
        let (mut world, rules) = session(true);
        for id in 100..150 {
            call(&mut world, id, tools[(id % 2) as usize]);
        }
        for id in 0..20 {
            let told = server_asks(&mut world, id);
            let words = if id < u64::from(LIMIT) {
                "`never`"
            } else {
                "rate"
            };
            assert!(told.contains(words) && told.contains("error"), "{told}");
            assert!(!told.contains("decline"), "{told}");
        }
        let told = rules.told.lock().unwrap();
        assert_eq!(*told, vec![Some("never".to_owned()); usize::from(LIMIT)]);
    }
}
