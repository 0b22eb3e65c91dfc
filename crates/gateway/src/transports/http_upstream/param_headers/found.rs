//! The arguments of a call that headers repeat, found in one walk over their text. Nothing else is kept, since arguments
//! may be large and all callers wait meanwhile.

use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::letters;

/// The values that were found for each header: `None` for one that no header can repeat.
pub(super) type FoundValues = Vec<Vec<Option<String>>>;

/// Returns the value at the end of each path; none for a path that does not exist, or in text that is not JSON.
pub(super) fn at_paths<'p>(
    arguments: &str,
    paths: impl ExactSizeIterator<Item = &'p [String]>,
) -> Vec<Option<String>> {
    let count = paths.len();
    let wanted = Search::Paths(paths.enumerate().collect());
    let found = walked(arguments, &wanted, count);
    let last = |mut values: Vec<Option<String>>| values.pop().flatten();
    found.into_iter().map(last).collect()
}

/// Returns the values of all members that have these letters in their names, outside of lists. `by_letters` has the place
/// of each in the result.
pub(super) fn by_letters(arguments: &str, by_letters: &HashMap<String, usize>) -> FoundValues {
    walked(arguments, &Search::Letters(by_letters), by_letters.len())
}

fn walked(arguments: &str, wanted: &Search<'_>, count: usize) -> FoundValues {
    let mut found = vec![Vec::new(); count];
    let mut text = serde_json::Deserializer::from_str(arguments);
    let walk = ValueWalk {
        wanted,
        exact: &[],
        found: &mut found,
    };
    if walk.deserialize(&mut text).is_err() || text.end().is_err() {
        return vec![Vec::new(); count];
    }
    found
}

/// The members to find below a value.
enum Search<'p> {
    /// The rest of each path, with its place in the result.
    Paths(Vec<(usize, &'p [String])>),
    /// All members with these letters in their names.
    Letters(&'p HashMap<String, usize>),
}

impl Search<'_> {
    /// Returns the places of the member of this name, and what to find below it; `None` if nothing can be there.
    fn of_member(&self, name: &str) -> Option<(Vec<usize>, Self)> {
        match self {
            Self::Paths(paths) => {
                let (mut exact, mut below) = (Vec::new(), Vec::new());
                for (place, path) in paths {
                    match path.split_first() {
                        Some((first, [])) if first == name => exact.push(*place),
                        Some((first, rest)) if first == name => below.push((*place, rest)),
                        _ => {}
                    }
                }
                let is_empty = exact.is_empty() && below.is_empty();
                (!is_empty).then_some((exact, Self::Paths(below)))
            }
            Self::Letters(all) => {
                let exact = all.get(&letters(name)).copied().into_iter().collect();
                Some((exact, Self::Letters(all)))
            }
        }
    }
}

/// The walk over one value.
struct ValueWalk<'w, 'p> {
    wanted: &'w Search<'p>,
    /// The places of this value.
    exact: &'w [usize],
    found: &'w mut FoundValues,
}

impl ValueWalk<'_, '_> {
    fn keep(&mut self, value: Option<&Value>) {
        for place in self.exact {
            self.found[*place].push(value.and_then(super::text_of));
        }
    }

    fn keep_value(mut self, value: impl FnOnce() -> Value) {
        if !self.exact.is_empty() {
            self.keep(Some(&value()));
        }
    }

    /// Forgets an earlier member of the same name: of two, the last one counts.
    fn forget_below(&mut self, exact: &[usize], below: &Search<'_>) {
        if let Search::Paths(paths) = below {
            let places = paths.iter().map(|(place, _)| place).chain(exact);
            for place in places {
                self.found[*place].clear();
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for ValueWalk<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueWalk<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.keep_value(|| value.into());
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.keep_value(|| value.into());
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.keep_value(|| value.into());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.keep_value(|| value.into());
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.keep_value(|| value.into());
        Ok(())
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.keep(None);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.keep(None);
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        self.keep(None);
        while let Some(name) = members.next_key::<String>()? {
            let Some((exact, below)) = self.wanted.of_member(&name) else {
                members.next_value::<IgnoredAny>()?;
                continue;
            };
            self.forget_below(&exact, &below);
            members.next_value_seed(ValueWalk {
                wanted: &below,
                exact: &exact,
                found: self.found,
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(arguments: &str, paths: &[&[&str]]) -> Vec<Option<String>> {
        let owned = |path: &&[&str]| path.iter().map(|step| (*step).to_owned()).collect();
        let paths: Vec<Vec<String>> = paths.iter().map(owned).collect();
        at_paths(arguments, paths.iter().map(Vec::as_slice))
    }

    #[test]
    fn the_value_at_each_path_is_found() {
        let arguments = r#"{"a":"x","b":{"c":1.50,"d":{"e":true,"\u0066":-3}},"n":null,"l":[{"c":2}],"big":1e22,"a/b":"é"}"#;
        let found = texts(
            arguments,
            &[
                &["a"],
                &["b", "c"],
                &["b", "d", "e"],
                &["b", "d", "f"],
                &["b"],
                &["n"],
                &["l", "c"],
                &["big"],
                &["a/b"],
                &["a", "x"],
                &["none"],
            ],
        );
        let found: Vec<_> = found.iter().map(Option::as_deref).collect();
        let expected = [
            Some("x"),
            Some("1.5"),
            Some("true"),
            Some("-3"),
            None,
            None,
            None,
            Some("1e+22"),
            Some("é"),
            None,
            None,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn of_two_members_of_one_name_the_last_counts_as_in_a_value() {
        for (arguments, expected) in [
            (r#"{"a":{"b":1},"a":{"b":2}}"#, Some("2")),
            (r#"{"a":{"b":1},"a":{}}"#, None),
            (r#"{"a":{"b":1},"a":3}"#, None),
            (r#"{"a":{"b":1}} x"#, None),
            (r#"{"a":{"b":1}"#, None),
            ("3", None),
        ] {
            let found = texts(arguments, &[&["a", "b"]]);
            assert_eq!(found[0].as_deref(), expected, "{arguments}");
        }
    }

    #[test]
    fn the_members_of_all_headers_are_found_in_one_walk() {
        let arguments = r#"{"a-b":1,"c":{"AB":2,"d":3,"x":{"d":5}},"ab":[{"d":4}]}"#;
        let places = HashMap::from([("ab", 0), ("d", 1), ("x", 2)]);
        let places = places.into_iter().map(|(name, at)| (name.to_owned(), at));
        let found = by_letters(arguments, &places.collect());
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [
                vec![some("1"), some("2"), None],
                vec![some("3"), some("5")],
                vec![None]
            ]
        );
    }
}
