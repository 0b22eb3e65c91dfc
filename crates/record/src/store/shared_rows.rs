//! Values that several processes share, as rows: the signed-in browsers, and the people who logged in with their devices.
//!
//! A process keeps the last value that it read, with its version, and reads the rows again only after a change. A change
//! writes the rows that differ.

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value};

use super::RecordStoreError;

/// A kind of shared value, and its division into rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedEntity {
    /// Its name in the store.
    pub name: &'static str,
    /// The members that have a row for each entry. All others are one row.
    lists: &'static [(&'static str, EntryLayout)],
}

/// The form of a member with a row for each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryLayout {
    /// An array of objects, each named by this member.
    Objects(&'static str),
    /// An array of pairs of a name and a value.
    Pairs,
    /// An object, whose members are the entries.
    Members,
}

/// The browsers that are signed in to the inbox of a folder's owner, and the unused links that sign one in.
pub const BROWSERS: SharedEntity = SharedEntity {
    name: "browsers",
    lists: &[
        ("logins", EntryLayout::Objects("digest")),
        ("sessions", EntryLayout::Objects("digest")),
    ],
};

/// The people who logged in, their sessions and devices, and the used logout tokens.
pub const LOGINS: SharedEntity = SharedEntity {
    name: "logins",
    lists: &[
        ("sessions", EntryLayout::Objects("digest")),
        ("people", EntryLayout::Members),
        ("used_tokens", EntryLayout::Pairs),
        ("devices", EntryLayout::Objects("digest")),
    ],
};

/// Every kind of shared value.
pub const ENTITIES: [SharedEntity; 2] = [BROWSERS, LOGINS];

/// A row of a shared value.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedRow {
    /// The kind and the name of the entry; both are empty for the members without entries.
    pub key: RowKey,
    /// Its JSON.
    pub value: String,
}

impl fmt::Debug for SharedRow {
    /// Formats the kind: the rest may be about a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRow")
            .field("kind", &self.key.0)
            .finish_non_exhaustive()
    }
}

/// The kind and the name of a row.
pub type RowKey = (String, String);

/// The rows that a change writes and removes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowChanges {
    /// The new and the changed rows.
    pub written: Vec<SharedRow>,
    /// The removed ones.
    pub removed: Vec<RowKey>,
}

/// A change of rows: it gets the version, and the rows if the version is another than the known one. Nothing is written
/// if it returns `None`.
pub type SharedRowsChange<'c> = dyn FnMut(u64, Option<Vec<SharedRow>>) -> Option<RowChanges> + 'c;

/// A store of shared values. Processes that share one see each other's changes at the next read, and a change is
/// complete and survives a loss of power when its method returns.
pub trait SharedRowStore: fmt::Debug + Send + Sync {
    /// Returns the version of a value, which grows with each change; 0 if there is none.
    fn version(&self, entity: SharedEntity) -> Result<u64, RecordStoreError>;
    /// Returns the version and the rows of a value, in the order of their making.
    fn rows(&self, entity: SharedEntity) -> Result<(u64, Vec<SharedRow>), RecordStoreError>;
    /// Makes a change, one at a time in all processes, and returns the version afterwards.
    fn change(
        &self,
        entity: SharedEntity,
        known: u64,
        change: &mut SharedRowsChange<'_>,
    ) -> Result<u64, RecordStoreError>;
}

impl SharedEntity {
    /// Divides a value into rows; `None` if it has another form. Of entries with the same name the first is kept.
    pub fn divide(&self, value: Value) -> Option<Vec<SharedRow>> {
        let Value::Object(mut members) = value else {
            return None;
        };
        let mut rows = Vec::new();
        let mut known = HashSet::new();
        let mut add = |kind: &str, id: &str, value: &Value| {
            let key = (kind.to_owned(), id.to_owned());
            if known.insert(key.clone()) {
                let value = value.to_string();
                rows.push(SharedRow { key, value });
            }
        };
        for (kind, entries) in self.lists {
            let Some(list) = members.remove(*kind) else {
                continue;
            };
            match (entries, list) {
                (EntryLayout::Objects(name), Value::Array(list)) => {
                    for entry in &list {
                        add(kind, entry.get(name)?.as_str()?, entry);
                    }
                }
                (EntryLayout::Pairs, Value::Array(list)) => {
                    for entry in &list {
                        add(kind, entry.get(0)?.as_str()?, entry);
                    }
                }
                (EntryLayout::Members, Value::Object(list)) => {
                    for (name, entry) in &list {
                        add(kind, name, entry);
                    }
                }
                (EntryLayout::Objects(_) | EntryLayout::Pairs | EntryLayout::Members, _) => {
                    return None;
                }
            }
        }
        add("", "", &Value::Object(members));
        Some(rows)
    }

    /// Puts a value together from its rows; `None` if one is no JSON.
    pub fn compose(&self, rows: &[SharedRow]) -> Option<Value> {
        let mut members = Map::new();
        for (kind, entries) in self.lists {
            let of_kind = rows.iter().filter(|row| row.key.0 == *kind);
            let parsed = of_kind.map(|row| {
                let value: Value = serde_json::from_str(&row.value).ok()?;
                Some((row.key.1.clone(), value))
            });
            let list = match entries {
                EntryLayout::Members => Value::Object(parsed.collect::<Option<_>>()?),
                EntryLayout::Objects(_) | EntryLayout::Pairs => {
                    let values = parsed.map(|entry| Some(entry?.1));
                    Value::Array(values.collect::<Option<_>>()?)
                }
            };
            members.insert((*kind).to_owned(), list);
        }
        for row in rows.iter().filter(|row| row.key.0.is_empty()) {
            let others: Map<String, Value> = serde_json::from_str(&row.value).ok()?;
            members.extend(others);
        }
        Some(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_divided_into_rows_and_put_together_again() {
        let logins = json!({
            "sessions": [{"digest": "d2", "person": "ada"}, {"digest": "d1", "person": "bob"}],
            "people": {"ada": {"subject": "a"}, "i b": {"subject": "b"}},
            "used_tokens": [["t", 7]],
            "devices": [],
            "other": 1,
        });
        let rows = LOGINS.divide(logins.clone()).unwrap();
        assert_eq!(rows.len(), 6);
        assert_eq!(rows[0].key, ("sessions".to_owned(), "d2".to_owned()));
        assert_eq!(LOGINS.compose(&rows), Some(logins));
        let browsers =
            json!({"path": "p", "key": "k", "logins": [], "sessions": [{"digest": "d"}]});
        let rows = BROWSERS.divide(browsers.clone()).unwrap();
        assert_eq!(BROWSERS.compose(&rows), Some(browsers));
    }

    #[test]
    fn a_value_of_another_form_has_no_rows_and_no_name_has_two() {
        for wrong in [
            json!([]),
            json!({"sessions": {}}),
            json!({"sessions": [{}]}),
            json!({"sessions": [{"digest": 1}]}),
            json!({"people": []}),
            json!({"used_tokens": ["t"]}),
        ] {
            assert_eq!(LOGINS.divide(wrong.clone()), None, "{wrong}");
        }
        let twice = json!({"sessions": [{"digest": "d", "n": 1}, {"digest": "d", "n": 2}]});
        let rows = LOGINS.divide(twice).unwrap();
        assert_eq!(rows.len(), 2);
        assert!(rows[0].value.contains('1'));
        let damaged = SharedRow {
            key: ("sessions".to_owned(), "d".to_owned()),
            value: "{".to_owned(),
        };
        assert_eq!(LOGINS.compose(&[damaged]), None);
    }
}
