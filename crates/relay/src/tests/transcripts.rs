//! The project's transcripts, with both sides played and a relay between them: each side gets the other's messages.

use mcp_elicit_core::wire::{Capability, Revision};
use mcp_elicit_testkit::transcript::{Side, Transcript, TranscriptEvent, folder};
use serde_json::{Value, json};

use super::world::{Asks, World};
use crate::frame_edit::OWN;
use crate::{Audience, RelaySettings};

/// The transcripts in which the gateway has a part of its own, with that part.
const ITS_OWN_PART: [(&str, &str); 9] = [
    (
        "2025-06-18/no-capability",
        "it refuses what was not declared",
    ),
    (
        "2025-06-18/url-mode-unknown",
        "it refuses what the revision does not have",
    ),
    (
        "2025-11-25/call-cancelled",
        "it takes the call's question back, too",
    ),
    (
        "2025-11-25/form-not-declared",
        "it refuses what was not declared",
    ),
    (
        "2025-11-25/mode-not-declared",
        "it refuses what was not declared",
    ),
    (
        "2025-11-25/no-capability",
        "it refuses what was not declared",
    ),
    (
        "2026-07-28/stateless-question",
        "it gives the round a state to find the retry by",
    ),
    ("2026-07-28/tampered-state", "it refuses the state itself"),
    ("2026-07-28/wrong-answer", "it refuses the answer itself"),
];

/// Returns a world whose two sides send only the test's messages, and in which no person answers.
fn world(revision: Revision) -> World {
    let settings = RelaySettings {
        answer_with: Audience::Client,
        ..RelaySettings::default()
    };
    if revision == Revision::V2026_07_28 {
        // It is asked for the rounds era first.
        settings.eras.saw_round_in_session();
    }
    let mut world = World::with(
        settings,
        revision,
        Capability::BOTH,
        revision,
        Asks::Nothing,
    );
    world.people = None;
    world
}

/// Runs the record, and lets the server answer the gateway's own requests.
fn run(world: &mut World) {
    loop {
        if let Some(event) = world.events.pop_front() {
            world.tell(event);
            continue;
        }
        let asked = world.to_server.front().map(|frame| read(frame));
        let its_own = |asked: &Value| {
            let id = asked["id"].as_str().unwrap_or_default();
            asked["method"] == "server/discover" && id.starts_with(OWN)
        };
        match asked {
            Some(asked) if its_own(&asked) => {
                world.to_server.pop_front();
                let found = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"resultType": "complete",
                    "supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0, "cacheScope": "private"}});
                world.server_sends(&found.to_string());
            }
            _ => return,
        }
    }
}

fn read(frame: &str) -> Value {
    serde_json::from_str(frame).unwrap()
}

/// Checks that the relay's output matches its input; a withdrawn question is compared without the reason.
fn same(said: &Value, heard: Option<&str>) -> Result<(), String> {
    let mut heard = heard.map_or(Value::Null, read);
    let mut said = said.clone();
    for frame in [&mut said, &mut heard] {
        if frame["method"] == "notifications/cancelled"
            && let Some(params) = frame["params"].as_object_mut()
        {
            params.remove("reason");
        }
    }
    if said == heard {
        return Ok(());
    }
    Err(format!("said  {said}\nheard {heard}"))
}

/// Returns a round as the client got it, with the server's state in place of the gateway's, which contains it.
fn unwrapped(
    said: &Value,
    heard: Option<String>,
    states: &mut Vec<(Value, Value)>,
) -> Option<String> {
    let mut heard = read(&heard?);
    if heard["result"]["resultType"] == "input_required" {
        let given = said["result"]["requestState"].clone();
        let own = std::mem::replace(&mut heard["result"]["requestState"], given.clone());
        assert!(own.as_str().unwrap().starts_with(OWN), "{own}");
        states.push((given, own));
    }
    Some(heard.to_string())
}

