//! The person or program that views questions and acts on them.

use std::fmt;
use std::sync::Arc;

use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_forms::web;
use mcp_elicit_record::audit::Actor;

/// The person or program that views questions and acts on them.
#[derive(Clone, Debug)]
pub enum InboxViewer {
    /// The owner of the state folder, by a login link or over its socket.
    Owner {
        /// The name under which actions are recorded.
        by: Arc<str>,
    },
    /// A person who logged in.
    Person(Arc<SignedIn>),
    /// A program with a token of the API.
    Token {
        /// The name under which actions are recorded.
        by: Arc<str>,
        /// The id of a token created by `mcp-elicit tokens`; `None` for the token of the state folder.
        id: Option<Arc<str>>,
    },
}

/// A person who logged in, as described by the issuer or proxy. Groups and roles of the file are evaluated at each
/// action.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// The name in `[people]`, or `ISSUER SUBJECT` for a person who is known by claims only.
    pub person: String,
    /// The name for readers.
    pub name: String,
    /// The verified mail address.
    pub mail: Option<String>,
    /// The values of the claim of groups.
    pub claims: Vec<String>,
    /// The time at which the claims were read.
    pub claims_at: Timestamp,
    /// The time of the login at the issuer; `None` if it did not report it.
    pub logged_in_at: Option<Timestamp>,
    /// The public name of the session.
    pub session: String,
    /// The issuer of the subject.
    pub issuer: String,
    /// The issuer's name of the person.
    pub subject: String,
}

impl SignedIn {
    /// Returns the person as an actor of the audit.
    pub fn actor(&self) -> Actor {
        Actor::person(&self.person)
    }
}

/// Hides the mail address and groups from logs.
impl fmt::Debug for SignedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedIn")
            .field("person", &self.person)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl InboxViewer {
    /// Returns the viewer for the folder's owner, whose actions are recorded under this name.
    pub fn owner(by: &str) -> Self {
        Self::Owner { by: by.into() }
    }

    /// Returns the person who logged in.
    pub fn person(&self) -> Option<&Arc<SignedIn>> {
        match self {
            Self::Person(person) => Some(person),
            Self::Owner { .. } | Self::Token { .. } => None,
        }
    }
}

impl web::Viewer for InboxViewer {
    fn from_link(by: String) -> Self {
        Self::Owner { by: by.into() }
    }

    fn by(&self) -> String {
        match self {
            Self::Owner { by } | Self::Token { by, .. } => by.to_string(),
            Self::Person(person) => person.actor().to_string(),
        }
    }

    fn session(&self) -> Option<&str> {
        self.person().map(|person| person.session.as_str())
    }

    fn holder(&self) -> String {
        match self {
            Self::Owner { .. } => "owner".to_owned(),
            Self::Person(person) => format!("person {}", person.person),
            Self::Token { id: None, .. } => "token".to_owned(),
            Self::Token { id: Some(id), .. } => format!("token {id}"),
        }
    }

    fn name(&self) -> Option<&str> {
        self.person().map(|person| person.name.as_str())
    }
}
