//! The messages about such a question: created once from its timeline, taken by one gateway, retried, and recorded in
//! the audit.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::audit::Actor;
use crate::outbox::{LEASE, LastMessages, NewMessage};
use crate::store::outbox::{NotificationState, Tried};
use crate::timeline::TimelineKind;

/// The clocks of the two records, which no other test changes.
static MEMORY_NOW: AtomicU64 = AtomicU64::new(1_000);
static SQLITE_NOW: AtomicU64 = AtomicU64::new(1_000);

fn message(number: usize, channel: &str, person: Option<&str>) -> NewMessage {
    NewMessage {
        number,
        event: "question.asked".to_owned(),
        at: Timestamp::from_millis(1_000),
        channel: channel.to_owned(),
        recipient: format!("{person:?}"),
        person: person.map(str::to_owned),
        due_at: Timestamp::from_millis(1_000),
        until: Timestamp::from_millis(60_000),
    }
}

fn kinds(row: &Row) -> Vec<TimelineKind> {
    row.timeline().iter().map(|event| event.kind).collect()
}

async fn tells(store: Arc<dyn RecordStore>, clock: fn() -> Timestamp, now: &AtomicU64) {
    let lock = LockFile::unshared().unwrap();
    let record = Arc::new(Record::new(store, OwnKeys::random().unwrap(), lock, clock));
    let (plain, _kept) = create(&record, &asked("Plain?")).await;
    let (id, _told) = create(&record, &asked_of("r1")).await;

    // Only the question of a rule has people to notify.
    let untold = record.untold(10).await.unwrap();
    assert_eq!(untold.len(), 1);
    let (row, told) = &untold[0];
    assert_eq!((row.id.as_str(), *told), (id.as_str(), 0));
    assert_eq!(kinds(row), [TimelineKind::Asked]);

    // An event that occurs while the messages are created is not lost.
    fill(&record, &id, "ada", "Ada", 0).await;
    let new = || {
        vec![
            message(0, "mail", Some("ada")),
            message(0, "slack", Some("bob")),
        ]
    };
    record.tell(row, new()).await.unwrap();
    record.tell(row, new()).await.unwrap();
    assert_eq!(record.messages_of(&id).await.unwrap().len(), 2);
    let untold = record.untold(10).await.unwrap();
    let (row, told) = &untold[0];
    assert_eq!(
        (*told, kinds(row)),
        (1, vec![TimelineKind::Asked, TimelineKind::Filled])
    );
    assert_eq!(row.timeline()[1].by, Some(Actor::person("ada")));
    record.tell(row, Vec::new()).await.unwrap();
    assert!(record.untold(10).await.unwrap().is_empty());

    // Each is taken once; a message without a report is taken again after the lease.
    let taken = record.take_messages(10, Vec::new()).await.unwrap();
    assert_eq!(taken.len(), 2);
    assert!(
        record
            .take_messages(10, Vec::new())
            .await
            .unwrap()
            .is_empty()
    );
    let of = |channel: &str| taken.iter().find(|one| one.channel == channel).unwrap();
    let sent = Tried::Sent("D1/2".to_owned());
    assert!(record.tried(of("slack"), sent.clone()).await.unwrap());
    now.fetch_add(u64::try_from(LEASE.as_millis()).unwrap(), Ordering::Relaxed);
    let again = record.take_messages(10, Vec::new()).await.unwrap();
    assert_eq!(again.len(), 1);
    assert_eq!((again[0].channel.as_str(), again[0].attempts), ("mail", 2));
    // The first taker is too late.
    assert!(!record.tried(of("mail"), sent).await.unwrap());
    let later = record.now().after(Duration::from_secs(5));
    let retry = Tried::Later(later, "unreachable".to_owned());
    assert!(record.tried(&again[0], retry).await.unwrap());
    assert!(
        record
            .take_messages(10, Vec::new())
            .await
            .unwrap()
            .is_empty()
    );
    now.fetch_add(5_000, Ordering::Relaxed);
    let third = record.take_messages(10, Vec::new()).await.unwrap();
    let failed = Tried::Failed("refused".to_owned());
    assert!(record.tried(&third[0], failed).await.unwrap());

    let failed = record.failed_messages(10).await.unwrap();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].why.as_deref(), Some("refused"));
    assert_eq!(
        record
            .notified_since("bob", clock_at(0))
            .await
            .unwrap()
            .len(),
        1
    );
    assert!(
        record
            .notified_since("ada", clock_at(0))
            .await
            .unwrap()
            .is_empty()
    );
    let reached = async |recipient: &str| record.reached("bob", recipient).await.unwrap();
    let (one, other) = (reached(&failed[0].recipient).await, reached("nobody").await);
    assert_eq!(one.failed.unwrap().1, failed[0].why.clone().unwrap());
    assert_eq!(other, LastMessages::default());
    let told = reached(&of("slack").recipient).await;
    assert!(told.at.is_some() && told.failed.is_none(), "{told:?}");
    let by = "on the command line";
    assert!(record.send_again(&failed[0], by).await.unwrap());
    assert!(!record.send_again(&failed[0], by).await.unwrap());
    let audit = events(&record).await;
    let mut retried = audit
        .iter()
        .filter(|event| event["event"] == "notification-retried");
    let (event, none) = (retried.next().unwrap(), retried.next());
    assert_eq!(
        (&event["by"], &event["channel"], none),
        (&by.into(), &failed[0].channel.as_str().into(), None)
    );
    let once_more = record.take_messages(10, Vec::new()).await.unwrap();
    assert!(once_more[0].until > record.now());
    let skipped = Tried::Skipped("ended".to_owned());
    assert!(record.tried(&once_more[0], skipped).await.unwrap());
    let states: Vec<_> = record.messages_of(&id).await.unwrap();
    let states = states.iter().map(|one| (one.channel.as_str(), one.state));
    let states: BTreeSet<_> = states
        .map(|(channel, state)| (channel, state.as_str()))
        .collect();
    let (sent, skipped) = (NotificationState::Sent, NotificationState::Skipped);
    assert_eq!(
        states,
        BTreeSet::from([("slack", sent.as_str()), ("mail", skipped.as_str())])
    );

    // The timeline contains the end, with any cause.
    record.end(&id, Ending::CallEnded).await.unwrap();
    let untold = record.untold(10).await.unwrap();
    assert_eq!(kinds(&untold[0].0).last(), Some(&TimelineKind::Withdrawn));
    assert_eq!(untold[0].1, 2);

    let told = events(&record).await;
    let words: Vec<_> = told
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    assert!(
        words.contains(&"notified") && words.contains(&"notification-failed"),
        "{words:?}"
    );
    let notified = told
        .iter()
        .find(|event| event["event"] == "notified")
        .unwrap();
    assert_eq!(
        (&notified["channel"], &notified["to"]),
        (&"slack".into(), &"person:bob".into())
    );
    assert!(
        record
            .find(&plain)
            .await
            .unwrap()
            .unwrap()
            .timeline()
            .is_empty()
    );

    // Nothing remains of a question that is no longer kept.
    now.fetch_add(1_000_000_000_000, Ordering::Relaxed);
    record.sweep().await.unwrap();
    assert!(record.find(&id).await.unwrap().is_none());
    assert!(record.untold(10).await.unwrap().is_empty());
    assert!(record.messages_of(&id).await.unwrap().is_empty());
}

