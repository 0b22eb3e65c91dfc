//! `mcp-elicit lint`: checks that a question is legal, clear and safe. The core library finds the defects; this module
//! shows them in the source.

mod locate;
mod show;

use clap::Args;
use mcp_elicit_core::lint;
use mcp_elicit_core::wire::Revision;

use crate::failure::{Exit, Failure};
use crate::input::InputSource;
use crate::output;

/// Check whether a requestedSchema is legal, clear and safe, and on which revisions
///
/// Reports what makes it illegal, what would confuse a person who must answer (no title, two fields with the same label,
/// a hundred options) and what would endanger them (a form that asks for a secret, a link in a text, a default that
/// deletes).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LintArgs {
    /// A requestedSchema, the params of elicitation/create, a whole request, or a result with inputRequests; `-` is
    /// stdin
    #[arg(value_name = "FILE")]
    file: InputSource,

    /// Check for this revision only: 2025-06-18, 2025-11-25 or 2026-07-28
    #[arg(long, value_name = "REVISION")]
    revision: Option<Revision>,

    /// Print the report as JSON on stdout
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = r#"Examples:
  mcp-elicit lint form.json
  my-server --print-schema | mcp-elicit lint - --revision 2025-06-18
  mcp-elicit lint request.json --json | jq '.findings[] | select(.level == "error")'

A report: {"legal":{"2025-06-18":true,...}, "reading":"as-written"|"leniently"|"only-by-clients",
  "findings":[{"level":"error"|"warning"|"note","code","pointer","message","help"}]}

Exit codes:
  0  no errors (there may be warnings and notes)
  1  errors: not legal, or forbidden by the specification
  2  the file cannot be read"#;

/// Runs the command.
pub(crate) fn run(args: &LintArgs) -> Result<Exit, Failure> {
    let bytes = args.file.read()?;
    let text = String::from_utf8_lossy(&bytes);
    let report = lint::lint(&text, args.revision);
    if args.json {
        output::print_json(&report)?;
    } else {
        show::report(&report, &text, &args.file.to_string());
    }
    Ok(if report.has_errors() {
        Exit::Refused
    } else {
        Exit::Done
    })
}
