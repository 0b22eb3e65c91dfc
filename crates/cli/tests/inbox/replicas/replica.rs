//! One gateway of several, with a state folder of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::collector;
use crate::gateway::{Gateway, NO_LIMITS, host, listen};
use crate::http::{Reply, send_within};
use crate::raw::{self, Raw};

/// The interval at which something is looked at, and the number of times before a test gives up.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
pub(crate) const LOOKS: usize = 1_200;

/// A running gateway; it is killed when this is dropped.
pub(crate) struct Replica {
    process: Raw,
    /// Host and port of its inbox.
    pub(crate) inbox: String,
    /// Host and port at which it serves clients.
    pub(crate) serving: String,
    /// The token of its inbox.
    pub(crate) token: String,
    /// All of its stderr so far.
    pub(crate) said: Arc<Mutex<String>>,
}

/// The parts that are the same for each.
pub(crate) struct Deployment {
    folder: tempfile::TempDir,
    record: String,
    /// The arguments with the server.
    server: Vec<String>,
    hold: String,
    /// `true` if each takes requests of the others.
    forwards: bool,
    /// The seconds in which calls may end after SIGTERM.
    drain: String,
    /// The collector of traces.
    collector: Option<String>,
    options: Vec<String>,
}

impl Deployment {
    /// Creates one with this record, before this server; calls are held for this number of seconds.
    pub(crate) fn new(record: &str, upstream: &str, hold: u32) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            record: record.to_owned(),
            server: vec!["--upstream".to_owned(), upstream.to_owned()],
            hold: hold.to_string(),
            forwards: false,
            drain: "0".to_owned(),
            collector: None,
            options: Vec::new(),
        }
    }

    /// Lets each of the replicas start this program as its server.
    pub(crate) fn before_program(self, program: &[&str]) -> Self {
        let words = ["--"].iter().chain(program);
        let words: Vec<_> = words.map(|word| (*word).to_owned()).collect();
        self.before(&words)
    }

    /// Lets each of the replicas reach the server that these arguments name.
    pub(crate) fn before(self, server: &[String]) -> Self {
        Self {
            server: server.to_vec(),
            ..self
        }
    }

    /// Gives each of the replicas these options too.
    pub(crate) fn with(self, options: &[&str]) -> Self {
        Self {
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            ..self
        }
    }

    /// Lets each of the replicas forward requests of sessions that others have.
    pub(crate) fn forwarding(self) -> Self {
        Self {
            forwards: true,
            ..self
        }
    }

    /// Lets calls end for this number of seconds after SIGTERM.
    pub(crate) fn draining(self, seconds: u32) -> Self {
        Self {
            drain: seconds.to_string(),
            ..self
        }
    }

    /// Lets each of the replicas send traces to this collector.
    pub(crate) fn traced_at(self, collector: &str) -> Self {
        Self {
            collector: Some(collector.to_owned()),
            ..self
        }
    }

    /// Returns the state folder of this replica. Each has the keys of the first.
    pub(crate) fn state(&self, number: usize) -> PathBuf {
        let of = |number: usize| self.folder.path().join(number.to_string());
        let (first, own) = (of(0), of(number));
        if number > 0 && !own.exists() {
            std::fs::create_dir(&own).unwrap();
            for name in ["seal.key", "identity.key"] {
                std::fs::copy(first.join(name), own.join(name)).unwrap();
            }
        }
        own
    }

    /// Returns the command that starts this replica, which serves clients over HTTP or one on stdio.
    fn command(&self, number: usize, over_http: bool) -> Command {
        let state = self.state(number);
        let at = "127.0.0.1:0";
        let mut more = vec!["--record", &self.record, "--inbox", at];
        more.extend(["--hold", &self.hold, "--drain", &self.drain]);
        more.extend(NO_LIMITS);
        more.extend(self.options.iter().map(String::as_str));
        if over_http {
            more.extend(["--listen", at]);
            if self.forwards {
                more.extend(["--peer-listen", at]);
            }
        }
        let server: Vec<&str> = self.server.iter().map(String::as_str).collect();
        let mut command = of_measured_program(raw::gateway(&state, &more, &server));
        if let Some(collector) = &self.collector {
            collector::configure(&mut command, collector);
        }
        command.stderr(Stdio::piped());
        command
    }

    /// Starts this replica for a client on stdio.
    pub(crate) fn on_stdio(&self, number: usize) -> Gateway {
        let command = self.command(number, false);
        Gateway::without_link(&self.state(number), command, false)
    }

    /// Starts this replica. Returns `None` if it ends at once, as it does while the database is away.
    pub(crate) fn start(&self, number: usize) -> Option<Replica> {
        let mut process = Raw::start(self.command(number, true));
        let (links, said) = listen(process.child.stderr.take().unwrap());
        // The end of its stderr ends the links.
        let link = || links.recv().ok().map(|link| host(&link));
        let (inbox, serving) = (link()?, link()?);
        let token = self.state(number).join("inbox.token");
        let token = std::fs::read_to_string(token).unwrap();
        Some(Replica {
            process,
            inbox,
            serving,
            token: token.trim().to_owned(),
            said,
        })
    }

    /// Starts this replica, which must end at once. Returns its exit code and what it said.
    pub(crate) fn refused(&self, number: usize) -> (Option<i32>, String) {
        let mut command = self.command(number, true);
        let ended = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        (ended.status.code(), said)
    }
}

