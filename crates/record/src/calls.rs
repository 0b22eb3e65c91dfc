//! Calls without a waiting client: handed back, and in progress or finished. The same call made again, in any session
//! of the same caller, gets the result, or follows the call in progress: no work is done twice.
//!
//! A call in progress is a row of the record with the gateway that runs it, while that gateway runs; its result replaces
//! the row, sealed, for a limited time. If other gateways share the record, each call is looked up there.

mod tasks;
mod unwritten;

use crate::{RecordEvent, SessionKey};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::FoundCall;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use self::unwritten::UnwrittenCall;
use super::{Applied, Record, RecordError, SessionIdentity, associated_data, encryption};
use crate::store::{FinishedCall, RecordStore as _, RunningCall, UnattendedCall};

/// A session to notify, and its number for the call.
#[derive(Clone)]
pub(super) struct Party {
    tell: mpsc::UnboundedSender<RecordEvent>,
    call: SessionKey,
}

impl Party {
    fn is(&self, tell: &mpsc::UnboundedSender<RecordEvent>, call: SessionKey) -> bool {
        self.call == call && self.tell.same_channel(tell)
    }
}

/// A call without a waiting client.
pub(super) struct UnattendedEntry {
    id: String,
    binding: String,
    /// The session that made it, while it exists.
    owner: Option<Party>,
    /// The other gateway that runs it.
    elsewhere: Option<String>,
    /// The time until which its result is kept; `None` while the server processes it.
    result_until: Option<Timestamp>,
    /// The address at which a person can answer the question that it waits for; of a task, its state.
    link: Option<String>,
    /// The time until which a task is kept, with its result.
    task_until: Option<Timestamp>,
    /// Its last change, if the store does not have it.
    unwritten: Option<UnwrittenCall>,
    followers: Vec<Party>,
}

impl Record {
    fn unattended(&self) -> MutexGuard<'_, HashMap<String, UnattendedEntry>> {
        self.unattended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn count_calls(&self, calls: &HashMap<String, UnattendedEntry>) {
        self.unattended_count.store(calls.len(), Ordering::Release);
    }

    /// Returns `true` if there may be any call without a waiting client: one is known, or other gateways share the
    /// record.
    pub fn has_calls(&self) -> bool {
        self.unattended_count.load(Ordering::Acquire) > 0 || self.presence.is_shared()
    }

    fn call_key(&self, who: &SessionIdentity, info: Option<&str>, digest: &str) -> String {
        let key = &self.keys.identity;
        let scope = self.scopes.of(key, who, info);
        key.hash("call", &[scope.hash.as_bytes(), digest.as_bytes()])
    }

    /// Returns `true` if this call may be found by [`Record::find_call`].
    pub fn knows_call(&self, who: &SessionIdentity, info: Option<&str>, digest: &str) -> bool {
        if !self.has_calls() {
            return false;
        }
        if self.presence.is_shared() {
            return true;
        }
        let binding = self.call_key(who, info, digest);
        let now = self.now();
        self.unattended().values().any(|call| {
            call.binding == binding && call.result_until.is_none_or(|until| now < until)
        })
    }

    /// Finds the same call of the same caller. A result is returned once.
    pub fn find_call(
        self: &Arc<Self>,
        who: &SessionIdentity,
        info: Option<&str>,
        digest: &str,
    ) -> Applied<FoundCall> {
        if !self.knows_call(who, info, digest) {
            return Applied::Now(FoundCall::Nothing);
        }
        let (record, binding) = (self.clone(), self.call_key(who, info, digest));
        Applied::pending(async move { record.find_stored_call(&binding).await })
    }

    async fn find_stored_call(&self, binding: &str) -> Result<FoundCall, RecordError> {
        loop {
            let now = self.now();
            let (finished, runs) = {
                let calls = self.unattended();
                let of_it = || calls.values().filter(|call| call.binding == binding);
                let is_kept =
                    |call: &&UnattendedEntry| call.result_until.is_some_and(|until| now < until);
                let finished = of_it().find(is_kept).map(|call| call.id.clone());
                let mut running = of_it().filter(|call| call.result_until.is_none());
                (finished, running.next().map(|call| call.link.clone()))
            };
            let id = match (finished, runs) {
                (Some(id), _) => id,
                (None, Some(link)) => return Ok(FoundCall::Running { link }),
                (None, None) => match self.find_call_elsewhere(binding).await? {
                    CallElsewhere::Finished(id) => id,
                    CallElsewhere::Running(link) => return Ok(FoundCall::Running { link }),
                    CallElsewhere::Nothing => return Ok(FoundCall::Nothing),
                },
            };
            let owner = self.forget_unattended(&id).and_then(|call| call.owner);
            // The gateway that deletes it has it: another may be first.
            let Some(kept) = self.store.take_call(id.clone()).await? else {
                continue;
            };
            if let Some(owner) = owner {
                let call = owner.call;
                let _its_session_is_gone = owner.tell.send(RecordEvent::CallTaken { call });
            }
            if let Ok(result) = self
                .keys
                .encryption
                .open(&associated_data(&id, "result"), &kept.result)
            {
                return Ok(FoundCall::Result(result));
            }
        }
    }

