//! The challenge of an HTTP server (401 or 403 with `WWW-Authenticate`): it requires credentials, or other ones.

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue, StatusCode};

/// A status that asks the client for credentials, with its headers. A client over HTTP gets both unchanged; only the
/// client can obtain the credentials.
#[derive(Clone, Debug)]
pub(crate) struct ServerChallenge {
    /// 401 or 403.
    pub status: StatusCode,
    /// Every `WWW-Authenticate`.
    pub authenticate: Vec<HeaderValue>,
}

impl ServerChallenge {
    /// Returns `true` if a response of this status is one.
    pub(crate) fn is(status: StatusCode) -> bool {
        matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }

    /// Returns the challenge for a client whose credentials are forwarded to the server. Any other client has no
    /// credentials for the server: it must not request a token from the server's issuer, which would come to the
    /// gateway.
    pub(crate) fn for_client(self, are_credentials_passed: bool) -> Option<Self> {
        are_credentials_passed.then_some(self)
    }

    /// Reads a challenge from a response; `None` for any other status.
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        Self::is(status).then(|| Self {
            status,
            authenticate: headers.get_all(WWW_AUTHENTICATE).iter().cloned().collect(),
        })
    }
}
