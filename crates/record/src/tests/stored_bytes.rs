//! The limits on the bytes of stored questions, over all sessions and kinds of stores.

use super::*;
use crate::store::Sqlite;
use crate::stored_bytes::{StorageLimit, StorageLimits};

/// The most bytes of a caller: ten questions with arguments of 10,000 bytes.
const OF_CALLER: u64 = 115_000;

fn bounded(store: Arc<dyn Store>, clock: fn() -> Timestamp) -> Arc<Record> {
    let keys = Keys::random().unwrap();
    let lock_file = LockFile::unshared().unwrap();
    let record = Record::new(store, keys, lock_file, clock);
    Arc::new(record.with_storage_limits(StorageLimits {
        of_caller: OF_CALLER,
        of_all: 2 * OF_CALLER,
        arguments: 10_100,
    }))
}

/// A question of a call with arguments of this length.
fn large(bytes: usize, number: usize) -> NewQuestion {
    let mut question = asked("Who?");
    let call = question.call.as_mut().unwrap();
    call.digest = number.to_string();
    call.arguments = Some(format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8)));
    question
}

async fn ask(
    record: &Arc<Record>,
    caller: &str,
    number: usize,
    durability: Durability,
) -> Result<String, RecordError> {
    let (tell, _told) = mpsc::unbounded_channel();
    let session = SessionKey(number as u64);
    let question = large(10_000, number);
    let created = record.create(&of("s", caller), &question, session, &tell, durability);
    created.await.map(|recorded| recorded.id)
}

fn limit_of(asked: &Result<String, RecordError>) -> Option<StorageLimit> {
    match asked {
        Err(RecordError::TooLarge(limit)) => Some(*limit),
        _ => None,
    }
}

async fn is_bounded(store: Arc<dyn Store>, durability: Durability) {
    let record = bounded(store.clone(), clock);
    for number in 0..10 {
        ask(&record, "key-1", number, durability).await.unwrap();
    }
    let of_caller = StorageLimit {
        name: "caller-question-bytes",
        most: OF_CALLER,
    };
    let refused = ask(&record, "key-1", 10, durability).await;
    assert_eq!(limit_of(&refused), Some(of_caller));
    // Other callers have bytes of their own, up to those of all.
    for number in 20..30 {
        ask(&record, "key-2", number, durability).await.unwrap();
    }
    let of_all = StorageLimit {
        name: "all-question-bytes",
        most: 2 * OF_CALLER,
    };
    for caller in ["key-3", "local"] {
        let refused = ask(&record, caller, 30, durability).await;
        assert_eq!(limit_of(&refused), Some(of_all), "{caller}");
    }
    record.flush().await.unwrap();
    // A gateway that starts adds up what is stored.
    let later = bounded(store, || Timestamp::from_millis(1_500));
    later.sweep().await.unwrap();
    assert_eq!(
        limit_of(&ask(&later, "key-1", 40, durability).await),
        Some(of_all)
    );
}

#[tokio::test]
async fn the_bytes_of_questions_are_bounded_for_each_caller_and_for_all() {
    let folder = tempfile::tempdir().unwrap();
    for (number, durability) in [Durability::BeforeSeen, Durability::Behind]
        .into_iter()
        .enumerate()
    {
        is_bounded(Arc::new(Memory::default()), durability).await;
        let path = folder.path().join(format!("{number}.db"));
        is_bounded(Arc::new(Sqlite::open(&path).await.unwrap()), durability).await;
    }
}

/// The names that a server or a client writes count, too.
#[tokio::test]
async fn a_name_of_a_call_and_an_id_of_a_visit_count() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = Sqlite::open(&folder.path().join("record.db"))
        .await
        .unwrap();
    for store in [
        Arc::new(Memory::default()) as Arc<dyn Store>,
        Arc::new(sqlite),
    ] {
        let ask_named = async |record: &Arc<Record>, number: usize| {
            let (tell, _told) = mpsc::unbounded_channel();
            let mut question = large(10, number);
            question.call.as_mut().unwrap().target = "t".repeat(60_000);
            let (caller, session) = (of("s", "key-1"), SessionKey(number as u64));
            record
                .create(&caller, &question, session, &tell, Durability::BeforeSeen)
                .await
                .map(|recorded| recorded.id)
        };
        let record = bounded(store.clone(), clock);
        ask_named(&record, 0).await.unwrap();
        assert!(limit_of(&ask_named(&record, 1).await).is_some());
        let later = bounded(store.clone(), || Timestamp::from_millis(1_500));
        later.sweep().await.unwrap();
        assert!(limit_of(&ask_named(&later, 2).await).is_some());
    }
}

#[tokio::test]
async fn questions_that_were_deleted_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = Sqlite::open(&folder.path().join("record.db"))
        .await
        .unwrap();
    for store in [
        Arc::new(Memory::default()) as Arc<dyn Store>,
        Arc::new(sqlite),
    ] {
        let record = bounded(store.clone(), clock);
        for number in 0..10 {
            let id = ask(&record, "key-1", number, Durability::BeforeSeen)
                .await
                .unwrap();
            record.end(&id, Ending::WithdrawnByClient).await.unwrap();
        }
        assert!(
            ask(&record, "key-1", 10, Durability::BeforeSeen)
                .await
                .is_err()
        );
        let later = bounded(store.clone(), || {
            Timestamp::from_millis(40 * 24 * 60 * 60 * 1_000)
        });
        later.sweep().await.unwrap();
        let (tell, _told) = mpsc::unbounded_channel();
        let question = NewQuestion {
            until: Timestamp::from_millis(50 * 24 * 60 * 60 * 1_000),
            ..large(10_000, 11)
        };
        let who = of("s", "key-1");
        let created = later.create(
            &who,
            &question,
            SessionKey(1),
            &tell,
            Durability::BeforeSeen,
        );
        created.await.unwrap();
    }
}

#[tokio::test]
async fn arguments_that_are_too_long_are_left_out_and_their_length_is_kept() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let record = bounded(store, clock);
    let (tell, _told) = mpsc::unbounded_channel();
    let who = of("s", "key-1");
    let question = large(20_000, 1);
    let created = record.create(
        &who,
        &question,
        SessionKey(1),
        &tell,
        Durability::BeforeSeen,
    );
    let id = created.await.unwrap().id;
    let row = record.find(&id).await.unwrap().unwrap();
    assert_eq!(
        (row.arguments.as_ref(), row.body.arguments_left_out),
        (None, Some(20_000))
    );
    assert_eq!(record.arguments(&row).unwrap(), None);
    // Of several calls none is stored, since one alone would be taken for the call that asks.
    let several = NewQuestion {
        others: vec!["deploy".to_owned()],
        candidates: vec![large(6_000, 3).call.unwrap()],
        ..large(6_000, 2)
    };
    let created = record.create(&who, &several, SessionKey(2), &tell, Durability::BeforeSeen);
    let row = record
        .find(&created.await.unwrap().id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (row.arguments.as_ref(), row.body.arguments_left_out),
        (None, Some(12_000))
    );
    assert_eq!(record.candidates(&row).unwrap(), []);
    // An approval is shown whole.
    let team = team::team("d").for_approval().to_plan().unwrap();
    let approval = NewQuestion {
        team: Some(team),
        ..large(20_000, 4)
    };
    let created = record.create(
        &who,
        &approval,
        SessionKey(3),
        &tell,
        Durability::BeforeSeen,
    );
    let row = record
        .find(&created.await.unwrap().id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(record.arguments(&row).unwrap().unwrap().len(), 20_000);
}
