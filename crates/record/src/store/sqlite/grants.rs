//! Approvals that are valid for a while, in SQLite.

use mcp_elicit_core::lifecycle::Timestamp;

use super::super::StoredGrant;
use super::file::SqliteFile;
use super::questions::millis;
use super::{Columns, RecordStoreError, all, time};

const KEEP: &str = "INSERT INTO approval_grant (key, question, rule, rule_digest, answers, at, until) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
     ON CONFLICT (key) DO UPDATE SET question = excluded.question, rule = excluded.rule, rule_digest = excluded.rule_digest, \
       answers = excluded.answers, at = excluded.at, until = excluded.until \
     WHERE at <= ?8 OR (at = excluded.at AND until = excluded.until)";

const GOOD: &str = "SELECT key, question, rule, rule_digest, answers, at, until FROM approval_grant ORDER BY until";

impl SqliteFile {
    pub(super) fn keep_grant(
        &mut self,
        grant: &StoredGrant,
        given: Timestamp,
    ) -> Result<bool, RecordStoreError> {
        let values = (
            &grant.key,
            &grant.question,
            &grant.rule,
            &grant.rule_digest,
            &grant.answers,
            millis(grant.at),
            millis(grant.until),
            millis(given),
        );
        Ok(self.connection()?.execute(KEEP, values)? == 1)
    }

    pub(super) fn grants(&mut self, now: Timestamp) -> Result<Vec<StoredGrant>, RecordStoreError> {
        let delete = "DELETE FROM approval_grant WHERE until <= ?1";
        self.connection()?.execute(delete, [millis(now)])?;
        all(self, GOOD, [], grant)
    }

    pub(super) fn drop_grants(&mut self, keys: &[String]) -> Result<(), RecordStoreError> {
        let delete = "DELETE FROM approval_grant WHERE key IN (SELECT value FROM json_each(?1))";
        let keys = serde_json::to_string(keys)?;
        self.connection()?.execute(delete, [keys])?;
        Ok(())
    }
}

fn grant(row: &Columns<'_>) -> Result<StoredGrant, RecordStoreError> {
    Ok(StoredGrant {
        key: row.get("key")?,
        question: row.get("question")?,
        rule: row.get("rule")?,
        rule_digest: row.get("rule_digest")?,
        answers: row.get("answers")?,
        at: time(row, "at")?,
        until: time(row, "until")?,
    })
}
