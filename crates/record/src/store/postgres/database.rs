//! The connections to the database.
//!
//! They run on a thread of their own, so that the methods that are not asynchronous can wait for them, whatever thread
//! calls these.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_postgres::{
    Connect, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod,
};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Notify, OnceCell};
use tokio::task::{JoinHandle, JoinSet};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, Row as Columns};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::super::{DatabaseError, DatabaseFault, RecordStoreError, result_of_task};
use super::answered::AnsweredWithin;
use super::encoded_value::EncodedValue;
#[cfg(unix)]
use super::folder_socket;
use super::migrations;
use super::proven::{ProvenOnly, Unproven};
use super::settings::{PasswordSource, PostgresSettings, Tls};
use super::statements::Statement;

/// The number of times that a statement or transaction whose connection was lost is tried again, and the pause before each:
/// a database that is started again is often back within them.
const TRIES: u32 = 12;
const PAUSE: Duration = Duration::from_millis(250);

/// The beginning of each transaction, with its settings: they end with it. A process that stops in the middle keeps no
/// lock, and nothing of another schema is found by a name alone.
pub(super) const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '10s'; \
     SET LOCAL search_path = pg_catalog, pg_temp";

/// The values of a statement.
pub(super) type StatementValues<'v> = &'v [&'v (dyn ToSql + Sync)];

/// A database, with its connections.
#[derive(Clone)]
pub struct PostgresDatabase {
    inner: Arc<DatabaseParts>,
}

struct DatabaseParts {
    settings: PostgresSettings,
    connector: Connector,
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
    connector: Connector,
}

/// Makes connections: with the password of its source, and within a time.
#[derive(Clone)]
struct Connector {
    tls: Tls,
    let_in_timeout: Duration,
    answer_timeout: Duration,
    address: String,
    source: Option<PasswordSource>,
    /// Why none was made, and the next step, where the driver has no error for it.
    refusal: Arc<Mutex<Option<(String, String)>>>,
}

impl Connector {
    /// Makes a connection. Must be called on the thread of the connections.
    async fn connect(&self, config: Config) -> Result<(Client, DatabaseMessages), Error> {
        let config = self.with_password(config).await?;
        let hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
        let most = self.let_in_timeout * u32::try_from(hosts.max(1)).unwrap_or(u32::MAX);
        let connecting = connect(config, self.tls.clone(), self.answer_timeout);
        if let Ok(connected) = tokio::time::timeout(most, connecting).await {
            return connected;
        }
        let (address, seconds) = (&self.address, most.as_secs());
        let why =
            format!("the database {address} did not let this program in within {seconds} seconds");
        let next = "check that a PostgreSQL server is at that address, and that it (or the pooler before it) has free \
                    connections.";
        Err(self.refuse(why, next.to_owned()).await)
    }

    /// Sets the password of a new connection.
    async fn with_password(&self, mut config: Config) -> Result<Config, Error> {
        let Some(source) = self.source.clone() else {
            return Ok(config);
        };
        let given = match tokio::task::spawn_blocking(move || source()).await {
            Ok(given) => given,
            // The process ends.
            Err(_) => std::future::pending().await,
        };
        match given {
            Ok(password) => {
                config.password(password);
                Ok(config)
            }
            Err((why, next)) => Err(self.refuse(why, next).await),
        }
    }

    /// Leaves the reason for [`refused`](Self::refused), and returns an error of the driver in its place, which nobody is
    /// shown.
    async fn refuse(&self, why: String, next: String) -> Error {
        *self.refusal() = Some((why, next));
        match UNREADABLE_ADDRESS.parse::<Config>() {
            Err(error) => error,
            Ok(_) => std::future::pending().await,
        }
    }

    /// Returns the reason in whose place this error of the driver is. There may be several connections with the same one.
    fn refused(&self, error: &Error) -> Option<RecordStoreError> {
        let in_place = UNREADABLE_ADDRESS.parse::<Config>().err()?;
        if error.to_string() != in_place.to_string() {
            return None;
        }
        let (why, next) = self.refusal().clone()?;
        Some(RecordStoreError::Refused { why, next })
    }

    fn refusal(&self) -> MutexGuard<'_, Option<(String, String)>> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An address that the driver cannot read. Its error is in the place of those that the driver does not have.
const UNREADABLE_ADDRESS: &str = "port=none";

impl Connect for ConnectThere {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let (config, io) = (config.clone(), self.io.clone());
        let (connector, there) = (self.connector.clone(), io.clone());
        let connecting = async move {
            let (client, mut messages) = connector.connect(config).await?;
            let task = there.spawn(async move {
                while let Some(message) = messages.next().await {
                    // Whoever uses the connection gets the error too.
                    if let Err(error) = message {
                        let error = described(&error);
                        tracing::debug!(error, "a connection to the database has ended");
                        return;
                    }
                }
            });
            Ok((client, task))
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

/// The messages of a connection. It goes on only while they are awaited.
type DatabaseMessages = BoxStream<'static, Result<AsyncMessage, Error>>;

/// Makes a connection, in whatever time it takes.
async fn connect(
    mut config: Config,
    tls: Tls,
    within: Duration,
) -> Result<(Client, DatabaseMessages), Error> {
    match tls {
        Tls::Off => {
            let connect = ProvenOnly::set(&mut config);
            let proven = AnsweredWithin { connect, within };
            #[cfg(unix)]
            if folder_socket::has_folder(&config) {
                let connected = folder_socket::connect(&config, proven).await;
                return connected.map(with_messages);
            }
            config.connect(proven).await.map(with_messages)
        }
        Tls::Verified(tls) => {
            let connect = MakeRustlsConnect::new(tls.as_ref().clone());
            let verified = AnsweredWithin { connect, within };
            config.connect(verified).await.map(with_messages)
        }
    }
}

fn with_messages<S, T>(
    (client, mut connection): (Client, Connection<S, T>),
) -> (Client, DatabaseMessages)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let messages = futures::stream::poll_fn(move |context| connection.poll_message(context));
    (client, messages.boxed())
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
        let connector = Connector {
            tls: settings.tls.clone(),
            let_in_timeout: settings.let_in_timeout,
            answer_timeout: settings.answer_timeout,
            address: settings.shown.clone(),
            source: settings.password_source.clone(),
            refusal: Arc::default(),
        };
        let connect = ConnectThere {
            io: runtime.handle().clone(),
            connector: connector.clone(),
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
            inner: Arc::new(DatabaseParts {
                settings,
                connector,
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
    pub async fn ready(&self) -> Result<(), RecordStoreError> {
        let opened = async {
            let client = self.connect().await?;
            migrations::open(&client, self.settings().address()).await
        };
        self.inner.ready.get_or_try_init(|| opened).await?;
        Ok(())
    }

    /// Does the same, unless another role could replace the tables or what is in them.
    ///
    /// # Errors
    /// If it cannot be reached or used, or is not the user's alone.
    pub async fn ready_as_own(&self) -> Result<(), RecordStoreError> {
        let client = self.connect().await?;
        migrations::open_as_own(&client, self.settings().address()).await
    }

    /// Returns a connection to a database that is ready.
    pub(super) async fn client(&self) -> Result<Object, RecordStoreError> {
        self.ready().await?;
        self.connect().await
    }

    /// Returns a connection.
    pub(super) async fn connect(&self) -> Result<Object, RecordStoreError> {
        self.inner.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => self.refused(error),
            PoolError::Closed
            | PoolError::Timeout(_)
            | PoolError::NoRuntimeSpecified
            | PoolError::PostCreateHook(_) => RecordStoreError::Closed,
        })
    }

    /// Returns the error of a connection that could not be made.
    fn refused(&self, error: Error) -> RecordStoreError {
        let refusal = self.inner.connector.refused(&error);
        refusal.unwrap_or_else(|| connect_fault(error, self.settings().address()))
    }

    /// Runs a statement that may be repeated, and returns its rows. A lost connection is made anew.
    pub(super) async fn rows(
        &self,
        statement: &Statement,
        values: StatementValues<'_>,
    ) -> Result<Vec<Columns>, RecordStoreError> {
        let (database, statement) = (self.clone(), *statement);
        let values = EncodedValue::of_all(&statement, values)?;
        self.spawned_while_awaited(async move {
            let values = EncodedValue::borrowed(&values);
            let attempt = || async {
                let client = database.client().await?;
                query(&client, &statement, &values).await
            };
            database.repeated(attempt).await
        })
        .await
    }

    /// Runs a statement that returns one row.
    pub(super) async fn row(
        &self,
        statement: &Statement,
        values: StatementValues<'_>,
    ) -> Result<Columns, RecordStoreError> {
        let mut rows = self.rows(statement, values).await?;
        rows.pop().ok_or(RecordStoreError::Closed)
    }

    /// Runs a statement that changes rows, and returns their number. Only a statement that may be repeated: after a lost
    /// connection it is unknown if it was made.
    pub(super) async fn execute(
        &self,
        statement: &Statement,
        values: StatementValues<'_>,
    ) -> Result<u64, RecordStoreError> {
        let (database, statement) = (self.clone(), *statement);
        let values = EncodedValue::of_all(&statement, values)?;
        self.spawned_while_awaited(async move {
            let values = EncodedValue::borrowed(&values);
            let attempt = || async {
                let client = database.client().await?;
                execute(&client, &statement, &values).await
            };
            database.repeated(attempt).await
        })
        .await
    }

    /// Runs work in one transaction, which is made completely even if nobody waits for it any more. Only work that may be
    /// repeated: after a lost connection it is unknown if it was made.
    pub(super) async fn transaction<T: Send + 'static>(
        &self,
        work: impl for<'c> Fn(&'c Client) -> BoxFuture<'c, Result<T, RecordStoreError>>
        + Send
        + Sync
        + 'static,
    ) -> Result<T, RecordStoreError> {
        let database = self.clone();
        self.spawned(async move {
            let attempt = || async {
                let client = database.client().await?;
                in_transaction(&client, &work).await
            };
            database.repeated(attempt).await
        })
        .await
    }

    /// Makes an attempt again, after a pause each time, while the connection is lost or the database is away.
    async fn repeated<T, F: Future<Output = Result<T, RecordStoreError>>>(
        &self,
        attempt: impl Fn() -> F,
    ) -> Result<T, RecordStoreError> {
        let mut tries = 0..TRIES;
        loop {
            match attempt().await {
                Err(fault) if is_passing(&fault) && tries.next().is_some() => self.pause().await,
                done => return done,
            }
        }
    }

    /// Runs work on the thread of the connections, to its end even if nobody waits for it any more.
    pub(super) async fn spawned<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RecordStoreError>> + Send + 'static,
    ) -> Result<T, RecordStoreError> {
        result_of_task(self.handle()?.spawn(work).await).await
    }

    /// Runs work on the thread of the connections, for which nobody waits. It is dropped with the connections.
    pub(super) fn start(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Ok(handle) = self.handle() {
            let _task = handle.spawn(work);
        }
    }

    /// Runs work on the thread of the connections, until it ends or this future is dropped. A caller that does not poll
    /// this future keeps no connection from others.
    async fn spawned_while_awaited<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RecordStoreError>> + Send + 'static,
    ) -> Result<T, RecordStoreError> {
        let mut tasks = JoinSet::new();
        tasks.spawn_on(work, self.handle()?);
        match tasks.join_next().await {
            Some(done) => result_of_task(done).await,
            None => Err(RecordStoreError::Closed),
        }
    }

    fn handle(&self) -> Result<&Handle, RecordStoreError> {
        let runtime = self.inner.runtime.0.as_ref();
        runtime.map(Runtime::handle).ok_or(RecordStoreError::Closed)
    }

    /// Makes a connection of its own, outside the pool, whose notices give a signal.
    pub(super) async fn listening(&self, notices: Arc<Notify>) -> Result<Client, RecordStoreError> {
        let connecting = {
            let config = self.settings().config.clone();
            let connector = self.inner.connector.clone();
            async move {
                let (client, mut messages) = connector.connect(config).await?;
                tokio::spawn(async move {
                    // Whoever uses the connection gets an error too.
                    while let Some(Ok(message)) = messages.next().await {
                        if let AsyncMessage::Notification(_) = message {
                            notices.notify_one();
                        }
                    }
                });
                Ok(client)
            }
        };
        let there = self.clone();
        self.spawned(async move {
            let connected = connecting.await;
            connected.map_err(|error| there.refused(error))
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

    /// Waits for work on the calling thread. Its sockets and timers are those of the connections' thread: the runtime of the
    /// caller may have no other thread left that would serve them.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        let run = || {
            let connections = self.inner.runtime.0.as_ref();
            let _entered = connections.map(|runtime| runtime.handle().enter());
            futures::executor::block_on(work)
        };
        let many = Handle::try_current()
            .is_ok_and(|here| here.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread);
        if many {
            // Other tasks of this thread go on.
            tokio::task::block_in_place(run)
        } else {
            run()
        }
    }
}

/// Runs a statement on this connection.
pub(super) async fn query(
    client: &Client,
    statement: &Statement,
    values: StatementValues<'_>,
) -> Result<Vec<Columns>, RecordStoreError> {
    let values = typed(statement, values);
    Ok(client.query_typed(statement.text, &values).await?)
}

/// Runs a statement that changes rows on this connection, and returns their number.
pub(super) async fn execute(
    client: &Client,
    statement: &Statement,
    values: StatementValues<'_>,
) -> Result<u64, RecordStoreError> {
    let values = typed(statement, values);
    Ok(client.execute_typed(statement.text, &values).await?)
}

/// Runs work in one transaction on this connection.
async fn in_transaction<T>(
    client: &Client,
    work: &(impl for<'c> Fn(&'c Client) -> BoxFuture<'c, Result<T, RecordStoreError>> + Sync),
) -> Result<T, RecordStoreError> {
    client.batch_execute(BEGIN).await?;
    let done = work(client).await;
    ended(client, done).await
}

/// Commits the transaction of this connection, or rolls it back if its work has failed.
pub(super) async fn ended<T>(
    client: &Client,
    done: Result<T, RecordStoreError>,
) -> Result<T, RecordStoreError> {
    if done.is_ok() {
        client.batch_execute("COMMIT").await?;
    } else {
        // A connection that cannot do this has ended, and its transaction with it.
        let _ended = client.batch_execute("ROLLBACK").await;
    }
    done
}

fn typed<'v>(
    statement: &Statement,
    values: StatementValues<'v>,
) -> Vec<(&'v (dyn ToSql + Sync), tokio_postgres::types::Type)> {
    debug_assert_eq!(statement.types.len(), values.len(), "{}", statement.text);
    let types = statement.types.iter().cloned();
    values.iter().copied().zip(types).collect()
}

