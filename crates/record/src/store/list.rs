//! Lists of questions: which rows, in which order, and where a page starts.

use mcp_elicit_core::wire::{CallKind, Mode};
use mcp_elicit_policy::people::Addressee;

use super::{Row, addressee_key};
use crate::audit::Actor;
use crate::principal::Principal;

/// The selection of rows to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// The waiting rows, the longest waiting first.
    #[default]
    Open,
    /// The waiting rows, the latest first.
    OpenLatest,
    /// The ended rows, the latest first.
    Ended,
}

/// The keys under which the questions of one person are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListKeys {
    pub(crate) keys: Vec<String>,
    pub(crate) principals: Vec<String>,
}

impl ListKeys {
    /// Adds the questions that are addressed to a person or a group, or delegated to them.
    pub fn add_addressee(&mut self, to: &Addressee) {
        self.keys.push(addressee_key(to));
    }

    /// Adds the questions of calls that a person in the people file makes.
    pub fn add_caller(&mut self, person: &str) {
        self.keys.push(format!("caller:{person}"));
    }

    /// Adds the questions without a rule of calls with the API key of this id. Those of a rule name the caller's
    /// person.
    pub fn add_key(&mut self, id: &str) {
        self.principals.push(Principal::Key(id).to_string());
    }

    /// Adds the questions of calls that a subject of an issuer makes.
    pub fn add_subject(&mut self, issuer: &str, subject: &str) {
        self.keys.push(format!("caller:{issuer}\n{subject}"));
        let principal = Principal::subject(issuer, subject);
        self.principals.push(principal.to_string());
    }
}

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The row after which it starts, even if it is no longer on the list; `None` for the beginning.
    pub after: Option<String>,
    /// The most rows.
    pub most: usize,
}

impl Page {
    /// Creates the beginning of a list.
    pub const fn first(most: usize) -> Self {
        Self { after: None, most }
    }

    /// Creates the page after this row; empty if there is no such row.
    pub const fn after(row: String, most: usize) -> Self {
        Self {
            after: Some(row),
            most,
        }
    }
}

/// A page of a list. Rows of the same time have an order, which depends on the store; in one on the disk, that of their
/// making, so that a new row follows the last one read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// The list.
    pub filter: Filter,
    /// The page.
    pub page: Page,
    /// The keys of the person whose questions are listed; `None` for those of everyone.
    pub keys: Option<ListKeys>,
    /// The condition for its rows.
    pub matching: Matching,
}

impl ListQuery {
    /// Creates a page of a whole list.
    pub fn new(filter: Filter, page: Page) -> Self {
        Self {
            filter,
            page,
            ..Self::default()
        }
    }

    /// Returns the query with only the rows under these keys.
    #[must_use]
    pub fn under(self, keys: Option<ListKeys>) -> Self {
        Self { keys, ..self }
    }

    /// Returns the query with only the rows that match.
    #[must_use]
    pub fn matching(self, matching: Matching) -> Self {
        Self { matching, ..self }
    }
}

/// The condition for the rows of a list: all members that are set apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// The server's name for people ([`Body::server`](super::Body::server)).
    pub server: Option<String>,
    /// Form or link.
    pub mode: Option<Mode>,
    /// The kind of the call.
    pub kind: Option<CallKind>,
    /// The name of the tool or prompt, or the resource's URI.
    pub target: Option<String>,
    /// The caller ([`Body::principal`](super::Body::principal)).
    pub principal: Option<String>,
    /// The words of a search, each of which must occur.
    pub words: Vec<SearchWord>,
}

/// A word of a search: it occurs in the row's text in any letter case, or begins its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchWord {
    text: String,
    /// The word as it was written.
    id: String,
    /// The callers that it names.
    principals: Vec<String>,
    /// Other texts of a row that it stands for, each with what surrounds it there.
    others: Vec<String>,
}

