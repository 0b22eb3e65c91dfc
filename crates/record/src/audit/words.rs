//! An audit entry in words, for a page or a terminal.

use std::borrow::Cow;

use mcp_elicit_core::lifecycle::AuditEvent;
use serde_json::Value;

use super::spelling::{Actor, AuditedEvent, Member};

/// Returns an event's name in words; a name that this version does not know stays as it is.
pub fn event_in_words(event: &str) -> &str {
    let mut all = AuditEvent::OF_GATEWAY.into_iter();
    let known = all.find(|known| known.as_str() == event);
    match known {
        Some(known) => known.in_words(),
        None => event,
    }
}

/// Returns the name of the event with this name or these words; `None` if there is none.
pub fn event_named(text: &str) -> Option<&'static str> {
    let mut all = AuditEvent::OF_GATEWAY.into_iter();
    let known = all.find(|known| known.as_str() == text || known.in_words() == text);
    known.map(AuditEvent::as_str)
}

/// Returns a reason in words; a code has no spaces.
fn reason_in_words(reason: &str) -> Cow<'_, str> {
    if reason.contains(' ') || !reason.contains('-') {
        return Cow::Borrowed(reason);
    }
    Cow::Owned(reason.replace('-', " "))
}

/// Returns the description of an audit event besides its time, kind and question, with two spaces before each part.
/// `moment` formats a time given in milliseconds since 1970. The texts come from servers and callers and must be
/// sanitized before they are shown.
pub fn in_words(entry: &AuditedEvent, moment: impl Fn(i64) -> String) -> String {
    let word = |member| entry.text(member).unwrap_or("-");
    let mut said = String::new();
    let is_there = |member| entry.text(member).is_some();
    // Events of logins, keys and rules concern no server.
    if is_there(Member::Server) || is_there(Member::Target) {
        said.extend(["  ", word(Member::Server), " / ", word(Member::Target)]);
    }
    // If the server did not name the call in which it asks.
    let mut named = vec![word(Member::Target)];
    let others = entry.texts(Member::Others);
    for &other in &others {
        if !named.contains(&other) {
            named.push(other);
            said.extend([" or ", other]);
        }
    }
    if named.len() == 1 && !others.is_empty() {
        said.push_str(" (one of several calls)");
    }
    let texts = |member| entry.texts(member);
    let (fields, edited) = (texts(Member::Fields), texts(Member::Edited));
    if !fields.is_empty() {
        said.extend(["  [", &*fields.join(", "), "]"]);
    }
    if !edited.is_empty() {
        said.extend(["  changed ", &*edited.join(", ")]);
    }
    if is_there(Member::Rule) {
        said.extend(["  rule ", word(Member::Rule)]);
        // The caller.
        if is_there(Member::Principal) && !is_there(Member::By) {
            said.extend(["  called by ", word(Member::Principal)]);
        }
    }
    let digest = |member| word(member).chars().take(8).collect::<String>();
    if is_there(Member::Digest) {
        let is_kept = entry.event() == Some(AuditEvent::RulesRejected);
        let before = if is_kept {
            "  rules kept: "
        } else {
            "  rules "
        };
        said.extend([before, &*digest(Member::Digest)]);
    }
    if is_there(Member::Before) {
        if entry.text(Member::Before) == entry.text(Member::Digest) {
            said.push_str(", unchanged");
        } else {
            said.extend([" instead of ", &*digest(Member::Before)]);
        }
    }
    let restart = texts(Member::Restart);
    if !restart.is_empty() {
        said.extend(["  without ", &*restart.join(", "), " (needs a restart)"]);
    }
    for (member, before) in [
        (Member::Act, "  "),
        (Member::To, "  to "),
        (Member::Person, "  of "),
    ] {
        if is_there(member) {
            said.extend([before, &*Actor::read(word(member)).in_words()]);
        }
    }
    // Events of a login without an actor, or about the bound person.
    if is_there(Member::Principal) && !is_there(Member::Server) {
        said.extend(["  as ", word(Member::Principal)]);
    }
    for (member, before) in [
        (Member::Session, "  session "),
        (Member::Device, "  device "),
    ] {
        if is_there(member) {
            said.extend([before, word(member)]);
        }
    }
    let until = entry.number(Member::Until);
    let until = until.and_then(|until| i64::try_from(until).ok());
    if let Some(until) = until.map(&moment) {
        said.extend(["  good until ", &*until]);
    }
    if let Some(number) = entry.number(Member::PurgedUpTo) {
        said.extend(["  up to event ", &*number.to_string()]);
        let of = entry.number(Member::PurgedAt);
        let of = of.and_then(|of| i64::try_from(of).ok());
        if let Some(of) = of.map(&moment) {
            said.extend([" of ", &*of]);
        }
    }
    if is_there(Member::By) {
        let who = word(Member::By);
        // `on the command line` and similar texts already say how it was done.
        let is_place = ["in the ", "on the ", "over the "]
            .iter()
            .any(|start| who.starts_with(start));
        let who = Actor::read(who).in_words();
        said.extend(["  ", if is_place { "" } else { "by " }, &*who]);
    }
    if is_there(Member::Client) {
        said.extend(["  client ", word(Member::Client)]);
    }
    if is_there(Member::Channel) {
        said.extend(["  through ", word(Member::Channel)]);
    }
    if is_there(Member::Message) {
        said.extend(["  ", &*Value::from(word(Member::Message)).to_string()]);
    }
    if is_there(Member::Reason) {
        said.extend(["  ", &*reason_in_words(word(Member::Reason))]);
    }
    if is_there(Member::Unchecked) {
        said.extend(["  unchecked (", word(Member::Unchecked), ")"]);
    }
    if let Some(count) = entry.number(Member::LeftOut) {
        let count = count.to_string();
        said.extend(["  (", &*count, " more before it were left out)"]);
    }
    said
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::spelling::AuditedEvent;
    use super::{event_in_words, event_named, in_words};

    #[test]
    fn every_event_is_found_by_its_name_and_as_it_is_printed() {
        for event in super::super::events() {
            assert_eq!(event_named(event), Some(event));
            assert_eq!(event_named(event_in_words(event)), Some(event));
        }
        assert_eq!(event_named("forgotten"), None);
    }

    #[test]
    fn calls_of_one_name_are_named_once() {
        let words = |others: serde_json::Value| {
            let entry = json!({"server": "s", "target": "ask", "others": others});
            in_words(&AuditedEvent::try_from(entry).unwrap(), |_| String::new())
        };
        assert_eq!(words(json!(["ask"])), "  s / ask (one of several calls)");
        assert_eq!(words(json!(["ask", "do", "do", "ask"])), "  s / ask or do");
        assert_eq!(words(json!(null)), "  s / ask");
    }
}
