//! The contents of a record in parts, as which they are moved from one store to another.
//!
//! Questions and links of the audit are moved as what they are. The other tables have the same columns in each store
//! ([`TABLES`]). Not moved: what belongs to running processes, and what a store derives from the rest.

use tokio::sync::mpsc;

use super::{AuditEntry, RecordStoreError, Row};

/// The number of rows of one part.
pub(super) const AT_ONCE: usize = 500;
/// The number of parts that wait to be written.
const WAITING: usize = 4;

/// A part of a record's contents, in the order in which it is written.
#[derive(Debug)]
pub struct RecordPart(pub(super) MovedPart);

#[derive(Debug)]
pub(super) enum MovedPart {
    /// Questions, the oldest first.
    Questions(Vec<Row>),
    /// Links of the audit, in order.
    Links(Vec<AuditEntry>),
    /// Rows of the table of this index in [`TABLES`], in order.
    Rows {
        table: usize,
        rows: Vec<Vec<ColumnValue>>,
    },
    /// The end. Without it, the source has failed, and nothing is kept.
    End,
}

/// The value of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ColumnValue {
    Nothing,
    Text(String),
    Number(i64),
    Bytes(Vec<u8>),
}

/// The sender of the parts.
pub type PartSender = mpsc::Sender<RecordPart>;
/// The receiver of the parts.
pub type PartReceiver = mpsc::Receiver<RecordPart>;

/// Returns a channel for the parts of a record, which holds a few of them.
pub fn record_parts() -> (PartSender, PartReceiver) {
    mpsc::channel(WAITING)
}

/// Returns the error of the side that failed first: the other one only finds the channel closed.
///
/// # Errors
/// If one of the sides has failed.
pub fn both_sides(
    sent: Result<(), RecordStoreError>,
    received: Result<(), RecordStoreError>,
) -> Result<(), RecordStoreError> {
    match (sent, received) {
        (Ok(()), Ok(())) => Ok(()),
        (Err(RecordStoreError::Closed) | Ok(()), Err(fault)) | (Err(fault), _) => Err(fault),
    }
}

/// The type of a column. A flag is a number, 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellKind {
    Text,
    Number,
    Bytes,
    Flag,
}

/// A table whose rows are moved as they are.
#[derive(Debug)]
pub(super) struct MovedTable {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, CellKind)],
    /// The columns in whose order the rows are.
    order: &'static str,
    /// `true` if the store makes the rows by itself when a question is inserted, and they are changed.
    is_made: bool,
}

use CellKind::{Bytes, Flag, Number, Text};

/// The tables, in the order in which they are written: after the questions and the audit.
pub(super) const TABLES: [MovedTable; 10] = [
    MovedTable {
        name: "telling",
        columns: &[("question", Text), ("told", Number), ("untold", Number)],
        order: "question",
        is_made: true,
    },
    MovedTable {
        name: "call",
        columns: &[
            ("id", Text),
            ("same", Text),
            ("result", Bytes),
            ("until", Number),
        ],
        order: "id",
        is_made: false,
    },
    MovedTable {
        name: "learned",
        columns: &[("server", Text), ("learned", Text), ("at", Number)],
        order: "server",
        is_made: false,
    },
    MovedTable {
        name: "approval_grant",
        columns: &[
            ("key", Text),
            ("question", Text),
            ("rule", Text),
            ("rule_digest", Text),
            ("answers", Bytes),
            ("at", Number),
            ("until", Number),
        ],
        order: "key",
        is_made: false,
    },
    MovedTable {
        name: "used",
        columns: &[("kind", Text), ("digest", Bytes), ("until", Number)],
        order: "kind, digest",
        is_made: false,
    },
    MovedTable {
        name: "notification",
        columns: &[
            ("id", Text),
            ("question", Text),
            ("event", Text),
            ("channel", Text),
            ("recipient", Text),
            ("person", Text),
            ("state", Text),
            ("attempts", Number),
            ("due_at", Number),
            ("until", Number),
            ("at", Number),
            ("done_at", Number),
            ("message", Text),
            ("why", Text),
        ],
        order: "id",
        is_made: false,
    },
    MovedTable {
        name: "api_token",
        columns: &[
            ("id", Text),
            ("name", Text),
            ("hash", Text),
            ("scopes", Text),
            ("owner", Text),
            ("unattended", Flag),
            ("made_at", Number),
            ("expires_at", Number),
            ("revoked_at", Number),
            ("used_at", Number),
        ],
        order: "number",
        is_made: false,
    },
    MovedTable {
        name: "blocked_caller",
        columns: &[("issuer", Text), ("subject", Text), ("blocked_at", Number)],
        order: "number",
        is_made: false,
    },
    MovedTable {
        name: "shared",
        columns: &[
            ("entity", Text),
            ("kind", Text),
            ("id", Text),
            ("value", Text),
        ],
        order: "number",
        is_made: false,
    },
    MovedTable {
        name: "shared_version",
        columns: &[("entity", Text), ("version", Number)],
        order: "entity",
        is_made: false,
    },
];

