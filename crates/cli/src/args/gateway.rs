//! The arguments of `gateway`, and the configuration that they make.

use std::ffi::OsString;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use mcp_elicit_gateway::config::{
    self, AnswerWithError, Auth, Config, ConfigError, HttpTarget, MAX_FRAME, Program,
    RestartSettings, Server, Target, UpstreamCredentials, bounds, is_origin, retention,
    unset_variables,
};
use mcp_elicit_inbox::state_folder::Presence;
use mcp_elicit_relay::RelaySettings;

use crate::args::program::of_answer_command;
use crate::args::token::TokenArgs;
use crate::failure::Failure;

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
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    upstream: Option<String>,

    #[command(flatten)]
    token: TokenArgs,

    /// Serve clients over HTTP at this address, under /mcp, instead of one on stdin and stdout
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Read servers and settings from this TOML file
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "upstream", "token_env", "command", "listen", "inbox", "answer_with", "answer_command", "name", "hold", "pending",
        "message_bytes", "pending_bytes", "allow_origin", "questions_per_minute", "max_frame", "record", "keep_answers", "keep_results", "keep_ended", "share_child",
        "insecure", "auth",
    ])]
    pub(crate) config: Option<PathBuf>,

    /// Check the command line and the file, then stop
    #[arg(long)]
    pub(crate) check: bool,

    /// Address of the inbox on this machine; `off` for none [default: 127.0.0.1:7878, or a free port if that is
    /// taken]
    #[arg(long, value_name = "ADDRESS")]
    inbox: Option<String>,

    /// The responder to ask
    #[arg(long, value_enum, value_name = "RESPONDER", default_value_t = AnswerWith::Auto)]
    answer_with: AnswerWith,

    /// With `--answer-with terminal`: ask line by line, without a screen
    #[arg(long)]
    plain: bool,

    /// With `--answer-with command`: the program and its arguments, quoted as in a shell. It reads each question as one
    /// line of JSON and writes {"action", "content"}
    #[arg(long, value_name = "COMMAND")]
    answer_command: Option<String>,

    /// Server name shown to people [default: the name that it reports]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Seconds that a call is held for a person before it is returned with an answer link
    #[arg(long, value_name = "SECONDS", default_value_t = 50, value_parser = value_parser!(u64).range(bounds::HOLD))]
    hold: u64,

    /// Maximum number of questions pending at once in one session; `off` for no limit
    #[arg(long, value_name = "N|off", default_value = "100")]
    pending: String,

    /// The longest message of a question, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = value_parser!(u64).range(bounds::MESSAGE_BYTES))]
    message_bytes: u64,

    /// The size of all questions pending at once in one session, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 8_388_608, value_parser = value_parser!(u64).range(bounds::PENDING_BYTES))]
    pending_bytes: u64,

    /// Maximum number of questions per minute in one session; `off` for no limit
    #[arg(long, value_name = "N|off", default_value = "60")]
    questions_per_minute: String,

    /// Serve clients at a network address without authentication: every program that reaches it can call the servers
    #[arg(long)]
    insecure: bool,

    /// Authentication of callers over HTTP: `keys` for API keys, made by `mcp-elicit tokens make`. A configuration file
    /// offers more methods (`[auth]`)
    #[arg(long, value_enum, value_name = "METHOD", default_value_t = AuthArg::None, requires = "listen")]
    auth: AuthArg,

    /// With `--listen`: accept pages of this origin, such as http://localhost:6274; repeat for more
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    allow_origin: Vec<String>,

    /// Send all calls of a client of 2026-07-28 to one child, for a server that shares memory between calls: calls in
    /// which it may ask then run one after the other
    #[arg(long)]
    share_child: bool,

    /// The largest message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = MAX_FRAME as u64, value_parser = value_parser!(u64).range(bounds::MAX_FRAME))]
    max_frame: u64,

    /// Seconds that an answer is kept for a repeated call, after the person gave it [default: 900]
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(bounds::KEEP))]
    keep_answers: Option<u64>,

    /// Seconds that the result of a returned call is kept for a repeated call [default: 900]
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(bounds::KEEP))]
    keep_results: Option<u64>,

    /// Days that ended questions stay in the record [default: 30]
    #[arg(long, value_name = "DAYS", value_parser = value_parser!(u64).range(bounds::KEEP_ENDED))]
    keep_ended: Option<u64>,

    /// Store of the questions
    #[arg(long, value_enum, value_name = "STORE", default_value_t = Record::Sqlite)]
    record: Record,

    /// The folder of the record, its key and the inbox's token
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// Which answers to accept in this state folder: `page` (inbox pages only) or `any` (also commands, programs and
    /// client dialogs). Applies to all its gateways until changed
    #[arg(long, value_enum, value_name = "ANSWERS")]
    presence: Option<PresenceArg>,

    /// Do not show a desktop notification when a question waits
    #[arg(long)]
    no_notify: bool,

    /// The format of the log on stderr
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Log::Text)]
    pub(crate) log: Log,

    /// Start this program as the server
    #[arg(last = true, value_name = "SERVER")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  mcp-elicit gateway -- npx -y @modelcontextprotocol/server-everything
  mcp-elicit gateway --upstream https://example.com/mcp
  mcp-elicit gateway --listen 127.0.0.1:8080 -- my-server
  mcp-elicit gateway --config gateway.toml --check";

/// The responder that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AnswerWith {
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