impl SearchWord {
    /// Returns the words of a search text.
    pub fn all_in(text: &str) -> Vec<Self> {
        let words = text.split_whitespace().map(|word| Self {
            text: word.to_lowercase().replace('\0', " "),
            id: word.to_owned(),
            principals: Vec::new(),
            others: Vec::new(),
        });
        words.collect()
    }

    /// Returns the word in lower case, as it occurs in the text of a row.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the beginning of a row's id that matches the word whatever the row's text is.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the callers whose rows match the word whatever their text is.
    pub fn principals(&self) -> &[String] {
        &self.principals
    }

    /// Returns the word, which also names the callers with the API keys of these ids.
    #[must_use]
    pub fn or_keys<'k>(self, ids: impl IntoIterator<Item = &'k str>) -> Self {
        let principals = ids.into_iter().map(|id| Principal::Key(id).to_string());
        Self {
            principals: principals.collect(),
            ..self
        }
    }

    /// Returns the word, which also names these people of the people file, as callers and as those who ended a question.
    #[must_use]
    pub fn or_people<'p>(self, people: impl IntoIterator<Item = &'p str>) -> Self {
        let spellings = people.into_iter().flat_map(|person| {
            let person = person.to_lowercase();
            let by = Actor::People(vec![person.clone()]);
            // Whole names: one person's may begin another's.
            [
                format!("\n{person}\n"),
                format!("{by}\n"),
                format!("{by}, "),
            ]
        });
        Self {
            others: spellings.collect(),
            ..self
        }
    }

    /// Returns the other texts of a row that match the word.
    pub fn others(&self) -> &[String] {
        &self.others
    }
}

impl Matching {
    /// Returns `true` if nothing is required.
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }

    /// Returns `true` if nothing but a server, a principal and words is required.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_of_server_principal_and_words(&self) -> bool {
        let Self {
            server: _,
            principal: _,
            mode,
            kind,
            target,
            words: _,
        } = self;
        mode.is_none() && kind.is_none() && target.is_none()
    }

    /// Returns `true` if the row meets the condition.
    pub fn admits(&self, row: &Row) -> bool {
        let body = &row.body;
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
        };
        let is_typed = is(&self.server, Some(&body.server))
            && is(&self.target, body.target.as_deref())
            && is(&self.principal, Some(&body.principal))
            && self.mode.is_none_or(|mode| body.mode == mode)
            && self.kind.is_none_or(|kind| body.kind == Some(kind));
        if !is_typed || self.words.is_empty() {
            return is_typed;
        }
        let text = search_text(row);
        self.words.iter().all(|word| {
            text.contains(&word.text)
                || word.others.iter().any(|other| text.contains(other))
                || row.id.starts_with(&word.id)
                || word.principals.contains(&row.body.principal)
        })
    }
}

/// Returns the text of a row in which a search looks, in lower case: the server, the message, the call's and the
/// fields' names, the rule, the caller, and the people who ended it. No value that a person entered, and no argument of
/// a call, is part of it.
pub(crate) fn search_text(row: &Row) -> String {
    let body = &row.body;
    let mut text = String::with_capacity(256);
    let mut add = |part: &str| {
        if !part.is_empty() {
            text.push_str(part);
            text.push('\n');
        }
    };
    add(&body.server);
    add(&body.message);
    let parts = [&body.address, &body.target];
    parts.into_iter().flatten().for_each(|part| add(part));
    body.others.iter().for_each(|other| add(other));
    body.fields.iter().for_each(|field| add(field));
    if let Some(team) = &row.team {
        add(&team.rule);
        team.caller.person.iter().for_each(|person| add(person));
    }
    match Principal::parse(&body.principal) {
        Some(Principal::Subject { issuer, subject }) => {
            add(&subject);
            add(&issuer);
        }
        Some(Principal::Key(id)) => add(id),
        Some(Principal::Local | Principal::Anonymous) | None => {}
    }
    if let Some(by) = row.lifecycle.ended_by() {
        add("by");
        add(by);
    }
    let text = text.to_lowercase();
    // SQLite's functions for text end at this character.
    text.replace('\0', " ")
}
