//! One request of the client: its waiting client, and its state at the server.

use bytes::Bytes;
use mcp_elicit_core::wire::frame::FrameIndex;
use mcp_elicit_core::wire::{
    CallDefect, Capability, Envelope, Frame, Id, InputRequired, InputResponses, rounds,
};

use super::call_progress::CallProgress;
use super::call_rounds::CallRounds;
use super::summary::{progress_token, summary, summary_of, target};
use crate::frame_edit;
use crate::parts::call_budget::Permit;
use crate::parts::log_levels::LogLevel;
use crate::parts::server_round::Round;
use crate::{AskId, CallKind, CallSummary, StreamId, Timestamp};

/// One request of the client.
pub(crate) struct Call {
    permit: Permit,
    /// The stream on which the client waits; `None` once the call was handed back, or the client is gone.
    stream: Option<StreamId>,
    state: ServerState,
    client_id: Id,
    upstream_id: Id,
    /// `true` until the server is done with that id.
    has_upstream_id: bool,
    kind: Option<CallKind>,
    /// The request as it went to the server, kept if questions may come up in it.
    kept: Option<Bytes>,
    capability: Capability,
    progress: CallProgress,
    /// The time of its arrival.
    since: Timestamp,
    /// The time of its arrival, or of its last repetition.
    came_at: Timestamp,
    /// Questions that are open in it.
    asks: Vec<AskId>,
    /// Open questions that are attributed to another call and may be this one's.
    maybe: Vec<AskId>,
    rounds: CallRounds,
    turn: Turn,
    log_level: Option<LogLevel>,
    lists_tools: bool,
    /// `true` if it requests the list of tasks.
    lists_tasks: bool,
    /// The digest of the call, if the rules were applied to it; taken out when the call is read.
    digest: Option<String>,
    /// The call, or the reason why it cannot be shown; read on demand.
    summary: Option<Result<CallSummary, CallDefect>>,
}

/// The server's side of a call.
enum ServerState {
    /// It waits for its turn; the server does not know of it.
    Queued(Queued),
    /// It is with the server, or waits for questions outside rounds.
    Running,
    /// The server has asked in a round, which the gateway answers.
    Collecting(Round),
    /// The server has asked in a round, which goes to the client once its questions are recorded.
    PassingRound(String),
    /// The response is there and no client waits for it.
    Finished(String),
}

/// The parts of a call that waits for its turn.
struct Queued {
    /// The time since which it waits.
    since: Timestamp,
    /// The request as the client wrote it.
    original: Bytes,
}

/// The turn of a call.
#[derive(Clone, Copy, Default)]
struct Turn {
    /// `true` if it takes turns, and has its own.
    own: bool,
    /// `true` if it was seen to ask.
    asked: bool,
}

impl Call {
    /// Creates a call that goes to the server unchanged.
    pub(crate) fn new(
        permit: Permit,
        now: Timestamp,
        stream: StreamId,
        id: Id,
        kind: Option<CallKind>,
    ) -> Self {
        Self {
            permit,
            stream: Some(stream),
            state: ServerState::Running,
            client_id: id.clone(),
            upstream_id: id,
            has_upstream_id: true,
            kind,
            kept: None,
            capability: Capability::NONE,
            progress: CallProgress::default(),
            since: now,
            came_at: now,
            asks: Vec::new(),
            maybe: Vec::new(),
            rounds: CallRounds::default(),
            turn: Turn::default(),
            log_level: None,
            lists_tools: false,
            lists_tasks: false,
            digest: None,
            summary: None,
        }
    }

    /// Returns the call with the client's progress token and the server's.
    pub(crate) fn with_tokens(mut self, token: Id, upstream: Option<Id>) -> Self {
        self.progress = CallProgress::with_tokens(token, upstream);
        self
    }

