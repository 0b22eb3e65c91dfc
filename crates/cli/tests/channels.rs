//! `mcp-elicit channels`: messages that really failed, beside a gateway that runs.
#![cfg(all(unix, feature = "full"))]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[path = "raw/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod raw;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use mcp_elicit_testkit::peers::free_port;
use raw::{PATIENCE, PROGRAM, Raw};
use serde_json::{Value, json};

/// A receiver of webhooks that responds with 410 until it is back.
struct Receiver {
    url: String,
    is_back: Arc<AtomicBool>,
    got: mpsc::Receiver<String>,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/in", listener.local_addr().unwrap());
        let is_back = Arc::new(AtomicBool::new(false));
        let (tell, got) = mpsc::channel();
        let back = is_back.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let is_back = back.load(Ordering::SeqCst);
                if let Some(request) = answer(stream, is_back)
                    && is_back
                    && tell.send(request).is_err()
                {
                    return;
                }
            }
        });
        Self { url, is_back, got }
    }
}

/// Reads a request with its body, and answers it.
fn answer(mut stream: TcpStream, is_back: bool) -> Option<String> {
    let mut bytes = Vec::new();
    let mut part = [0; 4_096];
    loop {
        let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.eq_ignore_ascii_case("content-length"))
                .then(|| value.trim().parse::<usize>().ok())
                .flatten()
        });
        if body.len() >= length.unwrap_or_default() {
            let status = if is_back {
                "204 No Content"
            } else {
                "410 Gone"
            };
            let reply =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(reply.as_bytes()).ok()?;
            return Some(text);
        }
    }
}

fn gateway(folder: &Path, hook: &str, smtp: u16) -> Raw {
    gateway_until(folder, hook, smtp, "3s")
}

/// Starts a gateway whose questions have this deadline.
fn gateway_until(folder: &Path, hook: &str, smtp: u16, deadline: &str) -> Raw {
    let file = folder.join("gateway.toml");
    let secret = folder.join("secret");
    std::fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let text = format!(
        r#"
inbox = "127.0.0.1:0"
[servers.demo]
command = ["{PROGRAM}", "demo-server"]
[people.ada]
mail = "ada@example.com"
[[rules]]
name = "soon over"
tool = "deploy"
ask = {{ person = "ada" }}
deadline = "{deadline}"
[channels.mail]
smtp = "smtp://127.0.0.1:{smtp}"
from = "gateway@example.com"
[channels.webhook.siem]
url = "{hook}"
allow-private = true
secret = {{ file = "{}" }}
events = ["question.asked"]
"#,
        secret.display()
    );
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(PROGRAM);
    command
        .args(["gateway", "--state"])
        .arg(folder.join("state"));
    command.arg("--config").arg(&file).stderr(Stdio::null());
    let mut client = Raw::start(command);
    client.initialize("2025-11-25", &json!({"elicitation": {"form": {}}}));
    client
}

