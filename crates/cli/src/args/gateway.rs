//! The arguments of `gateway`, and the configuration that they make.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use http::header::AUTHORIZATION;
use mcp_elicit_gateway::ReloadError;
use mcp_elicit_gateway::config::{
    self, AnswerWithError, Auth, ByteLimits, Config, ConfigError, ConfiguredServer, FileSettings,
    HttpTarget, Inherits, MAX_FRAME, PeerSettings, PeerSettingsError, Program, RecordDatabase,
    RecordPassword, SecretText, ServerTarget, UpstreamCredentials, UpstreamSignIn, bounds,
    hide_userinfo, is_origin, retention, unset_variables,
};
use mcp_elicit_inbox::state_folder::RequiredPresence;
use mcp_elicit_record::state_file::{self, warn_if_exposed};
use mcp_elicit_record::stored_bytes::StorageLimits;
use mcp_elicit_relay::RelaySettings;

use crate::args::headers::HeaderArgs;
use crate::args::profiles::{ProfileArgs, duration};
use crate::args::program::{of_answer_command, of_password_command};
use crate::args::server::Protocol;
use crate::args::token::TokenArgs;
use crate::failure::Failure;
use crate::sign_in::{SignInArgs, check_url};

/// The default limits on bytes.
const BYTES: ByteLimits = ByteLimits::DEFAULT;

/// The default address of the inbox.
const INBOX: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7878);

