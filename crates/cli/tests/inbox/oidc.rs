//! Callers with the access tokens of an issuer, at the real program. The issuer signs any claims that a test needs.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use mcp_elicit_testkit::issuer::TestIssuer;
use serde_json::{Value, json};

use crate::gateway::{Gateway, REVISION};
use crate::http::{PATIENCE, Reply, send};
use crate::raw::{PROGRAM, call, command, initialize, text};

/// Starts a gateway before the demo server, whose callers have tokens of this issuer.
fn with_issuer(state: &Path, issuer: &TestIssuer, auth: &str, oidc: &str) -> (Gateway, String) {
    let server = format!("command = [\"{PROGRAM}\", \"demo-server\"]");
    before(state, issuer.url(), auth, oidc, &server)
}

/// Starts a gateway before this server, whose callers have tokens of the issuer at this address.
pub(crate) fn before(
    state: &Path,
    issuer: &str,
    auth: &str,
    oidc: &str,
    server: &str,
) -> (Gateway, String) {
    let gateway = Gateway::of_config(
        state,
        &format!(
            "[auth]\n{auth}\n[auth.oidc]\nissuer = \"{issuer}\"\nscopes = [\"mcp\"]\n{oidc}\n\
             [servers.demo]\n{server}\n"
        ),
    );
    let at = gateway.serving.clone().unwrap();
    (gateway, at)
}

#[expect(clippy::disallowed_methods, reason = "a token ends at a time of day")]
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// Returns the claims of a token of this subject for this gateway, which expires after `lifetime` seconds.
fn claims(issuer: &TestIssuer, at: &str, subject: &str, lifetime: u64) -> Value {
    json!({
        "iss": issuer.url(), "aud": format!("http://{at}/mcp/demo"), "sub": subject, "scope": "mcp",
        "iat": now(), "exp": now() + lifetime, "jti": format!("{subject}-{lifetime}"),
    })
}

pub(crate) fn post(at: &str, token: Option<&str>, session: Option<&str>, body: &Value) -> Reply {
    let token = token.map(|token| format!("Authorization: Bearer {token}"));
    let session = session.map(|session| format!("Mcp-Session-Id: {session}"));
    let mut head = vec![
        "POST /mcp/demo HTTP/1.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
    ];
    head.extend(token.as_deref());
    head.extend(session.as_deref());
    send(at, &head, &body.to_string()).unwrap()
}

/// Opens a session. Returns its id.
pub(crate) fn open(at: &str, token: &str) -> String {
    let opened = post(at, Some(token), None, &initialize(REVISION, &json!({})));
    assert_eq!(opened.status, 200, "{opened:?}");
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(at, Some(token), Some(&session), &ready).status, 202);
    session
}

/// Calls the tool that asks, on its own thread.
pub(crate) fn calling(at: &str, token: &str, session: &str) -> thread::JoinHandle<Reply> {
    let (at, token, session) = (at.to_owned(), token.to_owned(), session.to_owned());
    thread::spawn(move || {
        let body = call(7, "deploy", &json!({}));
        post(&at, Some(&token), Some(&session), &body)
    })
}

pub(crate) fn accept(gateway: &Gateway, id: &str, note: &str) {
    let content = json!({"environment": "staging", "note": note});
    let answer = json!({"action": "accept", "content": content});
    assert_eq!(gateway.answer(id, &answer), 200);
}

/// Posts a call of the rounds era with these headers. Returns the text of its result.
pub(crate) fn round(at: &str, lines: &[&str]) -> String {
    text(&round_reply(at, lines).response()).to_owned()
}

