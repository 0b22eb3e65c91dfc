//! Servers over HTTP that close their streams, and that check headers.

use std::sync::Mutex;
use std::time::Duration;

use axum::Router;
use axum::extract::State as Shared;
use axum::http::{HeaderMap as Headers, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use futures::StreamExt as _;
use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::lifecycle::{Delivery, Timestamp};
use mcp_elicit_core::question::{CallSummary, TeamPlan};
use mcp_elicit_core::wire::meta;
use mcp_elicit_record::store::{Filter, Memory, Page, Row};
use mcp_elicit_record::{
    Durability, LockFile, OwnKeys, Record, ServerIdentity, SessionIdentity, Verdict, clock,
};
use mcp_elicit_relay::RelaySettings;
use mcp_elicit_relay::decisions::{
    Admission, Approval, ApprovedCall, Decisions, PeopleAsked, Planned, QuestionParts, RuleRefusal,
    ToolFacts,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::listener::event_queue::EventReceiver;
use crate::listener::response_streams::ResponseStreams;
use crate::session::SessionContext;

type Seen = Arc<Mutex<Vec<(String, Headers)>>>;

const EVENTS: [(&str, &str); 1] = [("content-type", "text/event-stream")];
/// The number of times that the polled server closes the stream of a call before it answers.
const CLOSINGS: u32 = 9;

fn note(seen: &Seen, what: &str, headers: Headers) {
    seen.lock().unwrap().push((what.to_owned(), headers));
}

/// Records the request, and returns its message.
fn noted(seen: &Seen, headers: Headers, body: &str) -> Value {
    let request: Value = serde_json::from_str(body).unwrap();
    let method = request["method"].as_str().unwrap_or_default();
    note(seen, method, headers);
    request
}

fn answer(request: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string()
}

/// Returns a server with a session that closes every stream after one event.
fn polled() -> Router<Seen> {
    let call = |Shared(seen): Shared<Seen>, headers: Headers, body: String| async move {
        let request = noted(&seen, headers, &body);
        match request["method"].as_str() {
            Some("initialize") => {
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "polled", "version": "1"}});
                (
                    [
                        ("mcp-session-id", "s"),
                        ("content-type", "application/json"),
                    ],
                    answer(&request, &result),
                )
                    .into_response()
            }
            Some("tools/call") => (EVENTS, "id: 0\nretry: 1\ndata:\n\n").into_response(),
            _ => StatusCode::ACCEPTED.into_response(),
        }
    };
    let poll = |Shared(seen): Shared<Seen>, headers: Headers| async move {
        let last = headers
            .get("last-event-id")
            .and_then(|last| last.to_str().ok());
        let Some(last) = last.and_then(|last| last.parse::<u32>().ok()) else {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        };
        note(&seen, "poll", headers);
        let data = if last < CLOSINGS {
            String::new()
        } else {
            answer(&json!({"id": 2}), &json!({"content": []}))
        };
        (
            EVENTS,
            format!("id: {}\nretry: 1\ndata: {data}\n\n", last + 1),
        )
            .into_response()
    };
    Router::new().route("/", post(call).get(poll))
}

