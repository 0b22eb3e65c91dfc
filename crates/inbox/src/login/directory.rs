//! The current people, groups and roles, and a viewer's rights on a question.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_forms::view::sanitize;
use mcp_elicit_policy::access::{self, AccessAction, Standing};
use mcp_elicit_policy::identity::{Identity, Sameness};
use mcp_elicit_policy::people::Group;
use mcp_elicit_policy::quorum::{ActingPerson, Membership};
use mcp_elicit_policy::{Addressee, People, Rules};
use mcp_elicit_record::principal::Principal;
use mcp_elicit_record::store::{ListKeys, Row};
use mcp_elicit_record::team::{TeamCaller, mail_digest};
use unicode_security::skeleton;

use super::RulesNow;
use super::table::{LoginTable, Logins, unnamed};
use crate::api_tokens::ApiTokens;
use crate::viewer::InboxViewer;

/// People, groups and roles, evaluated at each action.
pub struct Directory {
    rules: RulesNow,
    logins: Arc<Logins>,
    issuer: String,
    /// The keys of callers, some of which belong to a person.
    keys: Option<Arc<ApiTokens>>,
    stale: Duration,
    clock: fn() -> Timestamp,
}

/// The part of a question that a viewer may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sight {
    /// Nothing: for this viewer the question does not exist.
    Nothing,
    /// Its existence, server and history; none of its contents.
    Outline,
    /// Everything but entered answers.
    Question,
    /// Everything.
    Whole,
}

/// A snapshot of people, groups and roles.
pub struct DirectoryNow {
    rules: Arc<Rules>,
    known: Arc<LoginTable>,
    /// The issuer of the subjects in the file.
    issuer: String,
    keys: Option<Arc<ApiTokens>>,
    stale: Duration,
    now: Timestamp,
    /// The shapes of the names for readers, with the people who have each.
    names: OnceLock<BTreeMap<String, BTreeSet<String>>>,
}

/// A snapshot of the people of one question.
pub struct QuestionPeople<'a> {
    directory: &'a DirectoryNow,
    /// The person who made the call, as the gateway named them at that time.
    named: Option<String>,
    /// The person whose subject made the call.
    by_subject: Option<String>,
    /// `true` if no person made the call.
    is_nobody: bool,
    /// The identity of the person who made the call.
    identity: Identity,
}

impl Directory {
    /// Creates a directory over the rules of a file, whose subjects belong to `issuer`, and the logins of a folder.
    pub fn new(
        rules: RulesNow,
        logins: Arc<Logins>,
        issuer: String,
        stale: Duration,
        clock: fn() -> Timestamp,
    ) -> Self {
        Self {
            rules,
            logins,
            issuer,
            keys: None,
            stale,
            clock,
        }
    }

    /// Returns the directory with keys, whose callers are the keys' owners.
    #[must_use]
    pub fn with_keys(self, keys: Arc<ApiTokens>) -> Self {
        let keys = Some(keys);
        Self { keys, ..self }
    }

    /// Returns the keys of callers, if there are any.
    pub(super) fn keys(&self) -> Option<&ApiTokens> {
        self.keys.as_deref()
    }

    /// Returns a snapshot. If the logins cannot be read, no one is a member by claims.
    pub fn now(&self) -> DirectoryNow {
        let known = self.logins.table().unwrap_or_else(|error| {
            tracing::error!(%error, "the logins cannot be read, so claims do not count");
            Arc::default()
        });
        DirectoryNow {
            rules: (self.rules)(),
            known,
            issuer: self.issuer.clone(),
            keys: self.keys.clone(),
            stale: self.stale,
            now: (self.clock)(),
            names: OnceLock::new(),
        }
    }
}

impl DirectoryNow {
    /// Returns the rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns a person's name for readers: that of the file, else that of the login, else the key in the file. The key
    /// in the file is added if the name of another person looks the same, or if pages use a word of it for somebody else,
    /// so that they cannot be confused. A name that reads like several is in quotation marks.
    pub fn display_name(&self, person: &str) -> String {
        let own = self.own_name(person);
        let Some(given) = self.given_name(person) else {
            return own;
        };
        let given = sanitize::line(given, sanitize::LABEL);
        if is_like_a_list(&given) {
            format!("{} ({own})", quoted(&given))
        } else if has_own_word(&given) || self.is_shared(&given, person) {
            format!("{given} ({own})")
        } else {
            given
        }
    }

