//! The bound on the open questions of one caller, over all sessions and kinds of questions.

use super::*;
use crate::caller_bound::MAX_OPEN_OF_CALLER;
use crate::store::Sqlite;

/// Asks as this caller, in a session of the question's own.
async fn ask(
    record: &Arc<Record>,
    caller: &str,
    number: usize,
    commit: Commit,
) -> Result<String, RecordError> {
    let (tell, _told) = mpsc::unbounded_channel();
    let asked = asked(&format!("Who? {number}"));
    let session = SessionKey(number as u64);
    let created = record.create(&of("s", caller), &asked, session, &tell, commit);
    created.await.map(|recorded| recorded.id)
}

fn is_refused(asked: &Result<String, RecordError>) -> bool {
    matches!(asked, Err(RecordError::TooManyOpen { limit }) if *limit == MAX_OPEN_OF_CALLER)
}

async fn is_bounded(record: &Arc<Record>, commits: [Commit; 2]) {
    let most = MAX_OPEN_OF_CALLER;
    let mut ids = Vec::new();
    for number in 0..most {
        let commit = commits[number % 2];
        ids.push(ask(record, "key-1", number, commit).await.unwrap());
    }
    for (number, commit) in (most..).zip(commits) {
        let refused = ask(record, "key-1", number, commit).await;
        assert!(is_refused(&refused), "{refused:?}");
    }
    // Others ask on.
    for caller in ["key-2", r#"["https://id","ada"]"#] {
        ask(record, caller, most, commits[0]).await.unwrap();
    }
    // The end of one makes room for one other, at once.
    for (number, id) in (2 * most..).zip(&ids[..3]) {
        let ended = record.submit(id, &Outcome::Decline, "a test", Commit::Awaited);
        assert_eq!(ended.await.unwrap(), Verdict::Won);
        ask(record, "key-1", number, commits[1]).await.unwrap();
        let refused = ask(record, "key-1", number + most, commits[0]).await;
        assert!(is_refused(&refused), "{refused:?}");
    }
}

#[tokio::test]
async fn one_verified_caller_has_a_bounded_number_of_open_questions() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = [
        [Commit::Awaited, Commit::Behind],
        [Commit::Behind, Commit::Behind],
    ];
    for (number, commits) in kinds.into_iter().enumerate() {
        is_bounded(&record(Arc::new(Memory::default())), commits).await;
        let path = folder.path().join(format!("{number}.db"));
        let store = Sqlite::open(&path).await.unwrap();
        is_bounded(&record(Arc::new(store)), commits).await;
    }
}

#[tokio::test]
async fn a_gateway_that_starts_counts_what_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.db");
    let before = record(Arc::new(Sqlite::open(&path).await.unwrap()));
    for number in 0..MAX_OPEN_OF_CALLER {
        ask(&before, "key-1", number, Commit::Awaited)
            .await
            .unwrap();
    }
    let after = record(Arc::new(Sqlite::open(&path).await.unwrap()));
    for commit in [Commit::Awaited, Commit::Behind] {
        let refused = ask(&after, "key-1", MAX_OPEN_OF_CALLER, commit).await;
        assert!(is_refused(&refused), "{refused:?}");
    }
}

#[tokio::test]
async fn many_that_come_at_once_are_counted_each() {
    let record = record(Arc::new(Memory::default()));
    let all = (0..MAX_OPEN_OF_CALLER + 100).map(|number| {
        let record = record.clone();
        tokio::spawn(async move { ask(&record, "key-1", number, Commit::Awaited).await })
    });
    let mut admitted = 0;
    for one in all.collect::<Vec<_>>() {
        admitted += usize::from(one.await.unwrap().is_ok());
    }
    assert_eq!(admitted, MAX_OPEN_OF_CALLER);
}

#[tokio::test]
async fn callers_who_prove_nothing_are_not_bounded() {
    let record = record(Arc::new(Memory::default()));
    for caller in ["local", "anonymous", "0123abcd"] {
        for number in 0..=MAX_OPEN_OF_CALLER {
            let asked = ask(&record, caller, number, Commit::Awaited).await;
            assert!(asked.is_ok(), "{caller} {number}: {asked:?}");
        }
    }
}