/// Run between any client and any server, so that a person can always answer
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
pub(crate) struct GatewayArgs {
    /// Speak Streamable HTTP to the server at this URL, instead of starting one
    #[arg(
        help_heading = "Server",
        long,
        value_name = "URL",
        conflicts_with = "command"
    )]
    upstream: Option<String>,

    #[command(flatten)]
    token: TokenArgs,

    #[command(flatten)]
    headers: HeaderArgs,

    /// Serve clients over HTTP at this address, under /mcp, instead of one on stdin and stdout
    #[arg(help_heading = "Clients", long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// With `--listen` and a record in PostgreSQL: take requests of sessions here that other gateways of the record get, at
    /// this address, and forward theirs
    #[arg(
        help_heading = "Clients",
        long,
        value_name = "ADDRESS",
        requires = "listen"
    )]
    peer_listen: Option<SocketAddr>,

    /// The host and port at which other gateways reach `--peer-listen` [default: its address]. With `--config` too, so that
    /// gateways can share a file
    #[arg(help_heading = "Clients", long, value_name = "HOST:PORT")]
    peer_address: Option<String>,

    /// Read servers and settings from this TOML file
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "upstream", "token_env", "headers", "header_variables", "client_id", "client_secret_env", "issuer", "scopes", "callback_port", "command", "listen", "peer_listen", "inbox", "answer_with", "answer_command", "name", "hold", "pending",
        "message_bytes", "pending_bytes", "allow_origin", "questions_per_minute", "max_frame", "ready_grace", "drain", "caller_call_bytes", "all_call_bytes", "caller_question_bytes", "all_question_bytes", "argument_bytes", "max_record", "max_open", "record", "record_password_file", "record_password_command", "keep_answers", "keep_results", "keep_ended", "keep_audit", "share_child", "tasks", "server_revision",
        "insecure", "auth",
    ])]
    pub(crate) config: Option<PathBuf>,

    /// Check the command line, the file, and whether each server can be used, then stop. With `--sign-in`, a person can
    /// sign in
    #[arg(long)]
    pub(crate) check: bool,

    /// With `--check`: print the revisions of each server, and the reason if it cannot be used, as lines of JSON
    #[arg(long, requires = "check")]
    pub(crate) json: bool,

    /// Address of the inbox on this machine; `off` for none [default: 127.0.0.1:7878, or a free port if that is
    /// taken]
    #[arg(help_heading = "Inbox and answers", long, value_name = "ADDRESS")]
    inbox: Option<String>,

    /// The responder to ask
    #[arg(help_heading = "Inbox and answers", long, value_enum, value_name = "RESPONDER", default_value_t = AnswerWithArg::Auto)]
    answer_with: AnswerWithArg,

    /// With `--answer-with terminal`: ask line by line, without a screen
    #[arg(help_heading = "Inbox and answers", long)]
    plain: bool,

    /// With `--answer-with command`: the program and its arguments, quoted as in a shell. It reads each question as one
    /// line of JSON and writes {"action", "content"}
    #[arg(help_heading = "Inbox and answers", long, value_name = "COMMAND")]
    answer_command: Option<String>,

    #[command(flatten)]
    profiles: ProfileArgs,

    /// An act from a client's dialog sooner than this after it was asked is not taken for a person's, such as 150ms; for
    /// clients whose profile says nothing about it
    #[arg(help_heading = "Clients", long, value_name = "DURATION", value_parser = duration)]
    doubt: Option<Duration>,

    /// Server name shown to people [default: the name that it reports]
    #[arg(help_heading = "Server", long, value_name = "NAME")]
    name: Option<String>,

    /// Seconds that a call is held for a person before it is returned with an answer link
    #[arg(help_heading = "Inbox and answers", long, value_name = "SECONDS", default_value_t = 50, value_parser = value_parser!(u64).range(bounds::HOLD))]
    hold: u64,

    /// Maximum number of questions pending at once in one session; `off` for no limit
    #[arg(
        help_heading = "Limits",
        long,
        value_name = "N|off",
        default_value = "100"
    )]
    pending: String,

    /// The longest message of a question, in bytes
    #[arg(help_heading = "Limits", long, value_name = "BYTES", default_value_t = 65_536, value_parser = value_parser!(u64).range(bounds::MESSAGE_BYTES))]
    message_bytes: u64,

    /// The size of all questions pending at once in one session, in bytes
    #[arg(help_heading = "Limits", long, value_name = "BYTES", default_value_t = 8_388_608, value_parser = value_parser!(u64).range(bounds::PENDING_BYTES))]
    pending_bytes: u64,

    /// Maximum number of questions per minute in one session; `off` for no limit
    #[arg(
        help_heading = "Limits",
        long,
        value_name = "N|off",
        default_value = "60"
    )]
    questions_per_minute: String,

    /// Serve clients at a network address without authentication: every program that reaches it can call the servers
    #[arg(help_heading = "Clients", long)]
    insecure: bool,

    /// Authentication of callers over HTTP: `keys` for API keys, made by `mcp-elicit tokens make`. A configuration file
    /// offers more methods (`[auth]`)
    #[arg(help_heading = "Clients", long, value_enum, value_name = "METHOD", default_value_t = AuthArg::None, requires = "listen")]
    auth: AuthArg,

    /// With `--listen`: accept pages of this origin, such as http://localhost:6274, and let them read the responses
    /// (CORS); repeat for more
    #[arg(
        help_heading = "Clients",
        long,
        value_name = "ORIGIN",
        requires = "listen"
    )]
    allow_origin: Vec<String>,

    /// Revision of the protocol to use with the server. `auto` addresses a server that speaks 2026-07-28 and an older
    /// revision in the older one, in which all its tools can ask
    #[arg(help_heading = "Server", long, value_enum, default_value_t = Protocol::Auto, value_name = "REVISION")]
    server_revision: Protocol,

    /// Send all calls of a client of 2026-07-28 to one child, for a server that shares memory between calls: calls in
    /// which it may ask then run one after the other
    #[arg(help_heading = "Server", long)]
    share_child: bool,

    /// Run calls of clients that know tasks as tasks, so that a person may take any time
    #[arg(help_heading = "Server", long)]
    tasks: bool,

    /// The largest message, in bytes
    #[arg(help_heading = "Limits", long, value_name = "BYTES", default_value_t = MAX_FRAME as u64, value_parser = value_parser!(u64).range(bounds::MAX_FRAME))]
    max_frame: u64,

    /// With `--listen`: seconds after SIGTERM in which requests are accepted although `/ready` says no
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = value_parser!(u64).range(bounds::DRAIN))]
    ready_grace: u64,

    /// With `--listen`: seconds after that in which open calls may end
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = value_parser!(u64).range(bounds::DRAIN))]
    drain: u64,

    /// With `--listen`: the memory of one authenticated caller's open calls, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = BYTES.caller_calls as u64, value_parser = value_parser!(u64).range(bounds::BYTES))]
    caller_call_bytes: u64,

    /// With `--listen`: the memory of all callers' open calls, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = BYTES.all_calls as u64, value_parser = value_parser!(u64).range(bounds::BYTES))]
    all_call_bytes: u64,

    /// The record's questions of one authenticated caller, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = BYTES.questions.of_caller, value_parser = value_parser!(u64).range(bounds::BYTES))]
    caller_question_bytes: u64,

    /// The record's questions of all callers, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = BYTES.questions.of_all, value_parser = value_parser!(u64).range(bounds::BYTES))]
    all_question_bytes: u64,

    /// The largest arguments of a call that are stored and shown with its question, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = BYTES.questions.arguments as u64, value_parser = value_parser!(u64).range(bounds::ARGUMENT_BYTES))]
    argument_bytes: u64,

    /// The size of the record, in bytes, from which on no question is asked; answers are always taken [default: no limit]
    #[arg(help_heading = "Record", long, value_name = "BYTES", value_parser = value_parser!(u64).range(bounds::BYTES))]
    max_record: Option<u64>,

    /// The most questions that wait for an answer at once, of all callers [default: no limit]
    #[arg(help_heading = "Record", long, value_name = "N", value_parser = value_parser!(u64).range(bounds::QUESTIONS))]
    max_open: Option<u64>,

    /// Seconds that an answer is kept for a repeated call, after the person gave it [default: 900]
    #[arg(help_heading = "Record", long, value_name = "SECONDS", value_parser = value_parser!(u64).range(bounds::KEEP))]
    keep_answers: Option<u64>,

    /// Seconds that the result of a returned call is kept for a repeated call [default: 900]
    #[arg(help_heading = "Record", long, value_name = "SECONDS", value_parser = value_parser!(u64).range(bounds::KEEP))]
    keep_results: Option<u64>,

    /// Days that ended questions stay in the record [default: 30]
    #[arg(help_heading = "Record", long, value_name = "DAYS", value_parser = value_parser!(u64).range(bounds::KEEP_ENDED))]
    keep_ended: Option<u64>,

    /// Days that events stay in the audit, such as 2555 for seven years [default: for ever]
    #[arg(help_heading = "Record", long, value_name = "DAYS", value_parser = value_parser!(u64).range(bounds::KEEP_AUDIT))]
    keep_audit: Option<u64>,

    /// Store of the questions: `sqlite` (a file in the state folder), `memory` (lost when the process ends), or
    /// `postgres://USER@HOST:PORT/DATABASE`, which several machines may share (without a password)
    #[arg(help_heading = "Record", long, value_name = "STORE", default_value = "sqlite", value_parser = record_of)]
    record: RecordArg,

    /// The file with the password of the record's database. Without it, PGPASSWORD or PGPASSFILE may have it
    #[arg(help_heading = "Record", long, value_name = "FILE")]
    record_password_file: Option<PathBuf>,

    /// A program that prints the password of the record's database, with its arguments, quoted as in a shell. It is run for
    /// each new connection
    #[arg(
        help_heading = "Record",
        long,
        value_name = "COMMAND",
        conflicts_with = "record_password_file"
    )]
    record_password_command: Option<String>,

    /// The folder of the record, its key and the inbox's token
    #[arg(help_heading = "Record", long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// Which answers to accept in this state folder: `page` (inbox pages only) or `any` (also commands, programs and
    /// client dialogs). Applies to all its gateways until changed
    #[arg(
        help_heading = "Inbox and answers",
        long,
        value_enum,
        value_name = "ANSWERS"
    )]
    presence: Option<PresenceArg>,

    /// Do not show a desktop notification when a question waits
    #[arg(help_heading = "Inbox and answers", long)]
    no_notify: bool,

    /// The format of the log on stderr
    #[arg(long, value_enum, value_name = "FORM", default_value_t = LogFormat::Text)]
    pub(crate) log: LogFormat,

    /// Start this program as the server
    #[arg(last = true, value_name = "SERVER")]
    command: Vec<OsString>,

    #[command(flatten)]
    pub(crate) sign_in: SignInArgs,
}

