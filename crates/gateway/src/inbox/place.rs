//! Where the inbox is and with which token: files in the state folder, so that other commands find it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::record::seal;

/// The folder in which a person's gateways keep what must outlive them.
#[derive(Clone, Debug)]
pub struct StateFolder {
    path: PathBuf,
}

impl StateFolder {
    /// This folder, made when there is none; on Unix for its owner only.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        #[cfg(unix)]
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// This folder, to be read from; nothing is made.
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Where it is unless told otherwise: `$MCP_ELICIT_STATE`, else the user's state folder.
    pub fn usual() -> Option<PathBuf> {
        let from = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        from("MCP_ELICIT_STATE")
            .or_else(|| from("XDG_STATE_HOME").map(|base| base.join("mcp-elicit")))
            .or_else(|| from("LOCALAPPDATA").map(|base| base.join("mcp-elicit")))
            .or_else(|| from("HOME").map(|home| home.join(".local/state/mcp-elicit")))
    }

    /// The record of questions.
    pub fn record(&self) -> PathBuf {
        self.path.join("record.sqlite")
    }

    /// The key that seals values.
    pub fn seal(&self) -> PathBuf {
        self.path.join("seal.key")
    }

    /// The key that tells servers, callers and questions apart. It is never changed.
    pub fn identity(&self) -> PathBuf {
        self.path.join("identity.key")
    }

    /// The leases of running gateways.
    pub fn leases(&self) -> PathBuf {
        self.path.join("running")
    }

    /// The inbox's token, made when there is none.
    pub fn token(&self) -> io::Result<String> {
        let path = self.path.join("inbox.token");
        if !path.exists() {
            let token = format!("{}{}", seal::unguessable()?, seal::unguessable()?);
            seal::write_secret(&path, token.as_bytes())?;
        }
        Ok(fs::read_to_string(path)?.trim().to_owned())
    }

    /// The inbox's token as it was made by the gateway.
    pub fn known_token(&self) -> io::Result<String> {
        Ok(fs::read_to_string(self.path.join("inbox.token"))?
            .trim()
            .to_owned())
    }

    /// Writes down where the inbox is.
    pub fn write_inbox(&self, at: SocketAddr) -> io::Result<()> {
        fs::write(self.path.join("inbox.address"), format!("http://{at}\n"))
    }

    /// Where the inbox is, as written down by the gateway that serves it.
    pub fn inbox(&self) -> Option<String> {
        let text = fs::read_to_string(self.path.join("inbox.address")).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }
}
