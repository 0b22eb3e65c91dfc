//! A yes-or-no field: `type: boolean`.

use super::defect::DefectCode;
use super::kind::{Emit, FieldReader, Keywords, Kind};
use crate::answer::{BrokenRule, ExpectedType};
use crate::json::{Given, Json};

/// The rules of a boolean (`BooleanSchema`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Boolean {
    /// The only accepted value (`const`): true for "you must agree".
    pub constant: Option<bool>,
    /// The value that is filled in before the person decides.
    pub default: Option<bool>,
}

impl Boolean {
    pub(crate) fn read(keywords: &Keywords<'_, '_>, reader: &mut FieldReader<'_>) -> Kind {
        reader.without_effect("boolean", &super::text::words_of(keywords));
        reader.without_effect("boolean", &super::number::words_of(keywords));
        reader.without_effect("boolean", &super::choices::words_of(keywords));
        super::choice::refuse_options(keywords, "a boolean", reader);
        let constant = match keywords.constant {
            None => None,
            Some(Json::Boolean(constant)) => Some(*constant),
            Some(other) => {
                reader.defect(
                    "const",
                    DefectCode::ImpossibleRange,
                    format!("a boolean is never {}: use true or false", other.kind()),
                );
                None
            }
        };
        reader.not_portable(
            "const",
            constant.is_some(),
            "ask again when the answer is not the one you need",
        );
        let kind = Kind::Boolean(Boolean {
            constant,
            default: None,
        });
        if !reader.default_holds(&kind, keywords.default) {
            return kind;
        }
        Kind::Boolean(Boolean {
            constant,
            default: keywords.default.and_then(|d| {
                if let Json::Boolean(b) = d {
                    Some(*b)
                } else {
                    None
                }
            }),
        })
    }

    pub(crate) fn check(&self, given: Given<'_>, broken: &mut impl FnMut(BrokenRule)) {
        let Given::Boolean(b) = given else {
            return broken(BrokenRule::Type(ExpectedType::Boolean));
        };
        if let Some(constant) = self.constant.filter(|constant| *constant != b) {
            broken(BrokenRule::Const(
                if constant { "true" } else { "false" }.into(),
            ));
        }
    }

    pub(crate) fn emit(&self, out: &mut Emit) {
        out.put_some("const", self.constant);
        out.put_some("default", self.default);
    }
}

#[cfg(test)]
mod tests {
    use crate::form::tests::{broken, defects, form};

    #[test]
    fn only_true_and_false() {
        let form = form(r#"{"a":{"type":"boolean"},"b":{"type":"boolean","const":true}}"#);
        for (content, rules) in [
            (r#"{"a":true,"b":true}"#, vec![]),
            (r#"{"a":"true"}"#, vec!["type"]),
            (r#"{"a":1}"#, vec!["type"]),
            (r#"{"a":null}"#, vec!["type"]),
            (r#"{"b":false}"#, vec!["const"]),
        ] {
            assert_eq!(broken(&form, content), rules, "{content}");
        }
    }

    #[test]
    fn defaults_and_constants_must_fit() {
        assert_eq!(
            defects(r#"{"a":{"type":"boolean","default":"yes"}}"#),
            ["/properties/a/default default-invalid"]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"boolean","const":true,"default":false}}"#),
            ["/properties/a/default default-invalid"]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"boolean","const":1}}"#),
            ["/properties/a/const impossible-range"]
        );
        assert_eq!(
            defects(r#"{"a":{"type":"boolean","enum":[true]}}"#),
            ["/properties/a/enum enum-not-string"]
        );
    }
}
