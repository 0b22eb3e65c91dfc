//! `call` with servers that break the protocol somewhere: what can be read is shown, with what is wrong, and the call
//! goes on.

#![cfg(unix)]

mod sandbox;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use futures::StreamExt as _;
use serde_json::{Value, json};

/// A server in the shell: `$1` is written before the answer to `initialize`, whose result is `$2`; `$3` are the members of
/// the answer to `tools/call` and `tools/list`. With `$4`, it asks this question first, and its result holds the answer.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\),.*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '%b' "$1"; printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$2" ;;
    *'"method":"tools/'*)
      if [ -n "$4" ]; then
        printf '%s\n' "$4"; IFS= read -r answer
        printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":%s}}\n' "$id" "$answer"
      else
        printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$3"
      fi ;;
    *'"method":"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done"#;

/// Makes the body of an HTTP response of a message.
type Wrap = fn(&Value) -> Vec<u8>;

const DONE: &str = r#""result":{"content":[{"type":"text","text":"done"}]}"#;

fn opened() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "raw", "version": "1"}})
}

fn run(options: &[&str], words: [&str; 4]) -> sandbox::Run {
    let server = ["--", "/bin/sh", "-c", SERVER, "sh"];
    let args = [&["call"][..], options, &server, &words].concat();
    sandbox::run(&args, b"")
}

fn answering(members: &str, options: &[&str]) -> sandbox::Run {
    run(options, ["", &opened().to_string(), members, ""])
}

fn asking(id: &str, params: &Value, options: &[&str]) -> sandbox::Run {
    let question =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{params}}}"#);
    run(options, ["", &opened().to_string(), "", &question])
}

#[test]
fn lines_that_are_no_messages_are_passed_over_and_the_first_is_quoted_once() {
    for (printed, quoted) in [
        (
            r#"{"severity":"INFO","message":"listening"}\n"#,
            "listening",
        ),
        (
            r#"{"id":"a1","method":"GET","path":"/x"}\n{"n":2}\n"#,
            "(the first of 2)",
        ),
        (r"true\n", ": true"),
        (r#"[{"level":"debug"}]\n"#, "[{\"level\":\"debug\"}]"),
        (r#"{"jsonrpc":"2.0","id":0,"resul\n"#, "resul"),
        (r#"{"jsonrpc":"2.0","id":0,"result":{"proto\n"#, "proto"),
        (r"\0357\0273\0277Server ready\n", "Server ready"),
        (r"{caf\0351}\n", "caf"),
        (r"\0033[31m{\n", "[31m{"),
    ] {
        let run = run(&["t"], [printed, &opened().to_string(), DONE, ""]);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(0), "done\n"),
            "{printed}: {}",
            run.stderr
        );
        let warnings: Vec<_> = run
            .stderr
            .lines()
            .filter(|line| line.contains("no MCP message"))
            .collect();
        assert!(
            matches!(warnings[..], [line] if line.contains(quoted)),
            "{printed}: {warnings:?}"
        );
        assert!(!run.stderr.contains('\u{1b}'), "{printed}");
    }
    // A byte order mark before a message is no line of its own.
    let run = run(
        &["t"],
        [r"\0357\0273\0277", &opened().to_string(), DONE, ""],
    );
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(0), "done\n"),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
}

