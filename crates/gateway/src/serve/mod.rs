//! The shell: sockets, pipes, children and timers around the pure relay.
//!
//! | file | what it serves |
//! | --- | --- |
//! | [`session`] | one relay with its two sides and its record |
//! | [`pipe`] | frames into a pipe, in order, without a thread of its own |
//! | [`pool`], [`turn_waker`] | the sessions that serve one caller together |
//! | [`child`] | a server as a child process |
//! | [`process`], [`children`] | its process, and how many there are |
//! | [`stdio`] | a client on stdin and stdout |
//! | [`http`] | the gateway as an HTTP server |
//! | [`connections`], [`admission`] | its connections, bounded, and who may use them |
//! | [`listen`], [`streams`] | clients over HTTP |
//! | [`upstream`] | a server over HTTP |
//! | [`headers`], [`challenge`] | what HTTP says beside the messages |
//! | [`frame`] | a frame, lent or shared |
//! | [`stop`] | the operator's signal to stop |

pub mod admission;
pub mod challenge;
pub mod child;
pub mod children;
pub mod connections;
pub mod frame;
pub mod headers;
pub mod http;
pub mod listen;
pub mod pipe;
pub mod pool;
pub mod process;
pub mod session;
pub mod stdio;
pub mod stop;
pub mod streams;
pub mod turn_waker;
pub mod upstream;
