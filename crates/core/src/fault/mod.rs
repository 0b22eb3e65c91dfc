//! Faults of a question by who is to blame, with their errors on each revision.
//!
//! A decline or a cancel is an answer, not a fault: [`PersonFault`] is only for callers that cannot go on without one.
//! A timeout, a limit or a crash is never reported as a person's action.
//!
//! | file | who is to blame |
//! | --- | --- |
//! | `peer` | the peer: its message breaks the protocol |
//! | `author` | the author of the local program |
//! | `person` | none: the person has the right to refuse |
//! | `limit` | a configured bound: time, rate, size, number |
//! | `error` | the JSON-RPC error object and its codes |
//!
//! [`chain`], [`causes()`] and [`with_causes`] return any error of `std` with its sources.

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

/// A failure of a question, by blame.
///
/// Its texts and data are safe to show and to send: no variant contains a person's answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The peer is to blame.
    #[error(transparent)]
    Peer(#[from] PeerFault),
    /// The author of the local program is to blame.
    #[error(transparent)]
    Author(#[from] AuthorFault),
    /// The person refused or made no choice.
    #[error(transparent)]
    Person(#[from] PersonFault),
    /// A limit was reached.
    #[error(transparent)]
    Limit(#[from] LimitFault),
}

/// The party that is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The peer.
    Peer,
    /// The author of the local program.
    Author,
    /// The person, who has the right to refuse.
    Person,
    /// The operator who set the limit.
    Limit,
}

impl Blame {
    /// Returns the word for logs and records.
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
    /// Returns the party that is to blame.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Peer(_) => Blame::Peer,
            Self::Author(_) => Blame::Author,
            Self::Person(_) => Blame::Person,
            Self::Limit(_) => Blame::Limit,
        }
    }

    /// Returns the JSON-RPC error code on this revision.
    pub fn code(&self, revision: Revision) -> i32 {
        match self {
            Self::Peer(fault) => fault.code(revision),
            Self::Author(fault) => fault.code(revision),
            Self::Person(fault) => fault.code(),
            Self::Limit(fault) => fault.code(),
        }
    }

    /// Returns the JSON-RPC error object on this revision.
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
