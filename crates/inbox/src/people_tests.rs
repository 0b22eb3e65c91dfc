//! Several people at one inbox: real pages over HTTP, a proxy that names people, and attackers.

mod access;
mod api;
mod approvals;
mod browser;
mod groups;
#[cfg(feature = "teams")]
mod provider;

use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderName;
use mcp_elicit_core::lifecycle::Phase;
use mcp_elicit_policy::quorum::{ActingPerson, Membership};
use mcp_elicit_policy::rules::{AskedPeople, Plan};
use mcp_elicit_policy::{Addressee, Rules};
use mcp_elicit_record::store::Memory;
use mcp_elicit_record::team::{ActDetails, Acted, Team, TeamAct, TeamCaller};
use mcp_elicit_record::{LockFile, OwnKeys, Record, clock};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};

use crate::Inbox;
use crate::api_tokens::{Scope, TokenOwner};
use crate::login::table::Lifetimes;
use crate::login::{LoginMode, LoginSettings, ProxyLogin, PushOffer, Teams};
use crate::sample;
use crate::state_folder::StateFolder;

const FILE: &str = r#"
[people.ada]
subject = "ada"
[people.bob]
name = "Bob Ross"
subject = "bob"
[people.cy]
subject = "cy"
[people.dan]
subject = "dan"
[people.eve]
subject = "eve"
[people.aud]
subject = "aud"
[groups]
ops = ["ada", "bob", "cy"]
leads = { claim = "leads" }
[roles]
admin = ["person:eve"]
auditor = ["person:aud"]
"#;

/// An inbox behind a proxy at 127.0.0.1, with one question of a rule: two of the group `ops` must agree, and `cy` makes
/// the call.
struct Rig {
    record: Arc<Record>,
    host: String,
    id: String,
    folder: tempfile::TempDir,
    /// The file as it was last loaded.
    rules: Arc<Mutex<Arc<Rules>>>,
    _inbox: Inbox,
}

impl Rig {
    /// Loads another file instead.
    fn read(&self, file: &str) {
        *self.rules.lock().unwrap() = Arc::new(Rules::parse(file).unwrap());
    }
}

fn plan(need: u8) -> Plan {
    Plan {
        ask: AskedPeople {
            to: vec![Addressee::Group("ops".to_owned())],
            need: NonZeroU8::new(need).unwrap(),
            not_caller: true,
            each: Vec::new(),
            is_any: false,
        },
        claim: Some(Duration::from_secs(15 * 60)),
        delegate_to: vec![Addressee::Person("dan".to_owned())],
        ..Plan::caller()
    }
}

async fn rig(need: u8) -> Rig {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    serve(listener, need, proxy()).await
}

fn proxy() -> LoginMode {
    LoginMode::Proxy(ProxyLogin {
        trusts: Arc::new(|from| from == std::net::IpAddr::from(PROXY)),
        issuer: "proxy".to_owned(),
        subject: HeaderName::from_static("x-user"),
        mail: None,
        groups: Some(HeaderName::from_static("x-groups")),
    })
}

async fn serve(listener: TcpListener, need: u8, mode: LoginMode) -> Rig {
    serve_asking_again(listener, need, mode, Duration::from_secs(60 * 60)).await
}

fn record() -> Arc<Record> {
    let lease = LockFile::unshared().unwrap();
    let keys = OwnKeys::random().unwrap();
    Arc::new(Record::new(
        Arc::new(Memory::default()),
        keys,
        lease,
        clock::now,
    ))
}

async fn serve_asking_again(
    listener: TcpListener,
    need: u8,
    mode: LoginMode,
    recheck: Duration,
) -> Rig {
    let record = record();
    let caller = TeamCaller {
        person: Some("cy".to_owned()),
        ..TeamCaller::default()
    };
    let asked = ["ada", "bob", "cy"].map(str::to_owned).to_vec();
    let team = Team::new(
        "deploys",
        "r",
        caller,
        &plan(need),
        asked,
        Duration::from_secs(60 * 60),
    );
    let id = sample::raised_for(&record, Some(team.to_plan().unwrap()))
        .await
        .unwrap();
    inbox_over(listener, record, id, FILE, mode, recheck)
}

/// Returns an inbox for the people of a file, over a record with one question.
fn inbox_over(
    listener: TcpListener,
    record: Arc<Record>,
    id: String,
    file: &str,
    mode: LoginMode,
    recheck: Duration,
) -> Rig {
    let folder = tempfile::tempdir().unwrap();
    let at = listener.local_addr().unwrap();
    let rules = Arc::new(Mutex::new(Arc::new(Rules::parse(file).unwrap())));
    let current = rules.clone();
    let teams = Teams {
        login: LoginSettings {
            mode,
            address: None,
            allow: Vec::new(),
            lifetimes: Lifetimes {
                idle: Duration::from_secs(60 * 60),
                max: Duration::from_secs(2 * 60 * 60),
            },
            recheck,
            stale: Duration::from_secs(60 * 60),
        },
        rules: Arc::new(move || current.lock().unwrap().clone()),
        is_asked_by: Arc::new(|_, _| true),
        push: Some(PushOffer {
            public_key: "BKey".to_owned(),
            check: Arc::new(|keys| {
                let is_fine = keys.endpoint.starts_with("https://push.example.com/");
                is_fine.then_some(()).ok_or_else(|| "Not there.".to_owned())
            }),
        }),
    };
    let state = StateFolder::open(folder.path()).unwrap();
    let inbox = Inbox::serve(
        &record,
        listener,
        &state,
        None,
        Some(&teams),
        None,
        axum::Router::new(),
    )
    .unwrap();
    Rig {
        record,
        host: at.to_string(),
        id,
        folder,
        rules,
        _inbox: inbox,
    }
}

struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    fn cookie(&self) -> Option<String> {
        let cookie = self.header("set-cookie")?;
        Some(cookie.split(';').next()?.to_owned())
    }

    /// Returns the token of the first form.
    fn csrf(&self) -> String {
        let (_, rest) = self.body.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

async fn send(host: &str, from: [u8; 4], head: &str, body: &str) -> Reply {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    let mut stream = socket.connect(host.parse().unwrap()).await.unwrap();
    let length = body.len();
    let text = format!("{head}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    Reply {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

const PROXY: [u8; 4] = [127, 0, 0, 1];

/// A browser behind the proxy.
struct Person<'a> {
    rig: &'a Rig,
    name: &'static str,
    cookie: String,
}

impl<'a> Person<'a> {
    async fn enter(rig: &'a Rig, name: &'static str) -> Self {
        let reply = get(rig, name, "/", "").await;
        assert_eq!(reply.status, 200, "{name}: {}", reply.body);
        let cookie = reply.cookie().unwrap();
        Self { rig, name, cookie }
    }

    async fn get(&self, path: &str) -> Reply {
        get(self.rig, self.name, path, &self.cookie).await
    }

    async fn post(&self, path: &str, form: &str) -> Reply {
        let host = &self.rig.host;
        let origin = format!("http://{host}");
        post(self.rig, self.name, path, &self.cookie, &origin, form).await
    }

    fn question(&self, part: &str) -> String {
        format!("/q/{}{part}", self.rig.id)
    }

    /// Presses a button of the question's page.
    async fn press(&self, act: &str, more: &str) -> Reply {
        let page = self.get(&self.question("")).await;
        assert_eq!(page.status, 200);
        let form = format!("csrf={}&version={}{more}", page.csrf(), version(&page));
        self.post(&self.question(&format!("/{act}")), &form).await
    }

    /// Fills in the form and sends it through the review.
    async fn fill(&self, name: &str) -> Reply {
        self.fill_and_send(name, "").await
    }

    /// The same with more fields in the form.
    async fn fill_and_send(&self, name: &str, more: &str) -> Reply {
        let reviewed = self.press("review", &format!("&f0={name}")).await;
        assert_eq!(
            reviewed.header("location"),
            Some(self.question("/review").as_str())
        );
        let review = self.get(&self.question("/review")).await;
        let (_, rest) = review.body.split_once("name=\"seen\" value=\"").unwrap();
        let seen = rest.split('"').next().unwrap();
        let form = format!(
            "csrf={}&version={}&seen={seen}{more}",
            review.csrf(),
            version(&review)
        );
        self.post(&self.question("/accept"), &form).await
    }
}

fn version(page: &Reply) -> String {
    let found = page.body.split_once("name=\"version\" value=\"");
    found.map_or_else(String::new, |(_, rest)| {
        rest.split('"').next().unwrap().to_owned()
    })
}

async fn get(rig: &Rig, name: &str, path: &str, cookie: &str) -> Reply {
    let host = &rig.host;
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nX-User: {name}\r\nAccept: text/html\r\nCookie: {cookie}\r\n"
    );
    send(host, PROXY, &head, "").await
}

async fn post(rig: &Rig, name: &str, path: &str, cookie: &str, origin: &str, form: &str) -> Reply {
    let host = &rig.host;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nX-User: {name}\r\nCookie: {cookie}\r\nOrigin: {origin}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    );
    send(host, PROXY, &head, form).await
}

/// Returns the entries of the audit for this event.
async fn audited(rig: &Rig, event: &str) -> Vec<String> {
    let all = mcp_elicit_record::audit::read(rig.record.store());
    let is_it = format!("\"{event}\"");
    let all = all.await.unwrap().into_iter().map(|entry| entry.entry);
    all.filter(|entry| entry.contains(&is_it)).collect()
}

async fn phase(rig: &Rig) -> Phase {
    rig.record
        .find(&rig.id)
        .await
        .unwrap()
        .unwrap()
        .lifecycle
        .phase()
}

