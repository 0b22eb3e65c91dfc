//! Open questions: what is asked, in which call, and how far the answer is.

use crate::attribution::Attribution;
use std::collections::HashMap;
use std::time::Duration;

use mcp_elicit_core::answer::{CheckError, Outcome};
use mcp_elicit_core::fault::{Finding, PeerFault};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::wire::{Action, ElicitRequest, ElicitResult, Id, Revision};
use serde_json::value::RawValue;

use crate::frame_edit::ErrorResponse;
use crate::{AskId, AskedVia, CallId};

/// One open question, from its arrival until its answer is out or it has ended.
pub(crate) struct Ask {
    attribution: Attribution,
    origin: Origin,
    request: ElicitRequest,
    unknown: Vec<(String, Box<RawValue>)>,
    form: Option<Form>,
    via: AskedVia,
    entry: String,
    frame: Option<Box<str>>,
    open_for: Duration,
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
    pub(crate) attribution: Attribution,
    /// The way in which the server asked.
    pub(crate) origin: Origin,
    /// The question.
    pub(crate) request: ElicitRequest,
    /// Members of its params that are unknown here.
    pub(crate) unknown: Vec<(String, Box<RawValue>)>,
    /// The parsed form, in form mode.
    pub(crate) form: Option<Form>,
    /// The way in which it is asked.
    pub(crate) via: AskedVia,
    /// Its key in the `inputRequests` of a client of the rounds era.
    pub(crate) entry: String,
    /// The server's own frame, when the client may have it as it is.
    pub(crate) frame: Option<Box<str>>,
    /// The time for which it is open.
    pub(crate) open_for: Duration,
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
    pub(crate) frame: Option<Box<str>>,
    /// The `ElicitResult` in it, JSON.
    pub(crate) result: Box<str>,
    /// The record's entry if this answer was the first.
    pub(crate) recorded: String,
}

/// The way in which the server asked, and in which it gets the answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// A pushed request with this id.
    Pushed { id: Id },
    /// An entry of an `input_required` that the gateway answers itself.
    Round { entry: String },
    /// An entry of an `input_required` that the client answers with its retry.
    ClientRound { entry: String, round: RoundId },
    /// The gateway itself, before the call goes to the server.
    Approval,
    /// A link of a `-32042`; the call is made again once it was visited.
    Url,
}

/// A round that the client has as the server wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RoundId(pub(crate) u64);

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

/// The reason why a reply of a client settles nothing.
pub(crate) enum UnusableReply {
    /// It is not what the protocol says.
    Malformed(Box<ErrorResponse>),
    /// It does not answer what was asked, and may be asked for again.
    Wrong {
        /// The error for the server in the end.
        refusal: Box<ErrorResponse>,
        /// The reason for the person.
        reason: String,
    },
}

impl Ask {
    /// Checks a reply against what was asked.
    pub(crate) fn check(
        &self,
        reply: &ElicitResult,
        revision: Revision,
    ) -> Result<Outcome, UnusableReply> {
        match (reply.action(), &self.form) {
            (Action::Accept, Some(form)) => match form.check_text(reply.content_or_empty()) {
                Ok(answers) => Ok(Outcome::Accept(answers)),
                Err(error) => Err(UnusableReply::Wrong {
                    refusal: Box::new(ErrorResponse::fault(
                        wrong(&error, self.wrong + 1),
                        revision,
                    )),
                    reason: error.to_string(),
                }),
            },
            (Action::Accept, None) => Ok(Outcome::Visit),
            (Action::Decline, _) => Ok(Outcome::Decline),
            (Action::Cancel, _) => Ok(Outcome::Cancel),
        }
    }

    /// Returns the call that it came up in, as far as one can tell.
    pub(crate) fn call(&self) -> Option<CallId> {
        self.attribution.call
    }

    /// Returns the calls that it may belong to instead, some of which may have ended meanwhile.
    pub(crate) fn others(&self) -> &[CallId] {
        &self.attribution.others
    }

    /// Returns the call that it came up in, and those that it may belong to instead.
    pub(crate) fn candidates(&self) -> Vec<CallId> {
        self.attribution.candidates()
    }

    /// Returns the last call that was on its way when it came, where the call is a guess.
    pub(crate) fn newest(&self) -> Option<CallId> {
        self.attribution.newest
    }

    /// Returns the way in which the server asked.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the question.
    pub(crate) fn request(&self) -> &ElicitRequest {
        &self.request
    }

    /// Returns the members of its params that are unknown here.
    pub(crate) fn unknown(&self) -> &[(String, Box<RawValue>)] {
        &self.unknown
    }

    /// Returns the parsed form, in form mode.
    pub(crate) fn form(&self) -> Option<&Form> {
        self.form.as_ref()
    }

    /// Returns the way in which it is asked.
    pub(crate) fn via(&self) -> AskedVia {
        self.via
    }

    /// Returns its key in the `inputRequests` of a client of the rounds era.
    pub(crate) fn entry(&self) -> &str {
        &self.entry
    }

    /// Returns the server's own frame, when the client may have it as it is.
    pub(crate) fn server_frame(&self) -> Option<&str> {
        self.frame.as_deref()
    }

