//! The client over stdio: one call after another, or many at once on one pipe.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::ops::Range;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::now;
use crate::say::{INITIALIZE, INITIALIZED, LIST, RepeatedCall, WrittenFrame, answer_to};

/// The size of a read or write buffer, in bytes.
const BUFFER: usize = 256 * 1024;

/// A client whose server, or the gateway before it, is a child process.
pub(crate) struct PipedClient {
    pub(crate) child: Child,
    reader: BufReader<ChildStdout>,
    writer: ChildStdin,
    next: u64,
}

fn ended() -> io::Error {
    io::Error::other("it ended, or said nothing for too long")
}

impl PipedClient {
    /// Starts the program in a process group of its own.
    pub(crate) fn start(words: &[String], stderr: Stdio) -> io::Result<Self> {
        let (program, arguments) = words.split_first().ok_or_else(ended)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .process_group(0)
            .spawn()?;
        let reader = child.stdout.take().ok_or_else(ended)?;
        let writer = child.stdin.take().ok_or_else(ended)?;
        Ok(Self {
            child,
            reader: BufReader::with_capacity(BUFFER, reader),
            writer,
            next: 10,
        })
    }

    /// Opens the session, up to the response to the first request.
    pub(crate) fn open(&mut self) -> io::Result<()> {
        self.say(INITIALIZE, "0")?;
        self.send(INITIALIZED.as_bytes())?;
        self.say(LIST, "1").map(|_| ())
    }

    /// Opens the session as a client that cannot be asked.
    pub(crate) fn open_without_asking(&mut self) -> io::Result<()> {
        let cannot = INITIALIZE.replace(r#"{"elicitation":{"form":{}}}"#, "{}");
        self.say(&cannot, "0")?;
        self.send(INITIALIZED.as_bytes())
    }

    /// Makes the server ask the questions of these numbers, each in a call of its own, without waiting for a response.
    pub(crate) fn ask(&mut self, numbers: Range<u64>) -> io::Result<()> {
        for number in numbers {
            self.next += 1;
            let id = self.next;
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"deploy","arguments":{{"n":{number}}}}}}}"#
            );
            self.send(call.as_bytes())?;
        }
        Ok(())
    }

    /// Waits for the next response of any call.
    pub(crate) fn next_result(&mut self) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            self.receive(&mut line)?;
            let is_one = WrittenFrame::read(&line).is_some_and(|frame| frame.result.is_some());
            if is_one {
                return Ok(());
            }
        }
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut line = Vec::with_capacity(frame.len() + 1);
        line.extend_from_slice(frame);
        line.push(b'\n');
        self.writer.write_all(&line)
    }

    fn receive(&mut self, line: &mut Vec<u8>) -> io::Result<()> {
        line.clear();
        match self.reader.read_until(b'\n', line)? {
            0 => Err(ended()),
            _ => Ok(()),
        }
    }

    /// Sends a request and returns the response to it as received.
    pub(crate) fn say(&mut self, request: &str, id: &str) -> io::Result<Vec<u8>> {
        self.send(request.as_bytes())?;
        let mut line = Vec::new();
        loop {
            self.receive(&mut line)?;
            let is_it = WrittenFrame::read(&line).is_some_and(|frame| {
                frame.method.is_none() && frame.id.is_some_and(|known| known.get() == id)
            });
            if is_it {
                return Ok(line);
            }
        }
    }

    /// Makes one call after another until `most` are made or `budget` is spent. Returns the duration of each.
    pub(crate) fn one_by_one(
        &mut self,
        job: &RepeatedCall,
        most: usize,
        budget: Duration,
    ) -> io::Result<Vec<Duration>> {
        let (mut took, begun, mut line, mut call) = (Vec::new(), now(), Vec::new(), Vec::new());
        while took.len() < most && begun.elapsed() < budget {
            self.next += 1;
            call.clear();
            job.write(self.next, &mut call);
            call.push(b'\n');
            let sent = now();
            self.writer.write_all(&call)?;
            loop {
                self.receive(&mut line)?;
                let frame = WrittenFrame::read(&line).ok_or_else(ended)?;
                if frame.asks() {
                    let answer = frame.id.map(answer_to).unwrap_or_default();
                    self.send(answer.as_bytes())?;
                } else if frame.number() == Some(self.next) {
                    job.check(&frame).map_err(io::Error::other)?;
                    break;
                }
            }
            took.push(sent.elapsed());
        }
        Ok(took)
    }

    /// Keeps `window` calls unanswered for about `time`. Returns the number of responses per second.
    pub(crate) fn at_once(
        &mut self,
        job: &RepeatedCall,
        window: u64,
        time: Duration,
    ) -> io::Result<f64> {
        let Self {
            reader,
            writer,
            next,
            ..
        } = self;
        let (orders, taken) = mpsc::channel();
        let from = *next + 1;
        *next += 100_000_000;
        thread::scope(|threads| {
            // The writer has its own thread: with one thread, both ends could wait for each other to read.
            threads.spawn(move || write_orders(writer, job, from, &taken));
            for _ in 0..window {
                let _gone = orders.send(ClientOrder::Call);
            }
            let counted = count_answers(reader, job, window, time, &orders);
            drop(orders);
            counted
        })
    }
}

enum ClientOrder {
    Call,
    Answer(String),
}

fn write_orders(
    writer: &mut ChildStdin,
    job: &RepeatedCall,
    mut number: u64,
    orders: &Receiver<ClientOrder>,
) {
    let mut out = Vec::new();
    while let Ok(first) = orders.recv() {
        let mut order = Some(first);
        while let Some(one) = order {
            match one {
                ClientOrder::Call => {
                    job.write(number, &mut out);
                    number += 1;
                }
                ClientOrder::Answer(frame) => out.extend_from_slice(frame.as_bytes()),
            }
            out.push(b'\n');
            order = if out.len() < BUFFER {
                orders.try_recv().ok()
            } else {
                None
            };
        }
        if writer.write_all(&out).is_err() {
            return;
        }
        out.clear();
    }
}

fn count_answers(
    reader: &mut BufReader<ChildStdout>,
    job: &RepeatedCall,
    window: u64,
    time: Duration,
    orders: &mpsc::Sender<ClientOrder>,
) -> io::Result<f64> {
    let (begun, mut open, mut done, mut line): (Instant, u64, u32, Vec<u8>) =
        (now(), window, 0, Vec::new());
    while open > 0 {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Err(ended());
        }
        let frame = WrittenFrame::read(&line).ok_or_else(ended)?;
        if frame.asks() {
            let answer = frame.id.map(answer_to).unwrap_or_default();
            let _gone = orders.send(ClientOrder::Answer(answer));
        } else if frame.number().is_some() && frame.method.is_none() {
            job.check(&frame).map_err(io::Error::other)?;
            done += 1;
            if begun.elapsed() < time {
                let _gone = orders.send(ClientOrder::Call);
            } else {
                open -= 1;
            }
        }
    }
    Ok(f64::from(done) / begun.elapsed().as_secs_f64())
}
