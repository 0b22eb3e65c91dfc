//! The text of one audit entry, as JSON.

use std::fmt::Write as _;

use mcp_elicit_core::lifecycle::{AuditEvent as Event, NotAPerson, Timestamp};
use mcp_elicit_core::wire::CallKind;
use mcp_elicit_core::wire::members::push_quoted;
use serde_json::Value;

use super::spelling::{Actor, Member};
use crate::store::{Body, Row, cut};

/// The most bytes of a called item's name that an entry has: the audit is kept for ever by default.
const MAX_NAME: usize = 4_096;

/// Returns the audit entry for a step of a question as JSON: actor, server and tool, names of fields, outcome and time.
/// It contains no values. Every step of every question has one, so it is written without a tree.
pub(crate) fn step_entry(event: Event, row: &Row, now: Timestamp) -> String {
    let body = &row.body;
    let delivery = row.lifecycle.delivery_reason();
    if event == Event::ClientNotAPerson
        && let Some(moved) = row.lifecycle.moved()
    {
        return EntryText::doubt(row, moved.why, now).into_text();
    }
    let reason = delivery.as_deref().or_else(|| row.lifecycle.reason());
    let team = row.team.as_deref();
    let others = Body::beginnings_of(&body.others, MAX_NAME);
    EntryText::new(event, now)
        .about_question(row)
        .with_some(Member::Kind, body.kind.map(CallKind::word))
        .with_target(body.target.as_deref())
        .with_some(Member::Others, some(&others))
        .with_some(Member::Rule, team.map(|team| team.rule.as_str()))
        .with_some(Member::Approval, row.is_approval().then_some(true))
        .with_some(Member::By, row.lifecycle.ended_by())
        .with_some(Member::Reason, reason)
        .with_some(Member::Fields, some(&body.fields))
        .with_some(Member::Unchecked, body.unchecked.as_deref())
        .into_text()
}

/// Returns the audit entry for a client's response that is not, or may not be, a person's act, as JSON.
pub(crate) fn doubt_entry(row: &Row, why: NotAPerson, now: Timestamp) -> String {
    EntryText::doubt(row, why, now).into_text()
}

/// Returns the name and the version of a client.
fn client_name(info: &str) -> Option<String> {
    let info: Value = serde_json::from_str(info).ok()?;
    let name = info["name"].as_str()?;
    Some(match info["version"].as_str() {
        Some(version) => format!("{name} {version}"),
        None => name.to_owned(),
    })
}

/// Returns a list that is not empty.
fn some(list: &[String]) -> Option<&[String]> {
    (!list.is_empty()).then_some(list)
}

/// An entry while it is written, member by member. Every step of every question has one, so it is written without a
/// tree.
pub(crate) struct EntryText(String);

