//! The eras of a server, for people and programs: those that it speaks, those in which it was seen to ask, and the
//! revision in which it is addressed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_elicit_client::ConnectError;
use mcp_elicit_client::connection::ConnectErrorKind;
use mcp_elicit_core::fault::with_causes;
use mcp_elicit_core::wire::Revision;
use mcp_elicit_forms::view::sanitize;
use mcp_elicit_gateway::config::{ConfiguredServer, ServerTarget};
use mcp_elicit_gateway::{SupportedEras, asked_eras, supported_eras};
use mcp_elicit_inbox::state_folder::StateFolder;
use mcp_elicit_relay::AskedEras;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::output;

/// The time that a server has for its first answer.
const WITHIN: Duration = Duration::from_secs(10);

/// The same where a launcher may have to download the server first.
const WITH_DOWNLOAD: Duration = Duration::from_secs(180);

/// The time that a launcher has before a download is mentioned.
const SILENT_TIME: Duration = Duration::from_secs(5);

/// Programs that download a server and start it.
const LAUNCHERS: [&str; 11] = [
    "npx", "pnpm", "yarn", "bunx", "bun", "deno", "uvx", "uv", "pipx", "docker", "podman",
];

/// The longest reason that is shown, in characters.
const REASON: usize = 300;

/// A line of what `gateway --check --json` prints. Words of a server are in members of their own.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum CheckReport {
    /// The eras of a server.
    Revisions(ShownEras),
    /// The reason why the check failed.
    Failed {
        /// The sentence that says what happened, with its causes.
        message: String,
        /// The next step.
        next: Option<String>,
    },
}

impl CheckReport {
    /// Creates the report of a failure.
    pub(crate) fn of(failure: &Failure) -> Self {
        let sentence = std::iter::once(failure.message());
        let causes = failure.causes().iter().map(String::as_str);
        Self::Failed {
            message: sentence.chain(causes).collect::<Vec<_>>().join(": "),
            next: failure.next_step().map(str::to_owned),
        }
    }
}

/// The eras of one server, as they are shown.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ShownEras {
    server: String,
    /// The revisions that it speaks, of each era the newest.
    speaks: Vec<String>,
    /// The revisions in which it was seen to ask.
    asked: Vec<String>,
    /// The reason why its revisions are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unreached: Option<String>,
    /// The reason why a gateway cannot use it as it is configured, and the next step.
    #[serde(skip)]
    unusable: Option<(String, String)>,
}

impl ShownEras {
    fn new(server: &ConfiguredServer, spoken: &SupportedEras, asked: AskedEras) -> Self {
        let newest = Revision::V2026_07_28.as_str();
        let pushed = Revision::LATEST_PUSHED.as_str();
        let rounds = spoken.rounds.then(|| newest.to_owned());
        let in_rounds = asked.rounds || asked.needs_rounds;
        let unreached = match &spoken.unreached {
            Some(error) => Some(with_causes(error)),
            None if spoken.has_sign_in => Some("its sign-in was not used for this".to_owned()),
            None => None,
        };
        Self {
            server: server.settings.server.clone(),
            speaks: spoken.session.iter().cloned().chain(rounds).collect(),
            asked: [(asked.pushed, pushed), (in_rounds, newest)]
                .into_iter()
                .filter(|(is_seen, _)| *is_seen)
                .map(|(_, revision)| revision.to_owned())
                .collect(),
            unreached,
            unusable: unusable(server, spoken),
        }
    }

    fn line(&self) -> String {
        let server = sanitize::line(&self.server, sanitize::LABEL);
        let Some(why) = &self.unreached else {
            return format!("{server}: {}", self.revisions_in_words());
        };
        let why = sanitize::line(why, REASON);
        let asked = self.asked_in_words();
        format!("{server}: its revisions are unknown: {why}; {asked}")
    }

    /// Returns the revisions that it speaks, and those in which it was seen to ask, in words; `None` if they are unknown.
    pub(crate) fn words(&self) -> Option<String> {
        self.unreached.is_none().then(|| self.revisions_in_words())
    }

    fn revisions_in_words(&self) -> String {
        let spoken = match self.speaks.as_slice() {
            [] => "no known revision".to_owned(),
            speaks => {
                let speaks: Vec<_> = speaks.iter().map(|one| sanitize::line(one, 40)).collect();
                speaks.join(" and ")
            }
        };
        format!("speaks {spoken}; {}", self.asked_in_words())
    }

    fn asked_in_words(&self) -> String {
        match self.asked.as_slice() {
            [] => "not seen to ask yet".to_owned(),
            asked => format!("seen to ask on {}", asked.join(" and ")),
        }
    }
}

/// Returns the reason why a gateway cannot use a server, and the next step; `None` if it can, or if that is unknown.
fn unusable(server: &ConfiguredServer, spoken: &SupportedEras) -> Option<(String, String)> {
    if let Some(error) = &spoken.unreached {
        let why = sanitize::line(&with_causes(error), REASON);
        return Some((why, next_step(error, &server.target)));
    }
    let wanted = spoken.lacks?;
    Some((
        format!("it does not speak {wanted}, which the gateway is told to use"),
        "leave out `--server-revision` (in the file `revision`), or name a revision that it speaks.".to_owned(),
    ))
}

