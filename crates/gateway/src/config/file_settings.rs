//! The settings of the file, for comparison with a changed file: what a running gateway applies, and what needs a restart.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};
use toml::{Table, Value};

/// The tables and keys whose changes the digest of the rules and the number of channels show.
const SHOWN: [&str; 6] = [
    "people",
    "groups",
    "roles",
    "rules",
    "time-zone",
    "channels",
];

/// The other settings that a running gateway applies.
#[cfg(test)]
const APPLIED: [&str; 18] = [
    "all-call-bytes",
    "all-question-bytes",
    "allow-origins",
    "argument-bytes",
    "caller-call-bytes",
    "caller-question-bytes",
    "clients",
    "drain",
    "insecure",
    "keep-answers",
    "keep-audit",
    "keep-ended",
    "keep-results",
    "max-frame",
    "max-open",
    "max-record",
    "ready-grace",
    "servers",
];

/// The settings that stay until a restart: addresses and folders that are in use, and the proofs of callers and people,
/// by which sessions and logins were begun.
const FIXED: [&str; 16] = [
    "auth",
    "inbox",
    "inbox-url",
    "listen",
    "login",
    "notify",
    "peer-address",
    "peer-listen",
    "presence",
    "public-url",
    "record",
    "record-password",
    "record-password-command",
    "state",
    "traces",
    "trusted-proxies",
];

/// The settings that every session has from its beginning, beside the table of its server. The only client on stdin and
/// stdout has one session, which begins with the process.
const OF_SESSIONS: [&str; 3] = ["`keep-results`", "`max-frame`", "[[clients]]"];

/// The settings of a file, by name: a digest of each, since some contain secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSettings(BTreeMap<String, SettingDigest>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct SettingDigest {
    digest: [u8; 32],
    is_fixed: bool,
}

/// The differences between two files, besides those of rules, people, groups, roles and channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SettingChanges {
    /// The names of the settings that a running gateway applies.
    pub(crate) applied: Vec<String>,
    /// The names of those that need a restart.
    pub(crate) fixed: Vec<String>,
    /// The names of the servers whose tables differ, or that only one file has.
    servers: BTreeSet<String>,
    /// `true` if a setting of all sessions differs.
    all_servers: bool,
}

impl FileSettings {
    /// Reads the settings of a file; `None` if it is not TOML.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let file: Table = toml::from_str(text).ok()?;
        let has_sessions = file.contains_key("listen");
        let mut settings = BTreeMap::new();
        let mut add = |name: String, value: &Value, is_fixed: bool| {
            let digest = Sha256::digest(value.to_string()).into();
            settings.insert(name, SettingDigest { digest, is_fixed });
        };
        for (key, value) in &file {
            let is_fixed = FIXED.contains(&key.as_str());
            match (key.as_str(), value) {
                ("channels", channels) => {
                    if let Some(push) = channels.get("push") {
                        add("[channels.push]".to_owned(), push, true);
                    }
                }
                (key, _) if SHOWN.contains(&key) => {}
                ("servers", Value::Table(servers)) => {
                    for (name, server) in servers {
                        add(format!("[servers.{name}]"), server, !has_sessions);
                    }
                }
                (key, Value::Table(_)) => add(format!("[{key}]"), value, is_fixed),
                (key, Value::Array(list)) if list.first().is_some_and(Value::is_table) => {
                    let name = format!("[[{key}]]");
                    let is_fixed =
                        is_fixed || !has_sessions && OF_SESSIONS.contains(&name.as_str());
                    add(name, value, is_fixed);
                }
                (key, _) => {
                    let name = format!("`{key}`");
                    let is_fixed =
                        is_fixed || !has_sessions && OF_SESSIONS.contains(&name.as_str());
                    add(name, value, is_fixed);
                }
            }
        }
        Some(Self(settings))
    }

    /// Returns the settings that differ in another file.
    pub(crate) fn changes(&self, next: &Self) -> SettingChanges {
        let mut found = SettingChanges::default();
        let names: BTreeSet<_> = self.0.keys().chain(next.0.keys()).collect();
        for name in names {
            let (here, there) = (self.0.get(name), next.0.get(name));
            let digest = |setting: &SettingDigest| setting.digest;
            if here.map(digest) == there.map(digest) {
                continue;
            }
            if here.or(there).is_some_and(|setting| setting.is_fixed) {
                found.fixed.push(name.clone());
                continue;
            }
            let server = name.strip_prefix("[servers.");
            if let Some(server) = server.and_then(|rest| rest.strip_suffix(']')) {
                found.servers.insert(server.to_owned());
            }
            found.all_servers |= OF_SESSIONS.contains(&name.as_str());
            found.applied.push(name.clone());
        }
        found
    }
}

