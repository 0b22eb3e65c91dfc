//! The tokens under which a call's progress is reported.

use mcp_elicit_core::wire::Id;

/// The tokens of a call, and the progress reported last.
#[derive(Default)]
pub(crate) struct CallProgress {
    /// The token that the client wants progress on.
    token: Option<Id>,
    /// The token that the server reports progress on.
    upstream_token: Option<Id>,
    /// The last progress told to the client.
    last: f64,
}

impl CallProgress {
    /// Creates progress with one token for both sides.
    pub(super) fn with_token(token: Option<Id>) -> Self {
        Self {
            upstream_token: token.clone(),
            token,
            last: 0.0,
        }
    }

    /// Creates progress with a token for the client, and one for the server, if it has one.
    pub(crate) fn with_tokens(token: Id, upstream_token: Option<Id>) -> Self {
        Self {
            token: Some(token),
            upstream_token,
            last: 0.0,
        }
    }

    /// Returns `true` while no token of either side is known.
    pub(super) fn is_unknown(&self) -> bool {
        self.token.is_none() && self.upstream_token.is_none()
    }

    /// Returns the size of the tokens, in bytes; the server's is the key of a table as well.
    pub(super) fn size(&self) -> usize {
        let size = |token: &Option<Id>| token.as_ref().map_or(0, |token| token.as_json().len());
        size(&self.token) + 2 * size(&self.upstream_token)
    }

    /// Returns the token that the client wants progress on.
    pub(crate) fn token(&self) -> Option<&Id> {
        self.token.as_ref()
    }

    /// Returns the token that the server reports progress on.
    pub(crate) fn upstream_token(&self) -> Option<&Id> {
        self.upstream_token.as_ref()
    }

    /// Sets the token under which progress is reported to the client.
    pub(super) fn report_under(&mut self, token: Option<Id>) {
        self.token = token;
    }

    /// Records the progress that the server reports.
    pub(crate) fn note(&mut self, progress: Option<f64>) {
        self.last = progress.unwrap_or(self.last);
    }

    /// Adds a small step to the last progress, and returns it.
    pub(crate) fn step(&mut self, step: f64) -> f64 {
        self.last += step;
        self.last
    }
}
