//! The actions on one question: each cell of the table, and random runs against a small reference with a virtual clock.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::collections::BTreeSet;
use std::num::NonZeroU8;
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_policy::Addressee;
use mcp_elicit_policy::identity::Identity;
use mcp_elicit_policy::parts::Part;
use mcp_elicit_policy::quorum::{
    Act, ActingPerson, AnswersDigest, Denied, Membership, Quorum, QuorumEnd, QuorumNotice,
    QuorumState,
};
use mcp_elicit_policy::rules::{AskedPeople, Plan};
use proptest::prelude::*;

const START: Timestamp = Timestamp::from_millis(1_000_000);

/// Groups with their present members, and the caller.
#[derive(Clone, Debug, Default)]
struct World {
    ops: BTreeSet<String>,
    leads: BTreeSet<String>,
    caller: String,
}

impl Membership for World {
    fn is_member(&self, group: &str, person: &str) -> bool {
        match group {
            "ops" => self.ops.contains(person),
            "leads" => self.leads.contains(person),
            _ => false,
        }
    }

    fn is_caller(&self, person: &str) -> bool {
        person == self.caller
    }

    fn members(&self, group: &str) -> Option<Vec<String>> {
        let members = match group {
            "ops" => &self.ops,
            "leads" => &self.leads,
            _ => return None,
        };
        Some(members.iter().cloned().collect())
    }
}

/// A group by a claim, of which any person may be a member.
struct Claimed;

impl Membership for Claimed {
    fn is_member(&self, _: &str, _: &str) -> bool {
        true
    }

    fn is_caller(&self, _: &str) -> bool {
        false
    }
}

/// Every person is in the group `ops`. The part of a name before the dot identifies the person, and only names in
/// capitals are in the file.
struct Named {
    knows_subjects: bool,
}

impl Membership for Named {
    fn is_member(&self, group: &str, _: &str) -> bool {
        group == "ops"
    }

    fn is_caller(&self, _: &str) -> bool {
        false
    }

    fn identity(&self, person: &str) -> Identity {
        let (subject, _) = person.split_once('.').unwrap();
        if self.knows_subjects {
            Identity::default().with_login("issuer", &subject.to_lowercase())
        } else {
            Identity::default()
        }
    }

    fn is_in_file(&self, person: &str) -> bool {
        person.chars().all(|letter| !letter.is_lowercase())
    }
}

/// The same after the name `A.1` was given to another person.
struct Renamed(Named);

impl Membership for Renamed {
    fn is_member(&self, group: &str, person: &str) -> bool {
        self.0.is_member(group, person)
    }

    fn is_caller(&self, person: &str) -> bool {
        self.0.is_caller(person)
    }

    fn identity(&self, person: &str) -> Identity {
        self.0
            .identity(if person == "A.1" { "new.1" } else { person })
    }

    fn is_in_file(&self, person: &str) -> bool {
        self.0.is_in_file(person)
    }
}

fn names(names: &str) -> BTreeSet<String> {
    names.chars().map(String::from).collect()
}

fn world() -> World {
    World {
        ops: names("abc"),
        leads: names("d"),
        caller: "a".to_owned(),
    }
}

fn group(name: &str) -> Addressee {
    Addressee::Group(name.to_owned())
}

fn person(name: &str) -> Addressee {
    Addressee::Person(name.to_owned())
}

fn plan(need: u8, not_caller: bool) -> Plan {
    Plan {
        ask: AskedPeople {
            to: vec![group("ops")],
            need: NonZeroU8::new(need).unwrap(),
            not_caller,
            each: Vec::new(),
            is_any: false,
        },
        delegate_to: vec![group("leads")],
        ..Plan::caller()
    }
}

fn asked(need: u8, not_caller: bool) -> Quorum {
    Quorum::new(&plan(need, not_caller), world().ops.into_iter().collect())
}

fn act(
    quorum: &Quorum,
    name: &str,
    act: Act,
    world: &World,
) -> Result<(Quorum, Vec<QuorumNotice>), Denied> {
    act_among(quorum, name, act, world)
}

fn act_among(
    quorum: &Quorum,
    name: &str,
    act: Act,
    people: &dyn Membership,
) -> Result<(Quorum, Vec<QuorumNotice>), Denied> {
    let by = ActingPerson {
        person: name,
        login_age: None,
    };
    quorum.act(by, act, START, people)
}