/// A server's response to a request in a session that it has forgotten.
type Forgets = (u16, &'static str);

/// Returns a server that forgets its first session once it has answered `calls` in it, and the later ones at once if it
/// `never_learns`.
fn forgetful(forgets: Forgets, calls: usize, never_learns: bool) -> Router<Seen> {
    let call = move |Shared(seen): Shared<Seen>, headers: Headers, body: String| async move {
        let session = headers.get("mcp-session-id").cloned();
        let request = noted(&seen, headers, &body);
        match request["method"].as_str() {
            Some("initialize") => {
                let turn = seen.lock().unwrap();
                let turn = turn.iter().filter(|(what, _)| what == "initialize").count();
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "forgetful", "version": "1"}});
                let session = format!("s{turn}");
                let headers = [
                    ("mcp-session-id", &*session),
                    ("content-type", "application/json"),
                ];
                (headers, answer(&request, &result)).into_response()
            }
            Some("tools/call")
                if session.is_some_and(|session| session == "s1" || never_learns)
                    && calls_so_far(&seen) > calls =>
            {
                let (status, said) = forgets;
                (StatusCode::from_u16(status).unwrap(), said).into_response()
            }
            Some("tools/call") => {
                let kind = [("content-type", "application/json")];
                (kind, answer(&request, &json!({"content": []}))).into_response()
            }
            _ => StatusCode::ACCEPTED.into_response(),
        }
    };
    Router::new().route("/", post(call))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_the_server_forgot_is_opened_anew_and_the_call_is_made_in_it() {
    const OF_TYPESCRIPT: &str = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#;
    const OF_PYTHON: &str = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: Missing session ID"}}"#;
    for (forgets, calls) in [
        ((404, ""), 0),
        ((400, OF_TYPESCRIPT), 1),
        ((400, OF_TYPESCRIPT), 0),
        ((400, OF_PYTHON), 1),
        ((400, "Invalid or missing session"), 1),
        ((400, ""), 1),
        ((400, "<html>Bad Request</html>"), 2),
    ] {
        let rig = rig(forgetful(forgets, calls, false), HeaderSource::Gateway).await;
        open_and_call(&rig, 4, |told| {
            assert!(told["result"].is_object(), "{told}");
        })
        .await;
        assert_eq!(rig.seen("initialize").len(), 2);
        let initialized = rig.seen("notifications/initialized");
        assert_eq!(initialized.len(), 1);
        assert_eq!(initialized[0]["mcp-session-id"], "s2");
        let seen = rig.seen("tools/call");
        let sessions = seen.iter().map(|headers| &headers["mcp-session-id"]);
        let in_first = sessions.filter(|session| *session == "s1").count();
        assert_eq!(in_first, calls + 1, "{forgets:?}");
    }
}

/// Opens a session and makes this many calls in it.
async fn open_and_call(rig: &Rig, calls: u64, check: impl Fn(Value)) {
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    heard(&mut rig.send(1, HeaderMap::new(), &open)).await;
    for id in 2..2 + calls {
        let call =
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t"}});
        check(heard(&mut rig.send(id, HeaderMap::new(), &call)).await);
    }
}

fn calls_so_far(seen: &Seen) -> usize {
    let seen = seen.lock().unwrap();
    seen.iter().filter(|(what, _)| what == "tools/call").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_is_about_the_request_opens_no_session_and_none_is_opened_for_ever() {
    // An error for the request, in a session that works.
    let refused = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no such tool"}}"#;
    let rig_of = |forgets, never| rig(forgetful(forgets, 1, never), HeaderSource::Gateway);
    let rig = rig_of((400, refused), false).await;
    open_and_call(&rig, 2, |_| ()).await;
    assert_eq!(rig.seen("initialize").len(), 1);
    // The next session is not known either.
    let rig = rig_of((400, "no session"), true).await;
    open_and_call(&rig, 4, |_| ()).await;
    assert_eq!(rig.seen("initialize").len(), 2);
}

/// Returns a server of the rounds era.
fn rounds() -> Router<Seen> {
    let call = |Shared(seen): Shared<Seen>, headers: Headers, body: String| async move {
        let request = noted(&seen, headers, &body);
        let result = match request["method"].as_str() {
            Some("server/discover") => {
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0, "cacheScope": "private"})
            }
            Some("tools/list") => {
                let schema = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
                json!({"resultType": "complete", "tools": [{"name": "run", "inputSchema": schema}]})
            }
            _ => json!({"resultType": "complete", "content": []}),
        };
        (
            [("content-type", "application/json")],
            answer(&request, &result),
        )
            .into_response()
    };
    Router::new().route("/", post(call))
}

/// The asking server's responses to the messages with answers, in turn.
const REFUSES: &str = "refuses";

