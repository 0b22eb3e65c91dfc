//! A second responder for questions that the first one does not answer.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_elicit_core::wire::Capability;

use super::{RespondFuture, Responder, ResponderError, VisitFuture};
use crate::answer::Answer;
use crate::question::Question;

/// Asks the first responder, and the second if the first obtains no answer, or none within its time limit if it has
/// one. The first one's question is off its screen before the second asks.
///
/// ```
/// use std::time::Duration;
/// use mcp_elicit_client::ClientSettings;
/// use mcp_elicit_client::responder::{Command, Fallback, Script};
///
/// let dialog = Command::new("my-dialog", ["--on-top"]);
/// let fallback = Fallback::new(dialog, Script::decline()).within(Duration::from_secs(60));
/// let settings = ClientSettings::default().responder(fallback);
/// ```
#[derive(Clone)]
pub struct Fallback {
    first: Arc<dyn Responder>,
    within: Option<Duration>,
    second: Arc<dyn Responder>,
    /// `true` if the second responder agreed to the last visit; it then reports the end of that visit.
    second_agreed: Arc<AtomicBool>,
}

impl Fallback {
    /// Creates a responder that asks `first`, and `second` if the first obtains no answer.
    ///
    /// ```
    /// use mcp_elicit_client::responder::{Defaults, Fallback, Script};
    ///
    /// let fallback = Fallback::new(Defaults, Script::decline());
    /// ```
    pub fn new(first: impl Responder, second: impl Responder) -> Self {
        Self {
            first: Arc::new(first),
            within: None,
            second: Arc::new(second),
            second_agreed: Arc::default(),
        }
    }

    /// Sets the time limit for the first responder.
    ///
    /// ```
    /// use std::time::Duration;
    /// use mcp_elicit_client::responder::{Defaults, Fallback, Script};
    ///
    /// let fallback = Fallback::new(Defaults, Script::decline()).within(Duration::from_secs(30));
    /// ```
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }

    fn remember_who_agreed(&self, answer: Answer, second: bool) -> Answer {
        if answer.agrees_to_visit() {
            self.second_agreed.store(second, Ordering::Relaxed);
        }
        answer
    }

    async fn ask_first(&self, question: &Question) -> Result<Answer, ResponderError> {
        if !self.first.modes().has(question.mode()) {
            return Err(ResponderError::cannot_show(
                "the first responder does not show this mode",
            ));
        }
        let Some(within) = self.within else {
            return self.first.respond(question).await;
        };
        match tokio::time::timeout(within, self.first.respond(question)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ResponderError::TimedOut { within }),
        }
    }
}

impl std::fmt::Debug for Fallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fallback")
            .field("first", &self.first.name())
            .field("within", &self.within)
            .field("second", &self.second.name())
            .finish_non_exhaustive()
    }
}

impl Responder for Fallback {
    fn name(&self) -> Cow<'static, str> {
        "fallback".into()
    }

    fn modes(&self) -> Capability {
        self.first.modes().or(self.second.modes())
    }

    fn respond<'a>(&'a self, question: &'a Question) -> RespondFuture<'a> {
        Box::pin(async move {
            match self.ask_first(question).await {
                Ok(answer) => Ok(self.remember_who_agreed(answer, false)),
                // The person stopped the program, or the question has ended: the second responder is not asked.
                Err(error @ (ResponderError::Interrupted | ResponderError::Withdrawn { .. })) => {
                    Err(error)
                }
                Err(error) if !self.second.modes().has(question.mode()) => Err(error),
                Err(_) => {
                    let answer = self.second.respond(question).await?;
                    Ok(self.remember_who_agreed(answer, true))
                }
            }
        })
    }

    fn visited<'a>(&'a self, hosts: &'a [String]) -> VisitFuture<'a> {
        if self.second_agreed.load(Ordering::Relaxed) {
            self.second.visited(hosts)
        } else {
            self.first.visited(hosts)
        }
    }
}
