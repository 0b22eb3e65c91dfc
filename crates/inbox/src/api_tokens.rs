//! API tokens: created for a program, limited to scopes, stored as hashes, and revocable at any time.
//!
//! A token is `mek_ID_SECRET`. The file has the SHA-256 of the whole, so that reading it reveals no token; the secret
//! has 256 bits of randomness, so that a hash without salt is enough. The id names the token in lists, in the audit and
//! as a caller, and is not a secret.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_record::encryption::random_id;
use mcp_elicit_record::principal::Principal;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::shared_file::{SharedFile, SharedValue};

/// The prefix of every token, by which scanners find leaked ones.
const PREFIX: &str = "mek_";
/// The length of an id, in hexadecimal digits.
const ID_DIGITS: usize = 12;
/// The longest text that is accepted as a token, in bytes.
const LONGEST: usize = 256;
/// The most tokens in one state folder.
const MOST: usize = 10_000;
/// The longest name of a token, in characters.
const LONGEST_NAME: usize = 100;
/// The interval at which the use of a token is recorded, in seconds.
const NOTED_EVERY: u64 = 300;
/// The longest name of a person, in bytes: an issuer and a subject.
const LONGEST_PERSON: usize = 2 * 1024;

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
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiToken {
    id: String,
    name: String,
    /// SHA-256 of the token, in hexadecimal digits.
    hash: String,
    scopes: Vec<Scope>,
    /// The owner of its calls; `None` if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<TokenOwner>,
    /// Seconds since 1970.
    made_at: u64,
    /// Seconds since 1970; absent if it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    /// Seconds since 1970; absent if it is not revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revoked_at: Option<u64>,
    /// Seconds since 1970, to a few minutes; absent if it was not used yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    used_at: Option<u64>,
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

impl BlockedCaller {
    fn is(&self, issuer: &str, subject: &str) -> bool {
        self.issuer == issuer && self.subject == subject
    }
}

impl ApiToken {
    /// Returns the id, which names it everywhere.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns its given name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the scopes, in order.
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// Returns the owner of its calls; `None` if not set.
    pub fn owner(&self) -> Option<&TokenOwner> {
        self.owner.as_ref()
    }

    /// Returns the name of its callers in the record.
    pub fn caller(&self) -> String {
        Principal::Key(&self.id).to_string()
    }

    /// Returns the time of its creation, in seconds since 1970.
    pub fn made_at(&self) -> u64 {
        self.made_at
    }

    /// Returns the time of its expiry, in seconds since 1970; `None` for never.
    pub fn expires_at(&self) -> Option<u64> {
        self.expires_at
    }

    /// Returns the time of its revocation, in seconds since 1970.
    pub fn revoked_at(&self) -> Option<u64> {
        self.revoked_at
    }

    /// Returns the time of its last use, in seconds since 1970, to a few minutes; `None` if it was not used yet.
    pub fn used_at(&self) -> Option<u64> {
        self.used_at
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

/// The reason why a text is not an accepted token. Callers must not learn more, because they could probe for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRejection {
    /// It is not a known token.
    #[error("this token is not known")]
    Unknown,
    /// It has expired.
    #[error("this token has expired")]
    Expired,
    /// It was revoked.
    #[error("this token was revoked")]
    Revoked,
    /// It lacks this scope.
    #[error("this token lacks the scope `{}`", .0.as_str())]
    Scope(Scope),
}

/// The reason why a token could not be created.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The name cannot be shown in a list.
    #[error("a name has 1 to {LONGEST_NAME} letters, digits, spaces and ASCII punctuation")]
    Name,
    /// The person's name is invalid.
    #[error("a person is named as in [people], or as ISSUER SUBJECT")]
    Person,
    /// It has no scope.
    #[error("a token needs a scope")]
    NoScope,
    /// It would already be expired.
    #[error("the time until it expires must be at least a second")]
    Expired,
    /// There are too many.
    #[error("there are {MOST} tokens already; a revoked one is removed by `tokens prune`")]
    TooMany,
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] io::Error),
}

