//! The people, groups and roles of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use toml::de::{DeTable, DeValue};

use crate::defect::nearest;
use crate::document::{Reader, Value, parse_duration};

/// Someone who is asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Addressee {
    /// The caller of the call.
    Caller,
    /// A person of the file, by name.
    Person(String),
    /// A group of the file, by name.
    Group(String),
}

impl fmt::Display for Addressee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller => f.write_str("caller"),
            Self::Person(name) => write!(f, "person:{name}"),
            Self::Group(name) => write!(f, "group:{name}"),
        }
    }
}

impl Serialize for Addressee {
    /// Writes `"caller"`, `{"person":NAME}` or `{"group":NAME}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, name) = match self {
            Self::Caller => return serializer.serialize_str("caller"),
            Self::Person(name) => ("person", name),
            Self::Group(name) => ("group", name),
        };
        serializer.collect_map([(kind, name)])
    }
}

/// A person of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersonEntry {
    /// The mail address, in lower case.
    pub mail: Option<String>,
    /// The subject at the issuer of the login.
    pub subject: Option<String>,
    /// The operating system's user that is this person.
    pub local_user: Option<String>,
    /// The channels on which this person is told; `None` for every configured one.
    pub channels: Option<Vec<String>>,
    /// The hours without messages, as written.
    pub quiet: Option<String>,
    /// The digest of mails, as written.
    pub digest: Option<String>,
    /// The person's own time zone.
    pub time_zone: Option<String>,
}

/// A group of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// Named people, those of nested groups among them.
    Listed(BTreeSet<String>),
    /// Everyone whose token has this value in its claim of groups.
    Claim(String),
    /// Named people and groups by claim, through nested groups.
    Mixed {
        /// The named people.
        people: BTreeSet<String>,
        /// Values of the claim.
        claims: BTreeSet<String>,
    },
}

impl Group {
    /// Returns the people that the file names.
    pub fn people(&self) -> impl Iterator<Item = &str> {
        let people = match self {
            Self::Listed(people) | Self::Mixed { people, .. } => Some(people),
            Self::Claim(_) => None,
        };
        people.into_iter().flatten().map(String::as_str)
    }

    /// Returns `true` if a claim decides about membership, so that the file cannot tell how many there are.
    pub fn has_claim(&self) -> bool {
        !matches!(self, Self::Listed(_))
    }

    /// Returns `true` if a token with these values of its claim makes a member.
    pub fn is_claimed_by(&self, claims: &[String]) -> bool {
        match self {
            Self::Listed(_) => false,
            Self::Claim(claim) => claims.contains(claim),
            Self::Mixed { claims: any, .. } => claims.iter().any(|claim| any.contains(claim)),
        }
    }
}

/// Everybody whom a file names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    /// People, by name.
    pub people: BTreeMap<String, PersonEntry>,
    /// Groups, by name.
    pub groups: BTreeMap<String, Group>,
    /// People and groups with the role of an administrator.
    pub admins: Vec<Addressee>,
    /// People and groups with the role of an auditor.
    pub auditors: Vec<Addressee>,
}

impl People {
    /// Returns the person with this subject, else with this verified mail address if no subject is known of that person.
    pub fn find(&self, subject: &str, mail: &str) -> Option<&str> {
        let mail = mail.to_lowercase();
        let by_subject = |person: &PersonEntry| {
            !subject.is_empty() && person.subject.as_deref() == Some(subject)
        };
        let by_mail = |person: &PersonEntry| {
            !mail.is_empty() && person.subject.is_none() && person.mail.as_ref() == Some(&mail)
        };
        let mut people = self.people.iter();
        let found = people
            .find(|(_, person)| by_subject(person))
            .or_else(|| self.people.iter().find(|(_, person)| by_mail(person)));
        found.map(|(name, _)| name.as_str())
    }

    /// Returns `true` if the group has this person, by the file or by these values of the claim.
    pub fn is_member(&self, group: &str, person: &str, claims: &[String]) -> bool {
        self.groups.get(group).is_some_and(|group| {
            group.people().any(|name| name == person) || group.is_claimed_by(claims)
        })
    }

