//! The syntax of patterns: ECMA-262 with the `u` flag, plus `\-`, `[\w-.]` and literal braces.
//!
//! A pattern is parsed completely, counted in states and rewritten in the regex crate's syntax, so that every accepted
//! pattern means the same here as in a browser. `web/packages/form/src/check/pattern.ts` implements the same grammar
//! and the same counting.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use super::Refused;
use super::property;

/// White space as defined by ECMA-262 (`WhiteSpace` and `LineTerminator`).
const SPACES: &str = r"\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";

/// The deepest nesting of groups.
const DEPTH: u32 = 100;

/// The cost of a Unicode property in states; its automaton over bytes is large.
const PROPERTY: f64 = 64.0;

/// One part of a pattern.
pub(super) enum PatternPart {
    /// An expression for one character, in the regex crate's syntax, and its cost.
    One(String, f64),
    /// An assertion: `^`, `$` or a word boundary.
    Assertion(&'static str),
    /// Alternatives, or a group.
    Choice(Vec<Vec<PatternPart>>),
    /// A part with its minimum and maximum number of repetitions. The counts are floats, which can hold any number.
    Repeat(Box<PatternPart>, f64, f64),
}

impl PatternPart {
    /// Returns the cost, in states of an automaton over characters.
    fn cost(&self) -> f64 {
        match self {
            PatternPart::One(_, cost) => *cost,
            PatternPart::Assertion(_) => 1.0,
            PatternPart::Choice(all) => {
                let more = all.iter().skip(1).map(|parts| 1.0 + cost(parts));
                all.first().map_or(1.0, |first| cost(first)) + more.sum::<f64>()
            }
            PatternPart::Repeat(part, least, most) => {
                let copies = if most.is_finite() { *most } else { *least };
                part.cost() * copies.max(1.0) + 1.0
            }
        }
    }

    fn spell(&self, out: &mut String) {
        match self {
            PatternPart::One(spelling, _) => out.push_str(spelling),
            PatternPart::Assertion(spelling) => out.push_str(spelling),
            PatternPart::Choice(all) => {
                out.push_str("(?:");
                for (i, parts) in all.iter().enumerate() {
                    if i > 0 {
                        out.push('|');
                    }
                    spell(parts, out);
                }
                out.push(')');
            }
            PatternPart::Repeat(part, least, most) => {
                // A repetition can only be repeated inside a group.
                part.spell(out);
                let _ = if most.is_finite() {
                    write!(out, "{{{least:.0},{most:.0}}}")
                } else {
                    write!(out, "{{{least:.0},}}")
                };
            }
        }
    }
}

fn spell(parts: &[PatternPart], out: &mut String) {
    for part in parts {
        part.spell(out);
    }
}

/// Returns the cost of a sequence.
fn cost(parts: &[PatternPart]) -> f64 {
    parts.iter().map(PatternPart::cost).sum::<f64>().max(1.0)
}

/// A parsed pattern.
pub(super) struct Grammar(Vec<PatternPart>);

impl Grammar {
    /// Parses a pattern without look-around and back-references.
    pub(super) fn parse(source: &str) -> Result<Self, Refused> {
        let mut reader = PatternReader {
            chars: source.chars().peekable(),
            depth: 0,
            names: HashSet::new(),
        };
        let parts = reader.alternatives()?;
        need(reader.chars.next().is_none())?;
        Ok(Grammar(parts))
    }

    /// Returns the cost in states, the regex crate's syntax, and the number of characters if the pattern limits the
    /// whole text: `^[\p{L} ]{1,100}$` would contain a hundred copies of the class.
    pub(super) fn compile(&self) -> (f64, String, Option<(f64, f64)>) {
        let mut spelling = String::new();
        if let [
            PatternPart::Assertion("^"),
            PatternPart::Repeat(part, least, most),
            PatternPart::Assertion("$"),
        ] = self.0.as_slice()
            && let PatternPart::One(one, one_costs) = &**part
        {
            let _ = write!(spelling, "^{one}*$");
            return (one_costs + 3.0, spelling, Some((*least, *most)));
        }
        spell(&self.0, &mut spelling);
        (cost(&self.0), spelling, None)
    }
}

fn need(sound: bool) -> Result<(), Refused> {
    if sound { Ok(()) } else { Err(Refused::Syntax) }
}

/// The meaning of an escape or of a member of a class.
enum ClassMember {
    /// One character, which may begin or end a range.
    One(char),
    /// A set of characters, in the syntax inside a class, and its cost.
    Set(String, f64),
}

struct PatternReader<'s> {
    chars: Peekable<Chars<'s>>,
    depth: u32,
    names: HashSet<String>,
}

