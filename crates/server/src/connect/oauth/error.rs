//! Errors between here and a provider, and the words for the person.

use axum::response::Response;
use http::StatusCode;
use mcp_elicit_forms::theme::Tone;

use super::super::Inner;
use super::super::templates::{Notice, Onward};
use super::http::HttpError;

/// Why a flow failed. The text in brackets goes to the log only; it holds no code and no token.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum FlowError {
    /// The person, or the provider for its own reasons, said no.
    #[error("access was denied")]
    Denied,
    /// No flow of this browser: a forged answer, a lost cookie, a page loaded twice.
    #[error("no flow of this browser has this state")]
    NoTrip,
    /// RFC 9207: the answer is from another issuer than the one that was asked.
    #[error("the answer is from another issuer than was asked")]
    WrongIssuer,
    /// No answer, or one that says to come back later.
    #[error("the provider cannot be reached: {0}")]
    Unreachable(String),
    /// An answer that no provider should give.
    #[error("the provider's answer cannot be trusted: {0}")]
    Odd(String),
    /// The provider does not take this server for what it says it is.
    #[error("the provider refuses this server: {0}")]
    Setup(String),
    /// The error of the author's own store, in words for the person.
    #[error("it was not stored: {0}")]
    Unsaved(String),
}

impl From<HttpError> for FlowError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Failed(_) | HttpError::TooLarge => Self::Unreachable(error.to_string()),
            HttpError::Malformed(_) => Self::Odd(error.to_string()),
        }
    }
}

impl FlowError {
    /// The error codes of RFC 6749 (4.1.2.1, 5.2) and OpenID Connect Core 3.1.2.6. Only codes that are known are
    /// repeated: the others may be texts of an unknown author for a reader.
    pub(super) fn from_code(code: &str) -> Self {
        const SETUP: [&str; 11] = [
            "invalid_client",
            "invalid_grant",
            "invalid_request",
            "invalid_request_object",
            "invalid_request_uri",
            "invalid_scope",
            "invalid_target",
            "unauthorized_client",
            "unsupported_grant_type",
            "unsupported_response_type",
            "request_not_supported",
        ];
        match code {
            "access_denied"
            | "consent_required"
            | "interaction_required"
            | "login_required"
            | "account_selection_required" => Self::Denied,
            "server_error" | "temporarily_unavailable" => Self::Unreachable(code.to_owned()),
            code if SETUP.contains(&code) => Self::Setup(code.to_owned()),
            _ => Self::Odd("an error code that is not known".to_owned()),
        }
    }

    /// The page about it: what happened, and what to do next.
    pub(super) fn page(&self, inner: &Inner, purpose: &str, onward: Option<Onward>) -> Response {
        let server = &inner.server;
        let (status, tone, head, line) = match self {
            Self::Denied => (
                StatusCode::FORBIDDEN,
                Tone::Plain,
                format!("{purpose} did not let {server} in"),
                "You said no there, or you may not say yes. You can try again, or leave it.".to_owned(),
            ),
            Self::NoTrip => (
                StatusCode::BAD_REQUEST,
                Tone::Locked,
                "This sign-in did not start here".to_owned(),
                "Open the link from your assistant again and finish in the same browser, with cookies allowed. If somebody \
                 sent you this address, close the window."
                    .to_owned(),
            ),
            Self::WrongIssuer => (
                StatusCode::BAD_REQUEST,
                Tone::Locked,
                format!("This answer is not from {purpose}"),
                "Somebody may have tried to mix up two sign-ins, so it was thrown away.".to_owned(),
            ),
            Self::Unreachable(_) => (
                StatusCode::BAD_GATEWAY,
                Tone::Warn,
                format!("{purpose} cannot be reached"),
                format!("Try again in a moment. If that does not help, tell the operator of {server}."),
            ),
            Self::Odd(_) => (
                StatusCode::BAD_GATEWAY,
                Tone::Bad,
                format!("{purpose} gave an answer that cannot be trusted"),
                format!("It was discarded. Try again; if that does not help, tell the operator of {server}."),
            ),
            Self::Setup(_) => (
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
        Notice::new(
            inner.site(),
            tone,
            &head,
            &["Nothing has been stored.", &line],
        )
        .onward(onward)
        .page(status)
    }
}
