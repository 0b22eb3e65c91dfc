//! Several people at one inbox: real pages over HTTP, a proxy that names people, and those who attack it.

mod browser;

use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use mcp_elicit_core::lifecycle::Phase;
use mcp_elicit_policy::access::{Action, Cell, ROLES, Role, TABLE};
use mcp_elicit_policy::rules::{Ask, Plan};
use mcp_elicit_policy::{Addressee, Rules};
use mcp_elicit_record::store::Memory;
use mcp_elicit_record::team::{Team, TeamCaller};
use mcp_elicit_record::{Keys, LockFile, Record, clock};
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

/// An inbox behind a proxy at 127.0.0.1, with one question of a rule: two of the group `ops` must agree, and `cy` makes the call.
struct Rig {
    record: Arc<Record>,
    host: String,
    id: String,
    folder: tempfile::TempDir,
    _inbox: Inbox,
}

fn plan(need: u8) -> Plan {
    Plan {
        ask: Ask {
            to: vec![Addressee::Group("ops".to_owned())],
            need: NonZeroU8::new(need).unwrap(),
            not_caller: true,
            is_any: false,
        },
        claim: Some(Duration::from_mins(15)),
        delegate_to: vec![Addressee::Person("dan".to_owned())],
        ..Plan::caller()
    }
}

async fn rig(need: u8) -> Rig {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = ProxyLogin {
        trusts: Arc::new(|from| from == std::net::IpAddr::from(PROXY)),
        issuer: "proxy".to_owned(),
        subject: HeaderName::from_static("x-user"),
        mail: None,
        groups: Some(HeaderName::from_static("x-groups")),
    };
    serve(listener, need, LoginMode::Proxy(proxy)).await
}

async fn serve(listener: TcpListener, need: u8, mode: LoginMode) -> Rig {
    serve_asking_again(listener, need, mode, Duration::from_hours(1)).await
}

