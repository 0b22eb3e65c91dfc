//! The reasons why an ask returned no answer, sorted by the party at fault, and their errors on the wire.

use std::time::Duration;

use mcp_elicit_core::fault::{AuthorFault, Fault, Finding, LimitFault, PeerFault, PersonFault};
use mcp_elicit_core::wire::{Capability, Mode, Revision, UrlRequired};
use rmcp::ErrorData;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ErrorCode};
use rmcp::task_manager::TaskExit;
use serde_json::json;

use crate::ask::on_one_line;

/// The reason why an ask returned no answer. `?` on it ends the handler.
///
/// In a tool, a person's refusal ([`Refused`](Self::Refused)) becomes a result that the model can read, with `isError`
/// set; everything else becomes a JSON-RPC error. As an [`ErrorData`], everything is a JSON-RPC error, because prompts
/// and resources cannot express a refusal otherwise. No variant holds a value that a person entered.
///
/// ```
/// use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
/// use mcp_elicit_server::{Elicit, ElicitError};
///
/// async fn region(elicit: Elicit) -> Result<String, ElicitError> {
///     match elicit.choose("Which region?", ["eu", "us"]).await {
///         // Without a person there is a default; a person's refusal is theirs.
///         Err(ElicitError::CannotAsk(_)) => Ok("eu".to_owned()),
///         answered => answered,
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// assert_eq!(region(ScriptedUser::unavailable().elicit()).await.unwrap(), "eu");
/// let refuses = ScriptedUser::answering([ScriptedAnswer::Decline]);
/// assert!(matches!(region(refuses.elicit()).await, Err(ElicitError::Refused(_))));
/// # }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ElicitError {
    /// The person did not say yes.
    #[error("{}", .0.reply)]
    Refused(Refusal),

    /// The client cannot show this question to a person. Nothing was sent.
    #[error(transparent)]
    CannotAsk(#[from] CannotAsk),

    /// The deadline passed without an answer. This is not a refusal: no person acted.
    #[error("no answer within {} seconds", .after.as_secs())]
    TimedOut {
        /// The time that the question was open.
        after: Duration,
    },

    /// The client ended the call while the question was open. The question was withdrawn.
    #[error("the call was cancelled while its question was open")]
    CallCancelled,

    /// The client sent something that is not an answer to the question.
    #[error("the client did not answer properly: {0}")]
    Peer(String),

    /// The answers kept breaking the form's rules, although each attempt showed the reasons.
    #[error("no usable answer in {attempts} attempts: {reasons}")]
    Wrong {
        /// The number of times that the person was asked.
        attempts: u32,
        /// The violations of the last answer, without its values.
        reasons: String,
        /// The same violations field by field, if the form's rules were broken.
        findings: Vec<Finding>,
    },

    /// The question itself must not or cannot be asked. The author of the server has to change it.
    #[error("this question cannot be asked: {0}")]
    Author(String),

    /// These URLs must be visited before the call is made again (2025-11-25).
    #[error("{}", .0.message)]
    UrlRequired(UrlRequired),

    /// A limit of this server was reached.
    #[error(transparent)]
    Limit(LimitFault),

    /// This run of the handler was ended while the ask was open (2026-07-28). Only a task that the handler spawned can
    /// see it: the question has been sent, and the handler runs again from the top when the answer comes.
    #[error("this run of the handler is over; its questions have gone out")]
    Suspended,

    /// The handler returned before the ask ended or began. Only a task that the handler spawned can see it: the call is
    /// over, the question was withdrawn or never sent, and there is no other run. Wait for the task in the handler.
    #[error(
        "the handler returned before its question was answered, so its answer is not waited for"
    )]
    HandlerReturned,

    /// The connection closed while the question was open.
    #[error("the connection closed while the question was open")]
    Disconnected,
}

/// A person's refusal.
///
/// ```
/// use mcp_elicit_server::{Refusal, RefusalKind, ServerSettings};
///
/// let settings = ServerSettings::default().refusal_text(|refusal: &Refusal| match refusal.kind {
///     RefusalKind::Declined => format!("Do not ask again. {}", refusal.reply),
///     _ => refusal.reply.clone(),
/// });
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The kind of refusal.
    pub kind: RefusalKind,
    /// The message of the question.
    pub question: String,
    /// The text for the model, from [`ServerSettings::refusal_text`](crate::ServerSettings::refusal_text).
    pub reply: String,
}

