//! A writer in front of a store: writes go into one queue, and the queue goes to the store in one step.
//!
//! Most writes are awaited; simultaneous ones share a step (group commit). A write may also be left
//! [behind](Writer::queue_behind): it is not awaited, is written within [`LAG`] and in order, and is lost if the
//! process is killed before. Code that leaves writes behind checks for [room](Writer::has_room) before it begins
//! something new, and waits for the store if there is none: nothing that was begun is ever dropped.
//!
//! An awaited write is made by the calling thread itself if the store [can](RecordStore::write_inline) and no other write is
//! running: the queue then goes to the store together with it. A thread switch takes longer than such a write.
//!
//! Reads see all writes queued before them: they wait until those are written.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use mcp_elicit_core::lifecycle::Timestamp;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::drafts::DraftStore;
use super::outbox::{Notification, NotificationFilter, Notified, TakenMessage, Tried, Untold};
use super::{
    AuditEntry, FinishedCall, ListQuery, OpenCount, OpenFigures, Purge, RecordContents,
    RecordFuture, RecordStore, RecordStoreError, ResealedRow, Row, RunningCall, SealedQuery,
    SealedRow, StoreSize, StoredGrant, StoredOf, UnattendedCall, UsedValue, Write,
};
use crate::audit::AuditFilter;
use crate::ended_question::{self, EndObserver};
use crate::figures::Times;
use crate::step_log::log_written;
use crate::used::UsedKind;

/// The time that a write left behind waits for others.
pub const LAG: Duration = Duration::from_millis(10);
/// The number of writes left behind above which each new one is awaited.
pub const CAPACITY: usize = 1_024;
/// The most writes in one step.
const BATCH: usize = 256;
/// The most writes in one inline step: more take too long on a thread with other work.
const INLINE_BATCH: usize = 16;
/// The pause after a failure of the store.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A queue in front of a store, which is itself a store.
pub struct Writer {
    shared: Arc<SharedWriter>,
}

struct SharedWriter {
    store: Arc<dyn RecordStore>,
    queue: Mutex<WriteQueue>,
    news: Notify,
    /// `true` once nothing more is queued.
    closed: AtomicBool,
    ends: OnceLock<EndObserver>,
    /// The times of the steps, and the number of writes in them.
    made: Mutex<(Times, u64)>,
    /// The writes that failed, each time.
    failed: AtomicU64,
}

/// Figures of the writes to a store.
#[derive(Clone, Debug)]
pub struct WriteFigures {
    /// The writes that wait.
    pub waiting: usize,
    /// The writes that were made.
    pub made: u64,
    /// The writes that failed, each time they were tried one by one.
    pub failed: u64,
    /// The times of the steps in which they were made.
    pub steps: Times,
}

#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they say different things about different parts of the queue"
)]
struct WriteQueue {
    waiting: VecDeque<QueuedWrite>,
    /// `true` if a write in it is awaited.
    urgent: bool,
    /// `true` if a part of it is being written.
    writing: bool,
    /// `true` if the writer's task will check the queue within [`LAG`].
    is_watched: bool,
    /// `true` if the last write to the store failed.
    failing: bool,
}

struct QueuedWrite {
    write: Write,
    /// The receiver of the result; none if it was left behind.
    waits: WriteReceiver,
}

impl Writer {
    /// Creates a writer in front of this store. Must be called in a tokio runtime, which runs its task.
    pub fn new(store: Arc<dyn RecordStore>) -> Self {
        let shared = Arc::new(SharedWriter {
            store,
            queue: Mutex::default(),
            news: Notify::new(),
            closed: AtomicBool::new(false),
            ends: OnceLock::new(),
            made: Mutex::new((Times::of_writes(), 0)),
            failed: AtomicU64::new(0),
        });
        tokio::spawn(run(shared.clone()));
        Self { shared }
    }

    /// Reports each traced question whose end is written. Set once.
    pub fn observe_ends(&self, observer: EndObserver) {
        let _set_once = self.shared.ends.set(observer);
    }

    /// Returns `true` if new work may begin with a write that is not awaited.
    pub fn has_room(&self) -> bool {
        let queue = self.shared.queue();
        queue.waiting.len() < CAPACITY && !queue.failing
    }

    /// Returns what was written so far, and what waits.
    pub fn figures(&self) -> WriteFigures {
        let waiting = self.shared.queue().waiting.len();
        let (steps, made) = self.shared.made().clone();
        WriteFigures {
            waiting,
            made,
            failed: self.shared.failed.load(Ordering::Relaxed),
            steps,
        }
    }

