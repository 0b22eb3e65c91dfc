//! The record over a store in memory: the first answer wins, is delivered once, and is found again.

use crate::{RecordEvent, SessionKey};
use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::question::{
    AskedVia, CallSummary, Ending, NewQuestion, ParsedBody, ProofNumber,
};
use mcp_elicit_core::wire::{CallKind, ElicitRequest, Revision};

use tokio::sync::mpsc;

use super::*;
use crate::store::Memory;

mod caller_bound;
mod calls;
mod chain;
mod combined;
mod not_a_person;
mod of_tasks;
mod purged_audit;
mod reads;
mod refused;
mod released;
mod replicas;
mod stored_bytes;
mod team;
mod validity;
mod whole_record;

fn clock() -> Timestamp {
    Timestamp::from_millis(1_000)
}

fn record(store: Arc<dyn RecordStore>) -> Arc<Record> {
    Arc::new(Record::new(
        store,
        OwnKeys::random().unwrap(),
        LockFile::unshared().unwrap(),
        clock,
    ))
}

/// Returns a caller of a server.
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

pub(crate) fn asked(message: &str) -> NewQuestion {
    NewQuestion {
        call: Some(CallSummary {
            kind: CallKind::Tool,
            target: "deploy".to_owned(),
            arguments: Some(r#"{"to":"moon"}"#.to_owned()),
            digest: "d".to_owned(),
            proof: ProofNumber::default(),
        }),
        others: Vec::new(),
        candidates: Vec::new(),
        request: ElicitRequest::form(message, &form().emit(Revision::LATEST).unwrap()),
        form: Some(Arc::new(form())),
        fields: vec!["name".to_owned()],
        warnings: Vec::new(),
        via: AskedVia::People,
        server_info: None,
        client_info: None,
        until: Timestamp::from_millis(9_000),
        outlives: true,
        team: None,
        trace: None,
        task: None,
    }
}

#[tokio::test]
async fn the_first_answer_wins_and_is_taken_once() {
    let store: Arc<dyn RecordStore> = Arc::new(Memory::default());
    let record = record(store.clone());
    let (tell, mut told) = mpsc::unbounded_channel();
    let recorded = record
        .create(
            &local(),
            &asked("Who?"),
            SessionKey(4),
            &tell,
            Durability::BeforeSeen,
        )
        .await
        .unwrap();
    let answers = form().check(serde_json::json!({"name": "Ada"})).unwrap();
    assert_eq!(
        record
            .deliver(std::slice::from_ref(&recorded.id))
            .await
            .unwrap(),
        None,
        "nothing to take yet"
    );
    assert_eq!(
        record
            .submit(
                &recorded.id,
                &Outcome::Accept(answers),
                "inbox",
                Durability::WithDelivery
            )
            .await
            .unwrap(),
        Verdict::Won
    );
    assert!(matches!(
        record
            .submit(
                &recorded.id,
                &Outcome::Decline,
                "tab 2",
                Durability::WithDelivery
            )
            .await
            .unwrap(),
        Verdict::Late(_)
    ));
    assert!(matches!(
        told.recv().await,
        Some(RecordEvent::Answered {
            question: SessionKey(4),
            held: None
        })
    ));
    let row = record.find(&recorded.id).await.unwrap().unwrap();
    assert!(
        !String::from_utf8_lossy(row.content.as_deref().unwrap()).contains("Ada"),
        "values are sealed"
    );
    let taken = record
        .deliver(std::slice::from_ref(&recorded.id))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(taken, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
    assert_eq!(
        record
            .deliver(std::slice::from_ref(&recorded.id))
            .await
            .unwrap(),
        None,
        "only once"
    );
    record
        .confirm(std::slice::from_ref(&recorded.id))
        .await
        .unwrap();
    let row = record.find(&recorded.id).await.unwrap().unwrap();
    assert_eq!((row.content, row.arguments), (None, None));
    assert_eq!(
        record
            .submit("nobody", &Outcome::Visit, "x", Durability::WithDelivery)
            .await
            .unwrap(),
        Verdict::Gone
    );
    // The audit has every step, no value, and is intact until it is changed.
    let mut links = audit::read(&*store).await.unwrap();
    let all: String = links.iter().map(|link| link.entry.as_str()).collect();
    assert!(!all.contains("Ada") && !all.contains("moon") && all.contains("deploy"));
    assert_eq!(
        audit::verify(&links, None),
        audit::ChainCheck::Whole { links: 3, since: 1 }
    );
    links[1].entry = links[1].entry.replace("inbox", "nobody");
    assert_eq!(
        audit::verify(&links, None),
        audit::ChainCheck::BrokenAt { number: 2 }
    );
}

#[tokio::test]
async fn people_read_the_form_that_was_parsed_when_the_question_came_up() {
    let store: Arc<dyn RecordStore> = Arc::new(Memory::default());
    let record = record(store);
    let asked = asked("Who?");
    let (id, _told) = ask(&record, &asked).await;
    let row = record.find(&id).await.unwrap().unwrap();
    let parsed = record.parsed(&row).unwrap();
    let ParsedBody::Form(form) = &parsed.body else {
        panic!("it is a form")
    };
    assert!(Arc::ptr_eq(form, asked.form.as_ref().unwrap()));
}

#[tokio::test]
async fn a_question_nobody_waits_for_is_found_by_the_same_call_only() {
    let store: Arc<dyn RecordStore> = Arc::new(Memory::default());
    let record = record(store);
    let (first, _) = mpsc::unbounded_channel();
    let (second, mut told) = mpsc::unbounded_channel();
    let one = record
        .create(
            &local(),
            &asked("Who?"),
            SessionKey(1),
            &first,
            Durability::BeforeSeen,
        )
        .await
        .unwrap();
    let beside = record
        .create(
            &local(),
            &asked("Who?"),
            SessionKey(2),
            &second,
            Durability::BeforeSeen,
        )
        .await
        .unwrap();
    assert_ne!(one.id, beside.id, "somebody waits for the first");
    record.release_session(&first).await.unwrap();
    assert_ne!(
        record
            .create(
                &of("s", "eve"),
                &asked("Who?"),
                SessionKey(3),
                &second,
                Durability::BeforeSeen
            )
            .await
            .unwrap()
            .id,
        one.id
    );
    assert_ne!(
        record
            .create(
                &local(),
                &asked("Who else?"),
                SessionKey(4),
                &second,
                Durability::BeforeSeen
            )
            .await
            .unwrap()
            .id,
        one.id
    );
    let again = record
        .create(
            &local(),
            &asked("Who?"),
            SessionKey(5),
            &second,
            Durability::BeforeSeen,
        )
        .await
        .unwrap();
    assert_eq!(
        again,
        RecordedQuestion {
            id: one.id.clone(),
            answered: false,
            refused: false,
            trace: None,
        }
    );
    record
        .submit(
            &one.id,
            &Outcome::Decline,
            "inbox",
            Durability::WithDelivery,
        )
        .await
        .unwrap();
    assert!(matches!(
        told.recv().await,
        Some(RecordEvent::Answered {
            question: SessionKey(5),
            held: None
        })
    ));
    record.release_session(&second).await.unwrap();
    let (third, _) = mpsc::unbounded_channel();
    let answered = record
        .create(
            &local(),
            &asked("Who?"),
            SessionKey(6),
            &third,
            Durability::BeforeSeen,
        )
        .await
        .unwrap();
    assert_eq!(
        answered,
        RecordedQuestion {
            id: one.id,
            answered: true,
            refused: false,
            trace: None,
        }
    );
}

/// Returns a record that is the only one on its store, and the store for inspection.
async fn alone() -> (Arc<Memory>, Arc<Record>) {
    let below: Arc<Memory> = Arc::default();
    let record = record(below.clone());
    record.check_presence().await.unwrap();
    (below, record)
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
    let (below, record) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let recorded = record.create(
        &local(),
        &at_client("Who?"),
        SessionKey(1),
        &tell,
        Durability::Behind,
    );
    let id = recorded.now().expect("it is new").id;
    assert_eq!(
        record
            .submit(&id, &accept(), "client", Durability::Behind)
            .now(),
        Some(Verdict::Won)
    );
    let late = record
        .submit(&id, &Outcome::Decline, "client", Durability::Behind)
        .now();
    assert!(matches!(late, Some(Verdict::Late(_))));
    let ids = [id.clone()];
    let taken = record.deliver(&ids).now().flatten().unwrap();
    assert_eq!(taken, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
    assert_eq!(record.deliver(&ids).now().flatten(), None, "only once");
    assert!(
        below.find(id.clone()).await.unwrap().is_none(),
        "a kill here loses all of it, and no half"
    );
    record.write_behind(&id).now().unwrap();
    record.flush().await.unwrap();
    assert!(
        below.find(id.clone()).await.unwrap().is_none(),
        "on its way it is not written by itself"
    );
    // The server accepts it, which is part of the same write.
    assert!(record.confirm(&ids).now().is_some());
    record.write_behind(&id).now().unwrap();
    record.flush().await.unwrap();
    let row = below.find(id.clone()).await.unwrap().unwrap();
    assert!(row.lifecycle.delivered_at().is_some());
    assert_eq!((row.content, row.arguments), (None, None));
    let links = audit::read(&*below).await.unwrap();
    let events: Vec<String> = links.iter().map(|link| event(&link.entry)).collect();
    assert_eq!(events, ["asked", "answered", "delivered"]);
    assert!(links.iter().all(|link| !link.entry.contains("Ada")));
    assert_eq!(
        record.deliver(&ids).await.unwrap(),
        None,
        "nor by the record"
    );
    assert!(record.live().is_empty());
}

/// Asks a question that is written at once. Returns its id, and the events for its session.
async fn ask(
    record: &Arc<Record>,
    asked: &NewQuestion,
) -> (String, mpsc::UnboundedReceiver<RecordEvent>) {
    let (tell, told) = mpsc::unbounded_channel();
    let key = SessionKey(1);
    let recorded = record.create(&local(), asked, key, &tell, Durability::BeforeSeen);
    (recorded.await.unwrap().id, told)
}

/// Asks a question that is written behind. Returns its id, and the events for its session.
fn ask_behind(
    record: &Arc<Record>,
    asked: &NewQuestion,
) -> (String, mpsc::UnboundedReceiver<RecordEvent>) {
    let (tell, told) = mpsc::unbounded_channel();
    let key = SessionKey(1);
    let behind = record.create(&local(), asked, key, &tell, Durability::Behind);
    (behind.now().unwrap().id, told)
}

/// The session submits its client's answer, which is held until it is delivered or written.
fn holds(record: &Arc<Record>, id: &str, outcome: &Outcome) -> bool {
    let submitted = record.submit(id, outcome, "client", Durability::Behind);
    submitted.now() == Some(Verdict::Won)
}

fn event(entry: &str) -> String {
    let entry: serde_json::Value = serde_json::from_str(entry).unwrap();
    entry["event"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_answer_that_nobody_took_waits_for_the_same_call() {
    let (below, record) = alone().await;
    let (id, _told) = ask_behind(&record, &at_client("Who?"));
    record.write_behind(&id).now().unwrap();
    record
        .submit(&id, &accept(), "client", Durability::Behind)
        .now();
    record.write_behind(&id).now().unwrap();
    record.flush().await.unwrap();
    let row = below.find(id.clone()).await.unwrap().unwrap();
    assert!(
        row.lifecycle.is_open(),
        "an answer is written with its delivery"
    );
    // The call ends: the server is gone, or the client cancelled.
    assert!(record.end(&id, Ending::ServerGone).now().is_some());
    record.flush().await.unwrap();
    let row = below.find(id.clone()).await.unwrap().unwrap();
    assert!(!row.exclusive && row.lifecycle.phase().action().is_some());
    let (second, _told) = mpsc::unbounded_channel();
    let again = record.create(
        &local(),
        &at_client("Who?"),
        SessionKey(2),
        &second,
        Durability::Behind,
    );
    assert_eq!(again.now(), None, "the record has to be asked");
    let again = record
        .create(
            &local(),
            &at_client("Who?"),
            SessionKey(2),
            &second,
            Durability::BeforeSeen,
        )
        .await;
    assert_eq!(
        again.unwrap(),
        RecordedQuestion {
            id: id.clone(),
            answered: true,
            refused: false,
            trace: None,
        }
    );
    let taken = record.deliver(&[id]).await.unwrap().unwrap();
    assert_eq!(taken, [r#"{"action":"accept","content":{"name":"Ada"}}"#]);
}

#[tokio::test]
async fn a_client_that_leaves_leaves_its_question_to_all() {
    let (below, record) = alone().await;
    let (tell, _told) = mpsc::unbounded_channel();
    let behind = record.create(
        &local(),
        &at_client("Who?"),
        SessionKey(1),
        &tell,
        Durability::Behind,
    );
    let id = behind.now().unwrap().id;
    record.write_behind(&id).now().unwrap();
    record.flush().await.unwrap();
    assert!(below.find(id.clone()).await.unwrap().unwrap().exclusive);
    record.release_session(&tell).await.unwrap();
    let row = below.find(id.clone()).await.unwrap().unwrap();
    assert!(row.lifecycle.is_open() && !row.exclusive);
    assert_eq!(
        record
            .submit(&id, &accept(), "client", Durability::Behind)
            .now(),
        None
    );
    assert_eq!(
        record
            .submit(&id, &accept(), "inbox", Durability::WithDelivery)
            .await
            .unwrap(),
        Verdict::Won
    );
}

#[tokio::test]
async fn a_page_answers_a_noted_question_first_and_durably() {
    let (below, record) = alone().await;
    let (id, mut told) = ask_behind(&record, &at_client("Who?"));
    record.write_behind(&id).now().unwrap();
    record.mark_shown(&id).await.unwrap();
    assert_eq!(
        record
            .submit(&id, &Outcome::Decline, "inbox", Durability::WithDelivery)
            .await
            .unwrap(),
        Verdict::Won
    );
    let row = below.find(id.clone()).await.unwrap().unwrap();
    assert_eq!(
        row.lifecycle.ended_by(),
        Some("inbox"),
        "written before the person is told"
    );
    assert!(matches!(
        told.try_recv(),
        Ok(RecordEvent::Answered {
            question: SessionKey(1),
            held: None
        })
    ));
    let late = record
        .submit(&id, &accept(), "client", Durability::Behind)
        .now();
    assert_eq!(late, None);
    assert_eq!(
        record.deliver(std::slice::from_ref(&id)).now().flatten(),
        None,
        "by the record"
    );
    let taken = record.deliver(&[id]).await.unwrap().unwrap();
    assert_eq!(taken, [r#"{"action":"decline"}"#]);
}

/// Two gateways on one record: a question that one has taken is not used by the other until it is shared, which happens
/// soon.
#[tokio::test]
async fn in_company_a_question_is_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let below: Arc<Memory> = Arc::default();
    let keys = OwnKeys::random().unwrap();
    let open = || {
        let lock_file = LockFile::acquire(folder.path()).unwrap();
        Arc::new(Record::new(below.clone(), keys.clone(), lock_file, clock))
    };
    let first = open();
    first.check_presence().await.unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let behind = first.create(
        &local(),
        &at_client("Who?"),
        SessionKey(1),
        &tell,
        Durability::Behind,
    );
    let id = behind.now().expect("alone").id;
    first.write_behind(&id).now().unwrap();
    first.flush().await.unwrap();
    let second = open();
    let row = second.find(&id).await.unwrap().unwrap();
    assert!(second.is_exclusive_elsewhere(&row) && !first.is_exclusive_elsewhere(&row));
    second.mark_shown(&id).await.unwrap();
    assert_eq!(second.find(&id).await.unwrap().unwrap(), row, "left alone");
    let beside = first.create(
        &local(),
        &at_client("What?"),
        SessionKey(2),
        &tell,
        Durability::Behind,
    );
    assert_eq!(beside.now(), None, "in company questions are written first");
    // As the second gateway's housekeeping does.
    let answer = accept();
    let (verdict, heard) = tokio::join!(
        second
            .submit(&id, &answer, "inbox", Durability::WithDelivery)
            .into_future(),
        async {
            tokio::task::yield_now().await;
            first.poll_others().await
        }
    );
    heard.unwrap();
    assert_eq!(verdict.unwrap(), Verdict::Won);
    first.poll_others().await.unwrap();
    assert!(matches!(
        told.try_recv(),
        Ok(RecordEvent::Answered {
            question: SessionKey(1),
            held: None
        })
    ));
    assert_eq!(
        first
            .submit(&id, &Outcome::Decline, "client", Durability::Behind)
            .now(),
        None
    );
    assert!(matches!(
        first
            .submit(&id, &Outcome::Decline, "client", Durability::WithDelivery)
            .await
            .unwrap(),
        Verdict::Late(_)
    ));
    // Once it is the only gateway again, it looks for abandoned questions.
    drop(second);
    first.check_presence().await.unwrap();
    let again = first.create(
        &local(),
        &at_client("Who?"),
        SessionKey(3),
        &tell,
        Durability::Behind,
    );
    assert_eq!(again.now(), None, "the record has its answer");
    assert!(
        first
            .create(
                &local(),
                &at_client("What?"),
                SessionKey(4),
                &tell,
                Durability::Behind
            )
            .now()
            .is_some()
    );
}