impl MovedTable {
    fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// Returns the query for the rows in SQLite.
    pub(super) fn select(&self) -> String {
        format!(
            "SELECT {} FROM {} ORDER BY {}",
            self.names(),
            self.name,
            self.order
        )
    }

    /// Returns the insert of a row in SQLite.
    pub(super) fn insert(&self) -> String {
        let values: Vec<String> = (1..=self.columns.len())
            .map(|at| format!("?{at}"))
            .collect();
        let (name, names, values) = (self.name, self.names(), values.join(", "));
        format!(
            "INSERT INTO {name} ({names}) VALUES ({values}){}",
            self.on_conflict()
        )
    }

    /// Returns the query for the rows in PostgreSQL. A result that was taken is left out.
    #[cfg(feature = "postgres")]
    pub(super) fn select_from_schema(&self) -> String {
        let mut columns = Vec::with_capacity(self.columns.len());
        for (name, kind) in self.columns {
            columns.push(match kind {
                Flag => format!("{name}::pg_catalog.int4::pg_catalog.int8 AS {name}"),
                Text | Number | Bytes => (*name).to_owned(),
            });
        }
        let is_left = if self.name == "call" {
            " WHERE taker IS NULL"
        } else {
            ""
        };
        format!(
            "SELECT {} FROM mcp_elicit.{}{is_left} ORDER BY {}",
            columns.join(", "),
            self.name,
            self.order
        )
    }

    /// Returns the insert of several rows in PostgreSQL, with an array for each column.
    #[cfg(feature = "postgres")]
    pub(super) fn insert_into_schema(&self) -> String {
        let mut columns = Vec::with_capacity(self.columns.len());
        let arrays: Vec<String> = (1..=self.columns.len())
            .map(|at| format!("${at}"))
            .collect();
        let arrays = arrays.join(", ");
        for (name, kind) in self.columns {
            columns.push(match kind {
                Flag => format!("(n.{name} <> 0)"),
                Text | Number | Bytes => format!("n.{name}"),
            });
        }
        format!(
            "INSERT INTO mcp_elicit.{} ({names}) SELECT {} FROM unnest({arrays}) WITH ORDINALITY AS n ({names}, position) \
             ORDER BY n.position{}",
            self.name,
            columns.join(", "),
            self.on_conflict(),
            names = self.names(),
        )
    }

    fn on_conflict(&self) -> String {
        let [(key, _), others @ ..] = self.columns else {
            return String::new();
        };
        if !self.is_made {
            return String::new();
        }
        let sets: Vec<String> = others
            .iter()
            .map(|(name, _)| format!("{name} = excluded.{name}"))
            .collect();
        format!(" ON CONFLICT ({key}) DO UPDATE SET {}", sets.join(", "))
    }
}
