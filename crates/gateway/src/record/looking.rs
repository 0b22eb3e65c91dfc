//! Looking around: what is due is ended, and what other gateways' pages did is passed on.

use mcp_elicit_core::exchange::Phase;

use super::{Book, BookFault};
use crate::relay::{Ending, Event, is_ambiguous};
use crate::store::{Page, Store as _, Which};

/// How many of the questions that wait are looked at in one round, those that wait longest first.
const LOOKED_THROUGH: usize = 10_000;

impl Book {
    /// Ends what is due, and what no call can come back for.
    pub async fn look_around(&self) -> Result<(), BookFault> {
        for row in self
            .store
            .list(Which::Open, Page::first(LOOKED_THROUGH))
            .await?
        {
            if row.exchange.is_due(self.now()) {
                self.expire(&row).await?;
            } else if is_ambiguous(&row.body.others) && !self.is_waited_for(&row) {
                // Whoever answered it would answer for nobody.
                self.end_by_itself(&row, &Ending::ServerGone.step()).await?;
            }
        }
        Ok(())
    }

    /// Tells the sessions here what happened to their questions in other processes.
    pub async fn hear_others(&self) -> Result<(), BookFault> {
        self.look_for_company().await?;
        if !self.lease.has_company() {
            return Ok(());
        }
        let ids: Vec<String> = self.live().keys().cloned().collect();
        for id in ids {
            let Some(row) = self.find(&id).await? else {
                continue;
            };
            let phase = row.exchange.phase();
            if phase.action().is_some() && row.exchange.delivered_at().is_none() {
                self.tell_settled(&id);
            } else if !phase.is_open() && phase.action().is_none() {
                self.tell_ended(&id, phase);
            }
        }
        Ok(())
    }

    fn tell_ended(&self, id: &str, phase: Phase) {
        let ending = if phase == Phase::TimedOut {
            Ending::TimedOut
        } else {
            Ending::CallEnded
        };
        if let Some(live) = self.live().remove(id) {
            let _ = live.tell.send(Event::Ended {
                question: live.question,
                ending,
            });
        }
    }
}
