//! The remaining time in words.

use std::time::Duration;

/// Returns the remaining time as `2 h 05 min`, `4:09` or `0:37`; whole seconds, rounded up so that `0:00` means it is
/// over.
pub fn left(remaining: Duration) -> String {
    let seconds = remaining.as_secs() + u64::from(remaining.subsec_nanos() > 0);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match hours {
        0 => format!("{minutes}:{:02}", seconds % 60),
        1..48 => format!("{hours} h {minutes:02} min"),
        _ => format!("{} days", hours / 24),
    }
}

/// Returns `true` if so little time is left that a frontend should draw attention to it.
pub fn is_short(remaining: Duration) -> bool {
    remaining <= Duration::from_secs(30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_fit_the_size() {
        assert_eq!(left(Duration::from_millis(36_200)), "0:37");
        assert_eq!(left(Duration::from_secs(249)), "4:09");
        assert_eq!(left(Duration::from_secs(125 * 60)), "2 h 05 min");
        assert_eq!(left(Duration::from_secs(72 * 60 * 60)), "3 days");
        assert_eq!(left(Duration::ZERO), "0:00");
    }
}