/// Runs `mcp-elicit channels ..`. Returns its exit code and output.
fn channels(state: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let done = raw::command(state, &[&["channels"], words].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

fn failed(state: &Path) -> Vec<Value> {
    let (code, lines, said) = channels(state, &["failed", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let lines = lines.lines().map(serde_json::from_str);
    lines.map(Result::unwrap).collect()
}

/// Waits until this number of messages has failed.
fn wait_for_failed(state: &Path, count: usize) -> Vec<Value> {
    for _ in 0..600 {
        let found = failed(state);
        if found.len() == count {
            return found;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{:?}", failed(state));
}

#[test]
fn messages_that_failed_are_listed_and_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let (code, _, said) = channels(&state, &["failed"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("there is no record"), "{said}");

    let receiver = Receiver::start();
    let mut client = gateway(folder.path(), &receiver.url, free_port());
    client.call(2, "deploy", &json!({}));
    // The receiver refuses, and no mail server responds before the question has ended.
    let messages = wait_for_failed(&state, 2);
    let of = |channel: &str| {
        let found = messages
            .iter()
            .find(|message| message["channel"] == channel);
        found.unwrap_or_else(|| panic!("{channel}: {messages:?}"))
    };
    let (mail, hook) = (of("mail"), of("webhook.siem"));
    assert_eq!(
        (&mail["to"], &mail["reason"]),
        (&json!("person:ada"), &json!("unreachable"))
    );
    assert_eq!(
        (&hook["to"], &hook["reason"], &hook["event"]),
        (
            &json!("endpoint"),
            &json!("address-gone"),
            &json!("question.asked")
        )
    );
    let (_, lines, _) = channels(&state, &["failed"]);
    assert!(lines.contains("webhook.siem to endpoint"), "{lines}");
    for hidden in ["ada@example.com", &receiver.url, "whsec"] {
        assert!(!lines.contains(hidden), "{lines}");
        assert!(
            !json!(messages).to_string().contains(hidden),
            "{messages:?}"
        );
    }
    let (_, one, _) = channels(&state, &["failed", "--limit", "1"]);
    assert_eq!(one.lines().count(), 1, "{one}");

    let (code, _, said) = channels(&state, &["retry", "zzzz"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("`mcp-elicit channels failed`"), "{said}");
    let (code, _, said) = channels(&state, &["retry", ""]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("several"), "{said}");
    let (code, _, _) = channels(&state, &["retry"]);
    assert_eq!(code, Some(2));

    // The receiver is back: the same message arrives, once.
    receiver.is_back.store(true, Ordering::SeqCst);
    let id = hook["id"].as_str().unwrap();
    let (code, queued, _) = channels(&state, &["retry", &id[..8]]);
    assert_eq!(code, Some(0), "{queued}");
    assert!(queued.contains("queued"), "{queued}");
    let got = receiver.got.recv_timeout(PATIENCE).unwrap();
    assert!(got.contains(id), "{got}");
    let left = wait_for_failed(&state, 1);
    assert_eq!(left[0]["channel"], "mail");
    let (code, _, said) = channels(&state, &["retry", &id[..8]]);
    assert_eq!(code, Some(2), "it was sent: {said}");

    // The call ends with its question.
    client.result(2);
    let (code, queued, said) = channels(&state, &["retry", "--all", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let words = "1 message skipped: the question has ended";
    assert!(said.contains(words) && !said.contains("queued"), "{said}");
    let skipped: Value = serde_json::from_str(&queued).unwrap();
    assert_eq!(skipped, json!({"id": mail["id"], "queued": false}));
    // The gateway removes it from the list.
    wait_for_failed(&state, 0);
    let (code, _, said) = channels(&state, &["failed"]);
    assert_eq!(code, Some(0));
    assert!(said.contains("no message has failed"), "{said}");
    let audit = raw::command(&state, &["audit", "--event", "notification-retried"]);
    let lines = String::from_utf8(audit.stdout).unwrap();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(
        lines.contains("on the command line  through webhook.siem")
            && lines.contains("to ada  on the command line  through mail"),
        "{lines}"
    );
}

#[test]
fn messages_that_are_tried_again_are_listed_and_counted_beside_those_that_failed() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let receiver = Receiver::start();
    let mut client = gateway_until(folder.path(), &receiver.url, free_port(), "1h");
    client.call(2, "deploy", &json!({}));
    // The receiver refuses permanently; no mail server responds.
    wait_for_failed(&state, 1);
    let waiting = || {
        let (code, lines, said) = channels(&state, &["waiting", "--json"]);
        assert_eq!(code, Some(0), "{said}");
        let lines = lines.lines().map(serde_json::from_str);
        lines.map(Result::unwrap).collect::<Vec<Value>>()
    };
    let mut looks = std::iter::repeat_with(|| {
        std::thread::sleep(Duration::from_millis(100));
        waiting()
    });
    let found = looks.by_ref().take(600).find(|found| !found.is_empty());
    let found = found.expect("no message waits");
    assert_eq!(found.len(), 1, "{found:?}");
    let mail = &found[0];
    let shown = ["channel", "to", "reason", "event"].map(|name| mail[name].as_str().unwrap());
    assert_eq!(
        shown,
        ["mail", "person:ada", "unreachable", "question.asked"]
    );
    assert!(
        mail["attempts"].as_u64() >= Some(1) && mail["nextTry"].is_u64(),
        "{mail}"
    );
    let (_, lines, _) = channels(&state, &["waiting"]);
    assert!(
        lines.contains("mail to person:ada") && lines.contains("next try 20"),
        "{lines}"
    );
    assert!(
        lines.contains(": check the receiver's address in the file"),
        "{lines}"
    );
    assert!(!lines.contains("ada@example.com"), "{lines}");
    let (_, lines, said) = channels(&state, &["failed"]);
    assert!(
        lines.contains("webhook.siem") && !lines.contains("mail to"),
        "{lines}"
    );
    assert!(
        said.contains("1 is being retried") && said.contains("`mcp-elicit channels waiting`"),
        "{said}"
    );
}

#[test]
fn rules_check_reads_the_tables_of_channels_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(PROGRAM);
        let done = command.args(["rules", "check", "--json"]).arg(&file);
        let done = done.output().unwrap();
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        let defects = report["defects"].as_array().unwrap().iter();
        let defects: Vec<String> = defects
            .map(|defect| {
                format!(
                    "{}:{} {}",
                    defect["line"],
                    defect["column"],
                    defect["code"].as_str().unwrap()
                )
            })
            .collect();
        (done.status.code(), defects)
    };
    let groups = "[people.ada]\nmail = \"ada@example.com\"\n[groups]\nops = [\"ada\"]\n";
    let slack =
        "[channels.slack]\ntoken = { env = \"A\" }\nteam = \"T1\"\ngroups = { ops = \"C1\" }\n";
    assert_eq!(check(&format!("{groups}{slack}")), (Some(0), vec![]));
    let wrong = slack.replace("\"T1\"", "\"X1\"").replace("ops =", "opps =");
    let found = ["7:8 invalid-slack-id", "8:12 no-addressee"].map(str::to_owned);
    assert_eq!(
        check(&format!("{groups}{wrong}")),
        (Some(1), found.to_vec())
    );
    // If the rules have errors, groups are not looked up; a secret in the text is reported once.
    let literal = slack.replace("{ env = \"A\" }", "\"xoxb\"");
    let found = ["2:10 wrong-type", "5:9 literal-secret"].map(str::to_owned);
    assert_eq!(
        check(&format!("[[rules]]\nserver = 7\nallow = true\n{literal}")),
        (Some(1), found.to_vec())
    );
}
