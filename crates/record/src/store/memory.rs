//! A store in memory: for tests, and for operators who want nothing on disk. It ends with the process.

mod api_tokens;
mod outbox;
mod sealed;
mod shared_rows;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use mcp_elicit_core::lifecycle::{Lifecycle, Timestamp};

use self::api_tokens::Tokens;
use self::outbox::Outbox;
use self::shared_rows::SharedValueRows;
use super::outbox::{Notification, NotificationFilter, Notified, TakenMessage, Tried, Untold};
use super::{
    AuditEntry, ChainKey, Change, Filter, FinishedCall, ListQuery, MOST_USED, OpenCount,
    OpenFigures, Purge, RecordContents, RecordFuture, RecordStore, RecordStoreError, ResealedRow,
    Row, RunningCall, SERVERS_LEARNED, SealedQuery, SealedRow, StoredGrant, StoredOf,
    UnattendedCall, UsedValue, Write, chained,
};
use crate::audit::{AuditFilter, AuditedEvent};
use crate::stored_bytes::PARAMS_AFTER_END;
use crate::used::UsedKind;

#[derive(Default)]
struct MemoryTables {
    rows: BTreeMap<String, Row>,
    audit: Vec<AuditEntry>,
    calls: BTreeMap<String, FinishedCall>,
    running: BTreeMap<String, UnattendedCall>,
    grants: BTreeMap<String, StoredGrant>,
    key: Option<ChainKey>,
    outbox: Outbox,
    tokens: Tokens,
    /// The shared values, by their names.
    shared: BTreeMap<&'static str, SharedValueRows>,
    /// The facts learned about servers, and the times.
    learned: BTreeMap<String, (Timestamp, String)>,
    /// The values that were used, and the times until which they are kept.
    used: BTreeMap<(UsedKind, [u8; 32]), Timestamp>,
}

