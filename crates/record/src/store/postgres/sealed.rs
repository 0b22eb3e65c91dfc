//! Sealed values in PostgreSQL.

use tokio_postgres::Row as Columns;

use super::super::{RecordStoreError, ResealedRow, SealedQuery, SealedRow, SealedTable};
use super::database::{PostgresDatabase, StatementValues};
use super::{counted, signed, statements, time, unsigned};

pub(super) async fn sealed_rows(
    database: &PostgresDatabase,
    query: &SealedQuery,
) -> Result<Vec<SealedRow>, RecordStoreError> {
    let most = counted(query.most);
    let values: StatementValues<'_> = &[&most, &query.after, &query.newest];
    let statement = match query.table {
        SealedTable::Questions => &statements::SEALED_QUESTIONS,
        SealedTable::Results => &statements::SEALED_RESULTS,
        SealedTable::Grants => &statements::SEALED_GRANTS,
    };
    let rows = database.rows(statement, values).await?;
    let read = |row| match query.table {
        SealedTable::Questions => question(row),
        SealedTable::Results => result(row),
        SealedTable::Grants => grant(row),
    };
    rows.iter().map(read).collect()
}

fn question(row: &Columns) -> Result<SealedRow, RecordStoreError> {
    Ok(SealedRow::Question {
        id: row.try_get(0)?,
        version: unsigned(row, 1)?,
        arguments: row.try_get(2)?,
        content: row.try_get(3)?,
        team: row.try_get(4)?,
    })
}

fn result(row: &Columns) -> Result<SealedRow, RecordStoreError> {
    Ok(SealedRow::Result {
        id: row.try_get(0)?,
        result: row.try_get(1)?,
    })
}

fn grant(row: &Columns) -> Result<SealedRow, RecordStoreError> {
    Ok(SealedRow::Grant {
        key: row.try_get("key")?,
        at: time(row, "at")?,
        until: time(row, "until")?,
        answers: row.try_get("answers")?,
    })
}

/// The questions of a change, column by column.
#[derive(Default)]
struct QuestionColumns<'r> {
    ids: Vec<&'r str>,
    versions: Vec<i64>,
    before: SealedColumns<'r>,
    after: SealedColumns<'r>,
}

/// The sealed columns of questions.
#[derive(Default)]
struct SealedColumns<'r> {
    arguments: Vec<Option<&'r [u8]>>,
    contents: Vec<Option<&'r [u8]>>,
    teams: Vec<Option<&'r str>>,
}

/// The rows of another table, column by column.
#[derive(Default)]
struct OtherRows<'r> {
    ids: Vec<&'r str>,
    before: Vec<&'r [u8]>,
    after: Vec<&'r [u8]>,
}

impl<'r> OtherRows<'r> {
    fn add(&mut self, id: &'r str, before: &'r [u8], after: &'r [u8]) {
        self.ids.push(id);
        self.before.push(before);
        self.after.push(after);
    }
}

/// Changes the rows that are as before, and returns their number.
pub(super) async fn reseal(
    database: &PostgresDatabase,
    rows: &[ResealedRow],
) -> Result<usize, RecordStoreError> {
    let mut questions = QuestionColumns::default();
    let (mut results, mut grants) = (OtherRows::default(), OtherRows::default());
    for row in rows {
        match (&row.before, &row.after) {
            (
                SealedRow::Question {
                    id,
                    version,
                    arguments: arguments_before,
                    content: content_before,
                    team: team_before,
                },
                SealedRow::Question {
                    arguments,
                    content,
                    team,
                    ..
                },
            ) => {
                questions.ids.push(id);
                questions.versions.push(signed(*version));
                let (before, after) = (&mut questions.before, &mut questions.after);
                before.arguments.push(arguments_before.as_deref());
                before.contents.push(content_before.as_deref());
                before.teams.push(team_before.as_deref());
                after.arguments.push(arguments.as_deref());
                after.contents.push(content.as_deref());
                after.teams.push(team.as_deref());
            }
            (SealedRow::Result { id, result: before }, SealedRow::Result { result, .. }) => {
                results.add(id, before, result);
            }
            (
                SealedRow::Grant {
                    key,
                    answers: before,
                    ..
                },
                SealedRow::Grant { answers, .. },
            ) => grants.add(key, before, answers),
            (
                SealedRow::Question { .. } | SealedRow::Result { .. } | SealedRow::Grant { .. },
                _,
            ) => {}
        }
    }
    let mut changed = 0;
    if !questions.ids.is_empty() {
        let QuestionColumns {
            ids,
            versions,
            before,
            after,
        } = &questions;
        let values: StatementValues<'_> = &[
            ids,
            versions,
            &before.arguments,
            &before.contents,
            &before.teams,
            &after.arguments,
            &after.contents,
            &after.teams,
        ];
        changed += database
            .execute(&statements::RESEAL_QUESTIONS, values)
            .await?;
    }
    for (statement, others) in [
        (&statements::RESEAL_RESULTS, &results),
        (&statements::RESEAL_GRANTS, &grants),
    ] {
        if !others.ids.is_empty() {
            let values: StatementValues<'_> = &[&others.ids, &others.before, &others.after];
            changed += database.execute(statement, values).await?;
        }
    }
    Ok(usize::try_from(changed).unwrap_or(usize::MAX))
}
