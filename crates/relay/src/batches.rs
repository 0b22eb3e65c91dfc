//! Several messages of a client in one list, which only sessions of 2025-03-26 have. Each is handled as if it had come
//! alone. The responses go to the client as one list, once all are there (JSON-RPC 2.0, section 6).

use serde_json::value::RawValue;

use serde_json::json;

use crate::era::Client;
use crate::parts::batch_responses::InBatch;
use crate::{ClientForward, ClientFrame, Effect, Relay, ServerForward, StreamId, Timestamp};
use mcp_elicit_core::wire::frame::{Frame, FrameIndex, Shape};
use mcp_elicit_core::wire::{Id, members, message, method};

/// The most messages in one list.
pub const BATCH: usize = 256;

/// The refusal of a list of messages.
pub const NO_BATCHES: &str =
    "a list of messages is for sessions of 2025-03-26 only; send each message on its own";

/// Returns `true` if the bytes begin like a list of messages.
pub fn is_batch(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'[')
}

/// Returns the messages of a list.
///
/// # Errors
/// With the code and the message of the refusal of the whole list.
pub fn batch_items(bytes: &[u8]) -> Result<Vec<&RawValue>, (i32, String)> {
    let items: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(|error| {
        let why = format!("the list of messages is not JSON: {error}");
        (-32700, why)
    })?;
    if items.is_empty() {
        return Err((-32600, "the list of messages is empty".to_owned()));
    }
    if items.len() > BATCH {
        let why = format!("a list may have {BATCH} messages; send the others separately");
        return Err((-32600, why));
    }
    Ok(items)
}

impl Relay {
    /// Returns `true` for a client that may send several messages in one list.
    pub fn has_batches(&self) -> bool {
        Client::has_batches(&self.client)
    }

    /// Handles several messages of the client in one list.
    pub(crate) fn client_batch(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        bytes: &[u8],
    ) -> ClientForward {
        if !self.has_batches() {
            return self.effects.reject_under(stream, None, -32600, NO_BATCHES);
        }
        let items = match batch_items(bytes) {
            Ok(items) => items,
            Err((code, why)) => return self.effects.reject_under(stream, None, code, &why),
        };
        let before = self.effects.len();
        let (mut awaited, mut responses) = (Vec::new(), Vec::new());
        for item in items {
            let text = item.get();
            if !text.starts_with('{') {
                let why = "each member of a list of messages must be an object";
                responses.push(refusal_of_item(None, why));
                continue;
            }
            let index = match FrameIndex::read(text.as_bytes()) {
                Ok(index) => index,
                Err(defect) => {
                    self.effects.reject_defect(stream, text.as_bytes(), defect);
                    continue;
                }
            };
            let frame = Frame::of_text(text, &index);
            let id = frame.id().filter(|_| frame.shape() == Some(Shape::Request));
            if frame.method() == Some(method::INITIALIZE) {
                let why = "a list of messages does not hold `initialize`";
                responses.push(refusal_of_item(id.as_ref(), why));
                continue;
            }
            awaited.extend(id);
            let frame = ClientFrame::new(frame, stream, now, None);
            if let ClientForward::AsIs(call) = self.client_message(frame) {
                self.effects.tell_server(text.to_owned(), call);
            }
        }
        // Messages without a usable id were refused under `null`.
        responses.extend(self.effects.take_frames_since(before, stream, is_nameless));
        if let Some(list) = self.batch_responses.opened(awaited, responses) {
            self.effects.tell_client(stream, list, true);
        }
        ClientForward::Handled
    }

    /// Returns the way of a frame of the server, which may be a response that is kept for its list.
    pub(crate) fn forward_in_batch(
        &mut self,
        forward: ServerForward,
        frame: Frame<'_>,
    ) -> ServerForward {
        let ServerForward::AsIs { stream, last } = forward else {
            return forward;
        };
        if self.batch_responses.is_empty() || stream != StreamId::SESSION {
            return forward;
        }
        match self.batch_responses.frame(frame) {
            InBatch::No => forward,
            InBatch::Kept => ServerForward::Handled,
            InBatch::Complete(list) => {
                self.effects.tell_client(stream, list, last);
                ServerForward::Handled
            }
        }
    }

    /// Returns the next effect, in order. A response that belongs to a list is kept until the others are there.
    pub(crate) fn next_effect(&mut self) -> Option<Effect> {
        loop {
            let effect = self.effects.pop()?;
            if self.batch_responses.is_empty() {
                return Some(effect);
            }
            let Effect::ToClient {
                stream: StreamId::SESSION,
                frame,
                last,
            } = effect
            else {
                return Some(effect);
            };
            let stream = StreamId::SESSION;
            // What the gateway has written, or changed, was not scanned since.
            let in_batch = match FrameIndex::read(frame.as_bytes()) {
                Ok(index) => self.batch_responses.frame(Frame::of_text(&frame, &index)),
                Err(_) => InBatch::No,
            };
            let frame = match in_batch {
                InBatch::No => frame,
                InBatch::Kept => continue,
                InBatch::Complete(list) => list,
            };
            return Some(Effect::ToClient {
                stream,
                frame,
                last,
            });
        }
    }
}

/// Returns the refusal of a member of a list that is not a message of a session, under its id if it has one.
fn refusal_of_item(id: Option<&Id>, why: &str) -> String {
    let error = json!({"code": -32600, "message": why});
    message::error(id, &members::raw_value(&error))
}

/// Returns `true` for a response without a usable id.
fn is_nameless(text: &str) -> bool {
    let index = FrameIndex::at(text.as_bytes());
    index.is_some_and(|index| {
        index.shape() == Some(Shape::Response) && index.id_in(text.as_bytes()).is_none()
    })
}
