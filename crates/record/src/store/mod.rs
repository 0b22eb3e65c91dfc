//! The store of the questions: one trait, one contract suite (`contract.rs`), one file for each kind of store, and the
//! [`writer`] in front of any of them.
//!
//! A store decides nothing about a question: it stores rows, changes them only if they are unchanged since they were
//! read (compare-and-set by version, all of several or none), and appends to the audit chain in the same step. Values
//! that a person entered reach it sealed.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use hmac::{Hmac, Mac as _};
use mcp_elicit_core::lifecycle::{Delivery, Lifecycle, Timestamp};
use mcp_elicit_core::text::beginning;
use mcp_elicit_core::wire::{CallKind, Mode};
use mcp_elicit_policy::people::Addressee;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinError;

use crate::IdentityKey;
use crate::audit::AuditFilter;
use crate::team::Team;
use crate::used::UsedKind;
use outbox::{Notification, NotificationFilter, Notified, TakenMessage, Tried, Untold};

pub mod api_tokens;
mod contents;
mod database_record;
pub mod drafts;
mod fault;
mod list;
pub mod memory;
mod moved;
pub mod outbox;
#[cfg(feature = "postgres")]
mod postgres;
mod sealed;
pub mod shared_rows;
pub mod sqlite;
pub mod writer;

#[cfg(test)]
mod contract;
#[cfg(test)]
pub(crate) mod fault_injection;
#[cfg(test)]
mod inline_tests;

pub use contents::{Purge, RecordContents, StoredOf};
pub use database_record::DatabaseRecord;
pub use fault::{DatabaseError, DatabaseFault};
pub use list::{Filter, ListKeys, ListQuery, Matching, Page, SearchWord};
pub use memory::Memory;
pub use moved::{PartReceiver, PartSender, RecordPart, both_sides, record_parts};
#[cfg(feature = "postgres")]
pub use postgres::{
    AddressError, PasswordSource, Postgres, PostgresDatabase, PostgresRecord, PostgresReplica,
    PostgresSettings, PostgresTables,
};
pub use sealed::{ResealedRow, SealedQuery, SealedRow, SealedTable};
pub use sqlite::{CopiedRecord, EarlierFile, Sqlite, StateTables};
pub use writer::{WriteFigures, Writer};

/// A stored question.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Unguessable; identifies the question to people, pages and scripts.
    pub id: String,
    /// The deduplication key of the same question of the same call of the same principal; hex.
    pub binding: String,
    /// The running gateway whose call waits for it.
    pub owner: String,
    /// The state; its version is the row's.
    pub lifecycle: Lifecycle,
    /// `true` if only that gateway may change the row while it runs, because its own state is ahead of the row.
    pub exclusive: bool,
    /// The question and its call, which never change.
    pub body: Arc<Body>,
    /// The call's arguments, sealed.
    pub arguments: Option<Vec<u8>>,
    /// The answer's content, sealed; dropped after delivery.
    pub content: Option<Vec<u8>>,
    /// The params of the question in the newest revision, as JSON. `None` in a list, which does not read them.
    pub params: Option<String>,
    /// The people whom a rule asks, and their actions so far; `None` for a question without a rule.
    pub team: Option<Box<Team>>,
}

impl Row {
    /// Returns `true` if the same question of the same call made again finds this row, because its call is known.
    pub fn can_be_found(&self) -> bool {
        let target = self.body.target.as_ref();
        target.is_some() && self.body.others.is_empty()
    }

    /// Returns `true` if the client is asked in its own dialog: it was asked first, and the question did not move to
    /// people.
    pub fn is_at_client(&self) -> bool {
        self.body.at_client && self.lifecycle.moved().is_none()
    }

    /// Returns `true` if the row is under one of the keys.
    fn is_under(&self, under: &ListKeys) -> bool {
        if self.team.is_none() {
            return under.principals.contains(&self.body.principal);
        }
        self.list_keys().iter().any(|key| under.keys.contains(key))
    }

