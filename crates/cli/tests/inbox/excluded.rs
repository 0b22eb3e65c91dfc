//! A rule that requires other people than the caller: keys have owners, and a call without an owner is refused.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::thread;

use serde_json::{Value, json};

use crate::gateway::{Gateway, REVISION};
use crate::http::{self, Reply, send};
use crate::people::ADA_AND_BOB;
use crate::raw::{PROGRAM, call, command, initialize, text};

/// Callers have keys, and a proxy on this machine names the people at the pages.
const PROVED: &str = r#"
trusted-proxies = ["127.0.0.1"]
[auth]
mode = "keys"
[login]
mode = "proxy"
"#;

/// Others than the caller approve.
const RULES: &str = r#"
[[rules]]
name = "others"
tool = "deploy"
approve = true
ask = { group = "ops", not-caller = true }
"#;

fn start(state: &Path) -> (Gateway, String) {
    let server = format!("[servers.demo]\ncommand = [\"{PROGRAM}\", \"demo-server\"]\n");
    let gateway = Gateway::of_config(state, &format!("{PROVED}{ADA_AND_BOB}{RULES}{server}"));
    let at = gateway.serving.clone().unwrap();
    (gateway, at)
}

fn key(state: &Path, owner: &[&str]) -> String {
    let words = ["tokens", "make", "test", "--scope", "call", "--json"];
    let made = command(state, &[&words, owner].concat());
    assert!(made.status.success(), "{made:?}");
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    made["token"].as_str().unwrap().to_owned()
}

fn post(at: &str, key: &str, session: Option<&str>, body: &Value) -> Reply {
    http::post(at, "/mcp", Some(key), session, body)
}

/// Calls the tool to which the rule applies.
fn deploy(at: &str, key: &str) -> Reply {
    let opened = post(at, key, None, &initialize(REVISION, &json!({})));
    let session = opened.header("mcp-session-id").unwrap();
    post(at, key, Some(session), &call(7, "deploy", &json!({})))
}

/// A browser of a person whom the proxy names.
struct Browser<'g> {
    gateway: &'g Gateway,
    name: String,
    cookie: String,
}

impl<'g> Browser<'g> {
    fn of(gateway: &'g Gateway, person: &str) -> Self {
        let name = format!("X-Forwarded-User: {person}");
        let head = ["GET / HTTP/1.1", "Accept: text/html", &name];
        let page = send(&gateway.inbox, &head, "").unwrap();
        let cookie = page.header("set-cookie").unwrap();
        let cookie = cookie.split(';').next().unwrap();
        Self {
            gateway,
            cookie: format!("Cookie: {cookie}"),
            name,
        }
    }

    fn get(&self, path: &str) -> Reply {
        let line = format!("GET {path} HTTP/1.1");
        send(&self.gateway.inbox, &[&line, &self.name, &self.cookie], "").unwrap()
    }

    /// Waits for the page of the question.
    fn question(&self) -> String {
        self.gateway.wait_for(1);
        let page = self.get("/");
        let (_, rest) = page
            .body
            .split_once("/q/")
            .unwrap_or_else(|| panic!("{page:?}"));
        format!("/q/{}", rest.get(..32).unwrap())
    }

    fn decline(&self, question: &str) -> u16 {
        let page = self.get(question);
        let (_, rest) = page.body.split_once("name=\"csrf\" value=\"").unwrap();
        let csrf = rest.split('"').next().unwrap();
        let line = format!("POST {question}/decline HTTP/1.1");
        let origin = format!("Origin: http://{}", self.gateway.inbox);
        let head = [
            &line,
            &self.name,
            &self.cookie,
            &origin,
            "Content-Type: application/x-www-form-urlencoded",
        ];
        let form = format!("csrf={csrf}&version=0&drop=yes");
        send(&self.gateway.inbox, &head, &form).unwrap().status
    }
}

