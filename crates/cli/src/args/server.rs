//! Which server to speak to, and how: shared by every command that is a client.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use http::{HeaderName, HeaderValue};
use mcp_elicit_client::connection::{BearerToken, Target};

use super::answers::name_and_value;
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

    /// Send this header with every request to the URL; repeat for more. Every user of this machine can read a command
    /// line, so put secrets into --header-env
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = name_and_value, conflicts_with = "command")]
    headers: Vec<(String, String)>,

    /// Send this header with the value of an environment variable
    #[arg(long = "header-env", value_name = "NAME=VARIABLE", value_parser = name_and_value, conflicts_with = "command")]
    header_variables: Vec<(String, String)>,

    /// Set this environment variable for the started server; repeat for more
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = name_and_value, conflicts_with = "url")]
    environment: Vec<(String, String)>,

    /// Revision of the protocol to use; `auto` negotiates as specified
    #[arg(long, value_enum, default_value_t = Protocol::Auto, value_name = "REVISION")]
    pub(crate) protocol: Protocol,

    /// Start this program and speak to it over its stdin and stdout
    #[arg(last = true, value_name = "SERVER")]
    command: Vec<OsString>,
}

/// The access that a server is given: to let this client in, and as its environment.
#[derive(Debug, Default)]
pub(crate) struct Access {
    pub(crate) token: Option<BearerToken>,
    /// Values are marked as sensitive, so that they are in no `Debug`.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

impl ServerArgs {
    /// Returns what the server is given, with what stands in environment variables.
    pub(crate) fn access(&self) -> Result<Access, Failure> {
        let mut headers = Vec::new();
        for (name, value) in &self.headers {
            headers.push(header(name, value)?);
        }
        for (name, variable) in &self.header_variables {
            let value = std::env::var(variable).map_err(|_| {
                Failure::usage(format!(
                    "the environment variable {variable} for the header {name} is not set"
                ))
            })?;
            headers.push(header(name, value.trim())?);
        }
        let environment = self.environment.iter();
        Ok(Access {
            token: self.token.read()?,
            headers,
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

/// Headers that the transport itself writes.
const RESERVED: [&str; 8] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
];

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let named: HeaderName = name
        .parse()
        .map_err(|_| Failure::usage(format!("{name:?} is not a valid header name")))?;
    if RESERVED.contains(&named.as_str()) {
        return Err(Failure::usage(format!(
            "the header {named} is set by the transport"
        )));
    }
    // The value may be a secret, so it is not repeated.
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| Failure::usage(format!("the value for the header {named} cannot be sent")))?;
    value.set_sensitive(true);
    Ok((named, value))
}

/// A revision of the protocol as named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// The newest that both sides support
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

#[cfg(test)]
mod tests {
    use super::header;

    #[test]
    fn a_header_s_value_is_never_shown() {
        let (name, value) = header("X-Key", "hunter2").expect("a header");
        assert_eq!(
            (name.as_str(), value.as_bytes()),
            ("x-key", &b"hunter2"[..])
        );
        assert!(!format!("{value:?}").contains("hunter2"));
        for (name, value) in [
            ("two words", "x"),
            ("x", "hunter2\r\nHost: y"),
            ("Mcp-Session-Id", "x"),
        ] {
            let told = format!("{:?}", header(name, value).expect_err("it is refused"));
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
}
