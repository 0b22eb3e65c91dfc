//! The book over a store in memory: first answer, once delivered, found again.

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::wire::{Request, Revision};

use super::*;
use crate::relay::{Asked, CallKind, Calling, Place};
use crate::store::Memory;

fn clock() -> Moment {
    Moment::from_millis(1_000)
}

fn book(store: Arc<dyn Store>) -> Book {
    Book::new(
        store,
        Seal::random().unwrap(),
        Lease::alone().unwrap(),
        clock,
    )
}

fn form() -> mcp_elicit_core::form::Form {
    let schema = serde_json::json!({"type": "object", "properties": {"name": {"type": "string"}}});
    mcp_elicit_core::form::Form::from_value(&schema).unwrap()
}

fn asked(message: &str) -> Asked {
    Asked {
        calling: Some(Calling {
            kind: CallKind::Tool,
            target: "deploy".to_owned(),
            arguments: Some(r#"{"to":"moon"}"#.to_owned()),
            digest: "d".to_owned(),
        }),
        request: Request::form(message, &form().emit(Revision::LATEST).unwrap()),
        fields: vec!["name".to_owned()],
        cautions: Vec::new(),
        place: Place::Desk,
        server_info: None,
        client_info: None,
        until: Moment::from_millis(9_000),
    }
}

#[tokio::test]
async fn the_first_answer_wins_and_is_taken_once() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let book = book(store.clone());
    let (tell, mut told) = mpsc::unbounded_channel();
    let raised = book
        .raise("s", "local", &asked("Who?"), QuestionKey(4), &tell)
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
        Some(Event::Settled {
            question: QuestionKey(4)
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
    assert_eq!(audit::verify(&links), audit::Verdict::Whole { links: 3 });
    links[1].entry = links[1].entry.replace("inbox", "nobody");
    assert_eq!(
        audit::verify(&links),
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
        .raise("s", "local", &asked("Who?"), QuestionKey(1), &first)
        .await
        .unwrap();
    let beside = book
        .raise("s", "local", &asked("Who?"), QuestionKey(2), &second)
        .await
        .unwrap();
    assert_ne!(one.id, beside.id, "somebody waits for the first");
    book.let_go(&first);
    assert_ne!(
        book.raise("s", "eve", &asked("Who?"), QuestionKey(3), &second)
            .await
            .unwrap()
            .id,
        one.id
    );
    assert_ne!(
        book.raise("s", "local", &asked("Who else?"), QuestionKey(4), &second)
            .await
            .unwrap()
            .id,
        one.id
    );
    let again = book
        .raise("s", "local", &asked("Who?"), QuestionKey(5), &second)
        .await
        .unwrap();
    assert_eq!(
        again,
        Raised {
            id: one.id.clone(),
            answered: false
        }
    );
    book.settle(&one.id, &Outcome::Decline, "inbox")
        .await
        .unwrap();
    assert!(matches!(
        told.recv().await,
        Some(Event::Settled {
            question: QuestionKey(5)
        })
    ));
    book.let_go(&second);
    let (third, _) = mpsc::unbounded_channel();
    let answered = book
        .raise("s", "local", &asked("Who?"), QuestionKey(6), &third)
        .await
        .unwrap();
    assert_eq!(
        answered,
        Raised {
            id: one.id,
            answered: true
        }
    );
}
