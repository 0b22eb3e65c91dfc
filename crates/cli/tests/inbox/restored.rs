//! Backups of running gateways, and gateways on restored folders: the real program, its own files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::gateway::{Gateway, REVISION};
use crate::http;
use crate::raw::{DEMO_SERVER, PROGRAM, command, inbox, initialize, text};

/// Runs the command with these words, in no state folder of the user's.
fn run(words: &[&str], folder: &Path) -> Output {
    Command::new(PROGRAM)
        .args(words)
        .env("MCP_ELICIT_STATE", folder)
        .output()
        .unwrap()
}

fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn is_lock(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "lock")
}

fn key(state: &Path) -> String {
    let made = command(
        state,
        &["tokens", "make", "ci", "--scope", "call", "--json"],
    );
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    made["token"].as_str().unwrap().to_owned()
}

/// Makes a call again until it is not handed back, or at most some times.
fn call_again(gateway: &mut Gateway, first: u64, number: u64, tries: u64) -> Value {
    let arguments = json!({"n": number});
    for id in first..first + tries {
        gateway.call(id, "deploy", &arguments);
        let said = gateway.result(id);
        if !text(&said).starts_with("Not done yet") || id + 1 == first + tries {
            return said;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    unreachable!("there is one try");
}

/// Starts a gateway for a client on stdio, which hands each call back at once.
fn start(state: &Path) -> Gateway {
    let more = ["--hold", "0", "--name", "deploy-bot"];
    let mut gateway = Gateway::start(state, &more, &DEMO_SERVER);
    gateway.initialize();
    gateway
}

/// Opens a session with this key at a gateway over HTTP. Returns the status.
fn status_of_key(state: &Path, key: &str) -> u16 {
    let more = ["--listen", "0.0.0.0:0", "--auth", "keys"];
    let gateway = Gateway::start(state, &more, &DEMO_SERVER);
    let serving = gateway.serving.clone().unwrap();
    let port = serving.rsplit(':').next().unwrap();
    let at = format!("127.0.0.1:{port}");
    let open = initialize(REVISION, &json!({}));
    http::post(&at, "/mcp", Some(key), None, &open).status
}

fn answer(gateway: &Gateway, id: &Value) {
    let answer = json!({"action": "accept", "content": {"environment": "staging"}});
    assert_eq!(gateway.answer(id.as_str().unwrap(), &answer), 200);
}

/// A backup while questions are open; the gateway goes on, and its machine is lost. On the restored folder the key of
/// an agent works and the open question is open; the answer that was delivered after the backup is not delivered again.
#[test]
fn a_backup_of_a_running_gateway_is_restored_and_no_answer_is_delivered_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (state, copy, restored) = (
        folder.path().join("state"),
        folder.path().join("copy"),
        folder.path().join("restored"),
    );
    let mut gateway = start(&state);
    let agent = key(&state);
    gateway.call(2, "deploy", &json!({"n": 1}));
    gateway.result(2);
    let given = gateway.wait_for(1)[0]["id"].clone();
    drop(gateway);
    // Given while no call waits for it: it is kept for the same call made again.
    let words = ["accept", given.as_str().unwrap(), "environment=staging"];
    assert!(inbox(&state, &words).0);
    let mut gateway = start(&state);
    gateway.call(3, "deploy", &json!({"n": 2}));
    gateway.result(3);
    let open = gateway.wait_for(1)[0]["id"].clone();

    let made = run(&["backup", path(&copy), "--json"], &state);
    assert!(made.status.success(), "{}", said(&made));
    let listed: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(listed["record"]["open"], 1, "{listed}");
    assert_eq!(
        names(&copy),
        [
            "backup.json",
            "identity.key",
            "inbox.token",
            "record.sqlite",
            "seal.key"
        ]
    );
    let checked = run(&["backup", path(&copy), "--check"], &state);
    assert!(checked.status.success(), "{}", said(&checked));
    assert!(said(&checked).contains("an intact audit of"));
    assert_eq!(names(&copy).len(), 5, "a check writes nothing");
    #[cfg(unix)]
    for folder in [&copy] {
        use std::os::unix::fs::PermissionsExt as _;
        let permissions = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(permissions(folder), 0o700);
        for name in names(folder) {
            assert_eq!(permissions(&folder.join(&name)), 0o600, "{name}");
        }
    }

    // The gateway goes on: the answer is delivered to the same call made again, in a session that makes no other.
    drop(gateway);
    let mut gateway = start(&state);
    let done = call_again(&mut gateway, 10, 1, 60);
    assert!(text(&done).contains("staging"), "{done}");
    drop(gateway);

    let done = run(
        &["restore", path(&copy), "--state", path(&restored)],
        &state,
    );
    assert!(done.status.success(), "{}", said(&done));
    let told = said(&done);
    assert!(
        told.contains("ended: 1 answer(s) that were not delivered")
            && told.contains("1 token(s) of programs work again"),
        "{told}"
    );
    assert_eq!(status_of_key(&restored, &agent), 200);
    let mut gateway = start(&restored);
    assert_eq!(gateway.wait_for(1)[0]["id"], open);
    // The same call made again is a new question, not the old answer.
    let again = call_again(&mut gateway, 20, 1, 1);
    assert!(!text(&again).contains("staging"), "{again}");
    let waiting = gateway.wait_for(2);
    assert!(waiting.iter().all(|one| one["id"] != given), "{waiting:?}");
    // The question that was open is answered, and its call gets the answer.
    drop(gateway);
    let mut gateway = start(&restored);
    answer(&gateway, &open);
    let done = call_again(&mut gateway, 30, 2, 60);
    assert!(text(&done).contains("staging"), "{done}");
    let audit = command(&restored, &["audit"]);
    let audit = said(&audit);
    assert!(
        audit.contains("the chain is intact") && audit.contains("1 answer(s) not delivered"),
        "{audit}"
    );
}

/// Ends a gateway as its client does.
fn close(mut gateway: Gateway) {
    drop(gateway.stdin.take());
    gateway.child.wait().unwrap();
    let said = gateway.said.lock().unwrap();
    assert!(!said.contains("could not be"), "{said}");
}

/// The record is replaced by an older copy of its file, in which an answer waits that was delivered since. No gateway
/// starts on it until the operator says that it was restored, and then the answer is not delivered again.
#[test]
fn a_record_that_was_replaced_by_an_older_copy_is_noticed_and_its_answers_are_not_delivered_again()
{
    let folder = tempfile::tempdir().unwrap();
    let (state, old) = (folder.path().join("state"), folder.path().join("old"));
    let file = state.join("record.sqlite");
    let mut gateway = start(&state);
    gateway.call(2, "deploy", &json!({"n": 1}));
    gateway.result(2);
    let given = gateway.wait_for(1)[0]["id"].clone();
    let busy = run(&["record", "restored"], &state);
    assert_eq!(busy.status.code(), Some(2), "{}", said(&busy));
    assert!(said(&busy).contains("uses the record"), "{}", said(&busy));
    close(gateway);
    assert!(state.join("audit.seen").exists());
    let words = ["accept", given.as_str().unwrap(), "environment=staging"];
    assert!(inbox(&state, &words).0);
    let record = rusqlite::Connection::open(&file).unwrap();
    record.execute("VACUUM INTO ?1", [path(&old)]).unwrap();
    drop(record);
    let mut gateway = start(&state);
    let done = call_again(&mut gateway, 10, 1, 60);
    assert!(text(&done).contains("staging"), "{done}");
    // The end of the audit is noted later than the event, each half a minute.
    let seen = || fs::read(state.join("audit.seen")).unwrap_or_default();
    let before = seen();
    for _ in 0..700 {
        if seen() != before {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    close(gateway);

    let replace = || {
        for beside in ["record.sqlite-wal", "record.sqlite-shm"] {
            let _gone_already = fs::remove_file(state.join(beside));
        }
        fs::copy(&old, &file).unwrap();
    };
    let demo = ["gateway", "--", PROGRAM, "demo-server"];
    replace();
    for _ in 0..2 {
        let refused = run(&demo, &state);
        let told = said(&refused);
        assert_eq!(refused.status.code(), Some(3), "{told}");
        assert!(told.contains("was replaced by an older copy"), "{told}");
        assert!(
            told.contains("mcp-elicit record restored --state"),
            "{told}"
        );
    }
    let done = run(&["record", "restored"], &state);
    assert!(done.status.success(), "{}", said(&done));
    assert!(
        said(&done).contains("ended: 1 answer(s) that were not delivered"),
        "{}",
        said(&done)
    );
    let again = run(&["record", "restored"], &state);
    assert!(again.status.success(), "{}", said(&again));
    assert!(
        said(&again).contains("nothing was left to end"),
        "{}",
        said(&again)
    );
    let mut gateway = start(&state);
    let asked = call_again(&mut gateway, 20, 1, 1);
    assert!(!text(&asked).contains("staging"), "{asked}");
    let waiting = gateway.wait_for(1);
    assert!(waiting.iter().all(|one| one["id"] != given), "{waiting:?}");
    close(gateway);
    let audit = said(&command(&state, &["audit"]));
    assert!(audit.contains("the chain is intact"), "{audit}");
    assert!(
        audit.contains("with other tools; ended: 1 answer(s) not delivered"),
        "{audit}"
    );
    // The same copy again, after that was said.
    replace();
    assert_eq!(run(&demo, &state).status.code(), Some(3));
    // A new record has nothing to end.
    fs::remove_file(&file).unwrap();
    close(start(&state));
    // One that is made anew on purpose neither.
    let over = run(&["keys", "start-over"], &state);
    assert!(over.status.success(), "{}", said(&over));
    let blocked = run(&["tokens", "block", "https://id", "eve"], &state);
    assert!(blocked.status.success(), "{}", said(&blocked));
    close(start(&state));
}

/// Everything that a gateway and its commands write is in a backup, or belongs to running processes.
#[test]
fn every_file_of_a_state_folder_is_backed_up_or_belongs_to_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let (state, copy) = (folder.path().join("state"), folder.path().join("copy"));
    let gateway = start(&state);
    key(&state);
    for words in [
        &["keys", "rotate"][..],
        &["inbox", "rotate"],
        &["inbox", "sessions", "revoke", "--all"],
    ] {
        let done = command(&state, words);
        assert!(done.status.success(), "{}", said(&done));
    }
    drop(gateway);
    let gateway = Gateway::start(&state, &["--presence", "page"], &DEMO_SERVER);
    // Written by a person's sign-in at a server.
    fs::create_dir(state.join("sign-in")).unwrap();
    let tokens = state.join("sign-in/0123456789abcdef0123456789abcdef.json");
    fs::write(&tokens, "{}").unwrap();
    fs::write(state.join("sign-in/0123456789abcdef.lock"), "").unwrap();
    let made = run(&["backup", path(&copy)], &state);
    assert!(made.status.success(), "{}", said(&made));
    // It leaves a notice in the place of an earlier version's file.
    assert!(
        run(&["tokens", "block", "https://id", "eve"], &state)
            .status
            .success()
    );
    let left_out = [
        "api.tokens",
        "audit.seen",
        "inbox.address",
        "inbox.sessions",
        "inbox.sock",
        "record.sqlite-shm",
        "record.sqlite-wal",
        "running",
    ];
    let copied = names(&copy);
    for name in names(&state) {
        let is_known =
            copied.contains(&name) || left_out.contains(&name.as_str()) || is_lock(&name);
        assert!(is_known, "{name} is neither copied nor left out");
    }
    assert!(copied.contains(&"inbox.presence".to_owned()), "{copied:?}");
    assert_eq!(
        names(&copy.join("sign-in")),
        ["0123456789abcdef0123456789abcdef.json"]
    );
    drop(gateway);
    let restored = folder.path().join("restored");
    let done = run(
        &["restore", path(&copy), "--state", path(&restored)],
        &state,
    );
    assert!(done.status.success(), "{}", said(&done));
    assert!(
        restored
            .join("sign-in")
            .join(tokens.file_name().unwrap())
            .exists()
    );
    let lines = names(&restored);
    assert!(!lines.iter().any(|name| is_lock(name)), "{lines:?}");
}

/// A folder in which an earlier version made tokens and people logged in: the backup has its files as they are, and the
/// restore moves them.
#[test]
fn a_backup_of_an_earlier_versions_files_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (state, copy) = (folder.path().join("state"), folder.path().join("copy"));
    fs::create_dir(&state).unwrap();
    let old = r#"{"tokens":[{"id":"0a0a0a0a0a0a","name":"ci","hash":"00","scopes":["call"],"madeAt":1}]}"#;
    fs::write(state.join("api.tokens"), old).unwrap();
    let logins = r#"{"sessions":[{"digest":"d1","person":"ada","issuer":"i","subject":"a","auth_at":0,"created":1,"used":1,"browser":"b"}],
      "people":{"ada":{"issuer":"i","subject":"a","name":"Ada","claims":[],"seen_at":1}}}"#;
    fs::write(state.join("inbox.logins"), logins).unwrap();
    let made = run(&["backup", path(&copy)], &state);
    assert!(made.status.success(), "{}", said(&made));
    let files = ["api.tokens", "inbox.logins"];
    assert_eq!(names(&copy), ["api.tokens", "backup.json", "inbox.logins"]);
    assert_eq!(names(&state), files, "nothing is moved for a backup");
    for (name, more, expected) in [
        ("kept", &[][..], "does not expire"),
        ("revoked", &["--revoke-tokens"], "revoked"),
    ] {
        let restored = folder.path().join(name);
        let words = ["restore", path(&copy), "--state", path(&restored)];
        let done = run(&[&words, more].concat(), &state);
        assert!(done.status.success(), "{}", said(&done));
        let listed = run(&["tokens", "list", "--state", path(&restored)], &state);
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains("0a0a0a0a0a0a"), "{listed}");
        assert!(listed.contains(expected), "{listed}");
        for (file, old) in files.into_iter().zip([old, logins]) {
            assert_ne!(fs::read_to_string(restored.join(file)).unwrap(), old);
        }
        let record = rusqlite::Connection::open(restored.join("record.sqlite")).unwrap();
        let count = |kind: &str| -> i64 {
            let text = "SELECT count(*) FROM shared WHERE entity = 'logins' AND kind = ?1";
            record.query_row(text, [kind], |row| row.get(0)).unwrap()
        };
        assert_eq!((count("people"), count("sessions")), (1, 0));
    }
}

