//! Writes of rows and audit links: a group in one transaction.

use mcp_elicit_core::wire::CallKind;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};

use super::super::{
    ChainKey, Change, RecordStoreError, Row, Write, chained, is_keyed, next_number,
};
use super::file::SqliteFile;
use super::lists;
use crate::stored_bytes::PARAMS_AFTER_END;

/// Inserts a row; its links are written separately.
const INSERT_ROW: &str = "INSERT INTO question (id, same, owner, version, open, delivered, asked_at, ended_at, due_at, claimed, findable, \
     server, address, principal, mode, kind, target, approval, exchange, body, team, arguments, content, params) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)";

/// Updates a row; its links are written separately.
const CHANGE_ROW: &str = "UPDATE question SET owner = ?3, version = ?4, open = ?5, delivered = ?6, ended_at = ?7, exchange = ?8, \
     arguments = ?9, content = ?10, claimed = ?11, due_at = ?12, team = ?13, \
     params = iif(?14 AND octet_length(params) > ?15, NULL, params) WHERE id = ?1 AND version = ?2";

pub(super) const INSERT_LINK: &str = "INSERT INTO audit (number, entry, hash) VALUES (?1, ?2, ?3)";

/// Finds out whether a link has this hash.
const HAS_LINK: &str = "SELECT EXISTS (SELECT 1 FROM audit WHERE number = ?1 AND hash = ?2)";

/// Deletes the links up to one.
const PURGE_AUDIT: &str = "DELETE FROM audit WHERE number <= ?1";

/// Selects the last link of the audit.
const LAST: &str = "SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1";

impl SqliteFile {
    /// Makes each write independently, and syncs if any of them must survive a loss of power.
    pub(super) fn write_group(&mut self, wanted: &[Write]) -> Result<Vec<bool>, RecordStoreError> {
        let nothing = |write: &Write| matches!(write, Write::Change(changes) if changes.is_empty());
        if wanted.iter().all(nothing) {
            return Ok(vec![true; wanted.len()]);
        }
        let survives = wanted.iter().map(Write::survives).max();
        self.set_survives(survives.unwrap_or_default())?;
        let key = self.key.clone();
        let done = write_all(self.connection()?, key.as_ref(), wanted)?;
        self.wrote(wanted.len());
        Ok(done)
    }

