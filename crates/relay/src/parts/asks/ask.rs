//! One open question: its parts, and its state from its arrival until its answer is out or it has ended.

use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::form::Form;
use mcp_elicit_core::question::outcome_json;
use mcp_elicit_core::wire::{ElicitRequest, Id, InputResponses, members};
use serde_json::value::RawValue;

use super::{Attribution, Origin};
use crate::parts::past_calls::size_of;
use crate::unknown_members::UnknownMembers;
use crate::{AskedVia, CallId, CallSummary};

/// One open question, from its arrival until its answer is out or it has ended.
pub(crate) struct Ask {
    asked: NewAsk,
    /// Its size in bytes, as it waits.
    size: usize,
    reusable: bool,
    /// The number of answers of the client's own dialog that could not be used.
    wrong: u32,
    /// Why the last of them could not.
    reason: Option<String>,
    state: AskState,
}

/// A question that comes up.
pub(crate) struct NewAsk {
    /// The call that it came up in, as far as one can tell.
    attribution: Attribution,
    /// The way in which the server asked.
    origin: Origin,
    request: ElicitRequest,
    /// Members of its params that are unknown here.
    unknown: UnknownMembers,
    /// The parsed form, in form mode.
    form: Option<Arc<Form>>,
    /// The way in which it is asked.
    via: AskedVia,
    /// Its key in the `inputRequests` of a client of the rounds era.
    entry: String,
    /// The server's own frame, when the client may have it as it is.
    frame: Option<Box<str>>,
    /// The size in bytes of the calls that it may be for as well.
    candidates_size: usize,
    open_for: Duration,
}

/// The state of a question.
enum AskState {
    /// It is being recorded; nobody has seen it.
    Recording,
    /// It is in the record.
    Recorded { row: Recorded, stage: Stage },
}

/// The facts of a question that is in the record.
struct Recorded {
    /// The record's id.
    id: String,
    /// The address at which a person can answer.
    link: Option<String>,
    /// The way in which the client was asked, if it was.
    shown: Option<Shown>,
    /// The client's own response, when the server may have it as it is.
    reply: Option<ClientReply>,
}

/// The stage of a question that is in the record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Somebody is asked.
    Open,
    /// The client answered; the record decides whether it was the first.
    Submitting,
    /// An answer is in the record.
    Answered,
    /// The answer is being taken out of the record.
    Delivering,
}

/// A client's answer as the client wrote it.
pub(crate) struct ClientReply {
    /// The response as the client wrote it, where the server may have all of it.
    frame: Option<Box<str>>,
    /// The `ElicitResult` in it, JSON.
    result: Box<str>,
    /// The record's entry if this answer was the first.
    recorded: String,
}

/// The way in which the client was asked.
enum Shown {
    /// With a pushed request of this id.
    Dialog {
        id: Id,
        /// `true` if the client has responded, in whatever way.
        responded: bool,
    },
    /// With an `input_required`, whose retry brings the answer.
    NextRound,
}

/// The number of times that a question is asked in a client's own dialog, as on the pages.
const ATTEMPTS: u32 = 3;

impl NewAsk {
    /// A question that came up in these calls, is asked so and is open for so long.
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

    /// Adds the members of its params that are unknown here.
    pub(crate) fn unknown(self, unknown: UnknownMembers) -> Self {
        Self { unknown, ..self }
    }

    /// Adds the server's own frame, which the client may have as it is.
    pub(crate) fn frame(self, frame: Option<&str>) -> Self {
        let frame = frame.map(Into::into);
        Self { frame, ..self }
    }

    /// Counts the calls that it may be for as well, which are kept with it.
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

    /// Returns the size in bytes of what is kept of it.
    pub(crate) fn size(&self) -> usize {
        let request = match &self.request {
            ElicitRequest::Form { message, schema } => message.len() + schema.get().len(),
            ElicitRequest::Url { message, url, .. } => message.len() + url.len(),
        };
        let frame = self.frame.as_ref().map_or(0, |frame| frame.len());
        request + self.unknown.size() + frame + self.candidates_size
    }
}

impl ClientReply {
    /// A reply with this `ElicitResult`, JSON, of which the record has `recorded` if it was the first.
    pub(crate) fn new(result: &str, recorded: String) -> Self {
        Self {
            frame: None,
            result: result.into(),
            recorded,
        }
    }

    /// Adds the response as the client wrote it, of which the server may have all.
    pub(crate) fn frame(self, frame: Option<Box<str>>) -> Self {
        Self { frame, ..self }
    }

