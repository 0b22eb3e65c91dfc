//! The gateway: any MCP client, any MCP server, and a person who can answer.
//!
//! This crate wires the parts of a gateway together: it moves frames between a client, the relay (`mcp-elicit-relay`) and a
//! server, executes what the relay wants of the record (`mcp-elicit-record`), and serves the inbox (`mcp-elicit-inbox`).
//! It decides nothing about a question itself, and never acts for a person.
//!
//! Its surface is [`config`], [`recorded`], the [`Runtime`] with its [`StartError`], and the entry points [`serve_http`],
//! [`serve_program`] and [`serve_url`], after which [`kill_servers`] leaves no server behind.
//!
//! | module | contents |
//! | --- | --- |
//! | [`config`] | an operator's settings |
//! | `runtime` | the record, the inbox and the responders of a running gateway |
//! | `callers` | who calls over HTTP: unverified, by API key, or by a trusted proxy |
//! | `teams`, `bind` | the rules and people of a running gateway; the facts of its calls and questions, for the rules |
//! | [`recorded`] | the facts that the record has kept of a call, for rules that are tried on it |
//! | `notifier` | the messages to people, and their answers in Slack (feature `teams`) |
//! | `session` | one relay with its two transports, and the sessions that serve one caller together |
//! | `transports` | a server as a child process or over HTTP; a client on stdin and stdout |
//! | `listener` | clients over HTTP: connections, the MCP endpoint of each server, response streams |
//! | `local_responder` | the operator's terminal or program, asked at once |
//! | `learned_facts` | facts learned of the servers, kept in the record |
//! | `server_identity` | the identity of what runs as a server |
//! | `frame`, `headers` | a frame; the HTTP headers of MCP |
//! | `server_challenge` | a server's 401 or 403, and the clients that hear of it |
//! | `stop_signal` | the operator's signal to stop |

mod bind;
mod callers;
pub mod config;
mod frame;
mod headers;
mod learned_facts;
mod listener;
mod local_responder;
#[cfg(feature = "teams")]
mod notifier;
pub mod recorded;
mod runtime;
mod server_challenge;
mod server_identity;
mod session;
mod stop_signal;
mod teams;
mod transports;

pub use listener::app::{router, serve as serve_http};
pub use runtime::{ReloadError, Reloaded, Runtime, StartError, check_addresses, check_channels};
pub use transports::process::kill_servers;
pub use transports::stdio::{serve_program, serve_url};