    /// Returns the keys under which the question of a rule is listed; none for a question without a rule.
    fn list_keys(&self) -> Vec<String> {
        let Some(team) = &self.team else {
            return Vec::new();
        };
        let quorum = team.quorum();
        let all = quorum.addressees().iter().chain(quorum.delegates());
        let caller = &team.caller;
        let mut keys = ListKeys::default();
        keys.keys.extend(all.map(addressee_key));
        keys.add_subject(&caller.issuer, &caller.subject);
        if let Some(person) = &caller.person {
            keys.add_caller(person);
        }
        keys.keys
    }

    /// Returns the time at which the row changes by time alone; `None` if it does not.
    pub fn due_at(&self) -> Option<Timestamp> {
        if self.lifecycle.is_over() {
            return self.team.as_ref().and_then(|team| team.retained_until());
        }
        let lifecycle = &self.lifecycle;
        let is_open = lifecycle.is_open();
        let ends_at = lifecycle
            .valid_until()
            .or(lifecycle.deadline().filter(|_| is_open));
        let team = self.team.as_ref().filter(|_| is_open);
        let step_at = team.and_then(|team| team.next_step_at(lifecycle.asked_at()));
        [ends_at, step_at].into_iter().flatten().min()
    }

    /// Returns `true` if an answer was taken out whose delivery has no reported result yet.
    pub fn is_in_transit(&self) -> bool {
        self.lifecycle.delivery() == Some(Delivery::Delivered)
            && (self.content.is_some() || self.arguments.is_some())
    }
}

/// The longest beginning of a message that lists show, in characters.
pub const MAX_MESSAGE: usize = 1_000;
/// The most bytes of one name of a list that a server wrote.
const MAX_NAME: usize = 256;
/// The most bytes of one sentence of such a list.
const MAX_SENTENCE: usize = 1_000;
/// The most bytes of such a list.
const MAX_LIST: usize = 16 * 1024;
/// The most bytes of the description that a server or a client gives of itself.
const MAX_INFO: usize = 4_096;

/// Returns the text, or the beginning of one with more than `most` bytes with an ellipsis.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    format!("{}…", beginning(text, most)).into()
}

impl Body {
    /// Returns the beginning of a message that lists show.
    pub fn beginning_of(message: &str) -> String {
        message.chars().take(MAX_MESSAGE).collect()
    }

    /// Returns the names that a row and the audit have of a list that a server wrote: each up to its first 256 bytes, and
    /// `…` in place of those beyond 16 KiB together.
    pub(crate) fn short_names(list: &[String]) -> Vec<String> {
        Self::beginnings_of(list, MAX_NAME)
    }

    /// Returns the sentences likewise, each up to its first 1,000 bytes.
    pub(crate) fn short_sentences(list: &[String]) -> Vec<String> {
        Self::beginnings_of(list, MAX_SENTENCE)
    }

    /// Returns the texts, each up to its first `most` bytes, and `…` in place of those beyond 16 KiB together.
    pub(crate) fn beginnings_of(list: &[String], most: usize) -> Vec<String> {
        let mut left = MAX_LIST;
        let mut all = Vec::new();
        for text in list {
            let text = cut(text, most);
            let Some(rest) = left.checked_sub(text.len()) else {
                all.push("…".to_owned());
                break;
            };
            left = rest;
            all.push(text.into_owned());
        }
        all
    }

    /// Returns the description that a server or a client gave of itself; of one with more than [`MAX_INFO`] bytes the
    /// name, the title and the version.
    pub(crate) fn short_info(info: &str) -> Option<String> {
        if info.len() <= MAX_INFO {
            return Some(info.to_owned());
        }
        let read: serde_json::Value = serde_json::from_str(info).ok()?;
        let short = ["name", "title", "version"]
            .into_iter()
            .filter_map(|member| {
                let text = cut(read.get(member)?.as_str()?, MAX_NAME);
                Some((member.to_owned(), text.into_owned().into()))
            });
        let short: serde_json::Map<_, _> = short.collect();
        serde_json::to_string(&short).ok()
    }

    /// Returns the text that distinguishes the servers of questions: the operator's name, else the command or URL.
    pub fn server_address(&self) -> &str {
        self.address.as_deref().unwrap_or(&self.server)
    }
}

