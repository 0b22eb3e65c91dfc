//! core

pub mod link;
pub mod secrecy;
pub mod wire;
