//! The number of reads of the store for one answer.

use std::sync::atomic::Ordering;

use tokio::sync::mpsc;

use super::*;
use crate::store::fault_injection::Failing;
use crate::{RecordEvent, SessionKey};

#[tokio::test]
async fn an_answer_in_the_inbox_reads_its_row_few_times() {
    let below: Arc<Failing> = Arc::default();
    let record = record(below.clone());
    let (tell, mut told) = mpsc::unbounded_channel();
    let reads = || below.reads.swap(0, Ordering::SeqCst);
    let question = asked("Who?");
    let created = record.create(
        &local(),
        &question,
        SessionKey(1),
        &tell,
        Durability::BeforeSeen,
    );
    let ids = [created.await.unwrap().id];
    // The record may hold the same question.
    assert_eq!(reads(), 1, "to ask");
    record.mark_shown(&ids[0]).await.unwrap();
    assert_eq!(reads(), 1, "to show");
    let answer = Outcome::Accept(form().check(serde_json::json!({"name": "Ada"})).unwrap());
    let submitted = record.submit(&ids[0], &answer, "inbox", Durability::WithDelivery);
    assert_eq!(submitted.await.unwrap(), Verdict::Won);
    assert!(matches!(told.try_recv(), Ok(RecordEvent::Answered { .. })));
    let of_submit = reads();
    assert!(record.deliver(&ids).await.unwrap().is_some());
    let of_deliver = reads();
    record.confirm(&ids).await.unwrap();
    let of_confirm = reads();
    assert_eq!([of_submit, of_deliver, of_confirm], [1, 1, 1]);
}
