//! One string from a list: `enum`, `enum` with `enumNames`, or `oneOf` of const and title.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::defect::{At, DefectCode, NoteCode};
use super::kind::{Emit, FieldReader, Keywords, Kind};
use crate::answer::{BrokenRule, ExpectedType};
use crate::json::{Given, Json};
use crate::wire::Revision;

/// One option of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChoiceOption {
    /// The value that is sent when the option is selected; for an option that is not a string, its JSON text, which
    /// distinguishes it from the other options.
    pub value: Box<str>,
    /// The text that the person reads, if it differs from the value.
    pub title: Option<Box<str>>,
    /// The value that is sent, for an option that is not the string `value`: a number or a boolean. Only a form that was
    /// [read leniently](super::Form::parse_leniently) has such options.
    pub typed: Option<Value>,
    /// The JSON text of a number that is sent, if the server spells it otherwise than `typed` is written.
    pub(crate) spelling: Option<Box<str>>,
}

impl ChoiceOption {
    /// Returns the text that the person reads.
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.value)
    }

    /// Returns the value that is sent when the option is selected.
    pub fn sent(&self) -> Value {
        self.typed
            .clone()
            .unwrap_or_else(|| Value::from(&*self.value))
    }

    /// Returns `true` if the content's value is this option.
    fn is(&self, given: Given<'_>) -> bool {
        match (&self.typed, given) {
            (None, Given::Text(text)) => &*self.value == text,
            // A string in a list in which another option is spelled like it.
            (Some(Value::String(option)), Given::Text(given)) => option == given,
            (Some(Value::Bool(option)), Given::Boolean(given)) => *option == given,
            (Some(Value::Number(option)), Given::Number(given)) => {
                crate::number::compare(option, given) == std::cmp::Ordering::Equal
            }
            _ => false,
        }
    }
}

/// The options of a field in their given order. Never empty, without duplicate values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceOptions(Arc<[ChoiceOption]>);

impl ChoiceOptions {
    /// Creates the options of a lenient reading, whose values the caller made distinct.
    pub(super) fn from_distinct(options: Vec<ChoiceOption>) -> Self {
        ChoiceOptions(options.into())
    }

    /// Creates options without titles from distinct values.
    pub(crate) fn of_values(values: Vec<String>) -> Self {
        let options = values.into_iter().map(|value| ChoiceOption {
            value: value.into(),
            title: None,
            typed: None,
            spelling: None,
        });
        ChoiceOptions(options.collect())
    }

    pub(crate) fn contains(&self, value: &str) -> bool {
        self.0.iter().any(|option| &*option.value == value)
    }

    /// Returns the option that a value of the content is.
    pub(crate) fn find(&self, given: Given<'_>) -> Option<&ChoiceOption> {
        self.0.iter().find(|option| option.is(given))
    }

    /// Returns `true` if an option is not a string.
    pub(crate) fn are_typed(&self) -> bool {
        self.0.iter().any(|option| option.typed.is_some())
    }

    pub(crate) fn rule(&self) -> BrokenRule {
        BrokenRule::Enum(self.clone())
    }

    fn titled(&self) -> bool {
        self.0.iter().any(|option| option.title.is_some())
    }

    fn values(&self) -> Value {
        self.0.iter().map(|option| &*option.value).collect()
    }

    fn constants(&self) -> Value {
        self.0
            .iter()
            .map(|option| json!({ "const": option.value, "title": option.label() }))
            .collect()
    }
}

impl std::ops::Deref for ChoiceOptions {
    type Target = [ChoiceOption];

    fn deref(&self) -> &[ChoiceOption] {
        &self.0
    }
}

/// The rules of a single choice (`UntitledSingleSelectEnumSchema`, `TitledSingleSelectEnumSchema`,
/// `LegacyTitledEnumSchema`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// The options.
    pub options: ChoiceOptions,
    /// The only accepted option (`const`).
    pub constant: Option<String>,
    /// The option that is selected before the person decides.
    pub default: Option<String>,
}

