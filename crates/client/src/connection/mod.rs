//! From a server's address to a connection that answers its questions: starting or reaching it, detecting the era,
//! limiting its messages, and a clean shutdown.

#[cfg(feature = "process")]
mod child;
#[cfg(feature = "http")]
mod credential_mask;
mod error;
mod finding;
#[cfg(feature = "http")]
mod http;
mod incoming;
mod lifecycle;
mod pushed_first;
mod stdio;
#[cfg(feature = "http")]
mod token;
mod transport_error;
#[cfg(feature = "http")]
mod unanswered;

#[cfg(feature = "process")]
use std::ffi::OsString;
use std::time::Duration;

use mcp_elicit_core::wire::{Era, Revision};
use rmcp::model::{Implementation, ProtocolVersion};
use rmcp::service::{Peer, RunningService};
use rmcp::{ClientHandler, RoleClient};
use tokio::io::{AsyncRead, AsyncWrite};

#[cfg(feature = "process")]
pub use child::Stderr;
#[cfg(feature = "sign-in")]
pub(crate) use credential_mask::masked;
#[cfg(feature = "http")]
pub(crate) use error::challenge;
pub use error::{ConnectError, ConnectErrorKind};
pub use finding::ProtocolFinding;
#[cfg(feature = "http")]
pub use http::Http;
pub(crate) use incoming::ResultSlot;
#[cfg(feature = "http")]
pub use token::{BearerToken, TokenError};
pub(crate) use transport_error::Health;
pub use transport_error::TransportError;

use crate::eliciting::ElicitingClient;

/// The location of a server.
///
/// ```
/// use mcp_elicit_client::Target;
///
/// let program = Target::Command { program: "npx".into(), arguments: vec!["some-server".into()] };
/// let endpoint = Target::Url("https://user:secret@mcp.example.com/mcp".to_owned());
/// assert_eq!((program.describe().as_str(), program.transport()), ("npx some-server", "stdio"));
/// assert_eq!((endpoint.describe().as_str(), endpoint.transport()), ("https://mcp.example.com/mcp", "http"));
/// ```
#[cfg(any(feature = "process", feature = "http"))]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A program to start and talk to over its stdin and stdout.
    #[cfg(feature = "process")]
    Command {
        /// The program, looked up in `PATH`.
        program: OsString,
        /// Its arguments.
        arguments: Vec<OsString>,
    },
    /// A Streamable HTTP endpoint.
    #[cfg(feature = "http")]
    Url(String),
}

#[cfg(any(feature = "process", feature = "http"))]
impl Target {
    /// Returns the description for people: the command line, or the URL without a user name and a password.
    pub fn describe(&self) -> String {
        match self {
            #[cfg(feature = "process")]
            Self::Command { program, arguments } => {
                let words = std::iter::once(program).chain(arguments);
                words
                    .map(|word| word.to_string_lossy())
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            #[cfg(feature = "http")]
            Self::Url(url) => mcp_elicit_core::link::without_userinfo(url).into_owned(),
        }
    }

    /// Returns the transport's name: `stdio` or `http`.
    pub fn transport(&self) -> &'static str {
        match self {
            #[cfg(feature = "process")]
            Self::Command { .. } => "stdio",
            #[cfg(feature = "http")]
            Self::Url(_) => "http",
        }
    }
}

/// Options of a connection.
///
/// ```
/// use std::time::Duration;
/// use mcp_elicit_client::{ConnectOptions, HeaderName, HeaderValue};
/// use mcp_elicit_client::connection::BearerToken;
/// use mcp_elicit_client::core::wire::Revision;
///
/// let options = ConnectOptions::default()
///     .revision(Revision::LATEST)
///     .within(Duration::from_secs(20))
///     .token(BearerToken::new("from-the-environment")?)
///     .headers(vec![(HeaderName::from_static("x-team"), HeaderValue::from_static("ops"))])
///     .environment(vec![("LANG".into(), "C".into())])
///     .frame_limit(64 * 1024 * 1024);
/// # let _ = options;
/// # Ok::<(), mcp_elicit_client::connection::TokenError>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The revision to speak. `None` detects the era as the specification says: `server/discover` first, and
    /// `initialize` if the server is older.
    pub revision: Option<Revision>,
    /// The era that is tried first if no `revision` is set. [`Era::Pushed`] suits servers that speak both: all their
    /// tools can ask in a session, while some SDKs' tools cannot ask on 2026-07-28. A server that declares
    /// [`ASKS_IN_EVERY_ERA`](mcp_elicit_core::wire::ASKS_IN_EVERY_ERA), or that opens a session without an id over HTTP
    /// and so cannot push, is addressed on 2026-07-28.
    pub first_era: Era,
    /// The longest time to the first response. A program started by a package manager may have to be downloaded first.
    pub within: Duration,
    /// The largest message that is read, in bytes.
    pub frame_limit: usize,
    /// The bearer token for an HTTP server; `None` for none.
    #[cfg(feature = "http")]
    pub token: Option<BearerToken>,
    /// Headers for every HTTP request, in addition to the protocol's. `Debug` shows only their names.
    #[cfg(feature = "http")]
    pub headers: Vec<(::http::HeaderName, ::http::HeaderValue)>,
    /// Environment variables for a started server, in addition to the inherited ones. `Debug` shows only their names.
    #[cfg(feature = "process")]
    pub environment: Vec<(OsString, OsString)>,
}

