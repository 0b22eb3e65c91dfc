//! Checkpoints of the audit: the end of the chain at one moment, kept elsewhere, so that a chain that was cut or made anew
//! since is noticed, even by whoever has its key.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use mcp_elicit_record::audit::{AuditPurge, ChainVerifier};
use mcp_elicit_record::store::{AuditEntry, ChainKey, RecordStore};
use mcp_elicit_record::{IdentityKey, clock, state_file};

use super::audit_purge::PurgeArgs;
use super::checkpoint::{self, Checkpoint, SigningKey};
use super::state_record::{self, unreadable};
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::output;

/// The number of links that are read at once.
const AT_ONCE: usize = 1_000;
#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Print a checkpoint: the number and hash of the last event, signed, to be kept on another machine. Or check the
    /// signatures of a file of them
    Checkpoint(CheckpointArgs),
    /// Delete the oldest events, although `keep-audit` would keep them. An event says up to where, so that the rest of the
    /// chain stays provable
    Purge(PurgeArgs),
}

#[derive(Debug, Args)]
pub(super) struct CheckpointArgs {
    /// Write it into this file, which must not exist, instead of printing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Make none, and check the signatures of those in this file. That needs no record, only the public key
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    check: Option<PathBuf>,

    /// With --check: the public key with which they have to be signed, as the checkpoints themselves name it in `key`.
    /// Take it from the operator of the gateway, not from the file
    #[arg(long, value_name = "KEY", requires = "check")]
    key: Option<String>,
}

/// Prints or writes a checkpoint of the whole chain, if that is intact.
pub(super) async fn run(args: CheckpointArgs, location: &RecordLocation) -> Result<Exit, Failure> {
    if let Some(file) = &args.check {
        return check(file, args.key.as_deref());
    }
    let folder = state_record::folder(location).await?;
    let key = super::audit::identity_key(&folder).await?;
    let key = key.ok_or_else(|| super::audit::without_key(&folder))?;
    let store = state_record::to_read(&folder);
    let chain = ChainKey::from_identity(&key);
    let mut verifier = ChainVerifier::new(Some(&chain));
    let mut last: Option<AuditEntry> = None;
    loop {
        let links = next(&*store, last.as_ref()).await?;
        for link in &links {
            if let Err(broken) = verifier.add(link) {
                return Ok(super::audit::exit_of(broken));
            }
        }
        let is_end = links.len() < AT_ONCE;
        last = links.into_iter().next_back().or(last);
        if is_end {
            break;
        }
    }
    match super::audit::exit_of(verifier.finish()) {
        Exit::Done => {}
        broken => return Ok(broken),
    }
    let Some(last) = last else {
        return Err(Failure::refused("the audit has no events yet"));
    };
    let at = clock::now().as_millis();
    let checkpoint = Checkpoint::new(&SigningKey::of(&key)?, at, last.number, last.hash);
    let Some(out) = &args.out else {
        output::print_json(&serde_json::json!(checkpoint))?;
        return Ok(Exit::Done);
    };
    let line = serde_json::json!(checkpoint).to_string();
    write(out, &line).map_err(|error| {
        let next = match error.kind() {
            ErrorKind::AlreadyExists => {
                "name a file that does not exist, or add a line to it: `mcp-elicit audit checkpoint >> FILE`."
            }
            _ => "name a file in a folder that is there, and in which you may write.",
        };
        let failure = Failure::usage(format!("{} cannot be written", out.display()));
        failure.because(error).hint(next)
    })?;
    output::say(format_args!(
        "a checkpoint of {} events was written to {}: keep it on another machine, and compare with `mcp-elicit audit --verify --against FILE`",
        checkpoint.events,
        out.display()
    ));
    Ok(Exit::Done)
}

/// Checks the signatures of a file, and that all its checkpoints can be of one chain.
fn check(file: &Path, key: Option<&str>) -> Result<Exit, Failure> {
    let shown = file.display();
    if let Some(key) = key.filter(|key| !checkpoint::is_public_key(key)) {
        let why = format!("`{key}` is not a public key: it has 64 hexadecimal digits");
        return Err(Failure::usage(why)
            .hint("take it from the operator of the gateway: each checkpoint has it as `key`."));
    }
    let checkpoints = checkpoint::read(file)?;
    let mut signer: Option<String> = key.map(str::to_owned);
    for (number, checkpoint) in &checkpoints {
        let Some(found) = checkpoint.signer() else {
            let why =
                format!("the checkpoint in line {number} of {shown} is not signed, or was changed");
            return Err(Failure::refused(why).hint(
                "checkpoints of earlier versions are compared with `mcp-elicit audit --verify --against FILE`, beside the record.",
            ));
        };
        let expected = signer.get_or_insert_with(|| found.to_owned());
        if !expected.eq_ignore_ascii_case(found) {
            let why = format!(
                "the checkpoint in line {number} of {shown} is signed with another key, {found}"
            );
            return Err(Failure::refused(why)
                .hint("ask the operator of the gateway which key is the one of its record."));
        }
    }
    let mut highest = 0;
    for (number, checkpoint) in &checkpoints {
        if checkpoint.events < highest {
            output::say(format_args!(
                "the checkpoint in line {number} has fewer events than one before it: the audit was cut in between, or the lines are in another order than they were made in"
            ));
            return Ok(Exit::Refused);
        }
        highest = checkpoint.events;
    }
    for pair in checkpoints.windows(2) {
        let [(before, earlier), (number, later)] = pair else {
            continue;
        };
        if earlier.events == later.events && earlier.hash != later.hash {
            output::say(format_args!(
                "the checkpoints in lines {before} and {number} have another event {}: the audit was made anew in between",
                later.events
            ));
            return Ok(Exit::Refused);
        }
    }
    let of = |one: Option<&(usize, Checkpoint)>| {
        let (_, checkpoint) = one?;
        let at = i64::try_from(checkpoint.at)
            .ok()
            .and_then(super::audit::moment);
        Some((checkpoint.events, at.unwrap_or_default()))
    };
    let (from, since) = of(checkpoints.first()).unwrap_or_default();
    let (to, until) = of(checkpoints.last()).unwrap_or_default();
    let signer = signer.unwrap_or_default();
    output::say(format_args!(
        "{} checkpoint(s) are signed with {signer}: from event {from} ({since}) to event {to} ({until})",
        checkpoints.len()
    ));
    if key.is_none() {
        output::say(format_args!(
            "next: compare this key with the one that the operator of the gateway has given you, or name that with --key"
        ));
    }
    Ok(Exit::Done)
}

