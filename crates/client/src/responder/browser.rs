//! The person at their browser, through the web face.

use std::borrow::Cow;

use mcp_elicit_core::wire::Capability;
use mcp_elicit_forms::web;

use super::{Responder, Responding, Waiting, unanswered, visit_question};
use crate::answer::Answer;
use crate::question::Question;

/// Asks the person in their browser, on pages that this machine serves to itself.
#[derive(Debug, Clone)]
pub struct Browser {
    pages: web::Browser,
}

impl Browser {
    /// These pages.
    pub fn new(pages: web::Browser) -> Self {
        Self { pages }
    }

    /// Starts pages at a free port of this machine. `tell` gets the link to each question, which holds the login
    /// secret: it is for the person only.
    pub async fn start(tell: impl Fn(&str) + Send + Sync + 'static) -> std::io::Result<Self> {
        Ok(Self::new(web::Browser::start().await?.announcing(tell)))
    }
}

impl Responder for Browser {
    fn name(&self) -> Cow<'static, str> {
        "browser".into()
    }

    fn modes(&self) -> Capability {
        Capability::BOTH
    }

    /// Its pages list everything that waits.
    fn keeps_a_queue(&self) -> bool {
        true
    }

    fn respond<'a>(&'a self, question: &'a Question) -> Responding<'a> {
        Box::pin(async move {
            let asked = self
                .pages
                .ask(question.shown().clone(), question.withdrawn());
            // The pages let an answer to a suspicious form through only when the person has insisted.
            Ok(Answer::from(asked.await.map_err(unanswered::of_face)?).insisting())
        })
    }

    fn visited<'a>(&'a self, hosts: &'a [String]) -> Waiting<'a> {
        Box::pin(async move {
            match visit_question(hosts) {
                Some(question) => drop(self.pages.ask(question, std::future::pending()).await),
                None => std::future::pending().await,
            }
        })
    }
}