impl Choice {
    pub(crate) fn read(keywords: &Keywords<'_, '_>, reader: &mut FieldReader<'_>) -> Option<Kind> {
        reader.without_effect("choice", &super::number::words_of(keywords));
        reader.without_effect("choice", &super::choices::words_of(keywords));
        for (key, present) in super::text::words_of(keywords) {
            if present {
                let message = format!(
                    "`{key}` constrains a text that is written; the options are listed already, remove it"
                );
                reader.defect(key, DefectCode::UnsupportedKeyword, message);
            }
        }
        let at = reader.at;
        let options = match (keywords.options, keywords.one_of) {
            (Some(_), Some(_)) => {
                reader.defect(
                    "enum",
                    DefectCode::OptionsTwice,
                    "give the options as `enum` or as `oneOf`, not both",
                );
                return None;
            }
            (Some(values), None) => {
                let mut options = read_values(values, "enum", &at.child("enum"), reader)?;
                read_names(&mut options, keywords.names, reader);
                options
            }
            (None, one_of) => read_constants(one_of?, "oneOf", &at.child("oneOf"), reader)?,
        };
        let constant = reader.text("const", keywords.constant).map(String::from);
        reader.not_portable("const", constant.is_some(), "give an `enum` of one");
        if constant
            .as_ref()
            .is_some_and(|constant| !options.contains(constant))
        {
            reader.defect(
                "const",
                DefectCode::ImpossibleRange,
                "the only value allowed is none of the options",
            );
        }
        let choice = Choice {
            options,
            constant,
            default: None,
        };
        let kind = Kind::Choice(choice);
        if !reader.default_holds(&kind, keywords.default) {
            return Some(kind);
        }
        let Kind::Choice(choice) = kind else {
            return None;
        };
        Some(Kind::Choice(Choice {
            default: keywords.default.and_then(Json::as_text).map(str::to_owned),
            ..choice
        }))
    }

    pub(crate) fn check(&self, given: Given<'_>, broken: &mut impl FnMut(BrokenRule)) {
        if self.options.are_typed() {
            if self.options.find(given).is_none() {
                broken(self.options.rule());
            }
            return;
        }
        let Given::Text(text) = given else {
            return broken(BrokenRule::Type(ExpectedType::Text));
        };
        if !self.options.contains(text) {
            broken(self.options.rule());
        }
        if let Some(constant) = self.constant.as_ref().filter(|constant| *constant != text) {
            broken(BrokenRule::Const(
                Value::from(constant.as_str()).to_string().into(),
            ));
        }
    }

    /// Returns the value of the option that is selected before the person decides.
    pub(crate) fn default_value(&self) -> Option<Value> {
        let default = self.default.as_deref()?;
        let option = self.options.iter().find(|option| &*option.value == default);
        option.map(ChoiceOption::sent)
    }

    pub(crate) fn emit(&self, revision: Revision, out: &mut Emit) {
        match (self.options.titled(), revision) {
            (false, _) => out.put("enum", self.options.values()),
            (true, Revision::V2025_06_18) => {
                out.put("enum", self.options.values());
                out.put(
                    "enumNames",
                    self.options
                        .iter()
                        .map(ChoiceOption::label)
                        .collect::<Value>(),
                );
            }
            (true, Revision::V2025_11_25 | Revision::V2026_07_28) => {
                out.put("oneOf", self.options.constants());
            }
        }
        out.put_some("const", self.constant.as_deref());
        out.put_some("default", self.default.as_deref());
    }
}

/// Writes the `items` of several choices.
pub(crate) fn emit_items(options: &ChoiceOptions, out: &mut Emit) {
    let items = if options.titled() {
        json!({ "anyOf": options.constants() })
    } else {
        json!({ "type": "string", "enum": options.values() })
    };
    out.put("items", items);
}

/// Reads `enum`: a list of strings.
pub(crate) fn read_values(
    value: &Json<'_>,
    key: &str,
    at: &At<'_>,
    reader: &mut FieldReader<'_>,
) -> Option<ChoiceOptions> {
    let values = read_list(value, key, at, reader)?;
    let mut options = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        if let Some(text) = value.as_text() {
            options.push(ChoiceOption {
                value: text.into(),
                title: None,
                typed: None,
                spelling: None,
            });
        } else {
            let message = format!("an option must be a string, not {}", value.kind());
            reader
                .found
                .defect(&at.child(&i.to_string()), DefectCode::OptionShape, message);
        }
    }
    finish(options, values.len(), at, reader)
}

/// Reads `oneOf` or `anyOf`: a list of `{const, title}`.
pub(crate) fn read_constants(
    value: &Json<'_>,
    key: &str,
    at: &At<'_>,
    reader: &mut FieldReader<'_>,
) -> Option<ChoiceOptions> {
    let entries = read_list(value, key, at, reader)?;
    let mut options = Vec::with_capacity(entries.len());
    for (i, entry) in entries.iter().enumerate() {
        match read_constant(entry) {
            Ok(option) => options.push(option),
            Err(message) => {
                reader
                    .found
                    .defect(&at.child(&i.to_string()), DefectCode::OptionShape, message);
            }
        }
    }
    finish(options, entries.len(), at, reader)
}