/// Shows only the names of headers and variables, because their values may be secrets.
impl std::fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("ConnectOptions");
        shown
            .field("revision", &self.revision)
            .field("first_era", &self.first_era)
            .field("within", &self.within)
            .field("frame_limit", &self.frame_limit);
        #[cfg(feature = "http")]
        {
            let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
            shown.field("token", &self.token).field("headers", &names);
        }
        #[cfg(feature = "process")]
        {
            let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
            shown.field("environment", &names);
        }
        shown.finish()
    }
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            revision: None,
            first_era: Era::Rounds,
            within: Duration::from_secs(60),
            frame_limit: 8 * 1024 * 1024,
            #[cfg(feature = "http")]
            token: None,
            #[cfg(feature = "http")]
            headers: Vec::new(),
            #[cfg(feature = "process")]
            environment: Vec::new(),
        }
    }
}

impl ConnectOptions {
    /// Sets the [`revision`](Self::revision) to speak.
    #[must_use]
    pub fn revision(mut self, revision: impl Into<Option<Revision>>) -> Self {
        self.revision = revision.into();
        self
    }

    /// Sets the [`first_era`](Self::first_era), which is tried first if no revision is set.
    ///
    /// ```
    /// use mcp_elicit_client::ConnectOptions;
    /// use mcp_elicit_core::wire::Era;
    ///
    /// let options = ConnectOptions::default().first_era(Era::Rounds);
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn first_era(mut self, era: Era) -> Self {
        self.first_era = era;
        self
    }

    /// Sets the longest time to the first response.
    #[must_use]
    pub fn within(mut self, longest: Duration) -> Self {
        self.within = longest;
        self
    }

    /// Sets the largest message that is read, in bytes.
    #[must_use]
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = bytes;
        self
    }

    /// Sets the bearer token for an HTTP server.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn token(mut self, token: impl Into<Option<BearerToken>>) -> Self {
        self.token = token.into();
        self
    }

    /// Sets the [`headers`](Self::headers) for every HTTP request.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn headers(mut self, headers: Vec<(::http::HeaderName, ::http::HeaderValue)>) -> Self {
        self.headers = headers;
        self
    }

    /// Sets the [`environment`](Self::environment) variables for a started server.
    #[cfg(feature = "process")]
    #[must_use]
    pub fn environment(mut self, variables: Vec<(OsString, OsString)>) -> Self {
        self.environment = variables;
        self
    }
}

/// A connection to a server, whose questions are answered.
///
/// ```
/// use mcp_elicit_client::{CallOptions, ClientSettings, ConnectOptions, Connection, ElicitingClient};
/// # use mcp_elicit_client::responder::Script;
/// # use rmcp::{ServerHandler, ServiceExt};
/// # struct Calendar;
/// # impl ServerHandler for Calendar {}
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (near, far) = tokio::io::duplex(64 * 1024);
/// # let server = tokio::spawn(async move { Calendar.serve(tokio::io::split(far)).await.unwrap().waiting().await });
/// # let responder = Script::decline();
/// let settings = ClientSettings::default().responder(responder);
/// let eliciting = ElicitingClient::new((), "calendar", settings);
/// # let (read, write) = tokio::io::split(near);
/// let connection = Connection::over(read, write, eliciting, &ConnectOptions::default()).await?;
/// assert!(connection.peer().list_all_tools().await?.is_empty(), "this server has no tools");
/// connection.close().await;
/// # server.await??;
/// # Ok(()) }
/// ```
pub struct Connection<H: ClientHandler> {
    service: RunningService<RoleClient, ElicitingClient<H>>,
    health: Health,
    #[cfg(feature = "process")]
    stderr: Option<Stderr>,
}

impl<H: ClientHandler> std::fmt::Debug for Connection<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("protocol", &self.protocol())
            .finish_non_exhaustive()
    }
}

