//! Frames into a pipe: queued in order under the relay's lock, written outside it by the first free thread.
//!
//! A queue and a writer, with a lock each. A thread that finds the writer busy leaves its frames to the thread that
//! writes, so no thread that holds the relay ever waits for a peer that does not read. When a server's pipe is full,
//! the rest is written by a separate thread as the server reads, and dropped if the pipe is closed and the server no
//! longer reads. That thread stays for a while after it has written everything, since a pipe that was full is soon full
//! again.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use mcp_elicit_record::clock;
use mcp_elicit_relay::DeliveryId;

/// The largest buffer that is kept for the next frames, in bytes.
const REUSABLE_BUFFER: usize = 2 * 1024 * 1024;
/// The interval at which a waiting thread checks whether it should go on.
const STEP: Duration = Duration::from_millis(20);
/// The time that a separate thread stays after it has written everything.
const STAY: Duration = Duration::from_secs(1);

/// The end of a pipe that is written to. A write that would block may return [`WouldBlock`](io::ErrorKind::WouldBlock)
/// instead.
pub(crate) trait PipeEnd: Write + Send {
    /// Waits until the pipe may accept more, for at most `at_most`.
    fn wait(&self, at_most: Duration) {
        thread::sleep(at_most);
    }

    /// Returns `true` if a write may wait for the peer, so that only a separate thread may write.
    fn may_wait(&self) -> bool {
        false
    }
}

/// A pipe for frames, one per line.
pub(crate) struct PipeWriter {
    queue: Mutex<FrameQueue>,
    writer: Mutex<PipeWriterState>,
    /// Bytes that are not written yet.
    unwritten: AtomicUsize,
    broken: AtomicBool,
    /// `true` if only a separate thread writes.
    may_wait: bool,
    /// The separate thread, while there is one.
    thread: Mutex<PipeThread>,
    /// The signal that the thread is wanted, or has to stop.
    thread_wakes: Condvar,
    /// The time that the thread stays after it has written everything.
    stay: Duration,
    /// `true` once that thread must stop, whatever is left.
    given_up: AtomicBool,
    /// The reports on frames with answers, until they are taken.
    reports: Mutex<Vec<(DeliveryId, WrittenPart)>>,
}

/// The thread that writes as the peer reads.
#[derive(Default)]
struct PipeThread {
    /// `true` from the decision to start a thread until it ends.
    is_there: bool,
    /// `true` if the pipe was found full since the thread last checked.
    is_wanted: bool,
}

/// The queued frames.
#[derive(Default)]
struct FrameQueue {
    bytes: Vec<u8>,
    /// The positions of the frames with answers in them.
    deliveries: Vec<AnswerFrame>,
}

/// A frame with answers in the queued bytes.
struct AnswerFrame {
    delivery: DeliveryId,
    start: usize,
    end: usize,
}

/// The part of a frame that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrittenPart {
    /// All of it.
    Whole,
    /// Nothing.
    Nothing,
    /// A part, after which the pipe broke.
    Part,
}

/// The state of a pipe after its queue was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Everything is written, or another thread is writing.
    All,
    /// The pipe is full: [`PipeWriter::write_rest`] must be run on a separate thread.
    Full,
}

impl AnswerFrame {
    fn written(&self, bytes: usize) -> WrittenPart {
        if bytes >= self.end {
            WrittenPart::Whole
        } else if bytes <= self.start {
            WrittenPart::Nothing
        } else {
            WrittenPart::Part
        }
    }
}

struct PipeWriterState {
    /// `None` once it is closed.
    to: Option<Box<dyn PipeEnd>>,
    /// The frames being written; an empty buffer becomes the next queue.
    frames: Vec<u8>,
    /// The number of their bytes that are written.
    written: usize,
    /// The positions of the frames with answers in them.
    deliveries: Vec<AnswerFrame>,
}

impl PipeWriterState {
    fn wait(&self, at_most: Duration) {
        match &self.to {
            Some(to) => to.wait(at_most),
            None => thread::sleep(at_most),
        }
    }
}

