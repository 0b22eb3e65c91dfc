//! Approvals that are good for a while, in SQLite.

use mcp_elicit_core::lifecycle::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::super::StoredGrant;
use super::questions::millis;
use super::{Sqlite, StoreError};

const KEEP: &str = "INSERT OR REPLACE INTO approval_grant (key, question, rule, rule_digest, answers, at, until) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

const GOOD: &str = "SELECT key, question, rule, rule_digest, answers, at, until FROM approval_grant ORDER BY until";

impl Sqlite {
    pub(super) async fn keep_one_grant(&self, grant: StoredGrant) -> Result<(), StoreError> {
        let mut file = self.file().await?;
        sqlx::query(KEEP)
            .bind(grant.key)
            .bind(grant.question)
            .bind(grant.rule)
            .bind(grant.rule_digest)
            .bind(grant.answers)
            .bind(millis(grant.at))
            .bind(millis(grant.until))
            .execute(file.connection()?)
            .await?;
        Ok(())
    }

    pub(super) async fn good_grants(&self, now: Timestamp) -> Result<Vec<StoredGrant>, StoreError> {
        let mut file = self.file().await?;
        let connection = file.connection()?;
        sqlx::query("DELETE FROM approval_grant WHERE until <= ?1")
            .bind(millis(now))
            .execute(&mut *connection)
            .await?;
        let rows = sqlx::query(GOOD).fetch_all(connection).await?;
        rows.iter().map(grant).collect()
    }

    pub(super) async fn delete_grants(&self, keys: Vec<String>) -> Result<(), StoreError> {
        let keys = serde_json::to_string(&keys)?;
        let mut file = self.file().await?;
        sqlx::query("DELETE FROM approval_grant WHERE key IN (SELECT value FROM json_each(?1))")
            .bind(keys)
            .execute(file.connection()?)
            .await?;
        Ok(())
    }
}

fn grant(row: &SqliteRow) -> Result<StoredGrant, StoreError> {
    let time = |millis: i64| Timestamp::from_millis(u64::try_from(millis).unwrap_or(0));
    Ok(StoredGrant {
        key: row.try_get("key")?,
        question: row.try_get("question")?,
        rule: row.try_get("rule")?,
        rule_digest: row.try_get("rule_digest")?,
        answers: row.try_get("answers")?,
        at: time(row.try_get("at")?),
        until: time(row.try_get("until")?),
    })
}
