//! The links of the audit that match a selection.

use std::ops::Range;

use super::super::{AuditEntry, RecordStoreError};
use super::all;
use super::file::SqliteFile;
use super::questions::{counted, millis, signed};
use crate::audit::AuditFilter;

/// Selects links by the members of their entries. An entry that is not JSON, which no gateway writes, matches nothing.
const MATCHING: &str = "SELECT number, entry, hash FROM audit WHERE number >= ?1 AND number < ?2 AND CASE WHEN NOT json_valid(entry) THEN 0 ELSE \
    (?3 IS NULL OR json_extract(entry, '$.event') IN (SELECT value FROM json_each(?3))) \
    AND (?4 IS NULL OR json_extract(entry, '$.server') = ?4) \
    AND (?5 IS NULL OR substr(json_extract(entry, '$.id'), 1, length(?5)) = ?5) \
    AND (?6 IS NULL OR json_extract(entry, '$.id') IN (SELECT value FROM json_each(?6))) \
    AND (?7 IS NULL OR json_extract(entry, '$.person') = ?7 OR json_extract(entry, '$.by') = ?7 \
      OR instr(', ' || json_extract(entry, '$.by') || ', person:', ', person:' || ?7 || ', person:') > 0) \
    AND (?8 IS NULL OR EXISTS (SELECT 1 FROM json_each(?8) \
      WHERE substr(json_extract(entry, '$.principal'), 1, length(value)) = value)) \
    AND (?9 IS NULL OR json_extract(entry, '$.at') >= ?9) \
    AND (?10 IS NULL OR json_extract(entry, '$.at') < ?10) \
    AND (?11 IS NULL OR json_extract(entry, '$.call') = ?11) \
    END ORDER BY number DESC LIMIT ?12";

/// Selects links by their numbers.
const ALL: &str = "SELECT number, entry, hash FROM audit WHERE number >= ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3";

/// Reads the columns `number`, `entry` and `hash`.
pub(super) fn read_link(row: &rusqlite::Row<'_>) -> Result<AuditEntry, RecordStoreError> {
    let number: i64 = row.get(0)?;
    Ok(AuditEntry {
        number: u64::try_from(number).unwrap_or(0),
        entry: row.get(1)?,
        hash: row.get(2)?,
    })
}

impl SqliteFile {
    /// Returns the latest links with these numbers that match.
    pub(super) fn audit_matching(
        &mut self,
        filter: &AuditFilter,
        within: Range<u64>,
        most: usize,
    ) -> Result<Vec<AuditEntry>, RecordStoreError> {
        let (from, until) = (signed(within.start), signed(within.end));
        if filter.is_empty() {
            return all(self, ALL, (from, until, counted(most)), read_link);
        }
        let list = |values: &[String]| -> Result<Option<String>, RecordStoreError> {
            if values.is_empty() {
                return Ok(None);
            }
            Ok(Some(serde_json::to_string(values)?))
        };
        let values = rusqlite::params![
            from,
            until,
            list(&filter.events)?,
            filter.server,
            filter.question,
            list(&filter.questions)?,
            filter.person,
            list(&filter.callers)?,
            filter.since.map(millis),
            filter.until.map(millis),
            filter.call,
            counted(most),
        ];
        all(self, MATCHING, values, read_link)
    }
}
