//! `check`: drives a server's tools through everything that a client and a person may do while they ask.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};
use mcp_elicit_check::{CellVerdict, Code, report};
use mcp_elicit_core::wire::Revision;
use serde_json::Value;

use super::in_runtime;
use crate::args::answers::call_arguments;
use crate::args::profiles::duration;
use crate::args::server::TargetArgs;
use crate::check_run::{self, CheckPlan, Selected};
use crate::failure::{Exit, Failure};
use crate::output;

/// Check how a server behaves when it asks: acts, wrong content, broken rounds, disconnects
///
/// Calls tools again and again, each time in a fresh process or session, and plays everything that a client and a person may
/// do: decline, cancel, answer twice or never, send content that breaks the form, change the state of a round, leave. Each
/// cell gets a verdict with its clause of the specification. Calls have effects, and questions are accepted, so only the
/// named tools are called.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    tools: ToolArgs,

    /// Call all tools that say `readOnlyHint`
    #[arg(long)]
    all_read_only: bool,

    /// Check this revision only: 2025-06-18, 2025-11-25, 2026-07-28, or all that the server speaks
    #[arg(long, value_name = "REVISION", default_value = "all", value_parser = revision)]
    revision: RevisionChoice,

    /// A shell command that shows the effects: a line for each, or one number. Compared before and after each cell, which
    /// then run one after the other
    #[arg(long, value_name = "COMMAND")]
    effect: Option<String>,

    /// The longest wait for the next step of the server, as 10s or 2m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    time: Duration,

    /// Print one JSON object per cell on stdout
    #[arg(long)]
    json: bool,

    /// Write the report as JUnit XML into this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Append the report as Markdown to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Allow this finding: it is listed and changes no verdict; repeat for more
    #[arg(long, value_name = "CODE", value_parser = code)]
    allow: Vec<Code>,

    #[command(flatten)]
    server: TargetArgs,
}

const EXAMPLES: &str = "\
Examples:
  mcp-elicit check --tool deploy -- mcp-elicit demo-server
  mcp-elicit check --tool deploy --tool plan-trip --revision 2026-07-28 -- mcp-elicit demo-server
  mcp-elicit check --tool remove path=/tmp/x --effect 'cat effects.log' -- node server.js
  mcp-elicit check --all-read-only --junit check.xml --markdown check.md -- uvx my-server
  mcp-elicit check --tool book --allow no-timeout --url http://127.0.0.1:8000/mcp

Verdicts of a cell:
  fail            the specification forbids it, it is unsafe, or the server hangs or dies
  warn            legal, but a person or a client will stumble over it
  pass            nothing was found
  not-asked       the tool asked nothing
  not-applicable  the revision, the tool or the command line does not have what the cell needs

docs/check.md explains every cell and every code. `mcp-elicit lint` checks a form without a server.

Exit codes:
    0  no cell failed
    1  a cell failed
    2  the command line cannot be used, or the server has no such tool
    3  the server does not start, or speaks no revision that has questions
  130  stopped with Ctrl-C or a signal; no process is left";

/// The revisions to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RevisionChoice {
    /// All that the server speaks.
    All,
    /// One.
    One(Revision),
}

fn revision(text: &str) -> Result<RevisionChoice, String> {
    if text == "all" {
        return Ok(RevisionChoice::All);
    }
    let one = text.parse::<Revision>();
    one.map(RevisionChoice::One)
        .map_err(|_| "use 2025-06-18, 2025-11-25, 2026-07-28 or all".to_owned())
}

fn code(text: &str) -> Result<Code, String> {
    Code::named(text).ok_or_else(|| {
        let known = Code::ALL.map(Code::as_str).join(", ");
        format!("no finding has this code; known are {known}")
    })
}

/// Tools with their arguments: each `--tool` has a name and any number of arguments.
#[derive(Debug)]
struct ToolArgs(Vec<Vec<String>>);

impl FromArgMatches for ToolArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let all = matches.get_occurrences::<String>("tool");
        let all = all.into_iter().flatten();
        Ok(Self(all.map(|words| words.cloned().collect()).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ToolArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.arg(
            Arg::new("tool")
                .long("tool")
                .value_names(["NAME", "ARGUMENT"])
                .num_args(1..)
                .action(ArgAction::Append)
                .help("Call this tool, with arguments as name=value or as one JSON object; repeat for more"),
        )
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl ToolArgs {
    fn read(&self) -> Result<Vec<Selected>, Failure> {
        let all = self.0.iter().filter_map(|words| words.split_first());
        all.map(|(name, words)| {
            Ok(Selected {
                tool: name.clone(),
                arguments: Value::Object(call_arguments(words)?),
            })
        })
        .collect()
    }
}

/// Runs the command to its end.
pub(crate) fn run(args: CheckArgs) -> Result<Exit, Failure> {
    let plan = CheckPlan {
        server: args.server.target()?,
        access: args.server.access()?,
        selected: args.tools.read()?,
        all_read_only: args.all_read_only,
        revisions: match args.revision {
            RevisionChoice::All => Revision::ALL.to_vec(),
            RevisionChoice::One(revision) => vec![revision],
        },
        effect: args.effect,
        time_limit: args.time,
    };
    let mut found = in_runtime(check_run::run(plan))?;
    found.allow(&args.allow);
    if let Some(path) = &args.junit {
        let xml = report::junit(&found)
            .map_err(|error| Failure::usage("cannot write the report").because(error))?;
        std::fs::write(path, xml).map_err(|error| unwritable(path, error))?;
    }
    if let Some(path) = &args.markdown {
        append(path, &report::markdown(&found)).map_err(|error| unwritable(path, error))?;
    }
    if args.json {
        for line in report::lines(&found) {
            output::print_json(&line)?;
        }
    } else {
        for line in report::text(&found).lines() {
            output::print(output::harmless(line))?;
        }
    }
    Ok(match found.verdict() {
        CellVerdict::Fail => Exit::Refused,
        CellVerdict::Warn
        | CellVerdict::Pass
        | CellVerdict::NotAsked
        | CellVerdict::NotApplicable => Exit::Done,
    })
}

/// The summary of a CI run is one file for all of its steps.
fn append(path: &std::path::Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?;
    file.write_all(text.as_bytes())
}

fn unwritable(path: &std::path::Path, error: std::io::Error) -> Failure {
    Failure::usage(format!("cannot write {}", path.display())).because(error)
}
