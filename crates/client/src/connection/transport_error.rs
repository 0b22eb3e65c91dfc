//! The error that broke a connection, stored here because rmcp only reports that a transport closed.

#[cfg(feature = "http")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcp_elicit_core::text::beginning;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "http")]
use super::credential_mask::CredentialMask;
use super::finding::ProtocolFinding;

/// The reason why a connection can no longer be used. Contains nothing that was sent over it.
///
/// ```
/// use mcp_elicit_client::connection::TransportError;
///
/// /// Only a server that can be started again is worth another try.
/// fn is_worth_a_retry(error: &TransportError) -> bool {
///     matches!(error, TransportError::Ended { .. } | TransportError::Closed)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransportError {
    /// A frame that is not JSON.
    #[error("the server sent broken JSON ({why})")]
    BrokenJson {
        /// The parser's message, with positions only.
        why: String,
    },
    /// JSON that is not a JSON-RPC message of MCP.
    #[error("the server sent JSON that is not an MCP message")]
    NotAMessage,
    /// A frame larger than the limit.
    #[error("the server sent a message larger than {limit} bytes")]
    TooLarge {
        /// The largest frame that is read, in bytes.
        limit: usize,
    },
    /// The server does not read its input.
    #[error("the server does not read what it is sent: more than {limit} bytes wait for it")]
    Unread {
        /// The most that may wait for the server, in bytes.
        limit: usize,
    },
    /// The server's process ended.
    #[error("the server ended ({status})")]
    Ended {
        /// The exit code or signal, in the system's words.
        status: String,
    },
    /// The server closed its end of the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The server does not know the session any more, or its streams: no response to a call in progress comes.
    #[error(
        "the server does not know the session any more, so no response comes; make the call again"
    )]
    SessionGone,
    /// Reading or writing failed.
    #[error("the connection failed: {0}")]
    Failed(String),
}

/// The longest kept line that is no message, in bytes.
const STRAY_LINE: usize = 2_000;
/// The largest number of findings that are kept.
const FINDINGS: usize = 50;

/// The state of one connection, shared by its transport and all waiting tasks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Health {
    error: Arc<Mutex<Option<TransportError>>>,
    ended: CancellationToken,
    stray_lines: Arc<AtomicUsize>,
    first_stray_line: Arc<OnceLock<String>>,
    findings: Arc<Mutex<Vec<ProtocolFinding>>>,
    #[cfg(feature = "http")]
    refusal: Arc<Mutex<Option<String>>>,
    /// The credentials that were sent, which no text of the server shows.
    #[cfg(feature = "http")]
    sent: Arc<Mutex<CredentialMask>>,
    /// `true` if the server named a session.
    #[cfg(feature = "http")]
    has_session_id: Arc<AtomicBool>,
}

impl Health {
    /// Records the credentials of a request, before it is sent.
    #[cfg(feature = "http")]
    pub(super) fn sends(
        &self,
        token: Option<&str>,
        headers: &std::collections::HashMap<http::HeaderName, http::HeaderValue>,
    ) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.add(token, headers);
    }

    /// Returns a text of the server without the credentials that were sent to it. Every text of a server that becomes
    /// part of an error or of a finding passes here.
    #[cfg_attr(
        not(feature = "http"),
        expect(clippy::unused_self, reason = "nothing is sent without HTTP")
    )]
    pub(crate) fn masked(&self, text: &str) -> String {
        #[cfg(feature = "http")]
        return self
            .sent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .apply_to(text);
        #[cfg(not(feature = "http"))]
        text.to_owned()
    }

    /// Records a line that is no message and was skipped.
    pub(crate) fn heard_stray_line(&self, line: &[u8]) {
        self.stray_lines.fetch_add(1, Ordering::Relaxed);
        let line = line.trim_ascii();
        if !line.is_empty() {
            self.first_stray_line.get_or_init(|| {
                // A credential that begins in what is kept must be found whole.
                let start = &line[..line.len().min(2 * STRAY_LINE)];
                let mut line = self.masked(&String::from_utf8_lossy(start));
                line.truncate(beginning(&line, STRAY_LINE).len());
                line
            });
        }
    }

    /// Records a breach of the protocol that the connection survives, once.
    pub(super) fn found(&self, finding: ProtocolFinding) {
        let finding = finding.with_texts(|text| self.masked(text));
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        if findings.len() < FINDINGS && !findings.contains(&finding) {
            findings.push(finding);
        }
    }

    /// Returns the findings, oldest first.
    pub(crate) fn findings(&self) -> Vec<ProtocolFinding> {
        self.findings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the first such line that has any text.
    pub(crate) fn first_stray_line(&self) -> Option<String> {
        self.first_stray_line.get().cloned()
    }

    /// Returns the number of skipped lines.
    pub(crate) fn stray_lines(&self) -> usize {
        self.stray_lines.load(Ordering::Relaxed)
    }

    /// Records that the server named a session.
    #[cfg(feature = "http")]
    pub(crate) fn named_session(&self) {
        self.has_session_id.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the server named a session.
    #[cfg(feature = "http")]
    pub(crate) fn has_session_id(&self) -> bool {
        self.has_session_id.load(Ordering::Relaxed)
    }

    /// Records the message with which the server rejected a request for lack of an accepted authorization, if it had
    /// any.
    #[cfg(feature = "http")]
    pub(crate) fn was_refused(&self, words: Option<String>) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    /// Returns the message of the last such rejection.
    #[cfg(feature = "http")]
    pub(crate) fn refusal(&self) -> Option<String> {
        self.refusal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Records the error that broke the connection. The first stays, except that any other replaces `Closed`.
    pub(crate) fn broke(&self, error: TransportError) {
        let error = match error {
            TransportError::BrokenJson { why } => TransportError::BrokenJson {
                why: self.masked(&why),
            },
            other => other,
        };
        let mut known = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*known, None | Some(TransportError::Closed)) {
            *known = Some(error);
        }
        drop(known);
        self.ended.cancel();
    }

    /// Returns the error that broke the connection, if there is one.
    pub(crate) fn transport_error(&self) -> Option<TransportError> {
        self.error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns a token that is cancelled when the connection ends, for whatever reason.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}
