//! A gateway whose record is in a PostgreSQL database: a real server, real gateways, the demo server.
#![cfg(all(unix, feature = "full"))]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod raw;
#[path = "raw/waiting.rs"]
mod waiting;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;

use mcp_elicit_testkit::postgres::{PostgresServer, TestDatabase};
use raw::{DEMO_SERVER, PROGRAM, Raw, gateway, inbox, text};
use serde_json::json;
use waiting::{LOOK, LOOKS, waiting};

const REVISION: &str = "2025-11-25";

/// Starts a gateway over this state folder and database, and opens a session.
fn start(state: &Path, database: &TestDatabase) -> Raw {
    let options = ["--record", &database.address];
    let mut raw = Raw::start(gateway(state, &options, &DEMO_SERVER));
    raw.initialize(REVISION, &json!({}));
    raw
}

/// Waits until the only pending question is waited for by a call, or no longer is.
fn is_waited_for(state: &Path, expected: bool) {
    let is = |_| {
        let (_, open) = inbox(state, &["list"]);
        let found = matches!(open.as_slice(), [one] if one["waitedFor"] == json!(expected));
        if !found {
            sleep(LOOK);
        }
        found
    };
    assert!((0..LOOKS).any(is), "waited for: {expected}");
}

/// Accepts a question.
fn accept(state: &Path, id: &str) -> bool {
    inbox(state, &["accept", id, "environment=staging"]).0
}

#[test]
fn a_question_in_a_database_is_answered_and_its_answer_delivered() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let state = tempfile::tempdir().unwrap();
    let mut raw = start(state.path(), &database);
    raw.call(2, "deploy", &json!({}));
    let id = waiting(state.path());
    assert!(accept(state.path(), &id));
    let done = raw.result(2);
    assert!(text(&done).contains("staging"), "{done}");
    assert!(!state.path().join("record.sqlite").exists());
    let audit = || server.sql(&database.name, "SELECT entry FROM mcp_elicit.audit");
    // The delivery is noted after the result.
    let noted = (0..LOOKS).any(|_| {
        sleep(LOOK);
        audit().unwrap().contains("\"delivered\"")
    });
    assert!(noted);
    assert!(!audit().unwrap().contains("staging"));
}

#[test]
fn another_replica_answers_for_a_task() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let state = tempfile::tempdir().unwrap();
    let options = ["--record", &database.address, "--tasks"];
    let open = || {
        let mut raw = Raw::start(gateway(state.path(), &options, &DEMO_SERVER));
        raw.initialize(REVISION, &json!({"tasks": {}}));
        raw
    };
    let request = |id: u64, method: &str, params| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let mut first = open();
    let call = json!({"name": "deploy", "arguments": {}, "task": {}});
    first.send(&request(2, "tools/call", call));
    let created = first.result(2);
    let about = json!({"taskId": created["result"]["task"]["taskId"]});
    let id = waiting(state.path());
    let mut second = open();
    second.send(&request(3, "tasks/get", about.clone()));
    let state_there = second.result(3);
    assert_eq!(
        state_there["result"]["status"], "input_required",
        "{state_there}"
    );
    second.send(&request(4, "tasks/result", about.clone()));
    assert!(accept(state.path(), &id));
    let done = second.result(4);
    assert!(text(&done).contains("staging"), "{done}");
    drop(first);
    second.send(&request(5, "tasks/get", about));
    assert_eq!(second.result(5)["result"]["status"], "completed");
}

#[test]
fn another_role_that_owns_the_schema_is_named_at_the_start() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let made = "CREATE ROLE keeper; CREATE ROLE tenant LOGIN; CREATE SCHEMA mcp_elicit AUTHORIZATION keeper; \
        GRANT ALL ON SCHEMA mcp_elicit TO tenant";
    server.sql(&database.name, made).unwrap();
    let state = tempfile::tempdir().unwrap();
    let said = || {
        let address = database.address.replacen("postgres@", "tenant@", 1);
        refused(state.path(), &address, &[]).1
    };
    let warned = said();
    assert!(
        warned.contains("another role owns") && warned.contains("keeper"),
        "{warned}"
    );
    let mended = "ALTER SCHEMA mcp_elicit OWNER TO tenant";
    server.sql(&database.name, mended).unwrap();
    let quiet = said();
    assert!(!quiet.contains("another role owns"), "{quiet}");
}

