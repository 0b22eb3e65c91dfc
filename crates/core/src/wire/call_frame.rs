//! The call of a request: parsed once, digested in a canonical spelling, and rejected if it cannot be shown to a person
//! in full.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::IgnoredAny;

use super::frame::{self, FrameIndex};

/// The deepest accepted nesting of arguments.
pub const MAX_ARGUMENT_DEPTH: usize = 100;

/// The name and arguments of a `tools/call`, `prompts/get` or `resources/read`.
#[derive(Clone, PartialEq, Eq)]
pub struct CallFrame<'a> {
    /// The name, or the resource's URI.
    pub target: Cow<'a, str>,
    /// The arguments as the client wrote them, JSON.
    pub arguments: Option<&'a str>,
}

/// The reason why a call cannot be shown to a person in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallDefect {
    /// The name or URI is missing or is not text.
    #[error("the name of the called item cannot be read")]
    Target,
    /// The arguments are not JSON, or hold text that is not Unicode.
    #[error("the arguments are not JSON text that can be shown")]
    Unreadable,
    /// An object in the arguments has a duplicate member.
    #[error("the arguments have a member twice: write each once, and call again")]
    Duplicate,
    /// The arguments are nested deeper than [`MAX_ARGUMENT_DEPTH`] levels.
    #[error("the arguments are nested deeper than {MAX_ARGUMENT_DEPTH} levels")]
    TooDeep,
    /// A number in the arguments is larger than any number that can be shown.
    #[error("the arguments have a number that is too large to be shown")]
    Number,
}

impl fmt::Debug for CallFrame<'_> {
    /// Hides the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFrame")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl<'a> CallFrame<'a> {
    /// Reads the call of a request whose members are in `index`.
    pub fn read(frame: &'a str, index: &FrameIndex) -> Result<Self, CallDefect> {
        let method = index.method.clone().map(|range| &frame[range]);
        let target = match method {
            Some("tools/call" | "prompts/get") => &index.name,
            Some("resources/read") => &index.uri,
            _ => &None,
        };
        let target = target.clone().ok_or(CallDefect::Target)?;
        Ok(Self {
            target: text(&frame[target]).ok_or(CallDefect::Target)?,
            arguments: index.arguments.clone().map(|range| &frame[range]),
        })
    }

    /// Returns the arguments in canonical spelling: members sorted by name, numbers as written. Empty without
    /// arguments.
    pub fn canonical_arguments(&self) -> Result<String, CallDefect> {
        self.arguments.map_or(Ok(String::new()), canonical)
    }
}

/// Returns a JSON value in canonical spelling: without white space, members sorted by name, numbers as written.
pub fn canonical(value: &str) -> Result<String, CallDefect> {
    // From here on the text is known to be JSON.
    serde_json::from_str::<IgnoredAny>(value).map_err(|_| CallDefect::Unreadable)?;
    let mut out = String::with_capacity(value.len());
    let mut reader = Reader {
        text: value,
        at: 0,
        depth: 0,
    };
    reader.value(&mut out)?;
    Ok(out)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, out: &mut String) -> Result<(), CallDefect> {
        match self.peek() {
            Some(b'{') => self.nested(out, Self::object),
            Some(b'[') => self.nested(out, Self::array),
            Some(b'"') => {
                let text = self.string()?;
                out.push_str(&super::members::quoted(&text));
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
        let mut members: BTreeMap<Cow<'a, str>, String> = BTreeMap::new();
        while self.peek() != Some(b'}') {
            let name = self.string()?;
            self.skip(b':');
            let mut value = String::new();
            self.value(&mut value)?;
            if members.insert(name, value).is_some() {
                return Err(CallDefect::Duplicate);
            }
            self.skip(b',');
        }
        out.push('{');
        for (at, (name, value)) in members.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(&super::members::quoted(name));
            out.push(':');
            out.push_str(value);
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

    /// Copies a number, `true`, `false` or `null`.
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
        text(self.token()?).ok_or(CallDefect::Unreadable)
    }

    /// Returns the token that starts here.
    fn token(&mut self) -> Result<&'a str, CallDefect> {
        let end = frame::skip_value(self.text.as_bytes(), self.at).ok_or(CallDefect::Unreadable)?;
        let token = &self.text[self.at..end];
        self.at = end;
        Ok(token)
    }

    /// Returns the next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        self.at = frame::skip_space(self.text.as_bytes(), self.at);
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, byte: u8) {
        if self.peek() == Some(byte) {
            self.at += 1;
        }
    }
}

/// Returns the text of a JSON string.
fn text(token: &str) -> Option<Cow<'_, str>> {
    let plain = token.strip_prefix('"')?.strip_suffix('"')?;
    if !plain.contains('\\') {
        return Some(Cow::Borrowed(plain));
    }
    serde_json::from_str::<String>(token).ok().map(Cow::Owned)
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
    fn a_call_says_what_it_calls() {
        let read = |frame: &'static str| {
            let index = FrameIndex::read(frame.as_bytes()).unwrap();
            CallFrame::read(frame, &index)
        };
        let call = read(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":"secret"}}}"#,
        )
        .unwrap();
        assert_eq!(call.target, "t");
        assert_eq!(call.arguments, Some(r#"{"a":"secret"}"#));
        assert!(!format!("{call:?}").contains("secret"));
        let resource =
            read(r#"{"id":1,"method":"resources/read","params":{"name":"no","uri":"a:\u0062"}}"#);
        assert_eq!(resource.unwrap().target, "a:b");
        for nameless in [
            r#"{"id":1,"method":"tools/call","params":{"name":7}}"#,
            r#"{"id":1,"method":"tools/call","params":{"uri":"a"}}"#,
            r#"{"id":1,"method":"tools/call","params":["name"]}"#,
            r#"{"id":1,"method":"tools/list","params":{"name":"t"}}"#,
        ] {
            assert_eq!(read(nameless), Err(CallDefect::Target), "{nameless}");
        }
    }

    proptest::proptest! {
        #[test]
        fn equal_values_have_one_spelling(text in ".{0,20}", number in proptest::num::i64::ANY) {
            let value = serde_json::json!({"z": [text, {"y": number}], "a": {text.clone(): null, "b": true}});
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let spelled = canonical(&value.to_string());
            proptest::prop_assert_eq!(&spelled, &canonical(&pretty));
            if let Ok(spelled) = spelled {
                let again: serde_json::Value = serde_json::from_str(&spelled).unwrap();
                proptest::prop_assert_eq!(again, value);
            }
        }
    }
}
