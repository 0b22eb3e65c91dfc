//! The token that a server over HTTP wants: shared by every command that speaks to one.

use clap::Args;
use mcp_elicit_client::connection::BearerToken;

use crate::failure::Failure;

/// A token, named by its environment variable: a command line can be read by other programs.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// Environment variable that holds the server's bearer token
    #[arg(long, value_name = "VARIABLE", conflicts_with = "command")]
    token_env: Option<String>,
}

impl TokenArgs {
    /// Returns the token, if one is named.
    pub(crate) fn read(&self) -> Result<Option<BearerToken>, Failure> {
        let Some(variable) = &self.token_env else {
            return Ok(None);
        };
        BearerToken::from_env(variable).map(Some).map_err(|fault| {
            Failure::usage("no token for the server")
                .because(fault)
                .hint(format!(
                    "set {variable} to the token alone, without the word Bearer."
                ))
        })
    }
}
