//! The state of the era detection: the openings sent, and the next step after each answer.

use mcp_elicit_core::wire::{Envelope, Id, Revision};
use serde_json::value::RawValue;

use crate::StreamId;

/// The opening of a connection, by its era.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeRequest {
    /// `initialize`: the pushed era.
    Initialize,
    /// `server/discover`: the rounds era.
    Discover,
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
    /// Returns the opening that is sent first for it.
    fn first(&self) -> ProbeRequest {
        match self {
            Self::Initialize { .. } => ProbeRequest::Initialize,
            Self::Discover { .. } | Self::Request => ProbeRequest::Discover,
        }
    }
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
    fn may_be_refused(self, error: &str) -> bool {
        let code = Envelope::parse_within(error.as_bytes(), usize::MAX);
        let code = code.ok().and_then(|all| all.error_code());
        match self {
            ParamsOf::Gateway => false,
            ParamsOf::Client => code != Some(NO_METHOD),
            ParamsOf::ClientWithoutRevision => true,
        }
    }
}

/// The state of asking a server for its era.
pub(crate) struct EraProbe {
    /// The unanswered openings, by their ids.
    open: Vec<(Id, ProbeRequest)>,
    /// `true` if both eras were asked.
    both: bool,
    /// `true` if the server was restarted because of it.
    restarted: bool,
    opening: Opening,
    params_of: ParamsOf,
    /// The first error received.
    refusal: Option<String>,
    /// The client's own revision and params, if the server was asked for a newer one first.
    older: Option<(Revision, Box<RawValue>)>,
}

/// The next step after a refusal, or after a timeout.
pub(crate) enum AfterRefusal {
    /// The server does not negotiate: ask it for the client's own revision, with the client's params.
    AskOlder(EraProbe, Revision, Box<RawValue>),
    /// Wait for another opening that is not answered yet.
    Wait(EraProbe),
    /// The refusal may be about the client's params: ask the same with the gateway's own.
    AskAgain(EraProbe),
    /// Ask in the other era.
    AskOther(EraProbe),
    /// The server speaks neither era; with its first error, if it gave one.
    Failed(Opening, Option<String>),
}

impl EraProbe {
    /// Creates a probe with the client's own opening, sent under this id.
    pub(crate) fn new(id: Id, opening: Opening) -> Self {
        Self {
            open: vec![(id, opening.first())],
            both: false,
            restarted: false,
            opening,
            params_of: ParamsOf::Gateway,
            refusal: None,
            older: None,
        }
    }

    /// Creates a probe for a request that waits for the server's era, with an opening under this id; `is_pushed` if the
    /// era is already known.
    pub(crate) fn for_request(id: Id, is_pushed: bool) -> (Self, ProbeRequest) {
        let mut probe = Self::new(id.clone(), Opening::Request);
        if is_pushed {
            probe.open = vec![(id, ProbeRequest::Initialize)];
            probe.both = true;
            return (probe, ProbeRequest::Initialize);
        }
        (probe, ProbeRequest::Discover)
    }

    /// Records that the server is asked with the client's own params; `names_revision` if they name 2026-07-28.
    pub(crate) fn with_client_params(self, names_revision: bool) -> Self {
        let params_of = if names_revision {
            ParamsOf::Client
        } else {
            ParamsOf::ClientWithoutRevision
        };
        Self { params_of, ..self }
    }

    /// Keeps the client's own revision and params, because the server is asked for a newer one first.
    pub(crate) fn with_older(self, revision: Revision, params: Box<RawValue>) -> Self {
        Self {
            older: Some((revision, params)),
            ..self
        }
    }

    /// Returns the message that opened the connection.
    pub(crate) fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Ends the opening that was sent under this id, and returns it.
    pub(crate) fn answered(&mut self, id: &Id) -> Option<ProbeRequest> {
        let at = self.open.iter().position(|(open, _)| open == id)?;
        Some(self.open.remove(at).1)
    }

    /// Records that the server is asked in the other era under this id, and returns the opening.
    pub(crate) fn ask_other(&mut self, id: Id) -> ProbeRequest {
        let request = match self.opening.first() {
            ProbeRequest::Initialize => ProbeRequest::Discover,
            ProbeRequest::Discover => ProbeRequest::Initialize,
        };
        self.both = true;
        self.open.push((id, request));
        request
    }

    /// Records that the server is asked with `server/discover` again, with the gateway's own params, under this id.
    /// Returns the opening.
    pub(crate) fn ask_again(&mut self, id: Id) -> ProbeRequest {
        self.params_of = ParamsOf::Gateway;
        self.open.push((id, ProbeRequest::Discover));
        ProbeRequest::Discover
    }

    /// Returns the first error received, a whole frame.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Records that the server is asked for the client's own revision under this id.
    pub(crate) fn ask_older(&mut self, id: Id) {
        self.open.push((id, ProbeRequest::Initialize));
    }

    /// Returns the next step after a refusal; `error` is the error frame, if the server gave one.
    pub(crate) fn refused(mut self, error: Option<&str>) -> AfterRefusal {
        self.refusal = self.refusal.or_else(|| error.map(str::to_owned));
        if let (Some((revision, params)), true) = (self.older.take(), error.is_some()) {
            return AfterRefusal::AskOlder(self, revision, params);
        }
        if !self.open.is_empty() {
            return AfterRefusal::Wait(self);
        }
        if error.is_some_and(|error| self.params_of.may_be_refused(error)) {
            return AfterRefusal::AskAgain(self);
        }
        if !self.both {
            return AfterRefusal::AskOther(self);
        }
        AfterRefusal::Failed(self.opening, self.refusal)
    }

    /// Returns the next step after a timeout.
    pub(crate) fn timed_out(mut self) -> AfterRefusal {
        if !self.both {
            return AfterRefusal::AskOther(self);
        }
        if self.waits_for(ProbeRequest::Initialize) {
            return AfterRefusal::Wait(self);
        }
        self.open.clear();
        self.refused(None)
    }

    /// Returns `true` for a server that is to be restarted, since it exited on `server/discover`.
    pub(crate) fn wants_restart(&self) -> bool {
        self.waits_for(ProbeRequest::Discover) && !self.restarted
    }

    /// Returns the next step after a restart.
    pub(crate) fn restarted(mut self) -> AfterRefusal {
        self.open.clear();
        self.restarted = true;
        self.params_of = ParamsOf::Gateway;
        // `initialize` was refused before, or is still to be sent to the new process.
        self.both = self.opening.first() == ProbeRequest::Initialize;
        self.refused(None)
    }

    fn waits_for(&self, request: ProbeRequest) -> bool {
        self.open.iter().any(|(_, open)| *open == request)
    }
}
