//! `keys`: the keys of the record.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use mcp_elicit_inbox::direct_record::{self, ON_COMMAND_LINE};
use mcp_elicit_inbox::seen_audit::SeenAudit;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::audit::{Details, Event};
use mcp_elicit_record::encryption::{Encryption, KeyId, KeyUse, ListedKey, SealedWith};
use mcp_elicit_record::state_file;
use mcp_elicit_record::store::{DatabaseRecord, Sqlite};
use mcp_elicit_record::{LockFile, Resealed, SetAside};

use super::state_record::unreadable;
use super::{in_runtime, inbox, state_record};
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::output;

/// The most bytes that are read of a file with a master key.
const MASTER_KEY_SIZE: u64 = 1 << 20;

/// The change of `keys rotate`, in the audit.
const NEW_KEY: &str = "a new key seals values";

/// The number of values after which their number is reported.
const REPORTED_EACH: u64 = 5_000;

/// Change the keys of a gateway's record
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    act: KeysCommand,

    #[command(flatten)]
    location: RecordLocation,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Encrypt values with a new key from now on. Running gateways use it from their next value on. Earlier keys are kept
    /// while values need them
    Rotate,
    /// List the keys that seal values, the newest first, by their ids, and whether values of the record need them
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Encrypt the values of the record anew that earlier keys encrypted, so that `keys retire` can delete those keys.
    /// Gateways may run meanwhile. If it was interrupted, run it again: it goes on
    Reseal {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete the keys that no value of the record needs. Stop all gateways of the record first: they may have values
    /// that are not in it yet
    Retire,
    /// Change the master key in `seal.key`, which wraps the keys of a record in a database. Run it for the state folder of
    /// each gateway, then once with `--finish`. Gateways may run meanwhile
    Rewrap {
        /// A file with the new master key: 32 random bytes; `-` reads them from standard input
        #[arg(long, value_name = "FILE")]
        new: PathBuf,
        /// Only the new master key opens the record from now on
        #[arg(long)]
        finish: bool,
    },
    /// Rename the record and begin a new one, if a key is lost: pending questions, stored answers and results are lost.
    /// Stop all gateways of the state folder first
    StartOver,
}

/// Runs the command to its end.
pub(crate) fn run(args: KeysArgs) -> Result<Exit, Failure> {
    in_runtime(change(args))
}

async fn change(args: KeysArgs) -> Result<Exit, Failure> {
    let folder = state_record::named_folder(&args.location)?.folder;
    match (args.act, folder.database()) {
        (KeysCommand::Rotate, _) => rotate(&folder).await,
        (KeysCommand::List { json }, _) => list(&folder, json).await,
        (KeysCommand::Reseal { json }, _) => reseal(&folder, json).await,
        (KeysCommand::Retire, _) => retire(&folder).await,
        (KeysCommand::Rewrap { new, finish }, Some(database)) => {
            rewrap(&folder, &**database, &new, finish).await
        }
        (KeysCommand::Rewrap { .. }, None) => Err(Failure::usage(
            "the keys of a record in a state folder are in its seal.key, which nothing wraps",
        )
        .hint("`mcp-elicit keys rotate` makes a new key for values.")),
        (KeysCommand::StartOver, Some(database)) => Err(Failure::usage(
            "`keys start-over` is for a record in the state folder",
        )
        .hint(format!(
            "name another database; or end all gateways, and run `DROP SCHEMA mcp_elicit CASCADE` in {}, and delete audit.seen in the state folder of each: the next start makes a new record there.",
            database.address()
        ))),
        (KeysCommand::StartOver, None) => start_over(&folder).await,
    }
}

