//! The gateway: any MCP client, any MCP server, and a person who can answer.
//!
//! This crate decides what becomes of every frame between a client and a server, where a question is put when the
//! client cannot ask, and what is kept of it. It never decides whether an answer fits (`core` does), never acts for a
//! person, and never asks in a mode that was not declared.
//!
//! | room | decides |
//! | --- | --- |
//! | [`relay`] | what becomes of every frame: a pure state machine, no IO, no clock |
//! | [`record`] | the book of questions: first answer wins, delivered at most once, audited |
//! | [`store`] | where the book is written: memory, SQLite |
//! | [`serve`] | pipes, children, sockets and timers around the relay |
//! | [`inbox`] | where people answer: pages and a JSON API |
//! | [`answerer`] | the operator's terminal or program, asked at once |
//! | [`config`] | what an operator decides |
//! | [`server_identity`] | which server runs, told apart from every other |
//! | [`state_file`] | files in the state folder, whole or not there |
//! | [`office`] | what a running gateway has beside its sessions |

pub mod answerer;
pub mod config;
pub mod inbox;
pub mod office;
pub mod record;
pub mod relay;
pub mod serve;
pub mod server_identity;
pub mod state_file;
pub mod store;