#[test]
fn the_owner_of_a_key_does_not_approve_the_calls_made_with_it() {
    let state = tempfile::tempdir().unwrap();
    let (gateway, at) = start(state.path());
    let (ada, bob) = (Browser::of(&gateway, "ada"), Browser::of(&gateway, "bob"));
    let adas = key(state.path(), &["--for", "ada"]);
    thread::scope(|threads| {
        let waits = threads.spawn(|| deploy(&at, &adas));
        let question = bob.question();
        let seen = ada.get(&question).body;
        assert!(
            seen.contains("You make this call, so others have to answer"),
            "{seen}"
        );
        assert_eq!(ada.decline(&question), 409);
        // The question is for Bob, not for Ada.
        let waiting = "One question is waiting for you";
        assert!(bob.get("/").body.contains(waiting));
        assert!(!ada.get("/").body.contains(waiting));
        assert_eq!(bob.decline(&question), 303);
        let done = waits.join().unwrap();
        assert!(
            text(&done.response()).contains("was not called"),
            "{done:?}"
        );
    });
    // A program's key has no owner: both may answer.
    let programs = key(state.path(), &["--no-person"]);
    thread::scope(|threads| {
        let waits = threads.spawn(|| deploy(&at, &programs));
        assert_eq!(ada.decline(&ada.question()), 303);
        let done = waits.join().unwrap();
        assert!(
            text(&done.response()).contains("was not called"),
            "{done:?}"
        );
    });
    let listed = command(state.path(), &["tokens", "list"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains("for ada") && listed.contains("no person's"),
        "{listed}"
    );
}

#[test]
fn a_call_of_which_nobody_knows_whose_it_is_waits_for_nobody() {
    let state = tempfile::tempdir().unwrap();
    let (gateway, at) = start(state.path());
    // Without an owner, and with an owner who is not in the file.
    for (owner, why) in [
        (&[][..], "not known which person calls"),
        (
            &["--for", "adda"],
            "its key is made for `adda`, who is not in [people]",
        ),
    ] {
        let refused = deploy(&at, &key(state.path(), owner)).response();
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        let words = text(&refused);
        assert!(words.contains("`others`") && words.contains(why), "{words}");
    }
    assert!(gateway.waiting().is_empty());
    let audit = command(state.path(), &["audit", "--json"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    assert_eq!(audit.matches("refused-by-rule").count(), 2, "{audit}");
    // A starting gateway reports it immediately.
    drop(gateway);
    let (gateway, _) = start(state.path());
    let said = || gateway.said.lock().unwrap().clone();
    let is_told = || said().contains("a key is made for somebody who is not in [people]");
    let mut looks = 0..6_000;
    while !is_told() && looks.next().is_some() {
        thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(said().contains("adda"), "{}", said());
    let both = [
        "tokens",
        "make",
        "x",
        "--scope",
        "call",
        "--for",
        "ada",
        "--no-person",
    ];
    assert_eq!(command(state.path(), &both).status.code(), Some(2));
}

/// The beginning of a form, which can be sent without a login.
const HALF: &str = "Content-Length: 1000\r\n\r\na";

#[test]
fn programs_of_a_person_and_half_forms_of_anybody_cost_nobody_a_session_or_the_inbox() {
    let state = tempfile::tempdir().unwrap();
    let rest = format!(
        "trusted-proxies = [\"127.0.0.1\"]\n[login]\nmode = \"proxy\"\n{ADA_AND_BOB}[servers.demo]\ncommand = [\"{PROGRAM}\", \"demo-server\"]\n"
    );
    let gateway = Gateway::of_config(state.path(), &rest);
    let ada = Browser::of(&gateway, "ada");
    assert_eq!(ada.get("/account").status, 200);
    // A program of hers that keeps no cookie, with the headers of one or of a browser.
    for accept in ["Accept: */*", "Accept: text/html"] {
        for _ in 0..30 {
            let head = ["GET / HTTP/1.1", accept, &ada.name];
            let page = send(&gateway.inbox, &head, "").unwrap();
            let is_browser = accept.contains("html");
            assert_eq!(
                (page.status, page.header("set-cookie").is_some()),
                (200, is_browser)
            );
        }
    }
    let is_hers = |reply: &Reply| reply.status == 200 && reply.header("set-cookie").is_none();
    assert!(is_hers(&ada.get("/account")));
    let inbox = &gateway.inbox;
    let owing: Vec<TcpStream> = (0..400)
        .map(|_| {
            let mut stream = TcpStream::connect(inbox).unwrap();
            let head = format!(
                "POST /logout HTTP/1.1\r\nHost: {inbox}\r\n{}\r\n{HALF}",
                ada.name
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert!(is_hers(&ada.get("/account")));
    drop(owing);
}
