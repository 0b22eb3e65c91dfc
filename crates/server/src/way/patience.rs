//! Waiting for a person: within a time, until the call is cancelled, and with word to the caller that its call is alive.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::time::Instant;
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
        let over = Instant::now() + at_most;
        let mut timer = std::pin::pin!(tokio::time::sleep_until(self.next_word(over)));
        loop {
            tokio::select! {
                biased;
                value = &mut done => return Ok(value),
                () = self.cancelled.cancelled() => return Err(Unanswered::CallCancelled),
                () = timer.as_mut() => {}
            }
            if Instant::now() >= over {
                return Err(Unanswered::TimedOut { after: at_most });
            }
            // In a box of its own: this is rare, and much larger than the waiting, of which there may be thousands.
            Box::pin(self.tell_caller()).await;
            timer.as_mut().reset(self.next_word(over));
        }
    }

    /// When the caller is to hear that its call is alive, or when the time is `over`.
    fn next_word(&self, over: Instant) -> Instant {
        match (self.keep_alive, &self.progress) {
            (Some(period), Some(_)) => over.min(Instant::now() + period),
            _ => over,
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
