//! Clients over HTTP. Their connections are those of `mcp_elicit_forms::web::serve`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`app`] | the routes: every server's endpoint, health, readiness and metrics |
//! | [`origin_guard`] | the hosts and pages that may use the listener |
//! | [`endpoint`] | the MCP endpoint of one server |
//! | [`requests_at_work`] | the limit on the requests of one caller |
//! | [`response_streams`] | messages to a client, resumable |

pub(crate) mod app;
pub(crate) mod endpoint;
pub(crate) mod origin_guard;
pub(crate) mod requests_at_work;
pub(crate) mod response_streams;
