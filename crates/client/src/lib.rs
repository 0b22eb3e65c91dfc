//! Answers MCP elicitation: whatever a server asks, in either era, reaches a person who can answer, and only what that
//! person did goes back.
//!
//! This crate decides who is asked (routing, consent, limits, order), what may be sent (nothing that the form refuses),
//! and the error that a server gets when there is no answer (the revision's, never a decline). It never decides what a
//! form means or whether an answer is right (`mcp-elicit-core`), nor how a question looks (`mcp-elicit-forms`).
//!
//! # Modules
//!
//! - [`eliciting`]: the client handler over rmcp's; what it declares and receives
//! - [`dispatch`]: the one path that every question takes, with its queue, its limits and its observers
//! - [`responder`]: who asks the person: terminal, browser, script, program, webhook, several of them
//! - [`routing`]: which responder answers which server
//! - [`consent`]: what a person allows each server, as data
//! - [`question`], [`answer`]: what goes to a responder and what comes back
//! - [`connection`]: reaching a server, finding the era, limits, an end that leaves nothing behind
//! - [`call`]: a call and everything the server asks on the way: rounds, tasks, required visits
//! - [`audit`]: one record per event of a question, and counts
//! - `raw_params`: how a question's exact words pass through rmcp; `connection_state`: what one connection knows;
//!   [`tls`]: HTTP clients

pub mod answer;
pub mod audit;
pub mod call;
pub mod connection;
mod connection_state;
pub mod consent;
pub mod dispatch;
pub mod eliciting;
pub mod question;
mod raw_params;
pub mod responder;
pub mod routing;
#[cfg(feature = "http")]
pub mod tls;

/// The crates whose types are in this one's signatures: a host needs no version of them beside this one's.
#[cfg(any(feature = "terminal", feature = "browser"))]
pub use mcp_elicit_forms as forms;
pub use {mcp_elicit_core as core, rmcp};

/// The types of headers in [`ConnectOptions::headers`].
#[cfg(feature = "http")]
pub use ::http::{HeaderName, HeaderValue};
/// The type of [`CallOptions::stop`].
pub use tokio_util::sync::CancellationToken;

pub use answer::Answer;
pub use call::{CallError, CallOptions};
#[cfg(any(feature = "process", feature = "http"))]
pub use connection::Target;
pub use connection::{ConnectError, ConnectOptions, Connection};
pub use consent::Consent;
pub use dispatch::{ClientSettings, QuestionError, QuestionQueue};
pub use eliciting::ElicitingClient;
pub use question::Question;
pub use responder::{Responder, ResponderError};
pub use routing::Routing;
