//! The servers of a gateway and of `call`: a revision that the server lacks, servers that cannot be used, redirects
//! within one origin, and the eras in which a server was seen to ask.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod raw;
#[expect(dead_code, reason = "other tests use the rest")]
mod sandbox;

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use raw::{DEMO_SERVER, PROGRAM, Raw, gateway};
use serde_json::{Value, json};

/// A server in the shell that speaks the revision `$1` alone. It refuses the opening of the other era with `$2`, a code of
/// JSON-RPC, or ignores it if that is empty, and ignores everything else that it does not know.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  refuse() { [ -z "$2" ] || printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"no such method"}}\n' "$id" "$2"; }
  case "$line" in
    *'"method":"initialize"'*)
      if [ "$1" = 2026-07-28 ]; then refuse "$@"; else
        printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"%s","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}\n' "$id" "$1"
      fi ;;
    *'"method":"server/discover"'*)
      if [ "$1" = 2026-07-28 ]; then
        printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}\n' "$id"
      else refuse "$@"; fi ;;
  esac
done"#;

fn server<'s>(revision: &'s str, code: &'s str) -> [&'s str; 7] {
    ["--", "/bin/sh", "-c", SERVER, "sh", revision, code]
}

/// Runs `gateway --check` with these words.
fn check(words: &[&str]) -> sandbox::Run {
    let state = tempfile::tempdir().unwrap();
    let state = state.path().to_str().unwrap();
    let run = sandbox::run(
        &[
            &[
                "gateway",
                "--check",
                "--inbox",
                "127.0.0.1:0",
                "--state",
                state,
            ],
            words,
        ]
        .concat(),
        b"",
    );
    assert!(
        !run.stderr.contains("ERROR"),
        "raw log lines: {}",
        run.stderr
    );
    assert!(!run.stderr.contains("rmcp"), "{}", run.stderr);
    run
}

#[test]
fn a_revision_that_the_server_lacks_is_named_with_its_option_and_nothing_is_left_unanswered() {
    for (told, spoken) in [
        ("2026-07-28", "2025-11-25"),
        ("2025-11-25", "2026-07-28"),
        ("2025-06-18", "2025-11-25"),
    ] {
        let state = tempfile::tempdir().unwrap();
        let options = ["--server-revision", told];
        let mut raw = Raw::start(gateway(state.path(), &options, &server(spoken, "-32601")));
        let refused = raw.initialize("2025-11-25", &json!({}));
        raw.call(2, "t", &json!({}));
        let later = raw.result(2);
        for said in [&refused, &later] {
            let why = said["error"]["message"].as_str().unwrap_or_default();
            for words in [told, "--server-revision", "`revision`", "--check"] {
                assert!(why.contains(words), "{words}: {said}");
            }
        }
        // A check says so before any client does.
        let run = check(&[&options[..], &server(spoken, "-32601")].concat());
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        for words in [told, spoken, "--server-revision", "next:"] {
            assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
        }
        assert!(!run.stderr.contains("is valid"), "{}", run.stderr);
        let right = check(
            &[
                &["--server-revision", spoken],
                &server(spoken, "-32601")[..],
            ]
            .concat(),
        );
        assert_eq!(right.code, Some(0), "{}", right.stderr);
    }
}

#[test]
fn a_check_finds_the_revision_of_one_server_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let words = server("2025-11-25", "-32601");
    let command = &words[1..];
    let text = format!(
        "listen = \"127.0.0.1:0\"\nstate = {:?}\n[servers.good]\ncommand = {command:?}\n[servers.bad]\ncommand = {command:?}\nrevision = \"2026-07-28\"\n\
         [servers.gone]\ncommand = [\"/does/not/exist\"]\n",
        folder.path().join("state")
    );
    std::fs::write(&file, text).unwrap();
    let run = sandbox::run(
        &["gateway", "--check", "--config", file.to_str().unwrap()],
        b"",
    );
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    for words in [
        "good: speaks 2025-11-25",
        "bad: it does not speak 2026-07-28",
        "gone: cannot start",
        "2 of 3 servers",
        "`revision`",
    ] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
}

