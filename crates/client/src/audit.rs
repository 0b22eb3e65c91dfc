//! One record per turn in the life of a question, and how many there were of each: who asked, for which fields, what
//! became of it; never a value. The words are those of the server's own audit.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mcp_elicit_core::answer::Outcome;
use serde::Serialize;
use tokio::time::Instant;

use crate::answer::Answer;
use crate::desk::{Observer, Refusal};
use crate::question::Question;
use crate::responder::Unanswered;

/// What happened to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// It came, and was let in.
    Asked,
    /// It was accepted, and the answer keeps the form's rules.
    Answered,
    /// The answer broke the form's rules, and was not sent.
    Wrong,
    /// The person declined.
    Declined,
    /// The person dismissed it.
    Dismissed,
    /// Nobody answered in time.
    TimedOut,
    /// The server took it back, its call ended, or the connection closed.
    Withdrawn,
    /// It was not shown: it must not be asked, or not so often, or not without a warning that nobody took.
    Refused,
    /// Nobody was there to answer.
    Nobody,
}

/// A line of the audit.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// What happened.
    pub turn: Turn,
    /// The server as its client knows it; absent where the question could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool, prompt or resource whose call asked, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `form` or `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<&'static str>,
    /// Who answered: `terminal`, `script`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The fields of the form, without values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// The fields that seem to ask for a credential.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suspicious: Vec<String>,
    /// Whether the person insisted on answering all the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub insisted: bool,
    /// The host of the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// How long the question had been open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_ms: Option<u64>,
    /// Why it was not answered, or the reason the person gave for declining.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Writes each record as a line of JSON, and counts.
pub struct Audit<W> {
    out: Mutex<W>,
    open: Mutex<BTreeMap<u64, Instant>>,
    counts: Mutex<BTreeMap<Turn, u64>>,
}

impl<W: Write + Send + 'static> Audit<W> {
    /// Writes to `out`, flushing after each line. [`std::io::sink`] keeps only the counts.
    pub fn new(out: W) -> Self {
        Self {
            out: Mutex::new(out),
            open: Mutex::default(),
            counts: Mutex::default(),
        }
    }

    /// How many turns there were of each kind so far.
    pub fn counts(&self) -> BTreeMap<Turn, u64> {
        locked(&self.counts).clone()
    }

    fn write(&self, turn: Turn, question: Option<&Question>, finish: impl FnOnce(&mut Record)) {
        *locked(&self.counts).entry(turn).or_default() += 1;
        let mut record = Record::of(turn, question);
        finish(&mut record);
        let mut out = locked(&self.out);
        let written = serde_json::to_writer(&mut *out, &record)
            .map_err(std::io::Error::from)
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| out.flush());
        if let Err(error) = written {
            tracing::error!(%error, "a record of the audit could not be written");
        }
    }

    fn open_for(&self, question: Option<&Question>) -> Option<u64> {
        let since = locked(&self.open).remove(&question?.id())?;
        Some(millis(since.elapsed()))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Record {
    fn of(turn: Turn, question: Option<&Question>) -> Self {
        let form = question.and_then(Question::form);
        Self {
            at_ms: now_ms(),
            turn,
            server: question.map(|question| question.shown().origin().server()),
            name: question.and_then(|question| Some(question.shown().call()?.name())),
            mode: question.map(|question| question.mode().as_str()),
            by: None,
            fields: form
                .map(|form| {
                    form.fields()
                        .iter()
                        .map(|field| field.name().to_owned())
                        .collect()
                })
                .unwrap_or_default(),
            suspicious: question
                .map(Question::suspicious_fields)
                .unwrap_or_default(),
            insisted: false,
            host: question.and_then(|question| Some(question.link()?.host().ascii().to_owned())),
            open_ms: None,
            reason: None,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a record says when it was made")]
fn now_ms() -> u64 {
    millis(
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl<W> std::fmt::Debug for Audit<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

impl<W: Write + Send + 'static> Observer for Audit<W> {
    fn asked(&self, question: &Question) {
        locked(&self.open).insert(question.id(), Instant::now());
        self.write(Turn::Asked, Some(question), |_| {});
    }

    fn answered(&self, question: &Question, answer: &Answer) {
        let turn = match answer.outcome() {
            Outcome::Accept(_) | Outcome::Visit => Turn::Answered,
            Outcome::Decline => Turn::Declined,
            Outcome::Cancel => Turn::Dismissed,
        };
        let open_ms = self.open_for(Some(question));
        self.write(turn, Some(question), |record| {
            record.by = answer.by().map(str::to_owned);
            record.insisted = answer.insisted() && !record.suspicious.is_empty();
            record.reason = answer.reason().map(str::to_owned);
            record.open_ms = open_ms;
        });
    }

    fn refused(&self, question: Option<&Question>, why: &Refusal) {
        let open_ms = self.open_for(question);
        self.write(turn_of(why), question, |record| {
            record.open_ms = open_ms;
            record.reason = Some(why.to_string());
        });
    }
}

fn turn_of(why: &Refusal) -> Turn {
    match why {
        Refusal::Malformed(_)
        | Refusal::IllegalForm(_)
        | Refusal::BadLink(_)
        | Refusal::Undeclared { .. }
        | Refusal::Forbidden(_)
        | Refusal::TooMuch(_)
        | Refusal::NotInsisted { .. } => Turn::Refused,
        Refusal::TimedOut { .. }
        | Refusal::Nobody {
            why: Unanswered::TimedOut { .. } | Unanswered::Expired,
            ..
        } => Turn::TimedOut,
        Refusal::Withdrawn { .. }
        | Refusal::Nobody {
            why: Unanswered::Withdrawn { .. },
            ..
        } => Turn::Withdrawn,
        Refusal::WrongAnswer(_)
        | Refusal::Nobody {
            why: Unanswered::Refused { .. },
            ..
        } => Turn::Wrong,
        Refusal::Nobody { .. } => Turn::Nobody,
    }
}
