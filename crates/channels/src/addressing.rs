//! The recipients of a message: people on their own channels, groups on their channels, and webhooks.

use std::collections::BTreeSet;

use mcp_elicit_policy::people::{Addressee, People};

use crate::config::ChannelsConfig;
use crate::notice::{QuestionEvent, Recipient};
use crate::push::Subscription;

/// A message to be sent: the channel by name, and the recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageTarget {
    /// `mail`, `slack`, `teams`, `push`, `webhook.NAME`.
    pub channel: String,
    /// The recipient.
    pub to: Recipient,
}

/// The people of a question.
#[derive(Clone, Copy, Debug)]
pub struct Addressed<'a> {
    /// The addressees.
    pub to: &'a [Addressee],
    /// The caller's person, if known.
    pub caller: Option<&'a str>,
    /// People who are not notified, because they have acted or cannot.
    pub except: &'a [String],
}

/// Returns the browsers that a person subscribed.
pub type DeviceList<'a> = dyn Fn(&str) -> Vec<Subscription> + 'a;

/// Returns the recipients of an event, each person at most once per channel. Events that ask no one to act go to
/// webhooks only; updates of earlier messages are sent as changes of those.
///
/// People who are members only by a claim are reached through their group's channel, since the file does not list them.
pub fn targets(
    event: QuestionEvent,
    addressed: Addressed<'_>,
    people: &People,
    config: &ChannelsConfig,
    devices: &DeviceList<'_>,
) -> Vec<MessageTarget> {
    let mut targets = MessageTargets {
        people,
        config,
        devices,
        found: Vec::new(),
        told: BTreeSet::new(),
    };
    if event.asks_to_act() {
        targets.ask(addressed);
    }
    for (name, webhook) in &config.webhooks {
        if webhook.events.contains(&event) {
            targets.add(format!("webhook.{name}"), Recipient::Endpoint);
        }
    }
    targets.found
}

struct MessageTargets<'a> {
    people: &'a People,
    config: &'a ChannelsConfig,
    devices: &'a DeviceList<'a>,
    found: Vec<MessageTarget>,
    /// Channel and person.
    told: BTreeSet<(&'static str, String)>,
}