/// Writes the list of a backup again, as somebody would who changed a file.
fn list_again(copy: &Path, change: impl FnOnce(&mut Value)) {
    let file = copy.join("backup.json");
    let mut list: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for entry in list["files"].as_array_mut().unwrap() {
        let Ok(bytes) = fs::read(copy.join(entry["name"].as_str().unwrap())) else {
            continue;
        };
        entry["size"] = bytes.len().into();
        let digest = Sha256::digest(&bytes);
        let hex = digest
            .iter()
            .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        entry["sha256"] = hex.into();
    }
    change(&mut list);
    fs::write(&file, list.to_string()).unwrap();
}

/// Removes a file of a backup, also from its list.
fn leave_out(copy: &Path, name: &str) {
    fs::remove_file(copy.join(name)).unwrap();
    unlist(copy, name);
}

/// Removes a file from the list of a backup.
fn unlist(copy: &Path, name: &str) {
    list_again(copy, |list| {
        let files = list["files"].as_array_mut().unwrap();
        files.retain(|entry| entry["name"] != name);
    });
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

fn flip(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let place = bytes.len() / 2;
    bytes[place] ^= 1;
    fs::write(file, bytes).unwrap();
}

fn sql(copy: &Path, text: &str) {
    let file = rusqlite::Connection::open(copy.join("record.sqlite")).unwrap();
    file.execute_batch(text).unwrap();
}

/// A damage to a backup, and the text of its error.
type Damage = (&'static str, fn(&Path), &'static str);

#[test]
fn a_backup_that_does_not_verify_is_named_and_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (state, copy) = (folder.path().join("state"), folder.path().join("copy"));
    let mut gateway = start(&state);
    key(&state);
    gateway.call(2, "deploy", &json!({"n": 1}));
    gateway.result(2);
    gateway.wait_for(1);
    let made = run(&["backup", path(&copy)], &state);
    assert!(made.status.success(), "{}", said(&made));
    let damages: [Damage; 19] = [
        (
            "record",
            |copy| flip(&copy.join("record.sqlite")),
            "record.sqlite was changed",
        ),
        (
            "seal",
            |copy| flip(&copy.join("seal.key")),
            "seal.key was changed",
        ),
        (
            "missing",
            |copy| fs::remove_file(copy.join("identity.key")).unwrap(),
            "identity.key",
        ),
        (
            "no list",
            |copy| fs::remove_file(copy.join("backup.json")).unwrap(),
            "not a complete backup",
        ),
        (
            "audit",
            |copy| {
                sql(
                    copy,
                    "UPDATE audit SET entry = replace(entry, 'asked', 'Asked') WHERE number = 2",
                );
                list_again(copy, |_| {});
            },
            "the chain of the audit is broken at event",
        ),
        (
            "audit before its start",
            |copy| {
                sql(copy, "INSERT INTO audit VALUES (-5, '{}', '')");
                list_again(copy, |_| {});
            },
            "the chain of the audit is broken at event 1",
        ),
        (
            "unlisted identity",
            |copy| unlist(copy, "identity.key"),
            "identity.key is missing or has no key, and the record was made with it",
        ),
        (
            "unlisted seal",
            |copy| unlist(copy, "seal.key"),
            "seal.key is missing or has no key, and the record was made with it",
        ),
        (
            "other identity",
            |copy| {
                flip(&copy.join("identity.key"));
                list_again(copy, |_| {});
            },
            "identity.key is another one",
        ),
        (
            "other seal",
            |copy| {
                flip(&copy.join("seal.key"));
                list_again(copy, |_| {});
            },
            "seal.key is another one",
        ),
        (
            "no identity",
            |copy| leave_out(copy, "identity.key"),
            "identity.key is missing or has no key, and the record was made with it",
        ),
        (
            "no seal",
            |copy| leave_out(copy, "seal.key"),
            "seal.key is missing or has no key, and the record was made with it",
        ),
        (
            "record elsewhere",
            |copy| {
                fs::rename(copy.join("record.sqlite"), copy.join("record.address")).unwrap();
                list_again(copy, |list| {
                    list["layout"] = Value::Null;
                    let all = list["files"].as_array_mut().unwrap();
                    for entry in all {
                        if entry["name"] == "record.sqlite" {
                            entry["name"] = "record.address".into();
                        }
                    }
                });
                list_again(copy, |_| {});
            },
            "record.sqlite is missing",
        ),
        (
            "trigger",
            |copy| {
                sql(
                    copy,
                    "CREATE TRIGGER ghost AFTER INSERT ON audit BEGIN DELETE FROM telling; END",
                );
                list_again(copy, |_| {});
            },
            "it has a trigger or a view that is not of a record",
        ),
        (
            "view",
            |copy| {
                sql(copy, "CREATE VIEW ghost AS SELECT * FROM audit");
                list_again(copy, |_| {});
            },
            "it has a trigger or a view that is not of a record",
        ),
        (
            "linked sign-in",
            |copy| {
                let elsewhere = copy.with_extension("elsewhere");
                fs::create_dir(&elsewhere).unwrap();
                fs::write(elsewhere.join("a.json"), "{}").unwrap();
                std::os::unix::fs::symlink(&elsewhere, copy.join("sign-in")).unwrap();
                list_again(copy, |list| {
                    let mut entry = list["files"][0].clone();
                    entry["name"] = "sign-in/a.json".into();
                    list["files"].as_array_mut().unwrap().push(entry);
                });
                list_again(copy, |_| {});
            },
            "sign-in is a link or a file, not a folder",
        ),
        (
            "newer layout",
            |copy| {
                sql(copy, "PRAGMA user_version = 999");
                list_again(copy, |list| list["layout"] = 999.into());
            },
            "written by a newer version",
        ),
        (
            "newer format",
            |copy| {
                list_again(copy, |list| {
                    list["format"] = 2.into();
                    list["version"] = "9.9.9".into();
                });
            },
            "made by a newer version (9.9.9)",
        ),
        (
            "another folder",
            |copy| {
                list_again(copy, |list| {
                    list["files"][0]["name"] = "../../passwd".into();
                });
            },
            "names a file that a backup does not have",
        ),
    ];
    for (name, harm, error) in damages {
        let broken = folder.path().join(name);
        copy_folder(&copy, &broken);
        harm(&broken);
        let before: Vec<_> = names(&broken);
        let restored = folder.path().join("restored");
        for words in [
            &["backup", path(&broken), "--check"][..],
            &["restore", path(&broken), "--state", path(&restored)],
        ] {
            let refused = run(words, &state);
            assert!(!refused.status.success(), "{name}: {}", said(&refused));
            assert!(said(&refused).contains(error), "{name}: {}", said(&refused));
        }
        assert!(!restored.exists(), "{name}");
        assert_eq!(names(&broken), before, "{name}");
    }
    let left = names(folder.path());
    assert!(!left.iter().any(|name| name.starts_with('.')), "{left:?}");
}

