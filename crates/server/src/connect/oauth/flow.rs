//! The state that the browser carries to a provider and back: a sealed cookie of this one flow.

use std::time::Duration;

use http::HeaderValue;
use http::request::Parts;
use serde::{Deserialize, Serialize};

use super::super::link::LinkToken;
use super::super::{ConnectParts, cookie};
use crate::seal::{self, AssociatedData, SealError};

/// The purpose of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FlowPurpose {
    /// To grant this server access to an account.
    #[serde(rename = "g")]
    Grant,
    /// To identify the visitor.
    #[serde(rename = "s")]
    SignIn,
}

/// One flow. The `state` in the URL is the name of the cookie, which no other browser has.
#[derive(Serialize, Deserialize)]
pub(super) struct FlowState {
    #[serde(rename = "e")]
    pub(super) purpose: FlowPurpose,
    #[serde(rename = "s")]
    pub(super) state: String,
    /// The PKCE code verifier.
    #[serde(rename = "v")]
    pub(super) verifier: String,
    #[serde(rename = "n")]
    pub(super) nonce: String,
    #[serde(rename = "t")]
    pub(super) ticket: LinkToken,
}

impl FlowState {
    /// Returns the cookie to set when the browser leaves for the provider.
    pub(super) fn set_cookie(&self, inner: &ConnectParts) -> Result<HeaderValue, SealError> {
        let sealed = seal::seal_json(&inner.keys, &bound(inner), self)?;
        let left = self.ticket.until_ms.saturating_sub(inner.now_ms());
        cookie::set(
            &inner.base,
            &name(inner, &self.state),
            &sealed,
            Duration::from_millis(left),
        )
        .ok_or(SealError::Malformed)
    }

    /// Returns the flow of a browser that comes back, if it left from here for this purpose.
    pub(super) fn back(
        inner: &ConnectParts,
        parts: &Parts,
        purpose: FlowPurpose,
        state: &str,
    ) -> Option<Self> {
        cookie::values(&parts.headers, &name(inner, state))
            .filter_map(|sealed| seal::open_json(&inner.keys, &bound(inner), sealed).ok())
            .find(|flow: &Self| flow.state == state && flow.purpose == purpose)
    }

    /// Returns the cookie header that deletes the flow in the browser.
    pub(super) fn forget(&self, inner: &ConnectParts) -> Option<HeaderValue> {
        cookie::set(&inner.base, &name(inner, &self.state), "", Duration::ZERO)
    }
}

/// Returns the headers that delete all flows of a browser that has too many unfinished ones: the size of headers is
/// limited.
pub(super) fn forget_many(inner: &ConnectParts, parts: &Parts) -> Vec<HeaderValue> {
    const SEVERAL: usize = 3;
    let prefix = name(inner, "");
    let begun: Vec<&str> = cookie::names(&parts.headers, &prefix).collect();
    if begun.len() < SEVERAL {
        return Vec::new();
    }
    let forget = |name| cookie::set(&inner.base, name, "", Duration::ZERO);
    begun.into_iter().filter_map(forget).collect()
}

fn name(inner: &ConnectParts, state: &str) -> String {
    cookie::name_at(&inner.base, &format!("trip-{state}"))
}

/// Binds flows to their kind and server: a flow is not a link, a session or a call's state.
fn bound(inner: &ConnectParts) -> AssociatedData {
    AssociatedData::outside_calls(&inner.base, "connect/trip")
}
