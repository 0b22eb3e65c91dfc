//! `keys`: the keys of the record.

use clap::{Args, Subcommand};
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::audit::Event;
use mcp_elicit_record::encryption::{Encryption, KeyUse, ListedKey, SealedWith};
use mcp_elicit_record::store::Sqlite;
use mcp_elicit_record::{LockFile, SetAside};

use super::state_record::unreadable;
use super::{in_runtime, inbox, state_record};
use crate::args::record_location::RecordLocation;
use crate::failure::{Exit, Failure};
use crate::output;

/// Change the keys of a gateway's record
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    act: Act,

    #[command(flatten)]
    location: RecordLocation,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Encrypt values with a new key from now on. Running gateways use it from their next value on. Earlier keys are kept
    /// while values need them
    Rotate,
    /// List the keys that seal values, the newest first, by their ids, and whether values of the record need them
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete the keys that no value of the record needs. Stop all gateways of the record first: they may have values
    /// that are not in it yet
    Retire,
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
        (Act::Rotate, _) => rotate(&folder).await,
        (Act::List { json }, _) => list(&folder, json).await,
        (Act::Retire, _) => retire(&folder).await,
        (Act::StartOver, Some(database)) => Err(Failure::usage(
            "`keys start-over` is for a record in the state folder",
        )
        .hint(format!(
            "name another database; or end all gateways, and run `DROP SCHEMA mcp_elicit CASCADE` in {}: the next start makes a new record there.",
            database.address()
        ))),
        (Act::StartOver, None) => start_over(&folder).await,
    }
}

async fn start_over(folder: &StateFolder) -> Result<Exit, Failure> {
    state_record::check_exists(folder).await?;
    let path = folder.path().display();
    let unusable =
        |error| Failure::usage(format!("the state folder {path} cannot be used")).because(error);
    let lease = LockFile::acquire(&folder.leases()).map_err(unusable)?;
    if lease.has_others() {
        return Err(
            Failure::usage(format!("a gateway runs on the state folder {path}"))
                .hint("end it first."),
        );
    }
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
    let listed = Encryption::list(&folder.seal(), &needed);
    let listed =
        listed.map_err(|error| Failure::usage("the keys cannot be read").because(error))?;
    for ListedKey { id, usage } in listed {
        let (name, words) = match usage {
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
    Ok(Exit::Done)
}

async fn retire(folder: &StateFolder) -> Result<Exit, Failure> {
    check_has_keys(folder)?;
    // Until the keys are deleted, so that no gateway starts meanwhile.
    let lease = LockFile::acquire(&folder.leases()).map_err(unchanged)?;
    let needed = needed_keys(folder).await?;
    if lease.has_others() || folder.database().is_some() && needed.any {
        return Err(Failure::usage("a gateway of this record runs")
            .hint("end all of them first: they may have values that are not in the record yet."));
    }
    let retired = Encryption::retire(&folder.seal(), &needed).map_err(unchanged)?;
    for id in &retired {
        output::print(id)?;
    }
    output::say(match retired.len() {
        0 if needed.any => {
            "values of an earlier version name no key, so any may be needed: nothing was deleted"
                .to_owned()
        }
        0 => "every key is needed: nothing was deleted".to_owned(),
        1 => "1 key was deleted".to_owned(),
        count => format!("{count} keys were deleted"),
    });
    if !retired.is_empty() && folder.database().is_some() {
        output::say(
            "the state folders of the record's other gateways have files of their own: run this for each",
        );
    }
    Ok(Exit::Done)
}

async fn rotate(folder: &StateFolder) -> Result<Exit, Failure> {
    check_has_keys(folder)?;
    // No gateway that starts meanwhile is taken for one that was not there.
    let lease = LockFile::acquire(&folder.leases()).map_err(unchanged)?;
    let mut needed = needed_keys(folder).await?;
    // A gateway may hold values that are not in the record yet.
    needed.any |= lease.has_others();
    let kept = Encryption::rotate(&folder.seal(), &needed).map_err(unchanged)?;
    drop(lease);
    // Opening the record tells those who join it that their key is an earlier one.
    inbox::note(folder, Event::Rotated).await;
    if folder.database().is_some() {
        output::say(format_args!(
            "the key was changed, and {kept} earlier key(s) are kept to read older values; copy {} to the state folders of all other gateways of \
             this record now: until then they cannot read values of this one",
            folder.seal().display()
        ));
        return Ok(Exit::Done);
    }
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
