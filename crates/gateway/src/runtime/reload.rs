//! Reloading of the configuration: all that a changed file says takes effect, or nothing of it.

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

use super::current_file::NextFile;
use super::inbox_location::INBOX_CHECK_INTERVAL;
use super::notifying::{NextChannels, next_channels};
use super::{
    Folder, Runtime, StartError, apply_presence, check_addresses, open_sign_ins, start_checks,
};
use crate::config::{Config, ConfigError, ConfiguredServer, FileSettings};
#[cfg(unix)]
use crate::config::{hide_userinfo, unset_variables};
use crate::current_rules::{CurrentRules, RulesChange, digest_of_rules, short_digest};

/// Reads the text of a file as the configuration of this gateway, with what its command line adds.
pub type ReadFile = dyn Fn(&str) -> Result<Config, ReloadError> + Send + Sync;

/// The reason why a reloaded configuration is not used.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It has errors.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The options that go with it have errors, or do not fit it.
    #[error("{why}")]
    Options {
        /// The errors.
        why: String,
    },
    /// It cannot be read.
    #[error("the configuration cannot be read")]
    Unreadable(#[from] std::io::Error),
    /// A part of it cannot be started, as at the start of a gateway.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A channel cannot be used, because one of its secrets is missing or wrong.
    #[error("a channel cannot be used: {}", with_causes(.0.as_ref()))]
    Channels(Box<dyn std::error::Error + Send + Sync>),
    /// It has the first rules, people or channels of a gateway that was started without any. Its open sessions have nothing
    /// by which their calls could be judged.
    #[error(
        "the gateway was started without rules, people and channels, and its open sessions would go on without them: the first ones need a restart"
    )]
    FirstTeams,
    /// Settings differ that a running gateway cannot change.
    #[error(
        "{} in the file differs from that of the running gateway, which keeps it: restart this gateway to apply the file",
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
    /// `true` if it has no rules, and the file before had some.
    pub lost_rules: bool,
    /// The names of the other settings that have changed, and taken effect.
    pub applied: Vec<String>,
}

/// A file that is about to take effect.
struct Prepared {
    teams: Option<(Arc<Rules>, NextChannels)>,
    file: NextFile,
    /// The names of the settings that have changed, besides those of the rules, people, groups, roles and channels.
    applied: Vec<String>,
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

    /// Applies a changed file: its rules, people, groups, roles, channels, servers, limits and times. Open questions keep
    /// their plan, and open sessions their server. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// If it has any error, a part of it cannot be started, or a setting differs that a running gateway cannot change: then
    /// everything stays as it is.
    pub async fn reload(&self, text: &str, read: &ReadFile) -> Result<Reloaded, ReloadError> {
        let _one_after_the_other = self.reloading.lock().await;
        let prepared = self.prepared(text, read).await;
        if let (Err(error), Some(teams)) = (&prepared, &self.teams) {
            let need_restart = match error {
                ReloadError::NeedsRestart { names } => names.clone(),
                _ => Vec::new(),
            };
            teams.tell(RulesEvent::Rejected {
                digest: teams.digest(),
                need_restart,
                gateway: self.gateway.to_string(),
            });
        }
        prepared.map(|next| self.apply(next))
    }

    /// Reads a file that is about to take effect, and starts what it needs. Nothing of it is in force yet.
    async fn prepared(&self, text: &str, read: &ReadFile) -> Result<Prepared, ReloadError> {
        // First, because the reader's warnings apply to the running gateway. If the file cannot be read, the reader says why.
        let changes = FileSettings::read(text)
            .map(|next| self.current.parts().settings.changes(&next))
            .unwrap_or_default();
        if !changes.fixed.is_empty() {
            let names = changes.fixed;
            return Err(ReloadError::NeedsRestart { names });
        }
        let mut config = read(text)?;
        check_addresses(&config)?;
        let teams = match (&self.teams, &config.teams) {
            (Some(_), rules) => {
                // A file without any has none, and nobody is asked.
                let rules = match rules {
                    Some(rules) => rules.clone(),
                    None => Arc::new(Rules::parse("").map_err(ConfigError::Rules)?),
                };
                let channels = next_channels(&config, &rules);
                let channels = channels.map_err(|error| ReloadError::Channels(Box::new(error)))?;
                Some((rules, channels))
            }
            (None, None) => None,
            (None, Some(_)) => return Err(ReloadError::FirstTeams),
        };
        // It is as it was, and the folder's may have been set by a command meanwhile.
        config.presence = None;
        apply_presence(&mut config, &self.folder)?;
        let is_changed = |server: &&ConfiguredServer| {
            let name = &server.settings.server;
            changes.concerns_server(name) || !self.current.parts().servers.contains_key(name)
        };
        open_sign_ins(config.servers.iter().filter(is_changed), &self.folder)?;
        let file = self.next_file(&config, |name| !changes.concerns_server(name))?;
        if config.listen.is_some() {
            start_checks::check_programs(config.servers.iter().filter(is_changed));
        }
        self.learning.replace(file.learning());
        if !config.in_memory {
            self.recall_learned().await;
        }
        Ok(Prepared {
            teams,
            file,
            applied: changes.applied,
        })
    }

