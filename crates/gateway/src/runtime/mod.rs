//! The parts of a running gateway besides its sessions: the record, the inbox, and maintenance.

pub(crate) mod current_file;
mod inbox_location;
#[cfg(feature = "teams")]
mod notifying;
#[cfg(not(feature = "teams"))]
#[path = "notifying_absent.rs"]
mod notifying;
mod other_record;
#[cfg(feature = "postgres")]
mod password_command;
mod reload;
#[cfg(feature = "postgres")]
mod shared_record;
#[cfg(not(feature = "postgres"))]
#[path = "shared_record_absent.rs"]
mod shared_record;
mod start_checks;
mod start_error;
mod terminal;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{Notify, watch};

use current_file::{CurrentFile, ServedServer};
use inbox_location::{INBOX_CHECK_INTERVAL, InboxLocation};
pub use reload::{ReadFile, ReloadError, Reloaded};
pub use shared_record::database_record;
#[cfg(feature = "postgres")]
pub use shared_record::{migrate, planned_migration};
pub use start_error::StartError;

use crate::callers::{Callers, SessionCaller};
use crate::config::{Auth, Config, ConfiguredServer, HttpTarget, ServerTarget};
use crate::current_rules::CurrentRules;
use crate::learned_facts::LearnedFacts;
use crate::listener::peers::{Joining, Peers};
use crate::server_identity::server_identity;
use crate::server_secrets::secrets_of;
use crate::session::SessionContext;
use crate::traces::Traces;
use mcp_elicit_inbox::login::{LoginMode, LoginSettings};
use mcp_elicit_inbox::seen_audit::{SeenAudit, SeenCheck};
use mcp_elicit_inbox::state_folder::{RequiredPresence, StateFolder};
use mcp_elicit_record::store::{Memory, RecordStore, RecordStoreError, Sqlite};
use mcp_elicit_record::{LockFile, OwnKeys, Record, SessionIdentity, clock};
use mcp_elicit_relay::Audience;

/// The interval at which other gateways' answers are checked.
const FOREIGN_CHANGES_INTERVAL: Duration = Duration::from_millis(400);
/// The same interval for a record that machines share, which sends notices of changes too.
const SHARED_CHANGES_INTERVAL: Duration = Duration::from_secs(2);
/// The interval at which the facts that other gateways learn about servers are read.
const RECALL_INTERVAL: Duration = Duration::from_secs(1);
/// The interval at which expired questions are ended.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// Returns the page of a question, if there is an inbox now.
pub(crate) type QuestionLinks = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The record, the inbox and the maintenance of a running gateway.
#[derive(Clone)]
pub struct Runtime {
    /// The questions.
    pub record: Arc<Record>,
    /// The current location of the inbox.
    answering: watch::Sender<InboxLocation>,
    /// The contents of the file.
    current: Arc<CurrentFile>,
    /// Locked while the file is read again.
    reloading: Arc<tokio::sync::Mutex<()>>,
    /// The state folder.
    folder: Folder,
    /// The error of opening the record, once it is known.
    opening: Option<watch::Receiver<Option<Arc<RecordStoreError>>>>,
    /// The facts learned about the servers.
    learning: LearnedFacts,
    /// The callers over HTTP.
    pub(crate) callers: Arc<Callers>,
    /// This gateway among those that take each other's requests, if it does.
    pub(crate) peers: Option<Arc<Peers>>,
    /// The rules, if there are any.
    teams: Option<Arc<CurrentRules>>,
    /// The machine and the state folder, for the audit.
    gateway: Arc<str>,
    /// The traces, if a collector is configured.
    pub(crate) traces: Option<Arc<Traces>>,
    /// `true` if the file is read again on SIGHUP.
    reads_again: Arc<AtomicBool>,
    /// The notes of the audit's end, unless the record is in memory.
    seen_notes: Option<Arc<SeenNotes>>,
    /// The messages to people, if there are rules.
    #[cfg(feature = "teams")]
    notifier: Option<Arc<crate::notifier::Notifier>>,
}

