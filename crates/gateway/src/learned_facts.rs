//! Facts learned about the servers, stored in the record: the calls that ask, and the timeouts of clients.
//!
//! They are stored under the server's identity, which an answer is bound to as well: the environment, the working folder
//! and credentials count. The eras in which a server asks follow from its program, so they are stored under what the
//! configuration names too. `gateway --check` in a terminal then knows what the gateway of a desktop client saw.

use std::sync::Arc;

use mcp_elicit_record::{Record, RecordError};
use mcp_elicit_relay::{Learned, RelaySettings};

/// One learning server.
pub(crate) struct LearningServer {
    /// The key of its identity.
    pub(crate) identity: String,
    /// The key of what the configuration names.
    pub(crate) configured: String,
    /// The settings that its sessions share.
    pub(crate) settings: RelaySettings,
}

/// The learning servers.
#[derive(Clone, Default)]
pub(crate) struct LearnedFacts(Arc<Vec<LearningServer>>);

impl LearnedFacts {
    /// Creates the facts of these servers.
    pub(crate) fn of(servers: Vec<LearningServer>) -> Self {
        Self(Arc::new(servers))
    }

    /// Adds the facts learned by earlier processes.
    pub(crate) async fn recall(&self, record: &Record) -> Result<(), RecordError> {
        for server in self.0.iter() {
            server.recall(record).await?;
        }
        Ok(())
    }

    /// Stores the facts learned since the last time.
    pub(crate) async fn keep(&self, record: &Record) -> Result<(), RecordError> {
        for server in self.0.iter() {
            if server.settings.newly_learned().is_none() {
                continue;
            }
            // Another gateway may have learned facts meanwhile.
            server.recall(record).await?;
            let learned = server.settings.learned();
            keep(record, &server.identity, &learned).await?;
            let eras = Learned::from(learned.eras());
            if eras != Learned::default() {
                keep(record, &server.configured, &eras).await?;
            }
        }
        Ok(())
    }
}

impl LearningServer {
    async fn recall(&self, record: &Record) -> Result<(), RecordError> {
        for key in [&self.identity, &self.configured] {
            let known = record.store().learned(key.clone()).await?;
            // The facts of another version are dropped.
            let known = known.and_then(|text| serde_json::from_str::<Learned>(&text).ok());
            if let Some(known) = known {
                self.settings.learn(&known);
            }
        }
        Ok(())
    }
}

async fn keep(record: &Record, key: &str, learned: &Learned) -> Result<(), RecordError> {
    let Ok(text) = serde_json::to_string(learned) else {
        return Ok(());
    };
    let kept = record
        .store()
        .keep_learned(key.to_owned(), text, record.now());
    Ok(kept.await?)
}
