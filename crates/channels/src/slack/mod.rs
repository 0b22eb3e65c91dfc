//! Slack: a message with buttons or a modal, and the resulting actions.
//!
//! | module | contents |
//! | --- | --- |
//! | `message` | the message that asks, and its state after the end |
//! | `modal` | the modal of a form, and the draft that it submits |
//! | [`interact`] | Slack's requests |
//! | `people` | the person of a Slack user |
//! | `signature` | signatures of requests and of our notes in views |
//! | `api` | requests to Slack |
//! | `text` | plain texts and their limits |

mod api;
pub mod interact;
mod message;
mod modal;
mod people;
mod signature;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::{Value, json};
use url::Url;

use self::api::Api;
pub use self::interact::{ActionRefusal, Done, SlackInteractions, SlackReply, SlackRequest};
use self::message::{Offers, SlackMessage};
use self::people::KnownUsers;
pub use self::people::SlackUser;
use self::signature::Signer;
use crate::channel::{Channel, ChannelError, MessageRef, NotSentReason, SendFuture, Updated};
use crate::config::SlackConfig;
use crate::http::ChannelHttpError;
use crate::notice::{Notice, Recipient};
use crate::secret::SecretText;

/// The address of the Web API.
const API: &str = "https://slack.com/api/";
/// The time limit for an action, so that Slack gets its response within three seconds.
const ACT_LIMIT: Duration = Duration::from_millis(2_500);
/// The longest name of a message that is kept, in bytes: Slack's have about 30.
const LONGEST_REF: usize = 256;

/// A Slack app in one workspace.
pub struct Slack {
    api: Api,
    /// `None` if messages only link to the inbox.
    signer: Option<Signer>,
    team: String,
    options_url: bool,
    mention: bool,
    groups: BTreeMap<String, String>,
    zone: TimeZone,
    users: KnownUsers,
    act_limit: Duration,
}

/// A Slack app that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SlackError {
    /// The address of the Web API.
    #[error("the address of Slack's API is not usable")]
    Url,
    /// The HTTP client.
    #[error(transparent)]
    Http(#[from] ChannelHttpError),
}

impl Slack {
    /// Creates the app of a configuration, with its bot token and its signing secret. Without the latter messages only
    /// link to the inbox.
    pub fn new(
        config: &SlackConfig,
        token: SecretText,
        signing_secret: Option<SecretText>,
        zone: TimeZone,
    ) -> Result<Self, SlackError> {
        let base = match &config.api {
            Some(api) => api.clone(),
            None => Url::parse(API).map_err(|_| SlackError::Url)?,
        };
        Ok(Self {
            api: Api::new(base, token)?,
            signer: signing_secret.map(Signer::new),
            team: config.team.clone(),
            options_url: config.options_url,
            mention: config.mention,
            groups: config.groups.clone(),
            zone,
            users: KnownUsers::default(),
            act_limit: ACT_LIMIT,
        })
    }

    /// Makes messages only link to the inbox, if the requests of [`interact`](Self::interact) are not served.
    #[must_use]
    pub fn links_only(mut self) -> Self {
        self.signer = None;
        self
    }

    /// Returns `true` if people can answer in Slack: its requests can be verified.
    pub const fn takes_acts(&self) -> bool {
        self.signer.is_some()
    }

    /// Sets the time limit for an action, after which the person sees that it is being saved.
    #[must_use]
    pub fn act_limit(mut self, limit: Duration) -> Self {
        self.act_limit = limit;
        self
    }

    async fn post(&self, notice: &Notice) -> Result<MessageRef, ChannelError> {
        let channel = match &notice.to {
            Recipient::Group(group) => self.groups.get(group).cloned(),
            Recipient::Person {
                mail: Some(mail), ..
            } => {
                let found = self
                    .api
                    .look_up("users.lookupByEmail", "email", mail)
                    .await?;
                found["user"]["id"].as_str().map(str::to_owned)
            }
            _ => None,
        };
        let channel = channel.ok_or(ChannelError::Permanent(NotSentReason::Address))?;
        let body = self.body(&channel, notice);
        let sent = self.api.call("chat.postMessage", &body).await?;
        name_of(&sent).ok_or(ChannelError::Permanent(NotSentReason::Reply))
    }

    fn body(&self, channel: &str, notice: &Notice) -> Value {
        let SlackMessage { text, mut blocks } = message::message(notice, self.offers(), &self.zone);
        let is_of_group = matches!(notice.to, Recipient::Group(_));
        if self.mention && is_of_group && notice.event.asks_to_act() {
            message::add_mention(&mut blocks);
        }
        json!({
            "channel": channel,
            "text": text,
            "blocks": blocks,
            "parse": "none",
            "unfurl_links": false,
            "unfurl_media": false,
        })
    }

    const fn offers(&self) -> Offers {
        Offers {
            acts: self.takes_acts(),
            options_url: self.options_url,
        }
    }

    async fn change(&self, sent: &MessageRef, notice: &Notice) -> Result<Updated, ChannelError> {
        let place = sent.0.split_once('/');
        let (channel, ts) = place.ok_or(ChannelError::Permanent(NotSentReason::Address))?;
        let SlackMessage { text, blocks } = message::message(notice, self.offers(), &self.zone);
        let body =
            json!({"channel": channel, "ts": ts, "text": text, "blocks": blocks, "parse": "none"});
        self.api.call("chat.update", &body).await?;
        Ok(Updated::Changed)
    }
}

impl Channel for Slack {
    fn name(&self) -> &'static str {
        "slack"
    }

    fn reaches(&self, notice: &Notice) -> bool {
        match &notice.to {
            Recipient::Person { mail, .. } => mail.is_some(),
            Recipient::Group(group) => self.groups.contains_key(group),
            Recipient::Device(_) | Recipient::Endpoint => false,
        }
    }

    fn send<'a>(&'a self, notice: &'a Notice) -> SendFuture<'a, MessageRef> {
        Box::pin(self.post(notice))
    }

    fn update<'a>(&'a self, sent: &'a MessageRef, notice: &'a Notice) -> SendFuture<'a, Updated> {
        Box::pin(self.change(sent, notice))
    }
}

/// Returns the name of a message that was posted, if the reply has one.
fn name_of(reply: &Value) -> Option<MessageRef> {
    let (channel, ts) = (reply["channel"].as_str()?, reply["ts"].as_str()?);
    let name = format!("{channel}/{ts}");
    (name.len() <= LONGEST_REF).then_some(MessageRef(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_message_is_short_text() {
        let name = |channel: &str| name_of(&json!({"channel": channel, "ts": "1.2"}));
        assert_eq!(name("C1"), Some(MessageRef("C1/1.2".to_owned())));
        assert_eq!(name(&"C".repeat(300)), None);
        assert_eq!(name_of(&json!({"channel": 1, "ts": "1.2"})), None);
    }
}
