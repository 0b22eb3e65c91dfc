//! One request of the client: its waiting client, and its state at the server.

use std::sync::Arc;

use mcp_elicit_core::question::ProofNumber;
use mcp_elicit_core::wire::{
    CallDefect, Capability, Envelope, Id, InputRequired, InputResponses, rounds,
};

use super::call_progress::CallProgress;
use super::call_rounds::CallRounds;
use super::request::{AskingCall, Request};
use super::summary::progress_token;
use crate::frame_edit::ErrorResponse;
use crate::parts::asks::RoundId;
use crate::parts::call_budget::Permit;
use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::log_levels::LogLevel;
use crate::parts::retry_answers::RetryAnswers;
use crate::parts::server_round::Round;
use crate::{AccessNumber, AskId, CallKind, CallSummary, StreamId, Timestamp};

/// One request of the client.
pub(crate) struct Call {
    permit: Permit,
    /// The id that the client knows it by.
    client_id: Id,
    /// The access token of the request that made it last.
    access: AccessNumber,
    waiter: Waiter,
    request: Request,
    /// The id that the server knows it by, or knew it by last.
    upstream_id: Id,
    state: CallState,
    /// When it came.
    since: Timestamp,
    progress: CallProgress,
    log_level: Option<LogLevel>,
    /// Questions that are open in it.
    asks: Vec<AskId>,
    /// Open questions that are attributed to another call and may be this one's.
    maybe: Vec<AskId>,
    /// The names in the record of questions for which the server has stopped waiting.
    left: Vec<String>,
    /// `true` once the same call made again has taken its place.
    gave_place: bool,
    rounds: CallRounds,
    /// `true` if people are asked in place of its client.
    asks_people: bool,
    /// `clientInfo` of the request that made it last, JSON, if each request describes its client.
    client_info: Option<Arc<str>>,
    /// `true` if that request declared tasks (the extension for 2026-07-28).
    knows_tasks: bool,
}

/// The party that waits for a call.
enum Waiter {
    /// Its client, on this stream, since it made the call last.
    Client { stream: StreamId, since: Timestamp },
    /// None: the call went back to the client, or the client is gone.
    Nobody,
    /// None: the client has given the call up, and may make it again.
    GivenUp,
}

/// The state of a call between its client and the server.
enum CallState {
    /// It waits for its turn; the server does not know it, and its upstream id is in use.
    Queued(Queued),
    /// The server works on it, under its upstream id.
    AtServer,
    /// The server is not processing it. It waits for approval, for visits to links, for the same call of another
    /// session, or until it is made again.
    Waiting,
    /// The server has asked in a round, which the gateway answers.
    Collecting(Round),
    /// The server has asked in a round, which goes to the client once its questions are recorded.
    PassingRound(RoundId, IndexedFrame),
    /// It has ended, and no client waits for it.
    Finished(Finished),
}

/// The end of a call that no client waits for.
pub(crate) enum Finished {
    /// The response of the server.
    Response(IndexedFrame),
    /// An error of the gateway's own.
    Failed(Box<ErrorResponse>),
}

/// The parts of a call that waits for its turn.
struct Queued {
    /// The time since which it waits.
    since: Timestamp,
    /// The request as the client wrote it, if it goes to the server with changes.
    original: Option<IndexedFrame>,
}

impl Call {
    /// Creates a call of a client that waits on this stream. It goes to the server under the client's own id.
    pub(crate) fn new(
        permit: Permit,
        now: Timestamp,
        stream: StreamId,
        id: Id,
        mut request: Request,
    ) -> Self {
        if let Some(call) = request.call_mut() {
            call.made_with(stream.proof());
        }
        Self {
            permit,
            client_id: id.clone(),
            access: stream.access(),
            waiter: Waiter::Client { stream, since: now },
            request,
            upstream_id: id,
            state: CallState::AtServer,
            since: now,
            progress: CallProgress::default(),
            log_level: None,
            asks: Vec::new(),
            maybe: Vec::new(),
            left: Vec::new(),
            gave_place: false,
            rounds: CallRounds::default(),
            asks_people: false,
            client_info: None,
            knows_tasks: false,
        }
    }

