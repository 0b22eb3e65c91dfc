//! The book over a store in memory: first answer, once delivered, found again.

use crate::{RecordEvent, SessionKey};
use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::question::{AskedVia, CallSummary, Ending, NewQuestion};
use mcp_elicit_core::wire::{CallKind, ElicitRequest, Revision};

use super::*;
use crate::store::Memory;

mod calls;
mod chain;
mod in_hand;
mod refused;
mod validity;

fn clock() -> Timestamp {
    Timestamp::from_millis(1_000)
}

fn book(store: Arc<dyn Store>) -> Book {
    Book::new(
        store,
        Keys::random().unwrap(),
        Lease::alone().unwrap(),
        clock,
    )
}

/// A caller of a server.
fn of(server: &str, caller: &str) -> SessionIdentity {
    SessionIdentity {
        server: ServerIdentity {
            name: "s".to_owned(),
            is_named: true,
            address: server.to_owned(),
            key: server.to_owned(),
        },
        caller: caller.to_owned(),
    }
}

fn local() -> SessionIdentity {
    of("s", "local")
}

fn form() -> mcp_elicit_core::form::Form {
    let schema = serde_json::json!({"type": "object", "properties": {"name": {"type": "string"}}});
    mcp_elicit_core::form::Form::from_value(&schema).unwrap()
}

fn asked(message: &str) -> NewQuestion {
    NewQuestion {
        call: Some(CallSummary {
            kind: CallKind::Tool,
            target: "deploy".to_owned(),
            arguments: Some(r#"{"to":"moon"}"#.to_owned()),
            digest: "d".to_owned(),
        }),
        others: Vec::new(),
        candidates: Vec::new(),
        request: ElicitRequest::form(message, &form().emit(Revision::LATEST).unwrap()),
        fields: vec!["name".to_owned()],
        cautions: Vec::new(),
        via: AskedVia::People,
        server_info: None,
        client_info: None,
        until: Timestamp::from_millis(9_000),
        outlives: true,
    }
}

#[tokio::test]
async fn the_first_answer_wins_and_is_taken_once() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let book = book(store.clone());
    let (tell, mut told) = mpsc::unbounded_channel();
    let raised = book
        .raise(&local(), &asked("Who?"), SessionKey(4), &tell)
        .await
        .unwrap();
    let answers = form().check(serde_json::json!({"name": "Ada"})).unwrap();
    assert_eq!(
        book.take(std::slice::from_ref(&raised.id)).await.unwrap(),
        None,
        "nothing to take yet"
    );
    assert_eq!(
        book.settle(&raised.id, &Outcome::Accept(answers), "inbox")
            .await
            .unwrap(),
        Settling::Won
    );
    assert!(matches!(
        book.settle(&raised.id, &Outcome::Decline, "tab 2")
            .await
            .unwrap(),
        Settling::Late(_)
    ));
    assert!(matches!(
        told.recv().await,
        Some(RecordEvent::Settled {
            question: SessionKey(4)
        })
    ));
    let row = book.find(&raised.id).await.unwrap().unwrap();
    assert!(
        !String::from_utf8_lossy(row.content.as_deref().unwrap()).contains("Ada"),
        "values are sealed"
    );
    let taken = book
        .take(std::slice::from_ref(&raised.id))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(taken, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
    assert_eq!(
        book.take(std::slice::from_ref(&raised.id)).await.unwrap(),
        None,
        "only once"
    );
    book.confirm(std::slice::from_ref(&raised.id))
        .await
        .unwrap();
    let row = book.find(&raised.id).await.unwrap().unwrap();
    assert_eq!((row.content, row.arguments), (None, None));
    assert_eq!(
        book.settle("nobody", &Outcome::Visit, "x").await.unwrap(),
        Settling::Gone
    );
    // The audit has every step, no value, and holds together until somebody touches it.
    let mut links = audit::read(&*store).await.unwrap();
    let all: String = links.iter().map(|link| link.entry.as_str()).collect();
    assert!(!all.contains("Ada") && !all.contains("moon") && all.contains("deploy"));
    assert_eq!(
        audit::verify(&links, None),
        audit::Verdict::Whole { links: 3 }
    );
    links[1].entry = links[1].entry.replace("inbox", "nobody");
    assert_eq!(
        audit::verify(&links, None),
        audit::Verdict::BrokenAt { number: 2 }
    );
}

#[tokio::test]
async fn a_question_nobody_waits_for_is_found_by_the_same_call_only() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let book = book(store);
    let (first, _) = mpsc::unbounded_channel();
    let (second, mut told) = mpsc::unbounded_channel();
    let one = book
        .raise(&local(), &asked("Who?"), SessionKey(1), &first)
        .await
        .unwrap();
    let beside = book
        .raise(&local(), &asked("Who?"), SessionKey(2), &second)
        .await
        .unwrap();
    assert_ne!(one.id, beside.id, "somebody waits for the first");
    book.let_go(&first).await.unwrap();
    assert_ne!(
        book.raise(&of("s", "eve"), &asked("Who?"), SessionKey(3), &second)
            .await
            .unwrap()
            .id,
        one.id
    );
    assert_ne!(
        book.raise(&local(), &asked("Who else?"), SessionKey(4), &second)
            .await
            .unwrap()
            .id,
        one.id
    );
    let again = book
        .raise(&local(), &asked("Who?"), SessionKey(5), &second)
        .await
        .unwrap();
    assert_eq!(
        again,
        Raised {
            id: one.id.clone(),
            answered: false,
            refused: false,
        }
    );
    book.settle(&one.id, &Outcome::Decline, "inbox")
        .await
        .unwrap();
    assert!(matches!(
        told.recv().await,
        Some(RecordEvent::Settled {
            question: SessionKey(5)
        })
    ));
    book.let_go(&second).await.unwrap();
    let (third, _) = mpsc::unbounded_channel();
    let answered = book
        .raise(&local(), &asked("Who?"), SessionKey(6), &third)
        .await
        .unwrap();
    assert_eq!(
        answered,
        Raised {
            id: one.id,
            answered: true,
            refused: false,
        }
    );
}

