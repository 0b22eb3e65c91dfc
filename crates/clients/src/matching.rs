//! The conditions of an entry: all that are given must hold.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use mcp_elicit_core::wire::Capability;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An environment: the value of each variable.
pub type EnvironmentVariables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The part of a client by which it is recognized.
#[derive(Clone, Copy)]
pub struct ObservedClient<'a> {
    /// The name in `clientInfo`.
    pub name: &'a str,
    /// The version in `clientInfo`.
    pub version: &'a str,
    /// The modes that it declared.
    pub declares: Capability,
    /// `true` if it declared views of MCP Apps.
    pub declares_apps: bool,
    /// Returns a variable of the environment that the client gave its child; `None` if it is not a parent of this
    /// program.
    pub env: Option<EnvironmentVariables<'a>>,
    /// `_meta` of the call, JSON.
    pub call_meta: Option<&'a str>,
}

impl fmt::Debug for ObservedClient<'_> {
    /// Leaves out the environment and the call, which may contain values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedClient")
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// The conditions of one entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct EntryMatch {
    /// The name in `clientInfo`; `*` stands for any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// A range of versions, such as `>=2.1, <3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// Variables of the environment of a child.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,
    /// A member of the call's `_meta`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call_meta: Option<CallMeta>,
    /// The declarations; an empty list means none at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) declares: Option<Vec<Declared>>,
}

/// A member of a call's `_meta`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallMeta {
    /// A JSON Pointer into `_meta`.
    pub(crate) pointer: String,
    /// Its value; in a text, `*` stands for any text.
    pub(crate) is: Value,
}

/// A declaration of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Declared {
    Form,
    Url,
    Apps,
}

/// A condition that holds, or does not, for a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatchCondition {
    /// The condition, in words.
    pub says: String,
    /// `true` if it holds.
    pub holds: bool,
}

impl EntryMatch {
    /// Returns each condition, with whether it holds.
    pub(crate) fn conditions(&self, seen: &ObservedClient<'_>) -> Vec<MatchCondition> {
        let mut all = Vec::new();
        let mut add = |says: String, holds: bool| all.push(MatchCondition { says, holds });
        if let Some(name) = &self.name {
            add(format!("name {name}"), is_like(name, seen.name));
        }
        if let Some(range) = &self.version {
            let within = Range::read(range).is_ok_and(|range| range.contains(seen.version));
            add(format!("version {range}"), within);
        }
        for (variable, pattern) in &self.env {
            let value = seen.env.and_then(|env| env(variable));
            let fits = value.is_some_and(|value| is_like(pattern, &value));
            add(format!("environment {variable} = {pattern}"), fits);
        }
        if let Some(meta) = &self.call_meta {
            let fits = seen.call_meta.is_some_and(|call| meta.fits(call));
            add(format!("_meta{} = {}", meta.pointer, meta.is), fits);
        }
        if let Some(declared) = &self.declares {
            let has = |one: &Declared| match one {
                Declared::Form => seen.declares.form,
                Declared::Url => seen.declares.url,
                Declared::Apps => seen.declares_apps,
            };
            let nothing = !(seen.declares.form || seen.declares.url || seen.declares_apps);
            let fits = if declared.is_empty() {
                nothing
            } else {
                declared.iter().all(has)
            };
            let words: Vec<_> = declared.iter().map(|one| one.word()).collect();
            let words = if words.is_empty() {
                "nothing".to_owned()
            } else {
                words.join(" and ")
            };
            add(format!("declares {words}"), fits);
        }
        all
    }

    /// Returns `true` if every condition holds.
    pub(crate) fn holds(&self, seen: &ObservedClient<'_>) -> bool {
        // The name decides about most entries, so it is compared first.
        self.name
            .as_ref()
            .is_none_or(|name| is_like(name, seen.name))
            && self.conditions(seen).iter().all(|one| one.holds)
    }
}

impl Declared {
    const fn word(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Url => "url",
            Self::Apps => "apps",
        }
    }
}

impl CallMeta {
    fn fits(&self, meta: &str) -> bool {
        let Ok(meta) = serde_json::from_str::<Value>(meta) else {
            return false;
        };
        match (meta.pointer(&self.pointer), &self.is) {
            (Some(Value::String(value)), Value::String(pattern)) => is_like(pattern, value),
            (Some(value), is) => value == is,
            (None, _) => false,
        }
    }
}

