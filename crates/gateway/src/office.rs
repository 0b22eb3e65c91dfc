//! What one running gateway has beside its sessions: the book, the inbox, and the housekeeping between them.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_elicit_client::responder::{self, Responder, Terminal};
use mcp_elicit_forms::terminal::Face;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::answerer::Answerer;
use crate::config::{Answering, Config, Server};
use crate::inbox::Inbox;
use crate::inbox::client::InboxClient;
use crate::inbox::place::StateFolder;
use crate::record::{Book, Keys, Lease, SessionIdentity};
use crate::serve::clock;
use crate::serve::session::Who;
use crate::server_identity::server_identity;
use crate::store::{Memory, Sqlite, Store, StoreFault};

/// How often other gateways' answers are looked for.
const HEARING: Duration = Duration::from_millis(400);
/// How often questions whose time has run out are ended.
const ROUNDS: Duration = Duration::from_secs(30);

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// The state folder cannot be used.
    #[error("the state folder {} cannot be used", path.display())]
    State {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The user has no home.
    #[error("there is no state folder; name one")]
    NoState,
    /// The record cannot be opened.
    #[error(transparent)]
    Record(#[from] Arc<StoreFault>),
    /// An address cannot be served.
    #[error("cannot serve at {at}")]
    Listen {
        /// The address.
        at: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The inbox would be open to the network.
    #[error("the inbox is for this machine: {at} is no loopback address")]
    NotLoopback {
        /// The address.
        at: SocketAddr,
    },
    /// The server's program cannot be started.
    #[error("cannot start the server {server}")]
    Program {
        /// The server.
        server: String,
        /// Why.
        source: io::Error,
    },
    /// There is no terminal to ask in, or this process may not read its keys.
    #[error("there is no terminal to ask in{}", if *background { ": this process is not in its foreground" } else { "" })]
    NoTerminal {
        /// Whether there is one, but it belongs to another program now.
        background: bool,
    },
    /// A server's address cannot be used.
    #[error("the server's address cannot be used: {why}")]
    Address {
        /// Why.
        why: String,
    },
}

/// Where people answer.
#[derive(Clone)]
enum AnsweredAt {
    /// Nowhere: there is no inbox.
    Nowhere,
    /// At this gateway's.
    Here(Inbox),
    /// At another gateway's of the same person.
    Elsewhere(String),
}

/// How often it is looked whether another gateway still serves the inbox.
const LOOKING: Duration = Duration::from_secs(1);
/// How often, and how long apart, another gateway that has just been started is asked whether it serves the inbox.
const ASKS: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(50);

/// The book, the inbox and the housekeeping of a running gateway.
#[derive(Clone)]
pub struct Office {
    /// The questions.
    pub book: Arc<Book>,
    /// Where people answer, as it is now.
    answering: watch::Sender<AnsweredAt>,
    /// Who is asked at once, by the server's name.
    answerers: Arc<HashMap<String, Arc<Answerer>>>,
    /// Why the record could not be opened, as soon as that is known.
    opening: Option<watch::Receiver<Option<Arc<StoreFault>>>>,
}

impl Office {
    /// Opens the record and serves the inbox. Runs in a tokio runtime, whose tasks keep house. Boxed as
    /// [`http::serve`](crate::serve::http::serve) is.
    pub fn open(config: &Config) -> BoxFuture<'_, Result<Self, StartFault>> {
        Box::pin(Self::opened(config))
    }

    async fn opened(config: &Config) -> Result<Self, StartFault> {
        let folder = folder(config.state.as_deref())?;
        let mut opening = None;
        let (store, keys, lease) = if config.in_memory {
            let store: Arc<dyn Store> = Arc::new(Memory::default());
            (store, Keys::random(), Lease::alone())
        } else {
            let store = Arc::new(Sqlite::at(&folder.state.record()));
            opening = Some(open_beside(store.clone()));
            let store: Arc<dyn Store> = store;
            (
                store,
                Keys::kept(&folder.state.seal(), &folder.state.identity()),
                Lease::take(&folder.state.leases()),
            )
        };
        let keys = keys.map_err(|source| folder.fault(source))?;
        let lease = lease.map_err(|source| folder.fault(source))?;
        let book = Arc::new(Book::new(store, keys, lease, clock::now).retaining(config.retention));
        keep_house(book.clone());
        let mut office = Self {
            book,
            answering: watch::Sender::new(AnsweredAt::Nowhere),
            answerers: Arc::default(),
            opening,
        };
        if !config.in_memory
            && let Ok(Err(fault)) = tokio::time::timeout(LOOKING, office.book.load_calls()).await
        {
            // What is wrong with the record is told when it is first needed.
            tracing::warn!(%fault, "results that were kept could not be read");
        }
        office.serve_inbox(config, &folder).await?;
        office.answerers = Arc::new(office.meet_answerers(config)?);
        Ok(office)
    }

    async fn serve_inbox(&mut self, config: &Config, folder: &Folder) -> Result<(), StartFault> {
        let Some(at) = config.inbox else {
            return Ok(());
        };
        if !crate::inbox::is_loopback(at) {
            return Err(StartFault::NotLoopback { at });
        }
        let taken = match TcpListener::bind(at).await {
            Ok(listener) => return self.serve_inbox_on(listener, at, folder),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => error,
            Err(source) => return Err(StartFault::Listen { at, source }),
        };
        // Another gateway on the same record serves the same questions, as long as it runs.
        if !config.in_memory
            && let Some(served) = serves_the_same(at, config.inbox_may_move, &folder.state).await
        {
            let base = format!("http://{served}");
            self.answering.send_replace(AnsweredAt::Elsewhere(base));
            tokio::spawn(self.clone().take_over(served, folder.clone()));
            return Ok(());
        }
        if !config.inbox_may_move {
            return Err(StartFault::Listen { at, source: taken });
        }
        let free = SocketAddr::new(at.ip(), 0);
        let listener = TcpListener::bind(free).await;
        let listener = listener.map_err(|source| StartFault::Listen { at: free, source })?;
        tracing::warn!(%at, "something else listens where the inbox usually is, so it is at another port");
        self.serve_inbox_on(listener, free, folder)
    }

    fn serve_inbox_on(
        &self,
        listener: TcpListener,
        at: SocketAddr,
        folder: &Folder,
    ) -> Result<(), StartFault> {
        let token = folder
            .state
            .token()
            .map_err(|source| folder.fault(source))?;
        let served = listener
            .local_addr()
            .map_err(|source| StartFault::Listen { at, source })?;
        let inbox = Inbox::serve(self.book.clone(), listener, &token, std::future::pending())
            .map_err(|source| StartFault::Listen { at, source })?;
        folder
            .state
            .write_inbox(served)
            .map_err(|source| folder.fault(source))?;
        self.answering.send_replace(AnsweredAt::Here(inbox));
        Ok(())
    }

    /// Serves the inbox as soon as the gateway that does has ended.
    async fn take_over(self, at: SocketAddr, folder: Folder) {
        loop {
            tokio::time::sleep(LOOKING).await;
            let Ok(listener) = TcpListener::bind(at).await else {
                continue;
            };
            if let Err(fault) = self.serve_inbox_on(listener, at, &folder) {
                tracing::error!(%fault, "the inbox of a gateway that has ended could not be taken over");
            }
            return;
        }
    }

    /// Whoever is asked at once. The terminal is one, however many servers ask there.
    fn meet_answerers(
        &self,
        config: &Config,
    ) -> Result<HashMap<String, Arc<Answerer>>, StartFault> {
        let alone = matches!(*self.answering.borrow(), AnsweredAt::Nowhere);
        let over =
            |responder: Arc<dyn Responder>| Answerer::new(self.book.clone(), responder, alone);
        let mut terminal: Option<Arc<Answerer>> = None;
        let mut found = HashMap::new();
        for server in &config.servers {
            let answerer = match (&server.answering, &terminal) {
                (None, _) => continue,
                (Some(Answering::Terminal), Some(known)) => known.clone(),
                (Some(Answering::Terminal), None) => {
                    let only = over(Arc::new(Terminal::new(face()?)));
                    terminal = Some(only.clone());
                    only
                }
                (Some(Answering::Program(program)), _) => over(Arc::new(responder::Command::new(
                    &program.program,
                    &program.arguments,
                ))),
            };
            found.insert(server.settings.server.clone(), answerer);
        }
        Ok(found)
    }

    /// Where people answer: with the login for the person, to be shown on stderr only.
    pub fn login_link(&self) -> Option<String> {
        match &*self.answering.borrow() {
            AnsweredAt::Here(inbox) => Some(inbox.login_link()),
            AnsweredAt::Elsewhere(base) => Some(base.clone()),
            AnsweredAt::Nowhere => None,
        }
    }

    /// Waits until people answer somewhere else than before; the link as [`Office::login_link`] has it.
    pub async fn moved_inbox(&self) -> Option<String> {
        let mut answering = self.answering.subscribe();
        answering.changed().await.ok()?;
        self.login_link()
    }

    /// Waits until the record turns out to be unusable, which is for ever when it is not.
    pub async fn broken_record(&self) -> Arc<StoreFault> {
        let broken = async {
            let mut opening = self.opening.clone()?;
            let fault = opening.wait_for(Option::is_some).await.ok()?;
            fault.clone()
        };
        match broken.await {
            Some(fault) => fault,
            None => std::future::pending().await,
        }
    }

    /// A session of this caller with this server.
    pub fn who(&self, server: &Server, caller: &str) -> Who {
        let name = &server.settings.server;
        let key = self.book.identity_key();
        let identity = SessionIdentity {
            server: server_identity(server, key, std::env::vars_os()),
            caller: caller.to_owned(),
        };
        let answering = self.answering.clone();
        let link = move |id: &str| match &*answering.borrow() {
            AnsweredAt::Here(inbox) => inbox.deep_link(id),
            AnsweredAt::Elsewhere(base) => Some(format!("{base}/q/{id}")),
            AnsweredAt::Nowhere => None,
        };
        Who {
            server: name.clone(),
            identity,
            link: Arc::new(link),
            answerer: self.answerers.get(name).cloned(),
        }
    }
}

/// The address of the inbox that another gateway on the same record serves there, or `elsewhere`; `None` when it is
/// somebody else who listens. One that has just been started is given a moment.
async fn serves_the_same(
    at: SocketAddr,
    elsewhere: bool,
    state: &StateFolder,
) -> Option<SocketAddr> {
    for _ in 0..ASKS {
        if let (Some(base), Ok(token)) = (state.inbox(), state.known_token())
            && let Some(served) = base.strip_prefix("http://")
            && let Ok(served) = served.parse()
            && (elsewhere || served == at)
            && let Ok(inbox) = InboxClient::new(&base, token)
            && let Ok(Ok(_)) = tokio::time::timeout(LOOKING, inbox.page(false, None, 1)).await
        {
            return Some(served);
        }
        tokio::time::sleep(BETWEEN).await;
    }
    None
}

#[derive(Clone)]
struct Folder {
    state: StateFolder,
    path: PathBuf,
}

impl Folder {
    fn fault(&self, source: io::Error) -> StartFault {
        StartFault::State {
            path: self.path.clone(),
            source,
        }
    }
}

fn folder(named: Option<&Path>) -> Result<Folder, StartFault> {
    let path = named
        .map(Path::to_owned)
        .or_else(StateFolder::usual)
        .ok_or(StartFault::NoState)?;
    let state = StateFolder::open(&path).map_err(|source| StartFault::State {
        path: path.clone(),
        source,
    })?;
    Ok(Folder { state, path })
}

/// The face of the terminal that this process was started in.
fn face() -> Result<Face, StartFault> {
    let face = Face::on_tty().map_err(|_| StartFault::NoTerminal { background: false })?;
    if in_background() {
        return Err(StartFault::NoTerminal { background: true });
    }
    Ok(face)
}

/// Whether the system stops this process as soon as it touches its terminal: another program is in the foreground,
/// such as a client that starts its servers as process groups of their own.
#[cfg(unix)]
fn in_background() -> bool {
    let tty = std::fs::File::open("/dev/tty");
    let foreground = tty
        .ok()
        .and_then(|tty| rustix::termios::tcgetpgrp(&tty).ok());
    foreground.is_some_and(|group| group != rustix::process::getpgrp())
}

#[cfg(not(unix))]
fn in_background() -> bool {
    false
}

/// Opens the record beside everything else: the first message need not wait for it, only the first question.
fn open_beside(store: Arc<Sqlite>) -> watch::Receiver<Option<Arc<StoreFault>>> {
    let (tell, told) = watch::channel(None);
    tokio::spawn(async move {
        if let Err(fault) = store.ready().await {
            // Nobody listens where the gateway has ended already.
            let _ = tell.send(Some(Arc::new(fault)));
        }
    });
    told
}

fn keep_house(book: Arc<Book>) {
    let hears = book.clone();
    tokio::spawn(async move {
        loop {
            if let Err(fault) = hears.hear_others().await {
                tracing::warn!(%fault, "other gateways' answers could not be looked for");
            }
            tokio::time::sleep(HEARING).await;
        }
    });
    tokio::spawn(async move {
        loop {
            if let Err(fault) = book.look_around().await {
                tracing::warn!(%fault, "questions whose time has run out could not be ended");
            }
            tokio::time::sleep(ROUNDS).await;
        }
    });
}
