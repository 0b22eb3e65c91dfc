//! The record of questions: written before they are shown, answered by the first valid answer, delivered at most once.
//!
//! Pages, scripts, clients and relays all use it; the [`RecordStore`] below persists it. Answers are checked before they are
//! submitted (`Form::check` in the inbox, and in the relay for clients), sealed while they wait, and dropped once they
//! are delivered. The audit stores who did what and when, never a value.
//!
//! | file | contents |
//! | --- | --- |
//! | `row` | the transitions of one row, pure |
//! | `known` | rows known to this process: exclusive, with a held answer, or equal to the store's |
//! | `commit` | the times of writes, their way into the store, and the effects of changes |
//! | `apply` | changes by compare-and-set, repeated while other changes come first; their results |
//! | `create` | creating a question, or finding it |
//! | `submit` | later changes: shown, answered, ended |
//! | `deliver` | taking answers out for the server, once, and the results |
//! | `not_a_person` | a client's response that is no person's act: the question moves to people, or the act is doubted |
//! | `sweep` | expiry, and changes by other gateways |
//! | [`team`] | the people whom a rule asks: their acts on one question, reminders and escalations |
//! | [`timeline`] | the events of such a question, in order |
//! | [`outbox`] | messages to people about these events |
//! | `calls` | calls without a waiting client, and their results |
//! | [`figures`] | figures for a monitor, from the audit |
//! | [`grants`] | approvals that are valid for a while |
//! | `used` | values that count once, such as logins |
//! | [`stored_bytes`] | the limits on the bytes of stored questions |
//! | [`whole_record`] | the limits on the size of the whole record and on all open questions |
//! | [`restored`] | a record that was restored from a backup: nothing in it takes effect a second time |
//! | [`candidates`] | the calls that a question may belong to |
//! | `presence` | the presence of other gateways, and of questions that they left |
//! | `release`, `returned` | questions that no call waits for any more; those whose clients have come back to another gateway |
//! | `parsed` | a cache of parsed questions |
//! | [`peers`] | the gateways of a shared record that take each other's requests |
//! | [`principal`] | the names of callers |
//! | [`identity`] | identities: server, caller, call and question |
//! | `scopes` | a cache of the scopes of sessions |
//! | [`audit`] | the audit, as a chain |
//! | [`key_files`] | the keys in the state folder, and the effects of a lost one |
//! | [`encryption`] | encryption of stored values |
//! | `wrapped_keys` | the keys of a record in a database, wrapped by a master key |
//! | `reseal` | values that are sealed anew with the newest key |
//! | [`state_file`] | files in the state folder, replaced as a whole |
//! | `presence::lock_file` | the running gateways |
//! | `drafts` | values that people have typed into pages and not sent |
//! | `step_log` | one line of the log for each step of a question |
//! | `ended_question` | reports of traced questions that ended |
//! | `event` | events for sessions |
//! | [`clock`] | the only code that reads a clock |

mod apply;
mod approval_values;
pub mod audit;
pub mod caller_bound;
mod calls;
pub mod candidates;
pub mod clock;
mod commit;
mod create;
mod deliver;
mod drafts;
pub mod encryption;
mod ended_question;
mod event;
pub mod figures;
pub mod grants;
pub mod identity;
pub mod key_files;
mod known;
mod not_a_person;
mod not_shown;
pub mod outbox;
mod parsed;
pub mod peers;
mod presence;
pub mod principal;
pub mod refusals;
mod release;
mod reseal;
pub mod restored;
mod returned;
mod row;
mod scopes;
pub mod state_file;
mod step_log;
pub mod store;
pub mod stored_bytes;
mod submit;
mod sweep;
pub mod team;
pub mod timeline;
mod used;
pub mod whole_record;
#[cfg(feature = "postgres")]
mod wrapped_keys;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use mcp_elicit_core::answer::Draft;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::ParsedQuestion;
use rustc_hash::FxHashMap;
use tokio::sync::watch;

use crate::store::{
    ChainKey, Filter, ListQuery, Page, Purge, RecordStore, RecordStoreError, Row, Write,
    WriteFigures, Writer,
};
pub use apply::Applied;
use caller_bound::OpenQuestions;
pub use commit::Durability;
use deliver::AnswerInTransit;
use encryption::Encryption;
pub use ended_question::{EndObserver, EndedQuestion};
pub use event::{RecordEvent, SessionKey};
pub use identity::{IdentityKey, ServerIdentity, SessionIdentity};
pub use key_files::{KeyFileError, KeyFiles, KeyLoss, SetAside};
use known::Live;
use parsed::{ParsedQuestions, WholeParams};
use presence::Presence;
pub use presence::lock_file::{LockFile, RunningGateways};
use refusals::{Refusals, RefusalsOfEach};
pub use reseal::Resealed;
use returned::ReturnedQuestions;
use scopes::Scopes;
use stored_bytes::{StorageLimits, StoredBytes};
pub use used::UsedKind;
use whole_record::WholeRecord;

