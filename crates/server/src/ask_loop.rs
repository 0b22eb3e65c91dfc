//! The loop that asks a question until it has an outcome: the built-in checks, further attempts with the reasons, and
//! the audit.

use std::time::Duration;

use mcp_elicit_core::answer::{CheckError, Outcome, Violations};
use mcp_elicit_core::fault::{Finding, LimitFault};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::text::beginning;
use mcp_elicit_core::wire::Revision;

use crate::ask::{AcceptedContent, ReadResult, Reasons};
use crate::audit::{AuditEvent, AuditRecord};
use crate::backend::AskResult;
use crate::elicit::CallParts;
use crate::error::{ElicitError, RefusalKind};
use crate::guard;
use crate::journal::ReceivedAnswer;
use crate::question::OutgoingQuestion;

/// The end of a question after a person's action.
#[derive(Debug)]
pub(crate) enum AskDecision<T> {
    Answer(T),
    Not(RefusalKind),
}

/// The longest text of reasons in the next message, in bytes.
const REASONS_LIMIT: usize = 1_000;

/// Counts a question that is sent against the principal's limit, and records it.
pub(crate) fn count(call: &CallParts, question: &OutgoingQuestion) -> Result<(), ElicitError> {
    let settings = &call.shared.settings;
    if let (Some(rates), Some(principal)) = (&settings.rates, &call.principal) {
        let asked = rates.ask(principal, settings.now_ms());
        asked.map_err(|retry_after| ElicitError::Limit(LimitFault::RateLimited { retry_after }))?;
    }
    note(call, question, AuditEvent::Asked, None, None);
    Ok(())
}

/// Asks `question` until `read` accepts an answer, at most `attempts` times. An answer that passed `own_check` once is
/// not checked by it in later runs.
pub(crate) async fn exchange<T>(
    call: &CallParts,
    mut question: OutgoingQuestion,
    attempts: u32,
    own_check: bool,
    read: impl Fn(AcceptedContent) -> ReadResult<T>,
) -> Result<AskDecision<T>, ElicitError> {
    let may = call.not_inside_a_step();
    if let Err(refused) = may.and_then(|()| call.backend.can_put(&question)) {
        let why = refused.to_string();
        note(call, &question, AuditEvent::Refused, None, Some(why));
        return Err(refused);
    }
    let message = question.message.clone();
    let mut last = UnusableReasons::default();
    for attempt in 0..attempts {
        call.count()?;
        let put = put(call, &question, attempt == 0).await?;
        match judge(&put.given, &question, call.backend.revision(), &read) {
            AnswerVerdict::Decision(settled, turn) => {
                note_fresh(call, &question, &put, turn, None);
                if own_check && matches!(settled, AskDecision::Answer(_)) {
                    call.backend.passed(&put);
                }
                return Ok(settled);
            }
            AnswerVerdict::Wrong(wrong) => {
                let why = &wrong.reasons;
                let noted = if wrong.by_author {
                    "the server's own check refused the answer".to_owned()
                } else {
                    why.clone()
                };
                note_fresh(call, &question, &put, AuditEvent::Wrong, Some(noted));
                call.backend.wrong(&put, why);
                question.message = format!("{message}\n\nThe last answer cannot be used:\n{why}");
                last = wrong;
            }
            AnswerVerdict::Late => {
                note_fresh(call, &question, &put, AuditEvent::TimedOut, None);
                return Err(ElicitError::TimedOut {
                    after: question.timeout,
                });
            }
            AnswerVerdict::Broken(why) => {
                note_fresh(call, &question, &put, AuditEvent::Failed, Some(why.clone()));
                return Err(ElicitError::Peer(why));
            }
            AnswerVerdict::Author(why) => {
                note_fresh(call, &question, &put, AuditEvent::Failed, Some(why.clone()));
                return Err(ElicitError::Author(why));
            }
        }
    }
    Err(ElicitError::Wrong {
        attempts,
        reasons: last.reasons,
        findings: last.findings,
    })
}

/// Asks the question once. Without an answer, records the reason.
async fn put(
    call: &CallParts,
    question: &OutgoingQuestion,
    first: bool,
) -> Result<AskResult, ElicitError> {
    let admit = || {
        // Later attempts repeat the same form, with the reasons in the message.
        if first {
            guard::may_ask(question)?;
        }
        count(call, question)
    };
    let result = call.backend.put(question, &admit).await;
    if let Err(unanswered) = &result {
        let turn = match unanswered {
            ElicitError::TimedOut { .. } => AuditEvent::TimedOut,
            ElicitError::CallCancelled
            | ElicitError::HandlerReturned
            | ElicitError::Disconnected => AuditEvent::Withdrawn,
            ElicitError::CannotAsk(_) | ElicitError::Author(_) | ElicitError::Limit(_) => {
                AuditEvent::Refused
            }
            ElicitError::Peer(_) | ElicitError::Wrong { .. } => AuditEvent::Failed,
            // The question has been sent and is still open.
            ElicitError::Suspended | ElicitError::Refused(_) | ElicitError::UrlRequired(_) => {
                return result;
            }
        };
        note(call, question, turn, None, Some(unanswered.to_string()));
    }
    result
}

