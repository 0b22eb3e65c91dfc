//! The tasks that calls became, with their questions that the client was shown and those that people were asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

use mcp_elicit_core::wire::members::{self, Members};
use mcp_elicit_core::wire::{
    Capability, ElicitRequest, Id, InputRequest, InputResponses, WireError,
};
use serde_json::value::RawValue;

use crate::parts::past_calls;
use crate::{CallSummary, StreamId};

/// The number of tasks that are remembered.
const REMEMBERED: usize = 1_024;
/// The size of the names and arguments of their calls and of the keys of their questions, in bytes.
const BYTES: usize = 1024 * 1024;
/// The bytes of memory that an entry takes besides its own, roughly.
const ENTRY: usize = 64;
/// The number of calls of one task that are remembered.
const CALLS: usize = 8;

/// The number of answers whose acceptance by the server is awaited, and of the client's requests whose response is.
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
    awaited: VecDeque<(Id, String, String, Question)>,
    /// The client's requests about tasks that have no response yet, the oldest first.
    requests: VecDeque<Request>,
    moment: Moment,
    hashes: RandomState,
}

/// A point in the order in which requests about tasks were made and their responses arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

/// A request of the client about a task.
struct Request {
    stream: StreamId,
    id: Id,
    made: Moment,
    /// The task and those of its questions that the request answers.
    answers: Option<(String, Vec<Question>)>,
}

/// A question of a task: hashes of its key and of its content, since a server may use a key again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    key: u64,
    content: u64,
}

/// The answer to a question, which no later answer may follow.
struct Answered {
    sent: Moment,
    /// When a status that was requested after the answer did not have the question any more.
    closed: Option<Moment>,
}

/// The end of a question of a task that people were asked.
#[derive(Clone)]
pub(crate) enum AskedBefore {
    /// The server has the answer, and may not have processed it yet.
    Answered,
    /// It has no answer, for this reason.
    Failed(String),
}

/// A task.
#[derive(Default)]
struct Task {
    calls: CallsOfTask,
    /// The modes that the client declared in all of these calls.
    capability: Option<Capability>,
    /// The questions that the client was shown, by the hashes of their keys.
    shown: BTreeMap<u64, u64>,
    /// The questions that have an answer.
    answered: BTreeMap<Question, Answered>,
    /// The reasons why questions have no answer, by their keys.
    failed: BTreeMap<String, String>,
    /// When the latest status that was read was requested.
    read: Moment,
    /// When the client cancelled it.
    cancelled: Option<Moment>,
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
        let questions = self.shown.len() + self.answered.len();
        let failed = |(key, why): (&String, &String)| key.len() + why.len() + ENTRY;
        calls + questions * ENTRY + self.failed.iter().map(failed).sum::<usize>()
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

    /// Returns `true` if a call here became this task.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.tasks.contains_key(id)
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

    fn now(&mut self) -> Moment {
        self.moment.0 += 1;
        self.moment
    }

    fn question(&self, key: &str, request: &ElicitRequest) -> Question {
        let content = match request {
            ElicitRequest::Form { message, schema } => {
                self.hashes.hash_one((message, schema.get()))
            }
            ElicitRequest::Url { message, url, .. } => self.hashes.hash_one((message, url)),
        };
        let key = self.hashes.hash_one(key);
        Question { key, content }
    }

    fn question_of(&self, key: &str, request: &InputRequest) -> Question {
        match request {
            InputRequest::Elicit(request) => self.question(key, request),
            InputRequest::Other { raw, .. } => Question {
                key: self.hashes.hash_one(key),
                content: self.hashes.hash_one(raw.get()),
            },
        }
    }

    /// Records a request of the client about a task.
    pub(crate) fn begin_request(&mut self, stream: StreamId, id: Id) {
        let made = self.now();
        self.requests.push_back(Request {
            stream,
            id,
            made,
            answers: None,
        });
        if self.requests.len() > AWAITED {
            self.requests.pop_front();
        }
    }

    /// Records the response to a request of the client about a task. The answers of a refused one may be given again.
    /// Returns when it was made; `None` if it is another request, or forgotten.
    pub(crate) fn end_request(
        &mut self,
        stream: StreamId,
        id: &Id,
        is_refused: bool,
    ) -> Option<Moment> {
        let place = self
            .requests
            .iter()
            .position(|request| request.stream == stream && request.id == *id)?;
        let request = self.requests.remove(place)?;
        if let Some((task, answers)) = request.answers.filter(|_| is_refused) {
            self.change(&task, |task| {
                for question in answers {
                    task.answered.remove(&question);
                    task.shown.insert(question.key, question.content);
                }
            });
        }
        Some(request.made)
    }

