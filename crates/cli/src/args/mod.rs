//! The command line as clap reads it. Options that several commands share have a file of their own here, and so have those of
//! `gateway`, which are many.

pub(crate) mod answers;
pub(crate) mod field_answers;
pub(crate) mod gateway;
pub(crate) mod headers;
pub(crate) mod profiles;
pub(crate) mod program;
pub(crate) mod record_location;
pub(crate) mod server;
pub(crate) mod token;

use std::ffi::OsString;
use std::sync::LazyLock;

use clap::{Parser, ValueEnum};
use mcp_elicit_core::wire::Revision;

use crate::commands::Command;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "mcp-elicit",
    version,
    long_version = LONG_VERSION.as_str(),
    about = "Elicitation for MCP: a person answers a server's questions, with any client, on any revision",
    after_help = EXITS,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    /// When to use colours: auto, always or never; NO_COLOR is respected
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN", hide_possible_values = true)]
    pub(crate) color: Color,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The version with what a report of a fault needs: the commit, the features and the revisions.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = option_env!("MCP_ELICIT_COMMIT").unwrap_or("not known");
    let features = if cfg!(feature = "full") {
        "full"
    } else {
        "default"
    };
    let revisions = Revision::ALL.map(Revision::as_str).join(", ");
    format!(
        "{}\ncommit: {commit}\nfeatures: {features}\nprotocol revisions: {revisions}",
        env!("CARGO_PKG_VERSION")
    )
});

const EXITS: &str = "\
Exit codes:
  0  done
  1  the tool or the server reported an error, or a check (lint, validate, audit) failed
  2  the command line, an input file or a prepared answer cannot be used
  3  no connection, or the peer broke the protocol
  4  a question could not be answered: no responder, no time or no input left
  5  a question was declined or cancelled, and the call ended there: a person's no is not an error
  6  not done yet: a gateway is still asking people; repeat the same call to resume it
130  stopped with Ctrl-C or a signal; `gateway` and `demo-server --listen` then exit with 0

Output for programs goes to stdout, messages for people to stderr.";

/// Reads the command line; the error is clap's own, which also carries `--help` and `--version`.
pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(args)
}

/// When to colour what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// Only on a terminal, and not when NO_COLOR is set
    Auto,
    /// Even into a file
    Always,
    /// Not at all
    Never,
}

impl Color {
    /// Applies this choice to all output of this process.
    pub(crate) fn write_global(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }

    /// Longer lines are broken by clap, in the middle of a command and without the indent of a table.
    #[test]
    fn the_examples_of_the_help_are_not_broken() {
        fn look(command: &clap::Command, path: &str) {
            let help = command.get_after_help().map(ToString::to_string);
            for line in help.unwrap_or_default().lines() {
                assert!(line.chars().count() <= 100, "{path}: {line}");
            }
            for sub in command.get_subcommands() {
                look(sub, &format!("{path} {}", sub.get_name()));
            }
        }
        look(&super::Cli::command(), "mcp-elicit");
    }
}
