//! Waiting for a person: up to a deadline, until the call is cancelled, with progress that tells the caller that its
//! call is alive.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::ElicitError;

/// The settings of a call's waits.
#[derive(Debug)]
pub(crate) struct CallWait {
    /// Absent in tests without a client.
    peer: Option<Peer<RoleServer>>,
    cancelled: CancellationToken,
    /// Cancelled when the handler has returned and no longer waits for an answer.
    returned: CancellationToken,
    progress: Option<ProgressToken>,
    keep_alive: Option<Duration>,
    /// The last progress value; progress must increase with every notification on a token.
    ticks: AtomicU32,
}

impl CallWait {
    pub(crate) fn new(context: &RequestContext<RoleServer>, keep_alive: Option<Duration>) -> Self {
        Self {
            peer: Some(context.peer.clone()),
            cancelled: context.ct.clone(),
            returned: CancellationToken::new(),
            progress: context.meta.get_progress_token(),
            keep_alive,
            ticks: AtomicU32::new(0),
        }
    }

    /// Creates waits without a client: no cancellation and no progress.
    pub(crate) fn without_client() -> Self {
        Self {
            peer: None,
            cancelled: CancellationToken::new(),
            returned: CancellationToken::new(),
            progress: None,
            keep_alive: None,
            ticks: AtomicU32::new(0),
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    pub(crate) fn has_returned(&self) -> bool {
        self.returned.is_cancelled()
    }

    /// Returns a guard that marks the handler as returned when it is dropped.
    pub(crate) fn returns_with_guard(&self) -> DropGuard {
        self.returned.clone().drop_guard()
    }

    /// Waits for `done` until the deadline passes or the call is cancelled.
    pub(crate) async fn wait<T>(
        &self,
        done: impl Future<Output = T>,
        at_most: Duration,
    ) -> Result<T, ElicitError> {
        let mut done = std::pin::pin!(done);
        let over = Instant::now() + at_most;
        let mut timer = std::pin::pin!(tokio::time::sleep_until(self.next_word(over)));
        loop {
            tokio::select! {
                biased;
                value = &mut done => return Ok(value),
                // Checked first, because rmcp also cancels a call that has been answered.
                () = self.returned.cancelled() => return Err(ElicitError::HandlerReturned),
                () = self.cancelled.cancelled() => return Err(ElicitError::CallCancelled),
                () = timer.as_mut() => {}
            }
            if Instant::now() >= over {
                return Err(ElicitError::TimedOut { after: at_most });
            }
            // Boxed, because it is rare and much larger than the wait itself, of which there may be thousands.
            Box::pin(self.tell_caller("Waiting for a person to answer")).await;
            timer.as_mut().reset(self.next_word(over));
        }
    }

    /// Runs `work` to its end, and meanwhile tells the caller that its call is alive.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let (Some(period), Some(_)) = (self.keep_alive, &self.progress) else {
            return work.await;
        };
        let mut work = std::pin::pin!(work);
        loop {
            // `work` goes on while the notification is sent.
            let telling = async {
                tokio::time::sleep(period).await;
                Box::pin(self.tell_caller("Still at work")).await;
            };
            tokio::select! {
                biased;
                value = &mut work => return value,
                () = telling => {}
            }
        }
    }

    /// Completes when the next progress notification is due, or when the time is `over`.
    fn next_word(&self, over: Instant) -> Instant {
        match (self.keep_alive, &self.progress) {
            (Some(period), Some(_)) => over.min(Instant::now() + period),
            _ => over,
        }
    }

    async fn tell_caller(&self, message: &str) {
        let (Some(token), Some(peer)) = (self.progress.clone(), &self.peer) else {
            return;
        };
        let ticks = self.ticks.fetch_add(1, Ordering::Relaxed) + 1;
        let progress =
            ProgressNotificationParam::new(token, f64::from(ticks)).with_message(message);
        if let Err(error) = peer.notify_progress(progress).await {
            tracing::debug!(%error, "the caller cannot be told that its call is alive");
        }
    }
}
