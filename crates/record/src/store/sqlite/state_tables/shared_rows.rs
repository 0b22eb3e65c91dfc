//! Shared values, in SQLite.

use rusqlite::{Connection, OptionalExtension as _, Transaction};

use super::super::super::shared_rows::{
    RowChanges, SharedEntity, SharedRow, SharedRowStore, SharedRowsChange,
};
use super::super::super::{Crash, RecordStoreError};
use super::super::questions::signed;
use super::{StateTables, UsedTables, unsigned};

const WRITE: &str = "INSERT INTO shared (entity, kind, id, value) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (entity, kind, id) DO UPDATE SET value = excluded.value";
const REMOVE: &str = "DELETE FROM shared WHERE entity = ?1 AND kind = ?2 AND id = ?3";
/// The version of a value that was moved from the file of an earlier version and never changed since.
const MOVED: u64 = 1;

impl SharedRowStore for StateTables {
    fn version(&self, entity: SharedEntity) -> Result<u64, RecordStoreError> {
        self.read(UsedTables::Shared(entity), |connection| {
            version(connection, entity)
        })
    }

    fn rows(&self, entity: SharedEntity) -> Result<(u64, Vec<SharedRow>), RecordStoreError> {
        self.read(UsedTables::Shared(entity), |connection| {
            // One view of both.
            let view = connection.unchecked_transaction()?;
            Ok((version(&view, entity)?, rows(&view, entity)?))
        })
    }

    fn change(
        &self,
        entity: SharedEntity,
        known: u64,
        change: &mut SharedRowsChange<'_>,
    ) -> Result<u64, RecordStoreError> {
        let mut has_removed = false;
        let done = self.change(UsedTables::Shared(entity), Crash::Machine, |step| {
            let before = version(step, entity)?;
            let read = if before == known {
                None
            } else {
                Some(rows(step, entity)?)
            };
            match change(before, read) {
                Some(changes) if changes != RowChanges::default() => {
                    has_removed = !changes.removed.is_empty();
                    write(step, entity, &changes)?;
                    let after = before.max(MOVED) + 1;
                    set_version(step, entity, after)?;
                    Ok(after)
                }
                Some(_) | None => Ok(before),
            }
        })?;
        if has_removed {
            // The log has the address of a device that has ended.
            self.lock().file.cut_log()?;
        }
        Ok(done)
    }
}

/// Writes the contents of an earlier version's file, unless the value was changed since they were moved: what ended in
/// between stays so.
pub(super) fn move_in(
    step: &Transaction<'_>,
    entity: SharedEntity,
    written: Vec<SharedRow>,
) -> Result<(), RecordStoreError> {
    if version(step, entity)? > MOVED {
        tracing::warn!(
            entity = entity.name,
            "the file of an earlier version came back; it is ignored"
        );
        return Ok(());
    }
    step.execute("DELETE FROM shared WHERE entity = ?1", [entity.name])?;
    let changes = RowChanges {
        written,
        removed: Vec::new(),
    };
    write(step, entity, &changes)?;
    set_version(step, entity, MOVED)
}

fn write(
    step: &Transaction<'_>,
    entity: SharedEntity,
    changes: &RowChanges,
) -> Result<(), RecordStoreError> {
    let mut remove = step.prepare_cached(REMOVE)?;
    for (kind, id) in &changes.removed {
        remove.execute((entity.name, kind, id))?;
    }
    let mut write = step.prepare_cached(WRITE)?;
    for SharedRow { key, value } in &changes.written {
        write.execute((entity.name, &key.0, &key.1, value))?;
    }
    Ok(())
}

fn version(connection: &Connection, entity: SharedEntity) -> Result<u64, RecordStoreError> {
    let text = "SELECT version FROM shared_version WHERE entity = ?1";
    let mut statement = connection.prepare_cached(text)?;
    let version: Option<i64> = statement
        .query_row([entity.name], |row| row.get(0))
        .optional()?;
    Ok(version.map_or(0, unsigned))
}

fn set_version(
    step: &Transaction<'_>,
    entity: SharedEntity,
    to: u64,
) -> Result<(), RecordStoreError> {
    let text = "INSERT OR REPLACE INTO shared_version (entity, version) VALUES (?1, ?2)";
    step.prepare_cached(text)?
        .execute((entity.name, signed(to)))?;
    Ok(())
}

fn rows(connection: &Connection, entity: SharedEntity) -> Result<Vec<SharedRow>, RecordStoreError> {
    let text = "SELECT kind, id, value FROM shared WHERE entity = ?1 ORDER BY number";
    let mut statement = connection.prepare_cached(text)?;
    let rows = statement.query_map([entity.name], |row| {
        Ok(SharedRow {
            key: (row.get(0)?, row.get(1)?),
            value: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
