//! The same round trip with a gateway in between: the additional cost of a question that the client answers.

use mcp_elicit_testkit::peers::{Listening, PeerProgram, free_port};
use tempfile::TempDir;

use crate::client::{Era, Transport, connect, connect_through};
use crate::measure::{self, Effort};
use crate::{others, server};

/// A program between client and server.
#[derive(Clone, Copy)]
pub(crate) enum Middle<'a> {
    /// A gateway with its usual settings, except for the limits on questions.
    Gateway(&'a str),
    /// The byte relay of `mcp-elicit-speed`, which does not parse messages: the lower limit of any gateway's cost.
    Relay(&'a str),
}

/// The program in between, if it was started here, and its state folder. Both end on drop.
pub(crate) struct Between {
    _running: Option<Listening>,
    _state: TempDir,
}

impl Middle<'_> {
    fn program(self) -> (TempDir, PeerProgram) {
        let state = tempfile::tempdir().expect("a folder for its record");
        let program = match self {
            Self::Gateway(program) => PeerProgram::new(program)
                .with(["gateway", "--pending", "off"])
                .with(["--questions-per-minute", "off", "--inbox", "127.0.0.1:0"])
                .with(["--state", &state.path().to_string_lossy()]),
            Self::Relay(program) => PeerProgram::new(program).with(["relay"]),
        };
        (state, program)
    }

    /// Puts the program in front of a server on stdio, for the client to start.
    pub(crate) fn before(self, server: &PeerProgram) -> (Between, PeerProgram) {
        let (state, program) = self.program();
        let program = match self {
            Self::Gateway(_) => program.with(["--"]),
            Self::Relay(_) => program.with(["stdio"]),
        };
        let between = Between {
            _running: None,
            _state: state,
        };
        (between, program.with(server.argv()))
    }

    /// Puts the program in front of a server that listens. Returns the URL at which the program listens.
    pub(crate) fn listening_before(self, server: &Listening) -> (Between, String) {
        let (state, program) = self.program();
        let port = free_port();
        let (program, path) = match self {
            Self::Gateway(_) => (
                program
                    .with(["--listen", &format!("127.0.0.1:{port}")])
                    .with(["--upstream", server.url()]),
                "mcp",
            ),
            Self::Relay(_) => {
                let (host, path) = host_and_path(server.url());
                (program.with(["http", &port.to_string(), host]), path)
            }
        };
        let url = format!("http://127.0.0.1:{port}/{path}");
        let between = Between {
            _running: Some(program.listen_on(port, url.clone())),
            _state: state,
        };
        (between, url)
    }
}

/// Returns the host and port of an URL, and its path without the first slash.
fn host_and_path(url: &str) -> (&str, &str) {
    let rest = url.trim_start_matches("http://");
    rest.split_once('/').unwrap_or((rest, ""))
}

/// Measures every server through the gateway, through the byte relay if there is one, and directly, in turn.
pub(crate) async fn print_table(gateway: &str, relay: Option<&str>, effort: Effort) {
    let middles: Vec<Middle<'_>> = [Some(Middle::Gateway(gateway)), relay.map(Middle::Relay)]
        .into_iter()
        .flatten()
        .collect();
    println!("A question that the client answers, through the gateway and directly.\n");
    let relayed = relay.map_or("", |_| " byte relay | ratio |");
    println!(
        "| era, transport, server | directly, us | gateway | ratio |{relayed} directly, 64 at once, calls/s | gateway | ratio |{relayed}"
    );
    let columns = 3 + 4 * middles.len();
    println!("|{}", " --- |".repeat(columns));
    let own = [("mcp-elicit", "ours"), ("rmcp alone", "bare")];
    let own = own.map(|(name, which)| (name, server(which), &Era::ALL[..]));
    let servers: Vec<_> = own.into_iter().chain(others()).collect();
    for era in Era::ALL {
        for transport in Transport::ALL {
            for (name, server, _) in servers.iter().filter(|(.., eras)| eras.contains(&era)) {
                let mut ways = vec![connect(server, era, transport).await];
                for middle in &middles {
                    ways.push(connect_through(*middle, server, era, transport).await);
                }
                let times = measure::one_at_a_time(&ways, 1, effort).await;
                let rates = measure::many_at_once(&ways, effort).await;
                println!(
                    "| {era}, {transport}, {name} | {} | {} |",
                    with_ratios(&times),
                    with_ratios(&rates)
                );
            }
        }
    }
}

/// Returns the first figure, and each other one with its ratio to the first.
fn with_ratios(figures: &[f64]) -> String {
    let Some((direct, others)) = figures.split_first() else {
        return String::new();
    };
    let others = others
        .iter()
        .map(|figure| format!(" | {figure:.0} | {:.2}", figure / direct));
    format!("{direct:.0}{}", others.collect::<String>())
}