impl MessageTargets<'_> {
    fn add(&mut self, channel: impl Into<String>, to: Recipient) {
        let channel = channel.into();
        self.found.push(MessageTarget { channel, to });
    }

    fn ask(&mut self, addressed: Addressed<'_>) {
        let is_told = |person: &str| !addressed.except.iter().any(|other| other == person);
        // People before groups: a person who is asked by name gets an own message.
        for to in addressed.to {
            let person = match to {
                Addressee::Person(name) => Some(name.as_str()),
                Addressee::Caller => addressed.caller,
                Addressee::Group(_) => None,
            };
            if let Some(person) = person.filter(|person| is_told(person)) {
                self.person(person, true);
            }
        }
        for to in addressed.to {
            let Addressee::Group(name) = to else {
                continue;
            };
            let slack = self.config.slack.as_ref();
            let has_slack = slack.is_some_and(|slack| slack.groups.contains_key(name));
            let teams = self.config.teams.as_ref();
            let has_teams = teams.is_some_and(|teams| teams.groups.contains_key(name));
            for (channel, has_channel) in [("slack", has_slack), ("teams", has_teams)] {
                if has_channel && self.told.insert((channel, format!("group:{name}"))) {
                    self.add(channel, Recipient::Group(name.clone()));
                }
            }
            let Some(group) = self.people.groups.get(name) else {
                continue;
            };
            for person in group.people().filter(|person| is_told(person)) {
                self.person(person, !has_slack);
            }
        }
    }

    /// Adds a person's own channels.
    fn person(&mut self, name: &str, by_slack: bool) {
        let Some(entry) = self.people.people.get(name) else {
            return;
        };
        let wants = |channel: &str| {
            let chosen = entry.channels.as_ref();
            chosen.is_none_or(|chosen| chosen.iter().any(|one| one == channel))
        };
        let has_mail = entry.mail.is_some();
        let own = [
            ("mail", self.config.mail.is_some() && has_mail),
            ("slack", self.config.slack.is_some() && has_mail && by_slack),
        ];
        for (channel, is_there) in own {
            if is_there && wants(channel) && self.told.insert((channel, name.to_owned())) {
                let to = Recipient::Person {
                    name: name.to_owned(),
                    mail: entry.mail.clone(),
                };
                self.add(channel, to);
            }
        }
        let can_push = self.config.push.is_some() && wants("push");
        if can_push && self.told.insert(("push", name.to_owned())) {
            for device in (self.devices)(name) {
                self.add("push", Recipient::Device(Box::new(device)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp_elicit_policy::Rules;

    use super::*;
    use crate::config;

    const FILE: &str = r#"
[people.ada]
mail = "ada@example.com"
[people.bob]
mail = "bob@example.com"
channels = ["slack", "push"]
[people.eve]
subject = "1"
[groups]
ops = ["ada", "bob"]
leads = { claim = "leads" }
[channels.mail]
smtp = "smtps://mail.example.com"
from = "gateway@example.com"
[channels.slack]
token = { env = "A" }
signing-secret = { env = "B" }
team = "T1"
groups = { leads = "C1" }
[channels.teams]
groups = { ops = { env = "C" } }
[channels.push]
contact = "mailto:gateway@example.com"
[channels.webhook.siem]
url = "https://siem.example.com"
secret = { env = "D" }
events = ["question.asked", "question.answered"]
"#;

    fn told(event: QuestionEvent, to: &[&str], except: &[&str]) -> Vec<String> {
        let rules = Rules::parse(FILE).unwrap();
        let config = config::parse(FILE, rules.people()).unwrap();
        let to: Vec<_> = to
            .iter()
            .map(|text| match text.split_once(':') {
                Some(("group", name)) => Addressee::Group(name.to_owned()),
                Some((_, name)) => Addressee::Person(name.to_owned()),
                None => Addressee::Caller,
            })
            .collect();
        let except: Vec<_> = except.iter().map(|name| (*name).to_owned()).collect();
        let addressed = Addressed {
            to: &to,
            caller: Some("eve"),
            except: &except,
        };
        let key = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
        let device = || {
            let endpoint = "https://push.example.com/x";
            Subscription::new(endpoint, key, "BTBZMqHH6r4Tts7J_aSIgg").unwrap()
        };
        let devices = |person: &str| match person {
            "bob" => vec![device(), device()],
            "eve" => vec![device()],
            _ => Vec::new(),
        };
        let targets = targets(event, addressed, rules.people(), &config, &devices);
        let shown = targets
            .iter()
            .map(|target| format!("{} {:?}", target.channel, target.to));
        shown.collect()
    }

    #[test]
    fn people_are_told_on_their_channels_and_groups_on_theirs() {
        assert_eq!(
            told(QuestionEvent::Asked, &["group:ops"], &[]),
            [
                "teams Group(ops)",
                "mail Person(ada)",
                "slack Person(ada)",
                "slack Person(bob)",
                "push Device",
                "push Device",
                "webhook.siem Endpoint",
            ]
        );
        // The people are unknown, but their channel is known.
        assert_eq!(
            told(QuestionEvent::Reminded, &["group:leads"], &[]),
            ["slack Group(leads)"]
        );
        assert_eq!(
            told(QuestionEvent::Asked, &["caller"], &[]),
            ["push Device", "webhook.siem Endpoint"]
        );
    }

    #[test]
    fn nobody_is_told_twice_or_after_they_acted() {
        let twice = ["person:ada", "group:ops", "person:ada"];
        let ada = told(QuestionEvent::Reminded, &twice, &["bob"]);
        assert_eq!(
            ada,
            ["mail Person(ada)", "slack Person(ada)", "teams Group(ops)"]
        );
        assert_eq!(
            told(
                QuestionEvent::Reminded,
                &["person:nobody", "group:none"],
                &[]
            ),
            [""; 0]
        );
    }

    #[test]
    fn an_end_goes_to_webhooks_only() {
        assert_eq!(
            told(QuestionEvent::Answered, &["group:ops"], &[]),
            ["webhook.siem Endpoint"]
        );
        assert_eq!(told(QuestionEvent::Claimed, &["group:ops"], &[]), [""; 0]);
    }
}
