//! The end of a call: with the server's response, with an error of the gateway, or because its client did not return.

use crate::Timer;
use crate::approvals::learn_tools;
use mcp_elicit_core::wire::{Frame, Id};
use serde_json::json;

use crate::asking_frames::begins_task;
use crate::frame_edit::{self, ErrorResponse, Splice};
use crate::parts::calls::{Call, Finished};
use crate::parts::indexed_frame::IndexedFrame;
use crate::{
    ByteLimit, CallId, CallKind, Effect, Ending, Relay, ServerForward, StreamId, Timestamp,
};

impl Relay {
    /// Handles the server's response to a call: the client gets it now, or when it makes the call again.
    pub(crate) fn finish(
        &mut self,
        now: Timestamp,
        key: CallId,
        frame: Frame<'_>,
    ) -> ServerForward {
        if self.asks_while_closing(key) {
            return ServerForward::Handled;
        }
        if let Some(text) = self.approvals.added_to(key, frame) {
            self.approvals.forget(key);
            return self.finish_with(now, key, text);
        }
        self.calls.end_upstream(key);
        if self.became_task(key, frame)
            && let Some(call) = self.calls.get_mut(key)
        {
            self.past_calls.became_task(call, frame);
        }
        self.turns.turn_ends(self.calls.get_mut(key));
        if self.ends_in_vain(now, key, frame) {
            return ServerForward::Handled;
        }
        self.end_questions_of(now, key, Ending::CallEnded);
        let Some(call) = self.calls.get_mut(key) else {
            return ServerForward::Handled;
        };
        let Some(stream) = call.stream() else {
            self.keep_result(now, key, frame);
            return ServerForward::Handled;
        };
        let lists_tools = call.lists_tools();
        if lists_tools && let Some(result) = frame.result() {
            learn_tools(&mut self.catalog, &self.settings, result);
            if let Some(tools) = self.task_support().in_tools(frame) {
                return self.finish_changed(key, frame, &tools);
            }
        }
        let Some(call) = self.calls.get(key) else {
            return ServerForward::Handled;
        };
        let same_id = call.client_id().as_json() == call.upstream_id().as_json();
        let client_id = call.client_id().clone();
        let translated = self.client.in_own_era(&self.server, call.kind(), frame);
        self.remove_call(key);
        match (translated, same_id) {
            (None, true) => ServerForward::AsIs { stream, last: true },
            (translated, _) => {
                let id = frame_edit::id_splice(frame, &client_id);
                let frame = frame_edit::with_splices(frame.text(), id.iter().chain(&translated));
                self.effects.tell_client(stream, frame, true);
                ServerForward::Handled
            }
        }
    }

    /// Sends the server's response with this change to the client of a call that ends.
    fn finish_changed(&mut self, key: CallId, frame: Frame<'_>, change: &Splice) -> ServerForward {
        if let Some(call) = self.remove_call(key)
            && let Some(stream) = call.stream()
        {
            let id = frame_edit::id_splice(frame, call.client_id());
            let frame = frame_edit::with_splices(frame.text(), id.iter().chain([change]));
            self.effects.tell_client(stream, frame, true);
        }
        ServerForward::Handled
    }

    /// Ends a call that the server has answered; the client gets this text.
    pub(crate) fn finish_with(
        &mut self,
        now: Timestamp,
        key: CallId,
        text: String,
    ) -> ServerForward {
        let Ok(response) = IndexedFrame::read(text) else {
            self.calls.end_upstream(key);
            self.fail(now, key, &ErrorResponse::unreadable());
            return ServerForward::Handled;
        };
        if let ServerForward::AsIs { stream, last } = self.finish(now, key, response.frame()) {
            self.effects.tell_client(stream, response.into_text(), last);
        }
        ServerForward::Handled
    }

    /// Sends the end that came while no client waited to the client that waits now.
    pub(crate) fn deliver_finished(&mut self, key: CallId) {
        let Some((end, stream, client_id)) = self.calls.get_mut(key).and_then(Call::take_finished)
        else {
            // It has not ended, so its end goes to the client when it comes.
            return;
        };
        let kind = self.calls.get(key).and_then(Call::kind);
        self.tell_end(stream, &client_id, kind, &end);
        self.remove_call(key);
    }

    /// Sends the end of a call of this kind to its client, which knows the call by this id and waits on this stream.
    pub(crate) fn tell_end(
        &mut self,
        stream: StreamId,
        id: &Id,
        kind: Option<CallKind>,
        end: &Finished,
    ) {
        let text = match end {
            Finished::Response(response) => {
                let frame = response.frame();
                let translated = self.client.in_own_era(&self.server, kind, frame);
                let id = frame_edit::id_splice(frame, id);
                frame_edit::with_splices(frame.text(), id.iter().chain(&translated))
            }
            Finished::Failed(refusal) => refusal.to_response(id),
        };
        self.effects.tell_client(stream, text, true);
    }

