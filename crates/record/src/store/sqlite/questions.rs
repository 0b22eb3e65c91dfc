//! Writes of rows and audit links: one in one trip, or many in one transaction.

use std::collections::HashSet;

use sqlx::{AssertSqlSafe, Connection as _, Row as _, Sqlite as Database, Transaction};

use super::super::{ChainKey, Change, Durability, Row, StoreError, Write, chained, is_keyed};
use super::File;

/// The parameters of a row's insert: its parameters are 1 to 17, which [`bound_whole`] binds.
macro_rules! whole {
    () => {
        "INSERT INTO question (id, same, owner, version, open, delivered, asked_at, ended_at, exchange, body, arguments, \
         content, claimed, due_at, findable, params, team) "
    };
}

/// The parameters of a row's change: its parameters are 1 to 13, which [`bound_change`] binds.
macro_rules! change {
    () => {
        "UPDATE question SET owner = ?3, version = ?4, open = ?5, delivered = ?6, ended_at = ?7, exchange = ?8, \
         arguments = ?9, content = ?10, claimed = ?11, due_at = ?12, team = ?13 WHERE id = ?1 AND version = ?2"
    };
}

/// One row and its link of the audit, both or neither: neither when the chain has grown since `?18` was its last number.
const INSERT: &str = concat!(
    "BEGIN IMMEDIATE; \
     INSERT INTO audit (number, entry, hash) SELECT ?18 + 1, ?19, ?20 \
     WHERE ?18 = (SELECT coalesce(max(number), 0) FROM audit); ",
    whole!(),
    "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17 WHERE changes() = 1; \
     SELECT changes(); COMMIT"
);

/// The same for a change of the row whose version is `?2`.
const CHANGE: &str = concat!(
    "BEGIN IMMEDIATE; \
     INSERT INTO audit (number, entry, hash) SELECT ?14 + 1, ?15, ?16 \
     WHERE ?14 = (SELECT coalesce(max(number), 0) FROM audit) \
     AND EXISTS (SELECT 1 FROM question WHERE id = ?1 AND version = ?2); ",
    change!(),
    " AND changes() = 1; \
     SELECT changes(); COMMIT"
);

/// Rows, their links written beside them; [`ROW_VALUES`] follows for each.
const INSERT_ROWS: &str = concat!(whole!(), "VALUES ");
const ROW_VALUES: &str = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// A change of a row, its links written beside it.
const CHANGE_ROW: &str = change!();

/// Changes of rows, each of another row; [`CHANGE_VALUES`] follows for each, in the order of [`change`], and then [`CHANGED`].
const CHANGE_ROWS: &str = "UPDATE question SET owner = new.column3, version = new.column4, open = new.column5, \
     delivered = new.column6, ended_at = new.column7, exchange = new.column8, arguments = new.column9, \
     content = new.column10, claimed = new.column11, due_at = new.column12, team = new.column13 FROM (VALUES ";
const CHANGE_VALUES: &str = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
/// Tells which rows were as they were seen.
const CHANGED: &str = ") AS new WHERE question.id = new.column1 AND question.version = new.column2 RETURNING question.id";

/// The most rows that one statement writes.
const ROWS_AT_ONCE: usize = 64;
/// The most audit links that one statement writes.
const LINKS_AT_ONCE: usize = 128;

/// Returns the number of the first of these that one statement writes: a power of two, so that few statements are prepared, and
/// each only once.
fn at_once(count: usize, most: usize) -> usize {
    count
        .min(most)
        .checked_ilog2()
        .map_or(0, |power| 1 << power)
}

/// Returns the first of these rows, as many as one statement writes.
fn first_rows<T>(rows: impl Iterator<Item = T>) -> Vec<T> {
    let mut rows: Vec<_> = rows.take(ROWS_AT_ONCE).collect();
    rows.truncate(at_once(rows.len(), ROWS_AT_ONCE));
    rows
}

/// The last link of the audit.
const LAST: &str = "SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1";

impl File {
    /// Writes all that is wanted, each for itself, and on the disk where any of it must survive a loss of power.
    pub(super) async fn write_group(&mut self, wanted: &[Write]) -> Result<Vec<bool>, StoreError> {
        let durability = wanted.iter().map(Write::durability).max();
        self.set_durability(durability.unwrap_or_default()).await?;
        self.write_each(wanted).await
    }

