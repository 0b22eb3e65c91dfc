//! Answers are taken out for the server: all of a round or none, and only once.

use std::sync::atomic::Ordering;

use mcp_elicit_core::exchange::Step;
use mcp_elicit_core::wire::Action;

use super::{Book, BookFault, audit, place};
use crate::store::{Change, Row, Store as _};

impl Book {
    /// Takes answers out, all or none and only once; `None` when any is not there to be taken.
    pub async fn take(&self, ids: &[String]) -> Result<Option<Vec<String>>, BookFault> {
        // Some may be noted here only, and others not.
        self.share(ids).await?;
        let mut changes = Vec::new();
        let mut replies = Vec::new();
        for id in ids {
            let Some(row) = self.answered(id).await? else {
                return Ok(None);
            };
            let Some(action) = row.exchange.phase().action() else {
                return Ok(None);
            };
            let Ok(exchange) = row.exchange.step(&Step::Deliver, self.now()) else {
                return Ok(None);
            };
            let content = row
                .content
                .as_deref()
                .map(|sealed| self.seal.open(&place(id, "content"), sealed))
                .transpose()?;
            replies.push(reply(action, content.as_deref()));
            let seen = row.exchange.version();
            let row = Row { exchange, ..row };
            changes.push(Change {
                audit: vec![audit::entry("delivered", &row, self.now())],
                row,
                seen,
            });
        }
        if !self.store.change(changes).await? {
            return Ok(None);
        }
        self.counts
            .delivered
            .fetch_add(ids.len() as u64, Ordering::Relaxed);
        let mut live = self.live();
        for id in ids {
            live.remove(id);
        }
        drop(live);
        self.changed();
        Ok(Some(replies))
    }

    /// The row, read again when what is remembered of it is no answer: another gateway's page may have given it.
    async fn answered(&self, id: &str) -> Result<Option<Row>, BookFault> {
        match self.find_or_recall(id).await? {
            Some(row) if row.exchange.phase().action().is_some() => Ok(Some(row)),
            _ => self.find(id).await,
        }
    }

    /// The answers reached the server: their values and the call's arguments are dropped.
    pub async fn confirm(&self, ids: &[String]) -> Result<(), BookFault> {
        for id in ids {
            if let Some(row) = self.find(id).await? {
                let seen = row.exchange.version();
                let row = Row {
                    arguments: None,
                    content: None,
                    ..row
                };
                // Whoever changed it meanwhile has dropped the values, or still needs them.
                self.put(row, seen, Vec::new()).await?;
            }
        }
        Ok(())
    }
}

/// What the server is told: an `ElicitResult`, JSON.
pub(super) fn reply(action: Action, content: Option<&str>) -> String {
    match content {
        Some(content) => format!(r#"{{"action":"{action}","content":{content}}}"#),
        None => format!(r#"{{"action":"{action}"}}"#),
    }
}
