//! `pattern`: ECMA-262 syntax, matched in linear time.
//!
//! The regex crate matches in time linear in the text, which a peer's pattern needs, but its dialect is not ECMA's. This room
//! (`spelling`) respells what means the same. What cannot be matched in linear time (look-around, back-references) is not enforced, and said.

mod spelling;

use std::fmt;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::Limits;
use spelling::{Counted, respell};

/// A `pattern` (JSON Schema 2020-12 validation §6.3.3): searched for anywhere in the text, not anchored.
#[derive(Clone)]
pub struct Pattern {
    source: Arc<str>,
    regex: Option<Regex>,
    /// How many characters there must be, where the pattern says so of all of them.
    count: Option<Range>,
}

/// At least so many, and at most.
type Range = (usize, Option<usize>);

/// What a pattern may take at first, in bytes. Most need less; others are tried again with twice as much.
const FIRST: usize = 16 << 10;

/// Why a pattern cannot be used at all.
pub(crate) enum Refused {
    Syntax(String),
    Cost,
}

impl Pattern {
    /// Takes what the compiled pattern needs from `left`, the memory in bytes that patterns of the form may still take.
    pub(crate) fn parse(source: &str, limits: &Limits, left: &mut usize) -> Result<Self, Refused> {
        if source.len() > limits.pattern_bytes {
            return Err(Refused::Cost);
        }
        if needs_backtracking(source) {
            return Ok(Pattern {
                source: source.into(),
                regex: None,
                count: None,
            });
        }
        let (spelling, count) = match Counted::of(source) {
            Some(Counted { atom, least, most }) => {
                (format!("^{}*$", respell(atom)), Some((least, most)))
            }
            None => (respell(source), None),
        };
        Ok(Pattern {
            source: source.into(),
            regex: Some(compile(&spelling, left)?),
            count,
        })
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
        let counts = self.count.is_none_or(|(least, most)| {
            let there = text.chars().count();
            least <= there && most.is_none_or(|most| there <= most)
        });
        counts && self.regex.as_ref().is_none_or(|regex| regex.is_match(text))
    }
}

fn compile(spelling: &str, left: &mut usize) -> Result<Regex, Refused> {
    let mut room = FIRST.min(*left);
    loop {
        let built = RegexBuilder::new(spelling)
            .size_limit(room)
            .dfa_size_limit(room)
            .build();
        match built {
            Ok(regex) => {
                *left -= room;
                return Ok(regex);
            }
            Err(regex::Error::CompiledTooBig(_)) if room < *left => room = (room * 2).min(*left),
            Err(regex::Error::CompiledTooBig(_)) => {
                // The trial was work too: a form of nothing but such patterns must not be tried at full price each time.
                *left /= 2;
                return Err(Refused::Cost);
            }
            Err(error) => return Err(Refused::Syntax(last_line(&error))),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(source: &str) -> Pattern {
        let limits = Limits::default();
        match Pattern::parse(source, &limits, &mut limits.pattern_memory.clone()) {
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
            (r"^[\w-.]+$", "a-b.c", true),
            (r"^[\w-\.]+@([\w-]+\.)+[\w-]{2,4}$", "a-b.c@x-y.org", true),
            (r"^[a-\d]$", "-", true),
            (r"^[+--]$", ",", true),
            (r"^[--/]$", ".", true),
            (r"^[a^-]$", "^", true),
            (r"^\ud83d\udc4d$", "👍", true),
            (r"^[\ud83d\udc4d]$", "👍", true),
        ] {
            assert_eq!(pattern(source).matches(text), yes, "{source} on {text:?}");
        }
    }

    #[test]
    fn so_many_of_one_class_are_counted() {
        for (source, text, yes) in [
            (r"^[\p{L}\p{M} .'-]{1,200}$", "Zoë O’Neil", false),
            (r"^[\p{L}\p{M} .'-]{1,200}$", "Zoë O'Neil", true),
            (r"^.{2,3}$", "é", false),
            (r"^.{2,3}$", "👍👍👍", true),
            (r"^.{2,3}$", "👍👍👍👍", false),
            (r"^.{2,3}$", "a\n", false),
            (r"^\p{L}{3}$", "abc", true),
            (r"^\p{L}{3}$", "abcd", false),
            (r"^\d{2,}$", "1", false),
            (r"^\d{2,}$", "123456", true),
            (r"^[\]x]{2}$", "]x", true),
            (r"^[^]{1,5000}$", "a\nb", true),
            (r"^\d{3,2}$", "12", false),
        ] {
            match Pattern::parse(source, &Limits::default(), &mut (1 << 20)) {
                Ok(pattern) => assert_eq!(pattern.matches(text), yes, "{source} on {text:?}"),
                Err(_) => assert!(!yes, "{source}"),
            }
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
        let limits = Limits::default();
        let refused = |source: &str| {
            Pattern::parse(source, &limits, &mut limits.pattern_memory.clone()).err()
        };
        for source in ["(((a{200}){200}){200})", &"a".repeat(2_000)] {
            assert!(matches!(refused(source), Some(Refused::Cost)), "{source}");
        }
        assert!(matches!(refused("("), Some(Refused::Syntax(_))));
        // The classic that takes exponential time in a backtracking engine.
        let long = format!("{}!", "a".repeat(100_000));
        assert!(!pattern("^(a+)+$").matches(&long));
    }
    #[test]
    fn the_patterns_of_a_form_share_what_they_may_take() {
        let limits = Limits::default();
        let mut left = 1 << 20;
        let mut taken = 0;
        while Pattern::parse(r"\p{L}{1,20}", &limits, &mut left).is_ok() {
            taken += 1;
        }
        assert!((1..10).contains(&taken), "{taken}");
        assert!(left < 1 << 19);
    }
}
