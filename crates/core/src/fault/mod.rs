//! Faults of a question, by who is to blame, with the name of each on each revision.
//!
//! A decline or a cancel is an answer, not a fault: [`PersonFault`] is only for callers that cannot go on without one.
//! A timeout, a limit or a crash is never reported as a person's action.
//!
//! | file | who is to blame |
//! | --- | --- |
//! | `peer` | the other side: what it sent is not what the protocol says |
//! | `author` | the author of the program on this side |
//! | `person` | none: the person has the right to say no |
//! | `limit` | a configured bound: time, rate, size, number |
//! | `error` | the JSON-RPC error object and its codes |
//!
//! [`chain`], [`causes()`] and [`with_causes`] show any error of `std` with those below it.

mod author;
mod causes;
mod error;
mod limit;
mod peer;
mod person;

pub use author::AuthorFault;
pub use causes::{causes, chain, with_causes};
pub use error::{ErrorObject, Finding, code};
pub use limit::LimitFault;
pub use peer::PeerFault;
pub use person::PersonFault;

use crate::wire::Revision;

/// Something that went wrong with a question, by blame.
///
/// Its words and data are made to be shown and sent: no variant carries what a person answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The other side.
    #[error(transparent)]
    Peer(#[from] PeerFault),
    /// The author of this side.
    #[error(transparent)]
    Author(#[from] AuthorFault),
    /// The person said no, or nothing.
    #[error(transparent)]
    Person(#[from] PersonFault),
    /// A bound was reached.
    #[error(transparent)]
    Limit(#[from] LimitFault),
}

/// The party that is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The other side.
    Peer,
    /// The author of this side.
    Author,
    /// The person, who may.
    Person,
    /// The operator who set the bound.
    Limit,
}

impl Blame {
    /// The word for logs and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Author => "author",
            Self::Person => "person",
            Self::Limit => "limit",
        }
    }
}

impl Fault {
    /// Returns who is to blame.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Peer(_) => Blame::Peer,
            Self::Author(_) => Blame::Author,
            Self::Person(_) => Blame::Person,
            Self::Limit(_) => Blame::Limit,
        }
    }

    /// The JSON-RPC error code on this revision.
    pub fn code(&self, revision: Revision) -> i32 {
        match self {
            Self::Peer(fault) => fault.code(revision),
            Self::Author(fault) => fault.code(revision),
            Self::Person(fault) => fault.code(),
            Self::Limit(fault) => fault.code(),
        }
    }

    /// The whole JSON-RPC error object on this revision.
    pub fn to_error(&self, revision: Revision) -> ErrorObject {
        let (message, data) = match self {
            Self::Peer(fault) => (fault.summary(), fault.data(revision)),
            Self::Author(fault) => (fault.summary(), fault.data(revision)),
            Self::Person(fault) => (fault.summary(), fault.data()),
            Self::Limit(fault) => (fault.summary(), fault.data()),
        };
        ErrorObject {
            code: self.code(revision),
            message: message.to_owned(),
            data: Some(data),
        }
    }
}

#[cfg(test)]
mod tests;
