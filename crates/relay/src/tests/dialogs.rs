//! A client's own dialog: after an unusable answer it is shown again, with the reason.

use mcp_elicit_core::wire::{Capability, Revision};

use super::world::{Asks, World};

#[test]
fn a_wrong_answer_is_asked_again_in_the_same_dialog_with_the_reason() {
    for client in Revision::ALL {
        for server in Revision::ALL {
            for asks in [Asks::Form, Asks::TwoInSequence, Asks::TwoAtOnce] {
                let place = format!("{client} {server} {asks:?}");
                let mut world = World::new(client, Capability::BOTH, server, asks).opened();
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
            let mut world = World::new(client, Capability::BOTH, server, Asks::Form).opened();
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
