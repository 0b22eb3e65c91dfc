//! Advice on input that is not accepted: the reason and the correct form, written for the person who typed it.
//!
//! Unlike a violation, advice may repeat the input. It is shown beside the field and belongs in no log and no record.

use url::Url;

use super::DraftValue;
use crate::form::{Field, Format, Kind};

/// The longest text that gets advice, in bytes.
const LONGEST: usize = 2_000;

const MONTHS: [(&str, u8); 12] = [
    ("January", 31),
    ("February", 29),
    ("March", 31),
    ("April", 30),
    ("May", 31),
    ("June", 30),
    ("July", 31),
    ("August", 31),
    ("September", 30),
    ("October", 31),
    ("November", 30),
    ("December", 31),
];

impl Field {
    /// Returns the reason why the input is not accepted and what to type instead, for the person who typed it:
    /// `February 2026 has 28 days`, `write 1000 or 1.0`. `None` if the violation says enough, or if the input is valid.
    pub fn advice(&self, typed: &DraftValue) -> Option<String> {
        let DraftValue::Text(text) = typed else {
            return None;
        };
        let text = text.trim();
        if text.is_empty() || text.len() > LONGEST {
            return None;
        }
        match self.kind() {
            Kind::Number(_) | Kind::Integer(_) => {
                on_number(text, matches!(self.kind(), Kind::Integer(_)))
            }
            Kind::Text(kind) => match kind.format? {
                Format::Date => on_date(text),
                Format::DateTime => on_date_time(text),
                Format::Email => on_email(text),
                Format::Uri => on_uri(text),
            },
            Kind::Boolean(_)
            | Kind::Choice(_)
            | Kind::Choices(_)
            | Kind::Union(_)
            | Kind::Lines(_) => None,
        }
    }

    /// Returns how an accepted number is read if it can be read in two ways: `1.500` is one and a half here, and
    /// fifteen hundred elsewhere.
    pub fn caveat(&self, typed: &DraftValue) -> Option<String> {
        let (Kind::Number(_), DraftValue::Text(text)) = (self.kind(), typed) else {
            return None;
        };
        let text = text.trim();
        let (grouped, _) = two_readings(text).filter(|_| text.contains('.'))?;
        Some(format!(
            "the point is taken as a decimal point; write {grouped} if you mean that"
        ))
    }
}

/// Returns both readings of a number with one separator and three digits after it: with a grouping and with a decimal
/// separator. `None` for any other text.
pub(super) fn two_readings(text: &str) -> Option<(String, String)> {
    let digits = text.strip_prefix(['-', '+', '\u{2212}']).unwrap_or(text);
    let sign = if digits.len() < text.len() && !text.starts_with('+') {
        "-"
    } else {
        ""
    };
    let (whole, fraction) = digits.split_once(['.', ','])?;
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let grouping = (1..=3).contains(&whole.len()) && fraction.len() == 3 && !whole.starts_with('0');
    if !grouping || !plain(whole) || !plain(fraction) {
        return None;
    }
    let short = fraction.trim_end_matches('0');
    // Three digits would be just as ambiguous.
    let fraction = match short.len() {
        0 => "0".to_owned(),
        3 => format!("{short}0"),
        _ => short.to_owned(),
    };
    Some((
        format!("{sign}{whole}{}", &digits[whole.len() + 1..]),
        format!("{sign}{whole}.{fraction}"),
    ))
}