    /// Ends the call with an error of the gateway's own.
    pub(crate) fn fail(&mut self, now: Timestamp, key: CallId, refusal: &ErrorResponse) {
        if self.asks_while_closing(key) {
            return;
        }
        self.end_questions_of(now, key, Ending::CallEnded);
        self.keep_undelivered(key);
        let Some(call) = self.calls.get(key) else {
            // It has ended before, and its client was told.
            return;
        };
        if let Some(stream) = call.stream() {
            let frame = refusal.to_response(call.client_id());
            self.remove_call(key);
            self.effects.tell_client(stream, frame, true);
            return;
        }
        self.remember_given_up(key);
        self.calls.end_upstream(key);
        self.finish_unattended(now, key, Finished::Failed(refusal.clone().into()));
        self.effects.push(Effect::DropCall { call: key });
    }

    /// Stores the server's answer to a call without a waiting client.
    fn keep_result(&mut self, now: Timestamp, key: CallId, response: Frame<'_>) {
        let result = response.text().to_owned();
        let end = Finished::Response(IndexedFrame::of(response, None));
        self.finish_unattended(now, key, end);
        self.effects.push(Effect::KeepResult {
            call: key,
            result,
            until: now.after(self.settings.keep_results),
        });
    }

    /// Ends a call without a waiting client with an error in place of the server's answer of this size, which is not stored.
    pub(crate) fn result_not_stored(&mut self, key: CallId, limit: ByteLimit, bytes: usize) {
        if let Some(call) = self.calls.get_mut(key).filter(|call| call.is_finished()) {
            call.finish(Finished::Failed(error_of_result(limit, bytes).into()));
        }
    }

    /// Keeps the end of a call until the call is made again, for a time.
    fn finish_unattended(&mut self, now: Timestamp, key: CallId, end: Finished) {
        self.turns.queue_mut().remove(key);
        if let Some(call) = self.calls.get_mut(key) {
            call.finish(end);
        }
        let at = now.after(self.settings.keep_results);
        self.timers.set(at, Timer::DropUnattended(key));
    }

    /// Returns `true` for a call with an open question whose server is being disconnected: the question stays for the same
    /// call made again.
    fn asks_while_closing(&self, key: CallId) -> bool {
        let call = self.calls.get(key);
        self.is_server_closing && call.is_some_and(|call| !call.asks().is_empty())
    }

    /// Returns `true` if the response says that the call continues as a task of 2025-11-25, whose questions are pushed.
    fn became_task(&self, key: CallId, frame: Frame<'_>) -> bool {
        let may_ask = |call: &Call| call.kind().is_some();
        self.settings.decisions.is_some()
            && self.server.pushes_questions_of_tasks()
            && self.calls.get(key).is_some_and(may_ask)
            && begins_task(frame)
    }

    pub(crate) fn remove_call(&mut self, key: CallId) -> Option<Call> {
        self.keep_undelivered(key);
        self.remember_given_up(key);
        let approval = self.approvals.forget(key);
        self.deliveries.end_unsent(approval, &mut self.effects);
        let call = self.calls.remove(key)?;
        self.own_tasks.end_following(key);
        self.turns.queue_mut().remove(key);
        self.waiting_calls.remove(key);
        self.round_states.remove_call(key);
        if self.holds.end(key, &mut self.timers) || call.stream().is_none() {
            self.timers.cancel_call(key);
            self.unattended.end_following(key);
            self.unattended.remove(key);
        }
        Some(call)
    }

    /// Keeps answers that the call was to carry to the server for the next call.
    fn keep_undelivered(&mut self, key: CallId) {
        let records = self.calls.take_deliveries(key);
        if !records.is_empty() {
            let why = "the call ended before it could be made again".to_owned();
            self.effects.push(Effect::DeliveryRefused { records, why });
        }
    }

    /// Drops a call whose client did not return in time.
    pub(crate) fn drop_unattended(&mut self, now: Timestamp, key: CallId) {
        self.end_questions_of(now, key, Ending::CallEnded);
        if self.remove_call(key).is_some() {
            self.effects.push(Effect::DropCall { call: key });
        }
    }

    /// Remembers a call that ends here, if the server may still ask in it and an operator decides who is asked.
    fn remember_given_up(&mut self, key: CallId) {
        if self.settings.decisions.is_none() || !self.calls.is_upstream(key) {
            return;
        }
        if let Some(call) = self.calls.get_mut(key) {
            self.past_calls.given_up(call);
        }
    }
}

/// Returns the response that is stored in place of an answer of this size to a call that no client waits for, because of this
/// limit.
pub fn result_not_stored(limit: ByteLimit, bytes: usize) -> String {
    error_of_result(limit, bytes).to_unknown()
}

fn error_of_result(limit: ByteLimit, bytes: usize) -> ErrorResponse {
    let ByteLimit { name, most } = limit;
    let why = format!(
        "the server was called and has answered, but the answer is lost: it has {bytes} bytes, no client waited for it, and the answers that are stored for this caller may have {most} bytes now (`{name}`). Whatever the call does is done; made again, it is a new call. Fetch the results of other calls first, or ask for less"
    );
    let data = json!({"limit": name, "most": most, "bytes": bytes});
    ErrorResponse::new(-32000, why).with_data(data)
}