/// The part of a question that does not change and contains no values of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// The server's name for people: the operator's, else its own.
    pub server: String,
    /// The server's command or URL, if the operator gave it no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Form or url.
    pub mode: Mode,
    /// The beginning of the message, for lists.
    #[serde(default)]
    pub message: String,
    /// The id that the server gave a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// The principal of the call.
    pub principal: String,
    /// `serverInfo`, JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_info: Option<String>,
    /// `clientInfo`, JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_info: Option<String>,
    /// `tool`, `prompt` or `resource`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<CallKind>,
    /// The name of the tool or prompt, or the resource's URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The names of other calls that may have asked, each once, if the server did not name its call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// The names of the form's fields.
    pub fields: Vec<String>,
    /// The warnings for a person.
    pub cautions: Vec<String>,
    /// `true` if the client was asked first, in its own dialog ([`Row::is_at_client`]).
    pub at_client: bool,
    /// The reason why the client's answer is not checked, or only in part: it was shown a form that the gateway cannot
    /// read completely. Absent in rows of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
    /// The length of the call's arguments in bytes, if they were too long to be stored. Absent in rows of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_left_out: Option<usize>,
    /// The `traceparent` of the span in which it was asked. Absent if its call is not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// A change of a row: the next row, and the version that was read.
#[derive(Clone, Debug)]
pub struct Change {
    /// The next row.
    pub row: Row,
    /// The version of the row that it replaces.
    pub seen: u64,
    /// The audit entries, in order; none if nothing relevant changed.
    pub audit: Vec<String>,
    /// The crash that it must survive.
    pub survives: Crash,
}

/// The crash that a write must survive once it is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Crash {
    /// The end of the process, however it ends: the write is committed.
    #[default]
    Process,
    /// A loss of power: the write is flushed to the disk.
    Machine,
}

/// The result of a call without a waiting client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedCall {
    /// Unguessable.
    pub id: String,
    /// The deduplication key of the same call of the same caller; hex.
    pub binding: String,
    /// The server's answer, sealed.
    pub result: Vec<u8>,
    /// The time until which it is kept.
    pub until: Timestamp,
}

/// A call without a waiting client, as stored, without its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnattendedCall {
    /// Unguessable.
    pub id: String,
    /// The deduplication key of the same call of the same caller; hex.
    pub binding: String,
    /// The gateway that runs it; `None` if it is finished and its result is stored.
    pub running: Option<RunningCall>,
    /// The time until which it is kept.
    pub until: Timestamp,
}

/// A call in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningCall {
    /// The running gateway.
    pub owner: String,
    /// The address at which a person can answer the question that it waits for; the state of a task, as its session wrote it.
    pub link: Option<String>,
}

/// The waiting rows in figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenFigures {
    /// The number of waiting rows of each server, by name.
    pub by_server: Vec<(String, u64)>,
    /// The time at which the oldest was asked; `None` if none waits.
    pub oldest: Option<Timestamp>,
}

/// The numbers of open rows of one caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenCount {
    /// All of them.
    pub of_caller: usize,
    /// The questions of one server. Approvals, which the gateway asks for, are not counted.
    pub of_server: usize,
}

/// An approval that is valid for a while, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredGrant {
    /// Its key; a keyed hash in hex.
    pub key: String,
    /// The question in which people approved the call.
    pub question: Option<String>,
    /// The rule by name.
    pub rule: String,
    /// The digest of the rule.
    pub rule_digest: String,
    /// The approvers' answers, sealed.
    pub answers: Vec<u8>,
    /// The time of the approval.
    pub at: Timestamp,
    /// The time of its expiry.
    pub until: Timestamp,
}

impl StoredGrant {
    /// Returns `true` if the other began at the same time and expires at the same time: it is this one, stored twice.
    fn has_times_of(&self, other: &Self) -> bool {
        (self.at, self.until) == (other.at, other.until)
    }
}

/// A value that was used, and counts once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedValue {
    /// Its kind.
    pub kind: UsedKind,
    /// The SHA-256 digest of the value.
    pub digest: [u8; 32],
    /// The time until which the use is stored.
    pub until: Timestamp,
}

