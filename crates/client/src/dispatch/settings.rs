//! The settings for answering a server's questions.

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::form;

use super::observer::Observer;
use super::queue::QuestionQueue;
use crate::consent::Consent;
use crate::responder::Responder;

/// The settings for answering a server's questions. Without a responder, no capability is declared.
///
/// ```
/// use std::time::Duration;
/// use mcp_elicit_client::core::form::FormLimits;
/// use mcp_elicit_client::responder::Script;
/// use mcp_elicit_client::{ClientSettings, Consent, QuestionQueue};
///
/// let settings = ClientSettings::default()
///     .responder(Script::decline())
///     .consent(Consent::from_toml("[default]\nper-minute = 10")?)
///     .queue(QuestionQueue::new())
///     .answer_within(Duration::from_secs(5 * 60))
///     .form_limits(FormLimits::default())
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
    pub(crate) form_limits: form::FormLimits,
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
            form_limits: form::FormLimits::default(),
            observers: Vec::new(),
            rounds: 16,
        }
    }
}

impl ClientSettings {
    /// Sets the responder that questions go to.
    #[must_use]
    pub fn responder(mut self, responder: impl Responder) -> Self {
        self.responder = Some(Arc::new(responder));
        self
    }

    /// Sets the person's policy. The [`queue`](Self::queue) remembers permanent declines, for all of the person's
    /// servers.
    #[must_use]
    pub fn consent(mut self, consent: Consent) -> Self {
        self.consent = consent;
        self
    }

    /// Sets the queue of the person who is asked: one queue and one set of declined servers per person, across servers.
    #[must_use]
    pub fn queue(mut self, queue: QuestionQueue) -> Self {
        self.queue = queue;
        self
    }

    /// Sets the time that a question waits for its answer once it is shown. Expiry is a timeout, never an action. By
    /// default, a question waits until it is withdrawn.
    #[must_use]
    pub fn answer_within(mut self, time: Duration) -> Self {
        self.answer_within = Some(time);
        self
    }

    /// Sets the limits of forms that are shown.
    #[must_use]
    pub fn form_limits(mut self, limits: form::FormLimits) -> Self {
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

    /// Sets the number of times that a server may ask within one call: rounds of questions (2026-07-28), or visits that
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
