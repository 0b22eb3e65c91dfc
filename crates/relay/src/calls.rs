//! The client's requests on their way: who waits for what, and where the answer goes.

use mcp_elicit_core::wire::Frame;
use mcp_elicit_core::wire::FramePart;
use std::collections::HashMap;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use mcp_elicit_core::wire::{CallDefect, CallFrame, Capability, Id, InputRequest};
use sha2::{Digest as _, Sha256};

use crate::log_levels::LogLevel;
use crate::repeated_rounds::AnsweredRound;
use crate::retries::RetryAnswers;
use crate::server_round::Round;
use crate::{AskId, CallId, CallKind, CallSummary, StreamId, Timestamp};
use mcp_elicit_core::wire::frame::FrameIndex;

/// One request of the client.
pub(crate) struct Call {
    waiter: Waiter,
    progress: Progress,
    client_id: Id,
    upstream_id: Id,
    kind: Option<CallKind>,
    /// The request as it went to the server, kept when questions may come up in it.
    kept: Option<Bytes>,
    capability: Capability,
    /// The token that the client wants progress on.
    token: Option<Id>,
    /// The token that the server reports progress on.
    upstream_token: Option<Id>,
    /// The last progress told to the client.
    told_progress: f64,
    /// When it came.
    since: Timestamp,
    /// When it came, or was made again last.
    came_at: Timestamp,
    /// Questions that are open in it.
    asks: Vec<AskId>,
    /// Open questions that are taken to be another call's and may be this one's.
    maybe: Vec<AskId>,
    /// The number of rounds that it has asked.
    rounds: u32,
    turn: Turn,
    /// Records whose answers go to the server when the call is made again.
    delivers: Vec<String>,
    /// The server's last answer that required links to be visited (`-32042`), as it wrote it.
    url_demand: Option<String>,
    log_level: Option<LogLevel>,
    lists_tools: bool,
    /// The round that its client has.
    presented: Vec<(String, InputRequest)>,
    /// The rounds that its client has answered.
    answered: Vec<AnsweredRound>,
    retry_answers: Option<RetryAnswers>,
    /// The keys that its questions have had in `inputRequests`, and how often each was asked.
    asked_keys: HashMap<String, u32>,
    /// The call, or the reason that it cannot be shown; read when first needed.
    summary: Option<Result<CallSummary, CallDefect>>,
}

/// The client's side of a call.
#[derive(Clone, Copy)]
enum Waiter {
    /// The client waits on this stream.
    Client {
        stream: StreamId,
        /// `true` while it is held for a person.
        held: bool,
    },
    /// The call went back to the client, or the client is gone.
    Nobody,
}

/// The server's side of a call.
enum Progress {
    /// It waits for its turn; the server knows nothing of it.
    Queued(Queued),
    /// It is with the server, or waits for questions that are put outside rounds.
    Running,
    /// The server has asked in a round, which the gateway answers.
    Collecting(Round),
    /// The server has asked in a round, which goes to the client once its questions are recorded.
    PassingRound(String),
    /// The response is there and nobody waits for it.
    Finished(String),
}

/// The parts of a call that waits for its turn.
struct Queued {
    /// Since when it waits.
    since: Timestamp,
    /// The request as the client wrote it.
    original: Bytes,
}

/// The place of a call among those that take turns.
#[derive(Clone, Copy, Default)]
struct Turn {
    /// `true` if it is one of those that take turns, and has its own.
    own: bool,
    /// `true` if it was seen to ask.
    asked: bool,
}

impl Call {
    /// A call that goes to the server as it came.
    pub(crate) fn new(now: Timestamp, stream: StreamId, id: Id, kind: Option<CallKind>) -> Self {
        Self {
            waiter: Waiter::Client {
                stream,
                held: false,
            },
            progress: Progress::Running,
            client_id: id.clone(),
            upstream_id: id,
            kind,
            kept: None,
            capability: Capability::NONE,
            token: None,
            upstream_token: None,
            told_progress: 0.0,
            since: now,
            came_at: now,
            asks: Vec::new(),
            maybe: Vec::new(),
            rounds: 0,
            turn: Turn::default(),
            delivers: Vec::new(),
            url_demand: None,
            log_level: None,
            lists_tools: false,
            presented: Vec::new(),
            answered: Vec::new(),
            retry_answers: None,
            asked_keys: HashMap::new(),
            summary: None,
        }
    }

