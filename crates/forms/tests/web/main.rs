//! The web frontend, over HTTP and in a real Chromium.
//!
//! The tests in `endings`, `filling` and `states` need `chromedriver` and a Chromium; where they are absent each reports
//! that it was skipped and tests nothing, unless `MCP_ELICIT_MUST_BROWSE` is set, with which it fails. Accessibility is
//! checked with axe-core, installed through npm on the first run.

mod acts;
mod attacks;
mod browser;
mod endings;
mod filling;
mod fixtures;
mod http;
mod states;
