//! HTTP clients: the listener's connections, and what it serves on them.
//!
//! | module | contents |
//! | --- | --- |
//! | [`app`] | the routes: every server's endpoint, health, readiness and metrics |
//! | [`connections`] | the accepted connections, bounded |
//! | [`origin_guard`] | which hosts and pages may use the listener |
//! | [`endpoint`] | the MCP endpoint of one server |
//! | [`response_streams`] | messages on their way to a client, resumable |

pub(crate) mod app;
mod connections;
pub(crate) mod endpoint;
pub(crate) mod origin_guard;
pub(crate) mod response_streams;
