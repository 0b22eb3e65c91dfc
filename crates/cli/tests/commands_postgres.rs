//! Commands that read or change a record in a PostgreSQL database: a real server, real gateways, the demo server.
#![cfg(all(unix, feature = "full"))]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[path = "raw/pooler.rs"]
mod pooler;
mod raw;
#[path = "raw/waiting.rs"]
mod waiting;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::sleep;

use mcp_elicit_testkit::postgres::{PostgresServer, TestDatabase};
use pooler::Pooler;
use raw::{DEMO_SERVER, PROGRAM, Raw, gateway, inbox};
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

impl Done {
    fn lines(&self) -> Vec<Value> {
        let lines = self.out.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn run(words: &[&str]) -> Done {
    let mut command = Command::new(PROGRAM);
    command.env_remove("PGPASSWORD").env_remove("PGPASSFILE");
    let done = command.args(words).output().unwrap();
    Done {
        code: done.status.code(),
        out: String::from_utf8(done.stdout).unwrap(),
        said: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}

/// Starts a gateway over this state folder and database, and opens a session.
fn start(state: &Path, address: &str) -> Raw {
    let mut raw = Raw::start(gateway(state, &["--record", address], &DEMO_SERVER));
    raw.initialize(REVISION, &json!({}));
    raw
}

/// Has a question asked, answered and delivered.
fn deliver(raw: &mut Raw, call: u64, state: &Path) -> String {
    raw.call(call, "deploy", &json!({"number": call}));
    let id = waiting(state);
    assert!(inbox(state, &["accept", &id, "environment=staging"]).0);
    raw.result(call);
    id
}

/// Returns the words that name a record.
fn at<'a>(state: &'a Path, database: &'a TestDatabase) -> [&'a str; 4] {
    [
        "--state",
        state.to_str().unwrap(),
        "--record",
        &database.address,
    ]
}

#[test]
fn the_audit_of_a_record_in_a_database_is_listed_selected_and_verified() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let audit = |more: &[&str]| run(&[&["audit"], &at(&state, &database)[..], more].concat());
    // Nothing is created where no gateway has run.
    let none = audit(&["--verify"]);
    assert_eq!(none.code, Some(3), "{none:?}");
    assert!(none.said.contains("has no record yet"), "{none:?}");
    let schema = "SELECT count(*) FROM pg_namespace WHERE nspname = 'mcp_elicit'";
    assert_eq!(server.sql(&database.name, schema).unwrap(), "0");
    assert!(!state.exists());

    let mut raw = start(&state, &database.address);
    let id = deliver(&mut raw, 2, &state);
    let noted = (0..LOOKS).any(|_| {
        let delivered = audit(&["--json", "--event", "delivered"]);
        if delivered.lines().is_empty() {
            sleep(LOOK);
        }
        !delivered.lines().is_empty()
    });
    assert!(noted, "the delivery is in the audit");
    let asked = audit(&["--json", "--event", "asked", "--question", &id[..8]]);
    let lines = asked.lines();
    let [asked] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert_eq!(asked["entry"]["id"], id);
    assert!(!asked["hash"].as_str().unwrap().is_empty());
    let questions = audit(&["--by-question"]);
    assert!(questions.out.contains(&id[..8]), "{questions:?}");
    assert!(audit(&["--csv"]).out.lines().count() > 3);
    let verified = audit(&["--verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(verified.said.contains("the chain is intact"));

    // The file of the gateway names the record too.
    let file = folder.path().join("gateway.toml");
    let text = format!(
        "state = {:?}\nrecord = {:?}\n[servers.demo]\ncommand = [\"true\"]\n",
        state.to_str().unwrap(),
        database.address
    );
    std::fs::write(&file, text).unwrap();
    let of_file = run(&["audit", "--verify", "--config", file.to_str().unwrap()]);
    assert_eq!(of_file.code, Some(0), "{of_file:?}");
    // A command that is not told of the database uses no other record.
    let untold = run(&["audit", "--state", state.to_str().unwrap()]);
    assert_eq!(untold.code, Some(2), "{untold:?}");
    assert!(untold.said.contains("is in a database"), "{untold:?}");
    let option = format!("--record {}", database.address);
    assert!(untold.said.contains(&option), "{untold:?}");

    let change =
        "UPDATE mcp_elicit.audit SET entry = replace(entry, 'asked', 'shown') WHERE number = 1";
    server.sql(&database.name, change).unwrap();
    let broken = audit(&["--verify"]);
    assert_eq!(broken.code, Some(1), "{broken:?}");
    assert!(broken.said.contains("broken at event 1"), "{broken:?}");
}

/// Reads the lines of a stream, each as it comes.
fn lines_of(stream: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            let _the_test_has_ended = tell.send(line.unwrap());
        }
    });
    told
}

