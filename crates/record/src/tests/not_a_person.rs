//! Questions that move from a client's own dialog to people, and acts that are doubted.

use mcp_elicit_core::lifecycle::NotAPerson;
use mcp_elicit_core::wire::Action;

use super::*;
use crate::store::{AuditEntry, Filter, ListQuery, Page, Sqlite};

/// Returns the audit's events of questions, as JSON.
async fn events(store: &dyn RecordStore) -> Vec<serde_json::Value> {
    let links = audit::read(store).await.unwrap();
    let read = |link: &AuditEntry| serde_json::from_str(&link.entry).unwrap();
    links.iter().map(read).collect()
}

fn by_client(message: &str) -> NewQuestion {
    NewQuestion {
        client_info: Some(r#"{"name":"robot","version":"2.0"}"#.to_owned()),
        ..at_client(message)
    }
}

const ERROR: NotAPerson = NotAPerson::Error { code: -32601 };

#[tokio::test]
async fn a_moved_question_is_stored_as_one_for_people_and_its_answer_is_delivered_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.sqlite");
    let record = record(Arc::new(Sqlite::at(&path)));
    record.check_presence().await.unwrap();
    let (id, mut told) = ask_behind(&record, &by_client("Who?"));
    record.write_behind(&id).now().unwrap();
    let moved = record.move_to_people(&id, ERROR, &[]);
    assert_eq!(moved.await.unwrap(), Verdict::Won);
    record.flush().await.unwrap();
    // As another process, or a later one, reads it.
    let other = Sqlite::at(&path);
    let row = other.find(id.clone()).await.unwrap().unwrap();
    assert!(!row.is_at_client() && row.body.at_client && !row.exclusive);
    assert_eq!(row.lifecycle.moved().map(|moved| moved.why), Some(ERROR));
    let listed = other
        .list(ListQuery::new(Filter::Open, Page::first(9)))
        .await
        .unwrap();
    assert!(listed.len() == 1 && !listed[0].is_at_client());
    // A late second move changes nothing.
    let again = record.move_to_people(&id, NotAPerson::Malformed, &[]);
    assert_eq!(again.await.unwrap(), Verdict::Won);
    let submitted = record.submit(&id, &accept(), "inbox", Durability::BeforeSeen);
    assert_eq!(submitted.await.unwrap(), Verdict::Won);
    assert!(matches!(
        told.recv().await,
        Some(RecordEvent::Answered { .. })
    ));
    let ids = [id.clone()];
    assert!(record.deliver(&ids).await.unwrap().is_some());
    assert_eq!(record.deliver(&ids).await.unwrap(), None);
    record.confirm(&ids).await.unwrap();
    let late = record.move_to_people(&id, ERROR, &[]);
    assert!(matches!(late.await.unwrap(), Verdict::Late(_)));
    record.flush().await.unwrap();
    let all = events(&other).await;
    let words: Vec<_> = all.iter().map(|event| event["event"].clone()).collect();
    assert_eq!(
        words,
        ["asked", "client-not-a-person", "answered", "delivered"]
    );
    assert_eq!(all[1]["client"], "robot 2.0");
    assert_eq!(all[1]["evidence"], "error");
    assert_eq!(all[1]["reason"], "the client answered with error -32601");
    assert_eq!(all[2]["by"], "inbox");
}

#[tokio::test]
async fn the_same_call_made_again_finds_a_moved_question() {
    let (_below, record) = alone().await;
    let (id, _told) = ask_behind(&record, &by_client("Who?"));
    record.write_behind(&id).now().unwrap();
    let moved = record.move_to_people(&id, NotAPerson::Malformed, &[]);
    moved.await.unwrap();
    record.release(&id).await.unwrap();
    let submitted = record.submit(&id, &Outcome::Decline, "inbox", Durability::BeforeSeen);
    assert_eq!(submitted.await.unwrap(), Verdict::Won);
    let (tell, _told) = mpsc::unbounded_channel();
    let again = record.create(
        &local(),
        &asked("Who?"),
        SessionKey(2),
        &tell,
        Durability::BeforeSeen,
    );
    let again = again.await.unwrap();
    assert_eq!((again.id, again.answered), (id, true));
}

#[tokio::test]
async fn the_calls_that_may_have_asked_are_shown_to_people() {
    let (_below, record) = alone().await;
    let one = asked("Who?").call.unwrap();
    let other = CallSummary {
        target: "read".to_owned(),
        arguments: Some(r#"{"n":1}"#.to_owned()),
        ..one.clone()
    };
    let ambiguous = NewQuestion {
        others: vec!["read".to_owned()],
        ..by_client("Who?")
    };
    let (id, _told) = ask_behind(&record, &ambiguous);
    let moved = record.move_to_people(&id, ERROR, &[one, other]);
    moved.await.unwrap();
    let row = record.find(&id).await.unwrap().unwrap();
    let candidates = record.candidates(&row).unwrap();
    let targets: Vec<_> = candidates.iter().map(|call| &call.target).collect();
    assert_eq!(targets, ["deploy", "read"]);
    assert_eq!(candidates[1].arguments.as_deref(), Some(r#"{"n":1}"#));
}

#[tokio::test]
async fn a_doubted_act_that_counts_is_in_the_audit_before_it() {
    for durability in [Durability::Behind, Durability::BeforeSeen] {
        let (below, record) = alone().await;
        let (id, _told) = match durability {
            Durability::Behind => ask_behind(&record, &by_client("Who?")),
            _ => ask(&record, &by_client("Who?")).await,
        };
        let why = NotAPerson::TooFast {
            act: Action::Decline,
            after_ms: 2,
        };
        record.doubt_act(&id, why).await.unwrap();
        let submitted = record.submit(&id, &Outcome::Decline, "client", durability);
        assert_eq!(submitted.await.unwrap(), Verdict::Won);
        let _taken = record.deliver(std::slice::from_ref(&id)).await.unwrap();
        record.confirm(std::slice::from_ref(&id)).await.unwrap();
        record.write_behind(&id).await.unwrap();
        record.flush().await.unwrap();
        let all = events(&*below).await;
        let words: Vec<_> = all.iter().map(|event| event["event"].clone()).collect();
        assert_eq!(
            words,
            ["asked", "client-not-a-person", "declined", "delivered"]
        );
        assert_eq!(all[1]["evidence"], "too-fast");
    }
}
