//! The state of the era detection: the openings sent, and the next step after each answer.

use mcp_elicit_core::wire::{Envelope, Frame, Id, Revision};
use serde_json::value::RawValue;

use crate::parts::indexed_frame::IndexedFrame;
use crate::{RelaySettings, StreamId};

/// The opening of a connection, by its era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeRequest {
    /// `initialize`: the pushed era.
    Initialize,
    /// `server/discover`: the rounds era.
    Discover,
}

impl ProbeRequest {
    fn other(self) -> Self {
        match self {
            Self::Initialize => Self::Discover,
            Self::Discover => Self::Initialize,
        }
    }
}

/// The eras in which a server may be addressed, and the one that is tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EraOrder {
    /// The opening that is sent first.
    pub(crate) first: ProbeRequest,
    /// `true` if the other one may follow.
    pub(crate) both: bool,
}

impl EraOrder {
    /// Returns the eras in which a server may be addressed under these settings.
    pub(super) fn of(settings: &RelaySettings) -> Self {
        let only = |first| Self { first, both: false };
        let both = |first| Self { first, both: true };
        match settings.revision {
            _ if settings.is_pushed => only(ProbeRequest::Initialize),
            Some(Revision::V2026_07_28) => only(ProbeRequest::Discover),
            Some(Revision::V2025_06_18 | Revision::V2025_11_25) => only(ProbeRequest::Initialize),
            None if settings.eras.asks_only_in_rounds() => both(ProbeRequest::Discover),
            None => both(ProbeRequest::Initialize),
        }
    }
}

/// The message of the client that opened the conversation.
#[derive(Clone)]
pub(crate) enum Opening {
    /// The client's `initialize`, with its requested revision.
    Initialize {
        stream: StreamId,
        id: Id,
        revision: String,
    },
    /// The client's `server/discover`.
    Discover { stream: StreamId, id: Id },
    /// Another request of the rounds era, which waits.
    Request,
}

impl Opening {
    /// Returns `true` for a client with a session.
    pub(crate) fn is_pushed(&self) -> bool {
        matches!(self, Self::Initialize { .. })
    }
}

/// The client's own `server/discover`, as it goes to the server.
pub(crate) struct ClientDiscover {
    /// Its id.
    pub(crate) id: Id,
    /// The frame, with the capability that the gateway adds.
    pub(crate) frame: String,
    /// `true` if its params name 2026-07-28.
    pub(crate) names_revision: bool,
}

/// The params with which the server was asked by `server/discover`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParamsOf {
    /// The gateway's own, if it was asked at all.
    Gateway,
    /// The client's, which name 2026-07-28.
    Client,
    /// The client's, which do not: a refusal may be about them alone.
    ClientWithoutRevision,
}

/// The error code for an unknown method.
const NO_METHOD: i64 = -32601;

impl ParamsOf {
    /// Returns `true` if a refusal with this error, a whole frame, may be about the client's params rather than the
    /// server.
    fn may_be_refused(self, error: Frame<'_>) -> bool {
        let code = Envelope::parse_within(error.text().as_bytes(), usize::MAX);
        let code = code.ok().and_then(|all| all.error_code());
        match self {
            ParamsOf::Gateway => false,
            ParamsOf::Client => code != Some(NO_METHOD),
            ParamsOf::ClientWithoutRevision => true,
        }
    }
}

/// A session that the server has opened while it is also asked for the rounds era.
pub(crate) struct OpenedSession {
    /// Its revision.
    pub(crate) revision: Revision,
    /// `InitializeResult`, JSON.
    pub(crate) result: String,
}

/// The state of asking a server for its era.
pub(crate) struct EraProbe {
    order: EraOrder,
    /// The unanswered openings, by their ids.
    open: Vec<(Id, ProbeRequest)>,
    /// The openings that were sent to the process that runs now.
    asked: Vec<ProbeRequest>,
    /// `true` if the server was restarted because of it.
    restarted: bool,
    /// The opening that is sent to the process which is being started.
    after_restart: Option<ProbeRequest>,
    opening: Opening,
    params_of: ParamsOf,
    /// The first error received for each opening.
    refusals: Vec<(ProbeRequest, IndexedFrame)>,
    /// The refusal of the client's own `server/discover`.
    clients_refusal: Option<IndexedFrame>,
    /// The client's own `server/discover`, until the server is asked with it.
    own_discover: Option<ClientDiscover>,
    /// The client's own version and params, if the server was asked for a newer one first.
    older: Option<(String, Box<RawValue>)>,
    /// `true` if the server's session has no id, so it cannot push (HTTP).
    has_no_session: bool,
    session: Option<OpenedSession>,
    /// The `DiscoverResult` of a server whose answer to `initialize` is still awaited.
    discovered: Option<String>,
}

