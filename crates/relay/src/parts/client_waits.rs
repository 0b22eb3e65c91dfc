//! The observed timeouts of clients: later calls are handed back before they pass.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::eviction::oldest_of_busiest;

/// The number of clients that are remembered; of the caller with the most, the least recently used one is forgotten.
const REMEMBERED: usize = 256;
/// A call is handed back after this part of its client's observed timeout.
const PART: f64 = 0.75;

/// The observed timeouts of clients, by their names without versions: shared by all relays of one server. A client
/// chooses its name, so those of one verified caller say nothing about another's.
#[derive(Clone, Debug, Default)]
pub struct ClientWaits {
    known: Arc<Mutex<KnownWaits>>,
    /// `true` if a shorter timeout was observed since the last check.
    changed: Arc<AtomicBool>,
    /// The verified caller whose clients these are; `None` for callers that are not told apart.
    caller: Option<String>,
}

/// A client: its own name, and the verified caller that uses it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NamedClient {
    caller: Option<String>,
    name: String,
}

/// The observed timeouts, and when each was used last.
#[derive(Debug, Default)]
struct KnownWaits {
    by_client: BTreeMap<NamedClient, KnownWait>,
    /// A number that increases with each use.
    uses: u64,
}

/// The observed timeout of one client.
#[derive(Debug)]
struct KnownWait {
    waited: Duration,
    /// The number of its last use.
    used: u64,
}

/// A client, by its own name and its verified caller, and its observed timeout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedWait {
    client: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    caller: Option<String>,
    millis: u64,
}

impl KnownWaits {
    /// Records a timeout; returns `true` if it is new.
    fn note(&mut self, client: NamedClient, waited: Duration) -> bool {
        self.uses += 1;
        let used = self.uses;
        if let Some(known) = self.by_client.get_mut(&client) {
            let shorter = waited < known.waited;
            known.waited = waited.min(known.waited);
            known.used = used;
            return shorter;
        }
        if self.by_client.len() >= REMEMBERED {
            let all = self.by_client.iter();
            let all = all.map(|(client, known)| (client, &client.caller, known.used));
            if let Some(oldest) = oldest_of_busiest(all) {
                self.by_client.remove(&oldest);
            }
        }
        self.by_client.insert(client, KnownWait { waited, used });
        true
    }

    /// Returns a client's observed timeout, and marks it as used.
    fn of(&mut self, client: &NamedClient) -> Option<Duration> {
        let known = self.by_client.get_mut(client)?;
        self.uses += 1;
        known.used = self.uses;
        Some(known.waited)
    }
}

impl ClientWaits {
    fn all(&self) -> MutexGuard<'_, KnownWaits> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns those of a verified caller's clients.
    #[must_use]
    pub fn of_caller(&self, caller: String) -> Self {
        Self {
            caller: Some(caller),
            ..self.clone()
        }
    }

    fn client(&self, name: &str) -> NamedClient {
        NamedClient {
            caller: self.caller.clone(),
            name: name.to_owned(),
        }
    }

