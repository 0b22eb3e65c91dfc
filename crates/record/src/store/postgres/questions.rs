//! Batches of writes.
//!
//! A batch is one transaction of two round trips. The first takes the locks and reads: the row of this writer, the
//! questions in the order of their ids, then the end of the audit. What is made of each write is decided in between; the
//! second trip writes the final rows and the links, and commits.
//!
//! If the connection is lost in the second trip, it is unknown if the batch was committed. The writer's row says it: it
//! is read under its lock, so that the lost transaction has ended by then.

use std::collections::HashMap;

use futures::{FutureExt as _, join};
use tokio_postgres::Client;

use super::super::list::search_text;
use super::super::{ChainKey, Change, RecordStoreError, Row, Write, chained, next_number};
use super::database::{
    BEGIN, PostgresDatabase, StatementValues, execute, is_away, is_passing, query,
};
use super::statements::{self, Statement};
use super::{counted, millis, signed};
use crate::audit::AuditedEvent;
use crate::encryption::random_id;
use crate::stored_bytes::PARAMS_AFTER_END;

/// The number of times that a batch whose connection was lost is tried again.
const TRIES: u32 = 40;

/// The writer of this process.
#[derive(Debug, Default)]
pub(super) struct WriterState {
    /// The id of its row; `None` before the first batch.
    id: Option<String>,
    /// The number of its last batch.
    batch: i64,
}

/// The writing gateway, and the key of its links.
#[derive(Clone, Copy)]
pub(super) struct WrittenBy<'w> {
    pub(super) replica: Option<&'w str>,
    pub(super) chain: Option<&'w ChainKey>,
}

/// The result of one attempt.
enum BatchAttempt {
    Made(Vec<bool>),
    /// The connection was lost while the batch was committed.
    Unknown(Vec<bool>),
}

/// Makes all writes in one transaction, each independently.
pub(super) async fn write_all(
    database: &PostgresDatabase,
    state: &mut WriterState,
    by: WrittenBy<'_>,
    wanted: &[Write],
) -> Result<Vec<bool>, RecordStoreError> {
    let nothing = |write: &Write| matches!(write, Write::Change(changes) if changes.is_empty());
    if wanted.iter().all(nothing) {
        return Ok(vec![true; wanted.len()]);
    }
    let mut tries = 0..TRIES;
    loop {
        match write_once(database, state, by, wanted).await {
            Ok(done) => return Ok(done),
            Err(fault) if is_passing(&fault) && tries.next().is_some() => database.pause().await,
            Err(fault) => return Err(fault),
        }
    }
}

async fn write_once(
    database: &PostgresDatabase,
    state: &mut WriterState,
    by: WrittenBy<'_>,
    wanted: &[Write],
) -> Result<Vec<bool>, RecordStoreError> {
    let client = database.client().await?;
    let id = if let Some(id) = &state.id {
        id.clone()
    } else {
        let id = random_id()?;
        execute(&client, &statements::LEAVE_LONG_AGO, &[]).await?;
        execute(&client, &statements::JOIN, &[&id]).await?;
        *state = WriterState {
            id: Some(id.clone()),
            batch: 0,
        };
        id
    };
    let batch = state.batch + 1;
    let attempt = attempt(&client, &id, batch, by, wanted).await;
    match attempt {
        Ok(BatchAttempt::Made(done)) => {
            state.batch = batch;
            Ok(done)
        }
        Ok(BatchAttempt::Unknown(done)) => {
            drop(client);
            if is_committed(database, state, &id, batch).await? {
                state.batch = batch;
                Ok(done)
            } else {
                Err(lost())
            }
        }
        Err(fault) => {
            // A connection that cannot do this has ended, and its transaction with it.
            let _ended = client.batch_execute("ROLLBACK").await;
            if matches!(fault, RecordStoreError::Closed) {
                // The row of this writer is gone, as after a week without a batch: begin as a new one.
                state.id = None;
                return Err(lost());
            }
            Err(fault)
        }
    }
}

