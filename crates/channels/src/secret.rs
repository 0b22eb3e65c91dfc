//! Secrets from the environment and from files. A secret is never text in the configuration.

use std::fs::{self, File};
use std::io;
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
    File(PathBuf, #[source] io::Error),
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
                let opened = open_regular(path).inspect(|file| warn_if_exposed(path, file));
                let read = opened.and_then(SecretText::read);
                let read = read.map_err(|error| SecretError::File(path.clone(), error))?;
                read.ok_or_else(|| SecretError::Unusable(path.display().to_string()))
            }
        }
    }
}

/// Opens a regular file. A pipe in its place would have to be waited for.
fn open_regular(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other("it is not a regular file"))
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
            fs::write(&path, written).unwrap();
            let secret = read(&SecretSource::File(path.clone()));
            assert_eq!(secret.is_ok(), usable, "{written:?}");
        }
        fs::write(&path, "x".repeat(65 * 1024)).unwrap();
        assert!(read(&SecretSource::File(path.clone())).is_err());
        let pipe = folder.path().join("pipe");
        if cfg!(unix) {
            let made = std::process::Command::new("mkfifo").arg(&pipe).status();
            assert!(made.unwrap().success());
        }
        // None of them is waited for.
        for path in [pipe, folder.path().to_owned(), "/dev/zero".into()] {
            let refused = read(&SecretSource::File(path)).unwrap_err();
            assert!(matches!(refused, SecretError::File(..)), "{refused}");
        }
    }
}
