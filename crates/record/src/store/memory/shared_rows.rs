//! Shared values, in memory.

use super::super::RecordStoreError;
use super::super::shared_rows::{
    RowChanges, SharedEntity, SharedRow, SharedRowStore, SharedRowsChange,
};
use super::Memory;

/// One value.
#[derive(Debug, Default)]
pub(super) struct SharedValueRows {
    version: u64,
    rows: Vec<SharedRow>,
}

impl SharedValueRows {
    fn write(&mut self, changes: RowChanges) {
        self.rows.retain(|row| !changes.removed.contains(&row.key));
        for row in changes.written {
            match self.rows.iter_mut().find(|known| known.key == row.key) {
                Some(known) => *known = row,
                None => self.rows.push(row),
            }
        }
    }
}

impl SharedRowStore for Memory {
    fn version(&self, entity: SharedEntity) -> Result<u64, RecordStoreError> {
        Ok(self.with(|inner| {
            let shared = inner.shared.get(entity.name);
            shared.map_or(0, |shared| shared.version)
        }))
    }

    fn rows(&self, entity: SharedEntity) -> Result<(u64, Vec<SharedRow>), RecordStoreError> {
        Ok(self.with(|inner| {
            let shared = inner.shared.get(entity.name);
            shared.map_or((0, Vec::new()), |shared| {
                (shared.version, shared.rows.clone())
            })
        }))
    }

    fn change(
        &self,
        entity: SharedEntity,
        known: u64,
        change: &mut SharedRowsChange<'_>,
    ) -> Result<u64, RecordStoreError> {
        Ok(self.with(|inner| {
            let shared = inner.shared.entry(entity.name).or_default();
            let rows = (shared.version != known).then(|| shared.rows.clone());
            match change(shared.version, rows) {
                Some(changes) if changes != RowChanges::default() => {
                    shared.write(changes);
                    shared.version += 1;
                }
                Some(_) | None => {}
            }
            shared.version
        }))
    }
}
