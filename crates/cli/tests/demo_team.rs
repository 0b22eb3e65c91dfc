//! `demo --team`: an issuer, a gateway with rules, two servers, and two people who sign in and agree, all with real programs.
#![cfg(feature = "full")]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[cfg(unix)]
use mcp_elicit_testkit::pty::{self, Terminal};
use reqwest::header::{COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use reqwest::{Client, Method, RequestBuilder, redirect};

/// The time that the demo may take for anything.
const WITHIN: Duration = Duration::from_secs(60);
/// The most pages that a sign-in leads through.
const MOST_STEPS: usize = 8;

/// A page, and the address at which it came.
struct Page {
    status: u16,
    at: String,
    text: String,
}

impl Page {
    /// Returns the value of the first attribute that follows `before`.
    fn after(&self, before: &str) -> &str {
        let (_, rest) = self
            .text
            .split_once(before)
            .unwrap_or_else(|| panic!("no {before} at {}: {}", self.at, self.text));
        rest.split('"').next().unwrap()
    }

    fn csrf(&self) -> &str {
        self.after("name=\"csrf\" value=\"")
    }
}

/// A browser of one person: follows redirects and keeps cookies by host and port.
struct Browser {
    client: Client,
    cookies: BTreeMap<(String, String), String>,
}

impl Browser {
    fn new() -> Self {
        // Another test of this process may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy();
        Self {
            client: client.build().unwrap(),
            cookies: BTreeMap::new(),
        }
    }

    async fn get(&mut self, at: &str) -> Page {
        self.go(Method::GET, at, None).await
    }

    async fn post(&mut self, at: &str, form: &str) -> Page {
        self.go(Method::POST, at, Some(form)).await
    }

    async fn go(&mut self, method: Method, at: &str, form: Option<&str>) -> Page {
        let (mut method, mut at, mut form) = (method, at.to_owned(), form);
        for _ in 0..MOST_STEPS {
            let origin: String = at.split('/').take(3).collect::<Vec<_>>().join("/");
            let request = self.client.request(method.clone(), &at);
            let request = self.with_cookies(request, &origin).header(ORIGIN, &origin);
            let request = match form {
                Some(form) => request
                    .header("content-type", "application/x-www-form-urlencoded")
                    .body(form.to_owned()),
                None => request,
            };
            let reply = request.send().await.unwrap();
            for cookie in reply.headers().get_all(SET_COOKIE) {
                let pair = cookie.to_str().unwrap().split(';').next().unwrap();
                let (name, value) = pair.split_once('=').unwrap();
                self.cookies
                    .insert((origin.clone(), name.to_owned()), value.to_owned());
            }
            let Some(next) = reply.headers().get(LOCATION) else {
                return Page {
                    status: reply.status().as_u16(),
                    at,
                    text: reply.text().await.unwrap(),
                };
            };
            let next = next.to_str().unwrap();
            at = if next.starts_with('/') {
                format!("{origin}{next}")
            } else {
                next.to_owned()
            };
            (method, form) = (Method::GET, None);
        }
        panic!("no end of redirects at {at}");
    }

    fn with_cookies(&self, request: RequestBuilder, origin: &str) -> RequestBuilder {
        let own = self.cookies.iter().filter(|((of, _), _)| of == origin);
        let pairs: Vec<String> = own
            .map(|((_, name), value)| format!("{name}={value}"))
            .collect();
        request.header(COOKIE, pairs.join("; "))
    }

    /// Signs in at the inbox as the person of this number on the issuer's page.
    async fn signed_in(inbox: &str, person: usize) -> Self {
        let mut browser = Self::new();
        let page = browser.get(&format!("{inbox}login")).await;
        let login = page.after("name=\"login\" value=\"");
        let form = format!("login={login}&person={person}");
        let issuer: String = page.at.split('/').take(3).collect::<Vec<_>>().join("/");
        let page = browser.post(&format!("{issuer}/authorize"), &form).await;
        // The pages are below a path that no address gives away.
        assert_eq!(page.status, 200);
        let inside = page.at.strip_prefix(inbox).unwrap();
        assert!(inside.len() > 40 && inside.ends_with('/'), "{}", page.at);
        browser
    }

    /// Waits until the list has a question other than `known`, and returns its address.
    async fn asked(&mut self, inbox: &str, known: &str) -> String {
        let found = async {
            loop {
                let page = self.get(inbox).await;
                let links = page.text.split("href=\"").skip(1);
                let links = links.filter_map(|rest| rest.split('"').next());
                let ids = links.filter_map(|link| Some(link.split_once("/q/")?.1));
                let mut new = ids.filter(|id| !known.ends_with(*id));
                if let Some(id) = new.next() {
                    return format!("{inbox}q/{id}");
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(WITHIN, found).await.unwrap()
    }

    /// Enters answers, and sends them if the review has these words.
    async fn fill(&mut self, question: &str, fields: &str, words: &str) -> Page {
        let page = self.get(question).await;
        let version = page.after("name=\"version\" value=\"");
        let form = format!("csrf={}&version={version}&{fields}", page.csrf());
        let review = self.post(&format!("{question}/review"), &form).await;
        assert!(review.text.contains(words), "{words}: {}", review.text);
        let seen = review.after("name=\"seen\" value=\"");
        let form = format!("csrf={}&version={version}&seen={seen}", review.csrf());
        self.post(&format!("{question}/accept"), &form).await
    }

    /// Agrees to exactly what the page shows.
    async fn confirm(&mut self, question: &str) -> Page {
        let page = self.get(question).await;
        let digest = page.after("name=\"digest\" value=\"");
        let form = format!("csrf={}&digest={digest}", page.csrf());
        self.post(&format!("{question}/confirm"), &form).await
    }
}

/// The running demo, which ends with the test.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the demo and returns the address of its inbox.
fn start() -> (Demo, String) {
    let program = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .args(["demo", "--team"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut demo = Demo(program.unwrap());
    let mut lines = BufReader::new(demo.0.stderr.take().unwrap()).lines();
    let line = lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.contains("Answer here:"))
        .unwrap();
    let at = line.find("http://").unwrap();
    let inbox = line[at..].trim_end_matches("\u{1b}[0m").to_owned();
    // The rest of its output is read, so that it never waits for a reader.
    std::thread::spawn(move || lines.for_each(drop));
    (demo, inbox)
}

#[tokio::test]
async fn two_people_answer_a_server_and_approve_a_call_whose_argument_one_of_them_changes() {
    let (mut demo, inbox) = tokio::task::spawn_blocking(start).await.unwrap();
    let mut ada = Browser::signed_in(&inbox, 0).await;
    let mut bob = Browser::signed_in(&inbox, 1).await;

    let deploy = ada.asked(&inbox, "").await;
    let page = ada.fill(&deploy, "f0=0&f1=first", "first").await;
    assert!(
        page.text.contains("You have agreed. 1 more must agree."),
        "{}",
        page.text
    );
    let again = ada.get(&deploy).await;
    assert!(
        !again.text.contains("name=\"digest\""),
        "nobody agrees twice: {}",
        again.text
    );
    let page = bob.confirm(&deploy).await;
    assert!(page.text.contains("by Ada and Bob"), "{}", page.text);

    let backups = ada.asked(&inbox, &deploy).await;
    let page = ada.get(&backups).await;
    for words in ["is about to be called", "delete_backup", "2026-11-01"] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    // The argument `archive` becomes true.
    let before = "changed from <del dir=\"auto\">false</del>";
    ada.fill(&backups, "f0=0", before).await;
    let page = bob.get(&backups).await;
    for words in [before, "Ada approved with archive changed"] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    let page = bob.confirm(&backups).await;
    assert!(page.text.contains("The call was approved"), "{}", page.text);

    let ended = tokio::task::spawn_blocking(move || {
        let mut said = String::new();
        let mut stdout = demo.0.stdout.take().unwrap();
        stdout.read_to_string(&mut said).unwrap();
        (demo.0.wait().unwrap(), said)
    });
    let (status, said) = tokio::time::timeout(WITHIN, ended).await.unwrap().unwrap();
    assert!(status.success(), "{said}");
    assert!(said.contains("Deployed to staging"), "{said}");
    assert!(
        said.contains("archived and deleted the backup of 2026-11-01"),
        "{said}"
    );
}

/// The keys of Ctrl-C.
#[cfg(unix)]
const CTRL_C: &str = "\x03";

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_the_demo_stays_until_it_is_ended() {
    let mut command = pty::command(env!("CARGO_BIN_EXE_mcp-elicit"));
    command.args(["demo", "--team"]);
    let mut terminal = Terminal::start(command, 120, 50);
    let seen = terminal.wait_for("Sign in as Ada there");
    let (_, rest) = seen.split_once("Answer here: ").unwrap();
    let inbox = rest.split_whitespace().next().unwrap().to_owned();
    let mut ada = Browser::signed_in(&inbox, 0).await;
    let mut bob = Browser::signed_in(&inbox, 1).await;
    let deploy = ada.asked(&inbox, "").await;
    ada.fill(&deploy, "f0=0&f1=first", "first").await;
    bob.confirm(&deploy).await;
    let backups = ada.asked(&inbox, &deploy).await;
    ada.fill(&backups, "f0=1", "false").await;
    bob.confirm(&backups).await;
    let seen = terminal.wait_for("Ctrl-C ends the demo.");
    assert!(seen.contains("deleted the backup of 2026-11-01"), "{seen}");
    for page in ["", "account", "audit"] {
        let page = ada.get(&format!("{inbox}{page}")).await;
        assert_eq!(page.status, 200, "{}", page.text);
    }
    terminal.press(CTRL_C);
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn a_configuration_that_is_kept_stays_after_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let demo = || {
        let mut demo = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"));
        demo.args(["demo", "--team", "--keep"]).arg(&kept);
        demo.stdin(Stdio::null()).stdout(Stdio::null());
        demo.stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut first = Demo(demo());
    let mut lines = BufReader::new(first.0.stderr.take().unwrap()).lines();
    lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.contains("Answer here:"))
        .unwrap();
    let stop = Command::new("kill")
        .args(["-INT", &first.0.id().to_string()])
        .status();
    assert!(stop.unwrap().success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let file = kept.join("gateway.toml");
    let path = file.display().to_string();
    assert!(
        rest.iter()
            .any(|line| line.contains("configuration is in") && line.contains(&path)),
        "{rest:?}"
    );
    assert_eq!(first.0.wait().unwrap().code(), Some(130));
    let checked = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .args(["gateway", "--check", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
    // Existing files are not overwritten.
    let mut second = Demo(demo());
    assert_eq!(second.0.wait().unwrap().code(), Some(2));
}

#[tokio::test]
async fn the_issuer_alone_serves_a_gateway_of_ones_own_and_keeps_its_secret() {
    let folder = tempfile::tempdir().unwrap();
    let mut secrets = Vec::new();
    for _ in 0..2 {
        let mut issuer = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"));
        issuer.args(["demo", "--issuer", "127.0.0.1:0", "--keep"]);
        issuer.arg(folder.path()).stdin(Stdio::null());
        issuer.args(["--inbox-url", "http://127.0.0.1:7879/"]);
        issuer.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut issuer = Demo(issuer.spawn().unwrap());
        let lines = BufReader::new(issuer.0.stdout.take().unwrap()).lines();
        let login: Vec<String> = lines.take(5).map(Result::unwrap).collect();
        let [table, mode, issuer_line, client, secret] = &login[..] else {
            panic!("{login:?}");
        };
        assert_eq!(
            [&**table, mode, client],
            ["[login]", "mode = \"oidc\"", "client-id = \"inbox\""]
        );
        let quoted = |line: &str| line.split('"').nth(1).unwrap().to_owned();
        let at = quoted(issuer_line);
        let discovery = format!("{at}/.well-known/openid-configuration");
        let found = Browser::new().client.get(discovery).send().await.unwrap();
        let found = found.text().await.unwrap();
        assert!(found.contains(&format!("\"issuer\":\"{at}\"")), "{found}");
        secrets.push(std::fs::read_to_string(quoted(secret)).unwrap());
        let stop = Command::new("kill")
            .args(["-INT", &issuer.0.id().to_string()])
            .status();
        assert!(stop.unwrap().success());
        assert_eq!(issuer.0.wait().unwrap().code(), Some(130));
        let mut said = String::new();
        let mut stderr = issuer.0.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        assert!(
            said.contains("\"http://127.0.0.1:7879\"") && !said.contains("error"),
            "{said}"
        );
    }
    assert_eq!(secrets[0], secrets[1]);
    // Any program that reaches it is let in.
    let open = Command::new(env!("CARGO_BIN_EXE_mcp-elicit"))
        .args(["demo", "--issuer", "0.0.0.0:0", "--keep"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(open.status.code(), Some(2), "{open:?}");
}