async fn rewrap(
    folder: &StateFolder,
    database: &dyn DatabaseRecord,
    new: &Path,
    finish: bool,
) -> Result<Exit, Failure> {
    check_has_keys(folder)?;
    state_record::check_exists(folder).await?;
    let shown = new.display();
    let unusable = || Failure::usage(format!("{shown} has no master key"));
    let hint = "make one with `openssl rand -out FILE 32`.";
    let bytes = if new == Path::new("-") {
        let mut bytes = Vec::new();
        let mut input = std::io::stdin().lock().take(MASTER_KEY_SIZE);
        input.read_to_end(&mut bytes).map(|_| bytes)
    } else {
        state_file::read_at_most(new, MASTER_KEY_SIZE)
    };
    let bytes = bytes.map_err(|error| unusable().because(error).hint(hint))?;
    let master = <[u8; 32]>::try_from(bytes).ok();
    // Zeros are what a disk has where nothing was written.
    let Some(master) = master.filter(|key| key.iter().any(|byte| *byte != 0)) else {
        return Err(unusable().hint(hint));
    };
    if !finish {
        let rewrapped = database.rewrap_keys(folder.key_files(), master).await;
        if rewrapped.map_err(unreadable)? {
            let id = KeyId::of(&master);
            note_change(
                folder,
                &format!("the new master key {id} wraps the keys too"),
            )
            .await;
        }
        output::say(format_args!(
            "the keys of the record are wrapped by both master keys now, and {} has both; run this for the state folder of each other gateway, and \
             then once with `--finish`",
            folder.seal().display()
        ));
        return Ok(Exit::Done);
    }
    let finished = database.finish_rewrap(folder.key_files(), master).await;
    if !finished.map_err(unreadable)? {
        output::say("the keys were wrapped by this master key alone already: nothing was changed");
        return Ok(Exit::Done);
    }
    let id = KeyId::of(&master);
    note_change(folder, &format!("the master key {id} alone wraps the keys")).await;
    output::say(format_args!(
        "only the new master key opens the record now. The state folder of a gateway that does not run now may lack it, and is refused at its next start then: \
         copy {} there. Delete the file of the new master key once every gateway has started again",
        folder.seal().display()
    ));
    Ok(Exit::Done)
}

async fn start_over(folder: &StateFolder) -> Result<Exit, Failure> {
    state_record::check_exists(folder).await?;
    let path = folder.path().display();
    let unusable =
        |error| Failure::usage(format!("the state folder {path} cannot be used")).because(error);
    let lease = LockFile::acquire(&folder.leases()).map_err(unusable)?;
    state_record::wait_until_unused(async || Ok(lease.has_others())).await?;
    if lease.has_others() {
        return Err(
            Failure::usage(format!("a gateway runs on the state folder {path}"))
                .hint("end it first."),
        );
    }
    SeenAudit::forget(folder).map_err(unusable)?;
    let aside = folder.key_files().set_record_aside().await;
    let aside = aside.map_err(unusable)?.unwrap_or_else(|| SetAside {
        path: folder.record(),
        keeps_tables: true,
    });
    output::say(format_args!(
        "the record was renamed to {}; the next start makes a new one, and new keys in place of lost ones",
        aside.path.display()
    ));
    output::say(
        "lost: pending questions, stored answers and results; when a program repeats its call, people are asked again",
    );
    if !aside.keeps_tables {
        output::say(
            "also lost, because the record cannot be read: the tokens of programs, which callers are blocked, and who logged in; make the tokens again \
             with `mcp-elicit tokens make`, and block the callers with `mcp-elicit tokens block`",
        );
    }
    Ok(Exit::Done)
}

/// Audits a change of the keys, in these words.
async fn note_change(folder: &StateFolder, change: &str) {
    let details = Details {
        reason: Some(change),
        ..Details::by(ON_COMMAND_LINE)
    };
    inbox::note_all(folder, &[(Event::Rotated, details)]).await;
}

fn check_has_keys(folder: &StateFolder) -> Result<(), Failure> {
    if folder.seal().exists() {
        return Ok(());
    }
    let path = folder.path().display();
    Err(Failure::usage(format!("there is no key in {path}"))
        .hint("name the gateway's state folder with `--state DIR`."))
}

fn unchanged(error: std::io::Error) -> Failure {
    Failure::usage("the key cannot be changed").because(error)
}