    /// Records that the client cancels a task.
    pub(crate) fn cancel(&mut self, id: &str) {
        let now = self.now();
        if self.tasks.contains_key(id) {
            self.change(id, |task| task.cancelled = Some(now));
        }
    }

    /// Returns `true` if the client has cancelled the task since this moment, at which its status was requested; `None` if the
    /// server sent it unasked.
    pub(crate) fn is_cancelled_since(&self, id: &str, read: Option<Moment>) -> bool {
        let cancelled = self.tasks.get(id).and_then(|task| task.cancelled);
        cancelled.is_some_and(|cancelled| read.is_none_or(|read| read < cancelled))
    }

    /// Records which questions the status of a task has. Returns `false` if a later status was read before: what it does not
    /// have may be open.
    pub(crate) fn status_read(
        &mut self,
        id: &str,
        open: &BTreeSet<&str>,
        read: Option<Moment>,
    ) -> bool {
        let now = self.now();
        let Some(task) = self.tasks.get(id) else {
            return true;
        };
        if read.is_some_and(|read| read < task.read) {
            return false;
        }
        let keys: BTreeSet<u64> = open.iter().map(|key| self.hashes.hash_one(*key)).collect();
        self.change(id, |task| {
            task.failed.retain(|key, _| open.contains(key.as_str()));
            let Some(read) = read else {
                return;
            };
            task.read = read;
            for (question, answered) in &mut task.answered {
                if answered.closed.is_none()
                    && read > answered.sent
                    && !keys.contains(&question.key)
                {
                    answered.closed = Some(now);
                }
            }
        });
        true
    }

    /// Returns the end of this question, if people were asked it and it has ended. A failure is returned once.
    pub(crate) fn take_asked_before(
        &mut self,
        id: &str,
        key: &str,
        request: &ElicitRequest,
        read: Option<Moment>,
    ) -> Option<AskedBefore> {
        if let Some(why) = self.tasks.get(id)?.failed.get(key).cloned() {
            self.change(id, |task| drop(task.failed.remove(key)));
            return Some(AskedBefore::Failed(why));
        }
        let question = self.question(key, request);
        self.is_answered(id, question, read)
            .then_some(AskedBefore::Answered)
    }

    /// Returns `true` if a request of a task that is no question has its response.
    pub(crate) fn has_response(
        &mut self,
        id: &str,
        key: &str,
        request: &InputRequest,
        read: Option<Moment>,
    ) -> bool {
        let question = self.question_of(key, request);
        self.is_answered(id, question, read)
    }

    /// Returns `true` if this question has an answer. A server may ask it again: then a status did not have it, and this one,
    /// which was requested later, does.
    fn is_answered(&mut self, id: &str, question: Question, read: Option<Moment>) -> bool {
        let task = self.tasks.get(id);
        let Some(answered) = task.and_then(|task| task.answered.get(&question)) else {
            return false;
        };
        let is_asked_again = answered
            .closed
            .zip(read)
            .is_some_and(|(closed, read)| read > closed);
        if is_asked_again {
            self.change(id, |task| {
                task.answered.remove(&question);
            });
        }
        !is_asked_again
    }

    /// Records that the answer to a question was sent with a request of this id.
    pub(crate) fn answered(
        &mut self,
        request: Id,
        id: String,
        key: String,
        question: &ElicitRequest,
    ) {
        let question = self.question(&key, question);
        let sent = self.now();
        self.change(&id, |task| {
            let closed = None;
            task.answered.insert(question, Answered { sent, closed });
        });
        self.awaited.push_back((request, id, key, question));
        if self.awaited.len() > AWAITED {
            self.awaited.pop_front();
        }
    }

    /// Records that a question has ended without an answer, for this reason.
    pub(crate) fn failed(&mut self, id: &str, key: &str, why: &str) {
        self.change(id, |task| {
            task.failed.insert(key.to_owned(), why.to_owned());
        });
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
        if let Some((id, key, question)) = self.take_awaited(request) {
            self.change(&id, |task| {
                task.answered.remove(&question);
            });
            self.failed(&id, &key, why);
        }
    }

    fn take_awaited(&mut self, request: &Id) -> Option<(String, String, Question)> {
        let place = self.awaited.iter().position(|(id, ..)| id == request)?;
        let (_, id, key, question) = self.awaited.remove(place)?;
        Some((id, key, question))
    }

