//! `grants`: approvals that apply for a while to the same call made again.

use clap::{Args, Subcommand};
use mcp_elicit_inbox::direct_record::{self, ON_COMMAND_LINE};
use mcp_elicit_record::Record;
use mcp_elicit_record::grants::ApprovalGrant;
use serde_json::{Value, json};

use super::audit::moment;
use super::state_record::{unopened, unusable};
use super::{in_runtime, state_record};
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::output::{self, harmless};

/// List approvals that apply for a while (`good-for`), or end one before its time
#[derive(Debug, Args)]
pub(crate) struct GrantsArgs {
    #[command(subcommand)]
    act: GrantsCommand,

    #[command(flatten)]
    location: RecordLocation,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum GrantsCommand {
    /// List the approvals that apply now, with their calls, and the time until which each does
    List,
    /// End an approval: the same call made again is asked about. Running gateways follow within two seconds
    End {
        /// The id of the approval or of its question, or the beginning of either, as `grants list` shows them
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// End all of them
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
}

/// Runs the command to its end.
pub(crate) fn run(args: GrantsArgs) -> Result<Exit, Failure> {
    in_runtime(act(args))
}

async fn act(args: GrantsArgs) -> Result<Exit, Failure> {
    let folder = state_record::folder(&args.location).await?;
    let record = direct_record::record(&folder).await.map_err(unopened)?;
    let mut grants = record.grants().await.map_err(unusable)?;
    grants.sort_by_key(|grant| grant.until);
    match args.act {
        GrantsCommand::List => {
            for grant in &grants {
                let shown = described(&record, grant).await;
                if args.json {
                    output::print_json(&shown)?;
                } else {
                    output::print(line(&shown))?;
                }
            }
            if grants.is_empty() && !args.json {
                output::say("no approval applies to a later call now");
            }
            Ok(Exit::Done)
        }
        GrantsCommand::End { id, all } => {
            if !all {
                let id = id.unwrap_or_default();
                grants.retain(|grant| is_named(grant, &id));
                if grants.len() != 1 {
                    return Err(not_one(&id, grants.len()));
                }
            }
            let ended = record.end_grants(&grants, ON_COMMAND_LINE).await;
            ended.map_err(unusable)?;
            for grant in &grants {
                output::say(format_args!(
                    "{}  ended: the call is asked about again",
                    harmless(short(&grant.key))
                ));
            }
            Ok(Exit::Done)
        }
    }
}

fn not_one(id: &str, found: usize) -> Failure {
    let shown = harmless(id);
    let failure = match found {
        0 => Failure::usage(format!(
            "no approval that applies now begins with `{shown}`"
        )),
        _ => Failure::usage(format!("several approvals begin with `{shown}`")),
    };
    failure.hint("`mcp-elicit grants list` shows them; write more of the id.")
}

/// Returns `true` if the text begins the id of an approval or of its question.
fn is_named(grant: &ApprovalGrant, id: &str) -> bool {
    let question = grant.question.as_deref().unwrap_or_default();
    !id.is_empty() && (grant.key.starts_with(id) || question.starts_with(id))
}

/// Returns an approval with its call, as far as the record has its question.
async fn described(record: &Record, grant: &ApprovalGrant) -> Value {
    let row = match &grant.question {
        Some(question) => record.find(question).await.ok().flatten(),
        None => None,
    };
    let body = row.as_ref().map(|row| &*row.body);
    let by = row.as_ref().and_then(|row| row.lifecycle.ended_by());
    json!({
        "id": grant.key,
        "rule": grant.rule,
        "question": grant.question,
        "server": body.map(|body| body.server.as_str()),
        "target": body.and_then(|body| body.target.as_deref()),
        "principal": body.map(|body| body.principal.as_str()),
        "approvedAt": grant.at,
        "until": grant.until,
        "by": by,
    })
}

fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// Formats one approval as one line.
fn line(grant: &Value) -> String {
    let text = |name: &str| grant[name].as_str().unwrap_or("-");
    let until = grant["until"].as_i64().and_then(moment).unwrap_or_default();
    let id = short(text("id"));
    let (server, target) = (text("server"), text("target"));
    let (rule, by, caller) = (text("rule"), text("by"), text("principal"));
    let question = short(text("question"));
    harmless(&format!(
        "{id}  until {until}  {server} / {target}  called by {caller}  rule {rule}  approved by {by}  question {question}"
    ))
    .into_owned()
}
