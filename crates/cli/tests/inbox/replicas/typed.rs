//! A person in a browser without scripts, whose requests go to one gateway after the other: what was typed at one is there
//! at the others, until the question ends.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_testkit::chromium::{Chromium, Setup};
use mcp_elicit_testkit::postgres::{PostgresServer, TestDatabase};
use serde_json::json;

use super::balancer;
use super::replica::{LOOK, LOOKS};
use crate::gateway::{Gateway, REVISION};
use crate::http::{Reply, post, send};
use crate::people::ADA_AND_BOB;
use crate::raw::{self, call, initialize, text};

/// Two gateways of one record behind a balancer that knows no session.
struct Rig {
    server: &'static PostgresServer,
    database: TestDatabase,
    gateways: [Gateway; 2],
    /// Host and port of the balancer.
    at: String,
    behind: balancer::Addresses,
    _folder: tempfile::TempDir,
}

impl Rig {
    /// Starts them; `None` on a machine without PostgreSQL.
    fn start() -> Option<Self> {
        let server = PostgresServer::shared()?;
        let database = server.database();
        let folder = tempfile::tempdir().unwrap();
        let behind: balancer::Addresses = Arc::new(Mutex::new(Vec::new()));
        let at = balancer::start(behind.clone());
        let first = folder.path().join("a");
        let a = start(&first, &database, &at);
        let second = folder.path().join("b");
        StateFolder::open(&second).unwrap();
        for name in ["seal.key", "identity.key"] {
            std::fs::copy(first.join(name), second.join(name)).unwrap();
        }
        let b = start(&second, &database, &at);
        *behind.lock().unwrap() = vec![Some(a.inbox.clone()), Some(b.inbox.clone())];
        Some(Self {
            server,
            database,
            gateways: [a, b],
            at,
            behind,
            _folder: folder,
        })
    }

    fn drafts(&self) -> String {
        let count = "SELECT count(*) FROM mcp_elicit.draft";
        self.server.sql(&self.database.name, count).unwrap()
    }
}

/// Starts a gateway whose pages people open at the balancer. A proxy on this machine names them.
fn start(state: &Path, database: &TestDatabase, balancer: &str) -> Gateway {
    StateFolder::open(state).unwrap();
    let (folder, program) = (state.display(), raw::PROGRAM);
    // It says the address of the balancer, so its own one is chosen here.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let inbox = free.local_addr().unwrap().to_string();
    drop(free);
    let text = format!(
        "state = \"{folder}\"\ninbox = \"{inbox}\"\ninbox-url = \"http://{balancer}\"\nlisten = \"127.0.0.1:0\"\n\
         record = \"{}\"\ntrusted-proxies = [\"127.0.0.1\"]\n[login]\nmode = \"proxy\"\n{ADA_AND_BOB}\
         [[rules]]\nname = \"ask\"\ntool = \"*\"\nask = {{ group = \"ops\" }}\n\
         [servers.demo]\ncommand = [\"{program}\", \"demo-server\"]\n",
        database.address
    );
    let file = state.join("gateway.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(program);
    command.args(["gateway", "--config"]).arg(&file);
    let mut gateway = Gateway::without_link(state, command, true);
    gateway.inbox = inbox;
    gateway
}

/// Calls the tool that asks for a profile; `None` if the gateway ends first.
fn profile(at: &str) -> Option<Reply> {
    let opened = post(at, "/mcp", None, None, &initialize(REVISION, &json!({})));
    let session = opened.header("mcp-session-id").unwrap();
    let session = format!("Mcp-Session-Id: {session}");
    let head = [
        "POST /mcp HTTP/1.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        &session,
    ];
    send(at, &head, &call(7, "profile", &json!({})).to_string())
}

/// A browser of a person whom the proxy names. It makes a new connection for each request.
struct Browser<'r> {
    rig: &'r Rig,
    name: String,
    cookie: String,
}

impl<'r> Browser<'r> {
    fn of(rig: &'r Rig, person: &str) -> Self {
        let mut browser = Self {
            rig,
            name: format!("X-Forwarded-User: {person}"),
            cookie: "Cookie: ".to_owned(),
        };
        let page = browser.get("/");
        let cookie = page.header("set-cookie").unwrap();
        let cookie = cookie.split(';').next().unwrap();
        browser.cookie.push_str(cookie);
        browser
    }

    /// Waits for the page of the only question.
    fn question(&self) -> String {
        for _ in 0..LOOKS {
            let list = self.get("/");
            if let Some((_, rest)) = list.body.split_once("/q/") {
                return format!("/q/{}", rest.get(..32).unwrap());
            }
            thread::sleep(LOOK);
        }
        panic!("no question");
    }

    fn get(&self, path: &str) -> Reply {
        let line = format!("GET {path} HTTP/1.1");
        let head = [&line, "Accept: text/html", &self.name, &self.cookie];
        send(&self.rig.at, &head, "").unwrap()
    }

