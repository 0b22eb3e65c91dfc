//! The whole sign-in at a third party: the project's client calls a tool, gets a link, and a person follows it to a
//! real OpenID provider (npm `oidc-provider`) and back, in a real Chromium or step by step over HTTP.
//!
//! Without node, the tests report a skip and test nothing; so do those with a browser, without a browser.

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
