//! Rounds clients: their answers in hand, what is found again, and a store that fails meanwhile.

use crate::{RecordEvent, SessionKey};
use mcp_elicit_core::question::{AskedVia, Ending, NewQuestion};
use std::sync::atomic::Ordering;

use super::*;
use crate::store::Sqlite;
use crate::store::failing::Failing;

/// Returns what a client is asked that answers with a request of its own, which may come after any restart.
fn at_rounds_client(message: &str) -> NewQuestion {
    NewQuestion {
        via: AskedVia::Client,
        ..asked(message)
    }
}

async fn raised(book: &Book, message: &str, tell: &mpsc::UnboundedSender<RecordEvent>) -> String {
    let asked = at_rounds_client(message);
    let raised = book.raise(&local(), &asked, SessionKey(1), tell).await;
    raised.unwrap().id
}

async fn events(below: &Memory) -> Vec<String> {
    let links = audit::read(below).await.unwrap();
    links.iter().map(|link| event(&link.entry)).collect()
}

#[tokio::test]
async fn a_clients_answer_is_written_together_with_its_delivery_and_without_its_value() {
    let (below, book) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let id = raised(&book, "Who?", &tell).await;
    assert!(below.find(id.clone()).await.unwrap().is_some(), "awaited");
    assert!(book.settle_in_hand(&id, &accept(), "client"));
    assert!(!book.settle_in_hand(&id, &Outcome::Decline, "client"));
    let ids = [id.clone()];
    let taken = book.take(&ids).await.unwrap().unwrap();
    assert_eq!(taken, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
    assert_eq!(book.take(&ids).await.unwrap(), None, "only once");
    assert_eq!(events(&below).await, ["asked", "answered"]);
    book.confirm(&ids).await.unwrap();
    book.flush().await.unwrap();
    let row = below.find(id).await.unwrap().unwrap();
    assert!(row.exchange.delivered_at().is_some());
    assert_eq!((row.content, row.arguments), (None, None));
    assert_eq!(events(&below).await, ["asked", "answered", "delivered"]);
    assert!(book.live().is_empty() && book.in_transit().is_empty());
}

#[tokio::test]
async fn a_page_that_wrote_first_wins_over_an_answer_in_hand() {
    let (below, book) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let id = raised(&book, "Who?", &tell).await;
    assert!(book.settle_in_hand(&id, &accept(), "client"));
    // A page of another process, which knows nothing of what is in hand here.
    let other = Book::new(
        below.clone(),
        book.keys.clone(),
        Lease::alone().unwrap(),
        clock,
    );
    let settled = other.settle(&id, &Outcome::Decline, "inbox").await.unwrap();
    assert_eq!(settled, Settling::Won);
    let taken = book.take(std::slice::from_ref(&id)).await.unwrap().unwrap();
    assert_eq!(taken, [r#"{"action":"decline"}"#]);
    book.confirm(&[id]).await.unwrap();
    assert_eq!(events(&below).await, ["asked", "declined", "delivered"]);
}

#[tokio::test]
async fn an_answer_in_hand_is_kept_when_its_session_goes_or_its_round_is_not_whole() {
    let (below, book) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let [id, missing, left] = [
        raised(&book, "Who?", &tell).await,
        raised(&book, "Where?", &tell).await,
        raised(&book, "When?", &tell).await,
    ];
    assert!(book.settle_in_hand(&id, &accept(), "client"));
    let round = [id.clone(), missing];
    assert_eq!(book.take(&round).await.unwrap(), None);
    let row = below.find(id).await.unwrap().unwrap();
    assert!(row.exchange.phase().action().is_some() && row.content.is_some());
    assert!(book.settle_in_hand(&left, &accept(), "client"));
    book.let_go(&tell).await.unwrap();
    let row = below.find(left.clone()).await.unwrap().unwrap();
    assert!(row.exchange.phase().action().is_some() && row.content.is_some());
    let (second, _told) = mpsc::unbounded_channel();
    let asked = at_rounds_client("When?");
    let who = local();
    let again = book.raise(&who, &asked, SessionKey(2), &second);
    let expected = Raised {
        id: left,
        answered: true,
        refused: false,
    };
    assert_eq!(again.await.unwrap(), expected, "found by the same call");
}

#[tokio::test]
async fn a_question_whose_call_ended_after_its_answer_is_found_again() {
    let (_, book) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let id = raised(&book, "Who?", &tell).await;
    let settled = book.settle(&id, &accept(), "inbox").await.unwrap();
    assert_eq!(settled, Settling::Won);
    book.end(&id, Ending::CallEnded).await.unwrap();
    assert_eq!(raised(&book, "Who?", &tell).await, id);
}

#[tokio::test]
async fn a_page_that_is_opened_or_an_end_does_not_lose_an_answer_in_hand() {
    let (_, book) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let id = raised(&book, "Who?", &tell).await;
    assert!(book.settle_in_hand(&id, &accept(), "client"));
    book.shown(&id).await.unwrap();
    let taken = book.take(&[id]).await.unwrap().unwrap();
    assert_eq!(taken, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
    // The server is down: the end is queued before the write.
    let id = raised(&book, "Where?", &tell).await;
    assert!(book.settle_in_hand(&id, &accept(), "client"));
    book.end(&id, Ending::CallEnded).await.unwrap();
    book.write_in_hand(&id).await.unwrap();
    assert_eq!(raised(&book, "Where?", &tell).await, id, "found again");
}

#[tokio::test]
async fn two_same_calls_at_once_find_two_answers() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("record.sqlite")).await;
    let book = book(Arc::new(store.unwrap()));
    book.look_for_company().await.unwrap();
    let (tell, _told) = mpsc::unbounded_channel();
    let mut left = [
        raised(&book, "Who?", &tell).await,
        raised(&book, "Who?", &tell).await,
    ];
    for id in &left {
        book.settle(id, &accept(), "inbox").await.unwrap();
    }
    book.let_go(&tell).await.unwrap();
    let (tell, _told) = mpsc::unbounded_channel();
    let (one, two) = tokio::join!(raised(&book, "Who?", &tell), raised(&book, "Who?", &tell));
    let mut found = [one, two];
    found.sort();
    left.sort();
    assert_eq!(found, left);
}

async fn flaky() -> (Arc<Failing>, Book) {
    let below: Arc<Failing> = Arc::default();
    let book = book(below.clone());
    book.look_for_company().await.unwrap();
    (below, book)
}

#[tokio::test]
async fn a_lookup_that_failed_is_made_again() {
    let (below, book) = flaky().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let id = raised(&book, "Who?", &tell).await;
    book.settle(&id, &accept(), "inbox").await.unwrap();
    book.let_go(&tell).await.unwrap();
    below.lookups.store(1, Ordering::SeqCst);
    let (tell, _told) = mpsc::unbounded_channel();
    let asked = at_rounds_client("Who?");
    let who = local();
    let failed = book.raise(&who, &asked, SessionKey(1), &tell);
    assert!(failed.await.is_err());
    assert_eq!(raised(&book, "Who?", &tell).await, id);
}

#[tokio::test]
async fn a_session_lets_go_of_everything_though_a_write_fails() {
    let (below, book) = flaky().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let first = raised(&book, "Who?", &tell).await;
    for number in 0..9 {
        raised(&book, &format!("Who? {number}"), &tell).await;
    }
    assert!(book.settle_in_hand(&first, &accept(), "client"));
    below.writes.store(2, Ordering::SeqCst);
    assert!(book.let_go(&tell).await.is_err());
    assert!(book.live().is_empty(), "nobody waits any more");
}

#[tokio::test]
async fn an_answer_in_hand_outlives_a_failed_take() {
    let (below, book) = flaky().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let id = raised(&book, "Who?", &tell).await;
    assert!(book.settle_in_hand(&id, &accept(), "client"));
    below.writes.store(2, Ordering::SeqCst);
    assert!(book.take(std::slice::from_ref(&id)).await.is_err());
    // What follows when the relay hears that it was not taken.
    book.end(&id, Ending::CallEnded).await.unwrap();
    assert_eq!(raised(&book, "Who?", &tell).await, id);
}

#[tokio::test]
async fn marks_that_stand_for_nothing_are_forgotten() {
    let (_, book) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let kept = raised(&book, "Who?", &tell).await;
    book.let_go(&tell).await.unwrap();
    for number in 0..5_000 {
        book.company.left_behind(&format!("{number}"));
    }
    book.look_for_company().await.unwrap();
    assert_eq!(book.company.mark_of("7"), None);
    assert_eq!(raised(&book, "Who?", &tell).await, kept);
}

/// A question of which it is not known for which of two calls of one tool it is.
fn ambiguous(message: &str) -> NewQuestion {
    NewQuestion {
        others: vec!["deploy".to_owned()],
        ..asked(message)
    }
}

#[tokio::test]
async fn an_answer_to_nobody_knows_which_call_is_found_by_none() {
    let (below, book) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let raise = async |asked: NewQuestion, tell: &mpsc::UnboundedSender<RecordEvent>| {
        let raised = book.raise(&local(), &asked, SessionKey(1), tell).await;
        raised.unwrap().id
    };
    let answered = raise(ambiguous("Sure?"), &tell).await;
    book.settle(&answered, &accept(), "inbox").await.unwrap();
    let open = raise(ambiguous("Sure?"), &tell).await;
    book.let_go(&tell).await.unwrap();
    let (tell, _told) = mpsc::unbounded_channel();
    for again in [ambiguous("Sure?"), asked("Sure?")] {
        let again = raise(again, &tell).await;
        assert!(![&answered, &open].contains(&&again), "asked anew");
    }
    book.look_around().await.unwrap();
    let row = below.find(open).await.unwrap().unwrap();
    assert!(!row.exchange.is_open(), "nobody can come back for it");
    let waiting = below.list(Which::Open, Page::first(10)).await.unwrap();
    assert_eq!(waiting.len(), 2, "those that are waited for stay");
    // What is certain is not answered by what may have been another call's.
    let other = raise(asked("Where?"), &tell).await;
    book.settle(&other, &accept(), "inbox").await.unwrap();
    book.let_go(&tell).await.unwrap();
    assert_ne!(raise(ambiguous("Where?"), &tell).await, other);
}
