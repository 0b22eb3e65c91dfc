//! The channels of a configuration, ready to send.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::tz::TimeZone;
use url::Url;

use crate::channel::Channel;
use crate::config::ChannelsConfig;
use crate::http::{ChannelHttpError, Networks};
use crate::mail::{Mail, MailError};
use crate::microsoft_teams::{MicrosoftTeams, TeamsError};
use crate::push::{Push, VapidKey};
use crate::secret::{SecretError, SecretSource, SecretText};
use crate::slack::{Slack, SlackError};
use crate::webhook::{WebhookChannel, WebhookChannelError};

/// The channels of a gateway, ready to send.
#[derive(Clone, Default)]
pub struct Channels {
    /// Mail, which alone sends digests.
    pub mail: Option<Arc<Mail>>,
    /// Slack, which also accepts actions.
    pub slack: Option<Arc<Slack>>,
    /// Teams.
    pub teams: Option<Arc<MicrosoftTeams>>,
    /// Web push; its public key is used by the pages.
    pub push: Option<Arc<Push>>,
    /// Webhooks.
    pub webhooks: Vec<Arc<WebhookChannel>>,
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.all();
        let names = names.iter().map(|channel| channel.name().to_owned());
        f.debug_list().entries(names).finish()
    }
}

/// The environment of channels.
pub struct ChannelContext<'a> {
    /// Returns environment variables.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The zone of times in messages.
    pub zone: TimeZone,
    /// The page on which people configure their messages.
    pub preferences: Option<Url>,
    /// `true` if requests of Slack are served; otherwise its messages only link to the inbox.
    pub slack_acts: bool,
    /// The key for web push. Without one there is no web push.
    pub vapid: Option<VapidKey>,
}

