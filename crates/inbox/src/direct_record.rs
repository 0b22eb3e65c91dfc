//! The API over a record that no gateway serves, for commands: questions can be read, and answered for the next call.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;

pub use super::api::ON_COMMAND_LINE;
use super::api::{self, RequestAccess};
use super::record_question_store::RecordQuestionStore;
use super::state_folder::StateFolder;
use mcp_elicit_record::audit::{Details, Event};
use mcp_elicit_record::encryption::Encryption;
use mcp_elicit_record::store::{RecordStoreError, Sqlite};
use mcp_elicit_record::{IdentityKey, LockFile, OwnKeys, Record, clock};

/// The interval at which changes of gateways without an inbox are checked.
const HEARING: Duration = Duration::from_millis(400);

/// The error of a record that cannot be used.
pub type OpenRecordError = Box<dyn Error + Send + Sync>;

/// Returns the API over this folder's record. This process counts as one of the gateways that share it, while it runs.
pub(super) async fn api(folder: &StateFolder) -> Result<Router, OpenRecordError> {
    let record = Arc::new(record(folder).await?);
    let hears = Arc::clone(&record);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(HEARING).await;
            if let Err(fault) = hears.poll_others().await {
                tracing::warn!(%fault, "other gateways' answers could not be looked for");
            }
        }
    });
    let questions = RecordQuestionStore::new(Arc::clone(&record));
    let questions = Arc::new(questions.naming_keys(Arc::new(folder.api_tokens())));
    Ok(api::router(
        record,
        questions,
        folder.clone(),
        RequestAccess::Owner(None),
    ))
}

/// Audits the action of a command in this folder's record, if there is one, with its token if any.
///
/// # Errors
/// If the record cannot be opened or written.
pub async fn note(
    folder: &StateFolder,
    event: Event,
    about: Option<(&str, &str)>,
) -> Result<(), OpenRecordError> {
    let by = about.map(|(kind, name)| format!("{ON_COMMAND_LINE}, {kind} {name}"));
    let by = by.as_deref().unwrap_or(ON_COMMAND_LINE);
    note_all(folder, &[(event, Details::by(by))]).await
}

/// Audits several events with all their details, like [`note`].
///
/// # Errors
/// If the record cannot be opened or written.
pub async fn note_all(
    folder: &StateFolder,
    events: &[(Event, Details<'_>)],
) -> Result<(), OpenRecordError> {
    if events.is_empty() || !folder.has_record() {
        return Ok(());
    }
    let record = record(folder).await?;
    for (event, details) in events {
        record.audit_details(*event, details).await?;
    }
    record.flush().await?;
    Ok(())
}

/// Opens the record of this folder, or of its database, beside running gateways. This process counts as one of them while it holds the
/// record.
///
/// # Errors
/// If the record or its keys cannot be used.
pub async fn record(folder: &StateFolder) -> Result<Record, OpenRecordError> {
    if let Some(database) = folder.database() {
        database.recognize().await?;
        let keys = keys(folder).await?;
        let (store, lease) = database.open(keys.clone(), folder.key_files()).await?;
        return Ok(Record::new(store, keys, lease, clock::now));
    }
    let keys = keys(folder).await?;
    let store = Sqlite::at(&folder.record()).with_keys(&keys);
    store.ready().await?;
    let lease = LockFile::acquire(&folder.leases())?;
    Ok(Record::new(Arc::new(store), keys, lease, clock::now))
}

/// Returns the keys in this folder. Those of a record in a database must be there; others are made if the record is new.
///
/// # Errors
/// If a key is missing that the record needs, or a file cannot be used.
pub async fn keys(folder: &StateFolder) -> Result<OwnKeys, OpenRecordError> {
    if folder.database().is_none() {
        return Ok(folder.key_files().open().await?);
    }
    Ok(keys_of_database(folder).await?)
}

/// Returns the keys of a record in a database, which this folder has then.
///
/// # Errors
/// If the folder does not have its `seal.key`, or the database cannot be used.
pub(super) async fn keys_of_database(folder: &StateFolder) -> Result<OwnKeys, RecordStoreError> {
    if let Some(database) = folder.database() {
        database.share_keys(folder.key_files()).await?;
    }
    keys_in(folder)
}

/// Returns the keys in this folder, which must be there.
///
/// # Errors
/// If one is missing, or a file cannot be used.
pub(super) fn keys_in(folder: &StateFolder) -> Result<OwnKeys, RecordStoreError> {
    let encryption = Encryption::read(&folder.seal())?;
    let identity = IdentityKey::read(&folder.identity())?;
    match (encryption, identity) {
        (Some(encryption), Some(identity)) => Ok(OwnKeys {
            encryption,
            identity,
        }),
        _ => Err(RecordStoreError::Refused {
            why: format!(
                "{} does not have both keys of the record, seal.key and identity.key",
                folder.path().display()
            ),
            next: "name the state folder of a gateway of this record with `--state DIR`, or copy both keys from there."
                .to_owned(),
        }),
    }
}
