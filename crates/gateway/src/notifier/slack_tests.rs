//! Answers in Slack: the gateway's address, the record and the table of roles, with a stand-in that signs as Slack
//! does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_forms::web::{self, ConnectionBounds};
use mcp_elicit_inbox::login::directory::Directory;
use mcp_elicit_inbox::login::table::{Lifetimes, LoginAdmission, LoginIdentity};
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_policy::access::{AccessAction, AccessCell, ROLES, Role, TABLE};
use mcp_elicit_policy::quorum::ActingPerson;
use mcp_elicit_policy::{Addressee, Rules};
use mcp_elicit_record::store::Row;
use mcp_elicit_record::team::{Acted, TeamAct, TeamCaller};
use mcp_elicit_record::{IdentityKey, Record, audit, clock};
use mcp_elicit_testkit::peers::{self, Listening};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::tests::{InFile, ask, ask_beside, ask_form, ask_of_call, record};
use super::{Notifier, OpenChannels, SlackPeople};
use crate::config::ConfiguredChannels;
use crate::current_rules::CurrentRules;

const SIGNING_SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";

/// The people of most tests; `eve` has roles and is in no group, `zoe` has neither.
const PEOPLE: &str = r#"
[people.ada]
name = "Ada L."
mail = "ops1@example.com"
[people.bob]
mail = "ops2@example.com"
[people.eve]
mail = "eve@example.com"
[people.zoe]
mail = "zoe@example.com"
[groups]
ops = ["ada", "bob"]
[roles]
admin = ["person:eve"]
auditor = ["person:eve"]
"#;

const RULE: &str = "[[rules]]\nname = \"ops decide\"\nask = { group = \"ops\" }\n";

/// The age at which claims no longer count.
const STALE: Duration = Duration::from_secs(60 * 60);

struct Rig {
    workspace: Listening,
    record: Arc<Record>,
    teams: Arc<CurrentRules>,
    notifier: Arc<Notifier>,
    pages_only: Arc<AtomicBool>,
    at: String,
    folder: tempfile::TempDir,
    /// The number of notes that were read, by user.
    notes_read: RefCell<BTreeMap<String, usize>>,
}

impl Rig {
    async fn start(file: &str) -> Option<Self> {
        Self::start_for(file, Vec::new()).await
    }

    /// Starts a gateway in which only these people may log in.
    async fn start_for(file: &str, allow: Vec<Addressee>) -> Option<Self> {
        let workspace = peers::channel_script("slack.py")?;
        let workspace = workspace.env("SIGNING_SECRET", SIGNING_SECRET).listen();
        let folder = tempfile::tempdir().unwrap();
        for (name, secret) in [("token", "xoxb-token"), ("signing", SIGNING_SECRET)] {
            std::fs::write(folder.path().join(name), secret).unwrap();
        }
        let text = format!("{file}{}", slack_table(&workspace, folder.path(), true));
        let rules = Arc::new(Rules::parse(&text).unwrap());
        let (teams, _events) =
            CurrentRules::without_logins(rules.clone(), IdentityKey::random().unwrap());
        let record = record();
        let pages_only = Arc::new(AtomicBool::new(false));
        let only = pages_only.clone();
        let of_gateway = StateFolder::open(&folder.path().join("state")).unwrap();
        let logins = Arc::new(of_gateway.logins());
        let directory = || {
            let current = teams.clone();
            let now = Arc::new(move || current.rules());
            Directory::new(now, logins.clone(), String::new(), STALE, clock::now)
        };
        let notifier = Notifier::new(
            record.clone(),
            teams.clone(),
            channels(&text, &rules),
            Arc::new(|id: &str| Some(format!("https://ask.example.com/q/{id}"))),
            Arc::new(move || only.load(Ordering::Relaxed)),
            directory(),
            None,
        );
        let directory = directory();
        let at = serve(notifier.slack_route(SlackPeople { directory, allow })).await;
        Some(Self {
            workspace,
            record,
            teams,
            notifier,
            pages_only,
            at,
            folder,
            notes_read: RefCell::default(),
        })
    }

