//! The connections to the database.
//!
//! They run on a thread of their own, so that the methods that are not asynchronous can wait for them, whatever thread
//! calls these.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    Connect, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod,
};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Notify, OnceCell};
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Error, NoTls, Row as Columns, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::super::{DatabaseError, DatabaseFault, StoreError};
use super::migrations;
use super::settings::{PostgresSettings, Tls};
use super::statements::Statement;

/// The number of times that a statement or transaction whose connection was lost is tried again, and the pause before each:
/// a database that is started again is often back within them.
const TRIES: u32 = 12;
const PAUSE: Duration = Duration::from_millis(250);

/// The beginning of each transaction, with its settings: they end with it. A process that stops in the middle keeps no
/// lock.
pub(super) const BEGIN: &str =
    "BEGIN; SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '10s'";

/// The values of a statement.
pub(super) type Values<'v> = &'v [&'v (dyn ToSql + Sync)];

/// A database, with its connections.
#[derive(Clone)]
pub struct PostgresDatabase {
    inner: Arc<Inner>,
}

struct Inner {
    settings: PostgresSettings,
    pool: Pool,
    runtime: Io,
    ready: OnceCell<()>,
}

/// The thread of the connections.
struct Io(Option<Runtime>);

impl Drop for Io {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Waiting for it is not allowed in a task.
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for PostgresDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.settings.fmt(f)
    }
}

/// Connects on the thread of the connections.
struct ConnectThere {
    io: Handle,
    tls: Tls,
}

impl Connect for ConnectThere {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let (config, io) = (config.clone(), self.io.clone());
        let connecting = match &self.tls {
            Tls::Off => connect(config, NoTls, io.clone()).boxed(),
            Tls::Verified(tls) => {
                let tls = MakeRustlsConnect::new(tls.as_ref().clone());
                connect(config, tls, io.clone()).boxed()
            }
        };
        async move {
            match io.spawn(connecting).await {
                Ok(connected) => connected,
                // The process ends.
                Err(_) => std::future::pending().await,
            }
        }
        .boxed()
    }
}

async fn connect<T>(config: Config, tls: T, io: Handle) -> Result<(Client, JoinHandle<()>), Error>
where
    T: MakeTlsConnect<Socket> + Send,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, connection) = config.connect(tls).await?;
    let task = io.spawn(async move {
        // Whoever uses the connection gets the error too.
        if let Err(error) = connection.await {
            tracing::debug!(error = %described(&error), "a connection to the database has ended");
        }
    });
    Ok((client, task))
}

/// Makes a connection whose notices give a signal. Must be called on the thread of the connections.
async fn listen<T>(config: Config, tls: T, notices: Arc<Notify>) -> Result<Client, Error>
where
    T: MakeTlsConnect<Socket> + Send,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, mut connection) = config.connect(tls).await?;
    tokio::spawn(async move {
        let mut messages =
            futures::stream::poll_fn(move |context| connection.poll_message(context));
        // Whoever uses the connection gets an error too.
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(_) = message {
                notices.notify_one();
            }
        }
    });
    Ok(client)
}

