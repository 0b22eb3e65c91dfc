//! Attacks on the listeners of a running gateway, over plain sockets.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::gateway::{Gateway, NO_LIMITS, REVISION, api};
use crate::http::{PATIENCE, Reply, send, send_as_is};
use crate::raw::{DEMO_SERVER, initialize, text};

/// A gateway over HTTP in front of the demo server, with one question in its inbox.
struct Site {
    gateway: Gateway,
    at: String,
    question: String,
    _state: tempfile::TempDir,
}

fn site(more: &[&str]) -> Site {
    let state = tempfile::tempdir().unwrap();
    let mut all = vec!["--listen", "127.0.0.1:0", "--hold", "0"];
    all.extend(NO_LIMITS);
    all.extend(more);
    let gateway = Gateway::start(state.path(), &all, &DEMO_SERVER);
    let at = gateway.serving.clone().unwrap();
    let back = round(
        &at,
        "alice",
        &json!({}),
        json!({"name": "deploy", "arguments": {}}),
    );
    assert!(text(&back).starts_with("Not done yet"), "{back}");
    let question = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    Site {
        gateway,
        at,
        question,
        _state: state,
    }
}

/// Sends one call of the rounds era by this principal.
pub(crate) fn round(at: &str, who: &str, capabilities: &Value, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities});
    let frame = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let who = format!("Authorization: Bearer {who}");
    let head = [
        "POST /mcp HTTP/1.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: deploy",
        &who,
    ];
    let reply = send(at, &head, &frame.to_string()).expect("an answer");
    reply.response()
}

fn status(reply: Option<Reply>) -> u16 {
    reply.expect("an answer").status
}

