//! Random interleavings: frames, answers, timers, hand-backs, cancellations, a server that ends and a gateway that is
//! killed, in any order.

use std::time::Duration;

use mcp_elicit_core::wire::{Action, Capability, Revision};
use proptest::prelude::*;
use serde_json::json;

use super::approvals;
use super::world::{Asks, World};
use crate::{Event, RelaySettings};

/// More calls than are named and held for one question.
const MANY: usize = 20;

#[derive(Clone, Debug)]
enum Move {
    Step(usize),
    Call,
    /// Many calls at once.
    Calls,
    Answer(usize, Action),
    Time(u64),
    Cancel(u64),
    ServerDies,
    Drain,
    /// The change is written.
    Written,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let action = prop_oneof![
        Just(Action::Accept),
        Just(Action::Decline),
        Just(Action::Cancel)
    ];
    let one = prop_oneof![
        8 => (0_usize..3).prop_map(Move::Step),
        3 => Just(Move::Call),
        1 => Just(Move::Calls),
        3 => (0_usize..5, action).prop_map(|(which, action)| Move::Answer(which, action)),
        2 => (1_u64..60_000).prop_map(Move::Time),
        1 => (1_u64..12).prop_map(Move::Cancel),
        1 => Just(Move::Drain),
    ];
    let end = prop_oneof![3 => Just(None), 1 => Just(Some(Move::ServerDies))];
    (prop::collection::vec(one, 1..60), end).prop_map(|(mut moves, end)| {
        moves.extend(end);
        moves
    })
}

/// Returns the events of a gateway that is not killed and whose server does not end.
fn living() -> impl Strategy<Value = Move> {
    let action = prop_oneof![
        Just(Action::Accept),
        Just(Action::Decline),
        Just(Action::Cancel)
    ];
    prop_oneof![
        8 => (0_usize..3).prop_map(Move::Step),
        3 => Just(Move::Call),
        1 => Just(Move::Calls),
        4 => (0_usize..5, action).prop_map(|(which, action)| Move::Answer(which, action)),
        1 => (1_u64..40_000).prop_map(Move::Time),
        2 => Just(Move::Written),
    ]
}

fn capability() -> impl Strategy<Value = Capability> {
    prop_oneof![
        Just(Capability::NONE),
        Just(Capability::FORM),
        Just(Capability::BOTH)
    ]
}

fn asks() -> impl Strategy<Value = Asks> {
    prop_oneof![
        Just(Asks::Nothing),
        Just(Asks::Form),
        Just(Asks::TwoInSequence),
        Just(Asks::TwoAtOnce)
    ]
}

/// Returns the settings without rules, or with rules that leave everything to the caller: then no round is passed on.
fn settings(rules: bool) -> RelaySettings {
    if rules {
        approvals::settings(approvals::Fixed::default()).0
    } else {
        RelaySettings::default()
    }
}

/// Returns the settings with limits that a few calls reach, or the usual ones.
fn bounded(settings: RelaySettings, is_tight: bool) -> RelaySettings {
    if !is_tight {
        return settings;
    }
    RelaySettings {
        open_calls: 12,
        call_bytes: 2_500,
        waiting_calls: 3,
        ..settings
    }
}

