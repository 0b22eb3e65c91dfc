//! `call`: be the client of any server, and answer what it asks.

use std::path::PathBuf;

use clap::Args;

use super::in_order;
use crate::args::answers::{AnswerArgs, call_arguments};
use crate::args::server::ServerArgs;
use crate::asking;
use crate::failure::{Exit, Failure};

/// Call a tool of any server, and answer what it asks on the way
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CallArgs {
    /// The tool to call
    #[arg(value_name = "TOOL")]
    tool: String,

    /// Its arguments, as name=value or as one JSON object
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,

    /// Call it as a task, as some servers want it for what takes long (2025-11-25; later the server decides)
    #[arg(long)]
    task: bool,

    /// What you allow servers, as TOML (docs/client.md). A server that you decline for good is written into it
    #[arg(long, value_name = "FILE")]
    consent: Option<PathBuf>,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    answers: AnswerArgs,
}

const EXAMPLES: &str = "\
Examples:
  mcp-elicit call deploy -- mcp-elicit demo-server
  mcp-elicit call deploy --answer environment=staging --json -- mcp-elicit demo-server
  mcp-elicit call echo message=hello -- npx -y @modelcontextprotocol/server-everything
  mcp-elicit call deploy --url http://127.0.0.1:8000/mcp --protocol 2026-07-28";

/// Runs the command to its end.
pub(crate) fn run(args: CallArgs) -> Result<Exit, Failure> {
    let arguments = call_arguments(&args.arguments)?;
    let target = args.server.target()?;
    in_order(asking::run(asking::Call {
        server: target.describe(),
        target,
        token: args.server.token.read()?,
        protocol: args.server.protocol,
        tool: args.tool,
        arguments,
        as_task: args.task,
        answers: args.answers,
        consent: args.consent,
    }))
}
