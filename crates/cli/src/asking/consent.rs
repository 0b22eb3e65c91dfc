//! What the person allows servers, kept in a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mcp_elicit_client::Consent;
use mcp_elicit_client::consent::ConsentDefect;
use mcp_elicit_client::desk::Observer;

use crate::failure::Failure;
use crate::screen;

/// The policy in `file`. A file that is not there yet allows everything, which is said: the name may be misspelt.
pub(super) fn read(file: &Path) -> Result<Consent, Failure> {
    if !file.exists() {
        screen::say(format_args!(
            "{} {} is not there yet, so nothing is restricted",
            screen::styled(screen::WARNING, "warning:"),
            file.display()
        ));
    }
    let text = text_of(file).map_err(|error| {
        Failure::usage(format!("cannot read {}", file.display())).because(error)
    })?;
    Consent::from_toml(&text).map_err(|error| {
        Failure::usage(format!("{} cannot be used", file.display())).because(error)
    })
}

fn text_of(file: &Path) -> io::Result<String> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

/// Keeps a decline for good, and says so where nothing keeps it.
pub(super) struct Keeper {
    file: Option<PathBuf>,
    server: String,
}

impl Keeper {
    /// Keeps what is said of `server`.
    pub(super) fn new(file: Option<PathBuf>, server: String) -> Self {
        Self { file, server }
    }
}

impl Observer for Keeper {
    fn consent_changed(&self, _: &Consent) {
        let Some(file) = &self.file else {
            return screen::say(
                "declined until this call ends; with `--consent FILE` it is kept for good",
            );
        };
        match keep(file, &self.server) {
            Ok(()) => screen::say(format_args!(
                "declined for good, as {} says",
                file.display()
            )),
            Err(error) => {
                let warning = screen::styled(screen::WARNING, "warning:");
                let file = file.display();
                screen::say(format_args!(
                    "{warning} that it is declined for good could not be written into {file}: {error}"
                ));
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum NotKept {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Policy(#[from] ConsentDefect),
}

/// Writes into the policy, as it is in the file now, that `server` is declined.
fn keep(file: &Path, server: &str) -> Result<(), NotKept> {
    let text = text_of(file)?;
    let changed = declining(&text, server)?;
    // Beside it first, so that a crash leaves the old policy or the new one.
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    fs::write(&beside, changed)?;
    fs::rename(&beside, file)?;
    Ok(())
}

/// The policy `text` with `server` declined. What a person wrote stays as it is where the server has no table yet.
fn declining(text: &str, server: &str) -> Result<String, ConsentDefect> {
    let mut policy = Consent::from_toml(text)?;
    if policy.server.contains_key(server) {
        policy.decline_from_now_on(server);
        return policy.to_toml();
    }
    let mut word = Consent::default();
    word.decline_from_now_on(server);
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
