//! The contents of a record that are moved to or from another store: in one transaction, without other users.

use futures::TryStreamExt as _;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row as Columns};

use super::super::moved::{
    AT_ONCE, CellKind, ColumnValue, MovedPart, MovedTable, PartReceiver, PartSender, RecordPart,
    TABLES,
};
use super::super::{AuditEntry, RecordStoreError, Row};
use super::database::{BEGIN, ended, execute, is_away, is_passing, query};
use super::migrations;
use super::questions::{address_and_tell, inserted, linked, run, search_texts};
use super::{Postgres, counted, read, read_whole_link, signed, statements};

/// A transaction that sees the database at one moment. One whose process has stopped is ended by the server, since vacuum
/// waits for it.
const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; \
    SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = '60s'; \
    SET LOCAL search_path = pg_catalog, pg_temp";
/// The locks under which no gateway joins, and none that has joined writes questions.
const KEEP_GATEWAYS_OUT: &str =
    "LOCK TABLE mcp_elicit.replica, mcp_elicit.writer IN EXCLUSIVE MODE";
/// The number of times that a lost end of a transaction is asked for, with a pause of a quarter of a second before each.
const COMMIT_TRIES: usize = 120;
/// The schema gets another name, so that no gateway goes on with it.
const SET_ASIDE: &str = "ALTER SCHEMA mcp_elicit RENAME TO mcp_elicit_moved";

impl Postgres {
    /// Sends the contents of the record, as they are at one moment, if its keys are those of this store. Nothing is written.
    pub(super) async fn send_parts(&self, to: PartSender) -> Result<(), RecordStoreError> {
        let store = self.clone();
        self.database
            .spawned(async move {
                let client = store.database.connect().await?;
                migrations::recognize(&client, store.database.settings().address()).await?;
                client.batch_execute(BEGIN_SNAPSHOT).await?;
                let sent = async {
                    store.fit_left_keys(&client).await?;
                    send_all(&client, &to).await
                };
                let sent = sent.await;
                let _it_was_read_only = client.batch_execute("ROLLBACK").await;
                sent
            })
            .await
    }

    /// Writes the contents of another record into this database, completely or not at all: one transaction makes the
    /// tables, leaves the keys of this store and writes the rows.
    pub(super) async fn receive_parts(
        &self,
        mut from: PartReceiver,
    ) -> Result<(), RecordStoreError> {
        let store = self.clone();
        self.database
            .spawned(async move {
                let client = store.database.connect().await?;
                client.batch_execute(BEGIN).await?;
                let mut end = String::new();
                let written = async {
                    store.begin_new(&client).await?;
                    loop {
                        match from.recv().await {
                            Some(RecordPart(MovedPart::End)) => return Ok(()),
                            Some(RecordPart(part)) => {
                                if let Some(hash) = last_hash(&part) {
                                    end = hash;
                                }
                                write(&client, part).await?;
                            }
                            // The source says why.
                            None => return Err(RecordStoreError::Closed),
                        }
                    }
                };
                if let Err(fault) = written.await {
                    return ended(&client, Err(fault)).await;
                }
                match ended(&client, Ok(())).await {
                    Err(fault) if is_away(&fault) => {
                        drop(client);
                        store.check_commit(&end, fault).await
                    }
                    done => done,
                }
            })
            .await
    }

    /// Checks that the database can take a record, and has none. Nothing is written.
    pub(super) async fn refuse_occupied(&self) -> Result<(), RecordStoreError> {
        let address = self.database.settings().address();
        let client = self.database.connect().await?;
        if migrations::is_new(&client, address).await? {
            return Ok(());
        }
        refuse_contents(&client, address).await
    }

    /// Makes the tables in a transaction, and checks that no gateway has used them.
    async fn begin_new(&self, client: &Client) -> Result<(), RecordStoreError> {
        let address = self.database.settings().address();
        migrations::open_within(client, address).await?;
        client.batch_execute(KEEP_GATEWAYS_OUT).await?;
        refuse_contents(client, address).await?;
        self.leave_keys(client).await
    }

