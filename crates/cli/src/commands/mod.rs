//! The subcommands, one file each. A new one needs a variant here (its doc comment is on its `Args`), a file, and a
//! line in [`run`]; a command that waits for I/O uses [`in_runtime`] or [`in_order`].

mod audit;
mod audit_call;
mod audit_checkpoint;
mod audit_purge;
mod backup;
mod call;
mod channels;
mod check;
mod checkpoint;
mod clients;
mod completions;
mod demo;
mod demo_gateway;
mod demo_server;
#[cfg(feature = "full")]
mod demo_team;
mod doctor;
mod gateway;
mod grants;
mod inbox;
mod keys;
mod lint;
mod man;
#[cfg(feature = "full")]
mod record;
#[cfg(feature = "full")]
mod record_contents;
#[cfg(feature = "full")]
mod record_move;
#[cfg(feature = "full")]
mod record_restored;
mod restore;
#[cfg(feature = "full")]
mod rules;
#[cfg(not(feature = "full"))]
#[path = "rules_absent.rs"]
mod rules;
mod setup;
mod state_record;
mod tokens;
mod validate;

use std::future::Future;

use clap::Subcommand;

use crate::args::gateway::GatewayArgs;
use crate::failure::{Exit, Failure};

/// The command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::DemoArgs),
    Call(Box<call::CallArgs>),
    DemoServer(demo_server::DemoServerArgs),
    Gateway(Box<GatewayArgs>),
    Setup(setup::SetupArgs),
    Doctor(doctor::DoctorArgs),
    Inbox(inbox::InboxArgs),
    Audit(Box<audit::AuditArgs>),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    Channels(channels::ChannelsArgs),
    Grants(grants::GrantsArgs),
    Clients(clients::ClientsArgs),
    Keys(keys::KeysArgs),
    #[cfg(feature = "full")]
    Record(record::RecordArgs),
    Rules(rules::RulesArgs),
    Tokens(tokens::TokensArgs),
    Lint(lint::LintArgs),
    Check(Box<check::CheckArgs>),
    Validate(validate::ValidateArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Runs one command to its end.
pub(crate) fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Demo(args) => demo::run(args),
        Command::Call(args) => call::run(*args),
        Command::DemoServer(args) => demo_server::run(&args),
        Command::Gateway(args) => gateway::run(*args),
        Command::Setup(args) => setup::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Inbox(args) => inbox::run(args),
        Command::Audit(args) => audit::run(*args),
        Command::Backup(args) => backup::run(args),
        Command::Restore(args) => restore::run(args),
        Command::Channels(args) => channels::run(args),
        Command::Grants(args) => grants::run(args),
        Command::Clients(args) => clients::run(&args),
        Command::Keys(args) => keys::run(args),
        #[cfg(feature = "full")]
        Command::Record(args) => record::run(args),
        Command::Rules(args) => rules::run(args),
        Command::Tokens(args) => tokens::run(args),
        Command::Lint(args) => lint::run(&args),
        Command::Check(args) => check::run(*args),
        Command::Validate(args) => validate::run(args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
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