fn done(quorum: &Quorum, name: &str, what: Act) -> Quorum {
    act(quorum, name, what, &world()).unwrap().0
}

fn refused(quorum: &Quorum, name: &str, what: Act) -> Denied {
    act(quorum, name, what, &world()).unwrap_err()
}

fn digest(of: u8) -> AnswersDigest {
    [of; 32]
}

fn fill(of: u8, version: u32) -> Act {
    Act::Fill {
        digest: digest(of),
        version,
    }
}

fn confirm(of: u8) -> Act {
    Act::Confirm { digest: digest(of) }
}

/// A question that one of `ops` and one of `leads` must confirm; `b` is in both groups.
fn of_two_groups(not_caller: bool) -> (Quorum, World) {
    let part = |name: &str| Part {
        to: vec![group(name)],
        need: NonZeroU8::MIN,
    };
    let mut plan = plan(2, not_caller);
    plan.ask.to = vec![group("ops"), group("leads")];
    plan.ask.each = vec![part("ops"), part("leads")];
    plan.delegate_to = vec![person("x")];
    let world = World {
        leads: names("bd"),
        ..world()
    };
    (Quorum::new(&plan, Vec::new()), world)
}

fn missing(quorum: &Quorum, world: &World) -> String {
    let name = |to: &Addressee| to.to_string().replace("group:", "");
    let missing = quorum.missing_parts(world);
    missing.in_words(&name).unwrap_or_default()
}

#[test]
fn people_of_two_groups_must_confirm_and_one_person_counts_for_one() {
    let (open, world) = of_two_groups(false);
    assert_eq!(missing(&open, &world), "1 of ops and 1 of leads");
    let (one, _) = act(&open, "a", fill(1, 0), &world).unwrap();
    assert_eq!(missing(&one, &world), "1 of leads");
    // A second one of the same group is not counted, and is told so.
    let second = act(&one, "c", confirm(1), &world).unwrap_err();
    assert_eq!(second, Denied::NotMissing);
    let (both, _) = act(&one, "d", confirm(1), &world).unwrap();
    assert!(matches!(
        both.state(),
        QuorumState::Ended(QuorumEnd::Answered { .. })
    ));
    // A person in both groups counts for whichever is left.
    let (first, _) = act(&open, "b", fill(1, 0), &world).unwrap();
    assert_eq!(missing(&first, &world), "1 of ops or leads");
    assert!(!matches!(first.state(), QuorumState::Ended(_)));
    for other in ["a", "d"] {
        let (both, _) = act(&first, other, confirm(1), &world).unwrap();
        assert!(
            matches!(both.state(), QuorumState::Ended(QuorumEnd::Answered { .. })),
            "{other}"
        );
    }
    // An edit drops the votes so far; the groups are missing again.
    let (edited, _) = act(&one, "c", fill(2, 1), &world).unwrap();
    assert_eq!(edited.votes(), ["c"]);
    assert_eq!(missing(&edited, &world), "1 of leads");
}

#[test]
fn parts_hold_for_the_caller_for_those_who_left_and_for_delegates() {
    let (open, mut world) = of_two_groups(true);
    let own = act(&open, "a", fill(1, 0), &world).unwrap_err();
    assert_eq!(own, Denied::IsCaller);
    let (one, _) = act(&open, "c", fill(1, 0), &world).unwrap();
    // A delegate counts for the group of the person who delegated, and for no other.
    let delegated = Act::Delegate { to: person("x") };
    let (handed, _) = act(&one, "d", delegated, &world).unwrap();
    let (both, _) = act(&handed, "x", confirm(1), &world).unwrap();
    assert!(matches!(
        both.state(),
        QuorumState::Ended(QuorumEnd::Answered { .. })
    ));
    // Two people of `ops` do not become one of each by one leaving.
    world.ops.remove("c");
    let (dropped, notices) = act(&one, "d", confirm(1), &world).unwrap();
    assert_eq!(notices, [QuorumNotice::VoteDropped("c".to_owned())]);
    assert_eq!(missing(&dropped, &world), "1 of ops");
    // An escalation adds people who count for any group.
    let escalated = one.escalate(person("y"));
    let (both, _) = act(&escalated, "y", confirm(1), &world).unwrap();
    assert!(!matches!(both.state(), QuorumState::Ended(_)), "c has left");
}

