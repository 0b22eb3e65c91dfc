//! Exact comparisons of JSON numbers: order, wholeness, divisibility.
//!
//! Numbers arrive as `i64`, `u64` or `f64`; comparing them all as `f64` would call 9007199254740993 and
//! 9007199254740992 equal.

use std::cmp::Ordering;

use serde_json::Number;

/// Compares two numbers by value, without rounding either.
pub(crate) fn compare(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => against_float(a, float(b)),
        (None, Some(b)) => against_float(b, float(a)).reverse(),
        (None, None) => float(a).total_cmp(&float(b)),
    }
}

/// Returns `true` if the number has no fractional part; 1.0 has none (JSON Schema 2020-12 validation §6.1.1).
pub(crate) fn is_integer(n: &Number) -> bool {
    n.is_i64() || n.is_u64() || float(n).fract() == 0.0
}

/// Returns the number as an integer if it was written as one or if `i64` can hold it: 1.0 becomes 1.
pub(crate) fn canonical_integer(n: Number) -> Number {
    match whole(&n) {
        Some(w) if !n.is_i64() && !n.is_u64() => i64::try_from(w)
            .map(Number::from)
            .or_else(|_| u64::try_from(w).map(Number::from))
            .unwrap_or(n),
        _ => n,
    }
}

/// Returns `true` if `n` is a whole multiple of `step`, by their decimal notation: 0.3 is a multiple of 0.1. A `step`
/// of zero or less has no multiples.
pub(crate) fn is_multiple(n: &Number, step: &Number) -> bool {
    let (n, step) = (Decimal::from_number(n), Decimal::from_number(step));
    if step.digits == 0 {
        return false;
    }
    if n.digits == 0 {
        return true;
    }
    let shift = n.exponent - step.exponent;
    if shift >= 0 {
        let tens = power_of_ten(shift.unsigned_abs(), step.digits);
        times(n.digits % step.digits, tens, step.digits) == 0
    } else {
        // Digits are below 10^22, so a step scaled past every u128 cannot divide the rest.
        10u128
            .checked_pow(shift.unsigned_abs())
            .and_then(|tens| step.digits.checked_mul(tens))
            .is_some_and(|step| n.digits % step == 0)
    }
}

/// Returns the number as ECMA-262 writes it (`Number::toString`), so that messages are the same in a browser: 1.0 is 1,
/// and 1e30 is 1e+30.
pub(crate) fn text(n: &Number) -> String {
    if n.is_i64() || n.is_u64() {
        return n.to_string();
    }
    let f = float(n);
    let scientific = format!("{:e}", f.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    let sign = if f < 0.0 { "-" } else { "" };
    // The position of the point, counted from the first digit.
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    let places = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    if (places..=21).contains(&point) {
        return format!("{sign}{digits}{}", zeros(point - places));
    }
    if (1..=21).contains(&point) {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
        return format!("{sign}{whole}.{fraction}");
    }
    if (-5..=0).contains(&point) {
        return format!("{sign}0.{}{digits}", zeros(-point));
    }
    let plus = if point > 0 { "+" } else { "" };
    format!("{sign}{mantissa}e{plus}{}", point - 1)
}

fn float(n: &Number) -> f64 {
    n.as_f64().unwrap_or(f64::NAN)
}

fn whole(n: &Number) -> Option<i128> {
    if let Some(i) = n.as_i64() {
        return Some(i.into());
    }
    if let Some(u) = n.as_u64() {
        return Some(u.into());
    }
    let f = float(n);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "guarded: |f| < 2^100 and whole"
    )]
    (f.fract() == 0.0 && f.abs() < 1e30).then_some(f as i128)
}

/// Compares `whole` with a float that is fractional or beyond 1e30.
fn against_float(whole: i128, f: f64) -> Ordering {
    if f.abs() >= 1e30 {
        return if f > 0.0 {
            Ordering::Less
        } else {
            Ordering::Greater
        };
    }
    #[expect(clippy::cast_possible_truncation, reason = "guarded: |f| < 1e30")]
    let floor = f.floor() as i128;
    if whole <= floor {
        Ordering::Less
    } else {
        Ordering::Greater
    }
}

