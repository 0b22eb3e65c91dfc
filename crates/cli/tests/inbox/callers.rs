//! Callers and programs with proof of identity: API tokens at the listener and at the inbox, created and revoked by the
//! command.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use crate::gateway::{Gateway, REVISION, api};
use crate::http::{self, Reply, send};
use crate::raw::{DEMO_SERVER, PROGRAM, call, command, initialize, text};

/// Creates a token with this scope. Returns its id and its text.
fn token(state: &Path, scope: &str) -> (String, String) {
    let made = command(
        state,
        &["tokens", "make", "test", "--scope", scope, "--json"],
    );
    assert!(made.status.success(), "{made:?}");
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let word = |name: &str| made[name].as_str().unwrap().to_owned();
    (word("id"), word("token"))
}

fn revoke(state: &Path, id: &str) {
    let revoked = command(state, &["tokens", "revoke", id]);
    assert!(revoked.status.success(), "{revoked:?}");
}

/// Serves the demo server to callers with a key, at an address of the network.
fn with_keys(state: &Path) -> (Gateway, String) {
    with_keys_and(state, &[])
}

fn with_keys_and(state: &Path, more: &[&str]) -> (Gateway, String) {
    let more = [&["--listen", "0.0.0.0:0", "--auth", "keys"], more].concat();
    let gateway = Gateway::start(state, &more, &DEMO_SERVER);
    let serving = gateway.serving.clone().unwrap();
    let port = serving.rsplit(':').next().unwrap();
    (gateway, format!("127.0.0.1:{port}"))
}

fn post(at: &str, key: Option<&str>, session: Option<&str>, body: &Value) -> Reply {
    http::post(at, "/mcp", key, session, body)
}

#[test]
fn a_caller_without_a_valid_key_reaches_no_server() {
    let state = tempfile::tempdir().unwrap();
    let (_gateway, at) = with_keys(state.path());
    let open = initialize(REVISION, &json!({}));
    let (id, key) = token(state.path(), "call");
    let (_, lists) = token(state.path(), "list");
    let none = post(&at, None, None, &open);
    assert_eq!(
        (none.status, none.header("www-authenticate")),
        (401, Some("Bearer")),
        "{none:?}"
    );
    assert!(
        none.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("tokens make"),
        "{none:?}"
    );
    let unknown = post(&at, Some("mek_000000000000_00"), None, &open);
    assert_eq!(unknown.status, 401);
    assert!(
        unknown
            .header("www-authenticate")
            .unwrap()
            .contains("invalid_token")
    );
    let scope = post(&at, Some(&lists), None, &open);
    assert_eq!(scope.status, 403);
    assert!(
        scope
            .header("www-authenticate")
            .unwrap()
            .contains("insufficient_scope")
    );
    let opened = post(&at, Some(&key), None, &open);
    assert_eq!(opened.status, 200, "{opened:?}");
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    // Another caller's session does not exist for this one.
    let (_, other) = token(state.path(), "call");
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    assert_eq!(post(&at, Some(&other), Some(&session), &list).status, 404);
    assert_eq!(post(&at, None, Some(&session), &list).status, 401);
    assert_eq!(post(&at, Some(&key), Some(&session), &list).status, 200);
    revoke(state.path(), &id);
    assert_eq!(post(&at, Some(&key), Some(&session), &list).status, 401);
    let audit = command(state.path(), &["audit", "--json"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    assert!(
        audit.contains("token-made") && audit.contains("token-revoked") && audit.contains(&id),
        "{audit}"
    );
    assert!(!audit.contains(&key), "no token in the audit");
    // Refused callers are listed too, by reason only. A request without credentials is not one.
    let refused = audit.lines().filter(|line| line.contains("caller-refused"));
    let refused: Vec<Value> = refused
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["entry"].clone())
        .collect();
    let reasons: Vec<_> = refused.iter().map(|entry| &entry["reason"]).collect();
    assert_eq!(reasons, ["unknown-key", "wrong-scope", "revoked-key"]);
    assert!(
        refused
            .iter()
            .all(|entry| entry["mode"] == "keys" && entry["server"].is_string()),
        "{refused:?}"
    );
    assert!(!audit.contains("mek_"), "{audit}");
}

#[test]
fn call_says_why_a_key_is_refused_and_never_the_key() {
    let state = tempfile::tempdir().unwrap();
    let (_gateway, at) = with_keys(state.path());
    let (id, key) = token(state.path(), "call");
    let (_, lists) = token(state.path(), "list");
    let call = |key: &str| {
        let url = format!("http://{at}/mcp");
        let called = Command::new(PROGRAM)
            .args(["call", "deploy", "--decline", "--url", &url])
            .args(["--token-env", "KEY"])
            .env("KEY", key)
            .output()
            .unwrap();
        let said = String::from_utf8(called.stderr).unwrap();
        assert!(!said.contains(key), "{said}");
        (called.status.code(), said)
    };
    let (code, said) = call(&key);
    assert_eq!(code, Some(5), "{said}");
    revoke(state.path(), &id);
    for (key, why) in [
        (key.as_str(), "this token was revoked"),
        (&lists, "this token lacks the scope `call`"),
        ("mek_000000000000_00", "this token is not known"),
    ] {
        let (code, said) = call(key);
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains(why) && said.contains("--token-env"), "{said}");
        let is_invalid = !why.contains("lacks");
        let makes_another = said.contains("`mcp-elicit tokens make`");
        assert_eq!(makes_another, is_invalid, "{said}");
    }
}

