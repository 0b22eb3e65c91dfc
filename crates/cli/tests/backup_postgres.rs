//! `backup` and `restore` of a record in a database: a real server, gateways, and commands that are killed or cut off in
//! the middle.
#![cfg(all(unix, feature = "full"))]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod raw;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use mcp_elicit_testkit::postgres::{PostgresServer, TestDatabase};
use raw::{DEMO_SERVER, PROGRAM, Raw, gateway, inbox, text};
use serde_json::{Value, json};

const REVISION: &str = "2025-11-25";
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: usize = 1_200;

fn path(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(words)
        .env_remove("PGPASSWORD")
        .env_remove("PGPASSFILE")
        .env_remove("MCP_ELICIT_STATE")
        .stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn done(words: &[&str]) -> String {
    let done = command(words).output().unwrap();
    let said = said(&done);
    assert!(done.status.success(), "{words:?}: {said}");
    said
}

fn refused(words: &[&str], code: i32, parts: &[&str]) {
    let done = command(words).output().unwrap();
    let said = said(&done);
    assert_eq!(done.status.code(), Some(code), "{words:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{part}: {said}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A state folder, and the database of its record.
struct Place {
    state: PathBuf,
    record: String,
}

impl Place {
    fn new(folder: &Path, database: &TestDatabase) -> Self {
        Self {
            state: folder.to_owned(),
            record: database.address.clone(),
        }
    }

    fn options(&self) -> [&str; 4] {
        ["--state", path(&self.state), "--record", &self.record]
    }

    fn start(&self, more: &[&str]) -> Raw {
        let options = [&["--record", &self.record], more].concat();
        let mut raw = Raw::start(gateway(&self.state, &options, &DEMO_SERVER));
        raw.initialize(REVISION, &json!({}));
        raw
    }

    fn done(&self, words: &[&str]) -> String {
        done(&[words, &self.options()[..]].concat())
    }

    fn refused(&self, words: &[&str], code: i32, parts: &[&str]) {
        refused(&[words, &self.options()[..]].concat(), code, parts);
    }

    /// Returns the ids of the questions that wait, as soon as there are this many.
    fn waiting(&self, count: usize) -> Vec<String> {
        for _ in 0..LOOKS {
            let (_, rows) = inbox(&self.state, &["list", "--record", &self.record]);
            if rows.len() == count {
                let id = |row: &Value| row["id"].as_str().unwrap().to_owned();
                return rows.iter().map(id).collect();
            }
            sleep(LOOK);
        }
        panic!("not {count} questions");
    }
}

fn end(mut raw: Raw) {
    raw.child.kill().unwrap();
    raw.child.wait().unwrap();
}

/// Makes a call again until it is not handed back.
fn call_again(raw: &mut Raw, first: u64, number: u64) -> String {
    for id in first..first + 200 {
        raw.call(id, "deploy", &json!({"n": number}));
        let result = raw.result(id);
        if !text(&result).starts_with("Not done yet") {
            return text(&result).to_owned();
        }
        sleep(LOOK);
    }
    panic!("the call {number} is handed back each time");
}

/// Waits until the database has no more running gateways, as after a kill.
fn none_runs(server: &PostgresServer, database: &TestDatabase) {
    let leases = "SELECT count(*) FROM mcp_elicit.replica WHERE lease_until > clock_timestamp()";
    let is_over = (0..LOOKS).any(|_| {
        sleep(LOOK);
        server.sql(&database.name, leases).unwrap() == "0"
    });
    assert!(is_over);
}

/// Ends a gateway as its client does.
fn close(mut raw: Raw) {
    drop(raw.stdin.take());
    raw.child.wait().unwrap();
}

/// The database is replaced by a copy that the server's own tools made before an answer was delivered.
#[test]
fn a_database_that_was_restored_with_its_own_tools_is_noticed_and_no_answer_is_delivered_twice() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let (database, another) = (server.database(), server.database());
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(&folder.path().join("state"), &database);
    let hold = ["--hold", "0"];
    let mut raw = place.start(&hold);
    raw.call(2, "deploy", &json!({"n": 1}));
    assert!(text(&raw.result(2)).starts_with("Not done yet"));
    let [given] = place.waiting(1).try_into().unwrap();
    close(raw);
    place.done(&["inbox", "accept", &given, "environment=staging"]);
    none_runs(server, &database);
    let name = format!("{}_copy", database.name);
    let copy = format!("CREATE DATABASE {name} TEMPLATE {}", database.name);
    let is_copied = (0..LOOKS).any(|_| {
        sleep(LOOK);
        server.sql(&another.name, &copy).is_ok()
    });
    assert!(is_copied, "nothing is connected to it");
    let mut raw = place.start(&hold);
    assert!(call_again(&mut raw, 2, 1).contains("staging"));
    close(raw);

    // The gateway has noted the end of the audit as it left it.
    let seen = fs::read_to_string(place.state.join("audit.seen")).unwrap();
    let seen: Value = serde_json::from_str(&seen).unwrap();
    let last = "SELECT max(number) FROM mcp_elicit.audit";
    let last = server.sql(&database.name, last).unwrap();
    assert_eq!(seen["number"].to_string(), last);

    let restored = Place {
        state: place.state.clone(),
        record: place.record.replace(&database.name, &name),
    };
    // Another gateway of the record, with a folder of its own.
    let beside = Place {
        state: folder.path().join("beside"),
        record: restored.record.clone(),
    };
    mcp_elicit_inbox::state_folder::StateFolder::open(&beside.state).unwrap();
    for file in ["seal.key", "identity.key", "audit.seen"] {
        fs::copy(place.state.join(file), beside.state.join(file)).unwrap();
    }
    for place in [&restored, &beside] {
        let options = place.options();
        let start = [&["gateway"], &options[..], &DEMO_SERVER].concat();
        refused(
            &start,
            3,
            &[
                "was replaced by an older copy",
                "mcp-elicit record restored --state",
                &format!("--record {}", place.record),
            ],
        );
    }
    // The next step names the file of a gateway that was started with one.
    let file = folder.path().join("gateway.toml");
    let config = format!(
        "state = {:?}\nrecord = {:?}\n[servers.demo]\ncommand = [{PROGRAM:?}, \"demo-server\"]\n",
        restored.state, restored.record
    );
    fs::write(&file, config).unwrap();
    let option = format!("record restored --config {}", path(&file));
    refused(&["gateway", "--config", path(&file)], 3, &[&option]);
    // Each waits until the process before it no longer counts.
    let say = ["record", "restored"];
    let told = restored.done(&say);
    assert!(
        told.contains("ended: 1 answer(s) that were not delivered"),
        "{told}"
    );
    let told = restored.done(&say);
    assert!(told.contains("nothing was left to end"), "{told}");
    for (call, place) in [(10, &restored), (20, &beside)] {
        let mut raw = place.start(&hold);
        raw.call(call, "deploy", &json!({"n": 1}));
        assert!(text(&raw.result(call)).starts_with("Not done yet"));
        let waiting = place.waiting(1);
        assert!(!waiting.contains(&given), "{waiting:?}");
        close(raw);
    }
    let audit = restored.done(&["audit", "--verify"]);
    assert!(audit.contains("the chain is intact"), "{audit}");
    server
        .sql(
            &another.name,
            &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
        )
        .unwrap();
}

#[test]
fn a_backup_of_a_running_gateway_is_restored_into_another_database_and_no_answer_is_delivered_twice()
 {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let (database, another) = (server.database(), server.database());
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(&folder.path().join("state"), &database);
    let copy = folder.path().join("copy");
    let hold = ["--hold", "0"];
    let mut raw = place.start(&hold);
    place.done(&["tokens", "make", "ci", "--scope", "answer"]);
    raw.call(2, "deploy", &json!({"n": 1}));
    assert!(text(&raw.result(2)).starts_with("Not done yet"));
    let [given] = place.waiting(1).try_into().unwrap();
    end(raw);
    // Given while no call waits for it: it is kept for the same call made again.
    place.done(&["inbox", "accept", &given, "environment=staging"]);
    let mut raw = place.start(&hold);
    raw.call(2, "deploy", &json!({"n": 2}));
    assert!(text(&raw.result(2)).starts_with("Not done yet"));
    let [open] = place.waiting(1).try_into().unwrap();

    // Without the database, the copy would have no record.
    let state = ["--state", path(&place.state)];
    let untold = [&["backup", path(&copy)], &state[..]].concat();
    refused(
        &untold,
        2,
        &["is in a database", &format!("--record {}", place.record)],
    );
    assert!(!copy.exists());
    let made = place.done(&["backup", path(&copy), "--json"]);
    let made: Value = serde_json::from_str(made.lines().next().unwrap()).unwrap();
    assert_eq!(made["record"]["open"], 1, "{made}");
    assert_eq!(made["record"]["questions"], 2, "{made}");
    assert_eq!(
        names(&copy),
        [
            "backup.json",
            "identity.key",
            "inbox.token",
            "record.address",
            "record.sqlite",
            "seal.key"
        ]
    );
    let bits = std::os::unix::fs::PermissionsExt::mode;
    for name in names(&copy) {
        let about = fs::metadata(copy.join(&name)).unwrap();
        assert_eq!(bits(&about.permissions()) & 0o777, 0o600, "{name}");
    }
    let checked = done(&["backup", path(&copy), "--check"]);
    assert!(checked.contains("an intact audit of"), "{checked}");

    // The gateway goes on: the answer is delivered to the same call made again.
    end(raw);
    none_runs(server, &database);
    let mut raw = place.start(&hold);
    assert!(call_again(&mut raw, 2, 1).contains("staging"));
    end(raw);

    let restored = Place::new(&folder.path().join("restored"), &another);
    let told = restored.done(&["restore", path(&copy)]);
    for part in [
        "ended: 1 answer(s) that were not delivered",
        "1 token(s) of programs work again",
        &format!("the record is in {}", another.address),
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!restored.state.join("record.sqlite").exists());
    let address = fs::read_to_string(restored.state.join("record.address")).unwrap();
    assert_eq!(address.trim(), another.address);
    let verified = restored.done(&["audit", "--verify"]);
    assert!(verified.contains("the chain is intact"), "{verified}");
    assert!(restored.done(&["audit"]).contains("restored from a backup"));
    assert!(restored.done(&["tokens", "list"]).contains("ci"));
    let mut raw = restored.start(&hold);
    assert_eq!(restored.waiting(1), std::slice::from_ref(&open));
    // The same call made again is a new question, not the old answer.
    raw.call(2, "deploy", &json!({"n": 1}));
    assert!(text(&raw.result(2)).starts_with("Not done yet"));
    assert!(!restored.waiting(2).contains(&given));
    // The question that was open is answered, and its call gets the answer.
    restored.done(&["inbox", "accept", &open, "environment=staging"]);
    end(raw);
    none_runs(server, &another);
    let mut raw = restored.start(&hold);
    assert!(call_again(&mut raw, 2, 2).contains("staging"));
    end(raw);

    // The same backup is restored into a folder without a database.
    let alone = folder.path().join("alone");
    let words = [
        "restore",
        path(&copy),
        "--revoke-tokens",
        "--state",
        path(&alone),
    ];
    assert!(done(&words).contains("ended: 1 token(s) of programs"));
    assert!(alone.join("record.sqlite").exists() && !alone.join("record.address").exists());
    let verified = done(&["audit", "--verify", "--state", path(&alone)]);
    assert!(verified.contains("the chain is intact"), "{verified}");
    // And a backup of that one into a database.
    let third = Place::new(&folder.path().join("third"), &server.database());
    let again = folder.path().join("again");
    done(&["backup", path(&again), "--state", path(&alone)]);
    third.done(&["restore", path(&again)]);
    third.done(&["audit", "--verify"]);
}

#[test]
fn a_database_that_cannot_take_a_record_stays_as_it_is() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(&folder.path().join("state"), &database);
    let mut raw = place.start(&["--hold", "0"]);
    raw.call(2, "deploy", &json!({}));
    raw.result(2);
    place.waiting(1);
    let copy = folder.path().join("copy");
    place.done(&["backup", path(&copy)]);
    let to = folder.path().join("to");
    let restore = ["restore", path(&copy)];
    let refuses = |database: &TestDatabase, parts: &[&str]| {
        Place::new(&to, database).refused(&restore, 3, parts);
        assert!(!to.exists());
    };

    refuses(&database, &["has a record already", "empty database"]);
    assert_eq!(place.waiting(1).len(), 1);
    let foreign = server.database();
    let other = "CREATE SCHEMA mcp_elicit; CREATE TABLE mcp_elicit.books (title text)";
    server.sql(&foreign.name, other).unwrap();
    refuses(
        &foreign,
        &["holds tables that are not a gateway's record", "another"],
    );
    let newer = server.database();
    let migrated = Place::new(&to, &newer);
    migrated.done(&["record", "migrate"]);
    let later = "UPDATE mcp_elicit.meta SET layout = 999, readable_by = 999";
    server.sql(&newer.name, later).unwrap();
    refuses(&newer, &["written by a newer version", "install"]);
    let none = TestDatabase {
        address: place.record.replace(&database.name, "nowhere"),
        name: "nowhere".to_owned(),
    };
    refuses(&none, &["there is no such database", "createdb"]);
    // A gateway has joined, and recorded nothing.
    let in_use = server.database();
    Place::new(&to, &in_use).done(&["record", "migrate"]);
    let joined =
        "INSERT INTO mcp_elicit.replica VALUES ('a', 1, clock_timestamp() + interval '1 hour')";
    server.sql(&in_use.name, joined).unwrap();
    refuses(&in_use, &["1 gateway(s) run on", "end them first"]);
    // A backup that does not verify is not restored.
    let empty = server.database();
    let broken = folder.path().join("broken");
    fs::create_dir(&broken).unwrap();
    for name in names(&copy) {
        fs::copy(copy.join(&name), broken.join(&name)).unwrap();
    }
    let file = broken.join("record.sqlite");
    let mut bytes = fs::read(&file).unwrap();
    let place_of_harm = bytes.len() / 2;
    bytes[place_of_harm] ^= 1;
    fs::write(&file, bytes).unwrap();
    let into_empty = Place::new(&to, &empty);
    into_empty.refused(
        &["restore", path(&broken)],
        1,
        &["record.sqlite was changed"],
    );
    // A backup without a record has nothing for a database.
    let fresh = folder.path().join("fresh");
    fs::create_dir(&fresh).unwrap();
    fs::write(fresh.join("inbox.presence"), "page\n").unwrap();
    let of_fresh = folder.path().join("of-fresh");
    done(&["backup", path(&of_fresh), "--state", path(&fresh)]);
    into_empty.refused(
        &["restore", path(&of_fresh)],
        2,
        &["has no record", "leave out"],
    );
    let schema = "SELECT count(*) FROM pg_namespace WHERE nspname = 'mcp_elicit'";
    assert_eq!(server.sql(&empty.name, schema).unwrap(), "0");

    // Nor is a database copied with the keys of another record.
    let other_keys = Place::new(&folder.path().join("others"), &empty);
    end(other_keys.start(&[]));
    let mixed = Place::new(&other_keys.state, &database);
    let made = folder.path().join("made");
    mixed.refused(
        &["backup", path(&made)],
        3,
        &["identity.key", "is not the key of the record"],
    );
    assert!(!made.exists() && !to.exists());
    let left = names(folder.path());
    assert!(!left.iter().any(|name| name.starts_with('.')), "{left:?}");
}

#[test]
fn a_role_that_may_only_read_makes_a_backup() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(&folder.path().join("state"), &database);
    let mut raw = place.start(&["--hold", "0"]);
    raw.call(2, "deploy", &json!({}));
    raw.result(2);
    let role = format!("reader_{}", database.name);
    let sql = format!("CREATE ROLE {role} LOGIN; GRANT pg_read_all_data TO {role}");
    server.sql(&database.name, &sql).unwrap();
    let reader = Place {
        state: place.state.clone(),
        record: place.record.replace("postgres@", &format!("{role}@")),
    };
    let copy = folder.path().join("copy");
    assert!(
        reader
            .done(&["backup", path(&copy)])
            .contains("1 of them open")
    );
}

