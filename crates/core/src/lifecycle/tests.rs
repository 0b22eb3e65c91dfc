use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::answer::Outcome;
use crate::wire::Action;

const START: Timestamp = Timestamp::from_millis(1_000);
const DEADLINE: Timestamp = Timestamp::from_millis(61_000);

fn at(seconds: u64) -> Timestamp {
    START.after(Duration::from_secs(seconds))
}

fn asked() -> Lifecycle {
    Lifecycle::ask(START, Some(DEADLINE))
}

fn act(action: Action) -> Transition {
    let outcome = match action {
        Action::Accept => Outcome::Visit,
        Action::Decline => Outcome::Decline,
        Action::Cancel => Outcome::Cancel,
    };
    Transition::acted(&outcome, "ada")
}

fn withdraw() -> Transition {
    Transition::Withdraw {
        why: Withdrawal::ByAsker,
    }
}

#[test]
fn a_question_is_asked_shown_answered_and_told_once() {
    let shown = asked().step(&Transition::Show, at(1)).unwrap();
    assert_eq!((shown.phase(), shown.version()), (Phase::Shown, 1));
    let answered = shown.step(&act(Action::Accept), at(2)).unwrap();
    assert_eq!(
        (answered.phase(), answered.ended_by()),
        (Phase::Answered, Some("ada"))
    );
    assert!(answered.fault().is_none());
    let told = answered.step(&Transition::Deliver, at(3)).unwrap();
    assert_eq!(told.delivered_at(), Some(at(3)));
    assert_eq!(
        told.step(&Transition::Deliver, at(4)),
        Err(TransitionError::Delivered)
    );
}

fn refuse() -> Transition {
    Transition::Refuse {
        why: "status 401".to_owned(),
    }
}

fn lapse(why: Lapse) -> Transition {
    Transition::Lapse { why }
}

#[test]
fn a_refused_answer_is_delivered_once_more_and_then_lapses() {
    let answered = asked().step(&act(Action::Accept), at(1)).unwrap();
    assert_eq!(answered.delivery(), Some(Delivery::Waiting));
    assert_eq!(
        answered.step(&refuse(), at(2)),
        Err(TransitionError::NotDelivered)
    );
    let told = answered.step(&Transition::Deliver, at(2)).unwrap();
    assert_eq!(told.delivery(), Some(Delivery::Delivered));
    let failed = told.step(&refuse(), at(3)).unwrap();
    assert_eq!(
        (failed.delivery(), failed.delivered_at()),
        (Some(Delivery::Failed), None)
    );
    assert_eq!(failed.phase(), Phase::Answered, "the act stays what it is");
    assert_eq!(failed.delivery_reason().as_deref(), Some("status 401"));
    assert!(failed.version() > told.version());
    let again = failed.step(&Transition::Deliver, at(4)).unwrap();
    assert_eq!(
        (again.delivery(), again.delivery_reason()),
        (Some(Delivery::Delivered), None)
    );
    let lapsed = again.step(&refuse(), at(5)).unwrap();
    assert_eq!(lapsed.delivery(), Some(Delivery::Lapsed));
    assert_eq!(
        lapsed.delivery_reason().as_deref(),
        Some("the server refused the answer twice: status 401")
    );
    assert_eq!(
        lapsed.step(&Transition::Deliver, at(6)),
        Err(TransitionError::Lapsed)
    );
    let again: Lifecycle = serde_json::from_value(serde_json::to_value(&lapsed).unwrap()).unwrap();
    assert_eq!(again, lapsed);
}

#[test]
fn an_answer_in_doubt_is_not_sent_again() {
    let answered = asked().step(&act(Action::Accept), at(1)).unwrap();
    let doubt = Transition::Doubt {
        why: "the server answered with HTTP status 500".to_owned(),
    };
    assert_eq!(
        answered.step(&doubt, at(1)),
        Err(TransitionError::NotDelivered)
    );
    let told = answered.step(&Transition::Deliver, at(2)).unwrap();
    let doubted = told.step(&doubt, at(3)).unwrap();
    assert_eq!(doubted.delivery(), Some(Delivery::InDoubt));
    assert_eq!(
        doubted.step(&Transition::Deliver, at(4)),
        Err(TransitionError::Delivered)
    );
    assert_eq!(
        doubted.step(&refuse(), at(4)),
        Err(TransitionError::NotDelivered)
    );
    let why = doubted.delivery_reason().unwrap();
    assert_eq!(why, "the server answered with HTTP status 500");
}

#[test]
fn an_answer_is_valid_for_a_bounded_time_after_the_act() {
    let asked = asked().deliverable_within(Duration::from_secs(10));
    assert_eq!((asked.valid_until(), asked.delivery()), (None, None));
    assert_eq!(
        asked.step(&lapse(Lapse::Expired), at(50)),
        Err(TransitionError::Open)
    );
    let answered = asked.step(&act(Action::Decline), at(20)).unwrap();
    assert_eq!(answered.valid_until(), Some(at(30)));
    assert_eq!(
        answered.step(&lapse(Lapse::Expired), at(29)),
        Err(TransitionError::NotDue)
    );
    assert!(answered.step(&Transition::Deliver, at(29)).is_ok());
    assert_eq!(
        answered.step(&Transition::Deliver, at(30)),
        Err(TransitionError::Lapsed)
    );
    let lapsed = answered.step(&lapse(Lapse::Expired), at(30)).unwrap();
    assert_eq!(
        (lapsed.phase(), lapsed.delivery()),
        (Phase::Declined, Some(Delivery::Lapsed))
    );
    assert!(lapsed.delivery_reason().unwrap().contains("in time"));
    assert!(answered.step(&lapse(Lapse::NoCall), at(21)).is_ok());
}

