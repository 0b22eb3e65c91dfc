//! What an operator decides: from the command line, or from a TOML file whose mistakes are named with their line.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use mcp_elicit_client::connection::{BearerToken, TokenFault};
use serde::Deserialize;

use crate::relay::{AnswerWith, Settings};
use crate::serve::child::Program;
use crate::serve::upstream::Upstream;

/// The largest message, in bytes, unless told otherwise: 64 MiB.
pub const MAX_FRAME: usize = 64 * 1024 * 1024;

/// Everything that a gateway is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where HTTP clients are served; `None` for one client on stdin and stdout.
    pub listen: Option<SocketAddr>,
    /// Where people answer; `None` for no inbox.
    pub inbox: Option<SocketAddr>,
    /// The state folder; `None` for the usual one.
    pub state: Option<PathBuf>,
    /// Whether the record is kept in memory only.
    pub in_memory: bool,
    /// The largest message, in bytes.
    pub max_frame: usize,
    /// The servers, by name.
    pub servers: Vec<Server>,
}

/// One server.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where it is.
    pub target: Target,
    /// Its settings, its name among them.
    pub settings: Settings,
    /// Who is asked at once what comes to the desk; `None` for the inbox only.
    pub answering: Option<Answering>,
}

/// Who is asked beside the inbox.
#[derive(Clone, Debug)]
pub enum Answering {
    /// The person at the terminal that the gateway was started in.
    Terminal,
    /// A program, run for each question.
    Program(Program),
}

/// Who answers, as an operator says it (`answer-with`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhoAnswers {
    /// The client when it declared the mode, else the inbox.
    #[default]
    Auto,
    /// The client only.
    Client,
    /// The inbox only.
    Inbox,
    /// The person at the terminal that the gateway was started in; the inbox too.
    Terminal,
    /// A program, run for each question; the inbox too.
    Command,
}

impl WhoAnswers {
    /// What that comes to. `command` goes with [`WhoAnswers::Command`], and one needs the other; `inbox` is whether there is
    /// one.
    pub fn settle(
        self,
        command: Option<Program>,
        inbox: bool,
    ) -> Result<(AnswerWith, Option<Answering>), NoSuchPair> {
        Ok(match (self, command) {
            (Self::Command, Some(program)) => (AnswerWith::Desk, Some(Answering::Program(program))),
            (Self::Command, None) | (_, Some(_)) => return Err(NoSuchPair),
            (Self::Terminal, None) => (AnswerWith::Desk, Some(Answering::Terminal)),
            (Self::Inbox, None) => (AnswerWith::Desk, None),
            (Self::Auto, None) if inbox => (AnswerWith::Auto, None),
            // Where nobody else would be asked, nothing more is declared than the client did.
            (Self::Auto | Self::Client, None) => (AnswerWith::Client, None),
        })
    }
}

/// A program to answer with that is not asked, or none where one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`answer-command` goes with `answer-with` command, and one needs the other")]
pub struct NoSuchPair;

/// Where a server is.
#[derive(Clone, Debug)]
pub enum Target {
    /// A program to start.
    Program(Program),
    /// A Streamable HTTP endpoint.
    Url(Upstream),
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFault {
    /// Not TOML, or not what may stand there.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// A server has neither, or both, or what goes with the other.
    #[error(
        "server `{name}` needs either `command`, with `env` if it wants, or `url`, with `token-env` if it wants"
    )]
    Target {
        /// The server.
        name: String,
    },
    /// No server at all.
    #[error("the file names no server; add `[servers.NAME]` with `command` or `url`")]
    NoServer,
    /// A name that cannot stand in an address.
    #[error("server name `{name}` may have letters, digits, `-` and `_` only")]
    Name {
        /// The name.
        name: String,
    },
    /// `answer-with` and `answer-command` do not go together.
    #[error("server `{name}`: {fault}")]
    AnswerCommand {
        /// The server.
        name: String,
        /// What is wrong.
        fault: NoSuchPair,
    },
    /// The token for a server cannot be used.
    #[error("server `{name}`: {fault}")]
    Token {
        /// The server.
        name: String,
        /// What is wrong.
        fault: TokenFault,
    },
    /// Several servers, and no address to serve them under.
    #[error("several servers need `listen`, such as listen = \"127.0.0.1:8080\"")]
    NoListen,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    listen: Option<SocketAddr>,
    #[serde(default)]
    inbox: Option<SocketAddr>,
    #[serde(default)]
    state: Option<PathBuf>,
    #[serde(default)]
    record: Record,
    #[serde(default)]
    max_frame: Option<usize>,
    #[serde(default)]
    servers: BTreeMap<String, FileServer>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Record {
    #[default]
    Sqlite,
    Memory,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileServer {
    #[serde(default)]
    command: Option<Vec<String>>,
    #[serde(default)]
    url: Option<String>,
    /// The environment variable that holds the token for `url`.
    #[serde(default)]
    token_env: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    answer_with: WhoAnswers,
    #[serde(default)]
    answer_command: Option<Vec<String>>,
    /// Seconds.
    #[serde(default)]
    hold: Option<u64>,
    /// Hours.
    #[serde(default)]
    patience: Option<u64>,
    /// 0 for no bound.
    #[serde(default)]
    pending: Option<usize>,
    /// 0 for no bound.
    #[serde(default)]
    questions_per_minute: Option<u32>,
}

impl Config {
    /// Reads a TOML file's text. A fault of the text names its line and shows it.
    pub fn parse(text: &str) -> Result<Self, ConfigFault> {
        let file: File = toml::from_str(text)?;
        if file.servers.is_empty() {
            return Err(ConfigFault::NoServer);
        }
        if file.servers.len() > 1 && file.listen.is_none() {
            return Err(ConfigFault::NoListen);
        }
        let servers = file
            .servers
            .into_iter()
            .map(|(name, server)| server.read(name, file.inbox.is_some()))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            listen: file.listen,
            inbox: file.inbox,
            state: file.state,
            in_memory: file.record == Record::Memory,
            max_frame: file.max_frame.unwrap_or(MAX_FRAME),
            servers,
        })
    }
}

