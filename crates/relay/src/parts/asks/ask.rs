//! One open question: its parts, and its state from its arrival until its answer is sent or it has ended.

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::question::outcome_json;
use mcp_elicit_core::wire::{ElicitRequest, Frame, Id, InputResponses, members};
use serde_json::value::RawValue;

use super::wrong_answers::{Attempts, WrongAnswer, WrongAnswers};
use super::{Attribution, Origin};
use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::past_calls::size_of;
use crate::unknown_members::UnknownMembers;
use crate::{AskedVia, CallId, CallSummary, Timestamp};

/// One open question, from its arrival until its answer is sent or it has ended.
pub(crate) struct Ask {
    asked: NewAsk,
    /// Its size in bytes.
    size: usize,
    reusable: bool,
    state: AskState,
}

/// A new question.
pub(crate) struct NewAsk {
    /// The call that it belongs to, as far as it is known.
    attribution: Attribution,
    /// The way in which the server asked.
    origin: Origin,
    request: ElicitRequest,
    /// Unknown members of its params.
    unknown: UnknownMembers,
    /// The parsed form, in form mode.
    form: Option<Arc<Form>>,
    /// The way in which it is asked.
    via: AskedVia,
    /// Its key in the `inputRequests` of a client of the rounds era.
    entry: String,
    /// The server's own frame, if the client may have it as it is.
    frame: Option<IndexedFrame>,
    /// The size in bytes of the other calls that it may belong to.
    candidates_size: usize,
    open_for: Duration,
}

/// The state of a question.
#[expect(
    clippy::large_enum_variant,
    reason = "every question is in the record soon, and a box would be one more allocation"
)]
enum AskState {
    /// Being recorded, and not shown yet.
    Recording,
    /// It is in the record.
    Recorded(Recorded),
}

/// A question that is in the record.
struct Recorded {
    /// The record's id.
    id: String,
    /// The address at which a person can answer.
    link: Option<String>,
    shown: Shown,
    stage: Stage,
}

/// The stage of a question that is in the record. From the client's answer on, its own reply is kept if the server may
/// receive it unchanged.
enum Stage {
    /// Shown and open.
    Open,
    /// The client answered; the record decides whether it was the first.
    Submitting { reply: Option<ClientReply> },
    /// An answer is in the record.
    Answered { reply: Option<ClientReply> },
    /// The answer is being taken out of the record.
    Delivering { reply: Option<ClientReply> },
}

/// A client's answer as the client wrote it.
pub(crate) struct ClientReply {
    /// The response as the client wrote it, if the server may receive all of it.
    frame: Option<Box<str>>,
    /// The `ElicitResult` in it, JSON.
    result: Box<str>,
    /// The record's entry if this answer was the first.
    recorded: String,
}

/// The way in which the client was asked, with its unusable answers.
enum Shown {
    /// It was not asked here.
    Not,
    /// With a pushed request of this id.
    Dialog {
        id: Id,
        /// The time at which it was sent.
        at: Timestamp,
        /// `true` if the client has responded in any way.
        responded: bool,
        wrong: Option<WrongAnswers>,
    },
    /// With an `input_required`; its retry carries the answer.
    NextRound {
        /// The time at which it was sent; `None` if that was before the gateway was restarted.
        at: Option<Timestamp>,
        wrong: Option<WrongAnswers>,
    },
}

impl NewAsk {
    /// Creates a question for these calls, with its first place and the time for which it is open.
    pub(crate) fn new(
        attribution: Attribution,
        origin: Origin,
        request: ElicitRequest,
        form: Option<Arc<Form>>,
        via: AskedVia,
        open_for: Duration,
    ) -> Self {
        Self {
            attribution,
            origin,
            request,
            unknown: UnknownMembers::default(),
            form,
            via,
            entry: String::new(),
            frame: None,
            candidates_size: 0,
            open_for,
        }
    }

    /// Sets its key in the `inputRequests` of a client of the rounds era.
    pub(crate) fn entry(self, entry: String) -> Self {
        Self { entry, ..self }
    }

