//! The running gateways of one record, and the notices between them.
//!
//! Each has a row with a lease by the database's clock, which it renews on a connection of its own. That connection holds
//! a lock of the session, which the server frees when the process ends in any way, and receives the notices. Behind a
//! pooler that gives each transaction another connection, the lease remains, and notices do not arrive: questions are
//! looked up at intervals anyway.
//!
//! No answer depends on any of this: it decides who waits for a question, and how soon a change is noticed.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::super::StoreError;
use super::database::{PostgresDatabase, execute, query};
use super::statements;
use crate::encryption::random_id;
use crate::presence::lock_file::RunningGateways;

/// The interval at which the lease is renewed.
const BEAT: Duration = Duration::from_secs(1);
/// The pause before a lost connection is made anew.
const PAUSE: Duration = Duration::from_millis(250);

/// This process, as one of the running gateways of a record.
pub struct PostgresReplica {
    shared: Arc<Shared>,
    task: Option<JoinHandle<()>>,
}

struct Shared {
    database: PostgresDatabase,
    id: String,
    lock: i64,
    running: Mutex<HashSet<String>>,
    notices: Arc<Notify>,
}

impl std::fmt::Debug for PostgresReplica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("PostgresReplica");
        shown.field("id", &self.shared.id).finish_non_exhaustive()
    }
}

impl PostgresReplica {
    /// Joins the running gateways of this database, until it is dropped or the process ends.
    ///
    /// # Errors
    /// If the database cannot be reached or used.
    pub async fn join(database: PostgresDatabase) -> Result<Self, StoreError> {
        let id = random_id()?;
        let lock = i64::from_str_radix(id.get(..15).unwrap_or_default(), 16);
        let shared = Arc::new(Shared {
            database: database.clone(),
            lock: lock.map_err(io::Error::other)?,
            id,
            running: Mutex::default(),
            notices: Arc::default(),
        });
        database.ready().await?;
        let client = shared.connected().await?;
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
        self.shared.running().contains(name)
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
}

impl Shared {
    fn running(&self) -> MutexGuard<'_, HashSet<String>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self, rows: &[tokio_postgres::Row]) {
        let ids = rows.iter().filter_map(|row| row.try_get(0).ok());
        *self.running() = ids.collect();
    }

    /// Makes the connection of this gateway.
    async fn connected(&self) -> Result<Client, StoreError> {
        let client = self.database.listening(self.notices.clone()).await?;
        let channel = format!("LISTEN \"{}\"", channel(&self.id));
        client.batch_execute(&channel).await?;
        query(&client, &statements::HOLD_LOCK, &[&self.lock]).await?;
        // There may have been notices in between.
        self.notices.notify_one();
        Ok(client)
    }

    /// Renews the lease, and reads the running gateways.
    async fn beat(&self, client: &Client) -> Result<(), StoreError> {
        execute(client, &statements::RENEW_LEASE, &[&self.id, &self.lock]).await?;
        self.found(&query(client, &statements::RUNNING, &[]).await?);
        Ok(())
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