impl Runtime {
    /// Opens the record and serves the inbox. Must be called in a tokio runtime, whose tasks do the maintenance. Boxed
    /// like [`http::serve`](crate::listener::app::serve).
    ///
    /// Routes servers whose questions might go elsewhere to the inbox, if only pages may answer.
    pub fn open(config: &mut Config) -> BoxFuture<'_, Result<Self, StartError>> {
        Box::pin(Self::opened(config))
    }

    async fn opened(config: &mut Config) -> Result<Self, StartError> {
        check_addresses(config)?;
        let mut folder = folder(config.state.as_deref())?;
        apply_presence(config, &folder)?;
        open_sign_ins(&config.servers, &folder)?;
        let config = &*config;
        warn_of_local_proxies(config);
        let mut opening = None;
        let database = match &config.database {
            Some(database) => Some(shared_record::share_keys(database, &folder.state).await?),
            None => None,
        };
        let keys = if config.in_memory {
            OwnKeys::random().map_err(|source| folder.fault(source))?
        } else {
            folder.state.key_files().open().await?
        };
        let (mut notices, mut peers) = (None, None);
        let (store, lease) = if let Some(shared) = database.zip(config.database.as_ref()) {
            let (database, named) = shared;
            let (joining, offer) = match &config.peers {
                Some(settings) => {
                    let joining = Joining::bind(settings, &keys.identity)?;
                    let offer = joining.offer();
                    (Some(joining), Some(offer))
                }
                None => (None, None),
            };
            let shared = shared_record::open(database, &keys, offer, &mut folder.state).await?;
            notices = Some(shared.notices);
            peers = joining.map(|joining| Arc::new(joining.among(shared.gateways)));
            refuse_replaced(&*shared.store, &folder, Some(named.address())).await?;
            note_address(&folder, named.address())?;
            (shared.store, Ok(shared.place))
        } else if config.in_memory {
            let store: Arc<dyn RecordStore> = Arc::new(Memory::keyed(keys.chain()));
            (store, LockFile::unshared())
        } else {
            other_record::refuse_file(&folder).await?;
            let store = Arc::new(Sqlite::at(&folder.state.record()).with_keys(&keys));
            refuse_replaced(&*store, &folder, None).await?;
            opening = Some(open_in_background(store.clone()));
            let store: Arc<dyn RecordStore> = store;
            (store, LockFile::acquire(&folder.state.leases()))
        };
        let lease = lease.map_err(|source| folder.fault(source))?;
        let record = Arc::new(
            Record::new(store, keys, lease, clock::now)
                .with_retention(config.retention)
                .with_storage_limits(config.byte_limits.questions)
                .with_delivering_sessions(),
        );
        let traces = Traces::begin(config.traces.as_deref(), &record);
        let learning = LearnedFacts::default();
        let callers = Callers::new(
            &config.auth,
            config.login.as_ref().map(LoginSettings::issuer),
            folder.state.api_tokens(),
            record.identity_key(),
        )?;
        let seen_notes = (!config.in_memory).then(|| Arc::new(SeenNotes::new(&folder.state)));
        spawn_housekeeping(
            record.clone(),
            learning.clone(),
            notices,
            seen_notes.clone(),
        );
        let callers = Arc::new(callers);
        start_checks::begin(config, &callers, &folder.state);
        if let Some(withdrawing) = callers.withdrawing(folder.state.api_tokens(), record.clone()) {
            tokio::spawn(withdrawing);
        }
        let mut runtime = Self {
            record,
            answering: watch::Sender::new(InboxLocation::Nowhere),
            current: Arc::default(),
            reloading: Arc::default(),
            folder: folder.clone(),
            opening,
            learning,
            callers,
            peers,
            teams: None,
            gateway: name_of_gateway(&folder.path).into(),
            traces,
            reads_again: Arc::default(),
            seen_notes,
            #[cfg(feature = "teams")]
            notifier: None,
        };
        if !config.in_memory
            && let Ok(Err(fault)) =
                tokio::time::timeout(INBOX_CHECK_INTERVAL, runtime.record.load_calls()).await
        {
            // An error of the record is reported when it is first needed.
            tracing::warn!(%fault, "results that were kept could not be read");
        }
        runtime.start_teams(config, &folder).await;
        runtime.open_notifier(config, &folder)?;
        runtime.serve_inbox(config, &folder).await?;
        runtime.start_notifier();
        let file = runtime.next_file(config, |_| false)?;
        runtime.learning.replace(file.learning());
        if !config.in_memory {
            runtime.recall_learned().await;
        }
        runtime.replace_file(file);
        Ok(runtime)
    }

    /// Writes the learned facts and all pending changes, before the process ends.
    pub async fn close(&self) {
        let closed = async {
            self.learning.keep(&self.record).await?;
            self.record.flush().await
        };
        if let Err(fault) = closed.await {
            tracing::error!(%fault, "the record could not be kept");
        }
        if let Some(notes) = &self.seen_notes {
            notes.write(&self.record).await;
        }
        if let Some(traces) = &self.traces {
            traces.close().await;
        }
        // No client may find an address that nothing listens on.
        if let InboxLocation::Here(inbox) = &*self.answering.borrow()
            && let Err(error) = inbox.forget()
        {
            tracing::warn!(%error, "the state folder still says where the inbox was");
        }
    }

    /// Returns the address at which people answer; it signs no one in.
    pub fn inbox(&self) -> Option<String> {
        match &*self.answering.borrow() {
            InboxLocation::Here(inbox) => Some(inbox.address()),
            InboxLocation::Elsewhere(other) => Some(format!("{}/", other.address())),
            InboxLocation::Nowhere => None,
        }
    }

    /// Creates an address that signs a browser in, once: for the person only, shown at a terminal and in no log. `None`
    /// if this gateway does not serve the inbox.
    ///
    /// # Errors
    /// If the sessions cannot be written.
    pub fn login_link(&self) -> io::Result<Option<String>> {
        match &*self.answering.borrow() {
            InboxLocation::Here(inbox) => inbox.login_link().map(Some),
            InboxLocation::Elsewhere(_) | InboxLocation::Nowhere => Ok(None),
        }
    }

    /// Waits until the inbox has moved; returns `false` if that can no longer happen.
    pub async fn moved_inbox(&self) -> bool {
        let mut answering = self.answering.subscribe();
        answering.changed().await.is_ok()
    }

    /// Waits until the record turns out to be unusable; forever if it does not.
    pub async fn broken_record(&self) -> Arc<RecordStoreError> {
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

    /// Returns the function for the page of a question.
    fn links(&self) -> Arc<QuestionLinks> {
        let answering = self.answering.clone();
        Arc::new(move |id: &str| match &*answering.borrow() {
            InboxLocation::Here(inbox) => inbox.deep_link(id),
            InboxLocation::Elsewhere(other) => Some(format!("{}/q/{id}", other.address())),
            InboxLocation::Nowhere => None,
        })
    }

    /// Adds the facts about the servers that earlier and other processes learned.
    async fn recall_learned(&self) {
        // What sessions have learned meanwhile is not lost for the servers of another file.
        let recalled = async {
            self.learning.keep(&self.record).await?;
            self.learning.recall(&self.record).await
        };
        if let Ok(Err(fault)) = tokio::time::timeout(INBOX_CHECK_INTERVAL, recalled).await {
            // An error of the record is reported when it is first needed.
            tracing::warn!(%fault, "the data about servers could not be read");
        }
    }

    /// Creates the context of a session of this caller with this server. `passed` is the digest of the credentials that the
    /// caller passes to it, if they do not distinguish callers already: to other users it is another server.
    pub(crate) fn session_context(
        &self,
        definition: &ServedServer,
        caller: &Arc<SessionCaller>,
        passed: &str,
    ) -> SessionContext {
        let server = &definition.config;
        let name = &server.settings.server;
        let key = self.record.identity_key();
        let mut identified = server_identity(server, key, std::env::vars_os());
        if !passed.is_empty() {
            let parts = [identified.key.as_bytes(), passed.as_bytes()];
            identified.key = key.hash("passed credentials", &parts);
        }
        let identity = SessionIdentity {
            server: identified,
            caller: caller.opened_by().binding().to_owned(),
        };
        SessionContext {
            server: name.clone(),
            identity,
            holder: self.peers.as_ref().map(|peers| peers.name().to_owned()),
            secrets: secrets_of(server, std::env::vars_os()).into(),
            caller: caller.clone(),
            callers: self.callers.clone(),
            teams: self.teams.clone(),
            link: self.links(),
            earlier_rules: definition.earlier_rules.clone(),
            responder: definition.responder.clone(),
            traces: self.traces.clone(),
        }
    }
}

