//! Callers while the database of the record is away: nothing of theirs ends.

use std::thread::{self, sleep};
use std::time::Duration;

use mcp_elicit_testkit::postgres::PostgresServer;
use serde_json::{Value, json};

use super::replica::{LOOK, LOOKS};
use crate::gateway::{Gateway, REVISION};
use crate::http::{post, send_within};
use crate::raw::{DEMO_SERVER, PROGRAM, call, command, initialize, text};

/// Longer than the sessions of a revoked key live.
const AWAY: Duration = Duration::from_secs(12);

#[test]
fn sessions_of_keys_and_their_held_calls_outlive_a_database_that_is_away() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = server.database();
    let state = tempfile::tempdir().unwrap();
    let record = ["--record", &database.address];
    let options = [
        "--listen",
        "127.0.0.1:0",
        "--auth",
        "keys",
        "--hold",
        "3600",
    ];
    let options = [&record[..], &options].concat();
    let gateway = Gateway::start(state.path(), &options, &DEMO_SERVER);
    let at = gateway.serving.clone().unwrap();
    let made = ["tokens", "make", "test", "--scope", "call", "--json"];
    let made = command(state.path(), &[&made[..], &record].concat());
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let key = made["token"].as_str().unwrap();
    let opened = post(
        &at,
        "/mcp",
        Some(key),
        None,
        &initialize(REVISION, &json!({})),
    );
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let send = |frame: &Value| post(&at, "/mcp", Some(key), Some(&session), frame);
    let list = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"});
    thread::scope(|threads| {
        let calling = threads.spawn(|| send(&call(2, "deploy", &json!({}))));
        let id = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
        server.stop();
        for _ in 0..3 {
            let refused = send(&list);
            assert_eq!(refused.status, 503, "{refused:?}");
            assert!(refused.header("retry-after").is_some(), "{refused:?}");
        }
        sleep(AWAY);
        server.start_again();
        let until = |is_there: &dyn Fn() -> bool| {
            assert!((0..LOOKS).any(|_| {
                sleep(LOOK);
                is_there()
            }));
        };
        until(&|| send(&list).status == 200);
        let content = json!({"action": "accept", "content": {"environment": "staging"}});
        until(&|| gateway.answer(&id, &content) == 200);
        let done = calling.join().unwrap().response();
        assert!(text(&done).contains("staging"), "{done}");
    });
}

#[test]
fn the_metrics_are_there_while_the_database_hangs() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = server.database();
    let state = tempfile::tempdir().unwrap();
    let options = ["--record", &database.address, "--listen", "127.0.0.1:0"];
    let gateway = Gateway::start(state.path(), &options, &DEMO_SERVER);
    let at = gateway.serving.clone().unwrap();
    // A monitor that waits for few seconds gets it: the database's own limit is ten.
    let monitor = Duration::from_secs(5);
    let metrics = || {
        let head = ["GET /metrics HTTP/1.1", &format!("Host: {at}")];
        let reply = send_within(&at, &head, "", monitor).unwrap();
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.body
    };
    let up = |text: &str| text.contains("mcp_elicit_record_up 1\n");
    let has_figures = |text: &str| text.contains("mcp_elicit_open_questions");
    let until = |is_so: &dyn Fn(&str) -> bool| {
        assert!((0..LOOKS).any(|_| {
            sleep(LOOK);
            is_so(&metrics())
        }));
    };
    until(&|text| up(text) && has_figures(text));
    server.hang();
    // Also several monitors, and a second time, while the first read still waits.
    thread::scope(|threads| {
        let reads: Vec<_> = (0..3).map(|_| threads.spawn(metrics)).collect();
        let reads = reads.into_iter().map(|read| read.join().unwrap());
        for text in reads.chain([metrics(), metrics()]) {
            assert!(text.contains("mcp_elicit_record_up 0\n"), "{text}");
            let is_here = !has_figures(&text) && text.contains("mcp_elicit_sessions");
            assert!(is_here, "{text}");
        }
    });
    server.go_on();
    until(&|text| up(text) && has_figures(text));
}

#[test]
fn a_call_that_was_handed_back_goes_on_although_its_server_stopped_waiting_meanwhile() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = server.database();
    let state = tempfile::tempdir().unwrap();
    let record = ["--record", &database.address];
    let options = ["--listen", "127.0.0.1:0", "--hold", "2"];
    let patience = ["--", PROGRAM, "demo-server", "--timeout", "8"];
    let gateway = Gateway::start(state.path(), &[&record[..], &options].concat(), &patience);
    let at = gateway.serving.clone().unwrap();
    let opening = initialize(REVISION, &json!({}));
    let opened = post(&at, "/mcp", None, None, &opening);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let deploy = |id| {
        let sent = post(
            &at,
            "/mcp",
            None,
            Some(&session),
            &call(id, "deploy", &json!({})),
        );
        sent.response()
    };
    let handed_back = deploy(2);
    assert!(text(&handed_back).contains("Not done yet"), "{handed_back}");
    server.stop();
    // Its server gives up, and its result cannot be stored.
    sleep(AWAY);
    server.start_again();
    let id = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    let content = json!({"action": "accept", "content": {"environment": "staging"}});
    let is_answered = |_| {
        sleep(LOOK);
        gateway.answer(&id, &content) == 200
    };
    assert!((0..LOOKS).any(is_answered));
    let done = deploy(3);
    assert!(text(&done).contains("staging"), "{done}");
}