    /// Looks up a call of another gateway that shares the record.
    async fn find_call_elsewhere(&self, binding: &str) -> Result<CallElsewhere, RecordError> {
        if !self.presence.is_shared() {
            return Ok(CallElsewhere::Nothing);
        }
        let stored = self
            .store
            .calls(Some(binding.to_owned()), self.now())
            .await?;
        if !stored.is_empty() {
            self.lock_file.refresh().await;
        }
        let mut found = CallElsewhere::Nothing;
        for call in stored {
            match &call.running {
                None => return Ok(CallElsewhere::Finished(call.id)),
                Some(running) if self.runs_elsewhere(running) => {
                    found = CallElsewhere::Running(running.link.clone());
                    let mut calls = self.unattended();
                    calls.entry(call.id.clone()).or_insert_with(|| call.into());
                    self.count_calls(&calls);
                }
                Some(_) => {}
            }
        }
        Ok(found)
    }

    /// Returns `true` if another gateway runs the call, and still does.
    fn runs_elsewhere(&self, running: &RunningCall) -> bool {
        !self.lock_file.is_mine(&running.owner) && self.lock_file.is_held(&running.owner)
    }

    fn forget_unattended(&self, id: &str) -> Option<UnattendedEntry> {
        let mut calls = self.unattended();
        let call = calls.remove(id);
        self.count_calls(&calls);
        call
    }

    /// Records that a call of this session is in progress without a waiting client; a person can answer its question at
    /// `link`. Of a call that was recorded before, this is its new link.
    ///
    /// # Errors
    /// If the system has no random numbers, or the store fails: then only this gateway knows of the call, until the store can
    /// be written again.
    pub fn keep_call(
        self: &Arc<Self>,
        who: &SessionIdentity,
        info: Option<&str>,
        digest: &str,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        call: SessionKey,
        link: Option<String>,
    ) -> Applied<()> {
        let binding = self.call_key(who, info, digest);
        let owner = Party {
            tell: tell.clone(),
            call,
        };
        let known = self.relinked(tell, call, &binding, link.as_ref());
        let added = || self.add_unattended(owner, binding.clone(), link.clone(), None);
        let id = match known.map_or_else(added, Ok) {
            Ok(id) => id,
            Err(fault) => return Err(fault).into(),
        };
        let running = self.own_running(link);
        let until = self.now().after(self.retention().results);
        let record = self.clone();
        Applied::pending(async move { record.begin_call(id, binding, running, until).await })
    }

    /// Replaces the link of a call of this session that is in progress. Returns its id; `None` if it is not known.
    fn relinked(
        &self,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        call: SessionKey,
        binding: &str,
        link: Option<&String>,
    ) -> Option<String> {
        let mut calls = self.unattended();
        let mut of_session = calls.values_mut().filter(|known| known.is_of(tell, call));
        let known = of_session.find(|known| known.binding == binding && !known.has_ended())?;
        known.link = link.cloned();
        Some(known.id.clone())
    }

    /// Adds a call in progress that nobody waits for, under a new id, which it returns. `task_until` is the time until which
    /// a task is kept.
    ///
    /// # Errors
    /// If the system has no random numbers.
    fn add_unattended(
        &self,
        owner: Party,
        binding: String,
        link: Option<String>,
        task_until: Option<Timestamp>,
    ) -> Result<String, RecordError> {
        let id = encryption::random_id()?;
        let unattended = UnattendedEntry {
            id: id.clone(),
            binding,
            owner: Some(owner),
            elsewhere: None,
            result_until: None,
            link,
            task_until,
            unwritten: None,
            followers: Vec::new(),
        };
        let mut calls = self.unattended();
        calls.insert(id.clone(), unattended);
        self.count_calls(&calls);
        Ok(id)
    }

    fn own_running(&self, link: Option<String>) -> RunningCall {
        RunningCall {
            owner: self.lock_file.name().to_owned(),
            link,
        }
    }

    /// Stores a call in progress, so that other gateways find it.
    async fn begin_call(
        &self,
        id: String,
        binding: String,
        running: RunningCall,
        until: Timestamp,
    ) -> Result<(), RecordError> {
        let begun = self.store.begin_call(id.clone(), binding, running, until);
        if let Err(fault) = begun.await {
            self.write_later(&id, UnwrittenCall::Begun { until });
            return Err(fault.into());
        }
        let runs = {
            let calls = self.unattended();
            calls
                .get(&id)
                .is_some_and(|call| call.result_until.is_none())
        };
        if !runs {
            // It has ended meanwhile.
            self.store.end_call(id).await?;
        }
        Ok(())
    }

