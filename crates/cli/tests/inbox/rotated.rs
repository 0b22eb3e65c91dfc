//! The keys of stored values: changed while gateways run, missing, and those of another record.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use mcp_elicit_record::encryption::Encryption;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::raw::{DEMO_SERVER, command, gateway, text};

const OPTIONS: [&str; 4] = ["--hold", "0", "--name", "deploy"];

fn start(state: &Path) -> Gateway {
    let mut gateway = Gateway::start(state, &OPTIONS, &DEMO_SERVER);
    gateway.initialize();
    gateway
}

/// Makes a call that is handed back. Returns the id of its question.
fn ask(gateway: &mut Gateway, number: u64) -> String {
    let before: Vec<Value> = gateway.waiting();
    gateway.call(number, "deploy", &json!({"n": number}));
    gateway.result(number);
    let waiting = gateway.wait_for(before.len() + 1);
    let new = waiting
        .iter()
        .find(|one| !before.iter().any(|old| old["id"] == one["id"]));
    new.unwrap()["id"].as_str().unwrap().to_owned()
}

fn accept() -> Value {
    json!({"action": "accept", "content": {"environment": "staging"}})
}

fn rotate(state: &Path) -> String {
    let done = command(state, &["keys", "rotate"]);
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stderr).unwrap() + &String::from_utf8(done.stdout).unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Returns the arguments of a question as `inbox show` writes them.
fn shown(state: &Path, id: &str) -> String {
    said(&command(state, &["inbox", "show", id]))
}

/// Asks one question in a gateway of its own: of several in one session, the server does not say which call asks.
fn ask_once(state: &Path, number: u64) -> String {
    ask(&mut start(state), number)
}

/// Returns the end of a start that is refused.
fn refused(state: &Path) -> Output {
    let mut command = gateway(state, &OPTIONS, &DEMO_SERVER);
    let command = command.stdin(Stdio::piped()).stderr(Stdio::piped());
    command.output().unwrap()
}

#[test]
fn keys_are_listed_with_their_use_and_those_without_a_use_are_deleted_while_no_gateway_runs() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let question = ask_once(state, 2);
    let mut running = start(state);
    for _ in 0..3 {
        rotate(state);
    }
    let refused = command(state, &["keys", "retire"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(said(&refused).contains("a gateway of this record runs"));
    let newest = ask(&mut running, 3);
    drop(running);
    let listed = || uses(state);
    assert_eq!(listed(), ["seals", "unneeded", "unneeded", "opens"]);
    assert!(said(&command(state, &["keys", "list"])).contains("opens values of the record"));
    let path = state.join("seal.key");
    let before = fs::read(&path).unwrap();
    let left_by_a_killed_command = state.join("seal.key.0123.new");
    fs::write(&left_by_a_killed_command, &before).unwrap();
    let retired = command(state, &["keys", "retire"]);
    assert!(
        said(&retired).contains("2 keys were deleted"),
        "{retired:?}"
    );
    assert!(!left_by_a_killed_command.exists());
    assert_eq!(listed(), ["seals", "opens"]);
    assert_eq!(
        fs::read(&path).unwrap(),
        [&before[..32], &before[96..]].concat()
    );
    let again = command(state, &["keys", "retire"]);
    assert!(said(&again).contains("nothing was deleted"), "{again:?}");
    assert!(shown(state, &question).contains("n: 2"));
    assert!(shown(state, &newest).contains("n: 3"));
    // One that values need is named when it is missing.
    fs::write(&path, &before[..32]).unwrap();
    assert_eq!(listed(), ["seals", "missing"]);
}

#[test]
fn a_question_stays_answerable_when_the_key_is_changed_twice_beside_its_gateway() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let mut first = start(state);
    let question = ask(&mut first, 2);
    for _ in 0..3 {
        assert!(rotate(state).contains("running gateways use it from now on"));
        assert!(shown(state, &question).contains("n: 2"));
    }
    drop(first);
    let mut second = start(state);
    assert!(shown(state, &question).contains("n: 2"));
    assert_eq!(second.answer(&question, &accept()), 200);
    rotate(state);
    rotate(state);
    second.call(10, "deploy", &json!({"n": 2}));
    let done = second.result(10);
    assert!(text(&done).contains("Deployed to staging"), "{done}");
    // A running gateway seals with the new key.
    let next = ask(&mut second, 3);
    drop(second);
    let path = state.join("seal.key");
    let keys = fs::read(&path).unwrap();
    assert_eq!(keys.len(), 6 * 32, "a running gateway may need every key");
    fs::write(&path, &keys[..32]).unwrap();
    drop(start(state));
    assert!(
        shown(state, &next).contains("n: 3"),
        "{}",
        shown(state, &next)
    );
    // Nothing needs the other keys any more, except the one before the newest.
    fs::write(&path, keys).unwrap();
    let told = rotate(state);
    assert!(told.contains("1 earlier key(s)"), "{told}");
    assert_eq!(fs::read(&path).unwrap().len(), 2 * 32);
    assert!(shown(state, &next).contains("n: 3"));
}

