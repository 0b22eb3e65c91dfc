//! Answers MCP elicitation: every question of a server, in either era, reaches a person who can answer it, and only
//! that person's action goes back.
//!
//! This crate decides who is asked (routing, consent, limits, order), what may be sent (only content that passes the
//! form's check), and the error that a server gets when there is no answer (the revision's, never a decline). The
//! meaning of forms and the check of answers are in `mcp-elicit-core`, the presentation of questions in
//! `mcp-elicit-forms`.
//!
//! # Modules
//!
//! - [`eliciting`]: the client handler for rmcp
//! - [`dispatch`]: the pipeline of every question, with its queue, limits and observers
//! - [`responder`]: the ways to ask the person: terminal, browser, script, program, webhook, several of them
//! - [`routing`]: the responder of each server
//! - [`consent`]: a person's permissions for each server, as data
//! - [`question`], [`answer`]: the input and output of responders
//! - [`connection`]: starting or reaching a server, detecting the era, limits, clean shutdown
//! - [`call`]: a call, and the questions of the server during it: rounds, tasks, required visits
//! - `sign_in`: a person's sign-in with OAuth at a server over HTTP, and its tokens (feature `sign-in`)
//! - [`audit`]: one record per event of a question, and counts
//! - `raw_params`: the exact parameters of questions, passed through rmcp; `connection_state`: the state of one
//!   connection; [`tls`]: HTTP clients

pub mod answer;
pub mod audit;
pub mod call;
pub mod connection;
mod connection_state;
pub mod consent;
pub mod dispatch;
pub mod eliciting;
mod exact_content;
pub mod question;
mod raw_params;
pub mod responder;
pub mod routing;
#[cfg(feature = "sign-in")]
pub mod sign_in;
#[cfg(feature = "http")]
pub mod tls;

/// The crates whose types appear in this crate's signatures, so that a host needs no separate versions of them.
#[cfg(any(feature = "terminal", feature = "browser"))]
pub use mcp_elicit_forms as forms;
pub use {mcp_elicit_core as core, rmcp};

/// The types of headers in [`ConnectOptions::headers`].
#[cfg(feature = "http")]
pub use ::http::{HeaderName, HeaderValue};
/// The type of [`CallOptions::stop`].
pub use tokio_util::sync::CancellationToken;

pub use answer::Answer;
pub use call::{CallError, CallOptions, Received};
#[cfg(any(feature = "process", feature = "http"))]
pub use connection::Target;
pub use connection::{ConnectError, ConnectOptions, Connection};
pub use consent::Consent;
pub use dispatch::{ClientSettings, QuestionError, QuestionQueue};
pub use eliciting::ElicitingClient;
pub use question::Question;
pub use responder::{Responder, ResponderError};
pub use routing::Routing;