impl PostgresDatabase {
    /// Creates the connections of this process, which are made on demand.
    ///
    /// # Errors
    /// If the system has no thread.
    pub fn new(settings: PostgresSettings) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("record-database")
            .enable_all()
            .build()?;
        let connect = ConnectThere {
            io: runtime.handle().clone(),
            tls: settings.tls.clone(),
        };
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_connect(settings.config.clone(), connect, recycling);
        let pool = Pool::builder(manager)
            .max_size(settings.connections)
            .build()
            .map_err(std::io::Error::other)?;
        Ok(Self {
            inner: Arc::new(Inner {
                settings,
                pool,
                runtime: Io(Some(runtime)),
                ready: OnceCell::new(),
            }),
        })
    }

    /// Returns the settings.
    pub fn settings(&self) -> &PostgresSettings {
        &self.inner.settings
    }

    /// Checks the server, and migrates the tables to this version's layout, once.
    ///
    /// # Errors
    /// If it cannot be reached or used.
    pub async fn ready(&self) -> Result<(), StoreError> {
        let opened = async {
            let client = self.connect().await?;
            migrations::open(&client, self.settings().address()).await
        };
        self.inner.ready.get_or_try_init(|| opened).await?;
        Ok(())
    }

    /// Returns a connection to a database that is ready.
    pub(super) async fn client(&self) -> Result<Object, StoreError> {
        self.ready().await?;
        self.connect().await
    }

    /// Returns a connection.
    pub(super) async fn connect(&self) -> Result<Object, StoreError> {
        self.inner.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => connect_fault(error, self.settings().address()),
            PoolError::Closed
            | PoolError::Timeout(_)
            | PoolError::NoRuntimeSpecified
            | PoolError::PostCreateHook(_) => StoreError::Closed,
        })
    }

    /// Runs a statement that may be repeated, and returns its rows. A lost connection is made anew.
    pub(super) async fn rows(
        &self,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<Vec<Columns>, StoreError> {
        let mut tries = 0..TRIES;
        loop {
            let done = async {
                let client = self.client().await?;
                query(&client, statement, values).await
            };
            match done.await {
                Err(fault) if is_passing(&fault) && tries.next().is_some() => self.pause().await,
                done => return done,
            }
        }
    }

    /// Runs a statement that returns one row.
    pub(super) async fn row(
        &self,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<Columns, StoreError> {
        let mut rows = self.rows(statement, values).await?;
        rows.pop().ok_or(StoreError::Closed)
    }

    /// Runs a statement that changes rows, and returns their number. Only a statement that may be repeated: after a lost
    /// connection it is unknown if it was made.
    pub(super) async fn execute(
        &self,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<u64, StoreError> {
        let mut tries = 0..TRIES;
        loop {
            let done = async {
                let client = self.client().await?;
                execute(&client, statement, values).await
            };
            match done.await {
                Err(fault) if is_passing(&fault) && tries.next().is_some() => self.pause().await,
                done => return done,
            }
        }
    }

    /// Runs work in one transaction, which is made completely even if nobody waits for it any more. Only work that may be
    /// repeated: after a lost connection it is unknown if it was made.
    pub(super) async fn transaction<T: Send + 'static>(
        &self,
        work: impl for<'c> Fn(&'c Client) -> BoxFuture<'c, Result<T, StoreError>>
        + Send
        + Sync
        + 'static,
    ) -> Result<T, StoreError> {
        let database = self.clone();
        self.spawned(async move {
            let mut tries = 0..TRIES;
            loop {
                let done = async {
                    let client = database.client().await?;
                    in_transaction(&client, &work).await
                };
                match done.await {
                    Err(fault) if is_passing(&fault) && tries.next().is_some() => {
                        database.pause().await;
                    }
                    done => return done,
                }
            }
        })
        .await
    }

    /// Runs work on the thread of the connections, to its end even if nobody waits for it any more.
    pub(super) async fn spawned<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(runtime) = &self.inner.runtime.0 else {
            return Err(StoreError::Closed);
        };
        match runtime.handle().spawn(work).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The process ends.
                Err(_cancelled) => std::future::pending().await,
            },
        }
    }

    /// Makes a connection of its own, outside the pool, whose notices give a signal.
    pub(super) async fn listening(&self, notices: Arc<Notify>) -> Result<Client, StoreError> {
        let connecting = {
            let settings = self.settings();
            let config = settings.config.clone();
            match &settings.tls {
                Tls::Off => listen(config, NoTls, notices).boxed(),
                Tls::Verified(tls) => {
                    let tls = MakeRustlsConnect::new(tls.as_ref().clone());
                    listen(config, tls, notices).boxed()
                }
            }
        };
        let address = self.settings().address().to_owned();
        self.spawned(async move {
            let connected = connecting.await;
            connected.map_err(|error| connect_fault(error, &address))
        })
        .await
    }

    /// Runs a task on the thread of the connections.
    pub(super) fn background(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        let runtime = self.inner.runtime.0.as_ref()?;
        Some(runtime.handle().spawn(task))
    }

    /// Waits a moment, in any thread.
    pub(super) async fn pause(&self) {
        if let Some(runtime) = &self.inner.runtime.0 {
            let pause = runtime.handle().spawn(tokio::time::sleep(PAUSE));
            let _the_process_ends = pause.await;
        }
    }

    /// Waits for work on the calling thread.
    pub(super) fn wait<T>(work: impl Future<Output = T>) -> T {
        let many = Handle::try_current()
            .is_ok_and(|here| here.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread);
        if many {
            // Other tasks of this thread go on.
            tokio::task::block_in_place(|| futures::executor::block_on(work))
        } else {
            futures::executor::block_on(work)
        }
    }
}

/// Runs a statement on this connection.
pub(super) async fn query(
    client: &Client,
    statement: &Statement,
    values: Values<'_>,
) -> Result<Vec<Columns>, StoreError> {
    let values = typed(statement, values);
    Ok(client.query_typed(statement.text, &values).await?)
}

