//! A number field: `type: number` or `type: integer`.

use std::cmp::Ordering;

use serde_json::Number as Value;

use super::defect::DefectCode;
use super::kind::{Emit, FieldReader, Keywords, Kind};
use crate::answer::{BrokenRule, ExpectedType};
use crate::json::{Given, Json};
use crate::number::{compare, is_integer, is_multiple, text};

/// The rules of a number (`NumberSchema`), compared exactly.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Number {
    /// The least accepted number.
    pub minimum: Option<Value>,
    /// The greatest accepted number.
    pub maximum: Option<Value>,
    /// The exclusive minimum. Enforced, although no revision lists it.
    pub exclusive_minimum: Option<Value>,
    /// The exclusive maximum. Enforced, although no revision lists it.
    pub exclusive_maximum: Option<Value>,
    /// The number must be a whole multiple of this, by decimal notation. Enforced, although no revision lists it.
    pub multiple_of: Option<Value>,
    /// The only accepted number (`const`).
    pub constant: Option<Value>,
    /// The number that is filled in before the person answers.
    pub default: Option<Value>,
}

impl Number {
    pub(crate) fn read(
        keywords: &Keywords<'_, '_>,
        whole: bool,
        reader: &mut FieldReader<'_>,
    ) -> Kind {
        reader.without_effect("number", &super::text::words_of(keywords));
        reader.without_effect("number", &super::choices::words_of(keywords));
        super::choice::refuse_options(keywords, "a number", reader);
        let number = Number {
            minimum: reader.number("minimum", keywords.minimum),
            maximum: reader.number("maximum", keywords.maximum),
            exclusive_minimum: reader.number("exclusiveMinimum", keywords.exclusive_minimum),
            exclusive_maximum: reader.number("exclusiveMaximum", keywords.exclusive_maximum),
            multiple_of: reader.number("multipleOf", keywords.multiple_of),
            constant: reader.number("const", keywords.constant),
            default: None,
        };
        reader.not_portable(
            "exclusiveMinimum",
            number.exclusive_minimum.is_some(),
            "give a `minimum`",
        );
        reader.not_portable(
            "exclusiveMaximum",
            number.exclusive_maximum.is_some(),
            "give a `maximum`",
        );
        reader.not_portable(
            "multipleOf",
            number.multiple_of.is_some(),
            "say it in the description",
        );
        reader.not_portable("const", number.constant.is_some(), "leave the field out");
        number.bounds_are_possible(whole, reader);
        if let Some(constant) = &number.constant {
            number.check(Given::Number(constant), whole, &mut |rule| {
                reader.defect(
                    "const",
                    DefectCode::ImpossibleRange,
                    format!("the only value allowed breaks another rule: {rule}"),
                );
            });
        }
        let kind = if whole {
            Kind::Integer(number)
        } else {
            Kind::Number(number)
        };
        if !reader.default_holds(&kind, keywords.default) {
            return kind;
        }
        let default = keywords.default.and_then(Json::as_number).cloned();
        match kind {
            Kind::Integer(number) => Kind::Integer(Number {
                default: default.map(crate::number::canonical_integer),
                ..number
            }),
            Kind::Number(number) => Kind::Number(Number { default, ..number }),
            other => other,
        }
    }

    fn bounds_are_possible(&self, whole: bool, reader: &mut FieldReader<'_>) {
        if self
            .multiple_of
            .as_ref()
            .is_some_and(|step| compare(step, &0.into()) != Ordering::Greater)
        {
            reader.defect(
                "multipleOf",
                DefectCode::KeywordType,
                "`multipleOf` must be more than 0",
            );
        }
        let lows = [
            (&self.minimum, false, "minimum"),
            (&self.exclusive_minimum, true, "exclusiveMinimum"),
        ];
        let highs = [(&self.maximum, false), (&self.exclusive_maximum, true)];
        for (low, low_open, key) in lows {
            for (high, high_open) in highs {
                if let (Some(low), Some(high)) = (low, high)
                    && is_empty(low, low_open, high, high_open, whole)
                {
                    let what = if whole { "whole number" } else { "number" };
                    reader.defect(
                        key,
                        DefectCode::ImpossibleRange,
                        format!(
                            "no {what} is between {} and {} as asked",
                            text(low),
                            text(high)
                        ),
                    );
                }
            }
        }
    }

    pub(crate) fn check(&self, given: Given<'_>, whole: bool, broken: &mut impl FnMut(BrokenRule)) {
        let Given::Number(n) = given else {
            return broken(BrokenRule::Type(if whole {
                ExpectedType::Integer
            } else {
                ExpectedType::Number
            }));
        };
        if whole && !is_integer(n) {
            broken(BrokenRule::Type(ExpectedType::Integer));
        }
        if let Some(limit) = self
            .minimum
            .as_ref()
            .filter(|limit| compare(n, limit) == Ordering::Less)
        {
            broken(BrokenRule::Minimum(limit.clone()));
        }
        if let Some(limit) = self
            .maximum
            .as_ref()
            .filter(|limit| compare(n, limit) == Ordering::Greater)
        {
            broken(BrokenRule::Maximum(limit.clone()));
        }
        if let Some(limit) = self
            .exclusive_minimum
            .as_ref()
            .filter(|limit| compare(n, limit) != Ordering::Greater)
        {
            broken(BrokenRule::ExclusiveMinimum(limit.clone()));
        }
        if let Some(limit) = self
            .exclusive_maximum
            .as_ref()
            .filter(|limit| compare(n, limit) != Ordering::Less)
        {
            broken(BrokenRule::ExclusiveMaximum(limit.clone()));
        }
        if let Some(step) = self
            .multiple_of
            .as_ref()
            .filter(|step| !is_multiple(n, step))
        {
            broken(BrokenRule::MultipleOf(step.clone()));
        }
        if let Some(constant) = self
            .constant
            .as_ref()
            .filter(|constant| compare(n, constant) != Ordering::Equal)
        {
            broken(BrokenRule::Const(text(constant).into()));
        }
    }

