//! The only code of the web frontend that reads clocks, and the wording of times.

use std::time::{Duration, SystemTime};

/// The system's time.
#[expect(
    clippy::disallowed_methods,
    reason = "the web frontend is a shell; tests hand in their own clock"
)]
pub(super) fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns how long ago `then` was at `now`: `just now`, `4 min ago`, `3 h ago`, `2 days ago`.
pub(super) fn ago(then: SystemTime, now: SystemTime) -> String {
    let gone = now.duration_since(then).unwrap_or(Duration::ZERO).as_secs();
    match gone {
        0..45 => "just now".to_owned(),
        45..5_400 => format!("{} min ago", (gone + 30) / 60),
        5_400..172_800 => format!("{} h ago", (gone + 1_800) / 3_600),
        _ => format!("{} days ago", gone / 86_400),
    }
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
}
