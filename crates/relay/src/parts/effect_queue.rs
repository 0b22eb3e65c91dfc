//! The queue of effects, and the numbers of the gateway's own ids.

use std::collections::VecDeque;

use mcp_elicit_core::wire::{Cancelled, Id};

use crate::effect::{CallId, DeliveryId, Effect, StreamId};
use crate::frame_edit::OWN;

/// The effects, oldest first.
#[derive(Default)]
pub(crate) struct EffectQueue {
    effects: VecDeque<Effect>,
    last_id: u64,
}

impl EffectQueue {
    /// Adds an effect at the end.
    pub(crate) fn push(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    /// Takes out the first effect.
    pub(crate) fn pop(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Returns the number of waiting effects.
    pub(crate) fn len(&self) -> usize {
        self.effects.len()
    }

    /// Takes out the frames for the client on this stream which were added since there were `before` effects, and which
    /// `wanted` accepts.
    pub(crate) fn take_frames_since(
        &mut self,
        before: usize,
        of: StreamId,
        wanted: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut taken = Vec::new();
        let mut rest = VecDeque::new();
        for effect in self.effects.drain(before.min(self.effects.len())..) {
            match effect {
                Effect::ToClient { stream, frame, .. } if stream == of && wanted(&frame) => {
                    taken.push(frame);
                }
                other => rest.push_back(other),
            }
        }
        self.effects.append(&mut rest);
        taken
    }

    /// Takes out the frames on the streams of tasks: the streams, and `true` for responses.
    pub(crate) fn take_task_frames(&mut self) -> Vec<(StreamId, String, bool)> {
        let mut taken = Vec::new();
        let mut rest = VecDeque::new();
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::ToClient {
                    stream,
                    frame,
                    last,
                } if stream.is_of_task() => taken.push((stream, frame, last)),
                other => rest.push_back(other),
            }
        }
        self.effects = rest;
        taken
    }

    /// Adds a frame for the client; `last` if it answers the request that opened the stream.
    pub(crate) fn tell_client(&mut self, stream: StreamId, frame: String, last: bool) {
        let frame = Effect::ToClient {
            stream,
            frame,
            last,
        };
        self.push(frame);
    }

    /// Adds a frame for the server, with the call that it starts.
    pub(crate) fn tell_server(&mut self, frame: String, call: Option<CallId>) {
        self.send_to_server(frame, call, None);
    }

    /// Adds a frame for the server, with the call that it starts and the answers that it carries.
    pub(crate) fn send_to_server(
        &mut self,
        frame: String,
        call: Option<CallId>,
        delivery: Option<DeliveryId>,
    ) {
        self.push(Effect::ToServer {
            frame,
            call,
            delivery,
        });
    }

    /// Withdraws the client's own dialog with this id.
    pub(crate) fn withdraw_dialog(&mut self, stream: StreamId, id: &Id, why: &str) {
        let notice = Cancelled {
            request_id: Some(id.clone()),
            reason: Some(why.to_owned()),
        };
        self.tell_client(stream, notice.to_message(), false);
    }

    /// Gives answers back to the record that were taken out and not sent.
    pub(crate) fn return_unsent(&mut self, records: Vec<String>) {
        if !records.is_empty() {
            let why =
                "it was not sent: its question was withdrawn, or its call ended, at that moment"
                    .to_owned();
            self.push(Effect::DeliveryRefused { records, why });
        }
    }

    /// Returns the next generated id. A peer may use the same one.
    pub(crate) fn next_id(&mut self) -> Id {
        self.last_id += 1;
        Id::text(&format!("{OWN}{}", self.last_id))
    }
}
