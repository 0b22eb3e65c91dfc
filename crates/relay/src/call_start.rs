//! The start of a client's request at the server: its changes, and the contents of a retry.

use mcp_elicit_core::wire::Capability;

use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::retry_answers::RetryAnswers;
use crate::{CallKind, DeliveryId};

/// A request of the client that is to start at the server.
#[derive(Default)]
pub(crate) struct Start {
    kind: Option<CallKind>,
    changed: Option<IndexedFrame>,
    capability: Capability,
    carried: Carried,
}

/// The answers in a retry.
#[derive(Default)]
pub(crate) struct Carried {
    answers: Option<RetryAnswers>,
    delivery: Option<DeliveryId>,
}

impl Start {
    /// Creates the start of a request of this kind, `None` if no question may come up in it, whose client can ask in
    /// these modes.
    pub(crate) fn new(kind: Option<CallKind>, capability: Capability) -> Self {
        Self {
            kind,
            capability,
            ..Self::default()
        }
    }

    /// Sets the request for the server, if it differs from the client's.
    pub(crate) fn changed(self, changed: Option<IndexedFrame>) -> Self {
        Self { changed, ..self }
    }

    /// Adds the contents of a retry.
    pub(crate) fn carrying(self, carried: Carried) -> Self {
        Self { carried, ..self }
    }

    /// Returns the kind of call, if questions may come up in it.
    pub(crate) fn kind(&self) -> Option<CallKind> {
        self.kind
    }

    /// Returns the modes that the client can ask in, in this call.
    pub(crate) fn capability(&self) -> Capability {
        self.capability
    }

    /// Returns the request for the server, if it differs from the client's, and the contents of a retry.
    pub(crate) fn into_parts(self) -> (Option<IndexedFrame>, Carried) {
        (self.changed, self.carried)
    }
}

impl Carried {
    /// Creates answers for the questions of a call that starts again.
    pub(crate) fn answers(answers: RetryAnswers) -> Self {
        let answers = Some(answers);
        Self {
            answers,
            ..Self::default()
        }
    }

    /// Creates the delivery of the answers in the request.
    pub(crate) fn delivery(delivery: Option<DeliveryId>) -> Self {
        Self {
            delivery,
            ..Self::default()
        }
    }

    /// Returns the delivery of the answers in the request.
    pub(crate) fn delivery_id(&self) -> Option<DeliveryId> {
        self.delivery
    }

    /// Returns the answers for the questions of a call that starts again.
    pub(crate) fn into_answers(self) -> Option<RetryAnswers> {
        self.answers
    }
}
