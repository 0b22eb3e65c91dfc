//! A configuration file as a tree of values with their byte ranges, the same for JSON, TOML and YAML.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// One step from a value to a value within it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum PathStep {
    /// To the member of this name.
    Key(String),
    /// To the element at this index, from 0.
    Index(usize),
}

/// A value with its range in the text.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) range: Range<usize>,
    pub(crate) value: NodeValue,
    /// `true` if it has an anchor or a tag, or is an alias: a change would have an effect elsewhere.
    pub(crate) is_shared: bool,
}

/// The value of a node.
#[derive(Clone, Debug)]
pub(crate) enum NodeValue {
    Text(String),
    /// A number, a truth value, a date or nothing, as it is written.
    Other(String),
    List(Vec<Node>, NodeStyle),
    /// In the order of the file, with members that are there twice.
    Map(Vec<MapMember>, NodeStyle),
}

/// A member of a map.
#[derive(Clone, Debug)]
pub(crate) struct MapMember {
    pub(crate) key: String,
    pub(crate) key_range: Range<usize>,
    pub(crate) value: Node,
}

/// The form in which a list or a map is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeStyle {
    /// In brackets, with commas.
    Flow,
    /// A line for each member or element.
    Block,
    /// A table that consists of dotted keys, or of headers of its parts only.
    Dotted,
}

/// A value without its form. The members of a map are sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Text(String),
    Other(String),
    List(Vec<Data>),
    Map(Vec<(String, Data)>),
}

impl Node {
    /// Returns the value at the end of this path. A member that is there twice is found nowhere.
    pub(crate) fn at(&self, path: &[PathStep]) -> Option<&Self> {
        let Some((step, rest)) = path.split_first() else {
            return Some(self);
        };
        match (step, &self.value) {
            (PathStep::Key(key), NodeValue::Map(..)) => self.get(key)?.at(rest),
            (PathStep::Index(index), NodeValue::List(nodes, _)) => nodes.get(*index)?.at(rest),
            _ => None,
        }
    }

    /// Returns the value of a member of a map.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.member(key).map(|member| &member.value)
    }

    /// Returns a member of a map, unless it is there twice.
    pub(crate) fn member(&self, key: &str) -> Option<&MapMember> {
        let mut members = self.members().iter().filter(|member| member.key == key);
        let first = members.next();
        first.filter(|_| members.next().is_none())
    }

    /// Returns the members of a map; none for another value.
    pub(crate) fn members(&self) -> &[MapMember] {
        match &self.value {
            NodeValue::Map(members, _) => members,
            _ => &[],
        }
    }

    /// Returns the elements of a list.
    pub(crate) fn elements(&self) -> Option<&[Self]> {
        match &self.value {
            NodeValue::List(nodes, _) => Some(nodes),
            _ => None,
        }
    }

    /// Returns a text.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a text, a number or a truth value as text.
    pub(crate) fn word(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) | NodeValue::Other(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the first member, here or deeper, whose name an earlier member of the same map has.
    pub(crate) fn duplicate(&self) -> Option<&MapMember> {
        let members = self.members();
        let mut names: Vec<&str> = members.iter().map(|member| member.key.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return members.iter().rev().find(|member| member.key == pair[0]);
        }
        self.children().find_map(Self::duplicate)
    }

    /// Returns the first value, here or deeper, that another value shares.
    pub(crate) fn shared(&self) -> Option<&Self> {
        if self.is_shared {
            return Some(self);
        }
        self.children().find_map(Self::shared)
    }

    fn children(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        match &self.value {
            NodeValue::List(nodes, _) => Box::new(nodes.iter()),
            NodeValue::Map(members, _) => Box::new(members.iter().map(|member| &member.value)),
            NodeValue::Text(_) | NodeValue::Other(_) => Box::new(std::iter::empty()),
        }
    }

    /// Returns the value without its form.
    pub(crate) fn data(&self) -> Data {
        match &self.value {
            NodeValue::Text(text) => Data::Text(text.clone()),
            NodeValue::Other(text) => Data::Other(text.clone()),
            NodeValue::List(nodes, _) => Data::List(nodes.iter().map(Self::data).collect()),
            NodeValue::Map(members, _) => {
                let pair = |member: &MapMember| (member.key.clone(), member.value.data());
                let mut pairs: Vec<_> = members.iter().map(pair).collect();
                pairs.sort_by(|one, other| one.0.cmp(&other.0));
                Data::Map(pairs)
            }
        }
    }
}

impl Data {
    /// Returns the value at the end of this path.
    pub(crate) fn at_mut(&mut self, path: &[PathStep]) -> Option<&mut Self> {
        let Some((step, rest)) = path.split_first() else {
            return Some(self);
        };
        match (step, self) {
            (PathStep::Key(key), Self::Map(pairs)) => {
                let pair = pairs.iter_mut().find(|(name, _)| name == key)?;
                pair.1.at_mut(rest)
            }
            (PathStep::Index(index), Self::List(list)) => list.get_mut(*index)?.at_mut(rest),
            _ => None,
        }
    }

    /// Sets a member of a map, which is added if there is none. Returns `false` for another value.
    pub(crate) fn set(&mut self, key: &str, value: Self) -> bool {
        let Self::Map(pairs) = self else {
            return false;
        };
        match pairs.binary_search_by(|(name, _)| name.as_str().cmp(key)) {
            Ok(at) => pairs[at].1 = value,
            Err(at) => pairs.insert(at, (key.to_owned(), value)),
        }
        true
    }

    /// Removes a member of a map and returns its value.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Self> {
        let Self::Map(pairs) = self else {
            return None;
        };
        let at = pairs.iter().position(|(name, _)| name == key)?;
        Some(pairs.remove(at).1)
    }
}

/// Returns the line of a byte, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    1 + before.split(|byte| *byte == b'\n').skip(1).count()
}