/// Returns a server with a session that asks in its call, and responds to the answers with these statuses, in turn.
fn asking(statuses: &'static [u16]) -> Router<Seen> {
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {
        "message": "SessionContext?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}});
    let waiting: Arc<Mutex<Option<tokio::sync::oneshot::Sender<()>>>> = Arc::default();
    let call = move |Shared(seen): Shared<Seen>, headers: Headers, body: String| async move {
        let request = noted(&seen, headers.clone(), &body);
        match request["method"].as_str() {
            Some("initialize") => {
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "asking", "version": "1"}});
                (
                    [
                        ("mcp-session-id", "s"),
                        ("content-type", "application/json"),
                    ],
                    answer(&request, &result),
                )
                    .into_response()
            }
            Some("tools/call") => {
                let (done, accepted) = tokio::sync::oneshot::channel();
                *waiting.lock().unwrap() = Some(done);
                let asked = format!("data: {question}\n\n");
                let result = answer(
                    &request,
                    &json!({"content": [{"type": "text", "text": "done"}]}),
                );
                let events =
                    futures::stream::once(async move { Ok::<_, std::convert::Infallible>(asked) })
                        .chain(futures::stream::once(async move {
                            let _gone = accepted.await;
                            Ok(format!("data: {result}\n\n"))
                        }));
                (EVENTS, axum::body::Body::from_stream(events)).into_response()
            }
            Some(_) => StatusCode::ACCEPTED.into_response(),
            None => {
                note(&seen, REFUSES, headers);
                let turn = seen.lock().unwrap();
                let turn = turn.iter().filter(|(what, _)| what == REFUSES).count() - 1;
                let status = StatusCode::from_u16(statuses[turn]).unwrap();
                if status.is_success()
                    && let Some(done) = waiting.lock().unwrap().take()
                {
                    done.send(()).unwrap();
                }
                (status, [("www-authenticate", "Bearer realm=\"asking\"")]).into_response()
            }
        }
    };
    Router::new().route("/", post(call))
}

/// Records the end of a stream that the server itself would leave open.
struct LeftOpen(Seen, String);

impl Drop for LeftOpen {
    fn drop(&mut self) {
        note(&self.0, &format!("closed {}", self.1), Headers::new());
    }
}

/// Returns a server with a session that never ends the stream of a call; it answers all but the tool `silent`.
fn never_ending() -> Router<Seen> {
    let call = |Shared(seen): Shared<Seen>, headers: Headers, body: String| async move {
        let request = noted(&seen, headers, &body);
        match request["method"].as_str() {
            Some("initialize") => {
                let opened = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "s", "version": "1"}});
                let headers = [
                    ("content-type", "application/json"),
                    ("mcp-session-id", "s"),
                ];
                (headers, answer(&request, &opened)).into_response()
            }
            Some("tools/call") => {
                let tool = request["params"]["name"].as_str().unwrap().to_owned();
                let answered = match tool.as_str() {
                    "silent" => ": ".to_owned(),
                    _ => format!(
                        "data: {}\n\ndata: ",
                        answer(&request, &json!({"content": []}))
                    ),
                };
                let open = LeftOpen(seen, tool);
                let events = futures::stream::iter([Ok::<_, std::io::Error>(answered)])
                    .chain(futures::stream::pending())
                    .inspect(move |_| assert!(!open.1.is_empty()));
                (EVENTS, axum::body::Body::from_stream(events)).into_response()
            }
            _ => StatusCode::ACCEPTED.into_response(),
        }
    };
    let none = || async { StatusCode::METHOD_NOT_ALLOWED };
    Router::new().route("/", post(call).get(none))
}

struct Rig {
    session: Arc<Session>,
    client: Arc<ResponseStreams>,
    record: Arc<Record>,
    seen: Seen,
}

async fn rig(app: Router<Seen>, repeating: HeaderSource) -> Rig {
    rig_with(app, repeating, RelaySettings::default()).await
}

