//! A value that is replaced as a whole while it is used.

use std::sync::{Arc, PoisonError, RwLock};

/// A value that is replaced as a whole: whoever has read it keeps it as it was.
#[derive(Debug)]
pub(crate) struct Replaceable<T: ?Sized>(RwLock<Arc<T>>);

impl<T: ?Sized> Replaceable<T> {
    /// Creates one with its first value.
    pub(crate) fn new(value: Arc<T>) -> Self {
        Self(RwLock::new(value))
    }

    /// Returns the value as it is now.
    pub(crate) fn get(&self) -> Arc<T> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Replaces the value.
    pub(crate) fn set(&self, value: Arc<T>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }

    /// Replaces the value by what `next` makes of it, unless that is `None`. Nobody else replaces it meanwhile.
    pub(crate) fn update(&self, next: impl FnOnce(&T) -> Option<Arc<T>>) {
        let mut value = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(next) = next(&value) {
            *value = next;
        }
    }
}

impl<T: ?Sized> Default for Replaceable<T>
where
    Arc<T>: Default,
{
    fn default() -> Self {
        Self::new(Arc::default())
    }
}
