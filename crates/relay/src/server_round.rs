//! One round of a server of the rounds era that the gateway answers itself: its entries and what came in for them.

use mcp_elicit_core::fault::{LimitFault, PeerFault};
use mcp_elicit_core::wire::{Id, InputRequired, Revision, WireError};
use serde_json::value::RawValue;

use crate::Relay;
use crate::frame_edit::ErrorResponse;
use crate::{AskId, CallId, Timestamp};

/// The entries of an `input_required` and their answers so far.
pub(crate) struct Round {
    /// The request of the server, its state included.
    pub(crate) required: InputRequired,
    /// By the server's keys, in the server's order.
    pub(crate) entries: Vec<(String, Entry)>,
}

/// The state of one entry.
pub(crate) enum Entry {
    /// A question for a person.
    Question(AskId),
    /// A request that only the client can answer (sampling, roots), sent or to be sent to it.
    Other {
        /// The id it was pushed with; `None` when it goes out in a round.
        id: Option<Id>,
        method: String,
        /// The request object, JSON.
        raw: String,
    },
    /// The response object, JSON.
    Answered(String),
}

impl Relay {
    /// Returns what the server needs before the call can go on, read out of its answer; the round is counted. `None` when the
    /// call has ended over it.
    pub(crate) fn next_round<T>(
        &mut self,
        now: Timestamp,
        key: CallId,
        part: Option<&RawValue>,
        read: impl FnOnce(&RawValue) -> Result<T, WireError>,
    ) -> Option<T> {
        self.calls.end_upstream(key);
        let revision = self.server.revision().unwrap_or(Revision::LATEST_PUSHED);
        let required = match read(part?) {
            Ok(required) => required,
            Err(defect) => {
                self.fail(
                    now,
                    key,
                    &ErrorResponse::fault(PeerFault::from(defect), revision),
                );
                return None;
            }
        };
        let call = self.calls.get_mut(key)?;
        if call.rounds_mut().count_one() > self.settings.rounds {
            let limit = usize::try_from(self.settings.rounds).unwrap_or(usize::MAX);
            let fault = LimitFault::TooManyRounds { limit };
            self.fail(now, key, &ErrorResponse::fault(fault, revision));
            return None;
        }
        Some(required)
    }
}

impl Round {
    /// Returns whether every entry has its answer.
    pub(crate) fn is_complete(&self) -> bool {
        self.entries
            .iter()
            .all(|(_, entry)| matches!(entry, Entry::Answered(_)))
    }

    /// The questions that are not answered yet.
    pub(crate) fn open(&self) -> Vec<AskId> {
        let question = |(_, entry): &(String, Entry)| match entry {
            Entry::Question(key) => Some(*key),
            Entry::Other { .. } | Entry::Answered(_) => None,
        };
        self.entries.iter().filter_map(question).collect()
    }

    /// Puts in the answer of a question.
    pub(crate) fn answer(&mut self, key: AskId, response: String) {
        for (_, entry) in &mut self.entries {
            if matches!(entry, Entry::Question(known) if *known == key) {
                *entry = Entry::Answered(response);
                return;
            }
        }
    }

    /// Returns whether anything waits that is no question: the client's to answer.
    pub(crate) fn waits_for_others(&self) -> bool {
        self.entries
            .iter()
            .any(|(_, entry)| matches!(entry, Entry::Other { .. }))
    }
}