impl Refusal {
    pub(crate) fn new(kind: RefusalKind, question: &str) -> Self {
        let reply = match kind {
            RefusalKind::Declined => format!("The user declined to answer \"{question}\"."),
            RefusalKind::Dismissed => {
                format!("The user dismissed the question \"{question}\" without choosing.")
            }
            RefusalKind::AnsweredNo => format!("The user answered no to \"{question}\"."),
        };
        Self {
            kind,
            question: question.to_owned(),
            reply,
        }
    }
}

/// The three ways in which a person does not say yes.
///
/// ```
/// # use mcp_elicit_server::testing::{ScriptedAnswer, ScriptedUser};
/// use mcp_elicit_server::{ElicitError, RefusalKind};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # let elicit = ScriptedUser::answering([ScriptedAnswer::no()]).elicit();
/// match elicit.confirm("Deploy?").await {
///     Err(ElicitError::Refused(refusal)) => assert_eq!(refusal.kind, RefusalKind::AnsweredNo),
///     other => panic!("{other:?}"),
/// }
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalKind {
    /// `decline`: the person declined to be asked.
    Declined,
    /// `cancel`: the person made no choice.
    Dismissed,
    /// A confirmation was accepted with the answer "no".
    AnsweredNo,
}

/// The reason why the client cannot show the question to a person.
///
/// ```
/// # use mcp_elicit_server::testing::ScriptedUser;
/// use mcp_elicit_server::core::wire::Mode;
/// use mcp_elicit_server::{CannotAskReason, ElicitError};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # let elicit = ScriptedUser::unavailable().elicit();
/// let Err(ElicitError::CannotAsk(cannot)) = elicit.confirm("Deploy?").await else {
///     panic!("this client cannot ask");
/// };
/// assert_eq!((cannot.mode, cannot.why), (Mode::Form, CannotAskReason::Undeclared));
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
#[non_exhaustive]
pub struct CannotAsk {
    /// The mode the question needs.
    pub mode: Mode,
    /// The revision of the call, which decides the error code.
    pub revision: Revision,
    /// The capability that the client declared.
    pub declared: Capability,
    /// The missing capability.
    pub why: CannotAskReason,
}

/// The reason that a person cannot be reached.
///
/// ```
/// use mcp_elicit_server::{CannotAsk, CannotAskReason};
///
/// /// A sentence for the server's operator.
/// fn advice(cannot: &CannotAsk) -> &'static str {
///     match cannot.why {
///         CannotAskReason::Undeclared => "use a client that declares elicitation",
///         CannotAskReason::NoSession => "serve with sessions, or use a client of 2026-07-28",
///         _ => "use a client of 2025-06-18 or newer",
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotAskReason {
    /// The client did not declare `elicitation`, or not this mode.
    #[error("the client did not declare that it can ask a person this way")]
    Undeclared,
    /// A question pushed over HTTP cannot reach a client without a session.
    #[error("this connection has no session, so a question cannot reach the client")]
    NoSession,
    /// The protocol revision of the call has no elicitation.
    #[error("the protocol revision of this call has no elicitation")]
    TooOld,
}

/// Returns the rmcp error of a fault, in the words and codes of `revision`.
pub(crate) fn fault(fault: impl Into<Fault>, revision: Revision) -> ErrorData {
    let error = fault.into().to_error(revision);
    ErrorData::new(ErrorCode(error.code), error.message, error.data)
}

/// Like `fault`, with `reason` in message and data.
fn because(kind: impl Into<Fault>, revision: Revision, reason: &str) -> ErrorData {
    let mut error = fault(kind, revision);
    error.message = format!("{}: {reason}", error.message).into();
    error.data.get_or_insert_with(|| json!({}))["reason"] = reason.into();
    error
}

/// Returns the error -32042 in rmcp's type.
fn url_required(required: &UrlRequired) -> ErrorData {
    let error = required
        .to_error()
        .map_err(|unaskable| unaskable.to_string());
    let error = error
        .and_then(|error| serde_json::from_str(error.get()).map_err(|error| error.to_string()));
    error.unwrap_or_else(|why| ErrorData::internal_error(why, None))
}

