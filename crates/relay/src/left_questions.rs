//! Questions for which a server stops waiting before a person has answered, in calls that were handed back.
//!
//! Many servers wait for an answer for a limited time: a minute or five by default. A call that was handed back is made again
//! by its client much later, as its message says. So a question that ended only because of the server's limit stays open, and
//! the failure of its call is not kept: the same call made again goes to the server anew, and finds the question or its answer.
//! A session leaves at most as many as may be pending in it.
//!
//! | seen, while no client waits for the call | read as |
//! | --- | --- |
//! | `notifications/cancelled` for the question, with a timeout as its reason | the question stays |
//! | then an error, or a result with `isError` | the call was made in vain, and is forgotten |
//! | then any other result | the server went on without the answer: the question is withdrawn |
//! | an error or a result with `isError` that tells of a timeout, while a question is open | both: the question stays, and the call is forgotten |

use mcp_elicit_core::wire::Frame;
use mcp_elicit_core::wire::frame::FramePart;

use crate::parts::asks::Ask;
use crate::parts::client_waits::is_timeout;
use crate::{AskId, AskedVia, CallId, Effect, Ending, Relay, Timestamp};

impl Relay {
    /// Handles the withdrawal of a question by the server, for this reason.
    pub(crate) fn server_withdraws(&mut self, key: AskId, reason: Option<&str>) {
        if self.is_server_closing {
            return;
        }
        let ran_out = reason.is_some_and(is_timeout);
        let call = self.asks.get(key).and_then(Ask::call);
        let call = call.filter(|call| ran_out && self.is_handed_back(*call));
        if let Some(call) = call
            && let Some(record) = self.leave_question(key)
        {
            if let Some(call) = self.calls.get_mut(call) {
                call.leave_question(record);
            }
            return;
        }
        self.drop_question(key, Ending::WithdrawnByServer);
    }

    /// Ends a call with this response of the server, if the server failed because a person had not answered in time and no
    /// client waits: its questions stay for the same call made again. Otherwise returns `false`.
    pub(crate) fn ends_in_vain(&mut self, now: Timestamp, key: CallId, frame: Frame<'_>) -> bool {
        let Some(failure) = failure(frame) else {
            return false;
        };
        let Some(call) = self.calls.get_mut(key) else {
            return false;
        };
        let mut was_left = !call.take_left_questions().is_empty();
        let asks = call.asks().to_vec();
        if !self.is_handed_back(key) {
            return false;
        }
        if is_timeout(failure) {
            for ask in asks {
                was_left |= self.leave_question(ask).is_some();
            }
        }
        if !was_left {
            return false;
        }
        tracing::info!(server = %self.settings.server, "the server stopped waiting for a person; the question stays open for the same call made again");
        self.end_questions_of(now, key, Ending::CallEnded);
        self.remove_call(key);
        self.effects.push(Effect::DropCall { call: key });
        true
    }

    /// Returns `true` if the call was handed back, and no client waits for it.
    fn is_handed_back(&self, key: CallId) -> bool {
        let call = self.calls.get(key);
        call.is_some_and(|call| call.stream().is_none() && call.kind().is_some())
    }

    /// Leaves a question that people can still answer to the record, for the same call made again. Returns its name there;
    /// `None` if it is none, or may be another call's.
    fn leave_question(&mut self, key: AskId) -> Option<String> {
        let is_left = |ask: &&Ask| {
            ask.is_open()
                && ask.via() == AskedVia::People
                && ask.is_reusable()
                && ask.others().is_empty()
        };
        // A server that always stops waiting fills nobody's inbox: further ones end, as they would without this.
        let most = self.settings.pending.unwrap_or(usize::MAX);
        let has_room = |_: &&Ask| self.left_questions < most;
        let ask = self.asks.get(key).filter(is_left).filter(has_room)?;
        let record = ask.record()?.to_owned();
        let question = self.take_question(key)?;
        self.left_questions += 1;
        self.hold_ends(&question);
        self.effects.push(Effect::Leave {
            record: record.clone(),
        });
        Some(record)
    }
}

/// Returns the text of a response that says that the call has failed; `None` if it is another one.
fn failure(frame: Frame<'_>) -> Option<&str> {
    if let Some(error) = frame.error() {
        return Some(error.get());
    }
    let is_error = frame.sole_member(FramePart::Result, "isError");
    let failed = is_error == Ok(Some("true"));
    frame
        .result()
        .filter(|_| failed)
        .map(serde_json::value::RawValue::get)
}
