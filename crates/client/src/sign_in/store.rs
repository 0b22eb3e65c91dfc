//! Tokens in a file of the state folder: one file per server, readable by its owner only, replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The tokens for one server.
#[derive(Debug, Clone)]
pub(super) struct FileStore {
    folder: PathBuf,
    url: String,
}

#[derive(Serialize, Deserialize)]
struct SavedTokens {
    /// The server's URL, for people who read the folder.
    server: String,
    credentials: StoredCredentials,
}

impl FileStore {
    /// Creates a store for the tokens of the server at `url`, in this folder.
    pub(super) fn new(folder: &Path, url: &str) -> Self {
        Self {
            folder: folder.to_owned(),
            url: url.to_owned(),
        }
    }

    fn file(&self, ending: &str) -> PathBuf {
        let digest = Sha256::digest(self.url.as_bytes());
        let name = u128::from_be_bytes(std::array::from_fn(|at| digest[at]));
        self.folder.join(format!("{name:032x}.{ending}"))
    }

    fn read(&self) -> io::Result<Option<StoredCredentials>> {
        let text = match fs::read(self.file("json")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        // The parser's own message may quote the file.
        let saved: SavedTokens = serde_json::from_slice(&text)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it holds no tokens"))?;
        Ok((saved.server == self.url).then_some(saved.credentials))
    }

    fn write(&self, credentials: StoredCredentials) -> io::Result<()> {
        let saved = SavedTokens {
            server: self.url.clone(),
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