/// The next step after a refusal, a timeout or a restart.
pub(crate) enum NextStep {
    /// The server does not negotiate: ask it for the client's own version, with the client's params.
    AskOlder(EraProbe, String, Box<RawValue>),
    /// Wait for another opening that is not answered yet.
    Wait(EraProbe),
    /// Send this opening.
    Ask(EraProbe, ProbeRequest),
    /// Use the session that the server has opened.
    UseSession(EraProbe, OpenedSession),
    /// Use the rounds era, in which the server gave this `DiscoverResult`.
    UseRounds(EraProbe, String),
    /// The server speaks neither era; with its first error, if it gave one.
    Failed(Opening, Option<IndexedFrame>),
}

impl EraProbe {
    /// Creates a probe on behalf of this message of the client; nothing is sent yet.
    pub(crate) fn new(order: EraOrder, opening: Opening) -> Self {
        Self {
            order,
            open: Vec::new(),
            asked: Vec::new(),
            restarted: false,
            after_restart: None,
            opening,
            params_of: ParamsOf::Gateway,
            refusals: Vec::new(),
            clients_refusal: None,
            own_discover: None,
            older: None,
            has_no_session: false,
            session: None,
            discovered: None,
        }
    }

    /// Keeps the client's own `server/discover`, for when the server is asked.
    pub(crate) fn with_discover(self, own: ClientDiscover) -> Self {
        Self {
            own_discover: Some(own),
            ..self
        }
    }

    /// Sets the opening that is sent once the server was restarted.
    pub(crate) fn after_restart(self, step: ProbeRequest) -> Self {
        Self {
            after_restart: Some(step),
            ..self
        }
    }

    /// Keeps the client's own version and params, because the server is asked for a newer one first.
    pub(crate) fn with_older(self, version: String, params: Box<RawValue>) -> Self {
        Self {
            older: Some((version, params)),
            ..self
        }
    }

    /// Returns the opening that is sent first.
    pub(crate) fn first(&self) -> ProbeRequest {
        self.order.first
    }

    /// Returns `true` if the server may be addressed in either era.
    pub(crate) fn may_ask_both(&self) -> bool {
        self.order.both
    }

    /// Returns the message that opened the connection.
    pub(crate) fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Takes the client's own `server/discover` out.
    pub(crate) fn take_discover(&mut self) -> Option<ClientDiscover> {
        self.own_discover.take()
    }

    /// Records that the client's own `server/discover` is sent.
    pub(crate) fn sent_clients_discover(&mut self, own: &ClientDiscover) {
        self.params_of = if own.names_revision {
            ParamsOf::Client
        } else {
            ParamsOf::ClientWithoutRevision
        };
        self.sent(own.id.clone(), ProbeRequest::Discover);
    }

    /// Records that a `server/discover` with the gateway's own params is sent under this id.
    pub(crate) fn sent_own_discover(&mut self, id: Id) {
        self.params_of = ParamsOf::Gateway;
        self.sent(id, ProbeRequest::Discover);
    }

    /// Records that an `initialize` is sent under this id.
    pub(crate) fn sent_initialize(&mut self, id: Id) {
        self.sent(id, ProbeRequest::Initialize);
    }

    fn sent(&mut self, id: Id, request: ProbeRequest) {
        self.open.push((id, request));
        if !self.asked.contains(&request) {
            self.asked.push(request);
        }
    }

    /// Ends the opening that was sent under this id, and returns it.
    pub(crate) fn answered(&mut self, id: &Id) -> Option<ProbeRequest> {
        let at = self.open.iter().position(|(open, _)| open == id)?;
        Some(self.open.remove(at).1)
    }