const EXAMPLES: &str = "\
Examples:
  mcp-elicit gateway -- npx -y @modelcontextprotocol/server-everything
  mcp-elicit gateway --upstream https://example.com/mcp
  mcp-elicit gateway --upstream https://example.com/mcp --sign-in --check
  mcp-elicit gateway --listen 127.0.0.1:8080 -- my-server
  mcp-elicit gateway --config gateway.toml --check";

/// The responder that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AnswerWithArg {
    /// The client if it declared the mode, else the inbox
    Auto,
    /// The client only
    Client,
    /// The inbox only
    Inbox,
    /// The person at this terminal, while stdin and stdout carry the protocol; the inbox too
    Terminal,
    /// The program of `--answer-command`; the inbox too
    Command,
}

impl From<AnswerWithArg> for config::AnswerWith {
    fn from(who: AnswerWithArg) -> Self {
        match who {
            AnswerWithArg::Auto => Self::Auto,
            AnswerWithArg::Client => Self::Client,
            AnswerWithArg::Inbox => Self::Inbox,
            AnswerWithArg::Terminal => Self::Terminal,
            AnswerWithArg::Command => Self::Command,
        }
    }
}

/// The authentication of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AuthArg {
    /// No authentication: for loopback addresses
    None,
    /// An API key
    Keys,
}