#[test]
fn a_link_of_another_user_leads_no_backup_and_no_restore_elsewhere() {
    use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (state, copy) = (at("state"), at("copy"));
    drop(start(&state));
    for name in ["shared", "theirs"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::set_permissions(at("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
    let link = at("shared/link");
    symlink(at("theirs"), &link).unwrap();
    let made = run(&["backup", path(&copy)], &state);
    assert!(made.status.success(), "{}", said(&made));
    // Only root can make one of another user.
    if lchown(&link, Some(65_534), None).is_err() {
        return;
    }
    for to in [link.clone(), link.join("below")] {
        for words in [
            &["backup", path(&to)][..],
            &["restore", path(&copy), "--state", path(&to)],
        ] {
            let refused = run(words, &state);
            assert!(!refused.status.success(), "{words:?}: {}", said(&refused));
            let why = "is a link of another user (uid 65534";
            assert!(
                said(&refused).contains(why),
                "{words:?}: {}",
                said(&refused)
            );
        }
    }
    assert!(names(&at("theirs")).is_empty());
    // Nothing is left aside.
    assert_eq!(names(&at("shared")), ["link"]);
}

#[test]
fn folders_with_contents_or_a_gateway_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let (state, copy) = (folder.path().join("state"), folder.path().join("copy"));
    let gateway = start(&state);
    let made = run(&["backup", path(&copy)], &state);
    assert!(made.status.success(), "{}", said(&made));
    let refused = |words: &[&str], error: &str| {
        let refused = run(words, &state);
        assert!(!refused.status.success(), "{}", said(&refused));
        assert!(said(&refused).contains(error), "{}", said(&refused));
    };
    refused(&["backup", path(&copy)], "is not empty");
    refused(&["restore", path(&copy)], "a gateway runs on");
    refused(
        &["backup", path(&state.join("copy"))],
        "is in the state folder",
    );
    drop(gateway);
    refused(&["restore", path(&copy)], "is not empty");
    let none = folder.path().join("none");
    let other = folder.path().join("other");
    refused(
        &["backup", path(&other), "--state", path(&none)],
        "is not the state folder of a gateway",
    );
    assert!(!other.exists() && !none.exists());
    // An empty folder is taken, and tokens end if that is wanted.
    fs::create_dir(&other).unwrap();
    key(&state);
    let later = folder.path().join("later");
    assert!(run(&["backup", path(&later)], &state).status.success());
    let done = run(
        &[
            "restore",
            path(&later),
            "--state",
            path(&other),
            "--revoke-tokens",
        ],
        &state,
    );
    assert!(done.status.success(), "{}", said(&done));
    assert!(
        said(&done).contains("ended: 1 token(s) of programs"),
        "{}",
        said(&done)
    );
    let listed = command(&other, &["tokens", "list"]);
    assert!(said(&listed).contains("revoked"), "{}", said(&listed));
}
