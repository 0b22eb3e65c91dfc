//! Tests of the audit: every event of a question once.

use std::sync::{Arc, Mutex};

use mcp_elicit_server::ElicitingExt;
use mcp_elicit_server::audit::{AuditEvent, AuditRecord};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::json;

use crate::asker::Asker;
use crate::harness::{Act, REVISIONS, ScriptedUser};

/// Every event of a question is recorded once, even if the handler runs again, and no value is.
#[tokio::test(start_paused = true)]
async fn the_audit_tells_each_turn_once() {
    for revision in REVISIONS {
        let acts = [
            Act::Accept(json!({ "environment": "nowhere" })),
            Act::Accept(json!({ "environment": "production", "note": "s3cret" })),
            Act::Decline,
        ];
        let records = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&records);
        let audit = move |record: &AuditRecord| {
            sink.lock()
                .unwrap()
                .push(serde_json::to_value(record).unwrap());
        };
        let person = ScriptedUser::answering(revision, acts);
        let settings = person
            .clock
            .settings()
            .audit(audit)
            .principal(|_| Some("ada".into()));
        person
            .call_under(Asker.eliciting(settings), "deploy")
            .await
            .unwrap();
        let records = records.lock().unwrap();
        let turns: Vec<_> = records
            .iter()
            .map(|record| record["event"].as_str().unwrap())
            .collect();
        assert_eq!(
            turns,
            ["asked", "wrong", "asked", "answered", "asked", "declined"],
            "{revision}"
        );
        assert_eq!(records[0]["name"], "deploy");
        assert_eq!(records[0]["principal"], "ada");
        assert_eq!(records[0]["fields"], json!(["environment", "note"]));
        let text = serde_json::to_string(&*records).unwrap();
        assert!(
            !text.contains("s3cret") && !text.contains("nowhere"),
            "{text}"
        );
    }
}

/// The caller cancels its call while the question is open: the handler ends, and the question is withdrawn.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_withdraws_its_question() {
    let person = ScriptedUser::answering("2025-11-25", [Act::Late(json!({ "age": 40 }))]);
    let turns = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&turns);
    let audit = move |record: &AuditRecord| sink.lock().unwrap().push(record.event);
    let client = person
        .meet(Asker.eliciting(person.clock.settings().audit(audit)))
        .await;
    let request =
        ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("age")));
    let options = PeerRequestOptions::no_options();
    let handle = client
        .send_cancellable_request(request, options)
        .await
        .unwrap();
    while person.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    handle.cancel(None).await.unwrap();
    while turns.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    let turns = turns.lock().unwrap().clone();
    assert_eq!(turns, [AuditEvent::Asked, AuditEvent::Withdrawn]);
}