impl EntryText {
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
        Self(text).with(Member::Event, event.as_str())
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
            .with_some(Member::Rule, rule)
    }

    /// Creates the entry for a client's response that is not, or may not be, a person's act.
    pub(crate) fn doubt(row: &Row, why: NotAPerson, now: Timestamp) -> Self {
        let client = row.body.client_info.as_deref().and_then(client_name);
        Self::new(Event::ClientNotAPerson, now)
            .about(row)
            .with_some(Member::Client, client.as_deref())
            .with(Member::Evidence, why.as_str())
            .with(Member::Reason, &*why.to_string())
    }

    /// Names the question.
    fn about_question(self, row: &Row) -> Self {
        let body = &row.body;
        self.with(Member::Id, row.id.as_str())
            .with(Member::Server, body.server.as_str())
            .with(Member::Principal, body.principal.as_str())
            .with(Member::Mode, body.mode.as_str())
    }

    /// Adds the kind and the target of the call, if known.
    pub(crate) fn with_call(self, call: Option<(CallKind, &str)>) -> Self {
        self.with_some(Member::Kind, call.map(|(kind, _)| CallKind::word(kind)))
            .with_target(call.map(|(_, target)| target))
    }

    /// Adds the name of a tool or prompt, or the beginning of a long URI.
    fn with_target(self, target: Option<&str>) -> Self {
        self.with_some(
            Member::Target,
            target.map(|name| cut(name, MAX_NAME)).as_deref(),
        )
    }

    /// Adds a member that the entry does not have yet.
    pub(crate) fn with(mut self, member: Member, value: impl MemberValue) -> Self {
        let text = &mut self.0;
        let start = text.len();
        for part in [",\"", member.as_str(), "\":"] {
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
    pub(crate) fn with_some(self, member: Member, value: Option<impl MemberValue>) -> Self {
        match value {
            Some(value) => self.with(member, value),
            None => self,
        }
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

displayed!(bool, u64, usize);

impl MemberValue for &Actor {
    fn push_to(self, text: &mut String) {
        push_quoted(text, &self.to_string());
    }
}

/// An event that a person's action on a question of a rule causes, except the question's end.
#[derive(Clone, Debug)]
pub(crate) struct ActEvent {
    /// The kind.
    pub(crate) event: Event,
    /// The number of people who have confirmed, and the number who must.
    pub(crate) votes: Option<(usize, u8)>,
    /// The one to whom it is delegated.
    pub(crate) to: Option<Actor>,
    /// The person whose vote was dropped.
    pub(crate) dropped: Option<String>,
    /// The names of the fields that were filled in.
    pub(crate) fields: Vec<String>,
    /// JSON Pointers to the arguments that were changed.
    pub(crate) edited: Vec<String>,
    /// The person who acted; `None` for a dropped vote, which no action caused.
    pub(crate) by: Option<Actor>,
    /// The channel, if it was outside the pages.
    pub(crate) channel: Option<String>,
    /// The person's text, if the rule has it in the audit.
    pub(crate) comment: Option<String>,
}

/// The reason of a dropped vote.
const NOT_ELIGIBLE: &str = "not-eligible";

impl ActEvent {
    /// Creates an event of this kind.
    pub(crate) fn new(event: Event) -> Self {
        Self {
            event,
            votes: None,
            to: None,
            dropped: None,
            fields: Vec::new(),
            edited: Vec::new(),
            by: None,
            channel: None,
            comment: None,
        }
    }

    /// Returns the entry of the event.
    pub(crate) fn entry(&self, row: &Row, now: Timestamp) -> EntryText {
        let reason = self.dropped.as_ref().map(|_| NOT_ELIGIBLE);
        let need = self.votes.map(|(_, need)| u64::from(need));
        EntryText::new(self.event, now)
            .about(row)
            .with_some(Member::Votes, self.votes.map(|(votes, _)| votes))
            .with_some(Member::Need, need)
            .with_some(Member::To, self.to.as_ref())
            .with_some(Member::Person, self.dropped.as_deref())
            .with_some(Member::Reason, reason)
            .with_some(Member::Fields, some(&Body::short_names(&self.fields)))
            .with_some(Member::Edited, some(&self.edited))
            .with_some(Member::By, self.by.as_ref())
            .with_some(Member::Channel, self.channel.as_deref())
            .with_some(Member::Comment, self.comment.as_deref())
    }
}

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
    pub(crate) fn entry(&self, event: Event, now: Timestamp) -> EntryText {
        let left_out = Some(self.left_out).filter(|&count| count > 0);
        EntryText::new(event, now)
            .with_some(Member::Id, self.question)
            .with_some(Member::Server, self.server)
            .with_some(Member::Principal, self.principal)
            .with_some(Member::Mode, self.mode)
            .with_some(Member::By, self.by)
            .with_some(Member::Person, self.person)
            .with_some(Member::Session, self.session)
            .with_some(Member::Device, self.device)
            .with_some(Member::Reason, self.reason)
            .with_some(Member::LeftOut, left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row;

    #[test]
    fn an_entry_has_the_beginning_of_a_long_name() {
        let mut open = row::tests::open();
        let body = std::sync::Arc::make_mut(&mut open.body);
        body.target = Some("é".repeat(30_000));
        body.others = vec!["o".repeat(60_000), "p".to_owned()];
        let now = Timestamp::from_millis(7);
        let cut = format!("{}…", "é".repeat(2_048));
        let read: Value = serde_json::from_str(&step_entry(Event::Asked, &open, now)).unwrap();
        assert_eq!(read["target"], cut);
        let others = serde_json::json!([format!("{}…", "o".repeat(4_096)), "p"]);
        assert_eq!(read["others"], others);
        let about = EntryText::new(Event::Asked, now).about(&open).into_text();
        let read: Value = serde_json::from_str(&about).unwrap();
        assert_eq!(read["target"], cut);
    }

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
        let act = EntryText::new(Event::ActRefused, now)
            .about(&open)
            .with(Member::By, &Actor::person("\"a\n\u{1b}\u{2028}"))
            .with(Member::Act, "fill")
            .with_some(Member::Channel, None::<&str>)
            .with_some(Member::LeftOut, Some(3_u64));
        let act = act.into_text();
        assert_eq!(
            act,
            "{\"at\":1764000000007,\"event\":\"act-refused\",\"id\":\"q\",\"server\":\"s\",\"principal\":\"local\",\"mode\":\"form\",\
             \"kind\":\"tool\",\"target\":\"deploy\",\"by\":\"person:\\\"a\\n\\u001b\u{2028}\",\"act\":\"fill\",\"leftOut\":3}"
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
        let confirmed = ActEvent {
            votes: Some((1, 2)),
            to: Some(Actor::Group("ops".to_owned())),
            fields: vec!["e".to_owned()],
            edited: vec!["/a".to_owned(), "/\"b".to_owned()],
            by: Some(Actor::person("ada")),
            channel: Some("slack".to_owned()),
            comment: Some("why".to_owned()),
            ..ActEvent::new(Event::Confirmed)
        };
        assert_eq!(
            confirmed.entry(&open, now).into_text(),
            r#"{"at":1764000000007,"event":"confirmed","id":"q","server":"s","principal":"local","mode":"form","kind":"tool","target":"deploy","votes":1,"need":2,"to":"group:ops","fields":["e"],"edited":["/a","/\"b"],"by":"person:ada","channel":"slack","comment":"why"}"#
        );
        let dropped = ActEvent {
            dropped: Some("bob".to_owned()),
            ..ActEvent::new(Event::VoteDropped)
        };
        assert_eq!(
            dropped.entry(&open, now).into_text(),
            r#"{"at":1764000000007,"event":"vote-dropped","id":"q","server":"s","principal":"local","mode":"form","kind":"tool","target":"deploy","person":"bob","reason":"not-eligible"}"#
        );
        let step = step_entry(Event::Declined, &open, now);
        let named = EntryText::continued(step.clone()).with(Member::Channel, "slack");
        let expected = format!("{},\"channel\":\"slack\"}}", &step[..step.len() - 1]);
        assert_eq!(named.into_text(), expected);
    }
}
