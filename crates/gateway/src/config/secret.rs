//! Secrets of the file: read from the environment or from a separate file, never from the text.

use std::path::PathBuf;

pub use mcp_elicit_core::secret::SecretText;
use mcp_elicit_record::state_file::{open_named, warn_if_exposed};
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
            Self::File(FromFile { file }) => open_named(file)
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

/// The settings whose text is the name of a variable with a secret.
const NAMED: [&str; 2] = ["token-env", "client-secret-env"];

/// Returns the environment variables that a file names for secrets.
pub(super) fn variables_of_secrets(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok(file) = toml::from_str::<toml::Table>(text) {
        add_variables(&file, &mut names);
    }
    names
}

fn add_variables(table: &toml::Table, names: &mut Vec<String>) {
    for (key, value) in table {
        match value {
            toml::Value::String(name) if is_variable(table, key) => names.push(name.clone()),
            toml::Value::Table(inner) => add_variables(inner, names),
            toml::Value::Array(all) => {
                let inner = all.iter().filter_map(toml::Value::as_table);
                inner.for_each(|inner| add_variables(inner, names));
            }
            _ => {}
        }
    }
}

/// Returns `true` if the text of this setting is the name of a variable: of `{ env = "NAME" }`, which has no other member.
fn is_variable(table: &toml::Table, key: &str) -> bool {
    NAMED.contains(&key) || key == "env" && table.len() == 1
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

    #[cfg(unix)]
    #[test]
    fn a_pipe_or_a_device_in_the_place_of_a_secret_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for file in [pipe, "/dev/zero".into()] {
            let secret = FileSecret::File(FromFile { file });
            let refused = secret.read("record-password").unwrap_err().to_string();
            assert!(refused.contains("it is not a regular file"), "{refused}");
        }
    }

    #[test]
    fn every_variable_of_a_secret_is_found() {
        let file = "record-password = { env = \"A\" }\n[auth.oidc]\nclient-secret = { env = 'B' }\n\
            [channels.slack]\ntoken.env = \"C\"\n[[channels.hooks]]\nheaders = [{ value = { env = \"D\" } }]\n\
            [servers.s]\ntoken-env = \"E\"\nclient-secret-env = \"F\"\n[servers.t]\nenv = { SET = \"no\" }\n\
            proxy = { file = \"G\" }\n";
        let mut names = variables_of_secrets(file);
        names.sort();
        assert_eq!(names, ["A", "B", "C", "D", "E", "F"]);
    }

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