    /// Queues a write that is not awaited. A change of a row with a queued write is merged into it.
    pub fn queue_behind(&self, write: Write) {
        let mut queue = self.shared.queue();
        let Some(write) = queue.joined(write) else {
            return;
        };
        let is_first = queue.waiting.is_empty() && !queue.is_watched;
        queue.waiting.push_back(QueuedWrite { write, waits: None });
        drop(queue);
        if is_first {
            self.shared.news.notify_one();
        }
    }

    /// Waits until everything queued before is written.
    pub async fn flush(&self) -> Result<(), RecordStoreError> {
        let idle = {
            let queue = self.shared.queue();
            queue.waiting.is_empty() && !queue.writing
        };
        if idle {
            return Ok(());
        }
        let nothing = Write::Change(Vec::new());
        self.write(Arc::new(vec![nothing])).await.map(|_| ())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        self.shared.news.notify_one();
    }
}

impl WriteQueue {
    /// Merges a change into the queued write of the same row; returns it if there is none.
    fn joined(&mut self, write: Write) -> Option<Write> {
        let Write::Change(mut changes) = write else {
            return Some(write);
        };
        let [change] = changes.as_mut_slice() else {
            return Some(Write::Change(changes));
        };
        let before = self.waiting.iter_mut().rev().find_map(|entry| {
            let behind = entry.waits.is_none();
            let (row, audit) = entry.last_of(&change.row.id)?;
            Some((row, audit, behind))
        });
        match before {
            Some((row, audit, true)) if row.lifecycle.version() == change.seen => {
                audit.append(&mut change.audit);
                std::mem::swap(row, &mut change.row);
                None
            }
            _ => Some(Write::Change(changes)),
        }
    }
}

impl QueuedWrite {
    /// Returns the row of this id if this writes only that row.
    fn last_of(&mut self, id: &str) -> Option<(&mut Row, &mut Vec<String>)> {
        match &mut self.write {
            Write::Insert { row, audit } if row.id == id => Some((row, audit)),
            Write::Change(changes) => match changes.as_mut_slice() {
                [change] if change.row.id == id => Some((&mut change.row, &mut change.audit)),
                _ => None,
            },
            Write::Insert { .. } | Write::Note(_) | Write::PurgeAudit { .. } => None,
        }
    }
}

impl SharedWriter {
    fn queue(&self) -> MutexGuard<'_, WriteQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self) -> MutexGuard<'_, (Times, u64)> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts, logs and reports the writes that were made in a step since `begun`.
    fn tell_written(&self, writes: &[Write], done: &[bool], begun: Instant) {
        {
            let mut made = self.made();
            made.0.add_seconds(begun.elapsed().as_secs_f64());
            made.1 += u64::try_from(writes.len()).unwrap_or(u64::MAX);
        }
        log_written(writes, done);
        if let Some(observer) = self.ends.get() {
            ended_question::report(writes, done, observer);
        }
    }

    /// Queues writes that are awaited.
    fn queue_awaited(
        &self,
        writes: Vec<Write>,
    ) -> Vec<oneshot::Receiver<Result<bool, RecordStoreError>>> {
        let mut queue = self.queue();
        queue.urgent |= !writes.is_empty();
        let queued = writes.into_iter().map(|write| {
            let (tell, told) = oneshot::channel();
            queue.waiting.push_back(QueuedWrite {
                write,
                waits: Some(tell),
            });
            told
        });
        queued.collect()
    }

    /// Takes the queue's head; `None` if a write is running, or the queue is empty.
    fn take_head(
        &self,
        fits: impl FnOnce(&WriteQueue) -> bool,
    ) -> Option<(Vec<Write>, Vec<WriteReceiver>)> {
        let mut queue = self.queue();
        if queue.writing || queue.waiting.is_empty() || !fits(&queue) {
            return None;
        }
        queue.writing = true;
        let most = queue.waiting.len().min(BATCH);
        let head = queue.waiting.drain(..most);
        Some(head.map(|entry| (entry.write, entry.waits)).unzip())
    }

    /// Ends the write, and puts unwritten entries back at the queue's head.
    fn put_back(&self, left: Vec<QueuedWrite>) {
        let mut queue = self.queue();
        queue.writing = false;
        for entry in left.into_iter().rev() {
            queue.waiting.push_front(entry);
        }
        queue.urgent = queue.waiting.iter().any(|entry| entry.waits.is_some());
    }

