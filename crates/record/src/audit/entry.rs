//! The text of one audit entry, as JSON.

use mcp_elicit_core::lifecycle::{AuditEvent as Event, Timestamp};
use mcp_elicit_core::wire::CallKind;
use mcp_elicit_core::wire::members::push_quoted;
use serde_json::{Map, Value};

use crate::store::Row;

/// Returns the audit entry for a step of a question as JSON: actor, server and tool, names of fields, outcome and time.
/// Never a value. Every step of every question has one, so it is written without a tree.
pub(crate) fn step_entry(event: Event, row: &Row, now: Timestamp) -> String {
    let body = &row.body;
    let delivery = row.lifecycle.delivery_reason();
    let team = row.team.as_deref();
    let mut entry = StepEntry::new(now, event);
    entry.put("id", &row.id);
    entry.put("server", &body.server);
    entry.put("principal", &body.principal);
    entry.put("mode", body.mode.as_str());
    entry.put_some("kind", body.kind.map(CallKind::word));
    entry.put_some("target", body.target.as_deref());
    entry.put_list("others", &body.others);
    entry.put_some("rule", team.map(|team| team.rule.as_str()));
    if team.is_some_and(|team| team.is_approval) {
        // The gateway asks it, before a call.
        entry.put_name("approval");
        entry.0.push_str("true");
    }
    entry.put_some("by", row.lifecycle.ended_by());
    let reason = delivery.as_deref().or_else(|| row.lifecycle.reason());
    entry.put_some("reason", reason);
    entry.put_list("fields", &body.fields);
    entry.into_text()
}

/// An entry while it is written, member by member.
struct StepEntry(String);

impl StepEntry {
    fn new(now: Timestamp, event: Event) -> Self {
        // Most are shorter.
        let mut text = String::with_capacity(512);
        text.push_str("{\"at\":");
        text.push_str(&now.as_millis().to_string());
        let mut entry = Self(text);
        entry.put("event", event.as_str());
        entry
    }

    /// Adds a member with a name that has no escapes, up to its value.
    fn put_name(&mut self, name: &str) {
        for part in [",\"", name, "\":"] {
            self.0.push_str(part);
        }
    }

    fn put(&mut self, name: &str, value: &str) {
        self.put_name(name);
        push_quoted(&mut self.0, value);
    }

    fn put_some(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    fn put_list(&mut self, name: &str, values: &[String]) {
        if values.is_empty() {
            return;
        }
        self.put_name(name);
        let mut separator = '[';
        for value in values {
            self.0.push(separator);
            push_quoted(&mut self.0, value);
            separator = ',';
        }
        self.0.push(']');
    }

    fn into_text(self) -> String {
        self.0 + "}"
    }
}

/// Any other entry, while it is composed.
pub(crate) struct Entry(Map<String, Value>);

impl Entry {
    /// Creates an entry with its time and event.
    pub(crate) fn new(event: Event, now: Timestamp) -> Self {
        debug_assert!(
            Event::OF_GATEWAY.contains(&event),
            "{event} is on the list of events"
        );
        Self(Map::new())
            .with("at", now.as_millis())
            .with("event", event.as_str())
    }

    /// Parses an entry that was composed before, to extend it.
    pub(crate) fn continued(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// Adds the question, its call and its rule.
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

    /// Adds the kind and the target of the call, if known.
    pub(crate) fn with_call(self, call: Option<(CallKind, &str)>) -> Self {
        self.with_some("kind", call.map(|(kind, _)| CallKind::word(kind)))
            .with_some("target", call.map(|(_, target)| target))
    }

    /// Adds a member.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a member if it is present.
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

    /// Returns the entry's text for the audit.
    pub(crate) fn into_text(self) -> String {
        Value::Object(self.0).to_string()
    }
}

/// The details of an event that is not a step of a question, besides its kind and time. Never a value, a secret or a
/// token.
#[derive(Clone, Copy, Debug, Default)]
pub struct Details<'a> {
    /// The question.
    pub question: Option<&'a str>,
    /// The server.
    pub server: Option<&'a str>,
    /// The issuer and the subject, as the record names callers.
    pub principal: Option<&'a str>,
    /// The way in which callers authenticate.
    pub mode: Option<&'a str>,
    /// The actor: `person:NAME`, `provider`, or the place of the action in words.
    pub by: Option<&'a str>,
    /// The person that the event is about, if not the actor.
    pub person: Option<&'a str>,
    /// The public name of a session.
    pub session: Option<&'a str>,
    /// The id of a device.
    pub device: Option<&'a str>,
    /// The reason or the result, in a word or in words.
    pub reason: Option<&'a str>,
    /// The number of omitted similar events before it.
    pub left_out: u64,
}

impl<'a> Details<'a> {
    /// Creates the details of an action of this actor.
    pub fn by(actor: &'a str) -> Self {
        Self {
            by: Some(actor),
            ..Self::default()
        }
    }
}

impl Details<'_> {
    /// Returns the entry of an event with these details.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row;

    #[test]
    fn a_step_is_one_line_of_json_with_what_is_known() {
        let mut open = row::tests::open();
        let now = Timestamp::from_millis(7);
        assert_eq!(
            step_entry(Event::Asked, &open, now),
            r#"{"at":7,"event":"asked","id":"q","server":"s","principal":"local","mode":"form","kind":"tool","target":"deploy"}"#
        );
        let body = std::sync::Arc::make_mut(&mut open.body);
        body.target = Some("a\"b\n\u{1b}\\\u{2028}".to_owned());
        body.others = vec!["c\td".to_owned(), String::new()];
        body.fields = vec!["e".to_owned()];
        let entry = step_entry(Event::Asked, &open, now);
        let read: Value = serde_json::from_str(&entry).unwrap();
        assert_eq!(read["target"], "a\"b\n\u{1b}\\\u{2028}");
        assert_eq!(read["others"], serde_json::json!(["c\td", ""]));
        assert_eq!(read["fields"], serde_json::json!(["e"]));
        assert_eq!(read.to_string(), entry, "as any other JSON is written");
    }
}
