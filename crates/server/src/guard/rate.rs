//! The limit on the questions that one principal may be asked in a minute.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mcp_elicit_core::rate::RateWindow;

/// Counts questions per principal over the last minute.
pub(crate) struct Rates {
    limit: usize,
    /// By principal; times in milliseconds.
    asked: Mutex<HashMap<String, RateWindow<u64>>>,
}

impl fmt::Debug for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rates")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Rates {
    pub(crate) fn per_minute(limit: u32) -> Self {
        Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            asked: Mutex::default(),
        }
    }

    /// Counts one more question for `principal`; if the limit is reached, returns the time to wait.
    pub(crate) fn ask(&self, principal: &str, now_ms: u64) -> Result<(), Duration> {
        let since = |at: u64| Duration::from_millis(now_ms.saturating_sub(at));
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() >= 1024 && asked.len().is_power_of_two() {
            asked.retain(|_, window| !window.is_idle(since));
        }
        let window = asked.entry(principal.to_owned()).or_default();
        window.admit(self.limit, now_ms, since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_principal_has_its_own_minute() {
        let rates = Rates::per_minute(2);
        assert_eq!(rates.ask("ada", 0), Ok(()));
        assert_eq!(rates.ask("ada", 1_000), Ok(()));
        assert_eq!(rates.ask("ada", 2_000), Err(Duration::from_secs(58)));
        assert_eq!(rates.ask("bob", 2_000), Ok(()));
        assert_eq!(rates.ask("ada", 60_000), Ok(()));
        assert_eq!(rates.ask("ada", 60_500), Err(Duration::from_millis(500)));
    }

    #[test]
    fn a_limit_of_none_is_never_free() {
        assert_eq!(
            Rates::per_minute(0).ask("ada", 5),
            Err(Duration::from_secs(60))
        );
    }
}
