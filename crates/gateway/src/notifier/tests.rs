//! Questions of rules, sent to a mail server and to a receiver of webhooks that verifies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::{AskedVia, NewQuestion};
use mcp_elicit_core::wire::ElicitRequest;
use mcp_elicit_inbox::login::directory::Directory;
use mcp_elicit_inbox::login::table::{Lifetimes, LoginAdmission, LoginIdentity};
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_policy::identity::Identity;
use mcp_elicit_policy::quorum::{ActingPerson, Membership};
use mcp_elicit_policy::rules::Decision;
use mcp_elicit_policy::{People, Rules};
use mcp_elicit_record::store::Memory;
use mcp_elicit_record::team::{Acted, Team, TeamAct, TeamCaller, mail_digest};
use mcp_elicit_record::{
    Durability, IdentityKey, LockFile, OwnKeys, Record, ServerIdentity, SessionIdentity,
    SessionKey, audit, clock,
};
use mcp_elicit_testkit::peers::{self, Listening};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Notifier, OpenChannels};
use crate::config::ConfiguredChannels;
use crate::current_rules::CurrentRules;

const WEBHOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The membership in the file.
pub(super) struct InFile<'a>(pub(super) &'a People);

impl Membership for InFile<'_> {
    fn is_member(&self, group: &str, person: &str) -> bool {
        self.0.is_member(group, person, &[])
    }

    fn is_caller(&self, _: &str) -> bool {
        false
    }

    fn identity(&self, person: &str) -> Identity {
        let entry = self.0.people.get(person);
        let mail = entry.and_then(|entry| entry.mail.as_deref());
        mail.map_or_else(Identity::default, |mail| {
            Identity::default().with_mail(&mail_digest(mail))
        })
    }
}

pub(super) struct Rig {
    mail: Listening,
    hook: Listening,
    folder: tempfile::TempDir,
}

impl Rig {
    pub(super) fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let mail = peers::channel_script("mail.py")?;
        let mail = mail.env("MODE", "plain").env("MAILS", path("mails"));
        let hook = peers::channel_script("webhook.py")?;
        std::fs::write(folder.path().join("secret"), WEBHOOK_SECRET).unwrap();
        Some(Self {
            mail: mail.listen(),
            hook: hook.env("SECRETS", WEBHOOK_SECRET).listen(),
            folder,
        })
    }

    pub(super) fn file(&self) -> String {
        let secret = self.folder.path().join("secret");
        let (mail, hook, secret) = (self.mail.url(), self.hook.url(), secret.display());
        let gone = peers::free_port();
        format!(
            r#"
[people.ada]
mail = "ada@example.com"
[people.bob]
mail = "status-550@example.com"
[groups]
ops = ["ada", "bob"]
[[rules]]
name = "ops decide"
ask = {{ group = "ops" }}
[channels.mail]
smtp = "{mail}"
from = "gateway@example.com"
[channels.webhook.siem]
url = "{hook}/in"
allow-private = true
secret = {{ file = "{secret}" }}
[channels.webhook.down]
url = "http://127.0.0.1:{gone}/in"
allow-private = true
secret = {{ file = "{secret}" }}
events = ["question.asked"]
"#
        )
    }

    pub(super) fn mail_server(&self) -> &str {
        self.mail.url()
    }

    pub(super) fn mails(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("mails"));
        let text = text.unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    async fn hooks(&self) -> Vec<Value> {
        let reply = reqwest::get(format!("{}/got", self.hook.url()))
            .await
            .unwrap();
        serde_json::from_str(&reply.text().await.unwrap()).unwrap()
    }
}

pub(super) fn record() -> Arc<Record> {
    record_at(clock::now)
}

/// Creates a record in memory, with this clock.
pub(super) fn record_at(clock: fn() -> Timestamp) -> Arc<Record> {
    let store = Arc::new(Memory::default());
    let lock = LockFile::unshared().unwrap();
    Arc::new(Record::new(store, OwnKeys::random().unwrap(), lock, clock))
}

pub(super) async fn ask(record: &Arc<Record>, rules: &Rules) -> String {
    let schema = json!({"type": "object", "properties": {"go": {"type": "boolean"}}});
    ask_form(record, rules, &schema).await
}

/// Asks by the first rule of the file. Returns the question's id.
pub(super) async fn ask_form(record: &Arc<Record>, rules: &Rules, schema: &Value) -> String {
    ask_of_call(record, rules, schema, TeamCaller::default()).await
}