#[test]
fn call_names_its_option_for_a_revision_that_the_server_lacks() {
    for (told, spoken, code) in [
        ("2026-07-28", "2025-11-25", "-32601"),
        ("2026-07-28", "2025-11-25", "-32602"),
        ("2025-11-25", "2026-07-28", "-32601"),
        ("2025-06-18", "2025-11-25", "-32601"),
        ("2026-07-28", "2025-11-25", ""),
    ] {
        let mut words = vec!["call", "t", "--protocol", told, "--timeout", "3"];
        words.extend(server(spoken, code));
        let run = sandbox::run(&words, b"");
        assert_eq!(run.code, Some(3), "{}", run.stderr);
        let expected = format!("--protocol {told}");
        assert!(
            run.stderr.contains(&expected),
            "{told} {code}: {}",
            run.stderr
        );
    }
}

#[test]
fn a_check_reports_servers_that_cannot_be_used() {
    for (words, why, next) in [
        (
            &["--", "/does/not/exist", "x"][..],
            "cannot start /does/not/exist",
            "install the program",
        ),
        (
            &["--", "/bin/sh", "-c", "exit 3"],
            "",
            "run the command in a terminal",
        ),
        (
            &["--", "/bin/cat", "/dev/null"],
            "",
            "run the command in a terminal",
        ),
        (
            &["--upstream", "http://127.0.0.1:9/mcp"],
            "refused",
            "start the server",
        ),
    ] {
        let run = check(words);
        assert_eq!(run.code, Some(2), "{words:?}: {}", run.stderr);
        assert!(run.stderr.contains(why), "{words:?}: {}", run.stderr);
        assert!(run.stderr.contains(next), "{words:?}: {}", run.stderr);
        assert!(!run.stderr.contains("is valid"), "{}", run.stderr);
    }
    let good = check(&DEMO_SERVER);
    assert_eq!(good.code, Some(0), "{}", good.stderr);
    assert!(
        good.stderr.contains("configuration is valid (servers: 1)"),
        "{}",
        good.stderr
    );
}

/// A request that reached the server: its HTTP method, path, header `X-K`, session and JSON-RPC method.
type Seen = (String, String, String, String, String);

#[derive(Clone, Default)]
struct Server {
    seen: Arc<Mutex<Vec<Seen>>>,
    /// The status and the location of the redirect at `/mcp`.
    redirects: Option<(u16, String)>,
    key: Option<&'static str>,
}

async fn handle(
    State(server): State<Server>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let header = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    if let Some((status, to)) = &server.redirects
        && uri.path() == "/mcp"
    {
        let status = StatusCode::from_u16(*status).unwrap();
        return (status, [("location", to.clone())]).into_response();
    }
    if let Some(key) = server.key
        && header("authorization") != format!("Bearer {key}")
    {
        return (
            StatusCode::UNAUTHORIZED,
            [("www-authenticate", "Bearer error=\"invalid_token\"")],
        )
            .into_response();
    }
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let rpc = message["method"].as_str().unwrap_or_default().to_owned();
    server.seen.lock().unwrap().push((
        method.to_string(),
        uri.path().to_owned(),
        header("x-k"),
        header("mcp-session-id"),
        rpc.clone(),
    ));
    let result = match (method.as_str(), rpc.as_str()) {
        ("POST", "initialize") => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "raw", "version": "1"}})
        }
        ("POST", "tools/list") => {
            json!({"tools": [{"name": "say", "inputSchema": {"type": "object"}}]})
        }
        ("POST", "tools/call") => {
            json!({"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]})
        }
        ("POST", "server/discover") => {
            let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}});
            return axum::Json(error).into_response();
        }
        ("POST", _) => return StatusCode::ACCEPTED.into_response(),
        ("DELETE", _) => return StatusCode::OK.into_response(),
        _ => return StatusCode::METHOD_NOT_ALLOWED.into_response(),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    ([("mcp-session-id", "s1")], axum::Json(answer)).into_response()
}

