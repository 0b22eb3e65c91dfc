//! Parts that the tests of the workspace share. Not published.
//!
//! This crate decides nothing about elicitation: it starts real programs for the tests and ends them. It never replaces
//! a part that can really run; only `issuer` does things that no real program would do.
//!
//! - `chromium`: a real browser (feature `chromium`)
//! - `issuer`: an issuer of tokens that a test controls (feature `issuer`)
//! - [`peers`]: real MCP servers and clients in TypeScript and Python
//! - `pty`: a real pseudo-terminal (feature `pty`)
//! - [`spec`]: the official schemas and examples of each revision
//! - [`transcript`]: wire conversations as text, replayed by every suite

#[cfg(feature = "chromium")]
pub mod chromium;
#[cfg(feature = "issuer")]
#[expect(clippy::unwrap_used, reason = "a failure here is the test's")]
pub mod issuer;
pub mod peers;
#[cfg(all(unix, feature = "postgres"))]
pub mod postgres;
#[cfg(all(feature = "pty", unix))]
pub mod pty;
pub mod spec;
pub mod transcript;