/// An error of the record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] RecordStoreError),
    /// The system has no randomness, or a value is too long to seal.
    #[error("a value could not be sealed")]
    Encryption(#[from] io::Error),
    /// A value was sealed with another key.
    #[error(transparent)]
    Open(#[from] encryption::UnsealError),
    /// An answer that was to be written together with its delivery could be written neither so nor by itself.
    #[error("the answer could not be written")]
    NotWritten,
    /// A delivery could not be written, so no answer was taken out.
    #[error("the delivery of an answer could not be written")]
    DeliveryNotWritten {
        /// The questions that are open again, because their people were told that their answers do not count.
        reopened: Vec<String>,
        /// The error of the store.
        source: RecordStoreError,
    },
    /// The same question of a task waits for people in another session of its caller, or its answer for the server.
    #[error("the question of the task is asked in another session already")]
    AskedElsewhere,
    /// Other changes of the same question kept winning.
    #[error("the question keeps changing")]
    Contended,
    /// The caller has too many open questions, in all sessions together.
    #[error("the caller has {limit} questions that wait for an answer already{}", if *.of_server { ", asked by this server" } else { "" })]
    TooManyOpen {
        /// The limit.
        limit: usize,
        /// `true` if it is the limit on the questions of one server.
        of_server: bool,
    },
    /// The questions of the caller, or of all callers, would keep too many bytes.
    #[error("the stored questions{} would hold more than {} bytes (`{}`)", if .0.of_server { " of this server" } else { "" }, .0.most, .0.name)]
    TooLarge(stored_bytes::StorageLimit),
    /// The whole record has reached a limit.
    #[error(transparent)]
    Full(whole_record::WholeRecordLimit),
}

/// The result of submitting an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is the question's answer.
    Won,
    /// The question had already ended.
    Late(Box<Row>),
    /// There is no such question.
    Gone,
}

/// A question that was created or found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedQuestion {
    /// The record's id.
    pub id: String,
    /// `true` if an answer is there already.
    pub answered: bool,
    /// `true` if the server has refused that answer before: a second refusal ends it.
    pub refused: bool,
    /// The `traceparent` of the span in which it was asked first; `None` if its call was not traced.
    pub trace: Option<String>,
}

/// Numbers for the metrics.
#[derive(Debug, Default)]
pub struct Counters {
    /// Questions written.
    pub asked: AtomicU64,
    /// Questions found again instead of being asked twice.
    pub found: AtomicU64,
    /// Answers by a person, with any action.
    pub acted: AtomicU64,
    /// Answers taken to a server.
    pub delivered: AtomicU64,
    /// Questions that ended without an action.
    pub ended: AtomicU64,
}

/// The number of attempts of a change against concurrent changes.
const TRIES: usize = 8;

/// The keys of a record.
#[derive(Clone)]
pub struct OwnKeys {
    /// The keys that seal values.
    pub encryption: Encryption,
    /// The key of identities.
    pub identity: IdentityKey,
}

impl OwnKeys {
    /// Creates keys for this process only.
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

    /// Reads the keys from these files, and creates missing ones without checking the record (see [`KeyFiles::open`]).
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
    /// The time after the action in which an answer may be delivered to the same call made again.
    pub answers: Duration,
    /// The time that the result of a call without a waiting client is kept for the same call made again.
    pub results: Duration,
    /// The time that questions that ended stay in the record.
    pub ended: Duration,
    /// The time that events stay in the audit; `None` for ever.
    pub audit: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            answers: Duration::from_secs(15 * 60),
            results: Duration::from_secs(15 * 60),
            ended: Duration::from_secs(30 * 24 * 60 * 60),
            audit: None,
        }
    }
}

/// The limits of a record, which can be replaced while it is used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordLimits {
    pub(crate) retention: Retention,
    pub(crate) storage: StorageLimits,
}

