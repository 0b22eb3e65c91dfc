//! A gateway between real peers, and a person at its inbox.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures::StreamExt as _;
use mcp_elicit_core::wire::Action;
use mcp_elicit_inbox::api::model::WholeQuestion;
use mcp_elicit_inbox::client::InboxClient;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_testkit::peers::{PeerProgram, RunningPeer};
use serde_json::{Map, Value, json};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-elicit");
/// Longer than anything here takes, so that a hanging test fails.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn contact() -> Value {
    json!({"action": "accept", "content": {"name": "Ada Lovelace", "email": "ada@example.com", "age": 36}})
}

pub(crate) fn seat() -> Value {
    json!({"action": "accept", "content": {"seat": "aisle"}})
}

/// A client on some SDK.
#[derive(Clone)]
pub(crate) enum Client {
    /// A script of `tests/peers`, for a given era.
    Script {
        program: PeerProgram,
        revision: &'static str,
    },
    /// `mcp-elicit call`, on rmcp, for a given revision.
    Ours { protocol: &'static str },
}

/// The report of a client.
#[derive(Debug)]
pub(crate) struct Told {
    /// The number of questions that it was asked.
    pub(crate) asked: usize,
    /// The text of its result, which the test servers write as JSON; null after an error.
    pub(crate) text: Value,
    /// The whole output, for messages.
    pub(crate) all: String,
}

impl Client {
    /// Calls the tool of the server that `target` names (`--url URL`, or `-- COMMAND ARGUMENT...`) and answers with
    /// `answers` in order. Without answers, the client declares no elicitation.
    pub(crate) fn play(&self, target: &[String], tool: &str, answers: &[Value]) -> Told {
        let answers = Value::from(answers).to_string();
        match self {
            Self::Script { program, revision } => {
                let program = program
                    .clone()
                    .with(["--revision", revision, "--tool", tool]);
                let program = match answers.as_str() {
                    "[]" => program.with(["--no-capability"]),
                    answers => program.with(["--answers", answers]),
                };
                let done = program.with(target.iter().cloned()).run();
                let told = done.last_json_line();
                Told {
                    asked: told["asked"].as_array().map_or(0, Vec::len),
                    text: text_of(&told["result"]),
                    all: format!("{told}\n{}", done.stderr),
                }
            }
            Self::Ours { protocol } => {
                let mut file = tempfile::NamedTempFile::new().unwrap();
                file.write_all(answers.as_bytes()).unwrap();
                let path = file.path().to_str().unwrap();
                let call = ["call", tool, "--json", "--protocol", protocol];
                let done = PeerProgram::new(PROGRAM)
                    .with(call)
                    .with(["--answers", path])
                    .with(target.iter().cloned())
                    .run();
                let events = done.lines();
                let of = |name: &str| {
                    events
                        .iter()
                        .filter(|event| event["event"] == name)
                        .cloned()
                        .collect::<Vec<_>>()
                };
                Told {
                    asked: of("asked").len(),
                    text: of("result")
                        .first()
                        .map_or(Value::Null, |event| text_of(&event["result"])),
                    all: format!("{}\n{}", done.stdout, done.stderr),
                }
            }
        }
    }
}

fn text_of(result: &Value) -> Value {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

/// A running gateway for HTTP clients, with a person at its inbox.
pub(crate) struct Gateway {
    _running: RunningPeer,
    pub(crate) url: String,
    pub(crate) person: Person,
}

impl Gateway {
    /// Starts a gateway before this server: `--upstream URL` or `-- COMMAND ARGUMENT...`.
    pub(crate) fn listen(server: &[String]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let program = PeerProgram::new(PROGRAM)
            .with(["gateway", "--listen", "127.0.0.1:0"])
            .with(options(state.path()))
            .with(server.iter().cloned());
        let mut running = program.start();
        let mut lines = BufReader::new(running.child.stderr.take().unwrap()).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_prefix("serving: ")?.to_owned()))
            .expect("the gateway says where it serves");
        // Later output must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            _running: running,
            url,
            person: Person::at(state),
        }
    }

    /// Returns the options with which a client reaches it.
    pub(crate) fn target(&self) -> Vec<String> {
        vec!["--url".to_owned(), self.url.clone()]
    }
}

