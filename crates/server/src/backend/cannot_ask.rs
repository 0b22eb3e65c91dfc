//! The backend of a client that cannot be asked: it returns the revision's own error before anything is sent.

use std::sync::Arc;

use mcp_elicit_core::wire::{Capability, Mode, Revision};
use rmcp::model::ClientCapabilities;

use super::call_wait::CallWait;
use crate::error::{CannotAsk, CannotAskReason, ElicitError};

/// A call whose client cannot be asked anything.
#[derive(Debug, Clone)]
pub(crate) struct Unavailable {
    pub(crate) why: CannotAskReason,
    pub(crate) revision: Revision,
    /// Used by the steps of a call that asks nothing.
    pub(crate) call_wait: Option<Arc<CallWait>>,
}

impl Unavailable {
    pub(crate) fn refuse(&self, mode: Mode) -> ElicitError {
        CannotAsk {
            mode,
            revision: self.revision,
            declared: Capability::NONE,
            why: self.why,
        }
        .into()
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }
}

/// Fails if `mode` was not declared. Servers must not send an undeclared mode (2025-11-25, "Capabilities").
pub(crate) fn declared(
    capability: Capability,
    mode: Mode,
    revision: Revision,
) -> Result<(), ElicitError> {
    if capability.has(mode) {
        Ok(())
    } else {
        Err(CannotAsk {
            mode,
            revision,
            declared: capability,
            why: CannotAskReason::Undeclared,
        }
        .into())
    }
}

/// Reads the capability from rmcp's type.
pub(crate) fn capability(declared: Option<&ClientCapabilities>, revision: Revision) -> Capability {
    let elicitation = declared.and_then(|capabilities| capabilities.elicitation.as_ref());
    let elicitation = elicitation.and_then(|elicitation| serde_json::to_value(elicitation).ok());
    Capability::read(elicitation.as_ref(), revision)
}
