//! Clients as they were seen to behave, one raw client each, before the gateway with default options: a question that no
//! person answered at the client is in the inbox, and its answer reaches the server once.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[expect(dead_code, reason = "other tests use the rest")]
mod raw;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use raw::{DEMO_SERVER, PATIENCE, Raw, command, gateway, inbox, text};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The answer of a client's program to each dialog, as a member of the response.
type Says = (&'static str, Value);

/// A client: its name, declarations, environment and `_meta`, and its answer to a dialog.
struct Client {
    name: &'static str,
    revision: &'static str,
    elicitation: Option<Value>,
    env: Option<(&'static str, &'static str)>,
    meta: Value,
    says: Option<Says>,
}

impl Client {
    fn new(name: &'static str, says: Option<Says>) -> Self {
        Self {
            name,
            revision: "2025-11-25",
            elicitation: Some(json!({})),
            env: None,
            meta: json!({}),
            says,
        }
    }

    fn start(&self, state: &Path, options: &[&str]) -> Raw {
        let mut command = gateway(state, options, &DEMO_SERVER);
        command.env_remove("CLAUDE_CODE_ENTRYPOINT");
        command.env("XDG_CONFIG_HOME", state);
        command.envs(self.env);
        command.stderr(Stdio::piped());
        let mut raw = Raw::start(command);
        let mut capabilities = json!({"roots": {}});
        if let Some(elicitation) = &self.elicitation {
            capabilities["elicitation"] = elicitation.clone();
        }
        raw.send(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": self.revision, "capabilities": capabilities,
            "clientInfo": {"name": self.name, "version": "1"}}}),
        );
        raw.result(1);
        raw.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        raw
    }

    fn call(&self, raw: &mut Raw, id: u64) {
        let mut call = raw::call(id, "deploy", &json!({}));
        for (name, value) in self.meta.as_object().unwrap() {
            call["params"]["_meta"][name] = value.clone();
        }
        raw.send(&call);
    }

    /// Answers dialogs until the gateway says that it waits for a person. Returns the number of dialogs.
    fn until_held(&self, raw: &mut Raw) -> usize {
        let mut dialogs = 0;
        loop {
            let frame = raw.next();
            match frame["method"].as_str() {
                Some("elicitation/create") => {
                    dialogs += 1;
                    let (member, value) = self.says.as_ref().expect("it is not asked");
                    let mut response = json!({"jsonrpc": "2.0", "id": frame["id"]});
                    response[*member] = value.clone();
                    raw.send(&response);
                }
                Some("notifications/progress") => return dialogs,
                _ => panic!("the call is held: {frame}"),
            }
        }
    }
}

fn says_error(code: i64) -> Says {
    ("error", json!({"code": code, "message": "no"}))
}

fn says_act(action: &str) -> Says {
    ("result", json!({"action": action}))
}

/// Writes a file in which people at this client need a minute, as on a busy machine, and returns its path.
fn slow_people(folder: &TempDir, name: &str) -> String {
    let file = folder.path().join("slow.toml");
    let entry = format!(
        "[[client]]\nmatch = {{ name = \"{name}\" }}\ndoubt = \"60s\"\n\
         evidence = [{{ on = 2026-11-26, version = \"1\", how = \"seen\", what = \"a busy machine\" }}]\n"
    );
    std::fs::write(&file, entry).unwrap();
    file.to_str().unwrap().to_owned()
}

fn audit(state: &Path) -> Vec<Value> {
    let done = command(state, &["audit", "--json"]);
    let lines = String::from_utf8(done.stdout).unwrap();
    let read = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    lines.lines().map(read).collect()
}

/// Returns the words of the events of questions.
fn words(audit: &[Value]) -> Vec<&str> {
    let event = |entry: &Value| entry.get("entry").unwrap_or(entry)["event"].clone();
    let known = [
        "asked",
        "client-not-a-person",
        "answered",
        "delivered",
        "declined",
        "cancelled",
    ];
    let mut found = Vec::new();
    for entry in audit {
        let event = event(entry);
        found.extend(known.iter().find(|word| event == **word));
    }
    found
}

/// A person answers the only question; the call ends with it.
fn answered_in_inbox(raw: &Raw, state: &Path, id: u64) {
    let (_, open) = inbox(state, &["list"]);
    assert_eq!(open.len(), 1, "{open:?}");
    assert_eq!(open[0]["askedInClient"], false, "{open:?}");
    let question = open[0]["id"].as_str().unwrap();
    assert!(inbox(state, &["accept", question, "environment=staging"]).0);
    let done = raw.result(id);
    assert!(text(&done).contains("staging"), "{done}");
}