enum AnswerVerdict<T> {
    Decision(AskDecision<T>, AuditEvent),
    Wrong(UnusableReasons),
    Late,
    Broken(String),
    /// The form accepts the answer, but the author's type does not.
    Author(String),
}

/// The reasons why an answer is unusable.
#[derive(Default)]
struct UnusableReasons {
    /// The reasons for the person.
    reasons: String,
    /// The reasons for programs, if the form's rules were broken in this run.
    findings: Vec<Finding>,
    /// `true` if the author's own check wrote the reasons: they may repeat a person's answer, and stay out of the
    /// audit.
    by_author: bool,
}

impl From<String> for UnusableReasons {
    fn from(reasons: String) -> Self {
        Self {
            reasons,
            ..Self::default()
        }
    }
}

impl From<Reasons> for UnusableReasons {
    fn from(reasons: Reasons) -> Self {
        Self {
            reasons: bounded(&reasons.listed()),
            findings: reasons.findings(),
            by_author: true,
        }
    }
}

fn judge<T>(
    given: &ReceivedAnswer,
    question: &OutgoingQuestion,
    revision: Revision,
    read: impl Fn(AcceptedContent) -> ReadResult<T>,
) -> AnswerVerdict<T> {
    let (reply, passed) = match given {
        ReceivedAnswer::Result(reply) => (reply, false),
        ReceivedAnswer::Passed(reply) => (reply, true),
        ReceivedAnswer::Wrong(reasons) => return AnswerVerdict::Wrong(reasons.clone().into()),
        ReceivedAnswer::Late => return AnswerVerdict::Late,
        ReceivedAnswer::Broken(why) => return AnswerVerdict::Broken(why.clone()),
    };
    // Accepted without content is read as an empty form, which is correct if no field is required.
    let content = reply.content.as_ref().map_or("{}", |content| content.get());
    let answers = match question.outcome(reply.action.into(), content, revision) {
        Ok(Outcome::Accept(answers)) => Some(answers),
        Ok(Outcome::Visit) => None,
        Ok(Outcome::Decline) => {
            return AnswerVerdict::Decision(
                AskDecision::Not(RefusalKind::Declined),
                AuditEvent::Declined,
            );
        }
        Ok(Outcome::Cancel) => {
            return AnswerVerdict::Decision(
                AskDecision::Not(RefusalKind::Dismissed),
                AuditEvent::Cancelled,
            );
        }
        Err(error) => return refused(&error),
    };
    match read(AcceptedContent { answers, passed }) {
        ReadResult::Answer(answer) => {
            AnswerVerdict::Decision(AskDecision::Answer(answer), AuditEvent::Answered)
        }
        ReadResult::No => AnswerVerdict::Decision(
            AskDecision::Not(RefusalKind::AnsweredNo),
            AuditEvent::Answered,
        ),
        ReadResult::Misfit(why) => AnswerVerdict::Wrong(why.into()),
        ReadResult::Refused(reasons) => AnswerVerdict::Wrong(reasons.into()),
        ReadResult::Author(why) => AnswerVerdict::Author(why),
    }
}

/// Returns the verdict on content that the form rejects.
fn refused<T>(error: &CheckError) -> AnswerVerdict<T> {
    match error {
        CheckError::Violations(violations) => AnswerVerdict::Wrong(UnusableReasons {
            reasons: bounded(&listed(violations)),
            findings: Finding::from_check(error),
            by_author: false,
        }),
        CheckError::Broken(_) | CheckError::TooLarge { .. } => {
            AnswerVerdict::Broken(error.to_string())
        }
    }
}

fn listed(violations: &Violations) -> String {
    let lines: Vec<String> = violations
        .iter()
        .map(|violation| format!("- {violation}"))
        .collect();
    lines.join("\n")
}

fn bounded(reasons: &str) -> String {
    beginning(reasons, REASONS_LIMIT).to_owned()
}

/// Records an event unless an earlier run of the handler already did.
fn note_fresh(
    call: &CallParts,
    question: &OutgoingQuestion,
    put: &AskResult,
    turn: AuditEvent,
    reason: Option<String>,
) {
    if !put.known {
        note(call, question, turn, Some(put.open_for), reason);
    }
}

fn note(
    call: &CallParts,
    question: &OutgoingQuestion,
    turn: AuditEvent,
    open_for: Option<Duration>,
    reason: Option<String>,
) {
    let settings = &call.shared.settings;
    let backend = call.backend.name();
    let mode = question.mode();
    tracing::info!(target: "mcp_elicit", %turn, method = call.method, name = %call.name, %mode, backend);
    let Some(audit) = &settings.audit else { return };
    let mut record = AuditRecord::new(turn, Timestamp::from_millis(settings.now_ms()));
    record.method = Some(call.method.to_owned());
    record.name = Some(call.name.clone());
    record.mode = Some(mode);
    record.backend = Some(backend.to_owned());
    record.principal.clone_from(&call.principal);
    record.fields = question.fields();
    record.host = question.host();
    record.open_ms = open_for.map(|open| u64::try_from(open.as_millis()).unwrap_or(u64::MAX));
    record.reason = reason;
    audit.record(&record);
}
