//! `call`: acts as the client of any server, and answers its questions.

use std::path::PathBuf;

use clap::Args;
use mcp_elicit_inbox::state_folder::StateFolder;

use super::in_order;
use crate::args::answers::{AnswerArgs, call_arguments, prompt_arguments};
use crate::args::server::ServerArgs;
use crate::call_session;
use crate::call_session::consent::PolicyFile;
use crate::call_session::request::ServerRequest;
use crate::failure::{Exit, Failure};
use crate::sign_in::{SignIn, SignInArgs};

/// Call a tool, get a prompt, read a resource or list what a server has, and answer its questions
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CallArgs {
    /// The tool to call
    #[arg(value_name = "TOOL", required_unless_present_any = ["list", "prompt", "resource"])]
    tool: Option<String>,

    /// Arguments of the tool or prompt, as name=value or as one JSON object
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,

    /// List the server's tools with their arguments, its prompts and its resources
    #[arg(long, conflicts_with_all = ["tool", "prompt", "resource", "task"])]
    list: bool,

    /// Get this prompt instead of calling a tool
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resource", "task"])]
    prompt: Option<String>,

    /// Read this resource instead of calling a tool
    #[arg(long, value_name = "URI", conflicts_with_all = ["tool", "task"])]
    resource: Option<String>,

    /// Call it as a task, which some servers require for long work (2025-11-25; later the server decides)
    #[arg(long)]
    task: bool,

    /// Your permissions for servers, as TOML (docs/client.md); it must exist. "Decline this and every later question"
    /// is saved in it [default: consent.toml in the state folder]
    #[arg(long, value_name = "FILE")]
    consent: Option<PathBuf>,

    /// Folder for data that outlives a call: permanent declines and sign-ins
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    sign_in: SignInArgs,

    #[command(flatten)]
    answers: AnswerArgs,
}

const EXAMPLES: &str = "\
Examples:
  mcp-elicit call --list -- mcp-elicit demo-server
  mcp-elicit call deploy -- mcp-elicit demo-server
  mcp-elicit call deploy --answer environment=staging --json -- mcp-elicit demo-server
  mcp-elicit call deploy --elicit off -- mcp-elicit demo-server
  mcp-elicit call echo message=hello -- npx -y @modelcontextprotocol/server-everything
  mcp-elicit call --prompt plan city=Bern --env DEBUG=1 -- my-server
  mcp-elicit call --list --url https://example.com/mcp --sign-in
  mcp-elicit call --resource file:///notes.txt --url http://127.0.0.1:8000/mcp \\
    --header-env X-Key=MY_KEY

Exit codes:
    0  done
    1  the tool or the server reported an error, or the call was not approved in time
    2  the command line, a file or a prepared answer cannot be used
    3  no connection, or the server broke the protocol
    4  a question could not be answered: no responder, no time or no input left
    5  a question or an approval was declined or cancelled, and the call ended there
    6  not done yet: a gateway is still asking people; repeat the same call to resume it
  130  stopped with Ctrl-C or a signal";

/// Runs the command to its end.
pub(crate) fn run(args: CallArgs) -> Result<Exit, Failure> {
    let state = args.state.clone().or_else(StateFolder::usual);
    let consent = match &args.consent {
        Some(path) => Some(PolicyFile {
            path: path.clone(),
            named: true,
        }),
        None => state.as_ref().map(|folder| PolicyFile {
            path: folder.join("consent.toml"),
            named: false,
        }),
    };
    let request = args.request()?;
    let target = args.server.target()?;
    let sign_in = SignIn::from_args(
        &args.sign_in,
        &target,
        state,
        args.answers.json,
        args.answers.timeout,
    )?;
    in_order(call_session::run(call_session::Call {
        server: target.describe(),
        target,
        access: args.server.access()?,
        sign_in,
        protocol: args.server.protocol,
        request,
        answers: args.answers,
        consent,
    }))
}

impl CallArgs {
    fn request(&self) -> Result<ServerRequest, Failure> {
        if self.list {
            return Ok(ServerRequest::List);
        }
        if let Some(uri) = &self.resource {
            return Ok(ServerRequest::Resource { uri: uri.clone() });
        }
        if let Some(name) = &self.prompt {
            // Without a tool, the first word is an argument too.
            let words: Vec<_> = self.tool.iter().chain(&self.arguments).cloned().collect();
            return Ok(ServerRequest::Prompt {
                name: name.clone(),
                arguments: prompt_arguments(&words)?,
            });
        }
        match &self.tool {
            Some(name) => Ok(ServerRequest::Tool {
                name: name.clone(),
                arguments: call_arguments(&self.arguments)?,
                as_task: self.task,
            }),
            None => Err(Failure::usage("no tool named").hint("list them with `--list`.")),
        }
    }
}
