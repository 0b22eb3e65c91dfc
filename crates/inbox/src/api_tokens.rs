//! API tokens: created for a program, limited to scopes, stored as hashes, and revocable at any time.
//!
//! A token is `mek_ID_SECRET`. The store has the SHA-256 of the whole, so that reading it reveals no token; the secret
//! has 256 bits of randomness, so that a hash without salt is enough. The id names the token in lists, in the audit and
//! as a caller, and is not a secret.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_record::encryption::random_id;
use mcp_elicit_record::store::RecordStoreError;
use mcp_elicit_record::store::api_tokens::{Added, ApiTokenStore, MOST, seconds};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

pub use mcp_elicit_record::store::api_tokens::{
    ApiToken, BlockedCaller, Scope, TokenOwner, UnknownScope,
};

/// The prefix of every token, by which scanners find leaked ones.
const PREFIX: &str = "mek_";
/// The length of an id, in hexadecimal digits.
const ID_DIGITS: usize = 12;
/// The longest text that is accepted as a token, in bytes.
const LONGEST: usize = 256;
/// The longest name of a token, in characters.
const LONGEST_NAME: usize = 100;
/// The interval at which the use of a token is recorded, in seconds.
const NOTED_EVERY: u64 = 300;
/// The longest name of a person, in bytes: an issuer and a subject.
const LONGEST_PERSON: usize = 2 * 1024;

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
    /// The stored tokens cannot be read now.
    #[error("tokens cannot be checked now, because the record cannot be reached: try again later")]
    Unreadable,
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
    /// The store cannot be read or written, or there is no randomness.
    #[error(transparent)]
    Store(#[from] RecordStoreError),
}

/// The reason why a caller could not be blocked.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// The names cannot be those of a caller.
    #[error("an issuer and a subject have 1 to {LONGEST_PERSON} characters that can be shown")]
    Name,
    /// Too many are blocked.
    #[error("{MOST} callers are blocked already")]
    TooMany,
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] RecordStoreError),
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

/// The tokens of a state folder and the blocked callers, which gateways and commands share. A change takes effect at
/// the next request.
#[derive(Debug)]
pub struct ApiTokens {
    store: Arc<dyn ApiTokenStore>,
    /// The time of each token's last recorded use by this process, in seconds since 1970, by its id.
    noted: Mutex<HashMap<String, u64>>,
}

impl ApiTokens {
    /// Creates the tokens of this store.
    pub fn new(store: Arc<dyn ApiTokenStore>) -> Self {
        Self {
            store,
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
        let random = || random_id().map_err(RecordStoreError::from);
        let id = random()?[..ID_DIGITS].to_owned();
        let secret = format!("{}{}", random()?, random()?);
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
        match self.store.add(&token)? {
            Added::Yes => Ok((token, text)),
            Added::Full => Err(MakeError::TooMany),
            Added::Already => {
                let why = "the random id is that of another token";
                Err(RecordStoreError::from(std::io::Error::other(why)).into())
            }
        }
    }

    /// Returns every token, in the order of creation.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn list(&self) -> Result<Vec<ApiToken>, RecordStoreError> {
        self.store.tokens()
    }

