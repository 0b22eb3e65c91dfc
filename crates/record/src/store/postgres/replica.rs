//! The running gateways of one record, and the notices between them.
//!
//! Each has a row with a lease by the database's clock, which it renews on a connection of its own. That connection holds
//! a lock of the session, which the server frees when the process ends in any way, and receives the notices. Behind a
//! pooler that gives each transaction another connection, the lease remains, and notices do not arrive: questions are
//! looked up at intervals anyway.
//!
//! No answer depends on any of this: it decides who waits for a question, and how soon a change is noticed.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use mcp_elicit_core::lifecycle::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::Client;

use super::super::RecordStoreError;
use super::clock_offset::ClockOffset;
use super::database::{PostgresDatabase, StatementValues, query};
use super::{record_keys, statements};
use crate::clock;
use crate::encryption::random_id;
use crate::key_files::KeyFiles;
use crate::peers::{Peer, PeerColumns, PeerOffer};
use crate::presence::lock_file::RunningGateways;

/// The interval at which the lease is renewed.
const BEAT: Duration = Duration::from_secs(1);
/// The pause before a lost connection is made anew.
const PAUSE: Duration = Duration::from_millis(250);
/// The number of times that this pause is made before a gateway that may have ended is taken to run: longer than the time in
/// which the statement leaves that open.
const PAUSES: usize = 8;
/// The same after a start of the server, which has ended all locks of sessions: longer than a lease.
const PAUSES_AFTER_START: usize = 44;
/// The number of them before a gateway that holds its lock is taken to run.
const FIRST_PAUSES: usize = 2;

/// This process, as one of the running gateways of a record.
pub struct PostgresReplica {
    shared: Arc<ReplicaParts>,
    task: Option<JoinHandle<()>>,
}

struct ReplicaParts {
    database: PostgresDatabase,
    id: String,
    lock: i64,
    /// The address and the key in its row, with their proof; `None` if it takes no requests of other gateways.
    offer: Option<(PeerOffer, [u8; 32])>,
    /// With `true` for those that hold their lock; of the others it is not known yet whether they have ended.
    running: Mutex<HashMap<String, bool>>,
    /// `true` if the server was started less than a lease ago.
    has_server_just_started: AtomicBool,
    /// The running gateways that take requests of this one, and those whose rows are wrong.
    peers: Mutex<ReplicaPeers>,
    notices: Arc<Notify>,
    /// The key files of its state folder, if it has one.
    files: Option<KeyFiles>,
    keys: Mutex<ReadKeys>,
    clock: Mutex<ClockOffset>,
}

/// The keys that this process has read.
#[derive(Default)]
struct ReadKeys {
    /// The number of the newest data key that its folder has; `None` before they are read.
    newest: Option<i32>,
    /// The numbers of the newest data key and of the one that seals, as they were then.
    read: (i32, i32),
    /// The ids of the master keys that its folder has, while the master key is being changed.
    masters: Option<Vec<String>>,
    /// `true` if they could not be read the last time.
    is_failing: bool,
}

#[derive(Default)]
struct ReplicaPeers {
    right: Arc<[Peer]>,
    wrong: Vec<String>,
}

impl std::fmt::Debug for PostgresReplica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("PostgresReplica");
        shown.field("id", &self.shared.id).finish_non_exhaustive()
    }
}

impl PostgresReplica {
    /// Joins the running gateways of this database, until it is dropped or the process ends. With an offer it takes requests
    /// of other gateways. The key files of its state folder get each new key of the record.
    ///
    /// # Errors
    /// If the database cannot be reached or used, or the keys are another record's.
    pub async fn join(
        database: PostgresDatabase,
        offer: Option<PeerOffer>,
        files: Option<KeyFiles>,
    ) -> Result<Self, RecordStoreError> {
        let id = random_id()?;
        let offer = offer.map(|offer| {
            let proof = offer.proof.of(&id, &offer.address, &offer.key);
            (offer, proof)
        });
        let lock = i64::from_str_radix(id.get(..15).unwrap_or_default(), 16);
        let shared = Arc::new(ReplicaParts {
            database: database.clone(),
            lock: lock.map_err(io::Error::other)?,
            id,
            offer,
            running: Mutex::default(),
            has_server_just_started: AtomicBool::new(false),
            peers: Mutex::default(),
            notices: Arc::default(),
            files,
            keys: Mutex::default(),
            clock: Mutex::default(),
        });
        database.ready().await?;
        let client = shared.connected().await?;
        shared.read_keys(&client).await?;
        shared.beat(&client).await?;
        // A key that was added after the first look, by a command that did not see this gateway yet.
        shared.beat(&client).await?;
        let task = database.background(shared.clone().renewing(client));
        Ok(Self { shared, task })
    }

