//! Web push: the real program with its own configuration, a device that is added on the inbox's own pages, and a
//! stand-in for a push service that checks the gateway's token and decrypts as a browser does.
#![cfg(all(unix, feature = "full"))]
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

#[path = "raw/people.rs"]
mod people;
#[path = "raw/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod raw;

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use mcp_elicit_testkit::peers;
use people::ADA_AND_BOB;
use raw::{PROGRAM, Raw};
use reqwest::{Client, Response};
use serde_json::{Value, json};

/// A gateway behind a proxy on this machine, which names people.
struct Running {
    client: Raw,
    inbox: String,
    state: PathBuf,
    _folder: tempfile::TempDir,
}

impl Running {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (state, file) = (
            folder.path().join("state"),
            folder.path().join("gateway.toml"),
        );
        let tables = format!(
            r#"
inbox = "127.0.0.1:0"
trusted-proxies = ["127.0.0.1"]
[login]
mode = "proxy"
subject-header = "X-User"
{ADA_AND_BOB}
[[rules]]
name = "where-to"
tool = "deploy"
ask = {{ group = "ops" }}
reveal = "minimal"
[channels.push]
contact = "mailto:gateway@example.com"
hosts = ["127.0.0.1"]
allow-private = true
[servers.demo]
command = ["{PROGRAM}", "demo-server"]
"#
        );
        std::fs::write(&file, tables).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["gateway", "--state"]).arg(&state);
        command.arg("--config").arg(&file).stderr(Stdio::piped());
        let mut client = Raw::start(command);
        let stderr = client.child.stderr.take().unwrap();
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let said = lines.by_ref().find(|line| line.contains("inbox: http"));
        let said = said.unwrap();
        let inbox = said.split("inbox: ").nth(1).unwrap();
        let inbox = inbox.split(' ').next().unwrap();
        let inbox = inbox.trim_end_matches('/').to_owned();
        // The output is read to its end, so that the gateway never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        client.initialize("2025-11-25", &json!({"elicitation": {"form": {}}}));
        Self {
            client,
            inbox,
            state,
            _folder: folder,
        }
    }
}

/// A browser behind the proxy.
struct Browser<'a> {
    gateway: &'a Running,
    name: &'static str,
    http: Client,
    cookies: String,
}

impl<'a> Browser<'a> {
    async fn enter(gateway: &'a Running, name: &'static str) -> Self {
        let http = client();
        let mut browser = Self {
            gateway,
            name,
            http,
            cookies: String::new(),
        };
        let entered = browser.get("/").await;
        browser.cookies = cookies(&entered);
        browser
    }

    async fn get(&self, path: &str) -> Response {
        let url = format!("{}{path}", self.gateway.inbox);
        let request = self.http.get(url).header("x-user", self.name);
        let request = request.header("accept", "text/html");
        let request = request.header("cookie", &self.cookies);
        request.send().await.unwrap()
    }

    async fn post(&self, path: &str, kind: &str, body: String) -> Response {
        let inbox = &self.gateway.inbox;
        let request = self.http.post(format!("{inbox}{path}"));
        let request = request
            .header("x-user", self.name)
            .header("cookie", &self.cookies)
            .header("origin", inbox)
            .header("content-type", kind);
        request.body(body).send().await.unwrap()
    }

    /// Adds the browser as a device, as the script of the page does.
    async fn add(&mut self, subscription: &Value) -> Response {
        let page = self.get("/account").await.text().await.unwrap();
        let mut body = subscription.clone();
        body["csrf"] = after(&page, "data-csrf=\"").into();
        let kind = "application/json";
        let added = self.post("/account/devices", kind, body.to_string()).await;
        let device = cookies(&added);
        if !device.is_empty() {
            self.cookies = format!("{}; {device}", self.cookies);
        }
        added
    }
}

fn cookies(reply: &Response) -> String {
    let all = reply.headers().get_all("set-cookie").iter();
    let all = all.map(|cookie| {
        cookie
            .to_str()
            .unwrap()
            .split(';')
            .next()
            .unwrap()
            .to_owned()
    });
    all.collect::<Vec<_>>().join("; ")
}

fn after(page: &str, mark: &str) -> String {
    let (_, rest) = page
        .split_once(mark)
        .unwrap_or_else(|| panic!("no {mark}: {page}"));
    rest.split('"').next().unwrap().to_owned()
}

fn client() -> Client {
    // Another test of this process may have installed the same provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap()
}

async fn ask(url: &str) -> Value {
    let reply = client()
        .get(url)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    serde_json::from_str(&reply).unwrap()
}