/// Checks the count of open requests when nothing is pending.
fn counted(world: &World) {
    let (requests, bytes) = world.relay.calls.budget().taken();
    assert_eq!(requests, world.relay.open().0);
    assert_eq!(bytes == 0, requests == 0);
    let rounds = world.relay.calls.budget().round_bytes();
    assert_eq!(rounds == 0, world.relay.passed_rounds.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// Every request of the client ends at most once and, when nothing is pending any more, exactly once unless it was
    /// cancelled. No answer is delivered twice. Nothing is asked in an undeclared mode (checked by the client model).
    #[test]
    fn nothing_is_lost_or_said_twice(
        client in prop::sample::select(Revision::ALL.to_vec()),
        server in prop::sample::select(Revision::ALL.to_vec()),
        capability in capability(),
        asks in asks(),
        rules in any::<bool>(),
        is_tight in any::<bool>(),
        moves in moves(),
    ) {
        let mut world = World::with(bounded(settings(rules), is_tight), client, capability, server, asks).opened();
        world.people = None;
        let mut calls = Vec::new();
        let mut cancelled = Vec::new();
        let (mut died, mut drained) = (false, false);
        for one in moves {
            match one {
                Move::Step(which) => { world.step(which); }
                Move::Call => if calls.len() < 8 { calls.push(world.call()) },
                Move::Calls => if calls.len() < 8 { calls.extend((0..MANY).map(|_| world.call())) },
                Move::Answer(which, action) => {
                    if let Some(record) = world.open_to_people().get(which).cloned() {
                        world.answer(&record, action);
                    }
                }
                Move::Time(by) => world.pass_time(Duration::from_millis(by)),
                Move::Cancel(id) => {
                    cancelled.push(id);
                    world.client_sends(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string());
                }
                Move::ServerDies => {
                    died = true;
                    world.to_server.clear();
                    world.tell(Event::ServerGone("killed".to_owned()));
                }
                Move::Drain => {
                    drained = true;
                    world.tell(Event::Drain);
                }
                Move::Written => world.flush(),
            }
        }
        let died = world.restarts > 0 || died;
        world.people = Some(Action::Accept);
        world.settle();
        counted(&world);
        if drained && !is_tight {
            // The gateway ends. What was handed back is made again, and finds its answer: each call asks the same.
            world.flush();
            world.restart(settings(rules));
            for _ in 0..2 * (8 + MANY) {
                world.call();
                world.settle();
            }
        }
        // An answer may remain undelivered only for a call that was cancelled, or that was refused when it was
        // repeated.
        if cancelled.is_empty() && !died && !is_tight {
            prop_assert_eq!(world.undelivered(), Vec::<&str>::new(), "answers that went nowhere");
            // A call that was handed back before the end is cancelled: it is made again at another gateway.
            let withdrawn = world.server.refusals.iter().find(|why| !drained && why.contains("withdrawn"));
            prop_assert_eq!(withdrawn, None, "its call waited for the answer");
        }
        for (id, times) in &world.client.endings {
            prop_assert_eq!(*times, 1, "request {} ended {} times", id, times);
        }
        for (id, kept) in &world.store {
            prop_assert!(kept.deliveries <= 1, "{} was delivered {} times", id, kept.deliveries);
        }
        for call in calls {
            let ended = world.client.endings.contains_key(&call.to_string());
            prop_assert!(ended || cancelled.contains(&call), "call {} never ended", call);
        }
        let reached = world.server.answers.len();
        let delivered = world.store.values().filter(|kept| kept.deliveries == 1).count();
        prop_assert!(reached <= delivered, "the server saw {} answers, the record knows of {}", reached, delivered);
    }

    /// Killed at any point and started again, the gateway delivers every answer of a person once, to the same call made
    /// again.
    #[test]
    fn what_was_answered_outlives_the_gateway(
        client in prop::sample::select(Revision::ALL.to_vec()),
        server in prop::sample::select(Revision::ALL.to_vec()),
        capability in capability(),
        asks in asks(),
        rules in any::<bool>(),
        moves in prop::collection::vec(living(), 1..40),
    ) {
        let mut world = World::with(settings(rules), client, capability, server, asks).opened();
        world.people = None;
        let mut calls = 0;
        for one in moves {
            match one {
                Move::Step(which) => { world.step(which); }
                Move::Call => if calls < 8 { calls += 1; world.call(); },
                Move::Calls => if calls < 8 { for _ in 0..MANY { calls += 1; world.call(); } },
                Move::Answer(which, action) => {
                    if let Some(record) = world.open_to_people().get(which).cloned() {
                        world.answer(&record, action);
                    }
                }
                Move::Time(by) => world.pass_time(Duration::from_millis(by)),
                Move::Written => world.flush(),
                Move::Cancel(_) | Move::ServerDies | Move::Drain => {}
            }
        }
        world.restart(settings(rules));
        // Only an answer of a client on a connection that ended with the gateway may be lost.
        let given: Vec<String> = world.undelivered().into_iter().map(str::to_owned).collect();
        for record in &given {
            prop_assert_eq!(world.store[record].deliveries, 0, "{} was delivered before its call was made again", record);
        }
        world.people = Some(Action::Accept);
        // Each call asks the same question as an earlier call, so an equal number of calls finds every answer.
        for _ in 0..2 * (8 + MANY) {
            world.call();
            world.settle();
        }
        prop_assert_eq!(world.undelivered(), Vec::<&str>::new(), "answers that nobody found again");
        counted(&world);
        for record in &given {
            prop_assert_eq!(world.store[record].deliveries, 1, "{}", record);
        }
        for (id, kept) in &world.store {
            prop_assert!(kept.deliveries <= 1, "{} was delivered {} times", id, kept.deliveries);
            prop_assert!(kept.told <= kept.acts, "{} was answered {} times and told {} times", id, kept.acts, kept.told);
        }
        for (id, times) in &world.client.endings {
            prop_assert_eq!(*times, 1, "request {} ended {} times", id, times);
        }
    }
}
