//! `completions`: what a shell needs to complete this command line.

use std::io::Write as _;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::{Exit, Failure};

/// Print the completions of this program for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell that completes
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  mcp-elicit completions bash > ~/.local/share/bash-completion/completions/mcp-elicit
  mcp-elicit completions zsh  > \"${fpath[1]}/_mcp-elicit\"
  mcp-elicit completions fish > ~/.config/fish/completions/mcp-elicit.fish";

/// Runs the command.
pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "mcp-elicit", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::Done)
}