/// The answers that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PresenceArg {
    /// Answers from pages, commands, programs and clients
    Any,
    /// Answers from pages only
    Page,
}

impl From<PresenceArg> for RequiredPresence {
    fn from(presence: PresenceArg) -> Self {
        match presence {
            PresenceArg::Any => Self::Any,
            PresenceArg::Page => Self::Page,
        }
    }
}

/// The store of the questions.
#[derive(Clone, PartialEq, Eq)]
enum RecordArg {
    /// A file in the state folder, which survives a restart.
    Sqlite,
    /// In memory only: lost when the process ends.
    Memory,
    /// A database.
    Database(String),
    /// Another text, which is not kept: it may contain a password.
    Unknown,
}

impl fmt::Debug for RecordArg {
    /// Formats nothing of an address, which may contain a password by mistake.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "Sqlite",
            Self::Memory => "Memory",
            Self::Database(_) => "Database(..)",
            Self::Unknown => "Unknown",
        })
    }
}

/// Reads `--record`. An address is checked later, by a reader whose errors do not show it, and any other text is refused
/// there: an error from here would show it.
#[expect(
    clippy::unnecessary_wraps,
    reason = "a reader of clap's returns a result"
)]
fn record_of(text: &str) -> Result<RecordArg, Infallible> {
    Ok(match text {
        "sqlite" => RecordArg::Sqlite,
        "memory" => RecordArg::Memory,
        _ if RecordDatabase::is_address(text) => RecordArg::Database(text.to_owned()),
        _ => RecordArg::Unknown,
    })
}

/// Returns the database of this address.
///
/// # Errors
/// If it is no address of a database, or the password's file cannot be used.
pub(crate) fn record_database(
    address: &str,
    password_file: Option<&Path>,
    password_command: Option<&str>,
) -> Result<RecordDatabase, Failure> {
    let Ok(record) = record_of(address);
    let database = database_of(record, password_file, password_command)?;
    database.ok_or_else(|| {
        Failure::usage("`--record` names no database")
            .hint("write `--record postgres://USER@HOST:PORT/DATABASE`.")
    })
}

/// Returns the database of a record that is in one.
fn database_of(
    record: RecordArg,
    password_file: Option<&Path>,
    password_command: Option<&str>,
) -> Result<Option<RecordDatabase>, Failure> {
    let address = match record {
        RecordArg::Database(address) => address,
        RecordArg::Unknown => {
            return Err(Failure::usage("the value of `--record` names no store").hint(
                "write `sqlite`, `memory` or `postgres://USER@HOST:PORT/DATABASE`, with the password in a file.",
            ));
        }
        RecordArg::Sqlite | RecordArg::Memory
            if password_file.is_some() || password_command.is_some() =>
        {
            return Err(Failure::usage(
                "a password is for a record in a database: `--record postgres://..`",
            ));
        }
        RecordArg::Sqlite | RecordArg::Memory => return Ok(None),
    };
    let password = password_file.map(|path| {
        let hint = "write the password into this file, on one line, readable by this user only.";
        let unusable = || Failure::usage(format!("{} cannot be used", path.display())).hint(hint);
        let read = state_file::open_named(path)
            .inspect(|opened| warn_if_exposed(path, opened))
            .and_then(SecretText::read);
        let secret = read.map_err(|error| unusable().because(error))?;
        secret.ok_or_else(unusable)
    });
    let password = password.transpose()?.map(RecordPassword::Text);
    let password = match password_command {
        Some(line) => Some(RecordPassword::Command(of_password_command(line)?)),
        None => password,
    };
    Ok(Some(RecordDatabase::new(address, password)))
}

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines of text for people
    Text,
    /// One JSON object per line
    Json,
}

