//! The questions that wait for one person: all can be seen, one is shown at a time, in the order they came.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::view;
use mcp_elicit_core::wire::Mode;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use crate::consent::Consent;
use crate::question::Question;

/// One person: their queue, and the servers they declined permanently. Give the same `QuestionQueue` to every server
/// whose questions the same person answers.
///
/// ```
/// use mcp_elicit_client::{ClientSettings, QuestionQueue};
///
/// let queue = QuestionQueue::new();
/// let of_one_server = ClientSettings::default().queue(queue.clone());
/// let of_another = ClientSettings::default().queue(queue.clone());
/// assert!(queue.pending().is_empty());
/// # let _ = (of_one_server, of_another);
/// ```
#[derive(Debug, Clone)]
pub struct QuestionQueue {
    turn: Arc<Semaphore>,
    pending: Arc<Mutex<BTreeMap<u64, Entry>>>,
    count: Arc<watch::Sender<usize>>,
    declined: Arc<Mutex<BTreeSet<String>>>,
    /// Held while a policy with a new decline is handed out, so that the last one handed out is the newest.
    handing_out: Arc<Mutex<()>>,
}

/// A question that waits, as a list shows it.
///
/// ```
/// use mcp_elicit_client::QuestionQueue;
///
/// fn list(queue: &QuestionQueue) {
///     for pending in queue.pending() {
///         println!("{}. {} asks: {}", pending.id, pending.server, pending.message);
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pending {
    /// The question's number.
    pub id: u64,
    /// Which server asks, safe to show.
    pub server: String,
    /// The tool, prompt or resource whose call asks, where it is known, safe to show.
    pub call: Option<String>,
    /// The server's message, safe to show.
    pub message: String,
    /// The mode of the question: form or url.
    pub mode: Mode,
}

/// A question in the list, and as a frontend shows it behind another.
#[derive(Debug)]
struct Entry {
    pending: Pending,
    next: view::PendingView,
}

impl Default for QuestionQueue {
    fn default() -> Self {
        Self {
            turn: Arc::new(Semaphore::new(1)),
            pending: Arc::default(),
            count: Arc::new(watch::Sender::new(0)),
            declined: Arc::default(),
            handing_out: Arc::default(),
        }
    }
}

impl QuestionQueue {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns `true` if the person declined every later question of the server that the client calls `server`.
    pub(crate) fn has_declined(&self, server: &str) -> bool {
        self.lock_declined().contains(server)
    }

    /// Declines every later question of `server`, and passes `policy`, with this and every earlier decision of the
    /// person in it, to `keep`.
    pub(crate) fn decline_always(
        &self,
        server: &str,
        mut policy: Consent,
        keep: impl FnOnce(&Consent),
    ) -> Consent {
        let _one_at_a_time = self
            .handing_out
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.lock_declined().insert(server.to_owned());
        for declined in self.lock_declined().iter() {
            policy.decline_always(declined);
        }
        keep(&policy);
        policy
    }

    fn lock_declined(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.declined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that waits for this person, in the order it came; the first is being shown.
    pub fn pending(&self) -> Vec<Pending> {
        self.lock()
            .values()
            .map(|entry| entry.pending.clone())
            .collect()
    }

    /// Returns how many questions wait, the shown one included; changes as they come and go.
    ///
    /// ```
    /// use mcp_elicit_client::QuestionQueue;
    ///
    /// let waiting = QuestionQueue::new().watch();
    /// assert_eq!(*waiting.borrow(), 0);
    /// ```
    pub fn watch(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// Puts the question into the list. It leaves when the place is dropped.
    ///
    /// ```
    /// use mcp_elicit_client::{Question, QuestionQueue};
    ///
    /// async fn show_in_turn(queue: &QuestionQueue, question: &Question) {
    ///     let entry = queue.enter(question);
    ///     let turn = entry.turn().await;
    ///     // Everything that came before is answered: show it, and drop both when it is over.
    ///     drop((turn, entry));
    /// }
    /// ```
    pub fn enter(&self, question: &Question) -> QueueEntry<'_> {
        let shown = question.shown();
        let entry = Entry {
            pending: Pending {
                id: question.id(),
                server: shown.origin().title(),
                call: shown.call().map(view::CallView::name),
                message: shown.message(),
                mode: question.mode(),
            },
            next: view::PendingView::from_question(shown),
        };
        self.change(|pending| {
            pending.insert(question.id(), entry);
        });
        QueueEntry {
            queue: self,
            id: question.id(),
        }
    }

    /// Returns what waits behind the question of this number.
    pub(crate) fn behind(&self, id: u64) -> Vec<view::PendingView> {
        self.lock()
            .range(id + 1..)
            .map(|(_, entry)| entry.next.clone())
            .collect()
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<u64, Entry>)) {
        let mut pending = self.lock();
        change(&mut pending);
        self.count.send_replace(pending.len());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Entry>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question's place in the queue.
///
/// ```
/// use mcp_elicit_client::dispatch::QueueEntry;
///
/// async fn wait(entry: &QueueEntry<'_>) -> bool {
///     entry.turn().await.is_some()
/// }
/// ```
#[derive(Debug)]
pub struct QueueEntry<'p> {
    queue: &'p QuestionQueue,
    id: u64,
}

impl<'p> QueueEntry<'p> {
    /// Waits until every question before it has been answered or withdrawn. Dropping the turn admits the next one.
    pub async fn turn(&self) -> Option<SemaphorePermit<'p>> {
        self.queue.turn.acquire().await.ok()
    }
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        self.queue.change(|pending| {
            pending.remove(&self.id);
        });
    }
}