/// Returns the command line with which a client starts a gateway before this server on stdio, and the person at its
/// inbox.
pub(crate) fn on_stdio(server: &[String]) -> (Vec<String>, Person) {
    let state = tempfile::tempdir().unwrap();
    let mut target: Vec<String> = ["--", PROGRAM, "gateway"].map(str::to_owned).into();
    target.extend(options(state.path()));
    target.extend(server.iter().cloned());
    (target, Person::at(state))
}

fn options(state: &Path) -> Vec<String> {
    let state = state.to_str().unwrap();
    let inbox = ["--inbox", "127.0.0.1:0", "--state", state];
    let limits = ["--questions-per-minute", "off"];
    inbox.into_iter().chain(limits).map(str::to_owned).collect()
}

/// A person who answers every question of the inbox, through its API.
pub(crate) struct Person {
    answered: Arc<Mutex<Vec<String>>>,
    stop: mpsc::Sender<()>,
    _state: tempfile::TempDir,
}

impl Person {
    fn at(state: tempfile::TempDir) -> Self {
        let answered = Arc::<Mutex<Vec<String>>>::default();
        let (stop, stopped) = mpsc::channel::<()>();
        let (notes, path) = (answered.clone(), state.path().to_owned());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            // A client may start one gateway to detect the era and another for its session.
            while let Some(inbox) = inbox_at(&path, &stopped) {
                runtime.block_on(answer_all(&inbox, &notes));
            }
        });
        Self {
            answered,
            stop,
            _state: state,
        }
    }

    /// Returns the messages of the questions answered since the last call.
    pub(crate) fn answered(&self) -> Vec<String> {
        std::mem::take(&mut *self.answered.lock().unwrap())
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // Fails if the gateway has ended already.
        let _ = self.stop.send(());
    }
}

/// Returns the inbox as soon as it exists.
fn inbox_at(state: &Path, stopped: &mpsc::Receiver<()>) -> Option<InboxClient> {
    let folder = StateFolder::at(&PathBuf::from(state));
    let pause = Duration::from_millis(20);
    for _ in 0..PATIENCE.as_millis() / pause.as_millis() {
        match stopped.recv_timeout(pause) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => return None,
        }
        if let (Some(at), Ok(token)) = (folder.inbox(), folder.known_token()) {
            return InboxClient::new(&at, token).ok();
        }
    }
    None
}

async fn answer_all(inbox: &InboxClient, notes: &Mutex<Vec<String>>) {
    let Ok(changes) = inbox.changes().await else {
        return;
    };
    let mut changes = std::pin::pin!(changes);
    while changes.next().await.is_some() {
        for question in inbox.list(false, None, 1_000).await.unwrap_or_default() {
            if question.asked_in_client {
                continue;
            }
            let Ok(whole) = inbox.show(&question.id).await else {
                continue;
            };
            notes
                .lock()
                .unwrap()
                .push(whole.question.message.clone().unwrap_or_default());
            let content = content_for(&whole);
            let answered = inbox
                .answer(&question.id, Action::Accept, content, false)
                .await;
            if let Err(fault) = answered {
                notes.lock().unwrap().push(format!("refused: {fault}"));
            }
        }
    }
}

/// Returns this person's content for each form; `None` for a link.
fn content_for(question: &WholeQuestion) -> Option<Map<String, Value>> {
    let schema = question.requested_schema.as_ref()?;
    let asks = |field: &str| schema["properties"][field].is_object();
    let content = match () {
        () if asks("seat") => seat()["content"].clone(),
        () if asks("email") && asks("age") => contact()["content"].clone(),
        () if asks("environment") => json!({"environment": "staging"}),
        () => json!({"name": "Ada Lovelace"}),
    };
    content.as_object().cloned()
}