impl GatewayArgs {
    /// Returns the configuration file, with the options that go with it.
    pub(crate) fn file(&self) -> Option<GatewayFile> {
        Some(GatewayFile {
            path: self.config.clone()?,
            state: self.state.clone(),
            plain: self.plain,
            presence: self.presence.map(RequiredPresence::from),
            no_notify: self.no_notify,
            peer_address: self.peer_address.clone(),
            profiles: self.profiles.clone(),
            doubt: self.doubt,
        })
    }

    /// Returns the configuration that the arguments make, or that of the file which they name.
    pub(crate) fn config(self) -> Result<Config, Failure> {
        if let Some(file) = self.file() {
            let path = &file.path;
            let text = state_file::read_named_text(path).map_err(|error| {
                let next = if error.kind() == ErrorKind::InvalidData {
                    "save it as UTF-8, as TOML requires."
                } else {
                    "name the gateway's configuration file; docs/gateway.md has an example."
                };
                Failure::usage(format!("cannot read {}", path.display()))
                    .because(error)
                    .hint(next)
            })?;
            return file.read(&text).map_err(|fault| match fault {
                FileFault::Config(fault) => bad_config(&path.display().to_string(), &text, &fault),
                FileFault::Options(failure) => failure,
            });
        }
        let inbox = match self.inbox.as_deref() {
            None => Some(INBOX),
            Some("off") => None,
            Some(at) => Some(at.parse().map_err(|_| {
                Failure::usage(format!("`--inbox {at}` is not an address"))
                    .hint("write it like 127.0.0.1:7878, or `off`.")
            })?),
        };
        let database = database_of(
            self.record.clone(),
            self.record_password_file.as_deref(),
            self.record_password_command.as_deref(),
        )?;
        let peers = PeerSettings::read(
            self.peer_listen,
            self.peer_address.clone(),
            database.is_some(),
        );
        let peers = peers_at(peers.map_err(unreachable_by_others)?, None)?;
        let without_database = |mut program: Program| {
            if database.is_some() {
                program.inherits = Inherits::AllButDatabase;
            }
            program
        };
        let command = self
            .answer_command
            .as_deref()
            .map(of_answer_command)
            .transpose()?
            .map(without_database);
        let (answer_with, answering) = config::AnswerWith::from(self.answer_with)
            .resolve(command, inbox.is_some())
            .map_err(|fault| {
                Failure::usage("no responder is available").because(fault).hint(match fault {
                    AnswerWithError::CommandMismatch => {
                        "write both: `--answer-with command --answer-command \"PROGRAM ARGUMENT...\"`."
                    }
                    AnswerWithError::NoInbox => "leave out `--inbox off`, or choose another `--answer-with`.",
                })
            })?;
        check_origins(&self.allow_origin)?;
        let settings = RelaySettings {
            answer_with,
            hold: Duration::from_secs(self.hold),
            pending: bound("--pending", &self.pending)?,
            message_bytes: usize::try_from(self.message_bytes).unwrap_or(usize::MAX),
            pending_bytes: usize::try_from(self.pending_bytes).unwrap_or(usize::MAX),
            per_minute: bound("--questions-per-minute", &self.questions_per_minute)?,
            revision: self.server_revision.revision(),
            ..RelaySettings::default()
        };
        let mut profiles = self.profiles.read(None)?;
        profiles.set_doubt(self.doubt);
        let target = match self.target()? {
            ServerTarget::Program(program) => ServerTarget::Program(without_database(program)),
            other @ ServerTarget::Url(_) => other,
        };
        let credentials = match &target {
            ServerTarget::Url(at) if at.has_own_authorization() => UpstreamCredentials::Operator,
            ServerTarget::Url(_) | ServerTarget::Program(_) => UpstreamCredentials::default(),
        };
        let is_named = self.name.is_some();
        let server = self.name.unwrap_or_else(|| name_of(&target));
        Ok(Config {
            teams: None,
            channels: None,
            listen: self.listen,
            inbox,
            inbox_may_move: self.inbox.is_none(),
            login: None,
            presence: self.presence.map(RequiredPresence::from),
            notify: !self.no_notify,
            open_login: None,
            state: self.state,
            in_memory: self.record == RecordArg::Memory,
            database,
            peers,
            plain: self.plain,
            insecure: self.insecure,
            auth: match self.auth {
                AuthArg::None => Auth::None,
                AuthArg::Keys => Auth::Keys,
            },
            public_url: None,
            max_frame: usize::try_from(self.max_frame).unwrap_or(usize::MAX),
            ready_grace: Duration::from_secs(self.ready_grace),
            drain: Duration::from_secs(self.drain),
            traces: None,
            byte_limits: ByteLimits {
                caller_calls: usize::try_from(self.caller_call_bytes).unwrap_or(usize::MAX),
                all_calls: usize::try_from(self.all_call_bytes).unwrap_or(usize::MAX),
                questions: StorageLimits {
                    of_caller: self.caller_question_bytes,
                    of_all: self.all_question_bytes,
                    arguments: usize::try_from(self.argument_bytes).unwrap_or(usize::MAX),
                    of_record: self.max_record,
                    open: self.max_open,
                },
            },
            allow_origins: self.allow_origin,
            retention: retention(
                self.keep_answers,
                self.keep_results,
                self.keep_ended,
                self.keep_audit,
            ),
            servers: vec![ConfiguredServer {
                target,
                credentials,
                settings: RelaySettings {
                    server,
                    tasks: self.tasks,
                    ..settings
                },
                share_child: self.share_child,
                answering,
                is_named,
                is_configured_by_environment: true,
            }],
            file_settings: FileSettings::default(),
        }
        .with_profiles(profiles)
        .with_result_retention())
    }