fn on_number(text: &str, whole: bool) -> Option<String> {
    if let Some((grouped, decimal)) = two_readings(text) {
        return match (whole, text.contains(',')) {
            (true, _) => Some(match decimal.strip_suffix(".0") {
                Some(decimal) => {
                    format!("this can be read in two ways: write {grouped} or {decimal}")
                }
                None => format!("a fraction is not taken; write {grouped} if you mean that"),
            }),
            (false, true) => Some(format!(
                "this can be read in two ways: write {grouped} or {decimal}"
            )),
            (false, false) => None,
        };
    }
    let digits = text.strip_prefix(['-', '+', '\u{2212}']).unwrap_or(text);
    if !digits.bytes().any(|b| b.is_ascii_digit()) {
        return Some(if whole {
            "write a whole number in digits, such as 42".to_owned()
        } else {
            "write a number in digits, such as 42 or 4.2".to_owned()
        });
    }
    if digits.starts_with('.') && digits.len() < text.len() {
        return Some("write a digit before the decimal point, as in -0.5".to_owned());
    }
    let separators = digits.bytes().filter(|b| matches!(b, b'.' | b',')).count();
    if digits
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b','))
    {
        if separators > 1 {
            return plain_number(digits)
                .map(|plain| format!("write it without separators for thousands: {plain}"));
        }
        return (whole && separators == 1)
            .then(|| "write a number without a fraction, such as 42".to_owned());
    }
    if digits
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
    {
        return Some("the number is too large, or not complete".to_owned());
    }
    Some("write the digits alone, without units, signs of money or words".to_owned())
}

/// Returns `1.234.567,8` and `1,234,567.8` without the grouping separators.
fn plain_number(digits: &str) -> Option<String> {
    let last = digits.rfind(['.', ','])?;
    let mark = digits.as_bytes()[last];
    let others = digits
        .bytes()
        .filter(|b| matches!(b, b'.' | b',') && *b != mark)
        .count();
    let same = digits.bytes().filter(|b| *b == mark).count();
    let (whole, fraction) = match (others, same) {
        (0, _) => (digits, ""),
        (_, 1) => (&digits[..last], &digits[last + 1..]),
        _ => return None,
    };
    let mut groups = whole.split(['.', ',']);
    let first = groups.next()?;
    let sound = (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3);
    let whole: String = whole.chars().filter(char::is_ascii_digit).collect();
    let point = if fraction.is_empty() { "" } else { "." };
    sound.then(|| format!("{whole}{point}{fraction}"))
}

fn on_date(text: &str) -> Option<String> {
    let separator = ['-', '/', '.'].into_iter().find(|c| text.contains(*c))?;
    let parts: Vec<&str> = text.split(separator).map(str::trim).collect();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !parts.iter().all(digits) {
        return None;
    }
    let [a, b, c] = parts[..] else {
        return Some("write the year, the month and the day, as in 2026-02-28".to_owned());
    };
    match (a.len(), b.len(), c.len()) {
        (4, 1..=2, 1..=2) => on_day(a.parse().ok()?, b.parse().ok()?, c.parse().ok()?),
        (1..=2, 1..=2, 4) => Some(on_year_last(
            a.parse().ok()?,
            b.parse().ok()?,
            c.parse().ok()?,
        )),
        (1..=2, 1..=2, 2) => {
            Some("write the year first and with four digits, as in 2026-02-28".to_owned())
        }
        _ => None,
    }
}