    /// Returns its name, which rows contain.
    pub fn name(&self) -> &str {
        &self.shared.id
    }

    /// Returns a signal of changes that others made to questions of this gateway. It may miss some.
    pub fn notices(&self) -> Arc<Notify> {
        self.shared.notices.clone()
    }
}

impl Drop for PostgresReplica {
    fn drop(&mut self) {
        // The connection ends with its task, and with it the lock.
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl RunningGateways for PostgresReplica {
    fn name(&self) -> &str {
        &self.shared.id
    }

    fn is_running(&self, name: &str) -> bool {
        self.shared.running().contains_key(name)
    }

    fn peers(&self) -> Arc<[Peer]> {
        self.shared.peers().right.clone()
    }

    fn clock_offset_ms(&self) -> Option<i64> {
        Some(self.shared.clock().millis())
    }

    fn refresh(&self) -> BoxFuture<'_, ()> {
        async {
            let read = &statements::RUNNING;
            match self.shared.database.rows(read, &[]).await {
                Ok(rows) => self.shared.found(&rows),
                // What was known stays; the next statement has the same error.
                Err(fault) => tracing::debug!(%fault, "the running gateways could not be read"),
            }
        }
        .boxed()
    }

    fn decide<'a>(&'a self, names: Vec<&'a str>) -> BoxFuture<'a, ()> {
        async move {
            for made in 0.. {
                self.refresh().await;
                let is_open = |name: &&str| match self.shared.running().get(*name) {
                    // The server may be about to free the lock of one that has just ended.
                    Some(true) => made < FIRST_PAUSES,
                    Some(false) => true,
                    None => false,
                };
                let most = if self.shared.has_server_just_started.load(Ordering::Relaxed) {
                    PAUSES_AFTER_START
                } else {
                    PAUSES
                };
                if made >= most || !names.iter().any(is_open) {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        .boxed()
    }
}

impl ReplicaParts {
    fn running(&self) -> MutexGuard<'_, HashMap<String, bool>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn peers(&self) -> MutexGuard<'_, ReplicaPeers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self, rows: &[tokio_postgres::Row]) {
        let found = |row: &tokio_postgres::Row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?));
        *self.running() = rows.iter().filter_map(found).collect();
        let has_just_started = rows.first().and_then(|row| row.try_get(7).ok());
        self.has_server_just_started
            .store(has_just_started.unwrap_or(false), Ordering::Relaxed);
        let Some((offer, _)) = &self.offer else {
            return;
        };
        let (mut right, mut wrong) = (Vec::new(), Vec::new());
        for columns in rows.iter().filter_map(peer_columns) {
            let name = columns.name.clone();
            let takes_requests = columns.address.is_some();
            match offer.proof.peer(columns) {
                Some(peer) if name != self.id => right.push(peer),
                None if takes_requests => wrong.push(name),
                Some(_) | None => {}
            }
        }
        let mut peers = self.peers();
        for gateway in &wrong {
            if !peers.wrong.contains(gateway) {
                tracing::error!(
                    ?gateway,
                    "the row of a gateway was not written by it, or with another identity.key: no request goes there, and none is taken from it"
                );
            }
        }
        *peers = ReplicaPeers {
            right: right.into(),
            wrong,
        };
    }

    /// Makes the connection of this gateway.
    async fn connected(&self) -> Result<Client, RecordStoreError> {
        let client = self.database.listening(self.notices.clone()).await?;
        let channel = format!("LISTEN \"{}\"", channel(&self.id));
        client.batch_execute(&channel).await?;
        query(&client, &statements::HOLD_LOCK, &[&self.lock]).await?;
        // There may have been notices in between.
        self.notices.notify_one();
        Ok(client)
    }

    fn keys(&self) -> MutexGuard<'_, ReadKeys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the keys of the record into the state folder, if they have changed.
    async fn read_keys(&self, client: &Client) -> Result<(), RecordStoreError> {
        let Some(files) = &self.files else {
            return Ok(());
        };
        let rows = query(client, &statements::KEY_NUMBERS, &[]).await?;
        let row = rows.first().ok_or(RecordStoreError::Closed)?;
        let found = (row.try_get(0)?, row.try_get(1)?);
        let masters: Vec<String> = row.try_get(2)?;
        let is_known = {
            let known = self.keys();
            known.newest.is_some() && known.read == found
        };
        if !is_known {
            let newest = self.database.share_keys(files).await?;
            let mut known = self.keys();
            known.newest = Some(newest);
            known.read = found;
        }
        // Another program gives the folder the new master key.
        let masters = match masters.len() {
            0 | 1 => None,
            _ => Some(record_keys::masters_of(files, masters)?),
        };
        let mut known = self.keys();
        known.masters = masters;
        known.is_failing = false;
        Ok(())
    }

    /// Reads new keys, renews the lease, and reads the running gateways.
    async fn beat(&self, client: &Client) -> Result<(), RecordStoreError> {
        if let Err(fault) = self.read_keys(client).await {
            let was_failing = std::mem::replace(&mut self.keys().is_failing, true);
            if !was_failing {
                tracing::error!(%fault, "the keys of the record could not be read anew; it is tried again each second");
            }
        }
        let (newest, masters) = {
            let known = self.keys();
            (known.newest, known.masters.clone())
        };
        let offer = self.offer.as_ref();
        let address = offer.map(|(offer, _)| offer.address.as_str());
        let key = offer.map(|(offer, _)| offer.key.as_slice());
        let proof = offer.map(|(_, proof)| proof.as_slice());
        let values: StatementValues<'_> = &[
            &self.id, &self.lock, &address, &key, &proof, &newest, &masters,
        ];
        let before = clock::now();
        let renewed = query(client, &statements::RENEW_LEASE, values).await?;
        if let Some(row) = renewed.first() {
            self.compare_clocks([before, clock::now()], row.try_get(0)?);
        }
        self.found(&query(client, &statements::RUNNING, &[]).await?);
        Ok(())
    }

