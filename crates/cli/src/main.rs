//! `mcp-elicit`: a person answers what an MCP server asks.
//!
//! This crate decides how the parts meet a command line: which options there are, what is printed where, and which
//! exit code a failure has. It never decides anything about the protocol, a form or an answer; that is the libraries'.
//!
//! - [`args`]: the options, shared ones in files of their own
//! - [`call_session`]: one call with its questions, for the commands that are a client
//! - [`commands`]: one file for each subcommand; its doc comment is its help
//! - [`failure`]: every way to fail, as a person reads it, and its exit code
//! - [`input`]: files and stdin, with bounds
//! - [`sign_in`]: OAuth in the browser, for servers over HTTP that require it
//! - [`output`]: what a program reads goes to stdout, what people read to stderr

mod args;
mod call_session;
mod commands;
mod failure;
mod input;
mod output;
mod sign_in;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match args::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return output::show_usage(&error),
    };
    cli.color.write_global();
    match commands::run(cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => output::show_failure(&failure).into(),
    }
}
