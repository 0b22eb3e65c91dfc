//! `mcp-elicit rules` in a build without the feature `full`: reports how to get it.

use clap::Args;

use crate::failure::{Exit, Failure};

/// Check and simulate a gateway's rules; not included in this build (feature `full`)
///
/// This command needs the cargo feature `full`, which is off by default. To build with it:
/// `cargo install --locked --profile dist --path crates/cli --features full`.
#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// Ignored in this build
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<std::ffi::OsString>,
}

/// Reports how to get the command.
pub(crate) fn run(_args: RulesArgs) -> Result<Exit, Failure> {
    Err(
        Failure::usage("this build has no `rules`: it belongs to the cargo feature `full`").hint(
            "install it with `cargo install --locked --profile dist --path crates/cli --features full`.",
        ),
    )
}
