//! The only code of the gateway that reads a clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_elicit_core::lifecycle::Timestamp;

/// Returns the current time.
#[expect(
    clippy::disallowed_methods,
    reason = "the shell reads the clock for everything below it"
)]
pub fn now() -> Timestamp {
    Timestamp::from_epoch(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

/// Converts a timestamp to the system's time.
pub fn system_time(moment: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(moment.as_millis())
}
