//! Calls that came with different access tokens, of which one was revoked or has expired.

use mcp_elicit_core::question::ProofNumber;
use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::Value;

use super::approvals::{Fixed, approval, settings};
use super::world::{Asks, World};
use crate::{AccessNumber, Event, RelaySettings, StreamId};

const ERAS: [(Revision, Revision); 4] = [
    (Revision::V2025_11_25, Revision::V2025_11_25),
    (Revision::V2025_11_25, Revision::V2026_07_28),
    (Revision::V2026_07_28, Revision::V2025_11_25),
    (Revision::V2026_07_28, Revision::V2026_07_28),
];

const KEPT: AccessNumber = AccessNumber(1);
const ENDED: AccessNumber = AccessNumber(AccessNumber::MOST);

fn calls_with(world: &mut World, access: AccessNumber) -> u64 {
    world.access = access;
    let id = world.call();
    world.settle();
    id
}

fn response(world: &World, id: u64) -> Option<Value> {
    let mut results = world.client.results.iter();
    let found = results.find(|(known, _)| *known == id);
    found.map(|(_, response)| response.clone())
}

fn is_revoked(response: Option<&Value>) -> bool {
    response.is_some_and(|response| {
        let why = response["error"]["message"].as_str();
        why.is_some_and(|why| why.contains("was revoked"))
    })
}

fn tool_calls(world: &World) -> usize {
    let is_call = |frame: &&Value| frame["method"] == "tools/call";
    world.server.seen.iter().filter(is_call).count()
}

/// Returns the number of the client's messages to the server that carry an answer.
fn answers(world: &World) -> usize {
    let has_content = |frame: &&Value| frame.to_string().contains("\"content\"");
    world.server.seen.iter().filter(has_content).count()
}

#[test]
fn a_stream_has_the_numbers_of_its_request_its_proof_and_its_token() {
    let most = (1 << 35) - 1;
    for (number, proof, access) in [(0, 0, 0), (1, 2, 3), (most, u16::MAX, AccessNumber::MOST)] {
        let (proof, access) = (ProofNumber(proof), AccessNumber(access));
        let stream = StreamId::of_request(number, proof).with_access(access);
        assert_eq!((stream.proof(), stream.access()), (proof, access));
        let task = StreamId::of_task(number, stream);
        assert_eq!((task.proof(), task.access()), (proof, access));
        assert!(task.is_of_task() && !stream.is_of_task());
        let none = stream.with_access(AccessNumber::default());
        assert_eq!(none, StreamId::of_request(number, proof));
        let later = StreamId::of_request(number + 1, ProofNumber(0));
        assert!(number == most || later > stream);
    }
}

#[test]
fn of_the_calls_that_wait_for_approval_those_of_a_revoked_token_end() {
    for (client, server) in ERAS {
        let (settings, _) = settings(Fixed {
            admit: Some(approval()),
            ..Fixed::default()
        });
        let mut world = World::with(settings, client, Capability::NONE, server, Asks::Nothing);
        world.access = KEPT;
        let mut world = world.opened();
        world.people = None;
        let kept = calls_with(&mut world, KEPT);
        let first = world.open_to_people();
        let ended = calls_with(&mut world, ENDED);
        let mut second = world.open_to_people();
        second.retain(|record| !first.contains(record));
        assert_eq!(world.relay.accesses(), [KEPT, ENDED].into(), "{client}");
        world.tell(Event::AccessEnded(vec![ENDED]));
        world.settle();
        assert!(is_revoked(response(&world, ended).as_ref()), "{client}");
        assert_eq!(response(&world, kept), None, "{client}");
        // An approval given afterwards reaches nothing.
        assert!(world.answer(&second[0], Action::Accept));
        world.settle();
        assert_eq!(tool_calls(&world), 0, "{client}");
        assert!(world.answer(&first[0], Action::Accept));
        world.settle();
        assert_eq!(tool_calls(&world), 1, "{client}");
        assert_eq!(world.delivers_for, [KEPT]);
        assert!(!is_revoked(response(&world, kept).as_ref()), "{client}");
    }
}

#[test]
fn a_call_in_which_the_server_asks_ends_with_its_token_and_its_question_stays() {
    for (client, server) in ERAS {
        for is_handed_back in [false, true] {
            let mut world = World::new(client, Capability::NONE, server, Asks::Form).opened();
            world.people = None;
            let id = calls_with(&mut world, ENDED);
            let record = world.open_to_people()[0].clone();
            if is_handed_back {
                world.tell(Event::HandBackOf(vec![KEPT]));
                assert_eq!(response(&world, id), None);
                world.tell(Event::HandBackOf(vec![ENDED]));
                world.settle();
                assert!(world.client.text().starts_with("Not done yet"), "{client}");
                assert_eq!(world.relay.accesses(), [ENDED].into(), "no client waits");
            }
            world.tell(Event::AccessEnded(vec![KEPT]));
            assert_eq!(world.relay.open().0, 1, "another token");
            world.tell(Event::AccessEnded(vec![ENDED]));
            world.settle();
            assert_eq!(world.relay.open(), (0, 0), "{client} {server}");
            assert_eq!(is_revoked(response(&world, id).as_ref()), !is_handed_back);
            // The answer waits in the record for the same call, made with another token.
            let before = answers(&world);
            assert!(world.answer(&record, Action::Accept));
            world.settle();
            assert_eq!(answers(&world), before, "{client} {server}");
        }
    }
}

#[test]
fn a_task_fails_when_the_token_of_its_call_is_revoked() {
    let settings = RelaySettings {
        tasks: true,
        ..RelaySettings::default()
    };
    let revision = Revision::V2025_11_25;
    let mut world = World::with(settings, revision, Capability::NONE, revision, Asks::Form);
    world.client.has_tasks = true;
    world.people = None;
    let mut world = world.opened();
    let frame = r#"{"jsonrpc":"2.0","id":50,"method":"tools/call","params":{"name":"ask","arguments":{},"task":{}}}"#;
    world.access = ENDED;
    world.client_sends(frame);
    world.run_record();
    assert_eq!(world.relay.accesses(), [ENDED].into());
    world.tell(Event::AccessEnded(vec![ENDED]));
    world.run_record();
    let ended = world.tasks[0].ended.clone().unwrap();
    assert!(
        ended.contains("\"failed\"") && ended.contains("was revoked"),
        "{ended}"
    );
    assert_eq!(world.relay.accesses(), [].into());
}
