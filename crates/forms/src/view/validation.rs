//! The form's check of typed text: the errors, written for the person, and the resulting value.

use mcp_elicit_core::answer::{Answers, BrokenRule, Draft, DraftValue, Violation};
use mcp_elicit_core::form::{Field, Form};
use serde_json::Value;

use super::{Control, FieldView, date_time, sanitize};

/// The errors by field position, each with a sentence for the person.
pub(crate) type FieldErrors = Vec<(usize, String)>;

/// Returns the errors of one field.
pub(crate) fn problems(form: &Form, field: &FieldView, typed: &DraftValue) -> Vec<String> {
    let typed = match meant(field, typed) {
        Ok(typed) => typed,
        Err(why) => return vec![why],
    };
    match form.read_field(&field.name, &typed) {
        Ok(_) => Vec::new(),
        Err(violations) => {
            let core = form.fields().iter().find(|one| one.name() == field.name);
            violations
                .iter()
                .map(|violation| sentence(core, violation, &typed))
                .collect()
        }
    }
}

/// Returns the answers, or every error in the form's order.
pub(crate) fn answers(
    form: &Form,
    fields: &[FieldView],
    draft: &Draft,
) -> Result<Answers, FieldErrors> {
    let mut understood = draft.clone();
    let mut wrong = FieldErrors::new();
    for (index, field) in fields.iter().enumerate() {
        match meant(field, draft.get(&field.name)) {
            Ok(typed) => understood.set(&field.name, typed),
            Err(why) => wrong.push((index, why)),
        }
    }
    let violations: Vec<_> = match form.read(&understood) {
        Ok(answers) if wrong.is_empty() => return Ok(answers),
        Ok(_) => Vec::new(),
        Err(violations) => violations.into_iter().collect(),
    };
    let unread: Vec<usize> = wrong.iter().map(|(index, _)| *index).collect();
    for violation in violations {
        let place = fields
            .iter()
            .position(|field| field.name == violation.field());
        // A value that could not be read has only that error.
        if let Some(index) = place.filter(|index| !unread.contains(index)) {
            let typed = understood.get(&fields[index].name);
            wrong.push((index, sentence(form.fields().get(index), &violation, typed)));
        }
    }
    wrong.sort_by_key(|(index, _)| *index);
    Err(wrong)
}

/// Returns the value that would be sent for a field; `None` if it is empty or wrong.
pub(crate) fn value(form: &Form, field: &FieldView, typed: &DraftValue) -> Option<Value> {
    let typed = meant(field, typed).ok()?;
    form.read_field(&field.name, &typed).ok().flatten()
}

/// Returns a phrase about the interpretation of typed text, if it is not sent as typed: `sent as 1000`, or a reason to
/// check it.
pub(crate) fn understood(form: &Form, field: &FieldView, typed: &DraftValue) -> Option<String> {
    let DraftValue::Text(text) = typed else {
        return None;
    };
    let sent = match value(form, field, typed)? {
        Value::String(sent) => sent,
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let core = form.fields().iter().find(|one| one.name() == field.name);
    let caveat = core.and_then(|core| core.caveat(typed));
    if sent == *text && caveat.is_none() {
        return None;
    }
    let said = match caveat {
        Some(caveat) => format!("sent as {sent}: {caveat}"),
        None => format!("sent as {sent}"),
    };
    Some(sanitize::line(&said, sanitize::LABEL * 2))
}

/// Resolves the zone of a date and time; everything else is unchanged.
fn meant(field: &FieldView, typed: &DraftValue) -> Result<DraftValue, String> {
    if field.control == Control::DateTime {
        date_time::meant(typed)
    } else {
        Ok(typed.clone())
    }
}

/// Returns the text of a violation as a separate line, safe to show, with the reason if known.
fn sentence(field: Option<&Field>, violation: &Violation, typed: &DraftValue) -> String {
    let advice = match violation.rule() {
        BrokenRule::Type(_) | BrokenRule::Format(_) => field.and_then(|field| field.advice(typed)),
        _ => None,
    };
    let said = advice.unwrap_or_else(|| violation.message());
    sanitize::line(&said, sanitize::LABEL * 2)
}
