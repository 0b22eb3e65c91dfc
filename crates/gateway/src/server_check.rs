//! The eras that a server speaks, and those in which it was seen to ask, for an operator who checks a configuration.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_client::connection::ConnectError;
use mcp_elicit_client::{ClientSettings, ConnectOptions, Connection, ElicitingClient};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::wire::Revision;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::IdentityKey;
use mcp_elicit_record::store::{RecordStore, Sqlite};
use mcp_elicit_relay::{AskedEras, Learned};

use crate::config::{ConfiguredServer, ServerTarget};
use crate::server_identity::{configured_key, server_identity};
use crate::transports::process::{GRACE, Process, Program};

/// The result of asking a server for its eras.
#[derive(Debug, Default)]
pub struct SupportedEras {
    /// The newest revision in which it opens a session.
    pub session: Option<String>,
    /// `true` if it speaks 2026-07-28.
    pub rounds: bool,
    /// The error with which it could be reached in no era.
    pub unreached: Option<ConnectError>,
    /// `true` if it was not asked, since it has a sign-in.
    pub has_sign_in: bool,
    /// The revision in which the gateway is told to address it, if it lacks that one.
    pub lacks: Option<Revision>,
}

/// Asks a server for its eras, each on a connection of its own. A program is started twice, and once more for an older
/// revision that the gateway is told to use. A server with a sign-in is not asked.
pub async fn supported_eras(server: &ConfiguredServer, within: Duration) -> SupportedEras {
    let has_sign_in = matches!(&server.target, ServerTarget::Url(at) if at.sign_in.is_some());
    if has_sign_in {
        return SupportedEras {
            has_sign_in,
            ..SupportedEras::default()
        };
    }
    let newest = Revision::LATEST_PUSHED;
    let (session, rounds) = tokio::join!(
        Box::pin(opens(server, newest, within)),
        Box::pin(opens(server, Revision::V2026_07_28, within))
    );
    let mut eras = SupportedEras {
        rounds: rounds.is_ok(),
        ..SupportedEras::default()
    };
    let has_newest = session.is_ok();
    match session {
        Ok(()) => eras.session = Some(newest.as_str().to_owned()),
        Err(ConnectError::NoCommonRevision { offered, asked }) => {
            eras.session = offered.iter().find_map(|offered| {
                let known = offered.parse::<Revision>();
                let is_known = known.is_ok_and(|revision| revision <= newest);
                is_known.then(|| offered.clone())
            });
            if eras.session.is_none() && !eras.rounds {
                eras.unreached = Some(ConnectError::NoCommonRevision { asked, offered });
            }
        }
        Err(error) if !eras.rounds => eras.unreached = Some(error),
        Err(_) => {}
    }
    let is_reached = eras.unreached.is_none();
    eras.lacks = match server.settings.revision.filter(|_| is_reached) {
        None => None,
        Some(Revision::V2026_07_28) => (!eras.rounds).then_some(Revision::V2026_07_28),
        Some(wanted) if wanted == newest => (!has_newest).then_some(wanted),
        Some(wanted) => {
            let opened = Box::pin(opens(server, wanted, within)).await;
            opened.is_err().then_some(wanted)
        }
    };
    eras
}

/// Connects to a server in this revision, and leaves it again.
async fn opens(
    server: &ConfiguredServer,
    revision: Revision,
    within: Duration,
) -> Result<(), ConnectError> {
    let options = ConnectOptions::default().revision(revision).within(within);
    let open = ServerConnection::open(server, options).await?;
    open.close().await;
    Ok(())
}

/// A connection to a server of the configuration, as a gateway would open it. Nothing is declared, so that the server
/// asks nothing. The stderr of a program is dropped.
///
/// A program is ended with all its descendants, as the gateway ends it: by [`close`](Self::close), or killed when this is
/// dropped.
#[derive(Debug)]
pub struct ServerConnection {
    connection: Connection<()>,
    process: Option<Process>,
}

