//! Reloading of the configuration: all of its rules, people, groups, roles and channels take effect, or none.

#[cfg(unix)]
mod too_few;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_elicit_core::fault::with_causes;
use mcp_elicit_policy::Rules;
use mcp_elicit_record::Record;
use mcp_elicit_record::team::RulesEvent;
use tokio::sync::mpsc;

use super::inbox_location::INBOX_CHECK_INTERVAL;
use super::notifying::{NextChannels, next_channels};
use super::{Folder, Runtime};
use crate::config::{Config, ConfigError, RestartSettings};
#[cfg(unix)]
use crate::config::{hide_userinfo, unset_variables};
use crate::current_rules::{CurrentRules, RulesChange, digest_of_rules, short_digest};

/// The reason why a reloaded configuration is not used.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It has errors.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It cannot be read.
    #[error("the configuration cannot be read")]
    Unreadable(#[from] std::io::Error),
    /// A channel cannot be used, because one of its secrets is missing or wrong.
    #[error("a channel cannot be used: {}", with_causes(.0.as_ref()))]
    Channels(Box<dyn std::error::Error + Send + Sync>),
    /// It no longer has rules, people, groups or roles.
    #[error(
        "the file has none of `[people]`, `[groups]`, `[roles]` and `[[rules]]` any more; put them back, or end the gateway and start it without them"
    )]
    NoTeams,
    /// It has the first rules, people or channels of a gateway that was started without any.
    #[error(
        "the gateway was started without rules, people and channels: the first ones need a restart"
    )]
    FirstTeams,
    /// Settings that rules depend on differ from the current ones.
    #[error(
        "{} in the file differs from that of the running gateway, and rules depend on it: restart the gateway to apply the file",
        .names.join(", ")
    )]
    NeedsRestart {
        /// The names of the settings.
        names: Vec<String>,
    },
}

/// A reloaded configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// The digest of its rules, which have taken effect with its people, groups, roles and channels; `None` if it has none.
    pub rules_digest: Option<String>,
    /// The numbers of rules, of people and of channels in it.
    pub counts: [usize; 3],
    /// `true` if its rules, people, groups, roles and channels are unchanged.
    pub is_unchanged: bool,
    /// The names of the settings that differ from the current ones, and need a restart.
    pub need_restart: Vec<String>,
}

impl Runtime {
    /// Applies the rules of a configuration, if it has any.
    pub(super) async fn start_teams(&mut self, config: &Config, folder: &Folder) {
        let Some(rules) = &config.teams else {
            return;
        };
        let key = self.record.identity_key().clone();
        let (teams, changes) =
            CurrentRules::new(rules.clone(), key, Arc::new(folder.state.logins()));
        teams.set_record(&self.record);
        let digest = digest_of_rules(rules);
        tracing::info!(
            rules = rules.rules().len(),
            digest = short_digest(&digest),
            "the rules are in force"
        );
        teams.tell(self.loaded(rules, digest, None, Vec::new()));
        tokio::spawn(write_changes(
            self.record.clone(),
            Arc::downgrade(&teams),
            changes,
        ));
        if !config.in_memory {
            let recalled = teams.recall_grants(&self.record);
            if let Ok(Err(fault)) = tokio::time::timeout(INBOX_CHECK_INTERVAL, recalled).await {
                // An error of the record is reported when it is first needed.
                tracing::warn!(%fault, "approvals that are still good could not be read: people are asked again");
            }
        }
        tokio::spawn(recall_grants(self.record.clone(), teams.clone()));
        self.teams = Some(teams);
    }

    /// Returns the current rules and people; `None` if the configuration has none.
    pub fn rules(&self) -> Option<Arc<Rules>> {
        Some(self.teams.as_ref()?.rules())
    }

    /// Applies the rules, people, groups, roles and channels of a reloaded configuration. Open questions keep their
    /// plan.
    ///
    /// # Errors
    /// If it has any error, a secret of a channel cannot be read, or a setting that rules depend on has changed: then
    /// everything stays as it is.
    pub fn reload(&self, text: &str) -> Result<Reloaded, ReloadError> {
        let Some(teams) = &self.teams else {
            return self.compare(text);
        };
        match self.next(text) {
            Ok((rules, channels, need_restart)) => {
                let (before, digest) = (teams.digest(), digest_of_rules(&rules));
                let (count, same_channels) = self.compare_channels(&channels);
                let is_unchanged = before == digest && same_channels;
                let counts = [rules.rules().len(), rules.people().people.len(), count];
                let event = self.loaded(&rules, digest.clone(), Some(before), need_restart.clone());
                teams.tell(event);
                teams.replace(rules);
                self.replace_channels(channels);
                Ok(Reloaded {
                    rules_digest: Some(digest),
                    counts,
                    is_unchanged,
                    need_restart,
                })
            }
            Err(error) => {
                teams.tell(RulesEvent::Rejected {
                    digest: teams.digest(),
                    gateway: self.gateway.to_string(),
                });
                Err(error)
            }
        }
    }

