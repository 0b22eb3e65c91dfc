//! `rules coverage`: the tools of a server, with the rules that cover each.

use std::time::Duration;

use clap::Args;
use mcp_elicit_client::{CallOptions, ClientSettings, ConnectOptions, Connection, ElicitingClient};
use mcp_elicit_forms::view::sanitize;
use mcp_elicit_gateway::ServerConnection;
use mcp_elicit_gateway::config::{Config, ConfiguredServer};
use mcp_elicit_policy::Rules;
use mcp_elicit_policy::rules::{Coverage, Rule, ToolCoverage};
use rmcp::model::Tool;
use serde_json::{Map, Value, json};

use crate::args::server::ServerArgs;
use crate::call_session::handler::Handler;
use crate::call_session::{self, failures, stop};
use crate::commands::in_order;
use crate::failure::{Exit, Failure};
use crate::input::InputSource;
use crate::output::{self, WARNING, styled};

/// List a server's tools with the rules that cover each, and tools without a rule
///
/// Starts the server, or connects to it, and lists its tools without calling any. Without a command or a URL: every
/// server of the file.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CoverageArgs {
    /// The rules, in TOML
    #[arg(value_name = "FILE")]
    file: InputSource,

    #[command(flatten)]
    server: ServerArgs,

    /// The server's name in the configuration; by default the name that it reports. Without a command or a URL, only this
    /// server of the file
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Fail if a tool has no rule
    #[arg(long)]
    require: bool,

    /// Print the list as one JSON object per server
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = r#"Examples:
  mcp-elicit rules coverage gateway.toml --require
  mcp-elicit rules coverage rules.toml --name deploy -- npx my-server
  mcp-elicit rules coverage rules.toml --url https://example.com/mcp --token-env TOKEN
  mcp-elicit rules coverage rules.toml --json -- mcp-elicit demo-server \
    | jq '.tools[] | select(.covered == "never").tool'

covered:
  always       an unconditional rule covers it
  conditional  only rules with conditions cover it
  never        no rule covers it

Rules that only refuse some questions (`refuse-modes`, `refuse-credentials`, conditions on
`question`) cover no tool: they are listed as `questions`.

Exit codes:
  0  listed, whether covered or not
  1  a tool has no rule, with --require
  2  the file or the command line cannot be used
  3  no connection, or the server broke the protocol"#;

/// The longest name of a tool that is shown to a person, in characters.
const NAME: usize = 80;

pub(super) fn run(args: &CoverageArgs) -> Result<Exit, Failure> {
    let super::RightRules {
        rules,
        servers,
        text,
        ..
    } = super::right_rules(&args.file)?;
    let of_file = if args.server.is_named() || servers.is_empty() {
        Vec::new()
    } else {
        configured(&args.file, &text)?
    };
    let listed = if of_file.is_empty() {
        let (reported, tools) = in_order(Box::pin(tools(&args.server)))?;
        let server = args.name.clone().unwrap_or(reported);
        let next = "; say which one this is with `--name NAME`";
        super::warn_of_unknown_server(&server, &sanitize::line(&server, NAME), &servers, next);
        vec![(server, tools)]
    } else {
        let wanted = |server: &&ConfiguredServer| {
            let name = args.name.as_ref();
            name.is_none_or(|name| *name == server.settings.server)
        };
        if !of_file.iter().any(|server| wanted(&server)) {
            let name = args.name.as_deref().unwrap_or_default();
            return Err(
                Failure::usage(format!("{} has no server of the name {name}", args.file))
                    .hint(format!("it has {}.", servers.join(", "))),
            );
        }
        let mut listed = Vec::new();
        for server in of_file.iter().filter(wanted) {
            let tools = in_order(Box::pin(tools_of(server)))?;
            listed.push((server.settings.server.clone(), tools));
        }
        listed
    };
    let mut uncovered = 0;
    for (server, tools) in &listed {
        uncovered += report(args, &rules, server, tools)?;
    }
    if args.require && uncovered > 0 {
        return Err(
            Failure::refused(format!("{uncovered} tool(s) have no rule"))
                .hint("add a rule for each, or a last rule for all tools."),
        );
    }
    Ok(Exit::Done)
}

/// Returns the servers of the file, as a gateway would use them.
fn configured(file: &InputSource, text: &str) -> Result<Vec<ConfiguredServer>, Failure> {
    let config = Config::parse(text).map_err(|error| {
        Failure::usage(format!("{file} cannot be used"))
            .because(error)
            .hint("correct it, or name one server after `--` or with `--url`.")
    })?;
    Ok(config.servers)
}

/// Prints the tools of a server with their rules. Returns the number of tools without one.
fn report(
    args: &CoverageArgs,
    rules: &Rules,
    server: &str,
    tools: &[Tool],
) -> Result<usize, Failure> {
    let covered: Vec<_> = tools
        .iter()
        .map(|tool| (tool, rules.coverage(server, &tool.name)))
        .collect();
    let is_used = |name: &str| {
        covered.iter().any(|(_, found)| {
            found
                .rules
                .iter()
                .chain(&found.questions)
                .any(|rule| rule.name() == name)
        })
    };
    // A rule without a server may be for another server's tools.
    let unused = rules
        .rules()
        .iter()
        .filter(|rule| rule.names_server(server) && rule.is_for_tools() && !is_used(rule.name()));
    let unused: Vec<&str> = unused.map(Rule::name).collect();
    if args.json {
        let tools = covered.iter().map(|(tool, found)| {
            let listed = |rules: &[&Rule]| -> Value {
                let rules = rules.iter();
                rules
                    .map(|rule| json!({"rule": rule.name(), "line": rule.line()}))
                    .collect()
            };
            let mut entry = Map::new();
            entry.insert("tool".to_owned(), json!(tool.name));
            let annotations = annotations(tool);
            if !annotations.is_empty() {
                entry.insert("annotations".to_owned(), Value::Object(annotations));
            }
            entry.insert("covered".to_owned(), json!(found.coverage));
            entry.insert("rules".to_owned(), listed(&found.rules));
            entry.insert("questions".to_owned(), listed(&found.questions));
            Value::Object(entry)
        });
        let tools: Value = tools.collect();
        output::print_json(&json!({"server": server, "tools": tools, "unused": unused}))?;
    } else {
        show(server, &covered, &unused)?;
    }
    let never = covered
        .iter()
        .filter(|(_, found)| found.coverage == Coverage::Never);
    Ok(never.count())
}

