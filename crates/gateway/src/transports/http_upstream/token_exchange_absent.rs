//! The replacement in builds without the feature `teams`, which exchange no tokens.

use std::future::Ready;

use http::HeaderValue;

/// The exchange of callers' tokens for those of one server, of which there is none.
#[derive(Debug)]
pub(crate) enum TokenExchange {}

impl TokenExchange {
    /// Returns the `Authorization` for the server in place of a caller's.
    pub(super) fn authorization(
        &self,
        _callers: &HeaderValue,
    ) -> Ready<Result<Option<HeaderValue>, String>> {
        match *self {}
    }

    /// Drops the token that was exchanged for a caller's.
    pub(super) fn drop_for(&self, _callers: &HeaderValue) {
        match *self {}
    }
}
