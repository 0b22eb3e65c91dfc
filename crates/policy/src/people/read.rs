//! Reading of `[people]`, `[groups]`, `[roles]` and the addressees of rules.

use std::collections::{BTreeMap, BTreeSet};

use toml::de::{DeTable, DeValue};

use super::{Addressee, Group, People, PersonEntry, mail_key};
use crate::defect::nearest;
use crate::document::{DocumentReader, SpannedValue, parse_duration};

impl People {
    /// Reads `person:NAME`, `group:NAME`, `{ person = NAME }` or `{ group = NAME }`, which must be in the file.
    pub(crate) fn addressee<'t>(
        &self,
        reader: &mut DocumentReader<'t>,
        value: &SpannedValue<'t>,
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
            let help = match value.get_ref().as_str() {
                Some(name) if self.people.contains_key(name) => {
                    format!("did you mean \"person:{name}\"?")
                }
                Some(name) if self.groups.contains_key(name) => {
                    format!("did you mean \"group:{name}\"?")
                }
                _ => "write { person = \"NAME\" } or { group = \"NAME\" }".to_owned(),
            };
            reader.defect(at, "no-addressee", message, help);
            return None;
        };
        self.check(reader, addressee, at)
    }

    /// Reports an addressee that is not in the file.
    pub(crate) fn check(
        &self,
        reader: &mut DocumentReader<'_>,
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
    pub(crate) fn read<'t>(reader: &mut DocumentReader<'t>, file: &DeTable<'t>) -> Self {
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

    fn role<'t>(
        &self,
        reader: &mut DocumentReader<'t>,
        roles: &DeTable<'t>,
        name: &str,
    ) -> Vec<Addressee> {
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

    fn read_people<'t>(&mut self, reader: &mut DocumentReader<'t>, people: &DeTable<'t>) {
        let mut taken = TakenValues::default();
        for (name, value) in in_order(people) {
            check_name(reader, name, value, "person");
            let entry = match reader.table(value, name) {
                Some(table) => read_person(reader, name, value.span().start, table, &mut taken),
                None => PersonEntry::default(),
            };
            self.people.insert(name.to_owned(), entry);
        }
    }

    fn read_groups<'t>(&mut self, reader: &mut DocumentReader<'t>, groups: &DeTable<'t>) {
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
                        let message = format!("group `{name}` names no one");
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
                    format!("group `{name}` names no one"),
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
        reader: &mut DocumentReader<'t>,
        groups: &DeTable<'t>,
        name: &str,
        value: &SpannedValue<'t>,
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

/// A text of a table, with its place.
type PlacedText = (String, usize);

/// Values that only one person may have, with that person's name.
#[derive(Default)]
struct TakenValues {
    mails: BTreeMap<String, String>,
    subjects: BTreeMap<String, String>,
    users: BTreeMap<String, String>,
}