impl From<AnswerWith> for config::AnswerWith {
    fn from(who: AnswerWith) -> Self {
        match who {
            AnswerWith::Auto => Self::Auto,
            AnswerWith::Client => Self::Client,
            AnswerWith::Inbox => Self::Inbox,
            AnswerWith::Terminal => Self::Terminal,
            AnswerWith::Command => Self::Command,
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

impl From<PresenceArg> for Presence {
    fn from(presence: PresenceArg) -> Self {
        match presence {
            PresenceArg::Any => Self::Any,
            PresenceArg::Page => Self::Page,
        }
    }
}

/// The store of the questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Record {
    /// A file in the state folder, which survives a restart
    Sqlite,
    /// In memory only: lost when the process ends
    Memory,
}

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Log {
    /// Lines of text for people
    Text,
    /// One JSON object per line
    Json,
}

impl GatewayArgs {
    /// Returns the configuration that the arguments make, or that of the file which they name.
    pub(crate) fn config(self) -> Result<Config, Failure> {
        if let Some(path) = &self.config {
            let text = fs::read_to_string(path).map_err(|error| {
                Failure::usage(format!("cannot read {}", path.display()))
                    .because(error)
                    .hint("name the gateway's configuration file; docs/gateway.md has an example.")
            })?;
            let config = Config::parse(&text)
                .map_err(|fault| bad_config(&path.display().to_string(), &text, fault))?;
            return Ok(Config {
                state: self.state.or(config.state),
                plain: self.plain,
                presence: self.presence.map(Presence::from).or(config.presence),
                notify: config.notify && !self.no_notify,
                ..config
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
        let command = self
            .answer_command
            .as_deref()
            .map(of_answer_command)
            .transpose()?;
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
        if let Some(wrong) = self.allow_origin.iter().find(|text| !is_origin(text)) {
            return Err(
                Failure::usage(format!("`--allow-origin {wrong}` is not an origin"))
                    .hint("write it like http://localhost:6274."),
            );
        }
        let settings = RelaySettings {
            answer_with,
            hold: Duration::from_secs(self.hold),
            pending: bound("--pending", &self.pending)?,
            message_bytes: usize::try_from(self.message_bytes).unwrap_or(usize::MAX),
            pending_bytes: usize::try_from(self.pending_bytes).unwrap_or(usize::MAX),
            per_minute: bound("--questions-per-minute", &self.questions_per_minute)?,
            ..RelaySettings::default()
        };
        let target = self.target()?;
        let is_named = self.name.is_some();
        let server = self.name.unwrap_or_else(|| name_of(&target));
        Ok(Config {
            teams: None,
            channels: None,
            listen: self.listen,
            inbox,
            inbox_may_move: self.inbox.is_none(),
            login: None,
            presence: self.presence.map(Presence::from),
            notify: !self.no_notify,
            state: self.state,
            in_memory: self.record == Record::Memory,
            plain: self.plain,
            insecure: self.insecure,
            auth: match self.auth {
                AuthArg::None => Auth::None,
                AuthArg::Keys => Auth::Keys,
            },
            public_url: None,
            max_frame: usize::try_from(self.max_frame).unwrap_or(usize::MAX),
            allow_origins: self.allow_origin,
            retention: retention(self.keep_answers, self.keep_results, self.keep_ended),
            servers: vec![Server {
                target,
                credentials: UpstreamCredentials::default(),
                settings: RelaySettings { server, ..settings },
                share_child: self.share_child,
                answering,
                is_named,
                is_configured_by_environment: true,
            }],
            restart_settings: RestartSettings::default(),
        }
        .with_result_retention())
    }

    fn target(&self) -> Result<Target, Failure> {
        if let Some(url) = &self.upstream {
            HttpTarget::check(url).map_err(|fault| {
                Failure::usage("invalid upstream URL")
                    .because(fault)
                    .hint("write it like `--upstream https://example.com/mcp`.")
            })?;
            return Ok(Target::Url(HttpTarget {
                url: url.clone(),
                token: self.token.read()?,
            }));
        }
        Program::from_words(&self.command).map(Target::Program).ok_or_else(|| {
            Failure::usage("no server named").hint(
                "put the server's command after `--`, or name it with `--upstream URL` or `--config FILE`.",
            )
        })
    }
}

fn bad_config(path: &str, text: &str, fault: ConfigError) -> Failure {
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

/// Returns a line of the file without the text between `://` and the last `@` of a word.
fn hide_userinfo(line: &str) -> String {
    let word = |word: &str| match (word.find("://"), word.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}://{}", &word[..scheme], &word[at + 1..])
        }
        _ => word.to_owned(),
    };
    let words = line.split_inclusive([' ', '"', '\'']).map(word);
    words.collect()
}

/// Returns what a server is called before people unless the operator names it.
fn name_of(target: &Target) -> String {
    match target {
        Target::Program(program) => {
            let path = PathBuf::from(&program.program);
            path.file_stem().map_or_else(
                || "server".to_owned(),
                |name| name.to_string_lossy().into_owned(),
            )
        }
        Target::Url(HttpTarget { url, .. }) => {
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
    use mcp_elicit_gateway::config::Inherits;

    use super::*;

    #[test]
    fn a_server_is_called_by_its_program_or_host() {
        let program = |name: &str| {
            Target::Program(Program {
                program: name.into(),
                arguments: vec![],
                environment: vec![],
                inherits: Inherits::All,
            })
        };
        assert_eq!(name_of(&program("/usr/bin/files.sh")), "files");
        let far = HttpTarget {
            url: "https://me:pw@example.com:8080/mcp?x".to_owned(),
            token: None,
        };
        assert_eq!(name_of(&Target::Url(far)), "example.com:8080");
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
