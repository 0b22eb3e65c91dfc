//! The keys of a record in a PostgreSQL database: state folders share only `seal.key`. A real server, real gateways, the
//! demo server.
#![cfg(all(unix, feature = "full"))]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod raw;
#[path = "raw/waiting.rs"]
mod waiting;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;

use mcp_elicit_testkit::postgres::{PostgresServer, TestDatabase};
use raw::{DEMO_SERVER, PROGRAM, Raw, gateway, inbox, text};
use serde_json::{Value, json};
use waiting::{LOOK, LOOKS, waiting};

const REVISION: &str = "2025-11-25";

/// The output of a command.
#[derive(Debug)]
struct Done {
    code: Option<i32>,
    out: String,
    said: String,
}

fn ended(mut command: Command) -> Done {
    command.env_remove("PGPASSWORD").env_remove("PGPASSFILE");
    let command = command.stdin(Stdio::null()).stderr(Stdio::piped());
    let done = command.output().unwrap();
    Done {
        code: done.status.code(),
        out: String::from_utf8(done.stdout).unwrap(),
        said: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}

/// A record, and state folders of its gateways.
struct Rig {
    server: &'static PostgresServer,
    database: TestDatabase,
    folder: tempfile::TempDir,
}

impl Rig {
    fn new() -> Option<Self> {
        let server = PostgresServer::shared()?;
        let (database, folder) = (server.database(), tempfile::tempdir().unwrap());
        Some(Self {
            server,
            database,
            folder,
        })
    }

    /// Returns a state folder, which need not exist.
    fn state(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a state folder that has nothing but the `seal.key` of another.
    fn with_seal_of(&self, name: &str, from: &Path) -> PathBuf {
        let state = self.state(name);
        fs::create_dir(&state).unwrap();
        fs::copy(from.join("seal.key"), state.join("seal.key")).unwrap();
        state
    }

    fn start(&self, state: &Path) -> Raw {
        let options = ["--record", &self.database.address];
        let mut raw = Raw::start(gateway(state, &options, &DEMO_SERVER));
        raw.initialize(REVISION, &json!({}));
        raw
    }

    /// Starts a gateway that is refused.
    fn refused(&self, state: &Path) -> Done {
        let options = ["--record", &self.database.address];
        ended(gateway(state, &options, &DEMO_SERVER))
    }

    /// Runs the check that comes before a start.
    fn check(&self, state: &Path) -> Done {
        let mut command = Command::new(PROGRAM);
        command.args(["gateway", "--check", "--record", &self.database.address]);
        command.arg("--state").arg(state).args(DEMO_SERVER);
        ended(command)
    }

    fn run(&self, state: &Path, words: &[&str]) -> Done {
        let mut command = Command::new(PROGRAM);
        command.args(words).arg("--state").arg(state);
        command.args(["--record", &self.database.address]);
        ended(command)
    }

    fn done(&self, state: &Path, words: &[&str]) -> Done {
        let done = self.run(state, words);
        assert_eq!(done.code, Some(0), "{words:?}: {done:?}");
        done
    }

    fn uses(&self, state: &Path) -> Vec<String> {
        let listed = self.done(state, &["keys", "list", "--json"]).out;
        let uses = listed.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["use"].as_str().unwrap().to_owned()
        });
        uses.collect()
    }

    fn sql(&self, text: &str) -> String {
        self.server.sql(&self.database.name, text).unwrap()
    }
}

fn seal(state: &Path) -> Vec<u8> {
    fs::read(state.join("seal.key")).unwrap()
}

fn identity(state: &Path) -> Vec<u8> {
    fs::read(state.join("identity.key")).unwrap()
}

/// Answers a question at one gateway whose call waits at another.
fn answer(state: &Path, raw: &mut Raw, call: u64) {
    raw.call(call, "deploy", &json!({"number": call}));
    let id = waiting(state);
    let (_, shown) = inbox(state, &["show", &id]);
    assert!(format!("{shown:?}").contains("number"), "{shown:?}");
    assert!(inbox(state, &["accept", &id, "environment=staging"]).0);
    let done = raw.result(call);
    assert!(text(&done).contains("staging"), "{done}");
}

