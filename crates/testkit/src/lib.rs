//! What the tests of the workspace share. Not published.
//!
//! It decides nothing about elicitation: it brings real programs to our tests and takes them away again. It never stands
//! in for a part that can really run.
//!
//! - [`peers`]: real MCP servers and clients in TypeScript and Python
//! - [`spec`]: the official schemas and examples of each revision
//! - [`transcript`]: wire conversations as text, replayed by every suite

pub mod peers;
pub mod spec;
pub mod transcript;
