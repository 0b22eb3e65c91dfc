//! Whole conversations between a wrapped server and rmcp's client, over pipes and HTTP, on every revision.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not there"
)]

mod asker;
mod attacks;
mod audit;
mod author;
mod bridge;
mod connect;
mod eras;
mod harness;
mod http;
mod panics;
mod replayed;
mod rounds;
mod simulation;
mod stores;
mod tasks;
mod unanswered;