    fn clock(&self) -> MutexGuard<'_, ClockOffset> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares this clock, before and after the database was asked, with what its clock said.
    fn compare_clocks(&self, own: [Timestamp; 2], database: i64) {
        let mut clock = self.clock();
        if clock.compare(own, database, Instant::now()) {
            let ahead_by_ms = clock.millis();
            tracing::warn!(
                ahead_by_ms,
                "the clock of this machine differs from the database's: questions, logins and tokens end too early or too late; set both \
                 by a time service"
            );
        }
    }

    async fn renewing(self: Arc<Self>, mut client: Client) {
        loop {
            tokio::time::sleep(BEAT).await;
            let Err(fault) = self.beat(&client).await else {
                continue;
            };
            tracing::debug!(%fault, "the lease of this gateway could not be renewed");
            client = loop {
                tokio::time::sleep(PAUSE).await;
                if let Ok(client) = self.connected().await {
                    break client;
                }
            };
            if let Err(fault) = self.beat(&client).await {
                tracing::debug!(%fault, "the lease of this gateway could not be renewed");
            }
        }
    }
}

/// Returns the channel of the notices to the gateway of this name.
pub(super) fn channel(name: &str) -> String {
    format!("mcp_elicit_{name}")
}

/// Returns the columns of a row about the requests that its gateway takes.
fn peer_columns(row: &tokio_postgres::Row) -> Option<PeerColumns> {
    Some(PeerColumns {
        name: row.try_get(0).ok()?,
        address: row.try_get(2).ok()?,
        key: row.try_get(3).ok()?,
        proof: row.try_get(4).ok()?,
    })
}
