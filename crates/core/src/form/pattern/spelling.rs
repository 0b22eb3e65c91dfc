//! ECMA-262 patterns respelled for the regex crate: what means the same there is written otherwise.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

/// Spaces as ECMA-262 counts them (WhiteSpace and LineTerminator).
const SPACES: &str = r"\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";

/// The same language in the regex crate's spelling.
pub(super) fn respell(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push_str(&escape(&mut chars, false).spelling()),
            '[' => class(&mut chars, &mut out),
            '.' => out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '{' if !opens_count(chars.clone()) => out.push_str(r"\{"),
            _ => out.push(c),
        }
    }
    out
}

/// Whether what follows a `{` makes it a count; else it stands for itself.
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

/// What an escape or a member of a class stands for, in the regex crate's spelling.
enum Member {
    /// One character: it may begin or end a range.
    One(String),
    /// A set of characters, as `\d` is.
    Set(String),
}

impl Member {
    fn spelling(self) -> String {
        match self {
            Member::One(spelling) | Member::Set(spelling) => spelling,
        }
    }
}

/// A class, of which the `[` is read already.
fn class(chars: &mut Peekable<Chars<'_>>, out: &mut String) {
    let negated = chars.next_if_eq(&'^').is_some();
    // ECMA: `[]` is nothing and `[^]` is anything; the regex crate takes a leading `]` as a member.
    if chars.next_if_eq(&']').is_some() {
        out.push_str(if negated { r"[\s\S]" } else { r"[^\s\S]" });
        return;
    }
    out.push_str(if negated { "[^" } else { "[" });
    while let Some(next) = chars.peek() {
        if *next == ']' {
            chars.next();
            out.push(']');
            return;
        }
        let first = member(chars);
        let mut ahead = chars.clone();
        let between = ahead.next() == Some('-') && !matches!(ahead.next(), Some(']') | None);
        if !between {
            out.push_str(&first.spelling());
            continue;
        }
        chars.next();
        let last = member(chars);
        // Beside a set there is no range, and the dash is itself (ECMA-262, B.1.2.8.1), as in the widespread `[\w-.]`.
        let dash = match (&first, &last) {
            (Member::One(_), Member::One(_)) => "-",
            _ => r"\-",
        };
        for part in [&first.spelling(), dash, &last.spelling()] {
            out.push_str(part);
        }
    }
}

/// The next member of a class.
fn member(chars: &mut Peekable<Chars<'_>>) -> Member {
    match chars.next() {
        Some('\\') => escape(chars, true),
        // Set notation of the regex crate, plain characters in ECMA.
        Some(c @ ('[' | '&' | '~' | '-' | '^')) => Member::One(format!(r"\{c}")),
        Some(c) => Member::One(c.to_string()),
        None => Member::One(String::new()),
    }
}

/// An escape, of which the backslash is read already.
fn escape(chars: &mut Peekable<Chars<'_>>, in_class: bool) -> Member {
    let Some(escaped) = chars.next() else {
        return Member::One(r"\".to_owned());
    };
    let within = |set: &str| {
        Member::Set(if in_class {
            set.to_owned()
        } else {
            format!("[{set}]")
        })
    };
    let one = |spelling: &str| Member::One(spelling.to_owned());
    match escaped {
        'd' => within("0-9"),
        'w' => within("A-Za-z0-9_"),
        's' => within(SPACES),
        'D' => Member::Set("[^0-9]".to_owned()),
        'W' => Member::Set("[^A-Za-z0-9_]".to_owned()),
        'S' => Member::Set(format!("[^{SPACES}]")),
        'p' | 'P' => Member::Set(format!(r"\{escaped}{}", braced(chars))),
        'u' => Member::One(unit(chars)),
        'b' if in_class => one(r"\x08"),
        'b' => one(r"(?-u:\b)"),
        'B' if !in_class => one(r"(?-u:\B)"),
        '0' => one(r"\x00"),
        'c' => match chars.next_if(char::is_ascii_alphabetic) {
            Some(letter) => Member::One(format!(r"\x{:02X}", u32::from(letter) % 32)),
            None => one(r"\\c"),
        },
        '/' | '\'' | '"' | '`' | '%' | ':' | ',' | ';' | '<' | '>' | '=' | '!' | '@' | '_'
        | ' ' => Member::One(escaped.to_string()),
        other => Member::One(format!(r"\{other}")),
    }
}

/// A property or a code point in braces: `{L}`, `{1F600}`. Empty where there are none.
fn braced(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut out = String::new();
    if chars.peek() == Some(&'{') {
        for c in chars.by_ref() {
            out.push(c);
            if c == '}' {
                break;
            }
        }
    }
    out
}

/// What follows `\u`: a code point in braces, or a code unit. Two surrogates are one character.
fn unit(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut ahead = chars.clone();
    let Some(high @ 0xD800..=0xDBFF) = four_digits(&mut ahead) else {
        return format!(r"\u{}", braced(chars));
    };
    if ahead.next() == Some('\\')
        && ahead.next() == Some('u')
        && let Some(low @ 0xDC00..=0xDFFF) = four_digits(&mut ahead)
    {
        *chars = ahead;
        let mut out = String::new();
        let _ = write!(
            out,
            r"\u{{{:X}}}",
            0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)
        );
        return out;
    }
    r"\u".to_owned()
}

fn four_digits(chars: &mut Peekable<Chars<'_>>) -> Option<u32> {
    let mut number = 0;
    for _ in 0..4 {
        number = number * 16 + chars.next()?.to_digit(16)?;
    }
    Some(number)
}

/// A pattern that says "so many of these, and nothing else", such as `^[\p{L} ]{1,100}$`. Compiled as it stands, it would hold
/// as many copies of the class.
pub(super) struct Counted<'s> {
    /// What each character must be.
    pub(super) atom: &'s str,
    pub(super) least: usize,
    pub(super) most: Option<usize>,
}

impl<'s> Counted<'s> {
    pub(super) fn of(source: &'s str) -> Option<Self> {
        let body = source.strip_prefix('^')?.strip_suffix("}$")?;
        let (atom, count) = body.rsplit_once('{')?;
        let (least, most) = match count.split_once(',') {
            None => (count, Some(count)),
            Some((least, "")) => (least, None),
            Some((least, most)) => (least, Some(most)),
        };
        let number = |digits: &str| {
            let plain = digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse::<usize>().ok().filter(|_| plain)
        };
        let (least, most) = (number(least)?, most.map(number));
        if most.is_some_and(|most| most.is_none_or(|most| most < least)) || !is_one_character(atom)
        {
            return None;
        }
        Some(Counted {
            atom,
            least,
            most: most.flatten(),
        })
    }
}

/// Whether a pattern is a class, a set or a property: what always matches one character.
fn is_one_character(atom: &str) -> bool {
    match atom.as_bytes() {
        [b'.'] | [b'\\', b'd' | b'D' | b'w' | b'W' | b's' | b'S'] => true,
        [b'\\', b'p' | b'P', b'{', name @ .., b'}'] => !name.contains(&b'}'),
        [b'[', inside @ .., b']'] => {
            let mut escaped = false;
            inside.iter().all(|byte| {
                let ends = *byte == b']' && !escaped;
                escaped = *byte == b'\\' && !escaped;
                !ends
            }) && !escaped
        }
        _ => false,
    }
}
