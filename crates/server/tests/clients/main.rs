//! The same handlers with every client: revision, transport and the person's actions form a table, and every cell of it
//! is either played or gives the reason why it cannot be. Only the person's actions determine the result.
//!
//! The clients are real: the published SDKs of TypeScript, Python and Rust, against `examples/revisions`.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not there"
)]

mod rust_client;
mod scenario;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fmt, thread};

use mcp_elicit_testkit::peers::{self, Listening, PeerProgram, free_port};
use scenario::{SCENARIOS, Told};
use serde_json::Value;

const REVISIONS: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Client {
    TypeScript1,
    TypeScript2,
    Python,
    FastMcp,
    Rust,
}

impl Client {
    const ALL: [Self; 5] = [
        Self::TypeScript1,
        Self::TypeScript2,
        Self::Python,
        Self::FastMcp,
        Self::Rust,
    ];

    /// Returns the reason why this client cannot speak `revision`.
    fn absent(self, revision: &str) -> Option<&'static str> {
        match (self, revision) {
            (Self::TypeScript1, "2026-07-28") => Some("this SDK ends with 2025-11-25"),
            _ => None,
        }
    }

    /// Returns its program, or `None` if its language is not installed: `peers` has reported that, and fails in CI.
    fn program(self) -> Option<PeerProgram> {
        match self {
            Self::TypeScript1 => peers::node_script("ts1-client.mjs"),
            Self::TypeScript2 => peers::node_script("ts2-client.mjs"),
            Self::Python => peers::python_script("mcp_client.py"),
            Self::FastMcp => peers::python_script("fastmcp_client.py"),
            Self::Rust => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Transport {
    Stdio,
    Http,
}

/// One client on a series of connections: a column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Column {
    client: Client,
    revision: &'static str,
    transport: Transport,
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            client,
            revision,
            transport,
        } = self;
        write!(f, "{client:?}, {revision}, {transport:?}")
    }
}

fn columns() -> Vec<Column> {
    let mut columns = Vec::new();
    for client in Client::ALL {
        for revision in REVISIONS {
            for transport in [Transport::Stdio, Transport::Http] {
                columns.push(Column {
                    client,
                    revision,
                    transport,
                });
            }
        }
    }
    columns
}

/// The results of one column: the plays by name, or the reason why there are none.
type Brought = Result<BTreeMap<String, Told>, &'static str>;

/// The servers that listen, one for each revision.
struct Servers(BTreeMap<&'static str, Listening>);

impl Servers {
    fn start() -> Self {
        let start = |revision| {
            let port = free_port();
            let address = format!("127.0.0.1:{port}");
            let url = format!("http://{address}/mcp");
            let server = server(revision).with(["--listen".to_owned(), address]);
            (revision, server.listen_on(port, url))
        };
        Self(REVISIONS.into_iter().map(start).collect())
    }

    fn url(&self, column: Column) -> Option<&str> {
        (column.transport == Transport::Http).then(|| self.0[column.revision].url())
    }

    /// Plays every column of one client.
    fn play(&self, client: Client) -> BTreeMap<Column, Brought> {
        let (mut absent, mut there) = (BTreeMap::new(), Vec::new());
        for column in columns()
            .into_iter()
            .filter(|column| column.client == client)
        {
            match client.absent(column.revision) {
                Some(why) => {
                    absent.insert(column, Err(why));
                }
                None => there.push(column),
            }
        }
        let mut brought = if client == Client::Rust {
            self.in_rust(&there)
        } else if let Some(program) = client.program() {
            self.by_program(&program, &there)
        } else {
            let not_here = |column| (column, Err("its language is not installed here"));
            there.into_iter().map(not_here).collect()
        };
        brought.append(&mut absent);
        brought
    }

    fn in_rust(&self, columns: &[Column]) -> BTreeMap<Column, Brought> {
        let play = |column: Column| {
            rust_client::play(column.revision, self.url(column), &server(column.revision))
        };
        columns
            .iter()
            .map(|column| (*column, Ok(play(*column))))
            .collect()
    }

    /// Plays all columns in one process: such a client spends most of its time on the start.
    fn by_program(&self, client: &PeerProgram, columns: &[Column]) -> BTreeMap<Column, Brought> {
        let mut plays = Vec::new();
        for column in columns {
            for play in &SCENARIOS {
                let mut told = play.told();
                let era = if column.revision == "2026-07-28" {
                    "auto"
                } else {
                    "pushed"
                };
                told["revision"] = era.into();
                match self.url(*column) {
                    Some(url) => told["url"] = url.into(),
                    None => told["command"] = server(column.revision).argv().into(),
                }
                plays.push(told);
            }
        }
        let finished = client
            .clone()
            .with(["--plays", &Value::from(plays).to_string()])
            .run();
        let lines = finished.lines();
        assert_eq!(
            lines.len(),
            columns.len() * SCENARIOS.len(),
            "{}",
            finished.stderr
        );
        let of_column = |(column, lines): (&Column, &[Value])| {
            let told = lines.iter().map(|line| {
                // SDK 1 does not know the protocol on stdio; the server speaks only this revision.
                let protocol = line["protocol"].as_str().unwrap_or(column.revision);
                assert_eq!(protocol, column.revision, "{line}");
                (line["name"].as_str().unwrap().to_owned(), Told::of(line))
            });
            (*column, Ok(told.collect()))
        };
        columns
            .iter()
            .zip(lines.chunks(SCENARIOS.len()))
            .map(of_column)
            .collect()
    }
}

/// Returns the example's command. Cargo builds the examples of a package before it runs its tests, next to them.
fn server(revision: &str) -> PeerProgram {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    let path = path.join("examples").join("revisions");
    PeerProgram::new(path.to_str().unwrap()).with([revision])
}

/// Plays everything, all clients at once.
fn play_all() -> BTreeMap<Column, Brought> {
    let servers = Servers::start();
    thread::scope(|scope| {
        let clients = Client::ALL.map(|client| {
            scope.spawn({
                let servers = &servers;
                move || servers.play(client)
            })
        });
        let played = clients.map(|client| client.join().expect("the client plays to its end"));
        played.into_iter().flatten().collect()
    })
}

#[test]
fn every_client_gets_the_same() {
    let table = play_all();
    let mut wrong = Vec::new();
    let mut first_questions = BTreeMap::new();
    let (mut cells, mut absent) = (0, 0);
    for column in columns() {
        let brought = table.get(&column).expect("every column has been played");
        let told = match brought {
            Ok(told) => told,
            Err(why) => {
                eprintln!("no cells for {column}: {why}");
                absent += SCENARIOS.len();
                continue;
            }
        };
        for play in &SCENARIOS {
            let Some(told) = told.get(play.name) else {
                wrong.push(format!("{column}, {}: not played", play.name));
                continue;
            };
            cells += 1;
            let expected = (play.result)(column.revision);
            if told.result != expected {
                wrong.push(format!(
                    "{column}, {}: {told:?} and not {expected:?}",
                    play.name
                ));
            }
            let questions = first_questions
                .entry(play.name)
                .or_insert_with(|| told.asked.clone());
            if told.asked != *questions {
                wrong.push(format!(
                    "{column}, {}: asked {:?} and not {questions:?}",
                    play.name, told.asked
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(cells + absent, 5 * 3 * 2 * SCENARIOS.len());
    assert!(
        cells >= 3 * 2 * SCENARIOS.len(),
        "the Rust client is always here"
    );
}
