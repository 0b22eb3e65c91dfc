//! A gateway's connection to the store: each access waits until the simulation lets it pass.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use mcp_elicit_core::lifecycle::Timestamp;
use tokio::sync::oneshot;

use super::world::{Pass, World};
use crate::audit::AuditFilter;
use crate::store::outbox::{
    Notification, NotificationFilter, Notified, TakenMessage, Tried, Untold,
};
use crate::store::{
    AuditEntry, Filter, FinishedCall, ListQuery, Memory, OpenCount, OpenFigures, Page, Purge,
    RecordContents, RecordFuture, RecordStore, RecordStoreError, ResealedRow, Row, RunningCall,
    SealedQuery, SealedRow, StoredGrant, StoredOf, UnattendedCall, UsedValue, Write,
};
use crate::used::UsedKind;

/// An access that waits.
struct Waiting {
    gateway: String,
    pass: Pass,
    /// The writes, if it is not a lookup.
    writes: Option<Arc<Vec<Write>>>,
    below: Arc<Memory>,
}

/// The accesses that wait, of all gateways.
pub(super) struct Gate {
    waiting: Mutex<Vec<Waiting>>,
    /// `false` if changes are made whatever version the row has.
    compares: bool,
}

impl Gate {
    pub(super) fn new(compares: bool) -> Self {
        Self {
            waiting: Mutex::default(),
            compares,
        }
    }

    /// Lets one of them pass, in any order, but none of a gateway that stands still.
    pub(super) fn pass_one(&self, world: &World, paused: &[String]) {
        let mut waiting = self.waiting.lock().unwrap();
        let may_pass = |one: &Waiting| !paused.contains(&one.gateway);
        let count = waiting.iter().filter(|one| may_pass(one)).count();
        if count == 0 {
            return;
        }
        let chosen = usize::try_from(world.below(count as u64)).unwrap();
        let at = waiting.iter().enumerate().filter(|(_, one)| may_pass(one));
        let at = at.map(|(at, _)| at).nth(chosen).unwrap();
        let next = waiting.swap_remove(at);
        let _ended = next.pass.send(());
    }

    /// Ends those of a gateway that was killed. Some of its writes are made, and it never learns it.
    pub(super) fn end(&self, gateway: &str, world: &World) {
        let mut waiting = self.waiting.lock().unwrap();
        let (ended, others) = std::mem::take(&mut *waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|one| one.gateway == gateway);
        *waiting = others;
        drop(waiting);
        for one in ended {
            if let Some(writes) = one.writes.filter(|_| world.below(2) == 0) {
                let made = self.write(&one.below, &writes).now_or_never();
                let made = made.expect("memory waits for nothing").unwrap();
                world.wrote(gateway, &writes, &made);
            }
        }
    }

    async fn write(
        &self,
        below: &Memory,
        wanted: &Arc<Vec<Write>>,
    ) -> Result<Vec<bool>, RecordStoreError> {
        if self.compares {
            return below.write(wanted.clone()).await;
        }
        let mut wanted = Vec::clone(wanted);
        for write in &mut wanted {
            let Write::Change(changes) = write else {
                continue;
            };
            for change in changes {
                let now = below.versions(vec![change.row.id.clone()]).await?;
                change.seen = now.first().map_or(change.seen, |(_, version)| *version);
            }
        }
        below.write(Arc::new(wanted)).await
    }

    /// Returns the ids of questions that wait for people.
    pub(super) async fn open_rows(&self, below: &Memory) -> Vec<String> {
        let query = ListQuery::new(Filter::Open, Page::first(100));
        let rows = below.list(query).await.unwrap();
        rows.into_iter().map(|row| row.id).collect()
    }
}

/// A gateway's connection.
pub(super) struct Connection {
    pub(super) gateway: String,
    pub(super) below: Arc<Memory>,
    pub(super) gate: Arc<Gate>,
    pub(super) world: Arc<World>,
    /// `false` once the gateway was killed.
    pub(super) is_open: Arc<AtomicBool>,
}