/// Returns the error of a connection that was lost before the batch was committed.
fn lost() -> RecordStoreError {
    let source = std::io::Error::other("the connection was lost before the batch was committed");
    RecordStoreError::Database(super::super::DatabaseError::of_server(
        super::super::DatabaseFault::Away,
        source,
    ))
}

/// Returns `true` if the batch of this number was committed. Waits until its transaction has ended, and for a database
/// that is started again.
async fn is_committed(
    database: &PostgresDatabase,
    state: &mut WriterState,
    id: &str,
    batch: i64,
) -> Result<bool, RecordStoreError> {
    let mut tries = 0..TRIES;
    let rows = loop {
        let read = async {
            let client = database.client().await?;
            query(&client, &statements::BATCH_OF, &[&id]).await
        };
        match read.await {
            Err(fault) if is_passing(&fault) && tries.next().is_some() => database.pause().await,
            Err(fault) => {
                // Whatever it was: the next batch has a row of its own, so that its number says nothing about this one.
                state.id = None;
                return Err(fault);
            }
            Ok(rows) => break rows,
        }
    };
    let Some(row) = rows.first() else {
        state.id = None;
        return Err(RecordStoreError::Closed);
    };
    let last: i64 = row.try_get(0)?;
    Ok(last == batch)
}

async fn attempt(
    client: &Client,
    id: &str,
    batch: i64,
    by: WrittenBy<'_>,
    wanted: &[Write],
) -> Result<BatchAttempt, RecordStoreError> {
    let mut ids: Vec<&str> = wanted.iter().flat_map(changed).collect();
    ids.sort_unstable();
    ids.dedup();
    let (number, rows): (StatementValues<'_>, StatementValues<'_>) = (&[&id, &batch], &[&ids]);
    // In this order on the connection.
    let (begun, mine, versions, last, bases) = join!(
        client.batch_execute(BEGIN),
        execute(client, &statements::BEGIN_BATCH, number),
        query(client, &statements::VERSIONS, rows),
        query(client, &statements::AUDIT_LAST, &[]),
        hashes_of_bases(client, wanted),
    );
    begun?;
    if mine? != 1 {
        return Err(RecordStoreError::Closed);
    }
    let mut known = HashMap::new();
    for row in versions? {
        let (id, version): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        known.insert(id, u64::try_from(version).unwrap_or(0));
    }
    let last = last?;
    let last = last.first().ok_or(RecordStoreError::Closed)?;
    let mut plan = BatchPlan {
        known,
        number: last.try_get(0)?,
        hash: last.try_get(1)?,
        bases: bases?,
        purged: None,
        by,
        inserted: Vec::new(),
        changed: Vec::new(),
        links: Vec::new(),
    };
    let done: Result<Vec<bool>, RecordStoreError> =
        wanted.iter().map(|write| plan.add(write)).collect();
    let done = done?;
    let statements = plan.statements()?;
    let writes = statements
        .iter()
        .map(|(statement, values)| run(client, statement, values).boxed());
    // All are sent at once. If one fails, the server makes none, and the end is a rollback.
    let all = futures::future::join_all(writes);
    let (written, committed) = join!(all, client.batch_execute("COMMIT"));
    let mut outcome = Ok(());
    for one in written {
        outcome = outcome.and(one);
    }
    let outcome = outcome.and(committed.map_err(RecordStoreError::from));
    match outcome {
        Ok(()) => Ok(BatchAttempt::Made(done)),
        Err(fault) if is_away(&fault) => Ok(BatchAttempt::Unknown(done)),
        Err(fault) => Err(fault),
    }
}

/// Returns the hashes of the links that a batch deletes as the last ones, under the lock of the audit's end.
async fn hashes_of_bases(
    client: &Client,
    wanted: &[Write],
) -> Result<HashMap<i64, String>, RecordStoreError> {
    let number = |write: &Write| match write {
        Write::PurgeAudit { number, .. } => Some(signed(*number)),
        Write::Insert { .. } | Write::Change(_) | Write::Note(_) => None,
    };
    let numbers: Vec<i64> = wanted.iter().filter_map(number).collect();
    let mut hashes = HashMap::new();
    if !numbers.is_empty() {
        for row in query(client, &statements::AUDIT_HASHES, &[&numbers]).await? {
            hashes.insert(row.try_get(0)?, row.try_get(1)?);
        }
    }
    Ok(hashes)
}

