//! The whole table: client revision, server revision, capability and kind of question. Every cell ends with the answer.

use mcp_elicit_core::wire::{Action, Capability, Revision};
use serde_json::Value;

use super::world::{Asks, World};

fn cells() -> impl Iterator<Item = (Revision, Revision, Capability, Asks)> {
    let asks = [
        Asks::Nothing,
        Asks::Form,
        Asks::Url,
        Asks::Visit,
        Asks::TwoInSequence,
        Asks::TwoAtOnce,
    ];
    let capabilities = [Capability::NONE, Capability::FORM, Capability::BOTH];
    Revision::ALL.into_iter().flat_map(move |client| {
        Revision::ALL.into_iter().flat_map(move |server| {
            capabilities.into_iter().flat_map(move |capability| {
                asks.into_iter()
                    .map(move |asks| (client, server, capability, asks))
            })
        })
    })
}

/// Returns `true` if a server of this revision can ask in this way.
fn can_ask(server: Revision, asks: Asks) -> bool {
    match asks {
        Asks::Url => server > Revision::V2025_06_18,
        Asks::Visit => server == Revision::V2025_11_25,
        _ => true,
    }
}

#[test]
fn every_cell_ends_with_the_persons_answer() {
    let mut cells_run = 0;
    for (client, server, capability, asks) in
        cells().filter(|(_, server, _, asks)| can_ask(*server, *asks))
    {
        let place = format!("client {client} {capability:?}, server {server}, {asks:?}");
        let mut world = World::new(client, capability, server, asks).opened();
        let call = world.call();
        world.settle();
        let expected = match asks {
            Asks::Nothing => "plain",
            Asks::Url | Asks::Visit => "accept:-",
            Asks::Form | Asks::TwoInSequence | Asks::TwoAtOnce => "accept:Ada",
        };
        assert_eq!(world.client.text(), expected, "{place}");
        assert_eq!(
            world.client.cancelled,
            [] as [Value; 0],
            "{place}: it answered"
        );
        let _ = call;
        for (id, times) in &world.client.endings {
            assert_eq!(*times, 1, "{place}: request {id}");
        }
        let questions = match asks {
            Asks::Nothing => 0,
            Asks::Form | Asks::Url => 1,
            Asks::TwoInSequence | Asks::TwoAtOnce => 2,
            // A client that supports the error visits by itself.
            Asks::Visit => usize::from(
                !(client < Revision::V2026_07_28
                    && client > Revision::V2025_06_18
                    && capability.url),
            ),
        };
        assert_eq!(world.store.len(), questions, "{place}: records");
        for kept in world.store.values() {
            assert_eq!(kept.deliveries, 1, "{place}");
        }
        let (calls, open) = world.relay.open();
        assert_eq!((calls, open), (0, 0), "{place}: left open");
        cells_run += 1;
    }
    assert!(cells_run > 100);
}

#[test]
fn a_decline_and_a_cancel_arrive_as_what_they_are() {
    for action in [Action::Decline, Action::Cancel] {
        for client in Revision::ALL {
            for server in Revision::ALL {
                for capability in [Capability::NONE, Capability::FORM] {
                    let mut world = World::new(client, capability, server, Asks::Form).opened();
                    world.client.answer = action;
                    world.people = Some(action);
                    world.call();
                    world.settle();
                    assert_eq!(
                        world.client.text(),
                        action.as_str(),
                        "{client} {server} {capability:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_gateway_declares_what_the_client_lacks() {
    for client in Revision::ALL {
        for server in Revision::ALL {
            let mut world = World::new(client, Capability::NONE, server, Asks::Form).opened();
            world.call();
            world.settle();
            let expected = if server == Revision::V2025_06_18 {
                Capability::FORM
            } else {
                Capability::BOTH
            };
            assert_eq!(world.server.declared, expected, "{client} {server}");
        }
    }
}

/// A program that starts slowly answers both questions about its era, late. Its first response counts.
#[test]
fn a_server_that_starts_slowly_is_not_misjudged() {
    let probe = super::super::RelaySettings::default().probe;
    for server in Revision::ALL {
        for client in Revision::ALL {
            let mut world = World::new(client, Capability::BOTH, server, Asks::Form);
            let open = world.client.open();
            world.client_sends(&open);
            for _ in 0..4 {
                world.pass_time(probe);
            }
            world.settle();
            assert!(world.client.opened.is_some(), "{client} {server}");
            assert_eq!(
                world.relay.server_revision(),
                Some(server),
                "{client} {server}"
            );
            world.call();
            world.settle();
            assert_eq!(world.client.text(), "accept:Ada", "{client} {server}");
        }
    }
}

#[test]
fn a_client_only_gateway_declares_no_more_than_the_client() {
    let settings = super::super::RelaySettings {
        answer_with: super::super::Audience::Client,
        ..Default::default()
    };
    for server in Revision::ALL {
        let mut world = World::with(
            settings.clone(),
            Revision::V2025_11_25,
            Capability::NONE,
            server,
            Asks::Form,
        )
        .opened();
        world.call();
        world.settle();
        assert!(world.server.declared.is_none());
        assert!(world.store.is_empty(), "nobody may be asked");
    }
}
