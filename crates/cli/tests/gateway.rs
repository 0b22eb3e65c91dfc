//! The gateway as a person uses it: a client that cannot be asked, a server that asks, the inbox, and an answer that
//! arrives. Both sides are real processes; the server is `demo-server` on stdio or HTTP.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod raw;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use raw::{DEMO_SERVER, PATIENCE, PROGRAM, Raw, gateway, inbox, text};
use serde_json::json;

/// The interval at which the record is read, and the number of readings before a test gives up.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: usize = 1_200;

/// Returns the only pending question, as soon as there is one.
fn waiting(raw: &Raw, state: &Path) -> String {
    // Progress on the call's token announces the question.
    let told = raw.next();
    assert_eq!(told["method"], "notifications/progress", "{told}");
    let (_, open) = inbox(state, &["list"]);
    assert_eq!(open.len(), 1, "{open:?}");
    open[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_client_that_cannot_ask_gets_a_persons_answer() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let state = tempfile::tempdir().unwrap();
        let mut raw = Raw::start(gateway(state.path(), &["--name", "demo"], &DEMO_SERVER));
        let opened = raw.initialize(revision, &json!({}));
        assert_eq!(opened["result"]["protocolVersion"], revision);
        raw.call(2, "deploy", &json!({}));
        let id = waiting(&raw, state.path());
        let (_, whole) = inbox(state.path(), &["show", &id]);
        assert_eq!(
            (&whole[0]["server"], &whole[0]["target"]),
            (&json!("demo"), &json!("deploy"))
        );
        let (bad, _) = inbox(state.path(), &["accept", &id, "environment=nowhere"]);
        assert!(!bad, "an answer that does not fit is refused");
        let (good, _) = inbox(state.path(), &["accept", &id[..8], "environment=staging"]);
        assert!(good);
        let (late, _) = inbox(state.path(), &["decline", &id]);
        assert!(!late, "the first answer stands");
        let done = raw.result(2);
        assert!(text(&done).contains("staging"), "{done}");
    }
}

#[test]
fn a_call_is_handed_back_and_resumed() {
    let state = tempfile::tempdir().unwrap();
    let mut raw = Raw::start(gateway(state.path(), &["--hold", "0"], &DEMO_SERVER));
    raw.initialize("2025-11-25", &json!({}));
    raw.call(2, "deploy", &json!({}));
    let back = raw.result(2);
    assert!(text(&back).starts_with("Not done yet"), "{back}");
    let (_, open) = inbox(state.path(), &["list"]);
    let id = open[0]["id"].as_str().unwrap();
    assert!(inbox(state.path(), &["accept", id, "environment=staging"]).0);
    // An answer given in the meantime is delivered to a repeated call; the server may still be at work.
    let mut tries = 3;
    let done = loop {
        raw.call(tries, "deploy", &json!({}));
        let done = raw.result(tries);
        if !text(&done).starts_with("Not done yet") || tries > 40 {
            break done;
        }
        tries += 1;
    };
    assert!(text(&done).contains("staging"), "{done}");
    let (_, ended) = inbox(state.path(), &["list", "--ended"]);
    assert_eq!(ended.len(), 1, "asked once: {ended:?}");
}

/// A model reads an error result as a failure of the tool.
#[test]
fn a_call_of_a_tool_that_no_client_has_listed_is_handed_back_as_a_plain_result() {
    let mut listening = Command::new(PROGRAM);
    listening.args(["demo-server", "--http", "127.0.0.1:0"]);
    let listening = Served::start(listening, "/mcp");
    let upstream = ["--upstream", listening.url.as_str()];
    for (revision, server) in [
        ("2026-07-28", &DEMO_SERVER[..]),
        ("2026-07-28", &upstream),
        ("2025-06-18", &upstream),
        ("2025-11-25", &upstream),
    ] {
        let state = tempfile::tempdir().unwrap();
        let options = ["--hold", "2", "--server-revision", revision];
        let mut raw = Raw::start(gateway(state.path(), &options, server));
        raw.initialize("2025-11-25", &json!({}));
        raw.call(2, "deploy", &json!({}));
        let back = raw.result(2);
        assert!(text(&back).starts_with("Not done yet"), "{back}");
        assert_ne!(back["result"]["isError"], true, "{revision}: {back}");
    }
}

#[test]
fn a_call_that_is_handed_back_has_an_exit_code_of_its_own() {
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let state = tempfile::tempdir().unwrap();
        let call = || {
            let mut command = Command::new(PROGRAM);
            command.args(["call", "deploy", "--protocol", revision]);
            command.args(["--decline", "--", PROGRAM, "gateway", "--hold", "0"]);
            command.args(["--answer-with", "inbox", "--inbox", "127.0.0.1:0"]);
            command.arg("--state").arg(state.path());
            command.args(DEMO_SERVER).output().unwrap()
        };
        let ended = call();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(said.contains("Not done yet"), "{revision}: {ended:?}");
        assert_eq!(ended.status.code(), Some(6), "{revision}: {ended:?}");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(!said.contains("reported an error"), "{said}");
        let (_, open) = inbox(state.path(), &["list"]);
        let id = open[0]["id"].as_str().unwrap();
        assert!(inbox(state.path(), &["decline", id]).0);
        let mut codes = std::iter::repeat_with(|| call().status.code());
        let last = codes.by_ref().take(LOOKS).find(|code| *code != Some(6));
        assert!(matches!(last, Some(Some(0 | 1))), "{revision}: {last:?}");
    }
}

