//! `pattern`: ECMA-262 syntax, matched in linear time.
//!
//! The regex crate matches in time linear in the text, which a peer's pattern needs, but its dialect is not ECMA's. This room
//! respells what means the same. What cannot be matched in linear time (look-around, back-references) is not enforced, and said.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::Limits;

/// A `pattern` (JSON Schema 2020-12 validation §6.3.3): searched for anywhere in the text, not anchored.
#[derive(Clone)]
pub struct Pattern {
    source: Arc<str>,
    regex: Option<Regex>,
}

/// Why a pattern cannot be used at all.
pub(crate) enum Refused {
    Syntax(String),
    Cost,
}

impl Pattern {
    pub(crate) fn parse(source: &str, limits: &Limits) -> Result<Self, Refused> {
        if source.len() > limits.pattern_bytes {
            return Err(Refused::Cost);
        }
        if needs_backtracking(source) {
            return Ok(Pattern {
                source: source.into(),
                regex: None,
            });
        }
        let built = RegexBuilder::new(&respell(source))
            .size_limit(limits.pattern_memory)
            .dfa_size_limit(limits.pattern_memory)
            .build();
        match built {
            Ok(regex) => Ok(Pattern {
                source: source.into(),
                regex: Some(regex),
            }),
            Err(regex::Error::CompiledTooBig(_)) => Err(Refused::Cost),
            Err(error) => Err(Refused::Syntax(last_line(&error))),
        }
    }

    /// The pattern as the schema spells it.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    pub(crate) fn shared_source(&self) -> Arc<str> {
        Arc::clone(&self.source)
    }

    /// Whether it is checked at all; see [`NoteCode::PatternNotEnforced`](super::NoteCode::PatternNotEnforced).
    pub fn enforced(&self) -> bool {
        self.regex.is_some()
    }

    /// Whether the text contains a match. True when the pattern is not enforced.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(text))
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", self.source)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

/// The regex crate draws the pattern over several lines and explains on the last.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned()
}

/// Look-around and back-references.
fn needs_backtracking(source: &str) -> bool {
    let bytes = source.as_bytes();
    let mut in_class = false;
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => {
                match bytes.get(i + 1) {
                    Some(b'1'..=b'9') if !in_class => return true,
                    Some(b'k') if !in_class && bytes.get(i + 2) == Some(&b'<') => return true,
                    _ => {}
                }
                i += 1;
            }
            b'[' => in_class = true,
            b']' => in_class = false,
            b'(' if !in_class => {
                let rest = &bytes[i + 1..];
                if [b"?=".as_slice(), b"?!", b"?<=", b"?<!"]
                    .iter()
                    .any(|look| rest.starts_with(look))
                {
                    return true;
                }
            }
            _ => {}
        }
        i += 1;
    }
    false
}

/// Spaces as ECMA-262 counts them (WhiteSpace and LineTerminator).
const SPACES: &str = r"\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";

/// The same language in the regex crate's spelling.
fn respell(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut chars = source.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let Some(escaped) = chars.next() else {
                    out.push('\\');
                    break;
                };
                respell_escape(escaped, &mut chars, in_class, &mut out);
            }
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if chars.peek() == Some(&'^') {
                    chars.next();
                    out.push('^');
                }
                // ECMA: `[]` is nothing and `[^]` is anything; the regex crate takes a leading `]` as a member.
                if chars.peek() == Some(&']') {
                    chars.next();
                    in_class = false;
                    let negated = out.ends_with('^');
                    out.truncate(out.len() - if negated { 2 } else { 1 });
                    out.push_str(if negated { r"[\s\S]" } else { r"[^\s\S]" });
                }
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            // Set notation of the regex crate, plain characters in ECMA.
            '[' | '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '.' if !in_class => out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '{' if !in_class && !opens_count(chars.clone()) => out.push_str(r"\{"),
            _ => out.push(c),
        }
    }
    out
}

fn opens_count(chars: impl Iterator<Item = char>) -> bool {
    let mut digits = 0;
    for c in chars {
        match c {
            '0'..='9' => digits += 1,
            ',' if digits > 0 => {}
            '}' => return digits > 0,
            _ => return false,
        }
    }
    false
}

