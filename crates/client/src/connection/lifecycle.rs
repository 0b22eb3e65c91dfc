//! Detection of the era. The only file here that knows how each era begins.
//!
//! rmcp does the handshakes, with three behaviours that are handled here. Its default client info names 2026-07-28
//! inside `initialize`, so the version is always set. Its probe times out after ten seconds and then takes a late
//! response for the wrong one, so [`LateAnswers`] drops those. And a server that exits on an unknown method is started
//! again. If the pushed era is tried first, [`PushedFirst`] changes the order.

use std::collections::HashSet;
#[cfg(feature = "process")]
use std::ffi::OsString;

#[cfg(feature = "process")]
use mcp_elicit_core::fault::code;
use mcp_elicit_core::wire::{Era, Revision};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _};
use rmcp::transport::Transport;
use rmcp::{ClientHandler, RoleClient};
use tokio::io::{AsyncRead, AsyncWrite};

#[cfg(feature = "process")]
use super::TransportError;
use super::error::shortened;
use super::pushed_first::PushedFirst;
use super::stdio::LineTransport;
use super::{ConnectError, ConnectOptions, Connection, Health};
use crate::eliciting::ElicitingClient;

/// The newest revision with a handshake, requested when a server turns out to be older.
const OLDER: ProtocolVersion = ProtocolVersion::V_2025_11_25;
const NEWEST: ProtocolVersion = ProtocolVersion::V_2026_07_28;

fn mode(revision: Option<Revision>) -> ClientLifecycleMode {
    match revision {
        None => ClientLifecycleMode::Auto {
            preferred_versions: vec![NEWEST],
            legacy_version: Some(OLDER),
        },
        Some(Revision::V2026_07_28) => ClientLifecycleMode::Discover {
            preferred_versions: vec![NEWEST],
        },
        Some(Revision::V2025_06_18 | Revision::V2025_11_25) => ClientLifecycleMode::Initialize,
    }
}

#[cfg(feature = "process")]
pub(super) async fn open_child<H: ClientHandler>(
    program: &OsString,
    arguments: &[OsString],
    eliciting: ElicitingClient<H>,
    options: &ConnectOptions,
) -> Result<Connection<H>, ConnectError> {
    let started = |health: &Health| {
        super::child::Child::start(
            program,
            arguments,
            &options.environment,
            options.frame_limit,
            health.clone(),
        )
        .map_err(|source| ConnectError::Start {
            program: program.to_string_lossy().into_owned(),
            source,
        })
    };
    let attempt = async |revision: Option<Revision>| {
        let health = Health::default();
        let (child, stderr) = started(&health)?;
        let heard = health.clone();
        let opening = OpeningMode::of(revision, options.first_era);
        match begin(
            LateAnswers::new(pushed_first(child, &eliciting, opening)),
            eliciting.clone(),
            opening,
            options,
            health,
        )
        .await
        {
            Ok(mut connection) => {
                connection.stderr = Some(stderr);
                Ok(connection)
            }
            Err(error) => {
                if matches!(error, ConnectError::Broken { .. }) {
                    stderr.drained().await;
                }
                Err(error.with_output(stderr.lines(), heard.first_stray_line()))
            }
        }
    };
    match (attempt(options.revision).await, options.revision) {
        // It exited on an unknown method: an older server that does not survive the probe.
        (
            Err(ConnectError::Broken {
                source: TransportError::Ended { .. } | TransportError::Closed,
                ..
            }),
            None,
        ) => {
            tracing::debug!("the server ended at the probe; started again in the other era");
            attempt(Some(match options.first_era {
                Era::Rounds => Revision::V2025_11_25,
                Era::Pushed => Revision::V2026_07_28,
            }))
            .await
        }
        // It took longer to start than rmcp's probe waits, as with a package manager, and then failed the handshake.
        (
            Err(ConnectError::Refused {
                code: code::UNSUPPORTED_REVISION,
                ..
            }),
            None,
        ) => {
            tracing::debug!(
                "the server was slow to start and speaks the newest revision only; started again"
            );
            attempt(Some(Revision::V2026_07_28)).await
        }
        (outcome, _) => outcome,
    }
}

