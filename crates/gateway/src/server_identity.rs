//! The identity of a running server: a hash that distinguishes it from every other, and its name for people.
//!
//! A server is its command line, its working folder and the environment that configures it; or its URL, token, headers
//! and client of a sign-in. Two entries of a client that start the same program with other arguments or another key in
//! the environment are two servers: an answer never goes from one to the other. In the file of a gateway each server has
//! a name of its own, which stands for its token and headers: with a new token it is the same server. Variables that only describe where the gateway was started (a
//! terminal, a desktop session) do not count, since the same server must be recognised after a restart.

use std::ffi::OsString;

use crate::config::{ConfiguredServer, ServerTarget};
use crate::transports::process::Program;
use mcp_elicit_record::{IdentityKey, ServerIdentity};

/// The longest command that is shown, in characters.
const SHOWN: usize = 200;

/// Variables that describe where a process was started, and do not configure it.
const OF_THE_SESSION: [&str; 17] = [
    "_",
    "COLORTERM",
    "COLUMNS",
    "DISPLAY",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LINES",
    "LS_COLORS",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "STY",
    "TERM",
    "TMUX",
    "TMUX_PANE",
    "WAYLAND_DISPLAY",
    "WINDOWID",
];
/// Prefixes of names of other variables.
const OF_THE_SESSION_BY_START: [&str; 8] = [
    "DBUS_",
    "ITERM_",
    "KITTY_",
    "MCP_ELICIT_",
    "SSH_",
    "TERM_",
    "VTE_",
    "XDG_",
];
/// Suffixes of names of other variables.
const OF_THE_SESSION_BY_END: [&str; 2] = ["_PID", "_SESSION_ID"];

/// Returns the server's identity. `environment` is the gateway's own, which counts if it configures the server.
pub(crate) fn server_identity(
    server: &ConfiguredServer,
    key: &IdentityKey,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> ServerIdentity {
    let (hash, address) = match &server.target {
        ServerTarget::Program(program) => {
            let own = environment
                .into_iter()
                .filter(|_| server.is_configured_by_environment);
            (key_of_program(program, key, own), shown_command(program))
        }
        ServerTarget::Url(at) => {
            let token = at.token.as_ref().map_or("", |token| token.secret());
            let mut parts = vec![at.url.as_bytes()];
            if server.is_configured_by_environment {
                parts.push(token.as_bytes());
                for (name, value) in &at.headers {
                    parts.extend([name.as_str().as_bytes(), value.as_bytes()]);
                }
            } else {
                parts.extend([b"\0named", server.settings.server.as_bytes()]);
            }
            if let Some(sign_in) = &at.sign_in {
                // Tokens are renewed, and the server stays the same.
                parts.extend([b"\0sign-in", sign_in.client_id().as_bytes()]);
            }
            (key.hash("server-url", &parts), shown_url(&at.url))
        }
    };
    ServerIdentity {
        name: server.settings.server.clone(),
        is_named: server.is_named,
        address,
        key: hash,
    }
}

/// Returns a key of what the configuration names: the command, its arguments and the names of its own variables, or the
/// URL. It is the same wherever the gateway is started. It serves facts that follow from the program, never answers.
pub(crate) fn configured_key(server: &ConfiguredServer, key: &IdentityKey) -> String {
    match &server.target {
        ServerTarget::Program(program) => {
            let mut parts: Vec<&[u8]> = vec![program.program.as_encoded_bytes()];
            parts.extend(program.arguments.iter().map(|word| word.as_encoded_bytes()));
            parts.push(b"\0environment");
            let mut names: Vec<&str> = program
                .environment
                .iter()
                .map(|(name, _)| name.as_str())
                .collect();
            names.sort_unstable();
            parts.extend(names.iter().map(|name| name.as_bytes()));
            key.hash("configured-program", &parts)
        }
        ServerTarget::Url(at) => key.hash("configured-url", &[at.url.as_bytes()]),
    }
}

fn key_of_program(
    program: &Program,
    key: &IdentityKey,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> String {
    let folder = std::env::current_dir().unwrap_or_default();
    let mut variables: Vec<(OsString, OsString)> = environment
        .filter(|(name, _)| !is_of_the_session(&name.to_string_lossy()))
        .collect();
    let set = program.environment.iter();
    variables.extend(set.map(|(name, value)| (name.into(), value.into())));
    variables.sort_unstable();
    let mut parts: Vec<&[u8]> = vec![
        folder.as_os_str().as_encoded_bytes(),
        program.program.as_encoded_bytes(),
    ];
    parts.extend(program.arguments.iter().map(|word| word.as_encoded_bytes()));
    // A unique marker between arguments and variables.
    parts.push(b"\0environment");
    for (name, value) in &variables {
        parts.push(name.as_encoded_bytes());
        parts.push(value.as_encoded_bytes());
    }
    key.hash("server-program", &parts)
}

fn is_of_the_session(name: &str) -> bool {
    OF_THE_SESSION.contains(&name)
        || OF_THE_SESSION_BY_START
            .iter()
            .any(|start| name.starts_with(start))
        || OF_THE_SESSION_BY_END.iter().any(|end| name.ends_with(end))
}

/// Returns the command as people know it, without apparent secrets.
fn shown_command(program: &Program) -> String {
    let mut shown = program.program.to_string_lossy().into_owned();
    let mut hide_next = false;
    for word in &program.arguments {
        let word = word.to_string_lossy();
        shown.push(' ');
        let (name, value) = word.split_once('=').unwrap_or((&word, ""));
        let secret = is_secret(name);
        if std::mem::take(&mut hide_next) {
            shown.push('…');
        } else if secret && !value.is_empty() {
            shown.push_str(name);
            shown.push_str("=…");
        } else {
            hide_next = secret && name.starts_with('-');
            shown.push_str(&word);
        }
    }
    cut(&shown)
}

/// Returns `true` if the name of a variable or an option says that its value is a credential.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "token",
        "secret",
        "password",
        "passwd",
        "apikey",
        "api-key",
        "api_key",
        "credential",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// Returns the URL without credentials and query.
fn shown_url(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or_default();
    let shown = match bare.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit('@').next().unwrap_or(host);
            format!("{scheme}://{host}{path}")
        }
        None => bare.to_owned(),
    };
    cut(&shown)
}

