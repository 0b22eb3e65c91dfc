//! The store of the questions. One trait, one contract suite (`contract.rs`), one file for each kind of store, and the
//! [`writer`] in front of any of them.
//!
//! A store decides nothing about a question: it keeps rows, changes them only when nobody else did since they were read
//! (compare-and-set by version, all of several or none), and appends to the audit chain in the same step. Values that
//! a person gave reach it sealed.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use futures::future::BoxFuture;
use hmac::{Hmac, Mac as _};
use mcp_elicit_core::lifecycle::{Delivery, Lifecycle, Timestamp};
use mcp_elicit_core::wire::{CallKind, Mode};
use mcp_elicit_policy::people::Addressee;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::IdentityKey;
use crate::identity::keyed;
use crate::principal::Principal;
use crate::team::Team;
use outbox::{Notification, NotificationFilter, Notified, Taken, Tried, Untold};

pub mod memory;
pub mod outbox;
pub mod sqlite;
pub mod writer;

#[cfg(test)]
mod contract;
#[cfg(test)]
pub(crate) mod fault_injection;
#[cfg(test)]
mod inline_tests;

pub use memory::Memory;
pub use sqlite::Sqlite;
pub use writer::Writer;

/// One question as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Unguessable; names the question to people, pages and scripts.
    pub id: String,
    /// The key that finds the same question of the same call of the same principal again; hex.
    pub binding: String,
    /// Which running gateway has the call that waits for it.
    pub owner: String,
    /// The state; its version is the row's.
    pub lifecycle: Lifecycle,
    /// `true` if only that gateway may change the row, for as long as it runs: it knows more than the row says.
    pub exclusive: bool,
    /// The question, and its call: nothing in it changes.
    pub body: Arc<Body>,
    /// The call's arguments, sealed.
    pub arguments: Option<Vec<u8>>,
    /// The answer's content, sealed; dropped once it was delivered.
    pub content: Option<Vec<u8>>,
    /// The params of the question [as they are stored](mcp_elicit_core::question::NewQuestion::stored_params), JSON. `None` in a list,
    /// which does not read them.
    pub params: Option<String>,
    /// The people whom a rule asks, and their acts so far; `None` for a question of no rule.
    pub team: Option<Box<Team>>,
}

impl Row {
    /// Returns `true` when the same question of the same call made again finds this row: it is known which call asked.
    pub fn can_be_found(&self) -> bool {
        let target = self.body.target.as_ref();
        target.is_some() && self.body.others.is_empty()
    }

    /// Returns `true` if the row is under one of the keys.
    fn is_under(&self, under: &ListKeys) -> bool {
        let Some(team) = &self.team else {
            return under.principals.contains(&self.body.principal);
        };
        let quorum = team.quorum();
        let mut all = quorum.addressees().iter().chain(quorum.delegates());
        let caller = &team.caller;
        let mut callers = ListKeys::default();
        callers.add_subject(&caller.issuer, &caller.subject);
        if let Some(person) = &caller.person {
            callers.add_caller(person);
        }
        all.any(|to| under.keys.contains(&addressee_key(to)))
            || callers.keys.iter().any(|key| under.keys.contains(key))
    }

    /// Returns when time alone changes the row; `None` when it does not.
    pub fn due_at(&self) -> Option<Timestamp> {
        if self.lifecycle.is_over() {
            return None;
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

    /// Returns `true` when an answer was taken out, and nobody has said yet what became of it.
    pub fn is_in_transit(&self) -> bool {
        self.lifecycle.delivery() == Some(Delivery::Delivered)
            && (self.content.is_some() || self.arguments.is_some())
    }
}

/// Longest beginning of a message that lists show, in characters.
pub const MAX_MESSAGE: usize = 1_000;

impl Body {
    /// Returns the beginning of a message, as far as lists show it.
    pub fn beginning_of(message: &str) -> String {
        message.chars().take(MAX_MESSAGE).collect()
    }

    /// Returns what tells the servers of questions apart: the operator's name, else the command or URL.
    pub fn server_address(&self) -> &str {
        self.address.as_deref().unwrap_or(&self.server)
    }
}

/// The part of a question that does not change, and holds nothing that a person said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// The server by the name that people know: the operator's, else what it calls itself.
    pub server: String,
    /// The server's command or URL, where the operator gave it no name.
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
    /// The kind of call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Other calls that may have asked, each name once, where the server did not say for which call it asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// Names of the form's fields.
    pub fields: Vec<String>,
    /// The warnings for a person.
    pub cautions: Vec<String>,
    /// `true` if the client asks in a dialog of its own.
    pub at_client: bool,
}

/// A row to be changed: as it shall be, and the version it was read with.
#[derive(Clone, Debug)]
pub struct Change {
    /// The row as it shall be.
    pub row: Row,
    /// The version of the row it replaces.
    pub seen: u64,
    /// The audit entries for it, in order; none when nothing worth auditing changed.
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

/// The result of a call that nobody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedCall {
    /// Unguessable.
    pub id: String,
    /// The key that finds the same call of the same caller again; hex.
    pub binding: String,
    /// The server's answer, sealed.
    pub result: Vec<u8>,
    /// Until when it is kept.
    pub until: Timestamp,
}

/// The numbers of open rows of one caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenCount {
    /// All of them.
    pub of_caller: usize,
    /// Those that one server asks. Approvals, for which the gateway asks, are not among them.
    pub of_server: usize,
}

