//! Finds and opens the record of a gateway, for the commands: in its state folder, or in a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcp_elicit_gateway::database_record;
use mcp_elicit_inbox::direct_record::OpenRecordError;
use mcp_elicit_inbox::seen_audit::SeenAudit;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::RecordError;
use mcp_elicit_record::store::{RecordStore, RecordStoreError, Sqlite};

use super::gateway::database_failed;
use crate::args::record_location::RecordLocation;
use crate::failure::Failure;
use crate::output;

/// The number of tries of a record that other processes use, before a command that needs it alone gives up.
const TRIES: usize = 20;
/// The time between them.
const BETWEEN: Duration = Duration::from_millis(250);

/// Tries again for about 5 seconds while the record is used: a gateway or a command that has just ended counts for a
/// moment.
///
/// # Errors
/// Those of the last try.
pub(super) async fn once_unused<T, E>(
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
    is_in_use: impl Fn(&E) -> bool,
) -> Result<T, E> {
    for tried in 0..TRIES {
        match attempt().await {
            Err(error) if is_in_use(&error) => {}
            done => return done,
        }
        if tried == 0 {
            output::say(
                "waiting up to 5 seconds for the gateways and commands of this record to end",
            );
        }
        tokio::time::sleep(BETWEEN).await;
    }
    attempt().await
}

/// Waits in the same way until the record is not used.
///
/// # Errors
/// If it cannot be found out.
pub(super) async fn wait_until_unused(
    mut is_used: impl AsyncFnMut() -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let look = async || match is_used().await {
        Ok(true) => Err(None),
        Ok(false) => Ok(()),
        Err(failure) => Err(Some(failure)),
    };
    match once_unused(look, Option::is_none).await {
        Err(Some(failure)) => Err(failure),
        Ok(()) | Err(None) => Ok(()),
    }
}

/// Returns the path of the state folder: the given one, else the default.
pub(super) fn path(state: Option<PathBuf>) -> Result<PathBuf, Failure> {
    state.or_else(StateFolder::usual).ok_or_else(|| {
        Failure::usage("there is no state folder").hint("name the gateway's with `--state DIR`.")
    })
}

/// Returns the option that names the same state folder to another command; empty for the default.
pub(super) fn option(state: Option<&Path>) -> String {
    state.map_or_else(String::new, |state| format!(" --state {}", state.display()))
}

/// A state folder with its record, and the options that name both to another command.
pub(super) struct NamedFolder {
    /// The state folder, which need not exist. It uses the database of the record, if it is in one.
    pub(super) folder: StateFolder,
    /// The address of the database in which the last gateway of the folder had its record.
    pub(super) noted: Option<String>,
    /// The options, each with a space before it; empty for the default.
    pub(super) options: String,
}

/// Returns the place of a record. Nothing is connected to or created.
///
/// # Errors
/// If the last gateway of the folder had its record in a database, and none is named: the command would use another record.
pub(super) fn named_folder(named: &RecordLocation) -> Result<NamedFolder, Failure> {
    let named = unchecked_folder(named)?;
    match &named.noted {
        Some(address) if named.folder.database().is_none() => {
            Err(in_another_database(&named.folder, address, "name"))
        }
        _ => Ok(named),
    }
}

/// Returns the place of a record like [`named_folder`], for a command that asks the running gateway first.
///
/// # Errors
/// If it cannot be read where the last gateway of the folder had its record.
pub(super) fn unchecked_folder(named: &RecordLocation) -> Result<NamedFolder, Failure> {
    let named = named.named()?;
    let folder = StateFolder::at(&named.folder);
    let noted = folder.record_address().map_err(|error| {
        Failure::usage(format!("the record of {} is unknown", folder.path().display()))
            .because(error)
            .hint("it is in the folder, or in the database of the gateway's `record`; correct the file first.")
    })?;
    let folder = match &named.database {
        None => folder,
        Some(database) => {
            let database = database_record(database).map_err(database_failed)?;
            folder.with_database(database)
        }
    };
    Ok(NamedFolder {
        folder,
        noted,
        options: named.options,
    })
}

/// Returns the failure of a command that was told of no database, although the record of the folder is in one.
pub(super) fn in_another_database(folder: &StateFolder, address: &str, next: &str) -> Failure {
    let path = folder.path().display();
    Failure::usage(format!("the record of {path} is in a database")).hint(format!(
        "{next} the database with `--record {}`, or the gateway's file with `--config FILE`.",
        output::harmless(address)
    ))
}

