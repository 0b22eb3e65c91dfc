//! A store that fails for a while, like a full disk, or whose writes take their time.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use mcp_elicit_core::lifecycle::Timestamp;

use super::drafts::DraftStore;
use super::outbox::{Notification, NotificationFilter, Notified, TakenMessage, Tried, Untold};
use super::{
    AuditEntry, FinishedCall, ListQuery, Memory, OpenCount, OpenFigures, Purge, RecordContents,
    RecordFuture, RecordStore, RecordStoreError, ResealedRow, Row, RunningCall, SealedQuery,
    SealedRow, StoredGrant, StoredOf, UnattendedCall, UsedValue, Write,
};
use crate::audit::AuditFilter;
use crate::used::UsedKind;

/// A store that fails a given number of times.
#[derive(Default)]
pub(crate) struct Failing {
    pub(crate) below: Memory,
    /// The number of the next writes that fail.
    pub(crate) writes: AtomicUsize,
    /// The number of the next lookups that fail.
    pub(crate) lookups: AtomicUsize,
    /// The number of the next changes of calls that fail.
    pub(crate) calls: AtomicUsize,
    /// The number of times that each write lets others go on before it begins.
    pub(crate) yields: AtomicUsize,
    /// The number of rows that were read so far.
    pub(crate) reads: AtomicUsize,
}

fn failing<'a, T: Send + 'a>(times: &AtomicUsize) -> Option<RecordFuture<'a, T>> {
    let less = |left: usize| left.checked_sub(1);
    let fails = times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    let fault = || RecordStoreError::Closed;
    fails.is_ok().then(|| async move { Err(fault()) }.boxed())
}