/// Opens connections to the inbox, each with half of this request.
fn owing(inbox: &str, line: &str, more: &str) -> Vec<TcpStream> {
    let text = format!(
        "{line} HTTP/1.1\r\nHost: {inbox}\r\n{more}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    );
    // More connections than the inbox accepts from one machine.
    let open = |_| {
        let mut stream = TcpStream::connect(inbox).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    (0..400).map(open).collect()
}

#[test]
fn bodies_that_do_not_come_lock_nobody_out_of_the_inbox() {
    let site = site(&[]);
    let inbox = &site.gateway.inbox;
    let token = format!("Authorization: Bearer {}\r\n", site.gateway.token);
    for (line, more) in [
        ("POST /", ""),
        ("POST /api/questions/x/answer", token.as_str()),
    ] {
        let owing = owing(inbox, line, more);
        let page = send(inbox, &["GET / HTTP/1.1"], "");
        assert_eq!(status(page), 401, "{line}");
        assert_eq!(site.gateway.waiting().len(), 1, "{line}");
        drop(owing);
    }
}

#[test]
fn another_hosts_name_reaches_nothing() {
    let site = site(&[]);
    let (inbox, token) = (
        &site.gateway.inbox,
        format!("Authorization: Bearer {}", site.gateway.token),
    );
    let path = site
        .gateway
        .login
        .split_once(inbox.as_str())
        .unwrap()
        .1
        .to_owned();
    for name in [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "[::1].evil.example",
        "0.0.0.0",
        "",
    ] {
        let host = format!("Host: {name}");
        for line in [
            "GET /api/questions HTTP/1.1",
            "GET / HTTP/1.1",
            &format!("GET {path} HTTP/1.1"),
        ] {
            let reply = send_as_is(inbox, &[line, &host, &token], "").expect("an answer");
            assert_eq!(reply.status, 421, "{line} {host}");
            assert_eq!(reply.header("set-cookie"), None);
        }
        assert_eq!(
            status(send_as_is(&site.at, &["POST /mcp HTTP/1.1", &host], "{}")),
            403,
            "{host}"
        );
    }
}

#[test]
fn pages_elsewhere_can_post_nothing() {
    let site = site(&[]);
    let inbox = &site.gateway.inbox;
    let login = site.gateway.login.split_once(inbox.as_str()).unwrap().1;
    let signed_in = send(inbox, &[&format!("GET {login} HTTP/1.1")], "").unwrap();
    let cookie = signed_in.header("set-cookie").unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let pages = cookie.split("Path=").nth(1).unwrap();
    let pages = pages.split(';').next().unwrap();
    let decline = format!("POST {pages}/q/{}/decline HTTP/1.1", site.question);
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let own = format!("Origin: http://{inbox}");
    let kind = "Content-Type: application/x-www-form-urlencoded";
    let token = format!("Authorization: Bearer {}", site.gateway.token);
    let answer = format!("POST /api/questions/{}/answer HTTP/1.1", site.question);
    let act = json!({"action": "decline"}).to_string();
    for origin in [
        "http://evil.example",
        "null",
        "https://127.0.0.1",
        "http://127.0.0.1:1",
    ] {
        let origin = format!("Origin: {origin}");
        let page = send(inbox, &[&decline, &cookie, &origin, kind], "csrf=x");
        assert_eq!(status(page), 403, "{origin}");
        let script = send(
            inbox,
            &[&answer, &token, &origin, "Content-Type: application/json"],
            &act,
        );
        assert_eq!(status(script), 403, "{origin}");
        assert_eq!(
            status(send(&site.at, &["POST /mcp HTTP/1.1", &origin], "{}")),
            403,
            "{origin}"
        );
    }
    // From the inbox's own page, but without the token that is in the form; or without the cookie.
    assert_eq!(
        status(send(inbox, &[&decline, &cookie, &own, kind], "csrf=guess")),
        403
    );
    assert_eq!(
        status(send(inbox, &[&decline, &own, kind], "csrf=guess")),
        401
    );
    // A form of another page can send plain text without a preflight request.
    let plain = send(inbox, &[&answer, &token, "Content-Type: text/plain"], &act);
    assert_eq!(status(plain), 400);
    assert_eq!(site.gateway.waiting().len(), 1, "nothing was answered");
}

/// A page of another program on this machine, or a request without a preflight, opens no session.
#[test]
fn only_programs_and_pages_that_were_let_in_open_sessions() {
    let state = tempfile::tempdir().unwrap();
    let more = [
        "--listen",
        "127.0.0.1:0",
        "--allow-origin",
        "http://localhost:6274",
    ];
    let gateway = Gateway::start(state.path(), &more, &DEMO_SERVER);
    let at = gateway.serving.clone().unwrap();
    let open = initialize(REVISION, &json!({})).to_string();
    let json = "Content-Type: application/json";
    let accept = "Accept: application/json, text/event-stream";
    for (expected, more) in [
        (403, &[json, "Origin: http://127.0.0.1:1"][..]),
        (403, &[json, "Origin: http://localhost:6275"]),
        (403, &[json, "Origin: null"]),
        (415, &["Content-Type: text/plain"]),
        (415, &[]),
    ] {
        let head = [&["POST /mcp HTTP/1.1", accept], more].concat();
        assert_eq!(status(send(&at, &head, &open)), expected, "{more:?}");
    }
    let metrics = send(&at, &["GET /metrics HTTP/1.1"], "").unwrap();
    assert!(
        metrics.body.contains("mcp_elicit_sessions 0"),
        "{metrics:?}"
    );
    let own = format!("Origin: http://{at}");
    for origin in ["Origin: http://localhost:6274", &own] {
        let head = ["POST /mcp HTTP/1.1", accept, json, origin];
        assert_eq!(status(send(&at, &head, &open)), 200, "{origin}");
    }
}

#[test]
fn without_the_token_nothing_is_said() {
    let site = site(&[]);
    let (inbox, token) = (&site.gateway.inbox, &site.gateway.token);
    let short = &token[..token.len() - 1];
    let long = format!("{token}0");
    for wrong in [
        "",
        "x",
        short,
        &long,
        &token.to_uppercase().replace(char::is_numeric, "0"),
    ] {
        let reply = api(inbox, wrong, "GET", "/api/questions", "").unwrap();
        assert_eq!(reply.status, 401, "{wrong}");
        assert!(!reply.body.contains("environment"), "{}", reply.body);
        let path = format!("/api/questions/{}/answer", site.question);
        let act = json!({"action": "decline"}).to_string();
        assert_eq!(status(api(inbox, wrong, "POST", &path, &act)), 401);
    }
    for line in [
        "GET /api/questions HTTP/1.1",
        &format!("GET /api/questions?token={token} HTTP/1.1"),
        "GET / HTTP/1.1",
        &format!("GET /q/{} HTTP/1.1", site.question),
        "GET /events HTTP/1.1",
    ] {
        assert_eq!(status(send(inbox, &[line], "")), 401, "{line}");
    }
    assert_eq!(site.gateway.waiting().len(), 1);
}

#[test]
fn guessed_ids_look_all_the_same() {
    let site = site(&[]);
    let near = format!(
        "{}{}",
        &site.question[..31],
        if site.question.ends_with('0') {
            '1'
        } else {
            '0'
        }
    );
    let mut seen = Vec::new();
    for id in [
        near.as_str(),
        "0",
        "%2e%2e",
        "..%2f..%2fseal.key",
        &"a".repeat(5_000),
        "%00",
        "'%20OR%201=1--",
    ] {
        let reply = site
            .gateway
            .api("GET", &format!("/api/questions/{id}"), "")
            .unwrap();
        assert_eq!(reply.status, 404, "{id}");
        seen.push(reply.body);
        assert_eq!(
            site.gateway.answer(id, &json!({"action": "decline"})),
            404,
            "{id}"
        );
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(site.gateway.waiting().len(), 1);
}

#[test]
fn another_principals_question_is_out_of_reach() {
    let site = site(&[]);
    let at = &site.at;
    let can = json!({"elicitation": {"form": {}}});
    let asked = round(at, "bob", &can, json!({"name": "deploy", "arguments": {}}));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let key = asked["result"]["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    let retry = |value: &str| {
        let mut responses = json!({});
        responses[key.as_str()] =
            json!({"action": "accept", "content": {"environment": "staging", "note": value}});
        json!({"name": "deploy", "arguments": {}, "requestState": asked["result"]["requestState"], "inputResponses": responses})
    };
    // Eve has bob's state, whole.
    let stolen = round(at, "eve", &can, retry("from eve"));
    assert_ne!(stolen["result"]["resultType"], "complete", "{stolen}");
    assert!(!text(&stolen).contains("Deployed"), "{stolen}");
    let done = round(at, "bob", &can, retry("from bob"));
    assert!(text(&done).contains("from bob"), "{done}");

    // Sessions of the pushed era: the principal's name alone opens nothing.
    let open = initialize(REVISION, &json!({})).to_string();
    let kind = "Content-Type: application/json";
    let accept = "Accept: application/json, text/event-stream";
    let opened = send(
        at,
        &[
            "POST /mcp HTTP/1.1",
            kind,
            accept,
            "Authorization: Bearer bob",
        ],
        &open,
    )
    .unwrap();
    let session = format!(
        "Mcp-Session-Id: {}",
        opened.header("mcp-session-id").unwrap()
    );
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).to_string();
    for (who, expected) in [("bob", 200), ("eve", 404)] {
        let who = format!("Authorization: Bearer {who}");
        let reply = send(
            at,
            &["POST /mcp HTTP/1.1", kind, accept, &session, &who],
            &list,
        );
        assert_eq!(status(reply), expected, "{who}");
    }
    let other = [
        "GET /mcp HTTP/1.1",
        "Accept: text/event-stream",
        &session,
        "Authorization: Bearer eve",
    ];
    assert_eq!(status(send(at, &other, "")), 404);
    let end = [
        "DELETE /mcp HTTP/1.1",
        &session,
        "Authorization: Bearer eve",
    ];
    assert_eq!(status(send(at, &end, "")), 404);
}

#[test]
fn slow_clients_hold_up_nobody() {
    let site = site(&[]);
    let mut slow: Vec<TcpStream> = (0..100)
        .map(|count| {
            let mut stream = TcpStream::connect(&site.gateway.inbox).unwrap();
            let begun: &[u8] = if count % 2 == 0 {
                b"GET / HTT"
            } else {
                b"POST /api/questions/x/answer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"
            };
            stream.write_all(begun).unwrap();
            stream
        })
        .collect();
    assert_eq!(
        site.gateway.waiting().len(),
        1,
        "the others are served meanwhile"
    );
    // A connection that never sends a whole request is closed in the end.
    let first = &mut slow[0];
    first.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut rest = Vec::new();
    first
        .read_to_end(&mut rest)
        .expect("the gateway hangs up before our patience ends");
}

#[test]
fn huge_messages_are_refused_and_nothing_breaks() {
    let site = site(&["--max-frame", "100000"]);
    let big = "x".repeat(200_000);
    let frame =
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": big}}).to_string();
    let post = ["POST /mcp HTTP/1.1", "Content-Type: application/json"];
    assert_eq!(status(send(&site.at, &post, &frame)), 413);
    let header = format!("X-Big: {big}");
    let head = send(&site.gateway.inbox, &["GET / HTTP/1.1", &header], "");
    assert!(head.is_none_or(|reply| reply.status == 431));
    let huge = json!({"action": "accept", "content": {"note": "x".repeat(3_000_000)}});
    assert_eq!(site.gateway.answer(&site.question, &huge), 413);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let path = format!("/api/questions/{}/answer", site.question);
    assert_eq!(status(site.gateway.api("POST", &path, &deep)), 400);
    let content = format!(
        r#"{{"action":"accept","content":{{"environment":{}}}}}"#,
        "[".repeat(90_000)
    );
    assert_eq!(status(site.gateway.api("POST", &path, &content)), 400);
    let deep_frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{deep}}}"#);
    assert!(send(&site.at, &post, &deep_frame[..90_000]).is_some());
    let good = json!({"action": "accept", "content": {"environment": "staging"}});
    assert_eq!(
        site.gateway.answer(&site.question, &good),
        200,
        "and the right answer still counts"
    );
}

