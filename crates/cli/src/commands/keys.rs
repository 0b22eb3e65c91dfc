//! `keys`: the keys of the record.

use clap::{Args, Subcommand};
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::audit::Event;
use mcp_elicit_record::encryption::{Encryption, SealedWith};
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

async fn rotate(folder: &StateFolder) -> Result<Exit, Failure> {
    let path = folder.path();
    if !folder.seal().exists() {
        return Err(
            Failure::usage(format!("there is no key in {}", path.display()))
                .hint("name the gateway's state folder with `--state DIR`."),
        );
    }
    let unchanged =
        |error: std::io::Error| Failure::usage("the key cannot be changed").because(error);
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
