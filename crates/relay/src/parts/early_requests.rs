//! Requests of the client that wait for the server's era to be known.

use std::collections::VecDeque;

use mcp_elicit_core::wire::Frame;

use crate::StreamId;
use crate::frame_edit::ErrorResponse;
use crate::parts::call_budget::Permit;
use crate::parts::effect_queue::EffectQueue;
use crate::parts::indexed_frame::IndexedFrame;

/// The number of requests that may wait.
const WAITING: usize = 256;

/// The requests, oldest first, each with its stream.
#[derive(Default)]
pub(crate) struct EarlyRequests {
    frames: VecDeque<(StreamId, IndexedFrame, Permit)>,
}

impl EarlyRequests {
    /// Adds a request.
    ///
    /// # Errors
    /// If too many wait: the request.
    pub(crate) fn add(
        &mut self,
        mut permit: Permit,
        stream: StreamId,
        frame: IndexedFrame,
    ) -> Result<(), IndexedFrame> {
        if self.frames.len() >= WAITING {
            return Err(frame);
        }
        permit.set_bytes(frame.size());
        self.frames.push_back((stream, frame, permit));
        Ok(())
    }

    /// Refuses all requests.
    pub(crate) fn reject(&mut self, refusal: &ErrorResponse, effects: &mut EffectQueue) {
        for (stream, frame) in self.take() {
            effects.reject_on(stream, frame.frame(), refusal);
        }
    }

    /// Takes all requests out.
    pub(crate) fn take(&mut self) -> Vec<(StreamId, IndexedFrame)> {
        let frames = std::mem::take(&mut self.frames);
        let without_permit = |(stream, frame, _)| (stream, frame);
        frames.into_iter().map(without_permit).collect()
    }

    /// Returns the waiting requests.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Frame<'_>> {
        self.frames.iter().map(|(_, frame, _)| frame.frame())
    }

    /// Returns the number of waiting requests.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }
}
