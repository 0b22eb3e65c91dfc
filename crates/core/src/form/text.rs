//! A string field that the person writes: `type: string` without options.

use serde_json::Value;

use super::defect::{DefectCode, NoteCode};
use super::kind::{Emit, FieldReader, Keywords, Kind};
use super::pattern::Refused;
use super::{Format, Pattern};
use crate::answer::{BrokenRule, ExpectedType};
use crate::json::{Given, Json};
use crate::text::shortened;

/// The rules of a string (`StringSchema`). Lengths count Unicode code points (JSON Schema 2020-12 validation §6.3).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Text {
    /// The minimum number of characters.
    pub min_length: Option<u64>,
    /// The maximum number of characters.
    pub max_length: Option<u64>,
    /// A regular expression that the text must contain a match of.
    pub pattern: Option<Pattern>,
    /// One of the four formats.
    pub format: Option<Format>,
    /// A format that forms do not have, by its name. It is not enforced. Only a form that was
    /// [read leniently](super::Form::parse_leniently) has it.
    pub other_format: Option<Box<str>>,
    /// The only accepted text (`const`).
    pub constant: Option<String>,
    /// The text that is filled in before the person answers.
    pub default: Option<String>,
}

impl Text {
    pub(crate) fn read(keywords: &Keywords<'_, '_>, reader: &mut FieldReader<'_>) -> Kind {
        reader.without_effect("text field", &super::number::words_of(keywords));
        reader.without_effect("text field", &super::choices::words_of(keywords));
        let text = Text {
            min_length: reader.count("minLength", keywords.min_length),
            max_length: reader.count("maxLength", keywords.max_length),
            pattern: read_pattern(keywords.pattern, reader),
            format: read_format(keywords.format, reader),
            other_format: None,
            constant: reader.text("const", keywords.constant).map(String::from),
            default: None,
        };
        reader.not_portable(
            "const",
            keywords.constant.is_some(),
            "give an `enum` of one",
        );
        if let (Some(min), Some(max)) = (text.min_length, text.max_length)
            && min > max
        {
            reader.defect(
                "minLength",
                DefectCode::ImpossibleRange,
                format!("no text has at least {min} and at most {max} characters"),
            );
        }
        text.constant_is_possible(reader);
        let kind = Kind::Text(text);
        if !reader.default_holds(&kind, keywords.default) {
            return kind;
        }
        let Kind::Text(text) = kind else { return kind };
        Kind::Text(Text {
            default: keywords.default.and_then(Json::as_text).map(str::to_owned),
            ..text
        })
    }

    fn constant_is_possible(&self, reader: &mut FieldReader<'_>) {
        if let Some(constant) = &self.constant {
            self.check(Given::Text(constant), &mut |rule| {
                reader.defect(
                    "const",
                    DefectCode::ImpossibleRange,
                    format!("the only value allowed breaks another rule: {rule}"),
                );
            });
        }
    }

    pub(crate) fn check(&self, given: Given<'_>, broken: &mut impl FnMut(BrokenRule)) {
        let Given::Text(text) = given else {
            return broken(BrokenRule::Type(ExpectedType::Text));
        };
        if self.min_length.is_some() || self.max_length.is_some() {
            let length = length(text);
            if let Some(min) = self.min_length.filter(|min| length < *min) {
                broken(BrokenRule::MinLength(min));
            }
            if let Some(max) = self.max_length.filter(|max| length > *max) {
                broken(BrokenRule::MaxLength(max));
            }
        }
        if let Some(format) = self.format.filter(|format| !format.matches(text)) {
            broken(BrokenRule::Format(format));
        }
        if let Some(pattern) = self
            .pattern
            .as_ref()
            .filter(|pattern| !pattern.matches(text))
        {
            broken(BrokenRule::Pattern(pattern.shared_source()));
        }
        if let Some(constant) = self.constant.as_ref().filter(|constant| *constant != text) {
            broken(BrokenRule::Const(
                Value::from(constant.as_str()).to_string().into(),
            ));
        }
    }

    pub(crate) fn emit(&self, out: &mut Emit) {
        out.put_some("minLength", self.min_length);
        out.put_some("maxLength", self.max_length);
        let pattern = self.pattern.as_ref();
        let pattern = pattern.filter(|pattern| !pattern.is_foreign());
        out.put_some("pattern", pattern.map(Pattern::as_str));
        out.put_some("format", self.format.map(Format::as_str));
        out.put_some("const", self.constant.as_deref());
        out.put_some("default", self.default.as_deref());
    }
}

