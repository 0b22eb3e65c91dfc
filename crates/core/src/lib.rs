//! The rules of MCP elicitation.
//!
//! This crate defines questions, the check of answers, the true target of a URL, the messages on each revision, and the
//! error for each failure. It never waits, sleeps, generates random numbers, reads a clock or touches files: time and
//! randomness are arguments, and effects are return values.
//!
//! | module | contents |
//! | --- | --- |
//! | [`form`] | a requestedSchema: parsing, output per revision, from a Rust type, builder |
//! | [`answer`] | the check of content; reading a person's input; defaults |
//! | [`argument`] | detection of arguments of a call that an approver changed |
//! | [`lifecycle`] | the life of one question |
//! | [`link`] | the true target of a url-mode request's URL |
//! | [`lint`] | the check that a question is legal, clear and safe for a person |
//! | [`misfit`] | the members of a server's result that do not fit the protocol, and the result as far as it can be read |
//! | [`secrecy`] | detection of forms that ask for a credential |
//! | [`secret`] | configured secrets, which no debug output shows |
//! | [`question`] | a question between relay and record |
//! | [`view`] | a question as shown to a person: origin, call, message, warnings |
//! | [`text`] | shortening of texts |
//! | [`mod@pointer`] | the tokens of a JSON Pointer |
//! | `seal` | authenticated encryption, with nonces as arguments (feature `seal`) |
//! | [`rate`] | the rate limit on questions |
//! | [`digest`] | JSON in canonical spelling; the digest of a call; SHA-256 over parts, with or without a key |
//! | [`exposition`] | metrics in the text format of Prometheus |
//! | [`wire`] | JSON-RPC frames and messages of both eras |
//! | [`fault`] | the errors of failures, by blame and revision |
//! | `json`, `number` | JSON text, parsed once; exact comparison of JSON numbers |

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
pub mod misfit;
mod number;
pub mod pointer;
pub mod question;
pub mod rate;
#[cfg(feature = "seal")]
pub mod seal;
pub mod secrecy;
pub mod secret;
mod secret_spellings;
pub mod text;
pub mod view;
pub mod wire;
