//! Parts that the tests of the workspace share. Not published.
//!
//! It decides nothing about elicitation: it brings real programs to our tests and takes them away again. It never
//! stands in for a part that can really run.
//!
//! - `chromium`: a real browser (feature `chromium`)
//! - [`peers`]: real MCP servers and clients in TypeScript and Python
//! - `pty`: a real pseudo-terminal (feature `pty`)
//! - [`spec`]: the official schemas and examples of each revision
//! - [`transcript`]: wire conversations as text, replayed by every suite

#[cfg(feature = "chromium")]
pub mod chromium;
pub mod peers;
#[cfg(all(feature = "pty", unix))]
pub mod pty;
pub mod spec;
pub mod transcript;
