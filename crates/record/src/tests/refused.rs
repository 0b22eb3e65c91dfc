//! Deliveries that the server refused, or whose outcome is unknown.

use crate::SessionKey;
use mcp_elicit_core::lifecycle::Delivery;
use mcp_elicit_core::question::NewQuestion;

use super::*;
use tokio::sync::mpsc;

const REFUSED: &str = "the server answered with status 401";

async fn events_of(below: &Memory) -> Vec<String> {
    let links = audit::read(below).await.unwrap();
    links.iter().map(|link| event(&link.entry)).collect()
}

/// Asks a question, answers it on a page and takes the answer for the server. Returns its id, and the answer that was
/// sent.
async fn taken(record: &Arc<Record>, asked: &NewQuestion) -> ([String; 1], Vec<String>) {
    let (tell, _told) = mpsc::unbounded_channel();
    let recorded = record
        .create(
            &local(),
            asked,
            SessionKey(1),
            &tell,
            Durability::BeforeSeen,
        )
        .await;
    let ids = [recorded.unwrap().id];
    record
        .submit(&ids[0], &accept(), "inbox", Durability::WithDelivery)
        .await
        .unwrap();
    let sent = record.deliver(&ids).await.unwrap().unwrap();
    (ids, sent)
}

/// Asks the same question again in the same call. Returns the answer that is kept for it.
async fn taken_again(record: &Arc<Record>, asked: &NewQuestion, id: &str) -> Vec<String> {
    let (tell, _told) = mpsc::unbounded_channel();
    let again = record
        .create(
            &local(),
            asked,
            SessionKey(2),
            &tell,
            Durability::BeforeSeen,
        )
        .await;
    let expected = RecordedQuestion {
        id: id.to_owned(),
        answered: true,
        refused: true,
        trace: None,
    };
    assert_eq!(again.unwrap(), expected);
    record.deliver(&[id.to_owned()]).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_refused_answer_is_kept_for_the_next_call_and_lapses_when_refused_again() {
    let (below, record) = alone().await;
    let (ids, first) = taken(&record, &asked("Who?")).await;
    record.delivery_refused(&ids, REFUSED).await.unwrap();
    let row = below.find(ids[0].clone()).await.unwrap().unwrap();
    assert_eq!(row.lifecycle.delivery(), Some(Delivery::Failed));
    assert_eq!(row.lifecycle.delivery_reason().as_deref(), Some(REFUSED));
    assert!(row.content.is_some(), "kept, and sealed");
    assert_eq!(taken_again(&record, &asked("Who?"), &ids[0]).await, first);
    record.delivery_refused(&ids, REFUSED).await.unwrap();
    let row = below.find(ids[0].clone()).await.unwrap().unwrap();
    assert_eq!(row.lifecycle.delivery(), Some(Delivery::Lapsed));
    assert_eq!((row.content, row.arguments), (None, None));
    let (tell, _told) = mpsc::unbounded_channel();
    let anew = record
        .create(
            &local(),
            &asked("Who?"),
            SessionKey(3),
            &tell,
            Durability::BeforeSeen,
        )
        .await;
    assert_ne!(anew.unwrap().id, ids[0], "asked again");
    let told = [
        "asked",
        "answered",
        "delivery-failed",
        "delivery-failed",
        "lapsed",
        "asked",
    ];
    assert_eq!(events_of(&below).await, told);
}

#[tokio::test]
async fn a_dialogs_answer_that_was_refused_is_written_sealed() {
    let (below, record) = alone().await;
    let (id, _told) = ask_behind(&record, &at_client("Who?"));
    let ids = [id];
    record
        .submit(&ids[0], &accept(), "client", Durability::Behind)
        .now();
    let first = record.deliver(&ids).now().flatten().unwrap();
    record.delivery_refused(&ids, REFUSED).await.unwrap();
    let row = below.find(ids[0].clone()).await.unwrap().unwrap();
    assert_eq!(row.lifecycle.delivery(), Some(Delivery::Failed));
    assert!(!row.exclusive);
    let sealed = row.content.expect("kept");
    assert!(!String::from_utf8_lossy(&sealed).contains("Ada"));
    assert_eq!(
        taken_again(&record, &at_client("Who?"), &ids[0]).await,
        first
    );
    record.confirm(&ids).await.unwrap();
    let row = below.find(ids[0].clone()).await.unwrap().unwrap();
    assert_eq!((row.content, row.arguments), (None, None));
    assert!(record.in_transit().is_empty());
    let told = ["asked", "answered", "delivery-failed", "delivered"];
    assert_eq!(events_of(&below).await, told);
}

#[tokio::test]
async fn an_answer_in_hand_that_was_refused_is_kept() {
    let (below, record) = alone().await;
    let (id, _told) = ask(&record, &at_client("Who?")).await;
    let ids = [id];
    assert!(holds(&record, &ids[0], &accept()));
    let first = record.deliver(&ids).await.unwrap().unwrap();
    let row = below.find(ids[0].clone()).await.unwrap().unwrap();
    assert_eq!(row.content, None, "its value was never written");
    record.delivery_refused(&ids, REFUSED).await.unwrap();
    assert_eq!(
        taken_again(&record, &at_client("Who?"), &ids[0]).await,
        first
    );
}

#[tokio::test]
async fn an_answer_in_doubt_is_erased_and_never_sent_again() {
    let (below, record) = alone().await;
    let (ids, _sent) = taken(&record, &asked("Who?")).await;
    record
        .delivery_in_doubt(&ids, "the connection broke")
        .await
        .unwrap();
    let row = below.find(ids[0].clone()).await.unwrap().unwrap();
    assert_eq!(row.lifecycle.delivery(), Some(Delivery::InDoubt));
    assert_eq!((row.content, row.arguments), (None, None));
    assert_eq!(record.deliver(&ids).await.unwrap(), None);
    assert_eq!(events_of(&below).await, ["asked", "answered", "in-doubt"]);
    let (tell, _told) = mpsc::unbounded_channel();
    let anew = record
        .create(
            &local(),
            &asked("Who?"),
            SessionKey(3),
            &tell,
            Durability::BeforeSeen,
        )
        .await;
    assert_ne!(anew.unwrap().id, ids[0], "asked again");
}

#[tokio::test]
async fn a_refused_answer_that_no_call_can_come_for_is_erased() {
    let (below, record) = alone().await;
    let unsure = NewQuestion {
        others: vec!["deploy".to_owned()],
        ..asked("Who?")
    };
    let (ids, _sent) = taken(&record, &unsure).await;
    record.delivery_refused(&ids, REFUSED).await.unwrap();
    let row = below.find(ids[0].clone()).await.unwrap().unwrap();
    assert_eq!(row.lifecycle.delivery(), Some(Delivery::Lapsed));
    assert_eq!((row.content, row.arguments), (None, None));
}
