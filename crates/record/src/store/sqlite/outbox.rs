//! Messages on their way to people, in SQLite.

use mcp_elicit_core::lifecycle::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, Row as _};

use super::super::outbox::{
    Notification, NotificationFilter, NotificationState, Notified, Taken, Tried, Untold,
};
use super::questions::millis;
use super::{Sqlite, StoreError, read};

const NOTIFICATION: &str = "id, question, event, channel, recipient, person, state, attempts, due_at, until, at, done_at, message, why";

const UNTOLD: &str = "SELECT question.*, telling.told FROM telling JOIN question ON question.id = telling.question \
     WHERE telling.untold IS NOT NULL ORDER BY question.asked_at LIMIT ?1";

const NOTIFIED: &str = "UPDATE telling SET told = ?3, untold = CASE WHEN untold = ?2 THEN NULL ELSE untold END WHERE question = ?1";

const QUEUE: &str = "INSERT INTO notification (id, question, event, channel, recipient, person, state, attempts, due_at, until, at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'due', 0, ?7, ?8, ?9) ON CONFLICT (id) DO NOTHING";

const TAKE: &str = "UPDATE notification SET state = 'sending', attempts = attempts + 1, due_at = ?2 WHERE id IN \
     (SELECT id FROM notification WHERE state IN ('due', 'sending') AND due_at <= ?1 ORDER BY due_at LIMIT ?3) RETURNING ";

const FINISH: &str = "UPDATE notification SET state = ?3, why = ?4, message = ?5, due_at = coalesce(?6, due_at), done_at = ?7 \
     WHERE id = ?1 AND attempts = ?2 AND state = 'sending'";

const AGAIN: &str = "UPDATE notification SET state = 'due', due_at = ?2, until = max(until, ?3), done_at = NULL \
     WHERE id = ?1 AND state = 'failed'";

/// Messages that nothing is done about any more, of long ago.
const PURGE: &str =
    "DELETE FROM notification WHERE state IN ('sent', 'failed', 'skipped') AND done_at < ?1";

impl Sqlite {
    pub(super) async fn untold_rows(&self, most: usize) -> Result<Vec<Untold>, StoreError> {
        let rows = {
            let mut file = self.file().await?;
            let query = sqlx::query(UNTOLD).bind(signed(most));
            query.fetch_all(file.connection()?).await?
        };
        let untold = rows.iter().map(|found| {
            let told: i64 = found.try_get("told")?;
            Ok(Untold {
                row: read(found)?,
                told: usize::try_from(told).unwrap_or(0),
            })
        });
        untold.collect()
    }

    pub(super) async fn write_notified(&self, told: &Notified) -> Result<(), StoreError> {
        let mut file = self.file().await?;
        // Where it is left in the middle, the transaction ends with the connection's next use.
        let mut step = file.connection()?.begin_with("BEGIN IMMEDIATE").await?;
        for one in &told.messages {
            sqlx::query(QUEUE)
                .bind(&one.id)
                .bind(&one.question)
                .bind(&one.event)
                .bind(&one.channel)
                .bind(&one.recipient)
                .bind(&one.person)
                .bind(millis(one.due_at))
                .bind(millis(one.until))
                .bind(millis(one.at))
                .execute(&mut *step)
                .await?;
        }
        sqlx::query(NOTIFIED)
            .bind(&told.question)
            .bind(i64::try_from(told.version).unwrap_or(i64::MAX))
            .bind(signed(told.told))
            .execute(&mut *step)
            .await?;
        step.commit().await?;
        Ok(())
    }

    pub(super) async fn take_all(
        &self,
        now: Timestamp,
        lease_end: Timestamp,
        most: usize,
    ) -> Result<Vec<Notification>, StoreError> {
        let text = sqlx::AssertSqlSafe(format!("{TAKE}{NOTIFICATION}"));
        let mut file = self.file().await?;
        let query = sqlx::query(text)
            .bind(millis(now))
            .bind(millis(lease_end))
            .bind(signed(most));
        let rows = query.fetch_all(file.connection()?).await?;
        let mut taken: Vec<_> = rows.iter().map(notification).collect::<Result<_, _>>()?;
        // What an update returns has no order.
        taken.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        Ok(taken)
    }

