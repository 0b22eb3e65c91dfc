//! Notification of people: a task that creates messages from events, sends them, and retries failures. A failing
//! channel delays only its own messages. Answers from Slack arrive here, too.

mod content;
mod plan;
mod push_devices;
mod send;
mod slack_acts;
mod slack_route;
#[cfg(test)]
mod slack_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod timing_tests;
pub(crate) mod unreached;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::tz::TimeZone;
use mcp_elicit_channels::config::ChannelsConfig;
use mcp_elicit_channels::{ChannelContext, ChannelOpenError, Channels};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_inbox::login::PushOffer;
use mcp_elicit_inbox::login::directory::Directory;
use mcp_elicit_policy::{People, Rules};
use mcp_elicit_record::{Record, RecordError};
use tokio::task::{JoinError, JoinSet};

pub(crate) use self::content::PagesOnly;
use self::content::Summaries;
pub(crate) use self::push_devices::PushDevices;
pub(crate) use self::slack_acts::SlackPeople;
use crate::config::{ConfiguredChannels, zone_of};
use crate::current_rules::CurrentRules;
use crate::replaceable::Replaceable;
use crate::runtime::QuestionLinks;

/// The interval of checks for due messages.
const INTERVAL: Duration = Duration::from_secs(1);
/// The pause after an error of the record.
const PAUSE: Duration = Duration::from_secs(5);

/// The channels of a configuration, ready to send.
pub(crate) struct OpenChannels {
    tables: ChannelsConfig,
    channels: Channels,
    zone: TimeZone,
}

impl OpenChannels {
    /// Returns the people whom these rules ask and whom no channel reaches.
    pub(crate) fn without_address(&self, rules: &Rules) -> BTreeSet<String> {
        unreached::without_address(rules, &self.tables)
    }

    /// Returns the groups that these rules ask, of which nobody can be told: they have no channel and no known member.
    pub(crate) fn groups_without_members(
        &self,
        rules: &Rules,
        people: &People,
    ) -> BTreeSet<String> {
        unreached::groups_without_channel(rules, people, &self.tables)
    }

    /// Returns the number of channels in the tables; each webhook is one.
    pub(crate) fn count(&self) -> usize {
        let tables = &self.tables;
        let single = [
            tables.mail.is_some(),
            tables.slack.is_some(),
            tables.teams.is_some(),
            tables.push.is_some(),
        ];
        single.into_iter().filter(|is_there| *is_there).count() + tables.webhooks.len()
    }

    /// Opens the channels of a configuration, with secrets from the environment and from files; none if it has none.
    pub(crate) fn open(
        config: Option<&ConfiguredChannels>,
        rules: &Rules,
    ) -> Result<Arc<Self>, ChannelOpenError> {
        let zone = zone_of(rules.time_zone()).unwrap_or(TimeZone::UTC);
        let surroundings = ChannelContext {
            env: &|name| std::env::var(name).ok(),
            zone: zone.clone(),
            preferences: None,
            slack_acts: true,
            vapid: None,
        };
        let tables = config.map(|config| config.tables.clone());
        let tables = tables.unwrap_or_default();
        let channels = Channels::open(&tables, surroundings)?;
        Ok(Arc::new(Self {
            tables,
            channels,
            zone,
        }))
    }
}

/// The notifier of people.
pub(crate) struct Notifier {
    record: Arc<Record>,
    teams: Arc<CurrentRules>,
    summaries: Summaries,
    /// Replaced completely when the configuration is read again.
    open: Replaceable<OpenChannels>,
    is_running: AtomicBool,
    /// The time from which Slack accepts messages again, as it said last.
    slack_resumes: Mutex<Option<Timestamp>>,
    /// The channels, and the devices of web push, with groups of messages in transit, and their number.
    ways: Mutex<BTreeMap<String, usize>>,
    /// Web push, if configured.
    devices: Option<Arc<PushDevices>>,
}

impl Notifier {
    /// Creates a notifier for these channels. `links` returns the page of a question, `directory` the names of people
    /// as pages show them.
    pub(crate) fn new(
        record: Arc<Record>,
        teams: Arc<CurrentRules>,
        open: Arc<OpenChannels>,
        links: Arc<QuestionLinks>,
        pages_only: Arc<PagesOnly>,
        directory: Directory,
        devices: Option<Arc<PushDevices>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            summaries: Summaries::new(record.clone(), links, pages_only, directory),
            record,
            teams,
            open: Replaceable::new(open),
            is_running: AtomicBool::new(false),
            slack_resumes: Mutex::default(),
            ways: Mutex::default(),
            devices,
        })
    }

    /// Returns the current channels.
    fn open(&self) -> Arc<OpenChannels> {
        self.open.get()
    }

    /// Returns `true` if the current channels have these tables.
    pub(crate) fn has_tables_of(&self, other: &OpenChannels) -> bool {
        self.open().tables == other.tables
    }

    /// Replaces the channels. Waiting messages use the new ones, or fail if their channel is not among them.
    pub(crate) fn replace(&self, next: Arc<OpenChannels>) {
        self.open.set(next);
    }

    /// Returns the data for web push on the pages, if it is configured.
    pub(crate) fn push_offer(&self) -> Option<PushOffer> {
        Some(self.devices.as_ref()?.offer())
    }

    /// Starts the task, if there is a channel and it is not running. Must be called in a tokio runtime.
    pub(crate) fn start(self: &Arc<Self>) {
        let has_channels = self.devices.is_some() || !self.open().channels.all().is_empty();
        if has_channels && !self.is_running.swap(true, Ordering::Relaxed) {
            tokio::spawn(Arc::clone(self).run());
        }
    }

    /// Runs as long as the process.
    async fn run(self: Arc<Self>) {
        let mut news = self.record.changes();
        let mut sending = JoinSet::new();
        loop {
            let mut begun = self.begin_round(&mut sending).await;
            while let Some(sent) = sending.try_join_next() {
                begun = begun.and(result_of(sent));
            }
            if let Err(fault) = begun {
                tracing::warn!(%fault, "people could not be notified of questions; the gateway tries again");
                tokio::time::sleep(PAUSE).await;
            }
            tokio::select! {
                seen = news.changed() => if seen.is_err() { return },
                Some(sent) = sending.join_next() => if let Err(fault) = result_of(sent) {
                    tracing::warn!(%fault, "a message could not be noted; the gateway tries again");
                    tokio::time::sleep(PAUSE).await;
                },
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    /// Creates the messages for new events, and begins to send the due ones.
    async fn begin_round(
        self: &Arc<Self>,
        sending: &mut JoinSet<Result<(), RecordError>>,
    ) -> Result<(), RecordError> {
        while self.plan().await? {}
        while self.send(sending).await? {}
        Ok(())
    }

    /// Creates the messages for new events, and sends the due ones to the end.
    #[cfg(test)]
    async fn round(self: &Arc<Self>) -> Result<(), RecordError> {
        let mut sending = JoinSet::new();
        loop {
            self.begin_round(&mut sending).await?;
            if sending.is_empty() {
                return Ok(());
            }
            while let Some(sent) = sending.join_next().await {
                result_of(sent)?;
            }
        }
    }
}

/// Returns the result of a task that sends. One that panicked has said so, and its messages are sent again later.
fn result_of(sent: Result<Result<(), RecordError>, JoinError>) -> Result<(), RecordError> {
    sent.unwrap_or(Ok(()))
}
