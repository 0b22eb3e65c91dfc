//! The tables `[channels.*]` of the gateway's file. All errors are reported at once, each with line and column.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mcp_elicit_policy::defect::{RuleDefect, nearest};
use mcp_elicit_policy::document::{DocumentReader, SpannedValue, key_start};
use mcp_elicit_policy::people::People;
use toml::de::{DeTable, DeValue};
use url::{Host, Url};

use crate::notice::QuestionEvent;
use crate::revealed::Template;
use crate::secret::SecretSource;

/// The channels of a gateway.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelsConfig {
    /// `[channels.mail]`
    pub mail: Option<MailConfig>,
    /// `[channels.slack]`
    pub slack: Option<SlackConfig>,
    /// `[channels.teams]`
    pub teams: Option<TeamsConfig>,
    /// `[channels.webhook.NAME]`
    pub webhooks: BTreeMap<String, WebhookConfig>,
    /// `[channels.push]`
    pub push: Option<PushConfig>,
}

/// A mail server, and the sender.
#[derive(Clone, Debug, PartialEq)]
pub struct MailConfig {
    /// The host of the mail server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The protection of the connection.
    pub security: SmtpSecurity,
    /// The sender's address.
    pub from: lettre::message::Mailbox,
    /// The user name; the sender's address if only a password is given.
    pub user: Option<String>,
    /// The password.
    pub password: Option<SecretSource>,
    /// A file of root certificates (PEM), in addition to those of the system.
    pub ca: Option<PathBuf>,
    /// The first sentence of a mail.
    pub text: Option<Template>,
}

/// The protection of a connection to a mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpSecurity {
    /// TLS from the first byte (`smtps://`).
    Tls,
    /// STARTTLS, required (`smtp://`).
    StartTls,
    /// None (`smtp://` to this machine, without `ca`).
    Plain,
}

/// A Slack app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlackConfig {
    /// The bot token.
    pub token: SecretSource,
    /// The signing secret of the app, which authenticates Slack's requests. Without it people answer only in the inbox.
    pub signing_secret: Option<SecretSource>,
    /// The address of the Web API; `None` for slack.com's.
    pub api: Option<Url>,
    /// The id of the workspace.
    pub team: String,
    /// `true` if the app's options load URL is set.
    pub options_url: bool,
    /// `true` if a question of a group notifies everyone in its channel.
    pub mention: bool,
    /// Channels for groups, by id.
    pub groups: BTreeMap<String, String>,
}

/// Teams channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TeamsConfig {
    /// Workflow URLs for groups. The URL grants permission to post, so it is a secret.
    pub groups: BTreeMap<String, SecretSource>,
}

/// A webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfig {
    /// The receiver.
    pub url: Url,
    /// The shared secret, `whsec_…`.
    pub secret: SecretSource,
    /// The previous secret during a rotation: requests are signed with both.
    pub old_secret: Option<SecretSource>,
    /// The events that are sent.
    pub events: Vec<QuestionEvent>,
    /// `true` if the receiver may be in a private network.
    pub allow_private: bool,
}

/// Web push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushConfig {
    /// Push services in addition to those of the usual browsers, by host name; `*.example.com` is every host below.
    pub hosts: Vec<String>,
    /// `true` if those may be in private networks.
    pub allow_private: bool,
    /// The operator's contact for push services: `mailto:` or `https:`.
    pub contact: String,
}

const TABLES: [&str; 5] = ["mail", "slack", "teams", "webhook", "push"];
const LITERAL_SECRET: &str = "literal-secret";

/// The most entries of one table.
const MOST: usize = 1000;

/// Reads the tables `[channels.*]` of a gateway's file; other tables are read elsewhere. Groups must be those of
/// `people`.
pub fn parse(text: &str, people: &People) -> Result<ChannelsConfig, Vec<RuleDefect>> {
    let mut reader = DocumentReader::new(text);
    let (file, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        let message = error.message().lines().next().unwrap_or_default();
        reader.defect(at, "invalid-toml", message, "");
    }
    let mut config = ChannelsConfig::default();
    if errors.is_empty()
        && let Some(channels) = file.get_ref().get("channels")
        && let Some(table) = reader.table(channels, "channels")
    {
        let mut tables = ChannelTables {
            reader: &mut reader,
            people,
        };
        tables.read(table, &mut config);
    }
    if reader.defects.is_empty() {
        return Ok(config);
    }
    reader
        .defects
        .sort_by_key(|defect| (defect.line, defect.column));
    Err(reader.defects)
}

