//! Answers in Slack: the real program with its own configuration, a real server, and a stand-in for Slack that signs
//! with Slack's own library and checks each message with its models.
#![cfg(all(unix, feature = "full"))]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[path = "raw/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod raw;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use mcp_elicit_testkit::peers::{self, Listening};
use raw::{PATIENCE, PROGRAM, Raw, text};
use serde_json::{Value, json};

const SIGNING_SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";

const RULES: &str = r#"
[people.ada]
mail = "ops1@example.com"
[people.bob]
mail = "ops2@example.com"
[groups]
ops = ["ada", "bob"]
[login]
mode = "proxy"
[roles]
admin = ["person:bob"]

[[rules]]
name = "careful"
tool = "deploy"
approve = true
ask = { group = "ops" }
reveal = "arguments"

[[rules]]
name = "where-to"
tool = "deploy"
ask = { group = "ops" }
"#;

/// A Slack workspace.
struct Workspace(Listening);

impl Workspace {
    fn start() -> Option<Self> {
        let script = peers::channel_script("slack.py")?;
        // Another test of this process may have installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Some(Self(script.env("SIGNING_SECRET", SIGNING_SECRET).listen()))
    }

    /// Returns the configuration table of a gateway that uses the workspace.
    fn table(&self) -> String {
        format!(
            "[channels.slack]\ntoken = {{ env = \"SLACK_TOKEN\" }}\nsigning-secret = {{ env = \"SLACK_SIGNING\" }}\n\
             team = \"T0123\"\napi = \"{}/api/\"\ngroups = {{ ops = \"C0456\" }}\n",
            self.0.url()
        )
    }

    async fn ask(&self, path: &str, body: Option<Value>) -> Value {
        let url = format!("{}{path}", self.0.url());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = match body {
            None => client.get(url),
            Some(body) => client.post(url).body(body.to_string()),
        };
        let reply = request.send().await.unwrap().text().await.unwrap();
        serde_json::from_str(&reply).unwrap()
    }

    /// Waits for this number of calls of the method, and returns them.
    async fn calls(&self, method: &str, count: usize) -> Vec<Value> {
        let mut got = Value::Null;
        for _ in 0..3_000 {
            got = self.ask("/got", None).await;
            let calls = got.as_array().unwrap().iter();
            let calls: Vec<_> = calls.filter(|call| call["method"] == method).collect();
            assert!(calls.iter().all(|call| call["ok"] == true), "{calls:?}");
            if calls.len() >= count {
                return calls.into_iter().cloned().collect();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("Slack did not get {method} {count} times: {got}");
    }

    /// Sends a signed payload from Slack to the gateway, and returns the reply.
    async fn deliver(&self, inbox: &str, payload: Value) -> Value {
        let to = format!("{inbox}slack/interact");
        let body = json!({"to": to, "payload": payload});
        self.ask("/deliver", Some(body)).await[0].clone()
    }
}

/// A gateway with its own configuration, in front of the demo server.
struct Running {
    client: Raw,
    file: PathBuf,
    state: PathBuf,
    said: mpsc::Receiver<String>,
    _folder: tempfile::TempDir,
}

impl Running {
    fn start(tables: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (state, file) = (
            folder.path().join("state"),
            folder.path().join("gateway.toml"),
        );
        write(&file, tables);
        let mut command = Command::new(PROGRAM);
        command.args(["gateway", "--state"]).arg(&state);
        command.arg("--config").arg(&file).stderr(Stdio::piped());
        command.env("SLACK_TOKEN", "xoxb-token");
        command.env("SLACK_SIGNING", SIGNING_SECRET);
        let mut client = Raw::start(command);
        let stderr = client.child.stderr.take().unwrap();
        let (tell, said) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _the_test_is_over = tell.send(line);
            }
        });
        client.initialize("2025-11-25", &json!({"elicitation": {"form": {}}}));
        Self {
            client,
            file,
            state,
            said,
            _folder: folder,
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

    /// Returns the inbox's address, with a slash at its end.
    fn inbox(&self) -> String {
        let line = self.wait_to_say("inbox: http");
        let address = line.split("inbox: ").nth(1).unwrap();
        address.split(' ').next().unwrap().to_owned()
    }

    /// Waits until the audit has this number of events of the kind.
    async fn wait_for_events(&self, event: &str, count: usize) {
        for _ in 0..500 {
            let audit = raw::command(&self.state, &["audit", "--json", "--event", event]);
            let found = String::from_utf8(audit.stdout).unwrap().lines().count();
            if found == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the audit has not {count} of {event}");
    }

    fn read_again(&self, tables: &str) {
        write(&self.file, tables);
        let id = self.client.child.id().to_string();
        let done = Command::new("kill").args(["-HUP", &id]).status().unwrap();
        assert!(done.success());
    }
}

fn write(file: &Path, tables: &str) {
    let server = format!("[servers.demo]\ncommand = [\"{PROGRAM}\", \"demo-server\"]\n");
    let top = "inbox = \"127.0.0.1:0\"\ntrusted-proxies = [\"127.0.0.1\"]\n";
    std::fs::write(file, format!("{top}{server}{tables}")).unwrap();
}

/// Returns the button of a message with this id.
fn button<'a>(call: &'a Value, id: &str) -> &'a Value {
    let blocks = call["body"]["blocks"].as_array().unwrap();
    let elements = blocks.last().unwrap()["elements"].as_array().unwrap();
    let found = elements.iter().find(|element| element["action_id"] == id);
    found.unwrap_or_else(|| panic!("no {id}: {call}"))
}

