//! Parts that the tests of the workspace share. Not published.
//!
//! It decides nothing about elicitation: it brings real programs to our tests and takes them away again. It never
//! stands in for a part that can really run; `issuer` does what no real one would.
//!
//! - `chromium`: a real browser (feature `chromium`)
//! - `issuer`: an issuer of tokens that does what a test says (feature `issuer`)
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
#[cfg(all(feature = "pty", unix))]
pub mod pty;
pub mod spec;
pub mod transcript;
