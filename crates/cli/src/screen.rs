//! Where words go: what a program reads to stdout, what people read to stderr. Colours only on a terminal.

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::failure::{Exit, Failure};

/// The word `error`.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The word `warning`.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// What went well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// What to do next.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();

/// One word in a style; the style is dropped where colours are not wanted.
pub(crate) fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// One line for people. A closed stderr is no reason to stop working.
pub(crate) fn say(line: impl Display) {
    let _nobody_listens = writeln!(anstream::stderr().lock(), "{line}");
}

/// One line on stdout, flushed, as the result that was asked for.
pub(crate) fn print(line: impl Display) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// One JSON value as one line on stdout, flushed, for a program to read.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut line = serde_json::to_vec(value)
        .map_err(|error| Failure::usage("cannot write JSON").because(error))?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line)?;
    Ok(out.flush()?)
}

/// Shows a failure: what happened, why, and what to do next.
pub(crate) fn show_failure(failure: &Failure) -> Exit {
    if !failure.is_silent() {
        say(format_args!(
            "{} {}",
            styled(ERROR, "error:"),
            failure.message()
        ));
        for cause in failure.causes() {
            say(format_args!("  because: {cause}"));
        }
        if let Some(hint) = failure.next_step() {
            say(format_args!("  {} {hint}", styled(HINT, "next:")));
        }
    }
    failure.exit()
}

/// Shows what clap has to say: help and version (which are no failure) or what is wrong with the command line.
pub(crate) fn show_usage(error: &clap::Error) -> ExitCode {
    let _nobody_listens = error.print();
    match error.exit_code() {
        0 => Exit::Done.into(),
        _ => Exit::Usage.into(),
    }
}