impl SettingChanges {
    /// Returns `true` if sessions with this server, which both files have, begin otherwise.
    pub(crate) fn concerns_server(&self, name: &str) -> bool {
        self.all_servers || self.servers.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::keys;

    const FILE: &str = "listen = \"127.0.0.1:1\"\nmax-frame = 5000\n[login]\nmode = \"proxy\"\n[people.ada]\nmail = \"a@x\"\n[channels.push]\ncontact = \"mailto:a@x\"\n[servers.a]\ncommand = [\"a\"]\nenv = { KEY = \"secret\" }\n[[clients]]\nname = \"c\"\n";

    fn settings(text: &str) -> FileSettings {
        FileSettings::read(text).unwrap()
    }

    #[test]
    fn every_key_of_the_file_is_shown_applied_or_fixed() {
        for key in keys() {
            let lists = [&SHOWN[..], &APPLIED, &FIXED];
            let found = lists.iter().filter(|list| list.contains(&key.as_str()));
            assert_eq!(found.count(), 1, "{key}");
        }
    }

    #[test]
    fn what_another_file_has_otherwise_is_named() {
        let file = settings(FILE);
        let differs = |from: &str, to: &str| {
            assert!(FILE.contains(from));
            let found = file.changes(&settings(&FILE.replace(from, to)));
            let joined = (found.applied.join(" "), found.fixed.join(" "));
            (joined.0, joined.1, found.concerns_server("a"))
        };
        for (from, to, applied, fixed, of_server) in [
            ("a@x\"\n[channels", "b@x\"\n[channels", "", "", false),
            ("listen = ", "# a comment\nlisten  = ", "", "", false),
            ("127.0.0.1:1", "127.0.0.1:2", "", "`listen`", false),
            ("listen = \"127.0.0.1:1\"\n", "", "", "`listen`", false),
            ("listen", "inbox", "", "`inbox` `listen`", false),
            (
                "listen",
                "keep-answers = 3\nlisten",
                "`keep-answers`",
                "",
                false,
            ),
            ("max-frame = 5000\n", "", "`max-frame`", "", true),
            ("\"c\"", "\"d\"", "[[clients]]", "", true),
            ("mailto:a", "mailto:b", "", "[channels.push]", false),
            ("\"proxy\"", "\"oidc\"", "", "[login]", false),
            ("secret", "other", "[servers.a]", "", true),
            (
                "servers.a",
                "servers.b",
                "[servers.a] [servers.b]",
                "",
                true,
            ),
            (
                "[[cl",
                "[servers.b]\nurl = \"u\"\n[[cl",
                "[servers.b]",
                "",
                false,
            ),
        ] {
            let expected = (applied.to_owned(), fixed.to_owned(), of_server);
            assert_eq!(differs(from, to), expected, "{from}");
        }
        assert_eq!(FileSettings::read("listen ="), None);
        assert!(!format!("{file:?}").contains("secret"));
    }

    #[test]
    fn the_session_of_the_only_client_on_stdin_keeps_its_server() {
        let one = "max-frame = 5000\ndrain = 1\n[servers.a]\ncommand = [\"a\"]\n";
        let other = "max-frame = 5001\ndrain = 2\nkeep-results = 3\n[servers.a]\ncommand = [\"b\"]\n[[clients]]\nname = \"c\"\n";
        let found = settings(one).changes(&settings(other));
        assert_eq!(found.applied, ["`drain`"]);
        let fixed = "[[clients]] [servers.a] `keep-results` `max-frame`";
        assert_eq!(found.fixed.join(" "), fixed);
    }
}
