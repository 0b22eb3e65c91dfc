//! The parser's defects of a form, with the clause that each breaks, and additional help for patterns.
//!
//! A defect is an error if the official schema rejects its field or root. If it does not, the defect is an error only if
//! no answer can be right, or if clients cannot agree on what is asked; otherwise it is a warning.

use serde_json::Value;

use super::legality::Verdicts;
use super::question::LocatedQuestion;
use super::report::{LintFindings, Severity};
use crate::form::{DefectCode, Defects};

/// Adds every defect of a schema to the findings.
pub(super) fn look(
    question: &LocatedQuestion<'_>,
    schema: &str,
    defects: &Defects,
    verdicts: &Verdicts,
    findings: &mut LintFindings,
) {
    for defect in defects {
        let pointer = question.at(&defect.pointer);
        let accepted = verdicts.accept(&defect.pointer, findings.revision());
        let clause = clause(defect.code);
        let level = match clause {
            Some((level, _)) if accepted => level,
            Some(_) | None => Severity::Error,
        };
        let help = match (defect.code, clause) {
            (DefectCode::PatternSyntax, _) => pattern_help(schema, &defect.pointer),
            (_, Some((_, clause))) if accepted => clause.to_owned(),
            _ => String::new(),
        };
        let message = defect.message.clone();
        findings.put(level, &pointer, defect.code.as_str(), message, &help);
    }
}

/// Returns the level of a defect in a form that the official schema accepts, and the clause against it; `None` for a
/// defect that the official schema rejects always, or that is a limit.
fn clause(code: DefectCode) -> Option<(Severity, &'static str)> {
    use Severity::{Error, Warning};
    const FLAT: &str = "elicitation, \"Requested Schema\": a form is a restricted subset of JSON Schema, flat and of primitive types; \
        clients ignore the rest, and servers then refuse the answers";
    Some(match code {
        DefectCode::EnumNotString => (
            Warning,
            "elicitation, \"Supported Schema Types\": only strings have options, so some clients show a box for a number",
        ),
        DefectCode::OptionShape => (
            Warning,
            "elicitation, \"Supported Schema Types\": options are strings",
        ),
        DefectCode::DuplicateOption => (
            Warning,
            "JSON Schema Validation, 6.1.2: the elements of `enum` should be unique",
        ),
        DefectCode::DefaultInvalid => (
            Warning,
            "JSON Schema Validation, 9.2: a default should be valid; clients leave this one out",
        ),
        DefectCode::PatternSyntax => (Warning, ""),
        DefectCode::RequiredUnknown => (
            Error,
            "JSON Schema Validation, 6.5.3: an answer without it is invalid, and nobody can give it",
        ),
        DefectCode::ImpossibleRange => (
            Error,
            "JSON Schema Validation, 6.2 and 6.3: no answer meets both",
        ),
        DefectCode::NoOptions => (
            Error,
            "JSON Schema Validation, 6.1.2: `enum` is a list, and should not be empty: no answer is in it",
        ),
        DefectCode::KeywordType => (
            Error,
            "JSON Schema Validation, section 6, says which values this keyword may have",
        ),
        DefectCode::Nested
        | DefectCode::Reference
        | DefectCode::ArrayItems
        | DefectCode::OptionsTwice
        | DefectCode::UnsupportedKeyword
        | DefectCode::UnsupportedFormat => (Error, FLAT),
        DefectCode::NotJson
        | DefectCode::TooLarge
        | DefectCode::NotAnObject
        | DefectCode::RootType
        | DefectCode::NoProperties
        | DefectCode::TooManyFields
        | DefectCode::DuplicateField
        | DefectCode::DuplicateMember
        | DefectCode::FieldNotAnObject
        | DefectCode::MissingType
        | DefectCode::TypeList
        | DefectCode::UnknownType
        | DefectCode::TooManyOptions
        | DefectCode::PatternCost => return None,
    })
}

/// Returns the regex crate's error for a pattern. Syntax that only other engines accept has no such reason.
fn pattern_help(schema: &str, pointer: &str) -> String {
    const DIALECT: &str =
        "patterns are those of ECMA-262: without flags such as (?i) and anchors such as \\A";
    let written: Value = serde_json::from_str(schema).unwrap_or_default();
    let source = written.pointer(pointer).and_then(Value::as_str);
    let error = source.and_then(|source| regex::Regex::new(source).err());
    error
        .and_then(|error| {
            let text = error.to_string();
            let reason = text.lines().last()?.strip_prefix("error: ")?;
            Some(format!("{reason}; {DIALECT}"))
        })
        .unwrap_or_else(|| DIALECT.to_owned())
}
