//! The responder that asks in the browser, with the web frontend.

use std::borrow::Cow;

use mcp_elicit_core::wire::Capability;
use mcp_elicit_forms::web;

use super::{RespondFuture, Responder, VisitFuture, error};
use crate::answer::Answer;
use crate::question::Question;

/// A responder that asks the person in their browser, on pages served by this machine.
///
/// ```no_run
/// use mcp_elicit_client::ClientSettings;
/// use mcp_elicit_client::responder::Browser;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let browser = Browser::start(|link| eprintln!("Answer at {link}")).await?;
/// let settings = ClientSettings::default().responder(browser.clone());
/// // When the program ends:
/// browser.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Browser {
    pages: web::BrowserFrontend,
}

impl Browser {
    /// Creates a responder that asks on these pages.
    ///
    /// ```no_run
    /// use mcp_elicit_client::forms::web;
    /// use mcp_elicit_client::responder::Browser;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
    /// let pages = web::BrowserFrontend::start().await?;
    /// let browser = Browser::new(pages);
    /// # Ok(()) }
    /// ```
    pub fn new(pages: web::BrowserFrontend) -> Self {
        Self { pages }
    }

    /// Starts pages on a free local port. `tell` receives the link to each question, which contains the login secret
    /// and is for the person only.
    ///
    /// ```no_run
    /// use mcp_elicit_client::responder::Browser;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
    /// let browser = Browser::start(|link| eprintln!("Answer at {link}")).await?;
    /// # Ok(()) }
    /// ```
    pub async fn start(tell: impl Fn(&str) + Send + Sync + 'static) -> std::io::Result<Self> {
        Ok(Self::new(
            web::BrowserFrontend::start().await?.announcing(tell),
        ))
    }

    /// Waits until open pages have shown how their questions ended, for a program that is about to exit.
    ///
    /// ```
    /// # use mcp_elicit_client::responder::Browser;
    /// async fn end(browser: Browser) {
    ///     browser.shutdown().await;
    /// }
    /// ```
    pub async fn shutdown(&self) {
        self.pages.shutdown().await;
    }
}

impl Responder for Browser {
    fn name(&self) -> Cow<'static, str> {
        "browser".into()
    }

    fn modes(&self) -> Capability {
        Capability::BOTH
    }

    /// Returns the pages list every waiting question.
    fn has_own_queue(&self) -> bool {
        true
    }

    fn respond<'a>(&'a self, question: &'a Question) -> RespondFuture<'a> {
        Box::pin(async move {
            let asked = self
                .pages
                .ask_for_reply(question.shown().clone(), question.withdrawn());
            Ok(Answer::from(asked.await.map_err(error::from_frontend)?))
        })
    }

    /// Returns the "Yes, open it" of the link's page counts as the end of the visit.
    fn visited<'a>(&'a self, _hosts: &'a [String]) -> VisitFuture<'a> {
        Box::pin(std::future::ready(Ok(())))
    }
}
