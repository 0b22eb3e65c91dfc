//! The reasons why a connection failed, sorted by blame.

use std::time::Duration;

use mcp_elicit_core::fault::with_causes;
use mcp_elicit_core::text::beginning;
use rmcp::service::ClientInitializeError;
use thiserror::Error;

use super::transport_error::{Health, TransportError};

/// The largest number of a server's revisions that an error names.
const OFFERED: usize = 20;
/// The longest name of a revision in an error, in bytes. Servers choose these names.
const LONGEST_REVISION: usize = 100;

/// Returns a server's name for its revision, cut if it is too long.
pub(super) fn shortened(mut revision: String) -> String {
    if revision.len() > LONGEST_REVISION {
        revision.truncate(beginning(&revision, LONGEST_REVISION).len());
        revision.push_str("...");
    }
    revision
}

/// The kinds of [`ConnectError`], each with its advice. The list is complete, so that a host which handles all of them
/// does not compile with a version that has another: see [`ConnectError::kind`].
///
/// ```
/// use mcp_elicit_client::ConnectError;
/// use mcp_elicit_client::connection::ConnectErrorKind;
///
/// let error = ConnectError::Url { url: "ftp://h".to_owned() };
/// assert!(matches!(error.kind(), ConnectErrorKind::Url { url: "ftp://h" }));
/// ```
#[derive(Debug, Clone, Copy)]
pub enum ConnectErrorKind<'e> {
    /// The program cannot be started.
    Start {
        /// The program.
        program: &'e str,
        /// The system's error.
        source: &'e std::io::Error,
    },
    /// The URL cannot be used.
    Url {
        /// The URL, without a user name and a password.
        url: &'e str,
    },
    /// The HTTP client cannot be created.
    Setup,
    /// The server and this client have no revision in common.
    NoCommonRevision {
        /// The revisions that the server offers.
        offered: &'e [String],
    },
    /// The server did not respond in time.
    TimedOut,
    /// The server requires an authorization first.
    Unauthorized {
        /// Its `WWW-Authenticate` header; empty if there is none.
        challenge: &'e str,
        /// The server's message.
        reason: Option<&'e str>,
    },
    /// The transport failed before the first message.
    Unreachable {
        /// The transport's error.
        why: &'e str,
    },
    /// The server refused the connection, ended it, or broke the protocol.
    Broken,
}

/// The reason why a connection failed.
///
/// ```
/// use mcp_elicit_client::ConnectError;
///
/// fn advice(error: &ConnectError) -> String {
///     match error {
///         ConnectError::Start { program, .. } => format!("is {program} installed?"),
///         ConnectError::Unauthorized { .. } => "sign in at the server first".to_owned(),
///         // What the server's process said before it ended says most.
///         other => [other.to_string()].into_iter().chain(other.stderr().iter().cloned()).collect::<Vec<_>>().join("\n"),
///     }
/// }
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The program cannot be started.
    #[error("cannot start {program}")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The URL cannot be used.
    #[error("invalid URL {url:?}: expected http or https")]
    Url {
        /// The URL, without a user name and a password.
        url: String,
    },
    /// The HTTP client cannot be created.
    #[error("cannot set up HTTP")]
    Setup(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server broke the connection, or the protocol.
    #[error("{source}")]
    Broken {
        /// The error.
        source: TransportError,
        /// The last lines that its process wrote to stderr.
        stderr: Vec<String>,
        /// The first line that its process wrote to stdout and that is not JSON.
        stdout: Option<String>,
    },
    /// The server did not respond in time.
    #[error("no answer within {} s", within.as_secs_f32())]
    TimedOut {
        /// The longest time to the first response.
        within: Duration,
        /// The last lines that its process wrote to stderr.
        stderr: Vec<String>,
        /// The first line that its process wrote to stdout and that is not JSON.
        stdout: Option<String>,
    },
    /// The server and this client have no revision in common.
    #[error("the server does not speak {asked}; it offers {}", offered.join(", "))]
    NoCommonRevision {
        /// The revision that was requested.
        asked: String,
        /// The revisions that the server offers.
        offered: Vec<String>,
    },
    /// The server refused the connection.
    #[error("the server refused to begin: {message} (error {code})")]
    Refused {
        /// The JSON-RPC error code.
        code: i32,
        /// The server's message.
        message: String,
    },
    /// The server requires an authorization first.
    #[error("the server asks for authorization first")]
    Unauthorized {
        /// Its `WWW-Authenticate` header, which names the authorization server; empty if there is none.
        challenge: String,
        /// The server's message: that of the JSON-RPC error in the body, cut to 2,000 bytes, without the credentials
        /// that were sent.
        reason: Option<String>,
    },
    /// The transport failed before the first message.
    #[error("cannot reach the server: {0}")]
    Unreachable(String),
    /// The server's first messages broke the protocol.
    #[error("the server's first answer breaks the protocol")]
    UnexpectedResponse,
}