/// A lock on a table of the record, in a transaction that is ended with [`Self::release`].
struct Locked<'s> {
    server: &'s PostgresServer,
    database: &'s str,
    holder: JoinHandle<()>,
}

const HELD_BY: &str = "query LIKE 'LOCK TABLE mcp_elicit.audit%'";

impl<'s> Locked<'s> {
    /// Keeps others from reading the audit, or with `Share` only from writing it.
    fn audit(server: &'static PostgresServer, database: &'s str, mode: &str) -> Self {
        let name = database.to_owned();
        let spelled = match mode {
            "Share" => "SHARE",
            _ => "ACCESS EXCLUSIVE",
        };
        let lock = format!("LOCK TABLE mcp_elicit.audit IN {spelled} MODE; SELECT pg_sleep(60)");
        let holder = spawn(move || {
            let _it_is_ended = server.sql(&name, &lock);
        });
        let held = format!(
            "SELECT count(*) FROM pg_locks WHERE mode = '{mode}Lock' AND granted \
            AND relation = to_regclass('mcp_elicit.audit')"
        );
        let locked = Self {
            server,
            database,
            holder,
        };
        locked.wait_for(&held, "1");
        locked
    }

    fn wait_for(&self, count: &str, expected: &str) {
        let is_there = (0..LOOKS).any(|_| {
            sleep(LOOK);
            self.server.sql(self.database, count).unwrap() == expected
        });
        assert!(is_there, "{count}");
    }

