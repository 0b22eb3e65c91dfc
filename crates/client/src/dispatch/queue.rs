//! The questions that wait for one person: all are listed, one is shown at a time, in the order of arrival.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::view;
use mcp_elicit_core::wire::Mode;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use crate::consent::Consent;
use crate::question::Question;

/// One person's queue, with the servers that they permanently declined. Give the same `QuestionQueue` to every server
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
    pending: Arc<Mutex<BTreeMap<u64, QueuedQuestion>>>,
    count: Arc<watch::Sender<usize>>,
    declined: Arc<Mutex<BTreeSet<String>>>,
    /// Held while a policy with a new decline is passed on, so that the last one passed on is the newest.
    handing_out: Arc<Mutex<()>>,
}

/// A waiting question, as a list shows it.
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
    /// The name of the server, safe to show.
    pub server: String,
    /// The tool, prompt or resource whose call asks, if known, safe to show.
    pub call: Option<String>,
    /// The server's message, safe to show.
    pub message: String,
    /// The mode of the question: form or url.
    pub mode: Mode,
}

/// A queued question, in the list and in the view that a frontend shows behind another question.
#[derive(Debug)]
struct QueuedQuestion {
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

    /// Declines every later question of `server`, and passes `policy` to `keep`, with this and every earlier decision
    /// of the person.
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

    /// Returns every waiting question in the order of arrival; the first is being shown.
    pub fn pending(&self) -> Vec<Pending> {
        self.lock()
            .values()
            .map(|entry| entry.pending.clone())
            .collect()
    }

    /// Returns the number of questions that wait, including the one shown. It is updated as questions come and go.
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

    /// Adds the question to the queue. It leaves when the entry is dropped.
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
        let entry = QueuedQuestion {
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

    /// Returns the questions that wait behind the one with this number.
    pub(crate) fn behind(&self, id: u64) -> Vec<view::PendingView> {
        self.lock()
            .range(id + 1..)
            .map(|(_, entry)| entry.next.clone())
            .collect()
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<u64, QueuedQuestion>)) {
        let mut pending = self.lock();
        change(&mut pending);
        self.count.send_replace(pending.len());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, QueuedQuestion>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question's entry in the queue.
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
    /// Waits until every earlier question has been answered or withdrawn. Dropping the permit admits the next one.
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