#[cfg(feature = "http")]
pub(super) async fn open_http<H, C>(
    url: &str,
    eliciting: ElicitingClient<H>,
    options: &ConnectOptions,
    wrap: impl FnOnce(super::Http) -> C,
) -> Result<Connection<H>, ConnectError>
where
    H: ClientHandler,
    C: rmcp::transport::streamable_http_client::StreamableHttpClient + Send + Sync,
{
    use rmcp::transport::StreamableHttpClientTransport;
    use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

    let health = Health::default();
    let http = super::Http::for_server(url, options, health.clone())?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.max_sse_event_size = options.frame_limit;
    config.auth_header = options
        .token
        .as_ref()
        .map(|token| token.secret().to_owned());
    config.custom_headers = options.headers.iter().cloned().collect();
    let client = wrap(http);
    let transport = || StreamableHttpClientTransport::with_client(client.clone(), config.clone());
    if (options.revision, options.first_era) != (None, Era::Pushed) {
        let opening = OpeningMode::negotiated(options.revision);
        return Box::pin(begin(transport(), eliciting, opening, options, health)).await;
    }
    let in_session = begin(
        transport(),
        eliciting.clone(),
        OpeningMode::Session,
        options,
        health.clone(),
    );
    let rounds = OpeningMode::Only(Revision::V2026_07_28);
    match Box::pin(in_session).await {
        Ok(session) => {
            let cannot_push = !health.has_session_id();
            if !cannot_push && !session.declares_every_era() {
                return Ok(session);
            }
            // Its session stays, in case the server does not speak the rounds era.
            match Box::pin(begin(transport(), eliciting, rounds, options, health)).await {
                Ok(connection) => {
                    session.leave().await;
                    Ok(connection)
                }
                Err(error) => {
                    tracing::debug!(%error, "the server has only sessions");
                    let agreed = session.protocol();
                    session.eliciting().speaks(&agreed, session.server());
                    Ok(session)
                }
            }
        }
        Err(error @ (ConnectError::Unauthorized { .. } | ConnectError::TimedOut { .. })) => {
            Err(error)
        }
        Err(refused) => {
            tracing::debug!(error = %refused, "the server opens no session");
            let in_rounds = Box::pin(begin(transport(), eliciting, rounds, options, health)).await;
            in_rounds.map_err(|_| refused)
        }
    }
}

/// The way in which a connection is opened.
#[derive(Clone, Copy)]
enum OpeningMode {
    /// `server/discover` first, then `initialize`.
    Auto,
    /// `initialize` first, then `server/discover`, on the same connection.
    PushedFirst,
    /// `initialize`, at the newest revision that the server agrees to.
    #[cfg(feature = "http")]
    Session,
    /// One revision.
    Only(Revision),
}

impl OpeningMode {
    #[cfg(feature = "http")]
    fn negotiated(revision: Option<Revision>) -> Self {
        revision.map_or(Self::Auto, Self::Only)
    }

    /// Returns the way for these options, over a connection on which both eras can be tried.
    fn of(revision: Option<Revision>, first: Era) -> Self {
        match (revision, first) {
            (Some(revision), _) => Self::Only(revision),
            (None, Era::Rounds) => Self::Auto,
            (None, Era::Pushed) => Self::PushedFirst,
        }
    }

    /// Returns the revision that is requested, if there is only one.
    fn requested(self) -> Option<Revision> {
        match self {
            Self::Auto | Self::PushedFirst => None,
            #[cfg(feature = "http")]
            Self::Session => Some(Revision::V2025_11_25),
            Self::Only(revision) => Some(revision),
        }
    }

    /// Returns the revision that the server has to agree on.
    fn only(self) -> Option<Revision> {
        match self {
            Self::Only(revision) => Some(revision),
            _ => None,
        }
    }
}

pub(super) async fn open_pipe<H, R, W>(
    read: R,
    write: W,
    eliciting: ElicitingClient<H>,
    options: &ConnectOptions,
) -> Result<Connection<H>, ConnectError>
where
    H: ClientHandler,
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let health = Health::default();
    let lines = LineTransport::new(read, write, options.frame_limit, health.clone());
    let opening = OpeningMode::of(options.revision, options.first_era);
    let transport = LateAnswers::new(pushed_first(lines, &eliciting, opening));
    begin(transport, eliciting, opening, options, health).await
}

