//! Lint rules for options: a person must be able to find each, and to tell it from the rest.

use std::collections::HashSet;

use super::report::LintFindings;
use super::texts::{self, shortened};
use crate::form::{ChoiceOption, Field, Kind};

const MANY: usize = 25;

/// Lints the options of a field, if it has any.
pub(super) fn look(at: &str, field: &Field, findings: &mut LintFindings) {
    let options: &[ChoiceOption] = match field.kind() {
        Kind::Choice(choice) => &choice.options,
        Kind::Choices(choices) => &choices.options,
        Kind::Text(_)
        | Kind::Number(_)
        | Kind::Integer(_)
        | Kind::Boolean(_)
        | Kind::Union(_)
        | Kind::Lines(_) => return,
    };
    if options.len() > MANY {
        let message = format!("{} options are many to look through", options.len());
        findings.warn(
            at,
            "many-options",
            message,
            "let the person narrow it down first, or ask for a text",
        );
    }
    if let ([only], Kind::Choice(_)) = (options, field.kind()) {
        let message = format!(
            "there is one option only, \"{}\": nothing is left to choose",
            shortened(only.label())
        );
        findings.warn(
            at,
            "single-option",
            message,
            "leave the field out, or ask a yes/no question",
        );
    }
    let mut labels: HashSet<String> = HashSet::new();
    if let Some(double) = options
        .iter()
        .find(|option| !labels.insert(option.label().trim().to_lowercase()))
    {
        let message = format!(
            "two options read \"{}\": a person cannot tell them apart",
            shortened(double.label())
        );
        findings.warn(
            at,
            "same-option-label",
            message,
            "give each a title of its own",
        );
    }
    if options
        .iter()
        .any(|option| option.label().trim().is_empty())
    {
        findings.warn(
            at,
            "empty-option",
            "an option has nothing to read",
            "give it a title; to let the field be left empty, do not require it",
        );
    }
    if let Some(cryptic) = options
        .iter()
        .find(|option| option.title.is_none() && is_cryptic(&option.value))
    {
        let message = format!(
            "the option \"{}\" says nothing to a person",
            shortened(&cryptic.value)
        );
        findings.warn(
            at,
            "untitled-option",
            message,
            "give titles with `oneOf` (2025-11-25 on) or `enumNames` (2025-06-18)",
        );
    }
    texts::option_titles(at, options, findings);
}

/// Returns `true` for a number, an id or a hash: values made for programs.
fn is_cryptic(value: &str) -> bool {
    let hex = |text: &str| {
        text.len() >= 8
            && text.bytes().all(|b| b.is_ascii_hexdigit())
            && text.bytes().any(|b| b.is_ascii_digit())
    };
    let uuid = value.len() == 36 && value.split('-').count() == 5 && hex(&value.replace('-', ""));
    // Four digits may be a year.
    uuid || hex(value) || (value.len() > 4 && value.bytes().all(|b| b.is_ascii_digit()))
}