#[test]
fn a_program_that_answers_does_not_get_the_password_of_the_database() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("environment");
    let answer = r#"{"action":"accept","content":{"environment":"staging"}}"#;
    let script = format!("env > '{}'; echo '{answer}'", note.display());
    let words = ["sh", "-c", &script].map(|word| shell_words::quote(word).into_owned());
    let program = words.join(" ");
    let passwords = folder.path().join("pgpass");
    fs::write(&passwords, "").unwrap();
    fs::set_permissions(&passwords, fs::Permissions::from_mode(0o600)).unwrap();
    let state = folder.path().join("state");
    let file = folder.path().join("gateway.toml");
    let (place, record, own) = (state.display(), &database.address, DEMO_SERVER[1]);
    let config = format!(
        "state = \"{place}\"\nrecord = \"{record}\"\ninbox = \"127.0.0.1:0\"\n[servers.demo]\ncommand = [\"{own}\", \"demo-server\"]\n\
         answer-with = \"command\"\nanswer-command = [\"sh\", \"-c\", '\'\'{script}\'\'']\n"
    );
    fs::write(&file, config).unwrap();
    let options = [
        "--record",
        record,
        "--answer-with",
        "command",
        "--answer-command",
        &program,
    ];
    let mut of_file = Command::new(PROGRAM);
    of_file.args(["gateway", "--config"]).arg(&file);
    for mut command in [gateway(&state, &options, &DEMO_SERVER), of_file] {
        command
            // With a password, a server that asks for none is not used.
            .env_remove("PGPASSWORD")
            .env("PGPASSFILE", &passwords)
            .env("KEPT", "yes");
        let mut raw = Raw::start(command);
        raw.initialize(REVISION, &json!({}));
        raw.call(2, "deploy", &json!({}));
        let done = raw.result(2);
        assert!(text(&done).contains("staging"), "{done}");
        let environment = fs::read_to_string(&note).unwrap();
        assert!(
            environment.contains("KEPT=yes") && !environment.contains("PGPASS"),
            "{environment}"
        );
        fs::remove_file(&note).unwrap();
    }
}

#[test]
fn an_answer_survives_the_gateway_being_killed() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let state = tempfile::tempdir().unwrap();
    let mut first = start(state.path(), &database);
    first.call(2, "deploy", &json!({}));
    let id = waiting(state.path());
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let mut second = start(state.path(), &database);
    assert_eq!(waiting(state.path()), id, "the question is still there");
    is_waited_for(state.path(), false);
    assert!(accept(state.path(), &id));
    second.call(2, "deploy", &json!({}));
    let done = second.result(2);
    assert!(text(&done).contains("staging"), "{done}");
    let (_, ended) = inbox(state.path(), &["list", "--ended"]);
    assert_eq!(ended.len(), 1, "it was not asked twice: {ended:?}");
}

#[test]
fn a_question_waits_while_the_database_stops_and_starts() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = server.database();
    let state = tempfile::tempdir().unwrap();
    let mut raw = start(state.path(), &database);
    raw.call(2, "deploy", &json!({}));
    let id = waiting(state.path());
    server.stop();
    assert!(!accept(state.path(), &id), "nothing is accepted meanwhile");
    let listed = raw::command(state.path(), &["inbox", "list"]);
    let said = String::from_utf8_lossy(&listed.stderr);
    assert!(!listed.status.success(), "{said}");
    assert!(said.contains("next: try again when the gateway"), "{said}");
    server.start_again();
    let accepted = (0..LOOKS).any(|_| {
        sleep(LOOK);
        accept(state.path(), &id)
    });
    assert!(accepted);
    let done = raw.result(2);
    assert!(text(&done).contains("staging"), "{done}");
}

