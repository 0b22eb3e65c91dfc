use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// The longest line that is read, in bytes; a longer one is an error.
const LONGEST: usize = 1 << 20;

/// Lines from a blocking input, with a limit on each wait.
///
/// A thread reads one line each time one is requested and never ahead, so the rest of the input stays there for other
/// readers.
#[derive(Debug)]
pub(super) struct Lines {
    wanted: Sender<()>,
    read: Receiver<io::Result<Waited>>,
    /// `true` if a line was requested and has not come yet.
    underway: bool,
}

/// The result of waiting for a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waited {
    Line(String),
    /// The last line, which has no line end: its writer may have ended in the middle of it.
    Cut(String),
    End,
    NotYet,
}

impl Lines {
    pub(super) fn new(mut input: impl BufRead + Send + 'static) -> io::Result<Self> {
        let (wanted, asked) = channel();
        let (give, read) = channel();
        thread::Builder::new()
            .name("elicit-lines".to_owned())
            .spawn(move || {
                while asked.recv().is_ok() {
                    if give.send(read_line(&mut input)).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            wanted,
            read,
            underway: false,
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
            Ok(line) => {
                self.underway = false;
                line
            }
            Err(RecvTimeoutError::Timeout) => Ok(Waited::NotYet),
            Err(RecvTimeoutError::Disconnected) => Ok(Waited::End),
        }
    }
}

fn read_line(input: &mut impl BufRead) -> io::Result<Waited> {
    let mut bytes = Vec::new();
    let is_whole = loop {
        let chunk = input.fill_buf()?;
        if chunk.is_empty() {
            if bytes.is_empty() {
                return Ok(Waited::End);
            }
            break false;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(chunk.len(), |at| at + 1);
        bytes.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
        input.consume(taken);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read};

    #[test]
    fn lines_come_without_their_breaks_and_a_last_one_without_a_break_is_told_apart() {
        let mut input = Cursor::new(b"a\r\n\nb".to_vec());
        assert_eq!(read_line(&mut input).unwrap(), Waited::Line("a".to_owned()));
        assert_eq!(read_line(&mut input).unwrap(), Waited::Line(String::new()));
        assert_eq!(read_line(&mut input).unwrap(), Waited::Cut("b".to_owned()));
        assert_eq!(read_line(&mut input).unwrap(), Waited::End);
    }

    #[test]
    fn endless_lines_and_broken_text_are_errors() {
        let mut endless = io::BufReader::new(io::repeat(b'x').take(3 << 20));
        assert_eq!(
            read_line(&mut endless).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
        let mut broken = Cursor::new(vec![0xff, b'\n']);
        assert_eq!(
            read_line(&mut broken).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }
}
