//! Drafts that gateways share.

use futures::FutureExt as _;
use mcp_elicit_core::lifecycle::Timestamp;

use super::super::RecordFuture;
use super::super::drafts::{DraftStore, MOST_DRAFT_BYTES, MOST_DRAFTS, StoredDraft};
use super::database::StatementValues;
use super::{Postgres, counted, millis, statements};

impl DraftStore for Postgres {
    fn keep_draft(&self, draft: StoredDraft, oldest: Timestamp) -> RecordFuture<'_, ()> {
        async move {
            let StoredDraft {
                question,
                person,
                sealed,
                at,
            } = draft;
            let (at, oldest) = (millis(at), millis(oldest));
            let database = self.opened().await?;
            let values: StatementValues<'_> = &[&question, &person, &sealed, &at];
            database.execute(&statements::KEEP_DRAFT, values).await?;
            database
                .execute(&statements::EXPIRE_DRAFTS, &[&oldest])
                .await?;
            let of_one = (Some(&person), MOST_DRAFTS.0, MOST_DRAFT_BYTES.0);
            let of_all = (None, MOST_DRAFTS.1, MOST_DRAFT_BYTES.1);
            for (person, most, bytes) in [of_one, of_all] {
                let (most, bytes) = (counted(most), counted(bytes));
                let values: StatementValues<'_> = &[&person, &most, &bytes];
                database.execute(&statements::LIMIT_DRAFTS, values).await?;
            }
            Ok(())
        }
        .boxed()
    }

    fn draft(
        &self,
        question: String,
        person: String,
        oldest: Timestamp,
    ) -> RecordFuture<'_, Option<Vec<u8>>> {
        async move {
            let oldest = millis(oldest);
            let database = self.opened().await?;
            let values: StatementValues<'_> = &[&question, &person, &oldest];
            let rows = database.rows(&statements::DRAFT, values).await?;
            rows.first().map(|row| Ok(row.try_get(0)?)).transpose()
        }
        .boxed()
    }

    fn drop_drafts_of_other_keys(&self, newest: Vec<u8>) -> RecordFuture<'_, ()> {
        async move {
            let database = self.opened().await?;
            let drop = &statements::DROP_DRAFTS_OF_OTHER_KEYS;
            database.execute(drop, &[&newest]).await?;
            Ok(())
        }
        .boxed()
    }
}