/// A group of writes that is made completely or not at all.
#[derive(Clone, Debug)]
pub enum Write {
    /// A new row, and its audit entries, in order.
    Insert {
        /// The row.
        row: Box<Row>,
        /// The audit entries.
        audit: Vec<String>,
    },
    /// Rows to be changed.
    Change(Vec<Change>),
    /// Only an audit entry.
    Note(String),
    /// The oldest links are deleted, and an audit entry is added. It is not made unless the last one to be deleted has
    /// this hash, and another one follows it.
    PurgeAudit {
        /// The number of the last link to be deleted.
        number: u64,
        /// Its hash.
        hash: String,
        /// The audit entry.
        entry: String,
    },
}

impl Write {
    /// Returns the crash that it must survive.
    pub fn survives(&self) -> Crash {
        match self {
            Self::Insert { .. } | Self::Note(_) => Crash::Process,
            // Not on the thread of a session.
            Self::PurgeAudit { .. } => Crash::Machine,
            Self::Change(changes) => {
                let all = changes.iter().map(|change| change.survives);
                all.max().unwrap_or_default()
            }
        }
    }
}

/// One link of the audit chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Counts from 1 without gaps. The first ones may have been deleted.
    pub number: u64,
    /// The event, JSON.
    pub entry: String,
    /// HMAC-SHA-256 over the previous hash (or nothing) and the entry, in hex after `k1:`; plain SHA-256 in links of
    /// older versions.
    pub hash: String,
}

/// Returns the result of a task, or passes its panic on.
pub(crate) async fn result_of_task<T>(
    done: Result<Result<T, RecordStoreError>, JoinError>,
) -> Result<T, RecordStoreError> {
    match done {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and the process with it.
            Err(_cancelled) => std::future::pending().await,
        },
    }
}

/// Logs a question that is left out of a list, since this version cannot read its row: one row takes no list away.
fn tell_left_out(id: &str) {
    tracing::warn!(
        question = id,
        "a question is left out of lists: its row in the record is damaged, or a newer version's; restore it from a backup, or use that version"
    );
}

/// Returns an addressee as it is spelled in a question's team.
fn addressee_key(to: &Addressee) -> String {
    serde_json::to_string(to).expect("a name, written to memory")
}

/// An error of the store. It is unrelated to any single question.
#[derive(Debug, thiserror::Error)]
pub enum RecordStoreError {
    /// The database failed.
    #[error("{}", .0.in_words())]
    Database(#[from] DatabaseError),
    /// The file of the database cannot be opened.
    #[error("the record cannot be opened")]
    File(#[from] std::io::Error),
    /// The database is closed.
    #[error("the record is closed")]
    Closed,
    /// A row that this version cannot read.
    #[error("the record holds what this version cannot read")]
    Unreadable(#[from] serde_json::Error),
    /// The audit was made with another key, or was changed.
    #[error(
        "the last event of the audit does not fit identity.key: the key is another one, or the record was changed"
    )]
    OtherKey,
    /// The database cannot be used as it is.
    #[error("{why}")]
    Refused {
        /// The reason.
        why: String,
        /// The next step: a whole sentence.
        next: String,
    },
    /// The values were sealed with other keys.
    #[error("the record's values do not fit seal.key: the file belongs to another record")]
    OtherSealKey,
    /// The file is of a newer version.
    #[error("the record was written by a newer version (schema {found}, known {known})")]
    Newer {
        /// The schema found.
        found: i64,
        /// The newest schema known here.
        known: i64,
    },
    /// The file is not a gateway's record; contains a description of the actual content.
    #[error("the file is not a gateway's record: {0}")]
    NotRecord(&'static str),
    /// A file of earlier versions, by its name, whose contents cannot be read.
    #[error(
        "{0} cannot be read, so that nothing in it is valid: restore it, or remove it and begin anew"
    )]
    OldFile(&'static str),
}

impl RecordStoreError {
    /// Returns `true` if the error is of a database server, or of a connection to it.
    pub fn is_in_database(&self) -> bool {
        match self {
            Self::Refused { .. } => true,
            Self::Database(error) => error.is_of_server(),
            Self::File(_)
            | Self::Closed
            | Self::Unreadable(_)
            | Self::OtherKey
            | Self::OtherSealKey
            | Self::OldFile(_)
            | Self::NotRecord(_)
            | Self::Newer { .. } => false,
        }
    }

