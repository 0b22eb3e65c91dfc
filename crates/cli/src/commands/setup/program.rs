//! The program that is written into configuration files.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The name that files of a project get: they are shared, and a path is of one machine.
const SHARED: &str = "mcp-elicit";

/// The programs for files of a user and of a project.
pub(super) struct Programs {
    own: String,
    shared: String,
}

impl Programs {
    /// Returns the named program for all files; else this one, and its name in files of a project.
    pub(super) fn new(named: Option<&Path>) -> Result<Self, Failure> {
        if let Some(named) = named {
            let program = check(named)?;
            return Ok(Self {
                own: program.clone(),
                shared: program,
            });
        }
        let own = std::env::current_exe().map_err(|error| {
            Failure::usage("the path of this program is not known")
                .because(error)
                .hint("name it with `--program PATH`.")
        })?;
        if let Some(why) = passing(&own) {
            return Err(Failure::usage(format!(
                "this program is in {why}, which does not stay: {}",
                own.display()
            ))
            .hint("install it (docs/setup.md), or name the installed one with `--program PATH`."));
        }
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let link = link_to(&own, std::env::split_paths(&folders));
        Ok(Self {
            own: text(link.as_deref().unwrap_or(&own))?,
            shared: SHARED.to_owned(),
        })
    }

    /// Returns the program for a file.
    pub(super) fn of(&self, is_project: bool) -> &str {
        if is_project { &self.shared } else { &self.own }
    }
}

/// Returns the symbolic link to this program in one of the folders, if there is one: a package manager moves it to the next
/// version, whose file has another path.
fn link_to(program: &Path, folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let program = program.canonicalize().ok()?;
    let mut links = folders
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(SHARED));
    links.find(|link| {
        link.is_symlink()
            && link.canonicalize().is_ok_and(|real| real == program)
            && passing(link).is_none()
    })
}

fn text(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!("the path {} is not text in UTF-8", path.display()))
            .hint("move the program.")
    })
}

/// Checks a named program: a name that the PATH has, or the path of a program.
fn check(named: &Path) -> Result<String, Failure> {
    let is_name = named.components().count() == 1 && !named.is_absolute();
    let missing = |what: &str| {
        Failure::usage(format!("`--program {}`: {what}", named.display()))
            .hint("name the installed program `mcp-elicit` by its whole path.")
    };
    let path = if is_name {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let suffix = std::env::consts::EXE_SUFFIX;
        let spellings = [
            named.to_owned(),
            PathBuf::from(format!("{}{suffix}", named.display())),
        ];
        let mut found = std::env::split_paths(&folders)
            .flat_map(|folder| spellings.clone().map(|name| folder.join(name)));
        found
            .find(|path| path.is_file())
            .ok_or_else(|| missing("no such program on the PATH"))?
    } else {
        std::path::absolute(named)
            .map_err(|error| missing("its path is not known").because(error))?
    };
    if !path.is_file() {
        return Err(missing("there is no such file"));
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&path.metadata()?.permissions()) & 0o111 == 0 {
        return Err(missing("it may not be executed"));
    }
    let file = path.file_stem().and_then(|stem| stem.to_str());
    if file != Some("mcp-elicit") {
        // Another name would not be recognized at the next run.
        return Err(missing("its file is not called mcp-elicit"));
    }
    if is_name { text(named) } else { text(&path) }
}

/// Returns the kind of a folder whose programs are removed some day.
fn passing(program: &Path) -> Option<&'static str> {
    let names: Vec<_> = program
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    let has = |name: &str| names.iter().any(|one| one == name);
    let begins = |start: &str| names.iter().any(|one| one.starts_with(start));
    let build = program
        .parent()
        .is_some_and(|folder| folder.join("deps").is_dir() && folder.join(".fingerprint").is_dir());
    if build {
        Some("a build folder")
    } else if has("_npx") || begins("bunx-") || begins("dlx-") || has("dlx") {
        Some("the cache of npx")
    } else if has("uv") && begins("archive-v") || begins("environments-v") {
        Some("the cache of uvx")
    } else if program.starts_with(std::env::temp_dir()) {
        Some("a temporary folder")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_link_that_an_upgrade_moves_is_written() {
        let home = std::env::home_dir().unwrap();
        let folder = tempfile::tempdir_in(home).unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["v1", "bin", "other"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        let program = path("v1/mcp-elicit");
        std::fs::write(&program, "").unwrap();
        std::fs::write(path("other/mcp-elicit"), "").unwrap();
        std::os::unix::fs::symlink(&program, path("bin/mcp-elicit")).unwrap();
        let found = |folders: &[&str]| link_to(&program, folders.iter().map(|name| path(name)));
        assert_eq!(
            found(&["none", "other", "bin"]),
            Some(path("bin/mcp-elicit"))
        );
        assert_eq!(found(&["v1", "other"]), None);
    }

    #[test]
    fn caches_of_launchers_do_not_stay() {
        let passes = |path: &str| passing(Path::new(path));
        assert_eq!(
            passes("/home/me/.npm/_npx/0a1b/node_modules/@mcp-elicit/cli-linux-x64/bin/mcp-elicit"),
            Some("the cache of npx")
        );
        assert_eq!(
            passes("/home/me/.cache/pnpm/dlx/1/mcp-elicit"),
            Some("the cache of npx")
        );
        assert_eq!(
            passes("/home/me/.cache/uv/archive-v0/x/bin/mcp-elicit"),
            Some("the cache of uvx")
        );
        for stays in [
            "/usr/bin/mcp-elicit",
            "/home/me/.cargo/bin/mcp-elicit",
            "/usr/lib/node_modules/mcp-elicit/node_modules/@mcp-elicit/cli-linux-x64/bin/mcp-elicit",
            "/home/me/.local/share/uv/tools/mcp-elicit/bin/mcp-elicit",
        ] {
            assert_eq!(passes(stays), None, "{stays}");
        }
    }
}