/// Returns the command with the program that `MCP_ELICIT_PROGRAM` names, such as an optimised one, if it is set.
fn of_measured_program(command: Command) -> Command {
    let Some(program) = std::env::var_os("MCP_ELICIT_PROGRAM") else {
        return command;
    };
    let mut other = Command::new(program);
    other.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    other
}

impl Replica {
    /// Kills it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.process.child.kill().unwrap();
        self.process.child.wait().unwrap();
    }

    /// Ends it with SIGTERM, as an operator does.
    pub(crate) fn end(&mut self) {
        self.signal("-TERM");
        let ended = self.process.child.wait().unwrap();
        assert!(ended.success(), "{:?}", self.said.lock().unwrap());
    }

    /// Stops it with SIGSTOP.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on with SIGCONT.
    pub(crate) fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let id = self.process.child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Returns where its inbox is, for a thread of its own.
    pub(crate) fn desk(&self) -> Desk {
        Desk {
            inbox: self.inbox.clone(),
            token: self.token.clone(),
        }
    }
}

/// The API of the inbox of one gateway.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    inbox: String,
    token: String,
}

impl Desk {
    /// Makes a request. Returns `None` if there is no response, or none in time.
    pub(crate) fn api(&self, method: &str, path: &str, body: &str) -> Option<Reply> {
        let head = [
            &format!("{method} {path} HTTP/1.1"),
            &format!("Host: {}", self.inbox),
            &format!("Authorization: Bearer {}", self.token),
            "Content-Type: application/json",
        ];
        send_within(&self.inbox, &head, body, Duration::from_secs(20))
    }

    /// Waits for the pending question of this call, and until a running gateway waits for it or none does. Returns its
    /// id.
    pub(crate) fn question_of(&self, call: u64, is_waited_for: bool) -> String {
        for _ in 0..LOOKS {
            let found = self.waiting().into_iter().find(|(of, _)| *of == call);
            if let Some((_, id)) = found
                && self.row(&id)["waitedFor"] == is_waited_for
            {
                return id;
            }
            sleep(LOOK);
        }
        panic!(
            "no question of call {call} whose `waitedFor` is {is_waited_for}: {:?}",
            self.waiting()
        )
    }

    /// Returns a question.
    pub(crate) fn row(&self, id: &str) -> Value {
        let row = self.api("GET", &format!("/api/questions/{id}"), "");
        row.map(|row| row.json()).unwrap_or_default()
    }

    /// Waits until the answer to this question is delivered. Returns `false` if it is not in time.
    pub(crate) fn is_delivered(&self, id: &str) -> bool {
        (0..LOOKS).any(|_| {
            sleep(LOOK);
            self.row(id)["delivery"] == "delivered"
        })
    }

    /// Accepts a question with this value. Returns the status of the response, if there is one.
    pub(crate) fn accept(&self, id: &str, value: &str) -> Option<u16> {
        let body = json!({"action": "accept", "content": {"value": value}}).to_string();
        let reply = self.api("POST", &format!("/api/questions/{id}/answer"), &body);
        reply.map(|reply| reply.status)
    }

    /// Returns the pending questions: the number in the message, and the id.
    pub(crate) fn waiting(&self) -> Vec<(u64, String)> {
        let listed = self.api("GET", "/api/questions?most=1000", "");
        let listed = listed.filter(|reply| reply.status == 200);
        let Some(listed) = listed.map(|reply| reply.json()) else {
            return Vec::new();
        };
        let questions = listed["questions"].as_array().into_iter().flatten();
        let of = |question: &Value| {
            let message = question["message"].as_str()?;
            let number = message.strip_prefix("Value for ")?.strip_suffix('?')?;
            Some((number.parse().ok()?, question["id"].as_str()?.to_owned()))
        };
        questions.filter_map(of).collect()
    }
}
