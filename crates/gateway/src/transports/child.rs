//! A server as a child process: frames as lines on its stdin and stdout, its stderr as records of the log.

use std::io::{self, BufRead as _, BufReader};
use std::process::ChildStdout;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use crate::byte_account::{ByteShare, SharedByteAccount};
use crate::frame::{FrameBytes, one_line};
use crate::session::{ForwardedHeaders, ServerTransport, Session};
use crate::transports::child_limit::ChildSlot;
use crate::transports::pipe_writer::{Flushed, PipeWriter, WrittenPart};
use crate::transports::process::{GRACE, Process, Program};
use crate::transports::unfinished::UnfinishedMessage;
use mcp_elicit_core::text::without_mark;
use mcp_elicit_relay::{CallId, DeliveryId, Event, StreamId};

/// The bytes read from a pipe at once.
const READ: usize = 64 * 1024;

/// The bytes that may wait for a server that does not read, before more are refused.
const QUEUED: usize = 64 * 1024 * 1024;

/// The bytes that wait for all servers: a server may ask without end and read no answer. Alone it may have 128 MiB, which
/// leaves room for clients' requests ([`QUEUED`]).
static UNWRITTEN: SharedByteAccount = SharedByteAccount::new(512 * 1024 * 1024, 4, 8 * 1024 * 1024);

/// The reason why a server ended that asks and does not read.
const OVERFULL: &str =
    "it does not read what it is sent: too many answers to its own requests waited for it";

/// The largest buffer that is kept for the next frame, in bytes.
const REUSABLE_BUFFER: usize = 2 * 1024 * 1024;

/// A running child.
pub(crate) struct ChildTransport {
    program: Program,
    /// The server's name, for the log.
    name: String,
    pipe: PipeWriter,
    process: Mutex<Option<Process>>,
    /// The number of processes that ended before this one: their output is dropped.
    restarts: AtomicU64,
    /// The bytes that wait for it. Clients' requests are held back where they are read ([`QUEUED`]).
    waiting: ByteShare,
    reports: Reports,
    /// `true` from the decision to end the process because too much waits for it, until the next one starts.
    is_overfull: AtomicBool,
    /// The time that a full pipe is waited for before another thread takes over.
    room_wait: Duration,
    /// The slot among all children, held while this exists.
    _counted: Option<ChildSlot>,
    me: Weak<Self>,
    session: OnceLock<Weak<Session>>,
    max_frame: usize,
}

impl ChildTransport {
    /// Starts the program. Frames of the server above `max_frame` bytes end it. A sender waits at most `room_wait` for
    /// it to read.
    pub(crate) fn start(
        program: Program,
        name: &str,
        max_frame: usize,
        room_wait: Duration,
        counted: Option<ChildSlot>,
    ) -> io::Result<(Arc<Self>, ChildStdout)> {
        let (process, stdin, stdout) = Process::start(&program, name)?;
        let server = Arc::new_cyclic(|me| Self {
            program,
            name: name.to_owned(),
            pipe: PipeWriter::new(Box::new(stdin)),
            process: Mutex::new(Some(process)),
            restarts: AtomicU64::new(0),
            waiting: ByteShare::new(&UNWRITTEN),
            reports: Reports::default(),
            is_overfull: AtomicBool::new(false),
            room_wait,
            _counted: counted,
            me: me.clone(),
            session: OnceLock::new(),
            max_frame,
        });
        Ok((server, stdout))
    }

    /// Reads the server's frames into this session until it ends, on a separate thread.
    pub(crate) fn attach(&self, session: &Arc<Session>, stdout: ChildStdout) -> io::Result<()> {
        let _set_once = self.session.set(Arc::downgrade(session));
        self.spawn_reader(stdout)
    }

