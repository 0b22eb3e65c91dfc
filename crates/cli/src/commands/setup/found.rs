//! The configuration files on this machine, and those that a command line means.

use std::fs;
use std::path::{Path, PathBuf};

use mcp_elicit_core::fault::with_causes;
use mcp_elicit_setup::write::real_path;
use mcp_elicit_setup::{ClientFiles, Document, FileLocation, MAX_BYTES, PathFacts, System};

use crate::failure::Failure;
use crate::output::harmless;

/// A configuration file that exists.
pub(crate) struct FoundFile {
    pub(crate) client: &'static ClientFiles,
    /// The path that the client reads.
    pub(crate) path: PathBuf,
    /// The file itself, without symbolic links.
    pub(crate) real: PathBuf,
    pub(crate) is_project: bool,
    /// The file, or why it cannot be read.
    pub(crate) document: Result<Document, String>,
}

impl FoundFile {
    fn read(client: &'static ClientFiles, path: PathBuf, is_project: bool) -> Self {
        let (real, document) = match real_path(&path) {
            Ok(real) => {
                let document = read(client, &real);
                let folder = std::env::current_dir().ok().filter(|_| is_project);
                let document = match folder {
                    Some(folder) => document.map(|document| document.of_project(&folder)),
                    None => document,
                };
                (real, document)
            }
            Err(error) => (path.clone(), Err(with_causes(&error))),
        };
        Self {
            client,
            path,
            real,
            is_project,
            document,
        }
    }

    /// Returns the file as it is now.
    pub(super) fn read_again(&self) -> Self {
        Self::read(self.client, self.path.clone(), self.is_project)
    }
}

fn read(client: &'static ClientFiles, path: &Path) -> Result<Document, String> {
    let about = fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let bytes = if about.len() > MAX_BYTES as u64 {
        vec![0; MAX_BYTES + 1]
    } else {
        fs::read(path).map_err(|error| error.to_string())?
    };
    Document::read(client, &bytes).map_err(|error| error.to_string())
}

/// The clients and servers that a command line means.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) clients: Vec<&'static ClientFiles>,
    pub(crate) servers: Vec<String>,
}

impl Selection {
    /// Divides names into clients and servers.
    pub(crate) fn read(names: &[String]) -> Result<Self, Failure> {
        let mut selection = Self {
            clients: Vec::new(),
            servers: Vec::new(),
        };
        for name in names {
            match ClientFiles::find(name) {
                Some(client) => selection.clients.push(client),
                None if name.is_empty() => return Err(Failure::usage("a name is empty")),
                None => selection.servers.push(name.clone()),
            }
        }
        Ok(selection)
    }

    /// Returns `true` if a server is meant by its name.
    pub(crate) fn names(&self, server: &str) -> bool {
        self.servers.iter().any(|name| name == server)
    }

    /// Refuses a name that no file has.
    pub(crate) fn check(&self, found: &[FoundFile]) -> Result<(), Failure> {
        let documents = || found.iter().filter_map(|file| file.document.as_ref().ok());
        let has = |name: &str| {
            documents().any(|one| one.servers().iter().any(|server| server.name() == name))
        };
        let Some(unknown) = self.servers.iter().find(|name| !has(name)) else {
            return Ok(());
        };
        let mut known: Vec<String> = documents()
            .flat_map(|one| {
                one.servers()
                    .iter()
                    .map(|server| harmless(server.name()).into_owned())
            })
            .collect();
        known.sort();
        known.dedup();
        known.truncate(20);
        let clients: Vec<_> = ClientFiles::all().iter().map(ClientFiles::id).collect();
        let servers = if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(", ")
        };
        Err(Failure::usage(format!(
            "`{}` is neither a client nor a server in its files",
            harmless(unknown)
        ))
        .hint(format!(
            "servers here: {servers}; clients: {}.",
            clients.join(", ")
        )))
    }
}

/// Finds the files of the meant clients, or of all.
pub(crate) fn find(selection: &Selection) -> Result<Vec<FoundFile>, Failure> {
    let folder = std::env::current_dir().map_err(|error| {
        Failure::usage("the current folder cannot be read")
            .because(error)
            .hint("change to another folder.")
    })?;
    if System::current() != System::Windows
        && std::env::var_os("HOME").is_none_or(|home| home.is_empty())
    {
        return Err(
            Failure::usage("HOME is not set, so the files of clients cannot be found")
                .hint("set HOME to your home folder, then run this again."),
        );
    }
    let folder = folder.to_string_lossy();
    let variable = |name: &str| std::env::var(name).ok();
    let around = PathFacts {
        system: System::current(),
        variable: &variable,
        folder: &folder,
    };
    let mut found: Vec<FoundFile> = Vec::new();
    for client in ClientFiles::all() {
        if !selection.clients.is_empty()
            && !selection.clients.iter().any(|one| one.id() == client.id())
        {
            continue;
        }
        for FileLocation { path, is_project } in client.locations(&around) {
            for path in expand(&path) {
                let file = FoundFile::read(client, path, is_project);
                if !found.iter().any(|known| known.real == file.real) {
                    found.push(file);
                }
            }
        }
    }
    Ok(found)
}

/// Returns the paths that exist; `*` in one name stands for any characters.
fn expand(path: &str) -> Vec<PathBuf> {
    let Some((before, after)) = path.split_once('*') else {
        let path = PathBuf::from(path);
        return fs::symlink_metadata(&path)
            .is_ok()
            .then_some(path)
            .into_iter()
            .collect();
    };
    let (suffix, rest) = match after.find(['/', '\\']) {
        Some(at) => (&after[..at], after[at..].trim_start_matches(['/', '\\'])),
        None => (after, ""),
    };
    let mut paths: Vec<PathBuf> = fs::read_dir(before)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(suffix))
        .map(|entry| {
            if rest.is_empty() {
                entry.path()
            } else {
                entry.path().join(rest)
            }
        })
        .filter(|path| fs::symlink_metadata(path).is_ok())
        .collect();
    paths.sort();
    paths
}
