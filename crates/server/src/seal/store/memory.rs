//! A store in memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::{Store, StoreError, StoreFuture};

/// The most used states that are remembered. With names of 22 letters, about 30 MB.
const MAX_USED: usize = 1 << 18;

/// The most bytes that are stored.
const MAX_STORED_BYTES: usize = 64 << 20;

/// A store in memory, for a server that runs as one process. Bounded: it remembers the last 262,144 used states,
/// rejects older ones as used when there are more, and stores up to 64 MiB.
///
/// ```
/// use std::sync::Arc;
/// use mcp_elicit_server::ServerSettings;
/// use mcp_elicit_server::seal::MemoryStore;
///
/// let settings = ServerSettings::default().store(Arc::new(MemoryStore::new()));
/// ```
pub struct MemoryStore {
    used: Mutex<Used>,
    stored: Mutex<StoredState>,
    max_used: usize,
    max_stored_bytes: usize,
}

#[derive(Default)]
struct Used {
    until: HashMap<String, u64>,
    /// A state that expires by this time counts as used: the list of those that were is forgotten.
    forgotten_until: u64,
}

#[derive(Default)]
struct StoredState {
    entries: HashMap<String, (Vec<u8>, u64)>,
    bytes: usize,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::bounded(MAX_USED, MAX_STORED_BYTES)
    }
}

impl MemoryStore {
    /// Creates an empty store.
    ///
    /// ```
    /// use mcp_elicit_server::seal::{MemoryStore, Store};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), mcp_elicit_server::seal::StoreError> {
    /// let store = MemoryStore::new();
    /// assert!(store.consume("a state", 0, 1_000).await?);
    /// assert!(!store.consume("a state", 0, 1_000).await?);
    /// # Ok(()) }
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    fn bounded(max_used: usize, max_stored_bytes: usize) -> Self {
        Self {
            used: Mutex::default(),
            stored: Mutex::default(),
            max_used,
            max_stored_bytes,
        }
    }
}

/// Returns `true` when the map has grown to twice the size that the last sweep may have left.
fn worth_sweeping(len: usize) -> bool {
    len >= 1024 && len.is_power_of_two()
}

impl Used {
    /// Drops expired entries and, if that is not enough, the eighth that expires first. From then on every state that
    /// expires no later than those counts as used, so that no state counts twice.
    fn make_room(&mut self, now_ms: u64, most: usize) {
        if self.until.len() < most {
            if worth_sweeping(self.until.len()) {
                self.until.retain(|_, until| *until > now_ms);
            }
            return;
        }
        self.until.retain(|_, until| *until > now_ms);
        if self.until.len() < most {
            return;
        }
        let mut ends: Vec<u64> = self.until.values().copied().collect();
        let eighth = ends.len() / 8;
        let (_, last, _) = ends.select_nth_unstable(eighth);
        let last = *last;
        if self.forgotten_until == 0 {
            tracing::warn!(
                target: "mcp_elicit",
                most,
                "more states were used in their lifetime than this process remembers; the oldest count as used. \
                 Settings::store takes a larger store"
            );
        }
        self.forgotten_until = self.forgotten_until.max(last);
        self.until.retain(|_, until| *until > last);
    }
}

impl Store for MemoryStore {
    fn consume<'a>(&'a self, id: &'a str, now_ms: u64, until_ms: u64) -> StoreFuture<'a, bool> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.make_room(now_ms, self.max_used);
        let first =
            until_ms > used.forgotten_until && used.until.insert(id.to_owned(), until_ms).is_none();
        Box::pin(std::future::ready(Ok(first)))
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        bytes: Vec<u8>,
        now_ms: u64,
        until_ms: u64,
    ) -> StoreFuture<'a, ()> {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let result = stored.keep(id, bytes, now_ms, until_ms, self.max_stored_bytes);
        Box::pin(std::future::ready(result))
    }

    fn load<'a>(&'a self, id: &'a str, now_ms: u64) -> StoreFuture<'a, Option<Vec<u8>>> {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = stored
            .entries
            .get(id)
            .filter(|entry| entry.1 > now_ms)
            .map(|entry| entry.0.clone());
        Box::pin(std::future::ready(Ok(bytes)))
    }
}

impl StoredState {
    fn keep(
        &mut self,
        id: &str,
        bytes: Vec<u8>,
        now_ms: u64,
        until_ms: u64,
        most: usize,
    ) -> Result<(), StoreError> {
        if let Some((before, _)) = self.entries.remove(id) {
            self.bytes -= before.len();
        }
        if worth_sweeping(self.entries.len()) || self.bytes + bytes.len() > most {
            self.entries.retain(|_, entry| entry.1 > now_ms);
            self.bytes = self.entries.values().map(|entry| entry.0.len()).sum();
        }
        if self.bytes + bytes.len() > most {
            return Err(StoreError(format!(
                "the store in memory is full: it keeps up to {most} bytes"
            )));
        }
        self.bytes += bytes.len();
        self.entries.insert(id.to_owned(), (bytes, until_ms));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn expired_entries_are_swept_and_live_ones_are_not() {
        let store = MemoryStore::new();
        for number in 0..1024 {
            store
                .consume(&format!("old-{number}"), 0, 10)
                .await
                .unwrap();
        }
        store.consume("new", 20, 30).await.unwrap();
        assert_eq!(store.used.lock().unwrap().until.len(), 1);
        assert!(!store.consume("new", 25, 30).await.unwrap());
    }

    #[tokio::test]
    async fn a_full_store_lets_no_state_count_twice() {
        let store = MemoryStore::bounded(16, 0);
        for number in 0..100_u64 {
            let id = number.to_string();
            assert!(store.consume(&id, 0, 1_000 + number).await.unwrap(), "{id}");
            assert!(store.used.lock().unwrap().until.len() <= 16);
        }
        for number in 0..100_u64 {
            let again = store.consume(&number.to_string(), 0, 1_000 + number).await;
            assert!(!again.unwrap(), "{number}");
        }
    }

    #[tokio::test]
    async fn what_is_kept_has_a_bound() {
        let store = MemoryStore::bounded(1, 10);
        store.put("a", vec![0; 6], 0, 10).await.unwrap();
        store.put("b", vec![0; 6], 0, 10).await.unwrap_err();
        store.put("a", vec![0; 10], 0, 10).await.unwrap();
        // Expired entries are dropped.
        store.put("b", vec![0; 6], 10, 20).await.unwrap();
        assert_eq!(store.load("b", 15).await.unwrap(), Some(vec![0; 6]));
    }
}
