//! Responses whose id is not that of their request as it was written.
//!
//! A response must repeat the id of its request (JSON-RPC 2.0), a string as a string and a number as a number. Some peers
//! write a number as text, or text that is a number as one. Such a response is understood if it fits no other request.
//! An id that fits none is reported, because the client would wait in vain.

use mcp_elicit_core::wire::{Frame, Id};

use crate::era::Contact;
use crate::frame_edit::{self, ErrorResponse};
use crate::parts::indexed_frame::IndexedFrame;
use crate::{Relay, ServerForward, Timestamp};

/// The most digits of an id that a log shows.
const LONGEST_NUMBER: usize = 20;

impl Relay {
    /// Handles a response of the server whose id names no open request as it is written.
    pub(crate) fn unmatched_response(
        &mut self,
        now: Timestamp,
        id: &Id,
        frame: Frame<'_>,
    ) -> ServerForward {
        if self.past_calls.has(id) {
            // The client has given up that request.
            self.past_calls.answered(id);
            return ServerForward::Handled;
        }
        let meant = id.in_other_type();
        if let Some(meant) = meant.filter(|meant| self.is_open_at_server(meant)) {
            if self.odd_ids.is_first_respelled() {
                tracing::warn!(server = %self.settings.server, %id, request = %meant, "the server repeats ids in another JSON type: its responses are matched by value");
            }
            return self.respelled_response(now, &meant, frame);
        }
        self.report_unmatched(now, id);
        ServerForward::Handled
    }

    /// Returns `true` if a request that the server has not answered has this id.
    fn is_open_at_server(&self, id: &Id) -> bool {
        self.calls.by_upstream(id).is_some()
            || self.past_calls.has(id)
            || self.opening_ids.has(id)
            || self.tool_listing.awaits(id)
            || self.task_questions.awaits(id)
    }

    /// Handles a response under the id that it means.
    fn respelled_response(
        &mut self,
        now: Timestamp,
        meant: &Id,
        frame: Frame<'_>,
    ) -> ServerForward {
        let splice = frame_edit::id_splice(frame, meant);
        let named = IndexedFrame::changed(frame, splice.as_slice());
        if let ServerForward::AsIs { stream, last } = self.server_response(now, named.frame()) {
            self.effects.tell_client(stream, named.into_text(), last);
        }
        ServerForward::Handled
    }

    /// Reports a response that answers no open request. The only open request ends, if the server gives every response
    /// the same id: no other response can be meant for it.
    fn report_unmatched(&mut self, now: Timestamp, id: &Id) {
        if self.turns.has_given_up_call() {
            tracing::debug!(server = %self.settings.server, id = shown_id(id), "dropped a response to no open request");
        } else if self.odd_ids.reports_unmatched() {
            tracing::warn!(server = %self.settings.server, id = shown_id(id), "dropped a response: no open request has its id; a response must repeat the id of its request");
        }
        if *id != Id::number(0) {
            return;
        }
        let why = format!(
            "gave a response under the id {id}, which no open request has: a response must repeat the id of its request"
        );
        if self.server.contact() == Contact::Probing {
            self.reject_opening(&format!("the server {} {why}", self.shown_server()));
            self.reject_waiting(&why);
            return;
        }
        if let Some(key) = self.calls.only_at_server() {
            let why = format!("the server {} {why}", self.shown_server());
            self.calls.end_upstream(key);
            self.fail(now, key, &ErrorResponse::new(-32603, why));
        }
    }
}

/// Returns what a log shows of an id that a server chose. A server may repeat a credential in a text, so only numbers are
/// shown.
fn shown_id(id: &Id) -> String {
    let text = id.as_json();
    let digits = text.trim_matches('"');
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && digits.len() <= LONGEST_NUMBER {
        text.to_owned()
    } else {
        format!("a text of {} bytes", text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_shows_no_text_that_a_server_put_into_an_id() {
        for (id, shown) in [
            ("7", "7"),
            ("\"7\"", "\"7\""),
            ("\"Bearer hunter2\"", "a text of 16 bytes"),
            ("\"\"", "a text of 2 bytes"),
        ] {
            let raw = serde_json::value::RawValue::from_string(id.to_owned()).expect("JSON");
            let id = Id::read(&raw).expect("an id");
            assert_eq!(shown_id(&id), shown);
        }
        let long = Id::text(&"9".repeat(5_000));
        assert_eq!(shown_id(&long), "a text of 5002 bytes");
    }
}
