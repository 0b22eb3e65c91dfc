//! The table of rounds that were passed to clients, each until its retry goes to the server.

use std::collections::{BTreeMap, HashMap};

use mcp_elicit_core::wire::{Envelope, Frame, FramePart, Id, InputResponses, members};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::frame_edit::{self, Splice};
use crate::parts::asks::{RoundId, message_again};
use crate::parts::call_budget::{Permit, RoundBytes};
use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::request_state::ServerState;
use crate::{AskId, StreamId, Timestamp};

/// The rounds at clients.
#[derive(Default)]
pub(crate) struct PassedRounds {
    by_id: BTreeMap<RoundId, PassedRound>,
}

/// A round that the client has as the server wrote it.
struct PassedRound {
    /// The bytes of its frame and its state.
    _bytes: RoundBytes,
    /// The state that the server gave.
    server: ServerState,
    /// The round as the server wrote it, for asking again.
    frame: IndexedFrame,
    /// Its questions whose answers have not been taken.
    open: Vec<AskId>,
    progress: Progress,
}

/// The progress of a round.
enum Progress {
    /// Its questions are being recorded, or its retry has failed.
    Inside,
    /// The client has it, under this state.
    AtClient { state: String },
    /// The retry has come, and waits until its answers are recorded.
    Back(Retry),
}

/// The retry of a round.
pub(crate) struct Retry {
    /// Its permit, until it goes to the server as a call.
    _permit: Permit,
    stream: StreamId,
    at: Timestamp,
    request: IndexedFrame,
    /// The client's answers, as the record would have them, by the keys of the round.
    own: ClientAnswers,
    /// The record's answers, by the keys of the round.
    replies: Vec<(String, String)>,
    /// The records of the answers that it delivers.
    records: Vec<String>,
}

/// The answers in a client's retry, by the keys of the round.
#[derive(Default)]
pub(crate) struct ClientAnswers(HashMap<String, Value>);

/// A retry that can go to the server.
pub(crate) struct ReadyRetry {
    stream: StreamId,
    at: Timestamp,
    request: IndexedFrame,
    records: Vec<String>,
}

impl ReadyRetry {
    /// Returns its stream, the time of its arrival, the request for the server and the records of the answers in it.
    pub(crate) fn into_parts(self) -> (StreamId, Timestamp, IndexedFrame, Vec<String>) {
        (self.stream, self.at, self.request, self.records)
    }
}

impl ClientAnswers {
    /// Adds an answer.
    pub(crate) fn add(&mut self, entry: String, action: &Value, content: &Value) {
        self.0.insert(entry, plain(action, content));
    }
}

impl Retry {
    /// Creates a retry that came on this stream, with the client's answers in it.
    pub(crate) fn new(
        mut permit: Permit,
        stream: StreamId,
        at: Timestamp,
        request: IndexedFrame,
        own: ClientAnswers,
    ) -> Self {
        permit.set_bytes(request.size());
        Self {
            _permit: permit,
            stream,
            at,
            request,
            own,
            replies: Vec::new(),
            records: Vec::new(),
        }
    }

    /// Returns the record's answers that the client did not give itself.
    fn others(&self) -> impl Iterator<Item = &(String, String)> {
        self.replies.iter().filter(|(entry, reply)| {
            let reply: Value = serde_json::from_str(reply).unwrap_or_default();
            self.own.0.get(entry) != Some(&plain(&reply["action"], &reply["content"]))
        })
    }

    /// Returns the retry with the record's answers; `None` if it may be sent unchanged.
    fn changed(&self) -> Option<IndexedFrame> {
        self.others().next()?;
        let envelope = Envelope::parse_within(self.request.bytes(), usize::MAX).ok()?;
        let params = envelope.params()?;
        let mut responses = InputResponses::from_params(params)
            .ok()?
            .unwrap_or_default();
        for (entry, reply) in self.others() {
            responses.insert(entry, serde_json::from_str::<Box<RawValue>>(reply).ok()?);
        }
        let params = members::Members::read(params, "params")
            .ok()?
            .with("inputResponses", Some(&responses.to_raw()));
        IndexedFrame::read(envelope.with_body(&params).ok()?).ok()
    }
}

impl PassedRounds {
    /// Begins a round of the server, with the server's state.
    pub(crate) fn begin(
        &mut self,
        id: RoundId,
        server: ServerState,
        frame: IndexedFrame,
        bytes: RoundBytes,
    ) {
        let round = PassedRound {
            _bytes: bytes,
            server,
            frame,
            open: Vec::new(),
            progress: Progress::Inside,
        };
        self.by_id.insert(id, round);
    }

    /// Returns `true` while the client has no round.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Adds a question to a round.
    pub(crate) fn add(&mut self, id: RoundId, ask: AskId) {
        if let Some(round) = self.by_id.get_mut(&id) {
            round.open.push(ask);
        }
    }

    /// Drops a round.
    pub(crate) fn remove(&mut self, id: RoundId) {
        self.by_id.remove(&id);
    }

    /// Returns the server's state of a round.
    pub(crate) fn server_state(&self, id: RoundId) -> Option<ServerState> {
        self.by_id.get(&id).map(|round| round.server.clone())
    }

    /// Records that the client has the round under this state.
    pub(crate) fn sent(&mut self, id: RoundId, state: String) {
        if let Some(round) = self.by_id.get_mut(&id) {
            round.progress = Progress::AtClient { state };
        }
    }