/// `digits * 10^exponent`, sign dropped.
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    fn from_number(n: &Number) -> Self {
        // Below 10^22 a whole float with few digits is the number that was written; above, only its shortest decimal
        // is.
        if let Some(w) = whole(n).filter(|w| w.unsigned_abs() < 10u128.pow(22)) {
            return Decimal {
                digits: w.unsigned_abs(),
                exponent: 0,
            };
        }
        // The shortest decimal that reads back as this float: at most 17 digits and an exponent.
        let text = format!("{:e}", float(n));
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mut digits = 0u128;
        let mut places = 0i32;
        let mut after_point = false;
        for byte in mantissa.bytes() {
            match byte {
                b'0'..=b'9' => {
                    digits = digits * 10 + u128::from(byte - b'0');
                    places += i32::from(after_point);
                }
                b'.' => after_point = true,
                _ => {}
            }
        }
        Decimal {
            digits,
            exponent: exponent.parse::<i32>().unwrap_or(0) - places,
        }
    }
}

/// Returns `10^exponent mod modulus`; the modulus is below 2^64, so products stay below 2^128.
fn power_of_ten(mut exponent: u32, modulus: u128) -> u128 {
    let (mut result, mut base) = (1 % modulus, 10 % modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = times(result, base, modulus);
        }
        base = times(base, base, modulus);
        exponent >>= 1;
    }
    result
}

/// Returns `a * b` modulo `modulus`; both are below it, and it is below 2^127.
fn times(a: u128, mut b: u128, modulus: u128) -> u128 {
    if let Some(product) = a.checked_mul(b) {
        return product % modulus;
    }
    let (mut result, mut a) = (0, a);
    while b > 0 {
        if b & 1 == 1 {
            result = (result + a) % modulus;
        }
        a = a * 2 % modulus;
        b >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn compares_without_rounding() {
        assert_eq!(
            compare(&n("9007199254740993"), &n("9007199254740992.0")),
            Ordering::Greater
        );
        assert_eq!(compare(&n("1"), &n("1.0")), Ordering::Equal);
        assert_eq!(compare(&n("1"), &n("1.5")), Ordering::Less);
        assert_eq!(compare(&n("-1"), &n("-1.5")), Ordering::Greater);
        assert_eq!(
            compare(&n("18446744073709551615"), &n("1e300")),
            Ordering::Less
        );
        assert_eq!(compare(&n("-1"), &n("-1e300")), Ordering::Greater);
        assert_eq!(compare(&n("0.5"), &n("0.25")), Ordering::Greater);
        assert_eq!(compare(&n("0.0"), &n("-0.0")), Ordering::Equal);
    }

    #[test]
    fn floats_are_read_to_the_last_digit() {
        assert_eq!(n("9007199254740993.0"), n("9007199254740992.0"));
        assert_eq!(n("122.416294033786585").to_string(), "122.41629403378658");
    }

    #[test]
    fn whole_numbers_may_be_written_as_floats() {
        assert!(is_integer(&n("1.0")) && is_integer(&n("1e300")) && !is_integer(&n("1.5")));
        assert_eq!(canonical_integer(n("1.0")), n("1"));
        assert_eq!(canonical_integer(n("1e300")), n("1e300"));
        assert_eq!(
            canonical_integer(n("18446744073709551615")),
            n("18446744073709551615")
        );
    }

    #[test]
    fn numbers_are_written_as_in_a_browser() {
        for (written, text) in [
            ("1.0", "1"),
            ("-1.50", "-1.5"),
            ("0.1", "0.1"),
            ("-0.0", "0"),
            ("1e30", "1e+30"),
            ("1.5e300", "1.5e+300"),
            ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("123456789012345680000.0", "123456789012345680000"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("1.25e-9", "1.25e-9"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9007199254740993", "-9007199254740993"),
        ] {
            assert_eq!(super::text(&n(written)), text, "{written}");
        }
    }

    #[test]
    fn multiples_are_decimal() {
        for (a, b, yes) in [
            ("0.3", "0.1", true),
            ("0.35", "0.1", false),
            ("19.99", "0.01", true),
            ("1e300", "7", false),
            ("7e300", "7", true),
            ("0", "5", true),
            ("3", "0.5", true),
            ("1", "1e300", false),
            ("-9", "3", true),
            ("5", "0", false),
            ("18446744073709551615", "5", true),
            ("18446744073709551616", "100", false),
            ("18446744073709551616", "18446744073709551616", true),
            ("1e300", "18446744073709551616", true),
            ("1e300", "30000000000000000000", false),
            ("1e21", "1e20", true),
            ("1e23", "10", true),
            ("1000000000000000.5", "0.3", true),
        ] {
            assert_eq!(is_multiple(&n(a), &n(b)), yes, "{a} of {b}");
        }
    }
}
