//! The text of one audit entry, as JSON.

use std::fmt::Write as _;

use mcp_elicit_core::lifecycle::{AuditEvent as Event, Timestamp};
use mcp_elicit_core::wire::CallKind;
use mcp_elicit_core::wire::members::push_quoted;
use serde_json::Value;

use crate::store::Row;

/// Returns the audit entry for a step of a question as JSON: actor, server and tool, names of fields, outcome and time.
/// It contains no values. Every step of every question has one, so it is written without a tree.
pub(crate) fn step_entry(event: Event, row: &Row, now: Timestamp) -> String {
    let body = &row.body;
    let delivery = row.lifecycle.delivery_reason();
    let reason = delivery.as_deref().or_else(|| row.lifecycle.reason());
    let team = row.team.as_deref();
    // The gateway asks it, before a call.
    let is_approval = team.is_some_and(|team| team.is_approval);
    Entry::new(event, now)
        .about_question(row)
        .with_some("kind", body.kind.map(CallKind::word))
        .with_some("target", body.target.as_deref())
        .with_some("others", some(&body.others))
        .with_some("rule", team.map(|team| team.rule.as_str()))
        .with_some("approval", is_approval.then_some(true))
        .with_some("by", row.lifecycle.ended_by())
        .with_some("reason", reason)
        .with_some("fields", some(&body.fields))
        .into_text()
}

/// Returns a list that is not empty.
fn some(list: &[String]) -> Option<&[String]> {
    (!list.is_empty()).then_some(list)
}

/// An entry while it is written, member by member. Every step of every question has one, so it is written without a
/// tree.
pub(crate) struct Entry(String);

impl Entry {
    /// Creates an entry with its time and event.
    pub(crate) fn new(event: Event, now: Timestamp) -> Self {
        debug_assert!(
            Event::OF_GATEWAY.contains(&event),
            "{event} is on the list of events"
        );
        // Most are shorter.
        let mut text = String::with_capacity(512);
        text.push_str("{\"at\":");
        now.as_millis().push_to(&mut text);
        Self(text).with("event", event.as_str())
    }

    /// Returns an entry that was written before, to be continued.
    pub(crate) fn continued(mut text: String) -> Self {
        let end = text.pop();
        debug_assert_eq!(end, Some('}'), "an entry is an object");
        Self(text)
    }

    /// Adds the question, its call and its rule.
    pub(crate) fn about(self, row: &Row) -> Self {
        let rule = row.team.as_ref().map(|team| team.rule.as_str());
        self.about_question(row)
            .with_call(row.body.kind.zip(row.body.target.as_deref()))
            .with_some("rule", rule)
    }

    /// Names the question.
    fn about_question(self, row: &Row) -> Self {
        let body = &row.body;
        self.with("id", row.id.as_str())
            .with("server", body.server.as_str())
            .with("principal", body.principal.as_str())
            .with("mode", body.mode.as_str())
    }

    /// Adds the kind and the target of the call, if known.
    pub(crate) fn with_call(self, call: Option<(CallKind, &str)>) -> Self {
        self.with_some("kind", call.map(|(kind, _)| CallKind::word(kind)))
            .with_some("target", call.map(|(_, target)| target))
    }

    /// Adds a member that the entry does not have yet. Its name has no escapes.
    pub(crate) fn with(mut self, name: &str, value: impl MemberValue) -> Self {
        let text = &mut self.0;
        let start = text.len();
        for part in [",\"", name, "\":"] {
            text.push_str(part);
        }
        debug_assert!(
            !text[..start].contains(&text[start..]),
            "an entry has each member once"
        );
        value.push_to(text);
        self
    }

