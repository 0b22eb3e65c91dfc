//! The database of a record that several machines share.

use std::fmt;

use super::SecretText;

/// The address of a record's database, and its password.
#[derive(Clone)]
pub struct RecordDatabase {
    address: String,
    password: Option<SecretText>,
}

impl fmt::Debug for RecordDatabase {
    /// Formats nothing of the address, which may contain a password by mistake.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordDatabase").finish_non_exhaustive()
    }
}

impl RecordDatabase {
    /// Creates the settings of a database.
    pub fn new(address: String, password: Option<SecretText>) -> Self {
        Self { address, password }
    }

    /// Returns `true` if the text is the address of a database.
    pub fn is_address(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Returns the address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the password, if it was configured; else `PGPASSWORD` and `PGPASSFILE` may have one.
    pub fn password(&self) -> Option<&SecretText> {
        self.password.as_ref()
    }
}
