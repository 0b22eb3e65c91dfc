//! Facts learned about the servers, stored in the record: the calls that ask, and the timeouts of clients.

use std::sync::Arc;

use mcp_elicit_record::{Record, RecordError};
use mcp_elicit_relay::{Learned, RelaySettings};

/// The learning servers: each by its key, with the settings that its sessions share.
#[derive(Clone, Default)]
pub(crate) struct LearnedFacts(Arc<Vec<(String, RelaySettings)>>);

impl LearnedFacts {
    /// Creates the facts of these servers.
    pub(crate) fn of(servers: Vec<(String, RelaySettings)>) -> Self {
        Self(Arc::new(servers))
    }

    /// Adds the facts learned by earlier processes.
    pub(crate) async fn recall(&self, record: &Record) -> Result<(), RecordError> {
        for (server, settings) in self.0.iter() {
            recall(record, server, settings).await?;
        }
        Ok(())
    }

    /// Stores the facts learned since the last time.
    pub(crate) async fn keep(&self, record: &Record) -> Result<(), RecordError> {
        for (server, settings) in self.0.iter() {
            if settings.newly_learned().is_none() {
                continue;
            }
            // Another gateway may have learned facts meanwhile.
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
    // The facts of another version are dropped.
    let known = known.and_then(|text| serde_json::from_str::<Learned>(&text).ok());
    if let Some(known) = known {
        settings.learn(&known);
    }
    Ok(())
}
