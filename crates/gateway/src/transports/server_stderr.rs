//! The stderr of a server's process, or of a program that answers: each line becomes a record of the log with its name.

use std::collections::VecDeque;
use std::io::{self, BufReader};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

/// The target of these records in the log.
pub const SERVER_STDERR: &str = "server_stderr";

/// The most bytes of one record; a longer line becomes several.
const LONGEST: usize = 8 * 1024;
/// The most lines of one stderr that are logged in a minute.
const LINES_A_MINUTE: u32 = 600;
/// The minute in which lines are counted.
const MINUTE: Duration = Duration::from_secs(60);
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
    pub(crate) fn start(stderr: impl io::Read + Send + 'static, server: &str) -> io::Result<Self> {
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

fn read(stderr: impl io::Read, server: &str, last: &LastLines, _ends: &Sender<()>) {
    let mut ceiling = LogCeiling::default();
    let log = |line: &[u8]| {
        let line = plain(line);
        if !line.trim().is_empty() {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.len() == LAST_LINES {
                last.pop_front();
            }
            last.push_back(line.chars().take(LONGEST_LAST).collect());
            drop(last);
            let admission = ceiling.admit(Instant::now());
            if let Some(note) = admission.note {
                tracing::info!(target: SERVER_STDERR, server = %server, "{note}");
            }
            if admission.is_logged {
                tracing::info!(target: SERVER_STDERR, server = %server, "{line}");
            }
        }
    };
    each_line(BufReader::new(stderr), log);
    if let Some(note) = ceiling.left_out_note() {
        tracing::info!(target: SERVER_STDERR, server = %server, "{note}");
    }
}

/// The ceiling of the lines of one stderr in the log.
#[derive(Debug, Default)]
struct LogCeiling {
    /// The start of the current minute.
    begun: Option<Instant>,
    /// The lines that were logged in it.
    logged: u32,
    /// The lines that were left out in it.
    left_out: u64,
}

/// The decision about one line.
#[derive(Debug, PartialEq, Eq)]
struct LineAdmission {
    is_logged: bool,
    /// A record about lines that are left out, before the line.
    note: Option<String>,
}

impl LogCeiling {
    /// Counts one line at `now`.
    fn admit(&mut self, now: Instant) -> LineAdmission {
        let mut note = None;
        let is_over = |begun: Instant| now.duration_since(begun) >= MINUTE;
        if self.begun.is_none_or(is_over) {
            note = self.left_out_note();
            *self = Self {
                begun: Some(now),
                ..Self::default()
            };
        }
        let is_logged = self.logged < LINES_A_MINUTE;
        if is_logged {
            self.logged += 1;
        } else {
            self.left_out += 1;
            if self.left_out == 1 {
                note = Some(format!(
                    "(more than {LINES_A_MINUTE} lines in a minute: the rest of them are left out)"
                ));
            }
        }
        LineAdmission { is_logged, note }
    }

    /// Returns the record with the number of lines that were left out, if any were.
    fn left_out_note(&self) -> Option<String> {
        (self.left_out > 0).then(|| format!("({} lines were left out)", self.left_out))
    }
}

/// Calls `log` with each line, and with each part of a line that is too long.
fn each_line(mut from: impl io::BufRead, mut log: impl FnMut(&[u8])) {
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
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        each_line(BufReader::with_capacity(7, bytes), |line| {
            lines.push(plain(line));
        });
        lines
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

    #[test]
    fn lines_beyond_the_ceiling_of_a_minute_are_left_out_and_counted() {
        let mut ceiling = LogCeiling::default();
        let start = Instant::now();
        let logged = |note: Option<&str>| LineAdmission {
            is_logged: true,
            note: note.map(str::to_owned),
        };
        for _ in 0..LINES_A_MINUTE {
            assert_eq!(ceiling.admit(start), logged(None));
        }
        assert_eq!(ceiling.left_out_note(), None);
        let first = ceiling.admit(start);
        assert!(!first.is_logged && first.note.is_some(), "{first:?}");
        let second = ceiling.admit(start + Duration::from_secs(59));
        assert!(!second.is_logged && second.note.is_none(), "{second:?}");
        let next = ceiling.admit(start + MINUTE);
        assert_eq!(next, logged(Some("(2 lines were left out)")));
        assert_eq!(ceiling.admit(start + MINUTE), logged(None));
        assert_eq!(ceiling.left_out_note(), None);
    }
}
