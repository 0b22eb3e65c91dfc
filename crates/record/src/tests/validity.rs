//! Tests of an answer's identity and of the time for which it is kept.

use crate::SessionKey;
use mcp_elicit_core::lifecycle::Delivery;
use mcp_elicit_core::question::{CallSummary, Ending, NewQuestion, ProofNumber};
use mcp_elicit_core::wire::CallKind;
use std::cell::Cell;

use super::*;
use crate::store::Sqlite;
use tokio::sync::mpsc;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(1_000) };
}

/// A clock that stands still until the test advances it.
fn stopped() -> Timestamp {
    Timestamp::from_millis(NOW.get())
}

fn pass(span: Duration) {
    NOW.set(NOW.get() + u64::try_from(span.as_millis()).unwrap());
}

fn at_stopped(store: Arc<dyn RecordStore>) -> Arc<Record> {
    let keys = OwnKeys::random().unwrap();
    Arc::new(Record::new(
        store,
        keys,
        LockFile::unshared().unwrap(),
        stopped,
    ))
}

fn long(message: &str) -> NewQuestion {
    NewQuestion {
        until: Timestamp::from_millis(100_000_000_000),
        ..asked(message)
    }
}

/// Asks, lets a person answer, and releases the call.
async fn answered(record: &Arc<Record>, who: &SessionIdentity, asked: &NewQuestion) -> String {
    let (tell, _told) = mpsc::unbounded_channel();
    let recorded = record
        .create(who, asked, SessionKey(1), &tell, Durability::BeforeSeen)
        .await;
    let id = recorded.unwrap().id;
    record
        .submit(&id, &accept(), "inbox", Durability::WithDelivery)
        .await
        .unwrap();
    record.release_session(&tell).await.unwrap();
    id
}

async fn again(
    record: &Arc<Record>,
    who: &SessionIdentity,
    asked: &NewQuestion,
) -> RecordedQuestion {
    let (tell, _told) = mpsc::unbounded_channel();
    let recorded = record
        .create(who, asked, SessionKey(9), &tell, Durability::BeforeSeen)
        .await
        .unwrap();
    record.end(&recorded.id, Ending::CallEnded).await.unwrap();
    recorded
}

#[tokio::test]
async fn an_answer_is_kept_for_a_bounded_time_and_then_erased() {
    let below: Arc<Memory> = Arc::default();
    let record = at_stopped(below.clone());
    let id = answered(&record, &local(), &long("Who?")).await;
    pass(Duration::from_secs(899));
    record.sweep().await.unwrap();
    let found = again(&record, &local(), &long("Who?")).await;
    assert_eq!((found.id.as_str(), found.answered), (id.as_str(), true));
    pass(Duration::from_secs(1));
    let found = again(&record, &local(), &long("Who?")).await;
    assert_ne!(found.id, id, "asked again");
    record.sweep().await.unwrap();
    let row = below.find(id.clone()).await.unwrap().unwrap();
    assert_eq!(row.lifecycle.delivery(), Some(Delivery::Lapsed));
    assert_eq!((row.content, row.arguments), (None, None));
    let why = row.lifecycle.delivery_reason().unwrap();
    assert_eq!(why, "no call came for the answer in time");
    let links = audit::read(&*below).await.unwrap();
    let last = &links.iter().rev().find(|link| link.entry.contains(&id));
    assert_eq!(event(&last.unwrap().entry), "lapsed");
}

/// The gateway that asks decides how long an answer is kept, whichever gateway delivers it.
#[tokio::test]
async fn the_gateway_that_asked_says_how_long_an_answer_is_kept() {
    let store: Arc<dyn RecordStore> = Arc::new(Memory::default());
    let asks = at_stopped(store.clone());
    let id = answered(&asks, &local(), &long("Who?")).await;
    let shorter = Record::new(
        store,
        asks.keys.clone(),
        LockFile::unshared().unwrap(),
        stopped,
    );
    let shorter = Arc::new(shorter.with_retention(Retention {
        answers: Duration::from_secs(2),
        ..Retention::default()
    }));
    pass(Duration::from_secs(899));
    shorter.sweep().await.unwrap();
    let found = again(&shorter, &local(), &long("Who?")).await;
    assert_eq!((found.id.as_str(), found.answered), (id.as_str(), true));
    pass(Duration::from_secs(1));
    let found = again(&shorter, &local(), &long("Who?")).await;
    assert_ne!(found.id, id);
}

