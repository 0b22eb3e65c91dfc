//! The bytes that wait for the clients of a caller, over all of its sessions, and those of all callers.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use crate::byte_account::{ByteShare, SharedByteAccount};
use crate::listener::event_queue::EventQueue;

/// The bytes that may wait for all callers, of each kind.
const ALL: usize = 512 * 1024 * 1024;
/// The bytes that may always wait for a caller.
const ALWAYS: usize = 64 * 1024;
/// The number of callers above which those without a session are forgotten.
const MANY: usize = 1_024;

/// The bytes that clients have not read yet, of all callers. One message may have 64 MiB.
static UNREAD: SharedByteAccount = SharedByteAccount::new(ALL, 4, ALWAYS);
/// The bytes that are stored for clients that resume a stream, of all callers.
static STORED: SharedByteAccount = SharedByteAccount::new(ALL, 8, ALWAYS);
/// The bytes of answers that were handed to connections and can still be resumed, of all callers. They are counted apart, so
/// that they take no room of what clients have not got.
static HANDED_OVER: SharedByteAccount = SharedByteAccount::new(ALL / 2, 4, ALWAYS);
/// The accounts of the callers with sessions.
static CALLERS: LazyLock<Mutex<HashMap<String, Weak<CallerBytes>>>> = LazyLock::new(Mutex::default);

/// The bytes that wait for one caller.
#[derive(Debug)]
pub(crate) struct CallerBytes {
    /// Those that its clients have not read yet.
    pub(crate) unread: ByteShare,
    /// Those that are stored for its clients that resume a stream.
    pub(crate) stored: ByteShare,
    /// Those of answers that were handed to connections and can still be resumed.
    pub(crate) handed_over: ByteShare,
    /// The messages that wait, of each of its streams.
    queues: Mutex<Vec<Weak<EventQueue>>>,
}

impl CallerBytes {
    /// Returns the account of a caller.
    pub(crate) fn of(principal: &str) -> Arc<Self> {
        let mut callers = CALLERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = callers.get(principal).and_then(Weak::upgrade) {
            return known;
        }
        if callers.len() >= MANY {
            callers.retain(|_, known| known.strong_count() > 0);
        }
        let new = Arc::new(Self::new(ByteShare::new(&UNREAD), ByteShare::new(&STORED)));
        callers.insert(principal.to_owned(), Arc::downgrade(&new));
        new
    }

    pub(crate) fn new(unread: ByteShare, stored: ByteShare) -> Self {
        Self {
            unread,
            stored,
            handed_over: ByteShare::new(&HANDED_OVER),
            queues: Mutex::default(),
        }
    }

    /// Adds a stream whose messages may be taken back.
    pub(crate) fn watch(&self, queue: &Arc<EventQueue>) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.len() == queues.capacity() {
            queues.retain(|known| known.strong_count() > 0);
        }
        queues.push(Arc::downgrade(queue));
    }

    /// Cuts the streams on which most bytes wait until the caller has no more than it may. Returns `false` if too much is
    /// left: on its way to clients, or on this stream itself.
    pub(crate) fn make_room(&self, own: &Arc<EventQueue>) -> bool {
        while self.unread.is_exceeded() {
            let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            let queues = queues.iter().filter_map(Weak::upgrade);
            let longest = queues.max_by_key(|queue| queue.bytes());
            match longest {
                Some(longest) if longest.bytes() > 0 && !Arc::ptr_eq(&longest, own) => {
                    longest.cut();
                }
                _ => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sessions_of_a_caller_have_one_account_while_there_is_one() {
        let first = CallerBytes::of("a-caller-of-a-test");
        first.unread.add(5);
        let second = CallerBytes::of("a-caller-of-a-test");
        assert_eq!(second.unread.bytes(), 5);
        assert_eq!(CallerBytes::of("another-of-a-test").unread.bytes(), 0);
        second.unread.remove(5);
        drop((first, second));
        assert_eq!(CallerBytes::of("a-caller-of-a-test").unread.bytes(), 0);
    }
}
