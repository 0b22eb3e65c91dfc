//! The person at this terminal, through the terminal face.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_elicit_core::wire::Capability;
use mcp_elicit_forms::terminal::{Face, Handle};
use mcp_elicit_forms::view::NotAnswered;
use tokio::sync::oneshot;

use super::{RespondFuture, Responder, ResponderError, VisitFuture, error};
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

    /// Lets the face do `work` on a thread of its own.
    async fn at_face<T: Send + 'static>(
        &self,
        handle: &Handle,
        work: impl FnOnce(&Face, &Handle) -> Result<T, NotAnswered> + Send + 'static,
    ) -> Result<T, ResponderError> {
        let (tell, told) = oneshot::channel();
        let face = Arc::clone(&self.face);
        let handle = handle.clone();
        std::thread::Builder::new()
            .name("mcp-elicit-terminal".to_owned())
            .spawn(move || {
                let _nobody_waits = tell.send(work(&face, &handle));
            })
            .map_err(|error| ResponderError::failed(error.kind().to_string()))?;
        let done = told
            .await
            .map_err(|_| ResponderError::failed("the terminal's thread ended"))?;
        done.map_err(error::from_frontend)
    }
}

/// Takes a question off the screen when nobody waits for it any more.
struct TakenOff<'q> {
    handle: Handle,
    why: Box<dyn Fn() -> String + Send + Sync + 'q>,
}

impl<'q> TakenOff<'q> {
    fn saying(why: impl Fn() -> String + Send + Sync + 'q) -> Self {
        Self {
            handle: Handle::new(),
            why: Box::new(why),
        }
    }
}

impl Drop for TakenOff<'_> {
    fn drop(&mut self) {
        self.handle.withdraw((self.why)());
    }
}

impl Responder for Terminal {
    fn name(&self) -> Cow<'static, str> {
        "terminal".into()
    }

    fn modes(&self) -> Capability {
        Capability::BOTH
    }

    fn respond<'a>(&'a self, question: &'a Question) -> RespondFuture<'a> {
        Box::pin(async move {
            let taken_off = TakenOff::saying(|| {
                let why = question.withdrawal();
                why.unwrap_or("it is no longer needed").to_owned()
            });
            let shown = question.shown().clone();
            let mut showing =
                std::pin::pin!(self.at_face(&taken_off.handle, move |face, handle| {
                    face.ask_fully(&shown, handle)
                }));
            let mut waiting = question.waiting();
            loop {
                tokio::select! {
                    reply = &mut showing => return Ok(Answer::from(reply?)),
                    Ok(()) = waiting.changed() => taken_off.handle.set_pending(question.behind()),
                }
            }
        })
    }

    fn visited<'a>(&'a self, hosts: &'a [String]) -> VisitFuture<'a> {
        Box::pin(async move {
            // When this is dropped before the person is back, the server has said that the visit is done.
            let taken_off = TakenOff::saying(|| "the visit is over".to_owned());
            let hosts = hosts.to_vec();
            let waited = self.at_face(&taken_off.handle, move |face, handle| {
                face.wait_for_visit(&hosts, handle)
            });
            match waited.await {
                // Nobody can say it here any more, but the server still can.
                Err(ResponderError::EndOfInput) => std::future::pending().await,
                waited => waited,
            }
        })
    }
}