#[tokio::test]
async fn one_enters_answers_and_another_confirms_exactly_these() {
    let rig = rig(2).await;
    let (ada, bob) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "bob").await,
    );
    for digest in [String::new(), "x".to_owned(), "0".repeat(64)] {
        let early = bob.press("confirm", &format!("&digest={digest}")).await;
        assert_eq!(early.status, 409);
        let told = "Nobody has entered answers yet";
        assert!(early.body.contains(told), "{}", early.body);
    }
    assert_eq!(ada.fill("Moon").await.status, 303);
    assert!(phase(&rig).await.is_open());
    let seen = bob.get(&bob.question("")).await;
    assert!(seen.body.contains("Moon") && seen.body.contains("Confirm exactly these answers"));
    let (_, rest) = seen.body.split_once("name=\"digest\" value=\"").unwrap();
    let digest = rest.split('"').next().unwrap().to_owned();
    // A person who has agreed is told so, and gets the form only on request.
    let waits = ada.get(&ada.question("")).await.body;
    assert!(
        waits.contains("You have agreed. 1 more must agree."),
        "{waits}"
    );
    assert!(
        waits.contains(
            "<details class=\"again\"><summary>Enter other answers, or decline</summary>"
        )
    );
    assert!(!seen.body.contains("<details class=\"again\""));
    // Ada changes her answers: Bob cannot confirm what he has not seen.
    assert_eq!(ada.fill("Mars").await.status, 303);
    let stale = bob.press("confirm", &format!("&digest={digest}")).await;
    assert_eq!(stale.status, 409);
    assert!(stale.body.contains("have changed"), "{}", stale.body);
    let seen = bob.get(&bob.question("")).await;
    let (_, rest) = seen.body.split_once("name=\"digest\" value=\"").unwrap();
    let digest = rest.split('"').next().unwrap().to_owned();
    assert!(seen.body.contains("Mars"));
    // When Bob reviews other answers, one button sends them, and the page shows the effect on the waiting answers.
    assert_eq!(bob.press("review", "&f0=Venus").await.status, 303);
    let review = bob.get(&bob.question("/review")).await.body;
    let (without_dialogs, _) = review.split_once("<dialog").unwrap();
    assert_eq!(
        without_dialogs.matches("class=\"btn main\"").count(),
        1,
        "{review}"
    );
    assert!(!review.contains("name=\"digest\""), "{review}");
    for words in [
        ">Enter these answers instead</button>",
        "Agreement with what ada entered then no longer counts.",
        "One more person must then confirm exactly the same answers.",
    ] {
        assert!(review.contains(words), "{words}: {review}");
    }
    // The person who entered them does not agree twice.
    assert_eq!(
        ada.press("confirm", &format!("&digest={digest}"))
            .await
            .status,
        409
    );
    assert_eq!(
        bob.press("confirm", &format!("&digest={digest}"))
            .await
            .status,
        303
    );
    assert_eq!(phase(&rig).await, Phase::Answered);
    let over = ada.get(&ada.question("")).await;
    assert!(over.body.contains("Answered"), "{}", over.body);
}

#[tokio::test]
async fn who_confirms_sees_every_character_that_was_entered() {
    let rig = rig(2).await;
    let (ada, bob) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "bob").await,
    );
    for (typed, shown) in [
        ("Mo%E2%80%8Eon", "Mo‹U+200E›on"),
        ("Moon%E2%80%8E", "Moon‹U+200E›"),
        ("Mo%C2%A0on", "Mo‹U+00A0›on"),
        ("no+answer", "&#34;no answer&#34;"),
        ("Moon", ">Moon<"),
    ] {
        let reviewed = ada.press("review", &format!("&f0={typed}")).await;
        assert_eq!(reviewed.status, 303, "{typed}");
        let review = ada.get(&ada.question("/review")).await.body;
        assert!(review.contains(shown), "{typed}: {review}");
        assert_eq!(ada.fill(typed).await.status, 303, "{typed}");
        let seen = bob.get(&bob.question("")).await.body;
        assert!(seen.contains(shown), "{typed}: {seen}");
    }
}

#[tokio::test]
async fn claims_delegations_and_comments_are_told_and_a_conflict_keeps_the_draft() {
    let rig = rig(1).await;
    let (ada, bob) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "bob").await,
    );
    assert_eq!(ada.press("claim", "").await.status, 303);
    let seen = bob.get(&bob.question("")).await;
    assert!(seen.body.contains("ada</bdi> has claimed") && seen.body.contains("Take over"));
    let refused = bob.fill("Moon").await;
    assert_eq!(refused.status, 409);
    assert!(refused.body.contains("claimed") && refused.body.contains("is kept"));
    assert!(
        bob.get(&bob.question(""))
            .await
            .body
            .contains("value=\"Moon\""),
        "the draft"
    );
    assert!(
        !ada.get(&ada.question("")).await.body.contains("Moon"),
        "a draft is one's own"
    );
    assert_eq!(
        bob.press("comment", "&text=%3Cb%3Esure%3F").await.status,
        303
    );
    let added = ada.get(&format!("{}?did=comment", ada.question(""))).await;
    assert!(added.body.contains("autofocus>Your comment was added."));
    let seen = ada.get(&ada.question("")).await;
    assert!(!seen.body.contains("Your comment was added."));
    assert!(
        seen.body.contains("&#60;b&#62;sure?") || seen.body.contains("&lt;b&gt;sure?"),
        "{}",
        seen.body
    );
    let empty = bob.press("comment", "&text=+").await;
    assert_eq!(empty.status, 409);
    assert!(empty.body.contains("There is no text") && !empty.body.contains("is kept"));
    let long = bob
        .press("comment", &format!("&text={}", "long".repeat(600)))
        .await;
    assert_eq!(long.status, 409);
    // The person gets the text back.
    assert!(long.body.contains("too long") && long.body.contains("longlong"));
    assert_eq!(bob.press("takeover", "").await.status, 303);
    // To a person whom the rule names; the note is for them.
    let dan = Person::enter(&rig, "dan").await;
    assert_eq!(dan.get(&dan.question("")).await.status, 404);
    let refused = bob.press("delegate", "&to=person:eve&note=you").await;
    assert_eq!(refused.status, 409);
    assert!(!refused.body.contains("Nothing was sent") && refused.body.contains("you"));
    for to in ["person:eve", "group:nobody", "eve", ""] {
        let refused = bob
            .press("delegate", &format!("&to={to}&note=you"))
            .await
            .body;
        let named = "The question cannot be handed on to them: it can be handed on to ";
        assert!(refused.contains(named), "{refused}");
        assert!(refused.contains(" or dan."), "{refused}");
    }
    assert_eq!(
        bob.press("delegate", "&to=person:dan&note=yours")
            .await
            .status,
        303
    );
    assert_eq!(bob.press("review", "&f0=Moon").await.status, 409);
    assert!(dan.get(&dan.question("")).await.body.contains("yours"));
    assert_eq!(dan.fill("Dan").await.status, 303);
    assert_eq!(phase(&rig).await, Phase::Answered);
}

