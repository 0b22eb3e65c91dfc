//! `setup`: puts the gateway before the servers in the configuration files of clients.

mod found;
mod program;
mod undo;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use clap::Args;
use mcp_elicit_setup::journal::{JournalError, SetupJournal};
use mcp_elicit_setup::write::{WriteError, write};
use mcp_elicit_setup::{DiffLine, FilePlan, LeftAlone, ServerEntry, SetupState, Wish};

use super::state_record;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::output::{self, GOOD, HINT, WARNING, harmless, print, say, styled};
pub(super) use found::{FoundFile, Selection, find};

/// Put the gateway before the servers in the configuration files of your clients
///
/// Without names, list the clients on this machine and their servers. Each change is shown, and asked about. Comments,
/// order and everything else in a file stay; what a file was is kept in the state folder for `--undo`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
pub(crate) struct SetupArgs {
    /// Clients, by their short names, and servers, by their names in the clients' files
    #[arg(value_name = "CLIENT|SERVER")]
    names: Vec<String>,

    /// All servers of the named clients, or of all clients
    #[arg(long)]
    all: bool,

    /// Show the changes, and make none
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Do not ask
    #[arg(long)]
    yes: bool,

    /// Take the gateway away again: byte for byte, unless the file was changed since
    #[arg(long, conflicts_with_all = ["program", "time_limits"])]
    undo: bool,

    /// The program to write into the files [default: this one, and `mcp-elicit` in files of a project]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,

    /// Raise time limits of clients under 60 seconds to five minutes, so that a person has time to answer
    #[arg(long)]
    time_limits: bool,

