//! The messages to people of a running gateway, and the address for their answers in Slack.

use std::sync::Arc;

use axum::Router;
use jiff::tz::TimeZone;
use mcp_elicit_channels::ChannelOpenError;
use mcp_elicit_inbox::login::directory::Directory;
use mcp_elicit_inbox::login::table::Logins;
use mcp_elicit_inbox::login::{LoginSettings, PushOffer};
use mcp_elicit_inbox::state_folder::RequiredPresence;
use mcp_elicit_policy::Rules;
use mcp_elicit_record::clock;

use super::inbox_location::ExtraRoutes;
use super::{Folder, Runtime, StartError};
use crate::config::{Config, zone_of};
use crate::current_rules::CurrentRules;
use crate::notifier::{Notifier, OpenChannels, PushDevices, SlackPeople};

/// The channels of a configuration that is about to take effect.
pub(super) type NextChannels = Arc<OpenChannels>;

/// The age at which claims no longer count, if people do not log in.
const STALE: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// Opens the channels of a configuration.
pub(super) fn next_channels(
    config: &Config,
    rules: &Rules,
) -> Result<NextChannels, ChannelOpenError> {
    OpenChannels::open(config.channels.as_deref(), rules)
}

/// Opens web push to the devices of people, where people log in.
fn devices(
    config: &Config,
    folder: &Folder,
    rules: &Rules,
) -> Result<Option<Arc<PushDevices>>, StartError> {
    let tables = config.channels.as_ref().map(|channels| &channels.tables);
    let Some(push) = tables.and_then(|tables| tables.push.as_ref()) else {
        return Ok(None);
    };
    if config.login.is_none() {
        tracing::warn!(
            "[channels.push]: web push notifies no one, because people add their devices where they log in, and there is no [login]"
        );
        return Ok(None);
    }
    let zone = zone_of(rules.time_zone()).unwrap_or(TimeZone::UTC);
    let opened = PushDevices::open(push, &folder.state, zone);
    opened
        .map(Some)
        .map_err(|error| StartError::Channels(Box::new(error)))
}

/// Returns the people of the current rules, with the data of their logins.
fn directory(
    teams: &Arc<CurrentRules>,
    login: Option<&LoginSettings>,
    logins: Logins,
) -> Directory {
    let (issuer, stale) = match login {
        Some(login) => (login.issuer().to_owned(), login.stale),
        None => (String::new(), STALE),
    };
    let teams = teams.clone();
    let rules = Arc::new(move || teams.rules());
    Directory::new(rules, Arc::new(logins), issuer, stale, clock::now)
}

impl Runtime {
    /// Opens the channels, if there are rules, without starting to notify.
    pub(super) fn open_notifier(
        &mut self,
        config: &Config,
        folder: &Folder,
    ) -> Result<(), StartError> {
        let Some(teams) = &self.teams else {
            return Ok(());
        };
        let open = next_channels(config, &teams.rules());
        let open = open.map_err(|error| StartError::Channels(Box::new(error)))?;
        for person in open.without_address(&teams.rules()) {
            tracing::warn!(
                %person,
                "a rule asks somebody who has no address on any channel: they are told of nothing; add `mail` to [people.NAME], or a channel"
            );
        }
        let directory = directory(teams, config.login.as_ref(), folder.state.logins());
        {
            let now = directory.now();
            let people = now.people_with_members();
            for group in open.groups_without_members(&teams.rules(), &people) {
                tracing::warn!(
                    %group,
                    "a rule asks a group of which nobody has logged in yet, and which has no channel: nobody is told; give it a channel, or let its members log in once"
                );
            }
        }
        let state = folder.state.clone();
        let pages_only = move || match state.presence() {
            Ok(presence) => presence == RequiredPresence::Page,
            Err(error) => {
                tracing::error!(%error, "who may answer cannot be read, so only pages may");
                true
            }
        };
        let notifier = Notifier::new(
            self.record.clone(),
            teams.clone(),
            open,
            self.links(),
            Arc::new(pages_only),
            directory,
            devices(config, folder, &teams.rules())?,
        );
        self.notifier = Some(notifier);
        Ok(())
    }

    /// Returns the data for web push on the pages, if it is configured.
    pub(super) fn push_offer(&self) -> Option<PushOffer> {
        self.notifier.as_ref()?.push_offer()
    }

    /// Starts to notify people of questions, if the configuration has channels.
    pub(super) fn start_notifier(&self) {
        if let Some(notifier) = &self.notifier {
            notifier.start();
        }
    }

    /// Returns the number of these channels, and `true` if the current ones have the same tables.
    pub(super) fn compare_channels(&self, next: &NextChannels) -> (usize, bool) {
        let notifier = self.notifier.as_ref();
        let is_same = notifier.is_none_or(|notifier| notifier.has_tables_of(next));
        (next.count(), is_same)
    }

    /// Replaces the channels after the configuration was read again.
    pub(super) fn replace_channels(&self, next: NextChannels) {
        if let Some(notifier) = &self.notifier {
            notifier.replace(next);
            notifier.start();
        }
    }

    /// Returns a function that creates the address for Slack, anew each time that this process begins to serve the
    /// inbox.
    pub(super) fn extra_routes(&self, config: &Config, folder: &Folder) -> ExtraRoutes {
        let (notifier, teams) = (self.notifier.clone(), self.teams.clone());
        let (login, folder) = (config.login.clone(), folder.state.clone());
        Arc::new(move || {
            let (Some(notifier), Some(teams)) = (&notifier, teams.clone()) else {
                return Router::new();
            };
            let allow = login.as_ref().map(|login| login.allow.clone());
            let allow = allow.unwrap_or_default();
            let directory = directory(&teams, login.as_ref(), folder.logins());
            notifier.slack_route(SlackPeople { directory, allow })
        })
    }
}
