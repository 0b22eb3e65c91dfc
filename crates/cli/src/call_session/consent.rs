//! The person's permissions for servers, kept in a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mcp_elicit_client::Consent;
use mcp_elicit_client::consent::ConsentError;
use mcp_elicit_client::dispatch::Observer;
use mcp_elicit_inbox::state_folder::StateFolder;

use crate::failure::Failure;
use crate::output;

/// The file that holds the policy.
#[derive(Debug, Clone)]
pub(crate) struct PolicyFile {
    /// The path.
    pub(crate) path: PathBuf,
    /// `true` if the person named the file. A named file must exist, since a misspelt name would restrict nothing.
    pub(crate) named: bool,
}

impl PolicyFile {
    /// Reads the policy. A default file that does not exist allows everything.
    pub(super) fn read(&self) -> Result<Consent, Failure> {
        let shown = self.path.display();
        let text = match fs::read_to_string(&self.path) {
            Err(error) if is_absent(&error) && !self.named => String::new(),
            Err(error) if is_absent(&error) => {
                return Err(Failure::usage(format!("the policy {shown} does not exist")).hint(
                    "check its name; an empty file allows everything and keeps what you decline from now on.",
                ));
            }
            Err(error) => {
                return Err(
                    Failure::usage(format!("cannot read the policy {shown}")).because(error)
                );
            }
            Ok(text) => text,
        };
        Consent::from_toml(&text).map_err(|error| {
            Failure::usage(format!("the policy {shown} cannot be used")).because(error)
        })
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn text_of(file: &Path) -> io::Result<String> {
    match fs::read_to_string(file) {
        Err(error) if is_absent(&error) => Ok(String::new()),
        read => read,
    }
}

/// Saves permanent declines in the policy file, or reports that none are saved.
pub(super) struct ConsentWriter {
    file: Option<PolicyFile>,
    server: String,
}

impl ConsentWriter {
    /// Creates a writer for decisions about `server`.
    pub(super) fn new(file: Option<PolicyFile>, server: String) -> Self {
        Self { file, server }
    }
}

impl Observer for ConsentWriter {
    fn consent_changed(&self, _: &Consent) {
        let Some(file) = self.file.as_ref().map(|file| &file.path) else {
            return output::say("every later question of this call is declined; nothing is saved");
        };
        match keep(file, &self.server) {
            Ok(()) => output::say(format_args!(
                "every later question of this server is declined, in later calls too; to be asked again, remove its table \
                 from {}",
                file.display()
            )),
            Err(error) => {
                let warning = output::styled(output::WARNING, "warning:");
                let file = file.display();
                output::say(format_args!(
                    "{warning} every later question of this call is declined, but it could not be saved in {file}: {error}"
                ));
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum SaveError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Policy(#[from] ConsentError),
}

/// Records in the policy file, as it is now, that `server` is declined.
fn keep(file: &Path, server: &str) -> Result<(), SaveError> {
    let text = text_of(file)?;
    let changed = declining(&text, server)?;
    if let Some(folder) = file.parent().filter(|folder| !folder.exists()) {
        StateFolder::open(folder)?;
    }
    // Written to a second file first, so that a crash leaves either the old policy or the new one.
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    fs::write(&beside, changed)?;
    fs::rename(&beside, file)?;
    Ok(())
}

/// Returns the policy `text` with `server` declined. The person's own text is unchanged if it has no table for the
/// server.
fn declining(text: &str, server: &str) -> Result<String, ConsentError> {
    let mut policy = Consent::from_toml(text)?;
    if policy.server.contains_key(server) {
        policy.decline_always(server);
        return policy.to_toml();
    }
    let mut word = Consent::default();
    word.decline_always(server);
    let gap = if text.is_empty() { "" } else { "\n" };
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    Ok(format!("{text}{end}{gap}{}", word.to_toml()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_wrote_stays_beside_the_new_word() {
        let written = "# mine\n[default]\nmodes = [\"form\"]";
        let changed = declining(written, "npx -y pushy").unwrap();
        assert!(changed.starts_with("# mine\n[default]"), "{changed}");
        assert_eq!(
            changed.lines().last(),
            Some("answer = \"decline\""),
            "{changed}"
        );
        let again = declining(&changed, "npx -y pushy").unwrap();
        for text in [&changed, &again] {
            let policy = Consent::from_toml(text).unwrap();
            assert!(policy.server["npx -y pushy"].answer.is_some());
            assert!(policy.default.modes.is_some());
        }
        assert!(declining("nonsense", "x").is_err());
    }
}