#[test]
fn clients_that_declare_and_cannot_ask_have_their_questions_answered_in_the_inbox() {
    // Mastra 0.14.5, the TypeScript SDK and FastMCP without a handler, and others.
    for says in [
        says_error(-32601),
        says_error(-32600),
        says_error(-32603),
        says_error(-32602),
        ("result", json!({})),
        says_act("reject"),
    ] {
        let state = tempfile::tempdir().unwrap();
        let client = Client::new("declares", Some(says));
        let mut raw = client.start(state.path(), &[]);
        client.call(&mut raw, 2);
        assert_eq!(client.until_held(&mut raw), 1, "{:?}", client.says);
        answered_in_inbox(&raw, state.path(), 2);
        // It is remembered.
        client.call(&mut raw, 3);
        assert_eq!(client.until_held(&mut raw), 0, "{:?}", client.says);
        answered_in_inbox(&raw, state.path(), 3);
        drop(raw);
        let mut audit = audit(state.path());
        // The second call may ask before the delivery of the first is noted.
        let of_first = audit[0]["entry"]["id"].clone();
        audit.retain(|link| link["entry"]["id"] == of_first);
        let one = ["asked", "client-not-a-person", "answered", "delivered"];
        assert_eq!(words(&audit), one, "{audit:?}");
    }
}

#[test]
fn an_empty_accept_of_a_form_with_fields_is_asked_once_more_and_then_of_people() {
    let state = tempfile::tempdir().unwrap();
    let accepts = Some(("result", json!({"action": "accept", "content": {}})));
    let client = Client::new("accepts", accepts);
    let mut raw = client.start(state.path(), &[]);
    client.call(&mut raw, 2);
    assert_eq!(client.until_held(&mut raw), 2);
    answered_in_inbox(&raw, state.path(), 2);
}

#[test]
fn an_act_at_once_of_a_client_that_is_known_for_it_is_asked_of_people() {
    for (name, action) in [
        ("claude-code", "cancel"),
        ("claude-code", "decline"),
        ("codex-mcp-client", "decline"),
        ("codex-mcp-client", "accept"),
    ] {
        let state = tempfile::tempdir().unwrap();
        let client = Client::new(name, Some(says_act(action)));
        let own = tempfile::tempdir().unwrap();
        let file = slow_people(&own, name);
        let mut raw = client.start(state.path(), &["--profiles", &file]);
        client.call(&mut raw, 2);
        assert_eq!(client.until_held(&mut raw), 1, "{name} {action}");
        answered_in_inbox(&raw, state.path(), 2);
        drop(raw);
        let audit = audit(state.path());
        let said = audit.iter().map(Value::to_string).collect::<String>();
        assert!(said.contains("too-fast") && said.contains(name), "{said}");
        assert!(!words(&audit).contains(&"cancelled"), "{said}");
    }
}

#[test]
fn a_run_without_a_person_is_never_asked() {
    let print = Client {
        env: Some(("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")),
        ..Client::new("claude-code", None)
    };
    let exec = Client {
        revision: "2025-06-18",
        elicitation: Some(json!({"form": {}, "url": {}})),
        meta: json!({"x-codex-turn-metadata": {"turn_trigger": "exec"}}),
        ..Client::new("codex-mcp-client", None)
    };
    let opencode = Client {
        elicitation: None,
        ..Client::new("opencode", None)
    };
    let gemini = Client {
        revision: "2025-06-18",
        elicitation: None,
        ..Client::new("gemini-cli-mcp-client", None)
    };
    let no_person = "no person sits at this client";
    let no_forms = "this client shows no forms";
    for (client, why) in [
        (print, no_person),
        (exec, no_person),
        (opencode, no_forms),
        (gemini, no_forms),
    ] {
        let state = tempfile::tempdir().unwrap();
        let mut raw = client.start(state.path(), &[]);
        client.call(&mut raw, 2);
        assert_eq!(client.until_held(&mut raw), 0, "{}", client.name);
        answered_in_inbox(&raw, state.path(), 2);
        drop(raw.stdin.take());
        let log = std::io::read_to_string(raw.child.stderr.take().unwrap()).unwrap();
        assert_eq!(log.matches(why).count(), 1, "{log}");
        assert!(log.contains(client.name), "{log}");
    }
}

#[test]
fn an_operator_says_how_fast_a_person_is_and_which_clients_are_programs() {
    let state = tempfile::tempdir().unwrap();
    let client = Client::new("some-agent", Some(says_act("decline")));
    let mut raw = client.start(state.path(), &["--doubt", "20s"]);
    client.call(&mut raw, 2);
    assert_eq!(client.until_held(&mut raw), 1);
    answered_in_inbox(&raw, state.path(), 2);
    drop(raw);

    let state = tempfile::tempdir().unwrap();
    let own = tempfile::tempdir().unwrap();
    let file = own.path().join("own.toml");
    let entry = "[[client]]\nmatch = { name = \"some-*\" }\ndialog = \"none\"\n\
                 evidence = [{ on = 2026-11-26, version = \"1\", how = \"seen\", what = \"runs in CI\" }]\n";
    std::fs::write(&file, entry).unwrap();
    let mut raw = client.start(state.path(), &["--profiles", file.to_str().unwrap()]);
    client.call(&mut raw, 2);
    assert_eq!(client.until_held(&mut raw), 0);
    answered_in_inbox(&raw, state.path(), 2);
}