#[test]
fn a_state_folder_with_nothing_but_the_seal_key_joins_and_gets_the_other_keys() {
    let Some(rig) = Rig::new() else { return };
    let a = rig.state("a");
    let mut at_a = rig.start(&a);
    let b = rig.with_seal_of("b", &a);
    let mut at_b = rig.start(&b);
    assert_eq!(identity(&b), identity(&a));
    assert_eq!(seal(&b), seal(&a));
    answer(&b, &mut at_a, 2);
    answer(&a, &mut at_b, 2);
    // A command alone gets them too.
    let c = rig.with_seal_of("c", &a);
    rig.done(&c, &["audit", "--verify"]);
    assert_eq!(identity(&c), identity(&a));
    let d = rig.with_seal_of("d", &a);
    rig.done(&d, &["grants", "list"]);
    assert_eq!(identity(&d), identity(&a));
    let keys = "SELECT count(*), count(DISTINCT master) FROM mcp_elicit.record_key";
    assert_eq!(rig.sql(keys), "2|1");
    let bytes = "SELECT bool_and(octet_length(wrapped) = 72) FROM mcp_elicit.record_key";
    assert_eq!(rig.sql(bytes), "t");
}

#[test]
fn a_seal_key_that_does_not_unwrap_is_refused_at_the_start_and_the_folder_stays_as_it_is() {
    let Some(rig) = Rig::new() else { return };
    let a = rig.state("a");
    drop(rig.start(&a));
    let b = rig.state("b");
    fs::create_dir(&b).unwrap();
    let is_refused = |parts: &[&str]| {
        for refused in [rig.check(&b), rig.refused(&b)] {
            assert_eq!(refused.code, Some(3), "{refused:?}");
            for part in parts {
                assert!(refused.said.contains(part), "{part}: {refused:?}");
            }
            assert!(!b.join("identity.key").exists());
        }
    };
    is_refused(&["seal.key is missing", "copy seal.key"]);
    assert!(!b.join("seal.key").exists());
    fs::write(b.join("seal.key"), [7; 32]).unwrap();
    is_refused(&["seal.key in the state folder is not", "copy seal.key"]);
    assert_eq!(seal(&b), [7; 32]);
    fs::write(b.join("seal.key"), [7; 31]).unwrap();
    is_refused(&["has no key", "copy seal.key"]);
    fs::copy(a.join("seal.key"), b.join("seal.key")).unwrap();
    // The check writes nothing.
    let checked = rig.check(&b);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(!b.join("identity.key").exists());
    // Another identity is not overwritten.
    fs::write(b.join("identity.key"), [7; 32]).unwrap();
    for refused in [rig.check(&b), rig.refused(&b)] {
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.said.contains("identity.key"), "{refused:?}");
        assert_eq!(identity(&b), [7; 32]);
    }
    fs::remove_file(b.join("identity.key")).unwrap();
    drop(rig.start(&b));
    // A row that someone has changed.
    rig.sql(
        "UPDATE mcp_elicit.record_key SET wrapped = wrapped || '\\x00'::bytea WHERE kind = 'data'",
    );
    for refused in [rig.check(&b), rig.refused(&b)] {
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.said.contains("was changed"), "{refused:?}");
    }
}

/// Turns the record into one of the layout before, whose keys are in files only.
fn as_before(rig: &Rig) {
    rig.sql(
        "DROP TABLE mcp_elicit.record_key; ALTER TABLE mcp_elicit.replica DROP COLUMN newest_key, DROP COLUMN masters; \
         UPDATE mcp_elicit.meta SET layout = 1, readable_by = 1",
    );
}

