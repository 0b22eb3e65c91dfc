//! One audit record per event in the life of a question, and counts of each: who asked, for which fields, with which
//! end; never a value. The server crate's audit writes the same [`AuditRecord`].

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::form::{Field, Form};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::view::CallView;
use tokio::time::Instant;

use crate::answer::Answer;
use crate::dispatch::{Observer, QuestionError};
use crate::question::Question;
use crate::responder::ResponderError;

pub use mcp_elicit_core::lifecycle::{AuditCounters, AuditEvent, AuditRecord};

/// An audit that writes each record as a line of JSON and counts events. Its clones write to the same output and count
/// together.
///
/// ```
/// use mcp_elicit_client::ClientSettings;
/// use mcp_elicit_client::audit::AuditLog;
///
/// let audit = AuditLog::new(std::io::stderr());
/// let settings = ClientSettings::default().observer(audit.clone());
/// // Later: how many questions came, and how they ended.
/// println!("{:?}", audit.counters());
/// ```
pub struct AuditLog<W> {
    shared: Arc<SharedAudit<W>>,
}

/// The parts that clones of an audit share.
struct SharedAudit<W> {
    out: Mutex<W>,
    open: Mutex<BTreeMap<u64, Instant>>,
    counters: Mutex<AuditCounters>,
}

impl<W> Clone for AuditLog<W> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<W: Write + Send + 'static> AuditLog<W> {
    /// Creates an audit that writes to `out` and flushes after each line. With [`std::io::sink`] it only counts.
    ///
    /// ```
    /// use mcp_elicit_client::audit::AuditLog;
    ///
    /// let counts_only = AuditLog::new(std::io::sink());
    /// # let _ = counts_only.counters();
    /// ```
    pub fn new(out: W) -> Self {
        Self {
            shared: Arc::new(SharedAudit {
                out: Mutex::new(out),
                open: Mutex::default(),
                counters: Mutex::default(),
            }),
        }
    }

    /// Returns the number of events of each kind so far, and the times that questions were open.
    ///
    /// ```
    /// use mcp_elicit_client::audit::AuditLog;
    ///
    /// println!("{:?}", AuditLog::new(std::io::sink()).counters());
    /// ```
    pub fn counters(&self) -> AuditCounters {
        locked(&self.shared.counters).clone()
    }

    fn write(
        &self,
        turn: AuditEvent,
        question: Option<&Question>,
        finish: impl FnOnce(&mut AuditRecord),
    ) {
        let mut record = record_of(turn, question);
        finish(&mut record);
        locked(&self.shared.counters).count(&record);
        let mut out = locked(&self.shared.out);
        let written = serde_json::to_writer(&mut *out, &record)
            .map_err(std::io::Error::from)
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| out.flush());
        if let Err(error) = written {
            tracing::error!(%error, "a record of the audit could not be written");
        }
    }

    fn open_for(&self, question: Option<&Question>) -> Option<u64> {
        let since = locked(&self.shared.open).remove(&question?.id())?;
        Some(millis(since.elapsed()))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn record_of(turn: AuditEvent, question: Option<&Question>) -> AuditRecord {
    let mut record = AuditRecord::new(turn, now());
    let Some(question) = question else {
        return record;
    };
    let shown = question.shown();
    record.server = Some(shown.origin().server());
    record.name = shown.call().map(CallView::name);
    record.mode = Some(question.mode());
    record.fields = question.form().map(field_names).unwrap_or_default();
    record.suspicious = question.suspicious_fields();
    record.host = question.link().map(|link| link.host().ascii().to_owned());
    record
}

fn field_names(form: &Form) -> Vec<String> {
    let name = |field: &Field| field.name().to_owned();
    form.fields().iter().map(name).collect()
}

#[expect(clippy::disallowed_methods, reason = "a record says when it was made")]
fn now() -> Timestamp {
    Timestamp::from_epoch(
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl<W> std::fmt::Debug for AuditLog<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuditLog").finish_non_exhaustive()
    }
}

impl<W: Write + Send + 'static> Observer for AuditLog<W> {
    fn asked(&self, question: &Question) {
        locked(&self.shared.open).insert(question.id(), Instant::now());
        self.write(AuditEvent::Asked, Some(question), |_| {});
    }

    fn answered(&self, question: &Question, answer: &Answer) {
        let turn = match answer.outcome() {
            Outcome::Accept(_) | Outcome::Visit => AuditEvent::Answered,
            Outcome::Decline => AuditEvent::Declined,
            Outcome::Cancel => AuditEvent::Cancelled,
        };
        let open_ms = self.open_for(Some(question));
        self.write(turn, Some(question), |record| {
            record.responder = answer.by().map(str::to_owned);
            record.credential_allowed =
                answer.allows_credentials() && !record.suspicious.is_empty();
            record.reason = answer.reason().map(str::to_owned);
            record.open_ms = open_ms;
        });
    }

    fn refused(&self, question: Option<&Question>, why: &QuestionError) {
        let open_ms = self.open_for(question);
        self.write(turn_of(why), question, |record| {
            record.open_ms = open_ms;
            record.reason = Some(why.to_string());
        });
    }
}

fn turn_of(why: &QuestionError) -> AuditEvent {
    match why {
        QuestionError::Malformed(_)
        | QuestionError::IllegalForm { .. }
        | QuestionError::BadLink(_)
        | QuestionError::Undeclared { .. }
        | QuestionError::Forbidden(_)
        | QuestionError::TooMuch(_)
        | QuestionError::CredentialNotAllowed { .. } => AuditEvent::Refused,
        QuestionError::TimedOut { .. }
        | QuestionError::NoResponder {
            why: ResponderError::TimedOut { .. } | ResponderError::Expired,
            ..
        } => AuditEvent::TimedOut,
        QuestionError::Withdrawn { .. }
        | QuestionError::NoResponder {
            why: ResponderError::Withdrawn { .. },
            ..
        } => AuditEvent::Withdrawn,
        QuestionError::WrongAnswer(_)
        | QuestionError::NoResponder {
            why: ResponderError::Refused { .. } | ResponderError::NotAsked { .. },
            ..
        } => AuditEvent::Wrong,
        QuestionError::NoResponder { .. } => AuditEvent::NoResponder,
    }
}
