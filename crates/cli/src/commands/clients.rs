//! `clients`: the profiles of clients, and why they match.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use mcp_elicit_clients::{ObservedClient, Profile, ProfileEntry, Profiles};
use mcp_elicit_core::wire::Capability;
use serde_json::{Value, json};

use crate::args::profiles::ProfileArgs;
use crate::failure::{Exit, Failure};
use crate::output::{self, GOOD, HINT, harmless, print, styled};

/// Show what MCP clients are known to do with a question
///
/// Each entry has the clients that it matches, what they show, and the evidence. With NAME, show the profile of the client
/// that calls itself so, and why each entry matches or not.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ClientsArgs {
    /// The name in the client's clientInfo, or the short name of an entry
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// The version in its clientInfo
    #[arg(long, value_name = "VERSION", requires = "name")]
    client_version: Option<String>,

    /// A variable of the environment in which it starts the gateway; repeat for more
    #[arg(long, value_name = "NAME=VALUE", requires = "name")]
    env: Vec<String>,

    /// The `_meta` of its call, as JSON
    #[arg(long, value_name = "JSON", requires = "name")]
    meta: Option<String>,

    /// The client's declarations
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',', requires = "name", default_values = ["form", "url"])]
    declares: Vec<DeclaredArg>,

    #[command(flatten)]
    profiles: ProfileArgs,

    /// Read the entries `[[clients]]` of this configuration of a gateway too
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A declaration of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DeclaredArg {
    /// Forms
    Form,
    /// Links
    Url,
    /// Views of MCP Apps
    Apps,
    /// Nothing
    Nothing,
}

const EXAMPLES: &str = "\
Examples:
  mcp-elicit clients
  mcp-elicit clients claude-code --env CLAUDE_CODE_ENTRYPOINT=sdk-cli
  mcp-elicit clients codex-mcp-client --json | jq .profile";

/// Runs the command.
pub(crate) fn run(args: &ClientsArgs) -> Result<Exit, Failure> {
    let text = match &args.config {
        None => None,
        Some(path) => Some(fs::read_to_string(path).map_err(|error| {
            Failure::usage(format!("cannot read {}", path.display())).because(error)
        })?),
    };
    let profiles = args
        .profiles
        .read(args.config.as_deref().zip(text.as_deref()))?;
    match &args.name {
        None => list(args, &profiles)?,
        Some(name) => show(args, &profiles, name)?,
    }
    Ok(Exit::Done)
}

fn list(args: &ClientsArgs, profiles: &Profiles) -> Result<(), Failure> {
    if args.json {
        let all: Vec<Value> = profiles.entries().iter().map(entry_json).collect();
        return output::print_json(&json!({"clients": all}));
    }
    for entry in profiles.entries() {
        print(entry_text(entry))?;
    }
    Ok(())
}