#[test]
fn a_followed_audit_goes_on_after_its_database_was_away_and_begins_after_an_event() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut raw = start(&state, &database.address);
    deliver(&mut raw, 2, &state);
    let at = at(&state, &database);
    let follow = |more: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(["audit", "--follow", "--json"]);
        command.args(at).args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let printed = lines_of(process.stdout.take().unwrap());
        let said = lines_of(process.stderr.take().unwrap());
        (process, printed, said)
    };
    let numbers_until_delivered = |printed: &mpsc::Receiver<String>| {
        let mut numbers = Vec::new();
        loop {
            let line = printed.recv_timeout(raw::PATIENCE).unwrap();
            let line: Value = serde_json::from_str(&line).unwrap();
            numbers.push(line["number"].as_u64().unwrap());
            if line["entry"]["event"] == "delivered" {
                return numbers;
            }
        }
    };
    let (mut process, printed, said) = follow(&[]);
    let before = numbers_until_delivered(&printed);
    server.stop();
    let waits = said.recv_timeout(raw::PATIENCE).unwrap();
    let last = *before.last().unwrap();
    assert!(
        waits.contains(&format!("waiting for it after event {last}")),
        "{waits}"
    );
    server.start_again();
    let back = said.recv_timeout(raw::PATIENCE).unwrap();
    assert!(back.contains("is back"), "{back}");
    drop(raw);
    let mut raw = start(&state, &database.address);
    deliver(&mut raw, 2, &state);
    let after = numbers_until_delivered(&printed);
    let whole: Vec<u64> = (1..=*after.last().unwrap()).collect();
    assert_eq!([before, after.clone()].concat(), whole, "each event once");
    let (mut again, printed, _) = follow(&["--after", &last.to_string()]);
    assert_eq!(numbers_until_delivered(&printed), after);
    for process in [&mut process, &mut again] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

#[test]
fn tokens_sessions_messages_and_approvals_of_a_database_are_read_and_changed() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let with = |words: &[&str]| run(&[words, &at(&state, &database)[..]].concat());
    let early = with(&["tokens", "make", "bot", "--scope", "list"]);
    assert_eq!(early.code, Some(3), "{early:?}");
    assert!(early.said.contains("has no record yet"), "{early:?}");
    let raw = start(&state, &database.address);
    let made = with(&["tokens", "make", "bot", "--scope", "list", "--json"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let id = made.lines()[0]["id"].as_str().unwrap().to_owned();
    let blocked = with(&["tokens", "block", "https://id.example", "eve"]);
    assert_eq!(blocked.code, Some(0), "{blocked:?}");
    let count = "SELECT count(*) FROM mcp_elicit.api_token";
    assert_eq!(server.sql(&database.name, count).unwrap(), "1");
    let listed = with(&["tokens", "list"]);
    assert!(
        listed.out.contains("bot") && listed.out.contains("eve"),
        "{listed:?}"
    );
    assert_eq!(with(&["tokens", "revoke", &id]).code, Some(0));
    let events = with(&["audit", "--json"]);
    for event in ["token-made", "caller-blocked", "token-revoked"] {
        assert!(events.out.contains(event), "{event}: {events:?}");
    }
    for (words, said) in [
        (["grants", "list"], "no approval applies"),
        (["channels", "failed"], "no message has failed"),
        (["channels", "waiting"], "no message is being retried"),
    ] {
        let done = with(&words);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.said.contains(said), "{done:?}");
    }
    assert_eq!(with(&["inbox", "sessions", "list"]).code, Some(0));
    drop(raw);
    assert!(
        !state.join("record.sqlite").exists(),
        "no other record was made"
    );

    // The keys are needed, and never made by a command.
    let elsewhere = folder.path().join("elsewhere");
    let other = [
        "grants",
        "list",
        "--state",
        elsewhere.to_str().unwrap(),
        "--record",
        &database.address,
    ];
    let refused = run(&other);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.said.contains("seal.key"), "{refused:?}");
    assert!(!elsewhere.exists());
}

#[test]
fn the_inbox_of_a_database_is_used_without_a_gateway_and_asks_for_the_address() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut raw = start(&state, &database.address);
    raw.call(2, "deploy", &json!({}));
    let id = waiting(&state);
    drop(raw);
    let list = [
        "inbox",
        "list",
        "--json",
        "--state",
        state.to_str().unwrap(),
    ];
    let untold = run(&list);
    assert_eq!(untold.code, Some(2), "{untold:?}");
    assert!(untold.said.contains("start its gateway"), "{untold:?}");
    let list = || run(&[&["inbox", "list", "--json"], &at(&state, &database)[..]].concat());
    assert_eq!(list().lines()[0]["id"], id);
    // The end of the gateway is known.
    assert!((0..LOOKS).any(|_| list().lines()[0]["waitedFor"] == false));
    let words = ["inbox", "accept", &id, "environment=staging"];
    let accepted = run(&[&words, &at(&state, &database)[..]].concat());
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    let mut again = start(&state, &database.address);
    again.call(2, "deploy", &json!({}));
    let done = again.result(2);
    assert!(raw::text(&done).contains("staging"), "{done}");
}

