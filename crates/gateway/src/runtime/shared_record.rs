//! The record in a database that gateways on several machines share.

use std::sync::Arc;

use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::store::{
    Postgres, PostgresDatabase, PostgresReplica, PostgresSettings, PostgresTables, Store,
};
use mcp_elicit_record::{Keys, LockFile};
use tokio::sync::Notify;

use super::StartError;
use crate::config::RecordDatabase;

/// The parts of an opened record.
pub(super) struct SharedRecord {
    pub(super) store: Arc<dyn Store>,
    /// The place of this gateway among the running ones.
    pub(super) place: LockFile,
    pub(super) notices: Arc<Notify>,
}

/// Returns the settings of a database. The password is the configured one, else `PGPASSWORD`, else that of `PGPASSFILE`.
///
/// # Errors
/// If the address or a password cannot be used.
pub(super) fn settings(database: &RecordDatabase) -> Result<PostgresSettings, StartError> {
    let refused = |why: String| StartError::Database { why };
    let settings = PostgresSettings::read(database.address());
    let settings = settings.map_err(|error| refused(error.to_string()))?;
    if let Some(password) = database.password() {
        return Ok(settings.with_password(password.reveal()));
    }
    if let Ok(password) = std::env::var("PGPASSWORD") {
        return Ok(settings.with_password(&password));
    }
    let Some(path) = std::env::var_os("PGPASSFILE") else {
        return Ok(settings);
    };
    let file = std::fs::read_to_string(&path).map_err(|error| {
        refused(format!(
            "the password file {} (PGPASSFILE) cannot be read: {error}",
            path.display()
        ))
    })?;
    Ok(match settings.password_in(&file) {
        Some(password) => settings.with_password(&password),
        None => settings,
    })
}

/// Opens the record, joins its running gateways, and lets the state folder use its tables.
///
/// # Errors
/// If the database cannot be reached or used, or the keys are those of another record.
pub(super) async fn open(
    database: &RecordDatabase,
    keys: &Keys,
    folder: &mut StateFolder,
) -> Result<SharedRecord, StartError> {
    let database = connected(database)?;
    let store = Postgres::at(database.clone()).with_keys(keys);
    store.ready().await.map_err(Arc::new)?;
    let replica = PostgresReplica::join(database.clone()).await;
    let replica = replica.map_err(Arc::new)?;
    let store = store.of(&replica);
    *folder = folder
        .clone()
        .with_tables(Arc::new(PostgresTables::at(database)));
    let notices = replica.notices();
    Ok(SharedRecord {
        store: Arc::new(store),
        place: LockFile::among(Arc::new(replica)),
        notices,
    })
}

/// Returns the SQL that the next start of a gateway would run on this database; empty if there is none. Nothing is
/// written.
///
/// # Errors
/// If the database cannot be reached or used.
pub async fn planned_migration(database: &RecordDatabase) -> Result<String, StartError> {
    let planned = Postgres::at(connected(database)?).planned_migration().await;
    Ok(planned.map_err(Arc::new)?)
}

/// Migrates the tables of this database, as the next start of a gateway would.
///
/// # Errors
/// If the database cannot be reached or used.
pub async fn migrate(database: &RecordDatabase) -> Result<(), StartError> {
    let migrated = connected(database)?.ready().await;
    Ok(migrated.map_err(Arc::new)?)
}

fn connected(database: &RecordDatabase) -> Result<PostgresDatabase, StartError> {
    let no_thread = |error: std::io::Error| StartError::Database {
        why: error.to_string(),
    };
    PostgresDatabase::new(settings(database)?).map_err(no_thread)
}