    fn spawn_reader(&self, stdout: ChildStdout) -> io::Result<()> {
        let this = self.me.upgrade();
        thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || {
                if let Some(this) = this {
                    this.read(stdout);
                }
            })
            .map(|_| ())
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.session.get().and_then(Weak::upgrade)
    }

    fn read(&self, stdout: ChildStdout) {
        let mut reader = BufReader::with_capacity(READ, stdout);
        let session = self.session();
        let number = self.restarts.load(Ordering::Acquire);
        let is_current = || self.restarts.load(Ordering::Acquire) == number;
        let unfinished = UnfinishedMessage::of(&self.name, self.max_frame);
        let ended = read_frames(&mut reader, unfinished, |frame| {
            if let Some(session) = session.as_ref().filter(|_| is_current()) {
                session.handle_server(None, FrameBytes::Lent(frame));
            }
        });
        if !is_current() {
            return;
        }
        let why = match ended {
            Ok(()) => self.reap(),
            Err(error) => {
                self.kill();
                Some(error.to_string())
            }
        };
        if why.is_some() {
            // Another process may still hold the pipe, without reading from it.
            self.pipe.close_within(Duration::ZERO);
            self.report();
        }
        if let (Some(session), Some(why)) = (session, why) {
            session.tell(Event::ServerGone(why));
        }
    }

    fn take_process(&self) -> Option<Process> {
        self.process
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Returns the reason of the child's end, in words; `None` if it was stopped with its session.
    fn reap(&self) -> Option<String> {
        Some(match self.take_process()?.end(Some(GRACE)) {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        })
    }

    fn kill(&self) {
        if let Some(Err(error)) = self.take_process().map(Process::kill) {
            tracing::warn!(%error, "a server could not be ended");
        }
    }
}

impl ChildTransport {
    /// Ends the process because too much waits for it. People's answers that were not written stay in the record.
    fn end_overfull(&self) {
        if self.is_overfull.swap(true, Ordering::AcqRel) {
            return;
        }
        let Some(this) = self.me.upgrade() else {
            return;
        };
        // In another thread, because the relay is busy with the message that is one too many.
        thread::spawn(move || {
            tracing::warn!(server = this.name, "{OVERFULL}");
            this.restarts.fetch_add(1, Ordering::AcqRel);
            this.kill();
            this.pipe.close_within(Duration::ZERO);
            this.report();
            if let Some(session) = this.session() {
                session.tell(Event::ServerGone(OVERFULL.to_owned()));
            }
        });
    }
}

impl ServerTransport for ChildTransport {
    fn send(
        &self,
        frame: FrameBytes<'_>,
        call: Option<CallId>,
        _stream: Option<StreamId>,
        delivery: Option<DeliveryId>,
        _within: ForwardedHeaders,
    ) {
        if self.is_overfull.load(Ordering::Acquire) && delivery.is_none() {
            return;
        }
        // A single message may have any allowed length.
        let is_only = self.pipe.unwritten() == 0;
        self.pipe.push(frame.bytes(), delivery);
        if !self.waiting.set(self.pipe.unwritten()) && !is_only && call.is_none() {
            self.end_overfull();
        }
    }

    fn flush(&self) {
        if self.pipe.flush_within(self.room_wait) == Flushed::Full {
            self.spawn_writer();
        }
        self.report();
    }

    fn is_up(&self) -> bool {
        !self.pipe.is_broken()
    }

    fn has_room(&self) -> bool {
        self.pipe.unwritten() < QUEUED
    }

    fn unwritten(&self) -> usize {
        self.pipe.unwritten()
    }

    fn abandon(&self, _call: CallId) {}

    fn restart(&self) {
        let Some(session) = self.session() else {
            return;
        };
        self.restarts.fetch_add(1, Ordering::AcqRel);
        let earlier = self.take_process();
        let started = Process::start(&self.program, &self.name);
        let started = started.and_then(|(process, stdin, stdout)| {
            self.pipe.reopen(Box::new(stdin));
            self.is_overfull.store(false, Ordering::Release);
            *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Some(process);
            self.spawn_reader(stdout)
        });
        if let Some(earlier) = earlier {
            // It may still run, and ends when its input does.
            thread::spawn(move || {
                if let Err(error) = earlier.end(Some(GRACE)) {
                    tracing::warn!(%error, "a server could not be ended");
                }
            });
        }
        let event = match started {
            Ok(()) => Event::Restarted,
            Err(error) => Event::ServerGone(error.to_string()),
        };
        // In another thread, because the relay is busy with the effect that requested this.
        thread::spawn(move || session.tell(event));
    }

    fn close(&self) {
        let left = self.pipe.close_within(GRACE);
        self.report();
        self.reports.wait_within(GRACE);
        let ended = self.take_process().map(|process| process.end(left));
        if let Some(Err(error)) = ended {
            tracing::warn!(%error, "a server could not be ended");
        }
    }
}