/// Rejects a state folder without a record, and a database without one.
pub(super) async fn check_exists(folder: &StateFolder) -> Result<(), Failure> {
    let path = folder.path().display();
    if let Some(database) = folder.database() {
        let Err(fault) = database.recognize().await else {
            return Ok(());
        };
        let is_in_file = matches!(folder.record_address(), Ok(None))
            && Sqlite::recognize(&folder.record()).await.is_ok()
            && database.refuse_occupied().await.is_ok();
        let failure = unreadable(fault);
        return Err(if is_in_file {
            failure.hint(format!(
                "the record of {path} is its file record.sqlite: leave out the database, or move the record into it with `mcp-elicit record move`."
            ))
        } else {
            failure
        });
    }
    if folder.record().exists() {
        return Ok(());
    }
    if let Some(seen) = SeenAudit::read(folder) {
        let last = seen.in_words(folder);
        let failure = Failure::usage(format!(
            "there is no record in {path} any more: its audit had {last}"
        ));
        let next = match seen.database() {
            Some(address) => format!("name its database with `--record {}`, or the gateway's file with `--config FILE`.", output::harmless(&address)),
            None => "restore the record, or name its database with `--record ADDRESS` or `--config FILE`.".to_owned(),
        };
        return Err(failure.hint(next));
    }
    Err(
        Failure::usage(format!("there is no record in {path}")).hint(
            "name the gateway's file with `--config FILE`, or its state folder with `--state DIR`.",
        ),
    )
}

/// Returns the state folder, if there is a gateway's record in it or in its database. Nothing is created in any other.
pub(super) async fn folder(named: &RecordLocation) -> Result<StateFolder, Failure> {
    let folder = named_folder(named)?.folder;
    check_exists(&folder).await?;
    if folder.database().is_some() {
        return Ok(folder);
    }
    let file = folder.record();
    Sqlite::recognize(&file).await.map_err(|fault| {
        Failure::usage(format!("{} cannot be read", file.display())).because(fault)
    })?;
    Ok(folder)
}

/// Returns the state folder, and `false` if nothing has been recorded in it so far.
///
/// # Errors
/// If the folder is not a gateway's, or has something else in place of the record.
pub(super) async fn folder_and_record(
    named: &RecordLocation,
) -> Result<(StateFolder, bool), Failure> {
    let folder = named_folder(named)?.folder;
    let is_empty = folder.database().is_none()
        && match std::fs::symlink_metadata(folder.record()) {
            Ok(record) => record.is_file() && record.len() == 0,
            Err(_) => folder.is_known() && SeenAudit::read(&folder).is_none(),
        };
    if is_empty {
        return Ok((folder, false));
    }
    Ok((self::folder(named).await?, true))
}

/// Returns the record of a folder for reading, for any key of its audit.
pub(super) fn to_read(folder: &StateFolder) -> Arc<dyn RecordStore> {
    match folder.database() {
        Some(database) => database.to_read(),
        None => Arc::new(Sqlite::at(&folder.record()).with_any_key()),
    }
}

/// Returns the failure of a record that cannot be read.
pub(super) fn unreadable(fault: RecordStoreError) -> Failure {
    of_database(&fault)
        .unwrap_or_else(|| Failure::usage("the record cannot be read").because(fault))
}

/// Returns the failure of a record's database that cannot be used; `None` for any other error.
pub(super) fn of_database(fault: &RecordStoreError) -> Option<Failure> {
    let hint = || {
        fault.remedy().unwrap_or_else(|| {
            "check that the server runs, takes writes, and that the address of `--record` is right.".to_owned()
        })
    };
    fault.is_in_database().then(|| {
        Failure::connection("the record's database cannot be used")
            .because(fault)
            .hint(hint())
    })
}

/// Returns the failure of a record that cannot be opened beside running gateways.
pub(super) fn unopened(error: OpenRecordError) -> Failure {
    match error.downcast::<RecordStoreError>() {
        Ok(fault) => unreadable(*fault),
        Err(error) => Failure::usage(format!("the record cannot be read: {error}")),
    }
}

/// Returns the failure of a record that cannot be read or changed.
pub(super) fn unusable(fault: RecordError) -> Failure {
    match fault {
        RecordError::Store(fault) if fault.is_in_database() => unreadable(fault),
        fault => Failure::usage("the record cannot be read or written").because(fault),
    }
}
