//! Whole conversations between a wrapped server and rmcp's client, over pipes and HTTP, on every revision.

mod eras;
mod harness;
mod rounds;
