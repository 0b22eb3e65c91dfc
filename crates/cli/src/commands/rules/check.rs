//! `rules check`: every error in a file, with its place.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use clap::Args;
use mcp_elicit_gateway::config::{add_channel_defects, add_channel_warnings};
use mcp_elicit_policy::document::hide_text;
use mcp_elicit_policy::rules::Loaded;
use mcp_elicit_policy::{RuleDefect, Rules};
use serde_json::json;

use crate::failure::{Exit, Failure};
use crate::input::InputSource;
use crate::output::{self, GOOD, HINT, harmless, say, styled};

/// Find every mistake in a rules file, with its line and column
///
/// Mistakes include unknown keys, a secret written as text, two people with the same mail address, groups that contain each
/// other, rules that can never match or name no one, escalations that add no one or come after the deadline, and conditions
/// with names or types that do not exist. The tables `[channels.*]` are checked too: unknown keys, addresses, events, groups, and
/// secrets written as text. A file with warnings can be used.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RulesCheckArgs {
    /// The rules, in TOML; `-` is stdin. A gateway's whole configuration may be given: the rest of it is not checked here
    #[arg(value_name = "FILE")]
    file: InputSource,

    /// Print the mistakes as JSON on stdout
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = r#"Examples:
  mcp-elicit rules check rules.toml
  mcp-elicit rules check rules.toml --json | jq '.defects[] | "\(.line): \(.message)"'

JSON:
  {"ok":false,"rules":4,"defects":[{"code","rule","line","column","message","help"}],
   "warnings":[..]}

Exit codes:
  0  no mistakes (there may be warnings)
  1  mistakes
  2  the file cannot be read"#;

/// The largest number of errors that are shown to a person.
const SHOWN: usize = 60;

pub(super) fn run(args: &RulesCheckArgs) -> Result<Exit, Failure> {
    let text = super::text_of(&args.file)?;
    let mut loaded = Rules::load(&text);
    add_channels(&mut loaded, &text);
    let is_right = loaded.defects.is_empty();
    if args.json {
        output::print_json(&json!({
            "ok": is_right,
            "rules": loaded.count,
            "defects": loaded.defects,
            "warnings": loaded.warnings,
        }))?;
    } else {
        let name = args.file.to_string();
        let defects = loaded.defects.iter().map(|defect| (Level::ERROR, defect));
        let warnings = loaded
            .warnings
            .iter()
            .map(|warning| (Level::WARNING, warning));
        let file = ShownFile {
            text: &text,
            name: &name,
            secrets: secrets_of(&loaded.defects),
        };
        for (level, finding) in defects.chain(warnings).take(SHOWN) {
            file.show(level, finding);
        }
        let all = loaded.defects.len() + loaded.warnings.len();
        if all > SHOWN {
            say(format_args!(
                "... and {} more; --json gives them all\n",
                all - SHOWN
            ));
        }
        let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        let summary = format!(
            "{}: {}, {}",
            count(loaded.count, "rule"),
            count(loaded.defects.len(), "mistake"),
            count(loaded.warnings.len(), "warning")
        );
        if is_right {
            say(format_args!("{} {summary}", styled(GOOD, "good:")));
            if has_gateway_tables(&text) {
                let file = match name.as_str() {
                    "-" => "FILE",
                    file => file,
                };
                say(format_args!(
                    "{} the rest of the file: `mcp-elicit gateway --config {} --check`",
                    styled(HINT, "next:"),
                    harmless(file)
                ));
            }
        } else {
            say(summary);
        }
    }
    Ok(if is_right { Exit::Done } else { Exit::Refused })
}

/// Returns `true` if the file is a gateway's configuration, of which more than the rules has to be checked.
fn has_gateway_tables(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        ["[servers.", "[login]", "[auth]"]
            .iter()
            .any(|table| line.starts_with(table))
    })
}

/// Adds the errors in the tables of channels, if the file can be parsed at all.
fn add_channels(loaded: &mut Loaded, text: &str) {
    let unread = ["invalid-toml", "file-too-large"];
    let mut known = loaded.defects.iter().map(|defect| defect.code);
    if known.any(|code| unread.contains(&code)) {
        return;
    }
    let people = loaded.rules.as_ref().map(Rules::people);
    add_channel_defects(&mut loaded.defects, text, people);
    if let Some(rules) = &loaded.rules {
        add_channel_warnings(&mut loaded.warnings, text, rules);
    }
}

