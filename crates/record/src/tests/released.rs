//! A question that its session releases while a person's answer to it is being written.

use std::pin::pin;
use std::sync::atomic::Ordering;

use futures::poll;
use tokio::sync::mpsc;

use super::*;
use crate::store::fault_injection::Failing;

/// The answer is delivered before the person is told: it is theirs nevertheless, and not late.
#[tokio::test]
async fn an_answer_whose_question_is_released_while_it_is_written_is_not_late() {
    let below: Arc<Failing> = Arc::default();
    let keys = OwnKeys::random().unwrap();
    let record = Record::new(below.clone(), keys, LockFile::unshared().unwrap(), clock);
    let record = Arc::new(record.with_delivering_sessions());
    let (tell, _told) = mpsc::unbounded_channel();
    let (question, before) = (asked("Who?"), Durability::BeforeSeen);
    let created = record.create(&local(), &question, SessionKey(1), &tell, before);
    let ids = [created.await.unwrap().id];
    let answer = Outcome::Accept(form().check(serde_json::json!({"name": "Ada"})).unwrap());
    let submitted = record.submit(&ids[0], &answer, "inbox", Durability::WithDelivery);
    let mut submitted = pin!(submitted.into_future());
    assert!(poll!(&mut submitted).is_pending() && record.is_held(&ids[0]));
    below.yields.store(1, Ordering::SeqCst);
    let mut written = pin!(record.write_held(&ids[0]));
    assert!(poll!(&mut written).is_pending());
    record.release(&ids[0]).await.unwrap();
    written.await.unwrap();
    assert!(record.deliver(&ids).await.unwrap().is_some());
    assert_eq!(submitted.await.unwrap(), Verdict::Won);
}
