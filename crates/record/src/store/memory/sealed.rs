//! Sealed values in memory.

use super::super::{RecordStoreError, ResealedRow, SealedQuery, SealedRow, SealedTable};
use super::MemoryTables;
use crate::encryption::sealed_texts;
use crate::store::Row;

impl MemoryTables {
    /// Returns the sealed values of rows, by id or key.
    pub(super) fn sealed_rows(
        &self,
        query: &SealedQuery,
    ) -> Result<Vec<SealedRow>, RecordStoreError> {
        let mut found = Vec::new();
        match query.table {
            SealedTable::Questions => {
                for row in self.rows.values() {
                    found.push(question(row)?);
                }
            }
            SealedTable::Results => {
                found.extend(self.calls.values().map(|call| SealedRow::Result {
                    id: call.id.clone(),
                    result: call.result.clone(),
                }));
            }
            SealedTable::Grants => {
                found.extend(self.grants.values().map(|grant| SealedRow::Grant {
                    key: grant.key.clone(),
                    at: grant.at,
                    until: grant.until,
                    answers: grant.answers.clone(),
                }));
            }
        }
        found.retain(|row| row.key() > query.after.as_str() && has_others(row, &query.newest));
        found.truncate(query.most);
        Ok(found)
    }

    /// Changes a row that is as before; returns `false` for any other.
    pub(super) fn reseal(&mut self, change: &ResealedRow) -> Result<bool, RecordStoreError> {
        match &change.after {
            SealedRow::Question {
                id,
                arguments,
                content,
                team,
                ..
            } => {
                let Some(row) = self.rows.get_mut(id) else {
                    return Ok(false);
                };
                if question(row)? != change.before {
                    return Ok(false);
                }
                row.team = team.as_deref().map(serde_json::from_str).transpose()?;
                row.arguments.clone_from(arguments);
                row.content.clone_from(content);
                Ok(true)
            }
            SealedRow::Result { id, result } => {
                let known = self.calls.get_mut(id);
                let before = |call: &&mut super::FinishedCall| match &change.before {
                    SealedRow::Result { result, .. } => call.result == *result,
                    SealedRow::Question { .. } | SealedRow::Grant { .. } => false,
                };
                let Some(call) = known.filter(before) else {
                    return Ok(false);
                };
                call.result.clone_from(result);
                Ok(true)
            }
            SealedRow::Grant { key, answers, .. } => {
                let known = self.grants.get_mut(key);
                let before = |grant: &&mut super::StoredGrant| match &change.before {
                    SealedRow::Grant { answers, .. } => grant.answers == *answers,
                    SealedRow::Question { .. } | SealedRow::Result { .. } => false,
                };
                let Some(grant) = known.filter(before) else {
                    return Ok(false);
                };
                grant.answers.clone_from(answers);
                Ok(true)
            }
        }
    }
}

fn question(row: &Row) -> Result<SealedRow, RecordStoreError> {
    let team = row.team.as_ref().map(serde_json::to_string).transpose()?;
    Ok(SealedRow::Question {
        id: row.id.clone(),
        version: row.lifecycle.version(),
        arguments: row.arguments.clone(),
        content: row.content.clone(),
        team,
    })
}

/// Returns `true` if a value does not begin with `newest`, or if there are texts of people.
fn has_others(row: &SealedRow, newest: &[u8]) -> bool {
    let is_other = |value: &Vec<u8>| !value.starts_with(newest);
    match row {
        SealedRow::Question {
            arguments,
            content,
            team,
            ..
        } => {
            let has_texts = |team: &String| sealed_texts(team).next().is_some();
            team.as_ref().is_some_and(has_texts) || arguments.iter().chain(content).any(is_other)
        }
        SealedRow::Result { result, .. } => is_other(result),
        SealedRow::Grant { answers, .. } => is_other(answers),
    }
}