/// Copies the keys of a record to the state folder of another machine.
fn copy_keys(from: &Path, to: &Path) {
    for name in ["seal.key", "identity.key"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

#[test]
fn an_answer_at_one_gateway_reaches_the_call_at_another() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    let mut at_a = start(&a, &database);
    fs::create_dir(&b).unwrap();
    copy_keys(&a, &b);
    let mut at_b = start(&b, &database);
    at_a.call(2, "deploy", &json!({}));
    let id = waiting(&b);
    is_waited_for(&b, true);
    assert!(accept(&b, &id));
    let done = at_a.result(2);
    assert!(text(&done).contains("staging"), "{done}");
    // A gateway that ends leaves its questions to the others: the same call made again there finds them.
    at_a.call(3, "deploy", &json!({"again": true}));
    let id = waiting(&b);
    at_a.child.kill().unwrap();
    at_a.child.wait().unwrap();
    is_waited_for(&b, false);
    at_b.call(2, "deploy", &json!({"again": true}));
    is_waited_for(&b, true);
    assert_eq!(waiting(&b), id, "it was not asked twice");
    assert!(accept(&b, &id));
    let done = at_b.result(2);
    assert!(text(&done).contains("staging"), "{done}");
}

#[test]
fn a_migration_is_shown_before_it_is_run() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let migrate = |more: &[&str]| {
        let words = ["record", "migrate", "--record", &database.address];
        let done = Command::new(PROGRAM).args(words).args(more).output();
        let done = done.unwrap();
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    let planned = migrate(&["--dry-run"]);
    assert!(
        planned.contains("CREATE TABLE mcp_elicit.question"),
        "{planned}"
    );
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'mcp_elicit'";
    assert_eq!(server.sql(&database.name, tables).unwrap(), "0");
    migrate(&[]);
    assert_ne!(server.sql(&database.name, tables).unwrap(), "0");
    assert_eq!(migrate(&["--dry-run"]), "");
}

/// Starts a gateway without a client. Returns its exit code and its stderr.
fn refused(state: &Path, address: &str, more: &[&str]) -> (Option<i32>, String) {
    let options = [&["--record", address], more].concat();
    let mut command = gateway(state, &options, &DEMO_SERVER);
    command.env_remove("PGPASSWORD").env_remove("PGPASSFILE");
    let done = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said)
}

#[test]
fn a_database_that_cannot_be_used_stops_the_start_with_a_reason_and_nothing_is_written() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let is_refused = |address: &str, code: i32, words: &[&str]| {
        let (found, said) = refused(&state, address, &[]);
        assert_eq!(found, Some(code), "{address}: {said}");
        for word in words {
            assert!(said.contains(word), "{address}: {word}: {said}");
        }
        assert!(!said.contains("s3cret"), "{said}");
    };
    let port = server.port();
    let at = |user: &str, database: &str| format!("postgres://{user}@127.0.0.1:{port}/{database}");

    is_refused(
        "postgres://a@127.0.0.1:1/x",
        3,
        &["the record cannot be reached", "refused"],
    );
    is_refused(
        "postgres://a:s3cret@127.0.0.1:1/x",
        2,
        &["password", "PGPASSFILE"],
    );
    is_refused(
        "postgres://a@127.0.0.1:1/x?sslmode=prefer",
        2,
        &["verify-full"],
    );
    is_refused(
        &at("postgres", "missing"),
        3,
        &["no such database", "createdb"],
    );

    let latin = server.database_with("ENCODING 'LATIN1'");
    is_refused(&latin.address, 3, &["LATIN1", "--encoding=UTF8"]);
    let schema = "SELECT count(*) FROM pg_namespace WHERE nspname = 'mcp_elicit'";
    assert_eq!(server.sql(&latin.name, schema).unwrap(), "0");

    let foreign = server.database();
    let other = "CREATE SCHEMA mcp_elicit; CREATE TABLE mcp_elicit.other (id int)";
    server.sql(&foreign.name, other).unwrap();
    is_refused(
        &foreign.address,
        3,
        &["not a gateway's record", "another database"],
    );
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'mcp_elicit'";
    assert_eq!(server.sql(&foreign.name, tables).unwrap(), "1");

    let plain = server.database();
    server.sql("postgres", "CREATE ROLE guest LOGIN").unwrap();
    is_refused(
        &at("guest", &plain.name),
        3,
        &["no right", "CREATE SCHEMA mcp_elicit"],
    );
    assert_eq!(server.sql(&plain.name, schema).unwrap(), "0");

    // A record, whose tables another user may not use, and of a newer version.
    let record = server.database();
    let mut owner = start(&state, &record);
    owner.call(2, "deploy", &json!({}));
    waiting(&state);
    drop(owner);
    let elsewhere = folder.path().join("elsewhere");
    let (code, said) = refused(&elsewhere, &record.address, &[]);
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("identity.key") || said.contains("seal.key"),
        "{said}"
    );
    fs::copy(state.join("identity.key"), elsewhere.join("identity.key")).unwrap();
    let (code, said) = refused(&elsewhere, &record.address, &[]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("seal.key") && said.contains("copy"), "{said}");
    let usage =
        "GRANT USAGE ON SCHEMA mcp_elicit TO guest; GRANT SELECT ON mcp_elicit.meta TO guest";
    server.sql(&record.name, usage).unwrap();
    is_refused(&at("guest", &record.name), 3, &["no right", "OWNER"]);
    let newer = "UPDATE mcp_elicit.meta SET layout = 99, readable_by = 99";
    server.sql(&record.name, newer).unwrap();
    is_refused(&record.address, 3, &["newer version", "99"]);

    // A password.
    server
        .sql("postgres", "CREATE ROLE locked LOGIN PASSWORD 's3cret'; GRANT CREATE ON DATABASE postgres TO locked")
        .unwrap();
    let file = server.data().join("pg_hba.conf");
    let rules = fs::read_to_string(&file).unwrap();
    let locked = format!("host all locked 127.0.0.1/32 scram-sha-256\n{rules}");
    fs::write(&file, locked).unwrap();
    server.sql("postgres", "SELECT pg_reload_conf()").unwrap();
    let address = at("locked", "postgres");
    let asks = |_| {
        sleep(LOOK);
        let words = ["record", "migrate", "--dry-run", "--record", &address];
        let done = Command::new(PROGRAM).args(words).output().unwrap();
        !done.status.success()
    };
    assert!((0..LOOKS).any(asks), "the server has read its rules");
    is_refused(
        &address,
        3,
        &["asks for a password", "--record-password-file"],
    );
    let password = folder.path().join("password");
    fs::write(&password, "wr0ng\n").unwrap();
    let (code, said) = refused(
        &state,
        &address,
        &["--record-password-file", password.to_str().unwrap()],
    );
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("does not let this user in") && !said.contains("wr0ng"),
        "{said}"
    );
    fs::write(&password, "s3cret\n").unwrap();
    let fresh = folder.path().join("fresh");
    let mut command = Command::new(PROGRAM);
    command.args(["gateway", "--state"]).arg(&fresh);
    command.args(["--inbox", "127.0.0.1:0", "--record", &address]);
    command.arg("--record-password-file").arg(&password);
    command.args(DEMO_SERVER).stderr(Stdio::null());
    let mut raw = Raw::start(command);
    raw.initialize(REVISION, &json!({}));
    drop(raw);
    // A server that wants the password itself, or proves nothing, may be anybody who listens there.
    for (method, words) in [
        ("password", "asks for the password itself"),
        ("trust", "did not ask for the password"),
    ] {
        let rule = format!("host all locked 127.0.0.1/32 {method}\n{rules}");
        fs::write(&file, rule).unwrap();
        server.sql("postgres", "SELECT pg_reload_conf()").unwrap();
        let says = |_| {
            sleep(LOOK);
            let options = ["--record-password-file", password.to_str().unwrap()];
            let (code, said) = refused(&fresh, &address, &options);
            assert!(!said.contains("s3cret"), "{said}");
            code == Some(3) && said.contains(words) && said.contains("scram-sha-256")
        };
        assert!((0..LOOKS).any(says), "{method}");
    }

    // A standby.
    server.stop();
    fs::write(server.data().join("standby.signal"), "").unwrap();
    server.start_again();
    is_refused(&plain.address, 3, &["standby", "primary"]);
}

