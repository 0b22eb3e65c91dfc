//! A responder that accepts the form's defaults.

use std::borrow::Cow;

use mcp_elicit_core::wire::Capability;

use super::{RespondFuture, Responder, ResponderError};
use crate::answer::accept_with_defaults;
use crate::question::Question;

/// A responder that accepts the defaults if every required field has one; the error names the fields without one.
///
/// For servers that the person trusts completely. A URL is never accepted, because no person agreed to open it.
///
/// ```
/// use mcp_elicit_client::responder::Defaults;
/// use mcp_elicit_client::{ClientSettings, ElicitingClient};
///
/// let trusted = ElicitingClient::new((), "my own server", ClientSettings::default().responder(Defaults));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Defaults;

impl Responder for Defaults {
    fn name(&self) -> Cow<'static, str> {
        "defaults".into()
    }

    fn modes(&self) -> Capability {
        Capability::FORM
    }

    fn respond<'a>(&'a self, question: &'a Question) -> RespondFuture<'a> {
        Box::pin(async move {
            match accept_with_defaults(question) {
                Ok(Some(answer)) => Ok(answer),
                Ok(None) => Err(ResponderError::cannot_show(
                    "defaults cannot agree to open a URL",
                )),
                Err(violations) => Err(ResponderError::NoDefaults { violations }),
            }
        })
    }
}
