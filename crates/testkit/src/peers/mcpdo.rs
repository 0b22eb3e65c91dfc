//! Inspector's `mcpdo`: a client of both eras that answers as configured and ignores the form, which makes it a
//! ready-made hostile client.

use serde_json::Value;

use super::{PeerProgram, tool};

/// One connection, held by its own daemon, which ends on drop.
#[derive(Debug)]
pub struct Mcpdo {
    program: PeerProgram,
    connection: String,
    /// The folder of its settings, secrets and socket, so that those of the person who runs the tests stay untouched.
    _home: tempfile::TempDir,
}

/// The form of the protocol to connect with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InspectorEra {
    /// `initialize`, then questions pushed by the server.
    Legacy,
    /// Rounds of requests with answers.
    Modern,
}

impl Mcpdo {
    /// Connects to the server at this URL and declares form and url mode. Returns `None`, and reports it on stderr, if
    /// `mcpdo` cannot run.
    ///
    /// # Panics
    ///
    /// If it cannot be installed or cannot connect. The message contains its output.
    pub fn connect(url: &str, era: InspectorEra) -> Option<Self> {
        let script = "node_modules/@modelcontextprotocol/inspector/clients/mcpdo/build/mcp-bin.js";
        let home = tempfile::tempdir().expect("a folder for this connection can be made");
        let program = tool("inspector", script)?
            .env("HOME", home.path().to_str().expect("the path is UTF-8"))
            .env("MCP_INSPECTOR_SECRET_STORE", "memory");
        let private = program.clone().with(["private"]).run();
        let exports = private
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix("export "));
        let program = exports
            .filter_map(|export| export.split_once('='))
            .fold(program, |program, (name, value)| {
                program.env(name, value.trim_matches('\''))
            });
        let mcpdo = Self {
            program,
            connection: url.to_owned(),
            _home: home,
        };
        let era = match era {
            InspectorEra::Legacy => "legacy",
            InspectorEra::Modern => "modern",
        };
        let connected = mcpdo.say(&[
            "connect",
            "--era",
            era,
            "--elicit",
            "both",
            "--transport",
            "http",
            url,
        ]);
        assert!(
            connected["protocolEra"].is_string(),
            "mcpdo did not connect: {connected}"
        );
        Some(mcpdo)
    }

    /// Calls a tool with `key:=value` arguments. Returns its result, or `{"elicitationPending": {...}}`.
    pub fn call(&self, tool: &str, arguments: &[&str]) -> Value {
        let mut said = vec!["tools/call", tool];
        said.extend(arguments);
        self.say(&said)
    }

    /// Answers the pending question in `asked` with `key:=value` pairs, `--decline`, `--cancel` or `--done`. Returns
    /// the call's outcome as [`call`](Self::call) does.
    ///
    /// # Panics
    ///
    /// If no question is pending.
    pub fn respond(&self, asked: &Value, answer: &[&str]) -> Value {
        let id = asked["elicitationPending"]["elicitationId"].as_str();
        let id = id.unwrap_or_else(|| panic!("nothing is pending: {asked}"));
        let mut said = vec!["elicitation/respond", id];
        said.extend(answer);
        self.say(&said)
    }

    /// Runs a command and returns its output, or its error.
    fn say(&self, args: &[&str]) -> Value {
        let program = self.program.clone();
        let program = program.with(["--format", "json", "--connection", &self.connection]);
        let finished = program.with(args.iter().copied()).run();
        let told = serde_json::from_str(&finished.stdout).ok();
        let told = told.or_else(|| {
            finished
                .stderr
                .lines()
                .rev()
                .find_map(|line| serde_json::from_str(line).ok())
        });
        told.unwrap_or_else(|| {
            panic!(
                "mcpdo {args:?} told nothing ({})\n{}",
                finished.status, finished.stderr
            )
        })
    }
}

impl Drop for Mcpdo {
    fn drop(&mut self) {
        let stop = self.program.clone().with(["daemon", "stop"]);
        let _ = stop.command().output();
    }
}
