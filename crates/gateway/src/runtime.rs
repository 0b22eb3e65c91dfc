//! The parts of a running gateway beside its sessions: the record, the inbox, and the housekeeping between them.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_elicit_client::responder::{self, Responder, Terminal};
use mcp_elicit_forms::terminal::Frontend;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::config::{Config, LocalResponder, Server};
use crate::learned_facts::LearnedFacts;
use crate::responder_bridge::ResponderBridge;
use crate::server_identity::server_identity;
use crate::session::SessionContext;
use mcp_elicit_inbox::state_folder::{InboxLock, Presence, StateFolder};
use mcp_elicit_inbox::{Inbox, notify};
use mcp_elicit_record::store::{Memory, Sqlite, Store, StoreFault};
use mcp_elicit_record::{Book, KeyFileError, Keys, Lease, SessionIdentity, clock};
use mcp_elicit_relay::Audience;

/// The interval at which other gateways' answers are looked for.
const FOREIGN_CHANGES_INTERVAL: Duration = Duration::from_millis(400);
/// The interval at which questions whose time has run out are ended.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
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
    /// A key is lost that the record needs.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
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
        /// `true` if there is one, but it belongs to another program now.
        background: bool,
    },
    /// Only pages may answer, and a server's questions are put elsewhere, or there are no pages.
    #[error("only pages may answer here, {why}")]
    PagesOnly {
        /// The setting that does not go with it.
        why: String,
    },
    /// Anybody on the network could call the servers: there is no authentication yet.
    #[error(
        "{at} can be reached from the network, and the gateway does not ask its clients who they are"
    )]
    OpenToNetwork {
        /// The address.
        at: SocketAddr,
    },
    /// Every client has its own children, and there are too many.
    #[error("too many children run")]
    TooManyChildren,
    /// A server's address cannot be used.
    #[error("the server's address cannot be used: {why}")]
    Address {
        /// Why.
        why: String,
    },
}

/// The location of the inbox.
#[derive(Clone)]
enum InboxLocation {
    /// Nowhere: there is no inbox.
    Nowhere,
    /// At this gateway's.
    Here(Box<Inbox>),
    /// At another gateway's of the same person.
    Elsewhere(String),
}

/// The interval of checks that another gateway still serves the inbox.
const INBOX_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The number of checks, and their interval, that another gateway that has just started serves the inbox.
const ASKS: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(50);

/// The book, the inbox and the housekeeping of a running gateway.
#[derive(Clone)]
pub struct Runtime {
    /// The questions.
    pub book: Arc<Book>,
    /// The present location of the inbox.
    answering: watch::Sender<InboxLocation>,
    /// The responder that is asked at once, by the server's name.
    responders: Arc<HashMap<String, Arc<ResponderBridge>>>,
    /// Why the record could not be opened, as soon as that is known.
    opening: Option<watch::Receiver<Option<Arc<StoreFault>>>>,
    /// The facts learned of the servers.
    learning: LearnedFacts,
}