fn show(args: &ClientsArgs, profiles: &Profiles, name: &str) -> Result<(), Failure> {
    let env = read_env(&args.env)?;
    let variable = |name: &str| {
        let found = env.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let meta = args.meta.as_deref();
    if meta.is_some_and(|meta| serde_json::from_str::<Value>(meta).is_err()) {
        return Err(Failure::usage("`--meta` is not JSON")
            .hint("write it like --meta '{\"progressToken\": 1}'."));
    }
    let plays = profiles.played(name).map(|(plays, ..)| plays);
    let (own_name, own_version) = match &plays {
        Some(plays) => (plays.name.as_str(), plays.version.as_str()),
        None => (name, ""),
    };
    let has = |one| args.declares.contains(&one);
    let seen = ObservedClient {
        name: own_name,
        version: args.client_version.as_deref().unwrap_or(own_version),
        declares: Capability {
            form: has(DeclaredArg::Form),
            url: has(DeclaredArg::Url),
        },
        declares_apps: has(DeclaredArg::Apps),
        env: Some(&variable),
        call_meta: meta,
    };
    let found = profiles.recognize(&seen);
    let about = |entry: &&ProfileEntry| {
        entry.is_called(name) || entry.is_called(own_name) || found.entries.contains(entry)
    };
    let entries: Vec<&ProfileEntry> = profiles.entries().iter().filter(about).collect();
    if args.json {
        let entries: Vec<Value> = entries
            .iter()
            .map(|entry| {
                let mut shown = entry_json(entry);
                shown["matches"] = json!(found.entries.contains(entry));
                shown["conditions"] = json!(entry.conditions(&seen));
                shown
            })
            .collect();
        return output::print_json(&json!({
            "name": seen.name,
            "version": seen.version,
            "profile": keys_json(&found.profile),
            "entries": entries,
        }));
    }
    print(profile_text(seen.name, &found.profile))?;
    for entry in entries {
        print(why_text(entry, &seen))?;
    }
    Ok(())
}

fn read_env(given: &[String]) -> Result<Vec<(&str, &str)>, Failure> {
    let pair = |text: &String| -> Option<()> { text.split_once('=').map(|_| ()) };
    if let Some(wrong) = given.iter().find(|text| pair(text).is_none()) {
        return Err(Failure::usage(format!("`--env {wrong}` has no `=`"))
            .hint("write it like --env CLAUDE_CODE_ENTRYPOINT=sdk-cli."));
    }
    Ok(given
        .iter()
        .filter_map(|text| text.split_once('='))
        .collect())
}

fn keys_json(profile: &Profile) -> Value {
    let keys = profile.in_words().into_iter();
    keys.map(|(key, value)| (key.to_owned(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn entry_json(entry: &ProfileEntry) -> Value {
    let keys = entry.in_words().into_iter();
    let keys: serde_json::Map<_, _> = keys
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    json!({
        "id": entry.id(),
        "match": entry.match_json(),
        "keys": keys,
        "evidence": entry.evidence(),
        "source": entry.source().to_string(),
        "line": entry.line(),
    })
}

/// Returns an entry as text for people.
fn entry_text(entry: &ProfileEntry) -> String {
    let mut text = format!("{}  ({})\n", title(entry), entry.source());
    for (key, value) in entry.in_words() {
        let _written = writeln!(text, "  {key}: {}", harmless(&value));
    }
    text + &evidence_text(entry)
}

fn title(entry: &ProfileEntry) -> String {
    let conditions = entry.conditions(&ObservedClient {
        name: "",
        version: "",
        declares: Capability::NONE,
        declares_apps: false,
        env: None,
        call_meta: None,
    });
    let says: Vec<String> = conditions.into_iter().map(|one| one.says).collect();
    let id = entry.id().unwrap_or("-");
    let says = says.join(", ");
    format!("{}: {}", harmless(id), harmless(&says))
}

fn evidence_text(entry: &ProfileEntry) -> String {
    let mut text = String::new();
    for evidence in entry.evidence() {
        let how = match evidence.how {
            mcp_elicit_clients::How::Seen => "seen",
            mcp_elicit_clients::How::Read => "read",
        };
        let version = evidence
            .version
            .as_deref()
            .map(|version| format!(" {version}"));
        let place = evidence.place.as_deref().map(|place| format!(" ({place})"));
        let line = format!(
            "  {how} {}{}: {}{}",
            evidence.on,
            version.unwrap_or_default(),
            evidence.what,
            place.unwrap_or_default()
        );
        let _written = writeln!(text, "{}", harmless(&line));
    }
    text
}

/// Returns the resulting profile as text for people.
fn profile_text(name: &str, profile: &Profile) -> String {
    let keys = profile.in_words();
    let mut text = format!("{}\n", harmless(name));
    if keys.is_empty() {
        text += "  its declarations count: nothing else is known\n";
    }
    for (key, value) in keys {
        let _written = writeln!(text, "  {key}: {}", harmless(&value));
    }
    text
}

/// Returns why an entry matches or not, as text for people.
fn why_text(entry: &ProfileEntry, seen: &ObservedClient<'_>) -> String {
    let conditions = entry.conditions(seen);
    let verdict = if conditions.iter().all(|one| one.holds) {
        styled(GOOD, "matches")
    } else {
        styled(HINT, "does not match")
    };
    let id = entry.id().unwrap_or("-");
    let mut text = format!(
        "{verdict} {}  ({}, line {})\n",
        harmless(id),
        entry.source(),
        entry.line()
    );
    for one in conditions {
        let sign = if one.holds { "yes" } else { "no " };
        let _written = writeln!(text, "  {sign} {}", harmless(&one.says));
    }
    text + &evidence_text(entry)
}
