//! The profiles of clients: those that come with the program, then files of the operator.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use mcp_elicit_clients::{ProfileError, Profiles};
use mcp_elicit_record::state_file;

use crate::failure::Failure;

/// The file of profiles in the user's configuration folder.
const FILE: &str = "profiles.toml";

/// Options for the profiles of clients.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProfileArgs {
    /// Read profiles of clients from this TOML file too [default: profiles.toml in the configuration folder
    /// ~/.config/mcp-elicit, if there is one]
    #[arg(long = "profiles", value_name = "FILE")]
    profiles: Option<PathBuf>,
}

impl ProfileArgs {
    /// Reads all profiles; those of a gateway's file, by its path and text, are the last.
    pub(crate) fn read(&self, gateway: Option<(&Path, &str)>) -> Result<Profiles, Failure> {
        let mut profiles = Profiles::default();
        let usual = folder().map(|folder| folder.join(FILE));
        for path in usual
            .iter()
            .filter(|path| path.exists())
            .chain(&self.profiles)
        {
            let text = state_file::read_named_text(path).map_err(|error| {
                Failure::usage(format!("cannot read {}", path.display())).because(error)
            })?;
            let added = profiles.add_file(path, &text);
            added.map_err(|error| unusable(path, &text, &error))?;
        }
        if let Some((path, text)) = gateway {
            let added = profiles.add_tables(path, text);
            added.map_err(|error| unusable(path, text, &error))?;
        }
        Ok(profiles)
    }
}

/// Returns the user's configuration folder of this program.
fn folder() -> Option<PathBuf> {
    let from = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    from("XDG_CONFIG_HOME")
        .or_else(|| from("APPDATA"))
        .or_else(|| from("HOME").map(|home| home.join(".config")))
        .map(|base| base.join("mcp-elicit"))
}

fn unusable(path: &Path, text: &str, error: &ProfileError) -> Failure {
    let shown = text.lines().nth(error.line() - 1).unwrap_or_default();
    let at = format!("{}:{}:{}", path.display(), error.line(), error.column());
    let lines = vec![shown.to_owned(), error.message().to_owned()];
    Failure::usage(format!("the profiles in {} cannot be used", path.display()))
        .telling(&at, lines)
        .hint("docs/design/client-profiles.md lists the keys.")
}

/// Reads a duration of the command line.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    mcp_elicit_clients::duration(text)
        .ok_or_else(|| "invalid duration; use 150ms, 5s or 2m".to_owned())
}
