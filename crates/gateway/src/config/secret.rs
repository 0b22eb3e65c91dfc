//! Secrets of the file: read from the environment or from a file of their own, never from the text.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

use super::ConfigError;

/// A secret. No debug print shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// A text that is a secret.
    #[cfg(feature = "teams")]
    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the secret, for the request that it goes with.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(***)")
    }
}

/// The location of a secret: `{ env = "NAME" }` or `{ file = "PATH" }`.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum FileSecret {
    Env(FromEnvironment),
    File(FromFile),
    /// Anything else, a secret itself among it.
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FromEnvironment {
    env: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FromFile {
    file: PathBuf,
}

impl FileSecret {
    /// Reads the secret of this setting.
    ///
    /// # Errors
    /// When it stands in the file itself, or is not where the file says. The error does not show it.
    pub(super) fn read(&self, setting: &str) -> Result<SecretText, ConfigError> {
        let fault = |why: String| ConfigError::Secret {
            setting: setting.to_owned(),
            why,
        };
        let text = match self {
            Self::Env(FromEnvironment { env }) => std::env::var(env)
                .map_err(|_| fault(format!("the environment variable {env} is not set")))?,
            Self::File(FromFile { file }) => std::fs::read_to_string(file)
                .map_err(|error| fault(format!("{}: {error}", file.display())))?,
            Self::Other(_) => {
                let why = "write { env = \"NAME\" } or { file = \"PATH\" }, and the secret there";
                return Err(fault(why.to_owned()));
            }
        };
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(fault("it is empty, or has more than one line".to_owned()));
        }
        Ok(SecretText(text.to_owned()))
    }
}