impl PipeWriter {
    /// Creates a pipe into this end.
    pub(crate) fn new(end: Box<dyn PipeEnd>) -> Self {
        Self {
            queue: Mutex::default(),
            may_wait: end.may_wait(),
            writer: Mutex::new(PipeWriterState {
                to: Some(end),
                frames: Vec::new(),
                written: 0,
                deliveries: Vec::new(),
            }),
            unwritten: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            thread: Mutex::default(),
            thread_wakes: Condvar::new(),
            stay: STAY,
            given_up: AtomicBool::new(false),
            reports: Mutex::default(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, FrameQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, PipeWriterState> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the writer; `None` while another thread has it.
    fn free_writer(&self) -> Option<MutexGuard<'_, PipeWriterState>> {
        match self.writer.try_lock() {
            Ok(writer) => Some(writer),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn thread(&self) -> MutexGuard<'_, PipeThread> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a frame to the queue; the frame is [one line](crate::frame::one_line). The result of its answers appears
    /// in [`PipeWriter::take_reports`].
    pub(crate) fn push(&self, frame: &[u8], delivery: Option<DeliveryId>) {
        debug_assert!(
            memchr::memchr2(b'\n', b'\r', frame).is_none(),
            "a frame of several lines"
        );
        let mut queue = self.queue();
        let start = queue.bytes.len();
        queue.bytes.extend_from_slice(frame);
        queue.bytes.push(b'\n');
        self.unwritten.fetch_add(frame.len() + 1, Ordering::Relaxed);
        if let Some(delivery) = delivery {
            let end = queue.bytes.len();
            queue.deliveries.push(AnswerFrame {
                delivery,
                start,
                end,
            });
        }
    }

    /// Takes the results of frames with answers.
    pub(crate) fn take_reports(&self) -> Vec<(DeliveryId, WrittenPart)> {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *reports)
    }

    /// Writes the queue, unless another thread is writing and will.
    pub(crate) fn flush(&self) -> Flushed {
        self.flush_within(Duration::ZERO)
    }

    /// Like [`PipeWriter::flush`], waiting at most `at_most` for the peer to read.
    pub(crate) fn flush_within(&self, at_most: Duration) -> Flushed {
        let mut since = None;
        while !self.is_empty() {
            if self.may_wait {
                return Flushed::Full;
            }
            // The other thread checks the queue again after it releases the writer.
            let Some(mut writer) = self.free_writer() else {
                return Flushed::All;
            };
            while self.write_on(&mut writer) == Flushed::Full {
                if at_most.is_zero() {
                    return Flushed::Full;
                }
                let waited = clock::now().since(*since.get_or_insert_with(clock::now));
                let Some(left) = at_most.checked_sub(waited).filter(|left| !left.is_zero()) else {
                    return Flushed::Full;
                };
                writer.wait(left.min(STEP));
            }
        }
        Flushed::All
    }

    /// Writes the queue, and waits for the peer if necessary.
    pub(crate) fn flush_waiting(&self) {
        while self.flush() == Flushed::Full {
            thread::sleep(STEP);
        }
    }

    /// Returns `true` if the caller has to run [`PipeWriter::write_rest`], on a separate thread. An existing thread
    /// continues.
    pub(crate) fn claim_rest(&self) -> bool {
        let mut thread = self.thread();
        if thread.is_there {
            thread.is_wanted = true;
            self.thread_wakes.notify_one();
            return false;
        }
        thread.is_there = true;
        true
    }

    /// Releases the claim if the thread could not be started.
    pub(crate) fn disclaim_rest(&self) {
        *self.thread() = PipeThread::default();
    }

    /// Writes the rest as the peer reads, until nothing was left for a while, or the pipe is abandoned. `between` is
    /// called now and then, without locks.
    pub(crate) fn write_rest(&self, between: impl Fn()) {
        loop {
            let mut writer = self.writer();
            let given_up = self.given_up.load(Ordering::Acquire);
            if !given_up && self.write_on(&mut writer) == Flushed::Full {
                writer.wait(STEP);
                drop(writer);
                between();
                continue;
            }
            drop(writer);
            between();
            // Frames queued meanwhile were left to this thread, which had the writer.
            if (given_up || self.is_empty()) && !self.stays() {
                return;
            }
        }
    }

    /// Waits until the thread is wanted; returns `false` if it was not for a while, or has to stop. It counts as ended
    /// then.
    fn stays(&self) -> bool {
        let is_idle =
            |thread: &mut PipeThread| !thread.is_wanted && !self.given_up.load(Ordering::Acquire);
        let (mut thread, _timed_out) = self
            .thread_wakes
            .wait_timeout_while(self.thread(), self.stay, is_idle)
            .unwrap_or_else(PoisonError::into_inner);
        // This thread has to write a pipe that was found full after its last check.
        let stays = std::mem::take(&mut thread.is_wanted);
        thread.is_there = stays;
        stays
    }

    /// Makes the thread stop, whatever is left.
    fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
        // Under its lock, so that it does not begin to wait after this.
        let _thread = self.thread();
        self.thread_wakes.notify_one();
    }

    /// Returns `true` if the queue is empty.
    fn is_empty(&self) -> bool {
        self.queue().bytes.is_empty()
    }

    /// Returns the number of bytes that wait to be written.
    pub(crate) fn unwritten(&self) -> usize {
        self.unwritten.load(Ordering::Relaxed)
    }

    /// Writes until nothing is left, or the pipe is full.
    fn write_on(&self, writer: &mut PipeWriterState) -> Flushed {
        loop {
            if writer.written == writer.frames.len() && !self.take_queue(writer) {
                return Flushed::All;
            }
            let written = match &mut writer.to {
                Some(to) => to.write(&writer.frames[writer.written..]),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            };
            match written {
                Ok(0) => self.break_off(writer),
                Ok(count) => {
                    writer.written += count;
                    self.unwritten.fetch_sub(count, Ordering::Relaxed);
                    if writer.written == writer.frames.len()
                        && writer.to.as_mut().is_some_and(|to| to.flush().is_err())
                    {
                        self.break_off(writer);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Flushed::Full,
                Err(_) => self.break_off(writer),
            }
        }
    }

    /// Makes the queue the next bytes to write; returns `false` if it is empty.
    fn take_queue(&self, writer: &mut PipeWriterState) -> bool {
        self.let_go(writer);
        let mut queue = self.queue();
        std::mem::swap(&mut queue.bytes, &mut writer.frames);
        std::mem::swap(&mut queue.deliveries, &mut writer.deliveries);
        !writer.frames.is_empty()
    }

    /// Drops the frames that were being written, because the pipe is broken.
    fn break_off(&self, writer: &mut PipeWriterState) {
        self.broken.store(true, Ordering::Relaxed);
        self.let_go(writer);
    }

    /// Reports on the frames that were being written, and forgets them.
    fn let_go(&self, writer: &mut PipeWriterState) {
        let left = writer.frames.len() - writer.written;
        self.unwritten.fetch_sub(left, Ordering::Relaxed);
        if !writer.deliveries.is_empty() {
            let written = writer.written;
            let reports = writer
                .deliveries
                .drain(..)
                .map(|part| (part.delivery, part.written(written)));
            self.reports
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(reports);
        }
        writer.written = 0;
        if writer.frames.capacity() > REUSABLE_BUFFER {
            writer.frames = Vec::new();
        }
        writer.frames.clear();
    }

    /// Returns `true` if the other end is gone.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Closes the pipe: the peer reads the rest, and then the end. Returns the unused part of `grace`; `None` if the
    /// peer has not read everything by then, and the rest is dropped.
    pub(crate) fn close_within(&self, grace: Duration) -> Option<Duration> {
        let since = clock::now();
        loop {
            let waited = clock::now().since(since);
            let may_write = !self.may_wait || self.unwritten() == 0;
            if let Some(mut writer) = self.free_writer().filter(|_| may_write) {
                if self.write_on(&mut writer) == Flushed::All {
                    writer.to = None;
                    drop(writer);
                    self.give_up();
                    return Some(grace.saturating_sub(waited));
                }
                writer.wait(STEP);
            } else {
                thread::sleep(STEP);
            }
            if waited >= grace {
                break;
            }
        }
        self.give_up();
        // A writing thread soon releases the writer, except while its write waits for the peer's end.
        let steps = 0..5;
        for _ in steps {
            if let Some(mut writer) = self.free_writer() {
                writer.to = None;
                // Fails for the whole rest, and reports it.
                self.write_on(&mut writer);
                break;
            }
            thread::sleep(STEP);
        }
        None
    }

    /// Replaces the end, for a restarted peer. Frames that were being written are dropped.
    pub(crate) fn reopen(&self, end: Box<dyn PipeEnd>) {
        self.give_up();
        let mut writer = self.writer();
        self.let_go(&mut writer);
        writer.to = Some(end);
        self.given_up.store(false, Ordering::Release);
        self.broken.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
