//! Calls that wait for approval, and calls that were approved.
//!
//! The gateway asks before such a call goes to its server. The call is made once, when enough people have approved it
//! and its caller waits. If the caller no longer waits, the question stays in the record, and the same call made again
//! finds it or its answer. Arguments that an approver changed replace the client's; the others are sent byte for byte.
//!
//! | file | contents |
//! | --- | --- |
//! | `request` | the question about a call |
//! | `claims` | the server's claims about the tool |
//! | `edits` | the arguments that approvers changed |
//! | `shown` | the members of a call that approvers are shown |
//! | `tools` | the gateway's own request for the tools, if approvers may change arguments and no client has listed the tools |

mod claims;
mod edits;
mod request;
mod shown;
mod tools;

use std::sync::Arc;

use mcp_elicit_core::question::{CallSummary, REASONS, reason_line};
use mcp_elicit_core::wire::Frame;
use mcp_elicit_core::wire::members;
use mcp_elicit_core::wire::{Id, message};
use serde_json::{Value, json};

use crate::call_start::Carried;
use crate::decisions::{Admission, Approval, ApprovedCall};
use crate::frame_edit::ErrorResponse;
use crate::hand_back::{NOT_CALLED, NotCalled};
use crate::parts::approvals::{Approved, WaitingCall};
use crate::parts::asks::Origin;
use crate::parts::calls::{self, Call};
use crate::parts::indexed_frame::IndexedFrame;
use crate::parts::request_state::CallBinding;
use crate::parts::unattended::MadeCall;
use crate::{
    CallId, CallKind, ClientForward, ClientFrame, DeliveryId, Effect, Ending, Relay, StreamId,
    Timer, Timestamp,
};
use claims::claims;
use edits::Edits;
use request::approval_request;
use shown::has_only_shown;
pub use shown::is_trace_parent;
pub(crate) use shown::without_unshown;
pub(crate) use tools::learn_tools;

/// A client that waits for a call which is not with the server.
struct WaitingClient {
    stream: StreamId,
    id: Id,
    kind: CallKind,
}

impl WaitingClient {
    /// Returns the client that waits for this call; `None` if none waits, or if no question may come up in it.
    fn of(call: &Call) -> Option<Self> {
        Some(Self {
            stream: call.stream()?,
            id: call.client_id().clone(),
            kind: call.kind()?,
        })
    }
}

impl Relay {
    /// Asks for the operator's decision about a call. If it may proceed, returns its digest, if that was computed;
    /// otherwise `Err`.
    pub(crate) fn admit(
        &mut self,
        frame: ClientFrame<'_>,
        kind: CallKind,
    ) -> Result<Option<String>, ClientForward> {
        let Some(decisions) = self.settings.decisions.clone() else {
            return Ok(None);
        };
        let summary = match calls::summary_for_rules(kind, *frame) {
            Ok(summary) => made_on(frame.stream(), summary),
            Err(defect) => {
                let why = format!("no rule of the gateway can be judged, since {defect}");
                return Err(self.effects.reject(frame, &ErrorResponse::new(-32602, why)));
            }
        };
        let tool = self.catalog.facts_of(kind, &summary.target);
        let admission = decisions.admit(frame.at(), &summary, tool);
        let digest = summary.digest.clone();
        match self.carry_out_admission(frame, kind, summary, admission) {
            Some(forward) => Err(forward),
            None => Ok(Some(digest)),
        }
    }

