//! The configuration file: TOML, checked as a whole before anything is started.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use mcp_elicit_client::connection::BearerToken;
use mcp_elicit_core::wire::Revision;
use mcp_elicit_inbox::login::{LoginMode, LoginSettings};
use mcp_elicit_inbox::state_folder::RequiredPresence;
use mcp_elicit_record::Retention;
use mcp_elicit_record::stored_bytes::StorageLimits;
use mcp_elicit_relay::RelaySettings;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::auth::{Auth, FileAuth};
use super::database::password_in;
use super::error::keys_of;
use super::login::{FileLogin, LoginContext};
use super::oidc;
use super::secret::{FileSecret, variables_of_secrets};
use super::teams::{MatchedCallers, TeamTables, check_reauth};
use super::upstream::{FileAuthSetting, OwnAccess, UpstreamCredentials};
use super::{
    AnswerWith, AnswerWithError, ByteLimits, Config, ConfigError, ConfiguredServer, FileSettings,
    HttpTarget, Inherits, MAX_FRAME, PeerSettings, Program, RecordDatabase, ServerTarget, bounds,
    is_origin,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ConfigFile {
    #[serde(default)]
    listen: Option<SocketAddr>,
    #[serde(default)]
    inbox: Option<Spanned<SocketAddr>>,
    #[serde(default)]
    inbox_url: Option<Spanned<String>>,
    #[serde(default)]
    login: Option<Spanned<FileLogin>>,
    #[serde(default)]
    presence: Option<FilePresence>,
    #[serde(default)]
    notify: Option<bool>,
    #[serde(default)]
    state: Option<PathBuf>,
    #[serde(default)]
    record: FileRecord,
    #[serde(default)]
    record_password: Option<Spanned<FileSecret>>,
    #[serde(default)]
    record_password_command: Option<Vec<String>>,
    #[serde(default)]
    peer_listen: Option<Spanned<SocketAddr>>,
    #[serde(default)]
    peer_address: Option<Spanned<String>>,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    max_frame: Option<usize>,
    /// Seconds.
    #[serde(default)]
    ready_grace: Option<u64>,
    /// Seconds.
    #[serde(default)]
    drain: Option<u64>,
    #[serde(default)]
    traces: Option<Spanned<String>>,
    #[serde(default)]
    caller_call_bytes: Option<usize>,
    #[serde(default)]
    all_call_bytes: Option<usize>,
    #[serde(default)]
    caller_question_bytes: Option<u64>,
    #[serde(default)]
    all_question_bytes: Option<u64>,
    #[serde(default)]
    argument_bytes: Option<usize>,
    /// Bytes.
    #[serde(default)]
    max_record: Option<u64>,
    #[serde(default)]
    max_open: Option<u64>,
    #[serde(default)]
    allow_origins: Vec<Spanned<String>>,
    /// Addresses and ranges of addresses.
    #[serde(default)]
    trusted_proxies: Vec<Spanned<String>>,
    #[serde(default)]
    auth: Option<Spanned<FileAuth>>,
    #[serde(default)]
    public_url: Option<Spanned<String>>,
    /// Seconds.
    #[serde(default)]
    keep_answers: Option<u64>,
    /// Seconds.
    #[serde(default)]
    keep_results: Option<u64>,
    /// Days.
    #[serde(default)]
    keep_ended: Option<u64>,
    keep_audit: Option<u64>,
    /// Read by the rules' own reader, like the next three.
    #[serde(default)]
    people: Option<Spanned<IgnoredAny>>,
    #[serde(default)]
    groups: Option<Spanned<IgnoredAny>>,
    #[serde(default)]
    roles: Option<Spanned<IgnoredAny>>,
    #[serde(default)]
    rules: Option<Spanned<IgnoredAny>>,
    /// Read by the channels' own reader.
    #[serde(default)]
    channels: Option<Spanned<IgnoredAny>>,
    #[serde(default)]
    time_zone: Option<Spanned<String>>,
    /// Read by the profiles' own reader.
    #[serde(default, rename = "clients")]
    _clients: Option<IgnoredAny>,
    #[serde(default)]
    servers: BTreeMap<String, Spanned<FileServer>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FilePresence {
    Any,
    Page,
}

impl From<FilePresence> for RequiredPresence {
    fn from(presence: FilePresence) -> Self {
        match presence {
            FilePresence::Any => Self::Any,
            FilePresence::Page => Self::Page,
        }
    }
}

/// `record`.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
enum FileRecord {
    #[default]
    Sqlite,
    Memory,
    Database(String),
}

impl TryFrom<String> for FileRecord {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "sqlite" => Ok(Self::Sqlite),
            "memory" => Ok(Self::Memory),
            _ if RecordDatabase::is_address(&text) => Ok(Self::Database(text)),
            // The text may contain a password.
            _ => Err("`record` is `sqlite`, `memory` or `postgres://USER@HOST:PORT/DATABASE`"),
        }
    }
}

