//! Replays one side of a transcript against a real peer, without I/O: the caller transports the messages.

use std::collections::VecDeque;
use std::fmt;

use serde_json::Value;

use super::{Bindings, Side, Transcript, TranscriptEvent, TranscriptLine};

/// Notifications that may always arrive, expected or not.
const ALWAYS_ALLOWED: [&str; 2] = ["notifications/progress", "notifications/message"];

/// One side of a transcript, to be played.
///
/// Call [`Replay::step`] until it returns [`ReplayStep::Done`], and pass every message of the other side to
/// [`Replay::received`]. Consecutive messages of the other side may arrive in any order.
#[derive(Debug)]
pub struct Replay<'t> {
    side: Side,
    rest: VecDeque<&'t TranscriptLine>,
    expected: Vec<&'t TranscriptLine>,
    bindings: Bindings,
}

/// The next step.
#[derive(Debug)]
pub enum ReplayStep<'t> {
    /// Send this message.
    Send(String),
    /// Wait for a message of the other side and pass it to [`Replay::received`].
    Receive,
    /// The person acts: pass this action to the client under test.
    Person {
        /// `accept`, `decline` or `cancel`.
        action: &'t str,
        /// The content of an accepted form.
        content: Option<&'t Value>,
    },
    /// This many seconds pass without an action.
    Time {
        /// The number.
        seconds: u64,
    },
    /// The last question is recorded under this word now.
    Outcome {
        /// The word.
        phase: &'t str,
    },
    /// The conversation is over.
    Done,
}

/// A message that does not match the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayMismatch {
    /// The number of the expected line, from 1; `None` if no more messages were expected.
    pub number: Option<usize>,
    /// The difference between the messages.
    pub why: String,
    /// The received message.
    pub came: String,
}

impl fmt::Display for ReplayMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "line {number}: {}", self.why)?,
            None => write!(f, "after the end: {}", self.why)?,
        }
        write!(f, "\n  came: {}", self.came)
    }
}

impl std::error::Error for ReplayMismatch {}

impl ReplayMismatch {
    fn new(line: Option<&TranscriptLine>, why: String, came: &str) -> Self {
        Self {
            number: line.map(|line| line.number),
            why,
            came: came.to_owned(),
        }
    }
}

impl<'t> Replay<'t> {
    /// Creates a replay of `side` against the other side, which is under test.
    pub fn playing(transcript: &'t Transcript, side: Side) -> Self {
        Self {
            side,
            rest: transcript.lines.iter().collect(),
            expected: Vec::new(),
            bindings: Bindings::default(),
        }
    }

    /// Returns the values of placeholders so far. A suite may set some before it starts.
    pub fn bindings(&mut self) -> &mut Bindings {
        &mut self.bindings
    }

    /// Returns the next step.
    pub fn step(&mut self) -> ReplayStep<'t> {
        self.expect_more();
        if self.expected.iter().any(|line| !line.is_optional()) {
            return ReplayStep::Receive;
        }
        self.expected.clear();
        let Some(line) = self.rest.pop_front() else {
            return ReplayStep::Done;
        };
        match &line.event {
            TranscriptEvent::Says { pattern, .. } => {
                ReplayStep::Send(self.bindings.fill(pattern).to_string())
            }
            TranscriptEvent::Person { action, content } => ReplayStep::Person {
                action,
                content: content.as_ref(),
            },
            TranscriptEvent::Time { seconds } => ReplayStep::Time { seconds: *seconds },
            TranscriptEvent::Outcome { phase } => ReplayStep::Outcome { phase },
        }
    }

    /// Accepts a message of the other side.
    pub fn received(&mut self, message: &str) -> Result<(), ReplayMismatch> {
        self.expect_more();
        let came: Value = serde_json::from_str(message).map_err(|error| {
            ReplayMismatch::new(self.expected.first().copied(), error.to_string(), message)
        })?;
        let mut first_miss = None;
        for (index, line) in self.expected.iter().enumerate() {
            let TranscriptEvent::Says { pattern, .. } = &line.event else {
                continue;
            };
            match self.bindings.take(pattern, &came) {
                Ok(()) => {
                    self.expected.remove(index);
                    return Ok(());
                }
                Err(miss) => first_miss = first_miss.or(Some((*line, miss))),
            }
        }
        if came
            .get("method")
            .and_then(Value::as_str)
            .is_some_and(|method| ALWAYS_ALLOWED.contains(&method))
        {
            return Ok(());
        }
        Err(match first_miss {
            Some((line, miss)) => ReplayMismatch::new(Some(line), miss.to_string(), message),
            None => ReplayMismatch::new(None, "nothing more was expected".into(), message),
        })
    }

    /// Adds the other side's next consecutive messages to those that may arrive now.
    fn expect_more(&mut self) {
        if self.expected.iter().any(|line| !line.is_optional()) {
            return;
        }
        while let Some(line) = self
            .rest
            .front()
            .filter(|line| line.is_sent_by(self.side.other()))
        {
            self.expected.push(line);
            self.rest.pop_front();
        }
    }
}

impl TranscriptLine {
    fn is_sent_by(&self, by: Side) -> bool {
        matches!(&self.event, TranscriptEvent::Says { side, .. } if *side == by)
    }

    fn is_optional(&self) -> bool {
        matches!(&self.event, TranscriptEvent::Says { optional: true, .. })
    }
}
