//! Rounds clients: their pending answers, repeated questions, and a store that fails in the meantime.

use crate::{RecordEvent, SessionKey};
use mcp_elicit_core::question::{AskedVia, Ending, NewQuestion};
use std::sync::atomic::Ordering;

use super::*;
use crate::store::fault_injection::Failing;
use crate::store::{ListQuery, Sqlite};
use tokio::sync::mpsc;

/// Returns a question for a client that answers with a new request, which may come after any restart.
fn at_rounds_client(message: &str) -> NewQuestion {
    NewQuestion {
        via: AskedVia::Client,
        ..asked(message)
    }
}

async fn recorded(
    record: &Arc<Record>,
    message: &str,
    tell: &mpsc::UnboundedSender<RecordEvent>,
) -> String {
    raise(record, at_rounds_client(message), tell).await
}

async fn raise(
    record: &Arc<Record>,
    asked: NewQuestion,
    tell: &mpsc::UnboundedSender<RecordEvent>,
) -> String {
    let recorded = record
        .create(
            &local(),
            &asked,
            SessionKey(1),
            tell,
            Durability::BeforeSeen,
        )
        .await;
    recorded.unwrap().id
}

async fn events(below: &Memory) -> Vec<String> {
    let links = audit::read(below).await.unwrap();
    links.iter().map(|link| event(&link.entry)).collect()
}

