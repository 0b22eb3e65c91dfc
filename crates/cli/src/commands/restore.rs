//! `restore`: a state folder from a backup.

use std::path::PathBuf;

use clap::Args;
use mcp_elicit_inbox::backup::{self, BackupError, EndedByRestore, Restore};
use mcp_elicit_record::clock;

use super::backup::{failed, in_words, warn_of_unreadable};
use super::{in_runtime, state_record};
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::output;

/// Restore the state folder of a gateway from a backup, and its record into a database if one is named. Answers that
/// were not delivered, votes and approvals end: people are asked again
#[derive(Debug, Args)]
#[command(after_help = "\
The state folder must not exist or be empty, and the database must have no record. Open questions
without votes stay open, and the keys of agents work. People log in again. End the gateways whose
backup it is before you start one on the restored record.")]
pub(crate) struct RestoreArgs {
    /// The folder of the backup
    #[arg(value_name = "DIR")]
    backup: PathBuf,

    /// Revoke all tokens of programs, which may have been revoked after the backup was made
    #[arg(long)]
    revoke_tokens: bool,

    /// Its state folder is written, and must not exist or be empty. So is its database, if one is named, which must have
    /// no record
    #[command(flatten)]
    location: RecordLocation,
}

/// Runs the command to its end.
pub(crate) fn run(args: RestoreArgs) -> Result<Exit, Failure> {
    in_runtime(restore(args))
}

async fn restore(args: RestoreArgs) -> Result<Exit, Failure> {
    let named = state_record::unchecked_folder(&args.location)?;
    let (folder, options) = (named.folder, named.options);
    let settings = Restore {
        revokes_tokens: args.revoke_tokens,
    };
    let done = state_record::once_unused(
        async || backup::restore(&args.backup, &folder, settings, clock::now).await,
        |error| matches!(error, BackupError::InUse(_)),
    );
    let done = done.await.map_err(failed)?;
    output::print(format_args!(
        "restored: {} ({})",
        folder.path().display(),
        in_words(&done.backup)
    ))?;
    warn_of_unreadable(&done.backup);
    for line in in_lines(done.ended) {
        output::say(line);
    }
    if let Some(database) = folder.database() {
        output::say(format_args!(
            "the record is in {}: start its gateways with `--record {}`; the state folder of each other gateway needs {} too, before it starts",
            database.address(),
            database.address(),
            folder.seal().display()
        ));
    }
    if done.ended.tokens > 0 {
        output::say(format_args!(
            "{} token(s) of programs work again, even if they were revoked after the backup: see `mcp-elicit tokens list{options}`",
            done.ended.tokens
        ));
    }
    Ok(Exit::Done)
}

/// Returns a line for each kind of contents that was ended.
pub(super) fn in_lines(ended: EndedByRestore) -> Vec<String> {
    let counts = [
        (
            ended.contents.answers,
            "answer(s) that were not delivered: the same call made again asks again",
        ),
        (
            ended.contents.votes,
            "question(s) with votes: the same call made again asks again",
        ),
        (
            ended.contents.results,
            "result(s) of calls that no client had fetched",
        ),
        (
            ended.contents.grants,
            "approval(s) that were good for a while",
        ),
        (
            ended.sessions as u64,
            "session(s) of people, who log in again",
        ),
        (ended.revoked as u64, "token(s) of programs"),
    ];
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("ended: {count} {what}"))
        .collect()
}
