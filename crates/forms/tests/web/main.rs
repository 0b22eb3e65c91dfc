//! The web face, asked over HTTP and in a real Chromium.
//!
//! The tests in `faces` and `states` need `chromedriver` and a Chromium; where they are absent each says so and passes
//! nothing off as tested. Accessibility is checked with axe-core, installed by `npm ci` in `tests/web`.

mod attacks;

mod fixtures;
mod http;
