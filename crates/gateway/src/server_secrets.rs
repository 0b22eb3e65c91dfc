//! The operator's credentials at a server, which no name of the server and no log shows if the server repeats them.

use std::ffi::OsString;

use http::HeaderValue;
use mcp_elicit_core::secret::SecretText;

use crate::config::{ConfiguredServer, ServerTarget};
use crate::server_identity::is_secret;
use crate::transports::process::{Inherits, Program};

/// The shortest text that is taken for a credential, in bytes: a shorter one is part of other words.
const SHORTEST: usize = 6;

/// Returns the credentials that a server is given. `environment` is the gateway's own, which a program may inherit.
pub(crate) fn secrets_of(
    server: &ConfiguredServer,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<SecretText> {
    let mut secrets = match &server.target {
        ServerTarget::Program(program) => of_program(program, environment),
        ServerTarget::Url(at) => {
            let headers = at.headers.iter().map(|(_, value)| value);
            let mut all: Vec<String> = headers.flat_map(with_and_without_scheme).collect();
            all.extend(at.token.iter().map(|token| token.secret().to_owned()));
            all
        }
    };
    secrets.retain(|secret| secret.len() >= SHORTEST);
    secrets.sort();
    secrets.dedup();
    secrets.into_iter().map(SecretText::new).collect()
}

/// Returns the values whose names say that they are credentials, of variables and of arguments.
fn of_program(
    program: &Program,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<String> {
    let is_named = |name: &str| is_secret(name) || name.to_ascii_lowercase().ends_with("key");
    let inherited = environment.into_iter().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        Some((name, value.into_string().ok()?))
    });
    let inherited = inherited.filter(|_| program.inherits == Inherits::default());
    let variables = program.environment.iter().cloned().chain(inherited);
    let variables = variables.filter(|(name, _)| is_named(name));
    let mut secrets: Vec<String> = variables.map(|(_, value)| value).collect();
    let mut is_next = false;
    for word in &program.arguments {
        let word = word.to_string_lossy();
        let (name, value) = word.split_once('=').unwrap_or((&word, ""));
        if std::mem::take(&mut is_next) {
            secrets.push(word.into_owned());
        } else if is_named(name) && !value.is_empty() {
            secrets.push(value.to_owned());
        } else {
            is_next = is_named(name) && name.starts_with('-');
        }
    }
    secrets
}

/// Returns the value of a header, and the part after its scheme.
fn with_and_without_scheme(value: &HeaderValue) -> Vec<String> {
    let Ok(value) = value.to_str() else {
        return Vec::new();
    };
    let after = value.split_once(' ').map(|(_, after)| after.trim());
    let all = [Some(value), after].into_iter().flatten();
    all.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use mcp_elicit_relay::RelaySettings;

    use super::*;
    use crate::config::UpstreamCredentials;
    use crate::transports::http_upstream::HttpTarget;

    fn secrets(target: ServerTarget) -> Vec<String> {
        let server = ConfiguredServer {
            target,
            credentials: UpstreamCredentials::default(),
            settings: RelaySettings::default(),
            share_child: false,
            answering: None,
            is_named: false,
            is_configured_by_environment: true,
        };
        let own = [("GITHUB_TOKEN", "inherited-1"), ("HOME", "/home/ada")];
        let own = own.map(|(name, value)| (name.into(), value.into()));
        let secrets = secrets_of(&server, own).into_iter();
        secrets.map(|secret| secret.reveal().to_owned()).collect()
    }

    #[test]
    fn a_server_s_credentials_are_those_that_it_is_given() {
        let words = [
            "files",
            "--token=argument-1",
            "--api-key",
            "argument-2",
            "--dir=/srv/data",
        ];
        let mut program = Program::from_words(words).unwrap();
        program.environment = [("API_KEY", "variable-1"), ("MODE", "production")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
        let all = ["argument-1", "argument-2", "inherited-1", "variable-1"];
        assert_eq!(secrets(ServerTarget::Program(program.clone())), all);
        program.inherits = Inherits::Usual;
        assert_eq!(
            secrets(ServerTarget::Program(program)),
            ["argument-1", "argument-2", "variable-1"]
        );
        let mut at = HttpTarget::new("http://localhost/mcp");
        at.headers = [("authorization", "Bearer header-1"), ("x-team", "a")]
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .to_vec();
        assert_eq!(
            secrets(ServerTarget::Url(at)),
            ["Bearer header-1", "header-1"]
        );
    }
}
