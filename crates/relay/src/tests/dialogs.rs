//! A client's own dialog: after an unusable answer it is shown again, with the reason.

use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::world::{Asks, World};
use crate::{Audience, Effect, Event, RelaySettings, StreamId, TakenAnswer};

/// Returns the settings of a gateway without anybody but the client to ask.
fn client_only() -> RelaySettings {
    RelaySettings {
        answer_with: Audience::Client,
        ..RelaySettings::default()
    }
}

#[test]
fn a_wrong_answer_is_asked_again_in_the_same_dialog_with_the_reason() {
    for client in Revision::ALL {
        for server in Revision::ALL {
            for asks in [Asks::Form, Asks::TwoInSequence, Asks::TwoAtOnce] {
                let place = format!("{client} {server} {asks:?}");
                let settings = client_only();
                let mut world =
                    World::with(settings, client, Capability::BOTH, server, asks).opened();
                world.client.wrong_answers = 2;
                world.call();
                world.settle();
                assert_eq!(world.client.text(), "accept:Ada", "{place}");
                let again = world.client.asked.iter().filter(|asked| {
                    let message = asked["message"].as_str().unwrap();
                    message.starts_with("Who? ") && message.contains("18")
                });
                assert!(again.count() >= 1, "{place}: {:?}", world.client.asked);
                assert!(
                    world
                        .server
                        .answers
                        .iter()
                        .all(|answer| answer.contains("36")),
                    "{place}: {:?}",
                    world.server.answers
                );
                assert!(world.server.refusals.is_empty(), "{place}");
                assert!(world.client.cancelled.is_empty(), "{place}");
                for kept in world.store.values() {
                    assert_eq!(kept.deliveries, 1, "{place}");
                }
                assert_eq!(world.relay.open(), (0, 0), "{place}");
            }
        }
    }
}

#[test]
fn after_three_wrong_answers_nobody_is_asked_any_more() {
    for client in Revision::ALL {
        for server in Revision::ALL {
            let place = format!("{client} {server}");
            let settings = client_only();
            let mut world =
                World::with(settings, client, Capability::BOTH, server, Asks::Form).opened();
            world.client.wrong_answers = 3;
            world.call();
            world.settle();
            assert_eq!(world.client.asked.len(), 3, "{place}");
            assert!(world.server.answers.is_empty(), "{place}");
            let told = if server == Revision::V2026_07_28 {
                world.client.text()
            } else {
                world.server.refusals.join(" ")
            };
            assert!(told.contains("-32602"), "{place}: {told}");
            assert_eq!(world.relay.open(), (0, 0), "{place}");
        }
    }
}

/// Returns late responses to a withdrawn dialog: an error, content that does not fit, and a malformed result.
fn late_responses(dialog: &str) -> [String; 3] {
    let dialog: Value = serde_json::from_str(dialog).unwrap();
    assert_eq!(dialog["method"], "elicitation/create", "{dialog}");
    let id = &dialog["id"];
    [
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32800, "message": "cancelled"}}),
        json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept", "content": {"name": 7}}}),
        json!({"jsonrpc": "2.0", "id": id, "result": {"action": "perhaps"}}),
    ]
    .map(|frame| frame.to_string())
}

/// Passes a call to the server. Returns the dialogs that the client is asked to show, which it has not received yet.
fn dialogs(world: &mut World) -> Vec<String> {
    world.call();
    while let Some(frame) = world.to_server.pop_front() {
        for sent in world.server.receive(&frame) {
            world.server_sends(&sent);
        }
        world.run_record();
    }
    let frames = world.to_client.drain(..).map(|(_, frame)| frame);
    let mut frames: Vec<String> = frames.collect();
    frames.retain(|frame| frame.contains("elicitation/create"));
    frames
}

#[test]
fn an_answer_given_elsewhere_is_delivered_whatever_the_withdrawn_dialog_returns() {
    let revision = Revision::V2025_11_25;
    for late in 0..3 {
        let mut world = World::new(revision, Capability::BOTH, revision, Asks::Form).opened();
        let shown = dialogs(&mut world);
        let question = world.store["r1"].key.unwrap();
        // A page was first, and the record is still about to take the answer out.
        world.relay.handle(world.now, Event::Answered { question });
        let effects = std::iter::from_fn(|| world.relay.effect()).collect::<Vec<_>>();
        assert!(
            matches!(effects.last(), Some(Effect::BeginDelivery { .. })),
            "{effects:?}"
        );
        let late = &late_responses(&shown[0])[late];
        world
            .relay
            .client_frame(world.now, StreamId::SESSION, late.as_bytes());
        assert!(world.relay.effect().is_none(), "{late}");
        let answers = vec![TakenAnswer {
            question,
            record: "r1".to_owned(),
            reply: r#"{"action":"decline"}"#.to_owned(),
        }];
        world
            .relay
            .handle(world.now, Event::DeliveryBegun { answers });
        let Some(Effect::ToServer { frame, .. }) = world.relay.effect() else {
            panic!("the answer is delivered: {late}")
        };
        assert!(frame.contains("decline"), "{frame}");
    }
}

#[test]
fn an_answer_given_elsewhere_waits_for_its_round_whatever_the_withdrawn_dialog_returns() {
    let (client, server) = (Revision::V2025_11_25, Revision::V2026_07_28);
    for late in 0..3 {
        let mut world = World::new(client, Capability::BOTH, server, Asks::TwoAtOnce).opened();
        let shown = dialogs(&mut world);
        assert!(world.answer("r1", Action::Accept));
        world.run_record();
        world.client_sends(&late_responses(&shown[0])[late]);
        assert_eq!(
            world.relay.open().0,
            1,
            "the call waits for the other answer"
        );
        world
            .to_client
            .push_back((StreamId::SESSION, shown[1].clone()));
        world.settle();
        assert_eq!(world.client.text(), "accept:Ada");
        assert_eq!(world.relay.open(), (0, 0));
    }
}