    /// Counts the bytes that it holds: its request as it is kept and as it waits for its turn, its names on both sides,
    /// a response that no client waits for, and answers of its rounds. Its questions are counted separately.
    pub(crate) fn recount(&mut self) {
        // Both ids are also keys of tables.
        let ids = 2 * (self.client_id.as_json().len() + self.upstream_id.as_json().len());
        let kept = self.kept.as_ref().map_or(0, Bytes::len);
        let state = match &self.state {
            ServerState::Queued(queued) => queued.original.len(),
            ServerState::Running => 0,
            ServerState::Collecting(round) => round.size(),
            ServerState::PassingRound(text) | ServerState::Finished(text) => text.len(),
        };
        let bytes = ids + kept + state + self.progress.size() + self.rounds.size();
        self.permit.set_bytes(bytes);
    }

    /// Returns its permit, which can be used for another request of its client.
    pub(crate) fn into_permit(self) -> Permit {
        self.permit
    }

    /// Returns the stream for its answer; `None` while no client waits.
    pub(crate) fn stream(&self) -> Option<StreamId> {
        self.stream
    }

    /// Detaches the client. Returns the stream on which it waited.
    pub(super) fn detach(&mut self) -> Option<StreamId> {
        self.stream.take()
    }

    /// Attaches a client that has made the call again with this id and waits on this stream.
    pub(super) fn attach(&mut self, now: Timestamp, stream: StreamId, id: Option<Id>) {
        self.stream = Some(stream);
        self.came_at = now;
        if let Some(id) = id {
            self.client_id = id;
        }
        self.recount();
    }

    /// Returns the id that the client knows it by.
    pub(crate) fn client_id(&self) -> &Id {
        &self.client_id
    }

    /// Returns the id that the server knows it by.
    pub(crate) fn upstream_id(&self) -> &Id {
        &self.upstream_id
    }

    /// Sets the id for the server.
    pub(crate) fn set_upstream_id(&mut self, id: Id) {
        self.upstream_id = id;
        self.has_upstream_id = true;
        self.recount();
    }

    /// Records that the server is done with that id. Returns `false` if it was before.
    pub(super) fn end_upstream(&mut self) -> bool {
        std::mem::take(&mut self.has_upstream_id)
    }

    /// Returns `true` if the server is still processing it.
    pub(crate) fn is_upstream(&self) -> bool {
        self.has_upstream_id && !self.is_queued()
    }

    /// Returns `true` if the server may be asking in it now.
    pub(super) fn may_ask(&self) -> bool {
        self.kind.is_some() && !self.is_finished() && self.is_upstream()
    }

    /// Returns the kind of call, if questions may come up in it.
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

    /// Returns the tokens under which its progress is reported.
    pub(crate) fn progress(&self) -> &CallProgress {
        &self.progress
    }

    /// Returns the progress tokens mutably.
    pub(crate) fn progress_mut(&mut self) -> &mut CallProgress {
        &mut self.progress
    }

    /// Returns the time of its arrival.
    pub(crate) fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns the time of its arrival, or of its last repetition.
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

