//! Which visits are done, and who waits for them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The visits of one process.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<HashMap<String, Visit>>);

#[derive(Debug, Default)]
struct Visit {
    /// Fires when the secret is stored.
    done: CancellationToken,
    /// Somebody's secret is being stored right now.
    busy: bool,
    until_ms: u64,
}

/// The right to complete a visit. Dropped without [`complete`](Self::complete), the visit may be tried again.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    waiting: &'a Waiting,
    id: String,
}

impl Waiting {
    /// Ends when the visit is done, also if it was done before. After `until_ms` its link cannot be opened any more.
    pub(super) fn done(
        &self,
        id: &str,
        now_ms: u64,
        until_ms: u64,
    ) -> impl Future<Output = ()> + use<> {
        let mut visits = self.lock();
        sweep(&mut visits, now_ms);
        let visit = visits.entry(id.to_owned()).or_default();
        visit.until_ms = visit.until_ms.max(until_ms);
        let done = visit.done.clone();
        async move { done.cancelled().await }
    }

    /// Takes the one turn there is, unless the visit is done or another turn is under way.
    pub(super) fn take(&self, id: &str, now_ms: u64, until_ms: u64) -> Option<Turn<'_>> {
        let mut visits = self.lock();
        sweep(&mut visits, now_ms);
        let visit = visits.entry(id.to_owned()).or_default();
        if visit.busy || visit.done.is_cancelled() {
            return None;
        }
        visit.busy = true;
        visit.until_ms = visit.until_ms.max(until_ms);
        drop(visits);
        Some(Turn {
            waiting: self,
            id: id.to_owned(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Visit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What has expired cannot be opened any more, so nobody needs to remember it.
fn sweep(visits: &mut HashMap<String, Visit>, now_ms: u64) {
    visits.retain(|_, visit| visit.until_ms > now_ms);
}

impl Turn<'_> {
    pub(super) fn complete(self) {
        if let Some(visit) = self.waiting.lock().get(&self.id) {
            visit.done.cancel();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(visit) = self.waiting.lock().get_mut(&self.id) {
            visit.busy = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expired_visits_are_forgotten() {
        let waiting = Waiting::default();
        drop(waiting.done("old", 0, 10));
        drop(waiting.done("new", 10, 20));
        assert_eq!(waiting.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_visit_is_completed_once() {
        let waiting = Waiting::default();
        let done = waiting.done("a", 0, 10);
        let turn = waiting.take("a", 0, 10).unwrap();
        assert!(waiting.take("a", 0, 10).is_none(), "one turn at a time");
        drop(turn);
        waiting
            .take("a", 0, 10)
            .expect("a turn that failed may be tried again")
            .complete();
        assert!(waiting.take("a", 0, 10).is_none(), "done is done");
        done.await;
        waiting.done("a", 0, 10).await;
    }
}
