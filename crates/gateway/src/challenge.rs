//! The challenge of an HTTP server: credentials, or more of them, before it takes a request.

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue, StatusCode};

/// A status that asks the client for credentials, with what the server says of them. A client over HTTP gets both as
/// they came; only it can obtain what is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Challenge {
    /// 401 or 403.
    pub status: StatusCode,
    /// Every `WWW-Authenticate`.
    pub authenticate: Vec<HeaderValue>,
}

impl Challenge {
    /// Returns whether a response of this status is one.
    pub(crate) fn is(status: StatusCode) -> bool {
        matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }

    /// Reads one from a response; `None` for any other status.
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        Self::is(status).then(|| Self {
            status,
            authenticate: headers.get_all(WWW_AUTHENTICATE).iter().cloned().collect(),
        })
    }
}