#[test]
fn a_question_of_groups_is_stored_and_one_without_is_read_as_before() {
    let (open, _) = of_two_groups(false);
    let stored = serde_json::to_string(&open).unwrap();
    assert_eq!(serde_json::from_str::<Quorum>(&stored).unwrap(), open);
    let before = serde_json::to_value(asked(2, false)).unwrap();
    assert!(before.get("parts").is_none(), "{before}");
}

#[test]
fn one_answer_ends_a_question_that_needs_one() {
    let quorum = done(&asked(1, false), "b", fill(1, 0));
    let expected = QuorumEnd::Answered {
        digest: digest(1),
        votes: vec!["b".to_owned()],
    };
    assert_eq!(quorum.state(), &QuorumState::Ended(expected));
    assert_eq!(refused(&quorum, "c", Act::Decline), Denied::Ended);
}

#[test]
fn one_fills_and_the_others_confirm_exactly_these_answers() {
    let open = asked(2, true);
    assert_eq!(refused(&open, "b", confirm(1)), Denied::NothingFilled);
    assert_eq!(refused(&open, "a", fill(1, 0)), Denied::IsCaller);
    assert_eq!(refused(&open, "d", fill(1, 0)), Denied::NotAddressed);
    let filled = done(&open, "b", fill(1, 0));
    assert_eq!(filled.missing(), 1);
    assert_eq!(refused(&filled, "b", confirm(1)), Denied::AlreadyVoted);
    assert_eq!(refused(&filled, "c", confirm(2)), Denied::Changed);
    assert!(matches!(
        done(&filled, "c", confirm(1)).state(),
        QuorumState::Ended(QuorumEnd::Answered { .. })
    ));
    assert!(matches!(
        done(&filled, "c", fill(1, 1)).state(),
        QuorumState::Ended(QuorumEnd::Answered { .. })
    ));
    assert!(matches!(
        done(&filled, "c", Act::Decline).state(),
        QuorumState::Ended(QuorumEnd::Declined { .. })
    ));
}

#[test]
fn stale_confirm() {
    // The answers change between display and confirmation: a person cannot agree to answers that they have not seen.
    let filled = done(&asked(2, true), "b", fill(1, 0));
    assert_eq!(refused(&filled, "c", fill(2, 0)), Denied::Changed);
    let (edited, notices) = act(&filled, "c", fill(2, 1), &world()).unwrap();
    assert_eq!(notices, [QuorumNotice::LookAgain(vec!["b".to_owned()])]);
    assert_eq!((edited.missing(), edited.version()), (1, 2));
    assert_eq!(refused(&edited, "b", confirm(1)), Denied::Changed);
    assert!(matches!(
        done(&edited, "b", confirm(2)).state(),
        QuorumState::Ended(_)
    ));
}

#[test]
fn a_vote_of_somebody_who_left_does_not_count() {
    let filled = done(&asked(3, false), "b", fill(1, 0));
    let two = done(&filled, "c", confirm(1));
    let mut later = world();
    later.ops.remove("c");
    let (waits, notices) = act(&two, "a", confirm(1), &later).unwrap();
    assert_eq!(notices, [QuorumNotice::VoteDropped("c".to_owned())]);
    assert_eq!(waits.missing(), 1);
    assert_eq!(
        act(&waits, "c", confirm(1), &later).unwrap_err(),
        Denied::LeftGroup
    );
    assert_eq!(waits.void_votes(&later), ["c"]);
    // Without the person who entered the answers, those who agreed to exactly these still agree.
    let mut later = world();
    later.ops.remove("b");
    assert_eq!(two.void_votes(&later), ["b"], "before anybody acts");
    let (waits, notices) = act(&two, "a", confirm(1), &later).unwrap();
    assert_eq!(notices, [QuorumNotice::VoteDropped("b".to_owned())]);
    assert_eq!(waits.votes(), ["c", "a"]);
    assert_eq!((waits.missing(), waits.version()), (1, two.version()));
    // Only two are left, so three cannot agree until another person joins them.
    assert_eq!(waits.people_left(&later), Some(2));
    later.ops.insert("e".to_owned());
    assert_eq!(waits.void_votes(&later), ["b"]);
    let (ended, _) = act(&waits, "e", confirm(1), &later).unwrap();
    let expected = QuorumEnd::Answered {
        digest: digest(1),
        votes: ["c", "a", "e"].map(str::to_owned).to_vec(),
    };
    assert_eq!(ended.state(), &QuorumState::Ended(expected));
    // A person who is a member again may agree again.
    let (ended, _) = act(&waits, "b", confirm(1), &world()).unwrap();
    assert!(
        matches!(ended.state(), QuorumState::Ended(_)) && ended.void_votes(&world()).is_empty()
    );
}

