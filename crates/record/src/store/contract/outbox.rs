//! The contract of the messages to people.

use super::super::outbox::Notified;
use super::*;

/// Of two gateways that plan messages at once, the slower one takes nothing back that people were told of.
pub(super) async fn counts_what_people_were_told_of_up(store: &dyn Store) {
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

#[tokio::test]
async fn every_store_counts_what_people_were_told_of_up() {
    counts_what_people_were_told_of_up(&Memory::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    counts_what_people_were_told_of_up(&Sqlite::open(&path).await.unwrap()).await;
}
