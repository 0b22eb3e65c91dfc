//! RFC 3339 dates, exactly: libraries that read dates accept more than the RFC and reject its leap seconds.

/// Returns `true` for a `full-date` that exists.
pub(super) fn is_date(text: &[u8]) -> bool {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *text else {
        return false;
    };
    let (Some(century), Some(year), Some(month), Some(day)) =
        (two(y1, y2), two(y3, y4), two(m1, m2), two(d1, d2))
    else {
        return false;
    };
    let year = century * 100 + year;
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// Returns `true` for a `date-time`: the offset is required, and second 60 is allowed only at 23:59 UTC (RFC 3339
/// §5.7).
pub(super) fn is_date_time(text: &[u8]) -> bool {
    let Some((date, [b'T' | b't', time @ ..])) = text.split_at_checked(10) else {
        return false;
    };
    is_date(date) && is_time(time)
}

fn is_time(text: &[u8]) -> bool {
    let Some((&[h1, h2, b':', m1, m2, b':', s1, s2], mut rest)) = text.split_first_chunk::<8>()
    else {
        return false;
    };
    let (Some(hour), Some(minute), Some(second)) = (two(h1, h2), two(m1, m2), two(s1, s2)) else {
        return false;
    };
    if hour > 23 || minute > 59 || second > 60 {
        return false;
    }
    if let [b'.', fraction @ ..] = rest {
        let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return false;
        }
        rest = &fraction[digits..];
    }
    let Some(offset) = offset_minutes(rest) else {
        return false;
    };
    let utc = (i32::from(hour) * 60 + i32::from(minute) - offset).rem_euclid(24 * 60);
    second < 60 || utc == 23 * 60 + 59
}

fn offset_minutes(text: &[u8]) -> Option<i32> {
    match *text {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (two(h1, h2)?, two(m1, m2)?);
            let total = i32::from(hours) * 60 + i32::from(minutes);
            (hours <= 23 && minutes <= 59).then_some(if sign == b'-' { -total } else { total })
        }
        _ => None,
    }
}

fn two(tens: u8, ones: u8) -> Option<u16> {
    (tens.is_ascii_digit() && ones.is_ascii_digit())
        .then(|| u16::from(tens - b'0') * 10 + u16::from(ones - b'0'))
}