    /// Returns the server's refusal of the client's own `server/discover`, a whole frame.
    pub(crate) fn clients_refusal(&self) -> Option<Frame<'_>> {
        self.clients_refusal.as_ref().map(IndexedFrame::frame)
    }

    /// Records that the session, which the next answer opens, has no id.
    pub(crate) fn note_no_session(&mut self) {
        self.has_no_session = true;
    }

    /// Returns `true` if the server cannot push in the session that it opened.
    pub(crate) fn has_no_session(&self) -> bool {
        self.has_no_session
    }

    /// Keeps a session that the server has opened, and returns `true`, if the server is to be asked for the rounds era
    /// too.
    pub(crate) fn keep_session(&mut self, revision: Revision, result: &str) -> bool {
        let asks =
            self.order.both && !self.restarted && !self.asked.contains(&ProbeRequest::Discover);
        if asks {
            self.session = Some(OpenedSession {
                revision,
                result: result.to_owned(),
            });
        }
        asks
    }

    /// Returns `true` if the server has opened a session during the probe.
    pub(crate) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Keeps a `DiscoverResult`, and returns `true`, while the server may still open a session, which is preferred.
    pub(crate) fn keep_discovered(&mut self, result: &str) -> bool {
        let waits = self.order.first == ProbeRequest::Initialize
            && self.waits_for(ProbeRequest::Initialize);
        if waits {
            self.discovered = Some(result.to_owned());
        }
        waits
    }

    /// Returns the next step after a refusal of this opening; `error` is the error frame, if the server gave one.
    pub(crate) fn refused(mut self, step: ProbeRequest, error: Option<Frame<'_>>) -> NextStep {
        if let Some(error) = error {
            if !self.refusals.iter().any(|(known, _)| *known == step) {
                self.refusals.push((step, IndexedFrame::of(error, None)));
            }
            if step == ProbeRequest::Discover && self.params_of != ParamsOf::Gateway {
                self.clients_refusal
                    .get_or_insert_with(|| IndexedFrame::of(error, None));
            }
        }
        if step == ProbeRequest::Initialize
            && let (Some((version, params)), true) = (self.older.take(), error.is_some())
        {
            return NextStep::AskOlder(self, version, params);
        }
        if let Some(result) = self.discovered.take() {
            return NextStep::UseRounds(self, result);
        }
        if !self.open.is_empty() {
            return NextStep::Wait(self);
        }
        let may_be_about_params = |error: Frame<'_>| self.params_of.may_be_refused(error);
        if step == ProbeRequest::Discover && error.is_some_and(may_be_about_params) {
            self.params_of = ParamsOf::Gateway;
            return NextStep::Ask(self, ProbeRequest::Discover);
        }
        if let Some(session) = self.session.take() {
            return NextStep::UseSession(self, session);
        }
        match self.other_era() {
            Some(other) => NextStep::Ask(self, other),
            None => self.failed(),
        }
    }

    /// Returns the opening that was not sent yet, if it may be.
    fn other_era(&self) -> Option<ProbeRequest> {
        let [first, other] = [self.order.first, self.order.first.other()];
        let is_new = |request: &ProbeRequest| !self.asked.contains(request);
        [first, other]
            .into_iter()
            .find(is_new)
            .filter(|request| self.order.both || *request == first)
    }

    fn failed(self) -> NextStep {
        let of_client = if self.opening.is_pushed() {
            ProbeRequest::Initialize
        } else {
            ProbeRequest::Discover
        };
        let mut refusals = self.refusals;
        let at = refusals.iter().position(|(step, _)| *step == of_client);
        let error = match at {
            Some(at) => Some(refusals.swap_remove(at).1),
            None => refusals.pop().map(|(_, error)| error),
        };
        NextStep::Failed(self.opening, error)
    }

    /// Returns the next step after a timeout.
    pub(crate) fn timed_out(mut self) -> NextStep {
        if let Some(result) = self.discovered.take() {
            return NextStep::UseRounds(self, result);
        }
        if let Some(session) = self.session.take() {
            return NextStep::UseSession(self, session);
        }
        if let Some(other) = self.other_era() {
            return NextStep::Ask(self, other);
        }
        // A server that may be addressed in one era only gets as much time as the client gives it.
        if self.waits_for(ProbeRequest::Initialize) || !self.order.both {
            return NextStep::Wait(self);
        }
        self.open.clear();
        self.failed()
    }

    /// Returns `true` for a server that is to be restarted, since it exited over an opening of this probe, which may be
    /// of an era that it does not speak.
    pub(crate) fn wants_restart(&self) -> bool {
        if self.restarted || self.open.is_empty() {
            return false;
        }
        // The client's own `initialize` is as usual for a server, which would exit over it again.
        self.waits_for(ProbeRequest::Discover) || (self.order.both && !self.opening.is_pushed())
    }

    /// Returns the next step after a restart: the opening over which the server did not exit. If it exited after it had
    /// refused `initialize`, that is likelier the reason than `server/discover`.
    pub(crate) fn restarted(mut self) -> NextStep {
        if let Some(step) = self.after_restart.take() {
            return NextStep::Ask(self, step);
        }
        let over_discover = self.waits_for(ProbeRequest::Discover);
        let refused = |step| self.refusals.iter().any(|(known, _)| *known == step);
        let next = match (over_discover, refused(ProbeRequest::Initialize)) {
            (true, false) => ProbeRequest::Initialize,
            (true, true) | (false, _) => ProbeRequest::Discover,
        };
        self.restarted = true;
        self.open.clear();
        self.session = None;
        self.own_discover = None;
        self.params_of = ParamsOf::Gateway;
        self.asked = vec![ProbeRequest::Initialize, ProbeRequest::Discover];
        if !self.order.both && next != self.order.first {
            return self.failed();
        }
        NextStep::Ask(self, next)
    }

    fn waits_for(&self, request: ProbeRequest) -> bool {
        self.open.iter().any(|(_, open)| *open == request)
    }
}
