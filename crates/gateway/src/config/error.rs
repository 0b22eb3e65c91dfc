//! The errors of a configuration, each with its line in the file.

use std::net::SocketAddr;

use mcp_elicit_client::connection::TokenError;
use mcp_elicit_policy::document::hide_text;
use mcp_elicit_policy::{RuleDefect, nearest};
use serde::de::DeserializeOwned;

use super::{AnswerWithError, HeaderError, LoginConfigError, NoAddress, PeerSettingsError, file};

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is not TOML, or has a misplaced key: the parser's text without values that may be secrets. The parser's
    /// error shows them, so it is not the source.
    #[error("{0}")]
    Toml(String),
    /// A server has neither or both of the two, or a key of the other.
    #[error(
        "server `{name}` needs either `command`, optionally with `env`, `pass-env` and `share-child`, or `url`, optionally with `token-env` or `auth`, `headers`, `header-env` and `sign-in`"
    )]
    Target {
        /// The server.
        name: String,
    },
    /// The file has no server.
    #[error("the file names no server; add `[servers.NAME]` with `command` or `url`")]
    NoServer,
    /// A name that cannot be part of an address.
    #[error("server name `{name}` may have letters, digits, `-` and `_` only")]
    Name {
        /// The name.
        name: String,
    },
    /// `answer-with` conflicts with `answer-command` or the inbox.
    #[error("server `{name}`: {fault}")]
    AnswerCommand {
        /// The server.
        name: String,
        /// The error.
        fault: AnswerWithError,
    },
    /// The token for a server cannot be used.
    #[error("server `{name}`: {fault}")]
    Token {
        /// The server.
        name: String,
        /// The error.
        fault: TokenError,
    },
    /// Several servers need an address to serve them under.
    #[error("several servers need `listen`, such as listen = \"127.0.0.1:8080\"")]
    NoListen,
    /// A server's address is unusable.
    #[error("server `{name}`: {fault}")]
    Address {
        /// The server.
        name: String,
        /// The error.
        fault: NoAddress,
    },
    /// The inbox would be open to the network.
    #[error("the inbox is for this machine: {at} is not a loopback address")]
    NotLoopback {
        /// The address.
        at: SocketAddr,
    },
    /// A number is too small or too large.
    #[error("`{name}` is {value}; it may be from {least} to {most}")]
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// The number in the file.
        value: u64,
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// A value that is not an origin.
    #[error("`{text}` is not an origin: write it like http://localhost:6274")]
    Origin {
        /// The value.
        text: String,
    },
    /// Authenticated callers need a listener.
    #[error("`[auth]` is for callers over HTTP; add `listen`, such as listen = \"127.0.0.1:8080\"")]
    AuthNeedsListen,
    /// `[login]` cannot be used.
    #[error(transparent)]
    Login(#[from] LoginConfigError),
    /// Settings of a proxy that is not used.
    #[error(
        "`trusted-proxies` and `[auth.proxy]` go with `[auth]` mode = \"proxy\", the former with that of `[login]` too"
    )]
    ProxyMode,
    /// Without trusted proxies, any address could name any caller.
    #[error(
        "mode = \"proxy\" needs `trusted-proxies` with the proxy's address, such as trusted-proxies = [\"10.0.0.5\"]"
    )]
    NoTrustedProxies,
    /// A range of all addresses.
    #[error("`{text}` is nearly every address: name the proxy's")]
    TrustsEverybody {
        /// The range.
        text: String,
    },
    /// Neither an address nor a range of addresses.
    #[error("`{text}` is not an address or a range of addresses such as 10.0.0.0/8")]
    Network {
        /// The value.
        text: String,
    },
    /// An issuer that must not be shown.
    #[error("an issuer is visible ASCII without spaces, such as https://id.example.com")]
    Issuer,
    /// Not the name of a header, or of one that clients set themselves.
    #[error(
        "`{text}` is not the name of an HTTP header that a proxy can set, such as X-Forwarded-User"
    )]
    HeaderName {
        /// The value.
        text: String,
    },
    /// A table of teams, in a build without teams.
    #[error(
        "{table} belongs to the cargo feature `full`, which this build does not have; install it with \
         `cargo install --locked --profile dist --path crates/cli --features full`"
    )]
    NeedsFull {
        /// The table.
        table: &'static str,
    },
    /// `traces` is not the address of a collector.
    #[error(
        "`traces` must be the address of an OpenTelemetry collector, such as http://localhost:4318"
    )]
    Traces,
    /// Errors in rules, people, groups or roles.
    #[error("{}", listed(.0))]
    Rules(Vec<RuleDefect>),
    /// Rules that ask people, without an inbox to ask them in.
    #[error(
        "rules that ask people need `inbox`, such as inbox = \"127.0.0.1:7878\", and `[login]`, which distinguishes people"
    )]
    RulesNeedInbox,
    /// Rules that exclude the caller, and callers that cannot be matched to people.
    #[error("rule `{rule}` has `not-caller`, which would exclude no one: {why}")]
    NotCaller {
        /// The rule.
        rule: String,
        /// The reason why callers cannot be matched to people.
        why: String,
    },
    /// A rule requires a recent login, but a proxy does not report login times.
    #[error(
        "rule `{rule}` has `reauth`, and with `[login]` mode = \"proxy\" it is not known when people logged in: nobody could answer; \
         use mode = \"oidc\", or take `reauth` away"
    )]
    ReauthBehindProxy {
        /// The rule.
        rule: String,
    },
    /// Not the name of a time zone.
    #[error("the time zone `{text}` is not known here: write it like Europe/Berlin")]
    TimeZone {
        /// The name.
        text: String,
    },
    /// The credentials for a server are not available.
    #[error("server `{server}`, `auth`: {why}")]
    UpstreamAuth {
        /// The server.
        server: String,
        /// The reason.
        why: String,
    },
    /// A header for a server cannot be sent.
    #[error("server `{server}`: {error}")]
    Header {
        /// The server.
        server: String,
        /// The error.
        error: HeaderError,
    },
    /// Modes that do not combine.
    #[error("only these two modes go together: mode = [\"oidc\", \"keys\"]")]
    Modes,
    /// Settings of an issuer that is not used.
    #[error("`[auth.oidc]` and `leeway` go with `[auth]` mode = \"oidc\"")]
    OidcMode,
    /// The issuer is missing.
    #[error("mode = \"oidc\" needs `[auth.oidc]` with `issuer`")]
    NoOidc,
    /// An issuer without https.
    #[error("`{text}` is not an issuer: write it like https://id.example.com, without a query")]
    IssuerUrl {
        /// The value.
        text: String,
    },
    /// The issuer could not identify the gateway.
    #[error("introspection needs `client-id` and `client-secret`")]
    NoClient,
    /// Not the name of a scope.
    #[error("`{text}` is not a scope: visible ASCII without spaces and quotes")]
    ScopeName {
        /// The value.
        text: String,
    },
    /// A clock leeway that is not a duration, or too large.
    #[error("`{text}` is not a leeway: write it like 60s, up to 5m")]
    Leeway {
        /// The value.
        text: String,
    },
    /// A secret that is not available.
    #[error("`{setting}`: {why}")]
    Secret {
        /// The setting.
        setting: String,
        /// The reason.
        why: String,
    },
    /// Not an address for callers.
    #[error(
        "`{text}` is not a public address: write it like https://mcp.example.com, without a path"
    )]
    PublicUrl {
        /// The value.
        text: String,
    },
    /// The resource of a token would be unknown.
    #[error(
        "mode = \"oidc\" off loopback needs `public-url`, such as public-url = \"https://mcp.example.com\""
    )]
    NoPublicUrl,
    /// Other gateways cannot reach this one as configured.
    #[error(transparent)]
    Peers(#[from] PeerSettingsError),
    /// One of the others, at a line of the file.
    #[error("error at line {line}\n  |\n{line} | {shown}\n  |\n{fault}")]
    At {
        /// Counted from 1.
        line: usize,
        /// The line.
        shown: String,
        /// The error there.
        fault: Box<ConfigError>,
    },
}

