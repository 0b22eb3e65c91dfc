//! Transports: a server as a child process or over HTTP, and a client on stdin and stdout.
//!
//! | module | contents |
//! | --- | --- |
//! | [`child`] | a server as a child process |
//! | [`process`], [`child_limit`] | its process, and the limit on their number |
//! | [`pipe_writer`] | frames into a pipe, in order, usually without a separate thread |
//! | [`stdio`] | a client on stdin and stdout |
//! | [`http_upstream`] | a server over HTTP |

pub(crate) mod child;
pub(crate) mod child_limit;
pub(crate) mod http_upstream;
pub(crate) mod pipe_writer;
pub(crate) mod process;
pub(crate) mod stdio;
