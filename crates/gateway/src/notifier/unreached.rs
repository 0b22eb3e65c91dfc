//! People who are asked, and whom no channel reaches.

use std::collections::BTreeSet;

use mcp_elicit_channels::addressing::{Addressed, MessageTarget, targets};
use mcp_elicit_channels::config::ChannelsConfig;
use mcp_elicit_channels::{QuestionEvent, Recipient};
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
    found: &[MessageTarget],
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

/// Returns the groups among these that have no known member, and get none of these messages.
pub(super) fn groups_without_members(
    to: &[Addressee],
    people: &People,
    found: &[MessageTarget],
) -> BTreeSet<String> {
    let is_told = |name: &str| {
        let mut targets = found.iter();
        targets.any(|target| matches!(&target.to, Recipient::Group(group) if group == name))
    };
    let groups = to.iter().filter_map(|to| match to {
        Addressee::Group(name) => Some(name),
        Addressee::Caller | Addressee::Person(_) => None,
    });
    let is_empty = |name: &str| {
        let group = people.groups.get(name);
        group.is_some_and(|group| group.people().next().is_none())
    };
    let untold = groups.filter(|name| is_empty(name) && !is_told(name));
    untold.cloned().collect()
}

/// Returns the groups that rules ask, whose members only a claim names, and that have no channel: until one of them has
/// logged in, nobody of such a group is told.
pub(crate) fn groups_by_claim_alone(rules: &Rules, tables: &ChannelsConfig) -> BTreeSet<String> {
    groups_without_channel(rules, rules.people(), tables)
}

/// The same, with these known members.
pub(super) fn groups_without_channel(
    rules: &Rules,
    people: &People,
    tables: &ChannelsConfig,
) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    if !tells_people(tables) {
        return all;
    }
    let rules_with_plans = rules.rules().iter();
    let plans = rules_with_plans.filter_map(|rule| rule.decision().plan());
    for to in plans.flat_map(|plan| rules.addressees(plan)) {
        let to = std::slice::from_ref(to);
        let addressed = Addressed {
            to,
            caller: None,
            except: &[],
        };
        let found = targets(QuestionEvent::Asked, addressed, people, tables, &|_| {
            Vec::new()
        });
        all.extend(groups_without_members(to, people, &found));
    }
    all
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
        let found = targets(QuestionEvent::Asked, addressed, people, tables, &|_| {
            Vec::new()
        });
        all.extend(unreached(addressed, people, &found, &BTreeSet::new()));
    }
    all.retain(|person| !may_have_device(person));
    all
}
