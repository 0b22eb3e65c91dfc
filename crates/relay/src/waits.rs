//! Calls that the client gave up for lack of time: they wait for being made again, and the next are handed back sooner.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::calls::Call;
use super::{CallKey, Relay, Timer, Timestamp};

/// The number of clients that are remembered.
const REMEMBERED: usize = 256;
/// A call is handed back in this part of the time that its client was seen to wait.
const PART: f64 = 0.75;

/// The times that clients were seen to wait for a call, by their own names: shared by all relays of one server.
#[derive(Clone, Debug, Default)]
pub struct ClientWaits(Arc<Mutex<BTreeMap<String, Duration>>>);

impl ClientWaits {
    fn learn(&self, client: String, waited: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get_mut(&client) {
            *known = waited.min(*known);
        } else if all.len() < REMEMBERED {
            all.insert(client, waited);
        }
    }

    fn of(&self, client: &str) -> Option<Duration> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(client).copied()
    }
}

/// Returns whether the reason of a cancellation says that the client's time was up, as the SDKs write it: "timed out after 5s",
/// "McpError: MCP error -32001: Request timed out", "request timeout".
pub(super) fn is_timeout(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    reason.contains("timed out") || reason.contains("timeout")
}

impl Relay {
    /// Returns how long a call is held for a person: less than the client was seen to wait.
    pub(super) fn hold_time(&self) -> Duration {
        let client = self.client.info().unwrap_or_default();
        let waits = self.settings.client_waits.of(&client);
        let waits = waits.map(|waits| waits.mul_f64(PART));
        waits.map_or(self.settings.hold, |waits| waits.min(self.settings.hold))
    }

    /// The client's time for a call was up. Where the call waits for a person, it waits on, for being made again; `false`
    /// where it does not.
    pub(super) fn client_timed_out(&mut self, now: Timestamp, key: CallKey) -> bool {
        let Some(call) = self.calls.get(key).filter(|call| waits_for_person(call)) else {
            return false;
        };
        let (waited, queued) = (now.since(call.came_at), call.is_queued());
        let client = self.client.info().unwrap_or_default();
        self.settings.client_waits.learn(client, waited);
        if queued {
            // The server knows nothing of it, so nothing else ends it.
            self.at(now.after(self.settings.patience), Timer::Forget(key));
        }
        self.park(key);
        true
    }
}

fn waits_for_person(call: &Call) -> bool {
    call.door.is_some()
        && (!call.questions.is_empty() || !call.maybe.is_empty() || call.is_queued())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_sdks_for_their_time_out_are_known() {
        for reason in [
            "timed out after 5.0s",
            "McpError: MCP error -32001: Request timed out",
            "request timeout",
        ] {
            assert!(is_timeout(reason), "{reason}");
        }
        for reason in [
            "",
            "AbortError: This operation was aborted",
            "caller cancelled",
        ] {
            assert!(!is_timeout(reason), "{reason}");
        }
    }
}
