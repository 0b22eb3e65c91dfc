//! Open questions: their content, their calls, and the state of their answers.
//!
//! | file | contents |
//! | --- | --- |
//! | `ask` | one question: its parts, and its state from its arrival to its end |
//! | `attribution` | the calls that it may belong to |
//! | `origin` | the way in which the server asked |
//! | `wrong_answers` | the unusable answers of a client |
//! | `reply_check` | the check of a reply against a question |

mod ask;
mod attribution;
mod origin;
mod reply_check;
mod wrong_answers;

use std::collections::{BTreeSet, HashMap};

use mcp_elicit_core::answer::Outcome;
use mcp_elicit_core::wire::Id;
use rustc_hash::FxHashMap;

use crate::parts::calls::{Call, Calls};
use crate::parts::effect_queue::EffectQueue;
use crate::{AccessNumber, AskId, AskedVia, CallId, Effect, Timestamp};
pub(crate) use ask::{Ask, ClientReply, NewAsk, message_again};
pub(crate) use attribution::Attribution;
pub(crate) use origin::{Origin, RoundId};
pub(crate) use reply_check::UnusableReply;
pub(crate) use wrong_answers::{Attempts, WrongAnswer};

/// The open questions by all of their names.
#[derive(Default)]
pub(crate) struct Asks {
    // The keys are the relay's own numbers, which no peer chooses.
    by_key: FxHashMap<AskId, Ask>,
    by_server_id: HashMap<Id, AskId>,
    by_client_id: HashMap<Id, AskId>,
    bytes: usize,
    last: u64,
    /// The number of questions that have ended.
    ended: u64,
}

impl Asks {
    /// Opens a question, which is to be recorded.
    pub(crate) fn open(&mut self, ask: NewAsk) -> AskId {
        self.last += 1;
        let key = AskId(self.last);
        let ask = Ask::new(ask);
        if let Origin::Pushed { id } = ask.origin() {
            self.by_server_id.insert(id.clone(), key);
        }
        self.bytes += ask.size();
        self.by_key.insert(key, ask);
        key
    }

    /// Returns a number that increases when a question is asked or ends.
    pub(crate) fn changes(&self) -> u64 {
        self.last + self.ended
    }

    /// Returns the number of questions that have ended or whose answer was sent.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// Returns the size of all open questions in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns an open question.
    pub(crate) fn get(&self, key: AskId) -> Option<&Ask> {
        self.by_key.get(&key)
    }

    /// Returns an open question mutably.
    pub(crate) fn get_mut(&mut self, key: AskId) -> Option<&mut Ask> {
        self.by_key.get_mut(&key)
    }

    /// Returns the open questions of these records.
    pub(crate) fn of_records(&self, records: &[String]) -> Vec<AskId> {
        let is_one = |ask: &Ask| {
            let record = ask.record();
            record.is_some_and(|record| records.iter().any(|known| known == record))
        };
        let found = self.by_key.iter().filter(|(_, ask)| is_one(ask));
        found.map(|(key, _)| *key).collect()
    }

    /// Returns the call of a question, as far as it is known.
    pub(crate) fn call_of(&self, key: AskId) -> Option<CallId> {
        self.get(key)?.call()
    }

    /// Returns the open questions that are, or may be, this call's.
    pub(crate) fn of_call(&self, call: Option<&Call>) -> impl Iterator<Item = &Ask> {
        let keys = call.into_iter().flat_map(Call::possible_asks);
        keys.filter_map(|ask| self.get(ask))
    }

    /// Returns `true` if a question of this call waits for people.
    pub(crate) fn waits_for_people(&self, call: Option<&Call>) -> bool {
        let mut questions = self.of_call(call);
        questions.any(|question| question.via() == AskedVia::People)
    }

    /// Records an answer of the client, with its own reply if the server may receive it unchanged. The record decides
    /// whether it was the first.
    pub(crate) fn client_answered(
        &mut self,
        key: AskId,
        outcome: Outcome,
        reply: Option<ClientReply>,
        effects: &mut EffectQueue,
    ) {
        let ask = self.by_key.get_mut(&key);
        if let Some(record) = ask.and_then(|ask| ask.submit(reply)) {
            effects.push(Effect::Submit {
                question: key,
                record,
                outcome,
            });
        }
    }

    /// Takes the answers of these questions, which may be of these calls, out of the record.
    pub(crate) fn begin_delivery(
        &mut self,
        questions: Vec<AskId>,
        calls: &Calls,
        effects: &mut EffectQueue,
    ) {
        let of_calls = questions
            .iter()
            .filter_map(|key| self.by_key.get(key)?.call());
        let accesses: BTreeSet<AccessNumber> = of_calls
            .filter_map(|call| calls.get(call))
            .map(Call::access)
            .filter(|access| access.is_some())
            .collect();
        let mut records = Vec::new();
        for key in &questions {
            let ask = self.by_key.get_mut(key);
            records.extend(ask.and_then(Ask::begin_delivery));
        }
        effects.push(Effect::BeginDelivery {
            questions,
            records,
            accesses: accesses.into_iter().collect(),
        });
    }

    /// Records that the question is in the record under this id, and can be answered at this address. Returns it,
    /// unless it has ended.
    pub(crate) fn recorded(
        &mut self,
        key: AskId,
        id: String,
        link: Option<String>,
    ) -> Result<&Ask, String> {
        let Some(ask) = self.by_key.get_mut(&key) else {
            return Err(id);
        };
        ask.recorded(id, link);
        Ok(ask)
    }

    /// Records that the server has refused its answer before: a second refusal ends it.
    pub(crate) fn refused_before(&mut self, key: AskId) {
        if let Some(ask) = self.by_key.get_mut(&key) {
            ask.not_reusable();
        }
    }

    /// Records that the client is asked with a pushed request of this id.
    pub(crate) fn shown_in_dialog(&mut self, key: AskId, id: &Id, now: Timestamp) {
        if let Some(ask) = self.by_key.get_mut(&key)
            && !ask.is_recording()
        {
            if let Some(before) = ask.shown_in_dialog(id.clone(), now) {
                self.by_client_id.remove(&before);
            }
            self.by_client_id.insert(id.clone(), key);
        }
    }

    /// Moves a question from the client's own dialog to people: a late response to the dialog finds nothing. Returns the
    /// id of a dialog that is still open.
    pub(crate) fn move_to_people(&mut self, key: AskId) -> Option<Id> {
        let (id, open) = self.by_key.get_mut(&key)?.move_to_people();
        if let Some(id) = id {
            self.by_client_id.remove(&id);
        }
        open
    }

    /// Removes a question that has ended or whose answer is being sent.
    pub(crate) fn remove(&mut self, key: AskId) -> Option<Ask> {
        let ask = self.by_key.remove(&key)?;
        self.ended += 1;
        self.bytes = self.bytes.saturating_sub(ask.size());
        if let Origin::Pushed { id } = ask.origin() {
            self.by_server_id.remove(id);
        }
        if let Some(id) = ask.dialog() {
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

    /// Returns the number of open questions.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }
}