fn click(user: &str, button: &Value) -> Value {
    json!({
        "type": "block_actions",
        "team": {"id": "T0123"},
        "user": {"id": user, "team_id": "T0123"},
        "trigger_id": format!("trigger-{button}"),
        "container": {"type": "message", "message_ts": "1.1", "channel_id": "C0456"},
        "actions": [{
            "type": "button", "block_id": "b", "action_id": button["action_id"], "value": button["value"],
        }],
    })
}

fn submission(user: &str, view: &Value, values: &Value) -> Value {
    let mut view = view.clone();
    view["id"] = "V1".into();
    view["state"] = json!({"values": values});
    json!({"type": "view_submission", "team": {"id": "T0123"}, "user": {"id": user}, "view": view})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_approved_by_a_button_and_its_question_answered_in_a_modal() {
    let Some(workspace) = Workspace::start() else {
        return;
    };
    let mut gateway = Running::start(&format!("{RULES}{}", workspace.table()));
    let inbox = gateway.inbox();
    // The pages are only for people whom the proxy names; Slack needs no login.
    let page = reqwest::get(&inbox).await.unwrap();
    assert_eq!(page.status(), 403);
    gateway.client.call(2, "deploy", &json!({"why": "friday"}));

    // The arguments are in the message, so that a button decides.
    let asked = workspace.calls("chat.postMessage", 1).await;
    assert!(asked[0].to_string().contains("friday"), "{}", asked[0]);
    let approve = button(&asked[0], "choose:0");
    assert_eq!(approve["text"]["text"], "Approve");
    let eve = workspace.deliver(&inbox, click("UEVE", approve)).await;
    assert_eq!(eve["status"], 200);
    let told = workspace.calls("chat.postEphemeral", 1).await;
    assert!(
        told[0]
            .to_string()
            .contains("No person in the gateway's file"),
        "{}",
        told[0]
    );
    let reply = workspace.deliver(&inbox, click("UOPS1", approve)).await;
    assert_eq!(reply, json!({"status": 200, "body": null}));

    // The server is called only after that. Its own question has a form, whose arguments are not in the message.
    let asked = workspace.calls("chat.postMessage", 2).await;
    assert!(!asked[1].to_string().contains("friday"), "{}", asked[1]);
    let review = click("UOPS2", button(&asked[1], "review"));
    workspace.deliver(&inbox, review).await;
    let shown = workspace.calls("views.update", 1).await;
    let view = &shown[0]["body"]["view"];
    assert_eq!(view["callback_id"], "answer", "{view}");
    assert!(view.to_string().contains("friday"), "{view}");
    let wrong = submission("UOPS2", view, &json!({"f1": {"v": {"value": "first"}}}));
    let wrong = workspace.deliver(&inbox, wrong).await;
    assert_eq!(wrong["body"]["response_action"], "errors", "{wrong}");
    let beside: Vec<_> = wrong["body"]["errors"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(beside, ["f0"]);
    let staging = json!({
        "f0": {"v": {"selected_option": {"value": "0"}}},
        "f1": {"v": {"value": "first"}},
    });
    let right = workspace
        .deliver(&inbox, submission("UOPS2", view, &staging))
        .await;
    assert_eq!(right["body"], json!({"response_action": "clear"}));
    let done = gateway.client.result(2);
    assert!(
        text(&done).contains("Deployed to staging (first)"),
        "{done}"
    );

    let changed = workspace.calls("chat.update", 2).await;
    for (call, words) in changed.iter().zip(["Approved by ada", "Answered by bob"]) {
        assert!(call.to_string().contains(words), "{words}: {call}");
        assert!(!call.to_string().contains("decline"), "{call}");
    }
    let audit = raw::command(&gateway.state, &["audit", "--json"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    let events: Vec<Value> = audit
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["entry"].clone())
        .collect();
    let answered = events.iter().filter(|event| event["event"] == "answered");
    let answered: Vec<_> = answered
        .map(|event| (event["by"].as_str(), event["channel"].as_str()))
        .collect();
    assert_eq!(
        answered,
        [
            (Some("person:ada"), Some("slack")),
            (Some("person:bob"), Some("slack"))
        ]
    );
    assert!(!audit.contains("friday") && !audit.contains("first"));
    let plain = raw::command(&gateway.state, &["audit", "--event", "answered"]);
    let plain = String::from_utf8(plain.stdout).unwrap();
    assert!(plain.contains("by ada  through slack"), "{plain}");
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_are_taken_with_the_rules_when_the_file_is_read_again_or_not_at_all() {
    let Some(workspace) = Workspace::start() else {
        return;
    };
    let mut gateway = Running::start(RULES);
    let inbox = gateway.inbox();
    let first = click("UOPS1", &json!({"action_id": "decline", "value": "x:0:-"}));
    let none = workspace.deliver(&inbox, first.clone()).await;
    assert_eq!(none["status"], 404, "{none}");

    gateway.read_again(&format!("{RULES}{}", workspace.table()));
    let said = gateway.wait_to_say("are in force, with the channels");
    assert!(
        said.contains(", 1 channel") && !said.contains("unchanged"),
        "{said}"
    );
    gateway.client.call(2, "deploy", &json!({}));
    let asked = workspace.calls("chat.postMessage", 1).await;

    // After an error in a table, or with a missing secret, everything stays as it was, the rules too.
    let refusing = "[[rules]]\nname = \"closed\"\ntool = \"profile\"\nrefuse = \"closed\"\n";
    let table = workspace.table();
    for (table, why) in [
        (table.replace("T0123", "X1"), "not an id of Slack's"),
        (
            table.replace("SLACK_TOKEN", "NO_SUCH_TOKEN"),
            "NO_SUCH_TOKEN",
        ),
    ] {
        gateway.read_again(&format!("{refusing}{RULES}{table}"));
        let said = gateway.wait_to_say("was not applied");
        let next = if why == "NO_SUCH_TOKEN" {
            "restart the gateway"
        } else {
            "mcp-elicit rules check"
        };
        assert!(said.contains(next), "{said}");
        let said = if said.contains(why) {
            said
        } else {
            gateway.wait_to_say(why)
        };
        assert!(!said.contains("xoxb"), "{said}");
    }
    gateway.wait_for_events("rules-rejected", 2).await;
    gateway.wait_for_events("rules-loaded", 2).await;
    let decline = click("UOPS1", button(&asked[0], "decline"));
    let declined = workspace.deliver(&inbox, decline).await;
    assert_eq!(declined["status"], 200, "{declined}");
    let done = gateway.client.result(2);
    assert!(text(&done).contains("`careful`"), "{done}");

    // Without the table no messages are sent, and the address is gone.
    gateway.read_again(RULES);
    gateway.wait_to_say("are in force, with the channels");
    let none = workspace.deliver(&inbox, first).await;
    assert_eq!(none["status"], 404, "{none}");
}
