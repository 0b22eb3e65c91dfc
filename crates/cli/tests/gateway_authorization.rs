//! A server over HTTP that requires an authorization, behind the gateway: a client over HTTP gets the server's own
//! response, and its `Authorization` is passed on to the server; a client on stdio gets an error with the reason.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use mcp_elicit_testkit::peers::{self, Listening, PeerProgram, RunningPeer};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-elicit");

/// Returns a server of each era that accepts only requests with this token.
fn guarded() -> Option<Vec<Listening>> {
    let server = peers::node_script("ts2-server.mjs")?.env("TOKEN", "open-sesame");
    let rounds_only = server.clone().with(["--rounds-only"]);
    let pushed_only = peers::node_script("ts1-server.mjs")?.env("TOKEN", "open-sesame");
    Some(vec![
        server.listen(),
        rounds_only.listen(),
        pushed_only.listen(),
    ])
}

fn gateway(upstream: &str) -> (RunningPeer, String, tempfile::TempDir) {
    let state = tempfile::tempdir().unwrap();
    let (running, url) = gateway_over(&state, upstream, &[], |program| program);
    (running, url, state)
}

/// Starts a gateway over this state folder.
fn gateway_over(
    state: &tempfile::TempDir,
    upstream: &str,
    options: &[&str],
    more: impl FnOnce(PeerProgram) -> PeerProgram,
) -> (RunningPeer, String) {
    let program = PeerProgram::new(PROGRAM)
        .with(["gateway", "--listen", "127.0.0.1:0", "--inbox", "off"])
        .with(["--upstream", upstream, "--state"])
        .with([state.path().to_str().unwrap()])
        .with(options.iter().copied());
    let mut running = more(program).start();
    let lines = BufReader::new(running.child.stderr.take().unwrap()).lines();
    let url = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("serving: http://")?.to_owned()))
        .unwrap();
    (running, url)
}

/// Posts a message. Returns the head and the body of the response.
fn post(at: &str, headers: &[&str], message: &Value) -> (String, String) {
    let (host, path) = at.split_once('/').unwrap();
    let body = message.to_string();
    let mut stream = TcpStream::connect(host).unwrap();
    let more: String = headers.iter().flat_map(|line| [*line, "\r\n"]).collect();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}})
}

fn discover() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}}})
}

#[test]
fn an_http_client_hears_what_the_server_wants_and_brings_it() {
    let Some(servers) = guarded() else { return };
    let rounds = [
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: server/discover",
    ];
    for server in servers {
        let (_gateway, at, _state) = gateway(server.url());
        for (message, headers) in [(initialize(), &[][..]), (discover(), &rounds)] {
            let (head, body) = post(&at, headers, &message);
            assert!(head.starts_with("http/1.1 401"), "{head}\n{body}");
            assert!(
                head.contains("www-authenticate: bearer realm=\"peers\""),
                "{head}"
            );
            assert!(!head.contains("mcp-session-id"), "{head}");
            let told: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(told["id"], 1, "{told}");
            let mut headers = headers.to_vec();
            headers.push("Authorization: Bearer open-sesame");
            let (head, body) = post(&at, &headers, &message);
            assert!(head.starts_with("http/1.1 200"), "{head}\n{body}");
            assert!(body.contains("\"result\""), "{body}");
        }
    }
}

/// Starts a gateway whose clients have the credentials of the server in a header of their own.
fn gateway_that_passes(upstream: &str, state: &tempfile::TempDir) -> (RunningPeer, String) {
    let file = state.path().join("gateway.toml");
    let folder = state.path().join("state");
    let text = format!(
        "listen = \"127.0.0.1:0\"\nstate = '{}'\n[servers.wiki]\nurl = \"{upstream}\"\nauth = {{ mode = \"pass\", header = \"X-Wiki-Authorization\" }}\n",
        folder.display()
    );
    std::fs::write(&file, text).unwrap();
    let program = PeerProgram::new(PROGRAM).with(["gateway", "--config", file.to_str().unwrap()]);
    let mut running = program.start();
    let lines = BufReader::new(running.child.stderr.take().unwrap()).lines();
    let url = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("serving: http://")?.to_owned()))
        .unwrap();
    (running, url)
}

#[test]
fn a_request_without_credentials_gets_none_of_another_client() {
    let Some(servers) = guarded() else { return };
    let rounds = [
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: server/discover",
    ];
    for server in servers {
        let state = tempfile::tempdir().unwrap();
        let (_gateway, at) = gateway_that_passes(server.url(), &state);
        for (message, headers) in [(initialize(), &[][..]), (discover(), &rounds)] {
            let mut with = headers.to_vec();
            with.push("X-Wiki-Authorization: Bearer open-sesame");
            let mut wrong = headers.to_vec();
            wrong.push("X-Wiki-Authorization: Bearer other");
            for (headers, expected) in [(&with[..], "200"), (headers, "401"), (&wrong, "401")] {
                let (head, body) = post(&at, headers, &message);
                let status = format!("http/1.1 {expected}");
                assert!(head.starts_with(&status), "{headers:?} {head}\n{body}");
            }
        }
    }
}