#[tokio::test]
async fn a_command_is_told_that_the_rule_asks_people() {
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;
    let rig = rig(1).await;
    let questions = Arc::new(crate::record_question_store::RecordQuestionStore::new(
        rig.record.clone(),
    ));
    let folder = StateFolder::at(rig.folder.path());
    let api = crate::api::router(
        rig.record.clone(),
        questions,
        folder.clone(),
        crate::api::RequestAccess::Owner(None),
    );
    for body in [r#"{"action":"accept"}"#, r#"{"action":"decline"}"#] {
        let request = http::Request::post(format!("/questions/{}/answer", rig.id))
            .header("content-type", "application/json")
            .body(axum::body::Body::from(body))
            .unwrap();
        let response = api.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 403);
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let told = String::from_utf8_lossy(&bytes).into_owned();
        assert!(
            told.contains("asks-people") && told.contains("`deploys` asks people"),
            "{told}"
        );
    }
    assert!(phase(&rig).await.is_open());
    // The commands of the folder know the address at which people log in.
    assert_eq!(
        folder.people_inbox(),
        None,
        "this inbox has not the folder's lock"
    );
    let known = crate::state_folder::PeopleInbox {
        address: "https://ask.example.com/".to_owned(),
        by: crate::state_folder::LogInBy::Proxy,
    };
    folder.write_people_inbox(Some(&known)).unwrap();
    assert_eq!(folder.people_inbox(), Some(known));
    folder.write_people_inbox(None).unwrap();
    folder.write_people_inbox(None).unwrap();
    assert_eq!(folder.people_inbox(), None);
}

/// Returns the texts of the history, in order.
fn history(page: &Reply) -> Vec<String> {
    let lines = page.body.split("<span data-text>").skip(1);
    lines
        .map(|line| line.split("</span>").next().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_course_names_people_as_others_read_them_and_stays_after_the_end() {
    let rig = rig(2).await;
    let (ada, bob) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "bob").await,
    );
    ada.get(&ada.question("")).await;
    assert_eq!(bob.press("claim", "").await.status, 303);
    // The form is closed for all others, with the reason.
    let held = ada.get(&ada.question("")).await;
    assert!(
        held.body
            .contains("<bdi dir=\"auto\">Bob Ross</bdi> has claimed this question")
    );
    assert!(
        held.body
            .contains("<fieldset class=\"bare\" data-answering disabled>")
    );
    assert!(held.body.contains("/takeover\">Take over"));
    let own = bob.get(&bob.question("")).await;
    assert!(own.body.contains("You have claimed") && !own.body.contains("data-answering disabled"));
    // If another person has to agree, the review says so.
    let reviewed = bob.press("review", "&f0=Moon").await;
    assert_eq!(reviewed.status, 303);
    let review = bob.get(&bob.question("/review")).await;
    assert!(
        review.body.contains(">Enter these answers</button>")
            && review.body.contains("One more person")
    );
    let sent = bob.fill("Moon").await;
    let here = sent.header("location").unwrap().to_owned();
    assert_eq!(here, format!("{}?did=fill", bob.question("")));
    assert!(
        bob.get(&here)
            .await
            .body
            .contains("Your answers are entered")
    );
    // There is only one next step: to confirm.
    let seen = ada.get(&ada.question("")).await;
    let (without_dialogs, _) = seen.body.split_once("<dialog").unwrap();
    assert_eq!(
        without_dialogs.matches("class=\"btn main\"").count(),
        1,
        "{}",
        seen.body
    );
    let (_, rest) = seen.body.split_once("name=\"digest\" value=\"").unwrap();
    let digest = rest.split('"').next().unwrap().to_owned();
    let confirmed = ada.press("confirm", &format!("&digest={digest}")).await;
    assert_eq!(confirmed.status, 303);
    let over = ada.get(&ada.question("")).await;
    assert!(over.body.contains("by Bob Ross and ada"), "{}", over.body);
    assert_eq!(
        history(&over),
        [
            "s asked the group ops",
            "Shown to ada",
            "Shown to Bob Ross",
            "Bob Ross claimed it",
            "Bob Ross entered answers",
            "ada agreed",
            "Answered by Bob Ross and ada"
        ]
    );
    let times = over.body.split("<time class=\"soft\" datetime=\"").skip(1);
    let times: Vec<&str> = times.map(|time| time.split('"').next().unwrap()).collect();
    assert_eq!(times.len(), 7, "{}", over.body);
    assert!(times.is_sorted() && times[0].ends_with('Z'), "{times:?}");
    // A person who may know only that the question exists gets no details.
    let eve = Person::enter(&rig, "eve").await;
    assert!(history(&eve.get(&eve.question("")).await).is_empty());
}