    /// Records `clientInfo` of the request that makes it.
    pub(crate) fn describe_client(&mut self, client_info: Option<Arc<str>>) {
        self.client_info = client_info;
    }

    /// Records whether the request that makes it declares tasks.
    pub(crate) fn know_tasks(&mut self, knows: bool) {
        self.knows_tasks = knows;
    }

    /// Returns `true` if the request that made it last declared tasks.
    pub(crate) fn knows_tasks(&self) -> bool {
        self.knows_tasks
    }

    /// Sets `clientInfo` of the request that made it.
    pub(crate) fn with_client_info(self, client_info: Option<Arc<str>>) -> Self {
        Self {
            client_info,
            ..self
        }
    }

    /// Returns `clientInfo` of the request that made it last, if each request describes its client.
    pub(crate) fn client_info(&self) -> Option<&Arc<str>> {
        self.client_info.as_ref()
    }

    /// Records that people are asked in place of its client, whose answers cannot be used.
    pub(crate) fn ask_people(&mut self) {
        self.asks_people = true;
    }

    /// Returns `true` if people are asked in place of its client.
    pub(crate) fn asks_people(&self) -> bool {
        self.asks_people
    }

    /// Sets another id under which the server knows the call.
    pub(crate) fn with_upstream_id(self, id: Id) -> Self {
        Self {
            upstream_id: id,
            ..self
        }
    }

    /// Sets the tokens under which its progress is reported.
    pub(crate) fn with_progress(self, progress: CallProgress) -> Self {
        Self { progress, ..self }
    }

    /// Sets the minimum level of its log messages.
    pub(crate) fn with_log_level(self, log_level: Option<LogLevel>) -> Self {
        Self { log_level, ..self }
    }

    /// Adds the answers of a retry to its questions.
    pub(crate) fn with_retry_answers(mut self, answers: Option<RetryAnswers>) -> Self {
        self.rounds.retried_with(answers);
        self
    }

    /// Counts the bytes that it holds: its stored request, also as the client wrote it while it waits for its turn; its
    /// names on both sides; a response that no client waits for; and answers of its rounds. Its questions are counted separately.
    pub(crate) fn recount(&mut self) {
        // Both ids are also keys of tables.
        let ids = 2 * (self.client_id.as_json().len() + self.upstream_id.as_json().len());
        let state = match &self.state {
            CallState::Queued(queued) => queued.original.as_ref().map_or(0, IndexedFrame::size),
            CallState::AtServer | CallState::Waiting | CallState::Finished(_) => 0,
            CallState::Collecting(round) => round.size(),
            CallState::PassingRound(_, frame) => frame.size(),
        };
        let bytes = ids + self.request.size() + state + self.progress.size() + self.rounds.size();
        let response = match &self.state {
            CallState::Finished(Finished::Response(frame)) => frame.size(),
            CallState::Finished(Finished::Failed(refusal)) => refusal.to_unknown().len(),
            CallState::Queued(_)
            | CallState::AtServer
            | CallState::Waiting
            | CallState::Collecting(_)
            | CallState::PassingRound(..) => 0,
        };
        self.permit.set_bytes_and_response(bytes, response);
    }

    /// Returns its permit, which can be used for another request of its client.
    pub(crate) fn into_permit(self) -> Permit {
        self.permit
    }

    /// Returns the stream for its answer; `None` while no client waits.
    pub(crate) fn stream(&self) -> Option<StreamId> {
        match self.waiter {
            Waiter::Client { stream, .. } => Some(stream),
            Waiter::Nobody | Waiter::GivenUp => None,
        }
    }

    /// Returns the proof of the request that made it last, if questions may come up in it.
    pub(crate) fn proof(&self) -> Option<ProofNumber> {
        Some(self.request.call()?.proof())
    }

    /// Returns the access token of the request that made it last.
    pub(crate) fn access(&self) -> AccessNumber {
        self.access
    }

    /// Detaches the client. Returns the stream on which it waited.
    pub(super) fn detach(&mut self) -> Option<StreamId> {
        let stream = self.stream();
        self.waiter = Waiter::Nobody;
        stream
    }

