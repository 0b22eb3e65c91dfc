//! The tables of teams in the configuration: `[people]`, `[groups]`, `[roles]`, `[[rules]]` and `time-zone`.
//! `mcp-elicit-policy` reads them from the same text; here only their presence is checked.

use std::sync::Arc;

use mcp_elicit_inbox::login::{LoginMode, LoginSettings};
use mcp_elicit_policy::Rules;
use mcp_elicit_policy::rules::{Decision, Plan};
use toml::Spanned;

use super::channels::add_channel_defects;
use super::{Auth, ConfigError, ConfiguredChannels};

/// The byte of the file at which each table begins, if present.
pub(super) struct TeamTables {
    pub(super) people: Option<usize>,
    pub(super) groups: Option<usize>,
    pub(super) roles: Option<usize>,
    pub(super) rules: Option<usize>,
    pub(super) channels: Option<usize>,
    pub(super) time_zone: Option<Spanned<String>>,
}

impl TeamTables {
    /// Returns the first table that is present, with its byte of the file.
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

    /// Reads the channels of a file, if it has any.
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

    /// Reads the tables of a file, if it has any. Reports every error.
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
        let rules = loaded.rules.ok_or_else(|| {
            let mut defects = loaded.defects;
            add_channel_defects(&mut defects, text, None);
            ConfigError::Rules(defects)
        })?;
        if let Some(zone) = &self.time_zone {
            zone_of(Some(zone.get_ref())).map_err(|()| {
                let text_of_zone = zone.get_ref().clone();
                ConfigError::TimeZone { text: text_of_zone }.at(text, zone.span().start)
            })?;
        }
        if asks_people(&rules) && !has_inbox {
            return Err(ConfigError::RulesNeedInbox.at(text, start));
        }
        Ok(Some(Arc::new(rules)))
    }
}

/// Returns `true` if a rule asks people.
fn asks_people(rules: &Rules) -> bool {
    rules.rules().iter().any(|rule| match rule.decision() {
        Decision::Approve(_) => true,
        Decision::Ask(plan) => !plan.ask.is_caller(),
        Decision::Allow | Decision::Refuse(_) => false,
    })
}

/// Rejects rules that require a recent login if a proxy names people, because it does not report login times.
pub(super) fn check_reauth(
    text: &str,
    rules: &Rules,
    login: Option<&LoginSettings>,
) -> Result<(), ConfigError> {
    let is_proxy = login.is_some_and(|login| matches!(login.mode, LoginMode::Proxy(_)));
    let wants_login = |plan: &Plan| plan.reauth.is_some();
    let mut rules = rules.rules().iter();
    let wants_login = rules.find(|rule| rule.decision().plan().is_some_and(wants_login));
    match wants_login.filter(|_| is_proxy) {
        Some(rule) => {
            let name = rule.name().to_owned();
            Err(ConfigError::ReauthBehindProxy { rule: name }.at_line(text, rule.line()))
        }
        None => Ok(()),
    }
}

/// The settings that match callers to people.
pub(super) struct MatchedCallers<'a> {
    /// `true` if clients use HTTP, and not stdio.
    pub(super) listens: bool,
    /// The proof of callers over HTTP.
    pub(super) auth: &'a Auth,
    /// The issuer at which people log in.
    pub(super) logs_in: Option<&'a str>,
}