    /// Returns the key in the file, or the subject of an unnamed person; with the issuer if another person's looks the same
    /// or has a word of pages, and then with the characters spelled out that may look like others.
    fn own_name(&self, person: &str) -> String {
        let own = sanitize::line(short_name(person), sanitize::LABEL);
        if is_like_a_list(&own) {
            return quoted(&own);
        }
        if !has_own_word(&own) && !self.is_shared(&own, person) {
            return own;
        }
        let whole = sanitize::line(person, sanitize::LABEL);
        let spelled = whole.chars().map(|c| {
            if c.is_ascii() {
                c.to_string()
            } else {
                format!("‹U+{:04X}›", u32::from(c))
            }
        });
        spelled.collect()
    }

    /// Returns `true` if a name of another person looks like this one.
    fn is_shared(&self, name: &str, person: &str) -> bool {
        let names = self.names.get_or_init(|| self.shapes_of_names());
        shapes(name).iter().any(|shape| {
            let people = names.get(shape);
            people.is_some_and(|people| people.iter().any(|other| other != person))
        })
    }

    /// Returns the people, at most `most`, in whose names for readers a text in lower case occurs.
    pub(crate) fn people_called(&self, text: &str, most: usize) -> Vec<&str> {
        let people = &self.rules.people().people;
        let in_file = people.keys().map(String::as_str);
        let only_known = self.known.given_names().map(|(person, _)| person);
        let only_known = only_known.filter(|person| !people.contains_key(*person));
        let called = in_file.chain(only_known).filter(|person| {
            let given = self.given_name(person);
            given.is_some_and(|given| given.to_lowercase().contains(text))
        });
        called.take(most).collect()
    }

    fn given_name(&self, person: &str) -> Option<&str> {
        let in_file = self.rules.people().people.get(person);
        let in_file = in_file.and_then(|entry| entry.name.as_deref());
        in_file.or_else(|| self.known.given_name(person))
    }

    /// Returns the shapes of the names for readers: given names, the keys in the file, and both together.
    fn shapes_of_names(&self) -> BTreeMap<String, BTreeSet<String>> {
        let in_file = self.rules.people().people.keys().map(String::as_str);
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for person in in_file.chain(self.known.people()) {
            let own = sanitize::line(short_name(person), sanitize::LABEL);
            let given = self.given_name(person);
            let given = given.map(|given| sanitize::line(given, sanitize::LABEL));
            let both = given.as_ref().map(|given| format!("{given} ({own})"));
            let all = given.into_iter().chain(both).chain([own]);
            for shape in all.flat_map(|name| shapes(&name)) {
                let people = names.entry(shape).or_default();
                people.insert(person.to_owned());
            }
        }
        names
    }

    fn is_member(&self, group: &str, person: &str) -> bool {
        let claims = self.known.claims(person, self.stale, self.now);
        self.rules.people().is_member(group, person, claims)
    }

    /// Returns the known members of a group: those in the file, and those whose last login, unless it is too old, has
    /// its claim.
    pub fn known_members(&self, group: &str) -> Vec<String> {
        let Some(known) = self.rules.people().groups.get(group) else {
            return Vec::new();
        };
        let mut members: BTreeSet<String> = known.people().map(str::to_owned).collect();
        if known.has_claim() {
            let logged_in = self.known.bound().map(|(person, ..)| person);
            let by_claim = logged_in.filter(|person| self.is_member(group, person));
            members.extend(by_claim.map(str::to_owned));
        }
        members.into_iter().collect()
    }

