//! The input of a command: a file, or stdin for `-`. Sizes are limited, since a pipe may never end.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, Read, stdin};
use std::path::PathBuf;
use std::str::FromStr;

use mcp_elicit_core::text::without_mark;

use crate::failure::Failure;

/// The largest part that is read of one input, in bytes.
const MOST: u64 = 64 << 20;

/// A file, or stdin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// `-`
    Stdin,
    /// A path.
    File(PathBuf),
}

impl FromStr for Input {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "-" {
            Self::Stdin
        } else {
            Self::File(text.into())
        })
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("stdin"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Input {
    /// Reads the whole input, of arbitrary bytes, without a byte order mark.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let mut source: Box<dyn Read> = match self {
            Self::Stdin => Box::new(stdin().lock()),
            Self::File(path) => Box::new(File::open(path).map_err(|error| self.unreadable(error))?),
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

    fn unreadable(&self, error: std::io::Error) -> Failure {
        Failure::usage(format!("cannot read {self}"))
            .because(error)
            .hint("check the path and the permissions; `-` reads from stdin.")
    }
}

/// The outcome of reading one line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
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
) -> std::io::Result<Line> {
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
        (false, _) => Line::End,
        (true, true) => Line::TooLong,
        (true, false) => Line::Whole,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_what_follows_is_still_read() {
        let mut source = std::io::BufReader::with_capacity(3, &b"ab\n\nabcdefgh\nxyz"[..]);
        let mut line = Vec::new();
        let mut seen = Vec::new();
        loop {
            match next_line(&mut source, &mut line, 5).expect("memory can be read") {
                Line::End => break,
                Line::TooLong => seen.push("too long".to_owned()),
                Line::Whole => seen.push(String::from_utf8_lossy(&line).into_owned()),
            }
        }
        assert_eq!(seen, ["ab", "", "too long", "xyz"]);
    }
}
