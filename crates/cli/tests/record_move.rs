//! `record move`: a record from the state folder into a database and back, with a real server, gateways and commands.
#![cfg(all(unix, feature = "full"))]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod raw;

use std::path::Path;
use std::process::Output;
use std::thread::sleep;
use std::time::Duration;

use mcp_elicit_testkit::postgres::PostgresServer;
use raw::{DEMO_SERVER, Raw, gateway, inbox, text};
use serde_json::{Value, json};

const REVISION: &str = "2025-11-25";
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: usize = 1_200;

/// The place of a record, as options.
struct Place<'p> {
    state: &'p Path,
    record: &'p [&'p str],
}

impl Place<'_> {
    fn start(&self) -> Raw {
        let mut raw = Raw::start(gateway(self.state, self.record, &DEMO_SERVER));
        raw.initialize(REVISION, &json!({}));
        raw
    }

    fn run(&self, words: &[&str]) -> Output {
        raw::command(self.state, &[words, self.record].concat())
    }

    fn done(&self, words: &[&str]) -> String {
        let done = self.run(words);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{words:?}: {said}");
        String::from_utf8(done.stdout).unwrap()
    }

    fn refused(&self, words: &[&str], said: &[&str]) {
        let done = self.run(words);
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success(), "{words:?}: {stderr}");
        for word in said {
            assert!(stderr.contains(word), "{word}: {stderr}");
        }
    }

    /// Returns the ids of the pending questions, as soon as there are this many.
    fn waiting(&self, count: usize) -> Vec<String> {
        for _ in 0..LOOKS {
            let (_, rows) = inbox(self.state, &[&["list"], self.record].concat());
            if rows.len() == count {
                return rows
                    .iter()
                    .map(|row| row["id"].as_str().unwrap().to_owned())
                    .collect();
            }
            sleep(LOOK);
        }
        panic!("not {count} questions");
    }

    fn stats(&self) -> Value {
        let mut stats: Value =
            serde_json::from_str(&self.done(&["record", "stats", "--json"])).unwrap();
        for changing in ["bytes", "runningCalls"] {
            stats.as_object_mut().unwrap().remove(changing);
        }
        stats
    }
}

#[test]
fn a_record_is_moved_into_a_database_and_back_and_its_questions_are_found_there() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let named = ["--record", database.address.as_str()];
    let in_file = Place { state, record: &[] };
    let in_database = Place {
        state,
        record: &named,
    };
    // One question is answered, one waits; a token is made.
    let mut raw = in_file.start();
    raw.call(2, "deploy", &json!({}));
    let [answered] = in_file.waiting(1).try_into().unwrap();
    in_file.done(&["inbox", "accept", &answered, "environment=staging"]);
    assert!(text(&raw.result(2)).contains("staging"));
    raw.call(3, "deploy", &json!({}));
    let [open] = in_file.waiting(1).try_into().unwrap();
    in_file.done(&["tokens", "make", "ci", "--scope", "answer"]);
    in_database.refused(
        &["record", "move", "--into", "database"],
        &["run", "Nothing was moved"],
    );
    raw.child.kill().unwrap();
    raw.child.wait().unwrap();

    let before = in_file.stats();
    let moved = in_database.done(&["record", "move", "--into", "database"]);
    assert!(moved.contains("2 question(s), of which 1 wait"), "{moved}");
    assert!(!state.join("record.sqlite").exists() && state.join("record.sqlite.moved").exists());
    let mut expected = before.clone();
    let events = before["auditEvents"].as_u64().unwrap();
    expected["auditEvents"] = json!(events + 1);
    assert_eq!(in_database.stats(), expected, "and that it was moved");
    in_file.refused(&["inbox", "list"], &["is in a database", "--record"]);
    let again = ["record", "move", "--into", "database"];
    in_database.refused(&again, &["is in a database", "moved already"]);
    in_database.done(&["audit", "--verify"]);
    assert!(in_database.done(&["audit"]).contains("record moved"));
    assert!(in_database.done(&["tokens", "list"]).contains("ci"));

    // The same call finds its question.
    let mut raw = in_database.start();
    raw.call(2, "deploy", &json!({}));
    assert_eq!(in_database.waiting(1), std::slice::from_ref(&open));
    in_database.refused(
        &["record", "move", "--into", "file"],
        &["run", "Nothing was moved"],
    );
    raw.child.kill().unwrap();
    raw.child.wait().unwrap();

    // It waits until the killed one no longer counts as running.
    in_database.done(&["record", "move", "--into", "file"]);
    in_database.refused(&["record", "stats"], &["no record"]);
    in_file.done(&["audit", "--verify"]);
    assert!(in_file.done(&["tokens", "list"]).contains("ci"));
    let mut raw = in_file.start();
    raw.call(2, "deploy", &json!({}));
    assert_eq!(in_file.waiting(1), std::slice::from_ref(&open));
    in_file.done(&["inbox", "accept", &open, "environment=staging"]);
    assert!(text(&raw.result(2)).contains("staging"));
}

