//! Calls without a waiting client: handed back, and in progress or finished. The same call made again, in any session
//! of the same caller, gets the result, or follows the call in progress: no work is done twice.
//!
//! Calls in progress are known in the process that runs them. Results are also in the store, sealed, for a limited
//! time.

use crate::{RecordEvent, SessionKey};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::question::FoundCall;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::{Applied, Record, RecordError, SessionIdentity, associated_data, encryption};
use crate::store::{FinishedCall, Store as _};

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
pub(super) struct Unattended {
    id: String,
    binding: String,
    /// The session that made it, while it exists.
    owner: Option<Party>,
    /// The time until which its result is kept; `None` while the server processes it.
    result_until: Option<Timestamp>,
    /// The address at which a person can answer the question that it waits for.
    link: Option<String>,
    followers: Vec<Party>,
}

impl Record {
    fn unattended(&self) -> MutexGuard<'_, HashMap<String, Unattended>> {
        self.unattended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn count_calls(&self, calls: &HashMap<String, Unattended>) {
        self.unattended_count.store(calls.len(), Ordering::Release);
    }

    /// Returns `true` if there is any call without a waiting client.
    pub fn has_calls(&self) -> bool {
        self.unattended_count.load(Ordering::Acquire) > 0
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
                    |call: &&Unattended| call.result_until.is_some_and(|until| now < until);
                let finished = of_it().find(is_kept).map(|call| call.id.clone());
                let mut running = of_it().filter(|call| call.result_until.is_none());
                (finished, running.next().map(|call| call.link.clone()))
            };
            let Some(id) = finished else {
                return Ok(match runs {
                    Some(link) => FoundCall::Running { link },
                    None => FoundCall::Nothing,
                });
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

    fn forget_unattended(&self, id: &str) -> Option<Unattended> {
        let mut calls = self.unattended();
        let call = calls.remove(id);
        self.count_calls(&calls);
        call
    }

    /// Records that a call of this session is in progress without a waiting client; a person can answer its question at
    /// `link`.
    pub fn keep_call(
        &self,
        who: &SessionIdentity,
        info: Option<&str>,
        digest: &str,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        call: SessionKey,
        link: Option<String>,
    ) -> Result<(), RecordError> {
        let id = encryption::random_id()?;
        let binding = self.call_key(who, info, digest);
        let owner = Some(Party {
            tell: tell.clone(),
            call,
        });
        let unattended = Unattended {
            id: id.clone(),
            binding,
            owner,
            result_until: None,
            link,
            followers: Vec::new(),
        };
        let mut calls = self.unattended();
        calls.insert(id, unattended);
        self.count_calls(&calls);
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
    pub fn keep_result(
        self: &Arc<Self>,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        call: SessionKey,
        result: String,
    ) -> Applied<()> {
        let (record, tell) = (self.clone(), tell.clone());
        Applied::pending(async move { record.store_result(&tell, call, &result).await })
    }

    async fn store_result(
        &self,
        tell: &mpsc::UnboundedSender<RecordEvent>,
        call: SessionKey,
        result: &str,
    ) -> Result<(), RecordError> {
        let until = self.now().after(self.retention.results);
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
        self.store.keep_call(row).await?;
        let followers = match self.unattended().get_mut(&id) {
            Some(known) => {
                known.result_until = Some(until);
                std::mem::take(&mut known.followers)
            }
            None => Vec::new(),
        };
        tell_all(followers);
        Ok(())
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
            }
            tell_all(known.followers);
        }
        Ok(())
    }

    /// Releases the calls of a session that is gone: those in progress are lost, results stay.
    pub(super) fn release_calls(&self, tell: &mpsc::UnboundedSender<RecordEvent>) {
        let mut followers = Vec::new();
        let mut calls = self.unattended();
        calls.retain(|_, known| {
            let own = known.owner.as_ref();
            if !own.is_some_and(|owner| owner.tell.same_channel(tell)) {
                return true;
            }
            known.owner = None;
            if known.result_until.is_none() {
                followers.append(&mut known.followers);
            }
            known.result_until.is_some()
        });
        self.count_calls(&calls);
        drop(calls);
        tell_all(followers);
    }

    /// Reads the stored results, and deletes expired ones.
    pub async fn load_calls(&self) -> Result<(), RecordError> {
        let stored = self.store.calls(self.now()).await?;
        let mut calls = self.unattended();
        // A result that another gateway returned is no longer there.
        calls.retain(|id, known| {
            known.owner.is_some() || stored.iter().any(|stored| stored.id == *id)
        });
        for FinishedCall {
            id, binding, until, ..
        } in stored
        {
            calls.entry(id.clone()).or_insert(Unattended {
                id,
                binding,
                owner: None,
                result_until: Some(until),
                link: None,
                followers: Vec::new(),
            });
        }
        self.count_calls(&calls);
        Ok(())
    }
}

impl Unattended {
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
