//! Responders: they show a question to a person and return the outcome.
//!
//! - [`Script`]: prepared answers, in order or by name
//! - [`Defaults`]: the form's defaults
//! - [`Callback`]: a closure
//! - [`Command`]: a program in any language
//! - [`Chain`] and [`Fallback`]: several, one after the other
//! - [`Webhook`]: a web service, asked by signed requests
//! - [`Terminal`]: the person at this terminal
//! - [`Browser`]: the person at their browser

#[cfg(feature = "browser")]
mod browser;
mod callback;
mod chain;
#[cfg(feature = "process")]
mod command;
mod defaults;
mod error;
mod fallback;
mod names;
#[cfg(any(feature = "process", feature = "webhook"))]
mod program;
mod script;
#[cfg(feature = "terminal")]
mod terminal;
#[cfg(feature = "webhook")]
mod webhook;

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use mcp_elicit_core::wire::Capability;

#[cfg(feature = "browser")]
pub use browser::Browser;
pub use callback::Callback;
pub use chain::Chain;
#[cfg(feature = "process")]
pub use command::Command;
pub use defaults::Defaults;
pub use error::{ResponderError, ResponderErrorKind};
pub use fallback::Fallback;
pub use script::{Script, ScriptError};
#[cfg(feature = "terminal")]
pub use terminal::Terminal;
#[cfg(feature = "webhook")]
pub use webhook::{Webhook, WebhookError};

use crate::answer::Answer;
use crate::question::Question;

/// The future of a responder that waits for the answer.
pub type RespondFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Answer, ResponderError>> + Send + 'a>>;

/// The future of a responder while the person is on a visit.
pub type VisitFuture<'a> = Pin<Box<dyn Future<Output = Result<(), ResponderError>> + Send + 'a>>;

/// A component that shows a question to a person and returns the person's action.
///
/// An [`Answer`] is a person's action. Everything else (no screen, no time, no more prepared answers, a crash) is a
/// [`ResponderError`] and reaches the server as an error or not at all, never as a decline.
///
/// ```
/// use std::borrow::Cow;
/// use mcp_elicit_client::answer::decline;
/// use mcp_elicit_client::core::wire::Capability;
/// use mcp_elicit_client::responder::{RespondFuture, Responder, VisitFuture};
/// use mcp_elicit_client::{ClientSettings, Question};
///
/// /// Declines outside of working hours.
/// struct WorkingHours<R> {
///     inside: R,
///     is_open: fn() -> bool,
/// }
///
/// impl<R: Responder> Responder for WorkingHours<R> {
///     fn name(&self) -> Cow<'static, str> {
///         "working-hours".into()
///     }
///
///     fn modes(&self) -> Capability {
///         self.inside.modes()
///     }
///
///     fn has_own_queue(&self) -> bool {
///         self.inside.has_own_queue()
///     }
///
///     fn respond<'a>(&'a self, question: &'a Question) -> RespondFuture<'a> {
///         if (self.is_open)() {
///             return self.inside.respond(question);
///         }
///         Box::pin(async { Ok(decline("outside of working hours")) })
///     }
///
///     fn visited<'a>(&'a self, hosts: &'a [String]) -> VisitFuture<'a> {
///         self.inside.visited(hosts)
///     }
/// }
/// # let _ = ClientSettings::default().responder(WorkingHours { inside: mcp_elicit_client::responder::Defaults, is_open: || true });
/// ```
pub trait Responder: Send + Sync + 'static {
    /// Returns the name used in records, such as `terminal` or `script`.
    fn name(&self) -> Cow<'static, str>;

    /// Returns the modes that it can show. Exactly these are declared to servers.
    fn modes(&self) -> Capability;

    /// Returns `true` if it lists all waiting questions itself. Otherwise the person is shown one question at a time.
    fn has_own_queue(&self) -> bool {
        false
    }

    /// Asks the question. The future is dropped when the question is withdrawn or its time is over, and must then clear
    /// the screen. [`Question::withdrawn`] gives the reason.
    fn respond<'a>(&'a self, question: &'a Question) -> RespondFuture<'a>;

    /// Completes when the person says that the agreed visits to these hosts are done; an error ends the call that waits
    /// for them. Responders that cannot ask keep the default, which never completes: the server's notice or a time
    /// limit then ends the wait.
    fn visited<'a>(&'a self, hosts: &'a [String]) -> VisitFuture<'a> {
        let _ = hosts;
        Box::pin(std::future::pending())
    }
}

impl<R: Responder + ?Sized> Responder for Arc<R> {
    fn name(&self) -> Cow<'static, str> {
        (**self).name()
    }

    fn modes(&self) -> Capability {
        (**self).modes()
    }

    fn has_own_queue(&self) -> bool {
        (**self).has_own_queue()
    }

    fn respond<'a>(&'a self, question: &'a Question) -> RespondFuture<'a> {
        (**self).respond(question)
    }

    fn visited<'a>(&'a self, hosts: &'a [String]) -> VisitFuture<'a> {
        (**self).visited(hosts)
    }
}
