//! Tests of a pipe with peers that are slow, full or gone, and many threads.

use std::num::Wrapping;
use std::sync::{Arc, mpsc};

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

impl PipeEnd for Slow {}

/// Takes this many bytes, and then no more until more are allowed.
struct Fills(Arc<AtomicUsize>);

impl Write for Fills {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.0.load(Ordering::SeqCst));
        self.0.fetch_sub(count, Ordering::SeqCst);
        match count {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PipeEnd for Fills {}

/// Asserts that `each` lines of each of four threads were written, whole and in the order of each thread.
fn assert_in_order(written: &mpsc::Receiver<Vec<u8>>, each: usize) {
    let all: Vec<u8> = written.try_iter().flatten().collect();
    let all = std::str::from_utf8(&all).unwrap();
    assert_eq!(all.lines().count(), 4 * each);
    for thread in 0..4 {
        let own = format!("{thread}:");
        let own = all.lines().filter_map(|line| line.strip_prefix(&own));
        let counts: Vec<usize> = own.map(|count| count.parse().unwrap()).collect();
        assert_eq!(
            counts,
            (0..each).collect::<Vec<_>>(),
            "in the order of each thread"
        );
    }
}

/// Waits until everything is written, by any thread.
fn await_written(pipe: &PipeWriter) {
    let since = clock::now();
    while pipe.unwritten() > 0 {
        assert!(clock::now().since(since) < Duration::from_secs(60));
        thread::yield_now();
    }
}

#[test]
fn a_full_pipe_holds_nobody_up_and_the_rest_follows() {
    let room = Arc::new(AtomicUsize::new(6));
    let pipe = Arc::new(PipeWriter::new(Box::new(Fills(room.clone()))));
    pipe.push(b"first", Some(DeliveryId(1)));
    pipe.push(b"second", Some(DeliveryId(2)));
    assert_eq!(pipe.flush(), Flushed::Full);
    assert_eq!(pipe.unwritten(), 7);
    assert!(pipe.claim_rest());
    assert!(!pipe.claim_rest());
    let rest = pipe.clone();
    let thread = thread::spawn(move || rest.write_rest(|| {}));
    pipe.push(b"third", Some(DeliveryId(3)));
    room.fetch_add(100, Ordering::SeqCst);
    while pipe.unwritten() > 0 {
        pipe.flush_waiting();
    }
    let whole = [1, 2, 3].map(|id| (DeliveryId(id), WrittenPart::Whole));
    assert!(pipe.close_within(Duration::from_secs(60)).is_some());
    thread.join().unwrap();
    assert_eq!(pipe.take_reports(), whole);
}

#[test]
fn the_thread_of_a_full_pipe_stays_and_ends_with_the_pipe() {
    let room = Arc::new(AtomicUsize::new(0));
    let pipe = Arc::new(PipeWriter {
        stay: Duration::from_secs(60 * 60),
        ..PipeWriter::new(Box::new(Fills(room.clone())))
    });
    let mut threads = Vec::new();
    for round in 0..50 {
        pipe.push(b"frame", Some(DeliveryId(round)));
        if pipe.flush() == Flushed::Full && pipe.claim_rest() {
            let rest = pipe.clone();
            threads.push(thread::spawn(move || rest.write_rest(|| {})));
        }
        room.fetch_add(6, Ordering::SeqCst);
        await_written(&pipe);
    }
    assert_eq!(threads.len(), 1);
    assert!(pipe.close_within(Duration::from_secs(60)).is_some());
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(pipe.take_reports().len(), 50);
    assert!(pipe.claim_rest());
}

#[test]
fn a_thread_that_nobody_wants_ends_and_the_next_full_pipe_has_another() {
    let room = Arc::new(AtomicUsize::new(0));
    let pipe = Arc::new(PipeWriter {
        stay: Duration::ZERO,
        ..PipeWriter::new(Box::new(Fills(room.clone())))
    });
    for round in 0..20 {
        pipe.push(b"frame", None);
        assert_eq!(pipe.flush(), Flushed::Full);
        assert!(pipe.claim_rest(), "{round}");
        let rest = pipe.clone();
        let thread = thread::spawn(move || rest.write_rest(|| {}));
        room.fetch_add(6, Ordering::SeqCst);
        thread.join().unwrap();
        assert_eq!(pipe.unwritten(), 0);
    }
}

/// Takes some bytes or none, at random.
struct Moody(mpsc::Sender<Vec<u8>>, Wrapping<u64>);

impl Write for Moody {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1 = self.1 * Wrapping(6_364_136_223_846_793_005) + Wrapping(1);
        let count = bytes.len().min((self.1.0 >> 59) as usize);
        if count == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.0
            .send(bytes[..count].to_vec())
            .map_err(io::Error::other)?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PipeEnd for Moody {
    fn wait(&self, _at_most: Duration) {
        thread::yield_now();
    }
}

#[test]
fn frames_of_many_threads_into_a_pipe_that_is_often_full_are_all_written_without_another_flush() {
    for stay in [Duration::ZERO, Duration::from_micros(50), STAY] {
        let (sent, written) = mpsc::channel();
        let end = Moody(sent, Wrapping(7));
        let pipe = Arc::new(PipeWriter {
            stay,
            ..PipeWriter::new(Box::new(end))
        });
        thread::scope(|scope| {
            for thread in 0..4 {
                let pipe = &pipe;
                scope.spawn(move || {
                    for count in 0..2_000 {
                        pipe.push(format!("{thread}:{count}").as_bytes(), None);
                        if pipe.flush() == Flushed::Full && pipe.claim_rest() {
                            let rest = pipe.clone();
                            thread::spawn(move || rest.write_rest(|| {}));
                        }
                    }
                });
            }
        });
        await_written(&pipe);
        assert!(pipe.close_within(Duration::from_secs(60)).is_some());
        assert_in_order(&written, 2_000);
    }
}

#[test]
fn a_full_pipe_is_waited_for_as_long_as_one_wants() {
    let room = Arc::new(AtomicUsize::new(3));
    let pipe = PipeWriter::new(Box::new(Fills(room.clone())));
    pipe.push(b"first", None);
    assert_eq!(pipe.flush_within(Duration::from_millis(1)), Flushed::Full);
    assert_eq!(pipe.unwritten(), 3);
    pipe.push(b"second", None);
    let reader = thread::spawn(move || {
        for _ in 0..10 {
            thread::sleep(Duration::from_millis(1));
            room.fetch_add(1, Ordering::SeqCst);
        }
    });
    assert_eq!(pipe.flush_within(Duration::from_secs(60)), Flushed::All);
    assert_eq!(pipe.unwritten(), 0);
    reader.join().unwrap();
}

#[test]
fn a_pipe_is_closed_although_its_peer_reads_nothing() {
    let room = Arc::new(AtomicUsize::new(7));
    let pipe = Arc::new(PipeWriter::new(Box::new(Fills(room))));
    pipe.push(b"first", Some(DeliveryId(1)));
    pipe.push(b"second", Some(DeliveryId(2)));
    assert_eq!(pipe.flush(), Flushed::Full);
    assert!(pipe.claim_rest());
    let rest = pipe.clone();
    let thread = thread::spawn(move || rest.write_rest(|| {}));
    pipe.push(b"third", Some(DeliveryId(3)));
    assert_eq!(pipe.close_within(Duration::from_millis(1)), None);
    thread.join().unwrap();
    let told = [WrittenPart::Whole, WrittenPart::Part, WrittenPart::Nothing];
    let told: Vec<_> = (1..).map(DeliveryId).zip(told).collect();
    assert_eq!(pipe.take_reports(), told);
    assert_eq!((pipe.unwritten(), pipe.is_broken()), (0, true));
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

impl PipeEnd for Breaks {}

#[test]
fn what_became_of_each_answer_is_told_to_the_byte() {
    let [one, two, three] = [1, 2, 3].map(DeliveryId);
    for (takes, expected) in [
        (0, [WrittenPart::Nothing; 3]),
        (
            1,
            [
                WrittenPart::Part,
                WrittenPart::Nothing,
                WrittenPart::Nothing,
            ],
        ),
        (
            4,
            [
                WrittenPart::Whole,
                WrittenPart::Nothing,
                WrittenPart::Nothing,
            ],
        ),
        (
            11,
            [WrittenPart::Whole, WrittenPart::Part, WrittenPart::Nothing],
        ),
        (16, [WrittenPart::Whole; 3]),
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
    assert!(pipe.close_within(Duration::from_secs(60)).is_some());
    assert_in_order(&written, 500);
}