    /// Returns the round that the client has under this state, with its open questions.
    pub(crate) fn by_state(&self, state: &str) -> Option<(RoundId, Vec<AskId>)> {
        let has = |round: &PassedRound| matches!(&round.progress, Progress::AtClient { state: known } if known == state);
        let mut rounds = self.by_id.iter();
        let (id, round) = rounds.find(|(_, round)| has(round))?;
        Some((*id, round.open.clone()))
    }

    /// Returns the round as the server wrote it.
    pub(crate) fn frame(&self, id: RoundId) -> Option<IndexedFrame> {
        self.by_id.get(&id).map(|round| round.frame.clone())
    }

    /// Returns the round again as the response to the request of this id, under another state, with the reasons why its
    /// questions are asked again.
    pub(crate) fn again(
        &self,
        round: RoundId,
        id: &Id,
        state: &str,
        reasons: &[(String, String)],
    ) -> Option<String> {
        let frame = self.by_id.get(&round)?.frame.frame();
        let range = frame.range(FramePart::Result)?.clone();
        let result = with_reasons(result_with_state(frame, state)?, reasons)?;
        let result = Splice::new(range, result.get());
        let id = frame_edit::id_splice(frame, id);
        Some(frame_edit::with_splices(
            frame.text(),
            id.iter().chain([&result]),
        ))
    }

    /// Records that the retry of a round has come.
    pub(crate) fn came_back(&mut self, id: RoundId, retry: Retry) {
        if let Some(round) = self.by_id.get_mut(&id) {
            round.progress = Progress::Back(retry);
        }
    }

    /// Returns `true` while a retry waits for the answers of this round.
    pub(crate) fn is_back(&self, id: RoundId) -> bool {
        let round = self.by_id.get(&id);
        round.is_some_and(|round| matches!(round.progress, Progress::Back(_)))
    }

    /// Removes a question, whose answer was taken or which has ended.
    pub(crate) fn remove_ask(&mut self, id: RoundId, ask: AskId) {
        if let Some(round) = self.by_id.get_mut(&id) {
            round.open.retain(|known| *known != ask);
            if round.open.is_empty() && !matches!(round.progress, Progress::Back(_)) {
                self.by_id.remove(&id);
            }
        }
    }

    /// Adds a recorded answer to the retry of a round. With the last one, returns the retry.
    pub(crate) fn answered(
        &mut self,
        id: RoundId,
        entry: &str,
        reply: String,
        record: String,
    ) -> Option<ReadyRetry> {
        let round = self.by_id.get_mut(&id)?;
        let Progress::Back(retry) = &mut round.progress else {
            return None;
        };
        retry.replies.push((entry.to_owned(), reply));
        retry.records.push(record);
        if !round.open.is_empty() {
            return None;
        }
        let Progress::Back(retry) = self.by_id.remove(&id)?.progress else {
            return None;
        };
        Some(ReadyRetry {
            stream: retry.stream,
            at: retry.at,
            request: retry.changed().unwrap_or(retry.request),
            records: retry.records,
        })
    }

    /// Fails the retry of a round. Returns its stream, its request and the records of the answers that it would have
    /// carried, if one waits.
    pub(crate) fn fail(&mut self, id: RoundId) -> Option<(StreamId, IndexedFrame, Vec<String>)> {
        let round = self.by_id.get_mut(&id)?;
        let progress = std::mem::replace(&mut round.progress, Progress::Inside);
        if round.open.is_empty() {
            self.by_id.remove(&id);
        }
        match progress {
            Progress::Back(retry) => Some((retry.stream, retry.request, retry.records)),
            Progress::AtClient { state } => {
                if let Some(round) = self.by_id.get_mut(&id) {
                    round.progress = Progress::AtClient { state };
                }
                None
            }
            Progress::Inside => None,
        }
    }
}

fn plain(action: &Value, content: &Value) -> Value {
    json!([action, content])
}

/// Returns the round with another state; everything else is unchanged.
pub(crate) fn with_state(round: Frame<'_>, state: &str) -> Option<IndexedFrame> {
    let changed = result_with_state(round, state)?;
    let range = round.range(FramePart::Result)?;
    IndexedFrame::read(frame_edit::spliced(round.text(), range, changed.get())).ok()
}

/// Returns the result of a round with another state.
fn result_with_state(round: Frame<'_>, state: &str) -> Option<Box<RawValue>> {
    let result = members::Members::read(round.result()?, "result").ok()?;
    Some(result.with("requestState", Some(&members::raw_text(state))))
}

/// Returns the result of a round with the reasons why its questions are asked again; everything else is unchanged.
fn with_reasons(mut result: Box<RawValue>, reasons: &[(String, String)]) -> Option<Box<RawValue>> {
    for (entry, reason) in reasons {
        let all = members::Members::read(&result, "result").ok()?;
        let requests = members::Members::read(all.get("inputRequests")?, "requests").ok()?;
        let request = members::Members::read(requests.get(entry)?, "request").ok()?;
        let params = members::Members::read(request.get("params")?, "params").ok()?;
        let message = message_again(&params.need_text("message").ok()?, reason);
        let params = params.with("message", Some(&members::raw_text(&message)));
        let request = request.with("params", Some(&params));
        let requests = requests.with(entry, Some(&request));
        result = all.with("inputRequests", Some(&requests));
    }
    Some(result)
}