    /// Returns the names of all groups that have this person, by the file or by these values of the claim.
    pub fn groups_of(&self, person: &str, claims: &[String]) -> Vec<String> {
        let member = self.groups.iter().filter(|(_, group)| {
            group.people().any(|name| name == person) || group.is_claimed_by(claims)
        });
        member.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the people of the file whom these addressees come to. A claim may add more.
    pub fn named(&self, to: &[Addressee]) -> Vec<String> {
        let (people, _) = self.reach(to);
        people.into_iter().map(str::to_owned).collect()
    }

    /// Returns the people that the addressees come to, and `true` if a claim may add more.
    pub(crate) fn reach<'a>(&'a self, to: &'a [Addressee]) -> (BTreeSet<&'a str>, bool) {
        let mut people = BTreeSet::new();
        let mut open = false;
        for addressee in to {
            match addressee {
                Addressee::Caller => open = true,
                Addressee::Person(name) => {
                    people.insert(name.as_str());
                }
                Addressee::Group(name) => {
                    if let Some(group) = self.groups.get(name) {
                        people.extend(group.people());
                        open |= group.has_claim();
                    }
                }
            }
        }
        (people, open)
    }

    /// Reads `person:NAME`, `group:NAME`, `{ person = NAME }` or `{ group = NAME }`, which must be in the file.
    pub(crate) fn addressee<'t>(
        &self,
        reader: &mut Reader<'t>,
        value: &Value<'t>,
        inside: &str,
    ) -> Option<Addressee> {
        let at = value.span().start;
        let (addressee, at) = match value.get_ref() {
            DeValue::String(text) => (written(text), at),
            DeValue::Table(table) => {
                reader.known_keys(table, inside, &["person", "group"]);
                match (table.get("person"), table.get("group")) {
                    (Some(person), None) => {
                        let name = reader.text(person, "person")?;
                        (
                            Some(Addressee::Person(name.to_owned())),
                            person.span().start,
                        )
                    }
                    (None, Some(group)) => {
                        let name = reader.text(group, "group")?;
                        (Some(Addressee::Group(name.to_owned())), group.span().start)
                    }
                    _ => (None, at),
                }
            }
            _ => (None, at),
        };
        let Some(addressee) = addressee else {
            let message = format!("`{inside}` must name a person or a group");
            reader.defect(
                at,
                "no-addressee",
                message,
                "write { person = \"NAME\" } or { group = \"NAME\" }",
            );
            return None;
        };
        self.check(reader, addressee, at)
    }

    pub(crate) fn check(
        &self,
        reader: &mut Reader<'_>,
        addressee: Addressee,
        at: usize,
    ) -> Option<Addressee> {
        let (kind, name, known): (_, _, Vec<&str>) = match &addressee {
            Addressee::Caller => return Some(addressee),
            Addressee::Person(name) => (
                "person",
                name,
                self.people.keys().map(String::as_str).collect(),
            ),
            Addressee::Group(name) => (
                "group",
                name,
                self.groups.keys().map(String::as_str).collect(),
            ),
        };
        if known.contains(&name.as_str()) {
            return Some(addressee);
        }
        let table = if kind == "person" {
            "[people.NAME]"
        } else {
            "[groups]"
        };
        let help = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("add it under {table}"),
        };
        reader.defect(
            at,
            "no-addressee",
            format!("no {kind} is named `{name}`"),
            help,
        );
        None
    }

    /// Reads `[people]`, `[groups]` and `[roles]`.
    pub(crate) fn read<'t>(reader: &mut Reader<'t>, file: &DeTable<'t>) -> Self {
        let mut all = Self::default();
        if let Some(people) = file
            .get("people")
            .and_then(|value| reader.table(value, "people"))
        {
            all.read_people(reader, people);
        }
        if let Some(groups) = file
            .get("groups")
            .and_then(|value| reader.table(value, "groups"))
        {
            all.read_groups(reader, groups);
        }
        if let Some(roles) = file
            .get("roles")
            .and_then(|value| reader.table(value, "roles"))
        {
            reader.known_keys(roles, "[roles]", &["admin", "auditor"]);
            all.admins = all.role(reader, roles, "admin");
            all.auditors = all.role(reader, roles, "auditor");
        }
        all
    }

    fn role<'t>(&self, reader: &mut Reader<'t>, roles: &DeTable<'t>, name: &str) -> Vec<Addressee> {
        let Some(value) = roles.get(name) else {
            return Vec::new();
        };
        let items = reader.list(value, name).unwrap_or_default();
        let mut addressees = Vec::new();
        for item in items {
            addressees.extend(self.addressee(reader, item, name));
        }
        addressees
    }

    fn read_people<'t>(&mut self, reader: &mut Reader<'t>, people: &DeTable<'t>) {
        // The value that only one person may have, with the name of that person.
        let mut mails = BTreeMap::new();
        let mut subjects = BTreeMap::new();
        let mut users = BTreeMap::new();
        for (name, value) in in_order(people) {
            check_name(reader, name, value, "person");
            let Some(table) = reader.table(value, name) else {
                self.people.insert(name.to_owned(), PersonEntry::default());
                continue;
            };
            reader.known_keys(
                table,
                &format!("[people.{name}]"),
                &[
                    "mail",
                    "subject",
                    "local-user",
                    "channels",
                    "quiet",
                    "digest",
                    "time-zone",
                ],
            );
            let mut text = |key: &str| {
                let value = table.get(key)?;
                Some((reader.text(value, key)?.to_owned(), value.span().start))
            };
            let (mail, subject, user) = (text("mail"), text("subject"), text("local-user"));
            let (quiet, digest, time_zone) = (text("quiet"), text("digest"), text("time-zone"));
            let mail = mail.map(|(mail, at)| (mail.to_lowercase(), at));
            if let Some((mail, at)) = &mail {
                let parts = mail.split_once('@');
                if !parts.is_some_and(|(local, host)| {
                    !local.is_empty() && !host.is_empty() && !host.contains('@')
                }) {
                    reader.defect(
                        *at,
                        "invalid-mail",
                        "`mail` is not a mail address",
                        "write it like ada@example.com",
                    );
                }
            }
            for (what, value, taken) in [
                ("mail", &mail, &mut mails),
                ("subject", &subject, &mut subjects),
                ("local-user", &user, &mut users),
            ] {
                let Some((value, at)) = value else { continue };
                if let Some(other) = taken.insert(value.clone(), name.to_owned()) {
                    let message = format!("`{name}` and `{other}` have the same {what}");
                    let help = "answers are counted by person, so each needs their own";
                    reader.defect(*at, "same-person", message, help);
                }
            }
            if mail.is_none() && subject.is_none() && user.is_none() {
                let message = format!("nothing tells who `{name}` is");
                reader.defect(
                    value.span().start,
                    "unknown-person",
                    message,
                    "add `mail`, `subject` or `local-user`",
                );
            }
            if let Some((quiet, at)) = &quiet
                && !is_quiet_time(quiet)
            {
                reader.defect(
                    *at,
                    "invalid-quiet",
                    "`quiet` is not a span of the day",
                    "write it like 22:00-07:00",
                );
            }
            if let Some((digest, at)) = &digest
                && !is_digest(digest)
            {
                let help = "write \"off\", \"30m\" or \"daily 09:00\"";
                reader.defect(*at, "invalid-digest", "`digest` is not a digest", help);
            }
            let channels = table.get("channels").map(|value| {
                let texts = reader.texts(value, "channels");
                for (channel, at) in &texts {
                    if !CHANNELS.contains(&channel.as_str()) {
                        let help = format!("known: {}", CHANNELS.join(", "));
                        reader.defect(
                            *at,
                            "unknown-channel",
                            format!("no channel is named `{channel}`"),
                            help,
                        );
                    }
                }
                texts.into_iter().map(|(text, _)| text).collect()
            });
            let only = |value: Option<(String, usize)>| value.map(|(text, _)| text);
            let entry = PersonEntry {
                mail: only(mail),
                subject: only(subject),
                local_user: only(user),
                channels,
                quiet: only(quiet),
                digest: only(digest),
                time_zone: only(time_zone),
            };
            self.people.insert(name.to_owned(), entry);
        }
    }

    fn read_groups<'t>(&mut self, reader: &mut Reader<'t>, groups: &DeTable<'t>) {
        let mut direct: BTreeMap<&str, Direct> = BTreeMap::new();
        for (name, value) in in_order(groups) {
            check_name(reader, name, value, "group");
            let group = match value.get_ref() {
                DeValue::Table(table) => {
                    reader.known_keys(table, &format!("group `{name}`"), &["claim"]);
                    let claim = table
                        .get("claim")
                        .and_then(|claim| reader.text(claim, "claim"));
                    if claim.is_none() && !table.contains_key("claim") {
                        let message = format!("group `{name}` names nobody");
                        reader.defect(
                            value.span().start,
                            "no-addressee",
                            message,
                            "add `claim`, or write a list of people",
                        );
                    }
                    Direct {
                        claims: claim.map(str::to_owned).into_iter().collect(),
                        ..Direct::default()
                    }
                }
                _ => self.members(reader, groups, name, value),
            };
            direct.insert(name, group);
        }
        let names: Vec<&str> = direct.keys().copied().collect();
        for name in names {
            let mut all = Direct::default();
            let mut seen = BTreeSet::new();
            let mut todo = vec![name];
            let mut is_cyclic = false;
            while let Some(next) = todo.pop() {
                if !seen.insert(next) {
                    continue;
                }
                let Some(group) = direct.get(next) else {
                    continue;
                };
                all.people.extend(group.people.iter().cloned());
                all.claims.extend(group.claims.iter().cloned());
                is_cyclic |= group.groups.iter().any(|group| group == name);
                todo.extend(group.groups.iter().filter_map(|group| {
                    direct.get_key_value(group.as_str()).map(|(name, _)| *name)
                }));
            }
            let at = groups.get(name).map_or(0, |value| value.span().start);
            if is_cyclic {
                let message = format!("group `{name}` has itself as a member");
                reader.defect(
                    at,
                    "cyclic-group",
                    message,
                    "take one of the groups out of the other",
                );
            }
            if all.people.is_empty() && all.claims.is_empty() && !is_cyclic && direct[name].is_sound
            {
                reader.defect(
                    at,
                    "no-addressee",
                    format!("group `{name}` names nobody"),
                    "add people to it",
                );
            }
            let group = match (all.claims.len(), all.people.is_empty()) {
                (0, _) => Group::Listed(all.people),
                (1, true) => Group::Claim(all.claims.pop_first().unwrap_or_default()),
                _ => Group::Mixed {
                    people: all.people,
                    claims: all.claims,
                },
            };
            self.groups.insert(name.to_owned(), group);
        }
    }

    /// Reads the members of one group: names of people, or `group:NAME`.
    fn members<'t>(
        &self,
        reader: &mut Reader<'t>,
        groups: &DeTable<'t>,
        name: &str,
        value: &Value<'t>,
    ) -> Direct {
        let mut direct = Direct {
            is_sound: matches!(value.get_ref(), DeValue::Array(_)),
            ..Direct::default()
        };
        for (member, at) in reader.texts(value, name) {
            if let Some(group) = member.strip_prefix("group:") {
                if groups.contains_key(group) {
                    direct.groups.insert(group.to_owned());
                } else {
                    direct.is_sound = false;
                    let help = match nearest(group, groups.keys().map(|key| key.get_ref().as_ref()))
                    {
                        Some(near) => format!("did you mean `group:{near}`?"),
                        None => "add it under [groups]".to_owned(),
                    };
                    reader.defect(
                        at,
                        "no-addressee",
                        format!("no group is named `{group}`"),
                        help,
                    );
                }
                continue;
            }
            let person = member.strip_prefix("person:").unwrap_or(&member);
            if self.people.contains_key(person) {
                direct.people.insert(person.to_owned());
            } else {
                direct.is_sound = false;
                let help = match nearest(person, self.people.keys().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if groups.contains_key(person) => {
                        format!("write `group:{person}` for the group")
                    }
                    None => format!("add [people.{person}]"),
                };
                reader.defect(
                    at,
                    "no-addressee",
                    format!("no person is named `{person}`"),
                    help,
                );
            }
        }
        direct
    }
}