async fn rig_with(app: Router<Seen>, repeating: HeaderSource, settings: RelaySettings) -> Rig {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let seen = Seen::default();
    let app = app.with_state(seen.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let server = HttpUpstream::new(&HttpTarget::new(url), 1 << 20, repeating).unwrap();
    let keys = OwnKeys::random().unwrap();
    let record = Record::new(
        Arc::new(Memory::default()),
        keys,
        LockFile::unshared().unwrap(),
        clock::now,
    )
    .with_delivering_sessions();
    let record = Arc::new(record);
    let who = SessionContext {
        holder: None,
        server: "s".to_owned(),
        identity: SessionIdentity {
            server: ServerIdentity {
                name: "s".to_owned(),
                is_named: true,
                address: String::new(),
                key: String::new(),
            },
            caller: "anonymous".to_owned(),
        },
        secrets: Arc::default(),
        caller: crate::callers::SessionCaller::new(crate::callers::ProvenCaller::local()),
        callers: Arc::new(crate::callers::Callers::unverified(record.identity_key())),
        teams: None,
        earlier_rules: crate::bind::EarlierRules::default(),
        link: Arc::new(|_| None),
        responder: None,
        traces: None,
    };
    let client = Arc::new(ResponseStreams::of_caller("test"));
    let (session, driver) = Session::new(
        settings,
        who,
        client.clone(),
        server.clone(),
        record.clone(),
    );
    server.attach(&session);
    tokio::spawn(driver.run());
    Rig {
        session,
        client,
        record,
        seen,
    }
}

impl Rig {
    fn send(&self, stream: u64, headers: HeaderMap, frame: &Value) -> EventReceiver {
        let told = self.client.open(StreamId(stream));
        let frame = frame.to_string();
        self.session.handle_client_with_headers(
            StreamId(stream),
            FrameBytes::Lent(frame.as_bytes()),
            headers,
        );
        told
    }

    fn seen(&self, what: &str) -> Vec<Headers> {
        let seen = self.seen.lock().unwrap();
        let of = seen.iter().filter(|(method, _)| method == what);
        of.map(|(_, headers)| headers.clone()).collect()
    }
}

async fn heard(told: &mut EventReceiver) -> Value {
    let told = tokio::time::timeout(Duration::from_secs(60), told.recv()).await;
    serde_json::from_slice(&told.unwrap().unwrap().frame).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_stream_is_closed_again_and_again_is_answered() {
    let rig = rig(polled(), HeaderSource::Client).await;
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    heard(&mut rig.send(1, HeaderMap::new(), &open)).await;
    let call =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "slow"}});
    let told = heard(&mut rig.send(2, HeaderMap::new(), &call)).await;
    assert!(told["result"].is_object(), "{told}");
    let polls = rig.seen("poll");
    assert_eq!(polls.len(), CLOSINGS as usize + 1);
    assert!(polls.iter().all(|headers| headers["mcp-session-id"] == "s"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_an_answered_or_cancelled_call_is_not_read_for_ever() {
    let rig = rig(never_ending(), HeaderSource::Client).await;
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    heard(&mut rig.send(1, HeaderMap::new(), &open)).await;
    let call = |id: u64, tool: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}});
    let _told = rig.send(2, HeaderMap::new(), &call(2, "silent"));
    let answered = heard(&mut rig.send(3, HeaderMap::new(), &call(3, "quick"))).await;
    assert!(answered["result"].is_object(), "{answered}");
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    rig.send(4, HeaderMap::new(), &cancelled);
    for closed in ["closed quick", "closed silent"] {
        let closes = async {
            while rig.seen(closed).is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let closes = tokio::time::timeout(Duration::from_secs(60), closes).await;
        assert!(closes.is_ok(), "{closed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_keeps_its_headers() {
    let rig = rig(rounds(), HeaderSource::Client).await;
    let params = json!({"name": "größe", "arguments": {"region": "eu"}, "_meta": {
        meta::PROTOCOL_VERSION: "2026-07-28", meta::CLIENT_CAPABILITIES: {},
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"}}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = HeaderMap::from_iter([(
        HeaderName::from_static("mcp-param-region"),
        HeaderValue::from_static("eu"),
    )]);
    // The first request of its client: it waits until the server's era is known.
    let told = heard(&mut rig.send(1, headers, &call)).await;
    assert!(told["result"].is_object(), "{told}");
    let calls = rig.seen("tools/call");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["mcp-param-region"], "eu");
    assert_eq!(calls[0]["mcp-name"], "=?base64?Z3LDtsOfZQ==?=");
    assert_eq!(calls[0]["mcp-protocol-version"], "2026-07-28");
}

/// A client that speaks no HTTP cannot send the headers that a tool requires, so the gateway adds them; for other
/// clients, the server checks them.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_tool_wants_in_headers_is_put_there_for_who_cannot() {
    let about = json!({meta::PROTOCOL_VERSION: "2026-07-28", meta::CLIENT_CAPABILITIES: {},
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"}});
    let list =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": about}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "run", "arguments": {"region": "eu"}, "_meta": about}});
    for (repeating, expected) in [
        (HeaderSource::Gateway, Some(b"eu".as_slice())),
        (HeaderSource::Client, None),
    ] {
        let rig = rig(rounds(), repeating).await;
        heard(&mut rig.send(1, HeaderMap::new(), &list)).await;
        heard(&mut rig.send(2, HeaderMap::new(), &call)).await;
        let calls = rig.seen("tools/call");
        let region = calls[0].get("mcp-param-region").map(HeaderValue::as_bytes);
        assert_eq!(region, expected, "{repeating:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_repeats_another_argument_than_the_server_says_goes_no_further() {
    let about = json!({meta::PROTOCOL_VERSION: "2026-07-28", meta::CLIENT_CAPABILITIES: {},
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"}});
    let list =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": about}});
    for (said, goes_on) in [("eu", true), ("us", false)] {
        let rig = rig(rounds(), HeaderSource::Client).await;
        heard(&mut rig.send(1, HeaderMap::new(), &list)).await;
        let arguments = json!({"region": "eu", "note": "us", "at": {"region": "us"}});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "run", "arguments": arguments, "_meta": about}});
        let headers = HeaderMap::from_iter([
            (
                HeaderName::from_static("mcp-param-region"),
                HeaderValue::from_static(said),
            ),
            (
                HeaderName::from_static("mcp-param-note"),
                HeaderValue::from_static("us"),
            ),
        ]);
        heard(&mut rig.send(2, headers, &call)).await;
        let calls = rig.seen("tools/call");
        assert_eq!(calls[0].contains_key("mcp-param-region"), goes_on, "{said}");
        assert!(
            !calls[0].contains_key("mcp-param-note"),
            "no argument is marked so"
        );
    }
}

/// Returns a server that answers each call under this id, in a body or in an event.
fn mistaken(in_event: bool, id: &'static str) -> Router<Seen> {
    let call = move |Shared(seen): Shared<Seen>, headers: Headers, body: String| async move {
        let request = noted(&seen, headers, &body);
        let body = [("content-type", "application/json")];
        if request["method"] == "server/discover" {
            let result = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0, "cacheScope": "private"});
            return (body, answer(&request, &result)).into_response();
        }
        let other = json!({"id": id});
        let said = answer(&other, &json!({"resultType": "complete", "content": []}));
        if in_event {
            (EVENTS, format!("data: {said}\n\n")).into_response()
        } else {
            (body, said).into_response()
        }
    };
    Router::new().route("/", post(call))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_answered_under_another_id_ends_with_an_error() {
    for (in_event, id) in [
        (false, "x"),
        (true, "x"),
        (false, "01"),
        (true, "1"),
        (false, "1"),
    ] {
        let rig = rig(mistaken(in_event, id), HeaderSource::Client).await;
        let params = json!({"name": "run", "_meta": {
            meta::PROTOCOL_VERSION: "2026-07-28", meta::CLIENT_CAPABILITIES: {}}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let told = heard(&mut rig.send(1, HeaderMap::new(), &call)).await;
        if id == "1" {
            // The same id in another JSON type.
            assert!(told["result"].is_object() && told["id"] == 1, "{told}");
        } else {
            assert_eq!(told["error"]["code"], -32603, "{told}");
        }
    }
}

/// Rules under which every call was approved a short while ago.
#[derive(Debug)]
struct AllApproved;

impl Decisions for AllApproved {
    fn admit(&self, _: Timestamp, _: &CallSummary, _: Option<&ToolFacts>) -> Admission {
        let team = TeamPlan {
            rule_digest: String::new(),
            text: "{}".into(),
            tool: None,
        };
        let people = PeopleAsked {
            rule: "careful".to_owned(),
            team,
            open_for: Duration::from_secs(60),
            hands_back: false,
        };
        let edit = Vec::new();
        Admission::Granted(Box::new(Approval { people, edit }), "{}".to_owned())
    }

    fn plan(
        &self,
        _: Timestamp,
        _: Option<(&CallSummary, Option<&ToolFacts>)>,
        _: QuestionParts<'_>,
    ) -> Planned {
        Planned::Caller { open_for: None }
    }

    fn not_asked(&self, _: Option<&CallSummary>, _: &RuleRefusal) {}

    fn approved(&self, _: Timestamp, _: &CallSummary, _: &Approval, _: &ApprovedCall<'_>) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_call_takes_no_header_along_in_which_more_could_be_said() {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let said = [
        ("tracestate", "force=1"),
        ("baggage", "force=true"),
        ("x-request-id", "force"),
        ("authorization", "Bearer t"),
    ];
    for (is_approved, traceparent, goes_on) in [
        (true, trace, &["traceparent", "authorization"][..]),
        (true, "force", &["authorization"]),
        (
            false,
            "force",
            &[
                "traceparent",
                "tracestate",
                "baggage",
                "x-request-id",
                "authorization",
            ],
        ),
    ] {
        let settings = RelaySettings {
            decisions: is_approved.then(|| Arc::new(AllApproved) as _),
            ..RelaySettings::default()
        };
        let rig = rig_with(rounds(), HeaderSource::Client, settings).await;
        let params = json!({"name": "run", "_meta": {
            meta::PROTOCOL_VERSION: "2026-07-28", meta::CLIENT_CAPABILITIES: {}}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let mut headers = HeaderMap::new();
        for (name, value) in said.into_iter().chain([("traceparent", traceparent)]) {
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        let told = heard(&mut rig.send(1, headers, &call)).await;
        assert!(told["result"].is_object(), "{told}");
        let calls = rig.seen("tools/call");
        for name in [
            "traceparent",
            "tracestate",
            "baggage",
            "x-request-id",
            "authorization",
        ] {
            let went = calls[0].contains_key(name);
            assert_eq!(went, goes_on.contains(&name), "{name} {is_approved}");
        }
    }
}

fn opening() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}})
}

fn asking_call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "ask"}})
}

