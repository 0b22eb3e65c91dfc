//! What the tests of the workspace share. Not published.
//!
//! It decides nothing about elicitation: it brings real programs to our tests and takes them away again. It never stands
//! in for a part that can really run.
//!
//! - [`peers`]: real MCP servers and clients in TypeScript and Python

pub mod peers;
