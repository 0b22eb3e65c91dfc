//! The reasons why a call returned no result, sorted by blame.

use std::time::Duration;

use mcp_elicit_core::fault::with_causes;
use mcp_elicit_core::misfit::Misfit;
use rmcp::model::ErrorData;
use rmcp::service::ServiceError;
use serde_json::Value;
use thiserror::Error;

use crate::connection::{Health, TransportError};
use crate::dispatch::QuestionError;

/// The largest number of misfits that an error names.
const MISFITS: usize = 5;

/// The kinds of [`CallError`], each with its advice. The list is complete, so that a host which handles all of them does
/// not compile with a version that has another: see [`CallError::kind`].
///
/// ```
/// use mcp_elicit_client::CallError;
/// use mcp_elicit_client::call::CallErrorKind;
///
/// assert!(matches!(CallError::SameAgain.kind(), CallErrorKind::Broken));
/// ```
#[derive(Debug, Clone, Copy)]
pub enum CallErrorKind<'e> {
    /// The server returned an error.
    Reported(&'e ErrorData),
    /// A question got no answer.
    Question(&'e QuestionError),
    /// The person did not agree to a visit that the server requires.
    VisitRefused {
        /// The person's action: `decline` or `cancel`.
        action: &'static str,
    },
    /// The server requires the same visit again, after it was done.
    SameVisitAgain,
    /// The server requires an authorization, or another one, for this call.
    Unauthorized {
        /// Its `WWW-Authenticate` header.
        challenge: &'e str,
        /// The server's message.
        reason: Option<&'e str>,
    },
    /// The server sent nothing for too long.
    Silent,
    /// The caller stopped the call.
    Stopped,
    /// The server ended the call's task.
    TaskCancelled,
    /// The connection ended, or the request could not be delivered.
    Disconnected,
    /// The server broke the protocol, or asked without end.
    Broken,
}

/// The reason why a call returned no result.
///
/// ```
/// use mcp_elicit_client::CallError;
///
/// fn advice(error: &CallError) -> &'static str {
///     match error {
///         CallError::Server(_) => "the tool failed",
///         CallError::Question(_) => "a question got no answer",
///         CallError::Unauthorized { .. } => "sign in at the server first",
///         _ => "try again later",
///     }
/// }
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server returned an error.
    #[error("the server reported error {}: {}", .0.code.0, .0.message)]
    Server(ErrorData),
    /// A question got no answer, so the call cannot go on. Every call ends this way if the person stopped the program
    /// or the question was withdrawn by this client. A question pushed to this client (2025-06-18, 2025-11-25) that
    /// ends otherwise is sent to the server, which decides.
    #[error(transparent)]
    Question(#[from] QuestionError),
    /// The server asked too many times.
    #[error("the server asked again after {limit} rounds")]
    TooManyRounds {
        /// The most rounds that one call may take.
        limit: usize,
    },
    /// The server asked exactly the same again, as if it had received no answer.
    #[error("the server asked the very same thing again after it was answered")]
    SameAgain,
    /// The server requires the same visit again, after it was done.
    #[error("the server wants the same URL visited again (at {host}) after the visit was done")]
    SameVisitAgain {
        /// The host of the URL.
        host: String,
    },
    /// The person did not agree to a visit that the server requires.
    #[error("the server requires a visit that was not agreed to ({action})")]
    VisitRefused {
        /// The person's action: `decline` or `cancel`.
        action: &'static str,
    },
    /// The connection ended.
    #[error("{0}")]
    Broken(TransportError),
    /// The transport failed for this request.
    #[error("the request could not be delivered: {0}")]
    Undelivered(String),
    /// The server requires an authorization, or another one, for this call.
    #[error("the server asks for authorization")]
    Unauthorized {
        /// Its `WWW-Authenticate` header, which names the authorization server and the scope.
        challenge: String,
        /// The server's message: that of the JSON-RPC error in the body, cut to 2,000 bytes, without the credentials
        /// that were sent.
        reason: Option<String>,
    },
    /// The server sent nothing for too long.
    #[error("the server said nothing for {} s", after.as_secs_f32())]
    Silent {
        /// The longest accepted silence.
        after: Duration,
    },
    /// The caller stopped the call, and the server was notified.
    #[error("the call was stopped")]
    Stopped,
    /// The server ended the call's task.
    #[error("the server cancelled the task")]
    TaskCancelled,
    /// A result in which members do not fit the protocol.
    #[error("the server's answer breaks the protocol{}", listed(misfits))]
    Unreadable {
        /// The members; empty if none of them explains why the result cannot be read.
        misfits: Vec<Misfit>,
    },
    /// A response that the protocol does not allow.
    #[error("the server's answer breaks the protocol")]
    UnexpectedResponse,
}

/// Returns the misfits as the end of a sentence.
fn listed(misfits: &[Misfit]) -> String {
    let listed: Vec<_> = misfits
        .iter()
        .take(MISFITS)
        .map(Misfit::to_string)
        .collect();
    if listed.is_empty() {
        String::new()
    } else {
        format!(": {}", listed.join("; "))
    }
}

/// Converts the error of a request made with rmcp's own methods on [`Connection::peer`](crate::Connection::peer).
impl From<ServiceError> for CallError {
    fn from(error: ServiceError) -> Self {
        Self::from_rmcp(error, &Health::default())
    }
}

impl CallError {
    /// Returns the kind of the error, from a complete list.
    ///
    /// ```
    /// use mcp_elicit_client::CallError;
    /// use mcp_elicit_client::call::CallErrorKind;
    ///
    /// fn may_be_repeated(error: &CallError) -> bool {
    ///     matches!(error.kind(), CallErrorKind::Stopped)
    /// }
    /// assert!(!may_be_repeated(&CallError::SameAgain));
    /// ```
    pub fn kind(&self) -> CallErrorKind<'_> {
        match self {
            Self::Server(error) => CallErrorKind::Reported(error),
            Self::Question(error) => CallErrorKind::Question(error),
            Self::VisitRefused { action } => CallErrorKind::VisitRefused { action },
            Self::SameVisitAgain { .. } => CallErrorKind::SameVisitAgain,
            Self::Unauthorized { challenge, reason } => CallErrorKind::Unauthorized {
                challenge,
                reason: reason.as_deref(),
            },
            Self::Silent { .. } => CallErrorKind::Silent,
            Self::Stopped => CallErrorKind::Stopped,
            Self::TaskCancelled => CallErrorKind::TaskCancelled,
            Self::Broken(_) | Self::Undelivered(_) => CallErrorKind::Disconnected,
            Self::TooManyRounds { .. }
            | Self::SameAgain
            | Self::Unreadable { .. }
            | Self::UnexpectedResponse => CallErrorKind::Broken,
        }
    }

    pub(super) fn from_rmcp(error: ServiceError, health: &Health) -> Self {
        #[cfg(feature = "http")]
        if let ServiceError::TransportSend(failed) = &error
            && let Some(challenge) = crate::connection::challenge(&*failed.error)
        {
            let challenge = health.masked(&challenge);
            let reason = health.refusal();
            return Self::Unauthorized { challenge, reason };
        }
        match (error, health.transport_error()) {
            (ServiceError::McpError(error), _) => Self::Server(error).masked(health),
            (_, Some(broken)) => Self::Broken(broken),
            (ServiceError::TransportClosed, None) => Self::Broken(TransportError::Closed),
            (ServiceError::TransportSend(error), None) => {
                Self::Undelivered(health.masked(&with_causes(&*error.error)))
            }
            _ => Self::UnexpectedResponse,
        }
    }

    /// Returns the error without the credentials that were sent, which a server may repeat. The links that a server
    /// requires to be visited stay as they are.
    pub(super) fn masked(self, health: &Health) -> Self {
        match self {
            Self::Server(mut error) => {
                error.message = health.masked(&error.message).into();
                if !super::visits::are_required(&error) {
                    error.data = error.data.map(|data| masked_value(data, health));
                }
                Self::Server(error)
            }
            Self::Unreadable { misfits } => Self::Unreadable {
                misfits: misfits
                    .into_iter()
                    .map(|misfit| misfit.with_texts(|text| health.masked(text)))
                    .collect(),
            },
            other => other,
        }
    }
}

/// Returns a value with its texts masked.
fn masked_value(value: Value, health: &Health) -> Value {
    match value {
        Value::String(text) => Value::String(health.masked(&text)),
        Value::Array(values) => values
            .into_iter()
            .map(|value| masked_value(value, health))
            .collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (health.masked(&name), masked_value(value, health)))
            .collect(),
        other => other,
    }
}
