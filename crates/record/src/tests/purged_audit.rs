//! The oldest events of the audit are deleted, and the rest is still proved.

use super::*;
use crate::audit::{AuditPurge, ChainCheck, PurgedAudit, purgeable, verify};
use crate::store::{AuditEntry, ChainKey, Sqlite, Write, chained};

/// The events before the deletions.
const EVENTS: u64 = 50;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Writes an event for each of these times.
async fn write(store: &dyn RecordStore, times: impl Iterator<Item = u64>) {
    let note = |at| Write::Note(format!(r#"{{"at":{at},"event":"login","by":"page"}}"#));
    store
        .write(Arc::new(times.map(note).collect()))
        .await
        .unwrap();
}

/// Returns a record, its store, and the key of its audit, with an event in each millisecond.
async fn recorded() -> (Record, Arc<dyn RecordStore>, ChainKey) {
    let keys = OwnKeys::random().unwrap();
    let key = keys.chain();
    let store: Arc<dyn RecordStore> = Arc::new(Memory::keyed(key.clone()));
    write(&*store, 1..=EVENTS).await;
    let lock = LockFile::unshared().unwrap();
    (Record::new(store.clone(), keys, lock, clock), store, key)
}

fn deleted(count: u64) -> PurgedAudit {
    PurgedAudit::Deleted { count, more: false }
}

#[tokio::test]
async fn a_purged_audit_is_whole_since_its_first_event_and_says_who_deleted_the_others() {
    let (record, store, key) = recorded().await;
    let would = purgeable(&*store, &key, at(11)).await.unwrap();
    assert_eq!(would, deleted(10));
    assert_eq!(
        record.purge_audit(at(11), "a test").await.unwrap(),
        deleted(10)
    );
    assert_eq!(
        record.purge_audit(at(11), "a test").await.unwrap(),
        deleted(0)
    );
    let links = audit::read(&*store).await.unwrap();
    let whole = |links, since| ChainCheck::Whole { links, since };
    assert_eq!(verify(&links, Some(&key)), whole(41, 11));
    let purge = AuditPurge::read(&links[40].entry).unwrap();
    assert_eq!((purge.number, purge.until), (10, Some(at(10))));
    assert_eq!((purge.at, &*purge.by), (clock(), "a test"));
    // The event of a deletion may be deleted by a later one.
    write(&*store, 60..=70).await;
    assert_eq!(
        record.purge_audit(at(65), "a test").await.unwrap(),
        deleted(40)
    );
    let links = audit::read(&*store).await.unwrap();
    assert_eq!(verify(&links, Some(&key)), whole(13, 51));
    // Its time is the clock's of the record: 1,000.
    write(&*store, 2_000..=2_001).await;
    assert_eq!(
        record.purge_audit(at(9_000), "a test").await.unwrap(),
        deleted(14)
    );
    let links = audit::read(&*store).await.unwrap();
    assert_eq!(
        verify(&links, Some(&key)),
        whole(2, 65),
        "the last event stays"
    );
    let would = purgeable(&*store, &key, at(9_000)).await.unwrap();
    assert_eq!(would, deleted(1));
}

#[tokio::test]
async fn an_audit_whose_first_events_are_missing_is_broken_unless_an_event_deleted_them() {
    let (record, store, key) = recorded().await;
    let all = audit::read(&*store).await.unwrap();
    let missing = |number| ChainCheck::Missing { number };
    assert_eq!(verify(&all[10..], Some(&key)), missing(10));
    record.purge_audit(at(11), "a test").await.unwrap();
    let links = audit::read(&*store).await.unwrap();
    for more in 1..40 {
        assert_eq!(
            verify(&links[more..], Some(&key)),
            missing(10 + more as u64)
        );
    }
    // The event of the deletion is missing too, as if the end was cut.
    assert_eq!(verify(&links[..40], Some(&key)), missing(10));
    // The first event is another one, and those after it go on from it.
    let forged = |entry: &str, base: &str, key: Option<&ChainKey>| {
        let mut forged = links.clone();
        forged[0].entry = entry.to_owned();
        let mut before = base.to_owned();
        for link in &mut forged {
            link.hash = chained(key, &before, &link.entry);
            before.clone_from(&link.hash);
        }
        forged
    };
    let other = r#"{"at":11,"event":"login","by":"another"}"#;
    for forged in [forged(other, &all[9].hash, None), forged(other, "", None)] {
        assert!(!matches!(
            verify(&forged, Some(&key)),
            ChainCheck::Whole { .. }
        ));
    }
    let mut changed = links.clone();
    changed[0].entry = other.to_owned();
    assert!(!matches!(
        verify(&changed, Some(&key)),
        ChainCheck::Whole { .. }
    ));
    // Events that were deleted, in front again without those between.
    let back: Vec<AuditEntry> = all[..5].iter().chain(&links[7..]).cloned().collect();
    assert_eq!(verify(&back, Some(&key)), missing(17));
    // With the key, a chain can be made from any hash. So there are checkpoints.
    let forged = forged(other, &all[9].hash, Some(&key));
    assert!(matches!(
        verify(&forged, Some(&key)),
        ChainCheck::Whole { .. }
    ));
}

#[tokio::test]
async fn links_that_are_deleted_while_they_are_read_are_left_out() {
    let (record, store, key) = recorded().await;
    let read = store.audit(1, 5).await.unwrap();
    record.purge_audit(at(31), "a test").await.unwrap();
    let rest = store.audit(6, 100).await.unwrap();
    let links: Vec<AuditEntry> = read.into_iter().chain(rest).collect();
    let whole = ChainCheck::Whole {
        links: 21,
        since: 31,
    };
    assert_eq!(verify(&links, Some(&key)), whole);
}

#[tokio::test]
async fn nothing_is_deleted_that_shows_that_the_audit_was_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let keys = OwnKeys::random().unwrap();
    let store: Arc<dyn RecordStore> = Arc::new(Sqlite::at(&path).keyed(keys.chain()));
    write(&*store, 1..=EVENTS).await;
    let sql = |text: &str| {
        let file = rusqlite::Connection::open(&path).unwrap();
        file.execute_batch(text).unwrap();
    };
    let lock = LockFile::unshared().unwrap();
    let record = Record::new(store.clone(), keys.clone(), lock, clock);
    let purge = || record.purge_audit(at(31), "a test");
    sql("UPDATE audit SET entry = replace(entry, 'page', 'another') WHERE number = 7");
    let broken = |number| PurgedAudit::Broken(ChainCheck::BrokenAt { number });
    assert_eq!(purge().await.unwrap(), broken(7));
    sql("UPDATE audit SET entry = replace(entry, 'another', 'page') WHERE number = 7");
    // So is a row before the first one, in whatever number.
    for number in [0, -5] {
        sql(&format!(
            "INSERT INTO audit VALUES ({number}, '{{}}', 'k1:0')"
        ));
        assert_eq!(purge().await.unwrap(), broken(1), "{number}");
        let would = purgeable(&*store, &keys.chain(), at(31)).await.unwrap();
        assert_eq!(would, broken(1), "{number}");
        let links = audit::read(&*store).await.unwrap();
        let found = verify(&links, Some(&keys.chain()));
        assert_eq!(found, ChainCheck::BrokenAt { number: 1 }, "{number}");
        sql(&format!("DELETE FROM audit WHERE number = {number}"));
    }
    // The first event that would stay is checked too.
    sql("UPDATE audit SET hash = replace(hash, 'k1:', 'k1:0') WHERE number = 31");
    assert_eq!(purge().await.unwrap(), broken(31));
    sql("UPDATE audit SET hash = replace(hash, 'k1:0', 'k1:') WHERE number = 31");
    assert_eq!(purge().await.unwrap(), deleted(30));
    let count = || async { store.contents().await.unwrap().links };
    assert_eq!(count().await, 21);
    sql("DELETE FROM audit WHERE number < 40");
    let missing = PurgedAudit::Broken(ChainCheck::Missing { number: 39 });
    assert_eq!(record.purge_audit(at(45), "a test").await.unwrap(), missing);
    assert_eq!(count().await, 12);
}

#[tokio::test]
async fn nothing_is_deleted_from_an_audit_in_which_an_event_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let keys = OwnKeys::random().unwrap();
    let store: Arc<dyn RecordStore> = Arc::new(Sqlite::at(&path).keyed(keys.chain()));
    write(&*store, 1..=EVENTS).await;
    let sql = |text: &str| {
        let file = rusqlite::Connection::open(&path).unwrap();
        file.execute_batch(text).unwrap();
    };
    let lock = LockFile::unshared().unwrap();
    let record = Record::new(store.clone(), keys.clone(), lock, clock);
    let key = keys.chain();
    sql("CREATE TABLE saved AS SELECT * FROM audit");
    for missing in [1, 20, 30, 31, 48] {
        sql(&format!("DELETE FROM audit WHERE number = {missing}"));
        let broken = PurgedAudit::Broken(ChainCheck::Missing { number: missing });
        for before in [missing + 1, missing + 2, 9_000] {
            let purged = record.purge_audit(at(before), "a test").await;
            assert_eq!(purged.unwrap(), broken, "{missing}, {before}");
        }
        // A number is only given for a chain that is intact up to its end.
        for before in [0, 11, 9_000] {
            let would = purgeable(&*store, &key, at(before)).await.unwrap();
            assert_eq!(would, broken, "{missing}, {before}");
        }
        let links = audit::read(&*store).await.unwrap();
        assert_eq!(links.len(), 49);
        let ChainCheck::Missing { number } = verify(&links, Some(&key)) else {
            panic!("{missing} is missing");
        };
        assert_eq!(number, missing);
        sql("DELETE FROM audit; INSERT INTO audit SELECT * FROM saved");
    }
    let purged = record.purge_audit(at(31), "a test").await.unwrap();
    assert_eq!(purged, deleted(30));
}

