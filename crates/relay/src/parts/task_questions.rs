//! The tasks that calls became, and their questions that the client was shown.

use std::collections::{BTreeMap, BTreeSet};

use mcp_elicit_core::wire::members::{self, Members};
use mcp_elicit_core::wire::{InputResponses, WireError};
use serde_json::value::RawValue;

use crate::CallSummary;
use crate::parts::past_calls::size_of;

/// The number of tasks that are remembered.
const REMEMBERED: usize = 1_024;
/// The size of the names and arguments of their calls and of the keys of their questions, in bytes.
const BYTES: usize = 4 * 1024 * 1024;

/// The tasks that calls became, by their ids. A forgotten task belongs to an unknown call.
#[derive(Default)]
pub(crate) struct TaskQuestions {
    tasks: BTreeMap<String, Task>,
    last: u64,
}

/// A task.
#[derive(Default)]
struct Task {
    /// Its number: later ones have greater numbers.
    number: u64,
    call: Option<CallSummary>,
    /// The keys of the questions that the client was shown.
    shown: BTreeSet<String>,
}

impl Task {
    fn size(&self, id: &str) -> usize {
        let call = self.call.as_ref().map_or(0, size_of);
        id.len() + call + self.shown.iter().map(String::len).sum::<usize>()
    }
}

impl TaskQuestions {
    /// Returns the call that became this task.
    pub(crate) fn call_of(&self, id: &str) -> Option<&CallSummary> {
        self.tasks.get(id)?.call.as_ref()
    }

    /// Records that a call became this task.
    pub(crate) fn begin(&mut self, id: String, call: Option<CallSummary>) {
        let shown = BTreeSet::new();
        self.last += 1;
        let number = self.last;
        self.tasks.insert(
            id,
            Task {
                number,
                call,
                shown,
            },
        );
        self.forget_oldest();
    }

    /// Records that the client is shown questions of this task under these keys, and no others.
    pub(crate) fn show(&mut self, id: &str, keys: BTreeSet<String>) {
        if !keys.is_empty() && !self.tasks.contains_key(id) {
            self.begin(id.to_owned(), None);
        }
        if let Some(task) = self.tasks.get_mut(id) {
            task.shown = keys;
        }
        self.forget_oldest();
    }

    fn was_shown(&self, id: &str, key: &str) -> bool {
        let task = self.tasks.get(id);
        task.is_some_and(|task| task.shown.contains(key))
    }

    /// Returns `true` if the client was shown all questions that these params answer.
    ///
    /// # Errors
    /// If the params cannot be read.
    pub(crate) fn were_shown(&self, params: &RawValue) -> Result<bool, WireError> {
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
        let mut keys = answers.keys();
        Ok(keys.all(|key| self.was_shown(&task, key)))
    }

    fn forget_oldest(&mut self) {
        let mut bytes: usize = self.tasks.iter().map(|(id, task)| task.size(id)).sum();
        while self.tasks.len() > REMEMBERED || bytes > BYTES {
            let oldest = self.tasks.iter().min_by_key(|(_, task)| task.number);
            let Some(id) = oldest.map(|(id, _)| id.clone()) else {
                return;
            };
            if let Some(task) = self.tasks.remove(&id) {
                bytes -= task.size(&id);
            }
        }
    }
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
}
