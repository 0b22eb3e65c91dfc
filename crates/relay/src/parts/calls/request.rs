//! The request of a call, with the parts that depend on its kind.

use mcp_elicit_core::question::ProofNumber;
use mcp_elicit_core::wire::{CallDefect, Capability, Frame};

use super::summary::{summary, summary_of, target};
use crate::parts::indexed_frame::IndexedFrame;
use crate::{CallKind, CallSummary};

/// The request of a client.
pub(crate) enum Request {
    /// One in which questions may come up.
    Call(AskingCall),
    /// `tools/list`
    ToolList,
    /// `tasks/list`
    TaskList,
    /// Any other.
    Other,
}

/// A request in which questions may come up. It is kept while it is open.
pub(crate) struct AskingCall {
    kind: CallKind,
    /// The request as it went to the server.
    frame: IndexedFrame,
    /// The modes that the client can ask in, in this call.
    capability: Capability,
    /// The proof of the request that made it last.
    proof: ProofNumber,
    summary: Summary,
    turn: Turn,
}

/// The summary of the call, which is read when it is first needed.
enum Summary {
    /// Not read; `digest` is the digest of the call, if it was computed for the rules.
    Unread { digest: Option<String> },
    /// Read, or not showable for this reason.
    Read(Result<CallSummary, CallDefect>),
}

/// The turn of a call, if calls take turns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It has none of its own.
    None,
    /// It has its own.
    Own,
    /// It shares one with other calls that may be asking.
    Shared,
    /// It was seen to ask, and has its own until it ends.
    OwnAndAsks,
}

impl Request {
    /// Creates a request of this method in which no question may come up.
    pub(crate) fn without_questions(method: Option<&str>) -> Self {
        match method {
            Some("tools/list") => Self::ToolList,
            Some("tasks/list") => Self::TaskList,
            Some(_) | None => Self::Other,
        }
    }

    /// Returns the call, if questions may come up in it.
    pub(super) fn call(&self) -> Option<&AskingCall> {
        match self {
            Self::Call(call) => Some(call),
            Self::ToolList | Self::TaskList | Self::Other => None,
        }
    }

    /// Returns the call mutably, if questions may come up in it.
    pub(super) fn call_mut(&mut self) -> Option<&mut AskingCall> {
        match self {
            Self::Call(call) => Some(call),
            Self::ToolList | Self::TaskList | Self::Other => None,
        }
    }

    /// Returns the size of its kept parts, in bytes.
    pub(super) fn size(&self) -> usize {
        self.call().map_or(0, AskingCall::size)
    }
}

impl AskingCall {
    /// Returns the size of its kept parts, in bytes. The arguments that are shown to people are a copy.
    fn size(&self) -> usize {
        let shown = self.known_summary();
        let arguments = shown.and_then(|summary| summary.arguments.as_ref());
        self.frame.size() + arguments.map_or(0, String::len)
    }

    /// Creates a call with this request, as it goes to the server; its client can ask in these modes.
    pub(crate) fn new(kind: CallKind, frame: IndexedFrame, capability: Capability) -> Self {
        Self {
            kind,
            frame,
            capability,
            proof: ProofNumber::default(),
            summary: Summary::Unread { digest: None },
            turn: Turn::None,
        }
    }

    /// Adds the digest of the call, if it was computed before the call came here.
    pub(crate) fn with_digest(self, digest: Option<&str>) -> Self {
        let digest = digest.map(str::to_owned);
        Self {
            summary: Summary::Unread { digest },
            ..self
        }
    }

    /// Returns the kind of call.
    pub(super) fn kind(&self) -> CallKind {
        self.kind
    }

    /// Returns the request as it went to the server.
    pub(super) fn frame(&self) -> &IndexedFrame {
        &self.frame
    }

    /// Returns the modes that the client can ask in, in this call.
    pub(super) fn capability(&self) -> Capability {
        self.capability
    }

    /// Records that the client that has made it again can ask in these modes.
    pub(super) fn declares(&mut self, capability: Capability) {
        self.capability = capability;
    }

    /// Records that it was made, or made again, with this proof.
    pub(super) fn made_with(&mut self, proof: ProofNumber) {
        self.proof = proof;
        if let Summary::Read(Ok(read)) = &mut self.summary {
            read.proof = proof;
        }
    }

    /// Returns the proof of the request that made it last.
    pub(super) fn proof(&self) -> ProofNumber {
        self.proof
    }

    /// Returns the kind of call, and the target's name or URI.
    pub(super) fn target(&self) -> Option<(CallKind, String)> {
        Some((self.kind, target(self.frame.frame())?))
    }

    /// Returns the summary of the call, or the reason why it cannot be shown.
    pub(super) fn summary(&mut self) -> Result<&CallSummary, CallDefect> {
        if let Summary::Unread { digest } = &mut self.summary {
            let digest = digest.take();
            self.summary = Summary::Read(self.read(digest));
        }
        match &self.summary {
            Summary::Read(read) => read.as_ref().map_err(|defect| *defect),
            Summary::Unread { .. } => Err(CallDefect::Target),
        }
    }

    fn read(&self, digest: Option<String>) -> Result<CallSummary, CallDefect> {
        let frame: Frame<'_> = self.frame.frame();
        let read = match digest {
            Some(digest) => summary_of(self.kind, frame, digest),
            None => summary(self.kind, frame),
        };
        let proof = self.proof;
        read.map(|read| CallSummary { proof, ..read })
    }

    /// Returns the summary of the call, if it was read before.
    pub(super) fn known_summary(&self) -> Option<&CallSummary> {
        match &self.summary {
            Summary::Read(read) => read.as_ref().ok(),
            Summary::Unread { .. } => None,
        }
    }

    /// Returns `true` if it takes turns, and has its own or shares one.
    pub(super) fn has_turn(&self) -> bool {
        self.turn != Turn::None
    }

    /// Records that its own turn has come.
    pub(super) fn begin_turn(&mut self) {
        if self.turn == Turn::None {
            self.turn = Turn::Own;
        }
    }

    /// Records that it shares the turn of other calls that may be asking.
    pub(super) fn share_turn(&mut self) {
        if self.turn == Turn::None {
            self.turn = Turn::Shared;
        }
    }

    /// Records that it was seen to ask: it keeps a turn until it ends, although it did not wait for one.
    pub(super) fn seen_asking(&mut self) {
        self.turn = Turn::OwnAndAsks;
    }

    /// Ends its turn. Returns `true` if it had one of its own and did not ask.
    pub(super) fn end_turn(&mut self) -> bool {
        std::mem::replace(&mut self.turn, Turn::None) == Turn::Own
    }

    /// Returns the digest that was computed before the call came here, while the call itself is not read.
    #[cfg(test)]
    pub(super) fn digest(&self) -> Option<&str> {
        match &self.summary {
            Summary::Unread { digest } => digest.as_deref(),
            Summary::Read(_) => None,
        }
    }

    /// Checks that the digest is that of the stored request.
    #[cfg(test)]
    pub(super) fn check(&self) {
        if let Some(digest) = self.digest() {
            assert_eq!(digest, self.read(None).unwrap().digest);
        }
    }
}
