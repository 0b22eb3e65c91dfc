//! MCP elicitation, decided.
//!
//! This crate defines what a question is, whether an answer fits it, what a URL really is, what is sent on each
//! revision, and which error a failure becomes. It never waits, sleeps, draws random numbers, reads a clock or touches
//! files: what needs those is handed in, and what must be done is handed out.
//!
//! | module | decides |
//! | --- | --- |
//! | [`exposition`] | how figures are written for a monitor |
//! | [`form`] | what a requestedSchema asks: parse, emit per revision, from a Rust type, builder |
//! | [`answer`] | whether content answers it; what a person typed; defaults |
//! | [`argument`] | whether an approver changed an argument of a call |
//! | [`digest`] | which JSON is the same, and the digests of calls and parts |
//! | [`lifecycle`] | the life of one question |
//! | [`link`] | what a url-mode request's URL really is |
//! | [`lint`] | whether a question is legal, clear and safe for a person |
//! | [`secrecy`] | whether a form asks for a credential |
//! | [`secret`] | whether a configured text can be a secret, which no debug print shows |
//! | [`question`] | a question between relay and record |
//! | [`view`] | how a question is shown to a person: origin, call, message, warnings |
//! | [`text`] | where a text is cut that is too long |
//! | `seal` | authenticated encryption, its nonces handed in (feature `seal`) |
//! | [`rate`] | whether one more question is within the rate limit |
//! | [`wire`] | JSON-RPC frames and messages of both eras |
//! | [`fault`] | which error a failure becomes, by blame and revision |
//! | `json`, `number` | what a JSON text says, read once; how JSON numbers compare, exactly |

pub mod answer;
pub mod argument;
pub mod digest;
pub mod exposition;
pub mod fault;
pub mod form;
mod json;
pub mod lifecycle;
pub mod link;
pub mod lint;
mod number;
pub mod question;
pub mod rate;
#[cfg(feature = "seal")]
pub mod seal;
pub mod secrecy;
pub mod secret;
pub mod text;
pub mod view;
pub mod wire;
