//! `demo`: a server asks, and the person answers; nothing else needs to be installed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use mcp_elicit_client::connection::Target;

use super::{demo_gateway, in_order};
use crate::args::answers::AnswerArgs;
use crate::args::server::{Protocol, ServerAccess};
use crate::call_session;
use crate::call_session::request::ServerRequest;
use crate::failure::{Exit, Failure};
use crate::output;

/// Run a demo: a server asks where to deploy, and you answer; with `--team`, two people answer
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("kept").args(["team", "issuer"]))]
pub(crate) struct DemoArgs {
    /// Show the gateway: the client cannot ask, and the question waits in an inbox
    #[arg(long)]
    gateway: bool,

    /// With `--gateway`: answer at this terminal instead of on the inbox's page
    #[arg(long, requires = "gateway", conflicts_with_all = ["named", "file", "accept_defaults", "decline", "cancel", "browser", "answer_command"])]
    terminal: bool,

    /// Show a team: a login, two people, and rules that need both of them (in builds with the feature `full`)
    #[arg(long, conflicts_with_all = ["gateway", "named", "file", "accept_defaults", "decline", "cancel", "browser", "answer_command"])]
    team: bool,

    /// Run only the login of `--team` (Ada and Bob, without passwords), for your own gateway on this machine
    #[arg(long, value_name = "ADDRESS", requires = "keep", conflicts_with_all = ["team", "gateway", "named", "file", "accept_defaults", "decline", "cancel", "browser", "answer_command"])]
    issuer: Option<SocketAddr>,

    /// With `--issuer`: the `inbox-url` of your gateway [default: http://127.0.0.1:7878]
    #[arg(long, value_name = "URL", requires = "issuer")]
    inbox_url: Option<String>,

    /// With `--team`: save its configuration in this new folder; with `--issuer`: its client secret
    #[arg(long, value_name = "DIR", requires = "kept")]
    keep: Option<PathBuf>,

    #[command(flatten)]
    answers: AnswerArgs,
}

/// Commands to try next.
const TRY_NEXT: [(&str, &str); 5] = [
    (
        "mcp-elicit demo --answer environment=staging",
        "answer from a script",
    ),
    (
        "mcp-elicit demo --decline",
        "say no, and see how the server reacts",
    ),
    (
        "mcp-elicit demo --gateway",
        "a client that cannot ask, and an inbox where you answer",
    ),
    (
        "mcp-elicit call profile -- mcp-elicit demo-server",
        "a form with a field of every kind",
    ),
    (
        "mcp-elicit call deploy --json -- YOUR-SERVER",
        "call a tool of your own server",
    ),
];

/// Runs the command to its end.
pub(crate) fn run(args: DemoArgs) -> Result<Exit, Failure> {
    if let Some((address, folder)) = args.issuer.zip(args.keep.clone()) {
        return serve_issuer(address, folder, args.inbox_url.as_deref());
    }
    if args.team {
        return play_team(args.keep);
    }
    if args.gateway {
        return in_order(demo_gateway::run(args.answers, args.terminal));
    }
    let program = std::env::current_exe().map_err(|error| {
        Failure::usage("cannot find this program to start the demo server").because(error)
    })?;
    let json = args.answers.json;
    if !json {
        output::say(
            "A server is started, and its tool `deploy` is called. It does not know where to deploy, so it asks.",
        );
    }
    let target = Target::Command {
        program: program.into_os_string(),
        arguments: vec!["demo-server".into()],
    };
    let exit = in_order(call_session::run(call_session::ServerCall {
        target,
        server: "demo".to_owned(),
        access: ServerAccess::default(),
        sign_in: None,
        protocol: Protocol::Auto,
        request: ServerRequest::Tool {
            name: "deploy".to_owned(),
            arguments: serde_json::Map::new(),
            as_task: false,
        },
        answers: args.answers,
        consent: None,
        recorded_in: None,
    }))?;
    if !json {
        output::say_what_to_try(&TRY_NEXT);
    }
    Ok(exit)
}

#[cfg(feature = "full")]
fn play_team(keep: Option<PathBuf>) -> Result<Exit, Failure> {
    super::in_runtime(super::demo_team::run(keep))
}

#[cfg(feature = "full")]
fn serve_issuer(
    address: SocketAddr,
    folder: PathBuf,
    inbox: Option<&str>,
) -> Result<Exit, Failure> {
    super::in_runtime(super::demo_team::serve_issuer(address, folder, inbox))
}

#[cfg(not(feature = "full"))]
fn play_team(_: Option<PathBuf>) -> Result<Exit, Failure> {
    Err(needs_full("demo --team"))
}

#[cfg(not(feature = "full"))]
fn serve_issuer(_: SocketAddr, _: PathBuf, _: Option<&str>) -> Result<Exit, Failure> {
    Err(needs_full("demo --issuer"))
}

#[cfg(not(feature = "full"))]
fn needs_full(command: &str) -> Failure {
    Failure::usage(format!(
        "this build has no `{command}`: it belongs to the cargo feature `full`"
    ))
    .hint(format!(
        "run it with `cargo run --features full -- {command}`."
    ))
}
