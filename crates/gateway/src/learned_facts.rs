//! Facts learned about the servers, stored in the record: the calls that ask, and the timeouts of clients.
//!
//! They are stored under the server's identity, which an answer is bound to as well: the environment, the working folder
//! and credentials count. The eras in which a server asks follow from its program, so they are stored under what the
//! configuration names too. `gateway --check` in a terminal then knows what the gateway of a desktop client saw.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mcp_elicit_record::{Record, RecordError};
use mcp_elicit_relay::{Learned, RelaySettings};

use crate::config::ConfiguredServer;
use crate::server_identity::{configured_key, server_identity};

/// One learning server.
pub(crate) struct LearningServer {
    /// The key of its identity.
    pub(crate) identity: String,
    /// The key of what the configuration names.
    pub(crate) configured: String,
    /// The settings that its sessions share.
    pub(crate) settings: RelaySettings,
    /// The facts that were read last.
    pub(crate) read: FactsRead,
}

/// Hashes of the facts that were read last, under the identity and under what the configuration names.
#[derive(Default)]
pub(crate) struct FactsRead {
    hasher: RandomState,
    hashes: [AtomicU64; 2],
}

impl FactsRead {
    /// Returns `true` if these facts differ from those that were read last.
    fn differ(&self, place: usize, text: &str) -> bool {
        let hash = self.hasher.hash_one(text);
        self.hashes
            .get(place)
            .is_none_or(|last| last.swap(hash, Ordering::Relaxed) != hash)
    }
}

/// The learning servers: those of the file, and those of earlier files that still have sessions.
#[derive(Clone, Default)]
pub(crate) struct LearnedFacts(Arc<Mutex<Vec<Arc<LearningServer>>>>);

impl LearnedFacts {
    /// Replaces the servers. Those that are used elsewhere stay.
    pub(crate) fn replace(&self, servers: Vec<Arc<LearningServer>>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|server| {
            let is_next = servers.iter().any(|next| Arc::ptr_eq(next, server));
            !is_next && Arc::strong_count(server) > 1
        });
        all.extend(servers);
    }

    fn all(&self) -> Vec<Arc<LearningServer>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Adds the facts learned by other processes and earlier ones.
    pub(crate) async fn recall(&self, record: &Record) -> Result<(), RecordError> {
        for server in self.all() {
            server.recall(record).await?;
        }
        Ok(())
    }

    /// Stores the facts learned since the last time.
    pub(crate) async fn keep(&self, record: &Record) -> Result<(), RecordError> {
        for server in self.all() {
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
    /// Creates the facts about a server.
    pub(crate) fn of(server: &ConfiguredServer, record: &Record) -> Self {
        let key = record.identity_key();
        Self {
            identity: server_identity(server, key, std::env::vars_os()).key,
            configured: configured_key(server, key),
            settings: server.settings.clone(),
            read: FactsRead::default(),
        }
    }

    async fn recall(&self, record: &Record) -> Result<(), RecordError> {
        for (place, key) in [&self.identity, &self.configured].into_iter().enumerate() {
            let known = record.store().learned(key.clone()).await?;
            let known = known.filter(|text| self.read.differ(place, text));
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
