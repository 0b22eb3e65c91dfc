//! Requests of the client that are being looked up in the record.

use crate::parts::call_budget::Permit;
use crate::{CallId, StreamId};

/// The requests of one kind that are being looked up.
pub(crate) struct Lookups<T>(Vec<Lookup<T>>);

struct Lookup<T> {
    number: CallId,
    stream: StreamId,
    request: T,
    /// `false` once its client has closed the stream.
    is_waited_for: bool,
    permit: Permit,
}

/// A request that was looked up.
pub(crate) struct EndedLookup<T> {
    /// The stream that it came on.
    pub(crate) stream: StreamId,
    pub(crate) request: T,
    /// Its permit; `None` if its client has closed the stream, and so no longer waits.
    pub(crate) permit: Option<Permit>,
}

impl<T> Default for Lookups<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Lookups<T> {
    /// Begins the lookup of a request, which came on this stream, under this number. It holds the permit.
    pub(crate) fn begin(&mut self, number: CallId, stream: StreamId, request: T, permit: Permit) {
        self.0.push(Lookup {
            number,
            stream,
            request,
            is_waited_for: true,
            permit,
        });
    }

    /// Ends the lookup of this number; `None` if it has ended before.
    pub(crate) fn end(&mut self, number: CallId) -> Option<EndedLookup<T>> {
        let at = self.0.iter().position(|known| known.number == number)?;
        let ended = self.0.swap_remove(at);
        Some(EndedLookup {
            stream: ended.stream,
            request: ended.request,
            permit: ended.is_waited_for.then_some(ended.permit),
        })
    }

    /// Records that a stream was closed; its lookups hold their requests until the record has answered.
    pub(crate) fn stream_closed(&mut self, stream: StreamId) {
        for lookup in &mut self.0 {
            lookup.is_waited_for &= lookup.stream != stream;
        }
    }
}
