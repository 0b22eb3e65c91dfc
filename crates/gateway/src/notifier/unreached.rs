//! People who are asked, and whom no channel reaches.

use std::collections::BTreeSet;

use mcp_elicit_channels::addressing::{Addressed, Target, targets};
use mcp_elicit_channels::config::ChannelsConfig;
use mcp_elicit_channels::{Event, Recipient};
use mcp_elicit_policy::people::{Addressee, Group};
use mcp_elicit_policy::{People, Rules};

/// Returns `true` if some channel notifies people, and not only programs.
pub(super) fn tells_people(tables: &ChannelsConfig) -> bool {
    let ChannelsConfig {
        mail,
        slack,
        teams,
        webhooks: _,
        push,
    } = tables;
    mail.is_some() || slack.is_some() || teams.is_some() || push.is_some()
}

/// Returns the people in the file who are asked and get none of these messages. `with_devices` are notified on their
/// devices.
pub(super) fn unreached(
    addressed: Addressed<'_>,
    people: &People,
    found: &[Target],
    with_devices: &BTreeSet<&str>,
) -> BTreeSet<String> {
    let is_told = |person: &str| {
        let mut targets = found.iter();
        with_devices.contains(person)
            || addressed.except.iter().any(|other| other == person)
            || targets.any(
                |target| matches!(&target.to, Recipient::Person { name, .. } if name == person),
            )
    };
    let has_channel = |group: &str| {
        let mut targets = found.iter();
        targets.any(|target| matches!(&target.to, Recipient::Group(name) if name == group))
    };
    let mut asked: BTreeSet<&str> = BTreeSet::new();
    for to in addressed.to {
        match to {
            Addressee::Caller => asked.extend(addressed.caller),
            Addressee::Person(name) => {
                asked.insert(name);
            }
            Addressee::Group(name) if has_channel(name) => {}
            Addressee::Group(name) => {
                let group = people.groups.get(name).into_iter();
                asked.extend(group.flat_map(Group::people));
            }
        }
    }
    asked.retain(|person| !is_told(person));
    asked.into_iter().map(str::to_owned).collect()
}

/// Returns the people whom rules ask and whom no channel can reach, according to the file. Devices are registered
/// later.
pub(super) fn without_address(rules: &Rules, tables: &ChannelsConfig) -> BTreeSet<String> {
    let people = rules.people();
    let may_have_device = |person: &str| {
        let entry = people.people.get(person);
        let chosen = entry.and_then(|entry| entry.channels.as_ref());
        let wants = chosen.is_none_or(|chosen| chosen.iter().any(|one| one == "push"));
        tables.push.is_some() && wants
    };
    let mut all = BTreeSet::new();
    if !tells_people(tables) {
        return all;
    }
    let plans = rules
        .rules()
        .iter()
        .filter_map(|rule| rule.decision().plan());
    for to in plans.flat_map(|plan| rules.addressees(plan)) {
        let addressed = Addressed {
            to: std::slice::from_ref(to),
            caller: None,
            except: &[],
        };
        let found = targets(Event::Asked, addressed, people, tables, &|_| Vec::new());
        all.extend(unreached(addressed, people, &found, &BTreeSet::new()));
    }
    all.retain(|person| !may_have_device(person));
    all
}
