//! Several responders: the first that can show the question asks it.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_elicit_core::wire::Capability;

use super::{Responder, Responding, Unanswered};
use crate::question::Question;

/// Tries responders in their order. One that cannot show a question passes it on; what a person did, and what went
/// wrong while a person was asked, is final.
#[derive(Clone, Default)]
pub struct Chain {
    links: Vec<Arc<dyn Responder>>,
}

impl Chain {
    /// A chain without links, which can show nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a responder at the end.
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

    fn respond<'a>(&'a self, question: &'a Question) -> Responding<'a> {
        Box::pin(async move {
            let mut last = Unanswered::cannot_show("no responder shows this mode");
            for link in self
                .links
                .iter()
                .filter(|link| link.modes().has(question.mode()))
            {
                match link.respond(question).await {
                    Err(passed) if passed.passes_on() => last = passed,
                    outcome => return outcome,
                }
            }
            Err(last)
        })
    }
}