/// Warns if the headers of every program of this machine name callers or people.
fn warn_of_local_proxies(config: &Config) {
    let here = [
        IpAddr::from(Ipv4Addr::LOCALHOST),
        IpAddr::from(Ipv6Addr::LOCALHOST),
    ];
    let of_callers =
        matches!(&config.auth, Auth::Proxy(proxy) if here.iter().any(|at| proxy.trusts(*at)));
    let login = config.login.as_ref().map(|login| &login.mode);
    let of_people =
        matches!(login, Some(LoginMode::Proxy(proxy)) if here.iter().any(|at| (proxy.trusts)(*at)));
    for (is_so, who) in [(of_callers, "caller"), (of_people, "person")] {
        if is_so {
            tracing::warn!(
                "`trusted-proxies` has an address of this machine: every program on it, also a server that this gateway starts, can be every {who}"
            );
        }
    }
}

impl Config {
    /// Checks what a start checks, without a start: no address may be open to the network, and the sources of all secrets of
    /// channels must be readable. No one is notified.
    ///
    /// # Errors
    /// If the inbox, or without `insecure` the gateway itself, would be open to the network, or if a channel cannot be used
    /// as configured.
    pub fn check(&self) -> Result<(), StartError> {
        check_addresses(self)?;
        check_channels(self)
    }
}

