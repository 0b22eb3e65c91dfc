//! The gateway: any MCP client, any MCP server, and a person who can answer.
//!
//! This crate wires the parts of a gateway together: it moves frames between a client, the relay (`mcp-elicit-relay`) and a
//! server, executes what the relay wants of the record (`mcp-elicit-record`), and serves the inbox (`mcp-elicit-inbox`).
//! It decides nothing about a question itself, and never acts for a person.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`serve`] | pipes, children, sockets and timers around the relay |
//! | [`answerer`] | the operator's terminal or program, asked at once |
//! | [`config`] | what an operator decides |
//! | `learning` | what was learned of servers, kept in the record |
//! | [`server_identity`] | which server runs, told apart from every other |
//! | [`office`] | what a running gateway has beside its sessions |

pub mod answerer;
pub mod config;
mod learning;
pub mod office;
pub mod serve;
pub mod server_identity;
