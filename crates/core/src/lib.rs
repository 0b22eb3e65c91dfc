//! core

pub mod link;
pub mod secrecy;
