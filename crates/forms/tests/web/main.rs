//! The web frontend, over HTTP and in a real Chromium.
//!
//! The tests in `endings`, `filling` and `states` need `chromedriver` and a Chromium. Without them, each test reports a
//! skip, or fails if `MCP_ELICIT_MUST_BROWSE` is set. Accessibility is checked with axe-core, installed through npm on
//! the first run.

mod acts;
mod attacks;
mod browser;
mod decision;
mod endings;
mod filling;
mod fixtures;
mod http;
mod states;