    /// Returns the time since which its client waits for it.
    pub(crate) fn waited_for_since(&self) -> Option<Timestamp> {
        match self.waiter {
            Waiter::Client { since, .. } => Some(since),
            Waiter::Nobody | Waiter::GivenUp => None,
        }
    }

    /// Records that the same call made again takes its place. Returns `true` the first time.
    pub(crate) fn yields_to_repeat(&mut self) -> bool {
        !std::mem::replace(&mut self.gave_place, true)
    }

    /// Records that its client, which is detached, has given it up.
    pub(crate) fn give_up(&mut self) {
        if matches!(self.waiter, Waiter::Nobody) {
            self.waiter = Waiter::GivenUp;
        }
    }

    /// Returns `true` if its client has given it up, and has not made it again.
    pub(crate) fn is_given_up(&self) -> bool {
        matches!(self.waiter, Waiter::GivenUp)
    }

    /// Attaches a client that has made the call again with this id and waits on this stream.
    pub(super) fn attach(&mut self, now: Timestamp, stream: StreamId, id: Option<Id>) {
        self.waiter = Waiter::Client { stream, since: now };
        self.access = stream.access();
        if let Some(call) = self.request.call_mut() {
            call.made_with(stream.proof());
        }
        if let Some(id) = id {
            self.client_id = id;
        }
        self.recount();
    }

    /// Records that the client has made it again, with this progress token, and with these modes if it declares them
    /// per call.
    pub(crate) fn made_again(&mut self, token: Option<Id>, capability: Option<Capability>) {
        self.progress.report_under(token);
        if let (Some(call), Some(capability)) = (self.request.call_mut(), capability) {
            call.declares(capability);
        }
    }

    /// Returns the id that the client knows it by.
    pub(crate) fn client_id(&self) -> &Id {
        &self.client_id
    }

    /// Returns the id that the server knows it by, or knew it by last.
    pub(crate) fn upstream_id(&self) -> &Id {
        &self.upstream_id
    }

    /// Records that it goes to the server again, under this id.
    pub(super) fn sent_again(&mut self, id: Id) {
        self.upstream_id = id;
        self.state = CallState::AtServer;
        self.recount();
    }

    /// Returns `true` while its upstream id is its own.
    pub(super) fn has_upstream_id(&self) -> bool {
        matches!(self.state, CallState::Queued(_) | CallState::AtServer)
    }

    /// Records that the server has finished with its upstream id. Returns `false` if it had before.
    pub(super) fn end_upstream(&mut self) -> bool {
        let ends = self.has_upstream_id();
        if ends {
            self.state = CallState::Waiting;
        }
        ends
    }

    /// Returns `true` if the server is still processing it.
    pub(crate) fn is_upstream(&self) -> bool {
        matches!(self.state, CallState::AtServer)
    }

    /// Returns `true` if the server may be asking in it now.
    pub(super) fn may_ask(&self) -> bool {
        self.is_upstream() && self.request.call().is_some()
    }

    /// Returns the kind of call, if questions may come up in it.
    pub(crate) fn kind(&self) -> Option<CallKind> {
        Some(self.request.call()?.kind())
    }

    /// Returns the modes that the client can ask in, in this call.
    pub(crate) fn capability(&self) -> Capability {
        let call = self.request.call();
        call.map_or(Capability::NONE, AskingCall::capability)
    }

    /// Returns the tokens under which its progress is reported.
    pub(crate) fn progress(&self) -> &CallProgress {
        &self.progress
    }

    /// Returns the tokens under which its progress is reported, for a report.
    pub(crate) fn progress_mut(&mut self) -> &mut CallProgress {
        &mut self.progress
    }