/// The reason why a request has no bearer token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BearerError {
    /// There is none.
    #[error("a request carries `Authorization: Bearer` with a token")]
    Missing,
    /// Ambiguous: two readers could see two tokens.
    #[error("a request carries one `Authorization` header")]
    Ambiguous,
}

/// Returns the bearer token of a request (RFC 6750, section 2.1; the scheme in any letter case, RFC 9110, 11.1).
///
/// # Errors
/// If there is none, or more than one.
pub fn bearer(headers: &HeaderMap) -> Result<&str, BearerError> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (all.next(), all.next());
    if second.is_some() {
        return Err(BearerError::Ambiguous);
    }
    let value = first.and_then(|value| value.to_str().ok());
    let (scheme, token) = value
        .and_then(|value| value.split_once(' '))
        .ok_or(BearerError::Missing)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(BearerError::Missing);
    }
    Ok(token.trim_matches(' '))
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TokenTable {
    tokens: Vec<ApiToken>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blocked: Vec<BlockedCaller>,
}

impl SharedValue for TokenTable {
    const UNREADABLE: &'static str = "api.tokens holds no list of tokens, so none is valid: restore it, or remove it and make new tokens";
    const REPLACED: bool = false;

    fn fresh() -> io::Result<Self> {
        Ok(Self::default())
    }

    fn is_sound(&self) -> bool {
        self.tokens.len() <= MOST && self.blocked.len() <= MOST
    }
}

/// The tokens of a state folder and the blocked callers, in a file that gateways and commands share. A change takes
/// effect at the next request.
#[derive(Debug)]
pub struct ApiTokens {
    file: SharedFile<TokenTable>,
    /// The time of each token's last recorded use by this process, in seconds since 1970, by its id.
    noted: Mutex<HashMap<String, u64>>,
}

impl ApiTokens {
    /// Creates a store of the tokens in this file, which is created with the first token.
    pub(super) fn at(path: PathBuf) -> Self {
        Self {
            file: SharedFile::at(path),
            noted: Mutex::default(),
        }
    }

    /// Creates a token. Returns the stored data, and the token's text, which is never shown again.
    ///
    /// # Errors
    /// If it would have no scope, or cannot be stored.
    pub fn make(
        &self,
        name: &str,
        scopes: &[Scope],
        lifetime: Option<Duration>,
        now: Timestamp,
    ) -> Result<(ApiToken, String), MakeError> {
        self.make_for(name, scopes, lifetime, None, now)
    }

    /// Creates a token whose calls have this owner. Returns the stored data, and the token's text, which is never shown
    /// again.
    ///
    /// # Errors
    /// If it would have no scope, or cannot be stored.
    pub fn make_for(
        &self,
        name: &str,
        scopes: &[Scope],
        lifetime: Option<Duration>,
        owner: Option<TokenOwner>,
        now: Timestamp,
    ) -> Result<(ApiToken, String), MakeError> {
        let length = name.chars().count();
        let shows = |c: char| c == ' ' || c.is_alphanumeric() || c.is_ascii_punctuation();
        if name.trim().is_empty() || length > LONGEST_NAME || !name.chars().all(shows) {
            return Err(MakeError::Name);
        }
        if let Some(TokenOwner::Person(person)) = &owner
            && (person.trim().is_empty()
                || person.len() > LONGEST_PERSON
                || person.chars().any(char::is_control))
        {
            return Err(MakeError::Person);
        }
        let mut scopes = scopes.to_vec();
        scopes.sort_unstable();
        scopes.dedup();
        if scopes.is_empty() {
            return Err(MakeError::NoScope);
        }
        if lifetime.is_some_and(|lifetime| lifetime.as_secs() == 0) {
            return Err(MakeError::Expired);
        }
        let id = random_id()?[..ID_DIGITS].to_owned();
        let secret = format!("{}{}", random_id()?, random_id()?);
        let text = format!("{PREFIX}{id}_{secret}");
        let token = ApiToken {
            id,
            name: name.to_owned(),
            hash: hash(&text),
            scopes,
            owner,
            made_at: seconds(now),
            expires_at: lifetime.map(|lifetime| seconds(now).saturating_add(lifetime.as_secs())),
            revoked_at: None,
            used_at: None,
        };
        let is_full = self.file.change(|table| {
            let is_full = table.tokens.len() >= MOST;
            if !is_full {
                table.tokens.push(token.clone());
            }
            Ok(is_full)
        })?;
        if is_full {
            return Err(MakeError::TooMany);
        }
        Ok((token, text))
    }

