//! Checks at the start for parts that a gateway needs only later: the servers' programs and the issuers. Errors are
//! reported and stop nothing, because they may be fixed in time.

#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;

use mcp_elicit_inbox::state_folder::StateFolder;

use crate::callers::Callers;
use crate::config::{Config, ConfiguredServer, ServerTarget};
use crate::transports::process::Program;

/// Begins the checks in the background. Must be called in a tokio runtime.
pub(super) fn begin(config: &Config, callers: &Arc<Callers>, state: &StateFolder) {
    // A client on stdio starts its one server at once.
    if config.listen.is_some() {
        check_programs(&config.servers);
    }
    #[cfg(feature = "teams")]
    check_keys(config, callers);
    #[cfg(feature = "teams")]
    check_bindings(config, state);
    #[cfg(feature = "teams")]
    begin_issuers(config, callers.clone());
    #[cfg(not(feature = "teams"))]
    let _ = (callers, state);
}

/// Warns of servers whose program is not there.
pub(super) fn check_programs<'s>(servers: impl IntoIterator<Item = &'s ConfiguredServer>) {
    for server in servers {
        if let ServerTarget::Program(program) = &server.target
            && !is_there(program)
        {
            tracing::warn!(
                server = %server.settings.server,
                program = %program.program.display(),
                "the program of a server is not there, or cannot be started by this user: its calls fail until it is; check `command`"
            );
        }
    }
}

/// Warns of keys for people who are not in the file.
#[cfg(feature = "teams")]
fn check_keys(config: &Config, callers: &Callers) {
    let Some(rules) = &config.teams else {
        return;
    };
    for (key, person) in callers.keys_of_strangers(rules.people()) {
        tracing::warn!(
            %key, %person,
            "a key is made for somebody who is not in [people]: rules that exclude the caller refuse its calls; make another with `tokens make --for NAME`"
        );
    }
}

/// Warns of people in the file who have logged in at another issuer: they cannot log in at this one.
#[cfg(feature = "teams")]
fn check_bindings(config: &Config, state: &StateFolder) {
    let (Some(rules), Some(login)) = (&config.teams, &config.login) else {
        return;
    };
    // An unreadable table is reported with the first login.
    let Ok(table) = state.logins().table() else {
        return;
    };
    let known = &rules.people().people;
    let bound = table.bound().filter(|(person, issuer, ..)| {
        *issuer != login.issuer()
            && known
                .get(*person)
                .is_some_and(|person| person.subject.is_none())
    });
    let people: Vec<_> = bound.map(|(person, ..)| person).collect();
    if !people.is_empty() {
        tracing::warn!(
            people = %people.join(", "),
            "these people have logged in at another issuer, and cannot log in at the issuer of `[login]` until `mcp-elicit inbox people unbind NAME` releases each"
        );
    }
}

/// Requests the metadata of the issuers of callers and people.
#[cfg(feature = "teams")]
fn begin_issuers(config: &Config, callers: Arc<Callers>) {
    use mcp_elicit_inbox::login::LoginMode;

    let login = config.login.as_ref().and_then(|login| match &login.mode {
        LoginMode::Oidc(oidc) => Some((oidc.issuer.clone(), oidc.client_id.clone())),
        LoginMode::Proxy(_) => None,
    });
    tokio::spawn(async move {
        if let Some((issuer, why)) = callers.fault_of_issuer().await {
            tracing::warn!(%issuer, %why, "the issuer of `[auth.oidc]` cannot be used now");
        }
    });
    tokio::spawn(async move {
        let Some((issuer, client)) = login else {
            return;
        };
        let Ok(provider) = mcp_elicit_oidc::Provider::issuer(&issuer, client) else {
            return;
        };
        let now = mcp_elicit_record::clock::now().as_millis();
        if let Err(why) = provider.metadata(now).await {
            tracing::warn!(
                %issuer, %why,
                "the issuer of `[login]` cannot be used now, so people cannot log in; check `issuer`, and that this machine reaches it"
            );
        }
    });
}

/// Returns `true` if the program can be started, according to its file.
#[cfg(unix)]
fn is_there(program: &Program) -> bool {
    use std::os::unix::ffi::OsStrExt as _;

    let name = Path::new(&program.program);
    if program.program.as_bytes().contains(&b'/') {
        return is_executable(name);
    }
    let mut own = program.environment.iter();
    let path = match own.rfind(|(variable, _)| variable == "PATH") {
        Some((_, path)) => Some(path.into()),
        None => std::env::var_os("PATH"),
    };
    // Without a PATH, the system has its own.
    path.is_none_or(|path| {
        std::env::split_paths(&path).any(|folder| is_executable(&folder.join(name)))
    })
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    let metadata = std::fs::metadata(path);
    metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Returns `true`, because other systems find programs in more ways than can be checked here.
#[cfg(not(unix))]
fn is_there(_: &Program) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_the_system_finds_it() {
        let there = |words: &[&str], path: Option<&str>| {
            let mut program = Program::from_words(words.iter().copied()).unwrap();
            let path = path.map(|path| ("PATH".to_owned(), path.to_owned()));
            program.environment.extend(path);
            is_there(&program)
        };
        assert!(there(&["sh", "-c", "true"], None));
        assert!(there(&["/bin/sh"], Some("/nonexistent")));
        assert!(there(&["sh"], Some("/nonexistent:/bin")));
        assert!(!there(&["sh"], Some("/nonexistent")));
        assert!(!there(&["no-such-program-anywhere"], None));
        assert!(!there(&["/bin/no-such-program"], None));
        // A file that is not executable, and a folder.
        assert!(!there(&["/etc/passwd"], None));
        assert!(!there(&["/bin/"], None));
    }
}