/// A membership in which every person is in every group.
struct Everybody;

impl Membership for Everybody {
    fn is_member(&self, _: &str, _: &str) -> bool {
        true
    }

    fn is_caller(&self, _: &str) -> bool {
        false
    }

    fn members(&self, _: &str) -> Option<Vec<String>> {
        None
    }
}

#[tokio::test]
async fn the_course_says_what_was_done_outside_the_pages() {
    let rig = rig(2).await;
    let (ada, bob) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "bob").await,
    );
    bob.fill("Moon").await;
    let path = ada.question("");
    let id = path.rsplit('/').next().unwrap();
    let by = ActingPerson {
        person: "ada",
        login_age: None,
    };
    let decline = TeamAct::Decline {
        note: Some("not on\na Friday"),
    };
    let acted = rig.record.act_with(
        id,
        decline,
        by,
        &Everybody,
        ActDetails {
            channel: Some("slack"),
            comment: None,
        },
    );
    assert!(matches!(acted.await.unwrap(), Acted::Done(..)));
    assert_eq!(
        history(&bob.get(&bob.question("")).await),
        [
            "s asked the group ops",
            "Shown to Bob Ross",
            "Bob Ross entered answers",
            "Declined by ada through Slack: not on a Friday"
        ]
    );
}

#[tokio::test]
async fn a_name_that_two_people_have_stands_beside_their_name_in_the_file() {
    let rules = Rules::parse(
        r#"
[people.ada]
name = "Ada Lovelace"
subject = "1"
[people.other]
name = "ada LOVELACE"
subject = "2"
[people.cy]
name = "Cyrus"
subject = "3"
[people.cyrus]
subject = "4"
[people.dan]
subject = "5"
"#,
    )
    .unwrap();
    let rules = Arc::new(rules);
    let folder = tempfile::tempdir().unwrap();
    let directory = crate::login::directory::Directory::new(
        Arc::new(move || Arc::clone(&rules)),
        Arc::new(StateFolder::at(folder.path()).logins()),
        "proxy".to_owned(),
        Duration::from_secs(60 * 60),
        clock::now,
    );
    let now = directory.now();
    let names = ["ada", "other", "cy", "cyrus", "dan", "proxy zed"];
    assert_eq!(
        names.map(|person| now.display_name(person)),
        [
            "Ada Lovelace (ada)",
            "ada LOVELACE (other)",
            "Cyrus (cy)",
            "cyrus",
            "dan",
            "zed"
        ]
    );
}

