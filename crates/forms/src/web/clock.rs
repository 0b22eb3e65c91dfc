//! The only code of the web frontend that reads clocks, and the wording of times.

use std::time::{Duration, SystemTime};

/// The first second after the year 9999, since 1970: HTTP has no date for it (RFC 9110, 5.6.7), and the library that writes
/// the `Date` of responses panics.
const AFTER_LAST_DATE: u64 = 253_402_300_800;

/// Returns the system's time.
#[expect(
    clippy::disallowed_methods,
    reason = "the web frontend is a shell; tests hand in their own clock"
)]
pub(super) fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns `true` for a time that the `Date` of a response cannot name.
pub(super) fn is_beyond_dates(now: SystemTime) -> bool {
    now.duration_since(SystemTime::UNIX_EPOCH)
        .is_ok_and(|since| since.as_secs() >= AFTER_LAST_DATE)
}

/// Returns the time between `then` and `now` in words: `just now`, `4 min ago`, `3 h ago`, `2 days ago`.
pub(super) fn ago(then: SystemTime, now: SystemTime) -> String {
    let gone = now.duration_since(then).unwrap_or(Duration::ZERO).as_secs();
    match gone {
        0..45 => "just now".to_owned(),
        45..5_400 => format!("{} min ago", (gone + 30) / 60),
        5_400..172_800 => format!("{} h ago", (gone + 1_800) / 3_600),
        _ => format!("{} days ago", gone / 86_400),
    }
}

/// A time, for people and for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// The time in RFC 3339 format, in UTC.
    pub(super) iso: String,
    /// The time with its zone, such as `22 Nov 2026, 10:00 UTC`. The page's script converts it to the reader's zone.
    pub(super) words: String,
}

/// Returns a time; `None` if it is outside the calendar.
pub(super) fn moment(at: SystemTime) -> Option<Moment> {
    let at = jiff::Timestamp::try_from(at).ok()?;
    Some(Moment {
        iso: at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        words: at.strftime("%-d %b %Y, %H:%M UTC").to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ago_in_words() {
        let then = SystemTime::UNIX_EPOCH;
        let cases = [
            (0, "just now"),
            (60, "1 min ago"),
            (3_600, "60 min ago"),
            (7_200, "2 h ago"),
            (200_000, "2 days ago"),
        ];
        for (seconds, words) in cases {
            assert_eq!(ago(then, then + Duration::from_secs(seconds)), words);
        }
        assert_eq!(ago(then + Duration::from_secs(9), then), "just now");
    }

    #[test]
    fn a_response_has_a_date_up_to_the_year_9999() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(!is_beyond_dates(at(0)));
        assert!(!is_beyond_dates(at(AFTER_LAST_DATE - 1)));
        assert!(is_beyond_dates(at(AFTER_LAST_DATE)));
        assert!(is_beyond_dates(at(400_000_000_000)));
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert!(!is_beyond_dates(before));
    }

    #[test]
    fn moments_have_a_zone() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_341_605);
        let moment = moment(at).unwrap();
        assert_eq!(moment.iso, "2026-11-22T10:00:05Z");
        assert_eq!(moment.words, "22 Nov 2026, 10:00 UTC");
    }
}
