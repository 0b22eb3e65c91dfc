//! Questions that their sessions release, and that other gateways take over.

use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use futures::future::BoxFuture;
use futures::{FutureExt as _, poll};
use tokio::sync::mpsc;

use super::*;
use crate::RunningGateways;
use crate::peers::Peer;
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

#[tokio::test]
async fn a_question_is_taken_over_from_a_running_gateway_only_if_its_client_has_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (below, keys) = (Arc::new(Memory::default()), OwnKeys::random().unwrap());
    let open = || {
        let lock_file = LockFile::acquire(folder.path()).unwrap();
        Arc::new(Record::new(below.clone(), keys.clone(), lock_file, clock))
    };
    let (first, second) = (open(), open());
    let (tell, mut told) = mpsc::unbounded_channel();
    let (question, before) = (asked("Who?"), Durability::BeforeSeen);
    let create = |record: &Arc<Record>, who: &SessionIdentity, session| {
        let created = record.create(who, &question, SessionKey(session), &tell, before);
        created.into_future()
    };
    let ids = [create(&first, &local(), 1).await.unwrap().id];
    let beside = create(&second, &local(), 2).await.unwrap();
    assert_ne!(beside.id, ids[0], "another call waits for it");
    second.release(&beside.id).await.unwrap();
    second.end(&beside.id, Ending::CallEnded).await.unwrap();
    second.client_returned(&ids);
    let other = create(&second, &of("s", "other"), 3).await.unwrap();
    assert_ne!(other.id, ids[0], "another caller's");
    // A person's answer stands.
    let answered = first.submit(&ids[0], &accept(), "inbox", before).await;
    assert_eq!(answered.unwrap(), Verdict::Won);
    let taken = create(&second, &local(), 4).await.unwrap();
    assert!(taken.id == ids[0] && taken.answered, "{taken:?}");
    assert!(first.deliver(&ids).await.unwrap().is_none());
    first.poll_others().await.unwrap();
    first.end(&ids[0], Ending::CallEnded).await.unwrap();
    assert!(second.deliver(&ids).await.unwrap().is_some());
    assert!(second.deliver(&ids).await.unwrap().is_none(), "once");
    let told: Vec<_> = std::iter::from_fn(|| told.try_recv().ok()).collect();
    let question = SessionKey(1);
    assert!(
        told.contains(&RecordEvent::TakenOver { question }),
        "{told:?}"
    );
}

/// One of three running gateways of a database. Whoever looks if others have ended gives this the time to happen.
struct Both {
    own: &'static str,
    meanwhile: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl RunningGateways for Both {
    fn name(&self) -> &str {
        self.own
    }

    fn is_running(&self, name: &str) -> bool {
        ["a", "b", "c"].contains(&name)
    }

    fn peers(&self) -> Arc<[Peer]> {
        Arc::new([])
    }

    fn clock_offset_ms(&self) -> Option<i64> {
        None
    }

    fn refresh(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    fn decide<'a>(&'a self, _names: Vec<&'a str>) -> BoxFuture<'a, ()> {
        let meanwhile = self.meanwhile.lock().unwrap().take();
        meanwhile.unwrap_or_else(|| async {}.boxed())
    }
}

#[tokio::test]
async fn a_question_that_is_left_while_the_same_call_waits_elsewhere_is_not_asked_again() {
    let below: Arc<Memory> = Arc::default();
    let keys = OwnKeys::random().unwrap();
    let open = |own, meanwhile| {
        let meanwhile = Mutex::new(meanwhile);
        let place = LockFile::among(Arc::new(Both { own, meanwhile }));
        Arc::new(Record::new(below.clone(), keys.clone(), place, clock))
    };
    let (tell, _told) = mpsc::unbounded_channel();
    let create = async |record: &Arc<Record>| {
        let (question, before) = (asked("Who?"), Durability::BeforeSeen);
        let created = record.create(&local(), &question, SessionKey(1), &tell, before);
        created.await.unwrap().id
    };
    let first = open("a", None);
    let id = create(&first).await;
    assert_ne!(create(&open("b", None)).await, id, "it waits at the other");
    let left = id.clone();
    let leave = async move { first.release(&left).await.unwrap() };
    assert_eq!(create(&open("c", Some(leave.boxed()))).await, id);
}