#[tokio::test]
async fn a_name_that_only_looks_like_another_persons_stands_beside_its_own() {
    let rules = Rules::parse(
        "[people.ada]\nname = \"Ada Lovelace\"\nsubject = \"1\"\n[people.billi]\nsubject = \"2\"\n[groups]\nall = { claim = \"all\" }\n",
    );
    let rules = Arc::new(rules.unwrap());
    let folder = tempfile::tempdir().unwrap();
    let logins = Arc::new(StateFolder::at(folder.path()).logins());
    let hour = Duration::from_secs(60 * 60);
    let people = rules.people().clone();
    let log_in = |subject: &str, name: &str| {
        let identity = crate::login::table::LoginIdentity {
            issuer: "proxy".to_owned(),
            subject: subject.to_owned(),
            name: name.to_owned(),
            mail: None,
            claims: vec!["all".to_owned()],
            sid: None,
            auth_at: None,
        };
        let admission = crate::login::table::LoginAdmission {
            people: &people,
            allow: &[],
            lifetimes: Lifetimes {
                idle: hour,
                max: hour,
            },
        };
        let made = logins.log_in(&identity, admission, None, "a test", clock::now());
        made.unwrap();
    };
    let alike = [
        // Cyrillic, a sign without width, another direction, another letter of the same look, the form for two people.
        ("m1", "\u{410}da Lovelace"),
        ("m2", "Ada Lovelace\u{200f}"),
        ("m3", "Ada  L\u{43e}velace "),
        ("m4", "ADA LOVELACE"),
        ("m5", "Ada Love1ace"),
        ("m6", "Ada Lovelace (ada)"),
        ("m7", "BilIi"),
    ];
    // Words of the pages themselves.
    let own_words = [
        ("w1", "the gateway"),
        ("w2", "You"),
        ("w3", "Nobody"),
        ("w4", "a  Rule"),
        ("w5", "Approved automatically"),
        ("w6", "the-caller"),
        ("w7", "Y\u{43e}u"),
        ("w8", "no one"),
    ];
    for (subject, name) in alike.into_iter().chain(own_words) {
        log_in(subject, name);
    }
    log_in("the provider", "");
    log_in("nobodys", "Young Ruler");
    log_in("\u{430}da", "");
    log_in("bi11i", "");
    log_in("eve", "Eve");
    for (subject, name) in [
        ("n1", "Bob, fay"),
        ("n2", "Bob \u{430}nd f”ay"),
        ("n3, ada", ""),
    ] {
        log_in(subject, name);
    }
    let directory = crate::login::directory::Directory::new(
        Arc::new(move || Arc::clone(&rules)),
        logins.clone(),
        "proxy".to_owned(),
        hour,
        clock::now,
    );
    let now = directory.now();
    assert_eq!(now.display_name("ada"), "Ada Lovelace (ada)");
    assert_eq!(now.display_name("proxy eve"), "Eve");
    for (subject, _) in alike.into_iter().chain(own_words) {
        let shown = now.display_name(&format!("proxy {subject}"));
        assert!(shown.ends_with(&format!(" ({subject})")), "{shown}");
    }
    assert_eq!(now.display_name("proxy \u{430}da"), "proxy ‹U+0430›da");
    assert_eq!(now.display_name("proxy bi11i"), "proxy bi11i");
    assert_eq!(now.display_name("proxy the provider"), "proxy the provider");
    assert_eq!(now.display_name("proxy nobodys"), "Young Ruler");
    // A caller may have chosen the name in its token.
    let caller = |person: Option<&str>, issuer: &str| {
        let caller = TeamCaller {
            person: person.map(str::to_owned),
            issuer: issuer.to_owned(),
            subject: "s-1".to_owned(),
            name: "Ada Lovelace".to_owned(),
            ..TeamCaller::default()
        };
        let all = Vec::new();
        let team = Team::new("deploys", "r", caller, &plan(1), all, hour);
        crate::team_view::caller_name(&now, &team)
    };
    assert_eq!(caller(None, "https://id.example"), "Ada Lovelace (s-1)");
    assert_eq!(caller(Some("billi"), "https://id.example"), "billi");
    assert_eq!(caller(None, ""), "Ada Lovelace", "the note of a key");
    // In a sentence, names stand beside each other.
    assert_eq!(now.display_name("proxy n1"), "“Bob, fay” (n1)");
    assert_eq!(now.display_name("proxy n2"), "“Bob \u{430}nd fay” (n2)");
    assert_eq!(now.display_name("proxy n3, ada"), "“n3, ada”");
}

#[tokio::test]
async fn views_search_and_headings_are_those_of_the_reader() {
    let rig = rig(1).await;
    let (ada, dan, eve) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "dan").await,
        Person::enter(&rig, "eve").await,
    );
    let has = async |person: &Person<'_>, path: &str, words: &[&str], row: bool| {
        let page = person.get(path).await;
        for words in words {
            assert!(page.body.contains(words), "{path} {words}: {}", page.body);
        }
        assert_eq!(page.body.contains("data-row"), row, "{path}");
    };
    let own = [
        "<h1>Questions for you</h1>",
        "called by</span> <bdi class=\"caller\" dir=\"auto\">cy</bdi>",
    ];
    has(&ada, "/", &own, true).await;
    let groups = "<h1>Questions for your groups</h1>";
    has(&ada, "/?view=groups", &[groups], true).await;
    has(&ada, "/?view=mine", &["addressed to you by name"], false).await;
    // The search stays in its view, and is kept when the reader changes views.
    let words = [
        "/?view=groups\">Show all of them",
        "?view=mine&#38;find=mo+zz",
    ];
    has(&ada, "/?view=groups&find=mo+zz", &words, false).await;
    has(&ada, "/?view=groups&find=deploy", &["data-more"], true).await;
    let none = [
        "role=\"status\" data-news data-waiting=\"One question is waiting for you\">Nothing matches<",
    ];
    has(&ada, "/?find=mo+zz", &none, false).await;
    // The caller, the rule and the id are found, too.
    for found in ["cy", "deploys", rig.id.as_str()] {
        let rule = ["data-rule=\"deploys\""];
        has(&ada, &format!("/?find={found}"), &rule, true).await;
    }
    has(&dan, "/", &["<h1>Questions for you</h1>"], false).await;
    let everything = ["<h1>All questions</h1>", "addressed to others"];
    has(&eve, "/", &everything, true).await;
    assert!(
        eve.get("/")
            .await
            .body
            .contains("0 questions are waiting for you")
    );
}

#[tokio::test]
async fn the_owner_of_a_key_finds_the_questions_of_its_calls_that_no_rule_touches() {
    let rig = rig(1).await;
    let tokens = StateFolder::at(rig.folder.path()).api_tokens();
    let owner = Some(TokenOwner::Person("dan".to_owned()));
    let made = tokens.make_for("agent", &[Scope::Call], None, owner, clock::now());
    let (key, _) = made.unwrap();
    let id = sample::raised_by(&rig.record, &key.caller()).await.unwrap();
    let row = format!("/q/{id}");
    let (dan, bob) = (
        Person::enter(&rig, "dan").await,
        Person::enter(&rig, "bob").await,
    );
    for view in ["/", "/?view=mine"] {
        let page = dan.get(view).await;
        assert!(page.body.contains(&row), "{view}: {}", page.body);
        assert!(!bob.get(view).await.body.contains(&row), "{view}");
    }
    assert_eq!(dan.get(&row).await.status, 200);
    assert_eq!(bob.get(&row).await.status, 404);
}