struct ChannelTables<'r, 't> {
    reader: &'r mut DocumentReader<'t>,
    people: &'r People,
}

impl<'t> ChannelTables<'_, 't> {
    fn read(&mut self, channels: &DeTable<'t>, config: &mut ChannelsConfig) {
        self.reader.known_keys(channels, "[channels]", &TABLES);
        let mut named = |name: &str| {
            let value = channels.get(name)?;
            self.reader.table(value, name)
        };
        let [mail, slack, teams, webhook, push] = TABLES.map(&mut named);
        config.mail = mail.and_then(|table| self.mail(table, key_start(channels, "mail")));
        config.slack = slack.and_then(|table| self.slack(table, key_start(channels, "slack")));
        config.teams = teams.map(|table| self.teams(table, key_start(channels, "teams")));
        config.push = push.and_then(|table| self.push(table, key_start(channels, "push")));
        for (name, value) in webhook.into_iter().flatten().take(MOST) {
            let at = name.span().start;
            let name: &str = name.get_ref();
            self.name(name, at);
            let table = self.reader.table(value, name);
            if let Some(webhook) = table.and_then(|table| self.webhook(table, name, at)) {
                config.webhooks.insert(name.to_owned(), webhook);
            }
        }
    }

    fn mail(&mut self, table: &DeTable<'t>, at: usize) -> Option<MailConfig> {
        const KNOWN: [&str; 6] = ["smtp", "from", "user", "password", "ca", "text"];
        self.reader.known_keys(table, "[channels.mail]", &KNOWN);
        let server = self.required(table, "smtp", at, "smtps://HOST");
        let from = self.required(table, "from", at, "an address");
        let user = self.optional_text(table, "user");
        let password = self.optional_secret(table, "password");
        let ca = self.optional_text(table, "ca").map(PathBuf::from);
        let template = table.get("text").and_then(|value| self.template(value));
        let server = server.and_then(|(text, at)| self.smtp(&text, at, ca.is_some()));
        let from = from.and_then(|(text, at)| {
            let from = text.parse::<lettre::message::Mailbox>();
            if from.is_err() {
                let help = "write it like gateway@example.com";
                self.reader
                    .defect(at, "invalid-mail", "`from` is not a mail address", help);
            }
            from.ok()
        });
        let (host, port, security) = server?;
        Some(MailConfig {
            host,
            port,
            security,
            from: from?,
            user,
            password,
            ca,
            text: template,
        })
    }

    fn smtp(&mut self, text: &str, at: usize, has_ca: bool) -> Option<(String, u16, SmtpSecurity)> {
        let help = "write smtps://HOST, or smtp://HOST for STARTTLS";
        let url = Url::parse(text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "smtp" | "smtps"));
        // The parser does not normalise hosts of non-web schemes.
        let host = url.as_ref().and_then(Url::host_str);
        let host = host.and_then(|host| Host::parse(host).ok());
        let (Some(url), Some(host)) = (url, host) else {
            let message = "`smtp` is not the address of a mail server";
            self.reader.defect(at, "invalid-smtp", message, help);
            return None;
        };
        if !url.username().is_empty() || url.password().is_some() {
            let message = "`smtp` has a name or password in it";
            let help = "use `user` and `password = { env = \"..\" }`";
            self.reader.defect(at, LITERAL_SECRET, message, help);
            return None;
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            let message = "`smtp` has more than a host and a port";
            self.reader.defect(at, "invalid-smtp", message, help);
            return None;
        }
        let is_loopback = match &host {
            Host::Ipv4(ip) => ip.is_loopback(),
            Host::Ipv6(ip) => ip.is_loopback(),
            Host::Domain(name) => name == "localhost",
        };
        let (security, usual) = match url.scheme() {
            "smtps" => (SmtpSecurity::Tls, 465),
            _ if is_loopback && !has_ca => (SmtpSecurity::Plain, 25),
            _ => (SmtpSecurity::StartTls, 587),
        };
        let host = match host {
            Host::Ipv6(ip) => ip.to_string(),
            other => other.to_string(),
        };
        Some((host, url.port().unwrap_or(usual), security))
    }

    fn template(&mut self, value: &SpannedValue<'t>) -> Option<Template> {
        let text = self.reader.text(value, "text")?;
        match Template::parse(text) {
            Ok(template) => Some(template),
            Err(error) => {
                let at = self.reader.inside_text(value.span(), text, error.at);
                self.reader
                    .defect(at, "invalid-template", error.message, "");
                None
            }
        }
    }

    fn slack(&mut self, table: &DeTable<'t>, at: usize) -> Option<SlackConfig> {
        const KNOWN: [&str; 7] = [
            "token",
            "signing-secret",
            "api",
            "team",
            "options-url",
            "mention",
            "groups",
        ];
        self.reader.known_keys(table, "[channels.slack]", &KNOWN);
        let token = self.required_secret(table, "token", at);
        let signing_secret = self.optional_secret(table, "signing-secret");
        let api = table.get("api").and_then(|value| self.slack_api(value));
        let team = self.required(table, "team", at, "the id of the workspace");
        let team = team.and_then(|(team, at)| self.slack_id(&team, at, "team", &['T', 'E']));
        let options_url = table
            .get("options-url")
            .and_then(|value| self.reader.truth(value, "options-url"));
        let mention = table
            .get("mention")
            .and_then(|value| self.reader.truth(value, "mention"));
        let mut groups = BTreeMap::new();
        for (name, value) in self.groups(table) {
            if let Some(id) = self.reader.text(value, name) {
                let at = value.span().start;
                if let Some(id) = self.slack_id(id, at, name, &['C', 'G']) {
                    groups.insert(name.to_owned(), id);
                }
            }
        }
        Some(SlackConfig {
            token: token?,
            signing_secret,
            api,
            team: team?,
            options_url: options_url.unwrap_or_default(),
            mention: mention.unwrap_or_default(),
            groups,
        })
    }

    /// Returns the address of a Web API, to which its method names are appended.
    fn slack_api(&mut self, value: &SpannedValue<'t>) -> Option<Url> {
        let text = self.reader.text(value, "api")?;
        let url = Url::parse(text).ok().filter(|url| {
            (url.scheme() == "https" || url.scheme() == "http" && is_local(url))
                && url.host().is_some()
                && url.path().ends_with('/')
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        });
        if url.is_none() {
            let help = match Url::parse(text) {
                Ok(url) if url.scheme() == "http" && !is_local(&url) => {
                    "write https; http is for addresses of this machine only, such as http://127.0.0.1:9000/api/"
                }
                Ok(url) if !url.path().ends_with('/') => {
                    "its path must end with a slash, as in https://slack-gov.com/api/"
                }
                Ok(_) | Err(_) => "write it like https://slack-gov.com/api/",
            };
            let message = "`api` is not the address of a Web API of Slack's";
            self.reader
                .defect(value.span().start, "invalid-url", message, help);
        }
        url
    }

    /// Returns a Slack id: a letter for its kind, then capitals and digits.
    fn slack_id(&mut self, id: &str, at: usize, name: &str, kinds: &[char]) -> Option<String> {
        let is_id = id.starts_with(kinds)
            && (2..=32).contains(&id.len())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        if !is_id {
            let message = format!(
                "`{name}` is not an id of Slack's that begins with {}",
                kinds[0]
            );
            let help = "copy it from the address of the workspace or from the channel's details";
            self.reader.defect(at, "invalid-slack-id", message, help);
        }
        is_id.then(|| id.to_owned())
    }

    fn teams(&mut self, table: &DeTable<'t>, at: usize) -> TeamsConfig {
        self.reader
            .known_keys(table, "[channels.teams]", &["groups"]);
        let mut groups = BTreeMap::new();
        for (name, value) in self.groups(table) {
            if let Some(secret) = self.secret(value, name) {
                groups.insert(name.to_owned(), secret);
            }
        }
        if !table.contains_key("groups") {
            let message = "[channels.teams] has no `groups`";
            let help = "add groups = { GROUP = { env = \"..\" } }";
            self.reader.defect(at, "missing-key", message, help);
        }
        TeamsConfig { groups }
    }

    fn webhook(&mut self, table: &DeTable<'t>, name: &str, at: usize) -> Option<WebhookConfig> {
        const KNOWN: [&str; 5] = ["url", "secret", "old-secret", "events", "allow-private"];
        let inside = format!("[channels.webhook.{name}]");
        self.reader.known_keys(table, &inside, &KNOWN);
        let url = self.required(table, "url", at, "https://..");
        let secret = self.required_secret(table, "secret", at);
        let old_secret = self.optional_secret(table, "old-secret");
        let allow_private = table
            .get("allow-private")
            .and_then(|value| self.reader.truth(value, "allow-private"))
            .unwrap_or_default();
        let events = match table.get("events") {
            Some(value) => self.events(value),
            None => QuestionEvent::ALL.to_vec(),
        };
        let url = url.and_then(|(text, at)| self.webhook_url(&text, at, allow_private));
        Some(WebhookConfig {
            url: url?,
            secret: secret?,
            old_secret,
            events,
            allow_private,
        })
    }

    fn webhook_url(&mut self, text: &str, at: usize, allow_private: bool) -> Option<Url> {
        let refused = match Url::parse(text) {
            Err(_) => "it cannot be read",
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                "it has a name or password in it"
            }
            Ok(url) if url.fragment().is_some() => "it has a fragment",
            Ok(url) => {
                let (is_literal, is_public, is_loopback) = match url.host() {
                    Some(Host::Ipv4(ip)) => {
                        (true, crate::http::is_public(ip.into()), ip.is_loopback())
                    }
                    Some(Host::Ipv6(ip)) => {
                        (true, crate::http::is_public(ip.into()), ip.is_loopback())
                    }
                    Some(Host::Domain("localhost")) => (true, false, true),
                    _ => (false, true, false),
                };
                let is_private = is_literal && !is_public;
                match url.scheme() {
                    "https" | "http" if is_private && !allow_private => {
                        "it is in a private network, which needs allow-private = true"
                    }
                    "https" => return Some(url),
                    "http" if is_loopback => return Some(url),
                    _ => "it must be https; http only on this machine",
                }
            }
        };
        let message = format!("`url` is not usable: {refused}");
        self.reader.defect(at, "invalid-url", message, "");
        None
    }

    fn events(&mut self, value: &SpannedValue<'t>) -> Vec<QuestionEvent> {
        let mut events = Vec::new();
        for (name, at) in self.reader.texts(value, "events") {
            if name == "question.*" {
                events.extend(QuestionEvent::ALL);
            } else if let Some(event) = QuestionEvent::from_name(&name) {
                events.push(event);
            } else {
                let help = match nearest(&name, QuestionEvent::ALL.map(QuestionEvent::name)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!(
                        "known: question.*, {}",
                        QuestionEvent::ALL.map(QuestionEvent::name).join(", ")
                    ),
                };
                let message = format!("no event is named `{name}`");
                self.reader.defect(at, "unknown-event", message, help);
            }
        }
        events.sort_by_key(|event| event.name());
        events.dedup();
        events
    }

    fn push(&mut self, table: &DeTable<'t>, at: usize) -> Option<PushConfig> {
        const KNOWN: [&str; 3] = ["contact", "hosts", "allow-private"];
        self.reader.known_keys(table, "[channels.push]", &KNOWN);
        let hosts = table.get("hosts").map(|hosts| self.push_hosts(hosts));
        let allow_private = table
            .get("allow-private")
            .and_then(|value| self.reader.truth(value, "allow-private"));
        let (contact, at) = self.required(table, "contact", at, "mailto:.. or https:..")?;
        let is_usable = contact.len() <= 200
            && Url::parse(&contact).is_ok_and(|url| match url.scheme() {
                "mailto" => url.path().parse::<lettre::Address>().is_ok(),
                "https" => url.host().is_some() && url.username().is_empty(),
                _ => false,
            });
        if !is_usable {
            let message = "`contact` must be a mailto: or https: address";
            let help = "push services use it to reach the operator";
            self.reader.defect(at, "invalid-contact", message, help);
        }
        is_usable.then_some(PushConfig {
            hosts: hosts.unwrap_or_default(),
            allow_private: allow_private.unwrap_or_default(),
            contact,
        })
    }

    fn push_hosts(&mut self, hosts: &SpannedValue<'t>) -> Vec<String> {
        let mut known = Vec::new();
        for (host, at) in self.reader.texts(hosts, "hosts") {
            let name = host.strip_prefix("*.").unwrap_or(&host);
            let is_host = Host::parse(name).is_ok_and(|parsed| parsed.to_string() == name);
            if is_host {
                known.push(host);
            } else {
                let help = "write a name like push.example.com, or *.example.com for those below";
                let message = format!("`{host}` is not the name of a host");
                self.reader.defect(at, "invalid-host", message, help);
            }
        }
        known
    }

    /// Returns the entries of `groups` whose name is a group in the file.
    fn groups<'v>(&mut self, table: &'v DeTable<'t>) -> Vec<(&'v str, &'v SpannedValue<'t>)> {
        let Some(value) = table.get("groups") else {
            return Vec::new();
        };
        let Some(groups) = self.reader.table(value, "groups") else {
            return Vec::new();
        };
        let mut known = Vec::new();
        for (key, value) in groups {
            let name: &str = key.get_ref();
            if self.people.groups.contains_key(name) {
                known.push((name, value));
                continue;
            }
            let help = match nearest(name, self.people.groups.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "add it under [groups]".to_owned(),
            };
            let message = format!("no group is named `{name}`");
            self.reader
                .defect(key.span().start, "no-addressee", message, help);
        }
        known
    }

    fn name(&mut self, name: &str, at: usize) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !(1..=32).contains(&name.len()) || !name.bytes().all(plain) {
            let message = "the name of a webhook may have letters, digits, `-` and `_`, at most 32";
            self.reader.defect(at, "invalid-name", message, "");
        }
    }

    fn required(
        &mut self,
        table: &DeTable<'t>,
        name: &str,
        at: usize,
        example: &str,
    ) -> Option<(String, usize)> {
        let Some(value) = table.get(name) else {
            self.missing(name, at, &format!("add {name} = \"{example}\""));
            return None;
        };
        let text = self.reader.text(value, name)?;
        Some((text.to_owned(), value.span().start))
    }

    fn missing(&mut self, name: &str, at: usize, help: &str) {
        let message = format!("`{name}` is missing");
        self.reader.defect(at, "missing-key", message, help);
    }

    fn optional_text(&mut self, table: &DeTable<'t>, name: &str) -> Option<String> {
        let value = table.get(name)?;
        self.reader.text(value, name).map(str::to_owned)
    }

    fn required_secret(
        &mut self,
        table: &DeTable<'t>,
        name: &str,
        at: usize,
    ) -> Option<SecretSource> {
        let Some(value) = table.get(name) else {
            self.missing(name, at, &format!("add {name} = {{ env = \"..\" }}"));
            return None;
        };
        self.secret(value, name)
    }

    fn optional_secret(&mut self, table: &DeTable<'t>, name: &str) -> Option<SecretSource> {
        let value = table.get(name)?;
        self.secret(value, name)
    }

    fn secret(&mut self, value: &SpannedValue<'t>, name: &str) -> Option<SecretSource> {
        const HELP: &str = "write { env = \"NAME\" } or { file = \"PATH\" }";
        let at = value.span().start;
        let DeValue::Table(table) = value.get_ref() else {
            let message = format!("`{name}` is a secret, so it must not be written in the file");
            self.reader.defect(at, LITERAL_SECRET, message, HELP);
            return None;
        };
        self.reader.known_keys(table, name, &["env", "file"]);
        match (
            self.optional_text(table, "env"),
            self.optional_text(table, "file"),
        ) {
            (Some(env), None) if !env.is_empty() => Some(SecretSource::Env(env)),
            (None, Some(file)) if !file.is_empty() => Some(SecretSource::File(file.into())),
            _ => {
                let message = format!("`{name}` needs either `env` or `file`");
                self.reader.defect(at, "invalid-secret", message, HELP);
                None
            }
        }
    }
}

