//! The settings of the file that a running gateway keeps until a restart, for comparison with a changed file.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};
use toml::{Table, Value};

/// The tables and keys that are read again while the gateway runs.
const READ_AGAIN: [&str; 5] = ["people", "groups", "roles", "rules", "time-zone"];

/// The settings that need a restart, by name: a digest of each, since some contain secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestartSettings(BTreeMap<String, [u8; 32]>);

/// The names of the settings that differ between two files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// Settings that rules depend on: the servers, the proofs of callers and people, and the presence of a listener and
    /// an inbox.
    pub(crate) judging: Vec<String>,
    /// All others.
    pub(crate) others: Vec<String>,
}

impl RestartSettings {
    /// Reads the settings of a file; `None` if it is not TOML.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let file: Table = toml::from_str(text).ok()?;
        let mut settings = BTreeMap::new();
        let mut add = |name: String, value: &Value| {
            settings.insert(name, Sha256::digest(value.to_string()).into());
        };
        for (key, value) in &file {
            match (key.as_str(), value) {
                (key, _) if READ_AGAIN.contains(&key) => {}
                ("channels", channels) => {
                    if let Some(push) = channels.get("push") {
                        add("[channels.push]".to_owned(), push);
                    }
                }
                ("servers", Value::Table(servers)) => {
                    for (name, server) in servers {
                        add(format!("[servers.{name}]"), server);
                    }
                }
                (key, Value::Table(_)) => add(format!("[{key}]"), value),
                (key, _) => add(format!("`{key}`"), value),
            }
        }
        Some(Self(settings))
    }

    /// Returns the settings that differ in another file.
    pub(crate) fn differences(&self, other: &Self) -> Differences {
        let mut found = Differences::default();
        let names: BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        for name in names {
            let (here, there) = (self.0.get(name), other.0.get(name));
            if here == there {
                continue;
            }
            let judges = match name.as_str() {
                "[auth]" | "[login]" | "`trusted-proxies`" => true,
                "`listen`" | "`inbox`" => here.is_some() != there.is_some(),
                name => name.starts_with("[servers."),
            };
            let list = if judges {
                &mut found.judging
            } else {
                &mut found.others
            };
            list.push(name.clone());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "listen = \"127.0.0.1:1\"\n[login]\nmode = \"proxy\"\n[people.ada]\nmail = \"a@x\"\n[channels.push]\ncontact = \"mailto:a@x\"\n[servers.a]\ncommand = [\"a\"]\nenv = { KEY = \"secret\" }\n";

    fn settings(text: &str) -> RestartSettings {
        RestartSettings::read(text).unwrap()
    }

    #[test]
    fn what_another_file_has_otherwise_is_named() {
        let file = settings(FILE);
        let differs = |from: &str, to: &str| {
            assert!(FILE.contains(from));
            let found = file.differences(&settings(&FILE.replace(from, to)));
            (found.judging.join(" "), found.others.join(" "))
        };
        for (from, to, judging, others) in [
            ("a@x\"\n[channels", "b@x\"\n[channels", "", ""),
            ("listen = ", "# a comment\nlisten  = ", "", ""),
            ("127.0.0.1:1", "127.0.0.1:2", "", "`listen`"),
            ("listen = \"127.0.0.1:1\"\n", "", "`listen`", ""),
            ("listen", "inbox", "`inbox` `listen`", ""),
            ("listen", "keep-answers = 3\nlisten", "", "`keep-answers`"),
            ("mailto:a", "mailto:b", "", "[channels.push]"),
            ("\"proxy\"", "\"oidc\"", "[login]", ""),
            ("secret", "other", "[servers.a]", ""),
            ("servers.a", "servers.b", "[servers.a] [servers.b]", ""),
        ] {
            assert_eq!(
                differs(from, to),
                (judging.to_owned(), others.to_owned()),
                "{from}"
            );
        }
        assert_eq!(RestartSettings::read("listen ="), None);
        assert!(!format!("{file:?}").contains("secret"));
    }
}
