//! The stderr of a server's process: each line becomes a record of the log with the server's name.

use std::collections::VecDeque;
use std::io::{self, BufReader};
use std::process::ChildStderr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The target of these records in the log.
pub const SERVER_STDERR: &str = "server_stderr";

/// The most bytes of one record; a longer line becomes several.
const LONGEST: usize = 8 * 1024;
/// The longest name of a server in a record, in characters.
const LONGEST_NAME: usize = 100;

/// The number of last lines that are kept, to explain the end of a server.
const LAST_LINES: usize = 10;
/// The longest kept part of a line, in characters.
const LONGEST_LAST: usize = 500;

type LastLines = Arc<Mutex<VecDeque<String>>>;

/// The reader of a server's stderr. It ends with the last process that has the pipe open.
#[derive(Debug)]
pub(crate) struct StderrReader {
    ended: Receiver<()>,
    last: LastLines,
}

impl StderrReader {
    /// Reads the lines on a thread of their own.
    pub(crate) fn start(stderr: ChildStderr, server: &str) -> io::Result<Self> {
        let server: String = plain(server.as_bytes())
            .chars()
            .take(LONGEST_NAME)
            .collect();
        let (ends, ended) = mpsc::channel();
        let last = LastLines::default();
        let keeps = Arc::clone(&last);
        thread::Builder::new()
            .name("server stderr".to_owned())
            .spawn(move || read(stderr, &server, &keeps, &ends))?;
        Ok(Self { ended, last })
    }

    /// Returns the last lines, oldest first.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().cloned().collect()
    }

    /// Waits this long for the rest of the output of a process that has ended, which often says why.
    pub(crate) fn wait(&self, at_most: Duration) {
        // Disconnected when the reader has ended.
        let _in_time = self.ended.recv_timeout(at_most);
    }
}

fn read(stderr: ChildStderr, server: &str, last: &LastLines, _ends: &Sender<()>) {
    let log = |line: &[u8]| {
        let line = plain(line);
        if !line.trim().is_empty() {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.len() == LAST_LINES {
                last.pop_front();
            }
            last.push_back(line.chars().take(LONGEST_LAST).collect());
            drop(last);
            tracing::info!(target: SERVER_STDERR, server = %server, "{line}");
        }
    };
    each_line(BufReader::new(stderr), log);
}

/// Calls `log` with each line, and with each part of a line that is too long.
fn each_line(mut from: impl io::BufRead, log: impl Fn(&[u8])) {
    let mut line = Vec::new();
    loop {
        let read = match from.fill_buf() {
            Ok([]) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let room = LONGEST - line.len();
        let part = &read[..read.len().min(room)];
        // Progress is often shown by a return to the start of the line.
        let end = part.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let (taken, used) = match end {
            Some(end) => (&part[..end], end + 1),
            None => (part, part.len()),
        };
        line.extend_from_slice(taken);
        from.consume(used);
        if end.is_some() || line.len() >= LONGEST {
            log(&line);
            line.clear();
        }
    }
    log(&line);
}

/// Returns text that acts on no terminal: sequences for colours are dropped, other control characters and those that
/// change the direction of text are spelled out.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\u{1b}' if rest.peek() == Some(&'[') => {
                rest.next();
                // Parameters, then one letter.
                for part in rest.by_ref() {
                    if ('\u{40}'..='\u{7e}').contains(&part) {
                        break;
                    }
                }
            }
            '\t' => plain.push(' '),
            acts if acts.is_control()
                || matches!(acts, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}') =>
            {
                plain.extend(acts.escape_unicode());
            }
            shown => plain.push(shown),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn lines(bytes: &[u8]) -> Vec<String> {
        let lines = RefCell::new(Vec::new());
        each_line(BufReader::with_capacity(7, bytes), |line| {
            lines.borrow_mut().push(plain(line));
        });
        lines.into_inner()
    }

    #[test]
    fn lines_are_bounded_and_act_on_no_terminal() {
        assert_eq!(lines(b"one\ntwo\r\nhalf"), ["one", "two", "", "half"]);
        assert_eq!(
            lines(b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07 \x9b \xe2\x80\xaeturned\n"),
            ["red \\u{1b}]0;title\\u{7} \u{fffd} \\u{202e}turned", ""]
        );
        let long = vec![b'x'; LONGEST + 10];
        let lengths: Vec<usize> = lines(&long).iter().map(String::len).collect();
        assert_eq!(lengths, [LONGEST, 10]);
        assert_eq!(lines(b"\x1b["), [""], "a sequence that never ends");
    }
}
