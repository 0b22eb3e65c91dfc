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
    /// `true` once the gateway has reported progress of its own.
    has_own: bool,
}

impl CallProgress {
    /// Creates progress with one token for both sides.
    pub(super) fn with_token(token: Option<Id>) -> Self {
        Self {
            upstream_token: token.clone(),
            token,
            last: 0.0,
            has_own: false,
        }
    }

    /// Creates progress with a token for the client, and one for the server, if it has one.
    pub(crate) fn with_tokens(token: Id, upstream_token: Option<Id>) -> Self {
        Self {
            token: Some(token),
            upstream_token,
            last: 0.0,
            has_own: false,
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

    /// Records the progress that the server has reported before.
    pub(crate) fn continue_above(&mut self, progress: f64) {
        if progress.is_finite() {
            self.last = self.last.max(progress);
        }
    }

    /// Records the progress that the server reports. Returns the value for the client if that has seen a higher one of
    /// the gateway: progress must increase (2025-11-25, progress).
    pub(crate) fn report(&mut self, progress: f64) -> Option<f64> {
        if progress > self.last || !self.has_own {
            self.last = progress;
            return None;
        }
        self.last = self.last.next_up();
        Some(self.last)
    }

    /// Adds a small step to the last progress, and returns it. `None` if there is no higher number.
    pub(crate) fn step(&mut self, step: f64) -> Option<f64> {
        let next = (self.last + step).max(self.last.next_up());
        if !next.is_finite() {
            return None;
        }
        self.has_own = true;
        self.last = next;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_rises_whoever_reports_it() {
        let mut progress = CallProgress::default();
        progress.continue_above(10.0);
        let own = progress.step(0.001).unwrap();
        assert!(own > 10.0);
        // The server is behind the gateway.
        let raised = progress.report(10.0).unwrap();
        assert!(raised > own);
        assert_eq!(progress.report(20.0), None);
        assert!(progress.step(0.001).unwrap() > 20.0);
    }

    #[test]
    fn progress_that_is_only_the_servers_is_not_changed() {
        let mut progress = CallProgress::default();
        assert_eq!(progress.report(5.0), None);
        assert_eq!(progress.report(3.0), None);
        assert!(progress.step(0.001).unwrap() > 3.0);
    }

    #[test]
    fn progress_rises_at_any_size_of_number() {
        let mut progress = CallProgress::default();
        assert_eq!(progress.report(1e18), None);
        assert!(progress.step(0.001).unwrap() > 1e18);
        assert_eq!(progress.report(f64::MAX), None);
        assert_eq!(progress.step(0.001), None);
    }
}
