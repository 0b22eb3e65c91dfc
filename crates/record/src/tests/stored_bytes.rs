//! The limits on the bytes of stored questions, over all sessions and kinds of stores.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::Sqlite;
use crate::stored_bytes::{StorageLimit, StorageLimits};

/// The most bytes of a caller: ten questions with arguments of 10,000 bytes.
const OF_CALLER: u64 = 118_000;

fn bounded(store: Arc<dyn RecordStore>, clock: fn() -> Timestamp) -> Arc<Record> {
    let keys = OwnKeys::random().unwrap();
    let lock_file = LockFile::unshared().unwrap();
    let record = Record::new(store, keys, lock_file, clock);
    Arc::new(record.with_storage_limits(StorageLimits {
        of_caller: OF_CALLER,
        of_all: 2 * OF_CALLER,
        arguments: 10_100,
        ..StorageLimits::DEFAULT
    }))
}

/// Returns an empty store of each kind that is in one process.
async fn stores(folder: &tempfile::TempDir) -> [Arc<dyn RecordStore>; 2] {
    let sqlite = Sqlite::open(&folder.path().join("record.db")).await;
    [Arc::new(Memory::default()), Arc::new(sqlite.unwrap())]
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
    let server = format!("s{number}");
    ask_from(record, &server, caller, number, durability).await
}

/// Asks a question of this server.
async fn ask_from(
    record: &Arc<Record>,
    server: &str,
    caller: &str,
    number: usize,
    durability: Durability,
) -> Result<String, RecordError> {
    let (tell, _told) = mpsc::unbounded_channel();
    let session = SessionKey(number as u64);
    let question = NewQuestion {
        until: Timestamp::from_millis(10_000_000),
        ..large(10_000, number)
    };
    let mut who = of(server, caller);
    who.server.name = server.to_owned();
    let created = record.create(&who, &question, session, &tell, durability);
    created.await.map(|recorded| recorded.id)
}

fn limit_of(asked: &Result<String, RecordError>) -> Option<StorageLimit> {
    match asked {
        Err(RecordError::TooLarge(limit)) => Some(*limit),
        _ => None,
    }
}

