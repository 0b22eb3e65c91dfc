//! The person at this terminal, through the terminal face.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_elicit_core::wire::Capability;
use mcp_elicit_forms::terminal::{Face, Handle};
use mcp_elicit_forms::view::NotAnswered;
use tokio::sync::oneshot;

use super::{Responder, Responding, Unanswered};
use crate::answer::Answer;
use crate::question::Question;

/// Asks the person at this terminal. The face blocks on keys, so it has a thread of its own.
#[derive(Debug, Clone)]
pub struct Terminal {
    face: Arc<Face>,
}

impl Terminal {
    /// The terminal that this program runs in, found as [`Face::detect`] does.
    pub fn detect() -> Result<Self, NotAnswered> {
        Ok(Self::new(Face::detect()?))
    }

    /// This face.
    pub fn new(face: Face) -> Self {
        Self {
            face: Arc::new(face),
        }
    }

    async fn ask(&self, question: &Question) -> Result<Answer, Unanswered> {
        let handle = Handle::new();
        let _taken_off = TakenOff {
            handle: handle.clone(),
            question,
        };
        let (tell, told) = oneshot::channel();
        let face = Arc::clone(&self.face);
        let shown = question.shown().clone();
        std::thread::Builder::new()
            .name("mcp-elicit-terminal".to_owned())
            .spawn(move || {
                let _nobody_waits = tell.send(face.ask_with(&shown, &handle));
            })
            .map_err(|error| Unanswered::failed(error.kind().to_string()))?;
        let outcome = told
            .await
            .map_err(|_| Unanswered::failed("the terminal's thread ended"))?;
        // The face lets an answer to a suspicious form through only when the person has insisted.
        Ok(Answer::from(outcome.map_err(unanswered)?).insisting())
    }
}

/// Takes the question off the screen when nobody waits for it any more.
struct TakenOff<'q> {
    handle: Handle,
    question: &'q Question,
}

impl Drop for TakenOff<'_> {
    fn drop(&mut self) {
        self.handle.withdraw(
            self.question
                .withdrawal()
                .unwrap_or("it is no longer needed"),
        );
    }
}

fn unanswered(why: NotAnswered) -> Unanswered {
    match why {
        NotAnswered::Interrupted => Unanswered::Interrupted,
        NotAnswered::EndOfInput { .. } => Unanswered::EndOfInput,
        NotAnswered::Withdrawn { why } => Unanswered::Withdrawn { why },
        NotAnswered::NoTerminal => Unanswered::cannot_show("there is no terminal"),
        other => Unanswered::failed(other.to_string()),
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
        Box::pin(self.ask(question))
    }
}
