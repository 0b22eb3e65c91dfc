//! Calls that wait for approval, and calls that were approved.
//!
//! The gateway asks before such a call goes to its server. The call is made once, when enough people have agreed and its caller waits;
//! where the caller does not wait any more, the question stays in the record, and the same call made again finds it or its answer.
//! Arguments that an approver changed are put in place of the client's; the others go on byte for byte.

use std::collections::HashMap;

use mcp_elicit_core::form::Form;
use mcp_elicit_core::question::CallSummary;
use mcp_elicit_core::wire::call_frame::canonical;
use mcp_elicit_core::wire::frame::{Frame, FrameIndex, FramePart};
use mcp_elicit_core::wire::members::{self, Members};
use mcp_elicit_core::wire::{ElicitRequest, message};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::asks::Origin;
use crate::call_start::Carried;
use crate::calls::{self, Call};
use crate::decisions::{Admission, Approval, RuleRefusal};
use crate::frame_edit::{self, ErrorResponse};
use crate::{
    CallId, CallKind, ClientForward, ClientFrame, DeliveryId, Effect, Relay, StreamId, Timestamp,
};

/// The member of a result's `_meta` that says by which rule a call was approved.
const APPROVAL: &str = "mcp-elicit/approval";
/// The most arguments that an approver may change.
const MAX_EDITS: usize = 20;

/// The calls that wait for approval, and those that were approved and are on their way.
#[derive(Default)]
pub(crate) struct Approvals {
    waiting: HashMap<CallId, Waiting>,
    /// The call that is about to start.
    starting: Option<Approved>,
    approved: HashMap<CallId, Approved>,
}

/// A call that waits for approval.
pub(crate) struct Waiting {
    approval: Approval,
    summary: CallSummary,
}

/// A call that was approved.
pub(crate) struct Approved {
    rule: String,
    /// JSON Pointers to the arguments that were changed.
    edited: Vec<String>,
    /// The delivery of the approval, until the call is sent.
    delivery: Option<DeliveryId>,
}

impl Approvals {
    /// Returns the approval that this call waits for.
    pub(crate) fn of(&self, call: CallId) -> Option<&Approval> {
        self.waiting.get(&call).map(|waiting| &waiting.approval)
    }

    /// Returns `true` if the call waits for approval.
    pub(crate) fn has(&self, call: CallId) -> bool {
        self.waiting.contains_key(&call)
    }

    /// Returns `true` if the call was approved: no other connection may take it, where it would be asked about again.
    pub(crate) fn is_approved(&self, call: CallId) -> bool {
        self.approved.contains_key(&call)
    }

    /// The approved call that is about to start has this key.
    pub(crate) fn started(&mut self, call: CallId) {
        if let Some(approved) = self.starting.take() {
            self.approved.insert(call, approved);
        }
    }

    /// Takes out the delivery that goes with the call's frame.
    pub(crate) fn take_delivery(&mut self, call: CallId) -> Option<DeliveryId> {
        self.approved.get_mut(&call)?.delivery.take()
    }

    /// Forgets a call that has ended. Returns the delivery of its approval where it never was sent.
    pub(crate) fn forget(&mut self, call: CallId) -> Option<DeliveryId> {
        self.waiting.remove(&call);
        self.approved.remove(&call)?.delivery
    }
}

impl Relay {
    /// Asks for the operator's decision about a call. `None` where it goes on.
    pub(crate) fn admit(
        &mut self,
        frame: ClientFrame<'_>,
        kind: CallKind,
    ) -> Option<ClientForward> {
        let decisions = self.settings.decisions.clone()?;
        let summary = match calls::summary(kind, *frame) {
            Ok(summary) => summary,
            Err(defect) => {
                let why = format!("no rule of the gateway can be judged, since {defect}");
                return Some(self.reject(frame, &ErrorResponse::new(-32602, why)));
            }
        };
        let tool = self.catalog.facts_of(kind, &summary.target);
        match decisions.admit(frame.at(), &summary, tool) {
            Admission::Free => None,
            Admission::Refuse(refusal) => Some(self.refuse_call(frame, kind, &refusal)),
            Admission::Approve(_) | Admission::Granted(..) if !has_only_shown(*frame) => {
                let why = "people approve this call, and they would not see all members of its params; leave out what the protocol does not name";
                Some(self.reject(frame, &ErrorResponse::new(-32602, why)))
            }
            Admission::Approve(approval) => {
                Some(self.ask_approval(frame, kind, summary, *approval))
            }
            Admission::Granted(approval, answers) => {
                let rule = approval.people.rule;
                if let Some(words) =
                    self.edit_is_refused(frame.at(), kind, frame.text(), &answers, &rule)
                {
                    if let Some(id) = frame.id() {
                        let said = self.not_done(kind, &id, &words);
                        self.tell_client(frame.stream(), said, true);
                    }
                    return Some(ClientForward::Handled);
                }
                Some(self.run_approved(
                    frame.at(),
                    frame.stream(),
                    frame.text(),
                    rule,
                    &answers,
                    None,
                ))
            }
        }
    }

