//! The contract of values that count once.

use super::super::{MOST_USED, UsedValue};
use super::*;
use crate::used::UsedKind;

fn used(kind: UsedKind, number: usize, until: u64) -> UsedValue {
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&number.to_be_bytes());
    UsedValue {
        kind,
        digest,
        until: Timestamp::from_millis(until),
    }
}

/// A value counts once until its time, for every process that has the store open.
pub(super) async fn counts_once(store: &dyn RecordStore, beside: &dyn RecordStore) {
    let at = Timestamp::from_millis;
    let (slack, login) = (UsedKind::SlackSignature, UsedKind::Login);
    let of = |number| used(slack, number, 5_000);
    assert!(!beside.is_used(slack, of(1).digest).await.unwrap());
    assert!(store.use_once(of(1), at(1_000)).await.unwrap());
    for one in [store, beside] {
        assert!(!one.use_once(of(1), at(4_999)).await.unwrap());
        assert!(one.is_used(slack, of(1).digest).await.unwrap());
        assert!(!one.is_used(login, of(1).digest).await.unwrap());
    }
    // The same value of another kind is another one.
    let other = used(login, 1, 5_000);
    assert!(beside.use_once(other, at(1_000)).await.unwrap());
    // An expired use is deleted, and makes room.
    assert!(
        beside
            .use_once(used(slack, 2, 9_000), at(5_000))
            .await
            .unwrap()
    );
    assert!(!store.is_used(slack, of(1).digest).await.unwrap());
}

/// If there is no room, nothing new counts, and what was used stays used.
pub(super) async fn refuses_what_it_cannot_hold(store: &dyn RecordStore) {
    let at = Timestamp::from_millis;
    let slack = UsedKind::SlackSignature;
    assert!(
        !store
            .use_once(used(slack, MOST_USED, 9_000), at(1))
            .await
            .unwrap()
    );
    assert!(!store.use_once(used(slack, 0, 9_000), at(1)).await.unwrap());
    let login = used(UsedKind::Login, 0, 9_000);
    assert!(
        store.use_once(login, at(1)).await.unwrap(),
        "of another kind"
    );
    // They expire at once.
    assert!(
        store
            .use_once(used(slack, 0, 9_000), at(5_000))
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn every_store_counts_a_value_once() {
    let memory = Memory::default();
    counts_once(&memory, &memory).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let [store, beside] = [
        Sqlite::open(&path).await.unwrap(),
        Sqlite::open(&path).await.unwrap(),
    ];
    counts_once(&store, &beside).await;
    let path = folder.path().join("full.sqlite");
    let store = Sqlite::open(&path).await.unwrap();
    let text = "WITH RECURSIVE number (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n + 1 < ?1) \
         INSERT INTO used SELECT 'slack', cast(unhex(printf('%016X', n)) || zeroblob(24) AS BLOB), 5000 FROM number";
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute(text, [i64::try_from(MOST_USED).unwrap()])
        .unwrap();
    refuses_what_it_cannot_hold(&store).await;
}