async fn list(folder: &StateFolder, json: bool) -> Result<Exit, Failure> {
    check_has_keys(folder)?;
    let needed = needed_keys(folder).await?;
    let masters = match folder.database() {
        Some(database) => database.share_keys(folder.key_files()).await,
        None => Ok(Vec::new()),
    };
    let masters = masters.map_err(unreadable)?;
    let listed = Encryption::list(&folder.seal(), &needed);
    let listed =
        listed.map_err(|error| Failure::usage("the keys cannot be read").because(error))?;
    let is_here = |key: &&ListedKey| key.usage != KeyUse::Missing;
    let here = listed.iter().filter(is_here).map(|key| key.id);
    let here = here.filter(|id| masters.contains(&id.to_string()));
    let here: Vec<KeyId> = here.collect();
    for ListedKey { id, usage } in listed {
        let (name, words) = match usage {
            // A file gets a new master key after those that it has.
            KeyUse::Unneeded | KeyUse::MayOpen if here.len() > 1 && here.last() == Some(&id) => (
                "wraps-next",
                "is the NEW master key, which wraps the others in the database too; `mcp-elicit keys rewrap --finish` makes it the only one",
            ),
            KeyUse::Unneeded | KeyUse::MayOpen if here.len() > 1 && here.contains(&id) => (
                "wraps",
                "is the EARLIER master key, which still wraps the others in the database, until `mcp-elicit keys rewrap --finish`",
            ),
            KeyUse::Unneeded | KeyUse::MayOpen if masters.contains(&id.to_string()) => (
                "wraps",
                "is the master key, which wraps the others in the database",
            ),
            KeyUse::Seals => ("seals", "seals new values"),
            KeyUse::Opens => ("opens", "opens values of the record"),
            KeyUse::MayOpen => (
                "may-open",
                "may open values that name no key, or that a running gateway has",
            ),
            KeyUse::Unneeded => (
                "unneeded",
                "is not needed; `mcp-elicit keys retire` deletes it",
            ),
            KeyUse::Missing => (
                "missing",
                "is MISSING here, and values of the record need it: restore seal.key from a backup",
            ),
        };
        if json {
            output::print_json(&serde_json::json!({"id": id.to_string(), "use": name}))?;
        } else {
            output::print(format_args!("{id}  {words}"))?;
        }
    }
    if masters.len() > here.len() {
        output::say(
            "the master key is being changed, and this folder has one of the two: run `mcp-elicit keys rewrap --new FILE` for it, unless it has the new one alone",
        );
    }
    Ok(Exit::Done)
}

async fn reseal(folder: &StateFolder, json: bool) -> Result<Exit, Failure> {
    check_has_keys(folder)?;
    state_record::check_exists(folder).await?;
    let record = direct_record::record(folder)
        .await
        .map_err(state_record::unopened)?;
    let mut next = REPORTED_EACH;
    let done = record.reseal(ON_COMMAND_LINE, |done| {
        if done.values >= next {
            next = done.values.saturating_add(REPORTED_EACH);
            output::say(format_args!(
                "{} values were sealed anew so far",
                done.values
            ));
        }
    });
    let done = done.await.map_err(state_record::unusable)?;
    let Resealed {
        values,
        left,
        unopened,
        ref missing,
    } = done;
    if json {
        let missing: Vec<_> = missing.iter().map(KeyId::to_string).collect();
        output::print_json(&serde_json::json!({
            "values": values,
            "left": left,
            "unopened": unopened,
            "missing-keys": missing,
        }))?;
    }
    output::say(match values {
        0 => "no value was sealed with an earlier key: nothing was changed".to_owned(),
        1 => "1 value was sealed anew with the newest key".to_owned(),
        values => format!("{values} values were sealed anew with the newest key"),
    });
    if unopened > 0 {
        let keys: Vec<_> = missing.iter().map(KeyId::to_string).collect();
        let of = match keys.as_slice() {
            [] => String::new(),
            keys => format!(" (keys: {})", keys.join(", ")),
        };
        return Err(Failure::refused(format!(
            "{unopened} value(s) cannot be opened with seal.key, and stay as they are{of}"
        ))
        .hint("restore seal.key from a backup that has the key, and run this again; without it, the values end with their questions."));
    }
    if left > 0 {
        return Err(Failure::refused(format!(
            "{left} row(s) were changed time and again meanwhile, and stay as they are"
        ))
        .hint("run this again."));
    }
    if values > 0 {
        output::say(
            "once no gateway runs, `mcp-elicit keys retire` deletes the earlier keys; if it then says that values need one, a gateway wrote them back: run \
             this again first",
        );
    }
    Ok(Exit::Done)
}

/// The words about a master key that no value needs.
const OPENS_NOTHING: &str = "opens no values any more, and stays in seal.key as the master key";