    /// Returns the people and groups of the file, with the known members of groups by a claim: those who logged in with
    /// it, unless that was too long ago.
    pub fn people_with_members(&self) -> Cow<'_, People> {
        let people = self.rules.people();
        if !people.groups.values().any(Group::has_claim) {
            return Cow::Borrowed(people);
        }
        let mut all = people.clone();
        for (name, group) in &mut all.groups {
            if group.has_claim() {
                group.add_people(self.known_members(name));
            }
        }
        Cow::Owned(all)
    }

    /// Returns `true` if the person is currently among these.
    pub fn is_one_of(&self, addressees: &[Addressee], person: &str) -> bool {
        addressees.iter().any(|to| match to {
            Addressee::Caller => false,
            Addressee::Person(name) => name == person,
            Addressee::Group(group) => self.is_member(group, person),
        })
    }

    /// Returns `true` if the person has the role of an administrator.
    pub fn is_admin(&self, person: &str) -> bool {
        self.is_one_of(&self.rules.people().admins, person)
    }

    /// Returns the viewer's role, independent of any question.
    pub fn role(&self, viewer: &InboxViewer) -> Standing {
        match viewer {
            InboxViewer::Owner { .. } => Standing {
                is_admin: true,
                ..Standing::NONE
            },
            InboxViewer::Token { .. } => Standing::NONE,
            InboxViewer::Person(signed_in) => Standing {
                is_answerer: true,
                is_auditor: self.is_one_of(&self.rules.people().auditors, &signed_in.person),
                is_admin: self.is_admin(&signed_in.person),
                ..Standing::NONE
            },
        }
    }

    /// Returns the keys under which the viewer's questions are listed; `None` for viewers who see all.
    pub fn list_keys(&self, viewer: &InboxViewer) -> Option<ListKeys> {
        let InboxViewer::Person(signed_in) = viewer else {
            return None;
        };
        if access::may(self.role(viewer), AccessAction::ListAll).is_ok() {
            return None;
        }
        let person = signed_in.person.as_str();
        let people = self.rules.people();
        let mut keys = ListKeys::default();
        keys.add_addressee(&Addressee::Person(person.to_owned()));
        for group in people
            .groups
            .keys()
            .filter(|group| self.is_member(group, person))
        {
            keys.add_addressee(&Addressee::Group(group.clone()));
        }
        keys.add_caller(person);
        keys.add_subject(&signed_in.issuer, &signed_in.subject);
        let own = self.keys.as_ref().map(|tokens| tokens.of_person(person));
        for id in own.unwrap_or_default() {
            keys.add_key(&id);
        }
        let entry = people.people.get(person);
        if let Some(subject) = entry.and_then(|entry| entry.subject.as_deref()) {
            keys.add_subject(&self.issuer, subject);
        }
        Some(keys)
    }

    /// Returns `true` if the person's subject is known, and so are their calls.
    pub fn is_bound(&self, person: &str) -> bool {
        self.known.is_bound(person, self.rules.people())
    }

    /// Returns the people of this question.
    pub fn of(&self, row: &Row) -> QuestionPeople<'_> {
        let Some(team) = &row.team else {
            let (named, by_subject) = match Principal::parse(&row.body.principal) {
                Some(Principal::Key(id)) => {
                    (self.keys.as_ref().and_then(|keys| keys.person(id)), None)
                }
                Some(Principal::Subject { issuer, subject }) => {
                    (None, self.caller(&issuer, &subject))
                }
                Some(Principal::Local | Principal::Anonymous) | None => (None, None),
            };
            return QuestionPeople {
                directory: self,
                named,
                by_subject,
                is_nobody: false,
                identity: Identity::default(),
            };
        };
        let caller = &team.caller;
        QuestionPeople {
            directory: self,
            named: caller.person.clone(),
            by_subject: self.caller(&caller.issuer, &caller.subject),
            is_nobody: caller.is_nobody,
            identity: self.identity_of_caller(caller),
        }
    }

    /// Returns the known identity of a person besides the name: the subject and mail address of the file, and those of
    /// the latest login.
    pub fn identity_of(&self, person: &str) -> Identity {
        let entry = self.rules.people().people.get(person);
        let subject = entry.and_then(|entry| entry.subject.as_deref());
        let mut identity = Identity::default();
        if let Some(subject) = subject {
            identity = identity.with_login(&self.issuer, subject);
        }
        if let Some(mail) = entry.and_then(|entry| entry.mail.as_deref()) {
            identity = identity.with_mail(&mail_digest(mail));
        }
        if let Some((issuer, known, mail)) = self.known.latest_login(person) {
            // The file may have bound the name to another subject since.
            if subject.is_none_or(|subject| subject == known) {
                identity = identity.with_login(issuer, known);
                if let Some(mail) = mail {
                    identity = identity.with_mail(&mail_digest(mail));
                }
            }
        } else if let Some((issuer, subject)) = person.split_once(' ') {
            identity = identity.with_login(issuer, subject);
        }
        identity
    }

    /// Returns the known identity of the person who made a call, including the file's data at the time of the call.
    fn identity_of_caller(&self, caller: &TeamCaller) -> Identity {
        let named = caller.person.as_deref();
        let mut identity = named.map_or_else(Identity::default, |name| self.identity_of(name));
        if !caller.subject.is_empty() {
            identity = identity.with_login(&caller.issuer, &caller.subject);
        }
        if !caller.file_subject.is_empty() {
            identity = identity.with_login(&self.issuer, &caller.file_subject);
        }
        if !caller.mail_digest.is_empty() {
            identity = identity.with_mail(&caller.mail_digest);
        }
        identity
    }

    /// Returns the person with this subject; `None` for a subject of another issuer than that of the logins.
    fn caller(&self, issuer: &str, subject: &str) -> Option<String> {
        let is_known = issuer == self.issuer && !subject.is_empty();
        is_known.then(|| self.person_of(issuer, subject))
    }

    /// Returns the person with this subject. Another issuer may give the same subject to another person.
    pub fn person_of(&self, issuer: &str, subject: &str) -> String {
        if issuer == self.issuer {
            let people = self.rules.people();
            self.known.person_of(issuer, subject, None, people)
        } else {
            unnamed(issuer, subject)
        }
    }
}

