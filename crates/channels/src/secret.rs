//! Secrets from the environment and from files. A secret is never text in the configuration.

use std::fmt;
use std::io::Read as _;
use std::path::PathBuf;

/// The longest secret that is read, in bytes.
const LONGEST: u64 = 64 * 1024;

/// The place of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// An environment variable.
    Env(String),
    /// A file.
    File(PathBuf),
}

/// A secret that was read. Its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// A secret that came from elsewhere.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the secret.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
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

impl Secret {
    /// Reads the secret; `env` gives environment variables. Space and line breaks around it are left out.
    pub fn read(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<SecretText, SecretError> {
        let (text, place) = match self {
            Self::Env(name) => {
                let text = env(name).ok_or_else(|| SecretError::NotSet(name.clone()))?;
                (text, name.clone())
            }
            Self::File(path) => {
                let failed = |error| SecretError::File(path.clone(), error);
                let file = std::fs::File::open(path).map_err(failed)?;
                let mut bytes = Vec::new();
                file.take(LONGEST + 1)
                    .read_to_end(&mut bytes)
                    .map_err(failed)?;
                let place = path.display().to_string();
                let text =
                    String::from_utf8(bytes).map_err(|_| SecretError::Unusable(place.clone()))?;
                (text, place)
            }
        };
        let text = text.trim();
        let is_usable = !text.is_empty()
            && u64::try_from(text.len()).is_ok_and(|length| length <= LONGEST)
            && !text.contains(char::is_control);
        is_usable
            .then(|| SecretText(text.to_owned()))
            .ok_or(SecretError::Unusable(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_come_from_the_environment_and_from_files() {
        let env = |name: &str| (name == "TOKEN").then(|| "abc".to_owned());
        let read = |secret: &Secret| secret.read(&env);
        let token = read(&Secret::Env("TOKEN".to_owned())).unwrap();
        assert_eq!(token.reveal(), "abc");
        assert_eq!(format!("{token:?}"), "***");
        assert!(read(&Secret::Env("OTHER".to_owned())).is_err());

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for (written, usable) in [("abc\n", true), ("\n", false), ("a\nb\n", false)] {
            std::fs::write(&path, written).unwrap();
            let secret = read(&Secret::File(path.clone()));
            assert_eq!(secret.is_ok(), usable, "{written:?}");
        }
        std::fs::write(&path, "x".repeat(65 * 1024)).unwrap();
        assert!(read(&Secret::File(path.clone())).is_err());
        assert!(read(&Secret::File(folder.path().to_owned())).is_err());
    }
}
