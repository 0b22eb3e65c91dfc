//! The location of the inbox: in this gateway, in another gateway of the same person, or nowhere; and the move when
//! that gateway ends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use mcp_elicit_inbox::login::Teams;
use mcp_elicit_inbox::state_folder::InboxLock;
use mcp_elicit_inbox::{Inbox, OpenLink, desktop_notice};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{Folder, Runtime, StartError};
use crate::config::Config;

/// The location of the inbox.
#[derive(Clone)]
pub(super) enum InboxLocation {
    /// There is no inbox.
    Nowhere,
    /// In this gateway.
    Here(Box<Inbox>),
    /// In another gateway on the same record.
    Elsewhere(OtherInbox),
}

/// The inbox of another gateway.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct OtherInbox {
    /// The address at which that gateway listens.
    base: String,
    /// The address that people open, if the configuration names one.
    public: Option<String>,
}

impl OtherInbox {
    /// Returns the address that people open, without a trailing slash.
    pub(super) fn address(&self) -> &str {
        self.public.as_deref().unwrap_or(&self.base)
    }
}

/// The interval of checks that another gateway still serves the inbox.
pub(super) const INBOX_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The number of checks, and their interval, that a newly started gateway serves the inbox.
const ASKS: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(50);

/// Creates the additional routes at the inbox's address.
pub(super) type ExtraRoutes = Arc<dyn Fn() -> Router + Send + Sync>;

/// The settings of an inbox, wherever it is served.
#[derive(Clone)]
pub(super) struct Serving {
    notify: bool,
    open: Option<OpenLink>,
    teams: Option<Teams>,
    extra: ExtraRoutes,
}

impl Serving {
    /// Returns the inbox of another gateway that listens there.
    fn elsewhere(&self, base: String) -> OtherInbox {
        let public = self
            .teams
            .as_ref()
            .and_then(|teams| teams.login.address.clone());
        OtherInbox { base, public }
    }
}

impl Runtime {
    fn serving(&self, config: &Config, folder: &Folder) -> Serving {
        let (login, teams) = (config.login.as_ref(), self.teams.as_ref());
        let teams = login.zip(teams).map(|(login, teams)| {
            let (teams, asking) = (Arc::clone(teams), Arc::clone(teams));
            Teams {
                login: login.clone(),
                // Evaluated at each action.
                rules: Arc::new(move || teams.rules()),
                is_asked_by: Arc::new(move |rule, digest| asking.is_asked_by(rule, digest)),
                push: self.push_offer(),
            }
        });
        Serving {
            notify: config.notify,
            open: config.open_login,
            teams,
            extra: self.extra_routes(config, folder),
        }
    }

    pub(super) async fn serve_inbox(
        &mut self,
        config: &Config,
        folder: &Folder,
    ) -> Result<(), StartError> {
        let Some(at) = config.inbox else {
            return Ok(());
        };
        let may_move = config.inbox_may_move;
        let serving = self.serving(config, folder);
        if config.in_memory {
            // Its questions are in no record that other processes share.
            let lock = match folder.state.served_inbox().await {
                Some(_) => None,
                None => lock(folder)?,
            };
            let listener = bind(at, may_move).await?;
            return self.serve_inbox_on(listener, at, folder, lock, &serving);
        }
        for _ in 0..ASKS {
            if let Some(lock) = lock(folder)? {
                let listener = bind(at, may_move).await?;
                return self.serve_inbox_on(listener, at, folder, Some(lock), &serving);
            }
            // Another gateway on the same record serves the same questions while it runs.
            if let Some(base) = folder.state.served_inbox().await {
                if may_move || is_at(&base, at) {
                    let other = serving.elsewhere(base);
                    self.answering.send_replace(InboxLocation::Elsewhere(other));
                    let runtime = self.clone();
                    tokio::spawn(runtime.take_over(at, may_move, folder.clone(), serving));
                    return Ok(());
                }
                break;
            }
            tokio::time::sleep(BETWEEN).await;
        }
        // A separate address, besides that of the gateway which serves commands.
        let listener = bind(at, may_move).await?;
        self.serve_inbox_on(listener, at, folder, None, &serving)
    }

