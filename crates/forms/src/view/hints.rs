//! The wording of limits, the same in every frontend.

use std::fmt::Display;

use mcp_elicit_core::form::{Choices, Format, Kind, Number, Text};

/// Returns the limits that a person must obey, the most important first. Empty if there are none.
pub(super) fn from_kind(kind: &Kind) -> Vec<String> {
    match kind {
        Kind::Text(text) => of_text(text),
        Kind::Number(number) => of_number("a number", number),
        Kind::Integer(number) => of_number("a whole number", number),
        Kind::Boolean(_) | Kind::Choice(_) => Vec::new(),
        Kind::Choices(choices) => of_choices(choices),
    }
}

fn of_text(text: &Text) -> Vec<String> {
    let mut hints = Vec::new();
    if let Some(constant) = &text.constant {
        hints.push(format!(
            "exactly “{}”",
            super::sanitize::line(constant, super::sanitize::LABEL)
        ));
    }
    hints.extend(text.format.map(|format| match format {
        Format::Email => "an email address, like ana@example.org".to_owned(),
        Format::Uri => "a full address, like https://example.org".to_owned(),
        Format::Date => "a date, like 2026-05-31".to_owned(),
        Format::DateTime => "a date and time with zone, like 2026-05-31T14:30:00Z".to_owned(),
    }));
    hints.extend(range(text.min_length, text.max_length).map(|range| {
        let one = text.max_length.or(text.min_length) == Some(1);
        format!("{range} {}", if one { "character" } else { "characters" })
    }));
    if let Some(pattern) = &text.pattern {
        hints.push(format!(
            "matches {}",
            super::sanitize::line(pattern.as_str(), super::sanitize::LABEL)
        ));
    }
    hints
}

fn of_number(what: &str, number: &Number) -> Vec<String> {
    let mut hints = Vec::new();
    if let Some(constant) = &number.constant {
        hints.push(format!("exactly {constant}"));
    }
    match range(number.minimum.as_ref(), number.maximum.as_ref()) {
        Some(range) => hints.push(format!("{what}, {range}")),
        None => hints.push(what.to_owned()),
    }
    hints.extend(
        number
            .exclusive_minimum
            .as_ref()
            .map(|least| format!("more than {least}")),
    );
    hints.extend(
        number
            .exclusive_maximum
            .as_ref()
            .map(|most| format!("less than {most}")),
    );
    hints.extend(
        number
            .multiple_of
            .as_ref()
            .map(|step| format!("in steps of {step}")),
    );
    hints
}

fn of_choices(choices: &Choices) -> Vec<String> {
    range(
        choices.min_items.filter(|least| *least > 0),
        choices.max_items,
    )
    .map(|range| format!("choose {range}"))
    .into_iter()
    .collect()
}

fn range<T: Display + PartialEq>(least: Option<T>, most: Option<T>) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) if least == most => Some(format!("exactly {least}")),
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use mcp_elicit_core::form::Form;
    use serde_json::{Value, json};

    fn hints(field: &Value) -> Vec<String> {
        let form =
            Form::from_value(&json!({"type": "object", "properties": {"f": field}})).unwrap();
        super::from_kind(form.fields()[0].kind())
    }

    #[test]
    fn bounds_read_like_speech() {
        let cases = [
            (
                json!({"type": "string", "minLength": 3, "maxLength": 50}),
                vec!["3 to 50 characters"],
            ),
            (
                json!({"type": "string", "maxLength": 1}),
                vec!["at most 1 character"],
            ),
            (
                json!({"type": "string", "minLength": 6, "maxLength": 6}),
                vec!["exactly 6 characters"],
            ),
            (
                json!({"type": "integer", "minimum": 1024, "maximum": 65535}),
                vec!["a whole number, 1024 to 65535"],
            ),
            (
                json!({"type": "number", "exclusiveMinimum": 0}),
                vec!["a number", "more than 0"],
            ),
            (
                json!({"type": "number", "multipleOf": 0.5}),
                vec!["a number", "in steps of 0.5"],
            ),
            (
                json!({"type": "string", "pattern": "^[a-z]+$"}),
                vec!["matches ^[a-z]+$"],
            ),
            (
                json!({"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "minItems": 1, "maxItems": 2}),
                vec!["choose 1 to 2"],
            ),
            (json!({"type": "boolean"}), vec![]),
        ];
        for (field, expected) in cases {
            assert_eq!(hints(&field), expected, "{field}");
        }
    }
}
