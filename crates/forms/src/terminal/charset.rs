//! The character sets of terminals.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The characters that a terminal can draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// All of Unicode, as UTF-8.
    #[default]
    Unicode,
    /// ASCII only: signs and lines are drawn with it, and every other character is shown by its number.
    Ascii,
}

impl Charset {
    /// Returns the character set of the locale: the first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set. A locale that
    /// does not name UTF-8 means ASCII. If none is set, it returns Unicode.
    pub fn of_locale() -> Self {
        Self::named(["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os))
    }

    fn named(variables: [Option<OsString>; 3]) -> Self {
        let set = variables
            .into_iter()
            .flatten()
            .find(|value| !value.is_empty());
        let Some(locale) = set.filter(|_| !cfg!(windows)) else {
            return Self::Unicode;
        };
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") {
            Self::Unicode
        } else {
            Self::Ascii
        }
    }

    /// Returns the text in this character set.
    pub fn spell(self, text: &str) -> Cow<'_, str> {
        if self == Self::Unicode || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut spelled = String::with_capacity(text.len());
        for c in text.chars() {
            push(&mut spelled, c);
        }
        Cow::Owned(spelled)
    }
}

fn push(out: &mut String, c: char) {
    let drawn = match c {
        '\0'..='\u{7f}' => return out.push(c),
        '─' | '–' | '—' | '−' | '·' | '‐' => "-",
        '│' | '┃' => "|",
        '❯' | '▸' | '›' | '→' => ">",
        '‹' | '←' => "<",
        '●' => "*",
        '○' => "o",
        '✗' => "x",
        '↑' => "^",
        '↓' => "v",
        '“' | '”' | '„' => "\"",
        '‘' | '’' => "'",
        '…' => "...",
        '\u{a0}' => " ",
        // The pictures of control characters: ^[ for escape, ^G for bell.
        '\u{2400}'..='\u{241f}' => {
            let letter = u32::from(c) - 0x2400 + u32::from('@');
            out.push('^');
            return out.push(char::from_u32(letter).unwrap_or('?'));
        }
        '\u{2421}' => "^?",
        other => {
            let _ = write!(out, "<U+{:04X}>", u32::from(other)); // writing to a String cannot fail
            return;
        }
    };
    out.push_str(drawn);
}

/// A writer that passes ASCII only: other characters could act on a terminal that reads bytes and not UTF-8.
pub(super) struct AsciiOnly<W>(pub(super) W);

impl<W: Write> Write for AsciiOnly<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Ok(text) = std::str::from_utf8(bytes) {
            self.0.write_all(Charset::Ascii.spell(text).as_bytes())?;
        } else {
            let ascii: Vec<u8> = bytes
                .iter()
                .map(|byte| if byte.is_ascii() { *byte } else { b'?' })
                .collect();
            self.0.write_all(&ascii)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let named = |all: &str, kind: &str, language: &str| {
            Charset::named([all, kind, language].map(|value| Some(OsString::from(value))))
        };
        assert_eq!(named("C", "", "en_US.UTF-8"), Charset::Ascii);
        assert_eq!(named("", "de_DE.utf8", "C"), Charset::Unicode);
        assert_eq!(named("", "", "ru_RU.KOI8-R"), Charset::Ascii);
        assert_eq!(named("", "", "C.UTF-8"), Charset::Unicode);
        assert_eq!(named("", "", ""), Charset::Unicode);
    }

    #[test]
    fn nothing_but_ascii_reaches_the_terminal() {
        let mut out = AsciiOnly(Vec::new());
        write!(out, "● “日” ␛[2J ś… ❯").unwrap();
        assert_eq!(
            String::from_utf8(out.0).unwrap(),
            "* \"<U+65E5>\" ^[[2J <U+015B>... >"
        );
    }
}
