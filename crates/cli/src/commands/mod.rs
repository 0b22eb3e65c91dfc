//! The subcommands, one file each. A new one needs a variant here (its doc comment is on its `Args`), a file, and a
//! line in [`run`]; a command that waits for I/O uses [`in_runtime`] or [`in_order`].

mod audit;
mod call;
mod channels;
mod demo;
mod demo_gateway;
mod demo_server;
#[cfg(feature = "full")]
mod demo_team;
mod gateway;
mod inbox;
mod keys;
mod lint;
#[cfg(feature = "full")]
mod rules;
#[cfg(not(feature = "full"))]
#[path = "rules_absent.rs"]
mod rules;
mod state_record;
mod tokens;
mod validate;

use std::future::Future;

use clap::Subcommand;

use crate::args::gateway::GatewayArgs;
use crate::failure::{Exit, Failure};

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::DemoArgs),
    Call(Box<call::CallArgs>),
    DemoServer(demo_server::DemoServerArgs),
    Gateway(Box<GatewayArgs>),
    Inbox(inbox::InboxArgs),
    Audit(audit::AuditArgs),
    Channels(channels::ChannelsArgs),
    Keys(keys::KeysArgs),
    Rules(rules::RulesArgs),
    Tokens(tokens::TokensArgs),
    Lint(lint::LintArgs),
    Validate(validate::ValidateArgs),
}

/// Runs one command to its end.
pub(crate) fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Demo(args) => demo::run(args),
        Command::Call(args) => call::run(*args),
        Command::DemoServer(args) => demo_server::run(&args),
        Command::Gateway(args) => gateway::run(*args),
        Command::Inbox(args) => inbox::run(args),
        Command::Audit(args) => audit::run(args),
        Command::Channels(args) => channels::run(args),
        Command::Keys(args) => keys::run(args),
        Command::Rules(args) => rules::run(args),
        Command::Tokens(args) => tokens::run(args),
        Command::Lint(args) => lint::run(&args),
        Command::Validate(args) => validate::run(args),
    }
}

/// Runs work that waits on sockets, children or timers, on as many threads as there are processors.
pub(crate) fn in_runtime<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    on(&mut tokio::runtime::Builder::new_multi_thread(), work)
}

/// Runs work that serves one person, on one thread: questions that arrive together are asked in order of arrival, which
/// several threads would not guarantee.
pub(crate) fn in_order<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    on(&mut tokio::runtime::Builder::new_current_thread(), work)
}

fn on<T>(
    runtime: &mut tokio::runtime::Builder,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = runtime
        .enable_all()
        .build()
        .map_err(|error| Failure::usage("cannot start the async runtime").because(error))?;
    let done = runtime.block_on(work);
    // A thread that still reads stdin cannot be woken, and must not delay the exit.
    runtime.shutdown_background();
    done
}