    /// Records that the client is shown these questions of this task, and no others.
    pub(crate) fn show<'a>(
        &mut self,
        id: &str,
        questions: impl IntoIterator<Item = (&'a str, &'a InputRequest)>,
    ) {
        let shown: BTreeMap<u64, u64> = questions
            .into_iter()
            .map(|(key, request)| self.question_of(key, request))
            .map(|question| (question.key, question.content))
            .collect();
        if !shown.is_empty() || self.tasks.contains_key(id) {
            self.change(id, |task| task.shown = shown);
        }
    }

    /// Returns `true` if the client was shown all questions that these params answer. It may answer each once: after that, the
    /// server may ask another one under the key. With `remember` these have an answer, whatever status arrives later.
    ///
    /// # Errors
    /// If the params cannot be read.
    pub(crate) fn take_shown(
        &mut self,
        params: &RawValue,
        remember: bool,
    ) -> Result<bool, WireError> {
        let all = Members::read(params, "params")?;
        all.refuse_like(&["taskId", "inputResponses"], "params")?;
        let answers = all
            .get("inputResponses")
            .filter(|answers| !members::is_null(answers));
        let Some(answers) = answers else {
            return Ok(true);
        };
        let id = all.need_text("taskId")?;
        let answers = InputResponses::parse(answers)?;
        let Some(task) = self.tasks.get(&*id) else {
            return Ok(answers.keys().next().is_none());
        };
        let shown = |key: &str| {
            let key = self.hashes.hash_one(key);
            let content = *task.shown.get(&key)?;
            Some(Question { key, content })
        };
        let Some(given) = answers.keys().map(shown).collect::<Option<Vec<Question>>>() else {
            return Ok(false);
        };
        let sent = self.now();
        self.change(&id, |task| {
            for question in &given {
                task.shown.remove(&question.key);
                if remember {
                    let closed = None;
                    task.answered.insert(*question, Answered { sent, closed });
                }
            }
        });
        if let Some(request) = self.requests.back_mut() {
            request.answers = Some((id.into_owned(), given));
        }
        Ok(true)
    }
}

/// Returns the size of a task's id, which is in two tables.
fn size_of_id(id: &str) -> usize {
    2 * (id.len() + ENTRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show<T: AsRef<str>>(tasks: &mut TaskQuestions, id: &str, keys: impl IntoIterator<Item = T>) {
        let raw = RawValue::from_string(r#"{"method":"roots/list"}"#.to_owned()).unwrap();
        let method = "roots/list".to_owned();
        let request = InputRequest::Other { method, raw };
        let keys: Vec<T> = keys.into_iter().collect();
        tasks.show(id, keys.iter().map(|key| (key.as_ref(), &request)));
    }

    fn was_shown(tasks: &TaskQuestions, id: &str, key: &str) -> bool {
        let key = tasks.hashes.hash_one(key);
        let task = tasks.tasks.get(id);
        task.is_some_and(|task| task.shown.contains_key(&key))
    }

    #[test]
    fn a_task_that_is_too_large_to_be_remembered_is_none_that_was_shown() {
        let mut tasks = TaskQuestions::default();
        show(&mut tasks, "a", ["k"]);
        let large = "x".repeat(BYTES + 1);
        show(&mut tasks, &large, ["k"]);
        assert!(!was_shown(&tasks, &large, "k"));
        show(&mut tasks, "b", ["k"]);
        assert!(was_shown(&tasks, "b", "k"));
    }

    #[test]
    fn short_keys_have_a_bound_too() {
        let mut tasks = TaskQuestions::default();
        for task in 0..200 {
            let keys = (0..1_024).map(|key| key.to_string());
            show(&mut tasks, &task.to_string(), keys);
            assert!(tasks.bytes <= BYTES && tasks.tasks.len() == tasks.by_number.len());
        }
        let entries: usize = tasks.tasks.values().map(|task| task.shown.len()).sum();
        assert!(entries <= BYTES / ENTRY, "{entries}");
        assert!(was_shown(&tasks, "199", "7") && !was_shown(&tasks, "0", "7"));
        show(&mut tasks, "199", [""; 0]);
        while let Some(task) = tasks.tasks.keys().next().cloned() {
            show(&mut tasks, &task, [""; 0]);
            let size = tasks.tasks.remove(&task).unwrap().size() + size_of_id(&task);
            tasks.bytes -= size;
        }
        assert_eq!(tasks.bytes, 0);
    }
}
