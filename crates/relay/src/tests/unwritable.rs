//! A record that cannot be written when an answer is to be delivered: no answer is lost or made up, and the call waits.

use std::time::Duration;

use mcp_elicit_core::wire::{Action, Capability, Revision};

use super::approvals::{self, Fixed};
use super::world::{Asks, World};
use crate::RelaySettings;

const PUSHED: Revision = Revision::V2025_11_25;
const ROUNDS: Revision = Revision::V2026_07_28;

/// Returns sessions in which people are asked: by a server of each era, and for approval of a call.
fn worlds() -> Vec<World> {
    let asking = |server| {
        let settings = RelaySettings::default();
        World::with(settings, PUSHED, Capability::NONE, server, Asks::Form).opened()
    };
    let (settings, _) = approvals::settings(Fixed {
        admit: Some(approvals::approval()),
        ..Fixed::default()
    });
    let approving = World::with(settings, PUSHED, Capability::NONE, PUSHED, Asks::Nothing).opened();
    let mut all = vec![asking(PUSHED), asking(ROUNDS), approving];
    for world in &mut all {
        world.people = None;
    }
    all
}

fn has_response(world: &World, id: u64) -> bool {
    world.client.results.iter().any(|(known, _)| *known == id)
}

#[test]
fn a_call_waits_for_another_answer_if_the_first_could_not_be_written() {
    for mut world in worlds() {
        let id = world.call();
        world.settle();
        let question = world.open_to_people().remove(0);
        for _ in 0..2 {
            world.unwritable = Some(true);
            assert!(world.answer(&question, Action::Accept));
            world.settle();
            assert!(!has_response(&world, id), "it waits");
            assert_eq!(world.open_to_people(), std::slice::from_ref(&question));
            world.pass_time(Duration::from_secs(20));
            world.settle();
            assert!(!has_response(&world, id), "time is no answer");
        }
        world.unwritable = None;
        assert!(world.answer(&question, Action::Accept));
        world.settle();
        assert!(has_response(&world, id));
        assert_eq!(world.store[&question].deliveries, 1);
    }
}

#[test]
fn an_answer_that_is_kept_is_delivered_when_the_record_can_be_written_again() {
    for mut world in worlds() {
        let id = world.call();
        world.settle();
        let question = world.open_to_people().remove(0);
        world.unwritable = Some(false);
        assert!(world.answer(&question, Action::Accept));
        for _ in 0..3 {
            world.settle();
            world.pass_time(Duration::from_secs(5));
            assert!(!has_response(&world, id));
        }
        world.settle();
        world.unwritable = None;
        world.pass_time(Duration::from_secs(5));
        world.settle();
        assert!(has_response(&world, id));
        assert_eq!(world.store[&question].deliveries, 1);
    }
}
