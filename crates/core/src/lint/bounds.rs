//! Bounds that no answer meets, or that leave no choice. The parser rejects a single bound that no value meets; this
//! file finds rules that are impossible only in combination.

use std::cmp::Ordering;

use serde_json::Number as Value;

use super::report::{LintFindings, Severity};
use crate::form::{Choices, Field, Format, Kind, Number, Text};
use crate::number::compare;

const CODE: &str = "unreachable-bounds";
const LONG_ANSWER: u64 = 2_000;

/// Lints the bounds of a field.
pub(super) fn look(at: &str, field: &Field, findings: &mut LintFindings) {
    match field.kind() {
        Kind::Text(text) => about_text(at, text, field.required(), findings),
        Kind::Number(number) => about_number(at, number, false, field.required(), findings),
        Kind::Integer(number) => about_number(at, number, true, field.required(), findings),
        Kind::Choices(choices) => about_choices(at, choices, findings),
        Kind::Boolean(_) | Kind::Choice(_) | Kind::Union(_) | Kind::Lines(_) => {}
    }
}

/// Adds a finding for a field without a possible value: an error if the field is required.
fn impossible(at: &str, required: bool, message: String, findings: &mut LintFindings) {
    let level = if required {
        Severity::Error
    } else {
        Severity::Warning
    };
    findings.put(level, at, CODE, message, "widen one of the two");
}

fn about_text(at: &str, text: &Text, required: bool, findings: &mut LintFindings) {
    if let Some(format) = text.format {
        let (shortest, longest) = lengths(format);
        if let Some(max) = text.max_length.filter(|max| *max < shortest) {
            let message = format!(
                "nothing of at most {max} characters is {}",
                format.expected()
            );
            impossible(&format!("{at}/maxLength"), required, message, findings);
        }
        if let Some(min) = text.min_length.filter(|min| *min > longest) {
            let message = format!(
                "nothing of at least {min} characters is {}",
                format.expected()
            );
            impossible(&format!("{at}/minLength"), required, message, findings);
        }
    }
    if text.max_length == Some(0) {
        findings.warn(
            &format!("{at}/maxLength"),
            CODE,
            "only an empty text is allowed",
            "leave the field out",
        );
    }
    if let Some(min) = text.min_length.filter(|min| *min > LONG_ANSWER) {
        findings.warn(
            &format!("{at}/minLength"),
            CODE,
            format!("few people will write {min} characters"),
            "ask for less",
        );
    }
}

/// Returns the shortest and longest text of a format, in characters.
fn lengths(format: Format) -> (u64, u64) {
    match format {
        Format::Email => (3, 254),
        Format::Uri => (2, u64::MAX),
        Format::Date => (10, 10),
        Format::DateTime => (20, u64::MAX),
    }
}

fn about_number(
    at: &str,
    number: &Number,
    whole: bool,
    required: bool,
    findings: &mut LintFindings,
) {
    let low = number
        .minimum
        .as_ref()
        .or(number.exclusive_minimum.as_ref());
    let high = number
        .maximum
        .as_ref()
        .or(number.exclusive_maximum.as_ref());
    if let (Some(low), Some(high)) = (&number.minimum, &number.maximum)
        && compare(low, high) == Ordering::Equal
    {
        findings.warn(
            at,
            "single-value",
            format!("only {low} is allowed: nothing is left to answer"),
            "leave the field out",
        );
    }
    if let (Some(low), Some(high), Some(step)) = (low, high, &number.multiple_of)
        && has_no_multiple(number, low, high, step)
    {
        let message = format!("no multiple of {step} lies between {low} and {high}");
        impossible(&format!("{at}/multipleOf"), required, message, findings);
    }
    let beyond = |bound: &Value| bound.as_f64().is_some_and(|bound| bound.abs() > MOST_EXACT);
    if whole
        && let Some(bound) = [low, high]
            .into_iter()
            .flatten()
            .find(|bound| beyond(bound))
    {
        findings.note(
            at,
            "inexact-bound",
            format!("{bound} is more than many clients can hold exactly"),
            "stay within 9007199254740991",
        );
    }
}

/// The largest whole number that a JavaScript client represents exactly: 2^53 - 1.
const MOST_EXACT: f64 = 9_007_199_254_740_991.0;

/// Returns `true` if no multiple of `step` meets the bounds; all are whole numbers, and so exact.
fn has_no_multiple(number: &Number, low: &Value, high: &Value, step: &Value) -> bool {
    let (Some(low), Some(high), Some(step)) = (low.as_i64(), high.as_i64(), step.as_i64()) else {
        return false;
    };
    let (low, high, step) = (i128::from(low), i128::from(high), i128::from(step));
    if step <= 0 {
        return false;
    }
    let mut first = low + (-low).rem_euclid(step);
    if first == low && number.minimum.is_none() {
        first += step;
    }
    if number.maximum.is_some() {
        first > high
    } else {
        first >= high
    }
}

fn about_choices(at: &str, choices: &Choices, findings: &mut LintFindings) {
    let offered = choices.options.len() as u64;
    if let Some(max) = choices.max_items.filter(|max| *max > offered) {
        let message = format!("up to {max} may be picked, but there are {offered} options");
        findings.warn(
            &format!("{at}/maxItems"),
            CODE,
            message,
            "leave `maxItems` out",
        );
    }
    if choices.max_items == Some(0) {
        findings.warn(
            &format!("{at}/maxItems"),
            CODE,
            "nothing may be picked",
            "leave the field out",
        );
    }
    if offered > 1 && choices.min_items == Some(offered) {
        findings.warn(
            &format!("{at}/minItems"),
            "single-value",
            "every option must be picked: nothing is left to choose",
            "ask for a confirmation",
        );
    }
}
