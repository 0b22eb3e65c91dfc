//! The tokens of programs and the blocked callers, in SQLite.

use mcp_elicit_core::lifecycle::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction};
use serde::Deserialize;

use super::super::super::api_tokens::{
    Added, ApiToken, ApiTokenStore, BlockedCaller, MOST, TokenOwner, seconds,
};
use super::super::super::{Crash, RecordStoreError};
use super::super::questions::signed;
use super::{StateTables, UsedTables, unsigned};

/// The file of earlier versions.
pub(super) const OLD_FILE: &str = "api.tokens";
/// The contents that take its place: to an earlier version, no token is valid, and every caller is blocked.
pub(super) const NOTICE: &str = "The tokens are in record.sqlite. Because of this file, gateways of earlier versions, which do not know them, accept none.\n";

const COLUMNS: &str =
    "id, name, hash, scopes, owner, unattended, made_at, expires_at, revoked_at, used_at";
const INSERT: &str = "INSERT INTO api_token (id, name, hash, scopes, owner, unattended, made_at, expires_at, revoked_at, used_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
/// The end of an insertion that leaves a known token in place: once revoked, it stays so.
const MERGED: &str = "ON CONFLICT (id) DO UPDATE SET revoked_at = coalesce(revoked_at, excluded.revoked_at), \
     used_at = coalesce(max(used_at, excluded.used_at), used_at, excluded.used_at)";
const BLOCK: &str =
    "INSERT OR IGNORE INTO blocked_caller (issuer, subject, blocked_at) VALUES (?1, ?2, ?3)";

/// The file of earlier versions, as JSON.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TokenFile {
    tokens: Vec<ApiToken>,
    #[serde(default)]
    blocked: Vec<BlockedCaller>,
}

impl TokenFile {
    /// Reads the file.
    ///
    /// # Errors
    /// If it has something else.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, RecordStoreError> {
        let file: Option<Self> = serde_json::from_slice(bytes).ok();
        let fits = |file: &Self| file.tokens.len() <= MOST && file.blocked.len() <= MOST;
        file.filter(fits).ok_or(RecordStoreError::OldFile(OLD_FILE))
    }

    /// Adds what the tables do not have. Nothing that was revoked or blocked becomes valid.
    pub(super) fn merge_into(&self, step: &Transaction<'_>) -> Result<(), RecordStoreError> {
        for token in &self.tokens {
            insert(step, &format!("{INSERT} {MERGED}"), token)?;
        }
        for caller in &self.blocked {
            block(step, caller)?;
        }
        Ok(())
    }
}

impl ApiTokenStore for StateTables {
    fn add(&self, token: &ApiToken) -> Result<Added, RecordStoreError> {
        self.change(UsedTables::Tokens, Crash::Machine, |step| {
            if count(step, "SELECT count(*) FROM api_token")? >= MOST {
                return Ok(Added::Full);
            }
            let text = format!("{INSERT} ON CONFLICT (id) DO NOTHING");
            Ok(match insert(step, &text, token)? {
                0 => Added::Already,
                _ => Added::Yes,
            })
        })
    }

    fn tokens(&self) -> Result<Vec<ApiToken>, RecordStoreError> {
        self.read(UsedTables::Tokens, |connection| {
            let text = format!("SELECT {COLUMNS} FROM api_token ORDER BY number");
            let mut statement = connection.prepare_cached(&text)?;
            let tokens = statement.query_map([], token)?;
            Ok(tokens.collect::<Result<_, _>>()?)
        })
    }

    fn find(&self, id: &str) -> Result<Option<ApiToken>, RecordStoreError> {
        self.read(UsedTables::Tokens, |connection| {
            let text = format!("SELECT {COLUMNS} FROM api_token WHERE id = ?1");
            let mut statement = connection.prepare_cached(&text)?;
            Ok(statement.query_row([id], token).optional()?)
        })
    }

    fn count_named(&self, name: &str) -> Result<usize, RecordStoreError> {
        self.read(UsedTables::Tokens, |connection| {
            let text = "SELECT count(*) FROM api_token WHERE name = ?1";
            let mut statement = connection.prepare_cached(text)?;
            let count: i64 = statement.query_row([name], |row| row.get(0))?;
            Ok(usize::try_from(count).unwrap_or(0))
        })
    }

    fn of_person(&self, person: &str) -> Result<Vec<String>, RecordStoreError> {
        self.read(UsedTables::Tokens, |connection| {
            let text = "SELECT id FROM api_token WHERE owner = ?1 ORDER BY number";
            let mut statement = connection.prepare_cached(text)?;
            let ids = statement.query_map([person], |row| row.get(0))?;
            Ok(ids.collect::<Result<_, _>>()?)
        })
    }

    fn revoke(&self, id: &str, now: Timestamp) -> Result<bool, RecordStoreError> {
        self.change_known(UsedTables::Tokens, Crash::Machine, |step| {
            let text = "UPDATE api_token SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
            Ok(step.execute(text, (id, signed(seconds(now))))? > 0)
        })
    }

