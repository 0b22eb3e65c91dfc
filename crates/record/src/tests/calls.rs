//! Calls without a waiting client: found once, by the same call of the same caller.

use std::sync::atomic::Ordering;

use super::*;
use crate::store::fault_injection::Failing;
use crate::{RecordEvent, SessionKey};
use mcp_elicit_core::question::{FoundCall, FoundTask};
use tokio::sync::mpsc;

const INFO: Option<&str> = Some(r#"{"name":"s","version":"1"}"#);
const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

fn result() -> FoundCall {
    FoundCall::Result(RESULT.to_owned())
}

async fn find(record: &Arc<Record>, who: &SessionIdentity) -> FoundCall {
    record.find_call(who, INFO, "digest").await.unwrap()
}

/// Hands back a call of a session, and stores its result.
async fn finished(record: &Arc<Record>, tell: &mpsc::UnboundedSender<RecordEvent>) {
    let kept = record.keep_call(&local(), INFO, "digest", tell, SessionKey(1), None);
    kept.await.unwrap();
    record
        .keep_result(tell, SessionKey(1), RESULT.to_owned())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_result_is_found_once_by_the_same_call_of_the_same_caller() {
    let (_, record) = alone().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    assert!(!record.has_calls());
    finished(&record, &tell).await;
    assert!(record.has_calls() && record.knows_call(&local(), INFO, "digest"));
    assert!(!record.knows_call(&local(), INFO, "another"));
    for other in [of("s", "caller-1"), of("s --env production", "local")] {
        assert!(!record.knows_call(&other, INFO, "digest"));
        assert_eq!(find(&record, &other).await, FoundCall::Nothing);
    }
    assert_eq!(find(&record, &local()).await, result());
    let taken = told.try_recv();
    assert!(matches!(
        taken,
        Ok(RecordEvent::CallTaken {
            call: SessionKey(1)
        })
    ));
    assert_eq!(find(&record, &local()).await, FoundCall::Nothing);
    assert!(!record.has_calls());
}

#[tokio::test]
async fn a_result_outlives_its_session_and_its_gateway_sealed() {
    let below: Arc<Memory> = Arc::default();
    let keys = OwnKeys::random().unwrap();
    let open = || {
        let lock_file = LockFile::unshared().unwrap();
        Arc::new(Record::new(below.clone(), keys.clone(), lock_file, clock))
    };
    let first = open();
    let (tell, _told) = mpsc::unbounded_channel();
    finished(&first, &tell).await;
    first.release_session(&tell).await.unwrap();
    assert!(first.knows_call(&local(), INFO, "digest"));
    drop(first);
    let id = below.calls(None, clock()).await.unwrap().remove(0).id;
    let stored = below.take_call(id).await.unwrap().unwrap();
    below.keep_call(stored.clone()).await.unwrap();
    assert!(!String::from_utf8_lossy(&stored.result).contains("content"));
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
    let keys = OwnKeys::random().unwrap();
    let open = || {
        let lock_file = LockFile::unshared().unwrap();
        Arc::new(Record::new(below.clone(), keys.clone(), lock_file, clock))
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
    let (_, record) = alone().await;
    let (owner, _told) = mpsc::unbounded_channel();
    let (follower, mut told) = mpsc::unbounded_channel();
    let kept = record.keep_call(
        &local(),
        INFO,
        "digest",
        &owner,
        SessionKey(1),
        Some("http://inbox/q/1".to_owned()),
    );
    kept.await.unwrap();
    assert_eq!(
        find(&record, &local()).await,
        FoundCall::Running {
            link: Some("http://inbox/q/1".to_owned())
        }
    );
    record.follow_call(&local(), INFO, "digest", &follower, SessionKey(7));
    assert!(told.try_recv().is_err());
    record
        .keep_result(&owner, SessionKey(1), RESULT.to_owned())
        .await
        .unwrap();
    let ended = told.try_recv();
    assert!(matches!(
        ended,
        Ok(RecordEvent::FollowedCallEnded {
            call: SessionKey(7)
        })
    ));
    assert_eq!(find(&record, &local()).await, result());
    // It has ended before it could be followed.
    record.follow_call(&local(), INFO, "digest", &follower, SessionKey(8));
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
    let (_, record) = alone().await;
    let (owner, _told) = mpsc::unbounded_channel();
    let (follower, mut told) = mpsc::unbounded_channel();
    let kept = record.keep_call(
        &local(),
        INFO,
        "digest",
        &owner,
        SessionKey(1),
        Some("http://inbox/q/1".to_owned()),
    );
    kept.await.unwrap();
    record.follow_call(&local(), INFO, "digest", &follower, SessionKey(7));
    record.release_session(&owner).await.unwrap();
    assert!(told.try_recv().is_ok());
    assert_eq!(find(&record, &local()).await, FoundCall::Nothing);
    assert!(!record.has_calls());
}

#[tokio::test]
async fn a_call_that_is_waited_for_again_is_not_kept() {
    let (below, record) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    finished(&record, &tell).await;
    record.drop_call(&tell, SessionKey(1)).await.unwrap();
    assert_eq!(find(&record, &local()).await, FoundCall::Nothing);
    assert_eq!(below.calls(None, clock()).await.unwrap(), []);
}

/// Two gateways of one record.
struct Two {
    below: Arc<Memory>,
    first: Option<Arc<Record>>,
    second: Arc<Record>,
    _folder: tempfile::TempDir,
}

impl Two {
    async fn start() -> Self {
        let below: Arc<Memory> = Arc::default();
        let keys = OwnKeys::random().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let lock_file = LockFile::acquire(folder.path()).unwrap();
            Arc::new(Record::new(below.clone(), keys.clone(), lock_file, clock))
        };
        let (first, second) = (open(), open());
        for record in [&first, &second] {
            record.check_presence().await.unwrap();
        }
        Self {
            below,
            first: Some(first),
            second,
            _folder: folder,
        }
    }

    fn first(&self) -> &Arc<Record> {
        self.first.as_ref().unwrap()
    }

    /// Hands back a call at the first gateway, and follows it at the second.
    async fn handed_back(
        &self,
        owner: &mpsc::UnboundedSender<RecordEvent>,
        follower: &mpsc::UnboundedSender<RecordEvent>,
    ) {
        let link = "http://inbox/q/1".to_owned();
        let kept = self.first().keep_call(
            &local(),
            INFO,
            "digest",
            owner,
            SessionKey(1),
            Some(link.clone()),
        );
        kept.await.unwrap();
        assert!(self.second.has_calls());
        let found = find(&self.second, &local()).await;
        assert_eq!(found, FoundCall::Running { link: Some(link) });
        self.second
            .follow_call(&local(), INFO, "digest", follower, SessionKey(7));
    }
}

#[tokio::test]
async fn a_call_of_another_gateway_is_followed_and_its_result_is_returned_once() {
    let two = Two::start().await;
    let (owner, _told) = mpsc::unbounded_channel();
    let (follower, mut told) = mpsc::unbounded_channel();
    two.handed_back(&owner, &follower).await;
    two.second.poll_others().await.unwrap();
    assert!(told.try_recv().is_err(), "it is still in progress");
    let kept = two
        .first()
        .keep_result(&owner, SessionKey(1), RESULT.to_owned());
    kept.await.unwrap();
    two.second.poll_others().await.unwrap();
    assert!(matches!(
        told.try_recv(),
        Ok(RecordEvent::FollowedCallEnded {
            call: SessionKey(7)
        })
    ));
    assert_eq!(find(&two.second, &local()).await, result());
    assert_eq!(find(two.first(), &local()).await, FoundCall::Nothing);
    assert_eq!(find(&two.second, &local()).await, FoundCall::Nothing);
    assert_eq!(two.below.calls(None, clock()).await.unwrap(), []);
}

#[tokio::test]
async fn a_call_that_asks_its_next_question_is_found_with_its_link_at_every_gateway() {
    let two = Two::start().await;
    let (owner, _told) = mpsc::unbounded_channel();
    let (follower, _follows) = mpsc::unbounded_channel();
    two.handed_back(&owner, &follower).await;
    let next = Some("http://127.0.0.1:7878/u/q/2".to_owned());
    let first = two.first();
    let session = SessionKey(1);
    let again = first.keep_call(&local(), INFO, "digest", &owner, session, next.clone());
    again.await.unwrap();
    assert_eq!(two.below.calls(None, clock()).await.unwrap().len(), 1);
    let running = FoundCall::Running { link: next };
    assert_eq!(find(first, &local()).await, running);
    two.second.poll_others().await.unwrap();
    assert_eq!(find(&two.second, &local()).await, running);
}

#[tokio::test]
async fn a_call_whose_client_waits_again_at_its_gateway_is_made_anew_elsewhere() {
    let two = Two::start().await;
    let (owner, _told) = mpsc::unbounded_channel();
    let (follower, mut told) = mpsc::unbounded_channel();
    two.handed_back(&owner, &follower).await;
    two.first().drop_call(&owner, SessionKey(1)).await.unwrap();
    two.second.poll_others().await.unwrap();
    assert!(told.try_recv().is_ok());
    assert_eq!(find(&two.second, &local()).await, FoundCall::Nothing);
}

#[tokio::test]
async fn a_call_whose_gateway_has_ended_is_made_anew() {
    let mut two = Two::start().await;
    let (owner, _told) = mpsc::unbounded_channel();
    let (follower, mut told) = mpsc::unbounded_channel();
    two.handed_back(&owner, &follower).await;
    drop(two.first.take());
    two.second.poll_others().await.unwrap();
    assert!(told.try_recv().is_ok());
    assert_eq!(find(&two.second, &local()).await, FoundCall::Nothing);
    two.second.sweep().await.unwrap();
    assert_eq!(two.below.calls(None, clock()).await.unwrap(), []);
}

const STATE: &str = r#"{"status":"working"}"#;

/// Begins a task of a session. Returns its id.
async fn begun(record: &Arc<Record>, tell: &mpsc::UnboundedSender<RecordEvent>) -> String {
    let until = clock().after(Duration::from_secs(60));
    let state = STATE.to_owned();
    let begun = record.begin_task(&local(), INFO, tell, SessionKey(1), state, until);
    begun.await.unwrap()
}

async fn task(record: &Arc<Record>, who: &SessionIdentity, id: &str) -> FoundTask {
    record.find_task(who, INFO, id.to_owned()).await.unwrap()
}

#[tokio::test]
async fn a_task_is_found_by_every_gateway_for_its_caller_until_its_time_is_over() {
    let below: Arc<Memory> = Arc::default();
    let keys = OwnKeys::random().unwrap();
    let open = || {
        let lock_file = LockFile::unshared().unwrap();
        Arc::new(Record::new(below.clone(), keys.clone(), lock_file, clock))
    };
    let (first, second) = (open(), open());
    let (tell, _told) = mpsc::unbounded_channel();
    let id = begun(&first, &tell).await;
    let running = FoundTask::Running(STATE.to_owned());
    assert_eq!(task(&first, &local(), &id).await, running);
    for other in [of("s", "caller-1"), of("s --env production", "local")] {
        assert_eq!(task(&first, &other, &id).await, FoundTask::Nothing);
    }
    // The lock of an unshared gateway is never held.
    let lost = FoundTask::Lost(STATE.to_owned());
    assert_eq!(task(&second, &local(), &id).await, lost);
    second.load_calls().await.unwrap();
    let asks = r#"{"status":"input_required"}"#;
    let updated = first.update_task(&tell, SessionKey(1), asks.to_owned());
    updated.await.unwrap();
    let running = FoundTask::Running(asks.to_owned());
    assert_eq!(task(&first, &local(), &id).await, running);
    let (follower, mut told) = mpsc::unbounded_channel();
    first.follow_task(&id, &follower, SessionKey(7));
    let until = clock().after(Duration::from_secs(60));
    let ended = first.end_task(&tell, SessionKey(1), RESULT.to_owned(), until);
    ended.await.unwrap();
    assert!(matches!(
        told.try_recv(),
        Ok(RecordEvent::FollowedCallEnded {
            call: SessionKey(7)
        })
    ));
    let finished = FoundTask::Finished(RESULT.to_owned());
    first.release_session(&tell).await.unwrap();
    for record in [&first, &second, &first] {
        assert_eq!(task(record, &local(), &id).await, finished);
    }
    assert_eq!(
        task(&second, &of("s", "caller-1"), &id).await,
        FoundTask::Nothing
    );
}

#[tokio::test]
async fn a_task_whose_session_is_gone_keeps_its_last_state() {
    let (_, record) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let id = begun(&record, &tell).await;
    record.release_session(&tell).await.unwrap();
    let lost = FoundTask::Lost(STATE.to_owned());
    assert_eq!(task(&record, &local(), &id).await, lost);
    record.load_calls().await.unwrap();
    assert_eq!(task(&record, &local(), &id).await, lost);
}

/// A gateway whose store does not take the next changes of calls, and the number of these.
async fn away(changes: usize) -> (Arc<Failing>, Arc<Record>) {
    let store: Arc<Failing> = Arc::default();
    let record = record(store.clone());
    record.check_presence().await.unwrap();
    store.calls.store(changes, Ordering::SeqCst);
    (store, record)
}

#[tokio::test]
async fn a_result_that_the_store_does_not_take_is_returned_once_it_does() {
    for session_ends in [false, true] {
        // The call and its result.
        let (store, record) = away(2).await;
        let (tell, _told) = mpsc::unbounded_channel();
        let (watcher, mut followed) = mpsc::unbounded_channel();
        let call = SessionKey(1);
        let kept = record.keep_call(&local(), INFO, "digest", &tell, call, None);
        kept.await.unwrap_err();
        let waits = FoundCall::Running { link: None };
        assert_eq!(find(&record, &local()).await, waits);
        record.follow_call(&local(), INFO, "digest", &watcher, SessionKey(7));
        let kept = record.keep_result(&tell, call, RESULT.to_owned());
        kept.await.unwrap_err();
        assert!(followed.try_recv().is_err());
        if session_ends {
            record.release_session(&tell).await.unwrap();
        }
        record.sweep().await.unwrap();
        assert!(matches!(
            followed.try_recv(),
            Ok(RecordEvent::FollowedCallEnded {
                call: SessionKey(7)
            })
        ));
        assert_eq!(find(&record, &local()).await, result());
        assert_eq!(find(&record, &local()).await, FoundCall::Nothing);
        let calls = store.below.calls(None, clock()).await.unwrap();
        assert_eq!(calls, []);
    }
}

#[tokio::test]
async fn a_call_that_the_store_does_not_take_is_known_elsewhere_once_it_does() {
    let (store, record) = away(1).await;
    let (tell, _told) = mpsc::unbounded_channel();
    let kept = record.keep_call(&local(), INFO, "digest", &tell, SessionKey(1), None);
    kept.await.unwrap_err();
    assert_eq!(store.below.calls(None, clock()).await.unwrap(), []);
    record.sweep().await.unwrap();
    let stored = store.below.calls(None, clock()).await.unwrap();
    assert_eq!(stored.len(), 1);
    assert!(stored[0].running.is_some());
    // The client waits for it again; the row cannot be deleted, and must not be followed.
    store.calls.store(1, Ordering::SeqCst);
    let dropped = record.drop_call(&tell, SessionKey(1));
    dropped.await.unwrap_err();
    record.sweep().await.unwrap();
    assert_eq!(store.below.calls(None, clock()).await.unwrap(), []);
}

#[tokio::test]
async fn a_result_that_its_session_returned_meanwhile_is_not_returned_again() {
    let (store, record) = away(2).await;
    let (tell, _told) = mpsc::unbounded_channel();
    let kept = record.keep_call(&local(), INFO, "digest", &tell, SessionKey(1), None);
    kept.await.unwrap_err();
    let kept = record.keep_result(&tell, SessionKey(1), RESULT.to_owned());
    kept.await.unwrap_err();
    record.drop_call(&tell, SessionKey(1)).await.unwrap();
    record.sweep().await.unwrap();
    assert_eq!(find(&record, &local()).await, FoundCall::Nothing);
    assert_eq!(store.below.calls(None, clock()).await.unwrap(), []);
}