#[test]
fn a_new_key_seals_and_the_earlier_one_is_kept_while_the_database_needs_it() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let state_text = state.to_str().unwrap();
    let mut raw = start(&state, &database.address);
    // A question that waits has sealed arguments.
    raw.call(2, "deploy", &json!({"number": 1}));
    let id = waiting(&state);
    let untold = run(&["keys", "rotate", "--state", state_text]);
    assert_eq!(untold.code, Some(2), "{untold:?}");
    let length = || std::fs::metadata(state.join("seal.key")).unwrap().len();
    assert_eq!(length(), 32);
    let rotate = || run(&[&["keys", "rotate"], &at(&state, &database)[..]].concat());
    for keys in [2, 3] {
        let rotated = rotate();
        assert_eq!(rotated.code, Some(0), "{rotated:?}");
        assert!(
            rotated.said.contains("every running gateway"),
            "{rotated:?}"
        );
        assert_eq!(length(), keys * 32);
    }
    assert!(inbox(&state, &["accept", &id, "environment=staging"]).0);
    let done = raw.result(2);
    assert!(raw::text(&done).contains("staging"), "{done}");
    let reseal = || run(&[&["keys", "reseal"], &at(&state, &database)[..]].concat());
    raw.call(3, "deploy", &json!({"number": 2}));
    let id = waiting(&state);
    assert_eq!(rotate().code, Some(0));
    let resealed = reseal();
    assert_eq!(resealed.code, Some(0), "{resealed:?}");
    assert!(resealed.said.contains("sealed anew"), "{resealed:?}");
    assert!(inbox(&state, &["accept", &id, "environment=staging"]).0);
    let done = raw.result(3);
    assert!(raw::text(&done).contains("staging"), "{done}");
    let retire = || run(&[&["keys", "retire"], &at(&state, &database)[..]].concat());
    let refused = retire();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(length(), 4 * 32);
    // The first key wraps the others: a folder that has it alone gets them.
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let keys = std::fs::read(state.join("seal.key")).unwrap();
    std::fs::write(other.join("seal.key"), &keys[96..]).unwrap();
    let behind = run(&[&["grants", "list"], &at(&other, &database)[..]].concat());
    assert_eq!(behind.code, Some(0), "{behind:?}");
    assert_eq!(std::fs::read(other.join("seal.key")).unwrap(), keys);
    // Any other is told to copy the file.
    std::fs::write(other.join("seal.key"), &keys[..32]).unwrap();
    let behind = run(&[&["grants", "list"], &at(&other, &database)[..]].concat());
    assert_eq!(behind.code, Some(3), "{behind:?}");
    assert!(behind.said.contains("copy seal.key"), "{behind:?}");
    let begun = run(&[&["keys", "start-over"], &at(&state, &database)[..]].concat());
    assert_eq!(begun.code, Some(2), "{begun:?}");
    assert!(begun.said.contains("DROP SCHEMA"), "{begun:?}");
}

#[test]
fn a_gateway_without_the_database_of_its_folder_does_not_begin_with_an_empty_record() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    drop(start(&state, &database.address));
    assert!(state.join("record.address").exists());
    let at = state.to_str().unwrap();
    let begin = [&["gateway", "--state", at][..], &DEMO_SERVER].concat();
    let refused = run(&begin);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    let option = format!("--record {}", database.address);
    for word in [option.as_str(), "record.address", "on purpose"] {
        assert!(refused.said.contains(word), "{word}: {refused:?}");
    }
    assert!(state.join("record.address").exists() && !state.join("record.sqlite").exists());
    // On purpose.
    std::fs::rename(state.join("record.address"), folder.path().join("away")).unwrap();
    let mut raw = Raw::start(gateway(&state, &[], &DEMO_SERVER));
    raw.initialize(REVISION, &json!({}));
    assert!(state.join("record.sqlite").exists());
}