/// Wraps a transport so that `initialize` goes first, if it is to.
fn pushed_first<H: ClientHandler, T>(
    transport: T,
    eliciting: &ElicitingClient<H>,
    opening: OpeningMode,
) -> PushedFirst<T> {
    let initialize = matches!(opening, OpeningMode::PushedFirst).then(|| {
        let mut info = rmcp::service::Service::<RoleClient>::get_info(eliciting);
        info.protocol_version = OLDER;
        info
    });
    PushedFirst::new(transport, initialize)
}

async fn begin<H, T>(
    transport: T,
    eliciting: ElicitingClient<H>,
    opening: OpeningMode,
    options: &ConnectOptions,
    health: Health,
) -> Result<Connection<H>, ConnectError>
where
    H: ClientHandler,
    T: Transport<RoleClient> + 'static,
{
    let (requested, revision) = (opening.requested(), opening.only());
    let asked = requested.map_or_else(
        || NEWEST.to_string(),
        |revision| revision.as_str().to_owned(),
    );
    eliciting.will_speak(requested, health.ended().clone());
    let begun = eliciting
        .clone()
        .serve_with_lifecycle(transport, mode(requested));
    let service = match tokio::time::timeout(options.within, begun).await {
        Ok(Ok(service)) => service,
        Ok(Err(error)) => {
            return Err(match health.transport_error() {
                Some(source) => ConnectError::Broken {
                    source,
                    stderr: Vec::new(),
                    stdout: None,
                },
                None => ConnectError::from_rmcp(error, &asked, &health),
            });
        }
        Err(_) => {
            return Err(ConnectError::TimedOut {
                within: options.within,
                stderr: Vec::new(),
                stdout: None,
            });
        }
    };
    let connection = Connection {
        service,
        health,
        #[cfg(feature = "process")]
        stderr: None,
    };
    let agreed = connection.protocol();
    if revision.is_some_and(|revision| revision.as_str() != agreed) || is_foreign(&agreed) {
        let offered = shortened(connection.health().masked(&agreed));
        connection.close().await;
        return Err(ConnectError::NoCommonRevision {
            asked,
            offered: vec![offered],
        });
    }
    connection.eliciting().speaks(&agreed, connection.server());
    Ok(connection)
}

/// Returns `true` if this version is not supported, so that the connection must not go on (2025-11-25, Lifecycle,
/// "Version Negotiation"). Drafts before the first published version differ in nothing that matters here.
fn is_foreign(version: &str) -> bool {
    let known = ProtocolVersion::KNOWN_VERSIONS;
    known.iter().all(|known| known.as_str() != version)
        && known.first().is_some_and(|first| version >= first.as_str())
}

/// A transport that drops responses to a timed-out probe, so that they are not taken for the response to `initialize`.
struct LateAnswers<T> {
    inner: T,
    probes: HashSet<RequestId>,
    given_up: bool,
}

impl<T> LateAnswers<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            probes: HashSet::new(),
            given_up: false,
        }
    }

    fn is_late(&self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        self.given_up && id.is_some_and(|id| self.probes.contains(id))
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for LateAnswers<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let ClientJsonRpcMessage::Request(request) = &message {
            match &request.request {
                ClientRequest::DiscoverRequest(_) => {
                    self.probes.insert(request.id.clone());
                }
                ClientRequest::InitializeRequest(_) => self.given_up = true,
                _ => {}
            }
        }
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = self.inner.receive().await?;
            if !self.is_late(&message) {
                return Some(message);
            }
            tracing::debug!("a late answer to the probe was dropped");
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use super::is_foreign;

    #[test]
    fn a_version_that_nobody_here_speaks_ends_the_connection() {
        for version in ["2099-01-01", "2026-01-01", "DRAFT-2027", "x"] {
            assert!(is_foreign(version), "{version}");
        }
        for version in [
            "2026-07-28",
            "2025-06-18",
            "2025-03-26",
            "2024-11-05",
            "2024-10-07",
        ] {
            assert!(!is_foreign(version), "{version}");
        }
    }
}
