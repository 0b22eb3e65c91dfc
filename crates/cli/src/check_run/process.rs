//! A connection to a process.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use mcp_elicit_check::{CheckConnection, ReceivedText};
use mcp_elicit_gateway::config::{Inherits, Program};
use mcp_elicit_gateway::{RawLine, RawServer};
use serde_json::Value;

use crate::args::server::ServerAccess;
use crate::failure::{Exit, Failure};

/// The longest message of a server, in bytes.
const LONGEST: usize = 8 << 20;
/// The longest wait for a server to read a message.
const READS_WITHIN: Duration = Duration::from_secs(10);

/// A process.
struct ProcessConnection {
    server: RawServer,
    begun: Instant,
    /// The reason why the last message was not sent.
    unsent: Option<String>,
}

/// Starts the program.
pub(super) fn connect(
    program: &OsString,
    arguments: &[OsString],
    access: &ServerAccess,
) -> Result<Box<dyn CheckConnection>, Failure> {
    let text = |part: &OsString| part.to_string_lossy().into_owned();
    let environment = access.environment.iter();
    let start = Program {
        program: program.clone(),
        arguments: arguments.to_vec(),
        environment: environment
            .map(|(name, value)| (text(name), text(value)))
            .collect(),
        inherits: Inherits::All,
        withheld: Vec::new(),
    };
    let name = text(program);
    let server = RawServer::start(&start, &name, LONGEST).map_err(|error| {
        let failure = Failure::connection(format!("cannot start {name}"));
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let failure = failure.because(error);
        debug_assert_eq!(failure.exit(), Exit::Connection);
        if is_missing {
            failure.hint("install the program, or write its whole path.")
        } else {
            failure
        }
    })?;
    Ok(Box::new(ProcessConnection {
        server,
        begun: super::now(),
        unsent: None,
    }))
}

impl ProcessConnection {
    /// Returns the reason of the end, with the last line that the server wrote to stderr.
    fn ended(&self, why: &str) -> ReceivedText {
        let stderr = self.server.last_stderr();
        let last = stderr.iter().rev().find(|line| !line.trim().is_empty());
        ReceivedText::Ended(match last {
            Some(line) => format!("{why}; its stderr ends with {line:?}"),
            None => why.to_owned(),
        })
    }
}

impl CheckConnection for ProcessConnection {
    fn send(&mut self, frame: &Value) {
        let line = format!("{frame}\n");
        if let Err(error) = self.server.send(line.as_bytes(), READS_WITHIN) {
            self.unsent = Some(match error.kind() {
                std::io::ErrorKind::TimedOut => "it does not read its stdin".to_owned(),
                _ => error.to_string(),
            });
        }
    }

    fn next(&mut self, within: Duration) -> ReceivedText {
        match self.server.next(within) {
            RawLine::Line(line) => match serde_json::from_slice::<Value>(&line) {
                Ok(frame @ Value::Object(_)) => ReceivedText::Frame(frame),
                Ok(_) | Err(_) => ReceivedText::Noise(String::from_utf8_lossy(&line).into_owned()),
            },
            RawLine::Silence => match self.unsent.take() {
                Some(why) => self.ended(&why),
                None => ReceivedText::Silence,
            },
            RawLine::Ended(why) => self.ended(&why),
        }
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn leave(&mut self) -> Option<bool> {
        Some(self.server.leave())
    }
}