/// The record of questions.
pub struct Record {
    store: Writer,
    keys: OwnKeys,
    limits: RwLock<RecordLimits>,
    lock_file: LockFile,
    presence: Presence,
    returned: ReturnedQuestions,
    /// `true` if each session here delivers its held answers, or has them written.
    sessions_deliver: bool,
    clock: fn() -> Timestamp,
    /// Ids of the record are random, so no peer can cause collisions.
    live: Mutex<FxHashMap<String, Live>>,
    /// Answers that were taken out without ever being in the store, until the result of their delivery is known.
    in_transit: Mutex<FxHashMap<String, AnswerInTransit>>,
    drafts: Mutex<HashMap<String, Draft>>,
    parsed: ParsedQuestions,
    scopes: Scopes,
    /// Calls without a waiting client, by their ids in the record.
    unattended: Mutex<HashMap<String, calls::UnattendedEntry>>,
    unattended_count: AtomicUsize,
    /// Locked while calls are written that the store did not take before.
    unwritten_calls: tokio::sync::Mutex<()>,
    changes: watch::Sender<u64>,
    ended_grants: watch::Sender<u64>,
    counters: Counters,
    refused: RefusalsOfEach,
    /// Questions that could not be shown.
    not_shown: Refusals,
    open_questions: OpenQuestions,
    stored_bytes: StoredBytes,
    whole: WholeRecord,
    retained_reads: team::RetainedReads,
    audit_purged: audit::LastPurge,
}

impl Record {
    /// Creates a record over this store. The lock file announces this gateway. Must be called in a tokio runtime, which
    /// runs its writes.
    pub fn new(
        store: Arc<dyn RecordStore>,
        keys: OwnKeys,
        lock_file: LockFile,
        clock: fn() -> Timestamp,
    ) -> Self {
        Self {
            store: Writer::new(store),
            keys,
            limits: RwLock::default(),
            lock_file,
            presence: Presence::default(),
            returned: ReturnedQuestions::default(),
            sessions_deliver: false,
            clock,
            live: Mutex::default(),
            in_transit: Mutex::default(),
            drafts: Mutex::default(),
            parsed: ParsedQuestions::default(),
            scopes: Scopes::default(),
            unattended: Mutex::default(),
            unattended_count: AtomicUsize::new(0),
            unwritten_calls: tokio::sync::Mutex::default(),
            changes: watch::channel(0).0,
            ended_grants: watch::channel(0).0,
            counters: Counters::default(),
            refused: RefusalsOfEach::default(),
            not_shown: Refusals::default(),
            open_questions: OpenQuestions::default(),
            stored_bytes: StoredBytes::default(),
            whole: WholeRecord::default(),
            retained_reads: team::RetainedReads::default(),
            audit_purged: audit::LastPurge::default(),
        }
    }

    /// Sets the retention times.
    #[must_use]
    pub fn with_retention(self, retention: Retention) -> Self {
        let storage = self.limits().storage;
        self.set_limits(retention, storage);
        self
    }

    /// Replaces the retention times and the limits on the bytes of questions, for what is written, looked for and deleted
    /// from now on. An answer that was given keeps its time.
    pub fn set_limits(&self, retention: Retention, storage: StorageLimits) {
        let mut limits = self.limits.write().unwrap_or_else(PoisonError::into_inner);
        *limits = RecordLimits { retention, storage };
        drop(limits);
        self.whole.measure_anew();
    }

    /// Returns the current limits.
    pub(crate) fn limits(&self) -> RecordLimits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current retention times.
    pub(crate) fn retention(&self) -> Retention {
        self.limits().retention
    }

    /// Lets people's answers be written together with their delivery. Each session that receives such an answer
    /// ([`RecordEvent::Answered`], `held`) must deliver it, and call [`Record::write_behind`] afterwards.
    #[must_use]
    pub fn with_delivering_sessions(mut self) -> Self {
        self.sessions_deliver = true;
        self
    }

    /// Reports each traced question that ends, once its end is in the store and if this process wrote it. Set once.
    pub fn observe_ends(&self, observer: EndObserver) {
        self.store.observe_ends(observer);
    }

    /// Returns the name of this gateway among those that share the record.
    pub fn gateway_name(&self) -> &str {
        self.lock_file.name()
    }

    /// Returns the key of identities.
    pub fn identity_key(&self) -> &IdentityKey {
        &self.keys.identity
    }

    /// Returns the store below, including its writer.
    pub fn store(&self) -> &dyn RecordStore {
        &self.store
    }

    /// Adds an event that is not a step of a question to the audit: its actor, and its question if any.
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