    /// Returns `true` if the disk of the record is full.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Database(error) => error.fault() == DatabaseFault::Full,
            Self::File(error) => error.kind() == std::io::ErrorKind::StorageFull,
            Self::Closed
            | Self::Unreadable(_)
            | Self::OtherKey
            | Self::OtherSealKey
            | Self::OldFile(_)
            | Self::NotRecord(_)
            | Self::Refused { .. }
            | Self::Newer { .. } => false,
        }
    }

    /// Returns `true` if the file is another program's, or damaged so that it is no database.
    pub fn is_no_record(&self) -> bool {
        match self {
            Self::NotRecord(_) => true,
            Self::Database(error) => error.fault() == DatabaseFault::NotADatabase,
            Self::File(_)
            | Self::Closed
            | Self::Unreadable(_)
            | Self::OtherKey
            | Self::OtherSealKey
            | Self::OldFile(_)
            | Self::Refused { .. }
            | Self::Newer { .. } => false,
        }
    }
}

/// The contents of a record that need its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyedContents {
    /// The number of values that are sealed.
    pub sealed: u64,
    /// The number of the audit's links that were made with a key.
    pub keyed_links: u64,
    /// The number of all links of the audit.
    pub links: u64,
}

/// The size of a store on the disk, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreSize {
    /// All of it, with its log.
    pub on_disk: u64,
    /// The bytes of rows and indexes, without the log and, as far as the store knows, without what was deleted.
    pub used: u64,
}

/// The number of servers for which a store keeps learned facts.
pub const SERVERS_LEARNED: usize = 256;

/// The most used values of a kind that a store holds.
pub const MOST_USED: usize = 100_000;

/// The future that a store returns.
pub type RecordFuture<'a, T> = BoxFuture<'a, Result<T, RecordStoreError>>;

