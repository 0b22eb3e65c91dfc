//! Limits on concurrent lists: each person has a share, so that one person's searches delay no one else's pages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most lists created at once for one viewer; others of theirs wait.
const AT_ONCE: usize = 2;

/// The viewers with lists in creation or waiting.
#[derive(Debug, Default)]
pub(crate) struct ListTurns(Mutex<HashMap<Arc<str>, Arc<Semaphore>>>);

/// The permission to create one list, until it is dropped.
#[derive(Debug)]
pub(crate) struct ListTurn<'t> {
    turns: &'t ListTurns,
    viewer: Arc<str>,
    permit: Option<OwnedSemaphorePermit>,
}

impl ListTurns {
    fn known(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Semaphore>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a list of this viewer may be created.
    pub(crate) async fn take(&self, viewer: Arc<str>) -> ListTurn<'_> {
        let share = self
            .known()
            .entry(viewer.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE)))
            .clone();
        // Dropped by a request that is cancelled while it waits, too.
        let mut turn = ListTurn {
            turns: self,
            viewer,
            permit: None,
        };
        // An error would mean that it is closed, which never happens.
        turn.permit = share.acquire_owned().await.ok();
        turn
    }
}

impl Drop for ListTurn<'_> {
    fn drop(&mut self) {
        let mut known = self.turns.known();
        self.permit = None;
        let is_last = known
            .get(&self.viewer)
            .is_some_and(|share| Arc::strong_count(share) == 1);
        if is_last {
            known.remove(&self.viewer);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn lists_of_one_viewer_wait_in_turn_and_those_of_others_do_not() {
        let turns = ListTurns::default();
        let first = turns.take("person:ada".into()).await;
        let second = turns.take("person:ada".into()).await;
        let mut third = Box::pin(turns.take("person:ada".into()));
        assert!(third.as_mut().now_or_never().is_none());
        let of_another = turns.take("person:bob".into()).now_or_never();
        drop(of_another.unwrap());
        assert_eq!(turns.known().len(), 1);
        drop(first);
        drop(third.await);
        // A browser that disconnects while it waits.
        let last = turns.take("person:ada".into()).await;
        let mut waiting = Box::pin(turns.take("person:ada".into()));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop((second, last));
        drop(waiting);
        assert!(turns.known().is_empty());
    }
}