/// A book over a store that others may look into, which knows that it is alone.
async fn alone() -> (Arc<Memory>, Book) {
    let below: Arc<Memory> = Arc::default();
    let book = book(below.clone());
    book.look_for_company().await.unwrap();
    (below, book)
}

fn at_client(message: &str) -> NewQuestion {
    NewQuestion {
        via: AskedVia::Client,
        outlives: false,
        ..asked(message)
    }
}

fn accept() -> Outcome {
    Outcome::Accept(form().check(serde_json::json!({"name": "Ada"})).unwrap())
}

#[tokio::test]
async fn an_answer_that_is_delivered_at_once_is_one_write_without_its_value() {
    let (below, book) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let raised = book.note(&local(), &at_client("Who?"), SessionKey(1), &tell);
    let id = raised.unwrap().expect("it is new").id;
    assert_eq!(
        book.settle_noted(&id, &accept(), "client"),
        Some(Settling::Won)
    );
    let late = book.settle_noted(&id, &Outcome::Decline, "client");
    assert!(matches!(late, Some(Settling::Late(_))));
    let ids = [id.clone()];
    let taken = book.take_noted(&ids).unwrap();
    assert_eq!(taken, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
    assert_eq!(book.take_noted(&ids), None, "only once");
    assert!(
        below.find(id.clone()).await.unwrap().is_none(),
        "a kill here loses all of it, and no half"
    );
    book.write_behind(&id).unwrap();
    book.flush().await.unwrap();
    assert!(
        below.find(id.clone()).await.unwrap().is_none(),
        "on its way it is not written by itself"
    );
    // The server accepts it: that is the same write.
    assert!(book.confirm_in_transit(&ids));
    book.write_behind(&id).unwrap();
    book.flush().await.unwrap();
    let row = below.find(id.clone()).await.unwrap().unwrap();
    assert!(row.exchange.delivered_at().is_some());
    assert_eq!((row.content, row.arguments), (None, None));
    let links = audit::read(&*below).await.unwrap();
    let events: Vec<String> = links.iter().map(|link| event(&link.entry)).collect();
    assert_eq!(events, ["asked", "answered", "delivered"]);
    assert!(links.iter().all(|link| !link.entry.contains("Ada")));
    assert_eq!(book.take(&ids).await.unwrap(), None, "nor by the record");
    assert!(book.live().is_empty());
}

fn event(entry: &str) -> String {
    let entry: serde_json::Value = serde_json::from_str(entry).unwrap();
    entry["event"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_answer_that_nobody_took_waits_for_the_same_call() {
    let (below, book) = alone().await;
    let (first, _told) = mpsc::unbounded_channel();
    let noted = book.note(&local(), &at_client("Who?"), SessionKey(1), &first);
    let id = noted.unwrap().unwrap().id;
    book.write_behind(&id).unwrap();
    book.settle_noted(&id, &accept(), "client");
    book.write_behind(&id).unwrap();
    book.flush().await.unwrap();
    let row = below.find(id.clone()).await.unwrap().unwrap();
    assert!(
        row.exchange.is_open(),
        "an answer is written with its delivery"
    );
    // The call ends: the server is gone, or the client gave up.
    assert!(book.end_noted(&id, Ending::ServerGone).unwrap());
    book.flush().await.unwrap();
    let row = below.find(id.clone()).await.unwrap().unwrap();
    assert!(!row.claimed && row.exchange.phase().action().is_some());
    let (second, _told) = mpsc::unbounded_channel();
    let again = book.note(&local(), &at_client("Who?"), SessionKey(2), &second);
    assert_eq!(again.unwrap(), None, "the record has to be asked");
    let again = book
        .raise(&local(), &at_client("Who?"), SessionKey(2), &second)
        .await;
    assert_eq!(
        again.unwrap(),
        Raised {
            id: id.clone(),
            answered: true,
            refused: false,
        }
    );
    let taken = book.take(&[id]).await.unwrap().unwrap();
    assert_eq!(taken, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
}

#[tokio::test]
async fn a_client_that_leaves_leaves_its_question_to_all() {
    let (below, book) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let noted = book.note(&local(), &at_client("Who?"), SessionKey(1), &tell);
    let id = noted.unwrap().unwrap().id;
    book.write_behind(&id).unwrap();
    book.flush().await.unwrap();
    assert!(below.find(id.clone()).await.unwrap().unwrap().claimed);
    book.let_go(&tell).await.unwrap();
    let row = below.find(id.clone()).await.unwrap().unwrap();
    assert!(row.exchange.is_open() && !row.claimed);
    assert_eq!(book.settle_noted(&id, &accept(), "client"), None);
    assert_eq!(
        book.settle(&id, &accept(), "inbox").await.unwrap(),
        Settling::Won
    );
}

#[tokio::test]
async fn a_page_answers_a_noted_question_first_and_durably() {
    let (below, book) = alone().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let noted = book.note(&local(), &at_client("Who?"), SessionKey(1), &tell);
    let id = noted.unwrap().unwrap().id;
    book.write_behind(&id).unwrap();
    book.shown(&id).await.unwrap();
    assert_eq!(
        book.settle(&id, &Outcome::Decline, "inbox").await.unwrap(),
        Settling::Won
    );
    let row = below.find(id.clone()).await.unwrap().unwrap();
    assert_eq!(
        row.exchange.ended_by(),
        Some("inbox"),
        "written before the person is told"
    );
    assert!(matches!(
        told.try_recv(),
        Ok(RecordEvent::Settled {
            question: SessionKey(1)
        })
    ));
    let late = book.settle_noted(&id, &accept(), "client");
    assert_eq!(late, None);
    assert_eq!(
        book.take_noted(std::slice::from_ref(&id)),
        None,
        "by the record"
    );
    let taken = book.take(&[id]).await.unwrap().unwrap();
    assert_eq!(taken, [r#"{"action":"decline"}"#]);
}

/// Two gateways on one record: what one claimed the other leaves alone until it is shared, and it is shared soon.
#[tokio::test]
async fn in_company_a_question_is_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let below: Arc<Memory> = Arc::default();
    let seal = Keys::random().unwrap();
    let open = || {
        let lease = Lease::take(folder.path()).unwrap();
        Book::new(below.clone(), seal.clone(), lease, clock)
    };
    let first = open();
    first.look_for_company().await.unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let noted = first.note(&local(), &at_client("Who?"), SessionKey(1), &tell);
    let id = noted.unwrap().expect("alone").id;
    first.write_behind(&id).unwrap();
    first.flush().await.unwrap();
    let second = open();
    let row = second.find(&id).await.unwrap().unwrap();
    assert!(second.is_anothers(&row) && !first.is_anothers(&row));
    second.shown(&id).await.unwrap();
    assert_eq!(second.find(&id).await.unwrap().unwrap(), row, "left alone");
    let beside = first.note(&local(), &at_client("What?"), SessionKey(2), &tell);
    assert_eq!(
        beside.unwrap(),
        None,
        "in company questions are written first"
    );
    // As its housekeeping does.
    let answer = accept();
    let (settled, heard) = tokio::join!(second.settle(&id, &answer, "inbox"), async {
        tokio::task::yield_now().await;
        first.hear_others().await
    });
    heard.unwrap();
    assert_eq!(settled.unwrap(), Settling::Won);
    first.hear_others().await.unwrap();
    assert!(matches!(
        told.try_recv(),
        Ok(RecordEvent::Settled {
            question: SessionKey(1)
        })
    ));
    assert_eq!(first.settle_noted(&id, &Outcome::Decline, "client"), None);
    assert!(matches!(
        first
            .settle(&id, &Outcome::Decline, "client")
            .await
            .unwrap(),
        Settling::Late(_)
    ));
    // Alone again, it looks what was left.
    drop(second);
    first.look_for_company().await.unwrap();
    let again = first.note(&local(), &at_client("Who?"), SessionKey(3), &tell);
    assert_eq!(again.unwrap(), None, "the record has its answer");
    assert!(
        first
            .note(&local(), &at_client("What?"), SessionKey(4), &tell)
            .unwrap()
            .is_some()
    );
}
