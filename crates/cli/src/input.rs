//! The input of a command: a file, or stdin for `-`. Sizes are limited, since a pipe may never end.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, Read, Write as _, stdin};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use mcp_elicit_core::text::without_mark;

use crate::failure::Failure;

/// The time after a question in which nobody has read it yet, so that a line cannot answer it.
const TIME_TO_READ: Duration = Duration::from_millis(300);
/// The most bytes of a typed line that are kept.
const LONGEST_TYPED: usize = 4096;

/// Asks on the terminal, and returns the line that a person typed there; empty at the end of the input. What was typed
/// before the question could be read is no answer, and it is asked again.
///
/// # Errors
/// If the terminal cannot be used.
pub(crate) fn typed_answer(question: &str) -> io::Result<String> {
    let mut err = anstream::stderr();
    loop {
        discard_typed();
        write!(err, "{question}")?;
        err.flush()?;
        let shown = now();
        let Some(line) = typed_line(&mut stdin().lock())? else {
            return Ok(String::new());
        };
        if now().duration_since(shown) >= TIME_TO_READ {
            return Ok(line);
        }
        writeln!(
            err,
            "  ! That came before you could read this: type it again."
        )?;
    }
}

#[expect(clippy::disallowed_methods, reason = "the time of a typed line")]
fn now() -> Instant {
    Instant::now()
}

/// Discards what was typed at the terminal and not read so far. The rest of a pipe stays.
fn discard_typed() {
    #[cfg(unix)]
    let _as_it_is = rustix::termios::tcflush(stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Reads a line. The rest of what the system returned with it, at a terminal that edits no lines, is dropped. `None` at
/// the end.
fn typed_line(source: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    loop {
        let chunk = source.fill_buf()?;
        if chunk.is_empty() {
            return Ok(None);
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        if line.len() < LONGEST_TYPED {
            line.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
        }
        let all = chunk.len();
        source.consume(all);
        if end.is_some() {
            return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
        }
    }
}

/// The largest part that is read of one input, in bytes.
const MOST: u64 = 64 << 20;

/// A file, or stdin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InputSource {
    /// `-`
    Stdin,
    /// A path.
    File(PathBuf),
}

impl FromStr for InputSource {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "-" {
            Self::Stdin
        } else {
            Self::File(text.into())
        })
    }
}

impl fmt::Display for InputSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("stdin"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl InputSource {
    /// Reads the whole input, of arbitrary bytes, without a byte order mark.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Failure> {
        self.read_opened(|path| File::open(path))
    }

    /// Reads the whole input like [`read`](Self::read), without waiting for a pipe or a device that is named as a file.
    #[cfg(feature = "full")]
    pub(crate) fn read_configuration(&self) -> Result<Vec<u8>, Failure> {
        self.read_opened(mcp_elicit_record::state_file::open_named)
    }

    fn read_opened(&self, open: impl Fn(&Path) -> io::Result<File>) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let mut source: Box<dyn Read> = match self {
            Self::Stdin => Box::new(stdin().lock()),
            Self::File(path) => Box::new(open(path).map_err(|error| self.unreadable(error))?),
        };
        let read = source
            .by_ref()
            .take(MOST + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| self.unreadable(error))?;
        if read as u64 > MOST {
            return Err(Failure::usage(format!(
                "{self} is longer than {} MiB",
                MOST >> 20
            )));
        }
        let marks = bytes.len() - without_mark(&bytes).len();
        bytes.drain(..marks);
        Ok(bytes)
    }

    fn unreadable(&self, error: io::Error) -> Failure {
        Failure::usage(format!("cannot read {self}"))
            .because(error)
            .hint("check the path and the permissions; `-` reads from stdin.")
    }
}

/// The outcome of reading one line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineResult {
    /// A whole line, without its end.
    Whole,
    /// A line that is too long; the rest of it was skipped.
    TooLong,
    /// The end of the input.
    End,
}

/// Reads the next line into `line`, which keeps at most `most` bytes of it.
pub(crate) fn next_line(
    source: &mut impl BufRead,
    line: &mut Vec<u8>,
    most: usize,
) -> io::Result<LineResult> {
    line.clear();
    let mut too_long = false;
    let mut some = false;
    loop {
        let chunk = source.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        some = true;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let piece = &chunk[..end.unwrap_or(chunk.len())];
        if line.len() + piece.len() > most {
            too_long = true;
        } else if !too_long {
            line.extend_from_slice(piece);
        }
        let used = end.map_or(chunk.len(), |at| at + 1);
        source.consume(used);
        if end.is_some() {
            break;
        }
    }
    Ok(match (some, too_long) {
        (false, _) => LineResult::End,
        (true, true) => LineResult::TooLong,
        (true, false) => LineResult::Whole,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_a_typed_line_is_dropped() {
        // Each part is what one read returns.
        let parts = b"y\nyes\nn".chain(&b"o\n"[..]);
        let mut source = io::BufReader::new(parts);
        let mut next = || typed_line(&mut source).expect("memory can be read");
        assert_eq!(next().as_deref(), Some("y"));
        assert_eq!(next().as_deref(), Some("o"));
        assert_eq!(next(), None);
    }

    #[test]
    fn lines_are_bounded_and_what_follows_is_still_read() {
        let mut source = io::BufReader::with_capacity(3, &b"ab\n\nabcdefgh\nxyz"[..]);
        let mut line = Vec::new();
        let mut seen = Vec::new();
        loop {
            match next_line(&mut source, &mut line, 5).expect("memory can be read") {
                LineResult::End => break,
                LineResult::TooLong => seen.push("too long".to_owned()),
                LineResult::Whole => seen.push(String::from_utf8_lossy(&line).into_owned()),
            }
        }
        assert_eq!(seen, ["ab", "", "too long", "xyz"]);
    }
}