async fn serve_asking_again(
    listener: TcpListener,
    need: u8,
    mode: LoginMode,
    recheck: Duration,
) -> Rig {
    let folder = tempfile::tempdir().unwrap();
    let lease = LockFile::unshared().unwrap();
    let record = Arc::new(Record::new(
        Arc::new(Memory::default()),
        Keys::random().unwrap(),
        lease,
        clock::now,
    ));
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
        Duration::from_hours(1),
    );
    let id = sample::raised_for(&record, Some(team.to_plan().unwrap()))
        .await
        .unwrap();
    let at = listener.local_addr().unwrap();
    let rules = Arc::new(Rules::parse(FILE).unwrap());
    let teams = Teams {
        login: LoginSettings {
            mode,
            address: None,
            allow: Vec::new(),
            lifetimes: Lifetimes {
                idle: Duration::from_hours(1),
                max: Duration::from_hours(2),
            },
            recheck,
            stale: Duration::from_hours(1),
        },
        rules: Arc::new(move || Arc::clone(&rules)),
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
        axum::Router::new(),
    )
    .unwrap();
    Rig {
        record,
        host: at.to_string(),
        id,
        folder,
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

    /// The token of the first form.
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

    /// Fills the form in and sends it, by way of the review.
    async fn fill(&self, name: &str) -> Reply {
        let reviewed = self.press("review", &format!("&f0={name}")).await;
        assert_eq!(
            reviewed.header("location"),
            Some(self.question("/review").as_str())
        );
        let review = self.get(&self.question("/review")).await;
        let (_, rest) = review.body.split_once("name=\"seen\" value=\"").unwrap();
        let seen = rest.split('"').next().unwrap();
        let form = format!(
            "csrf={}&version={}&seen={seen}",
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
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nX-User: {name}\r\nCookie: {cookie}\r\n");
    send(host, PROXY, &head, "").await
}

async fn post(rig: &Rig, name: &str, path: &str, cookie: &str, origin: &str, form: &str) -> Reply {
    let host = &rig.host;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nX-User: {name}\r\nCookie: {cookie}\r\nOrigin: {origin}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    );
    send(host, PROXY, &head, form).await
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
    assert_eq!(ada.fill("Moon").await.status, 303);
    assert!(phase(&rig).await.is_open());
    let seen = bob.get(&bob.question("")).await;
    assert!(seen.body.contains("Moon") && seen.body.contains("Confirm exactly these answers"));
    let (_, rest) = seen.body.split_once("name=\"digest\" value=\"").unwrap();
    let digest = rest.split('"').next().unwrap().to_owned();
    // Who has agreed reads so, and finds the form only by asking for it.
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
    // Ada changes her mind: what Bob saw is not what he would confirm.
    assert_eq!(ada.fill("Mars").await.status, 303);
    let stale = bob.press("confirm", &format!("&digest={digest}")).await;
    assert_eq!(stale.status, 409);
    assert!(stale.body.contains("have changed"), "{}", stale.body);
    let seen = bob.get(&bob.question("")).await;
    let (_, rest) = seen.body.split_once("name=\"digest\" value=\"").unwrap();
    let digest = rest.split('"').next().unwrap().to_owned();
    assert!(seen.body.contains("Mars"));
    // Who entered them does not agree twice.
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
    // The person gets the words back.
    assert!(long.body.contains("too long") && long.body.contains("longlong"));
    assert_eq!(bob.press("takeover", "").await.status, 303);
    // To somebody whom the rule names; the note is for them.
    let dan = Person::enter(&rig, "dan").await;
    assert_eq!(dan.get(&dan.question("")).await.status, 404);
    let refused = bob.press("delegate", "&to=person:eve&note=you").await;
    assert_eq!(refused.status, 409);
    assert!(!refused.body.contains("Nothing was sent") && refused.body.contains("you"));
    assert_eq!(
        bob.press("delegate", "&to=person:dan&note=yours")
            .await
            .status,
        303
    );
    assert_eq!(bob.fill("Moon").await.status, 409);
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
        crate::api::Access::Owner(None),
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
    // Where people log in is known to commands of the folder.
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

/// The texts of the course, in their order.
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
    // The form of everybody else is closed, and says why.
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
    // Where another has to agree, the review says so.
    let reviewed = bob.press("review", "&f0=Moon").await;
    assert_eq!(reviewed.status, 303);
    let review = bob.get(&bob.question("/review")).await;
    assert!(review.body.contains(">Confirm</button>") && review.body.contains("one more person"));
    let sent = bob.fill("Moon").await;
    let here = sent.header("location").unwrap().to_owned();
    assert_eq!(here, format!("{}?did=fill", bob.question("")));
    assert!(
        bob.get(&here)
            .await
            .body
            .contains("Your answers are entered")
    );
    // One thing to do next: to confirm.
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
    // Those who may know only that it exists are told nothing of it.
    let eve = Person::enter(&rig, "eve").await;
    assert!(history(&eve.get(&eve.question("")).await).is_empty());
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
        Duration::from_hours(1),
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
    has(&ada, "/", &["<h1>Questions for you</h1>"], true).await;
    let groups = "<h1>Questions for your groups</h1>";
    has(&ada, "/?view=groups", &[groups], true).await;
    has(&ada, "/?view=mine", &["addressed to you by name"], false).await;
    // The search stays in its view, and goes with the reader to another.
    let words = [
        "/?view=groups\">Show all of them",
        "?view=mine&#38;find=mo+on",
    ];
    has(&ada, "/?view=groups&find=mo+on", &words, false).await;
    has(&ada, "/?view=groups&find=deploy", &["data-more"], true).await;
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
async fn a_program_is_listed_and_counted_the_questions_of_no_rule() {
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
    assert_eq!(list().await, (Some(0), Some(0)), "the rule's is people's");
    sample::raised_by(&rig.record, "local").await.unwrap();
    assert_eq!(list().await, (Some(1), Some(1)));
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

/// The table of roles, cell by cell, over the pages.
#[tokio::test]
async fn the_table_of_roles_holds_on_the_pages() {
    let mut cells = 0;
    for (column, role) in ROLES.into_iter().enumerate() {
        let name = match role {
            // Somebody whom the file names, without a role and without questions, is an answerer of other questions.
            Role::None => "nobody",
            Role::Caller => "cy",
            Role::Addressed => "ada",
            Role::OtherAnswerer => "dan",
            Role::Auditor => "aud",
            Role::Admin => "eve",
        };
        for (action, row) in TABLE {
            let allowed = match row[column] {
                Cell::No => false,
                Cell::Yes | Cell::Own => true,
                // The caller is in the group, and the rule excludes callers: the row's own test is `not-caller`.
                Cell::IfAddressed | Cell::IfOwner => continue,
            };
            let rig = rig(2).await;
            if role == Role::None {
                assert_eq!(get(&rig, name, "/", "").await.status, 403);
                assert!(!allowed);
                cells += 1;
                continue;
            }
            Person::enter(&rig, "ada").await.fill("Moon").await;
            let person = Person::enter(&rig, name).await;
            let page = person.get(&person.question("")).await;
            let done = match action {
                Action::SeeQuestion => page.body.contains("Who?"),
                Action::SeeOwnCourse => page.body.contains("Course of the question"),
                Action::SeeEntered => page.body.contains("Moon"),
                Action::ListAll => person.get("/").await.body.contains("data-row"),
                Action::Act => page.body.contains("id=\"answer\""),
                Action::Comment => page.body.contains("name=\"text\""),
                Action::OwnSessions => person.get("/account").await.status == 200,
                Action::ListSessions => person
                    .get("/account")
                    .await
                    .body
                    .contains("Sessions of others"),
                Action::EndSessions => {
                    let account = person.get("/account").await;
                    let ada = other_session(&account);
                    let form = format!(
                        "csrf={}&session={}",
                        account.csrf(),
                        ada.as_deref().unwrap_or("0")
                    );
                    person.post("/account/end", &form).await.status == 303 && ada.is_some()
                }
                // Not on pages: calls and collecting at the listener, the rest at the command line.
                Action::Call
                | Action::Readdress
                | Action::Audit
                | Action::SimulateRules
                | Action::Reload
                | Action::ListFailed
                | Action::ResendFailed => continue,
            };
            // Those who are asked, and callers in the group, see more than the column says alone; roles add up.
            let adds_up = match (role, action) {
                (Role::Caller, Action::SeeEntered | Action::OwnSessions | Action::ListAll)
                | (Role::Addressed, Action::SeeOwnCourse | Action::ListAll) => true,
                _ => allowed,
            };
            assert_eq!(done, adds_up, "{name} {action:?}");
            cells += 1;
        }
    }
    assert!(cells > 50, "{cells}");
}

/// The first session under the heading of others' that is not the reader's.
fn other_session(account: &Reply) -> Option<String> {
    let (_, others) = account.body.split_once("id=\"others\"")?;
    let (_, rest) = others.split_once("data-session=\"")?;
    Some(rest.split('"').next()?.to_owned())
}

#[tokio::test]
async fn auditors_and_administrators_see_that_it_exists() {
    let rig = rig(1).await;
    for name in ["aud", "eve"] {
        let person = Person::enter(&rig, name).await;
        let list = person.get("/").await;
        assert!(
            list.body.contains("data-row") && !list.body.contains("Who?"),
            "{name}"
        );
        let page = person.get(&person.question("")).await;
        assert!(page.body.contains("not addressed to you") && !page.body.contains("moon"));
        assert_eq!(person.get(&person.question("/review")).await.status, 200);
        assert!(
            !person
                .get(&person.question("/review"))
                .await
                .body
                .contains("Who?")
        );
        // Even with a token of a form of theirs, nothing is done.
        let account = person.get("/account").await;
        let form = format!("csrf={}", account.csrf());
        assert_eq!(
            person
                .post(&person.question("/decline"), &form)
                .await
                .status,
            403
        );
    }
    assert!(phase(&rig).await.is_open());
}

#[tokio::test]
async fn headers_from_elsewhere_sign_no_one_in() {
    let rig = rig(1).await;
    let host = &rig.host;
    for path in ["/", "/account", "/state", &format!("/q/{}", rig.id)] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nX-User: ada\r\n");
        let reply = send(host, [127, 0, 0, 2], &head, "").await;
        assert_eq!(reply.status, 403, "{path}");
        assert!(!reply.body.contains("Who?") && reply.header("set-cookie").is_none());
    }
    // Nor does a stolen cookie without the proxy.
    let ada = Person::enter(&rig, "ada").await;
    let head = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nCookie: {}\r\n",
        ada.cookie
    );
    assert_eq!(send(host, [127, 0, 0, 2], &head, "").await.status, 403);
    let doubled = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX-User: ada\r\nX-User: eve\r\n");
    assert_eq!(send(host, PROXY, &doubled, "").await.status, 403);
    let wrong_host = "GET / HTTP/1.1\r\nHost: evil.example\r\nX-User: ada\r\n";
    let reply = send(host, PROXY, wrong_host, "").await;
    assert_eq!((reply.status, reply.header("set-cookie")), (421, None));
}

#[tokio::test]
async fn a_forwarded_link_and_guessed_names_open_nothing() {
    let rig = rig(1).await;
    let dan = Person::enter(&rig, "dan").await;
    let forwarded = dan.get(&dan.question("")).await;
    let guessed = dan.get("/q/00000000000000000000000000000000").await;
    assert_eq!((forwarded.status, guessed.status), (404, 404));
    assert_eq!(
        forwarded.body, guessed.body,
        "one cannot tell the two apart"
    );
    for part in ["/review", "/state"] {
        let reply = dan.get(&dan.question(part)).await;
        assert!(
            !reply.body.contains("Who?") && !reply.body.contains("\"open\":true"),
            "{part}"
        );
    }
    let account = dan.get("/account").await;
    let form = format!("csrf={}&session=000000000000", account.csrf());
    assert_eq!(dan.post("/account/end", &form).await.status, 404);
    // Looking has no effect.
    assert_eq!(phase(&rig).await, Phase::Asked);
}

#[tokio::test]
async fn forms_of_other_sites_and_other_sessions_do_nothing() {
    let rig = rig(1).await;
    let (ada, bob) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "bob").await,
    );
    let page = bob.get(&bob.question("")).await;
    let (token, decline) = (page.csrf(), bob.question("/decline"));
    let own = format!("http://{}", rig.host);
    for (origin, form) in [
        ("https://evil.example", format!("csrf={token}")),
        ("null", format!("csrf={token}")),
        (own.as_str(), String::new()),
        // The token of another session's form for the same question.
        (
            own.as_str(),
            format!("csrf={}", ada.get(&ada.question("")).await.csrf()),
        ),
    ] {
        let reply = post(&rig, "bob", &decline, &bob.cookie, origin, &form).await;
        assert_eq!(reply.status, 403, "{origin} {form}");
    }
    let account = format!("csrf={}", bob.get("/account").await.csrf());
    for path in ["/logout", "/account/end"] {
        let reply = post(
            &rig,
            "bob",
            path,
            &bob.cookie,
            "https://evil.example",
            &account,
        )
        .await;
        assert_eq!(reply.status, 403);
        let stolen = format!("csrf={}", ada.get("/account").await.csrf());
        assert_eq!(bob.post(path, &stolen).await.status, 403);
    }
    assert!(phase(&rig).await.is_open());
    assert_eq!(bob.get("/account").await.status, 200);
}