/// Returns the length of the token to mark at the start of a text: a word, a string with its quotes, or a list or table
/// to its end.
fn marked(rest: &str) -> usize {
    let end_at = |close: char| {
        let mut before = None;
        let mut chars = rest.char_indices().skip(1);
        let end = chars.find(|(_, c)| {
            let is_end = *c == close && before != Some('\\');
            before = Some(*c);
            is_end
        });
        end.map_or(rest.trim_end().len(), |(at, c)| at + c.len_utf8())
    };
    match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => end_at(quote),
        Some('[') => end_at(']'),
        Some('{') => end_at('}'),
        first => {
            let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
            let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            word.max(first.map_or(0, char::len_utf8))
        }
    }
}

/// Returns the places of secrets that are written as text: line and column, the last of a line first.
fn secrets_of(defects: &[RuleDefect]) -> BTreeSet<(usize, Reverse<usize>)> {
    let secrets = defects
        .iter()
        .filter(|defect| defect.code == "literal-secret");
    secrets
        .map(|defect| (defect.line, Reverse(defect.column)))
        .collect()
}

/// The file as it is shown, without its secrets.
struct ShownFile<'f> {
    text: &'f str,
    name: &'f str,
    secrets: BTreeSet<(usize, Reverse<usize>)>,
}

impl ShownFile<'_> {
    /// Returns the line of a finding, and its place in that line, in characters from 0.
    fn line(&self, finding: &RuleDefect) -> (String, usize) {
        let line = self.text.lines().nth(finding.line - 1);
        let (mut line, mut at) = (line.unwrap_or_default().to_owned(), finding.column - 1);
        for (_, Reverse(column)) in self
            .secrets
            .iter()
            .filter(|(line, _)| *line == finding.line)
        {
            let (shown, before, after) = hide_text(&line, column - 1);
            line = shown;
            if at >= before {
                at = at - before + after;
            }
        }
        (line, at)
    }

    /// Shows one finding in its line of the file.
    fn show(&self, level: Level<'_>, finding: &RuleDefect) {
        let (line, at) = self.line(finding);
        show(level, finding, &line, at, self.name);
    }
}

fn show(level: Level<'_>, finding: &RuleDefect, line: &str, at: usize, name: &str) {
    let message = match &finding.rule {
        Some(rule) => format!("{} (rule `{rule}`)", finding.message),
        None => finding.message.clone(),
    };
    let line = harmless(line);
    let start = line.char_indices().nth(at).map_or(line.len(), |(at, _)| at);
    let span = start..start + marked(&line[start..]);
    let message = harmless(&message);
    let annotation = AnnotationKind::Primary.span(span);
    let snippet = Snippet::source(line.as_ref())
        .line_start(finding.line)
        .path(name)
        .annotation(annotation);
    let mut group =
        Group::with_title(level.primary_title(message).id(finding.code)).element(snippet);
    let help = harmless(&finding.help);
    if !help.is_empty() {
        group = group.element(Level::HELP.message(help));
    }
    say(Renderer::styled().render(&[group]));
    say("");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_marked_to_its_end() {
        for (rest, marked_text) in [
            ("deadline = 30", "deadline"),
            ("30 # minutes", "30"),
            (r#""30 minutes" # x"#, r#""30 minutes""#),
            (r#""a \" b", c"#, r#""a \" b""#),
            ("'raw' # x", "'raw'"),
            ("{ group = \"ops\" } # x", "{ group = \"ops\" }"),
            ("[\"10m\"]", "[\"10m\"]"),
            ("\"\"\"", "\"\""),
            ("= 1", "="),
            ("", ""),
        ] {
            assert_eq!(&rest[..marked(rest)], marked_text, "{rest}");
        }
    }

    #[test]
    fn a_configuration_is_known_by_its_tables() {
        assert!(has_gateway_tables("[servers.deploy]\ncommand = []"));
        assert!(has_gateway_tables("x = 1\n  [login]"));
        assert!(!has_gateway_tables("[[rules]]\n# [login]"));
    }
}