    fn target(&self) -> Result<ServerTarget, Failure> {
        if let Some(url) = &self.upstream {
            HttpTarget::check(url).map_err(|fault| {
                Failure::usage("invalid upstream URL")
                    .because(fault)
                    .hint("write it like `--upstream https://example.com/mcp`.")
            })?;
            let sign_in = if self.sign_in.sign_in {
                Some(self.upstream_sign_in(url)?)
            } else {
                None
            };
            let at = HttpTarget {
                token: self.token.read()?,
                headers: self.headers.read()?,
                sign_in,
                ..HttpTarget::new(url)
            };
            let has_token = at.token.is_some() || at.sign_in.is_some();
            if has_token && at.headers.iter().any(|(name, _)| *name == AUTHORIZATION) {
                return Err(Failure::usage(
                    "a header Authorization cannot be combined with `--token-env` or `--sign-in`",
                ));
            }
            return Ok(ServerTarget::Url(at));
        }
        Program::from_words(&self.command).map(ServerTarget::Program).ok_or_else(|| {
            Failure::usage("no server named").hint(
                "put the server's command after `--`, or name it with `--upstream URL` or `--config FILE`.",
            )
        })
    }
}

impl GatewayArgs {
    /// Returns the sign-in at the server at this URL.
    fn upstream_sign_in(&self, url: &str) -> Result<UpstreamSignIn, Failure> {
        check_url(url)?;
        let command = sign_in_command(std::env::args_os());
        Ok(UpstreamSignIn::new(url, self.sign_in.options()?, command))
    }
}

/// Options of this command that a sign-in needs, and whether a value follows each.
const FOR_SIGN_IN: [(&str, bool); 9] = [
    ("--upstream", true),
    ("--config", true),
    ("--state", true),
    ("--client-id", true),
    ("--client-secret-env", true),
    ("--issuer", true),
    ("--scope", true),
    ("--callback-port", true),
    ("--sign-in", false),
];

