//! The words of the audit: those of actors, and the members of entries. They are written and read here alone, and stay
//! as they are: audits, rows and exports of every version have them. Words that this version does not know are kept.

use std::fmt;

use mcp_elicit_core::lifecycle::{AuditEvent as Event, Timestamp};
use mcp_elicit_policy::people::Addressee;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The prefix of a person.
const PERSON: &str = "person:";
/// The text between people who acted together. No subject contains it, so that one person is never taken for two.
const AND_PERSON: &str = ", person:";
/// The prefix of a group.
const GROUP: &str = "group:";
/// The prefix of a user of Slack.
const SLACK: &str = "slack:";

/// The one who acted, or whom an event addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// People by the names of the people file, at least one. A login that is not in the file is its issuer and subject.
    People(Vec<String>),
    /// A group of the people file, by name.
    Group(String),
    /// A user of Slack whom the people file does not name, by the id.
    SlackUser(String),
    /// A program, or the place of an act: `timer`, `inbox`, `on the command line`; or a word of another version.
    Other(String),
}

impl Actor {
    /// Returns a person.
    pub fn person(name: &str) -> Self {
        Self::People(vec![name.to_owned()])
    }

    /// Returns the gateway's own clock.
    pub fn timer() -> Self {
        Self::Other("timer".to_owned())
    }

    /// Returns the addressee of these words; `None` for an actor to whom no question can be addressed.
    pub fn addressee(&self) -> Option<Addressee> {
        match self {
            Self::People(people) => match people.as_slice() {
                [one] => Some(Addressee::Person(one.clone())),
                _ => None,
            },
            Self::Group(name) => Some(Addressee::Group(name.clone())),
            Self::SlackUser(_) | Self::Other(_) => None,
        }
    }

    /// Returns `true` if a person can have this name: it does not read like several people.
    pub fn can_name(person: &str) -> bool {
        !person.contains(AND_PERSON)
    }

    /// Reads the words of an actor, which [`Display`](fmt::Display) writes again without a difference.
    pub fn read(words: &str) -> Self {
        let after = |prefix| words.strip_prefix(prefix).map(str::to_owned);
        if let Some(people) = words.strip_prefix(PERSON) {
            let people = people.split(AND_PERSON);
            return Self::People(people.map(str::to_owned).collect());
        }
        if let Some(group) = after(GROUP) {
            return Self::Group(group);
        }
        if let Some(user) = after(SLACK) {
            return Self::SlackUser(user);
        }
        Self::Other(words.to_owned())
    }

    /// Returns the people; none for an actor who is not a person of a rule.
    pub fn people(&self) -> &[String] {
        match self {
            Self::People(people) => people,
            Self::Group(_) | Self::SlackUser(_) | Self::Other(_) => &[],
        }
    }

    /// Returns `true` if this is the person, or one of the people.
    pub fn is_person(&self, name: &str) -> bool {
        self.people().iter().any(|person| person == name)
    }

