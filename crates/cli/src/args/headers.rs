//! Headers for a server over HTTP: shared by every command that speaks to one.

use clap::Args;
use http::{HeaderName, HeaderValue};
use mcp_elicit_gateway::config::{HeaderError, upstream_header};

use super::answers::name_and_value;
use crate::failure::Failure;

/// Headers that are sent with every request.
#[derive(Debug, Args)]
pub(crate) struct HeaderArgs {
    /// Send this header with every request to the URL; repeat for more. Every user of this machine can read a command
    /// line, so put secrets into --header-env
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = name_and_value, conflicts_with = "command")]
    headers: Vec<(String, String)>,

    /// Send this header with the value of an environment variable
    #[arg(long = "header-env", value_name = "NAME=VARIABLE", value_parser = name_and_value, conflicts_with = "command")]
    header_variables: Vec<(String, String)>,
}

impl HeaderArgs {
    /// Returns the headers, with what stands in environment variables. Values are marked as sensitive, so that they are
    /// in no `Debug`.
    pub(crate) fn read(&self) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
        let refused = |error: HeaderError| Failure::usage(error.to_string());
        let mut headers = Vec::new();
        for (name, value) in &self.headers {
            headers.push(upstream_header(name, value).map_err(refused)?);
        }
        for (name, variable) in &self.header_variables {
            let value = std::env::var(variable).map_err(|_| {
                refused(HeaderError::Variable {
                    name: name.clone(),
                    variable: variable.clone(),
                })
            })?;
            headers.push(upstream_header(name, value.trim()).map_err(refused)?);
        }
        Ok(headers)
    }
}
