//! Questions that a rule addresses to people: two who agree, members who leave, claims, comments, reminders and
//! escalations.

mod outbox;
mod resealed;
mod restored;

use std::collections::BTreeSet;
use std::num::NonZeroU8;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_elicit_core::lifecycle::Phase;
use mcp_elicit_policy::people::Addressee;
use mcp_elicit_policy::quorum::{ActingPerson, Denied, Membership};
use mcp_elicit_policy::rules::{AskedPeople, Plan, ReasonsReach};
use mcp_elicit_policy::schedule::Escalation;

use super::*;
use crate::store::Sqlite;
use crate::team::{ActDetails, Acted, MAX_COMMENTS, MAX_NOTES, Team, TeamAct, TeamCaller};

/// The present members of group `ops`; `lee` leads.
struct Ops(BTreeSet<&'static str>);

impl Membership for Ops {
    fn is_member(&self, group: &str, person: &str) -> bool {
        match group {
            "ops" => self.0.contains(person),
            _ => person == "lee",
        }
    }

    fn is_caller(&self, person: &str) -> bool {
        person == "cy"
    }

    fn members(&self, group: &str) -> Option<Vec<String>> {
        let ops = self.0.iter().map(|name| (*name).to_owned());
        Some(match group {
            "ops" => ops.collect(),
            _ => vec!["lee".to_owned()],
        })
    }
}

fn ops() -> Ops {
    Ops(BTreeSet::from(["ada", "bob", "cy"]))
}

fn plan() -> Plan {
    Plan {
        ask: AskedPeople {
            to: vec![Addressee::Group("ops".to_owned())],
            need: NonZeroU8::new(2).unwrap(),
            not_caller: true,
            each: Vec::new(),
            is_any: false,
        },
        remind: vec![Duration::from_secs(2)],
        escalate: vec![Escalation {
            after: Duration::from_secs(3),
            to: Addressee::Group("leads".to_owned()),
        }],
        ..Plan::caller()
    }
}

pub(super) fn team(rule_digest: &str) -> Team {
    let people = ["ada", "bob", "cy"].map(str::to_owned).to_vec();
    let usual = Duration::from_secs(8);
    Team::new(
        "deploys",
        rule_digest,
        TeamCaller::default(),
        &plan(),
        people,
        usual,
    )
}

fn asked_of(rule_digest: &str) -> NewQuestion {
    NewQuestion {
        team: Some(team(rule_digest).to_plan().unwrap()),
        ..asked("Who?")
    }
}

async fn create(
    record: &Arc<Record>,
    asked: &NewQuestion,
) -> (String, mpsc::UnboundedReceiver<RecordEvent>) {
    let (tell, told) = mpsc::unbounded_channel();
    let made = record
        .create(
            &local(),
            asked,
            SessionKey(4),
            &tell,
            Durability::BeforeSeen,
        )
        .await;
    (made.unwrap().id, told)
}

fn by(person: &str) -> ActingPerson<'_> {
    let login_age = None;
    ActingPerson { person, login_age }
}

fn named(name: &str) -> mcp_elicit_core::answer::Answers {
    form().check(serde_json::json!({"name": name})).unwrap()
}

async fn fill(record: &Arc<Record>, id: &str, person: &str, name: &str, version: u32) -> Acted {
    let answers = named(name);
    let answers = Some(&answers);
    let act = TeamAct::Fill { answers, version };
    record.act(id, act, by(person), &ops()).await.unwrap()
}

fn denied(acted: &Acted) -> Denied {
    match acted {
        Acted::Denied(denied) => *denied,
        other => panic!("{other:?}"),
    }
}

async fn events(record: &Arc<Record>) -> Vec<serde_json::Value> {
    let links = audit::read(record.store()).await.unwrap();
    let read = |link: &store::AuditEntry| serde_json::from_str(&link.entry).unwrap();
    links.iter().map(read).collect()
}

/// Returns the names of events, in order.
fn words(events: &[serde_json::Value]) -> Vec<&str> {
    let words = events.iter().map(|event| &event["event"]);
    words.map(|word| word.as_str().unwrap()).collect()
}

