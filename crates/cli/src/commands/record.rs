//! `record`: the tables of a record in a database.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use mcp_elicit_gateway::{migrate_record, planned_record_migration};

use super::gateway::record_failed;
use super::in_runtime;
use crate::args::gateway::record_database;
use crate::failure::{Exit, Failure};
use crate::output;

/// Prepare the tables of a record on PostgreSQL, as the next start of a gateway would
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    #[command(subcommand)]
    act: RecordCommand,
}

#[derive(Debug, Subcommand)]
enum RecordCommand {
    /// Create the tables, or bring them to the layout of this version
    Migrate {
        /// The database: `postgres://USER@HOST:PORT/DATABASE`
        #[arg(long, value_name = "ADDRESS")]
        record: String,

        /// The file with the password of the database. Without it, PGPASSWORD or PGPASSFILE may have it
        #[arg(long, value_name = "FILE")]
        record_password_file: Option<PathBuf>,

        /// Print the SQL instead of running it
        #[arg(long)]
        dry_run: bool,
    },
}

/// Runs the command.
pub(crate) fn run(args: RecordArgs) -> Result<Exit, Failure> {
    let RecordCommand::Migrate {
        record,
        record_password_file,
        dry_run,
    } = args.act;
    let database = record_database(&record, record_password_file.as_deref())?;
    in_runtime(async {
        if !dry_run {
            let migrated = migrate_record(&database).await;
            migrated.map_err(record_failed)?;
            output::say("the tables have the layout of this version");
            return Ok(Exit::Done);
        }
        let planned = planned_record_migration(&database).await;
        let planned = planned.map_err(record_failed)?;
        if planned.is_empty() {
            output::say("the tables have the layout of this version: nothing would be run");
        } else {
            output::print(&planned)?;
        }
        Ok(Exit::Done)
    })
}