/// The same for a call of this caller.
pub(super) async fn ask_of_call(
    record: &Arc<Record>,
    rules: &Rules,
    schema: &Value,
    caller: TeamCaller,
) -> String {
    ask_beside(record, rules, schema, caller, &[]).await
}

/// The same where the question may be for these calls, too.
pub(super) async fn ask_beside(
    record: &Arc<Record>,
    rules: &Rules,
    schema: &Value,
    caller: TeamCaller,
    others: &[&str],
) -> String {
    let Decision::Ask(plan) = rules.rules()[0].decision() else {
        unreachable!("the rule asks")
    };
    let asked = rules.people().named(&plan.ask.to);
    let usual = Duration::from_secs(60 * 60);
    let team = Team::new("ops decide", "d", caller, plan, asked, usual);
    let question = NewQuestion {
        call: None,
        others: others.iter().copied().map(str::to_owned).collect(),
        candidates: Vec::new(),
        request: ElicitRequest::form("Deploy <b>now</b>?", schema),
        form: Form::from_value(schema).ok().map(Arc::new),
        fields: vec!["go".to_owned()],
        warnings: Vec::new(),
        via: AskedVia::People,
        server_info: None,
        client_info: None,
        until: record.now().after(plan.deadline.unwrap_or(usual)),
        outlives: true,
        team: Some(team.to_plan().unwrap()),
        trace: None,
        task: None,
    };
    let identity = SessionIdentity {
        server: ServerIdentity {
            name: "deploy".to_owned(),
            is_named: true,
            address: "deploy".to_owned(),
            key: "deploy".to_owned(),
        },
        caller: "local".to_owned(),
    };
    let (tell, _told) = mpsc::unbounded_channel();
    let made = record.create(
        &identity,
        &question,
        SessionKey(1),
        &tell,
        Durability::BeforeSeen,
    );
    made.await.unwrap().id
}

async fn states(record: &Record, id: &str) -> BTreeMap<(String, String), (String, String)> {
    let messages = record.messages_of(id).await.unwrap();
    let shown = messages.into_iter().map(|message| {
        let to = message.person.unwrap_or_default();
        let key = (format!("{} {to}", message.channel), message.event);
        let why = message.why.unwrap_or_default();
        (key, (message.state.as_str().to_owned(), why))
    });
    shown.collect()
}

pub(super) fn notifier(record: &Arc<Record>, text: &str) -> (Arc<Notifier>, Arc<Rules>) {
    notifier_over(record, text, "/nonexistent".as_ref())
}

/// The same with the logins of this state folder.
fn notifier_over(
    record: &Arc<Record>,
    text: &str,
    folder: &std::path::Path,
) -> (Arc<Notifier>, Arc<Rules>) {
    let rules = Arc::new(Rules::parse(text).unwrap());
    let (teams, _events) =
        CurrentRules::without_logins(rules.clone(), IdentityKey::random().unwrap());
    let config = ConfiguredChannels::read(text, &rules).unwrap();
    let open = OpenChannels::open(Some(&config), &rules).unwrap();
    let links = Arc::new(|id: &str| Some(format!("https://ask.example.com/q/{id}")));
    let current = teams.clone();
    let now = Arc::new(move || current.rules());
    let logins = Arc::new(StateFolder::at(folder).logins());
    let hour = Duration::from_secs(60 * 60);
    let directory = Directory::new(now, logins, String::new(), hour, clock::now);
    let pages_only = Arc::new(|| false);
    let notifier = Notifier::new(
        record.clone(),
        teams,
        open,
        links,
        pages_only,
        directory,
        None,
    );
    (notifier, rules)
}

