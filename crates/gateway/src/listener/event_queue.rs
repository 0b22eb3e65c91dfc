//! The messages that wait for the reader of one stream. Unlike a channel, the sender can take them back: a reader that
//! does not read keeps the memory of others.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::Notify;

use crate::listener::response_streams::StreamEvent;

/// The messages that wait, as the sender sees them.
#[derive(Debug)]
pub(crate) struct EventQueue {
    state: Mutex<EventQueueState>,
    /// Notified when a message arrives, and at the end.
    changed: Notify,
}

#[derive(Debug)]
struct EventQueueState {
    waiting: VecDeque<StreamEvent>,
    /// The bytes that wait.
    bytes: usize,
    /// `true` while messages are accepted.
    is_open: bool,
}

/// The sender's end. When it is dropped, the stream ends with what waits.
#[derive(Debug)]
pub(crate) struct EventSender(Arc<EventQueue>);

/// The reader's end. When it is dropped, no more messages are accepted.
#[derive(Debug)]
pub(crate) struct EventReceiver(Arc<EventQueue>);

/// Creates an empty queue.
pub(crate) fn event_queue() -> (EventSender, EventReceiver) {
    let queue = Arc::new(EventQueue {
        state: Mutex::new(EventQueueState {
            waiting: VecDeque::new(),
            bytes: 0,
            is_open: true,
        }),
        changed: Notify::new(),
    });
    (EventSender(queue.clone()), EventReceiver(queue))
}

impl EventQueue {
    fn state(&self) -> MutexGuard<'_, EventQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Ends the stream, and takes back what waits.
    pub(crate) fn cut(&self) {
        let waiting = {
            let mut state = self.state();
            state.is_open = false;
            state.bytes = 0;
            std::mem::take(&mut state.waiting)
        };
        drop(waiting);
        self.changed.notify_one();
    }
}

impl EventSender {
    /// Adds a message. Returns `false` if nobody will read it.
    pub(crate) fn send(&self, event: StreamEvent) -> bool {
        {
            let mut state = self.0.state();
            if !state.is_open {
                return false;
            }
            state.bytes += event.frame.len();
            state.waiting.push_back(event);
        }
        self.0.changed.notify_one();
        true
    }

    /// Returns `true` while somebody reads.
    pub(crate) fn is_open(&self) -> bool {
        self.0.state().is_open
    }

    /// Returns the queue, which may be cut.
    pub(crate) fn queue(&self) -> &Arc<EventQueue> {
        &self.0
    }
}

impl Drop for EventSender {
    fn drop(&mut self) {
        self.0.state().is_open = false;
        self.0.changed.notify_one();
    }
}

impl EventReceiver {
    /// Waits for the next message; `None` at the end.
    pub(crate) async fn recv(&mut self) -> Option<StreamEvent> {
        loop {
            if let Poll::Ready(next) = self.next() {
                return next;
            }
            self.0.changed.notified().await;
        }
    }

    /// Returns the next message, or the end, if either is there.
    fn next(&mut self) -> Poll<Option<StreamEvent>> {
        let mut state = self.0.state();
        if let Some(event) = state.waiting.pop_front() {
            state.bytes = state.bytes.saturating_sub(event.frame.len());
            return Poll::Ready(Some(event));
        }
        if state.is_open {
            Poll::Pending
        } else {
            Poll::Ready(None)
        }
    }

    /// Returns the next message if it is there, and `None` at the end.
    #[cfg(test)]
    pub(crate) fn try_recv(&mut self) -> Result<StreamEvent, ReceiveError> {
        match self.next() {
            Poll::Ready(Some(event)) => Ok(event),
            Poll::Ready(None) => Err(ReceiveError::Ended),
            Poll::Pending => Err(ReceiveError::Empty),
        }
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        self.0.cut();
    }
}

/// The reason why there is no message.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveError {
    Empty,
    Ended,
}