/// Returns `true` if the host of the URL is this machine.
fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use mcp_elicit_policy::Rules;

    use super::*;

    const PEOPLE: &str =
        "[people.ops-1]\nmail = \"ops-1@example.com\"\n[groups]\nops = [\"ops-1\"]\n";

    fn read(tables: &str) -> Result<ChannelsConfig, Vec<RuleDefect>> {
        let people = Rules::parse(PEOPLE).unwrap();
        parse(&format!("{tables}{PEOPLE}"), people.people())
    }

    #[test]
    fn every_table_is_read() {
        let config = read(
            r#"
listen = "127.0.0.1:8080"
[channels.mail]
smtp = "smtps://mail.example.com"
from = "Gateway <gateway@example.com>"
password = { env = "SMTP_PASSWORD" }
text = "{server} asks {group} for a decision."
[channels.slack]
token = { env = "SLACK_BOT_TOKEN" }
signing-secret = { file = "/run/secrets/slack" }
team = "T0123"
options-url = true
groups = { ops = "C0456" }
[channels.teams]
groups = { ops = { env = "TEAMS_OPS_URL" } }
[channels.webhook.siem]
url = "https://siem.example.com/in"
secret = { env = "SIEM_SECRET" }
events = ["question.asked", "question.*"]
[channels.push]
contact = "mailto:gateway@example.com"
"#,
        )
        .unwrap();
        let mail = config.mail.unwrap();
        assert_eq!((mail.port, mail.security), (465, SmtpSecurity::Tls));
        assert_eq!(mail.from.email.to_string(), "gateway@example.com");
        assert_eq!(config.slack.unwrap().groups["ops"], "C0456");
        assert_eq!(
            config.teams.unwrap().groups["ops"],
            SecretSource::Env("TEAMS_OPS_URL".to_owned())
        );
        assert_eq!(
            config.webhooks["siem"].events.len(),
            QuestionEvent::ALL.len()
        );
        assert!(config.push.is_some());
        assert_eq!(read("").unwrap(), ChannelsConfig::default());
    }

    #[test]
    fn plain_mail_stays_on_this_machine() {
        let security = |smtp: &str, more: &str| {
            let tables =
                format!("[channels.mail]\nsmtp = \"{smtp}\"\nfrom = \"g@example.com\"\n{more}\n");
            let mail = read(&tables).unwrap().mail.unwrap();
            (mail.host, mail.port, mail.security)
        };
        let own = |host: &str, port, security| (host.to_owned(), port, security);
        assert_eq!(
            security("smtp://mail.example.com", ""),
            own("mail.example.com", 587, SmtpSecurity::StartTls)
        );
        assert_eq!(
            security("smtp://127.0.0.1:2525", ""),
            own("127.0.0.1", 2525, SmtpSecurity::Plain)
        );
        assert_eq!(
            security("smtp://[::1]:2525", ""),
            own("::1", 2525, SmtpSecurity::Plain)
        );
        assert_eq!(
            security("smtp://localhost:2525", "ca = \"ca.pem\""),
            own("localhost", 2525, SmtpSecurity::StartTls)
        );
    }

    #[test]
    fn all_mistakes_come_at_once_with_their_place() {
        let defects = read(
            r#"[channels.mail]
smtp = "http://mail.example.com"
from = "nobody"
password = "hunter2"
text = "{what}"
[channels.slack]
tokn = { env = "A" }
signing-secret = {}
api = "http://slack.example.com/api/"
team = "X1"
groups = { leads = "C0456" }
[channels.teams]
[channels.webhook."a b"]
url = "http://siem.example.com/in"
secret = { env = "A", file = "b" }
events = ["question.askd"]
[channels.webhook.metadata]
url = "https://169.254.169.254/latest"
secret = { env = "A" }
[channels.push]
contact = "https:"
[channels.pigeon]
"#,
        )
        .unwrap_err();
        let found: Vec<_> = defects
            .iter()
            .map(|defect| format!("{}:{} {}", defect.line, defect.column, defect.code))
            .collect();
        assert_eq!(
            found,
            [
                "2:8 invalid-smtp",
                "3:8 invalid-mail",
                "4:12 literal-secret",
                "5:9 invalid-template",
                "6:11 missing-key",
                "7:1 unknown-key",
                "8:18 invalid-secret",
                "9:7 invalid-url",
                "10:8 invalid-slack-id",
                "11:12 no-addressee",
                "12:11 missing-key",
                "13:19 invalid-name",
                "14:7 invalid-url",
                "15:10 invalid-secret",
                "16:11 unknown-event",
                "18:7 invalid-url",
                "21:11 invalid-contact",
                "22:11 unknown-key",
            ]
        );
        assert!(
            defects
                .iter()
                .all(|defect| !defect.to_string().contains("hunter2"))
        );
        assert_eq!(read("[channels").unwrap_err()[0].code, "invalid-toml");
        for (api, help) in [
            ("http://127.0.0.1:9000/api", "end with a slash"),
            ("http://slack.example/api/", "write https"),
            ("x", "write it like"),
        ] {
            let wrong = read(&format!("[channels.slack]\napi = \"{api}\"\n")).unwrap_err();
            let mut wrong = wrong.iter().filter(|defect| defect.code == "invalid-url");
            let told = wrong.next().unwrap().help.clone();
            assert!(told.contains(help), "{api}: {told}");
        }
        assert_eq!(read("channels = 3\n").unwrap_err()[0].code, "wrong-type");
    }
}