    fn serve_inbox_on(
        &self,
        listener: TcpListener,
        at: SocketAddr,
        folder: &Folder,
        lock: Option<InboxLock>,
        serving: &Serving,
    ) -> Result<(), StartError> {
        let inbox = Inbox::serve(
            &self.record,
            listener,
            &folder.state,
            lock,
            serving.teams.as_ref(),
            serving.open,
            (serving.extra)(),
        )
        .map_err(|source| folder.fault(source))?;
        tracing::debug!(%at, address = %inbox.address(), "the inbox is served");
        self.answering
            .send_replace(InboxLocation::Here(Box::new(inbox)));
        if serving.notify {
            desktop_notice::start(self.record.clone());
        }
        Ok(())
    }

    /// Serves the inbox once the gateway that does has ended, at its address if possible.
    async fn take_over(self, at: SocketAddr, may_move: bool, folder: Folder, serving: Serving) {
        let mut held = None;
        let mut before = at;
        loop {
            tokio::time::sleep(INBOX_CHECK_INTERVAL).await;
            if let InboxLocation::Elsewhere(other) = &*self.answering.borrow()
                && let Some(served) = address(&other.base)
            {
                before = served;
            }
            if held.is_none() {
                held = match lock(&folder) {
                    Ok(Some(lock)) => Some(lock),
                    // Another gateway may have been faster, at its own address.
                    Ok(None) => {
                        self.follow(&folder).await;
                        continue;
                    }
                    Err(fault) => {
                        tracing::error!(%fault, "the inbox of a gateway that has ended could not be taken over");
                        return;
                    }
                };
            }
            let Ok(listener) = bind(before, may_move).await else {
                continue;
            };
            let served = self.serve_inbox_on(listener, before, &folder, held.take(), &serving);
            if let Err(fault) = served {
                tracing::error!(%fault, "the inbox of a gateway that has ended could not be taken over");
            }
            return;
        }
    }

    /// Records the current address of the gateway that serves the inbox.
    async fn follow(&self, folder: &Folder) {
        let Some(now) = folder.state.served_inbox().await else {
            return;
        };
        self.answering
            .send_if_modified(|answering| match answering {
                InboxLocation::Elsewhere(known) if known.base != now => {
                    known.base = now;
                    true
                }
                InboxLocation::Elsewhere(_) | InboxLocation::Here(_) | InboxLocation::Nowhere => {
                    false
                }
            });
    }
}

fn lock(folder: &Folder) -> Result<Option<InboxLock>, StartError> {
    folder
        .state
        .lock_inbox()
        .map_err(|source| folder.fault(source))
}

/// Listens there or, if the address is in use and any port will do, at a free one.
async fn bind(at: SocketAddr, may_move: bool) -> Result<TcpListener, StartError> {
    match TcpListener::bind(at).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && may_move => {
            let free = SocketAddr::new(at.ip(), 0);
            let listener = TcpListener::bind(free).await;
            let listener = listener.map_err(|source| StartError::Listen { at: free, source })?;
            // The first message does not wait for this.
            tokio::spawn(async move {
                if is_inbox(at).await {
                    // As it should be: each state folder has an inbox, and this one's address is told with the questions.
                    tracing::debug!(%at, "the inbox of another state folder is where the inbox usually is, so this one is at another port");
                } else {
                    tracing::warn!(%at, "something else listens where the inbox usually is, so it is at another port");
                }
            });
            Ok(listener)
        }
        Err(source) => Err(StartError::Listen { at, source }),
    }
}

/// Returns `true` if an inbox of mcp-elicit answers there, as far as can be seen without sending it a secret.
async fn is_inbox(at: SocketAddr) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(at).await?;
        let request =
            format!("GET /api/questions HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut reply = Vec::new();
        stream.take(4_096).read_to_end(&mut reply).await?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&reply).contains("\"no-token\""))
    };
    let asked = tokio::time::timeout(Duration::from_secs(2), asked).await;
    matches!(asked, Ok(Ok(true)))
}

/// Returns the address in the link to an inbox.
fn address(base: &str) -> Option<SocketAddr> {
    base.strip_prefix("http://")?.parse().ok()
}

fn is_at(base: &str, at: SocketAddr) -> bool {
    address(base) == Some(at)
}