    /// Returns every token, in the order of creation.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn list(&self) -> io::Result<Vec<ApiToken>> {
        let table = self.file.read()?;
        Ok(table.map(|table| table.tokens.clone()).unwrap_or_default())
    }

    /// Removes the token of this id, which was never shown.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn discard(&self, id: &str) -> io::Result<()> {
        self.file.change(|table| {
            table.tokens.retain(|token| token.id != id);
            Ok(())
        })
    }

    /// Blocks a subject of an issuer as a caller. Returns `false` if it was blocked already.
    ///
    /// # Errors
    /// If the names cannot be those of a caller, too many are blocked, or the file cannot be read or written.
    pub fn block(&self, issuer: &str, subject: &str, now: Timestamp) -> io::Result<bool> {
        let is_name = |text: &str| {
            !text.is_empty() && text.len() <= LONGEST_PERSON && !text.chars().any(char::is_control)
        };
        if !is_name(issuer) || !is_name(subject) {
            let why = "an issuer and a subject have 1 to 2048 characters that can be shown";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        self.file.change(|table| {
            if table.is_blocked(issuer, subject) {
                return Ok(false);
            }
            if table.blocked.len() >= MOST {
                return Err(io::Error::other(format!(
                    "{MOST} callers are blocked already"
                )));
            }
            table.blocked.push(BlockedCaller {
                issuer: issuer.to_owned(),
                subject: subject.to_owned(),
                blocked_at: seconds(now),
            });
            Ok(true)
        })
    }

    /// Unblocks a subject of an issuer. Returns `false` if it was not blocked.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn unblock(&self, issuer: &str, subject: &str) -> io::Result<bool> {
        self.file.change(|table| {
            let before = table.blocked.len();
            table.blocked.retain(|blocked| !blocked.is(issuer, subject));
            Ok(table.blocked.len() < before)
        })
    }

    /// Returns the blocked callers, in the order of blocking.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn blocked(&self) -> io::Result<Vec<BlockedCaller>> {
        let table = self.file.read()?;
        Ok(table.map(|table| table.blocked.clone()).unwrap_or_default())
    }

    /// Returns `true` if the subject of this issuer is blocked. If the file cannot be read, everyone is.
    pub fn is_blocked(&self, issuer: &str, subject: &str) -> bool {
        match self.file.read() {
            Ok(table) => table.is_some_and(|table| table.is_blocked(issuer, subject)),
            Err(error) => {
                tracing::error!(%error, "it is not known which callers are blocked, so all are");
                true
            }
        }
    }

    /// Records the use of a token, unless it was recorded recently.
    fn note_use(&self, token: &ApiToken, now: Timestamp) {
        let now = seconds(now);
        let is_new =
            |noted: Option<u64>| noted.is_none_or(|at| now >= at.saturating_add(NOTED_EVERY));
        if !is_new(token.used_at) {
            return;
        }
        {
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            if !is_new(noted.get(&token.id).copied()) {
                return;
            }
            noted.insert(token.id.clone(), now);
        }
        let noted = self.file.change(|table| {
            let mut known = table.tokens.iter_mut();
            if let Some(known) = known.find(|known| known.id == token.id) {
                known.used_at = known.used_at.max(Some(now));
            }
            Ok(())
        });
        if let Err(error) = noted {
            tracing::warn!(%error, "the use of an API token could not be noted");
        }
    }

    /// Revokes the token of this id. Returns `false` if there is no valid one.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn revoke(&self, id: &str, now: Timestamp) -> io::Result<bool> {
        self.file.change(|table| {
            let known = table.tokens.iter_mut().find(|token| token.id == id);
            let valid = known.filter(|token| token.revoked_at.is_none());
            Ok(match valid {
                Some(token) => {
                    token.revoked_at = Some(seconds(now));
                    true
                }
                None => false,
            })
        })
    }

    /// Removes the tokens that are no longer valid. Returns their number.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn prune(&self, now: Timestamp) -> io::Result<usize> {
        self.file.change(|table| {
            let before = table.tokens.len();
            table.tokens.retain(|token| token.is_valid(now));
            Ok(before - table.tokens.len())
        })
    }

    /// Returns the token of this text, if it is valid now and has this scope. An unreadable file accepts no token.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(
        &self,
        text: &str,
        scope: Scope,
        now: Timestamp,
    ) -> Result<ApiToken, TokenRejection> {
        let id = id_in(text).ok_or(TokenRejection::Unknown)?;
        let table = self.file.read().unwrap_or_else(|error| {
            tracing::error!(%error, "no API token is valid");
            None
        });
        let table = table.ok_or(TokenRejection::Unknown)?;
        let known = table.tokens.iter().find(|token| token.id == id);
        let known = known.filter(|token| token.hash.as_bytes().ct_eq(hash(text).as_bytes()).into());
        let token = known.ok_or(TokenRejection::Unknown)?;
        if token.revoked_at.is_some() {
            return Err(TokenRejection::Revoked);
        }
        if !token.is_valid(now) {
            return Err(TokenRejection::Expired);
        }
        if !token.permits(scope) {
            return Err(TokenRejection::Scope(scope));
        }
        self.note_use(token, now);
        Ok(token.clone())
    }

    /// Returns the person who owns the calls of the token with this id, valid or not; `None` for nobody, or if not set.
    pub fn person(&self, id: &str) -> Option<String> {
        let table = self.file.read().ok().flatten()?;
        let token = table.tokens.iter().find(|token| token.id == id)?;
        match token.owner()? {
            TokenOwner::Person(person) => Some(person.clone()),
            TokenOwner::Nobody => None,
        }
    }

    /// Returns the ids of the tokens whose calls this person owns, valid or not.
    pub fn of_person(&self, person: &str) -> Vec<String> {
        let table = self.file.read().ok().flatten();
        let Some(table) = table else {
            return Vec::new();
        };
        let is_of = |token: &&ApiToken| matches!(token.owner(), Some(TokenOwner::Person(owner)) if owner == person);
        let tokens = table.tokens.iter().filter(is_of);
        tokens.map(|token| token.id.clone()).collect()
    }

    /// Returns the token of this id in words, valid or not: its name, with its id if it is not on the list, or others
    /// have the same name.
    pub fn in_words(&self, id: &str) -> String {
        let table = self.file.read().ok().flatten().unwrap_or_default();
        let mut tokens = table.tokens.iter();
        let Some(ApiToken { name, .. }) = tokens.find(|token| token.id == id) else {
            return id.to_owned();
        };
        let of_name = table.tokens.iter().filter(|token| token.name == *name);
        match of_name.count() {
            1 => name.clone(),
            _ => format!("{name} ({id})"),
        }
    }

    /// Returns `true` if the token of this id is valid now and has this scope.
    pub fn is_valid(&self, id: &str, scope: Scope, now: Timestamp) -> bool {
        let table = self.file.read().ok().flatten();
        table.is_some_and(|table| {
            let known = table.tokens.iter().find(|token| token.id == id);
            known.is_some_and(|token| token.is_valid(now) && token.permits(scope))
        })
    }
}