#[tokio::test]
async fn a_gateway_deletes_events_that_are_older_than_its_setting_and_none_without_it() {
    fn later() -> Timestamp {
        at(10_000_000)
    }
    let (record, store, key) = recorded().await;
    let keys = record.keys.clone();
    record.sweep().await.unwrap();
    let with = |audit| {
        let record = Record::new(
            store.clone(),
            keys.clone(),
            LockFile::unshared().unwrap(),
            later,
        );
        record.with_retention(Retention {
            audit,
            ..Retention::default()
        })
    };
    with(None).sweep().await.unwrap();
    assert_eq!(store.audit_end().await.unwrap(), EVENTS, "nothing happened");
    let keeps = with(Some(Duration::from_millis(10_000_000 - 21)));
    keeps.sweep().await.unwrap();
    keeps.sweep().await.unwrap();
    let links = audit::read(&*store).await.unwrap();
    let whole = ChainCheck::Whole {
        links: 31,
        since: 21,
    };
    assert_eq!(verify(&links, Some(&key)), whole);
    assert_eq!(AuditPurge::read(&links[30].entry).unwrap().by, "keep-audit");
}

#[tokio::test]
async fn of_several_gateways_one_deletes() {
    let (record, store, key) = recorded().await;
    let others: Vec<Record> = (0..4)
        .map(|_| {
            let lock = LockFile::unshared().unwrap();
            Record::new(store.clone(), record.keys.clone(), lock, clock)
        })
        .collect();
    let purges = others
        .iter()
        .map(|record| record.purge_audit(at(11), "a test"));
    let mut count = 0;
    for purged in futures::future::join_all(purges).await {
        match purged.unwrap() {
            PurgedAudit::Deleted { count: deleted, .. } => count += deleted,
            broken @ PurgedAudit::Broken(_) => panic!("{broken:?}"),
        }
    }
    assert_eq!(count, 10);
    let links = audit::read(&*store).await.unwrap();
    let whole = ChainCheck::Whole {
        links: 41,
        since: 11,
    };
    assert_eq!(verify(&links, Some(&key)), whole);
}

#[tokio::test]
async fn events_without_a_time_go_with_those_around_them_and_a_later_one_ends_the_deletion() {
    let (record, store, key) = recorded().await;
    store
        .write(Arc::new(vec![Write::Note(
            r#"{"event":"chain-keyed"}"#.to_owned(),
        )]))
        .await
        .unwrap();
    // A clock that was ahead, and one that was set back.
    write(&*store, [51, 900, 52, 53].into_iter()).await;
    let purged = record.purge_audit(at(500), "a test").await.unwrap();
    assert_eq!(purged, deleted(52), "up to the event that is not older");
    let links = audit::read(&*store).await.unwrap();
    let whole = ChainCheck::Whole {
        links: 4,
        since: 53,
    };
    assert_eq!(verify(&links, Some(&key)), whole);
}