    /// Carries out the decision about a call. `None` if it may proceed.
    fn carry_out_admission(
        &mut self,
        frame: ClientFrame<'_>,
        kind: CallKind,
        summary: CallSummary,
        admission: Admission,
    ) -> Option<ClientForward> {
        match admission {
            Admission::Free => None,
            Admission::Refuse(refusal) => Some(self.refuse_call(frame, kind, &refusal.to_string())),
            Admission::Approve(_) | Admission::Granted(..) if !has_only_shown(kind, *frame) => {
                let why = "people approve this call, and they would not see all members of it and of its params; leave out members that the protocol does not define";
                Some(self.effects.reject(frame, &ErrorResponse::new(-32602, why)))
            }
            Admission::Approve(approval) => {
                Some(self.ask_approval(frame, kind, summary, *approval))
            }
            Admission::Granted(approval, answers) => {
                let rule = approval.people.rule.clone();
                let edits = Edits::read(*frame, &answers);
                let (now, stream) = (frame.at(), frame.stream());
                if let Some(why) = self.refusal_of_edits(now, stream, kind, edits.as_ref(), &rule) {
                    return Some(self.refuse_call(frame, kind, &why));
                }
                let by = ApprovedBy {
                    rule,
                    comments: Vec::new(),
                    client_info: self.client.info_in(*frame),
                };
                let (forward, has_started) = self.run_approved(frame, edits, by, None);
                if has_started && let Some(decisions) = &self.settings.decisions {
                    decisions.grant_used(now, &summary, &approval);
                }
                Some(forward)
            }
        }
    }

    /// Decides again about a call that has waited for its turn, because the rules may have changed. Returns `true` if
    /// it must not go to the server now: it is refused, or people are asked about it.
    pub(crate) fn stops_at_its_turn(&mut self, now: Timestamp, key: CallId) -> bool {
        let Some(decisions) = self.settings.decisions.clone() else {
            return false;
        };
        let client = self.calls.get(key).and_then(WaitingClient::of);
        let made = self.calls.get(key).and_then(Call::queued_frame);
        let summary = self.calls.get_mut(key).and_then(Call::summary).cloned();
        let Some(((client, made), summary)) = client.zip(made).zip(summary) else {
            let why = "no rule of the gateway can be judged about this call";
            self.fail(now, key, &ErrorResponse::new(-32602, why));
            return true;
        };
        if self.approvals.is_approved(key) {
            let Some(why) = self.refusal_of_waiting(now, client.kind, &summary) else {
                return false;
            };
            // As with a call that is refused after its approval, the approval serves no other.
            if let Some(delivery) = self.approvals.take_delivery(key) {
                self.deliveries.accepted(delivery, &mut self.effects);
            }
            self.remove_call(key);
            self.tell_not_called(&client, NotCalled::Refused, &why, "");
            return true;
        }
        let tool = self.catalog.facts_of(client.kind, &summary.target);
        let admission = decisions.admit(now, &summary, tool);
        if matches!(admission, Admission::Free) {
            return false;
        }
        self.remove_call(key);
        let frame = ClientFrame::of_indexed(&made, client.stream, now);
        let forward = self.carry_out_admission(frame, client.kind, summary, admission);
        if let Some(ClientForward::AsIs(call)) = forward {
            let delivery = call.and_then(|call| self.approvals.take_delivery(call));
            self.effects
                .send_to_server(made.into_text(), call, delivery);
        }
        true
    }

    fn refuse_call(&mut self, frame: ClientFrame<'_>, kind: CallKind, why: &str) -> ClientForward {
        if let Some(id) = frame.id() {
            let stream = frame.stream();
            let client = WaitingClient { stream, id, kind };
            self.tell_not_called(&client, NotCalled::Refused, why, "");
        }
        ClientForward::Handled
    }

    /// Tells a client that its call did not reach the server, and why; `next` is a sentence, after a space, with the
    /// next step.
    fn tell_not_called(&mut self, client: &WaitingClient, cause: NotCalled, why: &str, next: &str) {
        self.tell_not_done(client, cause, why, "was not called", next, &[]);
    }

    fn not_done(&self, why: &str, server_was: &str, next: &str) -> String {
        let server = self.shown_server();
        format!("Not done: {why}. The server {server} {server_was}.{next}")
    }