fn read_constant(entry: &Json<'_>) -> Result<ChoiceOption, String> {
    const SHAPE: &str =
        "an option must be {\"const\": \"value\", \"title\": \"what the person reads\"}";
    let Json::Object(keywords) = entry else {
        return Err(format!("{SHAPE}, not {}", entry.kind()));
    };
    let (mut value, mut title) = (None, None);
    for (key, given) in keywords {
        match (&**key, given) {
            ("const", Json::Text(text)) => value = Some(text),
            ("title", Json::Text(text)) => title = Some(text),
            ("const" | "title", other) => {
                return Err(format!(
                    "`{key}` of an option must be a string, not {}",
                    other.kind()
                ));
            }
            ("type", Json::Text(text)) if text == "string" => {}
            (key, _) if super::parse::constrains(key) => {
                return Err(format!(
                    "{SHAPE}; `{}` is not allowed there",
                    super::text::clip(key)
                ));
            }
            _ => {}
        }
    }
    let value = value.ok_or(SHAPE)?;
    Ok(ChoiceOption {
        value: value.as_ref().into(),
        title: title.map(|title| title.as_ref().into()),
        typed: None,
        spelling: None,
    })
}

fn read_list<'j, 'a>(
    value: &'j Json<'a>,
    key: &str,
    at: &At<'_>,
    reader: &mut FieldReader<'_>,
) -> Option<&'j [Json<'a>]> {
    match value {
        Json::List(entries) if entries.len() > reader.limits.options => {
            let message = format!(
                "{} options; a field may have {} at most",
                entries.len(),
                reader.limits.options
            );
            reader.found.defect(at, DefectCode::TooManyOptions, message);
            None
        }
        Json::List(entries) if !entries.is_empty() => Some(entries),
        Json::List(_) => {
            reader.found.defect(
                at,
                DefectCode::NoOptions,
                format!("`{key}` is empty, so nothing can be picked: list at least one option"),
            );
            None
        }
        other => {
            reader.found.defect(
                at,
                DefectCode::NoOptions,
                format!("`{key}` must be a list of options, not {}", other.kind()),
            );
            None
        }
    }
}

/// Rejects duplicate options; returns `None` if an entry was already rejected.
fn finish(
    options: Vec<ChoiceOption>,
    given: usize,
    at: &At<'_>,
    reader: &mut FieldReader<'_>,
) -> Option<ChoiceOptions> {
    let mut duplicate = false;
    let mut refuse = |i: usize, reader: &mut FieldReader<'_>| {
        duplicate = true;
        reader.found.defect(
            &at.child(&i.to_string()),
            DefectCode::DuplicateOption,
            "this option is already in the list: give each value once",
        );
    };
    if options.len() <= 16 {
        for (i, option) in options.iter().enumerate() {
            if options[..i]
                .iter()
                .any(|earlier| earlier.value == option.value)
            {
                refuse(i, reader);
            }
        }
    } else {
        let mut seen = HashSet::with_capacity(options.len());
        for (i, option) in options.iter().enumerate() {
            if !seen.insert(&*option.value) {
                refuse(i, reader);
            }
        }
    }
    (!duplicate && options.len() == given).then_some(ChoiceOptions(options.into()))
}

/// Reads `enumNames`, the titles of 2025-06-18.
fn read_names(options: &mut ChoiceOptions, names: Option<&Json<'_>>, reader: &mut FieldReader<'_>) {
    let Some(list) = names else { return };
    let Json::List(entries) = list else {
        reader.wrong_type("enumNames", "a list of strings", list);
        return;
    };
    let titles: Vec<_> = entries.iter().filter_map(Json::as_text).collect();
    if titles.len() != entries.len() {
        reader.defect(
            "enumNames",
            DefectCode::KeywordType,
            "`enumNames` must be a list of strings",
        );
    } else if titles.len() != options.len() {
        let message = format!(
            "{} names for {} options: they cannot be told apart, so the values are shown",
            titles.len(),
            options.len()
        );
        reader.note("enumNames", NoteCode::NamesIgnored, message);
    } else {
        let labelled = options
            .iter()
            .zip(titles)
            .map(|(option, title)| ChoiceOption {
                value: option.value.clone(),
                title: Some(title.into()),
                typed: None,
                spelling: None,
            });
        *options = ChoiceOptions(labelled.collect());
    }
}

