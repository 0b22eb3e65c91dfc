//! An operator's settings: from the command line, or from a TOML file whose errors are reported with their line.

mod auth;
mod byte_limits;
mod channels;
mod database;
mod error;
mod file;
mod file_settings;
mod login;
mod oidc;
mod peers;
mod risky_settings;
mod secret;
mod teams;
mod upstream;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

pub use auth::{Auth, ProxyAuth};
pub use byte_limits::ByteLimits;
pub use channels::ConfiguredChannels;
#[cfg(feature = "teams")]
pub use channels::{add_channel_defects, add_channel_warnings};
pub use database::{RecordDatabase, RecordPassword, record_database};
pub use error::{ConfigError, hide_userinfo};
pub use file::retention;
pub use file_settings::FileSettings;
pub use login::{
    LoginConfigError, check_toml, login_issuer, people_names, server_names, state_folder,
};
pub use oidc::{OidcAuth, TokenCheck};
pub use peers::{PeerSettings, PeerSettingsError};
pub use risky_settings::{RiskySetting, risky_settings};
pub use secret::{SecretText, unset_variables};
pub(crate) use teams::zone_of;
pub use upstream::{HeaderError, UpstreamCredentials, upstream_header};

pub use crate::listener::origin_guard::is_origin;
pub use crate::transports::http_upstream::{
    ConnectionThread, HttpTarget, NoAddress, UpstreamSignIn, sign_in_folder,
};
pub use crate::transports::process::{Inherits, Program};
use mcp_elicit_inbox::OpenLink;
use mcp_elicit_inbox::login::LoginSettings;
use mcp_elicit_inbox::state_folder::RequiredPresence;
use mcp_elicit_policy::Rules;
use mcp_elicit_record::Retention;
use mcp_elicit_relay::{Audience, RelaySettings};

/// The default size limit of a message, in bytes: 64 MiB.
pub const MAX_FRAME: usize = 64 * 1024 * 1024;

/// The allowed values of settings.
pub mod bounds {
    use std::ops::RangeInclusive;

    /// Seconds that a call is held.
    pub const HOLD: RangeInclusive<u64> = 0..=86_400;
    /// Hours that a question waits.
    pub const QUESTION_HOURS: RangeInclusive<u64> = 1..=8_760;
    /// Questions at once, or in a minute.
    pub const QUESTIONS: RangeInclusive<u64> = 1..=1_000_000;
    /// The largest message, in bytes.
    pub const MAX_FRAME: RangeInclusive<u64> = 4_096..=1_073_741_824;
    /// The bytes of open calls and of stored questions, of one caller or of all.
    pub const BYTES: RangeInclusive<u64> = 65_536..=1_099_511_627_776;
    /// The largest arguments stored with a question, in bytes.
    pub const ARGUMENT_BYTES: RangeInclusive<u64> = 1_024..=67_108_864;
    /// The longest message of a question, in bytes; every page shows the maximum in full.
    pub const MESSAGE_BYTES: RangeInclusive<u64> = 1_024..=65_536;
    /// The size of all questions pending at once in one session, in bytes.
    pub const PENDING_BYTES: RangeInclusive<u64> = 65_536..=1_073_741_824;
    /// Seconds of a stop.
    pub const DRAIN: RangeInclusive<u64> = 0..=3_600;
    /// Seconds that answers and results are kept.
    pub const KEEP: RangeInclusive<u64> = 0..=2_592_000;
    /// Days that ended questions are kept.
    pub const KEEP_ENDED: RangeInclusive<u64> = 1..=3_650;
    /// Days that events of the audit are kept.
    pub const KEEP_AUDIT: RangeInclusive<u64> = 1..=36_500;
}

