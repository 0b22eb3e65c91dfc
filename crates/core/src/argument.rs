//! Arguments of a call that needs approval, as the client sent them and as approvers changed them.

use serde_json::Value;

use crate::digest::canonical;
use crate::form::{Field, Form};

/// Returns `true` if two JSON values are the same argument, in any spelling; dates with time are compared in UTC.
pub fn is_same_argument(before: &str, after: &str) -> bool {
    canonical(before) == canonical(after) || is_same_moment(before, after)
}

/// An argument of a call as its client sent it.
#[derive(Clone, Debug, PartialEq)]
pub enum Original {
    /// This value.
    Given(Value),
    /// The client left it out.
    LeftOut,
}

/// Returns the original of an argument that approvers changed to `value`; `None` if it is the same. The form of an
/// approval has the arguments of the call as its defaults, and no default for those that the call leaves out.
pub fn changed_from(field: &Field, value: Option<&Value>) -> Option<Original> {
    let Some(before) = field.default() else {
        return value.map(|_| Original::LeftOut);
    };
    let text = value.map(Value::to_string);
    let is_same = text.is_some_and(|value| is_same_argument(&before.to_string(), &value));
    (!is_same).then_some(Original::Given(before))
}

/// Returns the names of the fields whose answers differ from the arguments of the call.
pub fn changed_names(form: &Form, answers: &serde_json::Map<String, Value>) -> Vec<String> {
    let changed = form
        .fields()
        .iter()
        .filter(|field| changed_from(field, answers.get(field.name())).is_some());
    changed.map(|field| field.name().to_owned()).collect()
}

/// Returns `true` if two JSON strings are the same date with time in two spellings: a page writes `+00:00` for `Z`.
fn is_same_moment(one: &str, other: &str) -> bool {
    let (one, other) = (moment(one), moment(other));
    one.is_some() && one == other
}

/// Returns the canonical spelling of a date with time (RFC 3339); `None` for any other value.
fn moment(text: &str) -> Option<String> {
    let text: String = serde_json::from_str(text).ok()?;
    let (start, rest) = text.split_at_checked(19)?;
    let as_zero = |c: char| {
        if c.is_ascii_digit() {
            '0'
        } else {
            c.to_ascii_uppercase()
        }
    };
    let form: String = start.chars().map(as_zero).collect();
    let fraction = rest.strip_prefix('.').unwrap_or("");
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    let offset = if digits > 0 {
        &fraction[digits..]
    } else {
        rest
    };
    let offset_form: String = offset.chars().map(as_zero).collect();
    let is_time = ["0000-00-00T00:00:00", "0000-00-00 00:00:00"].contains(&form.as_str());
    if !is_time || !["Z", "+00:00", "-00:00"].contains(&offset_form.as_str()) {
        return None;
    }
    let time = text[..text.len() - offset.len()].to_ascii_uppercase();
    let offset = match offset {
        "z" | "+00:00" | "-00:00" => "Z",
        other => other,
    };
    Some(format!("{}{offset}", time.replacen(' ', "T", 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_in_another_spelling_is_no_change() {
        let same = |before: &str, after: &str| {
            is_same_argument(
                &Value::from(before).to_string(),
                &Value::from(after).to_string(),
            )
        };
        assert!(same("2026-02-28t10:00:00z", "2026-02-28T10:00:00+00:00"));
        assert!(same(
            "2026-02-28T10:00:00.5z",
            "2026-02-28T10:00:00.5-00:00"
        ));
        for (before, after) in [
            ("2026-02-28t10:00:00z", "2026-02-28T10:00:01Z"),
            ("2026-02-28t10:00:00z", "2026-02-28T10:00:00+02:00"),
            ("/tmp/a", "/TMP/A"),
            ("2026-02-28 prod.txt", "2026-02-28 PROD.txt"),
            ("2026-02-28T10:00:00.5z", "2026-02-28T10:00:00.6z"),
            ("20260228-- report", "20260228--TREPORT"),
            ("2026-02-28t10:00:00zé", "2026-02-28T10:00:00ZÉ"),
        ] {
            assert!(!same(before, after), "{before}");
        }
    }

    #[test]
    fn what_was_changed_is_known_by_the_defaults() {
        let form = Form::parse(
            r#"{"type":"object","properties":{"/path":{"type":"string","default":"/tmp/a"},
            "/n":{"type":"integer","default":3},"/on":{"type":"boolean","default":true},"/free":{"type":"string"}}}"#,
        )
        .unwrap();
        let answers = serde_json::json!({"/path": "/tmp/b", "/n": 3, "/on": false, "/free": "x"});
        assert_eq!(
            changed_names(&form, answers.as_object().unwrap()),
            ["/path", "/on", "/free"]
        );
        let without = serde_json::json!({"/path": "/tmp/a", "/n": 3, "/on": true});
        assert!(changed_names(&form, without.as_object().unwrap()).is_empty());
        let field = &form.fields()[0];
        assert_eq!(
            changed_from(field, Some(&Value::from("/tmp/b"))),
            Some(Original::Given(Value::from("/tmp/a")))
        );
        assert_eq!(changed_from(field, Some(&Value::from("/tmp/a"))), None);
        assert_eq!(
            changed_from(field, None),
            Some(Original::Given(Value::from("/tmp/a")))
        );
        let field = &form.fields()[3];
        assert_eq!(field.name(), "/free");
        assert_eq!(changed_from(field, None), None);
        assert_eq!(
            changed_from(field, Some(&Value::from("x"))),
            Some(Original::LeftOut)
        );
    }
}
