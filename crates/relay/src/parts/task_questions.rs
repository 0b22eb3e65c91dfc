//! The tasks that calls became, with their questions that the client was shown and those that people were asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use mcp_elicit_core::wire::members::{self, Members};
use mcp_elicit_core::wire::{Capability, ElicitRequest, Id, InputResponses, WireError};
use serde_json::value::RawValue;

use crate::CallSummary;
use crate::parts::past_calls;

/// The number of tasks that are remembered.
const REMEMBERED: usize = 1_024;
/// The size of the names and arguments of their calls and of the keys of their questions, in bytes.
const BYTES: usize = 1024 * 1024;
/// The bytes of memory that an entry takes besides its own, roughly.
const ENTRY: usize = 64;
/// The number of calls of one task that are remembered.
const CALLS: usize = 8;

/// The number of answers whose acceptance by the server is awaited.
const AWAITED: usize = 256;

/// The tasks that calls became, by their ids. A forgotten task belongs to an unknown call.
#[derive(Default)]
pub(crate) struct TaskQuestions {
    tasks: BTreeMap<String, Task>,
    /// The ids by the numbers of the tasks: later ones have greater numbers.
    by_number: BTreeMap<u64, String>,
    bytes: usize,
    last: u64,
    /// The answers that were sent, by the ids of their requests, with the task and the key.
    awaited: VecDeque<(Id, String, String)>,
}

/// The end of a question of a task that people were asked.
#[derive(Clone)]
pub(crate) enum AskedBefore {
    /// The server has the answer, and may not have processed it yet.
    Answered,
    /// It has no answer, for this reason.
    Failed(String),
}

/// A question that people were asked.
struct Asked {
    /// A hash of the question: a server may use a key again.
    question: u64,
    end: AskedBefore,
}

/// A task.
#[derive(Default)]
struct Task {
    calls: CallsOfTask,
    /// The modes that the client declared in all of these calls.
    capability: Option<Capability>,
    /// The keys of the questions that the client was shown.
    shown: BTreeSet<String>,
    /// The questions that people were asked and that have ended, by their keys.
    asked: BTreeMap<String, Asked>,
}

/// The calls that became one task: a server may answer a later one with a task that is running.
#[derive(Clone, Default)]
pub(crate) struct CallsOfTask {
    /// Those that are known, the first one first.
    pub(crate) known: Vec<CallSummary>,
    /// `true` if there may be others.
    pub(crate) are_incomplete: bool,
}

impl CallsOfTask {
    fn add(&mut self, call: Option<CallSummary>) {
        let Some(call) = call else {
            self.are_incomplete = true;
            return;
        };
        let same = |known: &CallSummary| known.digest == call.digest && known.proof == call.proof;
        if self.known.iter().any(same) {
            return;
        }
        if self.known.len() < CALLS {
            self.known.push(call);
        } else {
            self.are_incomplete = true;
        }
    }
}

impl Task {
    fn size(&self) -> usize {
        let calls: usize = self.calls.known.iter().map(past_calls::size_of).sum();
        let shown: usize = self.shown.iter().map(|key| key.len() + ENTRY).sum();
        let asked = |(key, asked): (&String, &Asked)| key.len() + ENTRY + asked.size();
        calls + shown + self.asked.iter().map(asked).sum::<usize>()
    }
}

impl Asked {
    fn size(&self) -> usize {
        let reason = match &self.end {
            AskedBefore::Answered => 0,
            AskedBefore::Failed(why) => why.len(),
        };
        size_of::<Self>() + reason
    }
}

impl TaskQuestions {
    /// Returns the calls that became this task.
    pub(crate) fn calls_of(&self, id: &str) -> CallsOfTask {
        let known = self.tasks.get(id).map(|task| task.calls.clone());
        known.unwrap_or_else(|| CallsOfTask {
            known: Vec::new(),
            are_incomplete: true,
        })
    }

    /// Returns the modes that the client declared in the calls that became this task; `None` if they are unknown.
    pub(crate) fn capability_of(&self, id: &str) -> Option<Capability> {
        self.tasks.get(id)?.capability
    }

    /// Records that a call, whose client declared these modes, became this task.
    pub(crate) fn begin(&mut self, id: &str, call: Option<CallSummary>, declared: Capability) {
        self.change(id, |task| {
            task.calls.add(call);
            let all = task
                .capability
                .map_or(declared, |known| known.and(declared));
            task.capability = Some(all);
        });
    }

    /// Changes a task, which need not be known, and forgets the oldest ones if there are too many.
    fn change(&mut self, id: &str, change: impl FnOnce(&mut Task)) {
        if !self.tasks.contains_key(id) {
            self.last += 1;
            self.by_number.insert(self.last, id.to_owned());
            self.tasks.insert(id.to_owned(), Task::default());
            self.bytes += size_of_id(id);
        }
        if let Some(task) = self.tasks.get_mut(id) {
            self.bytes -= task.size();
            change(task);
            self.bytes += task.size();
        }
        while self.tasks.len() > REMEMBERED || self.bytes > BYTES {
            let Some((_, oldest)) = self.by_number.pop_first() else {
                return;
            };
            if let Some(task) = self.tasks.remove(&oldest) {
                self.bytes -= task.size() + size_of_id(&oldest);
            }
        }
    }

    /// Returns the end of this question, if people were asked it and it has ended. A failure is returned once.
    pub(crate) fn take_asked_before(
        &mut self,
        id: &str,
        key: &str,
        question: &ElicitRequest,
    ) -> Option<AskedBefore> {
        let asked = self.tasks.get(id)?.asked.get(key)?;
        if let AskedBefore::Failed(why) = &asked.end {
            let failed = AskedBefore::Failed(why.clone());
            self.change(id, |task| drop(task.asked.remove(key)));
            return Some(failed);
        }
        (asked.question == hash_of(question)).then(|| asked.end.clone())
    }