#[test]
fn each_act_has_its_own_end_and_fault() {
    for (action, phase, fault) in [
        (Action::Decline, Phase::Declined, PersonFault::Declined),
        (Action::Cancel, Phase::Cancelled, PersonFault::Cancelled),
    ] {
        let ended = asked().step(&act(action), at(1)).unwrap();
        assert_eq!(ended.phase(), phase);
        assert_eq!(ended.fault(), Some(fault.into()));
    }
}

#[test]
fn the_first_answer_wins_and_the_second_is_told_so() {
    let mut exchange = asked();
    let seen = exchange.version();
    exchange
        .compare_and_step(seen, &act(Action::Accept), at(1))
        .unwrap();
    assert_eq!(
        exchange.compare_and_step(seen, &act(Action::Decline), at(1)),
        Err(TransitionError::Changed {
            phase: Phase::Answered
        })
    );
    assert_eq!(
        exchange.step(&act(Action::Decline), at(2)),
        Err(TransitionError::Ended {
            phase: Phase::Answered
        })
    );
    assert_eq!(exchange.phase(), Phase::Answered);
}

#[test]
fn showing_twice_changes_nothing() {
    let shown = asked().step(&Transition::Show, at(1)).unwrap();
    let again = shown.step(&Transition::Show, at(2)).unwrap();
    assert_eq!(again, shown);
}

#[test]
fn time_running_out_is_its_own_end() {
    let waiting = asked();
    assert_eq!(
        waiting.step(&Transition::Expire, at(59)),
        Err(TransitionError::NotDue)
    );
    assert!(waiting.is_due(DEADLINE));
    assert_eq!(
        waiting.step(&act(Action::Accept), DEADLINE),
        Err(TransitionError::Late)
    );
    let ended = waiting.step(&Transition::Expire, at(70)).unwrap();
    assert_eq!((ended.phase(), ended.ended_by()), (Phase::TimedOut, None));
    let after = Duration::from_secs(60);
    assert_eq!(
        ended.fault(),
        Some(LimitFault::TimedOut { after, seen: false }.into())
    );
    let seen = waiting
        .step(&Transition::Show, at(1))
        .unwrap()
        .step(&Transition::Expire, DEADLINE)
        .unwrap();
    assert_eq!(
        seen.fault(),
        Some(LimitFault::TimedOut { after, seen: true }.into())
    );
}

#[test]
fn without_a_deadline_nothing_times_out() {
    let patient = Lifecycle::ask(START, None);
    assert_eq!(
        patient.step(&Transition::Expire, Timestamp::from_millis(u64::MAX)),
        Err(TransitionError::NotDue)
    );
    assert!(
        patient
            .step(&act(Action::Accept), Timestamp::from_millis(u64::MAX))
            .is_ok()
    );
}

#[test]
fn a_withdrawn_or_failed_question_says_why() {
    let withdrawn = asked().step(&withdraw(), at(1)).unwrap();
    assert_eq!(
        (withdrawn.phase(), withdrawn.reason()),
        (Phase::Withdrawn, Some("by-asker"))
    );
    assert_eq!(withdrawn.fault(), Some(PeerFault::Withdrawn.into()));
    let failed = asked()
        .step(
            &Transition::Fail {
                why: "the child died".into(),
            },
            at(1),
        )
        .unwrap();
    assert_eq!(
        (failed.phase(), failed.reason()),
        (Phase::Failed, Some("the child died"))
    );
    assert_eq!(
        asked().step(&Transition::Deliver, at(1)),
        Err(TransitionError::Open)
    );
}

fn any_step() -> impl Strategy<Value = Transition> {
    prop_oneof![
        Just(Transition::Show),
        Just(act(Action::Accept)),
        Just(act(Action::Decline)),
        Just(act(Action::Cancel)),
        Just(Transition::Expire),
        Just(withdraw()),
        Just(Transition::Fail {
            why: "broke".into()
        }),
        Just(Transition::Deliver),
        Just(Transition::MoveToPeople {
            why: NotAPerson::Malformed
        }),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_a_question_ends_once_and_is_told_once(
        steps in prop::collection::vec((any_step(), 0..5_u64), 0..40)
    ) {
        let mut exchange = asked();
        let mut now = START;
        let (mut ends, mut told) = (0, 0);
        for (step, seconds) in steps {
            now = now.after(Duration::from_secs(seconds));
            let before = exchange.clone();
            match exchange.step(&step, now) {
                Ok(next) => exchange = next,
                Err(_) => continue,
            }
            ends += u32::from(before.is_open() && !exchange.is_open());
            told += u32::from(before.delivered_at().is_none() && exchange.delivered_at().is_some());
            prop_assert_eq!(exchange.version(), before.version() + u64::from(exchange != before));
            prop_assert!(before.is_open() || exchange.phase() == before.phase());
            if exchange.phase().action().is_some() && before.is_open() {
                prop_assert!(matches!(step, Transition::Act { .. }), "only a person's act is an action");
                prop_assert!(now < DEADLINE);
            }
            let stored = serde_json::to_string(&exchange).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Lifecycle>(&stored).unwrap(), &exchange);
        }
        prop_assert!(ends <= 1 && told <= ends);
    }
}