#[test]
fn the_key_of_another_record_is_refused_at_the_start_with_the_next_step() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let id = ask_once(state, 2);
    let path = state.join("seal.key");
    let own = fs::read(&path).unwrap();
    fs::write(&path, [9; 32]).unwrap();
    let refused = refused(state);
    let told = said(&refused);
    assert_eq!(refused.status.code(), Some(2), "{told}");
    for part in ["seal.key", "restore", "backup", "keys start-over"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let listed = command(state, &["inbox", "list"]);
    assert!(said(&listed).contains("seal.key"), "{}", said(&listed));
    fs::write(&path, own).unwrap();
    let again = start(state);
    assert!(shown(state, &id).contains("n: 2"));
    assert_eq!(again.answer(&id, &accept()), 200);
}

#[test]
fn a_value_whose_key_is_missing_says_which_and_the_others_can_be_answered() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let lost = ask_once(state, 2);
    rotate(state);
    let kept = ask_once(state, 3);
    let path = state.join("seal.key");
    let keys = fs::read(&path).unwrap();
    assert_eq!(keys.len(), 64);
    fs::write(&path, &keys[..32]).unwrap();
    let gateway = start(state);
    assert!(shown(state, &kept).contains("n: 3"));
    let told = shown(state, &lost);
    assert!(
        told.contains("was sealed with the key") && told.contains("not in seal.key"),
        "{told}"
    );
    assert!(!told.contains("cannot be reached"), "{told}");
    assert_eq!(gateway.answer(&kept, &accept()), 200);
    fs::write(&path, keys).unwrap();
    assert!(
        shown(state, &lost).contains("n: 2"),
        "the running gateway reads the file again"
    );
    assert_eq!(gateway.answer(&lost, &accept()), 200);
}

/// Turns the record into one of the version before the key ids: values without a name, and no check.
fn as_before(state: &Path) {
    let file = Connection::open(state.join("record.sqlite")).unwrap();
    file.execute_batch(
        "UPDATE question SET arguments = substr(arguments, 13), content = substr(content, 13); DROP TABLE seal_check; \
         DROP TABLE api_token; DROP TABLE blocked_caller; DROP TABLE used; DROP TABLE shared; DROP TABLE shared_version; \
         DROP TABLE running_call; DROP INDEX call_same; DROP TRIGGER question_text_purged; DROP TABLE question_search; \
         DROP TABLE question_text; DROP TRIGGER telling_addressed; PRAGMA user_version = 11",
    )
    .unwrap();
    file.close().unwrap();
}

#[test]
fn a_folder_of_the_version_before_the_key_ids_opens_and_its_values_survive_rotations() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let (open, answered) = (ask_once(state, 2), ask_once(state, 3));
    let second = start(state);
    assert_eq!(second.answer(&answered, &accept()), 200);
    drop(second);
    as_before(state);
    let own = fs::read(state.join("seal.key")).unwrap();
    fs::write(state.join("seal.key"), [7; 32]).unwrap();
    let refused = said(&refused(state));
    assert!(refused.contains("seal.key"), "{refused}");
    fs::write(state.join("seal.key"), own).unwrap();
    rotate(state);
    rotate(state);
    let mut third = start(state);
    assert!(
        shown(state, &open).contains("n: 2"),
        "{}",
        shown(state, &open)
    );
    assert_eq!(third.answer(&open, &accept()), 200);
    for number in [2, 3] {
        third.call(10 + number, "deploy", &json!({"n": number}));
        let done = third.result(10 + number);
        assert!(text(&done).contains("Deployed to staging"), "{done}");
    }
}

fn uses(state: &Path) -> Vec<String> {
    let listed = command(state, &["keys", "list", "--json"]);
    assert!(listed.status.success(), "{listed:?}");
    let lines = String::from_utf8(listed.stdout).unwrap();
    let uses = lines.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["use"].as_str().unwrap().to_owned()
    });
    uses.collect()
}

/// Runs `keys reseal` to its end, and returns the number of values.
fn reseal(state: &Path) -> u64 {
    let done = command(state, &["keys", "reseal", "--json"]);
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    let done: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&done["left"], &done["unopened"]), (&json!(0), &json!(0)));
    done["values"].as_u64().unwrap()
}