    /// Notifies this session when the call that it follows has ended; at once if it has already.
    pub fn follow_call(
        &self,
        who: &SessionIdentity,
        info: Option<&str>,
        digest: &str,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        call: SessionKey,
    ) {
        let binding = self.call_key(who, info, digest);
        let mut calls = self.unattended();
        let running = calls
            .values_mut()
            .find(|known| known.binding == binding && known.result_until.is_none());
        let party = Party {
            tell: tell.clone(),
            call,
        };
        match running {
            Some(running) => running.followers.push(party),
            None => drop(tell.send(RecordEvent::FollowedCallEnded { call })),
        }
    }

    /// Stores the server's answer to a call of this session without a waiting client.
    ///
    /// # Errors
    /// If the store fails: then the answer is stored once the store can be written again.
    pub fn keep_result(
        self: &Arc<Self>,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        call: SessionKey,
        result: String,
    ) -> Applied<()> {
        let until = self.now().after(self.retention().results);
        let (record, tell) = (self.clone(), tell.clone());
        Applied::pending(async move { record.store_result(&tell, call, &result, until).await })
    }

    async fn store_result(
        &self,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        call: SessionKey,
        result: &str,
        until: Timestamp,
    ) -> Result<(), RecordError> {
        let found = {
            let calls = self.unattended();
            let mut own = calls.values().filter(|known| known.is_of(tell, call));
            own.next()
                .map(|known| (known.id.clone(), known.binding.clone()))
        };
        let Some((id, binding)) = found else {
            return Ok(());
        };
        let result = self
            .keys
            .encryption
            .seal(&associated_data(&id, "result"), result)?;
        let row = FinishedCall {
            id: id.clone(),
            binding,
            result,
            until,
        };
        let written = self.write_result(row.clone()).await;
        if written.is_err() {
            self.write_later(&id, UnwrittenCall::Ended(row));
        }
        written.map(drop)
    }

    /// Writes the sealed result of a call, and notifies its followers. Returns `false` if the call is not known any more.
    async fn write_result(&self, row: FinishedCall) -> Result<bool, RecordError> {
        let (id, until) = (row.id.clone(), row.until);
        self.store.keep_call(row).await?;
        let followers = self.unattended().get_mut(&id).map(|known| {
            known.result_until = Some(until);
            known.unwritten = None;
            std::mem::take(&mut known.followers)
        });
        let is_known = followers.is_some();
        // If the call ended while its row was written, the row may have come later.
        let ended = self.store.end_call(id).await;
        tell_all(followers.unwrap_or_default());
        Ok(ended.map(|()| is_known)?)
    }

    /// Removes a call of this session for which a client waits again, or which has ended.
    pub fn drop_call(
        self: &Arc<Self>,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        call: SessionKey,
    ) -> Applied<()> {
        let (record, tell) = (self.clone(), tell.clone());
        Applied::pending(async move { record.forget_calls(&tell, call).await })
    }

    async fn forget_calls(
        &self,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        call: SessionKey,
    ) -> Result<(), RecordError> {
        let ids: Vec<String> = {
            let calls = self.unattended();
            let own = calls.values().filter(|known| known.is_of(tell, call));
            own.map(|known| known.id.clone()).collect()
        };
        for id in ids {
            let Some(known) = self.forget_unattended(&id) else {
                continue;
            };
            if known.result_until.is_some() {
                self.store.take_call(id).await?;
            } else {
                self.store.end_call(id).await?;
            }
            tell_all(known.followers);
        }
        Ok(())
    }

    /// Releases the calls of a session that is gone: those in progress are lost, results stay.
    pub(super) async fn release_calls(
        &self,
        tell: &mpsc::UnboundedSender<RecordEvent>,
    ) -> Result<(), RecordError> {
        let (mut followers, mut lost) = (Vec::new(), Vec::new());
        {
            let mut calls = self.unattended();
            calls.retain(|id, known| {
                let own = known.owner.as_ref();
                if !own.is_some_and(|owner| owner.tell.same_channel(tell)) {
                    return true;
                }
                known.owner = None;
                if !known.has_ended() {
                    followers.append(&mut known.followers);
                    // Of a task, the last state stays for those who ask for it.
                    if known.task_until.is_none() {
                        lost.push(id.clone());
                    }
                }
                known.has_ended()
            });
            self.count_calls(&calls);
        }
        // The row goes first, so that those who look again do not find it.
        let mut done = Ok(());
        for id in lost {
            done = done.and(self.store.end_call(id).await);
        }
        tell_all(followers);
        Ok(done?)
    }

