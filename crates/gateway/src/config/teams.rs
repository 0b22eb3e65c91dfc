//! The tables of teams in the configuration: `[people]`, `[groups]`, `[roles]`, `[[rules]]` and `time-zone`. They are read by
//! `mcp-elicit-policy`, from the same text; here they are only seen to be there.

use std::sync::Arc;

use mcp_elicit_policy::Rules;
use mcp_elicit_policy::rules::Decision;
use toml::Spanned;

use super::{ConfigError, ConfiguredChannels};

/// The tables, as far as the gateway's own reader looks at them: the byte of the file at which each begins.
pub(super) struct TeamTables {
    pub(super) people: Option<usize>,
    pub(super) groups: Option<usize>,
    pub(super) roles: Option<usize>,
    pub(super) rules: Option<usize>,
    pub(super) channels: Option<usize>,
    pub(super) time_zone: Option<Spanned<String>>,
}

impl TeamTables {
    /// Returns the first table that is there, with its byte of the file.
    fn first(&self) -> Option<(&'static str, usize)> {
        let tables = [
            ("[people]", self.people),
            ("[groups]", self.groups),
            ("[roles]", self.roles),
            ("[[rules]]", self.rules),
            ("[channels]", self.channels),
        ];
        let there = tables
            .into_iter()
            .filter_map(|(name, table)| Some((name, table?)));
        there.min_by_key(|(_, start)| *start)
    }

    /// Reads the channels of a file, where it has any.
    pub(super) fn read_channels(
        &self,
        text: &str,
        rules: Option<&Rules>,
    ) -> Result<Option<Arc<ConfiguredChannels>>, ConfigError> {
        let (Some(_), Some(rules)) = (self.channels, rules) else {
            return Ok(None);
        };
        ConfiguredChannels::read(text, rules).map(Some)
    }

    /// Reads the tables of a file, where it has any. Names every mistake.
    pub(super) fn read(
        &self,
        text: &str,
        has_inbox: bool,
    ) -> Result<Option<Arc<Rules>>, ConfigError> {
        let Some((table, start)) = self.first() else {
            return Ok(None);
        };
        if !cfg!(feature = "teams") {
            return Err(ConfigError::NeedsFull { table }.at(text, start));
        }
        let loaded = Rules::load(text);
        for warning in &loaded.warnings {
            tracing::warn!(%warning, "the rules may be meant otherwise");
        }
        let rules = loaded.rules.ok_or(ConfigError::Rules(loaded.defects))?;
        if let Some(zone) = &self.time_zone {
            zone_of(Some(zone.get_ref())).map_err(|()| {
                let text_of_zone = zone.get_ref().clone();
                ConfigError::TimeZone { text: text_of_zone }.at(text, zone.span().start)
            })?;
        }
        let asks_people = rules.rules().iter().any(|rule| match rule.decision() {
            Decision::Approve(_) => true,
            Decision::Ask(plan) => !plan.ask.is_caller(),
            Decision::Allow | Decision::Refuse(_) => false,
        });
        if asks_people && !has_inbox {
            return Err(ConfigError::RulesNeedInbox.at(text, start));
        }
        Ok(Some(Arc::new(rules)))
    }
}

/// Returns the time zone of this name; UTC without one.
pub(crate) fn zone_of(name: Option<&str>) -> Result<jiff::tz::TimeZone, ()> {
    match name {
        None => Ok(jiff::tz::TimeZone::UTC),
        Some(name) => jiff::tz::TimeZone::get(name).map_err(|_| ()),
    }
}

#[cfg(test)]
#[cfg(feature = "teams")]
mod tests {
    use super::super::Config;

    const SERVER: &str = "[servers.deploy]\ncommand = [\"true\"]\n";
    const PEOPLE: &str = "[people.ada]\nmail = \"ada@example.com\"\n[groups]\nops = [\"ada\"]\n";

    fn parse(top: &str, tables: &str) -> Result<Config, String> {
        let text = format!("{top}{SERVER}{tables}");
        Config::parse(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn rules_stand_in_the_gateways_own_file() {
        let rule = "[[rules]]\ntool = \"delete_*\"\napprove = true\nask = { group = \"ops\" }\n";
        let config = parse("inbox = \"127.0.0.1:1\"\n", &format!("{PEOPLE}{rule}")).unwrap();
        assert_eq!(config.teams.unwrap().rules().len(), 1);
        assert!(parse("", "").unwrap().teams.is_none());
        let said = parse("", &format!("{PEOPLE}{rule}")).unwrap_err();
        assert!(
            said.contains("`inbox`") && said.starts_with("error at line 3"),
            "{said}"
        );
    }

    #[test]
    fn every_mistake_is_named_with_line_and_column() {
        let wrong = "[[rules]]\ntool = 7\nask = { group = \"opps\" }\n[[rules]]\nserver = \"deplyo\"\nallow = true\n";
        let said = parse("", &format!("{PEOPLE}{wrong}")).unwrap_err();
        for part in [
            "3 mistakes",
            "8:8: ",
            "did you mean `ops`?",
            "11:10: ",
            "did you mean `deploy`?",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = parse("time-zone = \"Mars/Olympus\"\n", PEOPLE).unwrap_err();
        assert!(said.contains("Mars/Olympus"), "{said}");
    }
}