    /// Finds out whether a transaction whose connection was lost in its end was committed.
    async fn check_commit(
        &self,
        end: &str,
        fault: RecordStoreError,
    ) -> Result<(), RecordStoreError> {
        let address = self.database.settings().address();
        for _ in 0..COMMIT_TRIES {
            self.database.pause().await;
            let Ok(client) = self.database.connect().await else {
                continue;
            };
            client.batch_execute(BEGIN).await?;
            // It waits until the lost transaction has ended.
            let is_new = migrations::is_new_after_others(&client, address).await;
            let found = match is_new {
                Ok(false) => query(&client, &statements::AUDIT_END_HASH, &[]).await,
                Ok(true) => Ok(Vec::new()),
                Err(fault) => Err(fault),
            };
            let _it_was_read_only = client.batch_execute("ROLLBACK").await;
            let hash: Option<String> = match found {
                Err(fault) if is_passing(&fault) => continue,
                found => found?.first().map(|row| row.try_get(0)).transpose()?,
            };
            return match hash {
                Some(hash) if !hash.is_empty() && hash == end => Ok(()),
                Some(_) | None => Err(fault),
            };
        }
        Err(fault)
    }

    /// Gives the tables another name, so that no gateway goes on with a record that was moved.
    pub(super) async fn set_aside(&self) -> Result<(), RecordStoreError> {
        Ok(self
            .database
            .client()
            .await?
            .batch_execute(SET_ASIDE)
            .await?)
    }
}

async fn send_all(client: &Client, to: &PartSender) -> Result<(), RecordStoreError> {
    let (mut at, mut after) = (-1_i64, String::new());
    loop {
        let limit = counted(AT_ONCE);
        let rows = query(client, &statements::ALL_ROWS, &[&limit, &at, &after]).await?;
        let rows: Vec<Row> = rows.iter().map(read_whole).collect::<Result<_, _>>()?;
        let Some(last) = rows.last() else { break };
        (at, after) = (super::millis(last.lifecycle.asked_at()), last.id.clone());
        hand_over(to, MovedPart::Questions(rows)).await?;
    }
    let mut next = 0_i64;
    loop {
        let limit = counted(AT_ONCE);
        let rows = query(client, &statements::AUDIT, &[&next, &limit]).await?;
        let links: Vec<AuditEntry> = rows.iter().map(read_whole_link).collect::<Result<_, _>>()?;
        let Some(last) = links.last() else { break };
        next = signed(last.number.saturating_add(1));
        hand_over(to, MovedPart::Links(links)).await?;
    }
    for (table, moved) in TABLES.iter().enumerate() {
        let none = std::iter::empty::<(&(dyn ToSql + Sync), Type)>();
        let select = moved.select_from_schema();
        let found = client.query_typed_raw(&select, none);
        // Read as they are handed over: results of calls may be long.
        let mut found = std::pin::pin!(found.await?);
        let mut rows = Vec::with_capacity(AT_ONCE);
        while let Some(row) = found.try_next().await? {
            rows.push(cells(moved, &row)?);
            if rows.len() == AT_ONCE {
                let rows = std::mem::take(&mut rows);
                hand_over(to, MovedPart::Rows { table, rows }).await?;
            }
        }
        if !rows.is_empty() {
            hand_over(to, MovedPart::Rows { table, rows }).await?;
        }
    }
    hand_over(to, MovedPart::End).await
}

/// Returns a question, or the error that names it.
fn read_whole(row: &Columns) -> Result<Row, RecordStoreError> {
    read(row).map_err(|fault| match fault {
        RecordStoreError::Unreadable(error) => {
            let id: String = row.try_get("id").unwrap_or_default();
            RecordStoreError::Refused {
                why: format!("this version cannot read the question {id}: {error}"),
                next: "use the version of the gateways, or a newer one.".to_owned(),
            }
        }
        fault => fault,
    })
}

/// Rejects a database in which a gateway or a command has recorded something, and one that a gateway uses.
async fn refuse_contents(client: &Client, address: &str) -> Result<(), RecordStoreError> {
    let rows = query(client, &statements::IS_OCCUPIED, &[]).await?;
    let is_occupied: bool = rows.first().ok_or(RecordStoreError::Closed)?.try_get(0)?;
    if is_occupied {
        return Err(RecordStoreError::Refused {
            why: format!("the database {address} has a record already"),
            next: "name an empty database, or drop the schema mcp_elicit of this one if nothing in it is needed. If a `record move` or `restore` into \
                   it was interrupted, it may have the whole record: drop it only if no gateway has used this database since."
                .to_owned(),
        });
    }
    let running = query(client, &statements::RUNNING, &[]).await?.len();
    if running > 0 {
        return Err(RecordStoreError::Refused {
            why: format!("{running} gateway(s) run on {address}"),
            next: "end them first; one that was killed counts for 10 seconds.".to_owned(),
        });
    }
    Ok(())
}