#[test]
fn a_key_that_is_revoked_while_a_person_thinks_collects_nothing() {
    let state = tempfile::tempdir().unwrap();
    let (gateway, at) = with_keys(state.path());
    let (id, key) = token(state.path(), "call");
    let opened = post(&at, Some(&key), None, &initialize(REVISION, &json!({})));
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(&at, Some(&key), Some(&session), &ready).status, 202);
    let waits = {
        let (at, key, session) = (at.clone(), key.clone(), session.clone());
        thread::spawn(move || {
            post(
                &at,
                Some(&key),
                Some(&session),
                &call(7, "deploy", &json!({})),
            )
        })
    };
    let asked = gateway.wait_for(1);
    assert_eq!(asked[0]["onBehalfOf"], "the holder of the API key test");
    assert!(
        asked[0]["principal"].as_str().unwrap().contains(&id),
        "{asked:?}"
    );
    let question = asked[0]["id"].as_str().unwrap().to_owned();
    revoke(state.path(), &id);
    // The stream of the call ends without waiting for the person, and so does the question: its answer could never be
    // collected.
    let ended = waits.join().unwrap();
    assert!(!ended.body.contains("Deployed"), "{ended:?}");
    gateway.wait_for(0);
    let content = json!({"environment": "staging", "note": "late"});
    let late = gateway.answer(&question, &json!({"action": "accept", "content": content}));
    assert_ne!(late, 200);
    let audit = command(state.path(), &["audit", "--json"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    let withdrawn = audit.lines().find(|line| line.contains("\"withdrawn\""));
    let withdrawn = withdrawn.unwrap_or_else(|| panic!("{audit}"));
    assert!(
        withdrawn.contains(&question) && withdrawn.contains("caller-gone"),
        "{withdrawn}"
    );
    assert!(!audit.contains("\"declined\""), "{audit}");
    let again = post(&at, Some(&key), None, &initialize(REVISION, &json!({})));
    assert_eq!(again.status, 401);
    // Another key does not get it either: the question was asked for the revoked key.
    let (_, other) = token(state.path(), "call");
    let opened = post(&at, Some(&other), None, &initialize(REVISION, &json!({})));
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let waits = {
        let (at, session) = (at.clone(), session.clone());
        thread::spawn(move || {
            post(
                &at,
                Some(&other),
                Some(&session),
                &call(7, "deploy", &json!({})),
            )
        })
    };
    let asked = gateway.wait_for(1);
    assert_ne!(asked[0]["id"], question.as_str(), "asked anew");
    let content = json!({"environment": "staging", "note": "mine"});
    let id = asked[0]["id"].as_str().unwrap();
    assert_eq!(
        gateway.answer(id, &json!({"action": "accept", "content": content})),
        200
    );
    let done = waits.join().unwrap();
    assert!(text(&done.response()).contains("mine"), "{done:?}");
}

#[test]
fn a_programs_token_lists_or_answers_and_is_named_in_the_audit() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = Gateway::start(state.path(), &[], &DEMO_SERVER);
    gateway.initialize();
    gateway.call(2, "deploy", &json!({}));
    let asked = gateway.wait_for(1);
    let path = format!("/api/questions/{}/answer", asked[0]["id"].as_str().unwrap());
    let (_, lists) = token(state.path(), "list");
    let (bot, answers) = token(state.path(), "answer");
    let (_, calls) = token(state.path(), "call");
    let body =
        json!({"action": "accept", "content": {"environment": "staging", "note": "by a program"}})
            .to_string();
    let status = |token: &str, method: &str, path: &str, body: &str| {
        api(&gateway.inbox, token, method, path, body)
            .unwrap()
            .status
    };
    assert_eq!(status(&calls, "GET", "/api/questions", ""), 403);
    assert_eq!(status(&lists, "GET", "/api/questions", ""), 200);
    assert_eq!(status(&lists, "POST", &path, &body), 403);
    assert_eq!(status(&answers, "GET", "/api/questions", ""), 200);
    assert_eq!(status(&answers, "POST", &path, &body), 200);
    // The audit has a scope of its own, which permits nothing else.
    let (_, audits) = token(state.path(), "audit");
    let audit = api(&gateway.inbox, &audits, "GET", "/api/audit?most=1000", "").unwrap();
    assert!(
        audit.status == 200 && audit.body.contains("token-made") && audit.body.contains("answered"),
        "{audit:?}"
    );
    for path in ["/api/questions", "/api/events", "/api/openapi.json"] {
        assert_eq!(status(&audits, "GET", path, ""), 403, "{path}");
    }
    for other in [&lists, &answers, &calls] {
        assert_eq!(status(other, "GET", "/api/audit", ""), 403);
    }
    revoke(state.path(), &bot);
    assert_eq!(status(&answers, "GET", "/api/questions", ""), 401);
    assert!(text(&gateway.result(2)).contains("by a program"));
    let audit = command(state.path(), &["audit", "--json"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    let answered = audit
        .lines()
        .find(|line| line.contains("\"answered\""))
        .unwrap();
    assert!(answered.contains(&bot), "{answered}");
}

#[test]
fn the_api_takes_a_bearer_token_in_any_letters_once_and_says_what_is_wrong_with_it() {
    let state = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(state.path(), &[], &DEMO_SERVER);
    let (id, lists) = token(state.path(), "list");
    let with = |lines: &[&str]| {
        let head = [&["GET /api/questions HTTP/1.1"], lines].concat();
        let reply = send(&gateway.inbox, &head, "").unwrap();
        let challenge = reply.header("www-authenticate").map(str::to_owned);
        (reply.status, challenge.unwrap_or_default())
    };
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let line = format!("authorization: {scheme} {lists}");
        assert_eq!(with(&[&line]), (200, String::new()), "{scheme}");
    }
    let line = format!("Authorization: Bearer {lists}");
    let invalid = "Bearer error=\"invalid_token\"";
    assert_eq!(
        with(&[&line, &line]),
        (400, "Bearer error=\"invalid_request\"".to_owned())
    );
    assert_eq!(with(&[]), (401, "Bearer".to_owned()));
    let unknown = "Authorization: Bearer mek_000000000000_00";
    assert_eq!(with(&[unknown]), (401, invalid.to_owned()));
    let (_, calls) = token(state.path(), "call");
    let calls = format!("Authorization: Bearer {calls}");
    let scope = "Bearer error=\"insufficient_scope\", scope=\"list\"";
    assert_eq!(with(&[&calls]), (403, scope.to_owned()));
    let listed = command(state.path(), &["tokens", "list"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    let used = |line: &str| !line.contains("not used yet");
    assert_eq!(
        listed.lines().filter(|line| used(line)).count(),
        1,
        "{listed}"
    );
    assert!(
        listed.lines().any(|line| line.contains(&id) && used(line)),
        "{listed}"
    );
    revoke(state.path(), &id);
    assert_eq!(with(&[&line]), (401, invalid.to_owned()));
}

/// A token that is never shown does not exist.
#[cfg(target_os = "linux")]
#[test]
fn a_token_that_cannot_be_shown_or_stored_is_not_made() {
    use std::process::Stdio;

    let state = tempfile::tempdir().unwrap();
    let into_a_full_disk = |more: &[&str]| {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let mut command = Command::new(PROGRAM);
        command
            .args(["tokens", "make", "test", "--scope", "call"])
            .args(more);
        let made = command
            .arg("--state")
            .arg(state.path())
            .stdout(Stdio::from(full));
        made.stderr(Stdio::piped()).output().unwrap()
    };
    for more in [&[][..], &["--json"]] {
        let made = into_a_full_disk(more);
        assert!(
            !made.status.success() && !made.stderr.is_empty(),
            "{made:?}"
        );
    }
    let listed = command(state.path(), &["tokens", "list", "--json"]);
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "");
    // An obstacle in place of the record prevents writing.
    for file in ["record.sqlite", "record.sqlite-wal", "record.sqlite-shm"] {
        let _not_there = std::fs::remove_file(state.path().join(file));
    }
    std::fs::create_dir(state.path().join("record.sqlite")).unwrap();
    let made = command(state.path(), &["tokens", "make", "test", "--scope", "call"]);
    assert!(!made.status.success() && made.stdout.is_empty(), "{made:?}");
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(said.contains("cannot be read or written"), "{said}");
}

#[test]
fn a_token_that_is_revoked_while_a_body_is_on_its_way_does_nothing() {
    let state = tempfile::tempdir().unwrap();
    let (gateway, at) = with_keys(state.path());
    let (caller, key) = token(state.path(), "call");
    let (bot, answers) = token(state.path(), "answer");
    let body = initialize(REVISION, &json!({})).to_string();
    let answer = json!({"action": "decline"}).to_string();
    let api = format!("POST /api/questions/{}/answer HTTP/1.1", "0".repeat(32));
    let begun = [
        (at.as_str(), "POST /mcp HTTP/1.1", &key, &body, &caller),
        (
            gateway.inbox.as_str(),
            api.as_str(),
            &answers,
            &answer,
            &bot,
        ),
    ];
    for (at, line, token, body, id) in begun {
        let mut stream = TcpStream::connect(at).unwrap();
        let (first, rest) = body.split_at(5);
        let length = body.len();
        write!(
            stream,
            "{line}\r\nHost: {at}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{first}"
        )
        .unwrap();
        stream.flush().unwrap();
        revoke(state.path(), id);
        write!(stream, "{rest}").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 401"), "{line}: {reply}");
    }
}

/// The file of an earlier version, with the key below and one that was revoked.
const OLD_TOKENS: &str = r#"{"tokens":[
  {"id":"0a0a0a0a0a0a","name":"ci","hash":"e3daa387b5da63358f3d3c07f8beaf40a48a4135a304b25c85917c4ea5039e59","scopes":["call"],"madeAt":1},
  {"id":"0c0c0c0c0c0c","name":"old","hash":"00","scopes":["call"],"madeAt":1,"revokedAt":2}
],"blocked":[{"issuer":"https://id.example.com","subject":"eve","blockedAt":3}]}"#;
const OLD_KEY: &str =
    "mek_0a0a0a0a0a0a_0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b";

