//! The tables `[channels.*]` of the configuration, which `mcp-elicit-channels` reads from the same text.

use std::sync::Arc;

#[cfg(feature = "teams")]
use mcp_elicit_policy::Addressee;
#[cfg(feature = "teams")]
use mcp_elicit_policy::rules::Rule;
use mcp_elicit_policy::{People, RuleDefect, Rules};

use super::ConfigError;
#[cfg(feature = "teams")]
use crate::notifier::unreached::groups_by_claim_alone;

/// The channels of a configuration. A build without the feature `teams` rejects their tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfiguredChannels {
    #[cfg(feature = "teams")]
    pub(crate) tables: mcp_elicit_channels::config::ChannelsConfig,
}

/// Returns the errors in the tables `[channels.*]` of a gateway's file. Without people, because the rules have errors,
/// groups are not looked up.
#[cfg(feature = "teams")]
fn channel_defects(text: &str, people: Option<&People>) -> Vec<RuleDefect> {
    let nobody = People::default();
    let read = mcp_elicit_channels::config::parse(text, people.unwrap_or(&nobody));
    let mut defects = read.err().unwrap_or_default();
    if people.is_none() {
        defects.retain(|defect| defect.code != "no-addressee");
    }
    defects
}

/// Adds the errors in the tables `[channels.*]` to those of rules, by position.
#[cfg(feature = "teams")]
pub fn add_channel_defects(defects: &mut Vec<RuleDefect>, text: &str, people: Option<&People>) {
    let place = |defect: &RuleDefect| (defect.line, defect.column);
    for defect in channel_defects(text, people) {
        // A secret written as text is reported by both readers.
        let is_known =
            |other: &RuleDefect| (place(other), other.code) == (place(&defect), defect.code);
        if !defects.iter().any(is_known) {
            defects.push(defect);
        }
    }
    defects.sort_by_key(place);
}

/// Adds a warning for each group that a rule asks, of which nobody can be told before one of its members has logged in:
/// only a claim names its members, and it has no channel.
#[cfg(feature = "teams")]
pub fn add_channel_warnings(warnings: &mut Vec<RuleDefect>, text: &str, rules: &Rules) {
    let Ok(tables) = mcp_elicit_channels::config::parse(text, rules.people()) else {
        return;
    };
    for group in groups_by_claim_alone(rules, &tables) {
        let asks = |rule: &&Rule| {
            let plan = rule.decision().plan();
            let addressees = plan.into_iter().flat_map(|plan| rules.addressees(plan));
            let mut addressees = addressees;
            addressees.any(|to| matches!(to, Addressee::Group(name) if *name == group))
        };
        let Some(rule) = rules.rules().iter().find(asks) else {
            continue;
        };
        warnings.push(RuleDefect {
            code: "group-not-told",
            rule: Some(rule.name().to_owned()),
            line: rule.line(),
            column: 1,
            message: format!(
                "nobody of the group `{group}` can be told before one of them has logged in: a claim alone names its members, and it has no channel"
            ),
            help: format!("name a channel for it, such as groups = {{ {group} = \"C0123\" }} of [channels.slack]"),
        });
    }
    warnings.sort_by_key(|warning| (warning.line, warning.column));
}

#[cfg(not(feature = "teams"))]
pub(super) fn add_channel_defects(_: &mut [RuleDefect], _: &str, _: Option<&People>) {}

impl ConfiguredChannels {
    /// Reads the tables. Reports every error.
    #[cfg(feature = "teams")]
    pub(crate) fn read(text: &str, rules: &Rules) -> Result<Arc<Self>, ConfigError> {
        let read = mcp_elicit_channels::config::parse(text, rules.people());
        let tables = read.map_err(ConfigError::Rules)?;
        Ok(Arc::new(Self { tables }))
    }

    #[cfg(not(feature = "teams"))]
    pub(crate) fn read(_: &str, _: &Rules) -> Result<Arc<Self>, ConfigError> {
        let table = "[channels]";
        Err(ConfigError::NeedsFull { table })
    }
}