    /// Adds the unknown members of its params.
    pub(crate) fn unknown(self, unknown: UnknownMembers) -> Self {
        Self { unknown, ..self }
    }

    /// Adds the server's own frame, which the client may have as it is.
    pub(crate) fn frame(self, frame: Option<Frame<'_>>) -> Self {
        let frame = frame.map(|frame| IndexedFrame::of(frame, None));
        Self { frame, ..self }
    }

    /// Counts the size of the other calls that it may belong to, which are kept with it.
    pub(crate) fn candidates(self, candidates: &[CallSummary]) -> Self {
        let candidates_size = candidates.iter().map(size_of).sum();
        Self {
            candidates_size,
            ..self
        }
    }

    /// Returns the way in which the server asked.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the question.
    pub(crate) fn request(&self) -> &ElicitRequest {
        &self.request
    }

    /// Returns the parsed form, in form mode.
    pub(crate) fn form(&self) -> Option<&Form> {
        self.form.as_deref()
    }

    /// Returns the size in bytes of its kept parts.
    pub(crate) fn size(&self) -> usize {
        let request = match &self.request {
            ElicitRequest::Form { message, schema } => message.len() + schema.get().len(),
            ElicitRequest::Url {
                message,
                url,
                elicitation_id,
            } => message.len() + url.len() + elicitation_id.as_ref().map_or(0, String::len),
        };
        let frame = self.frame.as_ref().map_or(0, IndexedFrame::size);
        request + self.unknown.size() + frame + self.entry.len() + self.candidates_size
    }
}

impl Stage {
    /// Returns the client's own reply, if the server may receive it unchanged.
    fn reply(&self) -> Option<&ClientReply> {
        match self {
            Self::Open => None,
            Self::Submitting { reply } | Self::Answered { reply } | Self::Delivering { reply } => {
                reply.as_ref()
            }
        }
    }

    /// Takes the client's own reply out, for the next stage.
    fn take_reply(&mut self) -> Option<ClientReply> {
        match self {
            Self::Open => None,
            Self::Submitting { reply } | Self::Answered { reply } | Self::Delivering { reply } => {
                reply.take()
            }
        }
    }
}

impl Shown {
    /// Returns the unusable answers of the client.
    fn wrong(&self) -> Option<&WrongAnswers> {
        match self {
            Self::Not => None,
            Self::Dialog { wrong, .. } | Self::NextRound { wrong, .. } => wrong.as_ref(),
        }
    }

    /// Takes out the unusable answers of the client, for the next time that it is asked.
    fn take_wrong(&mut self) -> Option<WrongAnswers> {
        match self {
            Self::Not => None,
            Self::Dialog { wrong, .. } | Self::NextRound { wrong, .. } => wrong.take(),
        }
    }
}

impl ClientReply {
    /// Creates a reply with this `ElicitResult` (JSON), recorded as `recorded` if it was the first.
    pub(crate) fn new(result: &str, recorded: String) -> Self {
        Self {
            frame: None,
            result: result.into(),
            recorded,
        }
    }

    /// Adds the response as the client wrote it; the server may receive all of it.
    pub(crate) fn frame(self, frame: Option<Box<str>>) -> Self {
        Self { frame, ..self }
    }

    /// Returns the response as the client wrote it, if the server may receive all of it.
    pub(crate) fn as_it_came(&self) -> Option<&str> {
        self.frame.as_deref()
    }

    /// Returns the `ElicitResult` as the client wrote it, JSON.
    pub(crate) fn result(&self) -> &str {
        &self.result
    }
}

impl Ask {
    /// Creates a question that is to be recorded.
    pub(super) fn new(asked: NewAsk) -> Self {
        Self {
            // The answer to an ambiguous question is not reused.
            reusable: !asked.attribution.is_ambiguous(),
            size: asked.size(),
            asked,
            state: AskState::Recording,
        }
    }

    /// Returns the call that it belongs to, as far as it is known.
    pub(crate) fn call(&self) -> Option<CallId> {
        self.asked.attribution.call()
    }

