//! The contract of values that are sealed anew: each row is changed only if it is as it was read, and keeps its version.

use super::super::outbox::Notified;
use super::super::{FinishedCall, ResealedRow, SealedQuery, SealedRow, SealedTable};
use super::*;
use crate::encryption::{Encryption, sealed_texts};

fn query(table: SealedTable, newest: &[u8], after: &str) -> SealedQuery {
    SealedQuery {
        table,
        newest: newest.to_vec(),
        after: after.to_owned(),
        most: 2,
    }
}

async fn read(store: &dyn RecordStore, table: SealedTable, newest: &[u8]) -> Vec<SealedRow> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = store.sealed_rows(query(table, newest, &after)).await;
        let page = page.unwrap();
        assert!(page.len() <= 2, "{page:?}");
        let Some(last) = page.last() else { return all };
        after = last.key().to_owned();
        all.extend(page);
    }
}

fn keys(rows: &[SealedRow]) -> Vec<&str> {
    rows.iter().map(SealedRow::key).collect()
}

/// A row with this value in place of its arguments, result or answers.
fn anew(before: &SealedRow, value: &[u8]) -> ResealedRow {
    let mut after = before.clone();
    match &mut after {
        SealedRow::Question { arguments, .. } => *arguments = Some(value.to_vec()),
        SealedRow::Result { result, .. } => *result = value.to_vec(),
        SealedRow::Grant { answers, .. } => *answers = value.to_vec(),
    }
    let before = before.clone();
    ResealedRow { before, after }
}

pub(super) async fn seals_anew(store: &dyn RecordStore) {
    let key = Encryption::with_key(&[1; 32]);
    let newest = key.newest().unwrap().beginning();
    let value = key.seal("a.arguments", "{}").unwrap();
    assert!(value.starts_with(&newest) && newest.len() == 12);
    for id in ["a", "b", "c", "d"] {
        let mut row = row(id, 1_000);
        row.arguments = (id != "d").then(|| vec![1, 2]);
        store.insert(row, "asked".to_owned()).await.unwrap();
    }
    // One of a rule, whose people wrote nothing: `untold` is told of it, and a change of its keys tells nobody again.
    let ruled = team_row("e", 1_000, "ops", "ada");
    store.insert(ruled, "asked".to_owned()).await.unwrap();
    let untold = async || {
        let untold = store.untold(9).await.unwrap();
        untold.into_iter().map(|one| one.row.id).collect::<Vec<_>>()
    };
    for one in store.untold(9).await.unwrap() {
        let seen = one.row.lifecycle.version();
        let told = Notified {
            question: one.row.id,
            version: seen,
            told: 1,
            messages: Vec::new(),
        };
        store.notified(told).await.unwrap();
    }
    assert!(untold().await.is_empty());

    let found = read(store, SealedTable::Questions, &newest).await;
    assert_eq!(
        keys(&found),
        ["a", "b", "c", "e"],
        "those with a sealed value"
    );
    // Meanwhile the second one is changed, and the third one is deleted with its question.
    let next = acted(&row("b", 1_000));
    assert!(store.change(vec![change(next.clone(), 0)]).await.unwrap());
    let changes: Vec<_> = found.iter().map(|row| anew(row, &value)).collect();
    assert_eq!(store.reseal(changes.clone()).await.unwrap(), 3);
    assert_eq!(
        store.reseal(changes).await.unwrap(),
        0,
        "they are as before"
    );
    let row_of = async |id: &str| store.find(id.to_owned()).await.unwrap().unwrap();
    assert_eq!(row_of("b").await, next);
    let a = row_of("a").await;
    assert_eq!(a.arguments.as_deref(), Some(value.as_slice()));
    assert_eq!(a.lifecycle.version(), 0);
    let same = Row {
        arguments: Some(vec![1, 2]),
        ..a
    };
    assert_eq!(same, row("a", 1_000), "nothing else has changed");
    assert!(untold().await.is_empty());
    let left = read(store, SealedTable::Questions, &newest).await;
    assert_eq!(keys(&left), ["b"]);
    assert_eq!(read(store, SealedTable::Questions, b"other").await.len(), 4);
    // A change that was read before goes on.
    let acts = acted(&row("a", 1_000));
    assert!(store.change(vec![change(acts, 0)]).await.unwrap());

    let at = Timestamp::from_millis;
    for id in ["r1", "r2", "r3"] {
        let call = FinishedCall {
            id: id.to_owned(),
            binding: "same".to_owned(),
            result: vec![1, 2],
            until: at(9_000),
        };
        store.keep_call(call).await.unwrap();
        let grant = StoredGrant {
            key: id.to_owned(),
            question: None,
            rule: "careful".to_owned(),
            rule_digest: "d".to_owned(),
            answers: vec![7],
            at: at(1_000),
            until: at(9_000),
        };
        store.keep_grant(grant, at(1_000)).await.unwrap();
    }
    for table in [SealedTable::Results, SealedTable::Grants] {
        let found = read(store, table, &newest).await;
        assert_eq!(keys(&found), ["r1", "r2", "r3"]);
        let changes: Vec<_> = found[..2].iter().map(|row| anew(row, &value)).collect();
        assert_eq!(store.reseal(changes.clone()).await.unwrap(), 2);
        assert_eq!(store.reseal(changes).await.unwrap(), 0);
        assert_eq!(keys(&read(store, table, &newest).await), ["r3"]);
    }
    let taken = store.take_call("r1".to_owned()).await.unwrap().unwrap();
    assert_eq!(taken.result, value);
    let grants = store.grants(at(2_000)).await.unwrap();
    let same = grants.iter().filter(|grant| grant.answers == value);
    assert_eq!(same.count(), 2);
    assert!(grants.iter().all(|grant| grant.until == at(9_000)));
}

#[tokio::test]
async fn every_store_seals_values_anew_that_are_as_they_were_read() {
    seals_anew(&Memory::default()).await;
    seals_anew(&Writer::new(Arc::new(Memory::default()))).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    seals_anew(&Sqlite::open(&path).await.unwrap()).await;
}

#[test]
fn sealed_texts_are_found_in_the_json_of_a_team() {
    let key = Encryption::with_key(&[1; 32]);
    let sealed = data_encoding::HEXLOWER.encode(&key.seal("a.comment", "x").unwrap());
    // The words of a server are none, whatever they look like.
    let team = format!(
        r#"{{"tool":{{"description":"026b6579deadbeef"}},"comments":[{{"text":"{sealed}"}}],"entered":{{"text":"{sealed}"}},
        "retained":{{"arguments":"{sealed}"}}}}"#
    );
    assert!(sealed_texts(&team).all(|text| text == sealed));
    assert_eq!(sealed_texts(&team).count(), 3);
}
