//! A server's process that is spoken to in raw lines, wrong ones too: for programs that test servers.

use std::io::{self, BufReader, Write as _};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use crate::transports::child::read_frames;
use crate::transports::pipe_writer::PipeEnd as _;
use crate::transports::process::{Process, Program, ServerInput};
use crate::transports::unfinished::UnfinishedMessage;

/// The lines that may wait to be taken.
const WAITING: usize = 64;

/// The time that a process has to exit after its input has ended.
const GRACE: Duration = Duration::from_secs(2);

/// The reason of a server whose stdout has ended.
const CLOSED: &str = "it closed its stdout";

/// A line of a server, or its absence.
#[derive(Debug)]
pub enum RawLine {
    /// A line of its stdout that is not empty.
    Line(Vec<u8>),
    /// Nothing within the time.
    Silence,
    /// Its stdout has ended, for this reason.
    Ended(String),
}

/// A running server. It is ended with all its descendants when it is dropped, and by [`kill_servers`](crate::kill_servers).
#[derive(Debug)]
pub struct RawServer {
    process: Option<Process>,
    input: Option<ServerInput>,
    lines: Receiver<RawLine>,
    /// The reason of its end, once it is known.
    ended: Option<String>,
}

impl RawServer {
    /// Starts the program of the server of this name, whose stderr goes to the log. A line above `max` bytes ends it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(program: &Program, name: &str, max: usize) -> io::Result<Self> {
        let (process, input, stdout) = Process::start(program, name)?;
        let (sender, lines) = mpsc::sync_channel(WAITING);
        let unfinished = UnfinishedMessage::of(name, max);
        thread::Builder::new()
            .name("raw server".to_owned())
            .spawn(move || {
                let mut stdout = BufReader::new(stdout);
                let ended = read_frames(&mut stdout, unfinished, |line| pass(&sender, line));
                let why = match ended {
                    Ok(()) => CLOSED.to_owned(),
                    Err(error) => error.to_string(),
                };
                // The receiver has gone with the server.
                let _ = sender.send(RawLine::Ended(why));
            })?;
        Ok(Self {
            process: Some(process),
            input: Some(input),
            lines,
            ended: None,
        })
    }

    /// Writes a line, and waits this long for the server to read it.
    ///
    /// # Errors
    /// If the server has closed its input, or does not read.
    pub fn send(&mut self, line: &[u8], within: Duration) -> io::Result<()> {
        let Some(input) = &mut self.input else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let from = started();
        let mut rest = line;
        while !rest.is_empty() {
            match input.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left = within.saturating_sub(from.elapsed());
                    if left.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    input.wait(left);
                }
                Err(error) => return Err(error),
            }
        }
        input.flush()
    }

    /// Waits this long for the next line.
    pub fn next(&mut self, within: Duration) -> RawLine {
        if let Some(why) = &self.ended {
            return RawLine::Ended(why.clone());
        }
        match self.lines.recv_timeout(within) {
            Ok(RawLine::Ended(why)) => RawLine::Ended(self.end_of(why)),
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => RawLine::Silence,
            Err(RecvTimeoutError::Disconnected) => RawLine::Ended("it cannot be read".to_owned()),
        }
    }

    /// Returns the reason of the end, with the exit status if the process has exited.
    fn end_of(&mut self, why: String) -> String {
        let process = self.process.as_mut();
        let status = process.and_then(|process| process.status_within(GRACE));
        let why = match status {
            // A server that is no longer read ends for that reason, which its status does not say.
            Some(status) if why == CLOSED => status.to_string(),
            Some(_) | None => why,
        };
        self.ended = Some(why.clone());
        why
    }

    /// Closes the server's input. Returns `true` if the process exits by itself within two seconds.
    pub fn leave(&mut self) -> bool {
        self.input = None;
        let process = self.process.as_mut();
        process.is_none_or(|process| process.status_within(GRACE).is_some())
    }

    /// Returns the last lines of its stderr, oldest first, at most ten.
    pub fn last_stderr(&self) -> Vec<String> {
        self.process
            .as_ref()
            .map(Process::last_stderr)
            .unwrap_or_default()
    }
}

/// The start of a bounded wait for a pipe.
fn started() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a shell measures its own wait")]
    Instant::now()
}

fn pass(sender: &SyncSender<RawLine>, line: &[u8]) {
    // The receiver has gone with the server, whose output ends soon.
    let _ = sender.send(RawLine::Line(line.to_vec()));
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.input = None;
        if let Some(process) = self.process.take() {
            // No one is left to report an error to.
            let _ = process.end(Some(GRACE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(script: &str, max: usize) -> RawServer {
        let program = Program::from_words(["sh", "-c", script]).unwrap();
        RawServer::start(&program, "s", max).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[cfg(unix)]
    #[test]
    fn lines_go_both_ways_and_the_end_has_a_reason() {
        let mut server = server("read a; echo \"got $a\"; echo why >&2; exit 3", 100);
        server.send(b"{\"a\":1}\n", LONG).unwrap();
        assert!(matches!(server.next(LONG), RawLine::Line(line) if line == b"got {\"a\":1}"));
        let RawLine::Ended(why) = server.next(LONG) else {
            panic!("it has ended")
        };
        assert!(why.contains('3'), "{why}");
        assert!(matches!(server.next(LONG), RawLine::Ended(_)));
    }

    #[cfg(unix)]
    #[test]
    fn a_line_without_end_ends_the_server() {
        let mut server = server("while :; do printf aaaaaaaaaaaaaaaa; done", 1000);
        let RawLine::Ended(why) = server.next(LONG) else {
            panic!("it has ended")
        };
        assert!(why.contains("1000 bytes"), "{why}");
    }

    #[cfg(unix)]
    #[test]
    fn a_server_that_does_not_read_is_not_waited_for() {
        let mut server = server("sleep 600", 100);
        let error = server
            .send(&vec![b'x'; 1 << 20], Duration::ZERO)
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