    /// Records that a client gave up after this time.
    pub(crate) fn learn(&self, name: &str, waited: Duration) {
        if self.all().note(self.client(name), waited) {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the time after which a call is handed back to this client, which is shorter than its observed timeout.
    /// Before any is observed, `expected` is used.
    pub(crate) fn before_end(&self, name: &str, expected: Option<Duration>) -> Option<Duration> {
        let waited = self.all().of(&self.client(name)).or(expected);
        waited.map(|waited| waited.mul_f64(PART))
    }

    /// Returns `true` if a shorter timeout was observed since the last check.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// Returns all timeouts of all callers' clients, the least recently used first.
    pub(crate) fn known(&self) -> Vec<LearnedWait> {
        let all = self.all();
        let mut known: Vec<_> = all.by_client.iter().collect();
        known.sort_by_key(|(_, known)| known.used);
        let wait = |(client, known): (&NamedClient, &KnownWait)| LearnedWait {
            client: client.name.clone(),
            caller: client.caller.clone(),
            millis: u64::try_from(known.waited.as_millis()).unwrap_or(u64::MAX),
        };
        known.into_iter().map(wait).collect()
    }

    /// Adds those observed by another process, or an earlier one. Earlier versions stored the whole `clientInfo` in
    /// place of the name.
    pub(crate) fn add(&self, learned: &[LearnedWait]) {
        for wait in learned {
            let name = name_in(&wait.client).unwrap_or_else(|| wait.client.clone());
            let caller = wait.caller.clone();
            let waited = Duration::from_millis(wait.millis);
            self.all().note(NamedClient { caller, name }, waited);
        }
    }
}

/// Returns the name in a `clientInfo` (JSON); `None` if the text is none.
fn name_in(info: &str) -> Option<String> {
    let info: serde_json::Value = serde_json::from_str(info).ok()?;
    Some(info.get("name")?.as_str()?.to_owned())
}

/// Returns `true` if the reason of a cancellation is a timeout, as the SDKs write it: "timed out after 5s", "McpError:
/// MCP error -32001: Request timed out", "request timeout".
pub(crate) fn is_timeout(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    reason.contains("timed out") || reason.contains("timeout")
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

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_least_recently_used_client_is_forgotten() {
        let waits = ClientWaits::default();
        for number in 0..REMEMBERED {
            waits.learn(&format!("c{number}"), secs(40));
        }
        // It is in use, so the next oldest goes.
        assert_eq!(waits.before_end("c0", None), Some(secs(30)));
        waits.learn("new", secs(8));
        assert_eq!(waits.before_end("c1", None), None);
        assert_eq!(waits.before_end("c0", None), Some(secs(30)));
        assert_eq!(waits.before_end("new", None), Some(secs(6)));
        assert_eq!(waits.known().len(), REMEMBERED);
        assert_eq!(waits.before_end("other", Some(secs(4))), Some(secs(3)));
        assert_eq!(waits.before_end("new", Some(secs(4))), Some(secs(6)));
    }

    #[test]
    fn no_caller_shortens_or_displaces_the_wait_of_another() {
        let waits = ClientWaits::default();
        let (alice, mallory) = (
            waits.of_caller("a".to_owned()),
            waits.of_caller("m".to_owned()),
        );
        alice.learn("agent", secs(40));
        mallory.learn("agent", secs(4));
        assert_eq!(alice.before_end("agent", None), Some(secs(30)));
        assert_eq!(mallory.before_end("agent", None), Some(secs(3)));
        assert_eq!(waits.before_end("agent", None), None);
        for number in 0..2 * REMEMBERED {
            mallory.learn(&format!("c{number}"), secs(4));
        }
        assert_eq!(alice.before_end("agent", None), Some(secs(30)));
        // Another process knows whose they are, too.
        let text = serde_json::to_string(&waits.known()).unwrap();
        let later = ClientWaits::default();
        later.add(&serde_json::from_str::<Vec<LearnedWait>>(&text).unwrap());
        let alice = later.of_caller("a".to_owned());
        assert_eq!(alice.before_end("agent", None), Some(secs(30)));
    }

    #[test]
    fn facts_of_an_older_version_are_kept_under_the_name_of_their_client() {
        let stored = r#"[{"client":"{\"name\":\"a\",\"version\":\"1\"}","millis":8000},
            {"client":"{\"name\":\"a\",\"version\":\"2\"}","millis":4000},{"client":"b","millis":2000}]"#;
        let learned: Vec<LearnedWait> = serde_json::from_str(stored).unwrap();
        let waits = ClientWaits::default();
        waits.add(&learned);
        assert_eq!(waits.before_end("a", None), Some(secs(3)));
        let names: Vec<_> = waits.known().into_iter().map(|wait| wait.client).collect();
        assert_eq!(names, ["b", "a"]);
        assert!(!waits.take_changed());
    }
}