fn respell_escape(
    escaped: char,
    chars: &mut (impl Iterator<Item = char> + Clone),
    in_class: bool,
    out: &mut String,
) {
    match (escaped, in_class) {
        ('d', _) => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
        ('D', _) => out.push_str("[^0-9]"),
        ('w', _) => out.push_str(if in_class {
            "A-Za-z0-9_"
        } else {
            "[A-Za-z0-9_]"
        }),
        ('W', _) => out.push_str("[^A-Za-z0-9_]"),
        ('s', true) => out.push_str(SPACES),
        ('s', false) => {
            out.push('[');
            out.push_str(SPACES);
            out.push(']');
        }
        ('S', _) => {
            out.push_str("[^");
            out.push_str(SPACES);
            out.push(']');
        }
        ('b', false) => out.push_str(r"(?-u:\b)"),
        ('B', false) => out.push_str(r"(?-u:\B)"),
        ('b', true) => out.push_str(r"\x08"),
        ('0', _) => out.push_str(r"\x00"),
        ('c', _) => {
            let mut ahead = chars.clone();
            if let Some(letter) = ahead.next().filter(char::is_ascii_alphabetic) {
                chars.next();
                let _ = write!(out, r"\x{:02X}", u32::from(letter) % 32);
            } else {
                out.push_str(r"\\c");
            }
        }
        (
            '/' | '-' | '\'' | '"' | '`' | '%' | ':' | ',' | ';' | '<' | '>' | '=' | '!' | '@'
            | '_' | ' ',
            _,
        ) => {
            if escaped == '-' {
                out.push('\\');
            }
            out.push(escaped);
        }
        (other, _) => {
            out.push('\\');
            out.push(other);
            // A property or a code point in braces: \p{L}, \u{1F600}.
            let mut ahead = chars.clone();
            if matches!(other, 'p' | 'P' | 'u') && ahead.next() == Some('{') {
                for c in chars.by_ref() {
                    out.push(c);
                    if c == '}' {
                        break;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(source: &str) -> Pattern {
        match Pattern::parse(source, &Limits::default()) {
            Ok(pattern) => pattern,
            Err(Refused::Syntax(why)) => panic!("{source}: {why}"),
            Err(Refused::Cost) => panic!("{source}: cost"),
        }
    }

    #[test]
    fn unanchored_and_ecma() {
        for (source, text, yes) in [
            ("b", "abc", true),
            ("^b$", "abc", false),
            (r"^\d{3}$", "１２３", false),
            (r"^\d{3}$", "123", true),
            (r"^\w+$", "é", false),
            (r"^[\w.-]+$", "a.b-c", true),
            (r"^\s$", "\u{FEFF}", true),
            (r"^.$", "\r", false),
            (r"^[^]$", "\n", true),
            (r"[]", "x", false),
            (r"^\/x\-y$", "/x-y", true),
            (r"^\u00e9$", "é", true),
            (r"^[[&]+$", "[&", true),
            (r"^a{,3}$", "a{,3}", true),
            (r"^\cJ$", "\n", true),
            (r"^(?<year>[0-9]{4})$", "2026", true),
            (r"^\p{L}+$", "éa", true),
            (r"^[^\s@]+@[^\s@]+$", "a@b", true),
            (r"^\$\{[a-z]+\}$", "${x}", true),
        ] {
            assert_eq!(pattern(source).matches(text), yes, "{source} on {text:?}");
        }
    }

    #[test]
    fn backtracking_is_not_enforced_and_says_so() {
        for source in [r"^(?=a)", r"(a)\1", r"(?<!x)y", r"(?<q>['])\k<q>"] {
            assert!(!pattern(source).enforced(), "{source}");
        }
        assert!(pattern(r"[(?=]").enforced());
    }

    #[test]
    fn what_costs_too_much_is_refused() {
        assert!(matches!(
            Pattern::parse("(((a{200}){200}){200})", &Limits::default()),
            Err(Refused::Cost)
        ));
        assert!(matches!(
            Pattern::parse(&"a".repeat(2_000), &Limits::default()),
            Err(Refused::Cost)
        ));
        assert!(matches!(
            Pattern::parse("(", &Limits::default()),
            Err(Refused::Syntax(_))
        ));
        // The classic that takes exponential time in a backtracking engine.
        let long = format!("{}!", "a".repeat(100_000));
        assert!(!pattern("^(a+)+$").matches(&long));
    }
}