/// The old place of a record that was moved, which a file or a script still names.
#[test]
fn no_gateway_begins_with_an_empty_record_at_the_old_place() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let named = ["--record", database.address.as_str()];
    let in_file = Place { state, record: &[] };
    let in_database = Place {
        state,
        record: &named,
    };
    let starts = |place: &Place<'_>, said: &[&str]| {
        let words = [&["gateway"], place.record, &["--state"]].concat();
        let mut command = std::process::Command::new(raw::PROGRAM);
        command.args(words).arg(state).args(DEMO_SERVER);
        let done = command.stdin(std::process::Stdio::null()).output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(3), "{stderr}");
        for word in said {
            assert!(stderr.contains(word), "{word}: {stderr}");
        }
    };
    let ended = |mut raw: Raw| {
        drop(raw.stdin.take());
        assert!(raw.child.wait().unwrap().success());
    };
    let schemas = || {
        let text = "SELECT count(*) FROM pg_namespace WHERE nspname = 'mcp_elicit'";
        server.sql(&database.name, text).unwrap()
    };
    ended(in_file.start());
    in_file.done(&["tokens", "make", "ci", "--scope", "answer"]);
    // A database for the first time: the record could be lost from sight, or is moved.
    starts(
        &in_database,
        &[
            "is its file record.sqlite",
            "record move --into database",
            "on purpose",
        ],
    );
    assert_eq!(schemas(), "0");
    in_database.refused(&["audit"], &["has no record", "leave out the database"]);

    in_database.done(&["record", "move", "--into", "database"]);
    starts(&in_file, &["is in the database", "--record", "on purpose"]);
    assert!(!state.join("record.sqlite").exists());
    in_file.refused(&["audit", "--verify"], &["is in a database", "--record"]);
    ended(in_database.start());
    // Only the note of the last event says where the record was.
    std::fs::remove_file(state.join("record.address")).unwrap();
    starts(&in_file, &["is in the database", "--record", "on purpose"]);
    in_file.refused(
        &["audit", "--verify"],
        &["no record", "any more", "--record"],
    );
    ended(in_database.start());

    in_database.done(&["record", "move", "--into", "file"]);
    starts(
        &in_database,
        &[
            "is its file record.sqlite",
            "record move --into database",
            "on purpose",
        ],
    );
    assert_eq!(schemas(), "0");
    ended(in_file.start());
    // Another gateway of the database, whose folder has no file.
    let other = tempfile::tempdir().unwrap();
    for name in ["seal.key", "identity.key", "audit.seen"] {
        std::fs::copy(state.join(name), other.path().join(name)).unwrap();
    }
    let mut command = std::process::Command::new(raw::PROGRAM);
    command.args(["gateway", "--state"]).arg(other.path());
    let refused = command.args(named).args(DEMO_SERVER).output().unwrap();
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{stderr}");
    for word in ["has no record any more", "mcp_elicit_moved", "audit.seen"] {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
    assert_eq!(schemas(), "0");
}

