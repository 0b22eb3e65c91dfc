//! TOML values with their positions. A value of the wrong kind is a defect and reads as absent, so that reading
//! continues.

use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::defect::{RuleDefect, nearest};

/// The longest accepted duration.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// A value with its position.
pub type SpannedValue<'t> = Spanned<DeValue<'t>>;

/// The text being read, and the errors so far.
pub struct DocumentReader<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
    /// The rule being read, by name.
    pub rule: Option<String>,
    /// The errors so far.
    pub defects: Vec<RuleDefect>,
    /// The warnings so far.
    pub warnings: Vec<RuleDefect>,
}

impl<'t> DocumentReader<'t> {
    /// Creates a reader of this text, without errors.
    pub fn new(text: &'t str) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            line_starts: std::iter::once(0).chain(starts).collect(),
            rule: None,
            defects: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Returns line and column of a byte of the text, both counted from 1.
    pub fn position(&self, at: usize) -> (usize, usize) {
        let line = self
            .line_starts
            .partition_point(|start| *start <= at)
            .max(1);
        let start = self.line_starts[line - 1];
        let before = self.text.get(start..at.min(self.text.len()));
        (line, before.map_or(0, |before| before.chars().count()) + 1)
    }

    fn made(&self, at: usize, code: &'static str, message: String, help: String) -> RuleDefect {
        let (line, column) = self.position(at);
        RuleDefect {
            code,
            rule: self.rule.clone(),
            line,
            column,
            message,
            help,
        }
    }

    /// Adds an error at this byte of the text.
    pub fn defect(
        &mut self,
        at: usize,
        code: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let defect = self.made(at, code, message.into(), help.into());
        self.defects.push(defect);
    }

    /// Adds a warning at this byte of the text.
    pub fn warning(
        &mut self,
        at: usize,
        code: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let warning = self.made(at, code, message.into(), help.into());
        self.warnings.push(warning);
    }

    fn wrong_type(&mut self, value: &SpannedValue<'_>, name: &str, expected: &str) {
        let found = match value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let message = format!("`{name}` must be {expected}; it is {found}");
        self.defect(value.span().start, "wrong-type", message, "");
    }

    /// Returns a table.
    pub fn table<'v>(
        &mut self,
        value: &'v SpannedValue<'t>,
        name: &str,
    ) -> Option<&'v DeTable<'t>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(value, name, "a table");
        }
        table
    }

    /// Returns a string.
    pub fn text<'v>(&mut self, value: &'v SpannedValue<'t>, name: &str) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(value, name, "a string");
        }
        text
    }

    /// Returns a boolean.
    pub fn truth(&mut self, value: &SpannedValue<'t>, name: &str) -> Option<bool> {
        let truth = value.get_ref().as_bool();
        if truth.is_none() {
            self.wrong_type(value, name, "true or false");
        }
        truth
    }

    /// Returns the members of a list.
    pub fn list<'v>(
        &mut self,
        value: &'v SpannedValue<'t>,
        name: &str,
    ) -> Option<&'v [SpannedValue<'t>]> {
        if let DeValue::Array(list) = value.get_ref() {
            return Some(list.as_ref());
        }
        self.wrong_type(value, name, "a list");
        None
    }

    /// Returns the texts of a list, each with its position.
    pub fn texts(&mut self, value: &SpannedValue<'t>, name: &str) -> Vec<(String, usize)> {
        let items = self.list(value, name).unwrap_or_default();
        let mut texts = Vec::new();
        for item in items {
            if let Some(text) = self.text(item, name) {
                texts.push((text.to_owned(), item.span().start));
            }
        }
        texts
    }

    /// Returns a whole number from 1 to `most`.
    pub fn count(&mut self, value: &SpannedValue<'t>, name: &str, most: u8) -> Option<u8> {
        let Some(number) = value.get_ref().as_integer() else {
            self.wrong_type(value, name, "a whole number");
            return None;
        };
        let read = u8::from_str_radix(number.as_str(), number.radix()).ok();
        let read = read.filter(|read| (1..=most).contains(read));
        if read.is_none() {
            let message = format!("`{name}` is {number}; it may be from 1 to {most}");
            self.defect(value.span().start, "out-of-range", message, "");
        }
        read
    }

    /// Returns a duration such as `30m`.
    pub fn duration(&mut self, value: &SpannedValue<'t>, name: &str) -> Option<Duration> {
        if let Some(number) = value.get_ref().as_integer() {
            let message = format!("`{name}` is a number without a unit");
            let help = format!("write it like \"{number}m\", with s, m, h or d");
            self.defect(value.span().start, "wrong-type", message, help);
            return None;
        }
        let text = self.text(value, name)?;
        let read = parse_duration(text);
        if read.is_none() {
            let message = format!("`{name}` is not a duration from 1s to 366d");
            self.defect(
                value.span().start,
                "invalid-duration",
                message,
                "write it like 90s, 30m, 24h or 7d",
            );
        }
        read
    }

    /// Reports every key of the table that is not in `known`.
    pub fn known_keys(&mut self, table: &DeTable<'t>, inside: &str, known: &[&str]) {
        let mut unknown: Vec<_> = table
            .iter()
            .filter(|(key, _)| !known.contains(&key.get_ref().as_ref()))
            .map(|(key, _)| (key.span().start, key.get_ref().to_string()))
            .collect();
        unknown.sort();
        for (at, key) in unknown {
            let help = match nearest(&key, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", known.join(", ")),
            };
            self.defect(
                at,
                "unknown-key",
                format!("unknown key `{key}` in {inside}"),
                help,
            );
        }
    }

    /// Returns the byte of the file for the byte `within` of a string's text; the string's first byte if escapes shift
    /// it.
    pub fn inside_text(&self, span: Range<usize>, text: &str, within: usize) -> usize {
        let raw = self.text.get(span.clone()).unwrap_or_default();
        let start = raw.find(text).map(|at| span.start + at);
        start.map_or(span.start, |start| start + within.min(text.len()))
    }
}

