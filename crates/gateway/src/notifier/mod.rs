//! Telling people of questions: a task that makes messages of what happened, sends them, and tries again what could not be sent. A
//! channel that fails holds up nothing but its own messages. Answers that people give in Slack come in here, too.

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
mod unreached;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use jiff::tz::TimeZone;
use mcp_elicit_channels::config::ChannelsConfig;
use mcp_elicit_channels::{Channels, OpenError, Surroundings};
use mcp_elicit_core::lifecycle::Timestamp;
use mcp_elicit_inbox::login::PushOffer;
use mcp_elicit_inbox::login::directory::Directory;
use mcp_elicit_policy::Rules;
use mcp_elicit_record::{Record, RecordError};

pub(crate) use self::content::PagesOnly;
use self::content::Summaries;
pub(crate) use self::push_devices::Devices;
pub(crate) use self::slack_acts::SlackPeople;
use crate::config::{ConfiguredChannels, zone_of};
use crate::runtime::Links;
use crate::teams::Teams;

/// The interval at which it is looked for messages that are due.
const INTERVAL: Duration = Duration::from_secs(1);
/// The time for which the record is left alone after it failed.
const PAUSE: Duration = Duration::from_secs(5);

/// The channels of a configuration, ready to send.
pub(crate) struct OpenChannels {
    tables: ChannelsConfig,
    channels: Channels,
    zone: TimeZone,
}

impl OpenChannels {
    /// Returns the people whom these rules ask and whom no channel can tell.
    pub(crate) fn without_address(&self, rules: &Rules) -> BTreeSet<String> {
        unreached::without_address(rules, &self.tables)
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

    /// Opens the channels of a configuration, with secrets from the environment and from files; none where it has none.
    pub(crate) fn open(
        config: Option<&ConfiguredChannels>,
        rules: &Rules,
    ) -> Result<Arc<Self>, OpenError> {
        let zone = zone_of(rules.time_zone()).unwrap_or(TimeZone::UTC);
        let surroundings = Surroundings {
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

/// Tells people of questions.
pub(crate) struct Notifier {
    record: Arc<Record>,
    teams: Arc<Teams>,
    summaries: Summaries,
    /// Replaced as a whole when the configuration is read again.
    open: RwLock<Arc<OpenChannels>>,
    is_running: AtomicBool,
    /// The time from which on Slack takes messages again, as it said last.
    slack_resumes: Mutex<Option<Timestamp>>,
    /// Web push, where the configuration has it.
    devices: Option<Arc<Devices>>,
}

impl Notifier {
    /// Creates what tells people through these channels. `links` gives the page of a question, `directory` the names of people as pages have
    /// them.
    pub(crate) fn new(
        record: Arc<Record>,
        teams: Arc<Teams>,
        open: Arc<OpenChannels>,
        links: Arc<Links>,
        pages_only: Arc<PagesOnly>,
        directory: Directory,
        devices: Option<Arc<Devices>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            summaries: Summaries::new(record.clone(), links, pages_only, directory),
            record,
            teams,
            open: RwLock::new(open),
            is_running: AtomicBool::new(false),
            slack_resumes: Mutex::default(),
            devices,
        })
    }

    /// Returns the channels in force.
    fn open(&self) -> Arc<OpenChannels> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&open)
    }

    /// Returns `true` if the channels in force have these tables.
    pub(crate) fn has_tables_of(&self, other: &OpenChannels) -> bool {
        self.open().tables == other.tables
    }

    /// Puts other channels in force. Messages that wait go through them, or fail where their channel is not among them.
    pub(crate) fn replace(&self, next: Arc<OpenChannels>) {
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    /// Returns what the pages need for web push, where it is configured.
    pub(crate) fn push_offer(&self) -> Option<PushOffer> {
        Some(self.devices.as_ref()?.offer())
    }

    /// Starts to tell people, where there is a channel and it has not been started. Runs in a tokio runtime.
    pub(crate) fn start(self: &Arc<Self>) {
        let has_channels = self.devices.is_some() || !self.open().channels.all().is_empty();
        if has_channels && !self.is_running.swap(true, Ordering::Relaxed) {
            tokio::spawn(Arc::clone(self).run());
        }
    }

    /// Runs as long as the process does.
    async fn run(self: Arc<Self>) {
        let mut news = self.record.changes();
        loop {
            if let Err(fault) = self.round().await {
                tracing::warn!(%fault, "people could not be notified of questions; the gateway tries again");
                tokio::time::sleep(PAUSE).await;
            }
            tokio::select! {
                seen = news.changed() => if seen.is_err() { return },
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    /// Makes the messages of what happened, and sends those that are due.
    async fn round(&self) -> Result<(), RecordError> {
        while self.plan().await? {}
        while self.send().await? {}
        Ok(())
    }
}
