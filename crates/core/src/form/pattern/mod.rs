//! `pattern`: ECMA-262 syntax, matched in linear time.
//!
//! The regex crate matches in time linear in the text, which a peer's pattern needs, but its dialect is not ECMA's:
//! `grammar` parses a pattern as ECMA-262 does and rewrites it. Patterns that cannot be matched in linear time
//! (look-around, back-references) are not enforced, and a note says so.

mod example;
mod grammar;
mod property;

use std::fmt;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::FormLimits;
use grammar::Grammar;

/// A `pattern` (JSON Schema 2020-12 validation §6.3.3): searched for anywhere in the text, not anchored.
#[derive(Clone)]
pub struct Pattern {
    source: Arc<str>,
    regex: Option<Regex>,
    /// `true` if it is not ECMA-262 syntax: no other program may be given it.
    is_foreign: bool,
    /// The minimum and maximum number of characters, if the pattern limits the whole text.
    count: Option<(f64, f64)>,
}

/// The first size limit of a pattern, in bytes. Most patterns need less; others are tried again with twice as much.
const FIRST: usize = 16 << 10;

/// The reason why a pattern cannot be used at all.
#[derive(Debug)]
pub(crate) enum Refused {
    Syntax,
    Cost,
}

/// The remaining budget for the patterns of a form.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    /// States of automata over characters, as ECMA patterns are counted on every platform.
    states: f64,
    /// Bytes of compiled automata, independent of the count.
    memory: usize,
}

impl Budget {
    pub(crate) fn new(limits: &FormLimits) -> Self {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a bound, which needs no last digit"
        )]
        let states = limits.pattern_states as f64;
        Budget {
            states,
            memory: limits.pattern_memory,
        }
    }
}

impl Pattern {
    /// Parses a pattern and takes its cost from `left`.
    pub(crate) fn parse(
        source: &str,
        limits: &FormLimits,
        left: &mut Budget,
    ) -> Result<Self, Refused> {
        if source.len() > limits.pattern_bytes {
            return Err(Refused::Cost);
        }
        if needs_backtracking(source) {
            return Ok(Pattern {
                source: source.into(),
                regex: None,
                is_foreign: false,
                count: None,
            });
        }
        let (states, spelling, count) = Grammar::parse(source)?.compile();
        if states > left.states {
            return Err(Refused::Cost);
        }
        left.states -= states;
        Ok(Pattern {
            source: source.into(),
            regex: Some(compile(&spelling, &mut left.memory)?),
            is_foreign: false,
            count,
        })
    }

    /// Creates a pattern that cannot be read, and is not enforced.
    pub(crate) fn foreign(source: &str) -> Self {
        Pattern {
            source: source.into(),
            regex: None,
            is_foreign: true,
            count: None,
        }
    }

    /// Returns `true` for a pattern of a lenient reading that is not ECMA-262 syntax, or too costly.
    pub fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Returns the pattern as the schema spells it.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    pub(crate) fn shared_source(&self) -> Arc<str> {
        Arc::clone(&self.source)
    }

    /// Returns `true` if it is enforced; see [`NoteCode::PatternNotEnforced`](super::NoteCode::PatternNotEnforced).
    pub fn enforced(&self) -> bool {
        self.regex.is_some()
    }

    /// Returns a short text that matches, for a person; `None` if none is found, or if the pattern is not enforced.
    pub fn example(&self) -> Option<String> {
        self.regex.as_ref()?;
        example::of(&self.source, |text| self.matches(text))
    }

    /// Returns `true` if the text contains a match, and for a pattern that is not enforced.
    pub fn matches(&self, text: &str) -> bool {
        let counts = self.count.is_none_or(|(least, most)| {
            #[expect(clippy::cast_precision_loss, reason = "no text has 2^53 characters")]
            let there = text.chars().count() as f64;
            (least..=most).contains(&there)
        });
        counts && self.regex.as_ref().is_none_or(|regex| regex.is_match(text))
    }
}

