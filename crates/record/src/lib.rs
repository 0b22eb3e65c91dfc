//! The record of questions: written before anyone sees them, answered by the first valid answer, delivered at most once.
//!
//! Pages, scripts, clients and relays all come here; the [`Store`] below keeps what they did. Answers are checked
//! before they come in (`Form::check` by the inbox, by the relay for clients), sealed while they wait, and dropped once
//! they are delivered; the audit keeps who, what and when, never a value.
//!
//! | file | what it does |
//! | --- | --- |
//! | `row` | the transitions of one row, pure |
//! | `known` | rows that this process knows: exclusive, with an answer held, or as the store has them |
//! | `commit` | when a change is written; its way into the store, and what follows from it |
//! | `apply` | changes by compare-and-set, tried again as long as others are first; their results |
//! | `create` | a question is written, or found written |
//! | `submit` | it moves on: seen, acted on, ended |
//! | `deliver` | answers are taken out for the server, once, and what became of them |
//! | `sweep` | what is due is ended; what other gateways did is passed on |
//! | [`team`] | the people whom a rule asks: their acts on one question, reminders and escalations |
//! | [`timeline`] | what happened to such a question, in order |
//! | [`outbox`] | the messages to people that are made of it |
//! | `calls` | calls that nobody waits for, and their results |
//! | [`grants`] | approvals that are good for a while |
//! | [`candidates`] | the calls that a question may be for |
//! | `presence` | whether other gateways share the record, and what they left in it |
//! | `parsed` | questions, each parsed once |
//! | [`principal`] | the names of callers |
//! | [`identity`] | whose a question is: server, caller, call and question |
//! | `scopes` | what binds calls of a caller to a server; the last ones are kept |
//! | [`audit`] | what happened, as a chain |
//! | [`key_files`] | the keys in the state folder, and what a lost one means |
//! | [`encryption`] | values, unreadable while they wait |
//! | [`state_file`] | files in the state folder, replaced as a whole |
//! | `presence::lock_file` | which gateways run |
//! | `event` | the events that a session hears |
//! | [`clock`] | the one reading of a clock |

mod apply;
pub mod audit;
pub mod caller_bound;
mod calls;
pub mod candidates;
pub mod clock;
mod commit;
mod create;
mod deliver;
pub mod encryption;
mod event;
pub mod grants;
pub mod identity;
pub mod key_files;
mod known;
pub mod outbox;
mod parsed;
mod presence;
pub mod principal;
pub mod refusals;
mod row;
mod scopes;
pub mod state_file;
pub mod store;
mod submit;
mod sweep;
pub mod team;
pub mod timeline;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_elicit_core::answer::Draft;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::ParsedQuestion;
use rustc_hash::FxHashMap;
use tokio::sync::watch;

use crate::store::{ChainKey, Filter, ListKeys, Page, Row, Store, StoreError, Write, Writer};
pub use apply::Applied;
use caller_bound::OpenQuestions;
pub use commit::Durability;
use deliver::InTransit;
use encryption::Encryption;
pub use event::{RecordEvent, SessionKey};
pub use identity::{IdentityKey, ServerIdentity, SessionIdentity};
pub use key_files::{KeyFileError, KeyFiles, KeyLoss};
use known::Live;
use parsed::ParsedQuestions;
use presence::Presence;
pub use presence::lock_file::LockFile;
use refusals::RefusalsOfEach;
use scopes::Scopes;

/// Why the record could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No randomness, or a value too long to seal.
    #[error("a value could not be sealed")]
    Encryption(#[from] io::Error),
    /// The value was sealed with another key.
    #[error(transparent)]
    Open(#[from] encryption::OpenError),
    /// An answer that was to be written together with its delivery was written neither so nor by itself.
    #[error("the answer could not be written")]
    NotWritten,
    /// Others changed the same question again and again.
    #[error("the question keeps changing")]
    Contended,
    /// The caller has too many open questions already, in all sessions together.
    #[error("the caller has {limit} questions that wait for an answer already{}", if *.of_server { ", asked by this server" } else { "" })]
    TooManyOpen {
        /// The number that may wait.
        limit: usize,
        /// `true` if it is the number of questions that one server asks.
        of_server: bool,
    },
}

/// The result of submitting an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is the question's answer.
    Won,
    /// The question had ended before.
    Late(Box<Row>),
    /// There is no such question.
    Gone,
}