async fn retire(folder: &StateFolder) -> Result<Exit, Failure> {
    check_has_keys(folder)?;
    // Until the keys are deleted, so that no gateway starts meanwhile.
    let lease = LockFile::acquire(&folder.leases()).map_err(unchanged)?;
    let mut needed = needed_keys(folder).await?;
    state_record::wait_until_unused(async || {
        needed = needed_keys(folder).await?;
        Ok(lease.has_others() || folder.database().is_some() && needed.any)
    })
    .await?;
    if lease.has_others() || folder.database().is_some() && needed.any {
        return Err(Failure::usage("a gateway of this record runs")
            .hint("end all of them first: they may have values that are not in the record yet."));
    }
    // A command that was killed while it wrote seal.key has left the keys of its time.
    state_file::clear_unfinished(folder.path()).map_err(unchanged)?;
    let retired = match folder.database() {
        Some(database) => database
            .retire_keys(folder.key_files(), needed.clone())
            .await
            .map_err(unreadable)?,
        None => Encryption::retire(&folder.seal(), &needed).map_err(unchanged)?,
    };
    let masters = match folder.database() {
        Some(database) => database.share_keys(folder.key_files()).await,
        None => Ok(Vec::new()),
    };
    let masters = masters.map_err(unreadable)?;
    drop(lease);
    let (kept, deleted): (Vec<_>, Vec<_>) = retired
        .iter()
        .map(KeyId::to_string)
        .partition(|id| masters.contains(id));
    let mut changes = Vec::new();
    if !deleted.is_empty() {
        let ids = deleted.join(", ");
        changes.push(format!(
            "no value needs these keys, which were deleted: {ids}"
        ));
    }
    if !kept.is_empty() {
        let ids = kept.join(", ");
        changes.push(format!("{ids} {OPENS_NOTHING}"));
    }
    if !changes.is_empty() {
        note_change(folder, &changes.join("; ")).await;
    }
    for id in &deleted {
        output::print(id)?;
    }
    for id in &kept {
        output::say(format_args!("{id} {OPENS_NOTHING}"));
    }
    output::say(match deleted.len() {
        0 if needed.any => {
            "values of an earlier version name no key, so any may be needed: nothing was deleted"
                .to_owned()
        }
        0 if !kept.is_empty() => "no other key was deleted".to_owned(),
        0 => "every key is needed: nothing was deleted; `mcp-elicit keys reseal` seals the values of earlier keys anew".to_owned(),
        1 => "1 key was deleted".to_owned(),
        count => format!("{count} keys were deleted"),
    });
    if !retired.is_empty() && folder.database().is_some() {
        output::say(
            "they are not in the database any more; the state folders of the record's other gateways still have them: run this for each",
        );
    }
    Ok(Exit::Done)
}

async fn rotate(folder: &StateFolder) -> Result<Exit, Failure> {
    check_has_keys(folder)?;
    if let Some(database) = folder.database() {
        state_record::check_exists(folder).await?;
        let rotated = database.rotate_keys(folder.key_files()).await;
        rotated.map_err(unreadable)?;
        note_change(folder, NEW_KEY).await;
        output::say(
            "the key was changed: the record has the new one, and so has every running gateway; earlier keys are kept to read older values",
        );
        return Ok(Exit::Done);
    }
    // No gateway that starts meanwhile is taken for one that was not there.
    let lease = LockFile::acquire(&folder.leases()).map_err(unchanged)?;
    let mut needed = needed_keys(folder).await?;
    // A gateway may hold values that are not in the record yet.
    needed.any |= lease.has_others();
    let kept = Encryption::rotate(&folder.seal(), &needed).map_err(unchanged)?;
    drop(lease);
    // Opening the record tells those who join it that their key is an earlier one.
    note_change(folder, NEW_KEY).await;
    output::say(format_args!(
        "the key was changed; running gateways use it from now on, and {kept} earlier key(s) are kept to read older values"
    ));
    Ok(Exit::Done)
}

/// Returns the keys that values of the record need, if there is one.
async fn needed_keys(folder: &StateFolder) -> Result<SealedWith, Failure> {
    if let Some(database) = folder.database() {
        state_record::check_exists(folder).await?;
        let needed = async {
            let mut needed = database.sealed_with().await?;
            needed.any |= database.running().await? > 0;
            Ok(needed)
        };
        return needed.await.map_err(unreadable);
    }
    if !folder.record().exists() {
        return Ok(SealedWith::default());
    }
    let record = Sqlite::at(&folder.record()).with_any_key();
    record.sealed_with().await.map_err(unreadable)
}