/// Returns the ids of the rows that a write changes.
fn changed(write: &Write) -> Vec<&str> {
    match write {
        Write::Change(changes) => changes.iter().map(|one| one.row.id.as_str()).collect(),
        Write::Insert { .. } | Write::Note(_) | Write::PurgeAudit { .. } => Vec::new(),
    }
}

/// The final contents of a batch.
struct BatchPlan<'w> {
    /// The versions of the rows, as left by the writes so far.
    known: HashMap<String, u64>,
    number: i64,
    hash: String,
    /// The hashes of links up to which the audit is to be deleted, by their numbers.
    bases: HashMap<i64, String>,
    /// The number of the last link to be deleted.
    purged: Option<i64>,
    by: WrittenBy<'w>,
    inserted: Vec<&'w Row>,
    changed: Vec<&'w Row>,
    links: Vec<(i64, &'w str, String)>,
}

/// The values of a statement that writes several rows: an array for each column.
pub(super) type Arrays<'w> = Vec<Box<dyn tokio_postgres::types::ToSql + Sync + Send + 'w>>;

impl<'w> BatchPlan<'w> {
    /// Adds a write; returns `false` if a row has another version than was read.
    fn add(&mut self, write: &'w Write) -> Result<bool, RecordStoreError> {
        match write {
            Write::Insert { row, audit } => {
                self.known.insert(row.id.clone(), row.lifecycle.version());
                self.inserted.push(row);
                self.link(audit)?;
                Ok(true)
            }
            Write::Change(changes) => self.change(changes),
            Write::Note(entry) => {
                self.link(std::slice::from_ref(entry))?;
                Ok(true)
            }
            Write::PurgeAudit {
                number,
                hash,
                entry,
            } => {
                let number = signed(*number);
                let is_left = self.purged.is_none_or(|purged| number > purged);
                if !is_left || self.bases.get(&number) != Some(hash) || number >= self.number {
                    return Ok(false);
                }
                self.purged = Some(number);
                self.link(std::slice::from_ref(entry))?;
                Ok(true)
            }
        }
    }

    /// Changes several rows, or none.
    fn change(&mut self, changes: &'w [Change]) -> Result<bool, RecordStoreError> {
        let mut versions = HashMap::new();
        for Change { row, seen, .. } in changes {
            let id = row.id.as_str();
            let version = versions.get(id).or_else(|| self.known.get(id));
            if version != Some(seen) {
                return Ok(false);
            }
            versions.insert(id, row.lifecycle.version());
        }
        for change in changes {
            let row = &change.row;
            self.known.insert(row.id.clone(), row.lifecycle.version());
            let of_row = |known: &&mut &'w Row| known.id == row.id;
            let mut written = self.inserted.iter_mut().chain(&mut self.changed);
            match written.find(of_row) {
                Some(known) => *known = row,
                None => self.changed.push(row),
            }
            self.link(&change.audit)?;
        }
        Ok(true)
    }

    fn link(&mut self, entries: &'w [String]) -> Result<(), RecordStoreError> {
        for entry in entries {
            self.number = next_number(self.number)?;
            self.hash = chained(self.by.chain, &self.hash, entry);
            self.links.push((self.number, entry, self.hash.clone()));
        }
        Ok(())
    }