    /// Returns the other calls that it may belong to, some of which may have ended meanwhile.
    pub(crate) fn others(&self) -> &[CallId] {
        self.asked.attribution.others()
    }

    /// Returns all calls that it may belong to.
    pub(crate) fn candidates(&self) -> Vec<CallId> {
        self.asked.attribution.candidates()
    }

    /// Returns the last call in progress when it came, if the call is a guess.
    pub(crate) fn newest(&self) -> Option<CallId> {
        self.asked.attribution.newest()
    }

    /// Returns `true` if the call that it belongs to was the only one that was not waiting for an answer when it came.
    pub(crate) fn is_likely_of_its_call(&self) -> bool {
        self.asked.attribution.is_likely()
    }

    /// Returns `true` if it may belong to a call that has ended here.
    pub(crate) fn may_be_past(&self) -> bool {
        self.asked.attribution.may_be_past()
    }

    /// Returns the way in which the server asked.
    pub(crate) fn origin(&self) -> &Origin {
        &self.asked.origin
    }

    /// Returns the question.
    pub(crate) fn request(&self) -> &ElicitRequest {
        &self.asked.request
    }

    /// Returns the unknown members of its params.
    pub(crate) fn unknown(&self) -> &UnknownMembers {
        &self.asked.unknown
    }

    /// Returns its size in bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns the parsed form, in form mode.
    pub(crate) fn form(&self) -> Option<&Form> {
        self.asked.form.as_deref()
    }

    /// Returns the first place where it is shown.
    pub(crate) fn via(&self) -> AskedVia {
        self.asked.via
    }

    /// Returns its key in `inputRequests`; empty if neither side uses rounds.
    pub(crate) fn entry(&self) -> &str {
        &self.asked.entry
    }