    /// The state folder, which holds what the files were
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  mcp-elicit setup                        list clients and servers
  mcp-elicit setup --all --dry-run        show what would change
  mcp-elicit setup claude-code deploy     one server of one client
  mcp-elicit setup --all --yes
  mcp-elicit setup --undo cursor

Files of a project (.mcp.json, .vscode/mcp.json and the like) are found in the current folder.
Exit code 1: a file or a named server was left alone; the lines say why. docs/setup.md has more.";

/// Runs the command to its end.
pub(crate) fn run(args: &SetupArgs) -> Result<Exit, Failure> {
    let selection = Selection::read(&args.names)?;
    let found = find(&selection)?;
    selection.check(&found)?;
    if args.undo {
        return undo::run(args, &selection, &found);
    }
    if !args.all && selection.servers.is_empty() {
        return list(&found);
    }
    change(args, &selection, &found)
}

/// Returns the folder of the journal.
pub(super) fn journal_folder(state: Option<PathBuf>) -> Result<PathBuf, Failure> {
    Ok(state_record::path(state)?.join("setup"))
}

fn open_journal(args: &SetupArgs) -> Result<SetupJournal, Failure> {
    let folder = journal_folder(args.state.clone())?;
    SetupJournal::open(&folder).map_err(|error| {
        let next = match &error {
            JournalError::InUse => "wait for it to end, then run this again.",
            JournalError::Damaged(_) => "move that file away.",
            JournalError::File(..) => "name a folder that you can write to with `--state DIR`.",
        };
        Failure::usage("the journal of changes cannot be used")
            .because(error)
            .hint(next)
    })
}

fn list(found: &[FoundFile]) -> Result<Exit, Failure> {
    let mut is_bad = false;
    let mut open = 0;
    for file in found {
        print(heading(file))?;
        match &file.document {
            Err(why) => {
                is_bad = true;
                print(format_args!(
                    "  {} {}; left alone",
                    styled(WARNING, "unreadable:"),
                    harmless(why)
                ))?;
            }
            Ok(document) => {
                for server in document.servers() {
                    open += usize::from(is_open(server));
                    print(format_args!(
                        "  {}  {}",
                        harmless(server.name()),
                        state_text(server)
                    ))?;
                }
                if document.servers().is_empty() {
                    print("  no servers")?;
                }
            }
        }
    }
    if found.is_empty() {
        say("no configuration file of a known client was found");
        say(
            "  configure a server in your client first; clients with files elsewhere: see docs/setup.md",
        );
    } else if open > 0 {
        output::say_what_to_try(&[
            ("mcp-elicit setup --all --dry-run", "show what would change"),
            (
                "mcp-elicit setup --all",
                "put the gateway before every server",
            ),
        ]);
    }
    Ok(if is_bad { Exit::Refused } else { Exit::Done })
}

/// Returns `true` if the gateway can be put before a server.
pub(super) fn is_open(server: &ServerEntry) -> bool {
    matches!(
        server.state(),
        SetupState::Program { .. } | SetupState::Url { .. }
    )
}

fn state_text(server: &ServerEntry) -> String {
    let disabled = if server.is_disabled() {
        " (disabled)"
    } else {
        ""
    };
    match server.state() {
        SetupState::Wrapped { .. } => format!("{}{disabled}", styled(GOOD, "behind the gateway")),
        SetupState::Program { .. } => format!("program, not behind the gateway{disabled}"),
        SetupState::Url { .. } => format!("URL, not behind the gateway{disabled}"),
        SetupState::Unsupported { why } => {
            format!("cannot be behind the gateway: {}", harmless(why))
        }
    }
}

fn heading(file: &FoundFile) -> String {
    let shared = if file.is_project { "  (project)" } else { "" };
    format!(
        "{}  {}{shared}",
        file.client.name(),
        harmless(&file.path.to_string_lossy())
    )
}

/// The fate of the files.
#[derive(Default)]
struct Tally {
    changed: Vec<&'static str>,
    is_bad: bool,
    /// `true` if a server was left alone.
    passed_over: bool,
    unasked: bool,
}

fn change(args: &SetupArgs, selection: &Selection, found: &[FoundFile]) -> Result<Exit, Failure> {
    let programs = program::Programs::new(args.program.as_deref())?;
    let mut tally = Tally::default();
    let mut journal = None;
    let mut has_project = false;
    for file in found {
        if let Err(why) = &file.document {
            tally.is_bad = true;
            print(heading(file))?;
            print(format_args!(
                "  {} {}; left alone",
                styled(WARNING, "unreadable:"),
                harmless(why)
            ))?;
            continue;
        }
        let meant = Meant {
            args,
            selection,
            program: programs.of(file.is_project),
        };
        let Some(plan) = meant.plan(file) else {
            continue;
        };
        if plan.changed.is_empty() && plan.left_alone.is_empty() {
            continue;
        }
        print(heading(file))?;
        show(&plan)?;
        tally.is_bad |= plan
            .left_alone
            .iter()
            .any(|one| meant.must_change(&one.name));
        tally.passed_over |= !plan.left_alone.is_empty();
        if plan.changed.is_empty() || !agreed(args, &mut tally)? {
            continue;
        }
        if journal.is_none() {
            journal = Some(open_journal(args)?);
        }
        let Some(journal) = &journal else { continue };
        match written(journal, file, &plan, &meant, &mut tally) {
            Ok(false) => {}
            Ok(true) => {
                print(format_args!("  {}", styled(GOOD, "changed")))?;
                has_project |= file.is_project;
                if !tally.changed.contains(&file.client.id()) {
                    tally.changed.push(file.client.id());
                }
            }
            Err(SetupError::Write(error)) => {
                tally.is_bad = true;
                not_written(&error)?;
            }
            Err(SetupError::Failure(failure)) => return Err(failure),
        }
    }
    finish(args, &tally, has_project)
}

/// The changes of a file.
struct Meant<'a> {
    args: &'a SetupArgs,
    selection: &'a Selection,
    program: &'a str,
}

impl Meant<'_> {
    /// Returns `true` if the server was named, so that leaving it alone is a failure. `--all` names what it passes over, such
    /// as a part of the client that is no server of MCP.
    fn must_change(&self, server: &str) -> bool {
        !self.args.all || self.selection.names(server)
    }

    fn plan(&self, file: &FoundFile) -> Option<FilePlan> {
        let document = file.document.as_ref().ok()?;
        let mut wishes = Vec::new();
        for server in document.servers() {
            let is_named = self.selection.names(server.name());
            let is_unsupported = matches!(server.state(), SetupState::Unsupported { .. });
            if !is_named && (!self.args.all || !self.selection.servers.is_empty()) {
                continue;
            }
            wishes.push((
                server,
                Wish::Wrap {
                    program: self.program.to_owned(),
                },
            ));
            if self.args.time_limits && !is_unsupported {
                wishes.push((server, Wish::RaiseTimeLimit));
            }
        }
        Some(document.plan(&wishes))
    }
}

/// Writes a plan. One that another program made stale is made again, once, and shown again: a person agrees to what they
/// have seen. Returns `false` if they no longer do.
fn written(
    journal: &SetupJournal,
    file: &FoundFile,
    plan: &FilePlan,
    meant: &Meant<'_>,
    tally: &mut Tally,
) -> Result<bool, SetupError> {
    match write(journal, &file.real, plan, &mut |_| Ok(())) {
        Err(WriteError::Changed) => {}
        other => return Ok(other.map(|()| true)?),
    }
    let again = file.read_again();
    let Some(plan) = meant.plan(&again).filter(|plan| !plan.changed.is_empty()) else {
        return Err(WriteError::Changed.into());
    };
    print("  another program has changed the file meanwhile; now the change is")?;
    show(&plan)?;
    if !agreed(meant.args, tally)? {
        return Ok(false);
    }
    write(journal, &file.real, &plan, &mut |_| Ok(()))?;
    Ok(true)
}

