//! The tasks that the gateway runs for this client (2025-11-25, tasks), and the requests that wait for their end.
//!
//! The gateway waits for the call of a task in place of the client, on a stream of its own. The record has each task
//! under an unguessable id: its state while it runs, then its last state and its response.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use mcp_elicit_core::wire::Id;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::parts::call_budget::Permit;
use crate::parts::calls::Call;
use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::lookups::Lookups;
use crate::{CallId, StreamId, Timestamp};

/// The prefix of the ids of the gateway's tasks; the record's id follows.
const PREFIX: &str = "mcp-elicit.t1.";
/// The time after which a client best asks for the state again.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The longest record's id of a task, in bytes.
const LONGEST_ID: usize = 128;
/// The number of tasks that are remembered after their end.
const ENDED: usize = 1_024;
/// The most dialogs of a task that wait for a request that can carry them.
const DIALOGS: usize = 64;

/// Returns the record's id of a task of the gateway; `None` for a server's task.
pub(crate) fn record_id(task: &str) -> Option<&str> {
    let id = task.strip_prefix(PREFIX)?;
    (id.len() <= LONGEST_ID).then_some(id)
}

/// Returns the id of the task of the gateway with this id in the record.
pub(crate) fn task_id(record: &str) -> String {
    format!("{PREFIX}{record}")
}

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskStatus {
    /// The call is in progress.
    Working,
    /// A question of the call waits for an answer.
    InputRequired,
    /// The call has ended with a result.
    Completed,
    /// The call has ended with an error, or with the result of a tool that failed.
    Failed,
    /// The client has cancelled it.
    Cancelled,
}

/// The state of a task, as the record has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskState {
    status: TaskStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    created: Timestamp,
    updated: Timestamp,
    /// The time from its creation for which it is kept, in milliseconds.
    ttl: u64,
}

/// The last state of a task, and its response, as the record has them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EndedTask {
    pub(crate) state: TaskState,
    /// The response to its call, a whole frame under any id.
    pub(crate) response: String,
}

impl TaskState {
    /// Creates the state of a new task that is kept for this time.
    pub(crate) fn new(now: Timestamp, ttl: Duration) -> Self {
        Self {
            status: TaskStatus::Working,
            message: None,
            created: now,
            updated: now,
            ttl: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Returns the state as this status, with this message.
    #[must_use]
    pub(crate) fn became(
        &self,
        now: Timestamp,
        status: TaskStatus,
        message: Option<String>,
    ) -> Self {
        Self {
            status,
            message,
            updated: now,
            ..self.clone()
        }
    }

    /// Returns the state as that of a task that has failed for this reason.
    #[must_use]
    pub(crate) fn failed(&self, why: &str) -> Self {
        self.became(self.updated, TaskStatus::Failed, Some(why.to_owned()))
    }

    /// Returns `true` for a task that was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.status == TaskStatus::Cancelled
    }

    /// Returns `true` if it has this status and message.
    fn is(&self, status: TaskStatus, message: Option<&str>) -> bool {
        self.status == status && self.message.as_deref() == message
    }

    /// Returns the time until which the task is kept.
    fn until(&self) -> Timestamp {
        self.created.after(Duration::from_millis(self.ttl))
    }

    /// Returns the `Task` of the extension for 2026-07-28 with this id in the record. Its client is not asked in the task, so
    /// the task is at work while people are asked.
    pub(crate) fn to_extension_task(&self, record: &str) -> Value {
        let mut task = self.to_task(record);
        if let Some(all) = task.as_object_mut() {
            for (old, new) in [("ttl", "ttlMs"), ("pollInterval", "pollIntervalMs")] {
                if let Some(value) = all.shift_remove(old) {
                    all.insert(new.to_owned(), value);
                }
            }
        }
        if self.status == TaskStatus::InputRequired {
            task["status"] = json!(TaskStatus::Working);
        }
        task
    }

    /// Returns the `Task` of 2025-11-25 with this id in the record.
    pub(crate) fn to_task(&self, record: &str) -> Value {
        let mut task = json!({
            "taskId": task_id(record),
            "status": self.status,
            "createdAt": rfc3339(self.created),
            "lastUpdatedAt": rfc3339(self.updated),
            "ttl": self.ttl,
        });
        if let Some(message) = &self.message {
            task["statusMessage"] = json!(message);
        }
        if matches!(self.status, TaskStatus::Working | TaskStatus::InputRequired) {
            task["pollInterval"] =
                json!(u64::try_from(POLL_INTERVAL.as_millis()).unwrap_or(u64::MAX));
        }
        task
    }
}

/// A task of this session.
struct OwnTask {
    /// The number by which the record knows it.
    key: CallId,
    /// Its id in the record, once written.
    record: Option<String>,
    /// The request that waits for its creation.
    creator: Option<(StreamId, Id)>,
    state: TaskState,
    /// `false` once it has ended.
    runs: bool,
    permit: Permit,
    /// Requests to the client, each with a question, that could not be sent yet.
    dialogs: Vec<IndexedFrame>,
    /// The requests for its result.
    followers: Vec<CallId>,
}

/// A request about a task of the gateway.
#[derive(Clone)]
pub(crate) struct TaskRequest {
    /// The id of the request.
    pub(crate) id: Id,
    pub(crate) method: &'static str,
    /// The record's id of the task.
    pub(crate) record: String,
}

impl TaskRequest {
    /// Returns its size, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.id.as_json().len() + self.record.len()
    }
}