    /// Tells a client that its call was not done, and why.
    fn tell_not_done(
        &mut self,
        client: &WaitingClient,
        cause: NotCalled,
        why: &str,
        server_was: &str,
        next: &str,
        reasons: &[String],
    ) {
        let words = self.not_done(why, server_was, next);
        let mut mark = json!({NOT_CALLED: cause.word()});
        if !reasons.is_empty() {
            mark[REASONS] = json!(reasons);
        }
        let said = match client.kind {
            CallKind::Tool => {
                let content = json!([{"type": "text", "text": words}]);
                let result = json!({
                    "resultType": "complete", "_meta": mark, "content": content, "isError": true,
                });
                let result = members::raw_value(&self.client.own_result(result));
                message::result(&client.id, &result)
            }
            CallKind::Prompt | CallKind::Resource => {
                let error = ErrorResponse::new(-32000, words).with_data(mark);
                error.to_response(&client.id)
            }
        };
        self.effects.tell_client(client.stream, said, true);
    }

    /// Holds the call until people have approved it; the server does not know of it.
    fn ask_approval(
        &mut self,
        frame: ClientFrame<'_>,
        kind: CallKind,
        summary: CallSummary,
        approval: Approval,
    ) -> ClientForward {
        let Some(id) = frame.id() else {
            return ClientForward::Handled;
        };
        let permit = match self.calls.budget().permit() {
            Ok(permit) => permit,
            Err(fault) => return self.effects.reject(frame, &fault.refusal()),
        };
        let made = MadeCall {
            kind,
            id,
            digest: summary.digest.clone(),
            request: frame.to_indexed(),
        };
        let key = self.insert_unsent(permit, frame.at(), frame.stream(), made);
        self.describe_client(key, frame);
        let may_learn = kind == CallKind::Tool
            && !approval.edit.is_empty()
            && self.catalog.may_learn_of(&summary.target);
        let waiting = WaitingCall { approval, summary };
        self.approvals.wait(key, waiting);
        if may_learn {
            self.list_tools_for(frame.at(), key);
        } else {
            self.open_approval(frame.at(), key);
        }
        ClientForward::Handled
    }

    /// Records the client of a call as the request that makes it describes it.
    pub(crate) fn describe_client(&mut self, key: CallId, frame: ClientFrame<'_>) {
        let client_info = self.client.info_in(*frame);
        let knows_tasks = self.task_support().is_declared_in(*frame);
        if let Some(call) = self.calls.get_mut(key) {
            call.describe_client(client_info);
            call.know_tasks(knows_tasks);
        }
    }

    /// Ends the request for the tools: people are asked about the calls that waited for it.
    pub(crate) fn end_listing(&mut self, now: Timestamp) {
        let Some(calls) = self.tool_listing.end() else {
            // The list came before its time was over.
            return;
        };
        self.timers.cancel(Timer::ToolsListing);
        for call in calls {
            self.open_approval(now, call);
        }
    }

    /// Asks people about a waiting call, unless it was given up meanwhile.
    pub(crate) fn open_approval(&mut self, now: Timestamp, key: CallId) {
        let client = self.calls.get(key).and_then(WaitingClient::of);
        let found = self.approvals.waiting_mut(key).zip(client);
        let Some((WaitingCall { approval, summary }, client)) = found else {
            return;
        };
        let tool = self.catalog.facts_of(client.kind, &summary.target);
        let schema = tool.and_then(|tool| tool.input_schema.as_deref());
        let request = approval_request(summary, approval, schema);
        approval.people.team.tool = tool.map(|tool| Box::new(claims(summary, tool)));
        let origin = Origin::Approval { call: key };
        let asked = self.open_ask(now, key.into(), origin, request, None, None);
        if let Err(refusal) = asked {
            self.approval_refused(key, &refusal);
        }
    }

