//! `mcp-elicit rules`: the errors in a rules file, its decisions, and the tools without a rule.

mod check;
mod coverage;
mod simulate;
mod simulate_audit;

use clap::{Args, Subcommand};
use mcp_elicit_gateway::config::{login_issuer, server_names};
use mcp_elicit_policy::Rules;

use crate::failure::{Exit, Failure};
use crate::input::InputSource;
use crate::output;

/// Check and simulate the rules of a gateway: who is asked, what is refused, which calls need approval
///
/// Rules are written in TOML and evaluated from the top; the first match decides. These commands check and simulate them;
/// `mcp-elicit gateway --config FILE` applies them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    command: RulesCommand,
}

#[derive(Debug, Subcommand)]
enum RulesCommand {
    Check(check::RulesCheckArgs),
    Simulate(simulate::SimulateArgs),
    Coverage(Box<coverage::CoverageArgs>),
}

const EXAMPLES: &str = r#"Example file:
  [people.ada]
  mail = "ada@example.com"
  [people.bob]
  mail = "bob@example.com"
  [groups]
  ops = ["ada", "bob"]
  [[rules]]
  name = "deploy-production"
  server = "deploy"
  tool = "deploy*"
  when = 'arguments.environment == "production"'
  ask = { group = "ops" }
  deadline = "30m"

Examples:
  mcp-elicit rules check rules.toml
  mcp-elicit rules simulate rules.toml \
    --call '{"server":"deploy","tool":"deploy_app","arguments":{"environment":"production"}}'
  mcp-elicit rules simulate rules.toml --audit --since 7d
  mcp-elicit rules coverage rules.toml --name deploy -- npx my-server

The guide is docs/rules.md."#;

/// Runs the command to its end.
pub(crate) fn run(args: RulesArgs) -> Result<Exit, Failure> {
    match args.command {
        RulesCommand::Check(args) => check::run(&args),
        RulesCommand::Simulate(args) => simulate::run(&args),
        RulesCommand::Coverage(args) => coverage::run(&args),
    }
}

/// A rules file without errors.
struct RightRules {
    rules: Rules,
    /// The issuer at which people log in, if the file has one.
    logs_in: Option<String>,
    /// The names of the file's servers; empty if it has none.
    servers: Vec<String>,
    /// The file's text.
    text: String,
}

/// Reads a rules file, which must have no errors.
fn right_rules(file: &InputSource) -> Result<RightRules, Failure> {
    let text = text_of(file)?;
    let rules = Rules::parse(&text).map_err(|defects| {
        let count = defects.len();
        let mistakes = if count == 1 { "mistake" } else { "mistakes" };
        let first = defects.first().map(|defect| format!("{file}:{defect}"));
        Failure::usage(format!("{file} has {count} {mistakes}"))
            .telling("the first:", first.into_iter().collect())
            .hint(format!("see all with `mcp-elicit rules check {file}`."))
    })?;
    Ok(RightRules {
        rules,
        logs_in: login_issuer(&text),
        servers: server_names(&text),
        text,
    })
}

/// Warns of a server that is not in the file, if the file has servers. `shown` is the name, safe to print.
fn warn_of_unknown_server(server: &str, shown: &str, servers: &[String], next: &str) {
    if !servers.is_empty() && servers.iter().all(|known| known != server) {
        output::say(format_args!(
            "{} the file has no server `{shown}`; it has {}{next}",
            output::styled(output::WARNING, "warning:"),
            output::harmless(&servers.join(", "))
        ));
    }
}

fn text_of(file: &InputSource) -> Result<String, Failure> {
    let bytes = file.read_configuration()?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{file} is not UTF-8 text")).hint("save it as UTF-8."))
}