    /// Writes the queue on the calling thread if it is short; otherwise the writer's task does.
    fn write_inline(&self) {
        let fits = |queue: &WriteQueue| !queue.failing && queue.waiting.len() <= INLINE_BATCH;
        if let Some((writes, waits)) = self.take_head(fits) {
            let begun = Instant::now();
            match self.store.write_inline(&writes) {
                Some(Ok(done)) => {
                    self.tell_written(&writes, &done, begun);
                    self.put_back(Vec::new());
                    tell_all(done, waits);
                }
                // The writer's task reports it, should it fail there too.
                Some(Err(_)) | None => self.put_back(entries_of(writes, waits)),
            }
        }
        if !self.queue().waiting.is_empty() {
            self.news.notify_one();
        }
    }

    /// Writes the queue's head: in one step, or one by one if that fails.
    async fn write_head(&self) {
        let Some((writes, waits)) = self.take_head(|_| true) else {
            return;
        };
        let writes = Arc::new(writes);
        let begun = Instant::now();
        let left = match self.store.write(writes.clone()).await {
            Ok(done) => {
                self.tell_written(&writes, &done, begun);
                tell_all(done, waits);
                Vec::new()
            }
            Err(fault) => {
                tracing::warn!(%fault, "the record could not be written in one step");
                let writes = Arc::unwrap_or_clone(writes);
                self.write_one_by_one(entries_of(writes, waits)).await
            }
        };
        self.queue().failing = !left.is_empty();
        self.put_back(left);
    }

    /// Returns the entries that are not awaited and could not be written, to be retried.
    async fn write_one_by_one(&self, entries: Vec<QueuedWrite>) -> Vec<QueuedWrite> {
        let mut left = Vec::new();
        for QueuedWrite { write, waits } in entries {
            let write = Arc::new(vec![write]);
            let begun = Instant::now();
            match (self.store.write(write.clone()).await, waits) {
                (Ok(done), waits) => {
                    self.tell_written(&write, &done, begun);
                    tell(waits, Ok(done == [true]));
                }
                (Err(fault), Some(waits)) => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    tell(Some(waits), Err(fault));
                }
                (Err(fault), None) => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(%fault, "the record could not be written; it is tried again");
                    left.extend(entries_of(Arc::unwrap_or_clone(write), vec![None]));
                }
            }
        }
        left
    }
}

/// The receiver of a write's result, if any.
type WriteReceiver = Option<oneshot::Sender<Result<bool, RecordStoreError>>>;

fn entries_of(writes: Vec<Write>, waits: Vec<WriteReceiver>) -> Vec<QueuedWrite> {
    let both = writes.into_iter().zip(waits);
    both.map(|(write, waits)| QueuedWrite { write, waits })
        .collect()
}

fn tell_all(done: Vec<bool>, waits: Vec<WriteReceiver>) {
    for (done, waits) in done.into_iter().zip(waits) {
        tell(waits, Ok(done));
    }
}

fn tell(waits: WriteReceiver, done: Result<bool, RecordStoreError>) {
    match waits {
        // The receiver may be gone.
        Some(waits) => drop(waits.send(done)),
        None => {
            if !matches!(done, Ok(true)) {
                tracing::error!("a row was not as it was left; what followed is not in the record");
            }
        }
    }
}

async fn run(shared: Arc<SharedWriter>) {
    loop {
        let wait = {
            let closed = shared.closed.load(Ordering::Acquire);
            let mut queue = shared.queue();
            // The inline writer signals when it is done and entries are left.
            let idle = queue.waiting.is_empty() || queue.writing;
            let wait = match (idle, queue.urgent || closed) {
                (true, _) if closed && !queue.writing => return,
                // The rest has been reported; no caller is left to retry for.
                (false, _) if closed && queue.failing => return,
                (true, _) => None,
                (false, true) => Some(Duration::ZERO),
                (false, false) => Some(if queue.failing { RETRY_PAUSE } else { LAG }),
            };
            queue.is_watched = wait.is_some();
            wait
        };
        match wait {
            None => shared.news.notified().await,
            Some(Duration::ZERO) => shared.write_head().await,
            Some(wait) => {
                // Ends early if a write is awaited.
                let _in_time = tokio::time::timeout(wait, shared.urgent_change()).await;
                shared.write_head().await;
            }
        }
    }
}