    pub(crate) fn emit(&self, out: &mut Emit) {
        out.put_some("minimum", self.minimum.clone());
        out.put_some("maximum", self.maximum.clone());
        out.put_some("exclusiveMinimum", self.exclusive_minimum.clone());
        out.put_some("exclusiveMaximum", self.exclusive_maximum.clone());
        out.put_some("multipleOf", self.multiple_of.clone());
        out.put_some("const", self.constant.clone());
        out.put_some("default", self.default.clone());
    }
}

/// Returns `true` if no number lies within the bounds.
fn is_empty(low: &Value, low_open: bool, high: &Value, high_open: bool, whole: bool) -> bool {
    match compare(low, high) {
        Ordering::Greater => true,
        Ordering::Equal => low_open || high_open || (whole && !is_integer(low)),
        Ordering::Less => whole && no_integer_between(low, low_open, high, high_open),
    }
}

/// Handles bounds so close together that floats can represent them exactly; bounds farther apart always contain an
/// integer.
fn no_integer_between(low: &Value, low_open: bool, high: &Value, high_open: bool) -> bool {
    let (Some(low), Some(high)) = (low.as_f64(), high.as_f64()) else {
        return false;
    };
    if high - low > 2.0 {
        return false;
    }
    let first = if low_open && low.fract() == 0.0 {
        low + 1.0
    } else {
        low.ceil()
    };
    first > high || (high_open && first >= high)
}

/// Returns the keywords of this kind, and whether they are present.
pub(crate) fn words_of(keywords: &Keywords<'_, '_>) -> [(&'static str, bool); 5] {
    [
        ("minimum", keywords.minimum.is_some()),
        ("maximum", keywords.maximum.is_some()),
        ("exclusiveMinimum", keywords.exclusive_minimum.is_some()),
        ("exclusiveMaximum", keywords.exclusive_maximum.is_some()),
        ("multipleOf", keywords.multiple_of.is_some()),
    ]
}

#[cfg(test)]
mod tests {
    use crate::form::tests::{broken, defects, form};

    #[test]
    fn bounds_and_steps() {
        let form = form(
            r#"{"n":{"type":"number","minimum":0.5,"maximum":10,"multipleOf":0.5},
                "i":{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":4}}"#,
        );
        for (content, rules) in [
            (r#"{"n":0.5,"i":2}"#, vec![]),
            (r#"{"n":0.25}"#, vec!["minimum", "multipleOf"]),
            (r#"{"n":10.5}"#, vec!["maximum"]),
            (r#"{"i":1}"#, vec!["exclusiveMinimum"]),
            (r#"{"i":4.0}"#, vec!["exclusiveMaximum"]),
            (r#"{"i":3.0}"#, vec![]),
            (r#"{"i":2.5}"#, vec!["type"]),
            (r#"{"n":"1","i":true}"#, vec!["type", "type"]),
        ] {
            assert_eq!(broken(&form, content), rules, "{content}");
        }
    }

    #[test]
    fn large_integers_are_not_rounded() {
        let form = form(r#"{"i":{"type":"integer","maximum":9007199254740992}}"#);
        assert_eq!(broken(&form, r#"{"i":9007199254740993}"#), ["maximum"]);
        assert_eq!(broken(&form, r#"{"i":9007199254740992}"#), [""; 0]);
    }

    #[test]
    fn impossible_ranges_are_defects() {
        for schema in [
            r#"{"a":{"type":"number","minimum":2,"maximum":1}}"#,
            r#"{"a":{"type":"integer","minimum":1.2,"maximum":1.8}}"#,
            r#"{"a":{"type":"integer","minimum":1.5,"maximum":1.5}}"#,
        ] {
            assert_eq!(
                defects(schema),
                ["/properties/a/minimum impossible-range"],
                "{schema}"
            );
        }
        for schema in [
            r#"{"a":{"type":"number","exclusiveMinimum":1,"maximum":1}}"#,
            r#"{"a":{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2}}"#,
        ] {
            assert_eq!(
                defects(schema),
                ["/properties/a/exclusiveMinimum impossible-range"],
                "{schema}"
            );
        }
        assert_eq!(
            defects(r#"{"a":{"type":"integer","minimum":1.5,"maximum":2}}"#),
            [""; 0]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"integer","multipleOf":0}}"#),
            ["/properties/a/multipleOf keyword-type"]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"integer","exclusiveMinimum":true}}"#),
            ["/properties/a/exclusiveMinimum keyword-type"]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"integer","enum":[1,2]}}"#),
            ["/properties/a/enum enum-not-string"]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"integer","default":1.5}}"#),
            ["/properties/a/default default-invalid"]
        );
    }
}