#[test]
fn a_question_is_never_handed_on_so_that_too_few_are_left() {
    let two = World {
        ops: names("bc"),
        ..world()
    };
    let to = |name| Act::Delegate { to: person(name) };
    let too_few = Denied::TooFewLeft { need: 2, left: 1 };
    let open = asked(2, false);
    // To a person who is asked already, in person or by the group.
    assert_eq!(act(&open, "b", to("c"), &two).unwrap_err(), too_few);
    let group_act = Act::Delegate { to: group("ops") };
    assert_eq!(act(&open, "b", group_act, &two).unwrap_err(), too_few);
    // Of three people, of whom two must agree, one may delegate to the others, but not a second one.
    let handed = done(&open, "b", to("c"));
    assert_eq!(refused(&handed, "c", to("a")), too_few);
    assert_eq!(handed.people_left(&world()), Some(2));
    // Delegation to a new person is always possible.
    let (handed, _) = act(&open, "b", to("d"), &two).unwrap();
    assert_eq!(handed.people_left(&two), Some(2));
    // If a claim makes members, the number is unknown.
    assert_eq!(open.people_left(&Claimed), None);
    assert!(act_among(&open, "b", to("c"), &Claimed).is_ok());
}

#[test]
fn a_question_that_is_handed_back_is_for_the_first_person_again() {
    let to = |name| Act::Delegate { to: person(name) };
    let two = World {
        ops: names("bc"),
        ..world()
    };
    let (handed, _) = act(&asked(2, false), "b", to("d"), &two).unwrap();
    assert!(handed.has_handed_on("b"));
    let (filled, _) = act(&handed, "d", fill(1, 0), &two).unwrap();
    assert_eq!(
        act(&filled, "b", confirm(1), &two).unwrap_err(),
        Denied::Delegated
    );
    let (back, _) = act(&filled, "c", to("b"), &two).unwrap();
    assert!(!back.has_handed_on("b") && back.has_handed_on("c"));
    let (ended, _) = act(&back, "b", confirm(1), &two).unwrap();
    assert!(matches!(
        ended.state(),
        QuorumState::Ended(QuorumEnd::Answered { .. })
    ));
    // The same between two, again and again.
    let mut quorum = act(&asked(1, false), "b", to("c"), &two).unwrap().0;
    for (from, name) in [("c", "b"), ("b", "c"), ("c", "b")] {
        assert_eq!(
            act(&quorum, name, Act::Decline, &two).unwrap_err(),
            Denied::Delegated
        );
        quorum = act(&quorum, from, to(name), &two).unwrap().0;
    }
    assert!(act(&quorum, "b", fill(1, 0), &two).is_ok());
}

#[test]
fn a_claim_keeps_others_from_filling_until_it_ends_or_is_taken() {
    let claimed = done(&asked(1, false), "b", Act::Claim);
    assert_eq!(refused(&claimed, "c", fill(1, 0)), Denied::Claimed);
    assert_eq!(refused(&claimed, "c", Act::Claim), Denied::Claimed);
    let (taken, notices) = act(&claimed, "c", Act::TakeOver, &world()).unwrap();
    assert_eq!(notices, [QuorumNotice::TakenOver("b".to_owned())]);
    assert_eq!(refused(&taken, "b", fill(1, 0)), Denied::Claimed);
    let later = START.after(Duration::from_secs(15 * 60));
    let by = ActingPerson {
        person: "c",
        login_age: None,
    };
    assert!(claimed.act(by, fill(1, 0), later, &world()).is_ok());
    let without = Quorum::new(
        &Plan {
            claim: None,
            ..plan(1, false)
        },
        Vec::new(),
    );
    assert_eq!(refused(&without, "b", Act::Claim), Denied::NotOffered);
}