impl<H: ClientHandler> Connection<H> {
    /// Connects to `target`; its questions go to `eliciting` from the first message.
    ///
    /// ```
    /// use mcp_elicit_client::responder::Terminal;
    /// use mcp_elicit_client::{ClientSettings, ConnectOptions, Connection, ElicitingClient, Target};
    ///
    /// async fn open() -> Result<Connection<()>, Box<dyn std::error::Error>> {
    ///     let target = Target::Command { program: "my-server".into(), arguments: vec![] };
    ///     let settings = ClientSettings::default().responder(Terminal::detect()?);
    ///     let eliciting = ElicitingClient::new((), "my server", settings);
    ///     Ok(Connection::open(&target, eliciting, &ConnectOptions::default()).await?)
    /// }
    /// ```
    #[cfg(any(feature = "process", feature = "http"))]
    pub async fn open(
        target: &Target,
        eliciting: ElicitingClient<H>,
        options: &ConnectOptions,
    ) -> Result<Self, ConnectError> {
        match target {
            #[cfg(feature = "process")]
            Target::Command { program, arguments } => {
                Box::pin(lifecycle::open_child(
                    program, arguments, eliciting, options,
                ))
                .await
            }
            #[cfg(feature = "http")]
            Target::Url(url) => {
                Box::pin(lifecycle::open_http(
                    url,
                    eliciting,
                    options,
                    std::convert::identity,
                ))
                .await
            }
        }
    }

    /// Connects to a Streamable HTTP endpoint through `wrap`, which receives the HTTP client of this connection and may
    /// wrap it: in rmcp's `AuthClient` for a server behind OAuth, or in a client that adds headers.
    ///
    /// ```
    /// use mcp_elicit_client::{ConnectError, ConnectOptions, Connection, ElicitingClient};
    ///
    /// async fn open(url: &str, eliciting: ElicitingClient<()>) -> Result<Connection<()>, ConnectError> {
    ///     // With rmcp's feature `auth`: |http| AuthClient::new(http, manager)
    ///     Connection::open_wrapped(url, eliciting, &ConnectOptions::default(), |http| http).await
    /// }
    /// ```
    #[cfg(feature = "http")]
    pub async fn open_wrapped<C>(
        url: &str,
        eliciting: ElicitingClient<H>,
        options: &ConnectOptions,
        wrap: impl FnOnce(Http) -> C,
    ) -> Result<Self, ConnectError>
    where
        C: rmcp::transport::streamable_http_client::StreamableHttpClient + Send + Sync,
    {
        Box::pin(lifecycle::open_http(url, eliciting, options, wrap)).await
    }

