//! `mcp-elicit validate`: checks that content answers a schema. The core library decides.

mod batch;
mod verdict;

use clap::Args;

use self::verdict::ContentVerdict;
use crate::failure::{Exit, Failure};
use crate::input::InputSource;
use crate::output::{self, GOOD, styled};

/// Check whether content is a valid answer to a schema
///
/// Checks an answer's content against a requestedSchema as every part of mcp-elicit does: JSON Schema 2020-12
/// semantics, formats asserted, and every broken rule reported at once, never the value that broke it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ValidateArgs {
    /// The requestedSchema: a file, or `-` for stdin
    #[arg(long, value_name = "FILE", required_unless_present = "batch")]
    schema: Option<InputSource>,

    /// The content of the answer: a file, or `-` for stdin
    #[arg(long, value_name = "FILE", required_unless_present = "batch")]
    content: Option<InputSource>,

    /// Print the verdict as JSON on stdout
    #[arg(long)]
    json: bool,

    /// Read lines {"id","schema","content"} from stdin and write one verdict per line to stdout, in order
    #[arg(long, conflicts_with_all = ["schema", "content"])]
    batch: bool,
}

const EXAMPLES: &str = r#"Examples:
  mcp-elicit validate --schema form.json --content answer.json
  echo '{"age": 12}' | mcp-elicit validate --schema form.json --content - --json
  mcp-elicit validate --batch < answers.jsonl > verdicts.jsonl

A verdict: {"schema":"ok"|"illegal","valid":true|false,
  "violations":[{"field","rule","message"}],"defects":[{"pointer","code","message"}]}
In a batch it begins with the line's "id"; a line that cannot be read gets {"id","error"} in its
place.

Exit codes:
  0  valid; in a batch, every line had a verdict
  1  not valid
  2  the schema is illegal, or an input cannot be read"#;

/// Runs the command.
pub(crate) fn run(args: ValidateArgs) -> Result<Exit, Failure> {
    match (args.schema, args.content) {
        (Some(InputSource::Stdin), Some(InputSource::Stdin)) => Err(Failure::usage(
            "the schema and the content cannot both come from stdin",
        )
        .hint("give one of them as a file, or use --batch.")),
        (Some(schema), Some(content)) => one(&schema, &content, args.json),
        _ => batch::run(&mut std::io::stdin().lock(), &mut std::io::stdout().lock()),
    }
}

fn one(schema: &InputSource, content: &InputSource, json: bool) -> Result<Exit, Failure> {
    let verdict = ContentVerdict::of(&schema.read()?, &content.read()?);
    if json {
        output::print_json(&verdict)?;
    } else {
        show(&verdict, schema, content);
    }
    Ok(verdict.exit())
}

fn show(verdict: &ContentVerdict, schema: &InputSource, content: &InputSource) {
    if !verdict.legal() {
        output::say(format_args!(
            "{} {schema} is not a legal requestedSchema",
            styled(output::ERROR, "illegal:")
        ));
        for defect in verdict.defects() {
            let place = if defect.pointer.is_empty() {
                "the whole"
            } else {
                &defect.pointer
            };
            output::say(format_args!(
                "  {}: {}",
                output::harmless(place),
                output::harmless(&defect.message)
            ));
        }
        output::say(format_args!(
            "  {} `mcp-elicit lint {schema}` shows the positions.",
            styled(output::HINT, "next:")
        ));
    } else if verdict.valid() {
        output::say(format_args!(
            "{} {content} answers {schema}",
            styled(GOOD, "valid:")
        ));
        if !verdict.ignored().is_empty() {
            let names = verdict.ignored().join(", ");
            output::say(format_args!(
                "  not in the form, and dropped: {}",
                output::harmless(&names)
            ));
        }
    } else {
        output::say(format_args!(
            "{} {content} does not answer {schema}",
            styled(output::ERROR, "not valid:")
        ));
        for violation in verdict.violations() {
            let field = if violation.field.is_empty() {
                "the content"
            } else {
                &violation.field
            };
            output::say(format_args!(
                "  {}: {}",
                output::harmless(field),
                output::harmless(&violation.message)
            ));
        }
    }
    for note in verdict.unchecked() {
        output::say(format_args!(
            "  {} {}: {}",
            styled(output::WARNING, "warning:"),
            output::harmless(&note.pointer),
            note.message
        ));
    }
}