#[tokio::test]
async fn a_clients_answer_is_written_together_with_its_delivery_and_without_its_value() {
    let (below, record) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let id = recorded(&record, "Who?", &tell).await;
    assert!(below.find(id.clone()).await.unwrap().is_some(), "awaited");
    assert!(holds(&record, &id, &accept()));
    assert!(!holds(&record, &id, &Outcome::Decline));
    let ids = [id.clone()];
    let taken = record.deliver(&ids).await.unwrap().unwrap();
    assert_eq!(taken, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
    assert_eq!(record.deliver(&ids).await.unwrap(), None, "only once");
    assert_eq!(events(&below).await, ["asked", "answered"]);
    record.confirm(&ids).await.unwrap();
    record.flush().await.unwrap();
    let row = below.find(id).await.unwrap().unwrap();
    assert!(row.lifecycle.delivered_at().is_some());
    assert_eq!((row.content, row.arguments), (None, None));
    assert_eq!(events(&below).await, ["asked", "answered", "delivered"]);
    assert!(record.live().is_empty() && record.in_transit().is_empty());
}

#[tokio::test]
async fn a_page_that_wrote_first_wins_over_an_answer_in_hand() {
    let (below, record) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let id = recorded(&record, "Who?", &tell).await;
    assert!(holds(&record, &id, &accept()));
    // A page of another process, which knows nothing of this process's pending answers.
    let other = Arc::new(Record::new(
        below.clone(),
        record.keys.clone(),
        LockFile::unshared().unwrap(),
        clock,
    ));
    let settled = other
        .submit(&id, &Outcome::Decline, "inbox", Durability::WithDelivery)
        .await
        .unwrap();
    assert_eq!(settled, Verdict::Won);
    let taken = record
        .deliver(std::slice::from_ref(&id))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(taken, [r#"{"action":"decline"}"#]);
    record.confirm(&[id]).await.unwrap();
    assert_eq!(events(&below).await, ["asked", "declined", "delivered"]);
}

#[tokio::test]
async fn an_answer_in_hand_is_kept_when_its_session_goes_or_its_round_is_not_whole() {
    let (below, record) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let [id, missing, left] = [
        recorded(&record, "Who?", &tell).await,
        recorded(&record, "Where?", &tell).await,
        recorded(&record, "When?", &tell).await,
    ];
    assert!(holds(&record, &id, &accept()));
    let round = [id.clone(), missing];
    assert_eq!(record.deliver(&round).await.unwrap(), None);
    let row = below.find(id).await.unwrap().unwrap();
    assert!(row.lifecycle.phase().action().is_some() && row.content.is_some());
    assert!(holds(&record, &left, &accept()));
    record.release_session(&tell).await.unwrap();
    let row = below.find(left.clone()).await.unwrap().unwrap();
    assert!(row.lifecycle.phase().action().is_some() && row.content.is_some());
    let (second, _told) = mpsc::unbounded_channel();
    let asked = at_rounds_client("When?");
    let who = local();
    let again = record.create(&who, &asked, SessionKey(2), &second, Durability::BeforeSeen);
    let expected = RecordedQuestion {
        id: left,
        answered: true,
        refused: false,
        trace: None,
    };
    assert_eq!(again.await.unwrap(), expected, "found by the same call");
}

#[tokio::test]
async fn a_question_whose_call_ended_after_its_answer_is_found_again() {
    let (_, record) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let id = recorded(&record, "Who?", &tell).await;
    let settled = record
        .submit(&id, &accept(), "inbox", Durability::WithDelivery)
        .await
        .unwrap();
    assert_eq!(settled, Verdict::Won);
    record.end(&id, Ending::CallEnded).await.unwrap();
    assert_eq!(recorded(&record, "Who?", &tell).await, id);
}

#[tokio::test]
async fn a_page_that_is_opened_or_an_end_does_not_lose_an_answer_in_hand() {
    let (_, record) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let id = recorded(&record, "Who?", &tell).await;
    assert!(holds(&record, &id, &accept()));
    record.mark_shown(&id).await.unwrap();
    let taken = record.deliver(&[id]).await.unwrap().unwrap();
    assert_eq!(taken, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
    // The server is down: the end is queued before the write.
    let id = recorded(&record, "Where?", &tell).await;
    assert!(holds(&record, &id, &accept()));
    record.end(&id, Ending::CallEnded).await.unwrap();
    record.write_behind(&id).await.unwrap();
    assert_eq!(recorded(&record, "Where?", &tell).await, id, "found again");
}

#[tokio::test]
async fn two_same_calls_at_once_find_two_answers() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("record.sqlite")).await;
    let record = record(Arc::new(store.unwrap()));
    record.check_presence().await.unwrap();
    let (tell, _told) = mpsc::unbounded_channel();
    let mut left = [
        recorded(&record, "Who?", &tell).await,
        recorded(&record, "Who?", &tell).await,
    ];
    for id in &left {
        record
            .submit(id, &accept(), "inbox", Durability::WithDelivery)
            .await
            .unwrap();
    }
    record.release_session(&tell).await.unwrap();
    let (tell, _told) = mpsc::unbounded_channel();
    let (one, two) = tokio::join!(
        recorded(&record, "Who?", &tell),
        recorded(&record, "Who?", &tell)
    );
    let mut found = [one, two];
    found.sort();
    left.sort();
    assert_eq!(found, left);
}

async fn flaky() -> (Arc<Failing>, Arc<Record>) {
    let below: Arc<Failing> = Arc::default();
    let record = record(below.clone());
    record.check_presence().await.unwrap();
    (below, record)
}

#[tokio::test]
async fn a_lookup_that_failed_is_made_again() {
    let (below, record) = flaky().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let id = recorded(&record, "Who?", &tell).await;
    record
        .submit(&id, &accept(), "inbox", Durability::WithDelivery)
        .await
        .unwrap();
    record.release_session(&tell).await.unwrap();
    below.lookups.store(1, Ordering::SeqCst);
    let (tell, _told) = mpsc::unbounded_channel();
    let asked = at_rounds_client("Who?");
    let who = local();
    let failed = record.create(&who, &asked, SessionKey(1), &tell, Durability::BeforeSeen);
    assert!(failed.await.is_err());
    assert_eq!(recorded(&record, "Who?", &tell).await, id);
}

#[tokio::test]
async fn a_session_lets_go_of_everything_though_a_write_fails() {
    let (below, record) = flaky().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let first = recorded(&record, "Who?", &tell).await;
    for number in 0..9 {
        recorded(&record, &format!("Who? {number}"), &tell).await;
    }
    assert!(holds(&record, &first, &accept()));
    below.writes.store(2, Ordering::SeqCst);
    assert!(record.release_session(&tell).await.is_err());
    assert!(record.live().is_empty(), "nobody waits any more");
}

#[tokio::test]
async fn an_answer_in_hand_outlives_a_failed_take() {
    let (below, record) = flaky().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let id = recorded(&record, "Who?", &tell).await;
    assert!(holds(&record, &id, &accept()));
    below.writes.store(2, Ordering::SeqCst);
    assert!(record.deliver(std::slice::from_ref(&id)).await.is_err());
    // As the relay does after the answer was not accepted.
    record.end(&id, Ending::CallEnded).await.unwrap();
    assert_eq!(recorded(&record, "Who?", &tell).await, id);
}

#[tokio::test]
async fn marks_that_stand_for_nothing_are_forgotten() {
    let (_, record) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let kept = recorded(&record, "Who?", &tell).await;
    record.release_session(&tell).await.unwrap();
    for number in 0..5_000 {
        record.presence.may_hold(&format!("{number}"));
    }
    record.check_presence().await.unwrap();
    assert_eq!(record.presence.mark_of("7"), None);
    assert_eq!(recorded(&record, "Who?", &tell).await, kept);
}

/// Returns a question that may be for either of two calls of one tool.
fn ambiguous(message: &str) -> NewQuestion {
    NewQuestion {
        others: vec!["deploy".to_owned()],
        ..asked(message)
    }
}

#[tokio::test]
async fn an_answer_to_nobody_knows_which_call_is_found_by_none() {
    let (below, record) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let answered = raise(&record, ambiguous("Sure?"), &tell).await;
    record
        .submit(&answered, &accept(), "inbox", Durability::WithDelivery)
        .await
        .unwrap();
    let open = raise(&record, ambiguous("Sure?"), &tell).await;
    record.release_session(&tell).await.unwrap();
    let (tell, _told) = mpsc::unbounded_channel();
    for again in [ambiguous("Sure?"), asked("Sure?")] {
        let again = raise(&record, again, &tell).await;
        assert!(![&answered, &open].contains(&&again), "asked anew");
    }
    record.sweep().await.unwrap();
    let row = below.find(open).await.unwrap().unwrap();
    assert!(!row.lifecycle.is_open(), "nobody can come back for it");
    let waiting = below
        .list(ListQuery::new(Filter::Open, Page::first(10)))
        .await
        .unwrap();
    assert_eq!(waiting.len(), 2, "those that are waited for stay");
    // A question with a known call does not get the answer of an ambiguous one.
    let other = raise(&record, asked("Where?"), &tell).await;
    record
        .submit(&other, &accept(), "inbox", Durability::WithDelivery)
        .await
        .unwrap();
    record.release_session(&tell).await.unwrap();
    assert_ne!(raise(&record, ambiguous("Where?"), &tell).await, other);
}

/// Returns a record whose sessions deliver the answers held for them.
async fn delivering() -> (Arc<Failing>, Arc<Record>) {
    let below: Arc<Failing> = Arc::default();
    let keys = OwnKeys::random().unwrap();
    let record = Record::new(below.clone(), keys, LockFile::unshared().unwrap(), clock);
    let record = Arc::new(record.with_delivering_sessions());
    record.check_presence().await.unwrap();
    (below, record)
}

/// A person answers on a page, and the waiting session gets the event.
async fn held(
    record: &Arc<Record>,
    id: &str,
    told: &mut mpsc::UnboundedReceiver<RecordEvent>,
) -> tokio::task::JoinHandle<Result<Verdict, RecordError>> {
    let page = record.submit(id, &accept(), "inbox", Durability::WithDelivery);
    let page = tokio::spawn(page.into_future());
    let held = Some(id.to_owned());
    let question = SessionKey(1);
    let expected = RecordEvent::Answered { question, held };
    assert_eq!(told.recv().await, Some(expected));
    page
}

#[tokio::test]
async fn an_answer_that_is_to_be_written_before_it_is_seen_does_not_wait_for_its_delivery() {
    let (below, record) = delivering().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let ids = [recorded(&record, "Who?", &tell).await];
    let answer = record.submit(&ids[0], &accept(), "inbox", Durability::BeforeSeen);
    assert_eq!(answer.await.unwrap(), Verdict::Won);
    let row = below.find(ids[0].clone()).await.unwrap().unwrap();
    assert!(row.lifecycle.ended_by().is_some() && row.content.is_some());
    assert!(row.lifecycle.delivered_at().is_none() && !row.is_in_transit());
    let (question, held) = (SessionKey(1), None);
    let expected = RecordEvent::Answered { question, held };
    assert_eq!(
        told.try_recv(),
        Ok(expected),
        "the session is told afterwards"
    );
    assert!(record.deliver(&ids).await.unwrap().is_some());
}

#[tokio::test]
async fn a_pages_answer_is_one_write_together_with_its_delivery() {
    let people = (asked("Who?"), Durability::BeforeSeen);
    let client = (at_client("Who?"), Durability::Behind);
    for (asked, durability) in [people, client] {
        let (below, record) = delivering().await;
        let (tell, mut told) = mpsc::unbounded_channel();
        let created = record.create(&local(), &asked, SessionKey(1), &tell, durability);
        let ids = [created.await.unwrap().id];
        let page = held(&record, &ids[0], &mut told).await;
        let row = below.find(ids[0].clone()).await.unwrap();
        assert!(
            row.is_none_or(|row| row.lifecycle.is_open()),
            "not by itself"
        );
        assert!(!page.is_finished(), "the person is told when it is written");
        let taken = record.deliver(&ids).await.unwrap().unwrap();
        assert_eq!(taken, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
        assert_eq!(page.await.unwrap().unwrap(), Verdict::Won);
        let row = below.find(ids[0].clone()).await.unwrap().unwrap();
        assert!(
            row.is_in_transit() && !row.exclusive,
            "a kill here leaves it in doubt"
        );
        assert_eq!(row.lifecycle.ended_by(), Some("inbox"));
        assert_eq!(record.deliver(&ids).await.unwrap(), None, "only once");
        record.write_behind(&ids[0]).await.unwrap();
        record.confirm(&ids).await.unwrap();
        record.flush().await.unwrap();
        let row = below.find(ids[0].clone()).await.unwrap().unwrap();
        assert_eq!((row.content, row.arguments), (None, None));
        let events = events(&below.below).await;
        assert_eq!(events, ["asked", "answered", "delivered"]);
        assert!(record.live().is_empty() && record.in_transit().is_empty());
    }
}

#[tokio::test]
async fn a_pages_answer_that_is_not_delivered_at_once_is_written_by_itself() {
    let (below, record) = delivering().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let id = recorded(&record, "Who?", &tell).await;
    let page = held(&record, &id, &mut told).await;
    // Another answer of its round is missing: the session cannot deliver yet.
    record.write_behind(&id).await.unwrap();
    assert_eq!(page.await.unwrap().unwrap(), Verdict::Won);
    let row = below.find(id.clone()).await.unwrap().unwrap();
    assert!(row.lifecycle.phase().action().is_some() && row.content.is_some());
    let late = record.submit(&id, &Outcome::Decline, "tab 2", Durability::WithDelivery);
    assert!(matches!(late.await.unwrap(), Verdict::Late(_)));
    let taken = record.deliver(&[id]).await.unwrap().unwrap();
    assert_eq!(taken, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
}

#[tokio::test]
async fn the_second_of_two_pages_is_late_while_the_first_answer_is_held() {
    let (below, record) = delivering().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let id = recorded(&record, "Who?", &tell).await;
    let page = held(&record, &id, &mut told).await;
    record.mark_shown(&id).await.unwrap();
    let late = record.submit(&id, &Outcome::Decline, "tab 2", Durability::WithDelivery);
    assert!(matches!(late.await.unwrap(), Verdict::Late(_)));
    assert_eq!(page.await.unwrap().unwrap(), Verdict::Won);
    let taken = record.deliver(&[id]).await.unwrap().unwrap();
    assert_eq!(taken, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
    assert_eq!(events(&below.below).await, ["asked", "answered"]);
}

#[tokio::test]
async fn a_pages_answer_outlives_the_end_of_its_call_and_of_its_session() {
    let (_, record) = delivering().await;
    for (message, ends) in [("Who?", true), ("Where?", false)] {
        let (tell, mut told) = mpsc::unbounded_channel();
        let id = recorded(&record, message, &tell).await;
        let page = held(&record, &id, &mut told).await;
        if ends {
            record.end(&id, Ending::CallEnded).await.unwrap();
        } else {
            record.release_session(&tell).await.unwrap();
        }
        assert_eq!(page.await.unwrap().unwrap(), Verdict::Won);
        let (tell, _told) = mpsc::unbounded_channel();
        assert_eq!(recorded(&record, message, &tell).await, id, "found again");
    }
}

#[tokio::test]
async fn a_page_whose_session_is_gone_writes_its_answer_itself() {
    let (below, record) = delivering().await;
    let (tell, told) = mpsc::unbounded_channel();
    let id = recorded(&record, "Who?", &tell).await;
    drop(told);
    let page = record.submit(&id, &accept(), "inbox", Durability::WithDelivery);
    assert_eq!(page.await.unwrap(), Verdict::Won);
    let row = below.find(id).await.unwrap().unwrap();
    assert!(row.lifecycle.phase().action().is_some() && row.content.is_some());
}

#[tokio::test]
async fn a_person_whose_answer_could_not_be_written_is_told_and_may_answer_again() {
    let (below, record) = delivering().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let ids = [recorded(&record, "Who?", &tell).await];
    let page = held(&record, &ids[0], &mut told).await;
    below.writes.store(2, Ordering::SeqCst);
    let failed = record.deliver(&ids).await;
    assert!(
        matches!(&failed, Err(RecordError::DeliveryNotWritten { reopened, .. }) if *reopened == ids),
        "{failed:?}"
    );
    assert!(matches!(page.await.unwrap(), Err(RecordError::NotWritten)));
    record.write_behind(&ids[0]).await.unwrap();
    let row = record.find(&ids[0]).await.unwrap().unwrap();
    assert!(row.lifecycle.is_open());
    let again = record.submit(
        &ids[0],
        &Outcome::Decline,
        "inbox",
        Durability::WithDelivery,
    );
    let again = tokio::spawn(again.into_future());
    assert!(told.recv().await.is_some());
    let taken = record.deliver(&ids).await.unwrap().unwrap();
    assert_eq!(taken, [r#"{"action":"decline"}"#]);
    assert_eq!(again.await.unwrap().unwrap(), Verdict::Won);
}