/// `revision` of a server.
#[derive(Clone, Copy, Default, Deserialize)]
enum ServerRevision {
    #[default]
    #[serde(rename = "auto")]
    Auto,
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

impl From<ServerRevision> for Option<Revision> {
    fn from(revision: ServerRevision) -> Self {
        match revision {
            ServerRevision::Auto => None,
            ServerRevision::V2025_06_18 => Some(Revision::V2025_06_18),
            ServerRevision::V2025_11_25 => Some(Revision::V2025_11_25),
            ServerRevision::V2026_07_28 => Some(Revision::V2026_07_28),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileServer {
    #[serde(default)]
    command: Option<Vec<String>>,
    #[serde(default)]
    url: Option<Spanned<String>>,
    /// The environment variable that holds the token for `url`.
    #[serde(default)]
    token_env: Option<Spanned<String>>,
    /// The credentials for `url`.
    #[serde(default)]
    auth: Option<FileAuthSetting>,
    /// Headers for `url`.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Environment variables with the values of headers for `url`.
    #[serde(default)]
    header_env: BTreeMap<String, String>,
    /// `true` if the operator signs in at `url` with OAuth.
    #[serde(default)]
    sign_in: bool,
    #[serde(default)]
    client_id: Option<String>,
    #[serde(default)]
    client_secret_env: Option<String>,
    #[serde(default)]
    issuer: Option<String>,
    #[serde(default)]
    scopes: Vec<String>,
    #[serde(default)]
    callback_port: Option<u16>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Variables of the gateway's own environment that `command` gets in addition to the usual ones.
    #[serde(default)]
    pass_env: Vec<String>,
    #[serde(default)]
    share_child: bool,
    /// Calls may be tasks of the gateway.
    #[serde(default)]
    tasks: bool,
    /// The revision in which the server is addressed.
    #[serde(default)]
    revision: ServerRevision,
    #[serde(default)]
    answer_with: AnswerWith,
    #[serde(default)]
    answer_command: Option<Spanned<Vec<String>>>,
    /// Seconds.
    #[serde(default)]
    hold: Option<u64>,
    /// Hours.
    #[serde(default, alias = "patience")]
    open_for: Option<u64>,
    /// 0 for no limit.
    #[serde(default)]
    pending: Option<usize>,
    /// Bytes of a question's message.
    #[serde(default)]
    message_bytes: Option<usize>,
    /// Bytes of all pending questions of a session.
    #[serde(default)]
    pending_bytes: Option<usize>,
    /// 0 for no limit.
    #[serde(default)]
    questions_per_minute: Option<u32>,
}

impl ConfigFile {
    /// Rejects numbers outside their range. 0 means no limit on questions.
    fn check_numbers(&self) -> Result<(), ConfigError> {
        let wide = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let mut numbers = vec![
            ("max-frame", self.max_frame.map(wide), bounds::MAX_FRAME),
            (
                "caller-call-bytes",
                self.caller_call_bytes.map(wide),
                bounds::BYTES,
            ),
            (
                "all-call-bytes",
                self.all_call_bytes.map(wide),
                bounds::BYTES,
            ),
            (
                "caller-question-bytes",
                self.caller_question_bytes,
                bounds::BYTES,
            ),
            ("all-question-bytes", self.all_question_bytes, bounds::BYTES),
            (
                "argument-bytes",
                self.argument_bytes.map(wide),
                bounds::ARGUMENT_BYTES,
            ),
            ("max-record", self.max_record, bounds::BYTES),
            ("max-open", self.max_open, bounds::QUESTIONS),
            ("ready-grace", self.ready_grace, bounds::DRAIN),
            ("drain", self.drain, bounds::DRAIN),
            ("keep-answers", self.keep_answers, bounds::KEEP),
            ("keep-results", self.keep_results, bounds::KEEP),
            ("keep-ended", self.keep_ended, bounds::KEEP_ENDED),
            ("keep-audit", self.keep_audit, bounds::KEEP_AUDIT),
        ];
        for server in self.servers.values().map(Spanned::get_ref) {
            let some = |number: &u64| *number != 0;
            let per_minute = server.questions_per_minute.map(u64::from).filter(some);
            numbers.extend([
                ("hold", server.hold, bounds::HOLD),
                ("open-for", server.open_for, bounds::QUESTION_HOURS),
                (
                    "pending",
                    server.pending.map(wide).filter(some),
                    bounds::QUESTIONS,
                ),
                ("questions-per-minute", per_minute, bounds::QUESTIONS),
                (
                    "message-bytes",
                    server.message_bytes.map(wide),
                    bounds::MESSAGE_BYTES,
                ),
                (
                    "pending-bytes",
                    server.pending_bytes.map(wide),
                    bounds::PENDING_BYTES,
                ),
            ]);
        }
        for (name, value, range) in numbers {
            if let Some(value) = value.filter(|value| !range.contains(value)) {
                let (least, most) = (*range.start(), *range.end());
                return Err(ConfigError::OutOfRange {
                    name,
                    value,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }
}

/// Returns the keys that are allowed before the first table.
pub(super) fn keys() -> Vec<String> {
    keys_of::<ConfigFile>()
}

/// Returns the keys of `[servers.NAME]`.
pub(super) fn server_keys() -> Vec<String> {
    keys_of::<FileServer>()
}

impl Config {
    /// Reads the text of a TOML file. An error names and shows its line.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let file: ConfigFile = toml::from_str(text)?;
        file.check_numbers()?;
        if file.servers.is_empty() {
            return Err(ConfigError::NoServer);
        }
        if file.servers.len() > 1 && file.listen.is_none() {
            return Err(ConfigError::NoListen);
        }
        let start = |table: Option<Spanned<IgnoredAny>>| table.map(|table| table.span().start);
        let tables = TeamTables {
            people: start(file.people),
            groups: start(file.groups),
            roles: start(file.roles),
            rules: start(file.rules),
            channels: start(file.channels),
            time_zone: file.time_zone,
        };
        let teams = tables.read(text, file.inbox.is_some())?;
        let is_loopback = file
            .inbox
            .as_ref()
            .map(|inbox| mcp_elicit_inbox::is_loopback(*inbox.get_ref()));
        let login = match file.login {
            None => None,
            Some(login) => {
                let at = login.span().start;
                let context = LoginContext {
                    rules: teams.as_deref(),
                    at,
                    is_loopback,
                    url: file.inbox_url.as_ref(),
                    proxies: &file.trusted_proxies,
                };
                let login = login.into_inner().read(&context);
                login.map_err(|(error, place)| error.at(text, place))?
            }
        };
        if let Some(inbox) = &file.inbox
            && is_loopback == Some(false)
            && login.is_none()
        {
            let at = *inbox.get_ref();
            return Err(ConfigError::NotLoopback { at }.at(text, inbox.span().start));
        }
        if let Some(wrong) = file
            .allow_origins
            .iter()
            .find(|text| !is_origin(text.get_ref()))
        {
            let fault = ConfigError::Origin {
                text: wrong.get_ref().clone(),
            };
            return Err(fault.at(text, wrong.span().start));
        }
        let public_url = match &file.public_url {
            None => None,
            Some(url) => Some(oidc::origin(url.get_ref()).ok_or_else(|| {
                let fault = ConfigError::PublicUrl {
                    text: url.get_ref().clone(),
                };
                fault.at(text, url.span().start)
            })?),
        };
        let traces = match file.traces {
            None => None,
            Some(address) => {
                Some(collector(&address).map_err(|fault| fault.at(text, address.span().start))?)
            }
        };
        let auth_at = file.auth.as_ref().map_or(0, |auth| auth.span().start);
        let auth = match file.auth {
            None => Auth::None,
            Some(auth) if file.listen.is_none() => {
                return Err(ConfigError::AuthNeedsListen.at(text, auth.span().start));
            }
            Some(auth) => {
                let logged_in_by = login.as_ref().map(|login| &login.mode);
                let proxy_logs_in = matches!(logged_in_by, Some(LoginMode::Proxy(_)));
                let read = auth.into_inner().read(&file.trusted_proxies, proxy_logs_in);
                read.map_err(|(error, place)| match place {
                    Some(place) => error.at(text, place),
                    None => error,
                })?
            }
        };
        if let Some(rules) = &teams {
            let callers = MatchedCallers {
                listens: file.listen.is_some(),
                auth: &auth,
                logs_in: login.as_ref().map(LoginSettings::issuer),
            };
            callers.check(text, rules)?;
            check_reauth(text, rules, login.as_ref())?;
        }
        let is_local = file.listen.is_some_and(|at| at.ip().is_loopback());
        if matches!(auth, Auth::Oidc(_)) && public_url.is_none() && !is_local {
            return Err(ConfigError::NoPublicUrl.at(text, auth_at));
        }
        let channels = tables.read_channels(text, teams.as_deref())?;
        let inbox = file.inbox.map(Spanned::into_inner);
        let secrets = variables_of_secrets(text);
        let read = |(name, server): (String, Spanned<FileServer>)| {
            let start = server.span().start;
            let server = server.into_inner();
            server
                .read(name, inbox.is_some(), &auth, &secrets)
                .map_err(|(fault, place)| fault.at(text, place.unwrap_or(start)))
        };
        let servers = file.servers.into_iter().map(read);
        let servers = servers.collect::<Result<_, _>>()?;
        let usual = ByteLimits::DEFAULT;
        let is_memory = file.record == FileRecord::Memory;
        let database = match file.record {
            FileRecord::Database(address) => {
                let secret = file.record_password.as_ref();
                let at = secret.map_or(0, |secret| secret.span().start);
                let secret = secret.map(Spanned::get_ref);
                let password = password_in(secret, file.record_password_command);
                let password = password.map_err(|fault| fault.at(text, at))?;
                Some(RecordDatabase::new(address, password))
            }
            FileRecord::Sqlite | FileRecord::Memory => None,
        };
        let peers_at = file.peer_listen.as_ref().map(|at| at.span().start);
        let peers_at = peers_at.or(file.peer_address.as_ref().map(|at| at.span().start));
        let peers = PeerSettings::read(
            file.peer_listen.map(Spanned::into_inner),
            file.peer_address.map(Spanned::into_inner),
            file.listen.is_some() && database.is_some(),
        );
        let peers =
            peers.map_err(|fault| ConfigError::from(fault).at(text, peers_at.unwrap_or(0)))?;
        Ok(Self {
            listen: file.listen,
            inbox,
            inbox_may_move: false,
            login,
            presence: file.presence.map(RequiredPresence::from),
            notify: file.notify.unwrap_or(true),
            open_login: None,
            state: file.state,
            in_memory: is_memory,
            database,
            peers,
            plain: false,
            insecure: file.insecure,
            auth,
            teams,
            public_url,
            channels,
            max_frame: file.max_frame.unwrap_or(MAX_FRAME),
            ready_grace: Duration::from_secs(file.ready_grace.unwrap_or(0)),
            drain: Duration::from_secs(file.drain.unwrap_or(0)),
            traces,
            byte_limits: ByteLimits {
                caller_calls: file.caller_call_bytes.unwrap_or(usual.caller_calls),
                all_calls: file.all_call_bytes.unwrap_or(usual.all_calls),
                questions: StorageLimits {
                    of_caller: file
                        .caller_question_bytes
                        .unwrap_or(usual.questions.of_caller),
                    of_all: file.all_question_bytes.unwrap_or(usual.questions.of_all),
                    arguments: file.argument_bytes.unwrap_or(usual.questions.arguments),
                    of_record: file.max_record,
                    open: file.max_open,
                },
            },
            allow_origins: file
                .allow_origins
                .into_iter()
                .map(Spanned::into_inner)
                .collect(),
            retention: retention(
                file.keep_answers,
                file.keep_results,
                file.keep_ended,
                file.keep_audit,
            ),
            servers,
            file_settings: FileSettings::read(text).unwrap_or_default(),
        }
        .with_result_retention())
    }

    /// Passes the retention of results to every server's settings.
    #[must_use]
    pub fn with_result_retention(mut self) -> Self {
        for server in &mut self.servers {
            server.settings.keep_results = self.retention.results;
        }
        self
    }
}

/// Returns the address of a collector.
fn collector(address: &Spanned<String>) -> Result<String, ConfigError> {
    if !cfg!(feature = "otel") {
        return Err(ConfigError::NeedsFull { table: "`traces`" });
    }
    let text = address.get_ref();
    let is_http = reqwest::Url::parse(text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    is_http.then(|| text.clone()).ok_or(ConfigError::Traces)
}

/// Returns the retention: answers and results in seconds, ended questions and the audit in days.
pub fn retention(
    answers: Option<u64>,
    results: Option<u64>,
    ended: Option<u64>,
    audit: Option<u64>,
) -> Retention {
    let usual = Retention::default();
    let days = |days: u64| Duration::from_secs(days.saturating_mul(24 * 60 * 60));
    Retention {
        answers: answers.map_or(usual.answers, Duration::from_secs),
        results: results.map_or(usual.results, Duration::from_secs),
        ended: ended.map_or(usual.ended, days),
        audit: audit.map(days),
    }
}

/// The error in a server's settings, and its byte in the file, if it has one.
type MisplacedServerError = (ConfigError, Option<usize>);

impl FileServer {
    fn read(
        self,
        name: String,
        inbox: bool,
        auth: &Auth,
        secrets: &[String],
    ) -> Result<ConfiguredServer, MisplacedServerError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || !name.bytes().all(plain) {
            return Err((ConfigError::Name { name }, None));
        }
        let program = self.command.map(Program::from_words);
        let own = OwnAccess {
            headers: self.headers,
            header_env: self.header_env,
            sign_in: self.sign_in,
            client_id: self.client_id,
            client_secret_env: self.client_secret_env,
            issuer: self.issuer,
            scopes: self.scopes,
            callback_port: self.callback_port,
        };
        let others = self.auth.is_some() || self.token_env.is_some();
        let (mut credentials, token) = match self.auth {
            None => (UpstreamCredentials::default(), None),
            // The operator's token may be set once, and never for a program.
            Some(_) if self.token_env.is_some() || self.url.is_none() => {
                return Err((ConfigError::Target { name }, None));
            }
            Some(setting) => setting
                .into_inner()
                .read(&name, auth)
                .map_err(|fault| (fault, None))?,
        };
        let target = match (program, self.url, self.token_env) {
            (Some(Some(program)), None, None) if own.is_none() => ServerTarget::Program(Program {
                environment: environment(self.env, self.pass_env),
                inherits: Inherits::Usual,
                ..program
            }),
            (None, Some(url), variable)
                if self.env.is_empty() && self.pass_env.is_empty() && !self.share_child =>
            {
                let at = at_url(&name, &url, variable.as_ref())?;
                let at = HttpTarget {
                    token: token.or(at.token),
                    ..at
                };
                let at = own
                    .add_to(&name, at, others)
                    .map_err(|fault| (fault, Some(url.span().start)))?;
                if at.has_own_authorization() {
                    credentials = UpstreamCredentials::Operator;
                }
                ServerTarget::Url(at)
            }
            _ => return Err((ConfigError::Target { name }, None)),
        };
        let place = self.answer_command.as_ref().map(|words| words.span().start);
        let command = self.answer_command.map(Spanned::into_inner);
        // An empty command is as wrong as a missing one.
        let settled = match command.map(Program::from_words) {
            Some(None) => Err(AnswerWithError::CommandMismatch),
            command => {
                let program = command.flatten().map(|program| Program {
                    inherits: Inherits::AllButDatabase,
                    withheld: secrets.to_vec(),
                    ..program
                });
                self.answer_with.resolve(program, inbox)
            }
        };
        let (answer_with, answering) = match settled {
            Ok(settled) => settled,
            Err(fault) => return Err((ConfigError::AnswerCommand { name, fault }, place)),
        };
        let usual = RelaySettings::default();
        let settings = RelaySettings {
            server: name,
            answer_with,
            revision: self.revision.into(),
            tasks: self.tasks,
            hold: self.hold.map_or(usual.hold, Duration::from_secs),
            open_for: self.open_for.map_or(usual.open_for, |hours| {
                Duration::from_secs(hours.saturating_mul(3600))
            }),
            pending: self
                .pending
                .map_or(usual.pending, |most| Some(most).filter(|most| *most > 0)),
            message_bytes: self.message_bytes.unwrap_or(usual.message_bytes),
            pending_bytes: self.pending_bytes.unwrap_or(usual.pending_bytes),
            per_minute: self
                .questions_per_minute
                .map_or(usual.per_minute, |most| Some(most).filter(|most| *most > 0)),
            ..usual
        };
        Ok(ConfiguredServer {
            target,
            credentials,
            settings,
            share_child: self.share_child,
            answering,
            is_named: true,
            is_configured_by_environment: false,
        })
    }
}

/// Returns a program's environment: variables with their values, and the listed ones of the gateway's own environment.
fn environment(set: BTreeMap<String, String>, passed: Vec<String>) -> Vec<(String, String)> {
    let passed = passed.into_iter().filter(|name| !set.contains_key(name));
    let passed = passed.filter_map(|name| Some((name.clone(), std::env::var(&name).ok()?)));
    let passed: Vec<_> = passed.collect();
    set.into_iter().chain(passed).collect()
}

fn at_url(
    name: &str,
    url: &Spanned<String>,
    variable: Option<&Spanned<String>>,
) -> Result<HttpTarget, MisplacedServerError> {
    if let Err(fault) = HttpTarget::check(url.get_ref()) {
        let name = name.to_owned();
        return Err((ConfigError::Address { name, fault }, Some(url.span().start)));
    }
    let token = variable.map(|variable| {
        BearerToken::from_env(variable.get_ref()).map_err(|fault| {
            let name = name.to_owned();
            let place = Some(variable.span().start);
            (ConfigError::Token { name, fault }, place)
        })
    });
    Ok(HttpTarget {
        token: token.transpose()?,
        ..HttpTarget::new(url.get_ref())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collector_of_traces_is_an_address_over_http() {
        let parse = |address: &str| {
            let server = "[servers.a]\ncommand = [\"a\"]\n";
            Config::parse(&format!("traces = \"{address}\"\n{server}"))
        };
        let needs_full = "`traces` belongs to the cargo feature `full`";
        let says = |address: &str| parse(address).unwrap_err().to_string();
        if !cfg!(feature = "otel") {
            assert!(says("http://localhost:4318").contains(needs_full));
            return;
        }
        let read = parse("http://localhost:4318").unwrap();
        assert_eq!(read.traces.as_deref(), Some("http://localhost:4318"));
        for wrong in [
            "",
            "localhost:4318",
            "grpc://user:s3cret@localhost:4317",
            "http://",
        ] {
            let said = says(wrong);
            assert!(
                said.contains("the address of an OpenTelemetry collector"),
                "{said}"
            );
            assert!(!said.contains("s3cret"), "{said}");
        }
    }

    #[test]
    fn a_whole_file_is_read() {
        let text = r#"
            listen = "127.0.0.1:8080"
            inbox = "127.0.0.1:7878"
            record = "memory"
            keep-answers = 60
            presence = "page"
            notify = false
            allow-origins = ["http://localhost:6274"]
            [servers.files]
            command = ["npx", "-y", "files"]
            env = { DEBUG = "1" }
            answer-with = "inbox"
            hold = 20
            pending = 0
            message-bytes = 2000
            pending-bytes = 70000
            [servers.far]
            url = "https://example.com/mcp"
        "#;
        let config = Config::parse(text).unwrap();
        assert_eq!(config.servers.len(), 2);
        assert!(config.in_memory && !config.notify);
        assert_eq!(config.presence, Some(RequiredPresence::Page));
        assert_eq!(config.retention.answers, Duration::from_secs(60));
        assert_eq!(config.retention.results, Duration::from_secs(15 * 60));
        let files = &config.servers[1];
        assert_eq!(
            (files.settings.server.as_str(), files.settings.pending),
            ("files", None)
        );
        assert_eq!(files.settings.hold, Duration::from_secs(20));
        let bytes = (files.settings.message_bytes, files.settings.pending_bytes);
        assert_eq!(bytes, (2_000, 70_000));
        let far = &config.servers[0].settings;
        let bytes = (far.message_bytes, far.pending_bytes);
        assert_eq!(bytes, (64 * 1024, 8 * 1024 * 1024));
        assert_eq!(config.allow_origins, ["http://localhost:6274"]);
        assert!(
            matches!(&files.target, ServerTarget::Program(program) if program.arguments.len() == 2)
        );
    }

    #[test]
    fn a_number_out_of_its_range_is_refused_with_the_range() {
        let server = "[servers.a]\ncommand = [\"a\"]\n";
        for (top, in_server, expected) in [
            (
                "max-frame = 0\n",
                "",
                "`max-frame` is 0; it may be from 4096 to 1073741824",
            ),
            (
                "keep-answers = 999999999999\n",
                "",
                "`keep-answers` is 999999999999",
            ),
            ("keep-ended = 0\n", "", "`keep-ended` is 0"),
            (
                "",
                "hold = 86401\n",
                "`hold` is 86401; it may be from 0 to 86400",
            ),
            ("", "open-for = 0\n", "`open-for` is 0"),
            // Its former name.
            ("", "patience = 0\n", "`open-for` is 0"),
            ("", "pending = 1000001\n", "`pending` is 1000001"),
        ] {
            let refused = Config::parse(&format!("{top}{server}{in_server}")).unwrap_err();
            assert!(refused.to_string().contains(expected), "{refused}");
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let wrong = "listen = \"127.0.0.1:8080\"\n[servers.a]\nurl = \"http://x\"\nholdd = 3\n";
        let said = Config::parse(wrong).unwrap_err().to_string();
        assert!(said.contains("line 4") && said.contains("holdd"), "{said}");
        let wrong = "[servers.a]\nurl = \"http://x\"\nhold = \"long\"\n";
        let said = Config::parse(wrong).unwrap_err().to_string();
        assert!(said.contains("expected a whole number"), "{said}");
        let server = "[servers.a]\nurl = \"http://x\"\n";
        let said = Config::parse(&format!("hold = 3\n{server}")).unwrap_err();
        let said = said.to_string();
        assert!(
            said.contains("unknown field `hold`: it belongs in `[servers.NAME]`"),
            "{said}"
        );
        let said = Config::parse(&format!("{server}keep-answers = 3\n")).unwrap_err();
        let said = said.to_string();
        assert!(
            said.contains("unknown field `keep-answers`: it belongs at the top of the file"),
            "{said}"
        );
        assert!(matches!(Config::parse(""), Err(ConfigError::NoServer)));
        let two = "[servers.a]\nurl = \"http://x\"\n[servers.b]\nurl = \"http://y\"\n";
        assert!(matches!(Config::parse(two), Err(ConfigError::NoListen)));
    }

    #[test]
    fn what_does_not_go_together_is_named_with_its_line_too() {
        for (wrong, line, about) in [
            ("\n[servers.a]\nhold = 3\n", 2, "`command`"),
            ("[servers.\"a/b\"]\ncommand = [\"x\"]\n", 1, "a/b"),
            (
                "[servers.a]\nurl = \"http://x\"\nanswer-command = []\n",
                3,
                "answer-with",
            ),
            ("[servers.a]\nurl = \"ftp://x\"\n", 2, "http and https"),
            (
                "[servers.a]\nurl = \"http://x\"\nanswer-with = \"inbox\"\n",
                1,
                "no question can be answered",
            ),
            (
                "[servers.a]\nurl = \"http://x\"\ntoken-env = \"NO_SUCH_TOKEN\"\n",
                3,
                "NO_SUCH_TOKEN",
            ),
            (
                "allow-origins = [\n\"http://a\",\n\"localhost\"]\n[servers.a]\nurl = \"http://x\"\n",
                3,
                "`localhost` is not an origin",
            ),
            (
                "inbox = \"192.0.2.1:1\"\n[servers.a]\nurl = \"http://x\"\n",
                1,
                "loopback",
            ),
        ] {
            let said = Config::parse(wrong).unwrap_err().to_string();
            assert!(
                said.starts_with(&format!("error at line {line}\n")),
                "{said}"
            );
            assert!(said.contains(about), "{said}");
        }
    }

    #[test]
    fn headers_and_a_sign_in_belong_to_a_server_at_a_url() {
        let text = "listen = \"127.0.0.1:0\"\n[servers.a]\nurl = \"http://127.0.0.1:9/mcp\"\nheaders = { X-Team = \"ops\" }\n\
            header-env = { Authorization = \"PATH\" }\n[servers.b]\nurl = \"https://b.example/mcp\"\nsign-in = true\n\
            scopes = [\"read\"]\nissuer = \"https://login.example\"\ncallback-port = 4000\n";
        let config = Config::parse(text).unwrap();
        let [a, b] = &*config.servers else {
            panic!("two servers");
        };
        let (ServerTarget::Url(headers), ServerTarget::Url(sign_in)) = (&a.target, &b.target)
        else {
            panic!("servers at URLs");
        };
        assert_eq!(headers.headers.len(), 2);
        assert!(
            headers
                .headers
                .iter()
                .all(|(_, value)| value.is_sensitive())
        );
        assert!(sign_in.sign_in.is_some() && headers.sign_in.is_none());
        // A client's own Authorization is not for a server that has the operator's.
        for server in [a, b] {
            assert_eq!(server.credentials, UpstreamCredentials::Operator);
        }
        for (wrong, about) in [
            (
                "command = [\"x\"]\nheaders = { X = \"1\" }",
                "needs either `command`",
            ),
            (
                "command = [\"x\"]\nsign-in = true",
                "needs either `command`",
            ),
            (
                "url = \"http://x\"\nscopes = [\"a\"]",
                "need sign-in = true",
            ),
            (
                "url = \"http://x\"\nsign-in = true\nauth = { mode = \"none\" }",
                "sign-in conflicts",
            ),
            (
                "url = \"http://x\"\nsign-in = true\nheaders = { authorization = \"a\" }",
                "sign-in conflicts",
            ),
            ("url = \"http://me@x\"\nsign-in = true", "user name"),
            (
                "url = \"http://x\"\nsign-in = true\nclient-secret-env = \"PATH\"",
                "needs `client-id`",
            ),
            (
                "url = \"http://x\"\nheaders = { Mcp-Session-Id = \"hunter2\" }",
                "set by the transport",
            ),
            (
                "url = \"http://x\"\nheaders = { \"a b\" = \"hunter2\" }",
                "not a valid header name",
            ),
            (
                "url = \"http://x\"\nheaders = { X = \"hunter2\\n\" }",
                "cannot be sent",
            ),
            (
                "url = \"http://x\"\nheader-env = { X = \"NO_SUCH_KEY\" }",
                "NO_SUCH_KEY",
            ),
        ] {
            let said = Config::parse(&format!("[servers.a]\n{wrong}\n"))
                .unwrap_err()
                .to_string();
            assert!(said.contains(about), "{wrong}: {said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