    /// Returns the actor in words for a reader: people by name, groups as such.
    pub fn in_words(&self) -> String {
        match self {
            Self::People(people) => people.join(", "),
            Self::Group(name) => format!("the group {name}"),
            Self::SlackUser(_) | Self::Other(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::People(people) => write!(f, "{PERSON}{}", people.join(AND_PERSON)),
            Self::Group(name) => write!(f, "{GROUP}{name}"),
            Self::SlackUser(user) => write!(f, "{SLACK}{user}"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

impl From<&Addressee> for Actor {
    /// Returns the one to whom a question is addressed or delegated.
    fn from(to: &Addressee) -> Self {
        match to {
            Addressee::Caller => Self::Other(to.to_string()),
            Addressee::Person(name) => Self::person(name),
            Addressee::Group(name) => Self::Group(name.clone()),
        }
    }
}

impl Serialize for Actor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Actor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|words| Self::read(&words))
    }
}

/// Declares the members with their names in entries.
macro_rules! members {
    ($($(#[$doc:meta])* $member:ident = $name:literal,)*) => {
        /// A member of an entry.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Member {
            $($(#[$doc])* $member,)*
        }

        impl Member {
            /// All members.
            pub const ALL: &[Self] = &[$(Self::$member,)*];

            /// Returns the name in an entry, which has no escapes.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$member => $name,)*
                }
            }
        }
    };
}

members! {
    /// The time, in milliseconds since 1970.
    At = "at",
    /// The kind of the event.
    Event = "event",
    /// The question.
    Id = "id",
    /// The server.
    Server = "server",
    /// The caller, as the record names callers.
    Principal = "principal",
    /// The mode of the question, or the way in which callers authenticate.
    Mode = "mode",
    /// The kind of the call.
    Kind = "kind",
    /// The tool, prompt or resource of the call.
    Target = "target",
    /// Other calls that may have asked.
    Others = "others",
    /// The rule.
    Rule = "rule",
    /// `true` if the gateway asked for approval of a call.
    Approval = "approval",
    /// The actor.
    By = "by",
    /// The action that was refused.
    Act = "act",
    /// The one whom the event addresses.
    To = "to",
    /// The person that the event is about, if not the actor.
    Person = "person",
    /// The event of which a message tells.
    Of = "of",
    /// The public name of a session.
    Session = "session",
    /// The id of a device.
    Device = "device",
    /// The client, by name and version.
    Client = "client",
    /// The reason why a client's response is not taken for a person's act, as a code.
    Evidence = "evidence",
    /// The channel of an act or a message.
    Channel = "channel",
    /// The message of a question that was not shown.
    Message = "message",
    /// The reason or the result, as a code or as text.
    Reason = "reason",
    /// The names of fields.
    Fields = "fields",
    /// JSON Pointers to arguments that an approver changed.
    Edited = "edited",
    /// The reason why an answer is not checked.
    Unchecked = "unchecked",
    /// The digest of the rules.
    Digest = "digest",
    /// The digest of the rules before.
    Before = "before",
    /// The settings that took effect.
    Settings = "settings",
    /// The settings that need a restart.
    Restart = "restart",
    /// The number of rules.
    Rules = "rules",
    /// The gateway: its machine and its state folder.
    Gateway = "gateway",
    /// The number of approvals.
    Grants = "grants",
    /// The keyed digest of a call.
    Call = "call",
    /// The time until which an approval is valid.
    Until = "until",
    /// A person's text on a decision.
    Comment = "comment",
    /// The number of people who have confirmed.
    Votes = "votes",
    /// The number of people who must confirm.
    Need = "need",
    /// The number of omitted similar events before it.
    LeftOut = "leftOut",
    /// The number of the last event that was deleted.
    PurgedUpTo = "purgedUpTo",
    /// The hash of that event.
    PurgedHash = "purgedHash",
    /// The time of that event.
    PurgedAt = "purgedAt",
}

/// An entry of the audit, read. Members and words that this version does not know stay in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditedEvent(Map<String, Value>);

impl AuditedEvent {
    /// Reads an entry; `None` if it is not a JSON object.
    pub fn read(entry: &str) -> Option<Self> {
        serde_json::from_str(entry).ok().map(Self)
    }

    /// Returns the value of a member.
    pub fn get(&self, member: Member) -> Option<&Value> {
        self.0.get(member.as_str())
    }

    /// Returns a member that is text.
    pub fn text(&self, member: Member) -> Option<&str> {
        self.get(member)?.as_str()
    }

    /// Returns a member that is a count or a time.
    pub fn number(&self, member: Member) -> Option<u64> {
        self.get(member)?.as_u64()
    }

    /// Returns the texts of a member that is a list.
    pub fn texts(&self, member: Member) -> Vec<&str> {
        let list = self.get(member).and_then(Value::as_array);
        let list = list.into_iter().flatten();
        list.filter_map(Value::as_str).collect()
    }

    /// Returns the actor.
    pub fn by(&self) -> Option<Actor> {
        self.text(Member::By).map(Actor::read)
    }

    /// Returns the time; `None` if there is none.
    pub fn at(&self) -> Option<Timestamp> {
        self.number(Member::At).map(Timestamp::from_millis)
    }

    /// Returns the kind of the event; `None` for one that this version does not know.
    pub fn event(&self) -> Option<Event> {
        let word = self.text(Member::Event)?;
        let mut known = Event::OF_GATEWAY.into_iter();
        known.find(|event| event.as_str() == word)
    }

    /// Returns the question; `None` if the event is about none.
    pub fn question(&self) -> Option<&str> {
        self.text(Member::Id).filter(|id| !id.is_empty())
    }

    /// Returns `true` if the gateway asked for approval of a call.
    pub fn is_approval(&self) -> bool {
        self.get(Member::Approval) == Some(&Value::Bool(true))
    }

    /// Replaces the text of a member that the entry has.
    pub fn replace_text(&mut self, member: Member, text: impl Into<String>) {
        if let Some(value) = self.0.get_mut(member.as_str()) {
            *value = Value::String(text.into());
        }
    }

    /// Returns the entry as JSON, with everything that was read.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

impl TryFrom<Value> for AuditedEvent {
    type Error = Value;

    /// Takes a JSON object, and returns any other value.
    fn try_from(value: Value) -> Result<Self, Value> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            other => Err(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_keep_their_words() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        for (words, actor, in_words) in [
            ("person:ada", Actor::person("ada"), "ada"),
            (
                "person:ada, person:bob",
                Actor::People(names(&["ada", "bob"])),
                "ada, bob",
            ),
            (
                "person:https://id.example s-1",
                Actor::person("https://id.example s-1"),
                "https://id.example s-1",
            ),
            // The name of one login is not the agreement of two people.
            (
                "person:https://id.example x, group:ops",
                Actor::person("https://id.example x, group:ops"),
                "https://id.example x, group:ops",
            ),
            ("person:", Actor::person(""), ""),
            ("group:ops", Actor::Group("ops".into()), "the group ops"),
            ("slack:U1", Actor::SlackUser("U1".into()), "slack:U1"),
            ("timer", Actor::Other("timer".into()), "timer"),
            (
                "on the command line",
                Actor::Other("on the command line".into()),
                "on the command line",
            ),
            // A word of a later version.
            ("team:blue", Actor::Other("team:blue".into()), "team:blue"),
            ("", Actor::Other(String::new()), ""),
        ] {
            let read = Actor::read(words);
            assert_eq!(read, actor);
            assert_eq!(read.to_string(), words);
            assert_eq!(read.in_words(), in_words);
            let json = serde_json::to_value(&read).unwrap();
            assert_eq!(json, words);
            assert_eq!(serde_json::from_value::<Actor>(json).unwrap(), actor);
        }
        let two = Actor::read("person:ada, person:bob");
        assert!(two.is_person("bob") && !two.is_person("ada, person:bob"));
    }

    #[test]
    fn members_keep_their_names() {
        let names: Vec<_> = Member::ALL.iter().map(|member| member.as_str()).collect();
        assert_eq!(
            names.join(" "),
            "at event id server principal mode kind target others rule approval by act to person of session device \
             client evidence channel message reason fields edited unchecked digest before settings restart rules gateway \
             grants call until comment votes need leftOut purgedUpTo purgedHash purgedAt"
        );
    }

    #[test]
    fn an_entry_of_a_later_version_loses_nothing() {
        let text =
            r#"{"at":1,"event":"teleported","by":"team:blue","fields":{"n":1},"new":[null,1.50]}"#;
        let mut read = AuditedEvent::read(text).unwrap();
        assert_eq!(read.event(), None);
        assert_eq!(read.text(Member::Event), Some("teleported"));
        assert_eq!(read.by(), Some(Actor::Other("team:blue".to_owned())));
        assert_eq!(read.texts(Member::Fields), Vec::<&str>::new());
        assert_eq!(read.at(), Some(Timestamp::from_millis(1)));
        read.replace_text(Member::Principal, "nobody");
        let whole: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read.into_value(), whole);
        assert_eq!(AuditedEvent::read("[1]"), None);
    }
}