impl Runtime {
    /// Opens the record and serves the inbox. Runs in a tokio runtime, whose tasks keep house. Boxed as
    /// [`http::serve`](crate::listener::app::serve) is.
    ///
    /// Sets servers whose questions might go elsewhere to the inbox, where only pages may answer.
    pub fn open(config: &mut Config) -> BoxFuture<'_, Result<Self, StartError>> {
        Box::pin(Self::opened(config))
    }

    async fn opened(config: &mut Config) -> Result<Self, StartError> {
        check_addresses(config)?;
        let folder = folder(config.state.as_deref())?;
        apply_presence(config, &folder)?;
        let config = &*config;
        let mut opening = None;
        let keys = if config.in_memory {
            Keys::random().map_err(|source| folder.fault(source))?
        } else {
            folder.state.key_files().open().await?
        };
        let (store, lease) = if config.in_memory {
            let store: Arc<dyn Store> = Arc::new(Memory::keyed(keys.chain()));
            (store, Lease::alone())
        } else {
            let store = Arc::new(Sqlite::at(&folder.state.record()).keyed(keys.chain()));
            opening = Some(open_beside(store.clone()));
            let store: Arc<dyn Store> = store;
            (store, Lease::take(&folder.state.leases()))
        };
        let lease = lease.map_err(|source| folder.fault(source))?;
        let book = Arc::new(Book::new(store, keys, lease, clock::now).retaining(config.retention));
        let learning = learning_of(config, &book).await;
        spawn_housekeeping(book.clone(), learning.clone());
        let mut runtime = Self {
            book,
            answering: watch::Sender::new(InboxLocation::Nowhere),
            responders: Arc::default(),
            opening,
            learning,
        };
        if !config.in_memory
            && let Ok(Err(fault)) =
                tokio::time::timeout(INBOX_CHECK_INTERVAL, runtime.book.load_calls()).await
        {
            // What is wrong with the record is told when it is first needed.
            tracing::warn!(%fault, "results that were kept could not be read");
        }
        runtime.serve_inbox(config, &folder).await?;
        runtime.responders = Arc::new(runtime.start_responders(config)?);
        Ok(runtime)
    }

    /// Writes what was learned of the servers, and all that happened: the process is about to end.
    pub async fn close(&self) {
        let closed = async {
            self.learning.keep(&self.book).await?;
            self.book.flush().await
        };
        if let Err(fault) = closed.await {
            tracing::error!(%fault, "the record could not be kept");
        }
    }

    async fn serve_inbox(&mut self, config: &Config, folder: &Folder) -> Result<(), StartError> {
        let Some(at) = config.inbox else {
            return Ok(());
        };
        let may_move = config.inbox_may_move;
        if config.in_memory {
            // Its questions are in no record that other processes could share.
            let lock = match folder.state.served_inbox().await {
                Some(_) => None,
                None => lock(folder)?,
            };
            let listener = bind(at, may_move).await?;
            return self.serve_inbox_on(listener, at, folder, lock, config.notify);
        }
        for _ in 0..ASKS {
            if let Some(lock) = lock(folder)? {
                let listener = bind(at, may_move).await?;
                return self.serve_inbox_on(listener, at, folder, Some(lock), config.notify);
            }
            // Another gateway on the same record serves the same questions, as long as it runs.
            if let Some(base) = folder.state.served_inbox().await {
                if may_move || is_at(&base, at) {
                    self.answering.send_replace(InboxLocation::Elsewhere(base));
                    let runtime = self.clone();
                    tokio::spawn(runtime.take_over(at, may_move, folder.clone(), config.notify));
                    return Ok(());
                }
                break;
            }
            tokio::time::sleep(BETWEEN).await;
        }
        // An address of its own, beside that of the gateway which serves commands.
        let listener = bind(at, may_move).await?;
        self.serve_inbox_on(listener, at, folder, None, config.notify)
    }

    fn serve_inbox_on(
        &self,
        listener: TcpListener,
        at: SocketAddr,
        folder: &Folder,
        lock: Option<InboxLock>,
        notify: bool,
    ) -> Result<(), StartError> {
        let inbox = Inbox::serve(&self.book, listener, &folder.state, lock)
            .map_err(|source| folder.fault(source))?;
        tracing::debug!(%at, address = %inbox.address(), "the inbox is served");
        self.answering
            .send_replace(InboxLocation::Here(Box::new(inbox)));
        if notify {
            notify::start(self.book.clone());
        }
        Ok(())
    }

    /// Serves the inbox as soon as the gateway that does has ended, where that did if possible.
    async fn take_over(self, at: SocketAddr, may_move: bool, folder: Folder, notify: bool) {
        let mut held = None;
        let mut before = at;
        loop {
            tokio::time::sleep(INBOX_CHECK_INTERVAL).await;
            if let InboxLocation::Elsewhere(base) = &*self.answering.borrow()
                && let Some(served) = address(base)
            {
                before = served;
            }
            if held.is_none() {
                held = match lock(&folder) {
                    Ok(Some(lock)) => Some(lock),
                    // Another gateway may have been faster, at an address of its own.
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
            let served = self.serve_inbox_on(listener, before, &folder, held.take(), notify);
            if let Err(fault) = served {
                tracing::error!(%fault, "the inbox of a gateway that has ended could not be taken over");
            }
            return;
        }
    }

    /// Notes where the gateway that serves the inbox has it now.
    async fn follow(&self, folder: &Folder) {
        let Some(now) = folder.state.served_inbox().await else {
            return;
        };
        self.answering
            .send_if_modified(|answering| match answering {
                InboxLocation::Elsewhere(known) if *known != now => {
                    *known = now;
                    true
                }
                InboxLocation::Elsewhere(_) | InboxLocation::Here(_) | InboxLocation::Nowhere => {
                    false
                }
            });
    }

    /// Takes every question away from the terminal and the programs that it is put before.
    pub async fn stop_asking(&self) {
        for answerer in self.responders.values() {
            answerer.stop().await;
        }
    }

    /// Whoever is asked at once. The terminal is one, however many servers ask there.
    fn start_responders(
        &self,
        config: &Config,
    ) -> Result<HashMap<String, Arc<ResponderBridge>>, StartError> {
        let alone = matches!(*self.answering.borrow(), InboxLocation::Nowhere);
        let over = |responder: Arc<dyn Responder>| {
            ResponderBridge::new(self.book.clone(), responder, alone)
        };
        let mut terminal: Option<Arc<ResponderBridge>> = None;
        let mut found = HashMap::new();
        for server in &config.servers {
            let answerer = match (&server.answering, &terminal) {
                (None, _) => continue,
                (Some(LocalResponder::Terminal), Some(known)) => known.clone(),
                (Some(LocalResponder::Terminal), None) => {
                    let only = over(Arc::new(Terminal::new(terminal_frontend(config.plain)?)));
                    terminal = Some(only.clone());
                    only
                }
                (Some(LocalResponder::Program(program)), _) => over(Arc::new(
                    responder::Command::new(&program.program, &program.arguments),
                )),
            };
            found.insert(server.settings.server.clone(), answerer);
        }
        Ok(found)
    }

    /// Returns where people answer; the address signs nobody in.
    pub fn inbox(&self) -> Option<String> {
        match &*self.answering.borrow() {
            InboxLocation::Here(inbox) => Some(inbox.address()),
            InboxLocation::Elsewhere(base) => Some(format!("{base}/")),
            InboxLocation::Nowhere => None,
        }
    }

    /// Makes an address that signs a browser in, once: for the person only, at a terminal and in no log. `None` where this
    /// gateway does not serve the inbox.
    ///
    /// # Errors
    /// When the sessions cannot be written.
    pub fn login_link(&self) -> io::Result<Option<String>> {
        match &*self.answering.borrow() {
            InboxLocation::Here(inbox) => inbox.login_link().map(Some),
            InboxLocation::Elsewhere(_) | InboxLocation::Nowhere => Ok(None),
        }
    }

    /// Waits until people answer somewhere else than before; `false` when that cannot happen any more.
    pub async fn moved_inbox(&self) -> bool {
        let mut answering = self.answering.subscribe();
        answering.changed().await.is_ok()
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
    pub(crate) fn session_context(&self, server: &Server, caller: &str) -> SessionContext {
        let name = &server.settings.server;
        let key = self.book.identity_key();
        let identity = SessionIdentity {
            server: server_identity(server, key, std::env::vars_os()),
            caller: caller.to_owned(),
        };
        let answering = self.answering.clone();
        let link = move |id: &str| match &*answering.borrow() {
            InboxLocation::Here(inbox) => inbox.deep_link(id),
            InboxLocation::Elsewhere(base) => Some(format!("{base}/q/{id}")),
            InboxLocation::Nowhere => None,
        };
        SessionContext {
            server: name.clone(),
            identity,
            link: Arc::new(link),
            answerer: self.responders.get(name).cloned(),
        }
    }
}

/// Refuses addresses that the network would reach, before anything is opened or said.
///
/// # Errors
/// When the inbox, or without `insecure` the gateway itself, would be open to the network.
pub fn check_addresses(config: &Config) -> Result<(), StartError> {
    if let Some(at) = config
        .inbox
        .filter(|at| !mcp_elicit_inbox::is_loopback(*at))
    {
        return Err(StartError::NotLoopback { at });
    }
    let open = |at: &SocketAddr| !config.insecure && !at.ip().is_loopback();
    match config.listen.filter(open) {
        Some(at) => Err(StartError::OpenToNetwork { at }),
        None => Ok(()),
    }
}

/// Sets the folder to what the operator wants, and the servers to what holds for the folder.
fn apply_presence(config: &mut Config, folder: &Folder) -> Result<(), StartError> {
    if let Some(presence) = config.presence {
        let set = folder.state.set_presence(presence);
        set.map_err(|source| folder.fault(source))?;
    }
    let presence = folder.state.presence();
    if presence.map_err(|source| folder.fault(source))? == Presence::Any {
        return Ok(());
    }
    if config.inbox.is_none() {
        let why = "and there is no inbox".to_owned();
        return Err(StartError::PagesOnly { why });
    }
    for server in &mut config.servers {
        let settings = &mut server.settings;
        if server.answering.is_some() || settings.answer_with == Audience::Client {
            let why = format!("and `answer-with` of {} asks elsewhere", settings.server);
            return Err(StartError::PagesOnly { why });
        }
        settings.answer_with = Audience::People;
    }
    Ok(())
}

fn lock(folder: &Folder) -> Result<Option<InboxLock>, StartError> {
    folder
        .state
        .lock_inbox()
        .map_err(|source| folder.fault(source))
}

/// Listens there or, where something else does and any port will do, at a free one.
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
                    tracing::warn!(%at, "the inbox of another state folder is where the inbox usually is, so this one is at another port");
                } else {
                    tracing::warn!(%at, "something else listens where the inbox usually is, so it is at another port");
                }
            });
            Ok(listener)
        }
        Err(source) => Err(StartError::Listen { at, source }),
    }
}