impl QuestionPeople<'_> {
    /// Returns `true` if any person may have made the call.
    pub fn is_caller_unknown(&self) -> bool {
        !self.is_nobody && self.named.is_none() && self.by_subject.is_none()
    }

    /// Returns the viewer's relation to the question, for all pages and the API.
    pub fn standing(&self, viewer: &InboxViewer, row: &Row) -> Standing {
        let role = self.directory.role(viewer);
        let InboxViewer::Person(signed_in) = viewer else {
            return role;
        };
        let person = signed_in.person.as_str();
        let is_caller = self.is_caller(person);
        Standing {
            is_caller,
            is_addressed: match &row.team {
                Some(team) => team.quorum().is_addressed_to(person, self),
                // A question without a rule is for the calling person.
                None => is_caller,
            },
            ..role
        }
    }

    /// Returns the part of the question that the viewer may see.
    pub fn sight(&self, viewer: &InboxViewer, row: &Row) -> Sight {
        let standing = self.standing(viewer, row);
        // Questions without a rule belong to the folder's owner, and to programs with a token of the owner.
        if row.team.is_none() && viewer.person().is_none() {
            return Sight::Whole;
        }
        let may = |action| access::may(standing, action).is_ok();
        if may(AccessAction::SeeEntered) {
            Sight::Whole
        } else if may(AccessAction::SeeQuestion) {
            Sight::Question
        } else if may(AccessAction::ListAll) || may(AccessAction::SeeOwnHistory) {
            Sight::Outline
        } else {
            Sight::Nothing
        }
    }

    /// Returns `true` if the viewer may act on the question, according to roles.
    pub fn may_act(&self, viewer: &InboxViewer, row: &Row) -> bool {
        if row.team.is_none() && viewer.person().is_none() {
            return true;
        }
        access::may(self.standing(viewer, row), AccessAction::Act).is_ok()
    }

    /// Returns `true` if an action of the viewer is missing: they may act under the rule, and have not confirmed yet.
    pub fn is_waiting_for(&self, viewer: &InboxViewer, row: &Row) -> bool {
        let is_missing = match (viewer.person(), row.team.as_ref()) {
            (Some(signed_in), Some(team)) => {
                let (person, quorum) = (&signed_in.person, team.quorum());
                !quorum.votes().contains(person) && quorum.admits(person, self).is_ok()
            }
            _ => true,
        };
        self.may_act(viewer, row) && is_missing
    }

    /// Returns `true` if the question is addressed to the person by name.
    pub fn is_mine(&self, person: &str, row: &Row) -> bool {
        let Some(team) = &row.team else {
            return self.is_caller(person);
        };
        let quorum = team.quorum();
        let mut all = quorum.addressees().iter().chain(quorum.delegates());
        all.any(|to| match to {
            Addressee::Caller => self.is_caller(person),
            Addressee::Person(name) => name == person,
            Addressee::Group(_) => false,
        })
    }

    /// Returns the actor of an action by this viewer; `None` for a viewer who is not a person.
    pub fn actor<'v>(&self, viewer: &'v InboxViewer) -> Option<ActingPerson<'v>> {
        let signed_in = viewer.person()?;
        let now = self.directory.now.as_millis();
        let age = |at: Timestamp| now.checked_sub(at.as_millis());
        let age = signed_in.logged_in_at.and_then(age);
        Some(ActingPerson {
            person: &signed_in.person,
            login_age: age.map(Duration::from_millis),
        })
    }
}

