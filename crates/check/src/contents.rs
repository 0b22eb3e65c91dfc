//! Contents for a form, made from its own rules: valid, least, and one violation per rule.

use mcp_elicit_core::answer::{BrokenRule, ExpectedType, Violation};
use mcp_elicit_core::form::{ChoiceOption, Field, Form, Format, Kind, Number, Pattern};
use serde_json::{Map, Value, json};

/// Texts for a field without a format or a pattern, and for a pattern without an example.
const TEXTS: [&str; 3] = ["Ada", "a", "1"];

/// The longest text that is made for a rule on lengths.
const LONGEST: u64 = 100_000;

/// Returns content that answers every field; `None` if no value was found for a required one.
pub(crate) fn valid(form: &Form) -> Option<Value> {
    filled(form, |_| true)
}

/// Returns content with the required fields alone.
pub(crate) fn least(form: &Form) -> Option<Value> {
    filled(form, Field::required)
}

/// Returns `true` if [`least`] has fewer fields than [`valid`].
pub(crate) fn has_optional(form: &Form) -> bool {
    form.iter().any(|field| !field.required())
}

fn filled(form: &Form, takes: impl Fn(&Field) -> bool) -> Option<Value> {
    let mut content = Map::new();
    for field in form.iter().filter(|field| takes(field)) {
        match good(form, field) {
            Some(value) => {
                content.insert(field.name().to_owned(), value);
            }
            None if field.required() => return None,
            None => {}
        }
    }
    Some(Value::Object(content))
}

/// Returns a value that breaks no rule of the field.
fn good(form: &Form, field: &Field) -> Option<Value> {
    let is_good = |value: &Value| {
        let content = json!({field.name(): value});
        let violations = form.violations(&content);
        violations.for_field(field.name()).next().is_none()
    };
    // A question is accepted in earnest: yes, where the default may be no.
    let default = match field.kind() {
        Kind::Boolean(_) => None,
        _ => field.default(),
    };
    default
        .into_iter()
        .chain(candidates(field.kind()))
        .find(is_good)
}

fn candidates(kind: &Kind) -> Vec<Value> {
    match kind {
        Kind::Text(text) => {
            let mut all: Vec<Value> = text.constant.iter().map(|text| json!(text)).collect();
            all.extend(text.format.map(|format| json!(formatted(format))));
            let example = text.pattern.as_ref().and_then(Pattern::example);
            all.extend(example.map(Value::from));
            all.extend(TEXTS.map(|text| json!(text)));
            let length = text.min_length.unwrap_or(0).min(LONGEST);
            let longest = text.max_length.unwrap_or(length).min(LONGEST);
            all.extend(["a", "1"].map(|letter| repeated(letter, length)));
            all.extend(["a", "1"].map(|letter| repeated(letter, longest)));
            all
        }
        Kind::Number(number) | Kind::Integer(number) => numbers(number),
        Kind::Boolean(_) => vec![json!(true), json!(false)],
        Kind::Choice(choice) => choice.options.iter().map(ChoiceOption::sent).collect(),
        Kind::Choices(choices) => {
            let at_least = usize::try_from(choices.min_items.unwrap_or(0)).unwrap_or(usize::MAX);
            let sent = choices.options.iter().map(ChoiceOption::sent);
            let picked: Vec<Value> = sent.take(at_least.max(1)).collect();
            vec![Value::Array(picked)]
        }
        Kind::Union(_) | Kind::Lines(_) => {
            vec![json!("a"), json!(1), json!(true), json!(["a"]), json!([1])]
        }
    }
}

fn numbers(number: &Number) -> Vec<Value> {
    let mut all = Vec::new();
    all.extend(number.constant.clone());
    for bound in [&number.minimum, &number.maximum, &number.multiple_of] {
        all.extend(bound.clone());
    }
    for (bound, step) in [
        (&number.exclusive_minimum, 1.0),
        (&number.exclusive_maximum, -1.0),
    ] {
        all.extend(moved(bound.as_ref(), step));
    }
    let numbers = all.into_iter().map(Value::Number);
    numbers.chain([json!(1), json!(0), json!(2.5)]).collect()
}

/// Returns a bound moved by a step, whole if it is.
fn moved(bound: Option<&serde_json::Number>, step: f64) -> Option<serde_json::Number> {
    let moved = bound?.as_f64()? + step;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only whole numbers that an f64 holds exactly"
    )]
    if moved.fract() == 0.0 && moved.abs() < 9e15 {
        return Some((moved as i64).into());
    }
    serde_json::Number::from_f64(moved)
}

fn formatted(format: Format) -> &'static str {
    match format {
        Format::Email => "ada@example.com",
        Format::Uri => "https://example.com/",
        Format::Date => "2026-02-28",
        Format::DateTime => "2026-02-28T09:30:00Z",
    }
}

fn repeated(letter: &str, length: u64) -> Value {
    let length = usize::try_from(length.min(LONGEST)).unwrap_or_default();
    json!(letter.repeat(length))
}

