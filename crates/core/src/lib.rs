//! core

pub mod exchange;
pub mod fault;
pub mod link;
pub mod secrecy;
pub mod wire;
