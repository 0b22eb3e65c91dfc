//! A store in a PostgreSQL database, which gateways on several machines may share.
//!
//! | file | contents |
//! | --- | --- |
//! | `settings` | the address, the password, TLS |
//! | `database` | the connections, and statements that are repeated after a lost one |
//! | `migrations` | the checks of a database, and its layout |
//! | `statements` | every statement |
//! | `questions` | batches of writes |
//! | `lists` | lists, and the index of the texts in which a search looks |
//! | `record` | the record as the commands use it |
//! | `keys` | the check that the keys are those of the record |
//! | `record_keys` | the keys in the table, wrapped, and the copies in state folders |
//! | `replica` | the running gateways, and notices between them |
//! | `clock_offset` | the difference between this clock and the database's |
//! | `outbox` | messages to people |
//! | `drafts` | values that people have typed and not sent |
//! | `sealed` | values that are sealed anew |
//! | `state_tables` | tokens, blocked callers, and values that gateways share |

mod answered;
mod clock_offset;
#[cfg(test)]
#[cfg(unix)]
mod cut_commit_tests;
mod database;
#[cfg(test)]
#[cfg(unix)]
mod draft_tests;
mod drafts;
mod encoded_value;
#[cfg(unix)]
mod folder_socket;
mod keys;
#[cfg(test)]
#[cfg(unix)]
mod list_tests;
mod lists;
mod migrations;
mod moved;
mod outbox;
mod proven;
#[cfg(test)]
#[cfg(unix)]
mod public_schema_tests;
mod questions;
mod record;
mod record_keys;
mod replica;
mod sealed;
mod settings;
mod state_tables;
mod statements;
#[cfg(test)]
#[cfg(unix)]
pub(in crate::store) mod tests;

use std::ops::Range;
use std::sync::Arc;

use futures::FutureExt as _;
use mcp_elicit_core::lifecycle::Timestamp;
use tokio::sync::{Mutex, OnceCell};
use tokio_postgres::Row as Columns;
use tokio_postgres::types::ToSql;

pub use self::database::PostgresDatabase;
use self::lists::NewTexts;
use self::questions::{FoundBy, WriterState};
pub use self::record::PostgresRecord;
pub use self::replica::PostgresReplica;
pub use self::settings::{AddressError, PasswordSource, PostgresSettings};
pub use self::state_tables::PostgresTables;
use super::drafts::DraftStore;
use super::outbox::{Notification, NotificationFilter, Notified, TakenMessage, Tried, Untold};
use super::{
    AuditEntry, ChainKey, FinishedCall, KeyedContents, ListQuery, MOST_USED, OpenCount,
    OpenFigures, Purge, RecordContents, RecordFuture, RecordStore, RecordStoreError, ResealedRow,
    Row, RunningCall, SERVERS_LEARNED, SealedQuery, SealedRow, StoreSize, StoredGrant, StoredOf,
    UnattendedCall, UsedValue, Write, smallest_number, tell_left_out,
};
use crate::audit::{AuditFilter, AuditedEvent};
use crate::encryption::{Encryption, random_id};
use crate::used::UsedKind;
use crate::{IdentityKey, OwnKeys, stored_bytes};

/// The number of links that are read at once, to select some of them.
const LINKS_AT_ONCE: i64 = 1_000;
/// The number of ended questions deleted at once.
const PURGED_AT_ONCE: i64 = 1_000;

/// A store in a PostgreSQL database.
#[derive(Clone)]
pub struct Postgres {
    database: PostgresDatabase,
    chain: Option<ChainKey>,
    identity: Option<IdentityKey>,
    encryption: Option<Encryption>,
    /// The name of this gateway, whose own changes need no notice.
    replica: Option<String>,
    ready: Arc<OnceCell<()>>,
    /// Batches are written one after the other.
    writer: Arc<Mutex<WriterState>>,
    new_texts: Arc<NewTexts>,
}