    pub(super) async fn set_durability(
        &mut self,
        durability: Durability,
    ) -> Result<(), StoreError> {
        if self.durability == Some(durability) {
            return Ok(());
        }
        let pragma = match durability {
            Durability::Committed => "PRAGMA synchronous = NORMAL",
            Durability::Flushed => "PRAGMA synchronous = FULL",
        };
        sqlx::raw_sql(pragma).execute(self.connection()?).await?;
        self.durability = Some(durability);
        Ok(())
    }

    async fn write_each(&mut self, wanted: &[Write]) -> Result<Vec<bool>, StoreError> {
        let done = match wanted {
            [] => return Ok(Vec::new()),
            [Write::Insert { row, audit }] if audit.len() == 1 => {
                self.write(row, None, &audit[0]).await?
            }
            [Write::Change(changes)] if changes.is_empty() => true,
            [Write::Change(changes)] if changes.len() == 1 && changes[0].audit.len() == 1 => {
                let Change {
                    row, seen, audit, ..
                } = &changes[0];
                self.write(row, Some(*seen), &audit[0]).await?
            }
            [Write::Change(changes)] if changes.len() == 1 && changes[0].audit.is_empty() => {
                let Change { row, seen, .. } = &changes[0];
                let query = bound_change(sqlx::query(CHANGE_ROW), row, *seen)?;
                query.execute(self.connection()?).await?.rows_affected() == 1
            }
            several => return self.write_all(several).await,
        };
        Ok(vec![done])
    }

    /// The audit's last link, read again when it is not known.
    async fn last(&mut self) -> Result<(i64, String), StoreError> {
        if let Some(last) = &self.last {
            return Ok(last.clone());
        }
        let last: Option<(i64, String)> = sqlx::query_as(LAST)
            .fetch_optional(self.connection()?)
            .await?;
        let last = last.unwrap_or_default();
        self.last = Some(last.clone());
        Ok(last)
    }

    /// One row and its link, written as one; `false` when the row has another version than was seen.
    async fn write(
        &mut self,
        row: &Row,
        seen: Option<u64>,
        entry: &str,
    ) -> Result<bool, StoreError> {
        loop {
            let (number, before) = self.last().await?;
            let hash = chained(self.key.as_ref(), &before, entry);
            let query = match seen {
                None => bound_whole(sqlx::query(INSERT), row)?,
                Some(seen) => bound_change(sqlx::query(CHANGE), row, seen)?,
            };
            let query = query.bind(number).bind(entry).bind(&hash);
            self.unfinished = true;
            let said = query.fetch_all(self.connection()?).await?;
            self.unfinished = false;
            let changed: i64 = match said.first() {
                Some(row) => row.try_get(0)?,
                None => 0,
            };
            if changed == 1 {
                self.last = Some((number + 1, hash));
                return Ok(true);
            }
            // Either the row has changed, or another gateway has added to the audit.
            self.last = None;
            if self.last().await?.0 == number {
                return Ok(false);
            }
        }
    }

    /// Everything in one transaction, each for itself.
    async fn write_all(&mut self, wanted: &[Write]) -> Result<Vec<bool>, StoreError> {
        self.last = None;
        let key = self.key.clone();
        let mut step = self.connection()?.begin_with("BEGIN IMMEDIATE").await?;
        let mut chain = Chain::end_of(&mut step, key).await?;
        let mut done = Vec::with_capacity(wanted.len());
        let mut rest = wanted;
        while let Some(first) = rest.first() {
            let new = new_rows(rest);
            let changes = single_changes(rest);
            let written = if !new.is_empty() {
                insert_all(&mut step, &new).await?;
                for (_, audit) in &new {
                    chain.add(audit);
                    done.push(true);
                }
                new.len()
            } else if changes.len() > 1 {
                done.extend(change_each(&mut step, &mut chain, &changes).await?);
                changes.len()
            } else {
                match first {
                    Write::Change(changes) => {
                        done.push(change_all(&mut step, &mut chain, changes).await?);
                    }
                    Write::Note(entry) => {
                        chain.add(std::slice::from_ref(entry));
                        done.push(true);
                    }
                    Write::Insert { .. } => {}
                }
                1
            };
            rest = &rest[written..];
        }
        let last = chain.write(&mut step).await?;
        step.commit().await?;
        self.last = Some(last);
        Ok(done)
    }
}

