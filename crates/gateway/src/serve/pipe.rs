//! Frames into a pipe: queued in order under the relay's lock, written outside it by whoever comes first.
//!
//! A queue and a writer with a lock each. A thread that finds the writer busy leaves its frames to the one that
//! writes, so nobody who holds the relay ever waits for a peer that does not read.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

/// The largest buffer that is kept for the next frames, in bytes.
const KEPT: usize = 2 * 1024 * 1024;

/// A pipe that takes frames, one a line.
pub struct Pipe {
    queue: Mutex<Vec<u8>>,
    writer: Mutex<Writer>,
    broken: AtomicBool,
}

struct Writer {
    /// `None` once it is closed.
    to: Option<Box<dyn Write + Send>>,
    /// An empty buffer, to be the queue while the queue's is written.
    spare: Vec<u8>,
}

impl Pipe {
    /// A pipe into this writer.
    pub fn new(writer: Box<dyn Write + Send>) -> Self {
        Self {
            queue: Mutex::default(),
            writer: Mutex::new(Writer {
                to: Some(writer),
                spare: Vec::new(),
            }),
            broken: AtomicBool::new(false),
        }
    }

    /// Puts a frame at the end of the queue.
    pub fn push(&self, frame: &[u8]) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.extend_from_slice(frame);
        queue.push(b'\n');
    }

    /// Writes what is queued, unless another thread is at it and will.
    pub fn flush(&self) {
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

    /// Whether nothing waits to be written.
    pub fn is_empty(&self) -> bool {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    fn write_queue(&self, writer: &mut Writer) {
        let spare = std::mem::take(&mut writer.spare);
        let mut frames = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *queue, spare)
        };
        let written = match &mut writer.to {
            Some(to) => to.write_all(&frames).and_then(|()| to.flush()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        if written.is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
        if frames.capacity() <= KEPT {
            frames.clear();
            writer.spare = frames;
        }
    }

    /// Whether the other end is gone.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Closes the pipe: the peer reads its end.
    pub fn close(&self) {
        self.flush();
        self.writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .to = None;
    }

    /// Puts another writer in its place, for a peer that was started anew.
    pub fn reopen(&self, writer: Box<dyn Write + Send>) {
        self.writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .to = Some(writer);
        self.broken.store(false, Ordering::Relaxed);
    }
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

    #[test]
    fn frames_of_many_threads_come_out_whole_and_none_is_left() {
        let (sent, written) = mpsc::channel();
        let pipe = Arc::new(Pipe::new(Box::new(Slow(sent))));
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let pipe = pipe.clone();
                thread::spawn(move || {
                    for count in 0..500 {
                        pipe.push(format!("{thread}:{count}").as_bytes());
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
