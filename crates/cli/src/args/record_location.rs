//! The options that say where a gateway's record is, for the commands that read or change it.

use std::path::{Path, PathBuf};

use clap::Args;
use mcp_elicit_gateway::config::{self, RecordDatabase};
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_record::state_file;

use super::gateway::{bad_config, record_database};
use crate::failure::Failure;
use crate::log;

/// The state folder of a gateway, and the database of its record if it is in one.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RecordLocation {
    /// The state folder of the gateway
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,

    /// The gateway's configuration, whose `state` and `record` are used
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,

    /// The database of the record, if it is in one: `postgres://USER@HOST:PORT/DATABASE`
    #[arg(long, value_name = "ADDRESS", global = true)]
    record: Option<String>,

    /// The file with the password of the database. Without it, PGPASSWORD or PGPASSFILE may have it
    #[arg(long, value_name = "FILE", global = true)]
    record_password_file: Option<PathBuf>,

    /// A program that prints the password of the database, with its arguments, quoted as in a shell
    #[arg(
        long,
        value_name = "COMMAND",
        global = true,
        conflicts_with = "record_password_file"
    )]
    record_password_command: Option<String>,
}

/// The place of a record, as options and the file name it.
#[derive(Debug)]
pub(crate) struct NamedLocation {
    /// The state folder, which need not exist.
    pub(crate) folder: PathBuf,
    /// The database of the record, if it is in one.
    pub(crate) database: Option<RecordDatabase>,
    /// The options that name the same place to another command, each with a space before it; empty for the default.
    pub(crate) options: String,
}

impl RecordLocation {
    /// Returns `true` if one of the options is given.
    #[cfg(feature = "full")]
    pub(crate) fn is_given(&self) -> bool {
        let paths = [&self.state, &self.config, &self.record_password_file];
        let texts = [&self.record, &self.record_password_command];
        texts.into_iter().any(Option::is_some) || paths.into_iter().any(Option::is_some)
    }

    /// Returns the configuration file, if one is named.
    pub(crate) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Returns the place that the options name, else the file.
    ///
    /// # Errors
    /// If the file or a password cannot be read, or there is no state folder.
    pub(crate) fn named(&self) -> Result<NamedLocation, Failure> {
        if self.record.is_some() || self.config.is_some() {
            log::show_warnings_of_record();
        }
        let text = self.config.as_deref().map(text_of).transpose()?;
        let of_file = text.as_deref().and_then(config::state_folder);
        let folder = self.state.clone().or(of_file).or_else(StateFolder::usual);
        let folder = folder.ok_or_else(|| {
            Failure::usage("there is no state folder")
                .hint("name the gateway's with `--state DIR`.")
        })?;
        let database = match (&self.record, &text) {
            (Some(address), _) => {
                let password = self.record_password_file.as_deref();
                let command = self.record_password_command.as_deref();
                Some(record_database(address, password, command)?)
            }
            (None, _)
                if self.record_password_file.is_some()
                    || self.record_password_command.is_some() =>
            {
                return Err(Failure::usage("a password is for a record in a database")
                    .hint("name it too: `--record postgres://USER@HOST:PORT/DATABASE`."));
            }
            (None, Some(text)) => config::record_database(text).map_err(|fault| {
                let shown = self.config.as_deref().unwrap_or_else(|| Path::new(""));
                Failure::usage(format!("{} cannot be used", shown.display())).because(fault)
            })?,
            (None, None) => None,
        };
        Ok(NamedLocation {
            folder,
            database,
            options: self.options(),
        })
    }

    fn options(&self) -> String {
        let path = |name: &str, path: &Option<PathBuf>| {
            let path = path.as_ref()?;
            Some(format!(" --{name} {}", path.display()))
        };
        let record = self.record.as_ref();
        [
            path("state", &self.state),
            path("config", &self.config),
            record.map(|address| format!(" --record {address}")),
            path("record-password-file", &self.record_password_file),
            self.record_password_command.as_ref().map(|command| {
                let command = shell_words::quote(command);
                format!(" --record-password-command {command}")
            }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Reads a configuration file.
///
/// # Errors
/// If it cannot be read, or is no TOML.
pub(crate) fn text_of(file: &Path) -> Result<String, Failure> {
    let shown = file.display();
    let text = state_file::read_named_text(file)
        .map_err(|error| Failure::usage(format!("{shown} cannot be read")).because(error))?;
    match config::check_toml(&text) {
        Ok(()) => Ok(text),
        Err(fault) => Err(bad_config(&shown.to_string(), &text, &fault).hint(format!(
            "correct it until `mcp-elicit gateway --config {shown} --check` finds nothing."
        ))),
    }
}
