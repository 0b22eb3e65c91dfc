//! Rules in force: the real program with its own configuration, a real server, and people who act through the same
//! record, as another gateway's pages would.
#![cfg(all(unix, feature = "full"))]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[path = "inbox/http.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod http;
#[path = "raw/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod raw;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use mcp_elicit_core::form::Form;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_policy::quorum::{ActingPerson, Denied, Membership};
use mcp_elicit_record::store::{Filter, Page, RecordStore as _, Row, Sqlite, Write};
use mcp_elicit_record::team::{Acted, TeamAct};
use mcp_elicit_record::{LockFile, Record, clock};
use raw::{PATIENCE, PROGRAM, Raw, text};
use serde_json::{Value, json};

/// The people of a configuration.
const PEOPLE: &str = r#"
[people.ada]
mail = "ada@example.com"
[people.bob]
mail = "bob@example.com"
[groups]
ops = ["ada", "bob"]
"#;

const RULES: &str = r#"
[[rules]]
name = "never"
tool = "profile"
refuse = "nobody's business"

[[rules]]
name = "careful"
tool = "deploy"
approve = true
ask = { group = "ops", need = 2 }

[[rules]]
name = "where-to"
tool = "deploy"
ask = { group = "ops" }

[[rules]]
name = "no-links"
refuse-modes = ["url"]
"#;

/// A gateway with its own configuration, in front of the demo server.
struct Running {
    client: Raw,
    file: PathBuf,
    state: PathBuf,
    /// The folder of both.
    folder: tempfile::TempDir,
    said: mpsc::Receiver<String>,
    /// Host and port for callers over HTTP, once reported.
    at: RefCell<Option<String>>,
}

impl Running {
    fn start(rules: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("gateway.toml"), rules);
        Self::start_in(folder)
    }

    /// Ends the gateway and starts it again.
    fn again(self) -> Self {
        let Self { client, folder, .. } = self;
        drop(client);
        Self::start_in(folder)
    }

    fn start_in(folder: tempfile::TempDir) -> Self {
        let mut gateway = Self::run_in(folder);
        gateway.client.initialize(
            "2025-11-25",
            &json!({"elicitation": {"form": {}, "url": {}}}),
        );
        gateway
    }

    fn run_in(folder: tempfile::TempDir) -> Self {
        let state = folder.path().join("state");
        let file = folder.path().join("gateway.toml");
        let mut command = Command::new(PROGRAM);
        command.args(["gateway", "--state"]).arg(&state);
        command.arg("--config").arg(&file).stderr(Stdio::piped());
        let mut client = Raw::start(command);
        let stderr = client.child.stderr.take().unwrap();
        let (tell, said) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _the_test_is_over = tell.send(line);
            }
        });
        Self {
            client,
            file,
            state,
            folder,
            said,
            at: RefCell::default(),
        }
    }

    /// Waits for output with these words, and returns the line.
    fn wait_to_say(&self, words: &str) -> String {
        loop {
            let line = self.said.recv_timeout(PATIENCE).unwrap();
            if line.contains(words) {
                return line;
            }
        }
    }

    fn hang_up(&self) {
        let id = self.client.child.id().to_string();
        let done = Command::new("kill").args(["-HUP", &id]).status().unwrap();
        assert!(done.success());
    }

    /// Opens another gateway over the same record.
    async fn beside(&self) -> Beside {
        let folder = StateFolder::open(&self.state).unwrap();
        let keys = folder.key_files().open().await.unwrap();
        let store = Sqlite::at(&folder.record()).keyed(keys.chain());
        let lock = LockFile::acquire(&folder.leases()).unwrap();
        Beside(Record::new(Arc::new(store), keys, lock, clock::now))
    }
}

fn write(file: &Path, rules: &str) {
    let server = format!("[servers.demo]\ncommand = [\"{PROGRAM}\", \"demo-server\"]\n");
    // Its tools ask nothing.
    let backups =
        format!("[servers.backups]\ncommand = [\"{PROGRAM}\", \"demo-server\", \"--backups\"]\n");
    let server = if rules.contains("delete_backup") {
        backups
    } else if rules.contains("deploy_task") {
        format!("[servers.both]\ncommand = [\"sh\", \"-c\", '''{OF_BOTH_ERAS}''']\n")
    } else {
        server
    };
    std::fs::write(
        file,
        format!("inbox = \"127.0.0.1:0\"\n{server}{PEOPLE}{rules}"),
    )
    .unwrap();
}