    /// Returns the response as the client wrote it, where the server may have all of it.
    pub(crate) fn as_it_came(&self) -> Option<&str> {
        self.frame.as_deref()
    }

    /// Returns the `ElicitResult` as the client wrote it, JSON.
    pub(crate) fn result(&self) -> &str {
        &self.result
    }
}

impl Ask {
    /// A question that is to be recorded.
    pub(super) fn new(asked: NewAsk) -> Self {
        Self {
            // The answer to one that may be another call's is found by none.
            reusable: !asked.attribution.is_ambiguous(),
            size: asked.size(),
            asked,
            wrong: 0,
            reason: None,
            state: AskState::Recording,
        }
    }

    /// Returns the call that it came up in, as far as one can tell.
    pub(crate) fn call(&self) -> Option<CallId> {
        self.asked.attribution.call()
    }

    /// Returns the calls that it may belong to instead, some of which may have ended meanwhile.
    pub(crate) fn others(&self) -> &[CallId] {
        self.asked.attribution.others()
    }

    /// Returns the call that it came up in, and those that it may belong to instead.
    pub(crate) fn candidates(&self) -> Vec<CallId> {
        self.asked.attribution.candidates()
    }

    /// Returns the last call that was on its way when it came, where the call is a guess.
    pub(crate) fn newest(&self) -> Option<CallId> {
        self.asked.attribution.newest()
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

    /// Returns the members of its params that are unknown here.
    pub(crate) fn unknown(&self) -> &UnknownMembers {
        &self.asked.unknown
    }

    /// Returns its size in bytes, as it waits.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns the parsed form, in form mode.
    pub(crate) fn form(&self) -> Option<&Form> {
        self.asked.form.as_deref()
    }

    /// Returns the way in which it is asked.
    pub(crate) fn via(&self) -> AskedVia {
        self.asked.via
    }

    /// Returns its key in `inputRequests`; empty where neither side asks in rounds.
    pub(crate) fn entry(&self) -> &str {
        &self.asked.entry
    }

    /// Returns the server's own frame, when the client may have it as it is.
    pub(crate) fn server_frame(&self) -> Option<&str> {
        self.asked.frame.as_deref()
    }

    /// Returns the time for which it is open.
    pub(crate) fn open_for(&self) -> Duration {
        self.asked.open_for
    }

    /// Returns `true` if its answer is for the next call when the server refuses it.
    pub(crate) fn is_reusable(&self) -> bool {
        self.reusable
    }

    /// Returns why the last answer of the client's own dialog could not be used.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns `true` while nobody has seen it.
    pub(crate) fn is_recording(&self) -> bool {
        matches!(self.state, AskState::Recording)
    }

    /// Returns `true` while somebody is asked and nobody has answered.
    pub(crate) fn is_open(&self) -> bool {
        self.stage() == Some(Stage::Open)
    }

    /// Returns `true` while its answer waits in the record.
    pub(crate) fn is_answered(&self) -> bool {
        self.stage() == Some(Stage::Answered)
    }

    /// Returns `true` once its answer is in the record.
    pub(crate) fn has_answer(&self) -> bool {
        matches!(self.stage(), Some(Stage::Answered | Stage::Delivering))
    }

    fn stage(&self) -> Option<Stage> {
        match &self.state {
            AskState::Recording => None,
            AskState::Recorded { stage, .. } => Some(*stage),
        }
    }

    fn row(&self) -> Option<&Recorded> {
        match &self.state {
            AskState::Recording => None,
            AskState::Recorded { row, .. } => Some(row),
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
        match self.row()?.shown.as_ref()? {
            Shown::Dialog {
                id,
                responded: false,
            } => Some(id),
            Shown::Dialog { .. } | Shown::NextRound => None,
        }
    }

    /// Returns the client's own reply, where what is recorded is it.
    pub(crate) fn own_reply(&self, recorded: &str) -> Option<&ClientReply> {
        let reply = self.row()?.reply.as_ref()?;
        (reply.recorded == recorded).then_some(reply)
    }

    /// Returns the id of the client's own dialog, the last if there were several.
    pub(super) fn dialog(&self) -> Option<&Id> {
        match self.row()?.shown.as_ref()? {
            Shown::Dialog { id, .. } => Some(id),
            Shown::NextRound => None,
        }
    }

    /// It is in the record under this id, and can be answered at this address.
    pub(super) fn recorded(&mut self, id: String, link: Option<String>) {
        let row = Recorded {
            id,
            link,
            shown: None,
            reply: None,
        };
        let stage = Stage::Open;
        self.state = AskState::Recorded { row, stage };
    }

    /// Its answer is for no other call.
    pub(super) fn not_reusable(&mut self) {
        self.reusable = false;
    }

    /// Notes that the client is asked in its own dialog under this id. Returns the id of the dialog before, if there was one.
    pub(super) fn shown_in_dialog(&mut self, id: Id) -> Option<Id> {
        let AskState::Recorded { row, .. } = &mut self.state else {
            return None;
        };
        let responded = false;
        match row.shown.replace(Shown::Dialog { id, responded })? {
            Shown::Dialog { id: before, .. } => Some(before),
            Shown::NextRound => None,
        }
    }

    /// Returns how often the client's own dialog gave an answer that could not be used.
    pub(crate) fn wrong_answers(&self) -> u32 {
        self.wrong
    }

    /// Notes the client's own response.
    pub(crate) fn set_client_reply(&mut self, reply: Option<ClientReply>) {
        if let AskState::Recorded { row, .. } = &mut self.state {
            row.reply = reply;
        }
    }

    /// Keeps what a retry says to it under its key, for a server that may have it with all its members.
    pub(crate) fn keep_retry_reply(&mut self, outcome: &Outcome, responses: &InputResponses) {
        // Content that means nothing is dropped.
        let meant = |said: &&RawValue| {
            outcome.answers().is_some() || members::member(said, "content").is_none()
        };
        let said = responses.get(self.entry()).filter(meant);
        let reply = said.map(|said| ClientReply::new(said.get(), outcome_json(outcome)));
        self.set_client_reply(reply);
    }

    /// Notes that the client has responded to its own dialog, in whatever way.
    pub(crate) fn client_responded(&mut self) {
        if let AskState::Recorded { row, .. } = &mut self.state
            && let Some(Shown::Dialog { responded, .. }) = &mut row.shown
        {
            *responded = true;
        }
    }

    /// Notes that the client is asked in a round, whose retry brings the answer.
    pub(crate) fn shown_in_round(&mut self) {
        if let AskState::Recorded { row, .. } = &mut self.state {
            row.shown = Some(Shown::NextRound);
        }
    }

    /// It belongs to no call any more: the client answers it with a request of its own.
    pub(crate) fn leave_call(&mut self) {
        self.asked.attribution.leave_call();
    }

    /// It is taken to belong to this call now.
    pub(crate) fn reassign(&mut self, to: CallId) {
        self.asked.attribution.reassign(to);
    }

    /// The client has answered. Returns the record's id, where the answer may be the first.
    pub(crate) fn submit(&mut self) -> Option<String> {
        match &mut self.state {
            AskState::Recorded { row, stage } if *stage == Stage::Open => {
                *stage = Stage::Submitting;
                Some(row.id.clone())
            }
            AskState::Recording | AskState::Recorded { .. } => None,
        }
    }

    /// An answer is in the record. `false` where that is known, or the question is not recorded yet.
    pub(crate) fn answered(&mut self) -> bool {
        match &mut self.state {
            AskState::Recorded { stage, .. }
                if matches!(stage, Stage::Open | Stage::Submitting) =>
            {
                *stage = Stage::Answered;
                true
            }
            AskState::Recording | AskState::Recorded { .. } => false,
        }
    }

    /// The answer is being taken out of the record. Returns the record's id.
    pub(crate) fn begin_delivery(&mut self) -> Option<String> {
        match &mut self.state {
            AskState::Recorded { row, stage } => {
                *stage = Stage::Delivering;
                Some(row.id.clone())
            }
            AskState::Recording => None,
        }
    }

    /// Notes an answer that could not be used. `false` when there were too many to ask once more.
    pub(crate) fn was_wrong(&mut self, reason: String) -> bool {
        self.wrong += 1;
        self.reason = Some(reason);
        self.wrong < ATTEMPTS
    }

    /// Returns what is asked, with the reason why it is asked again.
    pub(crate) fn request_again(&self) -> ElicitRequest {
        let mut request = self.asked.request.clone();
        if let Some(reason) = &self.reason {
            let (ElicitRequest::Form { message, .. } | ElicitRequest::Url { message, .. }) =
                &mut request;
            *message = message_again(message, reason);
        }
        request
    }
}

/// A message with the reason why it is asked again.
pub(crate) fn message_again(message: &str, reason: &str) -> String {
    format!("{message}\n\nThe last answer cannot be used: {reason}")
}