#[test]
fn an_answer_survives_the_gateway_being_killed() {
    let state = tempfile::tempdir().unwrap();
    let mut first = Raw::start(gateway(state.path(), &[], &DEMO_SERVER));
    first.initialize("2025-11-25", &json!({}));
    first.call(2, "deploy", &json!({}));
    let id = waiting(&first, state.path());
    first.child.kill().unwrap();
    first.child.wait().unwrap();

    let mut second = Raw::start(gateway(state.path(), &[], &DEMO_SERVER));
    second.initialize("2025-11-25", &json!({}));
    let (_, open) = inbox(state.path(), &["list"]);
    assert_eq!(open[0]["id"], json!(id), "the question is still there");
    assert_eq!(open[0]["waitedFor"], json!(false));
    assert!(inbox(state.path(), &["accept", &id, "environment=staging"]).0);
    second.call(2, "deploy", &json!({}));
    let done = second.result(2);
    assert!(text(&done).contains("staging"), "{done}");
    let (_, ended) = inbox(state.path(), &["list", "--ended"]);
    assert_eq!(ended.len(), 1, "it was not asked twice: {ended:?}");
    drop(second);
    let audit = Command::new(PROGRAM)
        .args(["audit", "--json", "--state"])
        .arg(state.path())
        .output()
        .unwrap();
    let lines = String::from_utf8(audit.stdout).unwrap();
    assert!(
        audit.status.success() && lines.contains("\"delivered\"") && !lines.contains("staging"),
        "{lines}"
    );
}

/// Closes the client's end, as a stopped client does, and waits for the gateway to end.
fn close(mut raw: Raw) {
    raw.stdin = None;
    raw.child.wait().unwrap();
}

#[test]
fn a_call_that_was_handed_back_goes_on_after_a_normal_close() {
    let state = tempfile::tempdir().unwrap();
    let open = || {
        let mut raw = Raw::start(gateway(state.path(), &["--hold", "0"], &DEMO_SERVER));
        raw.initialize("2025-11-25", &json!({}));
        raw
    };
    let mut first = open();
    first.call(2, "deploy", &json!({}));
    assert!(text(&first.result(2)).starts_with("Not done yet"));
    close(first);
    let mut second = open();
    let (_, waiting) = inbox(state.path(), &["list"]);
    let id = waiting[0]["id"].as_str().unwrap();
    assert!(inbox(state.path(), &["accept", id, "environment=staging"]).0);
    second.call(2, "deploy", &json!({}));
    let done = second.result(2);
    assert!(text(&done).contains("staging"), "{done}");
    let (_, ended) = inbox(state.path(), &["list", "--ended"]);
    assert_eq!(ended.len(), 1, "asked once: {ended:?}");
}

/// Returns the number of results in the record.
fn kept_results(state: &Path) -> i64 {
    let file = rusqlite::Connection::open(state.join("record.sqlite")).unwrap();
    let count = "SELECT count(*) FROM call";
    file.query_row(count, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_result_that_nobody_waited_for_is_found_after_a_normal_close() {
    let state = tempfile::tempdir().unwrap();
    let open = || {
        let mut raw = Raw::start(gateway(state.path(), &["--hold", "0"], &DEMO_SERVER));
        raw.initialize("2025-11-25", &json!({}));
        raw
    };
    let mut first = open();
    first.call(2, "deploy", &json!({}));
    assert!(text(&first.result(2)).starts_with("Not done yet"));
    let (_, waiting) = inbox(state.path(), &["list"]);
    let id = waiting[0]["id"].as_str().unwrap();
    assert!(inbox(state.path(), &["accept", id, "environment=staging"]).0);
    let mut looks = 0;
    while kept_results(state.path()) == 0 {
        looks += 1;
        assert!(looks < LOOKS, "the server never finished");
        std::thread::sleep(LOOK);
    }
    close(first);
    let mut second = open();
    second.call(5, "deploy", &json!({}));
    let done = second.result(5);
    assert!(text(&done).contains("staging"), "{done}");
    assert_eq!(kept_results(state.path()), 0, "given away once");
    let (_, ended) = inbox(state.path(), &["list", "--ended"]);
    assert_eq!(ended.len(), 1, "asked once: {ended:?}");
}

#[test]
fn a_rounds_client_is_answered_and_asked_in_its_own_era() {
    let state = tempfile::tempdir().unwrap();
    for (capabilities, by_client) in [
        (json!({}), false),
        (json!({"elicitation": {"form": {}, "url": {}}}), true),
    ] {
        let mut raw = Raw::start(gateway(state.path(), &["--record", "memory"], &DEMO_SERVER));
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "progressToken": "p",
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities});
        raw.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}));
        let found = raw.result(1);
        assert!(
            found["result"]["supportedVersions"]
                .as_array()
                .is_some_and(|all| all.contains(&json!("2026-07-28"))),
            "{found}"
        );
        let params = json!({"name": "deploy", "arguments": {}, "_meta": meta});
        raw.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}));
        let done = if by_client {
            let asked = raw.result(2);
            assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
            let key = asked["result"]["inputRequests"]
                .as_object()
                .unwrap()
                .keys()
                .next()
                .unwrap()
                .clone();
            let mut retry = params.clone();
            retry["requestState"] = asked["result"]["requestState"].clone();
            retry["inputResponses"] =
                json!({key: {"action": "accept", "content": {"environment": "staging"}}});
            raw.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": retry}));
            raw.result(3)
        } else {
            let id = waiting(&raw, state.path());
            assert!(inbox(state.path(), &["accept", &id, "environment=staging"]).0);
            raw.result(2)
        };
        assert!(text(&done).contains("staging"), "{done}");
    }
}