impl Rig {
    /// Waits until the only question has this state, and returns it.
    async fn question(&self, so: impl Fn(&Row) -> bool) -> Row {
        let mut changes = self.record.changes();
        let found = async {
            loop {
                for which in [Filter::Open, Filter::Ended] {
                    let rows = self.record.list(which, Page::first(10)).await.unwrap();
                    if let Some(row) = rows.into_iter().find(|row| so(row)) {
                        return row;
                    }
                }
                changes.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(60), found)
            .await
            .unwrap()
    }

    async fn decline(&self) -> Row {
        let row = self.question(|row| row.lifecycle.is_open()).await;
        let settled = self
            .record
            .submit(&row.id, &Outcome::Decline, "page", Durability::WithDelivery)
            .await;
        assert_eq!(settled.unwrap(), Verdict::Won);
        row
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_the_server_refuses_is_kept_for_the_next_call() {
    let rig = rig(asking(&[401, 202]), HeaderSource::Client).await;
    heard(&mut rig.send(1, HeaderMap::new(), &opening())).await;
    let mut call = rig.send(2, HeaderMap::new(), &asking_call(2));
    let asked = rig.decline().await;
    let told = heard(&mut call).await;
    let message = told["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("401") && message.contains("kept"),
        "{told}"
    );
    let failed = |row: &Row| row.lifecycle.delivery() == Some(Delivery::Failed);
    let row = rig.question(failed).await;
    assert_eq!(row.id, asked.id);
    assert!(row.lifecycle.delivery_reason().unwrap().contains("401"));

    let told = heard(&mut rig.send(3, HeaderMap::new(), &asking_call(3))).await;
    assert_eq!(told["result"]["content"][0]["text"], "done", "{told}");
    let delivered = |row: &Row| row.lifecycle.delivery() == Some(Delivery::Delivered);
    let row = rig.question(delivered).await;
    assert_eq!(row.id, asked.id, "asked once");
    assert_eq!(rig.seen(REFUSES).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_the_server_refuses_twice_is_said_not_to_be_kept() {
    let rig = rig(asking(&[403, 403, 202]), HeaderSource::Client).await;
    heard(&mut rig.send(1, HeaderMap::new(), &opening())).await;
    let mut call = rig.send(2, HeaderMap::new(), &asking_call(2));
    let asked = rig.decline().await;
    let told = heard(&mut call).await["error"]["message"].to_string();
    assert!(told.contains("403") && told.contains("is kept"), "{told}");
    let failed = |row: &Row| row.lifecycle.delivery() == Some(Delivery::Failed);
    rig.question(failed).await;

    let told = heard(&mut rig.send(3, HeaderMap::new(), &asking_call(3))).await;
    let told = told["error"]["message"].to_string();
    assert!(told.contains("403") && told.contains("not kept"), "{told}");
    let lapsed = |row: &Row| row.lifecycle.delivery() == Some(Delivery::Lapsed);
    assert_eq!(rig.question(lapsed).await.id, asked.id);

    let mut call = rig.send(4, HeaderMap::new(), &asking_call(4));
    let again = rig.decline().await;
    assert_ne!(again.id, asked.id, "the person is asked again");
    let told = heard(&mut call).await;
    assert_eq!(told["result"]["content"][0]["text"], "done", "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_may_have_arrived_is_never_sent_again() {
    let rig = rig(asking(&[503, 202]), HeaderSource::Client).await;
    heard(&mut rig.send(1, HeaderMap::new(), &opening())).await;
    let mut call = rig.send(2, HeaderMap::new(), &asking_call(2));
    let asked = rig.decline().await;
    let told = heard(&mut call).await;
    let message = told["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("503") && message.contains("not sent again"),
        "{told}"
    );
    let in_doubt = |row: &Row| row.lifecycle.delivery() == Some(Delivery::InDoubt);
    let row = rig.question(in_doubt).await;
    assert_eq!(row.id, asked.id);
    assert!(row.lifecycle.delivery_reason().unwrap().contains("503"));

    let mut call = rig.send(3, HeaderMap::new(), &asking_call(3));
    let again = rig.decline().await;
    assert_ne!(again.id, asked.id, "the person is asked again");
    let told = heard(&mut call).await;
    assert_eq!(told["result"]["content"][0]["text"], "done", "{told}");
}

/// Returns the response in a stream, after the server's requests.
async fn response(told: &mut EventReceiver) -> Value {
    loop {
        let frame = heard(told).await;
        if frame.get("method").is_none() {
            return frame;
        }
    }
}

/// Returns a server with a session that asks in its call, accepts no answer, and sends this many requests of its own once
/// `floods` is notified.
fn flooding(pings: usize, floods: Arc<Notify>) -> Router<Seen> {
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {
        "message": "Name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}});
    let ping = |number: usize| {
        let ping = json!({"jsonrpc": "2.0", "id": format!("p{number}"), "method": "ping"});
        format!("data: {ping}\n\n")
    };
    let call = move |Shared(seen): Shared<Seen>, headers: Headers, body: String| async move {
        let request = noted(&seen, headers.clone(), &body);
        match request["method"].as_str() {
            Some("initialize") => {
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "flooding", "version": "1"}});
                let headers = [
                    ("mcp-session-id", "s"),
                    ("content-type", "application/json"),
                ];
                (headers, answer(&request, &result)).into_response()
            }
            Some("tools/call") => {
                let start = format!("{}data: {question}\n\n", ping(0));
                let flood = async move {
                    floods.notified().await;
                    Ok((1..=pings).map(ping).collect())
                };
                let events =
                    futures::stream::once(
                        async move { Ok::<String, std::convert::Infallible>(start) },
                    )
                    .chain(futures::stream::once(flood))
                    .chain(futures::stream::pending());
                (EVENTS, axum::body::Body::from_stream(events)).into_response()
            }
            Some(_) => StatusCode::ACCEPTED.into_response(),
            None => {
                note(&seen, REFUSES, headers);
                std::future::pending().await
            }
        }
    };
    Router::new().route("/", post(call))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_for_more_answers_than_it_accepts_is_left_and_the_persons_answer_is_kept()
 {
    let floods = Arc::new(Notify::new());
    let server = flooding(UNSENT + 2_000, floods.clone());
    let rig = rig(server, HeaderSource::Client).await;
    heard(&mut rig.send(1, HeaderMap::new(), &opening())).await;
    let mut call = rig.send(2, HeaderMap::new(), &asking_call(2));
    let ping = heard(&mut call).await;
    assert_eq!(ping["method"], "ping", "{ping}");
    let answer = json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}});
    rig.send(9, HeaderMap::new(), &answer);
    // The person's answer waits behind that one.
    let asked = rig.decline().await;
    let sent = |row: &Row| row.lifecycle.delivery() == Some(Delivery::Delivered);
    rig.question(sent).await;
    floods.notify_one();
    let told = response(&mut call).await;
    assert!(
        told["error"]["message"].as_str().unwrap().contains("kept"),
        "{told}"
    );
    let failed = |row: &Row| row.lifecycle.delivery() == Some(Delivery::Failed);
    let row = rig.question(failed).await;
    assert_eq!(row.id, asked.id);
    let why = row.lifecycle.delivery_reason().unwrap();
    assert!(why.contains("does not accept what it is sent"), "{why}");
    assert_eq!(rig.seen(REFUSES).len(), 1);
    // The session with the server has ended, and says why.
    let told = heard(&mut rig.send(3, HeaderMap::new(), &asking_call(3))).await;
    let told = told["error"]["message"].to_string();
    assert!(told.contains("ended"), "{told}");
    assert!(rig.session.is_over());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_server_that_accepts_nothing_is_bounded_in_bytes() {
    let rig = rig(flooding(0, Arc::default()), HeaderSource::Client).await;
    heard(&mut rig.send(1, HeaderMap::new(), &opening())).await;
    let mut call = rig.send(2, HeaderMap::new(), &asking_call(2));
    let ping = heard(&mut call).await;
    assert_eq!(ping["method"], "ping", "{ping}");
    let answer = json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}});
    rig.send(9, HeaderMap::new(), &answer);
    let large = json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": "x".repeat(1_000_000)}});
    for stream in 0..70 {
        rig.send(10 + stream, HeaderMap::new(), &large);
        if stream == 60 {
            assert!(rig.session.has_room());
        }
    }
    let told = response(&mut call).await["error"]["message"].to_string();
    assert!(told.contains("does not accept what it is sent"), "{told}");
}
