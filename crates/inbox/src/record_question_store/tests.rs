use mcp_elicit_core::lifecycle::Timestamp;

use super::*;
use crate::sample;
use mcp_elicit_record::store::Memory;
use mcp_elicit_record::{Keys, LockFile};

#[tokio::test]
async fn of_many_that_wait_a_list_has_the_first_and_the_last() {
    let rows: Vec<u32> = (0..100).collect();
    let even = |row: &u32| row.is_multiple_of(2).then_some(*row);
    let open = async |most: usize| first_and_last(&rows, Filter::Open, most, even).await;
    assert_eq!(open(5).await, [0, 2, 4, 96, 98]);
    assert_eq!(open(2).await, [0, 98]);
    assert_eq!(open(1).await, [0]);
    assert!(open(0).await.is_empty());
    let all = open(50).await;
    assert_eq!(all, open(51).await);
    assert!(all.len() == 50 && all.is_sorted());
    let ended = first_and_last(&rows, Filter::Ended, 3, even).await;
    assert_eq!(ended, [0, 2, 4]);
}

#[tokio::test]
async fn an_answer_is_promised_to_a_later_call_only_where_one_can_find_it() {
    let store = Arc::new(Memory::default());
    let record = || {
        let keys = Keys::random().unwrap();
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
