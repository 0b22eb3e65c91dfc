//! A store in memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::{Store, StoreFuture};

/// A store in memory, for a server that runs as one process.
#[derive(Default)]
pub struct MemoryStore {
    used: Mutex<HashMap<String, u64>>,
    kept: Mutex<HashMap<String, (Vec<u8>, u64)>>,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Expired entries are swept when the map has grown to twice what the last sweep may have left.
fn worth_sweeping(len: usize) -> bool {
    len >= 1024 && len.is_power_of_two()
}

impl Store for MemoryStore {
    fn use_up<'a>(&'a self, id: &'a str, now_ms: u64, until_ms: u64) -> StoreFuture<'a, bool> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if worth_sweeping(used.len()) {
            used.retain(|_, until| *until > now_ms);
        }
        let first = used.insert(id.to_owned(), until_ms).is_none();
        Box::pin(std::future::ready(Ok(first)))
    }

    fn keep<'a>(
        &'a self,
        id: &'a str,
        bytes: Vec<u8>,
        now_ms: u64,
        until_ms: u64,
    ) -> StoreFuture<'a, ()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if worth_sweeping(kept.len()) {
            kept.retain(|_, entry| entry.1 > now_ms);
        }
        kept.insert(id.to_owned(), (bytes, until_ms));
        Box::pin(std::future::ready(Ok(())))
    }

    fn kept<'a>(&'a self, id: &'a str, now_ms: u64) -> StoreFuture<'a, Option<Vec<u8>>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = kept
            .get(id)
            .filter(|entry| entry.1 > now_ms)
            .map(|entry| entry.0.clone());
        Box::pin(std::future::ready(Ok(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn expired_entries_are_swept_and_live_ones_are_not() {
        let store = MemoryStore::new();
        for number in 0..1024 {
            store.use_up(&format!("old-{number}"), 0, 10).await.unwrap();
        }
        store.use_up("new", 20, 30).await.unwrap();
        assert_eq!(store.used.lock().unwrap().len(), 1);
        assert!(!store.use_up("new", 25, 30).await.unwrap());
    }
}
