//! Reminders, escalations, collections and the hourly limit, with a real mail server and a clock that the tests
//! advance.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_policy::quorum::ActingPerson;
use mcp_elicit_policy::{Addressee, Rules};
use mcp_elicit_record::team::{Acted, TeamAct, TeamCaller};
use mcp_elicit_record::{Record, clock};
use serde_json::json;

use super::Notifier;
use super::tests::{InFile, Rig, ask, ask_of_call, notifier, quiet_now, record_at};

/// The time by which each test's clock is ahead, in milliseconds.
static AHEAD: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];

/// The rule of a question that Ada has to answer within three hours.
const ASK: &str = "ask = { person = \"ada\" }\ndeadline = \"3h\"";

fn now<const TEST: usize>() -> Timestamp {
    let ahead = AHEAD[TEST].load(Ordering::SeqCst);
    clock::now().after(Duration::from_millis(ahead))
}

/// A gateway's record and notifier, with the clock of one test.
struct Gateway<const TEST: usize> {
    rig: Rig,
    record: Arc<Record>,
    notifier: Arc<Notifier>,
    rules: Arc<Rules>,
}

impl<const TEST: usize> Gateway<TEST> {
    /// Starts a gateway. `rest` is added to the table of Ada.
    fn start(rest: &str, rule: &str, groups: &str) -> Option<Self> {
        let rig = Rig::start()?;
        let record = record_at(now::<TEST>);
        let text = format!(
            r#"
[people.ada]
mail = "ada@example.com"
{rest}
[people.cy]
mail = "cy@example.com"
{groups}
[[rules]]
name = "ops decide"
{rule}
[channels.mail]
smtp = "{}"
from = "gateway@example.com"
"#,
            rig.mail_server()
        );
        let (notifier, rules) = notifier(&record, &text);
        Some(Self {
            rig,
            record,
            notifier,
            rules,
        })
    }

    async fn ask(&self) -> String {
        let id = ask(&self.record, &self.rules).await;
        self.notifier.round().await.unwrap();
        id
    }

    /// Delegates the question from one person to another.
    async fn hand_on(&self, id: &str, from: &str, to: &str) {
        let to = Addressee::Person(to.to_owned());
        let act = TeamAct::Delegate { to, note: "yours" };
        let people = InFile(self.rules.people());
        let by = ActingPerson {
            person: from,
            login_age: None,
        };
        let acted = self.record.act(id, act, by, &people).await.unwrap();
        assert!(matches!(acted, Acted::Done(..)), "{acted:?}");
        self.notifier.round().await.unwrap();
    }

    /// Advances the clock, and does the work that is due then.
    async fn later(&self, minutes: u64) {
        let later = Duration::from_secs(minutes * 60).as_millis();
        AHEAD[TEST].fetch_add(u64::try_from(later).unwrap(), Ordering::SeqCst);
        self.record.sweep().await.unwrap();
        self.notifier.round().await.unwrap();
    }

    /// Returns the recipient and the subject of every mail so far.
    fn mails(&self) -> Vec<(String, String)> {
        let mails = self.rig.mails();
        let told = mails.iter().map(|mail| {
            let text = mail["text"].as_str().unwrap();
            let line = |name: &str| {
                let mut lines = text.lines();
                let found = lines.find_map(|line| line.strip_prefix(name));
                found.unwrap_or_else(|| panic!("{name} {text}")).to_owned()
            };
            (line("To: "), line("Subject: "))
        });
        told.collect()
    }
}

#[tokio::test]
async fn people_are_reminded_then_others_are_asked_too_and_all_are_told_of_the_end() {
    // Cy always has quiet hours: an escalation does not wait.
    let rule = "ask = { person = \"ada\" }\ndeadline = \"30m\"\nremind = [\"10m\"]\n\
                escalate = [{ after = \"15m\", to = { group = \"leads\" } }]";
    let quiet = quiet_now();
    let groups = format!("quiet = \"{quiet}\"\n[groups]\nleads = [\"cy\"]");
    let Some(gateway) = Gateway::<0>::start("", rule, &groups) else {
        return;
    };
    let word = |told: &[(String, String)]| {
        let last = told.last().unwrap();
        let subject = last.1.strip_prefix("[gateway] deploy: ").unwrap();
        (
            last.0.clone(),
            subject.split(':').next().unwrap().to_owned(),
        )
    };
    let told = async |minutes: u64, count: usize| {
        gateway.later(minutes).await;
        let told = gateway.mails();
        assert_eq!(told.len(), count, "{minutes}: {told:?}");
        word(&told)
    };
    let mail = |person: &str, word: &str| (format!("{person}@example.com"), word.to_owned());
    gateway.ask().await;
    assert!(word(&gateway.mails()).1.starts_with("decision needed by"));
    told(9, 1).await;
    assert_eq!(told(1, 2).await, mail("ada", "reminder"));
    assert_eq!(told(5, 3).await, mail("cy", "escalated"));
    told(14, 3).await;
    // Ada is notified of the end at once, Cy in the morning.
    assert_eq!(told(1, 4).await, mail("ada", "not answered in time"));
}