    /// Adds an event that is not a step of a question to the audit, with all its details.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn audit_details(
        &self,
        event: audit::Event,
        details: &audit::Details<'_>,
    ) -> Result<(), RecordError> {
        self.note(details.entry(event, self.now())).await
    }

    /// Deletes ended questions before their time, and returns their number. The audit gets the number first, and who
    /// did it; the entries about the questions stay.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn purge(&self, purge: Purge, by: &str) -> Result<usize, RecordError> {
        let count = self.store.purgeable(purge.clone()).await?;
        if count == 0 {
            return Ok(0);
        }
        let reason = format!("ended questions: {count}");
        let details = audit::Details {
            principal: purge.principal.as_deref(),
            reason: Some(&reason),
            ..audit::Details::by(by)
        };
        self.audit_details(audit::Event::Purged, &details).await?;
        Ok(self.store.purge(purge).await?)
    }

    /// Adds an audit entry that belongs to no change of a row.
    pub(crate) async fn note(&self, entry: audit::EntryText) -> Result<(), RecordError> {
        let note = Write::Note(entry.into_text());
        let noted = self.commit(Some(note), Durability::BeforeSeen, &[], || ());
        noted.await.map(drop)
    }

    /// Waits until every change is written.
    pub async fn flush(&self) -> Result<(), RecordError> {
        Ok(self.store.flush().await?)
    }

    /// Returns the time of this record's clock.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns the milliseconds by which the clock of this process is ahead of that of the record's database, as last
    /// compared; `None` if the record is in no database.
    pub fn clock_offset_ms(&self) -> Option<i64> {
        self.lock_file.clock_offset_ms()
    }

    /// Returns a counter that increases with every change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns the time that an answer is kept for a later call.
    pub fn answer_retention(&self) -> Duration {
        self.retention().answers
    }

    /// Returns the numbers for the metrics.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns what was written to the store, and what waits, in figures.
    pub fn write_figures(&self) -> WriteFigures {
        self.store.figures()
    }

    /// Returns the limits on what is stored, as they are now.
    pub fn storage_limits(&self) -> StorageLimits {
        self.limits().storage
    }

    fn live(&self) -> MutexGuard<'_, FxHashMap<String, Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Returns the row's parsed question, cached; `None` if it can no longer be read.
    pub fn parsed(&self, row: &Row) -> Option<Arc<ParsedQuestion>> {
        self.parsed.get(row, || self.whole_params(row))
    }

    /// Returns the params of the row's question, those of an approval with the values of its call's arguments.
    fn whole_params<'r>(&self, row: &'r Row) -> Option<WholeParams<'r>> {
        let stored = row.params.as_deref()?;
        let whole = |text: Cow<'r, str>| WholeParams {
            text,
            is_whole: true,
        };
        if !row.is_approval() {
            return Some(whole(stored.into()));
        }
        match self.arguments(row) {
            Ok(arguments) => {
                let arguments = arguments.as_deref();
                let filled = arguments.and_then(|text| approval_values::with_values(stored, text));
                Some(whole(filled.map_or_else(|| stored.into(), Cow::from)))
            }
            // Whoever acts opens the arguments, and gets the error.
            Err(_) => Some(WholeParams {
                text: stored.into(),
                is_whole: false,
            }),
        }
    }

    /// Returns the row of this id.
    pub async fn find(&self, id: &str) -> Result<Option<Row>, RecordError> {
        Ok(self.store.find(id.to_owned()).await?)
    }

    /// Returns one page of rows.
    pub async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Row>, RecordError> {
        self.list_by(ListQuery::new(filter, page)).await
    }

    /// Returns one page of the rows that a query selects.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn list_by(&self, query: ListQuery) -> Result<Vec<Row>, RecordError> {
        Ok(self.store.list(query).await?)
    }

    /// Returns the arguments of the question's call as JSON; `None` if it has none, or if any of several calls may have
    /// asked.
    ///
    /// # Errors
    /// If they were sealed with another key, or are damaged.
    pub fn arguments(&self, row: &Row) -> Result<Option<String>, RecordError> {
        if !row.body.others.is_empty() {
            return Ok(None);
        }
        self.opened_arguments(row)
    }

    fn drop_draft(&self, id: &str) {
        self.drafts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
    }

    /// Returns `true` if another running gateway has the question exclusively, whose row may be out of date.
    fn is_exclusive_elsewhere(&self, row: &Row) -> bool {
        row.exclusive && !self.lock_file.is_mine(&row.owner) && self.lock_file.is_held(&row.owner)
    }

    /// Returns `true` if a call waits for this question, here or in another running gateway.
    pub fn is_waited_for(&self, row: &Row) -> bool {
        if self.lock_file.is_mine(&row.owner) {
            self.live().contains_key(&row.id)
        } else {
            self.lock_file.is_held(&row.owner)
        }
    }
}

/// Returns the associated data of a sealed value.
fn associated_data(id: &str, column: &str) -> String {
    format!("{id}.{column}")
}

#[cfg(test)]
mod tests;
