//! The same round trip with a gateway between: what a question that the client answers costs more.

use mcp_elicit_testkit::peers::{Listening, Program, free_port};
use tempfile::TempDir;

use crate::client::{Era, Transport, connect, connect_through};
use crate::measure::{self, Effort};
use crate::{others, server};

/// A program that stands between client and server as anybody would run it, but for the limits on questions.
pub(crate) struct Gateway(String);

/// A gateway that runs, if it was started here, and what it writes to. Both end with it.
pub(crate) struct Between {
    _running: Option<Listening>,
    _state: TempDir,
}

impl Gateway {
    fn program(&self) -> (TempDir, Program) {
        let state = tempfile::tempdir().expect("a folder for its record");
        let program = Program::new(&self.0)
            .with(["gateway", "--pending", "off"])
            .with(["--questions-per-minute", "off", "--inbox", "127.0.0.1:0"])
            .with(["--state", &state.path().to_string_lossy()]);
        (state, program)
    }

    /// In front of a server on stdio, for the client to start.
    pub(crate) fn before(&self, server: &Program) -> (Between, Program) {
        let (state, program) = self.program();
        let program = program.with(["--"]).with(server.argv());
        let between = Between {
            _running: None,
            _state: state,
        };
        (between, program)
    }

    /// In front of a server that listens; where it listens itself.
    pub(crate) fn listening_before(&self, server: &Listening) -> (Between, String) {
        let (state, program) = self.program();
        let port = free_port();
        let url = format!("http://127.0.0.1:{port}/mcp");
        let program = program.with(["--listen", &format!("127.0.0.1:{port}")]);
        let program = program.with(["--upstream", server.url()]);
        let between = Between {
            _running: Some(program.listen_on(port, url.clone())),
            _state: state,
        };
        (between, url)
    }
}

/// Every server directly and through the gateway, in turn.
pub(crate) async fn print_table(gateway: &str, effort: Effort) {
    let gateway = Gateway(gateway.to_owned());
    println!("A question that the client answers, through the gateway and directly.\n");
    println!(
        "| era, transport, server | through, us | directly, us | ratio | through, 64 at once, calls/s | directly | ratio |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let own = [("mcp-elicit", "ours"), ("rmcp alone", "bare")];
    let own = own.map(|(name, which)| (name, server(which), &Era::ALL[..]));
    let servers: Vec<_> = own.into_iter().chain(others()).collect();
    for era in Era::ALL {
        for transport in Transport::ALL {
            for (name, server, _) in servers.iter().filter(|(.., eras)| eras.contains(&era)) {
                let pair = [
                    connect_through(&gateway, server, era, transport).await,
                    connect(server, era, transport).await,
                ];
                let [through, direct] = measure::one_at_a_time(&pair, 1, effort).await;
                let [through_rate, direct_rate] = measure::many_at_once(&pair, effort).await;
                println!(
                    "| {era}, {transport}, {name} | {through:.0} | {direct:.0} | {:.2} | {through_rate:.0} | {direct_rate:.0} | {:.2} |",
                    through / direct,
                    through_rate / direct_rate
                );
            }
        }
    }
}
