//! The contents of a running gateway's file: its servers with their parts in this process, its limits and its times. Replaced
//! when the file is read again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mcp_elicit_client::responder::Terminal;
use mcp_elicit_record::{Record, Retention};

use super::terminal::terminal_frontend;
use super::{InboxLocation, Runtime, StartError};
use crate::bind::EarlierRules;
use crate::config::{ByteLimits, Config, ConfiguredServer, FileSettings, LocalResponder};
use crate::learned_facts::LearningServer;
use crate::listener::server_table::ServerTable;
use crate::local_responder::LocalResponses;

/// A server as one file defines it, with its parts in this process. Its sessions have it from their beginning to their
/// end, whatever another file says meanwhile.
pub(crate) struct ServedServer {
    /// Its definition.
    pub(crate) config: ConfiguredServer,
    /// The largest message, in bytes.
    pub(crate) max_frame: usize,
    /// The responder besides the inbox.
    pub(super) responder: Option<Arc<LocalResponses>>,
    /// The facts learned about it.
    pub(super) learning: Arc<LearningServer>,
    /// The rules of the last file that defined it so.
    pub(super) earlier_rules: EarlierRules,
}

impl ServedServer {
    /// Returns `true` if the other definition is one of the same server, to the record and to sealed rounds.
    pub(crate) fn is_same_server(&self, other: &Self) -> bool {
        self.learning.identity == other.learning.identity
    }
}

/// The servers of a file, by name.
pub(crate) type ServedServers = BTreeMap<String, Arc<ServedServer>>;

/// The times of a stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopTimes {
    /// The time in which requests are accepted although the gateway says that it is not ready.
    pub(crate) ready_grace: Duration,
    /// The time after that in which open calls may end.
    pub(crate) drain: Duration,
}

/// The settings of all sessions over HTTP together.
#[derive(Clone, Debug, Default)]
struct ListenerLimits {
    bytes: ByteLimits,
    /// The origins whose pages may use the listener.
    origins: Vec<String>,
}

/// The contents of the file.
#[derive(Default)]
pub(super) struct CurrentFile(Mutex<FileParts>);

/// The parts of [`CurrentFile`].
pub(super) struct FileParts {
    pub(super) settings: FileSettings,
    pub(super) servers: Arc<ServedServers>,
    pub(super) stop_times: StopTimes,
    listener_limits: ListenerLimits,
    /// The listener, once it serves.
    pub(super) listener: Weak<ServerTable>,
    responders: Responders,
}

impl Default for FileParts {
    fn default() -> Self {
        Self {
            settings: FileSettings::default(),
            servers: Arc::default(),
            stop_times: StopTimes {
                ready_grace: Duration::ZERO,
                drain: Duration::ZERO,
            },
            listener_limits: ListenerLimits::default(),
            listener: Weak::new(),
            responders: Responders::default(),
        }
    }
}