#[test]
fn a_result_that_breaks_the_protocol_is_shown_with_what_is_wrong() {
    for (result, code, wrong) in [
        (
            r#"{"content":[{"type":"text","text":5}]}"#,
            0,
            "/content/0/text: 5 is not a string",
        ),
        (
            r#"{"content":[{"type":"video","uri":"a"}],"isError":1}"#,
            1,
            r#"/content/0/type: "video""#,
        ),
        (
            r#"{"content":{"0":"a"}}"#,
            0,
            r#"/content: {"0":"a"} is not a list"#,
        ),
        (
            r#"{"content":[{"type":"resource","resource":{"uri":"a:b"}}]}"#,
            0,
            "/content/0/resource",
        ),
        (r#"{"content":[],"resultType":"partial"}"#, 0, "/resultType"),
        (r#"{"content":[],"content":7}"#, 0, "/content: 7"),
        ("17", 0, "the result: 17 is not an object"),
        (
            r#"{"content":[{"type":"image","data":"","mimeType":"image/png","annotations":{"audience":"user"}}]}"#,
            0,
            "/content/0/annotations/audience",
        ),
    ] {
        let run = answering(&format!("\"result\":{result}"), &["t"]);
        assert_eq!(run.code, Some(code), "{result}: {}", run.stderr);
        assert_eq!(run.stdout.trim_end(), result);
        assert!(run.stderr.contains(wrong), "{result}: {}", run.stderr);
        let run = answering(&format!("\"result\":{result}"), &["t", "--json"]);
        assert_eq!(run.code, Some(code));
        assert!(
            run.stdout.contains(&format!("\"result\":{result}}}")),
            "{}",
            run.stdout
        );
        assert!(
            run.stdout.contains(r#"{"event":"warning","#),
            "{}",
            run.stdout
        );
    }
    for (members, code, said) in [
        (r#""error":"broken""#, 1, "error -32603: broken"),
        (
            r#""error":{"code":"E1","message":"m"}"#,
            1,
            "error -32603: m",
        ),
        (
            r#""result":{"content":[{"type":"text","text":"done"}]},"error":null"#,
            0,
            "connected",
        ),
        (
            r#""result":{"content":[{"type":"text","text":"done"}],"structuredContent":{"x":NaN}}"#,
            0,
            "NaN",
        ),
    ] {
        let run = answering(members, &["t"]);
        assert_eq!(run.code, Some(code), "{members}: {}", run.stderr);
        assert!(run.stderr.contains(said), "{members}: {}", run.stderr);
    }
}

#[test]
fn a_request_for_input_that_cannot_be_read_is_no_result() {
    let run = answering(
        r#""result":{"resultType":"input_required","inputRequests":[]}"#,
        &["t"],
    );
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""));
    assert!(
        run.stderr.contains("/inputRequests: [] is not an object"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_handshake_that_breaks_the_protocol_is_survived_and_told() {
    for (member, value, wrong) in [
        (
            "serverInfo",
            json!({"version": "1"}),
            "/serverInfo/name: a string is missing",
        ),
        (
            "serverInfo",
            json!("raw 1.0"),
            "/serverInfo: \"raw 1.0\" is not an object",
        ),
        (
            "serverInfo",
            json!({"name": "raw", "version": [1, 0]}),
            "/serverInfo/version: [1,0]",
        ),
        (
            "protocolVersion",
            json!(20_251_125),
            "/protocolVersion: 20251125 is not a string",
        ),
        ("capabilities", json!(null), "/capabilities: null"),
        (
            "capabilities",
            json!({"tools": [], "experimental": {"x": 1}}),
            "/capabilities/experimental/x: 1",
        ),
        ("instructions", json!({"text": "hi"}), "/instructions"),
    ] {
        let mut result = opened();
        result[member] = value.clone();
        let run = run(&["t"], ["", &result.to_string(), DONE, ""]);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(0), "done\n"),
            "{member} {value}: {}",
            run.stderr
        );
        assert!(
            run.stderr.contains(wrong),
            "{member} {value}: {}",
            run.stderr
        );
    }
}

#[test]
fn a_list_is_shown_as_far_as_it_can_be_read_and_its_end_is_told() {
    for (list, code, shown, told) in [
        (
            r#"{"tools":[{"name":"one","inputSchema":"none"},7,{"name":"two"}]}"#,
            0,
            vec!["one", "two"],
            "/tools/1: 7 is not an object",
        ),
        (
            r#"{"tools":"one, two"}"#,
            0,
            vec![],
            "/tools: \"one, two\" is not a list",
        ),
        (
            r#"{"tools":[{"name":"one"}],"nextCursor":""}"#,
            0,
            vec!["one"],
            "/nextCursor: \"\" is no cursor",
        ),
        (
            r#"{"tools":[{"name":"one"}],"nextCursor":{"page":2}}"#,
            3,
            vec!["one"],
            "/nextCursor",
        ),
        (
            r#"{"tools":[{"name":"one"}],"nextCursor":7}"#,
            3,
            vec!["one"],
            "the list of tools/list is cut after its page 1",
        ),
        (
            r#"{"tools":[{"name":"one"}],"nextCursor":null}"#,
            0,
            vec!["one"],
            "",
        ),
        (
            r#"{"tools":[{"name":"one"}],"nextCursor":"again"}"#,
            3,
            vec!["one", "one"],
            "names a cursor again",
        ),
    ] {
        let run = answering(&format!("\"result\":{list}"), &["--list"]);
        assert_eq!(run.code, Some(code), "{list}: {}", run.stderr);
        let names: Vec<_> = run.stdout.lines().skip(1).map(str::trim).collect();
        assert_eq!(names, shown, "{list}");
        assert!(run.stderr.contains(told), "{list}: {}", run.stderr);
    }
}

#[test]
fn a_result_that_asks_for_input_without_a_question_is_named_by_its_pointer() {
    for result in [
        r#"{"resultType":"input_required"}"#,
        r#"{"resultType":"input_required","_meta":{}}"#,
        r#"{"resultType":"task"}"#,
    ] {
        let run = answering(&format!("\"result\":{result}"), &["t"]);
        assert_eq!(run.code, Some(3), "{}", run.stderr);
        assert!(
            run.stderr.contains("/resultType: \""),
            "{result}: {}",
            run.stderr
        );
    }
}

#[test]
fn a_question_with_an_id_that_is_no_id_is_answered_under_it() {
    let params = json!({"message": "Go?", "requestedSchema": {"type": "object", "properties": {}}});
    for id in ["null", "18446744073709551616", "-2.5", "[7]"] {
        let run = asking(id, &params, &["t", "--accept-defaults"]);
        assert_eq!(run.code, Some(0), "{id}: {}", run.stderr);
        assert!(
            run.stdout.contains(&format!(r#""id":{id}"#)),
            "{id}: {}",
            run.stdout
        );
    }
}

#[test]
fn no_answer_of_a_person_is_dropped() {
    let flag = json!({"type": "boolean"});
    let params = json!({"message": "Which?", "requestedSchema": {"type": "object", "properties": {
        "side.left": flag, "side.right": flag, "User Name": {"type": "string"}, "a=b": {"type": "string"}, "": {"type": "string"},
    }}});
    for (options, code, sent) in [
        (
            &["--answer", "side=right"][..],
            0,
            r#""content":{"side.left":false,"side.right":true}"#,
        ),
        (
            &["--answer", "side="],
            0,
            r#""content":{"side.left":false,"side.right":false}"#,
        ),
        (
            &["--answer", "\"a=b\"=x", "--answer", "\"\"=y"],
            0,
            r#""content":{"a=b":"x","":"y"}"#,
        ),
        // Refused before anything is sent.
        (&["--answer", "side=up"], 2, ""),
        (
            &["--answer", "side.left=yes", "--answer", "user_name=x"],
            2,
            "",
        ),
        // Only the end of the call shows that nothing asks for it.
        (
            &["--answer", "side.left=yes", "--answer", "colour=blue"],
            2,
            r#""content":{"side.left":true}"#,
        ),
    ] {
        let run = asking("1", &params, &[&["t"], options].concat());
        assert_eq!(run.code, Some(code), "{options:?}: {}", run.stderr);
        assert!(run.stdout.contains(sent), "{options:?}: {}", run.stdout);
        assert_eq!(
            run.stdout.contains("content\":{\""),
            !sent.is_empty(),
            "{options:?}: {}",
            run.stdout
        );
    }
    let told = asking(
        "1",
        &params,
        &["t", "--answer", "side.left=yes", "--answer", "colour=blue"],
    );
    assert!(
        told.stderr.contains("no form asked for \"colour\""),
        "{}",
        told.stderr
    );
    for (content, code, sent) in [
        (
            json!({"side": ["left"]}),
            0,
            r#""content":{"side.left":true,"side.right":false}"#,
        ),
        (json!({"side": ["left"], "more": 1}), 2, ""),
        (json!({"side": {"left": true}}), 2, ""),
        (json!({"side": ["Left", "middle"]}), 2, ""),
    ] {
        // With the byte order mark that some editors write.
        let answers = format!(
            "\u{feff}{}",
            json!([{"action": "accept", "content": content}])
        );
        let files = sandbox::Files::new(&[("answers.json", answers.as_bytes())]);
        let run = asking(
            "1",
            &params,
            &["t", "--answers", &files.path("answers.json")],
        );
        assert_eq!(run.code, Some(code), "{content}: {}", run.stderr);
        assert!(run.stdout.contains(sent), "{content}: {}", run.stdout);
    }
}

#[test]
fn the_message_of_a_panic_is_shown_with_the_error_and_with_the_end() {
    let panic = r#"printf '%s\n' start "thread 'main' (7) panicked at src/main.rs:9:5:" 'the pool is empty' >&2
        for frame in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22; do echo "  $frame: a_frame" >&2; done"#;
    let end = r#"printf '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the handler panicked"}}\n'"#;
    for (last, code) in [(end, 1), ("exit 101", 3)] {
        let result = opened();
        let script = format!(
            "read -r a; printf '{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{result}}}\\n'; read -r b; read -r c; {panic}; {last}"
        );
        let run = sandbox::run(
            &[
                "call",
                "t",
                "--protocol",
                "2025-11-25",
                "--",
                "/bin/sh",
                "-c",
                &script,
            ],
            b"",
        );
        assert_eq!(run.code, Some(code), "{}", run.stderr);
        for line in ["panicked at src/main.rs:9:5:", "the pool is empty"] {
            assert_eq!(
                run.stderr.matches(line).count(),
                1,
                "{line}: {}",
                run.stderr
            );
        }
    }
}

/// Returns the response of a server over HTTP, which writes each message with `wrap` and names its type `kind`.
fn respond(body: &str, kind: &'static str, wrap: fn(&Value) -> Vec<u8>) -> Response {
    let request: Value = serde_json::from_str(body).expect("a message");
    let result = match request["method"].as_str() {
        Some("initialize") => opened(),
        Some("tools/call") => json!({"content": [{"type": "text", "text": "done"}]}),
        _ if request["id"].is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let reply = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    ([(CONTENT_TYPE, kind)], wrap(&reply)).into_response()
}

#[test]
fn responses_over_http_are_read_however_they_are_wrapped() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let event = |message: &Value| format!("data: {message}\r\n\r\n").into_bytes();
    let noisy = |message: &Value| {
        format!("\u{feff}data: ready\n\ndata: {{\"level\":30}}\n\ndata: {{\"jsonrpc\n\ndata: {message}\n\n").into_bytes()
    };
    let marked = |message: &Value| format!("\u{feff}\n{message:#}").into_bytes();
    let served: [(&'static str, Wrap); 6] = [
        ("text/plain", |message| message.to_string().into_bytes()),
        ("TEXT/EVENT-STREAM; Charset=UTF-8", event),
        ("Text/Event-Stream", noisy),
        ("APPLICATION/JSON; charset=UTF-8", marked),
        (" application/Json", |message| {
            message.to_string().into_bytes()
        }),
        ("application/json", |message| {
            json!([message]).to_string().into_bytes()
        }),
    ];
    for (kind, wrap) in served {
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .expect("a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let app = axum::Router::new().route(
            "/mcp",
            post(move |body: String| async move { respond(&body, kind, wrap) }),
        );
        runtime.spawn(async move { axum::serve(listener, app).await });
        let run = sandbox::run(&["call", "t", "--url", &url], b"");
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(0), "done\n"),
            "{kind}: {}",
            run.stderr
        );
    }
}

/// Returns the response of a server over HTTP that repeats the credentials `said` where the case says so.
fn repeat(case: &str, said: &str, body: &str) -> Response {
    let request: Value = serde_json::from_str(body).expect("a message");
    let (id, method) = (&request["id"], request["method"].as_str());
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": said, "data": {"said": said}}});
    let sent = |value: &Value| ([(CONTENT_TYPE, "application/json")], value.to_string());
    let challenge = |status, words: String| {
        (status, [("www-authenticate", words)], error.to_string()).into_response()
    };
    match (method, case) {
        (Some("initialize"), "a refused connection") => return sent(&error).into_response(),
        (Some("initialize"), _) => {
            let mut result = opened();
            if case == "a revision" {
                result["protocolVersion"] = said.into();
            }
            return sent(&json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response();
        }
        (Some("tools/call"), _) => {}
        _ if id.is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => return StatusCode::NOT_FOUND.into_response(),
    }
    let token = said.split(' ').nth(1).unwrap_or_default();
    match case {
        "an error" => sent(&error).into_response(),
        "a challenge" => challenge(
            StatusCode::UNAUTHORIZED,
            format!("Bearer error_description=\"{said}\""),
        ),
        "a scope" => challenge(
            StatusCode::FORBIDDEN,
            format!("Bearer error=\"insufficient_scope\", scope=\"{token}\""),
        ),
        "a redirect" => (
            StatusCode::FOUND,
            [("location", format!("http://{token}.example/"))],
        )
            .into_response(),
        "a media type" => ([(CONTENT_TYPE, token.to_owned())], "{}").into_response(),
        "a member" => {
            let result = json!({"content": said, "isError": said});
            sent(&json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
        }
        _ => {
            let done = json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}});
            let other = match case {
                "an id" => json!({"jsonrpc": "2.0", "id": said, "result": {}}),
                _ => json!({"line": said}),
            };
            let events = format!("data: {other}\n\ndata: {done}\n\n");
            ([(CONTENT_TYPE, "text/event-stream")], events).into_response()
        }
    }
}

#[test]
fn credentials_that_a_server_repeats_are_in_no_error_and_no_warning() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for case in [
        "an error",
        "a refused connection",
        "a revision",
        "a challenge",
        "a scope",
        "a redirect",
        "a media type",
        "a member",
        "an id",
        "a line",
    ] {
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .expect("a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let app = axum::Router::new().route(
            "/mcp",
            post(move |headers: HeaderMap, body: String| async move {
                let value = |name| headers[name].to_str().expect("text").to_owned();
                let said = format!("{} {}", value("authorization"), value("x-key"));
                repeat(case, &said, &body)
            }),
        );
        runtime.spawn(async move { axum::serve(listener, app).await });
        for json in [false, true] {
            let mut call = std::process::Command::new(env!("CARGO_BIN_EXE_mcp-elicit"));
            call.args(["call", "t", "--url", &url, "--token-env", "TOKEN"])
                .args(["--header-env", "X-Key=KEY"])
                .args(json.then_some("--json"))
                .env_clear()
                .env("TOKEN", "mek-token-0123456789-abcdef")
                .env("KEY", "hdr-hunter2-0123456789")
                .stdin(std::process::Stdio::null());
            let run = call.output().expect("the binary starts");
            let (stdout, stderr) = (
                String::from_utf8_lossy(&run.stdout).to_lowercase(),
                String::from_utf8_lossy(&run.stderr).to_lowercase(),
            );
            assert!(!stderr.is_empty() || json, "{case} says something");
            // A result is the server's, and goes to stdout as it is.
            let shown = if case == "a member" {
                &stderr
            } else {
                &format!("{stdout}{stderr}")
            };
            for secret in ["mek-toke", "hdr-hunt"] {
                assert!(!shown.contains(secret), "{case}: {shown}");
            }
        }
    }
}

/// Answers as a server that pings without end in its call, and takes no answer.
async fn ping_without_end(body: String) -> Response {
    let request: Value = serde_json::from_str(&body).expect("a message");
    match request["method"].as_str() {
        Some("tools/call") => {
            let pings = (0..30_000).map(|number| {
                let ping = json!({"jsonrpc": "2.0", "id": format!("p{number}"), "method": "ping"});
                Ok::<_, std::convert::Infallible>(format!("data: {ping}\n\n"))
            });
            let events = futures::stream::iter(pings).chain(futures::stream::pending());
            let body = axum::body::Body::from_stream(events);
            ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
        }
        None => std::future::pending().await,
        Some(_) => respond(&body, "application/json", |message| {
            message.to_string().into_bytes()
        }),
    }
}

#[test]
fn a_server_over_http_that_asks_faster_than_it_takes_answers_is_left() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
        .expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let app = axum::Router::new().route("/mcp", post(ping_without_end));
    runtime.spawn(async move { axum::serve(listener, app).await });
    let run = sandbox::run(&["call", "t", "--url", &url], b"");
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    let why = "the server does not read what it is sent: more than 16777216 bytes wait for it";
    assert!(run.stderr.contains(why), "{}", run.stderr);
}

/// Answers as a server that closes the stream of a call, and then does not know its session.
async fn lose_session(body: String) -> Response {
    let request: Value = serde_json::from_str(&body).expect("a message");
    if request["method"] == "tools/call" {
        let event = "id: 1-1\nretry: 10\ndata: \n\n";
        return ([(CONTENT_TYPE, "text/event-stream")], event).into_response();
    }
    let mut response = respond(&body, "application/json", |message| {
        message.to_string().into_bytes()
    });
    if request["method"] == "initialize" {
        let session = HeaderValue::from_static("s-1");
        response.headers_mut().insert("mcp-session-id", session);
    }
    response
}

#[test]
fn a_call_ends_if_the_server_does_not_know_its_session_any_more() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
        .expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let resumed = |headers: HeaderMap| async move {
        if headers.contains_key("last-event-id") {
            StatusCode::NOT_FOUND
        } else {
            StatusCode::METHOD_NOT_ALLOWED
        }
    };
    let app = axum::Router::new().route("/mcp", post(lose_session).get(resumed));
    runtime.spawn(async move { axum::serve(listener, app).await });
    let run = sandbox::run(&["call", "t", "--url", &url, "--timeout", "50s"], b"");
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    assert!(run.stderr.contains("make the call again"), "{}", run.stderr);
}