    /// A call that comes before anybody has said which era is spoken is not judged by rules, and so does not go on.
    pub(crate) fn refuse_unopened(
        &mut self,
        frame: ClientFrame<'_>,
        method: &str,
    ) -> Option<ClientForward> {
        self.settings.decisions.as_ref()?;
        CallKind::of_method(method)?;
        let why = "the session was not opened: send `initialize` first";
        Some(self.reject(frame, &ErrorResponse::new(-32600, why)))
    }

    fn refuse_call(
        &mut self,
        frame: ClientFrame<'_>,
        kind: CallKind,
        refusal: &RuleRefusal,
    ) -> ClientForward {
        let server = self.shown_server();
        let words = format!("Not done: {refusal}. The server {server} was not called.");
        if let Some(id) = frame.id() {
            let said = self.not_done(kind, &id, &words);
            self.tell_client(frame.stream(), said, true);
        }
        ClientForward::Handled
    }

    /// Returns the response to a call that never reached its server.
    fn not_done(&self, kind: CallKind, id: &mcp_elicit_core::wire::Id, words: &str) -> String {
        match kind {
            CallKind::Tool => {
                let content = json!([{"type": "text", "text": words}]);
                let result = json!({"resultType": "complete", "content": content, "isError": true});
                message::result(id, &members::raw_value(&self.client.own_result(result)))
            }
            CallKind::Prompt | CallKind::Resource => {
                ErrorResponse::new(-32000, words).to_response(id)
            }
        }
    }