/// Returns whether an inbox of mcp-elicit answers there, as far as that can be seen without showing it anything.
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

/// The address in the link to an inbox.
fn address(base: &str) -> Option<SocketAddr> {
    base.strip_prefix("http://")?.parse().ok()
}

fn is_at(base: &str, at: SocketAddr) -> bool {
    address(base) == Some(at)
}

#[derive(Clone)]
struct Folder {
    state: StateFolder,
    path: PathBuf,
}

impl Folder {
    fn fault(&self, source: io::Error) -> StartError {
        StartError::State {
            path: self.path.clone(),
            source,
        }
    }
}

fn folder(named: Option<&Path>) -> Result<Folder, StartError> {
    let path = named
        .map(Path::to_owned)
        .or_else(StateFolder::usual)
        .ok_or(StartError::NoState)?;
    let state = StateFolder::open(&path).map_err(|source| StartError::State {
        path: path.clone(),
        source,
    })?;
    Ok(Folder { state, path })
}

/// The terminal_frontend of the terminal that this process was started in.
fn terminal_frontend(plain: bool) -> Result<Frontend, StartError> {
    let terminal_frontend = if plain {
        Frontend::plain_on_tty()
    } else {
        Frontend::on_tty()
    };
    let terminal_frontend =
        terminal_frontend.map_err(|_| StartError::NoTerminal { background: false })?;
    if in_background() {
        return Err(StartError::NoTerminal { background: true });
    }
    Ok(terminal_frontend)
}