/// Serves MCP, and returns the URL of `/mcp` there.
fn serve(server: &Server) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let at = listener.local_addr().unwrap();
    let router = axum::Router::new()
        .fallback(handle)
        .with_state(server.clone());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    format!("http://{at}/mcp")
}

#[test]
fn a_redirect_within_one_origin_keeps_every_request_as_it_is() {
    for (status, to) in [(307, "/mcp/"), (308, "/mcp/"), (308, "/other/place?x=1")] {
        let server = Server {
            redirects: Some((status, to.to_owned())),
            ..Server::default()
        };
        let url = serve(&server);
        let words = [
            "call",
            "say",
            "text=hello",
            "--url",
            &url,
            "--header",
            "X-K=v",
        ];
        let run = sandbox::run(&words, b"");
        assert_eq!(
            (run.code, &*run.stdout),
            (Some(0), "hello\n"),
            "{}",
            run.stderr
        );
        let state = tempfile::tempdir().unwrap();
        let mut raw = Raw::start(gateway(
            state.path(),
            &["--header", "X-K=v"],
            &["--upstream", &url],
        ));
        raw.initialize("2025-11-25", &json!({}));
        raw.call(2, "say", &json!({"text": "hi"}));
        assert_eq!(raw::text(&raw.result(2)), "hi");
        drop(raw);
        let seen = server.seen.lock().unwrap().clone();
        let path = to.split('?').next().unwrap();
        assert!(
            seen.iter().all(|(_, at, key, ..)| at == path && key == "v"),
            "{seen:?}"
        );
        let in_session = |wanted: (&str, &str)| {
            let is_it = |(method, _, _, session, rpc): &&Seen| {
                (method.as_str(), rpc.as_str()) == wanted && session == "s1"
            };
            seen.iter().filter(is_it).count()
        };
        assert_eq!(in_session(("POST", "tools/call")), 2, "{seen:?}");
        assert_eq!(
            in_session(("POST", "notifications/initialized")),
            2,
            "{seen:?}"
        );
        assert!(in_session(("GET", "")) >= 1, "{seen:?}");
        assert!(in_session(("DELETE", "")) >= 1, "{seen:?}");
    }
}

#[test]
fn another_origin_a_changed_method_and_a_circle_are_not_followed() {
    let other = Server::default();
    let stolen = serve(&other);
    for (status, to) in [
        (307, stolen.clone()),
        (308, stolen.replace("127.0.0.1", "localhost")),
        (302, "/mcp/".to_owned()),
        (303, "/mcp/".to_owned()),
        (307, "/mcp".to_owned()),
    ] {
        let server = Server {
            redirects: Some((status, to.clone())),
            ..Server::default()
        };
        let url = serve(&server);
        let run = sandbox::run(
            &["call", "say", "--url", &url, "--header", "X-K=TOPSECRET"],
            b"",
        );
        assert_eq!(run.code, Some(3), "{to}: {}", run.stderr);
        assert!(run.stderr.contains("redirects"), "{to}: {}", run.stderr);
        let state = tempfile::tempdir().unwrap();
        let mut raw = Raw::start(gateway(
            state.path(),
            &["--header", "X-K=TOPSECRET"],
            &["--upstream", &url],
        ));
        let refused = raw.initialize("2025-11-25", &json!({}));
        let why = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(why.contains("redirects"), "{to}: {refused}");
        assert!(server.seen.lock().unwrap().is_empty(), "{to}");
    }
    assert!(other.seen.lock().unwrap().is_empty());
}

#[test]
fn a_check_says_that_a_key_is_refused() {
    let server = Server {
        key: Some("right"),
        ..Server::default()
    };
    let url = serve(&server);
    let folder = tempfile::tempdir().unwrap();
    let run = |key: &str| {
        let done = std::process::Command::new(PROGRAM)
            .args([
                "gateway",
                "--check",
                "--upstream",
                &url,
                "--token-env",
                "A_KEY",
                "--state",
            ])
            .arg(folder.path())
            .env("A_KEY", key)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), said)
    };
    let (code, said) = run("wrong-hunter2");
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("authorization") && said.contains("--token-env"),
        "{said}"
    );
    assert!(
        !said.contains("hunter2") && !said.contains("ERROR") && !said.contains("is valid"),
        "{said}"
    );
    let (code, said) = run("right");
    assert_eq!(code, Some(0), "{said}");
}