impl Postgres {
    /// Creates a store in this database, which is connected to on demand.
    pub fn at(database: PostgresDatabase) -> Self {
        Self {
            database,
            chain: None,
            identity: None,
            encryption: None,
            replica: None,
            ready: Arc::default(),
            writer: Arc::default(),
            new_texts: Arc::default(),
        }
    }

    /// Sets the key for the links of the audit.
    #[must_use]
    pub fn keyed(mut self, key: ChainKey) -> Self {
        self.chain = Some(key);
        self
    }

    /// Sets the keys of the values and of the audit's links. The record is opened only if they are its keys; a new record
    /// takes them.
    #[must_use]
    pub fn with_keys(mut self, keys: &OwnKeys) -> Self {
        self.encryption = Some(keys.encryption.clone());
        self.identity = Some(keys.identity.clone());
        self.keyed(keys.chain())
    }

    /// Sets the running gateway that writes. Others are told of changes of their questions.
    #[must_use]
    pub fn of(mut self, replica: &PostgresReplica) -> Self {
        self.replica = Some(replica.name().to_owned());
        self
    }

    /// Returns its database.
    pub fn database(&self) -> &PostgresDatabase {
        &self.database
    }

    /// Connects to the database, migrates its tables to this version's layout, and checks the keys.
    ///
    /// # Errors
    /// If the database cannot be reached or used, or the keys are those of another record.
    pub async fn ready(&self) -> Result<(), RecordStoreError> {
        self.ready.get_or_try_init(|| self.open()).await?;
        Ok(())
    }

    /// Returns the contents that need keys.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn keyed_contents(&self) -> Result<KeyedContents, RecordStoreError> {
        let row = self.database.row(&statements::KEYED_CONTENTS, &[]).await?;
        let count = |at| unsigned(&row, at);
        Ok(KeyedContents {
            sealed: count(0)?,
            keyed_links: count(1)?,
            links: count(2)?,
        })
    }

    /// Returns the SQL that a migration would run; empty if there is none.
    ///
    /// # Errors
    /// If the database cannot be reached or used.
    pub async fn planned_migration(&self) -> Result<String, RecordStoreError> {
        let client = self.database.connect().await?;
        migrations::planned(&client, self.database.settings().address()).await
    }

    /// Returns `true` if the database has no record, or one without an event. Nothing is written.
    ///
    /// # Errors
    /// If the database cannot be reached or used.
    pub async fn is_unused(&self) -> Result<bool, RecordStoreError> {
        let client = self.database.connect().await?;
        let address = self.database.settings().address();
        if migrations::is_new(&client, address).await? {
            return Ok(true);
        }
        // A role without the rights gets the error of the next step.
        let Ok(end) = database::query(&client, &statements::AUDIT_END, &[]).await else {
            return Ok(false);
        };
        let end = end.first().map(|row| unsigned(row, 0)).transpose()?;
        Ok(end == Some(0))
    }

    async fn opened(&self) -> Result<&PostgresDatabase, RecordStoreError> {
        self.ready().await?;
        Ok(&self.database)
    }

    /// Returns questions.
    async fn questions(
        &self,
        statement: &statements::Statement,
        values: database::StatementValues<'_>,
    ) -> Result<Vec<Row>, RecordStoreError> {
        let rows = self.opened().await?.rows(statement, values).await?;
        rows.iter().map(read).collect()
    }
}

/// Returns a row of a list; `None`, and a log entry, if this version cannot read it.
fn readable(row: &Columns) -> Option<Row> {
    let found = read(row).ok();
    if found.is_none() {
        tell_left_out(row.try_get("id").unwrap_or_default());
    }
    found
}

fn read(row: &Columns) -> Result<Row, RecordStoreError> {
    let team: Option<&str> = row.try_get("team")?;
    Ok(Row {
        id: row.try_get("id")?,
        binding: row.try_get("same")?,
        owner: row.try_get("owner")?,
        exclusive: row.try_get("claimed")?,
        lifecycle: serde_json::from_str(row.try_get("exchange")?)?,
        body: Arc::new(serde_json::from_str(row.try_get("body")?)?),
        arguments: row.try_get("arguments")?,
        content: row.try_get("content")?,
        params: row.try_get("params")?,
        team: team.map(serde_json::from_str).transpose()?,
    })
}

