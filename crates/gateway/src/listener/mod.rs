//! Clients over HTTP. Their connections are those of `mcp_elicit_forms::web::serve`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`app`] | the routes: every server's endpoint, health, readiness and metrics |
//! | [`origin_guard`] | the hosts and pages that may use the listener |
//! | [`page_access`] | the responses that pages of named origins can read (CORS) |
//! | [`caller_bytes`] | the bytes that wait for the clients of a caller |
//! | [`event_queue`] | the messages that wait for the reader of one stream |
//! | [`call_memory`] | the limits on the bytes of calls, of one caller and of all |
//! | `metrics` | the figures for a monitor |
//! | [`endpoint`] | the MCP endpoint of one server |
//! | [`held_body`] | the body of a response that holds something until it has ended |
//! | [`peers`] | requests of sessions at other gateways of the record |
//! | [`requests_at_work`] | the limit on the requests of one caller |
//! | [`server_table`] | the servers at their paths, replaced when the file is read again |
//! | [`response_streams`] | messages to a client, resumable |

pub(crate) mod app;
pub(crate) mod call_memory;
pub(crate) mod caller_bytes;
pub(crate) mod endpoint;
pub(crate) mod event_queue;
mod held_body;
mod metrics;
pub(crate) mod origin_guard;
pub(crate) mod page_access;
pub(crate) mod peers;
pub(crate) mod requests_at_work;
pub(crate) mod response_streams;
pub(crate) mod server_table;