fn clock_at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

#[tokio::test]
async fn people_are_told_once_and_failures_are_tried_again() {
    let memory: Arc<dyn RecordStore> = Arc::new(Memory::default());
    let clock = || clock_at(MEMORY_NOW.load(Ordering::Relaxed));
    tells(memory, clock, &MEMORY_NOW).await;
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("record.db")).await;
    let clock = || clock_at(SQLITE_NOW.load(Ordering::Relaxed));
    tells(Arc::new(store.unwrap()), clock, &SQLITE_NOW).await;
}

#[tokio::test]
async fn a_message_that_was_not_made_before_a_crash_is_made_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.db");
    let store = Sqlite::open(&path).await.unwrap();
    let before = record(Arc::new(store));
    let (id, _told) = create(&before, &asked_of("r1")).await;
    drop(before);
    let again = record(Arc::new(Sqlite::open(&path).await.unwrap()));
    let untold = again.untold(10).await.unwrap();
    assert_eq!(untold[0].0.id, id);
    again
        .tell(&untold[0].0, vec![message(0, "mail", Some("ada"))])
        .await
        .unwrap();
    drop(again);
    let third = record(Arc::new(Sqlite::open(&path).await.unwrap()));
    assert!(third.untold(10).await.unwrap().is_empty());
    assert_eq!(third.take_messages(10, Vec::new()).await.unwrap().len(), 1);
}