/// Runs a statement that changes rows on this connection, and returns their number.
pub(super) async fn execute(
    client: &Client,
    statement: &Statement,
    values: Values<'_>,
) -> Result<u64, StoreError> {
    let values = typed(statement, values);
    Ok(client.execute_typed(statement.text, &values).await?)
}

/// Runs work in one transaction on this connection.
async fn in_transaction<T>(
    client: &Client,
    work: &(impl for<'c> Fn(&'c Client) -> BoxFuture<'c, Result<T, StoreError>> + Sync),
) -> Result<T, StoreError> {
    client.batch_execute(BEGIN).await?;
    match work(client).await {
        Ok(done) => {
            client.batch_execute("COMMIT").await?;
            Ok(done)
        }
        Err(fault) => {
            // A connection that cannot do this has ended, and its transaction with it.
            let _ended = client.batch_execute("ROLLBACK").await;
            Err(fault)
        }
    }
}

fn typed<'v>(
    statement: &Statement,
    values: Values<'v>,
) -> Vec<(&'v (dyn ToSql + Sync), tokio_postgres::types::Type)> {
    debug_assert_eq!(statement.types.len(), values.len(), "{}", statement.text);
    let types = statement.types.iter().cloned();
    values.iter().copied().zip(types).collect()
}

/// Returns `true` if the same work may succeed in a moment.
pub(super) fn is_passing(fault: &StoreError) -> bool {
    let StoreError::Database(error) = fault else {
        return false;
    };
    match error.fault() {
        DatabaseFault::Away | DatabaseFault::Busy => true,
        DatabaseFault::NotADatabase | DatabaseFault::ReadOnly | DatabaseFault::Other => false,
    }
}

/// Returns `true` if the connection was lost, so that the outcome of a running transaction is unknown.
pub(super) fn is_away(fault: &StoreError) -> bool {
    matches!(fault, StoreError::Database(error) if error.fault() == DatabaseFault::Away)
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let fault = match error.code() {
            None if error.is_closed() || is_io(&error, |_| true) => DatabaseFault::Away,
            Some(code) if is_ending(code) => DatabaseFault::Away,
            Some(code) if is_conflict(code) => DatabaseFault::Busy,
            Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => DatabaseFault::ReadOnly,
            Some(_) | None => DatabaseFault::Other,
        };
        Self::Database(DatabaseError::of_server(
            fault,
            std::io::Error::other(described(&error)),
        ))
    }
}

/// Returns the message of an error, without its details, which may contain values.
pub(super) fn described(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        return format!("{} ({})", error.message(), error.code().code());
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Returns `true` if the error is caused by one of the system that fits.
fn is_io(error: &Error, fits: impl Fn(&std::io::Error) -> bool) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.downcast_ref().is_some_and(&fits) {
            return true;
        }
        source = cause.source();
    }
    false
}

/// Returns `true` if the server ends the connection, or is not ready for one.
fn is_ending(code: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::CONNECTION_EXCEPTION,
        SqlState::CONNECTION_FAILURE,
        SqlState::TOO_MANY_CONNECTIONS,
    ]
    .contains(code)
}

/// Returns `true` if another transaction was in the way, and this one left nothing.
fn is_conflict(code: &SqlState) -> bool {
    [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
    ]
    .contains(code)
}

/// Returns the error of a connection that could not be made.
fn connect_fault(error: Error, address: &str) -> StoreError {
    let refused = |why: String, next: &str| StoreError::Refused {
        why,
        next: next.to_owned(),
    };
    match error.code() {
        Some(code)
            if *code == SqlState::INVALID_PASSWORD
                || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
        {
            refused(
                format!(
                    "the database {address} does not let this user in: {}",
                    described(&error)
                ),
                "give the password with --record-password-file, PGPASSFILE or PGPASSWORD, and check the user in the address and the server's pg_hba.conf.",
            )
        }
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => refused(
            format!("there is no such database: {address}"),
            "create it (`createdb --encoding=UTF8 --owner=USER DATABASE`), or correct the address.",
        ),
        _ if described(&error).contains("password missing") => refused(
            format!("the database {address} asks for a password, and none was given"),
            "give it with --record-password-file, PGPASSFILE or PGPASSWORD.",
        ),
        // Whoever waits has waited long enough.
        _ if is_io(&error, |io| io.kind() == std::io::ErrorKind::TimedOut) => {
            let source = std::io::Error::other(described(&error));
            StoreError::Database(DatabaseError::of_server(DatabaseFault::Other, source))
        }
        _ => error.into(),
    }
}
