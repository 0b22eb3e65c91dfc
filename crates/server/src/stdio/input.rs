//! The input, divided into lines.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest message that is read, in bytes; the bound of rmcp.
pub(super) const LONGEST: usize = 16 * 1024 * 1024;

/// The number of bytes that one read can return, at least.
const READ: usize = 64 * 1024;

/// One line of the input, without the line break.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine<'a> {
    Whole(&'a [u8]),
    /// A line longer than [`LONGEST`], whose beginning has been dropped. Its rest is dropped by the next reads.
    TooLong,
    End,
}

/// The bytes that were read and not used yet.
#[derive(Debug)]
pub(super) struct InputBytes<R> {
    reader: R,
    bytes: Vec<u8>,
    /// The start of the next line in `bytes`.
    start: usize,
    /// The position in `bytes` from which a line break is searched.
    searched: usize,
    /// True while the rest of a line that was too long is dropped.
    dropping: bool,
    longest: usize,
}

impl<R: AsyncRead + Unpin> InputBytes<R> {
    pub(super) fn new(reader: R) -> Self {
        Self::bounded(reader, LONGEST)
    }

    pub(super) fn bounded(reader: R, longest: usize) -> Self {
        Self {
            reader,
            bytes: Vec::new(),
            start: 0,
            searched: 0,
            dropping: false,
            longest,
        }
    }

    /// Returns the next line that is not empty. What has been read is kept if the future is dropped.
    pub(super) async fn line(&mut self) -> io::Result<InputLine<'_>> {
        loop {
            if let Some(end) = self.next_line_break() {
                let line = self.start..end;
                self.start = end + 1;
                self.searched = self.start;
                if std::mem::take(&mut self.dropping) {
                    continue;
                }
                if line.len() > self.longest {
                    return Ok(InputLine::TooLong);
                }
                let line = trimmed(line, &self.bytes);
                if !line.is_empty() {
                    return Ok(InputLine::Whole(&self.bytes[line]));
                }
                continue;
            }
            if self.dropping {
                self.bytes.truncate(self.start);
                self.searched = self.start;
            } else if self.bytes.len() - self.start > self.longest {
                self.bytes.truncate(self.start);
                self.searched = self.start;
                self.dropping = true;
                return Ok(InputLine::TooLong);
            }
            self.make_room();
            if self.reader.read_buf(&mut self.bytes).await? == 0 {
                let line = trimmed(self.start..self.bytes.len(), &self.bytes);
                self.start = self.bytes.len();
                self.searched = self.start;
                return Ok(if line.is_empty() {
                    InputLine::End
                } else {
                    InputLine::Whole(&self.bytes[line])
                });
            }
        }
    }

    fn next_line_break(&mut self) -> Option<usize> {
        let found = memchr::memchr(b'\n', &self.bytes[self.searched..]);
        let found = found.map(|at| self.searched + at);
        self.searched = self.bytes.len();
        found
    }

    /// Moves the beginning of the next line to the front, and lets one read return at least [`READ`] bytes.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        // The memory of a large message is not kept.
        if self.bytes.len() < READ && self.bytes.capacity() > 16 * READ {
            self.bytes.shrink_to(READ);
        }
        self.bytes.reserve(READ);
    }
}

/// Returns the part of a line that is neither a byte order mark at its beginning nor white space at its ends.
fn trimmed(line: std::ops::Range<usize>, bytes: &[u8]) -> std::ops::Range<usize> {
    let whole = &bytes[line.clone()];
    let begun = whole
        .strip_prefix(b"\xEF\xBB\xBF")
        .unwrap_or(whole)
        .trim_ascii_start();
    let start = line.end - begun.len();
    start..start + begun.trim_ascii_end().len()
}