    /// Returns the statements that write it, in order.
    fn statements(&self) -> Result<Vec<(&'static Statement, Arrays<'w>)>, RecordStoreError> {
        let mut all: Vec<(&'static Statement, Arrays<'w>)> = Vec::new();
        if !self.inserted.is_empty() {
            all.push((&statements::INSERT_ROWS, inserted(&self.inserted)?));
            all.push((&statements::ADD_TEXTS, search_texts(&self.inserted)));
        }
        if !self.changed.is_empty() {
            all.push((&statements::CHANGE_ROWS, changed_rows(&self.changed)?));
        }
        // The text of an open question does not change.
        let is_ended = |row: &&&Row| !row.lifecycle.is_open();
        let ended: Vec<&'w Row> = self.changed.iter().filter(is_ended).copied().collect();
        if !ended.is_empty() {
            all.push((&statements::CHANGE_TEXTS, search_texts(&ended)));
            let ids = column(&ended, |row| row.id.as_str());
            all.push((&statements::DROP_DRAFTS, vec![ids]));
        }
        let written: Vec<&'w Row> = self.inserted.iter().chain(&self.changed).copied().collect();
        all.extend(address_and_tell(&written));
        let mut others: Vec<&'w str> = self.changed.iter().map(|row| row.owner.as_str()).collect();
        others.retain(|owner| self.by.replica != Some(owner));
        others.sort_unstable();
        others.dedup();
        if !others.is_empty() {
            // Sent when the batch is committed.
            all.push((&statements::NOTIFY, vec![Box::new(others)]));
        }
        if !self.links.is_empty() {
            all.push((&statements::ADD_LINKS, linked(&self.links)));
            let end: Arrays<'w> = vec![Box::new(self.number), Box::new(self.hash.clone())];
            all.push((&statements::MOVE_AUDIT_END, end));
        }
        if let Some(number) = self.purged {
            all.push((&statements::PURGE_AUDIT, vec![Box::new(number)]));
        }
        Ok(all)
    }
}

/// Runs a statement that writes several rows.
pub(super) async fn run(
    client: &Client,
    statement: &Statement,
    values: &Arrays<'_>,
) -> Result<(), RecordStoreError> {
    let values: Vec<_> = values.iter().map(|value| &**value as _).collect();
    execute(client, statement, &values).await.map(drop)
}

/// Returns the statements that write under whom questions of rules are listed, and that people may be told of them.
pub(super) fn address_and_tell<'w>(rows: &[&'w Row]) -> Vec<(&'static Statement, Arrays<'w>)> {
    let ruled: Vec<&'w Row> = rows
        .iter()
        .filter(|row| row.team.is_some())
        .copied()
        .collect();
    if ruled.is_empty() {
        return Vec::new();
    }
    let mut listed = Vec::new();
    for row in &ruled {
        let open = row.lifecycle.is_open();
        let keys = row.list_keys().into_iter();
        listed.extend(keys.map(|key| (row.id.as_str(), key, open)));
    }
    listed.sort_unstable();
    listed.dedup();
    let addressed = vec![
        column(&listed, |one| one.0),
        column(&listed, |one| one.1.clone()),
        column(&listed, |one| one.2),
    ];
    let told = vec![
        column(&ruled, |row| row.id.as_str()),
        column(&ruled, |row| signed(row.lifecycle.version())),
    ];
    vec![(&statements::ADDRESS, addressed), (&statements::TELL, told)]
}

/// Returns one column of several rows.
fn column<'w, R, T>(
    rows: &[R],
    of: impl Fn(&R) -> T,
) -> Box<dyn tokio_postgres::types::ToSql + Sync + Send + 'w>
where
    T: tokio_postgres::types::ToSql + Sync + Send + 'w,
{
    Box::new(rows.iter().map(of).collect::<Vec<T>>())
}

/// Returns one column of several rows, as JSON.
fn json<'w, R>(
    rows: &[R],
    of: impl Fn(&R) -> serde_json::Result<Option<String>>,
) -> Result<Box<dyn tokio_postgres::types::ToSql + Sync + Send + 'w>, RecordStoreError> {
    let texts: serde_json::Result<Vec<Option<String>>> = rows.iter().map(of).collect();
    Ok(Box::new(texts?))
}

fn exchange(row: &Row) -> serde_json::Result<Option<String>> {
    serde_json::to_string(&row.lifecycle).map(Some)
}

fn team(row: &Row) -> serde_json::Result<Option<String>> {
    row.team.as_ref().map(serde_json::to_string).transpose()
}

