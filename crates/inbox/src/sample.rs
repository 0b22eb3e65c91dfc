//! The API over a record in memory with one question, for fuzz tests.

use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::{AskedVia, CallSummary, NewQuestion, ProofNumber, TeamPlan};
use mcp_elicit_core::wire::{CallKind, ElicitRequest, Revision};
use mcp_elicit_record::store::Memory;
use mcp_elicit_record::{
    Durability, LockFile, OwnKeys, Record, ServerIdentity, SessionIdentity, SessionKey,
};
use std::io;
use std::sync::Arc;

use axum::Router;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::api::{self, RequestAccess};
use super::record_question_store::RecordQuestionStore;
use super::state_folder::StateFolder;

/// The arguments of the call.
const ARGUMENTS: &str = r#"{"to":"moon"}"#;

/// Returns the router, and the id of the waiting question. Must be called in a tokio runtime.
///
/// # Errors
/// If the system has no randomness, or the record rejects the question.
pub async fn api(folder: &StateFolder) -> io::Result<(Router, String)> {
    let store = Arc::new(Memory::default());
    let clock = || Timestamp::from_millis(1_000);
    let record = Arc::new(Record::new(
        store,
        OwnKeys::random()?,
        LockFile::unshared()?,
        clock,
    ));
    let id = raised(&record, Vec::new()).await?;
    let questions = Arc::new(RecordQuestionStore::new(Arc::clone(&record)));
    let router = api::router(
        record,
        questions,
        folder.clone(),
        RequestAccess::Owner(None),
    );
    Ok((router, id))
}

/// Returns the id of a new question of the call of `deploy`, or of one of these others.
pub(super) async fn raised(record: &Arc<Record>, others: Vec<String>) -> io::Result<String> {
    let until = Timestamp::from_millis(9_000);
    asked(
        record,
        "local",
        others,
        None,
        until,
        ARGUMENTS,
        &sample_form(),
    )
    .await
}

/// Returns the id of a new question to people, open for an hour.
#[cfg(test)]
pub(super) async fn raised_for(record: &Arc<Record>, team: Option<TeamPlan>) -> io::Result<String> {
    raised_with(record, team, ARGUMENTS).await
}

/// Returns the id of a new question of a call with these arguments (JSON).
#[cfg(test)]
pub(super) async fn raised_with(
    record: &Arc<Record>,
    team: Option<TeamPlan>,
    arguments: &str,
) -> io::Result<String> {
    raised_with_form(record, team, arguments, &sample_form()).await
}

/// Returns the id of a new question with this form (a schema).
#[cfg(test)]
pub(super) async fn raised_with_form(
    record: &Arc<Record>,
    team: Option<TeamPlan>,
    arguments: &str,
    form: &Value,
) -> io::Result<String> {
    let until = record.now().after(std::time::Duration::from_secs(60 * 60));
    asked(record, "local", Vec::new(), team, until, arguments, form).await
}

/// Returns the id of a new question of a call of this caller, open for an hour.
#[cfg(test)]
pub(super) async fn raised_by(record: &Arc<Record>, caller: &str) -> io::Result<String> {
    let until = record.now().after(std::time::Duration::from_secs(60 * 60));
    asked(
        record,
        caller,
        Vec::new(),
        None,
        until,
        ARGUMENTS,
        &sample_form(),
    )
    .await
}

/// Returns the id of a new question to people, in a call with these arguments (JSON).
#[cfg(test)]
pub(super) async fn raised_in(
    record: &Arc<Record>,
    caller: &str,
    team: Option<TeamPlan>,
    arguments: &str,
) -> io::Result<String> {
    let until = record.now().after(std::time::Duration::from_secs(60 * 60));
    let form = sample_form();
    asked(record, caller, Vec::new(), team, until, arguments, &form).await
}

fn sample_form() -> Value {
    json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}}})
}

async fn asked(
    record: &Arc<Record>,
    caller: &str,
    others: Vec<String>,
    team: Option<TeamPlan>,
    until: Timestamp,
    arguments: &str,
    form: &Value,
) -> io::Result<String> {
    let form = Form::from_value(form).map_err(|_| io::Error::other("the form is legal"))?;
    let schema = form
        .emit(Revision::LATEST)
        .map_err(|_| io::Error::other("the form can be said"))?;
    let asked = NewQuestion {
        call: Some(CallSummary {
            kind: CallKind::Tool,
            target: "deploy".to_owned(),
            arguments: Some(arguments.to_owned()),
            digest: "d".to_owned(),
            proof: ProofNumber::default(),
        }),
        others,
        candidates: Vec::new(),
        request: ElicitRequest::form("Who?", &schema),
        form: Some(Arc::new(form)),
        fields: vec!["name".to_owned()],
        warnings: Vec::new(),
        via: AskedVia::People,
        server_info: None,
        client_info: None,
        until,
        outlives: true,
        team,
        trace: None,
        task: None,
    };
    let who = SessionIdentity {
        server: ServerIdentity {
            name: "s".to_owned(),
            is_named: true,
            address: "s".to_owned(),
            key: "s".to_owned(),
        },
        caller: caller.to_owned(),
    };
    let (tell, _nobody_waits) = mpsc::unbounded_channel();
    let raised = record
        .create(&who, &asked, SessionKey(1), &tell, Durability::BeforeSeen)
        .await
        .map_err(io::Error::other)?;
    Ok(raised.id)
}

/// Returns everything in the file of a folder's record and in its log, in which a secret can be looked for.
#[cfg(test)]
pub(crate) fn stored(folder: &std::path::Path) -> String {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap_or_default();
    let all = [read("record.sqlite"), read("record.sqlite-wal")].concat();
    assert!(!all.is_empty(), "there is a record");
    String::from_utf8_lossy(&all).into_owned()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http_body_util::BodyExt as _;
    use proptest::prelude::*;
    use tower::ServiceExt as _;

    use super::*;

    /// Sends a request with these parts, if possible; returns its status and body.
    async fn ask(method: &str, path: &str, body: Vec<u8>) -> Option<(u16, Vec<u8>)> {
        let folder = tempfile::tempdir().unwrap();
        let (api, id) = api(&StateFolder::at(folder.path())).await.unwrap();
        let path = path.replace("ID", &id);
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        let response = api
            .oneshot(request.body(Body::from(body)).ok()?)
            .await
            .unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap();
        Some((status, body.to_bytes().to_vec()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_request_gets_json_and_no_failure_of_ours(
            path in "/questions(/(ID|[a-z%0-9]{1,8})(/answer)?)?(\\?[a-z]{1,5}=[a-z0-9%]{0,4})?",
            is_post in any::<bool>(),
            body in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..64),
                "\\{\"action\":\"(accept|decline|maybe)\"(,\"content\":\\{\"name\":(1|\"x\"|null)\\})?\\}".prop_map(String::into_bytes),
            ],
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let method = if is_post { "POST" } else { "GET" };
            if let Some((status, body)) = runtime.block_on(ask(method, &path, body)) {
                prop_assert!(status < 500, "{method} {path}: {status}");
                prop_assert!(serde_json::from_slice::<Value>(&body).is_ok());
            }
        }
    }
}