    /// Ends a waiting call that people cannot be asked about.
    pub(crate) fn approval_refused(&mut self, key: CallId, refusal: &ErrorResponse) {
        let call = self.remove_call(key);
        if let Some(client) = call.as_ref().and_then(WaitingClient::of) {
            self.effects
                .tell_client(client.stream, refusal.to_response(&client.id), true);
        }
    }

    /// Handles the decision about a call: it is made, or ends.
    pub(crate) fn approval_decided(
        &mut self,
        now: Timestamp,
        key: CallId,
        reply: &str,
        record: String,
    ) {
        let records = vec![record];
        let waiting = self.approvals.decided(key);
        let call = self.calls.get(key);
        let call = call.and_then(|call| Some((WaitingClient::of(call)?, call.frame()?.clone())));
        let Some((WaitingCall { approval, summary }, (client, made))) = waiting.zip(call) else {
            let why = "nobody waits for the call any more".to_owned();
            self.effects.push(Effect::DeliveryRefused { records, why });
            return;
        };
        let client_info = self.remove_call(key);
        let client_info = client_info.and_then(|call| call.client_info().cloned());
        let reply: Value = serde_json::from_str(reply).unwrap_or_default();
        let answers = match &reply["content"] {
            content @ Value::Object(_) => content.to_string(),
            _ => "{}".to_owned(),
        };
        let reasons = reasons_in(&reply);
        let edits = Edits::read(made.frame(), &answers);
        let rule = &approval.people.rule;
        let refusal = if reply["action"] == "accept" {
            match &edits {
                Some(_) => {
                    self.refusal_of_edits(now, client.stream, client.kind, edits.as_ref(), rule)
                }
                None => self.refusal_of_waiting(now, client.kind, &summary),
            }
            .map(|why| (NotCalled::Refused, why))
        } else {
            let did = match reply["action"].as_str() {
                Some("cancel") => "dismissed",
                _ => "declined",
            };
            let mut why = format!("a person whom the rule `{rule}` asks {did} this call");
            if let Some(reason) = reasons.first() {
                // Within the quotation, a person's words cannot end it.
                let reason = reason.replace('"', "'");
                why = format!("{why}, with the reason \"{reason}\"");
            }
            Some((NotCalled::Declined, why))
        };
        if let Some((cause, why)) = refusal {
            self.effects.push(Effect::Delivered { records });
            let reasons = match cause {
                NotCalled::Declined => &*reasons,
                _ => &[],
            };
            self.tell_not_done(&client, cause, &why, "was not called", "", reasons);
            return;
        }
        if let Some(decisions) = self.settings.decisions.clone() {
            let made = edits
                .as_ref()
                .and_then(|edits| digest_of(client.kind, edits.frame()));
            let decision = ApprovedCall {
                answers: &answers,
                edited: edits.as_ref().map_or(&[][..], Edits::pointers),
                question: records.first().map(String::as_str),
                digest: made.as_deref().unwrap_or(&summary.digest),
            };
            decisions.approved(now, &summary, &approval, &decision);
        }
        let delivery = self.deliveries.begin(records, None);
        let rule = approval.people.rule;
        let by = ApprovedBy {
            rule,
            comments: reasons,
            client_info,
        };
        let frame = ClientFrame::of_indexed(&made, client.stream, now);
        if let (ClientForward::AsIs(call), _) = self.run_approved(frame, edits, by, delivery) {
            let delivery = call.and_then(|call| self.approvals.take_delivery(call));
            self.effects
                .send_to_server(made.into_text(), call, delivery);
        }
    }

