//! `man`: the manual pages, made from the same descriptions as `--help`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _};

use crate::args::Cli;
use crate::failure::{Exit, Failure};
use crate::output::say;

/// Write the manual pages of this program into a folder, one for each command
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// The folder; it is created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  mcp-elicit man ~/.local/share/man/man1 && man mcp-elicit-call";

/// Runs the command.
pub(crate) fn run(args: &ManArgs) -> Result<Exit, Failure> {
    let folder = &args.folder;
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|error| {
            Failure::usage(format!(
                "cannot write manual pages into {}",
                folder.display()
            ))
            .because(error)
            .hint("name a folder that you may write to")
        })?;
    say(format_args!(
        "wrote the manual pages into {}",
        folder.display()
    ));
    Ok(Exit::Done)
}