    /// Serves the address as a second process does that shares the record.
    async fn beside(&self) -> String {
        let state = StateFolder::open(&self.folder.path().join("state")).unwrap();
        let current = self.teams.clone();
        let now = Arc::new(move || current.rules());
        let logins = Arc::new(state.logins());
        let directory = Directory::new(now, logins, String::new(), STALE, clock::now);
        let allow = Vec::new();
        serve(self.notifier.slack_route(SlackPeople { directory, allow })).await
    }

    /// Sends a signed request to the gateway, as many times as the body says, and returns the replies.
    async fn deliver(&self, body: Value) -> Vec<Value> {
        let mut body = body;
        if body["to"].is_null() {
            body["to"] = format!("{}/slack/interact", self.at).into();
        }
        let client = reqwest::Client::new();
        let reply = client
            .post(format!("{}/deliver", self.workspace.url()))
            .body(body.to_string());
        let reply = reply.send().await.unwrap().text().await.unwrap();
        serde_json::from_str(&reply).unwrap()
    }

    async fn click(&self, user: &str, action: &str, value: &str) -> Value {
        let mut payload = click(user, action, value);
        // No two clicks are the same request.
        let known: usize = self.notes_read.borrow().values().sum();
        payload["actions"][0]["action_ts"] = known.to_string().into();
        let replies = self.deliver(json!({"payload": payload})).await;
        assert_eq!(replies[0]["status"], 200, "{replies:?}");
        self.note_to(user).await
    }

