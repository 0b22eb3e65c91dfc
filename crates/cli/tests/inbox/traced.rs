//! Traces: the call of a client, the requests to the server, the question and the delivery of its answer are one trace.

use std::path::Path;

use serde_json::{Value, json};

use crate::asker::Asker;
use crate::collector::{self, Collector, GotSpan};
use crate::gateway::Gateway;
use crate::http::{post, send};
use crate::raw::{self, DEMO_SERVER, text};

/// The trace of the client, and its span.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn trace_parent(flags: &str) -> String {
    format!("00-{TRACE}-{SPAN}-{flags}")
}

/// Returns a call of a client that sends this `traceparent`.
fn call(id: u64, tool: &str, arguments: &Value, trace: Option<&str>) -> Value {
    let mut call = raw::call(id, tool, arguments);
    call["params"]["_meta"]["baggage"] = "user=eve".into();
    if let Some(trace) = trace {
        call["params"]["_meta"]["traceparent"] = trace.into();
    }
    call
}

fn start(state: &Path, options: &[&str], server: &[&str], collector: &Collector) -> Gateway {
    let mut command = raw::gateway(state, options, server);
    collector::configure(&mut command, &collector.address);
    let mut gateway = Gateway::run(state, command, false);
    gateway.initialize();
    gateway
}

/// Stops a gateway by the end of its input, and waits for its end.
fn stop(mut gateway: Gateway) {
    drop(gateway.stdin.take());
    gateway.child.wait().unwrap();
}

fn accept(gateway: &Gateway, value: &Value) {
    let question = &gateway.wait_for(1)[0];
    let answer = json!({"action": "accept", "content": value});
    assert_eq!(
        gateway.answer(question["id"].as_str().unwrap(), &answer),
        200
    );
}

fn only(spans: &[GotSpan]) -> &GotSpan {
    assert_eq!(spans.len(), 1, "{spans:#?}");
    &spans[0]
}

#[test]
fn a_call_its_question_and_the_answer_are_one_trace_without_a_value() {
    let (collector, asker) = (Collector::start(), Asker::start());
    let state = tempfile::tempdir().unwrap();
    let server = ["--name", "notes", "--upstream", &asker.url];
    let mut gateway = start(state.path(), &["--hold", "3600"], &server, &collector);
    gateway.send(&call(
        2,
        "note",
        &json!({"n": 31_337}),
        Some(&trace_parent("01")),
    ));
    accept(&gateway, &json!({"value": "s3cret"}));
    assert_eq!(text(&gateway.result(2)), "s3cret");
    stop(gateway);
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
    let named = |name: &str, outcome: &str| {
        let fits = |span: &&GotSpan| span.name == name && span.outcome() == outcome;
        let found: Vec<_> = spans.iter().filter(fits).cloned().collect();
        found
    };
    // The server is asked twice: the first time it asks a question.
    let first = only(&named("tools/call note", "input-required")).clone();
    let others = named("tools/call note", "ok");
    let request = only(
        &others
            .iter()
            .filter(|span| span.parent == SPAN)
            .cloned()
            .collect::<Vec<_>>(),
    )
    .clone();
    let second = only(
        &others
            .iter()
            .filter(|span| span.parent == request.id)
            .cloned()
            .collect::<Vec<_>>(),
    )
    .clone();
    assert_eq!(first.parent, request.id);
    let question = only(&named("question", "answered")).clone();
    assert_eq!(question.parent, first.id);
    let delivery = only(&named("deliver", "delivered")).clone();
    assert_eq!(delivery.parent, question.id);
    assert_eq!(spans.len(), 5, "{spans:#?}");
    assert!(request.times.0 <= question.times.0 && question.times.1 <= request.times.1);
    for (name, value) in [
        ("gen_ai.tool.name", "note"),
        ("mcp.method.name", "tools/call"),
        ("mcp_elicit.server", "notes"),
    ] {
        assert_eq!(request.attributes[name], value);
        assert_eq!(question.attributes[name], value);
    }
    assert_eq!(question.attributes["mcp_elicit.mode"], "form");
    let at_server =
        [&first, &second].map(|span| [Some(format!("00-{TRACE}-{}-01", span.id)), None]);
    assert_eq!(asker.traces(), at_server);
    for hidden in ["s3cret", "31337", "Value for", "eve", "local", "raw"] {
        assert!(!collector.has_text(hidden), "{hidden}");
    }
}