/// Rejects addresses that the network would reach, before anything is opened or sent.
fn check_addresses(config: &Config) -> Result<(), StartError> {
    if let Some(at) = config
        .inbox
        .filter(|at| !mcp_elicit_inbox::is_loopback(*at) && config.login.is_none())
    {
        return Err(StartError::NotLoopback { at });
    }
    let open =
        |at: &SocketAddr| !config.insecure && !config.auth.is_required() && !at.ip().is_loopback();
    match config.listen.filter(open) {
        Some(at) => Err(StartError::OpenToNetwork { at }),
        None => Ok(()),
    }
}

/// Opens the channels of a configuration as a start does, and closes them again: their secrets are read, and no one is
/// notified.
fn check_channels(config: &Config) -> Result<(), StartError> {
    let Some(rules) = &config.teams else {
        return Ok(());
    };
    match notifying::next_channels(config, rules) {
        Ok(_) => Ok(()),
        Err(error) => Err(StartError::Channels(Box::new(error))),
    }
}

/// Applies the operator's setting to the folder, and the folder's setting to the servers.
fn apply_presence(config: &mut Config, folder: &Folder) -> Result<(), StartError> {
    if let Some(presence) = config.presence {
        let set = folder.state.set_presence(presence);
        set.map_err(|source| folder.fault(source))?;
    }
    let presence = folder.state.presence();
    if presence.map_err(|source| folder.fault(source))? == RequiredPresence::Any {
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

#[derive(Clone)]
struct Folder {
    state: StateFolder,
    path: PathBuf,
}

/// Returns the name of a gateway for people: its machine, if that has a name, and its state folder.
fn name_of_gateway(folder: &Path) -> String {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    #[cfg(feature = "teams")]
    if let Ok(machine) = hostname::get() {
        return format!("{}:{}", machine.display(), folder.display());
    }
    folder.display().to_string()
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

/// Stores where the record is, so that a command that is not told uses no other.
fn note_address(folder: &Folder, address: &str) -> Result<(), StartError> {
    let noted = folder.state.write_record_address(Some(address));
    noted.map_err(|source| folder.fault(source))
}

/// Opens the tokens of the operator's sign-ins, and logs those that are missing.
fn open_sign_ins<'s>(
    servers: impl IntoIterator<Item = &'s ConfiguredServer>,
    folder: &Folder,
) -> Result<(), StartError> {
    for server in servers {
        if let ServerTarget::Url(HttpTarget {
            sign_in: Some(sign_in),
            ..
        }) = &server.target
        {
            sign_in
                .open(&folder.state)
                .map_err(|source| folder.fault(source))?;
            let sign_in = sign_in.clone();
            tokio::spawn(async move { sign_in.announce().await });
        }
    }
    Ok(())
}

/// Opens the record in the background: the first message need not wait for it, only the first question.
fn open_in_background(store: Arc<Sqlite>) -> watch::Receiver<Option<Arc<RecordStoreError>>> {
    let (tell, told) = watch::channel(None);
    tokio::spawn(async move {
        if let Err(fault) = store.ready().await {
            // The receiver is gone if the gateway has ended already.
            let _ = tell.send(Some(Arc::new(fault)));
        }
    });
    told
}

/// Rejects a record that was replaced by an older copy since a gateway of the folder saw it.
async fn refuse_replaced(
    store: &dyn RecordStore,
    folder: &Folder,
    database: Option<&str>,
) -> Result<(), StartError> {
    let Some(seen) = SeenAudit::read(&folder.state) else {
        return Ok(());
    };
    match seen.check(store).await.map_err(Arc::new)? {
        SeenCheck::Has => Ok(()),
        SeenCheck::Empty => {
            let folder = folder.path.display();
            tracing::warn!(%folder, "the record is a new one, although an earlier one was used with this state folder: its questions and its audit are not there");
            Ok(())
        }
        SeenCheck::HasNot => Err(StartError::Replaced {
            why: seen.replaced(&folder.state),
            state: folder.path.clone(),
            database: database.map(str::to_owned),
        }),
    }
}

/// The notes of the audit's end in a state folder.
struct SeenNotes {
    folder: StateFolder,
    /// The number of the event that was noted last. Held while a note is written, so that none replaces a newer one.
    noted: tokio::sync::Mutex<Option<u64>>,
}

impl SeenNotes {
    fn new(folder: &StateFolder) -> Self {
        Self {
            folder: folder.clone(),
            noted: tokio::sync::Mutex::default(),
        }
    }

    /// Notes the end of the audit, if it is not the one that was noted before.
    async fn write(&self, record: &Record) {
        let mut noted = self.noted.lock().await;
        let store = record.store();
        let write = async {
            let end = store.audit_end().await.map_err(io::Error::other)?;
            if *noted == Some(end) {
                return Ok(Some(end));
            }
            let seen = SeenAudit::now(store, record.now()).await;
            // The last event may not be written yet.
            let Some(seen) = seen.map_err(io::Error::other)? else {
                return Ok(None);
            };
            seen.write(&self.folder)?;
            Ok::<_, io::Error>(Some(end))
        };
        let written = write.await;
        *noted = written.unwrap_or_else(|error| {
            tracing::warn!(%error, "the end of the audit could not be noted in the state folder");
            None
        });
    }
}

/// Starts the maintenance. The notices are of changes by other machines, which are looked for at intervals too.
fn spawn_housekeeping(
    record: Arc<Record>,
    learning: LearnedFacts,
    notices: Option<Arc<Notify>>,
    seen_notes: Option<Arc<SeenNotes>>,
) {
    let hears = record.clone();
    tokio::spawn(async move {
        let mut recalled = hears.now();
        loop {
            if let Err(fault) = hears.poll_others().await {
                tracing::warn!(%fault, "other gateways' answers could not be looked for");
            }
            if let Err(fault) = learning.keep(&hears).await {
                tracing::warn!(%fault, "the data about servers could not be saved");
            }
            // Other gateways' callers may ask here about their tasks.
            if hears.now().since(recalled) >= RECALL_INTERVAL {
                recalled = hears.now();
                if let Err(fault) = learning.recall(&hears).await {
                    tracing::debug!(%fault, "the data about servers could not be read");
                }
            }
            match &notices {
                None => tokio::time::sleep(FOREIGN_CHANGES_INTERVAL).await,
                Some(notices) => {
                    let notice = notices.notified();
                    let _in_time = tokio::time::timeout(SHARED_CHANGES_INTERVAL, notice).await;
                }
            }
        }
    });
    tokio::spawn(async move {
        loop {
            if let Err(fault) = record.sweep().await {
                tracing::warn!(%fault, "questions whose time has run out could not be ended");
            }
            if let Some(notes) = &seen_notes {
                notes.write(&record).await;
            }
            tokio::time::sleep(SWEEP_INTERVAL).await;
        }
    });
}