/// Returns, for each rule of the form that one value can break alone, the keyword and content that breaks it.
pub(crate) fn violations(form: &Form) -> Vec<(&'static str, Value)> {
    let Some(Value::Object(content)) = valid(form) else {
        return Vec::new();
    };
    let mut found: Vec<(&'static str, Value)> = Vec::new();
    for field in form {
        if form.is_read_in_part(field.name()) {
            continue;
        }
        let mut absent = content.clone();
        absent.remove(field.name());
        let wrong = wrong_values(field.kind()).into_iter().map(|value| {
            let mut content = content.clone();
            content.insert(field.name().to_owned(), value);
            content
        });
        for content in std::iter::once(absent).chain(wrong) {
            let content = Value::Object(content);
            let violations = form.violations(&content);
            let mut broken = violations.iter().map(Violation::rule);
            if let (Some(rule), None) = (broken.next(), broken.next()) {
                let code = keyword(rule);
                if !found.iter().any(|(known, _)| *known == code) {
                    found.push((code, content));
                }
            }
        }
    }
    found
}

fn keyword(rule: &BrokenRule) -> &'static str {
    match rule {
        BrokenRule::Type(ExpectedType::Object) => "object",
        rule => rule.code(),
    }
}

fn wrong_values(kind: &Kind) -> Vec<Value> {
    let mut all = vec![json!({"a": 1})];
    match kind {
        Kind::Text(text) => {
            all.extend([json!(7), json!(""), json!("-"), json!("not one of these")]);
            let shorter = text.min_length.map(|least| least.saturating_sub(1));
            let longer = text.max_length.filter(|most| *most < LONGEST);
            let lengths = shorter.into_iter().chain(longer.map(|most| most + 1));
            all.extend(lengths.map(|length| repeated("a", length)));
        }
        Kind::Number(number) | Kind::Integer(number) => {
            all.extend([json!("seven"), json!(0.5)]);
            let below = [&number.minimum, &number.exclusive_minimum];
            let above = [&number.maximum, &number.exclusive_maximum];
            for (bounds, step) in [(below, -1.0), (above, 1.0)] {
                for bound in bounds.into_iter().flatten() {
                    all.extend(moved(Some(bound), step).map(Value::Number));
                    all.push(Value::Number(bound.clone()));
                }
            }
            let multiple = number.multiple_of.as_ref();
            all.extend(moved(multiple, 0.5).map(Value::Number));
        }
        Kind::Boolean(_) => all.extend([json!("yes"), json!(false)]),
        Kind::Choice(_) => all.extend([json!(7), json!("none of the options")]),
        Kind::Choices(choices) => {
            let options: Vec<Value> = choices.options.iter().map(ChoiceOption::sent).collect();
            let shorter = choices.min_items.map_or(0, |least| least.saturating_sub(1));
            let shorter = usize::try_from(shorter).unwrap_or_default();
            all.extend([
                json!("text"),
                json!(["none of the options"]),
                Value::Array(options.iter().take(shorter).cloned().collect()),
                Value::Array(options),
            ]);
        }
        Kind::Union(_) | Kind::Lines(_) => {}
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: &Value, required: &Value) -> Form {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Form::from_value(&schema).unwrap()
    }

    #[test]
    fn valid_content_obeys_every_rule() {
        let form = form(
            &json!({
                "name": {"type": "string", "minLength": 5, "maxLength": 6},
                "mail": {"type": "string", "format": "email"},
                "code": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{2}$"},
                "invoice": {"type": "string", "pattern": "^INV-(19|20)\\d{2}-[0-9a-f]{6}$"},
                "day": {"type": "string", "format": "date"},
                "age": {"type": "integer", "minimum": 18, "maximum": 20},
                "size": {"type": "number", "exclusiveMinimum": 2},
                "sure": {"type": "boolean", "default": false},
                "color": {"type": "string", "enum": ["red", "blue"]},
                "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "minItems": 2}
            }),
            &json!(["name", "sure"]),
        );
        let content = valid(&form).unwrap();
        assert!(form.violations(&content).is_empty(), "{content}");
        assert_eq!(content.as_object().unwrap().len(), 10);
        assert_eq!(content["sure"], true);
        let least = least(&form).unwrap();
        assert!(form.violations(&least).is_empty());
        assert_eq!(least.as_object().unwrap().len(), 2);
    }

    #[test]
    fn each_rule_is_broken_alone() {
        let form = form(
            &json!({
                "name": {"type": "string", "minLength": 2, "maxLength": 6},
                "mail": {"type": "string", "format": "email"},
                "age": {"type": "integer", "minimum": 18, "maximum": 20},
                "color": {"type": "string", "enum": ["red", "blue"]},
                "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "minItems": 2, "maxItems": 2}
            }),
            &json!(["name"]),
        );
        let all = violations(&form);
        let mut rules: Vec<_> = all.iter().map(|(rule, _)| *rule).collect();
        rules.sort_unstable();
        assert_eq!(
            rules,
            [
                "enum",
                "format",
                "maxItems",
                "maxLength",
                "maximum",
                "minItems",
                "minLength",
                "minimum",
                "required",
                "type"
            ]
        );
        for (rule, content) in all {
            let violations = form.violations(&content);
            assert_eq!(violations.len(), 1, "{rule}: {content}");
        }
    }

    #[test]
    fn a_form_that_cannot_be_met_has_no_content() {
        let form = form(
            &json!({"code": {"type": "string", "pattern": "^ab$", "minLength": 5}}),
            &json!(["code"]),
        );
        assert_eq!(valid(&form), None);
        assert!(violations(&form).is_empty());
    }
}