/// Returns all errors, each on its own line with its position.
fn listed(defects: &[RuleDefect]) -> String {
    let count = defects.len();
    let mut text = format!(
        "{count} mistake{} (line:column):",
        if count == 1 { "" } else { "s" }
    );
    for defect in defects {
        text.push_str("\n  ");
        text.push_str(&defect.to_string());
    }
    text
}

/// Settings whose line may be shown: no value of theirs is a secret, even by mistake.
const SHOWN: [&str; 41] = [
    "listen",
    "peer-listen",
    "peer-address",
    "inbox",
    "presence",
    "notify",
    "state",
    "insecure",
    "max-frame",
    "ready-grace",
    "drain",
    "caller-call-bytes",
    "all-call-bytes",
    "caller-question-bytes",
    "all-question-bytes",
    "argument-bytes",
    "max-record",
    "max-open",
    "allow-origins",
    "trusted-proxies",
    "public-url",
    "keep-answers",
    "keep-results",
    "keep-ended",
    "keep-audit",
    "time-zone",
    "sign-in",
    "scopes",
    "callback-port",
    "share-child",
    "revision",
    "answer-with",
    "hold",
    "open-for",
    "patience",
    "pending",
    "message-bytes",
    "pending-bytes",
    "questions-per-minute",
    "mode",
    "leeway",
];

