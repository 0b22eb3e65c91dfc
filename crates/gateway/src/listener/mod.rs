//! HTTP clients: what the listener serves them. Their connections are those of `mcp_elicit_forms::web::serve`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`app`] | the routes: every server's endpoint, health, readiness and metrics |
//! | [`origin_guard`] | which hosts and pages may use the listener |
//! | [`endpoint`] | the MCP endpoint of one server |
//! | [`requests_at_work`] | the bound on the requests of one caller |
//! | [`response_streams`] | messages on their way to a client, resumable |

pub(crate) mod app;
pub(crate) mod endpoint;
pub(crate) mod origin_guard;
pub(crate) mod requests_at_work;
pub(crate) mod response_streams;
