//! Values that count once, in SQLite.

use mcp_elicit_core::lifecycle::Timestamp;
use rusqlite::TransactionBehavior;

use super::super::{Crash, MOST_USED, UsedValue};
use super::RecordStoreError;
use super::file::SqliteFile;
use super::questions::{counted, millis};
use crate::used::UsedKind;

const EXPIRE: &str = "DELETE FROM used WHERE until <= ?1";
const USE: &str = "INSERT INTO used (kind, digest, until) SELECT ?1, ?2, ?3 \
     WHERE (SELECT count(*) FROM used WHERE kind = ?1) < ?4 ON CONFLICT (kind, digest) DO NOTHING";
const IS_USED: &str = "SELECT EXISTS (SELECT 1 FROM used WHERE kind = ?1 AND digest = ?2)";

impl SqliteFile {
    pub(super) fn use_once(
        &mut self,
        used: &UsedValue,
        now: Timestamp,
    ) -> Result<bool, RecordStoreError> {
        // A use that is lost in a loss of power would count twice.
        self.set_survives(Crash::Machine)?;
        let connection = self.connection()?;
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        step.prepare_cached(EXPIRE)?.execute([millis(now)])?;
        let (kind, until) = (used.kind.as_str(), millis(used.until));
        let values = (kind, used.digest, until, counted(MOST_USED));
        let is_first = step.prepare_cached(USE)?.execute(values)? == 1;
        step.commit()?;
        Ok(is_first)
    }

    pub(super) fn is_used(
        &mut self,
        kind: UsedKind,
        digest: [u8; 32],
    ) -> Result<bool, RecordStoreError> {
        let mut statement = self.connection()?.prepare_cached(IS_USED)?;
        Ok(statement.query_row((kind.as_str(), digest), |row| row.get(0))?)
    }
}
