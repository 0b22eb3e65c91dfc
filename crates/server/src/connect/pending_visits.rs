//! The ends of visits, and the calls that wait for them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// The visits of one process.
#[derive(Debug, Default)]
pub(super) struct PendingVisits(Mutex<HashMap<String, PendingVisit>>);

/// The end of a visit. Each is a person's action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum VisitEnd {
    /// The value that was asked for is stored.
    #[serde(rename = "d")]
    Done,
    /// The person declined on the page.
    #[serde(rename = "n")]
    Declined,
}

#[derive(Debug, Default)]
struct PendingVisit {
    end: watch::Sender<Option<VisitEnd>>,
    /// `true` while a visitor is completing it.
    busy: bool,
    until_ms: u64,
}

/// The right to end a visit. If it is dropped without [`end`](Self::end), the visit may be tried again.
#[derive(Debug)]
pub(super) struct VisitClaim<'a> {
    waiting: &'a PendingVisits,
    id: String,
}

impl PendingVisits {
    /// Waits for the end of the visit, also if it ended before. After `until_ms` its link can no longer be opened.
    pub(super) fn ended(
        &self,
        id: &str,
        now_ms: u64,
        until_ms: u64,
    ) -> impl Future<Output = VisitEnd> + Send + use<> {
        let mut visits = self.lock();
        sweep(&mut visits, now_ms);
        let visit = visits.entry(id.to_owned()).or_default();
        visit.until_ms = visit.until_ms.max(until_ms);
        let mut end = visit.end.subscribe();
        async move {
            match end.wait_for(Option::is_some).await.map(|end| *end) {
                Ok(Some(end)) => end,
                // Forgotten, because its link has expired: the visit can no longer end.
                _ => std::future::pending().await,
            }
        }
    }

    /// Returns how the visit ended, if it has.
    pub(super) fn end_of(&self, id: &str) -> Option<VisitEnd> {
        self.lock().get(id).and_then(|visit| *visit.end.borrow())
    }

    /// Claims the visit, unless it has ended or is claimed already.
    pub(super) fn take(&self, id: &str, now_ms: u64, until_ms: u64) -> Option<VisitClaim<'_>> {
        let mut visits = self.lock();
        sweep(&mut visits, now_ms);
        let visit = visits.entry(id.to_owned()).or_default();
        if visit.busy || visit.end.borrow().is_some() {
            return None;
        }
        visit.busy = true;
        visit.until_ms = visit.until_ms.max(until_ms);
        drop(visits);
        Some(VisitClaim {
            waiting: self,
            id: id.to_owned(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, PendingVisit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops expired visits, which can no longer be opened.
fn sweep(visits: &mut HashMap<String, PendingVisit>, now_ms: u64) {
    visits.retain(|_, visit| visit.until_ms > now_ms);
}

impl VisitClaim<'_> {
    pub(super) fn end(self, end: VisitEnd) {
        if let Some(visit) = self.waiting.lock().get(&self.id) {
            visit.end.send_replace(Some(end));
        }
    }
}

impl Drop for VisitClaim<'_> {
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
        let waiting = PendingVisits::default();
        drop(waiting.ended("old", 0, 10));
        drop(waiting.ended("new", 10, 20));
        assert_eq!(waiting.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_visit_ends_once() {
        for how in [VisitEnd::Done, VisitEnd::Declined] {
            let waiting = PendingVisits::default();
            let ended = waiting.ended("a", 0, 10);
            let turn = waiting.take("a", 0, 10).unwrap();
            assert!(waiting.take("a", 0, 10).is_none(), "one turn at a time");
            drop(turn);
            assert_eq!(waiting.end_of("a"), None);
            waiting
                .take("a", 0, 10)
                .expect("a turn that failed may be tried again")
                .end(how);
            assert!(waiting.take("a", 0, 10).is_none(), "ended is ended");
            assert_eq!(ended.await, how);
            assert_eq!(waiting.ended("a", 0, 10).await, how);
            assert_eq!(waiting.end_of("a"), Some(how));
        }
    }
}