#[test]
fn a_claim_is_made_again_in_its_second_half_only() {
    let claimed = done(&asked(1, false), "b", Act::Claim);
    let by = ActingPerson {
        person: "b",
        login_age: None,
    };
    let again = |act: Act, minutes: u64| {
        let at = START.after(Duration::from_secs(minutes * 60));
        claimed.act(by, act, at, &world()).unwrap().0
    };
    for act in [Act::Claim, Act::TakeOver] {
        assert_eq!(again(act.clone(), 0), claimed);
        assert_eq!(again(act.clone(), 7), claimed);
        let renewed = again(act, 8);
        let ends = START.after(Duration::from_secs(23 * 60));
        assert_eq!(renewed.claimed_until(START), Some(ends));
    }
}

#[test]
fn a_question_is_delegated_within_the_rule() {
    let open = asked(1, true);
    let delegate = |to| Act::Delegate { to };
    assert_eq!(
        refused(&open, "b", delegate(person("e"))),
        Denied::CannotDelegate
    );
    assert_eq!(
        refused(&open, "b", delegate(person("a"))),
        Denied::CannotDelegate
    );
    assert_eq!(
        refused(&open, "b", delegate(person("b"))),
        Denied::CannotDelegate
    );
    assert_eq!(refused(&open, "d", fill(1, 0)), Denied::NotAddressed);
    let handed = done(&open, "b", delegate(person("d")));
    assert_eq!(refused(&handed, "b", fill(1, 0)), Denied::Delegated);
    assert!(matches!(
        done(&handed, "d", fill(1, 0)).state(),
        QuorumState::Ended(_)
    ));
    // The chain of delegations is limited.
    let mut chain = World {
        leads: names("defgh"),
        ..world()
    };
    chain.caller = String::new();
    let mut quorum = open;
    for (from, to) in [("b", "d"), ("d", "e"), ("e", "f")] {
        quorum = act(&quorum, from, delegate(person(to)), &chain).unwrap().0;
    }
    assert_eq!(
        act(&quorum, "f", delegate(person("g")), &chain).unwrap_err(),
        Denied::CannotDelegate
    );
}

#[test]
fn only_the_single_addressee_may_cancel() {
    assert_eq!(
        refused(&asked(1, false), "b", Act::Cancel),
        Denied::NotOffered
    );
    let own = Quorum::new(&Plan::caller(), vec!["a".to_owned()]);
    assert!(matches!(
        done(&own, "a", Act::Cancel).state(),
        QuorumState::Ended(QuorumEnd::Cancelled { .. })
    ));
}

#[test]
fn an_old_login_may_not_act_but_comment() {
    let rule = Plan {
        reauth: Some(Duration::from_secs(10 * 60)),
        ..plan(1, false)
    };
    let quorum = Quorum::new(&rule, Vec::new());
    let old = ActingPerson {
        person: "b",
        login_age: Some(Duration::from_secs(11 * 60)),
    };
    assert_eq!(
        quorum.act(old, fill(1, 0), START, &world()).unwrap_err(),
        Denied::LoginTooOld
    );
    let unknown = ActingPerson {
        login_age: None,
        ..old
    };
    assert_eq!(
        quorum
            .act(unknown, fill(1, 0), START, &world())
            .unwrap_err(),
        Denied::LoginTooOld
    );
    assert!(quorum.act(old, Act::Comment, START, &world()).is_ok());
    let fresh = ActingPerson {
        login_age: Some(Duration::from_secs(60)),
        ..old
    };
    assert!(quorum.act(fresh, fill(1, 0), START, &world()).is_ok());
}

#[test]
fn timers_and_administrators_end_and_readdress() {
    let filled = done(&asked(2, false), "b", fill(1, 0));
    let more = filled.escalate(group("leads"));
    assert!(matches!(
        done(&more, "d", confirm(1)).state(),
        QuorumState::Ended(QuorumEnd::Answered { .. })
    ));
    let (again, notices) = filled
        .readdress(vec![group("leads")], vec!["d".to_owned()])
        .unwrap();
    assert_eq!((again.state(), notices.len()), (&QuorumState::Open, 2));
    assert_eq!(
        refused(&again, "b", fill(1, again.version())),
        Denied::NotAddressed
    );
    let over = filled.time_out().unwrap();
    assert_eq!(over.state(), &QuorumState::Ended(QuorumEnd::TimedOut));
    assert_eq!(over.withdraw(), Err(Denied::Ended));
    assert_eq!(over.escalate(group("leads")), over);
    assert_eq!(
        filled.withdraw().unwrap().state(),
        &QuorumState::Ended(QuorumEnd::Withdrawn)
    );
}