/// Of a doubled member, one program reads the first value and another the last.
#[test]
fn an_answer_with_a_member_twice_is_refused() {
    let site = site(&[]);
    let path = format!("/api/questions/{}/answer", site.question);
    for doubled in [
        r#"{"action":"accept","content":{"environment":"staging","environment":"production"}}"#,
        r#"{"action":"accept","content":{"environment":"staging","\u0065nvironment":"production"}}"#,
        r#"{"action":"decline","action":"accept","content":{"environment":"staging"}}"#,
        r#"{"action":"accept","content":{"environment":"staging","note":{"a":1,"a":2}}}"#,
    ] {
        let refused = site.gateway.api("POST", &path, doubled).unwrap();
        assert_eq!(refused.status, 400, "{doubled}");
        assert_eq!(
            refused.json()["error"]["code"],
            "duplicate-member",
            "{refused:?}"
        );
    }
    let good = json!({"action": "accept", "content": {"environment": "staging"}});
    assert_eq!(site.gateway.answer(&site.question, &good), 200);
}

#[test]
fn of_many_answers_at_once_one_counts() {
    let site = site(&[]);
    let (at, token) = (&site.gateway.inbox, &site.gateway.token);
    let path = format!("/api/questions/{}/answer", site.question);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let one = |number: usize| {
            let path = &path;
            scope.spawn(move || {
                let environment = ["staging", "production"][number % 2];
                let body = json!({"action": "accept", "content": {"environment": environment}});
                api(at, token, "POST", path, &body.to_string())
                    .unwrap()
                    .status
            })
        };
        let all: Vec<_> = (0..30).map(one).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let counted = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(counted, 1, "{statuses:?}");
    assert!(
        statuses.iter().all(|status| [200, 409].contains(status)),
        "{statuses:?}"
    );
}
