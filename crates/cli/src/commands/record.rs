//! `record`: the tables of a record in a database, the contents of any record in numbers, its way into a database and
//! back, and the deletion of ended questions.

use clap::{Args, Subcommand};
use mcp_elicit_gateway::{migrate_record, planned_record_migration};

use super::gateway::database_failed;
use super::record_move::MoveInto;
use super::{in_runtime, record_contents, record_move, record_restored};
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::output;

/// Show what a record contains, delete ended questions, and move a record into PostgreSQL or back
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    #[command(subcommand)]
    act: RecordCommand,

    #[command(flatten)]
    place: RecordLocation,
}

#[derive(Debug, Subcommand)]
enum RecordCommand {
    /// Create the tables in a database (`--record`), or bring them to the layout of this version, as the next start of a
    /// gateway would
    Migrate {
        /// Print the SQL instead of running it
        #[arg(long)]
        dry_run: bool,
    },
    /// Print how many questions, results, approvals, messages and events the record has, and its bytes
    Stats {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete questions that ended before a time, although `keep-ended` would keep them. The audit stays
    Purge {
        /// A day such as 2026-11-27, a time such as 2026-11-27T14:30 (UTC), or a span before now such as 24h or 7d
        #[arg(long, value_name = "TIME")]
        before: String,

        /// Print the number instead of deleting
        #[arg(long)]
        dry_run: bool,
    },
    /// Print all questions as lines of JSON, as the inbox's API gives them: without answers
    Export {
        /// Only those of this caller, as the audit shows it in `principal`
        #[arg(long, value_name = "CALLER")]
        principal: Option<String>,

        /// With the values that rules keep for auditors. The audit says that they were read
        #[arg(long)]
        kept: bool,
    },
    /// Move the record from the state folder into a database (`--record`), or back, while no gateway runs
    Move {
        /// The place to which it is moved
        #[arg(long, value_name = "PLACE")]
        into: MoveInto,
    },
    /// After a restore with other tools than `mcp-elicit restore`, such as `pg_restore` or a copy of the file: end what could
    /// take effect a second time. Answers that were not delivered lapse, votes, approvals and sessions end
    Restored {
        /// Revoke all tokens of programs, which may have been revoked after the copy was made
        #[arg(long)]
        revoke_tokens: bool,
    },
    /// Delete all questions of a caller that have ended. The audit stays
    Erase {
        /// The caller, as the audit shows it in `principal`
        #[arg(long, value_name = "CALLER")]
        principal: String,

        /// Print the number instead of deleting
        #[arg(long)]
        dry_run: bool,
    },
}

/// Runs the command.
pub(crate) fn run(args: RecordArgs) -> Result<Exit, Failure> {
    let RecordArgs { act, place } = args;
    in_runtime(async {
        match act {
            RecordCommand::Migrate { dry_run } => migrate(&place, dry_run).await,
            RecordCommand::Stats { json } => record_contents::stats(&place, json).await,
            RecordCommand::Purge { before, dry_run } => {
                record_contents::purge(&place, &before, dry_run).await
            }
            RecordCommand::Export { principal, kept } => {
                record_contents::export(&place, principal, kept).await
            }
            RecordCommand::Move { into } => record_move::run(&place, into).await,
            RecordCommand::Restored { revoke_tokens } => {
                record_restored::run(&place, revoke_tokens).await
            }
            RecordCommand::Erase { principal, dry_run } => {
                record_contents::erase(&place, &principal, dry_run).await
            }
        }
    })
}

async fn migrate(place: &RecordLocation, dry_run: bool) -> Result<Exit, Failure> {
    let database = place.named()?.database.ok_or_else(|| {
        Failure::usage("no database is named")
            .hint("write `--record postgres://USER@HOST:PORT/DATABASE`, or the gateway's `--config FILE`.")
    })?;
    if !dry_run {
        let migrated = migrate_record(&database).await;
        migrated.map_err(database_failed)?;
        output::say("the tables have the layout of this version");
        return Ok(Exit::Done);
    }
    let planned = planned_record_migration(&database).await;
    let planned = planned.map_err(database_failed)?;
    if planned.is_empty() {
        output::say("the tables have the layout of this version: nothing would be run");
    } else {
        output::print(&planned)?;
    }
    Ok(Exit::Done)
}
