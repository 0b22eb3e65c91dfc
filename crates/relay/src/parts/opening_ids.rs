//! The ids of openings: `initialize` and `server/discover` as they were sent to the server.

use std::collections::VecDeque;

use mcp_elicit_core::wire::Id;

/// The number of openings whose ids are kept.
const FIRST_REQUESTS: usize = 16;

/// The ids of openings that the server has not answered, the client's and the gateway's own. It may answer long after another era
/// was detected.
#[derive(Default)]
pub(crate) struct OpeningIds {
    ids: VecDeque<Id>,
}

impl OpeningIds {
    /// Records that an opening goes to the server under this id.
    pub(crate) fn note(&mut self, id: Id) {
        self.ids.push_back(id);
        if self.ids.len() > FIRST_REQUESTS {
            self.ids.pop_front();
        }
    }

    /// Forgets the opening that was sent under this id, which is answered. Returns `true` if there is one.
    pub(crate) fn answered(&mut self, id: &Id) -> bool {
        let at = self.ids.iter().position(|known| known == id);
        at.is_some_and(|at| self.ids.remove(at).is_some())
    }

    /// Returns `true` if an unanswered opening has this id.
    pub(crate) fn has(&self, id: &Id) -> bool {
        self.ids.contains(id)
    }
}
