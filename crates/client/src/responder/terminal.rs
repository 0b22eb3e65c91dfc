//! The responder that asks at this terminal, with the terminal frontend.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_elicit_core::wire::Capability;
use mcp_elicit_forms::terminal::{Frontend, QuestionHandle};
use mcp_elicit_forms::view::FrontendError;
use tokio::sync::oneshot;

use super::{RespondFuture, Responder, ResponderError, VisitFuture, error};
use crate::answer::Answer;
use crate::question::Question;

/// A responder that asks the person at this terminal. The frontend blocks on keys, so it has its own thread.
///
/// ```no_run
/// use mcp_elicit_client::ClientSettings;
/// use mcp_elicit_client::responder::Terminal;
///
/// let settings = ClientSettings::default().responder(Terminal::detect()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Terminal {
    frontend: Arc<Frontend>,
}

impl Terminal {
    /// Detects the terminal that this program runs in, as [`Frontend::detect`] does.
    ///
    /// ```no_run
    /// use mcp_elicit_client::responder::Terminal;
    ///
    /// let terminal = Terminal::detect()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn detect() -> Result<Self, FrontendError> {
        Ok(Self::new(Frontend::detect()?))
    }

    /// Creates a responder that asks with this frontend.
    ///
    /// ```no_run
    /// use mcp_elicit_client::forms::terminal::Frontend;
    /// use mcp_elicit_client::responder::Terminal;
    ///
    /// // One question after the other in plain lines, without a screen.
    /// let terminal = Terminal::new(Frontend::plain()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(frontend: Frontend) -> Self {
        Self {
            frontend: Arc::new(frontend),
        }
    }

    /// Runs `work` with the frontend on its own thread.
    async fn with_frontend<T: Send + 'static>(
        &self,
        handle: &QuestionHandle,
        work: impl FnOnce(&Frontend, &QuestionHandle) -> Result<T, FrontendError> + Send + 'static,
    ) -> Result<T, ResponderError> {
        let (tell, told) = oneshot::channel();
        let frontend = Arc::clone(&self.frontend);
        let handle = handle.clone();
        std::thread::Builder::new()
            .name("mcp-elicit-terminal".to_owned())
            .spawn(move || {
                let _nobody_waits = tell.send(work(&frontend, &handle));
            })
            .map_err(|error| ResponderError::failed(error.kind().to_string()))?;
        let done = told
            .await
            .map_err(|_| ResponderError::failed("the terminal's thread ended"))?;
        done.map_err(error::from_frontend)
    }
}

/// A guard that withdraws a question when its answer is no longer waited for.
struct TakenOff<'q> {
    handle: QuestionHandle,
    why: Box<dyn Fn() -> String + Send + Sync + 'q>,
}

impl<'q> TakenOff<'q> {
    fn saying(why: impl Fn() -> String + Send + Sync + 'q) -> Self {
        Self {
            handle: QuestionHandle::new(),
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
            let mut showing = std::pin::pin!(
                self.with_frontend(&taken_off.handle, move |frontend, handle| {
                    frontend.ask_fully(&shown, handle)
                })
            );
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
            // If this is dropped before the person is back, the server has announced the end of the visit.
            let taken_off = TakenOff::saying(|| "the visit is over".to_owned());
            let hosts = hosts.to_vec();
            let waited = self.with_frontend(&taken_off.handle, move |frontend, handle| {
                frontend.wait_for_visit(&hosts, handle)
            });
            match waited.await {
                // The person can no longer report it here, but the server still can.
                Err(ResponderError::EndOfInput) => std::future::pending().await,
                waited => waited,
            }
        })
    }
}