impl Connection {
    /// Waits until the access may be made.
    async fn turn(&self, writes: Option<Arc<Vec<Write>>>) -> Result<(), RecordStoreError> {
        let (pass, passed) = oneshot::channel();
        if self.is_open.load(Ordering::SeqCst) {
            self.gate.waiting.lock().unwrap().push(Waiting {
                gateway: self.gateway.clone(),
                pass,
                writes,
                below: self.below.clone(),
            });
        } else {
            drop(pass);
        }
        let passed = passed.await;
        if passed.is_err() || !self.is_open.load(Ordering::SeqCst) {
            return Err(RecordStoreError::Closed);
        }
        Ok(())
    }
}

/// Accesses that only wait for their turn.
macro_rules! in_turn {
    ($($name:ident($($value:ident: $kind:ty),*) -> $found:ty;)*) => {
        $(fn $name(&self, $($value: $kind),*) -> RecordFuture<'_, $found> {
            async move {
                self.turn(None).await?;
                self.below.$name($($value),*).await
            }
            .boxed()
        })*
    };
}

impl RecordStore for Connection {
    fn write(&self, wanted: Arc<Vec<Write>>) -> RecordFuture<'_, Vec<bool>> {
        async move {
            self.turn(Some(wanted.clone())).await?;
            let made = self.gate.write(&self.below, &wanted).await?;
            self.world.wrote(&self.gateway, &wanted, &made);
            Ok(made)
        }
        .boxed()
    }

    fn finish_notification<'a>(
        &'a self,
        taken: TakenMessage<'a>,
        tried: Tried,
        now: Timestamp,
    ) -> RecordFuture<'a, bool> {
        self.below.finish_notification(taken, tried, now)
    }

    in_turn! {
        find(id: String) -> Option<Row>;
        by_binding(binding: String) -> Vec<Row>;
        list(query: ListQuery) -> Vec<Row>;
        open_figures() -> OpenFigures;
        waiting() -> usize;
        waiting_of(principal: String, server: Option<String>) -> OpenCount;
        stored_bytes() -> Vec<StoredOf>;
        left_over() -> Vec<String>;
        due(now: Timestamp, most: usize) -> Vec<Row>;
        purge(purge: Purge) -> usize;
        purgeable(purge: Purge) -> usize;
        contents() -> RecordContents;
        begin_call(id: String, binding: String, running: RunningCall, until: Timestamp) -> ();
        end_call(id: String) -> ();
        keep_call(call: FinishedCall) -> ();
        take_call(id: String) -> Option<FinishedCall>;
        stored_call(id: String) -> Option<FinishedCall>;
        calls(binding: Option<String>, now: Timestamp) -> Vec<UnattendedCall>;
        expire_calls(now: Timestamp) -> ();
        versions(ids: Vec<String>) -> Vec<(String, u64)>;
        keep_grant(grant: StoredGrant, given: Timestamp) -> bool;
        grants(now: Timestamp) -> Vec<StoredGrant>;
        drop_grants(keys: Vec<String>) -> ();
        use_once(used: UsedValue, now: Timestamp) -> bool;
        is_used(kind: UsedKind, digest: [u8; 32]) -> bool;
        audit(from: u64, most: usize) -> Vec<AuditEntry>;
        audit_matching(filter: AuditFilter, within: Range<u64>, most: usize) -> Vec<AuditEntry>;
        audit_end() -> u64;
        keep_learned(server: String, learned: String, now: Timestamp) -> ();
        learned(server: String) -> Option<String>;
        untold(most: usize) -> Vec<Untold>;
        notified(notified: Notified) -> ();
        take_notifications(now: Timestamp, lease_end: Timestamp, most: usize, busy: Vec<String>) -> Vec<Notification>;
        notify_again(id: String, now: Timestamp, until: Timestamp) -> bool;
        sealed_rows(query: SealedQuery) -> Vec<SealedRow>;
        reseal(rows: Vec<ResealedRow>) -> usize;
        notifications(filter: NotificationFilter, most: usize) -> Vec<Notification>;
    }
}