/// Returns the command with which a person signs in for a gateway that was started with these words. It holds no secret:
/// those are in environment variables.
pub(crate) fn sign_in_command(started: impl Iterator<Item = OsString>) -> String {
    let words = started
        .map(|word| word.to_string_lossy().into_owned())
        .take_while(|word| word != "--");
    let mut words = words.skip(1);
    let mut command = vec!["mcp-elicit".to_owned(), "gateway".to_owned()];
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let Some((name, takes_value)) = FOR_SIGN_IN.iter().find(|(known, _)| *known == name) else {
            continue;
        };
        command.push((*name).to_owned());
        if *takes_value {
            command.extend(value.or_else(|| words.next()));
        }
    }
    for option in ["--sign-in", "--check"] {
        if !command.iter().any(|word| word == option) {
            command.push(option.to_owned());
        }
    }
    shell_words::join(command)
}

/// Refuses a text of `--allow-origin` that is not the origin of a page.
pub(crate) fn check_origins(origins: &[String]) -> Result<(), Failure> {
    match origins.iter().find(|text| !is_origin(text)) {
        None => Ok(()),
        Some(wrong) => Err(
            Failure::usage(format!("`--allow-origin {wrong}` is not an origin"))
                .hint("write it like http://localhost:6274."),
        ),
    }
}

/// Returns the listener for other gateways with the address of the command line, if that has one.
fn peers_at(
    peers: Option<PeerSettings>,
    address: Option<String>,
) -> Result<Option<PeerSettings>, Failure> {
    match (peers, address) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(unreachable_by_others(PeerSettingsError::NoListener)),
        (Some(peers), address) => {
            let peers = peers.with_address(address);
            Ok(Some(peers.map_err(unreachable_by_others)?))
        }
    }
}

fn unreachable_by_others(fault: PeerSettingsError) -> Failure {
    Failure::usage("other gateways could not reach this one")
        .because(fault)
        .hint("write `--listen ADDRESS --record postgres://.. --peer-listen 10.0.0.5:8443`, or `--peer-address` beside `--config`.")
}

/// A configuration file, with the options that go with it.
#[derive(Clone, Debug)]
pub(crate) struct GatewayFile {
    /// Its path.
    pub(crate) path: PathBuf,
    state: Option<PathBuf>,
    plain: bool,
    presence: Option<RequiredPresence>,
    no_notify: bool,
    peer_address: Option<String>,
    profiles: ProfileArgs,
    doubt: Option<Duration>,
}

/// The reason why a configuration file cannot be used.
pub(crate) enum FileFault {
    /// It has errors.
    Config(ConfigError),
    /// It does not go with the options, or the profiles of clients cannot be read.
    Options(Failure),
}

impl From<Failure> for FileFault {
    fn from(failure: Failure) -> Self {
        Self::Options(failure)
    }
}

impl GatewayFile {
    /// Reads the text of the file.
    pub(crate) fn read(&self, text: &str) -> Result<Config, FileFault> {
        let mut config = Config::parse(text).map_err(FileFault::Config)?;
        for server in &mut config.servers {
            if let ServerTarget::Url(at) = &mut server.target
                && let Some(sign_in) = &at.sign_in
            {
                let command = sign_in_command(std::env::args_os());
                at.sign_in = Some(sign_in.with_command(command));
            }
        }
        let peers = peers_at(config.peers.take(), self.peer_address.clone())?;
        let mut profiles = self.profiles.read(Some((&self.path, text)))?;
        profiles.set_doubt(self.doubt);
        Ok(Config {
            state: self.state.clone().or(config.state),
            plain: self.plain,
            presence: self.presence.or(config.presence),
            notify: config.notify && !self.no_notify,
            peers,
            ..config
        }
        .with_profiles(profiles))
    }

    /// Reads the text of the file again, for the running gateway.
    pub(crate) fn read_again(&self, text: &str) -> Result<Config, ReloadError> {
        self.read(text).map_err(|fault| match fault {
            FileFault::Config(fault) => fault.into(),
            FileFault::Options(failure) => {
                let mut why = vec![failure.message()];
                why.extend(failure.causes().iter().map(String::as_str));
                why.extend(failure.lines().iter().map(|line| line.trim()));
                let why = why.join(": ");
                ReloadError::Options { why }
            }
        })
    }
}