/// Returns the opening at the client's revision: the server is always asked for its newest revision.
fn at_its_revision(said: &Value, heard: &str) -> String {
    let mut heard = read(heard);
    if heard["method"] == "initialize" {
        assert_eq!(heard["params"]["protocolVersion"], "2025-11-25");
        heard["params"]["protocolVersion"] = said["params"]["protocolVersion"].clone();
    }
    heard.to_string()
}

fn played(transcript: &Transcript) -> Result<(), String> {
    let mut world = world(transcript.revision.parse().unwrap());
    let mut states: Vec<(Value, Value)> = Vec::new();
    for line in transcript.bound() {
        let TranscriptEvent::Says { side, pattern, .. } = line.event else {
            continue;
        };
        let heard = if side == Side::Client {
            // The client returns the state that it got.
            let mut sent = pattern.clone();
            let known = states
                .iter()
                .rev()
                .find(|(given, _)| *given == pattern["params"]["requestState"]);
            if let (Some((_, own)), true) = (known, pattern["params"].is_object()) {
                sent["params"]["requestState"] = own.clone();
            }
            world.client_sends(&sent.to_string());
            run(&mut world);
            let heard = world.to_server.pop_front();
            heard.map(|heard| at_its_revision(&pattern, &heard))
        } else {
            world.server_sends(&pattern.to_string());
            run(&mut world);
            let heard = world.to_client.pop_front().map(|(_, frame)| frame);
            unwrapped(&pattern, heard, &mut states)
        };
        same(&pattern, heard.as_deref()).map_err(|why| format!("line {}:\n{why}", line.number))?;
    }
    let questions = world.relay.open().1;
    match (world.to_client.pop_front(), world.to_server.pop_front()) {
        (None, None) if questions == 0 => Ok(()),
        left => Err(format!("left: {left:?}, {questions} questions")),
    }
}

#[test]
fn each_side_hears_what_the_other_said() {
    let mut wrong = Vec::new();
    for (path, transcript) in Transcript::all().unwrap() {
        let name = path.with_extension("");
        let name = name.iter().rev().take(2).collect::<Vec<_>>();
        let name = format!("{}/{}", name[1].display(), name[0].display());
        let own_part = ITS_OWN_PART.iter().any(|(known, _)| *known == name);
        match (played(&transcript), own_part) {
            (Ok(()), false) | (Err(_), true) => {}
            (Ok(()), true) => wrong.push(format!("{name}: passes as it is")),
            (Err(why), false) => wrong.push(format!("{name}, {why}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The same conversation with the one difference that the table names: the client's retry has the gateway's state, and
/// the server gets none.
#[test]
fn a_question_without_a_state_is_found_again_by_the_gateways_own() {
    let transcript = Transcript::read(&folder().join("2026-07-28/stateless-question.txt")).unwrap();
    let mut world = world(Revision::V2026_07_28);
    let (mut state, mut upstream) = (Value::Null, Value::Null);
    for line in transcript.bound() {
        let TranscriptEvent::Says {
            side, mut pattern, ..
        } = line.event
        else {
            continue;
        };
        if side == Side::Client {
            if !state.is_null() {
                pattern["params"]["requestState"] = state.clone();
            }
            world.client_sends(&pattern.to_string());
            run(&mut world);
            let heard = read(&world.to_server.pop_front().unwrap());
            assert!(heard["params"].get("requestState").is_none(), "{heard}");
            assert_eq!(
                heard["params"]["inputResponses"],
                pattern["params"]["inputResponses"]
            );
            // A call that the gateway repeats has an id of the gateway's.
            upstream = heard["id"].clone();
        } else {
            let id = std::mem::replace(&mut pattern["id"], upstream.clone());
            world.server_sends(&pattern.to_string());
            run(&mut world);
            let heard = read(&world.to_client.pop_front().unwrap().1);
            assert_eq!(heard["id"], id);
            state = heard["result"]["requestState"].clone();
        }
    }
    assert_eq!(world.relay.open(), (0, 0));
    assert_eq!(
        world
            .store
            .values()
            .map(|kept| kept.deliveries)
            .sum::<u32>(),
        1
    );
}