    /// Reads the stored calls, and deletes expired ones and those of gateways that have ended.
    pub(super) async fn tidy_calls(&self) -> Result<(), RecordError> {
        self.write_unwritten_calls().await?;
        self.store.expire_calls(self.now()).await?;
        for ended in self.read_calls().await? {
            self.store.end_call(ended).await?;
        }
        Ok(())
    }

    /// Reads the stored calls.
    pub async fn load_calls(&self) -> Result<(), RecordError> {
        self.write_unwritten_calls().await?;
        self.read_calls().await.map(drop)
    }

    /// Reads the stored calls, and returns the ids of those whose gateway has ended.
    async fn read_calls(&self) -> Result<Vec<String>, RecordError> {
        let stored = self.store.calls(None, self.now()).await?;
        if !stored.is_empty() {
            self.lock_file.refresh().await;
        }
        let (mut followers, mut ended) = (Vec::new(), Vec::new());
        let mut cancelled = Vec::new();
        let mut calls = self.unattended();
        // A result that another gateway returned is no longer there, and no call whose gateway has ended.
        calls.retain(|id, known| {
            let is_stored = known.owner.is_some()
                || known.unwritten.is_some()
                || stored.iter().any(|stored| stored.id == *id)
                    && known
                        .elsewhere
                        .as_ref()
                        .is_none_or(|owner| self.lock_file.is_held(owner));
            if !is_stored {
                followers.append(&mut known.followers);
            }
            is_stored
        });
        for call in stored {
            match &call.running {
                // Those of this gateway are known, unless they have ended while the store could not be written.
                Some(running) if self.lock_file.is_mine(&running.owner) => {
                    if tasks::is_cancelled(running) {
                        cancelled.push(call.id);
                    } else if !calls.contains_key(&call.id) && !tasks::is_task(&call.binding) {
                        ended.push(call.id);
                    }
                    continue;
                }
                Some(running) if !self.runs_elsewhere(running) => {
                    if !tasks::is_task(&call.binding) {
                        ended.push(call.id);
                    }
                    continue;
                }
                Some(running) => {
                    // It may ask its next question.
                    if let Some(known) = calls.get_mut(&call.id)
                        && known.owner.is_none()
                        && known.result_until.is_none()
                    {
                        known.link.clone_from(&running.link);
                    }
                }
                None => {
                    if let Some(known) = calls.get_mut(&call.id)
                        && known.result_until.is_none()
                        && known.owner.is_none()
                    {
                        known.result_until = Some(call.until);
                        known.elsewhere = None;
                        followers.append(&mut known.followers);
                    }
                }
            }
            calls.entry(call.id.clone()).or_insert_with(|| call.into());
        }
        self.count_calls(&calls);
        drop(calls);
        for task in cancelled {
            self.tell_cancelled(&task);
        }
        tell_all(followers);
        Ok(ended)
    }

    /// Notifies the followers of calls whose gateway has ended.
    pub(super) fn drop_ended_calls(&self) {
        let mut followers = Vec::new();
        let mut calls = self.unattended();
        calls.retain(|_, known| {
            let elsewhere = known.elsewhere.as_ref();
            let runs = elsewhere.is_none_or(|owner| self.lock_file.is_held(owner));
            if !runs {
                followers.append(&mut known.followers);
            }
            runs
        });
        self.count_calls(&calls);
        drop(calls);
        tell_all(followers);
    }
}

/// A call of another gateway.
enum CallElsewhere {
    /// None.
    Nothing,
    /// In progress; a person can answer its question at this address.
    Running(Option<String>),
    /// Finished; its id.
    Finished(String),
}

impl From<UnattendedCall> for UnattendedEntry {
    fn from(stored: UnattendedCall) -> Self {
        let UnattendedCall {
            id,
            binding,
            running,
            until,
        } = stored;
        let (elsewhere, link) = match running {
            Some(RunningCall { owner, link }) => (Some(owner), link),
            None => (None, None),
        };
        Self {
            id,
            binding,
            owner: None,
            result_until: elsewhere.is_none().then_some(until),
            elsewhere,
            link,
            task_until: None,
            unwritten: None,
            followers: Vec::new(),
        }
    }
}

impl UnattendedEntry {
    fn is_of(&self, tell: &mpsc::UnboundedSender<RecordEvent>, call: SessionKey) -> bool {
        self.owner
            .as_ref()
            .is_some_and(|owner| owner.is(tell, call))
    }
}

fn tell_all(followers: Vec<Party>) {
    for follower in followers {
        let call = follower.call;
        let _its_session_is_gone = follower.tell.send(RecordEvent::FollowedCallEnded { call });
    }
}