fn cut(text: &str) -> String {
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(SHOWN - 1).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transports::http_upstream::HttpTarget;
    use mcp_elicit_client::connection::BearerToken;
    use mcp_elicit_relay::RelaySettings;

    fn program(words: &[&str], environment: &[(&str, &str)]) -> ConfiguredServer {
        let program = Program::from_words(words.iter().copied()).unwrap();
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        ConfiguredServer {
            share_child: false,
            target: ServerTarget::Program(Program {
                environment: environment.iter().map(owned).collect(),
                ..program
            }),
            credentials: crate::config::UpstreamCredentials::default(),
            settings: RelaySettings::default(),
            answering: None,
            is_named: false,
            is_configured_by_environment: true,
        }
    }

    fn ambient(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        let owned = |(name, value): &(&str, &str)| (name.into(), value.into());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn servers_that_run_differently_are_two_servers() {
        let key = IdentityKey::random().unwrap();
        let of = |server: &ConfiguredServer, pairs: &[(&str, &str)]| {
            server_identity(server, &key, ambient(pairs)).key
        };
        let staging = program(&["npx", "env", "staging"], &[]);
        let one = of(&staging, &[("API_KEY", "a"), ("TERM", "xterm")]);
        assert_eq!(one, of(&staging, &[("TERM", "dumb"), ("API_KEY", "a")]));
        assert_ne!(
            one,
            of(&staging, &[("API_KEY", "b")]),
            "configured otherwise"
        );
        let production = program(&["npx", "env", "production"], &[]);
        assert_ne!(one, of(&production, &[("API_KEY", "a")]));
        let set = program(&["npx", "env", "staging"], &[("REGION", "eu")]);
        assert_ne!(one, of(&set, &[("API_KEY", "a")]));
        let of_a_file = ConfiguredServer {
            is_configured_by_environment: false,
            ..program(&["npx", "env", "staging"], &[("API_KEY", "a")])
        };
        assert_eq!(of(&of_a_file, &[]), of(&of_a_file, &[("API_KEY", "b")]));
    }

    #[test]
    fn a_program_has_one_key_wherever_it_is_started() {
        let key = IdentityKey::random().unwrap();
        let of = |server: &ConfiguredServer| configured_key(server, &key);
        let one = program(&["npx", "env", "staging"], &[("API_KEY", "a")]);
        assert_eq!(
            of(&one),
            of(&program(&["npx", "env", "staging"], &[("API_KEY", "b")]))
        );
        for other in [
            program(&["npx", "env", "production"], &[("API_KEY", "a")]),
            program(&["npx", "env", "staging"], &[("REGION", "eu")]),
            program(&["npx", "env", "staging", "\0environment", "API_KEY"], &[]),
        ] {
            assert_ne!(of(&one), of(&other));
        }
        let far = |url: &str| ConfiguredServer {
            target: ServerTarget::Url(HttpTarget::new(url)),
            ..program(&["x"], &[])
        };
        assert_eq!(
            of(&far("https://a.example/mcp")),
            of(&far("https://a.example/mcp"))
        );
        assert_ne!(
            of(&far("https://a.example/mcp")),
            of(&far("https://b.example/mcp"))
        );
    }

    #[test]
    fn a_named_server_of_a_file_stays_the_same_with_a_new_token() {
        let key = IdentityKey::random().unwrap();
        let far = |name: &str, token: &str, is_configured_by_environment: bool| {
            let mut at = HttpTarget::new("https://a.example/mcp");
            at.token = Some(BearerToken::new(token).unwrap());
            let settings = RelaySettings {
                server: name.to_owned(),
                ..RelaySettings::default()
            };
            let server = ConfiguredServer {
                target: ServerTarget::Url(at),
                settings,
                is_configured_by_environment,
                ..program(&["x"], &[])
            };
            server_identity(&server, &key, []).key
        };
        assert_eq!(far("crm", "old", false), far("crm", "new", false));
        assert_ne!(far("crm", "old", false), far("erp", "old", false));
        assert_ne!(far("crm", "a", true), far("crm", "b", true));
    }

    #[test]
    fn an_address_is_shown_without_secrets() {
        let key = IdentityKey::random().unwrap();
        let shown = |server: &ConfiguredServer| server_identity(server, &key, []).address;
        let words = [
            "npx",
            "-y",
            "files",
            "--token",
            "hunter2",
            "--api-key=hunter3",
            "x=1",
        ];
        assert_eq!(
            shown(&program(&words, &[])),
            "npx -y files --token … --api-key=… x=1"
        );
        let far = ConfiguredServer {
            target: ServerTarget::Url(HttpTarget::new("https://me:pw@example.com:8080/mcp?key=1")),
            ..program(&["x"], &[])
        };
        assert_eq!(shown(&far), "https://example.com:8080/mcp");
    }
}