/// A store of questions.
pub trait RecordStore: Send + Sync + 'static {
    /// Makes all writes in order, and returns `true` for each that was made: a change is not made if any of its rows
    /// has another version than was read, and no other write depends on it. An error leaves nothing written.
    fn write(&self, wanted: Arc<Vec<Write>>) -> RecordFuture<'_, Vec<bool>>;
    /// Like [`write`](Self::write), on the calling thread, if it waits neither for the disk nor for another process;
    /// otherwise `None`, with nothing written.
    fn write_inline(&self, _wanted: &[Write]) -> Option<Result<Vec<bool>, RecordStoreError>> {
        None
    }
    /// Makes everything that is committed survive a loss of power.
    fn sync(&self) -> RecordFuture<'_, ()> {
        async { Ok(()) }.boxed()
    }
    /// Returns the row of this id.
    fn find(&self, id: String) -> RecordFuture<'_, Option<Row>>;
    /// Returns the undelivered rows of the same question, oldest first.
    fn by_binding(&self, binding: String) -> RecordFuture<'_, Vec<Row>>;
    /// Returns one page of rows, without their params (`Row::params`).
    fn list(&self, query: ListQuery) -> RecordFuture<'_, Vec<Row>>;
    /// Returns the waiting rows in figures.
    fn open_figures(&self) -> RecordFuture<'_, OpenFigures>;
    /// Returns the size of the store on the disk; `None` for one in memory.
    fn size(&self) -> RecordFuture<'_, Option<StoreSize>> {
        async { Ok(None) }.boxed()
    }
    /// Returns the number of waiting rows.
    fn waiting(&self) -> RecordFuture<'_, usize>;
    /// Returns the number of waiting rows of this caller ([`Body::principal`]), and of those the number of this server
    /// ([`Body::server_address`]).
    fn waiting_of(&self, principal: String, server: Option<String>) -> RecordFuture<'_, OpenCount>;
    /// Returns the bytes that rows keep, by caller and server.
    fn stored_bytes(&self) -> RecordFuture<'_, Vec<StoredOf>>;
    /// Returns the deduplication keys (`Row::binding`) of rows that wait, or whose answer was not delivered.
    fn left_over(&self) -> RecordFuture<'_, Vec<String>>;
    /// Returns at most `most` rows that need an action: those that are due, waiting ones that cannot be found again,
    /// and answers in delivery without a result.
    fn due(&self, now: Timestamp, most: usize) -> RecordFuture<'_, Vec<Row>>;
    /// Deletes ended rows that need no further action, with their messages, and erases deleted data from the disk.
    /// Returns the number.
    fn purge(&self, purge: Purge) -> RecordFuture<'_, usize>;
    /// Returns the number of rows that [`purge`](Self::purge) would delete.
    fn purgeable(&self, purge: Purge) -> RecordFuture<'_, usize>;
    /// Returns the contents in numbers.
    fn contents(&self) -> RecordFuture<'_, RecordContents>;
    /// Stores a call in progress, or its new link, unless the result of the call of this id is stored.
    fn begin_call(
        &self,
        id: String,
        binding: String,
        running: RunningCall,
        until: Timestamp,
    ) -> RecordFuture<'_, ()>;
    /// Deletes a call in progress.
    fn end_call(&self, id: String) -> RecordFuture<'_, ()>;
    /// Writes the result of a call, which is no longer in progress; it survives a loss of power.
    fn keep_call(&self, call: FinishedCall) -> RecordFuture<'_, ()>;
    /// Deletes the result of a call and returns it, which survives a loss of power; `None` if another gateway was first.
    fn take_call(&self, id: String) -> RecordFuture<'_, Option<FinishedCall>>;
    /// Returns the result of a call, which stays stored.
    fn stored_call(&self, id: String) -> RecordFuture<'_, Option<FinishedCall>>;
    /// Returns the calls without a waiting client that have not expired, of one deduplication key or all.
    fn calls(
        &self,
        binding: Option<String>,
        now: Timestamp,
    ) -> RecordFuture<'_, Vec<UnattendedCall>>;
    /// Deletes expired calls.
    fn expire_calls(&self, now: Timestamp) -> RecordFuture<'_, ()>;
    /// Returns the versions of those of these rows that exist.
    fn versions(&self, ids: Vec<String>) -> RecordFuture<'_, Vec<(String, u64)>>;
    /// Returns `false` if certainly no other process has written since this was last asked.
    fn has_changed_elsewhere(&self) -> RecordFuture<'_, bool> {
        async { Ok(true) }.boxed()
    }
    /// Stores an approval that is valid for a while, and was given at this time. It replaces one of the same key, unless
    /// that began later. Returns `true` if it is stored.
    fn keep_grant(&self, grant: StoredGrant, given: Timestamp) -> RecordFuture<'_, bool>;
    /// Deletes expired approvals, and returns the others.
    fn grants(&self, now: Timestamp) -> RecordFuture<'_, Vec<StoredGrant>>;
    /// Deletes the approvals of these keys.
    fn drop_grants(&self, keys: Vec<String>) -> RecordFuture<'_, ()>;
    /// Returns the sealed values of rows, in the order of their ids or keys.
    fn sealed_rows(&self, query: SealedQuery) -> RecordFuture<'_, Vec<SealedRow>>;
    /// Replaces the sealed values of the rows that are as before, and erases the earlier ones from the disk. Their versions
    /// stay, and nobody is told. Returns the number of rows.
    fn reseal(&self, rows: Vec<ResealedRow>) -> RecordFuture<'_, usize>;
    /// Deletes expired uses, and stores this one, which survives a loss of power. Returns `false` if the value was used
    /// before, or if the store holds [`MOST_USED`] values of its kind.
    fn use_once(&self, used: UsedValue, now: Timestamp) -> RecordFuture<'_, bool>;
    /// Returns the drafts that gateways share; `None` if each process has its own.
    fn drafts(&self) -> Option<&dyn drafts::DraftStore> {
        None
    }
    /// Returns `true` if a value was used.
    fn is_used(&self, kind: UsedKind, digest: [u8; 32]) -> RecordFuture<'_, bool>;
    /// Returns at most `most` links of the audit chain, from this number on. From 0, rows that no gateway writes are among
    /// them: those with a number below 1, as number 0.
    fn audit(&self, from: u64, most: usize) -> RecordFuture<'_, Vec<AuditEntry>>;
    /// Returns the latest `most` links with these numbers that match, the latest first.
    fn audit_matching(
        &self,
        filter: AuditFilter,
        within: Range<u64>,
        most: usize,
    ) -> RecordFuture<'_, Vec<AuditEntry>>;
    /// Returns the number of the last link of the audit chain; 0 if there is none.
    fn audit_end(&self) -> RecordFuture<'_, u64>;

    /// Stores the facts learned about a server (JSON), by the server's key. The least recently updated servers are
    /// forgotten.
    fn keep_learned(&self, server: String, learned: String, now: Timestamp)
    -> RecordFuture<'_, ()>;
    /// Returns the facts learned about a server.
    fn learned(&self, server: String) -> RecordFuture<'_, Option<String>>;

    /// Returns at most `most` questions whose timeline may contain events that people were not told of, the oldest
    /// first.
    fn untold(&self, most: usize) -> RecordFuture<'_, Vec<Untold>>;
    /// Queues messages of a question, and records the events that its people are told of.
    fn notified(&self, notified: Notified) -> RecordFuture<'_, ()>;
    /// Takes due messages, and those with an expired lease, until `lease_end`. Each is taken once. Those of a channel in
    /// `busy`, or of a recipient on a channel, are left.
    fn take_notifications(
        &self,
        now: Timestamp,
        lease_end: Timestamp,
        most: usize,
        busy: Vec<String>,
    ) -> RecordFuture<'_, Vec<Notification>>;
    /// Writes the result of an attempt; returns `false` if another sender has taken the message since.
    fn finish_notification<'a>(
        &'a self,
        taken: TakenMessage<'a>,
        tried: Tried,
        now: Timestamp,
    ) -> RecordFuture<'a, bool>;
    /// Queues a failed message again, to be retried until then; returns `false` if it has not failed.
    fn notify_again(&self, id: String, now: Timestamp, until: Timestamp) -> RecordFuture<'_, bool>;
    /// Returns at most `most` messages.
    fn notifications(
        &self,
        filter: NotificationFilter,
        most: usize,
    ) -> RecordFuture<'_, Vec<Notification>>;
}