/// Links to be added to the audit, whose end nobody else can move until the transaction is over.
struct Chain {
    number: i64,
    hash: String,
    links: Vec<(i64, String, String)>,
    key: Option<ChainKey>,
}

impl Chain {
    async fn end_of(
        step: &mut Transaction<'_, Database>,
        key: Option<ChainKey>,
    ) -> Result<Self, StoreError> {
        let last: Option<(i64, String)> = sqlx::query_as(LAST).fetch_optional(&mut **step).await?;
        let (number, hash) = last.unwrap_or_default();
        Ok(Self {
            number,
            hash,
            links: Vec::new(),
            key,
        })
    }

    fn add(&mut self, entries: &[String]) {
        for entry in entries {
            self.number += 1;
            self.hash = chained(self.key.as_ref(), &self.hash, entry);
            let link = (self.number, entry.clone(), self.hash.clone());
            self.links.push(link);
        }
    }

    /// Writes the links, and gives the last one's number and hash.
    async fn write(
        self,
        step: &mut Transaction<'_, Database>,
    ) -> Result<(i64, String), StoreError> {
        let mut rest = self.links.as_slice();
        while !rest.is_empty() {
            let (links, others) = rest.split_at(at_once(rest.len(), LINKS_AT_ONCE));
            let mut query = sqlx::QueryBuilder::new("INSERT INTO audit (number, entry, hash) ");
            query.push_values(links, |mut row, (number, entry, hash)| {
                row.push_bind(*number)
                    .push_bind(entry.as_str())
                    .push_bind(hash.as_str());
            });
            query.build().execute(&mut **step).await?;
            rest = others;
        }
        Ok((self.number, self.hash))
    }
}

/// The new rows at the head of these, as many as one statement writes.
fn new_rows(wanted: &[Write]) -> Vec<(&Row, &Vec<String>)> {
    let new = wanted.iter().map_while(|write| match write {
        Write::Insert { row, audit } => Some((&**row, audit)),
        Write::Change(_) | Write::Note(_) => None,
    });
    first_rows(new)
}

/// The changes at the head of these of one row each, and each of another row: as many as one statement writes.
fn single_changes(wanted: &[Write]) -> Vec<&Change> {
    let mut seen = HashSet::new();
    let single = wanted.iter().map_while(|write| match write {
        Write::Change(changes) if changes.len() == 1 => changes.first(),
        Write::Change(_) | Write::Insert { .. } | Write::Note(_) => None,
    });
    let others = single.take_while(|change| seen.insert(change.row.id.as_str()));
    first_rows(others)
}

/// Rows changed in one statement, each for itself; whether each had the version that was seen.
async fn change_each(
    step: &mut Transaction<'_, Database>,
    chain: &mut Chain,
    changes: &[&Change],
) -> Result<Vec<bool>, StoreError> {
    let values = vec![CHANGE_VALUES; changes.len()].join(", ");
    let text = AssertSqlSafe(format!("{CHANGE_ROWS}{values}{CHANGED}"));
    let mut query = sqlx::query(text);
    for change in changes {
        query = bound_change(query, &change.row, change.seen)?;
    }
    let told = query.fetch_all(&mut **step).await?;
    let ids: Result<HashSet<&str>, _> = told.iter().map(|row| row.try_get(0)).collect();
    let ids = ids?;
    let done = changes.iter().map(|change| {
        let done = ids.contains(change.row.id.as_str());
        if done {
            chain.add(&change.audit);
        }
        done
    });
    Ok(done.collect())
}

/// Several new rows, in one statement.
async fn insert_all(
    step: &mut Transaction<'_, Database>,
    rows: &[(&Row, &Vec<String>)],
) -> Result<(), StoreError> {
    let values = vec![ROW_VALUES; rows.len()].join(", ");
    let text = AssertSqlSafe(format!("{INSERT_ROWS}{values}"));
    let mut query = sqlx::query(text);
    for (row, _) in rows {
        query = bound_whole(query, row)?;
    }
    query.execute(&mut **step).await?;
    Ok(())
}