    /// The call waits here until people have approved it; the server knows nothing of it.
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
        let mut call = Call::new(frame.at(), frame.stream(), id, Some(kind));
        call.set_upstream_id(self.outbox.new_id());
        call.keep(frame.bytes_of(frame.text()));
        let key = self.calls.insert(call);
        self.calls.end_upstream(key);
        let may_learn = kind == CallKind::Tool
            && !approval.edit.is_empty()
            && self.catalog.may_learn_of(&summary.target);
        let waiting = Waiting { approval, summary };
        self.approvals.waiting.insert(key, waiting);
        if may_learn {
            self.list_tools_for(frame.at(), key);
        } else {
            self.open_approval(frame.at(), key);
        }
        ClientForward::Handled
    }

    /// People are asked about a call that waits, unless it was given up meanwhile.
    pub(crate) fn open_approval(&mut self, now: Timestamp, key: CallId) {
        let call = self.calls.get(key);
        let found = self.approvals.waiting.get(&key).zip(
            call.and_then(|call| Some((call.stream()?, call.client_id().clone(), call.kind()?))),
        );
        let Some((waiting, (stream, id, kind))) = found else {
            return;
        };
        let Waiting { approval, summary } = waiting;
        let tool = self.catalog.facts_of(kind, &summary.target);
        let schema = tool.and_then(|tool| tool.input_schema.as_deref());
        let request = approval_request(&self.shown_server(), summary, approval, schema);
        let asked = self.open_ask(now, key.into(), Origin::Approval, request, None, None);
        if let Err(refusal) = asked {
            self.remove_call(key);
            self.tell_client(stream, refusal.to_response(&id), true);
        }
    }

    /// People have decided about a call: it is made, or ends.
    pub(crate) fn approval_decided(
        &mut self,
        now: Timestamp,
        key: CallId,
        reply: &str,
        record: Option<String>,
    ) {
        let records: Vec<String> = record.into_iter().collect();
        let waiting = self.approvals.waiting.remove(&key);
        let call = self.calls.get(key);
        let found = waiting.zip(call.and_then(|call| {
            Some((
                call.stream()?,
                call.client_id().clone(),
                call.frame()?.to_owned(),
                call.kind()?,
            ))
        }));
        let Some((waiting, (stream, id, text, kind))) = found else {
            let why = "nobody waits for the call any more".to_owned();
            self.outbox.push(Effect::DeliveryRefused { records, why });
            return;
        };
        let Waiting { approval, summary } = waiting;
        self.remove_call(key);
        let reply: Value = serde_json::from_str(reply).unwrap_or_default();
        if reply["action"] != "accept" {
            self.outbox.push(Effect::Delivered { records });
            let rule = &approval.people.rule;
            let words = format!(
                "Not done: the people whom the rule `{rule}` asks did not approve this call. The server {} was not called.",
                self.shown_server()
            );
            let said = self.not_done(kind, &id, &words);
            self.tell_client(stream, said, true);
            return;
        }
        let answers = match &reply["content"] {
            Value::Object(_) => reply["content"].to_string(),
            _ => "{}".to_owned(),
        };
        let rule = &approval.people.rule;
        if let Some(words) = self.edit_is_refused(now, kind, &text, &answers, rule) {
            self.outbox.push(Effect::Delivered { records });
            let said = self.not_done(kind, &id, &words);
            self.tell_client(stream, said, true);
            return;
        }
        if let Some(decisions) = self.settings.decisions.clone() {
            let edited = with_edits(&text, &answers).map_or_else(Vec::new, |(_, edited)| edited);
            let question = records.first().map(String::as_str);
            decisions.approved(now, &summary, &approval, &answers, &edited, question);
        }
        let delivery = self.deliveries.begin(records, None);
        let rule = approval.people.rule;
        if let ClientForward::AsIs(call) =
            self.run_approved(now, stream, &text, rule, &answers, delivery)
        {
            let delivery = call.and_then(|call| self.approvals.take_delivery(call));
            self.outbox.send_to_server(text, call, delivery);
        }
    }

    /// Judges a call again whose arguments an approver changed: the rules may refuse it, or want others for it. Returns the words of the
    /// refusal.
    fn edit_is_refused(
        &self,
        now: Timestamp,
        kind: CallKind,
        text: &str,
        answers: &str,
        rule: &str,
    ) -> Option<String> {
        let (edited, _) = with_edits(text, answers)?;
        let decisions = self.settings.decisions.clone()?;
        let index = FrameIndex::at(edited.as_bytes());
        let summary = index.as_ref().map(|index| {
            let frame = Frame::of_text(&edited, index);
            calls::summary(kind, frame)
        });
        let Some(Ok(summary)) = summary else {
            return Some(
                "Not done: the changed arguments cannot be judged by the rules.".to_owned(),
            );
        };
        let tool = self.catalog.facts_of(kind, &summary.target);
        let why = match decisions.admit(now, &summary, tool) {
            Admission::Free => return None,
            Admission::Approve(other) | Admission::Granted(other, _)
                if other.people.rule == rule =>
            {
                return None;
            }
            Admission::Refuse(refusal) => refusal.to_string(),
            Admission::Approve(other) | Admission::Granted(other, _) => {
                format!(
                    "the rule `{}` asks other people about it",
                    other.people.rule
                )
            }
        };
        Some(format!(
            "Not done: an approver changed the arguments of this call, and {why}. The server {} was not called.",
            self.shown_server()
        ))
    }

    /// An approved call goes to the server, with the arguments that were changed in place of the client's. Returns
    /// [`ClientForward::AsIs`] only for the very text.
    fn run_approved(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        text: &str,
        rule: String,
        answers: &str,
        delivery: Option<DeliveryId>,
    ) -> ClientForward {
        let edited = with_edits(text, answers);
        let (sent, edited) = match edited {
            Some((sent, edited)) => (Some(sent), edited),
            None => (None, Vec::new()),
        };
        let sent = without_unshown_meta(sent.as_deref().unwrap_or(text)).or(sent);
        let text = sent.as_deref().unwrap_or(text);
        let Some(index) = FrameIndex::at(text.as_bytes()) else {
            return ClientForward::Handled;
        };
        let frame = ClientFrame::new(Frame::of_text(text, &index), stream, now, None);
        let method = frame.method().unwrap_or_default();
        self.approvals.starting = Some(Approved {
            rule,
            edited,
            delivery,
        });
        let forward = self.translate_request(frame, method, Carried::default());
        if let Some(never) = self.approvals.starting.take() {
            self.undelivered_approval(never.delivery);
        }
        match (forward, sent) {
            (ClientForward::AsIs(call), Some(sent)) => {
                let delivery = call.and_then(|call| self.approvals.take_delivery(call));
                self.outbox.send_to_server(sent, call, delivery);
                ClientForward::Handled
            }
            (forward, _) => forward,
        }
    }

    /// An approved call was not made: its approval is kept for the same call made again.
    pub(crate) fn undelivered_approval(&mut self, delivery: Option<DeliveryId>) {
        let delivery = delivery.and_then(|delivery| self.deliveries.end(delivery));
        if let Some(delivery) = delivery {
            let why = "the call ended before it was made".to_owned();
            let records = delivery.into_records();
            self.outbox.push(Effect::DeliveryRefused { records, why });
        }
    }

    /// The question about a call ended without anybody's decision, and so does the call.
    pub(crate) fn approval_fails(&mut self, key: CallId, why: &str) {
        let Some(approval) = self.approvals.of(key) else {
            return;
        };
        let people = &approval.people;
        let again = if people.hands_back {
            " Make the call again to ask once more."
        } else {
            ""
        };
        let words = format!(
            "Not done: the rule `{}` asks people about this call, and {why}. The server {} was not called.{again}",
            people.rule,
            self.shown_server()
        );
        let Some(call) = self.remove_call(key) else {
            return;
        };
        if let (Some(stream), Some(kind)) = (call.stream(), call.kind()) {
            let said = self.not_done(kind, call.client_id(), &words);
            self.tell_client(stream, said, true);
        }
    }

    /// Nobody waits for a call that waits for approval: the record alone knows its question from now on, in which the same call made
    /// again is found, in whatever session. `false` where the call is another.
    pub(crate) fn leave_approval(&mut self, key: CallId) -> bool {
        if !self.approvals.has(key) {
            return false;
        }
        let asks = self.calls.get(key).map(|call| call.asks().to_vec());
        for ask in asks.unwrap_or_default() {
            let question = self.take_question(ask);
            if let Some(record) = question.and_then(|question| question.record().map(str::to_owned))
            {
                self.outbox.push(Effect::Leave { record });
            }
        }
        self.remove_call(key);
        true
    }

    /// Returns the answer of the server with a word on the approval of its call, where that was approved.
    pub(crate) fn with_approval(&mut self, key: CallId, frame: Frame<'_>) -> Option<String> {
        let approved = self.approvals.approved.get(&key)?;
        let result = frame.result()?;
        if frame.member(FramePart::Result, "resultType") == Some(r#""input_required""#) {
            return None;
        }
        let note = members::raw_value(&json!({"rule": approved.rule, "edited": approved.edited}));
        let all = Members::read(result, "result").ok()?;
        let meta = match all.get("_meta").filter(|meta| !members::is_null(meta)) {
            Some(meta) => Members::read(meta, "_meta")
                .ok()?
                .with(APPROVAL, Some(&note)),
            None => members::raw_value(&json!({APPROVAL: note})),
        };
        let mut said = all.with("_meta", Some(&meta));
        let told = Members::read_text(said.get(), "result").ok()?;
        if let Some(content) = told.get("content").filter(|_| !approved.edited.is_empty()) {
            let content: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
            let words = format!(
                "The people who approved this call changed: {}",
                approved.edited.join(", ")
            );
            let words = members::raw_value(&json!({"type": "text", "text": words}));
            let content: Vec<&RawValue> = content.into_iter().chain([&*words]).collect();
            let content = serde_json::value::to_raw_value(&content).ok()?;
            let with_words = told.with("content", Some(&content));
            said = with_words;
        }
        let range = frame.range(FramePart::Result)?;
        Some(frame_edit::spliced(frame.text(), range, said.get()))
    }
}

