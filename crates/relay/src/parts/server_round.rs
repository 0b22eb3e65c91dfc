//! One round of a rounds-era server that the gateway answers itself: its entries and their answers.

use mcp_elicit_core::wire::{Id, InputRequest, InputRequired, InputResponses};
use serde_json::value::RawValue;

use crate::AskId;

/// The entries of an `input_required` and their answers so far.
pub(crate) struct Round {
    /// The server's requirement, including its state.
    required: InputRequired,
    /// By the server's keys, in the server's order.
    entries: Vec<(String, Entry)>,
}

/// Returns the size of a request that is not a question, in bytes. Questions are counted separately.
pub(crate) fn size_of_other(request: &InputRequest) -> usize {
    match request {
        InputRequest::Elicit(_) => 0,
        InputRequest::Other { raw, .. } => raw.get().len(),
    }
}

/// The state of one entry.
pub(crate) enum Entry {
    /// A question for a person.
    Question(AskId),
    /// A request that only the client can answer (sampling, roots), sent or to be sent to it.
    Other {
        /// The id under which it was pushed; `None` if it is sent in a round.
        id: Option<Id>,
        method: String,
        /// The request object, JSON.
        raw: String,
    },
    /// The response object, JSON.
    Answered(String),
}

impl Entry {
    /// Returns `true` if it is a request that was pushed to the client under this id.
    fn is_pushed(&self, id: &Id) -> bool {
        matches!(self, Self::Other { id: Some(known), .. } if known == id)
    }
}

impl Round {
    /// Creates a round with these entries, by the server's keys.
    pub(crate) fn new(required: InputRequired, entries: Vec<(String, Entry)>) -> Self {
        Self { required, entries }
    }

    /// Returns the size of its state, keys and entries in bytes. The questions are counted separately.
    pub(crate) fn size(&self) -> usize {
        let size = |(key, entry): &(String, Entry)| {
            let kept = match entry {
                Entry::Question(_) => 0,
                Entry::Other { raw, .. } => raw.len(),
                Entry::Answered(response) => response.len(),
            };
            key.len() + kept
        };
        let requests = self.required.requests.iter().flatten();
        let others = requests.map(|(_, request)| size_of_other(request));
        let state = self.required.state.as_ref().map_or(0, String::len);
        state + self.entries.iter().map(size).sum::<usize>() + others.sum::<usize>()
    }

    /// Returns `true` if every entry has its answer.
    pub(crate) fn is_complete(&self) -> bool {
        self.entries
            .iter()
            .all(|(_, entry)| matches!(entry, Entry::Answered(_)))
    }

    /// Returns the unanswered questions.
    pub(crate) fn open(&self) -> Vec<AskId> {
        let question = |(_, entry): &(String, Entry)| match entry {
            Entry::Question(key) => Some(*key),
            Entry::Other { .. } | Entry::Answered(_) => None,
        };
        self.entries.iter().filter_map(question).collect()
    }

    /// Sets the answer of a question.
    pub(crate) fn answer(&mut self, key: AskId, response: String) {
        for (_, entry) in &mut self.entries {
            if matches!(entry, Entry::Question(known) if *known == key) {
                *entry = Entry::Answered(response);
                return;
            }
        }
    }

    /// Returns `true` if a request that is not a question was pushed to the client under this id and is unanswered.
    pub(crate) fn has_pushed(&self, id: &Id) -> bool {
        self.entries.iter().any(|(_, entry)| entry.is_pushed(id))
    }

    /// Sets the client's response to a request that was pushed to it under this id.
    pub(crate) fn answer_pushed(&mut self, id: &Id, response: &str) {
        for (_, entry) in &mut self.entries {
            if entry.is_pushed(id) {
                *entry = Entry::Answered(response.to_owned());
            }
        }
    }

    /// Sets the responses in a client's retry to requests that are not questions and that it was sent.
    pub(crate) fn answer_others(
        &mut self,
        responses: &InputResponses,
        was_sent: impl Fn(&str) -> bool,
    ) {
        for (name, entry) in &mut self.entries {
            if let (Entry::Other { .. }, Some(response)) = (&entry, responses.get(name))
                && was_sent(name)
            {
                *entry = Entry::Answered(response.get().to_owned());
            }
        }
    }

    /// Returns the requests that are not questions and go to the client in a round.
    pub(crate) fn others_for_client(&self) -> Vec<(String, InputRequest)> {
        let other = |(name, entry): &(String, Entry)| match entry {
            Entry::Other {
                id: None,
                method,
                raw,
            } => {
                let raw = serde_json::from_str(raw).ok()?;
                let method = method.clone();
                Some((name.clone(), InputRequest::Other { method, raw }))
            }
            Entry::Other { .. } | Entry::Question(_) | Entry::Answered(_) => None,
        };
        self.entries.iter().filter_map(other).collect()
    }

    /// Returns the server's requirement and the responses, for the call made again.
    pub(crate) fn into_retry(self) -> (InputRequired, InputResponses) {
        let mut responses = InputResponses::default();
        for (name, entry) in self.entries {
            if let Entry::Answered(response) = entry
                && let Ok(response) = serde_json::from_str::<Box<RawValue>>(&response)
            {
                responses.insert(name, response);
            }
        }
        (self.required, responses)
    }

    /// Returns `true` if a request that is not a question is unanswered, which only the client can answer.
    pub(crate) fn waits_for_others(&self) -> bool {
        self.entries
            .iter()
            .any(|(_, entry)| matches!(entry, Entry::Other { .. }))
    }
}