    /// Returns the event of rules that are loaded.
    fn loaded(
        &self,
        rules: &Rules,
        digest: String,
        before: Option<String>,
        need_restart: Vec<String>,
    ) -> RulesEvent {
        RulesEvent::Loaded {
            digest,
            before,
            rules: rules.rules().len(),
            need_restart,
            gateway: self.gateway.to_string(),
        }
    }

    /// Returns the number of the current rules and their digest, shortened for people; none of them without rules.
    pub(crate) fn rules_in_force(&self) -> (usize, String) {
        let Some(teams) = &self.teams else {
            return (0, String::new());
        };
        let digest = teams.digest();
        (
            teams.rules().rules().len(),
            short_digest(&digest).to_owned(),
        )
    }

    /// Reads a configuration that is about to take effect, and names its settings that need a restart.
    fn next(&self, text: &str) -> Result<(Arc<Rules>, NextChannels, Vec<String>), ReloadError> {
        // First, because the reader's warnings apply to the running gateway.
        let need_restart = match RestartSettings::read(text) {
            Some(settings) => {
                let found = self.restart_settings.differences(&settings);
                if !found.judging.is_empty() {
                    let names = found.judging;
                    return Err(ReloadError::NeedsRestart { names });
                }
                found.others
            }
            // The reader reports the error.
            None => Vec::new(),
        };
        let config = Config::parse(text)?;
        let rules = config.teams.clone().ok_or(ReloadError::NoTeams)?;
        let channels = next_channels(&config, &rules);
        let channels = channels.map_err(|error| ReloadError::Channels(Box::new(error)))?;
        Ok((rules, channels, need_restart))
    }

    /// Compares a configuration with that of a gateway which was started without rules, people and channels.
    fn compare(&self, text: &str) -> Result<Reloaded, ReloadError> {
        let config = Config::parse(text)?;
        if config.teams.is_some() {
            return Err(ReloadError::FirstTeams);
        }
        let found = self.restart_settings.differences(&config.restart_settings);
        let mut need_restart = found.judging;
        need_restart.extend(found.others);
        Ok(Reloaded {
            rules_digest: None,
            counts: [0, 0, 0],
            is_unchanged: true,
            need_restart,
        })
    }

    /// Reloads the file on each SIGHUP, which then no longer ends the gateway. Must be called in a tokio runtime.
    pub fn reload_on_signal(&self, path: PathBuf) {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let Ok(mut hangup) = signal(SignalKind::hangup()) else {
                tracing::error!("the gateway cannot listen for SIGHUP");
                return;
            };
            self.reads_again.store(true, Ordering::Relaxed);
            let runtime = self.clone();
            tokio::spawn(async move {
                while hangup.recv().await.is_some() {
                    runtime.reload_file(&path);
                    if let Some(rules) = runtime.rules() {
                        too_few::warn(&runtime.record, &rules).await;
                    }
                }
            });
        }
        #[cfg(not(unix))]
        drop(path);
    }

    /// Returns `true` if SIGHUP is for [`Runtime::reload_on_signal`].
    pub(crate) fn reads_file_again(&self) -> bool {
        self.reads_again.load(Ordering::Relaxed)
    }

    #[cfg(unix)]
    fn reload_file(&self, path: &std::path::Path) {
        let (text, reloaded) = match read_file(path) {
            Ok(text) => {
                let reloaded = self.reload(&text);
                (text, reloaded)
            }
            Err(error) => (String::new(), Err(error.into())),
        };
        match reloaded {
            Err(error) => {
                let next = next_step(&error, path, &text);
                let error = in_words(&error);
                tracing::error!(%error, "the file was not applied: the old rules, people and channels stay in force{next}");
            }
            Ok(reloaded) => tracing::info!("{}", reloaded.in_words()),
        }
    }
}

/// Returns the text of an error for the log, without the passwords of addresses.
#[cfg(unix)]
fn in_words(error: &ReloadError) -> String {
    hide_userinfo(&in_one_line(&with_causes(error)))
}

/// Returns a text of several lines as one, for the log.
#[cfg(unix)]
fn in_one_line(text: &str) -> String {
    let mut line = String::new();
    for part in text.lines().map(str::trim).filter(|part| !part.is_empty()) {
        if !line.is_empty() {
            line.push_str(if line.ends_with(':') { " " } else { "; " });
        }
        line.push_str(part);
    }
    line
}

/// Returns the next step if the file was not applied; empty for an error that contains it.
#[cfg(unix)]
fn next_step(error: &ReloadError, path: &std::path::Path, text: &str) -> String {
    let path = path.display();
    match error {
        ReloadError::Config(ConfigError::Rules(_)) => format!(
            "; correct {path} until `mcp-elicit rules check {path}` finds nothing, and send SIGHUP again"
        ),
        ReloadError::Config(_) => format!(
            "; correct {path} until `mcp-elicit gateway --config {path} --check` finds nothing, and send SIGHUP again"
        ),
        ReloadError::Channels(_) => match unset_variables(text).as_slice() {
            [] => format!("; correct {path} or the secret that it names, and send SIGHUP again"),
            unset => format!(
                "; a running gateway gets no new environment variables: set those of {path} ({}) and restart the gateway, or write each secret \
                 into a file, name it with {{ file = \"PATH\" }} and send SIGHUP again",
                unset.join(", ")
            ),
        },
        ReloadError::NoTeams => format!("; the file is {path}"),
        ReloadError::Unreadable(_) | ReloadError::FirstTeams | ReloadError::NeedsRestart { .. } => {
            String::new()
        }
    }
}