fn write(out: &Path, line: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut file = state_file::create_new(out)?;
    writeln!(file, "{line}")?;
    file.sync_all()
}

async fn next(
    store: &dyn RecordStore,
    last: Option<&AuditEntry>,
) -> Result<Vec<AuditEntry>, Failure> {
    let from = last.map_or(0, |last| last.number + 1);
    store.audit(from, AT_ONCE).await.map_err(unreadable)
}

/// The checkpoints of a file, against which a chain is compared while it is read.
#[derive(Debug, Default)]
pub(super) struct Against {
    /// In the order of their events.
    checkpoints: Vec<Checkpoint>,
    /// The number of those that were compared, or are of events that were deleted.
    compared: usize,
    /// The number of those of deleted events, which come first.
    of_deleted: usize,
    /// The first one that the chain does not have.
    other: Option<u64>,
}

impl Against {
    /// Reads the checkpoints of a file, one on each line.
    ///
    /// # Errors
    /// If it cannot be read, has none, or one that was not made with the key of this record.
    pub(super) fn read(path: &Path, key: &IdentityKey) -> Result<Self, Failure> {
        let mut checkpoints = checkpoint::read_own(path, key)?;
        checkpoints.sort_by_key(|checkpoint| checkpoint.events);
        Ok(Self {
            checkpoints,
            ..Self::default()
        })
    }

    /// Compares the next link of the chain.
    pub(super) fn add(&mut self, link: &AuditEntry) {
        while let Some(checkpoint) = self.checkpoints.get(self.compared) {
            if checkpoint.events > link.number {
                return;
            }
            if checkpoint.events < link.number {
                self.of_deleted = self.compared + 1;
            } else if checkpoint.hash != link.hash {
                self.other.get_or_insert(checkpoint.events);
            }
            self.compared += 1;
        }
    }

    /// Returns the exit code after the last link of an intact chain, and reports what does not fit.
    pub(super) fn finish(&self, last: u64, purge: Option<&AuditPurge>) -> Exit {
        let (deleted, rest) = self.checkpoints.split_at(self.of_deleted);
        // The last of the deleted events has left its hash.
        let base = purge.and_then(|purge| {
            let at_base = |checkpoint: &&Checkpoint| checkpoint.events == purge.number;
            Some((deleted.iter().find(at_base)?, purge))
        });
        let other = base.filter(|(checkpoint, purge)| checkpoint.hash != purge.hash);
        let other = other.map(|(checkpoint, _)| checkpoint.events);
        if let Some(events) = self.other.or(other) {
            output::say(format_args!(
                "event {events} is not the one of the checkpoint: the audit was made anew up to there, or is another one"
            ));
            return Exit::Refused;
        }
        if let Some(ahead) = self.checkpoints.get(self.compared) {
            output::say(format_args!(
                "the audit was cut: it has {last} events, and the checkpoint {}",
                ahead.events
            ));
            return Exit::Refused;
        }
        let fitting = rest.len() + usize::from(base.is_some());
        if fitting < self.checkpoints.len() {
            let mut newest = deleted
                .iter()
                .filter(|one| base.is_none_or(|(base, _)| *one != base));
            output::say(format_args!(
                "the checkpoint of event {} is older than the events that are left, and proves nothing: earlier events were deleted{}",
                newest.next_back().map_or(0, |one| one.events),
                purge.map_or_else(String::new, super::audit::purge_in_words)
            ));
        }
        if fitting == 0 {
            return Exit::Usage;
        }
        let newest = self.checkpoints.last().map_or(0, |one| one.events);
        output::say(format_args!(
            "{fitting} checkpoint(s) fit: nothing up to event {newest} was changed or removed{}",
            purge.map_or("", |_| ", other than deleted as the audit says")
        ));
        Exit::Done
    }
}
