//! A question while it is open: what is asked, where it stands, and what its answer will set going.

use std::collections::HashMap;

use mcp_elicit_core::answer::{CheckError, Outcome};
use mcp_elicit_core::fault::{Finding, PeerFault};
use mcp_elicit_core::form::Form;
use mcp_elicit_core::wire::{Action, ElicitRequest, ElicitResult, Id, Revision};
use serde_json::value::RawValue;

use crate::frame_edit::ErrorResponse;
use crate::{AskId, AskedVia, CallId};

/// One open question.
pub(crate) struct Ask {
    /// The call it came up in, as far as one can tell.
    pub(crate) call: Option<CallId>,
    /// The calls it may belong to instead, some of which may have ended meanwhile.
    pub(crate) others: Vec<CallId>,
    /// The last call that was on its way when it came, where `call` is a guess: no later one is meant.
    pub(crate) newest: Option<CallId>,
    pub(crate) origin: Origin,
    pub(crate) request: ElicitRequest,
    /// Members of its params that are unknown here.
    pub(crate) unknown: Vec<(String, Box<RawValue>)>,
    /// The parsed form, in form mode.
    pub(crate) form: Option<Form>,
    pub(crate) place: AskedVia,
    pub(crate) step: Step,
    /// The record's id, once it is written.
    pub(crate) record: Option<String>,
    /// The address at which a person can answer.
    pub(crate) link: Option<String>,
    /// Its key in the `inputRequests` of a client of the rounds era.
    pub(crate) entry: String,
    /// The way in which the client was asked, if it was.
    pub(crate) shown: Option<Shown>,
    /// `true` if the client has responded to that, in whatever way.
    pub(crate) responded: bool,
    /// The server's own frame, when the client may have it as it is.
    pub(crate) frame: Option<Box<str>>,
    /// The number of answers of the client's own dialog that could not be used.
    pub(crate) wrong: u32,
    /// Why the last of them could not.
    pub(crate) reason: Option<String>,
    /// The client's own response, when the server may have it as it is.
    pub(crate) client_reply: Option<ClientReply>,
    /// `true` if its answer is for the next call when the server refuses it.
    pub(crate) reusable: bool,
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
    /// A link of a `-32042`; the call is made again once it was visited.
    Url,
}

/// A round that the client has as the server wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RoundId(pub(crate) u64);

/// The state of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Being written; nobody has seen it.
    Writing,
    /// Somebody is asked.
    Open,
    /// The client answered; the record decides whether it was the first.
    Submitting,
    /// Somebody answered; the answer is in the record.
    Answered,
    /// The answer is being taken out of the record.
    Delivering,
}

/// The way in which the client was asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shown {
    /// With a pushed request of this id.
    Pushed(Id),
    /// With an `input_required`, whose retry brings the answer.
    Round,
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
    pub(crate) fn insert(&mut self, question: Ask) -> AskId {
        self.last += 1;
        let key = AskId(self.last);
        if let Origin::Pushed { id } = &question.origin {
            self.by_server_id.insert(id.clone(), key);
        }
        self.bytes += size_of(&question.request);
        self.by_key.insert(key, question);
        key
    }

    /// The size of all open questions in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn get(&self, key: AskId) -> Option<&Ask> {
        self.by_key.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: AskId) -> Option<&mut Ask> {
        self.by_key.get_mut(&key)
    }

    /// The question is written under this id.
    pub(crate) fn recorded(&mut self, key: AskId, record: &str) {
        if let Some(question) = self.by_key.get_mut(&key) {
            question.record = Some(record.to_owned());
        }
    }

    /// The server has refused its answer before, or has not: the second refusal ends it.
    pub(crate) fn refused_before(&mut self, key: AskId, refused: bool) {
        if let Some(question) = self.by_key.get_mut(&key) {
            question.reusable &= !refused;
        }
    }

    /// The client is asked with a pushed request of this id.
    pub(crate) fn asked_client(&mut self, key: AskId, id: &Id) {
        if let Some(question) = self.by_key.get_mut(&key) {
            question.responded = false;
            let before = question.shown.replace(Shown::Pushed(id.clone()));
            if let Some(Shown::Pushed(before)) = before {
                self.by_client_id.remove(&before);
            }
            self.by_client_id.insert(id.clone(), key);
        }
    }

    pub(crate) fn remove(&mut self, key: AskId) -> Option<Ask> {
        let question = self.by_key.remove(&key)?;
        self.bytes = self.bytes.saturating_sub(size_of(&question.request));
        if let Origin::Pushed { id } = &question.origin {
            self.by_server_id.remove(id);
        }
        if let Some(Shown::Pushed(id)) = &question.shown {
            self.by_client_id.remove(id);
        }
        Some(question)
    }

    pub(crate) fn by_server_id(&self, id: &Id) -> Option<AskId> {
        self.by_server_id.get(id).copied()
    }

    pub(crate) fn by_client_id(&self, id: &Id) -> Option<AskId> {
        self.by_client_id.get(id).copied()
    }

    pub(crate) fn keys(&self) -> Vec<AskId> {
        let mut keys: Vec<_> = self.by_key.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }
}
