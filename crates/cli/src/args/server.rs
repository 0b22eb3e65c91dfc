//! Which server to speak to, and how: shared by every command that is a client.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use mcp_elicit_client::connection::Target;

use super::token::TokenArgs;
use crate::failure::Failure;

/// The server: a command after `--`, or a URL.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Speak Streamable HTTP to the server at this URL
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,

    #[command(flatten)]
    pub(crate) token: TokenArgs,

    /// Which revision of the protocol to speak; `auto` finds out as the specification says
    #[arg(long, value_enum, default_value_t = Protocol::Auto, value_name = "REVISION")]
    pub(crate) protocol: Protocol,

    /// Start this program and speak to it over its stdin and stdout
    #[arg(last = true, value_name = "SERVER")]
    command: Vec<OsString>,
}

impl ServerArgs {
    /// Where the server is; naming none is a usage failure.
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
    /// The newest that both sides speak
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