/// A check in a terminal knows the eras that a gateway saw in its client's environment; a call tells both.
#[test]
fn a_server_that_was_seen_to_ask_is_known_in_another_environment_and_folder() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().to_str().unwrap();
    let mut command = gateway(state.path(), &[], &DEMO_SERVER);
    command
        .env("DESKTOP_ONLY", "1")
        .current_dir(std::env::temp_dir());
    let mut raw = Raw::start(command);
    raw.initialize("2025-11-25", &json!({"elicitation": {}}));
    raw.call(2, "deploy", &json!({}));
    let asked = raw.next();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    raw.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "cancel"}}));
    raw.result(2);
    drop(raw.stdin.take());
    raw.child.wait().unwrap();
    let run = sandbox::run(
        &[&["gateway", "--check", "--state", path], &DEMO_SERVER[..]].concat(),
        b"",
    );
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stderr.contains("seen to ask on 2025-11-25"),
        "{}",
        run.stderr
    );
    // A call records it too, where a record exists.
    let call = [
        "call",
        "deploy",
        "--answer",
        "environment=staging",
        "--protocol",
        "2026-07-28",
        "--state",
        path,
    ];
    let run = sandbox::run(&[&call[..], &DEMO_SERVER].concat(), b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let run = sandbox::run(
        &[&["call", "--list", "--state", path], &DEMO_SERVER[..]].concat(),
        b"",
    );
    assert!(
        run.stderr
            .contains("seen to ask on 2025-11-25 and 2026-07-28"),
        "{}",
        run.stderr
    );
    // And creates none.
    let empty = tempfile::tempdir().unwrap();
    let call = [
        "call",
        "deploy",
        "--answer",
        "environment=staging",
        "--state",
        empty.path().to_str().unwrap(),
    ];
    let run = sandbox::run(&[&call[..], &DEMO_SERVER].concat(), b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
}

/// An HTML page in place of an answer: the media type is named as it came.
#[test]
fn a_page_in_place_of_an_answer_is_named_by_its_media_type() {
    let page = || async { ([("content-type", "Text/HTML; charset=utf-8")], "<p>hello") };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, axum::Router::new().fallback(page))
                .await
                .unwrap();
        });
    });
    let run = sandbox::run(&["call", "--list", "--url", &url], b"");
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    assert!(
        run.stderr
            .contains("text/html; charset=utf-8, not application/json"),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("Some("), "{}", run.stderr);
}

/// A server that asks for one of `$1` and writes the answer, as it came, to the file `$2`.
const ASKER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}\n' "$id" ;;
    *'"method":"tools/call"'*)
      printf '{"jsonrpc":"2.0","id":77,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"number","enum":[%s]}}}}}\n' "$1"
      IFS= read -r answer; printf '%s' "$answer" > "$2"
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id" ;;
  esac
done"#;

