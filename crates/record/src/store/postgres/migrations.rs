//! The checks of a database before it is used, and its migration to this version's layout.
//!
//! Migrations expand: a program of the layout before reads and writes the new one too, unless `readable_by` says
//! otherwise.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::super::RecordStoreError;
use super::database::{BEGIN, ended, execute, query};
use super::statements;

/// The statements that migrate the tables from one layout to the next.
const MIGRATIONS: [&str; 2] = [include_str!("01.sql"), include_str!("02.sql")];
/// The lowest layout that a program must know to use this version's.
const READABLE_BY: i32 = 1;
/// The number of the lock under which one process migrates: "elicit" in ASCII.
const LOCK: i64 = 0x656c_6963_6974;
/// The oldest server.
const OLDEST: i32 = 14;

const CREATE_SCHEMA: &str = "CREATE SCHEMA IF NOT EXISTS mcp_elicit";

/// The layout of a database.
enum FoundLayout {
    /// Nothing of a record.
    Nothing,
    /// A layout, and the lowest that a program must know.
    Layout { layout: i32, readable_by: i32 },
}

/// Checks the database, and migrates its tables.
pub(super) async fn open(client: &Client, address: &str) -> Result<(), RecordStoreError> {
    check_server(client, address).await?;
    let found = find(client, address).await?;
    if !is_current(&found)? {
        client.batch_execute(BEGIN).await?;
        let migrated = migrate(client, address).await;
        ended(client, migrated).await?;
    }
    check_rights(client, address).await?;
    warn_of_other_roles(client, address).await
}

/// Checks the database, and migrates its tables, unless another role could replace them or what is in them.
pub(super) async fn open_as_own(client: &Client, address: &str) -> Result<(), RecordStoreError> {
    check_server(client, address).await?;
    refuse_other_roles(client, address).await?;
    open(client, address).await
}

/// Checks the database, and migrates its tables, in the transaction of this connection.
pub(super) async fn open_within(client: &Client, address: &str) -> Result<(), RecordStoreError> {
    check_server(client, address).await?;
    migrate(client, address).await?;
    check_rights(client, address).await?;
    refuse_other_roles(client, address).await
}

/// Returns `true` if the database can have a record, and has no tables of one. Nothing is written.
pub(super) async fn is_new(client: &Client, address: &str) -> Result<bool, RecordStoreError> {
    check_server(client, address).await?;
    let found = find(client, address).await?;
    is_current(&found)?;
    Ok(matches!(found, FoundLayout::Nothing))
}

/// Returns the same once every transaction that makes tables has ended. Must be called in a transaction.
pub(super) async fn is_new_after_others(
    client: &Client,
    address: &str,
) -> Result<bool, RecordStoreError> {
    query(client, &statements::LOCK_LAYOUT, &[&LOCK]).await?;
    is_new(client, address).await
}

/// Checks that the database has a record of a known layout. Nothing is written.
pub(super) async fn recognize(client: &Client, address: &str) -> Result<(), RecordStoreError> {
    check_server(client, address).await?;
    let found = find(client, address).await?;
    is_current(&found)?;
    match found {
        FoundLayout::Layout { .. } => warn_of_other_roles(client, address).await,
        FoundLayout::Nothing => Err(RecordStoreError::Refused {
            why: format!("the database {address} has no record yet"),
            next: "correct the address, or start a gateway with this record first.".to_owned(),
        }),
    }
}

/// Returns the SQL that the next start would run; empty if the layout is this version's.
pub(super) async fn planned(client: &Client, address: &str) -> Result<String, RecordStoreError> {
    check_server(client, address).await?;
    warn_of_other_roles(client, address).await?;
    let found = find(client, address).await?;
    if is_current(&found)? {
        return Ok(String::new());
    }
    let mut text = String::new();
    if matches!(found, FoundLayout::Nothing) {
        text = format!("{CREATE_SCHEMA};\n");
    }
    for migration in &MIGRATIONS[found.layout()..] {
        text.push_str(migration);
    }
    Ok(text)
}

