//! The gateway: any MCP client, any MCP server, and a person who can answer.
//!
//! This crate combines the parts of a gateway: it moves frames between a client, the relay (`mcp-elicit-relay`) and a
//! server, carries out the relay's effects on the record (`mcp-elicit-record`), and serves the inbox
//! (`mcp-elicit-inbox`). It decides nothing about a question itself, and never acts for a person.
//!
//! Its public API is [`config`], [`recorded`], the [`Runtime`] with its [`StartError`], and the entry points
//! [`serve_http`], [`serve_program`] and [`serve_url`]; call [`kill_servers`] afterwards. [`supported_eras`] and
//! [`asked_eras`] check a server, and [`ServerConnection`] connects to one. [`headers_of`] returns the headers of a
//! request. [`open_to_pages`] lets pages of named origins read the responses of any router. [`RawServer`] is a server's
//! process that is spoken to in raw lines. [`SERVER_STDERR`] is the target of a server's stderr in the log, and
//! [`before_exit`] what writes the last lines of the log.
//!
//! | module | contents |
//! | --- | --- |
//! | [`config`] | an operator's settings |
//! | `runtime` | the record, the inbox and the responders of a running gateway |
//! | `callers` | callers over HTTP: unauthenticated, or by API key, trusted proxy or access token |
//! | `client_profiles` | the profiles of clients, for the relay |
//! | `current_rules`, `bind` | the rules and people of a running gateway; the facts of its calls and questions, for the rules |
//! | [`recorded`] | the recorded facts of a call, for simulating rules |
//! | `notifier` | the messages to people, and their answers in Slack (feature `teams`) |
//! | `session` | one relay with its two transports, and the sessions that serve one caller together |
//! | `traces` | traces of calls and their questions, for a collector (feature `otel`) |
//! | `transports` | a server as a child process or over HTTP; a client on stdin and stdout |
//! | `listener` | clients over HTTP: connections, the MCP endpoint of each server, response streams |
//! | `local_responder` | the operator's terminal or program, as a responder |
//! | `learned_facts` | facts learned about the servers, stored in the record |
//! | `server_check` | the eras that a server speaks, and those in which it was seen to ask |
//! | `replaceable` | a value that is replaced as a whole while it is used |
//! | `server_identity` | the identity of a server |
//! | `byte_account` | bytes of memory that several have together |
//! | `frame`, `headers` | a frame; the HTTP headers of MCP |
//! | `server_challenge` | a server's 401 or 403, and the clients that receive it |
//! | `stop_signal` | the operator's signal to stop |

mod bind;
mod byte_account;
mod callers;
mod client_profiles;
pub mod config;
mod current_rules;
mod frame;
mod headers;
mod learned_facts;
mod listener;
mod local_responder;
#[cfg(feature = "teams")]
mod notifier;
pub mod recorded;
mod replaceable;
mod runtime;
mod server_challenge;
mod server_check;
mod server_identity;
mod server_secrets;
mod service_manager;
mod session;
mod stop_signal;
#[cfg(feature = "otel")]
mod traces;
#[cfg(not(feature = "otel"))]
#[path = "traces_absent.rs"]
mod traces;
mod transports;

pub use headers::headers_of;
pub use listener::app::{router, serve as serve_http};
pub use listener::page_access::open_to_pages;
pub use runtime::database_record;
pub use runtime::{ReadFile, ReloadError, Reloaded, Runtime, StartError};
#[cfg(feature = "postgres")]
pub use runtime::{migrate as migrate_record, planned_migration as planned_record_migration};
pub use server_check::{
    ServerConnection, SupportedEras, asked_eras, note_asked_eras, supported_eras,
};
pub use stop_signal::{StopSignal, before_exit};
pub use transports::process::kill_servers;
pub use transports::raw_server::{RawLine, RawServer};
pub use transports::server_stderr::SERVER_STDERR;
pub use transports::stdio::{serve_program, serve_url};
