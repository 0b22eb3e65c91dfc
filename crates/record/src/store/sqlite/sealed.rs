//! Sealed values in SQLite.

use rusqlite::{OptionalExtension as _, Transaction, TransactionBehavior};

use super::super::{ResealedRow, SealedQuery, SealedRow, SealedTable};
use super::file::SqliteFile;
use super::questions::{counted, signed};
use super::{RecordStoreError, all, time};

/// The rows with a value that does not begin with `?2`. Texts of people are in the team's JSON.
const QUESTIONS: &str = "SELECT id, version, arguments, content, team FROM question WHERE id > ?1 AND (substr(arguments, 1, 12) <> ?2 \
    OR substr(content, 1, 12) <> ?2 OR team IS NOT NULL AND (instr(team, '\"text\":\"') > 0 OR instr(team, '\"026b6579') > 0)) \
    ORDER BY id LIMIT ?3";
const RESULTS: &str = "SELECT id, result FROM call WHERE id > ?1 AND substr(result, 1, 12) <> ?2 ORDER BY id LIMIT ?3";
const GRANTS: &str = "SELECT key, at, until, answers FROM approval_grant WHERE key > ?1 AND substr(answers, 1, 12) <> ?2 ORDER BY key LIMIT ?3";

const RESEAL_QUESTION: &str = "UPDATE question SET arguments = ?2, content = ?3, team = ?4 \
    WHERE id = ?1 AND version = ?5 AND arguments IS ?6 AND content IS ?7 AND team IS ?8";
const RESEAL_RESULT: &str = "UPDATE call SET result = ?2 WHERE id = ?1 AND result = ?3";
const RESEAL_GRANT: &str = "UPDATE approval_grant SET answers = ?2 WHERE key = ?1 AND answers = ?3";

/// A trigger notes each changed question of a rule, as if its people were to be told of something.
const UNTOLD: &str = "SELECT untold FROM telling WHERE question = ?1";
const SET_UNTOLD: &str = "UPDATE telling SET untold = ?2 WHERE question = ?1";

impl SqliteFile {
    pub(super) fn sealed_rows(
        &mut self,
        query: &SealedQuery,
    ) -> Result<Vec<SealedRow>, RecordStoreError> {
        let values = (&query.after, &query.newest, counted(query.most));
        match query.table {
            SealedTable::Questions => all(self, QUESTIONS, values, |row| {
                let version: i64 = row.get(1)?;
                Ok(SealedRow::Question {
                    id: row.get(0)?,
                    version: u64::try_from(version).unwrap_or(0),
                    arguments: row.get(2)?,
                    content: row.get(3)?,
                    team: row.get(4)?,
                })
            }),
            SealedTable::Results => all(self, RESULTS, values, |row| {
                Ok(SealedRow::Result {
                    id: row.get(0)?,
                    result: row.get(1)?,
                })
            }),
            SealedTable::Grants => all(self, GRANTS, values, |row| {
                Ok(SealedRow::Grant {
                    key: row.get("key")?,
                    at: time(row, "at")?,
                    until: time(row, "until")?,
                    answers: row.get("answers")?,
                })
            }),
        }
    }

    /// Changes the rows that are as before, in one transaction, and overwrites the earlier values. Returns their number.
    pub(super) fn reseal(&mut self, rows: &[ResealedRow]) -> Result<usize, RecordStoreError> {
        let connection = self.connection()?;
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut changed = 0;
        for row in rows {
            changed += usize::from(reseal(&step, row)?);
        }
        step.commit()?;
        self.cut_log()?;
        Ok(changed)
    }
}

fn reseal(step: &Transaction<'_>, row: &ResealedRow) -> Result<bool, RecordStoreError> {
    let changed = match (&row.before, &row.after) {
        (
            SealedRow::Question {
                id,
                version,
                arguments: arguments_before,
                content: content_before,
                team: team_before,
            },
            SealedRow::Question {
                arguments,
                content,
                team,
                ..
            },
        ) => {
            let untold: Option<Option<i64>> = step
                .prepare_cached(UNTOLD)?
                .query_row([id], |row| row.get(0))
                .optional()?;
            let changed = step.prepare_cached(RESEAL_QUESTION)?.execute((
                id,
                arguments,
                content,
                team,
                signed(*version),
                arguments_before,
                content_before,
                team_before,
            ))?;
            if let Some(untold) = untold {
                step.prepare_cached(SET_UNTOLD)?.execute((id, untold))?;
            }
            changed
        }
        (SealedRow::Result { id, result: before }, SealedRow::Result { result, .. }) => step
            .prepare_cached(RESEAL_RESULT)?
            .execute((id, result, before))?,
        (
            SealedRow::Grant {
                key,
                answers: before,
                ..
            },
            SealedRow::Grant { answers, .. },
        ) => step
            .prepare_cached(RESEAL_GRANT)?
            .execute((key, answers, before))?,
        (SealedRow::Question { .. } | SealedRow::Result { .. } | SealedRow::Grant { .. }, _) => 0,
    };
    Ok(changed == 1)
}