/// Migrates the tables in a transaction, unless another process was first.
async fn migrate(client: &Client, address: &str) -> Result<(), RecordStoreError> {
    query(client, &statements::LOCK_LAYOUT, &[&LOCK]).await?;
    let found = find(client, address).await?;
    if is_current(&found)? {
        return Ok(());
    }
    if matches!(found, FoundLayout::Nothing) {
        let rights = query(client, &statements::SCHEMA, &[]).await?;
        let (exists, may_create): (bool, bool) = match rights.first() {
            Some(row) => (row.try_get(0)?, row.try_get(3)?),
            None => return Err(RecordStoreError::Closed),
        };
        if !exists && !may_create {
            return Err(no_rights(address, "create the schema mcp_elicit"));
        }
        if !exists {
            client.batch_execute(CREATE_SCHEMA).await?;
        }
    }
    for migration in &MIGRATIONS[found.layout()..] {
        if let Err(error) = client.batch_execute(migration).await {
            return Err(match error.code() {
                Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                    no_rights(address, "create tables in the schema mcp_elicit")
                }
                Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => in_use(address),
                Some(_) | None => error.into(),
            });
        }
    }
    let known = known_layout();
    execute(client, &statements::SET_LAYOUT, &[&known, &READABLE_BY]).await?;
    Ok(())
}

impl FoundLayout {
    /// Returns the number of migrations that were run.
    fn layout(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Layout { layout, .. } => usize::try_from(*layout).unwrap_or(0),
        }
    }
}

/// Returns `true` if the tables need no migration.
fn is_current(found: &FoundLayout) -> Result<bool, RecordStoreError> {
    let known = known_layout();
    match found {
        FoundLayout::Nothing => Ok(false),
        FoundLayout::Layout {
            layout,
            readable_by,
        } if *readable_by > known => Err(RecordStoreError::Refused {
            why: format!(
                "the record was written by a newer version (layout {layout}, known {known})"
            ),
            next: "install that version or a newer one here too.".to_owned(),
        }),
        FoundLayout::Layout { layout, .. } => Ok(*layout >= known),
    }
}

/// Finds the layout, and rejects tables of another program.
async fn find(client: &Client, address: &str) -> Result<FoundLayout, RecordStoreError> {
    let rows = query(client, &statements::SCHEMA, &[]).await?;
    let row = rows.first().ok_or(RecordStoreError::Closed)?;
    let (has_meta, has_tables): (bool, bool) = (row.try_get(1)?, row.try_get(2)?);
    if !has_meta {
        if has_tables {
            return Err(foreign(address));
        }
        return Ok(FoundLayout::Nothing);
    }
    let found = match query(client, &statements::LAYOUT, &[]).await {
        Err(RecordStoreError::Database(error)) if error.to_string().contains("(42501)") => {
            return Err(no_rights(address, "read the table mcp_elicit.meta"));
        }
        // A table of this name without these columns.
        Err(RecordStoreError::Database(error)) if error.to_string().contains("(42703)") => {
            return Err(foreign(address));
        }
        found => found?,
    };
    let row = found.first().ok_or_else(|| foreign(address))?;
    Ok(FoundLayout::Layout {
        layout: row.try_get(0)?,
        readable_by: row.try_get(1)?,
    })
}

/// Rejects a server on which the record would not work.
async fn check_server(client: &Client, address: &str) -> Result<(), RecordStoreError> {
    let rows = query(client, &statements::SERVER, &[]).await?;
    let row = rows.first().ok_or(RecordStoreError::Closed)?;
    let (version, encoding): (i32, String) = (row.try_get(0)?, row.try_get(1)?);
    let searched: Vec<String> = row.try_get(2)?;
    let refused = |why: String, next: String| Err(RecordStoreError::Refused { why, next });
    let mut searched = searched
        .iter()
        .filter(|schema| !schema.starts_with("pg_temp_"));
    if let Some(schema) = searched.next().filter(|schema| *schema != "pg_catalog") {
        return refused(
            format!("the database {address} looks up names in the schema {schema} before those of the server"),
            "take pg_catalog out of the search_path of the role and of the database: it is searched first then."
                .to_owned(),
        );
    }
    if version / 10_000 < OLDEST {
        return refused(
            format!(
                "the database server of {address} is PostgreSQL {}",
                version / 10_000
            ),
            format!("use PostgreSQL {OLDEST} or newer."),
        );
    }
    if encoding != "UTF8" {
        return refused(
            format!("the database {address} has the encoding {encoding}"),
            "create one with `createdb --encoding=UTF8 --template=template0 --locale=C --owner=USER DATABASE`."
                .to_owned(),
        );
    }
    let rows = query(client, &statements::IS_STANDBY, &[]).await?;
    let is_standby: bool = rows.first().ok_or(RecordStoreError::Closed)?.try_get(0)?;
    if is_standby {
        return refused(
            format!("the database server of {address} is a standby, which takes no writes"),
            "name the primary server, or several hosts with `target_session_attrs=read-write`."
                .to_owned(),
        );
    }
    Ok(())
}

