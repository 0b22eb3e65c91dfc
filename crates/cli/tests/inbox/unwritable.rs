//! A record that cannot be written for a while, such as on a full disk: here another process locks it.

use serde_json::json;

use crate::gateway::Gateway;
use crate::raw::{DEMO_SERVER, text};

#[test]
fn an_answer_that_cannot_be_written_does_not_count_and_its_call_keeps_waiting() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = Gateway::start(state.path(), &["--hold", "3600"], &DEMO_SERVER);
    gateway.initialize();
    gateway.call(2, "deploy", &json!({}));
    let id = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    let file = rusqlite::Connection::open(state.path().join("record.sqlite")).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let content = json!({"action": "accept", "content": {"environment": "staging"}});
    let path = format!("/api/questions/{id}/answer");
    // Longer than a write waits for another process.
    let refused = gateway.api("POST", &path, &content.to_string()).unwrap();
    assert_eq!(refused.status, 500, "{refused:?}");
    let told = refused.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        told.contains("does not count") && told.contains("stays open"),
        "{told}"
    );
    file.execute_batch("ROLLBACK").unwrap();
    assert_eq!(gateway.wait_for(1)[0]["id"], *id);
    assert_eq!(gateway.answer(&id, &content), 200);
    let done = gateway.result(2);
    assert!(text(&done).contains("Deployed to staging"), "{done}");
}
