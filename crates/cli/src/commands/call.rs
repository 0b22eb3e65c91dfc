//! `call`: acts as the client of any server, and answers its questions.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use mcp_elicit_client::connection::Target;
use mcp_elicit_gateway::config::{
    self, ConfiguredServer, HttpTarget, Inherits, Program, UpstreamCredentials,
};
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_relay::RelaySettings;
use tokio::sync::OnceCell;

use super::in_order;
use crate::args::answers::{AnswerArgs, call_arguments, prompt_arguments};
use crate::args::profiles::ProfileArgs;
use crate::args::server::{ServerAccess, ServerArgs};
use crate::call_session;
use crate::call_session::consent::PolicyFile;
use crate::call_session::played::{self, PlayedCall};
use crate::call_session::request::ServerRequest;
use crate::call_session::seen_to_ask::RecordedIn;
use crate::failure::{Exit, Failure};
use crate::server_eras;
use crate::sign_in::SignInArgs;

/// Call a tool, get a prompt, read a resource or list what a server has, and answer its questions
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CallArgs {
    /// The tool to call
    #[arg(value_name = "TOOL")]
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

    /// Play this client as it was seen to behave: its name, declarations, revision and answers. `mcp-elicit clients` lists
    /// them. You answer what it shows to a person
    #[arg(long = "as", value_name = "CLIENT", conflicts_with_all = ["task", "url", "sign_in", "protocol", "consent"])]
    as_client: Option<String>,

    #[command(flatten)]
    profiles: ProfileArgs,

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
  mcp-elicit call deploy --as codex-exec -- mcp-elicit demo-server
  mcp-elicit call echo message=hello -- npx -y @modelcontextprotocol/server-everything
  mcp-elicit call --prompt plan city=Bern --env DEBUG=1 -- my-server
  mcp-elicit call --list --url https://example.com/mcp --sign-in
  mcp-elicit call --resource file:///notes.txt --url http://127.0.0.1:8000/mcp \\
    --header-env X-Key=MY_KEY

Exit codes:
    0  done
    1  the tool or the server reported an error, or the call was not approved in time
    2  the command line, a file or a prepared answer cannot be used, or was not asked for
    3  no connection, the server broke the protocol, or its list has no end
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
    if let Some(name) = &args.as_client {
        let name = name.clone();
        let played = args.played(&name, target, request)?;
        return in_order(played::run(played));
    }
    let sign_in = args.sign_in.of_call(&target, state.as_deref())?;
    let access = args.server.access()?;
    let json = args.answers.json;
    // A server with a sign-in is asked only once.
    let is_listed = args.list && sign_in.is_none();
    let server = gateway_server(&target, &access);
    let listed = server.clone().filter(|_| is_listed);
    let folder = state.as_deref().map(StateFolder::at);
    let recorded_in = server
        .zip(folder)
        .map(|(server, folder)| RecordedIn { server, folder });
    let call = call_session::ServerCall {
        server: target.describe(),
        target,
        access,
        sign_in,
        protocol: args.server.protocol,
        request,
        answers: args.answers,
        consent,
        recorded_in,
    };
    in_order(async {
        let exit = call_session::run(call).await?;
        if let Some(server) = listed {
            Box::pin(server_eras::show(&server, state, json)).await?;
        }
        Ok(exit)
    })
}

/// Returns the server as a gateway with the same command line has it, so that the record's facts about it are found.
/// `None` for a kind of target that a gateway does not have.
fn gateway_server(target: &Target, access: &ServerAccess) -> Option<ConfiguredServer> {
    let at = match target {
        Target::Url(url) => config::ServerTarget::Url(HttpTarget {
            token: access.token.clone(),
            headers: access.headers.clone(),
            ..HttpTarget::new(url.clone())
        }),
        Target::Command { program, arguments } => config::ServerTarget::Program(Program {
            program: program.clone(),
            arguments: arguments.clone(),
            environment: access
                .environment
                .iter()
                .map(|(name, value)| {
                    let text = |part: &OsString| part.to_string_lossy().into_owned();
                    (text(name), text(value))
                })
                .collect(),
            inherits: Inherits::All,
            withheld: Vec::new(),
        }),
        _ => return None,
    };
    Some(ConfiguredServer {
        target: at,
        credentials: UpstreamCredentials::default(),
        settings: RelaySettings {
            server: target.describe(),
            ..RelaySettings::default()
        },
        share_child: false,
        answering: None,
        is_named: false,
        is_configured_by_environment: true,
    })
}

impl CallArgs {
    /// Returns the client of this name, with its request.
    fn played(
        self,
        name: &str,
        target: Target,
        request: ServerRequest,
    ) -> Result<PlayedCall, Failure> {
        let profiles = self.profiles.read(None)?;
        let Some((plays, profile, acts)) = profiles.played(name) else {
            let known = profiles.playable().join(", ");
            return Err(Failure::usage(format!("no client {name:?} can be played"))
                .hint(format!("these can: {known}.")));
        };
        Ok(PlayedCall {
            plays,
            profile,
            acts,
            target,
            environment: self.server.access()?.environment,
            request,
            answers: self.answers,
            responder: OnceCell::new(),
        })
    }

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
            None => Err(Failure::usage("no tool named").hint(
                "name the tool before `--`, as in `call TOOL -- SERVER`; `call --list -- SERVER` shows the server's tools.",
            )),
        }
    }
}