    /// Returns the time for which it is open.
    pub(crate) fn open_for(&self) -> Duration {
        self.open_for
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

    /// Returns the client's own response, when the server may have it as it is.
    pub(crate) fn client_reply(&self) -> Option<&ClientReply> {
        self.row()?.reply.as_ref()
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
        self.attribution.call = None;
    }

    /// It is taken to belong to this call now.
    pub(crate) fn reassign(&mut self, to: CallId) {
        self.attribution.call = Some(to);
        self.attribution.others.retain(|call| *call != to);
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
        let mut request = self.request.clone();
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

/// The size of a question in bytes, as it waits.
pub(crate) fn size_of(request: &ElicitRequest) -> usize {
    match request {
        ElicitRequest::Form { message, schema } => message.len() + schema.get().len(),
        ElicitRequest::Url { message, url, .. } => message.len() + url.len(),
    }
}

fn wrong(error: &CheckError, attempts: u32) -> PeerFault {
    let violations = match error {
        CheckError::Violations(violations) => Finding::from_violations(violations),
        CheckError::Broken(_) | CheckError::TooLarge { .. } => Vec::new(),
    };
    PeerFault::WrongAnswer {
        violations,
        attempts,
    }
}

/// The open questions by every name they go by.
#[derive(Default)]
pub(crate) struct Asks {
    by_key: HashMap<AskId, Ask>,
    by_server_id: HashMap<Id, AskId>,
    by_client_id: HashMap<Id, AskId>,
    bytes: usize,
    last: u64,
}

impl Asks {
    /// Opens a question, which is to be recorded.
    pub(crate) fn open(&mut self, ask: NewAsk) -> AskId {
        self.last += 1;
        let key = AskId(self.last);
        if let Origin::Pushed { id } = &ask.origin {
            self.by_server_id.insert(id.clone(), key);
        }
        self.bytes += size_of(&ask.request);
        let ask = Ask {
            // The answer to one that may be another call's is found by none.
            reusable: !ask.attribution.is_ambiguous(),
            attribution: ask.attribution,
            origin: ask.origin,
            request: ask.request,
            unknown: ask.unknown,
            form: ask.form,
            via: ask.via,
            entry: ask.entry,
            frame: ask.frame,
            open_for: ask.open_for,
            wrong: 0,
            reason: None,
            state: AskState::Recording,
        };
        self.by_key.insert(key, ask);
        key
    }

    /// The size of all open questions in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns a question that is open.
    pub(crate) fn get(&self, key: AskId) -> Option<&Ask> {
        self.by_key.get(&key)
    }

    /// Returns a question that is open, for a step of its own.
    pub(crate) fn get_mut(&mut self, key: AskId) -> Option<&mut Ask> {
        self.by_key.get_mut(&key)
    }

    /// The question is in the record under this id, and can be answered at this address. Returns it, unless it has ended.
    pub(crate) fn recorded(
        &mut self,
        key: AskId,
        id: String,
        link: Option<String>,
    ) -> Result<&Ask, String> {
        let Some(ask) = self.by_key.get_mut(&key) else {
            return Err(id);
        };
        let row = Recorded {
            id,
            link,
            shown: None,
            reply: None,
        };
        ask.state = AskState::Recorded {
            row,
            stage: Stage::Open,
        };
        Ok(ask)
    }

    /// The server has refused its answer before: the second refusal ends it.
    pub(crate) fn refused_before(&mut self, key: AskId) {
        if let Some(ask) = self.by_key.get_mut(&key) {
            ask.reusable = false;
        }
    }

    /// The client is asked with a pushed request of this id.
    pub(crate) fn shown_in_dialog(&mut self, key: AskId, id: &Id) {
        if let Some(ask) = self.by_key.get_mut(&key)
            && let AskState::Recorded { row, .. } = &mut ask.state
        {
            let dialog = Shown::Dialog {
                id: id.clone(),
                responded: false,
            };
            if let Some(Shown::Dialog { id: before, .. }) = row.shown.replace(dialog) {
                self.by_client_id.remove(&before);
            }
            self.by_client_id.insert(id.clone(), key);
        }
    }

    /// Takes a question out, whose answer is on its way or which has ended.
    pub(crate) fn remove(&mut self, key: AskId) -> Option<Ask> {
        let ask = self.by_key.remove(&key)?;
        self.bytes = self.bytes.saturating_sub(size_of(&ask.request));
        if let Origin::Pushed { id } = &ask.origin {
            self.by_server_id.remove(id);
        }
        if let Some(Shown::Dialog { id, .. }) = ask.row().and_then(|row| row.shown.as_ref()) {
            self.by_client_id.remove(id);
        }
        Some(ask)
    }

    /// Returns the question that the server knows by this id.
    pub(crate) fn by_server_id(&self, id: &Id) -> Option<AskId> {
        self.by_server_id.get(id).copied()
    }

    /// Returns the question that the client knows by this id.
    pub(crate) fn by_client_id(&self, id: &Id) -> Option<AskId> {
        self.by_client_id.get(id).copied()
    }

    /// Returns all open questions, oldest first.
    pub(crate) fn keys(&self) -> Vec<AskId> {
        let mut keys: Vec<_> = self.by_key.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    /// Returns how many questions are open.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }
}
