//! Changes of calls without a waiting client that the store could not take: they are made once it can.

use mcp_elicit_core::lifecycle::Timestamp;

use super::{UnattendedEntry, tasks, tell_all};
use crate::store::{FinishedCall, RecordStore as _};
use crate::{Record, RecordError};

/// A change of a call that the store does not have.
#[derive(Clone)]
pub(super) enum UnwrittenCall {
    /// It is in progress, and kept until this time.
    Begun { until: Timestamp },
    /// It has ended, with this sealed result.
    Ended(FinishedCall),
}

impl UnwrittenCall {
    fn until(&self) -> Timestamp {
        match self {
            Self::Begun { until } => *until,
            Self::Ended(result) => result.until,
        }
    }
}

impl UnattendedEntry {
    /// Returns `true` if it has ended with a result, which the store may not have yet.
    pub(super) fn has_ended(&self) -> bool {
        self.result_until.is_some() || matches!(self.unwritten, Some(UnwrittenCall::Ended(_)))
    }
}

impl Record {
    /// Keeps a change that the store did not take. A call that has ended does not begin again.
    pub(super) fn write_later(&self, id: &str, change: UnwrittenCall) {
        if let Some(known) = self.unattended().get_mut(id)
            && !known.has_ended()
        {
            known.unwritten = Some(change);
        }
    }

    /// Makes the changes of calls that the store did not take before. Their followers are notified of results.
    pub(super) async fn write_unwritten_calls(&self) -> Result<(), RecordError> {
        let Ok(_turn) = self.unwritten_calls.try_lock() else {
            return Ok(());
        };
        let now = self.now();
        let unwritten: Vec<_> = {
            let calls = self.unattended();
            let each = calls.values().filter_map(|known| {
                let change = known.unwritten.clone()?;
                let (id, binding) = (known.id.clone(), known.binding.clone());
                Some((id, binding, known.link.clone(), change))
            });
            each.collect()
        };
        for (id, binding, link, change) in unwritten {
            if change.until() <= now {
                let expired = self.forget_unattended(&id);
                tell_all(expired.map_or_else(Vec::new, |known| known.followers));
                continue;
            }
            match change {
                UnwrittenCall::Begun { until } => {
                    let running = self.own_running(link.clone());
                    self.begin_call(id.clone(), binding, running, until).await?;
                    if let Some(known) = self.unattended().get_mut(&id)
                        && matches!(known.unwritten, Some(UnwrittenCall::Begun { .. }))
                        && known.link == link
                    {
                        known.unwritten = None;
                    }
                }
                UnwrittenCall::Ended(result) => {
                    if !self.write_result(result).await? && !tasks::is_task(&binding) {
                        // Its session has returned it meanwhile.
                        self.store.take_call(id).await?;
                    }
                }
            }
        }
        Ok(())
    }
}
