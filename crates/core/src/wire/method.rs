//! The method names that concern elicitation.

use super::spelling::is_nearly;

/// The server's question (pushed era), and the method of an input request (rounds era).
pub const CREATE: &str = "elicitation/create";
/// The notice that the visit of a url question is done (2025-11-25 only).
pub const COMPLETE: &str = "notifications/elicitation/complete";
/// The withdrawal of a request.
pub const CANCELLED: &str = "notifications/cancelled";
/// The status of a task (tasks extension).
pub const TASK_STATUS: &str = "notifications/tasks";
/// The progress of a request.
pub const PROGRESS: &str = "notifications/progress";
/// The start of the pushed era.
pub const INITIALIZE: &str = "initialize";
/// The notice that the client is ready (pushed era).
pub const INITIALIZED: &str = "notifications/initialized";
/// The request for the revisions of a rounds-era server.
pub const DISCOVER: &str = "server/discover";

/// Returns the method as read by a peer that ignores letter case and surrounding spaces.
pub fn folded(method: &str) -> String {
    let method = method
        .trim()
        .replace('\u{17f}', "s")
        .replace('\u{212a}', "k");
    method.to_ascii_lowercase()
}

/// Returns `true` if this method contains the letters of [`CREATE`] in any case and is another method, which a lenient
/// reader may take for it.
pub fn is_like_create(method: &str) -> bool {
    is_nearly(method, &[CREATE])
}

/// Returns `true` for the method of a notification: no other is sent without an id.
pub fn is_notification(method: &str) -> bool {
    method.starts_with("notifications/")
}

/// Requests of the pushed era that 2026-07-28 removed (2026-07-28, changelog).
pub const GONE_IN_ROUNDS: [&str; 5] = [
    INITIALIZE,
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// The client requests that may be answered with `input_required` (2026-07-28, MRTR, supported requests).
pub const MAY_ASK: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];
