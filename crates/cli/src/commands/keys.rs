//! `keys`: the keys of the record.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use mcp_elicit_gateway::inbox::place::StateFolder;
use mcp_elicit_gateway::record::audit::Event;
use mcp_elicit_gateway::record::seal::Seal;

use super::{in_runtime, inbox};
use crate::failure::{Exit, Failure};
use crate::screen;

/// Change the keys of a gateway's record
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    act: Act,

    /// The state folder of the gateway
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Seal values with a new key from now on. The one before is kept to open what it sealed, until the next change;
    /// gateways that run go on with it until they are started again
    Rotate,
}

/// Runs the command to its end.
pub(crate) fn run(args: KeysArgs) -> Result<Exit, Failure> {
    in_runtime(rotate(args))
}

async fn rotate(args: KeysArgs) -> Result<Exit, Failure> {
    let Act::Rotate = args.act;
    let path = args.state.or_else(StateFolder::usual);
    let path = path.ok_or_else(|| {
        Failure::usage("there is no state folder").hint("name the gateway's with `--state DIR`.")
    })?;
    let folder = StateFolder::at(&path);
    if !folder.seal().exists() {
        return Err(
            Failure::usage(format!("there is no key in {}", path.display()))
                .hint("name the gateway's state folder with `--state DIR`."),
        );
    }
    Seal::rotate(&folder.seal())
        .map_err(|error| Failure::usage("the key cannot be changed").because(error))?;
    inbox::note(&folder, Event::Rotated).await;
    screen::say("the key was changed; restart gateways that run, so that they use the new one");
    Ok(Exit::Done)
}
