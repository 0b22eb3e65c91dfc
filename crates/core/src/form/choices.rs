//! Several strings from a list: `type: array` with `items.enum`, `items.anyOf` or `items.oneOf` (2025-11-25 and later).

use std::collections::HashSet;

use serde_json::Value;

use super::choice::{ChoiceOption, ChoiceOptions, emit_items, read_constants, read_values};
use super::defect::DefectCode;
use super::kind::{Emit, FieldReader, Keywords, Kind};
use crate::answer::{BrokenRule, ExpectedType};
use crate::json::{Given, Items, Json};

/// The rules of several choices (`UntitledMultiSelectEnumSchema`, `TitledMultiSelectEnumSchema`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choices {
    /// The options.
    pub options: ChoiceOptions,
    /// The minimum number of selected options.
    pub min_items: Option<u64>,
    /// The maximum number of selected options.
    pub max_items: Option<u64>,
    /// `true` if each option may be selected once. Enforced, although no revision lists it.
    pub unique: bool,
    /// The options that are selected before the person decides.
    pub default: Option<Vec<String>>,
}

impl Choices {
    pub(crate) fn read(keywords: &Keywords<'_, '_>, reader: &mut FieldReader<'_>) -> Option<Kind> {
        reader.without_effect("list of choices", &super::text::words_of(keywords));
        reader.without_effect("list of choices", &super::number::words_of(keywords));
        super::choice::refuse_options(keywords, "a list (put the options into `items`)", reader);
        if keywords.constant.is_some() {
            reader.defect(
                "const",
                DefectCode::UnsupportedKeyword,
                "`const` is not for lists: leave the field out",
            );
        }
        let options = read_items(keywords.items, reader);
        let min_items = reader.count("minItems", keywords.min_items);
        let max_items = reader.count("maxItems", keywords.max_items);
        let unique = match keywords.unique_items {
            Some(Json::Boolean(unique)) => *unique,
            Some(other) => {
                reader.wrong_type("uniqueItems", "true or false", other);
                false
            }
            None => false,
        };
        reader.not_portable(
            "uniqueItems",
            unique,
            "clients send each option once anyway",
        );
        let options = options?;
        if let Some(min) = min_items {
            if max_items.is_some_and(|max| min > max) {
                let message = format!(
                    "no selection has at least {min} and at most {}",
                    max_items.unwrap_or_default()
                );
                reader.defect("minItems", DefectCode::ImpossibleRange, message);
            } else if min > options.len() as u64 {
                let message = format!("no selection has {min} of {} options", options.len());
                reader.defect("minItems", DefectCode::ImpossibleRange, message);
            }
        }
        let kind = Kind::Choices(Choices {
            options,
            min_items,
            max_items,
            unique,
            default: None,
        });
        if !reader.default_holds(&kind, keywords.default) {
            return Some(kind);
        }
        let Kind::Choices(choices) = kind else {
            return None;
        };
        let default = match keywords.default {
            Some(Json::List(picked)) => Some(
                picked
                    .iter()
                    .filter_map(Json::as_text)
                    .map(str::to_owned)
                    .collect(),
            ),
            _ => None,
        };
        Some(Kind::Choices(Choices { default, ..choices }))
    }

    pub(crate) fn check(&self, given: Given<'_>, broken: &mut impl FnMut(BrokenRule)) {
        let Given::List(items) = given else {
            return broken(BrokenRule::Type(ExpectedType::Choices));
        };
        let picked = items.len() as u64;
        if let Some(min) = self.min_items.filter(|min| picked < *min) {
            broken(BrokenRule::MinItems(min));
        }
        if let Some(max) = self.max_items.filter(|max| picked > *max) {
            broken(BrokenRule::MaxItems(max));
        }
        let (mut other_type, mut unknown) = (false, false);
        if self.options.are_typed() {
            return self.check_typed(items, broken);
        }
        for item in items.texts() {
            match item {
                None => other_type = true,
                Some(text) => unknown |= !self.options.contains(text),
            }
            if unknown && other_type {
                break;
            }
        }
        if other_type {
            broken(BrokenRule::Type(ExpectedType::Choices));
        }
        if unknown {
            broken(self.options.rule());
        }
        if self.unique && has_doubles(items) {
            broken(BrokenRule::UniqueItems);
        }
    }

    fn check_typed(&self, items: Items<'_>, broken: &mut impl FnMut(BrokenRule)) {
        let picked: Vec<_> = items.iter().map(|item| self.options.find(item)).collect();
        if picked.contains(&None) {
            broken(self.options.rule());
        }
        let mut seen = HashSet::new();
        let mut values = picked.iter().flatten().map(|option| &*option.value);
        if self.unique && values.any(|value| !seen.insert(value)) {
            broken(BrokenRule::UniqueItems);
        }
    }

    /// Returns the values of the options that are selected before the person decides.
    pub(crate) fn default_value(&self) -> Option<Value> {
        let picked = self.default.as_ref()?.iter();
        let options = picked.filter_map(|value| {
            let option = self.options.iter().find(|option| *option.value == **value);
            option.map(ChoiceOption::sent)
        });
        Some(options.collect())
    }

    pub(crate) fn emit(&self, out: &mut Emit) {
        out.put_some("minItems", self.min_items);
        out.put_some("maxItems", self.max_items);
        if self.unique {
            out.put("uniqueItems", true);
        }
        emit_items(&self.options, out);
        out.put_some("default", self.default.clone());
    }
}

/// Returns `true` if a string occurs twice; members of other types have broken the type rule already.
fn has_doubles(items: Items<'_>) -> bool {
    let mut seen = HashSet::new();
    items.texts().flatten().any(|text| !seen.insert(text))
}