#[test]
fn where_only_the_client_may_answer_its_act_counts_and_the_audit_doubts_it() {
    let state = tempfile::tempdir().unwrap();
    let client = Client::new("claude-code", Some(says_act("decline")));
    let own = tempfile::tempdir().unwrap();
    let file = slow_people(&own, "claude-code");
    let options = ["--answer-with", "client", "--profiles", &file];
    let mut raw = client.start(state.path(), &options);
    client.call(&mut raw, 2);
    let dialog = raw.next();
    assert_eq!(dialog["method"], "elicitation/create");
    raw.send(&json!({"jsonrpc": "2.0", "id": dialog["id"], "result": {"action": "decline"}}));
    raw.result(2);
    // It writes what was left behind before it ends.
    drop(raw.stdin.take());
    raw.child.wait().unwrap();
    drop(raw);
    let audit = audit(state.path());
    assert_eq!(
        words(&audit)[..3],
        ["asked", "client-not-a-person", "declined"],
        "{audit:?}"
    );
}

#[test]
fn the_profiles_are_listed_with_their_evidence_and_why_they_match() {
    let program = || {
        let mut command = Command::new(raw::PROGRAM);
        command.arg("clients").env("XDG_CONFIG_HOME", "/nowhere");
        command
    };
    let all = program().arg("--json").output().unwrap();
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    let clients = all["clients"].as_array().unwrap();
    assert!(clients.len() >= 12);
    assert!(
        clients
            .iter()
            .all(|one| one["evidence"][0]["on"].is_string())
    );
    let shown = program().output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("codex-exec") && shown.contains("seen 2026-11-26"),
        "{shown}"
    );
    for (entrypoint, dialog) in [("sdk-cli", json!("none")), ("cli", Value::Null)] {
        let variable = format!("CLAUDE_CODE_ENTRYPOINT={entrypoint}");
        let one = program()
            .args(["claude-code", "--env", &variable, "--json"])
            .output()
            .unwrap();
        let one: Value = serde_json::from_slice(&one.stdout).unwrap();
        assert_eq!(
            one["profile"].get("dialog").cloned().unwrap_or_default(),
            dialog,
            "{one}"
        );
        assert_eq!(one["profile"]["doubt"], "150ms");
        let entries = one["entries"].as_array().unwrap();
        let environment = entries
            .iter()
            .flat_map(|entry| entry["conditions"].as_array().unwrap());
        let environment: Vec<_> = environment
            .filter(|condition| condition["says"].as_str().unwrap().contains("ENTRYPOINT"))
            .collect();
        assert_eq!(
            environment[0]["holds"],
            json!(dialog == json!("none")),
            "{one}"
        );
    }
}

#[test]
fn a_client_is_played_as_it_was_seen_to_behave() {
    for (client, exit, said) in [
        ("claude-code-print", 1, "cancel"),
        ("codex-exec", 1, "decline"),
    ] {
        let done = Command::new(raw::PROGRAM)
            .args([
                "call",
                "deploy",
                "--as",
                client,
                "--json",
                "--",
                raw::PROGRAM,
                "demo-server",
            ])
            .output()
            .unwrap();
        let lines = String::from_utf8(done.stdout).unwrap();
        assert_eq!(done.status.code(), Some(exit), "{lines}");
        let lines: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let answered = lines
            .iter()
            .find(|line| line["event"] == "answered")
            .unwrap();
        assert_eq!(
            (&answered["by"], &answered["result"]["action"]),
            (&json!("client"), &json!(said))
        );
        assert_eq!(
            lines[0]["as"],
            if client.starts_with("codex") {
                "codex-mcp-client"
            } else {
                "claude-code"
            }
        );
    }
    // It shows this form to a person, who has answered beforehand.
    let done = Command::new(raw::PROGRAM)
        .args([
            "call",
            "deploy",
            "--as",
            "codex",
            "--answer",
            "environment=staging",
        ])
        .args(DEMO_SERVER)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        done.status.success() && text.contains("staging"),
        "{done:?}"
    );
    // A form with other kinds of field is accepted as if nothing was asked, which the server refuses.
    let done = Command::new(raw::PROGRAM)
        .args(["call", "profile", "--as", "codex", "--json"])
        .args(DEMO_SERVER)
        .output()
        .unwrap();
    let lines = String::from_utf8(done.stdout).unwrap();
    assert!(lines.contains(r#""content":{}"#), "{lines}");
    let done = Command::new(raw::PROGRAM)
        .args(["call", "deploy", "--as", "nobody"])
        .args(DEMO_SERVER)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        done.status.code() == Some(2) && said.contains("codex-exec"),
        "{said}"
    );
}