/// The reason why a file was not written.
enum SetupError {
    /// The file itself; it is left alone.
    Write(WriteError),
    /// The terminal, which ends the command.
    Failure(Failure),
}

impl From<WriteError> for SetupError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl From<Failure> for SetupError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

fn not_written(error: &WriteError) -> Result<(), Failure> {
    let next = match error {
        WriteError::Changed => "end the client that writes it, then run this again",
        WriteError::ReadOnly | WriteError::FolderReadOnly => {
            "make it writable, or change its source if a program generates it"
        }
        WriteError::OtherOwner => "run this as its owner",
        WriteError::HardLinks(_) => "remove the other names",
        WriteError::NotAFile | WriteError::DanglingLink => "put a file in its place",
        WriteError::Io(..) => "see the cause; nothing was changed",
    };
    let causes = mcp_elicit_core::fault::causes(&error).join(": ");
    print(format_args!(
        "  {} {}",
        styled(WARNING, "left alone:"),
        harmless(&causes)
    ))?;
    print(format_args!("    {} {next}", styled(HINT, "next:")))
}

fn show(plan: &FilePlan) -> Result<(), Failure> {
    for changed in &plan.changed {
        for line in &changed.diff {
            print(match line {
                DiffLine::At(number) => styled(
                    HINT,
                    format_args!("  {} (line {number})", harmless(&changed.name)),
                ),
                DiffLine::Old(text) => styled(
                    output::ERROR,
                    format_args!(
                        "  - {}",
                        harmless(&text.trim_end_matches('\r').replace('\t', "    "))
                    ),
                ),
                DiffLine::New(text) => styled(
                    GOOD,
                    format_args!(
                        "  + {}",
                        harmless(&text.trim_end_matches('\r').replace('\t', "    "))
                    ),
                ),
            })?;
        }
        if let Some(variable) = &changed.foreign_code {
            print(format_args!(
                "  {} {}: `{}` in its entry lets other code run in place of the gateway or in it; look at it first",
                styled(WARNING, "warning:"),
                harmless(&changed.name),
                harmless(variable)
            ))?;
        }
    }
    left_alone(&plan.left_alone)
}

fn left_alone(servers: &[LeftAlone]) -> Result<(), Failure> {
    for one in servers {
        print(format_args!(
            "  {} {} (line {}): {}",
            styled(WARNING, "left alone:"),
            harmless(&one.name),
            one.line,
            harmless(&one.why)
        ))?;
    }
    Ok(())
}

/// Returns `true` if a change is to be made.
fn agreed(args: &SetupArgs, tally: &mut Tally) -> Result<bool, Failure> {
    if args.dry_run || args.yes {
        return Ok(args.yes);
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        tally.unasked = true;
        return Ok(false);
    }
    let line = input::typed_answer("  change this file? [y/N] ")?;
    Ok(matches!(
        line.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}

fn finish(args: &SetupArgs, tally: &Tally, has_project: bool) -> Result<Exit, Failure> {
    if tally.unasked {
        return Err(
            Failure::usage("nothing was changed: there is no terminal to ask at")
                .hint("look at the changes above, then run it again with `--yes`."),
        );
    }
    if args.dry_run {
        say("nothing was changed (--dry-run)");
    } else if tally.changed.is_empty() && !tally.is_bad {
        say(if tally.passed_over {
            "nothing else to change"
        } else {
            "nothing to change"
        });
    }
    for id in &tally.changed {
        if let Some(client) = mcp_elicit_setup::ClientFiles::find(id) {
            say(format_args!(
                "{} {}",
                styled(HINT, "next:"),
                client.next_step()
            ));
        }
    }
    if has_project {
        say(
            "the files of a project name `mcp-elicit`: whoever else uses them needs it on the PATH",
        );
    }
    if !tally.changed.is_empty() && !args.undo {
        output::say_what_to_try(&[
            (
                "mcp-elicit inbox open",
                "sign this browser in to the inbox, once a client has started a server",
            ),
            ("mcp-elicit setup --undo", "take the gateway away again"),
        ]);
    }
    Ok(if tally.is_bad {
        Exit::Refused
    } else {
        Exit::Done
    })
}
