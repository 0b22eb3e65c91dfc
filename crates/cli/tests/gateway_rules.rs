//! Rules in force: the real program with its own configuration, a real server, and people who act as another gateway's pages would,
//! through the same record.
#![cfg(all(unix, feature = "full"))]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[path = "raw/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod raw;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use mcp_elicit_core::form::Form;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_policy::quorum::{Actor, Denied, Membership};
use mcp_elicit_record::store::{Filter, Page, Row, Sqlite};
use mcp_elicit_record::team::{Acted, TeamAct};
use mcp_elicit_record::{LockFile, Record, clock};
use raw::{PATIENCE, PROGRAM, Raw, text};
use serde_json::{Value, json};

const RULES: &str = r#"
[people.ada]
mail = "ada@example.com"
[people.bob]
mail = "bob@example.com"
[groups]
ops = ["ada", "bob"]

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

/// A gateway with a configuration of its own, in front of the demo server.
struct Running {
    client: Raw,
    file: PathBuf,
    state: PathBuf,
    /// Both are in it.
    _folder: tempfile::TempDir,
    said: mpsc::Receiver<String>,
}

impl Running {
    fn start(rules: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let file = folder.path().join("gateway.toml");
        write(&file, rules);
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
        client.initialize(
            "2025-11-25",
            &json!({"elicitation": {"form": {}, "url": {}}}),
        );
        Self {
            client,
            file,
            state,
            _folder: folder,
            said,
        }
    }

    /// Waits until the gateway has said this.
    fn wait_to_say(&self, words: &str) {
        while !self.said.recv_timeout(PATIENCE).unwrap().contains(words) {}
    }

    fn hang_up(&self) {
        let id = self.client.child.id().to_string();
        let done = Command::new("kill").args(["-HUP", &id]).status().unwrap();
        assert!(done.success());
    }

    /// Another gateway over the same record.
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
    std::fs::write(file, format!("inbox = \"127.0.0.1:0\"\n{server}{rules}")).unwrap();
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
        let by = Actor { person, login_age };
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
        "Approve this call? The rule `careful` requires approval before deploy of demo is called."
    );
    assert_eq!(
        beside.0.arguments(&approval).as_deref(),
        Some(r#"{"why":"friday"}"#)
    );
    // The owner of the folder is not among those who are asked, and neither is a stranger.
    let (accepted, _) = raw::inbox(&gateway.state, &["answer", &approval.id, "--accept"]);
    assert!(
        !accepted,
        "no link and no socket answers for the people of a rule"
    );
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
    // Only now the server is called; its own question goes to people too, though the client could show it.
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
    assert!(
        !done.to_string().contains("Friday"),
        "what people write is for people"
    );
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
    gateway.wait_to_say("the rules stay as they are");
    gateway.client.call(4, "profile", &json!({}));
    assert!(text(&gateway.client.result(4)).contains("`never`"));

    write(
        &gateway.file,
        "[[rules]]\nname = \"all\"\nrefuse = \"closed\"\n",
    );
    gateway.hang_up();
    gateway.wait_to_say("the rules were read again");
    gateway.client.call(5, "deploy", &json!({}));
    assert!(text(&gateway.client.result(5)).contains("the rule `all` refuses it: closed"));
    let audit = raw::command(&gateway.state, &["audit", "--json"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    for event in ["rules-rejected", "refused-by-rule"] {
        assert!(audit.contains(event), "{event}: {audit}");
    }
    assert_eq!(audit.matches("rules-loaded").count(), 2, "{audit}");
}