#[tokio::test]
async fn who_has_no_address_on_any_channel_is_named_in_the_record() {
    let Some(rig) = Rig::start() else { return };
    let record = record();
    let text = rig.file().replace(
        "[groups]\nops = [\"ada\", \"bob\"]",
        "[people.eve]\nsubject = \"1\"\n[groups]\nops = [\"ada\", \"eve\"]",
    );
    let (notifier, rules) = notifier(&record, &text);
    let without: Vec<_> = notifier
        .open()
        .without_address(&rules)
        .into_iter()
        .collect();
    assert_eq!(without, ["eve"]);
    let id = ask(&record, &rules).await;
    notifier.round().await.unwrap();
    let told = states(&record, &id).await;
    let of = |channel: &str| {
        let found = told.get(&(channel.to_owned(), "question.asked".to_owned()));
        found.map(|(state, why)| (state.as_str(), why.as_str()))
    };
    assert_eq!(of("mail ada"), Some(("sent", "")));
    assert_eq!(of("none eve"), Some(("failed", "no-address")));
    assert_eq!(of("none ada"), None);
    let links = audit::read(record.store()).await.unwrap();
    let failed = links.iter().find(|link| link.entry.contains("no-address"));
    let failed = &failed.unwrap().entry;
    assert!(
        failed.contains("notification-failed") && failed.contains(r#""to":"person:eve""#),
        "{failed}"
    );
    // If only programs are notified, no person has an address.
    let only_programs: String = {
        let (before, rest) = text.split_once("[channels.mail]").unwrap();
        let (_, after) = rest.split_once("[channels.webhook.siem]").unwrap();
        format!("{before}[channels.webhook.siem]{after}")
    };
    let (programs, rules) = self::notifier(&record, &only_programs);
    assert!(programs.open().without_address(&rules).is_empty());
    let id = ask(&record, &rules).await;
    programs.round().await.unwrap();
    let told = states(&record, &id).await;
    assert!(
        told.keys().all(|(to, _)| to.starts_with("webhook")),
        "{told:?}"
    );
}

#[tokio::test]
async fn members_of_a_group_by_a_claim_are_told_once_they_have_logged_in_and_before_that_it_is_said()
 {
    let Some(rig) = Rig::start() else { return };
    let text = rig.file().replace(
        "[groups]\nops = [\"ada\", \"bob\"]",
        "[people.cy]\nmail = \"cy@example.com\"\n[groups]\nops = { claim = \"ops-team\" }",
    );
    let folder = tempfile::tempdir().unwrap();
    let record = record();
    let (notifier, rules) = notifier_over(&record, &text, folder.path());
    let people = || {
        notifier
            .summaries
            .people_now()
            .people_with_members()
            .into_owned()
    };
    let untold = |people: &People| notifier.open().groups_without_members(&rules, people);
    assert_eq!(untold(&people()).into_iter().collect::<Vec<_>>(), ["ops"]);
    let id = ask(&record, &rules).await;
    notifier.round().await.unwrap();
    let told = states(&record, &id).await;
    let of = |told: &BTreeMap<(String, String), (String, String)>, channel: &str| {
        let found = told.get(&(channel.to_owned(), "question.asked".to_owned()));
        found.map(|(state, why)| format!("{state} {why}"))
    };
    assert_eq!(
        of(&told, "none ").as_deref(),
        Some("failed no-address"),
        "{told:?}"
    );
    let identity = LoginIdentity {
        issuer: "https://id.example.com".to_owned(),
        subject: "s-1".to_owned(),
        name: "Cy".to_owned(),
        mail: Some("cy@example.com".to_owned()),
        claims: vec!["ops-team".to_owned()],
        sid: None,
        auth_at: None,
    };
    let hour = Duration::from_secs(60 * 60);
    let lifetimes = Lifetimes {
        idle: hour,
        max: hour,
    };
    let admission = LoginAdmission {
        people: rules.people(),
        allow: &[],
        lifetimes,
    };
    let logins = StateFolder::at(folder.path()).logins();
    let login = logins.log_in(&identity, admission, None, "a test", clock::now());
    login.unwrap();
    assert!(untold(&people()).is_empty());
    let id = ask(&record, &rules).await;
    notifier.round().await.unwrap();
    let told = states(&record, &id).await;
    assert_eq!(of(&told, "mail cy").as_deref(), Some("sent "), "{told:?}");
    assert!(of(&told, "none ").is_none(), "{told:?}");
}

#[tokio::test]
async fn a_channel_that_does_not_reply_holds_up_no_message_of_the_others() {
    let Some(rig) = Rig::start() else { return };
    let record = record();
    // It accepts connections, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    let secret = rig.folder.path().join("secret");
    let text = format!(
        "{}[channels.webhook.silent]\nurl = \"http://{at}/in\"\nallow-private = true\nsecret = {{ file = \"{}\" }}\n",
        rig.file(),
        secret.display()
    );
    let (notifier, rules) = notifier(&record, &text);
    notifier.start();
    let told = async |count: usize| {
        for _ in 0..100 {
            if rig.hooks().await.len() == count && rig.mails().len() == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("not {count} message(s) to each within 5 s");
    };
    for count in 1..=3 {
        ask(&record, &rules).await;
        told(count).await;
    }
}

#[tokio::test]
async fn people_and_programs_are_told_and_a_channel_that_fails_holds_up_nothing() {
    let Some(rig) = Rig::start() else { return };
    let record = record();
    let (notifier, rules) = notifier(&record, &rig.file());
    let id = ask(&record, &rules).await;
    notifier.round().await.unwrap();
    notifier.round().await.unwrap();

    let told = states(&record, &id).await;
    let of = |channel: &str, event: &str| {
        let found = told.get(&(channel.to_owned(), event.to_owned()));
        found.map(|(state, why)| (state.as_str(), why.as_str()))
    };
    assert_eq!(of("mail ada", "question.asked"), Some(("sent", "")));
    assert_eq!(
        of("mail bob", "question.asked"),
        Some(("failed", "refused"))
    );
    assert_eq!(of("webhook.siem ", "question.asked"), Some(("sent", "")));
    let down = of("webhook.down ", "question.asked").unwrap();
    assert_eq!(down, ("due", "unreachable"));
    let mails = rig.mails();
    assert_eq!(mails.len(), 1, "once, however many rounds there are");
    let text = mails[0]["text"].as_str().unwrap();
    assert!(text.contains("decision needed by"), "{text}");
    assert!(
        text.contains(&format!("https://ask.example.com/q/{id}")),
        "{text}"
    );
    assert!(text.contains("&lt;b&gt;now"), "escaped in HTML: {text}");
    let failed = record.failed_messages(10).await.unwrap();
    assert_eq!(failed.len(), 1);

    // The question continues in the meantime.
    let by = ActingPerson {
        person: "ada",
        login_age: None,
    };
    let decline = TeamAct::Decline { note: None };
    let people = InFile(rules.people());
    let acted = record.act(&id, decline, by, &people).await.unwrap();
    assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
    notifier.round().await.unwrap();
    let hooks = rig.hooks().await;
    let types: Vec<_> = hooks
        .iter()
        .map(|hook| hook["body"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["question.asked", "question.declined"]);
    assert_eq!(hooks[1]["body"]["data"]["by"], "ada");
    let mails = rig.mails();
    let subjects: Vec<_> = mails
        .iter()
        .map(|mail| mail["text"].as_str().unwrap())
        .collect();
    assert!(
        subjects[1].contains("Subject: [gateway] deploy: declined"),
        "{subjects:?}"
    );
    assert_eq!(
        mails.len(),
        2,
        "bob was not asked by mail, so he is told of no end"
    );

    let links = audit::read(record.store()).await.unwrap();
    let words: BTreeSet<_> = links
        .iter()
        .map(|link| serde_json::from_str::<Value>(&link.entry).unwrap()["event"].to_string())
        .collect();
    for word in ["\"notified\"", "\"notification-failed\""] {
        assert!(words.contains(word), "{words:?}");
    }
}

/// Returns quiet hours of all day but one minute, which is half a day away.
pub(super) fn quiet_now() -> String {
    let now = jiff::Timestamp::from_millisecond(i64::try_from(clock::now().as_millis()).unwrap());
    let time = now.unwrap().to_zoned(jiff::tz::TimeZone::UTC).time();
    let text = |time: jiff::civil::Time| time.strftime("%H:%M").to_string();
    let from = time.wrapping_sub(jiff::Span::new().hours(12));
    let to = from.wrapping_sub(jiff::Span::new().minutes(1));
    format!("{}-{}", text(from), text(to))
}

#[tokio::test]
async fn quiet_hours_delay_and_an_end_before_them_makes_a_message_needless() {
    let Some(rig) = Rig::start() else { return };
    let quiet = quiet_now();
    let file = rig.file().replace(
        "mail = \"ada@example.com\"\n",
        &format!("mail = \"ada@example.com\"\nquiet = \"{quiet}\"\n"),
    );
    let record = record();
    let (notifier, rules) = notifier(&record, &file);
    let id = ask(&record, &rules).await;
    notifier.round().await.unwrap();
    assert!(rig.mails().is_empty());
    let waits = record.messages_of(&id).await.unwrap();
    let waits = waits
        .iter()
        .find(|one| one.person.as_deref() == Some("ada"));
    let waits = waits.unwrap();
    assert!(
        waits.due_at > record.now() && waits.attempts == 0,
        "{waits:?}"
    );

    // A wrong secret, a missing file: the gateway does not start.
    std::fs::write(rig.folder.path().join("secret"), "whsec_short").unwrap();
    assert!(open(&file).is_err());
    std::fs::remove_file(rig.folder.path().join("secret")).unwrap();
    let error = open(&file).unwrap_err();
    assert!(error.contains("[channels.webhook."), "{error}");
}

fn open(text: &str) -> Result<(), String> {
    let rules = Rules::parse(text).unwrap();
    let config = ConfiguredChannels::read(text, &rules).unwrap();
    let opened = OpenChannels::open(Some(&config), &rules);
    opened.map(|_| ()).map_err(|error| error.to_string())
}