fn read_items(items: Option<&Json<'_>>, reader: &mut FieldReader<'_>) -> Option<ChoiceOptions> {
    const ALLOWED: &str = "a list may hold only strings from a list: {\"type\": \"string\", \"enum\": [...]} or {\"anyOf\": [{\"const\", \"title\"}]}";
    let at_field = reader.at;
    let at = at_field.child("items");
    let Some(Json::Object(keywords)) = items else {
        reader.found.defect(&at, DefectCode::ArrayItems, ALLOWED);
        return None;
    };
    let mut options = None;
    let mut seen = 0;
    let mut sound = true;
    for (key, value) in keywords {
        match &**key {
            "type" if value.as_text() == Some("string") => {}
            "enum" => {
                seen += 1;
                options = read_values(value, key, &at.child("enum"), reader);
            }
            "anyOf" | "oneOf" => {
                seen += 1;
                options = read_constants(value, key, &at.child(key), reader);
            }
            other if other == "type" || super::parse::constrains(other) => {
                sound = false;
                reader
                    .found
                    .defect(&at.child(other), DefectCode::ArrayItems, ALLOWED);
            }
            "title" | "description" | "default" => {}
            other if super::parse::annotates(other) => {}
            other => super::parse::unknown(other, &at, reader.found),
        }
    }
    if seen > 1 {
        sound = false;
        reader.found.defect(
            &at,
            DefectCode::OptionsTwice,
            "give the options once: as `enum`, `anyOf` or `oneOf`",
        );
    } else if seen == 0 && sound {
        sound = false;
        reader.found.defect(&at, DefectCode::ArrayItems, ALLOWED);
    }
    options.filter(|_| sound)
}

/// Returns the keywords of this kind, and whether they are present.
pub(crate) fn words_of(keywords: &Keywords<'_, '_>) -> [(&'static str, bool); 3] {
    [
        ("minItems", keywords.min_items.is_some()),
        ("maxItems", keywords.max_items.is_some()),
        ("uniqueItems", keywords.unique_items.is_some()),
    ]
}

#[cfg(test)]
mod tests {
    use crate::form::tests::{broken, defects, form, notes};
    use crate::wire::Revision;

    #[test]
    fn three_spellings() {
        for items in [
            r#"{"type":"string","enum":["x","y","z"]}"#,
            r#"{"anyOf":[{"const":"x","title":"X"},{"const":"y","title":"Y"},{"const":"z","title":"Z"}]}"#,
            r#"{"oneOf":[{"const":"x","title":"X"},{"const":"y","title":"Y"},{"const":"z","title":"Z"}]}"#,
        ] {
            let form = form(&format!(
                r#"{{"a":{{"type":"array","minItems":1,"maxItems":2,"items":{items}}}}}"#
            ));
            for (content, rules) in [
                (r#"{"a":["x"]}"#, vec![]),
                (r#"{"a":["x","x"]}"#, vec![]),
                (r#"{"a":[]}"#, vec!["minItems"]),
                (r#"{"a":["x","y","z"]}"#, vec!["maxItems"]),
                (r#"{"a":["x","q"]}"#, vec!["enum"]),
                (r#"{"a":["x",1]}"#, vec!["type"]),
                (r#"{"a":"x"}"#, vec!["type"]),
            ] {
                assert_eq!(broken(&form, content), rules, "{items} {content}");
            }
        }
    }

    #[test]
    fn what_the_options_of_a_list_do_not_know_is_noted() {
        assert_eq!(
            notes(
                r#"{"a":{"type":"array","items":{"type":"string","title":"T","enum":["x"],"enumNames":["X"]}}}"#
            ),
            ["/properties/a/items/enumNames unknown-keyword"]
        );
    }

    #[test]
    fn unique_when_asked() {
        let form = form(r#"{"a":{"type":"array","uniqueItems":true,"items":{"enum":["x","y"]}}}"#);
        assert_eq!(broken(&form, r#"{"a":["x","x"]}"#), ["uniqueItems"]);
    }

    #[test]
    fn the_first_revision_cannot_say_it() {
        let form = form(r#"{"a":{"type":"array","items":{"enum":["x"]},"default":["x"]}}"#);
        assert_eq!(form.emit(Revision::V2025_06_18).unwrap_err().field, "a");
        assert_eq!(
            form.emit(Revision::V2025_11_25).unwrap()["properties"]["a"]["items"],
            serde_json::json!({"type":"string","enum":["x"]})
        );
    }

    #[test]
    fn what_a_list_may_not_hold() {
        for (field, expected) in [
            (r#""x":1"#, "/properties/a/items array-items"),
            (
                r#""items":{"type":"string"}"#,
                "/properties/a/items array-items",
            ),
            (
                r#""items":{"type":"object"}"#,
                "/properties/a/items/type array-items",
            ),
            (
                r#""items":{"type":"integer","enum":["1"]}"#,
                "/properties/a/items/type array-items",
            ),
            (
                r#""items":{"enum":["x"],"minLength":2}"#,
                "/properties/a/items/minLength array-items",
            ),
            (
                r#""items":{"enum":["x"]},"minItems":2"#,
                "/properties/a/minItems impossible-range",
            ),
            (
                r#""items":{"enum":["x","y"]},"minItems":2,"maxItems":1"#,
                "/properties/a/minItems impossible-range",
            ),
            (
                r#""items":{"enum":["x"]},"default":["y"]"#,
                "/properties/a/default default-invalid",
            ),
            (
                r#""items":{"enum":["x"],"anyOf":[{"const":"x"}]}"#,
                "/properties/a/items options-twice",
            ),
        ] {
            assert_eq!(
                defects(&format!(r#"{{"a":{{"type":"array",{field}}}}}"#)),
                [expected],
                "{field}"
            );
        }
    }
}