    /// Forgets the ended questions of a task that it does not ask any more: it may ask the same again.
    pub(crate) fn keep_asked(&mut self, id: &str, open: &BTreeSet<&str>) {
        let has_others = |task: &Task| task.asked.keys().any(|key| !open.contains(key.as_str()));
        if self.tasks.get(id).is_some_and(has_others) {
            self.change(id, |task| {
                task.asked.retain(|key, _| open.contains(key.as_str()));
            });
        }
    }

    /// Records that the answer to a question was sent with a request of this id.
    pub(crate) fn answered(
        &mut self,
        request: Id,
        id: String,
        key: String,
        question: &ElicitRequest,
    ) {
        let end = AskedBefore::Answered;
        let question = hash_of(question);
        self.end(&id, key.clone(), Asked { question, end });
        self.awaited.push_back((request, id, key));
        if self.awaited.len() > AWAITED {
            self.awaited.pop_front();
        }
    }

    /// Records that a question has ended without an answer, for this reason.
    pub(crate) fn failed(&mut self, id: &str, key: &str, why: &str) {
        let end = AskedBefore::Failed(why.to_owned());
        self.end(id, key.to_owned(), Asked { question: 0, end });
    }

    fn end(&mut self, id: &str, key: String, asked: Asked) {
        self.change(id, |task| drop(task.asked.insert(key, asked)));
    }

    /// Returns `true` if an answer was sent with a request of this id, which has no response yet.
    pub(crate) fn awaits(&self, request: &Id) -> bool {
        self.awaited.iter().any(|(id, ..)| id == request)
    }

    /// Records that the server has taken the answer that was sent with this request.
    pub(crate) fn answer_taken(&mut self, request: &Id) {
        self.take_awaited(request);
    }

    /// Records that the server has refused the answer that was sent with this request.
    pub(crate) fn answer_refused(&mut self, request: &Id, why: &str) {
        if let Some((id, key)) = self.take_awaited(request) {
            self.failed(&id, &key, why);
        }
    }

    fn take_awaited(&mut self, request: &Id) -> Option<(String, String)> {
        let place = self.awaited.iter().position(|(id, ..)| id == request)?;
        let (_, id, key) = self.awaited.remove(place)?;
        Some((id, key))
    }

    /// Records that the client is shown questions of this task under these keys, and no others.
    pub(crate) fn show(&mut self, id: &str, keys: BTreeSet<String>) {
        if !keys.is_empty() || self.tasks.contains_key(id) {
            self.change(id, |task| task.shown = keys);
        }
    }

    fn was_shown(&self, id: &str, key: &str) -> bool {
        let task = self.tasks.get(id);
        task.is_some_and(|task| task.shown.contains(key))
    }

    /// Returns `true` if the client was shown all questions that these params answer. It may answer each once: after that, the
    /// server may ask another one under the key.
    ///
    /// # Errors
    /// If the params cannot be read.
    pub(crate) fn take_shown(&mut self, params: &RawValue) -> Result<bool, WireError> {
        let all = Members::read(params, "params")?;
        all.refuse_like(&["taskId", "inputResponses"], "params")?;
        let answers = all
            .get("inputResponses")
            .filter(|answers| !members::is_null(answers));
        let Some(answers) = answers else {
            return Ok(true);
        };
        let task = all.need_text("taskId")?;
        let answers = InputResponses::parse(answers)?;
        if !answers.keys().all(|key| self.was_shown(&task, key)) {
            return Ok(false);
        }
        let given: BTreeSet<&str> = answers.keys().collect();
        if !given.is_empty() {
            self.change(&task, |task| {
                task.shown.retain(|key| !given.contains(key.as_str()));
            });
        }
        Ok(true)
    }
}

/// Returns the size of a task's id, which is in two tables.
fn size_of_id(id: &str) -> usize {
    2 * (id.len() + ENTRY)
}

fn hash_of(question: &ElicitRequest) -> u64 {
    let mut hasher = DefaultHasher::new();
    match question {
        ElicitRequest::Form { message, schema } => (message, schema.get()).hash(&mut hasher),
        ElicitRequest::Url { message, url, .. } => (message, url).hash(&mut hasher),
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_is_too_large_to_be_remembered_is_none_that_was_shown() {
        let mut tasks = TaskQuestions::default();
        let keys = || BTreeSet::from(["k".to_owned()]);
        tasks.show("a", keys());
        let large = "x".repeat(BYTES + 1);
        tasks.show(&large, keys());
        assert!(!tasks.was_shown(&large, "k"));
        tasks.show("b", keys());
        assert!(tasks.was_shown("b", "k"));
    }

    #[test]
    fn short_keys_have_a_bound_too() {
        let mut tasks = TaskQuestions::default();
        for task in 0..200 {
            tasks.show(
                &task.to_string(),
                (0..1_024).map(|key| key.to_string()).collect(),
            );
            assert!(tasks.bytes <= BYTES && tasks.tasks.len() == tasks.by_number.len());
        }
        let entries: usize = tasks.tasks.values().map(|task| task.shown.len()).sum();
        assert!(entries <= BYTES / ENTRY, "{entries}");
        assert!(tasks.was_shown("199", "7") && !tasks.was_shown("0", "7"));
        tasks.show("199", BTreeSet::new());
        while let Some(task) = tasks.tasks.keys().next().cloned() {
            tasks.show(&task, BTreeSet::new());
            let size = tasks.tasks.remove(&task).unwrap().size() + size_of_id(&task);
            tasks.bytes -= size;
        }
        assert_eq!(tasks.bytes, 0);
    }
}
