//! Telling people of questions: a task that makes messages of what happened, sends them, and tries again what could not be sent. A
//! channel that fails holds up nothing but its own messages.

mod content;
mod plan;
mod send;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use mcp_elicit_channels::{Channels, OpenError, Surroundings};
use mcp_elicit_record::{Record, RecordError};

use crate::config::{ConfiguredChannels, zone_of};
use crate::runtime::Links;
use crate::teams::Teams;

/// The interval at which it is looked for messages that are due.
const INTERVAL: Duration = Duration::from_secs(1);
/// The time for which the record is left alone after it failed.
const PAUSE: Duration = Duration::from_secs(5);

/// Tells people of questions.
pub(crate) struct Notifier {
    record: Arc<Record>,
    teams: Arc<Teams>,
    config: Arc<ConfiguredChannels>,
    channels: Channels,
    links: Arc<Links>,
    zone: TimeZone,
}

impl Notifier {
    /// Opens the channels of a configuration, with secrets from the environment and from files.
    pub(crate) fn open(
        record: Arc<Record>,
        teams: Arc<Teams>,
        config: Arc<ConfiguredChannels>,
        links: Arc<Links>,
    ) -> Result<Self, OpenError> {
        let zone = zone_of(teams.rules().time_zone()).unwrap_or(TimeZone::UTC);
        let surroundings = Surroundings {
            env: &|name| std::env::var(name).ok(),
            zone: zone.clone(),
            preferences: None,
            slack_acts: false,
            vapid: None,
        };
        let channels = Channels::open(&config.tables, surroundings)?;
        Ok(Self {
            record,
            teams,
            config,
            channels,
            links,
            zone,
        })
    }

    /// Runs as long as the process does.
    pub(crate) async fn run(self) {
        let mut news = self.record.changes();
        loop {
            if let Err(fault) = self.round().await {
                tracing::warn!(%fault, "people could not be told of questions; it is tried again");
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