impl MatchedCallers<'_> {
    /// Rejects rules that exclude the caller if no caller can be matched to a person.
    pub(super) fn check(&self, text: &str, rules: &Rules) -> Result<(), ConfigError> {
        if asks_people(rules) && self.logs_in.is_none() {
            tracing::warn!(
                "rules ask people, who cannot be distinguished without `[login]`: their questions cannot be answered in this gateway's inbox; add `[login]` (docs/teams.md)"
            );
        }
        let excludes = |plan: &Plan| plan.ask.not_caller;
        let mut all = rules.rules().iter();
        let excluding = all.find(|rule| rule.decision().plan().is_some_and(excludes));
        let (Some(rule), Some(why)) = (excluding, self.unmatched(rules)) else {
            return Ok(());
        };
        let (name, line) = (rule.name().to_owned(), rule.line());
        Err(ConfigError::NotCaller { rule: name, why }.at_line(text, line))
    }

    /// Returns the reason why no caller can be matched to a person, if so.
    fn unmatched(&self, rules: &Rules) -> Option<String> {
        if !self.listens {
            let people = &rules.people().people;
            let is_known = people.values().any(|person| person.local_user.is_some());
            let why = "a client on stdio is a user of this machine, and no person has `local-user`";
            return (!is_known).then(|| why.to_owned());
        }
        let (table, issuer) = match self.auth {
            Auth::None => {
                let why = "callers prove nothing; add `[auth]`, or take `not-caller` away";
                return Some(why.to_owned());
            }
            // A key names its owner, or its calls are refused.
            Auth::Keys => return None,
            Auth::Proxy(proxy) => ("[auth.proxy]", proxy.issuer()),
            Auth::Oidc(oidc) => ("[auth.oidc]", oidc.issuer.as_str()),
        };
        let logs_in = self.logs_in.filter(|logs_in| *logs_in != issuer)?;
        Some(format!(
            "callers are subjects of {issuer} (`{table}`), and people of {logs_in} (`[login]`); give both one issuer, or take \
             `not-caller` away"
        ))
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
    fn mistakes_of_rules_and_channels_are_told_together() {
        let wrong = "[[rules]]\ntool = 7\n[channels.slack]\ntokn = 3\n";
        let said = parse("inbox = \"127.0.0.1:1\"\n", &format!("{PEOPLE}{wrong}")).unwrap_err();
        assert!(said.contains("`tool`") && said.contains("tokn"), "{said}");
    }

    #[test]
    fn every_setting_of_a_file_is_known_beside_rules_too() {
        let keys = super::super::file::keys();
        assert!(keys.len() > 25, "{keys:?}");
        for key in keys {
            let said = super::Rules::parse(&format!("{key} = 0\n")).err();
            let mut said = said.unwrap_or_default().into_iter();
            assert!(!said.any(|defect| defect.code == "unknown-key"), "{key}");
        }
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
    fn a_rule_that_would_exclude_nobody_is_a_mistake_at_its_line() {
        const PEOPLE: &str = "[people.ada]\nmail = \"ada@example.com\"\n[people.bob]\nmail = \"bob@example.com\"\n[groups]\nops = [\"ada\", \"bob\"]\n";
        const LOGIN: &str = "[login]\nmode = \"proxy\"\nissuer = \"https://people.example\"\n[roles]\nadmin = [\"person:ada\"]\n";
        const RULE: &str =
            "[[rules]]\nname = \"others\"\nask = { group = \"ops\", not-caller = true }\n";
        let top = "inbox = \"127.0.0.1:1\"\ntrusted-proxies = [\"127.0.0.1\"]\n";
        let listens = format!("{top}listen = \"127.0.0.1:2\"\n");
        let proxy = |issuer: &str| {
            format!("[auth]\nmode = \"proxy\"\n[auth.proxy]\nissuer = \"{issuer}\"\n")
        };
        let oidc = |mode: &str, issuer: &str| {
            format!("[auth]\nmode = {mode}\n[auth.oidc]\nissuer = \"{issuer}\"\n")
        };
        let people = "https://people.example";
        for (top, auth, words) in [
            (top, String::new(), "`local-user`"),
            (&listens, String::new(), "add `[auth]`"),
            (&listens, proxy("https://agents.example"), "[auth.proxy]"),
            (
                &listens,
                oidc("\"oidc\"", "https://agents.example"),
                "[auth.oidc]",
            ),
            (
                &listens,
                oidc("[\"oidc\", \"keys\"]", "https://agents.example"),
                "one issuer",
            ),
        ] {
            let tables = format!("{PEOPLE}{LOGIN}{auth}");
            let line = format!("{top}{SERVER}{tables}").lines().count() + 1;
            let said = parse(top, &format!("{tables}{RULE}")).unwrap_err();
            assert!(
                said.starts_with(&format!("error at line {line}\n"))
                    && said.contains("`others`")
                    && said.contains(words),
                "{said}"
            );
            // The rest of it is valid.
            let without = RULE.replace(", not-caller = true", "");
            parse(top, &format!("{tables}{without}")).unwrap();
        }
        for (top, auth) in [
            (&listens, "[auth]\nmode = \"keys\"\n".to_owned()),
            (&listens, proxy(people)),
            (&listens, oidc("\"oidc\"", people)),
            (
                &top.to_owned(),
                "[people.cy]\nlocal-user = \"cy\"\n".to_owned(),
            ),
        ] {
            parse(top, &format!("{PEOPLE}{LOGIN}{auth}{RULE}")).unwrap();
        }
    }

    #[test]
    fn a_recent_login_cannot_be_had_behind_a_proxy() {
        const RULE: &str =
            "[[rules]]\nname = \"lately\"\nask = { group = \"ops\" }\nreauth = \"10m\"\n";
        const ROLES: &str = "[roles]\nadmin = [\"person:ada\"]\n";
        let top = "inbox = \"127.0.0.1:1\"\ntrusted-proxies = [\"127.0.0.1\"]\n";
        let proxy = "[login]\nmode = \"proxy\"\n";
        let tables = format!("{PEOPLE}{ROLES}{proxy}");
        let line = format!("{top}{SERVER}{tables}").lines().count() + 1;
        let said = parse(top, &format!("{tables}{RULE}")).unwrap_err();
        assert!(
            said.starts_with(&format!("error at line {line}\n")) && said.contains("`lately`"),
            "{said}"
        );
        let without = RULE.replace("reauth = \"10m\"\n", "");
        parse(top, &format!("{tables}{without}")).unwrap();
        let oidc =
            "[login]\nmode = \"oidc\"\nissuer = \"https://id.example\"\nclient-id = \"inbox\"\n";
        let top = "inbox = \"127.0.0.1:1\"\n";
        parse(top, &format!("{PEOPLE}{ROLES}{oidc}{RULE}")).unwrap();
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
