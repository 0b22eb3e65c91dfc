//! Frames into a pipe: queued in order under the relay's lock, written outside it by whoever comes first.
//!
//! A queue and a writer with a lock each. A thread that finds the writer busy leaves its frames to the one that
//! writes, so nobody who holds the relay ever waits for a peer that does not read.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use mcp_elicit_relay::DeliveryId;

use crate::frame::one_line;

/// The largest buffer that is kept for the next frames, in bytes.
const REUSABLE_BUFFER: usize = 2 * 1024 * 1024;

/// A pipe that takes frames, one a line.
pub(crate) struct PipeWriter {
    queue: Mutex<Queue>,
    writer: Mutex<Writer>,
    broken: AtomicBool,
    /// The reports on frames with answers, until they are read.
    reports: Mutex<Vec<(DeliveryId, Written)>>,
}

/// Frames that wait to be written.
#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    /// The positions of the frames with answers in them.
    deliveries: Vec<Part>,
}

/// A frame with answers among the bytes.
struct Part {
    delivery: DeliveryId,
    start: usize,
    end: usize,
}

/// The part of a frame that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// All of it.
    Whole,
    /// Nothing.
    Nothing,
    /// A part, after which the pipe broke.
    Part,
}

impl Part {
    fn written(&self, bytes: usize) -> Written {
        if bytes >= self.end {
            Written::Whole
        } else if bytes <= self.start {
            Written::Nothing
        } else {
            Written::Part
        }
    }
}

struct Writer {
    /// `None` once it is closed.
    to: Option<Box<dyn Write + Send>>,
    /// An empty buffer, to be the queue while the queue's is written.
    spare: Vec<u8>,
}