impl RecordStore for Failing {
    fn write(&self, wanted: Arc<Vec<Write>>) -> RecordFuture<'_, Vec<bool>> {
        if let Some(failed) = failing(&self.writes) {
            return failed;
        }
        async move {
            for _ in 0..self.yields.load(Ordering::SeqCst) {
                tokio::task::yield_now().await;
            }
            self.below.write(wanted).await
        }
        .boxed()
    }

    fn by_binding(&self, binding: String) -> RecordFuture<'_, Vec<Row>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        failing(&self.lookups).unwrap_or_else(|| self.below.by_binding(binding))
    }

    fn find(&self, id: String) -> RecordFuture<'_, Option<Row>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.below.find(id)
    }

    fn list(&self, query: ListQuery) -> RecordFuture<'_, Vec<Row>> {
        self.below.list(query)
    }

    fn waiting(&self) -> RecordFuture<'_, usize> {
        self.below.waiting()
    }

    fn waiting_of(&self, principal: String, server: Option<String>) -> RecordFuture<'_, OpenCount> {
        self.below.waiting_of(principal, server)
    }

    fn stored_bytes(&self) -> RecordFuture<'_, Vec<StoredOf>> {
        self.below.stored_bytes()
    }

    fn left_over(&self) -> RecordFuture<'_, Vec<String>> {
        self.below.left_over()
    }

    fn due(&self, now: Timestamp, most: usize) -> RecordFuture<'_, Vec<Row>> {
        self.below.due(now, most)
    }

    fn purge(&self, purge: Purge) -> RecordFuture<'_, usize> {
        self.below.purge(purge)
    }

    fn purgeable(&self, purge: Purge) -> RecordFuture<'_, usize> {
        self.below.purgeable(purge)
    }

    fn contents(&self) -> RecordFuture<'_, RecordContents> {
        self.below.contents()
    }

    fn keep_call(&self, call: FinishedCall) -> RecordFuture<'_, ()> {
        failing(&self.calls).unwrap_or_else(|| self.below.keep_call(call))
    }

    fn take_call(&self, id: String) -> RecordFuture<'_, Option<FinishedCall>> {
        self.below.take_call(id)
    }

    fn stored_call(&self, id: String) -> RecordFuture<'_, Option<FinishedCall>> {
        self.below.stored_call(id)
    }

    fn begin_call(
        &self,
        id: String,
        binding: String,
        running: RunningCall,
        until: Timestamp,
    ) -> RecordFuture<'_, ()> {
        let begun = || self.below.begin_call(id, binding, running, until);
        failing(&self.calls).unwrap_or_else(begun)
    }

    fn end_call(&self, id: String) -> RecordFuture<'_, ()> {
        failing(&self.calls).unwrap_or_else(|| self.below.end_call(id))
    }

    fn calls(
        &self,
        binding: Option<String>,
        now: Timestamp,
    ) -> RecordFuture<'_, Vec<UnattendedCall>> {
        self.below.calls(binding, now)
    }

    fn expire_calls(&self, now: Timestamp) -> RecordFuture<'_, ()> {
        self.below.expire_calls(now)
    }

    fn versions(&self, ids: Vec<String>) -> RecordFuture<'_, Vec<(String, u64)>> {
        self.below.versions(ids)
    }

    fn keep_learned(
        &self,
        server: String,
        learned: String,
        now: Timestamp,
    ) -> RecordFuture<'_, ()> {
        self.below.keep_learned(server, learned, now)
    }

    fn learned(&self, server: String) -> RecordFuture<'_, Option<String>> {
        self.below.learned(server)
    }

    fn keep_grant(&self, grant: StoredGrant, given: Timestamp) -> RecordFuture<'_, bool> {
        self.below.keep_grant(grant, given)
    }

    fn grants(&self, now: Timestamp) -> RecordFuture<'_, Vec<StoredGrant>> {
        self.below.grants(now)
    }

    fn use_once(&self, used: UsedValue, now: Timestamp) -> RecordFuture<'_, bool> {
        self.below.use_once(used, now)
    }

    fn drafts(&self) -> Option<&dyn DraftStore> {
        self.below.drafts()
    }

    fn is_used(&self, kind: UsedKind, digest: [u8; 32]) -> RecordFuture<'_, bool> {
        self.below.is_used(kind, digest)
    }

    fn drop_grants(&self, keys: Vec<String>) -> RecordFuture<'_, ()> {
        self.below.drop_grants(keys)
    }

    fn sealed_rows(&self, query: SealedQuery) -> RecordFuture<'_, Vec<SealedRow>> {
        self.below.sealed_rows(query)
    }

    fn reseal(&self, rows: Vec<ResealedRow>) -> RecordFuture<'_, usize> {
        failing(&self.writes).unwrap_or_else(|| self.below.reseal(rows))
    }

    fn audit_end(&self) -> RecordFuture<'_, u64> {
        self.below.audit_end()
    }

    fn audit(&self, from: u64, most: usize) -> RecordFuture<'_, Vec<AuditEntry>> {
        self.below.audit(from, most)
    }

    fn open_figures(&self) -> RecordFuture<'_, OpenFigures> {
        self.below.open_figures()
    }

    fn audit_matching(
        &self,
        filter: AuditFilter,
        within: Range<u64>,
        most: usize,
    ) -> RecordFuture<'_, Vec<AuditEntry>> {
        self.below.audit_matching(filter, within, most)
    }

    fn untold(&self, most: usize) -> RecordFuture<'_, Vec<Untold>> {
        self.below.untold(most)
    }

    fn notified(&self, notified: Notified) -> RecordFuture<'_, ()> {
        self.below.notified(notified)
    }

    fn take_notifications(
        &self,
        now: Timestamp,
        lease_end: Timestamp,
        most: usize,
        busy: Vec<String>,
    ) -> RecordFuture<'_, Vec<Notification>> {
        self.below.take_notifications(now, lease_end, most, busy)
    }

    fn finish_notification<'a>(
        &'a self,
        taken: TakenMessage<'a>,
        tried: Tried,
        now: Timestamp,
    ) -> RecordFuture<'a, bool> {
        self.below.finish_notification(taken, tried, now)
    }

    fn notify_again(&self, id: String, now: Timestamp, until: Timestamp) -> RecordFuture<'_, bool> {
        self.below.notify_again(id, now, until)
    }

    fn notifications(
        &self,
        filter: NotificationFilter,
        most: usize,
    ) -> RecordFuture<'_, Vec<Notification>> {
        self.below.notifications(filter, most)
    }
}