fn read_call(row: &Columns) -> Result<FinishedCall, RecordStoreError> {
    Ok(FinishedCall {
        id: row.try_get("id")?,
        binding: row.try_get("same")?,
        result: row.try_get("result")?,
        until: time(row, "until")?,
    })
}

fn read_grant(row: &Columns) -> Result<StoredGrant, RecordStoreError> {
    Ok(StoredGrant {
        key: row.try_get("key")?,
        question: row.try_get("question")?,
        rule: row.try_get("rule")?,
        rule_digest: row.try_get("rule_digest")?,
        answers: row.try_get("answers")?,
        at: time(row, "at")?,
        until: time(row, "until")?,
    })
}

fn read_link(row: &Columns) -> Result<AuditEntry, RecordStoreError> {
    Ok(AuditEntry {
        number: unsigned(row, 0)?,
        entry: row.try_get(1)?,
        hash: row.try_get(2)?,
    })
}

/// Reads a link with the columns by which it is found. If they are not those of its entry, its hash is wrong too: whoever has
/// changed them hides it from a search, and the verification of the chain says so.
fn read_whole_link(row: &Columns) -> Result<AuditEntry, RecordStoreError> {
    let link = read_link(row)?;
    let found_by = FoundBy {
        at: row.try_get(3)?,
        event: row.try_get(4)?,
        question: row.try_get(5)?,
    };
    if found_by == FoundBy::of(&link.entry) {
        return Ok(link);
    }
    let hash = format!("changed columns {}", link.hash);
    Ok(AuditEntry { hash, ..link })
}

fn unsigned(row: &Columns, at: usize) -> Result<u64, RecordStoreError> {
    let number: i64 = row.try_get(at)?;
    Ok(u64::try_from(number).unwrap_or(0))
}

fn time(row: &Columns, column: &str) -> Result<Timestamp, RecordStoreError> {
    let millis: i64 = row.try_get(column)?;
    Ok(Timestamp::from_millis(u64::try_from(millis).unwrap_or(0)))
}

