//! Finds and opens the record in a gateway's state folder, for the commands.

use std::path::{Path, PathBuf};

use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::store::{ChainKey, Sqlite};

use crate::failure::Failure;

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

/// Rejects a state folder without a record.
pub(super) fn check_exists(folder: &StateFolder) -> Result<(), Failure> {
    if folder.record().exists() {
        return Ok(());
    }
    let path = folder.path().display();
    Err(Failure::usage(format!("there is no record in {path}"))
        .hint("name the gateway's state folder with `--state DIR`."))
}

/// Returns the state folder, if it holds a gateway's record. Nothing is created in any other.
pub(super) async fn folder(state: Option<PathBuf>) -> Result<StateFolder, Failure> {
    let folder = StateFolder::at(&path(state)?);
    check_exists(&folder)?;
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
    state: Option<PathBuf>,
) -> Result<(StateFolder, bool), Failure> {
    let folder = StateFolder::at(&path(state.clone())?);
    let is_empty = match std::fs::symlink_metadata(folder.record()) {
        Ok(record) => record.is_file() && record.len() == 0,
        Err(_) => folder.is_known(),
    };
    if is_empty {
        return Ok((folder, false));
    }
    Ok((self::folder(state).await?, true))
}

/// Returns the record of a folder for reading, for any key of its audit.
pub(super) fn to_read(folder: &StateFolder, key: Option<ChainKey>) -> Sqlite {
    let store = Sqlite::at(&folder.record()).with_any_key();
    match key {
        Some(key) => store.keyed(key),
        None => store,
    }
}