    /// Returns the stream for its answer; `None` while nobody waits.
    pub(crate) fn stream(&self) -> Option<StreamId> {
        match self.waiter {
            Waiter::Client { stream, .. } => Some(stream),
            Waiter::Nobody => None,
        }
    }

    /// Returns `true` while it is held for a person.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.waiter, Waiter::Client { held: true, .. })
    }

    /// Begins to hold it. `false` where nobody waits or it is held already.
    pub(crate) fn hold(&mut self) -> bool {
        match &mut self.waiter {
            Waiter::Client { held, .. } if !*held => {
                *held = true;
                true
            }
            Waiter::Client { .. } | Waiter::Nobody => false,
        }
    }

    /// Ends the hold. `false` where it was not held.
    pub(crate) fn end_hold(&mut self) -> bool {
        match &mut self.waiter {
            Waiter::Client { held, .. } => std::mem::take(held),
            Waiter::Nobody => false,
        }
    }

    /// Nobody waits for it any more. Returns the stream where the client waited.
    pub(crate) fn detach(&mut self) -> Option<StreamId> {
        let stream = self.stream();
        self.waiter = Waiter::Nobody;
        stream
    }

    /// The client has made it again with this id and waits on this stream.
    pub(crate) fn attach(&mut self, now: Timestamp, stream: StreamId, id: Option<Id>) {
        self.waiter = Waiter::Client {
            stream,
            held: self.is_held(),
        };
        self.came_at = now;
        if let Some(id) = id {
            self.client_id = id;
        }
    }

    /// Returns the id that the client knows it by.
    pub(crate) fn client_id(&self) -> &Id {
        &self.client_id
    }

    /// Returns the id that the server knows it by.
    pub(crate) fn upstream_id(&self) -> &Id {
        &self.upstream_id
    }

    /// Sets the id that the server is to know it by.
    pub(crate) fn set_upstream_id(&mut self, id: Id) {
        self.upstream_id = id;
    }

    /// Returns the kind of call, where questions may come up in it.
    pub(crate) fn kind(&self) -> Option<CallKind> {
        self.kind
    }

    /// Returns the modes that the client can ask in, in this call.
    pub(crate) fn capability(&self) -> Capability {
        self.capability
    }

    /// Sets the modes that the client can ask in, in this call.
    pub(crate) fn set_capability(&mut self, capability: Capability) {
        self.capability = capability;
    }

    /// Returns the token that the client wants progress on.
    pub(crate) fn token(&self) -> Option<&Id> {
        self.token.as_ref()
    }

    /// Returns the token that the server reports progress on.
    pub(crate) fn upstream_token(&self) -> Option<&Id> {
        self.upstream_token.as_ref()
    }

    /// Sets the token that the client wants progress on.
    pub(crate) fn set_token(&mut self, token: Option<Id>) {
        self.token = token;
    }

    /// Sets the token that the server reports progress on.
    pub(crate) fn set_upstream_token(&mut self, token: Id) {
        self.upstream_token = Some(token);
    }

    /// Notes the progress that the server reports.
    pub(crate) fn note_progress(&mut self, progress: Option<f64>) {
        self.told_progress = progress.unwrap_or(self.told_progress);
    }

    /// Adds a small step to the last progress, and returns it.
    pub(crate) fn step_progress(&mut self, step: f64) -> f64 {
        self.told_progress += step;
        self.told_progress
    }

    /// Returns when it came.
    pub(crate) fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns when it came, or was made again last.
    pub(crate) fn came_at(&self) -> Timestamp {
        self.came_at
    }

    /// Returns the questions that are open in it.
    pub(crate) fn asks(&self) -> &[AskId] {
        &self.asks
    }

    /// Returns the open questions that are its own, and those that may be.
    pub(crate) fn possible_asks(&self) -> impl Iterator<Item = AskId> {
        self.asks.iter().chain(&self.maybe).copied()
    }

    /// Returns `true` if a question is open that is, or may be, its own.
    pub(crate) fn may_wait_for_answer(&self) -> bool {
        !self.asks.is_empty() || !self.maybe.is_empty()
    }

    /// Adds a question that it asks.
    pub(crate) fn add_ask(&mut self, ask: AskId) {
        self.maybe.retain(|known| *known != ask);
        self.asks.push(ask);
    }

    /// Adds a question that may be its own.
    pub(crate) fn add_possible_ask(&mut self, ask: AskId) {
        self.maybe.push(ask);
    }

    /// Removes a question of its own.
    pub(crate) fn remove_ask(&mut self, ask: AskId) {
        self.asks.retain(|known| *known != ask);
    }

    /// Removes a question that could have been its own.
    pub(crate) fn remove_possible_ask(&mut self, ask: AskId) {
        self.maybe.retain(|known| *known != ask);
    }

    /// It waits for its turn.
    pub(crate) fn enqueue(&mut self, since: Timestamp, original: Bytes) {
        self.progress = Progress::Queued(Queued { since, original });
    }

    /// Its turn has come.
    pub(crate) fn dequeue(&mut self) {
        self.progress = Progress::Running;
    }

    /// Returns since when it waits for its turn, where it does and another connection could take it.
    pub(crate) fn movable_since(&self) -> Option<Timestamp> {
        match &self.progress {
            Progress::Queued(queued) if self.stream().is_some() && self.retry_answers.is_none() => {
                Some(queued.since)
            }
            _ => None,
        }
    }

    /// Returns the stream and the request as the client wrote it, of a call that waits for its turn.
    pub(crate) fn into_queued(self) -> Option<(StreamId, Bytes)> {
        let stream = self.stream()?;
        match self.progress {
            Progress::Queued(queued) => Some((stream, queued.original)),
            _ => None,
        }
    }

    /// Returns `true` if it is one of those that take turns, and has its own.
    pub(crate) fn has_turn(&self) -> bool {
        self.turn.own
    }

    /// Sets whether it has a turn of its own.
    pub(crate) fn set_turn(&mut self, own: bool) {
        self.turn.own = own;
    }

    /// Notes that it was seen to ask: it has its turn until it ends, though it did not wait for one.
    pub(crate) fn seen_asking(&mut self) {
        self.turn = Turn {
            own: true,
            asked: true,
        };
    }

    /// Ends its turn. `true` if it had one and did not ask.
    pub(crate) fn end_turn(&mut self) -> bool {
        std::mem::take(&mut self.turn.own) && !self.turn.asked
    }

    /// Counts a round. Returns how many it has asked.
    pub(crate) fn count_round(&mut self) -> u32 {
        self.rounds += 1;
        self.rounds
    }

    /// Returns the number of rounds that it has asked.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The gateway answers a round of the server.
    pub(crate) fn collect(&mut self, round: Round) {
        self.progress = Progress::Collecting(round);
    }

    /// Returns the round that the gateway answers.
    pub(crate) fn round(&self) -> Option<&Round> {
        match &self.progress {
            Progress::Collecting(round) => Some(round),
            _ => None,
        }
    }

    /// Returns the round that the gateway answers, for an answer.
    pub(crate) fn round_mut(&mut self) -> Option<&mut Round> {
        match &mut self.progress {
            Progress::Collecting(round) => Some(round),
            _ => None,
        }
    }

    /// Takes out the round that the gateway has answered: the call is made again.
    pub(crate) fn take_round(&mut self) -> Option<Round> {
        match std::mem::replace(&mut self.progress, Progress::Running) {
            Progress::Collecting(round) => Some(round),
            other => {
                self.progress = other;
                None
            }
        }
    }

    /// A round of the server goes to the client once its questions are recorded.
    pub(crate) fn pass_round(&mut self, text: String) {
        self.url_demand = None;
        self.progress = Progress::PassingRound(text);
    }

    /// Takes out the round that goes to the client; its questions are the client's to answer with its retry.
    pub(crate) fn take_passing_round(&mut self) -> Option<String> {
        match std::mem::replace(&mut self.progress, Progress::Running) {
            Progress::PassingRound(text) => {
                self.asks.clear();
                Some(text)
            }
            other => {
                self.progress = other;
                None
            }
        }
    }

    /// Returns the server's last answer that required links to be visited.
    pub(crate) fn url_demand(&self) -> Option<&str> {
        self.url_demand.as_deref()
    }

    /// Keeps an answer of the server that requires links to be visited.
    pub(crate) fn set_url_demand(&mut self, text: String) {
        self.url_demand = Some(text);
    }

    /// The response is there and nobody waits for it.
    pub(crate) fn finish(&mut self, response: String) {
        self.progress = Progress::Finished(response);
    }

    /// Returns `true` if the response is there.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.progress, Progress::Finished(_))
    }

    /// Returns the response that came while nobody waited, with who waits now.
    pub(crate) fn take_finished(&mut self) -> Option<(String, StreamId, Id)> {
        match std::mem::replace(&mut self.progress, Progress::Running) {
            Progress::Finished(response) => {
                Some((response, self.stream()?, self.client_id.clone()))
            }
            other => {
                self.progress = other;
                None
            }
        }
    }

    /// Adds records whose answers go to the server when the call is made again.
    pub(crate) fn add_deliveries(&mut self, records: Option<String>) {
        self.delivers.extend(records);
    }

    /// Takes out the records whose answers go to the server when the call is made again.
    pub(crate) fn take_deliveries(&mut self) -> Vec<String> {
        std::mem::take(&mut self.delivers)
    }

    /// Returns the level from which on it wants log messages.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// Sets the level from which on it wants log messages.
    pub(crate) fn set_log_level(&mut self, level: Option<LogLevel>) {
        self.log_level = level;
    }

    /// Returns `true` if it asks which tools there are.
    pub(crate) fn lists_tools(&self) -> bool {
        self.lists_tools
    }

    /// Sets whether it asks which tools there are.
    pub(crate) fn set_lists_tools(&mut self, lists: bool) {
        self.lists_tools = lists;
    }

    /// Notes the round that its client has.
    pub(crate) fn present(&mut self, requests: Vec<(String, InputRequest)>) {
        self.presented = requests;
    }

    /// Returns the rounds that its client has answered.
    pub(crate) fn answered(&self) -> &[AnsweredRound] {
        &self.answered
    }

    /// Notes that its client has answered the round that it had.
    pub(crate) fn answer_presented(&mut self, responses: String) {
        let requests = std::mem::take(&mut self.presented);
        self.answered.push(AnsweredRound {
            requests,
            responses,
        });
    }

    /// Returns the answers that a retry brought for its questions, which are asked anew.
    pub(crate) fn retry_answers(&self) -> Option<&RetryAnswers> {
        self.retry_answers.as_ref()
    }

    /// Sets the answers that a retry brought for its questions, which are asked anew.
    pub(crate) fn set_retry_answers(&mut self, answers: Option<RetryAnswers>) {
        self.retry_answers = answers;
    }

    /// Counts a question by its digest. Returns how often it was asked.
    pub(crate) fn count_ask(&mut self, digest: &str) -> u32 {
        let count = self.asked_keys.entry(digest.to_owned()).or_default();
        *count += 1;
        *count
    }

    /// Keeps the request, which is text, as it went to the server.
    pub(crate) fn keep(&mut self, frame: Bytes) {
        self.kept = Some(frame);
    }

    /// The request as it went to the server, where it is kept.
    pub(crate) fn frame(&self) -> Option<&str> {
        std::str::from_utf8(self.kept.as_ref()?).ok()
    }

    /// Returns whether it waits for its turn: the server knows nothing of it.
    pub(crate) fn is_queued(&self) -> bool {
        matches!(self.progress, Progress::Queued(_))
    }

    /// Reads the token for progress out of the request, where that was not done yet.
    pub(crate) fn learn_token(&mut self) {
        if self.token.is_none() && self.upstream_token.is_none() {
            self.token = self.frame().and_then(|frame| {
                let index = FrameIndex::at(frame.as_bytes())?;
                progress_token(Frame::of_text(frame, &index))
            });
            self.upstream_token = self.token.clone();
        }
    }

    /// Returns what is called; `None` when no question may come up in it, or when that cannot be read.
    pub(crate) fn summary(&mut self) -> Option<&CallSummary> {
        self.read_summary()?.ok()
    }

    /// Why what is called cannot be shown to a person, if it cannot.
    pub(crate) fn unreadable(&mut self) -> Option<CallDefect> {
        self.read_summary()?.err()
    }

    fn read_summary(&mut self) -> Option<Result<&CallSummary, CallDefect>> {
        if self.summary.is_none() {
            let frame = self.frame()?;
            let index = FrameIndex::at(frame.as_bytes());
            let frame = index.as_ref().map(|index| Frame::of_text(frame, index));
            let read = frame.ok_or(CallDefect::Target);
            let kind = self.kind?;
            self.summary = Some(read.and_then(|frame| summary(kind, frame)));
        }
        Some(self.summary.as_ref()?.as_ref().map_err(|defect| *defect))
    }
}

