//! The calls that wait for approval, and approved calls that are about to start or with the server.

use std::sync::Arc;

use mcp_elicit_core::question::CallSummary;
use mcp_elicit_core::wire::frame::{Frame, FramePart};
use mcp_elicit_core::wire::members::{self, Members};
use rustc_hash::FxHashMap;
use serde_json::json;
use serde_json::value::RawValue;

use super::asks::Attribution;
use super::request_state::CallBinding;
use crate::decisions::{Approval, Planned};
use crate::{CallId, DeliveryId, frame_edit};

/// The member of a result's `_meta` that names the rule by which a call was approved.
const APPROVAL: &str = "mcp-elicit/approval";

/// The calls that wait for approval, and approved calls that are about to start or with the server.
#[derive(Default)]
pub(crate) struct Approvals {
    waiting: FxHashMap<CallId, WaitingCall>,
    /// The call that is about to start.
    starting: Option<Approved>,
    approved: FxHashMap<CallId, Approved>,
}

/// A call that waits for approval.
pub(crate) struct WaitingCall {
    /// The decision about it.
    pub(crate) approval: Approval,
    /// The call.
    pub(crate) summary: CallSummary,
}

/// A call that was approved.
pub(crate) struct Approved {
    /// The name of the rule.
    pub(crate) rule: String,
    /// The comments of its approvers, for the caller.
    pub(crate) comments: Vec<String>,
    /// JSON Pointers to the arguments that were changed.
    pub(crate) edited: Vec<String>,
    /// `clientInfo` of the request that made the call, JSON, which does not go to the server.
    pub(crate) client_info: Option<Arc<str>>,
    /// The delivery of the approval, until the call is sent.
    pub(crate) delivery: Option<DeliveryId>,
    /// The call as its client made it, if its arguments were changed: the client's retries refer to it.
    pub(crate) binding: Option<CallBinding>,
}

impl Approvals {
    /// Returns the approval that this call waits for.
    pub(crate) fn of(&self, call: CallId) -> Option<&Approval> {
        self.waiting.get(&call).map(|waiting| &waiting.approval)
    }

    /// Returns the decision by which the call of this question waits for approval.
    pub(crate) fn planned(&self, attribution: &Attribution) -> Planned {
        let approval = attribution.call().and_then(|call| self.of(call));
        approval.map_or(Planned::Caller { open_for: None }, |approval| {
            Planned::People(Box::new(approval.people.clone()))
        })
    }

    /// Makes the call wait for approval.
    pub(crate) fn wait(&mut self, call: CallId, waiting: WaitingCall) {
        self.waiting.insert(call, waiting);
    }

    /// Returns the call, if it waits for approval.
    pub(crate) fn waiting_mut(&mut self, call: CallId) -> Option<&mut WaitingCall> {
        self.waiting.get_mut(&call)
    }

    /// Ends the wait of a call that people have decided about.
    pub(crate) fn decided(&mut self, call: CallId) -> Option<WaitingCall> {
        self.waiting.remove(&call)
    }

    /// Returns `true` if the call waits for approval.
    pub(crate) fn has(&self, call: CallId) -> bool {
        self.waiting.contains_key(&call)
    }

    /// Returns `true` if the call was approved: no other connection may take it, because it would ask again.
    pub(crate) fn is_approved(&self, call: CallId) -> bool {
        self.approved.contains_key(&call)
    }

    /// Records an approved call that is about to start.
    pub(crate) fn start(&mut self, approved: Approved) {
        self.starting = Some(approved);
    }

    /// Returns `true` if an approved call is about to start.
    pub(crate) fn is_starting(&self) -> bool {
        self.starting.is_some()
    }

    /// Returns `clientInfo` of the request that made the approved call which is about to start.
    pub(crate) fn client_of_starting(&self) -> Option<Arc<str>> {
        self.starting.as_ref()?.client_info.clone()
    }

    /// Takes out the approved call that did not start.
    pub(crate) fn take_unstarted(&mut self) -> Option<Approved> {
        self.starting.take()
    }

    /// Records the key of the approved call that has started.
    pub(crate) fn started(&mut self, call: CallId) {
        if let Some(approved) = self.starting.take() {
            self.approved.insert(call, approved);
        }
    }

    /// Returns the call as its client made it, if approvers changed its arguments.
    pub(crate) fn binding_of(&self, call: CallId) -> Option<&CallBinding> {
        self.approved.get(&call)?.binding.as_ref()
    }

    /// Takes out the delivery that goes with the call's frame.
    pub(crate) fn take_delivery(&mut self, call: CallId) -> Option<DeliveryId> {
        self.approved.get_mut(&call)?.delivery.take()
    }

    /// Forgets a call that has ended. Returns the delivery of its approval if it was never sent.
    pub(crate) fn forget(&mut self, call: CallId) -> Option<DeliveryId> {
        self.waiting.remove(&call);
        self.approved.remove(&call)?.delivery
    }

    /// Returns the server's answer with a note on the approval of its call, if it was approved.
    pub(crate) fn added_to(&self, key: CallId, frame: Frame<'_>) -> Option<String> {
        let approved = self.approved.get(&key)?;
        let result = frame.result()?;
        if frame.member(FramePart::Result, "resultType") == Some(r#""input_required""#) {
            return None;
        }
        let mut note = json!({"rule": approved.rule, "edited": approved.edited});
        if !approved.comments.is_empty() {
            note["comments"] = json!(approved.comments);
        }
        let note = members::raw_value(&note);
        let words = words(approved);
        let all = Members::read(result, "result").ok()?;
        let meta = match all.get("_meta").filter(|meta| !members::is_null(meta)) {
            Some(meta) => Members::read(meta, "_meta")
                .ok()?
                .with(APPROVAL, Some(&note)),
            None => members::raw_value(&json!({APPROVAL: note})),
        };
        let mut said = all.with("_meta", Some(&meta));
        let told = Members::read_text(said.get(), "result").ok()?;
        if let Some((content, words)) = told.get("content").zip(words) {
            let content: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
            let words = members::raw_value(&json!({"type": "text", "text": words}));
            let content: Vec<&RawValue> = content.into_iter().chain([&*words]).collect();
            let content = serde_json::value::to_raw_value(&content).ok()?;
            said = told.with("content", Some(&content));
        }
        let range = frame.range(FramePart::Result)?;
        Some(frame_edit::spliced(frame.text(), range, said.get()))
    }
}

/// Returns the text about an approval for the caller; `None` if there is nothing to say.
fn words(approved: &Approved) -> Option<String> {
    let mut sentences = Vec::new();
    if !approved.edited.is_empty() {
        sentences.push(format!(
            "The people who approved this call changed: {}",
            approved.edited.join(", ")
        ));
    }
    if !approved.comments.is_empty() {
        sentences.push(format!(
            "The people who approved this call wrote: {}",
            serde_json::json!(approved.comments)
        ));
    }
    (!sentences.is_empty()).then(|| sentences.join("\n"))
}
