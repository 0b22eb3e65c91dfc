//! The text of one entry of the audit, JSON: who, which server and tool, fields' names, outcome and time. Never a value.

use mcp_elicit_core::lifecycle::{AuditEvent as Event, Timestamp};
use mcp_elicit_core::wire::CallKind;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::store::Row;

/// A step of a question as the audit says it: who, which server and tool, fields' names, outcome and time. Never a value.
#[derive(Serialize)]
struct StepEntry<'a> {
    at: u64,
    event: &'a str,
    id: &'a str,
    server: &'a str,
    principal: &'a str,
    mode: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    others: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    /// For a question that the gateway asks before a call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    approval: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    fields: &'a [String],
}

/// Returns what the audit says of a step of a question, JSON. It is written for every question: without a tree.
pub(crate) fn step_entry(event: Event, row: &Row, now: Timestamp) -> String {
    let body = &row.body;
    let delivery = row.lifecycle.delivery_reason();
    let team = row.team.as_deref();
    let entry = StepEntry {
        at: now.as_millis(),
        event: event.as_str(),
        id: &row.id,
        server: &body.server,
        principal: &body.principal,
        mode: body.mode.as_str(),
        kind: body.kind.map(CallKind::word),
        target: body.target.as_deref(),
        others: &body.others,
        rule: team.map(|team| team.rule.as_str()),
        approval: team.is_some_and(|team| team.is_approval),
        by: row.lifecycle.ended_by(),
        reason: delivery.as_deref().or_else(|| row.lifecycle.reason()),
        fields: &body.fields,
    };
    serde_json::to_string(&entry).expect("texts and a number, written to memory")
}

/// Any other entry, being composed.
pub(crate) struct Entry(Map<String, Value>);

impl Entry {
    /// Begins an entry with its time and event.
    pub(crate) fn new(event: Event, now: Timestamp) -> Self {
        debug_assert!(
            Event::OF_GATEWAY.contains(&event),
            "{event} is on the list of events"
        );
        Self(Map::new())
            .with("at", now.as_millis())
            .with("event", event.as_str())
    }

    /// Returns an entry that was composed before, to be continued.
    pub(crate) fn continued(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// Names the question, its call and its rule.
    pub(crate) fn about(self, row: &Row) -> Self {
        let body = &row.body;
        let rule = row.team.as_ref().map(|team| team.rule.as_str());
        let call = body.kind.zip(body.target.as_deref());
        self.with("id", row.id.as_str())
            .with("server", body.server.as_str())
            .with("principal", body.principal.as_str())
            .with("mode", body.mode.as_str())
            .with_call(call)
            .with_some("rule", rule)
    }

    /// Names the kind and the target of the call, where they are known.
    pub(crate) fn with_call(self, call: Option<(CallKind, &str)>) -> Self {
        self.with_some("kind", call.map(|(kind, _)| CallKind::word(kind)))
            .with_some("target", call.map(|(_, target)| target))
    }

    /// Adds a member.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a member that is there.
    pub(crate) fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds all members of an object.
    pub(crate) fn with_all(mut self, members: Value) -> Self {
        if let Value::Object(members) = members {
            self.0.extend(members);
        }
        self
    }

    /// Returns the entry as the audit keeps it.
    pub(crate) fn into_text(self) -> String {
        Value::Object(self.0).to_string()
    }
}

/// The details of an event that is not a step of a question, besides its kind and time. Never a value, a secret or a token.
#[derive(Clone, Copy, Debug, Default)]
pub struct Details<'a> {
    /// The question.
    pub question: Option<&'a str>,
    /// The server.
    pub server: Option<&'a str>,
    /// The issuer and the subject, as the record tells callers apart.
    pub principal: Option<&'a str>,
    /// The way in which callers prove who they are.
    pub mode: Option<&'a str>,
    /// The actor: `person:NAME`, `provider`, or in words where it was done.
    pub by: Option<&'a str>,
    /// The person whom it is about, where that is not the actor.
    pub person: Option<&'a str>,
    /// The public name of a session.
    pub session: Option<&'a str>,
    /// The id of a device.
    pub device: Option<&'a str>,
    /// The reason or the result, in a word or in words.
    pub reason: Option<&'a str>,
    /// The number of events like it that were left out before it.
    pub left_out: u64,
}

impl<'a> Details<'a> {
    /// The details of an act of this actor.
    pub fn by(actor: &'a str) -> Self {
        Self {
            by: Some(actor),
            ..Self::default()
        }
    }
}

impl Details<'_> {
    /// Returns the entry of an event that these are the details of.
    pub(crate) fn entry(&self, event: Event, now: Timestamp) -> Entry {
        let left_out = Some(self.left_out).filter(|&count| count > 0);
        Entry::new(event, now)
            .with_some("id", self.question)
            .with_some("server", self.server)
            .with_some("principal", self.principal)
            .with_some("mode", self.mode)
            .with_some("by", self.by)
            .with_some("person", self.person)
            .with_some("session", self.session)
            .with_some("device", self.device)
            .with_some("reason", self.reason)
            .with_some("leftOut", left_out)
    }
}
