//! Drafts that gateways share.

use std::sync::Arc;

use mcp_elicit_core::answer::{Draft, DraftValue};
use mcp_elicit_core::lifecycle::Timestamp;

use super::super::RecordStore as _;
use super::super::contract::{SingleWrites as _, acted, change, row};
use super::super::drafts::{DraftStore, MOST_DRAFT_BYTES, MOST_DRAFTS, StoredDraft};
use super::Postgres;
use super::tests::store;
use crate::{LockFile, OwnKeys, Record};

const BEGINNING: Timestamp = Timestamp::from_millis(0);

async fn keep(store: &Postgres, question: &str, person: &str, bytes: usize, at: u64) {
    let draft = StoredDraft {
        question: question.to_owned(),
        person: person.to_owned(),
        sealed: vec![7; bytes],
        at: Timestamp::from_millis(at),
    };
    store.keep_draft(draft, BEGINNING).await.unwrap();
}

async fn length_of(store: &Postgres, question: &str, person: &str) -> Option<usize> {
    let sealed = store.draft(question.to_owned(), person.to_owned(), BEGINNING);
    sealed.await.unwrap().map(|sealed| sealed.len())
}

async fn count(store: &Postgres) -> i64 {
    let client = store.database().client().await.unwrap();
    let counted = client.query_one("SELECT count(*) FROM mcp_elicit.draft", &[]);
    counted.await.unwrap().get(0)
}

#[tokio::test]
async fn a_draft_is_of_one_person_and_ends_with_its_question() {
    let Some(store) = store() else { return };
    for id in ["a", "b", "c"] {
        store
            .insert(row(id, 1_000), "asked".to_owned())
            .await
            .unwrap();
        keep(&store, id, "ada", 3, 1).await;
        keep(&store, id, "bob", 4, 2).await;
    }
    keep(&store, "a", "ada", 5, 3).await;
    assert_eq!(length_of(&store, "a", "ada").await, Some(5), "the latest");
    assert_eq!(length_of(&store, "a", "bob").await, Some(4));
    assert_eq!(length_of(&store, "a", "cy").await, None);
    let ended = acted(&row("a", 1_000));
    assert!(store.change(vec![change(ended, 0)]).await.unwrap());
    assert_eq!(length_of(&store, "a", "ada").await, None);
    assert_eq!(length_of(&store, "a", "bob").await, None);
    // Another gateway may not know yet that it has ended.
    keep(&store, "a", "ada", 6, 4).await;
    keep(&store, "unknown", "ada", 6, 4).await;
    assert_eq!(count(&store).await, 4, "those of b and c");
    let client = store.database().client().await.unwrap();
    let delete = "DELETE FROM mcp_elicit.question WHERE id = 'b'";
    client.batch_execute(delete).await.unwrap();
    assert_eq!(count(&store).await, 2, "those of c");
    assert!(store.find("c".to_owned()).await.unwrap().is_some());
}