/// An approval that is good for a while, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredGrant {
    /// Finds it again; a keyed hash in hex.
    pub key: String,
    /// The question in which people approved the call.
    pub question: Option<String>,
    /// The rule by name.
    pub rule: String,
    /// The digest of the rule.
    pub rule_digest: String,
    /// The approvers' answers, sealed.
    pub answers: Vec<u8>,
    /// When people approved the call.
    pub at: Timestamp,
    /// When it ends.
    pub until: Timestamp,
}

/// A group of writes that is made as a whole or not at all.
#[derive(Clone, Debug)]
pub enum Write {
    /// A new row, and what the audit says of it, in order.
    Insert {
        /// The row.
        row: Box<Row>,
        /// The audit's entries.
        audit: Vec<String>,
    },
    /// Rows to be changed.
    Change(Vec<Change>),
    /// Nothing but what the audit says.
    Note(String),
}

impl Write {
    /// Returns the crash that it must survive.
    pub fn survives(&self) -> Crash {
        match self {
            Self::Insert { .. } | Self::Note(_) => Crash::Process,
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
    /// Counts from 1 without gaps.
    pub number: u64,
    /// The event, JSON.
    pub entry: String,
    /// HMAC-SHA-256 over the hash before (or nothing) and the entry, hex behind `k1:`; plain SHA-256 in links of older
    /// versions.
    pub hash: String,
}

/// Which rows to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Those that wait, the longest waiting first.
    Open,
    /// Those that wait, the latest first.
    OpenLatest,
    /// Those that ended, the latest first.
    Ended,
}

/// The keys under which the questions of one person are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListKeys {
    pub(crate) keys: Vec<String>,
    pub(crate) principals: Vec<String>,
}

impl ListKeys {
    /// Adds the questions that are addressed to a person or a group, or handed on to them.
    pub fn add_addressee(&mut self, to: &Addressee) {
        self.keys.push(addressee_key(to));
    }

    /// Adds the questions of calls that a person of the file makes.
    pub fn add_caller(&mut self, person: &str) {
        self.keys.push(format!("caller:{person}"));
    }

    /// Adds the questions of calls with the API key of this id that no rule touches. Those of a rule name the caller's person.
    pub fn add_key(&mut self, id: &str) {
        self.principals.push(Principal::Key(id).to_string());
    }

    /// Adds the questions of calls that a subject of an issuer makes.
    pub fn add_subject(&mut self, issuer: &str, subject: &str) {
        self.keys.push(format!("caller:{issuer}\n{subject}"));
        let principal = Principal::subject(issuer, subject);
        self.principals.push(principal.to_string());
    }
}

/// Returns an addressee as a question's team is written.
fn addressee_key(to: &Addressee) -> String {
    serde_json::to_string(to).expect("a name, written to memory")
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The row behind which it starts, whether or not that still is on the list; `None` for the beginning.
    pub after: Option<String>,
    /// The most rows.
    pub most: usize,
}

impl Page {
    /// The beginning of a list.
    pub const fn first(most: usize) -> Self {
        Self { after: None, most }
    }

    /// Returns what comes behind this row; nothing when there is no such row.
    pub const fn after(row: String, most: usize) -> Self {
        Self {
            after: Some(row),
            most,
        }
    }
}

/// The store could not do its work. Says nothing about any question.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database failed.
    #[error("the record cannot be reached")]
    Database(#[from] rusqlite::Error),
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
    /// The file is of a newer version.
    #[error("the record was written by a newer version (schema {found}, known {known})")]
    Newer {
        /// The schema found.
        found: i64,
        /// The newest schema known here.
        known: i64,
    },
    /// The file is something else than a gateway's record; holds in words what it is.
    #[error("the file is not a gateway's record: {0}")]
    NotRecord(&'static str),
}

/// The contents of a record that need its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyedContents {
    /// The number of values that are sealed.
    pub sealed: u64,
    /// The number of the audit's links that were made with a key.
    pub keyed_links: u64,
}

/// The number of servers of which a store keeps what was learned.
pub const SERVERS_LEARNED: usize = 256;