impl ServerConnection {
    /// Connects to the server, with its credentials of the file. A sign-in is not used.
    ///
    /// # Errors
    /// If it cannot be reached or breaks the protocol.
    pub async fn open(
        server: &ConfiguredServer,
        options: ConnectOptions,
    ) -> Result<Self, ConnectError> {
        let name = server.settings.server.clone();
        let client = ElicitingClient::new((), name, ClientSettings::default());
        match &server.target {
            ServerTarget::Url(at) => {
                let options = options.token(at.token.clone()).headers(at.headers.clone());
                let target = mcp_elicit_client::Target::Url(at.url.clone());
                let connection = Connection::open(&target, client, &options).await?;
                Ok(Self {
                    connection,
                    process: None,
                })
            }
            ServerTarget::Program(program) => {
                let (process, read, write) =
                    started(program).map_err(|source| ConnectError::Start {
                        program: program.program.to_string_lossy().into_owned(),
                        source,
                    })?;
                let connection = Connection::over(read, write, client, &options).await?;
                Ok(Self {
                    connection,
                    process: Some(process),
                })
            }
        }
    }

    /// Returns the connection.
    pub fn connection(&self) -> &Connection<()> {
        &self.connection
    }

    /// Closes the connection, and ends the program: it has some time to exit by itself, and again after SIGTERM.
    pub async fn close(self) {
        self.connection.close().await;
        let Some(process) = self.process else {
            return;
        };
        let ending = tokio::task::spawn_blocking(move || process.end(Some(GRACE)));
        if let Ok(Err(error)) = ending.await {
            tracing::warn!(%error, "a server could not be ended");
        }
    }
}

/// Starts a program in a process group of its own.
fn started(
    program: &Program,
) -> io::Result<(
    Process,
    tokio::process::ChildStdout,
    tokio::process::ChildStdin,
)> {
    let (process, stdin, stdout) = Process::start_silent(program)?;
    let read = tokio::process::ChildStdout::from_std(stdout)?;
    let write = tokio::process::ChildStdin::from_std(stdin)?;
    Ok((process, read, write))
}

/// Returns the eras in which a server was seen to ask, as the record in this folder or its database says; `None` if there
/// is no record.
pub async fn asked_eras(server: &ConfiguredServer, folder: &StateFolder) -> Option<AskedEras> {
    let (store, key) = learned_in(folder)?;
    let of_this_one = server_identity(server, &key, std::env::vars_os()).key;
    let mut eras = AskedEras::default();
    for key in [configured_key(server, &key), of_this_one] {
        eras = eras.with(eras_in(&*store, key).await?);
    }
    Some(eras)
}

/// Records in which eras a server was seen to ask, if there is a record in this folder. Nothing is created for it.
pub async fn note_asked_eras(
    server: &ConfiguredServer,
    folder: &StateFolder,
    seen: AskedEras,
    now: Timestamp,
) {
    let Some((store, key)) = learned_in(folder) else {
        return;
    };
    let key = configured_key(server, &key);
    let Some(known) = eras_in(&*store, key.clone()).await else {
        return;
    };
    let all = known.with(seen);
    if all != known
        && let Ok(text) = serde_json::to_string(&Learned::from(all))
        && let Err(error) = store.keep_learned(key, text, now).await
    {
        tracing::debug!(%error, "the eras of the server are not recorded");
    }
}

/// Returns the record's store in a folder and the key of its identities; `None` if there is no record.
fn learned_in(folder: &StateFolder) -> Option<(Arc<dyn RecordStore>, IdentityKey)> {
    let store: Arc<dyn RecordStore> = match folder.database() {
        Some(database) => database.to_read(),
        None if folder.record().is_file() => Arc::new(Sqlite::at(&folder.record()).with_any_key()),
        None => return None,
    };
    let key = IdentityKey::read(&folder.identity()).ok()??;
    Some((store, key))
}

/// Returns the eras under a key; `None` if the record cannot be read.
async fn eras_in(store: &dyn RecordStore, key: String) -> Option<AskedEras> {
    let known = store.learned(key).await.ok()?;
    let learned = known.and_then(|text| serde_json::from_str::<Learned>(&text).ok());
    Some(learned.map(|learned| learned.eras()).unwrap_or_default())
}
