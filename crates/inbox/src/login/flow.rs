//! Logins that have begun at a provider. Each is sealed in a cookie of its browser, so that any number of others cannot
//! displace it. The record stores those that have ended: each counts once.

use std::io;

use data_encoding::BASE64URL_NOPAD;
use mcp_elicit_record::IdentityKey;
use mcp_elicit_record::encryption::Encryption;
use serde::{Deserialize, Serialize};

/// The time that a person has at the provider, in milliseconds.
pub(super) const FLOW_LIFE: u64 = 10 * 60 * 1000;
/// A login that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Flow {
    #[serde(rename = "n")]
    pub(super) nonce: String,
    #[serde(rename = "v")]
    pub(super) verifier: String,
    #[serde(rename = "x")]
    pub(super) next: String,
    #[serde(rename = "b")]
    pub(super) began: u64,
    /// `true` if the provider was asked for a fresh login.
    #[serde(rename = "f")]
    pub(super) is_fresh: bool,
}

/// The key of the flows.
pub(super) struct Flows {
    encryption: Encryption,
}

impl Flows {
    /// Creates flows with a key of the record's identity: a login that has begun goes on after a restart of the gateway.
    pub(super) fn new(identity: &IdentityKey) -> Self {
        Self {
            encryption: Encryption::with_key(&identity.derive("login flows")),
        }
    }

    /// Returns the value of the cookie of a flow, which opens for this state only.
    pub(super) fn seal(&self, state: &str, flow: &Flow) -> io::Result<String> {
        let text = serde_json::to_string(flow).map_err(io::Error::other)?;
        let sealed = self.encryption.seal(state, &text)?;
        Ok(BASE64URL_NOPAD.encode(&sealed))
    }

    /// Opens the flow of this state with the cookie of the browser that began it.
    pub(super) fn open(&self, state: &str, cookie: Option<&str>, now: u64) -> Option<Flow> {
        let sealed = BASE64URL_NOPAD.decode(cookie?.as_bytes()).ok()?;
        let text = self.encryption.open(state, &sealed).ok()?;
        let flow: Flow = serde_json::from_str(&text).ok()?;
        (now.saturating_sub(flow.began) < FLOW_LIFE).then_some(flow)
    }
}

impl Flow {
    /// Returns the time of its end, in milliseconds since 1970.
    pub(super) fn ends(&self) -> u64 {
        self.began.saturating_add(FLOW_LIFE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(began: u64) -> Flow {
        Flow {
            nonce: "n".to_owned(),
            verifier: "v".to_owned(),
            next: "/q/1".to_owned(),
            began,
            is_fresh: false,
        }
    }

    fn made() -> Flows {
        Flows::new(&IdentityKey::random().unwrap())
    }

    #[test]
    fn a_login_that_has_begun_goes_on_after_a_restart() {
        let identity = IdentityKey::random().unwrap();
        let cookie = Flows::new(&identity).seal("one", &flow(5)).unwrap();
        let restarted = Flows::new(&identity);
        assert_eq!(restarted.open("one", Some(&cookie), 6), Some(flow(5)));
    }

    #[test]
    fn a_flow_is_of_its_browser_its_state_and_its_time() {
        let flows = made();
        let cookie = flows.seal("one", &flow(5)).unwrap();
        assert!(!cookie.contains("/q/1"));
        assert_eq!(flows.open("two", Some(&cookie), 6), None);
        assert_eq!(flows.open("one", None, 6), None);
        assert_eq!(flows.open("one", Some("AAAA"), 6), None);
        assert_eq!(flows.open("one", Some(&cookie), 5 + FLOW_LIFE), None);
        let other = made();
        assert_eq!(other.open("one", Some(&cookie), 6), None);
        assert_eq!(flows.open("one", Some(&cookie), 6), Some(flow(5)));
    }
}
