//! The database of a record that several machines share.

use std::fmt;

use serde::Deserialize;

use super::secret::FileSecret;
use super::{ConfigError, Program, SecretText};

/// The settings of a file that say where the record is.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RecordSettings {
    #[serde(default)]
    record: Option<String>,
    #[serde(default)]
    record_password: Option<FileSecret>,
    #[serde(default)]
    record_password_command: Option<Vec<String>>,
}

/// Returns the database of a file whose other settings may be invalid; `None` if its record is in none.
///
/// # Errors
/// If the password is not where the file says.
pub fn record_database(text: &str) -> Result<Option<RecordDatabase>, ConfigError> {
    let Ok(file) = toml::from_str::<RecordSettings>(text) else {
        return Ok(None);
    };
    let Some(address) = file.record.filter(|text| RecordDatabase::is_address(text)) else {
        return Ok(None);
    };
    let password = password_in(file.record_password.as_ref(), file.record_password_command)?;
    Ok(Some(RecordDatabase::new(address, password)))
}

/// Returns the password of a file.
///
/// # Errors
/// If it is not where the file says, or the file has two.
pub(super) fn password_in(
    secret: Option<&FileSecret>,
    command: Option<Vec<String>>,
) -> Result<Option<RecordPassword>, ConfigError> {
    let fault = |why: &str| ConfigError::Secret {
        setting: "record-password-command".to_owned(),
        why: why.to_owned(),
    };
    match (secret, command) {
        (None, None) => Ok(None),
        (Some(secret), None) => {
            let text = secret.read("record-password")?;
            Ok(Some(RecordPassword::Text(text)))
        }
        (None, Some(words)) => {
            let program = Program::from_words(words);
            let program = program.ok_or_else(|| fault("it names no program"))?;
            Ok(Some(RecordPassword::Command(program)))
        }
        (Some(_), Some(_)) => Err(fault("there is `record-password` too: leave one out")),
    }
}

/// The password of a record's database.
#[derive(Clone)]
pub enum RecordPassword {
    /// The password itself.
    Text(SecretText),
    /// A program that prints it on one line, run for each new connection.
    Command(Program),
}

/// The address of a record's database, and its password.
#[derive(Clone)]
pub struct RecordDatabase {
    address: String,
    password: Option<RecordPassword>,
}

impl fmt::Debug for RecordDatabase {
    /// Formats nothing of the address, which may contain a password by mistake.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordDatabase").finish_non_exhaustive()
    }
}

impl RecordDatabase {
    /// Creates the settings of a database.
    pub fn new(address: String, password: Option<RecordPassword>) -> Self {
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
    pub fn password(&self) -> Option<&RecordPassword> {
        self.password.as_ref()
    }
}