async fn two_agree(record: &Arc<Record>) {
    let (id, mut told) = create(record, &asked_of("r1")).await;
    assert_eq!(
        denied(&fill(record, &id, "eve", "Ada", 0).await),
        Denied::NotAddressed
    );
    assert_eq!(
        denied(&fill(record, &id, "cy", "Ada", 0).await),
        Denied::IsCaller
    );
    assert!(matches!(
        fill(record, &id, "ada", "Ada", 0).await,
        Acted::Done(..)
    ));
    let row = record.find(&id).await.unwrap().unwrap();
    assert!(row.lifecycle.is_open() && row.content.is_none());
    assert!(!format!("{row:?}").contains("Ada"), "sealed");
    let entered = record.entered(&row).unwrap().unwrap();
    assert_eq!(entered.content.as_deref(), Some(r#"{"name":"Ada"}"#));
    assert_eq!(entered.by, "ada");
    assert!(told.try_recv().is_err(), "one vote of two");
    // One action of one person on a page is not enough, and cannot bypass the plan.
    let submitted = record
        .submit(
            &id,
            &Outcome::Accept(named("Eve")),
            "inbox",
            Durability::WithDelivery,
        )
        .await
        .unwrap();
    assert!(matches!(submitted, Verdict::Late(_)));
    let other = TeamAct::Confirm { digest: [1; 32] };
    let acted = record.act(&id, other, by("bob"), &ops()).await.unwrap();
    assert_eq!(denied(&acted), Denied::Changed);
    let digest = entered.digest;
    let again = record
        .act(&id, TeamAct::Confirm { digest }, by("ada"), &ops())
        .await
        .unwrap();
    assert_eq!(denied(&again), Denied::AlreadyVoted);
    let acted = record
        .act(&id, TeamAct::Confirm { digest }, by("bob"), &ops())
        .await
        .unwrap();
    let Acted::Done(team, _) = acted else {
        panic!("{acted:?}")
    };
    assert_eq!(team.quorum().votes(), ["ada", "bob"]);
    assert!(matches!(
        told.recv().await,
        Some(RecordEvent::Answered {
            question: SessionKey(4),
            held: None
        })
    ));
    let replies = record
        .deliver(std::slice::from_ref(&id))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(replies, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
    let row = record.find(&id).await.unwrap().unwrap();
    assert_eq!(row.lifecycle.ended_by(), Some("person:ada, person:bob"));
    assert_eq!(
        record.entered(&row).unwrap(),
        None,
        "entered answers are dropped at the end"
    );
    let late = record
        .act(&id, TeamAct::Confirm { digest }, by("bob"), &ops())
        .await
        .unwrap();
    assert_eq!(denied(&late), Denied::Ended);
    let told = events(record).await;
    let expected = [
        "asked",
        "act-refused",
        "act-refused",
        "filled",
        "act-refused",
        "act-refused",
        "confirmed",
        "answered",
        "act-refused",
    ];
    assert_eq!(words(&told), expected);
    assert_eq!(told[1]["by"], "person:eve");
    assert_eq!(told[1]["reason"], "not-addressed");
    assert!(told[3]["rule"] == "deploys" && told[3]["by"] == "person:ada");
    assert_eq!(told[3]["fields"], serde_json::json!(["name"]));
    // The final event names the rule too.
    assert_eq!(told[7]["rule"], "deploys");
    assert_eq!(told[7]["by"], "person:ada, person:bob");
    assert!(!serde_json::to_string(&told).unwrap().contains("Ada\""));
}

#[tokio::test]
async fn two_people_agree_to_the_same_answers_and_nobody_alone() {
    two_agree(&record(Arc::new(Memory::default()))).await;
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("record.db"))
        .await
        .unwrap();
    two_agree(&record(Arc::new(store))).await;
}

#[tokio::test]
async fn the_vote_of_a_person_who_left_the_group_is_dropped_and_those_of_others_count() {
    let record = record(Arc::new(Memory::default()));
    let (id, mut told) = create(&record, &asked_of("r1")).await;
    fill(&record, &id, "ada", "Ada", 0).await;
    let row = record.find(&id).await.unwrap().unwrap();
    let digest = record.entered(&row).unwrap().unwrap().digest;
    let without_ada = Ops(BTreeSet::from(["bob", "dan"]));
    let acted = record
        .act(&id, TeamAct::Confirm { digest }, by("bob"), &without_ada)
        .await
        .unwrap();
    assert!(matches!(acted, Acted::Done(..)));
    let row = record.find(&id).await.unwrap().unwrap();
    assert!(row.lifecycle.is_open());
    let quorum = row.team.as_ref().unwrap().quorum();
    assert_eq!(quorum.votes(), ["bob"]);
    assert_eq!(quorum.void_votes(&without_ada), ["ada"]);
    assert_eq!(record.entered(&row).unwrap().unwrap().digest, digest);
    assert!(told.try_recv().is_err(), "one vote of two");
    let left = record
        .act(&id, TeamAct::Claim, by("ada"), &without_ada)
        .await
        .unwrap();
    assert_eq!(denied(&left), Denied::LeftGroup);
    let acted = record
        .act(&id, TeamAct::Confirm { digest }, by("dan"), &without_ada)
        .await
        .unwrap();
    let Acted::Done(team, _) = acted else {
        panic!("{acted:?}")
    };
    assert_eq!(team.quorum().votes(), ["bob", "dan"]);
    let replies = record
        .deliver(std::slice::from_ref(&id))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(replies, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
    let told = events(&record).await;
    let of = |word: &str| -> Vec<_> {
        let some = told.iter().filter(|event| event["event"] == word);
        some.cloned().collect()
    };
    let dropped = &of("vote-dropped")[0];
    assert_eq!(dropped["person"], "ada");
    assert_eq!(dropped["reason"], "not-eligible");
    assert!(dropped["by"].is_null(), "nobody dropped it by an act");
    let confirmed = of("confirmed");
    assert_eq!(confirmed[0]["by"], "person:bob");
    assert_eq!(
        (&confirmed[0]["votes"], &confirmed[1]["votes"]),
        (&1.into(), &2.into())
    );
}

#[tokio::test]
async fn a_question_is_not_handed_on_where_too_few_would_be_left_and_comes_back_by_name() {
    let record = record(Arc::new(Memory::default()));
    let (id, _told) = create(&record, &asked_of("r1")).await;
    let hand = async |from: &str, to: &str, people: &Ops| {
        let to = Addressee::Person(to.to_owned());
        let note = "you know it";
        let act = TeamAct::Delegate { to, note };
        record.act(&id, act, by(from), people).await.unwrap()
    };
    // `cy` makes the call: only ada and bob can answer.
    let refused = hand("ada", "bob", &ops()).await;
    assert_eq!(denied(&refused), Denied::TooFewLeft { need: 2, left: 1 });
    let row = record.find(&id).await.unwrap().unwrap();
    assert!(record.comments(&row).unwrap().is_empty());
    let told = events(&record).await;
    assert_eq!(told[1]["reason"], "too-few-left");
    // With one more person it can be delegated, and back.
    let more = Ops(BTreeSet::from(["ada", "bob", "cy", "dan"]));
    assert!(matches!(hand("ada", "bob", &more).await, Acted::Done(..)));
    assert_eq!(
        denied(&fill(&record, &id, "ada", "Ada", 0).await),
        Denied::Delegated
    );
    fill(&record, &id, "bob", "Ada", 0).await;
    let back = hand("bob", "ada", &more).await;
    assert!(matches!(back, Acted::Done(..)), "{back:?}");
    let Acted::Done(team, _) = fill(&record, &id, "ada", "Ada", 1).await else {
        panic!("ada is asked again")
    };
    assert_eq!(team.quorum().votes(), ["bob", "ada"]);
}

#[tokio::test]
async fn one_who_declines_ends_it_for_all_and_what_they_wrote_is_kept_sealed() {
    let record = record(Arc::new(Memory::default()));
    let approval = NewQuestion {
        team: Some(team("r1").for_approval().to_plan().unwrap()),
        ..asked("Who?")
    };
    let (id, _told) = create(&record, &approval).await;
    let long = "x".repeat(2_001);
    for text in ["", "  ", &long] {
        let acted = record
            .act(&id, TeamAct::Comment { text }, by("ada"), &ops())
            .await
            .unwrap();
        assert_eq!(acted, Acted::UnusableText);
    }
    let to = Addressee::Person("bob".to_owned());
    let note = "you know it";
    let enough = Ops(BTreeSet::from(["ada", "bob", "cy", "dan"]));
    record
        .act(&id, TeamAct::Delegate { to, note }, by("ada"), &enough)
        .await
        .unwrap();
    let note = Some("not on a Friday");
    let acted = record
        .act(&id, TeamAct::Decline { note }, by("bob"), &ops())
        .await
        .unwrap();
    assert!(matches!(acted, Acted::Done(..)));
    let row = record.find(&id).await.unwrap().unwrap();
    assert_eq!(row.lifecycle.phase(), Phase::Declined);
    let comments = record.comments(&row).unwrap();
    let texts: Vec<_> = comments
        .iter()
        .map(|comment| (comment.by.as_str(), comment.text.as_str()))
        .collect();
    assert_eq!(texts, [("ada", "you know it"), ("bob", "not on a Friday")]);
    assert!(!serde_json::to_string(&row.team).unwrap().contains("Friday"));
    assert!(!format!("{comments:?}").contains("Friday"));
    let replies = record
        .deliver(std::slice::from_ref(&id))
        .await
        .unwrap()
        .unwrap();
    let told = r#"{"action":"decline","_meta":{"mcp-elicit/reasons":["not on a Friday"]}}"#;
    assert_eq!(replies, [told]);
    let told = events(&record).await;
    let declined = told.iter().find(|event| event["event"] == "declined");
    let declined = declined.unwrap();
    assert!(declined["rule"] == "deploys" && declined["approval"] == true);
}

#[tokio::test]
async fn one_who_writes_much_leaves_room_for_the_others() {
    let record = record(Arc::new(Memory::default()));
    let (id, _told) = create(&record, &asked_of("r1")).await;
    let enough = Ops(BTreeSet::from(["ada", "bob", "cy", "dan"]));
    let act = async |act: TeamAct<'_>, person: &str| {
        let acted = record.act(&id, act, by(person), &enough).await.unwrap();
        matches!(acted, Acted::Done(..))
    };
    let hand = |to: &str| TeamAct::Delegate {
        to: Addressee::Person(to.to_owned()),
        note: "you know it",
    };
    // The caller, whom the rule excludes, and a person who is asked.
    for person in ["cy", "ada"] {
        for _ in 0..MAX_COMMENTS {
            assert!(act(TeamAct::Comment { text: "hm" }, person).await);
        }
        assert!(!act(TeamAct::Comment { text: "hm" }, person).await);
    }
    assert!(act(TeamAct::Comment { text: "why?" }, "bob").await);
    // Notes have a limit of their own.
    for _ in 0..MAX_NOTES {
        assert!(act(hand("bob"), "ada").await);
        assert!(act(hand("ada"), "bob").await);
    }
    assert!(!act(hand("bob"), "ada").await);
    assert!(act(TeamAct::Comment { text: "why?" }, "bob").await);
    // A person with no notes left can still end it, with a reason.
    let note = Some("no");
    assert!(act(TeamAct::Decline { note }, "ada").await);
}

#[tokio::test]
async fn what_one_person_repeats_is_written_so_often_a_minute() {
    let record = record(Arc::new(Memory::default()));
    let (id, _told) = create(&record, &asked_of("r1")).await;
    let act = async |act: TeamAct<'_>, person: &str| {
        record.act(&id, act, by(person), &ops()).await.unwrap()
    };
    let first = record.find(&id).await.unwrap().unwrap();
    for _ in 0..100 {
        let claimed = act(TeamAct::Claim, "ada").await;
        assert!(matches!(claimed, Acted::Done(..)));
        assert_eq!(denied(&act(TeamAct::Claim, "bob").await), Denied::Claimed);
    }
    let claimed = record.find(&id).await.unwrap().unwrap();
    assert_eq!(
        claimed.lifecycle.version(),
        first.lifecycle.renewed().version()
    );
    assert_eq!(denied(&act(TeamAct::Claim, "cy").await), Denied::IsCaller);
    let told = events(&record).await;
    let of = |word: &str, by: &str| {
        let some = told.iter();
        some.filter(|event| event["event"] == word && event["by"] == by)
            .count()
    };
    assert_eq!(of("claimed", "person:ada"), 1);
    assert_eq!(of("act-refused", "person:bob"), 30);
    assert_eq!(of("act-refused", "person:cy"), 1);
}

#[tokio::test]
async fn the_same_question_under_another_rule_is_another_question() {
    let record = record(Arc::new(Memory::default()));
    let (first, told) = create(&record, &asked_of("r1")).await;
    drop(told);
    record.live().clear();
    assert_ne!(create(&record, &asked_of("r2")).await.0, first);
    record.live().clear();
    assert_eq!(create(&record, &asked_of("r1")).await.0, first);
    record.live().clear();
    assert_ne!(
        create(&record, &asked("Who?")).await.0,
        first,
        "nor is one of no rule"
    );
}

/// The time of the record below, which only this test changes.
static NOW: AtomicU64 = AtomicU64::new(1_000);

#[tokio::test]
async fn reminders_and_escalations_are_done_once_and_the_deadline_is_no_act() {
    let clock = || Timestamp::from_millis(NOW.load(Ordering::Relaxed));
    let lock = || LockFile::unshared().unwrap();
    let store: Arc<dyn RecordStore> = Arc::new(Memory::default());
    let record = Arc::new(Record::new(
        store,
        OwnKeys::random().unwrap(),
        lock(),
        clock,
    ));
    let (id, _told) = create(&record, &asked_of("r1")).await;
    record.sweep().await.unwrap();
    NOW.store(3_100, Ordering::Relaxed);
    record.sweep().await.unwrap();
    record.sweep().await.unwrap();
    let lee = record
        .act(&id, TeamAct::Claim, by("lee"), &ops())
        .await
        .unwrap();
    assert_eq!(denied(&lee), Denied::NotAddressed);
    NOW.store(4_100, Ordering::Relaxed);
    record.sweep().await.unwrap();
    record.sweep().await.unwrap();
    let lee = record
        .act(&id, TeamAct::Claim, by("lee"), &ops())
        .await
        .unwrap();
    assert!(matches!(lee, Acted::Done(..)), "{lee:?}");
    let claimed = fill(&record, &id, "ada", "Ada", 0).await;
    assert_eq!(denied(&claimed), Denied::Claimed);
    NOW.store(9_500, Ordering::Relaxed);
    let late = record
        .act(&id, TeamAct::TakeOver, by("ada"), &ops())
        .await
        .unwrap();
    assert_eq!(denied(&late), Denied::Ended);
    let row = record.find(&id).await.unwrap().unwrap();
    assert_eq!(row.lifecycle.phase(), Phase::TimedOut);
    let told = events(&record).await;
    let expected = [
        "asked",
        "reminded",
        "act-refused",
        "escalated",
        "claimed",
        "act-refused",
        "timed-out",
        "act-refused",
    ];
    assert_eq!(words(&told), expected);
    assert_eq!(told[3]["to"], "group:leads");
}

#[tokio::test]
async fn the_audit_says_to_whom_a_question_was_shown() {
    let record = record(Arc::new(Memory::default()));
    let (id, _told) = create(&record, &asked_of("r1")).await;
    for person in ["ada", "bob", "ada"] {
        record.mark_shown(&id).await.unwrap();
        record.mark_seen_by(&id, person).await.unwrap();
    }
    let events = events(&record).await;
    let shown = events.iter().filter(|event| event["event"] == "shown");
    let to: Vec<_> = shown.map(|event| event["to"].as_str()).collect();
    assert_eq!(to, [Some("person:ada"), Some("person:bob")]);
}

#[tokio::test]
async fn nobody_agrees_to_a_call_whose_arguments_cannot_be_opened() {
    let (below, before) = alone().await;
    let asked = NewQuestion {
        call: Some(CallSummary {
            kind: CallKind::Tool,
            target: "delete".to_owned(),
            arguments: Some(r#"{"name":"all"}"#.to_owned()),
            digest: "d".to_owned(),
            proof: ProofNumber::default(),
        }),
        ..asked_of("r1")
    };
    let (id, _told) = create(&before, &asked).await;
    // The same record under other keys.
    let record = record(below);
    let row = record.find(&id).await.unwrap().unwrap();
    assert!(matches!(record.arguments(&row), Err(RecordError::Open(_))));
    let answers = named("Ada");
    let answers = Some(&answers);
    for act in [
        TeamAct::Fill {
            answers,
            version: 0,
        },
        TeamAct::Confirm { digest: [1; 32] },
    ] {
        let acted = record.act(&id, act, by("ada"), &ops()).await;
        assert!(matches!(acted, Err(RecordError::Open(_))), "{acted:?}");
    }
    let decline = TeamAct::Decline { note: None };
    let acted = record.act(&id, decline, by("ada"), &ops()).await.unwrap();
    assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
}

/// Returns the record's reply about a question that ended, and the audit.
async fn reply_of(record: &Arc<Record>, id: &str) -> (serde_json::Value, Vec<serde_json::Value>) {
    let ids = [id.to_owned()];
    let replies = record.deliver(&ids).await.unwrap().unwrap();
    (
        serde_json::from_str(&replies[0]).unwrap(),
        events(record).await,
    )
}

fn reasoned(caller: bool, audit: bool) -> NewQuestion {
    let plan = Plan {
        reasons: ReasonsReach { caller, audit },
        ..plan()
    };
    let people = ["ada", "bob"].map(str::to_owned).to_vec();
    let usual = Duration::from_secs(8);
    let team = Team::new("deploys", "r", TeamCaller::default(), &plan, people, usual);
    NewQuestion {
        team: Some(team.for_approval().to_plan().unwrap()),
        ..asked("Who?")
    }
}

#[tokio::test]
async fn a_reason_reaches_the_caller_and_the_audit_as_the_rule_says_and_always_the_history() {
    for (caller, audit) in [(true, false), (false, true), (true, true), (false, false)] {
        let (_below, record) = alone().await;
        let (id, _told) = create(&record, &reasoned(caller, audit)).await;
        let note = Some("wrong\u{202e} cluster\nagain");
        let decline = TeamAct::Decline { note };
        let acted = record.act(&id, decline, by("ada"), &ops()).await.unwrap();
        assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
        let row = record.find(&id).await.unwrap().unwrap();
        assert!(!format!("{row:?}").contains("cluster"), "sealed");
        let line = record.reasons(&row).unwrap().remove(0);
        assert!(
            line.starts_with("wrong") && line.ends_with("cluster again"),
            "{line}"
        );
        assert!(!line.contains(['\u{202e}', '\n']), "{line}");
        let (reply, events) = reply_of(&record, &id).await;
        let told = &reply["_meta"]["mcp-elicit/reasons"];
        assert_eq!(told.is_array(), caller, "{reply}");
        let declined = events.iter().find(|event| event["event"] == "declined");
        assert_eq!(
            declined.unwrap()["comment"].is_string(),
            audit,
            "{events:?}"
        );
        let is_anywhere = events
            .iter()
            .any(|event| event.to_string().contains("cluster"));
        assert_eq!(is_anywhere, audit);
    }
}

#[tokio::test]
async fn comments_of_those_who_approved_reach_the_caller_and_those_of_dropped_votes_do_not() {
    let (_below, record) = alone().await;
    let (id, _told) = create(&record, &reasoned(true, false)).await;
    let says = async |person: &str, name: &str, version: u32, comment: &str| {
        let answers = named(name);
        let act = TeamAct::Fill {
            answers: Some(&answers),
            version,
        };
        let details = ActDetails {
            comment: Some(comment),
            channel: None,
        };
        let people = ops();
        let acted = record.act_with(&id, act, by(person), &people, details);
        acted.await.unwrap()
    };
    assert!(matches!(
        says("bob", "Moon", 0, "dropped").await,
        Acted::Done(..)
    ));
    assert!(matches!(
        says("ada", "Mars", 1, "checked twice").await,
        Acted::Done(..)
    ));
    let long = "x".repeat(501);
    assert_eq!(says("bob", "Mars", 2, &long).await, Acted::UnusableText);
    assert!(matches!(
        says("bob", "Mars", 2, "me too").await,
        Acted::Done(..)
    ));
    let (reply, _) = reply_of(&record, &id).await;
    assert_eq!(
        reply["_meta"]["mcp-elicit/reasons"],
        serde_json::json!(["checked twice", "me too"])
    );
    assert_eq!(reply["content"]["name"], "Mars");
}

#[tokio::test]
async fn the_reason_for_declining_a_question_without_a_rule_goes_to_its_server() {
    let (_below, record) = alone().await;
    let (id, _told) = create(&record, &asked("Who?")).await;
    let submitted = record.submit_with_reason(
        &id,
        &Outcome::Decline,
        Some("not today"),
        "inbox",
        Durability::BeforeSeen,
    );
    assert!(matches!(submitted.await.unwrap(), Verdict::Won));
    let (reply, events) = reply_of(&record, &id).await;
    let expected =
        serde_json::json!({"action": "decline", "_meta": {"mcp-elicit/reasons": ["not today"]}});
    assert_eq!(reply, expected);
    let is_told = events
        .iter()
        .any(|event| event.to_string().contains("today"));
    assert!(!is_told, "{events:?}");
}

/// Returns a question about a call of a rule that keeps arguments for this time.
fn about_a_call(keep_arguments: Option<Duration>) -> NewQuestion {
    in_a_call(keep_arguments, Team::for_approval)
}

fn in_a_call(keep_arguments: Option<Duration>, purpose: fn(Team) -> Team) -> NewQuestion {
    let plan = Plan {
        keep_arguments,
        ..plan()
    };
    let people = ["ada", "bob"].map(str::to_owned).to_vec();
    let usual = Duration::from_secs(8);
    let team = Team::new("deploys", "r", TeamCaller::default(), &plan, people, usual);
    NewQuestion {
        call: Some(CallSummary {
            kind: CallKind::Tool,
            target: "delete".to_owned(),
            arguments: Some(r#"{"volume":"all"}"#.to_owned()),
            digest: "d".to_owned(),
            proof: ProofNumber::default(),
        }),
        team: Some(purpose(team).to_plan().unwrap()),
        ..asked("Who?")
    }
}

#[tokio::test]
async fn the_values_that_people_give_a_server_are_not_kept_for_auditors() {
    let keep = Some(Duration::from_secs(100));
    for (purpose, is_kept) in [
        (Team::for_approval as fn(Team) -> Team, true),
        (|team| team, false),
    ] {
        let (_below, record) = alone().await;
        let (id, _told) = create(&record, &in_a_call(keep, purpose)).await;
        fill(&record, &id, "ada", "Ada", 0).await;
        let row = record.find(&id).await.unwrap().unwrap();
        let digest = record.entered(&row).unwrap().unwrap().digest;
        let confirm = TeamAct::Confirm { digest };
        record.act(&id, confirm, by("bob"), &ops()).await.unwrap();
        let ids = [id.clone()];
        record.deliver(&ids).await.unwrap().unwrap();
        record.confirm(&ids).await.unwrap();
        let row = record.find(&id).await.unwrap().unwrap();
        let kept = record.retained_call(&row).unwrap().unwrap();
        assert_eq!(kept.arguments, r#"{"volume":"all"}"#);
        assert_eq!(kept.answers.is_some(), is_kept);
    }
}

#[tokio::test]
async fn the_values_of_arguments_that_may_be_changed_are_stored_sealed_only() {
    const VALUE: &str = "s3cr3t volume";
    let arguments = serde_json::json!({"volume": VALUE}).to_string();
    let field = serde_json::json!({"type": "string", "title": "volume", "default": VALUE});
    let schema = serde_json::json!({"type": "object", "properties": {"/volume": field}, "required": ["/volume"]});
    let keys = OwnKeys::random().unwrap();
    let below: Arc<Memory> = Arc::default();
    let with_keys = || {
        let lock = LockFile::unshared().unwrap();
        Arc::new(Record::new(below.clone(), keys.clone(), lock, clock))
    };
    let before = with_keys();
    before.check_presence().await.unwrap();
    let mut asked = about_a_call(None);
    asked.call.as_mut().unwrap().arguments = Some(arguments);
    asked.request = ElicitRequest::form("Approve?", &schema);
    let (id, _told) = create(&before, &asked).await;
    let default = |record: &Record, row: &Row| {
        let parsed = record.parsed(row).unwrap();
        let ElicitRequest::Form { schema, .. } = &parsed.request else {
            panic!("it is a form")
        };
        let schema: serde_json::Value = serde_json::from_str(schema.get()).unwrap();
        schema["properties"]["/volume"]["default"].clone()
    };
    let row = below.find(id.clone()).await.unwrap().unwrap();
    let stored = row.params.clone().unwrap();
    assert!(
        stored.contains("/volume") && !stored.contains(VALUE),
        "{stored}"
    );
    // A process that did not ask it shows the value, too.
    assert_eq!(default(&with_keys(), &row), VALUE);
    assert_eq!(default(&before, &row), VALUE);
    // Without the key nothing is shown, and nothing is remembered.
    let strange = record(below.clone());
    assert_eq!(default(&strange, &row), serde_json::Value::Null);
    before.end(&id, Ending::CallEnded).await.unwrap();
    let row = below.find(id).await.unwrap().unwrap();
    assert_eq!(default(&with_keys(), &row), serde_json::Value::Null);
}

#[tokio::test]
async fn every_outcome_keeps_the_arguments_for_auditors_or_none_does() {
    for keep in [None, Some(Duration::from_secs(100))] {
        for declined in [true, false] {
            let (_below, record) = alone().await;
            let (id, _told) = create(&record, &about_a_call(keep)).await;
            if declined {
                let decline = TeamAct::Decline { note: None };
                record.act(&id, decline, by("ada"), &ops()).await.unwrap();
                let ids = [id.clone()];
                record.deliver(&ids).await.unwrap().unwrap();
                record.confirm(&ids).await.unwrap();
            } else {
                record.end(&id, Ending::CallEnded).await.unwrap();
            }
            let row = record.find(&id).await.unwrap().unwrap();
            assert!(!row.lifecycle.is_open(), "{keep:?}");
            assert_eq!(record.arguments(&row).unwrap(), None, "{keep:?} {declined}");
            let kept = record.retained_call(&row).unwrap();
            let kept = kept.map(|kept| kept.arguments);
            let expected = keep.map(|_| r#"{"volume":"all"}"#.to_owned());
            assert_eq!(kept, expected, "{keep:?} {declined}");
            let shown = format!("{row:?}");
            assert!(!shown.contains("volume"), "sealed: {shown}");
            let later = row
                .lifecycle
                .ended_at()
                .unwrap()
                .after(Duration::from_secs(100));
            assert_eq!(row.due_at(), keep.map(|_| later));
            // Each reading of a person is in the audit; those within a minute are one.
            for reader in ["person:eve", "person:eve", "owner"] {
                let read = record.read_retained_call(&row, reader).await.unwrap();
                assert_eq!(read.is_some(), keep.is_some());
            }
            let readings = events(&record).await;
            let readings = readings
                .iter()
                .filter(|event| event["event"] == "arguments-read");
            let readers: Vec<_> = readings.map(|event| (&event["by"], &event["id"])).collect();
            let by = |reader: &str| (serde_json::Value::from(reader), id.clone().into());
            let expected = match keep {
                Some(_) => vec![by("person:eve"), by("owner")],
                None => Vec::new(),
            };
            assert!(
                readers
                    .iter()
                    .copied()
                    .eq(expected.iter().map(|(by, id)| (by, id))),
                "{readers:?}"
            );
            // Once its time is over, nothing is left.
            record.drop_retained(&row).await.unwrap();
            let row = record.find(&id).await.unwrap().unwrap();
            assert_eq!(record.retained_call(&row).unwrap(), None);
            // The audit has a keyed digest of the call in any case.
            let events = events(&record).await;
            let asked = events
                .iter()
                .find(|event| event["event"] == "asked")
                .unwrap();
            assert_eq!(asked["call"], record.identity_key().evidence("d"));
        }
    }
}