#[tokio::test]
async fn a_program_is_listed_the_questions_of_no_rule_and_told_how_many_wait_in_all() {
    let rig = rig(1).await;
    let tokens = StateFolder::at(rig.folder.path()).api_tokens();
    let made = tokens.make("bot", &[Scope::List], None, clock::now());
    let (_, text) = made.unwrap();
    let list = async || {
        let head = format!("GET /api/questions HTTP/1.1\r\nAuthorization: Bearer {text}");
        let host = rig.host.clone();
        let head = format!("{head}\r\nHost: {host}\r\n");
        let reply = send(&host, [127, 0, 0, 9], &head, "").await;
        let listed: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
        let count = listed["questions"].as_array().map(Vec::len);
        (count, listed["waiting"].as_u64())
    };
    assert_eq!(list().await, (Some(0), Some(1)), "the rule's is people's");
    sample::raised_by(&rig.record, "local").await.unwrap();
    assert_eq!(list().await, (Some(1), Some(2)));
}

#[tokio::test]
async fn the_caller_sees_and_comments_and_never_answers() {
    let rig = rig(1).await;
    let cy = Person::enter(&rig, "cy").await;
    let seen = cy.get(&cy.question("")).await;
    assert!(seen.body.contains("others have to answer") && !seen.body.contains("id=\"answer\""));
    let form = format!("csrf={}&version=0", seen.csrf());
    for act in ["accept", "decline", "claim"] {
        let refused = cy.post(&cy.question(&format!("/{act}")), &form).await;
        assert!(
            refused.status == 409
                || refused
                    .header("location")
                    .is_some_and(|to| to.contains("check")),
            "{act} {}",
            refused.status
        );
    }
    assert!(phase(&rig).await.is_open());
}

#[tokio::test]
async fn nothing_is_kept_of_what_somebody_types_who_may_not_answer() {
    let rig = rig(1).await;
    let (ada, cy) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "cy").await,
    );
    let long = "x".repeat(1_000_000);
    let refuses = async |who: &Person<'_>, why: &str| {
        for act in ["live", "review", "step", "decline"] {
            let refused = who.press(act, &format!("&f0={long}")).await;
            assert_eq!(refused.status, 409, "{act}");
            assert!(refused.body.contains(why), "{act}: {}", refused.body);
            assert!(!refused.body.contains("is kept"), "{}", refused.body);
        }
    };
    refuses(&cy, "others have to answer").await;
    let kept = ada.press("live", "&f0=Moon").await;
    assert_eq!(kept.status, 200, "{}", kept.body);
    assert_eq!(
        ada.press("delegate", "&to=person:dan&note=yours")
            .await
            .status,
        303
    );
    refuses(&ada, "handed this question on").await;
    let dan = Person::enter(&rig, "dan").await;
    assert_eq!(dan.press("live", "&f0=Sun").await.status, 200);
    let seen = dan.get(&dan.question("")).await;
    assert!(seen.body.contains("value=\"Sun\""));
}