    /// Adds a member if it has a value.
    pub(crate) fn with_some(self, name: &str, value: Option<impl MemberValue>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds all members of an object.
    pub(crate) fn with_all(self, members: &Value) -> Self {
        let members = members.as_object().into_iter().flatten();
        members.fold(self, |entry, (name, value)| entry.with(name, value))
    }

    /// Returns the entry's text for the audit.
    pub(crate) fn into_text(self) -> String {
        self.0 + "}"
    }
}

/// A value of a member, which is written as JSON.
pub(crate) trait MemberValue {
    /// Adds the value to a text.
    fn push_to(self, text: &mut String);
}

impl MemberValue for &str {
    fn push_to(self, text: &mut String) {
        push_quoted(text, self);
    }
}

impl MemberValue for &[String] {
    fn push_to(self, text: &mut String) {
        text.push('[');
        for (number, value) in self.iter().enumerate() {
            if number > 0 {
                text.push(',');
            }
            push_quoted(text, value);
        }
        text.push(']');
    }
}

/// Values whose display is JSON.
macro_rules! displayed {
    ($($value:ty),*) => {$(
        impl MemberValue for $value {
            fn push_to(self, text: &mut String) {
                write!(text, "{self}").expect("a value, written to memory");
            }
        }
    )*};
}

displayed!(bool, u64, usize, &Value);

/// The details of an event that is not a step of a question, besides its kind and time. They contain no values, secrets
/// or tokens.
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
    /// The actor: `person:NAME`, `provider`, or a description of the place of the action.
    pub by: Option<&'a str>,
    /// The person that the event is about, if not the actor.
    pub person: Option<&'a str>,
    /// The public name of a session.
    pub session: Option<&'a str>,
    /// The id of a device.
    pub device: Option<&'a str>,
    /// The reason or the result, as a code or as text.
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

    #[test]
    fn an_entry_has_its_members_in_their_order_as_any_json_is_written() {
        let open = row::tests::open();
        let now = Timestamp::from_millis(1_764_000_000_007);
        let act = Entry::new(Event::ActRefused, now)
            .about(&open)
            .with("by", "person:\"a\n\u{1b}\u{2028}")
            .with("act", "fill")
            .with_some("channel", None::<&str>)
            .with_some("leftOut", Some(3_u64))
            .with_all(&serde_json::json!({"edited": ["/a", "/\"b"], "votes": 2, "none": null, "in": {"c": [true]}}));
        let act = act.into_text();
        assert_eq!(
            act,
            "{\"at\":1764000000007,\"event\":\"act-refused\",\"id\":\"q\",\"server\":\"s\",\"principal\":\"local\",\"mode\":\"form\",\
             \"kind\":\"tool\",\"target\":\"deploy\",\"by\":\"person:\\\"a\\n\\u001b\u{2028}\",\"act\":\"fill\",\"leftOut\":3,\
             \"edited\":[\"/a\",\"/\\\"b\"],\"votes\":2,\"none\":null,\"in\":{\"c\":[true]}}"
        );
        let read: Value = serde_json::from_str(&act).unwrap();
        assert_eq!(read.to_string(), act);
        let details = Details {
            question: Some("q"),
            server: Some("s"),
            principal: Some("i\ns"),
            mode: Some("token"),
            by: Some("provider"),
            person: Some("ada"),
            session: Some("1"),
            device: Some("2"),
            reason: Some("late"),
            left_out: 4,
        };
        assert_eq!(
            details.entry(Event::SignIn, now).into_text(),
            r#"{"at":1764000000007,"event":"sign-in","id":"q","server":"s","principal":"i\ns","mode":"token","by":"provider","person":"ada","session":"1","device":"2","reason":"late","leftOut":4}"#
        );
        assert_eq!(
            Details::default().entry(Event::SignIn, now).into_text(),
            r#"{"at":1764000000007,"event":"sign-in"}"#
        );
        let step = step_entry(Event::Declined, &open, now);
        let named = Entry::continued(step.clone()).with("channel", "slack");
        let expected = format!("{},\"channel\":\"slack\"}}", &step[..step.len() - 1]);
        assert_eq!(named.into_text(), expected);
    }
}