/// A question that was written, or found written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The record's id.
    pub id: String,
    /// `true` if an answer is there already.
    pub answered: bool,
    /// `true` if the server has refused that answer before: a second refusal ends it.
    pub refused: bool,
}

/// Numbers for the metrics.
#[derive(Debug, Default)]
pub struct Counters {
    /// Questions written.
    pub asked: AtomicU64,
    /// Questions found again instead of being asked twice.
    pub found: AtomicU64,
    /// Answers by a person, of any action.
    pub acted: AtomicU64,
    /// Answers taken to a server.
    pub delivered: AtomicU64,
    /// Questions that ended without an action.
    pub ended: AtomicU64,
}

/// The number of tries of a change against concurrent changes.
const TRIES: usize = 8;

/// The keys of a record.
#[derive(Clone)]
pub struct Keys {
    /// Seals values.
    pub encryption: Encryption,
    /// Tells servers, callers, calls and questions apart.
    pub identity: IdentityKey,
}

impl Keys {
    /// Makes keys for this process alone.
    pub fn random() -> io::Result<Self> {
        Ok(Self {
            encryption: Encryption::random()?,
            identity: IdentityKey::random()?,
        })
    }

    /// Returns the key of the audit's chain.
    pub fn chain(&self) -> ChainKey {
        ChainKey::from_identity(&self.identity)
    }

    /// Reads the keys in these files, each made when there is none, whatever a record holds ([`KeyFiles::open`] looks).
    pub fn from_files(seal: &Path, identity: &Path) -> io::Result<Self> {
        Ok(Self {
            encryption: Encryption::from_file(seal)?,
            identity: IdentityKey::from_file(identity)?,
        })
    }
}

/// The times for which data are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The time that after the act an answer may be delivered to the same call made again.
    pub answers: Duration,
    /// The time that the result of a call that nobody waits for is kept for the same call made again.
    pub results: Duration,
    /// The time that questions that ended stay in the record.
    pub ended: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            answers: Duration::from_secs(15 * 60),
            results: Duration::from_secs(15 * 60),
            ended: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}

/// The record of questions.
pub struct Record {
    store: Writer,
    keys: Keys,
    retention: Retention,
    lock_file: LockFile,
    presence: Presence,
    /// `true` if each session here delivers an answer that is held for it, or writes it.
    sessions_deliver: bool,
    clock: fn() -> Timestamp,
    /// Ids of the record are random: nobody chooses which of them meet.
    live: Mutex<FxHashMap<String, Live>>,
    /// Answers that were taken out without ever being in the store, until it is known what became of them.
    in_transit: Mutex<FxHashMap<String, InTransit>>,
    drafts: Mutex<HashMap<String, Draft>>,
    parsed: ParsedQuestions,
    scopes: Scopes,
    /// Calls that nobody waits for, by their ids in the record.
    unattended: Mutex<HashMap<String, calls::Unattended>>,
    unattended_count: AtomicUsize,
    changes: watch::Sender<u64>,
    counters: Counters,
    refused: RefusalsOfEach,
    open_questions: OpenQuestions,
}

impl Record {
    /// A record over this store. The lock file says that this gateway runs. Runs in a tokio runtime, in which it writes.
    pub fn new(
        store: Arc<dyn Store>,
        keys: Keys,
        lock_file: LockFile,
        clock: fn() -> Timestamp,
    ) -> Self {
        Self {
            store: Writer::new(store),
            keys,
            retention: Retention::default(),
            lock_file,
            presence: Presence::default(),
            sessions_deliver: false,
            clock,
            live: Mutex::default(),
            in_transit: Mutex::default(),
            drafts: Mutex::default(),
            parsed: ParsedQuestions::default(),
            scopes: Scopes::default(),
            unattended: Mutex::default(),
            unattended_count: AtomicUsize::new(0),
            changes: watch::channel(0).0,
            counters: Counters::default(),
            refused: RefusalsOfEach::default(),
            open_questions: OpenQuestions::default(),
        }
    }