/// The name or URI that a request calls; `None` where that cannot be read.
pub(crate) fn target(frame: &str) -> Option<String> {
    let index = FrameIndex::at(frame.as_bytes())?;
    let call = CallFrame::read(frame, &index).ok()?;
    Some(call.target.into_owned())
}

/// Reads what a request of this kind calls.
pub(crate) fn summary(kind: CallKind, frame: Frame<'_>) -> Result<CallSummary, CallDefect> {
    let call = CallFrame::read(frame.text(), frame.index())?;
    let digest = digest(kind, &call.target, &call.canonical_arguments()?);
    Ok(CallSummary {
        kind,
        target: call.target.into_owned(),
        arguments: call.arguments.map(str::to_owned),
        digest,
    })
}

/// The token in `params._meta.progressToken`.
pub(crate) fn progress_token(frame: Frame<'_>) -> Option<Id> {
    let token = frame.member(FramePart::Meta, "progressToken")?;
    Id::read(serde_json::from_str(token).ok()?)
}

/// Equal for two calls of the same thing with the same arguments, in whatever order and spelling.
fn digest(kind: CallKind, target: &str, canonical_arguments: &str) -> String {
    let mut hash = Sha256::new();
    for part in [kind.word(), target, canonical_arguments] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    HEXLOWER.encode(&hash.finalize())
}

