//! The state that the browser carries to a provider and back: a sealed cookie of this one trip.

use std::time::Duration;

use http::HeaderValue;
use http::request::Parts;
use serde::{Deserialize, Serialize};

use super::super::link::LinkToken;
use super::super::{Inner, cookie};
use crate::seal::{self, AssociatedData, SealError};

/// The purpose of a trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FlowPurpose {
    /// To let this server into an account.
    #[serde(rename = "g")]
    Grant,
    /// To say who the visitor is.
    #[serde(rename = "s")]
    SignIn,
}

/// One trip. The `state` in the URL is the cookie's name: another browser does not have it.
#[derive(Serialize, Deserialize)]
pub(super) struct FlowState {
    #[serde(rename = "e")]
    pub(super) errand: FlowPurpose,
    #[serde(rename = "s")]
    pub(super) state: String,
    /// PKCE.
    #[serde(rename = "v")]
    pub(super) verifier: String,
    #[serde(rename = "n")]
    pub(super) nonce: String,
    #[serde(rename = "t")]
    pub(super) ticket: LinkToken,
}

impl FlowState {
    /// The cookie that the browser leaves with.
    pub(super) fn set_cookie(&self, inner: &Inner) -> Result<HeaderValue, SealError> {
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

    /// The trip that a browser comes back from, if it is one that left from here for `errand`.
    pub(super) fn back(
        inner: &Inner,
        parts: &Parts,
        errand: FlowPurpose,
        state: &str,
    ) -> Option<Self> {
        cookie::values(&parts.headers, &name(inner, state))
            .filter_map(|sealed| seal::open_json(&inner.keys, &bound(inner), sealed).ok())
            .find(|trip: &Self| trip.state == state && trip.errand == errand)
    }

    /// Returns what makes the browser forget the trip.
    pub(super) fn forget(&self, inner: &Inner) -> Option<HeaderValue> {
        cookie::set(&inner.base, &name(inner, &self.state), "", Duration::ZERO)
    }
}

/// Returns what makes a browser forget all its trips, when it has begun more than it will finish: headers have no endless room.
pub(super) fn forget_many(inner: &Inner, parts: &Parts) -> Vec<HeaderValue> {
    const SEVERAL: usize = 3;
    let prefix = name(inner, "");
    let begun: Vec<&str> = cookie::names(&parts.headers, &prefix).collect();
    if begun.len() < SEVERAL {
        return Vec::new();
    }
    let forget = |name| cookie::set(&inner.base, name, "", Duration::ZERO);
    begun.into_iter().filter_map(forget).collect()
}

fn name(inner: &Inner, state: &str) -> String {
    cookie::name_at(&inner.base, &format!("trip-{state}"))
}

/// A trip is no link, no session and no state of a call, and one server's is not another's.
fn bound(inner: &Inner) -> AssociatedData {
    AssociatedData::outside_calls(&inner.base, "connect/trip")
}