impl CurrentFile {
    pub(super) fn parts(&self) -> MutexGuard<'_, FileParts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The responders besides the inbox that were started.
#[derive(Clone, Default)]
pub(super) struct Responders {
    /// The terminal is a single one, however many servers ask there.
    terminal: Option<Arc<LocalResponses>>,
    all: Vec<Weak<LocalResponses>>,
}

impl Responders {
    /// Starts the responder of a server, if it has one. `alone` is `true` if there is no inbox.
    fn start(
        &mut self,
        record: &Arc<Record>,
        server: &ConfiguredServer,
        plain: bool,
        alone: bool,
    ) -> Result<Option<Arc<LocalResponses>>, StartError> {
        let responder = match (&server.answering, &self.terminal) {
            (None, _) => return Ok(None),
            (Some(LocalResponder::Terminal), Some(known)) => return Ok(Some(known.clone())),
            (Some(LocalResponder::Terminal), None) => {
                let person = Terminal::new(terminal_frontend(plain)?);
                let only = LocalResponses::of_terminal(record.clone(), person, alone);
                self.terminal = Some(only.clone());
                only
            }
            (Some(LocalResponder::Program(program)), _) => {
                let name = &server.settings.server;
                let started = LocalResponses::of_program(record.clone(), program, name, alone);
                started.map_err(|source| StartError::Program {
                    server: name.clone(),
                    source,
                })?
            }
        };
        self.all.retain(|known| known.strong_count() > 0);
        self.all.push(Arc::downgrade(&responder));
        Ok(Some(responder))
    }
}

/// The servers and times of a file that is about to take effect.
pub(super) struct NextFile {
    settings: FileSettings,
    servers: ServedServers,
    stop_times: StopTimes,
    listener_limits: ListenerLimits,
    retention: Retention,
    responders: Responders,
}

impl NextFile {
    /// Returns the servers' facts.
    pub(super) fn learning(&self) -> Vec<Arc<LearningServer>> {
        let servers = self.servers.values();
        servers.map(|server| server.learning.clone()).collect()
    }
}

impl Runtime {
    /// Starts the parts of a configuration's servers. Those that are `kept` stay as they are.
    pub(super) fn next_file(
        &self,
        config: &Config,
        kept: impl Fn(&str) -> bool,
    ) -> Result<NextFile, StartError> {
        let (before, mut responders) = {
            let parts = self.current.parts();
            (parts.servers.clone(), parts.responders.clone())
        };
        let alone = matches!(*self.answering.borrow(), InboxLocation::Nowhere);
        let mut servers = ServedServers::new();
        for server in &config.servers {
            let name = &server.settings.server;
            let served = match before.get(name).filter(|_| kept(name)) {
                Some(served) => served.clone(),
                None => Arc::new(ServedServer {
                    config: server.clone(),
                    max_frame: config.max_frame,
                    responder: responders.start(&self.record, server, config.plain, alone)?,
                    learning: Arc::new(LearningServer::of(server, &self.record)),
                    earlier_rules: EarlierRules::default(),
                }),
            };
            servers.insert(name.clone(), served);
        }
        Ok(NextFile {
            settings: config.file_settings.clone(),
            servers,
            stop_times: StopTimes {
                ready_grace: config.ready_grace,
                drain: config.drain,
            },
            listener_limits: ListenerLimits {
                bytes: config.byte_limits,
                origins: config.allow_origins.clone(),
            },
            retention: config.retention,
            responders,
        })
    }

    /// Pins the current rules to the servers that are not in the next file as they are now. Their sessions go on.
    pub(super) fn pin_rules(&self, next: &NextFile) {
        let Some(rules) = self.rules() else {
            return;
        };
        for (name, served) in self.current.parts().servers.iter() {
            let is_kept = |next: &Arc<ServedServer>| Arc::ptr_eq(next, served);
            if !next.servers.get(name).is_some_and(is_kept) {
                served.earlier_rules.set(rules.clone());
            }
        }
    }

    /// Replaces the servers, limits and times, for sessions and requests that begin from now on.
    pub(super) fn replace_file(&self, next: NextFile) {
        let mut parts = self.current.parts();
        parts.settings = next.settings;
        parts.servers = Arc::new(next.servers);
        parts.stop_times = next.stop_times;
        parts.listener_limits = next.listener_limits;
        parts.responders = next.responders;
        let questions = parts.listener_limits.bytes.questions;
        self.record.set_limits(next.retention, questions);
        if let Some(listener) = parts.listener.upgrade() {
            self.replace_at(&listener, &parts);
        }
    }

    /// Begins to serve the current servers at this listener, and those of later files.
    pub(crate) fn serve_at(&self, listener: &Arc<ServerTable>) {
        let mut parts = self.current.parts();
        parts.listener = Arc::downgrade(listener);
        self.replace_at(listener, &parts);
    }

    fn replace_at(&self, listener: &ServerTable, parts: &FileParts) {
        let ListenerLimits { bytes, origins } = &parts.listener_limits;
        listener.set_limits(bytes, origins);
        listener.replace(self, &parts.servers);
    }

    /// Returns a server as it is defined now; as this configuration has it if no file is read again.
    pub(crate) fn served(&self, server: &ConfiguredServer, max_frame: usize) -> Arc<ServedServer> {
        let name = &server.settings.server;
        let known = self.current.parts().servers.get(name).cloned();
        known.unwrap_or_else(|| {
            Arc::new(ServedServer {
                config: server.clone(),
                max_frame,
                responder: None,
                learning: Arc::new(LearningServer::of(server, &self.record)),
                earlier_rules: EarlierRules::default(),
            })
        })
    }

    /// Returns the current times of a stop.
    pub(crate) fn stop_times(&self) -> StopTimes {
        self.current.parts().stop_times
    }

    /// Withdraws every question from the terminal and the programs.
    pub async fn stop_asking(&self) {
        let all = self.current.parts().responders.all.clone();
        for responder in all.iter().filter_map(Weak::upgrade) {
            responder.stop().await;
        }
    }
}
