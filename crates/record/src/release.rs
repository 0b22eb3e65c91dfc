//! Questions that no call of this gateway waits for any more: the same call made again may take them over at any gateway.

use std::sync::Arc;

use super::row::RowChange;
use super::{Applied, Record, RecordError};
use crate::store::Row;

impl Record {
    /// Releases a question: the same call made again finds it, or its answer, in any session of any gateway.
    pub fn release(self: &Arc<Self>, id: &str) -> Applied<()> {
        if let Some(live) = self.live().remove(id) {
            self.presence.may_hold(&live.binding);
        }
        self.changed();
        if !self.hands_over() {
            return Applied::Now(());
        }
        let (record, id) = (self.clone(), id.to_owned());
        Applied::pending(async move { record.leave(&id).await })
    }

    /// Returns `true` if another gateway may take over a question while this one runs.
    fn hands_over(&self) -> bool {
        self.lock_file.is_in_database() || self.presence.is_shared()
    }

    /// Records that no call here waits for a question any more. Without this, other gateways would leave it to this one as long
    /// as it runs, and ask people again.
    pub(super) async fn leave(&self, id: &str) -> Result<(), RecordError> {
        if !self.hands_over() {
            return Ok(());
        }
        let may = |row: &Row| {
            let lifecycle = &row.lifecycle;
            self.lock_file.is_mine(&row.owner)
                && row.can_be_found()
                && (lifecycle.is_open() || lifecycle.is_deliverable(self.now()))
                && !self.live().contains_key(id)
        };
        self.apply_to_those(id, &RowChange::Leave, may)
            .await
            .map(drop)
    }
}
