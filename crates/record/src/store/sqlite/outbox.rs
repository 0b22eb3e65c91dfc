//! Queued messages to people, in SQLite.

use mcp_elicit_core::lifecycle::Timestamp;
use rusqlite::TransactionBehavior;
use rusqlite::types::Value;

use super::super::Purge;
use super::super::outbox::{
    Notification, NotificationFilter, NotificationState, Notified, Tried, Untold,
};
use super::file::SqliteFile;
use super::questions::{counted, millis, signed};
use super::{Columns, RecordStoreError, all, readable, time};

const NOTIFICATION: &str = "id, question, event, channel, recipient, person, state, attempts, due_at, until, at, done_at, message, why";

const UNTOLD: &str = "SELECT question.*, telling.told FROM telling JOIN question ON question.id = telling.question \
     WHERE telling.untold IS NOT NULL ORDER BY question.asked_at LIMIT ?1";

const NOTIFIED: &str = "UPDATE telling SET told = max(told, ?3), untold = CASE WHEN untold = ?2 THEN NULL ELSE untold END WHERE question = ?1";

const QUEUE: &str = "INSERT INTO notification (id, question, event, channel, recipient, person, state, attempts, due_at, until, at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'due', 0, ?7, ?8, ?9) ON CONFLICT (id) DO NOTHING";

const TAKE: &str = "UPDATE notification SET state = 'sending', attempts = attempts + 1, due_at = ?2 WHERE id IN \
     (SELECT id FROM notification WHERE state IN ('due', 'sending') AND due_at <= ?1 AND NOT EXISTS \
       (SELECT 1 FROM json_each(?4) WHERE value IN (channel, channel || ' ' || recipient)) ORDER BY due_at LIMIT ?3) RETURNING ";

const FINISH: &str = "UPDATE notification SET state = ?3, why = ?4, message = ?5, due_at = coalesce(?6, due_at), done_at = ?7 \
     WHERE id = ?1 AND attempts = ?2 AND state = 'sending'";

const AGAIN: &str = "UPDATE notification SET state = 'due', due_at = ?2, until = max(until, ?3), done_at = NULL \
     WHERE id = ?1 AND state = 'failed'";

/// Deletes old messages that need no further action.
const PURGE: &str = concat!(
    "DELETE FROM notification WHERE state IN ('sent', 'failed', 'skipped') AND done_at < ?1 \
     AND (?2 IS NULL OR question IN (SELECT id FROM question WHERE principal = ?2)) \
     AND (?3 IS NULL OR question IN (SELECT id FROM question WHERE ",
    unanswered_of!(),
    "))"
);

impl SqliteFile {
    pub(super) fn untold(&mut self, most: usize) -> Result<Vec<Untold>, RecordStoreError> {
        let rows = all(self, UNTOLD, [counted(most)], |found| {
            let told: i64 = found.get("told")?;
            let told = usize::try_from(told).unwrap_or(0);
            Ok(readable(found).map(|row| Untold { row, told }))
        })?;
        Ok(rows.into_iter().flatten().collect())
    }

    pub(super) fn write_notified(&mut self, told: &Notified) -> Result<(), RecordStoreError> {
        let connection = self.connection()?;
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for one in &told.messages {
            step.prepare_cached(QUEUE)?.execute((
                &one.id,
                &one.question,
                &one.event,
                &one.channel,
                &one.recipient,
                &one.person,
                millis(one.due_at),
                millis(one.until),
                millis(one.at),
            ))?;
        }
        let values = (&told.question, signed(told.version), counted(told.told));
        step.prepare_cached(NOTIFIED)?.execute(values)?;
        step.commit()?;
        Ok(())
    }

    pub(super) fn take_notifications(
        &mut self,
        now: Timestamp,
        lease_end: Timestamp,
        most: usize,
        busy: &[String],
    ) -> Result<Vec<Notification>, RecordStoreError> {
        let text = format!("{TAKE}{NOTIFICATION}");
        let busy = serde_json::Value::from(busy.to_vec()).to_string();
        let values = (millis(now), millis(lease_end), counted(most), busy);
        let mut taken = all(self, &text, values, notification)?;
        // The results of an update are unordered.
        taken.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        Ok(taken)
    }

    pub(super) fn finish_notification(
        &mut self,
        id: &str,
        attempts: u32,
        tried: &Tried,
        now: Timestamp,
    ) -> Result<bool, RecordStoreError> {
        let (state, why, message) = tried.parts();
        let (due_at, done_at) = match tried {
            Tried::Later(at, _) => (Some(*at), None),
            _ => (None, Some(now)),
        };
        let values = (
            id,
            i64::from(attempts),
            state.as_str(),
            why,
            message,
            due_at.map(millis),
            done_at.map(millis),
        );
        Ok(self.connection()?.prepare_cached(FINISH)?.execute(values)? == 1)
    }

    pub(super) fn notify_again(
        &mut self,
        id: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, RecordStoreError> {
        let values = (id, millis(now), millis(until));
        Ok(self.connection()?.execute(AGAIN, values)? == 1)
    }

    pub(super) fn notifications(
        &mut self,
        filter: &NotificationFilter,
        most: usize,
    ) -> Result<Vec<Notification>, RecordStoreError> {
        let text = |text: &String| Value::from(text.clone());
        let (condition, first, second) = match filter {
            NotificationFilter::Question(id) => (
                "question = ?1 AND ?2 IS NULL ORDER BY at, id",
                text(id),
                Value::Null,
            ),
            NotificationFilter::Failed => (
                "state = 'failed' AND ?1 IS NULL AND ?2 IS NULL ORDER BY done_at DESC, id",
                Value::Null,
                Value::Null,
            ),
            NotificationFilter::SentTo(person, since) => (
                "state = 'sent' AND person = ?1 AND done_at >= ?2 ORDER BY done_at, id",
                text(person),
                Value::from(millis(*since)),
            ),
            NotificationFilter::Reached { person, recipient } => (
                "state = 'sent' AND person = ?1 AND recipient = ?2 ORDER BY done_at DESC, id",
                text(person),
                text(recipient),
            ),
            NotificationFilter::NotReached(recipient) => (
                "state = 'failed' AND recipient = ?1 AND ?2 IS NULL ORDER BY done_at DESC, id",
                text(recipient),
                Value::Null,
            ),
        };
        let query = format!("SELECT {NOTIFICATION} FROM notification WHERE {condition} LIMIT ?3");
        all(self, &query, (first, second, counted(most)), notification)
    }

    pub(super) fn purge_notifications(&mut self, purge: &Purge) -> Result<(), RecordStoreError> {
        let values = (millis(purge.before), &purge.principal, &purge.unanswered_of);
        self.connection()?.execute(PURGE, values)?;
        Ok(())
    }
}

fn notification(row: &Columns<'_>) -> Result<Notification, RecordStoreError> {
    let word: String = row.get("state")?;
    let attempts: i64 = row.get("attempts")?;
    let done_at: Option<i64> = row.get("done_at")?;
    Ok(Notification {
        id: row.get("id")?,
        question: row.get("question")?,
        event: row.get("event")?,
        channel: row.get("channel")?,
        recipient: row.get("recipient")?,
        person: row.get("person")?,
        state: NotificationState::from_word(&word).unwrap_or(NotificationState::Failed),
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        due_at: time(row, "due_at")?,
        until: time(row, "until")?,
        at: time(row, "at")?,
        done_at: done_at.map(|_| time(row, "done_at")).transpose()?,
        message: row.get("message")?,
        why: row.get("why")?,
    })
}
