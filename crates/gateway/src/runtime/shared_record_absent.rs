//! A build without the record on a database.

use std::sync::Arc;

use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::peers::PeerOffer;
use mcp_elicit_record::store::{DatabaseRecord, RecordStore};
use mcp_elicit_record::{LockFile, OwnKeys, RunningGateways};
use tokio::sync::Notify;

use super::StartError;
use crate::config::RecordDatabase;

pub(super) struct SharedRecord {
    pub(super) store: Arc<dyn RecordStore>,
    pub(super) place: LockFile,
    pub(super) notices: Arc<Notify>,
    pub(super) gateways: Arc<dyn RunningGateways>,
}

/// The connections to a database, of which there are none.
pub(super) enum Connections {}

#[expect(
    clippy::unused_async,
    reason = "the other build waits for the database"
)]
pub(super) async fn share_keys(
    _database: &RecordDatabase,
    _folder: &StateFolder,
) -> Result<Connections, StartError> {
    Err(not_here())
}

#[expect(
    clippy::unused_async,
    reason = "the other build waits for the database"
)]
pub(super) async fn open(
    _database: Connections,
    _keys: &OwnKeys,
    _offer: Option<PeerOffer>,
    _folder: &mut StateFolder,
) -> Result<SharedRecord, StartError> {
    Err(not_here())
}

/// Returns the error of this build.
///
/// # Errors
/// Always.
pub fn database_record(_database: &RecordDatabase) -> Result<Arc<dyn DatabaseRecord>, StartError> {
    Err(not_here())
}

fn not_here() -> StartError {
    StartError::Database {
        why: "this program was built without PostgreSQL: build it with `--features full`"
            .to_owned(),
    }
}
