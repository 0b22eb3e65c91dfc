//! Streams of events that stay open as long as a page does: limited in number per holder, and in time by the login.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// The most streams of one holder; a further one ends the oldest.
const MOST_OF_ONE: usize = 32;

/// The interval at which a stream checks its login.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(20);

/// A check that the login of a request is live. A layer outside of the [`router`](super::router) puts it into the
/// extensions of a request. Streams of events end with it, and a form that arrives after its end has no effect.
#[derive(Clone)]
pub struct LoginCheck(Arc<dyn Fn() -> bool + Send + Sync>);

impl LoginCheck {
    /// Creates the check of one request's login, which does not count as a use.
    pub fn new(is_live: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_live))
    }

    /// Returns `true` while the login is live.
    pub fn is_live(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for LoginCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoginCheck")
    }
}

/// The open streams of events.
///
/// ```
/// use mcp_elicit_forms::web::EventStreams;
///
/// let streams = EventStreams::default();
/// let one = streams.open("ada");
/// assert_eq!(one.holder(), "ada");
/// ```
#[derive(Clone, Default)]
pub struct EventStreams(Arc<Mutex<OpenStreams>>);

#[derive(Default)]
struct OpenStreams {
    last: u64,
    /// The open streams of each holder, the oldest first.
    by_holder: HashMap<String, VecDeque<(u64, Arc<Notify>)>>,
}

impl fmt::Debug for EventStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStreams").finish_non_exhaustive()
    }
}

/// An open stream, until it is dropped.
#[derive(Debug)]
pub struct EventStream {
    all: EventStreams,
    holder: String,
    number: u64,
    end: Arc<Notify>,
}

impl EventStreams {
    fn lock(&self) -> MutexGuard<'_, OpenStreams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a stream of this holder. At the limit of 32 the oldest one ends.
    #[must_use]
    pub fn open(&self, holder: &str) -> EventStream {
        let mut open = self.lock();
        open.last += 1;
        let number = open.last;
        let end = Arc::new(Notify::new());
        let own = open.by_holder.entry(holder.to_owned()).or_default();
        own.push_back((number, end.clone()));
        if own.len() > MOST_OF_ONE
            && let Some((_, oldest)) = own.pop_front()
        {
            oldest.notify_one();
        }
        drop(open);
        EventStream {
            all: self.clone(),
            holder: holder.to_owned(),
            number,
            end,
        }
    }
}

impl EventStream {
    /// Returns the holder of the stream.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// Completes when another stream replaces it.
    pub async fn ended(&self) {
        self.end.notified().await;
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        let mut open = self.all.lock();
        if let Some(own) = open.by_holder.get_mut(&self.holder) {
            own.retain(|(number, _)| *number != self.number);
            if own.is_empty() {
                open.by_holder.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn the_oldest_stream_of_a_holder_ends_for_a_further_one_and_nobody_elses() {
        let streams = EventStreams::default();
        let other = streams.open("bob");
        let mut own: Vec<EventStream> = (0..MOST_OF_ONE).map(|_| streams.open("ada")).collect();
        assert!(own.iter().all(|one| one.ended().now_or_never().is_none()));
        own.push(streams.open("ada"));
        assert!(own[0].ended().now_or_never().is_some());
        assert!(own[1].ended().now_or_never().is_none());
        // A stream that ended by itself leaves room.
        drop(own.pop());
        own.push(streams.open("ada"));
        assert!(own[1].ended().now_or_never().is_none());
        assert!(other.ended().now_or_never().is_none());
        drop((own, other));
        assert!(streams.lock().by_holder.is_empty());
    }
}