impl TokenTable {
    fn is_blocked(&self, issuer: &str, subject: &str) -> bool {
        let mut blocked = self.blocked.iter();
        blocked.any(|blocked| blocked.is(issuer, subject))
    }
}

/// Returns `true` if a text has the prefix of our tokens.
pub fn has_prefix(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// Returns the id in the text of a token; `None` for text of another form.
fn id_in(text: &str) -> Option<&str> {
    if text.len() > LONGEST {
        return None;
    }
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (id.len() == ID_DIGITS && is_hex(id) && is_hex(secret)).then_some(id)
}

fn hash(text: &str) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

fn seconds(time: Timestamp) -> u64 {
    time.as_millis() / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(folder: &tempfile::TempDir) -> ApiTokens {
        ApiTokens::at(folder.path().join("api.tokens"))
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn a_token_permits_its_scopes_until_it_expires_or_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = tokens(&folder);
        let life = Some(Duration::from_secs(60));
        let (stored, text) = tokens.make("ci", &[Scope::Call], life, at(100)).unwrap();
        let id = |check: Result<ApiToken, TokenRejection>| check.map(|token| token.id);
        assert_eq!(
            id(tokens.check(&text, Scope::Call, at(159))),
            Ok(stored.id.clone())
        );
        assert_eq!(
            id(tokens.check(&text, Scope::Answer, at(159))),
            Err(TokenRejection::Scope(Scope::Answer))
        );
        assert_eq!(
            id(tokens.check(&text, Scope::Call, at(160))),
            Err(TokenRejection::Expired)
        );
        assert!(tokens.is_valid(stored.id(), Scope::Call, at(159)));
        assert!(tokens.revoke(stored.id(), at(120)).unwrap());
        assert!(!tokens.revoke(stored.id(), at(121)).unwrap());
        assert_eq!(
            id(tokens.check(&text, Scope::Call, at(122))),
            Err(TokenRejection::Revoked)
        );
        assert!(!tokens.is_valid(stored.id(), Scope::Call, at(122)));
        assert_eq!(tokens.prune(at(122)).unwrap(), 1);
        assert_eq!(
            id(tokens.check(&text, Scope::Call, at(122))),
            Err(TokenRejection::Unknown)
        );
    }

    #[test]
    fn the_use_of_a_token_is_noted_every_few_minutes() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = tokens(&folder);
        let (_, text) = tokens.make("ci", &[Scope::Call], None, at(0)).unwrap();
        let used = || tokens.list().unwrap()[0].used_at();
        assert_eq!(used(), None);
        tokens.check(&text, Scope::Call, at(100)).unwrap();
        assert_eq!(used(), Some(100));
        tokens.check(&text, Scope::Call, at(399)).unwrap();
        assert_eq!(used(), Some(100));
        tokens.check(&text, Scope::Call, at(400)).unwrap();
        assert_eq!(used(), Some(400));
        assert!(tokens.check(&text, Scope::List, at(900)).is_err());
        assert_eq!(used(), Some(400), "a refusal is no use");
    }

    #[test]
    fn a_blocked_subject_is_of_one_issuer_and_a_file_that_cannot_be_read_blocks_all() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = tokens(&folder);
        assert!(!tokens.is_blocked("https://id", "ada"));
        assert!(tokens.block("https://id", "ada", at(7)).unwrap());
        assert!(tokens.is_blocked("https://id", "ada"));
        assert!(!tokens.is_blocked("https://id", "ad") && !tokens.is_blocked("https://i", "ada"));
        assert_eq!(tokens.blocked().unwrap()[0].blocked_at, 7);
        for (issuer, subject) in [("", "a"), ("a", ""), ("a", "b\nc")] {
            assert!(tokens.block(issuer, subject, at(7)).is_err());
        }
        // Creating and pruning tokens accepts no one.
        tokens.make("ci", &[Scope::Call], None, at(0)).unwrap();
        tokens.prune(at(9)).unwrap();
        assert!(tokens.is_blocked("https://id", "ada"));
        std::fs::write(folder.path().join("api.tokens"), "{}").unwrap();
        assert!(tokens.is_blocked("https://id", "bob"));
    }

    #[test]
    fn a_token_that_cannot_be_stored_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = ApiTokens::at(folder.path().join("gone").join("api.tokens"));
        let made = tokens.make("ci", &[Scope::Call], None, at(0));
        assert!(matches!(made, Err(MakeError::File(_))), "{made:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_bearer_token_is_one_in_any_letter_case() {
        let headers = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, http::HeaderValue::from_static(value));
            }
            headers
        };
        for value in ["Bearer t", "bearer t", "BEARER  t "] {
            assert_eq!(bearer(&headers(&[value])), Ok("t"));
        }
        for value in ["Basic t", "Bearer", "t"] {
            assert_eq!(bearer(&headers(&[value])), Err(BearerError::Missing));
        }
        assert_eq!(bearer(&headers(&[])), Err(BearerError::Missing));
        let two = headers(&["Bearer t", "Bearer t"]);
        assert_eq!(bearer(&two), Err(BearerError::Ambiguous));
    }

    #[test]
    fn a_token_that_answers_also_lists_and_calls_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = tokens(&folder);
        let (token, _) = tokens
            .make("bot", &[Scope::Answer, Scope::Answer], None, at(0))
            .unwrap();
        assert_eq!(token.scopes(), [Scope::Answer]);
        assert!(token.permits(Scope::List) && token.permits(Scope::Answer));
        assert!(!token.permits(Scope::Call));
    }

    #[test]
    fn the_file_holds_no_token_and_is_its_owners_only() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = tokens(&folder);
        let (_, text) = tokens.make("ci", &[Scope::Call], None, at(0)).unwrap();
        let stored = std::fs::read_to_string(folder.path().join("api.tokens")).unwrap();
        let secret = text.rsplit('_').next().unwrap();
        assert!(!stored.contains(secret) && !stored.contains(&text));
        #[cfg(unix)]
        {
            let file = std::fs::metadata(folder.path().join("api.tokens")).unwrap();
            assert_eq!(std::os::unix::fs::MetadataExt::mode(&file) & 0o777, 0o600);
        }
    }

    #[test]
    fn what_is_no_token_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = tokens(&folder);
        let (token, text) = tokens.make("ci", &[Scope::Call], None, at(0)).unwrap();
        let other = format!("{}0", &text[..text.len() - 1]);
        let other = if other == text {
            format!("{}1", &text[..text.len() - 1])
        } else {
            other
        };
        let long = format!("{text}{}", "0".repeat(LONGEST));
        let id_only = format!("mek_{}_", token.id());
        for wrong in [
            "",
            "mek_",
            "mek__",
            "bearer",
            &other,
            &long,
            &id_only,
            &text.to_uppercase(),
            &format!("{text} "),
        ] {
            let checked = tokens.check(wrong, Scope::Call, at(0));
            assert_eq!(
                checked.map(|token| token.id),
                Err(TokenRejection::Unknown),
                "{wrong}"
            );
        }
        std::fs::write(folder.path().join("api.tokens"), "{").unwrap();
        let checked = tokens.check(&text, Scope::Call, at(0));
        assert_eq!(
            checked.map(|token| token.id),
            Err(TokenRejection::Unknown),
            "a broken file permits nothing"
        );
        assert!(tokens.list().is_err() && tokens.prune(at(0)).is_err());
        assert!(tokens.revoke(token.id(), at(0)).is_err());
        let left = std::fs::read_to_string(folder.path().join("api.tokens")).unwrap();
        assert_eq!(left, "{", "what is broken is not replaced by nothing");
    }

    #[test]
    fn a_token_that_could_not_be_used_or_shown_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = tokens(&folder);
        let long = "n".repeat(LONGEST_NAME + 1);
        for name in [
            "",
            " ",
            "a\u{1b}[31m",
            "a\nb",
            "a\u{202e}b",
            "a\u{200b}",
            &long,
        ] {
            assert!(
                matches!(
                    tokens.make(name, &[Scope::Call], None, at(0)),
                    Err(MakeError::Name)
                ),
                "{name:?}"
            );
        }
        assert!(matches!(
            tokens.make("n", &[], None, at(0)),
            Err(MakeError::NoScope)
        ));
        let none = Some(Duration::from_millis(900));
        assert!(matches!(
            tokens.make("n", &[Scope::Call], none, at(0)),
            Err(MakeError::Expired)
        ));
        assert!(tokens.list().unwrap().is_empty());
    }

    #[test]
    fn scopes_have_names() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
        }
        assert_eq!("Call".parse::<Scope>(), Err(UnknownScope));
    }
}