#[test]
fn a_call_that_was_handed_back_goes_on_in_its_trace_at_another_gateway() {
    let (collector, asker) = (Collector::start(), Asker::start());
    let state = tempfile::tempdir().unwrap();
    let server = ["--name", "notes", "--upstream", &asker.url];
    let again = "00-11111111111111111111111111111111-2222222222222222-01";
    let arguments = json!({"n": 4});
    let mut first = start(state.path(), &["--hold", "0"], &server, &collector);
    first.send(&call(2, "note", &arguments, Some(&trace_parent("01"))));
    assert!(text(&first.result(2)).starts_with("Not done yet"));
    stop(first);
    let mut second = start(state.path(), &["--hold", "0"], &server, &collector);
    accept(&second, &json!({"value": "s3cret"}));
    second.send(&call(3, "note", &arguments, Some(again)));
    assert_eq!(text(&second.result(3)), "s3cret");
    stop(second);
    let question = only(&collector.wait_for("question", 1)).clone();
    let delivery = only(&collector.wait_for("deliver", 1)).clone();
    let spans = collector.spans();
    let asked_by = spans
        .iter()
        .find(|span| span.id == question.parent)
        .unwrap();
    let request = spans
        .iter()
        .find(|span| span.id == asked_by.parent)
        .unwrap();
    assert_eq!(
        (request.parent.as_str(), request.outcome()),
        (SPAN, "handed-back")
    );
    for span in [&question, &delivery, asked_by, request] {
        assert_eq!(span.trace, TRACE);
    }
    assert_eq!(delivery.parent, question.id);
    // The gateway that ends a question sends its span; its times are true.
    assert_eq!(question.replica(), delivery.replica());
    assert_ne!(question.replica(), request.replica());
    assert!(question.times.0 >= request.times.0 && question.times.1 >= request.times.1);
    let repeated = spans.iter().find(|span| span.parent == "2222222222222222");
    let repeated = repeated.unwrap();
    assert_eq!(
        (repeated.trace.as_str(), repeated.outcome()),
        (&again[3..35], "ok")
    );
}

#[test]
fn a_server_on_stdio_is_asked_in_the_trace_and_a_new_trace_begins_without_a_client_that_has_one() {
    let collector = Collector::start();
    let state = tempfile::tempdir().unwrap();
    let mut gateway = start(state.path(), &["--hold", "3600"], &DEMO_SERVER, &collector);
    gateway.send(&call(2, "profile", &json!({}), None));
    let question = &gateway.wait_for(1)[0];
    let answer = json!({"action": "decline"});
    assert_eq!(
        gateway.answer(question["id"].as_str().unwrap(), &answer),
        200
    );
    gateway.result(2);
    // This client's traces are not recorded.
    gateway.send(&call(3, "profile", &json!({}), Some(&trace_parent("00"))));
    let question = &gateway.wait_for(1)[0];
    gateway.answer(question["id"].as_str().unwrap(), &answer);
    gateway.result(3);
    stop(gateway);
    let question = only(&collector.wait_for("question", 1)).clone();
    assert_eq!(question.outcome(), "declined");
    let delivery = only(&collector.wait_for("deliver", 1)).clone();
    let [upstream, request] = {
        let spans = collector.spans();
        let by_id = |id: &str| spans.iter().find(|span| span.id == id).unwrap().clone();
        let upstream = by_id(&question.parent);
        let request = by_id(&upstream.parent);
        assert_eq!(spans.len(), 4, "{spans:#?}");
        [upstream, request]
    };
    assert_eq!(request.parent, "");
    assert_eq!(delivery.parent, question.id);
    for span in [&question, &delivery, &upstream] {
        assert_eq!(span.trace, request.trace);
    }
    // The request that takes the answer is the one in which it was asked.
    assert_eq!(delivery.links, [request.trace]);
}