/// The complete configuration of a gateway.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a decision of its own, as the operator says it"
)]
#[derive(Clone, Debug)]
pub struct Config {
    /// The address at which HTTP clients are served; `None` for one client on stdin and stdout.
    pub listen: Option<SocketAddr>,
    /// The address of the inbox; `None` for no inbox.
    pub inbox: Option<SocketAddr>,
    /// `true` if any free port will do when that address, which is a default, is in use.
    pub inbox_may_move: bool,
    /// The login of people to the inbox; `None` if it is the folder owner's alone.
    pub login: Option<LoginSettings>,
    /// The answers that count from now on; `None` keeps the state folder's setting.
    pub presence: Option<RequiredPresence>,
    /// `true` if the desktop is notified of questions.
    pub notify: bool,
    /// Opens a login link in the browser of this machine; `None` if this program does not.
    pub open_login: Option<OpenLink>,
    /// The state folder; `None` for the default.
    pub state: Option<PathBuf>,
    /// `true` if the record is kept in memory only.
    pub in_memory: bool,
    /// The database of the record; `None` for a file in the state folder.
    pub database: Option<RecordDatabase>,
    /// The listener for other gateways of that database; `None` if requests of sessions elsewhere are not forwarded.
    pub peers: Option<PeerSettings>,
    /// `true` if the person at the terminal is asked line by line, without a screen.
    pub plain: bool,
    /// `true` if unauthenticated clients may be served at an address that the network can reach.
    pub insecure: bool,
    /// The proof of callers over HTTP.
    pub auth: Auth,
    /// The rules, people, groups and roles; `None` if the file has none of them.
    pub teams: Option<Arc<Rules>>,
    /// The origin under which callers reach the listener; `None` for its address.
    pub public_url: Option<String>,
    /// The channels that notify people of questions; `None` if the file has none.
    pub channels: Option<Arc<ConfiguredChannels>>,
    /// The largest message, in bytes.
    pub max_frame: usize,
    /// The time after a stop signal in which requests are accepted although the gateway says that it is not ready.
    pub ready_grace: Duration,
    /// The time after that in which open calls may end.
    pub drain: Duration,
    /// The address of an OpenTelemetry collector; `None` for that of the environment, if there is one.
    pub traces: Option<String>,
    /// The limits on the bytes of open calls and of stored questions.
    pub byte_limits: ByteLimits,
    /// Origins of pages that may use the listener, besides its own.
    pub allow_origins: Vec<String>,
    /// The times for which answers, results and ended questions are kept.
    pub retention: Retention,
    /// The servers, by name.
    pub servers: Vec<ConfiguredServer>,
    /// The file's settings that need a restart; none without a file.
    pub file_settings: FileSettings,
}

/// One server.
#[derive(Clone, Debug)]
pub struct ConfiguredServer {
    /// The command or URL.
    pub target: ServerTarget,
    /// The credentials for a server over HTTP.
    pub credentials: UpstreamCredentials,
    /// Its settings, including its name.
    pub settings: RelaySettings,
    /// `true` if all calls of a caller go to one child, even if the server's way of asking calls for several: for a
    /// server that keeps shared state in memory.
    pub share_child: bool,
    /// The responder that is asked besides the inbox; `None` for the inbox only.
    pub answering: Option<LocalResponder>,
    /// `true` if the operator gave it its name; otherwise people see the reported name, and its command.
    pub is_named: bool,
    /// `true` if the gateway's own environment configures it, as when a client starts the gateway for one server.
    pub is_configured_by_environment: bool,
}

/// A responder besides the inbox.
#[derive(Clone, Debug)]
pub enum LocalResponder {
    /// The person at the terminal that the gateway was started in.
    Terminal,
    /// A program, run for each question.
    Program(Program),
}

/// The responder, as an operator names it (`answer-with`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerWith {
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

impl AnswerWith {
    /// Returns the audience and the responder. `command` must be given with [`AnswerWith::Command`], and only then;
    /// `inbox` is `true` if there is one.
    pub fn resolve(
        self,
        command: Option<Program>,
        inbox: bool,
    ) -> Result<(Audience, Option<LocalResponder>), AnswerWithError> {
        Ok(match (self, command) {
            (Self::Command, Some(program)) => {
                (Audience::People, Some(LocalResponder::Program(program)))
            }
            (Self::Command, None) | (_, Some(_)) => return Err(AnswerWithError::CommandMismatch),
            (Self::Inbox, None) if !inbox => return Err(AnswerWithError::NoInbox),
            (Self::Terminal, None) => (Audience::People, Some(LocalResponder::Terminal)),
            (Self::Inbox, None) => (Audience::People, None),
            (Self::Auto, None) if inbox => (Audience::Auto, None),
            // Without any other responder, the gateway declares only the client's own capability.
            (Self::Auto | Self::Client, None) => (Audience::Client, None),
        })
    }
}

/// Conflicting options about responders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerWithError {
    /// A program without `command`, or `command` without a program.
    #[error("`answer-command` goes with `answer-with` command, and one needs the other")]
    CommandMismatch,
    /// Questions go to the inbox only, and there is none.
    #[error("`answer-with` inbox needs an inbox: without one, no question can be answered")]
    NoInbox,
}

/// The location of a server.
#[derive(Clone, Debug)]
pub enum ServerTarget {
    /// A program to start.
    Program(Program),
    /// A Streamable HTTP endpoint.
    Url(HttpTarget),
}
