//! The contract of every store, run against each implementation.

use std::sync::{Arc, Mutex};

use mcp_elicit_server::ElicitingExt;
use mcp_elicit_server::seal::{MemoryStore, SqliteStore, Store, StoreFuture};
use serde_json::json;

use crate::asker::Asker;
use crate::harness::{Act, ScriptedUser, said};

async fn keeps_the_contract(store: &dyn Store) {
    assert!(store.consume("a", 0, 10).await.unwrap());
    assert!(!store.consume("a", 5, 10).await.unwrap());
    assert!(store.consume("b", 5, 10).await.unwrap());
    let no_name = store.consume("", 5, 10).await.unwrap();
    assert!(no_name && !store.consume("", 5, 10).await.unwrap());
    // Expired entries may be forgotten, others may not.
    assert!(store.consume("long", 0, u64::MAX).await.unwrap());
    assert!(store.consume("later", 1_000_000, 2_000_000).await.unwrap());
    assert!(!store.consume("long", 1_000_000, u64::MAX).await.unwrap());

    let odd = "it's; \"DROP TABLE used\" \u{0}\u{202e}é";
    store.put("k", vec![1, 2], 0, 10).await.unwrap();
    store.put(odd, vec![0; 100_000], 0, 10).await.unwrap();
    store.put("empty", Vec::new(), 0, 10).await.unwrap();
    assert_eq!(store.load("k", 5).await.unwrap(), Some(vec![1, 2]));
    assert_eq!(store.load(odd, 5).await.unwrap().unwrap().len(), 100_000);
    assert_eq!(store.load("empty", 5).await.unwrap(), Some(Vec::new()));
    assert_eq!(store.load("k", 10).await.unwrap(), None);
    assert_eq!(store.load("unknown", 5).await.unwrap(), None);
    store.put("k", vec![3], 0, 20).await.unwrap();
    assert_eq!(store.load("k", 15).await.unwrap(), Some(vec![3]));

    let racing = (0..16).map(|_| store.consume("race", 0, u64::MAX));
    let won = futures::future::join_all(racing).await;
    let won = won.into_iter().filter(|first| *first.as_ref().unwrap());
    assert_eq!(won.count(), 1, "one of those who come at once is the first");
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    keeps_the_contract(&MemoryStore::new()).await;
}

#[tokio::test]
async fn sqlite_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("states.db");
    let store = SqliteStore::open(&file).await.unwrap();
    keeps_the_contract(&store).await;
    // Another process with the same file, before and after this one has ended.
    let other = SqliteStore::open(&file).await.unwrap();
    assert!(!other.consume("long", 1_000_000, u64::MAX).await.unwrap());
    let (first, second) = futures::join!(
        store.consume("both", 0, u64::MAX),
        other.consume("both", 0, u64::MAX)
    );
    assert!(first.unwrap() ^ second.unwrap());
    drop((store, other));
    let after = SqliteStore::open(&file).await.unwrap();
    assert!(!after.consume("both", 1_000_000, u64::MAX).await.unwrap());
    assert_eq!(after.load("k", 15).await.unwrap(), Some(vec![3]));
    after
        .put("new", vec![4], 1_000_000, u64::MAX)
        .await
        .unwrap();
    assert_eq!(
        after.load("k", 15).await.unwrap(),
        None,
        "what has expired is swept"
    );
    assert!(SqliteStore::open(folder.path()).await.is_err());
}

/// A store that records the values that it was given to keep.
#[derive(Debug, Default)]
struct Peeking {
    store: MemoryStore,
    seen: Mutex<Vec<Vec<u8>>>,
}

impl Store for Peeking {
    fn consume<'a>(&'a self, id: &'a str, now_ms: u64, until_ms: u64) -> StoreFuture<'a, bool> {
        self.store.consume(id, now_ms, until_ms)
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        bytes: Vec<u8>,
        now_ms: u64,
        until_ms: u64,
    ) -> StoreFuture<'a, ()> {
        self.seen.lock().unwrap().push(bytes.clone());
        self.store.put(id, bytes, now_ms, until_ms)
    }

    fn load<'a>(&'a self, id: &'a str, now_ms: u64) -> StoreFuture<'a, Option<Vec<u8>>> {
        self.store.load(id, now_ms)
    }
}

/// A store may be a file or another party's machine, so answers must not be readable there.
#[tokio::test(start_paused = true)]
async fn what_a_store_keeps_is_sealed() {
    let store = Arc::new(Peeking::default());
    let person = ScriptedUser::answering(
        "2026-07-28",
        [
            Act::Accept(json!({ "environment": "production" })),
            Act::Accept(json!({ "confirm": true })),
        ],
    );
    let settings = person.clock.settings().state_limit(10);
    let server = Asker.eliciting(settings.store(store.clone()));
    let result = person.call_under(server, "deploy").await.unwrap();
    assert!(said(&result).0.starts_with("Production"));
    let seen = store.seen.lock().unwrap();
    assert!(seen.len() >= 2, "{}", seen.len());
    for bytes in seen.iter() {
        let text = String::from_utf8_lossy(bytes);
        assert!(text.starts_with("me1.") && !text.contains("production"));
    }
}
