//! A question store in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use indexmap::IndexMap;
use mcp_elicit_core::answer::{Draft, Outcome};
use tokio::sync::{oneshot, watch};

use super::clock;
use super::question_store::{
    DraftResult, EndKind, Ended, ListFilter, QuestionId, QuestionList, QuestionStore,
    QuestionStoreError, QuestionSummary, StoredQuestion, SubmitResult,
};
use super::viewer::{OnlyViewer, Viewer as _};
use crate::view::{QuestionView, Submission, warnings};

/// The number of ended questions that are kept.
const REMEMBERED: usize = 200;

/// A waiting question.
struct WaitingQuestion {
    question: Arc<QuestionView>,
    asked: SystemTime,
    draft: Option<Draft>,
    offers_from_now_on: bool,
    from_now_on: bool,
    answer: oneshot::Sender<Submission>,
}

impl WaitingQuestion {
    /// Sends the outcome to the caller, who ends the question before it stops listening, so that the outcome is not
    /// lost.
    fn hear(self, outcome: Outcome) -> SubmitResult {
        // The pages accept an answer to a form that asks for a credential only if the person allows it.
        let careful = warnings(&self.question)
            .iter()
            .any(|warning| warning.asks_for_credential);
        let reply = Submission {
            allows_credentials: careful && matches!(outcome, Outcome::Accept(_)),
            from_now_on: self.from_now_on && outcome == Outcome::Decline,
            outcome,
        };
        self.answer
            .send(reply)
            .map_or(SubmitResult::Gone, |()| SubmitResult::Won)
    }
}

/// The questions of one person, in memory.
pub(super) struct Questions {
    lists: Mutex<QuestionLists>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct QuestionLists {
    waiting: IndexMap<QuestionId, WaitingQuestion>,
    ended: VecDeque<QuestionSummary>,
}

impl Default for Questions {
    fn default() -> Self {
        Self {
            lists: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl Questions {
    /// Returns the lists; a panic elsewhere cannot have left them inconsistent, as each change is a single step.
    fn lists(&self) -> MutexGuard<'_, QuestionLists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Adds a question to the page; the receiver gets the person's submission.
    pub(super) fn put(
        &self,
        id: QuestionId,
        question: QuestionView,
        offers_from_now_on: bool,
    ) -> oneshot::Receiver<Submission> {
        let (answer, outcome) = oneshot::channel();
        let waiting = WaitingQuestion {
            question: Arc::new(question),
            asked: clock::now(),
            draft: None,
            offers_from_now_on,
            from_now_on: false,
            answer,
        };
        self.lists().waiting.insert(id, waiting);
        self.changed();
        outcome
    }

    /// Ends a question without an action; one that has ended is unchanged.
    pub(super) fn end(&self, id: &QuestionId, how: EndKind) {
        let gone = self.lists().close(id, how, None).is_some();
        if gone {
            self.changed();
        }
    }
}

impl QuestionLists {
    fn close(
        &mut self,
        id: &QuestionId,
        how: EndKind,
        by: Option<&str>,
    ) -> Option<WaitingQuestion> {
        let waiting = self.waiting.shift_remove(id)?;
        let ended = Ended {
            how,
            at: clock::now(),
            by: by.map(str::to_owned),
        };
        let summary = QuestionSummary::from_question(id.clone(), &waiting.question, waiting.asked)
            .ended(ended);
        self.ended.push_front(summary);
        self.ended.truncate(REMEMBERED);
        Some(waiting)
    }

    fn end_of(&self, id: &QuestionId) -> Option<&QuestionSummary> {
        self.ended.iter().find(|summary| summary.id == *id)
    }
}

impl QuestionStore for Questions {
    type Viewer = OnlyViewer;

    async fn list(
        &self,
        _viewer: &OnlyViewer,
        filter: &ListFilter,
    ) -> Result<QuestionList, QuestionStoreError> {
        let lists = self.lists();
        let waiting = lists.waiting.iter().map(|(id, waiting)| {
            QuestionSummary::from_question(id.clone(), &waiting.question, waiting.asked)
        });
        let ended = lists
            .ended
            .iter()
            .filter(|summary| summary.matches(&filter.text));
        let mut matching = waiting.filter(|summary| summary.matches(&filter.text));
        let first = filter.most.div_ceil(2);
        let mut pending: Vec<_> = matching.by_ref().take(first).collect();
        let left = filter.most - pending.len();
        let last: Vec<_> = matching.rev().take(left).collect();
        pending.extend(last.into_iter().rev());
        Ok(QuestionList {
            pending,
            pending_total: lists.waiting.len(),
            pending_in_view: lists.waiting.len(),
            is_cut: false,
            has_others: false,
            recent: ended.take(filter.most).cloned().collect(),
        })
    }

    async fn find(
        &self,
        _viewer: &OnlyViewer,
        id: &QuestionId,
    ) -> Result<Option<StoredQuestion>, QuestionStoreError> {
        let lists = self.lists();
        let open = lists.waiting.get(id).map(|waiting| StoredQuestion::Open {
            question: Arc::clone(&waiting.question),
            asked: waiting.asked,
            draft: waiting.draft.clone(),
        });
        Ok(open.or_else(|| lists.end_of(id).cloned().map(StoredQuestion::Ended)))
    }

    async fn shown(
        &self,
        _viewer: &OnlyViewer,
        _id: &QuestionId,
    ) -> Result<(), QuestionStoreError> {
        Ok(())
    }

    async fn keep(
        &self,
        _viewer: &OnlyViewer,
        id: &QuestionId,
        draft: Draft,
    ) -> Result<DraftResult, QuestionStoreError> {
        if let Some(waiting) = self.lists().waiting.get_mut(id) {
            waiting.draft = Some(draft);
        }
        Ok(DraftResult::Done)
    }

    async fn submit(
        &self,
        viewer: &OnlyViewer,
        id: &QuestionId,
        outcome: Outcome,
        _version: u32,
    ) -> Result<SubmitResult, QuestionStoreError> {
        let result = {
            let mut lists = self.lists();
            match lists.close(id, EndKind::from(&outcome), Some(&viewer.by())) {
                Some(waiting) => waiting.hear(outcome),
                None => match lists.end_of(id).and_then(|summary| summary.ended.clone()) {
                    Some(ended) => SubmitResult::Late(ended),
                    None => SubmitResult::Gone,
                },
            }
        };
        self.changed();
        Ok(result)
    }

    fn offers_from_now_on(&self, id: &QuestionId) -> bool {
        let lists = self.lists();
        lists
            .waiting
            .get(id)
            .is_some_and(|waiting| waiting.offers_from_now_on)
    }

    async fn decline_from_now_on(&self, id: &QuestionId) -> Result<(), QuestionStoreError> {
        if let Some(waiting) = self.lists().waiting.get_mut(id) {
            waiting.from_now_on = waiting.offers_from_now_on;
        }
        Ok(())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