/// All requests on their way.
#[derive(Default)]
pub(crate) struct Calls {
    by_key: HashMap<CallId, Call>,
    by_upstream: HashMap<Id, CallId>,
    last: u64,
}

impl Calls {
    /// No calls yet; the first gets the key after this.
    pub(crate) fn after(last: u64) -> Self {
        Self {
            last,
            ..Self::default()
        }
    }

    /// Takes a call in. Its upstream id must be free.
    pub(crate) fn insert(&mut self, call: Call) -> CallId {
        self.last += 1;
        let key = CallId(self.last);
        self.by_upstream.insert(call.upstream_id.clone(), key);
        self.by_key.insert(key, call);
        key
    }

    pub(crate) fn get(&self, key: CallId) -> Option<&Call> {
        self.by_key.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: CallId) -> Option<&mut Call> {
        self.by_key.get_mut(&key)
    }

    pub(crate) fn remove(&mut self, key: CallId) -> Option<Call> {
        self.end_upstream(key);
        self.by_key.remove(&key)
    }

    /// The call that the server answers with this id.
    pub(crate) fn by_upstream(&self, id: &Id) -> Option<CallId> {
        self.by_upstream.get(id).copied()
    }

    /// The call goes to the server once more, under another id.
    pub(crate) fn renew(&mut self, key: CallId, id: Id) {
        self.end_upstream(key);
        if let Some(call) = self.by_key.get_mut(&key) {
            call.upstream_id = id.clone();
            self.by_upstream.insert(id, key);
        }
    }