/// The members of a call's params that are shown to approvers, or say nothing to a tool.
const SHOWN: [&str; 5] = ["name", "uri", "arguments", "_meta", "task"];

/// Returns `true` if a call has no member beside those of the protocol, which an approver would not see.
fn has_only_shown(frame: Frame<'_>) -> bool {
    let Some(params) = frame.params() else {
        return true;
    };
    Members::read(params, "params")
        .is_ok_and(|params| params.iter().all(|(name, _)| SHOWN.contains(&name)))
}

/// Returns `true` for a member of `_meta` that the protocol or the W3C's trace context names.
fn is_known_meta(name: &str) -> bool {
    name.starts_with("io.modelcontextprotocol/")
        || matches!(
            name,
            "progressToken" | "traceparent" | "tracestate" | "baggage"
        )
}

/// Returns the request without members of `_meta` that no approver has seen; `None` where it has none.
fn without_unshown_meta(text: &str) -> Option<String> {
    let index = FrameIndex::at(text.as_bytes())?;
    let range = index.meta.clone()?;
    let meta = Members::read_text(&text[range.clone()], "_meta").ok()?;
    if meta.iter().all(|(name, _)| is_known_meta(name)) {
        return None;
    }
    let known: Vec<String> = meta
        .iter()
        .filter(|(name, _)| is_known_meta(name))
        .map(|(name, value)| format!("{}:{}", members::raw_text(name), value.get()))
        .collect();
    let known = format!("{{{}}}", known.join(","));
    Some(frame_edit::spliced(text, &range, &known))
}

