//! `setup --undo`.

use std::fs;

use mcp_elicit_setup::SetupState;
use mcp_elicit_setup::journal::JournalEntry;
use mcp_elicit_setup::undo::{UndoPlan, plan, write};

use super::{FoundFile, Selection, SetupArgs, Tally};
use crate::failure::{Exit, Failure};
use crate::output::{GOOD, WARNING, harmless, print, styled};

/// Takes the gateway from the meant servers.
pub(super) fn run(
    args: &SetupArgs,
    selection: &Selection,
    found: &[FoundFile],
) -> Result<Exit, Failure> {
    let journal = super::open_journal(args)?;
    let entries = journal.entries().map_err(|error| {
        Failure::usage("the journal of changes cannot be read")
            .because(error)
            .hint("move that file away; its servers are then unwrapped by their own arguments.")
    })?;
    let only = (!selection.servers.is_empty() && !args.all).then_some(selection.servers.as_slice());
    let mut tally = Tally::default();
    for file in found {
        let mine: Vec<JournalEntry> = entries
            .iter()
            .filter(|entry| entry.path == file.real)
            .cloned()
            .collect();
        let is_wrapped = |document: &mcp_elicit_setup::Document| {
            document
                .servers()
                .iter()
                .any(|one| matches!(one.state(), SetupState::Wrapped { .. }))
        };
        if mine.is_empty() && !file.document.as_ref().is_ok_and(is_wrapped) {
            continue;
        }
        let planned = fs::read(&file.real).map_err(|error| error.to_string());
        let planned = planned.and_then(|bytes| {
            plan(file.client, bytes, &mine, only).map_err(|error| error.to_string())
        });
        let planned = match planned {
            Ok(planned) => planned,
            Err(why) => {
                tally.is_bad = true;
                print(super::heading(file))?;
                print(format_args!(
                    "  {} {}; left alone",
                    styled(WARNING, "unreadable:"),
                    harmless(&why)
                ))?;
                continue;
            }
        };
        if planned.after == planned.before && planned.left_alone.is_empty() {
            if !args.dry_run {
                write(&journal, &file.real, &planned).map_err(|error| {
                    Failure::usage("the journal cannot be written").because(error)
                })?;
            }
            continue;
        }
        print(super::heading(file))?;
        print(format_args!("  {}", words(&planned)))?;
        super::left_alone(&planned.left_alone)?;
        tally.is_bad |= !planned.left_alone.is_empty();
        if planned.after == planned.before || !super::agreed(args, &mut tally)? {
            continue;
        }
        match write(&journal, &file.real, &planned) {
            Ok(()) => {
                print(format_args!("  {}", styled(GOOD, "undone")))?;
                tally.changed.push(file.client.id());
            }
            Err(error) => {
                tally.is_bad = true;
                super::not_written(&error)?;
            }
        }
    }
    tally.changed.dedup();
    super::finish(args, &tally, false)
}

fn words(plan: &UndoPlan) -> String {
    let servers = harmless(&plan.servers.join(", ")).into_owned();
    if plan.is_exact {
        return format!("as before the change, byte for byte: {servers}");
    }
    format!("the gateway goes, everything else stays as it is now: {servers}")
}
