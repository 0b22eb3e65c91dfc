//! A running gateway, its client's end of stdio, and its inbox.

use std::io::{BufRead as _, BufReader, Read};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use mcp_elicit_forms::web::SessionStore as _;
use mcp_elicit_inbox::state_folder::StateFolder;
use serde_json::{Value, json};

use crate::http::{PATIENCE, Reply, send};
use crate::raw::{self, Raw};

/// The revision that the client speaks.
pub(crate) const REVISION: &str = "2025-11-25";

/// A gateway that runs until this is dropped.
pub(crate) struct Gateway {
    client: Raw,
    /// Host and port of the inbox.
    pub(crate) inbox: String,
    /// A link that signs one browser in, once.
    pub(crate) login: String,
    /// Host and port of `--listen`.
    pub(crate) serving: Option<String>,
    pub(crate) token: String,
    /// All of its stderr so far.
    pub(crate) said: Arc<Mutex<String>>,
}

/// The arguments that lift the limits, which most of these tests would exceed.
pub(crate) const NO_LIMITS: [&str; 4] = ["--pending", "off", "--questions-per-minute", "off"];

impl Gateway {
    /// Returns the memory of the process that is resident, in bytes.
    #[cfg(target_os = "linux")]
    pub(crate) fn resident(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes: usize = line
            .unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .unwrap();
        kilobytes * 1024
    }

    /// Starts a gateway over this state folder, in front of `server`: a program after `--`, or `--upstream URL`.
    pub(crate) fn start(state: &Path, more: &[&str], server: &[&str]) -> Self {
        let command = raw::gateway(state, more, server);
        Self::run(state, command, more.contains(&"--listen"))
    }

    /// Starts a gateway in the session of a desktop, whose opener of pages is in the folder `bin`.
    pub(crate) fn on_desktop(state: &Path, more: &[&str], server: &[&str], bin: &Path) -> Self {
        let mut command = raw::gateway(state, more, server);
        let others = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{others}", bin.display()));
        command.env("DISPLAY", ":0");
        Self::run(state, command, false)
    }

    /// Starts a gateway over this state folder with the rest of its configuration. It serves HTTP clients on a free
    /// port.
    #[cfg(feature = "full")]
    pub(crate) fn of_config(state: &Path, rest: &str) -> Self {
        // The folder belongs to its owner only before any other file is in it.
        StateFolder::open(state).unwrap();
        let file = state.join("gateway.toml");
        let (folder, at) = (state.display(), "127.0.0.1:0");
        let text = format!("state = \"{folder}\"\ninbox = \"{at}\"\nlisten = \"{at}\"\n{rest}");
        std::fs::write(&file, text).unwrap();
        let mut command = std::process::Command::new(raw::PROGRAM);
        command.args(["gateway", "--config"]).arg(&file);
        Self::run(state, command, true)
    }

    pub(crate) fn run(state: &Path, command: std::process::Command, serves: bool) -> Self {
        let mut gateway = Self::without_link(state, command, serves);
        gateway.login = login_link(state, &gateway.inbox);
        gateway
    }

    /// Starts a gateway whose record this process cannot open, so that it makes no link.
    pub(crate) fn without_link(
        state: &Path,
        mut command: std::process::Command,
        serves: bool,
    ) -> Self {
        command.stderr(Stdio::piped());
        let mut client = Raw::start(command);
        let (links, said) = listen(client.child.stderr.take().unwrap());
        let told = links
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("it says where the inbox is: {:?}", said.lock()));
        let inbox = host(&told);
        let serving = serves.then(|| {
            let link = links
                .recv_timeout(PATIENCE)
                .expect("it says where it serves");
            host(&link)
        });
        Self {
            login: String::new(),
            inbox,
            serving,
            token: std::fs::read_to_string(state.join("inbox.token"))
                .unwrap()
                .trim()
                .to_owned(),
            client,
            said,
        }
    }

    /// Makes a request to the API, with the token.
    pub(crate) fn api(&self, method: &str, path: &str, body: &str) -> Option<Reply> {
        api(&self.inbox, &self.token, method, path, body)
    }

    /// Returns the pending questions of all pages.
    pub(crate) fn waiting(&self) -> Vec<Value> {
        let mut all = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!("/api/questions?most=1000{after}");
            let said = self
                .api("GET", &path, "")
                .expect("the inbox answers")
                .json();
            all.extend(said["questions"].as_array().cloned().unwrap_or_default());
            match said["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return all,
            }
        }
    }

    /// Waits for this number of pending questions.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Value> {
        for _ in 0..6_000 {
            let said = self.api("GET", "/api/questions?most=1", "");
            if said.is_some_and(|said| said.json()["waiting"] == count) {
                return self.waiting();
            }
            thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!(
            "there never were {count} questions, but {:?}",
            self.waiting()
        );
    }

    /// Submits a person's action. Returns the status.
    pub(crate) fn answer(&self, id: &str, body: &Value) -> u16 {
        let path = format!("/api/questions/{id}/answer");
        self.api("POST", &path, &body.to_string())
            .map_or(0, |reply| reply.status)
    }

    /// Opens the session of a client that cannot be asked.
    pub(crate) fn initialize(&mut self) {
        self.client.initialize(REVISION, &json!({}));
    }
}

/// A client on stdio.
impl Deref for Gateway {
    type Target = Raw;

    fn deref(&self) -> &Raw {
        &self.client
    }
}

impl DerefMut for Gateway {
    fn deref_mut(&mut self) -> &mut Raw {
        &mut self.client
    }
}

/// Creates a link that signs one browser in, once, as `mcp-elicit inbox open` does.
pub(crate) fn login_link(state: &Path, inbox: &str) -> String {
    let mut key = String::new();
    let hour = std::time::Duration::from_secs(60 * 60);
    StateFolder::at(state)
        .sessions()
        .change(&mut |table| {
            key = table.add_login(now(), hour)?;
            Ok(())
        })
        .unwrap();
    format!("http://{inbox}/login?key={key}")
}

#[expect(clippy::disallowed_methods, reason = "a link ends at a time of day")]
fn now() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

/// Makes a request to the API.
pub(crate) fn api(at: &str, token: &str, method: &str, path: &str, body: &str) -> Option<Reply> {
    let line = format!("{method} {path} HTTP/1.1");
    let token = format!("Authorization: Bearer {token}");
    send(at, &[&line, &token, "Content-Type: application/json"], body)
}

/// Returns host and port of a link.
pub(crate) fn host(link: &str) -> String {
    let rest = link.split_once("://").map_or(link, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest).to_owned()
}

/// Returns the links that the gateway says, and all that it says.
pub(crate) fn listen(
    stderr: impl Read + Send + 'static,
) -> (mpsc::Receiver<String>, Arc<Mutex<String>>) {
    let (links, found) = mpsc::channel();
    let said = Arc::new(Mutex::new(String::new()));
    let all = said.clone();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // With `--log json`, each line is a record.
            let record = serde_json::from_str::<Value>(&line).ok();
            let message = record
                .as_ref()
                .and_then(|record| record["fields"]["message"].as_str());
            let told = message.unwrap_or(&line);
            let link = told
                .strip_prefix("inbox: ")
                .or_else(|| told.strip_prefix("serving: "));
            if let Some(link) = link {
                let _ = links.send(link.to_owned());
            }
            let mut all = all.lock().unwrap();
            all.push_str(&line);
            all.push('\n');
        }
    });
    (found, said)
}