/// Returns the failure for a file that cannot be used, with the line of the error.
pub(super) fn bad_config(path: &str, text: &str, fault: &ConfigError) -> Failure {
    let failure = Failure::usage(format!("{path} cannot be used"));
    let failure = telling_unset(failure, text);
    let told = fault.to_string();
    match told.trim_end().split_once('\n') {
        // The position in the file is shown over several lines.
        Some((first, shown)) => failure.telling(first, shown.lines().map(hide_userinfo).collect()),
        None => failure.because(fault),
    }
}

/// Adds the environment variables that the file names for secrets, and that are not set: all of them, with their lines.
pub(crate) fn telling_unset(failure: Failure, text: &str) -> Failure {
    let unset = unset_variables(text);
    if unset.is_empty() {
        failure
    } else {
        failure.telling("environment variables that are not set:", unset)
    }
}

/// Returns what a server is called before people unless the operator names it.
fn name_of(target: &ServerTarget) -> String {
    match target {
        ServerTarget::Program(program) => {
            let path = PathBuf::from(&program.program);
            path.file_stem().map_or_else(
                || "server".to_owned(),
                |name| name.to_string_lossy().into_owned(),
            )
        }
        ServerTarget::Url(HttpTarget { url, .. }) => {
            let host = url.split("://").nth(1).unwrap_or(url);
            host.split(['/', '?', '#'])
                .next()
                .unwrap_or(host)
                .rsplit('@')
                .next()
                .unwrap_or(host)
                .to_owned()
        }
    }
}

/// Reads a bound that may be off.
fn bound<N: TryFrom<u64>>(option: &str, text: &str) -> Result<Option<N>, Failure> {
    if text == "off" {
        return Ok(None);
    }
    let number = text
        .parse()
        .ok()
        .filter(|number| bounds::QUESTIONS.contains(number));
    let number = number.and_then(|number| N::try_from(number).ok());
    number.map(Some).ok_or_else(|| {
        let (least, most) = (bounds::QUESTIONS.start(), bounds::QUESTIONS.end());
        Failure::usage(format!(
            "`{option} {text}` is neither a number from {least} to {most} nor `off`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_by_its_program_or_host() {
        let program = |name: &str| {
            ServerTarget::Program(Program {
                program: name.into(),
                arguments: vec![],
                environment: vec![],
                inherits: Inherits::All,
                withheld: Vec::new(),
            })
        };
        assert_eq!(name_of(&program("/usr/bin/files.sh")), "files");
        let far = HttpTarget::new("https://me:pw@example.com:8080/mcp?x");
        assert_eq!(name_of(&ServerTarget::Url(far)), "example.com:8080");
    }

    #[test]
    fn the_command_for_a_sign_in_has_its_options_only() {
        let command = |words: &str| {
            let words = shell_words::split(words).unwrap();
            sign_in_command(words.into_iter().map(OsString::from))
        };
        assert_eq!(
            command(
                "/opt/mcp-elicit gateway --name x --upstream 'https://a.example/mcp?a=b c' --header X=secret --state=/s --sign-in"
            ),
            "mcp-elicit gateway --upstream 'https://a.example/mcp?a=b c' --state /s --sign-in --check"
        );
        assert_eq!(
            command("mcp-elicit gateway --config gateway.toml --log json"),
            "mcp-elicit gateway --config gateway.toml --sign-in --check"
        );
        assert_eq!(
            command(
                "mcp-elicit gateway --client-id corp --client-secret-env S --scope a -- x --scope b"
            ),
            "mcp-elicit gateway --client-id corp --client-secret-env S --scope a --sign-in --check"
        );
    }

    #[test]
    fn a_line_of_the_file_is_shown_without_passwords() {
        let line = "2 | url = \"http://me:pw@a.example/@x\", 'https://pw@b' # a@b, http://c";
        let shown = "2 | url = \"http://x\", 'https://b' # a@b, http://c";
        assert_eq!(hide_userinfo(line), shown);
    }

    #[test]
    fn a_bound_is_a_number_or_off() {
        assert_eq!(bound::<usize>("--pending", "off").unwrap(), None);
        assert_eq!(bound::<usize>("--pending", "7").unwrap(), Some(7));
        for wrong in ["-1", "0", "1000001", "99999999999999999999", "ten", ""] {
            let refused = bound::<usize>("--pending", wrong).unwrap_err();
            assert!(refused.message().contains("from 1 to 1000000 nor `off`"));
        }
    }
}