fn millis(moment: Timestamp) -> i64 {
    signed(moment.as_millis())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn counted(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl RecordStore for Postgres {
    fn write(&self, wanted: Arc<Vec<Write>>) -> RecordFuture<'_, Vec<bool>> {
        let store = self.clone();
        // To its end, even if nobody waits for it any more.
        self.database
            .spawned(async move {
                store.ready().await?;
                let mut state = store.writer.lock().await;
                let by = questions::WrittenBy {
                    replica: store.replica.as_deref(),
                    chain: store.chain.as_ref(),
                };
                let done = questions::write_all(&store.database, &mut state, by, &wanted).await;
                drop(state);
                store.new_texts.wrote(&store.database, wanted.len());
                done
            })
            .boxed()
    }

    fn find(&self, id: String) -> RecordFuture<'_, Option<Row>> {
        async move {
            if !lists::can_be_stored(&id) {
                return Ok(None);
            }
            Ok(self.questions(&statements::FIND, &[&id]).await?.pop())
        }
        .boxed()
    }

    fn by_binding(&self, binding: String) -> RecordFuture<'_, Vec<Row>> {
        async move { self.questions(&statements::BY_BINDING, &[&binding]).await }.boxed()
    }

    fn list(&self, query: ListQuery) -> RecordFuture<'_, Vec<Row>> {
        async move {
            let is_search = !query.matching.words.is_empty();
            let found = lists::list(self.opened().await?, query).await;
            if is_search {
                // For the next one.
                self.new_texts.start(&self.database);
            }
            found
        }
        .boxed()
    }

    fn open_figures(&self) -> RecordFuture<'_, OpenFigures> {
        async move {
            let rows = self.opened().await?;
            let rows = rows.rows(&statements::OPEN_BY_SERVER, &[]).await?;
            let mut found = OpenFigures::default();
            for row in rows {
                let oldest = Timestamp::from_millis(unsigned(&row, 2)?);
                found.oldest = Some(found.oldest.map_or(oldest, |known| known.min(oldest)));
                found.by_server.push((row.try_get(0)?, unsigned(&row, 1)?));
            }
            Ok(found)
        }
        .boxed()
    }

    fn size(&self) -> RecordFuture<'_, Option<StoreSize>> {
        async move {
            let row = self.opened().await?.row(&statements::SIZE, &[]).await?;
            let on_disk = unsigned(&row, 0)?;
            let used = on_disk;
            Ok(Some(StoreSize { on_disk, used }))
        }
        .boxed()
    }

    fn waiting(&self) -> RecordFuture<'_, usize> {
        async move {
            let row = self.opened().await?.row(&statements::WAITING, &[]).await?;
            Ok(usize::try_from(unsigned(&row, 0)?).unwrap_or(usize::MAX))
        }
        .boxed()
    }

    fn waiting_of(&self, principal: String, server: Option<String>) -> RecordFuture<'_, OpenCount> {
        async move {
            let database = self.opened().await?;
            let row = database
                .row(&statements::WAITING_OF, &[&principal, &server])
                .await?;
            let count =
                |at| Ok::<_, RecordStoreError>(usize::try_from(unsigned(&row, at)?).unwrap_or(0));
            Ok(OpenCount {
                of_caller: count(0)?,
                of_server: count(1)?,
            })
        }
        .boxed()
    }

    fn stored_bytes(&self) -> RecordFuture<'_, Vec<StoredOf>> {
        async move {
            let each = signed(stored_bytes::ROW);
            let database = self.opened().await?;
            let rows = database.rows(&statements::STORED_BYTES, &[&each]).await?;
            let sum = |row: &Columns| {
                Ok(StoredOf {
                    caller: row.try_get(0)?,
                    server: row.try_get(1)?,
                    bytes: unsigned(row, 2)?,
                })
            };
            rows.iter().map(sum).collect()
        }
        .boxed()
    }

    fn left_over(&self) -> RecordFuture<'_, Vec<String>> {
        async move {
            let database = self.opened().await?;
            let rows = database.rows(&statements::LEFT_OVER, &[]).await?;
            rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
        }
        .boxed()
    }

    fn due(&self, now: Timestamp, most: usize) -> RecordFuture<'_, Vec<Row>> {
        async move {
            let (now, most) = (millis(now), counted(most));
            let database = self.opened().await?;
            let rows = database.rows(&statements::DUE, &[&now, &most]).await?;
            Ok(rows.iter().filter_map(readable).collect())
        }
        .boxed()
    }

    fn purge(&self, purge: Purge) -> RecordFuture<'_, usize> {
        async move {
            let before = millis(purge.before);
            let database = self.opened().await?;
            database
                .execute(
                    &statements::PURGE_NOTIFICATIONS,
                    &[&before, &purge.principal, &purge.unanswered_of],
                )
                .await?;
            // In parts: a long transaction would hold locks, and rows that vacuum cannot remove.
            let mut all = 0;
            loop {
                let values: &[&(dyn ToSql + Sync)] = &[
                    &before,
                    &purge.principal,
                    &purge.unanswered_of,
                    &PURGED_AT_ONCE,
                ];
                let count = database.execute(&statements::PURGE, values).await?;
                all += count;
                if count < PURGED_AT_ONCE.unsigned_abs() {
                    return Ok(usize::try_from(all).unwrap_or(usize::MAX));
                }
            }
        }
        .boxed()
    }

    fn purgeable(&self, purge: Purge) -> RecordFuture<'_, usize> {
        async move {
            let before = millis(purge.before);
            let database = self.opened().await?;
            let row = database
                .row(
                    &statements::PURGEABLE,
                    &[&before, &purge.principal, &purge.unanswered_of],
                )
                .await?;
            Ok(usize::try_from(unsigned(&row, 0)?).unwrap_or(usize::MAX))
        }
        .boxed()
    }

    fn contents(&self) -> RecordFuture<'_, RecordContents> {
        async move {
            let database = self.opened().await?;
            let row = database.row(&statements::CONTENTS, &[]).await?;
            let number = |column| unsigned(&row, column);
            let oldest: Option<i64> = row.try_get(3)?;
            let oldest = oldest.and_then(|at| u64::try_from(at).ok());
            Ok(RecordContents {
                waiting: number(0)?,
                undelivered: number(1)?,
                ended: number(2)?,
                oldest_ended: oldest.map(Timestamp::from_millis),
                running_calls: number(4)?,
                results: number(5)?,
                grants: number(6)?,
                messages: number(7)?,
                links: number(8)?,
            })
        }
        .boxed()
    }

    fn keep_call(&self, call: FinishedCall) -> RecordFuture<'_, ()> {
        async move {
            let until = millis(call.until);
            self.opened()
                .await?
                .execute(
                    &statements::KEEP_CALL,
                    &[&call.id, &call.binding, &call.result, &until],
                )
                .await?;
            Ok(())
        }
        .boxed()
    }

    fn take_call(&self, id: String) -> RecordFuture<'_, Option<FinishedCall>> {
        async move {
            // After a lost connection the same taker finds it again, and nobody else does.
            let taker = random_id()?;
            let database = self.opened().await?;
            let values: database::StatementValues<'_> = &[&id, &taker];
            let rows = database.rows(&statements::TAKE_CALL, values).await?;
            let Some(call) = rows.first().map(read_call).transpose()? else {
                return Ok(None);
            };
            let remove = &statements::REMOVE_CALL;
            if let Err(fault) = database.execute(remove, values).await {
                // Nobody else can take it; it is deleted when its time is over.
                tracing::warn!(%fault, "a result that was taken could not be deleted yet");
            }
            Ok(Some(call))
        }
        .boxed()
    }

    fn stored_call(&self, id: String) -> RecordFuture<'_, Option<FinishedCall>> {
        async move {
            let database = self.opened().await?;
            let rows = database.rows(&statements::STORED_CALL, &[&id]).await?;
            rows.first().map(read_call).transpose()
        }
        .boxed()
    }

    fn begin_call(
        &self,
        id: String,
        binding: String,
        running: RunningCall,
        until: Timestamp,
    ) -> RecordFuture<'_, ()> {
        async move {
            let until = millis(until);
            let values: database::StatementValues<'_> =
                &[&id, &binding, &running.owner, &running.link, &until];
            let database = self.opened().await?;
            database.execute(&statements::BEGIN_CALL, values).await?;
            Ok(())
        }
        .boxed()
    }

    fn end_call(&self, id: String) -> RecordFuture<'_, ()> {
        async move {
            let database = self.opened().await?;
            database.execute(&statements::END_CALL, &[&id]).await?;
            Ok(())
        }
        .boxed()
    }

    fn calls(
        &self,
        binding: Option<String>,
        now: Timestamp,
    ) -> RecordFuture<'_, Vec<UnattendedCall>> {
        async move {
            let now = millis(now);
            let database = self.opened().await?;
            let rows = database.rows(&statements::CALLS, &[&binding, &now]).await?;
            let read = |row: &Columns| -> Result<UnattendedCall, RecordStoreError> {
                let owner: Option<String> = row.try_get(3)?;
                let link = row.try_get(4)?;
                Ok(UnattendedCall {
                    id: row.try_get(0)?,
                    binding: row.try_get(1)?,
                    until: Timestamp::from_millis(unsigned(row, 2)?),
                    running: owner.map(|owner| RunningCall { owner, link }),
                })
            };
            rows.iter().map(read).collect()
        }
        .boxed()
    }

    fn expire_calls(&self, now: Timestamp) -> RecordFuture<'_, ()> {
        async move {
            let now = millis(now);
            let database = self.opened().await?;
            database.execute(&statements::EXPIRE_CALLS, &[&now]).await?;
            let running = &statements::EXPIRE_RUNNING;
            database.execute(running, &[&now]).await?;
            Ok(())
        }
        .boxed()
    }

    fn versions(&self, ids: Vec<String>) -> RecordFuture<'_, Vec<(String, u64)>> {
        async move {
            let database = self.opened().await?;
            let rows = database.rows(&statements::VERSIONS_NOW, &[&ids]).await?;
            let read = |row: &Columns| Ok((row.try_get(0)?, unsigned(row, 1)?));
            rows.iter().map(read).collect()
        }
        .boxed()
    }

    fn keep_learned(
        &self,
        server: String,
        learned: String,
        now: Timestamp,
    ) -> RecordFuture<'_, ()> {
        async move {
            let (now, most) = (millis(now), counted(SERVERS_LEARNED));
            let database = self.opened().await?;
            let values: database::StatementValues<'_> = &[&server, &learned, &now];
            database.execute(&statements::KEEP_LEARNED, values).await?;
            let forget = &statements::FORGET_LEARNED;
            database.execute(forget, &[&most]).await?;
            Ok(())
        }
        .boxed()
    }

    fn learned(&self, server: String) -> RecordFuture<'_, Option<String>> {
        async move {
            let database = self.opened().await?;
            let rows = database.rows(&statements::LEARNED, &[&server]).await?;
            rows.first().map(|row| Ok(row.try_get(0)?)).transpose()
        }
        .boxed()
    }

    fn keep_grant(&self, grant: StoredGrant, given: Timestamp) -> RecordFuture<'_, bool> {
        async move {
            let (at, until) = (millis(grant.at), millis(grant.until));
            let given = millis(given);
            let values: database::StatementValues<'_> = &[
                &grant.key,
                &grant.question,
                &grant.rule,
                &grant.rule_digest,
                &grant.answers,
                &at,
                &until,
                &given,
            ];
            let database = self.opened().await?;
            let stored = database.execute(&statements::KEEP_GRANT, values).await?;
            Ok(stored == 1)
        }
        .boxed()
    }

    fn grants(&self, now: Timestamp) -> RecordFuture<'_, Vec<StoredGrant>> {
        async move {
            let now = millis(now);
            let database = self.opened().await?;
            let expire = &statements::EXPIRE_GRANTS;
            database.execute(expire, &[&now]).await?;
            let rows = database.rows(&statements::GRANTS, &[]).await?;
            rows.iter().map(read_grant).collect()
        }
        .boxed()
    }

    fn drop_grants(&self, keys: Vec<String>) -> RecordFuture<'_, ()> {
        async move {
            let database = self.opened().await?;
            database.execute(&statements::DROP_GRANTS, &[&keys]).await?;
            Ok(())
        }
        .boxed()
    }

    fn sealed_rows(&self, query: SealedQuery) -> RecordFuture<'_, Vec<SealedRow>> {
        async move { sealed::sealed_rows(self.opened().await?, &query).await }.boxed()
    }

    fn reseal(&self, rows: Vec<ResealedRow>) -> RecordFuture<'_, usize> {
        async move { sealed::reseal(self.opened().await?, &rows).await }.boxed()
    }

    fn use_once(&self, used: UsedValue, now: Timestamp) -> RecordFuture<'_, bool> {
        async move {
            let (now, until, most) = (millis(now), millis(used.until), counted(MOST_USED));
            let (kind, digest) = (used.kind.as_str(), used.digest.as_slice());
            let database = self.opened().await?;
            database.execute(&statements::EXPIRE_USED, &[&now]).await?;
            // Made again after a lost connection, it was used before: that is the safe side.
            let values: database::StatementValues<'_> = &[&kind, &digest, &until, &most];
            Ok(database.execute(&statements::USE, values).await? == 1)
        }
        .boxed()
    }

    fn drafts(&self) -> Option<&dyn DraftStore> {
        Some(self)
    }

    fn is_used(&self, kind: UsedKind, digest: [u8; 32]) -> RecordFuture<'_, bool> {
        async move {
            let values: database::StatementValues<'_> = &[&kind.as_str(), &digest.as_slice()];
            let database = self.opened().await?;
            let row = database.row(&statements::IS_USED, values).await?;
            Ok(row.try_get(0)?)
        }
        .boxed()
    }

    fn audit(&self, from: u64, most: usize) -> RecordFuture<'_, Vec<AuditEntry>> {
        async move {
            let (from, most) = (smallest_number(from), counted(most));
            let database = self.opened().await?;
            let rows = database.rows(&statements::AUDIT, &[&from, &most]).await?;
            rows.iter().map(read_whole_link).collect()
        }
        .boxed()
    }

    fn audit_matching(
        &self,
        filter: AuditFilter,
        within: Range<u64>,
        most: usize,
    ) -> RecordFuture<'_, Vec<AuditEntry>> {
        async move {
            let database = self.opened().await?;
            let some = |list: &Vec<String>| (!list.is_empty()).then(|| list.clone());
            let (events, questions) = (some(&filter.events), some(&filter.questions));
            let (since, until) = (filter.since.map(millis), filter.until.map(millis));
            let (from, mut before) = (signed(within.start), signed(within.end));
            let mut found = Vec::new();
            // What the columns select is read in parts, and the rest of the conditions are checked here.
            while found.len() < most {
                let values: database::StatementValues<'_> = &[
                    &from,
                    &before,
                    &events,
                    &filter.question,
                    &questions,
                    &since,
                    &until,
                    &LINKS_AT_ONCE,
                ];
                let rows = database.rows(&statements::AUDIT_MATCHING, values).await?;
                for row in &rows {
                    let link = read_link(row)?;
                    before = signed(link.number);
                    let entry = AuditedEvent::read(&link.entry);
                    let fits = filter.is_empty() || entry.is_some_and(|entry| filter.fits(&entry));
                    if fits && found.len() < most {
                        found.push(link);
                    }
                }
                if counted(rows.len()) < LINKS_AT_ONCE {
                    break;
                }
            }
            Ok(found)
        }
        .boxed()
    }

    fn audit_end(&self) -> RecordFuture<'_, u64> {
        async move {
            let database = self.opened().await?;
            unsigned(&database.row(&statements::AUDIT_END, &[]).await?, 0)
        }
        .boxed()
    }

    fn untold(&self, most: usize) -> RecordFuture<'_, Vec<Untold>> {
        async move { outbox::untold(self.opened().await?, most).await }.boxed()
    }

    fn notified(&self, notified: Notified) -> RecordFuture<'_, ()> {
        async move { outbox::notified(self.opened().await?, notified).await }.boxed()
    }

    fn take_notifications(
        &self,
        now: Timestamp,
        lease_end: Timestamp,
        most: usize,
        busy: Vec<String>,
    ) -> RecordFuture<'_, Vec<Notification>> {
        async move { outbox::take(self.opened().await?, now, lease_end, most, busy).await }.boxed()
    }

    fn finish_notification<'a>(
        &'a self,
        taken: TakenMessage<'a>,
        tried: Tried,
        now: Timestamp,
    ) -> RecordFuture<'a, bool> {
        async move { outbox::finish(self.opened().await?, taken, &tried, now).await }.boxed()
    }

    fn notify_again(&self, id: String, now: Timestamp, until: Timestamp) -> RecordFuture<'_, bool> {
        async move {
            let (now, until) = (millis(now), millis(until));
            let database = self.opened().await?;
            let values: database::StatementValues<'_> = &[&id, &now, &until];
            Ok(database.execute(&statements::NOTIFY_AGAIN, values).await? == 1)
        }
        .boxed()
    }

    fn notifications(
        &self,
        filter: NotificationFilter,
        most: usize,
    ) -> RecordFuture<'_, Vec<Notification>> {
        async move { outbox::list(self.opened().await?, &filter, most).await }.boxed()
    }
}