/// A step of a random run.
#[derive(Clone, Debug)]
enum Step {
    Act(usize, u8, u8, bool),
    Toggle(usize, bool),
    Wait(u64),
    Escalate,
    TimeOut,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0_usize..6, 0_u8..8, 0_u8..3, any::<bool>()).prop_map(|(who, what, of, fresh)| Step::Act(who, what, of, fresh)),
        3 => (0_usize..6, any::<bool>()).prop_map(|(who, ops)| Step::Toggle(who, ops)),
        2 => (1_u64..1_200).prop_map(Step::Wait),
        1 => Just(Step::Escalate),
        1 => Just(Step::TimeOut),
    ]
}

/// The reference: a list of the accepted actions, from which everything is computed again each time.
#[derive(Default)]
struct Reference {
    votes: Vec<(String, u8)>,
    given_away: Vec<(String, String, usize)>,
    claim: Option<(String, Timestamp)>,
    leads_asked: bool,
    changes: u32,
    over: Option<&'static str>,
}

impl Reference {
    fn asked(&self, who: &str, world: &World) -> bool {
        let by_rule =
            |who: &str| world.ops.contains(who) || self.leads_asked && world.leads.contains(who);
        // A person who was chosen as a member of a group must still be a member of it, or of the other.
        let is_member = world.ops.contains(who) || world.leads.contains(who);
        by_rule(who) || is_member && self.given_away.iter().any(|(_, to, _)| to == who)
    }

    fn depth(&self, who: &str, world: &World) -> usize {
        if world.ops.contains(who) || self.leads_asked && world.leads.contains(who) {
            return 0;
        }
        let given = self.given_away.iter().filter(|(_, to, _)| to == who);
        given.map(|(_, _, depth)| *depth).min().unwrap_or(0)
    }

    fn may(&self, who: &str, world: &World) -> bool {
        self.asked(who, world) && who != world.caller
    }

    /// Returns `true` if the person has delegated the question, and it has not been delegated back since.
    fn gave_away(&self, who: &str) -> bool {
        let mut gave = false;
        for (from, to, _) in &self.given_away {
            gave = from == who || gave && to != who;
        }
        gave
    }

    fn left(&self, world: &World) -> usize {
        let all = ["a", "b", "c", "d", "e", "f"].into_iter();
        all.filter(|who| self.may(who, world) && !self.gave_away(who))
            .count()
    }

