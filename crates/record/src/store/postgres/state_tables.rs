//! The tokens of programs, the blocked callers, and the values that gateways share, in PostgreSQL.
//!
//! The methods are not asynchronous: the calling thread waits for the database, one round trip for a lookup by an index.
//! While the database is away, one of them waits for it each second, and all others fail at once: requests are checked
//! here, and must not wait one after the other.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::join;
use mcp_elicit_core::lifecycle::Timestamp;
use tokio::time::Instant;
use tokio_postgres::{Client, Row as Columns};

use super::super::api_tokens::{
    Added, ApiToken, ApiTokenStore, BlockedCaller, MOST, TokenOwner, seconds,
};
use super::super::shared_rows::{
    RowChanges, SharedEntity, SharedRow, SharedRowStore, SharedRowsChange,
};
use super::super::{DatabaseError, DatabaseFault, RecordStoreError};
use super::database::{BEGIN, PostgresDatabase, StatementValues, execute, is_away, query};
use super::statements::Statement;
use super::{counted, signed, statements, unsigned};

/// The time for which a database that is away is not waited for again.
const AWAY: Duration = Duration::from_secs(1);

/// The shared tables of a database.
#[derive(Clone, Debug)]
pub struct PostgresTables {
    database: PostgresDatabase,
    /// When the database was seen to be away.
    away: Arc<Mutex<Option<Instant>>>,
}

impl PostgresTables {
    /// Creates the tables of this database. They need none of the record's keys.
    pub fn at(database: PostgresDatabase) -> Self {
        Self {
            database,
            away: Arc::default(),
        }
    }

    fn rows(
        &self,
        statement: &Statement,
        values: StatementValues<'_>,
    ) -> Result<Vec<Columns>, RecordStoreError> {
        self.wait(self.database.rows(statement, values))
    }

    fn execute(
        &self,
        statement: &Statement,
        values: StatementValues<'_>,
    ) -> Result<u64, RecordStoreError> {
        self.wait(self.database.execute(statement, values))
    }

    fn is_some(
        &self,
        statement: &Statement,
        values: StatementValues<'_>,
    ) -> Result<bool, RecordStoreError> {
        let row = self.wait(self.database.row(statement, values))?;
        Ok(row.try_get(0)?)
    }

    /// Waits for work, unless the database was away a moment ago.
    fn wait<T>(
        &self,
        work: impl Future<Output = Result<T, RecordStoreError>>,
    ) -> Result<T, RecordStoreError> {
        let seen = || self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *seen();
        if since.is_some_and(|since| since.elapsed() < AWAY) {
            let why = std::io::Error::other("the database was away a moment ago");
            return Err(DatabaseError::of_server(DatabaseFault::Away, why).into());
        }
        let done = self.database.wait(work);
        match &done {
            Err(fault) if fault.is_in_database() => *seen() = Some(Instant::now()),
            Ok(_) if since.is_some() => *seen() = None,
            Ok(_) | Err(_) => {}
        }
        done
    }
}

