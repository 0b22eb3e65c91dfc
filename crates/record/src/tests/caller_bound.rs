//! The limit of open questions of one caller, over all sessions and kinds of questions.

use super::*;
use crate::caller_bound::{MAX_OPEN_OF_CALLER, MAX_OPEN_OF_SERVER};
use crate::store::Sqlite;

/// Makes one of two servers ask this caller, in a new session for the question.
async fn ask(
    record: &Arc<Record>,
    caller: &str,
    number: usize,
    durability: Durability,
) -> Result<String, RecordError> {
    let server = format!("s-{}", number % 2);
    let asked = asked(&format!("Who? {number}"));
    ask_at(record, &server, caller, &asked, number, durability).await
}

async fn ask_at(
    record: &Arc<Record>,
    server: &str,
    caller: &str,
    asked: &NewQuestion,
    number: usize,
    durability: Durability,
) -> Result<String, RecordError> {
    let (tell, _told) = mpsc::unbounded_channel();
    let session = SessionKey(number as u64);
    let mut who = of(server, caller);
    who.server.name = server.to_owned();
    let created = record.create(&who, asked, session, &tell, durability);
    created.await.map(|recorded| recorded.id)
}

fn is_refused(asked: &Result<String, RecordError>) -> bool {
    matches!(asked, Err(RecordError::TooManyOpen { limit, of_server: false }) if *limit == MAX_OPEN_OF_CALLER)
}

async fn is_bounded(record: &Arc<Record>, durabilities: [Durability; 2]) {
    let most = MAX_OPEN_OF_CALLER;
    let mut ids = Vec::new();
    for number in 0..most {
        let durability = durabilities[number % 2];
        ids.push(ask(record, "key-1", number, durability).await.unwrap());
    }
    for (number, durability) in (most..).zip(durabilities) {
        let refused = ask(record, "key-1", number, durability).await;
        assert!(is_refused(&refused), "{refused:?}");
    }
    // Other callers are not affected.
    for caller in ["key-2", r#"["https://id","ada"]"#] {
        ask(record, caller, most, durabilities[0]).await.unwrap();
    }
    // Each end allows one more question, immediately.
    for (number, id) in (2 * most..).zip(&ids[..3]) {
        let ended = record.submit(id, &Outcome::Decline, "a test", Durability::WithDelivery);
        assert_eq!(ended.await.unwrap(), Verdict::Won);
        ask(record, "key-1", number, durabilities[1]).await.unwrap();
        let refused = ask(record, "key-1", number + most, durabilities[0]).await;
        assert!(is_refused(&refused), "{refused:?}");
    }
}

#[tokio::test]
async fn one_verified_caller_has_a_bounded_number_of_open_questions() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = [
        [Durability::BeforeSeen, Durability::Behind],
        [Durability::Behind, Durability::Behind],
    ];
    for (number, durabilities) in kinds.into_iter().enumerate() {
        is_bounded(&record(Arc::new(Memory::default())), durabilities).await;
        let path = folder.path().join(format!("{number}.db"));
        let store = Sqlite::open(&path).await.unwrap();
        is_bounded(&record(Arc::new(store)), durabilities).await;
    }
}

#[tokio::test]
async fn a_gateway_that_starts_counts_what_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.db");
    let before = record(Arc::new(Sqlite::open(&path).await.unwrap()));
    for number in 0..MAX_OPEN_OF_CALLER {
        ask(&before, "key-1", number, Durability::BeforeSeen)
            .await
            .unwrap();
    }
    let after = record(Arc::new(Sqlite::open(&path).await.unwrap()));
    for durability in [Durability::BeforeSeen, Durability::Behind] {
        let refused = ask(&after, "key-1", MAX_OPEN_OF_CALLER, durability).await;
        assert!(is_refused(&refused), "{refused:?}");
    }
}

#[tokio::test]
async fn many_that_come_at_once_are_counted_each() {
    let record = record(Arc::new(Memory::default()));
    let all = (0..MAX_OPEN_OF_CALLER + 100).map(|number| {
        let record = record.clone();
        tokio::spawn(async move { ask(&record, "key-1", number, Durability::BeforeSeen).await })
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
            let asked = ask(&record, caller, number, Durability::BeforeSeen).await;
            assert!(asked.is_ok(), "{caller} {number}: {asked:?}");
        }
    }
}

fn is_refused_at_server(asked: &Result<String, RecordError>) -> bool {
    matches!(asked, Err(RecordError::TooManyOpen { limit, of_server: true }) if *limit == MAX_OPEN_OF_SERVER)
}

async fn one_server_leaves_room(store: Arc<dyn RecordStore>, durability: Durability) {
    let record = record(store);
    let question = |number: usize| asked(&format!("Who? {number}"));
    let ask = async |server: &str, caller: &str, number: usize| {
        ask_at(
            &record,
            server,
            caller,
            &question(number),
            number,
            durability,
        )
        .await
    };
    let mut ids = Vec::new();
    for number in 0..MAX_OPEN_OF_SERVER {
        ids.push(ask("hostile", "key-1", number).await.unwrap());
    }
    let mut number = MAX_OPEN_OF_SERVER;
    for _ in 0..2 {
        number += 1;
        let refused = ask("hostile", "key-1", number).await;
        assert!(is_refused_at_server(&refused), "{refused:?}");
    }
    // Other callers at that server, and other servers, are not affected.
    ask("hostile", "key-2", number).await.unwrap();
    ask("other", "key-1", number).await.unwrap();
    // The gateway still asks for approval of calls, there and at other servers.
    let team = team::team("d").for_approval().to_plan().unwrap();
    for server in ["hostile", "other"] {
        number += 1;
        let approval = NewQuestion {
            team: Some(team.clone()),
            ..question(number)
        };
        let asked = ask_at(&record, server, "key-1", &approval, number, durability).await;
        assert!(asked.is_ok(), "{asked:?}");
        // An approval is not a question of its server.
        let refused = ask("hostile", "key-1", 2 * number).await;
        assert!(is_refused_at_server(&refused), "{refused:?}");
    }
    let ended = record.submit(
        &ids[0],
        &Outcome::Decline,
        "a test",
        Durability::WithDelivery,
    );
    assert_eq!(ended.await.unwrap(), Verdict::Won);
    ask("hostile", "key-1", 3 * number).await.unwrap();
    let refused = ask("hostile", "key-1", 4 * number).await;
    assert!(is_refused_at_server(&refused), "{refused:?}");
}

#[tokio::test]
async fn one_server_cannot_use_up_the_questions_of_its_caller() {
    let folder = tempfile::tempdir().unwrap();
    for (number, durability) in [Durability::BeforeSeen, Durability::Behind]
        .into_iter()
        .enumerate()
    {
        one_server_leaves_room(Arc::new(Memory::default()), durability).await;
        let path = folder.path().join(format!("{number}.db"));
        let store = Sqlite::open(&path).await.unwrap();
        one_server_leaves_room(Arc::new(store), durability).await;
    }
}
