//! The stderr of a gateway, written on a thread of its own. A client may leave the stderr of what it starts unread: then
//! lines are dropped and counted, and nothing waits for it.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// The most bytes of lines that wait to be written.
const MOST_BYTES: usize = 1024 * 1024;
/// The time that the end of the process waits for stderr to be read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The queue of this process, once it is started.
static QUEUE: OnceLock<StderrQueue> = OnceLock::new();

/// Returns the line that says how many lines are missing.
pub(crate) type Missing = fn(u64) -> String;

/// Starts the thread. From then on [`write()`] takes all lines. Only the first start counts.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn start(missing: Missing) -> io::Result<()> {
    if QUEUE.get().is_none() {
        // Adapts colours to the terminal, and drops them elsewhere.
        let queue = StderrQueue::start(anstream::stderr(), missing)?;
        let _started_before = QUEUE.set(queue);
    }
    Ok(())
}

/// Adds lines, with their line breaks. Returns `false` if there is no thread that writes them.
pub(crate) fn write(lines: &[u8]) -> bool {
    let queue = QUEUE.get();
    queue.is_some_and(|queue| {
        queue.push(lines);
        true
    })
}

/// Waits until all lines are written, for a short time if nobody reads them.
pub(crate) fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(LAST_WORDS);
    }
}

/// A writer for the log: each write is one record.
pub(crate) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        if write(record) {
            return Ok(record.len());
        }
        io::stderr().write(record)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lines that a thread writes.
struct StderrQueue {
    shared: Arc<SharedQueue>,
}

struct SharedQueue {
    waiting: Mutex<WaitingLines>,
    /// Lines were added, or all are written.
    changed: Condvar,
    missing: Missing,
}

#[derive(Default)]
struct WaitingLines {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The number of dropped lines since the last one that was added.
    dropped: u64,
    is_writing: bool,
}

impl WaitingLines {
    fn add(&mut self, lines: Vec<u8>) {
        self.bytes += lines.len();
        self.lines.push_back(lines);
    }

    /// Adds the line about those that are missing, if any.
    fn tell_missing(&mut self, missing: Missing) {
        if self.dropped > 0 {
            let dropped = std::mem::take(&mut self.dropped);
            self.add(format!("{}\n", missing(dropped)).into_bytes());
        }
    }
}

impl StderrQueue {
    fn start(to: impl Write + Send + 'static, missing: Missing) -> io::Result<Self> {
        let shared = Arc::new(SharedQueue {
            waiting: Mutex::default(),
            changed: Condvar::new(),
            missing,
        });
        let written = shared.clone();
        thread::Builder::new()
            .name("stderr".to_owned())
            .spawn(move || written.write_all(to))?;
        Ok(Self { shared })
    }

    fn push(&self, lines: &[u8]) {
        let mut waiting = self.shared.waiting();
        if !waiting.lines.is_empty() && waiting.bytes + lines.len() > MOST_BYTES {
            waiting.dropped += 1;
            return;
        }
        waiting.tell_missing(self.shared.missing);
        waiting.add(lines.to_vec());
        drop(waiting);
        self.shared.changed.notify_all();
    }

    fn flush(&self, at_most: Duration) {
        let has_more = |waiting: &mut WaitingLines| waiting.is_writing || !waiting.lines.is_empty();
        let waiting = self.shared.waiting();
        let _in_time = self
            .shared
            .changed
            .wait_timeout_while(waiting, at_most, has_more);
    }
}

impl SharedQueue {
    fn waiting(&self) -> MutexGuard<'_, WaitingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the lines for as long as the process runs.
    fn write_all(&self, mut to: impl Write) {
        loop {
            let lines = self.next();
            // A closed stderr does not stop the program.
            let _ignored = to.write_all(&lines).and_then(|()| to.flush());
        }
    }

    /// Returns the next lines, once there are some.
    fn next(&self) -> Vec<u8> {
        let mut waiting = self.waiting();
        loop {
            if waiting.lines.is_empty() {
                waiting.tell_missing(self.missing);
            }
            if let Some(lines) = waiting.lines.pop_front() {
                waiting.bytes -= lines.len();
                waiting.is_writing = true;
                return lines;
            }
            waiting.is_writing = false;
            self.changed.notify_all();
            waiting = self
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, SyncSender};

    use super::*;

    /// A pipe that holds nothing: each write waits until it is read.
    struct Unread(SyncSender<String>);

    impl Write for Unread {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.0.send(text).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn unread() -> (StderrQueue, Receiver<String>) {
        let (to, read) = mpsc::sync_channel(0);
        let queue = StderrQueue::start(Unread(to), |dropped| format!("{dropped} are missing"));
        (queue.unwrap(), read)
    }

    #[test]
    fn lines_that_nobody_reads_are_dropped_and_counted_and_nothing_waits() {
        let (queue, read) = unread();
        let line = vec![b'x'; MOST_BYTES / 8];
        queue.push(b"first\n");
        // The first may be with the thread by now, or not.
        assert_eq!(read.recv().unwrap(), "first\n");
        for _ in 0..20 {
            queue.push(&line);
        }
        queue.flush(Duration::from_millis(20));
        let mut whole = 0;
        let missing = loop {
            let next = read.recv().unwrap();
            if next.len() < line.len() {
                break next;
            }
            whole += 1;
        };
        assert!((8..=9).contains(&whole), "{whole}");
        assert_eq!(missing, format!("{} are missing\n", 20 - whole));
        queue.push(b"last\n");
        assert_eq!(read.recv().unwrap(), "last\n");
    }

    #[test]
    fn the_missing_lines_are_told_of_where_they_would_be() {
        let (queue, read) = unread();
        let line = vec![b'x'; MOST_BYTES];
        queue.push(&line);
        while !queue.shared.waiting().lines.is_empty() {
            thread::yield_now();
        }
        queue.push(&line);
        queue.push(b"dropped\n");
        assert_eq!(read.recv().unwrap().len(), line.len());
        assert_eq!(read.recv().unwrap().len(), line.len());
        assert_eq!(read.recv().unwrap(), "1 are missing\n");
        queue.push(b"last\n");
        assert_eq!(read.recv().unwrap(), "last\n");
    }

    #[test]
    fn the_last_lines_are_written_before_the_end() {
        let (queue, read) = unread();
        for number in 0..100 {
            queue.push(format!("{number}\n").as_bytes());
        }
        let reads = thread::spawn(move || read.iter().take(100).collect::<String>());
        queue.flush(Duration::from_secs(60));
        let all = reads.join().unwrap();
        assert!(all.starts_with("0\n1\n") && all.ends_with("99\n"), "{all}");
    }
}