#[test]
fn where_callers_are_verified_neither_their_key_nor_the_servers_challenge_crosses() {
    let Some(server) = peers::node_script("ts2-server.mjs") else {
        return;
    };
    let state = tempfile::tempdir().unwrap();
    let made = std::process::Command::new(PROGRAM)
        .args(["tokens", "make", "caller", "--scope", "call", "--state"])
        .arg(state.path())
        .output()
        .unwrap();
    let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    // The server would accept this key if it ever saw it.
    let server = server.env("TOKEN", &key).listen();
    let shown = format!("Authorization: Bearer {key}");
    let keys = ["--auth", "keys"];
    let (gateway, at) = gateway_over(&state, server.url(), &keys, |program| program);
    let (head, body) = post(&at, &[&shown], &initialize());
    assert!(!head.starts_with("http/1.1 401"), "{head}");
    assert!(!head.contains("www-authenticate"), "{head}");
    assert!(
        body.contains("\"error\"") && !body.contains("\"result\""),
        "{body}"
    );
    drop(gateway);
    // The server gets the operator's token.
    let keys = ["--auth", "keys", "--token-env", "FOR_SERVER"];
    let (_gateway, at) = gateway_over(&state, server.url(), &keys, |program| {
        program.env("FOR_SERVER", &key)
    });
    let (head, body) = post(&at, &[&shown], &initialize());
    assert!(head.starts_with("http/1.1 200"), "{head}\n{body}");
    assert!(body.contains("\"result\""), "{body}");
    // Also for a client that sends other headers which go on.
    let trace = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let (head, body) = post(&at, &[&shown, trace], &initialize());
    assert!(head.starts_with("http/1.1 200"), "{head}\n{body}");
}

/// A caller with a key may serve several users, whose credentials for the server it passes.
#[test]
fn users_of_one_caller_share_no_session_question_or_result() {
    let mut server = PeerProgram::new(PROGRAM)
        .with(["demo-server", "--listen", "127.0.0.1:0"])
        .start();
    let lines = BufReader::new(server.child.stderr.take().unwrap()).lines();
    let upstream = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line[line.find("http://")?..].trim().to_owned()))
        .unwrap();
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("state");
    let file = state.path().join("gateway.toml");
    let text = format!(
        "listen = \"127.0.0.1:0\"\ninbox = \"127.0.0.1:0\"\nstate = '{}'\n[auth]\nmode = \"keys\"\n\
         [servers.demo]\nurl = \"{upstream}\"\nhold = 1\nauth = {{ mode = \"pass\", header = \"X-User\" }}\n",
        folder.display()
    );
    std::fs::write(&file, text).unwrap();
    let own = |args: &[&str]| {
        let run = std::process::Command::new(PROGRAM)
            .args(args)
            .arg("--state")
            .arg(&folder)
            .output()
            .unwrap();
        String::from_utf8(run.stdout).unwrap().trim().to_owned()
    };
    let key = own(&["tokens", "make", "agent", "--scope", "call"]);
    let program = PeerProgram::new(PROGRAM).with(["gateway", "--config", file.to_str().unwrap()]);
    let mut running = program.start();
    let lines = BufReader::new(running.child.stderr.take().unwrap()).lines();
    let at = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("serving: http://")?.to_owned()))
        .unwrap();
    let key = format!("Authorization: Bearer {key}");
    let user = |name: &str| format!("X-User: Bearer {name}");
    let open = |name: &str| {
        let (head, body) = post(&at, &[&key, &user(name)], &initialize());
        assert!(head.starts_with("http/1.1 200"), "{head}\n{body}");
        let mut ids = head
            .lines()
            .filter_map(|line| line.strip_prefix("mcp-session-id: "));
        format!("Mcp-Session-Id: {}", ids.next().unwrap())
    };
    let call = |session: &str, name: &str| {
        let frame = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "deploy"}});
        post(&at, &[&key, &user(name), session], &frame)
    };
    let (one, two) = (open("one"), open("two"));
    assert!(call(&one, "two").0.starts_with("http/1.1 404"));
    let questions = || {
        own(&["inbox", "list", "--json"])
            .matches("\"message\"")
            .count()
    };
    for (session, name, expected) in [(&one, "one", 1), (&open("one"), "one", 1), (&two, "two", 2)]
    {
        let (_, body) = call(session, name);
        assert!(body.contains("mcp-elicit/handed-back"), "{name}: {body}");
        assert_eq!(questions(), expected, "{name}");
    }
}

/// Returns the response to a client on stdio from a gateway in front of this server.
fn on_stdio(server: &Listening, more: impl FnOnce(PeerProgram) -> PeerProgram) -> Value {
    let state = tempfile::tempdir().unwrap();
    let program = PeerProgram::new(PROGRAM)
        .with(["gateway", "--inbox", "off", "--upstream", server.url()])
        .with(["--state", state.path().to_str().unwrap()]);
    let mut running = more(program).start();
    let mut stdin = running.child.stdin.take().unwrap();
    writeln!(stdin, "{}", initialize()).unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(running.child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn a_stdio_client_is_told_what_is_wrong() {
    let Some(servers) = guarded() else { return };
    for server in servers {
        let told = on_stdio(&server, |gateway| gateway);
        let message = told["error"]["message"].as_str().unwrap();
        assert!(message.contains("authorization"), "{told}");
    }
}

#[test]
fn the_token_of_an_environment_variable_lets_in() {
    let Some(servers) = guarded() else { return };
    let token = ["--token-env", "SESAME"];
    for server in servers {
        let told = on_stdio(&server, |gateway| {
            gateway.with(token).env("SESAME", "open-sesame")
        });
        assert!(told["result"]["serverInfo"].is_object(), "{told}");

        let call = PeerProgram::new(PROGRAM)
            .with(["call", "echo", "text=hello", "--url", server.url()])
            .with(token);
        let let_in = call.clone().env("SESAME", "open-sesame").run();
        assert!(let_in.status.success(), "{}", let_in.stderr);
        let wrong = call.clone().env("SESAME", "closed").run();
        assert_eq!(wrong.status.code(), Some(3), "{}", wrong.stderr);
        assert!(wrong.stderr.contains("--token-env"), "{}", wrong.stderr);
        let none = call.run();
        assert_eq!(none.status.code(), Some(2), "{}", none.stderr);
        assert!(none.stderr.contains("SESAME"), "{}", none.stderr);
    }
}
