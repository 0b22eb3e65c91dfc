//! `backup`: a copy of a gateway's state folder, and the check of one.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args;
use mcp_elicit_inbox::backup::{self, BackupError, CheckedBackup};
use mcp_elicit_record::audit::ChainCheck;
use mcp_elicit_record::clock;
use serde_json::json;

use super::state_record;
use super::{audit, in_runtime};
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::output;

/// The next step if a disk is full.
const FULL_DISK: &str = "make room on the disk of the folder that is written, then run the command again; nothing is left there.";

/// Copy the state folder of a gateway, with the record in it or in its database: keys, tokens and logins. Gateways may
/// run meanwhile
#[derive(Debug, Args)]
#[command(after_help = "\
The copy holds the keys that open it: keep it where only you can read it. The configuration and
the people file are not in the state folder; copy them too. A record in a database (`--record`)
is copied as it is at one moment. `mcp-elicit restore DIR` restores a copy, also into a database.")]
pub(crate) struct BackupArgs {
    /// The folder to be written, which must not exist or be empty; with --check, the folder of a backup
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Check a backup instead of making one: digests, record, audit chain, keys
    #[arg(long, conflicts_with_all = ["state", "config", "record"])]
    check: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    location: RecordLocation,
}

/// Runs the command to its end.
pub(crate) fn run(args: BackupArgs) -> Result<Exit, Failure> {
    in_runtime(back_up(args))
}

async fn back_up(args: BackupArgs) -> Result<Exit, Failure> {
    let done = if args.check {
        backup::check(&args.folder).await.map_err(failed)?
    } else {
        let folder = state_record::named_folder(&args.location)?.folder;
        let made = backup::back_up(&folder, &args.folder, clock::now()).await;
        made.map_err(failed)?
    };
    if args.json {
        output::print_json(&in_json(&done))?;
    } else {
        let what = if args.check { "checked" } else { "written" };
        output::print(format_args!(
            "{what}: {} ({})",
            args.folder.display(),
            in_words(&done)
        ))?;
    }
    warn_of_unreadable(&done);
    Ok(Exit::Done)
}

/// Warns of sealed values that no key opens: the backup has them as they are.
pub(super) fn warn_of_unreadable(checked: &CheckedBackup) {
    let unreadable = checked.record.map_or(0, |record| record.unreadable);
    if unreadable > 0 {
        output::say(format_args!(
            "{} {unreadable} sealed value(s) cannot be opened with seal.key: they were sealed with an earlier key",
            output::styled(output::WARNING, "warning:")
        ));
    }
}

fn in_json(checked: &CheckedBackup) -> serde_json::Value {
    let record = checked.record.map(|record| {
        let links = match record.chain {
            ChainCheck::Whole { links, .. } => Some(links),
            ChainCheck::BrokenAt { .. } | ChainCheck::Missing { .. } => None,
        };
        json!({"layout": record.layout, "questions": record.questions, "open": record.open, "events": links,
            "sealed": record.opened, "unreadable": record.unreadable})
    });
    json!({"at": checked.manifest.at, "version": checked.manifest.version, "bytes": checked.manifest.bytes(),
        "files": checked.manifest.files, "record": record})
}

/// Returns the contents of a backup in words.
pub(super) fn in_words(checked: &CheckedBackup) -> String {
    let manifest = &checked.manifest;
    let at = i64::try_from(manifest.at.as_millis()).ok();
    let at = at.and_then(audit::moment).unwrap_or_default();
    let files = format!(
        "{} files, {} bytes, made {at} by {}",
        manifest.files.len(),
        manifest.bytes(),
        output::harmless(&manifest.version)
    );
    let Some(record) = checked.record else {
        return format!("{files}; no record");
    };
    let chain = match record.chain {
        ChainCheck::Whole { links, .. } => format!("an intact audit of {links} events"),
        ChainCheck::BrokenAt { number } | ChainCheck::Missing { number } => {
            format!("an audit that is broken at event {number}")
        }
    };
    format!(
        "{files}; {} questions, {} of them open, and {chain}",
        record.questions, record.open
    )
}

/// Returns the failure of a backup or a restore, with the next step.
pub(super) fn failed(error: BackupError) -> Failure {
    let error = match error {
        BackupError::Store(fault) if fault.is_in_database() => {
            return state_record::unreadable(fault);
        }
        other => other,
    };
    let hint = match &error {
        BackupError::NoState(_) => Some("name the gateway's state folder with `--state DIR`."),
        BackupError::NotEmpty(_) => Some("name a folder that does not exist, or is empty."),
        BackupError::NoParent(_) => Some("make it first, or mount the disk that has it."),
        BackupError::InUse(_) => Some(
            "end the gateway first, and move its state folder away: a restore needs an empty folder.",
        ),
        BackupError::Running(_) => Some(
            "end every gateway and command that uses it; one that ended without saying so counts for 10 seconds. Nothing was changed.",
        ),
        BackupError::Inside(_) => {
            Some("name a folder outside the state folder, best on another disk.")
        }
        BackupError::NoBackup(_) => Some("name the folder that `mcp-elicit backup DIR` wrote."),
        BackupError::NoRecord(_) => {
            Some("leave out the database: a gateway makes its record there when it starts.")
        }
        BackupError::Newer { .. } => Some("use that version, or a newer one."),
        BackupError::DamagedRecord(_) => Some(
            "run `mcp-elicit audit --verify` on it; docs/operate.md (\"If the chain is broken\") says how to go on. Nothing was changed.",
        ),
        BackupError::Damaged(_) => Some("use another backup; nothing was restored or changed."),
        BackupError::Keys(error) => {
            let hint = error.remedy();
            return Failure::refused("the keys do not fit the record")
                .because(error)
                .hint(hint.unwrap_or_else(|| "use another backup.".to_owned()));
        }
        BackupError::File { source, .. } if source.kind() == ErrorKind::StorageFull => {
            Some(FULL_DISK)
        }
        BackupError::Store(fault) if fault.is_disk_full() => Some(FULL_DISK),
        BackupError::File { .. } | BackupError::Store(_) | BackupError::Record(_) => None,
    };
    let failure = match &error {
        BackupError::Damaged(_) | BackupError::DamagedRecord(_) | BackupError::Newer { .. } => {
            Failure::refused(error.to_string())
        }
        _ => Failure::usage(error.to_string()),
    };
    let failure = match std::error::Error::source(&error) {
        Some(source) => failure.because(source),
        None => failure,
    };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
