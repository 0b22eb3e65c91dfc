//! The revisions on which a legal form can be asked as written, and the parts that older ones lack.

use serde_json::{Map, Value};

use super::question::Question;
use super::report::{Findings, Legal};
use crate::form::{Form, Kind};
use crate::wire::Revision;

const OLD: Revision = Revision::V2025_06_18;

/// Determines the revisions of a form. A form that the parser accepts is legal on 2025-11-25 and 2026-07-28, whose form
/// language is the same. 2025-06-18 has no several choices and no `oneOf`; it has `default` for booleans only, and
/// loses other defaults.
pub(super) fn look(
    question: &Question<'_>,
    schema: &str,
    form: &Form,
    findings: &mut Findings,
) -> Legal {
    let written: Value = serde_json::from_str(schema).unwrap_or_default();
    let nothing = Map::new();
    let mut on_old = true;
    for field in form.fields() {
        let at = question.field(field.name());
        let keywords = written["properties"][field.name()]
            .as_object()
            .unwrap_or(&nothing);
        if matches!(field.kind(), Kind::Choices(_)) {
            on_old = false;
            not_on_old(
                &at,
                "cannot ask to pick several options",
                "ask for one, or ask a yes/no question for each",
                findings,
            );
        } else if matches!(field.kind(), Kind::Choice(_)) && keywords.contains_key("oneOf") {
            on_old = false;
            not_on_old(
                &format!("{at}/oneOf"),
                "does not know `oneOf`",
                "2025-06-18 spells titled options `enum` with `enumNames`",
                findings,
            );
        }
        if findings.revision() == Some(OLD)
            && field.default().is_some()
            && !matches!(field.kind(), Kind::Boolean(_))
        {
            findings.note(
                &format!("{at}/default"),
                "default-ignored",
                format!("{OLD} has defaults for booleans only: clients may not show this one"),
                "",
            );
        }
        if findings.revision() != Some(OLD) && keywords.contains_key("enumNames") {
            findings.note(
                &format!("{at}/enumNames"),
                "deprecated-enum-names",
                "`enumNames` is deprecated since 2025-11-25 and only kept for older servers",
                "write `oneOf` with `const` and `title`, unless clients of 2025-06-18 must understand it",
            );
        }
    }
    Legal::judged_by(|revision| revision != OLD || on_old)
}

fn not_on_old(at: &str, what: &str, help: &str, findings: &mut Findings) {
    let message = format!("{OLD} {what}");
    match findings.revision() {
        Some(OLD) => findings.error(at, "not-in-revision", message, help),
        None => findings.note(at, "not-in-revision", message, help),
        Some(Revision::V2025_11_25 | Revision::V2026_07_28) => {}
    }
}
