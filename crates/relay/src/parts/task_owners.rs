//! The callers of tasks: shared by all relays of one server. A server that has one identity for all callers of the
//! gateway cannot keep their tasks apart, so the gateway does: a task belongs to the caller whose call became it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_elicit_core::fault::PeerFault;
use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::members::{self, Members};
use mcp_elicit_core::wire::meta::RELATED_TASK;
use mcp_elicit_core::wire::{Revision, WireError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::frame_edit::{self, ErrorResponse};

/// The most members of a result about a task.
pub(crate) const MOST_MEMBERS: usize = 1_024;

/// The number of tasks of one server that are remembered.
const REMEMBERED: usize = 4_096;
/// The longest id of a task that is remembered, in bytes.
const LONGEST_ID: usize = 1_024;
/// The bytes of all ids that are remembered.
const BYTES: usize = 512 * 1024;

/// The error for a message about a task that the caller did not begin.
const NOT_OF_CALLER: &str =
    "no call of this caller has become this task: the gateway keeps the tasks of its callers apart";

/// The caller that began each task: shared by all relays of one server.
#[derive(Clone, Debug, Default)]
pub struct TaskOwners {
    known: Arc<Mutex<Owners>>,
    /// `true` if a task was begun since the last check.
    changed: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Owners {
    by_task: BTreeMap<String, Owner>,
    /// The tasks of each caller, by their numbers.
    by_caller: BTreeMap<String, BTreeMap<u64, String>>,
    /// The bytes of the ids.
    bytes: usize,
    last: u64,
}

#[derive(Debug)]
struct Owner {
    /// The task's number: later ones have greater numbers.
    number: u64,
    caller: String,
}

/// A task and its caller, as the record stores them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedTask {
    task: String,
    caller: String,
}

impl Owners {
    fn insert(&mut self, task: String, caller: String) {
        if task.len() > LONGEST_ID {
            return;
        }
        self.remove(&task);
        self.last += 1;
        let number = self.last;
        self.bytes += task.len();
        let of_caller = self.by_caller.entry(caller.clone()).or_default();
        of_caller.insert(number, task.clone());
        self.by_task.insert(task, Owner { number, caller });
        while self.by_task.len() > REMEMBERED || self.bytes > BYTES {
            // So no caller displaces the tasks of others.
            let busiest = self.by_caller.values().max_by_key(|tasks| tasks.len());
            let oldest = busiest.and_then(BTreeMap::first_key_value);
            let Some(task) = oldest.map(|(_, task)| task.clone()) else {
                return;
            };
            self.remove(&task);
        }
    }

    fn remove(&mut self, task: &str) {
        let Some(Owner { number, caller }) = self.by_task.remove(task) else {
            return;
        };
        self.bytes -= task.len();
        if let Some(of_caller) = self.by_caller.get_mut(&caller) {
            of_caller.remove(&number);
            if of_caller.is_empty() {
                self.by_caller.remove(&caller);
            }
        }
    }
}

impl TaskOwners {
    fn all(&self) -> MutexGuard<'_, Owners> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a call of this caller became this task. If a server uses an id again, the later task counts.
    fn begin(&self, task: String, caller: String) {
        self.all().insert(task, caller);
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if this caller began the task.
    fn is_of(&self, task: &str, caller: &str) -> bool {
        let all = self.all();
        all.by_task
            .get(task)
            .is_some_and(|owner| owner.caller == caller)
    }

    /// Returns the refusal of a request with these params about a task, unless the task is known to be this caller's.
    pub(crate) fn refusal(&self, params: Option<&RawValue>, caller: &str) -> Option<ErrorResponse> {
        match params.map(task_in) {
            Some(Ok(Some(task))) if self.is_of(&task, caller) => None,
            Some(Err(defect)) => Some(ErrorResponse::new(-32602, defect.to_string())),
            Some(Ok(_)) | None => Some(ErrorResponse::new(-32602, NOT_OF_CALLER)),
        }
    }

    /// Returns the refusal of a message with these params, or this result, that its `_meta` attaches to a task, unless the
    /// task is known to be this caller's.
    pub(crate) fn refusal_of_related(&self, body: &str, caller: &str) -> Option<ErrorResponse> {
        if !body.starts_with('{') {
            return None;
        }
        match related_tasks_in(body) {
            Ok(tasks) if tasks.iter().all(|task| self.is_of(task, caller)) => None,
            Ok(_) => Some(ErrorResponse::new(-32602, NOT_OF_CALLER)),
            Err(defect) => Some(ErrorResponse::new(-32602, defect.to_string())),
        }
    }

    /// Reads the response to a call of this caller. If the call has become a task, the caller may ask about it.
    pub(crate) fn call_answered(&self, frame: Frame<'_>, caller: &str) {
        let has = |name| frame.sole_member(FramePart::Result, name) != Ok(None);
        if !(has("task") || has("taskId")) {
            return;
        }
        let read = |result| Members::read_at_most(result, "result", MOST_MEMBERS);
        let Some(Ok(Some(result))) = frame.result().map(read) else {
            // Readers could see different tasks, so the caller may ask about none.
            return;
        };
        let begun = result.get("task").map(task_in);
        let begun = begun.and_then(Result::ok).flatten();
        let itself = result.text("taskId").ok().flatten().map(Into::into);
        for task in begun.into_iter().chain(itself) {
            self.begin(task, caller.to_owned());
        }
    }

    /// Returns the response to `tasks/list` of a server of this revision, without the tasks of other callers; `None` if
    /// it has none of them.
    ///
    /// # Errors
    /// If the list cannot be read: its refusal.
    pub(crate) fn own_in_list(
        &self,
        frame: Frame<'_>,
        caller: &str,
        revision: Revision,
    ) -> Result<Option<String>, ErrorResponse> {
        let Some(range) = frame.range(FramePart::Result) else {
            return Ok(None);
        };
        let result = frame.result().ok_or_else(ErrorResponse::unreadable)?;
        let refusal = |defect: WireError| ErrorResponse::fault(PeerFault::from(defect), revision);
        let result = Members::read(result, "result").map_err(refusal)?;
        result.refuse_like(&["tasks"], "result").map_err(refusal)?;
        let Some(tasks) = result.get("tasks") else {
            return Ok(None);
        };
        let unreadable = |_| ErrorResponse::unreadable();
        let tasks: Vec<&RawValue> = serde_json::from_str(tasks.get()).map_err(unreadable)?;
        let is_own = |task: &&&RawValue| matches!(task_in(task), Ok(Some(task)) if self.is_of(&task, caller));
        let own: Vec<&RawValue> = tasks.iter().filter(is_own).copied().collect();
        if own.len() == tasks.len() {
            return Ok(None);
        }
        let own = serde_json::value::to_raw_value(&own).map_err(unreadable)?;
        let result = result.with("tasks", Some(&own));
        Ok(Some(frame_edit::spliced(frame.text(), range, result.get())))
    }

    /// Returns `true` if all tasks that a notification names belong to this caller. A notification that names none for
    /// any reader has no others.
    pub(crate) fn has_own_only(&self, frame: Frame<'_>, caller: &str) -> bool {
        let has_members = |params: &str| params.starts_with('{');
        if !frame.part(FramePart::Params).is_some_and(has_members) {
            return true;
        }
        let tasks = frame.params().map(tasks_in);
        matches!(tasks, Some(Ok(tasks)) if tasks.iter().all(|task| self.is_of(task, caller)))
    }

    /// Returns `true` if a task was begun since the last check.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// Returns all tasks, the oldest first.
    pub(crate) fn known(&self) -> Vec<LearnedTask> {
        let all = self.all();
        let mut known: Vec<_> = all.by_task.iter().collect();
        known.sort_by_key(|(_, owner)| owner.number);
        let task = |(task, owner): (&String, &Owner)| LearnedTask {
            task: task.clone(),
            caller: owner.caller.clone(),
        };
        known.into_iter().map(task).collect()
    }

    /// Adds tasks seen by another process, or an earlier one; known ones are unchanged.
    pub(crate) fn add(&self, tasks: &[LearnedTask]) {
        let mut all = self.all();
        for LearnedTask { task, caller } in tasks {
            if !all.by_task.contains_key(task) {
                all.insert(task.clone(), caller.clone());
            }
        }
    }
}

/// Returns the ids of all tasks that the params of a notification name.
fn tasks_in(params: &RawValue) -> Result<Vec<String>, WireError> {
    let all = Members::read(params, "params")?;
    all.refuse_like(&["taskId", "task", "_meta"], "params")?;
    let mut tasks: Vec<String> = task_in(params)?.into_iter().collect();
    if let Some(task) = all.get("task").filter(|task| task.get().starts_with('{')) {
        tasks.extend(task_in(task)?);
    }
    tasks.extend(related_task_in(&all)?);
    Ok(tasks)
}

/// Returns the ids of the tasks to which a message with these params, or this result, or one of its `inputResponses`, is
/// attached.
fn related_tasks_in(body: &str) -> Result<Vec<String>, WireError> {
    const RESPONSES: &str = "inputResponses";
    let all = Members::read_text(body, "params")?;
    all.refuse_like(&["_meta", RESPONSES], "params")?;
    let mut tasks: Vec<String> = related_task_in(&all)?.into_iter().collect();
    let is_object = |value: &&RawValue| value.get().starts_with('{');
    if let Some(responses) = all.get(RESPONSES).filter(is_object) {
        let responses = Members::read(responses, RESPONSES)?;
        for (_, response) in responses.iter().filter(|(_, value)| is_object(value)) {
            let response = Members::read(response, "response")?;
            response.refuse_like(&["_meta"], "response")?;
            tasks.extend(related_task_in(&response)?);
        }
    }
    Ok(tasks)
}

/// Returns the id of the task to which `_meta` attaches a message with these params, or this result.
fn related_task_in(all: &Members<'_>) -> Result<Option<String>, WireError> {
    let Some(meta) = all.get("_meta").filter(|meta| meta.get().starts_with('{')) else {
        return Ok(None);
    };
    let meta = Members::read(meta, "_meta")?;
    meta.refuse_like(&[RELATED_TASK], "_meta")?;
    meta.get(RELATED_TASK).map_or(Ok(None), task_in)
}

/// Returns the id of the task that an object names.
fn task_in(object: &RawValue) -> Result<Option<String>, WireError> {
    if members::is_null(object) {
        return Ok(None);
    }
    let all = Members::read(object, "params")?;
    all.refuse_like(&["taskId"], "params")?;
    Ok(all.text("taskId")?.map(Into::into))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_task_is_forgotten_and_all_others_are_kept_for_the_next_process() {
        let owners = TaskOwners::default();
        for number in 0..=REMEMBERED {
            owners.begin(number.to_string(), "ada".to_owned());
        }
        assert!(owners.take_changed() && !owners.take_changed());
        assert!(!owners.is_of("0", "ada") && owners.is_of("1", "ada"));
        assert!(!owners.is_of("1", "bob"));
        owners.begin("x".repeat(LONGEST_ID + 1), "ada".to_owned());
        let next = TaskOwners::default();
        next.begin("1".to_owned(), "bob".to_owned());
        next.add(&owners.known());
        assert!(next.is_of("2", "ada") && next.is_of("1", "bob"));
        assert_eq!(next.known().len(), REMEMBERED);
        // A caller that begins many tasks loses its own.
        assert!(next.is_of("1", "bob"));
        next.begin("more".to_owned(), "ada".to_owned());
        assert!(next.is_of("1", "bob") && next.is_of("more", "ada"));
        // A task of another caller under the same id is that caller's.
        next.begin("more".to_owned(), "bob".to_owned());
        assert!(next.is_of("more", "bob") && !next.is_of("more", "ada"));
        // Long ids are fewer.
        for number in 0..1_000 {
            next.begin(format!("{number:01000}"), "ada".to_owned());
        }
        assert!(next.is_of("1", "bob") && next.all().bytes <= BYTES);
        assert!(next.is_of(&format!("{:01000}", 999), "ada"));
    }
}
