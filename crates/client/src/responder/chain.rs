//! Several responders: the first that can show the question asks it.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_elicit_core::wire::Capability;

use super::{RespondFuture, Responder, ResponderError, VisitFuture};
use crate::question::Question;

/// A list of responders, tried in order. One that cannot show a question passes it on; a person's action, or an error
/// while a person was asked, is final.
///
/// ```
/// use mcp_elicit_client::responder::{Chain, Defaults, Script};
///
/// // Defaults where the form has them; otherwise a prepared decline.
/// let chain = Chain::new().then(Defaults).then(Script::decline());
/// ```
#[derive(Clone, Default)]
pub struct Chain {
    links: Vec<Arc<dyn Responder>>,
    /// The index of the responder that last agreed to a visit; it reports the end of that visit.
    agreed: Arc<AtomicUsize>,
}

impl Chain {
    /// Creates an empty chain, which can show nothing.
    ///
    /// ```
    /// use mcp_elicit_client::core::wire::Capability;
    /// use mcp_elicit_client::responder::{Chain, Responder};
    ///
    /// assert_eq!(Chain::new().modes(), Capability::NONE);
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a responder at the end.
    ///
    /// ```
    /// use mcp_elicit_client::core::wire::Capability;
    /// use mcp_elicit_client::responder::{Chain, Defaults, Responder};
    ///
    /// assert_eq!(Chain::new().then(Defaults).modes(), Capability::FORM);
    /// ```
    #[must_use]
    pub fn then(mut self, responder: impl Responder) -> Self {
        self.links.push(Arc::new(responder));
        self
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.links.iter().map(Responder::name))
            .finish()
    }
}

impl Responder for Chain {
    fn name(&self) -> Cow<'static, str> {
        "chain".into()
    }

    fn modes(&self) -> Capability {
        self.links
            .iter()
            .fold(Capability::NONE, |modes, link| modes.or(link.modes()))
    }

    fn respond<'a>(&'a self, question: &'a Question) -> RespondFuture<'a> {
        Box::pin(async move {
            let mut last = ResponderError::cannot_show("no responder shows this mode");
            for (place, link) in self.links.iter().enumerate() {
                if !link.modes().has(question.mode()) {
                    continue;
                }
                match link.respond(question).await {
                    Err(passed) if passed.passes_on() => last = passed,
                    Ok(answer) => {
                        if answer.agrees_to_visit() {
                            self.agreed.store(place, Ordering::Relaxed);
                        }
                        return Ok(answer);
                    }
                    Err(final_one) => return Err(final_one),
                }
            }
            Err(last)
        })
    }

    fn visited<'a>(&'a self, hosts: &'a [String]) -> VisitFuture<'a> {
        match self.links.get(self.agreed.load(Ordering::Relaxed)) {
            Some(link) => link.visited(hosts),
            None => Box::pin(std::future::pending()),
        }
    }
}
