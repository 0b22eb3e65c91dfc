//! The comparison of a value with the members that it should have.

use serde_json::{Map, Number, Value};

use super::Misfit;
use crate::pointer::token;

/// The largest number of misfits that are named of one result.
const MOST: usize = 50;

/// The values that a member may have.
#[derive(Clone, Copy)]
pub(super) enum MemberShape {
    Any,
    Text,
    /// A text that is sent back as it is.
    Opaque,
    Flag,
    Number,
    /// A whole number from zero.
    Size,
    /// One of these texts, and their names for people.
    Word(&'static [&'static str], &'static str),
    /// A list. Entries that cannot be used are left out.
    List(&'static MemberShape),
    /// An object with any names.
    Map(&'static MemberShape),
    /// An object with these members, and any others.
    Object(&'static [ShapeMember]),
    /// An object with these members; `true` and `[]` count as an empty one.
    Capability(&'static [ShapeMember]),
    /// An object whose `type` selects its members.
    Tagged(
        &'static [(&'static str, &'static [ShapeMember])],
        &'static str,
    ),
    /// An object with these members and at least one of these texts.
    AnyOf(
        &'static [ShapeMember],
        &'static [&'static str],
        &'static str,
    ),
}

/// A member of an object.
#[derive(Clone, Copy)]
pub(super) struct ShapeMember {
    pub(super) name: &'static str,
    pub(super) shape: MemberShape,
    pub(super) need: Need,
}

/// The consequence for an object that lacks a member.
#[derive(Clone, Copy)]
pub(super) enum Need {
    Optional,
    /// The object cannot be used.
    Vital,
    Text(&'static str),
    List,
    Object,
    Zero,
}

impl Need {
    /// Returns the value in place of a required member; `None` if there is none.
    fn filler(self) -> Option<Value> {
        match self {
            Self::Optional | Self::Vital => None,
            Self::Text(text) => Some(Value::String(text.to_owned())),
            Self::List => Some(Value::Array(Vec::new())),
            Self::Object => Some(Value::Object(Map::new())),
            Self::Zero => Some(Value::Number(0.into())),
        }
    }
}

impl MemberShape {
    fn expected(self) -> &'static str {
        match self {
            Self::Any => "a value",
            Self::Text | Self::Opaque => "a string",
            Self::Flag => "a boolean",
            Self::Number => "a number",
            Self::Size => "a whole number from zero",
            Self::Word(_, names) => names,
            Self::List(_) => "a list",
            Self::Map(_)
            | Self::Object(_)
            | Self::Capability(_)
            | Self::Tagged(..)
            | Self::AnyOf(..) => "an object",
        }
    }
}

/// One comparison: the current location, and the misfits so far.
#[derive(Default)]
pub(super) struct Fitting {
    pointer: String,
    misfits: Vec<Misfit>,
}

impl Fitting {
    pub(super) fn into_misfits(self) -> Vec<Misfit> {
        self.misfits
    }

    pub(super) fn note(&mut self, misfit: Misfit) {
        if self.misfits.len() < MOST {
            self.misfits.push(misfit);
        }
    }

    fn expects(&mut self, found: &Value, expected: &'static str) {
        self.note(Misfit::of(&self.pointer, found, expected));
    }

    /// Returns the value as far as it fits; `None` if nothing of it does.
    pub(super) fn fit(&mut self, shape: MemberShape, value: &Value) -> Option<Value> {
        match (shape, value) {
            (MemberShape::Any, value)
            | (MemberShape::Text | MemberShape::Opaque, value @ Value::String(_))
            | (MemberShape::Flag, value @ Value::Bool(_))
            | (MemberShape::Number, value @ Value::Number(_)) => Some(value.clone()),
            (MemberShape::Size, Value::Number(number)) => self.size(number),
            (MemberShape::Word(words, _), Value::String(text))
                if words.contains(&text.as_str()) =>
            {
                Some(value.clone())
            }
            (MemberShape::List(each), Value::Array(entries)) => Some(self.list(*each, entries)),
            (MemberShape::Map(each), Value::Object(entries)) => {
                let mut fitted = Map::new();
                for (name, entry) in entries {
                    if let Some(entry) = self.at(name, |fitting| fitting.fit(*each, entry)) {
                        fitted.insert(name.clone(), entry);
                    }
                }
                Some(Value::Object(fitted))
            }
            (
                MemberShape::Object(members) | MemberShape::Capability(members),
                Value::Object(found),
            ) => self.object(members, found),
            (MemberShape::Tagged(kinds, known), Value::Object(found)) => {
                self.tagged(kinds, known, found)
            }
            (MemberShape::AnyOf(members, one, expected), Value::Object(found)) => {
                if one
                    .iter()
                    .all(|name| !found.get(*name).is_some_and(Value::is_string))
                {
                    self.expects(value, expected);
                    return None;
                }
                self.object(members, found)
            }
            (shape, value) => {
                self.expects(value, shape.expected());
                match (shape, means_empty(shape, value)) {
                    (MemberShape::Object(members) | MemberShape::Capability(members), true) => {
                        self.object(members, &Map::new())
                    }
                    (_, true) => Some(Value::Object(Map::new())),
                    (_, false) => nearest(shape, value),
                }
            }
        }
    }

    /// Reads a whole number, which may be written as `1.0`. One that is too large is left out: it is legal.
    fn size(&mut self, number: &Number) -> Option<Value> {
        if number.is_u64() {
            return Some(Value::Number(number.clone()));
        }
        let float = number.as_f64()?;
        if float < 0.0 || float.fract() != 0.0 {
            self.expects(&Value::Number(number.clone()), MemberShape::Size.expected());
            return None;
        }
        let whole = format!("{float:.0}").parse::<u64>().ok()?;
        Some(whole.into())
    }

    fn list(&mut self, each: MemberShape, entries: &[Value]) -> Value {
        let fitted = entries
            .iter()
            .enumerate()
            .filter_map(|(place, entry)| {
                self.at(&place.to_string(), |fitting| fitting.fit(each, entry))
            })
            .collect();
        Value::Array(fitted)
    }

    fn object(&mut self, members: &[ShapeMember], found: &Map<String, Value>) -> Option<Value> {
        let mut fitted = found.clone();
        let mut usable = true;
        for member in members {
            let value = self.member(member, found.get(member.name));
            usable &= value.is_some() || !matches!(member.need, Need::Vital);
            match value {
                Some(value) => fitted.insert(member.name.to_owned(), value),
                None => fitted.remove(member.name),
            };
        }
        usable.then_some(Value::Object(fitted))
    }

    /// Returns the value of a member as far as it fits, or what stands in its place. `null` counts as absent where the
    /// member may be.
    fn member(&mut self, member: &ShapeMember, found: Option<&Value>) -> Option<Value> {
        let is_optional = matches!(member.need, Need::Optional);
        let fits = match found {
            Some(Value::Null) if is_optional && !matches!(member.shape, MemberShape::Any) => None,
            Some(found) => self.at(member.name, |fitting| fitting.fit(member.shape, found)),
            None if is_optional => None,
            None => {
                let expected = member.shape.expected();
                self.note(Misfit::missing(&self.pointer, member.name, expected));
                None
            }
        };
        fits.or_else(|| {
            let filler = member.need.filler()?;
            Fitting::default().fit(member.shape, &filler)
        })
    }

    fn tagged(
        &mut self,
        kinds: &[(&'static str, &'static [ShapeMember])],
        known: &'static str,
        found: &Map<String, Value>,
    ) -> Option<Value> {
        let Some(tag) = found.get("type") else {
            self.note(Misfit::missing(&self.pointer, "type", known));
            return None;
        };
        let members = kinds
            .iter()
            .find(|(kind, _)| Some(*kind) == tag.as_str())
            .map(|(_, members)| *members);
        if let Some(members) = members {
            return self.object(members, found);
        }
        self.at("type", |fitting| fitting.expects(tag, known));
        None
    }

    fn at<T>(&mut self, name: &str, then: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&token(name));
        let done = then(self);
        self.pointer.truncate(before);
        done
    }
}

/// Returns the value that a value of another type can only mean.
fn nearest(shape: MemberShape, value: &Value) -> Option<Value> {
    match (shape, value) {
        (MemberShape::Text, Value::Number(number)) => Some(Value::String(number.to_string())),
        (MemberShape::Text, Value::Bool(flag)) => Some(Value::String(flag.to_string())),
        (MemberShape::Flag, Value::String(text)) => match text.to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        (MemberShape::Flag, Value::Number(number)) => match number.as_u64() {
            Some(1) => Some(Value::Bool(true)),
            Some(0) => Some(Value::Bool(false)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns `true` for a value that stands in place of an empty object: PHP's empty array, and a flag as a capability.
fn means_empty(shape: MemberShape, value: &Value) -> bool {
    match (shape, value) {
        (MemberShape::Capability(_), Value::Bool(true)) => true,
        (
            MemberShape::Capability(_) | MemberShape::Object(_) | MemberShape::Map(_),
            Value::Array(entries),
        ) => entries.is_empty(),
        _ => false,
    }
}