/// Returns `true` if the same work may succeed in a moment.
pub(super) fn is_passing(fault: &RecordStoreError) -> bool {
    let RecordStoreError::Database(error) = fault else {
        return false;
    };
    match error.fault() {
        DatabaseFault::Away | DatabaseFault::Busy => true,
        DatabaseFault::NotADatabase
        | DatabaseFault::ReadOnly
        | DatabaseFault::Full
        | DatabaseFault::Other => false,
    }
}

/// Returns `true` if the connection was lost, so that the outcome of a running transaction is unknown.
pub(super) fn is_away(fault: &RecordStoreError) -> bool {
    matches!(fault, RecordStoreError::Database(error) if error.fault() == DatabaseFault::Away)
}

impl From<Error> for RecordStoreError {
    fn from(error: Error) -> Self {
        let fault = match error.code() {
            None if error.is_closed() || is_io(&error, |_| true) => DatabaseFault::Away,
            Some(code) if is_ending(code) => DatabaseFault::Away,
            Some(code) if is_conflict(code) => DatabaseFault::Busy,
            Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => DatabaseFault::ReadOnly,
            Some(code) if *code == SqlState::DISK_FULL => DatabaseFault::Full,
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
    io_cause(error, |io| fits(io).then_some(())).is_some()
}

/// Returns what is found in the errors of the system that caused this one.
fn io_cause<T>(error: &Error, find: impl Fn(&std::io::Error) -> Option<T>) -> Option<T> {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(found) = cause.downcast_ref().and_then(&find) {
            return Some(found);
        }
        source = cause.source();
    }
    None
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
fn connect_fault(error: Error, address: &str) -> RecordStoreError {
    let refused = |why: String, next: &str| RecordStoreError::Refused {
        why,
        next: next.to_owned(),
    };
    if let Some(why) = refused_certificate(&error) {
        return refused(
            format!("the certificate of the database server of {address} is not accepted: {why}"),
            "name the certificate that signed it with `sslrootcert=FILE` in the address, and the server as its certificate names it.",
        );
    }
    if described(&error).contains("server does not support TLS") {
        return refused(
            format!("the database server of {address} does not support TLS"),
            "turn TLS on there (`ssl = on`); `sslmode=disable` in the address goes without it, for a network that nobody else can read.",
        );
    }
    if let Some(unproven) = io_cause(&error, Unproven::of) {
        return refused(
            format!("the database {address} is not used: {unproven}"),
            unproven.next,
        );
    }
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
            "create it (`createdb --encoding=UTF8 --template=template0 --owner=USER DATABASE`), or correct the address.",
        ),
        _ if described(&error).contains("password missing") => refused(
            format!("the database {address} asks for a password, and none was given"),
            "give it with --record-password-file, PGPASSFILE or PGPASSWORD.",
        ),
        // Whoever waits has waited long enough.
        _ if is_io(&error, |io| io.kind() == std::io::ErrorKind::TimedOut) => {
            let source = std::io::Error::other(described(&error));
            RecordStoreError::Database(DatabaseError::of_server(DatabaseFault::Other, source))
        }
        _ => error.into(),
    }
}

/// Returns why the certificate of the server was not accepted; `None` for any other error.
fn refused_certificate(error: &Error) -> Option<String> {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let inner = cause
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        let of_tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(of_tls @ rustls::Error::InvalidCertificate(_)) = of_tls {
            return Some(of_tls.to_string());
        }
        source = cause.source();
    }
    None
}