    /// Waits for the next note that only this user sees, and returns it.
    async fn note_to(&self, user: &str) -> Value {
        let mine =
            |call: &Value| call["method"] == "chat.postEphemeral" && call["body"]["user"] == user;
        let before = self.notes_read.borrow().get(user).copied();
        let before = before.unwrap_or_default();
        for _ in 0..2_000 {
            let mut notes = self.got().await.into_iter().filter(mine);
            if let Some(note) = notes.nth(before) {
                let mut read = self.notes_read.borrow_mut();
                read.insert(user.to_owned(), before + 1);
                return note["body"]["text"].clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{user} was told nothing: {:?}", self.got().await);
    }

    async fn got(&self) -> Vec<Value> {
        let reply = reqwest::get(format!("{}/got", self.workspace.url())).await;
        let got = reply.unwrap().text().await.unwrap();
        let got: Vec<Value> = serde_json::from_str(&got).unwrap();
        for call in &got {
            assert_eq!(call["ok"], true, "{call}");
        }
        got
    }

    /// Waits for the response to a press, and returns `true` if it is the form.
    async fn shows_form(&self, before: usize) -> bool {
        for _ in 0..2_000 {
            for call in self.got().await.into_iter().skip(before) {
                let text = call.to_string();
                if call["body"]["view"]["callback_id"] == "answer" {
                    return true;
                }
                if text.contains("not addressed to you")
                    || text.contains("No person in the gateway's file")
                {
                    return false;
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nothing is shown: {:?}", self.got().await);
    }

    async fn row(&self, id: &str) -> Row {
        self.record.find(id).await.unwrap().unwrap()
    }

    async fn audit(&self) -> Vec<Value> {
        let links = audit::read(self.record.store()).await.unwrap();
        let entries = links.iter().map(|link| serde_json::from_str(&link.entry));
        entries.map(Result::unwrap).collect()
    }

    /// Replaces the rules and people.
    fn replace(&self, file: &str) {
        self.teams.replace(Arc::new(Rules::parse(file).unwrap()));
    }
}

fn slack_table(workspace: &Listening, folder: &std::path::Path, answers: bool) -> String {
    let secret = |name: &str| format!("{{ file = \"{}\" }}", folder.join(name).display());
    let signing = if answers {
        format!("signing-secret = {}\n", secret("signing"))
    } else {
        String::new()
    };
    format!(
        "[channels.slack]\ntoken = {}\n{signing}team = \"T0123\"\napi = \"{}/api/\"\ngroups = {{ ops = \"C0456\" }}\n",
        secret("token"),
        workspace.url()
    )
}

fn channels(text: &str, rules: &Rules) -> Arc<OpenChannels> {
    let config = ConfiguredChannels::read(text, rules).unwrap();
    OpenChannels::open(Some(&config), rules).unwrap()
}

async fn serve(app: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let bounds = ConnectionBounds::default();
    tokio::spawn(web::serve(listener, app, bounds, std::future::pending()));
    format!("http://{at}")
}

fn click(user: &str, action: &str, value: &str) -> Value {
    json!({
        "type": "block_actions",
        "team": {"id": "T0123"},
        "user": {"id": user, "team_id": "T0123"},
        "trigger_id": format!("trigger-{user}-{action}-{value}"),
        "container": {"type": "message", "message_ts": "1.1", "channel_id": "C0456"},
        "actions": [{"type": "button", "action_id": action, "block_id": "b", "value": value}],
    })
}

/// Returns the buttons of a message.
fn buttons(call: &Value) -> Vec<&str> {
    let blocks = call["body"]["blocks"].as_array().unwrap();
    let elements = blocks.last().unwrap()["elements"].as_array().unwrap();
    let ids = elements.iter().map(|element| element["action_id"].as_str());
    ids.map(Option::unwrap).collect()
}

fn entry<'a>(audit: &'a [Value], event: &str) -> &'a Value {
    let found = audit.iter().find(|entry| entry["event"] == event);
    found.unwrap_or_else(|| panic!("no {event}: {audit:?}"))
}

#[tokio::test]
async fn a_button_answers_for_a_person_who_is_asked_and_the_message_changes() {
    let Some(rig) = Rig::start(&format!("{PEOPLE}{RULE}")).await else {
        return;
    };
    let id = ask(&rig.record, &rig.teams.rules()).await;
    rig.notifier.round().await.unwrap();
    let got = rig.got().await;
    assert_eq!(
        buttons(got.last().unwrap()),
        ["choose:0", "choose:1", "decline", "open"]
    );
    let said = rig.click("UOPS1", "choose:0", &format!("{id}:0:yes")).await;
    assert_eq!(said, "Saved. Thank you.");
    let row = rig.row(&id).await;
    assert_eq!(row.lifecycle.ended_by(), Some("person:ada"));
    let filled = &row.timeline()[1];
    assert_eq!(filled.through.as_deref(), Some("slack"));
    let audit = rig.audit().await;
    for event in ["filled", "answered"] {
        let entry = entry(&audit, event);
        assert_eq!(entry["by"], "person:ada", "{entry}");
        assert_eq!(entry["channel"], "slack", "{entry}");
    }
    rig.notifier.round().await.unwrap();
    let got = rig.got().await;
    let last = got.last().unwrap();
    assert_eq!(last["method"], "chat.update");
    assert_eq!(buttons(last), ["open"]);
    assert!(last.to_string().contains("Answered by Ada L."), "{last}");
    // The other one comes too late.
    let late = rig.click("UOPS2", "decline", &format!("{id}:0:-")).await;
    assert_eq!(late, "The question has ended.");
}

#[tokio::test]
async fn a_question_that_ends_elsewhere_changes_its_message_and_takes_no_click() {
    let Some(rig) = Rig::start(&format!("{PEOPLE}{RULE}")).await else {
        return;
    };
    let rules = rig.teams.rules();
    let id = ask(&rig.record, &rules).await;
    rig.notifier.round().await.unwrap();
    let by = ActingPerson {
        person: "bob",
        login_age: None,
    };
    let decline = TeamAct::Decline { note: None };
    let acted = rig
        .record
        .act(&id, decline, by, &InFile(rules.people()))
        .await;
    assert!(matches!(acted.unwrap(), Acted::Done(..)));
    let late = rig.click("UOPS1", "choose:0", &format!("{id}:0:yes")).await;
    assert_eq!(late, "The question has ended.");
    rig.notifier.round().await.unwrap();
    let got = rig.got().await;
    let last = got.last().unwrap();
    assert_eq!(last["method"], "chat.update");
    assert!(last.to_string().contains("Declined by bob"), "{last}");
    let audit = rig.audit().await;
    assert!(entry(&audit, "declined")["channel"].is_null());
}

#[tokio::test]
async fn forged_stale_and_replayed_requests_to_the_gateway_do_nothing() {
    let Some(rig) = Rig::start(&format!("{PEOPLE}{RULE}")).await else {
        return;
    };
    let id = ask(&rig.record, &rig.teams.rules()).await;
    let payload = click("UOPS1", "decline", &format!("{id}:0:-"));
    let forged = rig
        .deliver(json!({"payload": payload, "secret": "another secret"}))
        .await;
    assert_eq!(forged[0]["status"], 401, "{forged:?}");
    let stale = rig.deliver(json!({"payload": payload, "age": 301})).await;
    assert_eq!(stale[0]["status"], 401, "{stale:?}");
    // Another process may have handled it before this one served the address.
    let before = rig.deliver(json!({"payload": payload, "age": 120})).await;
    assert_eq!(before[0]["status"], 401, "{before:?}");
    let mut foreign = payload.clone();
    foreign["team"]["id"] = "T9".into();
    let foreign = rig.deliver(json!({"payload": foreign})).await;
    assert_eq!(foreign[0]["status"], 403, "{foreign:?}");
    let long = "x".repeat(256 * 1024);
    let long = rig.deliver(json!({"payload": {"long": long}})).await;
    assert_eq!(long[0]["status"], 413, "{long:?}");
    assert!(rig.row(&id).await.lifecycle.is_open());

    let unsigned = reqwest::Client::new()
        .post(format!("{}/slack/interact", rig.at))
        .body("payload=%7B%7D");
    let unsigned = unsigned.send().await.unwrap();
    assert_eq!(unsigned.status(), 401);
    let next = unsigned.text().await.unwrap();
    assert!(next.contains("compare `signing-secret`"), "{next}");
    let looked = reqwest::get(format!("{}/slack/interact", rig.at)).await;
    let looked = looked.unwrap();
    assert_eq!(
        (looked.status().as_u16(), &looked.headers()["allow"]),
        (405, &"POST".parse().unwrap())
    );
    let next = looked.text().await.unwrap();
    assert!(next.contains("Request URL"), "{next}");

    let twice = rig.deliver(json!({"payload": payload, "times": 2})).await;
    let statuses: Vec<_> = twice.iter().map(|reply| &reply["status"]).collect();
    assert_eq!(statuses, [200, 401]);
    rig.note_to("UOPS1").await;
    let audit = rig.audit().await;
    let declined = audit.iter().filter(|entry| entry["event"] == "declined");
    assert_eq!(declined.count(), 1);
}

#[tokio::test]
async fn a_request_counts_once_whichever_gateway_it_comes_to() {
    let Some(rig) = Rig::start(&format!("{PEOPLE}{RULE}")).await else {
        return;
    };
    let also = [format!("{}/slack/interact", rig.beside().await)];
    let id = ask(&rig.record, &rig.teams.rules()).await;
    let payload = click("UOPS1", "decline", &format!("{id}:0:-"));
    let replies = rig.deliver(json!({"payload": payload, "also": also})).await;
    let statuses: Vec<_> = replies.iter().map(|reply| &reply["status"]).collect();
    assert_eq!(statuses, [200, 401]);
    let mut other = payload.clone();
    other["actions"][0]["action_ts"] = "2".into();
    let other = rig.deliver(json!({"payload": other, "to": also[0]})).await;
    assert_eq!(other[0]["status"], 200, "the other one serves too");
}

#[tokio::test]
async fn only_people_who_are_asked_act_in_slack_and_each_refusal_is_in_the_audit() {
    let file = format!("{PEOPLE}{RULE}");
    let Some(rig) = Rig::start(&file).await else {
        return;
    };
    let id = ask(&rig.record, &rig.teams.rules()).await;
    let value = format!("{id}:0:yes");
    // People of the file who are not asked, an administrator among them.
    for user in ["UEVE", "UZOE"] {
        let said = rig.click(user, "choose:0", &value).await;
        assert_eq!(said, "This question is not addressed to you.");
    }
    // Not a full member of the workspace.
    let guest = rig.click("UGUEST", "choose:0", &value).await;
    assert!(guest.as_str().unwrap().contains("full members"), "{guest}");
    // Bob leaves the group after he was asked, and ada is taken out of the file.
    rig.replace(&file.replace("[\"ada\", \"bob\"]", "[\"ada\"]"));
    let bob = rig.click("UOPS2", "choose:0", &value).await;
    assert_eq!(
        bob,
        "This question was addressed to a group that you have left."
    );
    rig.replace(&file.replace("ops1@example.com", "ada@example.com"));
    let ada = rig.click("UOPS1", "choose:0", &value).await;
    assert!(
        ada.as_str()
            .unwrap()
            .contains("No person in the gateway's file"),
        "{ada}"
    );
    rig.replace(&file);
    // An old version, and a question that does not exist.
    let old = rig.click("UOPS1", "decline", &format!("{id}:7:-")).await;
    assert!(old.as_str().unwrap().contains("have changed"), "{old}");
    let other = rig.click("UOPS1", "decline", "0000:0:-").await;
    assert_eq!(other, "This question is not addressed to you.");
    assert!(rig.row(&id).await.lifecycle.is_open());

    let audit = rig.audit().await;
    let refused = audit.iter().filter(|entry| entry["event"] == "act-refused");
    let refused: Vec<_> = refused
        .map(|entry| {
            assert_eq!(entry["channel"], "slack", "{entry}");
            (
                entry["by"].as_str().unwrap(),
                entry["reason"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        refused,
        [
            ("person:eve", "not-addressed"),
            ("person:zoe", "not-addressed"),
            ("person:bob", "left-group"),
            ("slack:UOPS1", "unknown-person"),
        ]
    );
}

/// The table of roles, cell by cell, in Slack: its buttons do what the table calls an action, and a form shows the
/// question to those who may act on it. Slack offers nothing else.
#[tokio::test]
async fn the_table_of_roles_holds_in_slack() {
    let people = PEOPLE
        .replace(
            "ops = [\"ada\", \"bob\"]",
            "ops = [\"ada\"]\nleads = [\"bob\"]",
        )
        .replace("admin = [\"person:eve\"]", "admin = [\"person:ADMIN\"]");
    let form = json!({"type": "object", "properties": {"why": {"type": "string"}}});
    let mut cells = 0;
    for (column, role) in ROLES.into_iter().enumerate() {
        // `user` has only this role; `admin` is the person with the administrator's role.
        let (user, caller, admin) = match role {
            Role::None => ("UZOE", None, "bob"),
            Role::Caller => ("UZOE", Some("zoe"), "bob"),
            Role::Addressed => ("UOPS1", None, "bob"),
            Role::OtherAnswerer => ("UOPS2", None, "zoe"),
            Role::Auditor => ("UEVE", None, "bob"),
            Role::Admin => ("UOPS2", None, "bob"),
        };
        let people = match role {
            Role::None => people.replace("zoe@example.com", "another@example.com"),
            Role::Admin => people.replace("leads = [\"bob\"]", "leads = [\"zoe\"]"),
            _ => people.clone(),
        };
        let people = people.replace("ADMIN", admin);
        let caller = TeamCaller {
            person: caller.map(str::to_owned),
            ..TeamCaller::default()
        };
        let ask = async |rig: &Rig, schema: &Value| {
            ask_of_call(&rig.record, &rig.teams.rules(), schema, caller.clone()).await
        };
        let Some(rig) = Rig::start(&format!("{people}{RULE}")).await else {
            return;
        };
        for (action, row) in TABLE {
            let allowed = match row[column] {
                // The caller of this rule is not addressed.
                AccessCell::No | AccessCell::IfAddressed => false,
                AccessCell::Own | AccessCell::Yes => true,
            };
            let done = match action {
                AccessAction::Act => {
                    let id = ask(&rig, &json!({"type": "object", "properties": {}})).await;
                    let said = rig.click(user, "decline", &format!("{id}:0:-")).await;
                    let is_over = !rig.row(&id).await.lifecycle.is_open();
                    assert_eq!(is_over, said == "Saved. Thank you.", "{role:?}: {said}");
                    is_over
                }
                AccessAction::SeeQuestion => {
                    let id = ask(&rig, &form).await;
                    let before = rig.got().await.len();
                    let opened = click(user, "review", &format!("{id}:0:-"));
                    rig.deliver(json!({"payload": opened})).await;
                    rig.shows_form(before).await
                }
                AccessAction::SeeOwnHistory
                | AccessAction::SeeEntered
                | AccessAction::Comment
                | AccessAction::ListAll
                | AccessAction::Audit
                | AccessAction::ListSessions
                | AccessAction::EndSessions
                | AccessAction::EndGrant => continue,
            };
            // Slack shows a question only to those who may act on it: the caller reads it in the inbox.
            let allowed = allowed && !(action == AccessAction::SeeQuestion && role == Role::Caller);
            assert_eq!(done, allowed, "{role:?} {action:?}");
            cells += 1;
        }
    }
    assert_eq!(cells, 2 * ROLES.len());
}

#[tokio::test]
async fn those_who_may_not_log_in_do_not_act_in_slack_either() {
    let bob = vec![Addressee::Person("bob".to_owned())];
    let Some(rig) = Rig::start_for(&format!("{PEOPLE}{RULE}"), bob).await else {
        return;
    };
    let id = ask(&rig.record, &rig.teams.rules()).await;
    let value = format!("{id}:0:yes");
    let ada = rig.click("UOPS1", "choose:0", &value).await;
    assert!(
        ada.as_str()
            .unwrap()
            .contains("No person in the gateway's file"),
        "{ada}"
    );
    let bob = rig.click("UOPS2", "choose:0", &value).await;
    assert_eq!(bob, "Saved. Thank you.");
}

#[tokio::test]
async fn the_caller_does_not_answer_in_slack_where_the_rule_excludes_callers() {
    let others = RULE.replace("\" }\n", "\", not-caller = true }\n");
    let Some(rig) = Rig::start(&format!("{PEOPLE}{others}")).await else {
        return;
    };
    let caller = TeamCaller {
        person: Some("ada".to_owned()),
        ..TeamCaller::default()
    };
    let schema = json!({"type": "object", "properties": {"go": {"type": "boolean"}}});
    let id = ask_of_call(&rig.record, &rig.teams.rules(), &schema, caller).await;
    let value = format!("{id}:0:yes");
    let ada = rig.click("UOPS1", "choose:0", &value).await;
    assert_eq!(ada, "You make this call, so others have to answer.");
    let bob = rig.click("UOPS2", "choose:0", &value).await;
    assert_eq!(bob, "Saved. Thank you.");
}

#[tokio::test]
async fn a_claim_counts_in_slack_from_a_login_until_it_is_stale() {
    let claim = PEOPLE.replace("[\"ada\", \"bob\"]", "{ claim = \"ops\" }");
    let Some(rig) = Rig::start(&format!("{claim}{RULE}")).await else {
        return;
    };
    let rules = rig.teams.rules();
    let id = ask(&rig.record, &rules).await;
    let value = format!("{id}:0:yes");
    let ada = rig.click("UOPS1", "choose:0", &value).await;
    assert_eq!(ada, "This question is not addressed to you.");
    let log_in = |mail: &str, ago: Duration| {
        let identity = LoginIdentity {
            issuer: "https://id.example.com".to_owned(),
            subject: mail.to_owned(),
            name: mail.to_owned(),
            mail: Some(mail.to_owned()),
            claims: vec!["ops".to_owned()],
            ..LoginIdentity::default()
        };
        let admission = LoginAdmission {
            people: rules.people(),
            allow: &[],
            lifetimes: Lifetimes {
                idle: STALE * 3,
                max: STALE * 3,
            },
        };
        let ago = u64::try_from(ago.as_millis()).unwrap();
        let at = Timestamp::from_millis(clock::now().as_millis() - ago);
        let folder = StateFolder::at(&rig.folder.path().join("state"));
        let made = folder
            .logins()
            .log_in(&identity, admission, None, "a test", at);
        assert!(made.is_ok());
    };
    log_in("ops2@example.com", STALE * 2);
    let bob = rig.click("UOPS2", "choose:0", &value).await;
    assert_eq!(bob, "This question is not addressed to you.");
    log_in("ops1@example.com", Duration::ZERO);
    let ada = rig.click("UOPS1", "choose:0", &value).await;
    assert_eq!(ada, "Saved. Thank you.");
}

#[tokio::test]
async fn what_needs_a_page_is_not_answered_in_slack() {
    let reauth = RULE.replace("\" }\n", "\" }\nreauth = \"10m\"\n");
    let minimal = RULE.replace("\" }\n", "\" }\nreveal = \"minimal\"\n");
    let plain = json!({"type": "object", "properties": {"go": {"type": "boolean"}}});
    let password = json!({"type": "object", "properties": {"password": {"type": "string"}}});
    let none: &[&str] = &[];
    for (rule, schema, others, is_page_only) in [
        (&*reauth, &plain, none, false),
        (&*minimal, &plain, none, false),
        (RULE, &password, none, false),
        (RULE, &plain, &["delete_app"], false),
        (RULE, &plain, none, true),
    ] {
        let Some(rig) = Rig::start(&format!("{PEOPLE}{rule}")).await else {
            return;
        };
        rig.pages_only.store(is_page_only, Ordering::Relaxed);
        let (rules, caller) = (rig.teams.rules(), TeamCaller::default());
        let id = ask_beside(&rig.record, &rules, schema, caller, others).await;
        rig.notifier.round().await.unwrap();
        let got = rig.got().await;
        assert_eq!(buttons(got.last().unwrap()), ["open"], "{rule}");
        // Buttons of an older message.
        for (action, word) in [("choose:0", "yes"), ("decline", "-")] {
            let said = rig.click("UOPS1", action, &format!("{id}:0:{word}")).await;
            assert_eq!(
                said, "This question can only be answered in the inbox.",
                "{rule} {action}"
            );
        }
        assert!(rig.row(&id).await.lifecycle.is_open());
    }
}

#[tokio::test]
async fn two_people_agree_one_in_slack_and_one_on_the_page() {
    let need = RULE.replace("\" }\n", "\", need = 2 }\n");
    let Some(rig) = Rig::start(&format!("{PEOPLE}{need}")).await else {
        return;
    };
    let rules = rig.teams.rules();
    let id = ask(&rig.record, &rules).await;
    let said = rig.click("UOPS1", "choose:0", &format!("{id}:0:yes")).await;
    assert_eq!(said, "Saved. More people must agree.");
    // Another person's answers are confirmed on the page, which shows them.
    let bob = rig.click("UOPS2", "choose:1", &format!("{id}:0:no")).await;
    assert_eq!(bob, "This question can only be answered in the inbox.");
    let row = rig.row(&id).await;
    let digest = rig.record.entered(&row).unwrap().unwrap().digest;
    let by = ActingPerson {
        person: "bob",
        login_age: None,
    };
    let confirm = TeamAct::Confirm { digest };
    let acted = rig
        .record
        .act(&id, confirm, by, &InFile(rules.people()))
        .await;
    assert!(matches!(acted.unwrap(), Acted::Done(..)));
    let ended = rig.row(&id).await;
    assert_eq!(ended.lifecycle.ended_by(), Some("person:ada, person:bob"));
}

#[tokio::test]
async fn two_people_agree_in_slack_where_nothing_is_entered() {
    let need = RULE.replace("\" }\n", "\", need = 2 }\n");
    let Some(rig) = Rig::start(&format!("{PEOPLE}{need}")).await else {
        return;
    };
    let schema = json!({"type": "object", "properties": {}});
    let confirmation = async || ask_form(&rig.record, &rig.teams.rules(), &schema).await;
    let id = confirmation().await;
    let click = async |user: &str, action: &str, id: &str, version: u32, word: &str| {
        rig.click(user, action, &format!("{id}:{version}:{word}"))
            .await
    };
    let ada = click("UOPS1", "choose:0", &id, 0, "ok").await;
    assert_eq!(ada, "Saved. More people must agree.");
    rig.notifier.round().await.unwrap();
    let got = rig.got().await;
    assert_eq!(
        buttons(got.last().unwrap()),
        ["choose:0", "decline", "open"]
    );
    let words = ": Ada L. agreed. 1 more person must agree.";
    assert!(got.last().unwrap().to_string().contains(words), "{got:?}");
    // One person has one vote, on any message.
    for version in [0, 1] {
        let again = click("UOPS1", "choose:0", &id, version, "ok").await;
        assert_eq!(again, "You have agreed already. Others have to agree, too.");
    }
    assert!(rig.row(&id).await.lifecycle.is_open());
    let bob = click("UOPS2", "choose:0", &id, 0, "ok").await;
    assert_eq!(bob, "Saved. Thank you.");
    let ended = rig.row(&id).await;
    assert_eq!(ended.lifecycle.ended_by(), Some("person:ada, person:bob"));

    // The other one may decline, too.
    let id = confirmation().await;
    click("UOPS1", "choose:0", &id, 0, "ok").await;
    let bob = click("UOPS2", "decline", &id, 0, "-").await;
    assert_eq!(bob, "Saved. Thank you.");
    assert_eq!(rig.row(&id).await.lifecycle.ended_by(), Some("person:bob"));
}

#[tokio::test]
async fn while_slack_takes_no_more_messages_it_gets_none() {
    let file = format!("{PEOPLE}{RULE}");
    let Some(rig) = Rig::start(&file).await else {
        return;
    };
    let rules = rig.teams.rules();
    let table = slack_table(&rig.workspace, rig.folder.path(), false);
    let busy = format!("{file}{table}").replace("C0456", "CBUSY");
    rig.notifier.replace(channels(&busy, &rules));
    let refused = async || -> usize {
        let reply = reqwest::get(format!("{}/refused", rig.workspace.url())).await;
        reply.unwrap().text().await.unwrap().parse().unwrap()
    };
    // The first requests are all open at once.
    for _ in 0..40 {
        ask(&rig.record, &rules).await;
    }
    rig.notifier.round().await.unwrap();
    let first = refused().await;
    assert!((1..=16).contains(&first), "{first}");
    let id = ask(&rig.record, &rules).await;
    rig.notifier.round().await.unwrap();
    assert_eq!(refused().await, first);
    let waiting = rig.record.messages_of(&id).await.unwrap();
    assert_eq!(waiting[0].why.as_deref(), Some("too-many"), "{waiting:?}");
}

#[tokio::test]
async fn without_a_signing_secret_messages_link_and_the_address_does_not_exist() {
    let file = format!("{PEOPLE}{RULE}");
    let Some(rig) = Rig::start(&file).await else {
        return;
    };
    let rules = rig.teams.rules();
    let table = slack_table(&rig.workspace, rig.folder.path(), false);
    rig.notifier
        .replace(channels(&format!("{file}{table}"), &rules));
    let id = ask(&rig.record, &rules).await;
    rig.notifier.round().await.unwrap();
    let got = rig.got().await;
    assert_eq!(buttons(got.last().unwrap()), ["open"]);
    let payload = click("UOPS1", "decline", &format!("{id}:0:-"));
    let replies = rig.deliver(json!({"payload": payload})).await;
    assert_eq!(replies[0]["status"], 404, "{replies:?}");
    // Without Slack there is no address either.
    let none = OpenChannels::open(None, &rules).unwrap();
    rig.notifier.replace(none);
    let replies = rig.deliver(json!({"payload": payload})).await;
    assert_eq!(replies[0]["status"], 404, "{replies:?}");
}