    /// Applies an action, and returns `false` if it is refused.
    fn act(
        &mut self,
        who: &str,
        act: &Act,
        need: usize,
        fresh: bool,
        now: Timestamp,
        world: &World,
    ) -> bool {
        if self.over.is_some() {
            return false;
        }
        if *act == Act::Comment {
            return who == world.caller || self.asked(who, world);
        }
        if !self.may(who, world) || self.gave_away(who) {
            return false;
        }
        let claimed_by_other = self
            .claim
            .as_ref()
            .is_some_and(|(by, until)| by != who && *until > now);
        let current = self.votes.last().map(|(_, of)| *of);
        let has_voted = self.votes.iter().any(|(voter, _)| voter == who);
        match act {
            Act::Fill { .. } | Act::Claim if claimed_by_other => return false,
            Act::Fill { digest, .. } if current != Some(digest[0]) => {
                if !fresh {
                    return false;
                }
                self.votes = vec![(who.to_owned(), digest[0])];
                self.changes += 1;
            }
            Act::Fill { digest, .. } | Act::Confirm { digest } => {
                if current != Some(digest[0]) || has_voted {
                    return false;
                }
                self.votes.push((who.to_owned(), digest[0]));
            }
            Act::Decline => self.over = Some("declined"),
            Act::Cancel | Act::Comment => return false,
            Act::Claim | Act::TakeOver => {
                let half = now.after(Duration::from_secs(15 * 60) / 2);
                let own = self.claim.as_ref().filter(|(by, _)| by == who);
                if own.is_some_and(|(_, until)| *until > half) {
                    return true;
                }
                self.claim = Some((who.to_owned(), now.after(Duration::from_secs(15 * 60))));
            }
            Act::Delegate { to } => {
                let Addressee::Person(to) = to else {
                    return false;
                };
                let is_known = world.ops.contains(to) || world.leads.contains(to);
                if to == who || !is_known || *to == world.caller || self.depth(who, world) >= 3 {
                    return false;
                }
                let depth = self.depth(who, world) + 1;
                let before = self.left(world);
                self.given_away.push((who.to_owned(), to.clone(), depth));
                let after = self.left(world);
                if after < before && after < need {
                    self.given_away.pop();
                    return false;
                }
                if self.claim.as_ref().is_some_and(|(by, _)| by == who) {
                    self.claim = None;
                }
            }
        }
        if self.over.is_none() && self.votes.len() >= need {
            let votes = std::mem::take(&mut self.votes);
            self.votes = votes
                .into_iter()
                .filter(|(voter, _)| self.may(voter, world))
                .collect();
            if self.votes.len() >= need {
                self.over = Some("answered");
            }
        }
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Random actions of six people whose groups change: the state machine and the reference agree on every action, and
    /// every answered question was agreed to by enough people, each entitled, none the caller.
    #[test]
    fn not_caller(need in 1_u8..4, steps in proptest::collection::vec(step(), 1..40)) {
        let people = ["a", "b", "c", "d", "e", "f"];
        let mut world = World { ops: names("abcd"), leads: names("de"), caller: "a".to_owned() };
        let mut quorum = Quorum::new(&plan(need, true), world.ops.iter().cloned().collect());
        let mut reference = Reference::default();
        let mut now = START;
        for step in steps {
            match step {
                Step::Wait(seconds) => now = now.after(Duration::from_secs(seconds)),
                Step::Toggle(who, is_ops) => {
                    let group = if is_ops { &mut world.ops } else { &mut world.leads };
                    if !group.remove(people[who]) {
                        group.insert(people[who].to_owned());
                    }
                }
                Step::Escalate => {
                    quorum = quorum.escalate(group("leads"));
                    reference.leads_asked |= reference.over.is_none();
                }
                Step::TimeOut => {
                    let over = quorum.time_out();
                    prop_assert_eq!(over.is_ok(), reference.over.is_none());
                    if let Ok(over) = over {
                        quorum = over;
                        reference.over = Some("timed out");
                    }
                }
                Step::Act(who, what, of, fresh) => {
                    let version = if fresh { quorum.version() } else { quorum.version().wrapping_sub(1) };
                    let act = match what {
                        0 | 1 => fill(of, version),
                        2 | 3 => confirm(of),
                        4 if of == 0 => Act::Decline,
                        4 => Act::Cancel,
                        5 => Act::Claim,
                        6 if of == 0 => Act::TakeOver,
                        6 => Act::Comment,
                        _ => Act::Delegate { to: person(people[(who + 1 + usize::from(of)) % 6]) },
                    };
                    let by = ActingPerson { person: people[who], login_age: None };
                    let before = quorum.clone();
                    let acted = quorum.act(by, act.clone(), now, &world);
                    let expected = reference.act(people[who], &act, usize::from(need), fresh, now, &world);
                    prop_assert_eq!(acted.is_ok(), expected, "{:?} {:?} {:?} {:?}", people[who], act, acted, before);
                    if let Ok((next, _)) = acted {
                        quorum = next;
                    }
                    let left = quorum.people_left(&world).unwrap();
                    prop_assert_eq!(left, reference.left(&world));
                    // No action leaves fewer people than needed, if there were enough.
                    let was_enough = before.people_left(&world).unwrap() >= usize::from(need);
                    prop_assert!(!was_enough || left >= usize::from(need));
                    if let QuorumState::Ended(QuorumEnd::Answered { votes, .. }) = quorum.state()
                        && before.state() != quorum.state()
                    {
                        let distinct: BTreeSet<_> = votes.iter().collect();
                        prop_assert!(distinct.len() >= usize::from(need));
                        prop_assert!(!distinct.contains(&world.caller));
                        for voter in votes {
                            prop_assert!(reference.may(voter, &world), "{voter}");
                        }
                    }
                }
            }
            let state = match quorum.state() {
                QuorumState::Open => None,
                QuorumState::Filled { digest, votes } => {
                    let expected: Vec<_> = reference.votes.iter().map(|(voter, _)| voter.clone()).collect();
                    prop_assert_eq!(votes, &expected);
                    prop_assert_eq!(Some(digest[0]), reference.votes.last().map(|(_, of)| *of));
                    None
                }
                QuorumState::Ended(QuorumEnd::Answered { .. }) => Some("answered"),
                QuorumState::Ended(QuorumEnd::Declined { .. }) => Some("declined"),
                QuorumState::Ended(QuorumEnd::TimedOut) => Some("timed out"),
                QuorumState::Ended(QuorumEnd::Cancelled { .. } | QuorumEnd::Withdrawn) => Some("other"),
            };
            prop_assert_eq!(state, reference.over);
            prop_assert_eq!(quorum.version(), reference.changes);
        }
    }
}

#[test]
fn one_person_agrees_once_under_whatever_name() {
    let known = Named {
        knows_subjects: true,
    };
    let (filled, _) = act_among(&asked(2, false), "a.1", fill(1, 0), &known).unwrap();
    for (name, what) in [
        ("a.2", confirm(1)),
        ("a.2", fill(1, 1)),
        ("A.3", confirm(1)),
    ] {
        let refused = act_among(&filled, name, what, &known).unwrap_err();
        assert_eq!(refused, Denied::AlreadyVotedAs, "{name}");
    }
    // The identity is stored with the vote: present knowledge about the old name does not matter.
    let stored: Quorum = serde_json::from_str(&serde_json::to_string(&filled).unwrap()).unwrap();
    assert_eq!(stored, filled);
    let (ended, _) = act_among(&stored, "b.1", confirm(1), &known).unwrap();
    assert_eq!(ended.votes(), ["a.1", "b.1"]);
    // Other answers are not a second vote.
    let (edited, _) = act_among(&filled, "a.2", fill(2, 1), &known).unwrap();
    assert_eq!(edited.votes(), ["a.2"]);
}

#[test]
fn a_vote_is_of_the_person_who_agreed_and_not_of_whoever_has_the_name_later() {
    let before = Named {
        knows_subjects: true,
    };
    let (filled, _) = act_among(&asked(2, false), "A.1", fill(1, 0), &before).unwrap();
    let later = Renamed(before);
    assert_eq!(filled.void_votes(&later), ["A.1"]);
    let (confirmed, notices) = act_among(&filled, "B.1", confirm(1), &later).unwrap();
    assert_eq!(confirmed.votes(), ["B.1"]);
    assert_eq!(notices, [QuorumNotice::VoteDropped("A.1".into())]);
    // The person who has the name now has not agreed yet.
    let (replaced, notices) = act_among(&filled, "A.1", confirm(1), &later).unwrap();
    assert_eq!(replaced.votes(), ["A.1"]);
    assert_eq!(notices, [QuorumNotice::VoteDropped("A.1".into())]);
    assert!(replaced.void_votes(&later).is_empty());
    let (ended, _) = act_among(&replaced, "B.1", confirm(1), &later).unwrap();
    assert_eq!(ended.votes(), ["A.1", "B.1"]);
}

#[test]
fn of_whom_nothing_is_known_does_not_agree_beside_somebody_else_but_two_of_the_file_do() {
    let unknown = Named {
        knows_subjects: false,
    };
    let (filled, _) = act_among(&asked(2, false), "A.1", fill(1, 0), &unknown).unwrap();
    let refused = act_among(&filled, "b.1", confirm(1), &unknown).unwrap_err();
    assert_eq!(refused, Denied::VoterUnknown);
    act_among(&filled, "B.1", confirm(1), &unknown).unwrap();
    // A vote of an earlier version has no identity, and the name stands for the person.
    let text = serde_json::to_string(&filled).unwrap();
    assert!(!text.contains("identities"), "{text}");
}

#[test]
fn who_was_chosen_as_a_member_of_a_group_answers_as_long_as_they_are_one() {
    let handed = done(&asked(2, false), "a", Act::Delegate { to: person("b") });
    let to_lead = done(&handed, "c", Act::Delegate { to: person("d") });
    let mut later = world();
    later.ops.remove("b");
    assert_eq!(
        act(&to_lead, "b", fill(1, 0), &later).unwrap_err(),
        Denied::LeftGroup
    );
    let (filled, _) = act(&to_lead, "d", fill(1, 0), &later).unwrap();
    assert_eq!(filled.votes(), ["d"]);
    later.leads.remove("d");
    assert_eq!(
        act(&to_lead, "d", fill(1, 0), &later).unwrap_err(),
        Denied::LeftGroup
    );
}
