//! Calls that have ended here while their server may still be processing them, and ask: the client gave them up, or
//! they continue as tasks. A server that does not name the call of a question may mean one of them.

use mcp_elicit_core::wire::{Frame, members};

use crate::parts::calls::Call;
use crate::{CallId, Relay};

impl Relay {
    /// Remembers a call that ends here, if the server may still ask in it and an operator decides who is asked.
    pub(crate) fn remember_given_up(&mut self, key: CallId) {
        if self.settings.decisions.is_none() || !self.calls.is_upstream(key) {
            return;
        }
        if let Some(call) = self.calls.get_mut(key)
            && call.kind().is_some()
        {
            let id = call.upstream_id().clone();
            let calling = call.summary().cloned();
            self.past_calls.add(Some(id), None, calling);
        }
    }

    /// Remembers a call that the server has answered with a task, which may ask.
    pub(crate) fn remember_task(&mut self, key: CallId, frame: Frame<'_>) {
        let task = frame.result().and_then(|result| {
            let task = members::member(result, "task")?;
            Some(members::text(members::member(task, "taskId")?)?.into_owned())
        });
        let calling = self.calls.get_mut(key).and_then(Call::summary).cloned();
        self.past_calls.add(None, task, calling);
    }
}