impl FileServer {
    fn read(self, name: String, inbox: bool) -> Result<Server, ConfigFault> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || !name.bytes().all(plain) {
            return Err(ConfigFault::Name { name });
        }
        let program = self.command.map(Program::from_words);
        let target = match (program, self.url, self.token_env) {
            (Some(Some(program)), None, None) => Target::Program(Program {
                environment: self.env.into_iter().collect(),
                ..program
            }),
            (None, Some(url), variable) if self.env.is_empty() => Target::Url(Upstream {
                url,
                token: match variable.as_deref().map(BearerToken::from_env).transpose() {
                    Ok(token) => token,
                    Err(fault) => return Err(ConfigFault::Token { name, fault }),
                },
            }),
            _ => return Err(ConfigFault::Target { name }),
        };
        // A command of no words is as wrong as none where one is needed.
        let settled = match self.answer_command.map(Program::from_words) {
            Some(None) => Err(NoSuchPair),
            command => self.answer_with.settle(command.flatten(), inbox),
        };
        let (answer_with, answering) = match settled {
            Ok(settled) => settled,
            Err(fault) => return Err(ConfigFault::AnswerCommand { name, fault }),
        };
        let usual = Settings::default();
        let settings = Settings {
            server: name,
            answer_with,
            hold: self.hold.map_or(usual.hold, Duration::from_secs),
            patience: self.patience.map_or(usual.patience, |hours| {
                Duration::from_secs(hours.saturating_mul(3600))
            }),
            pending: self
                .pending
                .map_or(usual.pending, |most| Some(most).filter(|most| *most > 0)),
            per_minute: self
                .questions_per_minute
                .map_or(usual.per_minute, |most| Some(most).filter(|most| *most > 0)),
            ..usual
        };
        Ok(Server {
            target,
            settings,
            answering,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file_is_read() {
        let text = r#"
            listen = "127.0.0.1:8080"
            inbox = "127.0.0.1:7878"
            record = "memory"
            [servers.files]
            command = ["npx", "-y", "files"]
            env = { DEBUG = "1" }
            answer-with = "inbox"
            hold = 20
            pending = 0
            [servers.far]
            url = "https://example.com/mcp"
        "#;
        let config = Config::parse(text).unwrap();
        assert_eq!(config.servers.len(), 2);
        assert!(config.in_memory);
        let files = &config.servers[1];
        assert_eq!(
            (files.settings.server.as_str(), files.settings.pending),
            ("files", None)
        );
        assert_eq!(files.settings.hold, Duration::from_secs(20));
        assert!(matches!(&files.target, Target::Program(program) if program.arguments.len() == 2));
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let wrong = "listen = \"127.0.0.1:8080\"\n[servers.a]\nurl = \"http://x\"\nholdd = 3\n";
        let said = Config::parse(wrong).unwrap_err().to_string();
        assert!(said.contains("line 4") && said.contains("holdd"), "{said}");
        assert!(matches!(
            Config::parse("[servers.a]\n"),
            Err(ConfigFault::Target { .. })
        ));
        assert!(matches!(Config::parse(""), Err(ConfigFault::NoServer)));
        let wordless = "[servers.a]\nurl = \"http://x\"\nanswer-command = []\n";
        assert!(matches!(
            Config::parse(wordless),
            Err(ConfigFault::AnswerCommand { .. })
        ));
        let two = "[servers.a]\nurl = \"http://x\"\n[servers.b]\nurl = \"http://y\"\n";
        assert!(matches!(Config::parse(two), Err(ConfigFault::NoListen)));
    }
}
