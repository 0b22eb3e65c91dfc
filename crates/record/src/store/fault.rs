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
    /// The file is no database.
    NotADatabase,
    /// Any other.
    Other,
}

/// An error of a database, as its driver reported it.
#[derive(Debug)]
pub struct DatabaseError {
    fault: DatabaseFault,
    source: Box<dyn Error + Send + Sync>,
}

impl DatabaseError {
    /// Creates the error of a driver.
    pub fn new(fault: DatabaseFault, source: impl Error + Send + Sync + 'static) -> Self {
        let source = Box::new(source);
        Self { fault, source }
    }

    /// Returns the part on which a decision depends.
    pub fn fault(&self) -> DatabaseFault {
        self.fault
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
