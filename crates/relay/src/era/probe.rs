//! The state of finding out which era the server speaks: what was asked, and what follows from each answer.

use mcp_elicit_core::wire::{Envelope, Id, Revision};
use serde_json::value::RawValue;

use crate::StreamId;

/// The first request of a conversation, by the era that it asks for.
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
    /// The client's `initialize`, asking for this revision.
    Initialize {
        stream: StreamId,
        id: Id,
        revision: String,
    },
    /// The client's `server/discover`.
    Discover { stream: StreamId, id: Id },
    /// Some other request of the rounds era, which waits.
    Request,
}

impl Opening {
    /// Returns the request that goes out first for it.
    fn first(&self) -> ProbeRequest {
        match self {
            Self::Initialize { .. } => ProbeRequest::Initialize,
            Self::Discover { .. } | Self::Request => ProbeRequest::Discover,
        }
    }
}

/// The words in which the server was asked with `server/discover`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    /// The gateway's own, so far as it was asked so at all.
    Own,
    /// The client's, which name 2026-07-28.
    Clients,
    /// The client's, which do not: a refusal may be about them alone.
    ClientsOther,
}

/// The code with which a server says that it does not know a method.
const NO_METHOD: i64 = -32601;

impl Words {
    /// Returns `true` if a refusal with this error, a whole frame, may be about the client's words and not about the server.
    fn may_be_refused(self, error: &str) -> bool {
        let code = Envelope::parse_within(error.as_bytes(), usize::MAX);
        let code = code.ok().and_then(|all| all.error_code());
        match self {
            Self::Own => false,
            Self::Clients => code != Some(NO_METHOD),
            Self::ClientsOther => true,
        }
    }
}

/// A server that is being asked for its era.
pub(crate) struct EraProbe {
    /// The requests that are not answered yet, by the ids that they went out with.
    open: Vec<(Id, ProbeRequest)>,
    /// `true` if both eras were asked.
    both: bool,
    /// `true` if the server was started anew over it.
    restarted: bool,
    opening: Opening,
    words: Words,
    /// The first error that came.
    refusal: Option<String>,
    /// The client's own revision and params, where the server was asked for a newer one first.
    older: Option<(Revision, Box<RawValue>)>,
}

/// The next step after the server has refused a request, or has not answered it.
pub(crate) enum AfterRefusal {
    /// The server does not negotiate: it is asked for the client's own revision, with the client's params.
    AskOlder(EraProbe, Revision, Box<RawValue>),
    /// Another request is not answered yet.
    Wait(EraProbe),
    /// A refusal that may be about the client's words: the server is asked the same in the gateway's own.
    AskAgain(EraProbe),
    /// The era that was not asked yet is asked.
    AskOther(EraProbe),
    /// The server speaks neither; the first error that it gave, if it gave one.
    Failed(Opening, Option<String>),
}

impl EraProbe {
    /// The client's own opening goes out under this id.
    pub(crate) fn new(id: Id, opening: Opening) -> Self {
        Self {
            open: vec![(id, opening.first())],
            both: false,
            restarted: false,
            opening,
            words: Words::Own,
            refusal: None,
            older: None,
        }
    }

    /// A request waits for the server's era, which is asked for under this id; `is_pushed` where it is known already.
    pub(crate) fn for_request(id: Id, is_pushed: bool) -> (Self, ProbeRequest) {
        let mut probe = Self::new(id.clone(), Opening::Request);
        if is_pushed {
            probe.open = vec![(id, ProbeRequest::Initialize)];
            probe.both = true;
            return (probe, ProbeRequest::Initialize);
        }
        (probe, ProbeRequest::Discover)
    }

    /// Notes that the server is asked in the client's own words; `names_revision` where they name 2026-07-28.
    pub(crate) fn in_clients_words(self, names_revision: bool) -> Self {
        let words = if names_revision {
            Words::Clients
        } else {
            Words::ClientsOther
        };
        Self { words, ..self }
    }

    /// Keeps the client's own revision and params: the server is asked for a newer one first.
    pub(crate) fn with_older(self, revision: Revision, params: Box<RawValue>) -> Self {
        Self {
            older: Some((revision, params)),
            ..self
        }
    }

    /// Returns the message that opened the conversation.
    pub(crate) fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Ends the request that went out under this id. Returns what it was.
    pub(crate) fn answered(&mut self, id: &Id) -> Option<ProbeRequest> {
        let at = self.open.iter().position(|(open, _)| open == id)?;
        Some(self.open.remove(at).1)
    }

    /// Notes that the era that was not asked yet is asked under this id. Returns how.
    pub(crate) fn ask_other(&mut self, id: Id) -> ProbeRequest {
        let request = match self.opening.first() {
            ProbeRequest::Initialize => ProbeRequest::Discover,
            ProbeRequest::Discover => ProbeRequest::Initialize,
        };
        self.both = true;
        self.open.push((id, request));
        request
    }

    /// Notes that the server is asked with `server/discover` once more, in the gateway's own words, under this id. Returns how.
    pub(crate) fn ask_again(&mut self, id: Id) -> ProbeRequest {
        self.words = Words::Own;
        self.open.push((id, ProbeRequest::Discover));
        ProbeRequest::Discover
    }

    /// Returns the first error that came, a whole frame.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Notes that the server is asked for the client's own revision under this id.
    pub(crate) fn ask_older(&mut self, id: Id) {
        self.open.push((id, ProbeRequest::Initialize));
    }

    /// Returns what follows from a refusal; `error` is the frame with it, where the server gave one.
    pub(crate) fn refused(mut self, error: Option<&str>) -> AfterRefusal {
        self.refusal = self.refusal.or_else(|| error.map(str::to_owned));
        if let (Some((revision, params)), true) = (self.older.take(), error.is_some()) {
            return AfterRefusal::AskOlder(self, revision, params);
        }
        if !self.open.is_empty() {
            return AfterRefusal::Wait(self);
        }
        if error.is_some_and(|error| self.words.may_be_refused(error)) {
            return AfterRefusal::AskAgain(self);
        }
        if !self.both {
            return AfterRefusal::AskOther(self);
        }
        AfterRefusal::Failed(self.opening, self.refusal)
    }

    /// Returns what follows where the server has said nothing in time.
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

    /// Returns `true` for a server that is to be started anew, since it ended over `server/discover`.
    pub(crate) fn wants_restart(&self) -> bool {
        self.waits_for(ProbeRequest::Discover) && !self.restarted
    }

    /// Returns what follows where the server was started anew.
    pub(crate) fn restarted(mut self) -> AfterRefusal {
        self.open.clear();
        self.restarted = true;
        self.words = Words::Own;
        // `initialize` was refused before, or is still to be asked of the new one.
        self.both = self.opening.first() == ProbeRequest::Initialize;
        self.refused(None)
    }

    fn waits_for(&self, request: ProbeRequest) -> bool {
        self.open.iter().any(|(_, open)| *open == request)
    }
}