#[test]
fn a_number_among_the_options_reaches_the_server_as_it_spelled_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answer");
    let options = "12345678901234567890123, 1.50, 1e2";
    for (typed, sent) in [
        ("12345678901234567890123", "12345678901234567890123"),
        ("1.5", "1.50"),
        ("100", "1e2"),
    ] {
        let content = format!(r#""content":{{"a":{sent}}}"#);
        let words = [
            "--",
            "/bin/sh",
            "-c",
            ASKER,
            "sh",
            options,
            file.to_str().unwrap(),
        ];
        let answer = format!("a={typed}");
        let run = sandbox::run(
            &[&["call", "t", "--json", "--answer", &answer], &words[..]].concat(),
            b"",
        );
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(
            run.stdout.contains(&content),
            "the event too: {}",
            run.stdout
        );
        let came = std::fs::read_to_string(&file).unwrap();
        assert!(came.contains(&content), "call: {came}");
        assert!(!came.contains("_meta"), "{came}");

        let state = tempfile::tempdir().unwrap();
        let mut raw = Raw::start(gateway(state.path(), &[], &words));
        raw.initialize("2025-11-25", &json!({}));
        raw.call(2, "t", &json!({}));
        let id = loop {
            let (_, waiting) = raw::inbox(state.path(), &["list"]);
            if let Some(question) = waiting.first() {
                break question["id"].as_str().unwrap().to_owned();
            }
        };
        // The command has the form as the API prints it, with a rounded number; the gateway has the server's.
        let is_long = typed.len() > 20;
        let answer = if is_long {
            "a=1.2345678901234568e+22"
        } else {
            answer.as_str()
        };
        let (is_taken, said) = raw::inbox(state.path(), &["accept", &id, answer]);
        assert!(is_taken, "{said:?}");
        raw.result(2);
        let came = std::fs::read_to_string(&file).unwrap();
        assert!(came.contains(&content), "inbox: {came}");
    }
}

#[test]
fn a_check_waits_for_a_download_and_says_what_no_inbox_means() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let npx = folder.path().join("npx");
    std::fs::write(
        &npx,
        format!("#!/bin/sh\nsleep 12\nexec {PROGRAM} demo-server\n"),
    )
    .unwrap();
    std::fs::set_permissions(&npx, std::fs::Permissions::from_mode(0o755)).unwrap();
    let file = folder.path().join("gateway.toml");
    let text = format!(
        "listen = \"127.0.0.1:0\"\nstate = {:?}\n[servers.slow]\ncommand = [{npx:?}]\n",
        folder.path().join("state")
    );
    std::fs::write(&file, text).unwrap();
    let run = sandbox::run(
        &["gateway", "--check", "--config", file.to_str().unwrap()],
        b"",
    );
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for words in [
        "slow: npx has not started it yet; it may be downloading it",
        "slow: speaks 2025-11-25",
        "no inbox: a client that cannot ask gets an error; `inbox = \"127.0.0.1:7878\"`",
    ] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
}

/// A server that ignores SIGTERM and the end of its input, and so does its child. Their ids are in the file `$0`.
const STUBBORN: &str = r#"
trap '' TERM HUP
sleep 1000 & echo "$!" >> "$0"; echo "$$" >> "$0"
"#;

/// Waits until none of the processes whose ids are in this file runs.
#[cfg(target_os = "linux")]
fn are_ended(file: &std::path::Path, at_least: usize) {
    let is_running = |id: &&str| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap().trim_start().to_owned();
        !state.is_empty() && !state.starts_with('Z')
    };
    let text = std::fs::read_to_string(file).unwrap();
    let ids: Vec<&str> = text.lines().collect();
    assert!(ids.len() >= at_least, "{ids:?}");
    // A process that was killed may be seen for a moment.
    for _ in 0..500 {
        if !ids.iter().any(is_running) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!(
        "still running: {:?}",
        ids.iter().filter(|id| is_running(id))
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_check_leaves_no_server_running_that_ignores_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("processes");
    let code = format!("{STUBBORN}{SERVER}\nsleep 1000");
    let server = ["--", "/bin/sh", "-c", &code, file.to_str().unwrap()];
    let run = check(&[&server[..], &["2025-11-25", "-32601"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    are_ended(&file, 4);
}

#[cfg(target_os = "linux")]
#[test]
fn a_check_that_is_stopped_leaves_no_server_running() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("processes");
    let code = format!("{STUBBORN}sleep 1000");
    let mut check = std::process::Command::new(PROGRAM)
        .args(["gateway", "--check", "--", "/bin/sh", "-c", &code])
        .arg(&file)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let begun = || std::fs::read_to_string(&file).unwrap_or_default();
    while begun().lines().count() < 4 {
        assert!(check.try_wait().unwrap().is_none(), "it goes on");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let signal = std::process::Command::new("kill")
        .args(["-INT", &check.id().to_string()])
        .status();
    assert!(signal.unwrap().success());
    let status = check.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    are_ended(&file, 4);
}