#[test]
fn a_mistake_in_profiles_is_shown_with_its_place() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("own.toml");
    std::fs::write(
        &file,
        "[[client]]\nmatch = { name = \"a\" }\nform = \"never\"\n",
    )
    .unwrap();
    for words in [
        vec!["clients", "--profiles"],
        vec![
            "gateway",
            "--check",
            "--upstream",
            "http://127.0.0.1:9/mcp",
            "--profiles",
        ],
    ] {
        let done = Command::new(raw::PROGRAM)
            .args(&words)
            .arg(&file)
            .env("XDG_CONFIG_HOME", "/nowhere")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(
            said.contains("own.toml:3:8") && said.contains("never"),
            "{said}"
        );
    }
}

/// The same over HTTP: a client with a session, whose dialog is on its call's stream.
#[test]
fn over_http_too() {
    let state = tempfile::tempdir().unwrap();
    let own = tempfile::tempdir().unwrap();
    let file = slow_people(&own, "claude-code");
    let options = ["--listen", "127.0.0.1:0", "--profiles", &file];
    let mut command = gateway(state.path(), &options, &DEMO_SERVER);
    command.env("XDG_CONFIG_HOME", state.path());
    let mut child = command
        .stderr(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let url = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| {
            let start = line.find("http://")?;
            let url = line[start..]
                .split_whitespace()
                .next()?
                .trim_end_matches([',', ')', '.']);
            url.ends_with("/mcp").then(|| url.to_owned())
        })
        .expect("the address");
    std::thread::spawn(move || lines.for_each(drop));
    let at = url
        .trim_start_matches("http://")
        .trim_end_matches("/mcp")
        .to_owned();
    let post = |session: Option<&str>, body: &Value| {
        let mut stream = TcpStream::connect(&at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let session = session.map(|session| {
            format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n")
        });
        let body = body.to_string();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{}content-length: {}\r\n\r\n{body}",
            session.unwrap_or_default(),
            body.len()
        )
        .unwrap();
        BufReader::new(stream).lines().map_while(Result::ok)
    };
    let opening = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "claude-code", "version": "2"}}});
    let session = post(None, &opening)
        .find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_it = name.eq_ignore_ascii_case("mcp-session-id");
            is_it.then(|| value.trim().to_owned())
        })
        .unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "deploy", "arguments": {}, "_meta": {"progressToken": 2}}});
    let mut frames = post(Some(&session), &call).filter_map(|line| {
        let data = line.strip_prefix("data:")?.trim().to_owned();
        serde_json::from_str::<Value>(&data).ok()
    });
    let dialog = frames
        .find(|frame| frame["method"] == "elicitation/create")
        .unwrap();
    let cancel = json!({"jsonrpc": "2.0", "id": dialog["id"], "result": {"action": "cancel"}});
    assert!(
        post(Some(&session), &cancel)
            .next()
            .unwrap()
            .contains("202")
    );
    frames
        .find(|frame| frame["method"] == "notifications/progress")
        .unwrap();
    let (_, open) = inbox(state.path(), &["list"]);
    assert_eq!(open.len(), 1);
    let id = open[0]["id"].as_str().unwrap();
    assert!(inbox(state.path(), &["accept", id, "environment=staging"]).0);
    let done = frames.find(|frame| frame["id"] == 2).unwrap();
    assert!(text(&done).contains("staging"), "{done}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn watch_prints_a_question_again_when_it_comes_to_people() {
    let state = tempfile::tempdir().unwrap();
    let client = Client::new("declares-and-errs", None);
    let mut raw = client.start(state.path(), &[]);
    client.call(&mut raw, 2);
    let dialog = loop {
        let frame = raw.next();
        if frame["method"] == "elicitation/create" {
            break frame;
        }
    };
    let mut watch = Command::new(raw::PROGRAM);
    watch
        .args(["inbox", "watch", "--json", "--state"])
        .arg(state.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut watch = watch.spawn().unwrap();
    let mut printed = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&printed.next().unwrap().unwrap()).unwrap();
    let first = next();
    assert_eq!(first["askedInClient"], true, "{first}");
    let error = json!({"code": -32601, "message": "no handler"});
    raw.send(&json!({"jsonrpc": "2.0", "id": dialog["id"], "error": error}));
    let second = next();
    assert_eq!(second["id"], first["id"]);
    assert_eq!(second["askedInClient"], false, "{second}");
    watch.kill().unwrap();
    watch.wait().unwrap();
}
