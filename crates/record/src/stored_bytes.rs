//! The limits on the bytes that questions keep in the record: those of each authenticated caller, and those of all.
//!
//! Of each limit, one server has at most three quarters of what the questions of other servers and approvals leave: one
//! that asks without end, and takes its questions back, leaves room for others. When it has no more, its questions that
//! ended without a person's action are deleted before their time; their entries of the audit stay.
//!
//! Open questions and ended ones count alike, until they are deleted. Questions are added here as they are asked; the
//! store adds up its rows at the start, from time to time, and when a limit is reached. Of several gateways with one
//! record, each sees the others' questions when it adds up again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::lifecycle::Timestamp;

use crate::principal::Principal;
use crate::store::{Body, Purge, RecordStore as _, Row, StoredOf};
use crate::{Record, RecordError};

/// The limits on what is stored, in bytes if nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageLimits {
    /// `caller-question-bytes`: all questions of one authenticated caller.
    pub of_caller: u64,
    /// `all-question-bytes`: all questions.
    pub of_all: u64,
    /// `argument-bytes`: the arguments stored with one question. Larger ones are not stored, and not shown.
    pub arguments: usize,
    /// `max-record`: the whole record, with its audit; `None` for no limit.
    pub of_record: Option<u64>,
    /// `max-open`: the open questions of all callers, as a number; `None` for no limit.
    pub open: Option<u64>,
}

impl StorageLimits {
    /// The limits without settings.
    pub const DEFAULT: Self = Self {
        of_caller: 64 * 1024 * 1024,
        of_all: 1024 * 1024 * 1024,
        arguments: 1024 * 1024,
        of_record: None,
        open: None,
    };
}

impl Default for StorageLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The least bytes of a row besides its arguments, its answer and its question: names, times and entries of the audit,
/// roughly. A row with longer names counts them.
pub(crate) const ROW: u64 = 1_024;
/// The names of the settings.
const OF_CALLER: &str = "caller-question-bytes";
const OF_ALL: &str = "all-question-bytes";
/// The most bytes of the params of a question that stay after it has ended without a person's action. Its list entry, and
/// the names of its fields, stay in any case.
pub(crate) const PARAMS_AFTER_END: usize = 16 * 1024;
/// The time after which the store adds up its rows again, in milliseconds.
const AGAIN: u64 = 10 * 60 * 1_000;
/// The same when a limit is reached. Until then, questions of that caller are refused without looking: large ones that end at
/// once, and leave little, are written at most this often up to the limit.
const AGAIN_WHEN_FULL: u64 = 60 * 1_000;

impl Row {
    /// Returns the bytes that the row keeps in the record.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let sealed = [&self.arguments, &self.content];
        let sealed: usize = sealed.into_iter().flatten().map(Vec::len).sum();
        let params = self.params.as_ref().map_or(0, String::len);
        let row = self.body.text_bytes().max(ROW);
        row.saturating_add(u64::try_from(sealed + params).unwrap_or(u64::MAX))
    }
}

impl Body {
    /// Returns the bytes of its texts, most of which are written by the server or the client.
    fn text_bytes(&self) -> u64 {
        let perhaps = [
            &self.address,
            &self.elicitation_id,
            &self.server_info,
            &self.client_info,
            &self.target,
            &self.unchecked,
        ];
        let lists = [&self.others, &self.fields, &self.cautions];
        let texts = [&self.server, &self.message, &self.principal].into_iter();
        let texts = texts.chain(perhaps.into_iter().flatten());
        let texts = texts.chain(lists.into_iter().flatten());
        let bytes: usize = texts.map(String::len).sum();
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// The bytes as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct StoredBytes(Mutex<KnownSums>);

#[derive(Debug, Default)]
struct KnownSums {
    all: Sums,
    by_caller: HashMap<String, Sums>,
    /// Bytes ever added, to find those that were added while the store added up.
    added: u64,
    /// The time when the store last added up.
    at: Option<Timestamp>,
}

/// The bytes of all questions, and of those of each server.
#[derive(Debug, Default)]
struct Sums {
    all: u64,
    of_servers: HashMap<String, u64>,
}

impl Sums {
    fn add(&mut self, server: Option<&str>, bytes: u64) {
        self.all = self.all.saturating_add(bytes);
        if let Some(server) = server {
            let of_server = self.of_servers.entry(server.to_owned()).or_default();
            *of_server = of_server.saturating_add(bytes);
        }
    }

    /// Adds bytes of which it is not known whose they are.
    fn add_to_each(&mut self, bytes: u64) {
        self.all = self.all.saturating_add(bytes);
        for of_server in self.of_servers.values_mut() {
            *of_server = of_server.saturating_add(bytes);
        }
    }

    /// Returns the limit that further bytes reach, if any.
    fn limit(&self, adding: &Adding<'_>, name: &'static str, most: u64) -> Option<StorageLimit> {
        let limit = |most, of_server| StorageLimit {
            name,
            most,
            of_server,
        };
        if self.all.saturating_add(adding.bytes) > most {
            return Some(limit(most, false));
        }
        let own = self.of_servers.get(adding.server?).copied().unwrap_or(0);
        let left = most.saturating_sub(self.all.saturating_sub(own));
        let share = left - left / 4;
        (own.saturating_add(adding.bytes) > share).then(|| limit(share, true))
    }
}

/// The bytes of a new question.
#[derive(Clone, Copy)]
struct Adding<'a> {
    caller: &'a str,
    /// The server that asks; `None` if the gateway does.
    server: Option<&'a str>,
    bytes: u64,
}

impl<'a> Adding<'a> {
    fn of(row: &'a Row) -> Self {
        Self {
            caller: &row.body.principal,
            server: row.asking_server(),
            bytes: row.stored_bytes(),
        }
    }