#[test]
fn a_database_with_a_record_is_not_written_and_the_file_stays() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let named = ["--record", database.address.as_str()];
    let others = folder.path().join("others");
    drop(
        Place {
            state: &others,
            record: &named,
        }
        .start(),
    );
    let state = folder.path().join("state");
    let in_file = Place {
        state: &state,
        record: &[],
    };
    drop(in_file.start());
    in_file.done(&["tokens", "make", "ci", "--scope", "answer"]);
    let before = in_file.stats();
    let moving = Place {
        state: &state,
        record: &named,
    };
    let into = ["record", "move", "--into", "database"];
    moving.refused(
        &into,
        &["has a record already", "empty database", "was interrupted"],
    );
    assert_eq!(in_file.stats(), before);
    Place {
        state: folder.path(),
        record: &named,
    }
    .refused(&into, &["not the state folder", "--state"]);
    in_file.refused(&into, &["no database is named", "--record"]);
}

#[test]
fn a_database_that_another_role_may_change_takes_no_record_and_commands_say_so() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let sql = |sql: &str| server.sql(&database.name, sql).unwrap();
    sql(
        "CREATE ROLE stranger; CREATE ROLE gatekeeper LOGIN; CREATE SCHEMA mcp_elicit AUTHORIZATION stranger; \
         GRANT ALL ON SCHEMA mcp_elicit TO gatekeeper",
    );
    let address = database.address.replacen("postgres@", "gatekeeper@", 1);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let in_file = Place { state, record: &[] };
    drop(in_file.start());
    in_file.done(&["tokens", "make", "ci", "--scope", "answer"]);
    let named = ["--record", address.as_str()];
    let moving = Place {
        state,
        record: &named,
    };
    let into = ["record", "move", "--into", "database"];
    let migrate = ["record", "migrate"];
    for words in [&into[..], &migrate] {
        moving.refused(words, &["stranger owns", "next:", "ALTER SCHEMA"]);
    }
    assert!(state.join("record.sqlite").exists());
    sql("ALTER SCHEMA mcp_elicit OWNER TO gatekeeper");
    moving.done(&migrate);

    // What another role left in the tables before it lost them.
    let trigger = "SET ROLE stranger; CREATE FUNCTION public.leak() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
        RESET ROLE; CREATE TRIGGER leak BEFORE INSERT ON mcp_elicit.question FOR EACH ROW EXECUTE FUNCTION public.leak()";
    let policy = "ALTER TABLE mcp_elicit.question ENABLE ROW LEVEL SECURITY; ALTER TABLE mcp_elicit.question FORCE ROW LEVEL SECURITY";
    let rule = "CREATE RULE hidden AS ON DELETE TO mcp_elicit.api_token DO INSTEAD NOTHING";
    sql("GRANT CREATE ON SCHEMA public TO stranger");
    for (made, removed, named) in [
        (
            trigger,
            "DROP TRIGGER leak ON mcp_elicit.question",
            "trigger leak",
        ),
        (
            rule,
            "DROP RULE hidden ON mcp_elicit.api_token",
            "rule hidden",
        ),
        (
            policy,
            "ALTER TABLE mcp_elicit.question NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY",
            "row-level security of",
        ),
    ] {
        sql(made);
        for words in [&into[..], &migrate] {
            moving.refused(words, &[named, "next:", "DROP"]);
        }
        sql(removed);
    }
    moving.done(&into);
    let told = |words: &[&str]| {
        let done = moving.run(words);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{words:?}: {said}");
        said
    };
    let commands: [&[&str]; 4] = [
        &["record", "stats"],
        &["audit"],
        &["tokens", "list"],
        &["record", "migrate", "--dry-run"],
    ];
    for words in commands {
        assert!(!told(words).contains("warning:"), "{words:?}");
    }
    sql(rule);
    sql(
        "ALTER TABLE mcp_elicit.audit OWNER TO stranger; GRANT ALL ON mcp_elicit.audit TO gatekeeper",
    );
    for words in commands {
        let said = told(words);
        for word in ["warning:", "another role owns", "stranger", "rule hidden"] {
            assert!(said.contains(word), "{words:?} {word}: {said}");
        }
    }
}