    /// The server is done with this upstream id, which another call may have by now; the call lives on.
    pub(crate) fn end_upstream(&mut self, key: CallId) {
        if let Some(call) = self.by_key.get(&key)
            && self.is_with(key, call)
        {
            self.by_upstream.remove(&call.upstream_id);
        }
    }

    /// Returns whether the server still works on the call.
    pub(crate) fn is_upstream(&self, key: CallId) -> bool {
        self.get(key)
            .is_some_and(|call| self.is_with(key, call) && !call.is_queued())
    }

    /// Returns whether the server still works on this call of this key.
    fn is_with(&self, key: CallId, call: &Call) -> bool {
        self.by_upstream.get(&call.upstream_id) == Some(&key)
    }

    /// Returns whether the server may be asking in this call of this key right now.
    fn fits(&self, key: CallId, call: &Call) -> bool {
        call.kind.is_some() && !call.is_finished() && !call.is_queued() && self.is_with(key, call)
    }

    /// The call that the client knows by this id, the one somebody waits for first.
    pub(crate) fn by_client(&self, id: &Id) -> Option<CallId> {
        let mut found: Vec<_> = self
            .by_key
            .iter()
            .filter(|(_, call)| call.client_id == *id)
            .collect();
        found.sort_by_key(|(key, call)| (call.stream().is_none(), std::cmp::Reverse(**key)));
        found.first().map(|(key, _)| **key)
    }