fn length(text: &str) -> u64 {
    let length = if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    };
    length as u64
}

fn read_format(value: Option<&Json<'_>>, reader: &mut FieldReader<'_>) -> Option<Format> {
    let name = reader.text("format", value)?;
    let format = Format::named(&name);
    if format.is_none() {
        reader.defect(
            "format",
            DefectCode::UnsupportedFormat,
            format!("`{}` is not a format of elicitation: use email, uri, date or date-time, or a `pattern`", clip(&name)),
        );
    }
    format
}

fn read_pattern(value: Option<&Json<'_>>, reader: &mut FieldReader<'_>) -> Option<Pattern> {
    let source = reader.text("pattern", value)?;
    match Pattern::parse(&source, reader.limits, reader.patterns) {
        Ok(pattern) => {
            if !pattern.enforced() {
                reader.note(
                    "pattern",
                    NoteCode::PatternNotEnforced,
                    "this pattern uses look-around or back-references, which cannot be matched in linear time; it is not checked",
                );
            }
            Some(pattern)
        }
        Err(Refused::Syntax) => {
            reader.defect(
                "pattern",
                DefectCode::PatternSyntax,
                "not a regular expression",
            );
            None
        }
        Err(Refused::Cost) => {
            let limits = reader.limits;
            reader.defect(
                "pattern",
                DefectCode::PatternCost,
                format!(
                    "a pattern may have {} bytes, and the patterns of a form {} states at most",
                    limits.pattern_bytes, limits.pattern_states
                ),
            );
            None
        }
    }
}

/// Returns a peer's name, short enough for a message.
pub(crate) fn clip(name: &str) -> String {
    const SHOWN: usize = 60;
    shortened(name, SHOWN)
}

/// Returns the keywords of this kind, and whether they are present.
pub(crate) fn words_of(keywords: &Keywords<'_, '_>) -> [(&'static str, bool); 4] {
    [
        ("minLength", keywords.min_length.is_some()),
        ("maxLength", keywords.max_length.is_some()),
        ("pattern", keywords.pattern.is_some()),
        ("format", keywords.format.is_some()),
    ]
}

#[cfg(test)]
mod tests {
    use crate::form::tests::{broken, defects, form};

    #[test]
    fn lengths_are_code_points() {
        let form = form(r#"{"a":{"type":"string","minLength":2,"maxLength":3}}"#);
        for (content, rules) in [
            (r#"{"a":"é"}"#, vec!["minLength"]),
            (r#"{"a":"éé"}"#, vec![]),
            (r#"{"a":"👍👍👍"}"#, vec![]),
            (r#"{"a":"abcd"}"#, vec!["maxLength"]),
            (r#"{"a":4}"#, vec!["type"]),
        ] {
            assert_eq!(broken(&form, content), rules, "{content}");
        }
    }

    #[test]
    fn every_broken_rule_is_told() {
        let form = form(
            r#"{"a":{"type":"string","minLength":20,"format":"email","pattern":"^x","const":"x@yyyyyyyyyyyyyyyyyyyyy.com"}}"#,
        );
        assert_eq!(
            broken(&form, r#"{"a":"abc"}"#),
            ["minLength", "format", "pattern", "const"]
        );
    }

    #[test]
    fn impossible_rules_are_defects() {
        assert_eq!(
            defects(r#"{"a":{"type":"string","minLength":4,"maxLength":3}}"#),
            ["/properties/a/minLength impossible-range"]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"string","minLength":-1}}"#),
            ["/properties/a/minLength keyword-type"]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"string","maxLength":"3"}}"#),
            ["/properties/a/maxLength keyword-type"]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"string","format":"uuid"}}"#),
            ["/properties/a/format unsupported-format"]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"string","format":"email","default":"ada"}}"#),
            ["/properties/a/default default-invalid"]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"string","const":"ab","maxLength":1}}"#),
            ["/properties/a/const impossible-range"]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"string","default":3}}"#),
            ["/properties/a/default default-invalid"]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"string","pattern":"("}}"#),
            ["/properties/a/pattern pattern-syntax"]
        );
    }
}