/// Returns the reason why there is no such day.
fn on_day(year: u16, month: usize, day: u8) -> Option<String> {
    let Some((name, days)) = month.checked_sub(1).and_then(|index| MONTHS.get(index)) else {
        return Some(format!(
            "there is no month {month}: write the year, the month and the day"
        ));
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = if month == 2 && !leap { 28 } else { *days };
    match day {
        0 => Some("days are counted from 1".to_owned()),
        day if day > days && month == 2 => Some(format!("{name} {year} has {days} days")),
        day if day > days => Some(format!("{name} has {days} days")),
        _ => None,
    }
}

/// Handles dates with the year last: if both other numbers may be the month, the date is ambiguous.
fn on_year_last(a: u8, b: u8, year: u16) -> String {
    let date = |month: u8, day: u8| {
        let sound = (1..=12).contains(&month) && on_day(year, month.into(), day).is_none();
        sound.then(|| format!("{year}-{month:02}-{day:02}"))
    };
    match (date(b, a), date(a, b)) {
        (Some(one), Some(other)) if one != other => {
            format!("this can be read in two ways: write {one} or {other}")
        }
        (Some(date), _) | (_, Some(date)) => format!("write the year first: {date}"),
        (None, None) => "there is no such day; write the year first, as in 2026-02-28".to_owned(),
    }
}

fn on_date_time(text: &str) -> Option<String> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, time.trim()),
        None => (text, ""),
    };
    if !date.contains(|c: char| c.is_ascii_digit()) {
        return Some(
            "write the date, the time and its zone, as in 2026-02-28 09:30 +01:00".to_owned(),
        );
    }
    if let Some(why) = on_date(date) {
        return Some(why);
    }
    if time.is_empty() {
        return Some("add the time and its zone, as in 2026-02-28 09:30 +01:00".to_owned());
    }
    let zone_at = time.find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.' | ' '));
    let clock = time[..zone_at.unwrap_or(time.len())].trim();
    let mut parts = clock.split(':');
    let number = |part: Option<&str>| part.and_then(|part| part.parse::<f64>().ok());
    let (hour, minute, second) = (
        number(parts.next()),
        number(parts.next()),
        number(parts.next()),
    );
    match (hour, minute) {
        (Some(hour), _) if hour > 23.0 => return Some("hours go from 0 to 23".to_owned()),
        (_, Some(minute)) if minute > 59.0 => return Some("minutes go from 0 to 59".to_owned()),
        (Some(_), Some(_)) => {}
        _ => return Some("write hours and minutes, as in 09:30".to_owned()),
    }
    if second.is_some_and(|second| second >= 60.0) {
        return Some("seconds go from 0 to 59".to_owned());
    }
    if clock.split(':').next().is_some_and(|hour| hour.len() == 1) {
        return Some(format!("write the hour with two digits, as in 0{clock}"));
    }
    zone_at
        .is_none()
        .then(|| "the time zone is missing: add Z for UTC, or an offset such as +02:00".to_owned())
}

fn on_email(text: &str) -> Option<String> {
    if !text.contains('@') {
        return Some("the @ is missing".to_owned());
    }
    if text.contains(char::is_whitespace) {
        return Some("an address holds no spaces".to_owned());
    }
    if text.ends_with('@') {
        return Some("what follows the @ is missing".to_owned());
    }
    (!text.is_ascii())
        .then(|| "only letters without accents, digits and signs are taken".to_owned())
}