#[test]
fn the_file_names_the_collector_and_a_client_over_http_its_span_in_a_header() {
    let (collector, asker) = (Collector::start(), Asker::start());
    let state = tempfile::tempdir().unwrap();
    let rest = format!(
        "traces = \"{}\"\n[servers.notes]\nurl = \"{}\"\nhold = 3600\n",
        collector.address, asker.url
    );
    let gateway = Gateway::of_config(state.path(), &rest);
    let at = gateway.serving.as_deref().unwrap();
    let opened = post(
        at,
        "/mcp",
        None,
        None,
        &raw::initialize("2025-11-25", &json!({})),
    );
    let session = opened.header("mcp-session-id").unwrap();
    let parent = format!("traceparent: {}", trace_parent("01"));
    let session = format!("Mcp-Session-Id: {session}");
    let head = [
        "POST /mcp HTTP/1.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        &session,
        &parent,
    ];
    let call = raw::call(2, "tell", &json!({"n": 5})).to_string();
    let told = send(at, &head, &call).unwrap();
    assert_eq!(text(&told.response()), "told 5");
    // Five seconds at most: the spans wait for others.
    let spans = collector.wait_for("tools/call tell", 2);
    assert!(spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
    let request = spans.iter().find(|span| span.parent == SPAN).unwrap();
    let sent = spans.iter().find(|span| span.parent == request.id).unwrap();
    let at_server = Some(format!("00-{TRACE}-{}-01", sent.id));
    assert_eq!(asker.traces(), [[at_server.clone(), at_server]]);
    let metrics = send(at, &["GET /metrics HTTP/1.1"], "").unwrap().body;
    assert!(
        metrics.contains("mcp_elicit_spans_total{result=\"dropped\"} 0"),
        "{metrics}"
    );
}

#[test]
fn calls_go_on_while_no_collector_is_there_and_nothing_changes_without_one() {
    let asker = Asker::start();
    let state = tempfile::tempdir().unwrap();
    let server = ["--name", "notes", "--upstream", &asker.url];
    let away = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", free.local_addr().unwrap())
    };
    for collector in [Some(away.as_str()), None] {
        let mut command = raw::gateway(state.path(), &[], &server);
        if let Some(address) = collector {
            collector::configure(&mut command, address);
        }
        let mut gateway = Gateway::run(state.path(), command, false);
        gateway.initialize();
        for id in 2..5 {
            let trace = trace_parent("01");
            gateway.send(&call(id, "tell", &json!({"n": id}), Some(&trace)));
            assert_eq!(text(&gateway.result(id)), format!("told {id}"));
        }
        let said = gateway.said.clone();
        stop(gateway);
        let said = said.lock().unwrap();
        let told = said.matches("the collector does not take traces").count();
        assert_eq!(told, usize::from(collector.is_some()), "{said}");
    }
    let own = Some(trace_parent("01"));
    let traces = asker.traces().into_iter().map(|[in_meta, _]| in_meta);
    let traces: Vec<_> = traces.collect();
    assert_eq!(traces.len(), 6);
    let is_below = |trace: &String| trace.contains(TRACE) && !trace.contains(SPAN);
    assert!(traces[..3].iter().flatten().all(is_below), "{traces:?}");
    assert_eq!(traces[3..], [own.clone(), own.clone(), own]);
}

#[test]
fn a_gateway_stops_although_its_collector_never_answers() {
    let state = tempfile::tempdir().unwrap();
    let collector = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = raw::gateway(state.path(), &[], &["--upstream", &Asker::start().url]);
    let address = format!("http://{}", collector.local_addr().unwrap());
    collector::configure(&mut command, &address);
    let mut gateway = Gateway::run(state.path(), command, false);
    gateway.initialize();
    gateway.call(2, "tell", &json!({"n": 2}));
    assert_eq!(text(&gateway.result(2)), "told 2");
    let said = gateway.said.clone();
    stop(gateway);
    let said = said.lock().unwrap();
    assert!(
        said.contains("the last spans of traces are dropped"),
        "{said}"
    );
}