impl PipeWriter {
    /// A pipe into this writer.
    pub(crate) fn new(writer: Box<dyn Write + Send>) -> Self {
        Self {
            queue: Mutex::default(),
            writer: Mutex::new(Writer {
                to: Some(writer),
                spare: Vec::new(),
            }),
            broken: AtomicBool::new(false),
            reports: Mutex::default(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a frame at the end of the queue. What becomes of the answers in it is in [`PipeWriter::take_reports`] once it is
    /// known.
    pub(crate) fn push(&self, frame: &[u8], delivery: Option<DeliveryId>) {
        let frame = one_line(frame);
        let mut queue = self.queue();
        let start = queue.bytes.len();
        queue.bytes.extend_from_slice(&frame);
        queue.bytes.push(b'\n');
        if let Some(delivery) = delivery {
            let end = queue.bytes.len();
            queue.deliveries.push(Part {
                delivery,
                start,
                end,
            });
        }
    }

    /// Takes what became of frames with answers.
    pub(crate) fn take_reports(&self) -> Vec<(DeliveryId, Written)> {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *reports)
    }

    /// Writes what is queued, unless another thread is at it and will.
    pub(crate) fn flush(&self) {
        while !self.is_empty() {
            match self.writer.try_lock() {
                Ok(mut writer) => self.write_queue(&mut writer),
                Err(TryLockError::Poisoned(poisoned)) => {
                    self.write_queue(&mut poisoned.into_inner());
                }
                // The other looks at the queue again after it lets go of the writer.
                Err(TryLockError::WouldBlock) => return,
            }
        }
    }

    /// Returns whether nothing waits to be written.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue().bytes.is_empty()
    }

    /// Returns how many bytes wait to be written.
    pub(crate) fn len(&self) -> usize {
        self.queue().bytes.len()
    }

    fn write_queue(&self, writer: &mut Writer) {
        let spare = std::mem::take(&mut writer.spare);
        let (mut frames, deliveries) = {
            let mut queue = self.queue();
            let deliveries = std::mem::take(&mut queue.deliveries);
            (std::mem::replace(&mut queue.bytes, spare), deliveries)
        };
        let (count, written) = match &mut writer.to {
            Some(to) => write_counted(to, &frames),
            None => (0, Err(io::ErrorKind::BrokenPipe.into())),
        };
        if written.is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
        if !deliveries.is_empty() {
            let reports = deliveries
                .into_iter()
                .map(|part| (part.delivery, part.written(count)));
            self.reports
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(reports);
        }
        if frames.capacity() <= REUSABLE_BUFFER {
            frames.clear();
            writer.spare = frames;
        }
    }

    /// Returns whether the other end is gone.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Closes the pipe: the peer reads its end.
    pub(crate) fn close(&self) {
        self.flush();
        self.writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .to = None;
    }

    /// Puts another writer in its place, for a peer that was started anew.
    pub(crate) fn reopen(&self, writer: Box<dyn Write + Send>) {
        self.writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .to = Some(writer);
        self.broken.store(false, Ordering::Relaxed);
    }
}

/// Writes all bytes; how many were, and why not more.
fn write_counted(to: &mut dyn Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut count = 0;
    while count < bytes.len() {
        match to.write(&bytes[count..]) {
            Ok(0) => return (count, Err(io::ErrorKind::WriteZero.into())),
            Ok(written) => count += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (count, Err(error)),
        }
    }
    (count, to.flush())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;

    use super::*;

    struct Slow(mpsc::Sender<Vec<u8>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            thread::yield_now();
            self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Takes this many bytes, and then breaks.
    struct Breaks(usize);

    impl Write for Breaks {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.0).min(3);
            self.0 -= count;
            match count {
                0 => Err(io::ErrorKind::BrokenPipe.into()),
                count => Ok(count),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_frame_is_one_line_whatever_is_in_it() {
        let (sent, written) = mpsc::channel();
        let pipe = PipeWriter::new(Box::new(Slow(sent)));
        pipe.push(b"{\r\n\"a\":\n{\"method\":\"m\"}}", None);
        pipe.close();
        let all: Vec<u8> = written.try_iter().flatten().collect();
        assert_eq!(all, b"{  \"a\": {\"method\":\"m\"}}\n");
    }

    #[test]
    fn what_became_of_each_answer_is_told_to_the_byte() {
        let [one, two, three] = [1, 2, 3].map(DeliveryId);
        for (takes, expected) in [
            (0, [Written::Nothing; 3]),
            (1, [Written::Part, Written::Nothing, Written::Nothing]),
            (4, [Written::Whole, Written::Nothing, Written::Nothing]),
            (11, [Written::Whole, Written::Part, Written::Nothing]),
            (16, [Written::Whole; 3]),
        ] {
            let pipe = PipeWriter::new(Box::new(Breaks(takes)));
            pipe.push(b"one", Some(one));
            pipe.push(b"other", None);
            // From byte 10 on.
            pipe.push(b"2", Some(two));
            pipe.push(b"iii", Some(three));
            assert_eq!(pipe.take_reports(), []);
            pipe.flush();
            let told = pipe.take_reports();
            assert_eq!(
                told,
                [(one, expected[0]), (two, expected[1]), (three, expected[2])],
                "{takes}"
            );
            assert_eq!(pipe.is_broken(), takes < 16);
        }
    }

    #[test]
    fn frames_of_many_threads_come_out_whole_and_none_is_left() {
        let (sent, written) = mpsc::channel();
        let pipe = Arc::new(PipeWriter::new(Box::new(Slow(sent))));
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let pipe = pipe.clone();
                thread::spawn(move || {
                    for count in 0..500 {
                        pipe.push(format!("{thread}:{count}").as_bytes(), None);
                        pipe.flush();
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        pipe.close();
        let all: Vec<u8> = written.try_iter().flatten().collect();
        let lines: Vec<&str> = std::str::from_utf8(&all).unwrap().lines().collect();
        assert_eq!(lines.len(), 2000);
        for thread in 0..4 {
            let own: Vec<usize> = lines
                .iter()
                .filter_map(|line| line.strip_prefix(&format!("{thread}:")))
                .map(|count| count.parse().unwrap())
                .collect();
            assert_eq!(
                own,
                (0..500).collect::<Vec<_>>(),
                "in the order of each thread"
            );
        }
    }
}