impl ConnectError {
    pub(super) fn from_rmcp(error: ClientInitializeError, asked: &str, health: &Health) -> Self {
        #[cfg(feature = "http")]
        if let Some(challenge) = error.auth_challenge() {
            return Self::Unauthorized {
                challenge: health.masked(challenge),
                reason: health.refusal(),
            };
        }
        match error {
            ClientInitializeError::JsonRpcError(error) => Self::Refused {
                code: error.code.0,
                message: health.masked(&error.message),
            },
            ClientInitializeError::NoCompatibleProtocolVersion {
                server_supported, ..
            } => Self::NoCommonRevision {
                asked: asked.to_owned(),
                offered: server_supported
                    .iter()
                    .take(OFFERED)
                    .map(|version| shortened(health.masked(&version.to_string())))
                    .collect(),
            },
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
                Self::from_rmcp(*fallback, asked, health)
            }
            ClientInitializeError::TransportError { error, .. } => {
                Self::Unreachable(health.masked(&with_causes(&*error.error)))
            }
            ClientInitializeError::ConnectionClosed(_) => Self::Broken {
                source: TransportError::Closed,
                stderr: Vec::new(),
                stdout: None,
            },
            // The others carry whole messages, which made no sense.
            _ => Self::UnexpectedResponse,
        }
    }

    #[cfg(feature = "process")]
    #[must_use]
    pub(super) fn with_output(mut self, lines: Vec<String>, stray_line: Option<String>) -> Self {
        if let Self::Broken { stderr, stdout, .. } | Self::TimedOut { stderr, stdout, .. } =
            &mut self
        {
            *stderr = lines;
            *stdout = stray_line;
        }
        self
    }

    /// Returns the kind of the error, from a complete list.
    ///
    /// ```
    /// use mcp_elicit_client::ConnectError;
    /// use mcp_elicit_client::connection::ConnectErrorKind;
    ///
    /// fn wants_sign_in(error: &ConnectError) -> bool {
    ///     matches!(error.kind(), ConnectErrorKind::Unauthorized { .. })
    /// }
    /// assert!(!wants_sign_in(&ConnectError::Url { url: "ftp://h".to_owned() }));
    /// ```
    pub fn kind(&self) -> ConnectErrorKind<'_> {
        match self {
            Self::Start { program, source } => ConnectErrorKind::Start { program, source },
            Self::Url { url } => ConnectErrorKind::Url { url },
            Self::Setup(_) => ConnectErrorKind::Setup,
            Self::NoCommonRevision { offered, .. } => {
                ConnectErrorKind::NoCommonRevision { offered }
            }
            Self::TimedOut { .. } => ConnectErrorKind::TimedOut,
            Self::Unauthorized { challenge, reason } => ConnectErrorKind::Unauthorized {
                challenge,
                reason: reason.as_deref(),
            },
            Self::Unreachable(why) => ConnectErrorKind::Unreachable { why },
            Self::Broken { .. } | Self::Refused { .. } | Self::UnexpectedResponse => {
                ConnectErrorKind::Broken
            }
        }
    }

    /// Returns the first line that the server's process wrote to stdout and that is not JSON, cut to 2,000 bytes.
    ///
    /// ```
    /// use mcp_elicit_client::ConnectError;
    ///
    /// fn hint(error: &ConnectError) -> Option<String> {
    ///     Some(format!("the server printed to its stdout: {}", error.first_stray_line()?))
    /// }
    /// ```
    pub fn first_stray_line(&self) -> Option<&str> {
        match self {
            Self::Broken { stdout, .. } | Self::TimedOut { stdout, .. } => stdout.as_deref(),
            Self::Start { .. }
            | Self::Url { .. }
            | Self::Setup(_)
            | Self::NoCommonRevision { .. }
            | Self::Refused { .. }
            | Self::Unauthorized { .. }
            | Self::Unreachable(_)
            | Self::UnexpectedResponse => None,
        }
    }

    /// Returns the last lines that the server's process wrote to stderr, oldest first; empty without a process.
    pub fn stderr(&self) -> &[String] {
        match self {
            Self::Broken { stderr, .. } | Self::TimedOut { stderr, .. } => stderr,
            Self::Start { .. }
            | Self::Url { .. }
            | Self::Setup(_)
            | Self::NoCommonRevision { .. }
            | Self::Refused { .. }
            | Self::Unauthorized { .. }
            | Self::Unreachable(_)
            | Self::UnexpectedResponse => &[],
        }
    }
}

/// Returns the challenge of a server that requires an authorization, or another one, if that is the error.
#[cfg(feature = "http")]
pub(crate) fn challenge(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError};

    mcp_elicit_core::fault::chain(error).find_map(|error| {
        if let Some(required) = error.downcast_ref::<AuthRequiredError>() {
            return Some(required.www_authenticate_header.clone());
        }
        if let Some(insufficient) = error.downcast_ref::<InsufficientScopeError>() {
            return Some(insufficient.www_authenticate_header.clone());
        }
        None
    })
}