#[test]
fn values_are_sealed_anew_beside_a_gateway_and_the_earlier_key_is_deleted_then() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let (waiting, given) = (ask_once(state, 2), ask_once(state, 4));
    let mut running = start(state);
    let answered = ask(&mut running, 3);
    for id in [&answered, &given] {
        assert_eq!(running.answer(id, &accept()), 200);
    }
    assert_eq!(reseal(state), 0, "the newest key sealed all of them");
    rotate(state);
    // The arguments of two calls, the answer of one, and the result of a third.
    assert_eq!(reseal(state), 4);
    assert!(shown(state, &waiting).contains("n: 2"));
    running.call(10, "deploy", &json!({"n": 3}));
    let done = running.result(10);
    assert!(text(&done).contains("Deployed to staging"), "{done}");
    assert_eq!(running.answer(&waiting, &accept()), 200);
    drop(running);
    reseal(state);
    assert_eq!(uses(state), ["seals", "unneeded"]);
    let retired = command(state, &["keys", "retire"]);
    assert!(said(&retired).contains("1 key was deleted"), "{retired:?}");
    assert_eq!(fs::read(state.join("seal.key")).unwrap().len(), 32);
    let mut last = start(state);
    for number in [2, 4] {
        last.call(10 + number, "deploy", &json!({"n": number}));
        let done = last.result(10 + number);
        assert!(text(&done).contains("Deployed to staging"), "{done}");
    }
    let audited = command(state, &["audit", "--event", "resealed"]);
    assert!(said(&audited).contains("values sealed anew"), "{audited:?}");
    let checked = command(state, &["audit", "--verify"]);
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn a_value_whose_key_is_missing_is_named_when_the_others_are_sealed_anew() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    ask_once(state, 2);
    rotate(state);
    let kept = ask_once(state, 3);
    let path = state.join("seal.key");
    let keys = fs::read(&path).unwrap();
    fs::write(&path, &keys[..32]).unwrap();
    rotate(state);
    let done = command(state, &["keys", "reseal"]);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let told = said(&done);
    for part in [
        "1 value was sealed anew",
        "1 value(s) cannot be opened",
        "restore seal.key",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(shown(state, &kept).contains("n: 3"));
    assert_eq!(uses(state), ["seals", "unneeded", "missing"]);
}

/// Adds rows like the one of this question, each with its own sealed arguments.
fn add_copies(state: &Path, of: &str, count: usize) {
    let key = Encryption::from_file(&state.join("seal.key")).unwrap();
    let mut file = Connection::open(state.join("record.sqlite")).unwrap();
    let step = file.transaction().unwrap();
    step.execute(
        "CREATE TEMP TABLE copied AS SELECT * FROM question WHERE id = ?1",
        [of],
    )
    .unwrap();
    for number in 0..count {
        let id = format!("{number:032x}");
        let sealed = key.seal(&format!("{id}.arguments"), "{\"n\":2}").unwrap();
        let change = "UPDATE copied SET number = NULL, id = ?1, arguments = ?2";
        step.prepare_cached(change)
            .unwrap()
            .execute((id, sealed))
            .unwrap();
        let insert = "INSERT INTO question SELECT * FROM copied";
        step.prepare_cached(insert).unwrap().execute([]).unwrap();
    }
    step.execute_batch("DROP TABLE copied").unwrap();
    step.commit().unwrap();
}

#[test]
fn a_run_that_is_killed_in_the_middle_has_lost_nothing_and_the_next_one_goes_on() {
    const COPIES: usize = 12_000;
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let question = ask_once(state, 2);
    add_copies(state, &question, COPIES);
    let file = Connection::open(state.join("record.sqlite")).unwrap();
    file.busy_timeout(Duration::from_secs(10)).unwrap();
    let old: Vec<u8> = file
        .query_row(
            "SELECT substr(arguments, 1, 12) FROM question LIMIT 1",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let left = || -> usize {
        let count = "SELECT count(*) FROM question WHERE substr(arguments, 1, 12) = ?1";
        let count = file.query_row(count, [&old], |row| row.get::<_, i64>(0));
        usize::try_from(count.unwrap()).unwrap()
    };
    rotate(state);
    assert_eq!(left(), COPIES + 1);
    let mut killed = std::process::Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .args(["keys", "reseal", "--state"])
        .arg(state)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while left() > COPIES && killed.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let after_kill = left();
    assert!(
        (1..COPIES).contains(&after_kill),
        "killed in the middle: {after_kill}"
    );
    assert_eq!(uses(state), ["seals", "opens"]);
    let refused = command(state, &["keys", "retire"]);
    assert!(said(&refused).contains("keys reseal"), "{refused:?}");
    assert!(shown(state, &question).contains("n: 2"));
    assert_eq!(usize::try_from(reseal(state)).unwrap(), after_kill);
    assert_eq!(left(), 0);
    let retired = command(state, &["keys", "retire"]);
    assert!(said(&retired).contains("1 key was deleted"), "{retired:?}");
    for id in [question, format!("{:032x}", COPIES / 2)] {
        assert!(shown(state, &id).contains("n: 2"), "{id}");
    }
    let checked = command(state, &["audit", "--verify"]);
    assert!(checked.status.success(), "{checked:?}");
}