impl PatternReader<'_> {
    fn eat(&mut self, wanted: char) -> bool {
        self.chars.next_if_eq(&wanted).is_some()
    }

    fn alternatives(&mut self) -> Result<Vec<PatternPart>, Refused> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(Refused::Cost);
        }
        let mut all = vec![self.sequence()?];
        while self.eat('|') {
            all.push(self.sequence()?);
        }
        self.depth -= 1;
        if all.len() > 1 {
            return Ok(vec![PatternPart::Choice(all)]);
        }
        Ok(all.pop().unwrap_or_default())
    }

    fn sequence(&mut self) -> Result<Vec<PatternPart>, Refused> {
        let mut parts = Vec::new();
        while let Some(next) = self.chars.peek() {
            if matches!(next, '|' | ')') {
                break;
            }
            parts.push(self.term()?);
        }
        Ok(parts)
    }

    /// Parses `{2}`, `{2,}` or `{2,3}`, if it is next.
    fn count(&mut self) -> Option<(f64, f64)> {
        let mut ahead = self.chars.clone();
        ahead.next_if_eq(&'{')?;
        let digits = |ahead: &mut Peekable<Chars<'_>>| {
            let mut digits = String::new();
            while let Some(digit) = ahead.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            digits
        };
        let least = digits(&mut ahead).parse().ok()?;
        let most = if ahead.next_if_eq(&',').is_some() {
            digits(&mut ahead).parse().unwrap_or(f64::INFINITY)
        } else {
            least
        };
        ahead.next_if_eq(&'}')?;
        self.chars = ahead;
        Some((least, most))
    }

    fn term(&mut self) -> Result<PatternPart, Refused> {
        need(self.count().is_none())?;
        let part = match self.chars.next().ok_or(Refused::Syntax)? {
            '*' | '+' | '?' => return Err(Refused::Syntax),
            '^' => return Ok(PatternPart::Assertion("^")),
            '$' => return Ok(PatternPart::Assertion("$")),
            '(' => self.group()?,
            '[' => self.class()?,
            '.' => PatternPart::One(r"[^\n\r\u{2028}\u{2029}]".to_owned(), 1.0),
            '\\' if self.eat('b') => return Ok(PatternPart::Assertion(r"(?-u:\b)")),
            '\\' if self.eat('B') => return Ok(PatternPart::Assertion(r"(?-u:\B)")),
            '\\' => match self.escape(false)? {
                ClassMember::One(c) => PatternPart::One(spelled(c), 1.0),
                ClassMember::Set(set, cost) => PatternPart::One(format!("[{set}]"), cost),
            },
            c => PatternPart::One(spelled(c), 1.0),
        };
        let (least, most) = if let Some(count) = self.count() {
            count
        } else if self.eat('*') {
            (0.0, f64::INFINITY)
        } else if self.eat('+') {
            (1.0, f64::INFINITY)
        } else if self.eat('?') {
            (0.0, 1.0)
        } else {
            return Ok(part);
        };
        need(least <= most)?;
        self.eat('?');
        Ok(PatternPart::Repeat(Box::new(part), least, most))
    }

    /// Parses a group after its `(`.
    fn group(&mut self) -> Result<PatternPart, Refused> {
        if self.eat('?') && !self.eat(':') {
            need(self.eat('<'))?;
            let mut name = String::new();
            loop {
                match self.chars.next() {
                    Some('>') => break,
                    Some(c) => name.push(c),
                    None => return Err(Refused::Syntax),
                }
            }
            let part_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$');
            let sound = name.chars().all(part_of_name)
                && name.starts_with(|c: char| !c.is_ascii_digit())
                && self.names.insert(name);
            need(sound)?;
        }
        let parts = self.alternatives()?;
        need(self.eat(')'))?;
        Ok(PatternPart::Choice(vec![parts]))
    }

    /// Parses a class after its `[`.
    fn class(&mut self) -> Result<PatternPart, Refused> {
        let negated = self.eat('^');
        let mut inside = String::new();
        let mut total = 1.0;
        let mut put = |member: ClassMember, inside: &mut String| match member {
            ClassMember::One(c) => inside.push_str(&spelled(c)),
            ClassMember::Set(set, cost) => {
                inside.push_str(&set);
                total += cost - 1.0;
            }
        };
        loop {
            if self.eat(']') {
                break;
            }
            let first = self.member()?;
            let mut ahead = self.chars.clone();
            let between = ahead.next() == Some('-') && !matches!(ahead.next(), Some(']') | None);
            if !between {
                put(first, &mut inside);
                continue;
            }
            self.chars.next();
            match (first, self.member()?) {
                (ClassMember::One(low), ClassMember::One(high)) => {
                    need(low <= high)?;
                    let _ = write!(inside, "{}-{}", spelled(low), spelled(high));
                }
                // Next to a set there is no range, and the dash is literal (ECMA-262, B.1.2.8.1), as in the common
                // `[\w-.]`.
                (first, last) => {
                    put(first, &mut inside);
                    put(ClassMember::One('-'), &mut inside);
                    put(last, &mut inside);
                }
            }
        }
        // In ECMA-262, `[]` matches nothing and `[^]` anything; the regex crate takes a leading `]` as a member.
        let spelling = match (inside.is_empty(), negated) {
            (true, true) => r"[\s\S]".to_owned(),
            (true, false) => r"[^\s\S]".to_owned(),
            (false, true) => format!("[^{inside}]"),
            (false, false) => format!("[{inside}]"),
        };
        Ok(PatternPart::One(spelling, total))
    }

    fn member(&mut self) -> Result<ClassMember, Refused> {
        match self.chars.next().ok_or(Refused::Syntax)? {
            '\\' => self.escape(true),
            c => Ok(ClassMember::One(c)),
        }
    }

    /// Parses an escape after its backslash.
    fn escape(&mut self, in_class: bool) -> Result<ClassMember, Refused> {
        let set = |set: &str| Ok(ClassMember::Set(set.to_owned(), 1.0));
        let code = match self.chars.next().ok_or(Refused::Syntax)? {
            'd' => return set("0-9"),
            'w' => return set("A-Za-z0-9_"),
            's' => return set(SPACES),
            'D' => return set("[^0-9]"),
            'W' => return set("[^A-Za-z0-9_]"),
            'S' => return set(&format!("[^{SPACES}]")),
            letter @ ('p' | 'P') => {
                let name = self.braced()?;
                let class = property::spelling(&name, letter == 'P').ok_or(Refused::Syntax)?;
                return Ok(ClassMember::Set(class, PROPERTY));
            }
            't' => 0x09,
            'n' => 0x0A,
            'v' => 0x0B,
            'f' => 0x0C,
            'r' => 0x0D,
            'b' if in_class => 0x08,
            '0' => {
                need(!self.chars.peek().is_some_and(char::is_ascii_digit))?;
                0
            }
            'x' => self.hex(2)?,
            'c' => {
                let letter = self.chars.next_if(char::is_ascii_alphabetic);
                u32::from(letter.ok_or(Refused::Syntax)?) % 32
            }
            'u' => self.code_point()?,
            c => {
                need(c.is_ascii() && !c.is_ascii_alphanumeric())?;
                u32::from(c)
            }
        };
        char::from_u32(code)
            .map(ClassMember::One)
            .ok_or(Refused::Syntax)
    }

    /// Parses the part after `\u`: a code point in braces, or one or two code units. A lone surrogate is not a
    /// character here.
    fn code_point(&mut self) -> Result<u32, Refused> {
        if self.chars.peek() == Some(&'{') {
            let digits = self.braced()?;
            need(digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
            let digits = digits.trim_start_matches('0');
            return u32::from_str_radix(if digits.is_empty() { "0" } else { digits }, 16)
                .map_err(|_| Refused::Syntax);
        }
        let high = self.hex(4)?;
        if !(0xD800..0xDC00).contains(&high) {
            return Ok(high);
        }
        need(self.eat('\\') && self.eat('u'))?;
        let low = self.hex(4)?;
        need((0xDC00..0xE000).contains(&low))?;
        Ok(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    }

    fn hex(&mut self, digits: usize) -> Result<u32, Refused> {
        let mut number = 0;
        for _ in 0..digits {
            let digit = self.chars.next().and_then(|c| c.to_digit(16));
            number = number * 16 + digit.ok_or(Refused::Syntax)?;
        }
        Ok(number)
    }

    /// Parses the text in braces; never empty.
    fn braced(&mut self) -> Result<String, Refused> {
        need(self.eat('{'))?;
        let mut inside = String::new();
        loop {
            match self.chars.next() {
                Some('}') if !inside.is_empty() => return Ok(inside),
                Some('}') | None => return Err(Refused::Syntax),
                Some(c) => inside.push(c),
            }
        }
    }
}

/// Returns one character, escaped so that the regex crate takes it literally.
fn spelled(c: char) -> String {
    format!(r"\x{{{:X}}}", u32::from(c))
}
