//! Calls without a waiting client: in progress, and finished.

use mcp_elicit_core::lifecycle::Timestamp;
use rusqlite::{OptionalExtension as _, TransactionBehavior};

use super::super::{Crash, FinishedCall, RecordStoreError, RunningCall, UnattendedCall};
use super::file::SqliteFile;
use super::questions::millis;
use super::{Columns, all, time};

impl SqliteFile {
    pub(super) fn begin_call(
        &mut self,
        id: &str,
        binding: &str,
        running: &RunningCall,
        until: Timestamp,
    ) -> Result<(), RecordStoreError> {
        // Another gateway may have written that the task is to be cancelled, and this one has not read it yet.
        const BEGIN: &str = "INSERT INTO running_call (id, same, owner, link, until) \
            SELECT ?1, ?2, ?3, ?4, ?5 WHERE NOT EXISTS (SELECT 1 FROM call WHERE id = ?1) \
            ON CONFLICT (id) DO UPDATE SET same = excluded.same, owner = excluded.owner, until = excluded.until, \
              link = CASE WHEN link GLOB 'cancel:*' AND NOT excluded.link GLOB 'cancel:*' \
              THEN 'cancel:' || excluded.link ELSE excluded.link END";
        self.set_survives(Crash::Process)?;
        let mut begin = self.connection()?.prepare_cached(BEGIN)?;
        begin.execute((id, binding, &running.owner, &running.link, millis(until)))?;
        Ok(())
    }

    pub(super) fn end_call(&mut self, id: &str) -> Result<(), RecordStoreError> {
        self.set_survives(Crash::Process)?;
        let connection = self.connection()?;
        let mut end = connection.prepare_cached("DELETE FROM running_call WHERE id = ?1")?;
        end.execute([id])?;
        Ok(())
    }

    pub(super) fn keep_call(&mut self, call: &FinishedCall) -> Result<(), RecordStoreError> {
        self.set_survives(Crash::Machine)?;
        let connection = self.connection()?;
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        step.prepare_cached("DELETE FROM running_call WHERE id = ?1")?
            .execute([&call.id])?;
        step.prepare_cached("INSERT INTO call (id, same, result, until) VALUES (?1, ?2, ?3, ?4)")?
            .execute((&call.id, &call.binding, &call.result, millis(call.until)))?;
        step.commit()?;
        Ok(())
    }

    pub(super) fn take_call(&mut self, id: &str) -> Result<Option<FinishedCall>, RecordStoreError> {
        const TAKE: &str = "DELETE FROM call WHERE id = ?1 RETURNING id, same, result, until";
        // A result that is back after a loss of power would be returned twice.
        self.set_survives(Crash::Machine)?;
        Ok(all(self, TAKE, [id], finished)?.pop())
    }

    pub(super) fn stored_call(
        &mut self,
        id: &str,
    ) -> Result<Option<FinishedCall>, RecordStoreError> {
        const READ: &str = "SELECT id, same, result, until FROM call WHERE id = ?1";
        Ok(all(self, READ, [id], finished)?.pop())
    }

    pub(super) fn calls(
        &mut self,
        binding: Option<&str>,
        now: Timestamp,
    ) -> Result<Vec<UnattendedCall>, RecordStoreError> {
        let of = if binding.is_some() {
            "same = ?2"
        } else {
            "?2 IS NULL"
        };
        let text = format!(
            "SELECT id, same, NULL AS owner, NULL AS link, until FROM call WHERE until > ?1 AND {of} \
             UNION ALL SELECT id, same, owner, link, until FROM running_call WHERE until > ?1 AND {of}"
        );
        all(self, &text, (millis(now), binding), |row| {
            let owner: Option<String> = row.get("owner")?;
            let link = row.get("link")?;
            Ok(UnattendedCall {
                id: row.get("id")?,
                binding: row.get("same")?,
                running: owner.map(|owner| RunningCall { owner, link }),
                until: time(row, "until")?,
            })
        })
    }

    pub(super) fn expire_calls(&mut self, now: Timestamp) -> Result<(), RecordStoreError> {
        const IS_ANY: &str = "SELECT 1 FROM call WHERE until <= ?1 UNION ALL SELECT 1 FROM running_call WHERE until <= ?1";
        let connection = self.connection()?;
        let any: Option<i64> = connection
            .prepare_cached(IS_ANY)?
            .query_row([millis(now)], |row| row.get(0))
            .optional()?;
        if any.is_some() {
            connection.execute("DELETE FROM call WHERE until <= ?1", [millis(now)])?;
            connection.execute("DELETE FROM running_call WHERE until <= ?1", [millis(now)])?;
        }
        Ok(())
    }

    /// Compares the number of the last transaction of other connections, which SQLite keeps.
    pub(super) fn has_changed_elsewhere(&mut self) -> Result<bool, RecordStoreError> {
        let connection = self.connection()?;
        let version: i64 = connection.query_row("PRAGMA data_version", [], |row| row.get(0))?;
        let last = self.changed_elsewhere.replace(version);
        Ok(last != Some(version))
    }
}

fn finished(row: &Columns<'_>) -> Result<FinishedCall, RecordStoreError> {
    Ok(FinishedCall {
        id: row.get("id")?,
        binding: row.get("same")?,
        result: row.get("result")?,
        until: time(row, "until")?,
    })
}
