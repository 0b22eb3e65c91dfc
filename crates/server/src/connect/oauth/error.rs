//! Errors of flows to a provider, and their texts for the person.

use axum::response::Response;
use http::StatusCode;
use mcp_elicit_forms::theme::Tone;
use mcp_elicit_oidc::OidcError;

use super::super::ConnectParts;
use super::super::templates::{NoticeTemplate, Onward};

/// The reason why a flow failed. Its detail goes to the log only, and contains no code and no token.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum FlowError {
    /// The provider returned nothing usable.
    #[error(transparent)]
    Provider(#[from] OidcError),
    /// No flow of this browser: a forged response, a lost cookie, a page loaded twice.
    #[error("no flow of this browser has this state")]
    NoFlow,
    /// The error of the author's own store, written for the person.
    #[error("it was not stored: {0}")]
    Unsaved(String),
}

impl FlowError {
    /// Returns the page about the error, with the next step.
    pub(super) fn page(
        &self,
        inner: &ConnectParts,
        purpose: &str,
        onward: Option<Onward>,
    ) -> Response {
        let server = &inner.server;
        let (status, tone, head, line) = match self {
            Self::Provider(OidcError::Denied) => (
                StatusCode::FORBIDDEN,
                Tone::Plain,
                format!("{purpose} did not let {server} in"),
                "You said no there, or you may not say yes. You can try again, or leave it.".to_owned(),
            ),
            Self::NoFlow => (
                StatusCode::BAD_REQUEST,
                Tone::Locked,
                "This sign-in did not start here".to_owned(),
                "Open the link from your assistant again and finish in the same browser, with cookies allowed. If somebody \
                 sent you this address, close the window."
                    .to_owned(),
            ),
            Self::Provider(OidcError::WrongIssuer) => (
                StatusCode::BAD_REQUEST,
                Tone::Locked,
                format!("This answer is not from {purpose}"),
                "Somebody may have tried to mix up two sign-ins, so it was thrown away.".to_owned(),
            ),
            Self::Provider(OidcError::Unreachable(_)) => (
                StatusCode::BAD_GATEWAY,
                Tone::Warn,
                format!("{purpose} cannot be reached"),
                format!("Try again in a moment. If that does not help, tell the operator of {server}."),
            ),
            Self::Provider(OidcError::Odd(_) | OidcError::OtherPerson) => (
                StatusCode::BAD_GATEWAY,
                Tone::Bad,
                format!("{purpose} gave an answer that cannot be trusted"),
                format!("It was discarded. Try again; if that does not help, tell the operator of {server}."),
            ),
            Self::Provider(OidcError::Setup(_)) => (
                StatusCode::BAD_GATEWAY,
                Tone::Bad,
                format!("{purpose} does not accept {server}"),
                format!("Trying again will not help. Tell the operator of {server}: the reason is in its log."),
            ),
            Self::Unsaved(why) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                Tone::Bad,
                "It could not be kept".to_owned(),
                why.clone(),
            ),
        };
        NoticeTemplate::new(
            inner.site(),
            tone,
            &head,
            &["Nothing has been stored.", &line],
        )
        .onward(onward)
        .page(status)
    }
}
