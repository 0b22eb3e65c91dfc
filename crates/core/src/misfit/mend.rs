//! Text that is almost JSON, as some programs write it.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text that is JSON after small changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended {
    /// The text.
    pub text: String,
    /// The reasons for the changes, for people.
    pub why: Vec<&'static str>,
}

const NOT_UTF8: &str = "it holds bytes that are not UTF-8";
const NOT_A_NUMBER: &str = "it holds NaN or Infinity, which JSON does not have";
const HALF_A_CHARACTER: &str = "it holds half of a surrogate pair";
const CONTROL: &str = "a string holds a control character";

/// Changes text that is almost JSON into JSON: bytes that are not UTF-8 and half surrogate pairs become the replacement
/// character, `NaN` and `Infinity` become `null`, and control characters inside a string are escaped. Returns `None` if
/// there is nothing to change.
///
/// ```
/// use mcp_elicit_core::misfit::mend;
///
/// let mended = mend(b"{\"ratio\": NaN, \"name\": \"a\\ud800\tb\"}").unwrap();
/// assert_eq!(mended.text, "{\"ratio\": null, \"name\": \"a\\ufffd\\u0009b\"}");
/// assert_eq!(mended.why.len(), 3);
/// ```
pub fn mend(text: &[u8]) -> Option<Mended> {
    let read = String::from_utf8_lossy(text);
    let mut why = Vec::new();
    if matches!(read, Cow::Owned(_)) {
        why.push(NOT_UTF8);
    }
    let mut out = String::with_capacity(read.len());
    let mut rest = &*read;
    let mut in_string = false;
    let mut note = |reason| {
        if !why.contains(&reason) {
            why.push(reason);
        }
    };
    while let Some(c) = rest.chars().next() {
        let mut used = c.len_utf8();
        match c {
            '"' => {
                in_string = !in_string;
                out.push(c);
            }
            '\\' if in_string => {
                let (escape, replaced) = escape(rest);
                used = escape.len();
                out.push_str(replaced.unwrap_or(escape));
                if replaced.is_some() {
                    note(HALF_A_CHARACTER);
                }
            }
            c if in_string && c < ' ' => {
                // Writing to a string cannot fail.
                let _written = write!(out, "\\u{:04x}", u32::from(c));
                note(CONTROL);
            }
            'N' | 'I' | '-' if !in_string => {
                let word = ["NaN", "Infinity", "-Infinity"];
                match word.iter().find(|word| rest.starts_with(**word)) {
                    Some(word) => {
                        used = word.len();
                        out.push_str("null");
                        note(NOT_A_NUMBER);
                    }
                    None => out.push(c),
                }
            }
            c => out.push(c),
        }
        rest = &rest[used..];
    }
    (!why.is_empty()).then_some(Mended { text: out, why })
}

/// Returns the escape at the start of a text, with what replaces it if it is half of a surrogate pair.
fn escape(text: &str) -> (&str, Option<&'static str>) {
    let Some(unit) = unit(text) else {
        let second = text.chars().nth(1).map_or(0, char::len_utf8);
        return (&text[..=second], None);
    };
    match unit {
        0xd800..=0xdbff => match self::unit(&text[6..]) {
            Some(0xdc00..=0xdfff) => (&text[..12], None),
            _ => (&text[..6], Some("\\ufffd")),
        },
        0xdc00..=0xdfff => (&text[..6], Some("\\ufffd")),
        _ => (&text[..6], None),
    }
}

/// Returns the code unit of `\uXXXX` at the start of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}
