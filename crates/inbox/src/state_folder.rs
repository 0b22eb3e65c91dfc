//! The state folder: the inbox's address, and its access data.
//!
//! | file | purpose |
//! | --- | --- |
//! | `inbox.lock` | held by the gateway that serves the inbox of this folder |
//! | `inbox.address` | the address of its pages |
//! | `inbox.people` | the address at which people log in to it, if several do |
//! | `inbox.sock` | its API for commands of the same user |
//! | `inbox.token` | the token of other programs for the API at that address |
//! | `push.key` | the key of web push |
//! | `record.sqlite` | the record, and what gateways and commands share: hashes of the tokens created for programs, blocked callers, the people who logged in, the signed-in browsers |
//! | `record.address` | the address of the database that has the record instead |
//! | `api.tokens`, `inbox.logins`, `inbox.sessions` | the same in a folder of an earlier version, until it is moved; then a notice |
//! | `audit.seen` | the event of the audit that its gateways saw last, by which an older copy of the record is noticed |
//! | `inbox.presence` | the setting that only pages may answer |

#[cfg(unix)]
mod parents;

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::api_tokens::ApiTokens;
use super::login::table;
use super::login::table::Logins;
use super::seen_audit;
use super::sessions::{self, SharedSessions};
use mcp_elicit_record::store::api_tokens::ApiTokenStore;
use mcp_elicit_record::store::shared_rows::SharedRowStore;
use mcp_elicit_record::store::{DatabaseRecord, StateTables};
use mcp_elicit_record::{KeyFiles, encryption, state_file};

/// The prefixes of file names in a state folder.
const NAMES: [&str; 9] = [
    "record.sqlite",
    RECORD_ADDRESS,
    seen_audit::NAME,
    "seal.key",
    "identity.key",
    "inbox.",
    "push.key",
    "api.tokens",
    "running",
];

/// The name of the record.
const RECORD: &str = "record.sqlite";
/// The name of the file with the address of the record's database.
pub(crate) const RECORD_ADDRESS: &str = "record.address";

/// Files that identify a folder as one of ours.
const OURS: [&str; 3] = ["seal.key", "inbox.token", "record.sqlite"];

/// The folder for the persistent data of a person's gateways.
#[derive(Clone, Debug)]
pub struct StateFolder {
    path: PathBuf,
    /// Opened once for all clones.
    tokens: Arc<dyn ApiTokenStore>,
    shared: Arc<dyn SharedRowStore>,
    /// The record, if it is in a database.
    database: Option<Arc<dyn DatabaseRecord>>,
}

/// The right to serve the inbox of a state folder. It ends with the process, in any way.
#[derive(Debug)]
pub struct InboxLock {
    _file: File,
}

/// The answers that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredPresence {
    /// Answers of pages, commands and programs.
    Any,
    /// Answers of pages only.
    Page,
}

/// The inbox of several people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeopleInbox {
    /// The address of its pages.
    pub address: String,
    /// The party that identifies people.
    pub by: LogInBy,
}

/// The party that identifies people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogInBy {
    /// A proxy in front of the inbox.
    Proxy,
    /// An OpenID provider.
    Provider,
}

