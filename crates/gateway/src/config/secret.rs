//! Secrets of the file: read from the environment or from a file of their own, never from the text.

use std::fs::File;
use std::path::PathBuf;

pub use mcp_elicit_core::secret::SecretText;
use serde::Deserialize;

use super::ConfigError;

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
        let secret = match self {
            Self::Env(FromEnvironment { env }) => {
                let text = std::env::var(env)
                    .map_err(|_| fault(format!("the environment variable {env} is not set")))?;
                SecretText::from_line(&text)
            }
            Self::File(FromFile { file }) => File::open(file)
                .and_then(SecretText::read)
                .map_err(|error| fault(format!("{}: {error}", file.display())))?,
            Self::Other(_) => {
                let why = "write { env = \"NAME\" } or { file = \"PATH\" }, and the secret there";
                return Err(fault(why.to_owned()));
            }
        };
        let why = "it is empty, too long, not text, or has more than one line";
        secret.ok_or_else(|| fault(why.to_owned()))
    }
}