/// A gateway or a server over HTTP, and its address.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start(mut command: Command, word: &str) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (urls, found) = mpsc::channel();
        let word = word.to_owned();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if let Some(at) = line.find("http://").filter(|_| line.contains(&word)) {
                    let url: String = line[at..]
                        .chars()
                        .take_while(|c| !c.is_whitespace())
                        .collect();
                    let _ = urls.send(url);
                }
            }
        });
        let url = found.recv_timeout(PATIENCE).expect("an address");
        Self { child, url }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// On SIGTERM, held calls are handed back with the inbox's address, the server is ended, and nothing fails.
#[cfg(unix)]
#[test]
fn a_stop_hands_back_what_is_held() {
    let state = tempfile::tempdir().unwrap();
    let mut raw = Raw::start(gateway(state.path(), &[], &DEMO_SERVER));
    raw.initialize("2025-11-25", &json!({}));
    raw.call(2, "deploy", &json!({}));
    waiting(&raw, state.path());
    let stopped = Command::new("kill")
        .args(["-TERM", &raw.child.id().to_string()])
        .status()
        .unwrap();
    assert!(stopped.success());
    let back = raw.result(2);
    assert!(text(&back).starts_with("Not done yet"), "{back}");
    assert!(raw.child.wait().unwrap().success());
}

#[test]
fn a_mistake_in_the_file_is_shown_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let text = "listen = \"127.0.0.1:0\"\n[servers.a]\nurl = \"http://x\"\nholdd = 3\n";
    std::fs::write(&file, text).unwrap();
    let done = Command::new(PROGRAM)
        .args(["gateway", "--check", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(
        said.contains("line 4") && said.contains("4 | holdd = ..."),
        "{said}"
    );
}

#[cfg(unix)]
#[test]
fn a_configuration_that_is_a_pipe_or_a_device_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for file in [pipe.as_path(), "/dev/zero".as_ref()] {
        for words in [
            &["gateway", "--check", "--config"][..],
            &["audit", "--config"],
            &["rules", "check"],
        ] {
            let done = Command::new(PROGRAM)
                .args(words)
                .arg(file)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(2), "{words:?}: {said}");
            assert!(
                said.contains("it is not a regular file"),
                "{words:?}: {said}"
            );
        }
    }
}

#[test]
fn every_shape_brings_the_answer_to_every_revision() {
    let mut server = Command::new(PROGRAM);
    server.args(["demo-server", "--http", "127.0.0.1:0"]);
    let server = Served::start(server, "/mcp");
    for upstream in [
        vec!["--upstream", server.url.as_str()],
        vec!["--", PROGRAM, "demo-server"],
    ] {
        let state = tempfile::tempdir().unwrap();
        let mut gateway = Command::new(PROGRAM);
        gateway
            .args([
                "gateway",
                "--listen",
                "127.0.0.1:0",
                "--inbox",
                "127.0.0.1:0",
                "--state",
            ])
            .arg(state.path());
        gateway.args(&upstream);
        let gateway = Served::start(gateway, "serving");
        for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
            let done = Command::new(PROGRAM)
                .args([
                    "call",
                    "deploy",
                    "--answer",
                    "environment=staging",
                    "--protocol",
                    revision,
                    "--url",
                    &gateway.url,
                ])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&done.stdout).into_owned()
                + &String::from_utf8_lossy(&done.stderr);
            assert!(
                done.status.success() && said.contains("staging"),
                "{upstream:?} {revision}: {said}"
            );
        }
    }
}
