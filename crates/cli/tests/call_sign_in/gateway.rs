//! `gateway --upstream URL --sign-in`: a person signs in with a command, and gateways that run already use the tokens.

use std::io::Write as _;
use std::process::ChildStdin;

use axum::http::HeaderMap;

use super::*;

const REVISION: &str = "2025-11-25";

/// A gateway on stdin and stdout, as a desktop client starts it: without a terminal.
pub(super) struct Gateway {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<std::process::ChildStdout>,
    next: u64,
}

impl Gateway {
    pub(super) fn start(served: &Served, state: &Path, more: &[&str]) -> Self {
        let mut child = gateway(&served.url, state)
            .args(["--inbox", "off", "--record", "memory", "--no-notify"])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            stdin: child.stdin.take(),
            child,
            stdout,
            next: 0,
        }
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
        stdin.flush().unwrap();
    }

    /// Returns the response to a request.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "{method}");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    pub(super) fn initialize(&mut self) -> Value {
        let client = json!({"name": "desktop", "version": "1"});
        let params = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client});
        let response = self.ask("initialize", &params);
        if response.get("result").is_some() {
            self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        response
    }

    pub(super) fn call(&mut self) -> Value {
        self.ask("tools/call", &json!({"name": "today", "arguments": {}}))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn gateway(url: &str, state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"));
    command
        .args(["gateway", "--upstream", url, "--sign-in"])
        .arg("--state")
        .arg(state)
        .env("PATH", "/nonexistent")
        .stdin(Stdio::null());
    command
}

/// Starts the command with which a person signs in.
fn sign_in(served: &Served, state: &Path, more: &[&str]) -> Called {
    let mut child = gateway(&served.url, state)
        .arg("--check")
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    Called {
        child,
        stderr,
        said: String::new(),
    }
}

pub(super) fn text_of(result: &Value) -> &str {
    result["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

pub(super) fn error_of(response: &Value) -> &str {
    response["error"]["message"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_says_what_to_run_and_uses_the_tokens_at_once() {
    // Tokens do not expire during the test: one is renewed only where the server refuses it.
    let starting = tokio::task::spawn_blocking(|| {
        peers::token_provider(&["http://127.0.0.1/callback".to_owned()], "opaque", 3_600)
    });
    let Some(provider) = starting.await.unwrap() else {
        return;
    };
    let mut walker = HttpBrowser::new();
    let served = serve(&provider).await;
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();

    let mut first = Gateway::start(&served, state, &["--name", "calendar"]);
    let refused = tokio::task::block_in_place(|| first.initialize());
    let said = error_of(&refused);
    let expected = format!(
        "mcp-elicit gateway --upstream {} --sign-in --state {} --check",
        served.url,
        state.display()
    );
    assert!(said.contains(&expected), "{refused}");

    let mut person = sign_in(&served, state, &["--scope", "calendar.read"]);
    agree_to(&mut person, &mut walker).await;
    let (code, _, stderr) = tokio::task::block_in_place(|| person.ended());
    assert_eq!(code, Some(0), "{stderr}");

    // The same gateway, and another one that starts later.
    let mut second = Gateway::start(&served, state, &[]);
    for gateway in [&mut first, &mut second] {
        let result = tokio::task::block_in_place(|| {
            gateway.initialize();
            gateway.call()
        });
        assert_eq!(text_of(&result), "nothing until noon", "{result}");
    }

    // A token that the server takes no more is renewed once, for both.
    let before = served.tokens.lock().unwrap().last().unwrap().clone();
    *served.revoked.lock().unwrap() = Some(before.clone());
    served.tokens.lock().unwrap().clear();
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            for gateway in [&mut first, &mut second] {
                scope.spawn(|| assert_eq!(text_of(&gateway.call()), "nothing until noon"));
            }
        });
    });
    let mut renewed = served.tokens.lock().unwrap().clone();
    // A request that was under way may have been let in with the earlier one.
    renewed.retain(|token| *token != before);
    renewed.sort();
    renewed.dedup();
    assert_eq!(renewed.len(), 1, "one of them renewed the token");

    // More is required for this call: nothing runs, and the words say how to agree.
    served.wants_more.store(true, Ordering::SeqCst);
    let refused = tokio::task::block_in_place(|| first.call());
    assert!(
        error_of(&refused).contains("--sign-in --state")
            && error_of(&refused).contains("--scope calendar.write"),
        "{refused}"
    );
    let mut person = sign_in(&served, state, &["--scope", "calendar.write"]);
    let link = agree_to(&mut person, &mut walker).await;
    assert!(link.contains("calendar.read"), "{link}");
    let (code, _, stderr) = tokio::task::block_in_place(|| person.ended());
    assert_eq!(code, Some(0), "{stderr}");
    let result = tokio::task::block_in_place(|| first.call());
    assert_eq!(text_of(&result), "nothing until noon", "{result}");

    // With tokens, the command asks nobody.
    let person = sign_in(&served, state, &[]);
    let (code, _, stderr) = tokio::task::block_in_place(|| person.ended());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!stderr.contains("sign in here"), "{stderr}");
}