    /// Returns the time of its arrival.
    pub(crate) fn since(&self) -> Timestamp {
        self.since
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

    /// Returns the time since which its client waits, if the call waits for a person or for its turn.
    pub(crate) fn waits_for_person_since(&self) -> Option<Timestamp> {
        match self.waiter {
            Waiter::Client { since, .. } if self.may_wait_for_answer() || self.is_queued() => {
                Some(since)
            }
            Waiter::Client { .. } | Waiter::Nobody | Waiter::GivenUp => None,
        }
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

    /// Records that the server has stopped waiting for the question of this name in the record, which stays open.
    pub(crate) fn leave_question(&mut self, record: String) {
        self.left.push(record);
    }

    /// Takes out the names of the questions for which the server has stopped waiting.
    pub(crate) fn take_left_questions(&mut self) -> Vec<String> {
        std::mem::take(&mut self.left)
    }

    /// Makes it wait for its turn. `original` is the request as the client wrote it, if its kept request has changes.
    pub(crate) fn enqueue(&mut self, since: Timestamp, original: Option<IndexedFrame>) {
        self.state = CallState::Queued(Queued { since, original });
        self.recount();
    }

    /// Records that its turn has come: it goes to the server.
    pub(crate) fn dequeue(&mut self) {
        self.state = CallState::AtServer;
        self.starts();
    }

    /// Records that it goes to the server, and not to another connection.
    pub(crate) fn starts(&mut self) {
        self.rounds.forget_retry();
        self.recount();
    }

    /// Returns the time since which it waits for its turn.
    pub(crate) fn queued_since(&self) -> Option<Timestamp> {
        match &self.state {
            CallState::Queued(queued) => Some(queued.since),
            _ => None,
        }
    }

    /// Returns the time since which it waits for its turn, if it does and another connection could take it.
    pub(crate) fn movable_since(&self) -> Option<Timestamp> {
        match &self.state {
            CallState::Queued(queued)
                if self.stream().is_some_and(|stream| !stream.is_of_task()) =>
            {
                Some(queued.since)
            }
            _ => None,
        }
    }

    /// Returns the request as the client wrote it, of a call that waits for its turn. A repeated call has its new id.
    pub(crate) fn queued_frame(&self) -> Option<IndexedFrame> {
        let CallState::Queued(queued) = &self.state else {
            return None;
        };
        let kept = self.request.call().map(AskingCall::frame);
        let original = queued.original.as_ref().or(kept)?;
        Some(original.with_id(&self.client_id))
    }

    /// Returns the request with which another connection can start a call that waits for its turn: as the client wrote it, of
    /// a retry with its answers.
    pub(crate) fn moving_frame(&self) -> Option<IndexedFrame> {
        match self.rounds.retry_answers().and_then(RetryAnswers::retry) {
            Some(retry) => Some(retry.with_id(&self.client_id)),
            None => self.queued_frame(),
        }
    }

    /// Returns `true` if it takes turns, and has its own or shares one.
    pub(crate) fn has_turn(&self) -> bool {
        self.request.call().is_some_and(AskingCall::has_turn)
    }

    /// Records that its own turn has come, or that it need not wait for one.
    pub(crate) fn begin_turn(&mut self) {
        if let Some(call) = self.request.call_mut() {
            call.begin_turn();
        }
    }

    /// Records that it shares the turn of other calls that may be asking.
    pub(crate) fn share_turn(&mut self) {
        if let Some(call) = self.request.call_mut() {
            call.share_turn();
        }
    }

    /// Records that it was seen to ask: it keeps a turn until it ends, although it did not wait for one.
    pub(crate) fn seen_asking(&mut self) {
        if let Some(call) = self.request.call_mut() {
            call.seen_asking();
        }
    }

    /// Ends its turn. Returns `true` if it had one of its own and did not ask.
    pub(crate) fn end_turn(&mut self) -> bool {
        let call = self.request.call_mut();
        call.is_some_and(AskingCall::end_turn)
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
        self.state = CallState::Collecting(round);
        self.recount();
    }

    /// Returns the round that the gateway answers.
    pub(crate) fn round(&self) -> Option<&Round> {
        match &self.state {
            CallState::Collecting(round) => Some(round),
            _ => None,
        }
    }

    /// Returns the round that the gateway answers, mutably.
    pub(crate) fn round_mut(&mut self) -> Option<&mut Round> {
        match &mut self.state {
            CallState::Collecting(round) => Some(round),
            _ => None,
        }
    }

    /// Takes out the round that the gateway has answered: the call is made again.
    pub(crate) fn take_round(&mut self) -> Option<Round> {
        match std::mem::replace(&mut self.state, CallState::Waiting) {
            CallState::Collecting(round) => {
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
    pub(crate) fn pass_round(&mut self, round: RoundId, frame: IndexedFrame) {
        self.rounds.drop_url_demand();
        self.state = CallState::PassingRound(round, frame);
        self.recount();
    }

    /// Takes out the round that goes to the client, which answers its questions with its retry.
    pub(crate) fn take_passing_round(&mut self) -> Option<(RoundId, IndexedFrame)> {
        match std::mem::replace(&mut self.state, CallState::Waiting) {
            CallState::PassingRound(round, frame) => {
                self.asks.clear();
                self.recount();
                Some((round, frame))
            }
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Keeps its end, because no client waits for it.
    pub(crate) fn finish(&mut self, end: Finished) {
        self.rounds.drop_url_demand();
        self.state = CallState::Finished(end);
        self.recount();
    }

    /// Returns `true` if it has ended.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.state, CallState::Finished(_))
    }

    /// Returns the end that came while no client waited, with the client that waits now.
    pub(crate) fn take_finished(&mut self) -> Option<(Finished, StreamId, Id)> {
        match std::mem::replace(&mut self.state, CallState::Waiting) {
            CallState::Finished(end) => Some((end, self.stream()?, self.client_id.clone())),
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

    /// Returns `true` if it asks for the list of tasks.
    pub(crate) fn lists_tasks(&self) -> bool {
        matches!(self.request, Request::TaskList)
    }

    /// Returns `true` if it requests the list of tools.
    pub(crate) fn lists_tools(&self) -> bool {
        matches!(self.request, Request::ToolList)
    }

    /// Returns the request as it went to the server, if questions may come up in it.
    pub(crate) fn frame(&self) -> Option<&IndexedFrame> {
        Some(self.request.call()?.frame())
    }

    /// Returns the request again under this id, with the responses to the server's requirement: they and the server's
    /// state belong to this retry, not to the call.
    pub(crate) fn retry_frame(
        &self,
        required: &InputRequired,
        responses: &InputResponses,
        id: &Id,
    ) -> Option<String> {
        let envelope = Envelope::parse_within(self.frame()?.bytes(), usize::MAX).ok()?;
        let params = rounds::retry_params(envelope.params(), required, responses).ok()?;
        let with_params = envelope.with_body(&params).ok()?;
        let envelope = Envelope::parse_within(with_params.as_bytes(), usize::MAX).ok()?;
        Some(envelope.with_id(id))
    }

    /// Returns `true` if it waits for its turn: the server does not know of it.
    pub(crate) fn is_queued(&self) -> bool {
        matches!(self.state, CallState::Queued(_))
    }

    /// Reads the progress token from the request, unless it was read before.
    pub(super) fn learn_token(&mut self) {
        if self.progress.is_unknown() {
            let token = self.frame().and_then(|kept| progress_token(kept.frame()));
            self.progress = CallProgress::with_token(token);
        }
    }

    /// Returns the kind of call and its target's name or URI, if questions may come up in it.
    pub(crate) fn target(&self) -> Option<(CallKind, String)> {
        self.request.call()?.target()
    }

    /// Returns the summary of the call; `None` if no question may come up in it, or if it cannot be read.
    pub(crate) fn summary(&mut self) -> Option<&CallSummary> {
        let was_read = self.known_summary().is_some();
        self.request.call_mut()?.summary().ok()?;
        if !was_read {
            self.recount();
        }
        self.known_summary()
    }

    /// Returns the reason why the call cannot be shown to a person; `None` if it can.
    pub(crate) fn unreadable(&mut self) -> Option<CallDefect> {
        self.request.call_mut()?.summary().err()
    }

    /// Returns the summary of the call if it was read before.
    pub(crate) fn known_summary(&self) -> Option<&CallSummary> {
        self.request.call()?.known_summary()
    }

    /// Returns the digest that was computed before, while the call itself is not read.
    #[cfg(test)]
    pub(crate) fn digest(&self) -> Option<&str> {
        self.request.call()?.digest()
    }

    /// Checks that the digest is that of the kept request.
    #[cfg(test)]
    pub(super) fn check(&self) {
        if let Some(call) = self.request.call() {
            call.check();
        }
    }
}