#[test]
fn a_record_whose_keys_are_in_files_is_adopted_once_with_the_keys_that_are_its_own() {
    let Some(rig) = Rig::new() else { return };
    let a = rig.state("a");
    let mut raw = rig.start(&a);
    raw.call(2, "deploy", &json!({"number": 2}));
    let id = waiting(&a);
    drop(raw);
    rig.done(&a, &["keys", "rotate"]);
    let (keys, own) = (seal(&a), identity(&a));
    assert_eq!(keys.len(), 64);
    as_before(&rig);
    let rows = "SELECT count(*) FROM mcp_elicit.record_key";
    // A folder that has only one of the keys, or others, is refused, and writes none.
    let b = rig.with_seal_of("b", &a);
    let others = rig.state("others");
    fs::create_dir(&others).unwrap();
    fs::write(others.join("seal.key"), [7; 32]).unwrap();
    fs::write(others.join("identity.key"), &own).unwrap();
    for (state, part) in [(&b, "identity.key"), (&others, "seal.key")] {
        let refused = rig.refused(state);
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.said.contains(part), "{refused:?}");
        assert_eq!(rig.sql(rows), "0");
    }
    assert!(!b.join("identity.key").exists());
    // Its own folder gives them.
    drop(rig.start(&a));
    assert_eq!((seal(&a), identity(&a)), (keys, own));
    assert_eq!(rig.sql(rows), "3");
    let mut at_b = rig.start(&b);
    assert_eq!(identity(&b), identity(&a));
    assert!(inbox(&b, &["accept", &id, "environment=staging"]).0);
    at_b.call(2, "deploy", &json!({"number": 2}));
    let done = at_b.result(2);
    assert!(text(&done).contains("staging"), "{done}");
    drop(rig.start(&a));
    assert_eq!(rig.sql(rows), "3");
}

