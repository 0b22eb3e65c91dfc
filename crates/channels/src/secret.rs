//! Secrets from the environment and from files. A secret is never text in the configuration.

use std::fs::File;
use std::path::{Path, PathBuf};

pub use mcp_elicit_core::secret::SecretText;

/// The source of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable.
    Env(String),
    /// A file.
    File(PathBuf),
}

/// A secret that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is not set.
    #[error("the environment variable {0} is not set")]
    NotSet(String),
    /// The file cannot be read.
    #[error("cannot read {0}")]
    File(PathBuf, #[source] std::io::Error),
    /// The file or variable has no text.
    #[error("{0} is empty, too long or not text")]
    Unusable(String),
}

impl SecretSource {
    /// Reads the secret; `env` returns environment variables. Surrounding white space is removed.
    pub fn read(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<SecretText, SecretError> {
        match self {
            Self::Env(name) => {
                let text = env(name).ok_or_else(|| SecretError::NotSet(name.clone()))?;
                SecretText::from_line(&text).ok_or_else(|| SecretError::Unusable(name.clone()))
            }
            Self::File(path) => {
                let opened = File::open(path).inspect(|file| warn_if_exposed(path, file));
                let read = opened.and_then(SecretText::read);
                let read = read.map_err(|error| SecretError::File(path.clone(), error))?;
                read.ok_or_else(|| SecretError::Unusable(path.display().to_string()))
            }
        }
    }
}

/// Warns if other users of the machine may read or change this opened file.
fn warn_if_exposed(path: &Path, file: &File) {
    #[cfg(unix)]
    if let Ok(known) = file.metadata() {
        use std::os::unix::fs::PermissionsExt as _;
        if let Some(others) = SecretText::exposure(known.permissions().mode()) {
            let path = path.display();
            tracing::warn!(
                "{path} holds a secret, and other users of this machine {others}: run `chmod 600 {path}`"
            );
        }
    }
    #[cfg(not(unix))]
    let _decided_by_the_folder = (path, file);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_come_from_the_environment_and_from_files() {
        let env = |name: &str| (name == "TOKEN").then(|| "abc".to_owned());
        let read = |secret: &SecretSource| secret.read(&env);
        let token = read(&SecretSource::Env("TOKEN".to_owned())).unwrap();
        assert_eq!(token.reveal(), "abc");
        assert_eq!(format!("{token:?}"), "***");
        assert!(read(&SecretSource::Env("OTHER".to_owned())).is_err());

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for (written, usable) in [("abc\n", true), ("\n", false), ("a\nb\n", false)] {
            std::fs::write(&path, written).unwrap();
            let secret = read(&SecretSource::File(path.clone()));
            assert_eq!(secret.is_ok(), usable, "{written:?}");
        }
        std::fs::write(&path, "x".repeat(65 * 1024)).unwrap();
        assert!(read(&SecretSource::File(path.clone())).is_err());
        assert!(read(&SecretSource::File(folder.path().to_owned())).is_err());
    }
}
