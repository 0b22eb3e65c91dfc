//! The wording of limits, the same in every frontend.

use std::fmt::Display;

use mcp_elicit_core::form::{Choices, Format, Kind, Lines, Number, Text};

/// Returns the limits that a person must obey, the most important first. Empty if there are none.
pub(super) fn from_kind(kind: &Kind) -> Vec<String> {
    match kind {
        Kind::Text(text) => of_text(text),
        Kind::Number(number) => of_number("a number", number),
        Kind::Integer(number) => of_number("a whole number", number),
        Kind::Boolean(_) | Kind::Choice(_) => Vec::new(),
        Kind::Choices(choices) => of_choices(choices),
        Kind::Union(union) => vec![union.types()],
        Kind::Lines(lines) => of_lines(lines),
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
    if let Some(format) = &text.other_format {
        let format = super::sanitize::line(format, super::sanitize::LABEL);
        hints.push(format!("format {format} (not checked)"));
    }
    if let Some(example) = example(text) {
        hints.push(format!("such as {example}"));
    } else if let Some(pattern) = &text.pattern {
        let source = super::sanitize::line(pattern.as_str(), super::sanitize::LABEL);
        let unchecked = if pattern.enforced() {
            ""
        } else {
            " (not checked)"
        };
        hints.push(format!("matches {source}{unchecked}"));
    }
    hints
}

/// Returns a text that the pattern takes, if it fits the other limits and shows the pattern's form.
fn example(text: &Text) -> Option<String> {
    let example = text.pattern.as_ref()?.example()?;
    let length = u64::try_from(example.chars().count()).ok()?;
    let is_long_enough = text.min_length.is_none_or(|least| length >= least);
    let is_short_enough = text.max_length.is_none_or(|most| length <= most);
    let shown = super::sanitize::line(&example, super::sanitize::LABEL);
    (is_long_enough && is_short_enough && shown == example).then_some(example)
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

fn of_lines(lines: &Lines) -> Vec<String> {
    let mut hints = vec!["one value per line".to_owned()];
    let range = range(lines.min_items.filter(|least| *least > 0), lines.max_items);
    hints.extend(range.map(|range| {
        let one = lines.max_items.or(lines.min_items) == Some(1);
        format!("{range} {}", if one { "line" } else { "lines" })
    }));
    // A line of text needs no explanation.
    if !matches!(&*lines.item, Kind::Text(text) if *text == Text::default()) {
        hints.extend(
            from_kind(&lines.item)
                .into_iter()
                .map(|hint| format!("each line: {hint}")),
        );
    }
    hints
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
                vec!["such as abc"],
            ),
            // Without an example, or with one that another limit refuses, the pattern itself is shown.
            (
                json!({"type": "string", "pattern": "^[^a]+$"}),
                vec!["matches ^[^a]+$"],
            ),
            (
                json!({"type": "string", "pattern": "^[a-z]+$", "maxLength": 2}),
                vec!["at most 2 characters", "matches ^[a-z]+$"],
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