    /// Decides again about a call whose arguments an approver changed: the rules may refuse it, or require other
    /// approvers. Returns the reason if it is refused.
    fn refusal_of_edits(
        &self,
        now: Timestamp,
        stream: StreamId,
        kind: CallKind,
        edits: Option<&Edits>,
        rule: &str,
    ) -> Option<String> {
        let edited = edits?.frame();
        let decisions = self.settings.decisions.clone()?;
        let Ok(summary) = calls::summary(kind, edited) else {
            return Some("the changed arguments cannot be judged by the rules".to_owned());
        };
        let summary = made_on(stream, summary);
        let tool = self.catalog.facts_of(kind, &summary.target);
        let why = match decisions.admit(now, &summary, tool) {
            Admission::Free => return None,
            Admission::Refuse(refusal) => refusal.to_string(),
            Admission::Approve(other) | Admission::Granted(other, _) => {
                let asks = other.people.rule;
                if asks == rule {
                    return None;
                }
                format!("the rule `{asks}` asks other people about it")
            }
        };
        Some(format!(
            "an approver changed the arguments of this call, and {why}"
        ))
    }

    /// Decides again about a call that has waited and is unchanged: the rules may have changed, and refuse it. Rules
    /// that ask for approval leave the decision to those who were asked. Returns the reason if it is refused.
    fn refusal_of_waiting(
        &self,
        now: Timestamp,
        kind: CallKind,
        summary: &CallSummary,
    ) -> Option<String> {
        let decisions = self.settings.decisions.as_ref()?;
        let tool = self.catalog.facts_of(kind, &summary.target);
        let refusal = decisions.refuses(now, summary, tool)?;
        Some(format!("it was approved, and now {refusal}"))
    }

    /// Decides again about a call that is to be made again with the answers of a round: the rules may have changed, and
    /// refuse it. Returns `true` if they refuse it, which ends the call. Rules that ask for approval do not ask again.
    pub(crate) fn refuse_again(&mut self, now: Timestamp, key: CallId) -> bool {
        let Some(decisions) = self.settings.decisions.clone() else {
            return false;
        };
        let Some(call) = self.calls.get_mut(key) else {
            return false;
        };
        let why = match call.summary().cloned() {
            Some(summary) => {
                let tool = self.catalog.facts_of(summary.kind, &summary.target);
                match decisions.refuses(now, &summary, tool) {
                    None => return false,
                    Some(refusal) => format!("its server has asked since, and now {refusal}"),
                }
            }
            None => "no rule of the gateway can be judged".to_owned(),
        };
        let server_was = "was not called again";
        if let Some(client) = self.calls.get(key).and_then(WaitingClient::of) {
            self.end_questions_of(now, key, Ending::CallEnded);
            self.remove_call(key);
            self.tell_not_done(&client, NotCalled::Refused, &why, server_was, "", &[]);
        } else {
            let words = self.not_done(&why, server_was, "");
            self.fail(now, key, &ErrorResponse::new(-32000, words));
        }
        true
    }

    /// Refuses a repeated call for a round that waits, if the rules refuse it now. The waiting call is checked when it
    /// proceeds.
    pub(crate) fn refuse_made_again(
        &mut self,
        frame: ClientFrame<'_>,
        kind: CallKind,
        waits: CallId,
    ) -> Option<ClientForward> {
        self.calls.get(waits)?.round()?;
        let decisions = self.settings.decisions.clone()?;
        let summary = made_on(frame.stream(), calls::summary(kind, *frame).ok()?);
        let tool = self.catalog.facts_of(kind, &summary.target);
        let refusal = decisions.refuses(frame.at(), &summary, tool)?;
        Some(self.refuse_call(frame, kind, &refusal.to_string()))
    }