/// A channel that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ChannelOpenError {
    /// A secret.
    #[error("[channels.{0}]: {1}")]
    Secret(String, #[source] SecretError),
    /// Mail.
    #[error("[channels.mail]")]
    Mail(#[source] MailError),
    /// Slack.
    #[error("[channels.slack]")]
    Slack(#[source] SlackError),
    /// Teams.
    #[error("[channels.teams]")]
    Teams(#[source] TeamsError),
    /// A webhook.
    #[error("[channels.webhook.{0}]")]
    Webhook(String, #[source] WebhookChannelError),
    /// Web push.
    #[error("[channels.push]")]
    Push(#[source] ChannelHttpError),
}

impl Channels {
    /// Opens the channels: reads their secrets, without connecting yet.
    pub fn open(
        config: &ChannelsConfig,
        surroundings: ChannelContext<'_>,
    ) -> Result<Self, ChannelOpenError> {
        let ChannelContext {
            env,
            zone,
            preferences,
            slack_acts,
            vapid,
        } = surroundings;
        let read = |table: &str, secret: &SecretSource| {
            let failed = |error| ChannelOpenError::Secret(table.to_owned(), error);
            secret.read(env).map_err(failed)
        };
        let mut channels = Self::default();
        if let Some(config) = &config.mail {
            let password = config.password.as_ref();
            let password = password.map(|secret| read("mail", secret)).transpose()?;
            let mail = Mail::new(config, password.as_ref()).map_err(ChannelOpenError::Mail)?;
            let mail = mail.zone(zone.clone());
            channels.mail = Some(Arc::new(match preferences {
                Some(page) => mail.preferences(page),
                None => mail,
            }));
        }
        if let Some(config) = &config.slack {
            let token = read("slack", &config.token)?;
            let signing = config.signing_secret.as_ref();
            let signing = signing.map(|secret| read("slack", secret)).transpose()?;
            let slack = Slack::new(config, token, signing, zone.clone());
            let slack = slack.map_err(ChannelOpenError::Slack)?;
            channels.slack = Some(Arc::new(if slack_acts {
                slack
            } else {
                slack.links_only()
            }));
        }
        if let Some(config) = &config.teams {
            let urls = config.groups.iter();
            let urls = urls.map(|(group, secret)| Ok((group.clone(), read("teams", secret)?)));
            let urls: BTreeMap<String, SecretText> =
                urls.collect::<Result<_, ChannelOpenError>>()?;
            let teams =
                MicrosoftTeams::new(&urls, zone.clone()).map_err(ChannelOpenError::Teams)?;
            channels.teams = Some(Arc::new(teams));
        }
        for (name, config) in &config.webhooks {
            let table = format!("webhook.{name}");
            let secrets = [Some(&config.secret), config.old_secret.as_ref()];
            let secrets = secrets.into_iter().flatten();
            let secrets: Vec<_> = secrets
                .map(|secret| read(&table, secret))
                .collect::<Result<_, _>>()?;
            let webhook = WebhookChannel::new(name, config, &secrets);
            let webhook =
                webhook.map_err(|error| ChannelOpenError::Webhook(name.clone(), error))?;
            channels.webhooks.push(Arc::new(webhook));
        }
        if let (Some(config), Some(key)) = (&config.push, vapid) {
            let networks = if config.allow_private {
                Networks::Any
            } else {
                Networks::Public
            };
            let push = Push::new(config, key, networks, zone).map_err(ChannelOpenError::Push)?;
            channels.push = Some(Arc::new(push));
        }
        Ok(channels)
    }

    /// Returns every channel.
    pub fn all(&self) -> Vec<Arc<dyn Channel>> {
        let mut all: Vec<Arc<dyn Channel>> = Vec::new();
        all.extend(self.mail.clone().map(|channel| channel as _));
        all.extend(self.slack.clone().map(|channel| channel as _));
        all.extend(self.teams.clone().map(|channel| channel as _));
        all.extend(self.push.clone().map(|channel| channel as _));
        let webhooks = self.webhooks.iter().cloned();
        all.extend(webhooks.map(|channel| channel as Arc<dyn Channel>));
        all
    }

    /// Returns the channel of that name.
    pub fn named(&self, name: &str) -> Option<Arc<dyn Channel>> {
        self.all()
            .into_iter()
            .find(|channel| channel.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use mcp_elicit_policy::Rules;

    use super::*;
    use crate::config;

    const FILE: &str = r#"
[groups]
ops = { claim = "ops" }
[channels.mail]
smtp = "smtps://mail.example.com"
from = "gateway@example.com"
password = { env = "SECRET" }
[channels.slack]
token = { env = "SECRET" }
signing-secret = { env = "SECRET" }
team = "T1"
[channels.teams]
groups = { ops = { env = "TEAMS" } }
[channels.push]
contact = "mailto:gateway@example.com"
[channels.webhook.siem]
url = "https://siem.example.com"
secret = { env = "HOOK" }
"#;

    fn open(env: &dyn Fn(&str) -> Option<String>) -> Result<Channels, ChannelOpenError> {
        let rules = Rules::parse(FILE).unwrap();
        let config = config::parse(FILE, rules.people()).unwrap();
        let key = VapidKey::generate().unwrap();
        let surroundings = ChannelContext {
            env,
            zone: TimeZone::UTC,
            preferences: None,
            slack_acts: true,
            vapid: Some(VapidKey::from_pkcs8(&key).unwrap()),
        };
        Channels::open(&config, surroundings)
    }

    #[test]
    fn channels_are_opened_with_their_secrets() {
        let env = |name: &str| {
            let text = match name {
                "TEAMS" => "https://example.com/workflow",
                "HOOK" => "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                "SECRET" => "s3cret",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let channels = open(&env).unwrap();
        assert_eq!(
            format!("{channels:?}"),
            r#"["mail", "slack", "teams", "push", "webhook.siem"]"#
        );
        assert!(channels.named("webhook.siem").is_some());
        assert!(channels.named("webhook").is_none());
        for (missing, table) in [
            ("SECRET", "mail"),
            ("TEAMS", "teams"),
            ("HOOK", "webhook.siem"),
        ] {
            let without = |name: &str| env(name).filter(|_| name != missing);
            let error = open(&without).unwrap_err().to_string();
            assert!(error.contains(&format!("[channels.{table}]")), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
        let plain = |name: &str| match name {
            "TEAMS" => Some("http://example.com/".to_owned()),
            name => env(name),
        };
        assert!(matches!(open(&plain), Err(ChannelOpenError::Teams(_))));
    }
}