/// The future that a store returns.
pub type Stored<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// The store of the questions.
pub trait Store: Send + Sync + 'static {
    /// Writes all that is wanted, in this order, and says of each whether it was done: a change is not where any of its
    /// rows has another version than was seen, and no other stands or falls with it. A fault leaves nothing written.
    fn write(&self, wanted: Arc<Vec<Write>>) -> Stored<'_, Vec<bool>>;
    /// The same on the calling thread, where that has to wait neither for the disk nor for anybody else; `None` where it has to, or
    /// where the store cannot, with nothing written.
    fn write_inline(&self, _wanted: &[Write]) -> Option<Result<Vec<bool>, StoreError>> {
        None
    }
    /// The row of this id.
    fn find(&self, id: String) -> Stored<'_, Option<Row>>;
    /// The rows of the same question that were not delivered, oldest first.
    fn by_binding(&self, binding: String) -> Stored<'_, Vec<Row>>;
    /// One page of rows, without what was asked in full (`Row::params`).
    fn list(&self, filter: Filter, page: Page) -> Stored<'_, Vec<Row>>;
    /// The rows of a list that are under these keys, without what was asked in full. At most so many.
    fn list_under(&self, filter: Filter, keys: ListKeys, most: usize) -> Stored<'_, Vec<Row>>;
    /// Returns how many rows wait.
    fn waiting(&self) -> Stored<'_, usize>;
    /// Returns how many rows of this caller ([`Body::principal`]) wait, and how many of them this server ([`Body::server_address`]) asks.
    fn waiting_of(&self, principal: String, server: Option<String>) -> Stored<'_, OpenCount>;
    /// Returns what finds the rows again (`Row::binding`) that wait, or whose answer was not delivered.
    fn left_over(&self) -> Stored<'_, Vec<String>>;
    /// Rows that something is to be done about: those whose time has come, those that wait and cannot be found again, and
    /// answers that were taken out and of which nothing is known. At most so many.
    fn due(&self, now: Timestamp, most: usize) -> Stored<'_, Vec<Row>>;
    /// Deletes rows that ended before this moment and of which nothing is kept, and erases what was deleted from the disk.
    /// Returns how many.
    fn purge(&self, before: Timestamp) -> Stored<'_, usize>;
    /// Writes the result of a call; it survives a loss of power.
    fn keep_call(&self, call: FinishedCall) -> Stored<'_, ()>;
    /// Deletes the result of a call and returns it; `None` where somebody else was first.
    fn take_call(&self, id: String) -> Stored<'_, Option<FinishedCall>>;
    /// Deletes results that are kept no longer, and returns the others.
    fn calls(&self, now: Timestamp) -> Stored<'_, Vec<FinishedCall>>;
    /// Keeps an approval that is good for a while, in the place of one of the same key.
    fn keep_grant(&self, grant: StoredGrant) -> Stored<'_, ()>;
    /// Deletes approvals that have ended, and returns the others.
    fn grants(&self, now: Timestamp) -> Stored<'_, Vec<StoredGrant>>;
    /// Deletes the approvals of these keys.
    fn drop_grants(&self, keys: Vec<String>) -> Stored<'_, ()>;
    /// The audit chain from this number on, at most so many.
    fn audit(&self, from: u64, most: usize) -> Stored<'_, Vec<AuditEntry>>;
    /// The number of the last link of the audit chain; 0 where there is none.
    fn audit_end(&self) -> Stored<'_, u64>;

    /// Keeps what was learned of a server, JSON, by the server's key. Those that were learned of longest ago are forgotten.
    fn keep_learned(&self, server: String, learned: String, now: Timestamp) -> Stored<'_, ()>;
    /// Returns what was learned of a server.
    fn learned(&self, server: String) -> Stored<'_, Option<String>>;

    /// Questions whose course may hold what people were not told, the oldest first. At most so many.
    fn untold(&self, most: usize) -> Stored<'_, Vec<Untold>>;
    /// Queues messages of a question, and notes that its people are told so far.
    fn notified(&self, notified: Notified) -> Stored<'_, ()>;
    /// Takes messages whose time has come, and those whose lease has ended, until `lease_end`. Each is taken once.
    fn take_notifications(
        &self,
        now: Timestamp,
        lease_end: Timestamp,
        most: usize,
    ) -> Stored<'_, Vec<Notification>>;
    /// Writes the result of a try; `false` where somebody else has taken the message since.
    fn finish_notification<'a>(
        &'a self,
        taken: Taken<'a>,
        tried: Tried,
        now: Timestamp,
    ) -> Stored<'a, bool>;
    /// Queues a message that has failed again, to be tried until then; `false` where it has not failed.
    fn notify_again(&self, id: String, now: Timestamp, until: Timestamp) -> Stored<'_, bool>;
    /// Returns messages, at most so many.
    fn notifications(
        &self,
        filter: NotificationFilter,
        most: usize,
    ) -> Stored<'_, Vec<Notification>>;
}

/// The key of an audit chain: without it nobody can make a chain whole again that was changed.
#[derive(Clone)]
pub struct ChainKey(Hmac<Sha256>);

/// The prefix of a link's hash that was made with a key.
const KEYED: &str = "k1:";

impl ChainKey {
    /// Returns the key of the chain that goes with the key of identities.
    pub fn from_identity(identity: &IdentityKey) -> Self {
        Self(keyed(&identity.derive("audit chain")))
    }
}

impl std::fmt::Debug for ChainKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChainKey(..)")
    }
}

/// Returns whether the link of this hash was made with a key.
pub fn is_keyed(hash: &str) -> bool {
    hash.starts_with(KEYED)
}

/// The hash of the next link: with a key where there is one.
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