/// Returns the question about a call: one field for each argument that an approver may change, as far as the tool's schema says what
/// it may be.
fn approval_request(
    server: &str,
    call: &CallSummary,
    approval: &Approval,
    schema: Option<&str>,
) -> ElicitRequest {
    let mut words = format!(
        "Approve this call? The rule `{}` requires approval before {} of {server} is called.",
        approval.people.rule, call.target
    );
    if schema.is_none() && !approval.edit.is_empty() {
        words.push_str(" Its arguments can be approved or declined, but not changed: the server does not say what they may be.");
    }
    let schema: Value = schema
        .and_then(|schema| serde_json::from_str(schema).ok())
        .unwrap_or_default();
    let arguments = call.arguments.as_deref().unwrap_or("{}");
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let mut fields = serde_json::Map::new();
    for pointer in approval.edit.iter().take(MAX_EDITS) {
        if let Some(field) = editable(pointer, &schema, &arguments) {
            fields.insert(pointer.clone(), field);
        }
    }
    let required: Vec<&String> = fields.keys().collect();
    let whole = json!({"type": "object", "properties": fields, "required": required});
    let none = json!({"type": "object", "properties": {}});
    let is_form = Form::from_value(&whole).is_ok();
    ElicitRequest::form(words, if is_form { &whole } else { &none })
}

/// Returns the field for one argument; `None` where it is absent, or is no text, number or truth value in the tool's schema.
fn editable(pointer: &str, schema: &Value, arguments: &Value) -> Option<Value> {
    let present = arguments.pointer(pointer)?;
    let mut declared = schema;
    for name in names_of(pointer)? {
        declared = declared.get("properties")?.get(&name)?;
    }
    let kind = declared.get("type")?.as_str()?;
    let copied: &[&str] = match kind {
        "string" if present.is_string() => &["minLength", "maxLength", "format", "enum"],
        // Numbers that a form would round are shown, not changed.
        "integer" if present.is_i64() => &["minimum", "maximum"],
        "number" if present.is_number() => &["minimum", "maximum"],
        "boolean" if present.is_boolean() => &[],
        _ => return None,
    };
    let mut field = json!({"type": kind, "title": pointer});
    for name in copied {
        if let Some(value) = declared.get(name) {
            field[*name] = value.clone();
        }
    }
    field["default"] = present.clone();
    Some(field)
}

