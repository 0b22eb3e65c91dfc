use mcp_elicit_core::lifecycle::Timestamp;

use super::*;
use crate::sample;
use mcp_elicit_record::store::Memory;
use mcp_elicit_record::{LockFile, OwnKeys};

#[tokio::test]
async fn of_many_that_wait_a_list_has_the_first_and_the_last() {
    let store = Arc::new(Memory::default());
    let keys = OwnKeys::random().unwrap();
    let lease = LockFile::unshared().unwrap();
    let clock = || Timestamp::from_millis(1_000);
    let record = Arc::new(Record::new(store.clone(), keys, lease, clock));
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(sample::raised(&record, Vec::new()).await.unwrap());
    }
    // Questions of the same time are in the order of their ids in this store.
    ids.sort();
    record.flush().await.unwrap();
    let questions = RecordQuestionStore::new(record);
    let viewer = InboxViewer::Owner {
        by: "a test".into(),
    };
    let listed = async |text: &str, most: usize| {
        let filter = ListFilter {
            text: text.to_owned(),
            view: ListView::All,
            most,
        };
        let list = questions.list(&viewer, &filter).await.unwrap();
        assert_eq!((list.pending_total, list.is_cut), (10, false));
        let pending = list.pending.into_iter();
        let found = pending.map(|each| ids.iter().position(|id| id == each.id.as_str()).unwrap());
        found.collect::<Vec<_>>()
    };
    assert_eq!(listed("", 5).await, [0, 1, 2, 8, 9]);
    assert_eq!(listed("", 2).await, [0, 9]);
    assert_eq!(listed("", 1).await, [0]);
    assert!(listed("", 0).await.is_empty());
    let all: Vec<usize> = (0..10).collect();
    assert_eq!(listed("", 10).await, all);
    assert_eq!(listed("", 11).await, all);
    assert_eq!(listed(&ids[7][..12], 3).await, [7]);
    assert!(listed("absent", 3).await.is_empty());
}

#[tokio::test]
async fn an_answer_is_promised_to_a_later_call_only_where_one_can_find_it() {
    let store = Arc::new(Memory::default());
    let record = || {
        let keys = OwnKeys::random().unwrap();
        let lease = LockFile::unshared().unwrap();
        let record = Record::new(store.clone(), keys, lease, || Timestamp::from_millis(1_000));
        Arc::new(record)
    };
    let first = record();
    let sure = sample::raised(&first, Vec::new()).await.unwrap();
    let other = vec!["plan".to_owned()];
    let unsure = sample::raised(&first, other).await.unwrap();
    // The gateway whose calls asked has ended.
    first.flush().await.unwrap();
    let second = record();
    let note = async |id: &str, changed_rule: Option<&str>| {
        let row = second.find(id).await.unwrap().unwrap();
        waiting_note(&second, &row, changed_rule).unwrap_or_default()
    };
    assert!(
        note(&sure, None)
            .await
            .contains("repeated call gets your answer")
    );
    let said = note(&sure, Some("deploys")).await;
    assert!(
        said.contains("the rule deploys has changed") && said.contains("anew"),
        "{said}"
    );
    assert!(!said.contains("gets your answer"), "{said}");
    let said = note(&unsure, None).await;
    assert!(said.contains("no call can collect its answer"), "{said}");
    for id in [&sure, &unsure] {
        let won = second
            .submit(id, &Outcome::Decline, "a test", Durability::WithDelivery)
            .await;
        assert_eq!(won.unwrap(), Verdict::Won);
    }
    assert!(note(&sure, None).await.contains("repeated call gets it"));
    assert!(note(&sure, Some("deploys")).await.contains("none gets it"));
    let said = note(&unsure, None).await;
    assert!(
        said.contains("none can") && !said.contains("repeated call"),
        "{said}"
    );
}