/// Waits until the push service has this number of messages.
async fn got(service: &str, count: usize) -> Vec<Value> {
    for _ in 0..3_000 {
        let got = ask(&format!("{service}/got")).await;
        let got = got.as_array().unwrap();
        if got.len() >= count {
            return got.clone();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the push service did not get {count} messages");
}

fn content(message: &Value) -> Value {
    serde_json::from_str(message["content"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_was_added_on_the_page_shows_what_the_gateway_sends() {
    let Some(service) = peers::channel_script("push.py") else {
        return;
    };
    let service = service.listen();
    let mut gateway = Running::start();
    let key = gateway.state.join("push.key");
    let mode = std::fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let url = service.url();

    let mut ada = Browser::enter(&gateway, "ada").await;
    let account = ada.get("/account").await.text().await.unwrap();
    let public_key = after(&account, "data-key=\"");
    let subscription = ask(&format!("{url}/subscription")).await;
    // The gateway sends to push services only, even if a person asks for another host.
    let mut inside = subscription.clone();
    for elsewhere in [
        "https://169.254.169.254/latest",
        "https://internal.example.com/x",
        "http://example.com/x",
        "file:///etc/passwd",
    ] {
        inside["endpoint"] = elsewhere.into();
        assert_eq!(ada.add(&inside).await.status(), 422, "{elsewhere}");
    }
    assert_eq!(ada.add(&subscription).await.status(), 204);
    // Bob's browser is no longer known to its push service.
    let mut bob = Browser::enter(&gateway, "bob").await;
    let mut gone = ask(&format!("{url}/subscription")).await;
    gone["endpoint"] = format!("{url}/gone").into();
    assert_eq!(bob.add(&gone).await.status(), 204);
    let (ada_cookies, bob_cookies) = (ada.cookies.clone(), bob.cookies.clone());

    gateway
        .client
        .call(2, "deploy", &json!({"build": 4812, "branch": "main"}));
    let messages = got(url, 1).await;
    let first = content(&messages[0]);
    assert_eq!(messages[0]["key"], public_key.as_str());
    assert_eq!(messages[0]["claims"]["sub"], "mailto:gateway@example.com");
    assert_eq!(first["kind"], "question.asked");
    // The rule reveals only the server's name.
    let title = first["title"].as_str().unwrap();
    assert!(title.contains("demo") && first["body"] == "", "{first}");
    assert!(!first.to_string().contains("deploy"), "{first}");
    let path = first["path"].as_str().unwrap().to_owned();
    let id = first["id"].as_str().unwrap();
    assert_eq!(path, format!("/q/{id}"));

    let again = |name, cookies: &str| Browser {
        gateway: &gateway,
        name,
        http: client(),
        cookies: cookies.to_owned(),
    };
    let (ada, bob) = (again("ada", &ada_cookies), again("bob", &bob_cookies));
    // The removed device is no longer on any list.
    loop {
        let page = bob.get("/account").await.text().await.unwrap();
        if !page.contains("data-device") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The page of the question shows who was notified, and who was not.
    let told = [
        "Notified through a browser notification: ada",
        "Could not be notified through a browser notification (address-gone): bob",
    ];
    let mut page = String::new();
    for _ in 0..3_000 {
        page = ada.get(&path).await.text().await.unwrap();
        if told.iter().all(|line| page.contains(line)) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(told.iter().all(|line| page.contains(line)), "{page}");
    let account = ada.get("/account").await.text().await.unwrap();
    assert!(account.contains("last notified just now"), "{account}");
    let audit = raw::command(&gateway.state, &["audit", "--event", "device-removed"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    assert!(
        audit.lines().count() == 1
            && audit.contains("  of bob  device ")
            && audit.contains("by push service"),
        "{audit}"
    );
    // The end replaces the first message.
    let form = format!("csrf={}&drop=yes", after(&page, "name=\"csrf\" value=\""));
    let kind = "application/x-www-form-urlencoded";
    let declined = ada.post(&format!("{path}/decline"), kind, form).await;
    assert_eq!(declined.status(), 303);
    let messages = got(url, 2).await;
    assert_eq!(messages[0]["topic"], messages[1]["topic"]);
    assert_eq!(content(&messages[1])["kind"], "question.declined");

    // After the logout, the device gets no message.
    let page = ada.get("/account").await.text().await.unwrap();
    let form = format!("csrf={}", after(&page, "name=\"csrf\" value=\""));
    assert_eq!(ada.post("/logout", kind, form).await.status(), 303);
    let record = rusqlite::Connection::open(gateway.state.join("record.sqlite")).unwrap();
    let text = "SELECT count(*) FROM shared WHERE kind = 'devices'";
    let devices: i64 = record.query_row(text, [], |row| row.get(0)).unwrap();
    assert_eq!(devices, 0);
}
