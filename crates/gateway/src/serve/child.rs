//! A server as a child process: frames as lines on its stdin and stdout, its stderr passed through.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use super::frame::Frame;
use super::pipe::Pipe;
use super::session::{ServerSide, Session};
use crate::relay::{CallKey, Door, Event};

/// How to start a server.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables set for it beside the gateway's own.
    pub environment: Vec<(String, String)>,
}

impl Program {
    /// The program and its arguments as the words of a command; `None` where there is no word.
    pub fn from_words<W: Into<OsString>>(words: impl IntoIterator<Item = W>) -> Option<Self> {
        let mut words = words.into_iter().map(Into::into);
        Some(Self {
            program: words.next()?,
            arguments: words.collect(),
            environment: Vec::new(),
        })
    }
}

/// How long a server that reads its end may take to stop by itself.
const GRACE: Duration = Duration::from_secs(2);
/// Bytes read from a pipe at once.
const READ: usize = 64 * 1024;

/// The largest buffer that is kept for the next frame, in bytes.
const KEPT: usize = 2 * 1024 * 1024;

/// A running child.
pub struct ChildServer {
    program: Program,
    pipe: Pipe,
    child: Mutex<Option<Child>>,
    session: OnceLock<Weak<Session>>,
    max_frame: usize,
    /// Whether frames are written on the driver's time, since whoever sends must not wait.
    later: bool,
}

impl ChildServer {
    /// Starts the program. Frames of the server above `max_frame` bytes end it.
    pub fn start(
        program: Program,
        max_frame: usize,
        later: bool,
    ) -> io::Result<(Arc<Self>, ChildStdout)> {
        let (child, stdin, stdout) = spawn(&program)?;
        let server = Arc::new(Self {
            program,
            pipe: Pipe::new(stdin),
            child: Mutex::new(Some(child)),
            session: OnceLock::new(),
            max_frame,
            later,
        });
        Ok((server, stdout))
    }

    /// Reads the server's frames into this session until it ends, on a thread of its own.
    pub fn attach(self: &Arc<Self>, session: &Arc<Session>, stdout: ChildStdout) -> io::Result<()> {
        let _set_once = self.session.set(Arc::downgrade(session));
        let this = self.clone();
        thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || this.read(stdout))
            .map(|_| ())
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.session.get().and_then(Weak::upgrade)
    }

    fn read(&self, stdout: ChildStdout) {
        let mut reader = BufReader::with_capacity(READ, stdout);
        let session = self.session();
        let ended = read_frames(&mut reader, self.max_frame, |frame| {
            if let Some(session) = &session {
                session.from_server(None, Frame::Lent(frame));
            }
        });
        let why = match ended {
            Ok(()) => self.reap(),
            Err(error) => {
                self.kill();
                Some(error.to_string())
            }
        };
        if let (Some(session), Some(why)) = (session, why) {
            session.tell(Event::ServerGone(why));
        }
    }

    /// How the child ended, in words; `None` when it was stopped with its session.
    fn reap(&self) -> Option<String> {
        let child = self
            .child
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        Some(match wait(&mut child?) {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        })
    }

    fn kill(&self) {
        if let Some(mut child) = self
            .child
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            let _ended_already = child.kill();
            let _reaped = child.wait();
        }
    }
}

impl ServerSide for ChildServer {
    fn send(&self, frame: Frame<'_>, _call: Option<CallKey>, _door: Option<Door>) {
        let frame = frame.bytes();
        if memchr::memchr2(b'\n', b'\r', frame).is_some() {
            // A frame is one line here; JSON may break lines anywhere between its tokens, and nowhere else.
            let line: Vec<u8> = frame
                .iter()
                .map(|byte| {
                    if matches!(byte, b'\n' | b'\r') {
                        b' '
                    } else {
                        *byte
                    }
                })
                .collect();
            self.pipe.push(&line);
        } else {
            self.pipe.push(frame);
        }
    }

    fn flush(&self) {
        match self
            .session()
            .filter(|_| self.later && !self.pipe.is_empty())
        {
            Some(session) => session.flush_later(),
            None if self.later => {}
            None => self.pipe.flush(),
        }
    }

    fn is_up(&self) -> bool {
        !self.pipe.is_broken()
    }