    /// Connects over a pair of byte streams with MCP's stdio framing: a pipe, a socket, memory.
    ///
    /// ```
    /// use mcp_elicit_client::{ConnectError, ConnectOptions, Connection, ElicitingClient};
    /// use tokio::net::TcpStream;
    ///
    /// async fn open(socket: TcpStream, eliciting: ElicitingClient<()>) -> Result<Connection<()>, ConnectError> {
    ///     let (read, write) = socket.into_split();
    ///     Connection::over(read, write, eliciting, &ConnectOptions::default()).await
    /// }
    /// ```
    pub async fn over<R, W>(
        read: R,
        write: W,
        eliciting: ElicitingClient<H>,
        options: &ConnectOptions,
    ) -> Result<Self, ConnectError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        lifecycle::open_pipe(read, write, eliciting, options).await
    }

    /// Returns rmcp's handle of the server, for requests that this crate does not have.
    ///
    /// ```
    /// # use mcp_elicit_client::Connection;
    /// # use mcp_elicit_client::rmcp::service::ServiceError;
    /// async fn tools(connection: &Connection<()>) -> Result<usize, ServiceError> {
    ///     Ok(connection.peer().list_all_tools().await?.len())
    /// }
    /// ```
    pub fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// Returns rmcp's running service; its own `call_tool` answers questions through the same responder.
    ///
    /// ```
    /// # use mcp_elicit_client::Connection;
    /// fn is_open(connection: &Connection<()>) -> bool {
    ///     !connection.service().is_closed()
    /// }
    /// ```
    pub fn service(&self) -> &RunningService<RoleClient, ElicitingClient<H>> {
        &self.service
    }

    pub(crate) fn eliciting(&self) -> &ElicitingClient<H> {
        self.service.service()
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// Returns the server's name and version, as it reports them, without the credentials that were sent to it.
    ///
    /// ```
    /// # use mcp_elicit_client::Connection;
    /// fn name(connection: &Connection<()>) -> String {
    ///     connection.server().map(|server| server.name).unwrap_or_default()
    /// }
    /// ```
    pub fn server(&self) -> Option<Implementation> {
        let mut server = self.peer().peer_info()?.server_info.clone()?;
        let mask = |text: &str| self.health.masked(text);
        server.name = mask(&server.name);
        server.version = mask(&server.version);
        server.title = server.title.as_deref().map(mask);
        server.description = server.description.as_deref().map(mask);
        Some(server)
    }

    /// Returns the negotiated revision.
    ///
    /// ```
    /// # use mcp_elicit_client::Connection;
    /// fn has_rounds(connection: &Connection<()>) -> bool {
    ///     connection.protocol() == "2026-07-28"
    /// }
    /// ```
    pub fn protocol(&self) -> String {
        self.agreed()
            .map(|version| version.to_string())
            .unwrap_or_default()
    }

    fn agreed(&self) -> Option<ProtocolVersion> {
        self.peer()
            .peer_info()
            .map(|info| info.protocol_version.clone())
    }

    /// Returns `true` if the server declares that its tools ask in every era.
    #[cfg(feature = "http")]
    pub(crate) fn declares_every_era(&self) -> bool {
        let info = self.peer().peer_info();
        let experimental = info.and_then(|info| info.capabilities.experimental.clone());
        experimental.is_some_and(|all| all.contains_key(mcp_elicit_core::wire::ASKS_IN_EVERY_ERA))
    }

    /// Leaves a connection in favour of another to the same server.
    #[cfg(feature = "http")]
    pub(crate) async fn leave(mut self) {
        if let Err(error) = self.service.close().await {
            tracing::debug!(%error, "the connection's task failed");
        }
    }

    /// Returns the error that broke the connection, if there is one.
    ///
    /// ```
    /// # use mcp_elicit_client::Connection;
    /// fn report(connection: &Connection<()>) {
    ///     if let Some(trouble) = connection.transport_error() {
    ///         eprintln!("the connection is broken: {trouble}");
    ///     }
    /// }
    /// ```
    pub fn transport_error(&self) -> Option<TransportError> {
        self.health.transport_error()
    }

    /// Returns the breaches of the protocol so far that the connection survived, oldest first; at most 50.
    ///
    /// ```
    /// # use mcp_elicit_client::Connection;
    /// fn is_flawless(connection: &Connection<()>) -> bool {
    ///     connection.findings().is_empty()
    /// }
    /// ```
    pub fn findings(&self) -> Vec<ProtocolFinding> {
        self.health.findings()
    }

    /// Returns the number of lines of the server's stdout that were no messages and were skipped.
    ///
    /// ```
    /// # use mcp_elicit_client::Connection;
    /// fn report(connection: &Connection<()>) {
    ///     if connection.stray_lines() > 0 {
    ///         eprintln!("the server prints to its stdout, first: {:?}", connection.first_stray_line());
    ///     }
    /// }
    /// ```
    pub fn stray_lines(&self) -> usize {
        self.health.stray_lines()
    }

    /// Returns the first line that the server wrote to its stdout and that is no message, cut to 2,000 bytes.
    ///
    /// ```
    /// # use mcp_elicit_client::Connection;
    /// fn printed(connection: &Connection<()>) -> String {
    ///     connection.first_stray_line().unwrap_or_default()
    /// }
    /// ```
    pub fn first_stray_line(&self) -> Option<String> {
        self.health.first_stray_line()
    }

    /// Returns the last lines that the server's process wrote to stderr.
    ///
    /// ```
    /// # use mcp_elicit_client::Connection;
    /// fn report(connection: &Connection<()>) {
    ///     for line in connection.stderr() {
    ///         eprintln!("server: {line}");
    ///     }
    /// }
    /// ```
    #[cfg(feature = "process")]
    pub fn stderr(&self) -> Vec<String> {
        self.stderr.as_ref().map(Stderr::lines).unwrap_or_default()
    }

    /// Returns the stderr of the server's process, which can be read after the connection was closed too.
    ///
    /// ```
    /// # use mcp_elicit_client::Connection;
    /// async fn last_words(connection: Connection<()>) -> Vec<String> {
    ///     let Some(stderr) = connection.stderr_output() else { return Vec::new() };
    ///     connection.close().await;
    ///     stderr.drained().await;
    ///     stderr.lines()
    /// }
    /// ```
    #[cfg(feature = "process")]
    pub fn stderr_output(&self) -> Option<Stderr> {
        self.stderr.clone()
    }

    /// Closes the connection, and ends the server's process and everything that it started.
    ///
    /// ```
    /// use mcp_elicit_client::{CallError, CallOptions, Connection};
    ///
    /// async fn call_once(connection: Connection<()>) -> Result<(), CallError> {
    ///     let called = connection.call_tool("deploy", serde_json::Map::new(), &CallOptions::default()).await;
    ///     connection.close().await;
    ///     called.map(drop)
    /// }
    /// ```
    pub async fn close(mut self) {
        self.health.ended().cancel();
        if let Err(error) = self.service.close().await {
            tracing::error!(%error, "the connection's task failed");
        }
    }
}
