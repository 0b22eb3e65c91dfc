//! The audit: what happened to every question, as a chain that shows when a link was changed or taken out.

pub use mcp_elicit_core::lifecycle::AuditEvent as Event;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_core::wire::CallKind;
use serde::Serialize;
use serde_json::Value;

use crate::store::{AuditEntry, ChainKey, Row, Store, StoreError, chained, is_keyed};

/// The number of links that are read at once.
const PAGE: usize = 1_000;

/// Returns the words of all events that the audit tells of.
pub fn events() -> impl Iterator<Item = &'static str> {
    Event::OF_GATEWAY.into_iter().map(Event::as_str)
}

/// One event as the audit says it: who, which server and tool, fields' names, outcome and time. Never a value.
#[derive(Serialize)]
struct Entry<'a> {
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

/// Returns what the audit says of one event, JSON.
pub(crate) fn entry(event: Event, row: &Row, now: Timestamp) -> String {
    let body = &row.body;
    let delivery = row.lifecycle.delivery_reason();
    let team = row.team.as_deref();
    let entry = Entry {
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

/// Returns what the audit says of an event that is not a step of a question, JSON.
pub(crate) fn event_entry(event: Event, details: &Details<'_>, now: Timestamp) -> String {
    let mut entry = serde_json::json!({"at": now.as_millis(), "event": event.as_str()});
    for (name, value) in [
        ("id", details.question),
        ("server", details.server),
        ("principal", details.principal),
        ("mode", details.mode),
        ("by", details.by),
        ("person", details.person),
        ("session", details.session),
        ("device", details.device),
        ("reason", details.reason),
    ] {
        if let Some(value) = value {
            entry[name] = value.into();
        }
    }
    if details.left_out > 0 {
        entry["leftOut"] = details.left_out.into();
    }
    entry.to_string()
}

/// Returns what an event of the audit tells besides its time, kind and question, as its parts with two spaces before each. `moment` puts a
/// time into words, given in milliseconds since 1970. The texts are those of servers and callers: they are to be made harmless.
pub fn in_words(entry: &Value, moment: impl Fn(i64) -> String) -> String {
    let word = |name: &str| entry[name].as_str().unwrap_or("-");
    let mut said = String::new();
    let is_there = |name: &str| entry[name].is_string();
    // Events of logins, keys and rules are about no server.
    if is_there("server") || is_there("target") {
        said.extend(["  ", word("server"), " / ", word("target")]);
    }
    // Where the server did not say for which call it asks.
    for other in entry["others"].as_array().into_iter().flatten() {
        said.extend([" or ", other.as_str().unwrap_or("-")]);
    }
    let texts = |name: &str| -> Vec<&str> {
        let list = entry[name].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).collect()
    };
    let (fields, edited) = (texts("fields"), texts("edited"));
    if !fields.is_empty() {
        said.extend(["  [", &*fields.join(", "), "]"]);
    }
    if !edited.is_empty() {
        said.extend(["  changed ", &*edited.join(", ")]);
    }
    if is_there("rule") {
        said.extend(["  rule ", word("rule")]);
        // Whose call it is.
        if is_there("principal") && !is_there("by") {
            said.extend(["  for ", word("principal")]);
        }
    }
    for (name, before) in [("digest", "  rules "), ("before", " instead of ")] {
        if is_there(name) {
            let digest: String = word(name).chars().take(8).collect();
            said.extend([before, &*digest]);
        }
    }
    let restart = texts("restart");
    if !restart.is_empty() {
        said.extend(["  without ", &*restart.join(", "), " (needs a restart)"]);
    }
    for (name, before) in [("act", "  "), ("to", "  to "), ("person", "  of ")] {
        if is_there(name) {
            said.extend([before, word(name)]);
        }
    }
    // Of a login: nobody is its actor, or the one who was bound.
    if is_there("principal") && !is_there("server") {
        said.extend(["  as ", word("principal")]);
    }
    for (name, before) in [("session", "  session "), ("device", "  device ")] {
        if is_there(name) {
            said.extend([before, word(name)]);
        }
    }
    if let Some(until) = entry["until"].as_i64().map(moment) {
        said.extend(["  good until ", &*until]);
    }
    if is_there("by") {
        let who = word("by");
        // `on the command line` and the like say already how it was done.
        let is_place = ["in the ", "on the ", "over the "]
            .iter()
            .any(|start| who.starts_with(start));
        said.extend(["  ", if is_place { "" } else { "by " }, who]);
    }
    if is_there("channel") {
        said.extend(["  through ", word("channel")]);
    }
    if is_there("reason") {
        said.extend(["  ", word("reason")]);
    }
    if let Some(count) = entry["leftOut"].as_u64() {
        let count = count.to_string();
        said.extend(["  (", &*count, " more before it were left out)"]);
    }
    said
}

/// The result of checking the whole chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainCheck {
    /// Every link fits the one before.
    Whole {
        /// The number of links.
        links: u64,
    },
    /// The first link that does not.
    BrokenAt {
        /// Its number.
        number: u64,
    },
}

/// Reads every link, in order.
pub async fn read(store: &dyn Store) -> Result<Vec<AuditEntry>, StoreError> {
    let mut all: Vec<AuditEntry> = Vec::new();
    loop {
        let from = all.last().map_or(1, |last| last.number + 1);
        let page = store.audit(from, PAGE).await?;
        let done = page.len() < PAGE;
        all.extend(page);
        if done {
            return Ok(all);
        }
    }
}

/// Returns whether the chain is whole, by its key. Links of older versions have none; none such follows one that has, and the last
/// one has. A chain that was cut off at its end is whole: keep the last hash elsewhere to see that.
pub fn verify(links: &[AuditEntry], key: Option<&ChainKey>) -> ChainCheck {
    let mut before = "";
    let mut keyed = false;
    for (at, link) in links.iter().enumerate() {
        let expected = at as u64 + 1;
        keyed |= is_keyed(&link.hash);
        let key = key.filter(|_| keyed);
        let fits = (key.is_some() || !keyed) && link.hash == chained(key, before, &link.entry);
        if link.number != expected || !fits {
            return ChainCheck::BrokenAt { number: expected };
        }
        before = &link.hash;
    }
    if key.is_some() && !keyed && !links.is_empty() {
        // Somebody without the key has written all of it anew.
        return ChainCheck::BrokenAt { number: 1 };
    }
    ChainCheck::Whole {
        links: links.len() as u64,
    }
}