/// Posts a call of the rounds era with these headers. Returns the reply.
fn round_reply(at: &str, lines: &[&str]) -> Reply {
    let params = json!({"name": "deploy", "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}});
    let frame = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let mut head = vec![
        "POST /mcp/demo HTTP/1.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: deploy",
    ];
    head.extend(lines);
    send(at, &head, &frame.to_string()).unwrap()
}

/// A question that was asked in a call of `ada`.
struct Asked {
    gateway: Gateway,
    /// The address of the gateway.
    at: String,
    /// The token of the call.
    token: String,
    session: String,
    waits: thread::JoinHandle<Reply>,
    question: Value,
}

/// Asks a question in a call whose token expires after three seconds.
fn asked_briefly(state: &Path, issuer: &TestIssuer) -> Asked {
    let auth = "mode = \"oidc\"\nleeway = \"0s\"";
    let (gateway, at) = with_issuer(state, issuer, auth, "");
    let token = issuer.sign(&claims(issuer, &at, "ada", 3));
    let session = open(&at, &token);
    let waits = calling(&at, &token, &session);
    let question = gateway.wait_for(1)[0].clone();
    Asked {
        gateway,
        at,
        token,
        session,
        waits,
        question,
    }
}

#[test]
fn a_caller_is_told_where_a_token_is_to_be_had_and_each_wrong_one_is_refused() {
    let state = tempfile::tempdir().unwrap();
    let issuer = TestIssuer::start();
    let (_gateway, at) = with_issuer(state.path(), &issuer, "mode = \"oidc\"", "");
    let body = initialize(REVISION, &json!({}));
    let none = post(&at, None, None, &body);
    let metadata = format!("http://{at}/.well-known/oauth-protected-resource/mcp/demo");
    let expected = format!("Bearer scope=\"mcp\", resource_metadata=\"{metadata}\"");
    assert_eq!(
        (none.status, none.header("www-authenticate")),
        (401, Some(expected.as_str())),
        "{none:?}"
    );
    assert_eq!(none.header("cache-control"), Some("no-store"));
    for path in ["/mcp/demo", "/mcp"] {
        let line = format!("GET /.well-known/oauth-protected-resource{path} HTTP/1.1");
        let document = send(&at, &[&line], "").unwrap().json();
        assert_eq!(
            document,
            json!({
                "resource": format!("http://{at}{path}"), "resource_name": "demo",
                "authorization_servers": [issuer.url()], "scopes_supported": ["mcp"],
                "bearer_methods_supported": ["header"],
            })
        );
    }
    let good = claims(&issuer, &at, "ada", 300);
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        issuer.sign(&claims)
    };
    let kid = issuer.kid();
    let other = TestIssuer::start();
    other.rotate();
    let under = |header: Value| issuer.sign_under(&header, &good);
    for (token, status, words) in [
        (
            with("aud", json!(format!("http://{at}/mcp/other"))),
            401,
            "another resource",
        ),
        (with("iss", json!(other.url())), 401, "another issuer"),
        (with("exp", json!(now() - 600)), 401, "has expired"),
        (with("scope", json!("openid")), 403, "insufficient_scope"),
        (under(json!({"alg": "none"})), 401, "invalid_token"),
        (
            under(json!({"alg": "HS256", "kid": kid})),
            401,
            "invalid_token",
        ),
        (
            under(json!({"alg": "EdDSA", "kid": "unknown"})),
            401,
            "no such key",
        ),
        (
            other.sign_under(&json!({"alg": "EdDSA", "kid": kid}), &good),
            401,
            "signature",
        ),
        ("mek_000000000000_00".to_owned(), 401, "invalid_token"),
        ("x".to_owned(), 401, "invalid_token"),
    ] {
        let refused = post(&at, Some(&token), None, &body);
        let challenge = refused.header("www-authenticate").unwrap();
        assert_eq!(refused.status, status, "{refused:?}");
        assert!(
            challenge.contains(words) && challenge.contains("resource_metadata="),
            "{words}: {challenge}"
        );
        assert!(!refused.body.contains(&token) && !challenge.contains(&token));
    }
    let token = issuer.sign(&good);
    let line = format!("Authorization: Bearer {token}");
    let head = [
        "POST /mcp/demo HTTP/1.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        &line,
        &line,
    ];
    assert_eq!(send(&at, &head, &body.to_string()).unwrap().status, 400);
    let session = open(&at, &token);
    // Another caller's session does not exist for this one.
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let bob = issuer.sign(&claims(&issuer, &at, "bob", 300));
    assert_eq!(post(&at, Some(&bob), Some(&session), &list).status, 404);
    assert_eq!(post(&at, Some(&token), Some(&session), &list).status, 200);
}

#[test]
fn a_token_that_is_refreshed_in_the_middle_of_a_question_changes_nothing() {
    let state = tempfile::tempdir().unwrap();
    let issuer = TestIssuer::start();
    let asked = asked_briefly(state.path(), &issuer);
    let (gateway, at) = (&asked.gateway, &asked.at);
    let behalf = asked.question["onBehalfOf"].as_str().unwrap();
    assert!(
        behalf.contains("ada") && behalf.contains(issuer.url()),
        "{behalf}"
    );
    let second = issuer.sign(&claims(&issuer, at, "ada", 300));
    let list = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"});
    assert_eq!(
        post(at, Some(&second), Some(&asked.session), &list).status,
        200
    );
    // The first token has expired, and another request with it is rejected.
    while post(at, Some(&asked.token), Some(&asked.session), &list).status != 401 {
        thread::yield_now();
    }
    accept(gateway, asked.question["id"].as_str().unwrap(), "on time");
    let done = asked.waits.join().unwrap();
    assert!(text(&done.response()).contains("on time"), "{done:?}");
}

#[test]
fn when_the_last_token_expires_the_call_is_handed_back_and_the_same_caller_collects_it() {
    let state = tempfile::tempdir().unwrap();
    let issuer = TestIssuer::start();
    let asked = asked_briefly(state.path(), &issuer);
    let (gateway, at) = (&asked.gateway, &asked.at);
    let handed = asked.waits.join().unwrap();
    let words = text(&handed.response()).to_owned();
    assert!(
        !words.contains("Deployed") && words.contains("/q/"),
        "{handed:?}"
    );
    accept(gateway, asked.question["id"].as_str().unwrap(), "meanwhile");
    // Another person who makes the same call gets a new question.
    let bob = issuer.sign(&claims(&issuer, at, "bob", 300));
    let bobs = calling(at, &bob, &open(at, &bob));
    let anew = gateway.wait_for(1);
    assert_ne!(anew[0]["id"], asked.question["id"]);
    let second = issuer.sign(&claims(&issuer, at, "ada", 300));
    let done = calling(at, &second, &open(at, &second)).join().unwrap();
    assert!(text(&done.response()).contains("meanwhile"), "{done:?}");
    accept(gateway, anew[0]["id"].as_str().unwrap(), "for bob");
    let done = bobs.join().unwrap();
    assert!(text(&done.response()).contains("for bob"), "{done:?}");
}

#[test]
fn an_issuer_that_is_down_makes_nobody_sign_in_again() {
    let state = tempfile::tempdir().unwrap();
    let issuer = TestIssuer::start();
    issuer.set_down(true);
    let (_gateway, at) = with_issuer(state.path(), &issuer, "mode = \"oidc\"", "");
    let token = issuer.sign(&claims(&issuer, &at, "ada", 300));
    let down = post(&at, Some(&token), None, &initialize(REVISION, &json!({})));
    assert_eq!(down.status, 503, "{down:?}");
    assert!(down.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(down.header("www-authenticate"), None);
}

#[test]
fn an_issuer_that_is_down_and_a_program_that_is_not_there_are_told_at_the_start() {
    let state = tempfile::tempdir().unwrap();
    let issuer = TestIssuer::start();
    issuer.set_down(true);
    let missing = "command = [\"/nonexistent/server\"]";
    let auth = "mode = \"oidc\"";
    let (gateway, at) = before(state.path(), issuer.url(), auth, "", missing);
    let wanted = [
        "the program of a server is not there",
        "/nonexistent/server",
        "the issuer of `[auth.oidc]` cannot be used now",
        "503 Service Unavailable",
        "check `issuer`",
    ];
    let said = || gateway.said.lock().unwrap().clone();
    let is_told = || wanted.iter().all(|words| said().contains(words));
    let mut looks = 0..6_000;
    while !is_told() && looks.next().is_some() {
        thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(is_told(), "{}", said());
    // The gateway still works.
    issuer.set_down(false);
    let token = issuer.sign(&claims(&issuer, &at, "ada", 300));
    let opened = post(&at, Some(&token), None, &initialize(REVISION, &json!({})));
    assert!(
        opened.body.contains("program cannot be started"),
        "{opened:?}"
    );
}

#[test]
fn the_issuer_is_asked_about_a_token_and_keys_are_taken_beside_it() {
    let state = tempfile::tempdir().unwrap();
    let issuer = TestIssuer::start();
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret");
    std::fs::write(&secret, "gateway-secret\n").unwrap();
    let oidc = format!(
        "tokens = \"introspection\"\nclient-id = \"gateway\"\nclient-secret = {{ file = \"{}\" }}",
        secret.display()
    );
    let auth = "mode = [\"oidc\", \"keys\"]";
    let (_gateway, at) = with_issuer(state.path(), &issuer, auth, &oidc);
    issuer.answer_about(
        "opaque",
        json!({"active": true, "sub": "ada", "aud": format!("http://{at}/mcp"), "scope": "mcp"}),
    );
    open(&at, "opaque");
    let unknown = post(
        &at,
        Some("unknown"),
        None,
        &initialize(REVISION, &json!({})),
    );
    assert_eq!(unknown.status, 401, "{unknown:?}");
    let made = command(
        state.path(),
        &["tokens", "make", "test", "--scope", "call", "--json"],
    );
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    open(&at, made["token"].as_str().unwrap());
}

#[test]
fn a_configuration_that_would_let_others_in_is_refused_and_shows_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let server = "\n[servers.demo]\ncommand = [\"true\"]\n";
    let file = folder.path().join("gateway.toml");
    for (text, words) in [
        (
            "listen = \"0.0.0.0:0\"\n[auth]\nmode = \"oidc\"\n[auth.oidc]\nissuer = \"https://id.example.com\"",
            "public-url",
        ),
        (
            "listen = \"127.0.0.1:0\"\n[auth]\nmode = \"oidc\"\n[auth.oidc]\nissuer = \"http://id.example.com\"",
            "is not an issuer",
        ),
        (
            "listen = \"127.0.0.1:0\"\n[auth]\nmode = \"oidc\"",
            "needs `[auth.oidc]`",
        ),
        (
            "listen = \"127.0.0.1:0\"\n[auth]\nmode = [\"oidc\", \"proxy\"]",
            "only these two",
        ),
        (
            "listen = \"127.0.0.1:0\"\n[auth]\nmode = \"keys\"\n[auth.oidc]\nissuer = \"https://id.example.com\"",
            "go with",
        ),
        (
            "listen = \"127.0.0.1:0\"\n[auth]\nmode = \"oidc\"\nleeway = \"1h\"\n[auth.oidc]\nissuer = \"https://id.example.com\"",
            "leeway",
        ),
        (
            "listen = \"127.0.0.1:0\"\n[auth]\nmode = \"oidc\"\n[auth.oidc]\nissuer = \"https://id.example.com\"\ntokens = \"introspection\"",
            "client-secret",
        ),
        (
            "listen = \"127.0.0.1:0\"\n[auth]\nmode = \"oidc\"\n[auth.oidc]\nissuer = \"https://id.example.com\"\nclient-secret = \"hunter2-hunter2\"",
            "{ env =",
        ),
        (
            "listen = \"127.0.0.1:0\"\npublic-url = \"http://mcp.example.com\"",
            "is not a public address",
        ),
    ] {
        std::fs::write(&file, format!("{text}{server}")).unwrap();
        let checked = std::process::Command::new(PROGRAM)
            .args(["gateway", "--check", "--config"])
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(
            !checked.status.success() && said.contains(words),
            "{text}\n{said}"
        );
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn a_token_that_its_issuer_ends_while_a_person_thinks_collects_nothing() {
    let state = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let issuer = TestIssuer::start();
    let secret = elsewhere.path().join("secret");
    std::fs::write(&secret, "gateway-secret").unwrap();
    let oidc = format!(
        "revocation = \"introspect\"\nclient-id = \"gateway\"\nclient-secret = {{ file = \"{}\" }}",
        secret.display()
    );
    let (gateway, at) = with_issuer(state.path(), &issuer, "mode = \"oidc\"", &oidc);
    let claims = claims(&issuer, &at, "ada", 300);
    let token = issuer.sign(&claims);
    let mut answer = claims;
    answer["active"] = json!(true);
    issuer.answer_about(&token, answer);
    let session = open(&at, &token);
    let waits = calling(&at, &token, &session);
    let asked = gateway.wait_for(1);
    issuer.answer_about(&token, json!({"active": false}));
    // The stream of the call ends without waiting for the person.
    let ended = waits.join().unwrap();
    assert!(!ended.body.contains("Not done yet"), "{ended:?}");
    accept(&gateway, asked[0]["id"].as_str().unwrap(), "late");
    let list = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"});
    assert_ne!(post(&at, Some(&token), Some(&session), &list).status, 200);
}

/// The token ends within the time for which the issuer's last response would otherwise be valid.
#[test]
fn a_token_that_its_issuer_ends_just_before_an_answer_does_not_get_it() {
    let state = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let issuer = TestIssuer::start();
    let secret = elsewhere.path().join("secret");
    std::fs::write(&secret, "gateway-secret").unwrap();
    let oidc = format!(
        "revocation = \"introspect\"\nclient-id = \"gateway\"\nclient-secret = {{ file = \"{}\" }}",
        secret.display()
    );
    let (gateway, at) = with_issuer(state.path(), &issuer, "mode = \"oidc\"", &oidc);
    let active = |subject: &str| {
        let claims = claims(&issuer, &at, subject, 300);
        let token = issuer.sign(&claims);
        let mut answer = claims;
        answer["active"] = json!(true);
        issuer.answer_about(&token, answer);
        token
    };
    // The answer of a valid token arrives, also while the issuer does not respond.
    for is_down in [false, true] {
        let bob = active(if is_down { "bob" } else { "cy" });
        let waits = calling(&at, &bob, &open(&at, &bob));
        let asked = gateway.wait_for(1);
        issuer.set_down(is_down);
        accept(&gateway, asked[0]["id"].as_str().unwrap(), "taken");
        let done = waits.join().unwrap();
        assert!(text(&done.response()).contains("taken"), "{done:?}");
    }
    issuer.set_down(false);
    let ada = active("ada");
    let waits = calling(&at, &ada, &open(&at, &ada));
    let asked = gateway.wait_for(1);
    issuer.answer_about(&ada, json!({"active": false}));
    accept(&gateway, asked[0]["id"].as_str().unwrap(), "too late");
    let ended = waits.join().unwrap();
    assert!(!ended.body.contains("too late"), "{ended:?}");
}

/// An issuer that is asked about tokens, and a gateway whose callers have them.
struct Introspected {
    issuer: TestIssuer,
    gateway: Gateway,
    at: String,
}

impl Introspected {
    fn start(state: &Path, elsewhere: &Path, oidc: &str) -> Self {
        let issuer = TestIssuer::start();
        let secret = elsewhere.join("secret");
        std::fs::write(&secret, "gateway-secret").unwrap();
        let oidc = format!(
            "{oidc}\nclient-id = \"gateway\"\nclient-secret = {{ file = \"{}\" }}",
            secret.display()
        );
        let (gateway, at) = with_issuer(state, &issuer, "mode = \"oidc\"", &oidc);
        Self {
            issuer,
            gateway,
            at,
        }
    }

    /// Returns a valid token of this subject with this lifetime, in seconds.
    fn token(&self, subject: &str, lifetime: u64) -> String {
        let mut claims = claims(&self.issuer, &self.at, subject, lifetime);
        let token = self.issuer.sign(&claims);
        claims["active"] = json!(true);
        self.issuer.answer_about(&token, claims);
        token
    }

    fn revoke(&self, token: &str) {
        self.issuer.answer_about(token, json!({"active": false}));
    }
}

/// The other token of the same subject expires later, or earlier. Requests come in sessions, or without one.
#[test]
fn a_token_that_is_revoked_ends_its_calls_and_those_of_no_other_token_of_its_subject() {
    for oidc in ["tokens = \"introspection\"", "revocation = \"introspect\""] {
        let state = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let all = Introspected::start(state.path(), elsewhere.path(), oidc);
        let (gateway, at) = (&all.gateway, &all.at);
        for (subject, lifetime) in [("ada", 300), ("bob", 1_800)] {
            let (own, stolen) = (all.token(subject, 900), all.token(subject, lifetime));
            let waits = calling(at, &own, &open(at, &own));
            let first = gateway.wait_for(1)[0]["id"].clone();
            let in_session = calling(at, &stolen, &open(at, &stolen));
            gateway.wait_for(2);
            let bearer = format!("Authorization: Bearer {stolen}");
            let to = at.clone();
            let without_session = thread::spawn(move || round_reply(&to, &[&bearer]));
            let asked = gateway.wait_for(3);
            all.revoke(&stolen);
            for ended in [in_session, without_session] {
                let ended = ended.join().unwrap();
                assert!(ended.body.contains("error"), "{oidc}: {ended:?}");
                assert!(!ended.body.contains("Not done yet"), "{oidc}: {ended:?}");
            }
            // Their questions stay for the same calls with another token.
            for id in asked.iter().map(|question| &question["id"]) {
                if *id != first {
                    accept(gateway, id.as_str().unwrap(), "too late");
                }
            }
            accept(gateway, first.as_str().unwrap(), "for the owner");
            let done = waits.join().unwrap();
            assert!(text(&done.response()).contains("for the owner"), "{done:?}");
        }
    }
}

#[test]
fn a_session_whose_token_was_refreshed_keeps_its_calls_when_the_earlier_one_is_revoked() {
    let state = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let oidc = "tokens = \"introspection\"";
    let all = Introspected::start(state.path(), elsewhere.path(), oidc);
    let (gateway, at) = (&all.gateway, &all.at);
    let (first, second) = (all.token("ada", 900), all.token("ada", 300));
    let session = open(at, &first);
    let waits = calling(at, &first, &session);
    let asked = gateway.wait_for(1);
    let list = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"});
    assert_eq!(post(at, Some(&second), Some(&session), &list).status, 200);
    all.revoke(&first);
    // The issuer has been asked about the first one again once requests with it are refused.
    while post(at, Some(&first), Some(&session), &list).status != 401 {
        thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(post(at, Some(&second), Some(&session), &list).status, 200);
    accept(gateway, asked[0]["id"].as_str().unwrap(), "refreshed");
    let done = waits.join().unwrap();
    assert!(text(&done.response()).contains("refreshed"), "{done:?}");
    // The session ends with the last token that it showed.
    let waits = calling(at, &second, &session);
    gateway.wait_for(1);
    all.revoke(&second);
    let ended = waits.join().unwrap();
    assert!(!ended.body.contains("Not done yet"), "{ended:?}");
}

#[test]
fn a_caller_that_is_blocked_while_a_person_thinks_collects_nothing_until_it_may_call_again() {
    let state = tempfile::tempdir().unwrap();
    let issuer = TestIssuer::start();
    let (gateway, at) = with_issuer(state.path(), &issuer, "mode = \"oidc\"", "");
    let ada = issuer.sign(&claims(&issuer, &at, "ada", 300));
    let bob = issuer.sign(&claims(&issuer, &at, "bob", 300));
    let (adas, bobs) = (open(&at, &ada), open(&at, &bob));
    let waits = calling(&at, &ada, &adas);
    let asked = gateway.wait_for(1);
    let change = |act: &str, issuer: &str, subject: &str| {
        let done = command(state.path(), &["tokens", act, issuer, subject]);
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stderr).unwrap()
    };
    let said = change("block", issuer.url(), "ada");
    assert!(!said.contains("note:"), "{said}");
    // An unknown subject is blocked too, with a warning.
    let said = change("block", issuer.url(), "adda");
    assert!(said.contains("no question for this subject"), "{said}");
    let slash = format!("{}/", issuer.url());
    let said = change("block", &slash, "ada");
    assert!(
        said.contains("exactly as in `[auth]`") && said.contains(issuer.url()),
        "{said}"
    );
    accept(&gateway, asked[0]["id"].as_str().unwrap(), "kept");
    let ended = waits.join().unwrap();
    assert!(!ended.body.contains("kept"), "{ended:?}");
    let list = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"});
    let refused = post(&at, Some(&ada), Some(&adas), &list);
    assert_eq!(
        (refused.status, refused.header("www-authenticate")),
        (403, None)
    );
    assert!(
        refused.body.contains("this caller is blocked"),
        "{refused:?}"
    );
    assert_eq!(post(&at, Some(&bob), Some(&bobs), &list).status, 200);
    let called = std::process::Command::new(PROGRAM)
        .args(["call", "deploy", "--decline", "--token-env", "TOKEN"])
        .args(["--url", &format!("http://{at}/mcp/demo")])
        .env("TOKEN", &ada)
        .output()
        .unwrap();
    let said = String::from_utf8(called.stderr).unwrap();
    assert_eq!(called.status.code(), Some(3), "{said}");
    assert!(said.contains("this caller is blocked"), "{said}");
    let listed = command(state.path(), &["tokens", "list"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains("blocked") && listed.contains(issuer.url()),
        "{listed}"
    );
    change("unblock", issuer.url(), "ada");
    let done = calling(&at, &ada, &open(&at, &ada)).join().unwrap();
    assert!(text(&done.response()).contains("kept"), "{done:?}");
    let twice = command(state.path(), &["tokens", "unblock", issuer.url(), "ada"]);
    assert_eq!(twice.status.code(), Some(2), "{twice:?}");
    let audit = command(state.path(), &["audit", "--json"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    for event in ["caller-blocked", "caller-unblocked"] {
        assert!(audit.contains(event), "{event}: {audit}");
    }
    let by = format!("on the command line, caller ada ({})", issuer.url());
    assert!(audit.contains(&by), "{audit}");
}

/// A stream of a session that a client reads.
struct Listening(BufReader<TcpStream>);

impl Listening {
    fn to(at: &str, token: &str, session: &str) -> Self {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "GET /mcp/demo HTTP/1.1\r\nHost: {at}\r\nAccept: text/event-stream\r\nAuthorization: Bearer {token}\r\n\
             Mcp-Session-Id: {session}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        Self(reader)
    }

    /// Waits for the end. A stream that stays open fails here.
    fn end(mut self) {
        self.0.read_to_string(&mut String::new()).unwrap();
    }
}

#[test]
fn the_stream_of_a_session_ends_with_the_token_of_its_caller() {
    let state = tempfile::tempdir().unwrap();
    let issuer = TestIssuer::start();
    let auth = "mode = \"oidc\"\nleeway = \"0s\"";
    let (_gateway, at) = with_issuer(state.path(), &issuer, auth, "");
    let token = issuer.sign(&claims(&issuer, &at, "ada", 3));
    let session = open(&at, &token);
    Listening::to(&at, &token, &session).end();
    // The session continues for the same caller with the next token.
    let second = issuer.sign(&claims(&issuer, &at, "ada", 300));
    let list = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"});
    assert_eq!(post(&at, Some(&second), Some(&session), &list).status, 200);
    Listening::to(&at, &second, &session);
}

#[test]
fn the_stream_of_a_session_ends_when_the_issuer_ends_the_token() {
    let state = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let issuer = TestIssuer::start();
    let secret = elsewhere.path().join("secret");
    std::fs::write(&secret, "gateway-secret").unwrap();
    let oidc = format!(
        "tokens = \"introspection\"\nclient-id = \"gateway\"\nclient-secret = {{ file = \"{}\" }}",
        secret.display()
    );
    let (_gateway, at) = with_issuer(state.path(), &issuer, "mode = \"oidc\"", &oidc);
    let mut answer =
        json!({"active": true, "sub": "ada", "aud": format!("http://{at}/mcp"), "scope": "mcp"});
    issuer.answer_about("opaque", answer.clone());
    let session = open(&at, "opaque");
    let listening = Listening::to(&at, "opaque", &session);
    answer["active"] = json!(false);
    issuer.answer_about("opaque", answer);
    listening.end();
}

/// The heads of requests, by their paths.
type Heads = Arc<Mutex<Vec<(String, BTreeMap<String, String>)>>>;

/// Starts a server over HTTP that accepts every session, and rejects a token called `exchanged-1`.
fn recorder() -> (String, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let heads = Heads::default();
    let all = heads.clone();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            record(stream, &all);
        }
    });
    (at, heads)
}

fn record(stream: TcpStream, all: &Heads) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let Some(path) = lines.first().and_then(|line| line.split(' ').nth(1)) else {
        return;
    };
    let headers = lines
        .iter()
        .skip(1)
        .filter_map(|line| line.split_once(": "));
    let headers: BTreeMap<String, String> = headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let id = serde_json::from_slice::<Value>(&body).unwrap_or_default()["id"].clone();
    let refused = headers
        .get("authorization")
        .is_some_and(|value| value.ends_with("exchanged-1"));
    all.lock().unwrap().push((path.to_owned(), headers));
    let (status, body) = if refused {
        ("401 Unauthorized", String::new())
    } else if id.is_null() {
        ("202 Accepted", String::new())
    } else {
        let result = json!({"protocolVersion": REVISION, "capabilities": {}, "serverInfo": {"name": "r", "version": "1"}});
        (
            "200 OK",
            json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string(),
        )
    };
    let mut stream = stream;
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nWWW-Authenticate: Bearer\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
}

#[test]
fn no_token_for_the_gateway_goes_to_a_server() {
    let state = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let issuer = TestIssuer::start();
    let secret = elsewhere.path().join("secret");
    std::fs::write(&secret, "operators").unwrap();
    let secret = format!("{{ file = \"{}\" }}", secret.display());
    let (at_server, heads) = recorder();
    let servers: String = [
        ("usual", String::new()),
        ("none", "auth = { mode = \"none\" }".to_owned()),
        ("operator", format!("auth = {{ mode = \"operator\", token = {secret} }}")),
        ("pass", "auth = { mode = \"pass\", header = \"X-Upstream\" }".to_owned()),
        ("exchange", "auth = { mode = \"exchange\", resource = \"https://far.example/mcp\", scopes = [\"run\"] }".to_owned()),
    ]
    .map(|(name, auth)| format!("[servers.{name}]\nurl = \"{at_server}/{name}\"\n{auth}\n"))
    .concat();
    let gateway = Gateway::of_config(
        state.path(),
        &format!(
            "[auth]\nmode = [\"oidc\", \"keys\"]\n[auth.oidc]\nissuer = \"{}\"\naudience = [\"gateway\"]\n\
             client-id = \"gateway\"\nclient-secret = {secret}\n{servers}",
            issuer.url()
        ),
    );
    let at = gateway.serving.clone().unwrap();
    let token = issuer
        .sign(&json!({"iss": issuer.url(), "aud": "gateway", "sub": "ada", "exp": now() + 300}));
    let key = command(
        state.path(),
        &["tokens", "make", "ci", "--scope", "call", "--json"],
    );
    let key: Value = serde_json::from_slice(&key.stdout).unwrap();
    let key = key["token"].as_str().unwrap();
    let send_to = |name: &str, token: &str| {
        let authorization = format!("Authorization: Bearer {token}");
        let line = format!("POST /mcp/{name} HTTP/1.1");
        let head = [
            &line,
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            &authorization,
            "X-Upstream: Bearer passed-on",
        ];
        send(&at, &head, &initialize(REVISION, &json!({})).to_string()).unwrap()
    };
    // A key is only for the gateway: the issuer does not get it either.
    let refused = send_to("exchange", key);
    let words = "a caller with an API key has no token to exchange";
    assert!(refused.body.contains(words), "{refused:?}");
    assert!(issuer.exchanges().is_empty());
    for (name, expected) in [
        ("usual", None),
        ("none", None),
        ("operator", Some("Bearer operators")),
        ("pass", Some("Bearer passed-on")),
        ("exchange", Some("Bearer exchanged-2")),
        ("exchange", Some("Bearer exchanged-2")),
    ] {
        let opened = send_to(name, &token);
        assert_eq!(opened.status, 200, "{name}: {opened:?}");
        let heads = heads.lock().unwrap();
        let (_, last) = heads
            .iter()
            .rfind(|(path, _)| path.ends_with(name))
            .unwrap();
        assert_eq!(
            last.get("authorization").map(String::as_str),
            expected,
            "{name}"
        );
        assert!(!last.contains_key("x-upstream"), "{name}");
    }
    let exchanges = issuer.exchanges();
    assert_eq!(
        exchanges.len(),
        2,
        "once, and once more when the server did not take it"
    );
    assert!(exchanges.iter().all(
        |form| form["subject_token"] == token && form["resource"] == "https://far.example/mcp"
    ));
    issuer.set_down(true);
    let other = issuer
        .sign(&json!({"iss": issuer.url(), "aud": "gateway", "sub": "bob", "exp": now() + 300}));
    let refused = send_to("exchange", &other);
    assert!(
        refused.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no token for the server"),
        "{refused:?}"
    );
    assert_eq!(refused.header("www-authenticate"), None);
    for (path, head) in heads.lock().unwrap().iter() {
        assert!(
            head.values().all(|value| ![&token, &other, key]
                .iter()
                .any(|secret| value.contains(*secret))),
            "{path}"
        );
    }
}

/// Only a trusted client, or an administrator, deploys.
pub(crate) const TRUSTED: &str = r#"
[groups]
admins = { claim = "admins" }
[[rules]]
name = "trusted"
tool = "deploy"
when = 'caller.client == "deploy-bot" || "admins" in groups'
allow = true
[[rules]]
name = "never"
tool = "deploy"
refuse = "not with this client"
"#;

#[test]
fn rules_see_the_token_of_each_request_and_no_other_of_its_subject() {
    let state = tempfile::tempdir().unwrap();
    let issuer = TestIssuer::start();
    let server = format!("command = [\"{PROGRAM}\", \"demo-server\"]\n{TRUSTED}");
    let (gateway, at) = before(state.path(), issuer.url(), "mode = \"oidc\"", "", &server);
    let token = |lifetime: u64, name: &str, value: Value| {
        let mut claims = claims(&issuer, &at, "ada", lifetime);
        claims[name] = value;
        issuer.sign(&claims)
    };
    let weak = token(300, "client_id", json!("other-agent"));
    let session = open(&at, &weak);
    let is_refused = |session: &str| {
        let refused = calling(&at, &weak, session).join().unwrap().response();
        assert!(text(&refused).contains("not with this client"), "{refused}");
        let round = round(&at, &[&format!("Authorization: Bearer {weak}")]);
        assert!(round.contains("not with this client"), "{round}");
    };
    is_refused(&session);
    // Other tokens of the same subject, which expire later, are seen in the same session, and in others.
    let list = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"});
    for strong in [
        token(600, "client_id", json!("deploy-bot")),
        token(900, "groups", json!(["admins"])),
    ] {
        for session in [&session, &open(&at, &strong)] {
            assert_eq!(post(&at, Some(&strong), Some(session), &list).status, 200);
        }
        is_refused(&session);
        is_refused(&open(&at, &weak));
        // A call with it is free, in the session of the other token too.
        let waits = calling(&at, &strong, &session);
        let asked = gateway.wait_for(1);
        is_refused(&session);
        accept(&gateway, asked[0]["id"].as_str().unwrap(), "trusted");
        let done = waits.join().unwrap();
        assert!(text(&done.response()).contains("trusted"), "{done:?}");
        is_refused(&session);
    }
}