/// Returns the hash of the last link in a part.
fn last_hash(part: &MovedPart) -> Option<String> {
    let MovedPart::Links(links) = part else {
        return None;
    };
    links.last().map(|link| link.hash.clone())
}

async fn hand_over(to: &PartSender, part: MovedPart) -> Result<(), RecordStoreError> {
    // The receiver says why it has stopped.
    to.send(RecordPart(part))
        .await
        .map_err(|_| RecordStoreError::Closed)
}

fn cells(table: &MovedTable, row: &Columns) -> Result<Vec<ColumnValue>, RecordStoreError> {
    let cell =
        |(at, (_, kind)): (usize, &(&str, CellKind))| -> Result<ColumnValue, RecordStoreError> {
            let cell = match kind {
                CellKind::Text => row.try_get::<_, Option<String>>(at)?.map(ColumnValue::Text),
                CellKind::Bytes => row
                    .try_get::<_, Option<Vec<u8>>>(at)?
                    .map(ColumnValue::Bytes),
                CellKind::Number | CellKind::Flag => {
                    row.try_get::<_, Option<i64>>(at)?.map(ColumnValue::Number)
                }
            };
            Ok(cell.unwrap_or(ColumnValue::Nothing))
        };
    table.columns.iter().enumerate().map(cell).collect()
}

async fn write(client: &Client, part: MovedPart) -> Result<(), RecordStoreError> {
    match part {
        MovedPart::Questions(rows) => {
            let rows: Vec<&Row> = rows.iter().collect();
            run(client, &statements::INSERT_ROWS, &inserted(&rows)?).await?;
            run(client, &statements::ADD_TEXTS, &search_texts(&rows)).await?;
            for (statement, values) in address_and_tell(&rows) {
                run(client, statement, &values).await?;
            }
        }
        MovedPart::Links(links) => {
            let end = links
                .last()
                .map(|link| (signed(link.number), link.hash.clone()));
            let links: Vec<_> = links
                .iter()
                .map(|link| (signed(link.number), link.entry.as_str(), link.hash.clone()))
                .collect();
            run(client, &statements::ADD_LINKS, &linked(&links)).await?;
            if let Some((number, hash)) = end {
                execute(client, &statements::MOVE_AUDIT_END, &[&number, &hash]).await?;
            }
        }
        MovedPart::Rows { table, rows } => {
            let table = TABLES.get(table).ok_or(RecordStoreError::Closed)?;
            let arrays: Vec<_> = (0..table.columns.len())
                .map(|at| array(table, &rows, at))
                .collect();
            let values: Vec<(&(dyn ToSql + Sync), Type)> = arrays
                .iter()
                .map(|(array, kind)| (&**array as _, kind.clone()))
                .collect();
            client
                .execute_typed(&table.insert_into_schema(), &values)
                .await?;
        }
        MovedPart::End => {}
    }
    Ok(())
}

/// Returns a column of rows as an array, with its type.
fn array(
    table: &MovedTable,
    rows: &[Vec<ColumnValue>],
    at: usize,
) -> (Box<dyn ToSql + Sync + Send>, Type) {
    let column = rows.iter().map(|row| row.get(at).cloned());
    match table.columns.get(at).map(|(_, kind)| kind) {
        Some(CellKind::Bytes) => {
            let bytes = |cell| match cell {
                Some(ColumnValue::Bytes(bytes)) => Some(bytes),
                _ => None,
            };
            (
                Box::new(column.map(bytes).collect::<Vec<_>>()),
                Type::BYTEA_ARRAY,
            )
        }
        Some(CellKind::Number | CellKind::Flag) => {
            let number = |cell| match cell {
                Some(ColumnValue::Number(number)) => Some(number),
                _ => None,
            };
            (
                Box::new(column.map(number).collect::<Vec<_>>()),
                Type::INT8_ARRAY,
            )
        }
        Some(CellKind::Text) | None => {
            let text = |cell| match cell {
                Some(ColumnValue::Text(text)) => Some(text),
                _ => None,
            };
            (
                Box::new(column.map(text).collect::<Vec<_>>()),
                Type::TEXT_ARRAY,
            )
        }
    }
}