/// Several rows changed, or none.
async fn change_all(
    step: &mut Transaction<'_, Database>,
    chain: &mut Chain,
    changes: &[Change],
) -> Result<bool, StoreError> {
    let several = changes.len() > 1;
    if several {
        sqlx::query("SAVEPOINT several")
            .execute(&mut **step)
            .await?;
    }
    for change in changes {
        let query = bound_change(sqlx::query(CHANGE_ROW), &change.row, change.seen)?;
        if query.execute(&mut **step).await?.rows_affected() != 1 {
            if several {
                sqlx::query("ROLLBACK TO several")
                    .execute(&mut **step)
                    .await?;
            }
            return Ok(false);
        }
    }
    for change in changes {
        chain.add(&change.audit);
    }
    Ok(true)
}

type Query<'q> = sqlx::query::Query<'q, Database, sqlx::sqlite::SqliteArguments>;

/// Binds what an insert says of a row, in the order of [`whole`].
fn bound_whole<'q>(query: Query<'q>, row: &'q Row) -> Result<Query<'q>, StoreError> {
    let lifecycle = &row.lifecycle;
    Ok(query
        .bind(row.id.as_str())
        .bind(row.binding.as_str())
        .bind(row.owner.as_str())
        .bind(signed(lifecycle.version()))
        .bind(lifecycle.is_open())
        .bind(lifecycle.is_over())
        .bind(millis(lifecycle.asked_at()))
        .bind(lifecycle.ended_at().map(millis))
        .bind(serde_json::to_string(lifecycle)?)
        .bind(serde_json::to_string(&row.body)?)
        .bind(row.arguments.as_deref())
        .bind(row.content.as_deref())
        .bind(row.exclusive)
        .bind(row.due_at().map(millis))
        .bind(row.can_be_found())
        .bind(row.params.as_deref())
        .bind(team_text(row)?))
}

/// Binds what a change says of a row, in the order of [`change`].
fn bound_change<'q>(query: Query<'q>, row: &'q Row, seen: u64) -> Result<Query<'q>, StoreError> {
    let lifecycle = &row.lifecycle;
    Ok(query
        .bind(row.id.as_str())
        .bind(signed(seen))
        .bind(row.owner.as_str())
        .bind(signed(lifecycle.version()))
        .bind(lifecycle.is_open())
        .bind(lifecycle.is_over())
        .bind(lifecycle.ended_at().map(millis))
        .bind(serde_json::to_string(lifecycle)?)
        .bind(row.arguments.as_deref())
        .bind(row.content.as_deref())
        .bind(row.exclusive)
        .bind(row.due_at().map(millis))
        .bind(team_text(row)?))
}

/// Returns the people's side of a row as it is stored.
fn team_text(row: &Row) -> Result<Option<String>, StoreError> {
    let text = row.team.as_ref().map(serde_json::to_string);
    Ok(text.transpose()?)
}

pub(super) fn millis(moment: mcp_elicit_core::lifecycle::Timestamp) -> i64 {
    i64::try_from(moment.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The audit entry for a chain of an older version that goes on with a key.
const GOES_ON: &str = r#"{"event":"chain-keyed"}"#;

/// The last link, and the hash of the one before.
const LAST_TWO: &str = "SELECT entry, hash, coalesce((SELECT hash FROM audit WHERE number = last.number - 1), '') \
     FROM audit AS last ORDER BY number DESC LIMIT 1";

impl File {
    /// Refuses a chain whose last link was made with another key: what would be added could never be proved.
    pub(super) async fn fit_key(&mut self) -> Result<(), StoreError> {
        let Some(key) = self.key.clone().filter(|_| !self.opens_with_any_key) else {
            return Ok(());
        };
        let last: Option<(String, String, String)> = sqlx::query_as(LAST_TWO)
            .fetch_optional(self.connection()?)
            .await?;
        match last {
            Some((entry, hash, before))
                if is_keyed(&hash) && hash != chained(Some(&key), &before, &entry) =>
            {
                Err(StoreError::OtherKey)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The chain of an older version goes on with this one's key: from here on it cannot be made whole by whoever lacks that.
    pub(super) async fn go_on_keyed(&mut self) -> Result<(), StoreError> {
        let (number, hash) = self.last().await?;
        if self.key.is_none() || number == 0 || is_keyed(&hash) {
            return Ok(());
        }
        self.write_all(&[Write::Note(GOES_ON.to_owned())]).await?;
        Ok(())
    }
}
