//! One entry of a file: the clients that it is about, the keys that it sets, and the evidence for them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use mcp_elicit_core::form::FieldKinds;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::acts::ProgramActs;
use crate::matching::{EntryMatch, MatchCondition, ObservedClient};
use crate::profile::{Apps, Dialog, EmptyForm, Profile, Shows, Titles, View};

/// The origin of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntrySource {
    /// It came with the program.
    BuiltIn,
    /// It is in this file of the operator.
    File(PathBuf),
}

impl fmt::Display for EntrySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The way in which a behaviour became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The client was run.
    Seen,
    /// It is in a report or in its source.
    Read,
}

/// One piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The day, as YYYY-MM-DD.
    pub on: String,
    /// The client's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The way in which it became known.
    pub how: How,
    /// The behaviour.
    pub what: String,
    /// The place of a report.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// A client as it describes itself, for playing it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Played {
    /// The name in `clientInfo`.
    pub name: String,
    /// The version in `clientInfo`.
    pub version: String,
    /// The revision that it opens a session with.
    pub revision: String,
    /// The member `elicitation` of its capabilities; `None` if it declares none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<Value>,
    /// Variables of the environment of the server that it starts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Members of each call's `_meta`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub call_meta: Map<String, Value>,
}

/// The keys that an entry sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EntryKeys {
    pub(crate) form: Option<Shows>,
    pub(crate) url: Option<Shows>,
    pub(crate) dialog: Option<Dialog>,
    pub(crate) kinds: Option<FieldKinds>,
    pub(crate) titles: Option<Titles>,
    pub(crate) empty_form: Option<EmptyForm>,
    pub(crate) doubt: Option<Doubt>,
    pub(crate) wait: Option<Duration>,
    pub(crate) progress_extends: Option<bool>,
    pub(crate) one_at_a_time: Option<bool>,
    pub(crate) echo_id: Option<bool>,
    pub(crate) apps: Option<Apps>,
    pub(crate) view: Option<View>,
}

/// The time within which an act is doubted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Every act counts.
    Off,
    /// An act sooner than this is doubted.
    Within(Duration),
}

/// One entry of a file.
#[derive(Clone, Debug)]
pub struct ProfileEntry {
    pub(crate) source: EntrySource,
    /// The line on which it begins, from 1.
    pub(crate) line: usize,
    pub(crate) id: Option<String>,
    pub(crate) matches: EntryMatch,
    pub(crate) keys: EntryKeys,
    pub(crate) plays: Option<Played>,
    pub(crate) acts: ProgramActs,
    pub(crate) evidence: Vec<Evidence>,
}

impl ProfileEntry {
    /// Returns the origin of the entry.
    pub fn source(&self) -> &EntrySource {
        &self.source
    }

    /// Returns the line on which it begins, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns its short name, if it has one.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the evidence for it.
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// Returns its conditions, with whether each holds for a client.
    pub fn conditions(&self, seen: &ObservedClient<'_>) -> Vec<MatchCondition> {
        self.matches.conditions(seen)
    }

    /// Returns its conditions as JSON.
    pub fn match_json(&self) -> Value {
        serde_json::to_value(&self.matches).unwrap_or_default()
    }

    /// Returns the keys that it sets, each with its value in words.
    pub fn in_words(&self) -> Vec<(&'static str, String)> {
        let mut profile = Profile::default();
        self.apply(&mut profile);
        profile.in_words()
    }

    /// Returns `true` if it is about clients of this name, or has it as its short name.
    pub fn is_called(&self, name: &str) -> bool {
        self.id.as_deref() == Some(name)
            || self
                .matches
                .name
                .as_deref()
                .is_some_and(|pattern| crate::matching::is_like(pattern, name))
    }

    /// Sets its keys in a profile.
    pub(crate) fn apply(&self, profile: &mut Profile) {
        let keys = &self.keys;
        set(&mut profile.form, keys.form);
        set(&mut profile.url, keys.url);
        set(&mut profile.dialog, keys.dialog);
        set(&mut profile.kinds, keys.kinds);
        set(&mut profile.titles, keys.titles);
        set(&mut profile.empty_form, keys.empty_form);
        let doubt = keys.doubt.map(|doubt| match doubt {
            Doubt::Off => None,
            Doubt::Within(span) => Some(span),
        });
        set(&mut profile.doubt, doubt);
        set(&mut profile.wait, keys.wait.map(Some));
        set(&mut profile.progress_extends, keys.progress_extends);
        set(&mut profile.one_at_a_time, keys.one_at_a_time);
        set(&mut profile.echo_id, keys.echo_id);
        set(&mut profile.apps, keys.apps);
        if let Some(view) = &keys.view {
            profile.view.apply(view);
        }
    }
}

fn set<T>(value: &mut T, later: Option<T>) {
    if let Some(later) = later {
        *value = later;
    }
}
