//! The person at this terminal, through the terminal face.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::wire::Capability;
use mcp_elicit_forms::terminal::{Face, Handle};
use mcp_elicit_forms::view;
use tokio::sync::oneshot;

use super::{Responder, Responding, Unanswered, Waiting, unanswered, visit_question};
use crate::answer::Answer;
use crate::question::Question;

/// Asks the person at this terminal. The face blocks on keys, so it has a thread of its own.
#[derive(Debug, Clone)]
pub struct Terminal {
    face: Arc<Face>,
}

impl Terminal {
    /// The terminal that this program runs in, found as [`Face::detect`] does.
    pub fn detect() -> Result<Self, view::NotAnswered> {
        Ok(Self::new(Face::detect()?))
    }

    /// This face.
    pub fn new(face: Face) -> Self {
        Self {
            face: Arc::new(face),
        }
    }

    async fn show(&self, shown: view::Question, handle: &Handle) -> Result<Outcome, Unanswered> {
        let (tell, told) = oneshot::channel();
        let face = Arc::clone(&self.face);
        let handle = handle.clone();
        std::thread::Builder::new()
            .name("mcp-elicit-terminal".to_owned())
            .spawn(move || {
                let _nobody_waits = tell.send(face.ask_with(&shown, &handle));
            })
            .map_err(|error| Unanswered::failed(error.kind().to_string()))?;
        let outcome = told
            .await
            .map_err(|_| Unanswered::failed("the terminal's thread ended"))?;
        outcome.map_err(unanswered::of_face)
    }
}

/// Takes a question off the screen when nobody waits for it any more.
struct TakenOff<'q> {
    handle: Handle,
    question: Option<&'q Question>,
}

impl Drop for TakenOff<'_> {
    fn drop(&mut self) {
        let why = self.question.and_then(Question::withdrawal);
        self.handle
            .withdraw(why.unwrap_or("it is no longer needed"));
    }
}

impl Responder for Terminal {
    fn name(&self) -> Cow<'static, str> {
        "terminal".into()
    }

    fn modes(&self) -> Capability {
        Capability::BOTH
    }

    fn respond<'a>(&'a self, question: &'a Question) -> Responding<'a> {
        Box::pin(async move {
            let taken_off = TakenOff {
                handle: Handle::new(),
                question: Some(question),
            };
            let mut waiting = question.waiting();
            let mut showing =
                std::pin::pin!(self.show(question.shown().clone(), &taken_off.handle));
            let outcome = loop {
                tokio::select! {
                    outcome = &mut showing => break outcome?,
                    Ok(()) = waiting.changed() => {
                        taken_off.handle.set_pending(waiting.borrow().saturating_sub(1));
                    }
                }
            };
            // The face lets an answer to a suspicious form through only when the person has insisted.
            Ok(Answer::from(outcome).insisting())
        })
    }

    fn visited<'a>(&'a self, hosts: &'a [String]) -> Waiting<'a> {
        Box::pin(async move {
            let taken_off = TakenOff {
                handle: Handle::new(),
                question: None,
            };
            match visit_question(hosts) {
                Some(question) => drop(self.show(question, &taken_off.handle).await),
                None => std::future::pending().await,
            }
        })
    }
}
