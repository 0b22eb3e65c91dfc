//! The parser's defects of a form, with additional help for patterns.

use serde_json::Value;

use super::question::Question;
use super::report::Findings;
use crate::form::{DefectCode, Defects};

/// Adds every defect of a schema to the findings.
pub(super) fn look(
    question: &Question<'_>,
    schema: &str,
    defects: &Defects,
    findings: &mut Findings,
) {
    for defect in defects {
        let pointer = question.at(&defect.pointer);
        let help = match defect.code {
            DefectCode::PatternSyntax => pattern_help(schema, &defect.pointer),
            _ => String::new(),
        };
        let message = defect.message.clone();
        findings.error(&pointer, defect.code.as_str(), message, &help);
    }
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
