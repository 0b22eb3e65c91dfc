//! The configuration files of clients, as data: their paths on each system, and the names of a server's members.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::environment::Paths;
use crate::parse::FileFormat;

/// The table that comes with the program; a test reads it.
static TABLE: LazyLock<Vec<ClientFiles>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        client: Vec<ClientFiles>,
    }
    let table = toml::from_str(include_str!("clients.toml"));
    table.map_or_else(|_| Vec::new(), |table: Table| table.client)
});

/// An operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux, and other Unixes.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl System {
    /// Returns the system of this program.
    pub const fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }
}

/// The facts that the paths of files depend on.
pub struct PathFacts<'a> {
    /// The system.
    pub system: System,
    /// A variable of the environment; an empty one counts as not set.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The current folder, for the files of a project.
    pub folder: &'a str,
}

/// A client and its files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClientFiles {
    id: String,
    name: String,
    pub(crate) format: FileFormat,
    pub(crate) servers: Vec<Vec<String>>,
    next: String,
    base: Option<Base>,
    #[serde(default)]
    pub(crate) entry: EntryMembers,
    time_limit: Option<TimeLimit>,
    file: Vec<PathsBySystem>,
}

/// A folder that a variable may name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Base {
    variable: String,
    path: String,
}

/// The names of the members of a server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct EntryMembers {
    pub(crate) command: String,
    /// `true` if the command is a list that holds the arguments too.
    pub(crate) command_is_list: bool,
    pub(crate) args: String,
    pub(crate) env: String,
    pub(crate) url: String,
    /// The address of a server of HTTP+SSE, the transport before Streamable HTTP.
    pub(crate) sse_url: Option<String>,
    pub(crate) headers: String,
    /// Variables that hold the values of headers, by the header's name.
    pub(crate) header_variables: Option<String>,
    /// The variable that holds a bearer token.
    pub(crate) token_variable: Option<String>,
    /// The variables of the client that a server gets.
    pub(crate) passed_variables: Option<String>,
    /// The value of `type` for a program.
    pub(crate) stdio_type: Option<String>,
    /// The member that names a file with more variables.
    pub(crate) env_file: Option<String>,
    /// The spellings of the person's home that the client replaces in commands and variables.
    pub(crate) homes: Vec<String>,
}

impl EntryMembers {
    /// Returns what is known of the client's paths.
    pub(crate) fn paths(&self) -> Paths<'_> {
        Paths {
            homes: &self.homes,
            project: None,
        }
    }
}

impl Default for EntryMembers {
    fn default() -> Self {
        Self {
            command: "command".to_owned(),
            command_is_list: false,
            args: "args".to_owned(),
            env: "env".to_owned(),
            url: "url".to_owned(),
            sse_url: None,
            headers: "headers".to_owned(),
            header_variables: None,
            token_variable: None,
            passed_variables: None,
            stdio_type: None,
            env_file: None,
            homes: Vec::new(),
        }
    }
}

/// The time after which a client gives up a call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeLimit {
    pub(crate) member: String,
    /// The unit of its number.
    pub(crate) milliseconds: u64,
    /// The number that applies without it.
    pub(crate) default: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PathsBySystem {
    all: Option<String>,
    linux: Option<String>,
    macos: Option<String>,
    windows: Option<String>,
    #[serde(default)]
    project: bool,
}

/// The path of a file that a client may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLocation {
    /// The path, in which `*` stands for any one name.
    pub path: String,
    /// `true` for a file of a project, which others may share.
    pub is_project: bool,
}

impl ClientFiles {
    /// Returns all clients.
    pub fn all() -> &'static [Self] {
        &TABLE
    }

    /// Returns the client with this short name.
    pub fn find(id: &str) -> Option<&'static Self> {
        Self::all().iter().find(|client| client.id == id)
    }

    /// Returns its short name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what to do after a change.
    pub fn next_step(&self) -> &str {
        &self.next
    }

    pub(crate) fn time_limit(&self) -> Option<&TimeLimit> {
        self.time_limit.as_ref()
    }

    /// Returns the paths of its files. A path that needs a folder which the environment does not name is left out.
    pub fn locations(&self, around: &PathFacts<'_>) -> Vec<FileLocation> {
        let located = self.file.iter().filter_map(|file| {
            let of_system = match around.system {
                System::Linux => &file.linux,
                System::MacOs => &file.macos,
                System::Windows => &file.windows,
            };
            let template = of_system.as_ref().or(file.all.as_ref())?;
            Some(FileLocation {
                path: self.fill(template, around)?,
                is_project: file.project,
            })
        });
        located.collect()
    }

    fn fill(&self, template: &str, around: &PathFacts<'_>) -> Option<String> {
        let variable = |name: &str| (around.variable)(name).filter(|value| !value.is_empty());
        let home = || match around.system {
            System::Windows => variable("USERPROFILE").or_else(|| variable("HOME")),
            System::Linux | System::MacOs => variable("HOME"),
        };
        let Some((start, rest)) = template.split_once('}') else {
            return Some(template.to_owned());
        };
        let folder = match start {
            "{home" => home()?,
            "{folder" => around.folder.to_owned(),
            "{config" => match variable("XDG_CONFIG_HOME") {
                Some(folder) if around.system != System::Windows => folder,
                _ => home()? + "/.config",
            },
            "{appdata" => match variable("APPDATA") {
                Some(folder) => folder,
                None => home()? + "/AppData/Roaming",
            },
            "{support" => home()? + "/Library/Application Support",
            "{base" => {
                let base = self.base.as_ref()?;
                match variable(&base.variable) {
                    Some(folder) => folder,
                    None => self.fill(&base.path, around)?,
                }
            }
            _ => return None,
        };
        let path = folder + rest;
        Some(match around.system {
            System::Windows => path.replace('/', "\\"),
            System::Linux | System::MacOs => path,
        })
    }
}