/// Returns `true` if a text is like a pattern, in which `*` stands for any text.
pub(crate) fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = pattern
        .contains('*')
        .then(|| pattern.rsplit('*').next())
        .flatten()
    else {
        return rest.is_empty();
    };
    let middle: Vec<_> = parts.collect();
    for part in &middle[..middle.len().saturating_sub(1)] {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// A range of versions: all comparisons must hold.
pub(crate) struct Range(Vec<(VersionComparison, String)>);

#[derive(Clone, Copy)]
enum VersionComparison {
    Least,
    Above,
    Most,
    Below,
    /// The version, or one that begins with it.
    Begins,
}

impl Range {
    /// Reads a range such as `>=2.1, <3` or `0.171`.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let comparison = |part: &str| {
            let part = part.trim();
            let operators = [
                (">=", VersionComparison::Least),
                ("<=", VersionComparison::Most),
                (">", VersionComparison::Above),
                ("<", VersionComparison::Below),
                ("=", VersionComparison::Begins),
                ("", VersionComparison::Begins),
            ];
            let found = operators
                .into_iter()
                .find_map(|(sign, how)| Some((how, part.strip_prefix(sign)?.trim())));
            match found {
                Some((how, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => {
                    Ok((how, version.to_owned()))
                }
                _ => Err(format!(
                    "`{part}` is not a version; write a range like `>=2.1, <3`"
                )),
            }
        };
        text.split(',')
            .map(comparison)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn contains(&self, version: &str) -> bool {
        let numbers = numbers_of(version);
        self.0.iter().all(|(how, bound)| {
            let bound = numbers_of(bound);
            match how {
                VersionComparison::Begins => numbers.starts_with(&bound),
                VersionComparison::Least => compared(&numbers, &bound) != Ordering::Less,
                VersionComparison::Above => compared(&numbers, &bound) == Ordering::Greater,
                VersionComparison::Most => compared(&numbers, &bound) != Ordering::Greater,
                VersionComparison::Below => compared(&numbers, &bound) == Ordering::Less,
            }
        })
    }
}

/// Returns the numbers of a version, without a suffix such as `-beta`.
fn numbers_of(version: &str) -> Vec<u64> {
    let digits = version.trim_start_matches('v');
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.');
    let digits = &digits[..end.unwrap_or(digits.len())];
    digits
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect()
}

fn compared(version: &[u64], bound: &[u64]) -> Ordering {
    let length = version.len().max(bound.len());
    let at = |numbers: &[u64], place| numbers.get(place).copied().unwrap_or(0);
    (0..length)
        .map(|place| at(version, place).cmp(&at(bound, place)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, fits) in [
            ("cursor*", "cursor-vscode", true),
            ("cursor*", "cursor", true),
            ("*", "", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b", "ab", true),
            ("a*a", "a", false),
            ("sdk-*", "cli", false),
            ("claude-code", "claude-code-2", false),
            ("claude-code", "claude-code", true),
            ("", "", true),
            ("", "x", false),
            ("é*", "é!", true),
        ] {
            assert_eq!(is_like(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (range, version, fits) in [
            (">=2.1, <3", "2.1.197", true),
            (">=2.1, <3", "2.10", true),
            (">=2.1, <3", "3.0.0-beta", false),
            (">=2.1, <3", "2.0.9", false),
            ("0.171", "0.171.0", true),
            ("0.171", "0.1710", false),
            ("= 1", "1.9", true),
            (">1.0", "1", false),
            ("<=1.0", "v1.0.0", true),
        ] {
            let read = Range::read(range).unwrap();
            assert_eq!(read.contains(version), fits, "{range} {version}");
        }
        for wrong in ["", ">=", "new", ">=2, x", "^1"] {
            assert!(Range::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_call_is_recognized_by_a_member_of_its_meta() {
        let meta = CallMeta {
            pointer: "/x-codex-turn-metadata/turn_trigger".to_owned(),
            is: Value::from("exec"),
        };
        assert!(meta.fits(r#"{"x-codex-turn-metadata":{"turn_trigger":"exec"}}"#));
        for other in [
            r#"{"x-codex-turn-metadata":{"turn_trigger":"user"}}"#,
            r#"{"x-codex-turn-metadata":{"turn_trigger":["exec"]}}"#,
            "{}",
            "no",
        ] {
            assert!(!meta.fits(other), "{other}");
        }
    }
}