async fn is_bounded(store: Arc<dyn RecordStore>, durability: Durability) {
    let record = bounded(store.clone(), clock);
    for number in 0..10 {
        ask(&record, "key-1", number, durability).await.unwrap();
    }
    let of_caller = StorageLimit {
        name: "caller-question-bytes",
        most: OF_CALLER,
        of_server: false,
    };
    let refused = ask(&record, "key-1", 10, durability).await;
    assert_eq!(limit_of(&refused), Some(of_caller));
    // Other callers have bytes of their own, up to those of all.
    for number in 20..30 {
        ask(&record, "key-2", number, durability).await.unwrap();
    }
    let name_of = |asked: &_| limit_of(asked).map(|limit| limit.name);
    let of_all = Some("all-question-bytes");
    for caller in ["key-3", "local"] {
        let refused = ask(&record, caller, 30, durability).await;
        assert_eq!(name_of(&refused), of_all, "{caller}");
    }
    record.flush().await.unwrap();
    // A gateway that starts adds up what is stored.
    let later = bounded(store, || Timestamp::from_millis(1_500));
    later.sweep().await.unwrap();
    assert_eq!(name_of(&ask(&later, "key-1", 40, durability).await), of_all);
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
    for store in stores(&folder).await {
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
    for store in stores(&folder).await {
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

/// A server has three quarters of what others leave, open or ended, for one caller and for all.
#[tokio::test]
async fn a_server_leaves_room_for_the_questions_of_others() {
    for (caller, name, most) in [
        ("key-1", "caller-question-bytes", OF_CALLER),
        ("local", "all-question-bytes", 2 * OF_CALLER),
    ] {
        let record = bounded(Arc::new(Memory::default()), clock);
        let mut number = 0;
        let refused = loop {
            let asked = ask_from(&record, "hostile", caller, number, Durability::Behind).await;
            number += 1;
            if asked.is_err() {
                break limit_of(&asked);
            }
        };
        let share = StorageLimit {
            name,
            most: most / 4 * 3,
            of_server: true,
        };
        assert_eq!(refused, Some(share));
        ask(&record, caller, 100, Durability::Behind).await.unwrap();
    }
}

/// The ended questions of a server whose share is full make room for its next ones: those that people answered stay, and
/// so do the approvals of calls to it, and the questions of others.
#[tokio::test]
async fn a_server_that_takes_its_questions_back_fills_nobodys_record() {
    static NOW: AtomicU64 = AtomicU64::new(1_000);
    let folder = tempfile::tempdir().unwrap();
    for store in stores(&folder).await {
        let now = || Timestamp::from_millis(NOW.fetch_add(10_000, Ordering::Relaxed));
        let record = bounded(store.clone(), now);
        let durability = Durability::BeforeSeen;
        let others = ask(&record, "key-1", 100, durability).await.unwrap();
        record
            .end(&others, Ending::WithdrawnByServer)
            .await
            .unwrap();
        let answered = ask_from(&record, "hostile", "key-1", 101, durability).await;
        let answered = answered.unwrap();
        let declined = record.submit(&answered, &Outcome::Decline, "p", durability);
        assert_eq!(declined.await.unwrap(), Verdict::Won);
        for number in 0..40 {
            let id = ask_from(&record, "hostile", "key-1", number, durability).await;
            record
                .end(&id.unwrap(), Ending::WithdrawnByServer)
                .await
                .unwrap();
        }
        let contents = store.contents().await.unwrap();
        assert!(contents.ended + contents.undelivered < 12, "{contents:?}");
        for id in [others, answered] {
            assert!(record.find(&id).await.unwrap().is_some(), "{id}");
        }
        ask(&record, "key-1", 102, durability).await.unwrap();
    }
}

#[tokio::test]
async fn arguments_that_are_too_long_are_left_out_and_their_length_is_kept() {
    let store: Arc<dyn RecordStore> = Arc::new(Memory::default());
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

/// Neither a list entry nor the audit has the long names of fields, or the long description that a server gives of itself.
#[tokio::test]
async fn long_names_of_fields_and_long_descriptions_are_cut() {
    let store: Arc<dyn RecordStore> = Arc::new(Memory::default());
    let keys = OwnKeys::random().unwrap();
    let record = Arc::new(Record::new(
        store.clone(),
        keys,
        LockFile::unshared().unwrap(),
        clock,
    ));
    let long = "é".repeat(2_000);
    let question = NewQuestion {
        fields: (0..240).map(|number| format!("{number}{long}")).collect(),
        warnings: vec![long.clone(); 240],
        server_info: Some(
            serde_json::json!({"name": "n", "version": long, "icons": [long.repeat(50)]})
                .to_string(),
        ),
        ..asked("Who?")
    };
    let (tell, _told) = mpsc::unbounded_channel();
    let created = record.create(
        &of("s", "key-1"),
        &question,
        SessionKey(1),
        &tell,
        Durability::BeforeSeen,
    );
    let id = created.await.unwrap().id;
    record.end(&id, Ending::WithdrawnByServer).await.unwrap();
    let row = record.find(&id).await.unwrap().unwrap();
    let body = &row.body;
    assert!(body.fields[0].starts_with("0éé") && body.fields[0].len() <= 259);
    assert_eq!(body.fields.last().map(String::as_str), Some("…"));
    let info: serde_json::Value =
        serde_json::from_str(body.server_info.as_deref().unwrap()).unwrap();
    assert_eq!(
        (&info["name"], &info["icons"]),
        (&"n".into(), &serde_json::Value::Null)
    );
    assert!(row.stored_bytes() < 48 * 1024, "{}", row.stored_bytes());
    for entry in store.audit(1, 10).await.unwrap() {
        assert!(entry.entry.len() < 20 * 1024, "{}", entry.entry.len());
    }
}