pub(super) fn inserted<'w>(rows: &[&'w Row]) -> Result<Arrays<'w>, RecordStoreError> {
    Ok(vec![
        column(rows, |row| row.id.as_str()),
        column(rows, |row| row.binding.as_str()),
        column(rows, |row| row.owner.as_str()),
        column(rows, |row| row.exclusive),
        column(rows, |row| signed(row.lifecycle.version())),
        column(rows, |row| row.lifecycle.is_open()),
        column(rows, |row| row.lifecycle.is_over()),
        column(rows, |row| row.has_acted()),
        column(rows, |row| millis(row.lifecycle.asked_at())),
        column(rows, |row| row.lifecycle.ended_at().map(millis)),
        column(rows, |row| row.due_at().map(millis)),
        column(rows, |row| row.can_be_found()),
        column(rows, |row| row.is_in_transit()),
        column(rows, |row| row.body.principal.as_str()),
        column(rows, |row| row.body.server.as_str()),
        column(rows, |row| row.body.server_address()),
        column(rows, |row| row.is_approval()),
        column(rows, |row| row.team.is_some()),
        json(rows, |row| exchange(row))?,
        json(rows, |row| serde_json::to_string(&*row.body).map(Some))?,
        column(rows, |row| row.params.as_deref()),
        json(rows, |row| team(row))?,
        column(rows, |row| row.arguments.as_deref()),
        column(rows, |row| row.content.as_deref()),
    ])
}

/// Returns the texts of rows in which a search looks.
pub(super) fn search_texts<'w>(rows: &[&'w Row]) -> Arrays<'w> {
    vec![
        column(rows, |row| row.id.as_str()),
        column(rows, |row| row.lifecycle.is_open()),
        column(rows, |row| search_text(row)),
    ]
}

fn changed_rows<'w>(rows: &[&'w Row]) -> Result<Arrays<'w>, RecordStoreError> {
    Ok(vec![
        column(rows, |row| row.id.as_str()),
        column(rows, |row| row.owner.as_str()),
        column(rows, |row| row.exclusive),
        column(rows, |row| signed(row.lifecycle.version())),
        column(rows, |row| row.lifecycle.is_open()),
        column(rows, |row| row.lifecycle.is_over()),
        column(rows, |row| row.has_acted()),
        column(rows, |row| row.lifecycle.ended_at().map(millis)),
        column(rows, |row| row.due_at().map(millis)),
        column(rows, |row| row.is_in_transit()),
        column(rows, |row| row.is_approval()),
        column(rows, |row| row.team.is_some()),
        json(rows, |row| exchange(row))?,
        json(rows, |row| team(row))?,
        column(rows, |row| row.arguments.as_deref()),
        column(rows, |row| row.content.as_deref()),
        Box::new(counted(PARAMS_AFTER_END)),
    ])
}

pub(super) fn linked<'w>(links: &[(i64, &'w str, String)]) -> Arrays<'w> {
    let found_by: Vec<FoundBy> = links
        .iter()
        .map(|(_, entry, _)| FoundBy::of(entry))
        .collect();
    vec![
        column(links, |link| link.0),
        column(links, |link| link.1),
        column(links, |link| link.2.clone()),
        column(&found_by, |one| one.at),
        column(&found_by, |one| one.event.clone()),
        column(&found_by, |one| one.question.clone()),
    ]
}

/// The columns by which a link of the audit is found.
#[derive(Default, PartialEq, Eq)]
pub(super) struct FoundBy {
    pub(super) at: Option<i64>,
    pub(super) event: Option<String>,
    pub(super) question: Option<String>,
}

impl FoundBy {
    /// Returns those of an entry.
    pub(super) fn of(entry: &str) -> Self {
        let Some(entry) = AuditedEvent::read(entry) else {
            return Self::default();
        };
        let text = |member| entry.text(member).map(str::to_owned);
        Self {
            at: entry.at().map(millis),
            event: text(crate::audit::Member::Event),
            question: text(crate::audit::Member::Id),
        }
    }
}