/// A store in memory.
#[derive(Default)]
pub struct Memory {
    inner: Mutex<MemoryTables>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Memory {
    /// Creates a store whose audit chain has this key.
    pub fn keyed(key: ChainKey) -> Self {
        let inner = MemoryTables {
            key: Some(key),
            ..MemoryTables::default()
        };
        Self {
            inner: Mutex::new(inner),
        }
    }
}

/// Returns `true` if the purge deletes this row.
fn is_purged(row: &Row, purge: &Purge) -> bool {
    let lifecycle = &row.lifecycle;
    lifecycle.is_over()
        && row.due_at().is_none()
        && lifecycle
            .ended_at()
            .is_some_and(|ended| ended < purge.before)
        && purge
            .principal
            .as_ref()
            .is_none_or(|of| row.body.principal == *of)
        && purge.unanswered_of.as_deref().is_none_or(|server| {
            row.team.is_none() && row.body.server_address() == server && !row.has_acted()
        })
}

fn counted(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

impl Memory {
    fn write_all(&self, wanted: &[Write]) -> Vec<bool> {
        self.with(|inner| wanted.iter().map(|write| inner.write(write)).collect())
    }

    fn with<T>(&self, work: impl FnOnce(&mut MemoryTables) -> T) -> T {
        // A panic elsewhere leaves whole rows: every change consists of moves.
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl MemoryTables {
    fn write(&mut self, wanted: &Write) -> bool {
        match wanted {
            Write::Insert { row, audit } => {
                self.outbox.note(row);
                self.rows.insert(row.id.clone(), Row::clone(row));
                for entry in audit {
                    self.append(entry.clone());
                }
            }
            Write::Note(entry) => self.append(entry.clone()),
            Write::PurgeAudit {
                number,
                hash,
                entry,
            } => {
                let is_base = |link: &AuditEntry| link.number == *number && link.hash == *hash;
                let Some(base) = self.audit.iter().position(is_base) else {
                    return false;
                };
                if base + 1 == self.audit.len() {
                    return false;
                }
                self.audit.drain(..=base);
                self.append(entry.clone());
            }
            Write::Change(changes) => {
                let seen = |change: &Change| {
                    let row = self.rows.get(&change.row.id);
                    row.is_some_and(|row| row.lifecycle.version() == change.seen)
                };
                if !changes.iter().all(seen) {
                    return false;
                }
                for change in changes {
                    self.outbox.note(&change.row);
                    let mut row = change.row.clone();
                    if row.ended_unanswered() {
                        row.params = row.params.filter(|params| params.len() <= PARAMS_AFTER_END);
                    }
                    self.rows.insert(row.id.clone(), row);
                    for entry in &change.audit {
                        self.append(entry.clone());
                    }
                }
            }
        }
        true
    }

    fn append(&mut self, entry: String) {
        let last = self.audit.last();
        let (number, before) = last.map_or((0, ""), |last| (last.number, &*last.hash));
        let hash = chained(self.key.as_ref(), before, &entry);
        self.audit.push(AuditEntry {
            number: number.saturating_add(1),
            entry,
            hash,
        });
    }
}

/// Returns the order of two rows in a list: by time, and by id among rows of the same time.
fn in_list_order(filter: Filter, a: &Row, b: &Row) -> Ordering {
    let time = |row: &Row| match filter {
        Filter::Open | Filter::OpenLatest => Some(row.lifecycle.asked_at()),
        Filter::Ended => row.lifecycle.ended_at(),
    };
    let order = (time(a), &a.id).cmp(&(time(b), &b.id));
    match filter {
        Filter::Open => order,
        Filter::OpenLatest | Filter::Ended => order.reverse(),
    }
}

impl RecordStore for Memory {
    fn write(&self, wanted: Arc<Vec<Write>>) -> RecordFuture<'_, Vec<bool>> {
        let done = self.write_all(&wanted);
        async { Ok(done) }.boxed()
    }

    fn write_inline(&self, wanted: &[Write]) -> Option<Result<Vec<bool>, RecordStoreError>> {
        Some(Ok(self.write_all(wanted)))
    }

    fn find(&self, id: String) -> RecordFuture<'_, Option<Row>> {
        let found = self.with(|inner| inner.rows.get(&id).cloned());
        async { Ok(found) }.boxed()
    }

    fn by_binding(&self, binding: String) -> RecordFuture<'_, Vec<Row>> {
        let mut found = self.with(|inner| {
            let fits = |row: &&Row| row.binding == binding && !row.lifecycle.is_over();
            inner
                .rows
                .values()
                .filter(fits)
                .cloned()
                .collect::<Vec<_>>()
        });
        found.sort_by_key(|row| row.lifecycle.asked_at());
        async { Ok(found) }.boxed()
    }

    fn list(&self, query: ListQuery) -> RecordFuture<'_, Vec<Row>> {
        let found = self.with(|inner| {
            let (filter, page) = (query.filter, &query.page);
            let after = match &page.after {
                None => None,
                Some(id) => match inner.rows.get(id) {
                    Some(row) => Some(row),
                    None => return Vec::new(),
                },
            };
            let is_after = |row: &Row| {
                after.is_none_or(|after| in_list_order(filter, row, after) == Ordering::Greater)
            };
            let is_under = |row: &Row| query.keys.as_ref().is_none_or(|keys| row.is_under(keys));
            let mut rows: Vec<&Row> = inner
                .rows
                .values()
                .filter(|row| row.lifecycle.is_open() == (filter != Filter::Ended))
                .filter(|row| is_after(row) && is_under(row) && query.matching.admits(row))
                .collect();
            rows.sort_by(|a, b| in_list_order(filter, a, b));
            let listed = |row: &Row| Row {
                params: None,
                ..row.clone()
            };
            rows.into_iter().take(page.most).map(listed).collect()
        });
        async { Ok(found) }.boxed()
    }

