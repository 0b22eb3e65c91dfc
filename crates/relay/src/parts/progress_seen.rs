//! The last progress that the server reported on tokens whose calls are not known, because their requests are forwarded
//! unread. If such a call is held for a person later, the gateway's own progress continues above it.

use std::collections::{HashMap, VecDeque};

use mcp_elicit_core::wire::Id;

/// The number of tokens that are remembered.
const REMEMBERED: usize = 1_024;
/// The longest token that is remembered, in bytes.
const MAX_TOKEN: usize = 1_024;

/// The last progress, by token.
#[derive(Default)]
pub(crate) struct ProgressSeen {
    last: HashMap<Id, f64>,
    oldest_first: VecDeque<Id>,
}

impl ProgressSeen {
    /// Records progress on a token, unless it is too long. The oldest token is forgotten if there are too many.
    pub(crate) fn note(&mut self, token: Id, progress: f64) {
        if token.as_json().len() > MAX_TOKEN {
            return;
        }
        if let Some(last) = self.last.get_mut(&token) {
            *last = last.max(progress);
            return;
        }
        self.oldest_first.push_back(token.clone());
        self.last.insert(token, progress);
        if self.oldest_first.len() > REMEMBERED
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.last.remove(&oldest);
        }
    }

    /// Returns the highest progress on a token.
    pub(crate) fn last(&self, token: &Id) -> Option<f64> {
        self.last.get(token).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_progress_counts_and_the_number_of_tokens_is_bounded() {
        let mut seen = ProgressSeen::default();
        seen.note(Id::text("a"), 10.0);
        seen.note(Id::text("a"), 7.0);
        assert_eq!(seen.last(&Id::text("a")), Some(10.0));
        for number in 0..1_024 {
            seen.note(Id::number(number), 1.0);
        }
        assert_eq!(seen.last(&Id::text("a")), None);
        assert_eq!(seen.last.len(), 1_024);
        let long = Id::text(&"t".repeat(1_024));
        seen.note(long.clone(), 1.0);
        assert_eq!(seen.last(&long), None);
        assert!(seen.last(&Id::number(0)).is_some());
    }
}