impl SharedWriter {
    /// Completes when a queued write is awaited.
    async fn urgent_change(&self) {
        loop {
            self.news.notified().await;
            if self.queue().urgent || self.closed.load(Ordering::Acquire) {
                return;
            }
        }
    }
}

impl RecordStore for Writer {
    fn write(&self, wanted: Arc<Vec<Write>>) -> RecordFuture<'_, Vec<bool>> {
        // Queued now, in this order, and written now if that is short; awaited later.
        let told = self.shared.queue_awaited(Arc::unwrap_or_clone(wanted));
        self.shared.write_inline();
        async move {
            let mut done = Vec::with_capacity(told.len());
            for told in told {
                match told.await {
                    Ok(one) => done.push(one?),
                    // The runtime is shutting down, and the process with it.
                    Err(_) => std::future::pending().await,
                }
            }
            Ok(done)
        }
        .boxed()
    }

    fn sync(&self) -> RecordFuture<'_, ()> {
        self.shared.store.sync()
    }

    fn find(&self, id: String) -> RecordFuture<'_, Option<Row>> {
        async move {
            self.flush().await?;
            self.shared.store.find(id).await
        }
        .boxed()
    }

    fn by_binding(&self, binding: String) -> RecordFuture<'_, Vec<Row>> {
        async move {
            self.flush().await?;
            self.shared.store.by_binding(binding).await
        }
        .boxed()
    }

    fn list(&self, query: ListQuery) -> RecordFuture<'_, Vec<Row>> {
        async move {
            self.flush().await?;
            self.shared.store.list(query).await
        }
        .boxed()
    }

    fn waiting(&self) -> RecordFuture<'_, usize> {
        async move {
            self.flush().await?;
            self.shared.store.waiting().await
        }
        .boxed()
    }

    fn waiting_of(&self, principal: String, server: Option<String>) -> RecordFuture<'_, OpenCount> {
        async move {
            self.flush().await?;
            self.shared.store.waiting_of(principal, server).await
        }
        .boxed()
    }

    fn stored_bytes(&self) -> RecordFuture<'_, Vec<StoredOf>> {
        async move {
            self.flush().await?;
            self.shared.store.stored_bytes().await
        }
        .boxed()
    }

    fn left_over(&self) -> RecordFuture<'_, Vec<String>> {
        async move {
            self.flush().await?;
            self.shared.store.left_over().await
        }
        .boxed()
    }

    fn due(&self, now: Timestamp, most: usize) -> RecordFuture<'_, Vec<Row>> {
        async move {
            self.flush().await?;
            self.shared.store.due(now, most).await
        }
        .boxed()
    }

    fn purge(&self, purge: Purge) -> RecordFuture<'_, usize> {
        async move {
            self.flush().await?;
            self.shared.store.purge(purge).await
        }
        .boxed()
    }

    fn purgeable(&self, purge: Purge) -> RecordFuture<'_, usize> {
        async move {
            self.flush().await?;
            self.shared.store.purgeable(purge).await
        }
        .boxed()
    }

    fn contents(&self) -> RecordFuture<'_, RecordContents> {
        async move {
            self.flush().await?;
            self.shared.store.contents().await
        }
        .boxed()
    }

    fn keep_call(&self, call: FinishedCall) -> RecordFuture<'_, ()> {
        self.shared.store.keep_call(call)
    }

    fn take_call(&self, id: String) -> RecordFuture<'_, Option<FinishedCall>> {
        self.shared.store.take_call(id)
    }

    fn stored_call(&self, id: String) -> RecordFuture<'_, Option<FinishedCall>> {
        self.shared.store.stored_call(id)
    }

    fn begin_call(
        &self,
        id: String,
        binding: String,
        running: RunningCall,
        until: Timestamp,
    ) -> RecordFuture<'_, ()> {
        self.shared.store.begin_call(id, binding, running, until)
    }

    fn end_call(&self, id: String) -> RecordFuture<'_, ()> {
        self.shared.store.end_call(id)
    }

    fn calls(
        &self,
        binding: Option<String>,
        now: Timestamp,
    ) -> RecordFuture<'_, Vec<UnattendedCall>> {
        self.shared.store.calls(binding, now)
    }

    fn expire_calls(&self, now: Timestamp) -> RecordFuture<'_, ()> {
        self.shared.store.expire_calls(now)
    }

    fn versions(&self, ids: Vec<String>) -> RecordFuture<'_, Vec<(String, u64)>> {
        async move {
            self.flush().await?;
            self.shared.store.versions(ids).await
        }
        .boxed()
    }

    fn has_changed_elsewhere(&self) -> RecordFuture<'_, bool> {
        self.shared.store.has_changed_elsewhere()
    }

    fn keep_learned(
        &self,
        server: String,
        learned: String,
        now: Timestamp,
    ) -> RecordFuture<'_, ()> {
        self.shared.store.keep_learned(server, learned, now)
    }

    fn learned(&self, server: String) -> RecordFuture<'_, Option<String>> {
        self.shared.store.learned(server)
    }

    fn keep_grant(&self, grant: StoredGrant, given: Timestamp) -> RecordFuture<'_, bool> {
        self.shared.store.keep_grant(grant, given)
    }

    fn grants(&self, now: Timestamp) -> RecordFuture<'_, Vec<StoredGrant>> {
        self.shared.store.grants(now)
    }

    fn use_once(&self, used: UsedValue, now: Timestamp) -> RecordFuture<'_, bool> {
        self.shared.store.use_once(used, now)
    }

    fn drafts(&self) -> Option<&dyn DraftStore> {
        self.shared.store.drafts()
    }

    fn is_used(&self, kind: UsedKind, digest: [u8; 32]) -> RecordFuture<'_, bool> {
        self.shared.store.is_used(kind, digest)
    }

    fn drop_grants(&self, keys: Vec<String>) -> RecordFuture<'_, ()> {
        self.shared.store.drop_grants(keys)
    }

    fn sealed_rows(&self, query: SealedQuery) -> RecordFuture<'_, Vec<SealedRow>> {
        async move {
            self.flush().await?;
            self.shared.store.sealed_rows(query).await
        }
        .boxed()
    }

    fn reseal(&self, rows: Vec<ResealedRow>) -> RecordFuture<'_, usize> {
        async move {
            self.flush().await?;
            self.shared.store.reseal(rows).await
        }
        .boxed()
    }

    fn audit_end(&self) -> RecordFuture<'_, u64> {
        async move {
            self.flush().await?;
            self.shared.store.audit_end().await
        }
        .boxed()
    }

    fn audit(&self, from: u64, most: usize) -> RecordFuture<'_, Vec<AuditEntry>> {
        async move {
            self.flush().await?;
            self.shared.store.audit(from, most).await
        }
        .boxed()
    }

    fn open_figures(&self) -> RecordFuture<'_, OpenFigures> {
        async move {
            self.flush().await?;
            self.shared.store.open_figures().await
        }
        .boxed()
    }

    fn size(&self) -> RecordFuture<'_, Option<StoreSize>> {
        self.shared.store.size()
    }

    fn audit_matching(
        &self,
        filter: AuditFilter,
        within: Range<u64>,
        most: usize,
    ) -> RecordFuture<'_, Vec<AuditEntry>> {
        async move {
            self.flush().await?;
            let store = &self.shared.store;
            store.audit_matching(filter, within, most).await
        }
        .boxed()
    }

    fn untold(&self, most: usize) -> RecordFuture<'_, Vec<Untold>> {
        async move {
            self.flush().await?;
            self.shared.store.untold(most).await
        }
        .boxed()
    }

    fn notified(&self, notified: Notified) -> RecordFuture<'_, ()> {
        self.shared.store.notified(notified)
    }

    fn take_notifications(
        &self,
        now: Timestamp,
        lease_end: Timestamp,
        most: usize,
        busy: Vec<String>,
    ) -> RecordFuture<'_, Vec<Notification>> {
        self.shared
            .store
            .take_notifications(now, lease_end, most, busy)
    }

    fn finish_notification<'a>(
        &'a self,
        taken: TakenMessage<'a>,
        tried: Tried,
        now: Timestamp,
    ) -> RecordFuture<'a, bool> {
        self.shared.store.finish_notification(taken, tried, now)
    }

    fn notify_again(&self, id: String, now: Timestamp, until: Timestamp) -> RecordFuture<'_, bool> {
        self.shared.store.notify_again(id, now, until)
    }

    fn notifications(
        &self,
        filter: NotificationFilter,
        most: usize,
    ) -> RecordFuture<'_, Vec<Notification>> {
        self.shared.store.notifications(filter, most)
    }
}
