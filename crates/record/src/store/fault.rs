//! Errors of a database, without the types of its driver.

use std::error::Error;
use std::fmt;

/// The part of a database error on which a caller's decision depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseFault {
    /// The server cannot be reached, or the connection to it was lost.
    Away,
    /// Another process has the database locked.
    Busy,
    /// The database takes no writes.
    ReadOnly,
    /// The disk of the database is full.
    Full,
    /// The file is no database.
    NotADatabase,
    /// Any other.
    Other,
}

/// An error of a database, as its driver reported it.
#[derive(Debug)]
pub struct DatabaseError {
    fault: DatabaseFault,
    of_server: bool,
    source: Box<dyn Error + Send + Sync>,
}

impl DatabaseError {
    /// Creates the error of a driver.
    pub fn new(fault: DatabaseFault, source: impl Error + Send + Sync + 'static) -> Self {
        let source = Box::new(source);
        Self {
            fault,
            of_server: false,
            source,
        }
    }

    /// Creates the error of a driver that talks to a server.
    pub fn of_server(fault: DatabaseFault, source: impl Error + Send + Sync + 'static) -> Self {
        Self {
            of_server: true,
            ..Self::new(fault, source)
        }
    }

    /// Returns `true` if it is of a server, or of a connection to one.
    pub fn is_of_server(&self) -> bool {
        self.of_server
    }

    /// Returns the part on which a decision depends.
    pub fn fault(&self) -> DatabaseFault {
        self.fault
    }

    /// Returns what it means for the record, in words.
    pub(super) fn in_words(&self) -> &'static str {
        match self.fault {
            DatabaseFault::Full => "the disk of the record is full",
            DatabaseFault::ReadOnly => "the record takes no writes",
            DatabaseFault::Away
            | DatabaseFault::Busy
            | DatabaseFault::NotADatabase
            | DatabaseFault::Other => "the record cannot be reached",
        }
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl Error for DatabaseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}
