//! Secrets of the file: read from the environment or from a separate file, never from the text.

use std::fs::File;
use std::path::PathBuf;

pub use mcp_elicit_core::secret::SecretText;
use mcp_elicit_record::state_file::warn_if_exposed;
use serde::Deserialize;

use super::ConfigError;

/// The location of a secret: `{ env = "NAME" }` or `{ file = "PATH" }`.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum FileSecret {
    Env(FromEnvironment),
    File(FromFile),
    /// Anything else, such as a secret itself.
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
    /// If it is in the file itself, or not where the file says. The error does not show it.
    pub(super) fn read(&self, setting: &str) -> Result<SecretText, ConfigError> {
        let fault = |why: String| ConfigError::Secret {
            setting: setting.to_owned(),
            why,
        };
        let secret = match self {
            Self::Env(FromEnvironment { env }) => {
                let text = std::env::var(env)
                    .map_err(|_| fault(format!("the environment variable {env} is not set; set it before the gateway starts")))?;
                SecretText::from_line(&text)
            }
            Self::File(FromFile { file }) => File::open(file)
                .inspect(|opened| warn_if_exposed(file, opened))
                .and_then(SecretText::read)
                .map_err(|error| fault(format!("{}: {error}; write the secret into this file, or name the file that has it", file.display())))?,
            Self::Other(_) => {
                let why = "write { env = \"NAME\" } or { file = \"PATH\" }, and the secret there";
                return Err(fault(why.to_owned()));
            }
        };
        let why = "it is empty, too long, not text, or has more than one line";
        secret.ok_or_else(|| fault(why.to_owned()))
    }
}

/// Returns each environment variable that the file names for a secret and that is not set, with its line.
pub fn unset_variables(text: &str) -> Vec<String> {
    unset_among(text, |name| std::env::var_os(name).is_some())
}

/// Returns each `{ env = "NAME" }` of a file whose variable is not set by `is_set`, with its line.
fn unset_among(text: &str, is_set: impl Fn(&str) -> bool) -> Vec<String> {
    let mut unset = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with('#') {
            continue;
        }
        for inside in line.split('{').skip(1) {
            let name = inside
                .trim_start()
                .strip_prefix("env")
                .and_then(|rest| rest.trim_start().strip_prefix('='))
                .and_then(|rest| rest.trim_start().strip_prefix(['"', '\'']))
                .and_then(|rest| rest.split(['"', '\'']).next());
            if let Some(name) = name.filter(|name| !is_set(name)) {
                unset.push(format!("line {}: {name}", number + 1));
            }
        }
    }
    unset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_of_a_secret_that_is_not_set_is_named_with_its_line() {
        let file = "[channels.slack]\ntoken = { env = \"A\" }\nsigning-secret = {env='B'} # { env = \"C\" }\n\
            # x = { env = \"D\" }\nproxy = { file = \"E\" }\nenv = { F = \"G\" }\ntoken = { env = \"SET\" }";
        assert_eq!(
            unset_among(file, |name| name == "SET"),
            ["line 2: A", "line 3: B", "line 3: C"]
        );
    }
}