/// The end of a task, for the record.
pub(crate) struct TaskEnd {
    pub(crate) key: CallId,
    pub(crate) ended: EndedTask,
    pub(crate) until: Timestamp,
}

/// The tasks of this session.
#[derive(Default)]
pub(crate) struct OwnTasks {
    by_stream: BTreeMap<StreamId, OwnTask>,
    /// The requests for results of tasks.
    following: FxHashMap<CallId, TaskRequest>,
    lookups: Lookups<TaskRequest>,
    touched: BTreeSet<StreamId>,
    /// The tasks that a request cancels that is not answered yet, by their ids in the record.
    cancelling: BTreeSet<String>,
    /// The last tasks that have ended, by their ids in the record.
    ended: VecDeque<String>,
    last: u64,
}

impl OwnTasks {
    /// Returns `true` while there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_stream.is_empty()
    }

    /// Adds a task, which the record knows by this number. Returns the stream on which the gateway waits for its call, and
    /// the time until which the task is kept.
    pub(crate) fn begin(
        &mut self,
        key: CallId,
        permit: Permit,
        creator: (StreamId, Id),
        state: TaskState,
    ) -> (StreamId, Timestamp) {
        self.last += 1;
        let stream = StreamId::of_task(self.last, creator.0);
        let until = state.until();
        let task = OwnTask {
            key,
            record: None,
            creator: Some(creator),
            state,
            runs: true,
            permit,
            dialogs: Vec::new(),
            followers: Vec::new(),
        };
        self.by_stream.insert(stream, task);
        (stream, until)
    }

    /// Returns the stream of the task with this number.
    pub(crate) fn stream_of(&self, key: CallId) -> Option<StreamId> {
        let mut all = self.by_stream.iter();
        all.find(|(_, task)| task.key == key)
            .map(|(stream, _)| *stream)
    }

    /// Records the task's id in the record, if it could be written. Returns the request that waits for its creation, and
    /// the state in which it was created.
    pub(crate) fn created(
        &mut self,
        stream: StreamId,
        record: Option<String>,
    ) -> Option<(StreamId, Id, TaskState)> {
        let task = self.by_stream.get_mut(&stream)?;
        let begun = task
            .state
            .became(task.state.created, TaskStatus::Working, None);
        task.record = record;
        let (to, id) = task.creator.take()?;
        Some((to, id, begun))
    }

    /// Returns the stream of the running task with this id in the record.
    pub(crate) fn running(&self, record: &str) -> Option<StreamId> {
        let mut all = self.by_stream.iter();
        let found = all.find(|(_, task)| task.runs && task.record.as_deref() == Some(record));
        found.map(|(stream, _)| *stream)
    }

    /// Returns `true` if the task with this id in the record runs here, or is one of the last that have ended here.
    pub(crate) fn knows(&self, record: &str) -> bool {
        self.running(record).is_some() || self.ended.iter().any(|ended| ended == record)
    }

    /// Notes that a request, which is not answered yet, cancels the task with this id in the record.
    pub(crate) fn note_cancelled(&mut self, record: &str) {
        self.cancelling.insert(record.to_owned());
    }

    /// Returns `true` once after a request has cancelled the task with this id in the record.
    pub(crate) fn take_cancelled(&mut self, record: &str) -> bool {
        self.cancelling.remove(record)
    }

    /// Notes that the questions of this task's call may have changed.
    fn touch(&mut self, stream: StreamId) {
        if self.by_stream.get(&stream).is_some_and(|task| task.runs) {
            self.touched.insert(stream);
        }
    }

    /// Notes that the questions of this call, which may be that of a task, may have changed.
    pub(crate) fn touch_of(&mut self, call: Option<&Call>) {
        let stream = call.and_then(Call::stream);
        if let Some(stream) = stream.filter(|stream| stream.is_of_task()) {
            self.touch(stream);
        }
    }

    /// Takes out the tasks whose calls' questions may have changed.
    pub(crate) fn take_touched(&mut self) -> BTreeSet<StreamId> {
        std::mem::take(&mut self.touched)
    }

    /// Changes the state of a running task. Returns its number and its state, unless it is the same.
    pub(crate) fn change(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        status: TaskStatus,
        message: Option<String>,
    ) -> Option<(CallId, &TaskState)> {
        let task = self.by_stream.get_mut(&stream).filter(|task| task.runs)?;
        if task.state.is(status, message.as_deref()) {
            return None;
        }
        task.state = task.state.became(now, status, message);
        Some((task.key, &task.state))
    }

    /// Ends a running task with this response, which is kept for this time, or for a shorter one that the client has set.
    pub(crate) fn end(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        (status, message): (TaskStatus, Option<String>),
        response: String,
        keep: Duration,
    ) -> Option<TaskEnd> {
        let task = self.by_stream.get_mut(&stream).filter(|task| task.runs)?;
        task.runs = false;
        task.dialogs = Vec::new();
        task.followers = Vec::new();
        if let Some(record) = &task.record {
            if self.ended.len() == ENDED {
                self.ended.pop_front();
            }
            self.ended.push_back(record.clone());
        }
        // From now on only the record has it.
        task.permit.set_bytes(0);
        let mut state = task.state.became(now, status, message);
        let kept = now.after(keep).since(state.created);
        let kept = u64::try_from(kept.as_millis()).unwrap_or(u64::MAX);
        state.ttl = state.ttl.min(kept);
        task.state = state.clone();
        let until = state.until();
        let ended = EndedTask { state, response };
        let key = task.key;
        Some(TaskEnd { key, ended, until })
    }

    /// Forgets a task. Returns its number.
    pub(crate) fn remove(&mut self, stream: StreamId) -> Option<CallId> {
        self.touched.remove(&stream);
        self.by_stream.remove(&stream).map(|task| task.key)
    }

    /// Returns the requests about tasks that are being looked up in the record.
    pub(crate) fn lookups_mut(&mut self) -> &mut Lookups<TaskRequest> {
        &mut self.lookups
    }

    /// Adds a request for the result of a task. Returns the dialogs that wait for it.
    pub(crate) fn follow(&mut self, call: CallId, request: TaskRequest) -> Vec<IndexedFrame> {
        let mut all = self.by_stream.values_mut();
        let own = all.find(|task| task.runs && task.record.as_deref() == Some(&request.record));
        let dialogs = own.map_or_else(Vec::new, |task| {
            task.followers.push(call);
            std::mem::take(&mut task.dialogs)
        });
        self.following.insert(call, request);
        dialogs
    }

    /// Ends the wait for the end of a task. Returns the request; `None` if the call did not wait for one.
    pub(crate) fn end_following(&mut self, call: CallId) -> Option<TaskRequest> {
        let request = self.following.remove(&call)?;
        for task in self.by_stream.values_mut() {
            task.followers.retain(|known| *known != call);
        }
        Some(request)
    }

    /// Takes out the dialogs of a task that could not be sent yet.
    pub(crate) fn take_dialogs(&mut self, stream: StreamId) -> Vec<IndexedFrame> {
        let task = self.by_stream.get_mut(&stream);
        task.map_or_else(Vec::new, |task| std::mem::take(&mut task.dialogs))
    }

    /// Returns the newest request for the task's result.
    pub(crate) fn newest_follower(&self, stream: StreamId) -> Option<CallId> {
        self.by_stream.get(&stream)?.followers.last().copied()
    }

    /// Keeps a request to the client until it can be sent.
    pub(crate) fn keep_dialog(&mut self, stream: StreamId, dialog: IndexedFrame) {
        if let Some(task) = self.by_stream.get_mut(&stream)
            && task.dialogs.len() < DIALOGS
        {
            task.dialogs.push(dialog);
        }
    }

    /// Returns the id under which the client knows the task, once it is written.
    pub(crate) fn task_id(&self, stream: StreamId) -> Option<String> {
        let record = self.by_stream.get(&stream)?.record.as_deref()?;
        Some(task_id(record))
    }
}

/// Returns the time as RFC 3339 writes it: `2026-11-29T20:08:00.123Z`.
fn rfc3339(at: Timestamp) -> String {
    const DAY: u64 = 24 * 60 * 60_000;
    let (days, rest) = (at.as_millis() / DAY, at.as_millis() % DAY);
    // Howard Hinnant's algorithm: years begin in March, in eras of 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    let (seconds, millis) = (rest / 1_000 % 60, rest % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (millis, written) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_798_761_599_999, "2026-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Timestamp::from_millis(millis)), written);
        }
    }

    #[test]
    fn only_ids_of_the_gateway_are_its_own() {
        assert_eq!(record_id("mcp-elicit.t1.0e0e"), Some("0e0e"));
        assert_eq!(record_id("786512e2"), None);
        let long = format!("{PREFIX}{}", "0".repeat(LONGEST_ID + 1));
        assert_eq!(record_id(&long), None);
    }
}