    /// Returns the statement that selects this of the connections that wait for a lock.
    fn those_that_wait(&self, what: &str) -> String {
        format!(
            "SELECT {what} FROM pg_stat_activity WHERE datname = '{}' AND wait_event_type = 'Lock'",
            self.database
        )
    }

    /// Starts a command, and waits until it waits for the lock.
    fn block(&self, words: &[&str]) -> Child {
        let child = command(words).stderr(Stdio::piped()).spawn().unwrap();
        self.wait_for(&self.those_that_wait("count(*)"), "1");
        child
    }

    /// Ends the connection that waits for the lock.
    fn cut_off(&self) {
        let sql = self.those_that_wait("pg_terminate_backend(pid)");
        self.server.sql(self.database, &sql).unwrap();
        self.wait_for(&self.those_that_wait("count(*)"), "0");
    }

    /// Kills a command while it waits for the lock, and ends the connection of another one.
    fn stop_in_the_middle(&self, words: &[&str]) {
        let mut killed = self.block(words);
        killed.kill().unwrap();
        killed.wait().unwrap();
        // The server notices the end of the process only when it answers.
        self.cut_off();
        let mut cut_off = self.block(words);
        self.cut_off();
        assert!(has_ended(&mut cut_off));
        let ended = cut_off.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(3), "{}", said(&ended));
    }

    fn release(self) {
        let sql = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}' AND {HELD_BY} AND pid <> pg_backend_pid()",
            self.database
        );
        self.server.sql(self.database, &sql).unwrap();
        self.holder.join().unwrap();
    }
}

