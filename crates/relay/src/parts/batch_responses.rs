//! The responses to lists of messages, each kept until all of its list are there: they go to the client as one list
//! (JSON-RPC 2.0, section 6).

use mcp_elicit_core::wire::Id;
use mcp_elicit_core::wire::frame::{Frame, Shape};

/// The largest size of the responses that are kept for one list, in bytes. Those that are there go out as one list when it
/// is exceeded, and the rest as another.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The lists whose responses are not complete.
#[derive(Default)]
pub(crate) struct BatchResponses(Vec<OpenBatch>);

struct OpenBatch {
    /// The ids of the requests without a response, one for each.
    awaited: Vec<Id>,
    /// The responses.
    responses: Vec<String>,
}

/// The result of a frame for the client.
pub(crate) enum InBatch {
    /// It belongs to no list.
    No,
    /// It is kept.
    Kept,
    /// It is the last response of this list of responses.
    Complete(String),
}

impl BatchResponses {
    /// Returns `true` if no response is awaited.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a list with its requests and the responses that are there already. Returns the list of responses if no other
    /// is awaited and there is one.
    pub(crate) fn opened(&mut self, awaited: Vec<Id>, responses: Vec<String>) -> Option<String> {
        let batch = OpenBatch { awaited, responses };
        if batch.awaited.is_empty() {
            return batch.into_list();
        }
        self.0.push(batch);
        None
    }

    /// Handles a frame for the client.
    pub(crate) fn frame(&mut self, frame: Frame<'_>) -> InBatch {
        let id = frame
            .id()
            .filter(|_| frame.shape() == Some(Shape::Response));
        let Some(id) = id else {
            return InBatch::No;
        };
        let Some(at) = self.end_wait(&id) else {
            return InBatch::No;
        };
        self.0[at].responses.push(frame.text().to_owned());
        if self.0[at].awaited.is_empty() {
            let list = self.0.remove(at).into_list();
            return list.map_or(InBatch::Kept, InBatch::Complete);
        }
        let kept = &mut self.0[at].responses;
        if kept.iter().map(String::len).sum::<usize>() > MAX_BYTES {
            let responses = std::mem::take(kept);
            let awaited = Vec::new();
            let list = OpenBatch { awaited, responses }.into_list();
            return list.map_or(InBatch::Kept, InBatch::Complete);
        }
        InBatch::Kept
    }

    /// Handles a request that the client has cancelled, which gets no response. Returns the list that it completes.
    pub(crate) fn cancelled(&mut self, id: &Id) -> Option<String> {
        let at = self.end_wait(id)?;
        if !self.0[at].awaited.is_empty() {
            return None;
        }
        self.0.remove(at).into_list()
    }

    /// Ends the wait for one request of this id, and returns the place of its list.
    fn end_wait(&mut self, id: &Id) -> Option<usize> {
        let place = |batch: &OpenBatch| batch.awaited.iter().position(|awaited| awaited == id);
        let (at, which) =
            (self.0.iter().enumerate()).find_map(|(at, batch)| Some((at, place(batch)?)))?;
        self.0[at].awaited.swap_remove(which);
        Some(at)
    }
}

impl OpenBatch {
    /// Returns the responses as one list; `None` if there is none, since an empty list is no answer.
    fn into_list(self) -> Option<String> {
        let list = || format!("[{}]", self.responses.join(","));
        (!self.responses.is_empty()).then(list)
    }
}
