//! A record that was restored from a backup: nothing in it takes effect a second time.

use mcp_elicit_core::lifecycle::Delivery;
use mcp_elicit_core::question::FoundCall;

use super::*;
use crate::grants::ApprovalGrant;
use crate::restored::EndedAtRestore;

fn open(store: &Arc<Memory>, keys: &OwnKeys) -> Arc<Record> {
    let lock = LockFile::unshared().unwrap();
    Arc::new(Record::new(store.clone(), keys.clone(), lock, clock))
}

#[tokio::test]
async fn nothing_in_a_restored_record_takes_effect_a_second_time() {
    let (below, keys) = (Arc::<Memory>::default(), OwnKeys::random().unwrap());
    let before = open(&below, &keys);
    // Given, and not delivered when the backup was made.
    let (tell, _told) = mpsc::unbounded_channel();
    let create = |text: &str| {
        let (record, asked, tell) = (before.clone(), asked(text), tell.clone());
        async move {
            let made = record.create(
                &local(),
                &asked,
                SessionKey(1),
                &tell,
                Durability::BeforeSeen,
            );
            made.await.unwrap().id
        }
    };
    let (given, waiting) = (create("Given?").await, create("Waiting?").await);
    let won = before.submit(&given, &accept(), "inbox", Durability::WithDelivery);
    assert_eq!(won.await.unwrap(), Verdict::Won);
    before.release_session(&tell).await.unwrap();
    // One of two people has voted; nobody has voted on the other one.
    let (voted, _told) = super::create(&before, &asked_of("1")).await;
    let other = NewQuestion {
        request: asked("Another?").request,
        ..asked_of("1")
    };
    let (unvoted, _told) = super::create(&before, &other).await;
    fill(&before, &voted, "ada", "Ada", 0).await;
    // The result of a call, and an approval.
    before
        .keep_call(&local(), None, "digest", &tell, SessionKey(2), None)
        .await
        .unwrap();
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned();
    before
        .keep_result(&tell, SessionKey(2), result)
        .await
        .unwrap();
    let grant = ApprovalGrant {
        key: "k".to_owned(),
        question: None,
        rule: "deploys".to_owned(),
        rule_digest: "1".to_owned(),
        answers: "{}".to_owned(),
        at: Timestamp::from_millis(1_000),
        until: Timestamp::from_millis(5_000),
    };
    before.keep_grant(&grant).await.unwrap();
    before.flush().await.unwrap();
    drop(before);

    let after = open(&below, &keys);
    let ended = after.end_restored().await.unwrap();
    assert_eq!(
        ended,
        EndedAtRestore {
            answers: 1,
            votes: 1,
            results: 1,
            grants: 1
        }
    );
    let row = |id: &str| {
        let (below, id) = (below.clone(), id.to_owned());
        async move { below.find(id).await.unwrap().unwrap() }
    };
    let lapsed = row(&given).await;
    assert_eq!(lapsed.lifecycle.delivery(), Some(Delivery::Lapsed));
    assert!(lapsed.content.is_none() && lapsed.arguments.is_none());
    assert_eq!(after.deliver(&[given]).await.unwrap(), None);
    assert_eq!(row(&voted).await.lifecycle.phase(), Phase::Failed);
    for id in [&waiting, &unvoted] {
        assert!(row(id).await.lifecycle.is_open(), "people are still asked");
    }
    let found = after.find_call(&local(), None, "digest").await.unwrap();
    assert_eq!(found, FoundCall::Nothing);
    assert_eq!(after.grants().await.unwrap(), []);
    let said = events(&after).await;
    let why = "the record was restored from a backup, and the answer may have been delivered since";
    let told = |event: &str, reason: &str| {
        let mut all = said.iter();
        all.any(|entry| {
            entry["event"] == event && entry["reason"].as_str().is_some_and(|why| why == reason)
        })
    };
    assert!(told("lapsed", why), "{said:?}");
    // A second run finds nothing.
    assert_eq!(
        after.end_restored().await.unwrap(),
        EndedAtRestore::default()
    );
}