type Covered<'t> = (&'t Tool, ToolCoverage<'t>);

fn show(server: &str, covered: &[Covered<'_>], unused: &[&str]) -> Result<(), Failure> {
    let name = |tool: &Tool| sanitize::line(&tool.name, NAME);
    let width = covered
        .iter()
        .map(|(tool, _)| name(tool).chars().count())
        .max()
        .unwrap_or_default();
    let names = |rules: &[&Rule]| -> String {
        let names: Vec<&str> = rules.iter().map(|rule| rule.name()).collect();
        names.join(", ")
    };
    for (tool, found) in covered {
        let mut said = names(&found.rules);
        if !found.questions.is_empty() {
            let between = if said.is_empty() { "" } else { "; " };
            said.extend([between, "its questions: ", &*names(&found.questions)]);
        }
        let word = match found.coverage {
            Coverage::Always => "always",
            Coverage::Conditional => "conditional",
            Coverage::Never => "never",
        };
        let line = format!("{:<width$}  {word:<11}  {said}", name(tool));
        output::print(line.trim_end())?;
    }
    let never = covered
        .iter()
        .filter(|(_, found)| found.coverage == Coverage::Never)
        .count();
    let have = if never == 1 { "has" } else { "have" };
    output::say(format_args!(
        "{} of the {} tools of {} {have} no rule",
        never,
        covered.len(),
        sanitize::line(server, NAME)
    ));
    for rule in unused {
        output::say(format_args!(
            "{} rule `{}` is for this server and matches none of its tools",
            styled(WARNING, "warning:"),
            output::harmless(rule)
        ));
    }
    Ok(())
}

/// Returns the tool's annotations, by the names that conditions use.
fn annotations(tool: &Tool) -> Map<String, Value> {
    let Some(annotations) = &tool.annotations else {
        return Map::new();
    };
    [
        ("readOnly", annotations.read_only_hint),
        ("destructive", annotations.destructive_hint),
        ("idempotent", annotations.idempotent_hint),
        ("openWorld", annotations.open_world_hint),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), Value::Bool(value?))))
    .collect()
}

/// The time that a server of the file has for its first answer.
const WITHIN: Duration = Duration::from_secs(30);

/// Connects to a server of the file, and returns its tools.
async fn tools_of(server: &ConfiguredServer) -> Result<Vec<Tool>, Failure> {
    let stop = stop::listen()?;
    let name = sanitize::line(&server.settings.server, NAME);
    let unreached = |error: &dyn std::error::Error| {
        Failure::connection(format!("the tools of {name} cannot be listed"))
            .because(error)
            .hint("start it, or name it with `--url` and its token; other servers are listed with `--name NAME`.")
    };
    let options = ConnectOptions::default()
        .revision(server.settings.revision)
        .within(WITHIN);
    let open = tokio::select! {
        opened = ServerConnection::open(server, options) => opened.map_err(|error| unreached(&error))?,
        () = stop.cancelled() => return Err(failures::stopped()),
    };
    let info = open.connection().peer().peer_info();
    let has_tools = info.is_none_or(|info| info.capabilities.tools.is_some());
    let options = CallOptions::default()
        .silence(call_session::SILENCE)
        .stop(stop.clone());
    let listed = if has_tools {
        call_session::listing::tools(open.connection(), &options).await
    } else {
        Ok(Vec::new())
    };
    open.close().await;
    listed.map_err(|error| unreached(&error))
}

/// Connects, and returns the server's name, as it reports it, and its tools.
async fn tools(args: &ServerArgs) -> Result<(String, Vec<Tool>), Failure> {
    let stop = stop::listen()?;
    let target = args.target()?;
    let access = args.access()?;
    let options = ConnectOptions::default()
        .revision(args.protocol.revision())
        .token(access.token)
        .headers(access.headers)
        .environment(access.environment);
    // Nothing is declared, so the server asks nothing.
    let client = ElicitingClient::new(
        Handler::new(true),
        target.describe(),
        ClientSettings::default(),
    );
    let connection = tokio::select! {
        opened = Connection::open(&target, client, &options) => {
            opened.map_err(|error| failures::connecting(&error, &target))?
        }
        () = stop.cancelled() => return Err(failures::stopped()),
    };
    let info = connection.peer().peer_info();
    let reported = info
        .as_ref()
        .and_then(|info| info.server_info.as_ref())
        .map(|server| server.name.clone());
    let has_tools = info.is_none_or(|info| info.capabilities.tools.is_some());
    let options = CallOptions::default()
        .silence(call_session::SILENCE)
        .stop(stop.clone());
    let listed = if has_tools {
        call_session::listing::tools(&connection, &options).await
    } else {
        Ok(Vec::new())
    };
    let said = failures::ServerOutput::from_connection(&connection);
    connection.close().await;
    let listed = listed.map_err(|error| failures::calling(&error, &said, None))?;
    Ok((reported.unwrap_or_default(), listed))
}