    /// Returns `true` if its client waits, and it waits for a person or its turn.
    pub(crate) fn waits_for_person(&self) -> bool {
        self.stream.is_some() && (self.may_wait_for_answer() || self.is_queued())
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

    /// Makes it wait for its turn.
    pub(crate) fn enqueue(&mut self, since: Timestamp, original: Bytes) {
        self.state = ServerState::Queued(Queued { since, original });
        self.recount();
    }

    /// Records that its turn has come.
    pub(crate) fn dequeue(&mut self) {
        self.state = ServerState::Running;
        self.recount();
    }

    /// Returns the time since which it waits for its turn, if it does and another connection could take it.
    pub(crate) fn movable_since(&self) -> Option<Timestamp> {
        match &self.state {
            ServerState::Queued(queued)
                if self.stream().is_some() && self.rounds.retry_answers().is_none() =>
            {
                Some(queued.since)
            }
            _ => None,
        }
    }

    /// Returns the stream and the request as the client wrote it, of a call that waits for its turn. A repeated call
    /// has its new id.
    pub(crate) fn into_queued(self) -> Option<(StreamId, Bytes)> {
        let stream = self.stream()?;
        match self.state {
            ServerState::Queued(queued) => {
                let text = std::str::from_utf8(&queued.original).ok()?;
                let known = frame_edit::with_id(text, &self.client_id);
                Some((stream, known.into()))
            }
            _ => None,
        }
    }

    /// Returns `true` if it takes turns, and has its own.
    pub(crate) fn has_turn(&self) -> bool {
        self.turn.own
    }

    /// Sets whether it has a turn of its own.
    pub(crate) fn set_turn(&mut self, own: bool) {
        self.turn.own = own;
    }

    /// Records that it was seen to ask: it has its turn until it ends, although it did not wait for one.
    pub(crate) fn seen_asking(&mut self) {
        self.turn = Turn {
            own: true,
            asked: true,
        };
    }

    /// Ends its turn. Returns `true` if it had one and did not ask.
    pub(crate) fn end_turn(&mut self) -> bool {
        std::mem::take(&mut self.turn.own) && !self.turn.asked
    }

    /// Returns the rounds that it has asked.
    pub(crate) fn rounds(&self) -> &CallRounds {
        &self.rounds
    }

    /// Returns its rounds mutably.
    pub(crate) fn rounds_mut(&mut self) -> &mut CallRounds {
        &mut self.rounds
    }

    /// Lets the gateway answer a round of the server.
    pub(crate) fn collect(&mut self, round: Round) {
        self.state = ServerState::Collecting(round);
        self.recount();
    }

    /// Returns the round that the gateway answers.
    pub(crate) fn round(&self) -> Option<&Round> {
        match &self.state {
            ServerState::Collecting(round) => Some(round),
            _ => None,
        }
    }

    /// Returns the round that the gateway answers, mutably.
    pub(crate) fn round_mut(&mut self) -> Option<&mut Round> {
        match &mut self.state {
            ServerState::Collecting(round) => Some(round),
            _ => None,
        }
    }

    /// Takes out the round that the gateway has answered: the call is made again.
    pub(crate) fn take_round(&mut self) -> Option<Round> {
        match std::mem::replace(&mut self.state, ServerState::Running) {
            ServerState::Collecting(round) => {
                self.recount();
                Some(round)
            }
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Keeps a round of the server that goes to the client once its questions are recorded.
    pub(crate) fn pass_round(&mut self, text: String) {
        self.rounds.drop_url_demand();
        self.state = ServerState::PassingRound(text);
        self.recount();
    }

    /// Takes out the round that goes to the client, which answers its questions with its retry.
    pub(crate) fn take_passing_round(&mut self) -> Option<String> {
        match std::mem::replace(&mut self.state, ServerState::Running) {
            ServerState::PassingRound(text) => {
                self.asks.clear();
                self.recount();
                Some(text)
            }
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Keeps the response, because no client waits for it.
    pub(crate) fn finish(&mut self, response: String) {
        self.state = ServerState::Finished(response);
        self.recount();
    }

    /// Returns `true` if the response is there.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.state, ServerState::Finished(_))
    }

    /// Returns the response that came while no client waited, with the client that waits now.
    pub(crate) fn take_finished(&mut self) -> Option<(String, StreamId, Id)> {
        match std::mem::replace(&mut self.state, ServerState::Running) {
            ServerState::Finished(response) => {
                Some((response, self.stream()?, self.client_id.clone()))
            }
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Returns the minimum level of log messages for it.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// Sets the minimum level of log messages for it.
    pub(crate) fn set_log_level(&mut self, level: Option<LogLevel>) {
        self.log_level = level;
    }

    /// Returns `true` if it requests the list of tasks.
    pub(crate) fn lists_tasks(&self) -> bool {
        self.lists_tasks
    }

    /// Sets whether it requests the list of tasks.
    pub(crate) fn set_lists_tasks(&mut self, lists: bool) {
        self.lists_tasks = lists;
    }

    /// Returns `true` if it requests the list of tools.
    pub(crate) fn lists_tools(&self) -> bool {
        self.lists_tools
    }

    /// Sets whether it requests the list of tools.
    pub(crate) fn set_lists_tools(&mut self, lists: bool) {
        self.lists_tools = lists;
    }

    /// Keeps the request, which is text, as it went to the server.
    pub(crate) fn keep(&mut self, frame: Bytes) {
        self.kept = Some(frame);
        self.recount();
    }

    /// Sets the digest of the call, if it was computed before.
    pub(crate) fn set_digest(&mut self, digest: Option<&str>) {
        self.digest = digest.map(str::to_owned);
    }

    /// Returns the request as it went to the server, if it is kept.
    pub(crate) fn frame(&self) -> Option<&str> {
        std::str::from_utf8(self.kept.as_ref()?).ok()
    }

    /// Returns the request again under this id, with the responses to the server's requirement: they and the server's
    /// state belong to this retry, not to the call.
    pub(crate) fn retry_frame(
        &self,
        required: &InputRequired,
        responses: &InputResponses,
        id: &Id,
    ) -> Option<String> {
        let envelope = Envelope::parse_within(self.frame()?.as_bytes(), usize::MAX).ok()?;
        let params = rounds::retry_params(envelope.params(), required, responses).ok()?;
        let with_params = envelope.with_body(&params).ok()?;
        let envelope = Envelope::parse_within(with_params.as_bytes(), usize::MAX).ok()?;
        Some(envelope.with_id(id))
    }

    /// Returns `true` if it waits for its turn: the server does not know of it.
    pub(crate) fn is_queued(&self) -> bool {
        matches!(self.state, ServerState::Queued(_))
    }

    /// Reads the progress token from the request, unless it was read before.
    pub(super) fn learn_token(&mut self) {
        if self.progress.is_unknown() {
            let token = self.frame().and_then(|frame| {
                let index = FrameIndex::at(frame.as_bytes())?;
                progress_token(Frame::of_text(frame, &index))
            });
            self.progress = CallProgress::with_token(token);
        }
    }

    /// Returns the kind of call and its target's name or URI, if questions may come up in it.
    pub(crate) fn target(&self) -> Option<(CallKind, String)> {
        Some((self.kind?, target(self.frame()?)?))
    }

    /// Returns the summary of the call; `None` if no question may come up in it, or if it cannot be read.
    pub(crate) fn summary(&mut self) -> Option<&CallSummary> {
        self.read_summary()?.ok()
    }

    /// Returns the reason why the call cannot be shown to a person, if it cannot.
    pub(crate) fn unreadable(&mut self) -> Option<CallDefect> {
        self.read_summary()?.err()
    }

    /// Returns the summary of the call if it was read before.
    pub(crate) fn known_summary(&self) -> Option<&CallSummary> {
        self.summary.as_ref()?.as_ref().ok()
    }

    /// Returns the digest that was computed before, while the call itself is not read.
    #[cfg(test)]
    pub(crate) fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Checks that the digest is that of the kept request.
    #[cfg(test)]
    pub(super) fn check(&self) {
        if let (Some(digest), Some(kind), Some(frame)) = (&self.digest, self.kind, self.frame()) {
            let index = FrameIndex::at(frame.as_bytes()).unwrap();
            let read = summary(kind, Frame::of_text(frame, &index)).unwrap();
            assert_eq!(*digest, read.digest);
        }
    }

    fn read_summary(&mut self) -> Option<Result<&CallSummary, CallDefect>> {
        if self.summary.is_none() {
            let digest = self.digest.take();
            let frame = self.frame()?;
            let index = FrameIndex::at(frame.as_bytes());
            let frame = index.as_ref().map(|index| Frame::of_text(frame, index));
            let read = frame.ok_or(CallDefect::Target);
            let kind = self.kind?;
            self.summary = Some(read.and_then(|frame| match digest {
                Some(digest) => summary_of(kind, frame, digest),
                None => summary(kind, frame),
            }));
        }
        Some(self.summary.as_ref()?.as_ref().map_err(|defect| *defect))
    }
}
