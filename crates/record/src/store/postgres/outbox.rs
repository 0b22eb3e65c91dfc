//! Queued messages to people, in PostgreSQL.

use futures::FutureExt as _;
use mcp_elicit_core::lifecycle::Timestamp;
use tokio_postgres::Row as Columns;

use super::super::RecordStoreError;
use super::super::outbox::{
    Notification, NotificationFilter, NotificationState, Notified, TakenMessage, Tried, Untold,
};
use super::database::{PostgresDatabase, StatementValues, execute};
use super::{counted, millis, readable, signed, statements, time};

pub(super) async fn untold(
    database: &PostgresDatabase,
    most: usize,
) -> Result<Vec<Untold>, RecordStoreError> {
    let rows = database
        .rows(&statements::UNTOLD, &[&counted(most)])
        .await?;
    let one = |row: &Columns| {
        let told = row.try_get::<_, i64>("told");
        let told = told.map(|told| usize::try_from(told).unwrap_or(0));
        let found = readable(row)?;
        Some(told.map(|told| Untold { row: found, told }))
    };
    let found: Result<_, _> = rows.iter().filter_map(one).collect();
    Ok(found?)
}

pub(super) async fn notified(
    database: &PostgresDatabase,
    told: Notified,
) -> Result<(), RecordStoreError> {
    database
        .transaction(move |client| {
            let told = told.clone();
            async move {
                let all = &told.messages;
                let texts = |of: fn(&Notification) -> &str| all.iter().map(of).collect::<Vec<_>>();
                let times = |of: fn(&Notification) -> Timestamp| {
                    all.iter().map(|one| millis(of(one))).collect::<Vec<_>>()
                };
                let people: Vec<_> = all.iter().map(|one| one.person.as_deref()).collect();
                let values: StatementValues<'_> = &[
                    &texts(|one| &one.id),
                    &texts(|one| &one.question),
                    &texts(|one| &one.event),
                    &texts(|one| &one.channel),
                    &texts(|one| &one.recipient),
                    &people,
                    &times(|one| one.due_at),
                    &times(|one| one.until),
                    &times(|one| one.at),
                ];
                if !all.is_empty() {
                    execute(client, &statements::QUEUE, values).await?;
                }
                let (version, count) = (signed(told.version), counted(told.told));
                let values: StatementValues<'_> = &[&told.question, &version, &count];
                execute(client, &statements::NOTIFIED, values).await?;
                Ok(())
            }
            .boxed()
        })
        .await
}

pub(super) async fn take(
    database: &PostgresDatabase,
    now: Timestamp,
    lease_end: Timestamp,
    most: usize,
    busy: Vec<String>,
) -> Result<Vec<Notification>, RecordStoreError> {
    let values: StatementValues<'_> = &[&millis(now), &millis(lease_end), &counted(most), &busy];
    let rows = database.rows(&statements::TAKE, values).await?;
    let mut taken = rows
        .iter()
        .map(notification)
        .collect::<Result<Vec<_>, _>>()?;
    // The results of an update are unordered.
    taken.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    Ok(taken)
}

pub(super) async fn finish(
    database: &PostgresDatabase,
    taken: TakenMessage<'_>,
    tried: &Tried,
    now: Timestamp,
) -> Result<bool, RecordStoreError> {
    let (state, why, message) = tried.parts();
    let (due_at, done_at) = match tried {
        Tried::Later(at, _) => (Some(millis(*at)), None),
        Tried::Sent(_) | Tried::Failed(_) | Tried::Skipped(_) => (None, Some(millis(now))),
    };
    let values: StatementValues<'_> = &[
        &taken.id,
        &i64::from(taken.attempts),
        &state.as_str(),
        &why,
        &message,
        &due_at,
        &done_at,
    ];
    Ok(database.execute(&statements::FINISH, values).await? == 1)
}

pub(super) async fn list(
    database: &PostgresDatabase,
    filter: &NotificationFilter,
    most: usize,
) -> Result<Vec<Notification>, RecordStoreError> {
    let most = counted(most);
    let rows = match filter {
        NotificationFilter::Question(id) => {
            database.rows(&statements::OF_QUESTION, &[&most, id]).await
        }
        NotificationFilter::Failed => database.rows(&statements::FAILED, &[&most]).await,
        NotificationFilter::SentTo(person, since) => {
            let values: StatementValues<'_> = &[&most, person, &millis(*since)];
            database.rows(&statements::SENT_TO, values).await
        }
        NotificationFilter::Reached { person, recipient } => {
            let values: StatementValues<'_> = &[&most, person, recipient];
            database.rows(&statements::REACHED, values).await
        }
        NotificationFilter::NotReached(recipient) => {
            let values: StatementValues<'_> = &[&most, recipient];
            database.rows(&statements::NOT_REACHED, values).await
        }
    };
    rows?.iter().map(notification).collect()
}

fn notification(row: &Columns) -> Result<Notification, RecordStoreError> {
    let word: &str = row.try_get("state")?;
    let attempts: i64 = row.try_get("attempts")?;
    let done_at: Option<i64> = row.try_get("done_at")?;
    Ok(Notification {
        id: row.try_get("id")?,
        question: row.try_get("question")?,
        event: row.try_get("event")?,
        channel: row.try_get("channel")?,
        recipient: row.try_get("recipient")?,
        person: row.try_get("person")?,
        state: NotificationState::from_word(word).unwrap_or(NotificationState::Failed),
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        due_at: time(row, "due_at")?,
        until: time(row, "until")?,
        at: time(row, "at")?,
        done_at: done_at.map(|_| time(row, "done_at")).transpose()?,
        message: row.try_get("message")?,
        why: row.try_get("why")?,
    })
}