/// Reads the configuration. The error names the file, and the fix.
#[cfg(unix)]
fn read_file(path: &std::path::Path) -> std::io::Result<String> {
    mcp_elicit_record::state_file::read_named_text(path).map_err(|error| {
        let path = path.display();
        let why = format!("{path}: {error}; put the file there, and send SIGHUP again");
        std::io::Error::new(error.kind(), why)
    })
}

impl Reloaded {
    /// Returns the text for the log.
    #[cfg(unix)]
    fn in_words(&self) -> String {
        let read = if let Some(digest) = &self.rules_digest {
            let digest = short_digest(digest);
            let [rules, people, channels] = self.counts;
            let rules_word = if rules == 1 { "rule" } else { "rules" };
            let people_word = if people == 1 { "person" } else { "people" };
            let channels_word = if channels == 1 { "channel" } else { "channels" };
            let unchanged = if self.is_unchanged { ", unchanged" } else { "" };
            format!(
                "the rules were read again and are in force, with the channels: {rules} {rules_word}, {people} {people_word}, \
                 {channels} {channels_word}, digest {digest}{unchanged}"
            )
        } else {
            "the file was read again: it has no rules, people and channels".to_owned()
        };
        if self.need_restart.is_empty() {
            return read;
        }
        let names = self.need_restart.join(", ");
        format!("{read}; these settings of it differ, and need a restart: {names}")
    }
}

async fn write_changes(
    record: Arc<Record>,
    teams: Weak<CurrentRules>,
    mut changes: mpsc::UnboundedReceiver<RulesChange>,
) {
    while let Some(change) = changes.recv().await {
        let grant = change.grant().cloned();
        let written = change.write(&record).await;
        if let Some((grant, teams)) = grant.zip(teams.upgrade()) {
            let is_written = matches!(written, Ok(true));
            teams.grant_written(&grant, is_written);
        }
        if let Err(fault) = written {
            tracing::error!(%fault, "an event of the rules, or an approval, could not be written into the record");
        }
    }
}

/// The interval of checks for approvals of other gateways, and for those that a person ended.
const GRANTS_INTERVAL: Duration = Duration::from_secs(2);

/// Reads the approvals that other gateways on the same record store, and deletes expired and ended ones; only while a
/// rule has `good-for`. One that is ended here ends at once.
async fn recall_grants(record: Arc<Record>, teams: Arc<CurrentRules>) {
    let mut ended = record.ended_grants();
    loop {
        let _either = tokio::time::timeout(GRANTS_INTERVAL, ended.changed()).await;
        if !teams.keeps_grants() {
            continue;
        }
        if let Err(fault) = teams.recall_grants(&record).await {
            tracing::warn!(%fault, "approvals of other gateways could not be read");
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn mistakes_on_lines_of_their_own_are_one_line_of_the_log() {
        let text = "2 mistakes (line:column):\n  19:1: unknown key\n  20:1: unknown table";
        assert_eq!(
            in_one_line(text),
            "2 mistakes (line:column): 19:1: unknown key; 20:1: unknown table"
        );
    }

    #[test]
    fn a_mistake_is_logged_once_and_without_the_value_of_its_line() {
        let listen = "listen = \"127.0.0.1:0\"";
        for (lines, begin) in [
            (
                "record-password = \"sekret-1",
                "TOML parse error at line 2, column 28",
            ),
            (
                "[login]\nmode = \"oidc\"\nclient-secret = \"sekret\"\nclient-secret = \"sekret-2\"",
                "TOML parse error at line 5, column 1",
            ),
            (
                "public-url = \"https://me:sekret@a.example/x\"\n[servers.a]\nurl = \"https://a.example/mcp\"",
                "error at line 2",
            ),
        ] {
            let error = Config::parse(&format!("{listen}\n{lines}\n")).unwrap_err();
            let said = in_words(&ReloadError::from(error));
            assert!(said.starts_with(begin), "{said}");
            assert_eq!(said.matches(begin).count(), 1, "{said}");
            assert!(!said.contains("sekret"), "{said}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_again_is_named_with_the_next_step() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.toml");
        let failed = |path: &std::path::Path| {
            let error = ReloadError::from(read_file(path).unwrap_err());
            with_causes(&error)
        };
        let missing = failed(&path);
        std::fs::create_dir(&path).unwrap();
        for (told, at) in [
            (missing, &path),
            (failed(&path), &path),
            (failed("/dev/zero".as_ref()), &"/dev/zero".into()),
        ] {
            let begin = format!("the configuration cannot be read: {}: ", at.display());
            assert!(told.starts_with(&begin), "{told}");
            assert!(told.ends_with("and send SIGHUP again"), "{told}");
        }
        assert!(failed(&path).contains("it is not a regular file"));
    }
}
