//! The requests of a server over HTTP whose answers are not posted yet. rmcp posts a few answers at a time and keeps the
//! others, so that a server that asks without end would fill the memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ClientJsonRpcMessage, RequestId};

use super::stdio::{EACH, UNREAD};

/// The requests of one server.
#[derive(Clone, Debug, Default)]
pub(super) struct UnansweredRequests {
    requests: Arc<Mutex<Requests>>,
    are_too_many: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Requests {
    /// The bytes of each request; of several with one id, of each.
    by_id: HashMap<RequestId, Vec<usize>>,
    bytes: usize,
}

/// Counts a request as answered once it is dropped.
pub(super) struct UntilPosted {
    id: RequestId,
    requests: Arc<Mutex<Requests>>,
}

impl UnansweredRequests {
    /// Counts a request of this many bytes; `false` if too many wait for their answers. A single request may have any
    /// length. A request that its server cancels stays counted until its answer is posted, since it may be under way.
    pub(super) fn asked(&self, id: &RequestId, bytes: usize) -> bool {
        let bytes = bytes + EACH;
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let before = requests.bytes;
        requests.bytes += bytes;
        requests.by_id.entry(id.clone()).or_default().push(bytes);
        let fits = before == 0 || before + bytes <= UNREAD;
        if !fits {
            self.are_too_many.store(true, Ordering::Release);
        }
        fits
    }

    /// Returns `true` once too many have waited.
    pub(super) fn are_too_many(&self) -> bool {
        self.are_too_many.load(Ordering::Acquire)
    }

    /// Returns the guard of an answer that is being posted; `None` for another message.
    pub(super) fn answered_by(&self, message: &ClientJsonRpcMessage) -> Option<UntilPosted> {
        let id = match message {
            ClientJsonRpcMessage::Response(response) => response.id.clone(),
            ClientJsonRpcMessage::Error(error) => error.id.clone()?,
            ClientJsonRpcMessage::Request(_) | ClientJsonRpcMessage::Notification(_) => {
                return None;
            }
        };
        let requests = Arc::clone(&self.requests);
        Some(UntilPosted { id, requests })
    }
}

impl Drop for UntilPosted {
    fn drop(&mut self) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of_id) = requests.by_id.get_mut(&self.id) else {
            return;
        };
        let bytes = of_id.pop().unwrap_or_default();
        if of_id.is_empty() {
            requests.by_id.remove(&self.id);
        }
        requests.bytes = requests.bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_are_counted_until_their_answers_are_posted() {
        let unanswered = UnansweredRequests::default();
        let id = |number: i64| RequestId::Number(number);
        for number in 0..15 {
            assert!(unanswered.asked(&id(number), 1024 * 1024));
        }
        for number in 0..5 {
            let answer = json!({"jsonrpc": "2.0", "id": number, "result": {}});
            let answer = serde_json::from_value(answer).unwrap();
            drop(unanswered.answered_by(&answer));
        }
        // One id again and again counts every time.
        for _ in 0..5 {
            assert!(unanswered.asked(&id(20), 1024 * 1024));
        }
        assert!(!unanswered.are_too_many());
        assert!(!unanswered.asked(&id(20), 2 * 1024 * 1024));
        assert!(unanswered.are_too_many());

        let unanswered = UnansweredRequests::default();
        let most = UNREAD / EACH;
        let count = (0..).take_while(|number| unanswered.asked(&id(*number), 0));
        assert_eq!(count.count(), most);
    }
}