#[tokio::test]
async fn more_than_thirty_messages_an_hour_wait_and_come_as_one() {
    let Some(gateway) = Gateway::<1>::start("", ASK, "") else {
        return;
    };
    for _ in 0..35 {
        gateway.ask().await;
    }
    assert_eq!(gateway.mails().len(), 30);
    gateway.later(59).await;
    assert_eq!(gateway.mails().len(), 30);
    gateway.later(2).await;
    let told = gateway.mails();
    assert_eq!(told.len(), 31);
    assert_eq!(told[30].1, "[gateway] 5 questions");
}

#[tokio::test]
async fn a_collection_has_all_of_its_time_in_one_mail() {
    let digest = "digest = \"30m\"";
    let Some(gateway) = Gateway::<2>::start(digest, ASK, "") else {
        return;
    };
    for _ in 0..3 {
        gateway.ask().await;
    }
    assert_eq!(gateway.mails(), []);
    gateway.later(30).await;
    let told = [(
        "ada@example.com".to_owned(),
        "[gateway] 3 questions".to_owned(),
    )];
    assert_eq!(gateway.mails(), told);
    gateway.later(30).await;
    assert_eq!(gateway.mails(), told);
}

#[tokio::test]
async fn who_calls_is_not_told_where_the_caller_cannot_answer() {
    let rule = "ask = { group = \"ops\", not-caller = true }";
    let groups = "[groups]\nops = [\"ada\", \"cy\"]";
    let Some(gateway) = Gateway::<3>::start("", rule, groups) else {
        return;
    };
    let schema = json!({"type": "object", "properties": {"go": {"type": "boolean"}}});
    let caller = TeamCaller {
        person: Some("cy".to_owned()),
        ..TeamCaller::default()
    };
    ask_of_call(&gateway.record, &gateway.rules, &schema, caller).await;
    gateway.notifier.round().await.unwrap();
    let told = gateway.mails();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, "ada@example.com");
}

#[tokio::test]
async fn who_has_handed_a_question_on_is_told_to_act_no_more_until_it_is_handed_back() {
    let rule = "ask = { person = \"ada\" }\ndelegate-to = [\"person:cy\"]\nremind = [\"10m\", \"20m\"]\ndeadline = \"1h\"";
    let Some(gateway) = Gateway::<4>::start("", rule, "") else {
        return;
    };
    let told = || -> Vec<String> {
        let mails = gateway.mails().into_iter();
        let short = |(to, subject): (String, String)| {
            let to = to.split('@').next().unwrap().to_owned();
            let subject = subject.strip_prefix("[gateway] deploy: ").unwrap();
            format!("{to}: {}", subject.split(" by ").next().unwrap())
        };
        mails.map(short).collect()
    };
    let id = gateway.ask().await;
    gateway.hand_on(&id, "ada", "cy").await;
    gateway.later(10).await;
    let asked = "ada: decision needed";
    let handed_on = "cy: handed on to you: decision needed";
    let reminded = "cy: reminder: decision needed";
    assert_eq!(told(), [asked, handed_on, reminded]);
    gateway.hand_on(&id, "cy", "ada").await;
    gateway.later(10).await;
    let back = [
        "ada: handed on to you: decision needed",
        "ada: reminder: decision needed",
    ];
    assert_eq!(told()[3..], back);
}

#[tokio::test]
async fn a_message_that_waits_is_not_sent_to_who_has_handed_the_question_on_meanwhile() {
    let rule = format!("{ASK}\ndelegate-to = [\"person:cy\"]");
    let Some(gateway) = Gateway::<5>::start("digest = \"30m\"", &rule, "") else {
        return;
    };
    let id = gateway.ask().await;
    gateway.hand_on(&id, "ada", "cy").await;
    gateway.later(31).await;
    let told = gateway.mails();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, "cy@example.com");
}
