//! Which server to speak to, and how: shared by every command that is a client.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use http::{HeaderName, HeaderValue};
use mcp_elicit_client::connection::{BearerToken, Target};
use mcp_elicit_core::wire::Revision;

use super::answers::name_and_value;
use super::headers::HeaderArgs;
use super::token::TokenArgs;
use crate::failure::Failure;

/// The server and the revision to use.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    at: TargetArgs,

    /// Revision of the protocol to use. `auto` addresses a server that speaks 2026-07-28 and an older revision in the
    /// older one, in which all its tools can ask
    #[arg(long, value_enum, default_value_t = Protocol::Auto, value_name = "REVISION")]
    pub(crate) protocol: Protocol,
}

/// The server: a command after `--`, or a URL.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Speak Streamable HTTP to the server at this URL
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,

    #[command(flatten)]
    token: TokenArgs,

    #[command(flatten)]
    headers: HeaderArgs,

    /// Set this environment variable for the started server; repeat for more
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = name_and_value, conflicts_with = "url")]
    environment: Vec<(String, String)>,

    /// Start this program and speak to it over its stdin and stdout
    #[arg(last = true, value_name = "SERVER")]
    command: Vec<OsString>,
}

/// The access that a server is given: to let this client in, and as its environment.
#[derive(Debug, Default)]
pub(crate) struct ServerAccess {
    pub(crate) token: Option<BearerToken>,
    /// Values are marked as sensitive, so that they are in no `Debug`.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

impl ServerArgs {
    /// Returns what the server is given.
    pub(crate) fn access(&self) -> Result<ServerAccess, Failure> {
        self.at.access()
    }

    /// Returns `true` if a server is named.
    #[cfg(feature = "full")]
    pub(crate) fn is_named(&self) -> bool {
        self.at.url.is_some() || !self.at.command.is_empty()
    }

    /// Returns where the server is; naming none is a usage failure.
    pub(crate) fn target(&self) -> Result<Target, Failure> {
        self.at.target()
    }
}

impl TargetArgs {
    /// Returns what the server is given, with what stands in environment variables.
    pub(crate) fn access(&self) -> Result<ServerAccess, Failure> {
        let environment = self.environment.iter();
        Ok(ServerAccess {
            token: self.token.read()?,
            headers: self.headers.read()?,
            environment: environment
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        })
    }

    /// Returns where the server is; naming none is a usage failure.
    pub(crate) fn target(&self) -> Result<Target, Failure> {
        if let Some(url) = &self.url {
            return Ok(Target::Url(url.clone()));
        }
        match self.command.split_first() {
            Some((program, arguments)) => {
                Ok(Target::Command { program: program.clone(), arguments: arguments.to_vec() })
            }
            None => Err(Failure::usage("no server named")
                .hint("put the server's command after `--`, as in `-- npx my-server`, or name it with `--url URL`.")),
        }
    }
}

/// A revision of the protocol as named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// The newest pushed revision of the server, or else 2026-07-28
    Auto,
    /// The pushed era, forms only
    #[value(name = "2025-06-18")]
    V2025_06_18,
    /// The pushed era, forms and URLs
    #[value(name = "2025-11-25")]
    V2025_11_25,
    /// The rounds era
    #[value(name = "2026-07-28")]
    V2026_07_28,
}

impl Protocol {
    /// Returns the only revision to use; `None` to negotiate.
    pub(crate) fn revision(self) -> Option<Revision> {
        match self {
            Self::Auto => None,
            Self::V2025_06_18 => Some(Revision::V2025_06_18),
            Self::V2025_11_25 => Some(Revision::V2025_11_25),
            Self::V2026_07_28 => Some(Revision::V2026_07_28),
        }
    }
}