fn compile(spelling: &str, left: &mut usize) -> Result<Regex, Refused> {
    let mut room = FIRST.min(*left);
    loop {
        // Groups are limited by the grammar, which counts them differently.
        let built = RegexBuilder::new(spelling)
            .nest_limit(1_000)
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
                // The attempt costs too: a form with many such patterns must not get the full budget for each.
                *left /= 2;
                return Err(Refused::Cost);
            }
            // A script that Unicode does not have.
            Err(_) => return Err(Refused::Syntax),
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

/// Returns `true` if the pattern has look-around or back-references.
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
        let limits = FormLimits::default();
        match Pattern::parse(source, &limits, &mut Budget::new(&limits)) {
            Ok(pattern) => pattern,
            Err(refused) => panic!("{source}: {refused:?}"),
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
            let limits = FormLimits::default();
            match Pattern::parse(source, &limits, &mut Budget::new(&limits)) {
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
        let limits = FormLimits::default();
        let refused =
            |source: &str| Pattern::parse(source, &limits, &mut Budget::new(&limits)).err();
        for source in ["(((a{200}){200}){200})", &"a".repeat(2_000)] {
            assert!(matches!(refused(source), Some(Refused::Cost)), "{source}");
        }
        assert!(matches!(refused("("), Some(Refused::Syntax)));
        // The classic case of exponential time in a backtracking engine.
        let long = format!("{}!", "a".repeat(100_000));
        assert!(!pattern("^(a+)+$").matches(&long));
    }

    #[test]
    fn only_what_ecma_reads_is_a_pattern() {
        let limits = FormLimits::default();
        for source in [
            "(?i)x",
            r"\A",
            r"\z",
            r"x\Z",
            "a**",
            "a{2}{3}",
            "^*",
            r"\b+",
            "{2}",
            "a{3,2}",
            ")",
            "(",
            "[",
            "[b-a]",
            r"\k",
            r"\a",
            r"\pL",
            r"\p{greek}",
            r"\ud800",
            r"\u{110000}",
            r"\x4",
            r"\01",
            r"\c1",
            r"[\1]",
            r"\é",
            "(?P<a>x)",
            "(?<a>x)(?<a>y)",
            "(?<1>x)",
        ] {
            let parsed = Pattern::parse(source, &limits, &mut Budget::new(&limits));
            assert!(matches!(parsed, Err(Refused::Syntax)), "{source}");
        }
        for source in [
            "a{",
            "}",
            "]",
            "a{,2}",
            "a{1,2,3}",
            "a??",
            r"\-\'\@\ ",
            "(|a)",
            "(?:)",
            "",
            r"[\b]",
            r"\cJ\0",
        ] {
            assert!(pattern(source).enforced(), "{source}");
        }
    }

    #[test]
    fn the_patterns_of_a_form_share_what_they_may_cost() {
        let limits = FormLimits {
            pattern_states: 2_000,
            ..FormLimits::default()
        };
        let mut left = Budget::new(&limits);
        let mut taken = 0;
        while Pattern::parse(r"\p{L}{1,10}", &limits, &mut left).is_ok() {
            taken += 1;
        }
        // 10 copies of 64 states, and one for the choice between them.
        assert_eq!(taken, 3);
    }

    #[test]
    fn the_memory_is_enough_for_the_states() {
        let limits = FormLimits::default();
        for source in [
            r"x\p{L}{1,155}",
            r"(?:a\P{Lu}){150}x",
            r"(?:[^x]y){4950}",
            r"(?:.y){4950}",
            r"(?:\S\W){4950}",
            r"x[a-zà-ž]{9500}",
            r"(?:ab|cd){1500}",
            r"(?:a|b|c|d|é|日){800}",
            r"x\p{Script=Han}{75}",
            r"x[\p{L}\p{N}]{75}",
        ] {
            let parsed = Pattern::parse(source, &limits, &mut Budget::new(&limits));
            assert!(parsed.is_ok(), "{source}");
        }
    }
}