/// Returns whether the system stops this process as soon as it touches its terminal: another program is in the foreground,
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

/// Adds what earlier processes learned of the servers to their settings.
async fn learning_of(config: &Config, book: &Book) -> LearnedFacts {
    let server = |server: &Server| {
        let key = server_identity(server, book.identity_key(), std::env::vars_os()).key;
        (key, server.settings.clone())
    };
    let learning = LearnedFacts::of(config.servers.iter().map(server).collect());
    if !config.in_memory
        && let Ok(Err(fault)) =
            tokio::time::timeout(INBOX_CHECK_INTERVAL, learning.recall(book)).await
    {
        // What is wrong with the record is told when it is first needed.
        tracing::warn!(%fault, "what was learned of a server could not be read");
    }
    learning
}

fn spawn_housekeeping(book: Arc<Book>, learning: LearnedFacts) {
    let hears = book.clone();
    tokio::spawn(async move {
        loop {
            if let Err(fault) = hears.hear_others().await {
                tracing::warn!(%fault, "other gateways' answers could not be looked for");
            }
            if let Err(fault) = learning.keep(&hears).await {
                tracing::warn!(%fault, "what was learned of a server could not be kept");
            }
            tokio::time::sleep(FOREIGN_CHANGES_INTERVAL).await;
        }
    });
    tokio::spawn(async move {
        loop {
            if let Err(fault) = book.look_around().await {
                tracing::warn!(%fault, "questions whose time has run out could not be ended");
            }
            tokio::time::sleep(SWEEP_INTERVAL).await;
        }
    });
}
