//! Facts learned of the servers, kept in the record: which calls ask, and how long clients wait.

use std::sync::Arc;

use mcp_elicit_record::{Record, RecordError};
use mcp_elicit_relay::{Learned, RelaySettings};

/// The servers of which is learned: each by its key, and the settings that its sessions share.
#[derive(Clone, Default)]
pub(crate) struct LearnedFacts(Arc<Vec<(String, RelaySettings)>>);

impl LearnedFacts {
    /// Learns of these servers.
    pub(crate) fn of(servers: Vec<(String, RelaySettings)>) -> Self {
        Self(Arc::new(servers))
    }

    /// Adds what earlier processes learned.
    pub(crate) async fn recall(&self, record: &Record) -> Result<(), RecordError> {
        for (server, settings) in self.0.iter() {
            recall(record, server, settings).await?;
        }
        Ok(())
    }

    /// Writes what was learned since the last time.
    pub(crate) async fn keep(&self, record: &Record) -> Result<(), RecordError> {
        for (server, settings) in self.0.iter() {
            if settings.newly_learned().is_none() {
                continue;
            }
            // Another gateway may have learned something meanwhile.
            recall(record, server, settings).await?;
            if let Ok(text) = serde_json::to_string(&settings.learned()) {
                let kept = record
                    .store()
                    .keep_learned(server.clone(), text, record.now());
                kept.await?;
            }
        }
        Ok(())
    }
}

async fn recall(
    record: &Record,
    server: &str,
    settings: &RelaySettings,
) -> Result<(), RecordError> {
    let known = record.store().learned(server.to_owned()).await?;
    // Of another version: it is learned anew.
    let known = known.and_then(|text| serde_json::from_str::<Learned>(&text).ok());
    if let Some(known) = known {
        settings.learn(&known);
    }
    Ok(())
}
