//! `audit purge`: the oldest events of the audit are deleted, and the rest stays provable.

use clap::Args;
use mcp_elicit_inbox::audit_selection;
use mcp_elicit_inbox::direct_record::{self, ON_COMMAND_LINE};
use mcp_elicit_record::audit::{self, ChainCheck, PurgedAudit};
use mcp_elicit_record::clock;
use mcp_elicit_record::store::ChainKey;

use super::state_record::{self, unopened, unreadable, unusable};
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::output;

#[derive(Debug, Args)]
pub(super) struct PurgeArgs {
    /// A day such as 2026-11-27, a time such as 2026-11-27T14:30 (UTC), or a span before now such as 24h or 2555d
    #[arg(long, value_name = "TIME")]
    before: String,

    /// Print the number instead of deleting
    #[arg(long)]
    dry_run: bool,
}

/// Deletes the oldest events, or says how many there are.
pub(super) async fn run(args: PurgeArgs, location: &RecordLocation) -> Result<Exit, Failure> {
    let before = audit_selection::earliest(&args.before, clock::now())
        .map_err(|error| Failure::usage(error.to_string()))?;
    let folder = state_record::folder(location).await?;
    let key = super::audit::identity_key(&folder).await?;
    let key = key.ok_or_else(|| super::audit::without_key(&folder))?;
    let key = ChainKey::from_identity(&key);
    // The whole chain is verified: a part of a broken one is evidence too.
    let store = state_record::to_read(&folder);
    let would = audit::purgeable(&*store, &key, before).await;
    let count = match would.map_err(unreadable)? {
        PurgedAudit::Deleted { count, .. } => count,
        PurgedAudit::Broken(check) => return Err(broken(check)),
    };
    if args.dry_run {
        return Ok(say(count, "would be deleted"));
    }
    let record = direct_record::record(&folder).await.map_err(unopened)?;
    let mut deleted = 0_u64;
    loop {
        let purged = record.purge_audit(before, ON_COMMAND_LINE).await;
        match purged.map_err(unusable)? {
            PurgedAudit::Deleted { count, more } => {
                deleted += count;
                if !more {
                    break;
                }
            }
            PurgedAudit::Broken(check) => {
                if deleted > 0 {
                    say(deleted, "were deleted");
                }
                return Err(broken(check));
            }
        }
    }
    let done = say(deleted, "were deleted");
    if deleted > 0 {
        output::say(
            "checkpoints of deleted events prove nothing any more: make one with `mcp-elicit audit checkpoint`",
        );
    }
    Ok(done)
}

fn say(count: u64, did: &str) -> Exit {
    output::say(match count {
        0 => "no event is meant: nothing was deleted".to_owned(),
        1 => format!("1 event {}", did.replace("were", "was")),
        count => format!("{count} events {did}"),
    });
    Exit::Done
}

fn broken(check: ChainCheck) -> Failure {
    let (number, how) = match check {
        ChainCheck::BrokenAt { number } => (number, "was changed"),
        ChainCheck::Missing { number } => (number, "is missing"),
        ChainCheck::Whole { since, .. } => (since, "is the first"),
    };
    Failure::refused(format!(
        "the chain is broken at event {number}, which {how}, and no event of it is deleted"
    ))
    .hint("run `mcp-elicit audit --verify`, and keep a copy of the record (docs/operate.md, \"If the chain is broken\").")
}
