//! The limits on the whole record: only new questions are refused, and what ends makes room.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::Sqlite;
use crate::stored_bytes::StorageLimits;
use crate::whole_record::WholeRecordLimit;

const BOTH: [Durability; 2] = [Durability::BeforeSeen, Durability::Behind];

fn limited(
    store: Arc<dyn RecordStore>,
    clock: fn() -> Timestamp,
    limits: StorageLimits,
) -> Arc<Record> {
    let keys = OwnKeys::random().unwrap();
    let lock_file = LockFile::unshared().unwrap();
    Arc::new(Record::new(store, keys, lock_file, clock).with_storage_limits(limits))
}

async fn ask(
    record: &Arc<Record>,
    number: u64,
    durability: Durability,
) -> Result<String, RecordError> {
    let (tell, _told) = mpsc::unbounded_channel();
    let mut question = asked("Who?");
    question.until = Timestamp::from_millis(10_000_000);
    let call = question.call.as_mut().unwrap();
    call.digest = number.to_string();
    call.arguments = Some(format!("{{\"a\":\"{}\"}}", "x".repeat(10_000)));
    // Each of another caller and another server: no other limit is reached.
    let mut who = of(&format!("s{number}"), &format!("key-{number}"));
    who.server.name = format!("s{number}");
    let created = record.create(&who, &question, SessionKey(number), &tell, durability);
    created.await.map(|recorded| recorded.id)
}

fn limit_of<T>(asked: &Result<T, RecordError>) -> Option<WholeRecordLimit> {
    match asked {
        Err(RecordError::Full(limit)) => Some(*limit),
        _ => None,
    }
}

#[tokio::test]
async fn open_questions_of_all_callers_are_limited_and_an_end_makes_room_at_once() {
    for durability in BOTH {
        let limits = StorageLimits {
            open: Some(3),
            ..StorageLimits::DEFAULT
        };
        let record = limited(Arc::new(Memory::default()), clock, limits);
        let mut ids = Vec::new();
        for number in 0..3 {
            ids.push(ask(&record, number, durability).await.unwrap());
        }
        let refused = ask(&record, 3, durability).await;
        assert_eq!(limit_of(&refused), Some(WholeRecordLimit::Open(3)));
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("`max-open`"), "{said}");
        let declined = record.submit(&ids[0], &Outcome::Decline, "p", durability);
        assert_eq!(declined.await.unwrap(), Verdict::Won);
        ask(&record, 4, durability).await.unwrap();
        let refused = ask(&record, 5, durability).await;
        assert_eq!(limit_of(&refused), Some(WholeRecordLimit::Open(3)));
        // A limit that is taken away, or set, applies to the next question.
        record.set_limits(Retention::default(), StorageLimits::DEFAULT);
        ask(&record, 6, durability).await.unwrap();
        record.set_limits(Retention::default(), limits);
        let refused = ask(&record, 7, durability).await;
        assert_eq!(limit_of(&refused), Some(WholeRecordLimit::Open(3)));
    }
}

#[tokio::test]
async fn a_record_with_its_most_bytes_takes_answers_and_no_question_until_some_are_deleted() {
    const MOST: u64 = 2_000_000;
    static NOW: AtomicU64 = AtomicU64::new(0);
    for durability in BOTH {
        NOW.store(1_000, Ordering::Relaxed);
        let now = || Timestamp::from_millis(NOW.load(Ordering::Relaxed));
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&folder.path().join("record.db")).await;
        let store: Arc<dyn RecordStore> = Arc::new(store.unwrap());
        let limits = StorageLimits {
            of_record: Some(MOST),
            ..StorageLimits::DEFAULT
        };
        // What was measured without the limit does not count for it.
        let only_open = StorageLimits {
            open: Some(100_000),
            ..StorageLimits::DEFAULT
        };
        let record = limited(store.clone(), now, only_open);
        let mut ids = vec![ask(&record, 9_000, durability).await.unwrap()];
        record.set_limits(Retention::default(), limits);
        let refused = loop {
            match ask(&record, ids.len() as u64, durability).await {
                Ok(id) => ids.push(id),
                Err(fault) => break Err::<(), _>(fault),
            }
            assert!(ids.len() < 1_000, "no limit was reached");
        };
        assert_eq!(limit_of(&refused), Some(WholeRecordLimit::Bytes(MOST)));
        record.flush().await.unwrap();
        let size = store.size().await.unwrap().unwrap();
        assert!(size.used < 2 * MOST, "{size:?}");
        // Answers are taken, and questions end.
        for (number, id) in ids.iter().enumerate() {
            if number % 4 == 0 {
                let declined = record.submit(id, &Outcome::Decline, "p", durability);
                assert_eq!(declined.await.unwrap(), Verdict::Won);
            } else {
                record.end(id, Ending::CallEnded).await.unwrap();
            }
        }
        record.flush().await.unwrap();
        // Until it is measured again, it is full.
        let refused = ask(&record, 5_000, durability).await;
        assert_eq!(limit_of(&refused), Some(WholeRecordLimit::Bytes(MOST)));
        let later = Timestamp::from_millis(1_000_000);
        let deleted = store.purge(Purge::before(later)).await.unwrap();
        assert!(deleted > 0);
        NOW.fetch_add(5_000, Ordering::Relaxed);
        ask(&record, 5_001, durability).await.unwrap();
    }
}
