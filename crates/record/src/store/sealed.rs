//! The sealed values of a store, which are sealed anew with another key.
//!
//! A row that is sealed anew keeps its version: nothing that it says has changed, and a gateway that has read it goes on.

use mcp_elicit_core::lifecycle::Timestamp;

/// A table with sealed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedTable {
    /// The arguments and answers of questions, and the texts of their people.
    Questions,
    /// The results of calls without a waiting client.
    Results,
    /// The answers of approvals that are valid for a while.
    Grants,
}

impl SealedTable {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Questions, Self::Results, Self::Grants];
}

/// A selection of rows with sealed values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedQuery {
    /// Their table.
    pub table: SealedTable,
    /// The beginning of values that are left out, because the newest key sealed them. A question whose people wrote texts
    /// is never left out.
    pub newest: Vec<u8>,
    /// The id or key after which the rows are; empty for the first ones.
    pub after: String,
    /// The most rows.
    pub most: usize,
}

/// The sealed values of a row, as they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealedRow {
    /// A question.
    Question {
        /// Its id.
        id: String,
        /// The version of its row.
        version: u64,
        /// The call's arguments.
        arguments: Option<Vec<u8>>,
        /// The answer's content.
        content: Option<Vec<u8>>,
        /// The people whom a rule asks, as JSON with sealed texts in hex.
        team: Option<String>,
    },
    /// The result of a call.
    Result {
        /// The id of the call.
        id: String,
        /// The result.
        result: Vec<u8>,
    },
    /// An approval that is valid for a while.
    Grant {
        /// Its key.
        key: String,
        /// The time of the approval.
        at: Timestamp,
        /// The time of its expiry.
        until: Timestamp,
        /// The approvers' answers.
        answers: Vec<u8>,
    },
}

impl SealedRow {
    /// Returns the id or key, in whose order rows are.
    pub fn key(&self) -> &str {
        match self {
            Self::Question { id, .. } | Self::Result { id, .. } => id,
            Self::Grant { key, .. } => key,
        }
    }
}

/// A row whose values are sealed anew. It is changed only if it is as before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResealedRow {
    /// The row as it was read.
    pub before: SealedRow,
    /// The same row with the new values.
    pub after: SealedRow,
}