    fn waiting(&self) -> RecordFuture<'_, usize> {
        let count = self.with(|inner| {
            inner
                .rows
                .values()
                .filter(|row| row.lifecycle.is_open())
                .count()
        });
        async move { Ok(count) }.boxed()
    }

    fn waiting_of(&self, principal: String, server: Option<String>) -> RecordFuture<'_, OpenCount> {
        let count = self.with(|inner| {
            let open = inner.rows.values().filter(|row| row.lifecycle.is_open());
            OpenCount::of(open, &principal, server.as_deref())
        });
        async move { Ok(count) }.boxed()
    }

    fn stored_bytes(&self) -> RecordFuture<'_, Vec<StoredOf>> {
        let sums = self.with(|inner| {
            let mut sums = std::collections::HashMap::<_, u64>::new();
            for row in inner.rows.values() {
                let server = row.asking_server().map(str::to_owned);
                *sums
                    .entry((row.body.principal.clone(), server))
                    .or_default() += row.stored_bytes();
            }
            sums
        });
        let sums = sums.into_iter().map(|((caller, server), bytes)| StoredOf {
            caller,
            server,
            bytes,
        });
        let sums = sums.collect();
        async move { Ok(sums) }.boxed()
    }

    fn left_over(&self) -> RecordFuture<'_, Vec<String>> {
        let waits = |row: &&Row| !row.lifecycle.is_over();
        let found = self.with(|inner| {
            let rows = inner.rows.values().filter(waits);
            rows.map(|row| row.binding.clone()).collect()
        });
        async { Ok(found) }.boxed()
    }

    fn due(&self, now: Timestamp, most: usize) -> RecordFuture<'_, Vec<Row>> {
        let is_due = |row: &&Row| {
            let lifecycle = &row.lifecycle;
            row.due_at().is_some_and(|due| due <= now)
                || lifecycle.is_open() && !row.can_be_found()
                || row.is_in_transit()
        };
        let found = self.with(|inner| {
            let mut rows: Vec<&Row> = inner.rows.values().filter(is_due).collect();
            rows.sort_by_key(|row| (row.due_at().is_none(), row.due_at(), &row.id));
            rows.into_iter().take(most).cloned().collect()
        });
        async { Ok(found) }.boxed()
    }

    fn purge(&self, purge: Purge) -> RecordFuture<'_, usize> {
        let count = self.with(|inner| {
            let all = inner.rows.len();
            let MemoryTables { rows, outbox, .. } = inner;
            outbox.purge(&purge, rows);
            rows.retain(|_, row| !is_purged(row, &purge));
            outbox.forget_without(rows);
            all - rows.len()
        });
        async move { Ok(count) }.boxed()
    }

    fn purgeable(&self, purge: Purge) -> RecordFuture<'_, usize> {
        let count = self.with(|inner| {
            let purged = inner.rows.values().filter(|row| is_purged(row, &purge));
            purged.count()
        });
        async move { Ok(count) }.boxed()
    }

    fn contents(&self) -> RecordFuture<'_, RecordContents> {
        let contents = self.with(|inner| {
            let count = |is_counted: fn(&Lifecycle) -> bool| {
                let rows = inner.rows.values();
                counted(rows.filter(|row| is_counted(&row.lifecycle)).count())
            };
            let over = inner.rows.values().filter(|row| row.lifecycle.is_over());
            RecordContents {
                waiting: count(Lifecycle::is_open),
                undelivered: count(|one| !one.is_open() && !one.is_over()),
                ended: count(Lifecycle::is_over),
                oldest_ended: over.filter_map(|row| row.lifecycle.ended_at()).min(),
                running_calls: counted(inner.running.len()),
                results: counted(inner.calls.len()),
                grants: counted(inner.grants.len()),
                messages: counted(inner.outbox.len()),
                links: counted(inner.audit.len()),
            }
        });
        async move { Ok(contents) }.boxed()
    }

    fn keep_call(&self, call: FinishedCall) -> RecordFuture<'_, ()> {
        self.with(|inner| {
            inner.running.remove(&call.id);
            inner.calls.insert(call.id.clone(), call)
        });
        async { Ok(()) }.boxed()
    }

    fn take_call(&self, id: String) -> RecordFuture<'_, Option<FinishedCall>> {
        let taken = self.with(|inner| inner.calls.remove(&id));
        async { Ok(taken) }.boxed()
    }

    fn stored_call(&self, id: String) -> RecordFuture<'_, Option<FinishedCall>> {
        let stored = self.with(|inner| inner.calls.get(&id).cloned());
        async { Ok(stored) }.boxed()
    }

    fn begin_call(
        &self,
        id: String,
        binding: String,
        running: RunningCall,
        until: Timestamp,
    ) -> RecordFuture<'_, ()> {
        self.with(|inner| {
            if !inner.calls.contains_key(&id) {
                let call = UnattendedCall {
                    id: id.clone(),
                    binding,
                    running: Some(running),
                    until,
                };
                inner.running.insert(id, call);
            }
        });
        async { Ok(()) }.boxed()
    }

    fn end_call(&self, id: String) -> RecordFuture<'_, ()> {
        self.with(|inner| inner.running.remove(&id));
        async { Ok(()) }.boxed()
    }

    fn calls(
        &self,
        binding: Option<String>,
        now: Timestamp,
    ) -> RecordFuture<'_, Vec<UnattendedCall>> {
        let calls = self.with(|inner| {
            let finished = inner.calls.values().map(|call| UnattendedCall {
                id: call.id.clone(),
                binding: call.binding.clone(),
                running: None,
                until: call.until,
            });
            let all = finished.chain(inner.running.values().cloned());
            let is_wanted = |call: &UnattendedCall| {
                now < call.until && binding.as_ref().is_none_or(|of| call.binding == *of)
            };
            all.filter(is_wanted).collect()
        });
        async { Ok(calls) }.boxed()
    }

    fn expire_calls(&self, now: Timestamp) -> RecordFuture<'_, ()> {
        self.with(|inner| {
            inner.calls.retain(|_, call| now < call.until);
            inner.running.retain(|_, call| now < call.until);
        });
        async { Ok(()) }.boxed()
    }

    fn versions(&self, ids: Vec<String>) -> RecordFuture<'_, Vec<(String, u64)>> {
        let versions = self.with(|inner| {
            let version = |id: String| {
                let version = inner.rows.get(&id)?.lifecycle.version();
                Some((id, version))
            };
            ids.into_iter().filter_map(version).collect()
        });
        async { Ok(versions) }.boxed()
    }

    fn keep_learned(
        &self,
        server: String,
        learned: String,
        now: Timestamp,
    ) -> RecordFuture<'_, ()> {
        self.with(|inner| {
            inner.learned.insert(server, (now, learned));
            while inner.learned.len() > SERVERS_LEARNED {
                let oldest = inner.learned.iter().min_by_key(|(_, (at, _))| *at);
                let Some(server) = oldest.map(|(server, _)| server.clone()) else {
                    break;
                };
                inner.learned.remove(&server);
            }
        });
        async { Ok(()) }.boxed()
    }

    fn learned(&self, server: String) -> RecordFuture<'_, Option<String>> {
        let learned = self.with(|inner| {
            inner
                .learned
                .get(&server)
                .map(|(_, learned)| learned.clone())
        });
        async { Ok(learned) }.boxed()
    }

    fn keep_grant(&self, grant: StoredGrant, given: Timestamp) -> RecordFuture<'_, bool> {
        let is_stored = self.with(|inner| {
            let known = inner.grants.get(&grant.key);
            if known.is_some_and(|known| given < known.at && !grant.has_times_of(known)) {
                return false;
            }
            inner.grants.insert(grant.key.clone(), grant);
            true
        });
        async move { Ok(is_stored) }.boxed()
    }

    fn grants(&self, now: Timestamp) -> RecordFuture<'_, Vec<StoredGrant>> {
        let grants = self.with(|inner| {
            inner.grants.retain(|_, grant| now < grant.until);
            inner.grants.values().cloned().collect()
        });
        async { Ok(grants) }.boxed()
    }

    fn use_once(&self, used: UsedValue, now: Timestamp) -> RecordFuture<'_, bool> {
        let is_first = self.with(|inner| {
            inner.used.retain(|_, until| now < *until);
            let of_kind = inner.used.keys().filter(|(kind, _)| *kind == used.kind);
            if of_kind.count() >= MOST_USED {
                return false;
            }
            let before = inner.used.insert((used.kind, used.digest), used.until);
            before.is_none()
        });
        async move { Ok(is_first) }.boxed()
    }

    fn is_used(&self, kind: UsedKind, digest: [u8; 32]) -> RecordFuture<'_, bool> {
        let is_used = self.with(|inner| inner.used.contains_key(&(kind, digest)));
        async move { Ok(is_used) }.boxed()
    }

    fn drop_grants(&self, keys: Vec<String>) -> RecordFuture<'_, ()> {
        self.with(|inner| inner.grants.retain(|key, _| !keys.contains(key)));
        async { Ok(()) }.boxed()
    }

    fn sealed_rows(&self, query: SealedQuery) -> RecordFuture<'_, Vec<SealedRow>> {
        let found = self.with(|inner| inner.sealed_rows(&query));
        async { found }.boxed()
    }

    fn reseal(&self, rows: Vec<ResealedRow>) -> RecordFuture<'_, usize> {
        let changed = self.with(|inner| {
            let mut changed = 0;
            for row in &rows {
                changed += usize::from(inner.reseal(row)?);
            }
            Ok(changed)
        });
        async { changed }.boxed()
    }

    fn audit_end(&self) -> RecordFuture<'_, u64> {
        let last = self.with(|inner| inner.audit.last().map_or(0, |link| link.number));
        async move { Ok(last) }.boxed()
    }

    fn audit(&self, from: u64, most: usize) -> RecordFuture<'_, Vec<AuditEntry>> {
        let found = self.with(|inner| {
            inner
                .audit
                .iter()
                .filter(|link| link.number >= from)
                .take(most)
                .cloned()
                .collect::<Vec<_>>()
        });
        async { Ok(found) }.boxed()
    }

    fn open_figures(&self) -> RecordFuture<'_, OpenFigures> {
        let found = self.with(|inner| {
            let open = || inner.rows.values().filter(|row| row.lifecycle.is_open());
            let mut by_server = BTreeMap::<String, u64>::new();
            for row in open() {
                *by_server.entry(row.body.server.clone()).or_default() += 1;
            }
            OpenFigures {
                by_server: by_server.into_iter().collect(),
                oldest: open().map(|row| row.lifecycle.asked_at()).min(),
            }
        });
        async { Ok(found) }.boxed()
    }

    fn audit_matching(
        &self,
        filter: AuditFilter,
        within: Range<u64>,
        most: usize,
    ) -> RecordFuture<'_, Vec<AuditEntry>> {
        let fits = |link: &&AuditEntry| {
            let entry = AuditedEvent::read(&link.entry);
            within.contains(&link.number)
                && (filter.is_empty() || entry.is_some_and(|entry| filter.fits(&entry)))
        };
        let found = self.with(|inner| {
            let links = inner.audit.iter().rev().filter(fits);
            links.take(most).cloned().collect::<Vec<_>>()
        });
        async { Ok(found) }.boxed()
    }

    fn untold(&self, most: usize) -> RecordFuture<'_, Vec<Untold>> {
        let found = self.with(|inner| {
            let untold = inner.outbox.untold();
            let mut found: Vec<_> = untold
                .filter_map(|(id, told)| {
                    let row = inner.rows.get(id)?.clone();
                    Some(Untold { row, told })
                })
                .collect();
            found.sort_by_key(|one| one.row.lifecycle.asked_at());
            found.truncate(most);
            found
        });
        async { Ok(found) }.boxed()
    }

    fn notified(&self, notified: Notified) -> RecordFuture<'_, ()> {
        self.with(|inner| inner.outbox.notified(notified));
        async { Ok(()) }.boxed()
    }

    fn take_notifications(
        &self,
        now: Timestamp,
        lease_end: Timestamp,
        most: usize,
        busy: Vec<String>,
    ) -> RecordFuture<'_, Vec<Notification>> {
        let taken = self.with(|inner| inner.outbox.take(now, lease_end, most, &busy));
        async { Ok(taken) }.boxed()
    }

    fn finish_notification<'a>(
        &'a self,
        taken: TakenMessage<'a>,
        tried: Tried,
        now: Timestamp,
    ) -> RecordFuture<'a, bool> {
        let done = self.with(|inner| inner.outbox.finish(taken, &tried, now));
        async move { Ok(done) }.boxed()
    }

    fn notify_again(&self, id: String, now: Timestamp, until: Timestamp) -> RecordFuture<'_, bool> {
        let done = self.with(|inner| inner.outbox.again(&id, now, until));
        async move { Ok(done) }.boxed()
    }

    fn notifications(
        &self,
        filter: NotificationFilter,
        most: usize,
    ) -> RecordFuture<'_, Vec<Notification>> {
        let found = self.with(|inner| inner.outbox.list(&filter, most));
        async { Ok(found) }.boxed()
    }
}
