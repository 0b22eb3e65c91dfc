//! The settings by which a server's questions are answered.

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::form;

use super::observer::Observer;
use super::queue::QuestionQueue;
use crate::consent::Consent;
use crate::responder::Responder;

/// The settings by which a server's questions are answered. Without a responder, no capability is declared.
///
/// ```
/// use std::time::Duration;
/// use mcp_elicit_client::core::form::Limits;
/// use mcp_elicit_client::responder::Script;
/// use mcp_elicit_client::{ClientSettings, Consent, QuestionQueue};
///
/// let settings = ClientSettings::default()
///     .responder(Script::decline())
///     .consent(Consent::from_toml("[default]\nper-minute = 10")?)
///     .queue(QuestionQueue::new())
///     .answer_within(Duration::from_secs(5 * 60))
///     .form_limits(Limits::default())
///     .rounds(8);
/// # let _ = settings;
/// # Ok::<(), mcp_elicit_client::consent::ConsentError>(())
/// ```
#[derive(Clone)]
pub struct ClientSettings {
    pub(crate) responder: Option<Arc<dyn Responder>>,
    pub(crate) consent: Consent,
    pub(crate) queue: QuestionQueue,
    pub(crate) answer_within: Option<Duration>,
    pub(crate) form_limits: form::Limits,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) rounds: usize,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            responder: None,
            consent: Consent::default(),
            queue: QuestionQueue::default(),
            answer_within: None,
            form_limits: form::Limits::default(),
            observers: Vec::new(),
            rounds: 16,
        }
    }
}

impl ClientSettings {
    /// Questions go to this responder.
    #[must_use]
    pub fn responder(mut self, responder: impl Responder) -> Self {
        self.responder = Some(Arc::new(responder));
        self
    }

    /// Sets what the person allows. The [`queue`](Self::queue) remembers a permanent decline, for all their servers.
    #[must_use]
    pub fn consent(mut self, consent: Consent) -> Self {
        self.consent = consent;
        self
    }

    /// Sets the queue of the person who is asked: one queue and one set of declined servers for each person, across servers.
    #[must_use]
    pub fn queue(mut self, queue: QuestionQueue) -> Self {
        self.queue = queue;
        self
    }

    /// Sets how long a question waits for its answer once it is shown. Running out is a timeout, never an action.
    /// Without it, a question waits until it is withdrawn.
    #[must_use]
    pub fn answer_within(mut self, time: Duration) -> Self {
        self.answer_within = Some(time);
        self
    }

    /// The largest form that is shown.
    #[must_use]
    pub fn form_limits(mut self, limits: form::Limits) -> Self {
        self.form_limits = limits;
        self
    }

    /// Adds an observer.
    ///
    /// ```
    /// use mcp_elicit_client::ClientSettings;
    /// use mcp_elicit_client::audit::AuditLog;
    ///
    /// let settings = ClientSettings::default().observer(AuditLog::new(std::io::stderr()));
    /// ```
    #[must_use]
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Sets how many times a server may come back within one call: with questions (2026-07-28), or with visits that
    /// it requires first (2025-11-25, `-32042`).
    #[must_use]
    pub fn rounds(mut self, most: usize) -> Self {
        self.rounds = most;
        self
    }
}

impl std::fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientSettings")
            .field("responder", &self.responder.as_ref().map(Responder::name))
            .field("consent", &self.consent)
            .field("answer_within", &self.answer_within)
            .field("rounds", &self.rounds)
            .finish_non_exhaustive()
    }
}
