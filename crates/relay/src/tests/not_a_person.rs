//! Responses of a client that are no act of a person: people are asked instead, if there are any.

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::form::{FieldKind, FieldKinds};
use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::{Value, json};

use super::world::{Asks, World};
use crate::{Audience, ClientFacts, ClientProfile, RelaySettings, SeenClient};

const PUSHED: [Revision; 2] = [Revision::V2025_06_18, Revision::V2025_11_25];

/// Returns an open session whose client answers every question with this member, and whose people wait.
fn program(client: Revision, server: Revision, asks: Asks, says: (&'static str, Value)) -> World {
    let mut world = World::new(client, Capability::BOTH, server, asks).opened();
    world.client.program = Some(says);
    world.people = None;
    world
}

fn error(code: i64) -> (&'static str, Value) {
    ("error", json!({"code": code, "message": "no"}))
}

/// Returns the only question that people can answer.
fn moved(world: &World) -> String {
    let open = world.open_to_people();
    assert_eq!(open.len(), 1, "{:?}", world.client.results);
    open[0].clone()
}

/// People answer; the call ends as if its client had been asked.
fn answered_by_people(world: &mut World) {
    assert!(world.client.results.is_empty(), "the call is held");
    world.people = Some(Action::Accept);
    world.settle();
    assert_eq!(world.client.text(), "accept:Ada");
    assert!(world.server.refusals.is_empty());
    for (id, kept) in &world.store {
        assert_eq!((kept.acts, kept.told), (1, 1), "{id}");
    }
    assert_eq!(world.relay.open(), (0, 0));
}

#[test]
fn an_error_of_the_client_is_no_act_whatever_its_code() {
    for client in PUSHED {
        for server in Revision::ALL {
            for code in [-32601, -32600, -32603, -32602, -32000, 7] {
                let mut world = program(client, server, Asks::Form, error(code));
                world.call();
                world.settle();
                let record = moved(&world);
                assert_eq!(
                    world.store[&record].moved,
                    Some(NotAPerson::Error { code }),
                    "{client} {server}"
                );
                assert_eq!(world.client.asked.len(), 1);
                answered_by_people(&mut world);
                // The session remembers.
                world.people = None;
                world.call();
                world.settle();
                assert_eq!(world.client.asked.len(), 1, "{client} {server} {code}");
                assert_eq!(world.open_to_people().len(), 1);
            }
        }
    }
}

#[test]
fn an_error_in_one_mode_says_nothing_about_the_other() {
    let revision = Revision::V2025_11_25;
    let mut world = program(revision, revision, Asks::Url, error(-32602));
    world.call();
    world.settle();
    moved(&world);
    world.people = Some(Action::Accept);
    world.settle();
    world.client.program = None;
    world.server.asks = Asks::Form;
    world.call();
    world.settle();
    assert_eq!(world.client.asked.len(), 2, "forms are still shown there");
    assert_eq!(world.store.len(), 2);
}

#[test]
fn a_result_that_is_no_answer_is_no_act() {
    for client in Revision::ALL {
        for server in Revision::ALL {
            for result in [
                json!({}),
                json!({"action": "reject"}),
                json!({"error": {"code": -32601, "message": "no"}}),
                json!("no"),
            ] {
                let place = format!("{client} {server} {result}");
                let says = ("result", result);
                let mut world = program(client, server, Asks::Form, says);
                world.call();
                world.settle();
                let record = moved(&world);
                let why = world.store[&record].moved;
                assert_eq!(why, Some(NotAPerson::Malformed), "{place}");
                answered_by_people(&mut world);
            }
        }
    }
}

#[test]
fn the_same_unusable_answer_twice_is_no_act() {
    for client in Revision::ALL {
        for server in Revision::ALL {
            for content in [
                json!({}),
                json!({"name": 7}),
                json!({"name": "A", "age": 2}),
                json!([1]),
                json!(["name", "Ada"]),
                json!("Ada"),
                json!([]),
            ] {
                let place = format!("{client} {server} {content}");
                let says = ("result", json!({"action": "accept", "content": content}));
                let mut world = program(client, server, Asks::Form, says);
                world.call();
                world.settle();
                assert_eq!(world.client.asked.len(), 2, "{place}");
                let record = moved(&world);
                let why = world.store[&record].moved;
                assert_eq!(why, Some(NotAPerson::Unusable { times: 2 }), "{place}");
                answered_by_people(&mut world);
            }
        }
    }
}

#[test]
fn a_person_who_makes_two_different_mistakes_is_asked_a_third_time() {
    let revision = Revision::V2025_11_25;
    let contents = [json!({}), json!({"name": 7}), json!({"name": "Ada"})];
    let mut world = program(revision, revision, Asks::Form, ("result", json!({})));
    world.call();
    for (number, content) in contents.into_iter().enumerate() {
        let answer = json!({"action": "accept", "content": content});
        world.client.program = Some(("result", answer));
        while world.client.asked.len() == number {
            assert!(world.step(0));
        }
    }
    world.settle();
    assert_eq!(world.client.asked.len(), 3);
    assert_eq!(world.client.text(), "accept:Ada");
    assert!(world.store.values().all(|kept| kept.moved.is_none()));
}

#[test]
fn a_kind_of_field_that_the_client_leaves_empty_goes_to_people_from_then_on() {
    let revision = Revision::V2025_11_25;
    let says = ("result", json!({"action": "accept", "content": {}}));
    let mut world = program(revision, revision, Asks::Form, says);
    world.call();
    world.settle();
    answered_by_people(&mut world);
    world.people = None;
    world.call();
    world.settle();
    assert_eq!(world.client.asked.len(), 2, "it is not asked again");
    assert_eq!(world.open_to_people().len(), 1);
}

#[test]
fn a_kind_of_field_that_the_client_gives_in_another_type_goes_to_people_from_then_on() {
    let revision = Revision::V2025_11_25;
    for content in [json!({"name": 7}), json!([{"name": "Ada"}]), json!(7)] {
        let says = ("result", json!({"action": "accept", "content": content}));
        let mut world = program(revision, revision, Asks::Form, says);
        world.call();
        world.settle();
        answered_by_people(&mut world);
        world.people = None;
        world.call();
        world.settle();
        assert_eq!(
            world.client.asked.len(),
            2,
            "{content}: it is not asked again"
        );
        assert_eq!(world.open_to_people().len(), 1, "{content}");
    }
    // What a person may have mistyped is shown again at the next question.
    let says = (
        "result",
        json!({"action": "accept", "content": {"name": "A", "age": 2}}),
    );
    let mut world = program(revision, revision, Asks::Form, says);
    world.call();
    world.settle();
    answered_by_people(&mut world);
    world.people = None;
    world.call();
    world.settle();
    assert!(world.client.asked.len() > 2);
}

#[test]
fn content_that_is_no_object_is_not_blamed_on_the_server() {
    let revision = Revision::V2025_11_25;
    let says = ("result", json!({"action": "accept", "content": [1]}));
    let mut world = program(revision, revision, Asks::Form, says);
    world.relay = crate::Relay::new(
        RelaySettings {
            answer_with: Audience::Client,
            ..RelaySettings::default()
        },
        super::world::seal(),
    );
    let mut world = world.opened();
    world.call();
    let mut told = Vec::new();
    for _ in 0..1_000 {
        told.extend(
            world
                .to_server
                .iter()
                .filter(|frame| frame.contains("-32"))
                .cloned(),
        );
        if !world.step(0) {
            break;
        }
    }
    assert!(
        told.iter()
            .any(|frame| frame.contains("-32603") && frame.contains("not an object")),
        "{told:?}"
    );
    assert!(
        !told.iter().any(|frame| frame.contains("-32602")),
        "{told:?}"
    );
}

#[test]
fn a_retry_without_any_answer_twice_is_no_act() {
    let client = Revision::V2026_07_28;
    for server in Revision::ALL {
        for asks in [Asks::Form, Asks::TwoAtOnce] {
            let mut world = program(client, server, asks, ("result", Value::Null));
            world.call();
            world.settle();
            let open = world.open_to_people();
            assert!(!open.is_empty(), "{server} {asks:?}");
            assert!(world.client.results.is_empty(), "{server} {asks:?}");
            world.people = Some(Action::Accept);
            world.settle();
            assert_eq!(world.client.text(), "accept:Ada", "{server} {asks:?}");
            for kept in world.store.values() {
                assert!(kept.told <= 1 && kept.acts <= 1, "{server} {asks:?}");
            }
            assert_eq!(world.relay.open(), (0, 0), "{server} {asks:?}");
        }
    }
}

#[test]
fn a_call_that_waits_for_people_in_place_of_its_client_is_handed_back_and_resumes() {
    for client in Revision::ALL {
        for server in Revision::ALL {
            let mut world = program(client, server, Asks::Form, ("result", json!({})));
            world.call();
            world.settle();
            world.pass_time(Duration::from_secs(60));
            world.settle();
            assert!(
                world.client.text().starts_with("Not done yet"),
                "{client} {server}"
            );
            world.people = Some(Action::Accept);
            world.settle();
            world.client.program = None;
            world.call();
            world.settle();
            assert_eq!(world.client.text(), "accept:Ada", "{client} {server}");
            let answered = world.store.values().filter(|kept| kept.told == 1);
            assert_eq!(answered.count(), 1, "{client} {server}");
        }
    }
}

#[test]
fn a_late_response_to_the_dialog_decides_nothing() {
    let revision = Revision::V2025_11_25;
    let mut world = program(revision, revision, Asks::Form, error(-32603));
    world.call();
    world.settle();
    let record = moved(&world);
    let asked = world.server.seen.last().cloned();
    for id in [
        json!(1),
        json!(2),
        json!("mcp-elicit-1"),
        asked.unwrap_or_default()["id"].clone(),
    ] {
        let late = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}});
        world.client_sends(&late.to_string());
    }
    world.settle();
    assert!(
        world.server.answers.is_empty(),
        "{:?}",
        world.server.answers
    );
    assert_eq!(world.store[&record].acts, 0);
    answered_by_people(&mut world);
}

