use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::echo::Echo;

/// The longest line that is read, in bytes; a longer one is an error.
const LONGEST: usize = 1 << 20;
/// The time in which a line that the thread has read is handed over, at most.
const HAND_OVER: Duration = Duration::from_millis(20);
/// The time after a text in which nobody has read it yet, so that a line cannot answer it.
const TIME_TO_READ: Duration = Duration::from_millis(300);

/// Lines from a blocking input, with a limit on each wait.
///
/// A thread reads one line each time one is requested and never ahead, so the rest of the input stays there for other
/// readers.
#[derive(Debug)]
pub(super) struct TimedLines {
    wanted: Sender<()>,
    read: Receiver<(io::Result<Waited>, Instant)>,
    /// `true` if a line was requested and has not come yet.
    underway: bool,
    /// The number of times that what was typed is discarded.
    discarded: Arc<AtomicU64>,
    /// The time at which the text was shown that the next line has to answer.
    shown: Option<Instant>,
}

/// The result of waiting for a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waited {
    Line(String),
    /// The last line, which has no line end: its writer may have ended in the middle of it.
    Cut(String),
    /// A line that came before anybody can have read what it would answer.
    Early,
    End,
    NotYet,
}

impl TimedLines {
    pub(super) fn new(input: impl BufRead + Send + 'static) -> io::Result<Self> {
        let (wanted, asked) = channel();
        let (give, read) = channel();
        let discarded = Arc::new(AtomicU64::new(0));
        let mut reader = LineThread {
            input,
            rest: 0,
            discarded: Arc::clone(&discarded),
            seen: 0,
        };
        thread::Builder::new()
            .name("elicit-lines".to_owned())
            .spawn(move || {
                while asked.recv().is_ok() {
                    let line = reader.read_line();
                    if give.send((line, now())).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            wanted,
            read,
            underway: false,
            discarded,
            shown: None,
        })
    }

    /// Waits at most `wait` for the next line, and removes its line break.
    pub(super) fn next(&mut self, wait: Duration) -> io::Result<Waited> {
        if !self.underway {
            if self.wanted.send(()).is_err() {
                return Ok(Waited::End);
            }
            self.underway = true;
        }
        match self.read.recv_timeout(wait) {
            Ok((line, at)) => {
                self.underway = false;
                let line = line?;
                Ok(self.answering(line, at))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Waited::NotYet),
            Err(RecvTimeoutError::Disconnected) => Ok(Waited::End),
        }
    }

    /// Returns a line if somebody can have read what it answers.
    fn answering(&mut self, line: Waited, at: Instant) -> Waited {
        let is_line = matches!(line, Waited::Line(_) | Waited::Cut(_));
        match self.shown {
            Some(shown) if is_line && at < shown + TIME_TO_READ => Waited::Early,
            _ => {
                self.shown = None;
                line
            }
        }
    }

    /// Discards the lines that were typed at this terminal so far: they cannot be meant for what is only shown now. The
    /// lines of any other input stay.
    pub(super) fn discard_typed(&mut self, terminal: &Echo) {
        if !terminal.discard_unread() {
            return;
        }
        self.discarded.fetch_add(1, Ordering::Relaxed);
        // Requested for an earlier question, and read before the rest was discarded.
        if self.underway && self.read.recv_timeout(HAND_OVER).is_ok() {
            self.underway = false;
        }
    }

    /// Starts the time in which a line from this terminal is too early: its text was shown just now. Without effect on any
    /// other input.
    pub(super) fn have_shown(&mut self, terminal: &Echo) {
        self.shown = terminal.is_terminal().then(now);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the terminal is a shell: this is where it reads the clock"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// The thread's side.
struct LineThread<R> {
    input: R,
    /// The number of bytes that the input has read and that are in no line yet.
    rest: usize,
    discarded: Arc<AtomicU64>,
    /// The last number of times that is known here.
    seen: u64,
}

impl<R: BufRead> LineThread<R> {
    /// Returns `true` if what was typed has been discarded since the last call.
    fn is_discarded(&mut self) -> bool {
        let discarded = self.discarded.load(Ordering::Relaxed);
        std::mem::replace(&mut self.seen, discarded) != discarded
    }

    fn read_line(&mut self) -> io::Result<Waited> {
        if self.is_discarded() {
            // A terminal that edits no lines gives many at once.
            self.input.consume(self.rest);
            self.rest = 0;
        }
        let mut bytes = Vec::new();
        let is_whole = loop {
            let length = self.input.fill_buf()?.len();
            if self.is_discarded() {
                bytes.clear();
            }
            if length == 0 {
                if bytes.is_empty() {
                    return Ok(Waited::End);
                }
                break false;
            }
            // The same bytes.
            let chunk = self.input.fill_buf()?;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(chunk.len(), |at| at + 1);
            bytes.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
            self.rest = chunk.len() - taken;
            self.input.consume(taken);
            if bytes.len() > LONGEST {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a line of the input is longer than 1 MiB",
                ));
            }
            if end.is_some() {
                break true;
            }
        };
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        let line = String::from_utf8(bytes).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "a line of the input is not UTF-8",
            )
        })?;
        Ok(if is_whole {
            Waited::Line(line)
        } else {
            Waited::Cut(line)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read};

    fn reader<R: BufRead>(input: R) -> LineThread<R> {
        LineThread {
            input,
            rest: 0,
            discarded: Arc::default(),
            seen: 0,
        }
    }

    #[test]
    fn lines_come_without_their_breaks_and_a_last_one_without_a_break_is_told_apart() {
        let mut input = reader(Cursor::new(b"a\r\n\nb".to_vec()));
        assert_eq!(input.read_line().unwrap(), Waited::Line("a".to_owned()));
        assert_eq!(input.read_line().unwrap(), Waited::Line(String::new()));
        assert_eq!(input.read_line().unwrap(), Waited::Cut("b".to_owned()));
        assert_eq!(input.read_line().unwrap(), Waited::End);
    }

    #[test]
    fn endless_lines_and_broken_text_are_errors() {
        let mut endless = reader(io::BufReader::new(io::repeat(b'x').take(3 << 20)));
        assert_eq!(
            endless.read_line().unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
        let mut broken = reader(Cursor::new(vec![0xff, b'\n']));
        assert_eq!(
            broken.read_line().unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[test]
    fn what_was_read_with_a_line_is_discarded_with_what_was_typed() {
        // Each part is what one read returns.
        let parts = b"yes\nno\n".chain(&b"old\n"[..]);
        let mut input = reader(io::BufReader::new(parts));
        assert_eq!(input.read_line().unwrap(), Waited::Line("yes".to_owned()));
        input.discarded.fetch_add(1, Ordering::Relaxed);
        assert_eq!(input.read_line().unwrap(), Waited::Line("old".to_owned()));
        assert_eq!(input.read_line().unwrap(), Waited::End);
    }

    #[test]
    fn a_line_that_comes_at_once_answers_nothing_that_was_just_shown() {
        let mut lines = TimedLines::new(io::empty()).unwrap();
        let line = || Waited::Line("yes".to_owned());
        let shown = now();
        assert_eq!(lines.answering(line(), shown), line(), "nothing was shown");
        lines.shown = Some(shown);
        let early = shown + TIME_TO_READ / 2;
        assert_eq!(lines.answering(line(), early), Waited::Early);
        assert_eq!(lines.answering(Waited::End, shown), Waited::End);
        lines.shown = Some(shown);
        assert_eq!(lines.answering(line(), shown + TIME_TO_READ), line());
        assert_eq!(lines.answering(line(), shown), line(), "the next line");
    }
}
