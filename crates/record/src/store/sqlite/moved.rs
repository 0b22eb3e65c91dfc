//! The contents of a record that are moved to or from another store.

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ToSql, TransactionBehavior};

use super::super::RecordStoreError;
use super::super::moved::{
    AT_ONCE, ColumnValue, MovedPart, MovedTable, PartReceiver, PartSender, RecordPart, TABLES,
};
use super::audit::read_link;
use super::questions::{INSERT_LINK, insert};
use super::{COLUMNS, Columns, Sqlite, read};

impl ToSql for ColumnValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Nothing => ToSqlOutput::Owned(Value::Null),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Number(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

impl Sqlite {
    /// Sends the contents of the record, as they are at one moment.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn send_parts(&self, to: PartSender) -> Result<(), RecordStoreError> {
        self.on_file(move |file| {
            let step = file.connection()?.transaction()?;
            send_all(&step, &to)
        })
        .await
    }

    /// Writes the contents of another record into this one, which is empty, completely or not at all.
    ///
    /// # Errors
    /// If they do not come to their end, or cannot be written.
    pub async fn receive_parts(&self, mut from: PartReceiver) -> Result<(), RecordStoreError> {
        self.on_file(move |file| {
            let connection = file.connection()?;
            let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            loop {
                match from.blocking_recv() {
                    Some(RecordPart(MovedPart::End)) => break,
                    Some(RecordPart(part)) => write(&step, &part)?,
                    // The source says why.
                    None => return Err(RecordStoreError::Closed),
                }
            }
            step.commit()?;
            Ok(())
        })
        .await
    }
}

fn send_all(connection: &Connection, to: &PartSender) -> Result<(), RecordStoreError> {
    let questions = format!("SELECT {COLUMNS} FROM question ORDER BY number");
    send(connection, to, &questions, read, MovedPart::Questions)?;
    let links = "SELECT number, entry, hash FROM audit ORDER BY number";
    send(connection, to, links, read_link, MovedPart::Links)?;
    for (table, moved) in TABLES.iter().enumerate() {
        let rows = |rows| MovedPart::Rows { table, rows };
        send(
            connection,
            to,
            &moved.select(),
            |row| cells(moved, row),
            rows,
        )?;
    }
    hand_over(to, MovedPart::End)
}

/// Sends the results of a query, several in each part.
fn send<T>(
    connection: &Connection,
    to: &PartSender,
    text: &str,
    read: impl Fn(&Columns<'_>) -> Result<T, RecordStoreError>,
    part: impl Fn(Vec<T>) -> MovedPart,
) -> Result<(), RecordStoreError> {
    let mut statement = connection.prepare(text)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::with_capacity(AT_ONCE);
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
        if found.len() == AT_ONCE {
            hand_over(to, part(std::mem::take(&mut found)))?;
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    hand_over(to, part(found))
}

fn hand_over(to: &PartSender, part: MovedPart) -> Result<(), RecordStoreError> {
    // The receiver says why it has stopped.
    to.blocking_send(RecordPart(part))
        .map_err(|_| RecordStoreError::Closed)
}

fn cells(table: &MovedTable, row: &Columns<'_>) -> Result<Vec<ColumnValue>, RecordStoreError> {
    let cell = |at| -> Result<ColumnValue, RecordStoreError> {
        Ok(match row.get(at)? {
            Value::Null => ColumnValue::Nothing,
            Value::Integer(number) => ColumnValue::Number(number),
            Value::Text(text) => ColumnValue::Text(text),
            Value::Blob(bytes) => ColumnValue::Bytes(bytes),
            Value::Real(_) => {
                return Err(RecordStoreError::NotRecord(
                    "it has a value of another type",
                ));
            }
        })
    };
    (0..table.columns.len()).map(cell).collect()
}

fn write(step: &rusqlite::Transaction<'_>, part: &MovedPart) -> Result<(), RecordStoreError> {
    match part {
        MovedPart::Questions(rows) => {
            for row in rows {
                insert(step, row)?;
            }
        }
        MovedPart::Links(links) => {
            let mut statement = step.prepare_cached(INSERT_LINK)?;
            for link in links {
                let number = super::questions::signed(link.number);
                statement.execute((number, &link.entry, &link.hash))?;
            }
        }
        MovedPart::Rows { table, rows } => {
            let Some(table) = TABLES.get(*table) else {
                return Err(RecordStoreError::Closed);
            };
            let mut statement = step.prepare_cached(&table.insert())?;
            for row in rows {
                statement.execute(rusqlite::params_from_iter(row))?;
            }
        }
        MovedPart::End => {}
    }
    Ok(())
}