    /// Submits the form of a page with these fields, and returns where it leads.
    fn submit(&self, page: &Reply, path: &str, fields: &str) -> String {
        let hidden = |name: &str| {
            let begin = format!("name=\"{name}\" value=\"");
            let (_, rest) = page.body.split_once(&begin)?;
            Some(format!("{name}={}&", rest.split('"').next()?))
        };
        let all = ["csrf", "version", "seen"];
        let hidden: String = all.into_iter().filter_map(hidden).collect();
        let line = format!("POST {path} HTTP/1.1");
        let origin = format!("Origin: http://{}", self.rig.at);
        let head = [
            &line,
            &self.name,
            &self.cookie,
            &origin,
            "Content-Type: application/x-www-form-urlencoded",
        ];
        let done = send(&self.rig.at, &head, &format!("{hidden}{fields}")).unwrap();
        assert_eq!(done.status, 303, "{done:?}");
        let led = done.header("location").unwrap();
        led.split('#').next().unwrap().to_owned()
    }
}

#[test]
fn a_form_that_is_filled_in_at_one_gateway_is_finished_at_another() {
    let Some(rig) = Rig::start() else { return };
    let [a, _] = &rig.gateways;
    let at = a.serving.clone().unwrap();
    thread::scope(|threads| {
        let waits = threads.spawn(|| profile(&at).unwrap());
        let (ada, bob) = (Browser::of(&rig, "ada"), Browser::of(&rig, "bob"));
        let question = ada.question();
        let page = ada.get(&question);
        let review = format!("{question}/review");
        // Too young, and the list of choices is not filled in as the server wrote it.
        let typed = "f0=Ada+Lovelace&f1=ada%40example.com&f5=7";
        let led = ada.submit(&page, &review, typed);
        assert!(led.ends_with("?check"), "{led}");
        // Twice: at each of the gateways.
        let pages = [ada.get(&led), ada.get(&led)];
        for page in &pages {
            for part in [
                "Ada Lovelace",
                "ada@example.com",
                "name=\"f5\"",
                "One answer needs another look",
            ] {
                assert!(page.body.contains(part), "{part}: {}", page.body);
            }
        }
        assert_eq!(rig.drafts(), "1");
        for _ in 0..2 {
            let others = bob.get(&question);
            assert_eq!(others.status, 200);
            assert!(!others.body.contains("Lovelace"), "a draft is one's own");
        }
        // The browser sends what the page shows, and the corrected age.
        let typed = "f0=Ada+Lovelace&f1=ada%40example.com&f5=36";
        let led = ada.submit(&pages[0], &review, typed);
        assert!(led.ends_with("/review"), "{led}");
        let pages = [ada.get(&led), ada.get(&led)];
        for page in &pages {
            assert!(page.body.contains("Ada Lovelace"), "{}", page.body);
        }
        // The review of one gateway is sent at the other.
        let accept = format!("{question}/accept");
        let led = ada.submit(&pages[0], &accept, "");
        assert_eq!(led, question, "{led}");
        let done = waits.join().unwrap();
        let said = text(&done.response()).to_owned();
        assert!(
            said.contains("Ada Lovelace") && said.contains("36"),
            "{said}"
        );
    });
    // With its question, and in no log.
    assert_eq!(rig.drafts(), "0");
    for gateway in &rig.gateways {
        let said = gateway.said.lock().unwrap();
        assert!(!said.contains("Lovelace"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_finished_in_the_browser_after_its_gateway_has_ended() {
    let Some(mut rig) = Rig::start() else { return };
    let Some(page) = Chromium::start(Setup::default()).await else {
        return;
    };
    let headers = json!({"headers": {"X-Forwarded-User": "ada"}});
    page.cdp("Network.enable", json!({})).await;
    page.cdp("Network.setExtraHTTPHeaders", headers).await;
    rig.behind.lock().unwrap()[1] = None;
    let [a, b] = rig
        .gateways
        .each_ref()
        .map(|one| one.serving.clone().unwrap());
    let cut = thread::spawn(move || profile(&a));
    page.open(&format!("http://{}/", rig.at)).await;
    page.click("[data-row] a").await;
    page.fill("#f0", "Ada Lovelace").await;
    page.fill("#f1", "ada@example.com").await;
    page.fill("#f5", "36").await;
    page.click("[data-act=review]").await;
    page.at("[data-act=accept]").await;
    rig.gateways[0].child.kill().unwrap();
    cut.join().unwrap();
    let other = rig.gateways[1].inbox.clone();
    *rig.behind.lock().unwrap() = vec![None, Some(other)];
    page.click("[data-act=change]").await;
    page.at("#f0").await;
    assert_eq!(page.value("#f0").await, "Ada Lovelace");
    assert_eq!(page.value("#f1").await, "ada@example.com");
    assert_eq!(page.value("#f5").await, "36");
    page.click("[data-act=review]").await;
    page.click("[data-act=accept]").await;
    for _ in 0..LOOKS {
        if rig.drafts() == "0" {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    assert_eq!(rig.drafts(), "0");
    // The call made again gets the answer.
    let again = tokio::task::spawn_blocking(move || profile(&b).unwrap());
    let said = text(&again.await.unwrap().response()).to_owned();
    assert!(
        said.contains("Ada Lovelace") && said.contains("36"),
        "{said}"
    );
}