    /// Returns `true` if the caller was authenticated, and has a limit of its own.
    fn is_of_verified(&self) -> bool {
        Principal::parse(self.caller).is_some_and(|caller| caller.is_verified())
    }
}

/// A reached limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageLimit {
    /// The name of the setting.
    pub name: &'static str,
    /// The most bytes.
    pub most: u64,
    /// `true` if these are the most bytes of the server that asks.
    pub of_server: bool,
}

impl StoredBytes {
    fn known(&self) -> MutexGuard<'_, KnownSums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a question if there is room.
    fn add(&self, adding: &Adding<'_>, limits: StorageLimits) -> Result<(), StorageLimit> {
        let mut known = self.known();
        let Adding {
            caller,
            server,
            bytes,
        } = *adding;
        let of_all = known.all.limit(adding, OF_ALL, limits.of_all);
        of_all.map_or(Ok(()), Err)?;
        let caller = known.by_caller.entry(caller.to_owned()).or_default();
        if adding.is_of_verified() {
            let of_caller = caller.limit(adding, OF_CALLER, limits.of_caller);
            of_caller.map_or(Ok(()), Err)?;
        }
        caller.add(server, bytes);
        known.all.add(server, bytes);
        known.added += bytes;
        Ok(())
    }

    /// Returns `true` if the store should add up again.
    fn is_due(&self, now: Timestamp, is_full: bool) -> bool {
        let after = if is_full { AGAIN_WHEN_FULL } else { AGAIN };
        let at = self.known().at;
        at.is_none_or(|at| {
            let since = now.as_millis().abs_diff(at.as_millis());
            since >= after
        })
    }

    /// Sets the bytes that the store has added up since `added_before`. What was added meanwhile may count twice until
    /// the next time, and never not at all.
    fn set(&self, stored: Vec<StoredOf>, added_before: u64, now: Timestamp) {
        let mut known = self.known();
        let meanwhile = known.added - added_before;
        known.all = Sums::default();
        known.by_caller = HashMap::new();
        for of in stored {
            let server = of.server.as_deref();
            known.all.add(server, of.bytes);
            known
                .by_caller
                .entry(of.caller)
                .or_default()
                .add(server, of.bytes);
        }
        if meanwhile > 0 {
            known.all.add_to_each(meanwhile);
            for sums in known.by_caller.values_mut() {
                sums.add_to_each(meanwhile);
            }
        }
        known.at = Some(now);
    }
}

impl Record {
    /// Sets the limits on the bytes of questions.
    #[must_use]
    pub fn with_storage_limits(self, limits: StorageLimits) -> Self {
        let retention = self.retention();
        self.set_limits(retention, limits);
        self
    }

    /// Returns the most bytes of arguments that are stored with a question.
    pub(crate) fn most_arguments(&self) -> usize {
        self.limits().storage.arguments
    }

    /// Adds the bytes of a question if there is certainly room.
    pub(crate) fn admit_bytes_at_once(&self, row: &Row) -> Result<(), StorageLimit> {
        let adding = Adding::of(row);
        self.stored_bytes.add(&adding, self.limits().storage)
    }

    /// Adds the bytes of a question like [`Self::admit_bytes_at_once`], asking the store if a limit seems to be reached,
    /// and making room at the cost of the server that asks.
    pub(crate) async fn admit_bytes(&self, row: &Row) -> Result<(), RecordError> {
        if self.admit_bytes_at_once(row).is_ok() {
            return Ok(());
        }
        if self.stored_bytes.is_due(self.now(), true) {
            self.add_up().await?;
            let Err(limit) = self.admit_bytes_at_once(row) else {
                return Ok(());
            };
            if self.has_made_room(row, limit).await? {
                self.add_up().await?;
            }
        }
        self.admit_bytes_at_once(row).map_err(RecordError::TooLarge)
    }

    /// Deletes the ended questions of the server that asks, on which nobody acted, and returns `true` if there were any.
    async fn has_made_room(&self, row: &Row, limit: StorageLimit) -> Result<bool, RecordError> {
        let Some(server) = row.asking_server() else {
            return Ok(false);
        };
        let of_caller = limit.name == OF_CALLER;
        let purge = Purge {
            principal: of_caller.then(|| row.body.principal.clone()),
            unanswered_of: Some(server.to_owned()),
            ..Purge::before(self.now())
        };
        let deleted = self.purge(purge, limit.name).await?;
        if deleted > 0 {
            tracing::warn!(
                server = %row.body.server, deleted, limit = limit.name,
                "ended questions of a server were deleted before their time, since they filled its share"
            );
        }
        Ok(deleted > 0)
    }

    /// Adds up the stored bytes if that is due.
    pub(crate) async fn add_up_when_due(&self) -> Result<(), RecordError> {
        if self.stored_bytes.is_due(self.now(), false) {
            self.add_up().await?;
        }
        Ok(())
    }

    async fn add_up(&self) -> Result<(), RecordError> {
        let added = self.stored_bytes.known().added;
        let stored = self.store.stored_bytes().await?;
        self.stored_bytes.set(stored, added, self.now());
        Ok(())
    }
}
