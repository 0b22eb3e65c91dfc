//! Calls that the gateway runs as tasks of their clients: the rows are those of calls without a waiting client, and are
//! found by the task's id, for as long as the task is kept, by the same caller only.
//!
//! The state of a task, and its response, are texts of the session that runs it; the record does not read them.

use std::sync::Arc;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::FoundTask;
use tokio::sync::mpsc;

use super::Party;
use crate::store::{RecordStore as _, RunningCall};
use crate::{
    Applied, Record, RecordError, RecordEvent, SessionIdentity, SessionKey, associated_data,
};

/// The beginning of the deduplication key of a task, which the key of a call never has.
const TASK: &str = "task:";

/// The beginning of the stored state of a running task that another gateway wants to be cancelled.
const CANCELS: &str = "cancel:";

/// Returns `true` for a running task that another gateway wants to be cancelled.
pub(super) fn is_cancelled(running: &RunningCall) -> bool {
    let state = running.link.as_deref();
    state.is_some_and(|state| state.starts_with(CANCELS))
}

/// Returns `true` for the deduplication key of a task.
pub(super) fn is_task(binding: &str) -> bool {
    binding.starts_with(TASK)
}

impl Record {
    /// Returns the deduplication key of the caller's tasks at the server.
    fn task_key(&self, who: &SessionIdentity, info: Option<&str>) -> String {
        format!("{TASK}{}", self.call_key(who, info, TASK))
    }

    /// Records a task that this session runs, in this state, until this time at most. Returns its id.
    ///
    /// # Errors
    /// If the system has no random numbers, or the store fails.
    pub fn begin_task(
        self: &Arc<Self>,
        who: &SessionIdentity,
        info: Option<&str>,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        task: SessionKey,
        state: String,
        until: Timestamp,
    ) -> Applied<String> {
        let binding = self.task_key(who, info);
        let owner = Party {
            tell: tell.clone(),
            call: task,
        };
        let link = Some(state);
        let id = match self.add_unattended(owner, binding.clone(), link.clone(), Some(until)) {
            Ok(id) => id,
            Err(fault) => return Err(fault).into(),
        };
        let running = self.own_running(link);
        let record = self.clone();
        Applied::pending(async move {
            let begun = record.begin_call(id.clone(), binding, running, until);
            if let Err(fault) = begun.await {
                record.forget_unattended(&id);
                return Err(fault);
            }
            Ok(id)
        })
    }

    /// Records the state of a task of this session.
    pub fn update_task(
        self: &Arc<Self>,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        task: SessionKey,
        state: String,
    ) -> Applied<()> {
        let found = {
            let mut calls = self.unattended();
            let known = calls.values_mut().find(|known| known.is_of(tell, task));
            known.and_then(|known| {
                known.link = Some(state.clone());
                Some((known.id.clone(), known.binding.clone(), known.task_until?))
            })
        };
        let Some((id, binding, until)) = found else {
            return Applied::Now(());
        };
        let running = self.own_running(Some(state));
        let record = self.clone();
        Applied::pending(async move { record.begin_call(id, binding, running, until).await })
    }

    /// Stores the end of a task of this session until this time: its last state and its response.
    pub fn end_task(
        self: &Arc<Self>,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        task: SessionKey,
        ended: String,
        until: Timestamp,
    ) -> Applied<()> {
        let (record, tell) = (self.clone(), tell.clone());
        Applied::pending(async move { record.store_result(&tell, task, &ended, until).await })
    }

    /// Finds a task of this caller.
    pub fn find_task(
        self: &Arc<Self>,
        who: &SessionIdentity,
        info: Option<&str>,
        id: String,
    ) -> Applied<FoundTask> {
        let (record, binding) = (self.clone(), self.task_key(who, info));
        Applied::pending(async move { record.find_stored_task(&binding, id).await })
    }

    async fn find_stored_task(&self, binding: &str, id: String) -> Result<FoundTask, RecordError> {
        if let Some(state) = self.state_of_own_task(binding, &id) {
            return Ok(FoundTask::Running(state));
        }
        let now = self.now();
        if let Some(kept) = self.store.stored_call(id.clone()).await? {
            if kept.binding != binding || kept.until <= now {
                return Ok(FoundTask::Nothing);
            }
            let aad = associated_data(&id, "result");
            let ended = self.keys.encryption.open(&aad, &kept.result);
            return Ok(ended.map_or(FoundTask::Nothing, FoundTask::Finished));
        }
        let stored = self.store.calls(Some(binding.to_owned()), now).await?;
        let Some(call) = stored.into_iter().find(|call| call.id == id) else {
            return Ok(FoundTask::Nothing);
        };
        let Some(running) = call.running.clone() else {
            // It has ended meanwhile.
            return Box::pin(self.find_stored_task(binding, id)).await;
        };
        let state = running.link.as_deref().unwrap_or_default();
        let state = state.strip_prefix(CANCELS).unwrap_or(state).to_owned();
        self.lock_file.refresh().await;
        if !self.runs_elsewhere(&running) {
            // It may have begun here meanwhile.
            let here = self.state_of_own_task(binding, &id);
            return Ok(here.map_or(FoundTask::Lost(state), FoundTask::Running));
        }
        let mut calls = self.unattended();
        calls.entry(id).or_insert_with(|| call.into());
        self.count_calls(&calls);
        Ok(FoundTask::Running(state))
    }

    /// Returns the state of a task that a session of this gateway runs.
    fn state_of_own_task(&self, binding: &str, id: &str) -> Option<String> {
        let calls = self.unattended();
        let known = calls.get(id)?;
        let runs = known.owner.is_some() && known.result_until.is_none();
        (runs && known.binding == binding)
            .then(|| known.link.clone())
            .flatten()
    }

    /// Asks the session that runs this task of the caller to cancel it; at another gateway, through the store.
    pub fn cancel_task(
        self: &Arc<Self>,
        who: &SessionIdentity,
        info: Option<&str>,
        id: String,
    ) -> Applied<()> {
        let binding = self.task_key(who, info);
        if self.state_of_own_task(&binding, &id).is_some() {
            self.tell_cancelled(&id);
            return Applied::Now(());
        }
        let record = self.clone();
        Applied::pending(async move { record.cancel_elsewhere(binding, id).await })
    }

    async fn cancel_elsewhere(&self, binding: String, id: String) -> Result<(), RecordError> {
        let stored = self.store.calls(Some(binding.clone()), self.now()).await?;
        let call = stored.into_iter().find(|call| call.id == id);
        if let Some(call) = call
            && let Some(mut running) = call.running
            && !is_cancelled(&running)
        {
            let state = running.link.unwrap_or_default();
            running.link = Some(format!("{CANCELS}{state}"));
            let begun = self.store.begin_call(id, binding, running, call.until);
            begun.await?;
        }
        Ok(())
    }

    /// Tells the session here that runs this task that it is cancelled.
    pub(super) fn tell_cancelled(&self, id: &str) {
        let owner = self
            .unattended()
            .get(id)
            .and_then(|known| known.owner.clone());
        if let Some(owner) = owner {
            let task = owner.call;
            let _its_session_is_gone = owner.tell.send(RecordEvent::TaskCancelled { task });
        }
    }

    /// Notifies this session when this task has ended; at once if it has already.
    pub fn follow_task(
        &self,
        id: &str,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        call: SessionKey,
    ) {
        let party = Party {
            tell: tell.clone(),
            call,
        };
        match self.unattended().get_mut(id) {
            Some(running) if running.result_until.is_none() => running.followers.push(party),
            Some(_) | None => drop(tell.send(RecordEvent::FollowedCallEnded { call })),
        }
    }
}