#[tokio::test]
async fn a_device_is_added_by_its_person_and_ends_when_they_log_out() {
    let rig = rig(1).await;
    let (ada, bob) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "bob").await,
    );
    let account = ada.get("/account").await;
    assert!(
        account.body.contains("data-key=\"BKey\"") && account.body.contains("Notify this device")
    );
    let token = account.csrf();
    let keys = r#""keys":{"p256dh":"p","auth":"a"}"#;
    let of = |endpoint: &str, token: &str| {
        format!(r#"{{"csrf":"{token}","endpoint":"{endpoint}",{keys}}}"#)
    };
    let sound = of("https://push.example.com/1", &token);
    let send = async |who: &Person<'_>, origin: &str, body: &str| {
        post(
            &rig,
            who.name,
            "/account/devices",
            &who.cookie,
            origin,
            body,
        )
        .await
    };
    let own = format!("http://{}", rig.host);
    for (who, origin, body, status) in [
        (&ada, "https://evil.example", sound.as_str(), 403),
        (&bob, own.as_str(), sound.as_str(), 403),
        (&ada, own.as_str(), "{}", 400),
        (&ada, own.as_str(), &of("https://127.0.0.1/", &token), 422),
        (&ada, own.as_str(), &of(&"x".repeat(9_000), &token), 413),
    ] {
        let refused = send(who, origin, body).await;
        assert_eq!(refused.status, status, "{}", refused.body);
    }
    let logins = StateFolder::at(rig.folder.path()).logins();
    let devices = |name: &str| logins.table().unwrap().devices_of(name).count();
    assert_eq!(devices("ada"), 0);
    let added = send(&ada, &own, &sound).await;
    assert_eq!(added.status, 204, "{}", added.body);
    let cookie = added.header("set-cookie").unwrap();
    assert!(
        cookie.contains("-device-")
            && cookie.contains("HttpOnly")
            && cookie.contains("SameSite=Lax")
    );
    let stored = sample::stored(rig.folder.path());
    let value = added.cookie().unwrap();
    assert!(!stored.contains(value.split_once('=').unwrap().1));
    assert_eq!(devices("ada"), 1);
    let listed = ada.get("/account").await;
    let (_, rest) = listed.body.split_once("name=\"device\" value=\"").unwrap();
    let device = rest.split('"').next().unwrap().to_owned();
    assert!(!listed.body.contains("push.example.com"));
    // No one else can end it.
    let token_of_bob = bob.get("/account").await.csrf();
    let form = format!("csrf={token_of_bob}&device={device}");
    assert_eq!(bob.post("/account/devices/end", &form).await.status, 404);
    assert_eq!(devices("ada"), 1);
    let form = format!("csrf={token}&device={device}");
    assert_eq!(ada.post("/account/devices/end", &form).await.status, 303);
    assert_eq!(devices("ada"), 0);
    assert!(
        listed.body.contains("not notified lately"),
        "{}",
        listed.body
    );
    assert_eq!(send(&ada, &own, &sound).await.status, 204);
    let out = ada.post("/logout", &format!("csrf={token}")).await;
    assert_eq!(out.status, 303);
    assert_eq!(devices("ada"), 0);
    // Each was added and removed by the person who was signed in.
    let audit = mcp_elicit_record::audit::read(rig.record.store()).await;
    let audit = audit.unwrap().into_iter();
    let events = audit.map(|link| serde_json::from_str::<serde_json::Value>(&link.entry).unwrap());
    let is_device = |event: &serde_json::Value| {
        let word = event["event"].as_str().unwrap();
        word.starts_with("device-")
    };
    let events: Vec<serde_json::Value> = events.filter(is_device).collect();
    let words = events.iter().map(|event| event["event"].as_str().unwrap());
    let words: Vec<&str> = words.collect();
    let each = ["device-added", "device-removed"];
    assert_eq!(words, [each, each].concat());
    assert!(
        events
            .iter()
            .all(|event| event["by"] == "person:ada" && event["session"].is_string()),
        "{events:?}"
    );
    assert_eq!(events[0]["device"], device.as_str(), "{events:?}");
}

#[tokio::test]
async fn the_installed_app_has_a_manifest_a_worker_and_icons() {
    let rig = rig(1).await;
    let ada = Person::enter(&rig, "ada").await;
    let page = ada.get("/").await;
    assert!(page.body.contains("rel=\"manifest\""));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("manifest-src 'self'") && policy.contains("worker-src 'self'"));
    for (name, kind) in [
        ("manifest.webmanifest", "application/manifest+json"),
        ("sw.js", "text/javascript; charset=utf-8"),
        ("icon-192.png", "image/png"),
        ("icon-512.png", "image/png"),
    ] {
        let asset = ada.get(&format!("/assets/{name}")).await;
        assert_eq!(
            (asset.status, asset.header("content-type")),
            (200, Some(kind))
        );
        let is_worker = name == "sw.js";
        assert_eq!(
            asset.header("service-worker-allowed"),
            is_worker.then_some("../")
        );
        // Questions are in no cache.
        assert!(!asset.body.contains("caches"));
    }
    let manifest = ada.get("/assets/manifest.webmanifest").await;
    let manifest: serde_json::Value = serde_json::from_str(&manifest.body).unwrap();
    assert_eq!(
        (&manifest["display"], &manifest["scope"]),
        (&"standalone".into(), &"../".into())
    );
}

#[tokio::test]
async fn who_allows_a_credential_is_in_the_audit_by_name_and_the_value_is_not() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let record = record();
    let hour = Duration::from_secs(60 * 60);
    let asked = vec!["ada".to_owned()];
    let caller = TeamCaller {
        person: Some("cy".to_owned()),
        ..TeamCaller::default()
    };
    let team = Team::new("deploys", "r", caller, &plan(1), asked, hour);
    let form = serde_json::json!({"type": "object", "required": ["password"], "properties": {
        "password": {"type": "string"}}});
    let plan = Some(team.to_plan().unwrap());
    let id = sample::raised_with_form(&record, plan, "{}", &form).await;
    let rig = inbox_over(listener, record, id.unwrap(), FILE, proxy(), hour);
    let ada = Person::enter(&rig, "ada").await;
    let refused = ada.fill_and_send("secret-tree", "").await;
    assert!(phase(&rig).await.is_open(), "{}", refused.body);
    let done = ada.fill_and_send("secret-tree", "&allow=yes").await;
    assert_eq!(done.status, 303, "{}", done.body);
    assert_eq!(phase(&rig).await, Phase::Answered);
    let allowed = audited(&rig, "insisted").await;
    let [entry] = allowed.as_slice() else {
        panic!("{allowed:?}");
    };
    assert!(entry.contains("person:ada"), "{entry}");
    let answered = audited(&rig, "answered").await;
    assert!(!answered.is_empty());
    let all = [allowed, answered].concat();
    assert!(!all.iter().any(|entry| entry.contains("secret-tree")));
}