impl ApiTokenStore for PostgresTables {
    fn add(&self, token: &ApiToken) -> Result<Added, RecordStoreError> {
        let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.as_str()).collect();
        let values: StatementValues<'_> = &[
            &token.id,
            &token.name,
            &token.hash,
            &scopes.join(" "),
            &token.person(),
            &(token.owner == Some(TokenOwner::Nobody)),
            &signed(token.made_at),
            &token.expires_at.map(signed),
            &token.revoked_at.map(signed),
            &token.used_at.map(signed),
            &counted(MOST),
        ];
        if self.execute(&statements::ADD_TOKEN, values)? == 1 {
            return Ok(Added::Yes);
        }
        // A full table takes none, known or not.
        let is_full = self.tokens()?.len() >= MOST;
        Ok(if is_full { Added::Full } else { Added::Already })
    }

    fn tokens(&self) -> Result<Vec<ApiToken>, RecordStoreError> {
        let rows = self.rows(&statements::TOKENS, &[])?;
        rows.iter().map(token).collect()
    }

    fn find(&self, id: &str) -> Result<Option<ApiToken>, RecordStoreError> {
        let rows = self.rows(&statements::FIND_TOKEN, &[&id])?;
        rows.first().map(token).transpose()
    }

    fn count_named(&self, name: &str) -> Result<usize, RecordStoreError> {
        let rows = self.rows(&statements::COUNT_NAMED, &[&name])?;
        let count = rows.first().map_or(Ok(0), |row| unsigned(row, 0))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    fn of_person(&self, person: &str) -> Result<Vec<String>, RecordStoreError> {
        let rows = self.rows(&statements::TOKENS_OF, &[&person])?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    fn revoke(&self, id: &str, now: Timestamp) -> Result<bool, RecordStoreError> {
        Ok(self.execute(&statements::REVOKE, &[&id, &signed(seconds(now))])? > 0)
    }

    fn remove(&self, id: &str) -> Result<(), RecordStoreError> {
        self.execute(&statements::REMOVE_TOKEN, &[&id]).map(drop)
    }

    fn prune(&self, now: Timestamp) -> Result<usize, RecordStoreError> {
        let count = self.execute(&statements::PRUNE_TOKENS, &[&signed(seconds(now))])?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    fn note_use(&self, id: &str, now: Timestamp) -> Result<(), RecordStoreError> {
        let values: StatementValues<'_> = &[&id, &signed(seconds(now))];
        self.execute(&statements::NOTE_USE, values).map(drop)
    }

    fn block(&self, caller: &BlockedCaller) -> Result<Added, RecordStoreError> {
        let (blocked_at, most) = (signed(caller.blocked_at), counted(MOST));
        let values: StatementValues<'_> = &[&caller.issuer, &caller.subject, &blocked_at, &most];
        if self.execute(&statements::BLOCK, values)? == 1 {
            return Ok(Added::Yes);
        }
        let known = self.is_blocked(&caller.issuer, &caller.subject)?;
        Ok(if known { Added::Already } else { Added::Full })
    }

    fn unblock(&self, issuer: &str, subject: &str) -> Result<bool, RecordStoreError> {
        Ok(self.execute(&statements::UNBLOCK, &[&issuer, &subject])? > 0)
    }

    fn blocked(&self) -> Result<Vec<BlockedCaller>, RecordStoreError> {
        let rows = self.rows(&statements::BLOCKED, &[])?;
        let caller = |row: &Columns| {
            Ok(BlockedCaller {
                issuer: row.try_get(0)?,
                subject: row.try_get(1)?,
                blocked_at: unsigned(row, 2)?,
            })
        };
        rows.iter().map(caller).collect()
    }

    fn is_blocked(&self, issuer: &str, subject: &str) -> Result<bool, RecordStoreError> {
        self.is_some(&statements::IS_BLOCKED, &[&issuer, &subject])
    }
}

fn token(row: &Columns) -> Result<ApiToken, RecordStoreError> {
    let scopes: &str = row.try_get("scopes")?;
    let owner: Option<String> = row.try_get("owner")?;
    let nobody: bool = row.try_get("unattended")?;
    let positive = |number: i64| u64::try_from(number).unwrap_or(0);
    let time = |column| {
        let at: Option<i64> = row.try_get(column)?;
        Ok::<_, RecordStoreError>(at.map(positive))
    };
    Ok(ApiToken {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        hash: row.try_get("hash")?,
        // A scope of a later version permits nothing here.
        scopes: scopes
            .split(' ')
            .filter_map(|name| name.parse().ok())
            .collect(),
        owner: match owner {
            Some(person) => Some(TokenOwner::Person(person)),
            None if nobody => Some(TokenOwner::Nobody),
            None => None,
        },
        made_at: positive(row.try_get("made_at")?),
        expires_at: time("expires_at")?,
        revoked_at: time("revoked_at")?,
        used_at: time("used_at")?,
    })
}

impl SharedRowStore for PostgresTables {
    fn version(&self, entity: SharedEntity) -> Result<u64, RecordStoreError> {
        let rows = self.rows(&statements::SHARED_VERSION, &[&entity.name])?;
        rows.first().map_or(Ok(0), |row| unsigned(row, 0))
    }

    fn rows(&self, entity: SharedEntity) -> Result<(u64, Vec<SharedRow>), RecordStoreError> {
        let rows = PostgresTables::rows(self, &statements::SHARED_ROWS, &[&entity.name])?;
        versioned(&rows)
    }

    fn change(
        &self,
        entity: SharedEntity,
        known: u64,
        change: &mut SharedRowsChange<'_>,
    ) -> Result<u64, RecordStoreError> {
        self.wait(self.change_shared(entity, known, change))
    }
}

impl PostgresTables {
    async fn change_shared(
        &self,
        entity: SharedEntity,
        known: u64,
        change: &mut SharedRowsChange<'_>,
    ) -> Result<u64, RecordStoreError> {
        let name = entity.name;
        let begin = &statements::BEGIN_SHARED;
        self.database.execute(begin, &[&name]).await?;
        let client = self.database.client().await?;
        let (before, changes) = match self.decided(&client, name, known, change).await {
            Ok((before, Some(changes))) => (before, changes),
            done => {
                // A connection that cannot do this has ended, and its transaction with it.
                let _ended = client.batch_execute("ROLLBACK").await;
                return done.map(|(before, _)| before);
            }
        };
        match write(&client, name, before, &changes).await {
            Ok(()) => Ok(before + 1),
            Err(fault) => {
                let _ended = client.batch_execute("ROLLBACK").await;
                drop(client);
                if !is_away(&fault) {
                    return Err(fault);
                }
                // The version says if the change was committed; only this one can have made it so in the meantime, or
                // a later one, which has seen it.
                let locked = self
                    .database
                    .rows(&statements::LOCK_SHARED, &[&name])
                    .await?;
                let now = locked.first().map_or(Ok(0), |row| unsigned(row, 0))?;
                if now > before { Ok(now) } else { Err(fault) }
            }
        }
    }

    /// Begins a transaction, locks the value and lets the change decide.
    async fn decided(
        &self,
        client: &Client,
        name: &str,
        known: u64,
        change: &mut SharedRowsChange<'_>,
    ) -> Result<(u64, Option<RowChanges>), RecordStoreError> {
        let values: StatementValues<'_> = &[&name];
        let (begun, locked) = join!(
            client.batch_execute(BEGIN),
            query(client, &statements::LOCK_SHARED, values),
        );
        begun?;
        let before = locked?.first().map_or(Ok(0), |row| unsigned(row, 0))?;
        let read = if before == known {
            None
        } else {
            Some(versioned(&query(client, &statements::SHARED_ROWS, &[&name]).await?)?.1)
        };
        let changes = change(before, read).filter(|changes| *changes != RowChanges::default());
        Ok((before, changes))
    }
}

/// Writes a change and commits.
async fn write(
    client: &Client,
    name: &str,
    before: u64,
    changes: &RowChanges,
) -> Result<(), RecordStoreError> {
    let removed = |of: fn(&(String, String)) -> &str| -> Vec<&str> {
        changes.removed.iter().map(of).collect()
    };
    let written =
        |of: fn(&SharedRow) -> &str| -> Vec<&str> { changes.written.iter().map(of).collect() };
    let (kinds, ids) = (removed(|key| &key.0), removed(|key| &key.1));
    let values: StatementValues<'_> = &[&name, &kinds, &ids];
    execute(client, &statements::REMOVE_SHARED, values).await?;
    let values: StatementValues<'_> = &[
        &name,
        &written(|row| &row.key.0),
        &written(|row| &row.key.1),
        &written(|row| &row.value),
    ];
    execute(client, &statements::WRITE_SHARED, values).await?;
    let after = signed(before + 1);
    let set = &statements::SET_SHARED_VERSION;
    execute(client, set, &[&name, &after]).await?;
    client.batch_execute("COMMIT").await?;
    Ok(())
}

/// Reads a version and its rows.
fn versioned(rows: &[Columns]) -> Result<(u64, Vec<SharedRow>), RecordStoreError> {
    let version = rows.first().map_or(Ok(0), |row| unsigned(row, 0))?;
    let mut found = Vec::new();
    for row in rows {
        let kind: Option<String> = row.try_get(1)?;
        if let Some(kind) = kind {
            found.push(SharedRow {
                key: (kind, row.try_get(2)?),
                value: row.try_get(3)?,
            });
        }
    }
    Ok((version, found))
}