/// Times are those of each gateway's clock, and ids are random: the next question may be listed before the last one.
#[test]
fn a_question_that_is_listed_before_one_that_was_printed_is_printed_too() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut raw = start(&state, &database.address);
    let mut watch = Command::new(PROGRAM)
        .args(["inbox", "watch", "--json", "--state"])
        .arg(&state)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        line["id"].as_str().unwrap().to_owned()
    };
    raw.call(2, "deploy", &json!({"number": 1}));
    let first = next();
    let earlier = "0".repeat(32);
    let copy = format!(
        "CREATE TEMP TABLE copy AS SELECT * FROM mcp_elicit.question; \
         UPDATE copy SET id = '{earlier}', same = 'another', arguments = NULL; \
         INSERT INTO mcp_elicit.question SELECT * FROM copy"
    );
    server.sql(&database.name, &copy).unwrap();
    raw.call(3, "deploy", &json!({"number": 2}));
    let mut others = [next(), next()];
    others.sort();
    assert_eq!(others[0], earlier);
    assert!(others[1] != first && others[1] != earlier);
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn a_command_gives_the_password_at_each_new_connection() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let role =
        "CREATE ROLE locked LOGIN PASSWORD 's3cret'; GRANT CREATE ON DATABASE postgres TO locked";
    server.sql("postgres", role).unwrap();
    let file = server.data().join("pg_hba.conf");
    let rules = std::fs::read_to_string(&file).unwrap();
    let locked = format!("host all locked 127.0.0.1/32 scram-sha-256\n{rules}");
    std::fs::write(&file, locked).unwrap();
    server.stop();
    server.start_again();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (state, secret, runs) = (path("state"), path("secret"), path("runs"));
    std::fs::write(&secret, "s3cret\n").unwrap();
    let script = path("password");
    std::fs::write(&script, format!("echo >>{runs}; cat {secret}; exit $1")).unwrap();
    let address = format!("postgres://locked@127.0.0.1:{}/postgres", server.port());
    let file = path("gateway.toml");
    let of_file = |code: &str| {
        let text = format!(
            "state = {state:?}\nrecord = {address:?}\nrecord-password-command = [\"sh\", {script:?}, {code:?}]\n"
        );
        std::fs::write(&file, text).unwrap();
    };
    let command = |code: &str| format!("sh {script} {code}");
    let made = run(&[
        "record",
        "migrate",
        "--record",
        &address,
        "--record-password-command",
        &command("0"),
    ]);
    assert_eq!(made.code, Some(0), "{made:?}");
    of_file("0");
    let listed = run(&["tokens", "list", "--config", &file]);
    assert_eq!(listed.code, Some(0), "{listed:?}");

    // A gateway asks again when a connection is made anew, and the password may be another one then.
    let options = [
        "--record",
        &address,
        "--record-password-command",
        &command("0"),
    ];
    let mut raw = Raw::start(gateway(Path::new(&state), &options, &DEMO_SERVER));
    raw.initialize(REVISION, &json!({}));
    deliver(&mut raw, 2, Path::new(&state));
    let count = || std::fs::read_to_string(&runs).unwrap().len();
    let before = count();
    let other = "ALTER ROLE locked PASSWORD 'an0ther'; \
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'locked'";
    std::fs::write(&secret, "an0ther\n").unwrap();
    server.sql("postgres", other).unwrap();
    deliver(&mut raw, 3, Path::new(&state));
    assert!(count() > before);

    of_file("7");
    let failed = run(&["tokens", "list", "--config", &file]);
    assert_eq!(failed.code, Some(3), "{failed:?}");
    assert!(
        failed.said.contains("sh, ") && failed.said.contains("exit code 7"),
        "{failed:?}"
    );
    assert!(!failed.said.contains("an0ther"), "{failed:?}");
    let both = format!(
        "{}record-password = {{ file = {secret:?} }}\n",
        std::fs::read_to_string(&file).unwrap()
    );
    std::fs::write(&file, both).unwrap();
    let both = run(&["tokens", "list", "--config", &file]);
    assert_eq!(both.code, Some(2), "{both:?}");
    assert!(both.said.contains("leave one out"), "{both:?}");
}

/// Returns the public key of a checkpoint.
fn made_key(line: &str) -> String {
    let checkpoint: Value = serde_json::from_str(line).unwrap();
    checkpoint["key"].as_str().unwrap().to_owned()
}