/// The people of the rules.
struct Ops(BTreeSet<&'static str>);

impl Membership for Ops {
    fn is_member(&self, group: &str, person: &str) -> bool {
        group == "ops" && self.0.contains(person)
    }

    fn is_caller(&self, _: &str) -> bool {
        false
    }
}

struct Beside(Record);

impl Beside {
    /// Waits for the open question.
    async fn open(&self) -> Row {
        for _ in 0..1_000 {
            let open = self.0.list(Filter::Open, Page::first(10)).await.unwrap();
            if let Some(row) = open.into_iter().next() {
                return self.0.find(&row.id).await.unwrap().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nothing was asked");
    }

    async fn act(&self, row: &Row, person: &str, act: TeamAct<'_>) -> Acted {
        let people = Ops(BTreeSet::from(["ada", "bob"]));
        let login_age = None;
        let by = ActingPerson { person, login_age };
        self.0.act(&row.id, act, by, &people).await.unwrap()
    }

    async fn fill(&self, row: &Row, person: &str, content: Value) -> Acted {
        let params: Value = serde_json::from_str(row.params.as_ref().unwrap()).unwrap();
        let form = Form::from_value(&params["requestedSchema"]).unwrap();
        let answers = form.check(content).unwrap();
        let answers = Some(&answers);
        self.act(
            row,
            person,
            TeamAct::Fill {
                answers,
                version: 0,
            },
        )
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_approve_a_call_and_one_of_them_answers_what_its_server_asks() {
    let mut gateway = Running::start(RULES);
    gateway.client.call(2, "deploy", &json!({"why": "friday"}));
    let beside = gateway.beside().await;
    let approval = beside.open().await;
    let team = approval.team.as_ref().unwrap();
    assert!(team.is_approval && team.rule == "careful");
    assert_eq!(
        approval.body.message,
        "Approve this call? The rule `careful` requires approval before it is made."
    );
    assert_eq!(
        beside.0.arguments(&approval).unwrap().as_deref(),
        Some(r#"{"why":"friday"}"#)
    );
    // The owner of the folder is not among the people who are asked.
    for act in ["accept", "decline"] {
        let (done, _) = raw::inbox(&gateway.state, &[act, &approval.id]);
        assert!(
            !done,
            "{act}: no link and no socket answers for the people of a rule"
        );
    }
    let eve = beside.fill(&approval, "eve", json!({})).await;
    assert_eq!(eve, Acted::Denied(Denied::NotAddressed));
    assert!(matches!(
        beside.fill(&approval, "ada", json!({})).await,
        Acted::Done(..)
    ));
    let row = beside.0.find(&approval.id).await.unwrap().unwrap();
    assert!(row.lifecycle.is_open(), "one of two");
    let digest = beside.0.entered(&row).unwrap().unwrap().digest;
    let acted = beside
        .act(&approval, "bob", TeamAct::Confirm { digest })
        .await;
    assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
    // The server is called only now. Its own question goes to people too, although the client could show it.
    let asked = loop {
        let row = beside.open().await;
        if row.id != approval.id {
            break row;
        }
    };
    assert_eq!(asked.team.as_ref().unwrap().rule, "where-to");
    assert_eq!(asked.body.message, "Which environment should I deploy to?");
    let acted = beside
        .fill(&asked, "bob", json!({"environment": "staging"}))
        .await;
    assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
    let done = gateway.client.result(2);
    assert!(text(&done).contains("staging"), "{done}");
    let note = &done["result"]["_meta"]["mcp-elicit/approval"];
    assert_eq!(note, &json!({"rule": "careful", "edited": []}));
    let audit = raw::command(&gateway.state, &["audit", "--json"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    for event in [
        "rules-loaded",
        "filled",
        "confirmed",
        "answered",
        "approval-granted",
        "act-refused",
        "delivered",
    ] {
        assert!(
            audit.contains(&format!(r#""event":"{event}""#)),
            "{event}: {audit}"
        );
    }
    assert!(audit.contains("person:ada, person:bob") && !audit.contains("friday"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_call_never_reaches_its_server() {
    let mut gateway = Running::start(RULES);
    gateway.client.call(2, "deploy", &json!({}));
    let beside = gateway.beside().await;
    let approval = beside.open().await;
    let note = Some("not on a Friday");
    let acted = beside
        .act(&approval, "ada", TeamAct::Decline { note })
        .await;
    assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
    let done = gateway.client.result(2);
    assert_eq!(done["result"]["isError"], true);
    assert!(
        text(&done).contains("`careful`") && text(&done).contains("was not called"),
        "{done}"
    );
    // The reason is for the caller, unless the rule says otherwise; the audit has it only if the rule says so.
    assert!(text(&done).contains("not on a Friday"), "{done}");
    let audit = raw::command(&gateway.state, &["audit", "--json"]);
    assert!(!String::from_utf8(audit.stdout).unwrap().contains("Friday"));
}

#[test]
fn refusals_name_their_rule_and_a_changed_file_is_taken_whole_or_not_at_all() {
    let mut gateway = Running::start(RULES);
    gateway.client.call(2, "profile", &json!({}));
    let refused = gateway.client.result(2);
    assert_eq!(refused["result"]["isError"], true);
    assert!(
        text(&refused).contains("the rule `never` refuses it: nobody's business"),
        "{refused}"
    );
    gateway.client.call(3, "connect-account", &json!({}));
    let refused = gateway.client.result(3);
    assert!(refused.to_string().contains("no-links"), "{refused}");

    write(
        &gateway.file,
        "[[rules]]\nname = \"all\"\nrefuse = \"closed\"\n[[rules]]\ntool = 7\n",
    );
    gateway.hang_up();
    let said = gateway.wait_to_say("the file was not applied");
    let next = format!("`mcp-elicit rules check {}`", gateway.file.display());
    assert!(said.contains(&next), "{said}");
    gateway.client.call(4, "profile", &json!({}));
    assert!(text(&gateway.client.result(4)).contains("`never`"));

    // The line of a file that is no TOML is shown once, and without its value.
    prepend(&gateway.file, "record-password = \"sekret-1\n");
    gateway.hang_up();
    let said = gateway.wait_to_say("the file was not applied");
    assert!(said.contains("at line 1, column "), "{said}");
    assert_eq!(said.matches("TOML parse error").count(), 1, "{said}");
    assert!(!said.contains("sekret"), "{said}");

    // The cause is given, since there are many possible ones.
    std::fs::remove_file(&gateway.file).unwrap();
    gateway.hang_up();
    let said = gateway.wait_to_say("the file was not applied");
    assert!(said.contains("No such file"), "{said}");

    write(
        &gateway.file,
        "[[rules]]\nname = \"all\"\nrefuse = \"closed\"\n",
    );
    gateway.hang_up();
    let said = gateway.wait_to_say("the rules were read again");
    assert!(said.contains(": 1 rule, 2 people, 0 channels"), "{said}");
    gateway.client.call(5, "deploy", &json!({}));
    assert!(text(&gateway.client.result(5)).contains("the rule `all` refuses it: closed"));
    let audit = raw::command(&gateway.state, &["audit", "--json"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    for event in ["rules-rejected", "refused-by-rule"] {
        assert!(audit.contains(event), "{event}: {audit}");
    }
    assert_eq!(audit.matches("rules-loaded").count(), 2, "{audit}");
}

/// Inserts this at the start of the file.
fn prepend(file: &Path, top: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, format!("{top}{text}")).unwrap();
}

const CLOSED: &str = "[[rules]]\nname = \"all\"\nrefuse = \"closed\"\n";

#[test]
fn the_first_rules_of_a_running_gateway_need_a_restart_and_do_not_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let server = format!("[servers.demo]\ncommand = [\"{PROGRAM}\", \"demo-server\"]\n");
    std::fs::write(&file, format!("inbox = \"127.0.0.1:0\"\n{server}")).unwrap();
    let mut gateway = Running::start_in(folder);
    gateway.wait_to_say("inbox: ");

    prepend(&file, "keep-ended = 3\n");
    gateway.hang_up();
    let said = gateway.wait_to_say("the file was read again");
    assert!(said.ends_with("are in force: `keep-ended`"), "{said}");

    std::fs::write(&file, format!("inbox = \"127.0.0.1:0\"\n{server}{CLOSED}")).unwrap();
    gateway.hang_up();
    let said = gateway.wait_to_say("the file was not applied");
    assert!(said.contains("the first ones need a restart"), "{said}");
    gateway
        .client
        .send(&json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
    assert_eq!(gateway.client.result(2)["result"], json!({}));

    let mut gateway = gateway.again();
    gateway.client.call(2, "deploy", &json!({}));
    assert!(text(&gateway.client.result(2)).contains("the rule `all` refuses it: closed"));
}

#[test]
fn a_file_that_needs_a_restart_is_not_taken_and_other_settings_are_named() {
    let mut gateway = Running::start(RULES);
    gateway.wait_to_say("inbox: ");
    for (top, tables, named) in [
        (
            "listen = \"127.0.0.1:0\"\n",
            "[auth]\nmode = \"keys\"\n",
            "[auth], `listen` in the file",
        ),
        (
            "trusted-proxies = [\"127.0.0.1\"]\n",
            "[login]\nmode = \"proxy\"\n[roles]\nadmin = [\"person:ada\"]\n",
            "[login], `trusted-proxies` in",
        ),
        // The only client has its server already.
        ("", "[servers.demo.env]\nA = \"b\"\n", "[servers.demo] in"),
        ("max-frame = 5000\n", "", "`max-frame` in"),
    ] {
        write(&gateway.file, &format!("{CLOSED}{tables}"));
        prepend(&gateway.file, top);
        gateway.hang_up();
        // The first line: nothing is reported about settings that do not belong to this gateway.
        let said = gateway.said.recv_timeout(PATIENCE).unwrap();
        assert!(
            said.contains("the file was not applied") && said.contains(named),
            "{said}"
        );
    }
    gateway.client.call(2, "profile", &json!({}));
    assert!(text(&gateway.client.result(2)).contains("`never`"));

    write(&gateway.file, CLOSED);
    prepend(&gateway.file, "keep-ended = 3\n");
    gateway.hang_up();
    let said = gateway.wait_to_say("the rules were read again");
    assert!(said.ends_with("are in force: `keep-ended`"), "{said}");
    let digest = said.split_once("digest ").unwrap().1[..8].to_owned();
    gateway.client.call(3, "profile", &json!({}));
    assert!(text(&gateway.client.result(3)).contains("`all`"));
    let audit = audit_with(&gateway.state, "refused-by-rule");
    let loaded = audit.iter().rfind(|entry| entry["event"] == "rules-loaded");
    let loaded = loaded.unwrap();
    assert_eq!(loaded["settings"], json!(["`keep-ended`"]));
    // Gateways that share a record can be compared.
    assert!(loaded["digest"].as_str().unwrap().starts_with(&digest));
    let (at, folder) = (loaded["gateway"].as_str().unwrap(), gateway.state.display());
    assert!(at.ends_with(&format!(":{folder}")), "{at}");
}

#[test]
fn the_last_rules_go_and_others_come_while_the_gateway_runs() {
    let mut gateway = Running::start(RULES);
    gateway.wait_to_say("inbox: ");
    let with_rules = std::fs::read_to_string(&gateway.file).unwrap();
    let (without, _) = with_rules.split_once("[people.ada]").unwrap();
    // Without rules and with people, and without both.
    for (number, rules) in [(2, PEOPLE), (3, "")] {
        std::fs::write(&gateway.file, format!("{without}{rules}")).unwrap();
        gateway.hang_up();
        let said = gateway.wait_to_say("the rules were read again");
        assert!(said.contains(": 0 rules, "), "{said}");
        gateway.client.call(number, "profile", &json!({}));
        let asked = gateway.client.next();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let declined = json!({"action": "decline"});
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": declined});
        gateway.client.send(&answer);
        let done = gateway.client.result(number);
        assert!(!done.to_string().contains("`never`"), "{done}");
    }
    std::fs::write(&gateway.file, format!("{without}{CLOSED}")).unwrap();
    gateway.hang_up();
    gateway.wait_to_say("the rules were read again");
    gateway.client.call(4, "profile", &json!({}));
    assert!(text(&gateway.client.result(4)).contains("the rule `all` refuses it: closed"));
}

const DELETIONS: &str = r#"
[[rules]]
name = "deletions"
tool = "delete_backup"
approve = true
ask = { group = "ops" }
edit = ["/name"]
good-for = "10m"
"#;

/// Waits until the audit has this event, and returns all entries.
fn audit_with(state: &Path, event: &str) -> Vec<Value> {
    for _ in 0..1_000 {
        let audit = raw::command(state, &["audit", "--json"]);
        let text = String::from_utf8(audit.stdout).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["entry"].clone())
            .collect();
        if lines.iter().any(|entry| entry["event"] == event) {
            return lines;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the audit has no {event}");
}

fn of_event<'a>(audit: &'a [Value], event: &str) -> &'a Value {
    let found = audit.iter().find(|entry| entry["event"] == event);
    found.unwrap_or_else(|| panic!("no {event} in {audit:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_is_good_for_a_while_survives_a_restart_and_serves_that_call_alone() {
    let mut gateway = Running::start(DELETIONS);
    let first = json!({"name": "2026-11-01"});
    gateway.client.call(2, "delete_backup", &first);
    let beside = gateway.beside().await;
    let approval = beside.open().await;
    // The client never listed the tools: the gateway did, so an argument can be changed.
    let acted = beside
        .fill(&approval, "ada", json!({"/name": "2026-11-08"}))
        .await;
    assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
    let done = gateway.client.result(2);
    assert_eq!(text(&done), "deleted the backup of 2026-11-08", "{done}");
    let audit = audit_with(&gateway.state, "approval-granted");
    let granted = of_event(&audit, "approval-granted");
    assert_eq!(granted["by"], "person:ada");
    assert_eq!(granted["id"], approval.id.as_str());
    assert_eq!(of_event(&audit, "filled")["edited"], json!(["/name"]));
    let lasts = granted["until"].as_u64().unwrap() - granted["at"].as_u64().unwrap();
    assert!(lasts <= 600_000, "never longer than the rule says");
    drop(beside);

    let mut gateway = gateway.again();
    gateway.client.call(3, "delete_backup", &first);
    let done = gateway.client.result(3);
    assert_eq!(text(&done), "deleted the backup of 2026-11-08", "{done}");
    let note = &done["result"]["_meta"]["mcp-elicit/approval"];
    assert_eq!(note, &json!({"rule": "deletions", "edited": ["/name"]}));
    let audit = audit_with(&gateway.state, "grant-used");
    let used = of_event(&audit, "grant-used");
    assert_eq!(
        (&used["by"], &used["rule"]),
        (&json!("person:ada"), &json!("deletions"))
    );
    assert!(!json!(audit).to_string().contains("2026-11-0"), "no value");

    // Any other argument is asked about again, and so is the same call after a change of the rule.
    let beside = gateway.beside().await;
    gateway
        .client
        .call(4, "delete_backup", &json!({"name": "2026-11-15"}));
    let other = beside.open().await;
    let acted = beside
        .act(&other, "bob", TeamAct::Decline { note: None })
        .await;
    assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
    assert_eq!(gateway.client.result(4)["result"]["isError"], true);
    write(&gateway.file, &DELETIONS.replace("\"10m\"", "\"1h\""));
    gateway.hang_up();
    gateway.wait_to_say("the rules were read again");
    gateway.client.call(5, "delete_backup", &first);
    let again = beside.open().await;
    assert_eq!(again.team.as_ref().unwrap().rule, "deletions");
    let audit = audit_with(&gateway.state, "grant-void");
    let void = of_event(&audit, "grant-void");
    assert_eq!((&void["by"], &void["grants"]), (&json!("owner"), &json!(1)));
    let loaded = audit.iter().rfind(|entry| entry["event"] == "rules-loaded");
    let loaded = loaded.unwrap();
    assert!(loaded["before"].is_string() && loaded["before"] != loaded["digest"]);
}

/// A client over HTTP, with a key.
struct OverHttp {
    at: String,
    key: String,
    session: String,
}

impl OverHttp {
    fn open(gateway: &Running, key: &str) -> Self {
        let at = gateway.serving();
        let client = Self {
            at,
            key: key.to_owned(),
            session: String::new(),
        };
        let opened = client.post(&raw::initialize("2025-11-25", &json!({})));
        assert_eq!(opened.status, 200, "{opened:?}");
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        let client = Self { session, ..client };
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(&ready).status, 202);
        client
    }

    fn post(&self, body: &Value) -> http::Reply {
        let session = Some(self.session.as_str()).filter(|session| !session.is_empty());
        http::post(&self.at, "/mcp/backups", Some(&self.key), session, body)
    }

    /// Makes a call, and returns its result as soon as it exists.
    fn call(self, arguments: &Value) -> tokio::task::JoinHandle<Value> {
        let call = raw::call(7, "delete_backup", arguments);
        tokio::task::spawn_blocking(move || self.post(&call).response())
    }
}

/// Creates a key for callers.
fn key(gateway: &Running) -> String {
    let words = ["tokens", "make", "test", "--scope", "call", "--json"];
    let made = raw::command(&gateway.state, &words);
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    made["token"].as_str().unwrap().to_owned()
}

impl Running {
    /// Starts a gateway for callers over HTTP with keys.
    fn start_http(rules: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.toml");
        write(&file, rules);
        let more = "listen = \"127.0.0.1:0\"\nauth.mode = \"keys\"\n";
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{more}{text}")).unwrap();
        Self::run_in(folder)
    }

    /// Returns host and port for callers.
    fn serving(&self) -> String {
        if let Some(at) = self.at.borrow().as_ref() {
            return at.clone();
        }
        loop {
            let line = self.said.recv_timeout(PATIENCE).unwrap();
            let Some((_, rest)) = line.split_once("serving: http://") else {
                continue;
            };
            let at = rest.split('/').next().unwrap().to_owned();
            self.at.replace(Some(at.clone()));
            return at;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_over_http_gets_what_people_approved() {
    let rules = DELETIONS
        .replace("good-for = \"10m\"\n", "")
        .replace("edit", "# edit");
    let gateway = Running::start_http(&rules);
    let key = key(&gateway);
    let waits = OverHttp::open(&gateway, &key).call(&json!({"name": "2026-11-01"}));
    let beside = gateway.beside().await;
    let approval = beside.open().await;
    assert!(approval.team.as_ref().unwrap().is_approval);
    assert!(matches!(
        beside.fill(&approval, "ada", json!({})).await,
        Acted::Done(..)
    ));
    let done = waits.await.unwrap();
    assert_eq!(text(&done), "deleted the backup of 2026-11-01", "{done}");
    let note = &done["result"]["_meta"]["mcp-elicit/approval"];
    assert_eq!(note, &json!({"rule": "deletions", "edited": []}));
    // The next call is asked about again, in any session.
    let waits = OverHttp::open(&gateway, &key).call(&json!({"name": "2026-11-01"}));
    let again = beside.open().await;
    assert_ne!(again.id, approval.id);
    beside
        .act(&again, "bob", TeamAct::Decline { note: None })
        .await;
    assert_eq!(waits.await.unwrap()["result"]["isError"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_http_is_made_with_the_argument_that_an_approver_changed() {
    let gateway = Running::start_http(DELETIONS);
    let key = key(&gateway);
    let arguments = json!({"name": "2026-11-01", "archive": true});
    let waits = OverHttp::open(&gateway, &key).call(&arguments);
    let beside = gateway.beside().await;
    let approval = beside.open().await;
    let params: Value = serde_json::from_str(approval.params.as_ref().unwrap()).unwrap();
    let field = &params["requestedSchema"]["properties"]["/name"];
    assert_eq!(
        (&field["maxLength"], &field["default"]),
        (&json!(40), &Value::Null),
        "its value is stored sealed only"
    );
    let acted = beside
        .fill(&approval, "bob", json!({"/name": "2026-11-08"}))
        .await;
    assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
    let done = waits.await.unwrap();
    assert_eq!(
        text(&done),
        "archived and deleted the backup of 2026-11-08",
        "{done}"
    );
    let words = done["result"]["content"][1]["text"].as_str().unwrap();
    assert!(words.ends_with("changed: /name"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_good_for_later_sessions_of_the_same_key_and_for_no_other() {
    let gateway = Running::start_http(DELETIONS);
    let (mine, other) = (key(&gateway), key(&gateway));
    let arguments = json!({"name": "2026-11-01"});
    let waits = OverHttp::open(&gateway, &mine).call(&arguments);
    let beside = gateway.beside().await;
    let approval = beside.open().await;
    let unchanged = json!({"/name": "2026-11-01"});
    assert!(matches!(
        beside.fill(&approval, "ada", unchanged).await,
        Acted::Done(..)
    ));
    waits.await.unwrap();
    let done = OverHttp::open(&gateway, &mine)
        .call(&arguments)
        .await
        .unwrap();
    assert_eq!(text(&done), "deleted the backup of 2026-11-01", "{done}");
    audit_with(&gateway.state, "grant-used");
    let waits = OverHttp::open(&gateway, &other).call(&arguments);
    let asked = beside.open().await;
    beside
        .act(&asked, "ada", TeamAct::Decline { note: None })
        .await;
    assert_eq!(waits.await.unwrap()["result"]["isError"], true);
}

/// A different set of rules.
const OTHER_RULES: &str = r#"
[people.ada]
mail = "ada@example.com"
[groups]
ops = ["ada"]

[[rules]]
name = "links"
refuse-modes = ["url"]

[[rules]]
name = "fridays"
tool = "deploy"
when = 'has(arguments.why) && arguments.why == "friday"'
refuse = "not on a Friday"

[[rules]]
name = "deployments"
tool = "deploy"
approve = true
ask = { group = "ops" }

[[rules]]
name = "trips"
when = '"city" in fields && question.message.contains("go")'
ask = { group = "ops" }

[[rules]]
name = "never-used"
tool = "other"
refuse = "no"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_tried_on_what_the_audit_has_seen() {
    let mut gateway = Running::start(RULES);
    gateway.client.call(2, "profile", &json!({}));
    gateway.client.result(2);
    gateway.client.call(3, "deploy", &json!({"why": "friday"}));
    let beside = gateway.beside().await;
    let waits = beside.open().await;
    let state = gateway.state.clone();
    let simulate = |more: &[&str]| {
        let file = state.with_file_name("other.toml");
        std::fs::write(&file, OTHER_RULES).unwrap();
        let file = file.to_str().unwrap().to_owned();
        let words = [&["rules", "simulate", &file, "--audit"], more].concat();
        let done = raw::command(&state, &words);
        assert!(done.status.success(), "{done:?}");
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(done.stdout), text(done.stderr))
    };
    let lines = |more: &[&str]| -> Vec<Value> {
        let (stdout, _) = simulate(&[&["--json"], more].concat());
        let lines = stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let of = |lines: &[Value], kind: &str, tool: &str| -> Value {
        let is_it = |line: &&Value| line["kind"] == kind && line["tool"] == tool;
        let found = lines.iter().find(is_it);
        found
            .unwrap_or_else(|| panic!("{kind} {tool}: {lines:?}"))
            .clone()
    };
    audit_with(&gateway.state, "refused-by-rule");
    // While the question waits, the record has the arguments.
    let approval = of(&lines(&[]), "approval", "deploy");
    assert_eq!(
        [
            &approval["was"],
            &approval["now"],
            &approval["verdicts"],
            &approval["certain"]
        ],
        [
            &json!("careful"),
            &json!(["fridays"]),
            &json!(["refused"]),
            &json!(true)
        ]
    );
    let note = None;
    beside.act(&waits, "ada", TeamAct::Decline { note }).await;
    gateway.client.result(3);
    gateway.client.call(4, "plan-trip", &json!({}));
    let asked = loop {
        let frame = gateway.client.next();
        if frame["method"] == "elicitation/create" {
            break frame;
        }
    };
    gateway
        .client
        .send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}));
    gateway.client.result(4);
    audit_with(&gateway.state, "declined");

    let said = lines(&[]);
    // They are erased now, and are not guessed.
    let approval = of(&said, "approval", "deploy");
    assert_eq!(
        [&approval["now"], &approval["certain"], &approval["missing"]],
        [
            &json!(["fridays", "deployments"]),
            &json!(false),
            &json!(["arguments"])
        ]
    );
    assert_eq!(approval["question"], waits.id.as_str());
    let refused = of(&said, "refusal", "profile");
    assert_eq!(
        [&refused["was"], &refused["now"], &refused["missing"]],
        [
            &json!("never"),
            &json!(["links", "trips", null]),
            &json!(["fields", "question.message", "question.mode"])
        ]
    );
    let trip = of(&said, "question", "plan-trip");
    assert_eq!(
        [
            &trip["was"],
            &trip["now"],
            &trip["verdicts"],
            &trip["missing"]
        ],
        [
            &Value::Null,
            &json!(["trips"]),
            &json!(["people"]),
            &json!([])
        ]
    );
    let summary = &said.last().unwrap()["summary"];
    assert_eq!(
        *summary,
        json!({
            "questions": 1, "approvals": 1, "refusals": 1, "certain": 1, "changed": 1, "by-rule": {"trips": 1},
            "perhaps-by-rule": {"deployments": 1, "fridays": 1, "links": 1, "trips": 1}, "no-rule": 0,
            "missing": {"arguments": 1, "fields": 1, "question.message": 1, "question.mode": 1},
        })
    );
    let (stdout, stderr) = simulate(&[]);
    assert!(
        stdout.contains("now trips: people are asked  *")
            && stdout.contains("(unknown without arguments)"),
        "{stdout}"
    );
    assert!(
        stderr.contains("1 question, 1 approval and 1 refusal; certain: 1,")
            && stderr.contains("never-used               0"),
        "{stderr}"
    );
    assert!(
        !stdout.contains("friday\"") && !stdout.contains("like to go"),
        "{stdout}"
    );
    assert_eq!(
        lines(&["--since", "2999-01-01T00:00:00Z"]).len(),
        1,
        "the summary alone"
    );
    assert_eq!(lines(&["--since", "1h"]).len(), said.len());
    let nowhere = tempfile::tempdir().unwrap();
    let file = gateway.state.with_file_name("other.toml");
    let words = ["rules", "simulate", file.to_str().unwrap(), "--audit"];
    let done = raw::command(nowhere.path(), &words);
    assert_eq!(done.status.code(), Some(2), "{done:?}");
}

/// Writes an audit of `count` events, of about 4 kB each, into the record of a new state folder.
async fn long_audit(state: &Path, count: usize) {
    let folder = StateFolder::open(state).unwrap();
    let keys = folder.key_files().open().await.unwrap();
    let store = Sqlite::at(&folder.record()).with_keys(&keys);
    let pad = "x".repeat(4_000);
    for start in (0..count).step_by(500) {
        let note = |number: usize| {
            let entry = json!({
                "at": number, "event": "asked", "id": format!("{number:032x}"), "server": "s", "principal": "local",
                "kind": "tool", "target": "deploy", "pad": pad,
            });
            Write::Note(entry.to_string())
        };
        let notes: Vec<Write> = (start..start + 500).map(note).collect();
        store.write(Arc::new(notes)).await.unwrap();
    }
    store.close().await.unwrap();
}

/// Commands that read the whole audit hold a page of it at a time.
#[tokio::test]
async fn an_audit_of_any_length_is_read_in_bounded_memory() {
    /// Runs a command, and prints the most memory that it had, in kB.
    const PEAK: &str = "import resource, subprocess, sys\nprint(subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.toml");
    std::fs::write(&file, OTHER_RULES).unwrap();
    let simulate = ["rules", "simulate", file.to_str().unwrap(), "--audit"];
    let mut peaks = [Vec::new(), Vec::new()];
    for count in [500, 10_000] {
        let state = folder.path().join(count.to_string());
        long_audit(&state, count).await;
        for (words, peaks) in [&simulate[..], &["audit", "--verify"]]
            .iter()
            .zip(&mut peaks)
        {
            let mut command = Command::new("python3");
            command.args(["-c", PEAK, PROGRAM]).args(*words);
            command.args(["--state", state.to_str().unwrap()]);
            let Ok(done) = command.output() else {
                return mcp_elicit_testkit::chromium::report_skipped(
                    "no python3 here, MEMORY WAS NOT TESTED",
                );
            };
            let said = String::from_utf8(done.stdout).unwrap();
            let (code, peak) = said.trim().split_once(' ').unwrap();
            assert_eq!(
                code,
                "0",
                "{words:?}: {}",
                String::from_utf8_lossy(&done.stderr)
            );
            peaks.push(peak.parse::<u64>().unwrap());
        }
    }
    // The events are 40 MB.
    for peak in peaks {
        assert!(peak[1] < peak[0] + 20_000, "{peak:?} kB");
    }
}

#[tokio::test]
async fn rules_are_not_tried_on_a_damaged_record_without_a_word_nor_on_another_file() {
    let mut gateway = Running::start(RULES);
    gateway.client.call(2, "profile", &json!({}));
    gateway.client.result(2);
    audit_with(&gateway.state, "refused-by-rule");
    let Running {
        client,
        folder,
        state,
        file,
        ..
    } = gateway;
    drop(client);
    let record = state.join("record.sqlite");
    let simulate = |state: &Path| {
        let words = ["rules", "simulate", file.to_str().unwrap(), "--audit"];
        let done = raw::command(state, &words);
        let said = String::from_utf8(done.stderr).unwrap();
        (done.status.code(), said)
    };
    let (code, said) = simulate(&state);
    assert_eq!(code, Some(0), "{said}");
    let connection = rusqlite::Connection::open(&record).unwrap();
    let change = "UPDATE audit SET entry = replace(entry, 'never', 'maybe')";
    connection.execute_batch(change).unwrap();
    connection.close().unwrap();
    let (code, said) = simulate(&state);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the chain is broken at event"), "{said}");

    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let file = other.join("record.sqlite");
    for (bytes, why) in [
        ("", "it is empty"),
        ("not a database, by far", "it is not an SQLite database"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let (code, said) = simulate(&other);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(why), "{said}");
        let audit = raw::command(&other, &["audit"]);
        let said = String::from_utf8(audit.stderr).unwrap();
        // A gateway that is starting has created the file, and written nothing.
        let (code, why) = if bytes.is_empty() {
            (0, "no events yet")
        } else {
            (2, why)
        };
        assert_eq!(audit.status.code(), Some(code), "{said}");
        assert!(said.contains(why), "{said}");
        assert_eq!(std::fs::read(&file).unwrap(), bytes.as_bytes());
        let inside: Vec<_> = std::fs::read_dir(&other).unwrap().collect();
        assert_eq!(inside.len(), 1, "{inside:?}");
    }
}

/// Returns a call of 2026-07-28, whose questions its own client answers unless a rule says otherwise.
fn rounds_call(id: u64) -> Value {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "deploy", "arguments": {}, "_meta": meta}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_answers_no_later_question_and_makes_no_second_call_of_one_approval() {
    let rules = r#"
[[rules]]
name = "careful"
tool = "deploy"
approve = true
ask = { group = "ops" }

[[rules]]
name = "sure"
when = "has(fields.confirm)"
ask = { group = "ops" }
"#;
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("gateway.toml"), rules);
    let mut gateway = Running::run_in(folder);
    gateway.client.send(&rounds_call(2));
    let beside = gateway.beside().await;
    let approval = beside.open().await;
    let acted = beside.fill(&approval, "ada", json!({})).await;
    assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
    let round = gateway.client.result(2);
    let target = &round["result"]["inputRequests"]["target"];
    assert_eq!(target["method"], "elicitation/create", "{round}");
    // The second question is for other people. The client cannot answer it, even if it tries.
    let mut retry = rounds_call(3);
    retry["params"]["requestState"] = round["result"]["requestState"].clone();
    retry["params"]["inputResponses"] = json!({
        "target": {"action": "accept", "content": {"environment": "production"}},
        "sure": {"action": "accept", "content": {"confirm": true}}});
    gateway.client.send(&retry);
    let sure = loop {
        let row = beside.open().await;
        if row.team.is_some() && row.id != approval.id {
            break row;
        }
    };
    assert_eq!(sure.team.as_ref().unwrap().rule, "sure");
    let acted = beside.fill(&sure, "bob", json!({"confirm": true})).await;
    assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
    let done = gateway.client.result(3);
    assert_eq!(text(&done), "Deployed to production", "{done}");
    retry["id"] = json!(4);
    gateway.client.send(&retry);
    assert_eq!(gateway.client.result(4)["error"]["code"], -32602);
    // Another process knows of no use, and asks for another approval.
    let Running { client, folder, .. } = gateway;
    drop(client);
    let mut gateway = Running::run_in(folder);
    retry["id"] = json!(5);
    gateway.client.send(&retry);
    let again = beside.open().await;
    assert!(again.team.as_ref().unwrap().is_approval);
    assert_ne!(again.id, approval.id);
    let acted = beside
        .act(&again, "bob", TeamAct::Decline { note: None })
        .await;
    assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
    let said = gateway.client.result(5);
    assert!(text(&said).contains("was not called"), "{said}");
    let audit = audit_with(&gateway.state, "approval-granted");
    let granted = audit
        .iter()
        .filter(|entry| entry["event"] == "approval-granted");
    assert_eq!(granted.count(), 1);
}

/// A server of both eras, which decides for each request whether it asks in its result, as a task, or by pushing. It
/// rejects an illegal `clientInfo`.
const OF_BOTH_ERAS: &str = r#"
while read -r line; do
  id=$(printf "%s" "$line" | sed "s/.*\"id\":\([^,}]*\).*/\1/")
  say() { printf "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n" "$id" "$1"; }
  form="\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"Where?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"env\":{\"type\":\"string\"}}}}"
  case $line in
    *clientInfo\":5*) say "\"error\":{\"code\":-32602,\"message\":\"bad _meta\"}" ;;
    *\"initialize\"*) say "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"both\",\"version\":\"1\"}}" ;;
    *server/discover*) say "\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\",\"2025-11-25\"],\"capabilities\":{\"tools\":{}},\"ttlMs\":0,\"cacheScope\":\"private\"}" ;;
    *tools/call*2026-07-28*) say "\"result\":{\"resultType\":\"task\",\"taskId\":\"t\",\"status\":\"working\"}" ;;
    *tools/call*) printf "{\"jsonrpc\":\"2.0\",\"id\":\"q\",%s}\n" "$form" ;;
    *tasks/get*) say "\"result\":{\"resultType\":\"complete\",\"taskId\":\"t\",\"status\":\"input_required\",\"inputRequests\":{\"who\":{$form}}}" ;;
    *tasks/update*) say "\"result\":{\"resultType\":\"complete\",\"ran\":true}" ;;
  esac
done
"#;

const TASKS: &str = r#"
[[rules]]
name = "where-to"
tool = "deploy_task"
ask = { group = "ops", need = 2 }
"#;

/// Returns `_meta` of a request of 2026-07-28 from a client with this `clientInfo`.
fn own_words(info: &Value) -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": info,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_discover_brings_the_questions_of_a_task_to_nobody_else_than_its_rule_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    write(&file, TASKS);
    // In a session, the tasks of 2026-07-28 do not reach the server.
    let rounds = "[servers.both]\nrevision = \"2026-07-28\"\n";
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("[servers.both]\n", rounds)).unwrap();
    let mut gateway = Running::run_in(folder);
    let send = |gateway: &mut Running, id: u64, method: &str, mut params: Value, info: &Value| {
        params["_meta"] = own_words(info);
        let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        gateway.client.send(&frame);
        gateway.client.result(id)
    };
    let client = json!({"name": "raw", "version": "1"});
    let refused = send(&mut gateway, 1, "server/discover", json!({}), &json!(5));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let params = json!({"name": "deploy_task", "arguments": {}});
    let began = send(&mut gateway, 2, "tools/call", params, &client);
    assert_eq!(began["result"]["taskId"], "t", "{began}");
    let params = json!({"taskId": "t"});
    let status = send(&mut gateway, 3, "tasks/get", params, &client);
    assert_eq!(status["result"]["status"], "working", "{status}");
    assert!(!status.to_string().contains("Where?"), "{status}");
    let answer = json!({"who": {"action": "accept", "content": {"env": "production"}}});
    let params = json!({"taskId": "t", "inputResponses": answer});
    let update = send(&mut gateway, 4, "tasks/update", params, &client);
    assert_eq!(update["error"]["code"], -32602, "{update}");
    let asked = gateway.beside().await.open().await;
    assert_eq!(asked.team.as_ref().unwrap().rule, "where-to");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_a_session_asks_the_people_of_its_rule_whatever_era_its_client_discovers() {
    let mut gateway = Running::start(TASKS);
    let client = json!({"name": "raw", "version": "1"});
    let discover = json!({"_meta": own_words(&client)});
    let frame = json!({"jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": discover});
    gateway.client.send(&frame);
    assert!(gateway.client.result(2)["result"].is_object());
    let params = json!({"name": "deploy_task", "arguments": {}, "_meta": own_words(&client)});
    let frame = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params});
    gateway.client.send(&frame);
    assert_eq!(gateway.client.result(3)["error"]["code"], -32602);
    gateway.client.call(4, "deploy_task", &json!({}));
    let asked = gateway.beside().await.open().await;
    assert_eq!(asked.team.as_ref().unwrap().rule, "where-to");
}