impl ChildTransport {
    /// Writes the rest as the server reads, on a separate thread.
    fn spawn_writer(&self) {
        let Some(this) = self.me.upgrade().filter(|this| this.pipe.claim_rest()) else {
            return;
        };
        let started = thread::Builder::new()
            .name("to server".to_owned())
            .spawn(move || this.pipe.write_rest(|| this.report()));
        if let Err(error) = started {
            self.pipe.disclaim_rest();
            tracing::error!(%error, "a server cannot be waited for");
        }
    }

    /// Tells the session the results of written answers, and counts what still waits.
    fn report(&self) {
        let _fewer = self.waiting.set(self.pipe.unwritten());
        let Some((reports, _until_told)) = self.reports.begin(|| self.pipe.take_reports()) else {
            return;
        };
        let Some(session) = self.session() else {
            return;
        };
        for (delivery, written) in reports {
            session.tell(match written {
                WrittenPart::Whole => Event::Accepted(delivery),
                WrittenPart::Nothing => Event::Refused {
                    delivery,
                    why: "the server has closed its input".to_owned(),
                },
                WrittenPart::Part => Event::Lost {
                    delivery,
                    why: "the server closed its input in the middle of it".to_owned(),
                },
            });
        }
    }
}

/// The number of threads that tell the session of written answers. A session waits for them at its end, since what it
/// learns later is not recorded.
#[derive(Default)]
struct Reports {
    running: Mutex<usize>,
    ended: Condvar,
}

/// One of the [`Reports`], until it is dropped.
struct RunningReport<'r>(&'r Reports);

impl Reports {
    /// Takes what is to be reported, if there is anything.
    fn begin<T>(&self, take: impl FnOnce() -> Vec<T>) -> Option<(Vec<T>, RunningReport<'_>)> {
        let mut running = self.running();
        let taken = take();
        if taken.is_empty() {
            return None;
        }
        *running += 1;
        Some((taken, RunningReport(self)))
    }

    fn wait_within(&self, most: Duration) {
        let waited = self
            .ended
            .wait_timeout_while(self.running(), most, |running| *running > 0);
        drop(waited);
    }

    fn running(&self) -> MutexGuard<'_, usize> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningReport<'_> {
    fn drop(&mut self) {
        *self.0.running() -= 1;
        self.0.ended.notify_all();
    }
}

/// Reads lines until the end; each, without its line end, is a frame. A line that is too long is an error.
pub(crate) fn read_frames(
    reader: &mut BufReader<impl io::Read>,
    mut unfinished: UnfinishedMessage,
    mut each: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut begun: Vec<u8> = Vec::new();
    loop {
        let buffer = match reader.fill_buf() {
            Ok([]) => {
                pass(&begun, &mut each);
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
                if begun.capacity() > REUSABLE_BUFFER {
                    begun = Vec::new();
                }
                begun.clear();
            }
            from += at + 1;
        }
        begun.extend_from_slice(&buffer[from..]);
        let read = buffer.len();
        reader.consume(read);
        unfinished.set(begun.len()).map_err(io::Error::other)?;
    }
}

fn pass(line: &[u8], each: &mut impl FnMut(&[u8])) {
    let line = without_mark(line).trim_ascii();
    if !line.is_empty() {
        each(&one_line(line));
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
            read_frames(&mut reader, UnfinishedMessage::of("a", 100), |frame| {
                frames.push(String::from_utf8_lossy(frame).into_owned());
            })
            .unwrap();
            assert_eq!(frames, ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]);
        }
        let marked = b"\xEF\xBB\xBF{\"a\":\r1}\r\n";
        let mut reader = BufReader::with_capacity(4, &marked[..]);
        let mut frames = Vec::new();
        read_frames(&mut reader, UnfinishedMessage::of("a", 100), |frame| {
            frames.push(frame.to_vec());
        })
        .unwrap();
        assert_eq!(frames, [b"{\"a\": 1}"]);
        let mut reader = BufReader::with_capacity(4, &text[..]);
        assert!(read_frames(&mut reader, UnfinishedMessage::of("b", 5), |_| ()).is_err());
    }
}
