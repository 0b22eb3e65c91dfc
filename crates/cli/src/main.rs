//! `mcp-elicit`: lets a person answer the questions of an MCP server.
//!
//! This crate connects the libraries to a command line: the options, the output streams, and the exit codes of
//! failures. It decides nothing about the protocol, a form or an answer, which belongs to the libraries.
//!
//! - [`args`]: the options, with shared ones in files of their own
//! - [`call_session`]: one call with its questions, for the commands that are a client
//! - [`check_run`]: the connections and threads of `check`
//! - [`commands`]: one file for each subcommand; its doc comment is its help
//! - [`failure`]: failures, with their text for people and their exit codes
//! - [`input`]: files and stdin, with limits
//! - [`log`]: the log of a gateway
//! - [`sign_in`]: OAuth in the browser, for servers over HTTP that require it
//! - [`output`]: stdout for programs, stderr for people
//! - [`stderr`]: the stderr of a gateway, which nobody may read

mod args;
mod call_session;
mod check_run;
mod commands;
mod failure;
mod input;
mod log;
mod output;
mod server_eras;
mod sign_in;
mod stderr;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match args::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return output::show_usage(&error),
    };
    cli.color.write_global();
    let exit = match commands::run(cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => output::show_failure(&failure).into(),
    };
    stderr::flush();
    exit
}
