//! Approvals that are valid for a while, in SQLite.

use mcp_elicit_core::lifecycle::Timestamp;

use super::super::StoredGrant;
use super::file::File;
use super::questions::millis;
use super::{Columns, StoreError, all, time};

const KEEP: &str = "INSERT OR REPLACE INTO approval_grant (key, question, rule, rule_digest, answers, at, until) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

const GOOD: &str = "SELECT key, question, rule, rule_digest, answers, at, until FROM approval_grant ORDER BY until";

impl File {
    pub(super) fn keep_grant(&mut self, grant: &StoredGrant) -> Result<(), StoreError> {
        let values = (
            &grant.key,
            &grant.question,
            &grant.rule,
            &grant.rule_digest,
            &grant.answers,
            millis(grant.at),
            millis(grant.until),
        );
        self.connection()?.execute(KEEP, values)?;
        Ok(())
    }

    pub(super) fn grants(&mut self, now: Timestamp) -> Result<Vec<StoredGrant>, StoreError> {
        let delete = "DELETE FROM approval_grant WHERE until <= ?1";
        self.connection()?.execute(delete, [millis(now)])?;
        all(self, GOOD, [], grant)
    }

    pub(super) fn drop_grants(&mut self, keys: &[String]) -> Result<(), StoreError> {
        let delete = "DELETE FROM approval_grant WHERE key IN (SELECT value FROM json_each(?1))";
        let keys = serde_json::to_string(keys)?;
        self.connection()?.execute(delete, [keys])?;
        Ok(())
    }
}

fn grant(row: &Columns<'_>) -> Result<StoredGrant, StoreError> {
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