/// Verifies the signature of a checkpoint with OpenSSL, as docs/operate.md says.
fn openssl_verifies(folder: &Path, line: &str) {
    let checkpoint: Value = serde_json::from_str(line).unwrap();
    let member = |name: &str| checkpoint[name].as_str().unwrap();
    let bytes = |hex: &str| -> Vec<u8> {
        let pairs = (0..hex.len()).step_by(2);
        let pairs = pairs.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        pairs.collect()
    };
    let signed = format!(
        "mcp-elicit audit checkpoint 1\n{}\n{}\n{}\n",
        checkpoint["at"],
        checkpoint["events"],
        member("hash")
    );
    // The SubjectPublicKeyInfo of Ed25519 (RFC 8410, section 10.1).
    let der = bytes(&format!("302a300506032b6570032100{}", member("key")));
    for (name, content) in [
        ("signed", signed.into_bytes()),
        ("key.der", der),
        ("signature", bytes(member("signature"))),
    ] {
        std::fs::write(folder.join(name), content).unwrap();
    }
    let mut command = Command::new("openssl");
    let words =
        "pkeyutl -verify -pubin -keyform DER -inkey key.der -rawin -in signed -sigfile signature";
    let done = command.args(words.split(' ')).current_dir(folder).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// Verifies, cuts and changes the audit of a record, with a function that runs SQL on it.
fn checkpoints(words: &[&str], sql: &dyn Fn(&str), folder: &Path) {
    let audit = |more: &[&str]| run(&[&["audit"], more, words].concat());
    let text = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (first, both) = (text("first"), text("both"));
    let made = audit(&["checkpoint", "--out", &first]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let again = audit(&["checkpoint", "--out", &first]);
    assert_eq!(
        again.code,
        Some(2),
        "an earlier one is not replaced: {again:?}"
    );
    assert_eq!(
        run(&[&["tokens", "block", "https://id.example", "eve"], words].concat()).code,
        Some(0)
    );
    let later = audit(&["checkpoint"]);
    assert_eq!(
        later.lines()[0]["hash"].as_str().unwrap().get(..3),
        Some("k1:")
    );
    std::fs::write(&both, later.out + &std::fs::read_to_string(&first).unwrap()).unwrap();
    let verify = |file: &str| audit(&["--verify", "--against", file]);
    let fits = verify(&both);
    assert_eq!(fits.code, Some(0), "{fits:?}");
    assert!(fits.said.contains("2 checkpoint(s) fit"), "{fits:?}");
    let changed = text("changed");
    let line = std::fs::read_to_string(&first).unwrap();
    // Without the record, by the public key alone.
    let key = made_key(&line);
    let check = |file: &str, more: &[&str]| {
        let words = [&["audit", "checkpoint", "--check", file], more].concat();
        run(&[&words, &["--state", &text("no-record")][..]].concat())
    };
    let both_lines = std::fs::read_to_string(&both).unwrap();
    let mut in_order: Vec<&str> = both_lines.lines().collect();
    in_order.reverse();
    let ordered = text("ordered");
    std::fs::write(&ordered, in_order.join("\n")).unwrap();
    let checked = check(&ordered, &["--key", &key]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(
        checked.said.contains("2 checkpoint(s) are signed"),
        "{checked:?}"
    );
    let unknown = check(&ordered, &[]);
    assert_eq!(unknown.code, Some(0), "{unknown:?}");
    assert!(
        unknown.said.contains(&key) && unknown.said.contains("next: compare this key"),
        "{unknown:?}"
    );
    let other_key = "0".repeat(64);
    for (file, more, why) in [
        (&both, &["--key", &key][..], "fewer events"),
        (&ordered, &["--key", &other_key], "another key"),
    ] {
        let refused = check(file, more);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.said.contains(why), "{refused:?}");
    }
    let mistyped = check(&ordered, &["--key", &key[1..]]);
    assert_eq!(mistyped.code, Some(2), "{mistyped:?}");
    assert!(
        mistyped.said.contains("is not a public key"),
        "{mistyped:?}"
    );
    std::fs::write(&changed, line.replace("\"at\":", "\"at\":1")).unwrap();
    let refused = check(&changed, &["--key", &key]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.said.contains("was changed"), "{refused:?}");
    openssl_verifies(folder, &line);
    // One whose numbers were changed, or that another key made.
    std::fs::write(&changed, line.replace("k1:", "k1:0")).unwrap();
    let refused = verify(&changed);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.said.contains("was changed"), "{refused:?}");
    std::fs::write(&changed, "no checkpoint").unwrap();
    assert_eq!(verify(&changed).code, Some(2));
    // A chain that was cut is intact by itself.
    sql("DELETE FROM audit WHERE number = (SELECT max(number) FROM audit)");
    assert_eq!(audit(&["--verify"]).code, Some(0));
    assert_eq!(verify(&first).code, Some(0));
    let cut = verify(&both);
    assert_eq!(cut.code, Some(1), "{cut:?}");
    assert!(cut.said.contains("the audit was cut"), "{cut:?}");
    sql("DELETE FROM audit");
    let gone = verify(&first);
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(gone.said.contains("the audit was cut"), "{gone:?}");
}

/// Deletes the oldest events of the audit of a record, and changes what is left, with a function that runs SQL on it.
fn purges(words: &[&str], sql: &dyn Fn(&str), folder: &Path) {
    let audit = |more: &[&str]| run(&[&["audit"], more, words].concat());
    let note = |who: &str| {
        let block = ["tokens", "block", "https://id.example", who];
        assert_eq!(run(&[&block, words].concat()).code, Some(0));
    };
    let checkpoint = |name: &str| {
        let file = folder.join(name).to_str().unwrap().to_owned();
        assert_eq!(audit(&["checkpoint", "--out", &file]).code, Some(0));
        file
    };
    let verify = |more: &[&str]| audit(&[&["--verify"], more].concat());
    note("eve");
    let old = checkpoint("old");
    note("bob");
    let base = checkpoint("base");
    note("carol");
    let all = audit(&["--json"]).lines();
    let purge = ["purge", "--before", "2099-01-01"];
    let count = format!("{} events", all.len() - 1);
    let dry = audit(&[&purge[..], &["--dry-run"]].concat());
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert!(
        dry.said.contains(&format!("{count} would be deleted")),
        "{dry:?}"
    );
    let too_early = audit(&["purge", "--before", "2020-01-01"]);
    assert!(
        too_early.said.contains("nothing was deleted"),
        "{too_early:?}"
    );
    assert_eq!(audit(&["--json"]).lines(), all);
    // An event in the middle is missing.
    sql("CREATE TABLE saved AS SELECT * FROM audit");
    sql("DELETE FROM audit WHERE number = 3");
    let rest = audit(&["--json"]).lines();
    for more in [&[][..], &["--dry-run"]] {
        let refused = audit(&[&purge[..], more].concat());
        assert_eq!(refused.code, Some(1), "{refused:?}");
        let why = "the chain is broken at event 3, which is missing";
        assert!(refused.said.contains(why), "{refused:?}");
    }
    assert_eq!(audit(&["--json"]).lines(), rest);
    assert_eq!(verify(&[]).code, Some(1));
    sql("DELETE FROM audit; INSERT INTO audit SELECT * FROM saved; DROP TABLE saved");
    let purged = audit(&purge);
    assert_eq!(purged.code, Some(0), "{purged:?}");
    assert!(
        purged.said.contains(&format!("{count} were deleted")),
        "{purged:?}"
    );
    let left = audit(&["--json"]).lines();
    assert_eq!((left.len(), &left[0]), (2, all.last().unwrap()));
    let whole = verify(&[]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    let since = format!(
        "2 events, the chain is intact: complete since event {} of ",
        all.len()
    );
    assert!(whole.said.contains(&since), "{whole:?}");
    assert!(
        whole.said.contains("earlier events were deleted on 2"),
        "{whole:?}"
    );
    assert!(whole.said.contains(" on the command line"), "{whole:?}");
    for more in [
        &["--by-question"][..],
        &["--csv"],
        &["--event", "audit-purged"],
    ] {
        let read = audit(more);
        assert_eq!(read.code, Some(0), "{read:?}");
    }
    // A checkpoint of deleted events proves nothing, that of the last one does, and a new one too.
    let too_old = verify(&["--against", &old]);
    assert_eq!(too_old.code, Some(2), "{too_old:?}");
    assert!(too_old.said.contains("and proves nothing"), "{too_old:?}");
    let fits = verify(&["--against", &base]);
    assert_eq!(fits.code, Some(0), "{fits:?}");
    let new = checkpoint("new");
    let both = folder.join("both");
    let lines = [&old, &new].map(|file| std::fs::read_to_string(file).unwrap());
    std::fs::write(&both, lines.concat()).unwrap();
    let fits = verify(&["--against", both.to_str().unwrap()]);
    assert_eq!(fits.code, Some(0), "{fits:?}");
    assert!(fits.said.contains("1 checkpoint(s) fit"), "{fits:?}");
    assert!(fits.said.contains("and proves nothing"), "{fits:?}");
    // Later events go on from there.
    note("dave");
    assert_eq!(verify(&["--against", &new]).code, Some(0));
    sql("CREATE TABLE saved AS SELECT * FROM audit");
    let first = "WHERE number = (SELECT min(number) FROM audit)";
    for change in [
        format!("DELETE FROM audit {first}"),
        format!(r#"UPDATE audit SET entry = replace(entry, '"at":', '"at":1') {first}"#),
        format!("UPDATE audit SET hash = replace(hash, 'k1:', 'k1:0') {first}"),
        "UPDATE audit SET number = number + 100".to_owned(),
        r#"UPDATE audit SET entry = replace(entry, '"purgedUpTo":', '"purgedUpTo":1')"#.to_owned(),
        "UPDATE audit SET entry = replace(entry, 'k1:', 'k1:0')".to_owned(),
    ] {
        sql(&change);
        let broken = verify(&[]);
        assert_eq!(broken.code, Some(1), "{change}: {broken:?}");
        for word in ["the chain is broken", "next: keep a copy"] {
            assert!(broken.said.contains(word), "{word}: {broken:?}");
        }
        let refused_copy = folder.join("refused_copy");
        let refused = run(&[&["backup", refused_copy.to_str().unwrap()], words].concat());
        assert_eq!(refused.code, Some(1), "{change}: {refused:?}");
        for word in ["the record is damaged", "audit --verify"] {
            assert!(refused.said.contains(word), "{word}: {refused:?}");
        }
        assert!(!refused.said.contains("the backup is damaged") && !refused_copy.exists());
        let purged = audit(&purge);
        assert_eq!(purged.code, Some(1), "{change}: {purged:?}");
        sql("DELETE FROM audit; INSERT INTO audit SELECT * FROM saved");
    }
    sql("DROP TABLE saved");
    // A copy of it is whole too.
    let (copy, state) = (folder.join("copy"), folder.join("restored"));
    let (copy, state) = (copy.to_str().unwrap(), state.to_str().unwrap());
    let made = run(&[&["backup", copy], words].concat());
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.out.contains("an intact audit of 3 events"), "{made:?}");
    let restored = run(&["restore", copy, "--state", state]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let whole = run(&["audit", "--verify", "--state", state, "--against", &new]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    let purged = audit(&purge);
    assert_eq!(purged.code, Some(0), "{purged:?}");
    assert_eq!(verify(&[]).code, Some(0));
}

/// A check of an audit: the options that name its record, a function that runs SQL there, and a folder for files.
type AuditCheck = fn(&[&str], &dyn Fn(&str), &Path);

/// Checks the audit of a record in a file, after an answer was delivered.
fn in_a_file(check: AuditCheck) {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut raw = Raw::start(gateway(&state, &[], &DEMO_SERVER));
    raw.initialize(REVISION, &json!({}));
    deliver(&mut raw, 2, &state);
    drop(raw);
    let file = state.join("record.sqlite");
    let sql = |text: &str| {
        let record = rusqlite::Connection::open(&file).unwrap();
        record.execute_batch(text).unwrap();
    };
    check(&["--state", state.to_str().unwrap()], &sql, folder.path());
}

/// Checks the audit of a record in a database likewise. Returns the folder, whose `state` is the gateway's, and the database.
fn in_a_database(server: &PostgresServer, check: AuditCheck) -> (tempfile::TempDir, TestDatabase) {
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut raw = start(&state, &database.address);
    deliver(&mut raw, 2, &state);
    drop(raw);
    let sql = |text: &str| {
        let text = text.replace(" audit", " mcp_elicit.audit");
        server.sql(&database.name, &text).unwrap();
    };
    check(&at(&state, &database), &sql, folder.path());
    (folder, database)
}

/// Names files that cannot be read or written.
fn says_what_comes_next(words: &[&str], _: &dyn Fn(&str), folder: &Path) {
    let refused = |command: &[&str], parts: &[&str]| {
        let done = run(command);
        assert_eq!(done.code, Some(2), "{command:?}: {done:?}");
        for part in parts {
            assert!(done.said.contains(part), "{part}: {done:?}");
        }
        assert!(!done.said.contains("sekret"), "{done:?}");
    };
    let copy = folder.join("missing").join("copy");
    let parts = ["missing does not exist", "next: make it first"];
    refused(
        &[&["backup", copy.to_str().unwrap()], words].concat(),
        &parts,
    );
    let out = folder.join("once");
    let command = ["audit", "checkpoint", "--out", out.to_str().unwrap()];
    let command = [&command[..], words].concat();
    assert_eq!(run(&command).code, Some(0));
    refused(&command, &["File exists", "next: ", ">> FILE"]);
    // A quote is missing, and a key is there twice.
    let file = folder.join("gateway.toml");
    let file = file.to_str().unwrap();
    let at_file = ["--config", file];
    for (lines, line) in [
        ("record-password = \"sekret-1", "at line 2, column 28"),
        (
            "[login]\nsecret = \"a\"\nsecret = \"sekret-2\"",
            "at line 4",
        ),
    ] {
        std::fs::write(file, format!("listen = \"127.0.0.1:0\"\n{lines}\n")).unwrap();
        for command in [
            &["record", "stats"][..],
            &["audit"],
            &["backup", copy.to_str().unwrap()],
            &["tokens", "list"],
        ] {
            let command = [command, &at_file].concat();
            let parts = [file, "cannot be used", line, " = ...", "next: ", "--check"];
            refused(&command, &parts);
        }
    }
    // Without options, the record of another gateway is looked for.
    let none = folder.join("none");
    let parts = ["there is no record", "--config FILE", "--state DIR"];
    refused(&["audit", "--state", none.to_str().unwrap()], &parts);
}

#[test]
fn commands_name_the_next_step_and_the_line_of_a_file_that_is_not_toml() {
    in_a_file(says_what_comes_next);
}

#[test]
fn an_audit_whose_oldest_events_were_deleted_is_proved_since_then() {
    in_a_file(purges);
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let (folder, database) = in_a_database(server, purges);
    let state = folder.path().join("state");
    // A command counts as a gateway for some seconds.
    let to_file = [
        &["record", "move", "--into", "file"],
        &at(&state, &database)[..],
    ]
    .concat();
    let mut moved = run(&to_file);
    for _ in 0..LOOKS {
        if moved.code == Some(0) {
            break;
        }
        sleep(LOOK);
        moved = run(&to_file);
    }
    assert_eq!(moved.code, Some(0), "{moved:?}");
    let words = ["audit", "--verify", "--state", state.to_str().unwrap()];
    let whole = run(&words);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert!(whole.said.contains("complete since event"), "{whole:?}");
}

#[test]
fn an_audit_that_was_cut_does_not_fit_its_checkpoint() {
    in_a_file(checkpoints);
    if let Some(server) = PostgresServer::shared() {
        in_a_database(server, checkpoints);
    }
}

#[test]
fn an_audit_that_was_made_anew_with_its_key_does_not_fit_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let words = ["--state", state.to_str().unwrap()];
    let ask = || {
        let mut raw = Raw::start(gateway(&state, &[], &DEMO_SERVER));
        raw.initialize(REVISION, &json!({}));
        deliver(&mut raw, 2, &state);
    };
    ask();
    let checkpoint = folder.path().join("checkpoint");
    let checkpoint = checkpoint.to_str().unwrap();
    let made = run(&[&["audit", "checkpoint", "--out", checkpoint], &words[..]].concat());
    assert_eq!(made.code, Some(0), "{made:?}");
    // The same key, and another record in place of the first.
    for name in ["record.sqlite", "record.sqlite-wal", "record.sqlite-shm"] {
        let _none = std::fs::remove_file(state.join(name));
    }
    ask();
    assert_eq!(
        run(&[&["audit", "--verify"], &words[..]].concat()).code,
        Some(0)
    );
    let verify = ["audit", "--verify", "--against", checkpoint];
    let other = run(&[&verify, &words[..]].concat());
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(
        other.said.contains("made anew") || other.said.contains("was cut"),
        "{other:?}"
    );
}

/// Makes a certificate of a name with this authority, and the authority, with OpenSSL.
fn certificates(folder: &Path, authority: &str, name: &str) {
    let openssl = |words: &str| {
        let mut command = Command::new("openssl");
        let done = command.args(words.split(' ')).current_dir(folder).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{words}: {done:?}");
    };
    openssl(&format!(
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={authority} -keyout {authority}.key -out {authority}.pem"
    ));
    openssl(&format!(
        "req -newkey rsa:2048 -nodes -subj /CN={name} -addext subjectAltName=DNS:{name} -keyout {name}.key -out {name}.csr"
    ));
    let extensions = format!("subjectAltName=DNS:{name}\nbasicConstraints=CA:FALSE\n");
    std::fs::write(folder.join("extensions"), extensions).unwrap();
    openssl(&format!(
        "x509 -req -in {name}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial -days 2 -extfile extensions -out {name}.pem"
    ));
}

#[test]
fn a_server_whose_certificate_is_anothers_is_refused() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let database = server.database();
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), "right", "localhost");
    certificates(folder.path(), "wrong", "elsewhere");
    let migrate = |host: &str, roots: &str| {
        let address = format!(
            "postgres://postgres@{host}:{}/{}?sslmode=verify-full&sslrootcert={}",
            server.port(),
            database.name,
            folder.path().join(roots).display()
        );
        run(&["record", "migrate", "--dry-run", "--record", &address])
    };
    let plain = migrate("localhost", "right.pem");
    assert_eq!(plain.code, Some(3), "{plain:?}");
    assert!(plain.said.contains("does not support TLS"), "{plain:?}");
    for (from, to) in [
        ("localhost.pem", "server.crt"),
        ("localhost.key", "server.key"),
    ] {
        let to = server.data().join(to);
        std::fs::copy(folder.path().join(from), &to).unwrap();
        let mut owned = Command::new("chown");
        owned.arg("--reference").arg(server.data()).arg(&to);
        assert!(owned.status().unwrap().success());
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&to, private).unwrap();
    }
    let file = server.data().join("postgresql.conf");
    let settings = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, settings + "\nssl = on\n").unwrap();
    server.stop();
    server.start_again();
    let right = migrate("localhost", "right.pem");
    assert_eq!(right.code, Some(0), "{right:?}");
    for (host, roots, why) in [
        ("localhost", "wrong.pem", "UnknownIssuer"),
        ("127.0.0.1", "right.pem", "not valid for"),
    ] {
        let refused = migrate(host, roots);
        assert_eq!(refused.code, Some(3), "{refused:?}");
        for words in ["is not accepted", why, "sslrootcert"] {
            assert!(refused.said.contains(words), "{words}: {refused:?}");
        }
    }
}

#[test]
fn a_pooler_in_transaction_mode_is_enough() {
    let Some(server) = PostgresServer::shared() else {
        return;
    };
    let Some(pooler) = Pooler::start(server, &server.database()) else {
        return;
    };
    let (through, folder) = (&pooler.database, tempfile::tempdir().unwrap());
    let state = folder.path().join("state");
    let mut raw = start(&state, &through.address);
    for call in 2..12 {
        deliver(&mut raw, call, &state);
    }
    let verified = run(&[&["audit", "--verify"], &at(&state, through)[..]].concat());
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let asked = run(&[
        &["audit", "--json", "--event", "asked"],
        &at(&state, through)[..],
    ]
    .concat());
    assert_eq!(asked.lines().len(), 10);
}
