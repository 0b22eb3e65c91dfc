//! JSON in one spelling, for digests and comparisons.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::wire::CallDefect;
use crate::wire::frame::{skip_space, skip_value};
use crate::wire::members::{push_quoted, token_text};

/// The maximum depth of nesting in arguments.
pub const MAX_ARGUMENT_DEPTH: usize = 100;

/// Returns a JSON value in one spelling: without white space, members in the order of their names, numbers as written.
pub fn canonical(value: &str) -> Result<String, CallDefect> {
    // After this, the text is known to be JSON.
    serde_json::from_str::<IgnoredAny>(value).map_err(|_| CallDefect::Unreadable)?;
    let mut out = String::with_capacity(value.len());
    let mut reader = CanonicalReader {
        text: value,
        at: 0,
        depth: 0,
    };
    reader.value(&mut out)?;
    Ok(out)
}

struct CanonicalReader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> CanonicalReader<'a> {
    fn value(&mut self, out: &mut String) -> Result<(), CallDefect> {
        match self.peek() {
            Some(b'{') => self.nested(out, Self::object),
            Some(b'[') => self.nested(out, Self::array),
            Some(b'"') => {
                let text = self.string()?;
                push_quoted(out, &text);
                Ok(())
            }
            _ => self.plain(out),
        }
    }

    fn nested(
        &mut self,
        out: &mut String,
        read: fn(&mut Self, &mut String) -> Result<(), CallDefect>,
    ) -> Result<(), CallDefect> {
        self.depth += 1;
        if self.depth > MAX_ARGUMENT_DEPTH {
            return Err(CallDefect::TooDeep);
        }
        self.at += 1;
        read(self, out)?;
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self, out: &mut String) -> Result<(), CallDefect> {
        // The values are written one after the other, and then copied in the order of their names: arguments may have
        // millions of members.
        let mut values = String::new();
        let mut members: Vec<(Cow<'a, str>, Range<usize>)> = Vec::new();
        while self.peek() != Some(b'}') {
            let name = self.string()?;
            self.skip(b':');
            let start = values.len();
            self.value(&mut values)?;
            members.push((name, start..values.len()));
            self.skip(b',');
        }
        members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(CallDefect::Duplicate);
        }
        out.push('{');
        for (at, (name, value)) in members.into_iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            push_quoted(out, &name);
            out.push(':');
            out.push_str(&values[value]);
        }
        out.push('}');
        Ok(())
    }

    fn array(&mut self, out: &mut String) -> Result<(), CallDefect> {
        out.push('[');
        let mut first = true;
        while self.peek() != Some(b']') {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            self.value(out)?;
            self.skip(b',');
        }
        out.push(']');
        Ok(())
    }

    /// Writes a number, `true`, `false` or `null`.
    fn plain(&mut self, out: &mut String) -> Result<(), CallDefect> {
        let token = self.token()?;
        let number = token.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        if number && !token.parse::<f64>().is_ok_and(f64::is_finite) {
            return Err(CallDefect::Number);
        }
        out.push_str(token);
        Ok(())
    }

    fn string(&mut self) -> Result<Cow<'a, str>, CallDefect> {
        self.peek();
        token_text(self.token()?).ok_or(CallDefect::Unreadable)
    }

    /// Reads the token that starts here.
    fn token(&mut self) -> Result<&'a str, CallDefect> {
        let end = skip_value(self.text.as_bytes(), self.at).ok_or(CallDefect::Unreadable)?;
        let token = &self.text[self.at..end];
        self.at = end;
        Ok(token)
    }

    /// Returns the next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        self.at = skip_space(self.text.as_bytes(), self.at);
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, byte: u8) {
        if self.peek() == Some(byte) {
            self.at += 1;
        }
    }
}

/// Returns the members of an object as bytes for a digest: without white space, in the order of their names, with a
/// comma after each member and after each item of a list.
///
/// The states that servers seal are bound to digests of these bytes, so the bytes must not change. For JSON text, use
/// [`canonical`].
pub fn canonical_value(object: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::new();
    write_object(object, &mut out);
    out
}

fn write_object(object: &Map<String, Value>, out: &mut Vec<u8>) {
    let mut members: Vec<_> = object.iter().collect();
    members.sort_by_key(|member| member.0);
    out.push(b'{');
    for (name, value) in members {
        write_value(&Value::from(name.as_str()), out);
        out.push(b':');
        write_value(value, out);
        out.push(b',');
    }
    out.push(b'}');
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(object) => write_object(object, out),
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write_value(item, out);
                out.push(b',');
            }
            out.push(b']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.extend_from_slice(value.to_string().as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_space_do_not_matter_and_numbers_stay_as_written() {
        let one = canonical(r#" {"b" : [1, 2.50,{ }] ,"a":"\u0041\n"} "#).unwrap();
        assert_eq!(one, r#"{"a":"A\n","b":[1,2.50,{}]}"#);
        assert_ne!(canonical("1"), canonical("1.0"));
        assert_ne!(
            canonical("18446744073709551617"),
            canonical("18446744073709551616")
        );
    }

    #[test]
    fn what_two_readers_could_see_differently_has_no_spelling() {
        for duplicate in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":1}"#,
            r#"[{"x":{"force":true,"force":false}}]"#,
        ] {
            assert_eq!(
                canonical(duplicate),
                Err(CallDefect::Duplicate),
                "{duplicate}"
            );
        }
    }

    #[test]
    fn what_cannot_be_shown_has_no_spelling() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert_eq!(canonical(&deep), Err(CallDefect::TooDeep));
        let very_deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(canonical(&very_deep), Err(CallDefect::TooDeep));
        assert_eq!(canonical(r#"{"a":1e999}"#), Err(CallDefect::Number));
        for broken in [r#"{"a":NaN}"#, r#"{"a":"\ud800"}"#, "{", "", "1 2", "{]"] {
            assert_eq!(canonical(broken), Err(CallDefect::Unreadable), "{broken}");
        }
    }

    #[test]
    fn a_value_keeps_its_bytes() {
        let value = serde_json::json!({"b": [1, 2.5, "\"x"], "a": {"d": null, "c": true}});
        assert_eq!(
            canonical_value(value.as_object().unwrap()),
            br#"{"a":{"c":true,"d":null,},"b":[1,2.5,"\"x",],}"#
        );
    }

    proptest::proptest! {
        #[test]
        fn equal_values_have_one_spelling(text in ".{0,20}", number in proptest::num::i64::ANY) {
            let value = serde_json::json!({"z": [text, {"y": number}], "a": {text.clone(): null, "b": true}});
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let spelled = canonical(&value.to_string());
            proptest::prop_assert_eq!(&spelled, &canonical(&pretty));
            if let Ok(spelled) = spelled {
                let again: Value = serde_json::from_str(&spelled).unwrap();
                proptest::prop_assert_eq!(again, value);
            }
        }
    }
}