fn has_ended(child: &mut Child) -> bool {
    (0..LOOKS).any(|_| {
        sleep(LOOK);
        child.try_wait().unwrap().is_some()
    })
}

#[test]
fn what_is_killed_or_cut_off_in_the_middle_leaves_nothing_that_is_taken_for_complete() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let (database, target) = (server.database(), server.database());
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(&folder.path().join("state"), &database);
    let mut raw = place.start(&["--hold", "0"]);
    raw.call(2, "deploy", &json!({}));
    raw.result(2);
    place.waiting(1);
    end(raw);
    none_runs(server, &database);
    let copy = folder.path().join("copy");

    // The questions are read, and the audit is not.
    let words = [&["backup", path(&copy)], &place.options()[..]].concat();
    let locked = Locked::audit(server, &database.name, "AccessExclusive");
    locked.stop_in_the_middle(&words);
    locked.release();
    assert!(!copy.exists());
    done(&words);

    // The questions are written, and the audit is not.
    let restored = Place::new(&folder.path().join("restored"), &target);
    restored.done(&["record", "migrate"]);
    let words = [&["restore", path(&copy)], &restored.options()[..]].concat();
    let rows = || {
        let count = "SELECT (SELECT count(*) FROM mcp_elicit.question) + (SELECT count(*) FROM mcp_elicit.audit) \
            + (SELECT count(*) FROM mcp_elicit.key_check)";
        server.sql(&target.name, count).unwrap()
    };
    let locked = Locked::audit(server, &target.name, "Share");
    locked.stop_in_the_middle(&words);
    locked.release();
    assert_eq!(rows(), "0");
    assert!(!restored.state.exists());
    restored.done(&["restore", path(&copy)]);
    assert_ne!(rows(), "0");
    restored.done(&["audit", "--verify"]);
    assert_eq!(restored.waiting(1).len(), 1);
}
