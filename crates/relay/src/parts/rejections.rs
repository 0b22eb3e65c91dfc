//! Frames of the client that are not passed on: their senders get errors.

use mcp_elicit_core::wire::frame::{self, Frame};
use mcp_elicit_core::wire::{Envelope, FrameDefect, Id, members, message};
use serde_json::json;

use super::effect_queue::EffectQueue;
use crate::frame_edit::ErrorResponse;
use crate::{ClientForward, ClientFrame, StreamId};

impl EffectQueue {
    /// Refuses a request; other frames get no error.
    pub(crate) fn reject(
        &mut self,
        frame: ClientFrame<'_>,
        refusal: &ErrorResponse,
    ) -> ClientForward {
        self.reject_on(frame.stream(), *frame, refusal);
        ClientForward::Handled
    }

    /// Refuses a request that came on this stream.
    pub(crate) fn reject_on(
        &mut self,
        stream: StreamId,
        frame: Frame<'_>,
        refusal: &ErrorResponse,
    ) {
        if let Some(id) = frame.id() {
            self.tell_client(stream, refusal.to_response(&id), true);
        }
    }

    /// Refuses a frame with this defect, under its id if it has one.
    pub(crate) fn reject_defect(
        &mut self,
        stream: StreamId,
        bytes: &[u8],
        defect: FrameDefect,
    ) -> ClientForward {
        if defect == FrameDefect::NotOneObject {
            return self.reject_unreadable(stream, bytes);
        }
        let id = frame::only_id(bytes);
        self.reject_under(stream, id.as_ref(), defect.code(), &defect.to_string())
    }

    /// Refuses bytes that are not a message.
    pub(crate) fn reject_unreadable(&mut self, stream: StreamId, bytes: &[u8]) -> ClientForward {
        let (code, why) = match Envelope::parse_within(bytes, usize::MAX) {
            Ok(_) => (-32600, "the message is not a request".to_owned()),
            Err(defect) => (-32700, defect.to_string()),
        };
        self.reject_under(stream, None, code, &why)
    }

    /// Refuses a frame that is not a request, under this id if it has one.
    pub(crate) fn reject_under(
        &mut self,
        stream: StreamId,
        id: Option<&Id>,
        code: i32,
        why: &str,
    ) -> ClientForward {
        let error = members::raw_value(&json!({"code": code, "message": why}));
        self.tell_client(stream, message::error(id, &error), true);
        ClientForward::Handled
    }
}