    /// Sends an approved call to the server, with the changed arguments. Returns [`ClientForward::AsIs`] only for the
    /// unchanged text, and `true` if the call has started.
    fn run_approved(
        &mut self,
        made: ClientFrame<'_>,
        edits: Option<Edits>,
        by: ApprovedBy,
        delivery: Option<DeliveryId>,
    ) -> (ClientForward, bool) {
        let (changed, edited) = edits.map(Edits::into_parts).unzip();
        let binding = changed.as_ref().and_then(|_| binding_of(*made));
        let as_edited = changed.as_ref().map_or(*made, IndexedFrame::frame);
        let sent = without_unshown(as_edited).or(changed);
        let frame = match &sent {
            Some(sent) => ClientFrame::of_indexed(sent, made.stream(), made.at()),
            None => made,
        };
        let method = frame.method().unwrap_or_default();
        self.approvals.start(Approved {
            rule: by.rule,
            comments: by.comments,
            client_info: by.client_info,
            edited: edited.unwrap_or_default(),
            delivery,
            binding,
        });
        let forward = self.translate_request(frame, method, Carried::default());
        let never = self.approvals.take_unstarted();
        let has_started = never.is_none();
        if let Some(never) = never {
            self.deliveries
                .end_unsent(never.delivery, &mut self.effects);
        }
        let forward = match (forward, sent) {
            (ClientForward::AsIs(call), Some(sent)) => {
                let delivery = call.and_then(|call| self.approvals.take_delivery(call));
                self.effects
                    .send_to_server(sent.into_text(), call, delivery);
                ClientForward::Handled
            }
            (forward, _) => forward,
        };
        (forward, has_started)
    }

    /// Ends a call whose question ended without a decision.
    pub(crate) fn approval_fails(&mut self, key: CallId, ending: Ending, why: &str) {
        let Some(approval) = self.approvals.of(key) else {
            // The call was given up meanwhile.
            return;
        };
        let people = &approval.people;
        let rule = &people.rule;
        let (cause, why) = if ending == Ending::TimedOut {
            let why = format!("this call was not approved in time (rule `{rule}`)");
            (NotCalled::TimedOut, why)
        } else {
            let why = format!("this call needs approval by the rule `{rule}`, and {why}");
            (NotCalled::Failed, why)
        };
        let next = if people.hands_back {
            " Make the call again to ask once more."
        } else {
            ""
        };
        let call = self.remove_call(key);
        if let Some(client) = call.as_ref().and_then(WaitingClient::of) {
            self.tell_not_called(&client, cause, &why, next);
        }
    }

    /// Leaves a call that no client waits for to the record, where the same call made again finds its question, in any
    /// session. Returns `false` if the call does not wait for approval.
    pub(crate) fn leave_approval(&mut self, key: CallId) -> bool {
        if !self.approvals.has(key) {
            return false;
        }
        let asks = self.calls.get(key).map(|call| call.asks().to_vec());
        for ask in asks.unwrap_or_default() {
            let question = self.take_question(ask);
            if let Some(record) = question.and_then(|question| question.record().map(str::to_owned))
            {
                self.effects.push(Effect::Leave { record });
            }
        }
        self.remove_call(key);
        true
    }
}

/// The rule by which a call was approved, the comments of its approvers, and its client.
struct ApprovedBy {
    rule: String,
    comments: Vec<String>,
    /// `clientInfo` of the request that made the call.
    client_info: Option<Arc<str>>,
}

/// Returns the reasons or comments in the record's reply about a call, each on one line.
fn reasons_in(reply: &Value) -> Vec<String> {
    let reasons = reply["_meta"][REASONS].as_array().into_iter().flatten();
    let reasons = reasons.filter_map(Value::as_str).filter_map(reason_line);
    reasons.collect()
}

/// Returns a call with the proof of the request on this stream, which makes it.
fn made_on(stream: StreamId, call: CallSummary) -> CallSummary {
    let proof = stream.proof();
    CallSummary { proof, ..call }
}

/// Returns the digest of a call in a request; `None` if it has none.
fn digest_of(kind: CallKind, frame: Frame<'_>) -> Option<String> {
    Some(calls::summary(kind, frame).ok()?.digest)
}

/// Returns the data that a state of this request is bound to.
fn binding_of(frame: Frame<'_>) -> Option<CallBinding> {
    let kind = CallKind::of_method(frame.method()?)?;
    Some(CallBinding::of_frame(kind, frame))
}
