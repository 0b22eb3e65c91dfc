//! The location of the record as the state folder knows it, compared with the configured one: a gateway that began with an
//! empty record beside the real one would lose its open questions, its tokens and its audit without a word.

use std::sync::Arc;

use mcp_elicit_inbox::seen_audit::SeenAudit;
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::store::{RecordStore as _, RecordStoreError, Sqlite};

#[cfg(feature = "postgres")]
use super::planned_migration;
use super::{Folder, StartError, database_record};
use crate::config::{Config, RecordDatabase};

/// Rejects the record in the state folder if the one of its gateways is in a database.
pub(super) async fn refuse_file(folder: &Folder) -> Result<(), StartError> {
    let noted = folder.state.record_address();
    let noted = noted.map_err(|source| folder.fault(source))?;
    let address = match noted {
        Some(address) => address,
        None if has_record(&folder.state).await => return Ok(()),
        None => match SeenAudit::read(&folder.state).and_then(|seen| seen.database()) {
            Some(address) => address,
            None => return Ok(()),
        },
    };
    let path = folder.path.display();
    Err(refused(
        format!(
            "the record of {path} is in the database {address}, and this gateway is told of no database: it would begin with an empty record"
        ),
        format!(
            "write `record = \"{address}\"` into the gateway's file, or start it with `--record {address}`; `mcp-elicit record move --into file` \
             brings the record into the folder. To begin with a new record on purpose, move record.address and audit.seen out of {path}."
        ),
    ))
}

/// Rejects a database that has no record yet if the one of the folder's gateways is elsewhere.
#[cfg(feature = "postgres")]
pub(super) async fn refuse_empty_database(
    folder: &StateFolder,
    address: &str,
) -> Result<(), StartError> {
    let path = folder.path().display();
    let noted = folder
        .record_address()
        .map_err(|source| StartError::State {
            path: folder.path().to_owned(),
            source,
        })?;
    if noted.is_none() && has_record(folder).await {
        return Err(refused(
            format!(
                "the record of {path} is its file record.sqlite, and the database {address} has no record"
            ),
            format!(
                "move it with `mcp-elicit record move --into database --state {path} --record {address}`, or start the gateway without `record`. \
                 To begin with a new record in the database on purpose, move record.sqlite and audit.seen out of {path}."
            ),
        ));
    }
    let Some(seen) = SeenAudit::read(folder) else {
        return Ok(());
    };
    let last = seen.in_words(folder);
    let (why, next) = match noted {
        Some(noted) if noted != address => (
            format!("the record of {path} is in the database {noted}, and {address} has none"),
            format!("correct the address, or move the record's database to {address}"),
        ),
        Some(_) | None => (
            format!("the database {address} has no record any more: its audit had {last}"),
            "start the gateway with the record's new place if it was moved (its earlier tables are then in the schema mcp_elicit_moved), or restore \
             the database"
                .to_owned(),
        ),
    };
    let next = format!(
        "{next}. To begin with a new record in this database on purpose, move audit.seen out of {path}."
    );
    Err(refused(why, next))
}

impl Config {
    /// Tries the record as a start does, without a start: nothing is created or changed. Returns the state folder if
    /// there is a record that can be read.
    ///
    /// # Errors
    /// If the record cannot be used, or the one of the state folder is elsewhere.
    pub async fn check_record(&self) -> Result<Option<StateFolder>, StartError> {
        if self.in_memory {
            return Ok(None);
        }
        let path = self.state.clone().or_else(StateFolder::usual);
        let path = path.ok_or(StartError::NoState)?;
        let state = StateFolder::at(&path);
        let Some(database) = &self.database else {
            let folder = Folder { state, path };
            refuse_file(&folder).await?;
            let file = folder.state.record();
            if has_record(&folder.state).await {
                let store = Sqlite::at(&file).with_any_key();
                store.audit_end().await.map_err(Arc::new)?;
                folder.state.key_files().check().await?;
            }
            return Ok(Some(folder.state));
        };
        check_database(database, state).await
    }
}

#[cfg(feature = "postgres")]
async fn check_database(
    database: &RecordDatabase,
    folder: StateFolder,
) -> Result<Option<StateFolder>, StartError> {
    let record = database_record(database)?;
    if record.refuse_occupied().await.is_ok() {
        refuse_empty_database(&folder, record.address()).await?;
        return Ok(None);
    }
    record.recognize().await.map_err(Arc::new)?;
    // Reading the record of an earlier version would migrate it.
    let is_current = planned_migration(database).await?.is_empty();
    if is_current {
        let keys = record.check_keys(folder.key_files()).await;
        keys.map_err(Arc::new)?;
    } else {
        tracing::warn!(
            "the record has the layout of an earlier version, which the next start changes: the keys in the state folder were not compared with it"
        );
    }
    Ok(is_current.then(|| folder.with_database(record)))
}

#[cfg(not(feature = "postgres"))]
#[expect(
    clippy::unused_async,
    reason = "the other build waits for the database"
)]
async fn check_database(
    database: &RecordDatabase,
    _folder: StateFolder,
) -> Result<Option<StateFolder>, StartError> {
    database_record(database).map(|_| None)
}

/// Returns `true` if there is a record in the folder itself.
async fn has_record(folder: &StateFolder) -> bool {
    Sqlite::recognize(&folder.record()).await.is_ok()
}

fn refused(why: String, next: String) -> StartError {
    Arc::new(RecordStoreError::Refused { why, next }).into()
}