/// A server that keeps the headers of its requests, and redirects to another origin if it has one.
async fn recording(redirect: Option<String>) -> (String, Arc<Mutex<Vec<HeaderMap>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let seen: Arc<Mutex<Vec<HeaderMap>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let app = axum::Router::new().fallback(move |request: Request| {
        let (kept, redirect) = (Arc::clone(&kept), redirect.clone());
        async move {
            kept.lock().unwrap().push(request.headers().clone());
            match redirect {
                Some(to) => (StatusCode::TEMPORARY_REDIRECT, [("location", to)]).into_response(),
                None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            }
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_s_headers_go_to_the_server_and_to_no_other_origin() {
    let (other, elsewhere) = recording(None).await;
    let (url, seen) = recording(Some(other)).await;
    let state = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .args([
            "gateway",
            "--upstream",
            &url,
            "--inbox",
            "off",
            "--record",
            "memory",
        ])
        .args([
            "--header",
            "X-Team=ops",
            "--header-env",
            "Authorization=TEST_HEADER",
        ])
        .arg("--state")
        .arg(state.path())
        .env("TEST_HEADER", "Basic hunter2hunter2")
        .env("MCP_ELICIT_LOG", "trace")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut gateway = Gateway {
        stdin: child.stdin.take(),
        stdout: BufReader::new(child.stdout.take().unwrap()),
        next: 0,
        child,
    };
    let refused = tokio::task::block_in_place(|| gateway.initialize());
    assert!(error_of(&refused).contains("307"), "{refused}");
    let mut stderr = gateway.child.stderr.take().unwrap();
    drop(gateway);
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert!(!said.contains("hunter2hunter2"), "{said}");
    {
        let seen = seen.lock().unwrap();
        let sent = &seen[0];
        assert_eq!(sent["x-team"], "ops");
        assert_eq!(sent["authorization"], "Basic hunter2hunter2");
    }
    assert!(elsewhere.lock().unwrap().is_empty());
}

#[test]
fn a_header_that_cannot_be_sent_is_refused_without_its_value() {
    for (header, why) in [
        ("two words=hunter2", "not a valid header name"),
        ("Mcp-Session-Id=hunter2", "set by the transport"),
        ("mcp-param-region=hunter2", "set by the transport"),
        ("Host=hunter2", "set by the transport"),
        ("X-Key=hunter2\r\nHost: y", "cannot be sent"),
    ] {
        let state = tempfile::tempdir().unwrap();
        let ended = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
            .args([
                "gateway",
                "--upstream",
                "http://127.0.0.1:9/",
                "--header",
                header,
                "--check",
            ])
            .arg("--state")
            .arg(state.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && !said.contains("hunter2"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_requires_no_sign_in_is_used_without_one() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let mcp = StreamableHttpService::new(
        || Ok(Calendar),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    let app = axum::Router::new().nest_service("/mcp", mcp);
    tokio::spawn(async move { axum::serve(listener, app).await });
    let served = Served {
        url,
        tokens: Arc::default(),
        is_shut: Arc::default(),
        wants_more: Arc::default(),
        revoked: Arc::default(),
    };
    let state = tempfile::tempdir().unwrap();
    let person = sign_in(&served, state.path(), &[]);
    let (code, _, stderr) = tokio::task::block_in_place(|| person.ended());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("requires no sign-in"), "{stderr}");
    let mut gateway = Gateway::start(&served, state.path(), &[]);
    let result = tokio::task::block_in_place(|| {
        gateway.initialize();
        gateway.call()
    });
    assert_eq!(text_of(&result), "nothing until noon", "{result}");
}