/// Reads `person:NAME` or `group:NAME`.
fn written(text: &str) -> Option<Addressee> {
    match text.split_once(':') {
        Some(("person", name)) => Some(Addressee::Person(name.to_owned())),
        Some(("group", name)) => Some(Addressee::Group(name.to_owned())),
        _ => None,
    }
}

/// The members of a group as the file writes them.
#[derive(Default)]
struct Direct {
    people: BTreeSet<String>,
    groups: BTreeSet<String>,
    claims: BTreeSet<String>,
    /// `true` if no defect has told already why it may be empty.
    is_sound: bool,
}

/// The channels that a person may choose from.
const CHANNELS: [&str; 5] = ["mail", "slack", "teams", "webhook", "push"];

/// Returns the members of a table in the order of the file.
fn in_order<'v, 't>(table: &'v DeTable<'t>) -> Vec<(&'v str, &'v Value<'t>)> {
    let mut members: Vec<_> = table.iter().collect();
    members.sort_by_key(|(key, _)| key.span().start);
    members
        .into_iter()
        .map(|(key, value)| (key.get_ref().as_ref(), value))
        .collect()
}

fn check_name(reader: &mut Reader<'_>, name: &str, value: &Value<'_>, what: &str) {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        let message = format!(
            "the name of a {what} may have letters, digits, `-`, `_` and `.`, at most 64 bytes"
        );
        reader.defect(value.span().start, "invalid-name", message, "");
    }
}

fn is_time_of_day(text: &str) -> bool {
    let two = |text: &str, most: u8| {
        text.len() == 2
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && text.parse::<u8>().is_ok_and(|number| number <= most)
    };
    text.split_once(':')
        .is_some_and(|(hour, minute)| two(hour, 23) && two(minute, 59))
}

fn is_quiet_time(text: &str) -> bool {
    text.split_once('-')
        .is_some_and(|(from, to)| is_time_of_day(from) && is_time_of_day(to) && from != to)
}

fn is_digest(text: &str) -> bool {
    text == "off"
        || parse_duration(text).is_some()
        || text.strip_prefix("daily ").is_some_and(is_time_of_day)
}
