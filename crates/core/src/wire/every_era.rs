//! The declaration of a server that its tools ask in every era.

use serde_json::Value;

/// The experimental capability of a server whose tools ask in results of 2026-07-28 as well as in sessions. Servers with
/// this project's `server` crate declare it; any other server may. A server that speaks both eras without it is addressed
/// in a session.
pub const ASKS_IN_EVERY_ERA: &str = "mcp-elicit/asks-in-every-era";

/// Returns `true` if the server with this `InitializeResult` (JSON) declares that its tools ask in every era.
///
/// ```
/// use mcp_elicit_core::wire::asks_in_every_era;
///
/// let declared = r#"{"capabilities":{"experimental":{"mcp-elicit/asks-in-every-era":{}}}}"#;
/// assert!(asks_in_every_era(declared));
/// assert!(!asks_in_every_era(r#"{"capabilities":{},"instructions":"mcp-elicit/asks-in-every-era"}"#));
/// ```
pub fn asks_in_every_era(result: &str) -> bool {
    // Most results need not be read.
    if !result.contains(ASKS_IN_EVERY_ERA) {
        return false;
    }
    let result: Value = serde_json::from_str(result).unwrap_or_default();
    result["capabilities"]["experimental"][ASKS_IN_EVERY_ERA].is_object()
}
