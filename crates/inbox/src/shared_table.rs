//! A value of the record that several processes read and change.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use mcp_elicit_record::store::RecordStoreError;
use mcp_elicit_record::store::shared_rows::{
    RowChanges, RowKey, SharedEntity, SharedRow, SharedRowStore,
};

/// A value that a [`SharedTable`] holds.
pub(crate) trait SharedValue: Clone + Serialize + DeserializeOwned {
    /// Its kind in the store.
    const ENTITY: SharedEntity;
    /// The error for other content.
    const UNREADABLE: &'static str;
    /// `true` if a fresh value replaces other content at the next change; otherwise nothing is changed until the content
    /// is fixed or removed.
    const REPLACED: bool;

    /// Creates the value where there is none.
    ///
    /// # Errors
    /// If there is no randomness.
    fn fresh() -> io::Result<Self>;

    /// Returns `true` if the parsed value is valid.
    fn is_sound(&self) -> bool;
}

/// A value in a store. A change by another process is seen at the next read.
pub(crate) struct SharedTable<T> {
    store: Arc<dyn SharedRowStore>,
    known: Mutex<KnownValue<T>>,
}

impl<T> fmt::Debug for SharedTable<T> {
    /// Formats the store only: the value is about people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTable")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// The value as last read or changed here, and its rows.
struct KnownValue<T> {
    version: u64,
    /// `None` if there is none, or the rows have no such value.
    value: Option<Arc<T>>,
    rows: HashMap<RowKey, String>,
}

impl<T> Default for KnownValue<T> {
    fn default() -> Self {
        Self {
            version: 0,
            value: None,
            rows: HashMap::new(),
        }
    }
}

impl<T: SharedValue> KnownValue<T> {
    fn read(version: u64, rows: Vec<SharedRow>) -> Self {
        let value = T::ENTITY.compose(&rows);
        let value: Option<T> = value.and_then(|value| serde_json::from_value(value).ok());
        Self {
            version,
            value: value.filter(T::is_sound).map(Arc::new),
            rows: rows.into_iter().map(|row| (row.key, row.value)).collect(),
        }
    }

    /// Returns the value; `None` if there is none, or if it is replaced.
    fn checked(&self) -> io::Result<Option<Arc<T>>> {
        if self.version == 0 || self.value.is_some() {
            return Ok(self.value.clone());
        }
        if !T::REPLACED {
            return Err(io::Error::new(io::ErrorKind::InvalidData, T::UNREADABLE));
        }
        tracing::warn!("{}", T::UNREADABLE);
        Ok(None)
    }

    /// Returns this value after a change, and the rows that differ.
    fn changed_to(&self, value: T) -> io::Result<(Self, RowChanges)> {
        let divided = T::ENTITY.divide(serde_json::to_value(&value)?);
        let divided = divided.ok_or_else(|| io::Error::other("the value has no rows"))?;
        let mut rows = HashMap::with_capacity(divided.len());
        let mut changes = RowChanges::default();
        for row in divided {
            if self.rows.get(&row.key) != Some(&row.value) {
                changes.written.push(row.clone());
            }
            rows.insert(row.key, row.value);
        }
        let removed = self.rows.keys().filter(|key| !rows.contains_key(*key));
        changes.removed.extend(removed.cloned());
        let next = Self {
            version: self.version,
            value: Some(Arc::new(value)),
            rows,
        };
        Ok((next, changes))
    }
}

impl<T: SharedValue> SharedTable<T> {
    /// Creates the value in this store, in which it is written at the first change.
    pub(crate) fn of(store: Arc<dyn SharedRowStore>) -> Self {
        Self {
            store,
            known: Mutex::default(),
        }
    }

    /// Returns the current value; `None` if there is none, or other content.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) fn read(&self) -> io::Result<Option<Arc<T>>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.store.version(T::ENTITY).map_err(into_io)?;
        if version != known.version {
            let (version, rows) = self.store.rows(T::ENTITY).map_err(into_io)?;
            *known = KnownValue::read(version, rows);
        }
        known.checked()
    }

    /// Changes the value, in one process at a time. A failed change has no effect.
    ///
    /// # Errors
    /// If the store cannot be read or written, or `change` fails.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> io::Result<R>) -> io::Result<R> {
        self.try_change(change)
    }

    /// Changes the value like [`change`](Self::change), with other errors.
    ///
    /// # Errors
    /// If the store cannot be read or written, or `change` fails.
    pub(crate) fn try_change<R, E: From<io::Error>>(
        &self,
        change: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut change, mut outcome) = (Some(change), None);
        let mut next = None;
        let version = self
            .store
            .change(T::ENTITY, known.version, &mut |version, rows| {
                if let Some(rows) = rows {
                    *known = KnownValue::read(version, rows);
                }
                let result = change.take().map(|change| changed(&known, change));
                let (changes, done) = match result? {
                    Ok((after, changes, done)) => {
                        next = Some(after);
                        (Some(changes), Ok(done))
                    }
                    Err(error) => (None, Err(error)),
                };
                outcome = Some(done);
                changes
            });
        let version = version.map_err(into_io)?;
        if let Some(next) = next {
            *known = KnownValue { version, ..next };
        }
        outcome.unwrap_or_else(|| Err(io::Error::other("the change was not made").into()))
    }
}

/// Applies a change to a value.
fn changed<T: SharedValue, R, E: From<io::Error>>(
    known: &KnownValue<T>,
    change: impl FnOnce(&mut T) -> Result<R, E>,
) -> Result<(KnownValue<T>, RowChanges, R), E> {
    let mut value = match known.checked()? {
        Some(value) => T::clone(&value),
        None => T::fresh()?,
    };
    let done = change(&mut value)?;
    let (next, changes) = known.changed_to(value)?;
    Ok((next, changes, done))
}

fn into_io(error: RecordStoreError) -> io::Error {
    match error {
        RecordStoreError::File(error) => error,
        error if error.is_disk_full() => io::Error::new(io::ErrorKind::StorageFull, error),
        error => io::Error::other(error),
    }
}