#[test]
fn if_only_the_client_may_answer_its_error_goes_to_the_server() {
    for server in Revision::ALL {
        let settings = RelaySettings {
            answer_with: Audience::Client,
            ..RelaySettings::default()
        };
        let mut world =
            World::with(settings, PUSHED[1], Capability::BOTH, server, Asks::Form).opened();
        world.client.program = Some(error(-32601));
        world.call();
        world.settle();
        assert!(world.open_to_people().is_empty());
        let told = if server == Revision::V2026_07_28 {
            world.client.text()
        } else {
            world.server.refusals.join(" ")
        };
        assert!(
            told.contains("-32601") || told.contains("error"),
            "{server}: {told}"
        );
        assert_eq!(world.relay.open(), (0, 0));
    }
}

/// Facts about the client of the simulator.
#[derive(Debug)]
pub(super) struct Facts(pub(super) ClientProfile);

impl ClientFacts for Facts {
    fn profile(&self, seen: &SeenClient<'_>) -> ClientProfile {
        assert!(
            seen.info.is_some_and(|info| info.contains("raw")),
            "{seen:?}"
        );
        self.0.clone()
    }
}

fn known(profile: ClientProfile, audience: Audience, client: Revision, server: Revision) -> World {
    let settings = RelaySettings {
        answer_with: audience,
        client_facts: Some(Arc::new(Facts(profile))),
        ..RelaySettings::default()
    };
    let mut world = World::with(settings, client, Capability::BOTH, server, Asks::Form).opened();
    world.people = None;
    world
}

