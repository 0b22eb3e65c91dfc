//! Requests of the client that wait for the server's era to be known.

use std::collections::VecDeque;

use crate::StreamId;

/// The number of requests that may wait.
const WAITING: usize = 256;

/// The requests, oldest first, each with its stream.
#[derive(Default)]
pub(crate) struct EarlyRequests {
    frames: VecDeque<(StreamId, Vec<u8>)>,
}

impl EarlyRequests {
    /// Adds a request. `false` when too many wait.
    pub(crate) fn add(&mut self, stream: StreamId, frame: &str) -> bool {
        let free = self.frames.len() < WAITING;
        if free {
            self.frames.push_back((stream, frame.as_bytes().to_vec()));
        }
        free
    }

    /// Takes all out.
    pub(crate) fn take(&mut self) -> VecDeque<(StreamId, Vec<u8>)> {
        std::mem::take(&mut self.frames)
    }

    /// Returns the requests that wait.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().map(|(_, frame)| frame.as_slice())
    }

    /// Returns how many wait.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }
}