impl From<CannotAsk> for ErrorData {
    fn from(cannot: CannotAsk) -> Self {
        let CannotAsk {
            mode,
            revision,
            declared,
            why,
        } = cannot;
        match why {
            CannotAskReason::Undeclared => {
                fault(PeerFault::CapabilityMissing { mode, declared }, revision)
            }
            CannotAskReason::NoSession | CannotAskReason::TooOld => because(
                AuthorFault::NoResponder { mode },
                revision,
                &why.to_string(),
            ),
        }
    }
}

impl From<ElicitError> for ErrorData {
    fn from(unanswered: ElicitError) -> Self {
        let reason = unanswered.to_string();
        // Only a missing capability has different codes on different revisions, and it knows its own revision.
        let any = Revision::LATEST;
        match unanswered {
            ElicitError::Refused(refusal) => match refusal.kind {
                RefusalKind::Declined => because(PersonFault::Declined, any, &reason),
                RefusalKind::Dismissed => because(PersonFault::Cancelled, any, &reason),
                RefusalKind::AnsweredNo => {
                    let mut error = because(PersonFault::Declined, any, &reason);
                    // Accepting with "no" is not the action `decline`.
                    error.data =
                        Some(json!({ "reason": reason, "action": "accept", "answer": false }));
                    error
                }
            },
            ElicitError::CannotAsk(cannot) => cannot.into(),
            ElicitError::TimedOut { after } => {
                fault(LimitFault::TimedOut { after, seen: true }, any)
            }
            ElicitError::UrlRequired(required) => url_required(&required),
            ElicitError::Limit(limit) => fault(limit, any),
            ElicitError::Wrong {
                attempts,
                reasons,
                findings,
            } => {
                let told = on_one_line(&reasons);
                let mut violations = findings;
                if violations.is_empty() {
                    violations.push(Finding::new("", "check", reasons));
                }
                let wrong = PeerFault::WrongAnswer {
                    violations,
                    attempts,
                };
                let mut error = fault(wrong, any);
                // Hosts show the message only.
                error.message = format!("{}: {told}", error.message).into();
                error
            }
            ElicitError::CallCancelled => fault(PeerFault::Withdrawn, any),
            ElicitError::Disconnected => fault(PeerFault::Gone, any),
            ElicitError::Peer(_) => Self::invalid_params(reason, None),
            ElicitError::Author(_) | ElicitError::Suspended | ElicitError::HandlerReturned => {
                Self::internal_error(reason, None)
            }
        }
    }
}

impl ElicitError {
    /// Returns the end of a task's operation: a refusal becomes a result that the model can read, a cancelled task
    /// stays cancelled, and everything else fails it.
    ///
    /// ```
    /// use mcp_elicit_server::{Elicit, ElicitError};
    /// use rmcp::model::{CallToolResult, ContentBlock};
    /// use rmcp::task_manager::TaskExit;
    ///
    /// async fn delete(elicit: &Elicit) -> Result<CallToolResult, ElicitError> {
    ///     elicit.confirm("Delete the file?").await?;
    ///     Ok(CallToolResult::success(vec![ContentBlock::text("deleted")]))
    /// }
    ///
    /// async fn operation(elicit: Elicit) -> Result<CallToolResult, TaskExit> {
    ///     delete(&elicit).await.or_else(ElicitError::into_task_result)
    /// }
    /// ```
    pub fn into_task_result(self) -> Result<CallToolResult, TaskExit> {
        match self {
            Self::CallCancelled => Err(TaskExit::Cancelled),
            other => match other.into_call_tool_result() {
                Ok(CallToolResponse::Complete(result)) => Ok(result),
                Ok(_) => {
                    Err(ErrorData::internal_error("a refusal is a complete result", None).into())
                }
                Err(error) => Err(error.into()),
            },
        }
    }
}

impl IntoCallToolResult for ElicitError {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        match self {
            Self::Refused(refusal) => {
                Ok(CallToolResult::error(vec![ContentBlock::text(refusal.reply)]).into())
            }
            other => Err(other.into()),
        }
    }
}