#[tokio::test]
async fn an_answer_that_is_too_old_is_not_taken_though_nobody_swept() {
    let record = at_stopped(Arc::new(Memory::default()));
    let id = answered(&record, &local(), &long("Who?")).await;
    pass(Duration::from_secs(16 * 60));
    assert_eq!(record.deliver(&[id]).await.unwrap(), None);
}

#[tokio::test]
async fn two_servers_never_share_an_answer() {
    let record = at_stopped(Arc::new(Memory::default()));
    let id = answered(&record, &local(), &asked("Who?")).await;
    // A server of the same name that is started differently.
    let other = again(&record, &of("s --env production", "local"), &asked("Who?")).await;
    assert_ne!(other.id, id);
    // A server that is started alike and reports another name.
    let reporting = NewQuestion {
        server_info: Some(r#"{"name":"env","version":"2"}"#.to_owned()),
        ..asked("Who?")
    };
    assert_ne!(again(&record, &local(), &reporting).await.id, id);
    // Another caller.
    assert_ne!(
        again(&record, &of("s", "caller-1"), &asked("Who?"))
            .await
            .id,
        id
    );
    assert_eq!(again(&record, &local(), &asked("Who?")).await.id, id);
}

#[tokio::test]
async fn an_unnamed_server_is_recorded_by_its_own_name_with_its_command() {
    let below: Arc<Memory> = Arc::default();
    let record = at_stopped(below.clone());
    let mut who = of("npx -y files", "local");
    who.server.is_named = false;
    let reporting = NewQuestion {
        server_info: Some(r#"{"name":"files","version":"2"}"#.to_owned()),
        ..asked("Who?")
    };
    let id = answered(&record, &who, &reporting).await;
    let row = below.find(id).await.unwrap().unwrap();
    assert_eq!(row.body.server, "files");
    assert_eq!(row.body.address.as_deref(), Some("npx -y files"));
}

/// An unknown keyword of a field that looks like a mode does not change the mode.
#[tokio::test]
async fn the_mode_is_data_and_not_looked_for_in_text() {
    let below: Arc<Memory> = Arc::default();
    let record = at_stopped(below.clone());
    let schema = serde_json::json!({"type": "object", "properties": {
        "a": {"type": "string", "mode": "url"}}});
    let misleading = NewQuestion {
        request: ElicitRequest::form("Who?", &schema),
        ..asked("Who?")
    };
    answered(&record, &local(), &misleading).await;
    let links = audit::read(&*below).await.unwrap();
    for link in &links {
        let entry: serde_json::Value = serde_json::from_str(&link.entry).unwrap();
        assert_eq!(entry["mode"], "form", "{entry}");
    }
}

#[tokio::test]
async fn an_answer_that_was_being_delivered_at_a_kill_is_in_doubt_and_erased() {
    let folder = tempfile::tempdir().unwrap();
    let below: Arc<Memory> = Arc::default();
    let keys = OwnKeys::random().unwrap();
    let open = || {
        let lock_file = LockFile::acquire(folder.path()).unwrap();
        Arc::new(Record::new(below.clone(), keys.clone(), lock_file, clock))
    };
    let killed = open();
    let (id, _told) = ask(&killed, &asked("Who?")).await;
    let ids = [id];
    killed
        .submit(&ids[0], &accept(), "inbox", Durability::WithDelivery)
        .await
        .unwrap();
    killed.deliver(&ids).await.unwrap().unwrap();
    let next = open();
    next.sweep().await.unwrap();
    let row = below.find(ids[0].clone()).await.unwrap().unwrap();
    assert_eq!(
        row.lifecycle.delivery(),
        Some(Delivery::Delivered),
        "it runs"
    );
    drop(killed);
    next.sweep().await.unwrap();
    let row = below.find(ids[0].clone()).await.unwrap().unwrap();
    assert_eq!(row.lifecycle.delivery(), Some(Delivery::InDoubt));
    assert_eq!((row.content, row.arguments), (None, None));
}

#[tokio::test]
async fn questions_that_ended_long_ago_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("record.sqlite"))
        .await
        .unwrap();
    let record = at_stopped(Arc::new(store));
    let (id, _told) = ask(&record, &long("Who?")).await;
    record.end(&id, Ending::CallEnded).await.unwrap();
    pass(Duration::from_secs(29 * 24 * 60 * 60));
    record.sweep().await.unwrap();
    assert!(record.find(&id).await.unwrap().is_some());
    pass(Duration::from_secs(2 * 24 * 60 * 60));
    record.sweep().await.unwrap();
    assert!(record.find(&id).await.unwrap().is_none());
    let links = audit::read(record.store()).await.unwrap();
    assert_eq!(links.len(), 2, "the audit keeps what happened");
}