    pub(super) async fn finish_one(
        &self,
        taken: Taken<'_>,
        tried: &Tried,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (state, why, message) = tried.parts();
        let (due_at, done_at) = match tried {
            Tried::Later(at, _) => (Some(*at), None),
            _ => (None, Some(now)),
        };
        let mut file = self.file().await?;
        let query = sqlx::query(FINISH)
            .bind(taken.id)
            .bind(i64::from(taken.attempts))
            .bind(state.as_str())
            .bind(why)
            .bind(message)
            .bind(due_at.map(millis))
            .bind(done_at.map(millis));
        let done = query.execute(file.connection()?).await?;
        Ok(done.rows_affected() == 1)
    }

    pub(super) async fn queue_again(
        &self,
        id: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut file = self.file().await?;
        let query = sqlx::query(AGAIN)
            .bind(id)
            .bind(millis(now))
            .bind(millis(until));
        let done = query.execute(file.connection()?).await?;
        Ok(done.rows_affected() == 1)
    }

    pub(super) async fn list_notifications(
        &self,
        filter: &NotificationFilter,
        most: usize,
    ) -> Result<Vec<Notification>, StoreError> {
        let condition = match filter {
            NotificationFilter::Question(_) => "question = ?1 AND ?2 IS NULL ORDER BY at, id",
            NotificationFilter::Failed => {
                "state = 'failed' AND ?1 IS NULL AND ?2 IS NULL ORDER BY done_at DESC, id"
            }
            NotificationFilter::SentTo(..) => {
                "state = 'sent' AND person = ?1 AND done_at >= ?2 ORDER BY done_at, id"
            }
            NotificationFilter::Reached { .. } => {
                "state = 'sent' AND person = ?1 AND recipient = ?2 ORDER BY done_at DESC, id"
            }
            NotificationFilter::NotReached(_) => {
                "state = 'failed' AND recipient = ?1 AND ?2 IS NULL ORDER BY done_at DESC, id"
            }
        };
        let query = format!("SELECT {NOTIFICATION} FROM notification WHERE {condition} LIMIT ?3");
        let mut file = self.file().await?;
        let query = sqlx::query(sqlx::AssertSqlSafe(query));
        let none = None::<&str>;
        let query = match filter {
            NotificationFilter::Question(id) => query.bind(id).bind(none),
            NotificationFilter::Failed => query.bind(none).bind(none),
            NotificationFilter::SentTo(person, since) => query.bind(person).bind(millis(*since)),
            NotificationFilter::Reached { person, recipient } => query.bind(person).bind(recipient),
            NotificationFilter::NotReached(recipient) => query.bind(recipient).bind(none),
        };
        let query = query.bind(signed(most));
        let rows = query.fetch_all(file.connection()?).await?;
        rows.iter().map(notification).collect()
    }

    pub(super) async fn purge_notifications(&self, before: Timestamp) -> Result<(), StoreError> {
        let mut file = self.file().await?;
        let query = sqlx::query(PURGE).bind(millis(before));
        query.execute(file.connection()?).await?;
        Ok(())
    }
}

fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn notification(row: &SqliteRow) -> Result<Notification, StoreError> {
    let time = |millis: i64| Timestamp::from_millis(u64::try_from(millis).unwrap_or(0));
    let word: &str = row.try_get("state")?;
    let attempts: i64 = row.try_get("attempts")?;
    Ok(Notification {
        id: row.try_get("id")?,
        question: row.try_get("question")?,
        event: row.try_get("event")?,
        channel: row.try_get("channel")?,
        recipient: row.try_get("recipient")?,
        person: row.try_get("person")?,
        state: NotificationState::from_word(word).unwrap_or(NotificationState::Failed),
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        due_at: time(row.try_get("due_at")?),
        until: time(row.try_get("until")?),
        at: time(row.try_get("at")?),
        done_at: row.try_get::<Option<i64>, _>("done_at")?.map(time),
        message: row.try_get("message")?,
        why: row.try_get("why")?,
    })
}