/// Returns the byte at which a member of a table begins.
pub fn key_start(table: &DeTable<'_>, name: &str) -> usize {
    table
        .get_key_value(name)
        .map_or(0, |(key, _)| key.span().start)
}

/// Reads a duration: whole numbers with `s`, `m`, `h` or `d`, the larger units first.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let (mut total, mut unit_before) = (0_u64, u64::MAX);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest.get(..digits)?.parse().ok()?;
        let unit = match rest.as_bytes().get(digits)? {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => 86_400,
            _ => return None,
        };
        if unit >= unit_before {
            return None;
        }
        unit_before = unit;
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = &rest[digits + 1..];
    }
    let read = Duration::from_secs(total);
    (!read.is_zero() && read <= LONGEST).then_some(read)
}

/// Writes a duration with the largest unit that needs no second one: `30m`, `24h`.
pub fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds.is_multiple_of(3600) {
        format!("{}h", seconds / 3600)
    } else if seconds.is_multiple_of(60) {
        format!("{}m", seconds / 60)
    } else {
        format!("{seconds}s")
    }
}

/// Returns a line of a file with the text that begins at this character hidden, and the number of characters before the
/// text's end in both lines. A multi-line text is hidden to the end of this line.
pub fn hide_text(line: &str, start: usize) -> (String, usize, usize) {
    let before: String = line.chars().take(start).collect();
    let rest: String = line.chars().skip(start).collect();
    let mut after = rest.chars();
    let quote = after.next();
    let is_long = quote.is_some_and(|quote| after.as_str().starts_with([quote]))
        && rest.chars().nth(2) == quote;
    let mut end = rest.len();
    if !is_long {
        let mut is_escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = quote == Some('"'),
                c if Some(c) == quote => {
                    end = at + c.len_utf8();
                    break;
                }
                _ => {}
            }
        }
    }
    let (hidden, tail) = rest.split_at(end);
    let shown = format!("{before}\"...\"");
    let ends = (start + hidden.chars().count(), shown.chars().count());
    (shown + tail, ends.0, ends.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, seconds) in [
            ("30m", 1800),
            ("1h30m", 5400),
            ("24h", 86_400),
            ("7d", 604_800),
            ("90s", 90),
        ] {
            assert_eq!(
                parse_duration(text),
                Some(Duration::from_secs(seconds)),
                "{text}"
            );
        }
        for text in [
            "",
            "30",
            "m",
            "0s",
            "1m1h",
            "1m1m",
            "-1s",
            "1.5h",
            "367d",
            "99999999999999999999d",
            "9999999999999999999d",
            "1 h",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        for (seconds, text) in [(86_400, "24h"), (5400, "90m"), (61, "61s")] {
            assert_eq!(duration_text(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn positions_are_counted_in_characters() {
        let reader = DocumentReader::new("a\nüb = 1\n");
        assert_eq!(reader.position(0), (1, 1));
        assert_eq!(reader.position(2), (2, 1));
        assert_eq!(reader.position(4), (2, 2));
        assert_eq!(reader.position(500), (3, 1));
    }
}

#[cfg(test)]
mod hidden_text_tests {
    use super::hide_text;

    #[test]
    fn a_text_is_hidden_to_its_end() {
        for (line, start, shown) in [
            (r#"key = "s3cret" # not it"#, 6, r#"key = "..." # not it"#),
            (
                r#"key = { a = "s3c\"ret", b = 1 }"#,
                12,
                r#"key = { a = "...", b = 1 }"#,
            ),
            (r"key = 's3c\', b = 1", 6, r#"key = "...", b = 1"#),
            (r#"key = """s3cret"#, 6, r#"key = "...""#),
            (r#"key = "s3cret"#, 6, r#"key = "...""#),
            (r#"ü = "s3cret" "#, 4, r#"ü = "..." "#),
            (r#"key = """#, 6, r#"key = "...""#),
        ] {
            let (hidden, before, after) = hide_text(line, start);
            assert_eq!(hidden, shown);
            let rest = |text: &str, from: usize| text.chars().skip(from).collect::<String>();
            assert_eq!(rest(line, before), rest(shown, after));
        }
    }
}
