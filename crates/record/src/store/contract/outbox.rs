//! The contract of the messages to people.

use super::super::outbox::{Notification, NotificationState, Notified};
use super::*;

/// Of two gateways that plan messages at once, the slower one takes nothing back that people were told of.
pub(super) async fn counts_what_people_were_told_of_up(store: &dyn RecordStore) {
    let mut asked = team_row("q", 1, "ops", "ada");
    store
        .insert(asked.clone(), "asked".to_owned())
        .await
        .unwrap();
    let told = async |version: u64, told: usize| {
        let question = "q".to_owned();
        let notified = Notified {
            question,
            version,
            told,
            messages: Vec::new(),
        };
        store.notified(notified).await.unwrap();
    };
    let untold = async || {
        let untold = store.untold(9).await.unwrap();
        untold.iter().map(|one| one.told).collect::<Vec<_>>()
    };
    assert_eq!(untold().await, [0]);
    let read_first = asked.lifecycle.version();
    asked.lifecycle = asked.lifecycle.renewed();
    let next = change(asked.clone(), read_first);
    assert!(store.change(vec![next]).await.unwrap());
    // The faster gateway has read the next version, and the slower one the first.
    told(asked.lifecycle.version() + 1, 5).await;
    told(read_first, 3).await;
    assert_eq!(untold().await, [5]);
    told(asked.lifecycle.version(), 6).await;
    assert_eq!(untold().await, [0_usize; 0], "people were told of all");
}

/// Messages of busy channels, and of busy recipients, are left; the others are taken.
pub(super) async fn leaves_messages_of_busy_channels(store: &dyn RecordStore) {
    store
        .insert(team_row("q", 1, "ops", "ada"), "asked".to_owned())
        .await
        .unwrap();
    let at = Timestamp::from_millis;
    let message = |id: &str, channel: &str, recipient: &str| Notification {
        id: id.to_owned(),
        question: "q".to_owned(),
        event: "question.asked".to_owned(),
        channel: channel.to_owned(),
        recipient: recipient.to_owned(),
        person: None,
        state: NotificationState::Due,
        attempts: 0,
        due_at: at(1),
        until: at(9_000),
        at: at(1),
        done_at: None,
        message: None,
        why: None,
    };
    let notified = Notified {
        question: "q".to_owned(),
        version: 0,
        told: 1,
        messages: vec![
            message("a", "mail", "x"),
            message("b", "push", "x"),
            message("c", "push", "y"),
        ],
    };
    store.notified(notified).await.unwrap();
    let taken = async |busy: &[&str]| {
        let busy = busy.iter().map(|&one| one.to_owned()).collect();
        let taken = store.take_notifications(at(2), at(99), 9, busy).await;
        let taken = taken.unwrap().into_iter().map(|one| one.id);
        taken.collect::<Vec<_>>()
    };
    assert_eq!(taken(&["mail", "push"]).await, [""; 0]);
    assert_eq!(taken(&["mail", "push x"]).await, ["c"]);
    assert_eq!(taken(&["mail"]).await, ["b"]);
    assert_eq!(taken(&[]).await, ["a"]);
}

#[tokio::test]
async fn every_store_leaves_messages_of_busy_channels() {
    leaves_messages_of_busy_channels(&Memory::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    leaves_messages_of_busy_channels(&Sqlite::open(&path).await.unwrap()).await;
}

#[tokio::test]
async fn every_store_counts_what_people_were_told_of_up() {
    counts_what_people_were_told_of_up(&Memory::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    counts_what_people_were_told_of_up(&Sqlite::open(&path).await.unwrap()).await;
}