#[tokio::test]
async fn a_session_is_made_anew_and_belongs_to_one_person() {
    let rig = rig(1).await;
    let port = rig.host.rsplit(':').next().unwrap();
    let planted = format!("mcp-elicit-login-{port}={}", "0".repeat(64));
    let entered = get(&rig, "ada", "/", &planted).await;
    let cookie = entered.cookie().unwrap();
    assert_ne!(cookie, planted, "fixation");
    let set = entered.header("set-cookie").unwrap();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax") && set.contains("Path=/"));
    // The proxy names another person: that session ends, and a new one is made.
    let other = get(&rig, "bob", "/", &cookie).await;
    assert!(other.cookie().is_some_and(|new| new != cookie));
    let again = get(&rig, "ada", "/", &cookie).await;
    assert!(
        again.cookie().is_some_and(|new| new != cookie),
        "the old one has ended"
    );
    let stored = std::fs::read_to_string(rig.folder.path().join("inbox.logins")).unwrap();
    let value = cookie.split_once('=').unwrap().1;
    assert!(!stored.contains(value));
}

#[tokio::test]
async fn people_end_their_sessions_and_administrators_those_of_all() {
    let rig = rig(1).await;
    let (ada, eve) = (
        Person::enter(&rig, "ada").await,
        Person::enter(&rig, "eve").await,
    );
    let account = eve.get("/account").await;
    let id = other_session(&account).unwrap();
    let form = format!("csrf={}&session={id}", account.csrf());
    assert_eq!(eve.post("/account/end", &form).await.status, 303);
    assert!(
        ada.get("/").await.cookie().is_some(),
        "a new session was needed"
    );
    let account = eve.get("/account").await;
    let gone = eve
        .post("/logout", &format!("csrf={}", account.csrf()))
        .await;
    assert!(gone.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert!(eve.get("/logged-out").await.body.contains("Logged out"));
    let audit = mcp_elicit_record::audit::read(rig.record.store())
        .await
        .unwrap();
    let all: Vec<String> = audit.iter().map(|entry| entry.entry.clone()).collect();
    let has = |word: &str, who: &str| {
        all.iter()
            .any(|entry| entry.contains(word) && entry.contains(who))
    };
    assert!(
        has("\"sign-in\"", "ada")
            && has("\"session-ended\"", "eve, of ada")
            && has("\"session-ended\"", "eve")
    );
    assert_eq!(get(&rig, "stranger", "/", "").await.status, 403);
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
    let stored = std::fs::read_to_string(rig.folder.path().join("inbox.logins")).unwrap();
    let value = added.cookie().unwrap();
    assert!(!stored.contains(value.split_once('=').unwrap().1));
    assert_eq!(devices("ada"), 1);
    let listed = ada.get("/account").await;
    let (_, rest) = listed.body.split_once("name=\"device\" value=\"").unwrap();
    let device = rest.split('"').next().unwrap().to_owned();
    assert!(!listed.body.contains("push.example.com"));
    // Nobody else ends it.
    let token_of_bob = bob.get("/account").await.csrf();
    let form = format!("csrf={token_of_bob}&device={device}");
    assert_eq!(bob.post("/account/devices/end", &form).await.status, 404);
    assert_eq!(devices("ada"), 1);
    let form = format!("csrf={token}&device={device}");
    assert_eq!(ada.post("/account/devices/end", &form).await.status, 303);
    assert_eq!(devices("ada"), 0);
    assert_eq!(send(&ada, &own, &sound).await.status, 204);
    let out = ada.post("/logout", &format!("csrf={token}")).await;
    assert_eq!(out.status, 303);
    assert_eq!(devices("ada"), 0);
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

#[cfg(feature = "teams")]
mod provider {
    use std::collections::BTreeMap;

    use mcp_elicit_testkit::issuer::Issuer;

    use super::*;
    use crate::login::OidcLogin;

    fn login(issuer: &str) -> LoginMode {
        LoginMode::Oidc(OidcLogin {
            issuer: issuer.to_owned(),
            client_id: "connect".to_owned(),
            client_secret: Some("connect-secret".to_owned()),
            scopes: Vec::new(),
            groups_claim: "groups".to_owned(),
            trust_mail: false,
        })
    }

    /// A browser with cookies of each host.
    #[derive(Default)]
    struct Browser(BTreeMap<String, BTreeMap<String, String>>);

    impl Browser {
        async fn request(&mut self, method: &str, url: &str, form: &str) -> Reply {
            let (host, path) = url
                .strip_prefix("http://")
                .unwrap()
                .split_once('/')
                .unwrap();
            let jar = self.0.entry(host.to_owned()).or_default();
            let cookies: Vec<String> = jar
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let cookies = cookies.join("; ");
            let head = format!(
                "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookies}\r\nOrigin: http://{host}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            );
            let reply = send(host, PROXY, &head, form).await;
            for line in reply.head.lines() {
                let Some((name, value)) = line.split_once(':') else {
                    continue;
                };
                if name.eq_ignore_ascii_case("set-cookie") {
                    let (name, value) = value
                        .trim()
                        .split(';')
                        .next()
                        .unwrap()
                        .split_once('=')
                        .unwrap();
                    jar.insert(name.to_owned(), value.to_owned());
                }
            }
            reply
        }

        /// Goes on from `url` as a person does who signs in as `name`, until the browser is sent back to `until`.
        async fn sign_in(&mut self, url: &str, name: &str, until: &str) -> String {
            let mut url = url.to_owned();
            for _ in 0..12 {
                if url.starts_with(until) {
                    return url;
                }
                let origin = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
                let mut reply = self.request("GET", &url, "").await;
                if reply.status == 200 {
                    reply = self.request("POST", &url, &format!("login={name}")).await;
                }
                let next = reply
                    .header("location")
                    .unwrap_or_else(|| panic!("{url}: {}", reply.body));
                url = if next.starts_with('/') {
                    format!("{origin}{next}")
                } else {
                    next.to_owned()
                };
            }
            panic!("never sent back: {url}");
        }
    }

    #[tokio::test]
    async fn a_person_logs_in_at_a_provider_and_an_answer_of_another_issuer_opens_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let back = format!("http://{at}/login/return");
        let redirects = [back.clone()];
        let started = tokio::task::spawn_blocking(move || {
            mcp_elicit_testkit::peers::openid_provider(&redirects)
        });
        let Some(provider) = started.await.unwrap() else {
            return;
        };
        let issuer = provider.url().trim_end_matches('/').to_owned();
        let rig = serve(listener, 1, login(&issuer)).await;
        let question = format!("http://{at}/q/{}", rig.id);
        let mut browser = Browser::default();
        // A link of a mail leads to the login, and from there to the question.
        let sent = browser.request("GET", &question, "").await;
        assert_eq!(sent.status, 303);
        let entry = format!("http://{at}{}", sent.header("location").unwrap());
        let begun = browser.request("GET", &entry, "").await;
        let address = begun.header("location").unwrap().to_owned();
        assert!(
            address.starts_with(&issuer) && address.contains("code_challenge_method=S256"),
            "{address}"
        );
        let answer = browser.sign_in(&address, "ada", &back).await;
        // Another browser has no part in it, nor has another issuer.
        let stranger = Browser::default().request("GET", &answer, "").await;
        assert_eq!(
            (stranger.status, stranger.header("set-cookie")),
            (400, None)
        );
        let entered = browser.request("GET", &answer, "").await;
        assert_eq!(
            entered.header("location"),
            Some(format!("/q/{}", rig.id).as_str()),
            "{}",
            entered.body
        );
        let page = browser.request("GET", &question, "").await;
        assert!(
            page.body.contains("Who?") && page.body.contains(">ada<"),
            "{}",
            page.body
        );
        let again = browser.request("GET", &answer, "").await;
        assert_eq!(again.status, 400, "an answer counts once");
        let mut mixed = Browser::default();
        let begun = mixed.request("GET", &entry, "").await;
        let address = begun.header("location").unwrap().to_owned();
        let answer = mixed.sign_in(&address, "bob", &back).await;
        let (before, _) = answer.split_once("iss=").unwrap();
        let forged = format!("{before}iss=https%3A%2F%2Fevil.example");
        let refused = mixed.request("GET", &forged, "").await;
        assert_eq!(refused.status, 502, "{}", refused.body);
        assert_eq!(
            mixed.request("GET", &question, "").await.status,
            303,
            "not signed in"
        );
        // Nobody whom the file does not name.
        let mut other = Browser::default();
        let begun = other.request("GET", &entry, "").await;
        let address = begun.header("location").unwrap().to_owned();
        let answer = other.sign_in(&address, "mallory", &back).await;
        assert_eq!(other.request("GET", &answer, "").await.status, 403);
        // Logged out here, and sent on to the provider.
        let account = browser
            .request("GET", &format!("http://{at}/account"), "")
            .await;
        let form = format!("csrf={}", account.csrf());
        let out = browser
            .request("POST", &format!("http://{at}/logout"), &form)
            .await;
        assert!(out.status == 200 || out.status == 303, "{}", out.body);
        assert_eq!(browser.request("GET", &question, "").await.status, 303);
    }

    /// A browser of somebody who logged in at this issuer, and a question for the group of a claim.
    async fn at_issuer(issuer: &Issuer) -> (Rig, Browser, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let mode = login(issuer.url());
        // Every act asks the issuer.
        let mut rig = serve_asking_again(listener, 1, mode, Duration::ZERO).await;
        let mut plan = plan(1);
        plan.ask.to = vec![Addressee::Group("leads".to_owned())];
        let caller = TeamCaller {
            person: Some("cy".to_owned()),
            ..TeamCaller::default()
        };
        let team = Team::new(
            "leads",
            "r",
            caller,
            &plan,
            Vec::new(),
            Duration::from_hours(1),
        );
        let asked = sample::raised_for(&rig.record, Some(team.to_plan().unwrap()));
        rig.id = asked.await.unwrap();
        let mut browser = Browser::default();
        let begun = browser
            .request("GET", &format!("http://{at}/login"), "")
            .await;
        let address = begun.header("location").unwrap().to_owned();
        let back = format!("http://{at}/login/return");
        let answer = browser.sign_in(&address, "", &back).await;
        let entered = browser.request("GET", &answer, "").await;
        assert_eq!(entered.status, 303, "{}", entered.body);
        let question = format!("http://{at}/q/{}", rig.id);
        (rig, browser, question)
    }

    async fn decline(browser: &mut Browser, question: &str) -> Reply {
        let page = browser.request("GET", question, "").await;
        assert_eq!(page.status, 200, "{}", page.head);
        let form = format!("csrf={}&version=0", page.csrf());
        browser
            .request("POST", &format!("{question}/decline"), &form)
            .await
    }

    const LEADS: &str = r#"{"groups": ["leads", "staff"]}"#;

    fn claims(text: &str) -> serde_json::Value {
        serde_json::from_str(text).unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_left_a_group_at_the_provider_is_refused_at_the_next_act() {
        // The issuer is asked by a refresh, or with the access token.
        for refreshes in [true, false] {
            let issuer = Issuer::start();
            issuer.set_refreshes(refreshes);
            issuer.sign_in_as("gil", claims(LEADS));
            let (rig, mut browser, question) = at_issuer(&issuer).await;
            let page = browser.request("GET", &question, "").await;
            let form = format!("csrf={}&version=0", page.csrf());
            // Claims that have not changed hold up nothing.
            let commented = format!("{form}&text=hm");
            let kept = browser
                .request("POST", &format!("{question}/comment"), &commented)
                .await;
            assert_eq!(kept.status, 303, "{}", kept.body);
            issuer.sign_in_as("gil", claims(r#"{"groups": ["staff"]}"#));
            let refused = browser
                .request("POST", &format!("{question}/decline"), &form)
                .await;
            assert_eq!(refused.status, 403, "{}", refused.head);
            assert!(
                refused.body.contains("you have left a group"),
                "{}",
                refused.body
            );
            assert!(phase(&rig).await.is_open());
            // Nobody of the file's groups any more.
            let gone = browser.request("GET", &question, "").await;
            assert_ne!(gone.status, 200);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_is_not_known_at_the_provider_any_more_is_logged_out_at_the_next_act() {
        for refreshes in [true, false] {
            let issuer = Issuer::start();
            issuer.set_refreshes(refreshes);
            issuer.sign_in_as("gil", claims(LEADS));
            let (rig, mut browser, question) = at_issuer(&issuer).await;
            issuer.set_ended(true);
            let refused = decline(&mut browser, &question).await;
            assert_eq!(refused.status, 401, "{}", refused.head);
            assert!(phase(&rig).await.is_open());
            assert_eq!(browser.request("GET", &question, "").await.status, 303);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn while_the_provider_is_down_those_who_are_logged_in_go_on() {
        let issuer = Issuer::start();
        issuer.sign_in_as("gil", claims(LEADS));
        let (rig, mut browser, question) = at_issuer(&issuer).await;
        issuer.set_down(true);
        assert_eq!(decline(&mut browser, &question).await.status, 303);
        assert_eq!(phase(&rig).await, Phase::Declined);
    }

    #[tokio::test]
    async fn while_the_provider_is_down_the_login_says_so() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", gone.local_addr().unwrap());
        drop(gone);
        let _rig = serve(listener, 1, login(&issuer)).await;
        let mut browser = Browser::default();
        let down = browser
            .request("GET", &format!("http://{at}/login"), "")
            .await;
        assert_eq!(down.status, 503);
        assert!(down.body.contains("cannot be reached"), "{}", down.body);
        let token = browser
            .request(
                "POST",
                &format!("http://{at}/login/logout-token"),
                "logout_token=a.b.c",
            )
            .await;
        assert_eq!(token.status, 400, "{}", token.body);
        for junk in [
            "",
            "?",
            "?state=x",
            "?code=y&state=",
            "?state=x&state=y&code=z",
            "?error=access_denied",
        ] {
            let reply = browser
                .request("GET", &format!("http://{at}/login/return{junk}"), "")
                .await;
            assert_eq!(reply.status, 400, "{junk}");
        }
    }
}
