//! Paths that a folder of the project can replace, and variables that put other code into the gateway or in its place.

use std::path::{Path, PathBuf};

/// The facts about a client's paths.
#[derive(Clone, Copy, Default)]
pub(crate) struct Paths<'a> {
    /// The spellings of the person's home that the client replaces. Others, such as `~`, are names of folders to it.
    pub(crate) homes: &'a [String],
    /// The folder of the project whose file it is.
    pub(crate) project: Option<&'a Path>,
}

impl Paths<'_> {
    /// Returns `true` for a path that begins at the root, on Unix or Windows, or in the person's home.
    pub(crate) fn is_whole(self, path: &str) -> bool {
        let is_drive = |drive: &[u8]| matches!(drive, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
        let in_home = |home: &String| {
            let rest = path.strip_prefix(home.as_str());
            rest.is_some_and(|rest| rest.starts_with(['/', '\\']))
        };
        path.starts_with(['/', '\\']) || is_drive(path.as_bytes()) || self.homes.iter().any(in_home)
    }

    /// Returns `true` for a path that leads to the same file wherever the client starts, outside the project.
    pub(crate) fn is_fixed(self, path: &str) -> bool {
        self.is_whole(path)
            && !is_view_of_process(path)
            && !self.project.is_some_and(|folder| is_in(folder, path))
    }

    /// Returns `true` for a list of folders of which one depends on the folder that the program is started in: a relative
    /// one, one that is left empty, or one of the kernel's views of a process.
    fn leads_elsewhere(self, folders: &str) -> bool {
        let is_windows = folders.contains(';') || folders.contains(":\\");
        let separator = if is_windows { ';' } else { ':' };
        // `${env:PATH}` has the separator in it.
        let mut rest = folders.to_owned();
        for home in self.homes.iter().filter(|home| home.contains("HOME")) {
            rest = rest.replace(&home.replace("HOME", "PATH"), "/usual");
            rest = rest.replace(home.as_str(), "/home");
        }
        rest.split(separator).any(|folder| !self.is_fixed(folder))
    }
}

/// Returns `true` for a path in this folder, also through a link.
pub(crate) fn is_in(folder: &Path, path: &str) -> bool {
    let path = Path::new(path);
    let real = |path: &Path| -> Option<PathBuf> {
        let mut above = path.ancestors();
        // Of a file that is not there yet, the folder counts.
        above.find_map(|path| path.canonicalize().ok())
    };
    path.starts_with(folder)
        || path.is_absolute()
            && folder
                .canonicalize()
                .is_ok_and(|folder| real(path).is_some_and(|path| path.starts_with(folder)))
}

/// Returns `true` for a path through which the kernel shows a process, such as the folder that it was started in.
pub(crate) fn is_view_of_process(path: &str) -> bool {
    let mut parts = path.split(['/', '\\']).filter(|part| !part.is_empty());
    path.starts_with(['/', '\\'])
        && parts
            .next()
            .is_some_and(|first| ["proc", "dev"].contains(&first))
}

/// The beginnings of variables that let a package runner, or the interpreter of one, run other code or ask another registry.
const OF_RUNNERS: [&str; 17] = [
    "NPM_",
    "PNPM_",
    "YARN_",
    "BUN_",
    "COREPACK_",
    "NODE_",
    "UV_",
    "PIP_",
    "PIPX_",
    "PYTHON",
    "RUBY",
    "PERL5",
    "BASH_",
    "GIT_",
    "OPENSSL_",
    "SSL_CERT_",
    "VIRTUAL_ENV",
];

/// Whole names of such variables.
const NAMES_OF_RUNNERS: [&str; 5] = ["ENV", "SHELL", "PREFIX", "COMSPEC", "PATHEXT"];

/// Variables of runners that change only what is shown, or how long it takes.
const HARMLESS: [&str; 19] = [
    "NODE_ENV",
    "NODE_NO_WARNINGS",
    "NPM_CONFIG_AUDIT",
    "NPM_CONFIG_COLOR",
    "NPM_CONFIG_FUND",
    "NPM_CONFIG_LOGLEVEL",
    "NPM_CONFIG_PREFER_OFFLINE",
    "NPM_CONFIG_PROGRESS",
    "NPM_CONFIG_UPDATE_NOTIFIER",
    "NPM_CONFIG_YES",
    "UV_NO_PROGRESS",
    "UV_OFFLINE",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_NO_INPUT",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "GIT_TERMINAL_PROMPT",
];

/// Variables with folders in which a runner finds its settings.
const HOMES_OF_RUNNERS: [&str; 8] = [
    "HOME",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
];

/// Returns `true` for a variable of the loader that puts code into every program, or leads it to other libraries.
fn is_of_loader(name: &str) -> bool {
    name.starts_with("LD_") || name.starts_with("DYLD_") || name == "GCONV_PATH"
}

/// Returns `true` for a variable with which a package runner runs other code, whatever its value is.
fn is_of_runner(name: &str) -> bool {
    (NAMES_OF_RUNNERS.contains(&name) || OF_RUNNERS.iter().any(|start| name.starts_with(start)))
        && !HARMLESS.contains(&name)
}

/// Returns `true` for a variable that can lead to another program of the same name, or put code into it.
pub(crate) fn changes_programs(variable: &str) -> bool {
    let name = variable.to_ascii_uppercase();
    let name = name.as_str();
    name == "PATH" || is_of_loader(name) || is_of_runner(name) || HOMES_OF_RUNNERS.contains(&name)
}

/// Returns `true` for a variable that puts code into the gateway or its launcher, or leads to a program of the same name in
/// a folder of the project.
pub(crate) fn is_foreign(
    launcher: &[String],
    program: &str,
    (name, value): (&str, &str),
    paths: Paths<'_>,
) -> bool {
    let first = launcher.first().map_or(program, String::as_str);
    let is_by_name = !first.contains(['/', '\\']);
    let is_launched = !launcher.is_empty();
    let name = name.to_ascii_uppercase();
    match name.as_str() {
        // A launcher searches it too, by whatever path it is started.
        "PATH" => (is_by_name || is_launched) && paths.leads_elsewhere(value),
        "NODE_OPTIONS" => is_launched && loads_code(value),
        name if is_of_loader(name) => {
            if name.ends_with("_PATH") {
                !value.is_empty() && paths.leads_elsewhere(value)
            } else {
                ["LD_PRELOAD", "LD_AUDIT"].contains(&name) || name.starts_with("DYLD_")
            }
        }
        name if HOMES_OF_RUNNERS.contains(&name) => is_launched && paths.leads_elsewhere(value),
        name => is_launched && is_of_runner(name),
    }
}

/// Returns `true` for options of Node that load code or settings, however they are quoted.
fn loads_code(options: &str) -> bool {
    let long = ["require", "import", "loader", "config", "env-file"];
    let mut words = options.split_whitespace();
    long.iter().any(|word| options.contains(word))
        || words.any(|word| word.trim_matches(['"', '\'']).starts_with("-r"))
}
