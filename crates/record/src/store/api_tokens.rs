//! The tokens of programs and the blocked callers, as stored, and the trait of their stores.

use std::fmt;
use std::str::FromStr;

use mcp_elicit_core::lifecycle::Timestamp;
use serde::{Deserialize, Serialize};

use super::RecordStoreError;
use crate::principal::Principal;

/// The most tokens in a store, and the most blocked callers.
pub const MOST: usize = 10_000;

/// A permission of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Calling servers through the gateway.
    Call,
    /// Listing and reading the inbox's questions.
    List,
    /// Answering the inbox's questions, and listing and reading them.
    Answer,
    /// Reading the audit.
    Audit,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Call, Self::List, Self::Answer, Self::Audit];

    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::List => "list",
            Self::Answer => "answer",
            Self::Audit => "audit",
        }
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(name: &str) -> Result<Self, UnknownScope> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == name)
            .ok_or(UnknownScope)
    }
}

/// A name that is not a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scope is `call`, `list`, `answer` or `audit`")]
pub struct UnknownScope;

/// The owner of a token's calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenOwner {
    /// This person: a name in `[people]`, or `ISSUER SUBJECT`.
    Person(String),
    /// No person: the program works by itself.
    Nobody,
}

/// One token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiToken {
    /// The id, which names it everywhere and is not a secret.
    pub id: String,
    /// The given name.
    pub name: String,
    /// SHA-256 of the token, in hexadecimal digits.
    pub hash: String,
    /// The scopes, in order.
    pub scopes: Vec<Scope>,
    /// The owner of its calls; `None` if not set.
    #[serde(default)]
    pub owner: Option<TokenOwner>,
    /// The time of its creation, in seconds since 1970.
    pub made_at: u64,
    /// The time of its expiry, in seconds since 1970; `None` for never.
    #[serde(default)]
    pub expires_at: Option<u64>,
    /// The time of its revocation, in seconds since 1970.
    #[serde(default)]
    pub revoked_at: Option<u64>,
    /// The time of its last use, in seconds since 1970, to a few minutes; `None` if it was not used yet.
    #[serde(default)]
    pub used_at: Option<u64>,
}

impl ApiToken {
    /// Returns the name of its callers in the record.
    pub fn caller(&self) -> String {
        Principal::Key(&self.id).to_string()
    }

    /// Returns the person who owns its calls; `None` if no person is set.
    pub fn person(&self) -> Option<&str> {
        match &self.owner {
            Some(TokenOwner::Person(person)) => Some(person),
            Some(TokenOwner::Nobody) | None => None,
        }
    }

    /// Returns `true` if it is valid now.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| seconds(now) < at)
    }

    /// Returns `true` if it has the scope, or one that includes it.
    pub fn permits(&self, scope: Scope) -> bool {
        let includes = |has: &Scope| *has == scope || (*has, scope) == (Scope::Answer, Scope::List);
        self.scopes.iter().any(includes)
    }
}

/// A subject of an issuer that is rejected as a caller, with any credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockedCaller {
    /// The issuer.
    pub issuer: String,
    /// The subject.
    pub subject: String,
    /// The time of the block, in seconds since 1970.
    pub blocked_at: u64,
}

/// The result of adding to a bounded list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is on the list now.
    Yes,
    /// It was on the list before.
    Already,
    /// The list has [`MOST`] entries.
    Full,
}

/// A store of the tokens of programs and of the blocked callers. Processes that share one see each other's changes at
/// the next read, and a change is complete and survives a loss of power when its method returns.
pub trait ApiTokenStore: fmt::Debug + Send + Sync {
    /// Adds a token, unless there are too many.
    fn add(&self, token: &ApiToken) -> Result<Added, RecordStoreError>;
    /// Returns every token, in the order of their making.
    fn tokens(&self) -> Result<Vec<ApiToken>, RecordStoreError>;
    /// Returns the token of this id, valid or not.
    fn find(&self, id: &str) -> Result<Option<ApiToken>, RecordStoreError>;
    /// Returns the number of tokens of this name.
    fn count_named(&self, name: &str) -> Result<usize, RecordStoreError>;
    /// Returns the ids of the tokens whose calls this person owns, valid or not.
    fn of_person(&self, person: &str) -> Result<Vec<String>, RecordStoreError>;
    /// Revokes a token; returns `false` if there is none of this id that is not revoked.
    fn revoke(&self, id: &str, now: Timestamp) -> Result<bool, RecordStoreError>;
    /// Removes the token of this id.
    fn remove(&self, id: &str) -> Result<(), RecordStoreError>;
    /// Removes the tokens that are no longer valid; returns their number.
    fn prune(&self, now: Timestamp) -> Result<usize, RecordStoreError>;
    /// Notes the use of a token. A loss of power may undo this.
    fn note_use(&self, id: &str, now: Timestamp) -> Result<(), RecordStoreError>;
    /// Blocks a caller, unless too many are blocked.
    fn block(&self, caller: &BlockedCaller) -> Result<Added, RecordStoreError>;
    /// Unblocks a caller; returns `false` if it was not blocked.
    fn unblock(&self, issuer: &str, subject: &str) -> Result<bool, RecordStoreError>;
    /// Returns the blocked callers, in the order of their blocking.
    fn blocked(&self) -> Result<Vec<BlockedCaller>, RecordStoreError>;
    /// Returns `true` if the caller is blocked.
    fn is_blocked(&self, issuer: &str, subject: &str) -> Result<bool, RecordStoreError>;
}

/// Returns the seconds since 1970 of a time.
pub fn seconds(time: Timestamp) -> u64 {
    time.as_millis() / 1_000
}
