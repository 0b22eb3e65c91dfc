//! Tokens in a file of the state folder: one file per server, readable by its owner only, replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, AuthorizationMetadata, CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{SignInError, is_same_issuer};

/// The tokens for one server.
#[derive(Debug, Clone)]
pub(super) struct FileStore {
    folder: PathBuf,
    url: String,
    bound: Option<TokenIssuer>,
}

/// The authorization server that issues tokens: its issuer, and its token endpoint, which alone identifies a server
/// without metadata.
#[derive(Debug, Clone)]
struct TokenIssuer {
    issuer: Option<String>,
    token_endpoint: String,
}

impl TokenIssuer {
    fn of(saved: SavedTokens) -> Self {
        // Tokens without an issuer that an earlier version kept are those of a server of 2025-03-26 without metadata.
        let token_endpoint = saved.token_endpoint.unwrap_or_else(|| {
            let at = reqwest::Url::parse(&saved.server).and_then(|url| url.join("/token"));
            at.map_or_else(|_| saved.server, String::from)
        });
        Self {
            issuer: saved.credentials.issuer,
            token_endpoint,
        }
    }

    /// Returns `true` if tokens from here may be sent there. An authorization server with an issuer may move its endpoints.
    fn is_same(&self, other: &Self) -> bool {
        match (&self.issuer, &other.issuer) {
            (Some(one), Some(other)) => is_same_issuer(one, other),
            (Some(_), None) => false,
            (None, _) => self.token_endpoint == other.token_endpoint,
        }
    }

    fn shown(self) -> String {
        self.issuer.unwrap_or(self.token_endpoint)
    }
}

#[derive(Serialize, Deserialize)]
struct SavedTokens {
    /// The server's URL, for people who read the folder.
    server: String,
    /// The endpoint from which they came; absent in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token_endpoint: Option<String>,
    credentials: StoredCredentials,
}

impl FileStore {
    /// Creates a store for the tokens of the server at `url`, in this folder.
    pub(super) fn new(folder: &Path, url: &str) -> Self {
        Self {
            folder: folder.to_owned(),
            url: url.to_owned(),
            bound: None,
        }
    }

    /// Returns the same store, which gives out the tokens of this authorization server only.
    pub(super) fn bound_to(&self, metadata: &AuthorizationMetadata) -> Self {
        let bound = TokenIssuer {
            issuer: metadata.issuer.clone(),
            token_endpoint: metadata.token_endpoint.clone(),
        };
        Self {
            bound: Some(bound),
            ..self.clone()
        }
    }

    /// Checks that the tokens, if there are any, are those of the authorization server to which this store is bound.
    ///
    /// # Errors
    /// If they are not, or cannot be read.
    pub(super) fn check(&self) -> Result<(), SignInError> {
        let saved = self.saved().map_err(|error| self.failed(&error))?;
        let (Some(saved), Some(bound)) = (saved, &self.bound) else {
            return Ok(());
        };
        let origin = TokenIssuer::of(saved);
        if origin.is_same(bound) {
            return Ok(());
        }
        let (known, named) = (origin.shown(), bound.clone().shown());
        Err(SignInError::TokensOfOtherIssuer { known, named })
    }

    fn file(&self, ending: &str) -> PathBuf {
        let digest = Sha256::digest(self.url.as_bytes());
        let name = u128::from_be_bytes(std::array::from_fn(|at| digest[at]));
        self.folder.join(format!("{name:032x}.{ending}"))
    }

