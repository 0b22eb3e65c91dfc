//! The method names that concern elicitation, as they are written on the wire.

use super::spelling::is_nearly;

/// A server asks (pushed era), and the method of an input request (rounds era).
pub const CREATE: &str = "elicitation/create";
/// The visit that a url question started is done (2025-11-25 only).
pub const COMPLETE: &str = "notifications/elicitation/complete";
/// A request is withdrawn.
pub const CANCELLED: &str = "notifications/cancelled";
/// The status of a task (tasks extension).
pub const TASK_STATUS: &str = "notifications/tasks";
/// A request goes on.
pub const PROGRESS: &str = "notifications/progress";
/// Opens the pushed era.
pub const INITIALIZE: &str = "initialize";
/// The client is ready (pushed era).
pub const INITIALIZED: &str = "notifications/initialized";
/// Asks a server of the rounds era for its revisions.
pub const DISCOVER: &str = "server/discover";

/// Returns the method as a reader takes it that minds neither letter case nor the spaces around it.
pub fn folded(method: &str) -> String {
    let method = method
        .trim()
        .replace('\u{17f}', "s")
        .replace('\u{212a}', "k");
    method.to_ascii_lowercase()
}

/// Returns `true` where this method has the letters of [`CREATE`] in any case, whatever else is in it, and is another: a reader that
/// is not strict may take it for that.
pub fn is_like_create(method: &str) -> bool {
    is_nearly(method, &[CREATE])
}

/// Returns `true` for the method of a notification: no other is sent without an id.
pub fn is_notification(method: &str) -> bool {
    method.starts_with("notifications/")
}

/// Requests of the pushed era that 2026-07-28 has no more (2026-07-28, changelog).
pub const GONE_IN_ROUNDS: [&str; 5] = [
    INITIALIZE,
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// The client requests that may be answered with `input_required` (2026-07-28, MRTR, supported requests).
pub const MAY_ASK: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];