/// Returns a line of the file without the value of any other setting, which may be a secret; `None` if it can be shown.
fn without_value(line: &str) -> Option<String> {
    let start = line.trim_start();
    if start.is_empty() || start.starts_with('[') && !start.contains('=') {
        return None;
    }
    // A line inside of a value has no name.
    let Some((name, value)) = line.split_once('=') else {
        return Some("...".to_owned());
    };
    let is_shown = SHOWN.contains(&name.trim()) && !value.contains('{');
    (!is_shown).then(|| format!("{name}= ..."))
}

/// Returns a message of the parser without the texts of the file that it repeats.
fn without_texts(message: &str) -> String {
    let mut shown = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once("string \"") {
        shown.push_str(before);
        shown.push_str("a text");
        let mut is_escaped = false;
        let end = after.find(|c| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    shown.push_str(rest);
    match shown.split_once("unknown variant `") {
        Some((before, after)) => {
            let end = after
                .find("`, expected")
                .map_or("", |end| &after[end + 1..]);
            format!("{before}unknown value{end}")
        }
        None => shown,
    }
}

/// Returns the parser's text, without a value that may be a secret.
fn without_secrets(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let mut lines = text.split('\n');
    let (Some(head), Some(bar), Some(line)) = (lines.next(), lines.next(), lines.next()) else {
        return without_texts(&text);
    };
    let numbered = line
        .split_once(" | ")
        .filter(|_| head.starts_with("TOML parse error"));
    let Some((number, source)) = numbered else {
        return without_texts(&text);
    };
    match without_value(source) {
        None => text,
        Some(shown) => {
            let message = without_texts(error.message());
            format!("{head}\n{bar}\n{number} | {shown}\n{bar}\n{message}\n")
        }
    }
}

/// Returns the parser's message, with programmers' terms replaced.
fn plain_words(error: &toml::de::Error) -> String {
    let mut text = without_secrets(error);
    for (theirs, ours) in [
        ("expected u64", "expected a whole number"),
        ("expected usize", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        (
            "expected socket address",
            "expected an address such as 127.0.0.1:8080",
        ),
    ] {
        text = text.replace(theirs, ours);
    }
    match meant(&text) {
        Some((names, meant)) => text.replacen(&names, &meant, 1),
        None => text,
    }
}

/// Returns the list of all allowed keys in the message, and its replacement, if one of them is close to the unknown
/// key.
fn meant(text: &str) -> Option<(String, String)> {
    let (_, rest) = text.split_once("unknown field `")?;
    let (unknown, rest) = rest.split_once('`')?;
    let names = rest
        .lines()
        .next()
        .filter(|rest| rest.starts_with(", expected "))?;
    let known = || names.split('`').skip(1).step_by(2);
    let tables = [
        (
            file::keys(),
            "at the top of the file, before the first table",
        ),
        (file::server_keys(), "in `[servers.NAME]`"),
    ];
    for (keys, place) in tables {
        // Some keys belong to both.
        let is_here = known().eq(keys.iter().map(String::as_str));
        if !is_here && keys.iter().any(|key| key == unknown) {
            return Some((names.to_owned(), format!(": it belongs {place}")));
        }
    }
    let near = nearest(unknown, known())?;
    Some((names.to_owned(), format!(": did you mean `{near}`?")))
}

/// Returns the keys of a table, as its reader lists them in an error.
pub(super) fn keys_of<T: DeserializeOwned>() -> Vec<String> {
    // No key of a table is empty.
    let error = toml::from_str::<T>("\"\" = 0\n").err();
    let text = error.map(|error| error.to_string()).unwrap_or_default();
    let (_, names) = text.split_once("expected ").unwrap_or_default();
    let names = names.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

/// Returns a text without what stands between `://` and the last `@` of a word.
pub fn hide_userinfo(text: &str) -> String {
    let word = |word: &str| match (word.find("://"), word.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}://{}", &word[..scheme], &word[at + 1..])
        }
        _ => word.to_owned(),
    };
    let words = text.split_inclusive([' ', '"', '\'']).map(word);
    words.collect()
}

impl From<toml::de::Error> for ConfigError {
    fn from(error: toml::de::Error) -> Self {
        Self::Toml(plain_words(&error))
    }
}

impl ConfigError {
    /// Adds this line of the file, counted from 1.
    pub(super) fn at_line(self, text: &str, line: usize) -> Self {
        Self::At {
            line,
            shown: text
                .lines()
                .nth(line.saturating_sub(1))
                .unwrap_or_default()
                .to_owned(),
            fault: Box::new(self),
        }
    }

    /// Adds the position of this byte of the file.
    pub(super) fn at(self, text: &str, place: usize) -> Self {
        let before = text.get(..place).unwrap_or_default();
        let line = before.matches('\n').count();
        let mut shown = text.lines().nth(line).unwrap_or_default().to_owned();
        let is_text = text[before.len()..].starts_with(['"', '\'']);
        if is_text && matches!(self, Self::Secret { .. }) {
            let column = before.chars().rev().take_while(|c| *c != '\n').count();
            shown = hide_text(&shown, column).0;
        } else if matches!(
            self,
            Self::Address { .. } | Self::Header { .. } | Self::UpstreamAuth { .. } | Self::Traces
        ) {
            shown = without_value(&shown).unwrap_or(shown);
        }
        Self::At {
            line: line + 1,
            shown,
            fault: Box::new(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp_elicit_core::fault::with_causes;

    use crate::config::Config;

    #[test]
    fn no_value_that_may_be_a_secret_is_shown_with_a_mistake() {
        let server = "[servers.a]\nurl = \"https://a.example/mcp\"\n";
        for (top, in_server) in [
            ("record = \"host=127.0.0.1 password=sekret\"", ""),
            ("record = \"jdbc:postgresql://x?password=sekret\"", ""),
            ("record = [\"sekret\"]", ""),
            ("record = sekret", ""),
            ("record = \"sekret", ""),
            ("recrod = \"postgres://me:sekret@x/y\"", ""),
            (
                "state = \"s\"\nrecord = \"sekret\"\nrecord = \"sekret\"",
                "",
            ),
            ("record-password = \"sekret\" x", ""),
            ("record-password = sekret", ""),
            ("record-pasword = \"sekret\"", ""),
            ("record-password-command = \"print sekret\"", ""),
            (
                "record-password-command = [\n\"sekret\",\n\"sekret\" 1]",
                "",
            ),
            (
                "login = { mode = \"oidc\", client-secret = \"sekret\", x = 1 }",
                "",
            ),
            ("login = \"sekret\"", ""),
            ("auth = \"sekret\"", ""),
            ("", "headers = \"Authorization: Bearer sekret\""),
            ("", "headers = { Authorization = [\"sekret\"] }"),
            ("", "headers = { Authorization = \"sekret\", X = 1 }"),
            ("", "token = \"sekret\""),
            ("", "env = \"KEY=sekret\""),
            ("", "env = { KEY = \"sekret\", X = 1 }"),
            ("", "[servers.a.headers]\nAuthorization = \"Bearer sekret"),
            (
                "",
                "[servers.b]\nurl = \"https://me:sekret@x\"\nsign-in = true",
            ),
            ("", "[servers.b]\ncommand = \"x --key sekret\""),
            ("", "[servers.b]\ncommand = [\"x\", \"sekret\", 1]"),
        ] {
            let text = format!("listen = \"127.0.0.1:0\"\n{top}\n{server}{in_server}\n");
            let error = Config::parse(&text).unwrap_err();
            let said = with_causes(&error);
            assert!(!said.contains("sekret"), "{text}\n{said}");
            assert!(!format!("{error:?}").contains("sekret"), "{error:?}");
            let lines = said.matches(" | ").count();
            assert!(lines <= 1, "the line is shown once: {said}");
        }
        let harmless = format!("listen = \"here\"\n{server}");
        let said = Config::parse(&harmless).unwrap_err().to_string();
        assert!(said.contains("1 | listen = \"here\""), "{said}");
    }
}
