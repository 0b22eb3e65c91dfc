//! Answers are unreadable while they wait and erased once delivered; the audit names the actor of every access.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::json;

use crate::gateway::Gateway;
use crate::raw::{DEMO_SERVER, PROGRAM, command, text};

const SECRET: &str = "the-owl-flies-at-midnight";

/// Returns every file of the state folder that contains these bytes.
fn holding(state: &Path, needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(state).unwrap().map(Result::unwrap) {
        let Ok(bytes) = fs::read(entry.path()) else {
            continue;
        };
        if bytes
            .windows(needle.len())
            .any(|part| part == needle.as_bytes())
        {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn database(state: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(state.join("record.sqlite")).unwrap()
}

#[tokio::test]
async fn values_are_sealed_then_dropped_and_never_logged() {
    let state = tempfile::tempdir().unwrap();
    let server = ["--", PROGRAM, "demo-server"];
    let mut gateway = Gateway::start(state.path(), &["--hold", "0", "--log", "json"], &server);
    gateway.initialize();
    let arguments = json!({"why": "the-raven-knows"});
    gateway.call(2, "deploy", &arguments);
    gateway.result(2);
    let id = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
    let answer = json!({"action": "accept", "content": {"environment": "staging", "note": SECRET}});
    assert_eq!(gateway.answer(&id, &answer), 200);
    // Kept for a repeated call, in case the gateway ends before.
    let file = database(state.path());
    let sealed = "SELECT arguments IS NOT NULL, content IS NOT NULL, delivered FROM question";
    for needle in [SECRET, "the-raven-knows"] {
        assert_eq!(
            holding(state.path(), needle),
            Vec::<String>::new(),
            "{needle}"
        );
    }
    let mut tries = 3;
    let done = loop {
        gateway.call(tries, "deploy", &arguments);
        let done = gateway.result(tries);
        if !text(&done).starts_with("Not done yet") || tries > 60 {
            break done;
        }
        tries += 1;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert!(text(&done).contains(SECRET), "{done}");
    let mut row: (bool, bool, bool) = (true, true, true);
    for _ in 0..100 {
        row = file
            .query_row(sealed, [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        if row == (false, false, true) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(
        row,
        (false, false, true),
        "arguments and content are dropped once delivered"
    );
    for needle in [SECRET, "the-raven-knows"] {
        assert_eq!(
            holding(state.path(), needle),
            Vec::<String>::new(),
            "{needle}"
        );
        assert!(
            !gateway.said.lock().unwrap().contains(needle),
            "logged: {needle}"
        );
    }
    let audit = command(state.path(), &["audit", "--json"]);
    assert!(
        audit.status.success() && !said(&audit).contains(SECRET),
        "{}",
        said(&audit)
    );
    #[cfg(unix)]
    for file in ["seal.key", "inbox.token"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(state.path().join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[tokio::test]
async fn the_audit_shows_that_it_was_touched() {
    let state = tempfile::tempdir().unwrap();
    let options = ["--hold", "0", "--name", "deploy-bot"];
    let mut gateway = Gateway::start(state.path(), &options, &DEMO_SERVER);
    gateway.initialize();
    for (id, act) in [
        (2, json!({"action": "decline"})),
        (3, json!({"action": "cancel"})),
    ] {
        gateway.call(id, "deploy", &json!({"n": id}));
        let question = gateway.wait_for(1)[0]["id"].as_str().unwrap().to_owned();
        assert_eq!(gateway.answer(&question, &act), 200);
        // Handed back or done: until then, the next call would wait for this one.
        gateway.result(id);
    }
    drop(gateway);
    let command = |words: &[&str]| {
        let mut all = vec!["audit"];
        all.extend(words);
        command(state.path(), &all)
    };
    let whole = command(&["--verify"]);
    assert_eq!(whole.status.code(), Some(0), "{}", said(&whole));
    assert!(
        whole.stdout.is_empty() && said(&whole).contains("the chain is intact"),
        "{}",
        said(&whole)
    );
    let cancelled = command(&["--event", "cancelled", "--server", "deploy-bot"]);
    let lines = String::from_utf8(cancelled.stdout).unwrap();
    assert_eq!(lines.lines().count(), 1, "{lines}");
    assert!(
        lines.contains(" UTC ")
            && lines.contains("over the API")
            && lines.contains("[environment, note]"),
        "{lines}"
    );
    let none = command(&["--server", "nobody"]);
    assert_eq!((none.status.code(), none.stdout.len()), (Some(0), 0));

    let file = database(state.path());
    for (touch, mend, broken_at) in [
        (
            "UPDATE audit SET entry = replace(entry, 'over the API', 'nobody')",
            "UPDATE audit SET entry = replace(entry, 'nobody', 'over the API')",
            None,
        ),
        (
            "INSERT INTO audit VALUES (-5, '{}', '')",
            "DELETE FROM audit WHERE number = -5",
            Some(1),
        ),
        ("DELETE FROM audit WHERE number = 2", "", Some(2)),
    ] {
        file.execute_batch(touch).unwrap();
        let verdict = command(&["--verify"]);
        assert_eq!(
            verdict.status.code(),
            Some(1),
            "{touch}: {}",
            said(&verdict)
        );
        assert!(
            said(&verdict).contains("the chain is broken at event"),
            "{}",
            said(&verdict)
        );
        if let Some(number) = broken_at {
            assert!(
                said(&verdict).contains(&format!("event {number}")),
                "{}",
                said(&verdict)
            );
        }
        if !mend.is_empty() {
            file.execute_batch(mend).unwrap();
            assert_eq!(command(&["--verify"]).status.code(), Some(0), "mended");
        }
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_used_stops_the_gateway_with_a_reason() {
    use std::process::{Command, Stdio};
    let state = tempfile::tempdir().unwrap();
    let file = database(state.path());
    file.execute_batch("PRAGMA user_version = 99").unwrap();
    file.close().unwrap();
    // Its stdin stays open: it ends by itself.
    let mut child = Command::new(PROGRAM)
        .args(["gateway", "--inbox", "off", "--state"])
        .arg(state.path())
        .args(["--", PROGRAM, "demo-server"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    let ended = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(ended.status.code(), Some(2), "{}", said(&ended));
    assert!(
        said(&ended).contains("written by a newer version (schema 99, known "),
        "{}",
        said(&ended)
    );
}
