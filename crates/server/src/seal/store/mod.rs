//! Storage for used states, and for journals too large to send. In memory, or (feature `sqlite`) in a file that
//! survives the process and that several processes share.

mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::fmt;
use std::future::Future;
use std::pin::Pin;

pub use memory::MemoryStore;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

/// The future that the methods of a [`Store`] return.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// An error of a store.
///
/// ```
/// use mcp_elicit_server::seal::StoreError;
///
/// let error = StoreError("the database does not answer".to_owned());
/// assert_eq!(error.to_string(), "the database does not answer");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// A memory of used states until they expire, so that each counts once, and storage for journals too large to send.
///
/// All replicas of a server must share it. Times are milliseconds since 1970; expired entries may be dropped.
///
/// ```
/// use mcp_elicit_server::seal::{MemoryStore, Store, StoreFuture};
///
/// /// A store that says in the log when a state came twice.
/// #[derive(Debug)]
/// struct Logged(MemoryStore);
///
/// impl Store for Logged {
///     fn consume<'a>(&'a self, id: &'a str, now_ms: u64, until_ms: u64) -> StoreFuture<'a, bool> {
///         Box::pin(async move {
///             let is_first = self.0.consume(id, now_ms, until_ms).await?;
///             if !is_first {
///                 eprintln!("a state came twice");
///             }
///             Ok(is_first)
///         })
///     }
///
///     fn put<'a>(&'a self, id: &'a str, bytes: Vec<u8>, now_ms: u64, until_ms: u64) -> StoreFuture<'a, ()> {
///         self.0.put(id, bytes, now_ms, until_ms)
///     }
///
///     fn load<'a>(&'a self, id: &'a str, now_ms: u64) -> StoreFuture<'a, Option<Vec<u8>>> {
///         self.0.load(id, now_ms)
///     }
/// }
/// ```
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// Records that `id` was used. Returns `true` the first time and `false` afterwards, also when two calls race.
    fn consume<'a>(&'a self, id: &'a str, now_ms: u64, until_ms: u64) -> StoreFuture<'a, bool>;

    /// Stores `bytes` under `id`.
    fn put<'a>(
        &'a self,
        id: &'a str,
        bytes: Vec<u8>,
        now_ms: u64,
        until_ms: u64,
    ) -> StoreFuture<'a, ()>;

    /// Returns the bytes stored under `id`.
    fn load<'a>(&'a self, id: &'a str, now_ms: u64) -> StoreFuture<'a, Option<Vec<u8>>>;
}
