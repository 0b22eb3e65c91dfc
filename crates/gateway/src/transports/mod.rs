//! Transports: a server as a child process or over HTTP, and a client on stdin and stdout.
//!
//! | module | contents |
//! | --- | --- |
//! | [`child`] | a server as a child process |
//! | [`process`], [`child_limit`] | its process, and the limit on their number |
//! | [`raw_server`] | a process that is spoken to in raw lines, for tests of servers |
//! | [`server_stderr`] | its stderr, as records of the log |
//! | [`pipe_writer`] | frames into a pipe, in order, usually without a separate thread |
//! | [`stdio`] | a client on stdin and stdout |
//! | [`http_upstream`] | a server over HTTP |
//! | [`unfinished`] | the bytes of messages that servers have begun and not ended |

pub(crate) mod child;
pub(crate) mod child_limit;
pub(crate) mod http_upstream;
pub(crate) mod pipe_writer;
pub(crate) mod process;
pub(crate) mod raw_server;
pub(crate) mod server_stderr;
pub(crate) mod stdio;
pub(crate) mod unfinished;