#[test]
fn an_act_sooner_than_a_person_can_read_moves_to_people() {
    let profile = ClientProfile {
        doubt: Some(Duration::from_millis(150)),
        ..ClientProfile::default()
    };
    for client in Revision::ALL {
        for server in Revision::ALL {
            for action in [Action::Accept, Action::Decline, Action::Cancel] {
                let place = format!("{client} {server} {action}");
                let mut world = known(profile.clone(), Audience::Auto, client, server);
                world.client.answer = action;
                world.call();
                world.settle();
                let record = moved(&world);
                assert_eq!(
                    world.store[&record].moved,
                    Some(NotAPerson::TooFast {
                        act: action,
                        after_ms: 0
                    }),
                    "{place}"
                );
                assert_eq!(world.store[&record].acts, 0, "{place}");
                answered_by_people(&mut world);
            }
        }
    }
}

#[test]
fn an_act_after_that_time_is_a_persons() {
    let profile = ClientProfile {
        doubt: Some(Duration::from_millis(150)),
        ..ClientProfile::default()
    };
    for client in Revision::ALL {
        let mut world = known(
            profile.clone(),
            Audience::Auto,
            client,
            Revision::V2025_11_25,
        );
        world.call();
        while world.client.asked.is_empty() {
            let is_asked = |(_, frame): &(_, String)| {
                frame.contains("elicitation/create") || frame.contains("input_required")
            };
            if world.to_client.iter().any(is_asked) {
                world.pass_time(Duration::from_millis(150));
            }
            assert!(world.step(0));
        }
        world.settle();
        assert_eq!(world.client.text(), "accept:Ada", "{client}");
        assert!(world.store.values().all(|kept| kept.moved.is_none()));
    }
}

#[test]
fn if_only_the_client_may_answer_a_doubted_act_counts_and_the_audit_says_so() {
    let profile = ClientProfile {
        doubt: Some(Duration::from_millis(150)),
        ..ClientProfile::default()
    };
    for client in Revision::ALL {
        for server in Revision::ALL {
            let mut world = known(profile.clone(), Audience::Client, client, server);
            world.call();
            world.settle();
            assert_eq!(world.client.text(), "accept:Ada", "{client} {server}");
            assert_eq!(world.doubts.len(), 1, "{client} {server}");
        }
    }
}

#[test]
fn what_a_client_does_not_show_goes_to_people_from_the_start() {
    let without: FieldKinds = [FieldKind::Integer].into_iter().collect();
    let profiles = [
        ClientProfile {
            has_person: false,
            ..ClientProfile::default()
        },
        ClientProfile {
            modes: Capability::URL,
            ..ClientProfile::default()
        },
        ClientProfile {
            kinds: FieldKinds::ALL.without(without),
            ..ClientProfile::default()
        },
    ];
    for profile in profiles {
        for client in Revision::ALL {
            for server in Revision::ALL {
                let mut world = known(profile.clone(), Audience::Auto, client, server);
                world.call();
                world.settle();
                assert!(
                    world.client.asked.is_empty(),
                    "{client} {server} {profile:?}"
                );
                let record = moved(&world);
                assert_eq!(world.store[&record].moved, None, "it was never there");
                answered_by_people(&mut world);
                // Where only the client may answer, its declaration counts.
                let doubted = !profile.has_person;
                let mut world = known(profile.clone(), Audience::Client, client, server);
                world.call();
                world.settle();
                assert_eq!(
                    world.client.text(),
                    "accept:Ada",
                    "{client} {server} {profile:?}"
                );
                assert_eq!(
                    world.doubts.len(),
                    usize::from(doubted),
                    "the audit says so"
                );
            }
        }
    }
}