/// Returns the names in a JSON Pointer.
fn names_of(pointer: &str) -> Option<Vec<String>> {
    let names = pointer.strip_prefix('/')?.split('/');
    Some(
        names
            .map(|name| name.replace("~1", "/").replace("~0", "~"))
            .collect(),
    )
}

/// Returns the request with the answers in place of the arguments that they differ from, and pointers to those. `None` where they
/// differ from none.
fn with_edits(text: &str, answers: &str) -> Option<(String, Vec<String>)> {
    let index = FrameIndex::at(text.as_bytes())?;
    let range = index.arguments.clone()?;
    let mut arguments: Box<RawValue> = serde_json::from_str(&text[range.clone()]).ok()?;
    let mut edited = Vec::new();
    for (pointer, answer) in Members::read_text(answers, "answers").ok()?.iter() {
        let changed = names_of(pointer).and_then(|names| edited_member(&arguments, &names, answer));
        if let Some(changed) = changed {
            arguments = changed;
            edited.push(pointer.to_owned());
        }
    }
    (!edited.is_empty()).then(|| (frame_edit::spliced(text, &range, arguments.get()), edited))
}

/// Returns the object with another value for the member of this path, where it has that member and the value is another.
fn edited_member(object: &RawValue, names: &[String], value: &RawValue) -> Option<Box<RawValue>> {
    let (name, rest) = names.split_first()?;
    let all = Members::read(object, "arguments").ok()?;
    let before = all.get(name)?;
    if rest.is_empty() {
        let is_other = canonical(before.get()) != canonical(value.get());
        return is_other.then(|| all.with(name, Some(value)));
    }
    let changed = edited_member(before, rest, value)?;
    Some(all.with(name, Some(&changed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"id":1,"method":"tools/call","params":{"name":"rm","arguments":{"path":"/tmp/a", "n":12345678901234567890,"deep":{"on":true}}}}"#;

    #[test]
    fn only_what_differs_is_changed_and_the_rest_stays_byte_for_byte() {
        assert_eq!(with_edits(CALL, "{}"), None);
        assert_eq!(with_edits(CALL, r#"{"/path":"/tmp/\u0061"}"#), None);
        let (sent, edited) = with_edits(CALL, r#"{"/path":"/tmp/b","/deep/on":false}"#).unwrap();
        assert_eq!(edited, ["/path", "/deep/on"]);
        assert!(
            sent.contains("12345678901234567890") && sent.contains(r#""/tmp/b""#),
            "{sent}"
        );
        assert!(sent.contains(r#"{"on":false}"#), "{sent}");
        assert_eq!(with_edits(CALL, r#"{"/absent":1}"#), None);
    }

    #[test]
    fn what_no_approver_saw_in_meta_is_left_out() {
        let with = |meta: &str| {
            format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"rm","_meta":{meta}}}}}"#)
        };
        let known = r#"{"progressToken":7,"io.modelcontextprotocol/x":{"a":1}}"#;
        assert_eq!(without_unshown_meta(&with(known)), None);
        assert_eq!(without_unshown_meta(CALL), None);
        let more = r#"{"progressToken":7,"force":"yes","io.modelcontextprotocol/x":{"a":1}}"#;
        assert_eq!(without_unshown_meta(&with(more)), Some(with(known)));
    }

    #[test]
    fn a_field_comes_from_the_tools_schema_and_from_nothing_else() {
        let schema = json!({"properties": {"path": {"type": "string", "maxLength": 9, "pattern": "x"}, "n": {"type": "integer"},
            "deep": {"type": "object", "properties": {"on": {"type": "boolean"}}}}});
        let arguments =
            json!({"path": "/tmp/a", "n": 12_345_678_901_234_567_890_u64, "deep": {"on": true}});
        let field = editable("/path", &schema, &arguments).unwrap();
        assert_eq!(
            field,
            json!({"type": "string", "title": "/path", "maxLength": 9, "default": "/tmp/a"})
        );
        assert!(editable("/deep/on", &schema, &arguments).is_some());
        for shown_only in ["/n", "/deep", "/other", "/deep/on/x", ""] {
            assert_eq!(
                editable(shown_only, &schema, &arguments),
                None,
                "{shown_only}"
            );
        }
        assert_eq!(editable("/path", &Value::Null, &arguments), None);
    }
}