/// Returns the next step of an operator whose server could not be reached.
fn next_step(error: &ConnectError, target: &ServerTarget) -> String {
    let alone = match target {
        ServerTarget::Program(_) => "run the command in a terminal to see what it says.",
        ServerTarget::Url(_) => "look at the server's own log.",
    };
    match error.kind() {
        ConnectErrorKind::Start { source, .. }
            if source.kind() == std::io::ErrorKind::NotFound =>
        {
            "install the program, or write its whole path."
        }
        ConnectErrorKind::Unauthorized { .. } => {
            "put a key or token that the server accepts into the variable of `--token-env` or `--header-env` (in the file `token-env`), \
             or sign in with `--sign-in`."
        }
        ConnectErrorKind::Url { .. } => "write an http or https URL.",
        // Its pipe has closed.
        ConnectErrorKind::Unreachable { .. } if matches!(target, ServerTarget::Program(_)) => alone,
        ConnectErrorKind::Unreachable { why } if why.contains("404") => {
            "check the path of the URL: MCP servers are mostly at /mcp."
        }
        ConnectErrorKind::Unreachable { .. } => "start the server, or check its address and port.",
        ConnectErrorKind::NoCommonRevision { .. } => "use a newer version of the server.",
        ConnectErrorKind::Start { .. }
        | ConnectErrorKind::Setup
        | ConnectErrorKind::TimedOut
        | ConnectErrorKind::Broken => alone,
    }
    .to_owned()
}

/// Asks a server for its eras, reads in which it was seen to ask, and shows both.
pub(crate) async fn show(
    server: &ConfiguredServer,
    state: Option<PathBuf>,
    json: bool,
) -> Result<(), Failure> {
    let folder = state.or_else(StateFolder::usual);
    let folder = folder.map(|folder| StateFolder::at(&folder));
    let eras = Box::pin(eras_of(server, folder.as_ref())).await;
    if json {
        return output::print_json(&CheckReport::Revisions(eras));
    }
    output::say(eras.line());
    Ok(())
}

/// Asks the servers of a configuration for their eras, and shows them, or prints them as JSON.
///
/// # Errors
/// If one of them cannot be used as it is configured.
pub(crate) async fn check(
    servers: &[ConfiguredServer],
    folder: Option<&StateFolder>,
    json: bool,
) -> Result<(), Failure> {
    let mut unusable = Vec::new();
    for server in servers {
        let mut eras = Box::pin(eras_of(server, folder)).await;
        output::say(eras.line());
        let name = sanitize::line(&eras.server, sanitize::LABEL);
        let reason = eras.unusable.take();
        unusable.extend(reason.map(|(why, next)| (name, why, next)));
        if json {
            output::print_json(&CheckReport::Revisions(eras))?;
        }
    }
    let lines = |one: &(String, String, String)| format!("{}: {}; {}", one.0, one.1, one.2);
    match unusable.as_slice() {
        [] => Ok(()),
        [(name, why, next)] => {
            Err(Failure::usage(format!("the server {name} cannot be used: {why}")).hint(next))
        }
        several => Err(Failure::usage(format!(
            "{} of {} servers cannot be used",
            several.len(),
            servers.len()
        ))
        .telling(
            "their reasons, and the next steps:",
            several.iter().map(lines).collect(),
        )),
    }
}

/// Asks a server for its eras; mentions a download that takes long.
async fn find_eras(server: &ConfiguredServer) -> SupportedEras {
    let Some(launcher) = launcher(&server.target) else {
        return Box::pin(supported_eras(server, WITHIN)).await;
    };
    let mut spoken = Box::pin(supported_eras(server, WITH_DOWNLOAD));
    if let Ok(spoken) = tokio::time::timeout(SILENT_TIME, &mut spoken).await {
        return spoken;
    }
    let name = sanitize::line(&server.settings.server, sanitize::LABEL);
    let most = WITH_DOWNLOAD.as_secs();
    output::say(format_args!(
        "{name}: {launcher} has not started it yet; it may be downloading it (waiting up to {most} s)"
    ));
    spoken.await
}

/// Returns the name of the launcher that starts a server; `None` if it is not one.
fn launcher(target: &ServerTarget) -> Option<&'static str> {
    let ServerTarget::Program(program) = target else {
        return None;
    };
    let name = Path::new(&program.program).file_stem()?.to_str()?;
    LAUNCHERS.into_iter().find(|launcher| *launcher == name)
}

async fn eras_of(server: &ConfiguredServer, folder: Option<&StateFolder>) -> ShownEras {
    let spoken = find_eras(server).await;
    let asked = match folder {
        Some(folder) => asked_eras(server, folder).await,
        None => None,
    };
    ShownEras::new(server, &spoken, asked.unwrap_or_default())
}