    fn remove(&self, id: &str) -> Result<(), RecordStoreError> {
        self.change_known(UsedTables::Tokens, Crash::Machine, |step| {
            step.execute("DELETE FROM api_token WHERE id = ?1", [id])?;
            Ok(())
        })
    }

    fn prune(&self, now: Timestamp) -> Result<usize, RecordStoreError> {
        self.change_known(UsedTables::Tokens, Crash::Machine, |step| {
            let text = "DELETE FROM api_token WHERE revoked_at IS NOT NULL OR expires_at <= ?1";
            Ok(step.execute(text, [signed(seconds(now))])?)
        })
    }

    fn note_use(&self, id: &str, now: Timestamp) -> Result<(), RecordStoreError> {
        self.change_known(UsedTables::Tokens, Crash::Process, |step| {
            let text = "UPDATE api_token SET used_at = max(coalesce(used_at, 0), ?2) WHERE id = ?1";
            step.execute(text, (id, signed(seconds(now))))?;
            Ok(())
        })
    }

    fn block(&self, caller: &BlockedCaller) -> Result<Added, RecordStoreError> {
        // A gateway of an earlier version that still runs does not know the block, and must accept nobody.
        self.lock().old_tokens.leave(NOTICE)?;
        self.change(UsedTables::Tokens, Crash::Machine, |step| {
            if is_blocked(step, &caller.issuer, &caller.subject)? {
                return Ok(Added::Already);
            }
            if count(step, "SELECT count(*) FROM blocked_caller")? >= MOST {
                return Ok(Added::Full);
            }
            block(step, caller)?;
            Ok(Added::Yes)
        })
    }

    fn unblock(&self, issuer: &str, subject: &str) -> Result<bool, RecordStoreError> {
        self.change_known(UsedTables::Tokens, Crash::Machine, |step| {
            let text = "DELETE FROM blocked_caller WHERE issuer = ?1 AND subject = ?2";
            Ok(step.execute(text, (issuer, subject))? > 0)
        })
    }

    fn blocked(&self) -> Result<Vec<BlockedCaller>, RecordStoreError> {
        self.read(UsedTables::Tokens, |connection| {
            let text = "SELECT issuer, subject, blocked_at FROM blocked_caller ORDER BY number";
            let mut statement = connection.prepare_cached(text)?;
            let callers = statement.query_map([], |row| {
                Ok(BlockedCaller {
                    issuer: row.get(0)?,
                    subject: row.get(1)?,
                    blocked_at: unsigned(row.get(2)?),
                })
            })?;
            Ok(callers.collect::<Result<_, _>>()?)
        })
    }

    fn is_blocked(&self, issuer: &str, subject: &str) -> Result<bool, RecordStoreError> {
        self.read(UsedTables::Tokens, |connection| {
            is_blocked(connection, issuer, subject)
        })
    }
}

fn insert(step: &Transaction<'_>, text: &str, token: &ApiToken) -> Result<usize, RecordStoreError> {
    let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let inserted = step.prepare_cached(text)?.execute(rusqlite::params![
        token.id,
        token.name,
        token.hash,
        scopes.join(" "),
        token.person(),
        token.owner == Some(TokenOwner::Nobody),
        signed(token.made_at),
        token.expires_at.map(signed),
        token.revoked_at.map(signed),
        token.used_at.map(signed),
    ])?;
    Ok(inserted)
}

fn block(step: &Transaction<'_>, caller: &BlockedCaller) -> Result<(), RecordStoreError> {
    let blocked_at = signed(caller.blocked_at);
    step.prepare_cached(BLOCK)?
        .execute((&caller.issuer, &caller.subject, blocked_at))?;
    Ok(())
}

fn is_blocked(
    connection: &Connection,
    issuer: &str,
    subject: &str,
) -> Result<bool, RecordStoreError> {
    let text = "SELECT 1 FROM blocked_caller WHERE issuer = ?1 AND subject = ?2";
    let mut statement = connection.prepare_cached(text)?;
    Ok(statement.exists((issuer, subject))?)
}

fn count(connection: &Connection, text: &str) -> Result<usize, RecordStoreError> {
    let count: i64 = connection.query_row(text, [], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

fn token(row: &Row<'_>) -> rusqlite::Result<ApiToken> {
    let scopes: String = row.get("scopes")?;
    let owner: Option<String> = row.get("owner")?;
    let nobody = row.get("unattended")?;
    let time = |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(unsigned));
    Ok(ApiToken {
        id: row.get("id")?,
        name: row.get("name")?,
        hash: row.get("hash")?,
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
        made_at: unsigned(row.get("made_at")?),
        expires_at: time("expires_at")?,
        revoked_at: time("revoked_at")?,
        used_at: time("used_at")?,
    })
}
