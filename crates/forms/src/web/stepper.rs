//! Exact decimal steps, for the buttons of a number.

/// The direction of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// More.
    Up,
    /// Less.
    Down,
}

/// The most decimal places of a number that can be stepped.
const PLACES: usize = 15;

/// A decimal as a whole number of units, each a tenth to the power of `places`.
#[derive(Clone, Copy)]
struct ScaledDecimal {
    units: i128,
    places: usize,
}

impl ScaledDecimal {
    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = whole.trim_start_matches(['+', '-']);
        let plain = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if digits.len() + fraction.len() == 0
            || !plain(digits)
            || !plain(fraction)
            || fraction.len() > PLACES
        {
            return None;
        }
        let units: i128 = format!("{digits}{fraction}").parse().ok()?;
        let units = if whole.starts_with('-') {
            -units
        } else {
            units
        };
        Some(Self {
            units,
            places: fraction.len(),
        })
    }

    fn at(self, places: usize) -> Option<i128> {
        let factor = 10_i128.checked_pow(u32::try_from(places.checked_sub(self.places)?).ok()?)?;
        self.units.checked_mul(factor)
    }
}

/// Returns `value` plus or minus one `step`, between `least` and `most`; an empty value starts at the least, or at
/// zero. `None` if one of them is not a plain decimal.
pub(super) fn stepped(
    value: &str,
    step: &str,
    least: &str,
    most: &str,
    direction: Direction,
) -> Option<String> {
    let empty = value.trim().is_empty();
    let start = match (empty, least.is_empty()) {
        (false, _) => value,
        (true, false) => least,
        (true, true) => "0",
    };
    let now = ScaledDecimal::read(start)?;
    let by = ScaledDecimal::read(if step.is_empty() { "1" } else { step })?;
    let bound = |text: &str| {
        if text.is_empty() {
            None
        } else {
            ScaledDecimal::read(text)
        }
    };
    let (least, most) = (bound(least), bound(most));
    let places = [Some(now), Some(by), least, most]
        .into_iter()
        .flatten()
        .map(|d| d.places)
        .max()?;
    let mut next = now.at(places)?;
    if !empty {
        next = match direction {
            Direction::Up => next.checked_add(by.at(places)?)?,
            Direction::Down => next.checked_sub(by.at(places)?)?,
        };
    }
    if let Some(least) = least {
        next = next.max(least.at(places)?);
    }
    if let Some(most) = most {
        next = next.min(most.at(places)?);
    }
    Some(written(next, places))
}

fn written(units: i128, places: usize) -> String {
    let digits = format!("{:0>width$}", units.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let fraction = fraction.trim_end_matches('0');
    let sign = if units < 0 { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_exact_and_bounded() {
        let cases = [
            (("3", "1", "1", "20", Direction::Up), Some("4")),
            (("20", "1", "1", "20", Direction::Up), Some("20")),
            (("1", "1", "1", "20", Direction::Down), Some("1")),
            (("", "1", "5", "", Direction::Up), Some("5")),
            (("", "", "", "", Direction::Down), Some("0")),
            (("0.1", "0.2", "", "", Direction::Up), Some("0.3")),
            (("0", "0.5", "", "", Direction::Down), Some("-0.5")),
            (("1.50", "0.5", "", "", Direction::Up), Some("2")),
            (
                ("12345678901234567890", "1", "", "", Direction::Up),
                Some("12345678901234567891"),
            ),
            (("abc", "1", "", "", Direction::Up), None),
            (("1e5", "1", "", "", Direction::Up), None),
            (("", "1", "1e2", "", Direction::Up), None),
        ];
        for ((value, step, least, most, direction), expected) in cases {
            assert_eq!(
                stepped(value, step, least, most, direction).as_deref(),
                expected,
                "{value} {step}"
            );
        }
    }
}