    /// Rejects a chain whose last link was made with another key, because added links could never be proved.
    pub(super) fn fit_key(&self, connection: &Connection) -> Result<(), RecordStoreError> {
        let Some(key) = self.key.as_ref().filter(|_| !self.opens_with_any_key) else {
            return Ok(());
        };
        let texts = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let last: Option<(String, String, String)> =
            connection.query_row(LAST_TWO, [], texts).optional()?;
        match last {
            Some((entry, hash, before))
                if is_keyed(&hash) && hash != chained(Some(key), &before, &entry) =>
            {
                Err(RecordStoreError::OtherKey)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Continues the chain of an older version with this store's key: from here on, a changed chain cannot be made
    /// valid without the key.
    pub(super) fn go_on_keyed(&self, connection: &mut Connection) -> Result<(), RecordStoreError> {
        let Some(key) = &self.key else {
            return Ok(());
        };
        match last_link(connection)? {
            Some((_, hash)) if !is_keyed(&hash) => {
                write_all(connection, Some(key), &[Write::Note(GOES_ON.to_owned())])?;
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Makes all writes in one transaction, each independently.
fn write_all(
    connection: &mut Connection,
    key: Option<&ChainKey>,
    wanted: &[Write],
) -> Result<Vec<bool>, RecordStoreError> {
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // No other process can extend it until the transaction is over.
    let (number, hash) = last_link(&step)?.unwrap_or_default();
    let mut chain = AuditChain { number, hash, key };
    let mut done = Vec::with_capacity(wanted.len());
    for write in wanted {
        done.push(match write {
            Write::Insert { row, audit } => {
                insert(&step, row)?;
                chain.add(&step, audit)?;
                true
            }
            Write::Change(changes) => change_all(&step, &mut chain, changes)?,
            Write::Note(entry) => {
                chain.add(&step, std::slice::from_ref(entry))?;
                true
            }
            Write::PurgeAudit {
                number,
                hash,
                entry,
            } => {
                let is_made = chain.purge(&step, signed(*number), hash)?;
                if is_made {
                    chain.add(&step, std::slice::from_ref(entry))?;
                }
                is_made
            }
        });
    }
    step.commit()?;
    Ok(done)
}

fn last_link(connection: &Connection) -> Result<Option<(i64, String)>, RecordStoreError> {
    let mut statement = connection.prepare_cached(LAST)?;
    let link = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(link.optional()?)
}

/// The end of the audit, to which links are added.
struct AuditChain<'a> {
    number: i64,
    hash: String,
    key: Option<&'a ChainKey>,
}

impl AuditChain<'_> {
    fn add(&mut self, step: &Transaction<'_>, entries: &[String]) -> Result<(), RecordStoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut insert = step.prepare_cached(INSERT_LINK)?;
        for entry in entries {
            self.number = next_number(self.number)?;
            self.hash = chained(self.key, &self.hash, entry);
            insert.execute((self.number, entry, &self.hash))?;
        }
        Ok(())
    }
}

impl AuditChain<'_> {
    /// Deletes the links up to one, if it has this hash and another one follows.
    fn purge(
        &self,
        step: &Transaction<'_>,
        number: i64,
        hash: &str,
    ) -> Result<bool, RecordStoreError> {
        let is_base = step.query_row(HAS_LINK, (number, hash), |row| row.get::<_, bool>(0))?;
        if !is_base || number >= self.number {
            return Ok(false);
        }
        step.execute(PURGE_AUDIT, [number])?;
        Ok(true)
    }
}

/// Changes several rows, or none.
fn change_all(
    step: &Transaction<'_>,
    chain: &mut AuditChain<'_>,
    changes: &[Change],
) -> Result<bool, RecordStoreError> {
    let several = changes.len() > 1;
    if several {
        step.execute_batch("SAVEPOINT several")?;
    }
    for each in changes {
        if !change(step, &each.row, each.seen)? {
            if several {
                step.execute_batch("ROLLBACK TO several")?;
            }
            return Ok(false);
        }
    }
    for each in changes {
        chain.add(step, &each.audit)?;
    }
    Ok(true)
}

pub(super) fn insert(step: &Transaction<'_>, row: &Row) -> Result<(), RecordStoreError> {
    let (lifecycle, body) = (&row.lifecycle, &row.body);
    step.prepare_cached(INSERT_ROW)?.execute(rusqlite::params![
        row.id,
        row.binding,
        row.owner,
        signed(lifecycle.version()),
        lifecycle.is_open(),
        lifecycle.is_over(),
        millis(lifecycle.asked_at()),
        lifecycle.ended_at().map(millis),
        row.due_at().map(millis),
        row.exclusive,
        row.can_be_found(),
        body.server,
        body.server_address(),
        body.principal,
        body.mode.as_str(),
        body.kind.map(CallKind::word),
        body.target,
        row.is_approval(),
        serde_json::to_string(lifecycle)?,
        serde_json::to_string(&**body)?,
        team_text(row)?,
        row.arguments,
        row.content,
        row.params,
    ])?;
    Ok(())
}

/// Changes a row; returns `false` if it has another version than was read.
fn change(step: &Transaction<'_>, row: &Row, seen: u64) -> Result<bool, RecordStoreError> {
    let lifecycle = &row.lifecycle;
    let changed = step.prepare_cached(CHANGE_ROW)?.execute(rusqlite::params![
        row.id,
        signed(seen),
        row.owner,
        signed(lifecycle.version()),
        lifecycle.is_open(),
        lifecycle.is_over(),
        lifecycle.ended_at().map(millis),
        serde_json::to_string(lifecycle)?,
        row.arguments,
        row.content,
        row.exclusive,
        row.due_at().map(millis),
        team_text(row)?,
        row.ended_unanswered(),
        counted(PARAMS_AFTER_END),
    ])?;
    // The people who ended it are part of the text of the search. The answer of a client's own dialog names nobody.
    if changed == 1 && lifecycle.ended_by().is_some() && !row.is_at_client() {
        lists::change_text(step, row)?;
    }
    Ok(changed == 1)
}

/// Returns the team of a row as stored.
fn team_text(row: &Row) -> Result<Option<String>, RecordStoreError> {
    let text = row.team.as_ref().map(serde_json::to_string);
    Ok(text.transpose()?)
}

pub(super) fn millis(moment: mcp_elicit_core::lifecycle::Timestamp) -> i64 {
    signed(moment.as_millis())
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn counted(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The audit entry for a chain of an older version that continues with a key.
const GOES_ON: &str = r#"{"event":"chain-keyed"}"#;

/// Selects the last link, and the hash of the one before.
const LAST_TWO: &str = "SELECT entry, hash, coalesce((SELECT hash FROM audit WHERE number = last.number - 1), '') \
     FROM audit AS last ORDER BY number DESC LIMIT 1";
