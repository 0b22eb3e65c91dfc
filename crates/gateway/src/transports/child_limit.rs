//! The limits on child processes: over all callers, and of each verified one, so that no caller can start programs without
//! end, or take them all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::callers::ProvenCaller;

/// The most children of the gateway, over all clients.
pub(crate) const CHILDREN: usize = 256;
/// The most children of one verified caller, over all servers.
pub(crate) const CHILDREN_EACH: usize = CHILDREN / 2;

/// The counted children of a gateway.
#[derive(Debug)]
pub(crate) struct ChildLimit {
    free: Arc<Semaphore>,
    /// The free children of each verified caller that has one or waits for one, by its binding.
    by_caller: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// A counted child, until this is dropped.
#[derive(Debug)]
pub(crate) struct ChildSlot {
    _permit: OwnedSemaphorePermit,
    _of_caller: Option<OwnedSemaphorePermit>,
}

/// The children of one caller.
#[derive(Clone, Debug)]
pub(crate) struct ChildAccount {
    free: Arc<Semaphore>,
    /// `None` for a caller that is not verified: without `[auth]`, all of them may be one.
    of_caller: Option<Arc<Semaphore>>,
}

impl Default for ChildLimit {
    fn default() -> Self {
        Self {
            free: Arc::new(Semaphore::new(CHILDREN)),
            by_caller: Mutex::default(),
        }
    }
}

impl ChildLimit {
    /// Returns the account of this caller.
    pub(crate) fn of(&self, caller: &ProvenCaller) -> ChildAccount {
        let is_counted = caller.is_authenticated();
        ChildAccount {
            free: self.free.clone(),
            of_caller: is_counted.then(|| self.of_binding(caller.binding())),
        }
    }

    fn of_binding(&self, binding: &str) -> Arc<Semaphore> {
        let mut by_caller = self
            .by_caller
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = by_caller.get(binding).and_then(Weak::upgrade) {
            return known;
        }
        by_caller.retain(|_, left| left.strong_count() > 0);
        let all = Arc::new(Semaphore::new(CHILDREN_EACH));
        by_caller.insert(binding.to_owned(), Arc::downgrade(&all));
        all
    }
}

impl ChildAccount {
    /// Returns the account of a gateway's only client.
    pub(crate) fn of_one_client() -> Self {
        Self {
            free: Arc::new(Semaphore::new(CHILDREN)),
            of_caller: None,
        }
    }

    /// Returns `true` if another may be started.
    pub(crate) fn has_room(&self) -> bool {
        self.free.available_permits() > 0 && !self.is_used_up()
    }

    /// Returns `true` if the caller itself has too many.
    pub(crate) fn is_used_up(&self) -> bool {
        let left = self.of_caller.as_ref().map(|left| left.available_permits());
        left == Some(0)
    }

    /// Counts a child to be started; `None` if there are too many.
    pub(crate) fn count(&self) -> Option<ChildSlot> {
        let of_caller = match &self.of_caller {
            Some(left) => Some(left.clone().try_acquire_owned().ok()?),
            None => None,
        };
        let permit = self.free.clone().try_acquire_owned().ok()?;
        Some(ChildSlot {
            _permit: permit,
            _of_caller: of_caller,
        })
    }

    /// Counts a child to be started, once another has ended; `None` if none ends in this time.
    pub(crate) async fn count_within(&self, wait: Duration) -> Option<ChildSlot> {
        let count = async {
            let of_caller = match &self.of_caller {
                Some(left) => Some(left.clone().acquire_owned().await.ok()?),
                None => None,
            };
            let permit = self.free.clone().acquire_owned().await.ok()?;
            Some(ChildSlot {
                _permit: permit,
                _of_caller: of_caller,
            })
        };
        tokio::time::timeout(wait, count).await.ok()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(subject: &str) -> ProvenCaller {
        ProvenCaller::of_subject("https://id.example", subject, None)
    }

    #[test]
    fn a_verified_caller_has_half_of_the_children_and_others_the_rest() {
        let limit = ChildLimit::default();
        let (ada, ben) = (limit.of(&caller("ada")), limit.of(&caller("ben")));
        let mut slots: Vec<_> = std::iter::from_fn(|| ada.count()).collect();
        assert_eq!(slots.len(), CHILDREN_EACH);
        // The same caller at another server.
        let again = limit.of(&caller("ada"));
        assert!(again.is_used_up() && !again.has_room() && again.count().is_none());
        assert!(ben.has_room() && !ben.is_used_up());
        slots.pop();
        assert!(again.has_room());
        drop(slots);
        drop((ada, ben, again));
        limit.of_binding("somebody else");
        let by_caller = limit.by_caller.lock().unwrap();
        assert!(by_caller.len() <= 1, "nothing is kept of those without");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_gets_the_child_that_ends() {
        let limit = ChildLimit::default();
        let ada = limit.of(&caller("ada"));
        let mut slots: Vec<_> = std::iter::from_fn(|| ada.count()).collect();
        let wait = Duration::from_secs(1);
        assert!(ada.count_within(wait).await.is_none());
        let (slot, ()) = tokio::join!(ada.count_within(wait), async {
            slots.pop();
        });
        assert!(slot.is_some());
    }
}