/// Rejects tables that the user may not use.
async fn check_rights(client: &Client, address: &str) -> Result<(), RecordStoreError> {
    let rows = query(client, &statements::MISSING_RIGHTS, &[]).await?;
    match rows.first() {
        None => Ok(()),
        Some(row) => {
            let table: String = row.try_get(0)?;
            Err(no_rights(
                address,
                &format!("use the table mcp_elicit.{table}"),
            ))
        }
    }
}

/// The parts of a record on which other roles have an influence: they may replace or read tokens and answers.
struct OtherRoles {
    /// The roles that own a part and are neither the user's, nor the database's owner, nor superusers.
    owners: Vec<String>,
    /// The rules, and the parts that run functions of such roles, with the rights of the gateway.
    parts: Vec<String>,
}

impl OtherRoles {
    async fn find(client: &Client) -> Result<Self, RecordStoreError> {
        let mut found = Self {
            owners: Vec::new(),
            parts: Vec::new(),
        };
        for row in query(client, &statements::OTHER_OWNERS, &[]).await? {
            found.owners.push(row.try_get(0)?);
        }
        for row in query(client, &statements::FOREIGN_PARTS, &[]).await? {
            let part: Option<String> = row.try_get(0)?;
            found.parts.extend(part);
        }
        Ok(found)
    }
}

/// Warns of other roles that may replace a table, or what is in it.
async fn warn_of_other_roles(client: &Client, address: &str) -> Result<(), RecordStoreError> {
    let found = OtherRoles::find(client).await?;
    for role in found.owners {
        tracing::warn!(
            %address,
            %role,
            "another role owns the schema mcp_elicit or one of its tables, and may replace what is in them; if it is not \
             meant to, ALTER their OWNER"
        );
    }
    for part in found.parts {
        tracing::warn!(
            %address,
            %part,
            "a part of the schema mcp_elicit is not the record's, and may change or hide what is in it; DROP it"
        );
    }
    Ok(())
}

/// Rejects a record on which other roles have an influence.
async fn refuse_other_roles(client: &Client, address: &str) -> Result<(), RecordStoreError> {
    let found = OtherRoles::find(client).await?;
    if let Some(role) = found.owners.first() {
        return Err(RecordStoreError::Refused {
            why: format!(
                "the role {role} owns the schema mcp_elicit of {address} or one of its tables, and may replace what is in them"
            ),
            next: "make the user of the record the owner: `ALTER SCHEMA mcp_elicit OWNER TO USER` and its tables, or drop the \
                   schema if it has no record."
                .to_owned(),
        });
    }
    match found.parts.first() {
        None => Ok(()),
        Some(part) => Err(RecordStoreError::Refused {
            why: format!(
                "the database {address} has the {part}, which is not the record's, and may change or hide what is in it"
            ),
            next: "look at what made it, and DROP it (row-level security: `ALTER TABLE .. DISABLE ROW LEVEL SECURITY`)."
                .to_owned(),
        }),
    }
}

fn no_rights(address: &str, to: &str) -> RecordStoreError {
    RecordStoreError::Refused {
        why: format!("the user of {address} has no right to {to}"),
        next: "make it the owner: `CREATE SCHEMA mcp_elicit AUTHORIZATION USER`, or `ALTER SCHEMA mcp_elicit OWNER TO USER` and its tables."
            .to_owned(),
    }
}

fn in_use(address: &str) -> RecordStoreError {
    RecordStoreError::Refused {
        why: format!(
            "the tables of {address} cannot be migrated while another program's transaction uses them"
        ),
        next: "try again when that has ended; `SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start` shows \
               the longest one, which may be a backup."
            .to_owned(),
    }
}

fn foreign(address: &str) -> RecordStoreError {
    RecordStoreError::Refused {
        why: format!(
            "the schema mcp_elicit of {address} holds tables that are not a gateway's record"
        ),
        next: "name another database; the record makes its schema there.".to_owned(),
    }
}

/// Returns the number of this version's layout.
pub(super) fn known_layout() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}
