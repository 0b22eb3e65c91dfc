//! Signing in elsewhere, whole: our client calls a tool, gets a link, and a person goes through it to a real OpenID
//! provider (npm `oidc-provider`) and back, in a real Chromium or step by step over HTTP.
//!
//! Without node the tests say so loudly and test nothing; so do those with a browser, without one.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not there"
)]

mod attacks;
mod browser;
mod example;
mod failures;
mod http_browser;
mod rig;
