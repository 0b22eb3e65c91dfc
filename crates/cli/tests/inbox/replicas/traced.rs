//! A trace over two gateways: the call is forwarded, and answered at the other one.

use std::thread;

use mcp_elicit_testkit::postgres::PostgresServer;
use serde_json::json;

use super::replica::Deployment;
use crate::asker::Asker;
use crate::collector::Collector;
use crate::gateway::REVISION;
use crate::http::post;
use crate::raw::{call, initialize, text};

#[test]
fn a_call_that_is_forwarded_and_its_question_are_one_trace_over_two_gateways() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let (asker, collector) = (Asker::start(), Collector::start());
    let database = server.database();
    let deployment = Deployment::new(&database.address, &asker.url, 3_600)
        .forwarding()
        .traced_at(&collector.address);
    let [a, b] = [0, 1].map(|number| deployment.start(number).expect("it starts"));
    let opened = initialize(REVISION, &json!({}));
    let opened = post(&a.serving, "/mcp", None, None, &opened);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let mut call = call(2, "note", &json!({"n": 9}));
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    call["params"]["_meta"]["traceparent"] = parent.into();
    let (at, desk) = (b.serving.as_str(), b.desk());
    let answered = thread::scope(|threads| {
        let session = Some(session.as_str());
        let calling = threads.spawn(move || post(at, "/mcp", None, session, &call));
        let id = desk.question_of(9, true);
        assert_eq!(desk.accept(&id, "through B"), Some(200));
        calling.join().unwrap()
    });
    assert_eq!(text(&answered.response()), "through B");
    let question = collector.wait_for("question", 1).remove(0);
    let delivery = collector.wait_for("deliver", 1).remove(0);
    let calls = collector.wait_for("tools/call note", 3);
    let by_id = |id: &str| calls.iter().find(|span| span.id == id).unwrap();
    let asked_in = by_id(&question.parent);
    let request = by_id(&asked_in.parent);
    assert_eq!(request.parent, "b7ad6b7169203331");
    assert_eq!(delivery.parent, question.id);
    let all = calls.iter().chain([&question, &delivery]);
    assert!(all.clone().all(|span| parent.contains(&span.trace)));
    // B ended the question; the session is at A.
    assert!(
        calls
            .iter()
            .all(|span| span.replica() == delivery.replica())
    );
    assert_ne!(question.replica(), request.replica());
}