    /// Removes the token of this id, which was never shown.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn discard(&self, id: &str) -> Result<(), RecordStoreError> {
        self.store.remove(id)
    }

    /// Blocks a subject of an issuer as a caller. Returns `false` if it was blocked already.
    ///
    /// # Errors
    /// If the names cannot be those of a caller, too many are blocked, or the store cannot be read or written.
    pub fn block(&self, issuer: &str, subject: &str, now: Timestamp) -> Result<bool, BlockError> {
        let is_name = |text: &str| {
            !text.is_empty() && text.len() <= LONGEST_PERSON && !text.chars().any(char::is_control)
        };
        if !is_name(issuer) || !is_name(subject) {
            return Err(BlockError::Name);
        }
        let caller = BlockedCaller {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            blocked_at: seconds(now),
        };
        match self.store.block(&caller)? {
            Added::Yes => Ok(true),
            Added::Already => Ok(false),
            Added::Full => Err(BlockError::TooMany),
        }
    }

    /// Unblocks a subject of an issuer. Returns `false` if it was not blocked.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn unblock(&self, issuer: &str, subject: &str) -> Result<bool, RecordStoreError> {
        self.store.unblock(issuer, subject)
    }

    /// Returns the blocked callers, in the order of blocking.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn blocked(&self) -> Result<Vec<BlockedCaller>, RecordStoreError> {
        self.store.blocked()
    }

    /// Returns `true` if the subject of this issuer is blocked.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn read_blocked(&self, issuer: &str, subject: &str) -> Result<bool, RecordStoreError> {
        self.store.is_blocked(issuer, subject)
    }

    /// Returns `true` if the subject of this issuer is blocked. If the store cannot be read, everyone is.
    pub fn is_blocked(&self, issuer: &str, subject: &str) -> bool {
        self.store
            .is_blocked(issuer, subject)
            .unwrap_or_else(|error| {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "it is not known which callers are blocked, so all are"
                );
                true
            })
    }

    /// Records the use of a token, unless it was recorded recently.
    fn note_use(&self, token: &ApiToken, at: Timestamp) {
        let now = seconds(at);
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
        if let Err(error) = self.store.note_use(&token.id, at) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the use of an API token could not be noted"
            );
        }
    }

    /// Revokes the token of this id. Returns `false` if there is no valid one.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn revoke(&self, id: &str, now: Timestamp) -> Result<bool, RecordStoreError> {
        self.store.revoke(id, now)
    }

    /// Removes the tokens that are no longer valid. Returns their number.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn prune(&self, now: Timestamp) -> Result<usize, RecordStoreError> {
        self.store.prune(now)
    }

    /// Returns the token of this text, if it is valid now and has this scope. An unreadable store accepts no token, and
    /// says so.
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
        let known = self.store.find(id).map_err(|error| {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "API tokens cannot be checked"
            );
            TokenRejection::Unreadable
        })?;
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
        self.note_use(&token, now);
        Ok(token)
    }

    /// Returns the person who owns the calls of the token with this id, valid or not; `None` if no person is set.
    pub fn person(&self, id: &str) -> Option<String> {
        let token = self.store.find(id).ok().flatten()?;
        token.person().map(str::to_owned)
    }

    /// Returns the ids of the tokens whose calls this person owns, valid or not.
    pub fn of_person(&self, person: &str) -> Vec<String> {
        self.store.of_person(person).unwrap_or_default()
    }

    /// Returns the token of this id in words, valid or not: its name, with its id if it is not on the list, or others
    /// have the same name.
    pub fn in_words(&self, id: &str) -> String {
        let Some(ApiToken { name, .. }) = self.store.find(id).ok().flatten() else {
            return id.to_owned();
        };
        match self.store.count_named(&name) {
            Ok(1) => name,
            Ok(_) | Err(_) => format!("{name} ({id})"),
        }
    }

    /// Returns `true` if the token of this id is valid now and has this scope.
    pub fn is_valid(&self, id: &str, scope: Scope, now: Timestamp) -> bool {
        self.valid(id, scope, now).is_some()
    }

    /// Returns the token of this id, if it is valid now and has this scope.
    pub fn valid(&self, id: &str, scope: Scope, now: Timestamp) -> Option<ApiToken> {
        self.read_valid(id, scope, now).ok().flatten()
    }

    /// Returns the token of this id, if it is valid now and has this scope.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn read_valid(
        &self,
        id: &str,
        scope: Scope,
        now: Timestamp,
    ) -> Result<Option<ApiToken>, RecordStoreError> {
        let known = self.store.find(id)?;
        Ok(known.filter(|token| token.is_valid(now) && token.permits(scope)))
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

#[cfg(test)]
mod tests {
    use mcp_elicit_record::store::StateTables;

    use super::*;

    fn tokens(folder: &tempfile::TempDir) -> ApiTokens {
        tokens_at(folder.path())
    }

    fn tokens_at(folder: &std::path::Path) -> ApiTokens {
        ApiTokens::new(Arc::new(StateTables::at(&folder.join("record.sqlite"))))
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
        assert!(tokens.is_valid(&stored.id, Scope::Call, at(159)));
        assert!(tokens.revoke(&stored.id, at(120)).unwrap());
        assert!(!tokens.revoke(&stored.id, at(121)).unwrap());
        assert_eq!(
            id(tokens.check(&text, Scope::Call, at(122))),
            Err(TokenRejection::Revoked)
        );
        assert!(!tokens.is_valid(&stored.id, Scope::Call, at(122)));
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
        let used = || tokens.list().unwrap()[0].used_at;
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
    fn a_blocked_subject_is_of_one_issuer_and_a_record_that_cannot_be_read_blocks_all() {
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
        assert!(!tokens.is_blocked("https://id", "bob"));
        drop(tokens);
        std::fs::write(folder.path().join("record.sqlite"), "no record").unwrap();
        assert!(tokens_at(folder.path()).is_blocked("https://id", "bob"));
    }

    #[test]
    fn a_token_that_cannot_be_stored_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = tokens_at(&folder.path().join("gone"));
        let made = tokens.make("ci", &[Scope::Call], None, at(0));
        assert!(matches!(made, Err(MakeError::Store(_))), "{made:?}");
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
        assert_eq!(token.scopes, [Scope::Answer]);
        assert!(token.permits(Scope::List) && token.permits(Scope::Answer));
        assert!(!token.permits(Scope::Call));
    }

    #[test]
    fn the_record_holds_no_token_and_is_its_owners_only() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = tokens(&folder);
        let (_, text) = tokens.make("ci", &[Scope::Call], None, at(0)).unwrap();
        let (id, secret) = text.strip_prefix(PREFIX).unwrap().split_once('_').unwrap();
        let mut has_id = false;
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let stored = std::fs::read(&path).unwrap();
            let has = |part: &str| {
                let mut all = stored.windows(part.len());
                all.any(|bytes| bytes == part.as_bytes())
            };
            assert!(!has(secret), "{}", path.display());
            has_id |= has(id);
            #[cfg(unix)]
            {
                let file = std::fs::metadata(&path).unwrap();
                assert_eq!(std::os::unix::fs::MetadataExt::mode(&file) & 0o777, 0o600);
            }
        }
        assert!(has_id, "the row of the token was looked at");
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
        let id_only = format!("mek_{}_", token.id);
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
        drop(tokens);
        let record = folder.path().join("record.sqlite");
        std::fs::write(&record, "no record").unwrap();
        let tokens = tokens_at(folder.path());
        let checked = tokens.check(&text, Scope::Call, at(0));
        assert_eq!(
            checked.map(|token| token.id),
            Err(TokenRejection::Unreadable),
            "a broken record permits nothing"
        );
        assert!(tokens.list().is_err() && tokens.prune(at(0)).is_err());
        assert!(tokens.revoke(&token.id, at(0)).is_err());
        let left = std::fs::read_to_string(&record).unwrap();
        assert_eq!(
            left, "no record",
            "what is broken is not replaced by nothing"
        );
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