    /// Puts a file into force. Nothing here can fail.
    fn apply(&self, next: Prepared) -> Reloaded {
        let Prepared {
            teams: next_teams,
            file,
            applied,
        } = next;
        let mut reloaded = Reloaded {
            rules_digest: None,
            counts: [0, 0, 0],
            is_unchanged: true,
            lost_rules: false,
            applied,
        };
        // At each moment, a call is judged at least as before or as afterwards: the sessions of servers that the file has
        // otherwise keep the rules of before, and new servers come after their rules.
        self.pin_rules(&file);
        if let (Some(teams), Some((rules, channels))) = (&self.teams, next_teams) {
            let (before, digest) = (teams.digest(), digest_of_rules(&rules));
            let (count, same_channels) = self.compare_channels(&channels);
            reloaded.is_unchanged = before == digest && same_channels;
            reloaded.lost_rules = rules.rules().is_empty() && !teams.rules().rules().is_empty();
            reloaded.counts = [rules.rules().len(), rules.people().people.len(), count];
            reloaded.rules_digest = Some(digest.clone());
            teams.tell(self.loaded(&rules, digest, Some(before), reloaded.applied.clone()));
            teams.replace(rules);
            self.replace_channels(channels);
        }
        self.replace_file(file);
        reloaded
    }

    /// Returns the event of rules that are loaded.
    fn loaded(
        &self,
        rules: &Rules,
        digest: String,
        before: Option<String>,
        settings: Vec<String>,
    ) -> RulesEvent {
        RulesEvent::Loaded {
            digest,
            before,
            rules: rules.rules().len(),
            settings,
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

    /// Reloads the file on each SIGHUP, which then no longer ends the gateway. Must be called in a tokio runtime.
    ///
    /// `read` reads its text as the configuration of this gateway.
    pub fn reload_on_signal(&self, path: PathBuf, read: Box<ReadFile>) {
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
                    runtime.reload_file(&path, &read).await;
                    if let Some(rules) = runtime.rules() {
                        too_few::warn(&runtime.record, &rules).await;
                    }
                }
            });
        }
        #[cfg(not(unix))]
        drop((path, read));
    }

    /// Returns `true` if SIGHUP is for [`Runtime::reload_on_signal`].
    pub(crate) fn reads_file_again(&self) -> bool {
        self.reads_again.load(Ordering::Relaxed)
    }

    #[cfg(unix)]
    async fn reload_file(&self, path: &std::path::Path, read: &ReadFile) {
        let (text, reloaded) = match read_file(path) {
            Ok(text) => {
                let reloaded = self.reload(&text, read).await;
                (text, reloaded)
            }
            Err(error) => (String::new(), Err(error.into())),
        };
        match reloaded {
            Err(error) => {
                let next = next_step(&error, path, &text);
                let error = in_words(&error);
                tracing::error!(%error, "the file was not applied, and everything stays as it was{next}");
            }
            Ok(reloaded) => {
                tracing::info!("{}", reloaded.in_words());
                if reloaded.lost_rules {
                    tracing::warn!(
                        "the file has no rules any more: every call is made, and its caller is asked what its server asks"
                    );
                }
            }
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
        ReloadError::Config(_) | ReloadError::Start(_) | ReloadError::Options { .. } => format!(
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
        if self.applied.is_empty() {
            return read;
        }
        let names = self.applied.join(", ");
        format!("{read}; these settings of it have changed, and are in force: {names}")
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