    fn saved(&self) -> io::Result<Option<SavedTokens>> {
        let text = match fs::read(self.file("json")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        // The parser's own message may quote the file.
        let saved: SavedTokens = serde_json::from_slice(&text)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it holds no tokens"))?;
        Ok((saved.server == self.url).then_some(saved))
    }

    fn read(&self) -> io::Result<Option<StoredCredentials>> {
        let Some(saved) = self.saved()? else {
            return Ok(None);
        };
        let credentials = saved.credentials.clone();
        Ok(match &self.bound {
            None => Some(credentials),
            // rmcp compares issuers byte by byte.
            Some(bound) if TokenIssuer::of(saved).is_same(bound) => {
                Some(credentials.with_issuer(bound.issuer.clone()))
            }
            Some(_) => None,
        })
    }

    fn write(&self, credentials: StoredCredentials) -> io::Result<()> {
        let saved = SavedTokens {
            server: self.url.clone(),
            token_endpoint: self
                .bound
                .as_ref()
                .map(|bound| bound.token_endpoint.clone()),
            credentials,
        };
        replace(&self.file("json"), &serde_json::to_vec(&saved)?)
    }

    /// Waits until no other process renews these tokens. The returned file holds the lock.
    pub(super) async fn lock_renewal(&self) -> io::Result<File> {
        locked(self.file("renewal")).await
    }

    fn remove(&self) -> io::Result<()> {
        match fs::remove_file(self.file("json")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn failed(&self, error: &io::Error) -> AuthError {
        AuthError::CredentialStoreError(format!("{}: {error}", self.file("json").display()))
    }
}

/// Replaces a file as a whole, by one that only its owner can read.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(name);
    let _left_by_a_crash = fs::remove_file(&beside);
    let mut file = private(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

/// Waits for the lock of a file, on a thread that may block.
async fn locked(path: PathBuf) -> io::Result<File> {
    let locked = tokio::task::spawn_blocking(move || lock(&path));
    locked.await.map_err(io::Error::other)?
}

/// Waits for the lock of a file, which is created if there is none.
pub(super) fn lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let file = for_owner(&mut options).open(path)?;
    file.lock()?;
    Ok(file)
}

/// Creates a file that only its owner can read.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    for_owner(&mut options).open(path)
}

/// Makes what is created readable by its owner only, on Unix.
fn for_owner(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[async_trait]
impl CredentialStore for FileStore {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        self.read().map_err(|error| self.failed(&error))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.write(credentials).map_err(|error| self.failed(&error))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.remove().map_err(|error| self.failed(&error))
    }

    /// Guards against two simultaneous calls that spend one refresh token twice.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        match locked(self.file("lock")).await {
            Ok(file) => Ok(Some(CredentialRefreshGuard::new(file))),
            Err(error) => Err(self.failed(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(id: &str) -> StoredCredentials {
        StoredCredentials::new(id.to_owned(), None, Vec::new(), None)
    }

    #[test]
    fn tokens_are_given_only_to_the_authorization_server_that_issued_them() {
        let metadata = |issuer: Option<&str>, token_endpoint: &str| {
            let mut metadata = AuthorizationMetadata::default();
            metadata.issuer = issuer.map(str::to_owned);
            metadata.token_endpoint = token_endpoint.to_owned();
            metadata
        };
        let state = tempfile::tempdir().expect("a folder");
        let server = FileStore::new(state.path(), "https://a.example/mcp?x");
        let tokens = |issuer: Option<&str>| {
            let issuer = issuer.map(str::to_owned);
            StoredCredentials::new("id".to_owned(), None, Vec::new(), None).with_issuer(issuer)
        };
        let is_given = |issuer: Option<&str>, token_endpoint: &str| {
            let store = server.bound_to(&metadata(issuer, token_endpoint));
            let read = store.read().expect("read");
            assert_eq!(read.is_some(), store.check().is_ok());
            if let Some(read) = &read {
                assert_eq!(read.issuer.as_deref(), issuer);
            }
            read.is_some()
        };
        let (v, own) = ("https://v.example", "https://a.example/token");
        let of_v = server.bound_to(&metadata(Some(v), "https://v.example/token"));
        of_v.write(tokens(Some(v))).expect("written");
        assert!(is_given(Some(v), "https://v.example/token"));
        assert!(is_given(
            Some("https://v.example/"),
            "https://v.example/moved"
        ));
        assert!(!is_given(
            Some("https://e.example"),
            "https://v.example/token"
        ));
        assert!(!is_given(None, "https://v.example/token"));
        assert!(!is_given(None, own));

        // A server without metadata, that publishes some later.
        let without = server.bound_to(&metadata(None, "https://a.example/t"));
        without.write(tokens(None)).expect("written");
        assert!(is_given(None, "https://a.example/t"));
        assert!(is_given(Some("https://a.example"), "https://a.example/t"));
        assert!(!is_given(Some("https://e.example"), "https://e.example/t"));
        assert!(!is_given(None, own));

        // A file of an earlier version.
        server.write(tokens(None)).expect("written");
        assert!(is_given(None, own));
        assert!(!is_given(Some(v), "https://v.example/token"));
    }

    #[test]
    fn tokens_are_kept_per_server_for_their_owner_only() {
        let state = tempfile::tempdir().expect("a folder");
        let store = FileStore::new(state.path(), "https://a.example/mcp");
        assert!(store.read().expect("nothing yet").is_none());
        store.write(credentials("one")).expect("written");
        store.write(credentials("two")).expect("replaced");
        let read = store.read().expect("read").expect("kept");
        assert_eq!(read.client_id, "two");
        let other = FileStore::new(state.path(), "https://b.example/mcp");
        assert!(other.read().expect("read").is_none());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let path = store.file("json");
            let has = fs::metadata(&path).expect("it is there");
            assert_eq!(
                has.permissions().mode() & 0o777,
                0o600,
                "{}",
                path.display()
            );
        }
        fs::write(store.file("json"), "secret, and no JSON").expect("written");
        let told = store.read().expect_err("it is broken").to_string();
        assert!(!told.contains("secret"), "{told}");
        store.remove().expect("removed");
        store.remove().expect("nothing left to remove");
    }
}