#[test]
fn a_check_tries_the_record_and_reads_from_it_which_server_was_seen_to_ask() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let check = |state: &Path, address: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["gateway", "--check", "--record", address, "--state"]);
        let done = command.arg(state).args(DEMO_SERVER).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), said)
    };
    // A database without a record gets one at the start.
    let (code, said) = check(&state, &database.address);
    assert_eq!(code, Some(0), "{said}");
    let schema = "SELECT count(*) FROM pg_namespace WHERE nspname = 'mcp_elicit'";
    assert_eq!(server.sql(&database.name, schema).unwrap(), "0");
    assert!(!state.exists());
    let mut raw = start(&state, &database);
    raw.call(2, "deploy", &json!({}));
    assert!(accept(&state, &waiting(&state)));
    raw.result(2);
    drop(raw.stdin.take());
    assert!(raw.child.wait().unwrap().success());
    let (code, said) = check(&state, &database.address);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("seen to ask on 2025-11-25"), "{said}");

    let missing = database.address.replace(&database.name, "missing");
    let empty = server.database();
    let newer = "UPDATE mcp_elicit.meta SET layout = 99, readable_by = 99";
    for (address, words) in [
        ("postgres://postgres@127.0.0.1:1/elicit", "cannot"),
        (missing.as_str(), "no such database"),
        (empty.address.as_str(), "is in the database"),
        (database.address.as_str(), "newer version"),
    ] {
        if words == "newer version" {
            server.sql(&database.name, newer).unwrap();
        }
        let (code, said) = check(&state, address);
        assert_eq!(code, Some(3), "{words}: {said}");
        for word in [words, "next:", "speaks"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
    assert_eq!(server.sql(&empty.name, schema).unwrap(), "0");
}
