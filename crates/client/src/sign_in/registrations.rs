//! The issuers at which registered clients were used. A client and its secret belong to the authorization server that
//! issued them; a server that names another one must not get the secret sent there (2026-07-28, authorization).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::store::{lock, replace};

/// Issuers by client id, then by the server's URL.
type Issuers = BTreeMap<String, BTreeMap<String, String>>;

/// The file of all clients with a secret that were used from one state folder.
#[derive(Debug, Clone)]
pub(super) struct Registrations {
    folder: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct SavedRegistrations {
    clients: Issuers,
}

/// The reason why a client was not bound to an issuer.
#[derive(Debug)]
pub(super) enum NotBound {
    /// It belongs to this one.
    OtherIssuer(String),
    /// The folder cannot be read or written.
    Folder(io::Error),
}

impl From<io::Error> for NotBound {
    fn from(error: io::Error) -> Self {
        Self::Folder(error)
    }
}

impl Registrations {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Binds a client to the issuer that this server names, at its first use. `confirmed` is `true` if the person named
    /// the issuer.
    ///
    /// # Errors
    /// If the client belongs to another issuer, or the folder cannot be read or written.
    pub(super) fn bind(
        &self,
        client: &str,
        server: &str,
        issuer: &str,
        confirmed: bool,
    ) -> Result<(), NotBound> {
        let _lock = self.lock()?;
        let mut saved = self.read()?;
        let issuers = saved.clients.entry(client.to_owned()).or_default();
        match issuers.get(server) {
            Some(known) if known == issuer => return Ok(()),
            Some(known) if !confirmed => return Err(NotBound::OtherIssuer(known.clone())),
            // Another server may name the same issuer, but no new one.
            None if !confirmed && !issuers.is_empty() => {
                if !issuers.values().any(|known| known == issuer) {
                    let known = issuers.values().next().cloned().unwrap_or_default();
                    return Err(NotBound::OtherIssuer(known));
                }
            }
            Some(_) | None => {}
        }
        issuers.insert(server.to_owned(), issuer.to_owned());
        let bytes = serde_json::to_vec(&saved).map_err(io::Error::from)?;
        replace(&self.file(), &bytes)?;
        Ok(())
    }

    fn file(&self) -> PathBuf {
        self.folder.join("clients.json")
    }

    fn lock(&self) -> io::Result<File> {
        lock(&self.folder.join("clients.lock"))
    }

    fn read(&self) -> io::Result<SavedRegistrations> {
        match fs::read(self.file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(SavedRegistrations::default())
            }
            text => Ok(serde_json::from_slice(&text?)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_stays_at_the_issuer_of_its_first_use() {
        let folder = tempfile::tempdir().expect("a folder");
        let clients = Registrations::new(folder.path().to_owned());
        let bind = |client, server, issuer, confirmed| {
            let bound = clients.bind(client, server, issuer, confirmed);
            bound.map_err(|error| match error {
                NotBound::OtherIssuer(known) => known,
                NotBound::Folder(error) => panic!("{error}"),
            })
        };
        let (one, two) = ("https://one.example/mcp", "https://two.example/mcp");
        assert_eq!(bind("corp", one, "https://v", false), Ok(()));
        assert_eq!(bind("corp", one, "https://v", false), Ok(()));
        let belongs = Err("https://v".to_owned());
        assert_eq!(bind("corp", one, "https://e", false), belongs);
        // The same at a server that was never used before.
        assert_eq!(bind("corp", two, "https://e", false), belongs);
        assert_eq!(bind("corp", two, "https://v", false), Ok(()));
        assert_eq!(bind("other", two, "https://e", false), Ok(()));
        // A person may say that it is right; the other server's issuer stays.
        assert_eq!(bind("corp", two, "https://e", true), Ok(()));
        assert_eq!(bind("corp", one, "https://e", false), belongs);
        fs::write(clients.file(), "{").expect("written");
        assert!(clients.bind("corp", one, "https://e", false).is_err());
    }
}