impl StateFolder {
    /// Opens this folder, and creates it if there is none; on Unix for its owner only. An existing folder that other
    /// users may read is closed to them, and that is logged, if it is empty or one of ours. All its files are then
    /// readable by the owner only, and half-written files of killed processes are removed.
    ///
    /// # Errors
    /// If it cannot be created, belongs to another user, or is a folder with other contents that other users may read;
    /// if other users may write to it and it is not empty, or a file in it is another user's; if every user may write
    /// to a folder above it; if a link or a pipe replaces a file.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::check_path(path)?;
        make_private(path)?;
        refuse_replaced(path)?;
        state_file::clear_unfinished(path)?;
        state_file::close_to_others(path)?;
        Ok(Self::at(path))
    }

    /// Checks the path of a folder that is to be written in one step, with the same contents as a state folder.
    ///
    /// # Errors
    /// If a link in the path is another user's, or every user may write to a folder above it.
    #[cfg(unix)]
    pub(crate) fn check_path(path: &Path) -> io::Result<()> {
        parents::check(path)
    }

    /// Accepts any path, on systems without such links.
    ///
    /// # Errors
    /// Never.
    #[cfg(not(unix))]
    pub(crate) fn check_path(_path: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Returns this folder for reading; nothing is created.
    pub fn at(path: &Path) -> Self {
        let tables = Arc::new(tables(&path.join(RECORD)));
        Self {
            path: path.to_owned(),
            tokens: tables.clone(),
            shared: tables,
            database: None,
        }
    }

    /// Uses the tables of a record elsewhere for tokens, blocked callers, logins and sessions.
    #[must_use]
    pub fn with_tables(self, tables: Arc<impl ApiTokenStore + SharedRowStore + 'static>) -> Self {
        Self {
            tokens: tables.clone(),
            shared: tables,
            ..self
        }
    }

    /// Uses the record in a database, with its tables, instead of a record in the folder.
    #[must_use]
    pub fn with_database(self, database: Arc<dyn DatabaseRecord>) -> Self {
        Self {
            tokens: database.tokens(),
            shared: database.shared_rows(),
            database: Some(database),
            ..self
        }
    }

    /// Returns the record in a database, if that is used.
    pub fn database(&self) -> Option<&Arc<dyn DatabaseRecord>> {
        self.database.as_ref()
    }

    /// Returns `true` if there is a record: a file, or a database.
    pub fn has_record(&self) -> bool {
        self.database.is_some() || self.record().exists()
    }

    /// Stores the address of the database in which the record is, or that it is in the folder.
    ///
    /// # Errors
    /// If the folder cannot be written, and those of [`record_address`](Self::record_address).
    pub fn write_record_address(&self, address: Option<&str>) -> io::Result<()> {
        let file = self.path.join(RECORD_ADDRESS);
        let known = self.record_address()?;
        match address {
            Some(address) if known.as_deref() == Some(address) => Ok(()),
            Some(address) => state_file::replace(&file, format!("{address}\n").as_bytes()),
            None => match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            },
        }
    }

    /// Returns the address of the database in which the last gateway of the folder had its record; `None` if it was in the
    /// folder.
    ///
    /// # Errors
    /// If something else is in the place of the address: the record could be anywhere.
    pub fn record_address(&self) -> io::Result<Option<String>> {
        let file = self.path.join(RECORD_ADDRESS);
        let unreadable = |kind: io::ErrorKind, why: String| {
            let (folder, file) = (self.path.display(), file.display());
            let why = format!(
                "{file} should have the address of the record's database, and {why}; move it away if the record is in {folder}, else write \
                 the address into it as a file of yours"
            );
            io::Error::new(kind, why)
        };
        let text = match state_file::read_text(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => {
                read.map_err(|error| unreadable(error.kind(), format!("cannot be read ({error})")))?
            }
        };
        match text.trim() {
            "" => Err(unreadable(
                io::ErrorKind::InvalidData,
                "is empty".to_owned(),
            )),
            address => Ok(Some(address.to_owned())),
        }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the default path: `$MCP_ELICIT_STATE`, else the user's state folder.
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

    /// Returns `true` if a gateway, or a command for one, has used the folder.
    pub fn is_known(&self) -> bool {
        let mut files = OURS
            .iter()
            .chain(&["identity.key", "api.tokens", "inbox.presence"]);
        files.any(|name| self.path.join(name).exists())
    }

    /// Returns the path of the record of questions.
    pub fn record(&self) -> PathBuf {
        self.path.join(RECORD)
    }

    /// Returns the path of the key that seals values.
    pub fn seal(&self) -> PathBuf {
        self.path.join("seal.key")
    }

    /// Returns the path of the key of identities, which never changes.
    pub fn identity(&self) -> PathBuf {
        self.path.join("identity.key")
    }

    /// Returns the path of the lock files of running gateways.
    pub fn leases(&self) -> PathBuf {
        self.path.join("running")
    }

    /// Returns the paths of the record and its keys.
    pub fn key_files(&self) -> KeyFiles {
        KeyFiles {
            record: self.record(),
            seal: self.seal(),
            identity: self.identity(),
        }
    }

    /// Returns the API's token, and creates it if there is none. A file without a token is replaced, and that is
    /// logged: programs only have to read the new one.
    pub fn token(&self) -> io::Result<String> {
        match self.known_token() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                state_file::create_once(&self.token_file(), new_token()?.as_bytes())?;
                self.known_token()
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.rotate_token()?;
                tracing::warn!(file = %self.token_file().display(), "the file held no token, and a new one was made; programs that use the API have to read it again");
                self.known_token()
            }
            known => known,
        }
    }

    /// Returns the API's token as the gateway created it.
    pub fn known_token(&self) -> io::Result<String> {
        let token = state_file::read_text(&self.token_file())?.trim().to_owned();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if token.len() < 32 || !token.bytes().all(plain) {
            let why = "inbox.token holds no token; `mcp-elicit inbox rotate` makes a new one";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(token)
    }

    /// Replaces the API's token: the previous one no longer works.
    pub fn rotate_token(&self) -> io::Result<()> {
        state_file::replace(&self.token_file(), new_token()?.as_bytes())
    }

    /// Returns the path of the token.
    pub fn token_file(&self) -> PathBuf {
        self.path.join("inbox.token")
    }

    /// Returns the signed-in browsers.
    pub fn sessions(&self) -> SharedSessions {
        SharedSessions::of(self.shared.clone())
    }

    /// Returns the people who logged in, and their sessions.
    pub fn logins(&self) -> Logins {
        Logins::of(self.shared.clone())
    }

    /// Returns the path of the key that identifies the folder's gateways to push services.
    pub fn push_key(&self) -> PathBuf {
        self.path.join("push.key")
    }

    /// Returns the tokens created for programs.
    pub fn api_tokens(&self) -> ApiTokens {
        ApiTokens::new(self.tokens.clone())
    }

    /// Acquires the right to serve the inbox; `None` while another gateway has it.
    pub fn lock_inbox(&self) -> io::Result<Option<InboxLock>> {
        let file = state_file::open_private(&self.path.join("inbox.lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(InboxLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Returns the path of the API's socket.
    pub fn socket(&self) -> PathBuf {
        self.path.join("inbox.sock")
    }

    /// Stores the address of the inbox.
    pub fn write_inbox(&self, at: SocketAddr) -> io::Result<()> {
        let text = format!("http://{at}\n");
        state_file::replace(&self.path.join("inbox.address"), text.as_bytes())
    }

    /// Returns the address of the inbox, as stored by the last gateway that served it.
    pub fn inbox(&self) -> Option<String> {
        let text = state_file::read_text(&self.path.join("inbox.address")).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Stores the address at which people log in to the inbox, or that none do.
    pub fn write_people_inbox(&self, inbox: Option<&PeopleInbox>) -> io::Result<()> {
        let file = self.path.join("inbox.people");
        let Some(inbox) = inbox else {
            return match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        };
        let by = match inbox.by {
            LogInBy::Proxy => "proxy",
            LogInBy::Provider => "provider",
        };
        state_file::replace(&file, format!("{by} {}\n", inbox.address).as_bytes())
    }

    /// Returns the address at which people log in to the inbox, as stored by the last gateway that served it; `None` if
    /// the folder's owner is its only reader.
    pub fn people_inbox(&self) -> Option<PeopleInbox> {
        let text = state_file::read_text(&self.path.join("inbox.people")).ok()?;
        let (by, address) = text.trim().split_once(' ')?;
        let by = match by {
            "proxy" => LogInBy::Proxy,
            "provider" => LogInBy::Provider,
            _ => return None,
        };
        let address = address.to_owned();
        Some(PeopleInbox { address, by })
    }

    /// Removes the stored address of the inbox, because its gateway ends. Only the holder of the folder's inbox lock
    /// may call this.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn forget_inbox(&self, _lock: &InboxLock) -> io::Result<()> {
        for file in ["inbox.address", "inbox.people", "inbox.sock"] {
            match fs::remove_file(self.path.join(file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Returns the address at which the inbox is currently served; `None` if it is not. Other programs on its port do
    /// not count.
    pub async fn served_inbox(&self) -> Option<String> {
        if self.is_served().await {
            self.inbox()
        } else {
            None
        }
    }

    #[cfg(unix)]
    async fn is_served(&self) -> bool {
        super::socket::connect(&self.socket()).await.is_ok()
    }

    #[cfg(not(unix))]
    async fn is_served(&self) -> bool {
        let (Some(at), Ok(token)) = (self.inbox(), self.known_token()) else {
            return false;
        };
        match super::client::InboxClient::new(&at, token) {
            Ok(inbox) => inbox.page(false, None, 1).await.is_ok(),
            Err(_) => false,
        }
    }

    /// Returns the answers that count, as last set; any by default.
    pub fn presence(&self) -> io::Result<RequiredPresence> {
        match state_file::read_text(&self.path.join("inbox.presence")) {
            Ok(text) if text.trim() == "page" => Ok(RequiredPresence::Page),
            Ok(text) if text.trim() == "any" => Ok(RequiredPresence::Any),
            Ok(_) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "inbox.presence is neither `page` nor `any`",
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(RequiredPresence::Any),
            Err(error) => Err(error),
        }
    }

    /// Sets the answers that count, for every gateway and command of this folder from now on.
    pub fn set_presence(&self, presence: RequiredPresence) -> io::Result<()> {
        let word: &[u8] = match presence {
            RequiredPresence::Any => b"any\n",
            RequiredPresence::Page => b"page\n",
        };
        state_file::replace(&self.path.join("inbox.presence"), word)
    }
}

/// Rejects a folder in which another user has a file, or something else replaces one of our files: another program
/// could read or change its content, or block its readers.
fn refuse_replaced(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let known = match entry.metadata() {
            Ok(known) => known,
            // Another process has removed it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let kind = known.file_type();
        let is_named_as_ours = NAMES.iter().any(|known| name.starts_with(known));
        // A file system has folders of its own at its root.
        if is_named_as_ours || !kind.is_dir() {
            state_file::refuse_foreign(&path, &known)?;
        }
        if !is_named_as_ours {
            continue;
        }
        let fits = match &*name {
            "running" => kind.is_dir(),
            "inbox.sock" => !kind.is_symlink() && !kind.is_dir(),
            _ => kind.is_file(),
        };
        if !fits {
            let what = if kind.is_symlink() {
                "a symbolic link"
            } else if kind.is_dir() {
                "a folder"
            } else {
                "a pipe or a device"
            };
            let wanted = if name == "running" {
                "a folder"
            } else {
                "a file"
            };
            let why = format!(
                "{} is {what} in the place of {wanted}: move it away, and put back what belongs there",
                path.display()
            );
            return Err(io::Error::other(why));
        }
    }
    Ok(())
}

/// Returns the tables in this record that gateways and commands share.
pub(crate) fn tables(record: &Path) -> StateTables {
    StateTables::at(record)
        .with_earlier_file(sessions::EARLIER)
        .with_earlier_file(table::EARLIER)
}

fn new_token() -> io::Result<String> {
    Ok(format!(
        "{}{}",
        encryption::random_id()?,
        encryption::random_id()?
    ))
}

#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    if let Ok(known) = fs::metadata(path) {
        // Its owner can put anything into it, even if only root may otherwise.
        let ours = rustix::process::geteuid().as_raw();
        if known.uid() != ours {
            let why = format!(
                "{} belongs to another user (uid {}, and this is uid {ours}): run this as that user, or name another folder",
                path.display(),
                known.uid()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        if known.mode().trailing_zeros() >= 6 {
            return Ok(());
        }
        let is_ours = OURS.iter().any(|name| path.join(name).exists());
        let is_used = fs::read_dir(path)?.next().is_some();
        // Another gateway that starts at once may have closed it and begun to use it meanwhile.
        let is_open = |to: u32| fs::metadata(path).is_ok_and(|now| now.mode() & to != 0);
        if is_used && is_open(0o022) {
            let shown = path.display();
            let why = format!(
                "other users may write to it, and may have put things into it: look at `ls -la {shown}`, move away what you do not know, then \
                 run `chmod 700 {shown}`; or name another folder"
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        if !is_ours && is_used && is_open(0o077) {
            let why = format!(
                "other users may read it, and it has other things in it: run `chmod 700 {}`, or name another folder",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        tracing::warn!(folder = %path.display(), "the state folder was open to other users; it is its owner's only now");
        return Ok(());
    }
    state_file::create_folders(path)
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> io::Result<()> {
    state_file::create_folders(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_gateway_at_a_time_may_serve_the_inbox() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::at(folder.path());
        let lock = state.lock_inbox().unwrap();
        assert!(lock.is_some() && state.lock_inbox().unwrap().is_none());
        drop(lock);
        assert!(state.lock_inbox().unwrap().is_some());
    }

    #[test]
    fn a_token_is_kept_until_another_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::at(folder.path());
        let first = state.token().unwrap();
        assert_eq!(state.token().unwrap(), first);
        state.rotate_token().unwrap();
        assert_ne!(state.token().unwrap(), first);
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["inbox.token"], "nothing is left beside it");
        for damaged in ["", "short", "\u{e9}".repeat(40).as_str()] {
            fs::write(state.token_file(), damaged).unwrap();
            let refused = state.known_token().unwrap_err().to_string();
            assert!(refused.contains("inbox rotate"), "{refused}");
            let made = state.token().unwrap();
            assert_eq!((made.len(), state.known_token().unwrap()), (64, made));
        }
        fs::write(state.token_file(), [0xff; 40]).unwrap();
        assert_eq!(state.token().unwrap().len(), 64);
    }

    #[test]
    fn presence_is_what_was_set_last() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::at(folder.path());
        assert_eq!(state.presence().unwrap(), RequiredPresence::Any);
        state.set_presence(RequiredPresence::Page).unwrap();
        assert_eq!(state.presence().unwrap(), RequiredPresence::Page);
        state.set_presence(RequiredPresence::Any).unwrap();
        assert_eq!(state.presence().unwrap(), RequiredPresence::Any);
        fs::write(folder.path().join("inbox.presence"), "pag").unwrap();
        assert!(state.presence().is_err(), "never taken for `any`");
    }

    #[test]
    fn a_record_is_in_the_folder_only_if_no_address_was_noted() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::at(folder.path());
        let at = folder.path().join("record.address");
        let address = "postgres://elicit@db.example/elicit";
        assert_eq!(state.record_address().unwrap(), None);
        state.write_record_address(Some(address)).unwrap();
        assert_eq!(state.record_address().unwrap().as_deref(), Some(address));
        state.write_record_address(None).unwrap();
        assert_eq!(state.record_address().unwrap(), None);
        fs::create_dir(&at).unwrap();
        let refused = |content: Option<&[u8]>| {
            let refused = state.record_address().unwrap_err().to_string();
            assert!(
                refused.contains("record.address") && refused.contains("move it away"),
                "{refused}"
            );
            // A gateway leaves it as it is, wherever its own record is.
            for own in [None, Some(address)] {
                assert!(state.write_record_address(own).is_err(), "{own:?}");
            }
            assert_eq!(fs::read(&at).ok().as_deref(), content);
        };
        refused(None);
        fs::remove_dir(&at).unwrap();
        for content in [&b"\n"[..], b"postgres://\xff"] {
            fs::write(&at, content).unwrap();
            refused(Some(content));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_of_another_user_is_left_to_them() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let folder = tempfile::tempdir().unwrap();
        let theirs = folder.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o755)).unwrap();
        // Only root can make one.
        if std::os::unix::fs::chown(&theirs, Some(65_534), None).is_err() {
            return;
        }
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&theirs, &link).unwrap();
        for path in [&theirs, &link] {
            let refused = StateFolder::open(path).unwrap_err();
            assert!(refused.to_string().contains("uid 65534"), "{refused}");
        }
        assert_eq!(fs::metadata(&theirs).unwrap().mode() & 0o777, 0o755);
    }

    #[cfg(unix)]
    #[test]
    fn files_that_another_user_planted_are_refused() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        fs::create_dir(&path).unwrap();
        let set = |mode: u32| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        // A folder that others may write to is closed only if it is empty.
        for mode in [0o777, 0o775, 0o1777] {
            set(mode);
            StateFolder::open(&path).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
            for name in ["letter", "inbox.token", "seal.key"] {
                set(mode);
                fs::write(path.join(name), "k").unwrap();
                let refused = StateFolder::open(&path).unwrap_err().to_string();
                assert!(
                    refused.contains("may write to it")
                        && refused.contains(&format!("chmod 700 {}", path.display())),
                    "{refused}"
                );
                let now = fs::metadata(&path).unwrap().mode() & 0o7777;
                assert_eq!(now, mode, "it was left as it is");
                fs::remove_file(path.join(name)).unwrap();
            }
        }
        // A file of another user is still rejected after the folder is closed.
        set(0o700);
        for name in [
            "api.tokens",
            "inbox.token",
            "seal.key",
            "identity.key",
            "record.sqlite-wal",
            "inbox.lock",
            "letter",
        ] {
            let at = path.join(name);
            fs::write(&at, "k").unwrap();
            // Only root can make one.
            if std::os::unix::fs::chown(&at, Some(65_534), None).is_err() {
                return;
            }
            let refused = StateFolder::open(&path).unwrap_err().to_string();
            assert!(
                refused.contains(name) && refused.contains("uid 65534"),
                "{refused}"
            );
            // Commands that read the folder get the same error.
            let state = StateFolder::at(&path);
            match name {
                "inbox.token" => assert!(state.known_token().is_err() && state.token().is_err()),
                "inbox.lock" => assert!(state.lock_inbox().is_err()),
                _ => {}
            }
            fs::remove_file(&at).unwrap();
        }
        let running = path.join("running");
        fs::create_dir(&running).unwrap();
        std::os::unix::fs::chown(&running, Some(65_534), None).unwrap();
        let refused = StateFolder::open(&path).unwrap_err().to_string();
        assert!(refused.contains("running"), "{refused}");
        fs::remove_dir(&running).unwrap();
        // Folders with other names are not ours to check, such as a file system's lost+found.
        let lost = path.join("lost+found");
        fs::create_dir(&lost).unwrap();
        std::os::unix::fs::chown(&lost, Some(65_534), None).unwrap();
        StateFolder::open(&path).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn what_is_in_the_place_of_a_file_of_the_state_folder_is_refused_at_once() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let state = StateFolder::open(&path).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, "x".repeat(40)).unwrap();
        let pipe =
            |at: &Path| mknodat(CWD, at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        // A pipe among unfinished files, or beside our files, blocks nothing.
        pipe(&path.join("0123.new"));
        pipe(&path.join("notes"));
        StateFolder::open(&path).unwrap();
        for name in [
            "record.sqlite",
            "record.sqlite-wal",
            "seal.key",
            "identity.key",
            "record.address",
            "inbox.token",
            "inbox.address",
            "inbox.people",
            "inbox.lock",
            "inbox.logins",
            "inbox.sock",
            "api.tokens",
            "push.key",
            "running",
        ] {
            let at = path.join(name);
            symlink(&elsewhere, &at).unwrap();
            let refused = StateFolder::open(&path).unwrap_err().to_string();
            assert!(
                refused.contains(name) && refused.contains("a symbolic link"),
                "{refused}"
            );
            fs::remove_file(&at).unwrap();
            if name != "inbox.sock" {
                pipe(&at);
                let refused = StateFolder::open(&path).unwrap_err().to_string();
                assert!(
                    refused.contains(name) && refused.contains("a pipe"),
                    "{refused}"
                );
                fs::remove_file(&at).unwrap();
            }
        }
        // Commands that only read the folder, and those that run while it is in use, get the same error.
        symlink(&elsewhere, state.token_file()).unwrap();
        assert!(state.known_token().is_err() && state.token().is_err());
        for at in [path.join("inbox.lock"), path.join("record.sqlite")] {
            pipe(&at);
        }
        let refused = state.lock_inbox().unwrap_err().to_string();
        assert!(refused.contains("not a regular file"), "{refused}");
        assert!(state.logins().unbind("ada").is_err());
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "x".repeat(40));
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_for_other_things_is_not_taken_over() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let open = fs::Permissions::from_mode(0o755);
        let path = folder.path().join("other");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("letter"), "dear").unwrap();
        fs::set_permissions(&path, open.clone()).unwrap();
        let refused = StateFolder::open(&path).unwrap_err();
        assert!(refused.to_string().contains("chmod 700"), "{refused}");
        assert_eq!(mode(&path), 0o755, "it was left as it is");
        // One of ours is closed again, and so is an empty one.
        fs::write(path.join("seal.key"), "k").unwrap();
        StateFolder::open(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        let empty = folder.path().join("empty");
        fs::create_dir(&empty).unwrap();
        fs::set_permissions(&empty, open).unwrap();
        StateFolder::open(&empty).unwrap();
        assert_eq!(mode(&empty), 0o700);
        let new = folder.path().join("a/b");
        StateFolder::open(&new).unwrap();
        assert_eq!(mode(&new), 0o700);
    }
}