    /// Returns the server's own frame, if the client may have it as it is.
    pub(crate) fn server_frame(&self) -> Option<Frame<'_>> {
        self.asked.frame.as_ref().map(IndexedFrame::frame)
    }

    /// Returns the time for which it is open.
    pub(crate) fn open_for(&self) -> Duration {
        self.asked.open_for
    }

    /// Returns `true` if its answer is kept for the next call when the server refuses it.
    pub(crate) fn is_reusable(&self) -> bool {
        self.reusable
    }

    /// Returns the reason why the client's last answer is unusable.
    pub(crate) fn reason(&self) -> Option<&str> {
        let wrong = self.row()?.shown.wrong()?;
        Some(wrong.reason())
    }

    /// Returns `true` while it is not shown yet.
    pub(crate) fn is_recording(&self) -> bool {
        matches!(self.state, AskState::Recording)
    }

    /// Returns `true` while it is shown and unanswered.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.stage(), Some(Stage::Open))
    }

    /// Returns `true` while its answer waits in the record.
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.stage(), Some(Stage::Answered { .. }))
    }

    /// Returns `true` while the client's answer is submitted to the record.
    pub(crate) fn is_submitting(&self) -> bool {
        matches!(self.stage(), Some(Stage::Submitting { .. }))
    }

    /// Returns `true` once its answer is in the record.
    pub(crate) fn has_answer(&self) -> bool {
        matches!(
            self.stage(),
            Some(Stage::Answered { .. } | Stage::Delivering { .. })
        )
    }

    fn stage(&self) -> Option<&Stage> {
        Some(&self.row()?.stage)
    }

    fn row(&self) -> Option<&Recorded> {
        match &self.state {
            AskState::Recording => None,
            AskState::Recorded(row) => Some(row),
        }
    }

    fn row_mut(&mut self) -> Option<&mut Recorded> {
        match &mut self.state {
            AskState::Recording => None,
            AskState::Recorded(row) => Some(row),
        }
    }

    /// Returns the record's id, once it is written.
    pub(crate) fn record(&self) -> Option<&str> {
        self.row().map(|row| row.id.as_str())
    }

    /// Returns its key in `inputRequests` with the record's id, once it is written.
    pub(crate) fn entry_and_record(&self) -> Option<(String, String)> {
        Some((self.entry().to_owned(), self.record()?.to_owned()))
    }

    /// Returns the address at which a person can answer.
    pub(crate) fn link(&self) -> Option<&str> {
        self.row()?.link.as_deref()
    }

    /// Returns the id under which the client's own dialog is open.
    pub(crate) fn open_dialog(&self) -> Option<&Id> {
        match &self.row()?.shown {
            Shown::Dialog {
                id,
                responded: false,
                ..
            } => Some(id),
            Shown::Not | Shown::Dialog { .. } | Shown::NextRound { .. } => None,
        }
    }

    /// Returns the client's own reply, if it is the recorded answer.
    pub(crate) fn own_reply(&self, recorded: &str) -> Option<&ClientReply> {
        let reply = self.stage()?.reply()?;
        (reply.recorded == recorded).then_some(reply)
    }

    /// Returns the id of the client's own dialog, the last if there were several.
    pub(super) fn dialog(&self) -> Option<&Id> {
        match &self.row()?.shown {
            Shown::Dialog { id, .. } => Some(id),
            Shown::Not | Shown::NextRound { .. } => None,
        }
    }

    /// Records its id in the record, and the address at which it can be answered.
    pub(super) fn recorded(&mut self, id: String, link: Option<String>) {
        self.state = AskState::Recorded(Recorded {
            id,
            link,
            shown: Shown::Not,
            stage: Stage::Open,
        });
    }

    /// Excludes its answer from reuse.
    pub(super) fn not_reusable(&mut self) {
        self.reusable = false;
    }

    /// Records that the client is asked in its own dialog under this id. Returns the id of the previous dialog, if any.
    pub(super) fn shown_in_dialog(&mut self, id: Id, at: Timestamp) -> Option<Id> {
        let row = self.row_mut()?;
        let dialog = Shown::Dialog {
            id,
            at,
            responded: false,
            wrong: row.shown.take_wrong(),
        };
        match std::mem::replace(&mut row.shown, dialog) {
            Shown::Dialog { id: before, .. } => Some(before),
            Shown::Not | Shown::NextRound { .. } => None,
        }
    }

    /// Returns the number of unusable answers of the client.
    pub(super) fn wrong_answers(&self) -> u32 {
        let wrong = self.row().and_then(|row| row.shown.wrong());
        wrong.map_or(0, WrongAnswers::count)
    }

    /// Returns the reply in a retry under its key, for a server that may receive the reply with all its members.
    pub(crate) fn reply_in_retry(
        &self,
        outcome: &Outcome,
        responses: &InputResponses,
    ) -> Option<ClientReply> {
        // Without accepted answers, a reply with `content` is not used.
        let meant = |said: &&RawValue| {
            outcome.answers().is_some() || members::member(said, "content").is_none()
        };
        let said = responses.get(self.entry()).filter(meant);
        let said = said.filter(|_| self.takes_own_reply());
        said.map(|said| ClientReply::new(said.get(), outcome_json(outcome)))
    }

    /// Records that the client has responded to its own dialog in any way.
    pub(crate) fn client_responded(&mut self) {
        if let AskState::Recorded(row) = &mut self.state
            && let Shown::Dialog { responded, .. } = &mut row.shown
        {
            *responded = true;
        }
    }

    /// Records that the client is asked in a round; its retry carries the answer.
    pub(crate) fn shown_in_round(&mut self, at: Timestamp) {
        if let AskState::Recorded(row) = &mut self.state {
            let wrong = row.shown.take_wrong();
            row.shown = Shown::NextRound {
                at: Some(at),
                wrong,
            };
        }
    }

    /// Returns the time at which the client was asked last.
    pub(crate) fn shown_at(&self) -> Option<Timestamp> {
        match self.row()?.shown {
            Shown::Not => None,
            Shown::Dialog { at, .. } => Some(at),
            Shown::NextRound { at, .. } => at,
        }
    }

    /// Moves it from the client's own dialog to people. The dialog's id is no longer in use; it is returned if the
    /// client has not responded.
    pub(super) fn move_to_people(&mut self) -> (Option<Id>, Option<Id>) {
        self.asked.via = AskedVia::People;
        let Some(row) = self.row_mut() else {
            return (None, None);
        };
        match std::mem::replace(&mut row.shown, Shown::Not) {
            Shown::Dialog { id, responded, .. } => (Some(id.clone()), (!responded).then_some(id)),
            Shown::Not | Shown::NextRound { .. } => (None, None),
        }
    }

    /// Detaches it from any call: the client answers it with a separate request.
    pub(crate) fn leave_call(&mut self) {
        self.asked.attribution.leave_call();
    }

    /// Reassigns it to this call.
    pub(crate) fn reassign(&mut self, to: CallId) {
        self.asked.attribution.reassign(to);
    }

    /// Records that the client has answered. `reply` is its own response, if the server may receive it unchanged.
    /// Returns the record's id if the answer may be the first.
    pub(crate) fn submit(&mut self, reply: Option<ClientReply>) -> Option<String> {
        let row = self.row_mut()?;
        match &mut row.stage {
            Stage::Open => {
                row.stage = Stage::Submitting { reply };
                Some(row.id.clone())
            }
            // The last reply counts if it equals the recorded answer.
            Stage::Submitting { reply: last }
            | Stage::Answered { reply: last }
            | Stage::Delivering { reply: last } => {
                *last = reply;
                None
            }
        }
    }

    /// Records that an answer is in the record. Returns `false` if that is known, or if the question is not recorded
    /// yet.
    pub(crate) fn answered(&mut self) -> bool {
        let Some(row) = self.row_mut() else {
            return false;
        };
        match row.stage {
            Stage::Open | Stage::Submitting { .. } => {
                let reply = row.stage.take_reply();
                row.stage = Stage::Answered { reply };
                true
            }
            Stage::Answered { .. } | Stage::Delivering { .. } => false,
        }
    }

    /// Records that the answer is being taken out of the record. Returns the record's id.
    pub(crate) fn begin_delivery(&mut self) -> Option<String> {
        let row = self.row_mut()?;
        let reply = row.stage.take_reply();
        row.stage = Stage::Delivering { reply };
        Some(row.id.clone())
    }

    /// Records that the answer was not taken out of the record. It is still there, or the question is open again.
    pub(crate) fn not_delivered(&mut self, is_open: bool) {
        if let Some(row) = self.row_mut() {
            let reply = row.stage.take_reply();
            row.stage = if is_open {
                Stage::Open
            } else {
                Stage::Answered { reply }
            };
        }
    }

    /// Records an unusable answer of the client. Returns all so far.
    pub(crate) fn was_wrong(&mut self, answer: WrongAnswer) -> Attempts {
        let Some(row) = self.row_mut() else {
            return Attempts::OVER;
        };
        let (wrong_answers, attempts) = WrongAnswers::after(row.shown.take_wrong(), answer);
        let again = Some(wrong_answers);
        match &mut row.shown {
            // The client was asked in a round before the gateway was restarted.
            Shown::Not => {
                row.shown = Shown::NextRound {
                    at: None,
                    wrong: again,
                };
            }
            Shown::Dialog { wrong, .. } | Shown::NextRound { wrong, .. } => *wrong = again,
        }
        attempts
    }

    /// Returns the question, with the reason why it is asked again.
    pub(crate) fn request_again(&self) -> ElicitRequest {
        let mut request = self.asked.request.clone();
        if let Some(reason) = self.reason() {
            let (ElicitRequest::Form { message, .. } | ElicitRequest::Url { message, .. }) =
                &mut request;
            *message = message_again(message, reason);
        }
        request
    }
}

/// Returns a message with the reason why it is asked again.
pub(crate) fn message_again(message: &str, reason: &str) -> String {
    format!("{message}\n\nThe last answer cannot be used: {reason}")
}