#[test]
fn the_keys_of_an_earlier_version_work_on_and_its_gateways_accept_none_of_them() {
    let state = tempfile::tempdir().unwrap();
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(state.path(), mode).unwrap();
    }
    let old = state.path().join("api.tokens");
    std::fs::write(&old, OLD_TOKENS).unwrap();
    let (_gateway, at) = with_keys(state.path());
    let open = initialize(REVISION, &json!({}));
    let opened = post(&at, Some(OLD_KEY), None, &open);
    assert_eq!(opened.status, 200, "{opened:?}");
    let listed = command(state.path(), &["tokens", "list"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    for part in [
        "0a0a0a0a0a0a",
        "0c0c0c0c0c0c",
        "revoked",
        "eve  of https://id.example.com",
    ] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let left = std::fs::read_to_string(&old).unwrap();
    assert!(
        left.starts_with("The tokens are in record.sqlite"),
        "{left}"
    );
    revoke(state.path(), "0a0a0a0a0a0a");
    assert_eq!(post(&at, Some(OLD_KEY), None, &open).status, 401);
}

#[test]
fn tokens_are_listed_without_their_secrets_and_pruned() {
    let state = tempfile::tempdir().unwrap();
    let none = command(state.path(), &["tokens", "list"]);
    let said = String::from_utf8(none.stderr).unwrap();
    let folder = state.path().display().to_string();
    assert!(said.contains(&folder) && said.contains("--state"), "{said}");
    let made = command(state.path(), &["tokens", "make", "x", "--scope", "call"]);
    let said = String::from_utf8(made.stderr).unwrap();
    let end = format!("`mcp-elicit tokens revoke --state {folder} ");
    assert!(said.contains(&end), "{said}");
    let (id, text) = token(state.path(), "call");
    let list = || {
        let listed = command(state.path(), &["tokens", "list"]);
        String::from_utf8(listed.stdout).unwrap()
    };
    assert!(list().contains(&id) && list().contains("does not expire") && !list().contains(&text));
    revoke(state.path(), &id);
    let twice = command(state.path(), &["tokens", "revoke", &id]);
    assert_eq!(twice.status.code(), Some(2), "{twice:?}");
    assert!(list().contains("revoked"));
    assert!(command(state.path(), &["tokens", "prune"]).status.success());
    assert!(!list().contains(&id));
    for wrong in [["--scope", "admin"], ["--expires", "1y"]] {
        let made = command(
            state.path(),
            &[&["tokens", "make", "x", "--scope", "call"][..], &wrong[..]].concat(),
        );
        assert_eq!(made.status.code(), Some(2), "{made:?}");
    }
}

/// Starts a request, and returns its connection.
fn begun(at: &str, key: &str, session: &str, method: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(http::PATIENCE)).unwrap();
    let length = body.len();
    let head = format!(
        "{method} /mcp HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Authorization: Bearer {key}\r\nMcp-Session-Id: {session}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Returns the beginning of the response, as soon as it arrives.
fn status(stream: &mut TcpStream) -> String {
    let mut line = vec![0; "HTTP/1.1 200".len()];
    stream.read_exact(&mut line).unwrap();
    String::from_utf8(line).unwrap()
}

#[test]
fn a_caller_with_too_many_requests_at_work_is_told_to_wait_and_nobody_else_is() {
    /// The limit of the gateway.
    const AT_WORK: u64 = 256;
    let state = tempfile::tempdir().unwrap();
    // Without this, the call whose question exceeds the limit would end by itself.
    let unlimited = ["--questions-per-minute", "off", "--pending", "off"];
    let (gateway, at) = with_keys_and(state.path(), &unlimited);
    let (_, key) = token(state.path(), "call");
    let (_, other) = token(state.path(), "call");
    let open = |key: &str| {
        let opened = post(&at, Some(key), None, &initialize(REVISION, &json!({})));
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(post(&at, Some(key), Some(&session), &ready).status, 202);
        session
    };
    let (session, others) = (open(&key), open(&other));
    // The stream of a session does not count.
    let mut stream = begun(&at, &key, &session, "GET", "");
    assert_eq!(status(&mut stream), "HTTP/1.1 200");
    let mut waiting: Vec<TcpStream> = (0..AT_WORK)
        .map(|id| {
            // The same call made again would take the place of one that waits.
            let call = call(100 + id, "deploy", &json!({"number": id}));
            begun(&at, &key, &session, "POST", &call.to_string())
        })
        .collect();
    for stream in &mut waiting {
        assert_eq!(status(stream), "HTTP/1.1 200");
    }
    let list = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
    let refused = post(&at, Some(&key), Some(&session), &list(7));
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    let said = refused.json();
    assert_eq!(said["id"], 7);
    let why = said["error"]["message"].as_str().unwrap();
    assert!(
        why.contains("256 requests") && why.contains("cancel"),
        "{why}"
    );
    // It cannot open another session either; another caller can continue.
    let opens = initialize(REVISION, &json!({}));
    assert_eq!(post(&at, Some(&key), None, &opens).status, 429);
    let served = post(&at, Some(&other), Some(&others), &list(8));
    assert_eq!(served.status, 200, "{served:?}");
    // Its notifications are accepted: this one ends a call, which makes room for another request.
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 100}});
    let taken = post(&at, Some(&key), Some(&session), &cancelled);
    assert_eq!(taken.status, 202, "{taken:?}");
    drop(waiting.remove(0));
    let room = (0..600).any(|_| {
        thread::sleep(std::time::Duration::from_millis(50));
        post(&at, Some(&key), Some(&session), &list(9)).status == 200
    });
    assert!(room, "the request that has ended is at work no more");
    drop(gateway);
}

#[test]
fn a_keys_owner_is_looked_up_in_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (state, file) = (
        folder.path().join("state"),
        folder.path().join("gateway.toml"),
    );
    let text = format!(
        "state = \"{}\"\n[people.ada]\nmail = \"ada@example.com\"\n",
        state.display()
    );
    std::fs::write(&file, text).unwrap();
    let make = |owner: &str| {
        let made = Command::new(PROGRAM)
            .args([
                "tokens",
                "make",
                "zed-agent",
                "--scope",
                "call",
                "--for",
                owner,
                "--config",
            ])
            .arg(&file)
            .output()
            .unwrap();
        (made.status.code(), String::from_utf8(made.stderr).unwrap())
    };
    let (code, said) = make("zed");
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("has no person `zed`") && said.contains("it has ada"),
        "{said}"
    );
    assert!(!state.exists(), "no key was made");
    let (code, said) = make("ada");
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("not checked"), "{said}");
    let listed = command(&state, &["tokens", "list"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains("zed-agent") && listed.contains("ada"),
        "{listed}"
    );
}