/// Two gateways adopt the same question at once: one gets it, the other asks separately.
#[tokio::test]
async fn of_two_gateways_one_takes_a_question_over() {
    let folder = tempfile::tempdir().unwrap();
    let below: Arc<Memory> = Arc::default();
    let keys = OwnKeys::random().unwrap();
    let open = || {
        let lock_file = LockFile::acquire(folder.path()).unwrap();
        Arc::new(Record::new(below.clone(), keys.clone(), lock_file, clock))
    };
    let gone = open();
    let id = answered(&gone, &local(), &asked("Who?")).await;
    drop(gone);
    let (first, second) = (open(), open());
    let (tell, _told) = mpsc::unbounded_channel();
    let seen = below.find(id.clone()).await.unwrap().unwrap();
    let taken = first
        .create(
            &local(),
            &asked("Who?"),
            SessionKey(1),
            &tell,
            Durability::BeforeSeen,
        )
        .await;
    assert_eq!(taken.unwrap().id, id);
    // The second gateway read the row before the first one adopted it.
    assert_eq!(second.adopt(seen).await.unwrap(), None);
    let beside = second
        .create(
            &local(),
            &asked("Who?"),
            SessionKey(2),
            &tell,
            Durability::BeforeSeen,
        )
        .await;
    assert_ne!(beside.unwrap().id, id);
}

#[tokio::test]
async fn a_question_of_a_dialog_that_may_be_for_several_calls_shows_no_single_one() {
    let (below, record) = alone().await;
    let unsure = NewQuestion {
        others: vec!["notes".to_owned()],
        ..at_client("Who?")
    };
    let (tell, _told) = mpsc::unbounded_channel();
    let recorded = record.create(&local(), &unsure, SessionKey(1), &tell, Durability::Behind);
    let id = recorded.now().unwrap().id;
    record.write_behind(&id).now().unwrap();
    record.flush().await.unwrap();
    let row = below.find(id).await.unwrap().unwrap();
    assert_eq!(record.candidates(&row).unwrap(), Vec::new());
    assert_eq!(row.arguments, None);
}

#[tokio::test]
async fn all_calls_that_may_have_asked_are_kept_with_their_arguments_sealed() {
    let (below, record) = alone().await;
    let calling = |target: &str, arguments: Option<&str>| CallSummary {
        kind: CallKind::Tool,
        target: target.to_owned(),
        arguments: arguments.map(str::to_owned),
        digest: "d".to_owned(),
        proof: ProofNumber::default(),
    };
    let unsure = NewQuestion {
        call: Some(calling("deploy", Some(r#"{"to":"moon"}"#))),
        others: vec!["deploy".to_owned(), "notes".to_owned()],
        candidates: vec![
            calling("deploy", Some(r#"{"to":"mars"}"#)),
            calling("notes", None),
        ],
        ..asked("Who?")
    };
    let (tell, _told) = mpsc::unbounded_channel();
    let recorded = record
        .create(
            &local(),
            &unsure,
            SessionKey(1),
            &tell,
            Durability::BeforeSeen,
        )
        .await;
    let id = recorded.unwrap().id;
    let row = below.find(id.clone()).await.unwrap().unwrap();
    let stored = String::from_utf8_lossy(row.arguments.as_deref().unwrap()).into_owned();
    assert!(!stored.contains("mars") && !format!("{:?}", row.body).contains("mars"));
    let found = record.candidates(&row).unwrap();
    let shown: Vec<_> = found
        .iter()
        .map(|one| (one.target.as_str(), one.arguments.as_deref()))
        .collect();
    assert_eq!(
        shown,
        [
            ("deploy", Some(r#"{"to":"moon"}"#)),
            ("deploy", Some(r#"{"to":"mars"}"#)),
            ("notes", None)
        ]
    );
    assert!(!format!("{found:?}").contains("mars"), "nor in a log");
    let arguments = record.arguments(&row).unwrap();
    assert_eq!(arguments, None, "not taken for one call's");
    record
        .submit(&id, &accept(), "inbox", Durability::WithDelivery)
        .await
        .unwrap();
    let ids = [id.clone()];
    record.deliver(&ids).await.unwrap().unwrap();
    record.confirm(&ids).await.unwrap();
    let row = below.find(id).await.unwrap().unwrap();
    assert_eq!(row.arguments, None, "erased with the answer");
}