/// The key of an audit chain: without it, a changed chain cannot be made valid again.
#[derive(Clone)]
pub struct ChainKey(Hmac<Sha256>);

/// The prefix of the hash of a keyed link.
const KEYED: &str = "k1:";

impl ChainKey {
    /// Derives the key of the chain from the key of identities.
    pub fn from_identity(identity: &IdentityKey) -> Self {
        Self(keyed(&identity.derive("audit chain")))
    }
}

/// Returns a keyed hash, ready to be cloned for each link.
fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("a key of any length will do")
}

impl std::fmt::Debug for ChainKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChainKey(..)")
    }
}

/// Returns `true` if the link of this hash was made with a key.
pub fn is_keyed(hash: &str) -> bool {
    hash.starts_with(KEYED)
}

/// Returns the smallest number that is read in a database from this number of the audit on: from 0, any number.
pub(crate) fn smallest_number(from: u64) -> i64 {
    match from {
        0 => i64::MIN,
        from => i64::try_from(from).unwrap_or(i64::MAX),
    }
}

/// Returns the number of the next link of the audit. The last one is what the database says.
pub(crate) fn next_number(last: i64) -> Result<i64, RecordStoreError> {
    last.checked_add(1)
        .ok_or_else(|| RecordStoreError::Refused {
            why: format!("the audit ends with the number {last}, after which there is none"),
            next: "another program has written it: restore the record from a backup.".to_owned(),
        })
}

/// Returns the hash of the next link, keyed if there is a key.
pub(crate) fn chained(key: Option<&ChainKey>, before: &str, entry: &str) -> String {
    let parts = [before.as_bytes(), b"\n", entry.as_bytes()];
    match key {
        None => {
            let mut hash = Sha256::new();
            for part in parts {
                hash.update(part);
            }
            HEXLOWER.encode(&hash.finalize())
        }
        Some(key) => {
            let mut mac = key.0.clone();
            for part in parts {
                mac.update(part);
            }
            let mut hash = KEYED.to_owned();
            HEXLOWER.encode_append(&mac.finalize().into_bytes(), &mut hash);
            hash
        }
    }
}
