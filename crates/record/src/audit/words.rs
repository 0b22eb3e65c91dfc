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
    let mut words = EventWords {
        entry,
        said: String::new(),
    };
    words.call();
    words.fields();
    words.rule();
    words.people();
    words.times(moment);
    words.actor();
    words.reason();
    words.said
}

/// The description of an event while it is written, part by part.
struct EventWords<'e> {
    entry: &'e AuditedEvent,
    said: String,
}

impl<'e> EventWords<'e> {
    fn has(&self, member: Member) -> bool {
        self.entry.text(member).is_some()
    }

    fn word(&self, member: Member) -> &'e str {
        self.entry.text(member).unwrap_or("-")
    }

    fn say<'s>(&mut self, parts: impl IntoIterator<Item = &'s str>) {
        self.said.extend(parts);
    }

    /// Adds the text of a member after these words, if the entry has it.
    fn say_member(&mut self, before: &str, member: Member) {
        if let Some(text) = self.entry.text(member) {
            self.say([before, text]);
        }
    }

    /// Adds the server and the calls that may have asked.
    fn call(&mut self) {
        let target = self.word(Member::Target);
        // Events of logins, keys and rules concern no server.
        if self.has(Member::Server) || self.has(Member::Target) {
            let server = self.word(Member::Server);
            self.say(["  ", server, " / ", target]);
        }
        // If the server did not name the call in which it asks.
        let mut named = vec![target];
        let others = self.entry.texts(Member::Others);
        for &other in &others {
            if !named.contains(&other) {
                named.push(other);
                self.say([" or ", other]);
            }
        }
        if named.len() == 1 && !others.is_empty() {
            self.say([" (one of several calls)"]);
        }
    }

    fn fields(&mut self) {
        let fields = self.entry.texts(Member::Fields);
        let edited = self.entry.texts(Member::Edited);
        if !fields.is_empty() {
            self.say(["  [", &*fields.join(", "), "]"]);
        }
        if !edited.is_empty() {
            self.say(["  changed ", &*edited.join(", ")]);
        }
    }

    /// Adds the rule that asks, or the rules that were loaded.
    fn rule(&mut self) {
        if self.has(Member::Rule) {
            self.say_member("  rule ", Member::Rule);
            // The caller.
            if !self.has(Member::By) {
                self.say_member("  called by ", Member::Principal);
            }
        }
        let digest = |text: &str| text.chars().take(8).collect::<String>();
        if let Some(now) = self.entry.text(Member::Digest) {
            let is_kept = self.entry.event() == Some(AuditEvent::RulesRejected);
            let before = if is_kept {
                "  rules kept: "
            } else {
                "  rules "
            };
            self.say([before, &*digest(now)]);
        }
        if let Some(before) = self.entry.text(Member::Before) {
            if self.entry.text(Member::Digest) == Some(before) {
                self.say([", unchanged"]);
            } else {
                self.say([" instead of ", &*digest(before)]);
            }
        }
        let restart = self.entry.texts(Member::Restart);
        if !restart.is_empty() {
            // Earlier versions applied the rules of such a file.
            let is_kept = self.entry.event() == Some(AuditEvent::RulesRejected);
            let before = if is_kept {
                "  because of "
            } else {
                "  without "
            };
            self.say([before, &*restart.join(", "), " (needs a restart)"]);
        }
        let settings = self.entry.texts(Member::Settings);
        if !settings.is_empty() {
            self.say(["  with ", &*settings.join(", ")]);
        }
        self.say_member("  at ", Member::Gateway);
    }

    /// Adds the people and the devices whom the event concerns, besides the one who acted.
    fn people(&mut self) {
        for (member, before) in [
            (Member::Act, "  "),
            (Member::To, "  to "),
            (Member::Person, "  of "),
        ] {
            if let Some(text) = self.entry.text(member) {
                self.say([before, &*Actor::read(text).in_words()]);
            }
        }
        // Events of a login without an actor, or about the bound person.
        if !self.has(Member::Server) {
            self.say_member("  as ", Member::Principal);
        }
        self.say_member("  session ", Member::Session);
        self.say_member("  device ", Member::Device);
    }

    fn times(&mut self, moment: impl Fn(i64) -> String) {
        let time = |number: Option<u64>| number.and_then(|it| i64::try_from(it).ok()).map(&moment);
        if let Some(until) = time(self.entry.number(Member::Until)) {
            self.say(["  good until ", &*until]);
        }
        if let Some(number) = self.entry.number(Member::PurgedUpTo) {
            self.say(["  up to event ", &*number.to_string()]);
            if let Some(of) = time(self.entry.number(Member::PurgedAt)) {
                self.say([" of ", &*of]);
            }
        }
    }

    /// Adds the one who acted, with the client or the channel.
    fn actor(&mut self) {
        if let Some(who) = self.entry.text(Member::By) {
            // `on the command line` and similar texts already say how it was done.
            let is_place = ["in the ", "on the ", "over the "]
                .iter()
                .any(|start| who.starts_with(start));
            let who = Actor::read(who).in_words();
            self.say(["  ", if is_place { "" } else { "by " }, &*who]);
        }
        self.say_member("  client ", Member::Client);
        self.say_member("  through ", Member::Channel);
    }

    /// Adds the texts that say why, and the number of entries that were left out.
    fn reason(&mut self) {
        if let Some(message) = self.entry.text(Member::Message) {
            self.say(["  ", &*Value::from(message).to_string()]);
        }
        if let Some(reason) = self.entry.text(Member::Reason) {
            self.say(["  ", &*reason_in_words(reason)]);
        }
        if let Some(unchecked) = self.entry.text(Member::Unchecked) {
            self.say(["  unchecked (", unchecked, ")"]);
        }
        if let Some(count) = self.entry.number(Member::LeftOut) {
            let count = count.to_string();
            self.say(["  (", &*count, " more before it were left out)"]);
        }
    }
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