impl Membership for QuestionPeople<'_> {
    fn is_member(&self, group: &str, person: &str) -> bool {
        self.directory.is_member(group, person)
    }

    fn is_caller(&self, person: &str) -> bool {
        let callers = [&self.named, &self.by_subject];
        let mut callers = callers.into_iter().flatten();
        callers.any(|caller| caller == person)
    }

    fn is_other(&self, person: &str) -> bool {
        if self.is_nobody {
            return !self.is_caller(person);
        }
        if self.is_caller_unknown() || self.is_caller(person) {
            return false;
        }
        let callers = [&self.named, &self.by_subject];
        let mut callers = callers.into_iter().flatten();
        let are_in_file = self.is_in_file(person) && callers.all(|caller| self.is_in_file(caller));
        let own = self.directory.identity_of(person);
        own.compare(&self.identity, are_in_file) == Sameness::Different
    }

    fn identity(&self, person: &str) -> Identity {
        self.directory.identity_of(person)
    }

    fn is_in_file(&self, person: &str) -> bool {
        let people = self.directory.rules.people();
        people.people.contains_key(person)
    }

    fn members(&self, group: &str) -> Option<Vec<String>> {
        self.directory.rules.people().all_members(group)
    }
}

/// Returns the shapes of a name: two names with one in common look the same to a reader who does not mind capitals (UTS 39,
/// skeletons). Capitals have another shape than their small letters: `I` looks like `l`.
fn shapes(name: &str) -> [String; 2] {
    let small: String = skeleton(&name.to_lowercase()).collect();
    let whole: String = skeleton(name).collect();
    [small, whole.to_lowercase()]
}

/// Returns `true` for a name that reads like those of several people: in a sentence, names are divided by commas and `and`.
fn is_like_a_list(name: &str) -> bool {
    let shape: String = skeleton(&name.to_lowercase()).collect();
    let and: String = skeleton("and").collect();
    let divides = |c: char| ",;&+/\u{3001}\u{60c}\u{ff0c}".contains(c);
    shape.contains(divides) || shape.split_whitespace().any(|word| word == and)
}

/// Words that pages, messages and the audit use for somebody without a name, or for no person.
const OWN_WORDS: [&str; 33] = [
    "admin",
    "administrator",
    "agreed",
    "anybody",
    "anyone",
    "approved",
    "automatic",
    "automatically",
    "caller",
    "client",
    "declined",
    "everybody",
    "everyone",
    "gateway",
    "group",
    "members",
    "no one",
    "nobody",
    "noone",
    "operator",
    "other",
    "others",
    "owner",
    "people",
    "person",
    "provider",
    "rule",
    "rules",
    "server",
    "somebody",
    "someone",
    "system",
    "you",
];

/// Returns `true` for a name with a word of [`OWN_WORDS`], or one that looks like it.
fn has_own_word(name: &str) -> bool {
    shapes(name).iter().any(|shape| {
        let words = shape.split(|c: char| !c.is_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let text = format!(" {} ", words.join(" "));
        OWN_WORDS.iter().any(|own| {
            let own: String = skeleton(own).collect();
            text.contains(&format!(" {own} "))
        })
    })
}

/// Returns a name in quotation marks, without any in it.
fn quoted(name: &str) -> String {
    let is_mark = |c: char| "\"“”„‟«»".contains(c);
    format!("“{}”", name.replace(is_mark, ""))
}

/// Returns a person's short name: the name in the file, or the subject of an unnamed person.
pub fn short_name(person: &str) -> &str {
    person
        .split_once(' ')
        .map_or(person, |(_, subject)| subject)
}
