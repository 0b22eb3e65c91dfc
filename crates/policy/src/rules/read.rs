//! Reading of a file: every error is found, each with its line and column.

use toml::de::{DeTable, DeValue};

use super::decide::Index;
use super::rule_reader::RuleReader;
use super::{Rules, order};
use crate::defect::RuleDefect;
use crate::document::{DocumentReader, SpannedValue, key_start};
use crate::people::{Addressee, People};

/// The largest file, in bytes.
const MAX_FILE: usize = 1 << 20;
/// The most rules, and the most people or groups.
const MAX_RULES: usize = 10_000;

/// The parts of a gateway's configuration that are read elsewhere.
const ELSEWHERE: [&str; 36] = [
    "listen",
    "public-url",
    "inbox",
    "inbox-url",
    "presence",
    "notify",
    "state",
    "record",
    "record-password",
    "record-password-command",
    "peer-listen",
    "peer-address",
    "insecure",
    "max-frame",
    "ready-grace",
    "drain",
    "caller-call-bytes",
    "all-call-bytes",
    "caller-question-bytes",
    "all-question-bytes",
    "argument-bytes",
    "max-record",
    "max-open",
    "allow-origins",
    "keep-answers",
    "keep-results",
    "keep-ended",
    "keep-audit",
    "traces",
    "trusted-proxies",
    "clients",
    "servers",
    "auth",
    "login",
    "channels",
    "time-zone",
];
/// The parts that are read here.
const HERE: [&str; 4] = ["people", "groups", "roles", "rules"];
/// Names of secrets, which must not be in a file as text.
const SECRETS: [&str; 6] = [
    "password",
    "secret",
    "token",
    "signing-secret",
    "client-secret",
    "api-key",
];

/// A file that was read.
#[derive(Debug)]
pub struct Loaded {
    /// The rules, if there are no defects.
    pub rules: Option<Rules>,
    /// The number of rules in the file.
    pub count: usize,
    /// Errors, in the order of the file.
    pub defects: Vec<RuleDefect>,
    /// Probable errors, in the order of the file.
    pub warnings: Vec<RuleDefect>,
}

impl Rules {
    /// Reads a file's text. Returns the rules, or else every error.
    pub fn parse(text: &str) -> Result<Self, Vec<RuleDefect>> {
        let loaded = Self::load(text);
        loaded.rules.ok_or(loaded.defects)
    }

    /// Reads a file's text, with every error and warning.
    pub fn load(text: &str) -> Loaded {
        let mut reader = DocumentReader::new(text);
        if text.len() > MAX_FILE {
            reader.defect(
                0,
                "file-too-large",
                format!(
                    "the file has {} bytes; at most {MAX_FILE} are read",
                    text.len()
                ),
                "",
            );
            return finish(reader, None, 0);
        }
        let (file, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let at = error.span().map_or(0, |span| span.start);
            let message = error
                .message()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned();
            reader.defect(at, "invalid-toml", message, "");
        }
        if !errors.is_empty() {
            return finish(reader, None, 0);
        }
        let file = file.get_ref();
        let known: Vec<&str> = HERE.into_iter().chain(ELSEWHERE).collect();
        reader.known_keys(file, "the file", &known);
        literal_secrets(&mut reader, file, 16);
        let time_zone = file
            .get("time-zone")
            .and_then(|value| reader.text(value, "time-zone"))
            .map(str::to_owned);
        for part in ["people", "groups"] {
            let many = file
                .get(part)
                .and_then(|value| value.get_ref().as_table())
                .filter(|table| table.len() > MAX_RULES);
            if many.is_some() {
                reader.defect(
                    key_start(file, part),
                    "too-many",
                    format!("`{part}` has more than {MAX_RULES} entries"),
                    "",
                );
                return finish(reader, None, 0);
            }
        }
        let people = People::read(&mut reader, file);
        let servers = file
            .get("servers")
            .and_then(|value| value.get_ref().as_table());
        let servers =
            servers.map(|table| table.keys().map(|key| key.get_ref().to_string()).collect());
        let mut all = RuleReader::new(&people, servers);
        all.allow = allowed(file);
        let tables = file
            .get("rules")
            .and_then(|value| reader.list(value, "rules"))
            .unwrap_or_default();
        if tables.len() > MAX_RULES {
            reader.defect(
                key_start(file, "rules"),
                "too-many",
                format!("the file has more than {MAX_RULES} rules"),
                "",
            );
            return finish(reader, None, tables.len());
        }
        let mut rules = Vec::new();
        for (number, table) in tables.iter().enumerate() {
            rules.extend(all.rule(&mut reader, table, number + 1));
        }
        reader.rule = None;
        order::check(&mut reader, &rules);
        let names = all.into_names();
        let rules = Rules {
            people,
            all: rules.into_iter().map(|(rule, _)| rule).collect(),
            names,
            index: Index::default(),
            time_zone,
        };
        finish(reader, Some(rules), tables.len())
    }
}

/// Returns the people who may log in; `None` if the file admits everyone in it, or if people also answer in Slack.
fn allowed(file: &DeTable<'_>) -> Option<Vec<Addressee>> {
    let table = |name: &str| file.get(name)?.get_ref().as_table();
    if table("channels").is_some_and(|channels| channels.contains_key("slack")) {
        return None;
    }
    let allow = table("login")?.get("allow")?.get_ref().as_array()?;
    let named = |value: &SpannedValue<'_>| match value.get_ref().as_str()?.split_once(':')? {
        ("person", name) => Some(Addressee::Person(name.to_owned())),
        ("group", name) => Some(Addressee::Group(name.to_owned())),
        _ => None,
    };
    // Errors there are reported by the reader of the login.
    let all: Vec<Addressee> = allow.iter().map(named).collect::<Option<_>>()?;
    (!all.is_empty()).then_some(all)
}

fn finish(reader: DocumentReader<'_>, rules: Option<Rules>, count: usize) -> Loaded {
    let DocumentReader {
        mut defects,
        mut warnings,
        ..
    } = reader;
    defects.sort_by_key(|defect| (defect.line, defect.column));
    warnings.sort_by_key(|warning| (warning.line, warning.column));
    let rules = rules.filter(|_| defects.is_empty());
    Loaded {
        rules,
        count,
        defects,
        warnings,
    }
}

/// Reports every secret that is in the file as text, without repeating the text.
fn literal_secrets(reader: &mut DocumentReader<'_>, table: &DeTable<'_>, depth: usize) {
    if depth == 0 {
        return;
    }
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let inner: Vec<&DeTable<'_>> = match value.get_ref() {
            DeValue::String(_) if SECRETS.contains(&name) => {
                let message = format!("`{name}` is a secret, and must not be written as text");
                let help =
                    format!("write {name} = {{ env = \"VARIABLE\" }} or {{ file = \"PATH\" }}");
                reader.defect(value.span().start, "literal-secret", message, help);
                Vec::new()
            }
            // Names of people, of groups and of environment variables are the operator's.
            DeValue::Table(_) if matches!(name, "people" | "groups" | "env") => Vec::new(),
            DeValue::Table(inner) => vec![inner],
            DeValue::Array(items) => items
                .iter()
                .filter_map(|item| item.get_ref().as_table())
                .collect(),
            _ => Vec::new(),
        };
        for inner in inner {
            literal_secrets(reader, inner, depth - 1);
        }
    }
}
