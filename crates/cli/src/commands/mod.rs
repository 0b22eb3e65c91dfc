//! The subcommands, one file each. A new one is a variant here (its doc comment lives on its `Args`), a file, and a
//! line in [`run`]; a command that waits for anything goes through [`in_runtime`].

mod call;
mod demo;
mod demo_server;
mod lint;
mod validate;

use std::future::Future;

use clap::Subcommand;

use crate::failure::{Exit, Failure};

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::DemoArgs),
    Call(call::CallArgs),
    DemoServer(demo_server::DemoServerArgs),
    Lint(lint::LintArgs),
    Validate(validate::ValidateArgs),
}

/// Runs one command to its end.
pub(crate) fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Demo(args) => demo::run(args),
        Command::Call(args) => call::run(args),
        Command::DemoServer(args) => demo_server::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Validate(args) => validate::run(args),
    }
}

/// Runs what waits on sockets, children or timers.
pub(crate) fn in_runtime<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::usage("this system gives no threads to work with").because(error)
        })?
        .block_on(work)
}