/// Rejects options on a field that is not a string.
pub(crate) fn refuse_options(
    keywords: &Keywords<'_, '_>,
    kind: &str,
    reader: &mut FieldReader<'_>,
) {
    for (key, present) in [
        ("enum", keywords.options.is_some()),
        ("oneOf", keywords.one_of.is_some()),
    ] {
        if present {
            let message =
                format!("only strings have options, not {kind}: use \"type\": \"string\"");
            reader.defect(key, DefectCode::EnumNotString, message);
        }
    }
    if keywords.names.is_some() && keywords.options.is_none() {
        reader.note(
            "enumNames",
            NoteCode::NoEffect,
            "`enumNames` without `enum` names nothing; ignored",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::form::tests::{broken, defects, form, notes};
    use crate::form::{Form, Kind};
    use crate::wire::Revision;

    fn labels(form: &Form) -> Vec<&str> {
        match form.fields()[0].kind() {
            Kind::Choice(choice) => choice
                .options
                .iter()
                .map(super::ChoiceOption::label)
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn three_spellings() {
        for (schema, expected) in [
            (r#"{"a":{"type":"string","enum":["x","y"]}}"#, ["x", "y"]),
            (
                r#"{"a":{"type":"string","enum":["x","y"],"enumNames":["Ex","Why"]}}"#,
                ["Ex", "Why"],
            ),
            (
                r#"{"a":{"type":"string","oneOf":[{"const":"x","title":"Ex"},{"const":"y","title":"Why"}]}}"#,
                ["Ex", "Why"],
            ),
        ] {
            let form = form(schema);
            assert_eq!(labels(&form), expected);
            assert_eq!(broken(&form, r#"{"a":"y"}"#), [""; 0]);
            assert_eq!(broken(&form, r#"{"a":"Why"}"#), ["enum"]);
            assert_eq!(broken(&form, r#"{"a":1}"#), ["type"]);
        }
    }

    #[test]
    fn titles_are_respelled_for_the_revision() {
        let form =
            form(r#"{"a":{"type":"string","oneOf":[{"const":"x","title":"Ex"}],"default":"x"}}"#);
        let old = form.emit(Revision::V2025_06_18).unwrap();
        assert_eq!(
            old["properties"]["a"],
            serde_json::json!({"type":"string","enum":["x"],"enumNames":["Ex"],"default":"x"})
        );
        let new = Form::from_value(&old)
            .unwrap()
            .emit(Revision::V2026_07_28)
            .unwrap();
        assert_eq!(
            new["properties"]["a"],
            serde_json::json!({"type":"string","oneOf":[{"const":"x","title":"Ex"}],"default":"x"})
        );
    }

    #[test]
    fn broken_lists() {
        for (field, expected) in [
            (r#""enum":[]"#, "/properties/a/enum no-options"),
            (r#""enum":"x""#, "/properties/a/enum no-options"),
            (r#""enum":["x",1]"#, "/properties/a/enum/1 option-shape"),
            (
                r#""enum":["x","y","x"]"#,
                "/properties/a/enum/2 duplicate-option",
            ),
            (
                r#""oneOf":[{"title":"X"}]"#,
                "/properties/a/oneOf/0 option-shape",
            ),
            (
                r#""oneOf":[{"const":"x","minLength":1}]"#,
                "/properties/a/oneOf/0 option-shape",
            ),
            (
                r#""oneOf":[{"const":"x"},{"const":"x"}]"#,
                "/properties/a/oneOf/1 duplicate-option",
            ),
            (
                r#""enum":["x"],"oneOf":[{"const":"x"}]"#,
                "/properties/a/enum options-twice",
            ),
            (
                r#""enum":["x"],"default":"y""#,
                "/properties/a/default default-invalid",
            ),
            (
                r#""enum":["x"],"minLength":3"#,
                "/properties/a/minLength unsupported-keyword",
            ),
            (
                r#""enum":["x"],"const":"y""#,
                "/properties/a/const impossible-range",
            ),
        ] {
            assert_eq!(
                defects(&format!(r#"{{"a":{{"type":"string",{field}}}}}"#)),
                [expected],
                "{field}"
            );
        }
        assert_eq!(
            notes(r#"{"a":{"type":"string","enum":["x","y"],"enumNames":["X"]}}"#),
            ["/properties/a/enumNames names-ignored"]
        );
    }
}
