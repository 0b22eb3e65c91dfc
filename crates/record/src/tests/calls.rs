//! Calls that nobody waits for: found once, by the same call of the same caller.

use super::*;
use crate::{RecordEvent, SessionKey};
use mcp_elicit_core::question::FoundCall;

const INFO: Option<&str> = Some(r#"{"name":"s","version":"1"}"#);
const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

fn result() -> FoundCall {
    FoundCall::Result(RESULT.to_owned())
}

async fn find(book: &Book, who: &SessionIdentity) -> FoundCall {
    book.find_call(who, INFO, "digest").await.unwrap()
}

/// A call of a session is handed back, and its result comes.
async fn finished(book: &Book, tell: &mpsc::UnboundedSender<RecordEvent>) {
    let kept = book.keep_call(&local(), INFO, "digest", tell, SessionKey(1));
    kept.unwrap();
    book.keep_result(tell, SessionKey(1), RESULT).await.unwrap();
}

#[tokio::test]
async fn a_result_is_found_once_by_the_same_call_of_the_same_caller() {
    let (_, book) = alone().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    assert!(!book.has_calls());
    finished(&book, &tell).await;
    assert!(book.has_calls() && book.knows_call(&local(), INFO, "digest"));
    assert!(!book.knows_call(&local(), INFO, "another"));
    for other in [of("s", "caller-1"), of("s --env production", "local")] {
        assert!(!book.knows_call(&other, INFO, "digest"));
        assert_eq!(find(&book, &other).await, FoundCall::Nothing);
    }
    assert_eq!(find(&book, &local()).await, result());
    let taken = told.try_recv();
    assert!(matches!(
        taken,
        Ok(RecordEvent::CallTaken {
            call: SessionKey(1)
        })
    ));
    assert_eq!(find(&book, &local()).await, FoundCall::Nothing);
    assert!(!book.has_calls());
}

#[tokio::test]
async fn a_result_outlives_its_session_and_its_gateway_sealed() {
    let below: Arc<Memory> = Arc::default();
    let keys = Keys::random().unwrap();
    let open = || {
        let lease = Lease::alone().unwrap();
        Book::new(below.clone(), keys.clone(), lease, clock)
    };
    let first = open();
    let (tell, _told) = mpsc::unbounded_channel();
    finished(&first, &tell).await;
    first.let_go(&tell).await.unwrap();
    assert!(first.knows_call(&local(), INFO, "digest"));
    drop(first);
    let stored = below.calls(clock()).await.unwrap();
    assert!(!String::from_utf8_lossy(&stored[0].result).contains("content"));
    let second = open();
    second.load_calls().await.unwrap();
    assert_eq!(find(&second, &local()).await, result());
    let third = open();
    third.load_calls().await.unwrap();
    assert_eq!(find(&third, &local()).await, FoundCall::Nothing);
}

#[tokio::test]
async fn of_two_gateways_one_gets_the_result() {
    let below: Arc<Memory> = Arc::default();
    let keys = Keys::random().unwrap();
    let open = || {
        let lease = Lease::alone().unwrap();
        Book::new(below.clone(), keys.clone(), lease, clock)
    };
    let (first, second) = (open(), open());
    let (tell, _told) = mpsc::unbounded_channel();
    finished(&first, &tell).await;
    second.load_calls().await.unwrap();
    assert_eq!(find(&second, &local()).await, result());
    assert_eq!(find(&first, &local()).await, FoundCall::Nothing);
}

#[tokio::test]
async fn another_session_follows_a_call_at_work_and_gets_its_result() {
    let (_, book) = alone().await;
    let (owner, _told) = mpsc::unbounded_channel();
    let (follower, mut told) = mpsc::unbounded_channel();
    let kept = book.keep_call(&local(), INFO, "digest", &owner, SessionKey(1));
    kept.unwrap();
    assert_eq!(find(&book, &local()).await, FoundCall::Running);
    book.follow_call(&local(), INFO, "digest", &follower, SessionKey(7));
    assert!(told.try_recv().is_err());
    book.keep_result(&owner, SessionKey(1), RESULT)
        .await
        .unwrap();
    let ended = told.try_recv();
    assert!(matches!(
        ended,
        Ok(RecordEvent::FollowedCallEnded {
            call: SessionKey(7)
        })
    ));
    assert_eq!(find(&book, &local()).await, result());
    // It has ended before it could be followed.
    book.follow_call(&local(), INFO, "digest", &follower, SessionKey(8));
    let ended = told.try_recv();
    assert!(matches!(
        ended,
        Ok(RecordEvent::FollowedCallEnded {
            call: SessionKey(8)
        })
    ));
}

#[tokio::test]
async fn a_call_whose_session_ends_is_followed_no_longer() {
    let (_, book) = alone().await;
    let (owner, _told) = mpsc::unbounded_channel();
    let (follower, mut told) = mpsc::unbounded_channel();
    let kept = book.keep_call(&local(), INFO, "digest", &owner, SessionKey(1));
    kept.unwrap();
    book.follow_call(&local(), INFO, "digest", &follower, SessionKey(7));
    book.let_go(&owner).await.unwrap();
    assert!(told.try_recv().is_ok());
    assert_eq!(find(&book, &local()).await, FoundCall::Nothing);
    assert!(!book.has_calls());
}

#[tokio::test]
async fn a_call_that_is_waited_for_again_is_not_kept() {
    let (below, book) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    finished(&book, &tell).await;
    book.drop_call(&tell, SessionKey(1)).await.unwrap();
    assert_eq!(find(&book, &local()).await, FoundCall::Nothing);
    assert_eq!(below.calls(clock()).await.unwrap(), []);
}