/// Reads `[people.NAME]`.
fn read_person<'t>(
    reader: &mut DocumentReader<'t>,
    name: &str,
    start: usize,
    table: &DeTable<'t>,
    taken: &mut TakenValues,
) -> PersonEntry {
    reader.known_keys(
        table,
        &format!("[people.{name}]"),
        &[
            "name",
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
    let shown = text("name");
    let (quiet, digest, time_zone) = (text("quiet"), text("digest"), text("time-zone"));
    let mail = mail.map(|(mail, at)| (mail_key(&mail), at));
    check_mail(reader, mail.as_ref());
    for (what, value, taken) in [
        ("mail", &mail, &mut taken.mails),
        ("subject", &subject, &mut taken.subjects),
        ("local-user", &user, &mut taken.users),
    ] {
        let Some((value, at)) = value else { continue };
        if let Some(other) = taken.insert(value.clone(), name.to_owned()) {
            let message = format!("`{name}` and `{other}` have the same {what}");
            let help = "answers are counted by person, so each needs their own";
            reader.defect(*at, "same-person", message, help);
        }
    }
    check_shown_name(reader, shown.as_ref());
    if mail.is_none() && subject.is_none() && user.is_none() {
        let message = format!("nothing identifies `{name}`");
        reader.defect(
            start,
            "unknown-person",
            message,
            "add `mail`, `subject` or `local-user`",
        );
    }
    check_times(reader, quiet.as_ref(), digest.as_ref());
    let channels = table
        .get("channels")
        .map(|value| read_channels(reader, value));
    let only = |value: Option<PlacedText>| value.map(|(text, _)| text);
    PersonEntry {
        name: only(shown),
        mail: only(mail),
        subject: only(subject),
        local_user: only(user),
        channels,
        quiet: only(quiet),
        digest: only(digest),
        time_zone: only(time_zone),
    }
}

fn check_mail(reader: &mut DocumentReader<'_>, mail: Option<&PlacedText>) {
    let Some((mail, at)) = mail else { return };
    let parts = mail.split_once('@');
    if !parts
        .is_some_and(|(local, host)| !local.is_empty() && !host.is_empty() && !host.contains('@'))
    {
        reader.defect(
            *at,
            "invalid-mail",
            "`mail` is not a mail address",
            "write it like ada@example.com",
        );
    }
}

fn check_shown_name(reader: &mut DocumentReader<'_>, shown: Option<&PlacedText>) {
    if let Some((shown, at)) = shown
        && !is_shown_name(shown)
    {
        reader.defect(
            *at,
            "invalid-name",
            "`name` cannot be shown",
            "write a name of 1 to 80 characters on one line",
        );
    }
}

/// Checks the times at which a person gets messages.
fn check_times(
    reader: &mut DocumentReader<'_>,
    quiet: Option<&PlacedText>,
    digest: Option<&PlacedText>,
) {
    if let Some((quiet, at)) = quiet
        && !is_quiet_time(quiet)
    {
        reader.defect(
            *at,
            "invalid-quiet",
            "`quiet` is not a span of the day",
            "write it like 22:00-07:00",
        );
    }
    if let Some((digest, at)) = digest
        && !is_digest(digest)
    {
        let help = "write \"off\", \"30m\" or \"daily 09:00\"";
        reader.defect(*at, "invalid-digest", "`digest` is not a digest", help);
    }
}

fn read_channels<'t>(reader: &mut DocumentReader<'t>, value: &SpannedValue<'t>) -> Vec<String> {
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
}

/// Reads `person:NAME` or `group:NAME`.
fn written(text: &str) -> Option<Addressee> {
    match text.split_once(':') {
        Some(("person", name)) => Some(Addressee::Person(name.to_owned())),
        Some(("group", name)) => Some(Addressee::Group(name.to_owned())),
        _ => None,
    }
}

/// The members of a group as written in the file.
#[derive(Default)]
struct Direct {
    people: BTreeSet<String>,
    groups: BTreeSet<String>,
    claims: BTreeSet<String>,
    /// `true` if no reported defect explains an empty group.
    is_sound: bool,
}

/// The channels that a person may select.
const CHANNELS: [&str; 5] = ["mail", "slack", "teams", "webhook", "push"];

/// Returns the members of a table in the order of the file.
fn in_order<'v, 't>(table: &'v DeTable<'t>) -> Vec<(&'v str, &'v SpannedValue<'t>)> {
    let mut members: Vec<_> = table.iter().collect();
    members.sort_by_key(|(key, _)| key.span().start);
    members
        .into_iter()
        .map(|(key, value)| (key.get_ref().as_ref(), value))
        .collect()
}

fn check_name(reader: &mut DocumentReader<'_>, name: &str, value: &SpannedValue<'_>, what: &str) {
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

/// Returns `true` for a name that can be shown to people.
fn is_shown_name(name: &str) -> bool {
    let has_letters = name.chars().any(char::is_alphanumeric);
    has_letters && name.chars().count() <= 80 && !name.chars().any(char::is_control)
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
