//! The record in a database that gateways on several machines share.

use std::io::{self, Read as _};
use std::sync::Arc;

use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::peers::PeerOffer;
use mcp_elicit_record::state_file::{open_named, warn_if_exposed};
use mcp_elicit_record::store::{
    DatabaseRecord, Postgres, PostgresDatabase, PostgresRecord, PostgresReplica, PostgresSettings,
    PostgresTables, RecordStore,
};
use mcp_elicit_record::{LockFile, OwnKeys, RunningGateways};
use tokio::sync::Notify;

use super::{StartError, other_record, password_command};
use crate::config::{RecordDatabase, RecordPassword};

/// The longest file of passwords that is read, in bytes.
const LONGEST_PASSWORD_FILE: u64 = 1024 * 1024;

/// The parts of an opened record.
pub(super) struct SharedRecord {
    pub(super) store: Arc<dyn RecordStore>,
    /// The place of this gateway among the running ones.
    pub(super) place: LockFile,
    pub(super) notices: Arc<Notify>,
    /// The running gateways.
    pub(super) gateways: Arc<dyn RunningGateways>,
}

/// Returns the settings of a database. The password is the configured one, else `PGPASSWORD`, else that of `PGPASSFILE`.
///
/// # Errors
/// If the address or a password cannot be used.
pub(super) fn settings(database: &RecordDatabase) -> Result<PostgresSettings, StartError> {
    let refused = |why: String| StartError::Database { why };
    let settings = PostgresSettings::read(database.address());
    let settings = settings.map_err(|error| refused(error.to_string()))?;
    match database.password() {
        Some(RecordPassword::Text(password)) => {
            return Ok(settings.with_password(password.reveal()));
        }
        Some(RecordPassword::Command(program)) => {
            let program = program.clone();
            let source = Arc::new(move || password_command::password(&program));
            return Ok(settings.with_password_source(source));
        }
        None => {}
    }
    if let Ok(password) = std::env::var("PGPASSWORD") {
        return Ok(settings.with_password(&password));
    }
    let Some(path) = std::env::var_os("PGPASSFILE") else {
        return Ok(settings);
    };
    let read = || {
        let mut text = String::new();
        let file = open_named(path.as_ref())?;
        warn_if_exposed(path.as_ref(), &file);
        file.take(LONGEST_PASSWORD_FILE).read_to_string(&mut text)?;
        Ok(text)
    };
    let file = read().map_err(|error: io::Error| {
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

/// Makes the key files of a state folder complete with those of the record in this database, and migrates its tables.
/// Returns the connections, for [`open`].
///
/// # Errors
/// If the database cannot be reached or used, the keys are those of another record, or the record of the folder is
/// elsewhere.
pub(super) async fn share_keys(
    database: &RecordDatabase,
    folder: &StateFolder,
) -> Result<PostgresDatabase, StartError> {
    let database = connected(database)?;
    let unused = Postgres::at(database.clone()).is_unused().await;
    if unused.map_err(Arc::new)? {
        let address = database.settings().address();
        other_record::refuse_empty_database(folder, address).await?;
    }
    let shared = database.give_keys(&folder.key_files()).await;
    shared.map_err(Arc::new)?;
    Ok(database)
}

/// Opens the record, joins its running gateways, and lets the state folder use its tables. With an offer the gateway takes
/// requests of others.
///
/// # Errors
/// If the database cannot be reached or used, or the keys are those of another record.
pub(super) async fn open(
    database: PostgresDatabase,
    keys: &OwnKeys,
    offer: Option<PeerOffer>,
    folder: &mut StateFolder,
) -> Result<SharedRecord, StartError> {
    let store = Postgres::at(database.clone()).with_keys(keys);
    store.ready().await.map_err(Arc::new)?;
    let files = folder.key_files();
    let replica = PostgresReplica::join(database.clone(), offer, Some(files)).await;
    let replica = replica.map_err(Arc::new)?;
    let store = store.of(&replica);
    *folder = folder
        .clone()
        .with_tables(Arc::new(PostgresTables::at(database)));
    let notices = replica.notices();
    let gateways: Arc<dyn RunningGateways> = Arc::new(replica);
    Ok(SharedRecord {
        store: Arc::new(store),
        place: LockFile::among(gateways.clone()),
        notices,
        gateways,
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
/// If the database cannot be reached or used, or another role could replace the tables or what is in them.
pub async fn migrate(database: &RecordDatabase) -> Result<(), StartError> {
    let migrated = connected(database)?.ready_as_own().await;
    Ok(migrated.map_err(Arc::new)?)
}

/// Returns the record in this database, for the commands. Nothing is connected to yet.
///
/// # Errors
/// If the address or a password cannot be used.
pub fn database_record(database: &RecordDatabase) -> Result<Arc<dyn DatabaseRecord>, StartError> {
    let record = PostgresRecord::new(settings(database)?).map_err(no_thread)?;
    Ok(Arc::new(record))
}

fn connected(database: &RecordDatabase) -> Result<PostgresDatabase, StartError> {
    PostgresDatabase::new(settings(database)?).map_err(no_thread)
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn no_thread(error: io::Error) -> StartError {
    StartError::Database {
        why: error.to_string(),
    }
}
