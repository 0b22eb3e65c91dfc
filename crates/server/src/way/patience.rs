//! Waiting for a person: within a time, until the call is cancelled, and with word to the caller that its call is alive.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::unanswered::Unanswered;

/// How a call waits.
#[derive(Debug)]
pub(crate) struct Patience {
    peer: Peer<RoleServer>,
    cancelled: CancellationToken,
    progress: Option<ProgressToken>,
    keep_alive: Option<Duration>,
    /// Progress must grow with every notification on a token.
    ticks: AtomicU32,
}

impl Patience {
    pub(crate) fn of(context: &RequestContext<RoleServer>, keep_alive: Option<Duration>) -> Self {
        Self {
            peer: context.peer.clone(),
            cancelled: context.ct.clone(),
            progress: context.meta.get_progress_token(),
            keep_alive,
            ticks: AtomicU32::new(0),
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Waits for `done` until the time is over or the call is cancelled.
    pub(crate) async fn wait<T>(
        &self,
        done: impl Future<Output = T>,
        at_most: Duration,
    ) -> Result<T, Unanswered> {
        let mut done = std::pin::pin!(done);
        let deadline = Instant::now() + at_most;
        let mut keep_alive = self
            .keep_alive
            .filter(|_| self.progress.is_some())
            .map(|period| {
                let mut interval = tokio::time::interval_at(Instant::now() + period, period);
                interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
                interval
            });
        loop {
            tokio::select! {
                biased;
                value = &mut done => return Ok(value),
                () = self.cancelled.cancelled() => return Err(Unanswered::CallCancelled),
                () = tokio::time::sleep_until(deadline) => return Err(Unanswered::TimedOut { after: at_most }),
                () = tick(&mut keep_alive) => self.tell_caller().await,
            }
        }
    }

    async fn tell_caller(&self) {
        let Some(token) = self.progress.clone() else {
            return;
        };
        let ticks = self.ticks.fetch_add(1, Ordering::Relaxed) + 1;
        let progress = ProgressNotificationParam::new(token, f64::from(ticks))
            .with_message("Waiting for a person to answer");
        if let Err(error) = self.peer.notify_progress(progress).await {
            tracing::debug!(%error, "the caller cannot be told that its question is still open");
        }
    }
}

async fn tick(keep_alive: &mut Option<Interval>) {
    match keep_alive {
        Some(interval) => {
            interval.tick().await;
        }
        None => std::future::pending().await,
    }
}