    fn may_wait(&self) -> bool {
        // Otherwise `flush` leaves it to the driver already.
        !self.later
    }

    fn write_out(&self) {
        self.pipe.flush();
    }

    fn abandon(&self, _call: CallKey) {}

    fn restart(&self) {
        let Some(session) = self.session() else {
            return;
        };
        let event = match spawn(&self.program) {
            Ok((child, stdin, stdout)) => {
                self.pipe.reopen(stdin);
                *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
                self.resume(&session, stdout)
            }
            Err(error) => Event::ServerGone(error.to_string()),
        };
        // Not from here: the relay is busy with what wanted this.
        thread::spawn(move || session.tell(event));
    }

    fn close(&self) {
        self.pipe.close();
        let mut child = self
            .child
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(child) = &mut child {
            let _stopped = wait(child);
        }
    }
}

impl ChildServer {
    fn resume(&self, session: &Arc<Session>, stdout: ChildStdout) -> Event {
        let session = session.clone();
        let max_frame = self.max_frame;
        let reader = thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || {
                let mut reader = BufReader::with_capacity(READ, stdout);
                let ended = read_frames(&mut reader, max_frame, |frame| {
                    session.from_server(None, Frame::Lent(frame));
                });
                let why = ended.err().map_or_else(
                    || "it closed its output".to_owned(),
                    |error| error.to_string(),
                );
                session.tell(Event::ServerGone(why));
            });
        match reader {
            Ok(_) => Event::Restarted,
            Err(error) => Event::ServerGone(error.to_string()),
        }
    }
}

type Stdin = Box<dyn io::Write + Send>;

fn spawn(program: &Program) -> io::Result<(Child, Stdin, ChildStdout)> {
    let mut child = Command::new(&program.program)
        .args(&program.arguments)
        .envs(
            program
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let gone = || io::Error::other("the child has no pipes");
    let stdin = child.stdin.take().ok_or_else(gone)?;
    let stdout = child.stdout.take().ok_or_else(gone)?;
    Ok((child, Box::new(stdin), stdout))
}

/// Waits for a child that was told to stop, and stops it when it does not.
fn wait(child: &mut Child) -> io::Result<std::process::ExitStatus> {
    let step = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    while waited < GRACE {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(step);
        waited += step;
    }
    child.kill()?;
    child.wait()
}

/// Reads lines until the end; each, without its end, is a frame. A line above `max` bytes is an error.
pub fn read_frames(
    reader: &mut BufReader<impl io::Read>,
    max: usize,
    mut each: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut begun: Vec<u8> = Vec::new();
    loop {
        let buffer = match reader.fill_buf() {
            Ok([]) => {
                if !begun.trim_ascii().is_empty() {
                    each(begun.trim_ascii());
                }
                return Ok(());
            }
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut from = 0;
        while let Some(at) = memchr::memchr(b'\n', &buffer[from..]) {
            let line = &buffer[from..from + at];
            if begun.is_empty() {
                pass(line, &mut each);
            } else {
                begun.extend_from_slice(line);
                pass(&begun, &mut each);
                if begun.capacity() > KEPT {
                    begun = Vec::new();
                }
                begun.clear();
            }
            from += at + 1;
        }
        begun.extend_from_slice(&buffer[from..]);
        let read = buffer.len();
        reader.consume(read);
        if begun.len() > max {
            return Err(io::Error::other(format!(
                "a message of more than {max} bytes"
            )));
        }
    }
}

fn pass(line: &[u8], each: &mut impl FnMut(&[u8])) {
    let line = line.trim_ascii();
    if !line.is_empty() {
        each(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_frames_however_they_are_cut() {
        let text = b"{\"a\":1}\r\n\n  \n{\"b\":2}\n{\"c\":3}";
        for size in 1..12 {
            let mut reader = BufReader::with_capacity(size, &text[..]);
            let mut frames = Vec::new();
            read_frames(&mut reader, 100, |frame| {
                frames.push(String::from_utf8_lossy(frame).into_owned());
            })
            .unwrap();
            assert_eq!(frames, ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]);
        }
        let mut reader = BufReader::with_capacity(4, &text[..]);
        assert!(read_frames(&mut reader, 5, |_| ()).is_err());
    }
}