#[test]
fn a_new_key_is_in_every_running_gateway_before_it_seals() {
    let Some(rig) = Rig::new() else { return };
    let a = rig.state("a");
    let mut at_a = rig.start(&a);
    let b = rig.with_seal_of("b", &a);
    let mut at_b = rig.start(&b);
    answer(&b, &mut at_a, 2);
    let first = seal(&a);
    rig.done(&a, &["keys", "rotate"]);
    // The other folder has the key, and seals with it.
    let has_both = |_| {
        sleep(LOOK);
        seal(&b) == seal(&a)
    };
    assert!(seal(&b).len() == 64 && seal(&a).len() == 64);
    assert!((0..LOOKS).any(has_both));
    assert_ne!(seal(&b)[..32], first);
    answer(&a, &mut at_b, 3);
    answer(&b, &mut at_a, 3);
    at_b.call(4, "deploy", &json!({"number": 4}));
    let id = waiting(&a);
    let sealed = "SELECT count(DISTINCT substring(arguments FROM 1 FOR 12)) FROM mcp_elicit.question WHERE arguments IS NOT NULL";
    assert_eq!(rig.sql(sealed), "1");
    let values = rig.done(&b, &["keys", "reseal", "--json"]).out;
    assert!(values.contains("\"left\":0"), "{values}");
    assert!(inbox(&a, &["accept", &id, "environment=staging"]).0);
    let done = at_b.result(4);
    assert!(text(&done).contains("staging"), "{done}");
    let refused = rig.run(&a, &["keys", "retire"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    // A folder that only has the master key gets both.
    let c = rig.state("c");
    fs::create_dir(&c).unwrap();
    fs::write(c.join("seal.key"), &first).unwrap();
    drop(rig.start(&c));
    assert_eq!(seal(&c), seal(&a));
    for mut gateway in [at_a, at_b] {
        gateway.child.kill().unwrap();
        gateway.child.wait().unwrap();
    }
    // Those that have just ended are waited for.
    rig.done(&a, &["keys", "reseal"]);
    let retired = rig.done(&a, &["keys", "retire"]);
    // The master key stays in the file: it unwraps what is in the table.
    let keys = "SELECT count(*) FROM mcp_elicit.record_key WHERE kind = 'data'";
    assert_eq!(rig.sql(keys), "1", "{retired:?}");
    assert!(
        retired.said.contains("stays in seal.key as the master key"),
        "{retired:?}"
    );
    assert_eq!(rig.uses(&a), ["seals", "wraps"]);
    let audited = rig.done(&a, &["audit", "--event", "rotated"]).out;
    assert!(
        audited.contains("stays in seal.key as the master key")
            && !audited.contains("which were deleted"),
        "{audited}"
    );
    drop(rig.start(&c));
    rig.done(&c, &["audit", "--verify"]);
}

#[test]
fn a_new_key_does_not_seal_while_a_running_gateway_has_not_read_it() {
    let Some(rig) = Rig::new() else { return };
    let a = rig.state("a");
    let mut raw = rig.start(&a);
    // One of an earlier version.
    rig.sql("INSERT INTO mcp_elicit.replica (id, lock, lease_until) VALUES ('old', 0, now() + interval '1 hour')");
    let before = seal(&a);
    let refused = rig.run(&a, &["keys", "rotate"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    for part in [
        "1 running gateway(s)",
        "does not seal yet",
        "run this again",
    ] {
        assert!(refused.said.contains(part), "{part}: {refused:?}");
    }
    assert_eq!(seal(&a)[..32], before, "the earlier key seals");
    let pending = seal(&a)[32..].to_vec();
    assert_eq!(pending.len(), 32);
    answer(&a, &mut raw, 2);
    rig.sql("DELETE FROM mcp_elicit.replica WHERE id = 'old'");
    rig.done(&a, &["keys", "rotate"]);
    assert_eq!(seal(&a), [pending, before].concat(), "the same key");
    answer(&a, &mut raw, 3);
}

#[test]
fn the_master_key_is_changed_while_gateways_run_and_both_open_until_the_end() {
    let Some(rig) = Rig::new() else { return };
    let a = rig.state("a");
    let mut at_a = rig.start(&a);
    let b = rig.with_seal_of("b", &a);
    let before = seal(&a);
    let new = rig.state("new.key");
    let name = new.to_str().unwrap();
    for no_key in [&[5; 31][..], &[0; 32]] {
        fs::write(&new, no_key).unwrap();
        let refused = rig.run(&a, &["keys", "rewrap", "--new", name]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.said.contains("openssl rand"), "{refused:?}");
    }
    fs::write(&new, &before).unwrap();
    let same = rig.run(&a, &["keys", "rewrap", "--finish", "--new", name]);
    assert_eq!(same.code, Some(0), "{same:?}");
    assert!(same.said.contains("nothing was changed"), "{same:?}");
    fs::write(&new, [5; 32]).unwrap();
    let early = rig.run(&a, &["keys", "rewrap", "--finish", "--new", name]);
    assert_eq!(early.code, Some(3), "it wraps nothing yet: {early:?}");
    for _ in 0..2 {
        rig.done(&a, &["keys", "rewrap", "--new", name]);
        let masters = "SELECT count(DISTINCT master), count(*) FROM mcp_elicit.record_key";
        assert_eq!(rig.sql(masters), "2|4");
    }
    assert_eq!(seal(&a), [before.clone(), vec![5; 32]].concat());
    assert_eq!(rig.uses(&a), ["seals", "wraps-next"]);
    // In a container, the key comes on standard input.
    let mut piped = Command::new(PROGRAM);
    piped.args(["keys", "rewrap", "--new", "-", "--state"]);
    piped.arg(&a).args(["--record", &rig.database.address]);
    let key = fs::File::open(&new).unwrap();
    let piped = piped.stdin(key).output().unwrap();
    assert!(piped.status.success(), "{piped:?}");
    let refused = rig.run(&a, &["keys", "rotate"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.said.contains("--finish"), "{refused:?}");
    // Folders with either of them start, and the running gateway goes on.
    let mut at_b = rig.start(&b);
    answer(&b, &mut at_a, 2);
    // Folder b would be refused at its next start.
    let early = rig.run(&a, &["keys", "rewrap", "--finish", "--new", name]);
    assert_eq!(early.code, Some(3), "{early:?}");
    for part in ["1 running gateway(s)", "does not have the new master key"] {
        assert!(early.said.contains(part), "{part}: {early:?}");
    }
    drop(at_b);
    let c = rig.state("c");
    fs::create_dir(&c).unwrap();
    fs::copy(&new, c.join("seal.key")).unwrap();
    at_b = rig.start(&c);
    answer(&a, &mut at_b, 2);
    rig.done(&a, &["keys", "rewrap", "--finish", "--new", name]);
    let old = rig.state("old");
    fs::create_dir(&old).unwrap();
    fs::write(old.join("seal.key"), &before).unwrap();
    let refused = rig.refused(&old);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.said.contains("copy seal.key"), "{refused:?}");
    // The first data key was the master key: it is in the table, like any other.
    answer(&c, &mut at_a, 3);
    rig.done(&a, &["keys", "rotate"]);
    answer(&a, &mut at_b, 3);
    drop((at_a, at_b));
    let d = rig.state("d");
    fs::create_dir(&d).unwrap();
    fs::copy(&new, d.join("seal.key")).unwrap();
    drop(rig.start(&d));
    rig.done(&d, &["audit", "--verify"]);
    // The audit tells each change, once.
    let audited = rig.done(&d, &["audit", "--event", "rotated"]).out;
    let changes = [
        "wraps the keys too",
        "alone wraps the keys",
        "a new key seals values",
    ];
    let lines: Vec<&str> = audited.lines().collect();
    assert_eq!(lines.len(), changes.len(), "{audited}");
    for (line, change) in lines.iter().zip(changes) {
        assert!(line.contains(change), "{change}: {audited}");
    }
}

#[test]
fn a_backup_and_a_move_from_a_folder_with_nothing_but_the_seal_key_have_all_keys() {
    let Some(rig) = Rig::new() else { return };
    let a = rig.state("a");
    let mut raw = rig.start(&a);
    let first = seal(&a);
    raw.call(2, "deploy", &json!({"number": 2}));
    let id = waiting(&a);
    drop(raw);
    rig.done(&a, &["keys", "rotate"]);
    let b = rig.state("b");
    fs::create_dir(&b).unwrap();
    fs::write(b.join("seal.key"), &first).unwrap();
    let copy = rig.state("copy");
    rig.done(&b, &["backup", copy.to_str().unwrap()]);
    assert_eq!(seal(&copy), seal(&a));
    assert_eq!(identity(&copy), identity(&a));
    let restored = rig.state("restored");
    let mut restore = Command::new(PROGRAM);
    restore.args(["restore", copy.to_str().unwrap(), "--state"]);
    let done = ended({
        restore.arg(&restored);
        restore
    });
    assert_eq!(done.code, Some(0), "{done:?}");
    let mut show = Command::new(PROGRAM);
    show.args(["inbox", "show", &id, "--state"]).arg(&restored);
    let shown = ended(show);
    assert!(shown.out.contains("number"), "{shown:?}");
    // Into a file, and back into the database.
    let c = rig.state("c");
    fs::create_dir(&c).unwrap();
    fs::write(c.join("seal.key"), &first).unwrap();
    let moved = (0..LOOKS).find_map(|_| {
        let moved = rig.run(&c, &["record", "move", "--into", "file"]);
        sleep(LOOK);
        (moved.code == Some(0)).then_some(moved)
    });
    assert!(moved.is_some());
    assert_eq!((seal(&c), identity(&c)), (seal(&a), identity(&a)));
    let mut show = Command::new(PROGRAM);
    show.args(["inbox", "show", &id, "--state"]).arg(&c);
    let shown = ended(show);
    assert!(shown.out.contains("number"), "{shown:?}");
    rig.done(&c, &["record", "move", "--into", "database"]);
    let d = rig.state("d");
    fs::create_dir(&d).unwrap();
    fs::write(d.join("seal.key"), &seal(&c)[..32]).unwrap();
    let mut at_d = rig.start(&d);
    assert_eq!(seal(&d), seal(&c));
    assert!(inbox(&d, &["accept", &id, "environment=staging"]).0);
    at_d.call(2, "deploy", &json!({"number": 2}));
    let done = at_d.result(2);
    assert!(text(&done).contains("staging"), "{done}");
}