    /// The calls that wait on this stream.
    pub(crate) fn on_stream(&self, stream: StreamId) -> Vec<CallId> {
        self.keys(|call| call.stream() == Some(stream))
    }

    /// The call whose progress the server reports with this token.
    pub(crate) fn by_upstream_token(&self, token: &Id) -> Option<CallId> {
        self.by_key
            .iter()
            .find(|(_, call)| call.upstream_token.as_ref() == Some(token))
            .map(|(key, _)| *key)
    }

    /// Returns whether the server may be asking in this call right now.
    pub(crate) fn may_ask(&self, key: CallId) -> bool {
        self.get(key).is_some_and(|call| self.fits(key, call))
    }

    /// Calls in which the server may be asking right now, in no order.
    pub(crate) fn asking(&self) -> impl Iterator<Item = (CallId, &Call)> {
        let calls = self.by_key.iter().map(|(key, call)| (*key, call));
        calls.filter(|(key, call)| self.fits(*key, call))
    }

    /// Keys of the calls that fit, oldest first.
    pub(crate) fn keys(&self, fits: impl Fn(&Call) -> bool) -> Vec<CallId> {
        let mut keys: Vec<_> = self
            .by_key
            .iter()
            .filter(|(_, call)| fits(call))
            .map(|(key, _)| *key)
            .collect();
        keys.sort_unstable();
        keys
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(frame: &str) -> CallSummary {
        let index = FrameIndex::at(frame.as_bytes()).unwrap();
        summary(CallKind::Tool, Frame::of_text(frame, &index)).unwrap()
    }

    #[test]
    fn the_same_call_has_the_same_digest_in_any_order() {
        let one = of(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1,"b":{"c":2,"d":3}}}}"#,
        );
        let two = of(
            r#"{"id":2,"method":"tools/call","params":{"_meta":{"progressToken":9},"arguments":{"b":{"d":3,"c":2},"a":1},"name":"t"}}"#,
        );
        assert_eq!(one.digest, two.digest);
        assert_eq!(one.target, "t");
        let other = of(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":2,"b":{"c":2,"d":3}}}}"#,
        );
        assert_ne!(one.digest, other.digest);
    }

    #[test]
    fn arguments_stay_out_of_debug() {
        let call = of(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":"secret"}}}"#,
        );
        assert!(!format!("{call:?}").contains("secret"));
        assert_eq!(call.arguments.as_deref(), Some(r#"{"a":"secret"}"#));
    }

    #[test]
    fn two_different_calls_never_share_a_digest() {
        let with = |arguments: &str| {
            let frame = format!(
                r#"{{"id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
            );
            let index = FrameIndex::at(frame.as_bytes()).unwrap();
            summary(CallKind::Tool, Frame::of_text(&frame, &index)).map(|call| call.digest)
        };
        assert_ne!(
            with(r#"{"a":18446744073709551617}"#),
            with(r#"{"a":18446744073709551616}"#)
        );
        assert_eq!(
            with(r#"{"force":true,"force":false}"#),
            Err(CallDefect::Duplicate)
        );
        assert_eq!(with(r#"{"a":1e999}"#), Err(CallDefect::Number));
    }
}