#[tokio::test]
async fn drafts_are_bounded_for_a_person_and_for_all_and_end_after_some_time() {
    let Some(store) = store() else { return };
    let most = MOST_DRAFTS.0;
    for number in 0..most + 5 {
        let id = format!("q{number}");
        store.insert(row(&id, 1), "asked".to_owned()).await.unwrap();
        keep(&store, &id, "ada", 1, 10 + number as u64).await;
    }
    keep(&store, "q0", "bob", 1, 1).await;
    assert_eq!(count(&store).await, i64::try_from(most + 1).unwrap());
    assert_eq!(length_of(&store, "q4", "ada").await, None, "the oldest");
    assert_eq!(length_of(&store, "q5", "ada").await, Some(1));
    // Few long ones, and always the one just typed.
    let long = MOST_DRAFT_BYTES.0 / 2 + 1;
    keep(&store, "q6", "ada", long, 1_000).await;
    keep(&store, "q7", "ada", long, 1_001).await;
    assert_eq!(length_of(&store, "q6", "ada").await, None);
    assert_eq!(length_of(&store, "q7", "ada").await, Some(long));
    keep(&store, "q8", "ada", MOST_DRAFT_BYTES.0 + 1, 1_002).await;
    assert_eq!(count(&store).await, 2, "of ada the last, and of bob");
    let client = store.database().client().await.unwrap();
    let fill = format!(
        "INSERT INTO mcp_elicit.draft SELECT 'q9', 'p' || n::text, '\\x00', 500 + n FROM generate_series(1, {}) AS n",
        MOST_DRAFTS.1
    );
    client.batch_execute(&fill).await.unwrap();
    keep(&store, "q10", "cy", 1, 90_000).await;
    assert_eq!(count(&store).await, i64::try_from(MOST_DRAFTS.1).unwrap());
    assert_eq!(
        length_of(&store, "q0", "bob").await,
        None,
        "the oldest of everyone"
    );

    let later = Timestamp::from_millis(90_000);
    let read = async |question: &str, person: &str| {
        let read = store.draft(question.to_owned(), person.to_owned(), later);
        read.await.unwrap()
    };
    assert!(read("q10", "cy").await.is_some());
    assert_eq!(read("q9", "p5000").await, None, "it is too old");
    let draft = StoredDraft {
        question: "q11".to_owned(),
        person: "cy".to_owned(),
        sealed: vec![1],
        at: later,
    };
    store.keep_draft(draft, later).await.unwrap();
    assert_eq!(count(&store).await, 2, "old ones are deleted");
}

#[tokio::test]
async fn a_draft_is_sealed_for_its_question_and_its_person() {
    let Some(store) = store() else { return };
    for id in ["a", "b"] {
        store
            .insert(row(id, 1_000), "asked".to_owned())
            .await
            .unwrap();
    }
    let record = |keys: &OwnKeys| {
        let lock_file = LockFile::unshared().unwrap();
        let clock = || Timestamp::from_millis(1_000);
        Record::new(Arc::new(store.clone()), keys.clone(), lock_file, clock)
    };
    let keys = OwnKeys::random().unwrap();
    let (here, elsewhere) = (record(&keys), record(&keys));
    let mut draft = Draft::new();
    draft.set("note", DraftValue::Text("typed at one gateway".to_owned()));
    here.keep_shared_draft("a", "ada", &draft).await.unwrap();
    here.keep_draft("a", Draft::new()).await.unwrap();
    assert!(elsewhere.shares_drafts());
    let read = async |record: &Record, id: &str, person: &str| {
        record.shared_draft(id, person).await.unwrap()
    };
    assert_eq!(
        read(&elsewhere, "a", "ada").await.as_ref(),
        Some(&draft),
        "read elsewhere"
    );
    assert_eq!(read(&elsewhere, "a", "bob").await, None);
    assert_eq!(
        elsewhere.draft("a").await.unwrap(),
        Some(Draft::new()),
        "the owner's"
    );
    let client = store.database().client().await.unwrap();
    let is_readable =
        "SELECT count(*) FROM mcp_elicit.draft WHERE position('typed'::bytea IN draft) > 0";
    let found: i64 = client.query_one(is_readable, &[]).await.unwrap().get(0);
    assert_eq!(found, 0);
    // Whoever writes to the database cannot give one person's to another, or to another question.
    for moved in ["question = 'b'", "person = 'bob'"] {
        let change = format!("UPDATE mcp_elicit.draft SET {moved} WHERE person <> ''");
        client.batch_execute(&change).await.unwrap();
        assert_eq!(read(&here, "b", "ada").await, None, "{moved}");
        assert_eq!(read(&here, "b", "bob").await, None, "{moved}");
    }
    here.keep_shared_draft("a", "ada", &draft).await.unwrap();
    // Values sealed anew: drafts of earlier keys end.
    here.reseal("test", |_| ()).await.unwrap();
    assert_eq!(read(&here, "a", "ada").await, Some(draft));
    let newer = record(&OwnKeys::random().unwrap());
    assert_eq!(read(&newer, "a", "ada").await, None);
    newer.reseal("test", |_| ()).await.unwrap();
    assert_eq!(count(&store).await, 0);
}