fn on_uri(text: &str) -> Option<String> {
    if Format::Uri.matches(text) {
        return None;
    }
    if text.contains(char::is_whitespace) {
        return Some("an address holds no spaces; write %20 for one".to_owned());
    }
    if let Ok(url) = Url::parse(text)
        && Format::Uri.matches(url.as_str())
    {
        return Some(format!("write it in its ASCII form: {url}"));
    }
    (!text.contains(':')).then(|| format!("the scheme is missing: write https://{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::tests::form;

    #[track_caller]
    fn advises(properties: &str, cases: &[(&str, Option<&str>)]) {
        let form = form(properties);
        for (text, expected) in cases {
            let advice = form.fields()[0].advice(&DraftValue::Text((*text).to_owned()));
            assert_eq!(advice.as_deref(), *expected, "{text:?}");
        }
    }

    #[test]
    fn numbers_that_can_be_read_in_two_ways_are_told_apart() {
        advises(
            r#"{"a":{"type":"number"}}"#,
            &[
                (
                    "1,000",
                    Some("this can be read in two ways: write 1000 or 1.0"),
                ),
                (
                    "-1,250",
                    Some("this can be read in two ways: write -1250 or -1.25"),
                ),
                (
                    "1,125",
                    Some("this can be read in two ways: write 1125 or 1.1250"),
                ),
                (
                    "1.234.567",
                    Some("write it without separators for thousands: 1234567"),
                ),
                (
                    "1.234,5",
                    Some("write it without separators for thousands: 1234.5"),
                ),
                (
                    "1,234.5",
                    Some("write it without separators for thousands: 1234.5"),
                ),
                ("seven", Some("write a number in digits, such as 42 or 4.2")),
                (
                    "5 kg",
                    Some("write the digits alone, without units, signs of money or words"),
                ),
                (
                    "-.5",
                    Some("write a digit before the decimal point, as in -0.5"),
                ),
                ("1e999", Some("the number is too large, or not complete")),
                ("1.5", None),
                ("0,125", None),
            ],
        );
        advises(
            r#"{"a":{"type":"integer"}}"#,
            &[
                (
                    "1.000",
                    Some("this can be read in two ways: write 1000 or 1"),
                ),
                (
                    "1.125",
                    Some("a fraction is not taken; write 1125 if you mean that"),
                ),
                ("2.5", Some("write a number without a fraction, such as 42")),
                ("42", None),
            ],
        );
    }

    #[test]
    fn a_point_before_three_digits_is_said_to_be_a_decimal_point() {
        let form = form(r#"{"a":{"type":"number"},"b":{"type":"integer"}}"#);
        let caveat = |index: usize, text: &str| {
            form.fields()[index].caveat(&DraftValue::Text(text.to_owned()))
        };
        assert!(caveat(0, "1.000").is_some_and(|caveat| caveat.contains("write 1000")));
        for unambiguous in ["1.0", "0.125", "1000", "1,000", "1.0000", "1.5e3"] {
            assert_eq!(caveat(0, unambiguous), None, "{unambiguous}");
        }
        assert_eq!(caveat(1, "1.000"), None);
    }

    #[test]
    fn days_that_do_not_exist_and_days_that_may_be_months() {
        advises(
            r#"{"a":{"type":"string","format":"date"}}"#,
            &[
                ("2026-02-30", Some("February 2026 has 28 days")),
                ("2028-2-30", Some("February 2028 has 29 days")),
                ("2026-04-31", Some("April has 30 days")),
                (
                    "2026-13-01",
                    Some("there is no month 13: write the year, the month and the day"),
                ),
                (
                    "1/2/2026",
                    Some("this can be read in two ways: write 2026-02-01 or 2026-01-02"),
                ),
                ("31.1.2026", Some("write the year first: 2026-01-31")),
                ("2/2/2026", Some("write the year first: 2026-02-02")),
                (
                    "31/31/2026",
                    Some("there is no such day; write the year first, as in 2026-02-28"),
                ),
                (
                    "1/2/26",
                    Some("write the year first and with four digits, as in 2026-02-28"),
                ),
                (
                    "2026-02",
                    Some("write the year, the month and the day, as in 2026-02-28"),
                ),
                ("2026-02-28", None),
                ("tomorrow", None),
            ],
        );
    }

    #[test]
    fn times_say_what_is_missing() {
        advises(
            r#"{"a":{"type":"string","format":"date-time"}}"#,
            &[
                (
                    "2026-05-31 14:30",
                    Some("the time zone is missing: add Z for UTC, or an offset such as +02:00"),
                ),
                ("2026-05-32 14:30Z", Some("May has 31 days")),
                (
                    "2026-05-31",
                    Some("add the time and its zone, as in 2026-02-28 09:30 +01:00"),
                ),
                ("2026-05-31 24:00Z", Some("hours go from 0 to 23")),
                (
                    "tomorrow 9am",
                    Some("write the date, the time and its zone, as in 2026-02-28 09:30 +01:00"),
                ),
                (
                    "2026-05-31 9:30Z",
                    Some("write the hour with two digits, as in 09:30"),
                ),
                ("2026-05-31T14:30:00Z", None),
            ],
        );
    }

    #[test]
    fn addresses_say_what_is_missing() {
        advises(
            r#"{"a":{"type":"string","format":"uri"}}"#,
            &[
                (
                    "example.org/x",
                    Some("the scheme is missing: write https://example.org/x"),
                ),
                (
                    "https://例え.jp/パス",
                    Some("write it in its ASCII form: https://xn--r8jz45g.jp/%E3%83%91%E3%82%B9"),
                ),
                ("https://example.org", None),
            ],
        );
        advises(
            r#"{"a":{"type":"string","format":"email"}}"#,
            &[
                ("ada", Some("the @ is missing")),
                ("ada@", Some("what follows the @ is missing")),
                ("ada@example.org", None),
            ],
        );
    }
}