    /// Sets how long what is kept is kept.
    #[must_use]
    pub fn with_retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Has people's answers written together with their delivery. Each session that hears of such an answer
    /// ([`RecordEvent::Answered`], `held`) is to deliver it, and to call [`Record::write_behind`] afterwards.
    #[must_use]
    pub fn with_delivering_sessions(mut self) -> Self {
        self.sessions_deliver = true;
        self
    }

    /// The key that tells servers and callers apart.
    pub fn identity_key(&self) -> &IdentityKey {
        &self.keys.identity
    }

    /// The store below, with the writer before it.
    pub fn store(&self) -> &dyn Store {
        &self.store
    }

    /// Writes into the audit what is not a step of a question: who did it, and with which question if any.
    pub async fn audit_event(
        &self,
        event: audit::Event,
        question: Option<&str>,
        by: Option<&str>,
    ) -> Result<(), RecordError> {
        let details = audit::Details {
            question,
            by,
            ..audit::Details::default()
        };
        self.audit_details(event, &details).await
    }

    /// Writes into the audit what is not a step of a question, with all that there is to tell.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn audit_details(
        &self,
        event: audit::Event,
        details: &audit::Details<'_>,
    ) -> Result<(), RecordError> {
        self.note(details.entry(event, self.now())).await
    }

    /// Writes an entry of the audit that belongs to no change of a row.
    pub(crate) async fn note(&self, entry: audit::Entry) -> Result<(), RecordError> {
        let note = Write::Note(entry.into_text());
        let noted = self.commit(Some(note), Durability::BeforeSeen, &[], || ());
        noted.await.map(drop)
    }

    /// Waits until everything that happened is written.
    pub async fn flush(&self) -> Result<(), RecordError> {
        Ok(self.store.flush().await?)
    }

    /// The time by this record's clock.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Counts up with every change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns how long an answer is kept for a call that comes later.
    pub fn answer_retention(&self) -> Duration {
        self.retention.answers
    }

    /// Numbers for the metrics.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn live(&self) -> MutexGuard<'_, FxHashMap<String, Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Returns the row's question, parsed now or before; `None` when it cannot be read any more.
    pub fn parsed(&self, row: &Row) -> Option<Arc<ParsedQuestion>> {
        self.parsed.get(row)
    }

    /// The row of this id.
    pub async fn find(&self, id: &str) -> Result<Option<Row>, RecordError> {
        Ok(self.store.find(id.to_owned()).await?)
    }

    /// One page of rows.
    pub async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Row>, RecordError> {
        Ok(self.store.list(filter, page).await?)
    }

    /// The rows of a list that are under these keys: one person's.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_under(
        &self,
        filter: Filter,
        keys: ListKeys,
        most: usize,
    ) -> Result<Vec<Row>, RecordError> {
        Ok(self.store.list_under(filter, keys, most).await?)
    }

    /// Returns the arguments of the call that a question came up in, JSON; `None` where it has none, or where any of several calls
    /// may have asked.
    ///
    /// # Errors
    /// When they were sealed with another key, or are damaged.
    pub fn arguments(&self, row: &Row) -> Result<Option<String>, RecordError> {
        if !row.body.others.is_empty() {
            return Ok(None);
        }
        self.opened_arguments(row)
    }

    /// Returns what somebody typed so far. It lives in this process only and ends with the question.
    pub fn draft(&self, id: &str) -> Option<Draft> {
        self.drafts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(id)
            .cloned()
    }

    /// Keeps what somebody typed so far.
    pub fn keep_draft(&self, id: &str, draft: Draft) {
        self.drafts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.to_owned(), draft);
    }

    fn drop_draft(&self, id: &str) {
        self.drafts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
    }

    /// Returns whether another running gateway knows more of the question than the row says, and alone may change it.
    fn is_exclusive_elsewhere(&self, row: &Row) -> bool {
        row.exclusive && !self.lock_file.is_mine(&row.owner) && self.lock_file.is_held(&row.owner)
    }

    /// Returns whether a call waits for this question right now, here or in another running gateway.
    pub fn is_waited_for(&self, row: &Row) -> bool {
        if self.lock_file.is_mine(&row.owner) {
            self.live().contains_key(&row.id)
        } else {
            self.lock_file.is_held(&row.owner)
        }
    }
}

/// Returns where a sealed value belongs, which it is bound to.
fn associated_data(id: &str, column: &str) -> String {
    format!("{id}.{column}")
}

#[cfg(test)]
mod tests;
