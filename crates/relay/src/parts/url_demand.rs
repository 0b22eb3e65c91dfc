//! The visits that a server requires before a call is made again (`-32042`).

use mcp_elicit_core::wire::{ElicitRequest, Revision, UrlRequired};

/// The visits that a server required, for comparison with its next requirement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UrlDemand {
    visits: Vec<Visit>,
}

#[derive(Debug, PartialEq, Eq)]
struct Visit {
    /// The params of the request.
    params: String,
    id: Option<String>,
}

impl UrlDemand {
    /// Creates the visits of a server's answer.
    pub(crate) fn new(required: &UrlRequired) -> Self {
        let visit = |request: &ElicitRequest| {
            let params = request.to_raw_params(Revision::LATEST_PUSHED);
            Visit {
                params: params.map_or_else(|error| error.to_string(), |params| params.to_string()),
                id: match request {
                    ElicitRequest::Url { elicitation_id, .. } => elicitation_id.clone(),
                    ElicitRequest::Form { .. } => None,
                },
            }
        };
        Self {
            visits: required.elicitations.iter().map(visit).collect(),
        }
    }

    /// Returns the size of the visits, in bytes.
    pub(crate) fn size(&self) -> usize {
        let size = |visit: &Visit| visit.params.len() + visit.id.as_ref().map_or(0, String::len);
        self.visits.iter().map(size).sum()
    }

    /// Returns `true` if the visit of this id is one of them.
    pub(crate) fn wants_visit(&self, id: &str) -> bool {
        let mut visits = self.visits.iter();
        visits.any(|visit| visit.id.as_deref() == Some(id))
    }
}
