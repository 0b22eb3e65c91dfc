//! The people, groups and roles of a file.

mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::spelling::spelled;

/// Someone who is asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Addressee {
    /// The caller of the call.
    Caller,
    /// A person in the file, by name.
    Person(String),
    /// A group in the file, by name.
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
    /// Serializes as `"caller"`, `{"person":NAME}` or `{"group":NAME}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, name) = match self {
            Self::Caller => return serializer.serialize_str("caller"),
            Self::Person(name) => ("person", name),
            Self::Group(name) => ("group", name),
        };
        serializer.collect_map([(kind, name)])
    }
}

/// Returns a mail address in the spelling in which two spellings of one mailbox are equal: in lower case, without the dot
/// that may end a host name (RFC 1034, 3.1).
pub fn mail_key(mail: &str) -> String {
    mail.trim_end_matches('.').to_ascii_lowercase()
}

/// A person in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersonEntry {
    /// The name for readers; `None` for that of the login.
    pub name: Option<String>,
    /// The mail address, as [`mail_key`] spells it.
    pub mail: Option<String>,
    /// The subject at the issuer of the login.
    pub subject: Option<String>,
    /// The operating system's user of this person.
    pub local_user: Option<String>,
    /// The channels that notify this person; `None` for every configured one.
    pub channels: Option<Vec<String>>,
    /// The hours without messages, as written.
    pub quiet: Option<String>,
    /// The digest of mails, as written.
    pub digest: Option<String>,
    /// The person's own time zone.
    pub time_zone: Option<String>,
}

/// A group in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// Named people, including those of nested groups.
    Listed(BTreeSet<String>),
    /// Everyone whose token has this value in its claim of groups.
    Claim(String),
    /// Named people and values of the claim, through nested groups.
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

    /// Returns `true` if a claim decides about membership, so that the file does not list all members.
    pub fn has_claim(&self) -> bool {
        !matches!(self, Self::Listed(_))
    }

    /// Adds people who are known to be members, beside those of the claim.
    pub fn add_people(&mut self, more: impl IntoIterator<Item = String>) {
        let (mut people, claims) = match self {
            Self::Listed(people) => return people.extend(more),
            Self::Claim(claim) => (BTreeSet::new(), BTreeSet::from([claim.clone()])),
            Self::Mixed { people, claims } => (std::mem::take(people), std::mem::take(claims)),
        };
        people.extend(more);
        *self = Self::Mixed { people, claims };
    }

    /// Returns the values of the claim that grant membership.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self {
            Self::Listed(_) => (None, None),
            Self::Claim(claim) => (Some(claim), None),
            Self::Mixed { claims, .. } => (None, Some(claims)),
        };
        let all = one.into_iter().chain(many.into_iter().flatten());
        all.map(String::as_str)
    }

    /// Returns `true` if a token with these values of its claim grants membership.
    pub fn is_claimed_by(&self, claims: &[String]) -> bool {
        match self {
            Self::Listed(_) => false,
            Self::Claim(claim) => claims.contains(claim),
            Self::Mixed { claims: any, .. } => claims.iter().any(|claim| any.contains(claim)),
        }
    }
}

/// The people, groups and roles of a file.
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
    /// Returns all people, groups and roles in one spelling: for a digest, which stays the same in later versions.
    pub fn canonical_text(&self) -> String {
        spelled(self)
    }

    /// Returns `true` for the name of one person: in the file, or of a login that is not in the file, which is issuer
    /// and subject with a space between them.
    pub fn is_person(&self, name: &str) -> bool {
        self.people.contains_key(name) || name.contains(' ')
    }

    /// Returns the person with this subject, else with this verified mail address if no subject is known of that
    /// person.
    pub fn find(&self, subject: &str, mail: &str) -> Option<&str> {
        let mail = mail_key(mail);
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

    /// Returns the person with this operating system's user.
    pub fn local_person(&self, user: &str) -> Option<&str> {
        let is_user =
            |person: &PersonEntry| !user.is_empty() && person.local_user.as_deref() == Some(user);
        let mut people = self.people.iter();
        let found = people.find(|(_, person)| is_user(person));
        found.map(|(name, _)| name.as_str())
    }

    /// Returns `true` if the group contains this person, by the file or by these values of the claim.
    pub fn is_member(&self, group: &str, person: &str, claims: &[String]) -> bool {
        self.groups.get(group).is_some_and(|group| {
            group.people().any(|name| name == person) || group.is_claimed_by(claims)
        })
    }

    /// Returns the members of the group, none for an unknown group; `None` if a claim may add more.
    pub fn all_members(&self, group: &str) -> Option<Vec<String>> {
        let Some(group) = self.groups.get(group) else {
            return Some(Vec::new());
        };
        (!group.has_claim()).then(|| group.people().map(str::to_owned).collect())
    }

    /// Returns the names of all groups that contain this person, by the file or by these values of the claim.
    pub fn groups_of(&self, person: &str, claims: &[String]) -> Vec<String> {
        let member = self.groups.iter().filter(|(_, group)| {
            group.people().any(|name| name == person) || group.is_claimed_by(claims)
        });
        member.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the groups of a caller for conditions: those of the file, and other values of the claim. A value that
    /// equals the name of a group in the file grants no membership in it: the file decides about its groups.
    pub fn groups_of_caller(&self, person: &str, claims: &[String]) -> Vec<String> {
        let mut groups: BTreeSet<String> = self.groups_of(person, claims).into_iter().collect();
        let others = claims
            .iter()
            .filter(|claim| !self.groups.contains_key(*claim));
        groups.extend(others.cloned());
        groups.into_iter().collect()
    }

    /// Returns the people in the file among these addressees. A claim may add more.
    pub fn named(&self, to: &[Addressee]) -> Vec<String> {
        let (people, _) = self.reach(to);
        people.into_iter().map(str::to_owned).collect()
    }

    /// Returns the values of the claim that add people to these addressees.
    pub(crate) fn claims_of<'a>(&'a self, to: &'a [Addressee]) -> BTreeSet<&'a str> {
        let groups = to.iter().filter_map(|addressee| match addressee {
            Addressee::Group(name) => self.groups.get(name),
            Addressee::Caller | Addressee::Person(_) => None,
        });
        groups.flat_map(Group::claims).collect()
    }

    /// Returns the people among the addressees, and `true` if a claim may add more.
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
}
