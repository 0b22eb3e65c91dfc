//! The eras in which a server was seen to ask during a call, recorded for gateways and checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_elicit_client::dispatch::Observer;
use mcp_elicit_client::{Question, QuestionError};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::wire::Revision;
use mcp_elicit_gateway::config::ConfiguredServer;
use mcp_elicit_gateway::note_asked_eras;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_relay::AskedEras;

/// The server of a call as a gateway has it, and the state folder whose record is told.
pub(crate) struct RecordedIn {
    pub(crate) server: ConfiguredServer,
    pub(crate) folder: StateFolder,
}

/// Notices the questions of one call.
#[derive(Clone, Default)]
pub(super) struct SeenToAsk(Arc<AtomicBool>);

impl SeenToAsk {
    /// Returns the eras in which the server has asked on a connection of this revision since the last time.
    pub(super) fn take(&self, protocol: &str) -> AskedEras {
        let asked = self.0.swap(false, Ordering::Relaxed);
        let in_rounds = protocol == Revision::V2026_07_28.as_str();
        AskedEras {
            pushed: asked && !in_rounds,
            rounds: asked && in_rounds,
            needs_rounds: false,
        }
    }
}

impl Observer for SeenToAsk {
    fn asked(&self, _: &Question) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn refused(&self, question: Option<&Question>, _: &QuestionError) {
        self.0.fetch_or(question.is_some(), Ordering::Relaxed);
    }
}

impl RecordedIn {
    /// Records these eras, if there is a record.
    pub(super) async fn note(&self, seen: AskedEras) {
        if seen != AskedEras::default() {
            note_asked_eras(&self.server, &self.folder, seen, now()).await;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the record says when a fact was learned"
)]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    Timestamp::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}
